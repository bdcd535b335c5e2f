//! Checks every write and every request of a night against what Offhours promises. It shares no
//! code with the handlers: it knows the tables' items, the clouds' log, and their state, and reads
//! schedules by itself.

mod desired;
mod disks;
mod evaluator;
mod history;
mod machines;
mod membership;
mod newer;
mod order;
mod pauses;
mod requests;
mod restored;
mod rules;
mod settled;
mod shared;
mod size;
mod snapshots;
#[cfg(test)]
mod tests;
mod until;
mod writes;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use cloud_simulator::{Act, Simulator};
use domain::{
    AccountName, ResourceId, ResourceRef,
    configuration::{Generation, Override, OverrideTarget, Pause, PauseScope},
    hibernation::AttachmentName,
    history::HistoryEntry,
    record::{EdgeKey, Phase, Record},
    resource::Power,
};
use jiff::{SignedDuration, Timestamp};
use lifecycle::Occurrence;
use serde_json::Value;

use crate::{
    addresses::Addresses,
    clockwork::{TaskId, Time},
    elsewhere::Elsewhere,
    machines::Machines,
    names,
    night::Setup,
    trace::{Actor, Trace},
};
use disks::Disk;
use size::ResourceSize;

/// How far two clocks may differ, plus the time that a response may take.
const SLACK: SignedDuration = SignedDuration::from_secs(15);

/// The observer of one night. Clones share the same state.
#[derive(Debug, Clone)]
pub(crate) struct Observer(Arc<Mutex<State>>);

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) time: Time,
    pub(crate) simulator: Simulator,
    /// The machines over SSH.
    machines: Machines,
    addresses: Addresses,
    pub(crate) trace: Trace,
    /// The records as currently stored.
    pub(crate) records: BTreeMap<ResourceRef, Record>,
    /// When each account was last listed completely and last tried, and whether that failed.
    pub(crate) accounts: BTreeMap<String, Account>,
    /// The actor and the writer behind each running task.
    pub(crate) tasks: BTreeMap<TaskId, (Actor, String)>,
    pub(crate) last_change: Timestamp,
    pub(crate) store_requests: u64,
    pub(crate) cloud_requests: u64,
    pub(crate) violation: Option<String>,
    /// How often each counted event was seen.
    pub(crate) counts: BTreeMap<&'static str, u64>,
    /// The setup to apply next, the one in force and since when, and the one before it.
    applying: Option<Setup>,
    setup: Setup,
    before: Setup,
    generation: Generation,
    applied_at: Timestamp,
    /// Accounts that are no longer configured, and since when.
    away: BTreeMap<AccountName, Timestamp>,
    /// The records that a newer program has written.
    newer: BTreeMap<ResourceRef, newer::NewerRecord>,
    /// What two accounts reach, and since when both have a record of it.
    shared: BTreeMap<ResourceId, Timestamp>,
    /// When a plan was last withdrawn or offered again.
    offered_at: Timestamp,
    /// When a person last gave an address to another machine.
    address_moved_at: Timestamp,
    overrides: BTreeMap<OverrideTarget, Override>,
    /// When an override was last set, changed or ended.
    overridden_at: Option<Timestamp>,
    pauses: BTreeMap<PauseScope, Pause>,
    resources: BTreeMap<ResourceRef, TrackedResource>,
    /// The latest log entry processed.
    seen_in_log: u64,
    /// When each change was asked for within the last hour, for the edge that was handled last.
    asked: BTreeMap<AskedChange, VecDeque<Timestamp>>,
    /// Changes that the clouds accepted and that no history item covers yet.
    unexplained: VecDeque<AcceptedChange>,
    /// Recreated machines, and the resources that they are.
    recreated: BTreeMap<ResourceRef, ResourceRef>,
    disks: BTreeMap<ResourceRef, Disk>,
    /// When each machine that was created from a snapshot was first seen running.
    ran_since: BTreeMap<u64, Timestamp>,
    /// Snapshots that are proven: a machine created from them ran for some time.
    proven: BTreeSet<u64>,
    /// The snapshots that people made.
    of_people: BTreeSet<(AccountName, u64)>,
    /// The latest history item of each resource.
    history: BTreeMap<ResourceRef, HistoryEntry>,
    /// Tokens of the transactions that took effect. A repeated one takes no effect again.
    transactions: BTreeSet<String>,
}

