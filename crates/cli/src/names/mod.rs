//! The resources, schedules and accounts that a person names.

pub(crate) mod history;

use std::{collections::BTreeSet, sync::Arc};

use domain::{
    AccountName, ResourceRef, ScheduleName,
    configuration::{Configuration, OverrideTarget, Overrides},
    left_behind::is_ghost,
    membership::{Membership, Subject},
    record::{Phase, Record},
};
use jiff::Timestamp;
use report::nearest::{advice, nearest};
use store::{InForce, Store};
use wildmatch::WildMatch;

use crate::{
    connection::{all_records, readable},
    exit::UsageError,
};

#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) in_force: InForce,
    /// All records, or at least those that the targets name.
    pub(crate) records: Vec<Record>,
    pub(crate) now: Timestamp,
}

/// Returns the records of the resources that a person names, in the order named.
pub(crate) async fn find(
    store: &Store,
    targets: &[String],
    now: Timestamp,
) -> anyhow::Result<Vec<Record>> {
    let names = Names::of(store, targets, now).await?;
    Ok(names.select(targets)?.into_iter().cloned().collect())
}

impl Names {
    /// What a configuration alone has: neither overrides nor records.
    pub(crate) fn of_file(configuration: Configuration, now: Timestamp) -> Self {
        let configuration = Arc::new(configuration);
        let in_force = InForce { configuration, overrides: Overrides::default(), since: None };
        Self { in_force, records: Vec::new(), now }
    }

    pub(crate) async fn read(store: &Store, now: Timestamp) -> anyhow::Result<Self> {
        let (in_force, records) = (store.in_force().await?, all_records(store).await?);
        Ok(Self { in_force, records, now })
    }

    /// Reads what these targets may mean: where all are references, no other records.
    pub(crate) async fn of(
        store: &Store,
        targets: &[String],
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let references: Result<Vec<ResourceRef>, _> =
            targets.iter().map(|one| one.parse()).collect();
        let Some(references) = references.ok().filter(|all| !all.is_empty()) else {
            return Self::read(store, now).await;
        };
        let in_force = store.in_force().await?;
        let records = readable(store.records(&references).await?);
        Ok(Self { in_force, records, now })
    }

    pub(crate) fn configuration(&self) -> &Configuration {
        &self.in_force.configuration
    }

    /// The records of the resources that a person names, by reference, by unique name or by a
    /// pattern such as `ci-*`, in the order named and without duplicates.
    pub(crate) fn select(&self, targets: &[String]) -> Result<Vec<&Record>, UsageError> {
        let (mut found, mut known) = (Vec::new(), BTreeSet::new());
        for target in targets {
            let named = self.named(target)?.into_iter();
            found.extend(named.filter(|record| known.insert(&record.reference)));
        }
        Ok(found)
    }

    pub(crate) fn following(&self, schedule: Option<&ScheduleName>) -> Vec<&Record> {
        let follows = |record: &&Record| {
            let membership = Membership::of(Subject::recorded(record), self.configuration());
            let followed = membership.schedule();
            !is_gone(record) && followed.is_some_and(|one| schedule.is_none_or(|name| name == one))
        };
        self.records.iter().filter(follows).collect()
    }

    fn named(&self, target: &str) -> Result<Vec<&Record>, UsageError> {
        if let Ok(reference) = target.parse::<ResourceRef>() {
            let found = self.records.iter().find(|record| record.reference == reference);
            return Ok(vec![found.ok_or_else(|| self.unseen(&reference))?]);
        }
        let is_ghost = |record: &&Record| is_ghost(record, self.configuration(), self.now);
        let (ghosts, known): (Vec<_>, Vec<_>) = self.records.iter().partition(is_ghost);
        if let Some(pattern) = pattern(target) {
            let fits = |one: &&Record| !is_gone(one) && fits(&pattern, &one.name, &one.reference);
            let found: Vec<_> = known.into_iter().filter(fits).collect();
            if found.is_empty() {
                bail_usage!("no resource matches `{target}`; {LISTED}");
            }
            return Ok(found);
        }
        let is_named = |record: &&Record| record.name == target;
        // A resource that is gone is meant only if no other has the name.
        let (gone, present): (Vec<_>, Vec<_>) =
            known.iter().copied().filter(is_named).partition(|record| is_gone(record));
        let ghosts: Vec<_> = ghosts.into_iter().filter(is_named).collect();
        let (found, are_gone) = if present.is_empty() { (gone, true) } else { (present, false) };
        let references = |records: &[&Record]| {
            let all = records.iter().map(|record| record.reference.to_string());
            all.collect::<Vec<_>>().join(" or ")
        };
        Err(UsageError(match (found.as_slice(), ghosts.as_slice()) {
            ([_], _) => return Ok(found),
            ([], []) => return Err(self.unknown(target, &known)),
            ([], ghosts) => format!(
                "`{target}` is gone, or its account is not configured: write {}",
                references(ghosts)
            ),
            (several, _) if are_gone => format!(
                "`{target}` is gone: write {}; `offhours forget` deletes what is recorded",
                references(several)
            ),
            (several, _) => {
                format!("`{target}` is the name of several: write {}", references(several))
            }
        }))
    }

