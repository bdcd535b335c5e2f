//! Which schedule a resource follows, by which rule, and what forbids touching it.

use std::collections::BTreeSet;

use crate::{
    configuration::{Configuration, NamePattern, Pattern, PauseScope, Policy, Rule, Selector},
    record::Record,
    reference::{AccountName, MachineName, ResourceId, ResourceRef, ScheduleName},
    resource::{Cluster, Resource},
    tags::{OPT_OUT, names_in},
};

/// The facts that membership is judged by, from a record or from a fresh observation.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    reference: &'a ResourceRef,
    name: &'a str,
    cluster: Option<&'a Cluster>,
    tags: &'a BTreeSet<String>,
    unsupported: Option<&'a str>,
    duplicate_of: Option<&'a ResourceRef>,
}

impl<'a> Subject<'a> {
    /// Returns the subject as the last inventory left it.
    #[must_use]
    pub fn recorded(record: &'a Record) -> Self {
        Self {
            reference: &record.reference,
            name: &record.name,
            cluster: record.cluster.as_ref(),
            tags: &record.tags,
            unsupported: record.unsupported.as_deref(),
            duplicate_of: record.duplicate_of.as_ref(),
        }
    }

    /// Returns the subject as an observation shows it, except that only an inventory sees resources
    /// that two accounts reach.
    #[must_use]
    pub fn seen(record: &'a Record, resource: &'a Resource) -> Self {
        Self {
            reference: &record.reference,
            name: &resource.name,
            cluster: resource.cluster.as_ref(),
            tags: &resource.tags,
            unsupported: resource.unsupported.as_deref(),
            duplicate_of: record.duplicate_of.as_ref(),
        }
    }

    pub(crate) fn account(self) -> &'a AccountName {
        &self.reference.account
    }

    /// Reports whether a pattern covers the resource: by its reference, or by a name or tag of the
    /// resource or its cluster.
    #[must_use]
    pub fn is_covered_by(self, pattern: &Pattern) -> bool {
        let tags = self.cluster.into_iter().flat_map(|cluster| &cluster.tags);
        let tags = self.tags.iter().chain(tags).map(String::as_str);
        pattern.covers(self.reference, self.names(), tags)
    }

    /// Reports whether a pause of this scope applies to it.
    pub(crate) fn is_within(
        self,
        scope: &PauseScope,
        schedule: Option<&ScheduleName>,
        configuration: &Configuration,
    ) -> bool {
        match scope {
            PauseScope::Everything => true,
            // The account may have been renamed since.
            PauseScope::Account(name) => configuration.present_name(name) == self.account(),
            PauseScope::Schedule(name) => schedule == Some(name),
            PauseScope::Tag(pattern) => self.is_covered_by(pattern),
        }
    }

    /// Reports whether the resource or its cluster has such a name.
    #[must_use]
    pub fn is_named_by(self, pattern: &NamePattern) -> bool {
        pattern.covers(self.names())
    }

    /// Returns the entries of schedules' lists that name the resource, each with its schedule.
    pub fn listing(
        self,
        configuration: &'a Configuration,
    ) -> impl Iterator<Item = (&'a ScheduleName, Selector)> {
        configuration.schedules.listing(self.reference, self.names())
    }

    /// Returns the names of the resource and of its cluster.
    fn names(self) -> impl Iterator<Item = &'a str> + Clone {
        std::iter::once(self.name).chain(self.cluster.map(|cluster| cluster.name.as_str()))
    }
}

/// What a resource follows, or why it follows nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Membership {
    /// Never touched, by any means.
    Excluded(Exclusion),
    /// Follows a schedule.
    Member {
        schedule: ScheduleName,
        /// The rule by which it follows.
        via: Via,
    },
    /// A tag names a schedule that does not exist.
    Unknown {
        word: String,
        /// The rule that the tag belongs to.
        via: Via,
    },
    /// No list or tag names a schedule for it.
    Unnamed,
}

