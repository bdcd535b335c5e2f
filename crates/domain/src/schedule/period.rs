//! Periods: the windows of time that begin on certain days.

use std::ops::RangeInclusive;

use jiff::tz::TimeZone;

use super::{
    PeriodSays,
    clock::{Clock, DAY, MINUTE, NIGHT, Reading},
    days::{self, Dates, Day, Days, Miss, Monthdays, Months, Weekdays},
    definition::{PeriodDefinition, PeriodField, Place, Problems},
    holidays::Holidays,
    zone,
};

/// What one period says about each of its days. Times are in seconds after the day's midnight; an
/// end may be on the next day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Running from begin to end, stopped otherwise.
    Window { begin: i64, end: i64 },
    /// Running from begin to midnight, and no desired state before it; no say on other days.
    From { begin: i64 },
    /// Stopped from end to midnight, and no desired state before it; no say on other days. An end at
    /// midnight itself stops until the morning, whatever periods say that have yet to begin.
    Until { end: i64 },
}

impl Shape {
    /// Returns the times between which it says running.
    fn running(self) -> Option<(i64, i64)> {
        match self {
            Self::Window { begin, end } => Some((begin, end)),
            Self::From { begin } => Some((begin, DAY)),
            Self::Until { .. } => None,
        }
    }

    fn is_one_sided(self) -> bool {
        match self {
            Self::Window { .. } => false,
            Self::From { .. } | Self::Until { .. } => true,
        }
    }

    /// Returns how far the clock has come within what the shape says about the day after a
    /// midnight.
    fn progress(self, clock: Clock, midnight: Reading) -> Progress {
        let (begun, end) = match self {
            Self::Window { begin, end } => (midnight + begin <= clock.reached, end),
            Self::From { begin } => (midnight + begin <= clock.reached, DAY),
            // What this shape says begins at its end, and an end comes once its reading is over.
            Self::Until { end: DAY } => (midnight + DAY <= clock.over, DAY + NIGHT),
            Self::Until { end } => (midnight + end <= clock.over, DAY),
        };
        if !begun {
            Progress::NotBegun
        } else if clock.over < midnight + end {
            Progress::UnderWay
        } else {
            Progress::Over
        }
    }
}

/// How far a clock has come within what a shape says about a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    NotBegun,
    UnderWay,
    Over,
}

#[derive(Debug, Clone)]
pub(super) struct Period {
    days: Days,
    shape: Shape,
    /// The zone in which it is judged, if that is not the schedule's.
    zone: Option<TimeZone>,
}

impl Period {
    /// Parses a period. Returns `None` after recording everything that is wrong with its
    /// definition.
    pub(super) fn parse(
        definition: &PeriodDefinition,
        index: usize,
        problems: &mut Problems,
    ) -> Option<Self> {
        let place = |field| Place::PeriodField(index, field);
        let weekdays = Weekdays::parse(&definition.weekdays);
        let monthdays = Monthdays::parse(&definition.monthdays);
        let months = Months::parse(&definition.months);
        let weekdays = problems.take_all(place(PeriodField::Weekdays), weekdays);
        let monthdays = problems.take_all(place(PeriodField::Monthdays), monthdays);
        let months = problems.take_all(place(PeriodField::Months), months);
        let zone = match definition.timezone.as_deref().map(zone::find) {
            None => Some(None),
            Some(zone) => problems.take(place(PeriodField::Timezone), zone).map(Some),
        };
        let dates = parse_dates(definition, index, problems);
        let shape = parse_shape(definition, index, problems);
        let days =
            Days { dates: dates?, weekdays: weekdays?, monthdays: monthdays?, months: months? };
        if !days.ever_occur() {
            problems.note(
                Place::Period(index),
                "no day matches all of weekdays, monthdays, months, from and until; widen one of \
                 them, or write two periods",
            );
            return None;
        }
        Some(Self { days, shape: shape?, zone: zone? })
    }
}

