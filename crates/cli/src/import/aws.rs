//! Imports the schedules and periods of AWS Instance Scheduler.

mod days;
mod items;
mod one_sided;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    ScheduleName,
    configuration::{Adopt, Policy, Rule},
    schedule::{Definition, Desired, PeriodDefinition, Schedule},
};

use super::{Imported, Remark, Source};
use crate::exit::UsageError;
use items::Item;
use one_sided::Equivalence;

/// Translates the combined contents of the files. Schedules without a time zone get `default_zone`,
/// or else the one from the scheduler's settings, or else UTC, as at AWS.
pub fn import(sources: &[Source], default_zone: Option<&str>) -> Result<Imported, UsageError> {
    let mut import = Import::read(sources)?;
    import.look_at_settings(default_zone)?;
    let schedules = std::mem::take(&mut import.schedules);
    // A schedule keeps its name if the name is valid here.
    let kept = schedules.iter().map(|item| (name(&item.name), item.name.clone()));
    import.names = kept.filter(|(ours, theirs)| ours.as_str() == theirs).collect();
    for schedule in &schedules {
        import.translate(schedule);
    }
    import.report_unused_periods();
    Ok(Imported { schedules: import.translated, remarks: import.remarks })
}

/// An import in progress.
struct Import {
    schedules: Vec<Item>,
    periods: BTreeMap<String, Item>,
    settings: Vec<Item>,
    default_zone: Option<String>,
    /// The names of the periods that a schedule refers to.
    used: BTreeSet<String>,
    translated: BTreeMap<ScheduleName, (Rule, Vec<String>)>,
    /// The schedules' original names, by their names here.
    names: BTreeMap<ScheduleName, String>,
    remarks: Vec<Remark>,
}

impl Import {
    fn read(sources: &[Source]) -> Result<Self, UsageError> {
        let mut import = Self {
            schedules: Vec::new(),
            periods: BTreeMap::new(),
            settings: Vec::new(),
            default_zone: None,
            used: BTreeSet::new(),
            translated: BTreeMap::new(),
            names: BTreeMap::new(),
            remarks: Vec::new(),
        };
        let mut all: Vec<Item> = Vec::new();
        for source in sources {
            for item in items::read(source)? {
                let is_same =
                    |other: &&Item| (&other.kind, &other.name) == (&item.kind, &item.name);
                match all.iter().find(is_same) {
                    Some(other) if *other == item => {}
                    Some(_) => {
                        let message = "appears twice, with different contents";
                        return Err(UsageError(format!(
                            "{}: {} {message}",
                            source.name,
                            item.about()
                        )));
                    }
                    None => all.push(item),
                }
            }
        }
        for item in all {
            match item.kind.as_str() {
                "schedule" => import.schedules.push(item),
                "period" => {
                    import.periods.insert(item.name.clone(), item);
                }
                "config" => import.settings.push(item),
                _ => import.remark(&item, "has an unknown type and is not translated"),
            }
        }
        if import.schedules.is_empty() {
            let files: Vec<_> = sources.iter().map(|source| source.name.as_str()).collect();
            let message = format!("there are no schedules in {}", files.join(", "));
            return Err(UsageError(message));
        }
        Ok(import)
    }

    fn remark(&mut self, item: &Item, message: impl Into<String>) {
        self.add_remark(item, message.into(), false);
    }

