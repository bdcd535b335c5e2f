use serde_json::{Value, json};

use super::*;
use crate::{
    resource::Power,
    tests::fixtures::{World, at, daily, droplet, office_droplet, reference, world},
};

/// The configuration with these groups.
fn grouped(groups: Value) -> World {
    let mut world = world();
    world.configuration.settings.groups = serde_json::from_value(groups).unwrap();
    world
}

/// A shop, its cache and its data: each after the one before it.
fn shop() -> World {
    grouped(json!({
        "data": {"resources": ["name:db*"]},
        "cache": {"resources": ["name:cache"], "after": ["data"], "wait": "20m"},
        "shop": {"resources": ["name:web"], "after": ["cache"], "wait": "10m"},
    }))
}

/// A Droplet of the schedule `office`, stopped on Monday evening like each of them.
fn stopped(id: u64, name: &str) -> Record {
    let mut record = office_droplet().settled(Power::Stopped);
    record.reference = reference(&format!("do-main/droplet/{id}"));
    name.clone_into(&mut record.name);
    record.having_handled("mon 19:00", Desired::Stopped)
}

fn running(id: u64, name: &str) -> Record {
    stopped(id, name).settled(Power::Running).having_handled("tue 08:00", Desired::Running)
}

fn starting(id: u64, name: &str) -> Record {
    running(id, name).in_flight_towards(Direction::Start, "tue 08:00")
}

/// Returns what the first record waits for, and until when.
fn wait(world: &World, records: &[Record], now: &str) -> Option<(String, Timestamp)> {
    let Decision::Act(due) = world.judge(&records[0], now).decision else {
        panic!("nothing is due");
    };
    let order = Order::of(records, world.rules());
    let wait = order.wait(&records[0], &due, at(now))?;
    Some((wait.in_words(at(now)), wait.until))
}

#[track_caller]
fn waits(world: &World, records: &[Record], now: &str, expected: &str, until: &str) {
    assert_eq!(wait(world, records, now), Some((expected.to_owned(), at(until))));
}

#[test]
fn a_member_waits_until_everything_that_it_follows_runs() {
    let shop = shop();
    let [web, cache, db] = [stopped(1, "web"), stopped(2, "cache"), stopped(3, "db")];
    let all = [web.clone(), cache.clone(), db.clone()];
    let both = "cache (not started yet), db (not started yet)";
    waits(&shop, &all, "tue 08:00", both, "tue 08:30");
    waits(&shop, &all[1..], "tue 08:00", "db (not started yet)", "tue 08:20");
    assert_eq!(wait(&shop, &all[2..], "tue 08:00"), None);
    let second = [web.clone(), cache.clone(), starting(3, "db")];
    let both = "cache (not started yet), db (starting, 2m)";
    waits(&shop, &second, "tue 08:02", both, "tue 08:30");
    let third = [web.clone(), starting(2, "cache"), running(3, "db")];
    waits(&shop, &third, "tue 08:02", "cache (starting, 2m)", "tue 08:30");
    assert_eq!(wait(&shop, &[web, running(2, "cache"), running(3, "db")], "tue 08:02"), None);
}

#[test]
fn what_others_follow_stops_last() {
    let shop = shop();
    let [web, cache, db] = [running(1, "web"), running(2, "cache"), running(3, "db")];
    let all = [db.clone(), cache.clone(), web.clone()];
    waits(&shop, &all, "tue 19:00", "cache (not stopped yet), web (not stopped yet)", "tue 19:30");
    waits(&shop, &all[1..], "tue 19:00", "web (not stopped yet)", "tue 19:10");
    assert_eq!(wait(&shop, &all[2..], "tue 19:00"), None);
    let done = |id, name| stopped(id, name).having_handled("tue 19:00", Desired::Stopped);
    let stopping = done(1, "web").in_flight_towards(Direction::Stop, "tue 19:01");
    waits(&shop, &[cache, stopping], "tue 19:04", "web (stopping, 3m)", "tue 19:10");
    assert_eq!(wait(&shop, &[db, done(2, "cache"), done(1, "web")], "tue 19:05"), None);
}

