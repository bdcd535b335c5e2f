//! Looking at resources: few by their Status operation, many by one pass over a list.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::{
    ResourceId, ResourceKind,
    resource::{Look, Resource, SavedState, Size},
};
use environment::{Clock, in_words};
use futures_util::{StreamExt as _, stream};
use provider::{AT_ONCE, Client, Listed, ProviderError, Reading};

use crate::ProvidersError;

/// Up to this many resources in flight are read by their Status operation, more by a list.
const STATUS_UP_TO: usize = 10;

/// Why there is no look.
#[derive(Debug, Clone)]
pub(crate) struct NoLook {
    /// In words, for a record or a report.
    pub words: String,
    /// How long the provider asks to wait.
    pub retry_after: Option<std::time::Duration>,
    /// Whether the token was refused: it may have been rotated.
    pub token_refused: bool,
    /// Whether there is no token to look with.
    pub no_token: bool,
}

impl NoLook {
    /// A reason that no answer of the provider gives.
    pub(crate) fn of(words: impl Into<String>) -> Self {
        Self {
            words: words.into(),
            retry_after: None,
            token_refused: false,
            no_token: false,
        }
    }
}

/// Whether two refusals say the same, but for the provider's ids of the requests.
pub(crate) fn is_same(left: &str, right: &str) -> bool {
    without_request_id(left) == without_request_id(right)
}

/// A refusal's words without the provider's id for the request, which differs each time.
fn without_request_id(words: &str) -> &str {
    words.split(" (request ").next().unwrap_or(words)
}

impl From<&ProviderError> for NoLook {
    fn from(error: &ProviderError) -> Self {
        Self {
            words: in_words(error),
            retry_after: error.retry_after(),
            token_refused: matches!(error, ProviderError::TokenRefused(_)),
            no_token: false,
        }
    }
}

impl From<&ProvidersError> for NoLook {
    fn from(error: &ProvidersError) -> Self {
        Self {
            no_token: matches!(error, ProvidersError::Token { .. }),
            ..Self::of(in_words(error))
        }
    }
}

/// What the Status operation or a list showed; `None` is a 404 of the Status operation.
pub(crate) type Looked = Result<Option<Look>, NoLook>;

/// Before acting: machines by one list pass (the Status operation if there is but one), sized
/// kinds each by their own, for a list's rows do not carry enough to save.
pub(crate) async fn to_act(
    client: &Client,
    clock: &Clock,
    ids: &BTreeSet<ResourceId>,
) -> HashMap<ResourceId, Looked> {
    let mut of_kind = BTreeMap::<ResourceKind, usize>::new();
    for id in ids {
        *of_kind.entry(id.kind()).or_default() += 1;
    }
    let listed = of_kind
        .into_iter()
        .filter(|&(kind, count)| !kind.is_sized() && count > 1)
        .map(|(kind, _)| kind)
        .collect();
    take(client, clock, ids, listed).await
}

/// While following: a few by their Status operation, more by one list pass.
pub(crate) async fn to_follow(
    client: &Client,
    clock: &Clock,
    ids: &BTreeSet<ResourceId>,
) -> HashMap<ResourceId, Looked> {
    let listed = if ids.len() > STATUS_UP_TO {
        ids.iter().map(ResourceId::kind).collect()
    } else {
        BTreeSet::new()
    };
    take(client, clock, ids, listed).await
}

async fn take(
    client: &Client,
    clock: &Clock,
    ids: &BTreeSet<ResourceId>,
    listed: BTreeSet<ResourceKind>,
) -> HashMap<ResourceId, Looked> {
    let mut looks = HashMap::new();
    if !listed.is_empty() {
        let kinds: Vec<_> = listed.iter().copied().collect();
        match list(client, clock, &kinds).await {
            Ok(listed) => looks.extend(
                listed
                    .looks
                    .into_iter()
                    .filter(|look| ids.contains(&look.resource.id))
                    .map(|look| (look.resource.id.clone(), Ok(Some(look)))),
            ),
            Err(error) => {
                let failed = ids.iter().filter(|id| listed.contains(&id.kind()));
                looks.extend(failed.map(|id| (id.clone(), Err(NoLook::from(&error)))));
            }
        }
    }
    // What a list does not show may still be there: pages shift. Its own Status decides.
    let rest: Vec<_> = ids.iter().filter(|id| !looks.contains_key(*id)).collect();
    let singles: Vec<_> = stream::iter(rest)
        .map(|id| async move { (id.clone(), by_status(client, clock, id).await) })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    looks.extend(singles);
    looks
}

/// All that these kinds have.
pub(crate) async fn list(
    client: &Client,
    clock: &Clock,
    kinds: &[ResourceKind],
) -> Result<Listed, ProviderError> {
    let reading = Reading {
        now: &|| clock.now(),
        until: None,
        read: &|_| (),
    };
    client.list(kinds, reading).await
}

/// One resource by its Status operation.
pub(crate) async fn by_status(client: &Client, clock: &Clock, id: &ResourceId) -> Looked {
    let requested_at = clock.now();
    match client.status(id).await {
        Ok(found) => Ok(found.map(|resource| Look {
            requested_at,
            resource,
        })),
        Err(error) => Err(NoLook::from(&error)),
    }
}

/// The size to which a stop of this database leads: the schedule's own, or the smallest plan that
/// the provider lists. `Ok(None)`: not a database, or the provider lists no plan.
pub(crate) async fn stop_target(
    client: &Client,
    resource: &Resource,
    manner: &domain::configuration::Manner,
) -> Result<Option<SavedState>, NoLook> {
    let Size::Database(database) = &resource.size else {
        return Ok(None);
    };
    let mut wanted = database.clone();
    if let Some(nodes) = manner.stop_nodes {
        // Never more than there are: a stop only shrinks.
        wanted.nodes = nodes.min(database.nodes);
    }
    let plan = match &manner.stop_size {
        Some(plan) => Some(plan.clone()),
        None => client
            .database_plans()
            .await
            .and_then(|plans| plans.smallest(&wanted, &resource.region))
            .map_err(|error| NoLook::from(&error))?,
    };
    Ok(plan.map(|plan| SavedState::Database {
        plan,
        nodes: wanted.nodes,
        storage_mib: None,
    }))
}
