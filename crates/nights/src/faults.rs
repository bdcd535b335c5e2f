//! Decides which request meets with which fault, and counts how often each kind occurs.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cloud_simulator::Act;
use domain::{AccountName, ResourceKind};
use jiff::{SignedDuration, Timestamp};

use crate::night::{Fault, RequestKind};

/// How long a fault waits for a matching request.
const MAX_WAIT: SignedDuration = SignedDuration::from_mins(8);

/// The pending faults. Clones share the same state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    pending: Vec<PendingFault>,
    outages: Vec<Outage>,
    counts: BTreeMap<&'static str, u64>,
}

#[derive(Debug)]
struct PendingFault {
    from: Timestamp,
    of: RequestKind,
    after: u32,
    fault: Fault,
}

#[derive(Debug)]
struct Outage {
    until: Timestamp,
    account: AccountName,
    fault: Fault,
}

/// A request, as far as faults distinguish requests.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RequestInfo<'a> {
    Store {
        writes: bool,
    },
    /// A connection to the host of the SSH account.
    Connection {
        account: &'a AccountName,
    },
    Cloud {
        account: &'a AccountName,
        changes: bool,
        /// Whether it asks for a page of a list after the first.
        later_page: bool,
        /// The kind of the resource that its path names.
        kind: Option<ResourceKind>,
    },
}

impl RequestInfo<'_> {
    fn fits(self, kind: RequestKind) -> bool {
        match self {
            Self::Store { writes } => {
                kind == RequestKind::Store || kind == RequestKind::Write && writes
            }
            Self::Connection { .. } => kind == RequestKind::Connection,
            Self::Cloud { changes, later_page, .. } => match kind {
                RequestKind::Cloud => true,
                RequestKind::Change => changes,
                RequestKind::LaterPage => later_page,
                RequestKind::Store | RequestKind::Write | RequestKind::Connection => false,
            },
        }
    }
}

impl Fault {
    /// Reports whether it can happen to a request.
    fn may_meet(&self, info: RequestInfo<'_>) -> bool {
        match (self, info) {
            (Self::Crossed(act), RequestInfo::Cloud { kind: Some(kind), .. }) => fits(act, kind),
            (Self::Crossed(_), _) => false,
            _ => true,
        }
    }
}

/// Reports whether an act fits a kind of resource.
fn fits(act: &Act, kind: ResourceKind) -> bool {
    let is_machine = matches!(kind, ResourceKind::Droplet | ResourceKind::Server);
    match act {
        Act::PowerOn
        | Act::PowerOff
        | Act::Shutdown
        | Act::Reboot
        | Act::ChangePlan { .. }
        | Act::TakeRoom { .. }
        | Act::BreakCopies { .. }
        | Act::Snapshot { .. } => is_machine,
        Act::Resize { .. } => kind == ResourceKind::Database,
        Act::Scale { .. } | Act::RetagCluster { .. } => kind == ResourceKind::NodePool,
        Act::Retag { .. } | Act::Rename { .. } | Act::SetStatus { .. } | Act::Delete => true,
    }
}

impl State {
    fn outage_of(&self, account: &AccountName, is_it: impl Fn(&Fault) -> bool) -> Option<Fault> {
        let mut outages = self.outages.iter();
        let outage = outages.find(|outage| outage.account == *account && is_it(&outage.fault));
        outage.map(|outage| outage.fault.clone())
    }
}

impl Faults {
    pub(crate) fn set(&self, from: Timestamp, of: RequestKind, after: u32, fault: Fault) {
        self.lock().pending.push(PendingFault { from, of, after, fault });
    }

    pub(crate) fn set_outage(&self, until: Timestamp, account: AccountName, fault: Fault) {
        self.lock().outages.push(Outage { until, account, fault });
    }

    /// Returns the fault that a request meets with.
    pub(crate) fn fault_for(&self, info: RequestInfo<'_>, now: Timestamp) -> Option<Fault> {
        let mut state = self.lock();
        state.pending.retain(|one| now <= one.from + MAX_WAIT);
        state.outages.retain(|outage| now < outage.until);
        let mut met = None;
        for (place, one) in state.pending.iter_mut().enumerate() {
            if one.from <= now && info.fits(one.of) && one.fault.may_meet(info) {
                if one.after == 0 {
                    met = Some(place);
                    break;
                }
                one.after -= 1;
            }
        }
        let fault = match (met, info) {
            (Some(place), _) => Some(state.pending.remove(place).fault),
            (None, RequestInfo::Cloud { account, .. }) => {
                state.outage_of(account, |fault| !fault.is_of_connection())
            }
            (None, RequestInfo::Connection { account }) => state.outage_of(account, |fault| {
                fault.is_of_connection() || *fault == Fault::TokenRefused
            }),
            (None, RequestInfo::Store { .. }) => None,
        };
        if let Some(fault) = &fault {
            *state.counts.entry(fault.name()).or_default() += 1;
        }
        fault
    }

    /// Reports whether anything may still go wrong.
    pub(crate) fn are_set(&self, now: Timestamp) -> bool {
        let state = self.lock();
        state.pending.iter().any(|one| now <= one.from + MAX_WAIT)
            || state.outages.iter().any(|outage| now < outage.until)
    }

    /// Counts something other than a fault of a request.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_act_crosses_a_change_that_it_fits() {
        let faults = Faults::default();
        let now = Timestamp::UNIX_EPOCH;
        let account: AccountName = "do-main".parse().unwrap();
        let of = |kind| RequestInfo::Cloud {
            account: &account,
            changes: true,
            later_page: false,
            kind: Some(kind),
        };
        faults.set(now, RequestKind::Change, 0, Fault::Crossed(Act::PowerOn));
        assert_eq!(faults.fault_for(of(ResourceKind::Database), now), None);
        let met = faults.fault_for(of(ResourceKind::Droplet), now);
        assert_eq!(met, Some(Fault::Crossed(Act::PowerOn)));
        assert_eq!(faults.fault_for(of(ResourceKind::Droplet), now), None);
    }
}
