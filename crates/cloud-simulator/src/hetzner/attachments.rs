//! The operations on what a project holds besides its servers, and those that create, change and
//! delete servers.

use domain::configuration::Provider;
use serde_json::{Map, Value, json};

use super::{
    Result, action_json,
    create::{self, ServerOrder},
    field,
    images::{self, ImageOrder},
    page, selector, shown,
};
use crate::{
    account::Subject,
    answer::{Answer, Refusal},
    images::{ImageKind, ImageStatus},
    labels::{self, Labels},
    routes::Call,
    servers::{Extra, Family, not_found},
    things::{Attachment, Kind, Thing},
};

fn invalid(message: &str) -> Refusal {
    Refusal::new(422, "invalid_input", message)
}

/// Parses the body of a change, which may have no keys other than these: Hetzner refuses unknown
/// ones.
fn body(call: &Call<'_>, keys: &[&str]) -> Result<Map<String, Value>> {
    let parsed = serde_json::from_str(&call.incoming.request.body);
    let Ok(Value::Object(body)) = parsed else {
        return Err(Refusal::of_status(Provider::Hetzner, 400));
    };
    if let Some(key) = body.keys().find(|key| !keys.contains(&key.as_str())) {
        return Err(invalid(&format!("unknown field \"{key}\"")));
    }
    Ok(body)
}

fn number(body: &Map<String, Value>, key: &str) -> Result<u64> {
    let value = body.get(key).and_then(Value::as_u64);
    value.ok_or_else(|| missing(key))
}

fn missing(key: &str) -> Refusal {
    Refusal {
        details: json!({"fields": [{"name": key, "messages": ["is required"]}]}),
        ..Refusal::of_status(Provider::Hetzner, 422)
    }
}

/// Reads a list of numbers that may be left out.
fn numbers(body: &Map<String, Value>, key: &str) -> Vec<u64> {
    let list = body.get(key).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_u64).collect()
}

