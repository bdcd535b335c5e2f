//! Watches every write and every request of a night, and holds them to what Offhours promises. It
//! shares no code with the handlers: it knows the tables' items, the clouds' log and their state.

mod disks;
mod history;
mod kept;
mod requests;
mod rules;
mod settled;
mod whole;
mod writes;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use cloud_simulator::{Act, Simulator};
use domain::{
    AccountName, ResourceId, ResourceRef,
    configuration::{Override, Target},
    history::HistoryEntry,
    invocation::{CommandTarget, Invocation},
    record::Record,
};
use jiff::{SignedDuration, Timestamp};
use lifecycle::Outcome;
use serde_json::Value;

use crate::{
    clockwork::{TaskId, Time},
    night::Setup,
    trace::{Actor, Trace},
};
use disks::Disk;
use whole::Whole;

/// By how much two clocks may differ, and how long an answer may take besides.
const SLACK: SignedDuration = SignedDuration::from_secs(15);

/// The observer of one night. Cloning gives the same one.
#[derive(Debug, Clone)]
pub(crate) struct Observer(Arc<Mutex<State>>);

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) time: Time,
    pub(crate) simulator: Simulator,
    pub(crate) trace: Trace,
    /// The records as they are stored now.
    pub(crate) records: BTreeMap<ResourceRef, Record>,
    /// When each account was last listed whole and last tried, and whether that failed.
    pub(crate) accounts: BTreeMap<String, Account>,
    /// Who works in the tasks that live, and as which writer.
    pub(crate) tasks: BTreeMap<TaskId, (Actor, String)>,
    pub(crate) last_change: Timestamp,
    pub(crate) store_requests: u64,
    pub(crate) cloud_requests: u64,
    pub(crate) violation: Option<String>,
    /// What was seen to happen, and how often.
    pub(crate) counts: BTreeMap<&'static str, u64>,
    /// What is applied next, what holds since when, and what held before.
    applying: Option<Setup>,
    setup: Setup,
    before: Setup,
    applied_at: Timestamp,
    /// Since when accounts that were configured are not configured any more.
    away: BTreeMap<AccountName, Timestamp>,
    /// When a plan was last withdrawn or given back.
    offered_at: Timestamp,
    overrides: BTreeMap<Target, Override>,
    resources: BTreeMap<ResourceRef, Watched>,
    /// The latest log entry that was taken in.
    seen_in_log: u64,
    /// Changes that the clouds took and no history item covers yet.
    unexplained: VecDeque<Taken>,
    /// Machines that were made again, and which ones they are.
    made: BTreeMap<ResourceRef, ResourceRef>,
    disks: BTreeMap<ResourceRef, Disk>,
    /// Since when each machine that was made from a snapshot has been seen to run.
    ran_since: BTreeMap<u64, Timestamp>,
    /// The snapshots from which a machine was made that ran for some time.
    proven: BTreeSet<u64>,
    /// The snapshots that people have made.
    of_people: BTreeSet<(AccountName, u64)>,
    /// The latest history items of each resource.
    history: BTreeMap<ResourceRef, HistoryEntry>,
    /// The transactions that took effect, by their tokens: none does so again when it is repeated.
    transactions: BTreeSet<String>,
}

/// A change that a cloud took.
#[derive(Debug, Clone)]
struct Taken {
    at: Timestamp,
    resource: ResourceRef,
    described: String,
}

