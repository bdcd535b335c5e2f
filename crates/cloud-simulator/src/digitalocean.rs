//! `DigitalOcean`'s API: which path and method is which operation, and what it answers.

use axum::http::Method;
use domain::configuration::Provider;
use serde_json::{Value, json};

use crate::{
    answer::{Answer, Refusal},
    catalog,
    databases::{self, Database},
    droplets::{self, ActionKind, Droplet, Order},
    kubernetes::{self, Cluster},
    page::Page,
    request::Incoming,
    world::{Account, Action, Timeline},
};

/// An operation of the API, with the ids in its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation<'a> {
    Account,
    Actions,
    Action(u64),
    Droplets,
    Droplet(u64),
    DropletActions(u64),
    DropletAction(u64, u64),
    ActOnDroplet(u64),
    ActOnTagged,
    Sizes,
    Regions,
    DatabaseOptions,
    Databases,
    Database(&'a str),
    ResizeDatabase(&'a str),
    Autoscale(&'a str),
    SetAutoscale(&'a str),
    Replicas(&'a str),
    Clusters,
    Cluster(&'a str),
    NodePools(&'a str),
    NodePool(&'a str, &'a str),
    UpdateNodePool(&'a str, &'a str),
    StatusMessages(&'a str),
}

impl<'a> Operation<'a> {
    /// The operation at a path: 404 if there is none, 405 if it takes another method.
    pub(crate) fn find(method: &Method, segments: &[&'a str]) -> Result<Self, Refusal> {
        let of = |method: &str| Self::of(method, segments);
        of(method.as_str()).ok_or_else(|| {
            let known = ["GET", "POST", "PUT"]
                .into_iter()
                .any(|other| of(other).is_some());
            Refusal::of_status(Provider::DigitalOcean, if known { 405 } else { 404 })
        })
    }

    fn of(method: &str, segments: &[&'a str]) -> Option<Self> {
        let number = |text: &str| text.parse::<u64>().ok();
        Some(match (method, segments) {
            ("GET", ["account"]) => Self::Account,
            ("GET", ["actions"]) => Self::Actions,
            ("GET", ["actions", id]) => Self::Action(number(id)?),
            ("GET", ["droplets"]) => Self::Droplets,
            ("POST", ["droplets", "actions"]) => Self::ActOnTagged,
            ("GET", ["droplets", id]) => Self::Droplet(number(id)?),
            ("GET", ["droplets", id, "actions"]) => Self::DropletActions(number(id)?),
            ("POST", ["droplets", id, "actions"]) => Self::ActOnDroplet(number(id)?),
            ("GET", ["droplets", id, "actions", action]) => {
                Self::DropletAction(number(id)?, number(action)?)
            }
            ("GET", ["sizes"]) => Self::Sizes,
            ("GET", ["regions"]) => Self::Regions,
            ("GET", ["databases"]) => Self::Databases,
            ("GET", ["databases", "options"]) => Self::DatabaseOptions,
            ("GET", ["databases", id]) => Self::Database(id),
            ("PUT", ["databases", id, "resize"]) => Self::ResizeDatabase(id),
            ("GET", ["databases", id, "autoscale"]) => Self::Autoscale(id),
            ("PUT", ["databases", id, "autoscale"]) => Self::SetAutoscale(id),
            ("GET", ["databases", id, "replicas"]) => Self::Replicas(id),
            ("GET", ["kubernetes", "clusters"]) => Self::Clusters,
            ("GET", ["kubernetes", "clusters", id]) => Self::Cluster(id),
            ("GET", ["kubernetes", "clusters", id, "node_pools"]) => Self::NodePools(id),
            ("GET", ["kubernetes", "clusters", id, "node_pools", pool]) => Self::NodePool(id, pool),
            ("PUT", ["kubernetes", "clusters", id, "node_pools", pool]) => {
                Self::UpdateNodePool(id, pool)
            }
            ("GET", ["kubernetes", "clusters", id, "status_messages"]) => Self::StatusMessages(id),
            _ => return None,
        })
    }
}

/// Does what a request asks for.
pub(crate) fn perform(
    operation: Operation<'_>,
    account: &mut Account,
    timeline: &mut Timeline,
    incoming: &Incoming,
) -> Result<Answer, Refusal> {
    match operation {
        Operation::ActOnDroplet(id) => {
            let order: Order = Refusal::parse(&body(incoming)?)?;
            let action = droplets::begin(account, timeline, id, order)?;
            Ok(Answer::json(
                201,
                &json!({"action": action_of(account, action)?}),
            ))
        }
        Operation::ActOnTagged => act_on_tagged(account, timeline, incoming),
        Operation::ResizeDatabase(id) => {
            // An unknown cluster is told before a malformed body.
            account.databases.get(id).ok_or_else(Refusal::not_found)?;
            let resize = Refusal::parse(&body(incoming)?)?;
            databases::resize(account, timeline, id, resize)?;
            Ok(Answer::empty(202))
        }
        Operation::SetAutoscale(id) => {
            let database = account
                .databases
                .get_mut(id)
                .ok_or_else(Refusal::not_found)?;
            database.set_autoscale(&body(incoming)?)?;
            Ok(Answer::empty(204))
        }
        Operation::UpdateNodePool(cluster, pool) => {
            let update = Refusal::parse(&body(incoming)?)?;
            let pool = kubernetes::update(account, timeline, (cluster, pool), update)?;
            Ok(Answer::json(202, &json!({"node_pool": pool})))
        }
        Operation::Account
        | Operation::Actions
        | Operation::Action(_)
        | Operation::Droplets
        | Operation::Droplet(_)
        | Operation::DropletActions(_)
        | Operation::DropletAction(..)
        | Operation::Sizes
        | Operation::Regions
        | Operation::DatabaseOptions
        | Operation::Databases
        | Operation::Database(_)
        | Operation::Autoscale(_)
        | Operation::Replicas(_)
        | Operation::Clusters
        | Operation::Cluster(_)
        | Operation::NodePools(_)
        | Operation::NodePool(..)
        | Operation::StatusMessages(_) => {
            read(operation, account, incoming).map(|body| Answer::json(200, &body))
        }
    }
}

fn read(
    operation: Operation<'_>,
    account: &Account,
    incoming: &Incoming,
) -> Result<Value, Refusal> {
    let database = |id: &str| account.databases.get(id).ok_or_else(Refusal::not_found);
    let cluster = |id: &str| account.clusters.get(id).ok_or_else(Refusal::not_found);
    let action_json = |action: &Action| droplets::action_json(account, action);
    Ok(match operation {
        Operation::Account => account_json(account),
        Operation::Actions => {
            let actions = account.actions.values().rev().collect();
            paged("actions", actions, action_json, incoming)
        }
        Operation::Action(id) => json!({"action": action_of(account, id)?}),
        Operation::Droplets => {
            let droplets = matching_droplets(account, incoming)?;
            paged("droplets", droplets, Droplet::to_json, incoming)
        }
        Operation::Droplet(id) => {
            let droplet = account.droplets.get(&id).ok_or_else(Refusal::not_found)?;
            json!({"droplet": droplet.to_json()})
        }
        Operation::DropletActions(id) => {
            account.droplets.get(&id).ok_or_else(Refusal::not_found)?;
            let actions = account.actions_on(id).collect();
            paged("actions", actions, action_json, incoming)
        }
        Operation::DropletAction(id, action) => {
            let action = account.actions_on(id).find(|known| known.id == action);
            json!({"action": action_json(action.ok_or_else(Refusal::not_found)?)})
        }
        Operation::Sizes => {
            let sizes = catalog::entries(&catalog::DROPLET_SIZES).collect();
            paged("sizes", sizes, Value::clone, incoming)
        }
        Operation::Regions => {
            let regions = catalog::entries(&catalog::REGIONS).collect();
            paged("regions", regions, Value::clone, incoming)
        }
        Operation::DatabaseOptions => catalog::DATABASE_OPTIONS.clone(),
        // Neither links nor meta (DOSPEC).
        Operation::Databases => {
            let tag = incoming.parameter("tag_name");
            let wanted = account
                .databases
                .values()
                .filter(|database| tag.as_ref().is_none_or(|tag| database.has_tag(tag)));
            json!({"databases": wanted.map(Database::to_json).collect::<Vec<_>>()})
        }
        Operation::Database(id) => json!({"database": database(id)?.to_json()}),
        Operation::Autoscale(id) => database(id)?.autoscale_json(),
        Operation::Replicas(id) => database(id)?.replicas_json(),
        Operation::Clusters => {
            let clusters = account.clusters.values().collect();
            paged("kubernetes_clusters", clusters, Cluster::to_json, incoming)
        }
        Operation::Cluster(id) => json!({"kubernetes_cluster": cluster(id)?.to_json()}),
        Operation::NodePools(id) => json!({"node_pools": cluster(id)?.to_json()["node_pools"]}),
        Operation::NodePool(id, pool) => {
            let pool = cluster(id)?.pool(pool).ok_or_else(Refusal::not_found)?;
            json!({"node_pool": pool.to_json(id)})
        }
        Operation::StatusMessages(id) => {
            cluster(id)?;
            json!({"messages": []})
        }
        Operation::ActOnDroplet(_)
        | Operation::ActOnTagged
        | Operation::ResizeDatabase(_)
        | Operation::SetAutoscale(_)
        | Operation::UpdateNodePool(..) => {
            return Err(Refusal::of_status(Provider::DigitalOcean, 405));
        }
    })
}

/// The body of a change. That another content type is refused is an assumption.
fn body(incoming: &Incoming) -> Result<Value, Refusal> {
    let content_type = incoming.content_type.as_deref().unwrap_or_default();
    if !content_type.starts_with("application/json") {
        return Err(Refusal::of_status(Provider::DigitalOcean, 415));
    }
    match incoming.json() {
        Ok(body) if body.is_object() => Ok(body),
        Ok(_) | Err(_) => Err(Refusal::of_status(Provider::DigitalOcean, 400)),
    }
}

/// A page of a list; only its own entries are written out.
fn paged<T>(key: &str, items: Vec<T>, write: impl Fn(T) -> Value, incoming: &Incoming) -> Value {
    let page = Page::digitalocean(items, incoming);
    let (links, meta) = (page.links(incoming), page.total());
    let items: Vec<_> = page.items.into_iter().map(write).collect();
    json!({"links": links, "meta": meta, key: items})
}

fn action_of(account: &Account, id: u64) -> Result<Value, Refusal> {
    let action = account.actions.get(&id).ok_or_else(Refusal::not_found)?;
    Ok(droplets::action_json(account, action))
}

/// The Droplets that a query asks for; there are no GPU Droplets here.
fn matching_droplets<'a>(
    account: &'a Account,
    incoming: &Incoming,
) -> Result<Vec<&'a Droplet>, Refusal> {
    let tag = incoming.parameter("tag_name");
    let name = incoming.parameter("name");
    let kind = incoming.parameter("type");
    if tag.is_some() && (name.is_some() || kind.is_some()) {
        let message = "tag_name cannot be combined with name or type";
        return Err(Refusal::unprocessable(message));
    }
    if kind.as_deref() == Some("gpus") {
        return Ok(Vec::new());
    }
    let wanted = |droplet: &&Droplet| {
        let own = &droplet.name;
        tag.as_ref().is_none_or(|tag| droplet.has_tag(tag))
            && name
                .as_ref()
                .is_none_or(|name| own.eq_ignore_ascii_case(name))
    };
    Ok(account.droplets.values().filter(wanted).collect())
}

/// The types that can be asked for by tag (DOSPEC).
const BY_TAG: [ActionKind; 8] = [
    ActionKind::PowerCycle,
    ActionKind::PowerOn,
    ActionKind::PowerOff,
    ActionKind::Shutdown,
    ActionKind::EnableIpv6,
    ActionKind::EnableBackups,
    ActionKind::DisableBackups,
    ActionKind::Snapshot,
];

/// Acts on every Droplet with a tag. That those which refuse are left out is an assumption.
fn act_on_tagged(
    account: &mut Account,
    timeline: &mut Timeline,
    incoming: &Incoming,
) -> Result<Answer, Refusal> {
    let order: Order = Refusal::parse(&body(incoming)?)?;
    let tag = incoming
        .parameter("tag_name")
        .filter(|_| BY_TAG.contains(&order.kind));
    let tag = tag.ok_or_else(|| Refusal::of_status(Provider::DigitalOcean, 422))?;
    let tagged = account
        .droplets
        .iter()
        .filter(|(_, droplet)| droplet.has_tag(&tag));
    let tagged: Vec<u64> = tagged.map(|(id, _)| *id).collect();
    let begun: Vec<u64> = tagged
        .into_iter()
        .filter_map(|id| droplets::begin(account, timeline, id, order.clone()).ok())
        .collect();
    let actions = begun.into_iter().map(|action| action_of(account, action));
    Ok(Answer::json(
        201,
        &json!({"actions": actions.collect::<Result<Vec<_>, _>>()?}),
    ))
}

fn account_json(account: &Account) -> Value {
    let email = format!("{}@example.com", account.login.name);
    let fields = json!({"name": account.login.name, "email": email});
    json!({"account": catalog::with(&catalog::ACCOUNT, fields)})
}
