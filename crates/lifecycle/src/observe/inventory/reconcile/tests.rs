//! What an inventory makes of one resource, compared with what is recorded. Nothing here reaches a
//! store or a provider: both only have to exist.

use std::{collections::HashMap, slice, sync::Arc};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use domain::{
    configuration::{Adopt, Provider, Rule},
    fixtures::account,
    hibernation::Hibernation,
    record::{EdgeKey, Rank, Writer},
    resource::{Power, Size},
    schedule::Desired,
};
use environment::{Clock, SteppedClock, Tokens};
use provider::{Base, Endpoints};
use store::{Store, Tables};

use super::*;
use transition::tests::{Case, at, database, database_of, droplet, office, pool};

use crate::{Access, Providers};

/// Compares what the case's look shows with `old`.
fn compared(case: &Case, old: Option<Record>) -> Compared {
    inventory(case, false, |inventory| inventory.compare(old, look(case), None))
}

fn look(case: &Case) -> Look {
    Look { requested_at: case.now, resource: case.resource.clone(), sight: None }
}

fn inventory<T>(case: &Case, first: bool, todo: impl FnOnce(Inventory<'_>) -> T) -> T {
    let aws = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("eu-central-1"))
        .build();
    let store = Store::connect(&aws, Tables::prefixed(""));
    let base: Base = "http://localhost:1".parse().unwrap();
    let http = provider::http_client().unwrap();
    let providers = Providers::new(
        Access::Read,
        Tokens::from_variables(),
        Endpoints::all_at(&base),
        http.clone(),
    );
    let clock = Clock::from(SteppedClock::at(case.now));
    let writer = Writer("us".to_owned());
    let context = Context {
        store: &store,
        providers: &providers,
        clock: &clock,
        writer: &writer,
        listener: &|_: &Occurrence| {},
    };
    let in_force = InForce {
        configuration: Arc::new(case.configuration.clone()),
        overrides: case.overrides.clone(),
        since: None,
    };
    let client = Client::at(&account(Provider::DigitalOcean), base, "token".into(), http);
    todo(Inventory {
        context,
        budget: Budget::begin(&clock),
        account: &case.record.reference.account,
        in_force: &in_force,
        client: &client,
        first,
        elsewhere: Elsewhere::default(),
        reported_errors: ReportedErrors::default(),
        wrote: Cell::new(false),
        asked: Cell::new(None),
        newer: Vec::new(),
        unread: BTreeSet::new(),
    })
}

fn known(case: &Case) -> Record {
    let mut record = case.record.clone();
    record.schedule = Some(office());
    record
}

#[test]
fn a_resource_seen_for_the_first_time_has_handled_nothing() {
    let case = droplet().at("20:00");
    let one = compared(&case, None);
    assert!(one.joined);
    assert_eq!((one.record.handled.as_ref(), one.record.opted_in), (None, true));
    assert_eq!(one.record.schedule, Some(office()));
    assert!(matches!(&one.events()[..], [Event::Joined { held: false, .. }]));
}

#[test]
fn one_that_adopts_from_its_next_edge_is_due_at_that() {
    let case = droplet().at("20:00");
    let case = case.following(|policy| policy.adopt = Adopt::NextEdge);
    let record = compared(&case, None).record;
    assert_eq!(record.joined_at, Some(at("20:00")));
    let due_at =
        inventory(&case, false, |inventory| due_at(&record, inventory.in_force.rules(), case.now));
    assert_eq!(due_at, Some(at("tue 08:00")));
}

#[test]
fn what_an_apply_let_join_is_reported_and_does_not_join_anew() {
    let case = droplet().at("20:00");
    let touched = Record {
        opted_in: false,
        schedule: None,
        joined_at: Some(at("19:58")),
        held: true,
        ..case.record.clone()
    };
    let one = compared(&case, Some(touched));
    assert!(one.joined && !one.new && one.is_newly_held());
    assert_eq!(one.record.handled, case.record.handled);
    let again = compared(&case, Some(one.record));
    assert!(!again.joined && !again.is_newly_held());
}

