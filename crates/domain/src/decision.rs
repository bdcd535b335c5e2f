//! What is due for a record: one pure function that all four functions use.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::{
    configuration::{
        Account, Adopt, Configuration, Generation, Mode, Override, Overrides, Policy, Rule, Target,
    },
    membership::{Exclusion, Membership, Subject},
    record::{
        Ask, Cause, Direction, EdgeKey, FIRST_LOOK, Handled, ManualCommand, Phase, Rank, Record,
        Transition,
    },
    reference::ScheduleName,
    schedule::{Desired, Early},
};

/// Among how many coming edges the next start is sought.
const EDGES_AHEAD: usize = 64;

/// The resolution of instants.
const INSTANT_BEFORE: SignedDuration = SignedDuration::from_nanos(1);

/// The configuration and the overrides under which decisions are taken.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// The generation in force.
    pub configuration: &'a Configuration,
    /// The overrides in force, and those that have ended.
    pub overrides: &'a Overrides,
}

/// What a record needs at an instant, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What the resource follows.
    pub membership: Membership,
    /// Whether it may be touched at all: it follows a schedule, or a person named it.
    pub opted_in: bool,
    /// What is desired now; none where either will do.
    pub desired: Option<Desired>,
    /// The latest edge, if there ever was one.
    pub edge: Option<DesiredEdge>,
    /// What to do.
    pub decision: Decision,
}

/// An edge of the effective desired state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredEdge {
    /// Its instant and rank.
    pub key: EdgeKey,
    /// The desired state from then on; none where either will do.
    pub desired: Option<Desired>,
    /// What it comes from.
    pub cause: Cause,
}

/// What to do about a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// An edge, a new configuration or a drift wants a transition, or its acknowledgement.
    Act(Due),
    /// A transition is under way whose request has to be made again.
    AskAgain(Direction),
    /// Nothing, and why.
    Leave(LeaveReason),
}

/// Something that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// Which way.
    pub direction: Direction,
    /// What a claim or an acknowledgement records.
    pub handled: Handled,
    /// What wants it.
    pub cause: Cause,
    /// Why it is due now.
    pub why: Why,
    /// Whether a request may be sent.
    pub mode: Mode,
}

/// Why something is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// An edge later than the handled one.
    Edge,
    /// A newer configuration, or another schedule, wants something else.
    Changed,
    /// `enforce`: a person changed what the handled edge desired.
    Drift,
}

/// Why nothing is done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeaveReason {
    /// Never touched.
    #[error("{0}")]
    Barred(Exclusion),
    /// A tag names a schedule that does not exist.
    #[error("its tag names the schedule `{0}`, which does not exist")]
    UnknownSchedule(String),
    /// Nothing names it.
    #[error("no schedule names it")]
    Unnamed,
    /// Joined with too many others at once.
    #[error("held until `offhours approve`")]
    Held,
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