/// Why a resource is never touched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Exclusion {
    /// Its account is not configured, so there is no token to act with.
    #[error("the account `{0}` is not configured")]
    NoAccount(AccountName),
    /// Its account has no such machine any more, so there is no command to act with.
    #[error("its account has no machine `{0}`")]
    NoMachine(MachineName),
    /// A pattern of the deployment covers it, which no configuration removes.
    #[error("protected by `{0}`, which the deployment sets")]
    ProtectedByDeployment(Pattern),
    /// A pattern of `protect` covers it.
    #[error("protected by `{0}`")]
    Protected(Pattern),
    #[error("opted out by a tag on the {}", if *.on_cluster { "cluster" } else { "resource" })]
    OptedOut {
        /// Whether the cluster carries the tag.
        on_cluster: bool,
    },
    /// Offhours does not support it.
    #[error("{0}")]
    Unsupported(String),
    #[error("conflict: {first} and {second} both name it by {via}")]
    TwoSchedules {
        first: String,
        second: String,
        /// The level on which they name it.
        via: Via,
    },
    #[error("conflict: also reached as {0}")]
    TwoAccounts(ResourceRef),
}

impl Exclusion {
    /// Reports whether a person's start by name restores what Offhours holds stopped all the same.
    #[must_use]
    pub fn yields_to_a_start(&self) -> bool {
        matches!(self, Self::OptedOut { .. })
    }

    /// Reports whether this is a contradiction that a person has to settle.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        match self {
            Self::TwoSchedules { .. } | Self::TwoAccounts(_) => true,
            Self::NoAccount(_)
            | Self::NoMachine(_)
            | Self::ProtectedByDeployment(_)
            | Self::Protected(_)
            | Self::OptedOut { .. }
            | Self::Unsupported(_) => false,
        }
    }
}

/// The rule by which a resource joined, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Via {
    /// Named in the schedule's `resources`, by its reference or by a name.
    Listed,
    /// Its own tag or label.
    Tag,
    ClusterTag,
}

impl Via {
    /// All of them, strongest first.
    pub const ALL: [Self; 3] = [Self::Listed, Self::Tag, Self::ClusterTag];
}

impl std::fmt::Display for Via {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Listed => "the schedule's list",
            Self::Tag => "tag",
            Self::ClusterTag => "cluster tag",
        })
    }
}

impl Membership {
    /// Judges a resource under a configuration: the first rule that applies decides.
    #[must_use]
    pub fn of(subject: Subject<'_>, configuration: &Configuration) -> Self {
        match exclusions(subject, configuration).next() {
            Some(exclusion) => Self::Excluded(exclusion),
            None => Self::named(subject, configuration),
        }
    }

    /// Returns what names a resource, regardless of what forbids touching it.
    #[must_use]
    pub fn named(subject: Subject<'_>, configuration: &Configuration) -> Self {
        Via::ALL
            .into_iter()
            .map(|via| (via, names_by(via, subject, configuration)))
            .find(|(_, names)| !names.is_empty())
            .map_or(Self::Unnamed, |(via, names)| on_one_level(via, names, configuration))
    }

    #[must_use]
    pub fn schedule(&self) -> Option<&ScheduleName> {
        match self {
            Self::Member { schedule, .. } => Some(schedule),
            Self::Excluded(_) | Self::Unknown { .. } | Self::Unnamed => None,
        }
    }

    /// Returns the rule of the followed schedule.
    #[must_use]
    pub fn rule<'a>(&self, configuration: &'a Configuration) -> Option<&'a Rule> {
        configuration.schedules.get(self.schedule()?)
    }

    /// Returns the policy of the followed schedule, or the default policy if none is followed.
    #[must_use]
    pub fn policy(&self, configuration: &Configuration) -> Policy {
        let rule = self.rule(configuration);
        rule.map(|rule| rule.policy.clone()).unwrap_or_default()
    }
}

