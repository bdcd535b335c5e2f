//! Periods with only a begin or only an end.
//!
//! At AWS, such a period wants *stopped* on days that it does not name. Here it has no say on them,
//! and a schedule made only of such periods has no desired state. So each schedule with such a
//! period is compared by its effect: its starts and stops over five years must be the same in both
//! systems.

use std::collections::BTreeSet;

use domain::schedule::{Definition, Desired, Edge, PeriodDefinition, Schedule};
use jiff::{SignedDuration, Timestamp};

/// Five years, with two leap days among them.
const FIRST_DAY: Timestamp = Timestamp::constant(1_704_067_200, 0);
const DAYS: i64 = 5 * 365 + 2;
const RUNNING: Option<Desired> = Some(Desired::Running);
const STOPPED: Option<Desired> = Some(Desired::Stopped);
const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// How a schedule with one-sided periods, written unchanged, behaves here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Equivalence {
    /// It means the same.
    Same,
    /// It starts and stops at the same times, but has no desired state where AWS wanted stopped.
    Looser,
}

/// Compares the effect of the periods in both systems. `None` if it differs.
pub(super) fn compare(periods: &[PeriodDefinition]) -> Option<Equivalence> {
    let names_days = |period: &PeriodDefinition| {
        let fields = [&period.weekdays, &period.monthdays, &period.months];
        fields.iter().any(|field| !field.is_empty())
    };
    let mut one_sided = periods.iter().filter(|period| is_one_sided(period));
    if !one_sided.any(names_days) {
        return Some(Equivalence::Same);
    }
    if ours(periods)? != theirs(periods)? {
        return None;
    }
    Some(if periods.iter().all(is_one_sided) { Equivalence::Looser } else { Equivalence::Same })
}

fn is_one_sided(period: &PeriodDefinition) -> bool {
    period.begin.is_some() != period.end.is_some()
}

/// The starts and stops here. `None` if the periods are refused.
fn ours(periods: &[PeriodDefinition]) -> Option<Vec<Edge>> {
    let schedule = schedule(periods)?;
    let until = FIRST_DAY + MINUTE * (24 * 60) * i32::try_from(DAYS).ok()?;
    let edges = schedule.edges(FIRST_DAY).take_while(|edge| edge.at < until);
    Some(edges.filter(|edge| edge.desired.is_some()).collect())
}

fn schedule(periods: &[PeriodDefinition]) -> Option<Schedule> {
    let definition = Definition {
        timezone: "UTC".to_owned(),
        periods: periods.to_vec(),
        ..Definition::default()
    };
    Schedule::new(&definition).ok()
}

/// The starts and stops at AWS. `None` if the days of the periods cannot be read.
fn theirs(periods: &[PeriodDefinition]) -> Option<Vec<Edge>> {
    let days_of = |period: &PeriodDefinition| {
        schedule(&[PeriodDefinition { begin: None, end: None, ..period.clone() }])
    };
    let days: Option<Vec<Schedule>> = periods.iter().map(days_of).collect();
    let days = days?;
    let times = periods.iter().flat_map(|period| [&period.begin, &period.end]);
    let turns: BTreeSet<i64> = times.flatten().map(|time| minutes(time)).chain([0]).collect();
    let mut desired_states: Vec<Edge> = Vec::new();
    for day in 0..DAYS {
        let midnight = FIRST_DAY + SignedDuration::from_hours(24 * day);
        let matches: Vec<bool> =
            days.iter().map(|days| days.desired_at(midnight) == Some(Desired::Running)).collect();
        for &turn in &turns {
            let each = periods.iter().zip(&matches);
            let desired = strongest(each.map(|(period, matches)| desired(period, *matches, turn)));
            let at = midnight + SignedDuration::from_mins(turn);
            push(&mut desired_states, Edge { at, desired });
        }
    }
    desired_states.remove(0);
    desired_states.retain(|edge| edge.desired.is_some());
    Some(desired_states)
}

