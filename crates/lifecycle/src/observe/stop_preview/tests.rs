//! What is reported about one resource, from what its provider lists. Nothing here reaches a store
//! or a provider.

use std::collections::BTreeMap;

use domain::{
    configuration::{DatabaseMethod, DropletMethod, Otherwise, Pattern, ServerMethod},
    hibernation::{KeptSnapshot, Mark, SshKey},
    money::{Currency, Money},
    plan::{MachinePlan, Offer},
    resource::MachineSize,
};

use super::*;
use crate::observe::stop_target::StopTarget;
use transition::tests::{Case, database as a_database, droplet, office, open, server};

fn offer(hourly: &str) -> Offer {
    let money = |text| Money::parse(text, Currency::Usd).unwrap();
    Offer {
        orderable: true,
        deprecated: false,
        monthly: money(hourly).times(672),
        hourly: money(hourly),
    }
}

/// A plan that is sold in `fra1` at an hourly price.
fn sold(slug: &str, disk_gib: u64, hourly: &str) -> MachinePlan {
    MachinePlan {
        slug: slug.to_owned(),
        vcpus: 1,
        memory_mib: 1024,
        disk_gib,
        architecture: None,
        network_storage: false,
        gpu: false,
        offers: BTreeMap::from([("fra1".to_owned(), offer(hourly))]),
    }
}

/// The plan of these tests' machines, a cheaper one that fits, and one whose disk is too small.
fn plans() -> Catalog {
    [sold("large", 25, "0.1"), sold("small", 25, "0.02"), sold("tiny", 5, "0.01")]
        .into_iter()
        .collect()
}

/// A machine on the large plan, which its schedule moves.
fn on_large(mut case: Case) -> Case {
    case.resource.size = Size::Machine(size("large", 4096));
    case.following(|policy| {
        policy.methods.droplet = DropletMethod::Resize;
        policy.methods.server = ServerMethod::Rescale;
        policy.methods.database = DatabaseMethod::Standbys;
    })
}

fn size(plan: &str, memory_mib: u64) -> MachineSize {
    MachineSize {
        plan: plan.to_owned(),
        vcpus: 1,
        memory_mib,
        disk_gib: 25,
        architecture: None,
        network_storage: false,
    }
}

/// Returns what is reported about the case's resource where these plans are sold.
fn said(case: &Case, catalog: Catalog) -> Option<StopPreview> {
    let account = &case.record.reference.account;
    let follower = follower(account, look(case), None, &case.configuration)?;
    let offered = Offered { catalog, ..Offered::default() };
    case.with(|_, context| offered.judge(&follower, None, context))
}

fn look(case: &Case) -> Look {
    Look { requested_at: case.now, resource: case.resource.clone(), sight: None }
}

/// Returns where a claim of the case's stop leads, where these plans are for sale.
fn claimed(case: &Case, catalog: &Catalog, around: Option<&Surroundings>) -> StopTarget {
    let by = Grounds { catalog, around, ..Grounds::default() };
    let look = look(case);
    case.with(|_, context| {
        let view = View::new(&case.record, Observation::of(&look), case.policy(), context);
        judge(view, &by).into()
    })
}

#[track_caller]
fn refused(case: &Case, catalog: Catalog, reason: &str, remedy: &str) {
    let target = said(case, catalog).unwrap().to;
    let MoveTarget::Refused(refusal) = &target else {
        panic!("{target:?}");
    };
    assert!(refusal.reason.contains(reason), "{refusal}");
    assert!(refusal.remedy.contains(remedy), "{refusal}");
}

#[test]
fn a_machine_moves_to_the_cheapest_plan_that_holds_it() {
    let said = said(&on_large(droplet()), plans()).unwrap();
    let of = (said.schedule, said.method, said.from.as_str());
    assert_eq!(of, (office(), StopMethod::Resize, "large"));
    let expected = MoveTarget::Smaller {
        plan: "small".to_owned(),
        offer: offer("0.02"),
        present: offer("0.1"),
        has_kept_price: false,
    };
    assert_eq!(said.to, expected);
}

