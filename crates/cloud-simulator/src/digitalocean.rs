//! The `DigitalOcean` API: its operations and their responses.

pub(crate) mod create;
pub(crate) mod databases;
pub(crate) mod droplets;
pub(crate) mod kubernetes;
pub(crate) mod scopes;
mod shown;
pub(crate) mod snapshots;
mod things;

use std::{collections::BTreeMap, fmt::Display};

use domain::configuration::Provider;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::{
    droplets::{ActionKind, Order},
    things::{act_on_reserved_ip, add_droplets, delete, list, one},
};
use crate::{
    account::Action,
    answer::{Answer, Refusal},
    catalog,
    databases::Database,
    droplets::Droplet,
    kubernetes::Cluster,
    page::Page,
    routes::{Call, Route},
    things::Kind,
};

type Result<T> = std::result::Result<T, Refusal>;

pub(crate) const ROUTES: &[Route] = &[
    ("GET", "account", account),
    ("GET", "actions", actions),
    ("GET", "actions/#", action),
    ("GET", "droplets", list_droplets),
    ("POST", "droplets/actions", act_on_tagged),
    ("GET", "droplets/#", droplet),
    ("GET", "droplets/autoscale", autoscale_pools),
    ("GET", "droplets/autoscale/*/members", autoscale_members),
    ("GET", "droplets/#/actions", droplet_actions),
    ("POST", "droplets/#/actions", act_on_droplet),
    ("GET", "droplets/#/actions/#", droplet_action),
    ("POST", "droplets", create::create_droplet),
    ("DELETE", "droplets/#", create::delete_droplet),
    ("GET", "droplets/#/snapshots", snapshots::droplet_snapshots),
    ("GET", "droplets/#/firewalls", things::droplet_firewalls),
    ("GET", "droplets/#/backups/policy", things::backup_policy),
    ("GET", "droplets/#/destroy_with_associated_resources", things::associated),
    ("GET", "snapshots", snapshots::snapshots),
    ("GET", "snapshots/#", snapshots::snapshot),
    ("DELETE", "snapshots/#", snapshots::delete_snapshot),
    ("GET", "images", snapshots::images),
    ("GET", "images/#", snapshots::image),
    ("PUT", "images/#", snapshots::rename_image),
    ("GET", "reserved_ips", |call| list(call, Kind::ReservedIp)),
    ("GET", "reserved_ips/*", |call| one(call, Kind::ReservedIp)),
    ("DELETE", "reserved_ips/*", |call| delete(call, Kind::ReservedIp)),
    ("POST", "reserved_ips/*/actions", |call| act_on_reserved_ip(call, Kind::ReservedIp)),
    ("GET", "reserved_ipv6", |call| list(call, Kind::ReservedIpv6)),
    ("GET", "reserved_ipv6/*", |call| one(call, Kind::ReservedIpv6)),
    ("POST", "reserved_ipv6/*/actions", |call| act_on_reserved_ip(call, Kind::ReservedIpv6)),
    ("GET", "volumes", |call| list(call, Kind::Volume)),
    ("GET", "volumes/*", |call| one(call, Kind::Volume)),
    ("DELETE", "volumes/*", |call| delete(call, Kind::Volume)),
    ("POST", "volumes/*/actions", things::act_on_volume),
    ("GET", "firewalls", |call| list(call, Kind::Firewall)),
    ("GET", "firewalls/*", |call| one(call, Kind::Firewall)),
    ("DELETE", "firewalls/*", |call| delete(call, Kind::Firewall)),
    ("POST", "firewalls/*/droplets", |call| add_droplets(call, Kind::Firewall)),
    ("GET", "load_balancers", |call| list(call, Kind::LoadBalancer)),
    ("GET", "load_balancers/*", |call| one(call, Kind::LoadBalancer)),
    ("DELETE", "load_balancers/*", |call| delete(call, Kind::LoadBalancer)),
    ("POST", "load_balancers/*/droplets", |call| add_droplets(call, Kind::LoadBalancer)),
    ("GET", "projects", |call| list(call, Kind::Project)),
    ("GET", "projects/default", things::default_project),
    ("GET", "projects/*", |call| one(call, Kind::Project)),
    ("GET", "projects/*/resources", things::project_resources),
    ("POST", "projects/*/resources", things::add_to_project),
    ("GET", "monitoring/alerts", things::alerts),
    ("GET", "tags", things::tags),
    ("GET", "vpcs", things::vpcs),
    ("GET", "vpcs/*", things::vpc),
    ("DELETE", "vpcs/*", things::delete_vpc),
    ("GET", "account/keys", |call| list(call, Kind::SshKey)),
    ("GET", "databases/*/firewall", things::trusted_sources),
    ("GET", "sizes", sizes),
    ("GET", "regions", regions),
    ("GET", "databases", list_databases),
    ("GET", "databases/options", |_| ok(&catalog::DATABASE_OPTIONS)),
    ("GET", "databases/*", |call| ok(&json!({"database": call.database()?.to_json()}))),
    ("PUT", "databases/*/resize", resize),
    ("GET", "databases/*/autoscale", |call| ok(&call.database()?.autoscale_json())),
    ("PUT", "databases/*/autoscale", set_autoscale),
    ("GET", "databases/*/replicas", |call| ok(&call.database()?.replicas_json())),
    ("GET", "kubernetes/clusters", clusters),
    ("GET", "kubernetes/clusters/*", cluster),
    ("GET", "kubernetes/clusters/*/node_pools", node_pools),
    ("GET", "kubernetes/clusters/*/node_pools/*", node_pool),
    ("PUT", "kubernetes/clusters/*/node_pools/*", update_node_pool),
    ("GET", "kubernetes/clusters/*/status_messages", status_messages),
];

