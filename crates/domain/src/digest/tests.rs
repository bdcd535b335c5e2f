//! How each record is counted.

use proptest::prelude::*;

use super::*;
use crate::{
    configuration::{Mode, PauseScope},
    hibernation::Hibernation,
    prices::Rate,
    record::{Ask, EdgeKey, Forced, Request},
    resource::{MachineSize, Power, SavedState},
    step::Step,
    tests::fixtures::{World, at, daily, droplet, office_droplet, reference, schedule_name, world},
};

const STOPPED: Desired = Desired::Stopped;

/// Monday evening's edge.
fn evening() -> Edge {
    Edge { at: at("mon 19:00"), desired: Some(STOPPED) }
}

fn key(instant: &str) -> EdgeKey {
    EdgeKey { instant: at(instant), rank: Rank::Schedule }
}

fn numbered(number: usize) -> Record {
    Record {
        reference: reference(&format!("do-main/droplet/{number}")),
        name: format!("web-{number}"),
        ..office_droplet()
    }
}

/// Returns a record for which the evening's edge ended in this way, so many seconds after its
/// claim.
fn ended(record: Record, ending: Ending, seconds: i64) -> Record {
    let sent = !matches!(
        ending,
        Ending::AlreadyThere | Ending::WouldHave | Ending::LeftRunning | Ending::TooLate
    );
    let claimed_at = at("mon 19:00:05");
    let asked_at = sent.then_some(claimed_at);
    Record {
        last: Some(Last {
            key: key("mon 19:00"),
            claimed_at,
            asked_at,
            finished_at: claimed_at + SignedDuration::from_secs(seconds),
            ending,
            method: sent.then_some(StopMethod::PowerOff),
        }),
        ..record.settled(Power::Stopped).having_handled("mon 19:00", STOPPED)
    }
}

fn by_resize(mut record: Record) -> Record {
    let last = record.last.as_mut().unwrap();
    last.method = Some(StopMethod::Resize);
    record
}

/// Returns a record in flight since the evening's edge.
fn under_way(record: Record) -> Record {
    let stop = crate::record::Direction::Stop;
    let record = record.having_handled("mon 19:00", STOPPED);
    Record {
        request: Some(Request {
            direction: stop,
            asked_at: at("mon 19:00:05"),
            looked_at: at("mon 19:00:04"),
            ask: Ask::Open,
            earlier_unanswered: false,
            forced: Forced::No,
            effect_timeout: None,
            first_accepted_at: None,
            step: Step::Off { gracefully: false },
            created_machine: None,
            problem: None,
        }),
        ..record.in_flight_towards(stop, "mon 19:00:05")
    }
}

/// Returns a record due since the evening's edge, with the morning's edge handled.
fn due(record: Record) -> Record {
    record.having_handled("mon 08:00", Desired::Running)
}

fn count(world: &World, records: &[Record], now: &str) -> Option<Digest> {
    let office = schedule_name("office");
    Digest::of(records, world.rules(), &BTreeMap::new(), &office, evening(), at(now))
}

/// Asserts that a record, on its own, is left out of the evening's digest.
#[track_caller]
fn is_left_out(world: &World, record: Record) {
    assert_eq!(count(world, &[record], "mon 19:10"), None);
}

#[test]
fn each_record_counts_as_what_became_of_it() {
    let records = vec![
        ended(numbered(1), Ending::Seen, 40),
        by_resize(ended(numbered(2), Ending::Seen, 480)),
        ended(numbered(3), Ending::AlreadyThere, 0),
        by_resize(ended(numbered(4), Ending::Refused, 2)),
        ended(numbered(5), Ending::Stuck, 900),
        ended(numbered(6), Ending::Superseded, 30),
        under_way(numbered(7)),
        due(numbered(8)),
        ended(numbered(9), Ending::LeftRunning, 0),
        ended(numbered(10), Ending::TooLate, 0),
    ];
    let digest = count(&world(), &records, "mon 19:30").unwrap();
    assert_eq!(digest.followed, 10);
    assert_eq!(digest.asked, 6);
    assert_eq!(digest.seen, 2);
    assert_eq!(digest.already, 1);
    assert_eq!(digest.left, 2);
    assert_eq!(digest.refused, 1);
    assert_eq!(digest.stuck, 1);
    assert_eq!(digest.overtaken, 1);
    assert_eq!(digest.unfinished, 2);
    assert!(!digest.is_complete());
    let methods = [(StopMethod::PowerOff, 1), (StopMethod::Resize, 1)];
    assert_eq!(digest.methods, methods.into());
    let slowest = digest.slowest.as_ref().unwrap();
    assert_eq!((&*slowest.name, slowest.seconds), ("web-2", 480));
    let not_seen: Vec<_> = digest.not_seen.iter().map(|one| &*one.name).collect();
    assert_eq!(not_seen, ["web-4", "web-5", "web-6", "web-7", "web-8"]);
    assert_eq!(digest.next_edge_at, Some(at("tue 08:00")));
    assert_eq!(
        digest.to_string(),
        "office: 3 of 10 stopped (1 already, 1 by resize), 2 left running, 1 refused, 1 stuck, 1 \
         overtaken by a person, 2 not finished; slowest web-2 480 s; opens Tue 08:00; `offhours \
         status --needs-person` says what to do"
    );
}