#[test]
fn what_follows_no_such_schedule_is_left_out() {
    let case = on_large(droplet());
    let protecting = {
        let mut case = case.clone();
        let pattern: Pattern = "name:web".parse().unwrap();
        case.configuration.settings.protect.push(pattern);
        case
    };
    let tagged = |tag: &str| {
        let mut case = case.clone();
        case.resource.tags = [tag.to_owned()].into();
        case
    };
    let unsupported = {
        let mut case = case.clone();
        case.resource.unsupported = Some("no method fits it".to_owned());
        case
    };
    let powered_off = case.clone().following(|policy| {
        policy.methods.droplet = DropletMethod::PowerOff;
    });
    let tagged = ["offhours:off", "web"].map(tagged).into_iter();
    for case in tagged.chain([protecting, unsupported, powered_off]) {
        assert_eq!(said(&case, plans()), None, "{:?}", case.resource);
    }
}

#[test]
fn where_there_is_nothing_to_save_a_machine_is_only_switched_off() {
    let case = on_large(droplet());
    for (others, words) in
        [(Vec::new(), "already the cheapest"), (vec![sold("tiny", 5, "0.01")], "disk of 25 GB")]
    {
        let catalog = others.into_iter().chain([sold("large", 25, "0.1")]);
        let catalog = catalog.collect();
        let target = said(&case, catalog).unwrap().to;
        let MoveTarget::Same { reason } = &target else {
            panic!("{target:?}");
        };
        assert!(reason.contains(words), "{reason}");
    }
    let named = case.following(|policy| policy.resize_to = Some("large".to_owned()));
    let target = said(&named, plans()).unwrap().to;
    assert!(matches!(target, MoveTarget::Same { .. }), "{target:?}");
}

#[test]
fn what_could_not_come_back_is_refused_with_its_remedy() {
    let case = on_large(droplet());
    let withdrawn = [sold("small", 25, "0.02")].into_iter().collect();
    refused(&case, withdrawn, "no longer listed", "move it to a plan");
    refused(&case, Catalog::default(), "no plans are known", "check that the token");
    let named = case.following(|policy| policy.resize_to = Some("tiny".to_owned()));
    refused(&named, plans(), "has 5 GB of disk", "name another plan");
    let mut torn = on_large(droplet());
    let tags = ["offhours-to:small", "offhours-to:tiny"].map(str::to_owned);
    torn.resource.tags.extend(tags);
    refused(&torn, plans(), "name both", "remove one");
}

#[test]
fn an_old_price_refuses_a_move_unless_its_account_gives_it_up() {
    let mut case = on_large(server());
    refused(&case, plans(), "old price", "accept the new prices");
    let accounts = &mut case.configuration.accounts;
    let Some(Account::Cloud(account)) = accounts.get_mut(&case.record.reference.account) else {
        panic!("an account at a cloud");
    };
    account.accept_new_prices = true;
    let target = said(&case, plans()).unwrap().to;
    assert!(matches!(target, MoveTarget::Smaller { has_kept_price: true, .. }), "{target:?}");
}

#[test]
fn a_database_is_mentioned_only_where_its_engine_keeps_its_nodes() {
    let mut case = a_database().following(|policy| {
        policy.methods.database = DatabaseMethod::Standbys;
    });
    assert_eq!(said(&case, Catalog::default()), None);
    if let Size::Database(size) = &mut case.resource.size {
        size.engine = "mongodb".to_owned();
    }
    refused(&case, Catalog::default(), "mongodb", "smallest-plan");
    assert_eq!(said(&case.sized("db-s-2vcpu-4gb", 1), Catalog::default()), None);
}

