//! A schedule's `start` and `stop`: cron expressions in its time zone.
//!
//! With both, the desired state is that of the latest firing. One alone asks for its state until
//! midnight, or from midnight until the morning, so that each day's first firing is an edge.

mod text;

pub(in crate::schedule) use text::digit_days;

use std::iter;

use croner::{
    Cron, Direction,
    parser::{CronParser, Seconds, Year},
};
use jiff::tz::TimeZone;

use super::{
    Desired,
    clock::{self, Clock, DAY, Instant, NIGHT, Reading},
    days::Day,
    holidays::Holidays,
};

/// The most firings that are examined in search of one that changes the desired state. For daily
/// ones, that is more than ten years.
const MOST_FIRINGS: usize = 4_096;

/// The most consecutive holidays that are skipped in search of a firing: about nine years.
const MOST_HOLIDAYS: usize = 9 * 366;

/// What a firing asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Start,
    Stop,
}

impl Kind {
    /// Returns the desired state after such a firing.
    pub(super) fn desired(self) -> Desired {
        match self {
            Self::Start => Desired::Running,
            Self::Stop => Desired::Stopped,
        }
    }

    /// Returns the furthest reading whose firing has come: a start comes like the begin of a
    /// window, and a stop like its end.
    fn reading(self, clock: Clock) -> Reading {
        match self {
            Self::Start => clock.reached,
            Self::Stop => clock.over,
        }
    }

    /// Returns until when a firing's state is desired if the schedule has no other kind.
    fn lasts_until(reading: Reading) -> Reading {
        let midnight = Reading::midnight(reading.day());
        midnight + if reading == midnight { NIGHT } else { DAY }
    }

    /// Returns the instant at which a firing comes.
    pub(super) fn instant(self, zone: &TimeZone, reading: Reading) -> Instant {
        match self {
            Self::Start => clock::reached_at(zone, reading),
            Self::Stop => clock::over_at(zone, reading),
        }
    }
}

/// The readings of one kind's firings around a clock's present reading.
#[derive(Debug, Clone, Copy)]
pub(super) struct Around {
    /// The last firing that has come.
    pub(super) last: Option<Reading>,
    /// The next firing to come.
    pub(super) next: Option<Reading>,
    /// A firing after `last` that was skipped because its day is a holiday.
    pub(super) passed_over: Option<Reading>,
}

/// A schedule's cron expressions, at least one.
#[derive(Debug, Clone)]
pub(super) struct Firings {
    start: Option<Cron>,
    stop: Option<Cron>,
    holidays: Holidays,
}

impl Firings {
    pub(super) fn new(start: Option<Cron>, stop: Option<Cron>, holidays: Holidays) -> Self {
        Self { start, stop, holidays }
    }

    fn only_kind(&self) -> Option<Kind> {
        match (&self.start, &self.stop) {
            (Some(_), None) => Some(Kind::Start),
            (None, Some(_)) => Some(Kind::Stop),
            (Some(_), Some(_)) | (None, None) => None,
        }
    }

    /// Returns the desired state of the firing with the latest reading; of two with the same, the
    /// start's.
    ///
    /// Readings are compared rather than instants, so that a repeated hour cannot swap a stop and
    /// the start after it, and a skipped one cannot merge them.
    pub(super) fn desired(&self, clock: Clock) -> Option<Desired> {
        if let Some(kind) = self.only_kind() {
            let last = self.find(kind, kind.reading(clock), Direction::Backward)?;
            return (clock.over < Kind::lasts_until(last)).then_some(kind.desired());
        }
        let latest = |kind: Kind| self.find(kind, kind.reading(clock), Direction::Backward);
        match (latest(Kind::Start), latest(Kind::Stop)) {
            (None, None) => None,
            (start, stop) if start >= stop => Some(Desired::Running),
            (_, _) => Some(Desired::Stopped),
        }
    }

    /// Returns the first instant after `after` at which the desired state becomes known or changes.
    pub(super) fn next_turn(&self, zone: &TimeZone, after: Instant) -> Option<Instant> {
        if let Some(kind) = self.only_kind() {
            return self.next_turn_of(kind, zone, after);
        }
        let desired_at = |instant| self.desired(Clock::at(zone, instant));
        let desired = desired_at(after);
        let first =
            |kind| self.after(zone, kind, after).find(|&instant| desired_at(instant) != desired);
        let kinds = [Kind::Start, Kind::Stop].into_iter();
        kinds.filter(|kind| Some(kind.desired()) != desired).filter_map(first).min()
    }

    /// Returns the last instant up to `until` at which the desired state changed.
    pub(super) fn latest_turn(&self, zone: &TimeZone, until: Instant) -> Option<Instant> {
        if let Some(kind) = self.only_kind() {
            return self.latest_turn_of(kind, zone, until);
        }
        let desired_at = |instant| self.desired(Clock::at(zone, instant));
        let desired = desired_at(until);
        let (kind, opposite) = match desired? {
            Desired::Running => (Kind::Start, Kind::Stop),
            Desired::Stopped => (Kind::Stop, Kind::Start),
        };
        let other =
            self.up_to(zone, opposite, until).find(|&instant| desired_at(instant) != desired)?;
        self.after(zone, kind, other).find(|&instant| desired_at(instant) == desired)
    }