impl Call<'_> {
    fn droplet(&self) -> Result<&Droplet> {
        let droplet = self.account.droplets.get(&self.ids.numbers[0]);
        droplet.ok_or_else(Refusal::not_found)
    }

    fn droplet_json(&self, droplet: &Droplet) -> Value {
        shown::droplet(self.account, droplet, self.timeline.now())
    }

    fn database(&mut self) -> Result<&mut Database> {
        let database = self.account.databases.get_mut(&self.ids.names[0]);
        database.ok_or_else(Refusal::not_found)
    }

    fn cluster(&self) -> Result<&Cluster> {
        let cluster = self.account.clusters.get(&self.ids.names[0]);
        cluster.ok_or_else(Refusal::not_found)
    }

    fn action_json(&self, id: u64) -> Result<Value> {
        Ok(shown::action(self.account, self.action(id)?))
    }

    /// Parses the body of a change. The refusal of other content types is an assumption.
    fn body<T: DeserializeOwned>(&self) -> Result<T> {
        let request = &self.incoming.request;
        let content_type = request.content_type.as_deref().unwrap_or_default();
        if !content_type.starts_with("application/json") {
            return Err(Refusal::of_status(Provider::DigitalOcean, 415));
        }
        match serde_json::from_str::<Value>(&request.body) {
            Ok(body) if body.is_object() => Refusal::parse(&body),
            Ok(_) | Err(_) => Err(Refusal::of_status(Provider::DigitalOcean, 400)),
        }
    }
}

