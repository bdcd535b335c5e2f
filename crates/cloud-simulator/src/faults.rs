//! Clouds that misbehave: faults, and holds that stop a request at an exact point.

use std::collections::BTreeMap;

use domain::{AccountName, ResourceRef};
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::request::Incoming;

/// Which requests are meant; what is left out matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Matching {
    /// Those that carry this account's token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<AccountName>,
    /// The method, in capitals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// How the path begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
    /// How the path ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_suffix: Option<String>,
    /// The resource that the path names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceRef>,
    /// What the body contains: `power_off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_contains: Option<String>,
}

/// A request's account and resource, as far as they are known.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) account: Option<AccountName>,
    pub(crate) resource: Option<ResourceRef>,
}

impl Matching {
    fn matches(&self, incoming: &Incoming, identity: &Identity) -> bool {
        fn all<T>(wanted: Option<&T>, holds: impl FnOnce(&T) -> bool) -> bool {
            wanted.is_none_or(holds)
        }
        all(self.account.as_ref(), |wanted| {
            identity.account.as_ref() == Some(wanted)
        }) && all(self.resource.as_ref(), |wanted| {
            identity.resource.as_ref() == Some(wanted)
        }) && all(self.method.as_ref(), |wanted| {
            incoming.method.as_str() == wanted
        }) && all(self.path_prefix.as_ref(), |wanted| {
            incoming.path.starts_with(wanted.as_str())
        }) && all(self.path_suffix.as_ref(), |wanted| {
            incoming.path.ends_with(wanted.as_str())
        }) && all(self.body_contains.as_ref(), |wanted| {
            incoming.text().contains(wanted.as_str())
        })
    }
}

/// A fault, for the next requests that match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Which requests.
    #[serde(default, rename = "match")]
    pub matching: Matching,
    /// How many of them.
    #[serde(default = "once")]
    pub times: u32,
    /// What happens to each.
    pub does: Misbehavior,
}

/// What goes wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Misbehavior {
    /// Another answer than the cloud's.
    Answer {
        /// The status.
        status: u16,
        /// The body, as it is; left out, the cloud's usual words for the status.
        #[serde(default)]
        body: Option<String>,
        /// More headers: `retry-after`.
        #[serde(default)]
        headers: BTreeMap<String, String>,
        /// Whether the request takes effect all the same.
        #[serde(default)]
        after_effect: bool,
    },
    /// The request takes effect; the answer's body ends in the middle.
    Truncate,
    /// The connection is closed without an answer.
    Drop {
        /// Whether the request takes effect.
        #[serde(default)]
        after_effect: bool,
    },
    /// The connection is closed without an answer, and the request arrives later, by itself.
    Late {
        /// How much later.
        by: SignedDuration,
    },
    /// The request is accepted as usual, and all that it leads to happens later than usual.
    Slow {
        /// How much later.
        by: SignedDuration,
    },
    /// The request is carried out at once, and its answer comes later. On a clock that can be
    /// moved that time passes by itself: requests that are under way together share it.
    Delay {
        /// How much later.
        by: SignedDuration,
    },
    /// The token is refused.
    Unauthorized,
}

fn once() -> u32 {
    1
}

/// A hold, for the next requests that match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// Which requests.
    #[serde(default, rename = "match")]
    pub matching: Matching,
    /// How many of them.
    #[serde(default = "once")]
    pub times: u32,
    /// Where they are held.
    pub at: Stage,
    /// Whether a request that is held on arrival takes effect when it is released though its
    /// client has gone meanwhile.
    #[serde(default)]
    pub late: bool,
}

/// Where a request is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Before any effect.
    Arrival,
    /// After its effect, before the answer.
    Answer,
}

/// Names a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HoldId(pub(crate) u64);

/// There is no such hold, or not any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no hold {}", .0.0)]
pub struct UnknownHoldError(pub HoldId);

/// A hold and how far it is.
#[derive(Debug, Clone, Serialize)]
pub struct HoldView {
    /// Its name.
    pub id: HoldId,
    /// The hold.
    pub hold: Hold,
    /// What it has caught so far: method and path.
    pub caught: Vec<String>,
    /// How many of these still wait.
    pub waiting: usize,
}