#[test]
fn a_database_of_a_mixed_size_stands_where_it_was_last_seen() {
    let mut case = database().at("20:00");
    let Size::Database(size) = &mut case.resource.size else {
        unreachable!("it is a database");
    };
    // A larger plan, and one node fewer.
    (size.plan, size.nodes) = ("db-s-4vcpu-8gb".to_owned(), 1);
    case.record.saved = Some(database_of("db-s-2vcpu-4gb", 2));
    for at in [Power::Stopped, Power::Running] {
        let old = Record { phase: Phase::Settled { at }, ..known(&case) };
        let one = compared(&case, Some(old));
        assert_eq!(one.record.phase, Phase::Settled { at });
    }
}

#[test]
fn what_stays_under_its_schedule_keeps_what_it_has_handled() {
    let case = droplet().at("12:00");
    let one = compared(&case, Some(known(&case)));
    assert!(!one.joined);
    assert_eq!(one.record.handled, case.record.handled);
    assert_eq!(one.events(), []);
}

#[test]
fn what_comes_back_has_handled_nothing() {
    let case = droplet().at("12:00");
    let left = Record { opted_in: false, schedule: None, ..known(&case) };
    let one = compared(&case, Some(left));
    assert!(one.joined && !one.new);
    assert_eq!(one.record.handled, None);
}

#[test]
fn what_moves_to_another_schedule_is_reported_and_keeps_what_it_has_handled() {
    let case = droplet().at("12:00");
    let moved = Record {
        schedule: Some("night".parse().unwrap()),
        joined_at: Some(at("07:00")),
        ..known(&case)
    };
    let one = compared(&case, Some(moved));
    assert!(one.joined && !one.new);
    assert_eq!(one.record.handled, case.record.handled);
}

#[test]
fn what_joins_or_comes_back_follows_from_then_on() {
    let case = droplet().at("20:00");
    assert_eq!(compared(&case, None).record.joined_at, Some(at("20:00")));
    let mut old = known(&case);
    old.joined_at = Some(at("sun 19:00"));
    let stays = compared(&case, Some(old.clone()));
    assert_eq!(stays.record.joined_at, Some(at("sun 19:00")));
    for change in [
        |record: &mut Record| (record.opted_in, record.joined_at) = (false, None),
        |record: &mut Record| record.schedule = Some("night".parse().unwrap()),
    ] {
        let mut old = old.clone();
        change(&mut old);
        let moved = compared(&case, Some(old));
        assert_eq!(moved.record.joined_at, Some(at("20:00")));
    }
}

#[test]
fn a_command_that_was_superseded_is_forgotten_where_nothing_counts_as_handled() {
    let command = |instant| {
        let case = droplet().at("12:00").commanded(Desired::Stopped, instant);
        let left = Record { opted_in: false, ..known(&case) };
        compared(&case, Some(left)).record.manual_command
    };
    assert_eq!(command("07:59"), None);
    assert!(command("08:00").is_some());
    assert!(command("11:59").is_some());
}

#[test]
fn what_is_protected_while_it_is_stopped_is_reported_with_what_has_to_end_first() {
    let mut case = database().smallest().at("22:00");
    let pattern = "do-main/database/*".parse().unwrap();
    case.configuration.settings.protect = vec![pattern];
    let old = Record {
        saved: Some(database_of("db-s-2vcpu-4gb", 2)),
        phase: Phase::Settled { at: Power::Stopped },
        ..known(&case)
    };
    let orphaned = compared(&case, Some(old)).events().remove(0);
    assert_eq!(
        orphaned.to_string(),
        "orphaned: stopped, and protected by `do-main/database/*`; once that ends, `offhours start` \
         restores it"
    );
}

#[test]
fn what_leaves_keeps_its_record_and_is_reported_as_orphaned_once() {
    let saved = Some(database_of("db-s-2vcpu-4gb", 2));
    let case = database().smallest().untagged().at("22:00");
    let old = Record {
        saved: saved.clone(),
        may_have_shrunk: true,
        phase: Phase::Settled { at: Power::Stopped },
        ..known(&case)
    };
    let one = compared(&case, Some(old));
    assert!(!one.record.opted_in);
    assert_eq!((&one.record.saved, one.record.may_have_shrunk), (&saved, true));
    assert_eq!(one.record.phase, Phase::Settled { at: Power::Stopped });
    assert_eq!(one.events(), [Event::Orphaned { barrier: None }]);
    let again = compared(&case, Some(one.record));
    assert_eq!(again.events(), []);
}

