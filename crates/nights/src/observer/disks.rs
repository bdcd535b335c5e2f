//! Machines that are deleted and recreated: what their disks hold, and which machine is which.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    AccountName, ResourceId, ResourceRef,
    hibernation::{Attachment, AttachmentName},
    history::HistoryEntry,
    record::{Direction, Phase, Record, Request},
    step::Step,
    stop_method::StopMethod,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{SLACK, State, requests::OBSERVE_AND_SEND, settled::SETTLE_TIME};
use crate::clockwork::TaskId;

/// How far the clocks of functions and clouds may differ.
const CLOCKS: SignedDuration = SignedDuration::from_secs(5);

/// How long a request may arrive after the write that permits it.
const PERMIT: SignedDuration = SignedDuration::from_secs(120);

/// How long an accepted deletion may take.
const DELETES: SignedDuration = SignedDuration::from_mins(15);

/// How long a command to start may take, whatever the machine waits for.
const COMMAND_ENDS: SignedDuration = SignedDuration::from_hours(2);

/// The label or tag by which a recreated machine names its original.
const ORIGINAL_LABEL: &str = "offhours-of";

/// The disk of a machine, whatever the machine's number is by now.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk {
    /// The contents of the disk after its last write. `None` if only a person knows them.
    latest: Option<String>,
    /// The machine as it was when it last existed.
    pub(super) last: Value,
    /// What was attached to the machine at first; null once a person has deleted some of it.
    attached: Value,
    /// The time of the observation on which the latest deletion was based.
    looked_at: Option<Timestamp>,
}

fn labels_of_ours(state: &Value) -> impl Iterator<Item = String> {
    let labels = state["labels"].as_object().into_iter().flatten();
    let ours = labels.filter(|(name, _)| is_ours(name));
    let labels = ours.filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?)));
    let tags = tags(state).filter(|tag| is_ours(tag.split(':').next().unwrap_or_default()));
    labels.chain(tags.map(str::to_owned))
}

fn is_ours(name: &str) -> bool {
    name.starts_with("offhours-") && name != "offhours-to" && name != "offhours-until"
}

fn tags(state: &Value) -> impl Iterator<Item = &str> {
    let tags = state["tags"].as_array().into_iter().flatten();
    tags.filter_map(Value::as_str)
}

/// Returns the resource of an account that a machine claims to be.
fn claimed_original(state: &Value, account: &AccountName) -> Option<ResourceRef> {
    let label = state["labels"][ORIGINAL_LABEL].as_str().map(|of| of.replacen('.', "/", 1));
    let mut tags = tags(state).filter_map(|tag| tag.split_once(':'));
    let tag = tags.find(|(name, _)| *name == ORIGINAL_LABEL);
    let tag = tag.map(|(_, of)| of.replacen('-', "/", 1));
    format!("{account}/{}", label.or(tag)?).parse().ok()
}

/// Returns what a machine keeps when it is recreated.
fn preserved_state(state: &Value) -> Value {
    let mut labels = state["labels"].clone();
    if let Some(labels) = labels.as_object_mut() {
        labels.retain(|name, _| !is_ours(name));
    }
    let tags: BTreeSet<_> =
        tags(state).filter(|tag| !is_ours(tag.split(':').next().unwrap_or_default())).collect();
    let kept = ["name", "server_type", "location", "size", "region", "disk", "ipv4", "ipv6", "has"];
    let kept = kept.map(|key| state[key].clone());
    json!({"labels": labels, "tags": tags, "kept": kept})
}

/// Reports whether a record says that no further snapshot is made.
fn is_full(record: &Record) -> bool {
    let kept = record.hibernation.as_deref();
    let many = kept.is_some_and(|kept| kept.snapshots.len() >= 4);
    many && format!("{record:?}").contains("of it are kept, and none may be removed")
}

/// Reports whether a machine goes off soon after each start.
pub(super) fn does_not_boot(state: &Value) -> bool {
    state["broken"] == true
}

impl State {
    /// Returns the resource that a machine is, whatever its number is by now.
    pub(super) fn original(&self, resource: ResourceRef) -> ResourceRef {
        self.recreated.get(&resource).cloned().unwrap_or(resource)
    }

    /// Returns the resource as its cloud knows it now.
    pub(super) fn present(&self, resource: &ResourceRef) -> ResourceRef {
        let mut recreated = self.recreated.iter();
        let there =
            recreated.find(|(new, of)| *of == resource && self.simulator.resource(new).is_some());
        there.map_or_else(|| resource.clone(), |(new, _)| new.clone())
    }

