//! The machines behind the host of the SSH account, as they really are.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::MachineName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A machine, as a night describes it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Machine {
    /// Whether it is on at first.
    pub is_on: bool,
    /// How long it takes to boot, in seconds.
    pub boot: u64,
    /// How long it takes to shut down, in seconds.
    pub shutdown: u64,
    /// How long its status command takes, in seconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub status: u64,
    /// Whether its stop command has no effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignores_stop: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(seconds: &u64) -> bool {
    *seconds == 0
}

/// What a configured command is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Status,
    Start,
    Stop,
    Force,
}

/// The machines of a night. Clones share the same machines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Machines(Arc<Mutex<BTreeMap<MachineName, Present>>>);

#[derive(Debug)]
struct Present {
    machine: Machine,
    is_on: bool,
    /// Counts what was begun: only the latest takes effect.
    latest: u64,
    /// Until when its network is down.
    cut_off_until: Timestamp,
}

/// A change that a machine has begun.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) takes: Duration,
    on: bool,
    number: u64,
}

impl Machines {
    pub(crate) fn new(machines: &BTreeMap<MachineName, Machine>) -> Self {
        let present = machines.iter().map(|(name, machine)| {
            let present = Present {
                machine: machine.clone(),
                is_on: machine.is_on,
                latest: 0,
                cut_off_until: Timestamp::MIN,
            };
            (name.clone(), present)
        });
        Self(Arc::new(Mutex::new(present.collect())))
    }

    /// Reports whether a machine is on. `None` if there is no such machine.
    pub(crate) fn is_on(&self, name: &MachineName) -> Option<bool> {
        self.lock().get(name).map(|machine| machine.is_on)
    }

    /// Reports whether a machine answers on its network.
    pub(crate) fn answers(&self, name: &MachineName, now: Timestamp) -> bool {
        let machines = self.lock();
        machines.get(name).is_some_and(|machine| machine.is_on && machine.cut_off_until <= now)
    }

    /// Reports whether a machine's network was down at an instant.
    pub(crate) fn is_cut_off(&self, name: &MachineName, at: Timestamp) -> bool {
        self.lock().get(name).is_some_and(|machine| at < machine.cut_off_until)
    }

    /// Returns how long the status command of a machine takes.
    pub(crate) fn status_takes(&self, name: &MachineName) -> Duration {
        let machines = self.lock();
        Duration::from_secs(machines.get(name).map_or(0, |machine| machine.machine.status))
    }

    pub(crate) fn cut_off(&self, name: &MachineName, until: Timestamp) {
        if let Some(machine) = self.lock().get_mut(name) {
            machine.cut_off_until = until;
        }
    }

    /// Lets a command take effect. Returns what that begins; `None` if it changes nothing.
    pub(crate) fn begin(&self, name: &MachineName, purpose: Purpose) -> Option<Begun> {
        let mut machines = self.lock();
        let present = machines.get_mut(name)?;
        let Machine { boot, shutdown, ignores_stop, .. } = present.machine;
        let (on, seconds) = match purpose {
            Purpose::Start => (true, boot),
            Purpose::Stop if !ignores_stop => (false, shutdown),
            Purpose::Force => (false, 1),
            Purpose::Status | Purpose::Stop => return None,
        };
        if present.is_on == on {
            return None;
        }
        present.latest += 1;
        Some(Begun { takes: Duration::from_secs(seconds), on, number: present.latest })
    }

    /// Ends what was begun, unless something else was begun since.
    pub(crate) fn finish(&self, name: &MachineName, begun: &Begun) {
        if let Some(present) = self.lock().get_mut(name)
            && present.latest == begun.number
        {
            present.is_on = begun.on;
        }
    }

    /// Lets a person switch a machine on or off, at once.
    pub(crate) fn switch(&self, name: &MachineName, on: bool) {
        if let Some(present) = self.lock().get_mut(name) {
            present.latest += 1;
            present.is_on = on;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<MachineName, Present>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