    fn unseen(&self, reference: &ResourceRef) -> UsageError {
        let account = &reference.account;
        let renamed = self.configuration().renamed(reference);
        if renamed != *reference {
            let present = &renamed.account;
            let message = format!("account `{account}` is called `{present}` now: write {renamed}");
            return UsageError(message);
        }
        let advice = match check_account(account, self.configuration().accounts.keys()) {
            Ok(()) => "`offhours status --accounts` shows when the last one was".to_owned(),
            Err(UsageError(unknown)) => unknown,
        };
        UsageError(format!("no inventory has seen {reference}; {advice}"))
    }

    /// Explains why nothing has this name, and suggests the most similar one.
    fn unknown(&self, target: &str, known: &[&Record]) -> UsageError {
        let mut schedules = self.configuration().schedules.keys();
        let near = nearest(target, known.iter().map(|record| record.name.as_str()));
        let advice = match near {
            _ if schedules.any(|name| name.as_str() == target) => {
                format!("it is a schedule: --schedule {target}")
            }
            Some(name) => format!("did you mean `{name}`?"),
            None => LISTED.to_owned(),
        };
        UsageError(format!("no resource `{target}`; {advice}"))
    }
}

/// The record of a resource; `None` for a schedule.
pub(crate) fn record_of<'r>(target: &OverrideTarget, records: &'r [Record]) -> Option<&'r Record> {
    let OverrideTarget::Resource(reference) = target else { return None };
    records.iter().find(|record| record.reference == *reference)
}

const LISTED: &str = "`offhours status` lists those that are known";

pub(crate) fn check_schedule<'n>(
    name: impl Into<Option<&'n ScheduleName>>,
    configuration: &Configuration,
) -> Result<(), UsageError> {
    let Some(name) = name.into() else { return Ok(()) };
    let known = configuration.schedules.keys().map(ScheduleName::as_str);
    exists("schedule", name.as_str(), known)
}

/// Returns the key of the tags that name owners.
pub(crate) fn owner_tag(configuration: &Configuration) -> Result<&str, UsageError> {
    let missing = "the configuration names no owners: write owner_tag = \"KEY\" at its top";
    configuration.settings.owner_tag.as_deref().ok_or_else(|| UsageError(missing.to_owned()))
}

/// Checks that one of these has an owner, and returns the key of the tags that name owners.
pub(crate) fn check_owner<'c>(
    owner: &str,
    records: &[Record],
    configuration: &'c Configuration,
) -> Result<&'c str, UsageError> {
    let tag = owner_tag(configuration)?;
    let owners: BTreeSet<_> = records.iter().filter_map(|one| one.tag_value(tag)).collect();
    exists("owner", owner, owners.iter().copied())?;
    Ok(tag)
}

/// Refuses an account that is not among these.
pub(crate) fn check_account<'a>(
    name: &AccountName,
    accounts: impl IntoIterator<Item = &'a AccountName>,
) -> Result<(), UsageError> {
    let known: Vec<_> = accounts.into_iter().map(AccountName::as_str).collect();
    exists("account", name.as_str(), known.into_iter())
}

/// Checks that a name exists. The error says what to write instead.
pub(crate) fn exists<'n>(
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'n str> + Clone,
) -> Result<(), UsageError> {
    if known.clone().any(|one| one == name) {
        return Ok(());
    }
    let advice = advice(name, &format!("{what}s"), known);
    bail_usage!("there is no {what} `{name}`; {advice}")
}

