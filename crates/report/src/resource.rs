//! One resource as it is shown everywhere: what it is, what it follows, how it is, and what it needs.

use std::{borrow::Cow, collections::BTreeSet};

use domain::{
    AccountName, ResourceRef, ScheduleName,
    configuration::{Configuration, Override, OverrideTarget, Pause},
    decision::{
        Decision, InForce, LeaveReason, Rules, Verdict, judge, observer, override_of, pause_of,
    },
    explanation::{StandingCommand, next_edge, standing_command},
    hibernation::{MARK_LABEL, OF_LABEL},
    membership::{Membership, Subject, Via},
    order::Order,
    overdue::judged_overdue,
    reason::Reason,
    record::{Direction, Ending, Phase, Record},
    resource::{AutoscaleBounds, Power, SavedState},
    schedule::Desired,
    stop_method::StopMethod,
};
use jiff::{Timestamp, tz::TimeZone};
use schemars::JsonSchema;
use serde::Serialize;
use transition::event::watching;

use crate::{
    hibernated::Hibernated,
    nearest::advice,
    problems::{Problem, problems},
    state::{PhaseName, State, stands_until},
    time::short,
    unsent::Unsent,
};

/// One resource.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ResourceView {
    /// The resource.
    pub resource: ResourceRef,
    /// The account that reaches it.
    pub account: AccountName,
    /// Its name at the provider; not unique.
    pub name: String,
    /// Its plan, and how many nodes it has of it: `s-1vcpu-1gb`, `2 x s-4vcpu-8gb (1-3)`; null if
    /// there is none.
    pub size: Option<String>,
    /// Its region or location.
    pub region: String,
    /// Its tags, or its labels as `key=value`, and those of its cluster; without those that Offhours
    /// puts on what it creates.
    pub tags: BTreeSet<String>,
    /// The schedule that it follows; null if it follows none.
    pub schedule: Option<ScheduleName>,
    /// Why it follows its schedule, or why it follows none.
    pub because: String,
    /// The desired state now; null if either state will do.
    pub desired: Option<Desired>,
    /// Its phase.
    pub phase: PhaseName,
    /// Its state in a word or two: `running`, `stopping`, `stop stuck`. The reason is in
    /// `problems`.
    pub state: String,
    #[serde(skip)]
    pub power: Power,
    /// Why no change may be sent now, in the provider's words; null if one may be.
    pub busy: Option<String>,
    /// When the phase began, as far as the record shows; null if it does not.
    pub since: Option<Timestamp>,
    /// The next edge that has a desired state, or, while a manual command stands, another one; null
    /// if there is none.
    pub next: Option<NextEdge>,
    /// How a stop would stop it, by its schedule's methods, or by the defaults if it follows no
    /// schedule.
    pub method: StopMethod,
    /// The override that decides; null if none does.
    #[serde(rename = "override")]
    pub overridden: Option<Override>,
    /// The pause that applies to it; null if none does.
    pub paused: Option<Pause>,
    /// The manual command that it follows; null if it follows none.
    pub manual: Option<StandingCommand>,
    /// The saved state that a start will restore; null if there is none.
    pub saved: Option<SavedState>,
    /// What the machine is recreated from; omitted unless it is or was hibernated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hibernation: Option<Hibernated>,
    /// Since when it should have been in the desired state, if that is longer than its kind usually
    /// takes; null otherwise.
    pub overdue_since: Option<Timestamp>,
    /// What is not as it should be, the gravest first.
    pub problems: Vec<Problem>,
    /// The latest failure; null if there is none.
    pub last_error: Option<String>,
    /// What else is worth knowing; null if nothing is.
    pub remark: Option<String>,
    /// What its own Status operation shows; omitted if that was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<String>,
}

/// A coming edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NextEdge {
    /// When the desired state changes.
    pub at: Timestamp,
    /// The desired state from then on; null if either state will do.
    pub to: Option<Desired>,
    #[serde(flatten)]
    pub unsent: Unsent,
}

