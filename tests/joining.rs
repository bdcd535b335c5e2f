//! Many resources that join a schedule at once: those that an apply names, those that an inventory
//! finds, and those that commands reach.

use cloud_simulator::Act;
use domain::{record::Phase, resource::Power};
use lifecycle::Event;
use report::consequences::Consequences;
use serde_json::json;

use crate::support::{ACCOUNTS, World, droplet, droplets, monday, parse, run, short_night};

/// Half an hour after the short night.
fn morning() -> jiff::Timestamp {
    monday("19:10:30")
}

/// Thirty Droplets without a tag, and the line of a schedule that lists them.
fn thirty() -> (String, String) {
    let listed: Vec<_> = (1..=30).map(|id| format!("\"do-main/droplet/{id}\"")).collect();
    let fleet = [ACCOUNTS, &droplets(1..=30, &[])].concat();
    (fleet, format!("resources = [{}]", listed.join(", ")))
}

/// What `offhours apply` announces beforehand.
async fn foretold(world: &World, configuration: &str) -> Consequences {
    let store = world.local.store();
    let account = "do-main".parse().unwrap();
    let records = store.records_of(&account).await.unwrap().read;
    let old = store.in_force().await.unwrap();
    let new = parse(configuration);
    let new = domain::decision::Rules { configuration: &new, overrides: &old.overrides };
    let states = store.account_states().await.unwrap().read;
    Consequences::of(&records, old.rules(), new, &states, world.local.now())
}

/// How many of the thirty are held, and how many are stopped.
async fn counted(world: &World) -> (usize, usize) {
    let (mut held, mut stopped) = (0, 0);
    for id in 1..=30 {
        let record = world.record(&format!("do-main/droplet/{id}")).await;
        held += usize::from(record.held);
        stopped += usize::from(record.phase == Phase::Settled { at: Power::Stopped });
    }
    (held, stopped)
}

#[test]
fn too_many_that_an_apply_names_are_held_before_any_of_them_is_stopped() {
    run(async {
        let (fleet, listed) = thirty();
        let mut world = World::start(&short_night("", ""), &fleet, monday("17:30:00")).await;
        world.run_until(monday("18:06:30")).await;
        let named = short_night("", &listed);
        let foretold = foretold(&world, &named).await;
        assert_eq!(foretold.held.values().map(Vec::len).sum::<usize>(), 30);
        assert_eq!(foretold.soon, [], "nothing of it is stopped soon");
        world.apply(&named).await;
        assert_eq!(counted(&world).await, (30, 0));
        world.run_until(monday("18:12:30")).await;
        assert_eq!(counted(&world).await, (30, 0));
        assert!(world.touched().is_empty(), "{:?}", world.touched());
        let shown = |o: &&lifecycle::Occurrence| matches!(o.event, Event::Held { count: 30, .. });
        assert_eq!(world.outcomes().iter().filter(shown).count(), 1);
        world.run_until(morning()).await;
        assert_eq!(counted(&world).await, (30, 0));
    });
}

#[test]
fn as_many_as_an_apply_may_name_are_stopped_within_a_minute() {
    run(async {
        let (fleet, listed) = thirty();
        let from = monday("17:30:00");
        let world = World::start(&short_night("", ""), &fleet, from).await;
        world.run_until(monday("18:06:30")).await;
        let roomy = short_night("max_new = 30", &listed);
        world.apply(&roomy).await;
        world.run_until(monday("18:08:30")).await;
        assert_eq!(world.touched().len(), 30);
        // A person starts one before the next inventory, and it stays that way.
        world.person("do-main/droplet/7", Act::PowerOn);
        world.run_until(monday("18:20:30")).await;
        assert_eq!(counted(&world).await, (0, 29));
        assert_eq!(world.changes().len(), 30);
    });
}

#[test]
fn another_name_of_their_schedule_holds_no_resource_back_from_the_start() {
    run(async {
        let (fleet, listed) = thirty();
        let before = short_night("max_new = 30", &listed);
        let world = World::start(&before, &fleet, monday("17:30:00")).await;
        world.run_until(monday("18:20:30")).await;
        assert_eq!(counted(&world).await, (0, 30));
        let renamed = short_night("", &listed).replace("schedules.office", "schedules.hours");
        world.apply(&renamed).await;
        world.run_until(monday("18:36:30")).await;
        assert_eq!(counted(&world).await, (0, 30));
        world.run_until(morning()).await;
        assert_eq!(counted(&world).await, (0, 0));
    });
}