#[test]
fn what_is_not_on_its_way_to_the_same_state_is_not_waited_for() {
    let shop = shop();
    let web = stopped(1, "web");
    let unscheduled = droplet().settled(Power::Stopped);
    let unscheduled = Record { reference: reference("do-main/droplet/3"), ..unscheduled };
    let held = Record { held: true, handled: None, ..stopped(3, "db") };
    let gone = Record { phase: Phase::Gone { since: at("mon 20:00") }, ..stopped(3, "db") };
    let opted_out = stopped(3, "db").tagged(&["offhours:off", "offhours:office"]);
    let left = stopped(3, "db").having_handled("tue 08:00", Desired::Running);
    for other in [unscheduled, held, gone, opted_out, left] {
        let other = Record { name: "db".to_owned(), ..other };
        assert_eq!(wait(&shop, &[web.clone(), other.clone()], "tue 08:00"), None, "{other:?}");
    }
    let db = [web, stopped(3, "db")];
    let kept = shop.overriding("do-main/droplet/3", Desired::Stopped, "tue 07:00", "tue 12:00");
    assert_eq!(wait(&kept, &db, "tue 08:00"), None);
    // By the other schedule, it starts an hour later.
    let later = self::shop().with_schedule("later", daily("09:00", "18:00"));
    let own = stopped(3, "db").tagged(&["offhours:later"]);
    assert_eq!(wait(&later, &[db[0].clone(), own], "tue 08:00"), None);
}

#[test]
fn observe_mode_neither_waits_nor_is_waited_for() {
    let observing = |schedule: &str| {
        let world = shop().with_schedule("other", daily("08:00", "19:00"));
        world.following(schedule, |policy| policy.mode = Mode::Observe)
    };
    let [web, db] = [stopped(1, "web"), stopped(3, "db").tagged(&["offhours:other"])];
    let both = [web, db];
    assert_eq!(wait(&observing("other"), &both, "tue 08:00"), None);
    assert_eq!(wait(&observing("office"), &both, "tue 08:00"), None);
    assert!(
        wait(&shop().with_schedule("other", daily("08:00", "19:00")), &both, "tue 08:00").is_some()
    );
}

#[test]
fn neither_a_command_nor_what_was_begun_before_waits() {
    let shop = shop();
    let db = stopped(3, "db");
    let commanded = |at| stopped(1, "web").commanded(at, Desired::Running);
    waits(
        &shop,
        &[stopped(1, "web"), db.clone()],
        "tue 08:01",
        "db (not started yet)",
        "tue 08:30",
    );
    assert_eq!(wait(&shop, &[commanded("tue 08:01"), db.clone()], "tue 08:01"), None);
    let records = [commanded("tue 07:00"), db.clone()];
    let Decision::Act(due) = shop.judge(&records[0], "tue 07:00").decision else {
        panic!("a command is due");
    };
    let order = Order::of(&records, shop.rules());
    let overtaken = order.overtaken(&records[0], &due, at("tue 07:00")).unwrap();
    assert_eq!(overtaken.in_words(at("tue 07:00")), "db (stopped)");
    let failing = Record {
        failing: Some(crate::record::EdgeKey { instant: at("tue 08:00"), rank: Rank::Schedule }),
        ..stopped(1, "web")
    };
    assert_eq!(wait(&shop, &[failing.clone(), db], "tue 08:00"), None);
    let other =
        Record { name: "db".to_owned(), reference: reference("do-main/droplet/3"), ..failing };
    waits(&shop, &[stopped(1, "web"), other], "tue 08:00", "db (failing)", "tue 08:30");
}

#[test]
fn a_wait_counts_from_the_instant_at_which_its_resource_became_due() {
    let web = Record { due_at: Some(at("tue 10:00")), ..stopped(1, "web") };
    let db = Record { due_at: Some(at("tue 10:00")), ..stopped(3, "db") };
    // Another schedule makes both due in the middle of the day.
    waits(&shop(), &[web, db], "tue 10:01", "db (not started yet)", "tue 10:30");
}

#[test]
fn a_machine_that_begins_early_waits_for_what_is_to_run_by_its_time() {
    let mut web = stopped(1, "web");
    let lead = SignedDuration::from_mins(15);
    let mut kept: crate::hibernation::Hibernation = serde_json::from_value(json!({})).unwrap();
    kept.lead = Some(lead);
    web.hibernation = Some(Box::new(kept));
    waits(&shop(), &[web, stopped(3, "db")], "tue 07:45", "db (not started yet)", "tue 08:30");
}

