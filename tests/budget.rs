//! Cost follows the work, not the fleet: how many requests go to the clouds and to the store.

use std::{collections::BTreeMap, sync::Mutex};

use domain::{
    invocation::Invocation,
    pacing::RateLimit,
    record::{Direction, Record},
    resource::Power,
};
use environment::{Invoke, InvokeError, SteppedClock};
use serde_json::json;
use store::{Store, item};
use testing::{Sent, Wire};

use crate::{
    process::{PollStatus, Process},
    support::{
        ACCOUNTS, RequestCounter, TOKENS, World, database, dispatch, droplets, first_seen, instant,
        monday, office_hours, one_of_each_kind, parse, run, tables, unlabelled_server,
    },
};

/// Functions that only record their invocations.
#[derive(Debug, Default)]
struct RecordedInvocations(Mutex<Vec<(Direction, Invocation)>>);

impl Invoke for RecordedInvocations {
    async fn invoke(
        &self,
        direction: Direction,
        invocation: Invocation,
    ) -> Result<(), InvokeError> {
        self.0.lock().unwrap().push((direction, invocation));
        Ok(())
    }
}

/// The number of Droplets in the account, in the test of an edge.
const MANY: u64 = 50;

#[test]
fn stopping_many_droplets_costs_one_request_each_and_one_list_per_look() {
    run(async {
        let fleet = [ACCOUNTS, &droplets(1..=MANY, &["offhours:office"])].concat();
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &fleet, monday("17:48:00")).await;
        world.run_until(monday("17:59:30")).await;
        let before = world.simulator().log().len() as u64;
        // The next inventory is at 18:03.
        world.run_until(monday("18:02:30")).await;
        let log = world.simulator().log_after(before);
        let (lists, changes): (Vec<_>, Vec<_>) =
            log.iter().partition(|entry| entry.request.method == "GET");
        assert_eq!(changes.len() as u64, MANY);
        let mut per_look = BTreeMap::<_, usize>::new();
        for list in &lists {
            assert_eq!(list.request.path, "/v2/droplets");
            *per_look.entry(list.at).or_default() += 1;
        }
        // Droplets with GPUs have a list of their own.
        assert!(per_look.values().all(|&passes| passes == 2), "{per_look:?}");
        // It is observed before acting, and at 5, 10 and 20 seconds; a Droplet is off after 10.
        assert!((2..=4).contains(&per_look.len()), "{per_look:?}");
        for id in 1..=MANY {
            let power = world.record(&format!("do-main/droplet/{id}")).await.observed;
            assert_eq!(power.unwrap().power, Power::Stopped);
        }
    });
}

/// A record of a server that has nothing to do until the evening.
async fn add_record(store: &Store, id: u64) {
    let record = Record {
        due_at: Some(monday("18:00:00")),
        ..first_seen(id, Some("office"), Power::Running)
    };
    store.save(record).await.unwrap();
}

#[test]
fn a_tick_of_dispatch_with_nothing_due_costs_the_same_whatever_the_fleet() {
    run(async {
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, ACCOUNTS, monday("17:00:00")).await;
        let mut records = 0;
        for fleet in [1, 1000] {
            while records < fleet {
                records += 1;
                add_record(world.local.store(), records).await;
            }
            let (counter, store) = RequestCounter::on(&world.engine);
            for temperature in ["cold", "warm"] {
                let invoke = RecordedInvocations::default();
                let dispatched = dispatch(&store, &invoke, monday("17:00:00")).await;
                assert_eq!(dispatched, dispatch::DispatchReport::default());
                assert!(invoke.0.lock().unwrap().is_empty());
                let requests = counter.take_count();
                assert_eq!(requests, 1, "{temperature}, {fleet}");
            }
        }
    });
}

#[test]
fn what_is_due_in_an_account_is_handed_over_at_once_and_at_most_a_thousand() {
    run(async {
        let configuration = office_hours("max_stops = 2000", "", "");
        let world = World::start(&configuration, ACCOUNTS, monday("17:59:00")).await;
        world.run_until(monday("17:59:30")).await;
        for id in 1..=1001 {
            add_record(world.local.store(), id).await;
        }
        let (counter, store) = RequestCounter::on(&world.engine);
        let invoke = RecordedInvocations::default();
        dispatch(&store, &invoke, monday("18:00:00")).await;
        let invoked = invoke.0.into_inner().unwrap();
        let sizes: Vec<_> = invoked
            .iter()
            .map(|(direction, invocation)| {
                assert_eq!(*direction, Direction::Stop);
                let Invocation::Due(resources) = invocation else {
                    panic!("{invocation:?}");
                };
                resources.len()
            })
            .collect();
        assert_eq!(sizes, [1000]);
        // The due records (one page per megabyte), the head, the overrides, the configuration, the
        // accounts, their states.
        let requests = counter.take_count();
        assert!(requests <= 8, "{requests}");
    });
}

