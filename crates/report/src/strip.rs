//! What is desired, and what really ran, over a time range: of a schedule, and of a resource. It is
//! drawn on the page and in a terminal.

use std::{borrow::Cow, collections::BTreeMap};

use domain::{
    ScheduleName,
    configuration::{Override, OverrideTarget, Pause},
    decision::{Rules, coming_edges, judge, overrides_of, pauses_of},
    membership::Subject,
    record::{Phase, Record},
    resource::Power,
    schedule::{Desired, Schedule},
};
use jiff::{SignedDuration, Timestamp, ToSpan as _, civil::Date, tz::TimeZone};

use crate::{
    history::{Kind, Period, StoppedInterval},
    pausing,
    state::State,
};

/// Changes closer together than this are drawn as one.
const RESOLUTION: i64 = 60;

/// What is desired, and what really ran, over a time range.
#[derive(Debug, Clone, PartialEq)]
pub struct Strip<'a> {
    pub period: Period,
    /// The desired state, overrides included: in order, and without gaps.
    pub desired: Vec<Span>,
    /// The overrides that apply in the time range, each as far as it does.
    pub overrides: Vec<(Period, Cow<'a, Override>)>,
    /// The pauses of all that it shows, each as far as it lies within.
    pub pauses: Vec<(Period, &'a Pause)>,
    /// The holidays of the schedule, each as far as it lies within.
    pub holidays: Vec<(Date, Period)>,
    /// What really ran, as far as that is known: in order, and never after the present.
    pub ran: Vec<Ran>,
}

/// A time with one desired state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub period: Period,
    /// The desired state; `None` if either will do.
    pub desired: Option<Desired>,
}

/// How many resources ran at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ran {
    pub period: Period,
    pub running: usize,
    pub stopped: usize,
    /// Stopped by Offhours, and started by a person at an unknown instant.
    pub unclear: usize,
}

impl Ran {
    /// The number of resources of which anything is known.
    #[must_use]
    pub fn known(&self) -> usize {
        self.running + self.stopped + self.unclear
    }
}

/// How one resource ran, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Course {
    /// The time of which something is known. It ran in all of it that is not in `stopped`.
    known: Option<Period>,
    stopped: Vec<(Period, Kind)>,
}

impl Course {
    /// Derives it from the intervals that history has, the first of its entries, and the record.
    #[must_use]
    pub fn of(
        record: &Record,
        first: Option<Timestamp>,
        intervals: &[StoppedInterval],
        now: Timestamp,
    ) -> Self {
        let is_off = |one: &&StoppedInterval| one.kind != Kind::WouldHave;
        let mut stopped: Vec<_> =
            intervals.iter().filter(is_off).map(|one| (one.period, one.kind)).collect();
        let state = State::of(record);
        let begin = stopped.first().map(|(period, _)| period.from);
        let since = [first, record.first_seen_at, begin].into_iter().flatten().min();
        let since = since.or(record.observed.as_ref().map(|observed| observed.at));
        let mut end = if let Phase::Gone { since } = record.phase { since.min(now) } else { now };
        let covered = stopped.last().map(|(period, _)| period.until);
        if state.power == Power::Stopped && covered.is_none_or(|covered| covered < end) {
            // A person stopped it, so that history has nothing of it.
            match (state.since, covered.or(since)) {
                (Some(off), at) => {
                    let from = at.map_or(off, |at| at.max(off));
                    stopped.push((Period { from, until: end }, Kind::Stopped));
                }
                (None, at) => end = at.unwrap_or(end),
            }
        }
        let known = since.map(|from| Period { from, until: end }).filter(|one| one.from < end);
        Self { known, stopped }
    }
}

impl<'a> Strip<'a> {
    /// What a schedule desires, and how many of the resources that follow it ran.
    #[must_use]
    pub fn of_schedule(
        name: &ScheduleName,
        schedule: &Schedule,
        rules: Rules<'a>,
        courses: &[&Course],
        period: Period,
        now: Timestamp,
    ) -> Self {
        let target = OverrideTarget::Schedule(name.clone());
        let overrides = within(rules.overrides.get(&target).map(Cow::Borrowed), period);
        let pauses = pausing::of_schedule(rules.overrides, name);
        let edges = schedule.edges(period.from).map(|edge| (edge.at, edge.desired));
        let desired = spans(schedule.desired_at(period.from), edges, period);
        Self {
            desired: overridden(desired, &overrides),
            overrides,
            pauses: paused(pauses, period),
            holidays: holidays(schedule, period),
            ran: ran(courses, period, now),
            period,
        }
    }

    /// What is desired of one resource by all that has a say, and how it ran.
    #[must_use]
    pub fn of_resource(
        record: &'a Record,
        rules: Rules<'a>,
        course: Option<&Course>,
        period: Period,
        now: Timestamp,
    ) -> Self {
        let verdict = judge(record, Subject::recorded(record), rules, period.from);
        let rule = verdict.membership.rule(rules.configuration);
        let overrides = overrides_of(record, &verdict.membership, rules);
        let edges = coming_edges(record, rules, period.from);
        let edges = edges.map(|edge| (edge.key.instant, edge.desired));
        let courses: Vec<_> = course.into_iter().collect();
        Self {
            desired: spans(verdict.desired, edges, period),
            overrides: within(overrides, period),
            pauses: paused(pauses_of(record, &verdict.membership, rules), period),
            holidays: rule.map_or_else(Vec::new, |rule| holidays(&rule.schedule, period)),
            ran: ran(&courses, period, now),
            period,
        }
    }
}

