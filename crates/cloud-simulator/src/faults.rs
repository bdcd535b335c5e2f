//! Faults, which make a cloud misbehave, and holds, which stop a request at an exact point.

use std::collections::BTreeMap;

use domain::{AccountName, ResourceRef};
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::{answer::Answer, request::Request};

/// Selects requests. A field that is left out matches every request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Matching {
    /// The account whose token the request carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<AccountName>,
    /// The method, in uppercase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_suffix: Option<String>,
    /// The resource that the path names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceRef>,
    /// Text that the body contains, such as `power_off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_contains: Option<String>,
}

/// A request's account and resource, as far as they are known.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) place: Option<usize>,
    pub(crate) account: Option<AccountName>,
    pub(crate) resource: Option<ResourceRef>,
}

impl Matching {
    fn matches(&self, request: &Request, identity: &Identity) -> bool {
        fn all<T>(wanted: Option<&T>, holds: impl FnOnce(&T) -> bool) -> bool {
            wanted.is_none_or(holds)
        }
        let Request { method, path, body, .. } = request;
        (self.account.is_none() || self.account == identity.account)
            && (self.resource.is_none() || self.resource == identity.resource)
            && all(self.method.as_ref(), |wanted| wanted == method)
            && all(self.path_prefix.as_ref(), |prefix| path.starts_with(prefix))
            && all(self.path_suffix.as_ref(), |suffix| path.ends_with(suffix))
            && all(self.body_contains.as_ref(), |part| body.contains(part))
    }
}

/// A fault for the next requests that match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The requests that it applies to.
    #[serde(default, rename = "match")]
    pub matching: Matching,
    /// How many of these requests it applies to.
    #[serde(default = "once")]
    pub times: u32,
    /// What happens to each request.
    pub does: Misbehavior,
}

/// What goes wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Misbehavior {
    /// A response other than the cloud's own.
    Answer {
        status: u16,
        /// The body; defaults to the cloud's usual wording for the status.
        #[serde(default)]
        body: Option<String>,
        /// Additional headers, such as `retry-after`.
        #[serde(default)]
        headers: BTreeMap<String, String>,
        /// Whether the request takes effect anyway.
        #[serde(default)]
        after_effect: bool,
    },
    /// The request takes effect, but the body of the response is cut off in the middle.
    Truncate,
    /// The connection is closed without a response.
    Drop {
        /// Whether the request takes effect.
        #[serde(default)]
        after_effect: bool,
    },
    /// The connection is closed without a response, and the request arrives later on its own.
    Late { by: SignedDuration },
    /// The request is accepted as usual, but all of its effects happen later.
    Slow { by: SignedDuration },
    /// The request is carried out immediately, but its response is delayed. A clock that can be
    /// moved advances by the delay, which concurrent requests share.
    Delay { by: SignedDuration },
    /// The token is refused.
    Unauthorized,
}

impl Misbehavior {
    pub(crate) fn takes_effect(&self) -> bool {
        match self {
            Self::Truncate | Self::Slow { .. } | Self::Delay { .. } => true,
            Self::Answer { after_effect, .. } | Self::Drop { after_effect } => *after_effect,
            Self::Late { .. } | Self::Unauthorized => false,
        }
    }

    /// How much later the request's effects happen.
    pub(crate) fn slowness(&self) -> SignedDuration {
        if let Self::Slow { by } = self { *by } else { SignedDuration::ZERO }
    }

    /// How much later the response is sent.
    pub(crate) fn delay(&self) -> Option<SignedDuration> {
        if let Self::Delay { by } = self { Some(*by) } else { None }
    }

    /// Turns the cloud's own response, if there is one, into the one that is sent. `usual` returns
    /// the cloud's usual response for a status.
    pub(crate) fn distort(
        self,
        own: Option<Answer>,
        usual: impl FnOnce(u16) -> Answer,
    ) -> Option<Answer> {
        match self {
            Self::Slow { .. } | Self::Delay { .. } => own,
            Self::Truncate => own.map(|mut answer| {
                answer.body.truncate(answer.body.len() / 2);
                answer
            }),
            Self::Drop { .. } => None,
            Self::Answer { status, body, headers, .. } => {
                let mut answer = usual(status);
                answer.body = body.unwrap_or(answer.body);
                for (name, value) in headers {
                    answer = answer.with(&name, &value);
                }
                Some(answer)
            }
            // A late request never gets here: it arrives on its own, without a fault.
            Self::Unauthorized | Self::Late { .. } => Some(usual(401)),
        }
    }
}

