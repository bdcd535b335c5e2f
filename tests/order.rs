//! What a resource follows starts before it and stops after it, and each wait has an end.

use domain::{
    record::{Direction, Ending, Phase},
    resource::Power,
};
use jiff::Timestamp;
use lifecycle::Event;
use serde_json::json;
use tokio::net::TcpSocket;

use crate::support::{ACCOUNTS, World, droplet, fault, monday, run, server, short_night};

const DB: &str = "do-main/droplet/1";
const WEB: &str = "do-main/droplet/2";
const CI: &str = "hz-eu/server/11";

/// A shop over two clouds whose data is followed by all else, from before the evening.
async fn shop(wait: &str) -> World {
    let groups = format!(
        r#"
        groups.data = {{ resources = "name:db" }}
        groups.shop = {{ resources = ["name:web", "*/server/*"], after = "data", wait = "{wait}" }}
        "#
    );
    let tags = ["offhours:office"];
    let fleet = [ACCOUNTS, &droplet(1, "db", &tags), &droplet(2, "web", &tags), &server(11, "")];
    World::start(&short_night(&groups, ""), &fleet.concat(), monday("17:48:00")).await
}

/// Returns when the first request of a transition was sent, and when its end was seen.
async fn seen(world: &World, resource: &str, direction: Direction) -> (Timestamp, Timestamp) {
    let history = world.history(resource).await;
    let entry = history.iter().find(|entry| entry.direction == direction).unwrap();
    assert_eq!(entry.ending, Ending::Seen, "{entry:?}");
    let first = world.changes().into_iter().find(|change| {
        let of_this = change.resource.as_ref().is_some_and(|one| one.to_string() == resource);
        of_this && change.at >= entry.claimed_at
    });
    (first.unwrap().at, entry.finished_at)
}

fn not_kept(world: &mut World, resource: &str) -> Vec<Event> {
    let mut events = world.events(resource);
    events.retain(|event| matches!(event, Event::OrderNotKept { .. }));
    events
}

#[test]
fn what_others_follow_stops_last_and_starts_first() {
    run(async {
        let mut world = shop("30m").await;
        world.run_until(monday("19:00:30")).await;
        let (db_stops, _) = seen(&world, DB, Direction::Stop).await;
        let (_, db_runs) = seen(&world, DB, Direction::Start).await;
        for follower in [WEB, CI] {
            let (_, is_off) = seen(&world, follower, Direction::Stop).await;
            assert!(is_off <= db_stops, "{follower} was off at {is_off}");
            let (starts, _) = seen(&world, follower, Direction::Start).await;
            assert!(db_runs <= starts, "{follower} was started at {starts}");
            assert_eq!(not_kept(&mut world, follower), []);
        }
        assert_eq!(not_kept(&mut world, DB), []);
    });
}

#[test]
fn after_its_wait_a_member_goes_on_and_a_person_learns_of_it() {
    run(async {
        let mut world = shop("5m").await;
        world.run_until(monday("18:30:30")).await;
        world.simulator().add_fault(fault(&json!({
            "match": { "method": "POST", "path_prefix": "/v2/droplets/1/" },
            "times": 100_000,
            "does": { "answer": { "status": 503, "body": "{}", "headers": {} } },
        })));
        world.run_until(monday("18:44:50")).await;
        let asked = |world: &World, resource: &str| {
            let changes = world.changes().into_iter().filter(|change| {
                change.at >= monday("18:40:00")
                    && change.resource.as_ref().is_some_and(|one| one.to_string() == resource)
            });
            changes.count()
        };
        assert!(asked(&world, DB) > 0);
        assert_eq!([WEB, CI].map(|follower| asked(&world, follower)), [0, 0]);
        world.run_until(monday("18:50:30")).await;
        for follower in [WEB, CI] {
            assert_eq!(asked(&world, follower), 1);
            let [Event::OrderNotKept { direction: Direction::Start, reason, commanded: false }] =
                &not_kept(&mut world, follower)[..]
            else {
                panic!("{:?}", world.events(follower));
            };
            assert!(reason.starts_with("db (starting, "), "{reason}");
        }
    });
}

/// A shop whose data has a check, at a port that is not open yet.
async fn checked_shop() -> (World, TcpSocket) {
    let port = TcpSocket::new_v4().unwrap();
    port.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let groups = format!(
        r#"
        groups.data = {{ resources = "name:db", check = "tcp://{}" }}
        groups.shop = {{ resources = "name:web", after = "data", wait = "10m" }}
        "#,
        port.local_addr().unwrap()
    );
    let tags = ["offhours:office"];
    let fleet = [ACCOUNTS, &droplet(1, "db", &tags), &droplet(2, "web", &tags)].concat();
    let world = World::start(&short_night(&groups, ""), &fleet, monday("17:48:00")).await;
    (world, port)
}

#[test]
fn what_follows_a_group_starts_once_its_check_passes() {
    run(async {
        let (mut world, port) = checked_shop().await;
        world.run_until(monday("18:46:30")).await;
        let (_, db_runs) = seen(&world, DB, Direction::Start).await;
        assert!(db_runs < monday("18:45:00"), "{db_runs}");
        let web = world.record(WEB).await;
        assert_eq!(web.phase, Phase::Settled { at: Power::Stopped });
        let _open = port.listen(1).unwrap();
        world.run_until(monday("18:49:30")).await;
        let (starts, _) = seen(&world, WEB, Direction::Start).await;
        assert!(starts >= monday("18:46:30"), "{starts}");
        assert_eq!(not_kept(&mut world, WEB), []);
    });
}

#[test]
fn without_its_check_a_group_is_waited_for_until_the_deadline() {
    run(async {
        let (mut world, port) = checked_shop().await;
        world.run_until(monday("18:49:50")).await;
        assert_eq!(not_kept(&mut world, WEB), []);
        world.run_until(monday("18:53:30")).await;
        let (starts, _) = seen(&world, WEB, Direction::Start).await;
        assert!(starts >= monday("18:50:00"), "{starts}");
        let [Event::OrderNotKept { reason, commanded: false, .. }] = &not_kept(&mut world, WEB)[..]
        else {
            panic!("{:?}", world.events(WEB));
        };
        let address = port.local_addr().unwrap();
        assert_eq!(*reason, format!("the check of data (tcp://{address})"));
    });
}

#[test]
fn a_command_is_never_held_back_and_says_what_it_overtakes() {
    run(async {
        let mut world = shop("30m").await;
        world.run_until(monday("17:50:30")).await;
        let report = world.stop(&json!({ "resources": [DB] })).await;
        let reasons: Vec<_> = report.outcomes.iter().map(|one| one.event.to_string()).collect();
        let expected = "stop before what goes first: web (running), ci-11 (running)";
        assert_eq!(reasons[0], expected, "{reasons:?}");
        assert!(world.touched().contains(DB));
        let events = not_kept(&mut world, DB);
        assert!(events.iter().all(|event| event.class().published_as.is_none()));
    });
}
