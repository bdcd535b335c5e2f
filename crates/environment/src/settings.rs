//! Settings from environment variables, parsed once at cold start.

use std::env;

use domain::configuration::{Floor, Mode, PatternError};

/// A setting that is missing or invalid, which fails the start.
#[derive(Debug, thiserror::Error)]
#[error("the environment variable {name} {problem}")]
pub struct SettingError {
    name: &'static str,
    problem: String,
}

impl SettingError {
    /// Creates the error of an invalid setting; `problem` continues the message after its name.
    #[must_use]
    pub fn new(name: &'static str, problem: impl Into<String>) -> Self {
        Self { name, problem: problem.into() }
    }
}

pub const TABLE_PREFIX: &str = "OFFHOURS_TABLE_PREFIX";

/// The event bus, or `none` to publish nothing.
pub const EVENT_BUS: &str = "OFFHOURS_EVENT_BUS";

/// The one host besides loopback to which a token may be sent over plain HTTP: a simulator in a
/// network of containers. No template sets it.
pub const PLAIN_HTTP_HOST: &str = "OFFHOURS_PLAIN_HTTP_HOST";

/// The base addresses, separated by commas, that accounts may name in place of their provider's own.
/// The template's parameter `AccountUrls`.
pub const ACCOUNT_URLS: &str = "OFFHOURS_ACCOUNT_URLS";

/// Set to `1`, functions also read tokens from their environment variables and from files: for
/// `cargo lambda watch`. No template sets it.
pub const LOCAL_TOKENS: &str = "OFFHOURS_LOCAL_TOKENS";

/// Patterns, separated by commas, of resources that are never touched, as in the configuration's
/// `protect`. The template's parameter `Protect`.
pub const PROTECT: &str = "OFFHOURS_PROTECT";

/// Set to `observe`, nothing is sent, whatever the configuration says. The template's parameter
/// `Mode`.
pub const MODE: &str = "OFFHOURS_MODE";

/// The host of the bucket into which publish writes: `NAME.s3.eu-central-1.amazonaws.com`.
pub const BUCKET: &str = "OFFHOURS_BUCKET";

pub const STOP_FUNCTION: &str = "OFFHOURS_STOP_FUNCTION";

pub const START_FUNCTION: &str = "OFFHOURS_START_FUNCTION";

/// The name of the function that observes.
pub const POLL_STATUS_FUNCTION: &str = "OFFHOURS_POLL_STATUS_FUNCTION";

/// The name of the function that decides.
pub const DISPATCH_FUNCTION: &str = "OFFHOURS_DISPATCH_FUNCTION";

pub fn required(name: &'static str) -> Result<String, SettingError> {
    optional(name).ok_or_else(|| SettingError::new(name, "is not set"))
}

/// Reads an optional setting; an empty one counts as absent.
#[must_use]
pub fn optional(name: &'static str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Reads a function's name or ARN, which is required.
pub fn function(name: &'static str) -> Result<String, SettingError> {
    let function = required(name)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_:$".contains(c);
    if function.chars().all(fits) {
        Ok(function)
    } else {
        let problem =
            format!("is `{function}`: only letters, digits, `-`, `_` and `:` are allowed");
        Err(SettingError::new(name, problem))
    }
}

/// Reads the guard rails of the deployment: none unless set.
pub fn floor() -> Result<Floor, SettingError> {
    floor_of(optional)
}

/// Parses the guard rails of a deployment from the values of its settings.
pub fn floor_of(value: impl Fn(&'static str) -> Option<String>) -> Result<Floor, SettingError> {
    let protect = value(PROTECT).unwrap_or_default();
    let patterns = protect.split(',').map(str::trim).filter(|one| !one.is_empty());
    let protect: Result<_, PatternError> = patterns.map(str::parse).collect();
    let mode = match value(MODE).as_deref() {
        None | Some("" | "act") => Mode::Act,
        Some("observe") => Mode::Observe,
        Some(other) => {
            let problem = format!("is `{other}`: write act or observe");
            return Err(SettingError::new(MODE, problem));
        }
    };
    Ok(Floor {
        protect: protect.map_err(|error| SettingError::new(PROTECT, format!("has an {error}")))?,
        mode,
    })
}

/// Returns the stack's name, derived from the prefix of its tables.
#[must_use]
pub fn stack(table_prefix: &str) -> &str {
    table_prefix.strip_suffix('-').filter(|stack| !stack.is_empty()).unwrap_or(table_prefix)
}

/// Reads the prefix of the tables' names: `offhours-` unless set.
pub fn table_prefix() -> Result<String, SettingError> {
    let prefix = optional(TABLE_PREFIX).unwrap_or_else(|| "offhours-".to_owned());
    let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if prefix.chars().all(fits) {
        Ok(prefix)
    } else {
        let problem = format!("is `{prefix}`: only letters, digits, `_`, `.` and `-` are allowed");
        Err(SettingError::new(TABLE_PREFIX, problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_protects_and_observes_as_it_is_set_or_not_at_all() {
        let floor = |protect: &str, mode: &str| {
            let (protect, mode) = (protect.to_owned(), mode.to_owned());
            floor_of(move |name| Some(if name == PROTECT { &protect } else { &mode }.clone()))
        };
        assert_eq!(floor("", "").unwrap(), Floor::default());
        assert_eq!(floor_of(|_| None).unwrap(), Floor::default());
        let strict = floor("name:*prod*, do-main/droplet/7,", "observe").unwrap();
        let patterns: Vec<_> = strict.protect.iter().map(ToString::to_string).collect();
        assert_eq!(patterns, ["name:*prod*", "do-main/droplet/7"]);
        assert_eq!(strict.mode, Mode::Observe);
        for (protect, mode, named) in [("prod", "", PROTECT), ("", "watch", MODE)] {
            let error = floor(protect, mode).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn a_stack_is_the_prefix_of_its_tables_without_the_dash() {
        for (prefix, name) in
            [("offhours-", "offhours"), ("a-b-", "a-b"), ("plain", "plain"), ("-", "-")]
        {
            assert_eq!(stack(prefix), name);
        }
    }
}