#[test]
fn a_machine_on_its_small_plan_is_judged_by_the_one_that_it_is_owed() {
    let mut case = on_large(droplet());
    let owed = |size| Record { saved: Some(SavedState::Machine(size)), ..case.record.clone() };
    let (large, larger) = (owed(size("large", 4096)), owed(size("larger", 8192)));
    let is_on =
        |case: &Case, record: &Record| match as_it_runs(look(case), Some(record)).resource.size {
            Size::Machine(size) => size.plan,
            other @ (Size::Database(_) | Size::NodePool(_)) => panic!("{other:?}"),
        };
    assert_eq!(is_on(&case, &case.record), "large");
    assert_eq!(is_on(&case, &larger), "larger");
    // It is as large again: nothing is owed to it any more.
    case.resource.size = Size::Machine(size("moved", 8192));
    assert_eq!(is_on(&case, &large), "moved");
}

#[test]
fn only_kinds_that_some_schedule_moves_are_asked_about() {
    let case = droplet();
    let kinds = |case: &Case, account: &str| {
        let account = &case.configuration.accounts[&account.parse::<AccountName>().unwrap()];
        moved_kinds(account, &case.configuration)
    };
    assert!(kinds(&case, "do-main").is_empty());
    let case = case.following(|policy| policy.methods.droplet = DropletMethod::Resize);
    assert_eq!(kinds(&case, "do-main"), [ResourceKind::Droplet]);
    assert!(kinds(&case, "hz-eu").is_empty());
}

fn key() -> SshKey {
    SshKey { name: "team".to_owned(), sent_as: "team".to_owned() }
}

/// A server on the large plan, which its schedule hibernates.
fn hibernating(otherwise: Otherwise) -> Case {
    let mut case = server();
    case.resource.size = Size::Machine(size("large", 4096));
    case.resource.region = "fra1".to_owned();
    let mut case = case.following(|policy| {
        policy.methods.server = ServerMethod::Hibernate;
        policy.otherwise = otherwise;
    });
    let accounts = &mut case.configuration.accounts;
    let account = accounts.get_mut(&case.record.reference.account);
    if let Some(Account::Cloud(account)) = account {
        account.ssh_key = Some("team".to_owned());
        account.accept_new_prices = true;
    }
    case
}

fn led_to(case: &Case, record: Option<&Record>, around: &Surroundings) -> StopPreview {
    let account = &case.record.reference.account;
    let follower = follower(account, look(case), record, &case.configuration).unwrap();
    let per_gb_month = Money::parse("0.0143", Currency::Usd).ok();
    let offered = Offered { catalog: plans(), per_gb_month, ..Offered::default() };
    let found = case.with(|_, context| offered.judge(&follower, Some(around), context));
    found.unwrap()
}

#[test]
fn a_claim_leads_where_its_preview_does() {
    let named = [None, Some("small"), Some("tiny"), Some("large")].map(|plan| {
        let case = on_large(droplet());
        Box::new(case.following(|policy| policy.resize_to = plan.map(str::to_owned)))
    });
    let cases = named.into_iter().chain([Box::new(on_large(server()))]);
    let none = Catalog::default();
    let previews = cases.flat_map(|case| {
        [plans(), none.clone()].map(|catalog| {
            let claimed = claimed(&case, &catalog, None);
            (said(&case, catalog).unwrap().to, claimed)
        })
    });
    let around = Surroundings { ssh_keys: vec![key()], ..Surroundings::default() };
    let backups = Surroundings { backups: true, ..around.clone() };
    let hibernated = [Otherwise::Refuse, Otherwise::PowerOff].into_iter().flat_map(|otherwise| {
        let case = hibernating(otherwise);
        [&around, &backups]
            .map(|around| (led_to(&case, None, around).to, claimed(&case, &plans(), Some(around))))
    });
    for (previewed, claimed) in previews.chain(hibernated) {
        match &previewed {
            MoveTarget::Smaller { plan, .. } => {
                let size = claimed.size.as_ref();
                assert!(
                    matches!(size, Some(SavedState::Machine(size)) if size.plan == *plan),
                    "{claimed:?}"
                );
            }
            MoveTarget::Snapshot { .. } => assert_eq!(claimed.ssh_key.as_deref(), Some("team")),
            MoveTarget::Same { .. } => assert_eq!(claimed, StopTarget::default()),
            MoveTarget::Refused(why) => assert_eq!(claimed.refusal, Some(why.to_string())),
        }
    }
}

