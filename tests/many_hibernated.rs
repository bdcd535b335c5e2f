//! An account with many machines that are kept as snapshots: how many requests it takes to look at
//! them.

use std::{collections::BTreeMap, ops::RangeInclusive};

use cloud_simulator::Act;
use domain::{hibernation::Mark, record::Record};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    hibernating::DIGITALOCEAN,
    support::{ACCOUNTS, World, droplets, monday, run, serve},
};

const IDS: RangeInclusive<u64> = 1001..=1060;

/// Runs until an instant, and returns how many requests the account's cloud answered in each
/// minute. None is refused for the rate limit.
async fn requests_until(world: &World, until: Timestamp) -> BTreeMap<i64, usize> {
    let log = world.simulator().log();
    let before = log.last().map_or(0, |entry| entry.sequence);
    world.run_until(until).await;
    let mut minutes = BTreeMap::new();
    for entry in world.simulator().log_after(before) {
        assert_ne!(entry.answer.map(|answer| answer.status), Some(429));
        *minutes.entry(entry.at.as_second() / 60).or_default() += 1;
    }
    minutes
}

/// A night in which these machines are hibernated, like another that the service has hibernated
/// itself: each has a snapshot at its cloud, and a record that knows it.
async fn night() -> World {
    let fleet = DIGITALOCEAN.fleet;
    let fleet = format!("{ACCOUNTS}{fleet}{}", droplets(IDS, &["team:ci"]));
    let world = World::start(DIGITALOCEAN.configuration, &fleet, monday("16:50:00")).await;
    world.run_until(monday("17:00:30")).await;
    let mut event = json!({"resources": [DIGITALOCEAN.machine], "by": "ada"});
    event["rehearsal"] = json!(true);
    world.stop(&event).await;
    world.run_until(monday("17:30:30")).await;
    event.as_object_mut().unwrap().remove("rehearsal");
    world.start_now(&event).await;
    world.run_until(monday("22:00:30")).await;
    let asleep = world.record(DIGITALOCEAN.machine).await;
    assert!(asleep.is_hibernated(), "{asleep:#?}");

    let http = provider::http_client().unwrap();
    let url = format!("http://{}/v2", serve(world.simulator().router()).await);
    for id in IDS {
        let name = format!("offhours.droplet.{id}.mark{id}");
        let request = http.post(format!("{url}/droplets/{id}/actions"));
        let request = request.bearer_auth("secret-do-token");
        let request = request.json(&json!({"type": "snapshot", "name": name}));
        assert!(request.send().await.unwrap().status().is_success());
    }
    world.run_until(monday("22:30:30")).await;
    let request = http.get(format!("{url}/snapshots?resource_type=droplet&per_page=200"));
    let answer = request.bearer_auth("secret-do-token").send().await.unwrap();
    let listed: Value = answer.json().await.unwrap();
    for snapshot in listed["snapshots"].as_array().unwrap() {
        let of: u64 = snapshot["resource_id"].as_str().unwrap().parse().unwrap();
        if !IDS.contains(&of) {
            continue;
        }
        let resource = droplet(of);
        world.person(&resource, Act::Delete);
        let known = world.record(&resource).await;
        let mut kept = asleep.hibernation.clone().unwrap();
        kept.snapshots.truncate(1);
        let one = &mut kept.snapshots[0];
        one.id = Some(snapshot["id"].as_str().unwrap().parse().unwrap());
        let name = snapshot["name"].as_str().unwrap();
        one.mark = Mark(name.rsplit_once('.').unwrap().1.to_owned());
        one.from = known.reference.id.clone();
        kept.wake_from = Some(one.mark.clone());
        kept.manifest.as_mut().unwrap().name.clone_from(&known.name);
        let record = Record {
            reference: known.reference,
            name: known.name,
            revision: known.revision,
            hibernation: Some(kept),
            ..asleep.clone()
        };
        world.local.store().save(record).await.unwrap();
    }
    world
}

