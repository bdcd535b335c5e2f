//! What is due for a record: a pure function that all four Lambda functions share.

use std::{borrow::Cow, fmt, iter, sync::Arc};

use jiff::{SignedDuration, Timestamp};

use crate::{
    configuration::{
        Account, Adopt, Configuration, Generation, Mode, Override, OverrideTarget, Overrides,
        Pause, Policy, Rule,
    },
    membership::{Exclusion, Membership, Subject},
    record::{
        Ask, Cause, Direction, EdgeKey, FIRST_LOOK, Handled, ManualCommand, Phase, Rank, Record,
        Transition,
    },
    reference::{ResourceKind, ScheduleName},
    schedule::{Desired, Early},
};

/// How many coming edges are searched for the next start or change.
pub(crate) const EDGES_AHEAD: usize = 64;

/// The resolution of a [`Timestamp`].
pub(crate) const INSTANT_BEFORE: SignedDuration = SignedDuration::from_nanos(1);

/// The configuration and the overrides that decisions are based on.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// The generation in force.
    pub configuration: &'a Configuration,
    /// The overrides in force, and those that have ended.
    pub overrides: &'a Overrides,
}

/// The configuration and the overrides in force, as one reader saw them.
#[derive(Debug, Clone)]
pub struct InForce {
    pub configuration: Arc<Configuration>,
    pub overrides: Overrides,
    /// When the configuration came into force; `None` if nothing has been applied yet.
    pub since: Option<Timestamp>,
}

impl InForce {
    /// Borrows both for the rules.
    #[must_use]
    pub fn rules(&self) -> Rules<'_> {
        Rules { configuration: &self.configuration, overrides: &self.overrides }
    }
}

/// What a record needs at an instant, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The schedule that the resource follows, or why it follows none.
    pub membership: Membership,
    /// Whether it may be touched at all: it follows a schedule, or a person named it.
    pub opted_in: bool,
    /// The state desired now; `None` if either state will do.
    pub desired: Option<Desired>,
    /// The latest edge; `None` if there has never been one.
    pub edge: Option<DesiredEdge>,
    /// What to do.
    pub decision: Decision,
}

/// An edge of the effective desired state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredEdge {
    /// Its instant and rank.
    pub key: EdgeKey,
    /// The desired state from then on; `None` if either state will do.
    pub desired: Option<Desired>,
    /// What caused it.
    pub cause: Cause,
}

/// What to do about a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// An edge, a new configuration or drift calls for a transition, or for an acknowledgement.
    Act(Due),
    /// The request of the transition in flight has to be sent again.
    AskAgain(Direction),
    /// Nothing to do, and why.
    Leave(LeaveReason),
}

/// An action that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// Whether to stop or to start.
    pub direction: Direction,
    /// What a claim or an acknowledgement records.
    pub handled: Handled,
    /// What asks for it.
    pub cause: Cause,
    /// Why it is due now.
    pub why: Why,
    /// Whether a request may be sent.
    pub mode: Mode,
}

/// Why a stop or a start is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// An edge is later than the one handled last.
    Edge,
    /// A newer configuration or another schedule asks for a different state.
    Changed,
    /// A person changed the state that the handled edge desired, and `enforce` restores it.
    Drift,
}

/// Why nothing is done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeaveReason {
    /// Never touched.
    #[error("{0}")]
    Excluded(Exclusion),
    /// A tag names a schedule that does not exist.
    #[error("its tag names the schedule `{0}`, which does not exist")]
    UnknownSchedule(String),
    /// No schedule, override or command names it.
    #[error("no schedule names it")]
    Unnamed,
    /// Held until a person approves it: it joined with too many others at once, or lost storage.
    #[error("held until `offhours approve`")]
    Held,
    /// Something is due or in flight, and a pause keeps it from being sent.
    #[error("{0}")]
    Paused(Box<Pause>),
    /// Joined with `adopt = "next-edge"`, and no edge has come since.
    #[error("it follows its schedule from the next edge on")]
    Adopting,
    /// The provider answers 404.
    #[error("gone at the provider")]
    Gone,
    /// This reader's configuration or clock is older than what the record has seen.
    #[error("the record is ahead of this configuration or clock")]
    StaleReader,
    /// The latest edge has been handled.
    #[error("the latest edge has been handled")]
    Handled,
    /// The schedule has no desired state now.
    #[error("its schedule wants nothing now")]
    NothingDesired,
}

