//! What an invocation did, for people, logs and programs.

use std::fmt;

use domain::{
    AccountName, ResourceRef, ScheduleName,
    configuration::Generation,
    event_type::EventType,
    metric::Metric,
    reason::Reason,
    record::{Cause, Direction, Record},
    resource::{LostStorage, SavedState},
    stop_method::StopMethod,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// An event of a resource or of an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Occurrence {
    /// When it happened.
    pub at: Timestamp,
    /// The resource or account that it is about.
    #[serde(flatten)]
    pub subject: Subject,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// The resource or account that it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Subject {
    /// A resource.
    Resource {
        /// The resource's reference, `ACCOUNT/KIND/ID`.
        resource: ResourceRef,
        /// The resource's name at the provider.
        name: String,
        /// The schedule that the resource follows, or followed last; absent if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        follows: Option<ScheduleName>,
    },
    /// An account as a whole.
    Account {
        /// The account's name.
        account: AccountName,
    },
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum Event {
    /// A request was sent.
    Asked {
        /// Stop or start.
        direction: Direction,
        /// What asked for the transition.
        cause: Cause,
        /// The request that was sent.
        request: String,
        /// The provider's immediate response.
        answer: Answer,
        /// The state that is stored to be restored; absent if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        saved: Option<SavedState>,
    },
    /// The power cut that follows an unanswered shutdown was sent.
    Forced {
        /// The request that was sent.
        request: String,
        /// The provider's immediate response.
        answer: Answer,
    },
    /// An edge was acknowledged: nothing had to be sent.
    AlreadyThere {
        /// Stop or start.
        direction: Direction,
        /// Why nothing had to be sent.
        reason: String,
    },
    /// A request would have been sent if not for observe mode or a dry run.
    WouldAsk {
        /// Stop or start.
        direction: Direction,
        /// The request that would have been sent.
        request: String,
        /// The state that would be stored first, or that is stored and would be restored; absent if
        /// there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        saved: Option<SavedState>,
    },
    /// The target state was seen.
    Seen {
        /// Stop or start.
        direction: Direction,
        /// What asked for the transition; absent if that is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
        /// Time from the claim until it was seen, in seconds.
        seconds: i64,
        /// Whether the power had to be cut.
        forced: bool,
        /// How the resource was stopped, or which stop a start has undone; absent if that is
        /// unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        method: Option<StopMethod>,
        /// The state that is stored to be restored, or that was restored; absent if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        saved: Option<SavedState>,
        /// Storage that could not be restored; absent if none was lost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lost_storage: Option<LostStorage>,
    },
    /// The stop or start was refused. A refused stop has ended; a refused start keeps being
    /// retried, and needs a person.
    Refused {
        /// Stop or start.
        direction: Direction,
        /// What asked for the transition; absent if that is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
        /// Why it was refused, in the provider's words if the provider refused it.
        reason: Reason,
    },
    /// The target state was not seen by the deadline, or the power may not be cut; or the action of
    /// a start ends in an error every time, and the start keeps being retried.
    Stuck {
        /// Stop or start.
        direction: Direction,
        /// What asked for the transition; absent if that is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
        /// Why it is stuck.
        reason: String,
    },
    /// A person did the opposite in the meantime.
    Overtaken {
        /// Stop or start: the transition that was in flight.
        direction: Direction,
        /// What asked for the transition; absent if that is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
    },
    /// The transition was released: the resource opted out in the meantime, or nothing asks for it
    /// any more, because its schedule has no desired state now or only observes.
    LetGo {
        /// Stop or start: the transition that was in flight.
        direction: Direction,
        /// What asked for the transition; absent if that is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
    },
    /// The resource was seen under a schedule, for the first time or again.
    Joined {
        /// The schedule that the resource joined.
        schedule: ScheduleName,
        /// The rule by which the resource follows it.
        via: String,
        /// Whether the resource is held until it is approved.
        held: bool,
    },
    /// Offhours holds the resource stopped, or owes it a size, but nothing covers it any more.
    Orphaned {
        /// What has to end before a person can start it with Offhours, in words, if anything.
        #[serde(skip_serializing_if = "Option::is_none")]
        barrier: Option<String>,
    },
    /// The resource was found under two schedules, through two accounts or in two records; or two
    /// machines were made of it, its record is older than what its cloud shows, or it was recreated
    /// without something that its cloud did not give back.
    Conflict {
        /// The conflict, in words.
        reason: String,
    },
    /// Too many resources joined at once: they stay untouched until a person approves them.
    Held {
        /// How many of the account's resources are held now.
        count: usize,
        /// The resources that are held; only the first of them if there are very many.
        resources: Vec<HeldResource>,
    },
    /// A person approved a resource that was held.
    Approved,
    /// Another configuration is in force than the one that was applied last.
    ConfigurationOverruled {
        /// The generation in force.
        in_force: Generation,
        /// The generation that was applied last.
        applied: Generation,
        /// Who applied that.
        by: String,
    },
    /// A tag names a schedule that does not exist.
    UnknownSchedule {
        /// The name in the tag.
        word: String,
    },
    /// The tag `offhours-until` has a value that is not a time.
    InvalidUntil {
        /// What the value is, and what to write instead.
        reason: String,
    },
    /// The resource is gone: the provider returns 404.
    Gone {
        /// The state that could not be restored; absent if there was none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        saved: Option<SavedState>,
    },
    /// A person gave the resource a plan that does not compare with the saved one: a person has to
    /// choose, and until then the saved size is kept.
    UnlikePlans {
        /// The saved state.
        saved: SavedState,
        /// The state that a person left.
        seen: SavedState,
    },
    /// Nothing was done this time; it is tried again.
    Postponed {
        /// Why nothing was done.
        reason: Reason,
        /// Whether the provider refused the account's token, or a host presented a key other than
        /// the pinned one.
        #[serde(default, skip_serializing_if = "is_false")]
        token_refused: bool,
        /// Whether the previous attempt ended for the same reason.
        #[serde(default, skip_serializing_if = "is_false")]
        repeated: bool,
    },
    /// It was stopped or started before what goes first in the order of groups.
    OrderNotKept {
        /// Stop or start.
        direction: Direction,
        /// What was to go first, and how far that is.
        reason: String,
        /// Whether a command asked for it, which waits for nothing.
        #[serde(default, skip_serializing_if = "is_false")]
        commanded: bool,
    },
    /// A command was recorded, and is carried out as soon as something else is over.
    Awaiting {
        /// Stop or start.
        direction: Direction,
        /// What the command waits for.
        reason: String,
    },
    /// The resource is in its target state, but still watched: a request in the opposite direction
    /// may still act.
    Watching {
        /// Stop or start: the direction whose target state it is in.
        direction: Direction,
        /// Until when the resource is watched.
        until: Timestamp,
    },
    /// A command was declined.
    Declined {
        /// Why it was declined, and what to do instead.
        reason: String,
    },
    /// The state according to the resource's Status operation, or the result of listing an account,
    /// for the person who asked.
    Status {
        /// The state or result, in words.
        state: String,
    },
}

/// A resource that is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldResource {
    /// The resource's reference, `ACCOUNT/KIND/ID`.
    pub resource: ResourceRef,
    /// The resource's name at the provider.
    pub name: String,
    /// The schedule that the resource is to follow; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleName>,
}