/// Judges a record at an instant, by what `subject` shows of it.
#[must_use]
pub fn judge(record: &Record, subject: Subject<'_>, rules: Rules<'_>, now: Timestamp) -> Verdict {
    let membership = Membership::of(subject, rules.configuration);
    let desired_states = DesiredStates::of(record, &membership, rules);
    let edge = desired_states.latest(now);
    let named =
        membership.schedule().is_some() || desired_states.named_by_person(record, edge.as_ref());
    let opted_in = named && !matches!(membership, Membership::Barred(_));
    let decision = decide(record, &membership, opted_in, edge.as_ref(), rules, now);
    Verdict {
        desired: edge.as_ref().and_then(|edge| edge.desired),
        membership,
        opted_in,
        edge,
        decision,
    }
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
            Membership::Barred(exclusion) => LeaveReason::Barred(exclusion.clone()),
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
    if record.held && edge.key.rank != Rank::Manual && !brings_back(record, edge) {
        return leave(LeaveReason::Held);
    }
    let rule = membership.rule(rules.configuration);
    let policy = membership.policy(rules.configuration);
    if policy.adopt == Adopt::NextEdge && handled.is_none() && is_before_joining(record, edge) {
        return leave(LeaveReason::Adopting);
    }
    let why = why_due(record, membership.schedule(), edge, generation, rule);
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
            mode: mode(record, &policy, rules.configuration),
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

/// Whether an edge would start what Offhours itself has stopped, or what it owes a size.
fn brings_back(record: &Record, edge: &DesiredEdge) -> bool {
    edge.desired == Some(Desired::Running) && is_to_come_back(record)
}

/// Whether Offhours itself has stopped it, or owes it a size.
fn is_to_come_back(record: &Record) -> bool {
    let stopped = record
        .handled
        .as_ref()
        .is_some_and(|handled| handled.desired == Some(Desired::Stopped));
    stopped || record.saved.is_some()
}

/// Whether an edge came before the resource joined its schedule, and is not that of a command.
fn is_before_joining(record: &Record, edge: &DesiredEdge) -> bool {
    let since = record.joined_at.is_some_and(|at| edge.key.instant > at);
    edge.key.rank != Rank::Manual && !since
}

/// Why an edge is due for a record, if it is. An edge without a desired state never is.
fn why_due(
    record: &Record,
    schedule: Option<&ScheduleName>,
    edge: &DesiredEdge,
    generation: Generation,
    rule: Option<&Rule>,
) -> Option<Why> {
    let desired = edge.desired?;
    let Some(handled) = &record.handled else {
        return Some(Why::Edge);
    };
    if edge.key > handled.key {
        return Some(Why::Edge);
    }
    let changed = generation > handled.generation || schedule != handled.schedule.as_ref();
    if changed && edge.desired != handled.desired {
        return Some(Why::Changed);
    }
    let enforced = rule.is_some_and(|rule| rule.policy.enforce);
    let drifted = match &record.phase {
        Phase::Settled { at } => *at != Direction::towards(desired).end(),
        Phase::InFlight { .. }
        | Phase::Refused { .. }
        | Phase::Stuck { .. }
        | Phase::Gone { .. } => false,
    };
    // Observing records an edge without its desired state: there is nothing to put back.
    (enforced
        && drifted
        && edge.key == handled.key
        && handled.desired == edge.desired
        && !record.retained)
        .then_some(Why::Drift)
}

/// Whether the request of the transition under way has to be made again.
fn wants_asking(record: &Record, now: Timestamp) -> bool {
    if record.permit_is_open(now) {
        return false;
    }
    let Some(request) = &record.request else {
        // A watch-out that has seen the wrong state: the opposite request has acted, and there is
        // no request of ours to wait for.
        let end = record
            .in_flight()
            .map(|transition| transition.direction.end());
        let seen = record.observed.as_ref().map(|observed| observed.power);
        return seen != end;
    };
    match request.ask {
        Ask::Failed { retry_at } => retry_at <= now,
        Ask::Open | Ask::Done { .. } => true,
        Ask::Accepted { .. } => false,
    }
}

/// Whether requests may be sent for a record under this policy: not where the service, its account
/// or its schedule only observes.
#[must_use]
pub fn mode(record: &Record, policy: &Policy, configuration: &Configuration) -> Mode {
    match observer(record, policy, configuration) {
        Some(_) => Mode::Observe,
        None => Mode::Act,
    }
}

/// The scope that only observes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Observer {
    /// The whole service.
    Service,
    /// The resource's account.
    Account,
    /// The schedule that it follows.
    Schedule,
}

/// The widest scope that only observes a record under this policy.
#[must_use]
pub fn observer(
    record: &Record,
    policy: &Policy,
    configuration: &Configuration,
) -> Option<Observer> {
    let account = configuration.accounts.get(&record.reference.account);
    [
        (Observer::Service, Some(configuration.settings.mode)),
        (Observer::Account, account.map(Account::mode)),
        (Observer::Schedule, Some(policy.mode)),
    ]
    .into_iter()
    .find_map(|(observer, mode)| (mode == Some(Mode::Observe)).then_some(observer))
}