/// What is known of one resource besides its record.
#[derive(Debug, Clone, Default)]
struct Watched {
    /// When a person last changed its power, size or tags, or it was created.
    person_at: Option<Timestamp>,
    /// When a person last switched on a machine that was off.
    switched_on_at: Option<Timestamp>,
    /// When a person last gave a command for it.
    commanded_at: Option<Timestamp>,
    /// Since when it must not be touched.
    barred_since: Option<Timestamp>,
    /// The size that it had, or is being given.
    size: Option<Whole>,
    /// What must be put back.
    owed: Option<Whole>,
    /// The plans to which a stop has moved the machine since.
    small: BTreeSet<String>,
    /// The plans that people have given it since: any of these will do instead.
    chosen: BTreeSet<String>,
    /// Whether `retain_running` kept it running, and no transition has begun since.
    retained: bool,
    /// When a cloud last took a shutdown from us.
    shutdown_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Account {
    pub(crate) listed_at: Option<Timestamp>,
    pub(crate) tried_at: Option<Timestamp>,
    pub(crate) has_error: bool,
}

impl Observer {
    pub(crate) fn new(time: Time, simulator: Simulator, trace: Trace) -> Self {
        let now = time.now();
        Self(Arc::new(Mutex::new(State {
            time,
            simulator,
            trace,
            records: BTreeMap::new(),
            accounts: BTreeMap::new(),
            tasks: BTreeMap::new(),
            last_change: now,
            store_requests: 0,
            cloud_requests: 0,
            violation: None,
            counts: BTreeMap::new(),
            applying: None,
            setup: Setup::default(),
            before: Setup::default(),
            applied_at: now,
            away: BTreeMap::new(),
            offered_at: Timestamp::MIN,
            overrides: BTreeMap::new(),
            resources: BTreeMap::new(),
            seen_in_log: 0,
            unexplained: VecDeque::new(),
            made: BTreeMap::new(),
            disks: BTreeMap::new(),
            ran_since: BTreeMap::new(),
            proven: BTreeSet::new(),
            of_people: BTreeSet::new(),
            history: BTreeMap::new(),
            transactions: BTreeSet::new(),
        })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note(&self, actor: Actor, text: impl FnOnce() -> String) {
        self.lock().note(actor, text);
    }

    pub(crate) fn note_fault(&self, fault: &str, at: &str) {
        self.note(Actor::Fault, || format!("{fault}: {at}"));
    }

    /// Something changed other than by a write or a request.
    pub(crate) fn changed(&self) {
        let mut state = self.lock();
        state.last_change = state.time.now();
        state.look_at_all();
        state.look_at_disks();
    }

    /// A person is about to apply this.
    pub(crate) fn applying(&self, setup: &Setup) {
        self.lock().applying = Some(setup.clone());
    }

    /// A person is about to act.
    pub(crate) fn person_acts(&self, resource: &ResourceRef, act: &Act) {
        let mut state = self.lock();
        let now = state.time.now();
        let watched = state.watched(resource);
        let changes_nothing_yet = matches!(
            act,
            Act::Rename { .. } | Act::TakeRoom { .. } | Act::BreakCopies { .. }
        );
        if !changes_nothing_yet {
            watched.person_at = Some(now);
            watched.switched_on_at = None;
        }
        if matches!(act, Act::Resize { .. } | Act::Scale { .. } | Act::Delete) {
            watched.owed = None;
            watched.size = None;
        }
        if *act == Act::Delete {
            state.person_deleted(resource);
        }
    }

    /// A person is about to delete a snapshot of a machine.
    pub(crate) fn snapshot_deleted(&self, resource: &ResourceRef) {
        let mut state = self.lock();
        if state.state_of(resource).is_none() {
            state.person_deleted(resource);
        }
        let now = state.time.now();
        state.watched(resource).person_at = Some(now);
    }

    /// A person has labelled the snapshots of a machine.
    pub(crate) fn snapshots_labelled(&self, resource: &ResourceRef) {
        let mut state = self.lock();
        let now = state.time.now();
        state.watched(resource).person_at = Some(now);
    }

    /// Counts the snapshots that are complete, and that no list ever shows.
    pub(crate) fn count_unlisted(&self) {
        let mut state = self.lock();
        let long_after = state.time.now() + SignedDuration::from_hours(10_000);
        for image in state.simulator.images() {
            let listed = image["listed"].as_str().and_then(|at| at.parse().ok());
            if listed.is_some_and(|at: Timestamp| at > long_after) {
                state.count("a snapshot is never listed");
            }
        }
    }

    /// The resource as its cloud knows it now, and the labels by which we find it again.
    pub(crate) fn present(&self, resource: &ResourceRef) -> (ResourceRef, Vec<String>) {
        let state = self.lock();
        (state.present(resource), state.marks(resource))
    }

    /// A cloud took a person's act.
    pub(crate) fn person_acted(&self, resource: &ResourceRef, act: &Act) {
        let mut state = self.lock();
        let now = state.time.now();
        let watched = state.watched(resource);
        if let Act::ChangePlan { plan, .. } = act
            && watched.owed.is_some()
        {
            watched.chosen.insert(plan.clone());
        }
        // A Droplet that runs refuses it.
        if *act == Act::PowerOn && matches!(resource.id, ResourceId::Droplet(_)) {
            watched.switched_on_at = Some(now);
        }
    }

    /// A cloud is about to withdraw a plan, or to give it back.
    pub(crate) fn offers_change(&self) {
        let mut state = self.lock();
        state.offered_at = state.time.now();
        state.last_change = state.offered_at;
    }

    /// A person is about to give a command.
    pub(crate) fn commanded(&self, command: &Invocation) {
        let mut state = self.lock();
        let now = state.time.now();
        if let Invocation::Command(command) = command
            && let CommandTarget::Resources(resources) = &command.target
        {
            for resource in resources {
                state.watched(resource).commanded_at = Some(now);
            }
        }
    }

    /// What a function reports.
    pub(crate) fn heard(&self, actor: Actor, outcome: &Outcome) {
        let mut state = self.lock();
        state.note(actor, || format!("reports {outcome:?}"));
        state.check_report(outcome);
    }

    /// A change is on its way to a cloud.
    pub(crate) fn before_change(&self, account: &AccountName, path: &str, body: &str, by: TaskId) {
        let mut state = self.lock();
        let actor = state.actor(by);
        state.last_change = state.time.now();
        state.note(actor, || format!("sends {path} {body}"));
        state.check_request(account, path, body, by);
    }

    /// A cloud answered, or not.
    pub(crate) fn after_request(
        &self,
        path: &str,
        changes: bool,
        faulty: bool,
        answer: Option<&http::Response<Bytes>>,
    ) {
        let mut state = self.lock();
        state.cloud_requests += 1;
        let status = answer.map(|answer| answer.status().as_u16());
        if changes || state.trace.has_reads() {
            state.note(Actor::Cloud, || format!("{path}: {status:?}"));
        }
        if changes {
            state.take_in_log();
            state.look_at_disks();
        }
        if status == Some(429) && !faulty {
            state.violated(format!("the account's own limit was exceeded by {path}"));
        }
    }

    /// A request to the store took effect.
    pub(crate) fn wrote(&self, operation: &str, body: &str, by: TaskId) {
        let mut state = self.lock();
        state.store_requests += 1;
        if matches!(operation, "PutItem" | "UpdateItem" | "TransactWriteItems") {
            if body.contains("secret-of-") {
                state.violated("a token was written to a table");
            }
            let body: Value = serde_json::from_str(body).unwrap_or_default();
            if let Some(token) = body["ClientRequestToken"].as_str()
                && !state.transactions.insert(token.to_owned())
            {
                return;
            }
            state.take_in_log();
            state.take_in_write(operation, &body, by);
            // An update is of an account's state, which says nothing of a machine.
            if operation != "UpdateItem" {
                state.look_at_disks();
            }
        }
    }

    /// Everything has settled by now.
    pub(crate) fn inspect(&self) {
        let mut state = self.lock();
        state.take_in_log();
        state.check_settled();
    }
}

impl Watched {
    /// Whether a size will do for what must be put back.
    fn will_do(&self, size: &Whole, owed: &Whole) -> bool {
        size.covers(owed) || size.plan().is_some_and(|plan| self.chosen.contains(plan))
    }

    /// Nothing has to be put back any more.
    fn is_whole_again(&mut self) {
        self.owed = None;
        self.small.clear();
        self.chosen.clear();
    }
}

impl State {
    pub(crate) fn note(&self, actor: Actor, text: impl FnOnce() -> String) {
        self.trace.add(self.time.now(), actor, text);
    }

    fn actor(&self, task: TaskId) -> Actor {
        self.tasks
            .get(&task)
            .map_or(Actor::Person, |(actor, _)| *actor)
    }

    fn watched(&mut self, resource: &ResourceRef) -> &mut Watched {
        self.resources.entry(resource.clone()).or_default()
    }

    /// Keeps what is known of every resource as it is now.
    fn look_at_all(&mut self) {
        for (reference, state) in self.simulator.resources() {
            let Ok(reference) = reference.parse::<ResourceRef>() else {
                continue;
            };
            let reference = self.original(reference);
            self.look_at_one(&reference, &state);
        }
        for (reference, state) in self.asleep() {
            let before = self.watched(&reference).barred_since;
            self.look_at_one(&reference, &state);
            if before.is_none() && self.watched(&reference).barred_since.is_some() {
                self.count("opted out or protected while it sleeps");
            }
        }
    }

    fn look_at_one(&mut self, reference: &ResourceRef, state: &Value) {
        let now = self.time.now();
        let is_new = !self.resources.contains_key(reference);
        let barred = rules::barred(reference, state, &self.setup);
        let size = Whole::of(reference, state);
        let watched = self.watched(reference);
        if is_new {
            watched.person_at = Some(now);
        }
        if barred {
            watched.barred_since.get_or_insert(now);
        } else {
            watched.barred_since = None;
        }
        if watched.size.is_none() {
            watched.size = size;
        }
    }

    /// The accounts that are configured; none while one of them was never listed.
    pub(crate) fn configured(&self) -> Option<Vec<&Account>> {
        let names = self.setup.accounts.keys();
        names.map(|name| self.accounts.get(name.as_str())).collect()
    }

    /// Counts something that is meant to happen in some of the nights.
    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub(crate) fn violated(&mut self, what: impl Into<String>) {
        let now = self.time.now();
        let what = what.into();
        self.note(Actor::Observer, || what.clone());
        self.violation
            .get_or_insert_with(|| format!("{now}: {what}"));
    }
}
