//! Hibernated Droplets, request by request.

use std::slice;

use domain::{
    ResourceId,
    hibernation::{
        Attachment, BackupPolicy, Balanced, Hibernation, KeptSnapshot, Label, Manifest, Mark,
        Origin, Sight, SnapshotState,
    },
    resource::{ActionId, Busy, MachineSize, Resource, Size},
    step::Step,
};
use serde_json::{Value, json};
use testing::seen;

use super::{
    do_error,
    script::{Answer, Script, answer, ok},
};
use crate::{Accepted, ChangeError, HibernationLookup, Lists};

const MARK: &str = "k3v9q0z1m4x7c2b8";

const VOLUME: &str = "506f78a4-e098-11e5-ad9f-000f53306ae1";

const SNAPSHOTS: &str = "GET /v2/snapshots?resource_type=droplet&per_page=200&page=1";

const TAGGED: &str = "GET /v2/droplets?tag_name=offhours-of:droplet-42&per_page=200&page=1";

fn id(number: u64) -> ResourceId {
    format!("droplet/{number}").parse().unwrap()
}

fn mark() -> Mark {
    Mark(MARK.to_owned())
}

fn droplet(number: u64, status: &str) -> Value {
    json!({
        "id": number, "name": "web", "status": status, "locked": false,
        "tags": ["env:staging", "offhours:office", "offhours-of:droplet-42", format!("offhours-mark:{MARK}")],
        "size_slug": "s-2vcpu-4gb", "vcpus": 2, "memory": 4096, "disk": 80,
        "region": {"slug": "fra1"}, "features": ["backups", "ipv6", "private_networking"],
        "volume_ids": [VOLUME], "vpc_uuid": "760e09ef-dc84-11e8-981e-3cfdfeaae000",
        "image": {"id": 7, "type": "snapshot"},
        "networks": {
            "v4": [
                {"ip_address": "198.51.100.1", "type": "public"},
                {"ip_address": "203.0.113.4", "type": "public"},
            ],
            "v6": [],
        },
    })
}

fn snapshot(number: &str, name: &str) -> Value {
    json!({
        "id": number, "name": name, "created_at": "2026-11-23T19:05:00Z", "regions": ["fra1"],
        "min_disk_size": 80, "size_gigabytes": 4.51, "resource_id": "42",
        "resource_type": "droplet", "tags": null,
    })
}

fn list(of: &str, items: &[Value]) -> Answer {
    ok(json!({of: items, "links": {}, "meta": {"total": items.len()}}))
}

fn kept(number: Option<u64>) -> Hibernation {
    let mut kept = Hibernation::of(id(42));
    let asked_at = "2026-11-23T19:00:00Z".parse().unwrap();
    kept.snapshots.push(KeptSnapshot { id: number, ..KeptSnapshot::of(id(42), mark(), asked_at) });
    kept
}

/// What else an observation reads.
#[derive(Default)]
struct Besides {
    attached: bool,
    made: Option<ResourceId>,
    making: Option<ActionId>,
}

async fn sight(conversation: Vec<(String, Answer)>, kept: &Hibernation, besides: Besides) -> Sight {
    let cloud = Script::play(conversation).await;
    let (client, of) = (cloud.digitalocean(), id(42));
    let snapshots = client.snapshots().await.unwrap();
    let attachments =
        if besides.attached { Some(client.attachments().await.unwrap()) } else { None };
    let seen = client.inspect(HibernationLookup {
        of: &of,
        present: kept.present.as_ref(),
        made: besides.made.as_ref(),
        making: besides.making,
        hibernation: Some(kept),
        snapshots: &snapshots,
        lists: Lists { attachments: attachments.as_ref(), preflight: None },
        name: "web",
    });
    let seen = seen.await.unwrap();
    let requests = cloud.finish_in_any_order();
    if besides.attached {
        let last = ["GET /v2/droplets/42", "GET /v2/droplets/42/backups/policy"];
        assert_eq!(requests[requests.len() - 2..], last);
    }
    seen
}

