//! Resolves what a person means to override: a resource, or everything that follows a schedule.

use domain::{
    ResourceRef, ScheduleName,
    configuration::{Configuration, Override, Target},
    left_behind::is_ghost,
    record::Record,
};
use jiff::Timestamp;
use store::Store;

use crate::{
    connection::{all_records, readable},
    exit::UsageError,
    resolve::{
        named,
        nearest::{advice, exists, nearest},
    },
};

/// The prefix that marks a schedule where a resource is accepted too.
pub(super) const SCHEDULE: &str = "schedule:";

/// Reads the records that may be meant: all of them, unless `word` is a reference.
pub(super) async fn records_for(store: &Store, word: &str) -> anyhow::Result<Vec<Record>> {
    match word.parse::<ResourceRef>() {
        Ok(reference) => Ok(readable(store.records(&[reference]).await?)),
        Err(_) => all_records(store).await,
    }
}

/// Reads the records of the overridden resources.
pub(super) async fn overridden_records(
    store: &Store,
    overrides: impl Iterator<Item = &Override>,
) -> anyhow::Result<Vec<Record>> {
    let references: Vec<_> = overrides
        .filter_map(|one| match &one.target {
            Target::Resource(reference) => Some(reference.clone()),
            Target::Schedule(_) => None,
        })
        .collect();
    Ok(readable(store.records(&references).await?))
}

/// Resolves what a person means to override.
pub(super) fn target(
    word: &str,
    configuration: &Configuration,
    records: &[Record],
    now: Timestamp,
) -> anyhow::Result<Target> {
    let schedules = &configuration.schedules;
    let names = schedules.keys().map(ScheduleName::as_str);
    let schedule = |name: &str| schedules.keys().find(|known| known.as_str() == name).cloned();
    if let Some(name) = word.strip_prefix(SCHEDULE) {
        exists("schedule", name, names.clone())?;
        return Ok(Target::Schedule(name.parse()?));
    }
    let mut resources = records.iter();
    let resource =
        resources.find(|record| record.name == word && !is_ghost(record, configuration, now));
    match (schedule(word), resource) {
        (Some(_), Some(record)) => Err(ambiguous(word, record).into()),
        (Some(name), None) => Ok(Target::Schedule(name)),
        (None, None) if word.parse::<ResourceRef>().is_err() => {
            let references: Vec<_> = records.iter().map(|r| r.reference.to_string()).collect();
            let known = records
                .iter()
                .map(|record| record.name.as_str())
                .chain(references.iter().map(String::as_str))
                .chain(names);
            let advice = match nearest(word, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`offhours status` lists those that are known".to_owned(),
            };
            Err(UsageError(format!("no resource or schedule `{word}`; {advice}")).into())
        }
        (None, _) => {
            Ok(Target::Resource(named(word, records, configuration, now)?.reference.clone()))
        }
    }
}

fn ambiguous(word: &str, record: &Record) -> UsageError {
    UsageError(format!(
        "`{word}` is a schedule and a resource: write {SCHEDULE}{word} or {}",
        record.reference
    ))
}

/// Resolves which active override a person means. Its target may no longer be known.
pub(super) fn overridden_target(
    word: &str,
    active: &[&Override],
    records: &[Record],
) -> Result<Target, UsageError> {
    let name = |target: &Target| match target {
        Target::Schedule(name) => Some(name.to_string()),
        Target::Resource(reference) => {
            let record = records.iter().find(|record| record.reference == *reference);
            record.map(|record| record.name.clone())
        }
    };
    let written = |target: &Target| match target {
        Target::Schedule(name) => format!("{SCHEDULE}{name}"),
        Target::Resource(reference) => reference.to_string(),
    };
    let mut meant = active
        .iter()
        .map(|one| &one.target)
        .filter(|target| written(target) == word || name(target).as_deref() == Some(word));
    match (meant.next(), meant.next()) {
        (Some(target), None) => Ok(target.clone()),
        (Some(first), Some(second)) => Err(UsageError(format!(
            "`{word}` has several overrides: write {} or {}",
            written(first),
            written(second)
        ))),
        (None, _) => {
            let known = active.iter().map(|one| &one.target);
            let known: Vec<_> = known
                .map(|target| match target {
                    Target::Schedule(_) => written(target),
                    Target::Resource(_) => name(target).unwrap_or_else(|| written(target)),
                })
                .collect();
            let advice = advice(word, "active overrides", known.iter().map(String::as_str));
            Err(UsageError(format!("no override of `{word}` is active; {advice}")))
        }
    }
}
