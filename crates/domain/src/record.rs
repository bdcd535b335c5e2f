//! The persisted state of one resource.

mod request;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    edge::Generation,
    hibernation::{AttachmentName, Hibernation, OF_LABEL},
    reason::Reason,
    reference::{ResourceId, ResourceKind, ResourceRef, ScheduleName},
    resource::{Cluster, LostStorage, Power, Resource, SavedState},
    schedule::Desired,
    stop_method::StopMethod,
    stored::is_default,
    text,
};

pub use crate::{
    edge::{Cause, Direction, EdgeKey, Handled, ManualCommand, Rank},
    timing::*,
    writer::{Permit, Revision, Writer},
};
pub use request::{Ask, Forced, Request};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and a field of the stored item"
)]
pub struct Record {
    /// The resource, and the record's key.
    pub reference: ResourceRef,
    #[serde(deserialize_with = "text::line")]
    pub name: String,
    /// The cluster that a node pool belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Cluster>,
    /// Tags, or labels as `key=value`, as the last inventory saw them.
    #[serde(default)]
    pub tags: BTreeSet<String>,
    /// Region or location.
    #[serde(default)]
    pub region: String,
    /// The plan's slug, as the last inventory saw it: the machine's, the database's, or that of the
    /// pool's nodes. For people; what must be restored is in `saved`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Why Offhours never touches it; `None` if it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<String>,
    /// The schedule that it follows, according to the last inventory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleName>,
    /// Whether the last inventory found it opted in. Before acting, a fresh observation is checked
    /// instead.
    pub opted_in: bool,
    /// The instant from which Offhours may act on its schedule: when it joined, moved to another
    /// one, or was approved. `None` if it follows none. Whatever was desired before does not count
    /// as late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined_at: Option<Timestamp>,
    /// Whether the last inventory found it orphaned. Reported once, when it becomes so.
    #[serde(default, skip_serializing_if = "is_default")]
    pub orphaned: bool,
    /// Whether it joined with too many others at once, or lost storage: untouched until a person
    /// approves.
    #[serde(default, skip_serializing_if = "is_default")]
    pub held: bool,
    /// Storage that its latest start could not restore, for which it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_storage: Option<LostStorage>,
    /// The same resource as reached through another account, or as recorded a second time. While
    /// set, it is untouched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate_of: Option<ResourceRef>,
    /// The latest observation, written only when it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
    /// Where the resource is in its life cycle.
    pub phase: Phase,
    /// The last edge that was acted on or acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handled: Option<Handled>,
    /// The latest manual command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manual_command: Option<ManualCommand>,
    /// The values of the tag `offhours-until`, and those that are gone until a later edge was
    /// handled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub until_tags: Vec<UntilTag>,
    /// Our latest request whose effect has not been seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
    /// The permit of the writer that is about to send. Meanwhile no other writer may claim, ask,
    /// settle or mark the record gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permit: Option<Permit>,
    /// An opposite request that may still act. No observation from before its end settles the
    /// transition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opposite: Option<Opposite>,
    /// The state that must be restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<SavedState>,
    /// Whether a shrink may have been accepted since `saved` was set.
    #[serde(default, skip_serializing_if = "is_default")]
    pub may_have_shrunk: bool,
    /// The plans to which a machine may have been moved since `saved` was set. On none of them does
    /// it count as restored, whatever it has more of there.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub small_plans: BTreeSet<String>,
    /// Whether it counts as stopped on its small plan even if it runs there: `rescaled_runs` at the
    /// time of the stop.
    #[serde(default, skip_serializing_if = "is_default")]
    pub small_runs: bool,
    /// What a machine that is, or was, hibernated is recreated from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hibernation: Option<Box<Hibernation>>,
    /// How the last edge that was acted on or acknowledged ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Last>,
    /// Whether it was found running at a begin edge, so that `retain_running` leaves it alone at
    /// the end edge.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retained: bool,
    /// When the provider created it, if it says so: of a machine that was hibernated, the present one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// When an inventory first listed it; nothing is known from before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_seen_at: Option<Timestamp>,
    /// When its Status operation first returned 404.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_since: Option<Timestamp>,
    /// When this record next needs a decision or an observation; `None` if no such instant is
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// The earliest retry after a failure that came before any request, or after a request that was
    /// not answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// The edge whose failures `retry_at` and `attempts` count. They do not delay a later edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<EdgeKey>,
    /// The number of consecutive failures.
    #[serde(default, skip_serializing_if = "is_default")]
    pub attempts: u32,
    /// The latest failure, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<Reason>,
    /// Incremented by every write.
    pub revision: Revision,
}

