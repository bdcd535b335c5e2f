//! Imports the schedules and periods of AWS Instance Scheduler. What would mean something else here
//! is left out and named.

mod days;
mod items;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    ScheduleName,
    configuration::{Adopt, Policy, Rule},
    schedule::{self, Definition, Desired, PeriodDefinition, Schedule},
};

use super::{Imported, Remark, Source};
use crate::exit::UsageError;
use items::Item;

/// Translates the combined contents of the files. Schedules without a time zone get `default_zone`,
/// or else the one from the scheduler's settings, or else UTC, as at AWS.
pub fn import(sources: &[Source], default_zone: Option<&str>) -> Result<Imported, UsageError> {
    let mut all: Vec<Item> = Vec::new();
    for source in sources {
        for item in items::read(source)? {
            let is_same = |other: &&Item| (&other.kind, &other.name) == (&item.kind, &item.name);
            match all.iter().find(is_same) {
                Some(other) if *other != item => {
                    let message = "appears twice, with different contents";
                    return Err(UsageError(format!("{}: {} {message}", source.name, item.about())));
                }
                Some(_) => {}
                None => all.push(item),
            }
        }
    }
    let mut import = Import::default();
    let mut schedules = Vec::new();
    for item in all {
        match item.kind.as_str() {
            "schedule" => schedules.push(item),
            "period" => {
                import.periods.insert(item.name.clone(), item);
            }
            "config" => import.take_settings(&item).map_err(UsageError)?,
            _ => import.remark(&item, "has an unknown type and is not translated"),
        }
    }
    if schedules.is_empty() {
        let files: Vec<_> = sources.iter().map(|source| source.name.as_str()).collect();
        return Err(UsageError(format!("there are no schedules in {}", files.join(", "))));
    }
    if let Some(zone) = default_zone {
        let whole_days = vec![PeriodDefinition::default()];
        validated(zone, whole_days).map_err(|problems| UsageError(joined(&problems)))?;
        import.default_zone = Some(zone.to_owned());
    }
    // A schedule keeps its name if the name is valid here.
    let kept = schedules.iter().map(|item| (name(&item.name), item.name.clone()));
    import.names = kept.filter(|(ours, theirs)| ours.as_str() == theirs).collect();
    for schedule in &schedules {
        import.translate(schedule);
    }
    for (name, period) in std::mem::take(&mut import.periods) {
        if !import.used.contains(&name) {
            import.remark(&period, "no schedule names it, and it is left out");
        }
    }
    Ok(Imported { schedules: import.translated, remarks: import.remarks })
}

/// An import in progress.
#[derive(Default)]
struct Import {
    periods: BTreeMap<String, Item>,
    default_zone: Option<String>,
    /// The names of the periods that a schedule refers to.
    used: BTreeSet<String>,
    translated: BTreeMap<ScheduleName, (Rule, Vec<String>)>,
    /// The schedules' original names, by their names here.
    names: BTreeMap<ScheduleName, String>,
    remarks: Vec<Remark>,
}

impl Import {
    fn remark(&mut self, item: &Item, message: impl Into<String>) {
        self.add_remark(item, message.into(), false);
    }

