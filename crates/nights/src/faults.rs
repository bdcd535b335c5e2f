//! Which request meets with which fault, and how often each kind occurred.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::AccountName;
use jiff::{SignedDuration, Timestamp};

use crate::night::{Fault, Side};

/// For how long a fault waits for a request that fits.
const WAITS: SignedDuration = SignedDuration::from_mins(8);

/// The faults that are set. Cloning gives the same ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Waiting>,
    outages: Vec<Outage>,
    counts: BTreeMap<&'static str, u64>,
}

#[derive(Debug)]
struct Waiting {
    from: Timestamp,
    of: Side,
    after: u32,
    fault: Fault,
}

#[derive(Debug)]
struct Outage {
    until: Timestamp,
    account: AccountName,
    fault: Fault,
}

/// A request, as far as faults distinguish them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Asked<'a> {
    Store {
        writes: bool,
    },
    Cloud {
        account: &'a AccountName,
        changes: bool,
        /// Whether it asks for a page of a list after the first.
        later_page: bool,
    },
}

impl Asked<'_> {
    fn fits(self, side: Side) -> bool {
        match self {
            Self::Store { writes } => side == Side::Store || side == Side::Write && writes,
            Self::Cloud {
                changes,
                later_page,
                ..
            } => match side {
                Side::Cloud => true,
                Side::Change => changes,
                Side::LaterPage => later_page,
                Side::Store | Side::Write => false,
            },
        }
    }
}

impl Faults {
    pub(crate) fn set(&self, from: Timestamp, of: Side, after: u32, fault: Fault) {
        self.lock().waiting.push(Waiting {
            from,
            of,
            after,
            fault,
        });
    }

    pub(crate) fn set_outage(&self, until: Timestamp, account: AccountName, fault: Fault) {
        self.lock().outages.push(Outage {
            until,
            account,
            fault,
        });
    }

    /// The fault that a request meets with.
    pub(crate) fn meet(&self, asked: Asked<'_>, now: Timestamp) -> Option<Fault> {
        let mut state = self.lock();
        state.waiting.retain(|one| now <= one.from + WAITS);
        state.outages.retain(|outage| now < outage.until);
        let mut met = None;
        for (place, one) in state.waiting.iter_mut().enumerate() {
            if one.from <= now && asked.fits(one.of) {
                if one.after == 0 {
                    met = Some(place);
                    break;
                }
                one.after -= 1;
            }
        }
        let fault = match (met, asked) {
            (Some(place), _) => Some(state.waiting.remove(place).fault),
            (None, Asked::Cloud { account, .. }) => {
                let mut outages = state.outages.iter();
                let outage = outages.find(|outage| outage.account == *account);
                outage.map(|outage| outage.fault.clone())
            }
            (None, Asked::Store { .. }) => None,
        };
        if let Some(fault) = &fault {
            *state.counts.entry(fault.name()).or_default() += 1;
        }
        fault
    }

    /// Whether anything may still go wrong.
    pub(crate) fn are_set(&self, now: Timestamp) -> bool {
        let state = self.lock();
        state.waiting.iter().any(|one| now <= one.from + WAITS)
            || state.outages.iter().any(|outage| now < outage.until)
    }

    /// Counts something that happened other than to a request.
    pub(crate) fn count(&self, what: &'static str) {
        *self.lock().counts.entry(what).or_default() += 1;
    }

    pub(crate) fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.lock().counts.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
