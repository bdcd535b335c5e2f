//! The near-term consequences of applying a configuration, resource by resource.

use std::collections::BTreeMap;

use domain::{
    AccountName, ResourceId, ResourceRef, ScheduleName,
    account::AccountState,
    configuration::{
        Account, Configuration, Mode, Override, OverrideTarget, Pattern, Pause, PauseScope,
        Selector,
    },
    decision::{Decision, DesiredEdge, LeaveReason, Rules, Verdict, judge, mode, override_of},
    explanation::coming,
    joining::join_all,
    left_behind::{barrier, coverage},
    left_running::is_left_running,
    membership::{Exclusion, Membership, Subject},
    record::{Direction, Phase, Record},
    renaming::joined,
    resource::SavedState,
    schedule::Desired,
    stop_method::StopMethod,
};
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{Named, unsent::Unsent};

/// How far ahead stops and starts are shown.
pub const SOON: SignedDuration = SignedDuration::from_mins(15);

/// What applying a configuration leads to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Consequences {
    /// The stops and starts within the next minutes, soonest first.
    pub soon: Vec<Soon>,
    /// Resources that would follow a different schedule, or none any more, or one for the first
    /// time.
    pub moves: Vec<ScheduleChange>,
    /// Resources that Offhours holds stopped, or owes a size, and that nothing would cover any
    /// more.
    pub stranded: Vec<Stranded>,
    /// Resources that the deployment protects by the name that their account has now, and would not
    /// by the new one.
    pub unprotected: Vec<Unprotected>,
    /// Overrides that would end before their time, or never begin, because what they apply to goes.
    pub lapsing: Vec<Override>,
    /// Pauses that would end before their time, for the same reason.
    pub lapsing_pauses: Vec<Pause>,
    /// Resources that a second account would reach, so that nothing would be sent for them.
    pub twice: Vec<[ResourceRef; 2]>,
    /// Resources that would join a schedule with too many others of their account at once, and would
    /// be left alone until a person approves them, by account.
    pub held: BTreeMap<AccountName, Vec<ResourceRef>>,
    /// Resources that two schedules would name, so that nothing would be sent for them.
    pub conflicts: Vec<Conflict>,
    /// Names that a schedule would list anew, and that no known resource has.
    pub unmatched: Vec<Unmatched>,
    /// Schedules that cut the power of their Droplets without a shutdown.
    pub hard_cuts: Vec<ScheduleName>,
}

/// A stop or a start in the near future.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Soon {
    /// When it happens; for what is due at once, the instant of applying.
    pub at: Timestamp,
    /// Stop or start.
    pub direction: Direction,
    /// The resource.
    #[serde(flatten)]
    pub resource: Named,
    /// How the resource is stopped; null for a start.
    pub method: Option<StopMethod>,
    /// Whether it is only reported, because of observe mode.
    pub observed_only: bool,
}

/// A resource that would follow a different schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ScheduleChange {
    /// The resource.
    #[serde(flatten)]
    pub resource: Named,
    /// The schedule that it follows now; null if there is none.
    pub from: Option<ScheduleName>,
    /// The schedule that it would follow; null if there is none.
    pub to: Option<ScheduleName>,
}

/// A resource that would be left stopped or small, with nothing to restore it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and a field of what programs read"
)]
pub struct Stranded {
    /// The resource.
    #[serde(flatten)]
    pub resource: Named,
    /// The state that is stored to be restored; null if there is none.
    pub saved: Option<SavedState>,
    /// Whether only its record says how to recreate it: it may be hibernated, or lacks something
    /// that it had.
    pub only_recorded: bool,
    /// Why nothing would cover it.
    pub reason: String,
    /// Whether that has to end before a person can start it with Offhours.
    pub barred: bool,
    /// Whether its account is removed, or the machine from its account, so that Offhours can no
    /// longer start it.
    pub account_goes: bool,
    /// Whether a command to start it would be declined or undone under the configuration in force.
    #[serde(skip)]
    pub resists: bool,
}

