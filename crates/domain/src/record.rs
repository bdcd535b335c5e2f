//! What is kept of one resource between invocations.

use std::{collections::BTreeSet, fmt};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{
    configuration::Generation,
    hibernation::Hibernation,
    reason::Reason,
    reference::{ResourceId, ResourceKind, ResourceRef, ScheduleName},
    resource::{ActionId, Cluster, LostStorage, Power, Resource, SavedState},
    schedule::Desired,
    stop_method::StopMethod,
};

/// How long a provider's answer may support a write, from the instant at which it was requested.
pub const LOOK_AGE: SignedDuration = SignedDuration::from_secs(30);

/// How long after the write that permits it a request may leave.
pub const SEND_WINDOW: SignedDuration = SignedDuration::from_secs(30);

/// How long a permit stands: send window, request timeout, and the time in which a lost request
/// may still arrive.
pub const PERMIT: SignedDuration = SignedDuration::from_secs(120);

/// From "shutdown accepted" to the forced cut: the 60 s that a guest has, and 5 s for clocks that
/// differ.
pub const GRACE: SignedDuration = SignedDuration::from_secs(65);

/// By how much the clocks of two functions may differ.
pub const SKEW: SignedDuration = SignedDuration::from_secs(5);

/// How often each account's resources are listed; also the longest time for which a record can
/// stay out of the index by mistake.
pub const INVENTORY_INTERVAL: SignedDuration = SignedDuration::from_mins(5);

/// Nothing is stopped in an account whose resources were last listed longer ago than this.
pub const OBSERVATION_AGE: SignedDuration = SignedDuration::from_mins(15);

/// From a claim to the first observation of its effect.
pub const FIRST_LOOK: SignedDuration = SignedDuration::from_secs(5);

/// How long an accepted request may take to show its effect; later it never will.
#[must_use]
pub fn late(kind: ResourceKind) -> SignedDuration {
    match kind {
        ResourceKind::Droplet | ResourceKind::Server | ResourceKind::Machine => {
            SignedDuration::from_mins(10)
        }
        ResourceKind::NodePool => SignedDuration::from_mins(15),
        ResourceKind::Database => SignedDuration::from_mins(30),
    }
}

/// Raised by every write; every write names the one that it replaces.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Revision(pub u64);

/// One writer: one run of one function. It says whose a permit is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Writer(pub String);

impl Writer {
    /// What stands between the invocation and the run.
    const RUN: char = '#';

    /// A run of an invocation. AWS may deliver an invocation twice, and both runs may work at the
    /// same instant: only `run`, which no other has, tells them apart.
    #[must_use]
    pub fn of(invocation: &str, run: u64) -> Self {
        Self(format!("{invocation}{}{run:x}", Self::RUN))
    }

    /// The invocation: the same one twice is one command.
    #[must_use]
    pub fn invocation(&self) -> &str {
        let run = self.0.rsplit_once(Self::RUN);
        run.map_or(&self.0, |(invocation, _)| invocation)
    }
}

