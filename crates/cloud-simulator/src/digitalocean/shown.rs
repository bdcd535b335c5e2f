//! How the `DigitalOcean` API shows Droplets, their actions, and what a team holds besides them.

use domain::configuration::Provider;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    account::{Account, Action},
    answer::timestamp,
    catalog,
    droplets::{Droplet, DropletStatus, Extra},
    things::{Kind, Thing, public_address},
};

/// [`droplet`] as text, which is cached.
pub(crate) fn droplet_text<'a>(account: &Account, droplet: &'a Droplet, now: Timestamp) -> &'a str {
    droplet.guest.cached_json(|| self::droplet(account, droplet, now).to_string())
}

pub(crate) fn droplet(account: &Account, droplet: &Droplet, now: Timestamp) -> Value {
    let market = &account.market;
    let size = market.droplet_size(&droplet.size).unwrap_or(&Value::Null);
    let made_from = droplet.guest.made_from.and_then(|id| account.snapshots.get(&id));
    let mut image = catalog::DROPLET["image"].clone();
    image["type"] = json!(droplet.image_type);
    if let Some(snapshot) = made_from {
        image = snapshot.image_json();
    }
    let snapshots = account.listed_snapshots(now).filter(|snapshot| snapshot.of.id == droplet.id);
    let volumes = account.things.attached_to(droplet.id, Kind::Volume);
    let mut fields = json!({
        "id": droplet.id,
        "name": droplet.name,
        "image": image,
        "memory": size["memory"],
        "vcpus": size["vcpus"],
        "disk": droplet.disk,
        "disk_info": disks(droplet),
        // An administrator's lock; not set while an action runs (droplet_kit #218).
        "locked": false,
        "status": droplet.status,
        "created_at": timestamp(droplet.created),
        "features": features(droplet),
        "networks": networks(account, droplet),
        "snapshot_ids": snapshots.map(|snapshot| snapshot.id).collect::<Vec<_>>(),
        "volume_ids": volumes.map(|volume| &volume.id).collect::<Vec<_>>(),
        "size": size,
        "size_slug": droplet.size,
        "region": market.region(&droplet.region),
        "tags": droplet.tags,
    });
    if let Some(vpc) = &droplet.vpc {
        fields["vpc_uuid"] = json!(vpc);
    }
    if let Some(gpu) = &droplet.gpu {
        fields["gpu_info"] = json!({
            "count": gpu.count,
            "model": gpu.model,
            "vram": {"amount": gpu.vram_gib, "unit": "gib"},
        });
    }
    catalog::with(&catalog::DROPLET, fields)
}

fn disks(droplet: &Droplet) -> Value {
    let disk = |kind: &str, gib| json!({"size": {"amount": gib, "unit": "gib"}, "type": kind});
    if droplet.has.contains(&Extra::Scratch) {
        json!([disk("local", droplet.disk), disk("scratch", 720)])
    } else {
        json!([disk("local", droplet.disk)])
    }
}

fn features(droplet: &Droplet) -> Vec<&'static str> {
    let own = droplet.has.iter().filter_map(|extra| extra.feature());
    own.chain(["private_networking"]).collect()
}

/// A Droplet's addresses, which are unique; none while it is being created. Its address in its VPC
/// cannot be chosen. A reserved IPv4 address is among them (godo #343).
fn networks(account: &Account, droplet: &Droplet) -> Value {
    let id = droplet.id;
    if droplet.status == DropletStatus::New {
        return json!({"v4": [], "v6": []});
    }
    let v4 = |ip: String, gateway: &str, kind: &str| {
        json!({
            "ip_address": ip,
            "netmask": "255.255.0.0",
            "gateway": gateway,
            "type": kind,
        })
    };
    let v6 = json!({
        "ip_address": public_address(id, true).replace("::/64", "::1"),
        "netmask": 64,
        "gateway": "2001:db8::1",
        "type": "public",
    });
    let has_v6 = droplet.has.contains(&Extra::Ipv6);
    let private = format!("10.110.{}.{}", id / 250 % 250, 2 + id % 250);
    let reserved = account.things.attached_to(id, Kind::ReservedIp);
    let reserved = reserved.map(|ip| v4(ip.ip.clone(), "203.0.113.1", "public"));
    let own = [
        v4(public_address(id, false), "198.18.0.1", "public"),
        v4(private, "10.110.0.1", "private"),
    ];
    json!({
        "v4": own.into_iter().chain(reserved).collect::<Vec<_>>(),
        "v6": if has_v6 { vec![v6] } else { Vec::new() },
    })
}

/// The firewalls that apply to a Droplet, by id or by its tags.
pub(crate) fn firewalls_of<'a>(
    account: &'a Account,
    droplet: &Droplet,
) -> impl Iterator<Item = &'a Thing> {
    let firewalls = account.things.of(Kind::Firewall);
    firewalls.filter(|firewall| {
        let by_tag = firewall.tags.iter().any(|tag| droplet.has_tag(tag));
        by_tag || firewall.is_attached_to(droplet.id)
    })
}

pub(crate) fn thing(account: &Account, kind: Kind, thing: &Thing, now: Timestamp) -> Value {
    let droplet = || {
        let droplet = account.droplets.get(thing.attached.keys().next()?)?;
        Some(self::droplet(account, droplet, now))
    };
    let is_address = matches!(kind, Kind::ReservedIp | Kind::ReservedIpv6);
    let more = json!({
        "place": account.market.region(&thing.location),
        "droplet": is_address.then(droplet).flatten(),
        "entities": thing.attached.keys().map(u64::to_string).collect::<Vec<_>>(),
        "fingerprint": thing.fingerprint(),
    });
    let mut shown = thing.to_json(kind, Provider::DigitalOcean, more);
    if let Some(fields) = shown.as_object_mut()
        && thing.selector.is_none()
    {
        fields.remove("tag");
    }
    shown
}

/// A Droplet as its autoscale pool shows it.
pub(crate) fn autoscale_member(droplet: &Droplet) -> Value {
    json!({
        "droplet_id": droplet.id,
        "created_at": timestamp(droplet.created),
        "updated_at": timestamp(droplet.created),
        "health_status": "healthy",
        "status": if droplet.guest.powered { "active" } else { "off" },
        "current_utilization": {"memory": 0.25, "cpu": 0.25},
    })
}

pub(crate) fn autoscale_pool(id: &str, members: &[&Droplet]) -> Value {
    let first = members.first();
    let created = first.map(|droplet| timestamp(droplet.created));
    json!({
        "id": id,
        "name": id,
        "config": {"target_number_instances": members.len()},
        "droplet_template": {
            "region": first.map(|droplet| &droplet.region),
            "size": first.map(|droplet| &droplet.size),
            "image": catalog::DROPLET["image"]["slug"],
            "ssh_keys": [],
        },
        "created_at": created,
        "updated_at": created,
        "status": "active",
        "active_resources_count": members.len(),
    })
}

pub(crate) fn action(account: &Account, action: &Action) -> Value {
    let (kind, id) = action.on;
    json!({
        "id": action.id,
        "status": match (action.finished, action.error) {
            (None, _) => "in-progress",
            (Some(_), None) => "completed",
            (Some(_), Some(_)) => "errored",
        },
        "type": action.kind,
        "started_at": timestamp(action.started),
        "completed_at": action.finished.map(timestamp),
        "resource_id": id,
        "resource_type": kind,
        "region": account.market.region(&action.region),
        "region_slug": action.region,
    })
}
