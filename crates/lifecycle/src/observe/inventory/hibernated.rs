//! How an inventory looks at machines that are in no list because they are hibernated: one list of
//! the account's snapshots shows most of them, and the others are looked at as far as the account's
//! rate limit allows.

use std::collections::{HashMap, HashSet};

use domain::{
    ResourceId, ResourceRef,
    hibernation::{Hibernation, HibernationState, Sight, of_label},
    look::Look,
    pacing::SightRequests,
    record::{INVENTORY_INTERVAL, Phase, Record, Request},
};
use jiff::Timestamp;
use provider::{Client, ListedSnapshots};
use transition::methods::{Reads, Sighted, hibernate};

use super::reconcile::{Inventory, made_of, needs_no_look};
use crate::{
    failure::{LoginFailure, ObservationError},
    observe::look::{self, LookResult, SharedLists},
};

/// Why a machine is left out.
const LATER: &str = "the account's rate limit leaves it to one of the next inventories";

/// The looks at machines that are not listed.
pub(super) struct UnlistedLooks<'a> {
    inventory: &'a Inventory<'a>,
    /// Sends no more than there is room for.
    client: Client,
    /// What lists show of machines, or why one is not looked at now.
    known: HashMap<ResourceRef, LookResult>,
    /// The machines that are in no list, and of which something else of ours is there.
    traced: HashSet<ResourceRef>,
    shared: SharedLists,
}

impl<'a> UnlistedLooks<'a> {
    /// Lists the snapshots if any machine is hibernated. Of the machines that this does not show to
    /// be as they were, those that there is no room for have their turn in one of the next
    /// inventories.
    pub(super) async fn begin(
        inventory: &'a Inventory<'a>,
        unlisted: &[Record],
        machines: &Machines,
    ) -> Self {
        let (mut known, mut traced) = (HashMap::new(), HashSet::new());
        let to_look_at = || unlisted.iter().filter(|record| !needs_no_look(record));
        let hibernated = to_look_at().filter(|record| record.hibernation.is_some());
        let (asleep, mut others): (Vec<_>, Vec<_>) = hibernated.partition(|one| is_asleep(one));
        let going: Vec<_> = to_look_at().filter(|record| is_going(record)).collect();
        if !asleep.is_empty() || !going.is_empty() {
            let now = inventory.budget.now();
            let requested_at = machines.requested_at.map_or(now, |at| at.min(now));
            let listed = look::snapshots(inventory.client, inventory.budget).await;
            for record in asleep {
                let shown = match &listed {
                    Ok(listed) => machines.as_it_was(record, listed, requested_at).map(Ok),
                    Err(failure) => Some(Err(failure.clone())),
                };
                match shown {
                    Some(shown) => {
                        known.insert(record.reference.clone(), shown.map(Some));
                    }
                    None => others.push(record),
                }
            }
            let listed = none_if_not_permitted(listed);
            for record in going {
                match &listed {
                    Ok(listed) if machines.is_traced(&record.reference.id, None, listed) => {
                        traced.insert(record.reference.clone());
                        others.push(record);
                    }
                    Ok(_) => {}
                    Err(failure) => {
                        known.insert(record.reference.clone(), Err(failure.clone()));
                    }
                }
            }
        }
        let requests = if others.is_empty() { 0 } else { room(inventory, others.len()).await };
        let room = usize::try_from(SightRequests::FOLLOWING.machines_in(requests));
        let room = room.unwrap_or(usize::MAX);
        if others.len() > room {
            let now = inventory.budget.now().as_second();
            let turn = usize::try_from(now / INVENTORY_INTERVAL.as_secs()).unwrap_or_default();
            let first = turn.wrapping_mul(room) % others.len();
            others.rotate_left(first);
            for record in &others[room..] {
                let later = ObservationError::of(LATER);
                known.insert(record.reference.clone(), Err(later));
            }
        }
        let client = inventory.client.sending_at_most(requests);
        Self { inventory, client, known, traced, shared: SharedLists::default() }
    }

    /// Looks at a resource that is not listed.
    pub(super) async fn of(&self, record: &Record) -> LookResult {
        if let Some(known) = self.known.get(&record.reference) {
            return known.clone();
        }
        let budget = self.inventory.budget;
        let Reads { sight, extent, .. } = Reads::of(record);
        if sight == Sighted::Always || self.traced.contains(&record.reference) {
            return self.shared.sight(&self.client, budget, record, extent).await;
        }
        look::of_record(self.inventory.client, budget, record).await
    }
}