/// Groups the periods of a schedule by the zones in which they are judged.
pub(super) fn by_zone(list: &[Period], own: &TimeZone, holidays: &Holidays) -> Vec<Periods> {
    let mut zones: Vec<TimeZone> = Vec::new();
    for period in list {
        let zone = period.zone.as_ref().unwrap_or(own);
        if !zones.contains(zone) {
            zones.push(zone.clone());
        }
    }
    let group = |zone: TimeZone| {
        let list = list.iter().enumerate();
        let list = list.filter(|(_, period)| *period.zone.as_ref().unwrap_or(own) == zone);
        let list = list.map(|(position, period)| (position, period.clone()));
        let (positions, list) = list.unzip();
        Periods::new(positions, list, zone.clone(), holidays.clone())
    };
    zones.into_iter().map(group).collect()
}

fn parse_dates(
    definition: &PeriodDefinition,
    index: usize,
    problems: &mut Problems,
) -> Option<Dates> {
    let mut date = |field, text: &Option<String>| match text.as_deref().map(days::date) {
        None => Some(None),
        Some(date) => problems.take(Place::PeriodField(index, field), date).map(Some),
    };
    let from = date(PeriodField::From, &definition.from);
    let until = date(PeriodField::Until, &definition.until);
    let dates = Dates { from: from?, until: until? };
    if let (Some(from), Some(until)) = (dates.from, dates.until)
        && until < from
    {
        let message = format!("{until} is before {from}, from which the period is; swap them");
        problems.note(Place::PeriodField(index, PeriodField::Until), message);
        return None;
    }
    Some(dates)
}

fn parse_shape(
    definition: &PeriodDefinition,
    index: usize,
    problems: &mut Problems,
) -> Option<Shape> {
    let begin_place = Place::PeriodField(index, PeriodField::Begin);
    let end_place = Place::PeriodField(index, PeriodField::End);
    let begin = definition.begin.as_deref().map(parse_begin);
    let end = definition.end.as_deref().map(parse_end);
    let begin = begin.map(|time| problems.take(begin_place, time));
    let end = end.map(|time| problems.take(end_place, time));
    match (begin, end) {
        (None, None) => Some(Shape::Window { begin: 0, end: DAY }),
        (Some(begin), None) => Some(Shape::From { begin: begin? }),
        (None, Some(end)) => Some(Shape::Until { end: end? }),
        (Some(begin), Some(end)) => {
            let (begin, end) = (begin?, end?);
            if begin == end {
                problems.note(
                    end_place,
                    "the period ends when it begins; write another end, or 00:00 and 24:00 for the \
                     whole day",
                );
                return None;
            }
            let end = if end < begin { end + DAY } else { end };
            Some(Shape::Window { begin, end })
        }
    }
}

fn parse_begin(text: &str) -> Result<i64, String> {
    match parse_time(text)? {
        DAY => {
            Err("24:00 ends a day and cannot begin a period; write 00:00, of the next day"
                .to_owned())
        }
        time => Ok(time),
    }
}

/// Parses an end, for which 00:00 is the midnight after the day.
fn parse_end(text: &str) -> Result<i64, String> {
    Ok(match parse_time(text)? {
        0 => DAY,
        time => time,
    })
}

/// Parses `HH:MM` into seconds.
fn parse_time(text: &str) -> Result<i64, String> {
    let two_digits = |part: &str| {
        let plain = part.len() == 2 && part.bytes().all(|c| c.is_ascii_digit());
        part.parse::<i64>().ok().filter(|_| plain)
    };
    let parts = text.split_once(':');
    parts
        .and_then(|(hour, minute)| Some((two_digits(hour)?, two_digits(minute)?)))
        .filter(|&(hour, minute)| hour < 24 && minute < 60 || (hour, minute) == (24, 0))
        .map(|(hour, minute)| (hour * 60 + minute) * MINUTE)
        .ok_or_else(|| format!("invalid time `{text}`: expected HH:MM, from 00:00 to 24:00"))
}

