//! Configurations for tests.

use std::sync::Arc;

use domain::{
    configuration::{Override, Overrides},
    decision::InForce,
};

pub(crate) use testing::scene::*;

/// Two accounts, and the schedule `office`: Monday to Friday, 08:00 to 18:00 UTC.
pub(crate) const OFFICE: &str = r#"
generation = 1
settings = { protect = ["name:*prod*"] }
accounts.do-main = { provider = "digitalocean", token = "env:DO" }
accounts.hz-eu = { provider = "hetzner", token = "env:HZ" }
[schedules.office]
schedule = { timezone = "UTC", periods = [{ weekdays = "mon-fri", begin = "08:00", end = "18:00" }] }
"#;

/// What is in force with this configuration, as it is stored.
pub(crate) fn in_force(stored: &str) -> InForce {
    InForce {
        configuration: Arc::new(toml::from_str(stored).unwrap()),
        overrides: Overrides::default(),
        since: None,
    }
}

pub(crate) fn with_overrides(stored: &str, overrides: Vec<Override>) -> InForce {
    InForce { overrides: overrides.into_iter().collect(), ..in_force(stored) }
}