/// A page of a list; only its own entries are serialized.
#[expect(clippy::unnecessary_wraps, reason = "what the operations return")]
fn page<T, W: Display>(
    call: &Call<'_>,
    key: &str,
    items: Vec<T>,
    write: impl Fn(T) -> W,
) -> Result<Answer> {
    let page = Page::digitalocean(items, &call.incoming.request, call.account.login.page_size);
    let (links, meta) = (page.links(call.incoming), page.total());
    let items = page.items.into_iter().map(write);
    let items = items.map(|item| item.to_string()).collect::<Vec<_>>();
    let items = items.join(",");
    let body = format!(r#"{{"{key}":[{items}],"links":{links},"meta":{meta}}}"#);
    Ok(Answer::text(200, body))
}

#[expect(clippy::unnecessary_wraps, reason = "what the operations return")]
fn ok(body: &Value) -> Result<Answer> {
    Ok(Answer::json(200, body))
}

fn account(call: &mut Call<'_>) -> Result<Answer> {
    let name = &call.account.login.name;
    let fields = json!({"name": name, "email": format!("{name}@example.com")});
    let fields = catalog::with(&things::limits(call), fields);
    ok(&json!({"account": catalog::with(&catalog::ACCOUNT, fields)}))
}

fn actions(call: &mut Call<'_>) -> Result<Answer> {
    let actions = call.account.actions.values().rev().collect();
    page(call, "actions", actions, |action: &Action| shown::action(call.account, action))
}

fn action(call: &mut Call<'_>) -> Result<Answer> {
    ok(&json!({"action": call.action_json(call.ids.numbers[0])?}))
}

/// Lists the Droplets that the query asks for. Those with a GPU are listed only by their type
/// (DOSPEC).
fn list_droplets(call: &mut Call<'_>) -> Result<Answer> {
    let parameter = |name| call.incoming.request.parameter(name);
    let (tag, name, kind) = (parameter("tag_name"), parameter("name"), parameter("type"));
    Refusal::unprocessable("tag_name cannot be combined with name or type")
        .when(tag.is_some() && (name.is_some() || kind.is_some()))?;
    let fits = |droplet: &&Droplet| {
        droplet.gpu.is_some() == (kind.as_deref() == Some("gpus"))
            && tag.as_ref().is_none_or(|tag| droplet.has_tag(tag))
            && name.as_ref().is_none_or(|name| droplet.name.eq_ignore_ascii_case(name))
    };
    let droplets = call.account.droplets.values().filter(fits).collect();
    let now = call.timeline.now();
    page(call, "droplets", droplets, |one| shown::droplet_text(call.account, one, now))
}

fn by_autoscale_pool<'a>(call: &'a Call<'_>) -> BTreeMap<&'a str, Vec<&'a Droplet>> {
    let mut pools: BTreeMap<&str, Vec<&Droplet>> = BTreeMap::new();
    for droplet in call.account.droplets.values() {
        if let Some(pool) = &droplet.autoscale_pool {
            pools.entry(pool).or_default().push(droplet);
        }
    }
    pools
}

/// Lists the autoscale pools, which exist only through their members; all have a fixed size.
fn autoscale_pools(call: &mut Call<'_>) -> Result<Answer> {
    let name = call.incoming.request.parameter("name");
    let pools = by_autoscale_pool(call).into_iter();
    let named = pools.filter(|(id, _)| name.as_ref().is_none_or(|name| name == id));
    page(call, "autoscale_pools", named.collect(), |(id, members)| {
        shown::autoscale_pool(id, &members)
    })
}

fn autoscale_members(call: &mut Call<'_>) -> Result<Answer> {
    let members = by_autoscale_pool(call).remove(&*call.ids.names[0]);
    let members = members.ok_or_else(Refusal::not_found)?;
    page(call, "droplets", members, shown::autoscale_member)
}

fn droplet(call: &mut Call<'_>) -> Result<Answer> {
    ok(&json!({"droplet": call.droplet_json(call.droplet()?)}))
}

fn droplet_actions(call: &mut Call<'_>) -> Result<Answer> {
    let actions = call.account.actions_on(("droplet", call.droplet()?.id)).collect();
    page(call, "actions", actions, |action: &Action| shown::action(call.account, action))
}

fn droplet_action(call: &mut Call<'_>) -> Result<Answer> {
    let action = call.action_json(call.ids.numbers[1])?;
    if action["resource_id"] != call.ids.numbers[0] {
        return Err(Refusal::not_found());
    }
    ok(&json!({"action": action}))
}