fn is_gone(record: &Record) -> bool {
    matches!(record.phase, Phase::Gone { .. })
}

/// The pattern that a text is, if it has `*` or `?`. No provider allows these in a name.
pub(crate) fn pattern(text: &str) -> Option<WildMatch> {
    text.contains(['*', '?']).then(|| WildMatch::new_case_insensitive(text))
}

pub(crate) fn fits(pattern: &WildMatch, name: &str, reference: &ResourceRef) -> bool {
    pattern.matches(name) || pattern.matches(&reference.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{OFFICE, in_force, machine, monday};

    #[test]
    fn a_resource_is_named_by_its_reference_its_name_or_a_pattern_and_never_guessed() {
        let gone = |reference, name, since| Record {
            phase: Phase::Gone { since: monday(since) },
            ..machine(reference, name, &["offhours:office"])
        };
        let names = Names {
            in_force: in_force(OFFICE),
            records: vec![
                machine("do-main/droplet/1", "web-1", &["offhours:office"]),
                machine("do-main/droplet/2", "web-2", &[]),
                machine("hz-eu/server/3", "twin", &[]),
                machine("hz-eu/server/4", "twin", &[]),
                gone("hz-eu/server/5", "twin", "08:00:00"),
                gone("hz-eu/server/6", "late", "08:00:00"),
                machine("hz-old/server/7", "left", &[]),
            ],
            now: monday("10:00:00"),
        };
        for (targets, expected) in [
            ("hz-eu/server/4", Ok("4")),
            ("web-2 do-main/droplet/1 web-2", Ok("2 1")),
            ("WEB-*", Ok("1 2")),
            ("web-2 hz-eu/*", Ok("2 3 4")),
            ("late", Ok("6")),
            ("twin", Err("`twin` is the name of several: write hz-eu/server/3 or hz-eu/server/4")),
            ("wbe-1", Err("no resource `wbe-1`; did you mean `web-1`?")),
            ("office", Err("no resource `office`; it is a schedule: --schedule office")),
            ("soap", Err("no resource `soap`; `offhours status` lists those that are known")),
            ("x-*", Err("no resource matches `x-*`; `offhours status` lists those that are known")),
            (
                "left",
                Err("`left` is gone, or its account is not configured: write hz-old/server/7"),
            ),
            (
                "hz-eu/server/9",
                Err("no inventory has seen hz-eu/server/9; `offhours status \
                --accounts` shows when the last one was"),
            ),
            (
                "hz-ue/server/3",
                Err("no inventory has seen hz-ue/server/3; there is no account \
                `hz-ue`; did you mean `hz-eu`?"),
            ),
        ] {
            let targets: Vec<_> = targets.split(' ').map(str::to_owned).collect();
            let found = names.select(&targets).map_err(|error| error.to_string());
            let numbers = |found: Vec<&Record>| {
                let number = |record: &&Record| record.reference.to_string().pop().unwrap();
                found.iter().map(number).map(String::from).collect::<Vec<_>>().join(" ")
            };
            let found = found.map(numbers);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{targets:?}");
        }
    }

    #[test]
    fn what_follows_a_schedule_is_there_and_may_be_touched() {
        let follows = |reference, name| machine(reference, name, &["offhours:office"]);
        let names = Names {
            in_force: in_force(OFFICE),
            records: vec![
                follows("do-main/droplet/1", "web"),
                follows("do-main/droplet/2", "prod-web"),
                machine("do-main/droplet/3", "free", &[]),
                Record {
                    phase: Phase::Gone { since: monday("08:00:00") },
                    ..follows("do-main/droplet/4", "gone")
                },
            ],
            now: monday("10:00:00"),
        };
        let office: ScheduleName = "office".parse().unwrap();
        for schedule in [None, Some(&office)] {
            let names: Vec<_> = names.following(schedule).iter().map(|r| r.name.as_str()).collect();
            assert_eq!(names, ["web"]);
        }
        let configuration = names.configuration();
        check_schedule(&office, configuration).unwrap();
        let error =
            check_schedule(&"ofice".parse::<ScheduleName>().unwrap(), configuration).unwrap_err();
        assert_eq!(error.to_string(), "there is no schedule `ofice`; did you mean `office`?");
        let account =
            |name: &str| check_account(&name.parse().unwrap(), configuration.accounts.keys());
        account("hz-eu").unwrap();
        account("hz-us").unwrap_err();
    }
}
