//! Each edge of a schedule is reported once.

use aws_sdk_dynamodb::types::AttributeValue;
use jiff::{SignedDuration, Timestamp};
use store::{EdgeReport, ReportedEdge, Store, item::Stored as _};

use crate::{
    fixtures::{monday, office_hours_name},
    world::World,
};

fn evening() -> Timestamp {
    monday() + SignedDuration::from_hours(12)
}

fn claim(edge: Timestamp, by: &str) -> ReportedEdge {
    let (report, schedule) = (EdgeReport::Digest, office_hours_name());
    ReportedEdge { report, schedule, edge, turn: 0, by: by.to_owned() }
}

async fn claims(store: &Store, edge: Timestamp, by: &str) -> bool {
    store.claim_report(&claim(edge, by)).await.unwrap()
}

#[tokio::test]
async fn an_edge_is_claimed_once_by_any_writer() {
    let world = World::new().await;
    assert!(claims(&world.store(), monday(), "a").await);
    assert!(!claims(&world.store(), monday(), "b").await);
    let shown = world.store().reported_edges(EdgeReport::Digest).await.unwrap().read;
    assert_eq!(shown[&office_hours_name()], claim(monday(), "a"));
}

#[tokio::test]
async fn of_many_claims_at_once_one_wins() {
    let world = World::new().await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..8 {
        let store = world.store();
        tasks.spawn(async move { claims(&store, monday(), &number.to_string()).await });
    }
    let claimed = tasks.join_all().await;
    assert_eq!(claimed.iter().filter(|claimed| **claimed).count(), 1);
}

#[tokio::test]
async fn a_later_edge_replaces_an_earlier_one_and_not_the_reverse() {
    let world = World::new().await;
    assert!(claims(&world.store(), monday(), "a").await);
    assert!(claims(&world.store(), evening(), "b").await);
    assert!(!claims(&world.store(), monday(), "c").await);
    let shown = world.store().reported_edges(EdgeReport::Digest).await.unwrap().read;
    assert_eq!(shown[&office_hours_name()], claim(evening(), "b"));
    let other = ReportedEdge { schedule: "other".parse().unwrap(), ..claim(monday(), "d") };
    assert!(world.store().claim_report(&other).await.unwrap());
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_known_by_its_writer() {
    let world = World::new().await;
    let (store, wire) = world.process();
    wire.lose_answer_after(0);
    assert!(claims(&store, monday(), "a").await);
    assert_eq!(wire.operations(), ["UpdateItem"; 2]);
}

#[tokio::test]
async fn what_a_newer_program_wrote_is_left_alone() {
    let world = World::new().await;
    let mut newer = claim(monday(), "a").to_item().unwrap();
    newer.insert("format".to_owned(), AttributeValue::N("99".to_owned()));
    let accounts = World::tables().accounts;
    world.put(&accounts, newer.clone()).await;
    assert!(!claims(&world.store(), evening(), "b").await);
    assert_eq!(world.items(&accounts).await, [newer]);
    let found = world.store().reported_edges(EdgeReport::Digest).await.unwrap();
    assert!(found.read.is_empty());
    assert_eq!(found.unreadable[0].reference, "office-hours");
}

#[tokio::test]
async fn a_process_remembers_what_was_reported_and_what_may_wait() {
    let world = World::new().await;
    let (store, wire) = world.process();
    let office = office_hours_name();
    let due = |edge, now| store.digest_may_be_due(&office, edge, now);
    let minute = SignedDuration::from_mins(1);
    assert!(due(monday(), monday()));
    store.postpone_digest(&office, monday(), monday() + minute);
    assert!(!due(monday(), monday()));
    assert!(due(monday(), monday() + minute));
    assert_eq!(wire.operations(), [""; 0]);
    assert!(claims(&store, monday(), "a").await);
    assert!(!due(monday(), monday() + minute));
    assert!(due(evening(), evening()));
    store.postpone_digest(&office, evening(), Timestamp::MAX);
    store.postpone_digest(&office, monday(), monday());
    assert!(!due(monday(), evening()));
    assert!(!due(evening(), evening()));
}

#[tokio::test]
async fn what_was_reported_of_an_edge_is_replaced_by_its_next_turn_alone() {
    let world = World::new().await;
    let turn = |edge, turn, by: &str| {
        let report = EdgeReport::Notice;
        ReportedEdge { report, schedule: office_hours_name(), edge, turn, by: by.to_owned() }
    };
    let store = world.store();
    for (one, expected) in [
        (turn(monday(), 0, "a"), true),
        (turn(monday(), 1, "b"), true),
        (turn(monday(), 1, "c"), false),
        (turn(monday(), 0, "d"), false),
        (turn(evening(), 0, "e"), true),
        (turn(monday(), 2, "f"), false),
    ] {
        assert_eq!(store.claim_report(&one).await.unwrap(), expected, "{one:?}");
    }
    let shown = store.reported_edges(EdgeReport::Notice).await.unwrap().read;
    assert_eq!(shown[&office_hours_name()], turn(evening(), 0, "e"));
    assert!(store.reported_edges(EdgeReport::Digest).await.unwrap().read.is_empty());
    assert!(store.digest_may_be_due(&office_hours_name(), monday(), monday()));
}