/// The record of one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and a field of the stored item"
)]
pub struct Record {
    /// Which resource: the record's key.
    pub reference: ResourceRef,
    /// The provider's id, as the reference has it: a machine that was hibernated has another one
    /// since.
    pub provider_id: String,
    /// Its name at the provider.
    pub name: String,
    /// For a node pool: the cluster around it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Cluster>,
    /// Tags, or labels as `key=value`, as the last inventory saw them.
    #[serde(default)]
    pub tags: BTreeSet<String>,
    /// Region or location.
    #[serde(default)]
    pub region: String,
    /// The plan's slug, as the last inventory saw it: a machine's, a database's, that of a pool's
    /// nodes. For people; what must be put back is in `saved`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Why Offhours never touches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<String>,
    /// The schedule that the last inventory found it to follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleName>,
    /// Whether the last inventory found it opted in. Acting judges a fresh observation.
    pub opted_in: bool,
    /// Since when Offhours may act by its schedule: when it joined, moved to another, or was
    /// approved; absent if it follows none. What was wanted before does not count as late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined_at: Option<Timestamp>,
    /// Whether the last inventory found it orphaned: reported once, when that begins.
    #[serde(default, skip_serializing_if = "is_false")]
    pub orphaned: bool,
    /// Joined with too many others at once, or lost storage: untouched until a person approves.
    #[serde(default, skip_serializing_if = "is_false")]
    pub held: bool,
    /// Storage that its latest start could not put back, for which it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_storage: Option<LostStorage>,
    /// Reached through another account as well: untouched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate_of: Option<ResourceRef>,
    /// What was seen last, written only when it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
    /// Where in its life the resource is.
    pub phase: Phase,
    /// The edge that was acted on, or acknowledged, last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handled: Option<Handled>,
    /// The latest command by a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manual_command: Option<ManualCommand>,
    /// Our latest request whose effect has not been seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
    /// The writer that is about to send; no other may claim, ask, settle or mark gone meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permit: Option<Permit>,
    /// An opposite request that may still act: no earlier observation settles the transition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opposite: Option<Opposite>,
    /// What must be put back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<SavedState>,
    /// Since `saved` was set, a shrink may have been accepted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub used: bool,
    /// The plans to which a machine may have been moved since `saved` was set: on none of them is
    /// it whole, whatever it has more of there.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub small_plans: BTreeSet<String>,
    /// On its small plan it counts as stopped, though it may run there: `rescaled_runs` at the time
    /// of the stop.
    #[serde(default, skip_serializing_if = "is_false")]
    pub small_runs: bool,
    /// What a machine that is hibernated, or was, is made again from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hibernation: Option<Box<Hibernation>>,
    /// How the latest edge that was acted on, or acknowledged, ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Last>,
    /// Found running at a begin edge; `retain_running` leaves it at the end edge.
    #[serde(default, skip_serializing_if = "is_false")]
    pub retained: bool,
    /// When an inventory listed it for the first time: nothing is known from before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_seen_at: Option<Timestamp>,
    /// First answered 404 to its Status operation at this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_since: Option<Timestamp>,
    /// When this record next needs a decision or an observation; absent: no such instant known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// After a failure before any claim: not tried again before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// The edge whose failures `retry_at` and `attempts` count: they delay no later one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<EdgeKey>,
    /// Failures in a row.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: u32,
    /// The latest failure, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<Reason>,
    /// Raised by every write.
    pub revision: Revision,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// A request of ours opposite to the transition under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opposite {
    /// Until when it may still act.
    pub until: Timestamp,
    /// For sized kinds: the size to which it may still lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_become: Option<SavedState>,
}

/// What an observation showed, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// Whether it ran.
    pub power: Power,
    /// Its size, for sized kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<SavedState>,
    /// Why it was busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<String>,
    /// When the observation that first showed this was requested.
    pub at: Timestamp,
}

/// Where in its life a resource is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "name")]
pub enum Phase {
    /// Nothing is under way.
    Settled {
        /// The state in which it was seen, or left.
        at: Power,
    },
    /// A stop or a start is under way.
    InFlight {
        /// Which, and since when.
        transition: Transition,
    },
    /// The provider refused, and no repetition can cure it.
    Refused {
        /// What was refused.
        transition: Transition,
        /// The provider's words.
        reason: String,
    },
    /// Accepted, and not seen by the deadline; or not to be forced.
    Stuck {
        /// What is stuck.
        transition: Transition,
        /// Since when.
        since: Timestamp,
        /// Why.
        reason: String,
    },
    /// The provider answers 404.
    Gone {
        /// Since when.
        since: Timestamp,
    },
}

/// A stop or a start under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// Stop or start.
    pub direction: Direction,
    /// When it was claimed; with the reference, its identity in history.
    pub claimed_at: Timestamp,
    /// What asked for it.
    pub cause: Cause,
    /// The schedule followed when it was claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleName>,
    /// How it stops, or puts back what a stop left: another configuration changes neither on the
    /// way. Absent in what older versions wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<StopMethod>,
    /// Whether the power was cut after a shutdown without effect, in a part that is done.
    #[serde(default, skip_serializing_if = "is_false")]
    pub forced: bool,
    /// For a stop that changes a machine's plan: what it leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<SavedState>,
}

/// How the latest edge that was acted on, or acknowledged, ended. Nothing is decided by it: it is
/// what a digest counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Last {
    /// Which edge was the handled one when it ended.
    pub key: EdgeKey,
    /// When it was claimed, or acknowledged.
    pub claimed_at: Timestamp,
    /// When the latest request was permitted; absent if none was needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Timestamp,
    /// How it ended.
    pub ending: Ending,
    /// By what method it was stopped, or had been; absent if nothing was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<StopMethod>,
}