    fn add_remark(&mut self, item: &Item, message: String, left_out: bool) {
        let about = item.about();
        let remark = Remark { about, message, left_out };
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    fn look_at_settings(&mut self, default_zone: Option<&str>) -> Result<(), UsageError> {
        for settings in std::mem::take(&mut self.settings) {
            let zone = settings.text("defaulttimezone").map_err(UsageError)?;
            self.default_zone = self.default_zone.take().or(zone);
            let others = settings.others(&["type", "name", "defaulttimezone"]);
            let others: Vec<_> = others.map(|name| format!("`{name}`")).collect();
            if !others.is_empty() {
                let others = others.join(", ");
                let message = format!("{others}: such settings have no counterpart in schedules");
                self.remark(&settings, message);
            }
        }
        if let Some(zone) = default_zone {
            let probe = Definition {
                timezone: zone.to_owned(),
                periods: vec![PeriodDefinition::default()],
                ..Definition::default()
            };
            schedule(&probe).map_err(UsageError)?;
            self.default_zone = Some(zone.to_owned());
        }
        Ok(())
    }

    /// Translates a schedule, or reports why it is left out.
    fn translate(&mut self, item: &Item) {
        let name = self.free_name(item);
        self.names.insert(name.clone(), item.name.clone());
        match self.rule(item) {
            Ok((rule, overridden)) => {
                let mut comments = self.comments(item, &name);
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
        let is_free = |name: &ScheduleName| !self.names.contains_key(name);
        let base: String = name.as_str().chars().take(52).collect();
        let numbered = (2..).filter_map(|number: u32| format!("{base}-{number}").parse().ok());
        let free = numbered.into_iter().find(is_free).unwrap_or(name.clone());
        self.remark(item, format!("would be `{name}`, as `{other}` is"));
        free
    }

    /// The comments before the schedule: its description, and its original name if that was
    /// different.
    fn comments(&mut self, item: &Item, name: &ScheduleName) -> Vec<String> {
        let mut comments = Vec::new();
        if item.name != name.as_str() {
            self.remark(item, format!("is called `{name}` here, and in tags"));
            comments.push(format!("{} in AWS Instance Scheduler.", item.name));
        }
        if let Ok(Some(description)) = item.text("description") {
            comments.push(description);
        }
        comments
    }

    /// The schedule, and its periods as a comment if an override takes precedence over them.
    fn rule(&mut self, item: &Item) -> Result<(Rule, Option<String>), String> {
        let periods = self.periods_of(item)?;
        let state = override_status(item)?;
        if periods.is_empty() && state.is_none() {
            return Err("has no period that ever runs anything".to_owned());
        }
        let mut definition =
            Definition { periods, timezone: self.timezone(item)?, ..Definition::default() };
        let overridden = if let Some(state) = state {
            definition.state = Some(state);
            let periods = std::mem::take(&mut definition.periods);
            let overridden = (!periods.is_empty()).then(|| as_comment(&periods));
            let instead = match overridden {
                Some(_) => "; to follow its periods, write them in its place",
                None => "",
            };
            let message = format!("override_status {state} is state = \"{state}\" here{instead}");
            self.remark(item, message);
            overridden
        } else {
            // Any other problem is reported before one-sided periods are compared.
            schedule(&definition)?;
            definition.periods = self.settle_one_sided(item, definition.periods)?;
            None
        };
        let rule = Rule {
            schedule: schedule(&definition)?,
            resources: BTreeSet::new(),
            policy: self.policy(item)?,
        };
        self.report_untranslated(item)?;
        Ok((rule, overridden))
    }

    fn timezone(&mut self, item: &Item) -> Result<String, String> {
        if let Some(zone) = item.text("timezone")? {
            return Ok(zone);
        }
        Ok(self.default_zone.clone().unwrap_or_else(|| {
            let message = "has no time zone, and the stack's is not known: UTC is used; \
                           --timezone names another";
            self.remark(item, message);
            "UTC".to_owned()
        }))
    }

    /// The schedule's periods, except those that never run anything at AWS.
    fn periods_of(&mut self, item: &Item) -> Result<Vec<PeriodDefinition>, String> {
        let mut periods = Vec::new();
        let mut problems = Vec::new();
        for named in item.list("periods")?.unwrap_or_default() {
            match self.period(item, &named) {
                Ok(period) => periods.extend(period),
                Err(message) => problems.push(message),
            }
        }
        if problems.is_empty() { Ok(periods) } else { Err(problems.join("; ")) }
    }

    /// A period that the schedule names. `None` if it never runs anything at AWS.
    fn period(&mut self, item: &Item, named: &str) -> Result<Option<PeriodDefinition>, String> {
        let (name, instance_type) = match named.split_once('@') {
            Some((name, instance_type)) => (name, Some(instance_type)),
            None => (named, None),
        };
        self.used.insert(name.to_owned());
        let unknown = || format!("its period `{name}` is in none of the files");
        let period = self.periods.get(name).cloned().ok_or_else(unknown)?;
        if let Some(instance_type) = instance_type {
            let message = format!(
                "the instance type {instance_type} in period `{name}` has no counterpart: \
                 machines keep their size"
            );
            self.remark(item, message);
        }
        let in_period = |message| format!("period `{name}`: {message}");
        let definition = definition(&period).map_err(in_period)?;
        if definition.begin.is_none() && definition.end.as_deref() == Some("00:00") {
            let message = "its end at 00:00 alone stops for the whole day there, and at the \
                           midnight after the day here; write state = \"stopped\" for every day";
            return Err(in_period(message.to_owned()));
        }
        if definition.begin >= definition.end
            && let (Some(begin), Some(end)) = (&definition.begin, &definition.end)
        {
            let message = format!(
                "from {begin} to {end} it never ran anything there, and is left out; here it would \
                 end on the next day"
            );
            self.remark(&period, message);
            return Ok(None);
        }
        for entry in period.list("weekdays").map_err(in_period)?.unwrap_or_default() {
            if let Some(day) = days::last_of_month(&entry).filter(|_| entry.ends_with('l')) {
                let message = format!(
                    "`{entry}` is the last `{day}` of each month, there and here; for every one, \
                     remove the l"
                );
                self.remark(&period, message);
            }
        }
        let known = ["type", "name", "begintime", "endtime", "weekdays", "monthdays", "months"];
        let silent = ["description", "configuredinstack"];
        let known = [known.as_slice(), &silent].concat();
        for other in period.others(&known) {
            self.remark(&period, format!("`{other}` has no counterpart"));
        }
        Ok(Some(definition))
    }

    fn settle_one_sided(
        &mut self,
        item: &Item,
        periods: Vec<PeriodDefinition>,
    ) -> Result<Vec<PeriodDefinition>, String> {
        match one_sided::compare(&periods) {
            Some(Equivalence::Same) => Ok(periods),
            Some(Equivalence::Looser) => {
                let message = "on days that a period with only a begin or an end does not name, \
                               there is no desired state here, and not \"stopped\"";
                self.remark(item, message);
                Ok(periods)
            }
            None => Err(
                "its periods with only a begin or an end, on some days only, mean something else \
                 here; write periods with both"
                    .to_owned(),
            ),
        }
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

    fn report_untranslated(&mut self, item: &Item) -> Result<(), String> {
        for (key, name) in [
            ("hibernate", "hibernate"),
            ("usemaintenancewindow", "use_maintenance_window"),
            ("usemetrics", "use_metrics"),
        ] {
            if item.flag(key)? == Some(true) {
                self.remark(item, format!("`{name}` has no counterpart"));
            }
        }
        if let Some(windows) = item.list("ssmmaintenancewindow")? {
            let windows = windows.join(", ");
            let message = format!("`ssm_maintenance_window` ({windows}) has no counterpart");
            self.remark(item, message);
        }
        for other in item.others(&SCHEDULE) {
            self.remark(item, format!("`{other}` has no counterpart"));
        }
        Ok(())
    }

    fn report_unused_periods(&mut self) {
        for (name, period) in std::mem::take(&mut self.periods) {
            if !self.used.contains(&name) {
                self.remark(&period, "no schedule names it, and it is left out");
            }
        }
    }
}

/// The fields of a schedule that are handled, or that do not affect when it runs.
const SCHEDULE: [&str; 15] = [
    "type",
    "name",
    "description",
    "timezone",
    "periods",
    "overridestatus",
    "enforced",
    "retainrunning",
    "stopnewinstances",
    "hibernate",
    "usemaintenancewindow",
    "ssmmaintenancewindow",
    "usemetrics",
    "configuredinstack",
    "overwrite",
];

fn schedule(definition: &Definition) -> Result<Schedule, String> {
    Schedule::new(definition).map_err(|problems| {
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        problems.join("; ")
    })
}

fn definition(period: &Item) -> Result<PeriodDefinition, String> {
    let time = |key| {
        let text = period.text(key)?;
        text.map(|text| days::time(&text)).transpose()
    };
    Ok(PeriodDefinition {
        weekdays: days::field(period.list("weekdays")?, days::weekdays)?,
        monthdays: days::field(period.list("monthdays")?, days::monthdays)?,
        months: days::field(period.list("months")?, days::months)?,
        begin: time("begintime")?,
        end: time("endtime")?,
        ..PeriodDefinition::default()
    })
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
    let document = toml_edit::ser::to_document(&periods).expect("periods are TOML");
    document.to_string()
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
