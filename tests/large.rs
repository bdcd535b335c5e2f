//! Large accounts and slow clouds: on the stepped clock each response takes its time, and an
//! invocation is ended when AWS would end it.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::{PutRequest, WriteRequest};
use cloud_simulator::{Act, Entry, Hold, Matching, Stage};
use domain::{ResourceRef, resource::Power};
use environment::SteppedClock;
use jiff::SignedDuration;
use lifecycle::{Event, event::Subject};
use serde_json::json;
use store::{Store, item::Stored as _};

use crate::{
    process::PollStatus,
    support::{
        ACCOUNTS, RequestCounter, TOKENS, World, database, droplet, droplets, fault, first_seen,
        instant, monday, office_hours, run, run_logged, server, servers, tables, unlabelled_server,
    },
};

/// The number of servers in one account. A page has 50.
const SERVERS: u64 = 5000;

/// Three schedules, each covering more servers of one account than the one before.
const SCHEDULES: &str = r#"
    max_stops = 250
    [accounts.hz-eu]
    provider = "hetzner"
    token = "env:HZ_TOKEN"

    [schedules.handful]
    timezone = "Europe/Berlin"
    periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }]

    [schedules.hundred]
    timezone = "Europe/Berlin"
    periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:02" }]

    [schedules.many]
    timezone = "Europe/Berlin"
    periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:04" }]
"#;

/// The schedule of a server. The servers of each schedule are spread over the pages.
fn schedule(id: u64) -> Option<&'static str> {
    match id {
        1 | 2500 | 5000 => Some("handful"),
        id if id % 50 == 7 => Some("hundred"),
        id if id % 20 == 11 => Some("many"),
        _ => None,
    }
}

fn of(name: &str) -> BTreeSet<String> {
    let ids = (1..=SERVERS).filter(|&id| schedule(id) == Some(name));
    ids.map(|id| format!("hz-eu/server/{id}")).collect()
}

fn project() -> String {
    let servers = (1..=SERVERS).map(|id| match schedule(id) {
        Some(schedule) => server(id, "").replace("office", schedule),
        None => unlabelled_server(id),
    });
    servers.fold(ACCOUNTS.to_owned(), |fleet, server| fleet + &server)
}

/// Makes each request of an account take this long from now on.
fn take(world: &World, account: &str, by: &str) {
    world.simulator().add_fault(fault(&json!({
        "match": { "account": account },
        "times": u32::MAX,
        "does": { "delay": { "by": by } },
    })));
}

/// Records all servers in batches, as an earlier inventory would have done.
async fn record_all(world: &World) {
    let (client, table) = (world.engine.client(), tables().resources);
    let puts: Vec<_> = (1..=SERVERS)
        .map(|id| {
            let mut record = first_seen(id, schedule(id), Power::Running);
            record.revision.0 = 1;
            let put = PutRequest::builder().set_item(Some(record.to_item().unwrap()));
            let put = put.build().unwrap();
            WriteRequest::builder().put_request(put).build()
        })
        .collect();
    for batch in puts.chunks(25) {
        let written = client.batch_write_item().request_items(&table, batch.to_vec());
        written.send().await.unwrap();
    }
}

/// The resources seen at the end of a transition since the last call.
fn seen(world: &mut World, shown: &mut usize) -> BTreeSet<String> {
    let outcomes = world.outcomes();
    let new =
        outcomes[*shown..].iter().filter_map(|outcome| match (&outcome.subject, &outcome.event) {
            (Subject::Resource { resource, .. }, Event::Seen { .. }) => Some(resource.to_string()),
            _ => None,
        });
    let new = new.collect();
    *shown = outcomes.len();
    new
}

#[test]
fn five_thousand_servers_at_a_second_a_page_are_stopped_and_started() {
    run(async {
        let mut world = World::start(SCHEDULES, &project(), monday("17:57:30")).await;
        record_all(&world).await;
        take(&world, "hz-eu", "1s");
        let mut shown = 0;
        for (until, name) in
            [("18:01:50", "handful"), ("18:03:50", "hundred"), ("18:08:50", "many")]
        {
            world.run_until(monday(until)).await;
            assert_eq!(seen(&mut world, &mut shown), of(name), "{name}");
        }
        // The night is skipped, because nothing is due in it.
        world.local.tick_at(instant("2026-11-24T06:58:00Z")).await.unwrap();
        world.run_until(instant("2026-11-24T07:08:50Z")).await;
        let all = &(&of("handful") | &of("hundred")) | &of("many");
        assert_eq!(seen(&mut world, &mut shown), all);
        assert_eq!(world.touched(), all);
    });
}