#[test]
fn the_next_edge_is_named_by_the_clock_of_the_schedule() {
    let records = [ended(numbered(1), Ending::Seen, 40)];
    let digest = count(&world(), &records, "mon 19:30").unwrap();
    let said = |change: fn(&mut Digest)| {
        let mut digest = digest.clone();
        change(&mut digest);
        digest.to_string().rsplit("; ").next().unwrap().to_owned()
    };
    assert_eq!(said(|digest| digest.timezone = "Europe/Berlin".to_owned()), "opens Tue 10:00");
    assert_eq!(said(|digest| digest.next_desired = Some(Desired::Stopped)), "closes Tue 08:00");
    let in_a_week =
        said(|digest| digest.next_edge_at = Some(digest.at + SignedDuration::from_hours(7 * 24)));
    assert_eq!(in_a_week, "opens Mon 2026-06-22 19:30");
}

#[test]
fn what_a_stop_saves_until_the_next_edge_is_said_and_how_many_are_left_out() {
    let size = |plan: &str| {
        SavedState::Machine(MachineSize { plan: plan.to_owned(), ..MachineSize::default() })
    };
    let moved = |number, ending| {
        let mut record = by_resize(ended(numbered(number), ending, 40));
        record.saved = Some(size("s-4vcpu-8gb"));
        record = record.observed(Power::Stopped, "mon 19:01");
        record.observed.as_mut().unwrap().size = Some(size("s-1vcpu-1gb"));
        record
    };
    let unlisted = Record { saved: Some(size("c-2")), ..moved(3, Ending::Seen) };
    let records = [
        moved(1, Ending::Seen),
        ended(numbered(2), Ending::AlreadyThere, 0),
        unlisted,
        moved(4, Ending::Refused),
    ];
    let usd = |text| Money::parse(text, Currency::Usd).unwrap();
    let mut list = PriceList::new(Currency::Usd, at("mon 07:00"), None);
    for (plan, hourly) in [("s-4vcpu-8gb", "0.07"), ("s-1vcpu-1gb", "0.01")] {
        list.add(plan, None, Rate { hourly: usd(hourly), monthly: usd("40") });
    }
    let prices = BTreeMap::from([("do-main".parse().unwrap(), list)]);
    let (world, office) = (world(), schedule_name("office"));
    let count = |records: &[Record]| {
        let now = at("mon 19:30");
        Digest::of(records, world.rules(), &prices, &office, evening(), now).unwrap()
    };
    let digest = count(&records);
    let saves = digest.saves.values().map(|&price| price.in_currency(Currency::Usd).exact());
    assert_eq!(saves.collect::<Vec<_>>(), ["0.75"]);
    assert_eq!(digest.unpriced, 1);
    let said = digest.to_string();
    assert!(said.contains("; opens Tue 08:00; saves 0.75 USD until then, 1 unknown;"), "{said}");
    let said = count(&records[1..2]).to_string();
    assert!(said.ends_with("; opens Tue 08:00"), "{said}");
}

/// A machine that was to be hibernated but was only powered off was not deleted.
#[test]
fn what_was_deleted_is_counted_apart_from_what_was_only_powered_off() {
    let by = |number, method| {
        let mut record = ended(numbered(number), Ending::Seen, 40);
        record.last.as_mut().unwrap().method = Some(method);
        record
    };
    let records =
        [by(1, StopMethod::Hibernate), by(2, StopMethod::Hibernate), by(3, StopMethod::Graceful)];
    let digest = count(&world(), &records, "mon 19:30").unwrap();
    let said = digest.to_string();
    assert!(said.starts_with("office: 3 of 3 stopped (2 by hibernate);"), "{said}");
}