fn missing() -> Answer {
    answer(404, do_error("not_found", "The resource you requested could not be found."))
}

/// The manifest from which the Droplet is recreated, as observed before its deletion.
fn all_of_it() -> Manifest {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    Manifest {
        name: "web".to_owned(),
        region: "fra1".to_owned(),
        tags: texts(&["env:staging", "offhours:office"]),
        size: MachineSize {
            plan: "s-2vcpu-4gb".to_owned(),
            vcpus: 2,
            memory_mib: 4096,
            disk_gib: 80,
            ..MachineSize::default()
        },
        volumes: texts(&[VOLUME]),
        firewalls: texts(&["f1"]),
        load_balancers: vec![Balanced { id: "b1".to_owned(), privately: false }],
        floating_ips: texts(&["203.0.113.4", "2001:db8::4"]),
        backups: true,
        backup_policy: Some(BackupPolicy {
            plan: "weekly".to_owned(),
            weekday: Some("SUN".to_owned()),
            hour: Some(4),
        }),
        vpc: Some("760e09ef-dc84-11e8-981e-3cfdfeaae000".to_owned()),
        project: Some("p2".to_owned()),
        features: texts(&["ipv6"]),
        ..Manifest::default()
    }
}

#[tokio::test]
async fn a_look_before_a_deletion_reads_all_that_is_attached_and_the_droplet_last() {
    let reserved = |ip: &str, number| json!({"ip": ip, "droplet": {"id": number}});
    let all = |path: &str| format!("GET /v2/{path}?per_page=200&page=1");
    let projects = [json!({"id": "p1", "name": "first"}), json!({"id": "p2", "name": "ci"})];
    let in_project = |urn: &str| list("resources", &[json!({"urn": urn})]);
    let firewall =
        |name: &str, number: u64| json!({"id": name, "name": name, "droplet_ids": [number]});
    let balancer =
        |name: &str, tag: &str| json!({"id": name, "name": name, "droplet_ids": [42], "tag": tag});
    let name = format!("offhours.droplet.42.{MARK}");
    let conversation = vec![
        (SNAPSHOTS.to_owned(), list("snapshots", &[snapshot("7", &name)])),
        (
            all("reserved_ips"),
            list("reserved_ips", &[reserved("203.0.113.4", 42), reserved("203.0.113.5", 1)]),
        ),
        (all("reserved_ipv6"), list("reserved_ipv6s", &[reserved("2001:db8::4", 42)])),
        (all("firewalls"), list("firewalls", &[firewall("f1", 42), firewall("f2", 1)])),
        (
            all("load_balancers"),
            // A load balancer with a tag lists the Droplets that have the tag.
            list("load_balancers", &[balancer("b1", ""), balancer("b2", "env:staging")]),
        ),
        (all("projects"), list("projects", &projects)),
        ("GET /v2/images/7".to_owned(), ok(json!({"image": {"status": "available"}}))),
        (TAGGED.to_owned(), list("droplets", &[])),
        (all("projects/p1/resources"), in_project("do:droplet:1")),
        (all("projects/p2/resources"), in_project("do:droplet:42")),
        ("GET /v2/droplets/42".to_owned(), ok(json!({"droplet": droplet(42, "off")}))),
        (
            "GET /v2/droplets/42/backups/policy".to_owned(),
            ok(
                json!({"policy": {"backup_policy": {"plan": "weekly", "weekday": "SUN", "hour": 4}}}),
            ),
        ),
    ];
    let seen =
        sight(conversation, &kept(None), Besides { attached: true, ..Besides::default() }).await;
    let body = seen.machine.unwrap();
    assert_eq!(body.manifest, Some(all_of_it()));
    assert_eq!((body.mark, body.made_from), (Some(mark()), Some(7)));
    let copy = seen.snapshots.first().unwrap();
    assert_eq!((copy.id, copy.mark.clone(), copy.from.clone()), (7, Some(mark()), Some(id(42))));
    assert_eq!((copy.centi_gb, copy.disk_gib, copy.state), (451, 80, SnapshotState::Available));
    assert!(copy.is_in("fra1") && !copy.is_in("nyc3"));
    assert_eq!((copy.created_at, copy.protected), (None, None));
}

