//! Renaming an account: `hz-eu` becomes `hz-us`.

use std::{collections::BTreeMap, thread};

use aws_sdk_dynamodb::types::AttributeValue;
use domain::{
    AccountName, ResourceRef,
    configuration::{CloudAccount, Configuration, Generation, Override, OverrideTarget},
    decision::due_at,
    record::{Ending, Record},
    resource::SavedState,
    schedule::Desired,
};
use jiff::SignedDuration;
use store::{
    Store, StoreError,
    item::{FORMAT, Stored as _},
};
use testing::{Fate, Sent, set_override};
use tokio::runtime::Builder;

use crate::{
    fixtures::{
        apply_office_hours, hetzner, history, monday, pool_in_flight, reference, server, setting,
        stopped_on_friday, with_office_hours,
    },
    world::World,
};

fn name(text: &str) -> AccountName {
    text.parse().unwrap()
}

/// The configuration in which the account has its new name.
fn renamed() -> Configuration {
    let account = CloudAccount { was: Some(name("hz-eu")), ..hetzner() }.into();
    Configuration { accounts: [(name("hz-us"), account)].into(), ..with_office_hours() }
}

/// A stopped record, and one in the middle of a stop with an open permit.
fn records() -> [Record; 2] {
    let in_flight = Record { reference: reference("hz-eu/node-pool/c1/p1"), ..pool_in_flight() };
    [in_flight, stopped_on_friday(1)].map(|record| Record { joined_at: Some(monday()), ..record })
}

fn overriding(target: &str) -> Override {
    Override {
        target: OverrideTarget::Resource(reference(target)),
        desired: Desired::Running,
        set_at: monday(),
        ends_at: monday() + SignedDuration::from_hours(2),
        by: "ada".to_owned(),
        why: None,
        before: None,
    }
}

/// A world in which the account has its original name, records and an override.
async fn before() -> World {
    let world = World::new().await;
    let store = world.store();
    apply_office_hours(&store).await;
    for record in records() {
        store.save(record).await.unwrap();
    }
    let one = overriding("hz-eu/server/1");
    set_override(&store, &one, monday()).await.unwrap();
    world
}

async fn apply(store: &Store) -> Result<(), Box<dyn std::error::Error>> {
    apply_this(store, renamed()).await
}

async fn apply_this(
    store: &Store,
    configuration: Configuration,
) -> Result<(), Box<dyn std::error::Error>> {
    let generation = store.head_and_overrides().await?.head.generation;
    let configuration = Configuration { generation, ..configuration };
    store.apply(&configuration, "ada", monday()).await?;
    Ok(())
}

async fn of(store: &Store, account: &str) -> Vec<Record> {
    store.records_of(&name(account)).await.unwrap().read
}

/// Reads the account's records, without what every write changes.
async fn unwritten(store: &Store, account: &str) -> Vec<Record> {
    let records = of(store, account).await.into_iter();
    let bare = |record| Record {
        reference: reference("any/server/1"),
        due_at: None,
        revision: server(1).revision,
        ..record
    };
    records.map(bare).collect()
}

async fn active(store: &Store) -> Vec<OverrideTarget> {
    let overrides = store.head_and_overrides().await.unwrap().overrides;
    let now = monday() + SignedDuration::from_mins(1);
    let active = overrides.iter().filter(|one| one.is_active(now));
    active.map(|one| one.target.clone()).collect()
}

#[tokio::test]
async fn records_and_overrides_are_carried_over_as_they_are() {
    let world = before().await;
    let store = world.store();
    let old = (of(&store, "hz-eu").await, unwritten(&store, "hz-eu").await);
    apply(&store).await.unwrap();
    assert_eq!(of(&store, "hz-eu").await, []);
    let new = of(&store, "hz-us").await;
    assert_eq!(unwritten(&store, "hz-us").await, old.1);
    let in_force = store.in_force().await.unwrap();
    for (old, new) in old.0.iter().zip(&new) {
        assert_eq!(new.reference.id, old.reference.id);
        assert!(new.revision > old.revision);
        let recomputed = due_at(new, in_force.rules(), monday());
        assert_eq!(new.due_at, recomputed);
        assert!(new.due_at.is_some());
    }
    let target = OverrideTarget::Resource(reference("hz-us/server/1"));
    assert_eq!(active(&store).await, [target]);
    // The `was` key that stays in the file has no further effect.
    apply(&store).await.unwrap();
    assert_eq!(of(&store, "hz-us").await, new);
}

#[tokio::test]
async fn an_override_goes_back_with_an_account_that_has_its_first_name_again() {
    let world = before().await;
    let store = world.store();
    apply(&store).await.unwrap();
    let to = Generation(1);
    let back = store.roll_back(to, Generation(2), "ada", monday()).await;
    assert_eq!(back.unwrap(), Generation(3));
    assert_eq!(of(&store, "hz-us").await, []);
    assert_eq!(of(&store, "hz-eu").await.len(), 2);
    let target = OverrideTarget::Resource(reference("hz-eu/server/1"));
    assert_eq!(active(&store).await, [target]);
}

