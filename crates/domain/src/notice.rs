//! Which resources will be stopped soon, so that people hear of it before it happens.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    configuration::{Mode, Rule},
    decision::{Decision, EDGES_AHEAD, INSTANT_BEFORE, LeaveReason, Rules, coming_edges, judge},
    digest::{Named, in_zone},
    left_running::is_left_running,
    membership::{Membership, Subject},
    record::{Direction, Phase, Record},
    reference::ScheduleName,
    resource::Power,
    schedule::Desired,
};

/// How many resources a notice has at most.
const LISTED: usize = 100;

/// How many of them its text names.
const NAMED: usize = 5;

/// What a schedule will stop at an instant; nothing if an announced stop is called off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StopNotice {
    /// The schedule's name.
    pub schedule: ScheduleName,
    /// When the resources are to be stopped.
    pub edge: Timestamp,
    /// When the notice was given.
    pub at: Timestamp,
    /// Number of resources that are to be stopped; zero if the stop is called off.
    pub count: usize,
    /// These resources, sorted by name; only the first of them if there are very many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Named>,
    /// How to keep them running; absent if the stop is called off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
    /// When the schedule starts them again; absent if it does not, or if the stop is called off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_start_at: Option<Timestamp>,
    /// The schedule's time zone.
    pub timezone: String,
}

impl StopNotice {
    /// Announces that a schedule will stop these resources, or, if there are none, calls that off.
    #[must_use]
    pub fn of(
        schedule: &ScheduleName,
        rule: &Rule,
        edge: Timestamp,
        mut resources: Vec<Named>,
        now: Timestamp,
    ) -> Self {
        let count = resources.len();
        resources.sort();
        resources.truncate(LISTED);
        // Both count from now on, and are to reach beyond the stop.
        let hours = edge.duration_since(now).as_hours() + 2;
        let by_tag = (!rule.policy.max_extend.get().is_zero()).then(|| {
            format!("the tag offhours-until:{hours}h (label offhours-until={hours}h) one of them")
        });
        let command = format!(
            "`offhours override running --schedule {schedule} --for {hours}h` keeps all of it running"
        );
        let mut edges = rule.schedule.edges(edge).take(EDGES_AHEAD);
        let start = edges.find(|edge| edge.desired == Some(Desired::Running));
        Self {
            schedule: schedule.clone(),
            edge,
            at: now,
            count,
            resources,
            keep: [Some(command), by_tag].into_iter().flatten().filter(|_| count > 0).collect(),
            next_start_at: start.map(|start| start.at).filter(|_| count > 0),
            timezone: rule.schedule.definition().timezone.clone(),
        }
    }

    #[must_use]
    pub fn is_called_off(&self) -> bool {
        self.count == 0
    }

    /// `1 resource stops`, `2 resources stop`.
    #[must_use]
    pub fn counted(&self) -> String {
        let verb = if self.count == 1 { "resource stops" } else { "resources stop" };
        format!("{} {verb}", self.count)
    }

    /// The names of the first resources, and how many more there are.
    #[must_use]
    pub fn named(&self) -> String {
        let names: Vec<_> = self.resources.iter().take(NAMED).map(|one| &*one.name).collect();
        let more = self.count.saturating_sub(names.len());
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        names.join(", ") + &more
    }
}

/// Returns what will be stopped after `now` and within the notice period of its schedule, by the
/// instant of the stop.
#[must_use]
pub fn announced<'r>(
    records: impl IntoIterator<Item = &'r Record>,
    rules: Rules<'_>,
    now: Timestamp,
) -> BTreeMap<(Timestamp, ScheduleName), Vec<Named>> {
    let mut stops = BTreeMap::<_, Vec<_>>::new();
    for record in records {
        let membership = Membership::of(Subject::recorded(record), rules.configuration);
        let (Membership::Member { schedule, .. }, Some(period)) =
            (&membership, membership.policy(rules.configuration).notice)
        else {
            continue;
        };
        let stop = next_stop(record, rules, now, now + period.get());
        if let Some(edge) = stop.filter(|edge| *edge > now) {
            let named = Named { name: record.name.clone(), resource: record.reference.clone() };
            stops.entry((edge, schedule.clone())).or_default().push(named);
        }
    }
    stops
}

