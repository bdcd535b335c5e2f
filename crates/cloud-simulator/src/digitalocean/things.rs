//! The operations on what a team holds besides Droplets, databases and clusters.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Result, ok, page, shown};
use crate::{
    account::{Account, uuid_of},
    answer::{Answer, Refusal, timestamp},
    catalog,
    droplets::Extra,
    routes::Call,
    things::{Kind, Thing},
};

/// How long it takes to assign a reserved address.
const ASSIGNS: SignedDuration = SignedDuration::from_secs(5);

impl Call<'_> {
    fn thing_json(&self, kind: Kind, thing: &Thing) -> Value {
        shown::thing(self.account, kind, thing, self.timeline.now())
    }

    /// The Droplets that a request names, all of which must exist.
    fn named_droplets(&self) -> Result<BTreeSet<u64>> {
        #[derive(Deserialize)]
        struct Named {
            droplet_ids: BTreeSet<u64>,
        }
        let Named { droplet_ids } = self.body()?;
        let known = |id: &u64| self.account.droplets.contains_key(id);
        Refusal::unprocessable("droplet not found").when(!droplet_ids.iter().all(known))?;
        Ok(droplet_ids)
    }
}

pub(super) fn droplet_firewalls(call: &mut Call<'_>) -> Result<Answer> {
    let own = shown::firewalls_of(call.account, call.droplet()?).collect();
    page(call, "firewalls", own, |firewall| call.thing_json(Kind::Firewall, firewall))
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
    let entry = |id: &str, name: &str| json!({"id": id, "name": name, "cost": "0.00"});
    let things = |kind| call.account.things.attached_to(id, kind);
    let ips: Vec<_> = things(Kind::ReservedIp).map(|ip| entry(&ip.ip, &ip.ip)).collect();
    let snapshots = call.account.listed_snapshots(call.timeline.now());
    let snapshots = snapshots.filter(|snapshot| snapshot.of.id == id);
    let snapshots = snapshots.map(|one| entry(&one.id.to_string(), &one.name));
    let volumes = things(Kind::Volume);
    let volumes = volumes.map(|volume| entry(&volume.id.to_string(), &volume.name));
    ok(&json!({
        "reserved_ips": ips,
        "floating_ips": ips,
        "snapshots": snapshots.collect::<Vec<_>>(),
        "volumes": volumes.collect::<Vec<_>>(),
        "volume_snapshots": [],
    }))
}

pub(super) fn list(call: &mut Call<'_>, kind: Kind) -> Result<Answer> {
    let things = call.account.things.of(kind).collect();
    page(call, &format!("{}s", kind.word()), things, |thing| call.thing_json(kind, thing))
}

pub(super) fn one(call: &mut Call<'_>, kind: Kind) -> Result<Answer> {
    let thing = call.thing(kind)?;
    ok(&json!({kind.word(): call.thing_json(kind, thing)}))
}

/// Deletes one thing. What it was attached to no longer shows it. That a volume has to be detached
/// first, and the answer otherwise, are assumptions.
pub(super) fn delete(call: &mut Call<'_>, kind: Kind) -> Result<Answer> {
    let thing = call.thing(kind)?;
    let is_used = kind == Kind::Volume && !thing.attached.is_empty();
    Refusal::new(409, "conflict", "volume is attached to a Droplet").when(is_used)?;
    let id = thing.id.clone();
    let meter = call.account.things.remove(kind, id).and_then(|thing| thing.meter);
    meter.inspect(|meter| call.account.ledger.end(meter, call.timeline.now()));
    call.account.invalidate_caches();
    Ok(Answer::empty(204))
}

/// Assigns or unassigns an address. A Droplet has at most one of each family, and gets none while
/// it has a pending event (TFDO #1034); the messages for both are assumptions.
pub(super) fn act_on_reserved_ip(call: &mut Call<'_>, kind: Kind) -> Result<Answer> {
    #[derive(Deserialize)]
    struct Order {
        #[serde(rename = "type")]
        verb: String,
        droplet_id: Option<u64>,
    }
    let ip = call.thing(kind)?.clone();
    let order: Order = call.body()?;
    let to = match (order.verb.as_str(), order.droplet_id) {
        ("assign", Some(id)) => {
            check_assignable(call, kind, &ip, id)?;
            Some(id)
        }
        ("unassign", _) => None,
        _ => return Err(Refusal::unprocessable("type is not valid")),
    };
    let number = ip.ip.bytes().map(u64::from).sum();
    let verb = json!(format!("{}_ip", order.verb));
    let action = call.account.begin_action(call.timeline, ("reserved_ip", number), verb);
    call.timeline.after(call.account.index, ASSIGNS, move |account, timeline| {
        account.finish_action(timeline, action);
        account.assign(kind, &ip.id, to, timeline.now());
    });
    let body = json!({"action": call.action_json(action)?});
    Ok(Answer::json(201, &body))
}

fn check_assignable(call: &Call<'_>, kind: Kind, ip: &Thing, id: u64) -> Result<()> {
    let refusal = |message: &str| Refusal::unprocessable(message);
    let droplet = call.account.droplets.get(&id);
    let Some(droplet) = droplet.filter(|droplet| droplet.region == ip.location) else {
        return Err(refusal("The Droplet is not in the address's region, or not found."));
    };
    refusal("Droplet already has a pending event.").when(droplet.guest.action.is_some())?;
    refusal("The Droplet already has such an address.")
        .when(call.account.things.attached_to(id, kind).next().is_some())?;
    Ok(())
}

