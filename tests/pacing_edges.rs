//! The cost of stopping or starting a large account at one edge: how many requests it takes, how
//! long, and whether the cloud refuses any. The simulated clouds apply their documented limits: at
//! `DigitalOcean` 250 requests a minute and 5,000 an hour, at Hetzner 3,600 an hour.

use std::{collections::BTreeMap, ops::RangeInclusive};

use cloud_simulator::Entry;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::support::{
    ACCOUNTS, TOKENS, World, database, droplet, droplets, fault, monday, office_hours, run, servers,
};

/// Marks the requests of another tool with the same token.
const OTHER: &str = "another_tool";

/// An account, and another tool that uses its token.
struct Account {
    name: &'static str,
    token: &'static str,
    /// The path that the other tool requests.
    path: &'static str,
    /// The number of requests it sends per minute, evenly spread.
    others: u32,
}

const DROPLETS: Account =
    Account { name: "do-main", token: TOKENS[0].1, path: "v2/droplets", others: 0 };

const SERVERS: Account =
    Account { name: "hz-eu", token: TOKENS[1].1, path: "v1/servers", others: 0 };

/// The requests to an account from the edge on.
#[derive(Debug)]
struct EdgeRequests {
    /// The change requests, whatever their outcome.
    changes: Vec<Entry>,
    /// The number of reads by stop and start before these.
    looks: usize,
    /// The number of reads by poll-status.
    following: usize,
    /// The number of requests, ours or not, that were refused because there were too many.
    refused: usize,
}

impl EdgeRequests {
    fn of(world: &World, account: &Account) -> Self {
        let mut log = world.simulator().log();
        log.retain(|entry| {
            entry.account.as_ref().is_some_and(|name| name.as_str() == account.name)
        });
        let refused = log.iter().filter(|entry| is_too_many(entry)).count();
        let (changes, reads): (Vec<_>, Vec<_>) = log
            .into_iter()
            .filter(|entry| entry.at >= edge() && !entry.request.query.contains(OTHER))
            .partition(|entry| entry.request.method != "GET");
        // On the stepped clock these reads are sent at the same instant as the changes that follow
        // them.
        let mut first = BTreeMap::new();
        for change in &changes {
            first.entry(change.at).or_insert(change.sequence);
        }
        let is_before = |read: &&Entry| first.get(&read.at).is_some_and(|&of| read.sequence < of);
        let looks = reads.iter().filter(is_before).count();
        Self { following: reads.len() - looks, looks, changes, refused }
    }

    /// The time from the edge to the last change request.
    fn took(&self) -> SignedDuration {
        let last = self.changes.iter().map(|entry| entry.at).max().unwrap();
        last.duration_since(edge())
    }

    /// Checks the cost of an edge with this many resources, if this many requests per minute are
    /// ours: at most two lists per hundred changes.
    #[track_caller]
    fn check(&self, resources: u64, a_minute: u32) {
        self.check_changes(resources, a_minute);
        let asked = (self.changes.len() + self.looks) as u64;
        assert!(asked * 100 <= resources * 102, "{asked} requests");
    }

    /// Like [`Self::check`], but without the lists.
    #[track_caller]
    #[expect(clippy::print_stdout, reason = "the figures that `--nocapture` shows")]
    fn check_changes(&self, resources: u64, a_minute: u32) {
        let took = self.took();
        println!(
            "{resources}: {} changes, {} looks before them, {} to follow; the last after {took:#}",
            self.changes.len(),
            self.looks,
            self.following
        );
        assert_eq!(self.refused, 0);
        assert!(self.changes.iter().all(|entry| entry.changed));
        assert_eq!(self.changes.len() as u64, resources);
        let seconds = resources * 60 / u64::from(a_minute);
        let most = SignedDuration::from_millis(i64::try_from(seconds * 1100).unwrap());
        assert!(took <= most, "{took:#} of {most:#}");
    }
}

/// Whether a request was refused because there were too many.
fn is_too_many(entry: &Entry) -> bool {
    let answer = entry.answer.as_ref();
    answer.is_some_and(|answer| answer.status == 429)
}

fn edge() -> Timestamp {
    monday("18:00:00")
}

/// Lets time pass while the other tool sends its requests.
async fn pass(world: &World, account: &Account, until: Timestamp) {
    if account.others == 0 {
        return world.run_until(until).await;
    }
    let http = provider::http_client().unwrap();
    let url = world.local.clouds_url().unwrap().join(account.path).unwrap();
    let url = format!("{url}?per_page=1&{OTHER}=1");
    let pause = SignedDuration::from_secs(60) / i32::try_from(account.others).unwrap();
    let mut at = world.local.now() + SignedDuration::from_millis(1);
    while at < until {
        world.run_until(at).await;
        let answer = http.get(&url).bearer_auth(account.token).send().await;
        answer.unwrap();
        at += pause;
    }
    world.run_until(until).await;
}

