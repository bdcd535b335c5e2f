//! A change to the overrides, worked out in full before anything is written.

use domain::{
    configuration::{Override, Target},
    schedule::Desired,
};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use store::OverrideError;

use super::{
    effects::{Known, edge_at},
    is_to_come,
    render::{ChangeReport, Done},
};
use crate::{
    exit::UsageError,
    time::end::{End, Understood},
};

/// An override as a person requests it.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) target: Target,
    pub(super) desired: Desired,
    pub(super) end: End,
    pub(super) by: String,
    pub(super) why: Option<String>,
}

/// A change to the overrides, and the report of it.
#[derive(Debug)]
pub(super) struct Change {
    /// The override to write.
    pub(super) one: Override,
    /// The override of the same target that it replaces, ended or not.
    pub(super) replaces: Option<Override>,
    /// The instant from which the change takes effect.
    pub(super) edge_at: Timestamp,
    pub(super) report: ChangeReport,
}

impl Wanted {
    /// Works out the change to write, for a person in the zone `here`.
    ///
    /// # Errors
    /// [`UsageError`] for a resource that is never touched, and for an invalid end.
    pub(super) fn change(
        self,
        known: Known<'_>,
        now: Timestamp,
        here: &TimeZone,
    ) -> Result<Change, UsageError> {
        if let Some(reason) = known.exclusion(&self.target) {
            let refused = format!("{}: {reason}; nothing was set", self.target);
            return Err(UsageError(refused));
        }
        let understood = self.understood(known, now, here)?;
        let remark = understood.remark(known.zone(&self.target, here));
        let replaces = known.overrides.of(&self.target);
        let set_at = edge_at(now, &known.concerned(&self.target), replaces);
        let one = Override {
            target: self.target,
            desired: self.desired,
            set_at,
            // An override that ends as it begins was never in force.
            ends_at: understood.at.max(set_at + SignedDuration::from_millis(1)),
            by: self.by,
            why: self.why,
        };
        Ok(Change {
            report: ChangeReport::new(Done::Set, known, &one, remark, now),
            replaces: replaces.cloned(),
            edge_at: set_at,
            one,
        })
    }

    fn understood(
        &self,
        known: Known<'_>,
        now: Timestamp,
        here: &TimeZone,
    ) -> Result<Understood, UsageError> {
        let zone = known.zone(&self.target, here);
        let schedule = known.schedule(&self.target).map(|(_, rule)| &rule.schedule);
        let understood = self.end.understand(now, zone, schedule);
        understood.map_err(|error| UsageError(format!("{}: {error}", self.target)))
    }
}

/// Works out the change that ends a target's override now.
///
/// # Errors
/// [`OverrideError::Overtaken`] if the target has no active override any more.
pub(super) fn cleared(
    known: Known<'_>,
    target: &Target,
    now: Timestamp,
) -> Result<Change, OverrideError> {
    let active = known
        .overrides
        .of(target)
        .filter(|one| is_to_come(one, now));
    let active = active.ok_or_else(|| OverrideError::Overtaken(target.clone()))?;
    let edge_at = edge_at(now, &known.concerned(target), Some(active));
    let one = Override {
        ends_at: edge_at,
        ..active.clone()
    };
    Ok(Change {
        report: ChangeReport::new(Done::Cleared, known, &one, None, now),
        replaces: Some(active.clone()),
        edge_at,
        one,
    })
}
