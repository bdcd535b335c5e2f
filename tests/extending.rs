//! The tag `offhours-until`, which keeps a resource running past its stop.

use std::collections::BTreeSet;

use domain::resource::Power;
use lifecycle::Event;

use crate::support::{
    ACCOUNTS, EACH_KIND, World, droplet, monday, office_hours, one_of_each_kind, run,
};

const WEB: &str = "do-main/droplet/1";

fn set(references: &[&str]) -> BTreeSet<String> {
    references.iter().map(ToString::to_string).collect()
}

/// A service with one Droplet that follows `office`, which closes at 18:00 UTC. Inventories run at
/// 17:48, 17:53, 17:58 and 18:03.
async fn with_web() -> World {
    let fleet = [ACCOUNTS, &droplet(1, "web", &["offhours:office"])].concat();
    World::start(&office_hours("", "", ""), &fleet, monday("17:48:00")).await
}

/// Tags a resource as it was, and to run until a time in the form of its cloud.
fn tag(world: &World, resource: &str, value: &str) {
    if resource.contains("/server/") {
        let label = format!("offhours-until={}", value.replace(':', "."));
        world.retag(resource, &["offhours=office", &label]);
    } else {
        let tag = format!("offhours-until:{value}");
        world.retag(resource, &["offhours:office", &tag]);
    }
}

async fn power(world: &World, resource: &str) -> Power {
    world.record(resource).await.observed.unwrap().power
}

async fn run_until(world: &mut World, until: &str) {
    world.run_until(monday(until)).await;
}

#[test]
fn a_tag_keeps_each_kind_running_until_then() {
    run(async {
        let fleet = one_of_each_kind();
        let from = monday("17:48:00");
        let mut world = World::start(&office_hours("", "", ""), &fleet, from).await;
        run_until(&mut world, "17:49:30").await;
        for resource in EACH_KIND {
            // In Berlin it is 18:49.
            tag(&world, resource, "21:00");
        }
        run_until(&mut world, "19:59:30").await;
        assert_eq!(world.touched(), set(&[]));
        run_until(&mut world, "20:12:30").await;
        assert_eq!(world.touched(), set(&EACH_KIND));
    });
}

#[test]
fn a_tag_that_no_inventory_has_seen_holds_at_the_edge() {
    run(async {
        let mut world = with_web().await;
        run_until(&mut world, "17:59:30").await;
        tag(&world, WEB, "2h");
        run_until(&mut world, "19:59:30").await;
        assert_eq!(world.touched(), set(&[]));
        run_until(&mut world, "20:12:30").await;
        assert_eq!(world.touched(), set(&[WEB]));
    });
}

#[test]
fn a_tag_starts_what_is_stopped_and_its_removal_stops_it_again() {
    run(async {
        let mut world = with_web().await;
        run_until(&mut world, "18:12:30").await;
        assert_eq!(power(&world, WEB).await, Power::Stopped);
        tag(&world, WEB, "3h");
        run_until(&mut world, "18:25:30").await;
        assert_eq!(power(&world, WEB).await, Power::Running);
        world.retag(WEB, &["offhours:office"]);
        run_until(&mut world, "18:40:30").await;
        assert_eq!(power(&world, WEB).await, Power::Stopped);
    });
}

#[test]
fn a_value_that_is_not_a_time_is_reported_once_and_changes_nothing() {
    run(async {
        let mut world = with_web().await;
        run_until(&mut world, "17:49:30").await;
        tag(&world, WEB, "late");
        run_until(&mut world, "18:12:30").await;
        assert_eq!(world.touched(), set(&[WEB]));
        let reason = "the value `late` of its tag offhours-until is not a time: write \
                      offhours-until:21:00, :2h or :2026-11-25T21:00";
        let events = world.events(WEB);
        let invalid = Event::InvalidUntil { reason: reason.to_owned() };
        assert_eq!(events.iter().filter(|event| **event == invalid).count(), 1, "{events:?}");
    });
}