/// When a record next needs a decision or an observation: its place in the index.
///
/// It is the first edge after the *handled* one, never "after now": a writer whose clock is ahead
/// would otherwise skip an edge.
#[must_use]
pub fn due_at(record: &Record, rules: Rules<'_>, now: Timestamp) -> Option<Timestamp> {
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
    let named =
        membership.schedule().is_some() || desired_states.named_by_person(record, latest.as_ref());
    if !named || matches!(membership, Membership::Barred(_)) {
        return None;
    }
    match decide(record, &membership, true, latest.as_ref(), rules, now) {
        Decision::Act(_) | Decision::AskAgain(_) => {
            let key = latest.map(|edge| edge.key);
            let of_this = record.failing.is_none() || record.failing == key;
            let retry_at = record.retry_at.filter(|&at| of_this && at > now);
            // What is due already stays due since the same instant, and needs no write to be so.
            let due_since = record.due_at.map_or(now, |at| at.min(now));
            let retry_at = retry_at.unwrap_or(due_since);
            // A back-off never reaches past the next edge.
            let next = desired_states.next_that_acts(key, now);
            Some(next.map_or(retry_at, |edge| retry_at.min(edge.key.instant)))
        }
        // Of what is held, only an edge that brings it back acts.
        Decision::Leave(LeaveReason::Held) => {
            let key = latest.filter(|_| is_to_come_back(record))?.key;
            let next = desired_states.next_that_acts(Some(key), now);
            next.map(|edge| edge.key.instant)
        }
        // The record is ahead of this reader: it is read again when this instant has come.
        Decision::Leave(LeaveReason::StaleReader) => record.due_at,
        Decision::Leave(_) => {
            // An edge without a desired state needs no decision: it only moves the place to search
            // from.
            let without_desired = latest
                .filter(|edge| edge.desired.is_none())
                .map(|edge| edge.key);
            let handled = record.handled.as_ref().map(|handled| handled.key);
            let joined = record.joined_at.filter(|_| handled.is_none());
            let joined = joined.map(|instant| EdgeKey {
                instant,
                rank: Rank::Manual,
            });
            let from = without_desired.max(handled).max(joined);
            desired_states
                .next_that_acts(from, now)
                .map(|edge| edge.key.instant)
        }
    }
}

/// When a transition under way is observed next.
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
        // Nothing is under way until it is asked again, or until a newer edge comes.
        Some(Ask::Failed { retry_at }) if wanted == Some(transition.direction.desired()) => {
            let handled = record.handled.as_ref().map(|handled| handled.key);
            let next = desired_states.next_that_acts(handled, now);
            let next = next.map_or(*retry_at, |edge| edge.key.instant.min(*retry_at));
            first_look.max(next)
        }
        Some(_) | None => first_look,
    }
}

/// The coming edges of the effective desired state after an instant, those at which either state
/// will do included.
pub fn coming_edges<'a>(
    record: &'a Record,
    rules: Rules<'a>,
    after: Timestamp,
) -> impl Iterator<Item = DesiredEdge> + 'a {
    let membership = Membership::of(Subject::recorded(record), rules.configuration);
    let mut desired_states = DesiredStates::of(record, &membership, rules);
    if let Some(schedule) = &mut desired_states.schedule {
        // People see their own times.
        schedule.lead = SignedDuration::ZERO;
    }
    let mut last = EdgeKey {
        instant: after,
        rank: Rank::Manual,
    };
    std::iter::from_fn(move || {
        let edge = desired_states.next(last)?;
        last = edge.key;
        Some(edge)
    })
}

/// When a record's next start begins, as far as its schedule, its overrides and commands say now.
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