/// Judges a record at an instant, taking its membership from `subject`.
#[must_use]
pub fn judge(record: &Record, subject: Subject<'_>, rules: Rules<'_>, now: Timestamp) -> Verdict {
    let membership = Membership::of(subject, rules.configuration);
    let desired_states = DesiredStates::of(record, &membership, rules);
    let edge = desired_states.latest(now);
    let named = membership.schedule().is_some() || desired_states.named_by_person(edge.as_ref());
    let opted_in = named && !is_barred(record, &membership, edge.as_ref());
    let decision = decide(record, &membership, opted_in, edge.as_ref(), rules, now);
    let pause = sends(record, &decision)
        .and_then(|direction| active_pause(subject, &membership, rules, direction, now));
    let decision = pause
        .map_or(decision, |pause| Decision::Leave(LeaveReason::Paused(Box::new(pause.clone()))));
    Verdict {
        desired: edge.as_ref().and_then(|edge| edge.desired),
        membership,
        opted_in,
        edge,
        decision,
    }
}

/// Returns the direction of the request that a decision leads to, or may lead to: what is in flight
/// may have its power cut.
fn sends(record: &Record, decision: &Decision) -> Option<Direction> {
    match decision {
        Decision::Act(due) => Some(due.direction),
        Decision::AskAgain(direction) => Some(*direction),
        Decision::Leave(LeaveReason::Handled) => record.in_flight().map(|now| now.direction),
        Decision::Leave(_) => None,
    }
}

/// Returns the pause in force that keeps requests in this direction from being sent; of several, the
/// one that ends last.
fn active_pause<'a>(
    subject: Subject<'_>,
    membership: &Membership,
    rules: Rules<'a>,
    direction: Direction,
    at: Timestamp,
) -> Option<&'a Pause> {
    let active = pauses(subject, membership, rules, direction).filter(|pause| pause.is_active(at));
    active.max_by_key(|pause| pause.ends_at)
}

/// Iterates over the pauses of a resource that bar requests in this direction, in force or not.
fn pauses<'a>(
    subject: Subject<'_>,
    membership: &Membership,
    rules: Rules<'a>,
    direction: Direction,
) -> impl Iterator<Item = &'a Pause> {
    let schedule = membership.schedule();
    rules.overrides.pauses().filter(move |pause| {
        pause.bars(direction) && subject.is_within(&pause.scope, schedule, rules.configuration)
    })
}

/// Reports whether it must not be touched. What Offhours holds stopped is restored by a person's
/// start though it has opted out.
fn is_barred(record: &Record, membership: &Membership, edge: Option<&DesiredEdge>) -> bool {
    let Membership::Excluded(exclusion) = membership else {
        return false;
    };
    let started = edge.is_some_and(|edge| {
        edge.key.rank == Rank::Manual && edge.desired == Some(Desired::Running)
    });
    !(started && exclusion.yields_to_a_start() && record.is_held_stopped())
}

fn decide(
    record: &Record,
    membership: &Membership,
    opted_in: bool,
    edge: Option<&DesiredEdge>,
    rules: Rules<'_>,
    now: Timestamp,
) -> Decision {
    let leave = Decision::Leave;
    if matches!(record.phase, Phase::Gone { .. }) {
        return leave(LeaveReason::Gone);
    }
    if !opted_in {
        return leave(match membership {
            Membership::Excluded(exclusion) => LeaveReason::Excluded(exclusion.clone()),
            Membership::Unknown { word, .. } => LeaveReason::UnknownSchedule(word.clone()),
            Membership::Unnamed | Membership::Member { .. } => LeaveReason::Unnamed,
        });
    }
    let generation = rules.configuration.generation;
    let handled = record.handled.as_ref();
    if handled.is_some_and(|h| generation < h.generation || now < h.key.instant) {
        return leave(LeaveReason::StaleReader);
    }
    let Some(edge) = edge else {
        return leave(LeaveReason::NothingDesired);
    };
    if edge.key.rank != Rank::Manual && is_held_from(record, edge.desired) {
        // What is under way came from a command, or gives back what Offhours had stopped.
        return match record.in_flight() {
            Some(transition) if wants_asking(record, now) => {
                Decision::AskAgain(transition.direction)
            }
            Some(_) | None => leave(LeaveReason::Held),
        };
    }
    let rule = membership.rule(rules.configuration);
    let policy = membership.policy(rules.configuration);
    let adopts = policy.adopt == Adopt::NextEdge && handled.is_none();
    if adopts && is_before_joining(record, edge) && !brings_back(record, edge) {
        return leave(LeaveReason::Adopting);
    }
    let mode = mode(record, &policy, rules.configuration);
    // Its start was given up, or only observed: that edge is still to be carried out.
    let undone = mode == Mode::Act && brings_back(record, edge);
    let why = why_due(record, membership.schedule(), edge, generation, rule, undone);
    match (why, edge.desired.map(Direction::towards)) {
        (Some(why), Some(direction)) => Decision::Act(Due {
            direction,
            handled: Handled {
                generation,
                key: edge.key,
                desired: edge.desired,
                schedule: membership.schedule().cloned(),
            },
            cause: edge.cause.clone(),
            why,
            mode,
        }),
        (None, Some(direction)) => match record.in_flight() {
            Some(transition) if transition.direction == direction && wants_asking(record, now) => {
                Decision::AskAgain(direction)
            }
            Some(_) | None => leave(LeaveReason::Handled),
        },
        (_, None) => leave(LeaveReason::NothingDesired),
    }
}

