//! Translates the schedules and periods of AWS Instance Scheduler. What may mean something else here
//! is left out and named.

mod days;
mod items;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    fmt,
};

use domain::{
    ScheduleName,
    configuration::{Adopt, Configuration, Policy, Rule},
    schedule::{Definition, Desired, PeriodDefinition},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    configuration_file::{self, in_zone, written::File},
    exit::UsageError,
};
use items::Item;

/// A file of the other scheduler, with its contents.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file, as it was named.
    pub name: String,
    /// The file's contents.
    pub text: String,
}

/// The result of importing another scheduler's configuration.
#[derive(Debug, Default)]
pub struct Imported {
    /// The schedules.
    pub schedules: BTreeMap<ScheduleName, Rule>,
    /// The differences from the original.
    pub remarks: Vec<Remark>,
}

/// A difference from the original.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Remark {
    /// The subject, as the other scheduler calls it: `schedule office`, `period night`.
    pub about: String,
    /// What is different.
    pub message: String,
    /// Whether a whole schedule is missing from the result, so that a person is needed.
    pub left_out: bool,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { about, message, .. } = self;
        let kind = if self.left_out { "left out" } else { "warning" };
        write!(f, "{kind}: {about}: {message}")
    }
}

impl Imported {
    pub(crate) fn document(&self) -> File {
        File::of(&Configuration {
            schedules: self.schedules.clone().into(),
            ..Configuration::default()
        })
    }

    /// The schedules as TOML.
    #[must_use]
    pub fn to_toml(&self) -> String {
        configuration_file::written(&self.document())
    }

