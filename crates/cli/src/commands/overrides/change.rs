//! A change to the overrides, worked out in full before anything is written.

use domain::{
    activity::Author,
    configuration::{Override, Target},
    schedule::Desired,
};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use store::OverrideError;

use super::{
    effects::{StoredState, edge_at},
    has_not_ended,
    render::{ChangeReport, Done},
};
use crate::{
    exit::UsageError,
    time::{
        end::{End, ResolvedEnd},
        local,
    },
};

/// An override as a person requests it.
#[derive(Debug)]
pub(super) struct OverrideRequest {
    pub(super) target: Target,
    pub(super) desired: Desired,
    /// When it begins; now if this is absent.
    pub(super) begin: Option<End>,
    pub(super) end: End,
    pub(super) author: Author,
}

/// A change to the overrides, and the report of it.
#[derive(Debug)]
pub(super) struct Change {
    /// The override to write.
    pub(super) one: Override,
    /// The override of the same target that it replaces, ended or not.
    pub(super) replaces: Option<Override>,
    pub(super) report: ChangeReport,
}

impl OverrideRequest {
    /// Works out the change to write, for a person in the zone `here`.
    ///
    /// # Errors
    /// [`UsageError`] for a resource that is never touched, and for an invalid end.
    pub(super) fn change(
        self,
        stored: StoredState<'_>,
        now: Timestamp,
        here: &TimeZone,
    ) -> Result<Change, UsageError> {
        if let Some(reason) = stored.exclusion(&self.target) {
            let refused = format!("{}: {reason}; nothing was set", self.target);
            return Err(UsageError(refused));
        }
        let replaces = stored.overrides.of(&self.target);
        let zone = stored.zone(&self.target, here);
        let begin = match self.begin {
            Some(begin) => Some(self.resolved(begin, stored, now, here)?),
            None => None,
        };
        if let (Some(_), Some(active)) = (begin, replaces.filter(|one| one.is_active(now))) {
            return Err(UsageError(format!(
                "{}: it is overridden until {}, and the new override would end that now: `offhours \
                 override clear` it first, or set the new one later",
                self.target,
                local(active.ends_at, zone)
            )));
        }
        let resolved =
            self.resolved(self.end, stored, begin.map_or(now, |begin| begin.at), here)?;
        let remarks = begin.into_iter().chain([resolved]);
        let remarks: Vec<_> = remarks.filter_map(|one| one.remark(zone)).collect();
        let remark = (!remarks.is_empty()).then(|| remarks.join("; "));
        let set_at = match begin {
            Some(begin) => begin.at,
            None => edge_at(now, &stored.concerned(&self.target), replaces),
        };
        let one = Override {
            target: self.target,
            desired: self.desired,
            set_at,
            // An override that ends as it begins was never in force.
            ends_at: resolved.at.max(set_at + SignedDuration::from_millis(1)),
            by: self.author.by.to_string(),
            why: self.author.why,
        };
        Ok(Change {
            report: ChangeReport::new(Done::Set, stored, &one, remark, now),
            replaces: replaces.cloned(),
            one,
        })
    }

    fn resolved(
        &self,
        time: End,
        stored: StoredState<'_>,
        now: Timestamp,
        here: &TimeZone,
    ) -> Result<ResolvedEnd, UsageError> {
        let zone = stored.zone(&self.target, here);
        let schedule = stored.schedule(&self.target).map(|(_, rule)| &rule.schedule);
        let resolved = time.resolve(now, zone, schedule);
        resolved.map_err(|error| UsageError(format!("{}: {error}", self.target)))
    }
}

/// Works out the change that ends a target's override now.
///
/// # Errors
/// [`OverrideError::Overtaken`] if the target has no active override any more.
pub(super) fn cleared(
    stored: StoredState<'_>,
    target: &Target,
    now: Timestamp,
) -> Result<Change, OverrideError> {
    let active = stored.overrides.of(target).filter(|one| has_not_ended(one, now));
    let active = active.ok_or_else(|| OverrideError::Overtaken(target.clone()))?;
    let edge_at = edge_at(now, &stored.concerned(target), Some(active));
    let one = Override { ends_at: edge_at, ..active.clone() };
    Ok(Change {
        report: ChangeReport::new(Done::Cleared, stored, &one, None, now),
        replaces: Some(active.clone()),
        one,
    })
}
