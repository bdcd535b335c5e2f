//! `[schedules.NAME]`: when resources run, which ones, and under which policy.

use std::collections::{BTreeMap, HashMap};

use domain::{
    ScheduleName,
    configuration::Rule,
    schedule::{self, Definition, Desired, PeriodDefinition, PeriodField, Schedule},
};
use toml::de::DeValue;

use super::{
    ListedResources, Problem, TABLES,
    accounts::Accounts,
    document::{Entry, Field, Place, Problems, Table},
    elements_of, holidays,
    policy::policy,
    resources::Listings,
};

const PERIODS_EXAMPLE: &str =
    "a list of tables, periods = [{ weekdays = \"mon-fri\", begin = \"08:00\", end = \"19:00\" }]";

/// Where the parts of schedules are in the file, each as a problem whose message is its path.
pub(super) type Places = HashMap<(ScheduleName, schedule::Place), Problem>;

pub(super) fn read(
    root: &Table,
    accounts: &Accounts,
    listed: ListedResources,
    problems: &mut Problems,
) -> (BTreeMap<ScheduleName, Rule>, Places) {
    let mut schedules = BTreeMap::new();
    let mut all_places = Places::new();
    let mut listings = Listings::default();
    let defaults =
        Defaults { zone: default_zone(root, problems), holidays: holidays(root, problems) };
    check_holidays(&defaults.holidays, problems);
    let table = root
        .field("schedules")
        .and_then(|field| field.table("schedules as tables, [schedules.NAME]", problems));
    for entry in table.iter().flat_map(Table::entries) {
        let name = entry.name.parse::<ScheduleName>();
        let name = name.map_err(|error| problems.error(&entry.place, error)).ok();
        let expected = "a schedule as a table, [schedules.NAME]";
        let Some(table) = entry.field.table(expected, problems) else {
            continue;
        };
        let timing = timing(&entry, &table, &defaults, problems);
        let resources = listings.read(name.as_ref(), &table, (accounts, listed), problems);
        let policy = policy(&table, problems);
        if let (Some(name), Some((schedule, places))) = (name, timing) {
            let places = places.into_iter();
            let named = places.map(|(part, place)| ((name.clone(), part), problems.at(&place)));
            all_places.extend(named);
            let rule = Rule { schedule, resources, policy };
            schedules.insert(name, rule);
        }
    }
    listings.check(problems);
    (schedules, all_places)
}

/// What the top level says for all schedules.
struct Defaults {
    zone: DefaultZone,
    holidays: Vec<(Place, String)>,
}

/// The top level's `timezone`.
enum DefaultZone {
    Absent,
    Good(String, Place),
    /// Already reported; problems that depend on it are not reported again.
    Bad,
}

fn default_zone(root: &Table, problems: &mut Problems) -> DefaultZone {
    let Some(field) = root.field("timezone") else {
        return DefaultZone::Absent;
    };
    let Some(zone) = field.text("Europe/Berlin", problems) else {
        return DefaultZone::Bad;
    };
    // A schedule that is valid except, perhaps, for its zone.
    let probe = Definition {
        timezone: zone.to_owned(),
        periods: vec![PeriodDefinition {
            begin: Some("08:00".to_owned()),
            ..PeriodDefinition::default()
        }],
        ..Definition::default()
    };
    match Schedule::new(&probe) {
        Ok(_) => DefaultZone::Good(zone.to_owned(), field.place),
        Err(found) => {
            for problem in found {
                problems.error(&field.place, problem.message);
            }
            DefaultZone::Bad
        }
    }
}