    /// Returns the whole state of a resource at its cloud.
    pub(super) fn state_of(&self, resource: &ResourceRef) -> Option<Value> {
        match resource.id {
            ResourceId::Machine(_) => self.machine_state(resource),
            ResourceId::Droplet(_)
            | ResourceId::Database(_)
            | ResourceId::NodePool(..)
            | ResourceId::Server(_) => self.simulator.resource(&self.present(resource)),
        }
    }

    /// Returns a deleted machine as it was before, unless a person deleted it or its snapshot.
    pub(super) fn last_of_deleted(&self, record: &Record) -> Option<Value> {
        let disk = self.disks.get(&record.reference)?;
        let deleted = record.hibernation.is_some() && disk.latest.is_some();
        deleted.then(|| self.sleeping_state(&record.reference, &disk.last))
    }

    /// Returns the sleeping machines, each as it was before, with any opt-out that people have put
    /// on the snapshot that it will be recreated from.
    pub(super) fn asleep(&self) -> Vec<(ResourceRef, Value)> {
        let mut asleep = Vec::new();
        for (reference, disk) in &self.disks {
            let is_there = self.state_of(reference).is_some();
            if !is_there && !disk.last.is_null() {
                asleep.push((reference.clone(), self.sleeping_state(reference, &disk.last)));
            }
        }
        asleep
    }

    pub(super) fn sleeping_state(&self, reference: &ResourceRef, last: &Value) -> Value {
        let mut state = last.clone();
        let record = self.records.get(reference);
        let kept = record.and_then(|record| record.hibernation.as_deref());
        let Some(mark) = kept.and_then(|kept| kept.wake_from.as_ref()) else {
            return state;
        };
        let mut own = self.snapshots_of(reference).into_iter();
        let waking = own.find(|image| {
            let name = image["name"].as_str().unwrap_or_default();
            let label = name.split(' ').next().unwrap_or_default();
            image["labels"]["offhours-mark"] == mark.0.as_str() || label.ends_with(&mark.0)
        });
        let is_off = waking.is_some_and(|image| {
            let mut tags = tags(&image);
            image["labels"]["offhours"] == "off" || tags.any(|tag| tag == "offhours:off")
        });
        state["opted_out"] = json!(is_off);
        state
    }

    /// Returns the labels by which Offhours recognizes a machine. People never remove them.
    pub(super) fn marks(&self, resource: &ResourceRef) -> Vec<String> {
        let state = self.state_of(resource).unwrap_or_default();
        labels_of_ours(&state).collect()
    }

    /// Returns the resource for which a change of something else is sent: an image, an address, a
    /// network.
    pub(super) fn resource_of_request(&self, path: &str, by: TaskId) -> Option<ResourceRef> {
        let (_, sender) = self.tasks.get(&by)?;
        let mut records = self.records.values();
        let asked = records.find(|record| {
            let permit = record.permit.as_ref();
            let names = |request: &Request| match named_by(&request.step) {
                Some(id) => path.split('/').any(|part| part == id),
                None => matches!(request.step, Step::Create { .. }) && creates(path),
            };
            permit.is_some_and(|permit| permit.writer.0 == *sender)
                && record.request.as_ref().is_some_and(names)
        });
        asked.map(|record| record.reference.clone())
    }

    /// Records that a person has deleted the machine or its snapshot: what the disk held is theirs
    /// to lose.
    pub(super) fn person_deleted(&mut self, resource: &ResourceRef) {
        if let Some(disk) = self.disks.get_mut(resource) {
            disk.latest = None;
        }
    }

    /// Records that a person has deleted what may be attached to a machine: it is not awaited again.
    pub(crate) fn attachment_deleted(&mut self, resource: &ResourceRef) {
        self.disks.entry(resource.clone()).or_default().attached = Value::Null;
    }

    /// Records that a person has given an address of a machine to another one.
    pub(crate) fn address_moved(&mut self, from: &ResourceRef, to: &ResourceRef) {
        self.attachment_deleted(from);
        self.attachment_deleted(to);
        self.address_moved_at = self.time.now();
    }

