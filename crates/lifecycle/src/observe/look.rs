//! Looking at resources: by a list where that takes fewer requests, by the Status operation of each
//! where not.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Mutex, PoisonError},
};

use domain::{
    ResourceId, ResourceKind,
    pacing::ListRequests,
    record::{Ask, Direction, Part, Record},
    resource::Look,
};
use jiff::{SignedDuration, Timestamp};
use provider::{Client, Listed, ProviderError, Reading, Sighting};

use crate::{budget::Budget, failure::NoLook, transition::method::hibernate};

/// Up to this many resources in flight are read by their Status operation.
const STATUS_UP_TO: usize = 10;

/// How old a list's look may be when its resource's turn comes: the log, and the write, need time
/// as well.
const YOUNG: SignedDuration = SignedDuration::from_secs(20);

/// For how long what is around several machines is read once for all of them. A deletion leaves
/// within ten seconds of its look, which is as old as that.
const SHARED_FOR: SignedDuration = SignedDuration::from_secs(4);

/// What the Status operation or a list showed; `None` is a 404 of the Status operation.
pub(crate) type Looked = Result<Option<Look>, NoLook>;

/// The lists of what may be around machines of an account, read once for those that are looked at
/// together.
#[derive(Debug, Default)]
pub(crate) struct SharedLists(Mutex<Option<(Timestamp, Client)>>);

impl SharedLists {
    /// A client that shares what others have read lately, and since when.
    pub(crate) fn by(&self, client: &Client, now: Timestamp) -> (Timestamp, Client) {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let young = latest
            .take()
            .filter(|(since, _)| now.duration_since(*since) < SHARED_FOR);
        latest
            .insert(young.unwrap_or_else(|| (now, client.sharing())))
            .clone()
    }

    /// One of several machines that are hibernated, or are about to be.
    pub(crate) async fn sight(
        &self,
        client: &Client,
        budget: Budget<'_>,
        record: &Record,
        attached: Attached,
    ) -> Looked {
        let (since, client) = self.by(client, budget.now());
        seen_in_time(&client, budget, (record, attached), since).await
    }
}

/// Looks at resources of one account: one pass over the lists that are worth it first, and each of
/// the others when its turn comes.
pub(crate) struct Looks<'a> {
    client: &'a Client,
    budget: Budget<'a>,
    shared: &'a SharedLists,
    listed: HashMap<ResourceId, Look>,
    /// The kinds whose list failed, and why.
    unlisted: BTreeMap<ResourceKind, NoLook>,
    /// Why the provider would not answer about any other resource of the account either.
    refused: Mutex<Option<NoLook>>,
    /// When the lists were read.
    taken_at: Timestamp,
}

impl<'a> Looks<'a> {
    /// Before acting: sized kinds each by their own, for a list's rows do not carry enough to save.
    pub(crate) async fn to_act(
        client: &'a Client,
        (budget, shared): (Budget<'a>, &'a SharedLists),
        ids: &BTreeSet<ResourceId>,
        requests: &ListRequests,
    ) -> Self {
        let machines = ids.iter().filter(|id| !id.kind().is_sized());
        let kinds = worth_a_list(machines, requests);
        Self::take(client, (budget, shared), kinds, ids).await
    }

    /// While following. Where much is due besides, even a few are read by a list that takes fewer
    /// requests.
    pub(crate) async fn to_follow(
        client: &'a Client,
        (budget, shared): (Budget<'a>, &'a SharedLists),
        ids: &BTreeSet<ResourceId>,
        requests: &ListRequests,
        is_busy: bool,
    ) -> Self {
        let kinds = if is_busy || ids.len() > STATUS_UP_TO {
            worth_a_list(ids, requests)
        } else {
            Vec::new()
        };
        Self::take(client, (budget, shared), kinds, ids).await
    }

    async fn take(
        client: &'a Client,
        (budget, shared): (Budget<'a>, &'a SharedLists),
        kinds: Vec<ResourceKind>,
        ids: &BTreeSet<ResourceId>,
    ) -> Self {
        let mut looks = Self {
            client,
            budget,
            shared,
            listed: HashMap::new(),
            unlisted: BTreeMap::new(),
            refused: Mutex::default(),
            taken_at: budget.now(),
        };
        if !kinds.is_empty() {
            match list(client, budget, &kinds).await {
                Ok(listed) => {
                    let of_these = |look: &Look| ids.contains(&look.resource.id);
                    let shown = listed.looks.into_iter().filter(of_these);
                    looks.listed = shown.map(|look| (look.resource.id.clone(), look)).collect();
                }
                Err(error) => {
                    let no_look = NoLook::from(&error);
                    let failed = kinds.into_iter().map(|kind| (kind, no_look.clone()));
                    looks.unlisted = failed.collect();
                }
            }
            looks.taken_at = budget.now();
        }
        looks
    }

    /// The records in the order in which to ask for their looks: what the list saw first comes
    /// first, before it is too old.
    pub(crate) fn in_order(&self, mut records: Vec<Record>) -> Vec<Record> {
        records.sort_by_key(|record| {
            let look = record.present().and_then(|id| self.listed.get(id));
            let requested_at = look.map(|look| look.requested_at);
            (requested_at.is_none(), requested_at)
        });
        records
    }

    /// Whether what a list showed is too old by now to be acted on.
    pub(crate) fn are_old(&self, now: Timestamp) -> bool {
        !self.listed.is_empty() && now.duration_since(self.taken_at) > YOUNG
    }

