//! Finds the resources that a person names.

pub(crate) mod history;
pub(crate) mod nearest;

use domain::{
    AccountName, ResourceRef,
    configuration::Configuration,
    left_behind::is_ghost,
    record::{Phase, Record},
};
use store::Store;
use wildmatch::WildMatch;

use self::nearest::{advice, nearest};
use crate::{
    connection::{all_records, readable},
    exit::UsageError,
};

/// Returns the records of the resources that a person names, by reference, by unique name or by a
/// pattern such as `ci-*`, in the order named and without duplicates.
pub(crate) async fn find(store: &Store, targets: &[String]) -> anyhow::Result<Vec<Record>> {
    let mut lookups: Vec<_> = targets
        .iter()
        .map(|target| TargetLookup::of(target))
        .collect();
    let names = lookups.iter().any(|one| one.reference.is_none());
    if names {
        let configuration = store.in_force().await?.configuration;
        for record in all_records(store).await? {
            let compare = |one: &mut TargetLookup<'_>| one.compare(&record, &configuration);
            lookups.iter_mut().for_each(compare);
        }
    }
    let mut found: Vec<Record> = Vec::new();
    for one in lookups {
        let records = match &one.reference {
            Some(reference) => vec![referenced(store, reference).await?],
            None if one.pattern.is_some() => one.all()?,
            None => vec![one.only()?],
        };
        for record in records {
            if found
                .iter()
                .all(|known| known.reference != record.reference)
            {
                found.push(record);
            }
        }
    }
    Ok(found)
}

/// Whether a text is a pattern with `*` or `?`. No provider allows these in a name.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// Whether a resource's name or reference matches a pattern.
pub(crate) fn fits(pattern: &WildMatch, name: &str, reference: &ResourceRef) -> bool {
    pattern.matches(name) || pattern.matches(&reference.to_string())
}

/// Like [`find`], but for one resource, among records that were already read.
pub(crate) fn named<'r>(
    target: &str,
    records: &'r [Record],
    configuration: &Configuration,
) -> anyhow::Result<&'r Record> {
    let mut lookup = TargetLookup::of(target);
    let reference = if let Some(reference) = lookup.reference.take() {
        reference
    } else {
        for record in records {
            lookup.compare(record, configuration);
        }
        lookup.only()?.reference
    };
    let found = records.iter().find(|record| record.reference == reference);
    let unknown = || UsageError(format!("no inventory has seen {reference}"));
    Ok(found.ok_or_else(unknown)?)
}

async fn referenced(store: &Store, reference: &ResourceRef) -> anyhow::Result<Record> {
    if let Some(record) = store.record(reference).await? {
        return Ok(record);
    }
    let account = &reference.account;
    let configuration = store.in_force().await?.configuration;
    let renamed = configuration.renamed(reference);
    if renamed != *reference {
        let present = &renamed.account;
        let message = format!("account `{account}` is called `{present}` now: write {renamed}");
        return Err(UsageError(message).into());
    }
    let accounts = store.accounts().await?;
    if !accounts.contains(account) {
        let names = accounts.iter().map(AccountName::as_str);
        let advice = advice(account.as_str(), "accounts", names);
        let unknown = format!("no inventory has seen {reference}: there is no account `{account}`");
        return Err(UsageError(format!("{unknown}; {advice}")).into());
    }
    let states = readable(store.account_states().await?);
    let listed = states.get(account).and_then(|state| state.listed_at);
    let last = match listed {
        Some(at) => format!(
            "the last one of {account} was at {}",
            at.strftime("%F %H:%M UTC")
        ),
        None => format!("{account} has not been listed yet"),
    };
    Err(UsageError(format!("no inventory has seen {reference}; {last}")).into())
}

/// One target to look up.
struct TargetLookup<'t> {
    target: &'t str,
    /// The reference, if the target is one. Otherwise it is a name or a pattern.
    reference: Option<ResourceRef>,
    /// The pattern, if the target is one.
    pattern: Option<WildMatch>,
    /// The records that match the pattern.
    fitting: Vec<Record>,
    /// The first record of this name.
    found: Option<Record>,
    /// The reference of another record of this name.
    other: Option<ResourceRef>,
    /// The reference of a record with this name that a removed account has left.
    ghost: Option<ResourceRef>,
    /// The known name most similar to the target.
    like: Option<String>,
}

impl<'t> TargetLookup<'t> {
    fn of(target: &'t str) -> Self {
        Self {
            target,
            reference: target.parse().ok(),
            pattern: is_pattern(target).then(|| WildMatch::new_case_insensitive(target)),
            fitting: Vec::new(),
            found: None,
            other: None,
            ghost: None,
            like: None,
        }
    }

    fn compare(&mut self, record: &Record, configuration: &Configuration) {
        if let Some(pattern) = &self.pattern {
            let is_there =
                !matches!(record.phase, Phase::Gone { .. }) && !is_ghost(record, configuration);
            if is_there && fits(pattern, &record.name, &record.reference) {
                self.fitting.push(record.clone());
            }
        } else if is_ghost(record, configuration) {
            if record.name == self.target {
                self.ghost.get_or_insert_with(|| record.reference.clone());
            }
        } else if record.name != self.target {
            let names = self
                .like
                .as_deref()
                .into_iter()
                .chain([record.name.as_str()]);
            if let Some(name) = nearest(self.target, names).map(str::to_owned) {
                self.like = Some(name);
            }
        } else if self.found.is_none() {
            self.found = Some(record.clone());
        } else {
            self.other.get_or_insert_with(|| record.reference.clone());
        }
    }

    /// The records that match. An error if there are none.
    fn all(self) -> Result<Vec<Record>, UsageError> {
        if self.fitting.is_empty() {
            let target = self.target;
            let advice = "`offhours status` lists the resources that are known";
            return Err(UsageError(format!(
                "no resource matches `{target}`; {advice}"
            )));
        }
        Ok(self.fitting)
    }

    /// The record with this name. An error unless there is exactly one.
    fn only(self) -> Result<Record, UsageError> {
        let target = self.target;
        if let (None, Some(ghost)) = (&self.found, self.ghost) {
            return Err(UsageError(format!(
                "`{target}` is only known from the account {}, which is not configured: write \
                 {ghost}",
                ghost.account
            )));
        }
        Err(UsageError(match (self.found, self.other, self.like) {
            (Some(record), None, _) => return Ok(record),
            (Some(record), Some(other), _) => format!(
                "`{target}` is the name of several: write {} or {other}",
                record.reference
            ),
            (None, _, Some(name)) => format!("no resource `{target}`; did you mean `{name}`?"),
            (None, _, None) => {
                format!("no resource `{target}`; `offhours status` lists those that are known")
            }
        }))
    }
}
