//! The steps of a transition: one request each, in the one form in which it is planned, stored and
//! sent. What a cloud is sent for it is its client's to say.

use std::{fmt, mem};

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::{
    edge::Direction,
    hibernation::{Attachment, Label, Manifest},
    resource::{ActionEffect, ActionId, MachineSize, SavedState, Size},
    timing::LOOK_AGE,
};

/// One request of a transition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Switches a machine off.
    Off {
        /// Whether its guest is asked to shut down, which it may ignore; otherwise its power is cut,
        /// like pulling the plug.
        gracefully: bool,
    },
    /// Switches a machine on.
    On {
        /// Whether it stays on its small plan, because its own is not available.
        small: bool,
    },
    /// Gives a resource another size. A machine's disk stays as it is: one that has grown no longer
    /// fits a smaller plan.
    Resize(SavedState),
    /// Keeps a public address, by its id at the cloud, from being deleted with the machine.
    KeepAddress(String),
    /// Takes a snapshot of the machine.
    Snapshot(Label),
    /// Turns a snapshot's protection from deletion on, or off before it is removed.
    Protect {
        /// The snapshot.
        snapshot: u64,
        /// Whether to protect it.
        on: bool,
    },
    /// Deletes the machine.
    Delete,
    /// Recreates the machine from a snapshot, powered off where its cloud supports that.
    Create {
        /// The label to give it.
        label: Label,
        /// The snapshot.
        snapshot: u64,
        /// The machine to create.
        manifest: Box<Manifest>,
    },
    /// Reattaches one thing that the machine had before.
    Attach(Attachment),
    /// Deletes a snapshot that is no longer needed.
    RemoveSnapshot(u64),
}

/// What is known of a step, whatever it is about.
#[derive(Debug, Clone, Copy)]
pub struct StepFacts {
    /// How it shows in the machine's action log; empty if only what it makes tells its outcome.
    pub logged_as: &'static [ActionEffect],
    /// Whether it is resolved before any other request leaves: its effect was seen, or can no longer
    /// occur.
    pub exclusive: bool,
    /// The direction in which it moves a machine, if that is not its transition's: a start that has
    /// to grow a machine switches it off first.
    pub towards: Option<Direction>,
    /// Whether it may show as a change of power against its transition, so that a person's opposite
    /// action counts only from when it was seen done.
    pub may_oppose: bool,
    /// Whether its refusal is reported at once: what a machine is not given back is reported when
    /// the machine runs.
    pub reports_refusal: bool,
    /// How old the observation may be that it rests on, and how long after its permit it may leave.
    pub fresh_for: SignedDuration,
}

/// How old the observation that a deletion rests on may be.
const DELETION_AGE: SignedDuration = SignedDuration::from_secs(10);

/// Disks beyond this, in GiB, take no longer to move: what takes 12 hours has failed.
const LARGEST_DISK_TO_MOVE: u64 = 690;

/// Disks beyond this, in GB, take no longer to copy: what takes 12 hours has failed.
const LARGEST_DISK_TO_COPY: u64 = 172;

/// How long a snapshot that was complete may stay unlisted.
pub const UNLISTED: SignedDuration = SignedDuration::from_mins(45);

impl Step {
    /// The hard cut that follows a shutdown without effect.
    pub const CUT: Self = Self::Off { gracefully: false };

    /// Returns what the planner has to know of it.
    #[must_use]
    pub fn facts(&self) -> StepFacts {
        let alone = StepFacts {
            logged_as: &[],
            exclusive: true,
            towards: None,
            may_oppose: false,
            reports_refusal: true,
            fresh_for: LOOK_AGE,
        };
        let shared = StepFacts { exclusive: false, may_oppose: true, ..alone };
        match self {
            Self::Off { .. } => StepFacts {
                logged_as: &[ActionEffect::Shutdown, ActionEffect::PowerOff],
                towards: Some(Direction::Stop),
                may_oppose: false,
                ..shared
            },
            Self::On { .. } => StepFacts {
                logged_as: &[ActionEffect::Start],
                towards: Some(Direction::Start),
                ..shared
            },
            Self::Resize(_) => StepFacts { logged_as: &[ActionEffect::Resize], ..shared },
            Self::Delete => StepFacts { may_oppose: true, fresh_for: DELETION_AGE, ..alone },
            Self::Create { .. } => StepFacts { may_oppose: true, ..alone },
            Self::Attach(_) => StepFacts { reports_refusal: false, ..alone },
            Self::KeepAddress(_)
            | Self::Snapshot(_)
            | Self::Protect { .. }
            | Self::RemoveSnapshot(_) => alone,
        }
    }