/// A world with this fleet, started at `from` and run until `until`.
async fn at_the_edge(account: &Account, more: &str, fleet: &str, from: &str, until: &str) -> World {
    let fleet = [ACCOUNTS, fleet].concat();
    let configuration = office_hours("max_stops = 1000", "", more);
    let world = World::start(&configuration, &fleet, monday(from)).await;
    pass(&world, account, monday(until)).await;
    world
}

#[test]
fn droplets_are_stopped_as_fast_as_a_minute_allows_and_none_is_refused() {
    run(async {
        let fleet = droplets(1..=300, &["offhours:office"]);
        let world = at_the_edge(&DROPLETS, "", &fleet, "17:56:30", "18:03:30").await;
        EdgeRequests::of(&world, &DROPLETS).check(300, 250);
    });
}

#[test]
fn droplets_are_stopped_as_fast_as_others_leave_room_who_take_a_third_of_the_minute() {
    run(async {
        let account = Account { others: 83, ..DROPLETS };
        let fleet = droplets(1..=300, &["offhours:office"]);
        let world = at_the_edge(&account, "", &fleet, "17:56:30", "18:03:30").await;
        EdgeRequests::of(&world, &account).check(300, 250 - 83);
    });
}

#[test]
fn droplets_are_stopped_as_fast_at_a_cloud_that_takes_its_time() {
    run(async {
        let fleet = droplets(1..=300, &["offhours:office"]);
        let world = at_the_edge(&DROPLETS, "", &fleet, "17:56:30", "17:59:30").await;
        world.simulator().add_fault(fault(&json!({
            "match": { "account": "do-main" },
            "times": u32::MAX,
            "does": { "delay": { "by": "0.3s" } },
        })));
        world.run_until(monday("18:03:30")).await;
        let asked = EdgeRequests::of(&world, &DROPLETS);
        assert!(asked.looks + asked.following <= 25, "{asked:?}");
        asked.check(300, 250);
    });
}

#[test]
fn servers_are_stopped_at_once_while_others_take_a_third_of_the_hour() {
    run(async {
        let account = Account { others: 20, ..SERVERS };
        let fleet = servers(1..=300, "");
        let world = at_the_edge(&account, "", &fleet, "17:56:30", "18:02:30").await;
        let asked = EdgeRequests::of(&world, &account);
        asked.check(300, 60);
        assert_eq!(asked.took(), SignedDuration::ZERO);
    });
}

#[test]
fn a_429_for_the_limit_per_minute_delays_an_edge_by_minutes_and_says_nothing_of_the_hour() {
    run(async {
        let fleet = droplets(1..=5, &["offhours:office"]);
        let world = at_the_edge(&DROPLETS, "", &fleet, "17:50:30", "17:59:30").await;
        world.simulator().add_fault(fault(&json!({
            "match": { "account": "do-main" },
            "times": 2,
            "does": { "answer": { "status": 429, "headers": { "retry-after": "30" } } },
        })));
        world.run_until(monday("18:03:30")).await;
        let log = world.simulator().log();
        assert!(log.iter().any(|entry| entry.at >= edge() && is_too_many(entry)));
        let asked = EdgeRequests::of(&world, &DROPLETS);
        assert_eq!(asked.changes.len(), 5, "{asked:?}");
    });
}

/// A schedule that begins when `office` ends.
const NIGHTS: &str = r#"
    [schedules.nights]
    timezone = "UTC"
    periods = [{ begin = "18:00", end = "06:00" }]
"#;

#[test]
fn starts_go_first_and_stops_at_the_same_edge_have_their_part_of_each_minute() {
    run(async {
        let starts = (1..=230).map(|id| {
            let started = droplet(id, &format!("night-{id}"), &["offhours:nights"]);
            format!("{started}status = \"off\"\n")
        });
        let stops = droplets(231..=300, &["offhours:office"]);
        let fleet = starts.collect::<String>() + &stops;
        let world = at_the_edge(&DROPLETS, NIGHTS, &fleet, "17:56:30", "18:03:30").await;
        let asked = EdgeRequests::of(&world, &DROPLETS);
        let at_first = |what: &str| {
            let changes = asked.changes.iter().filter(|entry| entry.at == edge());
            changes.filter(|entry| entry.request.body.contains(what)).count()
        };
        let (starts, stops) = (at_first("power_on"), at_first("power_off"));
        assert!((170..230).contains(&starts), "{starts}");
        assert!((50..=60).contains(&stops), "{stops}");
        asked.check_changes(300, 250);
        // Start and stop each read the lists, of three pages, twice; poll-status reads them four
        // times.
        assert!(asked.looks + asked.following <= 28, "{asked:?}");
    });
}

/// A schedule that ends two minutes after `office`.
const LATER: &str = r#"
    [schedules.later]
    timezone = "UTC"
    periods = [{ begin = "06:00", end = "18:02" }]
"#;