    /// Checks that no address is taken from a machine to which a person has given it.
    pub(super) fn check_address(&mut self, resource: &ResourceRef, path: &str) {
        let now = self.time.now();
        let mut parts = path.split('/').skip(2);
        let (kind, id) = (parts.next(), parts.next().unwrap_or_default());
        let name = match kind {
            Some("reserved_ips" | "reserved_ipv6") => format!("reserved IP {id}"),
            Some("floating_ips") => format!("floating IP {id}"),
            _ => return,
        };
        let crossed = now.duration_since(self.address_moved_at) < OBSERVE_AND_SEND + SLACK;
        let own = self.present(resource).to_string();
        let account = format!("{}/", resource.account);
        let mut others = self.simulator.resources().into_iter().filter(|(reference, state)| {
            let mut attached = state["attached"].as_array().into_iter().flatten();
            let is_other = *reference != own && reference.starts_with(&account);
            is_other && attached.any(|one| *one == name.as_str())
        });
        if let Some((other, _)) = others.next().filter(|_| !crossed) {
            self.violated(format!("{path} takes the address from {other}"));
        }
    }

    /// Records that a person has deleted a VPC: the machines that were in it come back in another.
    pub(crate) fn vpc_deleted(&mut self, id: &str) {
        let vpc = json!(format!("VPC {id}"));
        for disk in self.disks.values_mut() {
            let mut attached = disk.attached.as_array().into_iter().flatten();
            if attached.any(|one| *one == vpc) {
                disk.attached = Value::Null;
            }
        }
    }

    /// Records that a person wants to start a machine without some of what it had.
    pub(crate) fn goes_without(
        &mut self,
        resource: &ResourceRef,
        names: Vec<AttachmentName>,
        invocation: &str,
    ) {
        self.tracked(resource).without_asked = Some((invocation.to_owned(), names));
        self.attachment_deleted(resource);
    }

    /// Records what a command goes without once it has a record: one that is declined has none.
    pub(super) fn record_without(&mut self, record: &Record) {
        let now = self.time.now();
        let command = record.manual_command.as_ref();
        let is_given =
            |invocation: &str| command.is_some_and(|command| command.request_id == invocation);
        let tracked = self.tracked(&record.reference);
        let asked = tracked.without_asked.take_if(|(invocation, _)| is_given(invocation));
        if let Some((_, names)) = asked {
            tracked.without.extend(names);
            tracked.without_at = Some(now);
        }
    }

    /// Checks that a machine is not kept incomplete, a while after, by what its person goes without.
    pub(super) fn check_without(&mut self, record: &Record, now: Timestamp) {
        let Some(tracked) = self.resources.get(&record.reference) else {
            return;
        };
        let kept = record.hibernation.as_deref().filter(|kept| kept.incomplete);
        let said = tracked.without_at.is_some_and(|at| now.duration_since(at) > COMMAND_ENDS);
        let missed = kept.into_iter().flat_map(|kept| &kept.refused);
        let mut waived = missed.map(Attachment::name).filter(|one| tracked.without.contains(one));
        if let Some(name) = waived.next().filter(|_| said) {
            self.violated(format!("{} is to go without {name}, and lacks it", record.reference));
        }
    }

    /// Checks that a recreated machine is not reported as running before it has everything it had,
    /// unless the entry says what its cloud did not give back.
    pub(super) fn check_attached(&mut self, entry: &HistoryEntry, state: &Value) {
        let disk = self.disks.get(&entry.reference);
        let had = disk.map(|disk| &disk.attached);
        let first = entry.reference.id.provider_id().parse().ok();
        let wakes = entry.direction == Direction::Start
            && entry.method == Some(StopMethod::Hibernate)
            && entry.reason.is_none()
            && state["id"].as_u64() != first;
        if let Some(had) = had.filter(|had| wakes && !had.is_null() && **had != state["attached"]) {
            let (resource, has) = (&entry.reference, &state["attached"]);
            self.violated(format!("{resource} had {had}, and runs again with {has}"));
        }
    }

    /// Counts the machines that Offhours deleted, and those that were recreated.
    pub(super) fn count_sleep(&mut self, before: &Record, after: &Record) {
        let present = |record: &Record| {
            let kept = record.hibernation.as_deref()?;
            Some(kept.present.clone())
        };
        if is_full(after) && !is_full(before) {
            self.count("a machine has as many snapshots as it may");
        }
        let (Some(before), Some(now)) = (present(before), present(after)) else {
            return;
        };
        let is_droplet = matches!(after.reference.id, ResourceId::Droplet(_));
        match (before, now) {
            (Some(_), None) if is_droplet => self.count("a Droplet is hibernated"),
            (Some(_), None) => self.count("a server is hibernated"),
            (None, Some(_)) if is_droplet => self.count("a Droplet is recreated"),
            (None, Some(_)) => self.count("a server is recreated"),
            (None, None) | (Some(_), Some(_)) => {}
        }
    }

