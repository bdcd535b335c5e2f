//! Why a schedule wants what it wants at an instant, part by part.
//!
//! Each part is asked by the functions that the evaluator itself uses, and a property test holds
//! that the parts together give the evaluator's desired state.

use jiff::{
    Timestamp,
    civil::{Date, DateTime},
    tz::TimeZone,
};
use serde::Serialize;

use super::{
    Desired, Rule, Schedule,
    clock::{self, Clock, Instant, Moved, Reading},
    cron::{Firings, Kind},
    days::{Day, Miss},
    period::Periods,
};

/// What a schedule says at an instant, and how each of its parts comes to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evaluation {
    /// The desired state; none where either will do.
    pub desired: Option<Desired>,
    /// What the clock of the schedule's zone shows.
    pub reading: DateTime,
    /// The change of that clock within a day before or after, if there is one.
    pub clock_change: Option<ClockChange>,
    /// Whether the day is a holiday.
    pub holiday: bool,
    /// Whether it runs only because the minute lies between two windows.
    pub bridged: bool,
    /// Each period, in the author's order; none where the schedule has cron expressions.
    pub periods: Vec<PeriodExplanation>,
    /// Each cron expression, `start` first; none where the schedule has periods.
    pub firings: Vec<FiringExplanation>,
}

/// What a period has to say of a day on which it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum PeriodSays {
    /// It should run.
    Running,
    /// It should be stopped.
    Stopped,
    /// Either will do.
    Any,
}

impl PeriodSays {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Any => "any",
        }
    }
}

/// What one period says by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PeriodExplanation {
    /// Its place in the schedule, counted from zero.
    pub index: usize,
    /// What it says: running beats any, any beats stopped. None for a one-sided period on a day
    /// that is not one of its own: it has no say then.
    pub says: Option<PeriodSays>,
    /// The day that was judged: the one on which the window under way began, or today.
    pub day: Date,
    /// When the window of that day begins, were it to.
    pub begins: Option<Turn>,
    /// When it ends.
    pub ends: Option<Turn>,
    /// What does not match; nothing if the period applies.
    pub misses: Vec<Miss>,
}

/// What one cron expression did, and will do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FiringExplanation {
    /// What it asks for: running for `start`, stopped for `stop`.
    pub desired: Desired,
    /// The expression.
    pub expression: String,
    /// When it came last.
    pub last: Option<Turn>,
    /// When it comes next.
    pub next: Option<Turn>,
    /// A later reading than the last at which nothing came, because the day is a holiday.
    pub passed_over: Option<DateTime>,
}

/// A reading of the zone's clock at which something begins or ends, and the instant of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Turn {
    /// What the author wrote, on that day.
    pub reading: DateTime,
    /// When that is.
    pub at: Timestamp,
    /// What a change of the clock does to it.
    pub moved: Option<Moved>,
}

/// A change of a zone's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockChange {
    /// When.
    pub at: Timestamp,
    /// What the clock would have shown then.
    pub from: DateTime,
    /// What it shows instead.
    pub to: DateTime,
}

impl Schedule {
    /// The changes of its zone's clock from one instant on, before another.
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

    /// How the desired state at an instant comes about.
    #[must_use]
    pub fn explain(&self, at: Timestamp) -> Evaluation {
        let zone = &self.timezone;
        let instant = Instant::of(at);
        let clock = Clock::at(zone, instant);
        let today = Day::of(clock::shown(zone, instant));
        let (holiday, bridged, periods, firings) = match &self.rule {
            Rule::Periods(periods) => (
                periods.is_holiday(today),
                !periods.say_running(clock) && self.is_bridged(periods, clock, instant),
                self.explain_periods(periods, clock, today),
                Vec::new(),
            ),
            Rule::Cron(firings) => (
                firings.is_holiday(today),
                false,
                Vec::new(),
                self.explain_firings(firings, clock),
            ),
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

    fn explain_periods(
        &self,
        periods: &Periods,
        clock: Clock,
        today: Day,
    ) -> Vec<PeriodExplanation> {
        let begin = |reading| turn(&self.timezone, reading, clock::reached_at);
        let end = |reading| turn(&self.timezone, reading, clock::over_at);
        periods
            .says(clock, today)
            .enumerate()
            .map(|(index, said)| PeriodExplanation {
                index,
                says: said.says,
                day: said.day.date(),
                begins: said.begin.map(begin),
                ends: said.end.map(end),
                misses: said.misses,
            })
            .collect()
    }

    fn explain_firings(&self, firings: &Firings, clock: Clock) -> Vec<FiringExplanation> {
        let zone = &self.timezone;
        let written = [
            (Kind::Start, &self.definition.start),
            (Kind::Stop, &self.definition.stop),
        ];
        let expressions = written
            .into_iter()
            .filter_map(|(kind, text)| Some((kind, text.as_ref()?)));
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
