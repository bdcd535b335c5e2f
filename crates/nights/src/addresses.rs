//! The addresses that the checks of groups try, and when they do not answer.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::configuration::Check;
use jiff::Timestamp;

/// The addresses of a night: each answers unless it is down. Clones share the same addresses.
#[derive(Debug, Clone, Default)]
pub(crate) struct Addresses(Arc<Mutex<BTreeMap<Check, Down>>>);

/// The last time in which an address does not answer.
#[derive(Debug, Clone, Copy)]
struct Down {
    since: Timestamp,
    until: Timestamp,
}

impl Addresses {
    /// Lets an address not answer until an instant.
    pub(crate) fn take_down(&self, check: Check, now: Timestamp, until: Timestamp) {
        let mut addresses = self.lock();
        let down = addresses.entry(check).or_insert(Down { since: now, until });
        if down.until < now {
            down.since = now;
        }
        down.until = down.until.max(until);
    }

    /// Returns the checks that pass.
    pub(crate) fn passed(&self, checks: BTreeSet<&Check>, now: Timestamp) -> BTreeSet<Check> {
        let passes = |check: &&Check| self.down_since(check, now).is_none();
        checks.into_iter().filter(passes).cloned().collect()
    }

    /// Returns since when an address has not answered. `None` if it answers.
    pub(crate) fn down_since(&self, check: &Check, now: Timestamp) -> Option<Timestamp> {
        let down = self.lock().get(check).copied()?;
        (now < down.until).then_some(down.since)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Check, Down>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