/// Reports whether an edge would start a resource that Offhours itself has stopped, or owes a size.
fn brings_back(record: &Record, edge: &DesiredEdge) -> bool {
    edge.desired == Some(Desired::Running) && is_to_come_back(record)
}

/// Reports whether a record is held, and an edge to this state does not give back what Offhours
/// itself has stopped.
#[must_use]
pub fn is_held_from(record: &Record, to: Option<Desired>) -> bool {
    record.held && !(to == Some(Desired::Running) && is_to_come_back(record))
}

/// Reports whether Offhours itself has stopped the resource, or owes it a size.
fn is_to_come_back(record: &Record) -> bool {
    let stopped =
        record.handled.as_ref().is_some_and(|handled| handled.desired == Some(Desired::Stopped));
    stopped || record.saved.is_some()
}

/// Reports whether an edge other than a command's came before the resource joined its schedule.
fn is_before_joining(record: &Record, edge: &DesiredEdge) -> bool {
    let since = record.joined_at.is_some_and(|at| edge.key.instant > at);
    edge.key.rank != Rank::Manual && !since
}

/// Returns why an edge is due for a record, or `None` if it is not. An edge without a desired state
/// is never due.
fn why_due(
    record: &Record,
    schedule: Option<&ScheduleName>,
    edge: &DesiredEdge,
    generation: Generation,
    rule: Option<&Rule>,
    undone: bool,
) -> Option<Why> {
    let desired = edge.desired?;
    let Some(handled) = &record.handled else {
        return Some(Why::Edge);
    };
    if edge.key > handled.key {
        return Some(Why::Edge);
    }
    let changed = generation > handled.generation || schedule != handled.schedule.as_ref();
    let changed = changed || undone && edge.key == handled.key;
    if changed && edge.desired != handled.desired {
        return Some(Why::Changed);
    }
    let enforced = rule.is_some_and(|rule| rule.policy.enforce);
    // There is nothing to put back in a pool that a person emptied.
    let emptied = record.kind() == ResourceKind::NodePool
        && desired == Desired::Running
        && record.saved.is_none();
    let drifted = match &record.phase {
        Phase::Settled { at } => !emptied && *at != Direction::towards(desired).target_state(),
        Phase::InFlight { .. }
        | Phase::Refused { .. }
        | Phase::Stuck { .. }
        | Phase::Gone { .. } => false,
    };
    // Observe mode records an edge without its desired state, so there is nothing to put back.
    (enforced
        && drifted
        && edge.key == handled.key
        && handled.desired == edge.desired
        && !record.retained)
        .then_some(Why::Drift)
}

/// Reports whether the request of the transition in flight has to be sent again.
fn wants_asking(record: &Record, now: Timestamp) -> bool {
    if record.permit_is_open(now) || record.retry_at.is_some_and(|retry_at| now < retry_at) {
        return false;
    }
    let Some(request) = &record.request else {
        // A watch-out that has seen the wrong state: the opposite request has taken effect, and
        // there is no request of ours to wait for.
        return !record.is_seen_at_end();
    };
    match request.ask {
        Ask::Failed { retry_at } => retry_at <= now,
        Ask::Open | Ask::Done { .. } => true,
        Ask::Accepted { .. } => false,
    }
}

