//! Hetzner Cloud, request by request.

use domain::{
    ResourceId, ResourceKind,
    hibernation::{
        Attachment, Hibernation, KeptSnapshot, Label, Manifest, Mark, NetworkAddress, Origin,
    },
    resource::{
        ActionEffect, ActionId, ActionState, MachineSize, Power, Resource, SavedState, Size,
    },
    step::Step,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use testing::seen;

use super::{
    change_kind, ids, kind, list,
    script::{Script, answer, ok},
};
use crate::{Accepted, ChangeError, Client, HibernationLookup, ListedSnapshots, Lists};

fn server(id: u64, status: &str) -> Value {
    json!({
        "id": id, "name": format!("build-{id}"), "status": status, "locked": false,
        "labels": {"offhours": "office-hours", "team": ""},
        "location": {"id": 1, "name": "fsn1"},
        "server_type": {"id": 1, "name": "cpx22", "cores": 2, "memory": 4.0, "disk": 80,
            "architecture": "x86", "storage_type": "local"},
        "primary_disk_size": 80,
        "created": "2026-01-30T23:55:00Z", "iso": null, "rescue_enabled": false,
        "protection": {"delete": false, "rebuild": false},
    })
}

fn page(items: &str, of: Vec<Value>, next: Option<u32>) -> Value {
    json!({items: of, "meta": {"pagination": {
        "page": 1, "per_page": 50, "previous_page": null, "next_page": next,
        "last_page": null, "total_entries": null,
    }}})
}

fn action(id: u64, command: &str, status: &str, started: &str) -> Value {
    json!({"id": id, "command": command, "status": status, "progress": 0, "started": started,
        "finished": null, "resources": [{"id": 42, "type": "server"}], "error": null})
}

fn id(number: u64) -> ResourceId {
    format!("server/{number}").parse().unwrap()
}

async fn listed(client: &Client) -> Vec<ResourceId> {
    ids(&list(client, &ResourceKind::ALL).await.unwrap())
}

#[tokio::test]
async fn all_pages_are_listed_and_a_server_that_shifted_counts_once() {
    let cloud = Script::play([
        (
            "GET /v1/servers?sort=id:asc&per_page=50&page=1",
            ok(page("servers", vec![server(2, "running"), server(1, "off")], Some(2))),
        ),
        (
            "GET /v1/servers?sort=id:asc&per_page=50&page=2",
            ok(page("servers", vec![server(2, "running"), server(3, "off")], None)),
        ),
    ])
    .await;
    assert_eq!(listed(&cloud.hetzner(&[])).await, [id(1), id(2), id(3)]);
    cloud.finish();
}

#[tokio::test]
async fn a_list_that_breaks_on_a_later_page_or_goes_in_circles_is_an_error() {
    let first = "GET /v1/servers?sort=id:asc&per_page=50&page=1";
    let second = "GET /v1/servers?sort=id:asc&per_page=50&page=2";
    for (bad, expected) in [
        (answer(500, super::hz_error("server_error", "no")), "unavailable"),
        (ok(page("servers", vec![], Some(2))), "not understood"),
        (ok(json!({"servers": []})), "not understood"),
    ] {
        let good = ok(page("servers", vec![server(1, "running")], Some(2)));
        let cloud = Script::play([(first, good), (second, bad)]).await;
        let list = list(&cloud.hetzner(&[]), &ResourceKind::ALL).await;
        let error = list.unwrap_err();
        assert_eq!(kind(&error), expected, "{error}");
        cloud.finish();
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_read_is_named_and_spoils_no_other() {
    let mut odd = server(2, "running");
    odd["primary_disk_size"] = json!(40.5);
    let mut nameless = server(3, "running");
    nameless["name"] = Value::Null;
    let servers = vec![server(1, "running"), odd, nameless];
    let cloud = Script::play([(
        "GET /v1/servers?sort=id:asc&per_page=50&page=1",
        ok(page("servers", servers, None)),
    )])
    .await;
    let listed = list(&cloud.hetzner(&[]), &ResourceKind::ALL).await.unwrap();
    assert_eq!(ids(&listed), [id(1)]);
    let unread: Vec<_> = listed.unread.iter().map(ToString::to_string).collect();
    assert_eq!(unread, ["server build-2 (2) not read", "server 3 not read"]);
    cloud.finish();
}

#[tokio::test]
async fn only_the_locations_named_are_listed() {
    let mut elsewhere = server(2, "running");
    elsewhere["location"]["name"] = json!("hel1");
    for (locations, expected) in [
        (&[][..], vec![id(1), id(2)]),
        (&["fsn1"], vec![id(1)]),
        (&["hel1"], vec![id(2)]),
        (&["ash"], vec![]),
    ] {
        let both = vec![server(1, "running"), elsewhere.clone()];
        let cloud = Script::play([(
            "GET /v1/servers?sort=id:asc&per_page=50&page=1",
            ok(page("servers", both, None)),
        )])
        .await;
        assert_eq!(listed(&cloud.hetzner(locations)).await, expected, "{locations:?}");
        cloud.finish();
    }
}

#[tokio::test]
async fn a_server_in_another_location_is_there_but_never_touched() {
    let request = "GET /v1/servers/42";
    let cloud = Script::play([(request, ok(json!({"server": server(42, "running")})))]).await;
    let found = cloud.hetzner(&["nbg1-dc3"]).status(&id(42)).await.unwrap();
    let reason = found.unwrap().unsupported.unwrap();
    assert!(reason.contains("fsn1"), "{reason}");
    cloud.finish();
}

#[tokio::test]
async fn a_server_is_put_in_our_words() {
    let request = "GET /v1/servers/42";
    let cloud = Script::play([(request, ok(json!({"server": server(42, "running")})))]).await;
    let found = cloud.hetzner(&[]).status(&id(42)).await.unwrap().unwrap();
    assert_eq!(found.id, id(42));
    assert_eq!(found.name, "build-42");
    assert_eq!(found.region, "fsn1");
    assert!(found.tags.iter().eq(["offhours=office-hours", "team="]));
    assert_eq!(
        found.size,
        Size::Machine(MachineSize {
            plan: "cpx22".to_owned(),
            vcpus: 2,
            memory_mib: 4096,
            disk_gib: 80,
            architecture: Some("x86".to_owned()),
            network_storage: false,
        })
    );
    assert_eq!((found.cluster, found.unsupported), (None, None));
    cloud.finish();
}

#[tokio::test]
async fn a_servers_own_fields_say_what_forbids_a_rescale() {
    for (field, value, flags) in [
        ("name", json!("build"), (false, false, false)),
        ("iso", json!({"id": 9}), (true, false, false)),
        ("rescue_enabled", json!(true), (false, true, false)),
        ("protection", json!({"delete": true, "rebuild": false}), (false, false, true)),
        ("protection", json!({"delete": false, "rebuild": true}), (false, false, true)),
        ("protection", Value::Null, (false, false, false)),
    ] {
        let mut server = server(42, "off");
        server[field] = value;
        let cloud = Script::play([("GET /v1/servers/42", ok(json!({"server": server})))]).await;
        let found = cloud.hetzner(&[]).status(&id(42)).await.unwrap().unwrap();
        let facts = found.facts;
        assert_eq!((facts.iso, facts.rescue, facts.protected), flags, "{field}");
        let created_at = facts.created_at.unwrap().to_string();
        assert_eq!(created_at, "2026-01-30T23:55:00Z");
        cloud.finish();
    }
}

#[tokio::test]
async fn every_status_has_its_power_and_whether_it_may_be_changed() {
    for (status, locked, power, busy) in [
        ("running", false, Power::Running, None),
        ("off", false, Power::Stopped, None),
        ("running", true, Power::Running, Some("locked")),
        ("off", true, Power::Stopped, Some("locked")),
        ("starting", false, Power::Between, Some("status is starting")),
        ("stopping", true, Power::Between, Some("status is stopping")),
        ("initializing", false, Power::Between, Some("being created")),
        ("deleting", false, Power::Between, Some("being deleted")),
        ("migrating", false, Power::Between, Some("status is migrating")),
        ("rebuilding", false, Power::Between, Some("status is rebuilding")),
        ("unknown", false, Power::Between, Some("status is unknown")),
        ("hibernating", false, Power::Between, Some("status is hibernating")),
    ] {
        let mut server = server(42, status);
        server["locked"] = json!(locked);
        server["labels"] = Value::Null;
        let cloud = Script::play([("GET /v1/servers/42", ok(json!({"server": server})))]).await;
        let found = cloud.hetzner(&[]).status(&id(42)).await.unwrap().unwrap();
        assert_eq!(
            (found.power, found.busy.map(|busy| busy.to_string()).as_deref()),
            (power, busy),
            "{status}"
        );
        cloud.finish();
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_none() {
    let cloud = Script::play([(
        "GET /v1/servers/42",
        answer(404, super::hz_error("not_found", "server not found")),
    )])
    .await;
    assert_eq!(cloud.hetzner(&[]).status(&id(42)).await.unwrap(), None);
    cloud.finish();
}

#[tokio::test]
async fn an_answer_about_another_server_is_not_understood() {
    let other = ok(json!({"server": server(43, "off")}));
    let cloud = Script::play([("GET /v1/servers/42", other)]).await;
    let error = cloud.hetzner(&[]).status(&id(42)).await.unwrap_err();
    assert_eq!(kind(&error), "not understood");
    cloud.finish();
}

#[tokio::test]
async fn power_actions_are_sent_without_a_body() {
    let begun = |word, command| {
        let body = json!({"action": action(13, command, "running", "2016-01-30T23:50:00Z")});
        (format!("POST /v1/servers/42/actions/{word}"), answer(201, body))
    };
    let cloud = Script::play([
        begun("poweron", "start_server"),
        begun("shutdown", "shutdown_server"),
        begun("poweroff", "stop_server"),
    ])
    .await;
    let client = cloud.hetzner(&[]);
    let server = seen(id(42));
    for (step, word) in [
        (Step::On { small: false }, "poweron"),
        (Step::Off { gracefully: true }, "shutdown"),
        (Step::CUT, "poweroff"),
    ] {
        let accepted = client.send(&server, &step).await.unwrap();
        assert_eq!(accepted, Accepted { action: Some(ActionId(13)), made: None }, "{step}");
        let shown = client.shown(&server, &step);
        assert_eq!(shown, format!("POST /v1/servers/42/actions/{word}"));
    }
    cloud.finish();
}

#[tokio::test]
async fn the_action_log_is_read_newest_first_down_to_the_instant() {
    let since: Timestamp = "2026-11-21T09:00:05.7Z".parse().unwrap();
    let cloud = Script::play([
        (
            "GET /v1/servers/42/actions?sort=started:desc&per_page=50&page=1",
            ok(page(
                "actions",
                vec![
                    action(9, "start_server", "running", "2026-11-21T09:01:00+00:00"),
                    action(8, "reset_server", "error", "2026-11-21T09:00:30+00:00"),
                ],
                Some(2),
            )),
        ),
        (
            "GET /v1/servers/42/actions?sort=started:desc&per_page=50&page=2",
            ok(page(
                "actions",
                vec![
                    action(7, "stop_server", "success", "2026-11-21T09:00:10+00:00"),
                    action(6, "shutdown_server", "paused", "2026-11-21T09:00:05+00:00"),
                    action(5, "create_image", "success", "2026-11-21T09:00:04+00:00"),
                ],
                Some(3),
            )),
        ),
    ])
    .await;
    let log = cloud.hetzner(&[]).actions(&id(42), since).await.unwrap();
    let log: Vec<_> = log.iter().map(|action| (action.id.0, action.effect, action.state)).collect();
    assert_eq!(
        log,
        [
            (9, ActionEffect::Start, ActionState::Running),
            (8, ActionEffect::Reboot, ActionState::Failed),
            (7, ActionEffect::PowerOff, ActionState::Done),
            (6, ActionEffect::Shutdown, ActionState::Running),
        ]
    );
    cloud.finish();
}

#[tokio::test]
async fn the_action_log_is_read_past_what_had_not_ended_by_the_instant() {
    let since: Timestamp = "2026-11-21T09:00:05Z".parse().unwrap();
    let mut slow = action(8, "rebuild_server", "success", "2026-11-21T08:59:00+00:00");
    slow["finished"] = json!("2026-11-21T09:00:05+00:00");
    let mut over = action(6, "start_server", "success", "2026-11-21T08:58:00+00:00");
    over["finished"] = json!("2026-11-21T09:00:04+00:00");
    let under_way = action(7, "reset_server", "running", "2026-11-21T08:58:30+00:00");
    let pages = [vec![slow], vec![under_way], vec![over]];
    let answers = (1..).zip(pages).map(|(number, actions)| {
        let request =
            format!("GET /v1/servers/42/actions?sort=started:desc&per_page=50&page={number}");
        (request, ok(page("actions", actions, Some(number + 1))))
    });
    let cloud = Script::play(answers).await;
    let log = cloud.hetzner(&[]).actions(&id(42), since).await.unwrap();
    let ids: Vec<_> = log.iter().map(|action| action.id.0).collect();
    assert_eq!(ids, [8, 7]);
    cloud.finish();
}

/// Pages shift while they are read, so that an address may be in none of them.
#[tokio::test]
async fn an_address_counts_as_kept_only_where_its_cloud_says_so() {
    let look = async |listed: Vec<Value>, number: Option<u64>| {
        let mut whole = server(42, "off");
        whole["public_net"] = json!({
            "ipv4": {"id": number, "ip": "203.0.113.7", "blocked": false},
            "ipv6": null,
        });
        let of = "label_selector=offhours-of%3D%3Dserver.42&per_page=50&page=1";
        let cloud = Script::play([
            (
                "GET /v1/primary_ips?per_page=50&page=1".to_owned(),
                ok(page("primary_ips", listed, None)),
            ),
            (
                "GET /v1/load_balancers?per_page=50&page=1".to_owned(),
                ok(page("load_balancers", vec![], None)),
            ),
            (format!("GET /v1/servers?{of}"), ok(page("servers", vec![], None))),
            ("GET /v1/servers/42".to_owned(), ok(json!({"server": whole}))),
        ])
        .await;
        let (client, of) = (cloud.hetzner(&[]), id(42));
        let snapshots = ListedSnapshots::default();
        let attachments = client.attachments().await.unwrap();
        let seen = client.inspect(HibernationLookup {
            of: &of,
            present: Some(&of),
            made: None,
            making: None,
            hibernation: None,
            snapshots: &snapshots,
            lists: Lists { attachments: Some(&attachments), preflight: None },
            name: "build-42",
        });
        let machine = seen.await.unwrap().machine.unwrap();
        cloud.finish();
        (machine.unkept, machine.manifest.is_some())
    };
    let stays = |stays: bool| json!({"id": 5, "auto_delete": !stays});
    let five = || vec!["5".to_owned()];
    assert_eq!(look(vec![stays(true)], Some(5)).await, (vec![], true));
    assert_eq!(look(vec![stays(false)], Some(5)).await, (five(), true));
    assert_eq!(look(vec![], Some(5)).await, (five(), true));
    // One without a number cannot be given back, so that the server may not be deleted.
    assert_eq!(look(vec![stays(true)], None).await, (vec![], false));
}

#[tokio::test]
async fn a_servers_type_changes_without_its_disk() {
    let request = r#"POST /v1/servers/42/actions/change_type application/json {"server_type":"cpx12","upgrade_disk":false}"#;
    let begun = action(13, "change_server_type", "running", "2016-01-30T23:50:00Z");
    let cloud = Script::play([(request, answer(201, json!({"action": begun})))]).await;
    let to = MachineSize { plan: "cpx12".to_owned(), ..MachineSize::default() };
    let (server, step) = (seen(id(42)), Step::Resize(SavedState::Machine(to)));
    let client = cloud.hetzner(&[]);
    let accepted = client.send(&server, &step).await;
    let shown = client.shown(&server, &step);
    let path = "POST /v1/servers/42/actions/change_type";
    assert_eq!(shown, format!("{path} server_type=cpx12 upgrade_disk=false"));
    assert_eq!(accepted.unwrap().action, Some(ActionId(13)));
    cloud.finish();
}

#[tokio::test]
async fn the_description_of_a_snapshot_says_what_its_server_is_like() {
    let said = "web fsn1 cpx22 tags offhours=office";
    let described = |text: &str| format!("offhours server.42 one{text}");
    let labels = json!({"offhours-mark": "one", "offhours-of": "server.42"});
    let body = json!({"description": described(&format!(" {said}")), "labels": labels, "type": "snapshot"});
    let image = |id: u64, description: String| {
        json!({
            "id": id, "status": "available", "image_size": 4.5, "disk_size": 80, "labels": labels,
            "created": "2026-11-23T19:05:00Z", "architecture": "x86",
            "protection": {"delete": true}, "description": description,
        })
    };
    let another = format!("offhours server.42 two {said}");
    let listed = [described(&format!(" {said}")), described(""), another, "mine".to_owned()];
    let listed = listed.into_iter().zip(7..).map(|(text, id)| image(id, text)).collect();
    let cloud = Script::play([
        (
            format!("POST /v1/servers/42/actions/create_image application/json {body}"),
            answer(201, json!({"action": {"id": 36}, "image": {"id": 7}})),
        ),
        (
            "GET /v1/images?type=snapshot&per_page=50&page=1".to_owned(),
            ok(page("images", listed, None)),
        ),
    ])
    .await;
    let client = cloud.hetzner(&[]);
    let size = MachineSize { plan: "cpx22".to_owned(), ..MachineSize::default() };
    let server = Resource {
        tags: ["offhours-mark=old".to_owned(), "offhours=office".to_owned()].into(),
        region: "fsn1".to_owned(),
        size: Size::Machine(size),
        ..seen(id(42))
    };
    let label = Label { of: id(42), mark: Mark("one".to_owned()) };
    client.send(&server, &Step::Snapshot(label)).await.unwrap();
    let ours = client.snapshots().await.unwrap();
    let origins: Vec<_> = ours.ours().map(|one| one.origin).collect();
    cloud.finish();
    assert_eq!(origins, [Origin::of(&server), None, None, None]);
}

/// A person replaced the labels of one snapshot, which is not listed yet, copied those of another, and
/// deleted a third.
#[tokio::test]
async fn a_known_snapshot_is_found_by_its_number_whatever_its_labels() {
    let image = |id: u64, labels: Value| {
        json!({
            "id": id, "status": "available", "image_size": 4.5, "disk_size": 80,
            "created": "2026-11-23T19:05:00Z", "created_from": {"id": 42}, "labels": labels,
            "architecture": "x86", "protection": {"delete": true},
        })
    };
    let marked = |mark: &str| json!({"offhours-of": "server.42", "offhours-mark": mark});
    let mut kept = Hibernation::of(id(42));
    kept.snapshots = [(7, "one"), (8, "two"), (9, "three")]
        .map(|(number, mark)| {
            let asked_at = "2026-11-23T19:00:00Z".parse().unwrap();
            KeptSnapshot {
                id: Some(number),
                ..KeptSnapshot::of(id(42), Mark(mark.to_owned()), asked_at)
            }
        })
        .into();
    let selector = "label_selector=offhours-of%3D%3Dserver.42&per_page=50&page=1";
    let listed = vec![image(8, marked("two")), image(10, marked("two"))];
    let gone = json!({"error": {"code": "not_found", "message": "image not found"}});
    let cloud = Script::play([
        (
            "GET /v1/images?type=snapshot&per_page=50&page=1".to_owned(),
            ok(page("images", listed, None)),
        ),
        ("GET /v1/images/7".to_owned(), ok(json!({"image": image(7, json!({}))}))),
        ("GET /v1/images/9".to_owned(), answer(404, gone.clone())),
        (format!("GET /v1/servers?{selector}"), ok(page("servers", vec![], None))),
        ("GET /v1/servers/42".to_owned(), answer(404, gone)),
    ])
    .await;
    let of = id(42);
    let client = cloud.hetzner(&[]);
    let snapshots = client.snapshots().await.unwrap();
    let seen = client.inspect(HibernationLookup {
        of: &of,
        present: kept.present.as_ref(),
        made: None,
        making: None,
        hibernation: Some(&kept),
        snapshots: &snapshots,
        lists: Lists::default(),
        name: "",
    });
    let snapshots = seen.await.unwrap().snapshots;
    cloud.finish();
    let mark = |text: &str| Some(Mark(text.to_owned()));
    let found: Vec<_> = snapshots.into_iter().map(|one| (one.id, one.mark)).collect();
    assert_eq!(found, [(8, mark("two")), (7, mark("one"))]);
}

#[tokio::test]
async fn a_server_is_to_be_made_without_what_its_project_no_longer_has() {
    let texts = |ids: &[&str]| ids.iter().map(|&id| id.to_owned()).collect();
    let had = Manifest {
        ssh_key: "team".to_owned(),
        volumes: texts(&["7", "8"]),
        firewalls: texts(&["9"]),
        placement_group: Some("10".to_owned()),
        ..Manifest::default()
    };
    let missing = || {
        let error = json!({"code": "not_found", "message": "not found", "details": null});
        answer(404, json!({"error": error}))
    };
    let cloud = Script::play(vec![
        (
            "GET /v1/ssh_keys?per_page=50&page=1".to_owned(),
            ok(page("ssh_keys", vec![json!({"id": 15, "name": "new"})], None)),
        ),
        ("GET /v1/volumes/7".to_owned(), ok(json!({"volume": {"id": 7}}))),
        ("GET /v1/volumes/8".to_owned(), missing()),
        ("GET /v1/firewalls/9".to_owned(), missing()),
        ("GET /v1/placement_groups/10".to_owned(), missing()),
    ])
    .await;
    let left = cloud.hetzner(&[]).still_there(&had, Some("new")).await;
    cloud.finish();
    let expected =
        Manifest { ssh_key: "new".to_owned(), volumes: texts(&["7"]), ..Manifest::default() };
    assert_eq!(left.unwrap(), expected);
}

#[tokio::test]
async fn a_floating_address_is_assigned_unless_another_server_has_it_by_now() {
    let step = Step::Attach(Attachment::FloatingIp("13".to_owned()));
    let shows = |server: Value| {
        let found = json!({"floating_ip": {"id": 13, "server": server}});
        ("GET /v1/floating_ips/13".to_owned(), ok(found))
    };
    for free in [json!(null), json!(42)] {
        let assign = "POST /v1/floating_ips/13/actions/assign application/json {\"server\":42}";
        let begun = answer(201, json!({"action": {"id": 5}}));
        let cloud = Script::play([shows(free), (assign.to_owned(), begun)]).await;
        cloud.hetzner(&[]).send(&seen(id(42)), &step).await.unwrap();
        cloud.finish();
    }
    let cloud = Script::play([shows(json!(7))]).await;
    let sent = cloud.hetzner(&[]).send(&seen(id(42)), &step).await;
    let Err(ChangeError::Refused(refusal)) = sent else { panic!("{sent:?}") };
    assert_eq!(refusal.message, "server/7 has the address 13 by now");
    cloud.finish();
}

#[tokio::test]
async fn what_a_server_cannot_have_is_never_sent() {
    let cloud = Script::play(Vec::<(String, _)>::new()).await;
    let network =
        NetworkAddress { network: "own".to_owned(), ip: "10.0.0.9".to_owned(), alias_ips: vec![] };
    for what in [Attachment::Project("p".to_owned()), Attachment::Network(network)] {
        let error = cloud.hetzner(&[]).send(&seen(id(42)), &Step::Attach(what)).await.unwrap_err();
        assert_eq!(change_kind(&error), "not accepted");
    }
    cloud.finish();
}
