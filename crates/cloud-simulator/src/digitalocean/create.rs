//! Creating and deleting Droplets.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Result, things::has_vpc};
use crate::{
    account::{Account, Timeline},
    answer::{Answer, Refusal},
    droplets::{Droplet, DropletStatus, Extra, ImageType, disk_of, meter},
    guest::Guest,
    images::Snapshot,
    ledger::{BilledItem, Life},
    market::is_sold_in,
    routes::Call,
    things::{Id, Kind, Thing},
};

/// How long it takes to find that there is no room for an accepted Droplet.
const PLACEMENT: SignedDuration = SignedDuration::from_secs(10);

/// An order for a new Droplet: the body of its request. Creating several at once, by `names`, is
/// not simulated.
#[derive(Debug, Clone, Deserialize)]
struct DropletOrder {
    name: String,
    #[serde(default = "crate::defaults::region")]
    region: String,
    size: String,
    /// A snapshot's id, or the slug of a public image.
    image: Value,
    #[serde(default)]
    ssh_keys: Vec<Value>,
    #[serde(default)]
    backups: bool,
    #[serde(default)]
    ipv6: bool,
    #[serde(default)]
    monitoring: bool,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    volumes: Vec<String>,
    vpc_uuid: Option<String>,
    backup_policy: Option<Value>,
}

pub(super) fn create_droplet(call: &mut Call<'_>) -> Result<Answer> {
    let order: DropletOrder = call.body()?;
    let Call { account, timeline, .. } = call;
    let now = timeline.now();
    check(account, &order)?;
    let snapshot = snapshot_of(account, &order, now)?;
    let image = snapshot.map(|snapshot| (snapshot.id, snapshot.contents.clone()));
    let of = snapshot.map(|snapshot| snapshot.of.clone());
    let id = timeline.number();
    let (template, guest) = match of.zip(image) {
        Some((of, (image, contents))) => {
            let guest = of.guest.copy(id, image, &contents, of.copies_break);
            (Droplet { image_type: ImageType::Snapshot, ..of }, guest)
        }
        None => (Droplet::named(id, &order.name), Guest::with_disk(id, "debian")),
    };
    let has = [
        (order.backups, Extra::Backups),
        (order.ipv6, Extra::Ipv6),
        (order.monitoring, Extra::Monitoring),
    ];
    let has = has.into_iter().filter(|(wanted, _)| *wanted);
    let droplet = Droplet {
        id,
        name: order.name,
        tags: order.tags,
        vpc: order.vpc_uuid,
        backup_policy: order.backup_policy,
        disk: disk_of(&order.size),
        size: order.size,
        region: order.region,
        status: DropletStatus::New,
        autoscale_pool: None,
        guest,
        created: now,
        has: has.map(|(_, extra)| extra).collect::<BTreeSet<_>>(),
        ..template
    };
    for volume in &order.volumes {
        account.things.get_mut(Kind::Volume, &**volume).map(|volume| volume.attach(id));
    }
    account.things.place_in_projects([&id].into_iter());
    let life = Life::of_size(now, &droplet.size);
    account.ledger.open(meter(id), life.added_later());
    let fails = droplet.creation_failures > 0;
    let takes = if fails { PLACEMENT } else { droplet.creation };
    account.droplets.insert(id, droplet);
    let on = ("droplet", id);
    let action = account.run_action(
        timeline,
        on,
        json!("create"),
        takes,
        move |account, timeline, action| {
            end(account, timeline, id, action, fails);
        },
    );
    let droplet = call.droplet_json(&call.account.droplets[&id]);
    let href = format!("{}/v2/actions/{action}", call.incoming.origin);
    let links = json!({"actions": [{"id": action, "rel": "create", "href": href}]});
    Ok(Answer::json(202, &json!({"droplet": droplet, "links": links})))
}

/// Refuses an invalid order. The messages for a limit, a size and an image are as quoted by users;
/// the others are assumptions.
fn check(account: &Account, order: &DropletOrder) -> Result<()> {
    let refusal = |message: &str| Refusal::unprocessable(message);
    let limit = account.login.server_limit;
    refusal("creating this/these droplet(s) will exceed your droplet limit")
        .when(limit.is_some_and(|limit| account.droplets.len() >= limit))?;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    refusal("Only valid hostname characters are allowed. (a-z, A-Z, 0-9, . and -)")
        .when(order.name.is_empty() || order.name.len() > 255 || !order.name.chars().all(fits))?;
    // Assumption: an invalid tag is refused here just as it is when tags are created.
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':');
    let is_tag = |tag: &String| (1..=255).contains(&tag.len()) && tag.chars().all(fits);
    refusal("tag name is invalid").when(!order.tags.iter().all(is_tag))?;
    let market = &account.market;
    let Some(size) = market.droplet_size(&order.size) else {
        return Err(refusal("You specified an invalid size for Droplet creation."));
    };
    refusal("Region is not available").when(market.region(&order.region).is_none())?;
    refusal("Size is not available in this region.").when(!is_sold_in(size, &order.region))?;
    let has_key = |named: &Value| {
        let mut keys = account.things.of(Kind::SshKey);
        keys.any(|key| *named == key.number() || *named == *key.fingerprint())
    };
    refusal("You specified an invalid SSH key for Droplet creation.")
        .when(!order.ssh_keys.iter().all(has_key))?;
    let vpc = order.vpc_uuid.as_ref();
    // Where a VPC's name was given for its id (python-digitalocean #264).
    Refusal::not_found().when(vpc.is_some_and(|id| !has_vpc(account, id)))?;
    for volume in &order.volumes {
        let volume = account.things.get(Kind::Volume, &**volume);
        let is_free = |one: &Thing| one.attached.is_empty() && one.location == order.region;
        refusal("volume is attached, in another region, or not found")
            .when(!volume.is_some_and(is_free))?;
    }
    Ok(())
}

