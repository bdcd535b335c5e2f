//! Notice before a stop: each stop is announced once, and called off once if it does not come.

use domain::{
    activity::{Action, Author},
    configuration::{Pause, PauseScope},
    notice::StopNotice,
    schedule::Desired,
};
use environment::SteppedClock;
use jiff::{SignedDuration, Timestamp};
use lifecycle::Report;
use store::{EdgeReport, Store, item::reported_edge_key};

use crate::{
    process::PollStatus,
    support::{
        ACCOUNTS, EACH_KIND, RequestCounter, World, droplet, monday, office_hours,
        one_of_each_kind, run,
    },
};

const WEB: &str = "do-main/droplet/1";

fn configuration(top: &str) -> String {
    office_hours(top, "", "notice = \"15m\"")
}

/// A world in which the evening's stop, at 18:00 UTC, has just been announced.
async fn announced() -> World {
    let world = World::start(&configuration(""), &one_of_each_kind(), monday("17:38:00")).await;
    world.run_until(monday("17:46:30")).await;
    world
}

/// Runs one tick of another process. It holds no token, because nothing is in flight.
async fn tick(world: &World, store: &Store, at: Timestamp) -> Report {
    let poll_status = PollStatus::new(world, store, &[], SteppedClock::at(at));
    Box::pin(poll_status.tick("another")).await
}

/// Returns what each notice was about, and when it was given.
fn said(world: &mut World) -> Vec<(usize, Timestamp)> {
    world.notices().iter().map(|notice| (notice.count, notice.at)).collect()
}

/// Returns when stops were called off, after one that was announced for all.
#[track_caller]
fn called_off(world: &mut World) -> Vec<Timestamp> {
    let said = said(world);
    let [(4, _), rest @ ..] = &said[..] else { panic!("{said:?}") };
    let off = rest.iter().map(|(count, at)| {
        assert_eq!(*count, 0);
        *at
    });
    off.collect()
}

async fn keep_running(world: &World, resources: &[&str]) {
    for resource in resources {
        world.override_with(resource, Desired::Running, SignedDuration::from_hours(3)).await;
    }
}

#[test]
fn a_stop_is_announced_once_by_ticks_at_once_and_after_restarts() {
    run(async {
        let mut world =
            World::start(&configuration(""), &one_of_each_kind(), monday("17:38:00")).await;
        world.run_until(monday("17:44:30")).await;
        assert_eq!(world.notices(), []);
        world.run_until(monday("17:50:30")).await;
        let [notice] = world.notices() else { panic!("{:?}", world.notices()) };
        let StopNotice { edge, at, count, next_start_at, .. } = notice;
        assert_eq!((*edge, *at, *count), (monday("18:00:00"), monday("17:45:00"), 4));
        assert_eq!(*next_start_at, Some("2026-11-24T07:00:00Z".parse().unwrap()));
        let names: Vec<_> = notice.resources.iter().map(|one| &*one.name).collect();
        assert_eq!(names, ["ci", "general", "orders", "web"]);

        let key = reported_edge_key(EdgeReport::Notice, &"office".parse().unwrap());
        let delete = world.engine.client().delete_item().table_name("offhours-accounts");
        delete.set_key(Some(key)).send().await.unwrap();
        let (_, first) = RequestCounter::on(&world.engine);
        let (_, second) = RequestCounter::on(&world.engine);
        let at = monday("17:51:00");
        let (left, right) = tokio::join!(
            tick(&world, &first, at),
            tick(&world, &second, at + SignedDuration::from_millis(1)),
        );
        assert_eq!(left.notices.len() + right.notices.len(), 1);
        let (_, cold) = RequestCounter::on(&world.engine);
        assert_eq!(tick(&world, &cold, monday("17:52:00")).await.notices, []);
        world.run_until(monday("18:20:30")).await;
        assert_eq!(world.notices().len(), 1);
        assert_eq!(world.touched().len(), 4);
    });
}

#[test]
fn a_stop_that_is_past_is_not_announced() {
    run(async {
        let mut world =
            World::start(&configuration(""), &one_of_each_kind(), monday("18:00:00")).await;
        world.run_until(monday("18:20:30")).await;
        assert_eq!(world.touched().len(), 4);
        assert_eq!(world.notices(), []);
    });
}