/// Reads the timing: everything that [`Schedule`] validates, and the places of its parts.
fn timing(
    entry: &Entry,
    table: &Table,
    defaults: &Defaults,
    problems: &mut Problems,
) -> Option<(Schedule, Vec<(schedule::Place, Place)>)> {
    let before = problems.errors();
    table.refuse_unknown(&TABLES.schedule, problems);
    let timezone = timezone(entry, table, &defaults.zone, problems);
    let periods = periods(table, problems);
    let holidays = all_holidays(table, defaults, problems);
    let definition = Definition {
        // Lets the rest be checked even without a zone.
        timezone: timezone.unwrap_or_else(|| "UTC".to_owned()),
        periods: periods.iter().map(|period| period.definition.clone()).collect(),
        holidays: holidays.iter().map(|(_, text)| text.clone()).collect(),
        start: cron(table, "start", problems),
        stop: cron(table, "stop", problems),
        state: state(table, problems),
    };
    let in_order = problems.errors() == before;
    let found = match Schedule::new(&definition) {
        Ok(schedule) => {
            let keys = [
                (schedule::Place::Timezone, "timezone"),
                (schedule::Place::Start, "start"),
                (schedule::Place::Stop, "stop"),
            ];
            let default_zone = match &defaults.zone {
                DefaultZone::Good(_, place) if table.field("timezone").is_none() => Some(place),
                DefaultZone::Good(..) | DefaultZone::Absent | DefaultZone::Bad => None,
            };
            let default_zone = default_zone.map(|place| (schedule::Place::Timezone, place.clone()));
            let keys =
                keys.into_iter().filter_map(|(part, key)| Some((part, table.field(key)?.place)));
            let periods = (0..).zip(&periods).map(|(index, period)| {
                (schedule::Place::Period(index), period.field.place.clone())
            });
            let holidays = (0..)
                .zip(&holidays)
                .map(|(index, (place, _))| (schedule::Place::Holiday(index), place.clone()));
            let places = keys.chain(default_zone).chain(periods).chain(holidays);
            return Some((schedule, places.collect()));
        }
        Err(found) => found,
    };
    for problem in found {
        if let schedule::Place::Holiday(index) = problem.place {
            problems.error(&holidays[index].0, problem.message);
            continue;
        }
        let (field, in_order) = match problem.place {
            schedule::Place::Schedule | schedule::Place::Holiday(_) => (None, in_order),
            schedule::Place::Timezone => (table.field("timezone"), true),
            schedule::Place::Start => (table.field("start"), true),
            schedule::Place::Stop => (table.field("stop"), true),
            schedule::Place::Period(index) => {
                (Some(periods[index].field.clone()), periods[index].in_order)
            }
            schedule::Place::PeriodField(index, part) => periods[index].part(part),
        };
        // An unreadable value was reported already; it looks absent here, so that is not reported
        // again.
        if in_order {
            let place = field.map_or_else(|| entry.place.clone(), |field| field.place);
            problems.error(&place, problem.message);
        }
    }
    None
}

fn timezone(
    entry: &Entry,
    table: &Table,
    default_zone: &DefaultZone,
    problems: &mut Problems,
) -> Option<String> {
    match (table.field("timezone"), default_zone) {
        (Some(field), _) => field.text("Europe/Berlin", problems).map(str::to_owned),
        (None, DefaultZone::Good(zone, _)) => Some(zone.clone()),
        (None, DefaultZone::Bad) => None,
        (None, DefaultZone::Absent) => {
            let advice = "write timezone = \"Europe/Berlin\" here or at the top of the file";
            problems.error(&entry.place, format!("has no time zone; {advice}"));
            None
        }
    }
}

/// One period, as far as it could be read.
struct Period<'t> {
    field: Field<'t>,
    table: Table<'t>,
    definition: PeriodDefinition,
    /// Whether all of it could be read.
    in_order: bool,
    /// Whether `begin` and `end` could be read.
    times_in_order: bool,
}

impl<'t> Period<'t> {
    /// The place of a field, and whether a problem there is real: not a consequence of one already
    /// reported.
    fn part(&self, part: PeriodField) -> (Option<Field<'t>>, bool) {
        let (key, in_order) = match part {
            PeriodField::Weekdays => ("weekdays", true),
            PeriodField::Monthdays => ("monthdays", true),
            PeriodField::Months => ("months", true),
            PeriodField::From => ("from", true),
            PeriodField::Until => ("until", true),
            PeriodField::Timezone => ("timezone", true),
            // Each is validated against the other.
            PeriodField::Begin => ("begin", self.times_in_order),
            PeriodField::End => ("end", self.times_in_order),
        };
        let field = self.table.field(key);
        (Some(field.unwrap_or_else(|| self.field.clone())), in_order)
    }
}

fn periods<'t>(table: &Table<'t>, problems: &mut Problems) -> Vec<Period<'t>> {
    let Some(field) = table.field("periods") else {
        return Vec::new();
    };
    if field.value().as_array().is_none() {
        field.report_wrong_type(PERIODS_EXAMPLE, problems);
        return Vec::new();
    }
    let elements = field.elements();
    elements.into_iter().filter_map(|field| period(field, problems)).collect()
}

fn period<'t>(field: Field<'t>, problems: &mut Problems) -> Option<Period<'t>> {
    let before = problems.errors();
    let example = "a period as a table, { weekdays = \"mon-fri\", begin = \"08:00\" }";
    let table = field.table(example, problems)?;
    table.refuse_unknown(&TABLES.period, problems);
    let begin = time(&table, "begin", problems);
    let end = time(&table, "end", problems);
    let times_in_order = problems.errors() == before;
    let definition = PeriodDefinition {
        weekdays: expressions(&table, "weekdays", "mon-fri", problems),
        monthdays: expressions(&table, "monthdays", "1-7", problems),
        months: expressions(&table, "months", "nov-feb", problems),
        timezone: table
            .field("timezone")
            .and_then(|field| field.text("America/New_York", problems))
            .map(str::to_owned),
        from: table
            .field("from")
            .and_then(|field| date(&field, "a day, such as \"2026-12-01\"", problems)),
        until: table
            .field("until")
            .and_then(|field| date(&field, "a day, such as \"2027-02-28\"", problems)),
        begin,
        end,
    };
    Some(Period { field, table, definition, in_order: problems.errors() == before, times_in_order })
}

