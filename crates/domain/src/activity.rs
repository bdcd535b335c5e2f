//! What persons changed: who, when, what and why.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    configuration::{Override, OverrideTarget, Pause, PauseScope},
    edge::{Direction, Generation},
    reference::{AccountName, ResourceRef, ScheduleName},
    schedule::Desired,
    text::{self, LONGEST_AUTHOR, one_line},
};

/// The most resources that one entry names; more of them make several entries. An item of the store
/// has room for many more.
pub const RESOURCES: usize = 400;

/// How many of an apply's changes one line names.
const SHOWN: usize = 5;

/// The most characters of the shell's name for its user.
const SHELL_CHARACTERS: usize = 32;

/// Who changes something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Person {
    /// The name: at AWS the part of the ARN that names a user or a role's session.
    #[serde(deserialize_with = "text::line")]
    name: String,
    /// The ARN, as AWS says; absent for a local store.
    #[serde(
        default,
        deserialize_with = "text::optional_line",
        skip_serializing_if = "Option::is_none"
    )]
    arn: Option<String>,
    /// The user's name according to the shell, which anyone may set; absent if it is the same.
    #[serde(
        default,
        deserialize_with = "text::optional_line",
        skip_serializing_if = "Option::is_none"
    )]
    shell: Option<String>,
}

impl Person {
    /// Creates a person of whom AWS says this ARN.
    #[must_use]
    pub fn of_arn(arn: String) -> Self {
        let resource = arn.splitn(6, ':').nth(5).unwrap_or(&arn);
        let name = resource.split_once('/').map_or(resource, |(_, name)| name);
        Self { name: name.to_owned(), arn: Some(arn), shell: None }
    }

    /// Adds the user's name according to the shell.
    #[must_use]
    pub fn with_shell(mut self, shell: Option<String>) -> Self {
        let shell = shell.filter(|name| !name.is_empty() && *name != self.name);
        self.shell = shell.map(|name| one_line(&name, SHELL_CHARACTERS).into_owned());
        self
    }

    /// Reports whether this text is part of any of the names, regardless of case.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let names = [Some(&self.name), self.arn.as_ref(), self.shell.as_ref()];
        names.into_iter().flatten().any(|name| name.to_lowercase().contains(&text))
    }
}

impl From<&str> for Person {
    fn from(name: &str) -> Self {
        Self { name: one_line(name, LONGEST_AUTHOR).into_owned(), arn: None, shell: None }
    }
}

/// `ada`, or `platform/ada@example.com (ada)` if the shell has another name.
impl fmt::Display for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.shell {
            Some(shell) => write!(f, " ({shell})"),
            None => Ok(()),
        }
    }
}

/// Who makes a change, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    pub by: Person,
    /// Why; `None` if no reason was given.
    pub why: Option<String>,
}

impl Author {
    /// Makes the entry of what this author does.
    #[must_use]
    pub fn does(&self, action: Action, at: Timestamp) -> Activity {
        Activity { at, by: self.by.clone(), action, why: self.why.clone() }
    }
}

/// A person without a reason.
impl From<&str> for Author {
    fn from(name: &str) -> Self {
        Self { by: name.into(), why: None }
    }
}

/// An entry of the activity log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Activity {
    /// When it happened.
    pub at: Timestamp,
    /// Who did it.
    pub by: Person,
    /// What was done.
    pub action: Action,
    /// Why; absent if no reason was given.
    #[serde(
        default,
        deserialize_with = "text::optional_line",
        skip_serializing_if = "Option::is_none"
    )]
    pub why: Option<String>,
}

