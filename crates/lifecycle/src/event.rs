//! What an invocation did, for people, logs and programs.

use std::fmt;

use domain::{
    AccountName, ResourceRef, ScheduleName,
    reason::Reason,
    record::{Cause, Direction, Record},
    resource::{LostStorage, SavedState},
    stop_method::StopMethod,
};
use environment::Metric;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Something that happened to a resource, or to an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcome {
    /// When.
    pub at: Timestamp,
    /// Of what.
    #[serde(flatten)]
    pub subject: Subject,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// What an outcome is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Subject {
    /// A resource.
    Resource {
        /// Which.
        resource: ResourceRef,
        /// Its name at the provider.
        name: String,
        /// The schedule that it follows, or followed last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        follows: Option<ScheduleName>,
    },
    /// An account as a whole.
    Account {
        /// Which.
        account: AccountName,
    },
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum Event {
    /// A request left.
    Asked {
        /// Stop or start.
        direction: Direction,
        /// What wanted it.
        cause: Cause,
        /// The request.
        request: String,
        /// What the provider said at once.
        answer: Answer,
        /// What is stored to be put back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        saved: Option<SavedState>,
    },
    /// The hard cut after an unanswered shutdown left.
    Forced {
        /// The request.
        request: String,
        /// What the provider said at once.
        answer: Answer,
    },
    /// An edge was acknowledged: nothing had to be sent.
    AlreadyThere {
        /// Stop or start.
        direction: Direction,
        /// How so.
        reason: String,
    },
    /// Observe mode, or a rehearsal: this would have been sent.
    WouldAsk {
        /// Stop or start.
        direction: Direction,
        /// The request.
        request: String,
        /// What would be stored before, to be put back, or is stored and would be put back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        saved: Option<SavedState>,
    },
    /// The end state was seen.
    Seen {
        /// Stop or start.
        direction: Direction,
        /// What had wanted it, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
        /// From the claim on.
        seconds: i64,
        /// Whether the power had to be cut.
        forced: bool,
        /// How it was stopped, or what a start has undone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        method: Option<StopMethod>,
        /// What is stored to be put back, or was put back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        saved: Option<SavedState>,
        /// Storage that could not be put back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lost_storage: Option<LostStorage>,
    },
    /// The provider refused. A stop has ended by it; a start goes on being asked for, and needs a
    /// person.
    Refused {
        /// Stop or start.
        direction: Direction,
        /// What had wanted it, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
        /// In the provider's words.
        reason: Reason,
    },
    /// Not seen by the deadline, or not to be forced; or a start whose action ends in an error each
    /// time, which goes on being asked for.
    Stuck {
        /// Stop or start.
        direction: Direction,
        /// What had wanted it, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
        /// Why.
        reason: String,
    },
    /// A person did the opposite meanwhile.
    Overtaken {
        /// What had been under way.
        direction: Direction,
        /// What had wanted it, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
    },
    /// Opted out while under way, or no longer asked for: its schedule wants nothing now, or only
    /// observes.
    LetGo {
        /// What had been under way.
        direction: Direction,
        /// What had wanted it, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
    },
    /// Seen for the first time, or again, under a schedule.
    Joined {
        /// Which.
        schedule: ScheduleName,
        /// By which rule.
        via: String,
        /// Whether it is held until approved.
        held: bool,
    },
    /// Held stopped, or owed a size, while nothing covers it any more.
    Orphaned,
    /// Found under two schedules or through two accounts.
    Conflict {
        /// Which.
        reason: String,
    },
    /// Joined with too many others at once: untouched until a person approves.
    Held {
        /// How many of the account's resources are held now.
        count: usize,
        /// Which, the first of them where they are very many.
        resources: Vec<HeldResource>,
    },
    /// A tag names no schedule.
    UnknownSchedule {
        /// What the tag says.
        word: String,
    },
    /// The provider answers 404.
    Gone {
        /// What could not be put back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        saved: Option<SavedState>,
    },
    /// The larger of two sizes that do not compare is unknown; the other is here.
    Replaced {
        /// The size that is no longer kept.
        saved: SavedState,
    },
    /// Nothing was done this time; it is tried again.
    Postponed {
        /// Why.
        reason: Reason,
        /// Whether the provider refused the account's token, or a host shows another key than the
        /// pinned one.
        #[serde(default, skip_serializing_if = "is_false")]
        token_refused: bool,
        /// Whether the last try ended for the same reason.
        #[serde(default, skip_serializing_if = "is_false")]
        repeated: bool,
    },
    /// A command was recorded, and is carried out as soon as something else is over.
    Awaiting {
        /// Stop or start.
        direction: Direction,
        /// What is waited for.
        reason: String,
    },
    /// Seen where it should be, and watched: a request in the other direction may still act.
    Watching {
        /// Towards which end it is.
        direction: Direction,
        /// Until when.
        until: Timestamp,
    },
    /// A command was not followed.
    Declined {
        /// Why, and what to do instead.
        reason: String,
    },
    /// The state that its Status operation shows, or how an account was listed, for the person who
    /// asked.
    Status {
        /// In words.
        state: String,
    },
}

/// One of the resources that are held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldResource {
    /// Which.
    pub resource: ResourceRef,
    /// Its name at the provider.
    pub name: String,
    /// The schedule that it is to follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleName>,
}