    /// What one resource shows: as the list saw it just now, or by its Status operation. What a
    /// list does not show may still be there, for pages shift.
    pub(crate) async fn of(&self, record: &Record) -> Looked {
        let Some(id) = record.present().filter(|_| !record.needs_sight()) else {
            let sight = self
                .shared
                .sight(self.client, self.budget, record, Attached::of(record));
            return sight.await;
        };
        if let Some(look) = self.listed.get(id)
            && !is_old(look, self.budget.now())
        {
            return Ok(Some(look.clone()));
        }
        if let Some(no_look) = self.unlisted.get(&id.kind()) {
            return Err(no_look.clone());
        }
        if let Some(no_look) = self.refused().clone() {
            return Err(no_look);
        }
        let looked = by_status(self.client, self.budget, id).await;
        if let Err(no_look) = &looked
            && no_look.token_refused
        {
            *self.refused() = Some(no_look.clone());
        }
        looked
    }

    fn refused(&self) -> std::sync::MutexGuard<'_, Option<NoLook>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a list's look is too old when its resource's turn comes.
pub(crate) fn is_old(look: &Look, now: Timestamp) -> bool {
    now.duration_since(look.requested_at) > YOUNG
}

/// The kinds of which there are more than their list takes requests. A list that was never read
/// whole counts as one page.
fn worth_a_list<'a>(
    ids: impl IntoIterator<Item = &'a ResourceId>,
    requests: &ListRequests,
) -> Vec<ResourceKind> {
    let mut of_kind = BTreeMap::<ResourceKind, u32>::new();
    for id in ids {
        *of_kind.entry(id.kind()).or_default() += 1;
    }
    of_kind.retain(|kind, ids| *ids > requests.get(kind).copied().unwrap_or(1));
    of_kind.into_keys().collect()
}

/// All that these kinds have.
pub(crate) async fn list(
    client: &Client,
    budget: Budget<'_>,
    kinds: &[ResourceKind],
) -> Result<Listed, ProviderError> {
    let reading = Reading {
        now: &|| budget.now(),
        until: Some(budget.until()),
        read: &|_| (),
    };
    client.list(kinds, reading).await
}

/// One resource by its Status operation.
pub(crate) async fn by_status(client: &Client, budget: Budget<'_>, id: &ResourceId) -> Looked {
    if budget.is_over() {
        return Err(NoLook::of("there was no time left to look at it"));
    }
    let requested_at = budget.now();
    match client.status(id).await {
        Ok(found) => Ok(found.map(|resource| Look {
            requested_at,
            resource,
            sight: None,
        })),
        Err(error) => Err(NoLook::from(&error)),
    }
}

/// A record's resource by whatever shows it.
pub(crate) async fn of_record(client: &Client, budget: Budget<'_>, record: &Record) -> Looked {
    if let Some(id) = record.present().filter(|_| !record.needs_sight()) {
        return by_status(client, budget, id).await;
    }
    let of = (record, Attached::of(record));
    seen_in_time(client, budget, of, budget.now()).await
}

/// Whether a look reads what is attached to a machine that may be hibernated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attached {
    /// It may be deleted, or was made again.
    Read,
    /// A stop is followed: how far it has come is not seen by that.
    Left,
}

impl Attached {
    fn of(record: &Record) -> Self {
        match record.under_way_towards(Direction::Stop) {
            Some(_) => Self::Left,
            None => Self::Read,
        }
    }
}

/// A machine that is hibernated, or is about to be, with its snapshots and with what might be it.
async fn seen_in_time(
    client: &Client,
    budget: Budget<'_>,
    (record, attached): (&Record, Attached),
    requested_at: Timestamp,
) -> Looked {
    if budget.is_over() {
        return Err(NoLook::of("there was no time left to look at it"));
    }
    let looked = seen(client, record, attached, requested_at).await;
    looked.map_err(|error| NoLook::from(&error))
}

/// A machine that may be hibernated, as its record knows it, with all that is attached to it, however
/// long it takes to read that.
pub async fn sighted(
    client: &Client,
    record: &Record,
    requested_at: Timestamp,
) -> Result<Option<Look>, ProviderError> {
    seen(client, record, Attached::Read, requested_at).await
}

async fn seen(
    client: &Client,
    record: &Record,
    attached: Attached,
    requested_at: Timestamp,
) -> Result<Option<Look>, ProviderError> {
    let kept = record.hibernation.as_deref();
    let manifest = kept.and_then(|kept| kept.manifest.as_ref());
    let request = record.request.as_ref();
    let seen = client.sight(Sighting {
        of: &record.reference.id,
        present: record.present(),
        made: request.and_then(|request| request.made.as_ref()),
        making: request.and_then(|request| match (request.part, &request.ask) {
            (Part::Create, Ask::Accepted { action, .. }) => *action,
            (_, _) => None,
        }),
        kept,
        attached: attached == Attached::Read,
        name: manifest.map_or(&record.name, |manifest| &manifest.name),
    });
    let sight = seen.await?;
    let shown = hibernate::shown(record, &sight);
    Ok(shown.map(|resource| Look {
        requested_at,
        resource,
        sight: Some(Box::new(sight)),
    }))
}

#[cfg(test)]
mod tests {
    use provider::{Base, http_client};

    use super::*;

    #[test]
    fn lists_are_shared_for_some_seconds_and_a_look_is_as_old_as_they_are() {
        let base: Base = "http://localhost:1".parse().unwrap();
        let client = Client::digitalocean(base, "token".into(), http_client().unwrap());
        let shared = SharedLists::default();
        let at = |millis| Timestamp::from_millisecond(millis).unwrap();
        let since = [1000, 4999, 5000, 8999].map(|now| shared.by(&client, at(now)).0);
        assert_eq!(since, [1000, 1000, 5000, 5000].map(at));
    }
}