impl ResourceView {
    /// Builds the view of a record. Times in its words are in the zone of the screen.
    #[must_use]
    pub fn of(record: &Record, in_force: &InForce, zone: &TimeZone, now: Timestamp) -> Self {
        let rules = in_force.rules();
        let hibernation = Hibernated::of(record);
        let verdict = judge(record, Subject::recorded(record), rules, now);
        let manual = standing_command(record, &verdict, rules, now);
        let next = next_edge(record, &verdict, manual.as_ref(), rules, now).and_then(|edge| {
            let (at, to) = (edge.at?, edge.to);
            Some(NextEdge { at, to, unsent: Unsent::of(record, rules, to, at) })
        });
        let by_hand = manual.as_ref().map(|command| {
            let done = match command.desired {
                Desired::Running => "started",
                Desired::Stopped => "stopped",
            };
            let until = stands_until(command, verdict.membership.schedule(), zone, now);
            format!("{done} by {} {until}", command.by)
        });
        let remarks = remarks(record, hibernation.as_ref(), &verdict, rules, zone, now);
        let policy = verdict.membership.policy(rules.configuration);
        let state = State::of(record);
        let overdue = judged_overdue(record, &verdict, rules, in_force.since, now);
        let observed = record.observed.as_ref();
        Self {
            resource: record.reference.clone(),
            account: record.reference.account.clone(),
            name: record.name.clone(),
            size: size(record),
            region: record.region.clone(),
            tags: tags(record),
            schedule: verdict.membership.schedule().cloned(),
            because: because(&verdict, rules.configuration),
            desired: verdict.desired,
            phase: state.phase,
            state: state.words,
            power: state.power,
            busy: observed.and_then(|observed| observed.busy.clone()),
            since: state.since,
            next,
            method: StopMethod::of(record.kind(), &policy),
            overridden: override_of(record, rules, now).map(Cow::into_owned),
            paused: pause_of(record, rules, Direction::Stop, now).cloned(),
            manual,
            saved: record.saved.clone(),
            overdue_since: overdue.map(|overdue| overdue.since),
            problems: problems(record, &verdict, in_force, zone, now),
            last_error: record.last_error.as_ref().map(Reason::to_string),
            remark: in_one(by_hand.into_iter().chain(remarks)),
            hibernation,
            live: None,
        }
    }

    /// Adds what it waits for in the order of groups to its remark.
    #[must_use]
    pub fn waiting(self, wait: Option<String>) -> Self {
        Self { remark: in_one(wait.into_iter().chain(self.remark)), ..self }
    }

    /// What is left to a person; `None` if nothing is.
    #[must_use]
    pub fn needs_person(&self) -> Option<&Problem> {
        self.problems.first().filter(|problem| problem.needs_person)
    }

    /// The override that decides: until when, who set it, and why. `None` if none does.
    #[must_use]
    pub fn override_in_words(&self, zone: &TimeZone, now: Timestamp) -> Option<String> {
        let one = self.overridden.as_ref()?;
        let until = short(one.ends_at, zone, now);
        let why = one.why.as_ref().map(|why| format!(", {why}")).unwrap_or_default();
        let of = match one.target {
            OverrideTarget::Resource(_) => "override",
            OverrideTarget::Schedule(_) => "override of its schedule",
        };
        Some(format!("{of} until {until} ({}{why})", one.by))
    }

    /// What a start restores, in words.
    #[must_use]
    pub fn owed(&self) -> Option<String> {
        let asleep = || self.hibernation.as_ref().filter(|one| one.is_asleep());
        let saved = self.saved.as_ref().map(ToString::to_string);
        saved.or_else(|| asleep()?.as_it_was())
    }
}

/// The plan of a machine, of a database, or of a pool's nodes, and their number.
fn size(record: &Record) -> Option<String> {
    let plan = record.plan.as_deref()?;
    let observed = record.observed.as_ref().and_then(|observed| observed.size.as_ref());
    Some(match observed {
        Some(SavedState::Database { nodes, .. }) => format!("{nodes} x {plan}"),
        Some(SavedState::NodePool { count, autoscale: None }) => format!("{count} x {plan}"),
        Some(SavedState::NodePool { count, autoscale: Some(AutoscaleBounds { min, max }) }) => {
            format!("{count} x {plan} ({min}-{max})")
        }
        Some(SavedState::Machine(_)) | None => plan.to_owned(),
    })
}