impl HeldResource {
    /// Names the resource of a record.
    #[must_use]
    pub fn of(record: &Record) -> Self {
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
    /// Builds a [`Self::Postponed`] for a new reason other than the token.
    #[must_use]
    pub fn postponed(reason: impl Into<Reason>) -> Self {
        Self::Postponed { reason: reason.into(), token_refused: false, repeated: false }
    }
}

/// A provider's immediate response to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Accepted, which proves nothing yet.
    Accepted,
    /// Not accepted now, because the resource is busy; retried later.
    Busy(String),
    /// Certainly not accepted; retried later.
    NotAccepted(String),
    /// Not accepted, because the account's token is invalid or lacks a permission; retried.
    TokenRefused(String),
    /// No usable response: the request may have been accepted.
    Unknown(String),
}

impl Occurrence {
    /// Creates an occurrence that is about a resource.
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

    /// Returns the resource that it is about; `None` for an account.
    #[must_use]
    pub fn resource(&self) -> Option<ResourceRef> {
        match &self.subject {
            Subject::Resource { resource, .. } => Some(resource.clone()),
            Subject::Account { .. } => None,
        }
    }

    #[must_use]
    pub fn of_account(account: &AccountName, at: Timestamp, event: Event) -> Self {
        Self { at, subject: Subject::Account { account: account.clone() }, event }
    }
}

