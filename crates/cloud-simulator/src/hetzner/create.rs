//! Creating and deleting servers.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Result, action_json,
    body::{body, flag, invalid, labels, missing, numbers, text},
    servers::settle,
    shown,
};
use crate::{
    account::{Account, Timeline},
    answer::{Answer, Refusal},
    catalog, defaults,
    images::{Image, ImageKind, ImageStatus},
    labels::Labels,
    ledger::{BilledItem, Life, Meter},
    market::Market,
    routes::Call,
    servers::{Extra, Family, Server, ServerStatus, disk_of, meter, not_found},
    things::{Attachment, Kind, Thing, public_address},
};

/// How long it takes to find that there is no room for an accepted server.
const PLACEMENT: jiff::SignedDuration = jiff::SignedDuration::from_secs(10);

/// An order for a new server: the body of its request.
#[derive(Debug, Clone)]
struct ServerOrder {
    name: String,
    /// The type's name or id.
    server_type: String,
    image: String,
    location: String,
    labels: Labels,
    starts: bool,
    /// Its public addresses by family: the id of an existing one, or `None` for a new one.
    addresses: Vec<(Family, Option<u64>)>,
    networks: Vec<u64>,
    volumes: Vec<u64>,
    firewalls: Vec<u64>,
    placement_group: Option<u64>,
    ssh_keys: Vec<String>,
}

/// Begins to create a server, or refuses it. The order of these checks is an
/// assumption, and so are the messages where no code is documented.
pub(super) fn create_server(call: &mut Call<'_>) -> Result<Answer> {
    let order = &order_of(call)?;
    let Call { account, timeline, .. } = call;
    let now = timeline.now();
    let image = image_of(account, &order.image)?.clone();
    let server_type = type_of(&account.market, order, &image, now)?;
    let plan = server_type["name"].as_str().unwrap_or_default().to_owned();
    let disk = disk_of(server_type);
    check_name(account, &order.name)?;
    check_attachments(account, order)?;
    let limit = account.login.server_limit;
    if limit.is_some_and(|limit| account.servers.len() >= limit) {
        return Err(Refusal {
            details: json!({"limits": [{"name": "server_limit"}]}),
            ..Refusal::new(403, "resource_limit_exceeded", "server limit reached")
        });
    }
    let id = timeline.number();
    let mut server = Server {
        id,
        name: order.name.clone(),
        labels: order.labels.clone(),
        location: order.location.clone(),
        server_type: plan,
        disk,
        created: now,
        status: ServerStatus::Initializing,
        guest: image.of.guest.copy(id, image.id, &image.contents, image.of.copies_break),
        has: BTreeSet::new(),
        ..image.of.clone()
    };
    attach_addresses(account, timeline, &mut server, order);
    attach_ordered(account, timeline, &server, order);
    let life = Life::of_size(now, &server.server_type).in_location(&server.location);
    account.ledger.open(meter(id), life.added_later());
    let fails = server.creation_failures > 0;
    let takes = if fails { PLACEMENT } else { server.creation };
    account.servers.insert(id, server);
    let action = account.begin_action(timeline, ("server", id), json!("create_server"));
    let next =
        order.starts.then(|| account.begin_action(timeline, ("server", id), json!("start_server")));
    account.lock(id, Some(action));
    timeline.after(account.index, takes, move |account, timeline| {
        account.finish_action(timeline, action);
        account.lock(id, None);
        end_creation(account, timeline, id, action, next, fails);
    });
    let next: Result<Vec<_>> = next.into_iter().map(|id| action_json(call, id)).collect();
    let body = json!({
        "server": shown::server(call.account, &call.account.servers[&id]),
        "action": action_json(call, action)?,
        "next_actions": next?,
        "root_password": order.ssh_keys.is_empty().then_some("simulated-password"),
    });
    Ok(Answer::json(201, &body))
}

