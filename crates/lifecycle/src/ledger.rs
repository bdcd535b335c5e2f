//! What each invocation sends of an account's requests, stored with the account.
//!
//! If a provider counts requests per minute, several invocations share that limit. Before it sends
//! anything, each of them stores what it is about to send, in place of what it has read of the
//! others; if another one was first, it reads again. So several that begin at one instant never
//! spend the same requests.

use domain::{
    AccountName,
    configuration::Configuration,
    pacing::{RATE_AGE, RateLimit, Spent},
    provider::Facts,
};
use environment::in_words;
use jiff::Timestamp;
use store::AccountState;

use crate::{Context, account};

/// How often in a row an invocation tries to store what it sends, while others store theirs. Then it
/// goes on without: what is stored is a hint.
const TRIES: usize = 5;

/// What one invocation spends of an account's requests, and what is known of the others.
pub(crate) struct Ledger {
    /// What is known of the account, without what this invocation spends.
    state: AccountState,
    /// `None` over SSH, where nothing is counted.
    facts: Option<&'static Facts>,
    /// Whether this is poll-status.
    observes: bool,
    sent: Vec<Spent>,
    /// What it is about to send, as stored.
    planned: Option<Spent>,
    /// What the provider says is left, to be stored at the end.
    left: Option<RateLimit>,
    /// How often in a row another one was first.
    missed: usize,
}

impl Ledger {
    /// Begins with what is known of an account.
    pub(crate) fn of(state: AccountState, configuration: &Configuration, observes: bool) -> Self {
        let configured = configuration.accounts.get(&state.account);
        let cloud = configured.and_then(|account| account.cloud());
        let facts = cloud.map(|account| account.provider.facts());
        Self { state, facts, observes, sent: Vec::new(), planned: None, left: None, missed: 0 }
    }

    /// Begins with nothing but the account.
    pub(crate) fn unread(
        account: &AccountName,
        configuration: &Configuration,
        observes: bool,
    ) -> Self {
        Self::of(AccountState::unknown(account.clone()), configuration, observes)
    }

    pub(crate) fn state(&self) -> &AccountState {
        &self.state
    }

    /// The provider's facts; `None` over SSH.
    pub(crate) fn facts(&self) -> Option<&'static Facts> {
        self.facts
    }

    /// Reports whether the provider counts requests per minute.
    pub(crate) fn counts_minutes(&self) -> bool {
        self.facts.is_some_and(|facts| facts.requests_per_minute.is_some())
    }

    /// Reads what is known of the account, which other invocations may have changed.
    pub(crate) async fn read(&mut self, context: Context<'_>) {
        self.state = account::state(context, &self.state.account).await;
        self.state.spent.retain(|spent| spent.by != *context.writer);
    }

    /// How many requests this invocation has planned and accounted for.
    pub(crate) fn total(&self) -> u64 {
        let all = self.sent.iter().chain(&self.planned);
        all.map(|spent| spent.requests).sum()
    }

    /// Stores that this invocation is about to have sent `requests` requests in all, the last of
    /// them by an instant. Returns whether it may: otherwise another invocation has stored its plan
    /// meanwhile, which is now read.
    pub(crate) async fn plan(
        &mut self,
        context: Context<'_>,
        requests: u64,
        until: Timestamp,
    ) -> bool {
        let total = self.total();
        if !self.counts_minutes() || requests <= total {
            return true;
        }
        let mut planned = self.planned.clone().unwrap_or_else(|| self.begun(context));
        planned.requests += requests - total;
        planned.ended = until;
        let is_stored = self.save(context, Some(&planned)).await;
        self.missed = if is_stored { 0 } else { self.missed + 1 };
        if !is_stored && self.missed < TRIES {
            self.read(context).await;
            return false;
        }
        self.planned = Some(planned);
        true
    }

    /// Notes how many requests this invocation has sent in all by now, without storing it.
    pub(crate) fn note(&mut self, requests: u64, now: Timestamp) {
        let before: u64 = self.sent.iter().map(|spent| spent.requests).sum();
        let Some(planned) = &mut self.planned else {
            return;
        };
        let requests = requests.saturating_sub(before);
        if requests > 0 {
            self.sent.push(Spent { ended: now, requests, ..planned.clone() });
        }
        planned.began = now;
        planned.requests = planned.requests.saturating_sub(requests);
    }

    /// Stores how many requests this invocation has sent in all, if it has planned any, and what the
    /// provider says is left.
    pub(crate) async fn store(&mut self, context: Context<'_>, sent: u64, rate: Option<RateLimit>) {
        self.note(sent, context.clock.now());
        if self.planned.take().is_none() {
            if let Some(rate) = rate {
                account::save_rate(context, &self.state.account, rate).await;
            }
            return;
        }
        for _ in 0..TRIES {
            // What another invocation has learned later stays.
            let known = self.state.rate.map(|known| known.at);
            self.left = rate.filter(|rate| known.is_none_or(|at| at <= rate.at));
            if self.save(context, None).await {
                return;
            }
            self.read(context).await;
        }
    }

    fn begun(&self, context: Context<'_>) -> Spent {
        let (by, now) = (context.writer.clone(), context.clock.now());
        Spent { by, observes: self.observes, began: now, ended: now, requests: 0 }
    }

    /// Stores what this invocation sends beside what others do. Returns whether nothing else was
    /// stored since it read theirs. If it cannot be stored, the invocation goes on all the same: it
    /// is a hint.
    async fn save(&mut self, context: Context<'_>, planned: Option<&Spent>) -> bool {
        let (account, now) = (&self.state.account, context.clock.now());
        let mut spent = self.state.spent.clone();
        spent.retain(|spent| now.duration_since(spent.ended) <= RATE_AGE);
        spent.extend(self.sent.iter().chain(planned).cloned());
        let store = context.store;
        match store.save_spent(account, &spent, self.state.spent_revision, self.left).await {
            Ok(is_stored) => {
                self.state.spent_revision += u64::from(is_stored);
                is_stored
            }
            Err(error) => {
                let reason = in_words(&error);
                tracing::warn!(account = %account, "Could not keep what {account} has spent: {reason}");
                true
            }
        }
    }
}
