//! What `offhours doctor` checks: one function per check, each answering with what it found.
//!
//! Checks over records and rules are pure; those that ask others are given what they ask.

pub(crate) mod accounts;
pub(crate) mod clock;
pub(crate) mod functions;
pub(crate) mod hibernation;
pub(crate) mod records;
pub(crate) mod rules;
pub(crate) mod store;

use schemars::JsonSchema;
use serde::Serialize;

/// One thing that a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Finding {
    /// What was checked.
    pub check: Check,
    /// How bad it is.
    pub verdict: Verdict,
    /// Of which account, resource, schedule, table or function; null for the whole.
    pub subject: Option<String>,
    /// What was found.
    pub found: String,
    /// What to do about it; null where nothing is to be done.
    pub remedy: Option<String>,
}

/// What is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Check {
    /// The store and its tables, and whether its items can be read.
    Store,
    /// The configuration in force.
    Configuration,
    /// The clocks of this machine, the store and the providers.
    Clock,
    /// The accounts' tokens and their rights.
    Token,
    /// What is left of the providers' rate limits.
    RateLimit,
    /// The last inventory of each account.
    Inventory,
    /// The functions that do the work.
    Functions,
    /// What stands in the way of hibernating machines.
    Hibernation,
    /// What is stuck, refused, held, owed or overdue.
    Records,
    /// Tags that name schedules, and schedules that nothing follows.
    Schedules,
    /// What the schedules list.
    References,
    /// What overrides are about.
    Overrides,
    /// What `protect` covers.
    Protect,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// As it should be.
    Ok,
    /// Nothing is wrong, but it may not be meant.
    Hint,
    /// May become a problem, or mends itself.
    Warning,
    /// A person is needed.
    Problem,
    /// The check could not be made.
    Unknown,
}

impl Verdict {
    /// The word for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Hint => "hint",
            Self::Warning => "warning",
            Self::Problem => "problem",
            Self::Unknown => "unknown",
        }
    }
}

impl Finding {
    pub(crate) fn ok(check: Check, found: impl Into<String>) -> Self {
        Self {
            check,
            verdict: Verdict::Ok,
            subject: None,
            found: found.into(),
            remedy: None,
        }
    }

    pub(crate) fn hint(check: Check, found: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Hint,
            ..Self::ok(check, found)
        }
    }

    pub(crate) fn warning(
        check: Check,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            verdict: Verdict::Warning,
            remedy: Some(remedy.into()),
            ..Self::ok(check, found)
        }
    }

    pub(crate) fn problem(
        check: Check,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            verdict: Verdict::Problem,
            ..Self::warning(check, found, remedy)
        }
    }

    pub(crate) fn unknown(
        check: Check,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            verdict: Verdict::Unknown,
            ..Self::warning(check, found, remedy)
        }
    }

    pub(crate) fn of(self, subject: &(impl ToString + ?Sized)) -> Self {
        Self {
            subject: Some(subject.to_string()),
            ..self
        }
    }
}

/// The findings; without any, one that says `ok`.
pub(crate) fn or_ok(findings: Vec<Finding>, check: Check, ok: impl Into<String>) -> Vec<Finding> {
    if findings.is_empty() {
        return vec![Finding::ok(check, ok)];
    }
    findings
}