/// A resource that the deployment would no longer protect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unprotected {
    /// The resource.
    #[serde(flatten)]
    pub resource: Named,
    /// The pattern of the deployment that covers it now.
    pub pattern: Pattern,
}

/// A resource that two schedules would name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Conflict {
    /// The resource.
    #[serde(flatten)]
    pub resource: Named,
    /// Which schedules name it, in words.
    pub reason: String,
}

/// A name in a schedule's `resources` that no known resource has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Unmatched {
    /// The schedule that lists it.
    pub schedule: ScheduleName,
    /// The name or the pattern of names.
    pub name: Selector,
}

impl Consequences {
    /// Judges each record under the rules in force and under the new ones. An account's first inventory
    /// holds nothing, so what is known of the accounts decides as well.
    #[must_use]
    pub fn of(
        records: &[Record],
        old: Rules<'_>,
        new: Rules<'_>,
        accounts: &BTreeMap<AccountName, AccountState>,
        now: Timestamp,
    ) -> Self {
        let mut all = Self::default();
        let mut joined = carried_over(records, new.configuration);
        all.twice = twice(&joined, new.configuration);
        let standing = old.overrides.iter().filter(|one| now < one.ends_at && one.counts());
        all.lapsing = standing.filter(|one| lapses(one, new.configuration)).cloned().collect();
        let pauses = old.overrides.pauses().filter(|one| one.is_active(now));
        let lapsing = pauses.filter(|one| is_pointless(&one.scope, new.configuration));
        all.lapsing_pauses = lapsing.cloned().collect();
        for account in joined.chunk_by_mut(|a, b| a.reference.account == b.reference.account) {
            all.held.extend(join(account, new, accounts, now));
        }
        for record in &joined {
            if matches!(record.phase, Phase::Gone { .. }) {
                continue;
            }
            let known_as =
                Record { reference: former(&record.reference, old, new), ..record.clone() };
            let before = judge(&known_as, Subject::recorded(&known_as), old, now);
            let after = judge(record, Subject::recorded(record), new, now);
            all.soon.extend(soon(record, &after, new, now));
            all.hard_cuts.extend(hard_cut(record, &after, new));
            all.moves.extend(moved(record, &before, &after));
            all.conflicts.extend(conflict(record, &before, &after));
            all.unprotected.extend(unprotected(&known_as, &before, &after));
            let account_goes = is_configured(&known_as, old) && !is_configured(record, new);
            let uncovered_now = coverage(record, new, now) < coverage(&known_as, old, now);
            if record.is_held_stopped() && (account_goes || uncovered_now) {
                let barrier = barrier(record, new.configuration);
                all.stranded.push(Stranded {
                    resource: Named::from(&known_as),
                    saved: record.saved.clone(),
                    only_recorded: record.is_irreplaceable(),
                    reason: barrier.as_ref().map_or_else(|| uncovered(&after), ToString::to_string),
                    barred: barrier.is_some(),
                    account_goes,
                    resists: resists(&known_as, &before, old, now),
                });
            }
        }
        let present = joined.iter().filter(|one| !matches!(one.phase, Phase::Gone { .. }));
        all.unmatched = unmatched_names(&present, new.configuration);
        let is_new = |one: &Unmatched| !lists(old.configuration, one);
        all.unmatched.retain(is_new);
        all.soon.sort();
        all.hard_cuts.sort();
        all.hard_cuts.dedup();
        all
    }
}

/// Reports whether nothing is left that an override applies to.
fn lapses(one: &Override, new: &Configuration) -> bool {
    match &one.target {
        OverrideTarget::Schedule(name) => !new.schedules.contains_key(name),
        OverrideTarget::Resource(reference) => {
            let account = new.renamed(reference).account;
            !new.accounts.contains_key(&account)
        }
    }
}

