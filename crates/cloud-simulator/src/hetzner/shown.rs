//! How the Hetzner Cloud API shows servers, their actions, and what a project holds besides them.

use domain::configuration::Provider;
use serde_json::{Value, json};

use crate::{
    account::{Account, Action},
    answer::timestamp,
    catalog,
    images::Image,
    servers::{Extra, Server},
    things::{Kind, Thing, address_of},
};

/// [`server`] as text, which is cached.
pub(crate) fn server_text<'a>(account: &Account, server: &'a Server) -> &'a str {
    server.guest.cached_json(|| self::server(account, server).to_string())
}

/// A server, with a location, and without a datacenter.
pub(crate) fn server(account: &Account, server: &Server) -> Value {
    let things = &account.things;
    let ids = |kind| things.attached_to(server.id, kind).map(|thing| &thing.id).collect::<Vec<_>>();
    let address = |id: Option<u64>| {
        let ip = things.get(Kind::PrimaryIp, id?)?;
        let dns_ptr = if ip.is_ipv6() { json!([]) } else { json!(pointer(ip)) };
        Some(json!({"id": ip.id, "ip": ip.ip, "blocked": false, "dns_ptr": dns_ptr}))
    };
    let firewalls = things.firewalls_of(server.id, &server.labels).map(|firewall| {
        let is_pending = firewall.pending.contains(&server.id);
        json!({"id": firewall.id, "status": if is_pending { "pending" } else { "applied" }})
    });
    let networks = things.attached_to(server.id, Kind::Network);
    let private = networks.map(|network| private_address(network, server.id));
    let mut groups = things.attached_to(server.id, Kind::PlacementGroup);
    let group = groups.next().map(|group| thing(account, Kind::PlacementGroup, group));
    let image = server.guest.made_from.and_then(|id| account.images.get(&id));
    let has = |extra| server.has.contains(&extra);
    let fields = json!({
        "id": server.id,
        "name": server.name,
        "status": server.status,
        "created": timestamp(server.created),
        "server_type": account.market.server_type(&server.server_type),
        "location": place(&server.location),
        "locked": server.guest.action.is_some(),
        "labels": server.labels,
        "primary_disk_size": server.disk,
        "protection": {"delete": has(Extra::Protection), "rebuild": has(Extra::Protection)},
        "backup_window": has(Extra::Backups).then_some("22-02"),
        "iso": has(Extra::Iso).then_some(&*catalog::ISO),
        "rescue_enabled": has(Extra::Rescue),
        "public_net": {
            "ipv4": address(server.ipv4),
            "ipv6": address(server.ipv6),
            "floating_ips": ids(Kind::FloatingIp),
            "firewalls": firewalls.collect::<Vec<_>>(),
        },
        "private_net": private.collect::<Vec<_>>(),
        "volumes": ids(Kind::Volume),
        "placement_group": group,
        "load_balancers": ids(Kind::LoadBalancer),
        "image": image.map(Image::to_json),
    });
    catalog::with(&catalog::SERVER, fields)
}

/// A server's interface in a network. Its MAC address depends on both, so a recreated server gets
/// another one.
fn private_address(network: &Thing, server: u64) -> Value {
    let attachment = &network.attached[&server];
    let mac = format!(
        "86:00:00:{:02x}:{:02x}:{:02x}",
        network.number() % 256,
        server / 256 % 256,
        server % 256
    );
    json!({
        "network": network.id,
        "ip": attachment.ip,
        "alias_ips": attachment.alias_ips,
        "mac_address": mac,
    })
}

pub(crate) fn thing(account: &Account, kind: Kind, thing: &Thing) -> Value {
    let more = json!({
        "place": place(&thing.location),
        "targets": targets(account, kind, thing),
        "address": address_of(thing.number()),
        "device": format!("/dev/disk/by-id/scsi-0HC_Volume_{}", thing.id),
        "family": if thing.is_ipv6() { "ipv6" } else { "ipv4" },
        "assignee_type": if thing.attached.is_empty() { "unassigned" } else { "server" },
        "dns_ptr": if thing.is_ipv6() { json!([]) } else {
            json!([{"ip": thing.ip, "dns_ptr": pointer(thing)}])
        },
    });
    thing.to_json(kind, Provider::Hetzner, more)
}

fn place(location: &str) -> Option<&'static Value> {
    catalog::entry(&catalog::LOCATIONS, "name", location)
}

/// The name that an IPv4 address stands for.
fn pointer(ip: &Thing) -> String {
    format!("static.{}.example.com", ip.ip)
}

/// The servers that a firewall applies to, or that are behind a load balancer: each one, and those
/// that a label selector selects.
fn targets(account: &Account, kind: Kind, thing: &Thing) -> Vec<Value> {
    let target = |id: u64, use_private_ip: bool| {
        if kind == Kind::Firewall {
            return json!({"type": "server", "server": {"id": id}});
        }
        json!({
            "type": "server",
            "server": {"id": id, "ip": address_of(id)},
            "health_status": [],
            "use_private_ip": use_private_ip,
        })
    };
    let attached = thing.attached.iter();
    let mut targets: Vec<_> = attached.map(|(id, how)| target(*id, how.use_private_ip)).collect();
    if let Some(selector) = &thing.selector {
        let selected = account.servers.values().filter(|server| thing.selects(&server.labels));
        let selected: Vec<_> = selected.map(|server| target(server.id, false)).collect();
        let mut by_label =
            json!({"type": "label_selector", "label_selector": {"selector": selector}});
        if kind == Kind::LoadBalancer {
            by_label["targets"] = json!(selected);
            by_label["use_private_ip"] = json!(false);
        } else {
            by_label["applied_to_resources"] = json!(selected);
        }
        targets.push(by_label);
    }
    targets
}

pub(crate) fn action(action: &Action) -> Value {
    let done = action.finished.is_some();
    let error = action.error;
    json!({
        "id": action.id,
        "command": action.kind,
        "status": match (done, error) {
            (false, _) => "running",
            (true, None) => "success",
            (true, Some(_)) => "error",
        },
        "progress": if done { 100 } else { 0 },
        "started": timestamp(action.started),
        "finished": action.finished.map(timestamp),
        "resources": [{"id": action.on.1, "type": action.on.0}],
        "error": error.map(|(code, message)| json!({"code": code, "message": message})),
    })
}