/// Reads an order from the body of its request.
fn order_of(call: &Call<'_>) -> Result<ServerOrder> {
    let keys = "name server_type image location start_after_create placement_group ssh_keys volumes \
                automount networks firewalls labels user_data public_net";
    let body = body(call, keys)?;
    let required = |key: &str| text(&body, key).ok_or_else(|| missing(key));
    let firewalls = body.get("firewalls").and_then(Value::as_array);
    let firewalls = firewalls.into_iter().flatten();
    let keys = body.get("ssh_keys").and_then(Value::as_array);
    let keys = keys.into_iter().flatten();
    let keys = keys.map(|key| key.as_str().map_or_else(|| key.to_string(), str::to_owned));
    Ok(ServerOrder {
        name: required("name")?,
        server_type: required("server_type")?,
        image: required("image")?,
        location: text(&body, "location").unwrap_or_else(defaults::location),
        labels: labels(&body)?.unwrap_or_default(),
        starts: flag(&body, "start_after_create", true),
        addresses: addresses(body.get("public_net").unwrap_or(&Value::Null)),
        networks: numbers(&body, "networks"),
        volumes: numbers(&body, "volumes"),
        firewalls: firewalls.filter_map(|one| one["firewall"].as_u64()).collect(),
        placement_group: body.get("placement_group").and_then(Value::as_u64),
        ssh_keys: keys.collect(),
    })
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

/// The image that an order names, which must be complete.
fn image_of<'a>(account: &'a Account, named: &str) -> Result<&'a Image> {
    let number = named.parse().ok();
    let image = number.and_then(|number: u64| account.images.get(&number));
    let image = image.ok_or_else(|| invalid(format!("image \"{named}\" not found")))?;
    invalid("image is not available").when(image.status != ImageStatus::Available)?;
    Ok(image)
}

/// The type that an order asks for, if it is available in the location and the image fits it.
fn type_of<'a>(
    market: &'a Market,
    order: &ServerOrder,
    image: &Image,
    now: Timestamp,
) -> Result<&'a Value> {
    let asked = &order.server_type;
    let number = asked.parse().ok();
    let is_asked = |entry: &&Value| entry["name"] == **asked || entry["id"].as_u64() == number;
    let found = market.listed_types(now).find(is_asked);
    let found = found.ok_or_else(|| invalid(format!("Could not find server type '{asked}'")))?;
    let mut locations = catalog::entries(&found["locations"]);
    let here = locations.find(|location| location["name"] == *order.location);
    let here = here.ok_or_else(|| invalid("unsupported location for server type"))?;
    let ends = here["deprecation"]["unavailable_after"].as_str();
    let ends = ends.and_then(|end| end.parse::<Timestamp>().ok());
    invalid("unsupported location for server type").when(ends.is_some_and(|end| end <= now))?;
    invalid("image has another architecture than the server type")
        .when(found["architecture"] != *image.architecture())?;
    invalid("image disk is bigger than server type disk").when(image.of.disk > disk_of(found))?;
    Refusal::new(412, "resource_unavailable", "error during placement")
        .when(here["available"] != true)?;
    Ok(found)
}

/// Checks that a name is a valid host name and unique in its project (HZSPEC).
pub(crate) fn check_name(account: &Account, name: &str) -> Result<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    invalid("invalid server name")
        .when(name.is_empty() || name.len() > 63 || !name.chars().all(fits))?;
    Refusal::new(409, "uniqueness_error", "server name is already used")
        .when(account.servers.values().any(|server| server.name == name))?;
    Ok(())
}