/// The override that decides over a record at an instant: its own, or that of the schedule it
/// follows. None where nothing may touch it.
#[must_use]
pub fn override_of<'a>(record: &Record, rules: Rules<'a>, now: Timestamp) -> Option<&'a Override> {
    let membership = Membership::of(Subject::recorded(record), rules.configuration);
    if matches!(membership, Membership::Barred(_)) {
        return None;
    }
    let schedule = membership.schedule().cloned().map(Target::Schedule);
    [Some(Target::Resource(record.reference.clone())), schedule]
        .into_iter()
        .flatten()
        .filter_map(|target| rules.overrides.of(&target))
        .find(|one| one.is_active(now))
}

/// The effective desired state of one record over time: schedule, overrides and commands.
struct DesiredStates<'a> {
    schedule: Option<Early<'a>>,
    resource_override: Option<&'a Override>,
    schedule_override: Option<&'a Override>,
    manual: Option<DesiredEdge>,
}

impl<'a> DesiredStates<'a> {
    fn of(record: &'a Record, membership: &Membership, rules: Rules<'a>) -> Self {
        let kept = record.hibernation.as_ref();
        let lead = kept.and_then(|kept| kept.lead).unwrap_or_default();
        let schedule = membership.rule(rules.configuration).map(|rule| Early {
            schedule: &rule.schedule,
            lead,
        });
        let (name, overrides) = (membership.schedule(), rules.overrides);
        let lasting = |o: &&Override| o.set_at < o.ends_at;
        let resource_override = overrides
            .of(&Target::Resource(record.reference.clone()))
            .filter(lasting);
        let schedule_override = name
            .and_then(|name| overrides.of(&Target::Schedule(name.clone())))
            .filter(lasting);
        // An override wins over a command that contradicts it, whichever was given first.
        let overruled = |manual: &&ManualCommand| {
            [resource_override, schedule_override]
                .into_iter()
                .flatten()
                .find(|o| o.is_active(manual.instant))
                .is_some_and(|o| o.desired != manual.desired)
        };
        let manual = record.manual_command.as_ref().filter(|b| !overruled(b));
        let manual = manual.map(manual_edge);
        // A command that was only reported is over: its report said that nothing was sent.
        let handled = record.handled.as_ref();
        let reported = |edge: &DesiredEdge| {
            handled.is_some_and(|handled| handled.key == edge.key && handled.desired.is_none())
        };
        Self {
            schedule,
            resource_override,
            schedule_override,
            manual: manual.filter(|edge| !reported(edge)),
        }
    }

    /// Whether a person named this very resource: by an override of it, or by the command that
    /// made the latest edge.
    ///
    /// A command older than the handled edge no longer names it. Once the schedule that superseded
    /// it is gone, it can be the latest edge again, and must not act.
    fn named_by_person(&self, record: &Record, latest: Option<&DesiredEdge>) -> bool {
        let handled = record.handled.as_ref().map(|handled| handled.key);
        latest.is_some_and(|edge| match edge.key.rank {
            Rank::Manual => handled.is_none_or(|handled| handled <= edge.key),
            Rank::OverrideSet => self
                .resource_override
                .is_some_and(|o| o.set_at == edge.key.instant),
            Rank::Schedule | Rank::OverrideEnded => false,
        })
    }

    /// The schedule's own desired state, under an override of the schedule if one is active.
    fn below_resource_override(&self, at: Timestamp) -> Option<Desired> {
        match self.schedule_override {
            Some(o) if o.is_active(at) => Some(o.desired),
            Some(_) | None => self.schedule.and_then(|s| s.desired_at(at)),
        }
    }

    fn is_masked(&self, at: Timestamp) -> bool {
        self.mask_end(at).is_some()
    }

    /// When the override that masks the schedule at this instant ends.
    fn mask_end(&self, at: Timestamp) -> Option<Timestamp> {
        [self.resource_override, self.schedule_override]
            .into_iter()
            .flatten()
            .filter(|o| o.is_active(at))
            .map(|o| o.ends_at)
            .max()
    }