/// How a transition, or an edge for one record, ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The end state was seen.
    Seen,
    /// Nothing had to be sent.
    AlreadyThere,
    /// Observe mode: it would have been asked for.
    WouldHave,
    /// The provider refused.
    Refused,
    /// Not seen by the deadline, or not to be forced.
    Stuck,
    /// A person did the opposite meanwhile.
    Overtaken,
    /// The resource opted out meanwhile.
    LetGo,
    /// A newer, opposite edge took over.
    Turned,
    /// A person's size was kept at the start; the saved one is in this entry alone.
    Kept,
    /// The resource is gone; its saved state is in this entry alone.
    Gone,
    /// A person had its record deleted; its saved state is in this entry alone.
    Forgotten,
}

impl Ending {
    /// The name that programs read.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Seen => "seen",
            Self::AlreadyThere => "already-there",
            Self::WouldHave => "would-have",
            Self::Refused => "refused",
            Self::Stuck => "stuck",
            Self::Overtaken => "overtaken",
            Self::LetGo => "let-go",
            Self::Turned => "turned",
            Self::Kept => "kept",
            Self::Gone => "gone",
            Self::Forgotten => "forgotten",
        }
    }
}

/// For people.
impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Overtaken => "overtaken by a person",
            Self::Kept => "kept as a person left it",
            Self::LetGo => "let go",
            Self::WouldHave => "would have",
            Self::AlreadyThere => "already there",
            Self::Seen
            | Self::Refused
            | Self::Stuck
            | Self::Turned
            | Self::Gone
            | Self::Forgotten => self.name(),
        })
    }
}

/// Towards which target state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Towards stopped.
    Stop,
    /// Towards running.
    Start,
}

impl Direction {
    /// The desired state that this direction fulfils.
    #[must_use]
    pub fn desired(self) -> Desired {
        match self {
            Self::Stop => Desired::Stopped,
            Self::Start => Desired::Running,
        }
    }

    /// The direction that fulfils a desired state.
    #[must_use]
    pub fn towards(desired: Desired) -> Self {
        match desired {
            Desired::Stopped => Self::Stop,
            Desired::Running => Self::Start,
        }
    }

    /// The target state of this direction.
    #[must_use]
    pub fn end(self) -> Power {
        match self {
            Self::Stop => Power::Stopped,
            Self::Start => Power::Running,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Stop => "stop",
            Self::Start => "start",
        })
    }
}

/// What asked for a transition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// An edge of the schedule.
    Schedule,
    /// An override was set.
    OverrideSet,
    /// An override ended.
    OverrideEnded,
    /// A person's command.
    Manual {
        /// Whose.
        by: String,
    },
}

impl Cause {
    /// The rank of an edge with this cause.
    #[must_use]
    pub fn rank(&self) -> Rank {
        match self {
            Self::Schedule => Rank::Schedule,
            Self::OverrideEnded => Rank::OverrideEnded,
            Self::OverrideSet => Rank::OverrideSet,
            Self::Manual { .. } => Rank::Manual,
        }
    }

    /// The name that programs read.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::OverrideSet => "override-set",
            Self::OverrideEnded => "override-ended",
            Self::Manual { .. } => "manual",
        }
    }

    /// Whose command it was.
    #[must_use]
    pub fn by(&self) -> Option<&str> {
        match self {
            Self::Manual { by } => Some(by),
            Self::Schedule | Self::OverrideSet | Self::OverrideEnded => None,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schedule => f.write_str("schedule"),
            Self::OverrideSet => f.write_str("override"),
            Self::OverrideEnded => f.write_str("end of override"),
            Self::Manual { by } => write!(f, "{by}"),
        }
    }
}

/// Breaks ties between edges at one instant; the later variant wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Rank {
    /// The schedule's own.
    Schedule,
    /// An override's end.
    OverrideEnded,
    /// An override's beginning.
    OverrideSet,
    /// A person's command.
    Manual,
}

/// What identifies an edge within a generation: its instant, and its rank among equals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EdgeKey {
    /// When.
    pub instant: Timestamp,
    /// Which one, of several at that instant.
    pub rank: Rank,
}

/// The edge that was acted on, or acknowledged, last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Handled {
    /// The configuration under which it was judged.
    pub generation: Generation,
    /// Which edge.
    pub key: EdgeKey,
    /// What it desired; none where nothing was done about it (observe mode), so that acting begins
    /// as soon as it is allowed. A person's command does not act later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<Desired>,
    /// The schedule followed then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleName>,
}