/// A value of the tag `offhours-until` on a resource or its cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UntilTag {
    /// The value, in lower case.
    #[serde(deserialize_with = "text::line")]
    pub text: String,
    /// When it was first seen. What it means is counted from then.
    pub seen_at: Timestamp,
    /// When it was first seen to be gone; `None` while it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone_at: Option<Timestamp>,
}

/// A request of ours, opposite to the transition in flight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opposite {
    /// The instant until which it may still act.
    pub until: Timestamp,
    /// The size to which it may still lead; only for sized kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_become: Option<SavedState>,
}

/// What an observation showed, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    pub power: Power,
    /// Its size; only for sized kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<SavedState>,
    /// Why it was busy; `None` if idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<String>,
    /// When the observation that first showed this was requested.
    pub at: Timestamp,
}

/// Where a resource is in its life cycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "name")]
pub enum Phase {
    /// Nothing is in flight.
    Settled {
        /// The state in which it was seen, or left.
        at: Power,
    },
    /// A stop or a start is in flight.
    InFlight { transition: Transition },
    /// The provider refused, and no retry can succeed.
    Refused {
        transition: Transition,
        /// The provider's message.
        #[serde(deserialize_with = "text::line")]
        reason: String,
    },
    /// Accepted, but its effect was not seen by the deadline, or a forced power-off is not allowed.
    Stuck {
        transition: Transition,
        /// When it became stuck.
        since: Timestamp,
        /// Why it is stuck.
        #[serde(deserialize_with = "text::line")]
        reason: String,
    },
    /// The provider returns 404.
    Gone {
        /// When it was found to be gone.
        since: Timestamp,
    },
}

/// A stop or a start in flight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// Stop or start.
    pub direction: Direction,
    /// When it was claimed. Together with the reference, this identifies it in the history.
    pub claimed_at: Timestamp,
    pub cause: Cause,
    /// The schedule that the resource followed when it was claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleName>,
    /// How it stops, or undoes a stop: a new configuration changes neither midway.
    pub method: StopMethod,
    /// Whether a part that is done cut the power after a shutdown without effect.
    #[serde(default, skip_serializing_if = "is_default")]
    pub forced: bool,
    /// The state that a stop leads to, if it changes a machine's plan or sends nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<SavedState>,
    /// Whether a start found the machine running, on less than is saved.
    #[serde(default, skip_serializing_if = "is_default")]
    pub was_running: bool,
}

/// How the last edge that was acted on or acknowledged ended. No request depends on it: digests
/// count it, and a stop that it shows is not called off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Last {
    /// The edge that was the handled one when it ended.
    pub key: EdgeKey,
    /// When it was claimed, or acknowledged.
    pub claimed_at: Timestamp,
    /// When the latest request was permitted; `None` if none was needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Timestamp>,
    pub finished_at: Timestamp,
    pub ending: Ending,
    /// The method by which it was stopped, or had been; `None` if nothing was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<StopMethod>,
}

/// How a transition, or an edge for one record, ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[strum(serialize_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The target state was seen.
    Seen,
    /// Nothing had to be sent.
    #[strum(to_string = "already there")]
    AlreadyThere,
    /// A stop left it running: it was running before its begin edge.
    #[strum(to_string = "left running")]
    LeftRunning,
    /// A stop left it running: it would not have been stopped for long enough.
    #[strum(to_string = "left running, too late")]
    TooLate,
    /// Observe mode: it would have been requested.
    #[strum(to_string = "would have")]
    WouldHave,
    /// The provider refused.
    Refused,
    /// Not seen by the deadline, or a forced power-off is not allowed.
    Stuck,
    /// A person did the opposite meanwhile.
    #[strum(to_string = "superseded by a person")]
    Superseded,
    /// The resource opted out meanwhile.
    Released,
    /// A newer, opposite edge took over.
    Reversed,
    /// A person's size was kept at the start; the saved one remains only in this entry.
    #[strum(to_string = "resized by a person")]
    Resized,
    /// The resource is gone; its saved state remains only in this entry.
    Gone,
    /// A person deleted its record; its saved state remains only in this entry.
    Forgotten,
}

