//! The tag `offhours-until`: read here from its description in `docs/schedules.md`, and checked against
//! what the service records of it.

use std::collections::BTreeMap;

use domain::{
    ResourceRef,
    configuration::{Override, OverrideTarget, Rule},
    record::UntilTag,
    record::{Direction, Record},
    schedule::Desired,
};
use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};
use serde_json::Value;

use super::{SLACK, State, evaluator, requests::OBSERVE_AND_SEND, settled::SETTLE_TIME};

/// How old what a list shows may be when it is written.
const LIST_AND_WRITE: SignedDuration = SignedDuration::from_mins(4);

/// How far ahead the stop is searched that a tag puts off.
const AHEAD: SignedDuration = SignedDuration::from_hours(20 * 24);

/// When a value of the tag came to a resource at its cloud, and when it went.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tagged {
    came_at: Timestamp,
    went_at: Option<Timestamp>,
}

/// Returns the values of a resource's own tag.
fn values(state: &Value) -> Vec<String> {
    let tags = state["tags"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let tags = tags.filter_map(|tag| tag.strip_prefix("offhours-until:"));
    // The labels of a pool's nodes say nothing of the pool.
    let label = state["labels"]["offhours-until"].as_str();
    let label = label.filter(|_| state["cluster"].is_null());
    tags.chain(label).map(str::to_lowercase).collect()
}

/// Returns when a value ends that was first seen at an instant; `None` if it is not a time.
fn end(text: &str, seen_at: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let text = text.replace('.', ":");
    let at = |day: Date, minute| evaluator::last_instant(zone, day, minute);
    if let Some((date, time)) = text.split_once('t') {
        let time = minute(time)?;
        return Some(at(date.parse().ok()?, time));
    }
    if let Some(time) = minute(&text) {
        let today = seen_at.to_zoned(zone.clone()).date();
        let days = [today.yesterday().ok()?, today, today.tomorrow().ok()?];
        return days
            .map(|day| at(day, time))
            .into_iter()
            .find(|end| *end > seen_at - SignedDuration::from_hours(1));
    }
    let (number, unit) = text.split_at(text.len().checked_sub(1)?);
    let minutes = match unit {
        "m" => 1,
        "h" => 60,
        _ => return None,
    };
    let number = number.parse::<i64>().ok().filter(|number| *number > 0)?;
    Some(seen_at + SignedDuration::from_mins(number * minutes))
}

fn minute(text: &str) -> Option<i64> {
    let (hours, minutes) = text.split_once(':')?;
    Some(hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?)
}

/// Returns the latest end of a tag that was first seen at an instant.
fn latest_end(rule: &Rule, seen_at: Timestamp) -> Option<Timestamp> {
    let turns = evaluator::turns(rule.schedule.definition(), seen_at, seen_at + AHEAD);
    let stop = turns.into_iter().find(|(_, desired)| *desired == Some(Desired::Stopped));
    let most = SignedDuration::try_from(rule.policy.max_extend.get()).ok()?;
    Some(stop?.0 + most)
}

/// Returns the override that a value makes which was first seen at an instant.
fn overriding(
    reference: &ResourceRef,
    text: &str,
    seen_at: Timestamp,
    gone_at: Option<Timestamp>,
    rule: &Rule,
) -> Option<Override> {
    let end = end(text, seen_at, rule.schedule.timezone())?;
    let ends_at =
        [latest_end(rule, seen_at), gone_at].into_iter().flatten().fold(end, Timestamp::min);
    Some(Override {
        target: OverrideTarget::Resource(reference.clone()),
        desired: Desired::Running,
        set_at: seen_at,
        ends_at,
        by: String::new(),
        why: None,
        before: None,
    })
}

/// Returns the overrides that the recorded values make, the last to end first.
pub(super) fn recorded(record: &Record, rule: &Rule) -> Vec<Override> {
    let tags = record.until_tags.iter().filter_map(|tag| {
        let UntilTag { text, seen_at, gone_at } = tag;
        overriding(&record.reference, text, *seen_at, *gone_at, rule)
    });
    let mut overrides: Vec<_> = tags.filter(|one| one.set_at < one.ends_at).collect();
    overrides.sort_by_key(|one| std::cmp::Reverse(one.ends_at));
    overrides
}

impl State {
    /// Updates what is known of a resource's tags at its cloud.
    pub(super) fn observe_until(&mut self, reference: &ResourceRef, state: &Value) {
        let now = self.time.now();
        let there = values(state);
        let tagged = &mut self.tracked(reference).until;
        for (text, one) in tagged.iter_mut() {
            if one.went_at.is_none() && !there.contains(text) {
                one.went_at = Some(now);
            }
        }
        for text in there {
            let one = tagged.entry(text).or_insert(Tagged { came_at: now, went_at: None });
            if one.went_at.is_some() {
                *one = Tagged { came_at: now, went_at: None };
            }
        }
    }

    /// Checks that the record has what the cloud showed: no value that nobody set or that has long
    /// gone, and each counted from when it was first seen.
    pub(super) fn check_until(&mut self, before: &Record, after: &Record) {
        let reference = &after.reference;
        // What is shown of a machine that sleeps is what it had.
        if self.state_of(reference).is_none() {
            return;
        }
        let now = self.time.now();
        let known = self.resources.get(reference).map(|tracked| tracked.until.clone());
        let known: BTreeMap<String, Tagged> = known.unwrap_or_default();
        let is_recent = |at: Timestamp| now.duration_since(at) < LIST_AND_WRITE;
        let recreated = after.present().is_some_and(|present| *present != reference.id);
        let mut wrong = None;
        for tag in &after.until_tags {
            if before.until_tags.contains(tag) {
                continue;
            }
            let truth = known.get(&tag.text);
            let was_there = truth.is_some_and(|one| one.went_at.is_none_or(is_recent));
            let went = truth.is_none_or(|one| one.went_at.is_some() || is_recent(one.came_at));
            let is_new = tag.gone_at.is_none();
            if !recreated && (is_new && !was_there || !is_new && !went) {
                wrong = Some(format!("records {tag:?} of {reference}, where {truth:?}"));
            }
        }
        for tag in before.until_tags.iter().filter(|tag| tag.gone_at.is_none()) {
            let stays = |one: &UntilTag| one.text == tag.text && one.seen_at == tag.seen_at;
            // The end of an override is no edge for what never had one.
            let has_edges = before.handled.is_some() && after.handled.is_some();
            if has_edges && !after.until_tags.iter().any(stays) {
                wrong = Some(format!("forgets {tag:?} of {reference}"));
            }
        }
        if let Some(wrong) = wrong {
            self.violated(wrong);
        }
    }

    /// Checks that nothing is stopped that a tag at the cloud keeps running.
    pub(super) fn check_kept(&mut self, resource: &ResourceRef, path: &str) {
        let now = self.time.now();
        let (Some(record), Some(state)) = (self.records.get(resource), self.state_of(resource))
        else {
            return;
        };
        let rule = super::rules::schedule_of(resource, &state, &self.setup);
        let rule = rule.and_then(|name| self.setup.schedules.get(&name));
        let stops = record.under_way_towards(Direction::Stop).is_some();
        let own = self.overrides.get(&OverrideTarget::Resource(resource.clone()));
        let overridden =
            own.is_some_and(|one| one.set_at <= now + SLACK && one.ends_at + SLACK > now);
        let settled = OBSERVE_AND_SEND + SLACK;
        let (Some(rule), Some(tracked), true) = (rule, self.resources.get(resource), stops) else {
            return;
        };
        let changed = now.duration_since(self.applied_at) < settled;
        let restored = tracked.restored_at.is_some_and(|at| now.duration_since(at) < SETTLE_TIME);
        let kept = tracked.until.iter().find(|(text, one)| {
            let known =
                record.until_tags.iter().find(|tag| tag.text == **text && tag.gone_at.is_none());
            let seen_at = known.map_or(one.came_at, |tag| tag.seen_at);
            let one_made = overriding(resource, text, seen_at, None, rule);
            one.went_at.is_none()
                && now.duration_since(one.came_at) > settled
                && one_made.is_some_and(|made| made.ends_at > now + settled)
        });
        if let Some((text, _)) = kept.filter(|_| !(overridden || changed || restored)) {
            let text = text.clone();
            self.violated(format!("{path} stops {resource}, which its tag keeps until {text}"));
        }
    }

    /// Returns a value that is at the cloud and not in the record, or the reverse; `None` if the two
    /// agree or may still differ.
    pub(super) fn until_differs(&self, record: &Record, now: Timestamp) -> Option<String> {
        let tracked = self.resources.get(&record.reference)?;
        self.state_of(&record.reference)?;
        // A machine that is still being made is not listed as the one that it becomes, and one that was
        // made since its record was backed up is not known as its own.
        record.present().filter(|_| !tracked.has_older(record))?;
        let recorded = |text: &str| {
            record.until_tags.iter().any(|tag| tag.text == text && tag.gone_at.is_none())
        };
        let utc = TimeZone::UTC;
        let differs = |(text, one): (&String, &Tagged)| {
            let changed_at = one.went_at.unwrap_or(one.came_at);
            let is_old = now.duration_since(changed_at) > SETTLE_TIME;
            let is_there = one.went_at.is_none() && end(text, now, &utc).is_some();
            (is_old && is_there != recorded(text))
                .then(|| format!("until {text}: at the cloud {is_there}, since {changed_at}"))
        };
        tracked.until.iter().find_map(differs)
    }
}
