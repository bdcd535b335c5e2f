//! `[schedules.NAME]`: when resources run, which ones, and under which policy.

use std::collections::{BTreeMap, HashMap};

use domain::{
    ScheduleName,
    configuration::Rule,
    schedule::{self, Definition, PeriodDefinition, PeriodField, Place as Part, Schedule},
};

use super::{
    ListedResources, Problem,
    accounts::Accounts,
    document::{Field, Place},
    holidays,
    policy::policy,
    resources::Listings,
};

/// Where the parts of schedules are in the file, each as a problem whose message is its path.
pub(super) type Places = HashMap<(ScheduleName, Part), Problem>;

pub(super) fn read(
    root: &Field,
    accounts: &Accounts,
    listed: ListedResources,
) -> (BTreeMap<ScheduleName, Rule>, Places) {
    let (mut schedules, mut all_places) = (BTreeMap::new(), Places::new());
    let mut listings = Listings::default();
    let defaults = Defaults::read(root);
    let words = ("schedule", "a schedule", "[schedules.NAME]");
    for (name, field) in root.named::<ScheduleName>("schedules", words) {
        if !field.value.is_table() {
            continue;
        }
        let timing = timing(&field, &defaults);
        let resources = listings.read(name.as_ref(), &field, (accounts, listed));
        let policy = policy(&field);
        if let (Some(name), Some((schedule, places))) = (name, timing) {
            let place = |(part, Place { path, start })| {
                ((name.clone(), part), root.problems.problem(start, path))
            };
            all_places.extend(places.into_iter().map(place));
            schedules.insert(name, Rule { schedule, resources, policy });
        }
    }
    listings.check();
    (schedules, all_places)
}

/// What the top level says for all schedules.
struct Defaults<'t> {
    /// Whether there is a time zone, valid or not.
    has_zone: bool,
    /// The time zone if it is valid.
    zone: Option<(Field<'t>, String)>,
    holidays: Vec<(Field<'t>, String)>,
}

impl<'t> Defaults<'t> {
    fn read(root: &Field<'t>) -> Self {
        let zone = root.field("timezone");
        let has_zone = zone.is_some();
        let zone = zone.and_then(|field| {
            let timezone: String = field.read()?;
            // A schedule that is valid except, perhaps, for its zone.
            let periods = vec![PeriodDefinition::default()];
            let probe = Definition { timezone, periods, ..Definition::default() };
            for problem in Schedule::new(&probe).err().unwrap_or_default() {
                field.problems.give_up(&field.place, &problem.message);
            }
            (!field.is_unread()).then_some((field, probe.timezone))
        });
        let holidays = holidays(root);
        for (field, entry) in &holidays {
            // There may be no schedule that has them.
            if let Err(message) = schedule::check_holidays(entry) {
                field.error(message);
            }
        }
        Self { has_zone, zone, holidays }
    }
}

/// Reads the timing: everything that [`Schedule`] validates, and the places of its parts.
fn timing<'t>(
    field: &Field<'t>,
    defaults: &Defaults<'t>,
) -> Option<(Schedule, Vec<(Part, Place)>)> {
    let mut definition: Definition = field.read()?;
    let zone = match (field.field("timezone"), &defaults.zone) {
        (Some(own), _) => own.read(),
        (None, Some((_, zone))) => Some(zone.clone()),
        (None, None) => {
            if !defaults.has_zone {
                let advice = "write timezone = \"Europe/Berlin\" here or at the top of the file";
                field.error(format!("has no time zone; {advice}"));
            }
            None
        }
    };
    // Lets the rest be checked even without a zone.
    definition.timezone = zone.unwrap_or_else(|| "UTC".to_owned());
    let periods = field.list::<PeriodDefinition>("periods");
    let holidays = all_holidays(field, defaults);
    definition.holidays = holidays.iter().map(|(_, text)| text.clone()).collect();
    let default_zone = || defaults.zone.as_ref().map(|(field, _)| field.clone());
    let at = |part| match part {
        Part::Schedule => None,
        Part::Timezone => field.field("timezone").or_else(default_zone),
        Part::Start => field.field("start"),
        Part::Stop => field.field("stop"),
        Part::Holiday(index) => Some(holidays[index].0.clone()),
        Part::Period(index) => Some(periods[index].0.clone()),
        Part::PeriodField(index, part) => {
            let period = &periods[index].0;
            period.field(&part.to_string()).or_else(|| Some(period.clone()))
        }
    };
    // What cannot be read looks absent, and what follows from that is not reported.
    let follows = |part| match part {
        Part::Schedule => field.is_unsure_of(&["periods", "start", "stop", "state"]),
        Part::Period(index) => field.problems.is_unsure(&periods[index].0.place.path),
        Part::PeriodField(index, PeriodField::Begin | PeriodField::End) => {
            periods[index].0.is_unsure_of(&["begin", "end"])
        }
        Part::PeriodField(..) | Part::Timezone | Part::Holiday(_) | Part::Start | Part::Stop => {
            false
        }
    };
    let schedule = Schedule::new(&definition).map_err(|found| {
        for problem in found.into_iter().filter(|problem| !follows(problem.place)) {
            at(problem.place).as_ref().unwrap_or(field).error(problem.message);
        }
    });
    let parts = [Part::Timezone, Part::Start, Part::Stop].into_iter();
    let parts = parts.chain((0..periods.len()).map(Part::Period));
    let parts = parts.chain((0..holidays.len()).map(Part::Holiday));
    Some((schedule.ok()?, parts.filter_map(|part| Some((part, at(part)?.place))).collect()))
}

/// Reads the holidays of a schedule: those of the top level and its own. An empty list is none at
/// all.
fn all_holidays<'t>(field: &Field<'t>, defaults: &Defaults<'t>) -> Vec<(Field<'t>, String)> {
    let is_none = field.field("holidays").is_some_and(|own| own.elements().is_empty());
    let shared = defaults.holidays.iter().filter(|_| !is_none).cloned();
    shared.chain(holidays(field)).collect()
}

/// Reads a list of holidays, with the place of each. The days of a file stand where it is named.
fn holidays<'t>(field: &Field<'t>) -> Vec<(Field<'t>, String)> {
    let mut all = Vec::new();
    for (field, text) in field.list::<String>("holidays") {
        if !text.contains(holidays::FILE) {
            all.push((field, text));
            continue;
        }
        for entry in text.split(',').map(str::trim) {
            let days = match entry.strip_prefix(holidays::FILE) {
                Some(name) => holidays::read(name.trim(), field.problems.folder()),
                None => Ok(vec![entry.to_owned()]),
            };
            match days {
                Ok(days) => all.extend(days.into_iter().map(|day| (field.clone(), day))),
                Err(message) => field.error(message),
            }
        }
    }
    all
}