#[test]
fn what_a_command_stopped_is_orphaned_once_its_schedule_goes() {
    let case = database().smallest().untagged().at("22:00");
    let case = case.commanded(Desired::Stopped, "18:00");
    let mut old = Record {
        saved: Some(database_of("db-s-2vcpu-4gb", 2)),
        may_have_shrunk: true,
        phase: Phase::Settled { at: Power::Stopped },
        ..known(&case)
    };
    let handled = old.handled.as_mut().unwrap();
    handled.key = EdgeKey { instant: at("18:00"), rank: Rank::Manual };
    handled.desired = Some(Desired::Stopped);
    let one = compared(&case, Some(old));
    // The command still names it, which is why `offhours start` may restore it.
    assert!(one.record.opted_in);
    assert_eq!(one.events(), [Event::Orphaned { barrier: None }]);
    let again = compared(&case, Some(one.record));
    assert_eq!(again.events(), []);
}

#[test]
fn what_was_stopped_only_after_it_had_left_is_reported_by_the_next_inventory() {
    let case = droplet().off().untagged().at("22:00");
    let mut left = Record {
        opted_in: false,
        schedule: None,
        phase: Phase::Settled { at: Power::Stopped },
        ..case.record.clone()
    };
    left.handled.as_mut().unwrap().desired = Some(Desired::Stopped);
    assert_eq!(compared(&case, Some(left)).events(), [Event::Orphaned { barrier: None }]);
}

/// An id is never used twice.
#[test]
fn what_was_gone_and_is_seen_again_keeps_what_is_saved_and_what_it_has_handled() {
    let saved = Some(database_of("db-s-2vcpu-4gb", 2));
    let case = database().smallest().at("22:00");
    let gone = Record {
        phase: Phase::Gone { since: at("12:00") },
        opted_in: false,
        joined_at: Some(at("07:00")),
        saved: saved.clone(),
        ..known(&case)
    };
    let one = compared(&case, Some(gone.clone()));
    assert!(one.joined && !one.new);
    assert_eq!(one.record.phase, Phase::Settled { at: Power::Stopped });
    assert!(gone.handled.is_some());
    assert_eq!(
        (&one.record.handled, &one.record.saved, one.record.joined_at),
        (&gone.handled, &saved, gone.joined_at)
    );
}

#[test]
fn what_is_listed_again_has_not_answered_404() {
    let case = droplet().at("12:00");
    let missing = Record { missing_since: Some(at("11:59")), ..known(&case) };
    assert_eq!(compared(&case, Some(missing)).record.missing_since, None);
}

#[test]
fn what_is_settled_follows_what_is_seen_and_what_is_under_way_does_not() {
    let case = droplet().off().at("12:00");
    let one = compared(&case, Some(known(&case)));
    assert_eq!(one.record.phase, Phase::Settled { at: Power::Stopped });
    let flying = case.in_flight(domain::record::Direction::Start, "08:00");
    let one = compared(&flying, Some(known(&flying)));
    assert_eq!(one.record.phase, flying.record.phase);
}

#[test]
fn a_database_with_nothing_saved_stays_where_it_was_settled() {
    let case = database().smallest().at("22:00");
    let old = Record { phase: Phase::Settled { at: Power::Stopped }, ..known(&case) };
    let one = compared(&case, Some(old));
    assert_eq!(one.record.phase, Phase::Settled { at: Power::Stopped });
}

#[test]
fn an_inventory_never_touches_what_is_saved() {
    let case = pool().nodes(1, 1, 1).at("22:00");
    let saved = Some(transition::tests::pool_of(3));
    let old = Record { saved: saved.clone(), ..known(&case) };
    let one = compared(&case, Some(old));
    assert_eq!((one.record.saved, one.record.may_have_shrunk), (saved, false));
}

#[test]
fn more_than_the_limit_at_once_are_held_except_in_the_first_inventory() {
    let held = |limit, first| {
        let mut case = droplet().at("12:00");
        case.configuration.settings.max_new = limit;
        inventory(&case, first, |inventory| {
            let mut joining = vec![
                inventory.compare(None, look(&case), None),
                inventory.compare(None, look(&case), None),
                inventory.compare(Some(known(&case)), look(&case), None),
            ];
            inventory.hold_too_many(&mut joining);
            joining.iter().map(|one| one.record.held).collect::<Vec<_>>()
        })
    };
    assert_eq!(held(2, false), [false, false, false]);
    assert_eq!(held(1, false), [true, true, false]);
    assert_eq!(held(1, true), [false, false, false]);
}

