//! What the clouds show of earlier stops that no record knows, because the store was lost: our
//! snapshots and the machines recreated from them, and what may have been made smaller.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    AccountName, ResourceId, ResourceRef,
    configuration::{Account, Configuration},
    decision::judge,
    hibernation::{Hibernation, KeptSnapshot, Manifest, Mark, Origin, SnapshotState, of_labeled},
    look::Look,
    membership::Subject,
    record::{Direction, Observed, Record},
    resource::{MachineFacts, MachineSize, Power, Resource, Size},
    stop_method::StopMethod,
};
use environment::in_words;
use jiff::Timestamp;
use provider::{Client, Lists, OwnSnapshot};
use store::InForce;
use transition::{
    methods::rules,
    view::{Observation, PlanContext, View},
};

use crate::{
    Access, Context, Error,
    budget::Budget,
    observe::{
        inventory::{kinds, reconcile::made_of},
        look,
        poll::observed,
        stop_target::Plans,
    },
    report::{AccountRemains, Remains},
};

/// What no label says of a machine.
const UNLABELED: &str = "its addresses, volumes, networks, load balancers and backups are not \
    known, nor the firewalls that do not apply by a tag or label: recreated, it has new public \
    addresses; attach the others";

/// Asks every account in a cloud.
pub async fn remains(context: Context<'_>) -> Result<Vec<AccountRemains>, Error> {
    let in_force = context.store.in_force().await?;
    let budget = Budget::begin(context.clock);
    let mut all = Vec::new();
    let accounts = in_force.configuration.accounts.iter();
    for (account, _) in accounts.filter(|(_, account)| account.cloud().is_some()) {
        let records = context.store.records_of(account).await?;
        let unread = records.unreadable.first().map(|one| in_words(one));
        let asked = Asked { context, budget, in_force: &in_force, account, records: records.read };
        let found = match unread {
            Some(words) => Err(words),
            None => asked.found().await,
        };
        let (found, error) = match found {
            Ok(found) => (found, None),
            Err(words) => (Vec::new(), Some(words)),
        };
        all.push(AccountRemains { account: account.clone(), error, found });
    }
    withhold_doubles(&mut all);
    Ok(all)
}

/// Withholds the records of a machine that two accounts show: it would be recreated twice.
fn withhold_doubles(all: &mut [AccountRemains]) {
    let ids = all.iter().flat_map(|one| &one.found).map(|one| one.resource.id.clone());
    let mut seen = BTreeSet::new();
    let twice: BTreeSet<_> = ids.filter(|id| !seen.insert(id.clone())).collect();
    for one in all.iter_mut().flat_map(|one| &mut one.found) {
        if twice.contains(&one.resource.id) && one.record.take().is_some() {
            let remedy = "two accounts show it: leave one of them out, apply that, and repeat this";
            one.to_do = Some(remedy.to_owned());
        }
    }
}

/// An account that is asked.
struct Asked<'a> {
    context: Context<'a>,
    budget: Budget<'a>,
    in_force: &'a InForce,
    account: &'a AccountName,
    records: Vec<Record>,
}

/// What a cloud shows of one machine by our labels.
#[derive(Default)]
struct Traces<'a> {
    snapshots: Vec<OwnSnapshot>,
    /// The machine with its id, those labelled as it, and those that a snapshot is of.
    machines: BTreeMap<&'a ResourceId, &'a Resource>,
}