/// A person's stop or start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ManualCommand {
    /// When, at the earliest just after the handled edge.
    pub instant: Timestamp,
    /// What it asked for.
    pub desired: Desired,
    /// Who.
    pub by: String,
    /// The invocation: the same one twice is one command.
    pub request_id: String,
    /// The invocations of the commands before it, latest first, a few: none of them acts again when
    /// its event is redelivered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<String>,
    /// It begins a rehearsal: the machine is hibernated though none of its snapshots has proved
    /// itself.
    #[serde(default, skip_serializing_if = "is_false")]
    pub rehearsal: bool,
}

/// How many earlier commands are remembered.
const EARLIER: usize = 8;

impl ManualCommand {
    /// Whether an invocation gave this command, or one of those before it.
    #[must_use]
    pub fn knows(&self, request_id: &str) -> bool {
        self.request_id == request_id || self.earlier.iter().any(|id| id == request_id)
    }

    /// The invocations of this command and of those before it, as a newer one keeps them.
    #[must_use]
    pub fn invocations(&self) -> Vec<String> {
        let all = std::iter::once(&self.request_id).chain(&self.earlier);
        all.take(EARLIER).cloned().collect()
    }
}

/// One request of ours to a provider, as far as we know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Stop or start.
    pub direction: Direction,
    /// The instant of the write that permitted it, or later the hard cut after it.
    pub asked_at: Timestamp,
    /// When the observation on which it rests was requested.
    pub looked_at: Timestamp,
    /// What became of it.
    pub ask: Ask,
    /// An earlier ask of this transition never got its answer.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unknown: bool,
    /// The hard cut that follows a shutdown.
    #[serde(default)]
    pub forced: Forced,
    /// Which part of the transition it does.
    #[serde(default, skip_serializing_if = "is_whole")]
    pub part: Part,
    /// Whether the guest was asked first, so that a hard cut may follow.
    #[serde(default, skip_serializing_if = "is_false")]
    pub graceful: bool,
    /// The size asked for, where that is what it changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<SavedState>,
    /// How long it may take to show its effect, where its account says so; otherwise what
    /// [`late`] says of the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<SignedDuration>,
    /// When an ask of this transition was accepted first: one whose action ended in an error is
    /// asked again, and the deadline counts from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_accepted_at: Option<Timestamp>,
    /// The request in words, where its effect is seen by its not being needed any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// The machine that a cloud said it had begun to make.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<ResourceId>,
    /// What a person has to mend, while a start goes on being asked for: the provider's refusal, or
    /// an action that ends in an error each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Reason>,
}

impl Request {
    /// From acceptance to *stuck*: how long it may take to show its effect.
    #[must_use]
    pub fn deadline(&self, kind: ResourceKind) -> SignedDuration {
        self.late.unwrap_or_else(|| late(kind))
    }

    /// Until when an effect of this request, or of the hard cut after it, may still appear.
    #[must_use]
    pub fn quiet_at(&self, kind: ResourceKind) -> Timestamp {
        let from = match (&self.ask, self.forced) {
            // An unanswered earlier ask could arrive until its permit's end, and this one was
            // permitted only after that: its acceptance bounds both.
            (Ask::Accepted { at, .. }, Forced::No) => *at,
            (Ask::Accepted { .. }, Forced::Intended | Forced::Accepted)
            | (Ask::Open | Ask::Failed { .. } | Ask::Done { .. }, _) => self.asked_at + PERMIT,
        };
        from + self.deadline(kind) + SKEW
    }

    /// Whether the provider may have taken it: accepted, or never answered.
    #[must_use]
    pub fn may_act(&self) -> bool {
        self.unknown
            || self.forced != Forced::No
            || match self.ask {
                Ask::Open | Ask::Accepted { .. } => true,
                Ask::Failed { .. } | Ask::Done { .. } => false,
            }
    }

    /// Whether its effect makes a resource of this kind smaller.
    #[must_use]
    pub fn is_shrink(&self, kind: ResourceKind) -> bool {
        match self.part {
            Part::Whole => kind.is_sized() && self.direction == Direction::Stop,
            Part::Shrink => true,
            Part::Off
            | Part::Grow
            | Part::On
            | Part::OnSmall
            | Part::Keep
            | Part::Snapshot
            | Part::Protect
            | Part::Delete
            | Part::Create
            | Part::Attach
            | Part::Remove => false,
        }
    }

    /// Whether it belongs to hibernation, and what became of it is not known yet.
    #[must_use]
    pub fn is_unresolved(&self) -> bool {
        let known = matches!(self.ask, Ask::Failed { .. } | Ask::Done { .. });
        self.part.hibernates() && !known
    }