/// Returns how many requests looks at this many machines may take: what following takes in a minute,
/// less what the tick has sent before, and at least enough for one.
async fn room(inventory: &Inventory<'_>, machines: usize) -> u64 {
    let Some(mut asked) = inventory.asked.take() else {
        return u64::MAX;
    };
    let sight = SightRequests::FOLLOWING;
    let wanted = sight.for_machines(u64::try_from(machines).unwrap_or(u64::MAX));
    let now = inventory.budget.now();
    let most = asked.to_follow(now).min(asked.left_in_the_hour(now));
    let most = most.max(asked.sent() + sight.for_machines(1));
    let room = asked.plan(inventory.context, inventory.budget, wanted, most).await;
    inventory.asked.set(Some(asked));
    room
}

/// Returns no snapshots for a token that may not list them: hibernation takes one that may.
pub(super) fn none_if_not_permitted(
    listed: Result<ListedSnapshots, ObservationError>,
) -> Result<ListedSnapshots, ObservationError> {
    listed.or_else(|failure| {
        let is_permitted = failure.login != Some(LoginFailure::NotPermitted);
        if is_permitted { Err(failure) } else { Ok(ListedSnapshots::default()) }
    })
}

/// Reports whether nothing is known to change about a machine that does not exist.
fn is_asleep(record: &Record) -> bool {
    let unresolved = record.request.as_ref().is_some_and(Request::is_unresolved);
    record.is_hibernated() && matches!(record.phase, Phase::Settled { .. }) && !unresolved
}

/// Reports whether a machine that was never hibernated, as far as is recorded, is about to be taken for
/// gone. Its record may have been restored from before its first hibernation.
fn is_going(record: &Record) -> bool {
    record.hibernation.is_none() && record.missing_since.is_some() && !record.kind().is_sized()
}

/// The machines that are listed, any of which may be in the place of a hibernated one.
pub(super) struct Machines {
    names: HashSet<String>,
    /// The labels of those that were recreated.
    labels: HashSet<String>,
    /// When the list was begun.
    requested_at: Option<Timestamp>,
}

impl Machines {
    pub(super) fn of(looks: &[Look]) -> Self {
        let resources = || looks.iter().map(|look| &look.resource);
        Self {
            names: resources().map(|one| one.name.clone()).collect(),
            labels: resources().filter_map(made_of).collect(),
            requested_at: looks.iter().map(|look| look.requested_at).min(),
        }
    }

    /// Reports whether lists show a machine recreated from a missing one, or a snapshot of ours of it,
    /// of which some may be known.
    pub(super) fn is_traced(
        &self,
        of: &ResourceId,
        known: Option<&Hibernation>,
        listed: &ListedSnapshots,
    ) -> bool {
        self.labels.contains(&of_label(of)) || !listed.of_machine(of, known).is_empty()
    }

    /// Returns what lists show of a hibernated machine; `None` if it may be anything but hibernated
    /// as it was, with every snapshot that is known.
    fn as_it_was(
        &self,
        record: &Record,
        listed: &ListedSnapshots,
        requested_at: Timestamp,
    ) -> Option<Look> {
        let (kept, of) = (record.hibernation.as_deref()?, &record.reference.id);
        let name = kept.manifest.as_ref().map_or(&record.name, |one| &one.name);
        if self.names.contains(name) || self.labels.contains(&of_label(of)) {
            return None;
        }
        let sight = Sight { snapshots: listed.of_machine(of, Some(kept)), ..Sight::default() };
        let is_listed = |id: u64| sight.snapshots.iter().any(|one| one.id == id);
        let mut numbers = kept.snapshots.iter().filter_map(|one| one.id);
        let HibernationState::Hibernated(_) = sight.hibernation_state(kept) else {
            return None;
        };
        if !numbers.all(is_listed) {
            return None;
        }
        let resource = hibernate::shown(record, &sight)?;
        Some(Look { requested_at, resource, sight: Some(Box::new(sight)) })
    }
}

#[cfg(test)]
mod tests {
    use transition::tests::droplet;

    use super::*;

    #[test]
    fn a_machine_is_traced_by_the_label_of_one_that_was_recreated_from_it() {
        let case = droplet();
        let mut made = case.resource.clone();
        made.id = "droplet/9".parse().unwrap();
        let is_traced = |resource| {
            let look = Look { requested_at: case.now, resource, sight: None };
            let machines = Machines::of(&[look]);
            machines.is_traced(&case.record.reference.id, None, &ListedSnapshots::default())
        };
        assert!(!is_traced(made.clone()));
        made.tags.insert(format!("offhours-of:{}", case.resource.id.to_string().replace('/', "-")));
        assert!(is_traced(made));
    }
}
