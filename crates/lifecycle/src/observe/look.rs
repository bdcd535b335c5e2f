//! Observing resources: by a list if that takes fewer requests, otherwise each by its Status
//! operation.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::{
    ResourceId, ResourceKind,
    look::Look,
    pacing::ListRequests,
    record::{Ask, Record},
    step::Step,
};
use jiff::{SignedDuration, Timestamp};
use provider::{
    Attachments, Client, HibernationLookup, Listed, ListedSnapshots, Lists, Preflight,
    ProviderError, Reading,
};
use tokio::sync::OnceCell;
use transition::methods::{Extent, Reads, Sighted, hibernate};

use crate::{budget::Budget, failure::ObservationError};

/// Up to this many resources in flight are read by their Status operation.
const STATUS_UP_TO: usize = 10;

/// How old a list's look may be when its resource's turn comes: the log and the write need time as
/// well.
const YOUNG: SignedDuration = SignedDuration::from_secs(20);

/// How long one read of what is around machines is shared by several of them. A deletion leaves
/// within ten seconds of its look, which is as old as that read.
const SHARED_FOR: SignedDuration = SignedDuration::from_secs(4);

/// Why something was not looked at.
const NO_TIME: &str = "there was no time left to look at it";

/// What the Status operation or a list showed; `None` is a 404 of the Status operation.
pub(crate) type LookResult = Result<Option<Look>, ObservationError>;

/// The lists of an account, read once for all of its machines that are looked at together.
#[derive(Debug, Default)]
pub(crate) struct SharedLists {
    lists: Latest<MachineLists>,
    preflight: Latest<OnceCell<Preflight>>,
}

/// What a look at a machine rests on besides the machine itself.
#[derive(Debug, Default)]
struct MachineLists {
    snapshots: OnceCell<ListedSnapshots>,
    attachments: OnceCell<Attachments>,
}

/// What is read once for all that need it within some seconds, and when that began.
#[derive(Debug, Default)]
struct Latest<T>(Mutex<Option<Arc<(Timestamp, T)>>>);

impl<T: Default> Latest<T> {
    fn younger_than(&self, age: SignedDuration, now: Timestamp) -> Arc<(Timestamp, T)> {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let young = latest.take().filter(|latest| now.duration_since(latest.0) < age);
        Arc::clone(latest.insert(young.unwrap_or_else(|| Arc::new((now, T::default())))))
    }
}

impl SharedLists {
    /// Looks at a machine that is hibernated or about to be, with its snapshots and whatever might
    /// be it.
    pub(crate) async fn sight(
        &self,
        client: &Client,
        budget: Budget<'_>,
        record: &Record,
        extent: Extent,
    ) -> LookResult {
        if budget.is_over() {
            return Err(ObservationError::of(NO_TIME));
        }
        let seen = self.seen(client, budget, record, extent).await;
        seen.map_err(|error| ObservationError::from(&error))
    }

    /// The look is as old as the lists that it rests on.
    async fn seen(
        &self,
        client: &Client,
        budget: Budget<'_>,
        record: &Record,
        extent: Extent,
    ) -> Result<Option<Look>, ProviderError> {
        // Reading what may be in the way takes many requests, and says nothing of the machine's state.
        let preflight = self.preflight.younger_than(YOUNG, budget.now());
        let preflight = match extent {
            Extent::Obstacles => Some(preflight.1.get_or_try_init(|| client.preflight()).await?),
            Extent::Progress | Extent::Attached => None,
        };
        let lists = self.lists.younger_than(SHARED_FOR, budget.now());
        let (requested_at, lists) = (lists.0, &lists.1);
        let attached = extent >= Extent::Attached && record.present().is_some();
        let (snapshots, attachments) =
            tokio::try_join!(lists.snapshots.get_or_try_init(|| client.snapshots()), async {
                let attachments = lists.attachments.get_or_try_init(|| client.attachments());
                if attached { attachments.await.map(Some) } else { Ok(None) }
            })?;
        let kept = record.hibernation.as_deref();
        let manifest = kept.and_then(|kept| kept.manifest.as_ref());
        let request = record.request.as_ref();
        let sight = client.inspect(HibernationLookup {
            of: &record.reference.id,
            present: record.present(),
            made: request.and_then(|request| request.created_machine.as_ref()),
            making: request.and_then(|request| match (&request.step, &request.ask) {
                (Step::Create { .. }, Ask::Accepted { action, .. }) => *action,
                (_, _) => None,
            }),
            hibernation: kept,
            snapshots,
            lists: Lists { attachments, preflight },
            name: manifest.map_or(&record.name, |manifest| &manifest.name),
        });
        let sight = sight.await?;
        let shown = hibernate::shown(record, &sight);
        Ok(shown.map(|resource| Look { requested_at, resource, sight: Some(Box::new(sight)) }))
    }
}