#[tokio::test]
async fn an_override_stays_while_a_renamed_account_is_removed_and_comes_back() {
    let world = before().await;
    let store = world.store();
    apply(&store).await.unwrap();
    let without = Configuration { accounts: BTreeMap::new(), ..with_office_hours() };
    apply_this(&store, without).await.unwrap();
    apply(&store).await.unwrap();
    let target = OverrideTarget::Resource(reference("hz-us/server/1"));
    assert_eq!(active(&store).await, [target]);
}

#[tokio::test]
async fn an_override_that_was_cleared_does_not_come_back() {
    // Cleared either before the account is finally renamed or after.
    for requests in 0.. {
        let world = before().await;
        let (process, wire) = world.process();
        wire.die_after(requests);
        let applied = apply(&process).await;
        let store = world.store();
        let account = match store.head_and_overrides().await.unwrap().head.generation.0 {
            1 => "hz-eu",
            _ => "hz-us",
        };
        let one = overriding(&format!("{account}/server/1"));
        let cleared = Override { ends_at: monday() + SignedDuration::from_secs(1), ..one.clone() };
        let replaced = store.replace_override(&cleared, Some(&one), &setting(&cleared)).await;
        replaced.unwrap();
        apply(&store).await.unwrap();
        assert_eq!(active(&store).await, [], "after {requests} requests");
        if applied.is_ok() {
            break;
        }
    }
}

#[tokio::test]
async fn what_a_person_puts_in_place_of_an_override_that_begins_later_stays() {
    for requests in 0.. {
        let world = before().await;
        let store = world.store();
        let hour = SignedDuration::from_hours(1);
        let of = |account: &str| overriding(&format!("{account}/server/1"));
        let later = Override { set_at: monday() + hour, ..of("hz-eu") };
        set_override(&store, &later, monday()).await.unwrap();
        let (process, wire) = world.process();
        wire.die_after(requests);
        let applied = apply(&process).await;
        let account = match store.head_and_overrides().await.unwrap().head.generation.0 {
            1 => "hz-eu",
            _ => "hz-us",
        };
        set_override(&store, &of(account), monday()).await.unwrap();
        apply(&store).await.unwrap();
        let target = of("hz-us").target;
        assert_eq!(active(&store).await, [target], "after {requests} requests");
        if applied.is_ok() {
            break;
        }
    }
}

#[tokio::test]
async fn what_a_person_clears_under_the_new_name_during_an_apply_stays_cleared() {
    let world = before().await;
    let (process, wire) = world.process();
    let person = world.store();
    let clears = async move {
        let one = overriding("hz-us/server/1");
        let cleared = Override { ends_at: monday() + SignedDuration::from_secs(1), ..one.clone() };
        let head = person.head_and_overrides().await.unwrap().head;
        assert_eq!(head.generation, Generation(2));
        person.replace_override(&cleared, Some(&one), &setting(&cleared)).await.unwrap();
    };
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let clears = || thread::spawn(move || runtime.block_on(clears)).join().unwrap();
    // Carrying over a record comes between the new head and the end of what was copied.
    let carries_over = |sent: &Sent| {
        let items = sent.body["TransactItems"].as_array();
        items.is_some_and(|items| items.iter().any(|item| item["Delete"].is_object()))
    };
    wire.plan(carries_over, Fate::After(Box::new(clears)));
    apply(&process).await.unwrap();
    assert_eq!(wire.left(), 0);
    assert_eq!(active(&world.store()).await, []);
}

#[tokio::test]
async fn wherever_an_apply_ends_every_record_and_every_override_is_there_once() {
    for requests in 0.. {
        let world = before().await;
        let (process, wire) = world.process();
        wire.die_after(requests);
        let applied = apply(&process).await;
        let store = world.store();
        let old = records().map(|record| record.reference.id);
        let (account, gone) = match store.head_and_overrides().await.unwrap().head.generation.0 {
            1 => ("hz-eu", "hz-us"),
            _ => ("hz-us", "hz-eu"),
        };
        if account == "hz-us" {
            // The next inventory does the same.
            let left = store.carry_over(&name("hz-eu"), &name("hz-us"), monday()).await;
            assert_eq!(left.unwrap(), []);
        }
        let found: Vec<_> = of(&store, account).await;
        let found: Vec<_> = found.into_iter().map(|record| record.reference.id).collect();
        assert_eq!(found, old, "after {requests} requests");
        assert_eq!(of(&store, gone).await, [], "after {requests} requests");
        let target = OverrideTarget::Resource(reference(&format!("{account}/server/1")));
        let active = active(&store).await;
        assert!(active.contains(&target), "after {requests} requests: {active:?}");
        if applied.is_ok() {
            assert!(requests > 10);
            break;
        }
    }
}