#[test]
fn a_resource_can_be_followed_by_its_reference() {
    let world = grouped(json!({
        "shop": {"resources": ["tag:offhours:office"], "after": ["do-main/droplet/3"]},
    }));
    let [web, db] = [stopped(1, "web"), stopped(3, "db")];
    waits(&world, &[web.clone(), db.clone()], "tue 08:00", "db (not started yet)", "tue 08:30");
    // It is a member itself, and waits for no other.
    assert_eq!(wait(&world, &[db, web], "tue 08:00"), None);
    let [web, db] = [running(1, "web"), running(3, "db")];
    waits(&world, &[db, web.clone()], "tue 19:00", "web (not stopped yet)", "tue 19:30");
    let graph = Graph::of(&world.configuration.settings.groups);
    assert!(graph.concerns(&[web]) && graph.concerns(&[stopped(3, "db").tagged(&[])]));
    assert!(!graph.concerns(&[stopped(4, "web").tagged(&[])]));
}

#[test]
fn members_of_the_same_groups_do_not_wait_for_each_other() {
    let world = grouped(json!({
        "a": {"resources": ["name:*"]},
        "b": {"resources": ["name:*"], "after": ["a"]},
    }));
    assert_eq!(wait(&world, &[stopped(1, "web"), stopped(3, "db")], "tue 08:00"), None);
}

#[test]
fn a_cycle_is_found_with_its_path() {
    #[track_caller]
    fn check(groups: Value, expected: Option<&str>) {
        let groups: Groups = serde_json::from_value(groups).unwrap();
        let graph = Graph::of(&groups);
        let path = graph.cycle().map(|path| {
            path.into_iter().map(Followed::to_string).collect::<Vec<_>>().join(" after ")
        });
        assert_eq!(path.as_deref(), expected);
    }
    let group = |after: &[&str]| json!({"resources": ["name:x"], "after": after});
    check(json!({"a": group(&["a"])}), Some("a after a"));
    check(json!({"a": group(&["b"]), "b": group(&["c"]), "c": group(&[])}), None);
    // From b, only the way that a took first leads back.
    check(
        json!({"a": group(&["b"]), "b": group(&["c", "d"]), "c": group(&["b"]), "d": group(&["a"])}),
        Some("a after b after d after a"),
    );
    let all = |account: &str, after: &[&str]| json!({"resources": [format!("{account}/*")], "after": after});
    check(
        json!({"a": all("do-main", &["hz-eu/server/1"]), "b": all("hz-eu", &["do-main/droplet/1"])}),
        Some("do-main/droplet/1 after hz-eu/server/1 after do-main/droplet/1"),
    );
    check(json!({"a": all("do-main", &["do-main/droplet/1"])}), None);
}

#[test]
fn a_stored_cycle_ends_at_its_deadline() {
    let world = grouped(json!({
        "a": {"resources": ["name:web"], "after": ["b"]},
        "b": {"resources": ["name:db"], "after": ["c"]},
        "c": {"resources": ["name:cache"], "after": ["a"]},
    }));
    let records = [stopped(1, "web"), stopped(2, "cache"), stopped(3, "db")];
    // Each follows each other one, so none waits.
    assert_eq!(wait(&world, &records, "tue 08:00"), None);
}

/// The shop, whose data has a check.
fn checked() -> World {
    let mut shop = shop();
    let data = shop.configuration.settings.groups.get_mut(&"data".parse().unwrap()).unwrap();
    data.check = Some("tcp://db.internal:5432".parse().unwrap());
    shop
}

const CHECK: &str = "the check of data (tcp://db.internal:5432)";

#[test]
fn a_check_is_tried_once_everything_else_is_there() {
    let shop = checked();
    let needed = |records: &[Record], now| {
        let order = Order::of(records, shop.rules());
        order.checks(records, at(now)).into_iter().map(Check::to_string).collect::<Vec<_>>()
    };
    let [cache, db] = [stopped(2, "cache"), starting(3, "db")];
    waits(&shop, &[cache.clone(), db.clone()], "tue 08:02", "db (starting, 2m)", "tue 08:20");
    assert!(needed(&[cache.clone(), db], "tue 08:02").is_empty());
    let records = [cache.clone(), running(3, "db"), stopped(1, "web")];
    waits(&shop, &records, "tue 08:06", CHECK, "tue 08:20");
    assert_eq!(needed(&records, "tue 08:06"), ["tcp://db.internal:5432"]);
    // What follows the cache follows its data as well.
    waits(&shop, &[stopped(1, "web"), running(3, "db")], "tue 08:06", CHECK, "tue 08:30");
    // After its wait, and without a member that runs, nothing depends on it.
    assert!(needed(&records, "tue 08:30").is_empty());
    assert!(needed(std::slice::from_ref(&cache), "tue 08:06").is_empty());
    let off = stopped(3, "db").having_handled("tue 08:00", Desired::Running);
    assert!(needed(&[cache.clone(), off], "tue 08:06").is_empty());
    let passed = BTreeSet::from(["tcp://db.internal:5432".parse().unwrap()]);
    let order = Order::of(&records, shop.rules()).with_passed(passed);
    assert!(order.wait_now(&records[0], at("tue 08:06")).is_none());
}