/// Renames the accounts so that the inventory of the Hetzner project comes first.
fn slow_first(text: &str) -> String {
    text.replace("hz-eu", "a-slow").replace("do-main", "b-fine")
}

fn fleet_of(count: u64) -> String {
    let servers = servers(11..=10 + count, "");
    let fleet = [ACCOUNTS, &droplet(1, "web", &["offhours:office"]), &servers];
    slow_first(&fleet.concat())
}

#[test]
fn a_cloud_that_answers_after_fifteen_seconds_is_followed_and_holds_no_other_up() {
    run(async {
        let configuration = slow_first(&office_hours("", "", ""));
        let mut world = World::start(&configuration, &fleet_of(3), monday("17:53:30")).await;
        world.run_until(monday("17:54:30")).await;
        take(&world, "a-slow", "15s");
        world.run_until(monday("18:01:30")).await;
        assert!(world.was_seen("b-fine/droplet/1"));
        world.run_until(monday("18:04:30")).await;
        for id in 11..=13 {
            assert!(world.was_seen(&format!("a-slow/server/{id}")), "{id}");
        }
    });
}

#[test]
fn an_account_that_cannot_be_listed_in_time_says_so_and_takes_no_time_from_the_others() {
    run(async {
        let configuration = slow_first(&office_hours("", "", ""));
        let mut world = World::start(&configuration, &fleet_of(1500), monday("17:29:30")).await;
        take(&world, "a-slow", "15s");
        world.run_until(monday("18:06:30")).await;
        assert!(world.was_seen("b-fine/droplet/1"));
        let states = world.local.store().account_states().await.unwrap().read;
        let state = |name: &str| &states[&name.parse().unwrap()];
        assert!(state("b-fine").listed_at.unwrap() >= monday("18:00:00"));
        let error = state("a-slow").error.as_ref().unwrap().words();
        assert_eq!(error, "the list of 30 pages was not finished in time");
        // An attempt takes one turn every five minutes, not every minute's.
        let log = world.simulator().log();
        let is_first = |entry: &&Entry| entry.request.query.ends_with("&page=1");
        assert_eq!(log.iter().filter(is_first).filter(|e| is_slow(e)).count(), 8);
        let shown = world.outcomes().iter().filter(|outcome| {
            matches!(&outcome.subject, Subject::Account { account } if account.as_str() == "a-slow")
        });
        let shown: Vec<_> = shown.collect();
        assert_eq!(shown.len(), 1, "{shown:#?}");
    });
}

#[test]
fn an_account_that_outlasts_an_invocation_leaves_the_next_one_to_the_others() {
    run(async {
        let configuration = slow_first(&office_hours("", "", ""));
        let world = World::start(&configuration, &fleet_of(1), monday("17:30:00")).await;
        let clock = SteppedClock::at(monday("17:30:00"));
        let store = world.local.store();
        let poll_status = PollStatus::new(&world, store, &TOKENS, clock.clone());
        let simulator = world.simulator();
        let listing = Hold {
            matching: Matching { account: Some("a-slow".parse().unwrap()), ..Matching::default() },
            times: u32::MAX,
            at: Stage::Arrival,
            late: false,
        };
        // The first invocation is ended in the middle of the list.
        let hold = simulator.add_hold(listing.clone());
        tokio::select! {
            report = poll_status.tick("the first") => panic!("{report:?}"),
            caught = simulator.wait_until_caught(hold) => caught.unwrap(),
        }
        simulator.discard(hold).unwrap();
        clock.advance_to(monday("17:31:00"));
        let hold = simulator.add_hold(listing);
        tokio::select! {
            _ = poll_status.tick("the second") => {},
            _ = simulator.wait_until_caught(hold) => panic!("the same account came first again"),
        }
        let states = store.account_states().await.unwrap().read;
        let state = |name: &str| &states[&name.parse().unwrap()];
        assert_eq!(state("b-fine").listed_at, Some(monday("17:31:00")));
        assert_eq!(state("a-slow").tried_at, Some(monday("17:30:00")));
    });
}

fn is_slow(entry: &Entry) -> bool {
    entry.account.as_ref().is_some_and(|name| name.as_str() == "a-slow")
}