    fn remark(&mut self, item: &Item, message: impl Into<String>, left_out: bool) {
        let remark = Remark { about: item.about(), message: message.into(), left_out };
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// Names the fields that have no counterpart.
    fn remark_others(&mut self, item: &Item, known: &str) {
        let others = item.others(known).join(", ");
        if !others.is_empty() {
            self.remark(item, format!("no counterpart here: {others}"), false);
        }
    }
}

/// The fields of a schedule that are handled, or that do not affect when it runs.
const SCHEDULE: &str = "type name description timezone periods overridestatus enforced retainrunning \
                        stopnewinstances configuredinstack overwrite";

/// The same of a period.
const PERIOD: &str = "type name description configuredinstack begintime endtime weekdays monthdays \
                      months";

/// Translates the combined contents of the files. Schedules without a time zone get `default_zone`,
/// or else the one from the scheduler's settings, or else UTC, as at AWS.
pub fn import(sources: &[Source], default_zone: Option<&str>) -> Result<Imported, UsageError> {
    let all = items::read(sources)?;
    let of_kind = |kind: &'static str| all.iter().filter(move |item| item.kind == kind);
    let mut imported = Imported::default();
    let mut zone = default_zone.map(str::to_owned);
    if let Some(zone) = &zone {
        let periods = vec![PeriodDefinition::default()];
        in_zone(zone, Definition { periods, ..Definition::default() }).map_err(UsageError)?;
    }
    for settings in of_kind("config") {
        zone = zone.or(settings.text("defaulttimezone").map_err(UsageError)?);
        imported.remark_others(settings, "type name defaulttimezone");
    }
    // A schedule keeps its name if the name is valid here.
    let mut schedules: Vec<_> = of_kind("schedule").map(|item| (name(&item.name), item)).collect();
    schedules.sort_by_key(|(name, item)| name.as_str() != item.name);
    if schedules.is_empty() {
        let files: Vec<_> = sources.iter().map(|source| source.name.as_str()).collect();
        bail_usage!("there are no schedules in {}", files.join(", "));
    }
    let periods = of_kind("period").map(|item| (item.name.as_str(), item)).collect();
    for (name, item) in schedules {
        let rule = rule(item, &periods, zone.as_deref(), &mut imported);
        match (rule, imported.schedules.entry(name)) {
            (Ok(rule), Entry::Vacant(free)) => {
                let name = free.key().clone();
                free.insert(rule);
                if name.as_str() != item.name {
                    imported.remark(item, format!("is called `{name}` here, and in tags"), false);
                }
            }
            (Ok(_), Entry::Occupied(taken)) => {
                let message = format!("would be called `{}`, as another is", taken.key());
                imported.remark(item, message, true);
            }
            (Err(message), _) => imported.remark(item, message, true),
        }
    }
    Ok(imported)
}

/// A schedule here, or why it is left out.
fn rule(
    item: &Item,
    periods: &BTreeMap<&str, &Item>,
    default_zone: Option<&str>,
    imported: &mut Imported,
) -> Result<Rule, String> {
    let policy = policy(item)?;
    let own_zone = item.text("timezone")?;
    let timezone = own_zone.as_deref().or(default_zone).unwrap_or("UTC");
    let state = override_status(item)?;
    let periods = match state {
        Some(state) => {
            let message = format!("has state = \"{state}\" here, for its override_status");
            imported.remark(item, message, false);
            Vec::new()
        }
        None => periods_of(item, periods, imported)?,
    };
    let schedule = in_zone(timezone, Definition { state, periods, ..Definition::default() })?;
    if own_zone.is_none() && default_zone.is_none() {
        let message = "has no time zone, and the stack's is not known: UTC is used; --timezone names \
                       another";
        imported.remark(item, message, false);
    }
    imported.remark_others(item, SCHEDULE);
    Ok(Rule { schedule, resources: BTreeSet::new(), policy })
}

fn policy(item: &Item) -> Result<Policy, String> {
    let enforce = item.flag("enforced")?.unwrap_or(false);
    let retain_running = item.flag("retainrunning")?.unwrap_or(false);
    if enforce && retain_running {
        return Err("`enforced` and `retain_running` exclude each other here".to_owned());
    }
    let stops_new = item.flag("stopnewinstances")?.unwrap_or(true);
    let adopt = if stops_new { Adopt::AtOnce } else { Adopt::NextEdge };
    Ok(Policy { enforce, retain_running, adopt, ..Policy::default() })
}

/// The override of a schedule at AWS, which takes precedence over its periods.
fn override_status(schedule: &Item) -> Result<Option<Desired>, String> {
    let Some(status) = schedule.text("overridestatus")? else {
        return Ok(None);
    };
    let known = [Desired::Running, Desired::Stopped];
    let found = known.into_iter().find(|state| status.eq_ignore_ascii_case(state.into()));
    let unknown = || format!("its override_status `{status}` is neither running nor stopped");
    found.map(Some).ok_or_else(unknown)
}

fn periods_of(
    item: &Item,
    all: &BTreeMap<&str, &Item>,
    imported: &mut Imported,
) -> Result<Vec<PeriodDefinition>, String> {
    let (mut periods, mut problems) = (Vec::new(), Vec::new());
    for named in item.list("periods")? {
        let (name, instance_type) = named.split_once('@').unwrap_or((&named, ""));
        if !instance_type.is_empty() {
            let message = format!("machines keep their size here: {named}");
            imported.remark(item, message, false);
        }
        let Some(period) = all.get(name) else {
            problems.push(format!("its period `{name}` is in none of the files"));
            continue;
        };
        imported.remark_others(period, PERIOD);
        match definition(period) {
            Ok(definition) => periods.push(definition),
            Err(message) => problems.push(format!("period `{name}`: {message}")),
        }
    }
    if problems.is_empty() && periods.iter().all(is_silent_on_some_days) {
        let message = if periods.is_empty() {
            "has no periods"
        } else {
            "its periods with only a begin or an end, on some days only, mean something else here; \
             write periods with both"
        };
        problems.push(message.to_owned());
    }
    if problems.is_empty() { Ok(periods) } else { Err(problems.join("; ")) }
}

/// Whether a period with only a begin or only an end has no say on some days. At AWS it wants
/// *stopped* there. That is the same if another period speaks on every day, as each period with both
/// sides does.
fn is_silent_on_some_days(period: &PeriodDefinition) -> bool {
    let days = [&period.weekdays, &period.monthdays, &period.months];
    period.begin.is_some() != period.end.is_some() && !days.iter().all(|days| days.is_empty())
}

/// A period by itself, in our words.
fn definition(period: &Item) -> Result<PeriodDefinition, String> {
    let monthdays = period.list("monthdays")?;
    if let Some(entry) = monthdays.iter().find(|entry| days::wraps(entry)) {
        return Err(format!("`{entry}` ends before it begins"));
    }
    let time = |key| Ok::<_, String>(period.text(key)?.map(|text| days::time(&text)));
    let definition = PeriodDefinition {
        weekdays: days::field(&period.list("weekdays")?, days::weekdays),
        monthdays: days::field(&monthdays, str::to_uppercase),
        months: days::field(&period.list("months")?, days::months),
        begin: time("begintime")?,
        end: time("endtime")?,
        ..PeriodDefinition::default()
    };
    match (&definition.begin, &definition.end) {
        (None, Some(end)) if end == "00:00" => {
            return Err(
                "its end at 00:00 alone stops for the whole day there, and at the midnight \
                        after the day here; write state = \"stopped\" for every day"
                    .to_owned(),
            );
        }
        (Some(begin), Some(end)) if begin >= end => {
            return Err(format!(
                "from {begin} to {end} never runs anything there, and would end on the next day here"
            ));
        }
        (_, _) => {}
    }
    let periods = vec![definition.clone()];
    in_zone("UTC", Definition { periods, ..Definition::default() }).map(|_| definition)
}

/// The valid name closest to the original one.
fn name(theirs: &str) -> ScheduleName {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let lower = theirs.to_lowercase();
    let words = lower.split(|c| !fits(c)).filter(|word| !word.is_empty());
    let kept: String = words.collect::<Vec<_>>().join("-").chars().take(63).collect();
    let trimmed = kept.trim_matches(['-', '_']);
    let reserved = || format!("{trimmed}-schedule").parse();
    let name = trimmed.parse().or_else(|_| reserved()).or_else(|_| "schedule".parse());
    name.expect("a plain word is a name")
}