/// Returns the days of a zone that a time range touches, each as far as it lies within.
#[must_use]
pub fn days(period: Period, zone: &TimeZone) -> Vec<(Date, Period)> {
    let midnight = |date: Date| date.to_zoned(zone.clone()).ok().map(|at| at.timestamp());
    let mut date = period.from.to_zoned(zone.clone()).date();
    let mut days = Vec::new();
    while let Some(from) = midnight(date).filter(|from| *from < period.until) {
        let Ok(next) = date.checked_add(1.day()) else { break };
        let until = midnight(next).unwrap_or(Timestamp::MAX);
        days.extend(Period { from, until }.within(period).map(|within| (date, within)));
        date = next;
    }
    days
}

fn holidays(schedule: &Schedule, period: Period) -> Vec<(Date, Period)> {
    let mut days = days(period, schedule.timezone());
    days.retain(|(date, _)| schedule.is_holiday(*date));
    days
}

/// Those of these overrides that apply in a time range, in their order.
fn within<'a>(
    overrides: impl IntoIterator<Item = Cow<'a, Override>>,
    period: Period,
) -> Vec<(Period, Cow<'a, Override>)> {
    let within = overrides.into_iter().filter(|one| one.counts()).filter_map(|one| {
        let whole = Period { from: one.set_at, until: one.ends_at };
        Some((whole.within(period)?, one))
    });
    within.collect()
}

fn paused<'a>(pauses: impl Iterator<Item = &'a Pause>, period: Period) -> Vec<(Period, &'a Pause)> {
    let whole = |one: &Pause| Period { from: one.set_at, until: one.ends_at };
    pauses.filter_map(|one| Some((whole(one).within(period)?, one))).collect()
}

/// The spans between edges in a time range. Neighbours differ.
fn spans(
    first: Option<Desired>,
    edges: impl Iterator<Item = (Timestamp, Option<Desired>)>,
    period: Period,
) -> Vec<Span> {
    let mut spans = vec![Span { period, desired: first }];
    for (at, desired) in edges.take_while(|(at, _)| *at < period.until) {
        push(&mut spans, Span { period: Period { from: at, ..period }, desired });
    }
    spans
}

/// Ends the last span where this one begins, unless both desire the same.
fn push(spans: &mut Vec<Span>, span: Span) {
    if let Some(last) = spans.last_mut() {
        if last.desired == span.desired {
            last.period.until = span.period.until;
            return;
        }
        last.period.until = last.period.until.min(span.period.from);
    }
    spans.push(span);
}

/// Puts what overrides desire in place of what the schedule does.
fn overridden(spans: Vec<Span>, overrides: &[(Period, Cow<'_, Override>)]) -> Vec<Span> {
    let Some((time, one)) = overrides.first() else {
        return spans;
    };
    let Some(end) = spans.last().map(|last| last.period.until) else {
        return spans;
    };
    let before = Period { from: Timestamp::MIN, until: time.from };
    let after = Period { from: time.until, until: end };
    let part = |within: Period| {
        let parts = spans
            .iter()
            .filter_map(move |span| Some(Span { period: span.period.within(within)?, ..*span }));
        parts.collect::<Vec<_>>()
    };
    let during = Span { period: *time, desired: Some(one.desired) };
    let mut all = Vec::new();
    for span in part(before).into_iter().chain([during]).chain(part(after)) {
        push(&mut all, span);
    }
    all
}

/// Counts what ran from one change to the next, until now.
fn ran(courses: &[&Course], period: Period, now: Timestamp) -> Vec<Ran> {
    let Some(past) = period.within(Period { from: period.from, until: now }) else {
        return Vec::new();
    };
    let round = |at: Timestamp| {
        let seconds = at.as_second().div_euclid(RESOLUTION) * RESOLUTION;
        Timestamp::from_second(seconds).unwrap_or(at).clamp(past.from, past.until)
    };
    let mut changes = BTreeMap::<Timestamp, [isize; 3]>::new();
    let mut change = |at: Timestamp, number: usize, by: isize| {
        changes.entry(at).or_default()[number] += by;
    };
    for course in courses {
        let Some(known) = course.known.and_then(|known| known.within(past)) else { continue };
        let known = Period { from: round(known.from), until: known.until };
        change(known.from, 0, 1);
        change(known.until, 0, -1);
        for (stopped, kind) in &course.stopped {
            let Some(within) = stopped.within(known) else { continue };
            let until =
                if within.until == known.until { within.until } else { round(within.until) };
            let number = if *kind == Kind::Unclear { 2 } else { 1 };
            for (at, by) in [(round(within.from), 1), (until, -1)] {
                change(at, number, by);
                change(at, 0, -by);
            }
        }
    }
    let mut ran: Vec<Ran> = Vec::new();
    let mut counts = [0_isize; 3];
    for (at, by) in changes {
        if let Some(last) = ran.last_mut() {
            last.period.until = at;
        }
        for (count, by) in counts.iter_mut().zip(by) {
            *count += by;
        }
        let [running, stopped, unclear] = counts.map(|count| count.max(0).unsigned_abs());
        let next =
            Ran { period: Period { from: at, until: past.until }, running, stopped, unclear };
        let same =
            |last: &Ran| (last.running, last.stopped, last.unclear) == (running, stopped, unclear);
        match ran.last_mut().filter(|last| same(last)) {
            Some(last) => last.period.until = past.until,
            None => ran.push(next),
        }
    }
    ran.retain(|one| one.known() > 0 && one.period.from < one.period.until);
    ran
}

/// The 24 hours around an instant that a page shows: eight before the last full hour, and sixteen
/// after it.
#[must_use]
pub fn around(now: Timestamp) -> Period {
    let hour = now.as_second().div_euclid(3600) * 3600;
    let hour = Timestamp::from_second(hour).unwrap_or(now);
    let hours = SignedDuration::from_hours;
    Period { from: hour - hours(8), until: hour + hours(16) }
}

#[cfg(test)]
mod tests;
