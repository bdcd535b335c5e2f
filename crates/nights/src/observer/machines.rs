//! Checks on every command that is run over SSH, and on what silence is taken for.

use domain::{
    MachineName, ResourceId, ResourceRef,
    configuration::Account,
    history::HistoryEntry,
    record::{Direction, Ending, Forced, Record},
    schedule::Desired,
    ssh::{SshMachine, Unreachable},
    step::Step,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{AcceptedChange, Observer, State};
use crate::{clockwork::TaskId, machines::Purpose, trace::Actor};

/// How long a machine gets to go off before its power is cut.
const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// How long a stop may still be tried again once its deadline is over: a busy host, and the time
/// between two ticks.
const TRIED_AGAIN: SignedDuration = SignedDuration::from_mins(20);

impl Observer {
    /// Checks a command that has arrived at its host.
    pub(crate) fn command_arrives(
        &self,
        resource: &ResourceRef,
        purpose: Purpose,
        by: TaskId,
        may_change: bool,
    ) {
        let mut state = self.lock();
        state.cloud_requests += 1;
        let what = format!("{purpose:?} {resource}");
        if purpose != Purpose::Status || state.trace.has_reads() {
            state.note(state.actor(by), || format!("runs {what}"));
        }
        if purpose != Purpose::Status {
            state.last_change = state.time.now();
            if !may_change {
                state.violated(format!("{what} is sent with the key that may only read"));
            }
            state.check_command(resource, purpose, &what, by);
        }
    }

    /// Records what the host answers.
    pub(crate) fn command_answered(&self, resource: &ResourceRef, purpose: Purpose, answer: &str) {
        let state = self.lock();
        if purpose != Purpose::Status || state.trace.has_reads() {
            state.note(Actor::Cloud, || format!("{purpose:?} {resource}: {answer}"));
        }
    }

    /// Records that the network of a machine is cut off.
    pub(crate) fn cut_off(&self, name: &MachineName) {
        let mut state = self.lock();
        let now = state.time.now();
        state.last_change = now;
        for reference in state.machine_references() {
            if reference.id == ResourceId::Machine(name.clone()) {
                state.tracked(&reference).cut_off_at = Some(now);
            }
        }
    }

    /// Records that a command has begun to switch a machine on or off.
    pub(crate) fn command_took_effect(&self, resource: &ResourceRef, purpose: Purpose) {
        let mut state = self.lock();
        let at = state.time.now();
        state.last_change = at;
        if purpose == Purpose::Stop {
            state.tracked(resource).shutdown_at = Some(at);
        }
        let described = format!("{purpose:?}");
        state.unexplained.push_back(AcceptedChange { at, resource: resource.clone(), described });
    }
}

impl State {
    /// Returns the state of a machine over SSH, in the form of a cloud's. `None` if it is not
    /// configured.
    pub(super) fn machine_state(&self, reference: &ResourceRef) -> Option<Value> {
        let (name, machine) = self.configured_machine(reference)?;
        let is_on = self.machines.is_on(name)?;
        let status = if is_on { "running" } else { "off" };
        Some(json!({ "name": name, "tags": machine.tags, "status": status }))
    }

    fn configured_machine<'s>(
        &'s self,
        reference: &'s ResourceRef,
    ) -> Option<(&'s MachineName, &'s SshMachine)> {
        let ResourceId::Machine(name) = &reference.id else {
            return None;
        };
        let Account::Ssh(account) = self.setup.accounts.get(&reference.account)? else {
            return None;
        };
        Some((name, account.login.machines.get(name)?))
    }

    /// Returns the machines over SSH that are configured.
    pub(super) fn machine_references(&self) -> Vec<ResourceRef> {
        let mut found = Vec::new();
        for (account, configured) in &self.setup.accounts {
            if let Account::Ssh(ssh) = configured {
                found.extend(ssh.login.machines.keys().map(|name| ResourceRef {
                    account: account.clone(),
                    id: ResourceId::Machine(name.clone()),
                }));
            }
        }
        found
    }

    fn check_command(&mut self, resource: &ResourceRef, purpose: Purpose, what: &str, by: TaskId) {
        self.check_rate(resource, what, "");
        self.check_permit(resource, what, by);
        self.check_not_newer(resource, what);
        self.check_membership(resource, what);
        self.check_account(resource, what);
        self.check_shared(resource, what);
        self.check_paused(resource, what);
        self.check_desired(resource, what);
        self.check_tries(resource, purpose, what);
        self.check_purpose(resource, purpose, what);
    }

    /// Checks that a command is the one that the record's request names, and that the power is not
    /// cut before the machine has had time to shut down.
    fn check_purpose(&mut self, resource: &ResourceRef, purpose: Purpose, what: &str) {
        let request = self.records.get(resource).and_then(|record| record.request.clone());
        let is_named = request.as_ref().is_some_and(|request| {
            let cuts = request.forced != Forced::No;
            match &request.step {
                Step::On { .. } => purpose == Purpose::Start,
                Step::Off { gracefully: true } if !cuts => purpose == Purpose::Stop,
                Step::Off { .. } => purpose == Purpose::Force,
                Step::Resize(_)
                | Step::KeepAddress(_)
                | Step::Snapshot(_)
                | Step::Protect { .. }
                | Step::Delete
                | Step::Create { .. }
                | Step::Attach(_)
                | Step::RemoveSnapshot(_) => false,
            }
        });
        if !is_named {
            self.violated(format!("{what} is run, and the record's request is {request:?}"));
        }
        let now = self.time.now();
        let stopped_at = self.resources.get(resource).and_then(|tracked| tracked.stopped_at);
        let had_its_time = stopped_at.is_some_and(|at| now.duration_since(at) >= GRACE);
        if purpose == Purpose::Force && !had_its_time {
            self.violated(format!("{what} cuts the power; its last stop was at {stopped_at:?}"));
        }
        if purpose == Purpose::Stop {
            self.tracked(resource).stopped_at = Some(now);
        }
    }

    /// Checks that a stop without effect is not tried again forever.
    fn check_tries(&mut self, resource: &ResourceRef, purpose: Purpose, what: &str) {
        let deadline = self.configured_machine(resource).map(|(_, machine)| machine.stop_deadline);
        let record = self.records.get(resource);
        let began = record.and_then(|record| record.in_flight()).map(|now| now.claimed_at);
        let (Some(deadline), Some(began)) = (deadline, began) else {
            return;
        };
        let deadline = SignedDuration::try_from(deadline.get()).unwrap_or_default();
        // What a host that refuses every login was never sent has no deadline, and is tried once more
        // when the host lets Offhours in again.
        let stopped_at = self.resources.get(resource).and_then(|tracked| tracked.stopped_at);
        let was_late =
            stopped_at.is_some_and(|at| at.duration_since(began) > deadline + TRIED_AGAIN);
        if purpose == Purpose::Stop && was_late {
            self.violated(format!("{what} is still tried, and its deadline began at {began}"));
        }
    }

    /// Checks that silence alone does not end a stop: the command was run since the machine was
    /// last seen on.
    pub(super) fn check_silence(&mut self, before: Option<&Record>, after: &Record) {
        let (Some(before), Some(last)) = (before, &after.last) else {
            return;
        };
        let reference = &after.reference;
        let is_new = before.last.as_ref() != Some(last);
        let ended = is_new
            && last.ending == Ending::AlreadyThere
            && after.handled.as_ref().is_some_and(|handled| {
                handled.key == last.key && handled.desired == Some(Desired::Stopped)
            });
        let runs = self.machine_state(reference).is_some_and(|state| state["status"] == "running");
        if !ended || !runs {
            return;
        }
        let now = self.time.now();
        let cut_off_at = self.resources.get(reference).and_then(|tracked| tracked.cut_off_at);
        // What was silent for two inventories before its edge counts as off.
        let cut_long_before =
            cut_off_at.is_some_and(|at| now.duration_since(at) > SignedDuration::from_mins(10));
        let person_at = self.resources.get(reference).and_then(|tracked| tracked.person_at);
        let crossed =
            person_at.is_some_and(|at| now.duration_since(at) < SignedDuration::from_mins(2));
        if !cut_long_before && !crossed {
            self.violated(format!("{reference} is recorded as off already, and it runs"));
        }
    }

    /// Reports whether a stop may have ended by silence that its account takes for off.
    pub(super) fn is_silent(&self, entry: &HistoryEntry) -> bool {
        let ResourceId::Machine(name) = &entry.reference.id else {
            return false;
        };
        let was_cut_off = self.machines.is_cut_off(name, entry.finished_at);
        let stops = entry.direction == Direction::Stop;
        stops && was_cut_off && self.silence_means_off(&entry.reference)
    }

    /// Reports whether a machine counts as off while it does not answer.
    pub(super) fn silence_means_off(&self, reference: &ResourceRef) -> bool {
        let configured = self.configured_machine(reference);
        configured.is_some_and(|(_, one)| one.unreachable_means == Unreachable::Stopped)
    }

    /// Checks that every configured machine has a record: a large account is listed, too.
    pub(super) fn check_machines_known(&mut self, now: Timestamp) {
        for reference in self.machine_references() {
            self.check_known(&reference.to_string(), now);
        }
    }
}
