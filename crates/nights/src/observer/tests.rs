//! What the tests of the observer's checks have in common: a Droplet and a database that follow office
//! hours.

use domain::resource::Size;
use serde_json::json;

use super::*;

pub(super) const DROPLET: &str = "do-main/droplet/1";
pub(super) const DATABASE: &str = "do-main/database/00000000-0000-4000-a000-000000000002";

const FLEET: &str = r#"
[[accounts]]
name = "do-main"
provider = "digitalocean"
token = "secret-of-do"

[[droplets]]
id = 1
name = "staging-1"
tags = ["offhours:office"]
size = "s-1vcpu-2gb"
disk = 50

[[databases]]
id = "00000000-0000-4000-a000-000000000002"
name = "staging-2"
tags = ["offhours:office"]
engine = "pg"
plan = "db-s-4vcpu-8gb"
"#;

/// Returns an instant of the week in which the tests take place: `mon 19:00`.
pub(super) fn at(text: &str) -> Timestamp {
    let (day, time) = text.split_once(' ').expect("a day and a time");
    let days = ["mon", "tue", "wed", "thu", "fri"];
    let day = 6 + days.iter().position(|name| *name == day).expect("a day of the week");
    format!("2026-07-{day:02}T{time}:00Z").parse().expect("an instant")
}

/// Returns an observer of the fleet whose resources run from 8:00 to 19:00, at an instant.
pub(super) fn observed(now: &str) -> Observer {
    let now = at(now);
    let fleet = FLEET.parse().expect("a fleet");
    let observer = Observer::new(
        Time::at(now, 1),
        Simulator::new(&fleet, Arc::new(move || now)),
        Machines::new(&BTreeMap::new()),
        Addresses::default(),
        Trace::default(),
    );
    let setup = json!({
        "accounts": {"do-main": {"provider": "digitalocean", "token": "env:DO"}},
        "schedules": {"office": {
            "schedule": {"timezone": "UTC", "start": "0 8 * * *", "stop": "0 19 * * *"}
        }},
    });
    observer.lock().setup = serde_json::from_value(setup).expect("a setup");
    observer
}

/// Returns the record of a resource that follows office hours and runs.
pub(super) fn record_of(reference: &str) -> Record {
    let reference: ResourceRef = reference.parse().expect("a reference");
    let mut resource = testing::seen(reference.id.clone());
    resource.tags.insert("offhours:office".to_owned());
    if let Size::Database(size) = &mut resource.size {
        size.plan = "db-s-4vcpu-8gb".to_owned();
    }
    let mut record = Record::first_seen(reference, &resource);
    record.opted_in = true;
    record.schedule = Some("office".parse().expect("a schedule's name"));
    record
}