    /// The edges that overrides and commands make, in no order.
    fn made_by_people(&self) -> impl Iterator<Item = DesiredEdge> {
        let resource = self.resource_override.into_iter().flat_map(|o| {
            let after = self.below_resource_override(o.ends_at);
            [Some(set(o)), ended(o, after)].into_iter().flatten()
        });
        let masked = |at| self.resource_override.is_some_and(|o| o.is_active(at));
        let schedule = self.schedule_override.into_iter().flat_map(move |o| {
            let after = self.schedule.and_then(|s| s.desired_at(o.ends_at));
            // Where both overrides end together, the resource's own end says what changes.
            let just_before = o.ends_at - INSTANT_BEFORE;
            let set = Some(set(o)).filter(|_| !masked(o.set_at));
            let ended = ended(o, after).filter(|_| !masked(o.ends_at) && !masked(just_before));
            [set, ended].into_iter().flatten()
        });
        resource.chain(schedule).chain(self.manual.clone())
    }

    /// The latest edge not after `now`.
    fn latest(&self, now: Timestamp) -> Option<DesiredEdge> {
        let scheduled = self.schedule.map(|schedule| {
            let latest = schedule.latest_edge(now);
            // A desired state that never changed is an edge before all others.
            schedule_edge(
                latest.since.unwrap_or(Timestamp::UNIX_EPOCH),
                latest.desired,
            )
        });
        scheduled
            .filter(|edge| !self.is_masked(edge.key.instant))
            .into_iter()
            .chain(self.made_by_people())
            .filter(|edge| edge.key.instant <= now)
            .max_by_key(|edge| edge.key)
    }

    /// The first edge after `key`.
    fn next(&self, key: EdgeKey) -> Option<DesiredEdge> {
        self.next_scheduled(key.instant)
            .into_iter()
            .chain(self.made_by_people())
            .filter(|edge| edge.key > key)
            .min_by_key(|edge| edge.key)
    }

    /// The schedule's first edge after an instant that no override masks.
    fn next_scheduled(&self, after: Timestamp) -> Option<DesiredEdge> {
        let schedule = self.schedule?;
        let mut edge = schedule.next_edge(after)?;
        while let Some(end) = self.mask_end(edge.at) {
            // Edges are whole minutes: this loses none at the end itself.
            edge = schedule.next_edge(end - INSTANT_BEFORE)?;
        }
        Some(schedule_edge(edge.at, edge.desired))
    }

    /// The first edge after `from` that wants something; from now on where nothing was handled.
    fn next_that_acts(&self, from: Option<EdgeKey>, now: Timestamp) -> Option<DesiredEdge> {
        let mut key = from.unwrap_or(EdgeKey {
            instant: now,
            rank: Rank::Manual,
        });
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
    DesiredEdge {
        key: EdgeKey {
            instant,
            rank: Rank::Schedule,
        },
        desired,
        cause: Cause::Schedule,
    }
}

fn manual_edge(manual: &ManualCommand) -> DesiredEdge {
    DesiredEdge {
        key: EdgeKey {
            instant: manual.instant,
            rank: Rank::Manual,
        },
        desired: Some(manual.desired),
        cause: Cause::Manual {
            by: manual.by.clone(),
        },
    }
}

fn set(o: &Override) -> DesiredEdge {
    DesiredEdge {
        key: EdgeKey {
            instant: o.set_at,
            rank: Rank::OverrideSet,
        },
        desired: Some(o.desired),
        cause: Cause::OverrideSet,
    }
}

/// The end of an override, an edge only if the desired state changes there.
fn ended(o: &Override, after: Option<Desired>) -> Option<DesiredEdge> {
    (after != Some(o.desired)).then_some(DesiredEdge {
        key: EdgeKey {
            instant: o.ends_at,
            rank: Rank::OverrideEnded,
        },
        desired: after,
        cause: Cause::OverrideEnded,
    })
}

#[cfg(test)]
mod tests;