#[test]
fn what_a_slow_inventory_saw_long_ago_is_looked_at_again_before_it_counts() {
    run(async {
        // The list has three pages; the stuck server is on the first.
        let mut fleet = ACCOUNTS.to_owned();
        fleet.push_str(&server(1, "ignores_shutdown = true"));
        for id in 2..=120 {
            fleet.push_str(&unlabelled_server(id));
        }
        let configuration = office_hours("", "", "force = false");
        let mut world = World::start(&configuration, &fleet, monday("17:58:30")).await;
        world.run_until(monday("18:02:30")).await;
        let stuck = |event: &Event| matches!(event, Event::Stuck { .. });
        assert!(world.events("hz-eu/server/1").iter().any(stuck));
        take(&world, "hz-eu", "19s");
        world.person("hz-eu/server/1", Act::PowerOff);
        world.run_until(monday("18:05:30")).await;
        assert!(world.was_seen("hz-eu/server/1"));
    });
}

#[test]
fn a_database_stops_however_long_the_list_of_plans_takes() {
    run(async {
        let fleet = [ACCOUNTS, &database("d1", "orders", "pg")].concat();
        let world = World::start(&office_hours("", "", ""), &fleet, monday("17:58:30")).await;
        world.run_until(monday("17:59:30")).await;
        take(&world, "do-main", "19s");
        world.run_until(monday("18:01:30")).await;
        assert_eq!(world.changes().len(), 1);
    });
}

#[test]
fn an_observation_that_is_too_old_once_the_log_is_read_is_reported() {
    let ((), logged) = run_logged(async {
        let fleet = [ACCOUNTS, &droplet(1, "web", &["offhours:office"])].concat();
        let world = World::start(&office_hours("", "", ""), &fleet, monday("17:58:30")).await;
        world.run_until(monday("17:59:30")).await;
        world.simulator().add_fault(fault(&json!({
            "match": { "method": "POST" }, "does": { "answer": { "status": 503 } },
        })));
        world.run_until(monday("18:00:30")).await;
        take(&world, "do-main", "16s");
        world.run_until(monday("18:04:30")).await;
        assert_eq!(world.changes().len(), 1);
        let reason = world.record("do-main/droplet/1").await.last_error.unwrap().to_string();
        assert!(reason.contains("answers too slowly"), "{reason}");
    });
    assert!(!logged.contains("ERROR"), "{logged}");
}

#[test]
fn an_inventory_that_is_not_written_in_time_goes_on_with_the_next_tick_and_holds_nothing() {
    run(async {
        let fleet = [ACCOUNTS, &droplets(1..=150, &["offhours:office"])].concat();
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &fleet, monday("09:00:00")).await;
        let clock = SteppedClock::at(monday("09:00:00"));
        let takes = Some((clock.clone(), SignedDuration::from_secs(1)));
        let (_, store) = RequestCounter::taking(&world.engine, takes);
        let poll_status = PollStatus::new(&world, &store, &TOKENS[..1], clock.clone());
        let mut recorded = Vec::new();
        for minute in 1..=4 {
            let began = clock.now();
            poll_status.tick("a test").await;
            let took = clock.now().duration_since(began);
            assert!(took < SignedDuration::from_secs(75), "{took:#}");
            clock.advance_to(monday("09:00:00") + SignedDuration::from_mins(2 * minute));
            recorded.push(listed(world.local.store()).await);
        }
        // The second tick goes to the account that was never tried.
        let [(first, false), _, (third, false), (150, true)] = recorded[..] else {
            panic!("{recorded:?}");
        };
        assert!(0 < first && first < third, "{recorded:?}");
        for id in 1..=150 {
            let record = world.record(&format!("do-main/droplet/{id}")).await;
            assert!(!record.held, "{id}");
        }
    });
}

/// The number of recorded Droplets, and whether the account has been listed completely.
async fn listed(store: &Store) -> (usize, bool) {
    let account = "do-main".parse().unwrap();
    let records = store.records_of(&account).await.unwrap().read;
    let states = store.account_states().await.unwrap().read;
    (records.len(), states[&account].listed_at.is_some())
}

#[test]
fn two_hundred_and_fifty_servers_that_do_not_react_are_all_cut() {
    run(async {
        let fleet = [ACCOUNTS, &servers(1..=250, "ignores_shutdown = true")].concat();
        let configuration = office_hours("max_stops = 250", "", "");
        let world = World::start(&configuration, &fleet, monday("17:58:30")).await;
        world.run_until(monday("17:59:30")).await;
        take(&world, "hz-eu", "0.3s");
        world.run_until(monday("18:03:00")).await;
        let cut = |entry: &&Entry| entry.request.path.ends_with("/actions/poweroff");
        let log = world.simulator().log();
        let cut: BTreeSet<ResourceRef> =
            log.iter().filter(cut).filter_map(|entry| entry.resource.clone()).collect();
        assert_eq!(cut.len(), 250);
    });
}
