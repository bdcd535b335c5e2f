//! Resources that have not been as desired for longer than their kind usually takes.
//!
//! This module decides nothing: what is due is retried regardless. It reports when a person is
//! needed.

use jiff::{SignedDuration, Timestamp};

use crate::{
    configuration::{Configuration, Mode},
    decision::{Decision, LeaveReason, Rules, Verdict, Why, is_retained, judge, mode, pause_ended},
    membership::Subject,
    order::Graph,
    record::{Direction, Phase, Record, effect_timeout},
    resource::Power,
    schedule::Desired,
};

/// The time that ticks, inventories and a first backoff add to what a kind needs.
pub const SLACK: SignedDuration = SignedDuration::from_mins(5);

/// Returns how long after an edge a resource may take to reach the desired state.
#[must_use]
pub fn usual_time(
    record: &Record,
    direction: Direction,
    configuration: &Configuration,
) -> SignedDuration {
    let configured = configuration.effect_timeout(&record.reference, direction);
    let hibernation = record.hibernation.as_deref();
    // A hibernated machine's start begins early, and a stop lasts as long as its snapshot takes.
    let more = match direction {
        Direction::Start => hibernation.and_then(|hibernation| hibernation.lead),
        Direction::Stop => {
            let request = record.request.as_ref();
            let copies = request.filter(|request| request.step.facts().exclusive);
            copies.and_then(|request| request.effect_timeout)
        }
    };
    let wait = Graph::of(&configuration.settings.groups).longest_wait(record, direction);
    let own = configured.unwrap_or_else(|| effect_timeout(record.kind()));
    wait + own + SLACK + more.unwrap_or_default()
}

/// A resource that has not been as desired for longer than its kind usually takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overdue {
    pub desired: Desired,
    /// Since when the resource should have been in it.
    pub since: Timestamp,
}

/// Judges whether a record is overdue at an instant, under a configuration that has been in force
/// since `in_force_since`.
///
/// A resource that a person changed after its edge was handled is not overdue. Neither is one that
/// may not be touched, is held, paused, or is only observed. A transition that is stuck or was refused by
/// the provider has a phase that says so, and is overdue only when a later edge is.
#[must_use]
pub fn overdue(
    record: &Record,
    rules: Rules<'_>,
    in_force_since: Option<Timestamp>,
    now: Timestamp,
) -> Option<Overdue> {
    let verdict = judge(record, Subject::recorded(record), rules, now);
    judged_overdue(record, &verdict, rules, in_force_since, now)
}

/// Like [`overdue`], for a record that has already been judged at that instant.
#[must_use]
pub fn judged_overdue(
    record: &Record,
    verdict: &Verdict,
    rules: Rules<'_>,
    in_force_since: Option<Timestamp>,
    now: Timestamp,
) -> Option<Overdue> {
    let (account, configuration) = (&record.reference.account, rules.configuration);
    if !configuration.accounts.contains_key(account) {
        return None;
    }
    let edge = verdict.edge.as_ref()?;
    let desired = edge.desired?;
    let direction = Direction::towards(desired);
    let policy = verdict.membership.policy(configuration);
    // When it became due, if that is later than the edge.
    let newer = match &verdict.decision {
        Decision::Act(due) if is_retained(record, &policy, direction, &due.cause) => return None,
        Decision::Act(due) => match due.why {
            Why::Edge | Why::Changed => None,
            Why::Drift => record.observed.as_ref().map(|observed| observed.at),
        },
        Decision::AskAgain(_) | Decision::Leave(LeaveReason::Handled) => {
            let transition = record.under_way_towards(direction)?;
            policy.enforce.then_some(transition.claimed_at)
        }
        Decision::Leave(
            LeaveReason::Excluded(_)
            | LeaveReason::UnknownSchedule(_)
            | LeaveReason::Unnamed
            | LeaveReason::Held
            | LeaveReason::Paused(_)
            | LeaveReason::Adopting
            | LeaveReason::Gone
            | LeaveReason::StaleReader
            | LeaveReason::NothingDesired,
        ) => return None,
    };
    let observed_only = mode(record, &policy, configuration) == Mode::Observe;
    if observed_only || shows(record, direction, now) {
        return None;
    }
    let since = edge
        .key
        .instant
        .max(record.joined_at.unwrap_or(Timestamp::MIN))
        .max(in_force_since.unwrap_or(Timestamp::MIN))
        .max(newer.unwrap_or(Timestamp::MIN))
        .max(pause_ended(record, rules, direction, now).unwrap_or(Timestamp::MIN));
    (now.duration_since(since) > usual_time(record, direction, configuration))
        .then_some(Overdue { desired, since })
}

/// Reports whether the record shows the resource in the target state of `direction`.
fn shows(record: &Record, direction: Direction, now: Timestamp) -> bool {
    let end = direction.target_state();
    let observed = |power: Power| record.observed.as_ref().is_some_and(|o| o.power == power);
    match &record.phase {
        Phase::Settled { at } => *at == end,
        // Seen in its target state, it would be settled, unless an opposite request may still act.
        Phase::InFlight { transition } if transition.direction == direction => {
            observed(end) && record.not_before().is_some_and(|until| now < until)
        }
        Phase::InFlight { .. } | Phase::Refused { .. } | Phase::Stuck { .. } => observed(end),
        Phase::Gone { .. } => true,
    }
}

#[cfg(test)]
mod tests;