/// Returns when a record's stop at an edge is announced; `None` if it is not.
#[must_use]
pub fn announced_at(record: &Record, rules: Rules<'_>, edge: Timestamp) -> Option<Timestamp> {
    let membership = Membership::of(Subject::recorded(record), rules.configuration);
    let at = edge - membership.policy(rules.configuration).notice?.get();
    (next_stop(record, rules, at, edge) == Some(edge)).then_some(at)
}

/// Reports whether a schedule whose stop at an instant was announced stops a record by then, or has
/// done so since.
#[must_use]
pub fn still_stops(
    record: &Record,
    rules: Rules<'_>,
    schedule: &ScheduleName,
    edge: Timestamp,
    now: Timestamp,
) -> bool {
    let membership = Membership::of(Subject::recorded(record), rules.configuration);
    let policy = membership.policy(rules.configuration);
    let (Some(period), true) = (policy.notice, membership.schedule() == Some(schedule)) else {
        return false;
    };
    let is_handled = record.handled.as_ref().is_some_and(|handled| match handled.desired {
        // A pause may have put it off from an edge before the announcement.
        Some(Desired::Stopped) => stop_began(record).is_some_and(|at| at >= edge - period.get()),
        Some(Desired::Running) | None => handled.key.instant >= edge,
    });
    is_handled || next_stop(record, rules, now.min(edge - INSTANT_BEFORE), edge).is_some()
}

/// Returns when the stop that a record shows as handled was claimed, or acknowledged.
fn stop_began(record: &Record) -> Option<Timestamp> {
    let ended = || Some(record.last.as_ref()?.claimed_at);
    record.in_flight().map(|transition| transition.claimed_at).or_else(ended)
}

/// Returns when a record that runs, or is to be started, is to be stopped, from one instant to
/// another: at an edge, or when a pause ends that bars the stop.
fn next_stop(
    record: &Record,
    rules: Rules<'_>,
    from: Timestamp,
    latest: Timestamp,
) -> Option<Timestamp> {
    let mut is_off = matches!(record.phase, Phase::Settled { at: Power::Stopped });
    let subject = Subject::recorded(record);
    let mut edges = coming_edges(record, rules, from).take(EDGES_AHEAD);
    let mut at = from;
    while at <= latest {
        let verdict = judge(record, subject, rules, at);
        at = match verdict.decision {
            Decision::Act(due) if due.direction == Direction::Stop => {
                let edge = verdict.edge.as_ref();
                let is_left = edge.is_some_and(|edge| is_left_running(record, rules, edge, at));
                return (due.mode == Mode::Act && !is_off && !is_left).then_some(at);
            }
            Decision::Leave(LeaveReason::Paused(pause)) => pause.ends_at,
            decision @ (Decision::Act(_) | Decision::AskAgain(_) | Decision::Leave(_)) => {
                is_off &= !matches!(decision, Decision::Act(_));
                edges.find(|edge| edge.key.instant > at)?.key.instant
            }
        };
    }
    None
}

/// One line for people, by the schedule's zone.
impl fmt::Display for StopNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schedule = &self.schedule;
        let clock = |at| in_zone(at, &self.timezone, self.at);
        let edge = clock(self.edge);
        if self.is_called_off() {
            return write!(f, "{schedule}: nothing stops {edge} after all");
        }
        let start = self.next_start_at.map(|at| format!(", until {}", clock(at)));
        let (start, keep) = (start.unwrap_or_default(), self.keep.join(", "));
        write!(f, "{schedule}: {} {edge}{start}: {}; {keep}", self.counted(), self.named())
    }
}

#[cfg(test)]
mod tests;