#[test]
fn a_check_holds_up_only_starts_of_what_follows_its_group() {
    let shop = checked();
    let db = running(3, "db");
    assert_eq!(wait(&shop, &[stopped(4, "db-2"), db.clone()], "tue 08:06"), None);
    assert_eq!(wait(&shop, &[stopped(5, "alone"), db.clone()], "tue 08:06"), None);
    let commanded = stopped(2, "cache").commanded("tue 07:00", Desired::Running);
    assert_eq!(wait(&shop, &[commanded, db.clone()], "tue 07:00"), None);
    // Nor is one tried for a stop, here of what a group with a check follows.
    let mut checking = checked();
    let groups = &mut checking.configuration.settings.groups;
    groups.get_mut(&"shop".parse().unwrap()).unwrap().check = "tcp://web.internal:80".parse().ok();
    assert_eq!(wait(&checking, &[db.clone(), stopped(1, "web")], "tue 19:00"), None);
    // A member of both groups does not wait for the check of its own.
    let both = grouped(json!({
        "data": {"resources": ["name:*"], "check": "tcp://db.internal:5432"},
        "shop": {"resources": ["name:web"], "after": ["data"]},
    }));
    assert_eq!(wait(&both, &[stopped(1, "web"), db], "tue 08:06"), None);
}

#[test]
fn what_goes_on_without_a_check_says_so_at_its_deadline_alone() {
    let shop = checked();
    let key = crate::record::EdgeKey { instant: at("tue 08:00"), rank: Rank::Schedule };
    let overtaken = |cache: Record, now| {
        let records = [cache, running(3, "db")];
        let Decision::Act(due) = shop.judge(&records[0], now).decision else {
            panic!("nothing is due");
        };
        let order = Order::of(&records, shop.rules());
        order.overtaken(&records[0], &due, at(now)).map(|wait| wait.in_words(at(now)))
    };
    assert_eq!(overtaken(stopped(2, "cache"), "tue 08:19"), None);
    assert_eq!(overtaken(stopped(2, "cache"), "tue 08:20").as_deref(), Some(CHECK));
    let failing = Record { failing: Some(key), ..stopped(2, "cache") };
    assert_eq!(overtaken(failing, "tue 08:20"), None);
    let commanded = stopped(2, "cache").commanded("tue 08:21", Desired::Running);
    assert_eq!(overtaken(commanded, "tue 08:21"), None);
}

#[test]
fn an_edge_has_waves() {
    let shop = shop();
    let all = [stopped(1, "web"), stopped(2, "cache"), stopped(3, "db"), stopped(4, "alone")];
    let order = Order::of(&all, shop.rules());
    let waves = |direction| {
        let waves = order.waves(direction);
        all.each_ref().map(|record| waves[&record.reference])
    };
    assert_eq!(waves(Direction::Start), [3, 2, 1, 1]);
    assert_eq!(waves(Direction::Stop), [1, 2, 3, 1]);
}

#[test]
fn a_long_list_is_cut() {
    let shop = shop();
    let mut records = vec![stopped(1, "web")];
    records.extend((10..17).map(|id| stopped(id, &format!("db-{id}"))));
    let (words, _) = wait(&shop, &records, "tue 08:00").unwrap();
    assert!(words.starts_with("db-10 (not started yet), ") && words.ends_with(" and 2 more"));
}

#[test]
fn what_waits_is_overdue_only_after_its_wait() {
    let (shop, web) = (shop(), stopped(1, "web"));
    let overdue = |now| crate::overdue::overdue(&web, shop.rules(), None, at(now)).is_some();
    // Of a chain of 20 and 10 minutes, and the time of a Droplet.
    assert!(!overdue("tue 08:45") && overdue("tue 08:46"));
}
