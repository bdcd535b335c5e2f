//! Schedules: when a resource should run, and the instants at which that changes.
//!
//! [`Definition`] is what an author wrote and what is stored; [`Schedule`] is the same, validated
//! and ready for queries: the desired state at an instant ([`Schedule::desired_at`]), since when
//! ([`Schedule::latest_edge`]) and until when ([`Schedule::next_edge`]). All answers rest on one
//! function from an instant to a desired state, so they cannot contradict each other.
//!
//! Clock changes are handled by the private module `clock`.

mod advice;
mod clock;
mod cron;
mod days;
mod definition;
mod early;
mod edges;
mod explain;
mod holidays;
mod period;
#[cfg(test)]
mod tests;
mod zone;

use std::iter;

use jiff::{
    SignedDuration, Timestamp,
    civil::{Date, DateTime},
    tz::TimeZone,
};
use serde::{Deserialize, Serialize};

pub use clock::Moved;
pub use days::{MONTHS, Miss, WEEKDAYS};
pub use definition::{Definition, PeriodDefinition, PeriodField, Place, Problem};
pub use early::Early;
pub use explain::{
    ClockChange, Evaluation, FiringExplanation, PeriodExplanation, PeriodSays, Turn,
};

pub use zone::database_version as time_zone_database;

use clock::{Clock, Instant, MINUTE, Reading};
use cron::Firings;
use days::Day;
use definition::Problems;
use edges::Edges;
use holidays::Holidays;
use period::{Period, Periods, Stance};

/// The time after which most schedules repeat.
const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);

/// A stop that lasts this long counts as permanent.
const FOR_GOOD: SignedDuration = SignedDuration::from_hours(28 * 24);

/// The desired state of a resource. If either state will do, none is desired, and the resource is
/// left as it is.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Desired {
    /// The resource should run.
    Running,
    /// The resource should be stopped, or as small as possible.
    Stopped,
}

/// Returns the word for a desired state, or `any` for none.
#[must_use]
pub fn desired_or_any(desired: Option<Desired>) -> &'static str {
    desired.map_or("any", Desired::into)
}

/// An instant at which the desired state changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Edge {
    /// The first instant of the new desired state.
    pub at: Timestamp,
    /// The desired state from then on; `None` if either will do.
    pub desired: Option<Desired>,
}

/// The desired state at an instant, and how long it has been so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LatestEdge {
    /// When the desired state became what it is; `None` if no change was found.
    pub since: Option<Timestamp>,
    /// The desired state; `None` if either will do.
    pub desired: Option<Desired>,
}

/// A validated schedule.
///
/// The search for edges of periods covers nine years, so that a 29 February is found across a
/// century without one; a desired state that lasts longer counts as one that never changes. The
/// search for edges of cron expressions covers 4096 firings in either direction, however far away
/// they are.
#[derive(Debug, Clone)]
pub struct Schedule {
    definition: Definition,
    timezone: TimeZone,
    rule: Times,
}

#[derive(Debug, Clone)]
enum Times {
    /// Grouped by the zones in which they are judged; at least one.
    Periods(Vec<Periods>),
    Cron(Box<Firings>),
    /// Always the same.
    Always(Desired),
}

impl Schedule {
    /// Validates a definition. Returns everything that is wrong with it at once, and what to write
    /// instead.
    pub fn new(definition: &Definition) -> Result<Self, Vec<Problem>> {
        let mut schedule = Self::stored(definition);
        for Problem { place, message } in schedule.as_mut().err().into_iter().flatten() {
            if let Some(name) = definition.zone_at(*place) {
                *message = format!("{message}; {}", zone::instead(name));
            }
        }
        schedule
    }

    /// Validates a definition that was valid once, without a word on what to write for an unknown
    /// time zone: the tables for that would add to the archive of each function.
    pub(crate) fn stored(definition: &Definition) -> Result<Self, Vec<Problem>> {
        let mut problems = Problems::default();
        let timezone = problems.take(Place::Timezone, zone::find(&definition.timezone));
        let rule = parse_rule(definition, timezone.as_ref(), &mut problems);
        match (timezone, rule, problems.into_list()) {
            (Some(timezone), Some(rule), problems) if problems.is_empty() => {
                Ok(Self { definition: definition.clone(), timezone, rule })
            }
            (_, _, problems) => Err(problems),
        }
    }

