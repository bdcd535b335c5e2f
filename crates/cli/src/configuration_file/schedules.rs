//! `[schedules.NAME]`: when resources run, which ones, and under which policy.

use std::collections::{BTreeMap, HashMap};

use domain::{
    ScheduleName,
    configuration::Rule,
    schedule::{self, Definition, PeriodDefinition, PeriodField, Place as Part, Schedule},
};
use report::joined;

use super::{
    ListedResources, Problem,
    accounts::Accounts,
    document::{Field, Place},
    holidays,
    policy::policy,
    resources::{self, Listings},
};

/// Where the parts of schedules are in the file, each as a problem whose message is its path.
pub(super) type Places = HashMap<(ScheduleName, Part), Problem>;

pub(super) fn read(
    root: &Field,
    accounts: &Accounts,
    listed: ListedResources,
) -> (BTreeMap<ScheduleName, Rule>, Places) {
    let (mut schedules, mut all_places) = (BTreeMap::new(), Places::new());
    let mut listings = Listings::new();
    let defaults = Defaults::read(root);
    for (name, field) in root.named::<ScheduleName>("schedules", "schedule") {
        if !field.value.is_table() {
            continue;
        }
        let timing = timing(&field, &defaults);
        let resources = resources::read(name.as_ref(), &field, accounts, listed, &mut listings);
        let policy = policy(&field);
        if let (Some(name), Some((schedule, places))) = (name, timing) {
            let place = |(part, Place { path, start })| {
                ((name.clone(), part), root.problems.problem(start, path))
            };
            all_places.extend(places.into_iter().map(place));
            schedules.insert(name, Rule { schedule, resources, policy });
        }
    }
    resources::check(listings);
    (schedules, all_places)
}

/// What the top level says for all schedules.
struct Defaults<'t> {
    /// The time zone, and its name if that is valid.
    zone: Option<(Field<'t>, Option<String>)>,
    holidays: Vec<(Field<'t>, String)>,
}

impl<'t> Defaults<'t> {
    fn read(root: &Field<'t>) -> Self {
        let zone = root.field("timezone").map(|field| {
            let zone: Option<String> = field.read();
            // A schedule that is valid except, perhaps, for its zone.
            let periods = vec![PeriodDefinition::default()];
            let timing = Definition { periods, ..Definition::default() };
            if let Some(Err(message)) = zone.as_ref().map(|zone| in_zone(zone, timing)) {
                field.give_up(&message);
            }
            let zone = zone.filter(|_| !field.is_unread());
            (field, zone)
        });
        let holidays = holidays(root);
        for (field, entry) in &holidays {
            // There may be no schedule that has them.
            if let Err(message) = schedule::check_holidays(entry) {
                field.error(message);
            }
        }
        Self { zone, holidays }
    }
}

/// Returns the schedule with this timing in a time zone, or what is wrong with it.
pub(crate) fn in_zone(timezone: &str, timing: Definition) -> Result<Schedule, String> {
    let definition = Definition { timezone: timezone.to_owned(), ..timing };
    let schedule = Schedule::new(&definition);
    schedule.map_err(|problems| joined(problems.into_iter().map(|one| one.message), "; "))
}

/// Reads the timing: everything that [`Schedule`] validates, and the places of its parts.
fn timing<'t>(
    field: &Field<'t>,
    defaults: &Defaults<'t>,
) -> Option<(Schedule, Vec<(Part, Place)>)> {
    let mut definition: Definition = field.read()?;
    let own_zone = field.field("timezone");
    if own_zone.is_none() && defaults.zone.is_none() {
        let advice = "write timezone = \"Europe/Berlin\" here or at the top of the file";
        field.error(format!("has no time zone; {advice}"));
    }
    let own_zone = own_zone.map(|own| (own.clone(), own.read()));
    let zone = own_zone.as_ref().or(defaults.zone.as_ref());
    // Lets the rest be checked even without a zone.
    let timezone = zone.and_then(|(_, name)| name.clone()).unwrap_or_else(|| "UTC".to_owned());
    definition.timezone = timezone;
    let periods = field.list::<PeriodDefinition>("periods");
    let holidays = all_holidays(field, defaults);
    definition.holidays = holidays.iter().map(|(_, text)| text.clone()).collect();
    let at = |part| match part {
        Part::Schedule => None,
        Part::Timezone => zone.map(|(field, _)| field.clone()),
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