/// Returns the schedule of the latest inventory, or else that of the last handled edge: an orphaned
/// resource follows none any more.
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
    Usual,
    /// Needs attention.
    Warning,
}

/// What an event means for a transition that a caller waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    UnderWay,
    Ended,
    /// It cannot go on without a person.
    NeedsPerson,
    /// Nothing was done.
    NotDone,
    /// Nothing.
    Unrelated,
}

/// Everything that an event's kind alone decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// How much it matters in the log.
    pub severity: Severity,
    /// What it means for a transition that a caller waits for.
    pub course: Course,
    /// The metrics that it counts toward.
    pub metrics: &'static [Metric],
    /// The type of event as which it is published; `None` for most, which are only logged.
    pub published_as: Option<EventType>,
}

impl Class {
    const fn of(severity: Severity, course: Course, metrics: &'static [Metric]) -> Self {
        Self { severity, course, metrics, published_as: None }
    }

    const fn published(self, event_type: EventType) -> Self {
        Self { published_as: Some(event_type), ..self }
    }
}

impl Event {
    /// Returns the event's class: the one table of events.
    #[must_use]
    pub fn class(&self) -> Class {
        use Course::{Ended, NeedsPerson, UnderWay, Unrelated};
        use Severity::{Usual, Warning};
        const FINISHED: EventType = EventType::TransitionFinished;
        let class = Class::of;
        match self {
            Self::Asked { answer, .. } => answer.class(),
            Self::Forced { answer, .. } if *answer == Answer::Accepted => {
                class(Usual, Unrelated, &[]).published(EventType::TransitionForced)
            }
            Self::Seen { .. } => class(Usual, Ended, &[Metric::Seen]).published(FINISHED),
            Self::Overtaken { .. } | Self::LetGo { .. } | Self::Gone { saved: None } => {
                class(Usual, Ended, &[]).published(FINISHED)
            }
            Self::Gone { saved: Some(_) } => class(Warning, Ended, &[]).published(FINISHED),
            Self::Refused { .. } => class(Warning, NeedsPerson, &[Metric::Refused])
                .published(EventType::TransitionRefused),
            Self::Stuck { .. } => {
                class(Warning, NeedsPerson, &[Metric::Stuck]).published(EventType::TransitionStuck)
            }
            Self::Held { .. } => {
                class(Warning, NeedsPerson, &[Metric::Held]).published(EventType::ResourcesHeld)
            }
            Self::Orphaned { .. } => class(Warning, Unrelated, &[Metric::Orphaned])
                .published(EventType::ResourceOrphaned),
            Self::Conflict { .. } => class(Warning, Unrelated, &[Metric::Conflicts])
                .published(EventType::ResourceInConflict),
            Self::Postponed { token_refused, repeated, .. } => postponed(*token_refused, *repeated),
            // The answer to a command says it to the person who gave it.
            Self::OrderNotKept { commanded: true, .. } => class(Warning, Unrelated, &[]),
            Self::OrderNotKept { commanded: false, .. } => {
                class(Warning, Unrelated, &[]).published(EventType::OrderNotKept)
            }
            Self::ConfigurationOverruled { .. } => class(Warning, Unrelated, &[Metric::Failed]),
            Self::UnknownSchedule { .. } | Self::InvalidUntil { .. } | Self::UnlikePlans { .. } => {
                class(Warning, Unrelated, &[])
            }
            Self::Awaiting { .. } => class(Usual, UnderWay, &[]),
            Self::Watching { .. } => class(Usual, Ended, &[]),
            Self::Declined { .. } => class(Usual, Course::NotDone, &[]),
            Self::Forced { .. }
            | Self::AlreadyThere { .. }
            | Self::WouldAsk { .. }
            | Self::Joined { .. }
            | Self::Approved
            | Self::Status { .. } => class(Usual, Unrelated, &[]),
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
                return Class::of(Severity::Warning, Course::NeedsPerson, metrics);
            }
        };
        Class::of(severity, Course::UnderWay, metrics)
    }
}