/// What becomes of the requests that a hold has caught.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    GoOn,
    /// The connection is closed; a request held on arrival has no effect.
    Discard,
}

/// The faults and holds that are set.
#[derive(Debug, Default)]
pub(crate) struct Mischief {
    faults: Vec<Fault>,
    holds: BTreeMap<HoldId, ActiveHold>,
    last_id: u64,
}

#[derive(Debug)]
struct ActiveHold {
    hold: Hold,
    caught: Vec<String>,
    waiting: watch::Sender<usize>,
    verdict: watch::Sender<Option<Verdict>>,
}

/// What a caught request waits for.
#[derive(Debug)]
pub(crate) struct Caught {
    pub(crate) id: HoldId,
    pub(crate) late: bool,
    pub(crate) verdict: watch::Receiver<Option<Verdict>>,
}

impl Mischief {
    pub(crate) fn add_fault(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    pub(crate) fn clear_faults(&mut self) {
        self.faults.clear();
    }

    pub(crate) fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// The first fault that matches, counted as used once.
    pub(crate) fn fault_for(
        &mut self,
        incoming: &Incoming,
        identity: &Identity,
    ) -> Option<Misbehavior> {
        self.faults.retain(|fault| fault.times > 0);
        let matches = |fault: &&mut Fault| fault.matching.matches(incoming, identity);
        let fault = self.faults.iter_mut().find(matches)?;
        fault.times -= 1;
        Some(fault.does.clone())
    }

    pub(crate) fn add_hold(&mut self, hold: Hold) -> HoldId {
        self.last_id += 1;
        let id = HoldId(self.last_id);
        let waiting = watch::Sender::new(0);
        let verdict = watch::Sender::new(None);
        self.holds.insert(
            id,
            ActiveHold {
                hold,
                caught: Vec::new(),
                waiting,
                verdict,
            },
        );
        id
    }

    /// Catches a request in the first hold that matches.
    pub(crate) fn catch(
        &mut self,
        stage: Stage,
        incoming: &Incoming,
        identity: &Identity,
    ) -> Option<Caught> {
        let (id, active) = self.holds.iter_mut().find(|(_, active)| {
            active.hold.at == stage
                && active.caught.len() < active.hold.times as usize
                && active.hold.matching.matches(incoming, identity)
        })?;
        active
            .caught
            .push(format!("{} {}", incoming.method, incoming.path));
        active.waiting.send_modify(|waiting| *waiting += 1);
        Some(Caught {
            id: *id,
            late: active.hold.late,
            verdict: active.verdict.subscribe(),
        })
    }

    /// A caught request waits no more: it goes on, or its client has gone.
    pub(crate) fn left(&mut self, id: HoldId) {
        if let Some(active) = self.holds.get(&id) {
            active
                .waiting
                .send_modify(|waiting| *waiting = waiting.saturating_sub(1));
        }
    }

    /// How many requests wait in a hold, now and after each change.
    pub(crate) fn waiting(&self, id: HoldId) -> Result<watch::Receiver<usize>, UnknownHoldError> {
        let active = self.holds.get(&id).ok_or(UnknownHoldError(id))?;
        Ok(active.waiting.subscribe())
    }

    /// Ends a hold, and decides on what it has caught.
    pub(crate) fn end_hold(
        &mut self,
        id: HoldId,
        verdict: Verdict,
    ) -> Result<(), UnknownHoldError> {
        let active = self.holds.remove(&id).ok_or(UnknownHoldError(id))?;
        active.verdict.send_replace(Some(verdict));
        Ok(())
    }

    pub(crate) fn holds(&self) -> Vec<HoldView> {
        let view = |(id, active): (&HoldId, &ActiveHold)| HoldView {
            id: *id,
            hold: active.hold.clone(),
            caught: active.caught.clone(),
            waiting: *active.waiting.borrow(),
        };
        self.holds.iter().map(view).collect()
    }
}
