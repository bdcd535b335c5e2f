use domain::{
    activity::{Action, Author},
    configuration::{Override, OverrideTarget, Pause, PauseScope},
    record::{Direction, Phase, Record},
    schedule::Desired,
};
use jiff::SignedDuration;
use store::{OVERRIDES_AT_ONCE, OverrideChange, OverrideError, Store, StoreError};
use testing::set_override;

use crate::{
    fixtures::{
        apply_office_hours, at, monday, office_hours_name, reference, server, setting,
        stopped_on_friday, transition,
    },
    world::World,
};

fn running(target: OverrideTarget, hours: i64) -> Override {
    Override {
        target,
        desired: Desired::Running,
        set_at: monday(),
        ends_at: monday() + SignedDuration::from_hours(hours),
        by: "ada".to_owned(),
        why: Some("a demonstration".to_owned()),
        before: None,
    }
}

fn of_server(number: usize) -> OverrideTarget {
    OverrideTarget::Resource(reference(&format!("hz-eu/server/{number}")))
}

fn of_schedule() -> OverrideTarget {
    OverrideTarget::Schedule(office_hours_name())
}

#[tokio::test]
async fn overrides_and_the_head_are_read_at_once() {
    let world = World::new().await;
    let (store, wire) = world.process();
    apply_office_hours(&store).await;
    let set = [running(of_server(1), 1), running(of_schedule(), 2)];
    for one in &set {
        set_override(&store, one, monday()).await.unwrap();
    }
    wire.sent();
    let present = store.head_and_overrides().await.unwrap();
    assert_eq!(wire.operations(), ["Query"; 2]);
    assert_eq!(present.head.generation.0, 1);
    let read: Vec<_> = present.overrides.iter().cloned().collect();
    assert_eq!(read, set);
}

fn paused(scope: PauseScope, hours: i64) -> Pause {
    Pause {
        scope,
        starts: false,
        set_at: monday(),
        ends_at: monday() + SignedDuration::from_hours(hours),
        by: "ada".to_owned(),
        why: "a release".to_owned(),
    }
}

async fn set_pause(
    store: &Store,
    pause: &Pause,
    replaces: Option<&Pause>,
) -> Result<(), OverrideError> {
    let activity = Author::from("ada").does(Action::paused(pause), monday());
    store.replace_pause(pause, replaces, &activity).await
}

#[tokio::test]
async fn pauses_are_read_with_the_overrides_and_each_replaces_that_of_its_scope_alone() {
    let world = World::new().await;
    let (store, wire) = world.process();
    let overridden = running(of_server(1), 1);
    set_override(&store, &overridden, monday()).await.unwrap();
    let of_schedule = paused(PauseScope::Schedule(office_hours_name()), 1);
    let whole = paused(PauseScope::Everything, 2);
    for pause in [&of_schedule, &whole] {
        set_pause(&store, pause, None).await.unwrap();
    }
    let longer = paused(PauseScope::Everything, 5);
    let refused = set_pause(&store, &longer, None).await;
    assert!(matches!(refused, Err(OverrideError::PauseOvertaken(PauseScope::Everything))));
    set_pause(&store, &longer, Some(&whole)).await.unwrap();
    wire.sent();
    let present = store.head_and_overrides().await.unwrap().overrides;
    assert_eq!(wire.operations(), ["Query"; 2]);
    assert_eq!(present.iter().collect::<Vec<_>>(), [&overridden]);
    assert_eq!(present.pauses().collect::<Vec<_>>(), [&longer, &of_schedule]);
}