impl Asked<'_> {
    async fn found(&self) -> Result<Vec<Remains>, String> {
        let configuration = everywhere(self.account, &self.in_force.configuration);
        let client = self.context.providers;
        let client = client.client_to(Access::Read, self.account, &configuration).await;
        let client = client.map_err(|error| in_words(&error))?;
        let kinds = kinds(self.account, &configuration);
        let listed = look::list(&client, self.budget, kinds).await;
        let listed = listed.map_err(|error| in_words(&error))?;
        // What could not be listed may exist.
        if let Some(unread) = listed.unread.first() {
            return Err(in_words(unread));
        }
        let snapshots = client.snapshots().await.map_err(|error| in_words(&error))?;
        let mut found = Vec::new();
        for (of, traces) in traces(&listed.looks, snapshots.ours()) {
            let is_known = self.records.iter().any(|record| record.reference.id == of);
            if !is_known && kinds.contains(&of.kind()) {
                found.push(self.machine(&client, of, traces).await?);
            }
        }
        let plans = Plans::default();
        for look in &listed.looks {
            found.extend(self.shrunk(&client, &plans, look).await?);
        }
        Ok(found)
    }

    async fn machine(
        &self,
        client: &Client,
        of: ResourceId,
        Traces { snapshots, machines }: Traces<'_>,
    ) -> Result<Remains, String> {
        let machines: Vec<_> = machines.into_values().collect();
        let (name, found, record) = match machines.as_slice() {
            [] => return self.hibernated(client, of, &snapshots).await,
            [machine] => {
                let is_it = machine.id == of || label(machine).as_ref() == Some(&of);
                let recorded = self.records.iter().any(|one| one.reference.id == machine.id);
                let record = match (is_it, recorded) {
                    (true, false) => Ok(self.present(client, &of, machine, &snapshots).await?),
                    (true, true) => Err(format!(
                        "it is recorded as {}/{}: forget that with `offhours forget --anyway`, and \
                         repeat this",
                        self.account, machine.id
                    )),
                    (false, _) => Err("it lacks our label, and its snapshots are ours: if it is \
                                       this one, remove those that are not needed"
                        .to_owned()),
                };
                let found = format!("{} of ours, of {}", count(&snapshots), machine.id);
                (machine.name.clone(), found, record)
            }
            several => {
                let ids: Vec<_> = several.iter().map(|one| one.id.to_string()).collect();
                let remedy = "remove the one that is not needed, or its label, and repeat this";
                let found = format!("several machines: {}", ids.join(", "));
                (several[0].name.clone(), found, Err(remedy.to_owned()))
            }
        };
        let (record, to_do) = match record {
            Ok(record) => (Some(Box::new(record)), None),
            Err(remedy) => (None, Some(remedy)),
        };
        Ok(Remains { resource: self.reference(of), name, found, to_do, record })
    }

    /// There is no machine: one that was deleted by hibernation is recreated from its newest complete
    /// snapshot.
    async fn hibernated(
        &self,
        client: &Client,
        of: ResourceId,
        snapshots: &[OwnSnapshot],
    ) -> Result<Remains, String> {
        let resource = self.reference(of);
        let without = |found: &str, remedy: &str| Remains {
            resource: resource.clone(),
            name: String::new(),
            found: found.to_owned(),
            to_do: Some(remedy.to_owned()),
            record: None,
        };
        let Some(newest) = newest_complete(snapshots) else {
            let remedy = "wait until one is complete and repeat this, or delete them";
            return Ok(without("no machine, and no complete snapshot", remedy));
        };
        let found = format!("hibernated: snapshot {}", newest.seen.id);
        let Some(origin) = &newest.origin else {
            let remedy = "the snapshot does not say what the machine was like: create one from it";
            return Ok(without(&found, remedy));
        };
        let cloud = self.in_force.configuration.accounts.get(self.account);
        let key = cloud.and_then(Account::cloud).and_then(|cloud| cloud.ssh_key.as_deref());
        let manifest = client.still_there(&manifest(origin, newest), key).await;
        let manifest = manifest.map_err(|error| in_words(&error))?;
        if manifest.ssh_key.is_empty() {
            let remedy = "its account has no such SSH key: name one with ssh_key, apply that, and \
                          repeat this";
            return Ok(Remains { name: origin.name.clone(), ..without(&found, remedy) });
        }
        let tags = match origin.tags {
            Some(_) => "",
            None => {
                "; its tags did not fit into the snapshot's name: set them, or list it in its \
                     schedule"
            }
        };
        let shown = Resource {
            id: resource.id.clone(),
            name: origin.name.clone(),
            cluster: None,
            tags: manifest.tags.clone(),
            region: origin.region.clone(),
            power: Power::Stopped,
            busy: None,
            size: Size::Machine(manifest.size.clone()),
            facts: MachineFacts::default(),
            unsupported: None,
        };
        let mut record = Record::first_seen(resource.clone(), &shown);
        let at = self.budget.now();
        record.observed = Some(Observed { power: Power::Stopped, size: None, busy: None, at });
        let mut kept = kept(&resource.id, None, snapshots);
        kept.wake_from.clone_from(&newest.seen.mark);
        kept.lead = Some(kept.next_lead(&manifest.size));
        kept.manifest = Some(manifest);
        record.hibernation = Some(Box::new(kept));
        Ok(Remains {
            name: origin.name.clone(),
            record: Some(Box::new(record)),
            ..without(
                &format!("{found}, {} in {}", origin.plan, origin.region),
                &format!("{UNLABELED}{tags}"),
            )
        })
    }

    /// The machine exists: its record knows its snapshots, and by which id it is scheduled.
    async fn present(
        &self,
        client: &Client,
        of: &ResourceId,
        machine: &Resource,
        snapshots: &[OwnSnapshot],
    ) -> Result<Record, String> {
        let mut record = Record::first_seen(self.reference(of.clone()), machine);
        let mut kept = kept(of, Some(machine), snapshots);
        let seen = client.machine(&machine.id, Lists::default()).await;
        let seen = seen.map_err(|error| in_words(&error))?;
        let image = seen.and_then(|seen| seen.made_from);
        let made_from = snapshots.iter().find(|one| Some(one.seen.id) == image);
        kept.wake_from = made_from.and_then(|one| one.seen.mark.clone());
        kept.wakes = Mark::in_tags(&machine.tags).into_iter().collect();
        record.hibernation = Some(Box::new(kept));
        Ok(record)
    }

    /// Names a resource that is where its stops lead. No cloud shows what it was like before.
    async fn shrunk(
        &self,
        client: &Client,
        plans: &Plans,
        look: &Look,
    ) -> Result<Option<Remains>, String> {
        let resource = &look.resource;
        let known = self.records.iter().find(|one| one.present() == Some(&resource.id));
        let first_seen = || Record::first_seen(self.reference(resource.id.clone()), resource);
        let mut record = known.cloned().unwrap_or_else(first_seen);
        if record.saved.is_some() || record.in_flight().is_some() {
            return Ok(None);
        }
        record.observed = Some(observed(&record, look));
        let now = self.budget.now();
        let subject = Subject::seen(&record, resource);
        let verdict = judge(&record, subject, self.in_force.rules(), now);
        let policy = verdict.membership.policy(&self.in_force.configuration);
        let method = StopMethod::of(record.kind(), &policy);
        let resizes = record.kind().is_sized() || method.changes_plan();
        if verdict.membership.schedule().is_none() || !resizes {
            return Ok(None);
        }
        let context =
            PlanContext { rules: self.in_force.rules(), writer: self.context.writer, now };
        let view = View::new(&record, Observation::of(look), &policy, context);
        let target = plans.stop_target(client, self.context.store, view, &verdict).await;
        let target = target.map_err(|failure| failure.reason.to_string())?;
        let is_there = match resource.size {
            Size::Machine(_) => target.size.is_none(),
            Size::Database(_) | Size::NodePool(_) => {
                rules(method).reached(view, Direction::Stop, target.size.as_ref())
            }
        };
        if !is_there || target.refusal.is_some() {
            return Ok(None);
        }
        let size = resource.size.to_save().map(|size| size.to_string()).unwrap_or_default();
        Ok(Some(Remains {
            name: resource.name.clone(),
            found: format!("{size}, as after a stop ({method})"),
            to_do: Some(
                "if it had more, give it that at its provider: this size counts as its own now"
                    .to_owned(),
            ),
            resource: record.reference,
            record: None,
        }))
    }

    fn reference(&self, id: ResourceId) -> ResourceRef {
        ResourceRef { account: self.account.clone(), id }
    }
}

