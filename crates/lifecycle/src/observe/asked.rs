//! What one invocation of poll-status asks of an account.

use domain::{
    configuration::Configuration,
    pacing::{Allowance, RateLimit},
};
use jiff::Timestamp;
use provider::Client;
use store::AccountState;

use crate::{Context, budget::Budget, ledger::Ledger};

/// An account that poll-status asks in one invocation, and what that takes of its rate limit.
pub(crate) struct Asked {
    ledger: Ledger,
    client: Client,
    /// How many requests the client had sent before, and has sent for the lists of an inventory.
    apart: u64,
    /// What the provider says is left, as of the latest look.
    pub(crate) left: Option<RateLimit>,
}

impl Asked {
    pub(crate) fn begin(
        state: AccountState,
        configuration: &Configuration,
        client: Client,
    ) -> Self {
        let ledger = Ledger::of(state, configuration, true);
        let apart = client.requests();
        Self { ledger, client, apart, left: None }
    }

    /// Leaves out the lists of an inventory, for which stop and start leave room at all times. The
    /// inventory itself stores what is left.
    pub(crate) fn leave_out(&mut self, requests: u64) {
        self.apart += requests;
        self.left = None;
    }

    /// Returns how many requests were sent in this invocation.
    pub(crate) fn sent(&self) -> u64 {
        self.client.requests().saturating_sub(self.apart)
    }

    /// Returns the most requests that following takes per minute.
    pub(crate) fn to_follow(&self, now: Timestamp) -> u64 {
        self.allowance(now).map_or(u64::MAX, |allowance| allowance.to_follow())
    }

    /// Returns how many requests are left under the hourly limit.
    pub(crate) fn left_in_the_hour(&self, now: Timestamp) -> u64 {
        self.allowance(now).map_or(u64::MAX, |allowance| allowance.in_the_hour())
    }

    /// Returns what the provider allows; `None` over SSH.
    fn allowance(&self, now: Timestamp) -> Option<Allowance> {
        let (facts, state) = (self.ledger.facts()?, self.ledger.state());
        let mut allowance = Allowance::of(facts, state.rate, state.lists(), now);
        if let Some(latest) = self.client.rate() {
            (allowance.remaining, allowance.per_hour) = (Some(latest.remaining), latest.limit);
        }
        Some(allowance)
    }

    /// Returns how many more requests may be sent, of at most `most` in this invocation, and of what is
    /// left of the hour. A limit per minute is shared with other invocations: what is left of it is
    /// stored before it is sent, up to `wanted` more requests.
    pub(crate) async fn plan(
        &mut self,
        context: Context<'_>,
        budget: Budget<'_>,
        wanted: u64,
        most: u64,
    ) -> u64 {
        let sent = self.sent();
        let allowance = self.allowance(context.clock.now());
        let in_the_hour = allowance.map_or(u64::MAX, |allowance| allowance.in_the_hour_to_follow());
        let most = most.min(sent.saturating_add(in_the_hour));
        if !self.ledger.counts_minutes() {
            return most.saturating_sub(sent);
        }
        loop {
            let now = context.clock.now();
            let counted = self.ledger.state().counted(now);
            let left = self.allowance(now).map_or(0, |allowance| allowance.left_to_follow(counted));
            let planned = (sent + wanted).max(self.ledger.total()).min(left).min(most);
            if self.ledger.plan(context, planned, budget.until()).await {
                return planned.saturating_sub(sent);
            }
        }
    }

    /// Notes what was sent until now.
    pub(crate) fn note(&mut self, now: Timestamp) {
        self.ledger.note(self.sent(), now);
    }

    /// Stores what was sent, and what the provider says is left.
    pub(crate) async fn end(mut self, context: Context<'_>) {
        let sent = self.sent();
        self.ledger.store(context, sent, self.left).await;
    }
}