#[tokio::test]
async fn a_pause_puts_off_what_is_due_and_refuses_whoever_has_read_what_is_in_flight() {
    let store = World::new().await.store();
    apply_office_hours(&store).await;
    let evening = monday() + SignedDuration::from_hours(12);
    let due = Record { due_at: Some(monday()), ..stopped_on_friday(1) };
    let due = store.save(due).await.unwrap();
    let phase = Phase::InFlight { transition: transition(Direction::Start) };
    let in_flight = Record { phase, ..stopped_on_friday(2) };
    let in_flight = store.save(in_flight).await.unwrap();
    let pause = paused(PauseScope::Everything, 24);
    set_pause(&store, &pause, None).await.unwrap();
    store.make_scope_due(&pause.scope, evening).await.unwrap();
    let read = store.record(&due.reference).await.unwrap().unwrap();
    assert_eq!(read.due_at, Some(pause.ends_at));
    assert!(matches!(store.save(in_flight).await, Err(StoreError::Stale { .. })));
    let ended = Pause { ends_at: evening, ..pause.clone() };
    set_pause(&store, &ended, Some(&pause)).await.unwrap();
    store.make_scope_due(&pause.scope, evening).await.unwrap();
    let read = store.record(&due.reference).await.unwrap().unwrap();
    assert_eq!(read.due_at, Some(evening));
}

#[tokio::test]
async fn an_override_replaces_the_one_of_its_target_alone() {
    let store = World::new().await.store();
    let kept = running(of_server(2), 3);
    for one in [&running(of_server(1), 1), &kept] {
        set_override(&store, one, monday()).await.unwrap();
    }
    let ended = Override {
        desired: Desired::Stopped,
        ends_at: monday(),
        why: None,
        ..running(of_server(1), 0)
    };
    set_override(&store, &ended, monday()).await.unwrap();
    let overrides = store.in_force().await.unwrap().overrides;
    assert_eq!(overrides.get(&of_server(1)), Some(&ended));
    assert_eq!(overrides.get(&of_server(2)), Some(&kept));
    assert_eq!(overrides.iter().count(), 2);
}

#[tokio::test]
async fn an_override_outlives_an_apply() {
    let store = World::new().await.store();
    let set = running(of_schedule(), 1);
    set_override(&store, &set, monday()).await.unwrap();
    apply_office_hours(&store).await;
    let in_force = store.in_force().await.unwrap();
    assert_eq!(in_force.overrides.get(&of_schedule()), Some(&set));
    assert_eq!(in_force.configuration.generation.0, 1);
}

#[tokio::test]
async fn setting_an_override_makes_the_records_of_its_target_due() {
    let store = World::new().await.store();
    apply_office_hours(&store).await;
    let opening = at("2026-06-15T08:00:00Z");
    for number in [1, 2] {
        let waiting = Record { due_at: Some(opening), ..stopped_on_friday(number) };
        store.save(waiting).await.unwrap();
    }
    let now = monday() + SignedDuration::from_secs(1);
    set_override(&store, &running(of_server(1), 12), now).await.unwrap();
    let due = store.due(now).await.unwrap().read;
    let due: Vec<_> = due.iter().map(|r| (r.reference.id.provider_id(), r.due_at)).collect();
    assert_eq!(due, [("1".to_owned(), Some(now))]);

    set_override(&store, &running(of_schedule(), 12), now).await.unwrap();
    assert_eq!(store.due(now).await.unwrap().read.len(), 2);
}

#[tokio::test]
async fn an_override_of_a_resource_reads_and_writes_its_record_alone() {
    let world = World::new().await;
    let (store, wire) = world.process();
    apply_office_hours(&store).await;
    for number in [1, 2] {
        store.save(stopped_on_friday(number)).await.unwrap();
    }
    wire.sent();
    let one = running(of_server(1), 12);
    let now = monday() + SignedDuration::from_secs(1);
    store.replace_override(&one, None, &setting(&one)).await.unwrap();
    let [put] = &wire.sent()[..] else {
        panic!("the override, with its entry in the activity log");
    };
    let [one_put, entry] = [0, 1].map(|place| &put.body["TransactItems"][place]["Put"]["Item"]);
    assert_eq!(one_put["generation_key"]["S"], "override");
    assert_eq!(entry["reference"]["S"], "activity");
    store.make_target_due(&one.target, now).await.unwrap();
    let [get, head, overrides, save] = &wire.sent()[..] else {
        panic!("its record, what is in force and the record");
    };
    assert_eq!(get.body["Key"]["resource"]["S"], "server/1");
    assert_eq!([&*head.operation, &*overrides.operation], ["Query"; 2]);
    assert_eq!(save.body["Item"]["resource"]["S"], "server/1");
}