/// Reports whether nothing is left that a pause applies to.
fn is_pointless(scope: &PauseScope, new: &Configuration) -> bool {
    match scope {
        PauseScope::Schedule(name) => !new.schedules.contains_key(name),
        PauseScope::Account(name) => !new.accounts.contains_key(new.present_name(name)),
        PauseScope::Everything | PauseScope::Tag(_) => false,
    }
}

/// Returns the resources that two accounts would reach, unless they do already. A provider uses an
/// id once; machines over SSH have only the names that their accounts give them.
fn twice(records: &[Record], new: &Configuration) -> Vec<[ResourceRef; 2]> {
    let reached = records.iter().filter(|record| {
        let account = new.accounts.get(&record.reference.account);
        let cloud = account.and_then(Account::cloud);
        let is_there = !matches!(record.phase, Phase::Gone { .. });
        is_there && cloud.is_some_and(|cloud| cloud.covers(&record.region))
    });
    let mut by_id: BTreeMap<_, &Record> = BTreeMap::new();
    let mut twice = Vec::new();
    for record in reached {
        let Some(first) = by_id.insert(&record.reference.id, record) else {
            continue;
        };
        let known = first.duplicate_of.is_some() || record.duplicate_of.is_some();
        if !known {
            twice.push([first, record].map(|one| one.reference.clone()));
        }
    }
    twice
}

/// Returns the records under the names that their accounts would have, each resource once, account
/// by account.
fn carried_over(records: &[Record], new: &Configuration) -> Vec<Record> {
    let (renamed, own): (Vec<_>, Vec<_>) =
        records.iter().partition(|record| new.renamed(&record.reference) != record.reference);
    let mut all: BTreeMap<_, Record> =
        own.into_iter().map(|record| (record.reference.clone(), record.clone())).collect();
    for old in renamed {
        let reference = new.renamed(&old.reference);
        let (record, _) = joined(old, all.get(&reference), reference.clone());
        all.insert(reference, record);
    }
    all.into_values().collect()
}

/// Returns a resource's reference under the rules in force.
fn former(reference: &ResourceRef, old: Rules<'_>, new: Rules<'_>) -> ResourceRef {
    let accounts = &old.configuration.accounts;
    let mut renames = new.configuration.renames();
    let account = match renames.find(|(_, present)| **present == reference.account) {
        Some((was, _)) if !accounts.contains_key(&reference.account) => was,
        Some(_) | None => &reference.account,
    };
    ResourceRef { account: account.clone(), id: reference.id.clone() }
}

/// Joins the records of one account as applying would, and returns those that it would hold.
fn join(
    records: &mut [Record],
    new: Rules<'_>,
    accounts: &BTreeMap<AccountName, AccountState>,
    now: Timestamp,
) -> Option<(AccountName, Vec<ResourceRef>)> {
    let account = records.first()?.reference.account.clone();
    if !new.configuration.accounts.contains_key(&account) {
        return None;
    }
    let was_held: Vec<_> = records.iter().map(|record| record.held).collect();
    join_all(records, new, now);
    if !new.configuration.was_listed(&account, accounts) {
        records.iter_mut().zip(&was_held).for_each(|(record, &was_held)| record.held = was_held);
    }
    let held = records.iter().zip(was_held);
    let held = held.filter(|(record, was_held)| record.held && !was_held);
    let held: Vec<_> = held.map(|(record, _)| record.reference.clone()).collect();
    (!held.is_empty()).then_some((account, held))
}

fn is_configured(record: &Record, rules: Rules<'_>) -> bool {
    let Some(account) = rules.configuration.accounts.get(&record.reference.account) else {
        return false;
    };
    let ResourceId::Machine(name) = &record.reference.id else {
        return true;
    };
    account.machine(name).is_some()
}

