//! The tag or label `offhours-until`: everyone who may tag a resource can keep it running until then.
//!
//! A value is counted from when it was first seen, which the record keeps: `2h` has an end, and
//! `21:00` is over once that has come, until the value changes or the tag goes and comes back.

use std::collections::BTreeSet;

use jiff::{
    SignedDuration, Span, SpanRelativeTo, Timestamp, ToSpan as _, civil::Date, tz::TimeZone,
};

use crate::{
    configuration::{Override, OverrideTarget, Rule},
    record::{Record, UntilTag},
    reference::ResourceKind,
    resource::{Cluster, Resource},
    schedule::{self, Desired},
    tags::until_tags,
};

/// The authors of the override that a tag makes.
const TAG: &str = "tag offhours-until";
const LABEL: &str = "label offhours-until";

/// An inventory sees a tag minutes after it was set: a time of day that came in between is over,
/// and not tomorrow's.
const SEEN_WITHIN: SignedDuration = SignedDuration::from_hours(1);

/// How many tags that are gone are kept. Only the latest can have an end that is still to be handled.
const GONE_KEPT: usize = 8;

/// How many edges of a schedule are searched for the stop that a tag puts off.
const EDGES_AHEAD: usize = 64;

/// A value that is not a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the value `{text}` of its {} is not a time", if *.is_label { LABEL } else { TAG })]
pub struct InvalidUntil {
    text: String,
    is_label: bool,
}

impl InvalidUntil {
    /// Returns what to write instead, in the form of its cloud.
    #[must_use]
    pub fn instead(&self) -> &'static str {
        if self.is_label {
            "write offhours-until=21.00, =2h or =2026-11-25T21.00"
        } else {
            "write offhours-until:21:00, :2h or :2026-11-25T21:00"
        }
    }
}

/// What a value says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// `2h`: this long after it was first seen.
    Length(SignedDuration),
    /// `21:00`: when a clock next shows this, in seconds from midnight.
    TimeOfDay(i64),
    /// `2026-11-25T21:00`: a date, and such a time.
    At(Date, i64),
}

impl Until {
    /// Reads a value in lower case. A label may hold no colon: there, a dot stands for it.
    fn parse(text: &str) -> Option<Self> {
        let with_colons = text.replace('.', ":");
        if let Some(time) = time_of_day(&with_colons) {
            return Some(Self::TimeOfDay(time));
        }
        if let Some((date, time)) = with_colons.split_once('t')
            && date.len() == "2026-11-25".len()
            && let Ok(date) = date.parse()
        {
            return time_of_day(time).map(|time| Self::At(date, time));
        }
        let length = text.parse::<Span>().ok()?.to_duration(SpanRelativeTo::days_are_24_hours());
        length.ok().filter(SignedDuration::is_positive).map(Self::Length)
    }

    /// Returns the end; `None` past the end of the calendar.
    fn end(self, seen_at: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let on = |date: Date, time: i64| {
            let reading = date.at(0, 0, 0, 0).checked_add(time.seconds()).ok()?;
            Some(schedule::ends_at(zone, reading))
        };
        match self {
            Self::Length(length) => seen_at.checked_add(length).ok(),
            Self::At(date, time) => on(date, time),
            Self::TimeOfDay(time) => {
                let today = seen_at.to_zoned(zone.clone()).date();
                let ends =
                    (-1..=2).filter_map(|days| on(today.checked_add(days.days()).ok()?, time));
                ends.into_iter().find(|end| *end > seen_at - SEEN_WITHIN)
            }
        }
    }
}

/// Reads `HH:MM`, up to 24:00.
fn time_of_day(text: &str) -> Option<i64> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |text: &str| {
        let is_plain = (1..=2).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_digit());
        text.parse::<i64>().ok().filter(|_| is_plain)
    };
    let minutes = number(minutes).filter(|&number| number < 60 && minutes.len() == 2)?;
    let time = (number(hours)? * 60 + minutes) * 60;
    (time <= 24 * 60 * 60).then_some(time)
}

/// Returns the values of a resource's own tags, or else of its cluster's.
fn values(tags: &BTreeSet<String>, cluster: Option<&Cluster>) -> BTreeSet<String> {
    let own = until_tags(tags);
    let of_cluster = cluster.filter(|_| own.is_empty()).map(|cluster| until_tags(&cluster.tags));
    of_cluster.unwrap_or(own)
}