#[test]
fn a_stop_is_called_off_once_the_last_of_it_is_kept_running() {
    run(async {
        let mut world = announced().await;
        keep_running(&world, &EACH_KIND[1..]).await;
        world.run_until(monday("17:49:30")).await;
        assert_eq!(called_off(&mut world), []);
        keep_running(&world, &EACH_KIND[..1]).await;
        world.run_until(monday("18:20:30")).await;
        assert_eq!(called_off(&mut world), [monday("17:50:00")]);
        assert_eq!(world.touched().len(), 0);
        let text = world.notices()[1].to_string();
        assert_eq!(text, "office: nothing stops Mon 19:00 after all");
        // Once their overrides end, they are stopped, and that is announced as well.
        world.run_until(monday("20:40:30")).await;
        let said = said(&mut world);
        assert_eq!(said.len(), 4, "{said:?}");
    });
}

#[test]
fn a_stop_is_called_off_by_protect_and_by_tags() {
    run(async {
        let mut world = announced().await;
        world.apply(&configuration(r#"protect = "name:*""#)).await;
        world.run_until(monday("18:10:30")).await;
        assert_eq!(called_off(&mut world), [monday("17:47:00")]);

        let mut world = announced().await;
        for resource in EACH_KIND {
            let off = if resource.contains("/server/") { "offhours=off" } else { "offhours:off" };
            world.retag(resource, &[off]);
        }
        world.run_until(monday("18:10:30")).await;
        // An inventory sees tags.
        assert_eq!(called_off(&mut world), [monday("17:48:00")]);
    });
}

#[test]
fn a_stop_that_is_prevented_in_its_last_minute_is_called_off_after_it() {
    run(async {
        let mut world = announced().await;
        world.run_until(monday("17:59:30")).await;
        keep_running(&world, &EACH_KIND).await;
        world.run_until(monday("18:10:30")).await;
        assert_eq!(called_off(&mut world), [monday("18:00:00")]);
    });
}

#[test]
fn a_stop_that_was_called_off_and_comes_after_all_is_announced_again() {
    run(async {
        let mut world = announced().await;
        world.apply(&configuration(r#"protect = "name:*""#)).await;
        world.run_until(monday("17:50:30")).await;
        world.apply(&configuration("")).await;
        world.run_until(monday("18:20:30")).await;
        let said = said(&mut world);
        let expected =
            [(4, "17:45:00"), (0, "17:47:00"), (4, "17:51:00")].map(|(n, at)| (n, monday(at)));
        assert_eq!(said, expected);
        assert_eq!(world.touched().len(), 4);
    });
}

#[test]
fn a_stop_that_was_made_is_not_called_off() {
    run(async {
        let fleet = [ACCOUNTS, &droplet(1, "web", &["offhours:office"])].concat();
        let mut world = World::start(&configuration(""), &fleet, monday("17:38:00")).await;
        world.run_until(monday("18:10:30")).await;
        assert_eq!(world.touched().len(), 1);
        assert_eq!(said(&mut world), [(1, monday("17:45:00"))]);
    });
}

#[test]
fn a_stop_that_a_pause_put_off_is_announced_for_its_end_and_not_called_off() {
    run(async {
        let mut world =
            World::start(&configuration(""), &one_of_each_kind(), monday("17:38:00")).await;
        let pause = Pause {
            scope: PauseScope::Everything,
            starts: false,
            set_at: monday("17:38:00"),
            ends_at: monday("19:30:00"),
            by: "a person".to_owned(),
            why: "release".to_owned(),
        };
        let paused = Author::from("a person").does(Action::paused(&pause), pause.set_at);
        world.local.store().replace_pause(&pause, None, &paused).await.unwrap();
        world.run_until(monday("19:50:30")).await;
        assert_eq!(world.touched().len(), 4);
        assert_eq!(said(&mut world), [(4, monday("19:15:00"))]);
    });
}

#[test]
fn a_notice_period_costs_an_idle_tick_few_requests() {
    run(async {
        let world = World::start(&configuration(""), &one_of_each_kind(), monday("17:30:00")).await;
        world.run_until(monday("17:31:30")).await;
        let (counter, store) = RequestCounter::on(&world.engine);
        // Besides what a tick costs without it: the notices, what is due soon, what is in force.
        for (at, most) in [("17:32:00", 9), ("17:32:30", 7)] {
            assert_eq!(tick(&world, &store, monday(at)).await, Report::default());
            let requests = counter.take_count();
            assert!((1..=most).contains(&requests), "{at}: {requests}");
        }
    });
}

#[test]
fn the_end_of_a_tag_is_announced_as_well() {
    run(async {
        let mut world = announced().await;
        world.retag(WEB, &["offhours:office", "offhours-until:2h"]);
        world.run_until(monday("20:00:30")).await;
        let said = said(&mut world);
        assert_eq!(said, [(4, monday("17:45:00")), (1, monday("19:33:00"))]);
    });
}