fn text(body: &Map<String, Value>, key: &str) -> Option<String> {
    match body.get(key)? {
        Value::String(text) => Some(text.clone()),
        // Hetzner's own clients send an id as a number, which HZSPEC does not allow.
        Value::Number(id) => Some(id.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn flag(body: &Map<String, Value>, key: &str, usual: bool) -> bool {
    body.get(key).and_then(Value::as_bool).unwrap_or(usual)
}

/// Parses labels, which replace all of the current ones (HZSPEC).
fn labels(body: &Map<String, Value>) -> Result<Option<Labels>> {
    let Some(given) = body.get("labels") else {
        return Ok(None);
    };
    let labels: Labels = serde_json::from_value(given.clone()).map_err(|_| missing("labels"))?;
    let fits = |(key, value): (&String, &String)| labels::is_key(key) && labels::is_value(value);
    invalid("invalid label").when(!labels.iter().all(fits))?;
    Ok(Some(labels))
}

/// The response to a change that has begun.
fn action_answer(call: &Call<'_>, action: u64) -> Result<Answer> {
    Ok(Answer::json(201, &json!({"action": action_json(call, action)?})))
}

/// A page of a list, filtered by the query's `label_selector` and `type`.
fn listed<T>(
    call: &Call<'_>,
    key: &str,
    items: impl Iterator<Item = T>,
    labels: impl Fn(&T) -> &Labels,
    show: impl Fn(&T) -> Value,
) -> Result<Answer> {
    let selector = selector(call)?;
    let kinds = call.incoming.request.parameters("type");
    let is_of = |item: &T, kind: &String| show(item)["type"] == **kind;
    let chosen = items.filter(|item| {
        selector.chooses(labels(item))
            && (kinds.is_empty() || kinds.iter().any(|kind| is_of(item, kind)))
    });
    let field = |item: &T, name: &str| field(&show(item), name);
    Ok(page(call, key, chosen.collect(), field, |item| show(item).to_string()))
}

/// Lists all things of the kind that the path names.
pub(super) fn list(call: &mut Call<'_>) -> Result<Answer> {
    let kind = call.kind()?;
    let ip = call.incoming.request.parameter("ip");
    let things = call.account.things.of(kind);
    let things = things.filter(|thing| ip.as_ref().is_none_or(|ip| thing.ip == *ip));
    let show = |thing: &&Thing| shown::thing(call.account, kind, thing);
    listed(call, &format!("{}s", kind.word()), things, |thing| &thing.labels, show)
}

pub(super) fn one(call: &mut Call<'_>) -> Result<Answer> {
    let kind = call.kind()?;
    let thing = call.thing(kind)?;
    let body = json!({kind.word(): shown::thing(call.account, kind, thing)});
    Ok(Answer::json(200, &body))
}

/// Deletes one thing. What it was attached to no longer shows it.
pub(super) fn delete(call: &mut Call<'_>) -> Result<Answer> {
    let (kind, id) = (call.kind()?, call.id());
    call.account.things.remove(kind, id).ok_or_else(not_found)?;
    call.account.invalidate_caches();
    Ok(Answer::empty(204))
}

pub(super) fn images(call: &mut Call<'_>) -> Result<Answer> {
    let images = call.account.images.values();
    listed(call, "images", images, |image| &image.labels, |image| image.to_json())
}

pub(super) fn image(call: &mut Call<'_>) -> Result<Answer> {
    let image = call.account.images.get(&call.id()).ok_or_else(not_found)?;
    Ok(Answer::json(200, &json!({"image": image.to_json()})))
}

impl Call<'_> {
    fn id(&self) -> u64 {
        self.ids.numbers[0]
    }

    /// The kind of thing that the path names.
    fn kind(&self) -> Result<Kind> {
        let listed_at = &self.ids.names[0];
        Kind::listed_at(listed_at, Provider::Hetzner).ok_or_else(not_found)
    }

    /// Invalidates the cached JSON of a server, after a change of what is attached to it.
    fn invalidate_cache(&mut self, server: u64) {
        self.account.server(server);
    }

    /// Performs an action that finishes immediately, and responds with it.
    fn act_at_once(&mut self, on: Subject, command: &str) -> Result<Answer> {
        let action = self.account.act_at_once(self.timeline, on, command);
        action_answer(self, action)
    }
}

pub(super) fn create_server(call: &mut Call<'_>) -> Result<Answer> {
    let keys = [
        "name",
        "server_type",
        "image",
        "location",
        "start_after_create",
        "placement_group",
        "ssh_keys",
        "volumes",
        "automount",
        "networks",
        "firewalls",
        "labels",
        "user_data",
        "public_net",
    ];
    let body = body(call, &keys)?;
    let required = |key: &str| text(&body, key).ok_or_else(|| missing(key));
    let firewalls = body.get("firewalls").and_then(Value::as_array);
    let firewalls = firewalls.into_iter().flatten();
    let keys = body.get("ssh_keys").and_then(Value::as_array);
    let keys = keys.into_iter().flatten();
    let keys = keys.map(|key| key.as_str().map_or_else(|| key.to_string(), str::to_owned));
    let order = ServerOrder {
        name: required("name")?,
        server_type: required("server_type")?,
        image: required("image")?,
        location: text(&body, "location").unwrap_or_else(crate::defaults::location),
        labels: labels(&body)?.unwrap_or_default(),
        starts: flag(&body, "start_after_create", true),
        addresses: addresses(body.get("public_net").unwrap_or(&Value::Null)),
        networks: numbers(&body, "networks"),
        volumes: numbers(&body, "volumes"),
        firewalls: firewalls.filter_map(|one| one["firewall"].as_u64()).collect(),
        placement_group: body.get("placement_group").and_then(Value::as_u64),
        ssh_keys: keys.collect(),
    };
    let created = create::create(call.account, call.timeline, &order)?;
    let server = call.account.servers.get(&created.server);
    let server = server.ok_or_else(not_found)?;
    let next = created.next.iter();
    let next: Result<Vec<_>> = next.map(|id| action_json(call, *id)).collect();
    let body = json!({
        "server": shown::server(call.account, server),
        "action": action_json(call, created.action)?,
        "next_actions": next?,
        "root_password": order.ssh_keys.is_empty().then_some("simulated-password"),
    });
    Ok(Answer::json(201, &body))
}

/// The public addresses by family, both unless they are disabled; an existing one is given by its
/// id.
fn addresses(public_net: &Value) -> Vec<(Family, Option<u64>)> {
    [(Family::Ipv4, "ipv4"), (Family::Ipv6, "ipv6")]
        .into_iter()
        .filter(|(_, name)| public_net[format!("enable_{name}")].as_bool() != Some(false))
        .map(|(family, name)| (family, public_net[name].as_u64()))
        .collect()
}

pub(super) fn update_server(call: &mut Call<'_>) -> Result<Answer> {
    let body = body(call, &["name", "labels"])?;
    let labels = labels(&body)?;
    let id = call.id();
    let server = call.account.server(id).ok_or_else(not_found)?;
    if let Some(name) = text(&body, "name") {
        server.name = name;
    }
    if let Some(labels) = labels {
        server.labels = labels;
    }
    let server = call.server()?;
    Ok(Answer::json(200, &json!({"server": shown::server(call.account, server)})))
}

pub(super) fn delete_server(call: &mut Call<'_>) -> Result<Answer> {
    let id = call.id();
    let action = create::delete(call.account, call.timeline, id)?;
    let body = json!({"action": action_json(call, action)?});
    Ok(Answer::json(200, &body))
}

pub(super) fn create_image(call: &mut Call<'_>) -> Result<Answer> {
    call.server()?;
    let body = body(call, &["type", "description", "labels"])?;
    let kind = match text(&body, "type").as_deref() {
        None | Some("snapshot") => ImageKind::Snapshot,
        Some("backup") => ImageKind::Backup,
        Some(_) => return Err(invalid("invalid image type")),
    };
    let order = ImageOrder {
        kind,
        description: text(&body, "description").unwrap_or_default(),
        labels: labels(&body)?.unwrap_or_default(),
    };
    let id = call.id();
    let (image, action) = images::begin(call.account, call.timeline, id, order)?;
    let image = &call.account.images[&image];
    let body = json!({
        "image": image.to_json(),
        "action": action_json(call, action)?,
    });
    Ok(Answer::json(201, &body))
}

pub(super) fn protect_server(call: &mut Call<'_>) -> Result<Answer> {
    let body = body(call, &["delete", "rebuild"])?;
    let id = call.id();
    let server = call.account.server(id).ok_or_else(not_found)?;
    if flag(&body, "delete", server.has.contains(&Extra::Protection)) {
        server.has.insert(Extra::Protection);
    } else {
        server.has.remove(&Extra::Protection);
    }
    call.act_at_once(("server", id), "change_protection")
}

pub(super) fn enable_backup(call: &mut Call<'_>) -> Result<Answer> {
    let id = call.id();
    let server = call.account.server(id).ok_or_else(not_found)?;
    server.has.insert(Extra::Backups);
    call.act_at_once(("server", id), "enable_backup")
}

pub(super) fn attach_to_network(call: &mut Call<'_>) -> Result<Answer> {
    let server = call.server()?;
    let id = server.id;
    server.check_unlocked()?;
    let body = body(call, &["network", "ip", "alias_ips", "ip_range"])?;
    let wanted = number(&body, "network")?;
    let aliases = body.get("alias_ips").cloned().unwrap_or(json!([]));
    let alias_ips = serde_json::from_value(aliases).map_err(|_| missing("alias_ips"))?;
    let network = call.account.things.get_mut(Kind::Network, wanted);
    let network = network.ok_or_else(|| invalid("network not found"))?;
    let refusal = |code, message: &str| Refusal::new(422, code, message);
    refusal("server_already_attached", "the server is already attached")
        .when(network.is_attached_to(id))?;
    let Some(ip) = text(&body, "ip").or_else(|| network.free_address()) else {
        return Err(refusal("no_subnet_available", "no IP is available"));
    };
    refusal("ip_not_available", "the provided network IP is not available")
        .when([&ip].into_iter().chain(&alias_ips).any(|ip| network.has_address(ip)))?;
    network.attached.insert(id, Attachment { ip, alias_ips, ..Attachment::default() });
    call.invalidate_cache(id);
    call.act_at_once(("server", id), "attach_to_network")
}

pub(super) fn add_to_placement_group(call: &mut Call<'_>) -> Result<Answer> {
    let server = call.server()?;
    let (id, is_off) = (server.id, server.is_off());
    let body = body(call, &["placement_group"])?;
    Refusal::new(422, "server_not_stopped", "the server must be stopped").when(!is_off)?;
    let things = &mut call.account.things;
    Refusal::new(
        422,
        "already_in_placement_group",
        "the server is already part of a placement group",
    )
    .when(things.attached_to(id, Kind::PlacementGroup).next().is_some())?;
    let group = things.get_mut(Kind::PlacementGroup, number(&body, "placement_group")?);
    group.ok_or_else(|| invalid("placement group not found"))?.attach(id);
    call.invalidate_cache(id);
    call.act_at_once(("server", id), "add_to_placement_group")
}

/// Changes an image. A backup may become a snapshot, but never the other way around (HZSPEC).
pub(super) fn update_image(call: &mut Call<'_>) -> Result<Answer> {
    let body = body(call, &["description", "type", "labels"])?;
    let labels = labels(&body)?;
    let id = call.id();
    let image = call.account.images.get_mut(&id);
    let image = image.ok_or_else(not_found)?;
    match text(&body, "type").as_deref() {
        Some("snapshot") => image.kind = ImageKind::Snapshot,
        Some(_) => return Err(invalid("invalid image type")),
        None => {}
    }
    if let Some(description) = text(&body, "description") {
        image.description = description;
    }
    if let Some(labels) = labels {
        image.labels = labels;
    }
    let image = image.to_json();
    Ok(Answer::json(200, &json!({"image": image})))
}

pub(super) fn delete_image(call: &mut Call<'_>) -> Result<Answer> {
    images::delete(call.account, call.id(), call.timeline.now())?;
    Ok(Answer::empty(204))
}

pub(super) fn protect_image(call: &mut Call<'_>) -> Result<Answer> {
    let body = body(call, &["delete"])?;
    let id = call.id();
    let image = call.account.images.get_mut(&id);
    let image = image.ok_or_else(not_found)?;
    invalid("only snapshots can be protected")
        .when(image.kind != ImageKind::Snapshot || image.status == ImageStatus::Unavailable)?;
    image.protected = flag(&body, "delete", image.protected);
    let of = image.of.id;
    call.account.show_again(id, of);
    call.act_at_once(("image", id), "change_protection")
}

pub(super) fn update_primary_ip(call: &mut Call<'_>) -> Result<Answer> {
    let body = body(call, &["name", "labels", "auto_delete"])?;
    let labels = labels(&body)?;
    let ip = call.thing_mut(Kind::PrimaryIp)?;
    ip.auto_delete = flag(&body, "auto_delete", ip.auto_delete);
    if let Some(name) = text(&body, "name") {
        ip.name = name;
    }
    if let Some(labels) = labels {
        ip.labels = labels;
    }
    let ip = ip.clone();
    let shown = shown::thing(call.account, Kind::PrimaryIp, &ip);
    Ok(Answer::json(200, &json!({"primary_ip": shown})))
}

pub(super) fn assign_primary_ip(call: &mut Call<'_>) -> Result<Answer> {
    let body = body(call, &["assignee_id", "assignee_type"])?;
    let (id, to) = (call.id(), number(&body, "assignee_id")?);
    let ip = call.account.things.get_mut(Kind::PrimaryIp, id);
    let ip = ip.ok_or_else(not_found)?;
    let server = call.account.servers.get_mut(&to);
    let server = server.ok_or_else(|| invalid("server not found"))?;
    let refusal = |code, message: &str| Refusal::new(422, code, message);
    let family = Family::of(ip);
    refusal("server_not_stopped", "the server must be stopped").when(!server.is_off())?;
    refusal("primary_ip_already_assigned", "the primary IP is already assigned")
        .when(!ip.attached.is_empty())?;
    if server.address_mut(family).is_some() {
        let code = if ip.is_ipv6() { "server_has_ipv6" } else { "server_has_ipv4" };
        return Err(refusal(code, "the server already has such an address"));
    }
    ip.attach(to);
    *server.address_mut(family) = Some(id);
    call.invalidate_cache(to);
    call.act_at_once(("primary_ip", id), "assign_primary_ip")
}

pub(super) fn unassign_primary_ip(call: &mut Call<'_>) -> Result<Answer> {
    let id = call.id();
    let ip = call.account.things.get_mut(Kind::PrimaryIp, id);
    let ip = ip.ok_or_else(not_found)?;
    if let Some(from) = ip.machine() {
        let server = call.account.servers.get_mut(&from);
        let server = server.ok_or_else(not_found)?;
        Refusal::new(422, "server_not_stopped", "the server must be stopped")
            .when(!server.is_off())?;
        ip.attached.clear();
        *server.address_mut(Family::of(ip)) = None;
        call.invalidate_cache(from);
    }
    call.act_at_once(("primary_ip", id), "unassign_primary_ip")
}

pub(super) fn attach_volume(call: &mut Call<'_>) -> Result<Answer> {
    let body = body(call, &["server", "automount"])?;
    let to = number(&body, "server")?;
    let server = call.account.servers.get(&to);
    let server = server.ok_or_else(|| invalid("server not found"))?;
    let location = server.location.clone();
    let volume = call.thing_mut(Kind::Volume)?;
    invalid("volume is attached, or in another location")
        .when(!volume.attached.is_empty() || volume.location != location)?;
    volume.attach(to);
    call.invalidate_cache(to);
    call.act_at_once(("volume", call.id()), "attach_volume")
}

pub(super) fn apply_firewall(call: &mut Call<'_>) -> Result<Answer> {
    let body = body(call, &["apply_to"])?;
    let id = call.id();
    let firewall = call.thing(Kind::Firewall)?;
    let to = body.get("apply_to").and_then(Value::as_array);
    let to = to.into_iter().flatten();
    let to: Vec<u64> = to.filter_map(|one| one["server"]["id"].as_u64()).collect();
    for server in &to {
        let server = call.account.servers.get(server).ok_or_else(|| {
            let message = "the server was not found";
            Refusal::new(404, "firewall_resource_not_found", message)
        })?;
        Refusal::new(422, "firewall_already_applied", "the firewall is already applied")
            .when(firewall.applies_to(server.id, &server.labels))?;
        invalid("a server has at most 5 firewalls")
            .when(call.account.things.firewalls_of(server.id, &server.labels).count() >= 5)?;
    }
    let mut actions = Vec::new();
    for server in to {
        call.thing_mut(Kind::Firewall)?.attach(server);
        create::apply(call.account, call.timeline, id, server);
        call.invalidate_cache(server);
        let action = call.account.act_at_once(call.timeline, ("firewall", id), "apply_firewall");
        actions.push(action_json(call, action)?);
    }
    Ok(Answer::json(201, &json!({"actions": actions})))
}

pub(super) fn add_target(call: &mut Call<'_>) -> Result<Answer> {
    let keys = ["type", "server", "use_private_ip", "label_selector", "ip"];
    let body = body(call, &keys)?;
    let server = body.get("server").and_then(|server| server["id"].as_u64());
    let server = server.ok_or_else(|| missing("server"))?;
    let balancer = call.thing_mut(Kind::LoadBalancer)?;
    Refusal::new(422, "target_already_defined", "the target is already defined")
        .when(balancer.is_attached_to(server))?;
    let use_private_ip = flag(&body, "use_private_ip", false);
    balancer.attached.insert(server, Attachment { use_private_ip, ..Attachment::default() });
    call.invalidate_cache(server);
    call.act_at_once(("load_balancer", call.id()), "add_target")
}

pub(super) fn assign_floating_ip(call: &mut Call<'_>) -> Result<Answer> {
    let body = body(call, &["server"])?;
    let to = number(&body, "server")?;
    invalid("server not found").when(!call.account.servers.contains_key(&to))?;
    let floating = call.thing_mut(Kind::FloatingIp)?;
    Refusal::new(422, "floating_ip_assigned", "the floating IP is already assigned")
        .when(floating.machine().is_some_and(|own| own != to))?;
    floating.attach(to);
    call.invalidate_cache(to);
    call.act_at_once(("floating_ip", call.id()), "assign_floating_ip")
}