/// What periods together say while none of them says running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stance {
    /// None has a say, so that either state will do.
    Silent,
    Stopped,
    Any,
    /// Stopped by an end at midnight, which takes precedence over any.
    StoppedAtMidnight,
}

/// The periods of a schedule that are judged in one time zone.
#[derive(Debug, Clone)]
pub(super) struct Periods {
    pub(super) zone: TimeZone,
    list: Vec<Period>,
    positions: Vec<usize>,
    holidays: Holidays,
    /// Whether a window may begin one minute after another has ended.
    has_minute_gaps: bool,
}

impl Periods {
    fn new(positions: Vec<usize>, list: Vec<Period>, zone: TimeZone, holidays: Holidays) -> Self {
        let windows = || list.iter().filter_map(|period| period.shape.running());
        let follows = |end: i64, begin: i64| (begin - end - MINUTE).rem_euclid(DAY) == 0;
        let has_minute_gaps =
            windows().any(|(_, end)| windows().any(|(begin, _)| follows(end, begin)));
        Self { zone, list, positions, holidays, has_minute_gaps }
    }

    /// Reports whether they obviously say running at every instant.
    pub(super) fn always_run(&self) -> bool {
        let whole_day = Shape::Window { begin: 0, end: DAY };
        let always = |period: &Period| period.shape == whole_day && period.days.contains_all();
        self.holidays.is_empty() && self.list.iter().any(always)
    }

    /// Reports whether a one-minute gap between two windows may lie here.
    pub(super) fn may_bridge(&self, clock: Clock) -> bool {
        self.has_minute_gaps || !clock.even
    }

    pub(super) fn say_running(&self, clock: Clock) -> bool {
        (clock.over.day() - 1..=clock.reached.day()).rev().any(|number| {
            let midnight = Reading::midnight(number);
            let mut day = None;
            self.list.iter().any(|period| {
                period.shape.running().is_some()
                    && period.shape.progress(clock, midnight) == Progress::UnderWay
                    && self.begins(period, *day.get_or_insert_with(|| Day::new(number)))
            })
        })
    }

    /// Returns what the periods say while none of them says running.
    pub(super) fn stance(&self, clock: Clock) -> Stance {
        let day = Day::of(clock.over);
        let stance = |period: &Period| match period.shape {
            Shape::Window { .. } => Stance::Stopped,
            Shape::Until { .. } if self.day_stopped_at_midnight(period, clock).is_some() => {
                Stance::StoppedAtMidnight
            }
            Shape::From { .. } | Shape::Until { .. } if !self.speaks(period, day) => Stance::Silent,
            Shape::Until { .. }
                if period.shape.progress(clock, day.midnight()) == Progress::UnderWay =>
            {
                Stance::Stopped
            }
            Shape::From { .. } | Shape::Until { .. } => Stance::Any,
        };
        let stances = self.list.iter().map(stance);
        stances.max().unwrap_or(Stance::Silent)
    }

    /// Returns the day whose end at midnight still says stopped.
    fn day_stopped_at_midnight(&self, period: &Period, clock: Clock) -> Option<Day> {
        let is_such = matches!(period.shape, Shape::Until { end: DAY });
        let day = is_such.then(|| Day::new(clock.over.day() - 1))?;
        let is_under_way = period.shape.progress(clock, day.midnight()) == Progress::UnderWay;
        (is_under_way && self.speaks(period, day)).then_some(day)
    }

    /// Reports whether a day is one of the period's own. On a holiday nothing begins, but ends
    /// still apply.
    fn speaks(&self, period: &Period, day: Day) -> bool {
        match period.shape {
            Shape::Window { .. } | Shape::From { .. } => self.begins(period, day),
            Shape::Until { .. } => period.days.contains(day),
        }
    }

    /// Returns what each period says by itself, and why, given what all of them together say.
    pub(super) fn says(
        &self,
        clock: Clock,
        today: Day,
        stance: Stance,
    ) -> impl Iterator<Item = (usize, Said)> {
        let said = move |period| self.said(period, clock, today, stance);
        self.positions.iter().copied().zip(self.list.iter().map(said))
    }

