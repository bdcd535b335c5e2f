//! What is counted.

/// Everything that is counted.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    strum::IntoStaticStr,
    strum::EnumMessage,
)]
pub enum Metric {
    /// Requests sent.
    Asked,
    /// Transitions whose target state was seen.
    Seen,
    /// Records whose last attempt failed, and accounts that could not be listed.
    Failed,
    /// Records that have been out of their desired state for longer than their kind's usual time.
    Overdue,
    /// Records whose transition the provider refused.
    Refused,
    /// Records whose transition was not seen by its deadline.
    Stuck,
    /// Records that wait for approval.
    Held,
    /// Records that are stopped or owed a size, without a schedule.
    Orphaned,
    /// Records that two schedules or two accounts name.
    Conflicts,
    /// Accounts whose token was refused, or whose host shows a key that is not pinned.
    TokensRefused,
    /// Records that a pause applies to.
    Paused,
    /// Records of stopped resources that follow a schedule.
    Stopped,
}

impl Metric {
    /// The metrics that every inventory counts anew, for each account, and that alarms watch: an
    /// alarm clears by itself once its cause is gone, however it was fixed. A failure is also counted
    /// when it happens, because an alarm must not wait for five minutes.
    pub const GAUGES: [Self; 8] = [
        Self::Failed,
        Self::Overdue,
        Self::Refused,
        Self::Stuck,
        Self::Held,
        Self::Orphaned,
        Self::Conflicts,
        Self::TokensRefused,
    ];

    /// Returns its name in CloudWatch.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns what it counts, for people.
    #[must_use]
    pub fn help(self) -> &'static str {
        strum::EnumMessage::get_documentation(&self).unwrap_or_default().trim_end_matches('.')
    }
}