fn postponed(token_refused: bool, repeated: bool) -> Class {
    let severity = if repeated { Severity::Repeated } else { Severity::Warning };
    let metrics: &[_] =
        if token_refused { &[Metric::Failed, Metric::TokensRefused] } else { &[Metric::Failed] };
    Class::of(severity, Course::NotDone, metrics)
}

/// One line for people.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked { .. } => f.write_str(&asked(self)),
            Self::WouldAsk { direction, request, saved } => {
                f.write_str(&would(*direction, request, saved.as_ref()))
            }
            Self::Forced { request, answer } => {
                write!(f, "did not react within 60 s, power cut: {request}; {answer}")
            }
            Self::AlreadyThere { direction, reason } => {
                write!(f, "{direction}: nothing sent, {reason}")
            }
            Self::Seen { .. } => seen(f, self),
            Self::Refused { direction, reason, .. } => write!(f, "{direction} refused: {reason}"),
            Self::Stuck { direction, reason, .. } => write!(f, "{direction} is stuck: {reason}"),
            Self::Overtaken { direction, .. } => {
                write!(f, "{direction} overtaken: a person did the opposite")
            }
            Self::LetGo { direction, .. } => {
                write!(f, "{direction} given up: it is no longer asked for")
            }
            Self::Joined { schedule, via, held } => {
                let held = if *held { HELD } else { "" };
                write!(f, "follows {schedule} (by {via}){held}")
            }
            Self::Orphaned { barrier: None } => f.write_str(ORPHANED),
            Self::Orphaned { barrier: Some(barrier) } => {
                write!(
                    f,
                    "orphaned: stopped, and {barrier}; once that ends, `offhours start` restores it"
                )
            }
            Self::Approved => f.write_str("approved"),
            Self::ConfigurationOverruled { in_force, applied, by } => write!(
                f,
                "generation {in_force} is in force, although generation {applied} was applied \
                 last, by {by}: `offhours apply` again"
            ),
            Self::Conflict { reason }
            | Self::InvalidUntil { reason }
            | Self::Awaiting { reason, .. } => f.write_str(reason),
            Self::Held { count, resources } => held(f, *count, resources),
            Self::UnknownSchedule { word } => {
                write!(f, "its tag names the schedule `{word}`, which does not exist")
            }
            Self::Gone { saved } => f.write_str(&gone(saved.as_ref())),
            Self::UnlikePlans { saved, seen } => {
                write!(
                    f,
                    "resized by a person to {seen}, which does not compare with the saved {saved}"
                )
            }
            Self::Postponed { reason, .. } => write!(f, "postponed: {reason}"),
            Self::OrderNotKept { direction, reason, commanded } => {
                let (verb, waited) = (direction, if *commanded { "" } else { ", after its wait" });
                write!(f, "{verb} before what goes first{waited}: {reason}")
            }
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
    let Event::Asked { direction, cause, request, answer, saved } = event else {
        return String::new();
    };
    let saved = saved.as_ref().filter(|_| *direction == Direction::Stop);
    let saved = saved.map(|saved| format!(", saved {saved}"));
    let answer = (*answer != Answer::Accepted).then(|| format!("; {answer}"));
    let (saved, answer) = (saved.unwrap_or_default(), answer.unwrap_or_default());
    format!("{direction} asked ({cause}): {request}{saved}{answer}")
}

/// Says that a resource is in its target state, and why it is watched all the same.
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
    let Event::Seen { direction, seconds, forced, method, saved, lost_storage, .. } = event else {
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
    let (noun, verb) = if count == 1 { ("resource", "is") } else { ("resources", "are") };
    let names: Vec<_> = resources.iter().take(NAMED).map(|r| r.name.as_str()).collect();
    write!(f, "{count} {noun} {verb} held until `offhours approve`: {}", names.join(", "))?;
    match count.saturating_sub(names.len()) {
        0 => Ok(()),
        more => write!(f, " and {more} more"),
    }
}