/// Returns the mode for a record under this policy: no request may be sent if the service, its
/// account or its schedule only observes.
#[must_use]
pub fn mode(record: &Record, policy: &Policy, configuration: &Configuration) -> Mode {
    match observer(record, policy, configuration) {
        Some(_) => Mode::Observe,
        None => Mode::Act,
    }
}

/// The scope that is in observe mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observer {
    /// The deployment, whatever the configuration says.
    Deployment,
    /// The whole service.
    Service,
    /// The resource's account.
    Account,
    /// The schedule that the resource follows.
    Schedule,
}

impl fmt::Display for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Deployment => "the deployment",
            Self::Service => "the whole service",
            Self::Account => "its account",
            Self::Schedule => "its schedule",
        })
    }
}

/// Returns the widest scope that only observes a record under this policy, if any does.
#[must_use]
pub fn observer(
    record: &Record,
    policy: &Policy,
    configuration: &Configuration,
) -> Option<Observer> {
    let account = configuration.accounts.get(&record.reference.account);
    [
        (Observer::Deployment, Some(configuration.floor.mode)),
        (Observer::Service, Some(configuration.settings.mode)),
        (Observer::Account, account.map(Account::mode)),
        (Observer::Schedule, Some(policy.mode)),
    ]
    .into_iter()
    .find_map(|(observer, mode)| (mode == Some(Mode::Observe)).then_some(observer))
}

/// Returns when a record next needs a decision or an observation: its position in the index.
///
/// This is the first edge after the *handled* one, never "after now": otherwise, a writer whose
/// clock is ahead would skip an edge. What a pause keeps from being sent is due when that ends.
#[must_use]
pub fn due_at(record: &Record, rules: Rules<'_>, now: Timestamp) -> Option<Timestamp> {
    let at = due_without_pauses(record, rules, now)?;
    let request = record.request.as_ref();
    let is_watched = record.in_flight().is_some()
        && request.is_none_or(|request| matches!(request.ask, Ask::Open | Ask::Accepted { .. }));
    Some(if is_watched { at } else { after_pauses(record, rules, at, now) })
}

/// Returns the first instant from `at` on at which no pause bars what is desired then.
fn after_pauses(record: &Record, rules: Rules<'_>, mut at: Timestamp, now: Timestamp) -> Timestamp {
    let subject = Subject::recorded(record);
    let membership = Membership::of(subject, rules.configuration);
    let desired_states = DesiredStates::of(record, &membership, rules);
    loop {
        let instant = at.max(now);
        let latest = desired_states.latest(instant);
        let desired = latest.and_then(|edge| edge.desired).unwrap_or(Desired::Stopped);
        let direction = Direction::towards(desired);
        let Some(pause) = active_pause(subject, &membership, rules, direction, instant) else {
            return at;
        };
        let key = EdgeKey { instant, rank: Rank::Manual };
        let next = desired_states.next_that_acts(Some(key), now).filter(|_| pause.starts);
        at = next.map_or(pause.ends_at, |edge| edge.key.instant.min(pause.ends_at));
    }
}