#[tokio::test]
async fn a_write_of_the_old_record_is_either_carried_over_or_finds_it_gone() {
    let world = before().await;
    let store = world.store();
    let writer = world.store();
    let mut record = writer.record(&reference("hz-eu/server/1")).await.unwrap().unwrap();
    let writing = tokio::spawn(async move {
        while record.attempts < 30 {
            let next = Record { attempts: record.attempts + 1, ..record.clone() };
            match writer.save(next).await {
                Ok(saved) => record = saved,
                Err(StoreError::Stale { current: None }) => break,
                other => panic!("neither written nor gone, but {other:?}"),
            }
        }
        record.attempts
    });
    apply(&store).await.unwrap();
    while !of(&store, "hz-eu").await.is_empty() {
        let carried = store.carry_over(&name("hz-eu"), &name("hz-us"), monday()).await;
        carried.unwrap();
    }
    let written = writing.await.unwrap();
    let carried = store.record(&reference("hz-us/server/1")).await.unwrap().unwrap();
    assert_eq!(carried.attempts, written);
}

#[tokio::test]
async fn an_answer_that_is_lost_leaves_nothing_undone() {
    let world = before().await;
    let (process, wire) = world.process();
    let head = Configuration {
        generation: process.head_and_overrides().await.unwrap().head.generation,
        ..renamed()
    };
    process.apply(&head, "ada", monday()).await.unwrap();
    let writes = wire.operations();
    let first = writes.iter().rposition(|one| one == "TransactWriteItems");
    let world = before().await;
    let (process, wire) = world.process();
    process.head_and_overrides().await.unwrap();
    wire.sent();
    // The last transaction carries the second record over.
    wire.lose_answer_after(first.unwrap() - 1);
    process.apply(&head, "ada", monday()).await.unwrap();
    assert_eq!(of(&world.store(), "hz-eu").await, []);
    assert_eq!(of(&world.store(), "hz-us").await.len(), 2);
}

#[tokio::test]
async fn what_is_known_under_both_names_is_joined_and_no_size_is_lost() {
    let pool = |count| SavedState::NodePool { count, autoscale: None };
    // What the old record is owed and what the new one is; what is kept and what goes to history.
    for (old, new, kept, dropped) in [
        (Some(3), None, Some(3), None),
        (None, Some(2), Some(2), None),
        (Some(3), Some(3), Some(3), None),
        (Some(3), Some(1), Some(3), Some(1)),
        (Some(1), Some(3), Some(3), Some(1)),
        (None, None, None, None),
    ] {
        let store = World::new().await.store();
        store.apply(&renamed(), "ada", monday()).await.unwrap();
        let record = |account: &str, count: Option<u32>| Record {
            reference: reference(&format!("{account}/node-pool/c1/p1")),
            name: account.to_owned(),
            saved: count.map(pool),
            ..stopped_on_friday(1)
        };
        for record in [record("hz-eu", old), record("hz-us", new)] {
            store.save(record).await.unwrap();
        }
        let left = store.carry_over(&name("hz-eu"), &name("hz-us"), monday()).await;
        assert_eq!(left.unwrap(), []);
        assert_eq!(of(&store, "hz-eu").await, []);
        let joined = of(&store, "hz-us").await.remove(0);
        // The new record is the one that is kept.
        assert_eq!(joined.name, "hz-us");
        assert_eq!(joined.saved, kept.map(pool));
        assert_eq!(joined.may_have_shrunk, old.is_some());
        let history = history(&store, &joined.reference).await;
        let shown = history.into_iter().map(|entry| (entry.ending, entry.saved));
        let expected = dropped.map(|count| (Ending::Resized, Some(pool(count))));
        assert!(shown.eq(expected), "{old:?} {new:?}");
    }
}

#[tokio::test]
async fn what_a_newer_program_wrote_stays_and_is_named() {
    for account in ["hz-eu", "hz-us"] {
        let world = World::new().await;
        let store = world.store();
        store.apply(&renamed(), "ada", monday()).await.unwrap();
        store.save(stopped_on_friday(1)).await.unwrap();
        let reference = reference(&format!("{account}/server/1"));
        let newer = Record { reference: reference.clone(), ..server(1) };
        let mut stored = newer.to_item().unwrap();
        let format = AttributeValue::N((FORMAT + 1).to_string());
        stored.insert("format".to_owned(), format);
        world.put(&World::tables().resources, stored).await;
        let left = store.carry_over(&name("hz-eu"), &name("hz-us"), monday()).await;
        let ids: Vec<_> = left.unwrap().into_iter().map(|one: ResourceRef| one.id).collect();
        assert_eq!(ids, std::slice::from_ref(&reference.id), "{account}");
        assert_eq!(
            world.stored(&newer).await["format"],
            AttributeValue::N((FORMAT + 1).to_string())
        );
    }
}

#[tokio::test]
async fn records_of_an_account_that_is_configured_stay_its_own() {
    let store = before().await.store();
    let left = store.carry_over(&name("hz-eu"), &name("hz-us"), monday()).await;
    assert_eq!(left.unwrap().len(), 2);
    assert_eq!(of(&store, "hz-eu").await.len(), 2);
}

#[tokio::test]
async fn where_nothing_is_left_to_carry_over_one_request_says_so() {
    let world = before().await;
    let (store, wire) = world.process();
    apply(&store).await.unwrap();
    wire.sent();
    let left = store.carry_over(&name("hz-eu"), &name("hz-us"), monday()).await;
    assert_eq!(left.unwrap(), []);
    assert_eq!(wire.operations(), ["Query"]);
}
