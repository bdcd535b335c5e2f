//! The whole chain for one resource at an instant: which rule names it, what each rule wants, what
//! was decided, and what comes next.
//!
//! This module decides nothing by itself: each part comes from the functions that the service uses.

use jiff::Timestamp;
use serde::Serialize;

use crate::{
    configuration::{Override, Pattern, Selector, Target},
    decision::{
        Decision, DesiredEdge, LeaveReason, Observer, Rules, Verdict, Why, coming_edges, judge,
        next_change, observer,
    },
    membership::{self, Exclusion, Subject, Via},
    record::{Ask, Cause, Direction, Handled, ManualCommand, Phase, Rank, Record},
    reference::{AccountName, MachineName, ResourceRef, ScheduleName},
    schedule::{Desired, Evaluation},
};

/// Why a resource is, or will be, in its state at an instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// The instant that is explained.
    pub at: Timestamp,
    /// Every rule that may apply, strongest first.
    pub levels: Vec<Level>,
    /// The schedule that the resource follows; null if there is none.
    pub schedule: Option<ScheduleName>,
    /// The IANA name of the time zone in which that schedule's days and times are judged; null
    /// without a schedule.
    pub timezone: Option<String>,
    /// What the schedule alone asks for; null without a schedule.
    pub evaluation: Option<Evaluation>,
    /// The desired state after all rules; null if either state will do.
    pub desired: Option<Desired>,
    /// The latest edge of that desired state; null if there has never been one.
    pub edge: Option<EdgeExplanation>,
    /// The last edge that was acted on or acknowledged; null if there is none.
    pub handled: Option<Handled>,
    /// The manual command that the resource follows; null if it follows none.
    pub manual: Option<StandingCommand>,
    /// What Offhours does about it.
    pub decision: DecisionExplanation,
    /// The scope that is in observe mode, so that nothing is sent; null if none is.
    pub observed_by: Option<Observer>,
    /// Whether the resource waits for a person's approval.
    pub held: bool,
    /// Whether `retain_running` leaves the resource running at the next end edge.
    pub retained: bool,
    /// Whether the desired state is restored if anyone changes it.
    pub enforced: bool,
    /// What comes next.
    pub next: Next,
}

/// One rule in the order of precedence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Level {
    /// The rule, and what it says.
    #[serde(flatten)]
    pub says: Says,
    /// Whether the rule counts.
    pub standing: Standing,
}

/// A rule, and what it says about the resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "level", rename_all = "kebab-case")]
pub enum Says {
    /// The account is not configured.
    NoAccount {
        /// The account's name.
        account: AccountName,
    },
    /// The account no longer has this machine.
    NoMachine {
        /// The machine's name.
        machine: MachineName,
    },
    /// The patterns that the deployment protects.
    Deployment {
        /// The pattern that covers the resource.
        pattern: Pattern,
    },
    /// The patterns of `protect`.
    Protect {
        /// The pattern that covers the resource; null if none does.
        pattern: Option<Pattern>,
    },
    /// The tag or label that opts out.
    OptOut {
        /// Whether only the cluster carries the tag; null if neither the resource nor its cluster
        /// does.
        on_cluster: Option<bool>,
    },
    /// Offhours does not support the resource.
    Unsupported {
        /// Why it is not supported.
        reason: String,
    },
    /// Another account reaches the resource as well.
    TwoAccounts {
        /// The resource's reference in the other account.
        other: ResourceRef,
    },
    /// The override of the resource itself.
    ResourceOverride {
        /// The override that was set last, active or not; null if there is none.
        set: Option<Override>,
    },
    /// The override of the resource's schedule.
    ScheduleOverride {
        /// The override that was set last, active or not; null if there is none.
        set: Option<Override>,
    },
    /// A manual stop or start.
    Manual {
        /// The latest command; null if there is none.
        command: Option<ManualCommand>,
    },
    /// The `resources` lists of schedules.
    List {
        /// The schedules that list the resource.
        names: Vec<String>,
        /// The entries that name it: its reference, or names and patterns of names.
        by: Vec<Selector>,
    },
    /// The resource's own tag or label.
    Tag {
        /// The schedule names in the tags.
        names: Vec<String>,
    },
    /// The tag of the resource's cluster.
    ClusterTag {
        /// The schedule names in the tags.
        names: Vec<String>,
    },
}

/// Whether a rule counts at this instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// The first rule that applies.
    Decides,
    /// The rule applies, but a stronger or later one wins.
    Overruled,
    /// The rule says nothing at this instant.
    Silent,
}

/// An edge of the desired state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EdgeExplanation {
    /// When the desired state changes; null if it has always been so.
    pub at: Option<Timestamp>,
    /// The desired state from then on; null if either state will do.
    pub to: Option<Desired>,
    /// What causes the edge.
    pub cause: Cause,
}