#[test]
fn observing_says_what_would_have_been() {
    let world = world().following("office", |policy| policy.mode = Mode::Observe);
    let mut record = ended(numbered(1), Ending::WouldHave, 0);
    record.handled.as_mut().unwrap().desired = None;
    let digest = count(&world, &[record], "mon 19:01").unwrap();
    assert_eq!((digest.would, digest.asked), (1, 0));
    assert!(digest.is_complete());
    assert_eq!(digest.not_seen, []);
    assert_eq!(
        digest.to_string(),
        "office: 0 of 1 stopped, 1 would be stopped but for observe mode; opens Tue 08:00"
    );
}

#[test]
fn a_paused_edge_says_so_and_is_not_unfinished() {
    let paused =
        |world: World| world.pausing(PauseScope::Everything, false, "mon 18:00", "tue 06:00");
    let records = [due(numbered(1)), due(numbered(2)), ended(numbered(3), Ending::Seen, 40)];
    let digest = count(&paused(world()), &records, "mon 19:10").unwrap();
    assert_eq!((digest.followed, digest.paused, digest.unfinished), (3, 2, 0));
    assert!(digest.is_complete());
    assert_eq!(digest.not_seen, []);
    let said = digest.to_string();
    assert_eq!(said, "office: 1 of 3 stopped, 2 paused; slowest web-3 40 s; opens Tue 08:00");
    // What was sent before may still end.
    let digest = count(&paused(world()), &[under_way(numbered(1))], "mon 19:10").unwrap();
    assert_eq!((digest.paused, digest.unfinished), (0, 1));
    // The schedule desires nothing any more.
    let (world, office) = (paused(late_evenings()), schedule_name("office"));
    let rules = world.rules();
    let digest = Digest::of(
        &[due(numbered(1))],
        rules,
        &BTreeMap::new(),
        &office,
        late_evening(),
        at("tue 00:10"),
    );
    assert_eq!(digest.unwrap().paused, 1);
}

#[test]
fn a_record_whose_latest_edge_is_another_one_is_left_out() {
    let seen = || ended(numbered(1), Ending::Seen, 40);
    assert!(count(&world(), &[seen()], "mon 19:10").is_some());
    let overriding =
        |target| world().overriding(target, Desired::Running, "mon 18:00", "mon 22:00");
    is_left_out(&overriding("do-main/droplet/1"), seen());
    is_left_out(&overriding("office"), seen());
    let since = |target| world().overriding(target, Desired::Running, "mon 19:05", "mon 22:00");
    is_left_out(&since("office"), seen());
    is_left_out(&world(), seen().commanded("mon 19:05", Desired::Running));
    let before = seen().commanded("mon 18:55", Desired::Running);
    assert!(count(&world(), &[before], "mon 19:10").is_some());
}

#[test]
fn a_record_that_may_not_be_touched_is_left_out() {
    let due_one = || due(numbered(1));
    assert!(count(&world(), &[due_one()], "mon 19:10").is_some());
    is_left_out(&world(), due(droplet()));
    is_left_out(&world().protecting("name:web*"), due_one());
    is_left_out(&world(), due_one().tagged(&["offhours:off"]));
    is_left_out(&world(), due_one().tagged(&["offhours:office", "offhours:other"]));
    let held = Record { held: true, ..due_one() };
    is_left_out(&world(), held);
    let gone = Record { phase: Phase::Gone { since: at("mon 19:05") }, ..due_one() };
    is_left_out(&world(), gone);
    let other = world().with_schedule("other", daily("09:00", "19:00"));
    is_left_out(&other, due_one().tagged(&["offhours:other"]));
}

#[test]
fn a_record_that_joined_to_follow_from_its_next_edge_on_is_left_out() {
    let adopted = numbered(1).having_handled("mon 19:00", STOPPED);
    is_left_out(&world(), adopted.clone());
    // Its last ending belongs to an earlier edge.
    let mut earlier = ended(numbered(1), Ending::Seen, 40);
    earlier.last.as_mut().unwrap().key = key("mon 08:00");
    is_left_out(&world(), earlier);
}