fn due_without_pauses(record: &Record, rules: Rules<'_>, now: Timestamp) -> Option<Timestamp> {
    if matches!(record.phase, Phase::Gone { .. }) {
        return None;
    }
    let account = &record.reference.account;
    if !rules.configuration.accounts.contains_key(account) {
        return None;
    }
    let membership = Membership::of(Subject::recorded(record), rules.configuration);
    let desired_states = DesiredStates::of(record, &membership, rules);
    let latest = desired_states.latest(now);
    if let Some(transition) = record.in_flight() {
        let wanted = latest.as_ref().and_then(|edge| edge.desired);
        return Some(next_look(record, transition, &desired_states, wanted, now));
    }
    if is_barred(record, &membership, latest.as_ref()) {
        return None;
    }
    let named = membership.schedule().is_some() || desired_states.named_by_person(latest.as_ref());
    if !named {
        // An override of the resource itself may begin later.
        let mut begins = desired_states.overrides.iter().map(|o| o.set_at);
        return begins.find(|at| *at > now);
    }
    match decide(record, &membership, true, latest.as_ref(), rules, now) {
        Decision::Act(_) | Decision::AskAgain(_) => {
            let key = latest.map(|edge| edge.key);
            let of_this = record.failing.is_none() || record.failing == key;
            let retry_at = record.retry_at.filter(|&at| of_this && at > now);
            // What is already due stays due since the same instant, and needs no write for that.
            let due_since = record.due_at.map_or(now, |at| at.min(now));
            let retry_at = retry_at.unwrap_or(due_since);
            // A backoff never extends past the next edge.
            let next = desired_states.next_that_acts(key, now);
            Some(next.map_or(retry_at, |edge| retry_at.min(edge.key.instant)))
        }
        // A held record acts only on an edge that brings it back.
        Decision::Leave(LeaveReason::Held) => {
            let key = latest.filter(|_| is_to_come_back(record))?.key;
            let next = desired_states.next_that_acts(Some(key), now);
            next.map(|edge| edge.key.instant)
        }
        // The record is ahead of this reader, and is read again at this instant.
        Decision::Leave(LeaveReason::StaleReader) => record.due_at,
        Decision::Leave(_) => {
            // An edge without a desired state needs no decision: it only moves the start of the
            // search.
            let without_desired = latest.filter(|edge| edge.desired.is_none()).map(|edge| edge.key);
            let handled = record.handled.as_ref().map(|handled| handled.key);
            let joined = record.joined_at.filter(|_| handled.is_none());
            let joined = joined.map(|instant| EdgeKey { instant, rank: Rank::Manual });
            let from = without_desired.max(handled).max(joined);
            desired_states.next_that_acts(from, now).map(|edge| edge.key.instant)
        }
    }
}

/// Returns when a transition in flight is observed next.
fn next_look(
    record: &Record,
    transition: &Transition,
    desired_states: &DesiredStates<'_>,
    wanted: Option<Desired>,
    now: Timestamp,
) -> Timestamp {
    let asked_at = record.request.as_ref().map(|request| request.asked_at);
    let first_look = asked_at.unwrap_or(transition.claimed_at) + FIRST_LOOK;
    match record.request.as_ref().map(|request| &request.ask) {
        // Nothing is pending until the request is sent again, or until a newer edge comes.
        Some(Ask::Failed { retry_at }) if wanted == Some(transition.direction.desired()) => {
            let handled = record.handled.as_ref().map(|handled| handled.key);
            let next = desired_states.next_that_acts(handled, now);
            let next = next.map_or(*retry_at, |edge| edge.key.instant.min(*retry_at));
            first_look.max(next)
        }
        Some(_) | None => first_look,
    }
}

/// Returns the coming edges of the effective desired state after an instant, including those from
/// which on either state will do. There is no stop of what `retain_running` leaves running.
pub fn coming_edges<'a>(
    record: &'a Record,
    rules: Rules<'a>,
    after: Timestamp,
) -> impl Iterator<Item = DesiredEdge> + 'a {
    let membership = Membership::of(Subject::recorded(record), rules.configuration);
    let policy = membership.policy(rules.configuration);
    let is_left = move |edge: &DesiredEdge| {
        let direction = edge.desired.map(Direction::towards);
        direction.is_some_and(|to| is_retained(record, &policy, to, &edge.cause))
    };
    let edges = DesiredStates::of(record, &membership, rules).coming(after);
    edges.filter(move |edge| !is_left(edge))
}

/// Reports whether `retain_running` leaves it running at this edge, once that is recorded.
pub(crate) fn is_retained(
    record: &Record,
    policy: &Policy,
    direction: Direction,
    cause: &Cause,
) -> bool {
    let leaves = policy.retain_running && record.retained;
    leaves && direction == Direction::Stop && *cause == Cause::Schedule
}

/// Returns the same of a schedule, for what follows it and has no override or command of its own.
/// There are none of a schedule that is not configured.
pub fn coming_edges_of<'a>(
    name: &ScheduleName,
    rules: Rules<'a>,
    after: Timestamp,
) -> impl Iterator<Item = DesiredEdge> + 'a {
    let rule = rules.configuration.schedules.get(name);
    let target = OverrideTarget::Schedule(name.clone());
    let states = DesiredStates {
        schedule: rule.map(|rule| Early { schedule: &rule.schedule, lead: SignedDuration::ZERO }),
        overrides: by_command(&target, rules).map(Cow::Borrowed).collect(),
        manual: None,
    };
    states.coming(after)
}