    /// Reports whether it asks for the same thing as an earlier one, which it repeats: perhaps about
    /// another snapshot or attachment, or with another mark.
    #[must_use]
    pub fn repeats(&self, before: &Self) -> bool {
        match (self, before) {
            (Self::On { small }, Self::On { small: before }) => small == before,
            (_, _) if self.removes() || before.removes() => self.removes() && before.removes(),
            (_, _) => mem::discriminant(self) == mem::discriminant(before),
        }
    }

    /// Reports whether it is one of the two requests that remove a snapshot.
    #[must_use]
    pub fn removes(&self) -> bool {
        matches!(self, Self::Protect { on: false, .. } | Self::RemoveSnapshot(_))
    }

    /// Reports whether it moves a machine to another plan.
    #[must_use]
    pub fn moves(&self) -> bool {
        matches!(self, Self::Resize(SavedState::Machine(_)))
    }

    /// The size that it leads to, if it changes the size.
    #[must_use]
    pub fn target(&self) -> Option<&SavedState> {
        if let Self::Resize(to) = self { Some(to) } else { None }
    }

    /// Returns how long it may take to show its effect on a machine; `None` if that is as long as
    /// anything of its kind takes. No cloud promises a time. A change of plan takes a minute per GB
    /// of disk, because the machine may move to another host (DODROPLETS); the others are long
    /// enough for what was reported of either cloud.
    #[must_use]
    pub fn effect_timeout(&self, size: &Size) -> Option<SignedDuration> {
        let Size::Machine(MachineSize { disk_gib, .. }) = *size else {
            return None;
        };
        let minutes = |most: u64| i64::try_from(disk_gib.min(most)).unwrap_or_default();
        Some(match self {
            Self::Off { .. } | Self::On { .. } => return None,
            Self::Resize(_) => SignedDuration::from_mins(30 + minutes(LARGEST_DISK_TO_MOVE)),
            Self::Snapshot(_) => {
                let copied = SignedDuration::from_mins(30 + 4 * minutes(LARGEST_DISK_TO_COPY));
                copied.max(UNLISTED)
            }
            Self::Create { .. } | Self::Delete => SignedDuration::from_mins(15),
            Self::KeepAddress(_)
            | Self::Protect { .. }
            | Self::Attach(_)
            | Self::RemoveSnapshot(_) => SignedDuration::from_mins(5),
        })
    }
}

/// What it does, for people: "switch it off".
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Off { .. } => "switch it off",
            Self::On { small: false } => "switch it on",
            Self::On { small: true } => "switch it on with its small plan",
            Self::Resize(_) => "change its size",
            Self::KeepAddress(_) => "keep its public address",
            Self::Snapshot(_) => "take its snapshot",
            Self::Protect { on: true, .. } => "protect its snapshot",
            Self::Delete => "delete it",
            Self::Create { .. } => "recreate it",
            Self::Attach(_) => "reattach what it had",
            Self::Protect { on: false, .. } | Self::RemoveSnapshot(_) => "remove an old snapshot",
        })
    }
}

/// A provider's confirmation that it accepted a step: no proof of any effect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accepted {
    /// The provider's id for the action that it began, if it gives one (Droplets and servers).
    pub action: Option<ActionId>,
    /// The provider's id for the machine or snapshot that it began to create, if any.
    pub made: Option<u64>,
}

impl Accepted {
    /// Names the action that the provider began.
    #[must_use]
    pub fn action(id: u64) -> Self {
        Self { action: Some(ActionId(id)), made: None }
    }
}