/// Reads one expression or a list of them. Numbers are taken as their decimal text.
fn expressions(table: &Table, key: &str, example: &str, problems: &mut Problems) -> Vec<String> {
    let Some(field) = table.field(key) else {
        return Vec::new();
    };
    let elements = field.elements();
    if elements.is_empty() {
        // An absent key matches every day, which an empty list hardly means.
        let message = format!("is empty; write \"{example}\", or leave the key out for all");
        problems.error(&field.place, message);
    }
    let expression = |field: &Field| match field.value() {
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => {
            field.report_wrong_type(&format!("a string, such as \"{example}\""), problems);
            None
        }
    };
    elements.iter().filter_map(expression).collect()
}

/// Reads a time of day: a string, or TOML's own local time.
fn time(table: &Table, key: &str, problems: &mut Problems) -> Option<String> {
    let field = table.field(key)?;
    let expected = "a time of day, such as \"08:00\"";
    let DeValue::Datetime(datetime) = field.value() else {
        if field.value().as_str().is_none() {
            field.report_wrong_type(expected, problems);
        }
        return field.value().as_str().map(str::to_owned);
    };
    let (None, Some(time), None) = (datetime.date, datetime.time, datetime.offset) else {
        problems.error(&field.place, format!("has a date or an offset; write {expected}"));
        return None;
    };
    if time.second.unwrap_or(0) != 0 || time.nanosecond.unwrap_or(0) != 0 {
        problems.error(&field.place, format!("has seconds; write {expected}"));
        return None;
    }
    Some(format!("{:02}:{:02}", time.hour, time.minute))
}

/// Reads the holidays of a schedule: those of the top level and its own. An empty list is none at
/// all.
fn all_holidays(
    table: &Table,
    defaults: &Defaults,
    problems: &mut Problems,
) -> Vec<(Place, String)> {
    let is_none = table.field("holidays").is_some_and(|own| own.elements().is_empty());
    let shared = defaults.holidays.iter().filter(|_| !is_none).cloned();
    shared.chain(holidays(table, problems)).collect()
}

/// Reads a list of holidays, with the place of each. The days of a file stand where it is named.
fn holidays(table: &Table, problems: &mut Problems) -> Vec<(Place, String)> {
    let expected = "a day or days, such as \"2026-12-24..2026-12-26\", or \"01-01\" for every year";
    let mut all = Vec::new();
    for field in elements_of(table, "holidays") {
        let Some(text) = date(&field, expected, problems) else {
            continue;
        };
        let entries = if text.contains(holidays::FILE) {
            text.split(',').map(str::trim).map(str::to_owned).collect()
        } else {
            vec![text]
        };
        for entry in entries {
            let days = match entry.strip_prefix(holidays::FILE) {
                Some(name) => holidays::read(name.trim(), problems.folder()),
                None => Ok(vec![entry]),
            };
            match days {
                Ok(days) => all.extend(days.into_iter().map(|day| (field.place.clone(), day))),
                Err(message) => problems.error(&field.place, message),
            }
        }
    }
    all
}

/// Checks the holidays of the top level, which no schedule may have.
fn check_holidays(holidays: &[(Place, String)], problems: &mut Problems) {
    for (place, entry) in holidays {
        if let Err(message) = schedule::check_holidays(entry) {
            problems.error(place, message);
        }
    }
}

/// Reads a day: a string, which may hold more than one day, or TOML's own local date.
fn date(field: &Field, expected: &str, problems: &mut Problems) -> Option<String> {
    let DeValue::Datetime(datetime) = field.value() else {
        if field.value().as_str().is_none() {
            field.report_wrong_type(expected, problems);
        }
        return field.value().as_str().map(str::to_owned);
    };
    let (Some(date), None, None) = (datetime.date, datetime.time, datetime.offset) else {
        problems.error(&field.place, format!("has a time; write {expected}"));
        return None;
    };
    Some(date.to_string())
}

fn state(table: &Table, problems: &mut Problems) -> Option<Desired> {
    let states = [Desired::Running, Desired::Stopped].map(|state| (state.as_str(), state));
    table.field("state")?.choice(&states, problems)
}

fn cron(table: &Table, key: &str, problems: &mut Problems) -> Option<String> {
    let text = table.field(key)?.text("0 8 * * mon-fri", problems)?;
    Some(text.to_owned())
}