fn act_on_droplet(call: &mut Call<'_>) -> Result<Answer> {
    let order = call.body()?;
    let action = droplets::begin(call.account, call.timeline, call.ids.numbers[0], order)?;
    let body = json!({"action": call.action_json(action)?});
    Ok(Answer::json(201, &body))
}

/// The action types that can be requested by tag (DOSPEC).
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

/// Acts on every Droplet with a tag. Leaving out those that refuse is an assumption.
fn act_on_tagged(call: &mut Call<'_>) -> Result<Answer> {
    let order: Order = call.body()?;
    let tag = call.incoming.request.parameter("tag_name");
    let tag = tag
        .filter(|_| BY_TAG.contains(&order.kind))
        .ok_or_else(|| Refusal::of_status(Provider::DigitalOcean, 422))?;
    let droplets = call.account.droplets.values();
    let tagged = droplets.filter(|droplet| droplet.has_tag(&tag));
    let tagged: Vec<u64> = tagged.map(|droplet| droplet.id).collect();
    let mut actions = Vec::new();
    for id in tagged {
        if let Ok(action) = droplets::begin(call.account, call.timeline, id, order.clone()) {
            actions.push(call.action_json(action)?);
        }
    }
    Ok(Answer::json(201, &json!({"actions": actions})))
}

fn sizes(call: &mut Call<'_>) -> Result<Answer> {
    let sizes = call.account.market.sizes.iter().collect();
    page(call, "sizes", sizes, Value::clone)
}

fn regions(call: &mut Call<'_>) -> Result<Answer> {
    let regions = call.account.market.regions.iter().collect();
    page(call, "regions", regions, Value::clone)
}

/// Lists the databases, without pages, links or a total (DOSPEC).
fn list_databases(call: &mut Call<'_>) -> Result<Answer> {
    let tag = call.incoming.request.parameter("tag_name");
    let databases = call.account.databases.values();
    let fitting = databases.filter(|database| tag.as_ref().is_none_or(|tag| database.has_tag(tag)));
    ok(&json!({"databases": fitting.map(Database::to_json).collect::<Vec<_>>()}))
}

fn resize(call: &mut Call<'_>) -> Result<Answer> {
    // An unknown cluster is reported before a malformed body.
    call.database()?;
    let resize = call.body()?;
    databases::resize(call.account, call.timeline, &call.ids.names[0], resize)?;
    Ok(Answer::empty(202))
}

fn set_autoscale(call: &mut Call<'_>) -> Result<Answer> {
    call.database()?;
    let body = call.body()?;
    call.database()?.set_autoscale(&body)?;
    Ok(Answer::empty(204))
}

fn clusters(call: &mut Call<'_>) -> Result<Answer> {
    let clusters = call.account.clusters.values().collect();
    page(call, "kubernetes_clusters", clusters, Cluster::to_json)
}

fn cluster(call: &mut Call<'_>) -> Result<Answer> {
    ok(&json!({"kubernetes_cluster": call.cluster()?.to_json()}))
}

fn node_pools(call: &mut Call<'_>) -> Result<Answer> {
    ok(&json!({"node_pools": call.cluster()?.to_json()["node_pools"]}))
}

fn node_pool(call: &mut Call<'_>) -> Result<Answer> {
    let cluster = call.cluster()?;
    let pool = cluster.pool(&call.ids.names[1]);
    let pool = pool.ok_or_else(Refusal::not_found)?;
    ok(&json!({"node_pool": pool.to_json(&cluster.id)}))
}

fn update_node_pool(call: &mut Call<'_>) -> Result<Answer> {
    let update = call.body()?;
    let path = (&*call.ids.names[0], &*call.ids.names[1]);
    let pool = kubernetes::update(call.account, call.timeline, path, update)?;
    Ok(Answer::json(202, &json!({"node_pool": pool})))
}

fn status_messages(call: &mut Call<'_>) -> Result<Answer> {
    call.cluster()?;
    ok(&json!({"messages": []}))
}