/// What Offhours does, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum DecisionExplanation {
    /// A stop or a start is due.
    Act {
        /// Stop or start.
        direction: Direction,
        /// Why it is due now.
        why: Why,
        /// Whether `retain_running` only acknowledges the edge, so that nothing is stopped.
        retained: bool,
    },
    /// The request of the transition in flight is to be sent again.
    AskAgain {
        /// Stop or start.
        direction: Direction,
    },
    /// Nothing is done.
    Leave {
        /// The reason as a word, for programs.
        reason: &'static str,
        /// The reason in words, for people.
        words: String,
    },
}

/// A manual stop or start that a resource follows until it changes again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StandingCommand {
    /// The state that the command asked for.
    pub desired: Desired,
    /// Who gave it.
    pub by: String,
    /// When it was given.
    pub at: Timestamp,
    /// The edge at which the resource next changes its state; null if none does.
    pub until: Option<EdgeExplanation>,
}

/// What comes next, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Next {
    /// The next edge with a desired state, or, while a manual command stands, with another one; null
    /// if there is none.
    pub edge: Option<EdgeExplanation>,
    /// After a failure, the earliest time of the next attempt; null if nothing waits for one.
    pub retry_at: Option<Timestamp>,
    /// While a transition is in flight, when the resource is observed next; otherwise null.
    pub look_at: Option<Timestamp>,
    /// The instant until which a request may be in flight, and no other writer acts; null if there
    /// is none.
    pub permit_until: Option<Timestamp>,
}

/// Explains a record in its present state, under the rules at an instant.
#[must_use]
pub fn explain(record: &Record, rules: Rules<'_>, at: Timestamp) -> Explanation {
    let subject = Subject::recorded(record);
    let verdict = judge(record, subject, rules, at);
    let rule = verdict.membership.rule(rules.configuration);
    let policy = verdict.membership.policy(rules.configuration);
    let manual = standing_command(record, &verdict, rules, at);
    Explanation {
        at,
        levels: levels(record, &verdict, rules, at),
        schedule: verdict.membership.schedule().cloned(),
        timezone: rule.map(|rule| rule.schedule.definition().timezone.clone()),
        evaluation: rule.map(|rule| rule.schedule.explain(at)),
        desired: verdict.desired,
        edge: verdict.edge.as_ref().map(edge),
        handled: record.handled.clone(),
        decision: decision(&verdict.decision, policy.retain_running && record.retained),
        observed_by: observer(record, &policy, rules.configuration),
        held: record.held,
        retained: policy.retain_running && record.retained,
        enforced: policy.enforce,
        next: next(record, &verdict, manual.as_ref(), rules, at),
        manual,
    }
}

/// Returns the manual command that a resource follows at an instant, and until when. `None` if the
/// latest edge is no command, or if the resource is in another state all the same.
#[must_use]
pub fn standing_command(
    record: &Record,
    verdict: &Verdict,
    rules: Rules<'_>,
    at: Timestamp,
) -> Option<StandingCommand> {
    let command = record.manual_command.as_ref();
    let command = command.filter(|_| follows_command(verdict))?;
    let direction = Direction::towards(command.desired);
    let is_so = match &record.phase {
        Phase::Settled { at: power } => *power == direction.target_state(),
        Phase::InFlight { transition } => transition.direction == direction,
        Phase::Refused { .. } | Phase::Stuck { .. } | Phase::Gone { .. } => false,
    };
    is_so.then(|| StandingCommand {
        desired: command.desired,
        by: command.by.clone(),
        at: command.instant,
        until: next_change(record, rules, at, command.desired).as_ref().map(edge),
    })
}

/// Reports whether the latest edge is a person's command.
fn follows_command(verdict: &Verdict) -> bool {
    let latest = verdict.edge.as_ref().map(|edge| edge.key.rank);
    verdict.opted_in && latest == Some(Rank::Manual)
}

fn edge(edge: &DesiredEdge) -> EdgeExplanation {
    EdgeExplanation {
        at: Some(edge.key.instant).filter(|&at| at > Timestamp::UNIX_EPOCH),
        to: edge.desired,
        cause: edge.cause.clone(),
    }
}

fn decision(decision: &Decision, retained: bool) -> DecisionExplanation {
    match decision {
        Decision::Act(due) => DecisionExplanation::Act {
            direction: due.direction,
            why: due.why,
            retained: retained && due.direction == Direction::Stop && due.cause == Cause::Schedule,
        },
        &Decision::AskAgain(direction) => DecisionExplanation::AskAgain { direction },
        Decision::Leave(reason) => {
            DecisionExplanation::Leave { reason: word(reason), words: reason.to_string() }
        }
    }
}

fn word(reason: &LeaveReason) -> &'static str {
    match reason {
        LeaveReason::Excluded(exclusion) if exclusion.is_conflict() => "conflict",
        LeaveReason::Excluded(_) => "barred",
        LeaveReason::UnknownSchedule(_) => "unknown-schedule",
        LeaveReason::Unnamed => "unnamed",
        LeaveReason::Held => "held",
        LeaveReason::Adopting => "adopting",
        LeaveReason::Gone => "gone",
        LeaveReason::StaleReader => "handled-later",
        LeaveReason::Handled => "handled",
        LeaveReason::NothingDesired => "nothing-desired",
    }
}

