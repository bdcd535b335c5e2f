//! Which stops leave what they find running.

use jiff::{SignedDuration, Timestamp};

use crate::{
    decision::{DesiredEdge, Rules, is_retained, next_start},
    membership::{Membership, Subject},
    record::{Cause, Direction, Record, effect_timeout},
    schedule::Desired,
};

/// Reports whether a stop for an edge leaves the resource running if it is begun at an instant.
#[must_use]
pub fn is_left_running(
    record: &Record,
    rules: Rules<'_>,
    edge: &DesiredEdge,
    at: Timestamp,
) -> bool {
    let membership = Membership::of(Subject::recorded(record), rules.configuration);
    let policy = membership.policy(rules.configuration);
    edge.desired == Some(Desired::Stopped)
        && (is_retained(record, &policy, Direction::Stop, &edge.cause)
            || is_too_late(record, rules, &edge.cause, edge.key.instant, at))
}

/// Reports whether the next start comes before a stop of a database or a node pool could be done
/// and undone: after an outage it would shrink minutes before opening. A schedule that leaves no
/// more time than that is followed as it is written.
#[must_use]
pub fn is_too_late(
    record: &Record,
    rules: Rules<'_>,
    cause: &Cause,
    edge: Timestamp,
    now: Timestamp,
) -> bool {
    let kind = record.kind();
    let asked_for = matches!(cause, Cause::Manual { .. } | Cause::OverrideSet);
    let both = effect_timeout(kind) * 2;
    !asked_for && kind.is_sized() && is_late(record, rules, edge, both, now)
}

/// Reports whether the next start has come nearer since an edge than a stop and its start take
/// together. A schedule that leaves no more time than that is followed all the same.
#[must_use]
pub fn is_late(
    record: &Record,
    rules: Rules<'_>,
    edge: Timestamp,
    both: SignedDuration,
    now: Timestamp,
) -> bool {
    next_start(record, rules, now).is_some_and(|start| {
        let lacks_time = |from| start.duration_since(from) < both;
        lacks_time(now) && !lacks_time(edge)
    })
}