/// Attaches or detaches a volume. That it is detached only from the Droplet that has it is an
/// assumption.
pub(super) fn act_on_volume(call: &mut Call<'_>) -> Result<Answer> {
    #[derive(Deserialize)]
    struct Order {
        #[serde(rename = "type")]
        kind: String,
        droplet_id: u64,
    }
    call.thing(Kind::Volume)?;
    let order: Order = call.body()?;
    let region = call.account.droplets.get(&order.droplet_id).map(|droplet| droplet.region.clone());
    let volume = call.thing_mut(Kind::Volume)?;
    let is_near = region.as_ref() == Some(&volume.location);
    let has_it = volume.is_attached_to(order.droplet_id);
    match order.kind.as_str() {
        "attach" if is_near && volume.attached.is_empty() => {
            volume.attach(order.droplet_id);
        }
        "detach" if has_it => volume.attached.clear(),
        _ => return Err(Refusal::unprocessable("volume cannot be attached or detached")),
    }
    call.account.droplet(order.droplet_id);
    let on = ("volume", order.droplet_id);
    let action = call.account.act_at_once(call.timeline, on, &order.kind);
    let mut shown = call.action_json(action)?;
    shown["resource_id"] = Value::Null;
    Ok(Answer::json(202, &json!({"action": shown})))
}

/// Adds Droplets to a firewall or a load balancer. That adding one twice is a no-op is an
/// assumption. A load balancer that selects its Droplets by tag takes none by id (DOSPEC).
pub(super) fn add_droplets(call: &mut Call<'_>, kind: Kind) -> Result<Answer> {
    call.thing(kind)?;
    let droplets = call.named_droplets()?;
    let thing = call.thing_mut(kind)?;
    Refusal::unprocessable("the load balancer chooses its Droplets by a tag")
        .when(thing.selector.is_some())?;
    for droplet in droplets {
        thing.attach(droplet);
    }
    Ok(Answer::empty(204))
}

pub(super) fn default_project(call: &mut Call<'_>) -> Result<Answer> {
    let project = call.account.things.default_project();
    let project = project.ok_or_else(Refusal::not_found)?;
    ok(&json!({"project": call.thing_json(Kind::Project, project)}))
}

pub(super) fn project_resources(call: &mut Call<'_>) -> Result<Answer> {
    let project = call.thing(Kind::Project)?;
    let droplets = project.attached.keys().collect();
    page(call, "resources", droplets, |droplet: &u64| in_project(project, *droplet, "ok"))
}

fn in_project(project: &Thing, droplet: u64, status: &str) -> Value {
    json!({
        "urn": format!("do:droplet:{droplet}"),
        "assigned_at": timestamp(project.created),
        "links": {"self": format!("https://api.digitalocean.com/v2/droplets/{droplet}")},
        "status": status,
    })
}

/// Moves resources into a project, out of the one that they were in. Only Droplets are supported.
pub(super) fn add_to_project(call: &mut Call<'_>) -> Result<Answer> {
    #[derive(Deserialize)]
    struct Urns {
        resources: Vec<String>,
    }
    call.thing(Kind::Project)?;
    let urns: Urns = call.body()?;
    let mut moved = Vec::new();
    for urn in &urns.resources {
        let droplet = urn.strip_prefix("do:droplet:");
        let droplet: Option<u64> = droplet.and_then(|id| id.parse().ok());
        let droplet = droplet.filter(|id| call.account.droplets.contains_key(id));
        let droplet = droplet.ok_or_else(Refusal::not_found)?;
        call.account.things.detach(droplet, |kind| kind == Kind::Project);
        let project = call.thing_mut(Kind::Project)?;
        project.attach(droplet);
        moved.push(in_project(project, droplet, "assigned"));
    }
    ok(&json!({"resources": moved}))
}

pub(super) fn alerts(call: &mut Call<'_>) -> Result<Answer> {
    let alerts = call.account.things.of(Kind::Alert).collect();
    page(call, "policies", alerts, |alert| call.thing_json(Kind::Alert, alert))
}

pub(super) fn tags(call: &mut Call<'_>) -> Result<Answer> {
    let droplets = call.account.droplets.values();
    let tags: BTreeSet<_> = droplets.flat_map(|droplet| &droplet.tags).collect();
    page(call, "tags", tags.into_iter().collect(), |tag| json!({"name": tag}))
}

pub(super) fn vpcs(call: &mut Call<'_>) -> Result<Answer> {
    let vpcs = call.account.vpcs.iter().collect();
    page(call, "vpcs", vpcs, |vpc| json!({"id": vpc}))
}

pub(super) fn vpc(call: &mut Call<'_>) -> Result<Answer> {
    let id = &call.ids.names[0];
    Refusal::not_found().when(!has_vpc(call.account, id))?;
    ok(&json!({"vpc": {"id": id}}))
}

pub(super) fn has_vpc(account: &Account, id: &str) -> bool {
    account.vpcs.contains(id) || catalog::DROPLET["vpc_uuid"] == id
}

/// Deletes a VPC in which there is no Droplet (DOSPEC).
pub(super) fn delete_vpc(call: &mut Call<'_>) -> Result<Answer> {
    let id = &call.ids.names[0];
    let mut droplets = call.account.droplets.values();
    let is_used = droplets.any(|droplet| droplet.vpc.as_ref() == Some(id));
    let refusal = Refusal::new(403, "forbidden", "Can not delete VPC with members");
    refusal.when(is_used || catalog::DROPLET["vpc_uuid"] == id.as_str())?;
    Refusal::not_found().when(!call.account.vpcs.remove(id))?;
    Ok(Answer::empty(204))
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
            "uuid": uuid_of(number),
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
