//! What was learned about an account.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{
    AccountName,
    pacing::{Counted, ListRequests, Others, RateLimit, Spent},
    reason::Reason,
    stored::is_default,
};

/// What was learned about an account, for pacing and for people. A hint: the latest writer wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountState {
    pub account: AccountName,
    /// When its resources were last listed completely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed_at: Option<Timestamp>,
    /// When listing was last tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried_at: Option<Timestamp>,
    /// Why the last listing failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Reason>,
    /// Whether it failed because of the account's token: refused, or not readable.
    #[serde(default, skip_serializing_if = "is_default")]
    pub token_fails: bool,
    /// Since when its lists have shown no tags, while its records have some. They are not believed
    /// at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tagless_since: Option<Timestamp>,
    /// What listing it last took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<ListCost>,
    /// The rate limit that the provider last reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateLimit>,
    /// When its prices are read next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices_due_at: Option<Timestamp>,
    /// What stop, start and poll-status have sent of its requests lately, or are about to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spent: Vec<Spent>,
    /// How often that was written: each write names the revision it replaces.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spent_revision: u64,
}

/// What listing an account took, which shows how large it is and how slow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListCost {
    /// How many requests each kind's list takes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: ListRequests,
    /// How many databases the account has: before a Droplet is deleted, each of them is asked whom it
    /// lets in.
    #[serde(default)]
    pub databases: u32,
    /// How long the last inventory took, even if it failed.
    pub took: SignedDuration,
}

impl AccountState {
    /// The state of an account that was never listed.
    #[must_use]
    pub fn unknown(account: AccountName) -> Self {
        Self {
            account,
            listed_at: None,
            tried_at: None,
            error: None,
            token_fails: false,
            tagless_since: None,
            cost: None,
            rate: None,
            prices_due_at: None,
            spent: Vec::new(),
            spent_revision: 0,
        }
    }

    /// What others take of the account's allowance, of which `remaining` is left now: the decrease
    /// since the rate was recorded, without what is known to be ours and without
    /// `unrecorded_requests`. If too little or too much time has passed since, the latest
    /// measurement.
    #[must_use]
    pub fn others(
        &self,
        remaining: u64,
        now: Timestamp,
        unrecorded_requests: u64,
    ) -> Option<Others> {
        let before = self.rate?;
        // poll-status may not send all that it has planned.
        let sent = self.spent.iter().filter(|spent| !spent.observes || spent.ended <= now);
        let ours: u64 = sent.map(|spent| spent.since(before.at)).sum();
        let ours = ours + unrecorded_requests;
        let measured = before.others_until(remaining, now, ours);
        measured.or(before.others)
    }

    /// How many of our requests the provider still counts in its minute.
    #[must_use]
    pub fn counted(&self, now: Timestamp) -> Counted {
        Counted::of(&self.spent, now)
    }

    /// When the provider counts fewer of them; `None` if it counts none.
    #[must_use]
    pub fn counts_fewer_at(&self, now: Timestamp) -> Option<Timestamp> {
        let counted = self.spent.iter().filter(|spent| spent.counted(now) > 0);
        counted.map(Spent::uncounted_at).min()
    }

    /// How many requests each kind's list last took.
    #[must_use]
    pub fn lists(&self) -> Option<&ListRequests> {
        self.cost.as_ref().map(|cost| &cost.requests)
    }
}
