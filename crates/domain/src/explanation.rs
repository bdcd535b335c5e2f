//! The whole chain for one resource at an instant: which rule names it, what wants what, what was
//! decided, and what comes next.
//!
//! It decides nothing by itself: each part comes from the functions that the service uses.

use jiff::Timestamp;
use serde::Serialize;

use crate::{
    configuration::{Override, Pattern, Target},
    decision::{
        Decision, DesiredEdge, LeaveReason, Observer, Rules, Verdict, Why, coming_edges, judge,
        observer,
    },
    membership::{self, Exclusion, Subject, Via},
    record::{Ask, Cause, Direction, Handled, ManualCommand, Phase, Rank, Record},
    reference::{AccountName, MachineName, ResourceRef, ScheduleName},
    schedule::{Desired, Evaluation},
};

/// Why a resource is, or will be, in its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// The instant that is explained.
    pub at: Timestamp,
    /// Every rule that may have a say, strongest first.
    pub levels: Vec<Level>,
    /// The schedule that the resource follows.
    pub schedule: Option<ScheduleName>,
    /// The zone in which that schedule judges days and times.
    pub timezone: Option<String>,
    /// What the schedule says by itself.
    pub evaluation: Option<Evaluation>,
    /// What is desired, all rules together; none where either state will do.
    pub desired: Option<Desired>,
    /// The latest edge of that desired state.
    pub edge: Option<EdgeExplanation>,
    /// The edge that was acted on, or acknowledged, last.
    pub handled: Option<Handled>,
    /// What is done about it.
    pub decision: DecisionExplanation,
    /// The scope that only observes, so that nothing is sent.
    pub observed_by: Option<Observer>,
    /// Whether it waits for a person's approval.
    pub held: bool,
    /// Whether `retain_running` leaves it running at the coming end edge.
    pub retained: bool,
    /// Whether the desired state is put back if anyone changes it.
    pub enforced: bool,
    /// What comes next.
    pub next: Next,
}

/// One rule of the order of precedence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Level {
    /// Which rule, and what it says.
    #[serde(flatten)]
    pub says: Says,
    /// Whether that counts.
    pub standing: Standing,
}

/// A rule, and what it says of the resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "level", rename_all = "kebab-case")]
pub enum Says {
    /// The account is not configured.
    NoAccount {
        /// Which.
        account: AccountName,
    },
    /// The account has no such machine any more.
    NoMachine {
        /// Which.
        machine: MachineName,
    },
    /// `protect`.
    Protect {
        /// The pattern that covers it.
        pattern: Option<Pattern>,
    },
    /// The tag that opts out.
    OptOut {
        /// Whether only the cluster carries it; none if nothing does.
        on_cluster: Option<bool>,
    },
    /// Offhours does not support it.
    Unsupported {
        /// Why.
        reason: String,
    },
    /// Another account reaches it as well.
    TwoAccounts {
        /// As what.
        other: ResourceRef,
    },
    /// The override of the resource itself.
    ResourceOverride {
        /// The last one that was set.
        set: Option<Override>,
    },
    /// The override of its schedule.
    ScheduleOverride {
        /// The last one that was set.
        set: Option<Override>,
    },
    /// A person's stop or start.
    Manual {
        /// The last one.
        command: Option<ManualCommand>,
    },
    /// The `resources` lists of schedules.
    List {
        /// The schedules that list it.
        names: Vec<String>,
    },
    /// Its own tag or label.
    Tag {
        /// What the tags name.
        names: Vec<String>,
    },
    /// Its cluster's tag.
    ClusterTag {
        /// What the tags name.
        names: Vec<String>,
    },
}

/// Whether what a rule says counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// It is the first that applies.
    Decides,
    /// It applies, and a stronger or later one wins.
    Overruled,
    /// It says nothing at this instant.
    Silent,
}

/// An edge of the desired state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EdgeExplanation {
    /// When; none if the desired state has always been so.
    pub at: Option<Timestamp>,
    /// The desired state from then on; none where either will do.
    pub to: Option<Desired>,
    /// What it comes from.
    pub cause: Cause,
}

/// What is done, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum DecisionExplanation {
    /// A stop or a start is due.
    Act {
        /// Which.
        direction: Direction,
        /// Why now.
        why: Why,
        /// Whether `retain_running` has the edge acknowledged, and nothing stopped.
        retained: bool,
    },
    /// The request of the transition under way is to be made again.
    AskAgain {
        /// Which.
        direction: Direction,
    },
    /// Nothing.
    Leave {
        /// Why not, as a word.
        reason: &'static str,
        /// Why not, for people.
        words: String,
    },
}

/// What comes next, as far as is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Next {
    /// The next edge that wants something.
    pub edge: Option<EdgeExplanation>,
    /// After a failure: not tried again before.
    pub retry_at: Option<Timestamp>,
    /// Under way: when it is looked at next.
    pub look_at: Option<Timestamp>,
    /// A request may be on its way until then; no other writer acts meanwhile.
    pub permit_until: Option<Timestamp>,
}