/// Reports whether an enforced schedule or an override would decline or undo a command to start it.
fn resists(record: &Record, verdict: &Verdict, rules: Rules<'_>, now: Timestamp) -> bool {
    let rule = verdict.membership.rule(rules.configuration);
    let enforced = rule.is_some_and(|rule| rule.policy.enforce);
    let overridden =
        override_of(record, rules, now).is_some_and(|one| one.desired == Desired::Stopped);
    enforced || overridden
}

/// Returns why nothing would start it again.
fn uncovered(verdict: &Verdict) -> String {
    match &verdict.membership {
        Membership::Excluded(exclusion) => exclusion.to_string(),
        Membership::Unknown { word, .. } => LeaveReason::UnknownSchedule(word.clone()).to_string(),
        // A command or an override that applies now starts nothing later.
        Membership::Unnamed | Membership::Member { .. } => LeaveReason::Unnamed.to_string(),
    }
}

fn moved(record: &Record, before: &Verdict, after: &Verdict) -> Option<ScheduleChange> {
    let from = before.membership.schedule();
    let to = after.membership.schedule();
    (from != to).then(|| ScheduleChange {
        resource: record.into(),
        from: from.cloned(),
        to: to.cloned(),
    })
}

/// Returns a conflict between two schedules that does not exist yet.
fn conflict(record: &Record, before: &Verdict, after: &Verdict) -> Option<Conflict> {
    let Membership::Excluded(exclusion @ Exclusion::TwoSchedules { .. }) = &after.membership else {
        return None;
    };
    let is_new = before.membership != after.membership;
    is_new.then(|| Conflict { resource: record.into(), reason: exclusion.to_string() })
}

/// Returns a resource that the deployment protects by a name that it would no longer have.
fn unprotected(known_as: &Record, before: &Verdict, after: &Verdict) -> Option<Unprotected> {
    let Membership::Excluded(Exclusion::ProtectedByDeployment(pattern)) = &before.membership else {
        return None;
    };
    let is_safe = matches!(
        after.membership,
        Membership::Excluded(Exclusion::ProtectedByDeployment(_) | Exclusion::NoAccount(_))
    );
    let unprotected = Unprotected { resource: known_as.into(), pattern: pattern.clone() };
    (!is_safe).then_some(unprotected)
}

/// Returns the names in schedules' lists that none of these resources has.
pub fn unmatched_names<'r>(
    records: &(impl Iterator<Item = &'r Record> + Clone),
    configuration: &Configuration,
) -> Vec<Unmatched> {
    let is_unmatched = |entry: &&Selector| match entry {
        Selector::Reference(_) => false,
        Selector::Name(name) => {
            !records.clone().any(|record| Subject::recorded(record).is_named_by(name))
        }
    };
    let unmatched = configuration.schedules.iter().flat_map(|(schedule, rule)| {
        let names = rule.resources.iter().filter(is_unmatched);
        names.map(|name| Unmatched { schedule: schedule.clone(), name: name.clone() })
    });
    unmatched.collect()
}

fn lists(configuration: &Configuration, one: &Unmatched) -> bool {
    let rule = configuration.schedules.get(&one.schedule);
    rule.is_some_and(|rule| rule.resources.contains(&one.name))
}

