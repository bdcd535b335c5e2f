//! Random schedules against a simpler model, which walks through the minutes of a zone's clock and
//! paints onto them what each period says.

use jiff::{
    SignedDuration, Timestamp, ToSpan,
    civil::{Date, DateTime, Weekday},
    tz::TimeZone,
};
use proptest::{prelude::*, sample::select};

use crate::schedule::{
    Definition, Desired, Edge, Evaluation, FiringExplanation, LatestEdge, PeriodDefinition,
    PeriodSays, Schedule, clock,
    clock::{Clock, DAY, Instant, Reading},
};

const ZONES: [&str; 12] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "Asia/Beirut",
    "America/Havana",
    "America/St_Johns",
    "Africa/Casablanca",
    "Pacific/Apia",
    "Asia/Kolkata",
    "Antarctica/Troll",
];

/// A text of the grammar, and the days that it stands for.
type DaysOf = (&'static str, fn(Date) -> bool);

const WEEKDAYS: [DaysOf; 7] = [
    ("mon-fri", |date| !is_weekend(date)),
    ("fri-mon", |date| {
        is_weekend(date) || matches!(date.weekday(), Weekday::Friday | Weekday::Monday)
    }),
    ("sat,sun", is_weekend),
    ("sun#1,sunL", |date| {
        date.weekday() == Weekday::Sunday
            && (date.day() <= 7 || date.day() + 7 > date.days_in_month())
    }),
    ("thu", |date| date.weekday() == Weekday::Thursday),
    ("sat", |date| date.weekday() == Weekday::Saturday),
    ("sun", |date| date.weekday() == Weekday::Sunday),
];

const MONTHDAYS: [DaysOf; 5] = [
    ("25-5", |date| date.day() >= 25 || date.day() <= 5),
    ("1/2", |date| date.day() % 2 == 1),
    ("20-L", |date| date.day() >= 20),
    ("L,1", |date| date.day() == 1 || date.day() == date.days_in_month()),
    ("28W", |date| {
        let target = date.with().day(28).build().unwrap();
        let near = (-2..=2).map(|days| target.saturating_add(days.days()));
        let nearest = near
            .filter(|near| near.month() == date.month() && !is_weekend(*near))
            .min_by_key(|near| (*near - target).get_days().abs());
        nearest == Some(date)
    }),
];

const MONTHS: [DaysOf; 2] = [
    ("sep-apr", |date| date.month() >= 9 || date.month() <= 4),
    ("1/2", |date| date.month() % 2 == 1),
];

/// A cron expression that fires at least every other day, and the readings at which it does.
type Firing = (&'static str, fn(DateTime) -> bool);

const FIRINGS: [Firing; 8] = [
    ("0 0 * * *", |at| (at.hour(), at.minute()) == (0, 0)),
    ("15 2 * * *", |at| (at.hour(), at.minute()) == (2, 15)),
    ("30 2 * * *", |at| (at.hour(), at.minute()) == (2, 30)),
    ("45 2,8 * * *", |at| matches!(at.hour(), 2 | 8) && at.minute() == 45),
    ("*/20 1-2 * * *", |at| matches!(at.hour(), 1 | 2) && at.minute() % 20 == 0),
    ("0 1,19 * * *", |at| matches!(at.hour(), 1 | 19) && at.minute() == 0),
    ("30 23 * * *", |at| (at.hour(), at.minute()) == (23, 30)),
    ("30 12 */2 * sun", |at| {
        let day = at.day() % 2 == 1 || at.weekday() == Weekday::Sunday;
        day && (at.hour(), at.minute()) == (12, 30)
    }),
];

fn is_weekend(date: Date) -> bool {
    matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday)
}

#[derive(Debug, Clone)]
struct PeriodModel {
    fields: [Option<DaysOf>; 3],
    /// Minutes after midnight; an end is at most 24 hours.
    begin: Option<i64>,
    end: Option<i64>,
}

impl PeriodModel {
    fn definition(&self) -> PeriodDefinition {
        let text = |field: Option<DaysOf>| field.map(|(text, _)| text.to_owned());
        let time = |minutes: i64| format!("{:02}:{:02}", minutes / 60, minutes % 60);
        let [weekdays, monthdays, months] = self.fields.map(text).map(Vec::from_iter);
        PeriodDefinition {
            weekdays,
            monthdays,
            months,
            begin: self.begin.map(time),
            end: self.end.map(time),
            ..PeriodDefinition::default()
        }
    }

    fn contains(&self, date: Date) -> bool {
        self.fields.iter().flatten().all(|(_, contains)| contains(date))
    }
}

/// Times that often fall into clock changes, and often coincide or leave a minute between them.
fn minutes(least: i64, most: i64) -> impl Strategy<Value = i64> {
    let odd = select(vec![
        0, 1, 30, 59, 60, 61, 90, 119, 120, 121, 150, 180, 181, 1380, 1410, 1439, 1440,
    ]);
    prop_oneof![odd, 0..=1440_i64].prop_map(move |minutes| minutes.clamp(least, most))
}

fn period() -> impl Strategy<Value = PeriodModel> {
    let weekdays = prop::option::weighted(0.5, select(WEEKDAYS.to_vec()));
    let monthdays = prop::option::weighted(0.3, select(MONTHDAYS.to_vec()));
    let months = prop::option::weighted(0.2, select(MONTHS.to_vec()));
    let begin = prop::option::weighted(0.85, minutes(0, 1439));
    let end = prop::option::weighted(0.85, minutes(1, 1440));
    (weekdays, monthdays, months, begin, end)
        .prop_map(|(weekdays, monthdays, months, begin, end)| PeriodModel {
            fields: [weekdays, monthdays, months],
            begin,
            end,
        })
        .prop_filter("a window needs its length", |period| {
            period.begin != period.end || period.begin.is_none()
        })
}

/// An instant, mostly within two days of a clock change.
fn instant(zone: &TimeZone) -> impl Strategy<Value = Timestamp> + use<> {
    let zone = zone.clone();
    let start: Timestamp = "2005-01-01T00:00Z".parse().unwrap();
    let minutes = 40 * 366 * 24 * 60_i64;
    (0..minutes, -2880..2880_i64, prop::bool::weighted(0.8)).prop_map(move |(far, near, change)| {
        let random = start + SignedDuration::from_mins(far);
        let following = zone.following(random).next().map(|change| change.timestamp());
        let base = following.filter(|_| change).unwrap_or(random);
        base + SignedDuration::from_mins(near)
    })
}

/// The minutes of a zone's clock around an instant.
struct Minutes {
    zone: TimeZone,
    first: Timestamp,
    readings: Vec<DateTime>,
}

impl Minutes {
    const MARGIN: usize = 3 * 1440;
    const SPAN: usize = 2 * 1440;

    fn around(zone: &TimeZone, start: Timestamp) -> Self {
        let first = start - SignedDuration::from_mins(Self::MARGIN.try_into().unwrap());
        let mut minutes = Self { zone: zone.clone(), first, readings: Vec::new() };
        let count = Self::SPAN + 2 * Self::MARGIN;
        minutes.readings = (0..count).map(|index| zone.to_datetime(minutes.at(index))).collect();
        minutes
    }

    fn at(&self, index: usize) -> Timestamp {
        self.first + SignedDuration::from_mins(index.try_into().unwrap())
    }

    /// Returns the minutes that are compared: those with enough others on both sides.
    fn middle() -> std::ops::Range<usize> {
        Self::MARGIN..Self::MARGIN + Self::SPAN
    }

    fn days(&self) -> impl Iterator<Item = Date> {
        let (first, last) =
            (self.readings[0].date(), self.readings[self.readings.len() - 1].date());
        first.series(1.day()).take_while(move |date| *date <= last)
    }

    /// Returns the first minute that shows the reading, or one beyond it.
    fn first_showing(&self, reading: DateTime) -> usize {
        let found = self.readings.iter().position(|shown| *shown >= reading);
        found.unwrap_or(self.readings.len())
    }

    /// Returns the last minute that shows the reading; if it is skipped, the first one beyond it.
    fn last_showing(&self, reading: DateTime) -> usize {
        let found = self.readings.iter().rposition(|shown| *shown == reading);
        found.unwrap_or_else(|| self.first_showing(reading))
    }

    /// Compares the desired states of all minutes in the middle, and the edges between them.
    fn compare(
        &self,
        schedule: &Schedule,
        expected: &[Option<Desired>],
    ) -> Result<(), TestCaseError> {
        let middle = Self::middle();
        for index in middle.clone() {
            let at = self.at(index);
            let shown = at.to_zoned(self.zone.clone());
            prop_assert_eq!(schedule.desired_at(at), expected[index], "desired state at {}", shown);
        }
        let changes: Vec<Edge> = middle
            .clone()
            .skip(1)
            .filter(|&index| expected[index] != expected[index - 1])
            .map(|index| Edge { at: self.at(index), desired: expected[index] })
            .collect();
        let (start, end) = (self.at(middle.start), self.at(middle.end - 1));
        let edges: Vec<Edge> = schedule.edges(start).take_while(|edge| edge.at <= end).collect();
        prop_assert_eq!(&edges, &changes);
        for index in middle.step_by(401) {
            let at = self.at(index);
            let next = changes.iter().find(|edge| edge.at > at).copied();
            let found = schedule.next_edge(at);
            prop_assert_eq!(found.filter(|edge| edge.at <= end), next);
            let latest = changes.iter().rfind(|edge| edge.at <= at);
            let LatestEdge { since, desired } = schedule.latest_edge(at);
            prop_assert_eq!(since.filter(|since| *since > start), latest.map(|edge| edge.at));
            prop_assert_eq!(desired, expected[index]);
            if let Some(since) = since {
                prop_assert_eq!(schedule.desired_at(since), desired);
                prop_assert_ne!(schedule.desired_at(since - 1.second()), desired);
            }
        }
        Ok(())
    }
}

/// Returns the desired state at every minute, by painting.
fn paint(minutes: &Minutes, periods: &[PeriodModel], holidays: &[Date]) -> Vec<Option<Desired>> {
    let count = minutes.readings.len();
    let mut running = vec![false; count];
    let mut open = vec![false; count];
    let mut stopped = vec![false; count];
    let mut stopped_at_midnight = vec![false; count];
    for period in periods {
        let one_sided = period.begin.is_some() != period.end.is_some();
        if !one_sided {
            stopped.fill(true);
        }
        for date in minutes.days().filter(|date| period.contains(*date)) {
            let reading = |minute: i64| date.at(0, 0, 0, 0) + SignedDuration::from_mins(minute);
            let midnights = [0, 1440].map(|minute| minutes.last_showing(reading(minute)));
            let (begin, end) = match (period.begin, period.end) {
                (None, Some(end)) => {
                    let [from, to] = midnights;
                    if end == 1440 {
                        let morning = minutes.last_showing(reading(1440 + 360));
                        stopped_at_midnight[to..morning.max(to)].fill(true);
                    }
                    let end = minutes.last_showing(reading(end)).clamp(from, to.max(from));
                    open[from..end].fill(true);
                    stopped[end..to.max(end)].fill(true);
                    continue;
                }
                (None, None) => (0, 1440),
                (Some(begin), None) => (begin, 1440),
                (Some(begin), Some(end)) if end <= begin => (begin, end + 1440),
                (Some(begin), Some(end)) => (begin, end),
            };
            if !holidays.contains(&date) {
                if one_sided {
                    let [from, to] = midnights;
                    open[from..to.max(from)].fill(true);
                }
                let from = minutes.first_showing(reading(begin));
                let to = minutes.last_showing(reading(end));
                running[from..to.max(from)].fill(true);
            }
        }
    }
    let gaps: Vec<usize> = (1..count - 1)
        .filter(|&index| !running[index] && running[index - 1] && running[index + 1])
        .collect();
    for index in gaps {
        running[index] = true;
    }
    for (index, stops) in stopped_at_midnight.into_iter().enumerate() {
        open[index] &= !stops;
        stopped[index] |= stops;
    }
    let desired_states = running.iter().zip(open).zip(stopped);
    desired_states
        .map(|((running, open), stopped)| match (running, open, stopped) {
            (true, _, _) => Some(Desired::Running),
            (false, true, _) | (false, false, false) => None,
            (false, false, true) => Some(Desired::Stopped),
        })
        .collect()
}

/// Returns the desired state at every minute, by firing at every matching reading; `None` before
/// the first firing.
///
/// Readings come in order, so a later one replaces an earlier one wherever both have come.
fn fire(minutes: &Minutes, start: Firing, stop: Firing, holidays: &[Date]) -> Vec<Option<Desired>> {
    let mut latest = vec![None; minutes.readings.len()];
    let readings = minutes.days().flat_map(|date| {
        (0..1440).map(move |minute| date.at(0, 0, 0, 0) + SignedDuration::from_mins(minute))
    });
    for reading in readings {
        if (stop.1)(reading) {
            latest[minutes.last_showing(reading)..].fill(Some(Desired::Stopped));
        }
        if (start.1)(reading) && !holidays.contains(&reading.date()) {
            latest[minutes.first_showing(reading)..].fill(Some(Desired::Running));
        }
    }
    latest
}

/// Returns the desired state at every minute, by firings of one kind: each lasts until midnight, or
/// from midnight until the morning.
fn fire_alone(
    minutes: &Minutes,
    (kind, firing): (Desired, Firing),
    holidays: &[Date],
) -> Vec<Option<Desired>> {
    let mut desired = vec![None; minutes.readings.len()];
    for date in minutes.days() {
        let reading = |minute: i64| date.at(0, 0, 0, 0) + SignedDuration::from_mins(minute);
        for minute in (0..1440).filter(|minute| (firing.1)(reading(*minute))) {
            let from = match kind {
                Desired::Running if holidays.contains(&date) => continue,
                Desired::Running => minutes.first_showing(reading(minute)),
                Desired::Stopped => minutes.last_showing(reading(minute)),
            };
            let to = minutes.last_showing(reading(if minute == 0 { 360 } else { 1440 }));
            desired[from..to.max(from)].fill(Some(kind));
        }
    }
    desired
}

/// Returns the desired state that explained periods add up to: running beats any, any beats
/// stopped. Also checks that a period gives its matching answer exactly when no mismatch is
/// explained.
fn together(explained: &Evaluation) -> Option<Desired> {
    let says = |word| {
        let mut periods = explained.periods.iter();
        periods.any(|period| period.says == Some(word))
    };
    for period in &explained.periods {
        let matching = match period.begins {
            Some(_) => PeriodSays::Running,
            None => PeriodSays::Stopped,
        };
        assert_eq!(period.says == Some(matching), period.misses.is_empty(), "{period:?}");
    }
    if explained.bridged || says(PeriodSays::Running) {
        Some(Desired::Running)
    } else if says(PeriodSays::Stopped) && !says(PeriodSays::Any) {
        Some(Desired::Stopped)
    } else {
        None
    }
}

fn zone() -> impl Strategy<Value = TimeZone> {
    select(ZONES.to_vec()).prop_map(|name| TimeZone::get(name).unwrap())
}

fn holidays_near(start: Timestamp, zone: &TimeZone, offsets: &[i64]) -> Vec<Date> {
    let date = zone.to_datetime(start).date();
    offsets.iter().map(|days| date.saturating_add(days.days())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn periods_desired_state_at_every_minute_what_the_model_paints(
        (zone, start) in zone().prop_flat_map(|zone| (Just(zone.clone()), instant(&zone))),
        periods in prop::collection::vec(period(), 1..5),
        offsets in prop::collection::vec(-1..4_i64, 0..3),
    ) {
        let minutes = Minutes::around(&zone, start);
        let holidays = holidays_near(start, &zone, &offsets);
        let schedule = Schedule::new(&Definition {
            timezone: zone.iana_name().unwrap().to_owned(),
            periods: periods.iter().map(PeriodModel::definition).collect(),
            holidays: holidays.iter().map(Date::to_string).collect(),
            ..Definition::default()
        });
        // Some combinations of days never occur.
        if let Ok(schedule) = schedule {
            minutes.compare(&schedule, &paint(&minutes, &periods, &holidays))?;
        }
    }

    #[test]
    fn the_explained_periods_together_desired_state_what_the_schedule_does(
        (zone, at) in zone().prop_flat_map(|zone| (Just(zone.clone()), instant(&zone))),
        periods in prop::collection::vec(period(), 1..5),
        offsets in prop::collection::vec(-1..4_i64, 0..3),
    ) {
        let schedule = Schedule::new(&Definition {
            timezone: zone.iana_name().unwrap().to_owned(),
            periods: periods.iter().map(PeriodModel::definition).collect(),
            holidays: holidays_near(at, &zone, &offsets).iter().map(Date::to_string).collect(),
            ..Definition::default()
        });
        if let Ok(schedule) = schedule {
            for minute in 0..480 {
                let at = at + SignedDuration::from_mins(minute);
                let explained = schedule.explain(at);
                prop_assert_eq!(together(&explained), schedule.desired_at(at), "{} {:?}", at, explained);
                prop_assert_eq!(explained.periods.len(), periods.len());
            }
        }
    }

    #[test]
    fn an_even_clock_reads_as_one_near_a_change(
        (zone, at) in zone().prop_flat_map(|zone| (Just(zone.clone()), instant(&zone))),
        second in 0..60_i64,
    ) {
        let instant = Instant::of(at) + second;
        let (clock, exact) = (Clock::at(&zone, instant), Clock::near_change(&zone, instant));
        prop_assert_eq!((clock.reached, clock.over), (exact.reached, exact.over));
        // Neighboring minutes of an even clock need no second computation.
        if clock.even {
            let later = Clock::near_change(&zone, instant + 60);
            prop_assert_eq!((clock.later(60).reached, clock.later(60).over), (later.reached, later.over));
        }
    }

    #[test]
    fn a_reading_is_reached_and_over_when_the_clock_says_so(
        (zone, at) in zone().prop_flat_map(|zone| (Just(zone.clone()), instant(&zone))),
        distance in -DAY..DAY,
    ) {
        let instant = Instant::of(at);
        let clock = Clock::at(&zone, instant);
        let reading = Reading::of(zone.to_datetime(at)) + distance;
        prop_assert_eq!(reading <= clock.reached, clock::reached_at(&zone, reading) <= instant);
        prop_assert_eq!(reading <= clock.over, clock::over_at(&zone, reading) <= instant);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, ..ProptestConfig::default() })]

    #[test]
    fn cron_wants_at_every_minute_what_the_model_fires(
        (zone, start) in zone().prop_flat_map(|zone| (Just(zone.clone()), instant(&zone))),
        start_at in select(FIRINGS.to_vec()),
        stop_at in select(FIRINGS.to_vec()),
        offsets in prop::collection::vec(-1..4_i64, 0..3),
    ) {
        prop_assume!(start_at.0 != stop_at.0);
        let minutes = Minutes::around(&zone, start);
        let holidays = holidays_near(start, &zone, &offsets);
        let schedule = Schedule::new(&Definition {
            timezone: zone.iana_name().unwrap().to_owned(),
            holidays: holidays.iter().map(Date::to_string).collect(),
            start: Some(start_at.0.to_owned()),
            stop: Some(stop_at.0.to_owned()),
            ..Definition::default()
        })
        .unwrap();
        minutes.compare(&schedule, &fire(&minutes, start_at, stop_at, &holidays))?;
    }

    #[test]
    fn cron_of_one_kind_wants_at_every_minute_what_the_model_fires(
        (zone, start) in zone().prop_flat_map(|zone| (Just(zone.clone()), instant(&zone))),
        firing in select(FIRINGS.to_vec()),
        kind in select(vec![Desired::Running, Desired::Stopped]),
        offsets in prop::collection::vec(-1..4_i64, 0..3),
    ) {
        let minutes = Minutes::around(&zone, start);
        let holidays = holidays_near(start, &zone, &offsets);
        let text = |of| (kind == of).then(|| firing.0.to_owned());
        let schedule = Schedule::new(&Definition {
            timezone: zone.iana_name().unwrap().to_owned(),
            holidays: holidays.iter().map(Date::to_string).collect(),
            start: text(Desired::Running),
            stop: text(Desired::Stopped),
            ..Definition::default()
        })
        .unwrap();
        minutes.compare(&schedule, &fire_alone(&minutes, (kind, firing), &holidays))?;
    }

    #[test]
    fn the_later_of_the_explained_firings_wants_what_the_schedule_does(
        (zone, at) in zone().prop_flat_map(|zone| (Just(zone.clone()), instant(&zone))),
        start_at in select(FIRINGS.to_vec()),
        stop_at in select(FIRINGS.to_vec()),
        offsets in prop::collection::vec(-1..4_i64, 0..3),
    ) {
        prop_assume!(start_at.0 != stop_at.0);
        let schedule = Schedule::new(&Definition {
            timezone: zone.iana_name().unwrap().to_owned(),
            holidays: holidays_near(at, &zone, &offsets).iter().map(Date::to_string).collect(),
            start: Some(start_at.0.to_owned()),
            stop: Some(stop_at.0.to_owned()),
            ..Definition::default()
        })
        .unwrap();
        for minute in 0..300 {
            let at = at + SignedDuration::from_mins(minute);
            let explained = schedule.explain(at);
            let [start, stop] = &explained.firings[..] else {
                panic!("both expressions are explained: {explained:?}");
            };
            let last = |firing: &FiringExplanation| firing.last.map(|turn| turn.reading);
            let later = if last(start) >= last(stop) { start } else { stop };
            prop_assert_eq!(Some(later.desired), schedule.desired_at(at), "{} {:?}", at, explained);
            for turn in [start.last, stop.last].into_iter().flatten() {
                prop_assert!(turn.at <= at, "{} {:?}", at, turn);
            }
            for turn in [start.next, stop.next].into_iter().flatten() {
                prop_assert!(turn.at >= at, "{} {:?}", at, turn);
            }
        }
    }
}

