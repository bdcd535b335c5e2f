//! What an invocation did: for its caller, for the log, for the metrics and for the event bus.

pub mod bus_event;
pub mod health;
mod publish;

use domain::{
    AccountName, ResourceRef, ScheduleName, activity::Activity, digest::Digest, money::Money,
    notice::StopNotice, plan::Offer, record::Record, resource::MachineSize,
    stop_method::StopMethod,
};
use environment::left_alone;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use store::{ReadItems, Store, StoreError, Unreadable};

use crate::{Context, Occurrence, report::health::Health};

pub use publish::{Log, publishing};
pub use transition::methods::StopObstacle;

/// Receives events as they happen, each after the write that it reports; a report comes only at the
/// end, and not at all if the invocation fails.
pub trait Listener {
    /// Called when something has happened.
    fn happened(&self, outcome: &Occurrence);

    /// Called with the answer to a caller's question; nothing has happened.
    fn answered(&self, outcome: &Occurrence) {
        self.happened(outcome);
    }

    /// Called when all resources that follow a schedule have finished an edge, or should have.
    fn edge_completed(&self, _digest: &Digest) {}

    /// Called when a stop is announced, or called off.
    fn stop_noticed(&self, _notice: &StopNotice) {}

    /// Called when a person has changed something with a command.
    fn changed(&self, _activity: &Activity) {}

    /// Called when an inventory ends, with how many of an account's records need a person now.
    fn counted(&self, _account: &AccountName, _health: &Health) {}
}

impl<F: Fn(&Occurrence)> Listener for F {
    fn happened(&self, outcome: &Occurrence) {
        self(outcome);
    }
}

/// Everything that one invocation did, or found worth reporting.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The events, in the order in which they happened.
    pub outcomes: Vec<Occurrence>,
    /// How many transitions the last look left in flight.
    #[serde(default)]
    pub in_flight: usize,
    /// The results of trying out accounts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<Trial>,
    /// Where stops would lead under a configuration that is not applied yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<AccountPreview>,
    /// What accounts show that no record knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remains: Vec<AccountRemains>,
    /// The digests of schedules' edges, each reported once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub digests: Vec<Digest>,
    /// The stops that were announced or called off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<StopNotice>,
    /// The items that a newer program wrote, and this one left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_alone: Vec<LeftAlone>,
}

impl Report {
    /// Adds and reports what a part of the invocation did.
    pub fn add(&mut self, context: Context<'_>, outcomes: impl IntoIterator<Item = Occurrence>) {
        for outcome in outcomes {
            context.listener.happened(&outcome);
            self.outcomes.push(outcome);
        }
    }

    /// Adds and reports answers to a question, which are not events.
    pub(crate) fn answer(
        &mut self,
        context: Context<'_>,
        outcomes: impl IntoIterator<Item = Occurrence>,
    ) {
        for outcome in outcomes {
            context.listener.answered(&outcome);
            self.outcomes.push(outcome);
        }
    }
}

/// What one list call with an account's token, or with each of its two, showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    pub account: AccountName,
    /// Why it could not be listed, and with which token if it has two; `None` if it could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Everything that was listed, in every location, as first seen.
    #[serde(default)]
    pub found: Vec<Record>,
    /// What the list could not show, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
}

/// What an account shows of earlier stops that no record knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountRemains {
    pub account: AccountName,
    /// Why that is unknown; `None` if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub found: Vec<Remains>,
}

/// What a cloud shows of a resource that may be owed something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remains {
    pub resource: ResourceRef,
    pub name: String,
    /// What was found, in words.
    pub found: String,
    /// What a person has to do, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_do: Option<String>,
    /// The record to write, if what was found suffices for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Box<Record>>,
}

/// Where stops would lead for those of an account's resources whose schedule changes their plan,
/// drops their standbys or hibernates them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountPreview {
    pub account: AccountName,
    /// Why that is unknown; `None` if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// One entry per resource.
    #[serde(default)]
    pub moves: Vec<StopPreview>,
    /// The scopes that its token lacks for hibernating machines; `None` if it hibernates none, or
    /// if that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_scopes: Option<Vec<MissingScope>>,
}

/// A scope that a token lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingScope {
    /// Its name: `firewall:read`.
    pub scope: String,
    pub reads: String,
}

impl MissingScope {
    /// Joins scopes in one line: `firewall:read (firewalls), project:read (projects)`
    #[must_use]
    pub fn all(missing: &[Self]) -> String {
        let each = |one: &Self| format!("{} ({})", one.scope, one.reads);
        let each: Vec<_> = missing.iter().map(each).collect();
        each.join(", ")
    }
}

/// Where a stop by its schedule would lead for one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StopPreview {
    /// The resource.
    pub resource: ResourceRef,
    /// Its name at the provider.
    pub name: String,
    /// The schedule that it would follow.
    pub schedule: ScheduleName,
    /// How that schedule would stop it.
    pub method: StopMethod,
    /// When it was created, if its provider says so: Hetzner counts a server's hours from then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// The plan that it has to return to.
    pub from: String,
    /// Where the stop would lead.
    pub to: MoveTarget,
}

/// Where a stop that changes a plan, drops standbys or hibernates would lead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MoveTarget {
    /// To a cheaper plan.
    Smaller {
        /// The plan.
        plan: String,
        /// The plan's price there.
        offer: Offer,
        /// The list price of the present plan there.
        present: Offer,
        /// Whether the machine may be billed at another than the list price until it is moved.
        has_kept_price: bool,
    },
    /// To a snapshot, from which the machine is recreated.
    Snapshot {
        /// The machine's plan, and what it provides.
        size: MachineSize,
        /// What the plan costs where the machine is, by the list; `None` if no price is listed, or
        /// if the machine may be billed at another one.
        offer: Option<Offer>,
        /// What a GB of a snapshot costs per month.
        per_gb_month: Option<Money>,
        /// Whether it has an address that is billed while the machine does not exist.
        address_costs: bool,
        /// Whether one of its snapshots has been seen to boot; without that, nothing is hibernated.
        rehearsed: bool,
        /// What is restored when the machine is recreated.
        #[serde(default)]
        put_back: Vec<String>,
        /// What is lost then.
        #[serde(default)]
        lost: Vec<String>,
    },
    /// Nowhere: nothing to save, or no hibernation possible, so it is only switched off.
    Same {
        /// Why it is only switched off.
        reason: String,
    },
    /// The stop is not made, because the resource could not come back.
    Refused(StopObstacle),
}

/// An item that this program cannot read, because a newer program wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftAlone {
    /// The resource whose record it is, or the account whose state it is.
    pub reference: String,
    /// Why it cannot be read.
    pub reason: String,
}

impl Report {
    /// Returns what could be read. What could not is reported once per invocation.
    pub(crate) fn readable<T>(&mut self, found: ReadItems<T>) -> T {
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

/// Reads a record again after another writer; `None` if it is missing, or is to be left alone.
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