/// Returns when a record's next start begins, according to its current schedule, overrides and
/// commands.
#[must_use]
pub fn next_start(record: &Record, rules: Rules<'_>, now: Timestamp) -> Option<Timestamp> {
    let kept = record.hibernation.as_deref();
    let lead = kept.and_then(|kept| kept.lead).unwrap_or_default();
    let mut edges = coming_edges(record, rules, now).take(EDGES_AHEAD);
    let start = edges.find(|edge| edge.desired == Some(Desired::Running));
    start.map(|edge| match edge.key.rank {
        Rank::Schedule => edge.key.instant - lead,
        Rank::OverrideEnded | Rank::OverrideSet | Rank::Manual => edge.key.instant,
    })
}

/// Returns the next edge that brings a resource from this state into the other one, according to its
/// current schedule, overrides and commands.
#[must_use]
pub fn next_change(
    record: &Record,
    rules: Rules<'_>,
    after: Timestamp,
    from: Desired,
) -> Option<DesiredEdge> {
    let membership = Membership::of(Subject::recorded(record), rules.configuration);
    let retains = membership.policy(rules.configuration).retain_running;
    let edges = coming_edges(record, rules, after).take(EDGES_AHEAD);
    let mut edges = edges.filter(|edge| edge.desired.is_some()).peekable();
    // What is found running when its time begins is left running when that ends.
    let begins_running = edges.peek()?.desired == Some(Desired::Running);
    let is_retained = retains && begins_running && from == Desired::Running;
    edges.find(|edge| edge.desired != Some(from)).filter(|_| !is_retained)
}

/// Returns the override that applies to a record at an instant: its own, or that of the schedule it
/// follows. Returns `None` if the resource may not be touched.
#[must_use]
pub fn override_of<'a>(
    record: &Record,
    rules: Rules<'a>,
    now: Timestamp,
) -> Option<Cow<'a, Override>> {
    let membership = Membership::of(Subject::recorded(record), rules.configuration);
    if matches!(membership, Membership::Excluded(_)) {
        return None;
    }
    overrides_of(record, &membership, rules).into_iter().find(|one| one.is_active(now))
}

/// Returns the overrides of a record that last for any time, the strongest first: by a command for
/// the resource, by its tags, by a command for its schedule. A tag counts only under a schedule.
#[must_use]
pub fn overrides_of<'a>(
    record: &Record,
    membership: &Membership,
    rules: Rules<'a>,
) -> Vec<Cow<'a, Override>> {
    let by_tag = membership.rule(rules.configuration).map(|rule| record.overrides_by_tag(rule));
    let schedule = membership.schedule().cloned().map(OverrideTarget::Schedule);
    let of_resource = by_command(&OverrideTarget::Resource(record.reference.clone()), rules);
    let mut overrides: Vec<_> = of_resource.map(Cow::Borrowed).collect();
    overrides.extend(by_tag.into_iter().flatten().map(Cow::Owned));
    let of_schedule = schedule.into_iter().flat_map(|target| by_command(&target, rules));
    overrides.extend(of_schedule.map(Cow::Borrowed));
    overrides.retain(|one| one.set_at < one.ends_at);
    overrides
}

/// Returns the override by the tags of a record that has not ended at an instant; of several, the
/// one that ends last.
#[must_use]
pub fn override_by_tag(record: &Record, rules: Rules<'_>, at: Timestamp) -> Option<Override> {
    let membership = Membership::of(Subject::recorded(record), rules.configuration);
    let overrides = record.overrides_by_tag(membership.rule(rules.configuration)?);
    overrides.into_iter().find(|one| one.counts() && at < one.ends_at)
}

/// Returns the override of a target, and the one in whose place it was set before it was to begin.
fn by_command<'a>(
    target: &OverrideTarget,
    rules: Rules<'a>,
) -> impl Iterator<Item = &'a Override> + use<'a> {
    let set = rules.overrides.get(target);
    set.into_iter().flat_map(|one| iter::once(one).chain(one.before.as_deref()))
}