impl Record {
    #[must_use]
    pub fn first_seen(reference: ResourceRef, resource: &Resource) -> Self {
        let mut record = Self {
            reference,
            name: String::new(),
            cluster: None,
            tags: BTreeSet::new(),
            region: String::new(),
            plan: None,
            unsupported: None,
            schedule: None,
            opted_in: false,
            joined_at: None,
            orphaned: false,
            held: false,
            lost_storage: None,
            duplicate_of: None,
            observed: None,
            phase: Phase::Settled { at: resource.power },
            handled: None,
            manual_command: None,
            until_tags: Vec::new(),
            request: None,
            permit: None,
            opposite: None,
            saved: None,
            may_have_shrunk: false,
            small_plans: BTreeSet::new(),
            small_runs: false,
            hibernation: None,
            last: None,
            retained: false,
            created_at: None,
            first_seen_at: None,
            missing_since: None,
            due_at: None,
            retry_at: None,
            failing: None,
            attempts: 0,
            last_error: None,
            revision: Revision::default(),
        };
        record.describe(resource);
        record
    }

    /// Copies what an inventory reports about names and tags.
    pub fn describe(&mut self, resource: &Resource) {
        self.name.clone_from(&resource.name);
        self.cluster.clone_from(&resource.cluster);
        self.tags.clone_from(&resource.tags);
        self.region.clone_from(&resource.region);
        let plan = Some(resource.size.plan()).filter(|plan| !plan.is_empty());
        self.plan = plan.map(str::to_owned);
        self.unsupported.clone_from(&resource.unsupported);
        // While a machine is hibernated, no provider shows when it was created.
        self.created_at = resource.facts.created_at.or(self.created_at);
    }

