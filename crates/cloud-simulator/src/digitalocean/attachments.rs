//! The operations on what a team holds besides Droplets, databases and clusters, and those that
//! create and delete Droplets.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Result, ok, page};
use crate::{
    answer::{Answer, Refusal},
    catalog,
    droplets::{
        Droplet, Extra,
        create::{self, DropletOrder},
        snapshots,
    },
    routes::Call,
    team::{ASSIGNS, Alert, DropletContext, Firewall, Project, ReservedIp, Snapshot, SshKey},
};

impl Call<'_> {
    /// What responses about Droplets need besides the Droplets.
    pub(super) fn droplet_context(&self) -> DropletContext<'_> {
        DropletContext {
            market: &self.account.market,
            team: &self.account.team,
            now: self.timeline.now(),
        }
    }

    fn named<'a, T>(&self, objects: &'a std::collections::BTreeMap<String, T>) -> Result<&'a T> {
        let object = objects.get(&self.ids.names[0]);
        object.ok_or_else(Refusal::not_found)
    }

    fn snapshot(&self) -> Result<&Snapshot> {
        let mut listed = self.account.team.listed(self.timeline.now());
        let snapshot = listed.find(|snapshot| snapshot.id == self.ids.numbers[0]);
        snapshot.ok_or_else(Refusal::not_found)
    }

    /// The Droplets that a request names, all of which must exist.
    fn named_droplets(&self) -> Result<BTreeSet<u64>> {
        #[derive(Deserialize)]
        struct Named {
            droplet_ids: BTreeSet<u64>,
        }
        let Named { droplet_ids } = self.body()?;
        let known = |id: &u64| self.account.droplets.contains_key(id);
        if droplet_ids.iter().all(known) {
            Ok(droplet_ids)
        } else {
            Err(Refusal::unprocessable("droplet not found"))
        }
    }
}

pub(super) fn create_droplet(call: &mut Call<'_>) -> Result<Answer> {
    let order: DropletOrder = call.body()?;
    let (id, action) = create::create(call.account, call.timeline, order)?;
    let droplet = call.account.droplets[&id].to_json(call.droplet_context());
    let href = format!("{}/v2/actions/{action}", call.incoming.origin);
    let links = json!({"actions": [{"id": action, "rel": "create", "href": href}]});
    Ok(Answer::json(202, &json!({"droplet": droplet, "links": links})))
}

pub(super) fn delete_droplet(call: &mut Call<'_>) -> Result<Answer> {
    create::delete(call.account, call.timeline, call.ids.numbers[0])?;
    Ok(Answer::empty(204))
}

pub(super) fn droplet_snapshots(call: &mut Call<'_>) -> Result<Answer> {
    let id = call.droplet()?.id;
    let listed = call.account.team.listed(call.timeline.now());
    let own = listed.filter(|snapshot| snapshot.of.id == id).collect();
    page(call, "snapshots", own, Snapshot::of_droplet_json)
}

pub(super) fn droplet_firewalls(call: &mut Call<'_>) -> Result<Answer> {
    let own = call.account.team.firewalls_of(call.droplet()?).collect();
    page(call, "firewalls", own, Firewall::to_json)
}

pub(super) fn backup_policy(call: &mut Call<'_>) -> Result<Answer> {
    let droplet = call.droplet()?;
    let enabled = droplet.has.contains(&Extra::Backups);
    let policy = json!({"plan": "weekly", "weekday": "SUN", "hour": 20});
    let policy = droplet.backup_policy.as_ref().unwrap_or(&policy);
    let length = json!({"window_length_hours": 4, "retention_period_days": 28});
    let policy = catalog::with(policy, length);
    ok(&json!({"policy": {
        "droplet_id": droplet.id,
        "backup_enabled": enabled,
        "backup_policy": enabled.then_some(policy),
        "next_backup_window": null,
    }}))
}

/// Previews what would be deleted along with a Droplet, without any effect.
pub(super) fn associated(call: &mut Call<'_>) -> Result<Answer> {
    let id = call.droplet()?.id;
    let team = &call.account.team;
    let entry = |id: &str, name: &str| json!({"id": id, "name": name, "cost": "0.00"});
    let ips = team.reserved_ips.values();
    let ips = ips.filter(|ip| ip.droplet == Some(id) && !ip.is_ipv6());
    let ips: Vec<_> = ips.map(|ip| entry(&ip.ip, &ip.ip)).collect();
    let snapshots = team.listed(call.timeline.now());
    let snapshots = snapshots.filter(|snapshot| snapshot.of.id == id);
    let snapshots = snapshots.map(|one| entry(&one.id.to_string(), &one.name));
    let volumes = team.volumes_of(id);
    let volumes = volumes.map(|volume| entry(&volume.id, &volume.name));
    ok(&json!({
        "reserved_ips": ips,
        "floating_ips": ips,
        "snapshots": snapshots.collect::<Vec<_>>(),
        "volumes": volumes.collect::<Vec<_>>(),
        "volume_snapshots": [],
    }))
}