/// Returns the configuration with one account covering all locations: a machine in any of them exists.
fn everywhere(account: &AccountName, configuration: &Configuration) -> Configuration {
    let mut configuration = configuration.clone();
    if let Some(Account::Cloud(cloud)) = configuration.accounts.get_mut(account) {
        cloud.datacenters.clear();
    }
    configuration
}

/// Collects what is shown of each machine that has a label or a snapshot of ours, newest snapshots
/// first: both clouds number them in the order in which they are made.
fn traces(
    looks: &[Look],
    ours: impl Iterator<Item = OwnSnapshot>,
) -> BTreeMap<ResourceId, Traces<'_>> {
    let mut all = BTreeMap::<_, Traces<'_>>::new();
    for snapshot in ours {
        all.entry(snapshot.of.clone()).or_default().snapshots.push(snapshot);
    }
    for resource in looks.iter().map(|look| &look.resource) {
        if let Some(of) = label(resource) {
            all.entry(of).or_default().machines.insert(&resource.id, resource);
        }
    }
    for (of, traces) in &mut all {
        traces.snapshots.sort_by_key(|one| std::cmp::Reverse(one.seen.id));
        let is_of = |one: &OwnSnapshot, id| one.seen.from.as_ref() == Some(id);
        for resource in looks.iter().map(|look| &look.resource) {
            let id = &resource.id;
            if id == of || traces.snapshots.iter().any(|one| is_of(one, id)) {
                traces.machines.insert(id, resource);
            }
        }
    }
    all
}