fn tags(record: &Record) -> BTreeSet<String> {
    let is_mark = |tag: &&String| {
        let key = tag.split(['=', ':']).next();
        key == Some(MARK_LABEL) || key == Some(OF_LABEL)
    };
    let cluster = record.cluster.iter().flat_map(|cluster| &cluster.tags);
    record.tags.iter().chain(cluster).filter(|tag| !is_mark(tag)).cloned().collect()
}

/// Why a resource follows its schedule, or why it follows none.
fn because(verdict: &Verdict, configuration: &Configuration) -> String {
    match &verdict.membership {
        Membership::Member { via, .. } => match via {
            Via::Listed => "in the list of its schedule".to_owned(),
            Via::Tag => "by its tag".to_owned(),
            Via::ClusterTag => "by the tag of its cluster".to_owned(),
        },
        Membership::Unnamed if verdict.opted_in => {
            "no schedule names it; an override or a command covers it for now".to_owned()
        }
        Membership::Unnamed => "no schedule names it".to_owned(),
        Membership::Unknown { word, via } => {
            let known = configuration.schedules.keys().map(ScheduleName::as_str);
            let advice = advice(word, "schedules", known);
            format!("its {via} names no schedule: `{word}`; {advice}")
        }
        Membership::Excluded(exclusion) => exclusion.to_string(),
    }
}

/// Returns what a resource waits for in the order of groups, and until when; `None` if it waits for
/// nothing.
#[must_use]
pub fn wait_in_words(
    record: &Record,
    order: &Order<'_>,
    zone: &TimeZone,
    now: Timestamp,
) -> Option<String> {
    let wait = order.wait_now(record, now)?;
    let until = short(wait.until, zone, now);
    Some(format!("waits for {}, until {until} at most", wait.in_words(now)))
}

fn in_one(remarks: impl Iterator<Item = String>) -> Option<String> {
    let remarks: Vec<_> = remarks.collect();
    (!remarks.is_empty()).then(|| remarks.join("; "))
}

/// Why a machine runs on less than its own plan, or runs although its latest edge stops it.
fn runs_otherwise(record: &Record) -> Option<String> {
    if record.phase != (Phase::Settled { at: Power::Running }) {
        return None;
    }
    if let Some(saved @ SavedState::Machine(_)) = &record.saved {
        return Some(format!("on its small plan: its next start puts {saved} back"));
    }
    let (last, handled) = record.last.as_ref().zip(record.handled.as_ref())?;
    let is_left = matches!(last.ending, Ending::LeftRunning | Ending::TooLate);
    (is_left && last.key == handled.key).then(|| last.ending.to_string())
}

/// What else is worth knowing and needs no action.
fn remarks(
    record: &Record,
    hibernation: Option<&Hibernated>,
    verdict: &Verdict,
    rules: Rules<'_>,
    zone: &TimeZone,
    now: Timestamp,
) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Decision::Leave(reason @ (LeaveReason::Excluded(_) | LeaveReason::Gone)) =
        &verdict.decision
    {
        remarks.push(reason.to_string());
    }
    let rule = verdict.membership.rule(rules.configuration);
    if let Some(rule) = rule
        && observer(record, &rule.policy, rules.configuration).is_some()
    {
        remarks.push("observed only: nothing is sent".to_owned());
    }
    if let (Some(until), Some(transition)) = (record.watched_until(), record.in_flight()) {
        remarks.push(watching(transition.direction, until));
    }
    let asleep = hibernation.filter(|hibernated| hibernated.is_asleep());
    remarks.extend(asleep.map(|hibernated| hibernated.in_words(now)));
    remarks.extend(runs_otherwise(record));
    if let Some(at) = record.retry_at.filter(|&at| at > now) {
        remarks.push(format!("will retry at {}", short(at, zone, now)));
    }
    remarks
}