    fn add_remark(&mut self, item: &Item, message: String, left_out: bool) {
        let remark = Remark { about: item.about(), message, left_out };
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    fn take_settings(&mut self, settings: &Item) -> Result<(), String> {
        let zone = settings.text("defaulttimezone")?;
        self.default_zone = self.default_zone.take().or(zone);
        let others = settings.others("type name defaulttimezone").join(", ");
        if !others.is_empty() {
            let message = format!("{others}: such settings have no counterpart in schedules");
            self.remark(settings, message);
        }
        Ok(())
    }

    /// Translates a schedule, or reports why it is left out.
    fn translate(&mut self, item: &Item) {
        let name = self.free_name(item);
        self.names.insert(name.clone(), item.name.clone());
        match self.rule(item) {
            Ok((rule, overridden)) => {
                let mut comments = Vec::new();
                if item.name != name.as_str() {
                    self.remark(item, format!("is called `{name}` here, and in tags"));
                    comments.push(format!("{} in AWS Instance Scheduler.", item.name));
                }
                comments.extend(item.text("description").ok().flatten());
                comments.extend(overridden);
                self.translated.insert(name, (rule, comments));
            }
            Err(message) => self.add_remark(item, message, true),
        }
    }

    /// The name of a schedule here. A number is appended if another schedule has the name, such as
    /// one whose original name differs only in case.
    fn free_name(&mut self, item: &Item) -> ScheduleName {
        let name = name(&item.name);
        let other = self.names.get(&name).filter(|other| **other != item.name);
        let Some(other) = other.cloned() else {
            return name;
        };
        self.remark(item, format!("would be `{name}`, as `{other}` is"));
        let base: String = name.as_str().chars().take(52).collect();
        let mut numbered = (2..).filter_map(|number: u32| format!("{base}-{number}").parse().ok());
        numbered.find(|name| !self.names.contains_key(name)).unwrap_or(name)
    }

    /// The schedule, and its periods as a comment if an override takes precedence over them.
    fn rule(&mut self, item: &Item) -> Result<(Rule, Option<String>), String> {
        let periods = self.periods_of(item)?;
        let state = override_status(item)?;
        if periods.is_empty() && state.is_none() {
            return Err("has no period that ever runs anything".to_owned());
        }
        let timezone = self.timezone(item)?;
        let mut overridden = None;
        let schedule = if let Some(state) = state {
            let mut message = format!("override_status {state} is state = \"{state}\" here");
            if !periods.is_empty() {
                message += "; to follow its periods, write them in its place";
                overridden = Some(as_comment(&periods));
            }
            self.remark(item, message);
            Schedule::new(&Definition { timezone, state: Some(state), ..Definition::default() })
        } else {
            self.compare_one_sided(item, &periods)?;
            validated(&timezone, periods)
        };
        let rule = Rule {
            schedule: schedule.map_err(|problems| joined(&problems))?,
            resources: BTreeSet::new(),
            policy: self.policy(item)?,
        };
        for other in item.others(SCHEDULE) {
            self.remark(item, format!("{other} has no counterpart"));
        }
        Ok((rule, overridden))
    }

    fn timezone(&mut self, item: &Item) -> Result<String, String> {
        let zone = item.text("timezone")?.or_else(|| self.default_zone.clone());
        Ok(zone.unwrap_or_else(|| {
            let message = "has no time zone, and the stack's is not known: UTC is used; \
                           --timezone names another";
            self.remark(item, message);
            "UTC".to_owned()
        }))
    }

    /// The schedule's periods, except those that never run anything at AWS.
    fn periods_of(&mut self, item: &Item) -> Result<Vec<PeriodDefinition>, String> {
        let (mut periods, mut problems) = (Vec::new(), Vec::new());
        for named in item.list("periods")? {
            match self.period(item, &named) {
                Ok(period) => periods.extend(period),
                Err(message) => problems.push(message),
            }
        }
        if problems.is_empty() { Ok(periods) } else { Err(problems.join("; ")) }
    }

    /// A period that the schedule names. `None` if it never runs anything at AWS.
    fn period(&mut self, item: &Item, named: &str) -> Result<Option<PeriodDefinition>, String> {
        let (name, instance_type) = named.split_once('@').unwrap_or((named, ""));
        self.used.insert(name.to_owned());
        let unknown = || format!("its period `{name}` is in none of the files");
        let period = self.periods.get(name).cloned().ok_or_else(unknown)?;
        if !instance_type.is_empty() {
            let message = format!(
                "the instance type {instance_type} in period `{name}` has no counterpart: \
                 machines keep their size"
            );
            self.remark(item, message);
        }
        let definition =
            definition(&period).map_err(|message| format!("period `{name}`: {message}"))?;
        if let (Some(begin), Some(end)) = (&definition.begin, &definition.end)
            && begin >= end
        {
            let message = format!(
                "from {begin} to {end} it never ran anything there, and is left out; here it would \
                 end on the next day"
            );
            self.remark(&period, message);
            return Ok(None);
        }
        for entry in period.list("weekdays")? {
            if let Some(day) = days::last_of_month(&entry).filter(|_| entry.ends_with('l')) {
                let message = format!(
                    "`{entry}` is the last `{day}` of each month, there and here; for every one, \
                     remove the l"
                );
                self.remark(&period, message);
            }
        }
        for other in period.others(PERIOD) {
            self.remark(&period, format!("{other} has no counterpart"));
        }
        Ok(Some(definition))
    }

    /// Compares periods with only a begin or only an end. At AWS they want *stopped* on days that
    /// they do not name, and here they have no say on them. That is the same if another period
    /// speaks on every day, as each period with both sides does.
    fn compare_one_sided(
        &mut self,
        item: &Item,
        periods: &[PeriodDefinition],
    ) -> Result<(), String> {
        let is_silent_on_some_days = |period: &PeriodDefinition| {
            let days = [&period.weekdays, &period.monthdays, &period.months];
            period.begin.is_some() != period.end.is_some() && !days.iter().all(|d| d.is_empty())
        };
        if !periods.iter().all(is_silent_on_some_days) {
            return Ok(());
        }
        if periods.iter().any(|period| period.begin.is_some()) {
            let message = "its periods with only a begin or an end, on some days only, mean \
                           something else here; write periods with both";
            return Err(message.to_owned());
        }
        let message = "on days that a period with only a begin or an end does not name, there is \
                       no desired state here, and not \"stopped\"";
        self.remark(item, message);
        Ok(())
    }

    fn policy(&mut self, item: &Item) -> Result<Policy, String> {
        let enforce = item.flag("enforced")?.unwrap_or(false);
        let retain_running = item.flag("retainrunning")?.unwrap_or(false);
        if enforce && retain_running {
            let message =
                "`enforced` and `retain_running` exclude each other here; enforce is kept";
            self.remark(item, message);
        }
        let stop_new_instances = item.flag("stopnewinstances")?.unwrap_or(true);
        Ok(Policy {
            enforce,
            retain_running: retain_running && !enforce,
            adopt: if stop_new_instances { Adopt::AtOnce } else { Adopt::NextEdge },
            ..Policy::default()
        })
    }
}

/// The fields of a schedule that are handled, or that do not affect when it runs.
const SCHEDULE: &str = "type name description timezone periods overridestatus enforced retainrunning \
                        stopnewinstances configuredinstack overwrite";

/// The same of a period.
const PERIOD: &str = "type name description configuredinstack begintime endtime weekdays monthdays \
                      months";

fn validated(
    timezone: &str,
    periods: Vec<PeriodDefinition>,
) -> Result<Schedule, Vec<schedule::Problem>> {
    let timezone = timezone.to_owned();
    Schedule::new(&Definition { timezone, periods, ..Definition::default() })
}

fn joined(problems: &[schedule::Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
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
    if definition.begin.is_none() && definition.end.as_deref() == Some("00:00") {
        return Err("its end at 00:00 alone stops for the whole day there, and at the midnight \
                    after the day here; write state = \"stopped\" for every day"
            .to_owned());
    }
    // A period that ends when it begins never ran anything at AWS, and is no problem of its own.
    let end = definition.end.clone().filter(|_| definition.end != definition.begin);
    validated("UTC", vec![PeriodDefinition { end, ..definition.clone() }]).map_err(|problems| {
        let messages = problems.into_iter().map(|problem| problem.message);
        messages.collect::<Vec<_>>().join("; ")
    })?;
    Ok(definition)
}

/// The override of a schedule at AWS.
fn override_status(schedule: &Item) -> Result<Option<Desired>, String> {
    let Some(status) = schedule.text("overridestatus")? else {
        return Ok(None);
    };
    let known = [Desired::Running, Desired::Stopped];
    let found = known.into_iter().find(|state| status.eq_ignore_ascii_case(state.as_str()));
    let unknown = || format!("its override_status `{status}` is neither running nor stopped");
    found.map(Some).ok_or_else(unknown)
}

fn as_comment(periods: &[PeriodDefinition]) -> String {
    let periods = BTreeMap::from([("periods", periods)]);
    toml_edit::ser::to_string(&periods).expect("periods are TOML")
}

/// The valid name closest to the original one.
fn name(theirs: &str) -> ScheduleName {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let lower = theirs.to_lowercase();
    let words = lower.split(|c| !fits(c)).filter(|word| !word.is_empty());
    let kept: String = words.collect::<Vec<_>>().join("-").chars().take(63).collect();
    let trimmed = kept.trim_matches(['-', '_']);
    let reserved = || format!("{trimmed}-schedule").parse();
    trimmed
        .parse()
        .or_else(|_| reserved())
        .or_else(|_| "schedule".parse())
        .expect("a plain word is a name")
}