#[test]
fn the_allowance_of_the_last_inventory_counts_until_the_next_one_knows_another() {
    run(async {
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, ACCOUNTS, monday("17:54:30")).await;
        world.run_until(monday("17:55:30")).await;
        for id in 1..=30 {
            add_record(world.local.store(), id).await;
        }
        let rate = RateLimit {
            // The reserved twentieth, an inventory and an observation, a list, and ten changes.
            remaining: 180 + 2 + 1 + 10,
            at: monday("17:55:00"),
            limit: None,
            others: None,
        };
        let account = "hz-eu".parse().unwrap();
        world.local.store().save_rate(&account, rate).await.unwrap();
        let (_, store) = RequestCounter::on(&world.engine);
        // At a multiple of five minutes, when edges fall, the recorded rate is at its oldest.
        for (now, stops) in [("18:00:01", 10), ("18:01:04", 10), ("18:01:06", 30)] {
            let dispatched = dispatch(&store, &RecordedInvocations::default(), monday(now)).await;
            assert_eq!(dispatched.stops.len(), stops, "{now}");
        }
    });
}

/// How often a process has written the state of an account since the last call.
fn writes_of_state(process: &Process) -> usize {
    let sent = process.wire.sent();
    let updates = sent.iter().filter(|one| one.operation == "UpdateItem");
    updates.filter(|one| one.body["TableName"].as_str().unwrap().ends_with("accounts")).count()
}

#[test]
fn an_invocation_writes_an_accounts_state_before_it_sends_anything_and_at_its_end() {
    run(async {
        let fleet = [ACCOUNTS, &droplets(1..=1, &["offhours:office"])].concat();
        let world = World::start(&office_hours("", "", ""), &fleet, monday("17:48:00")).await;
        world.run_until(monday("17:59:30")).await;
        let process = Process::later(&world, monday("18:00:01"));
        process.hint(Direction::Stop, &["do-main/droplet/1"]).await;
        assert_eq!(world.changes().len(), 1);
        assert_eq!(writes_of_state(&process), 2);
        process.clock.advance_to(monday("18:00:06"));
        process.look().await;
        assert_eq!(writes_of_state(&process), 2);
    });
}

#[test]
fn what_was_sent_is_stored_beside_a_later_rate() {
    run(async {
        let fleet = [ACCOUNTS, &droplets(1..=1, &["offhours:office"])].concat();
        let world = World::start(&office_hours("", "", ""), &fleet, monday("17:48:00")).await;
        world.run_until(monday("17:59:30")).await;
        let (account, store) = ("do-main".parse().unwrap(), world.local.store());
        let later = RateLimit { remaining: 9, at: monday("18:00:30"), limit: None, others: None };
        store.save_rate(&account, later).await.unwrap();
        let process = Process::later(&world, monday("18:00:01"));
        process.hint(Direction::Stop, &["do-main/droplet/1"]).await;
        assert_eq!(writes_of_state(&process), 2);
        let state = store.account_states().await.unwrap().read.remove(&account).unwrap();
        assert_eq!(state.rate, Some(later));
        assert!(state.spent.iter().any(|spent| spent.by.0 == "a hint"), "{:?}", state.spent);
    });
}

#[test]
fn a_look_before_an_inventory_leaves_the_rate_to_it() {
    run(async {
        let fleet = [ACCOUNTS, &database("d1", "d1", "pg")].concat();
        let world = World::start(&office_hours("", "", ""), &fleet, monday("17:51:00")).await;
        world.run_until(monday("18:05:30")).await;
        assert!(world.record("do-main/database/d1").await.in_flight().is_some());
        let (store, wire) = Wire::to(&world.engine, tables());
        let clock = SteppedClock::at(monday("18:06:00"));
        PollStatus::new(&world, &store, &TOKENS, clock).tick("a tick").await;
        let sent = wire.sent();
        let updates = sent.iter().filter(|one| one.operation == "UpdateItem");
        let of_account = |one: &&Sent| one.body["Key"].to_string().contains("do-main");
        // Before the look, before the inventory, after it, and at the end.
        assert_eq!(updates.filter(of_account).count(), 4);
    });
}

#[test]
fn databases_that_stop_together_ask_once_for_the_plans_that_there_are() {
    run(async {
        let databases = ["d1", "d2", "d3", "d4", "d5"].map(|id| database(id, id, "pg"));
        let fleet = [ACCOUNTS, &databases.concat()].concat();
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &fleet, monday("17:48:00")).await;
        world.run_until(monday("18:02:30")).await;
        assert_eq!(world.changes().len(), 5);
        let log = world.simulator().log();
        let asked = |path| log.iter().filter(|entry| entry.request.path == path).count();
        assert_eq!(asked("/v2/databases/options"), 1);
    });
}