impl HeldResource {
    pub(crate) fn of(record: &Record) -> Self {
        Self {
            resource: record.reference.clone(),
            name: record.name.clone(),
            schedule: record.schedule.clone(),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl Event {
    /// Nothing was done this time, for a new reason other than the token.
    #[must_use]
    pub fn postponed(reason: impl Into<Reason>) -> Self {
        Self::Postponed {
            reason: reason.into(),
            token_refused: false,
            repeated: false,
        }
    }
}

/// What a provider said at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Taken; that proves nothing yet.
    Accepted,
    /// Not now.
    Busy(String),
    /// Certainly not taken; asked again later.
    NotAccepted(String),
    /// Not taken, for the account's token was refused; asked again within a minute of a new one.
    TokenRefused(String),
    /// No usable answer: it may have been taken.
    Unknown(String),
}

impl Outcome {
    /// Something that happened to a resource.
    #[must_use]
    pub fn of(record: &Record, at: Timestamp, event: Event) -> Self {
        Self {
            at,
            subject: Subject::Resource {
                resource: record.reference.clone(),
                name: record.name.clone(),
                follows: follows(record),
            },
            event,
        }
    }

    /// The resource that it is about; none for an account.
    #[must_use]
    pub fn resource(&self) -> Option<ResourceRef> {
        match &self.subject {
            Subject::Resource { resource, .. } => Some(resource.clone()),
            Subject::Account { .. } => None,
        }
    }

    /// Something that happened to an account.
    #[must_use]
    pub fn of_account(account: &AccountName, at: Timestamp, event: Event) -> Self {
        Self {
            at,
            subject: Subject::Account {
                account: account.clone(),
            },
            event,
        }
    }
}

/// The schedule of the latest inventory, or that of the edge that was handled last: what is
/// orphaned follows none any more.
fn follows(record: &Record) -> Option<ScheduleName> {
    let handled = record.handled.as_ref();
    let last = || handled.and_then(|handled| handled.schedule.clone());
    record.schedule.clone().or_else(last)
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted => f.write_str("accepted"),
            Self::Busy(words) => write!(f, "busy, will retry: {words}"),
            Self::NotAccepted(words) | Self::TokenRefused(words) => {
                write!(f, "not accepted, will retry: {words}")
            }
            Self::Unknown(words) => write!(f, "no usable answer, outcome unknown: {words}"),
        }
    }
}

/// How much an event matters in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Repeats what was reported before.
    Repeated,
    /// As expected.
    Usual,
    /// Something to look at.
    Warning,
}

/// What an event means for a transition that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// It is under way, or will be.
    UnderWay,
    /// It has come to its end.
    Ended,
    /// It goes no further without a person.
    NeedsPerson,
    /// Nothing was done.
    NotDone,
    /// Nothing.
    Beside,
}

/// All that is decided by an event's kind alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// How much it matters in the log.
    pub severity: Severity,
    /// What it means for a transition that is waited for.
    pub course: Course,
    /// What it counts as.
    pub metrics: &'static [Metric],
    /// The detail type under which it is published to the bus; none for most, which are for the
    /// log.
    pub detail_type: Option<&'static str>,
}

impl Class {
    const fn of(severity: Severity, course: Course, metrics: &'static [Metric]) -> Self {
        Self {
            severity,
            course,
            metrics,
            detail_type: None,
        }
    }