pub(super) fn snapshots(call: &mut Call<'_>) -> Result<Answer> {
    let kind = call.incoming.request.parameter("resource_type");
    let wanted = kind.is_none_or(|kind| kind == "droplet");
    let listed = call.account.team.listed(call.timeline.now());
    page(call, "snapshots", listed.filter(|_| wanted).collect(), Snapshot::to_json)
}

pub(super) fn snapshot(call: &mut Call<'_>) -> Result<Answer> {
    ok(&json!({"snapshot": call.snapshot()?.to_json()}))
}

pub(super) fn delete_snapshot(call: &mut Call<'_>) -> Result<Answer> {
    let id = call.snapshot()?.id;
    snapshots::delete(call.account, id, call.timeline.now())?;
    Ok(Answer::empty(204))
}

/// Lists the private images and, unless the query excludes it, the public one of the catalog.
pub(super) fn images(call: &mut Call<'_>) -> Result<Answer> {
    let listed = call.account.team.listed(call.timeline.now());
    let mut images: Vec<_> = listed.map(Snapshot::image_json).collect();
    if call.incoming.request.parameter("private").as_deref() != Some("true") {
        images.push(catalog::DROPLET["image"].clone());
    }
    page(call, "images", images, |image| image)
}

pub(super) fn image(call: &mut Call<'_>) -> Result<Answer> {
    if catalog::DROPLET["image"]["id"] == call.ids.numbers[0] {
        return ok(&json!({"image": catalog::DROPLET["image"]}));
    }
    ok(&json!({"image": call.snapshot()?.image_json()}))
}

pub(super) fn rename_image(call: &mut Call<'_>) -> Result<Answer> {
    let id = call.snapshot()?.id;
    let body: Value = call.body()?;
    let snapshot = call.account.team.snapshots.get_mut(&id);
    let snapshot = snapshot.ok_or_else(Refusal::not_found)?;
    if let Some(name) = body["name"].as_str() {
        name.clone_into(&mut snapshot.name);
    }
    image(call)
}

pub(super) fn reserved_ips(call: &mut Call<'_>) -> Result<Answer> {
    addresses(call, "reserved_ips", false)
}

pub(super) fn reserved_ipv6s(call: &mut Call<'_>) -> Result<Answer> {
    addresses(call, "reserved_ipv6s", true)
}

fn addresses(call: &Call<'_>, key: &str, is_ipv6: bool) -> Result<Answer> {
    let ips = call.account.team.reserved_ips.values();
    let ips = ips.filter(|ip| ip.is_ipv6() == is_ipv6).collect();
    page(call, key, ips, |ip: &ReservedIp| {
        ip.to_json(&call.account.droplets, call.droplet_context())
    })
}

pub(super) fn reserved_ip(call: &mut Call<'_>) -> Result<Answer> {
    let ip = call.named(&call.account.team.reserved_ips)?;
    let key = if ip.is_ipv6() { "reserved_ipv6" } else { "reserved_ip" };
    ok(&json!({key: ip.to_json(&call.account.droplets, call.droplet_context())}))
}

/// Assigns or unassigns an address. A Droplet has at most one of each family, and gets none while
/// it has a pending event (TFDO #1034); the messages for both are assumptions.
pub(super) fn act_on_reserved_ip(call: &mut Call<'_>) -> Result<Answer> {
    #[derive(Deserialize)]
    struct Order {
        #[serde(rename = "type")]
        kind: String,
        droplet_id: Option<u64>,
    }
    let ip = call.named(&call.account.team.reserved_ips)?.clone();
    let order: Order = call.body()?;
    let to = match (order.kind.as_str(), order.droplet_id) {
        ("assign", Some(id)) => {
            check_assignable(call, &ip, id)?;
            Some(id)
        }
        ("unassign", _) => None,
        _ => return Err(Refusal::unprocessable("type is not valid")),
    };
    let number = ip.ip.bytes().map(u64::from).sum();
    let kind = json!(format!("{}_ip", order.kind));
    let action = call.account.begin_action(call.timeline, ("reserved_ip", number), kind);
    call.timeline.after(call.account.index, ASSIGNS, move |account, timeline| {
        account.finish_action(timeline, action);
        account.assign(&ip.ip, to, timeline.now());
    });
    let body = json!({"action": call.action_json(action)?});
    Ok(Answer::json(201, &body))
}