/// Returns the resource that a machine is labelled as.
fn label(machine: &Resource) -> Option<ResourceId> {
    of_labeled(&made_of(machine)?)
}

fn newest_complete(snapshots: &[OwnSnapshot]) -> Option<&OwnSnapshot> {
    let is_complete =
        |one: &&OwnSnapshot| one.seen.state == SnapshotState::Available && one.seen.centi_gb > 0;
    snapshots.iter().find(is_complete)
}

fn count(snapshots: &[OwnSnapshot]) -> String {
    match snapshots.len() {
        1 => "1 snapshot".to_owned(),
        many => format!("{many} snapshots"),
    }
}

fn kept(of: &ResourceId, present: Option<&Resource>, snapshots: &[OwnSnapshot]) -> Hibernation {
    let present = present.map(|machine| machine.id.clone());
    let snapshot = |one: &OwnSnapshot| {
        let from = one.seen.from.clone().unwrap_or_else(|| of.clone());
        // It is unknown since when its machine had been off: it never permits a deletion.
        let looked_at = (Some(&from) == present.as_ref()).then_some(Timestamp::UNIX_EPOCH);
        Some(KeptSnapshot {
            id: Some(one.seen.id),
            looked_at,
            centi_gb: Some(one.seen.centi_gb).filter(|&size| size > 0),
            ..KeptSnapshot::of(from, one.seen.mark.clone()?, one.made_at)
        })
    };
    let snapshots = snapshots.iter().filter_map(snapshot).collect();
    Hibernation { present, snapshots, ..Hibernation::of(of.clone()) }
}

fn manifest(origin: &Origin, snapshot: &OwnSnapshot) -> Manifest {
    Manifest {
        name: origin.name.clone(),
        region: origin.region.clone(),
        tags: origin.tags.clone().unwrap_or_default(),
        size: MachineSize {
            plan: origin.plan.clone(),
            disk_gib: snapshot.seen.disk_gib,
            architecture: snapshot.seen.architecture.clone(),
            ..MachineSize::default()
        },
        new_addresses: true,
        ..Manifest::default()
    }
}