/// Checks what `Clock::at` and the bridging of gaps take for granted.
#[test]
fn no_zone_moves_its_clock_and_moves_it_back_within_two_days() {
    let (from, until): (Timestamp, Timestamp) =
        ("1973-01-01T00:00Z".parse().unwrap(), "2100-01-01T00:00Z".parse().unwrap());
    let mut changes_seen = 0;
    for name in jiff::tz::db().available() {
        let zone = TimeZone::get(name.as_str()).unwrap();
        let mut changes: Vec<(Timestamp, i32)> = vec![(from, zone.to_offset(from).seconds())];
        for change in zone.following(from).take_while(|change| change.timestamp() < until) {
            changes.push((change.timestamp(), change.offset().seconds()));
        }
        changes.dedup_by_key(|(_, offset)| *offset);
        changes_seen += changes.len();
        for (at, offset) in &changes {
            assert_eq!((at.as_second() % 60, offset % 60), (0, 0), "{name} at {at}");
        }
        for three in changes.windows(3) {
            let [(_, before), (first, _), (second, after)] = three else {
                unreachable!("a window of three")
            };
            let near = second.duration_since(*first) <= SignedDuration::from_hours(50);
            assert!(!(near && before == after), "{name} at {first}");
        }
    }
    assert!(changes_seen > 20_000, "{changes_seen}");
}