    /// Checks that a machine is not taken for gone while its disk is held by a machine or a
    /// snapshot.
    pub(super) fn check_not_gone(&mut self, record: &Record) {
        let disk = self.disks.get(&record.reference);
        let is_kept = disk.is_some_and(|disk| disk.latest.is_some());
        if is_kept && matches!(record.phase, Phase::Gone { .. }) {
            let disk = disk.and_then(|disk| disk.latest.clone());
            self.violated(format!("{} is taken for gone, and there is {disk:?}", record.reference));
        }
    }

    /// Checks that a machine is deleted only if a complete snapshot holds what its disk holds.
    pub(super) fn check_deletion(&mut self, resource: &ResourceRef, path: &str) {
        let server = path.strip_prefix("DELETE /v1/servers/");
        let droplet = path.strip_prefix("DELETE /v2/droplets/");
        let Some((kind, number)) =
            server.map(|number| ("server", number)).or(droplet.map(|number| ("droplet", number)))
        else {
            return;
        };
        let Some(record) = self.records.get(resource) else {
            return;
        };
        let stops =
            record.in_flight().is_some_and(|transition| transition.direction == Direction::Stop);
        if !stops {
            self.violated(format!("{path} is sent, and it is not being stopped"));
            return;
        }
        let looked_at = record.request.as_ref().map(|request| request.looked_at);
        let new = format!("{}/{kind}/{number}", resource.account).parse();
        let state = new.ok().and_then(|new| self.simulator.resource(&new));
        self.disks.entry(resource.clone()).or_default().looked_at = looked_at;
        let Some(state) = state.filter(|_| !self.person_crossed(resource)) else {
            return;
        };
        let images = self.simulator.images();
        let contents = state["contents"].as_str().unwrap_or_default();
        let copies = complete_copies(&images, &resource.account, contents);
        // A snapshot of a Droplet cannot be protected; it counts once it is listed.
        let now = self.time.now();
        let is_listed = |image: &&Value| {
            let listed = image["listed"].as_str();
            listed.is_some_and(|at| at.parse().is_ok_and(|at: Timestamp| at <= now))
        };
        let mut safe = copies.filter(|image| image["protected"] == true || is_listed(image));
        if state["status"] != "off" || safe.next().is_none() {
            self.violated(format!("{path} deletes what no snapshot holds: {state}"));
        }
    }

    /// Reports whether a complete snapshot holds what the disk of a machine held.
    pub(super) fn has_copy(&self, resource: &ResourceRef) -> bool {
        let latest = self.disks.get(resource).and_then(|disk| disk.latest.as_ref());
        let images = self.simulator.images();
        latest.is_some_and(|latest| {
            complete_copies(&images, &resource.account, latest).next().is_some()
        })
    }

    /// Checks that a sleeping machine whose only snapshot a person has deleted is reported.
    pub(super) fn check_lost(&mut self, record: &Record, now: Timestamp) {
        let reference = &record.reference;
        let lost_at = self.resources.get(reference).and_then(|tracked| tracked.lost_at);
        let is_old = lost_at.is_some_and(|at| now.duration_since(at) > SETTLE_TIME);
        let account = self.accounts.get(reference.account.as_str());
        let is_doubted = account.is_some_and(|account| account.has_error);
        let is_asleep = record.is_hibernated() && !self.newer.contains_key(reference);
        if is_old && is_asleep && !is_doubted && !self.is_reported(record, now) {
            self.violated(format!(
                "the last snapshot of {reference} is lost, and nothing reports it"
            ));
        }
    }

    /// Reports whether a person has switched the machine on, or deleted a snapshot of it, between the
    /// observation on which its deletion was based and the last instant at which the deletion takes
    /// effect: no provider offers compare-and-set.
    fn person_crossed(&self, resource: &ResourceRef) -> bool {
        let looked_at = self.disks.get(resource).and_then(|disk| disk.looked_at);
        let tracked = self.resources.get(resource);
        let crossing_at = tracked.and_then(|tracked| tracked.crossing_at);
        crossing_at
            .zip(looked_at)
            .is_some_and(|(at, look)| at + CLOCKS > look && at < look + PERMIT + DELETES)
    }