#[tokio::test]
async fn an_override_of_a_schedule_makes_due_what_follows_it_and_what_did() {
    let store = World::new().await.store();
    apply_office_hours(&store).await;
    let retagged = Record {
        tags: std::collections::BTreeSet::new(),
        due_at: Some(at("2026-06-15T08:00:00Z")),
        ..stopped_on_friday(2)
    };
    let not_seen_since_tagged = Record { schedule: None, ..stopped_on_friday(3) };
    let never = Record {
        // Not what the rules yield: recomputing it would correct that.
        due_at: Some(at("2026-06-15T23:00:00Z")),
        ..server(4)
    };
    for record in [stopped_on_friday(1), retagged, not_seen_since_tagged, never] {
        store.save(record).await.unwrap();
    }
    let now = monday() + SignedDuration::from_secs(1);
    let one = running(of_schedule(), 12);
    set_override(&store, &one, now).await.unwrap();
    let records = store.records_of(&"hz-eu".parse().unwrap()).await.unwrap().read;
    let due: Vec<_> = records.iter().map(|r| (r.reference.id.provider_id(), r.due_at)).collect();
    let left = Some(at("2026-06-15T23:00:00Z"));
    assert_eq!(
        due,
        [("1", Some(now)), ("2", None), ("3", Some(now)), ("4", left)]
            .map(|(id, at)| (id.to_owned(), at))
    );
    assert_eq!(records[3].revision.0, 1);
}

#[tokio::test]
async fn a_writer_that_does_not_know_what_it_replaces_is_refused() {
    let store = World::new().await.store();
    let first = running(of_server(1), 1);
    store.replace_override(&first, None, &setting(&first)).await.unwrap();
    let ended = Override { ends_at: first.ends_at - SignedDuration::from_mins(1), ..first.clone() };
    let second = running(of_server(1), 2);
    for known in [None, Some(&ended)] {
        let refused = store.replace_override(&second, known, &setting(&second)).await;
        assert!(matches!(refused, Err(OverrideError::Overtaken(target)) if target == of_server(1)));
    }
    let kept = store.head_and_overrides().await.unwrap().overrides;
    assert_eq!(kept.get(&of_server(1)), Some(&first));
    let set = setting(&second);
    let replaced = store.replace_override(&second, Some(&first), &set);
    replaced.await.unwrap();
}

#[tokio::test]
async fn several_overrides_are_set_together_or_not_at_all() {
    let store = World::new().await.store();
    let first = running(of_server(1), 1);
    store.replace_override(&first, None, &setting(&first)).await.unwrap();
    let change = |number, known: Option<&Override>| {
        let one = running(of_server(number), 2);
        OverrideChange { activity: setting(&one), replaces: known.cloned(), one }
    };
    let refused = store.replace_overrides(&[change(2, None), change(1, None)]).await;
    assert!(matches!(refused, Err(OverrideError::Overtaken(target)) if target == of_server(1)));
    let overrides = store.head_and_overrides().await.unwrap().overrides;
    assert!(overrides.iter().eq([&first]));

    let many: Vec<_> = (2..=OVERRIDES_AT_ONCE).map(|number| change(number, None)).collect();
    let all: Vec<_> = many.into_iter().chain([change(1, Some(&first))]).collect();
    store.replace_overrides(&all).await.unwrap();
    let overrides = store.head_and_overrides().await.unwrap().overrides;
    assert_eq!(overrides.iter().count(), OVERRIDES_AT_ONCE);
    assert_eq!(overrides.get(&of_server(1)), Some(&all[all.len() - 1].one));
}

#[tokio::test]
async fn a_lost_answer_is_not_taken_for_another_persons_override() {
    let world = World::new().await;
    let (store, wire) = world.process();
    wire.lose_answer_after(0);
    let one = running(of_server(1), 1);
    store.replace_override(&one, None, &setting(&one)).await.unwrap();
    assert_eq!(wire.operations(), ["TransactWriteItems"; 2]);
}