fn once() -> u32 {
    1
}

/// A hold for the next requests that match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// The requests that it applies to.
    #[serde(default, rename = "match")]
    pub matching: Matching,
    /// How many of these requests it applies to.
    #[serde(default = "once")]
    pub times: u32,
    /// Where the requests are held.
    pub at: Stage,
    /// Whether a request that is held on arrival takes effect once it is released, even if its
    /// client has disconnected.
    #[serde(default)]
    pub late: bool,
}

/// Where a request is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Before any effect.
    Arrival,
    /// After its effect, before the response.
    Answer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HoldId(pub(crate) u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no hold {}", .0.0)]
pub struct UnknownHoldError(pub HoldId);

#[derive(Debug, Clone, Serialize)]
pub struct HoldView {
    pub id: HoldId,
    pub hold: Hold,
    /// The requests that it has caught so far, as method and path.
    pub caught: Vec<String>,
    /// How many of them are still waiting.
    pub waiting: usize,
}

/// What happens to the requests in a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Proceed,
    /// The connection is closed; a request held on arrival has no effect.
    Discard,
}

/// The faults and holds that are set.
#[derive(Debug, Default)]
pub(crate) struct Interference {
    pub(crate) faults: Vec<Fault>,
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

/// A request that a hold has caught.
#[derive(Debug)]
pub(crate) struct HeldRequest {
    pub(crate) id: HoldId,
    pub(crate) late: bool,
    pub(crate) verdict: watch::Receiver<Option<Verdict>>,
}

impl Interference {
    /// Returns what the first matching fault does, and counts one use of that fault.
    pub(crate) fn fault_for(
        &mut self,
        request: &Request,
        identity: &Identity,
    ) -> Option<Misbehavior> {
        self.faults.retain(|fault| fault.times > 0);
        let matches = |fault: &&mut Fault| fault.matching.matches(request, identity);
        let fault = self.faults.iter_mut().find(matches)?;
        fault.times -= 1;
        Some(fault.does.clone())
    }

    pub(crate) fn add_hold(&mut self, hold: Hold) -> HoldId {
        self.last_id += 1;
        let id = HoldId(self.last_id);
        let active = ActiveHold {
            hold,
            caught: Vec::new(),
            waiting: watch::Sender::new(0),
            verdict: watch::Sender::new(None),
        };
        self.holds.insert(id, active);
        id
    }

    /// Catches a request in the first hold that matches.
    pub(crate) fn catch(
        &mut self,
        stage: Stage,
        request: &Request,
        identity: &Identity,
    ) -> Option<HeldRequest> {
        let (id, active) = self.holds.iter_mut().find(|(_, active)| {
            active.hold.at == stage
                && active.caught.len() < active.hold.times as usize
                && active.hold.matching.matches(request, identity)
        })?;
        active.caught.push(format!("{} {}", request.method, request.path));
        active.waiting.send_modify(|waiting| *waiting += 1);
        Some(HeldRequest { id: *id, late: active.hold.late, verdict: active.verdict.subscribe() })
    }

    /// Records that a caught request no longer waits: it proceeds, or its client has disconnected.
    pub(crate) fn stopped_waiting(&mut self, id: HoldId) {
        if let Some(active) = self.holds.get(&id) {
            active.waiting.send_modify(|waiting| *waiting = waiting.saturating_sub(1));
        }
    }

    /// Returns how many requests wait in a hold, now and after each change.
    pub(crate) fn waiting(&self, id: HoldId) -> Result<watch::Receiver<usize>, UnknownHoldError> {
        let active = self.holds.get(&id).ok_or(UnknownHoldError(id))?;
        Ok(active.waiting.subscribe())
    }

    /// Ends a hold, and decides what happens to the requests in it.
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