/// Whether the first and the second Droplet are settled, and how.
async fn powers(world: &World) -> [Power; 2] {
    let mut powers = [Power::Between; 2];
    for (id, power) in (1..).zip(&mut powers) {
        let record = world.record(&format!("do-main/droplet/{id}")).await;
        if let Phase::Settled { at } = record.phase {
            *power = at;
        }
    }
    powers
}

/// Gives a Droplet another name, as a person.
fn rename(world: &World, id: u64, name: &str) {
    let name = name.to_owned();
    world.person(&format!("do-main/droplet/{id}"), Act::Rename { name });
}

#[test]
fn a_machine_follows_a_schedule_that_lists_its_name_for_as_long_as_it_has_it() {
    run(async {
        let fleet = [ACCOUNTS, &droplet(1, "ci-1", &[]), &droplet(2, "web", &[])].concat();
        let listed = short_night("", "resources = [\"CI-*\"]");
        let mut world = World::start(&listed, &fleet, monday("17:30:00")).await;
        world.run_until(monday("18:06:30")).await;
        assert_eq!(powers(&world).await, [Power::Stopped, Power::Running]);
        // The inventory finds new names as it finds new tags.
        rename(&world, 1, "done");
        rename(&world, 2, "ci-2");
        world.run_until(monday("18:16:30")).await;
        assert_eq!(powers(&world).await, [Power::Stopped; 2]);
        let orphaned = |o: &&lifecycle::Occurrence| matches!(o.event, Event::Orphaned { .. });
        assert_eq!(world.outcomes().iter().filter(orphaned).count(), 1);
        world.run_until(morning()).await;
        assert_eq!(powers(&world).await, [Power::Stopped, Power::Running]);
        rename(&world, 1, "ci-9");
        world.run_until(monday("19:20:30")).await;
        assert_eq!(powers(&world).await, [Power::Running; 2]);
    });
}

#[test]
fn what_an_apply_names_from_its_next_edge_on_is_left_until_then() {
    run(async {
        let fleet = [ACCOUNTS, &droplet(1, "web", &[])].concat();
        let world = World::start(&short_night("", ""), &fleet, monday("17:30:00")).await;
        world.run_until(monday("18:06:30")).await;
        let listed = "adopt = \"next-edge\"\nresources = [\"do-main/droplet/1\"]";
        world.apply(&short_night("", listed)).await;
        world.run_until(monday("18:12:30")).await;
        assert!(world.touched().is_empty(), "{:?}", world.touched());
        world.person("do-main/droplet/1", Act::PowerOff);
        world.run_until(monday("18:42:30")).await;
        assert_eq!(world.touched().len(), 1);
    });
}

#[test]
fn an_edge_between_an_apply_and_the_next_inventory_is_followed() {
    run(async {
        let fleet = [ACCOUNTS, &droplet(1, "web", &[])].concat();
        let world = World::start(&short_night("", ""), &fleet, monday("17:30:00")).await;
        world.run_until(monday("17:58:30")).await;
        let listed = "adopt = \"next-edge\"\nresources = [\"do-main/droplet/1\"]";
        world.apply(&short_night("", listed)).await;
        world.run_until(monday("18:02:30")).await;
        assert_eq!(world.touched().len(), 1);
    });
}

#[test]
fn a_command_for_a_schedule_leaves_out_what_is_held_and_names_it() {
    run(async {
        let fleet = [ACCOUNTS, &droplet(1, "old", &["offhours:office"])].concat();
        let configuration = short_night("max_new = 2", "");
        let world = World::start(&configuration, &fleet, monday("16:48:00")).await;
        world.run_until(monday("16:50:30")).await;
        for id in 2..=5 {
            world.create_droplet(id);
        }
        world.run_until(monday("16:55:30")).await;
        assert!(world.record("do-main/droplet/2").await.held);
        for target in [json!({ "schedule": "office" }), json!({ "account": "do-main" })] {
            let report = world.stop(&target).await;
            let held = report.outcomes.into_iter().find_map(|outcome| {
                if let Event::Held { resources, .. } = outcome.event {
                    Some(resources)
                } else {
                    None
                }
            });
            let held = held.unwrap();
            let names: Vec<_> = held.iter().map(|held| &*held.name).collect();
            assert_eq!(names, ["new-2", "new-3", "new-4", "new-5"]);
        }
        assert_eq!(world.touched().len(), 1, "{:?}", world.touched());
        let named = json!({ "resources": ["do-main/droplet/3"] });
        world.stop(&named).await;
        assert_eq!(world.touched().len(), 2);
        // A resource that Offhours has stopped is not held back from its start.
        world.run_until(monday("18:50:30")).await;
        let record = world.record("do-main/droplet/3").await;
        assert!(record.held);
        assert_eq!(record.phase, Phase::Settled { at: Power::Running });
    });
}