/// What a person did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// A stop or a start by hand was asked for.
    Command {
        /// Stop or start.
        direction: Direction,
        /// What it applies to.
        target: CommandTarget,
    },
    /// An override was set.
    OverrideSet {
        /// The resource or schedule that it applies to.
        target: OverrideTarget,
        /// The desired state.
        desired: Desired,
        /// When it begins; absent from entries of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        begins_at: Option<Timestamp>,
        /// When it ends.
        ends_at: Timestamp,
    },
    /// An override was ended.
    OverrideCleared {
        /// The resource or schedule that it applied to.
        target: OverrideTarget,
    },
    /// A pause was set.
    Paused {
        /// The resources that it applies to.
        scope: PauseScope,
        /// Whether starts are sent all the same.
        starts: bool,
        /// When it ends.
        ends_at: Timestamp,
    },
    /// A pause was ended.
    Resumed {
        /// The resources that it applied to.
        scope: PauseScope,
    },
    /// Held resources were approved.
    Approved {
        /// The resources.
        resources: Vec<ResourceRef>,
    },
    /// A record was deleted.
    Forgotten {
        /// The resource.
        resource: ResourceRef,
    },
    /// A configuration was brought into force.
    Applied {
        /// Its generation.
        generation: Generation,
        /// For a rollback: the generation whose content it repeats.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repeats: Option<Generation>,
        /// What it changed, in a line for the settings and for each account and schedule.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changes: Vec<String>,
    },
}

impl Action {
    #[must_use]
    pub fn set(one: &Override) -> Self {
        let Override { target, desired, set_at, ends_at, .. } = one.clone();
        Self::OverrideSet { target, desired, begins_at: Some(set_at), ends_at }
    }

    #[must_use]
    pub fn paused(pause: &Pause) -> Self {
        let Pause { scope, starts, ends_at, .. } = pause.clone();
        Self::Paused { scope, starts, ends_at }
    }

    /// Returns the scope of the pause that was set or ended.
    #[must_use]
    pub fn pause_scope(&self) -> Option<&PauseScope> {
        match self {
            Self::Paused { scope, .. } | Self::Resumed { scope } => Some(scope),
            Self::Command { .. }
            | Self::OverrideSet { .. }
            | Self::OverrideCleared { .. }
            | Self::Approved { .. }
            | Self::Forgotten { .. }
            | Self::Applied { .. } => None,
        }
    }

    /// Returns the target of the override that was set or cleared.
    #[must_use]
    pub fn overridden(&self) -> Option<&OverrideTarget> {
        match self {
            Self::OverrideSet { target, .. } | Self::OverrideCleared { target } => Some(target),
            Self::Command { .. }
            | Self::Paused { .. }
            | Self::Resumed { .. }
            | Self::Approved { .. }
            | Self::Forgotten { .. }
            | Self::Applied { .. } => None,
        }
    }

    /// Returns everything that it names, as a person would: `do-main/droplet/1`, `schedule office`,
    /// `account hz-eu`.
    #[must_use]
    pub fn targets(&self) -> Vec<String> {
        let all = |resources: &[ResourceRef]| resources.iter().map(ToString::to_string).collect();
        match self {
            Self::Command { target, .. } => match target {
                CommandTarget::Resources(resources) => all(resources),
                CommandTarget::Schedule(name) => vec![format!("schedule {name}")],
                CommandTarget::Account(name) => vec![format!("account {name}")],
            },
            Self::OverrideSet { target, .. } | Self::OverrideCleared { target } => {
                vec![target.to_string()]
            }
            Self::Paused { scope, .. } | Self::Resumed { scope } => vec![scope.to_string()],
            Self::Approved { resources } => all(resources),
            Self::Forgotten { resource } => vec![resource.to_string()],
            Self::Applied { .. } => Vec::new(),
        }
    }

    /// Returns what was done, without its targets: `stop`, `override running`, `apply`.
    #[must_use]
    pub fn verb(&self) -> String {
        match self {
            Self::Command { direction, .. } => direction.to_string(),
            Self::OverrideSet { desired, .. } => format!("override {desired}"),
            Self::OverrideCleared { .. } => "override clear".to_owned(),
            Self::Paused { starts: false, .. } => "pause".to_owned(),
            Self::Paused { starts: true, .. } => "pause stops".to_owned(),
            Self::Resumed { .. } => "resume".to_owned(),
            Self::Approved { .. } => "approve".to_owned(),
            Self::Forgotten { .. } => "forget".to_owned(),
            Self::Applied { .. } => "apply".to_owned(),
        }
    }
}