#[test]
fn a_configuration_that_wants_something_else_makes_it_due_again() {
    let mut seen = ended(numbered(1), Ending::Seen, 40);
    seen.handled.as_mut().unwrap().desired = Some(Desired::Running);
    let newer = world().in_generation(2);
    let digest = count(&newer, &[seen], "mon 19:10").unwrap();
    assert_eq!((digest.unfinished, digest.seen), (1, 0));
}

#[test]
fn an_edge_gets_a_digest_while_it_is_young_and_wants_something() {
    let rule = &world().configuration.schedules[&schedule_name("office")];
    let within = |now: &str| edge_within_window(&rule.schedule, at(now)).map(|edge| edge.at);
    assert_eq!(within("mon 18:59"), None);
    assert_eq!(within("mon 19:00"), Some(at("mon 19:00")));
    assert_eq!(within("mon 19:40"), Some(at("mon 19:00")));
    assert_eq!(within("mon 19:40:01"), None);
    assert_eq!(within("tue 08:30"), Some(at("tue 08:00")));
    let begins = serde_json::json!({
        "timezone": "UTC", "periods": [{"weekdays": ["mon-fri"], "end": "19:00"}],
    });
    let open = world().with_schedule("open", begins);
    let open = &open.configuration.schedules[&schedule_name("open")].schedule;
    assert!(edge_within_window(open, at("mon 19:10")).is_some());
    assert_eq!(edge_within_window(open, at("tue 00:10")), None);
}

/// A world whose schedule `office` stops at 23:55 and desires nothing from midnight on.
fn late_evenings() -> World {
    let ends = serde_json::json!({ "timezone": "UTC", "periods": [{ "end": "23:55" }] });
    world().with_schedule("office", ends)
}

fn late_evening() -> Edge {
    Edge { at: at("mon 23:55"), desired: Some(STOPPED) }
}

#[test]
fn an_edge_whose_state_ends_soon_is_counted_until_its_own_deadline() {
    let world = late_evenings();
    let schedule = &world.configuration.schedules[&schedule_name("office")].schedule;
    for now in ["mon 23:55", "mon 23:59:59", "tue 00:00", "tue 00:35"] {
        assert_eq!(edge_within_window(schedule, at(now)), Some(late_evening()), "{now}");
    }
    assert_eq!(edge_within_window(schedule, at("tue 00:35:01")), None);
    assert_eq!(deadline(schedule, late_evening()), at("tue 00:30"));
}

#[test]
fn what_an_edge_began_is_counted_though_nothing_is_desired_any_more() {
    let world = late_evenings();
    let count = |record: &Record, now: &str| {
        let office = schedule_name("office");
        Digest::of([record], world.rules(), &BTreeMap::new(), &office, late_evening(), at(now))
    };
    let began = |record: Record| Record {
        handled: Some(crate::record::Handled {
            key: key("mon 23:55"),
            ..record.handled.clone().unwrap()
        }),
        ..record
    };
    let going_on = began(under_way(numbered(1)));
    for now in ["mon 23:59", "tue 00:01"] {
        let digest = count(&going_on, now).unwrap();
        assert_eq!((digest.followed, digest.unfinished, digest.asked), (1, 1, 1), "{now}");
    }
    let mut done = began(ended(numbered(1), Ending::Seen, 400));
    done.last.as_mut().unwrap().key = key("mon 23:55");
    let digest = count(&done, "tue 00:03").unwrap();
    assert_eq!((digest.followed, digest.seen), (1, 1));
    // What was never begun stays undone.
    let digest = count(&due(numbered(1)), "tue 00:29").unwrap();
    assert_eq!((digest.followed, digest.unfinished), (1, 1));
    // A command of the night is not this edge's.
    assert_eq!(count(&done.commanded("tue 00:10", Desired::Running), "tue 00:20"), None);
}

#[test]
fn the_digest_comes_before_the_next_edge() {
    let rule = &world().configuration.schedules[&schedule_name("office")];
    assert_eq!(deadline(&rule.schedule, evening()), at("mon 19:35"));
    let short = world().with_schedule("short", daily("19:00", "19:20"));
    let short = &short.configuration.schedules[&schedule_name("short")].schedule;
    let begin = Edge { at: at("mon 19:00"), desired: Some(Desired::Running) };
    assert_eq!(deadline(short, begin), at("mon 19:18:30"));
    let shorter = world().with_schedule("short", daily("19:00", "19:02"));
    let shorter = &shorter.configuration.schedules[&schedule_name("short")].schedule;
    assert_eq!(deadline(shorter, begin), at("mon 19:01"));
}