/// Returns the pause in force that keeps requests in this direction from being sent to a resource.
/// Returns `None` if the resource may not be touched anyway.
#[must_use]
pub fn pause_of<'a>(
    record: &Record,
    rules: Rules<'a>,
    direction: Direction,
    now: Timestamp,
) -> Option<&'a Pause> {
    let subject = Subject::recorded(record);
    let membership = Membership::of(subject, rules.configuration);
    let is_excluded = matches!(membership, Membership::Excluded(_));
    active_pause(subject, &membership, rules, direction, now).filter(|_| !is_excluded)
}

/// Iterates over the pauses of a resource, in force or not.
pub fn pauses_of<'a>(
    record: &Record,
    membership: &Membership,
    rules: Rules<'a>,
) -> impl Iterator<Item = &'a Pause> {
    // Each pause bars stops.
    pauses(Subject::recorded(record), membership, rules, Direction::Stop)
}

/// Returns when the latest pause ended that kept requests in this direction from being sent to a
/// resource.
#[must_use]
pub fn pause_ended(
    record: &Record,
    rules: Rules<'_>,
    direction: Direction,
    now: Timestamp,
) -> Option<Timestamp> {
    let subject = Subject::recorded(record);
    let membership = Membership::of(subject, rules.configuration);
    let ends = pauses(subject, &membership, rules, direction).map(|pause| pause.ends_at);
    ends.filter(|ended| *ended <= now).max()
}

/// The effective desired state of one record over time: schedule, overrides and commands.
struct DesiredStates<'a> {
    schedule: Option<Early<'a>>,
    /// The strongest first.
    overrides: Vec<Cow<'a, Override>>,
    manual: Option<DesiredEdge>,
}

impl<'a> DesiredStates<'a> {
    fn of(record: &'a Record, membership: &Membership, rules: Rules<'a>) -> Self {
        let kept = record.hibernation.as_ref();
        let lead = kept.and_then(|kept| kept.lead).unwrap_or_default();
        let schedule = membership
            .rule(rules.configuration)
            .map(|rule| Early { schedule: &rule.schedule, lead });
        let overrides = overrides_of(record, membership, rules);
        // An override wins over a command that contradicts it, whichever was given first.
        let overruled = |manual: &&ManualCommand| {
            let mut overrides = overrides.iter();
            let deciding = overrides.find(|o| o.is_active(manual.instant));
            deciding.is_some_and(|o| o.desired != manual.desired)
        };
        let manual = record.manual_command.as_ref().filter(|b| !overruled(b));
        let manual = manual.map(manual_edge);
        // A command that a later edge has superseded is finished, though that edge may be no more. So
        // is one that was only reported, or given up: its report said so.
        let handled = record.handled.as_ref();
        let is_finished = |edge: &DesiredEdge| {
            handled.is_some_and(|handled| {
                let given_up = handled.key == edge.key && handled.desired != edge.desired;
                handled.key > edge.key || given_up
            })
        };
        Self { schedule, overrides, manual: manual.filter(|edge| !is_finished(edge)) }
    }

    /// Reports whether a person named this very resource: by an override of it, or by the command
    /// that made the latest edge.
    fn named_by_person(&self, latest: Option<&DesiredEdge>) -> bool {
        latest.is_some_and(|edge| match edge.key.rank {
            Rank::Manual => true,
            Rank::OverrideSet => self.overrides.iter().any(|o| {
                matches!(o.target, OverrideTarget::Resource(_)) && o.set_at == edge.key.instant
            }),
            Rank::Schedule | Rank::OverrideEnded => false,
        })
    }