/// Adds a desired state if it is a change. A stop of one minute between two runs is dropped.
fn push(desired_states: &mut Vec<Edge>, next: Edge) {
    if let [.., before, gap] = desired_states.as_slice()
        && (before.desired, gap.desired, next.desired) == (RUNNING, STOPPED, RUNNING)
        && next.at.duration_since(gap.at) <= MINUTE
    {
        desired_states.pop();
    } else if desired_states.last().is_none_or(|last| last.desired != next.desired) {
        desired_states.push(next);
    }
}

fn strongest(desired_states: impl Iterator<Item = Option<Desired>>) -> Option<Desired> {
    let rank = |desired: &Option<Desired>| match desired {
        Some(Desired::Stopped) => 0,
        None => 1,
        Some(Desired::Running) => 2,
    };
    desired_states.max_by_key(rank).unwrap_or(STOPPED)
}

/// The desired state of one period at AWS, at a minute of a day that it does or does not name.
fn desired(period: &PeriodDefinition, matches: bool, minute: i64) -> Option<Desired> {
    let begin = period.begin.as_deref().map(minutes);
    let end = period.end.as_deref().map(minutes);
    let running = |yes| if yes { RUNNING } else { STOPPED };
    match (begin, end) {
        _ if !matches => STOPPED,
        (Some(begin), Some(end)) => running(begin <= minute && minute < end),
        (Some(begin), None) if minute < begin => None,
        (None | Some(_), None) => RUNNING,
        (None, Some(end)) if minute < end => None,
        (None, Some(_)) => STOPPED,
    }
}

/// Minutes after midnight of a valid time.
fn minutes(time: &str) -> i64 {
    let number = |text: &str| text.parse::<i64>().unwrap_or_default();
    let (hour, minute) = time.split_once(':').unwrap_or((time, "0"));
    number(hour) * 60 + number(minute)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(weekdays: &str, begin: &str, end: &str) -> PeriodDefinition {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        PeriodDefinition {
            weekdays: Vec::from_iter(text(weekdays)),
            begin: text(begin),
            end: text(end),
            ..PeriodDefinition::default()
        }
    }

    #[test]
    fn every_day_means_the_same_and_some_days_alone_are_looser() {
        for periods in [
            vec![period("", "", "19:00")],
            vec![period("", "08:00", ""), period("mon-fri", "07:00", "19:00")],
            vec![period("mon-fri", "08:00", "19:00")],
        ] {
            assert_eq!(compare(&periods), Some(Equivalence::Same));
        }
        let evenings = [period("mon-fri", "", "19:00")];
        assert_eq!(compare(&evenings), Some(Equivalence::Looser));
    }

    #[test]
    fn some_days_beside_windows_mean_the_same() {
        let week =
            [period("mon", "09:00", ""), period("tue-thu", "", ""), period("fri", "", "17:00")];
        assert_eq!(compare(&week), Some(Equivalence::Same));
        let office_and_friday = [period("mon-thu", "08:00", "19:00"), period("fri", "", "17:00")];
        assert_eq!(compare(&office_and_friday), Some(Equivalence::Same));
    }

    #[test]
    fn what_does_something_else_here_is_not_read() {
        // Runs from Monday's begin until Saturday at AWS, and is never stopped here.
        assert_eq!(compare(&[period("mon-fri", "08:00", "")]), None);
    }

    #[test]
    fn a_minute_between_two_runs_is_not_a_stop() {
        let days = [
            period("mon", "09:00", ""),
            period("tue", "00:00", "23:59"),
            period("wed-thu", "", ""),
            period("fri", "", "17:00"),
        ];
        assert_eq!(compare(&days), Some(Equivalence::Same));
        // No desired state follows this gap, so its minute is a stop.
        let days = [period("wed-thu", "00:00", "23:59"), period("fri", "", "17:00")];
        assert_eq!(compare(&days), Some(Equivalence::Same));
    }
}