/// A start may have created it after the records were read, and before the list was.
#[test]
fn a_machine_that_was_just_made_is_its_records_whatever_is_known_of_it() {
    let mut case = droplet();
    let (id, reference) = (case.resource.id.clone(), case.record.reference.clone());
    // The form of a tag at this cloud.
    let tag = format!("offhours-of:{}", id.to_string().replace('/', "-"));
    case.resource.tags.insert(tag);
    let of = made_of(&case.resource).unwrap();
    let is_made = |listed, records: &[Record], newer: &[ResourceRef], elsewhere: Elsewhere<'_>| {
        inventory(&case, false, |inventory| {
            let inventory = Inventory { elsewhere, ..inventory };
            inventory.has_made(&labels_of_made(records, newer, &listed), &of)
        })
    };
    let has_made = |records: &[Record], newer: &[ResourceRef], elsewhere: Elsewhere<'_>| {
        is_made(HashSet::new(), records, newer, elsewhere)
    };
    // Without a machine of its own, a record that was never hibernated was restored from a backup.
    let never = slice::from_ref(&case.record);
    assert!(!is_made(HashSet::from([&id]), never, &[], Elsewhere::default()));
    assert!(has_made(never, &[], Elsewhere::default()));
    let asleep =
        Record { hibernation: Some(Box::new(Hibernation::of(id.clone()))), ..case.record.clone() };
    let gone = Record { phase: Phase::Gone { since: case.now }, ..asleep.clone() };
    assert!(has_made(&[asleep], &[], Elsewhere::default()));
    assert!(!has_made(&[gone], &[], Elsewhere::default()));
    // Its record may be there, written by a newer program.
    let unreadable = [reference.clone()];
    assert!(has_made(&[], &unreadable, Elsewhere::default()));
    let other = HashMap::from([(id.clone(), reference)]);
    assert!(has_made(&[], &[], Elsewhere(vec![&other])));
}

#[test]
fn a_machine_of_two_records_is_reported_and_neither_is_acted_on() {
    let case = droplet().at("20:00");
    let twin: ResourceRef = "do-main/droplet/7".parse().unwrap();
    let twice = inventory(&case, false, |inventory| {
        inventory.compare(Some(known(&case)), look(&case), Some(&twin))
    });
    assert_eq!(twice.record.duplicate_of.as_ref(), Some(&twin));
    assert!(!twice.record.opted_in);
    let is_conflict = |event: &Event| matches!(event, Event::Conflict { .. });
    assert!(twice.events().iter().any(is_conflict));
    let once = compared(&case, Some(twice.record));
    assert_eq!(once.record.duplicate_of, None);
}

#[test]
fn a_name_that_two_schedules_list_is_a_conflict_from_its_first_inventory_on() {
    let mut case = droplet().at("20:00");
    let rule = case.configuration.schedules[&office()].clone();
    for (schedule, name) in [("first", "ci-*"), ("second", "*-7")] {
        let resources = [name.parse().unwrap()].into();
        let rule = Rule { resources, ..rule.clone() };
        case.configuration.schedules.insert(schedule.parse().unwrap(), rule);
    }
    let known = known(&case);
    case.resource.name = "ci-7".to_owned();
    let is_conflict = |event: &Event| matches!(event, Event::Conflict { .. });
    let renamed = compared(&case, Some(known));
    assert!(renamed.events().iter().any(is_conflict), "{:?}", renamed.events());
    assert!(!renamed.record.opted_in);
    let again = compared(&case, Some(renamed.record));
    assert!(!again.events().iter().any(is_conflict));
}

#[test]
fn a_second_machine_is_reported_once_and_until_it_is_gone() {
    let mut case = droplet().at("20:00");
    let kept = Hibernation::of(case.resource.id.clone());
    case.record.hibernation = Some(Box::new(kept));
    let second = "droplet/7".parse().unwrap();
    let found = |old: Record| {
        let mut one = compared(&case, Some(old));
        one.record.note_second_machine(&second);
        one
    };
    let first = found(known(&case));
    let is_told =
        |event: &Event| matches!(event, Event::Conflict { reason } if reason.contains("droplet/7"));
    assert!(first.events().iter().any(is_told));
    let again = found(first.record);
    assert!(!again.events().iter().any(is_told));
    let alone = compared(&case, Some(again.record));
    assert_eq!(alone.record.hibernation_problem(), None);
}