/// The snapshot that an order names; `None` for the public image.
fn snapshot_of<'a>(
    account: &'a Account,
    order: &DropletOrder,
    now: Timestamp,
) -> Result<Option<&'a Snapshot>> {
    let invalid = || Refusal::unprocessable("You specified an invalid image for Droplet creation.");
    let Some(number) = order.image.as_u64() else {
        let is_public = order.image == "debian-12-x64";
        return if is_public { Ok(None) } else { Err(invalid()) };
    };
    let mut listed = account.listed_snapshots(now);
    let snapshot = listed.find(|snapshot| snapshot.id == number);
    let snapshot =
        snapshot.filter(|snapshot| snapshot.of.region == order.region).ok_or_else(invalid)?;
    Refusal::unprocessable("The image you specified requires a larger disk than this size has.")
        .when(snapshot.of.disk > disk_of(&order.size))?;
    Ok(Some(snapshot))
}

/// Ends the creation of a Droplet: it is on, or it is gone because there was no room for it.
fn end(account: &mut Account, timeline: &mut Timeline, id: u64, action: u64, fails: bool) {
    if fails {
        account.fail_action(action);
        let snapshot = account.droplets.get(&id).and_then(|droplet| droplet.guest.made_from);
        if let Some(snapshot) = snapshot.and_then(|id| account.snapshots.get_mut(&id)) {
            // One failure fewer is left for the Droplets made from it.
            let left = snapshot.of.creation_failures;
            snapshot.of.creation_failures = left.saturating_sub(1);
        }
        remove(account, timeline, id);
    } else if let Some(droplet) = account.droplets.get_mut(&id) {
        droplet.set_status(DropletStatus::Active);
        account.boot(timeline, id);
    }
}

/// Deletes a Droplet, which is still shown for a moment. The refusal during a pending event is an
/// assumption.
pub(super) fn delete_droplet(call: &mut Call<'_>) -> Result<Answer> {
    let droplet = call.droplet()?;
    Refusal::unprocessable("Droplet already has a pending event.")
        .when(droplet.guest.action.is_some())?;
    let (id, takes) = (droplet.id, droplet.deletion);
    let on = ("droplet", id);
    let Call { account, timeline, .. } = call;
    account.run_action(timeline, on, json!("destroy"), takes, move |account, timeline, _| {
        remove(account, timeline, id);
    });
    Ok(Answer::empty(204))
}

/// Removes a Droplet and stops billing it; its snapshots, volumes and reserved addresses stay.
pub(crate) fn remove(account: &mut Account, timeline: &Timeline, id: u64) -> Option<()> {
    account.droplets.remove(&id)?;
    let now = timeline.now();
    account.ledger.end(&meter(id), now);
    account.detach_all(id, now);
    Some(())
}

impl Account {
    /// Detaches everything but alert policies from a deleted Droplet. Its reserved addresses are
    /// billed from now on.
    pub(crate) fn detach_all(&mut self, droplet: u64, now: Timestamp) {
        for kind in [Kind::ReservedIp, Kind::ReservedIpv6] {
            let ips = self.things.attached_to(droplet, kind);
            let ips: Vec<_> = ips.map(|ip| ip.id.clone()).collect();
            for ip in ips {
                self.assign(kind, &ip, None, now);
            }
        }
        self.things.detach(droplet, |kind| kind != Kind::Alert);
    }

    /// Assigns or unassigns a reserved address. Only an IPv4 address that is not assigned is
    /// billed.
    pub(crate) fn assign(&mut self, kind: Kind, ip: &Id, droplet: Option<u64>, now: Timestamp) {
        let number = self.things.of(kind).position(|own| own.id == *ip);
        let Some(reserved) = self.things.get_mut(kind, ip.clone()) else {
            return;
        };
        if let Some(meter) = reserved.meter.take() {
            self.ledger.end(&meter, now);
        }
        let before = reserved.machine();
        reserved.attached.clear();
        droplet.map(|droplet| reserved.attach(droplet));
        if let (None, Some(before), Kind::ReservedIp) = (droplet, before, kind) {
            let part = 1 + number.unwrap_or_default();
            let meter = (meter(before).0, u64::try_from(part).unwrap_or(1));
            let life = Life::of(BilledItem::Address, now).added_later();
            self.ledger.open(meter.clone(), life);
            reserved.meter = Some(meter);
        }
        for id in before.into_iter().chain(droplet) {
            self.droplet(id);
        }
    }
}