/// The looks at resources of one account: one pass over the lists that are worth it first, and then
/// each of the others when its turn comes.
pub(crate) struct Looks<'a> {
    client: &'a Client,
    budget: Budget<'a>,
    shared: &'a SharedLists,
    listed: HashMap<ResourceId, Look>,
    /// The kinds about which the provider would not answer, and why.
    failed: Mutex<BTreeMap<ResourceKind, ObservationError>>,
    /// When the lists were read.
    taken_at: Timestamp,
}

impl<'a> Looks<'a> {
    /// Looks before acting: at sized kinds one by one, since a list's rows lack what must be saved.
    pub(crate) async fn to_act(
        client: &'a Client,
        budget: Budget<'a>,
        shared: &'a SharedLists,
        ids: &BTreeSet<ResourceId>,
        requests: &ListRequests,
    ) -> Self {
        let machines = ids.iter().filter(|id| !id.kind().is_sized());
        let kinds = worth_a_list(machines, requests);
        Self::take(client, budget, shared, kinds, ids).await
    }

    /// Looks while following. If much else is due, even a few resources are read by a list that
    /// takes fewer requests.
    pub(crate) async fn to_follow(
        client: &'a Client,
        budget: Budget<'a>,
        shared: &'a SharedLists,
        ids: &BTreeSet<ResourceId>,
        requests: &ListRequests,
        is_busy: bool,
    ) -> Self {
        let kinds = if lists_pay(ids, is_busy) { worth_a_list(ids, requests) } else { Vec::new() };
        Self::take(client, budget, shared, kinds, ids).await
    }

    async fn take(
        client: &'a Client,
        budget: Budget<'a>,
        shared: &'a SharedLists,
        kinds: Vec<ResourceKind>,
        ids: &BTreeSet<ResourceId>,
    ) -> Self {
        let mut looks = Self {
            client,
            budget,
            shared,
            listed: HashMap::new(),
            failed: Mutex::default(),
            taken_at: budget.now(),
        };
        if !kinds.is_empty() {
            match list(client, budget, &kinds).await {
                Ok(listed) => {
                    for (kind, error) in listed.unread_kinds() {
                        looks.failed().insert(kind, ObservationError::from(error));
                    }
                    let of_these = |look: &Look| ids.contains(&look.resource.id);
                    let shown = listed.looks.into_iter().filter(of_these);
                    looks.listed = shown.map(|look| (look.resource.id.clone(), look)).collect();
                }
                Err(error) => {
                    let failure = ObservationError::from(&error);
                    let failed = kinds.into_iter().map(|kind| (kind, failure.clone()));
                    looks.failed = Mutex::new(failed.collect());
                }
            }
            looks.taken_at = budget.now();
        }
        looks
    }

    /// Returns the records in the order in which to ask for their looks: what the list saw first
    /// comes first, before it is too old.
    pub(crate) fn in_order(&self, mut records: Vec<Record>) -> Vec<Record> {
        records.sort_by_key(|record| {
            let look = record.present().and_then(|id| self.listed.get(id));
            let requested_at = look.map(|look| look.requested_at);
            (requested_at.is_none(), requested_at)
        });
        records
    }

    /// Reports whether what a list showed has become too old to act on.
    pub(crate) fn are_old(&self, now: Timestamp) -> bool {
        !self.listed.is_empty() && now.duration_since(self.taken_at) > YOUNG
    }

    /// Returns what one resource shows: as the list just saw it, or by its Status operation. A
    /// resource that a list does not show may still be there, because pages shift.
    pub(crate) async fn of(&self, record: &Record, reads: Reads) -> LookResult {
        let Reads { sight, extent, .. } = reads;
        let Some(id) = record.present().filter(|_| sight != Sighted::Always) else {
            return self.shared.sight(self.client, self.budget, record, extent).await;
        };
        if let Some(look) = self.listed.get(id)
            && !is_old(look, self.budget.now())
        {
            return Ok(Some(look.clone()));
        }
        if let Some(failure) = self.failed().get(&id.kind()) {
            return Err(failure.clone());
        }
        let looked = by_status(self.client, self.budget, id).await;
        if matches!(looked, Ok(None)) && sight == Sighted::IfMissing {
            let sight = self.shared.sight(self.client, self.budget, record, extent);
            return Box::pin(sight).await;
        }
        if let Err(failure) = &looked
            && failure.token_refused()
        {
            self.failed().insert(id.kind(), failure.clone());
        }
        looked
    }