#[test]
fn poll_status_with_nothing_due_ends_after_few_requests_and_asks_no_cloud() {
    run(async {
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &one_of_each_kind(), monday("17:30:00")).await;
        world.run_until(monday("17:31:30")).await;
        let asked = world.simulator().log().len();
        assert!(asked > 0, "the inventory of 17:30");
        let (counter, store) = RequestCounter::on(&world.engine);
        let clock = SteppedClock::at(monday("17:32:00"));
        let poll_status = PollStatus::new(&world, &store, &[], clock);
        for (temperature, most) in [("cold", 5), ("warm", 3)] {
            let report = poll_status.tick("a test").await;
            assert_eq!(report, lifecycle::Report::default());
            let requests = counter.take_count();
            assert!((1..=most).contains(&requests), "{temperature}: {requests}");
        }
        assert_eq!(world.simulator().log().len(), asked);
    });
}

/// The number of store requests for an inventory of this many accounts at one cloud, with one
/// server each.
async fn requests_of_inventories(accounts: u64) -> usize {
    let numbers = 1..=accounts;
    let configured = numbers
        .clone()
        .map(|n| format!("[accounts.hz-{n}]\nprovider = \"hetzner\"\ntoken = \"env:HZ_{n}\"\n"));
    let held = numbers.clone().map(|n| {
        let server = unlabelled_server(n);
        format!(
            "[[accounts]]\nname = \"hz-{n}\"\nprovider = \"hetzner\"\ntoken = \"secret-{n}\"\n\
             {server}account = \"hz-{n}\"\n"
        )
    });
    let (configuration, fleet): (Vec<_>, Vec<_>) = configured.zip(held).unzip();
    let (configuration, fleet) = (configuration.concat(), fleet.concat());
    let world = World::start(&configuration, &fleet, monday("17:30:00")).await;
    world.run_until(monday("17:31:30")).await;
    let (counter, store) = RequestCounter::on(&world.engine);
    let kept: Vec<_> = numbers.map(|n| (format!("env:HZ_{n}"), format!("secret-{n}"))).collect();
    let kept: Vec<_> = kept.iter().map(|(at, token)| (&**at, &**token)).collect();
    let clock = SteppedClock::at(monday("17:35:00"));
    let poll_status = PollStatus::new(&world, &store, &kept, clock);
    let asked = world.simulator().log().len() as u64;
    poll_status.tick("a test").await;
    assert_eq!(world.simulator().log().len() as u64, asked + accounts);
    counter.take_count()
}

#[test]
fn an_inventory_more_costs_the_same_however_many_accounts_a_cloud_has() {
    run(async {
        let [two, three, six] = [
            requests_of_inventories(2).await,
            requests_of_inventories(3).await,
            requests_of_inventories(6).await,
        ];
        assert_eq!(six - three, 3 * (three - two), "{two}, {three}, {six}");
    });
}

#[test]
fn while_nothing_is_applied_the_log_is_read_once() {
    run(async {
        let fleet = [ACCOUNTS, &droplets(1..=1, &["offhours:office"])].concat();
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &fleet, monday("17:30:00")).await;
        world.run_until(monday("17:31:30")).await;
        let (store, wire) = Wire::to(&world.engine, tables());
        let log = json!(item::LOG);
        let reads = async |at: &str| {
            let asked = world.simulator().log().len();
            PollStatus::new(&world, &store, &TOKENS, SteppedClock::at(monday(at))).tick(at).await;
            assert!(world.simulator().log().len() > asked, "no inventory at {at}");
            let sent = wire.sent();
            let values = sent.iter().filter(|one| one.operation == "Query");
            let values = values.filter_map(|one| one.body["ExpressionAttributeValues"].as_object());
            values.filter(|values| values.values().any(|value| value["S"] == log)).count()
        };
        assert_eq!((reads("17:35:00").await, reads("17:40:00").await), (1, 0));
        world.apply(&office_hours("max_stops = 7", "", "")).await;
        assert_eq!((reads("17:45:00").await, reads("17:50:00").await), (1, 0));
    });
}

#[test]
fn what_another_process_applies_holds_from_the_next_tick_on() {
    run(async {
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &one_of_each_kind(), monday("17:00:00")).await;
        world.run_until(monday("17:10:30")).await;
        assert_eq!(world.changes().len(), 0);
        let (_, elsewhere) = RequestCounter::on(&world.engine);
        let earlier = office_hours("", "", "").replace("19:00", "18:10");
        let mut earlier = parse(&earlier);
        earlier.generation = elsewhere.in_force().await.unwrap().configuration.generation;
        let now = world.local.now();
        elsewhere.apply(&earlier, "another process", now).await.unwrap();
        world.run_until(instant("2026-11-23T17:11:01Z")).await;
        assert_eq!(world.touched().len(), 4);
    });
}