    fn said(&self, period: &Period, clock: Clock, today: Day, stance: Stance) -> Said {
        let day = self.judged_day(period, clock, today);
        let midnight = day.midnight();
        let mut misses: Vec<_> = period.days.missing(day).collect();
        if period.shape.running().is_some() && self.holidays.contains(day) {
            misses.push(Miss::Holiday);
        }
        match period.shape.progress(clock, midnight) {
            Progress::NotBegun => misses.push(Miss::NotBegun),
            Progress::UnderWay => {}
            Progress::Over => misses.push(Miss::Over),
        }
        let (begin, end, matching) = match period.shape {
            Shape::Window { begin, end } => (Some(begin), Some(end), PeriodSays::Running),
            Shape::From { begin } => (Some(begin), None, PeriodSays::Running),
            Shape::Until { end } => (None, Some(end), PeriodSays::Stopped),
        };
        let otherwise = if !period.shape.is_one_sided() {
            Some(PeriodSays::Stopped)
        } else if self.speaks(period, day) && stance != Stance::StoppedAtMidnight {
            Some(PeriodSays::Any)
        } else {
            None
        };
        Said {
            says: Some(matching).filter(|_| misses.is_empty()).or(otherwise),
            day,
            begin: begin.map(|time| midnight + time),
            end: end.map(|time| midnight + time),
            misses,
        }
    }

    /// Returns the day whose window is in progress, if need be by its times alone, or else today.
    /// For a one-sided period whose window is not in progress, it is the day that is not over.
    fn judged_day(&self, period: &Period, clock: Clock, today: Day) -> Day {
        let present = Day::of(clock.over);
        if period.shape.running().is_none() {
            return self.day_stopped_at_midnight(period, clock).unwrap_or(present);
        }
        let mut under_way = (present.number - 1..=clock.reached.day())
            .rev()
            .map(Day::new)
            .filter(|day| period.shape.progress(clock, day.midnight()) == Progress::UnderWay);
        let begun = under_way.clone().find(|day| self.begins(period, *day));
        if period.shape.is_one_sided() {
            return begun.unwrap_or(present);
        }
        begun.or_else(|| under_way.next()).unwrap_or(today)
    }

    pub(super) fn is_holiday(&self, day: Day) -> bool {
        self.holidays.contains(day)
    }

    fn begins(&self, period: &Period, day: Day) -> bool {
        period.days.contains(day) && !self.holidays.contains(day)
    }

    /// Returns the readings at which the windows of these days may change the desired state.
    pub(super) fn turns(&self, days: RangeInclusive<i64>) -> Turns {
        let mut turns = Turns::default();
        for number in days {
            let (day, midnight) = (Day::new(number), Reading::midnight(number));
            for period in &self.list {
                if !self.speaks(period, day) {
                    continue;
                }
                let (begin, ends) = match period.shape {
                    Shape::Window { begin, end } => (Some(begin), vec![end]),
                    Shape::From { begin } => (Some(begin), vec![0, DAY]),
                    Shape::Until { end: DAY } => (None, vec![0, DAY, DAY + NIGHT]),
                    Shape::Until { end } => (None, vec![0, end, DAY]),
                };
                turns.begins.extend(begin.map(|time| midnight + time));
                turns.ends.extend(ends.into_iter().map(|time| midnight + time));
            }
        }
        turns
    }
}

/// What one period says by itself.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) says: Option<PeriodSays>,
    pub(super) day: Day,
    /// The readings at which its window of that day begins and ends; `None` if it has no such side.
    pub(super) begin: Option<Reading>,
    pub(super) end: Option<Reading>,
    pub(super) misses: Vec<Miss>,
}

/// The readings at which a desired state may change.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// It may change when one of these is reached.
    pub(super) begins: Vec<Reading>,
    /// It may change when one of these is over.
    pub(super) ends: Vec<Reading>,
}