fn next(
    record: &Record,
    verdict: &Verdict,
    manual: Option<&StandingCommand>,
    rules: Rules<'_>,
    at: Timestamp,
) -> Next {
    let asked_again_at = record.request.as_ref().and_then(|request| match request.ask {
        Ask::Failed { retry_at } => Some(retry_at),
        Ask::Open | Ask::Accepted { .. } | Ask::Done { .. } => None,
    });
    let in_flight = record.in_flight().is_some();
    let retry_at = if in_flight { asked_again_at } else { record.retry_at };
    let coming = |instant: &Timestamp| *instant > at;
    Next {
        edge: next_edge(record, verdict, manual, rules, at),
        retry_at: retry_at.filter(coming),
        look_at: record.due_at.filter(|_| in_flight).filter(coming),
        permit_until: record.permit.as_ref().map(|permit| permit.until).filter(coming),
    }
}

/// Returns the next edge to show: one with a desired state, or, while a manual command stands, with
/// another one.
#[must_use]
pub fn next_edge(
    record: &Record,
    verdict: &Verdict,
    manual: Option<&StandingCommand>,
    rules: Rules<'_>,
    at: Timestamp,
) -> Option<EdgeExplanation> {
    if let Some(command) = manual {
        return command.until.clone();
    }
    let follows = verdict.opted_in && !matches!(record.phase, Phase::Gone { .. });
    let wanting = coming_edges(record, rules, at).find(|edge| edge.desired.is_some());
    wanting.filter(|_| follows).as_ref().map(edge)
}

/// Returns what each rule says, in order of precedence, and whether it counts.
fn levels(record: &Record, verdict: &Verdict, rules: Rules<'_>, at: Timestamp) -> Vec<Level> {
    let subject = Subject::recorded(record);
    let mut levels = exclusion_levels(subject, rules);
    let resource = Target::Resource(record.reference.clone());
    let schedule = verdict.membership.schedule().cloned().map(Target::Schedule);
    let set = |target: Option<Target>| {
        let one = target.and_then(|target| rules.overrides.of(&target));
        let one = one.filter(|one| one.counts());
        let applies = one.is_some_and(|one| one.is_active(at));
        (one.cloned(), applies)
    };
    let (of_resource, applies) = set(Some(resource));
    levels.push((Says::ResourceOverride { set: of_resource }, applies));
    let (of_schedule, applies) = set(schedule);
    levels.push((Says::ScheduleOverride { set: of_schedule }, applies));
    let command = record.manual_command.clone();
    let stands = follows_command(verdict);
    let given = command.as_ref().is_some_and(|command| command.instant <= at);
    levels.push((Says::Manual { command }, stands));
    for via in Via::ALL {
        let names: Vec<_> =
            membership::names_by(via, subject, rules.configuration).into_iter().collect();
        let applies = !names.is_empty();
        let says = match via {
            Via::Listed => {
                let listing = subject.listing(rules.configuration);
                Says::List { names, by: listing.map(|(_, by)| by).collect() }
            }
            Via::Tag => Says::Tag { names },
            Via::ClusterTag => Says::ClusterTag { names },
        };
        levels.push((says, applies));
    }
    let deciding = levels.iter().position(|(_, applies)| *applies);
    let standing = |(index, (says, applies)): (usize, (Says, bool))| {
        // A command that an override or a later edge overruled was still given.
        let said = applies || given && matches!(says, Says::Manual { .. });
        let standing = match (deciding == Some(index), said) {
            (true, _) => Standing::Decides,
            (false, true) => Standing::Overruled,
            (false, false) => Standing::Silent,
        };
        Level { says, standing }
    };
    levels.into_iter().enumerate().map(standing).collect()
}

/// Returns what forbids touching the resource. `protect` and the opt-out are included even if they
/// do not apply, because readers look for them.
fn exclusion_levels(subject: Subject<'_>, rules: Rules<'_>) -> Vec<(Says, bool)> {
    let (mut levels, mut others) = (Vec::new(), Vec::new());
    let (mut pattern, mut on_cluster) = (None, None);
    for exclusion in membership::exclusions(subject, rules.configuration) {
        match exclusion {
            Exclusion::NoAccount(account) => levels.push((Says::NoAccount { account }, true)),
            Exclusion::NoMachine(machine) => levels.push((Says::NoMachine { machine }, true)),
            Exclusion::ProtectedByDeployment(pattern) => {
                levels.push((Says::Deployment { pattern }, true));
            }
            Exclusion::Protected(by) => pattern = Some(by),
            Exclusion::OptedOut { on_cluster: on } => on_cluster = Some(on),
            Exclusion::Unsupported(reason) => others.push((Says::Unsupported { reason }, true)),
            Exclusion::TwoAccounts(other) => others.push((Says::TwoAccounts { other }, true)),
            // Lists and tags have entries of their own.
            Exclusion::TwoSchedules { .. } => {}
        }
    }
    let (protected, opted_out) = (pattern.is_some(), on_cluster.is_some());
    levels
        .extend([(Says::Protect { pattern }, protected), (Says::OptOut { on_cluster }, opted_out)]);
    levels.extend(others);
    levels
}

#[cfg(test)]
mod tests;