#[test]
fn what_is_hibernated_leads_to_a_snapshot_or_says_what_stands_in_the_way() {
    let around = Surroundings { ssh_keys: vec![key()], ..Surroundings::default() };
    let case = hibernating(Otherwise::Refuse);
    let MoveTarget::Snapshot { rehearsed, address_costs, offer, .. } =
        led_to(&case, None, &around).to
    else {
        panic!("it fits");
    };
    assert!(!rehearsed && !address_costs);
    // It was created before the list that is in force, so its own price is unknown.
    assert_eq!(offer, None);

    let without = Surroundings { backups: true, ..Surroundings::default() };
    let MoveTarget::Refused(refusal) = led_to(&case, None, &without).to else {
        panic!("it is refused");
    };
    assert!(refusal.reason.contains("its backups"), "{refusal}");
    assert!(refusal.reason.contains("no SSH key `team`"), "{refusal}");
    let powered_off = led_to(&hibernating(Otherwise::PowerOff), None, &without).to;
    assert!(matches!(powered_off, MoveTarget::Same { .. }), "{powered_off:?}");
}

#[test]
fn a_snapshot_that_is_too_slow_for_the_longest_stop_is_refused() {
    let mut case = hibernating(Otherwise::Refuse);
    let mut droplet = droplet();
    droplet.resource.size = case.resource.size.clone();
    case.resource = droplet.resource;
    case.record = droplet.record;
    let case = case.following(|policy| policy.methods.droplet = DropletMethod::Hibernate);
    let mut kept = Hibernation::of(case.resource.id.clone());
    let mut record = case.record.clone();
    let mut refused = |centi_gb| {
        kept.snapshots = vec![KeptSnapshot {
            centi_gb: Some(centi_gb),
            ..KeptSnapshot::of(case.resource.id.clone(), Mark::default(), case.now)
        }];
        record.hibernation = Some(Box::new(kept.clone()));
        let to = led_to(&case, Some(&record), &Surroundings::default()).to;
        let MoveTarget::Refused(refusal) = to else {
            panic!("{to:?}");
        };
        refusal.reason.contains("more than a third")
    };
    // From 19:00 to 08:00 is 780 min, and each GB takes two.
    assert!(!refused(13_000));
    assert!(refused(13_100));
}

#[test]
fn a_schedule_that_runs_a_machine_too_shortly_to_see_it_boot_is_refused() {
    let running = |until: &str| {
        let mut case = hibernating(Otherwise::Refuse);
        let rule = case.configuration.schedules.get_mut(&office()).unwrap();
        rule.schedule = open(&[("08:00", until)]);
        let around = Surroundings { ssh_keys: vec![key()], ..Surroundings::default() };
        led_to(&case, None, &around).to
    };
    let MoveTarget::Refused(refusal) = running("08:14") else {
        panic!("it is refused");
    };
    assert!(refusal.remedy.contains("a quarter of an hour"), "{refusal}");
    assert!(matches!(running("08:15"), MoveTarget::Snapshot { .. }));
}

#[test]
fn a_machine_that_was_made_again_is_judged_under_its_reference() {
    let case = hibernating(Otherwise::Refuse);
    let mut record = case.record.clone();
    record.reference.id = "server/7".parse().unwrap();
    record.hibernation = Some(Box::new(Hibernation::of(case.resource.id.clone())));
    let around = Surroundings { ssh_keys: vec![key()], ..Surroundings::default() };
    let found = led_to(&case, Some(&record), &around);
    assert_eq!(found.resource, record.reference);
}