/// Checks that everything to be attached exists and is free (HZSPEC).
fn check_attachments(account: &Account, order: &ServerOrder) -> Result<()> {
    let things = &account.things;
    for (family, id) in &order.addresses {
        let Some(id) = id else { continue };
        let ip = things.get(Kind::PrimaryIp, *id);
        check_address(ip.ok_or_else(|| invalid("primary IP not found"))?, *family, order)?;
    }
    invalid("a server without any network cannot be started")
        .when(order.addresses.is_empty() && order.networks.is_empty() && order.starts)?;
    for volume in &order.volumes {
        let volume = things.get(Kind::Volume, *volume);
        let volume = volume.ok_or_else(|| invalid("volume not found"))?;
        invalid("volume is attached, or in another location")
            .when(!volume.attached.is_empty() || volume.location != order.location)?;
    }
    let has_key = |named: &String| {
        let mut keys = things.of(Kind::SshKey);
        keys.any(|key| key.name == *named || key.id.to_string() == *named)
    };
    let known = |found: bool, what: &str| {
        let missing = || Err(invalid(format!("{what} not found")));
        if found { Ok(()) } else { missing() }
    };
    let has = |kind, id: u64| things.get(kind, id).is_some();
    known(order.firewalls.iter().all(|id| has(Kind::Firewall, *id)), "firewall")?;
    known(order.networks.iter().all(|id| has(Kind::Network, *id)), "network")?;
    known(order.ssh_keys.iter().all(has_key), "SSH key")?;
    let group = order.placement_group;
    known(group.is_none_or(|id| has(Kind::PlacementGroup, id)), "placement group")
}

fn check_address(ip: &Thing, family: Family, order: &ServerOrder) -> Result<()> {
    Refusal::new(412, "primary_ip_version_mismatch", "the primary IP has the wrong version")
        .when(Family::of(ip) != family)?;
    Refusal::new(422, "primary_ip_assigned", "the primary IP is already assigned")
        .when(!ip.attached.is_empty())?;
    Refusal::new(
        422,
        "primary_ip_datacenter_mismatch",
        "the primary IP is in a different location",
    )
    .when(ip.location != order.location)?;
    Ok(())
}

/// Gives a server the addresses of its order; for an order without any, it gets neither family.
fn attach_addresses(
    account: &mut Account,
    timeline: &mut Timeline,
    server: &mut Server,
    order: &ServerOrder,
) {
    (server.ipv4, server.ipv6) = (None, None);
    for (family, id) in &order.addresses {
        let id = match id {
            Some(id) => {
                if let Some(ip) = account.things.get_mut(Kind::PrimaryIp, *id) {
                    ip.attach(server.id);
                }
                *id
            }
            None => account.new_address(timeline, server, *family),
        };
        *server.address_mut(*family) = Some(id);
    }
}

/// Attaches what an order names. Firewalls are applied a little later, including those that select
/// the server by labels.
fn attach_ordered(
    account: &mut Account,
    timeline: &mut Timeline,
    server: &Server,
    order: &ServerOrder,
) {
    let things = &mut account.things;
    for network in &order.networks {
        if let Some(network) = things.get_mut(Kind::Network, *network)
            && let Some(ip) = network.free_address()
        {
            network.attached.insert(server.id, Attachment { ip, ..Attachment::default() });
        }
    }
    for (kind, ids) in [
        (Kind::Volume, &order.volumes),
        (Kind::Firewall, &order.firewalls),
        (Kind::PlacementGroup, &order.placement_group.into_iter().collect()),
    ] {
        for id in ids {
            things.get_mut(kind, *id).map(|thing| thing.attach(server.id));
        }
    }
    let applied = things.firewalls_of(server.id, &server.labels);
    let applied: Vec<_> = applied.map(Thing::number).collect();
    for firewall in applied {
        apply(account, timeline, firewall, server.id);
    }
}

pub(crate) fn apply(account: &mut Account, timeline: &mut Timeline, firewall: u64, server: u64) {
    let Some(found) = account.things.get_mut(Kind::Firewall, firewall) else {
        return;
    };
    found.pending.insert(server);
    let takes = found.applies;
    timeline.after(account.index, takes, move |account, _| {
        if let Some(firewall) = account.things.get_mut(Kind::Firewall, firewall) {
            firewall.pending.remove(&server);
        }
        account.server(server);
    });
}

