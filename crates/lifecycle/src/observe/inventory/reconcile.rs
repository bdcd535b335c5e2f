//! Comparing what an account lists with what is recorded, and writing the result.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
};

use domain::{
    AccountName, ResourceId, ResourceKind, ResourceRef,
    decision::{Verdict, due_at, judge},
    hibernation::{OF_LABEL, of_label},
    joining::{self, follows},
    left_behind::{Barrier, LeftBehind, barrier, left_behind},
    look::Look,
    membership::{Exclusion, Membership, Subject},
    record::{Direction, Phase, Record},
    resource::Resource,
    until,
};
use environment::Invoke;
use futures_util::{StreamExt as _, stream};
use provider::{AT_ONCE, Client};
use store::{InForce, StoreError};
use transition::{
    follow::{self, Follow},
    methods,
    view::Observation,
};

use super::{
    count_recorded,
    covered::{Elsewhere, present_id},
    hibernated::{Machines, UnlistedLooks},
    mend,
};
use crate::{
    Context, Error,
    budget::Budget,
    event::{Event, HeldResource, Occurrence},
    observe::{
        asked::Asked,
        in_flight::{AccountFollower, Handoffs, ReportedErrors},
        look::{self, LookResult},
    },
    report::{Report, health::Health, reread},
};

/// The inventory of an account that was listed.
pub(super) struct Inventory<'a> {
    pub(super) context: Context<'a>,
    pub(super) budget: Budget<'a>,
    pub(super) account: &'a AccountName,
    pub(super) in_force: &'a InForce,
    pub(super) client: &'a Client,
    /// Whether the account was never listed completely before.
    pub(super) first: bool,
    pub(super) elsewhere: Elsewhere<'a>,
    /// The resources that a newer program recorded: neither new nor gone, and left alone.
    pub(super) newer: Vec<ResourceRef>,
    /// The kinds that could not be read: nothing is concluded from their absence.
    pub(super) unread: BTreeSet<ResourceKind>,
    pub(super) reported_errors: ReportedErrors,
    /// Whether any record may have been written.
    pub(super) wrote: Cell<bool>,
    /// What the account was asked in this tick, apart from lists.
    pub(super) asked: Cell<Option<Asked>>,
}