    /// The state towards which it moves the machine: a start that has to grow it switches it off
    /// first.
    #[must_use]
    pub fn towards(&self) -> Direction {
        match self.part {
            Part::Whole
            | Part::Shrink
            | Part::Grow
            | Part::Keep
            | Part::Snapshot
            | Part::Protect
            | Part::Delete
            | Part::Create
            | Part::Attach
            | Part::Remove => self.direction,
            Part::Off => Direction::Stop,
            Part::On | Part::OnSmall => Direction::Start,
        }
    }
}

/// Which part of a transition a request does. A method that changes a machine's plan needs
/// several, one after the other, each derived from what is seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// All of it.
    #[default]
    Whole,
    /// Switches the machine off, so that its plan can be changed.
    Off,
    /// Moves it to the small plan.
    Shrink,
    /// Moves it back to the saved plan.
    Grow,
    /// Switches it on.
    On,
    /// Switches it on on the small plan, the saved one not being to be had.
    OnSmall,
    /// Has a public address of the machine stay when it is deleted.
    Keep,
    /// Makes a snapshot of it.
    Snapshot,
    /// Protects the snapshot from deletion.
    Protect,
    /// Deletes the machine.
    Delete,
    /// Makes it again from the snapshot.
    Create,
    /// Gives one thing back to it that it had before.
    Attach,
    /// Deletes a snapshot that is not needed any more.
    Remove,
}

