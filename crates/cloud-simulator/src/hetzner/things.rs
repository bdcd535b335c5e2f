//! The operations on what a project holds besides its servers and their images.

use serde_json::{Value, json};

use super::{
    Result, action_json,
    body::{body, flag, invalid, labels, missing, number, text},
    create, listed, shown,
};
use crate::{
    answer::{Answer, Refusal},
    routes::Call,
    servers::{Family, not_found},
    things::{Attachment, Kind, Thing},
};

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

pub(super) fn attach_to_network(call: &mut Call<'_>) -> Result<Answer> {
    let server = call.server()?;
    let id = server.id;
    server.check_unlocked()?;
    let body = body(call, "network ip alias_ips ip_range")?;
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
    let body = body(call, "placement_group")?;
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

pub(super) fn update_primary_ip(call: &mut Call<'_>) -> Result<Answer> {
    let body = body(call, "name labels auto_delete")?;
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
    let body = body(call, "assignee_id assignee_type")?;
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
    let body = body(call, "server automount")?;
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
    let body = body(call, "apply_to")?;
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
    let body = body(call, "type server use_private_ip label_selector ip")?;
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
    let body = body(call, "server")?;
    let to = number(&body, "server")?;
    invalid("server not found").when(!call.account.servers.contains_key(&to))?;
    let floating = call.thing_mut(Kind::FloatingIp)?;
    // HZSPEC has the refusal `floating_ip_assigned`, but does not say for which addresses.
    let from = floating.machine();
    floating.attached.clear();
    floating.attach(to);
    for server in from.into_iter().chain([to]) {
        call.invalidate_cache(server);
    }
    call.act_at_once(("floating_ip", call.id()), "assign_floating_ip")
}
