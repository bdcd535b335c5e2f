//! The exit status of a command.

use std::process::ExitCode;

use environment::settings::SettingError;

use crate::configuration_file::LoadError;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Done,
    /// Failed; the same command may succeed later.
    Failed,
    /// The command line or the configuration is wrong; nothing was done.
    BadUsage,
    /// Done, and something needs a person: for `offhours status`, its help says what that is.
    NeedsPerson,
    /// There is something to apply, which `offhours apply --dry-run --exit-code` asked for.
    Changes,
}

impl Exit {
    /// The exit status of a command that was carried out, in whole or in part.
    pub(crate) fn after(failed: bool, needs_person: bool) -> Self {
        match (failed, needs_person) {
            (true, _) => Self::Failed,
            (false, true) => Self::NeedsPerson,
            (false, false) => Self::Done,
        }
    }

    /// The exit status of a command that failed with this error.
    #[must_use]
    pub fn of(error: &anyhow::Error) -> Self {
        let is_usage = |cause: &(dyn std::error::Error + 'static)| {
            cause.is::<UsageError>()
                || cause.is::<LoadError>()
                || cause.is::<SettingError>()
                || cause.is::<local::Unusable>()
        };
        if error.chain().any(is_usage) { Self::BadUsage } else { Self::Failed }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::BadUsage => 2,
            Exit::NeedsPerson => 3,
            Exit::Changes => 4,
        })
    }
}

/// An invalid command line: what is wrong, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// Returns a [`UsageError`] from the function, with what [`format!`] makes of the arguments.
macro_rules! bail_usage {
    ($($text:tt)*) => {
        return Err($crate::exit::UsageError(format!($($text)*)).into())
    };
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn a_usage_error_is_known_through_any_context() {
        let usage = anyhow::Error::from(UsageError("no such schedule".to_owned()));
        assert_eq!(Exit::of(&usage), Exit::BadUsage);
        let wrapped = Err::<(), _>(usage).context("outer").unwrap_err();
        assert_eq!(Exit::of(&wrapped), Exit::BadUsage);
        assert_eq!(Exit::of(&anyhow::anyhow!("no answer")), Exit::Failed);
    }
}
