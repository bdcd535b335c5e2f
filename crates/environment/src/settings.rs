//! Settings from environment variables, parsed once at cold start.

use std::env;

/// A setting that is missing or wrong; the start ends with it.
#[derive(Debug, thiserror::Error)]
#[error("the environment variable {name} {problem}")]
pub struct SettingError {
    name: &'static str,
    problem: String,
}

/// The prefix of the tables' names.
pub const TABLE_PREFIX: &str = "OFFHOURS_TABLE_PREFIX";

/// DigitalOcean's base address, if not the public one.
pub const DIGITALOCEAN_URL: &str = "OFFHOURS_DIGITALOCEAN_URL";

/// Hetzner's base address, if not the public one.
pub const HETZNER_URL: &str = "OFFHOURS_HETZNER_URL";

/// The event bus that is told, or `none` to tell nobody.
pub const EVENT_BUS: &str = "OFFHOURS_EVENT_BUS";

/// The name of the function that stops.
pub const STOP_FUNCTION: &str = "OFFHOURS_STOP_FUNCTION";

/// The name of the function that starts.
pub const START_FUNCTION: &str = "OFFHOURS_START_FUNCTION";

/// The name of the function that observes.
pub const POLL_STATUS_FUNCTION: &str = "OFFHOURS_POLL_STATUS_FUNCTION";

/// The name of the function that decides.
pub const DISPATCH_FUNCTION: &str = "OFFHOURS_DISPATCH_FUNCTION";

/// A setting that must be there.
pub fn required(name: &'static str) -> Result<String, SettingError> {
    optional(name).ok_or(SettingError {
        name,
        problem: "is not set".to_owned(),
    })
}

/// A setting that may be absent; empty counts as absent.
#[must_use]
pub fn optional(name: &'static str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// The prefix of the tables' names: `offhours-` unless set.
pub fn table_prefix() -> Result<String, SettingError> {
    let prefix = optional(TABLE_PREFIX).unwrap_or_else(|| "offhours-".to_owned());
    let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if prefix.chars().all(fits) {
        Ok(prefix)
    } else {
        Err(SettingError {
            name: TABLE_PREFIX,
            problem: format!("is `{prefix}`: only letters, digits, `_`, `.` and `-` are allowed"),
        })
    }
}