    /// The schedule as its author wrote it.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The zone in which days and times are judged.
    #[must_use]
    pub fn timezone(&self) -> &TimeZone {
        &self.timezone
    }

    /// Reports whether a day in its zone is one of its holidays.
    #[must_use]
    pub fn is_holiday(&self, date: Date) -> bool {
        let day = Day::of(Reading::of(date.at(0, 0, 0, 0)));
        match &self.rule {
            Times::Periods(periods) => periods.iter().any(|group| group.is_holiday(day)),
            Times::Cron(firings) => firings.is_holiday(day),
            Times::Always(_) => false,
        }
    }

    /// Returns the desired state at an instant; `None` if either will do.
    #[must_use]
    pub fn desired_at(&self, at: Timestamp) -> Option<Desired> {
        self.desired(Instant::of(at))
    }

    /// Returns the latest edge at or before an instant.
    #[must_use]
    pub fn latest_edge(&self, at: Timestamp) -> LatestEdge {
        let until = Instant::of(at);
        let since = match &self.rule {
            Times::Periods(periods) => edges::latest_turn(self, periods, until),
            Times::Cron(firings) => firings.latest_turn(&self.timezone, until),
            Times::Always(_) => None,
        };
        LatestEdge { since: since.map(Instant::timestamp), desired: self.desired(until) }
    }

    /// Returns the first edge after an instant.
    #[must_use]
    pub fn next_edge(&self, after: Timestamp) -> Option<Edge> {
        self.edges(after).next()
    }

    /// Returns all edges after an instant, in order. For most schedules, they never end.
    pub fn edges(&self, after: Timestamp) -> impl Iterator<Item = Edge> {
        let after = Instant::of(after);
        let (periods, firings) = match &self.rule {
            Times::Periods(periods) => (Some(Edges::new(self, periods, after)), None),
            Times::Cron(firings) => (None, Some(self.cron_edges(firings, after))),
            Times::Always(_) => (None, None),
        };
        let of_periods = periods.into_iter().flatten();
        of_periods.chain(firings.into_iter().flatten())
    }

    /// Returns the longest of the coming week's stops, each measured until the start that follows
    /// it. `None` if nothing stops, or if a stop is not followed by a start for weeks.
    #[must_use]
    pub fn longest_stop(&self, after: Timestamp) -> Option<SignedDuration> {
        self.longest(Desired::Stopped, after)
    }

    /// Returns the longest of the coming week's runs, each measured until the stop that follows it.
    /// `None` if nothing starts, or if a start is not followed by a stop for weeks.
    #[must_use]
    pub fn longest_run(&self, after: Timestamp) -> Option<SignedDuration> {
        self.longest(Desired::Running, after)
    }

    fn longest(&self, desired: Desired, after: Timestamp) -> Option<SignedDuration> {
        let until = after + WEEK;
        let (mut begun_at, mut longest) = (None, None);
        let edges = self.edges(after);
        for edge in edges.take_while(|edge| edge.at <= until + FOR_GOOD) {
            match (edge.desired, begun_at) {
                (Some(begins), None) if begins == desired && edge.at <= until => {
                    begun_at = Some(edge.at);
                }
                (Some(ends), Some(since)) if ends != desired => {
                    longest = longest.max(Some(edge.at.duration_since(since)));
                    begun_at = None;
                }
                (Some(Desired::Stopped | Desired::Running) | None, _) => {}
            }
            if begun_at.is_none() && edge.at > until {
                break;
            }
        }
        longest.filter(|_| begun_at.is_none())
    }

    fn cron_edges(&self, firings: &Firings, after: Instant) -> impl Iterator<Item = Edge> {
        let next = |after: &Instant| firings.next_turn(&self.timezone, *after);
        iter::successors(next(&after), next)
            .map(|at| Edge { at: at.timestamp(), desired: self.desired(at) })
    }