    /// Reports whether nothing was ever done about the resource, as far as this record shows, or it
    /// is gone.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        let acted = self.handled.is_some() || self.manual_command.is_some();
        let owes = self.saved.is_some() || self.request.is_some();
        matches!(self.phase, Phase::Gone { .. }) || !acted && !owes
    }

    #[must_use]
    pub fn kind(&self) -> ResourceKind {
        self.reference.kind()
    }

    /// Returns the resource as its provider knows it now; `None` for a machine that was deleted by
    /// hibernation.
    #[must_use]
    pub fn present(&self) -> Option<&ResourceId> {
        match &self.hibernation {
            Some(hibernation) => hibernation.present.as_ref(),
            None => Some(&self.reference.id),
        }
    }

    /// Reports whether this is, or may be, the only description of a machine, whatever the phase:
    /// the machine may be hibernated, or lacks something that it had.
    #[must_use]
    pub fn is_irreplaceable(&self) -> bool {
        let hibernation = self.hibernation.as_ref();
        hibernation.is_some_and(|one| one.may_be_hibernated() || one.incomplete)
    }

    /// Reports whether the transition that is in flight or stuck hibernates the machine or wakes
    /// it.
    #[must_use]
    pub fn is_hibernating(&self) -> bool {
        let transition = self.transition();
        transition.is_some_and(|now| now.method == StopMethod::Hibernate)
    }

    /// Reports whether it was seen hibernated and nothing is in flight.
    #[must_use]
    pub fn is_hibernated(&self) -> bool {
        self.in_flight().is_none() && self.present().is_none()
    }

    /// Returns what a person has to resolve about a machine that is or was hibernated, unless a
    /// transition in flight reports it itself.
    #[must_use]
    pub fn hibernation_problem(&self) -> Option<&str> {
        let rests = matches!(self.phase, Phase::Settled { .. } | Phase::Refused { .. });
        let hibernation = self.hibernation.as_ref().filter(|_| rests)?;
        hibernation.problem.as_deref()
    }

    /// Records that a person goes without what a hibernated machine had.
    pub fn waive(&mut self, name: &AttachmentName) {
        // A transition in flight finds out by itself whether anything else is missing.
        let rests = self.in_flight().is_none();
        if let Some(hibernation) = &mut self.hibernation {
            hibernation.waive(name);
            if rests && hibernation.incomplete && hibernation.refused.is_empty() {
                hibernation.incomplete = false;
                hibernation.problem = None;
            }
        }
    }

    /// Records that a second machine was made from this resource, and exists beside its present one.
    pub fn note_second_machine(&mut self, second: &ResourceId) {
        if let Some(hibernation) = &mut self.hibernation
            && let Some(present) = &hibernation.present
        {
            hibernation.problem = Some(format!(
                "two machines were made of it, {present} and {second}: delete the one that is not \
                 needed, or remove its tag or label `{OF_LABEL}`"
            ));
        }
    }

    /// Reports whether a writer holds a permit at this instant.
    #[must_use]
    pub fn permit_is_open(&self, now: Timestamp) -> bool {
        self.permit.as_ref().is_some_and(|permit| now < permit.until)
    }

    /// Returns the instant before which no observation may settle the transition in flight, if an
    /// opposite request delays it.
    #[must_use]
    pub fn not_before(&self) -> Option<Timestamp> {
        self.opposite.as_ref().map(|opposite| opposite.until)
    }

    /// Returns the request that a watch-out waits for: nothing is asked, and an opposite request
    /// may still act.
    #[must_use]
    pub fn watch_out(&self) -> Option<&Opposite> {
        self.opposite.as_ref().filter(|_| self.request.is_none())
    }

    /// Returns until when a resource already in its target state is watched because an opposite
    /// request may still act.
    #[must_use]
    pub fn watched_until(&self) -> Option<Timestamp> {
        let is_idle = self.observed.as_ref()?.busy.is_none();
        self.not_before().filter(|_| is_idle && self.is_seen_at_end())
    }

    /// Reports whether the latest observation shows the resource where the transition in flight leads.
    #[must_use]
    pub fn is_seen_at_end(&self) -> bool {
        let (Some(transition), Some(observed)) = (self.in_flight(), &self.observed) else {
            return false;
        };
        // A machine that is off may be on another plan than that of its stop.
        let plan = |size: &Option<SavedState>| Some(size.as_ref()?.machine()?.plan.clone());
        let plans = plan(&transition.target).zip(plan(&observed.size));
        observed.power == transition.direction.target_state()
            && plans.is_none_or(|(wanted, seen)| wanted == seen)
    }

    /// Reports whether a shrink may have run since `saved` was set. A size seen from then on may be our
    /// own doing and must not be taken for the original.
    #[must_use]
    pub fn may_be_smaller(&self) -> bool {
        let asked =
            self.request.as_ref().is_some_and(|request| request.is_shrink() && request.may_act());
        self.may_have_shrunk || asked
    }

    /// Returns the saved state of a database that runs as desired on a plan that does not compare
    /// with the saved one: no start puts that back.
    #[must_use]
    pub fn unlike_saved(&self) -> Option<&SavedState> {
        let runs = matches!(self.phase, Phase::Settled { at: Power::Running });
        let handled = self.handled.as_ref();
        let started = handled.is_some_and(|handled| handled.desired == Some(Desired::Running));
        let saved = self.saved.as_ref().filter(|_| runs && started);
        saved.filter(|_| self.kind() == ResourceKind::Database)
    }

    /// Releases what was held: it follows its schedule from now on.
    pub fn approve(&mut self, now: Timestamp) {
        self.held = false;
        self.lost_storage = None;
        self.joined_at = Some(now);
    }

    /// Forgets the saved state: it was restored, or cannot have been lost.
    pub fn clear_saved(&mut self) {
        self.saved = None;
        self.may_have_shrunk = false;
        self.small_plans.clear();
        self.small_runs = false;
    }

    /// Drops the latest request and what depends on it, but remembers that it may have shrunk the
    /// resource.
    pub fn drop_request(&mut self) {
        self.may_have_shrunk = self.may_be_smaller();
        self.request = None;
        self.opposite = None;
    }

    /// Reports whether its latest edge was handled under a later configuration than this one. A
    /// reader of this one leaves it alone.
    #[must_use]
    pub fn is_ahead_of(&self, generation: Generation) -> bool {
        let handled = self.handled.as_ref();
        handled.is_some_and(|handled| handled.generation > generation)
    }

    /// Returns until when its edges count as handled, if that is further ahead than clocks may differ:
    /// the clock of a function was wrong. Nothing is due before that.
    #[must_use]
    pub fn handled_ahead(&self, now: Timestamp) -> Option<Timestamp> {
        let handled = self.handled.as_ref()?.key.instant;
        (handled > now + CLOCKS_DIFFER).then_some(handled)
    }

    /// Reports whether Offhours holds it stopped, is stopping it, has not started it yet, owes it a
    /// size, or alone can recreate it.
    #[must_use]
    pub fn is_held_stopped(&self) -> bool {
        let stopping = self.under_way_towards(Direction::Stop).is_some();
        let owed = self.saved.is_some() || self.is_irreplaceable();
        owed || stopping || self.was_stopped()
    }

    /// Reports whether it has been off since a stop of ours: no start of ours was seen to succeed.
    #[must_use]
    pub fn was_stopped(&self) -> bool {
        let seen = self.observed.as_ref().map(|observed| observed.power);
        let stands = match &self.phase {
            // What was stopped, and is not known for a moment, has not been seen to run.
            Phase::Settled { at: Power::Between } => Some(Power::Stopped),
            Phase::Settled { at } => Some(*at),
            Phase::InFlight { transition } | Phase::Stuck { transition, .. }
                if transition.direction == Direction::Start =>
            {
                return seen != Some(Power::Running);
            }
            Phase::InFlight { .. } => return false,
            // The machine may have been switched off before the stop came to an end.
            Phase::Stuck { .. } | Phase::Refused { .. } | Phase::Gone { .. } => seen,
        };
        let desired = self.handled.as_ref().and_then(|handled| handled.desired);
        desired == Some(Desired::Stopped) && stands == Some(Power::Stopped)
    }

    /// Reports whether a start switched a running machine off for its own plan, and cannot have it:
    /// the machine runs as it did before, at once.
    #[must_use]
    pub fn is_denied_its_plan(&self) -> bool {
        let was_running = self.in_flight().is_some_and(|now| now.was_running);
        let request = self.request_towards(Direction::Start);
        let grown = request.filter(|request| request.step.moves());
        was_running
            && grown.is_some_and(|grow| {
                let answered = grow.problem.is_some() || grow.first_accepted_at.is_some();
                answered && matches!(grow.ask, Ask::Failed { .. })
            })
    }

    #[must_use]
    pub fn in_flight(&self) -> Option<&Transition> {
        match &self.phase {
            Phase::InFlight { transition } => Some(transition),
            Phase::Settled { .. }
            | Phase::Refused { .. }
            | Phase::Stuck { .. }
            | Phase::Gone { .. } => None,
        }
    }

    /// Stores an observation if it shows anything other than the previous one.
    pub fn observe(&mut self, observed: Observed) {
        let before = self.observed.as_ref();
        let at = before.map_or(observed.at, |before| before.at);
        if before != Some(&Observed { at, ..observed.clone() }) {
            self.observed = Some(observed);
        }
    }

    /// Returns the transition that is in flight or stuck.
    #[must_use]
    pub fn transition(&self) -> Option<&Transition> {
        match &self.phase {
            Phase::InFlight { transition } | Phase::Stuck { transition, .. } => Some(transition),
            Phase::Settled { .. } | Phase::Refused { .. } | Phase::Gone { .. } => None,
        }
    }

    /// Returns the transition in flight, if it goes in this direction.
    #[must_use]
    pub fn under_way_towards(&self, direction: Direction) -> Option<&Transition> {
        let transition = self.in_flight();
        transition.filter(|transition| transition.direction == direction)
    }

    /// Reports whether a step of the transition in flight was seen done and the next one is to be
    /// requested.
    #[must_use]
    pub fn wants_next_step(&self) -> bool {
        let request = self.request.as_ref().filter(|_| self.in_flight().is_some());
        request.is_some_and(|request| matches!(request.ask, Ask::Done { .. }))
    }

    /// Returns the latest request, if it goes in this direction.
    #[must_use]
    pub fn request_towards(&self, direction: Direction) -> Option<&Request> {
        let request = self.request.as_ref();
        request.filter(|request| request.direction == direction)
    }
}
