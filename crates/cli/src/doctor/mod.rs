//! The checks of `offhours doctor`: one function per check, each returning its findings.
//!
//! Checks of records and rules are pure; those that query something are given what they query.

pub(crate) mod accounts;
pub(crate) mod alerts;
pub(crate) mod clock;
pub(crate) mod functions;
pub(crate) mod hibernation;
pub(crate) mod notify;
pub(crate) mod records;
pub(crate) mod rules;
pub(crate) mod store;

use schemars::JsonSchema;
use serde::Serialize;

/// One finding of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Finding {
    /// The check that was made.
    pub check: Check,
    /// How serious it is.
    pub level: Level,
    /// The account, resource, schedule, table or function that it concerns; null if it concerns the
    /// whole.
    pub subject: Option<String>,
    /// What was found.
    pub found: String,
    /// What to do about it; null if nothing has to be done.
    pub remedy: Option<String>,
}

/// The subject of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Check {
    /// The store and its tables, and whether its items can be read.
    Store,
    /// The configuration in force.
    Configuration,
    /// The clocks of this machine, the store and the providers.
    Clock,
    /// The accounts' tokens and their permissions.
    Token,
    /// What is left of the providers' rate limits.
    RateLimit,
    /// The last inventory of each account.
    Inventory,
    /// The functions that do the work.
    Functions,
    /// Whether the stack's alerts and alarms reach someone.
    Alerts,
    /// Whether the targets of `[notify]` accept events.
    Notify,
    /// What prevents hibernating machines.
    Hibernation,
    /// Resources that are stuck, refused, held, owed a size or overdue.
    Records,
    /// Tags that name schedules, and schedules that nothing follows.
    Schedules,
    /// The resources that the schedules list.
    References,
    /// The targets of the overrides.
    Overrides,
    /// The pauses in force.
    Pauses,
    /// The resources that `protect` covers.
    Protect,
    /// The members of the groups, and what these follow.
    Groups,
}

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Level {
    /// It is as it should be.
    Ok,
    /// It may be unintended, may become a problem, or clears by itself.
    Warning,
    /// A person is needed, or the check could not be made.
    Problem,
}

impl Finding {
    pub(crate) fn ok(check: Check, found: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, subject: None, found: found.into(), remedy: None }
    }

    pub(crate) fn warning(
        check: Check,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { level: Level::Warning, remedy: Some(remedy.into()), ..Self::ok(check, found) }
    }

    pub(crate) fn problem(
        check: Check,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { level: Level::Problem, ..Self::warning(check, found, remedy) }
    }

    pub(crate) fn of(self, subject: &(impl ToString + ?Sized)) -> Self {
        Self { subject: Some(subject.to_string()), ..self }
    }
}

/// The findings, or a single `ok` if there are none.
pub(crate) fn or_ok(findings: Vec<Finding>, check: Check, ok: impl Into<String>) -> Vec<Finding> {
    if findings.is_empty() { vec![Finding::ok(check, ok)] } else { findings }
}