    /// Returns the desired state of the first of these overrides that is active, or else that of
    /// the schedule.
    fn desired_by(&self, overrides: &[Cow<'_, Override>], at: Timestamp) -> Option<Desired> {
        match overrides.iter().find(|o| o.is_active(at)) {
            Some(o) => Some(o.desired),
            None => self.schedule.and_then(|s| s.desired_at(at)),
        }
    }

    fn is_masked(&self, at: Timestamp) -> bool {
        self.mask_end(at).is_some()
    }

    /// Returns when the override that masks the schedule at this instant ends.
    fn mask_end(&self, at: Timestamp) -> Option<Timestamp> {
        self.overrides.iter().filter(|o| o.is_active(at)).map(|o| o.ends_at).max()
    }

    /// Returns the edges that overrides and commands make, in no particular order.
    fn made_by_people(&self) -> impl Iterator<Item = DesiredEdge> {
        let overrides = self.overrides.iter().enumerate().flat_map(|(place, o)| {
            let (stronger, weaker) = (&self.overrides[..place], &self.overrides[place + 1..]);
            let masked = |at| stronger.iter().any(|one| one.is_active(at));
            let after = self.desired_by(weaker, o.ends_at);
            // Of two that end together, the end of the stronger one says what changes.
            let just_before = o.ends_at - INSTANT_BEFORE;
            let set = Some(set(o)).filter(|_| o.counts() && !masked(o.set_at));
            let ended = ended(o, after).filter(|_| !masked(o.ends_at) && !masked(just_before));
            [set, ended].into_iter().flatten()
        });
        overrides.chain(self.manual.clone())
    }

    /// Returns the latest edge at or before `now`.
    fn latest(&self, now: Timestamp) -> Option<DesiredEdge> {
        let scheduled = self.schedule.map(|schedule| {
            let latest = schedule.latest_edge(now);
            // A desired state that never changed counts as an edge before all others.
            schedule_edge(latest.since.unwrap_or(Timestamp::UNIX_EPOCH), latest.desired)
        });
        scheduled
            .filter(|edge| !self.is_masked(edge.key.instant))
            .into_iter()
            .chain(self.made_by_people())
            .filter(|edge| edge.key.instant <= now)
            .max_by_key(|edge| edge.key)
    }

    /// Returns the edges after an instant, as people see them.
    fn coming(mut self, after: Timestamp) -> impl Iterator<Item = DesiredEdge> + 'a {
        if let Some(schedule) = &mut self.schedule {
            // People see the times that they configured.
            schedule.lead = SignedDuration::ZERO;
        }
        self.overrides.retain(|o| o.counts());
        let mut last = EdgeKey { instant: after, rank: Rank::Manual };
        iter::from_fn(move || {
            let edge = self.next(last)?;
            last = edge.key;
            Some(edge)
        })
    }

    /// Returns the first edge after `key`.
    fn next(&self, key: EdgeKey) -> Option<DesiredEdge> {
        self.next_scheduled(key.instant)
            .into_iter()
            .chain(self.made_by_people())
            .filter(|edge| edge.key > key)
            .min_by_key(|edge| edge.key)
    }

    /// Returns the schedule's first edge after an instant that is not masked by an override.
    fn next_scheduled(&self, after: Timestamp) -> Option<DesiredEdge> {
        let schedule = self.schedule?;
        let mut edge = schedule.next_edge(after)?;
        while let Some(end) = self.mask_end(edge.at) {
            // Edges fall on whole minutes, so this does not skip an edge at `end` itself.
            edge = schedule.next_edge(end - INSTANT_BEFORE)?;
        }
        Some(schedule_edge(edge.at, edge.desired))
    }

    /// Returns the first edge after `from` that has a desired state. Without `from`, the search
    /// starts at `now`.
    fn next_that_acts(&self, from: Option<EdgeKey>, now: Timestamp) -> Option<DesiredEdge> {
        let mut key = from.unwrap_or(EdgeKey { instant: now, rank: Rank::Manual });
        loop {
            let edge = self.next(key)?;
            if edge.desired.is_some() {
                return Some(edge);
            }
            key = edge.key;
        }
    }
}

fn schedule_edge(instant: Timestamp, desired: Option<Desired>) -> DesiredEdge {
    DesiredEdge { key: EdgeKey { instant, rank: Rank::Schedule }, desired, cause: Cause::Schedule }
}

fn manual_edge(manual: &ManualCommand) -> DesiredEdge {
    DesiredEdge {
        key: EdgeKey { instant: manual.instant, rank: Rank::Manual },
        desired: Some(manual.desired),
        cause: Cause::Manual { by: manual.by.clone() },
    }
}

fn set(o: &Override) -> DesiredEdge {
    DesiredEdge {
        key: EdgeKey { instant: o.set_at, rank: Rank::OverrideSet },
        desired: Some(o.desired),
        cause: Cause::OverrideSet,
    }
}

/// Returns the end of an override as an edge, if the desired state changes there.
fn ended(o: &Override, after: Option<Desired>) -> Option<DesiredEdge> {
    (after != Some(o.desired)).then_some(DesiredEdge {
        key: EdgeKey { instant: o.ends_at, rank: Rank::OverrideEnded },
        desired: after,
        cause: Cause::OverrideEnded,
    })
}

#[cfg(test)]
mod tests;
