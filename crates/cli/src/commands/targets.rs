//! What a person stops, starts or overrides: resources, or a whole schedule, an account or everything.

use domain::{
    AccountName, ScheduleName,
    configuration::{Override, OverrideTarget},
    invocation::CommandTarget,
    record::Record,
};
use jiff::Timestamp;
use report::nearest::advice;
use store::{InForce, Store};

use crate::{
    candidates,
    exit::UsageError,
    names::{self, Names, check_account, check_schedule},
};

#[derive(Debug, Default, Clone, clap::Args)]
pub(super) struct Targets {
    /// Resources: references, unique names, or patterns with `*` and `?`.
    #[arg(value_name = "RESOURCE", required_unless_present_any = ["schedule", "account", "all"], add = candidates::resources())]
    pub(super) resources: Vec<String>,
    /// All resources that follow this schedule.
    #[arg(long, value_name = "NAME", conflicts_with = "resources", add = candidates::schedules())]
    pub(super) schedule: Option<ScheduleName>,
    /// All resources in this account that follow a schedule.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["resources", "schedule"], add = candidates::accounts())]
    pub(super) account: Option<AccountName>,
    /// All resources that follow a schedule.
    #[arg(long, conflicts_with_all = ["resources", "schedule", "account"])]
    pub(super) all: bool,
}

#[derive(Debug)]
pub(super) struct Selected {
    /// The targets that a stop or a start names.
    pub(super) command: CommandTarget,
    /// What an override applies to. All that follow a schedule are overridden by their schedules, so
    /// that what joins one later is overridden as well.
    pub(super) overridden: Vec<OverrideTarget>,
    /// The resources that this concerns at present.
    pub(super) records: Vec<Record>,
    pub(super) in_force: InForce,
}

impl Targets {
    /// Resolves what is meant. Unknown names fail here.
    pub(super) async fn select(&self, store: &Store, now: Timestamp) -> anyhow::Result<Selected> {
        let names = Names::of(store, &self.resources, now).await?;
        let of = |records: &[&Record]| {
            records.iter().map(|record| record.reference.clone()).collect::<Vec<_>>()
        };
        let (mut records, mut schedules) = (names.following(self.schedule.as_ref()), Vec::new());
        let command = if let Some(name) = &self.schedule {
            check_schedule(name, names.configuration())?;
            schedules.push(OverrideTarget::Schedule(name.clone()));
            CommandTarget::Schedule(name.clone())
        } else if let Some(name) = &self.account {
            check_account(name, names.configuration().accounts.keys())?;
            records.retain(|record| record.reference.account == *name);
            CommandTarget::Account(name.clone())
        } else if self.all {
            let all = names.configuration().schedules.keys().cloned();
            schedules.extend(all.map(OverrideTarget::Schedule));
            CommandTarget::Resources(of(&records))
        } else {
            records = names.select(&self.resources)?;
            CommandTarget::Resources(of(&records))
        };
        let overridden = if schedules.is_empty() {
            of(&records).into_iter().map(OverrideTarget::Resource).collect()
        } else {
            schedules
        };
        let records = records.into_iter().cloned().collect();
        Ok(Selected { command, overridden, records, in_force: names.in_force })
    }

    /// Whether it is not only single resources.
    pub(super) fn are_whole(&self) -> bool {
        self.resources.is_empty()
    }

    /// Whether a person wrote this very resource, and not a pattern.
    pub(super) fn name_exactly(&self, record: &Record) -> bool {
        let reference = record.reference.to_string();
        self.resources.iter().any(|word| *word == record.name || *word == reference)
    }

    /// Resolves which of these overrides are meant. Their targets may no longer be known.
    pub(super) fn among<'o>(
        &self,
        overrides: &[&'o Override],
        records: &[Record],
    ) -> Result<Vec<&'o Override>, UsageError> {
        let name = |one: &Override| match &one.target {
            OverrideTarget::Schedule(name) => format!("--schedule {name}"),
            target @ OverrideTarget::Resource(_) => {
                let record = names::record_of(target, records);
                record.map_or_else(|| target.to_string(), |record| record.name.clone())
            }
        };
        let none = |what: &str, word: &str| {
            let known: Vec<_> = overrides.iter().map(|one| name(one)).collect();
            let advice = advice(word, "active overrides", known.iter().map(String::as_str));
            UsageError(format!("no override of {what} is active; {advice}"))
        };
        let mut meant: Vec<&Override> = Vec::new();
        for word in &self.resources {
            let pattern = names::pattern(word);
            let is_meant = |one: &&&Override| match (&one.target, &pattern) {
                (OverrideTarget::Schedule(_), _) => false,
                (OverrideTarget::Resource(reference), Some(pattern)) => {
                    names::fits(pattern, &name(one), reference)
                }
                (OverrideTarget::Resource(reference), None) => {
                    *word == name(one) || *word == reference.to_string()
                }
            };
            let found: Vec<_> = overrides.iter().filter(is_meant).copied().collect();
            match found.as_slice() {
                [] => return Err(none(&format!("`{word}`"), word)),
                [first, second, ..] if pattern.is_none() => {
                    bail_usage!(
                        "`{word}` has several overrides: write {} or {}",
                        first.target,
                        second.target
                    );
                }
                found => meant.extend(found),
            }
        }
        if self.are_whole() {
            let is_meant = |one: &&&Override| match &one.target {
                _ if self.all => true,
                OverrideTarget::Schedule(name) => self.schedule.as_ref() == Some(name),
                OverrideTarget::Resource(reference) => {
                    self.account.as_ref() == Some(&reference.account)
                }
            };
            meant.extend(overrides.iter().filter(is_meant));
            if meant.is_empty() {
                return Err(match (&self.schedule, &self.account) {
                    (Some(name), _) => none(&format!("schedule {name}"), name.as_str()),
                    (None, Some(name)) => none(&format!("account {name}"), name.as_str()),
                    (None, None) => none("anything", ""),
                });
            }
        }
        meant.sort_by_key(|one| &one.target);
        meant.dedup_by_key(|one| &one.target);
        Ok(meant)
    }
}