#[tokio::test]
async fn a_stop_that_is_followed_reads_no_more_than_it_needs() {
    let conversation = vec![
        (SNAPSHOTS.to_owned(), list("snapshots", &[])),
        (TAGGED.to_owned(), list("droplets", &[])),
        ("GET /v2/droplets/42".to_owned(), ok(json!({"droplet": droplet(42, "off")}))),
    ];
    let seen = sight(conversation, &kept(None), Besides::default()).await;
    assert_eq!(seen.machine.unwrap().manifest, None);
    assert_eq!(seen.snapshots, []);
}

#[tokio::test]
async fn what_is_around_several_machines_is_read_once_and_each_machine_every_time() {
    let of = |path: String, answer| (format!("GET /v2/{path}"), answer);
    let page = |path: &str| format!("{path}per_page=200&page=1");
    let nothing = |path: &str, of_what: &str| of(page(path), list(of_what, &[]));
    let inspected = |number: u64| {
        let tagged = format!("droplets?tag_name=offhours-of:droplet-{number}&");
        let mut seen = droplet(number, "off");
        seen["features"] = json!([]);
        let seen = ok(json!({"droplet": seen}));
        [nothing(&tagged, "droplets"), of(format!("droplets/{number}"), seen)]
    };
    let projects = ["p1", "p2", "p3"].map(|id| json!({"id": id, "name": id}));
    let lists = vec![
        nothing("snapshots?resource_type=droplet&", "snapshots"),
        nothing("reserved_ips?", "reserved_ips"),
        nothing("reserved_ipv6?", "reserved_ipv6s"),
        nothing("firewalls?", "firewalls"),
        nothing("load_balancers?", "load_balancers"),
        of(page("projects?"), list("projects", &projects)),
    ];
    let in_project = |project: &str, number: u64| {
        let urn = json!({"urn": format!("do:droplet:{number}")});
        of(page(&format!("projects/{project}/resources?")), list("resources", &[urn]))
    };
    // They are read at once, and not again for the next machine.
    let mut machines = [42, 43, 43].map(inspected).map(Vec::from);
    machines[0].splice(1..1, [in_project("p1", 42), in_project("p2", 43), in_project("p3", 44)]);
    let conversation = lists.into_iter().chain(machines.into_iter().flatten());
    let cloud = Script::play(conversation).await;
    let client = cloud.digitalocean();
    let snapshots = client.snapshots().await.unwrap();
    let attachments = client.attachments().await.unwrap();
    for number in [42, 43, 43] {
        let of = id(number);
        let seen = client.inspect(HibernationLookup {
            of: &of,
            present: Some(&of),
            made: None,
            making: None,
            hibernation: None,
            snapshots: &snapshots,
            lists: Lists { attachments: Some(&attachments), preflight: None },
            name: "web",
        });
        let machine = seen.await.unwrap().machine.unwrap();
        assert_eq!(machine.resource.id, of);
        let project = if number == 42 { "p1" } else { "p2" };
        assert_eq!(machine.manifest.unwrap().project.as_deref(), Some(project));
    }
    assert_eq!(client.requests(), 15);
    cloud.finish_in_any_order();
}