    fn failed(&self) -> MutexGuard<'_, BTreeMap<ResourceKind, ObservationError>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reports whether a list's look is too old when its resource's turn comes.
pub(crate) fn is_old(look: &Look, now: Timestamp) -> bool {
    now.duration_since(look.requested_at) > YOUNG
}

/// Returns how many requests it takes to look at resources that are followed.
pub(crate) fn requests_to_follow(
    ids: &BTreeSet<ResourceId>,
    requests: &ListRequests,
    is_busy: bool,
) -> u64 {
    let by_list = lists_pay(ids, is_busy);
    let of_kind = of_kind(ids).into_iter();
    let each =
        of_kind.map(|(kind, ids)| if by_list { ids.min(of_list(kind, requests)) } else { ids });
    each.map(u64::from).sum()
}

/// Reports whether what is followed is read by lists, where these take fewer requests.
fn lists_pay(ids: &BTreeSet<ResourceId>, is_busy: bool) -> bool {
    is_busy || ids.len() > STATUS_UP_TO
}

/// Returns the kinds with more resources than their list takes requests.
fn worth_a_list<'a>(
    ids: impl IntoIterator<Item = &'a ResourceId>,
    requests: &ListRequests,
) -> Vec<ResourceKind> {
    let mut of_kind = of_kind(ids);
    of_kind.retain(|kind, ids| *ids > of_list(*kind, requests));
    of_kind.into_keys().collect()
}

/// Counts the resources of each kind.
fn of_kind<'a>(ids: impl IntoIterator<Item = &'a ResourceId>) -> BTreeMap<ResourceKind, u32> {
    let mut of_kind = BTreeMap::new();
    for id in ids {
        *of_kind.entry(id.kind()).or_default() += 1;
    }
    of_kind
}

/// Returns how many requests a list takes. One that was never read completely counts as one page.
fn of_list(kind: ResourceKind, requests: &ListRequests) -> u32 {
    requests.get(&kind).copied().unwrap_or(1)
}

/// Lists all resources of these kinds.
pub(crate) async fn list(
    client: &Client,
    budget: Budget<'_>,
    kinds: &[ResourceKind],
) -> Result<Listed, ProviderError> {
    let reading = Reading { now: &|| budget.now(), until: Some(budget.until()), read: &|_| () };
    client.list(kinds, reading).await
}

/// Lists the snapshots of all machines of an account.
pub(crate) async fn snapshots(
    client: &Client,
    budget: Budget<'_>,
) -> Result<ListedSnapshots, ObservationError> {
    if budget.is_over() {
        return Err(ObservationError::of(NO_TIME));
    }
    let listed = client.snapshots().await;
    listed.map_err(|error| ObservationError::from(&error))
}

/// Looks at one resource by its Status operation.
pub(crate) async fn by_status(client: &Client, budget: Budget<'_>, id: &ResourceId) -> LookResult {
    if budget.is_over() {
        return Err(ObservationError::of(NO_TIME));
    }
    let requested_at = budget.now();
    match client.status(id).await {
        Ok(found) => Ok(found.map(|resource| Look { requested_at, resource, sight: None })),
        Err(error) => Err(ObservationError::from(&error)),
    }
}

/// Looks at a record's resource by whatever shows it. What was ever hibernated is not gone because
/// its Status operation returns 404: its record may be older than its cloud.
pub(crate) async fn of_record(client: &Client, budget: Budget<'_>, record: &Record) -> LookResult {
    let Reads { sight, extent, .. } = Reads::of(record);
    if let Some(id) = record.present().filter(|_| sight != Sighted::Always) {
        let looked = by_status(client, budget, id).await;
        if !matches!(looked, Ok(None)) || sight == Sighted::Never {
            return looked;
        }
    }
    let lists = SharedLists::default();
    Box::pin(lists.sight(client, budget, record, extent)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_shared_for_some_seconds_and_a_look_is_as_old_as_they_are() {
        let lists = Latest::<MachineLists>::default();
        let at = |millis| Timestamp::from_millisecond(millis).unwrap();
        let since = [1000, 4999, 5000, 8999].map(|now| lists.younger_than(SHARED_FOR, at(now)).0);
        assert_eq!(since, [1000, 1000, 5000, 5000].map(at));
    }
}