/// Ends the creation of a server: it is off and starts if that was ordered, or it is gone because
/// there was no room for it.
fn end_creation(
    account: &mut Account,
    timeline: &mut Timeline,
    id: u64,
    action: u64,
    next: Option<u64>,
    fails: bool,
) {
    if fails {
        account.fail_action(action);
        count_failure(account, id);
        remove(account, timeline, id);
        return;
    }
    let Some(server) = account.servers.get_mut(&id) else {
        return;
    };
    server.status = ServerStatus::Off;
    if let Some(start) = next {
        server.set_status(ServerStatus::Starting);
        let takes = server.poweron;
        account.lock(id, Some(start));
        timeline.after(account.index, takes, move |account, timeline| {
            account.finish_action(timeline, start);
            account.lock(id, None);
            settle(account, timeline, id);
        });
    }
}

/// Leaves one failure fewer for the servers made from the same image.
fn count_failure(account: &mut Account, id: u64) {
    let image = account.servers.get(&id).and_then(|server| server.guest.made_from);
    if let Some(image) = image.and_then(|id| account.images.get_mut(&id)) {
        image.of.creation_failures = image.of.creation_failures.saturating_sub(1);
    }
}

pub(super) fn delete_server(call: &mut Call<'_>) -> Result<Answer> {
    let id = call.id();
    let server = call.account.server(id).ok_or_else(not_found)?;
    Refusal::new(423, "protected", "server deletion is protected")
        .when(server.has.contains(&Extra::Protection))?;
    server.check_unlocked()?;
    server.set_status(ServerStatus::Deleting);
    let takes = server.deletion;
    let Call { account, timeline, .. } = call;
    let action = account.begin_action(timeline, ("server", id), json!("delete_server"));
    timeline.after(account.index, takes, move |account, timeline| {
        account.finish_action(timeline, action);
        remove(account, timeline, id);
    });
    Ok(Answer::json(200, &json!({"action": action_json(call, action)?})))
}

/// Removes a server and stops billing it. Its backups and its addresses with `auto_delete` are
/// deleted. What else was attached to it is free, its addresses in networks a little later.
pub(crate) fn remove(account: &mut Account, timeline: &mut Timeline, id: u64) -> Option<()> {
    let server = account.servers.remove(&id)?;
    let now = timeline.now();
    account.ledger.end(&meter(id), now);
    let ips = account.things.attached_to(id, Kind::PrimaryIp);
    let deleted: Vec<_> = ips.filter(|ip| ip.auto_delete).map(Thing::number).collect();
    for ip in deleted {
        account.things.remove(Kind::PrimaryIp, ip);
        account.ledger.delete_part(&address_meter(ip, id), now);
    }
    account.images.retain(|_, image| image.kind != ImageKind::Backup || image.of.id != id);
    account.things.detach(id, |kind| kind != Kind::Network);
    timeline.after(account.index, server.release, move |account, _| {
        account.things.detach(id, |kind| kind == Kind::Network);
    });
    Some(())
}

/// The meter an address is billed under: a part of the server that it was created for.
fn address_meter(ip: u64, server: u64) -> Meter {
    (meter(server).0, ip)
}

impl Account {
    /// Gives a server an address of its own, which is deleted with it.
    pub(crate) fn new_address(
        &mut self,
        timeline: &mut Timeline,
        server: &Server,
        family: Family,
    ) -> u64 {
        let id = timeline.number();
        let mut address = Thing {
            id: id.into(),
            name: format!("primary_ip-{id}"),
            ip: public_address(id, family == Family::Ipv6),
            location: server.location.clone(),
            auto_delete: true,
            created: timeline.now(),
            ..Thing::default()
        };
        address.attach(server.id);
        if family == Family::Ipv4 {
            let life = Life::of(BilledItem::Address, server.created);
            self.ledger.open(address_meter(id, server.id), life);
        }
        self.things.add(Kind::PrimaryIp, address);
        id
    }
}