#[tokio::test]
async fn a_snapshot_is_found_by_its_name_and_from_then_on_by_its_number() {
    let name = format!("offhours.droplet.42.{MARK}");
    // One of another Droplet whose number begins alike, and one that a person made.
    let others = [snapshot("3", "offhours.droplet.421.abc"), snapshot("4", "web-1")];
    let by_name = [&others[..], &[snapshot("7", &name)]].concat();
    let renamed = [&others[..], &[snapshot("7", "keep me"), snapshot("8", &name)]].concat();
    for (listed, number) in [(by_name, None), (renamed, Some(7))] {
        let conversation = vec![
            (SNAPSHOTS.to_owned(), list("snapshots", &listed)),
            ("GET /v2/images/7".to_owned(), ok(json!({"image": {"status": "available"}}))),
            (TAGGED.to_owned(), list("droplets", &[])),
            ("GET /v2/droplets/42".to_owned(), ok(json!({"droplet": droplet(42, "off")}))),
        ];
        let seen = sight(conversation, &kept(number), Besides::default()).await;
        let found: Vec<_> = seen.snapshots.iter().map(|one| one.id).collect();
        assert_eq!(found, [7], "{number:?}");
    }
}

#[tokio::test]
async fn a_snapshot_that_no_list_shows_is_asked_for_by_its_number() {
    let mut asleep = kept(Some(7));
    asleep.record_deletion();
    asleep.wake_from = Some(mark());
    let named = "GET /v2/droplets?name=web&per_page=200&page=1".to_owned();
    let found = ok(json!({"snapshot": snapshot("7", "renamed")}));
    for (answer, is_there) in [(found, true), (missing(), false)] {
        let mut conversation = vec![
            (SNAPSHOTS.to_owned(), list("snapshots", &[])),
            ("GET /v2/snapshots/7".to_owned(), answer),
        ];
        if is_there {
            let image = ok(json!({"image": {"status": "available"}}));
            conversation.push(("GET /v2/images/7".to_owned(), image));
        }
        conversation.push((TAGGED.to_owned(), list("droplets", &[])));
        conversation.push((named.clone(), list("droplets", &[droplet(77, "active")])));
        let seen = sight(conversation, &asleep, Besides::default()).await;
        assert_eq!(seen.snapshot(&mark()).is_some(), is_there);
        assert_eq!(seen.others[0].resource.id, id(77));
    }
}

#[tokio::test]
async fn a_snapshot_is_complete_only_as_an_image_that_is_available_somewhere() {
    let available = || ok(json!({"image": {"status": "available"}}));
    let is = |status: &str| ok(json!({"image": {"status": status}}));
    for (regions, image, expected) in [
        (json!(["fra1"]), available(), SnapshotState::Available),
        (json!([]), available(), SnapshotState::Creating),
        (json!(["fra1"]), is("pending"), SnapshotState::Creating),
        (json!(["fra1"]), is("NEW"), SnapshotState::Creating),
        (json!(["fra1"]), missing(), SnapshotState::Creating),
        (json!(["fra1"]), is("deleted"), SnapshotState::Failed),
        (json!(["fra1"]), is("retired"), SnapshotState::Failed),
        (json!(["fra1"]), is("archived"), SnapshotState::Unknown),
    ] {
        let mut listed = snapshot("7", "any");
        listed["regions"] = regions;
        let conversation = vec![
            (SNAPSHOTS.to_owned(), list("snapshots", &[listed])),
            ("GET /v2/images/7".to_owned(), image),
            (TAGGED.to_owned(), list("droplets", &[])),
            ("GET /v2/droplets/42".to_owned(), ok(json!({"droplet": droplet(42, "off")}))),
        ];
        let seen = sight(conversation, &kept(Some(7)), Besides::default()).await;
        assert_eq!(seen.snapshots[0].state, expected);
    }
}

#[tokio::test]
async fn what_becomes_of_a_droplet_that_is_being_made_is_known_by_its_action() {
    let mut asleep = kept(None);
    asleep.record_deletion();
    for (status, failed) in [("in-progress", false), ("errored", true), ("", false)] {
        let action = json!({"action": {"id": 5, "type": "create", "status": status,
            "started_at": "2026-11-24T05:40:00Z", "completed_at": null}});
        let action = if status.is_empty() { missing() } else { ok(action) };
        let conversation = vec![
            (SNAPSHOTS.to_owned(), list("snapshots", &[])),
            ("GET /v2/actions/5".to_owned(), action),
            (TAGGED.to_owned(), list("droplets", &[])),
            ("GET /v2/droplets?name=web&per_page=200&page=1".to_owned(), list("droplets", &[])),
            ("GET /v2/droplets/99".to_owned(), ok(json!({"droplet": droplet(99, "new")}))),
        ];
        let besides =
            Besides { making: Some(ActionId(5)), made: Some(id(99)), ..Besides::default() };
        let seen = sight(conversation, &asleep, besides).await;
        assert_eq!(seen.create_failed, failed, "{status}");
        assert_eq!(seen.others[0].resource.busy, Some(Busy::Creating));
    }
}