#[cfg(test)]
mod tests {
    use domain::{
        hibernation::SeenSnapshot,
        record::{PERMIT, SKEW},
    };

    use super::*;

    fn seen(id: ResourceId) -> Resource {
        Resource {
            id,
            name: "build".to_owned(),
            cluster: None,
            tags: BTreeSet::new(),
            region: "fsn1".to_owned(),
            power: Power::Running,
            busy: None,
            size: Size::Machine(MachineSize::default()),
            facts: MachineFacts::default(),
            unsupported: None,
        }
    }

    fn id(text: &str) -> ResourceId {
        text.parse().unwrap()
    }

    fn snapshot(number: u64, from: &str, state: SnapshotState, centi_gb: u64) -> OwnSnapshot {
        OwnSnapshot {
            of: id("server/42"),
            origin: None,
            made_at: "2026-11-23T19:05:00Z".parse().unwrap(),
            seen: SeenSnapshot {
                id: number,
                mark: Some(Mark(format!("mark{number}"))),
                from: Some(id(from)),
                state,
                created_at: None,
                centi_gb,
                disk_gib: 80,
                architecture: None,
                regions: None,
                protected: None,
                opted_out: false,
            },
        }
    }

    #[test]
    fn a_machine_is_recreated_from_its_newest_complete_snapshot() {
        let all = [
            snapshot(7, "server/42", SnapshotState::Available, 450),
            snapshot(11, "server/43", SnapshotState::Unknown, 450),
            snapshot(8, "server/43", SnapshotState::Available, 450),
            snapshot(10, "server/43", SnapshotState::Creating, 450),
            snapshot(9, "server/43", SnapshotState::Available, 0),
        ];
        let mut traces = traces(&[], all.into_iter());
        let Traces { snapshots, machines } = traces.remove(&id("server/42")).unwrap();
        assert!(machines.is_empty());
        assert_eq!(newest_complete(&snapshots).unwrap().seen.id, 8);
        assert!(newest_complete(&snapshots[..2]).is_none());
    }

    /// When its machine was off is unknown.
    #[test]
    fn a_snapshot_of_a_machine_that_is_there_permits_no_deletion() {
        let all = [
            snapshot(8, "server/43", SnapshotState::Available, 450),
            snapshot(7, "server/42", SnapshotState::Available, 450),
        ];
        let kept = kept(&id("server/42"), Some(&seen(id("server/43"))), &all);
        let off_since: Vec<_> = kept.snapshots.iter().map(KeptSnapshot::off_since).collect();
        assert_eq!(off_since[0], Timestamp::UNIX_EPOCH - SKEW);
        assert!(off_since[1] > all[1].made_at - (PERMIT + SKEW) * 3, "{off_since:?}");
    }

    #[test]
    fn a_machine_that_two_accounts_show_gets_no_record() {
        let of = |account: &str, number: u64| {
            let resource: ResourceRef = format!("{account}/server/{number}").parse().unwrap();
            let machine = seen(resource.id.clone());
            Remains {
                record: Some(Box::new(Record::first_seen(resource.clone(), &machine))),
                resource,
                name: "build".to_owned(),
                found: "hibernated".to_owned(),
                to_do: None,
            }
        };
        let all = [("hz-a", vec![of("hz-a", 1), of("hz-a", 2)]), ("hz-b", vec![of("hz-b", 2)])];
        let mut all = all.map(|(account, found)| AccountRemains {
            account: account.parse().unwrap(),
            error: None,
            found,
        });
        withhold_doubles(&mut all);
        let found = all.iter().flat_map(|one| &one.found);
        let kept: Vec<_> = found.map(|one| (one.record.is_some(), one.to_do.is_some())).collect();
        assert_eq!(kept, [(true, false), (false, true), (false, true)]);
    }
}