    /// Returns the next turn if all firings are of one kind: each begins its state, and each state
    /// ends no earlier than the one before it.
    fn next_turn_of(&self, kind: Kind, zone: &TimeZone, after: Instant) -> Option<Instant> {
        let desired_at = |instant| self.desired(Clock::at(zone, instant));
        let desired = desired_at(after);
        let reading = kind.reading(Clock::at(zone, after));
        let next = |reading: Reading| self.find(kind, reading + 1, Direction::Forward);
        let last = self.find(kind, reading, Direction::Backward);
        iter::successors(last.or_else(|| next(reading)), |reading| next(*reading))
            .take(MOST_FIRINGS)
            .flat_map(|reading| {
                let ends = clock::over_at(zone, Kind::lasts_until(reading));
                [kind.instant(zone, reading), ends]
            })
            .find(|&at| at > after && desired_at(at) != desired)
    }

    fn latest_turn_of(&self, kind: Kind, zone: &TimeZone, until: Instant) -> Option<Instant> {
        let desired_at = |instant| self.desired(Clock::at(zone, instant));
        let desired = desired_at(until);
        let reading = kind.reading(Clock::at(zone, until));
        let previous = |reading: Reading| self.find(kind, reading, Direction::Backward);
        iter::successors(previous(reading), |reading| previous(*reading - 1))
            .take(MOST_FIRINGS)
            .flat_map(|reading| {
                let ends = clock::over_at(zone, Kind::lasts_until(reading));
                [ends, kind.instant(zone, reading)]
            })
            .find(|&at| at <= until && desired_at(at) == desired && desired_at(at - 1) != desired)
    }

    /// Returns the instants after another one at which a kind fires.
    fn after(
        &self,
        zone: &TimeZone,
        kind: Kind,
        instant: Instant,
    ) -> impl Iterator<Item = Instant> {
        let reading = kind.reading(Clock::at(zone, instant));
        let next = move |reading: &Reading| self.find(kind, *reading + 1, Direction::Forward);
        iter::successors(next(&reading), next)
            .take(MOST_FIRINGS)
            .map(move |reading| kind.instant(zone, reading))
    }

    /// Returns the instants up to another one at which a kind fired, latest first.
    fn up_to(
        &self,
        zone: &TimeZone,
        kind: Kind,
        instant: Instant,
    ) -> impl Iterator<Item = Instant> {
        let reading = kind.reading(Clock::at(zone, instant));
        let latest = self.find(kind, reading, Direction::Backward);
        let previous = move |reading: &Reading| self.find(kind, *reading - 1, Direction::Backward);
        iter::successors(latest, previous)
            .take(MOST_FIRINGS)
            .map(move |reading| kind.instant(zone, reading))
    }

    /// Returns the readings of a kind's firings around a clock's present reading.
    pub(super) fn around(&self, kind: Kind, clock: Clock) -> Around {
        let reading = kind.reading(clock);
        let last = self.find(kind, reading, Direction::Backward);
        let cron = match kind {
            Kind::Start => &self.start,
            Kind::Stop => &self.stop,
        };
        let unfiltered = cron.as_ref().and_then(|cron| nearest(cron, reading, Direction::Backward));
        Around {
            last,
            next: self.find(kind, reading + 1, Direction::Forward),
            passed_over: unfiltered.filter(|_| unfiltered != last),
        }
    }

    pub(super) fn is_holiday(&self, day: Day) -> bool {
        self.holidays.contains(day)
    }

    /// Returns the nearest reading, `from` included, at which a kind fires.
    fn find(&self, kind: Kind, mut from: Reading, direction: Direction) -> Option<Reading> {
        let (cron, passes_holidays) = match kind {
            Kind::Start => (self.start.as_ref()?, true),
            Kind::Stop => (self.stop.as_ref()?, false),
        };
        for _ in 0..MOST_HOLIDAYS {
            let found = nearest(cron, from, direction)?;
            let day = Day::of(found);
            if !(passes_holidays && self.holidays.contains(day)) {
                return Some(found);
            }
            from = match direction {
                Direction::Forward => day.midnight() + DAY,
                Direction::Backward => day.midnight() - 1,
            };
        }
        None
    }
}

fn nearest(cron: &Cron, from: Reading, direction: Direction) -> Option<Reading> {
    let from = from.civil();
    let found = match direction {
        Direction::Forward => cron.find_next_occurrence(&from, true),
        Direction::Backward => cron.find_previous_occurrence(&from, true),
    };
    found.ok().map(Reading::of)
}

/// Parses a five-field expression, or a nickname such as `@daily`.
pub(super) fn parse(text: &str) -> Result<Cron, String> {
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    let cron = parser.parse(&text::plain(text)?);
    let cron = cron.map_err(|error| text::refused(text, &error))?;
    if nearest(&cron, Reading::midnight(0), Direction::Forward).is_none() {
        return Err(format!(
            "`{text}` never fires because no such day exists; check day of month and month"
        ));
    }
    Ok(cron)
}