/// Returns the first stop or start of a record within the next minutes that changes something.
fn soon(record: &Record, verdict: &Verdict, rules: Rules<'_>, now: Timestamp) -> Option<Soon> {
    if !verdict.opted_in || record.held {
        return None;
    }
    let is_sent = |edge: &DesiredEdge, at| {
        let unsent = Unsent::of(record, rules, edge.desired, at);
        unsent.paused_until.is_none() && !is_left_running(record, rules, edge, at)
    };
    let due = match &verdict.decision {
        Decision::Act(_) => verdict.edge.iter().find(|edge| is_sent(edge, now)),
        Decision::AskAgain(_) | Decision::Leave(_) => None,
    };
    let due = due.and_then(|edge| Some((now, Direction::towards(edge.desired?))));
    let is_there = |direction: Direction| match &record.phase {
        // A start restores what is saved, whatever the power says.
        Phase::Settled { at } => {
            *at == direction.target_state()
                && (direction == Direction::Stop || record.saved.is_none())
        }
        Phase::InFlight { transition } => transition.direction == direction,
        Phase::Refused { .. } | Phase::Stuck { .. } | Phase::Gone { .. } => false,
    };
    let coming = coming(record, rules, now)
        .take_while(|edge| edge.key.instant <= now + SOON)
        .filter(|edge| is_sent(edge, edge.key.instant))
        .filter_map(|edge| Some((edge.key.instant, Direction::towards(edge.desired?))));
    let (at, direction) = due.into_iter().chain(coming).find(|(_, d)| !is_there(*d))?;
    let policy = verdict.membership.policy(rules.configuration);
    Some(Soon {
        at,
        direction,
        resource: record.into(),
        method: (direction == Direction::Stop).then(|| StopMethod::of(record.kind(), &policy)),
        observed_only: mode(record, &policy, rules.configuration) == Mode::Observe,
    })
}

/// Returns the schedule of a machine whose power is cut without a shutdown.
fn hard_cut(record: &Record, verdict: &Verdict, rules: Rules<'_>) -> Option<ScheduleName> {
    let policy = verdict.membership.policy(rules.configuration);
    let name = verdict.membership.schedule()?;
    let switched_off = StopMethod::to_switch_off(record.kind(), &policy);
    (switched_off == StopMethod::PowerOff).then(|| name.clone())
}

#[cfg(test)]
mod tests {
    use domain::configuration::{Overrides, Pause};

    use super::*;
    use crate::scene::{OFFICE, in_force, monday, pool, web};

    /// When a Droplet and a node pool of `office` are stopped or started soon by an apply.
    fn soon_of(overrides: Overrides, now: &str) -> Vec<(Timestamp, Direction, String)> {
        let in_force = domain::decision::InForce { overrides, ..in_force(OFFICE) };
        let pool = pool(
            "do-main/node-pool/1bb8e7d2-4d0c-4a5b-9a53-1c5e0d3f2a11/\
                         2bb8e7d2-4d0c-4a5b-9a53-1c5e0d3f2a11",
            "pool",
            &["offhours:office"],
        );
        let (rules, now) = (in_force.rules(), monday(now));
        let all = Consequences::of(&[web(), pool], rules, rules, &BTreeMap::new(), now);
        let of = |one: Soon| (one.at, one.direction, one.resource.name);
        all.soon.into_iter().map(of).collect()
    }

    #[test]
    fn what_starts_again_too_soon_is_not_stopped_by_an_apply() {
        let stops = |time, names: &[&str]| {
            let of = |name: &&str| (monday(time), Direction::Stop, (*name).to_owned());
            names.iter().map(of).collect::<Vec<_>>()
        };
        let both = ["web", "pool"];
        assert_eq!(soon_of(Overrides::default(), "07:29:00"), stops("07:29:00", &both));
        assert_eq!(soon_of(Overrides::default(), "07:31:00"), stops("07:31:00", &["web"]));
        assert_eq!(soon_of(Overrides::default(), "17:50:00"), stops("18:00:00", &both));
        let pause = |until| {
            let (set_at, ends_at) = (monday("17:00:00"), monday(until));
            let (by, why) = ("ada".to_owned(), "release".to_owned());
            let pause =
                Pause { scope: PauseScope::Everything, starts: false, set_at, ends_at, by, why };
            Overrides::default().with_pauses([pause])
        };
        assert_eq!(soon_of(pause("18:02:00"), "17:50:00"), stops("18:02:00", &both));
        assert_eq!(soon_of(pause("18:20:00"), "17:50:00"), []);
        assert_eq!(soon_of(pause("18:20:00"), "18:10:00"), stops("18:20:00", &both));
    }
}
