//! Why a schedule has its desired state at an instant, part by part.
//!
//! Each part is judged by the functions that the evaluator itself uses, and a property test checks
//! that the parts together give the evaluator's desired state.

use jiff::{
    Timestamp,
    civil::{Date, DateTime},
    tz::TimeZone,
};

use super::{
    Desired, Schedule, Times,
    clock::{self, Clock, Instant, Moved, Reading},
    cron::{Firings, Kind},
    days::{Day, Miss},
    period::Periods,
};

/// The desired state of a schedule at an instant, and how each of its parts contributes to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluation {
    /// The desired state; null if either state will do.
    pub desired: Option<Desired>,
    /// The local date and time in the schedule's time zone.
    pub reading: DateTime,
    /// The clock change in that time zone within a day before or after; null if there is none.
    pub clock_change: Option<ClockChange>,
    pub holiday: bool,
    /// Whether running is desired only because the minute lies between two windows.
    pub bridged: bool,
    /// The periods, in the author's order; empty if the schedule has cron expressions.
    pub periods: Vec<PeriodExplanation>,
    /// The cron expressions, `start` first; empty if the schedule has periods.
    pub firings: Vec<FiringExplanation>,
}

/// The state that a period asks for on a day on which it has a say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeriodSays {
    /// The resource should run.
    Running,
    /// The resource should be stopped.
    Stopped,
    /// Either state will do.
    Any,
}

impl PeriodSays {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Any => "any",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeriodExplanation {
    /// The period's position in the schedule, counted from zero.
    pub index: usize,
    /// What the period says: running beats any, and any beats stopped. Null for a one-sided period
    /// on a day other than its own, on which it has no say.
    pub says: Option<PeriodSays>,
    /// The day that was judged: the one on which the window in progress began, or today.
    pub day: Date,
    /// When the window of that day begins, or would begin; null for a period without a begin.
    pub begins: Option<Turn>,
    /// When the window of that day ends, or would end; null for a period without an end.
    pub ends: Option<Turn>,
    /// The parts of the period that do not match; empty if the period applies.
    pub misses: Vec<Miss>,
}

/// A cron expression, and when it fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FiringExplanation {
    /// The state that it asks for: running for `start`, stopped for `stop`.
    pub desired: Desired,
    pub expression: String,
    /// When it last fired; null if no such time is found.
    pub last: Option<Turn>,
    /// When it fires next; null if no such time is found.
    pub next: Option<Turn>,
    /// The latest local time after `last` at which it did not fire because the day is a holiday;
    /// null if there is none.
    pub passed_over: Option<DateTime>,
}

/// A local time at which something begins or ends, and the instant to which it corresponds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The local date and time, as the author wrote it for that day.
    pub reading: DateTime,
    /// The instant at which it happens.
    pub at: Timestamp,
    /// What a clock change does to it; null if none affects it.
    pub moved: Option<Moved>,
}

/// A clock change in a time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockChange {
    pub at: Timestamp,
    /// The local time that the clock would have shown at that instant.
    pub from: DateTime,
    /// The local time that the clock shows instead.
    pub to: DateTime,
}

impl ClockChange {
    /// Returns the day to which the skipped or repeated hours belong.
    #[must_use]
    pub fn day(&self) -> Date {
        self.from.min(self.to).date()
    }
}

impl Schedule {
    /// Returns the changes of its zone's clock from one instant, inclusive, to another, exclusive.
    pub fn clock_changes(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> impl Iterator<Item = ClockChange> {
        let zone = &self.timezone;
        let until = Instant::of(until);
        zone.following((Instant::of(from) - 1).timestamp())
            .map(|change| Instant::of(change.timestamp()))
            .take_while(move |at| *at < until)
            .map(|at| change(zone, at))
            .filter(|change| change.from != change.to)
    }

    /// Explains how the desired state at an instant comes about.
    #[must_use]
    pub fn explain(&self, at: Timestamp) -> Evaluation {
        let zone = &self.timezone;
        let instant = Instant::of(at);
        let clock = Clock::at(zone, instant);
        let today = Day::of(clock::shown(zone, instant));
        let (holiday, bridged, periods, firings) = match &self.rule {
            Times::Periods(periods) => (
                periods.iter().any(|group| group.is_holiday(today)),
                !super::say_running(periods, instant) && super::is_bridged(periods, instant),
                explain_periods(periods, instant),
                Vec::new(),
            ),
            Times::Cron(firings) => {
                (firings.is_holiday(today), false, Vec::new(), self.explain_firings(firings, clock))
            }
            Times::Always(_) => (false, false, Vec::new(), Vec::new()),
        };
        Evaluation {
            desired: self.desired(instant),
            reading: clock::shown(zone, instant).civil(),
            clock_change: clock::change_near(zone, instant).map(|at| change(zone, at)),
            holiday,
            bridged,
            periods,
            firings,
        }
    }

    fn explain_firings(&self, firings: &Firings, clock: Clock) -> Vec<FiringExplanation> {
        let zone = &self.timezone;
        let written = [(Kind::Start, &self.definition.start), (Kind::Stop, &self.definition.stop)];
        let expressions =
            written.into_iter().filter_map(|(kind, text)| Some((kind, text.as_ref()?)));
        expressions
            .map(|(kind, expression)| {
                let around = firings.around(kind, clock);
                let instant = |zone: &TimeZone, reading| kind.instant(zone, reading);
                FiringExplanation {
                    desired: kind.desired(),
                    expression: expression.clone(),
                    last: around.last.map(|reading| turn(zone, reading, instant)),
                    next: around.next.map(|reading| turn(zone, reading, instant)),
                    passed_over: around.passed_over.map(Reading::civil),
                }
            })
            .collect()
    }
}

/// Explains the periods in their author's order.
fn explain_periods(periods: &[Periods], instant: Instant) -> Vec<PeriodExplanation> {
    let stance = super::stance(periods, instant);
    let explained = periods.iter().flat_map(|group| {
        let zone = &group.zone;
        let begin = |reading| turn(zone, reading, clock::reached_at);
        let end = |reading| turn(zone, reading, clock::over_at);
        let today = Day::of(clock::shown(zone, instant));
        let said = group.says(Clock::at(zone, instant), today, stance);
        said.map(move |(index, said)| PeriodExplanation {
            index,
            says: said.says,
            day: said.day.date(),
            begins: said.begin.map(begin),
            ends: said.end.map(end),
            misses: said.misses,
        })
    });
    let mut explained: Vec<_> = explained.collect();
    explained.sort_by_key(|period| period.index);
    explained
}

fn turn(
    zone: &TimeZone,
    reading: Reading,
    instant: impl Fn(&TimeZone, Reading) -> Instant,
) -> Turn {
    Turn {
        reading: reading.civil(),
        at: instant(zone, reading).timestamp(),
        moved: clock::moved(zone, reading),
    }
}

fn change(zone: &TimeZone, at: Instant) -> ClockChange {
    ClockChange {
        at: at.timestamp(),
        from: (clock::shown(zone, at - 1) + 1).civil(),
        to: clock::shown(zone, at).civil(),
    }
}