    const fn published(self, detail_type: &'static str) -> Self {
        Self {
            detail_type: Some(detail_type),
            ..self
        }
    }
}

impl Event {
    /// The one table of events.
    #[must_use]
    pub fn class(&self) -> Class {
        use Course::{Beside, Ended, NeedsPerson, UnderWay};
        use Severity::{Usual, Warning};
        const FINISHED: &str = "Transition Finished";
        let class = Class::of;
        match self {
            Self::Asked { answer, .. } => answer.class(),
            Self::Forced { answer, .. } if *answer == Answer::Accepted => {
                class(Usual, Beside, &[]).published("Transition Forced")
            }
            Self::Seen { .. } => class(Usual, Ended, &[Metric::Seen]).published(FINISHED),
            Self::Overtaken { .. } | Self::LetGo { .. } | Self::Gone { saved: None } => {
                class(Usual, Ended, &[]).published(FINISHED)
            }
            Self::Gone { saved: Some(_) } => class(Warning, Ended, &[]).published(FINISHED),
            Self::Refused { .. } => {
                class(Warning, NeedsPerson, &[Metric::Refused]).published("Transition Refused")
            }
            Self::Stuck { .. } => {
                class(Warning, NeedsPerson, &[Metric::Stuck]).published("Transition Stuck")
            }
            Self::Held { .. } => {
                class(Warning, NeedsPerson, &[Metric::Held]).published("Resources Held")
            }
            Self::Orphaned => {
                class(Warning, Beside, &[Metric::Orphaned]).published("Resource Orphaned")
            }
            Self::Conflict { .. } => {
                class(Warning, Beside, &[Metric::Conflicts]).published("Resource In Conflict")
            }
            Self::Postponed {
                token_refused,
                repeated,
                ..
            } => postponed(*token_refused, *repeated),
            Self::UnknownSchedule { .. } | Self::Replaced { .. } => class(Warning, Beside, &[]),
            Self::Awaiting { .. } => class(Usual, UnderWay, &[]),
            Self::Watching { .. } => class(Usual, Ended, &[]),
            Self::Declined { .. } => class(Usual, Course::NotDone, &[]),
            Self::Forced { .. }
            | Self::AlreadyThere { .. }
            | Self::WouldAsk { .. }
            | Self::Joined { .. }
            | Self::Status { .. } => class(Usual, Beside, &[]),
        }
    }
}

impl Answer {
    fn class(&self) -> Class {
        let (severity, metrics): (_, &[_]) = match self {
            Self::Accepted => (Severity::Usual, &[Metric::Asked]),
            Self::Busy(_) | Self::NotAccepted(_) | Self::Unknown(_) => {
                (Severity::Warning, &[Metric::Asked, Metric::Failed])
            }
            Self::TokenRefused(_) => {
                let metrics = &[Metric::Asked, Metric::Failed, Metric::TokensRefused];
                (Severity::Warning, metrics)
            }
        };
        Class::of(severity, Course::UnderWay, metrics)
    }
}

fn postponed(token_refused: bool, repeated: bool) -> Class {
    let severity = if repeated {
        Severity::Repeated
    } else {
        Severity::Warning
    };
    let metrics: &[_] = if token_refused {
        &[Metric::Failed, Metric::TokensRefused]
    } else {
        &[Metric::Failed]
    };
    Class::of(severity, Course::NotDone, metrics)
}