impl Inventory<'_> {
    /// Processes what a list showed; `None` if there was no time to write all of it.
    pub(super) async fn reconcile(
        &self,
        records: Vec<Record>,
        looks: Vec<Look>,
        invoke: &impl Invoke,
        report: &mut Report,
    ) -> Option<Health> {
        let listed = looks.iter().map(|look| &look.resource.id).collect();
        let made = labels_of_made(&records, &self.newer, &listed);
        let machines = Machines::of(&looks);
        let mut doubles = BTreeMap::new();
        let mut recorded = BTreeMap::<ResourceId, Vec<Record>>::new();
        for record in records {
            recorded.entry(present_id(&record)).or_default().push(record);
        }
        let mut compared = Vec::new();
        for look in looks {
            let resource = &look.resource;
            let old = recorded.remove(&resource.id).unwrap_or_default();
            // Workers come and go with their pool, which is what is scheduled.
            let is_worker = resource.facts.kubernetes_worker;
            let is_newer = self.newer.iter().any(|newer| newer.id == resource.id);
            // A machine that we created belongs to its record, even if that was read before the
            // machine was requested, or does not know it yet.
            let of = made_of(resource);
            let is_made = of.as_ref().is_some_and(|of| self.has_made(&made, of));
            // What its record does not know yet, or has just requested, has no second machine.
            if let Some((maker, present)) = of.and_then(|of| made.get(&of)?.clone())
                && present != resource.id
            {
                doubles.insert(maker, resource.id.clone());
            }
            if old.is_empty() && !(is_worker || is_newer || is_made) {
                compared.push(self.compare(None, look, None));
                continue;
            }
            // Whichever of two records is right, neither is acted on.
            let references: Vec<_> = old.iter().map(|one| one.reference.clone()).collect();
            for record in old {
                let own = &record.reference;
                let twin = references.iter().find(|one| *one != own).cloned();
                compared.push(self.compare(Some(record), look.clone(), twin.as_ref()));
            }
        }
        for one in &mut compared {
            if let Some(second) = doubles.remove(&one.record.reference) {
                one.record.note_second_machine(&second);
            }
        }
        self.hold_too_many(&mut compared);
        let mut tally = Tally::default();
        let unlisted = recorded.into_values().flatten();
        let (unread, unlisted): (Vec<_>, Vec<_>) =
            unlisted.partition(|record| self.unread.contains(&record.kind()));
        tally.health += count_recorded(self.context, self.in_force, unread, report).await;
        let looks = UnlistedLooks::begin(self, &unlisted, &machines).await;
        let written = self.write_all(compared, unlisted, &looks, invoke, &mut tally);
        let whole = written.await;
        report.outcomes.append(&mut tally.outcomes);
        if let Some(event) = tally.held() {
            let now = self.context.clock.now();
            report.add(self.context, [Occurrence::of_account(self.account, now, event)]);
        }
        whole.then_some(tally.health)
    }

    /// Reports whether a machine with this label was recreated from a resource of this account, or
    /// of another account that reaches the same project.
    fn has_made(&self, made: &MadeOf, of: &str) -> bool {
        made.contains_key(of) || self.elsewhere.has(of)
    }

    /// Writes several at a time. Returns false if there was no time for all.
    async fn write_all(
        &self,
        mut compared: Vec<Compared>,
        unlisted: Vec<Record>,
        looks: &UnlistedLooks<'_>,
        invoke: &impl Invoke,
        tally: &mut Tally,
    ) -> bool {
        // What is held goes first: the next inventory may find too few to hold.
        compared.sort_by_key(|one| !one.is_newly_held());
        let compared = compared.into_iter().map(Box::new).map(Found::Listed);
        let unlisted = unlisted.into_iter().map(Box::new).map(Found::Unlisted);
        let mut written = stream::iter(compared.chain(unlisted))
            .map(|found| self.write_one(found, looks, invoke))
            .buffer_unordered(AT_ONCE);
        let mut whole = true;
        while let Some(one) = written.next().await {
            match one {
                Some(one) => tally.take_in(one),
                None => whole = false,
            }
        }
        whole
    }

    /// Writes what was found of one resource, or returns `None` when the tick's time is used up. A
    /// failure of one record does not stop the others.
    async fn write_one(
        &self,
        found: Found,
        looks: &UnlistedLooks<'_>,
        invoke: &impl Invoke,
    ) -> Option<Tally> {
        if self.budget.is_over_for_writing() {
            return None;
        }
        let mut tally = Tally::default();
        let (record, written) = match found {
            Found::Listed(one) => {
                let record = one.record.clone();
                (record, self.write(*one, invoke, &mut tally).await)
            }
            Found::Unlisted(record) => {
                let record = *record;
                let written = self.unlisted(record.clone(), looks, invoke, &mut tally);
                let written = written.await;
                (record, written)
            }
        };
        if let Err(error) = written {
            let now = self.context.clock.now();
            tally.health.count(&record, self.in_force, now);
            tally.add(self.context.report_failure(&record, &error));
        }
        Some(tally)
    }

    /// Compares what a look shows with the record of it, if there is one, and with that of the same
    /// machine under another reference.
    fn compare(&self, old: Option<Record>, look: Look, twin: Option<&ResourceRef>) -> Compared {
        let resource = &look.resource;
        let mut record = old.clone().unwrap_or_else(|| {
            let reference = ResourceRef { account: self.account.clone(), id: resource.id.clone() };
            Record {
                first_seen_at: Some(look.requested_at),
                ..Record::first_seen(reference, resource)
            }
        });
        self.take_in(&mut record, &look, twin);
        let verdict = self.verdict(&record, resource);
        let schedule = verdict.membership.schedule().cloned();
        let new = record.note_joining(&verdict, self.context.clock.now());
        let joined = follows(&verdict) && (!record.opted_in || record.schedule != schedule);
        record.opted_in = verdict.opted_in;
        record.schedule = schedule;
        let lost_storage = record.lost_storage;
        if !verdict.opted_in || lost_storage.is_some_and(|lost| lost.is_back(&resource.size)) {
            record.held = false;
            record.lost_storage = None;
        }
        let (rules, now) = (self.in_force.rules(), self.context.clock.now());
        record.orphaned = left_behind(&record, rules, now) == Some(LeftBehind::Orphaned);
        Compared {
            barrier: barrier(&record, &self.in_force.configuration),
            new,
            joined,
            was: old,
            record,
            look,
            verdict,
        }
    }

    /// Updates a record with what a look shows.
    fn take_in(&self, record: &mut Record, look: &Look, twin: Option<&ResourceRef>) {
        let resource = &look.resource;
        record.describe(resource);
        record.missing_since = None;
        record.note_until_tags(resource, self.context.clock.now());
        let double = twin.or_else(|| self.elsewhere.get(&resource.id));
        // A resource that this account does not handle is the other one's alone.
        record.duplicate_of = double.filter(|_| resource.unsupported.is_none()).cloned();
        let observed = methods::observed(Observation::of(look), record);
        if matches!(record.phase, Phase::Gone { .. }) {
            // An id is never used twice: it is the same resource, and what was handled stays so.
            record.phase = Phase::Settled { at: observed.power };
        }
        let standing = methods::standing(resource, record);
        if let (Phase::Settled { at }, Some(standing)) = (&mut record.phase, standing) {
            *at = standing;
        }
        record.observe(observed);
        methods::take_stock(record, Observation::of(look));
    }

    fn verdict(&self, record: &Record, resource: &Resource) -> Verdict {
        judge(
            record,
            Subject::seen(record, resource),
            self.in_force.rules(),
            self.context.clock.now(),
        )
    }

    /// Holds new resources if there are too many, except in a first inventory, where all are new.
    fn hold_too_many(&self, compared: &mut [Compared]) {
        if self.first {
            return;
        }
        let held_before = compared.iter().filter(|one| one.record.held).count();
        let new = compared.iter_mut().filter(|one| one.new);
        let new = new.map(|one| &mut one.record);
        let max_new = self.in_force.configuration.settings.max_new;
        joining::hold_too_many(new, held_before, max_new);
    }

    async fn write(
        &self,
        one: Compared,
        invoke: &impl Invoke,
        tally: &mut Tally,
    ) -> Result<(), Error> {
        let now = self.context.clock.now();
        let mut record = one.record.clone();
        record.due_at = due_at(&record, self.in_force.rules(), now);
        if one.was.as_ref() == Some(&record) {
            tally.note_held(&record);
        } else {
            self.wrote.set(true);
            match self.context.store.save(record.clone()).await {
                Ok(saved) => {
                    record = saved;
                    let events = one.events().into_iter();
                    let outcomes = events.map(|event| Occurrence::of(&record, now, event));
                    tally.add(self.context.report(outcomes.collect()));
                    tally.newly_held |= one.is_newly_held();
                    tally.note_held(&record);
                    tally.add(self.double(&record).await?);
                }
                // Another writer was first: the next inventory compares again.
                Err(StoreError::Stale { .. }) => {
                    tally.health.count(&record, self.in_force, now);
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
        // A stuck resource is looked at by every inventory, and no sooner.
        if matches!(record.phase, Phase::Stuck { .. }) {
            let looked = if look::is_old(&one.look, now) {
                // The list was long, or slow.
                look::of_record(self.client, self.budget, &record).await
            } else {
                Ok(Some(one.look))
            };
            self.follow(record, looked, invoke, tally).await;
            return Ok(());
        }
        tally.health.count(&record, self.in_force, now);
        Ok(())
    }

    /// Marks the other account's record of the same resource too, unless it is marked already: its
    /// own inventory comes minutes later, and an edge may be in between.
    async fn double(&self, record: &Record) -> Result<Vec<Occurrence>, Error> {
        let other = record.duplicate_of.as_ref();
        // One of the same account is marked by the same inventory.
        let Some(other) = other.filter(|other| other.account != record.reference.account) else {
            return Ok(Vec::new());
        };
        let other = reread(self.context.store, other).await?;
        let Some(mut other) = other.filter(|other| other.duplicate_of.is_none()) else {
            return Ok(Vec::new());
        };
        let now = self.context.clock.now();
        other.duplicate_of = Some(record.reference.clone());
        other.due_at = due_at(&other, self.in_force.rules(), now);
        match self.context.store.save(other).await {
            Ok(other) => {
                let reason = Exclusion::TwoAccounts(record.reference.clone()).to_string();
                let conflict = Occurrence::of(&other, now, Event::Conflict { reason });
                Ok(self.context.report(vec![conflict]))
            }
            Err(StoreError::Stale { .. }) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Handles a resource missing from the list: its own Status operation says whether it is gone.
    async fn unlisted(
        &self,
        record: Record,
        looks: &UnlistedLooks<'_>,
        invoke: &impl Invoke,
        tally: &mut Tally,
    ) -> Result<(), Error> {
        if needs_no_look(&record) {
            let now = self.context.clock.now();
            tally.health.count(&record, self.in_force, now);
            return Ok(());
        }
        self.wrote.set(true);
        match looks.of(&record).await {
            Ok(None) => {
                let follower = self.follower();
                let next = follow::unlisted(&record, follower.plan_context());
                self.carry_out(&follower, record, next, invoke, tally).await;
                Ok(())
            }
            Ok(Some(look)) => {
                let compared = self.compare(Some(record), look, None);
                self.write(compared, invoke, tally).await
            }
            Err(failure) => {
                tracing::warn!(%record.reference, reason = %failure.reason, "no status of what was not listed");
                let record = mend(self.context, record, self.in_force).await?;
                let now = self.context.clock.now();
                tally.health.count(&record, self.in_force, now);
                Ok(())
            }
        }
    }

    async fn follow(
        &self,
        record: Record,
        looked: LookResult,
        invoke: &impl Invoke,
        tally: &mut Tally,
    ) {
        let follower = self.follower();
        let next = follower.decide(&record, &looked).await;
        self.carry_out(&follower, record, next, invoke, tally).await;
    }

    fn follower(&self) -> AccountFollower<'_> {
        AccountFollower {
            context: self.context,
            budget: self.budget,
            client: self.client,
            in_force: self.in_force,
            reported_errors: &self.reported_errors,
        }
    }

    async fn carry_out(
        &self,
        follower: &AccountFollower<'_>,
        record: Record,
        next: Follow,
        invoke: &impl Invoke,
        tally: &mut Tally,
    ) {
        self.wrote.set(true);
        let mut handoffs = Handoffs::default();
        let was = record.clone();
        let done = follower.carry_out(record, next, &mut handoffs).await;
        follower.invoke_next(handoffs, invoke).await;
        tally.add(done.outcomes);
        let now = self.context.clock.now();
        let record = done.record.unwrap_or(was);
        tally.health.count(&record, self.in_force, now);
    }
}

/// Reports whether an inventory does not look at a resource that is not listed.
pub(super) fn needs_no_look(record: &Record) -> bool {
    let is_followed = record.in_flight().is_some() && record.missing_since.is_none();
    matches!(record.phase, Phase::Gone { .. }) || is_followed
}

/// The labels of machines recreated from recorded resources, each with the resource and its present
/// machine, as far as its record can be read and has one.
type MadeOf = HashMap<String, Option<(ResourceRef, ResourceId)>>;

/// Returns the labels of machines recreated from these records, or from those that a newer program
/// wrote. A record whose machine is missing may be older than its first hibernation; one that is gone
/// has no machine.
fn labels_of_made(
    records: &[Record],
    newer: &[ResourceRef],
    listed: &HashSet<&ResourceId>,
) -> MadeOf {
    let hibernated = records
        .iter()
        .filter(|one| one.hibernation.is_some() || !listed.contains(&one.reference.id))
        .filter(|one| !matches!(one.phase, Phase::Gone { .. }));
    let hibernated = hibernated.map(|one| {
        let present = one.present().cloned();
        let present = present.map(|present| (one.reference.clone(), present));
        (of_label(&one.reference.id), present)
    });
    let newer = newer.iter().map(|one| (of_label(&one.id), None));
    newer.chain(hibernated).collect()
}

/// Returns the resource that a machine says it was recreated from, in the form of [`of_label`]: a
/// tag of `DigitalOcean` may hold no dot (DOSPEC).
pub(crate) fn made_of(resource: &Resource) -> Option<String> {
    let mut pairs = resource.tags.iter().filter_map(|tag| tag.split_once(['=', ':']));
    pairs.find_map(|(key, of)| (key == OF_LABEL).then(|| of.replace('-', ".")))
}

/// How many held resources are named; the event that names them has to stay within its limits.
const HELD_NAMED: usize = 400;

/// The result of one inventory so far.
#[derive(Debug, Default)]
struct Tally {
    outcomes: Vec<Occurrence>,
    health: Health,
    held: Vec<HeldResource>,
    /// Whether this inventory is the first to hold some of them.
    newly_held: bool,
}

impl Tally {
    /// Adds the result of one record.
    fn take_in(&mut self, one: Self) {
        self.outcomes.extend(one.outcomes);
        self.health += one.health;
        self.held.extend(one.held);
        self.newly_held |= one.newly_held;
    }

    fn add(&mut self, outcomes: Vec<Occurrence>) {
        self.outcomes.extend(outcomes);
    }

    fn note_held(&mut self, record: &Record) {
        if record.held {
            self.held.push(HeldResource::of(record));
        }
    }

    /// Returns one event for all held resources, if this inventory newly holds some.
    fn held(&mut self) -> Option<Event> {
        if !self.newly_held {
            return None;
        }
        let mut resources = std::mem::take(&mut self.held);
        let count = resources.len();
        resources.truncate(HELD_NAMED);
        Some(Event::Held { count, resources })
    }
}

/// What an inventory has to write: a resource that was listed, or the record of one that was not.
enum Found {
    Listed(Box<Compared>),
    Unlisted(Box<Record>),
}

/// A resource, its old record, and its new one.
struct Compared {
    was: Option<Record>,
    record: Record,
    look: Look,
    verdict: Verdict,
    /// What has to end before a person can start it with Offhours, if anything.
    barrier: Option<Barrier>,
    /// Whether it follows a schedule, or another one, as of this inventory.
    joined: bool,
    /// Whether it joins now, and no edge of it was ever handled.
    new: bool,
}

impl Compared {
    fn is_newly_held(&self) -> bool {
        // What an apply holds is reported by the inventory that first finds it following.
        let was = self.was.as_ref();
        self.record.held && !was.is_some_and(|was| was.held && was.opted_in)
    }

    /// Returns the changes worth reporting, each once.
    fn events(&self) -> Vec<Event> {
        let was = self.was.as_ref();
        let mut events = Vec::new();
        if let (true, Membership::Member { schedule, via }) =
            (self.joined, &self.verdict.membership)
        {
            events.push(Event::Joined {
                schedule: schedule.clone(),
                via: via.to_string(),
                held: self.record.held,
            });
        }
        // What names its schedule: a tag, or a name that a schedule lists.
        let named_anew = was.is_none_or(|was| {
            was.name != self.record.name
                || was.tags != self.record.tags
                || was.cluster != self.record.cluster
                || was.duplicate_of != self.record.duplicate_of
        });
        match &self.verdict.membership {
            Membership::Excluded(exclusion) if named_anew && exclusion.is_conflict() => {
                events.push(Event::Conflict { reason: exclusion.to_string() });
            }
            Membership::Unknown { word, .. } if named_anew => {
                events.push(Event::UnknownSchedule { word: word.clone() });
            }
            Membership::Excluded(_)
            | Membership::Unknown { .. }
            | Membership::Member { .. }
            | Membership::Unnamed => {}
        }
        if let Some(invalid) = until::invalid(&self.record)
            && was.and_then(until::invalid).as_ref() != Some(&invalid)
        {
            let reason = format!("{invalid}: {}", invalid.instead());
            events.push(Event::InvalidUntil { reason });
        }
        let problem = self.record.hibernation_problem();
        if let Some(reason) = problem
            && was.and_then(Record::hibernation_problem) != problem
        {
            let reason = reason.to_owned();
            events.push(if self.record.is_hibernated() {
                Event::Stuck { direction: Direction::Start, cause: None, reason }
            } else {
                Event::Conflict { reason }
            });
        }
        if self.record.orphaned && !was.is_some_and(|was| was.orphaned) {
            let barrier = self.barrier.as_ref().map(ToString::to_string);
            events.push(Event::Orphaned { barrier });
        }
        events
    }
}

#[cfg(test)]
mod tests;