#[test]
fn what_is_followed_at_an_edge_does_not_spend_what_the_stops_do() {
    run(async {
        let databases = (1..=10).map(|id| database(&format!("d{id}"), &format!("pg-{id}"), "pg"));
        let fleet = droplets(1..=300, &["offhours:later"]) + &databases.collect::<String>();
        let world = at_the_edge(&DROPLETS, LATER, &fleet, "17:56:30", "18:05:30").await;
        let mut log = world.simulator().log();
        assert_eq!(log.iter().filter(|entry| is_too_many(entry)).count(), 0);
        let is_stop = |entry: &&Entry| entry.request.body.contains("power_off");
        assert_eq!(log.iter().filter(is_stop).count(), 300);
        log.retain(|entry| entry.at >= monday("18:02:00") && entry.at < monday("18:03:00"));
        let followed = log.iter().filter(|entry| entry.request.path == "/v2/databases").count();
        // One is that of the inventory.
        assert!(followed > 1, "they are not followed");
    });
}

#[test]
fn what_is_followed_leaves_an_hours_last_requests_to_inventories() {
    run(async {
        let limit = "token = \"secret-do-token\"\nrate_limit = { per_hour = 200 }";
        let accounts = ACCOUNTS.replace("token = \"secret-do-token\"", limit);
        let fleet = accounts + &droplets(1..=20, &["offhours:office"]);
        let configuration = office_hours("max_stops = 1000", "", "");
        let world = World::start(&configuration, &fleet, monday("17:50:30")).await;
        world.simulator().add_fault(fault(&json!({
            "match": { "account": "do-main", "method": "POST" },
            "times": u32::MAX,
            "does": { "slow": { "by": "2h" } },
        })));
        world.run_until(monday("18:50:30")).await;
        let asked = EdgeRequests::of(&world, &DROPLETS);
        assert_eq!((asked.changes.len(), asked.refused), (20, 0), "{asked:?}");
        let mut lists = world.simulator().log();
        // Only inventories read this list.
        lists.retain(|entry| entry.request.path == "/v2/kubernetes/clusters");
        let last = lists.last().map(|entry| entry.at);
        assert!(last > Some(monday("18:45:00")), "{last:?}");
    });
}

#[test]
fn stops_that_begin_at_one_instant_do_not_spend_the_same_requests() {
    run(async {
        let fleet = droplets(1..=300, &["offhours:office"]);
        let world = at_the_edge(&DROPLETS, "", &fleet, "17:50:30", "17:56:30").await;
        let of = |ids: RangeInclusive<u64>| {
            let resources: Vec<_> = ids.map(|id| format!("do-main/droplet/{id}")).collect();
            json!({ "resources": resources })
        };
        let (first, second) = (of(1..=150), of(151..=300));
        let stops = async { tokio::join!(world.stop(&first), world.stop(&second)) };
        tokio::join!(stops, world.run_until(monday("18:03:30")));
        let mut log = world.simulator().log();
        assert_eq!(log.iter().filter(|entry| is_too_many(entry)).count(), 0);
        log.retain(|entry| entry.changed);
        assert_eq!(log.len(), 300);
    });
}

#[test]
fn what_fails_each_time_does_not_keep_others_from_their_turn() {
    run(async {
        let (failing, all) = (1..=10, 1..=40);
        let limit = "token = \"secret-hz-token\"\nrate_limit = { per_hour = 600 }";
        let accounts = ACCOUNTS.replace("token = \"secret-hz-token\"", limit);
        let fleet = accounts + &servers(all.clone(), "");
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &fleet, monday("17:56:30")).await;
        for id in failing.clone() {
            world.simulator().add_fault(fault(&json!({
                "match": { "method": "POST", "resource": format!("hz-eu/server/{id}") },
                "times": u32::MAX,
                "does": { "answer": { "status": 423 } },
            })));
        }
        world.run_until(monday("17:59:30")).await;
        // Another tool leaves enough for some of them.
        let drain = Account { others: 60 * 560, ..SERVERS };
        pass(&world, &drain, monday("17:59:31")).await;
        world.run_until(monday("18:12:30")).await;
        let mut asked = world.changes();
        asked.retain(|entry| entry.request.path.ends_with("/actions/shutdown"));
        let asked_of = |id: u64| {
            let of = format!("/v1/servers/{id}/");
            let times = asked.iter().filter(move |entry| entry.request.path.starts_with(&of));
            times.map(|entry| entry.at)
        };
        let last = all.clone().map(|id| asked_of(id).next().unwrap()).max().unwrap();
        assert!(last > edge(), "not all were asked at the first tick");
        for id in failing {
            let again = asked_of(id).nth(1);
            assert!(again.is_none_or(|again| again >= last), "{id}: {again:?}, {last}");
        }
        let log = world.simulator().log();
        let refused = log.iter().filter(|entry| entry.at >= edge());
        assert_eq!(refused.filter(|entry| is_too_many(entry)).count(), 0);
    });
}