async fn sent(request: String, answer: Answer, step: Step) -> (String, Accepted) {
    let cloud = Script::play([(request, answer)]).await;
    let (client, droplet) = (cloud.digitalocean(), seen(id(42)));
    let accepted = client.send(&droplet, &step).await.unwrap();
    cloud.finish();
    (client.shown(&droplet, &step), accepted)
}

fn with_body(request: &str, body: &Value) -> String {
    format!("{request} application/json {body}")
}

fn label() -> Label {
    Label { of: id(42), mark: mark() }
}

#[tokio::test]
async fn a_snapshot_is_named_after_the_resource_and_its_mark() {
    let path = "POST /v2/droplets/42/actions";
    let name = format!("offhours.droplet.42.{MARK}");
    let request = with_body(path, &json!({"name": name, "type": "snapshot"}));
    let begun = answer(201, json!({"action": {"id": 36}}));
    let (shown, accepted) = sent(request, begun, Step::Snapshot(label())).await;
    assert_eq!(shown, format!("{path} snapshot name={name}"));
    assert_eq!(accepted, Accepted::action(36));
}

#[tokio::test]
async fn the_name_of_a_snapshot_says_what_its_droplet_is_like() {
    let name =
        format!("offhours.droplet.42.{MARK} web.1 fra1 s-2vcpu-4gb tags env.dev offhours.office");
    let whole = json!({"name": name, "type": "snapshot"});
    let older = format!("offhours.droplet.42.{MARK}");
    let changed = format!("{older} keep this one");
    let listed = [snapshot("7", &name), snapshot("8", &older), snapshot("9", &changed)];
    let begun = answer(201, json!({"action": {"id": 36}}));
    let cloud = Script::play([
        (with_body("POST /v2/droplets/42/actions", &whole), begun),
        (SNAPSHOTS.to_owned(), list("snapshots", &listed)),
    ])
    .await;
    let client = cloud.digitalocean();
    let size = MachineSize { plan: "s-2vcpu-4gb".to_owned(), ..MachineSize::default() };
    let tags = ["env:dev", "offhours-of:droplet-42", "offhours:office"].map(str::to_owned);
    let machine = Resource {
        name: "web.1".to_owned(),
        tags: tags.into(),
        region: "fra1".to_owned(),
        size: Size::Machine(size),
        ..seen(id(42))
    };
    client.send(&machine, &Step::Snapshot(label())).await.unwrap();
    let ours: Vec<_> = client.snapshots().await.unwrap().ours().collect();
    cloud.finish();
    assert!(ours.iter().all(|one| one.of == id(42) && one.seen.mark == Some(mark())), "{ours:?}");
    let origins: Vec<_> = ours.into_iter().map(|one| one.origin).collect();
    assert_eq!(origins, [Origin::of(&machine), None, None]);
}