#[test]
fn the_longest_transition_ends_before_the_deadline() {
    use crate::reference::ResourceKind;
    let longest = crate::record::effect_timeout(ResourceKind::Database);
    assert!(longest < DEADLINE && DEADLINE < WINDOW);
}

/// A record with any outcome.
fn any_record(number: usize) -> impl Strategy<Value = Record> {
    let endings = vec![
        Ending::Seen,
        Ending::AlreadyThere,
        Ending::WouldHave,
        Ending::Refused,
        Ending::Stuck,
        Ending::Superseded,
        Ending::Released,
    ];
    prop_oneof![
        (prop::sample::select(endings), 0..2000_i64).prop_map(move |(ending, seconds)| ended(
            numbered(number),
            ending,
            seconds
        )),
        Just(under_way(numbered(number))),
        Just(due(numbered(number))),
        Just(due(numbered(number)).tagged(&["offhours:off"])),
        Just(numbered(number).having_handled("mon 19:00", STOPPED)),
    ]
}

fn any_records() -> impl Strategy<Value = Vec<Record>> {
    (0..12_usize).prop_flat_map(|count| (0..count).map(any_record).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn each_record_that_follows_is_counted_once_in_any_order(
        records in any_records(), turn in 0..12_usize,
    ) {
        let counted = count(&world(), &records, "mon 19:30");
        let mut turned = records.clone();
        turned.rotate_left(turn.min(records.len()));
        prop_assert_eq!(&counted, &count(&world(), &turned, "mon 19:30"));
        let alone = |record: &Record| {
            let one = std::slice::from_ref(record);
            count(&world(), one, "mon 19:30")
        };
        let each: Vec<_> = records.iter().filter_map(alone).collect();
        let Some(digest) = counted else {
            prop_assert!(each.is_empty());
            return Ok(());
        };
        let sum = |part: fn(&Digest) -> usize| each.iter().map(part).sum::<usize>();
        prop_assert_eq!(digest.followed, each.len());
        prop_assert_eq!(digest.asked, sum(|one| one.asked));
        let parts: [fn(&Digest) -> usize; 7] = [
            |d| d.seen, |d| d.already, |d| d.would, |d| d.refused, |d| d.stuck, |d| d.overtaken,
            |d| d.unfinished,
        ];
        prop_assert_eq!(parts.map(|part| part(&digest)), parts.map(sum));
        prop_assert_eq!(parts.map(|part| part(&digest)).iter().sum::<usize>(), digest.followed);
        let at_the_end = digest.seen + digest.already + digest.would;
        prop_assert_eq!(digest.not_seen.len(), digest.followed - at_the_end);
        prop_assert!(digest.methods.values().sum::<usize>() <= digest.seen);
        let longest = each.iter().filter_map(|one| one.slowest.as_ref()).map(|s| s.seconds).max();
        prop_assert_eq!(digest.slowest.map(|slowest| slowest.seconds), longest);
    }
}

#[test]
fn a_machine_that_was_made_again_counts_at_the_edge_for_which_it_was_woken_early() {
    let morning = Edge { at: at("tue 08:00"), desired: Some(Desired::Running) };
    let woken = |lead_minutes| {
        let mut record = office_droplet();
        let early = key("tue 07:35");
        record.hibernation = Some(Box::new(Hibernation {
            lead: Some(SignedDuration::from_mins(lead_minutes)),
            ..Hibernation::of(record.reference.id.clone())
        }));
        record.last = Some(Last {
            key: early,
            claimed_at: early.instant,
            asked_at: Some(early.instant),
            finished_at: early.instant + SignedDuration::from_mins(10),
            ending: Ending::Seen,
            method: Some(StopMethod::Hibernate),
        });
        record.settled(Power::Running).having_handled("tue 07:35", Desired::Running)
    };
    let counted = |record: Record| {
        let world = world();
        let now = at("tue 08:01");
        Digest::of(
            [&record],
            world.rules(),
            &BTreeMap::new(),
            &schedule_name("office"),
            morning,
            now,
        )
    };
    let digest = counted(woken(25)).unwrap();
    assert_eq!((digest.followed, digest.seen), (1, 1));
    // A machine woken for another edge does not follow this one.
    assert!(counted(woken(0)).is_none_or(|digest| digest.seen == 0));
}
