//! Finds the resources that a person names.

pub(crate) mod history;
pub(crate) mod nearest;

use domain::{
    AccountName, ResourceRef,
    configuration::Configuration,
    left_behind::is_ghost,
    record::{Phase, Record},
};
use jiff::Timestamp;
use store::Store;
use wildmatch::WildMatch;

use self::nearest::{advice, nearest};
use crate::{
    connection::{all_records, readable},
    exit::UsageError,
};

/// Returns the records of the resources that a person names, by reference, by unique name or by a
/// pattern such as `ci-*`, in the order named and without duplicates.
pub(crate) async fn find(
    store: &Store,
    targets: &[String],
    now: Timestamp,
) -> anyhow::Result<Vec<Record>> {
    let mut lookups: Vec<_> = targets.iter().map(|target| TargetLookup::of(target, now)).collect();
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
            if found.iter().all(|known| known.reference != record.reference) {
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
    now: Timestamp,
) -> anyhow::Result<&'r Record> {
    let mut lookup = TargetLookup::of(target, now);
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
        Some(at) => format!("the last one of {account} was at {}", at.strftime("%F %H:%M UTC")),
        None => format!("{account} has not been listed yet"),
    };
    Err(UsageError(format!("no inventory has seen {reference}; {last}")).into())
}

/// One target to look up.
struct TargetLookup<'t> {
    target: &'t str,
    now: Timestamp,
    /// The reference, if the target is one. Otherwise it is a name or a pattern.
    reference: Option<ResourceRef>,
    /// The pattern, if the target is one.
    pattern: Option<WildMatch>,
    /// The records that match, of resources that exist.
    present: Vec<Record>,
    /// The records of this name whose resources are gone.
    gone: Vec<Record>,
    /// The records of this name that are all that is left of a resource.
    ghosts: Vec<Record>,
    /// The known name most similar to the target.
    like: Option<String>,
}

impl<'t> TargetLookup<'t> {
    fn of(target: &'t str, now: Timestamp) -> Self {
        Self {
            target,
            now,
            reference: target.parse().ok(),
            pattern: is_pattern(target).then(|| WildMatch::new_case_insensitive(target)),
            present: Vec::new(),
            gone: Vec::new(),
            ghosts: Vec::new(),
            like: None,
        }
    }

    fn compare(&mut self, record: &Record, configuration: &Configuration) {
        let is_ghost = is_ghost(record, configuration, self.now);
        let is_gone = matches!(record.phase, Phase::Gone { .. });
        if let Some(pattern) = &self.pattern {
            if !is_ghost && !is_gone && fits(pattern, &record.name, &record.reference) {
                self.present.push(record.clone());
            }
        } else if record.name == self.target {
            let kept = match (is_ghost, is_gone) {
                (true, _) => &mut self.ghosts,
                (false, true) => &mut self.gone,
                (false, false) => &mut self.present,
            };
            kept.push(record.clone());
        } else if !is_ghost {
            let names = self.like.as_deref().into_iter().chain([record.name.as_str()]);
            if let Some(name) = nearest(self.target, names).map(str::to_owned) {
                self.like = Some(name);
            }
        }
    }

    /// The records that match. An error if there are none.
    fn all(self) -> Result<Vec<Record>, UsageError> {
        if self.present.is_empty() {
            let target = self.target;
            let advice = "`offhours status` lists the resources that are known";
            return Err(UsageError(format!("no resource matches `{target}`; {advice}")));
        }
        Ok(self.present)
    }

    /// The record with this name; one of a resource that is gone only if no other has the name. An
    /// error unless there is exactly one.
    fn only(mut self) -> Result<Record, UsageError> {
        let target = self.target;
        let are_gone = self.present.is_empty();
        let mut named = if are_gone { self.gone } else { self.present };
        if named.len() <= 1
            && let Some(record) = named.pop()
        {
            return Ok(record);
        }
        let references = |records: &[Record]| {
            let references = records.iter().map(|record| record.reference.to_string());
            references.collect::<Vec<_>>().join(" or ")
        };
        Err(UsageError(match (named.as_slice(), self.ghosts.pop(), self.like) {
            ([_, ..], _, _) if are_gone => format!(
                "`{target}` is gone: write {}; `offhours forget` deletes what is recorded",
                references(&named)
            ),
            ([_, ..], _, _) => {
                format!("`{target}` is the name of several: write {}", references(&named))
            }
            ([], Some(ghost), _) => ghost_message(target, &ghost),
            ([], None, Some(name)) => {
                format!("no resource `{target}`; did you mean `{name}`?")
            }
            ([], None, None) => {
                format!("no resource `{target}`; `offhours status` lists those that are known")
            }
        }))
    }
}

fn ghost_message(target: &str, ghost: &Record) -> String {
    let reference = &ghost.reference;
    match &ghost.phase {
        Phase::Gone { since } => format!(
            "`{target}` has been gone since {}: write {reference}; `offhours forget` deletes what \
             is recorded",
            since.strftime("%F %H:%M UTC")
        ),
        Phase::Settled { .. }
        | Phase::InFlight { .. }
        | Phase::Refused { .. }
        | Phase::Stuck { .. } => format!(
            "`{target}` is only known from the account {}, which is not configured: write {reference}",
            reference.account
        ),
    }
}