fn droplet(id: u64) -> String {
    format!("do-main/droplet/{id}")
}

#[test]
fn however_many_are_hibernated_an_inventory_takes_one_list_of_their_snapshots() {
    run(async {
        let world = Box::pin(night()).await;
        world.run_until(monday("22:50:30")).await;
        let minutes = requests_until(&world, monday("23:50:30")).await;
        // Three lists of resources, one of GPU Droplets and one of snapshots, twelve times.
        assert_eq!(minutes.values().sum::<usize>(), 12 * 5, "{minutes:?}");
        for id in IDS {
            let record = world.record(&droplet(id)).await;
            assert!(record.is_hibernated(), "{record:#?}");
            assert_eq!(record.hibernation_problem(), None);
        }
    });
}

/// A look at a machine that is being hibernated takes several requests.
#[test]
fn a_snapshot_that_takes_an_hour_is_looked_at_once_a_minute() {
    run(async {
        let fleet =
            DIGITALOCEAN.fleet.replace("id = 42\nname", "id = 42\nsnapshot = \"3600s\"\nname");
        let fleet = format!("{ACCOUNTS}{fleet}");
        let world = World::start(DIGITALOCEAN.configuration, &fleet, monday("16:50:00")).await;
        world.run_until(monday("17:00:30")).await;
        let event = json!({
            "resources": [DIGITALOCEAN.machine], "by": "ada", "rehearsal": true,
        });
        world.stop(&event).await;
        world.run_until(monday("17:10:30")).await;
        let minutes = requests_until(&world, monday("17:50:30")).await;
        let between: Vec<_> = minutes.values().copied().collect();
        // One look, and every five minutes the lists of an inventory.
        assert!(between.iter().all(|&count| count <= 12), "{minutes:?}");
        world.run_until(monday("18:30:30")).await;
        let record = world.record(DIGITALOCEAN.machine).await;
        assert!(record.is_hibernated(), "{record:#?}");
    });
}

/// Each has to be asked for by its number then.
#[test]
fn snapshots_that_are_not_listed_are_looked_for_at_a_pace() {
    run(async {
        let world = Box::pin(night()).await;
        world.run_until(monday("22:50:30")).await;
        for id in IDS {
            let record = world.record(&droplet(id)).await;
            let kept = record.hibernation.unwrap();
            let snapshot = kept.waking_snapshot().unwrap().id.unwrap();
            let account = record.reference.account;
            assert!(world.simulator().delete_image(&account, snapshot));
        }
        let minutes = requests_until(&world, monday("23:50:30")).await;
        // A minute's part of the hourly limit, and the lists.
        assert!(minutes.values().all(|&count| count <= 83 + 5), "{minutes:?}");
        for id in IDS {
            let record = world.record(&droplet(id)).await;
            assert!(record.hibernation_problem().is_some(), "{record:#?}");
        }
    });
}

/// Nothing of it is listed any more but the machine itself.
#[test]
fn a_machine_that_takes_the_place_of_one_is_noticed() {
    run(async {
        let world = Box::pin(night()).await;
        world.run_until(monday("22:50:30")).await;
        for (id, name, tag) in
            [(5001, "web-1001", "team:ci"), (5002, "other", "offhours-of:droplet-1002")]
        {
            let mut new = crate::support::droplet(id, name, &[tag]);
            new.push_str("account = \"do-main\"\n");
            world.simulator().create(&new).unwrap();
        }
        let minutes = requests_until(&world, monday("23:00:30")).await;
        // The first one makes sure, by a list of snapshots, that this is not another project.
        assert!(minutes.values().sum::<usize>() <= 2 * (4 + 8) + 1, "{minutes:?}");
        // A Droplet's name is not unique: another one with it is no obstacle.
        let free = world.record(&droplet(1001)).await;
        assert_eq!(free.hibernation_problem(), None);
        let taken = world.record(&droplet(1002)).await;
        let problem = taken.hibernation_problem().unwrap();
        assert!(problem.contains("droplet/5002"), "{problem}");
    });
}