impl Part {
    /// Whether it belongs to hibernation alone. Such a request is resolved before any other leaves:
    /// its effect was seen, or it can have none any more.
    #[must_use]
    pub fn hibernates(self) -> bool {
        match self {
            Self::Keep
            | Self::Snapshot
            | Self::Protect
            | Self::Delete
            | Self::Create
            | Self::Attach
            | Self::Remove => true,
            Self::Whole | Self::Off | Self::Shrink | Self::Grow | Self::On | Self::OnSmall => false,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_whole(part: &Part) -> bool {
    *part == Part::Whole
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Ask {
    /// Permitted; the answer is not known.
    Open,
    /// The provider took it.
    Accepted {
        /// When its answer was recorded.
        at: Timestamp,
        /// The provider's action, where it names one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action: Option<ActionId>,
    },
    /// It was certainly not taken, or ended in an error.
    Failed {
        /// When to ask again.
        retry_at: Timestamp,
    },
    /// Its effect was seen, and the transition has another part to come.
    Done {
        /// When the look that showed it was requested.
        at: Timestamp,
    },
}

/// The hard cut that follows an accepted shutdown without effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Forced {
    /// Not needed so far.
    #[default]
    No,
    /// Permitted; the answer is not known.
    Intended,
    /// The provider took it.
    Accepted,
}

/// Permission to send one request, given by the write just before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permit {
    /// Until when.
    pub until: Timestamp,
    /// Whose.
    pub writer: Writer,
}

impl Record {
    /// The record of a resource that is seen for the first time.
    #[must_use]
    pub fn first_seen(reference: ResourceRef, resource: &Resource) -> Self {
        let mut record = Self {
            provider_id: resource.id.provider_id(),
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
            request: None,
            permit: None,
            opposite: None,
            saved: None,
            used: false,
            small_plans: BTreeSet::new(),
            small_runs: false,
            hibernation: None,
            last: None,
            retained: false,
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

    /// Takes over what an inventory says of names and tags.
    pub fn describe(&mut self, resource: &Resource) {
        self.name.clone_from(&resource.name);
        self.cluster.clone_from(&resource.cluster);
        self.tags.clone_from(&resource.tags);
        self.region.clone_from(&resource.region);
        let plan = Some(resource.size.plan()).filter(|plan| !plan.is_empty());
        self.plan = plan.map(str::to_owned);
        self.unsupported.clone_from(&resource.unsupported);
    }

    /// Whether nothing was ever done about the resource, as far as this record says, or it is gone.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        let acted = self.handled.is_some() || self.manual_command.is_some();
        let owes = self.saved.is_some() || self.request.is_some();
        matches!(self.phase, Phase::Gone { .. }) || !acted && !owes
    }

    /// The kind of resource.
    #[must_use]
    pub fn kind(&self) -> ResourceKind {
        self.reference.kind()
    }

    /// The resource as its provider knows it now; none for a machine that was deleted to be
    /// hibernated.
    #[must_use]
    pub fn present(&self) -> Option<&ResourceId> {
        match &self.hibernation {
            Some(hibernation) => hibernation.present.as_ref(),
            None => Some(&self.reference.id),
        }
    }

    /// Whether the machine alone does not show how it is: it is being hibernated or woken, may be
    /// asleep, or lacks something that it had.
    #[must_use]
    pub fn needs_sight(&self) -> bool {
        let kept = self.hibernation.as_ref();
        let needed = kept.is_some_and(|kept| kept.may_be_asleep() || kept.incomplete);
        needed || self.is_hibernating()
    }

    /// Whether the transition under way, or stuck, hibernates the machine or wakes it.
    #[must_use]
    pub fn is_hibernating(&self) -> bool {
        let transition = self.transition();
        transition.is_some_and(|now| now.method == Some(StopMethod::Hibernate))
    }

    /// Whether it was seen hibernated, and nothing is under way.
    #[must_use]
    pub fn is_asleep(&self) -> bool {
        self.in_flight().is_none() && self.present().is_none()
    }

    /// Whether a writer holds a permit at this instant.
    #[must_use]
    pub fn permit_is_open(&self, now: Timestamp) -> bool {
        self.permit
            .as_ref()
            .is_some_and(|permit| now < permit.until)
    }

    /// The earliest observation that may settle the transition under way, where an opposite request
    /// delays it.
    #[must_use]
    pub fn not_before(&self) -> Option<Timestamp> {
        self.opposite.as_ref().map(|opposite| opposite.until)
    }

    /// What a watch-out waits for: nothing is asked, and an opposite request may still act.
    #[must_use]
    pub fn watch_out(&self) -> Option<&Opposite> {
        self.opposite.as_ref().filter(|_| self.request.is_none())
    }

    /// Until when a resource already in its target state is watched, because an opposite request
    /// may still act.
    #[must_use]
    pub fn watched_until(&self) -> Option<Timestamp> {
        let end = self.in_flight()?.direction.end();
        let observed = self.observed.as_ref()?;
        self.not_before()
            .filter(|_| observed.power == end && observed.busy.is_none())
    }

    /// Whether a shrink may have been accepted since `saved` was set. What is seen from then on may
    /// be our own work, and must not pass for the original.
    #[must_use]
    pub fn may_have_shrunk(&self) -> bool {
        let asked = self
            .request
            .as_ref()
            .is_some_and(|request| request.is_shrink(self.kind()) && request.may_act());
        self.used || asked
    }

    /// Forgets what is saved: it was put back, or cannot have been taken away.
    pub fn clear_saved(&mut self) {
        self.saved = None;
        self.used = false;
        self.small_plans.clear();
        self.small_runs = false;
    }

    /// Drops the latest request and what rests on it, but remembers that it may have shrunk the
    /// resource.
    pub fn drop_request(&mut self) {
        self.used = self.may_have_shrunk();
        self.request = None;
        self.opposite = None;
    }

    /// Whether its latest edge was handled under a later configuration than this one. A reader of
    /// this one does nothing about it.
    #[must_use]
    pub fn is_ahead_of(&self, generation: Generation) -> bool {
        let handled = self.handled.as_ref();
        handled.is_some_and(|handled| handled.generation > generation)
    }

    /// The transition under way, if one is.
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

    /// Keeps an observation that shows anything other than the one before.
    pub fn observe(&mut self, observed: Observed) {
        let before = self.observed.as_ref();
        let at = before.map_or(observed.at, |before| before.at);
        if before
            != Some(&Observed {
                at,
                ..observed.clone()
            })
        {
            self.observed = Some(observed);
        }
    }

    /// The transition under way, or stuck.
    #[must_use]
    pub fn transition(&self) -> Option<&Transition> {
        match &self.phase {
            Phase::InFlight { transition } | Phase::Stuck { transition, .. } => Some(transition),
            Phase::Settled { .. } | Phase::Refused { .. } | Phase::Gone { .. } => None,
        }
    }

    /// The transition under way, if it goes in this direction.
    #[must_use]
    pub fn under_way_towards(&self, direction: Direction) -> Option<&Transition> {
        let transition = self.in_flight();
        transition.filter(|transition| transition.direction == direction)
    }

    /// Whether a part of the transition under way was seen done, and the next is to be asked for.
    #[must_use]
    pub fn wants_next_part(&self) -> bool {
        let request = self.request.as_ref().filter(|_| self.in_flight().is_some());
        request.is_some_and(|request| matches!(request.ask, Ask::Done { .. }))
    }

    /// The latest request, if it goes in this direction.
    #[must_use]
    pub fn request_towards(&self, direction: Direction) -> Option<&Request> {
        let request = self.request.as_ref();
        request.filter(|request| request.direction == direction)
    }
}