/// What a command applies to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CommandTarget {
    /// These resources.
    Resources(Vec<ResourceRef>),
    /// Every resource that follows a schedule.
    Schedule(ScheduleName),
    /// Every resource of an account that follows some schedule.
    Account(AccountName),
}

impl CommandTarget {
    /// Splits many resources into parts of which each fits one entry of the activity log.
    #[must_use]
    pub fn parts(&self) -> Vec<Self> {
        match self {
            Self::Resources(resources) => {
                let parts = resources.chunks(RESOURCES);
                parts.map(|part| Self::Resources(part.to_vec())).collect()
            }
            Self::Schedule(_) | Self::Account(_) => vec![self.clone()],
        }
    }
}

impl Activity {
    /// When the override begins that was set, if that was not at once.
    #[must_use]
    pub fn begins_later(&self) -> Option<Timestamp> {
        let Action::OverrideSet { begins_at, .. } = self.action else {
            return None;
        };
        begins_at.filter(|&begin| begin > self.at)
    }
}

/// One line for people, in UTC.
impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = &self.by;
        match &self.action {
            Action::OverrideSet { target, desired, ends_at, .. } => {
                let from = self.begins_later().map(|at| format!("from {} ", text::in_utc(at)));
                let (from, until) = (from.unwrap_or_default(), text::in_utc(*ends_at));
                write!(f, "{target} is overridden by {by}: {desired} {from}until {until}")?;
            }
            Action::OverrideCleared { target } => {
                write!(f, "the override of {target} is cleared by {by}")?;
            }
            Action::Paused { scope, starts, ends_at } => {
                let until = text::in_utc(*ends_at);
                let but = if *starts { ", except for starts" } else { "" };
                write!(f, "{scope} is paused by {by} until {until}{but}")?;
            }
            Action::Resumed { scope } => write!(f, "the pause of {scope} is ended by {by}")?,
            Action::Applied { generation, repeats, changes } => {
                write!(f, "generation {generation} is applied by {by}")?;
                if let Some(repeats) = repeats {
                    write!(f, ", a rollback to generation {repeats}")?;
                }
                let shown: Vec<_> = changes.iter().take(SHOWN).map(String::as_str).collect();
                if !shown.is_empty() {
                    write!(f, ": {}", shown.join("; "))?;
                }
                match changes.len() - shown.len() {
                    0 => {}
                    more => write!(f, " and {more} more")?,
                }
            }
            action @ (Action::Command { .. }
            | Action::Approved { .. }
            | Action::Forgotten { .. }) => {
                write!(f, "{} {} by {by}", action.verb(), action.targets().join(", "))?;
            }
        }
        match &self.why {
            Some(why) => write!(f, " ({why})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aws_names_users_and_the_sessions_of_roles() {
        for (arn, name) in [
            ("arn:aws:iam::111122223333:user/ada", "ada"),
            ("arn:aws:iam::111122223333:user/team/ada", "team/ada"),
            (
                "arn:aws:sts::111122223333:assumed-role/platform/ada@example.com",
                "platform/ada@example.com",
            ),
            ("arn:aws:iam::111122223333:root", "root"),
            ("unusual", "unusual"),
        ] {
            let person = Person::of_arn(arn.to_owned());
            assert_eq!(person.to_string(), name);
            assert!(person.matches("111122223333") || arn == "unusual");
        }
    }

    #[test]
    fn the_shell_stands_beside_another_name_and_never_instead_of_it() {
        let shown = |shell: &str| {
            let person = Person::from("ada").with_shell(Some(shell.to_owned()));
            person.to_string()
        };
        assert_eq!(shown("boss"), "ada (boss)");
        for ignored in ["ada", ""] {
            assert_eq!(shown(ignored), "ada");
        }
        assert_eq!(shown("a\nb"), "ada (a b)");
        assert_eq!(shown(&"x".repeat(33)), format!("ada ({}…)", "x".repeat(31)));
        let person = Person::from("ada").with_shell(Some("Boss".to_owned()));
        assert!(person.matches("boss") && person.matches("AD") && !person.matches("eve"));
    }
}