/// Returns everything that forbids touching a resource, strongest first: the only one that a
/// person's start may overrule comes last.
pub fn exclusions<'a>(
    subject: Subject<'a>,
    configuration: &'a Configuration,
) -> impl Iterator<Item = Exclusion> + 'a {
    let account = &subject.reference.account;
    let is_configured = configuration.accounts.contains_key(account);
    let no_account = (!is_configured).then(|| Exclusion::NoAccount(account.clone()));
    let no_machine = missing_machine(subject.reference, configuration).map(Exclusion::NoMachine);
    let floor = std::iter::once_with(move || {
        let pattern = covering(subject, &configuration.floor.protect);
        pattern.map(Exclusion::ProtectedByDeployment)
    });
    let protected = std::iter::once_with(move || {
        let pattern = covering(subject, &configuration.settings.protect);
        pattern.map(Exclusion::Protected)
    });
    let opted_out = std::iter::once_with(move || {
        let out = |tags: &BTreeSet<String>| names_in(tags).contains(OPT_OUT);
        let on_cluster = subject.cluster.is_some_and(|cluster| out(&cluster.tags));
        let on_itself = out(subject.tags);
        (on_itself || on_cluster).then_some(Exclusion::OptedOut { on_cluster: !on_itself })
    });
    let unsupported = subject.unsupported.map(str::to_owned);
    let duplicate_of = subject.duplicate_of.cloned();
    [no_account, no_machine]
        .into_iter()
        .chain(floor)
        .chain(protected)
        .flatten()
        .chain(unsupported.map(Exclusion::Unsupported))
        .chain(duplicate_of.map(Exclusion::TwoAccounts))
        .chain(opted_out.flatten())
}

/// Returns the machine that a reference names, if its account is configured without it.
fn missing_machine(reference: &ResourceRef, configuration: &Configuration) -> Option<MachineName> {
    let ResourceId::Machine(name) = &reference.id else {
        return None;
    };
    let account = configuration.accounts.get(&reference.account)?;
    account.machine(name).is_none().then(|| name.clone())
}

fn covering(subject: Subject<'_>, patterns: &[Pattern]) -> Option<Pattern> {
    let mut patterns = patterns.iter();
    let covering = patterns.find(|pattern| subject.is_covered_by(pattern));
    covering.cloned()
}

/// Returns what one rule names: schedules, or words that are not schedules. The word that opts out
/// names none.
pub fn names_by(via: Via, subject: Subject<'_>, configuration: &Configuration) -> BTreeSet<String> {
    let mut names = match via {
        Via::Listed => {
            subject.listing(configuration).map(|(schedule, _)| schedule.to_string()).collect()
        }
        Via::Tag => names_in(subject.tags),
        Via::ClusterTag => {
            subject.cluster.map(|cluster| names_in(&cluster.tags)).unwrap_or_default()
        }
    };
    names.remove(OPT_OUT);
    names
}

fn on_one_level(via: Via, names: BTreeSet<String>, configuration: &Configuration) -> Membership {
    let mut names = names.into_iter();
    let first = names.next().unwrap_or_default();
    if let Some(second) = names.next() {
        return Membership::Excluded(Exclusion::TwoSchedules { first, second, via });
    }
    let known = first
        .parse::<ScheduleName>()
        .ok()
        .filter(|name| configuration.schedules.contains_key(name));
    match known {
        Some(schedule) => Membership::Member { schedule, via },
        None => Membership::Unknown { word: first, via },
    }
}

impl Record {
    /// Returns the value of its tag `KEY:VALUE` or label `KEY=VALUE`, or else of its cluster's.
    #[must_use]
    pub fn tag_value(&self, key: &str) -> Option<&str> {
        let cluster = self.cluster.iter().flat_map(|cluster| &cluster.tags);
        let mut tags = self.tags.iter().chain(cluster);
        tags.find_map(|tag| tag.strip_prefix(key)?.strip_prefix([':', '=']))
    }
}

#[cfg(test)]
mod tests;