/// A change of a resource, and the edge that was handled last.
type AskedChange = (ResourceRef, Option<(Generation, EdgeKey)>, String);

/// A change that a cloud accepted.
#[derive(Debug, Clone)]
struct AcceptedChange {
    at: Timestamp,
    resource: ResourceRef,
    described: String,
}

/// What is known about one resource, apart from its record.
#[derive(Debug, Clone, Default)]
struct TrackedResource {
    /// When a person last changed its power, size, or tags, or when it was created.
    person_at: Option<Timestamp>,
    /// When it was first there.
    created_at: Option<Timestamp>,
    /// When a person last changed its tags or its name.
    tagged_at: Option<Timestamp>,
    /// When a person last changed the tag that says until when it runs.
    until_at: Option<Timestamp>,
    /// When a person last changed the size of a database or a node pool.
    sized_at: Option<Timestamp>,
    /// When a person last changed its power.
    powered_at: Option<Timestamp>,
    /// When a person's work on it last kept it busy.
    busied_at: Option<Timestamp>,
    /// When a person last switched on a machine that was off.
    switched_on_at: Option<Timestamp>,
    /// When a person last did what a deletion that is under way may cross: started or restarted the
    /// machine, or deleted a snapshot of it.
    crossing_at: Option<Timestamp>,
    /// When a person last deleted the only snapshot of it while it slept.
    lost_at: Option<Timestamp>,
    /// When a person last gave a command for it.
    commanded_at: Option<Timestamp>,
    /// Since when it must not be touched. `None` if it may be.
    barred_since: Option<Timestamp>,
    /// The size it had, or is being given.
    size: Option<ResourceSize>,
    /// What must be restored. `None` if nothing must be.
    owed: Option<ResourceSize>,
    /// The plans to which stops have moved the machine since `owed` was set.
    small: BTreeSet<String>,
    /// When its cloud last refused a change for good, and whether a person has left a host no room for it.
    refused_at: Option<Timestamp>,
    had_no_room: bool,
    /// The plans that people have given it since then. Any of these will do instead.
    chosen: BTreeSet<String>,
    /// Whether `retain_running` kept it running, and no transition has begun since.
    retained: bool,
    /// The state in which its record was last settled.
    last_settled: Option<Power>,
    /// When its record was last replaced by an older one, or could be read again.
    restored_at: Option<Timestamp>,
    /// When an older record last took what was done since for a person's doing.
    misread_at: Option<Timestamp>,
    /// When a start last switched it off, to give it another plan; `None` since a stop did.
    moved_at: Option<Timestamp>,
    /// When a cloud last accepted a shutdown from Offhours.
    shutdown_at: Option<Timestamp>,
    /// When the stop command of a machine over SSH was last run.
    stopped_at: Option<Timestamp>,
    /// When its network was last cut off.
    cut_off_at: Option<Timestamp>,
    /// What the latest such command goes without, and the invocation that carries it out.
    without_asked: Option<(String, Vec<AttachmentName>)>,
    /// What people go without that it had, and when a record last said so.
    without: Vec<AttachmentName>,
    without_at: Option<Timestamp>,
    /// The values that its tag `offhours-until` has, or had.
    until: BTreeMap<String, until::Tagged>,
    /// When pauses covered it, or will.
    paused: Vec<pauses::Paused>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Account {
    pub(crate) listed_at: Option<Timestamp>,
    pub(crate) tried_at: Option<Timestamp>,
    pub(crate) has_error: bool,
    /// Whether its token failed: it is tried again each minute.
    pub(crate) token_fails: bool,
}

impl Observer {
    pub(crate) fn new(
        time: Time,
        simulator: Simulator,
        machines: Machines,
        addresses: Addresses,
        trace: Trace,
    ) -> Self {
        let now = time.now();
        Self(Arc::new(Mutex::new(State {
            time,
            simulator,
            machines,
            addresses,
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
            generation: Generation::default(),
            applied_at: now,
            away: BTreeMap::new(),
            newer: BTreeMap::new(),
            shared: BTreeMap::new(),
            offered_at: Timestamp::MIN,
            address_moved_at: Timestamp::MIN,
            overrides: BTreeMap::new(),
            overridden_at: None,
            pauses: BTreeMap::new(),
            resources: BTreeMap::new(),
            seen_in_log: 0,
            asked: BTreeMap::new(),
            unexplained: VecDeque::new(),
            recreated: BTreeMap::new(),
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

    /// Records a change other than by a write or a request.
    pub(crate) fn changed(&self) {
        let mut state = self.lock();
        state.last_change = state.time.now();
        state.observe_all();
        state.observe_disks();
    }

    /// Records what a person is about to apply.
    pub(crate) fn applying(&self, setup: &Setup) {
        self.lock().applying = Some(setup.clone());
    }

    /// Returns the resource that a change names, whatever its number is by now.
    pub(crate) fn named(&self, account: &AccountName, path: &str) -> Option<ResourceRef> {
        let named = requests::resource_of(account, path)?;
        Some(self.lock().original(named))
    }

    /// Returns a resource as a person names it to Offhours.
    pub(crate) fn under_its_name(&self, resource: ResourceRef) -> ResourceRef {
        self.lock().setup.present(resource)
    }

    /// Records that a person is about to act on a resource.
    pub(crate) fn person_acts(&self, resource: &ResourceRef, act: &Act) {
        let mut state = self.lock();
        let sizes = matches!(act, Act::Resize { .. } | Act::Scale { .. });
        let shown = state.state_of(resource).filter(|_| sizes);
        let size = shown.and_then(|shown| ResourceSize::of(resource, &shown));
        let tracked = state.tracked(resource);
        // What is whole again is theirs to change.
        if let (Some(size), Some(owed)) = (size, &tracked.owed)
            && tracked.will_do(&size, owed)
        {
            tracked.clear_owed();
        }
    }

    /// Records that a person has deleted a snapshot of a machine.
    pub(crate) fn snapshot_deleted(&self, resource: &ResourceRef) {
        let mut state = self.lock();
        let now = state.time.now();
        state.tracked(resource).crossing_at = Some(now);
        // An older one than that of a sleeping machine changes nothing.
        if state.state_of(resource).is_none() && !state.has_copy(resource) {
            state.person_deleted(resource);
            let tracked = state.tracked(resource);
            tracked.person_at = Some(now);
            tracked.lost_at = Some(now);
        }
    }

    /// Records that a person has labeled the snapshots of a machine.
    pub(crate) fn snapshots_labelled(&self, resource: &ResourceRef) {
        let mut state = self.lock();
        let now = state.time.now();
        let tracked = state.tracked(resource);
        tracked.person_at = Some(now);
        tracked.tagged_at = Some(now);
    }

    /// Records that a person has changed the tag that says until when a resource runs.
    pub(crate) fn until_tagged(&self, resource: &ResourceRef) {
        let mut state = self.lock();
        let now = state.time.now();
        state.tracked(resource).until_at = Some(now);
    }

    /// Counts the snapshots that are complete but that no list ever shows.
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

    /// Returns the resource as its cloud knows it now, and the labels by which Offhours recognizes
    /// it.
    pub(crate) fn present(&self, resource: &ResourceRef) -> (ResourceRef, Vec<String>) {
        let state = self.lock();
        (state.present(resource), state.marks(resource))
    }

    /// Records that a cloud has accepted a person's act. One that was refused changes nothing.
    pub(crate) fn person_acted(&self, resource: &ResourceRef, act: &Act) {
        let mut state = self.lock();
        let now = state.time.now();
        let shown = state.state_of(resource).unwrap_or_default();
        let tracked = state.tracked(resource);
        tracked.acted(resource, act, &shown, now);
        if *act == Act::Delete {
            state.person_deleted(resource);
        }
        // A cloud's log has whole seconds: a start within the second of a look seems to be before it.
        let request = state.records.get(resource).and_then(|record| record.request.as_ref());
        let is_of_look =
            request.is_some_and(|request| request.looked_at.as_second() == now.as_second());
        if *act == Act::PowerOn && is_of_look {
            state.tracked(resource).switched_on_at = None;
            state.count("a person starts a machine within the second of a look");
        }
    }

    /// Returns the resources that are held until a person approves them.
    pub(crate) fn held(&self) -> Vec<ResourceRef> {
        let state = self.lock();
        let held = state.records.values().filter(|record| record.held);
        held.map(|record| record.reference.clone()).collect()
    }

    /// Records that a cloud is about to withdraw a plan or offer it again.
    pub(crate) fn offers_change(&self) {
        let mut state = self.lock();
        state.offered_at = state.time.now();
        state.last_change = state.offered_at;
    }

    /// Records that a person is about to give a command.
    pub(crate) fn commanded(&self, resource: &ResourceRef) {
        let mut state = self.lock();
        let now = state.time.now();
        state.tracked(resource).commanded_at = Some(now);
    }

    /// Checks what a function reports.
    pub(crate) fn function_reported(&self, actor: Actor, outcome: &Occurrence) {
        let mut state = self.lock();
        state.note(actor, || format!("reports {outcome:?}"));
        state.check_report(outcome);
    }

    /// Checks a change on its way to a cloud.
    pub(crate) fn before_change(&self, account: &AccountName, path: &str, body: &str, by: TaskId) {
        let mut state = self.lock();
        // A machine may have been made by a request that was late.
        state.observe_disks();
        let actor = state.actor(by);
        state.last_change = state.time.now();
        state.note(actor, || format!("sends {path} {body}"));
        state.check_request(account, path, body, by);
    }

    /// Processes a cloud's response. `answer` is `None` if there was none.
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
            state.process_log();
            state.observe_disks();
        }
        if status == Some(429) && !faulty {
            state.violated(format!("the account's own limit was exceeded by {path}"));
        }
    }

    /// Checks a request that goes to another project. What that contains is believed only if no
    /// resource of the account is recorded.
    pub(crate) fn sent_elsewhere(&self, account: &AccountName, path: &str, changes: bool) {
        let mut state = self.lock();
        let mut records = state.records.values();
        let knows = records.any(|record| {
            let is_gone = matches!(record.phase, Phase::Gone { .. });
            let is_theirs = Elsewhere::holds(&record.reference.id);
            record.reference.account == *account && !is_gone && !is_theirs
        });
        if changes && knows {
            state.violated(format!("{path} is sent with the token of another project"));
        }
    }

    /// Processes a request to the store that took effect.
    pub(crate) fn wrote(&self, operation: &str, body: &str, by: TaskId) {
        let mut state = self.lock();
        state.store_requests += 1;
        if matches!(operation, "PutItem" | "UpdateItem" | "TransactWriteItems") {
            if body.contains("secret-of-") || body.contains("PRIVATE KEY") {
                state.violated("a token was written to a table");
            }
            let body: Value = serde_json::from_str(&names::first(body)).unwrap_or_default();
            if let Some(token) = body["ClientRequestToken"].as_str()
                && !state.transactions.insert(token.to_owned())
            {
                return;
            }
            state.process_log();
            state.process_write(operation, &body, by);
        }
    }

    /// Checks that everything has settled by now.
    pub(crate) fn inspect(&self) {
        let mut state = self.lock();
        state.process_log();
        state.check_settled();
    }
}

impl TrackedResource {
    /// Reports whether a size will do for what must be restored.
    fn will_do(&self, size: &ResourceSize, owed: &ResourceSize) -> bool {
        size.covers(owed) || size.plan().is_some_and(|plan| self.chosen.contains(plan))
    }

    /// Records what a person has done, and what is shown since.
    fn acted(&mut self, resource: &ResourceRef, act: &Act, shown: &Value, now: Timestamp) {
        let is_machine = size::plan_of(shown).is_some();
        match act {
            Act::PowerOn | Act::PowerOff | Act::Shutdown | Act::Reboot => {
                self.powered_at = Some(now);
            }
            // A machine's guest has switched itself off. Others are busy for some time.
            Act::SetStatus { .. } if is_machine => self.powered_at = Some(now),
            Act::SetStatus { .. } => self.busied_at = Some(now),
            Act::Resize { .. } | Act::Scale { .. } => {
                self.sized_at = Some(now);
                self.size = ResourceSize::of(resource, shown);
            }
            Act::ChangePlan { plan, .. } if self.owed.is_some() => {
                self.chosen.insert(plan.clone());
            }
            Act::TakeRoom { refusals, failures } => self.had_no_room |= refusals + failures > 0,
            Act::Retag { .. } | Act::RetagCluster { .. } | Act::Rename { .. } => {
                self.tagged_at = Some(now);
            }
            Act::Delete => (self.owed, self.size) = (None, None),
            Act::ChangePlan { .. } | Act::BreakCopies { .. } | Act::Snapshot { .. } => {}
        }
        // The bounds that a person sets stand, and their autoscaler decides on the nodes.
        if matches!(act, Act::Scale { autoscale: Some(_), .. }) {
            self.clear_owed();
        }
        // These leave a resource as it was.
        let changes_nothing = matches!(
            act,
            Act::Rename { .. }
                | Act::TakeRoom { .. }
                | Act::BreakCopies { .. }
                | Act::Snapshot { .. }
        );
        let is_busy = matches!(act, Act::SetStatus { .. }) && !is_machine;
        if !changes_nothing && !is_busy {
            self.person_at = Some(now);
            self.switched_on_at = None;
        }
        if matches!(act, Act::PowerOn | Act::Reboot) {
            self.crossing_at = Some(now);
        }
        // A running Droplet refuses it.
        if *act == Act::PowerOn && matches!(resource.id, ResourceId::Droplet(_)) {
            self.switched_on_at = Some(now);
        }
    }

    /// Reports whether the record was restored, and has what it does not know as its problem.
    fn has_older(&self, record: &Record) -> bool {
        // A transition that was restored with it is stuck for that.
        let is_stuck = record.hibernation.is_some() && matches!(record.phase, Phase::Stuck { .. });
        self.restored_at.is_some() && (is_stuck || record.hibernation_problem().is_some())
    }

    /// Records that nothing has to be restored anymore.
    fn clear_owed(&mut self) {
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
        self.tasks.get(&task).map_or(Actor::Person, |(actor, _)| *actor)
    }

    fn tracked(&mut self, resource: &ResourceRef) -> &mut TrackedResource {
        self.resources.entry(resource.clone()).or_default()
    }

    /// Updates what is known about every resource.
    fn observe_all(&mut self) {
        for (reference, state) in self.simulator.resources() {
            let Ok(reference) = reference.parse::<ResourceRef>() else {
                continue;
            };
            let reference = self.original(reference);
            self.observe_one(&reference, &state);
            self.observe_until(&reference, &state);
        }
        for reference in self.machine_references() {
            if let Some(state) = self.machine_state(&reference) {
                self.observe_one(&reference, &state);
            }
        }
        for (reference, state) in self.asleep() {
            let before = self.tracked(&reference).barred_since;
            self.observe_one(&reference, &state);
            if before.is_none() && self.tracked(&reference).barred_since.is_some() {
                self.count("opted out or protected while it sleeps");
            }
        }
    }

    fn observe_one(&mut self, reference: &ResourceRef, state: &Value) {
        let now = self.time.now();
        let is_new = !self.resources.contains_key(reference);
        let barred = rules::barred(reference, state, &self.setup);
        let size = ResourceSize::of(reference, state);
        let tracked = self.tracked(reference);
        if is_new {
            tracked.person_at = Some(now);
            tracked.created_at = Some(now);
        }
        if barred {
            tracked.barred_since.get_or_insert(now);
        } else {
            tracked.barred_since = None;
        }
        if tracked.size.is_none() {
            tracked.size = size;
        }
        self.observe_pauses(reference, state);
    }

    pub(crate) fn is_configured(&self, account: &AccountName) -> bool {
        self.setup.accounts.contains_key(account)
    }

    /// Returns the configured accounts, or `None` while one of them was never tried.
    pub(crate) fn configured(&self) -> Option<Vec<&Account>> {
        let names = self.setup.accounts.keys();
        names.map(|name| self.accounts.get(name.as_str())).collect()
    }

    /// Counts something that should happen in some of the nights.
    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub(crate) fn violated(&mut self, what: impl Into<String>) {
        let now = self.time.now();
        let what = what.into();
        self.note(Actor::Observer, || what.clone());
        self.violation.get_or_insert_with(|| format!("{now}: {what}"));
    }
}