#[tokio::test]
async fn a_droplet_is_made_again_as_it_was() {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    let manifest = Manifest {
        name: "web".to_owned(),
        region: "fra1".to_owned(),
        tags: texts(&["env:staging", "offhours:office"]),
        size: MachineSize { plan: "s-2vcpu-4gb".to_owned(), ..MachineSize::default() },
        ssh_key: "3b:16".to_owned(),
        volumes: texts(&[VOLUME]),
        backups: true,
        backup_policy: Some(BackupPolicy {
            plan: "daily".to_owned(),
            weekday: None,
            hour: Some(8),
        }),
        vpc: Some("760e09ef".to_owned()),
        features: texts(&["monitoring", "droplet_agent"]),
        private_only: true,
        ..Manifest::default()
    };
    // The keys are in the order in which they are written, which `Script` compares.
    let body = format!(
        concat!(
            r#"{{"name":"web","region":"fra1","size":"s-2vcpu-4gb","image":7,"ssh_keys":["3b:16"],"#,
            r#""backups":true,"backup_policy":{{"plan":"daily","hour":8}},"ipv6":false,"#,
            r#""monitoring":true,"public_networking":false,"#,
            r#""tags":["env:staging","offhours-mark:{mark}","offhours-of:droplet-42","offhours:office"],"#,
            r#""volumes":["{volume}"],"vpc_uuid":"760e09ef","#,
            r##""user_data":"#cloud-config\nssh_deletekeys: false\npreserve_hostname: true\n"}}"##,
        ),
        mark = MARK,
        volume = VOLUME,
    );
    let request = format!("POST /v2/droplets application/json {body}");
    let made = json!({"droplet": {"id": 99}, "links": {"actions": [{"id": 5, "rel": "create"}]}});
    let step = Step::Create { label: label(), snapshot: 7, manifest: Box::new(manifest) };
    let (shown, accepted) = sent(request, answer(202, made), step).await;
    let begin = "POST /v2/droplets name=web region=fra1 size=s-2vcpu-4gb image=7 ssh_keys=3b:16 ";
    assert!(shown.starts_with(begin), "{shown}");
    assert!(shown.ends_with(&format!(" volumes={VOLUME} vpc_uuid=760e09ef")), "{shown}");
    let expected = Accepted { action: Some(ActionId(5)), made: Some(99) };
    assert_eq!(accepted, expected);
}

#[tokio::test]
async fn each_thing_is_given_back_by_a_request_of_its_own_kind() {
    let droplets = json!({"droplet_ids": [42]});
    let policy = BackupPolicy { plan: "daily".to_owned(), weekday: None, hour: None };
    let balancer = Balanced { id: "b1".to_owned(), privately: false };
    for (what, path, body, shown) in [
        (
            Attachment::Firewall("f1".to_owned()),
            "/v2/firewalls/f1/droplets",
            droplets.clone(),
            " droplet_ids=42",
        ),
        (
            Attachment::LoadBalancer(balancer),
            "/v2/load_balancers/b1/droplets",
            droplets,
            " droplet_ids=42",
        ),
        (
            Attachment::Volume(VOLUME.to_owned()),
            "/v2/volumes/506f78a4-e098-11e5-ad9f-000f53306ae1/actions",
            json!({"droplet_id": 42, "type": "attach"}),
            " attach droplet_id=42",
        ),
        (
            Attachment::Project("p2".to_owned()),
            "/v2/projects/p2/resources",
            json!({"resources": ["do:droplet:42"]}),
            " resources=do:droplet:42",
        ),
        (
            Attachment::Backups(Some(policy)),
            "/v2/droplets/42/actions",
            json!({"backup_policy": {"plan": "daily"}, "type": "enable_backups"}),
            " enable_backups plan=daily",
        ),
    ] {
        let request = with_body(&format!("POST {path}"), &body);
        let (printed, accepted) = sent(request, answer(204, ""), Step::Attach(what)).await;
        assert_eq!(printed, format!("POST {path}{shown}"));
        assert_eq!(accepted, Accepted::default());
    }
}