/// Explains a record as it is now by the rules at an instant.
#[must_use]
pub fn explain(record: &Record, rules: Rules<'_>, at: Timestamp) -> Explanation {
    let subject = Subject::recorded(record);
    let verdict = judge(record, subject, rules, at);
    let rule = verdict.membership.rule(rules.configuration);
    let policy = verdict.membership.policy(rules.configuration);
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
        next: next(record, &verdict, rules, at),
    }
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
        Decision::Leave(reason) => DecisionExplanation::Leave {
            reason: word(reason),
            words: reason.to_string(),
        },
    }
}

fn word(reason: &LeaveReason) -> &'static str {
    match reason {
        LeaveReason::Barred(exclusion) if exclusion.is_conflict() => "conflict",
        LeaveReason::Barred(_) => "barred",
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

fn next(record: &Record, verdict: &Verdict, rules: Rules<'_>, at: Timestamp) -> Next {
    let follows = verdict.opted_in && !matches!(record.phase, Phase::Gone { .. });
    let wanting = coming_edges(record, rules, at).find(|edge| edge.desired.is_some());
    let asked_again_at = record
        .request
        .as_ref()
        .and_then(|request| match request.ask {
            Ask::Failed { retry_at } => Some(retry_at),
            Ask::Open | Ask::Accepted { .. } | Ask::Done { .. } => None,
        });
    let in_flight = record.in_flight().is_some();
    let retry_at = if in_flight {
        asked_again_at
    } else {
        record.retry_at
    };
    let coming = |instant: &Timestamp| *instant > at;
    Next {
        edge: wanting.filter(|_| follows).as_ref().map(edge),
        retry_at: retry_at.filter(coming),
        look_at: record.due_at.filter(|_| in_flight).filter(coming),
        permit_until: record
            .permit
            .as_ref()
            .map(|permit| permit.until)
            .filter(coming),
    }
}

/// What each rule says, with its place in the order of precedence.
fn levels(record: &Record, verdict: &Verdict, rules: Rules<'_>, at: Timestamp) -> Vec<Level> {
    let subject = Subject::recorded(record);
    let mut levels = bars(subject, rules);
    let resource = Target::Resource(record.reference.clone());
    let schedule = verdict.membership.schedule().cloned().map(Target::Schedule);
    let set = |target: Option<Target>| {
        let one = target.and_then(|target| rules.overrides.of(&target));
        let applies = one.is_some_and(|one| one.is_active(at));
        (one.cloned(), applies)
    };
    let (of_resource, applies) = set(Some(resource));
    levels.push((Says::ResourceOverride { set: of_resource }, applies));
    let (of_schedule, applies) = set(schedule);
    levels.push((Says::ScheduleOverride { set: of_schedule }, applies));
    let command = record.manual_command.clone();
    let latest = verdict.edge.as_ref().map(|edge| edge.key.rank);
    let stands = verdict.opted_in && latest == Some(Rank::Manual);
    let given = command
        .as_ref()
        .is_some_and(|command| command.instant <= at);
    levels.push((Says::Manual { command }, stands));
    for via in Via::ALL {
        let names: Vec<_> = membership::names_by(via, subject, rules.configuration)
            .into_iter()
            .collect();
        let applies = !names.is_empty();
        let says = match via {
            Via::Listed => Says::List { names },
            Via::Tag => Says::Tag { names },
            Via::ClusterTag => Says::ClusterTag { names },
        };
        levels.push((says, applies));
    }
    let deciding = levels.iter().position(|(_, applies)| *applies);
    let standing = |(index, (says, applies)): (usize, (Says, bool))| {
        // A command that an override or a later edge overruled was given all the same.
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

/// What forbids touching the resource. `protect` and the opt-out are shown even where they say
/// nothing, because readers look for them.
fn bars(subject: Subject<'_>, rules: Rules<'_>) -> Vec<(Says, bool)> {
    let (mut bars, mut others) = (Vec::new(), Vec::new());
    let (mut pattern, mut on_cluster) = (None, None);
    for exclusion in membership::bars(subject, rules.configuration) {
        match exclusion {
            Exclusion::NoAccount(account) => bars.push((Says::NoAccount { account }, true)),
            Exclusion::NoMachine(machine) => bars.push((Says::NoMachine { machine }, true)),
            Exclusion::Protected(by) => pattern = Some(by),
            Exclusion::OptedOut { on_cluster: on } => on_cluster = Some(on),
            Exclusion::Unsupported(reason) => others.push((Says::Unsupported { reason }, true)),
            Exclusion::TwoAccounts(other) => others.push((Says::TwoAccounts { other }, true)),
            // A matter of lists and tags, which have entries of their own.
            Exclusion::TwoSchedules { .. } => {}
        }
    }
    let (protected, opted_out) = (pattern.is_some(), on_cluster.is_some());
    bars.extend([
        (Says::Protect { pattern }, protected),
        (Says::OptOut { on_cluster }, opted_out),
    ]);
    bars.extend(others);
    bars
}

#[cfg(test)]
mod tests;
