//! Random schedules: all of the grammar, in several time zones.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    ScheduleName,
    configuration::{
        Adopt, DatabaseMethod, DropletMethod, Methods, Mode, Otherwise, Policy, Rule, ServerMethod,
    },
    hibernation::Risk,
    schedule::{Definition, PeriodDefinition, Schedule},
};
use fastrand::Rng;
use jiff::Timestamp;

use super::edges_of;

const ZONES: [&str; 6] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "America/Argentina/Buenos_Aires",
];

const WEEKDAYS: [&str; 9] =
    ["mon-fri", "mon-fri", "fri-mon", "sat,sun", "sat#1", "friL", "tue", "sun#5,thu", "mon-sun"];

const MONTHDAYS: [&str; 7] = ["1-7", "25-5", "28-L", "1/10", "5-20/3", "15W", "1-L"];

/// Many nights contain the end of one of these.
const MONTHS: [&str; 6] = ["oct", "nov-mar", "apr-sep", "12", "feb-nov/2", "jan/3"];

const CRONS: [(&str, &str); 8] = [
    ("0 8 * * mon-fri", "0 19 * * mon-fri"),
    ("30 1 * * *", "30 2 * * *"),
    ("0 */6 * * *", "45 */6 * * *"),
    ("0 7 1-15 * *", "0 22 * * *"),
    ("5 4 * * sun", "0 0 L * *"),
    ("15 2 * * *", "45 2 * * *"),
    // Two and three nights a day.
    ("0 6,18 * * *", "30 8,20 * * *"),
    ("10 */8 * * *", "20 1-23/8 * * *"),
];

const HOLIDAYS: [&str; 4] = ["2026-12-24..2026-12-26", "01-01", "10-26", "05-01, 10-03"];

/// Returns two or three schedules, under the same names in each night.
pub(super) fn random(
    chance: &mut Rng,
    from: Timestamp,
    until: Timestamp,
) -> BTreeMap<ScheduleName, Rule> {
    let count = chance.usize(2..=3);
    let names = ["office", "lab", "nights"].into_iter().take(count);
    names
        .map(|name| {
            let rule = Rule {
                schedule: schedule(chance, from, until),
                resources: BTreeSet::new(),
                policy: policy(chance),
            };
            (name.parse().expect("a schedule's name"), rule)
        })
        .collect()
}

/// Returns a schedule that has edges within the night, rarely more than two a day.
fn schedule(chance: &mut Rng, from: Timestamp, until: Timestamp) -> Schedule {
    let most = if chance.u8(..8) == 0 { 100 } else { 32 };
    let has_edges =
        |schedule: &Schedule| (3..most).contains(&edges_of(schedule, from, until).len());
    loop {
        let definition = definition(chance);
        let Ok(schedule) = Schedule::new(&definition) else {
            continue;
        };
        if has_edges(&schedule) {
            let seasonal = seasonal(chance, definition).filter(has_edges);
            return seasonal.unwrap_or(schedule);
        }
    }
}

/// Limits one schedule in eight to some months. Takes nothing from `chance`, so that the nights of
/// other seeds stay as they are.
fn seasonal(chance: &Rng, mut definition: Definition) -> Option<Schedule> {
    let mut chance = Rng::with_seed(chance.clone().u64(..));
    if chance.u8(..8) > 0 {
        return None;
    }
    for period in &mut definition.periods {
        period.months = vec![one(&mut chance, &MONTHS).to_owned()];
    }
    Schedule::new(&definition).ok()
}

/// Returns any schedule that a night may have.
#[cfg(test)]
pub(crate) fn any(chance: &mut Rng) -> Definition {
    let definition = definition(chance);
    let seasonal = seasonal(chance, definition.clone());
    seasonal.map_or(definition, |schedule| schedule.definition().clone())
}

fn definition(chance: &mut Rng) -> Definition {
    let timezone = one(chance, &ZONES).to_owned();
    let holidays =
        if chance.u8(..4) == 0 { vec![one(chance, &HOLIDAYS).to_owned()] } else { Vec::new() };
    if chance.u8(..4) == 0 {
        let (start, stop) = CRONS[chance.usize(..CRONS.len())];
        return Definition {
            timezone,
            start: Some(start.to_owned()),
            stop: Some(stop.to_owned()),
            holidays,
            ..Definition::default()
        };
    }
    let periods = (0..chance.u8(1..=2)).map(|_| period(chance)).collect();
    Definition { timezone, periods, holidays, ..Definition::default() }
}

fn period(chance: &mut Rng) -> PeriodDefinition {
    let time = |chance: &mut Rng| {
        let minute = [0, 0, 30, chance.u8(..60)][chance.usize(..4)];
        // Often in the hours in which clocks change.
        let hour = if chance.u8(..4) == 0 { chance.u8(1..4) } else { chance.u8(..24) };
        format!("{hour:02}:{minute:02}")
    };
    let days = chance.u8(..5);
    PeriodDefinition {
        weekdays: (days < 3).then(|| one(chance, &WEEKDAYS).to_owned()).into_iter().collect(),
        monthdays: (days == 3).then(|| one(chance, &MONTHDAYS).to_owned()).into_iter().collect(),
        months: Vec::new(),
        begin: (chance.u8(..8) > 0).then(|| time(chance)),
        end: (chance.u8(..8) > 0).then(|| time(chance)),
        ..PeriodDefinition::default()
    }
}

fn policy(chance: &mut Rng) -> Policy {
    let rarely = |chance: &mut Rng| chance.u8(..8) == 0;
    let enforce = rarely(chance);
    let methods = methods(chance);
    let named = |chance: &mut Rng, plans: &[&str]| {
        (chance.u8(..4) == 0).then(|| one(chance, plans).to_owned())
    };
    let resizes = methods.droplet == DropletMethod::Resize;
    let rescales = methods.server == ServerMethod::Rescale;
    Policy {
        mode: if chance.u8(..16) == 0 { Mode::Observe } else { Mode::Act },
        graceful: chance.bool(),
        force: !rarely(chance),
        enforce,
        retain_running: !enforce && rarely(chance),
        adopt: if rarely(chance) { Adopt::NextEdge } else { Adopt::AtOnce },
        stop_nodes: rarely(chance).then_some(1),
        methods,
        resize_to: named(chance, &["s-1vcpu-1gb", "s-1vcpu-2gb", "s-2vcpu-4gb"])
            .filter(|_| resizes),
        rescale_to: named(chance, &["cpx12", "cpx22", "cpx32"]).filter(|_| rescales),
        start_small: chance.u8(..3) == 0,
        rescaled_runs: rescales && chance.u8(..4) == 0,
        accept: [Risk::NewIp, Risk::LostBackups].into_iter().filter(|_| chance.bool()).collect(),
        otherwise: if chance.bool() { Otherwise::PowerOff } else { Otherwise::Refuse },
        ..Policy::default()
    }
}

fn methods(chance: &mut Rng) -> Methods {
    Methods {
        droplet: match chance.u8(..6) {
            0..=2 => DropletMethod::Hibernate,
            3..=4 => DropletMethod::Resize,
            _ => DropletMethod::PowerOff,
        },
        server: match chance.u8(..6) {
            0..=2 => ServerMethod::Hibernate,
            3..=4 => ServerMethod::Rescale,
            _ => ServerMethod::PowerOff,
        },
        database: if chance.u8(..4) == 0 {
            DatabaseMethod::Standbys
        } else {
            DatabaseMethod::SmallestPlan
        },
    }
}

fn one<'a>(chance: &mut Rng, from: &[&'a str]) -> &'a str {
    from[chance.usize(..from.len())]
}