    /// Checks that what each machine's disk holds still exists, and that there is at most one
    /// machine.
    pub(super) fn observe_disks(&mut self) {
        let mut records = self.records.values();
        if !records.any(|record| record.hibernation.is_some()) {
            return;
        }
        self.check_peoples_snapshots();
        let mut there = BTreeMap::<_, Vec<_>>::new();
        for (reference, state) in self.simulator.resources() {
            let Ok(reference) = reference.parse::<ResourceRef>() else {
                continue;
            };
            let is_machine = matches!(reference.id, ResourceId::Server(_) | ResourceId::Droplet(_));
            if !is_machine {
                continue;
            }
            if let Some(of) = claimed_original(&state, &reference.account) {
                self.recreated.entry(reference.clone()).or_insert(of);
            }
            let original = self.original(reference.clone());
            // A machine that was never hibernated may come and go. A record that is older than its
            // cloud does not know of it.
            let record = self.records.get(&original);
            let is_recorded = record.is_some_and(|record| record.hibernation.is_some());
            if !is_recorded && !self.disks.contains_key(&original) {
                continue;
            }
            there.entry(original).or_default().push(state);
        }
        for (resource, machines) in &there {
            if let [first, second, ..] = &machines[..] {
                self.violated(format!("two machines are {resource}: {first} {second}"));
            }
            if let [state, ..] = &machines[..] {
                self.observe_disk(resource, state);
            }
        }
        let away = self.disks.keys().filter(|resource| !there.contains_key(*resource));
        let away: Vec<_> = away.cloned().collect();
        let images = self.simulator.images();
        for resource in away {
            self.check_copy_exists(&resource, &images);
        }
    }

    /// Checks the same of one machine, whose record was written: at the clouds, only what they have
    /// accepted has changed.
    pub(super) fn observe_disk_of(&mut self, record: &Record) {
        let resource = &record.reference;
        if record.hibernation.is_none() && !self.disks.contains_key(resource) {
            return;
        }
        match self.state_of(resource) {
            Some(state) => self.observe_disk(resource, &state),
            None => self.check_copy_exists(resource, &self.simulator.images()),
        }
    }

    fn observe_disk(&mut self, resource: &ResourceRef, state: &Value) {
        self.mark_proven(state);
        let disk = self.disks.entry(resource.clone()).or_default();
        if disk.last.is_null() {
            disk.attached = state["attached"].clone();
        }
        let before = std::mem::replace(&mut disk.last, state.clone());
        let looked_at = disk.looked_at;
        let latest = disk.latest.take();
        disk.latest = state["contents"].as_str().map(str::to_owned);
        if before.is_null() || before["id"] == state["id"] {
            return;
        }
        // What a person tagged after its deletion was asked for is not on what is recreated.
        self.observe_until(resource, state);
        if does_not_boot(state) {
            self.count("what is recreated does not boot");
        }
        let first = state["first_contents"].as_str();
        if latest.is_some() && first != latest.as_deref() {
            self.violated(format!("{resource} is made from {first:?}, not from {latest:?}"));
        }
        // What a person changes after the look on which the deletion rests is deleted with the machine.
        let tracked = self.resources.get(resource);
        let changed_at = tracked
            .and_then(|tracked| tracked.person_at.max(tracked.tagged_at).max(tracked.until_at));
        let is_known = changed_at < looked_at || changed_at.is_none();
        if is_known && preserved_state(&before) != preserved_state(state) {
            self.violated(format!("{resource} was {before}, and is recreated as {state}"));
        }
    }

    fn check_copy_exists(&mut self, resource: &ResourceRef, images: &[Value]) {
        let disk = self.disks.get(resource);
        let Some(latest) = disk.and_then(|disk| disk.latest.clone()) else {
            return;
        };
        let mut copies = complete_copies(images, &resource.account, &latest);
        if copies.next().is_some() {
            return;
        }
        if self.person_crossed(resource) {
            self.person_deleted(resource);
            return;
        }
        self.violated(format!("what the disk of {resource} held is lost: {latest}"));
    }
}

/// Returns the complete snapshots that hold these contents.
fn complete_copies<'a>(
    images: &'a [Value],
    account: &AccountName,
    contents: &str,
) -> impl Iterator<Item = &'a Value> {
    images.iter().filter(move |image| {
        image["account"] == account.as_str()
            && image.get("status").is_none_or(|is| is == "available")
            && image["contents"] == contents
    })
}

fn creates(path: &str) -> bool {
    ["POST /v1/servers", "POST /v2/droplets"].contains(&path)
}

/// Returns the id in the path of a request about something other than the machine.
fn named_by(step: &Step) -> Option<String> {
    match step {
        Step::KeepAddress(address) => Some(address.clone()),
        Step::Protect { snapshot, .. } | Step::RemoveSnapshot(snapshot) => {
            Some(snapshot.to_string())
        }
        Step::Attach(what) => Some(what.name().id),
        Step::Off { .. }
        | Step::On { .. }
        | Step::Resize(_)
        | Step::Snapshot(_)
        | Step::Delete
        | Step::Create { .. } => None,
    }
}