/// Returns the first value of a recorded resource's tag that is not a time.
#[must_use]
pub fn invalid(record: &Record) -> Option<InvalidUntil> {
    let mut values = values(&record.tags, record.cluster.as_ref()).into_iter();
    let text = values.find(|text| Until::parse(text).is_none())?;
    Some(InvalidUntil { text, is_label: record.has_labels() })
}

impl Record {
    /// Reports whether its cloud has labels in place of tags.
    fn has_labels(&self) -> bool {
        self.kind() == ResourceKind::Server
    }

    /// Returns the record with the values of `offhours-until` that a look shows, if they are not
    /// those that it has.
    #[must_use]
    pub fn with_until_tags_of(&self, resource: &Resource, now: Timestamp) -> Option<Self> {
        let mut record = self.clone();
        record.note_until_tags(resource, now);
        (record.until_tags != self.until_tags).then_some(record)
    }

    /// Records the values of `offhours-until` that a look shows.
    pub fn note_until_tags(&mut self, resource: &Resource, now: Timestamp) {
        let mut values = values(&resource.tags, resource.cluster.as_ref());
        values.retain(|text| Until::parse(text).is_some());
        let handled = self.handled.as_ref().map(|handled| handled.key.instant);
        // Its edges come after the handled one, even if the clock of that one's writer is ahead.
        let after_handled = handled.map(|at| at + SignedDuration::from_millis(1));
        let now = after_handled.map_or(now, |at| at.max(now));
        for one in self.until_tags.iter_mut().filter(|one| one.gone_at.is_none()) {
            if !values.remove(&one.text) {
                one.gone_at = Some(now);
            }
        }
        let new = |text| UntilTag { text, seen_at: now, gone_at: None };
        self.until_tags.extend(values.into_iter().map(new));
        // The end of one that is gone is an edge until a later one was handled.
        let counts = |gone_at| handled.is_some_and(|handled| handled <= gone_at);
        self.until_tags.retain(|one| one.gone_at.is_none_or(counts));
        let gone = self.until_tags.iter().filter(|one| one.gone_at.is_some()).count();
        let mut surplus = gone.saturating_sub(GONE_KEPT);
        self.until_tags.retain(|one| {
            let is_surplus = one.gone_at.is_some() && surplus > 0;
            surplus -= usize::from(is_surplus);
            !is_surplus
        });
    }

    /// Returns the overrides that its tags make under its schedule, the last to end first.
    #[must_use]
    pub fn overrides_by_tag(&self, rule: &Rule) -> Vec<Override> {
        let made = |tag: &UntilTag| {
            let end = Until::parse(&tag.text)?.end(tag.seen_at, rule.schedule.timezone())?;
            let latest = latest_end(rule, tag.seen_at);
            Some(Override {
                target: OverrideTarget::Resource(self.reference.clone()),
                desired: Desired::Running,
                set_at: tag.seen_at,
                ends_at: [latest, tag.gone_at].into_iter().flatten().fold(end, Timestamp::min),
                by: if self.has_labels() { LABEL } else { TAG }.to_owned(),
                why: Some(tag.text.clone()),
                before: None,
            })
        };
        let mut overrides: Vec<_> = self.until_tags.iter().filter_map(made).collect();
        overrides.sort_by_key(|one| std::cmp::Reverse(one.ends_at));
        overrides
    }
}

/// Returns the latest end of a tag that was first seen at an instant: `max_extend` after the stop
/// that it puts off. `None` if there is no such stop.
fn latest_end(rule: &Rule, seen_at: Timestamp) -> Option<Timestamp> {
    let is_stop = |desired| desired == Some(Desired::Stopped);
    let stop = if is_stop(rule.schedule.desired_at(seen_at)) {
        Some(seen_at)
    } else {
        let mut edges = rule.schedule.edges(seen_at).take(EDGES_AHEAD);
        edges.find(|edge| is_stop(edge.desired)).map(|edge| edge.at)
    };
    let most = SignedDuration::try_from(rule.policy.max_extend.get()).ok()?;
    stop?.checked_add(most).ok()
}

#[cfg(test)]
mod tests;