#[tokio::test]
async fn a_reserved_address_is_assigned_unless_another_droplet_has_it_by_now() {
    let assign = json!({"droplet_id": 42, "type": "assign"});
    for (ip, path, word) in [
        ("203.0.113.4", "/v2/reserved_ips/203.0.113.4", "reserved_ip"),
        ("2001:db8::4", "/v2/reserved_ipv6/2001:db8::4", "reserved_ipv6"),
    ] {
        let step = Step::Attach(Attachment::FloatingIp(ip.to_owned()));
        let shows = |droplet: Value| {
            (format!("GET {path}"), ok(json!({word: {"ip": ip, "droplet": droplet}})))
        };
        for free in [json!(null), json!({"id": 42})] {
            let action = with_body(&format!("POST {path}/actions"), &assign);
            let cloud = Script::play([shows(free), (action, answer(204, ""))]).await;
            let client = cloud.digitalocean();
            assert_eq!(client.send(&seen(id(42)), &step).await.unwrap(), Accepted::default());
            let printed = client.shown(&seen(id(42)), &step);
            assert_eq!(printed, format!("POST {path}/actions assign droplet_id=42"));
            cloud.finish();
        }
        let cloud = Script::play([shows(json!({"id": 7}))]).await;
        let sent = cloud.digitalocean().send(&seen(id(42)), &step).await;
        let Err(ChangeError::Refused(refusal)) = sent else { panic!("{sent:?}") };
        assert_eq!(refusal.message, format!("droplet/7 has the address {ip} by now"));
        cloud.finish();
    }
}

#[tokio::test]
async fn only_what_is_known_by_its_number_is_deleted() {
    for (step, path) in [
        (Step::Delete, "DELETE /v2/droplets/42"),
        (Step::RemoveSnapshot(7), "DELETE /v2/snapshots/7"),
    ] {
        let (shown, accepted) = sent(path.to_owned(), answer(204, ""), step).await;
        assert_eq!(shown, path);
        assert_eq!(accepted, Accepted::default());
    }
}

#[tokio::test]
async fn an_image_of_hetzner_is_deleted_without_a_word() {
    let removed = ("DELETE /v1/images/7".to_owned(), answer(204, ""));
    let cloud = Script::play([removed]).await;
    let server = seen("server/42".parse().unwrap());
    let accepted = cloud.hetzner(&[]).send(&server, &Step::RemoveSnapshot(7)).await;
    assert_eq!(accepted.unwrap(), Accepted::default());
    cloud.finish();
}

#[tokio::test]
async fn a_droplet_is_to_be_made_without_what_its_account_no_longer_has() {
    let key = |name: &str, fingerprint: &str| json!({"name": name, "fingerprint": fingerprint});
    let had = Manifest {
        ssh_key: "aa:bb".to_owned(),
        volumes: [VOLUME.to_owned(), "other".to_owned()].into(),
        ..all_of_it()
    };
    let left = async |keys: &[Value], named| {
        let cloud = Script::play(vec![
            ("GET /v2/account/keys?per_page=200&page=1".to_owned(), list("ssh_keys", keys)),
            (format!("GET /v2/volumes/{VOLUME}"), ok(json!({"volume": {"id": VOLUME}}))),
            ("GET /v2/volumes/other".to_owned(), missing()),
            ("GET /v2/vpcs/760e09ef-dc84-11e8-981e-3cfdfeaae000".to_owned(), missing()),
        ])
        .await;
        let left = cloud.digitalocean().still_there(&had, named).await.unwrap();
        cloud.finish();
        let volumes = [VOLUME.to_owned()].into();
        let ssh_key = left.ssh_key.clone();
        let expected = Manifest { ssh_key: ssh_key.clone(), volumes, vpc: None, ..had.clone() };
        assert_eq!(left, expected);
        let vpc = had.vpc.clone().map(Attachment::Vpc);
        assert_eq!(had.replaced_by(&left), Vec::from_iter(vpc));
        ssh_key
    };
    let new = key("new", "cc:dd");
    let both = [key("team", "aa:bb"), new.clone()];
    assert_eq!(left(&both, Some("new")).await, "aa:bb");
    assert_eq!(left(slice::from_ref(&new), Some("new")).await, "cc:dd");
    assert_eq!(left(slice::from_ref(&new), Some("none")).await, "aa:bb");
    assert_eq!(left(&[new], None).await, "aa:bb");
}