    fn desired(&self, instant: Instant) -> Option<Desired> {
        let clock = Clock::at(&self.timezone, instant);
        match &self.rule {
            Times::Always(desired) => Some(*desired),
            Times::Cron(firings) => firings.desired(clock),
            Times::Periods(periods) => {
                if say_running(periods, instant) || is_bridged(periods, instant) {
                    return Some(Desired::Running);
                }
                match stance(periods, instant) {
                    Stance::Silent | Stance::Any => None,
                    Stance::Stopped | Stance::StoppedAtMidnight => Some(Desired::Stopped),
                }
            }
        }
    }
}

fn say_running(periods: &[Periods], instant: Instant) -> bool {
    periods.iter().any(|group| group.say_running(Clock::at(&group.zone, instant)))
}

/// Returns what all periods together say while none of them says running.
fn stance(periods: &[Periods], instant: Instant) -> Stance {
    let stances = periods.iter().map(|group| group.stance(Clock::at(&group.zone, instant)));
    stances.max().unwrap_or(Stance::Silent)
}

/// Reports whether an instant at which nothing runs lies in a one-minute gap. Windows begin and end
/// on whole minutes, so that is the case if both the minute before and the minute after run.
fn is_bridged(periods: &[Periods], instant: Instant) -> bool {
    let runs = |distance: i64| {
        periods.iter().any(|group| {
            let clock = Clock::at(&group.zone, instant);
            group.say_running(if clock.even {
                clock.later(distance)
            } else {
                Clock::at(&group.zone, instant + distance)
            })
        })
    };
    let may_bridge = |group: &Periods| group.may_bridge(Clock::at(&group.zone, instant));
    (periods.len() > 1 || periods.iter().any(may_bridge)) && runs(-MINUTE) && runs(MINUTE)
}

/// Returns the instant of an end at this reading of a zone's clock, by the same rule as for a
/// schedule's windows: the jump if the clock skips the reading, its last occurrence if it repeats
/// it.
#[must_use]
pub fn ends_at(zone: &TimeZone, reading: DateTime) -> Timestamp {
    clock::over_at(zone, Reading::of(reading)).timestamp()
}

/// Checks an entry of a list of holidays: days and ranges of days. The error says what to write
/// instead.
pub fn check_holidays(entry: &str) -> Result<(), String> {
    let checked = Holidays::default().add(entry);
    checked.map_err(|messages| messages.join("; "))
}

fn parse_rule(
    definition: &Definition,
    timezone: Option<&TimeZone>,
    problems: &mut Problems,
) -> Option<Times> {
    let mut holidays = Holidays::default();
    for (index, text) in definition.holidays.iter().enumerate() {
        problems.take_all(Place::Holiday(index), holidays.add(text));
    }
    let periods: Vec<Option<Period>> = (0..)
        .zip(&definition.periods)
        .map(|(index, period)| Period::parse(period, index, problems))
        .collect();
    let mut cron = |place, text: &Option<String>| {
        let text = text.as_deref()?;
        problems.take(place, cron::parse(text))
    };
    let start = cron(Place::Start, &definition.start);
    let stop = cron(Place::Stop, &definition.stop);
    let has_cron = definition.start.is_some() || definition.stop.is_some();
    match (periods.is_empty(), has_cron, definition.state) {
        (false, false, None) => {
            let periods: Option<Vec<Period>> = periods.into_iter().collect();
            let periods = period::by_zone(&periods?, timezone?, &holidays);
            Some(Times::Periods(periods))
        }
        (true, true, None) => {
            if start.is_some() && start == stop {
                problems.note(
                    Place::Stop,
                    "start and stop always fire together, and then the start wins; write another \
                     time for one of them",
                );
            }
            let firings = Firings::new(start, stop, holidays);
            Some(Times::Cron(Box::new(firings)))
        }
        (true, false, Some(desired)) => Some(Times::Always(desired)),
        (true, false, None) => {
            problems.note(
                Place::Schedule,
                "the schedule has no times; give it periods, or start and stop, or a state for all \
                 times",
            );
            None
        }
        (_, _, _) => {
            problems.note(
                Place::Schedule,
                "a schedule has either periods, or start and stop, or a state; keep one of them",
            );
            None
        }
    }
}
