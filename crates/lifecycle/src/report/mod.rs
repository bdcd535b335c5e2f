//! What an invocation did: for its caller, for the log, for the metrics and for the event bus.

pub mod bus_event;
pub mod health;
mod publish;

use std::fmt;

use domain::{
    AccountName, ResourceRef, ScheduleName,
    digest::Digest,
    hibernation,
    money::Money,
    plan::{Offer, Unfit},
    record::Record,
    resource::MachineSize,
    stop_method::StopMethod,
};
use environment::left_alone;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use store::{Found, Store, StoreError, Unreadable};

use crate::{Context, Outcome, report::health::Health};

pub use publish::publishing;

/// Receives what an invocation does as it happens, each event after the write that it reports; a
/// report comes only at the end, and not if the invocation fails.
pub trait Listener {
    /// Something happened.
    fn happened(&self, outcome: &Outcome);

    /// Nothing happened: this answers a caller's question.
    fn answered(&self, outcome: &Outcome) {
        self.happened(outcome);
    }

    /// All that follow a schedule have finished an edge, or should have.
    fn edge_completed(&self, _digest: &Digest) {}

    /// An inventory ended: so many of an account's records need a person now.
    fn counted(&self, _account: &AccountName, _health: &Health) {}
}

impl<F: Fn(&Outcome)> Listener for F {
    fn happened(&self, outcome: &Outcome) {
        self(outcome);
    }
}

/// All that one invocation did, or found worth saying.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// In the order in which it happened.
    pub outcomes: Vec<Outcome>,
    /// Transitions looked at that are still under way.
    #[serde(default)]
    pub in_flight: usize,
    /// What a trial of accounts showed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<Trial>,
    /// What stops would lead to by a configuration that is not applied yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<AccountMoves>,
    /// What became of edges of schedules, each reported once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub digests: Vec<Digest>,
    /// What a newer program wrote, and this one left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_alone: Vec<LeftAlone>,
}

impl Report {
    /// Adds what a part of the invocation did, and reports it.
    pub fn add(&mut self, context: Context<'_>, outcomes: impl IntoIterator<Item = Outcome>) {
        for outcome in outcomes {
            context.listener.happened(&outcome);
            self.outcomes.push(outcome);
        }
    }

    /// Adds what was asked about and did not happen, and reports it.
    pub(crate) fn answer(
        &mut self,
        context: Context<'_>,
        outcomes: impl IntoIterator<Item = Outcome>,
    ) {
        for outcome in outcomes {
            context.listener.answered(&outcome);
            self.outcomes.push(outcome);
        }
    }
}

/// What one list call with an account's token, or with each of two, showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Which account.
    pub account: AccountName,
    /// Why it could not be listed, and with which token if it has two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// All that was listed, in every location, as first seen.
    #[serde(default)]
    pub found: Vec<Record>,
}

/// What an account's resources would be stopped on whose schedules have them leave a plan, or a
/// standby.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountMoves {
    /// Which account.
    pub account: AccountName,
    /// Why that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// By resource.
    #[serde(default)]
    pub moves: Vec<PlanMove>,
    /// Which scopes its token lacks for hibernating machines; none where it hibernates none, or that
    /// is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_scopes: Option<Vec<MissingScope>>,
}

/// A scope that a token lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingScope {
    /// Its name: `firewall:read`.
    pub scope: String,
    /// What is read with it.
    pub reads: String,
}

impl MissingScope {
    /// `firewall:read (firewalls), project:read (projects)`
    #[must_use]
    pub fn all(missing: &[Self]) -> String {
        let each = |one: &Self| format!("{} ({})", one.scope, one.reads);
        let each: Vec<_> = missing.iter().map(each).collect();
        each.join(", ")
    }
}

/// What a stop by its schedule would make of one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanMove {
    /// Which resource.
    pub resource: ResourceRef,
    /// Its name at the provider.
    pub name: String,
    /// The schedule that it would follow.
    pub schedule: ScheduleName,
    /// How that would have it stopped.
    pub method: StopMethod,
    /// When it was created, where its provider says so: Hetzner counts a server's hours from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// The plan to which it has to come back.
    pub from: String,
    /// Where the stop would lead.
    pub to: MoveTarget,
}

/// Where a stop that is to leave a plan, or a standby, leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MoveTarget {
    /// To a cheaper plan.
    Smaller {
        /// Which.
        plan: String,
        /// What it costs there.
        offer: Offer,
        /// What the present plan costs there, by the list.
        present: Offer,
        /// Whether the machine may be billed at another price than the list's until it is moved.
        has_kept_price: bool,
    },
    /// To a snapshot, from which the machine is made again.
    Snapshot {
        /// Its plan, and what that gives.
        size: MachineSize,
        /// What the plan costs where the machine is, by the list; none where no price is listed, or
        /// the machine may be billed at another one.
        offer: Option<Offer>,
        /// What a GB of a snapshot costs in a month.
        per_gb_month: Option<Money>,
        /// Whether it has an address that costs while it is not there.
        address_costs: bool,
        /// Whether one of its snapshots has been seen to boot: without that, nothing is hibernated.
        rehearsed: bool,
    },
    /// Nowhere: there is nothing to save, so that the machine is only switched off.
    Same {
        /// Why.
        reason: String,
    },
    /// It is not made, because the resource could not come back.
    Refused(Obstacle),
}

/// Why a stop is not made that a schedule asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obstacle {
    /// Why.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

impl From<&Unfit> for Obstacle {
    fn from(unfit: &Unfit) -> Self {
        Self {
            reason: unfit.to_string(),
            remedy: unfit.remedy().to_owned(),
        }
    }
}

/// All that stands in the way of hibernating a machine; none where nothing does.
impl Obstacle {
    pub(crate) fn all(obstacles: &[hibernation::Obstacle]) -> Option<Self> {
        let (reasons, remedies): (Vec<_>, Vec<_>) = obstacles
            .iter()
            .map(|one| (one.to_string(), one.remedy()))
            .unzip();
        (!reasons.is_empty()).then(|| Self {
            reason: reasons.join("; "),
            remedy: remedies.join("; "),
        })
    }
}

/// As a record keeps it.
impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.remedy)
    }
}

/// An item that this program cannot read: a newer program wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftAlone {
    /// Which resource's record, or which account's state.
    pub reference: String,
    /// Why not.
    pub reason: String,
}

impl Report {
    /// What could be read. What could not is reported once per invocation.
    pub(crate) fn readable<T>(&mut self, found: Found<T>) -> T {
        for Unreadable { reference, source } in found.unreadable {
            if self.left_alone.iter().any(|l| l.reference == reference) {
                continue;
            }
            let reason = left_alone(&reference, &source);
            self.left_alone.push(LeftAlone { reference, reason });
        }
        found.read
    }
}

/// A record as it is now, after another writer; none where that is to be left alone.
pub(crate) async fn reread(
    store: &Store,
    reference: &ResourceRef,
) -> Result<Option<Record>, StoreError> {
    match store.record(reference).await {
        Err(error) if error.is_unreadable() => {
            left_alone(&reference.to_string(), &error);
            Ok(None)
        }
        read => read,
    }
}