/// One line for people.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked { .. } => f.write_str(&asked(self)),
            Self::WouldAsk {
                direction,
                request,
                saved,
            } => f.write_str(&would(*direction, request, saved.as_ref())),
            Self::Forced { request, answer } => write!(
                f,
                "did not react within 60 s, power cut: {request}; {answer}"
            ),
            Self::AlreadyThere { direction, reason } => {
                write!(f, "{direction}: nothing sent, {reason}")
            }
            Self::Seen { .. } => seen(f, self),
            Self::Refused {
                direction, reason, ..
            } => write!(f, "{direction} refused: {reason}"),
            Self::Stuck {
                direction, reason, ..
            } => write!(f, "{direction} is stuck: {reason}"),
            Self::Overtaken { direction, .. } => {
                write!(f, "{direction} overtaken: a person did the opposite")
            }
            Self::LetGo { direction, .. } => {
                write!(f, "{direction} given up: it is no longer asked for")
            }
            Self::Joined {
                schedule,
                via,
                held,
            } => {
                let held = if *held { HELD } else { "" };
                write!(f, "follows {schedule} (by {via}){held}")
            }
            Self::Orphaned => f.write_str(ORPHANED),
            Self::Conflict { reason } | Self::Awaiting { reason, .. } => f.write_str(reason),
            Self::Held { count, resources } => held(f, *count, resources),
            Self::UnknownSchedule { word } => {
                write!(
                    f,
                    "its tag names the schedule `{word}`, which does not exist"
                )
            }
            Self::Gone { saved } => f.write_str(&gone(saved.as_ref())),
            Self::Replaced { saved } => {
                write!(
                    f,
                    "resized by a person; {saved} is no longer kept, see history"
                )
            }
            Self::Postponed { reason, .. } => write!(f, "postponed: {reason}"),
            Self::Watching { direction, until } => f.write_str(&watching(*direction, *until)),
            Self::Declined { reason } => write!(f, "declined: {reason}"),
            Self::Status { state } => f.write_str(state),
        }
    }
}

fn gone(saved: Option<&SavedState>) -> String {
    let owed = saved.map_or_else(String::new, |saved| format!("; it was owed {saved}"));
    format!("gone at the provider{owed}")
}

const HELD: &str = ", held until `offhours approve`";

const ORPHANED: &str = "orphaned: stopped, and no schedule covers it; `offhours start` restores it";

fn would(direction: Direction, request: &str, saved: Option<&SavedState>) -> String {
    let saved = saved.filter(|_| direction == Direction::Stop);
    let saving = saved.map(|saved| format!(", saving {saved}"));
    format!("would {direction}: {request}{}", saving.unwrap_or_default())
}

fn asked(event: &Event) -> String {
    let Event::Asked {
        direction,
        cause,
        request,
        answer,
        saved,
    } = event
    else {
        return String::new();
    };
    let saved = saved.as_ref().filter(|_| *direction == Direction::Stop);
    let saved = saved.map(|saved| format!(", saved {saved}"));
    let answer = (*answer != Answer::Accepted).then(|| format!("; {answer}"));
    let (saved, answer) = (saved.unwrap_or_default(), answer.unwrap_or_default());
    format!("{direction} asked ({cause}): {request}{saved}{answer}")
}

/// That a resource is where it should be, and why it is watched all the same.
#[must_use]
pub fn watching(direction: Direction, until: Timestamp) -> String {
    let (state, opposite) = match direction {
        Direction::Stop => ("stopped", "start"),
        Direction::Start => ("running", "stop"),
    };
    let until = until.strftime("%H:%M");
    format!("{state}; watched until {until} UTC, for an earlier {opposite} may still act")
}

fn seen(f: &mut fmt::Formatter<'_>, event: &Event) -> fmt::Result {
    let Event::Seen {
        direction,
        seconds,
        forced,
        method,
        saved,
        lost_storage,
        ..
    } = event
    else {
        return Ok(());
    };
    let (done, kept) = match direction {
        Direction::Stop => ("stopped", "keeping"),
        Direction::Start => ("running", "restored"),
    };
    write!(f, "{done}, seen after {seconds} s")?;
    if *forced {
        f.write_str(" (forced)")?;
    }
    if let (Direction::Stop, Some(method)) = (direction, method.filter(|one| one.is_chosen())) {
        write!(f, ", by {method}")?;
    }
    if let Some(saved) = saved {
        write!(f, ", {kept} {saved}")?;
    }
    match lost_storage {
        Some(lost) => write!(f, ", but with {lost}: held until `offhours approve`"),
        None => Ok(()),
    }
}

/// How many held resources a line names.
const NAMED: usize = 5;

fn held(f: &mut fmt::Formatter<'_>, count: usize, resources: &[HeldResource]) -> fmt::Result {
    let (noun, verb) = if count == 1 {
        ("resource", "is")
    } else {
        ("resources", "are")
    };
    let names: Vec<_> = resources
        .iter()
        .take(NAMED)
        .map(|r| r.name.as_str())
        .collect();
    write!(
        f,
        "{count} {noun} {verb} held until `offhours approve`: {}",
        names.join(", ")
    )?;
    match count.saturating_sub(names.len()) {
        0 => Ok(()),
        more => write!(f, " and {more} more"),
    }
}