fn check_assignable(call: &Call<'_>, ip: &ReservedIp, id: u64) -> Result<()> {
    let refuse = |message: &str| Err(Refusal::unprocessable(message));
    let droplet = call.account.droplets.get(&id);
    let Some(droplet) = droplet.filter(|droplet| droplet.region == ip.region) else {
        return refuse("The Droplet is not in the address's region, or not found.");
    };
    if droplet.action.is_some() {
        return refuse("Droplet already has a pending event.");
    }
    let others = call.account.team.reserved_ips.values();
    let mut others = others.filter(|own| own.is_ipv6() == ip.is_ipv6());
    if others.any(|own| own.droplet == Some(id)) {
        return refuse("The Droplet already has such an address.");
    }
    Ok(())
}

pub(super) fn volumes(call: &mut Call<'_>) -> Result<Answer> {
    let volumes = call.account.team.volumes.values().collect();
    page(call, "volumes", volumes, |volume: &crate::team::Volume| {
        volume.to_json(&call.account.market)
    })
}

pub(super) fn volume(call: &mut Call<'_>) -> Result<Answer> {
    let volume = call.named(&call.account.team.volumes)?;
    ok(&json!({"volume": volume.to_json(&call.account.market)}))
}

pub(super) fn act_on_volume(call: &mut Call<'_>) -> Result<Answer> {
    #[derive(Deserialize)]
    struct Order {
        #[serde(rename = "type")]
        kind: String,
        droplet_id: u64,
    }
    let volume = call.named(&call.account.team.volumes)?;
    let (id, region, own) = (volume.id.clone(), volume.region.clone(), volume.droplet);
    let order: Order = call.body()?;
    let droplet = call.account.droplets.get(&order.droplet_id);
    let is_near = droplet.is_some_and(|droplet| droplet.region == region);
    let to = match (order.kind.as_str(), own) {
        ("attach", None) if is_near => Some(order.droplet_id),
        ("detach", Some(_)) => None,
        _ => {
            return Err(Refusal::unprocessable("volume cannot be attached or detached"));
        }
    };
    if let Some(volume) = call.account.team.volumes.get_mut(&id) {
        volume.droplet = to;
    }
    Droplet::of(&mut call.account.droplets, order.droplet_id);
    let on = ("volume", order.droplet_id);
    let action = call.account.act_at_once(call.timeline, on, &order.kind);
    let mut shown = call.action_json(action)?;
    shown["resource_id"] = Value::Null;
    Ok(Answer::json(202, &json!({"action": shown})))
}

pub(super) fn firewalls(call: &mut Call<'_>) -> Result<Answer> {
    let firewalls = call.account.team.firewalls.values().collect();
    page(call, "firewalls", firewalls, Firewall::to_json)
}

pub(super) fn firewall(call: &mut Call<'_>) -> Result<Answer> {
    let firewall = call.named(&call.account.team.firewalls)?;
    ok(&json!({"firewall": firewall.to_json()}))
}

/// Adds Droplets to a firewall. That adding one twice is a no-op is an assumption.
pub(super) fn add_to_firewall(call: &mut Call<'_>) -> Result<Answer> {
    let id = call.named(&call.account.team.firewalls)?.id.clone();
    let droplets = call.named_droplets()?;
    if let Some(firewall) = call.account.team.firewalls.get_mut(&id) {
        firewall.droplets.extend(droplets);
    }
    Ok(Answer::empty(204))
}

pub(super) fn load_balancers(call: &mut Call<'_>) -> Result<Answer> {
    let balancers = call.account.team.load_balancers.values().collect();
    let market = &call.account.market;
    page(call, "load_balancers", balancers, |one: &crate::team::LoadBalancer| one.to_json(market))
}

pub(super) fn load_balancer(call: &mut Call<'_>) -> Result<Answer> {
    let balancer = call.named(&call.account.team.load_balancers)?;
    ok(&json!({"load_balancer": balancer.to_json(&call.account.market)}))
}

/// Adds Droplets to a load balancer. One that selects its Droplets by tag takes none by id
/// (DOSPEC).
pub(super) fn add_to_load_balancer(call: &mut Call<'_>) -> Result<Answer> {
    let balancer = call.named(&call.account.team.load_balancers)?;
    let (id, by_tag) = (balancer.id.clone(), balancer.tag.is_some());
    let droplets = call.named_droplets()?;
    if by_tag {
        let message = "the load balancer chooses its Droplets by a tag";
        return Err(Refusal::unprocessable(message));
    }
    if let Some(balancer) = call.account.team.load_balancers.get_mut(&id) {
        balancer.droplets.extend(droplets);
    }
    Ok(Answer::empty(204))
}

pub(super) fn projects(call: &mut Call<'_>) -> Result<Answer> {
    let projects = call.account.team.projects.values().collect();
    page(call, "projects", projects, Project::to_json)
}

pub(super) fn default_project(call: &mut Call<'_>) -> Result<Answer> {
    let mut projects = call.account.team.projects.values();
    let project = projects.find(|project| project.is_default);
    let project = project.ok_or_else(Refusal::not_found)?;
    ok(&json!({"project": project.to_json()}))
}

pub(super) fn project(call: &mut Call<'_>) -> Result<Answer> {
    let project = call.named(&call.account.team.projects)?;
    ok(&json!({"project": project.to_json()}))
}

pub(super) fn project_resources(call: &mut Call<'_>) -> Result<Answer> {
    let project = call.named(&call.account.team.projects)?;
    let droplets = project.droplets.iter().collect();
    page(call, "resources", droplets, |id: &u64| project.resource_json(*id, "ok"))
}

/// Moves resources into a project, out of the one that they were in. Only Droplets are supported.
pub(super) fn add_to_project(call: &mut Call<'_>) -> Result<Answer> {
    #[derive(Deserialize)]
    struct Urns {
        resources: Vec<String>,
    }
    let id = call.named(&call.account.team.projects)?.id.clone();
    let urns: Urns = call.body()?;
    let mut moved = Vec::new();
    for urn in &urns.resources {
        let droplet = urn.strip_prefix("do:droplet:");
        let droplet: Option<u64> = droplet.and_then(|id| id.parse().ok());
        let droplet = droplet.filter(|id| call.account.droplets.contains_key(id));
        let droplet = droplet.ok_or_else(Refusal::not_found)?;
        for project in call.account.team.projects.values_mut() {
            project.droplets.remove(&droplet);
        }
        if let Some(project) = call.account.team.projects.get_mut(&id) {
            let is_new = project.droplets.insert(droplet);
            let status = if is_new { "assigned" } else { "already_assigned" };
            moved.push(project.resource_json(droplet, status));
        }
    }
    ok(&json!({"resources": moved}))
}

pub(super) fn alerts(call: &mut Call<'_>) -> Result<Answer> {
    let alerts = call.account.team.alerts.values().collect();
    page(call, "policies", alerts, Alert::to_json)
}

/// Lists the tags of all Droplets.
pub(super) fn tags(call: &mut Call<'_>) -> Result<Answer> {
    let droplets = call.account.droplets.values();
    let tags: BTreeSet<_> = droplets.flat_map(|droplet| &droplet.tags).collect();
    page(call, "tags", tags.into_iter().collect(), |tag| json!({"name": tag}))
}

/// Lists the VPCs of all Droplets.
pub(super) fn vpcs(call: &mut Call<'_>) -> Result<Answer> {
    let droplets = call.account.droplets.values();
    let vpcs: BTreeSet<_> = droplets.filter_map(|droplet| droplet.vpc.as_ref()).collect();
    page(call, "vpcs", vpcs.into_iter().collect(), |vpc| json!({"id": vpc}))
}

pub(super) fn ssh_keys(call: &mut Call<'_>) -> Result<Answer> {
    let keys = call.account.team.ssh_keys.values().collect();
    page(call, "ssh_keys", keys, SshKey::to_json)
}

/// Lists the trusted sources of a database: Droplets and addresses (DOSPEC).
pub(super) fn trusted_sources(call: &mut Call<'_>) -> Result<Answer> {
    let database = call.database()?;
    let droplets = database.lets_in.iter();
    let droplets = droplets.map(|droplet| ("droplet", droplet.to_string()));
    let addresses = database.lets_in_addresses.iter();
    let addresses = addresses.map(|address| ("ip_addr", address.clone()));
    let rules = droplets.chain(addresses).zip(1..);
    let rules = rules.map(|((kind, value), number)| {
        json!({
            "uuid": crate::world::uuid_of(number),
            "cluster_uuid": database.id,
            "type": kind,
            "value": value,
            "created_at": "2026-01-15T08:00:00Z",
            "description": "",
        })
    });
    ok(&json!({"rules": rules.collect::<Vec<_>>()}))
}

/// The limits that the response about an account shows.
pub(super) fn limits(call: &Call<'_>) -> Value {
    match call.account.login.server_limit {
        Some(limit) => json!({"droplet_limit": limit}),
        None => json!({}),
    }
}
