//! Snapshots of Droplets.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Result, ok, page};
use crate::{
    account::{Account, Timeline},
    answer::{Answer, Refusal},
    catalog, droplets,
    images::{Snapshot, megabytes},
    ledger::{BilledItem, Life, Meter},
    routes::Call,
};

/// Longer than any simulation.
const NEVER: SignedDuration = SignedDuration::from_hours(100 * 365 * 24);

/// Completes a snapshot's action: the snapshot appears a little later. Or the action fails without
/// a reason (DOSPEC has none).
pub(super) fn end(
    account: &mut Account,
    timeline: &mut Timeline,
    of: u64,
    action: u64,
    name: Option<String>,
) {
    let Some(droplet) = account.droplet(of) else {
        return;
    };
    if droplet.snapshot_failures > 0 {
        droplet.snapshot_failures -= 1;
        account.fail_action(action);
        return;
    }
    let (now, mut lag) = (timeline.now(), droplet.snapshot_lag);
    if droplet.snapshots_unlisted > 0 {
        droplet.snapshots_unlisted -= 1;
        lag = NEVER;
    }
    let id = timeline.number();
    let snapshot = Snapshot {
        id,
        name: name.unwrap_or_else(|| format!("{}-{id}", droplet.name)),
        created: now,
        listed: now + lag,
        shown_as: None,
        size_gb: droplet.snapshot_gb,
        tags: BTreeSet::new(),
        contents: droplet.guest.contents.clone(),
        of: droplet.clone(),
    };
    if droplet.guest.powered {
        // The guest keeps writing.
        droplet.guest.write();
    }
    let megabytes = megabytes(snapshot.size_gb);
    let life = Life::of(BilledItem::Image { megabytes }, now);
    account.ledger.open(meter(&snapshot), life.added_later());
    account.snapshots.insert(id, snapshot);
    timeline.after(account.index, lag, move |account, _| {
        account.droplet(of);
    });
}

/// Deletes a snapshot; nothing can protect it.
pub(crate) fn delete(account: &mut Account, id: u64, now: Timestamp) -> Result<()> {
    let snapshot = account.snapshots.remove(&id);
    let snapshot = snapshot.ok_or_else(Refusal::not_found)?;
    account.ledger.end(&meter(&snapshot), now);
    account.show_again(id, snapshot.of.id);
    Ok(())
}

/// The meter a snapshot is billed under: a part of the Droplet that it was made from.
fn meter(snapshot: &Snapshot) -> Meter {
    (droplets::meter(snapshot.of.id).0, snapshot.id)
}

impl Call<'_> {
    fn snapshot(&self) -> Result<&Snapshot> {
        let mut listed = self.account.listed_snapshots(self.timeline.now());
        let snapshot = listed.find(|snapshot| snapshot.id == self.ids.numbers[0]);
        snapshot.ok_or_else(Refusal::not_found)
    }
}

pub(super) fn droplet_snapshots(call: &mut Call<'_>) -> Result<Answer> {
    let id = call.droplet()?.id;
    let listed = call.account.listed_snapshots(call.timeline.now());
    let own = listed.filter(|snapshot| snapshot.of.id == id).collect();
    page(call, "snapshots", own, Snapshot::of_droplet_json)
}

pub(super) fn snapshots(call: &mut Call<'_>) -> Result<Answer> {
    let kind = call.incoming.request.parameter("resource_type");
    let wanted = kind.is_none_or(|kind| kind == "droplet");
    let listed = call.account.listed_snapshots(call.timeline.now());
    page(call, "snapshots", listed.filter(|_| wanted).collect(), Snapshot::to_json)
}

pub(super) fn snapshot(call: &mut Call<'_>) -> Result<Answer> {
    ok(&json!({"snapshot": call.snapshot()?.to_json()}))
}

pub(super) fn delete_snapshot(call: &mut Call<'_>) -> Result<Answer> {
    let id = call.snapshot()?.id;
    delete(call.account, id, call.timeline.now())?;
    Ok(Answer::empty(204))
}

/// Lists the private images and, unless the query excludes it, the public one of the catalog.
pub(super) fn images(call: &mut Call<'_>) -> Result<Answer> {
    let listed = call.account.listed_snapshots(call.timeline.now());
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
    if let Some(snapshot) = call.account.snapshots.get_mut(&id)
        && let Some(name) = body["name"].as_str()
    {
        name.clone_into(&mut snapshot.name);
        let of = snapshot.of.id;
        call.account.show_again(id, of);
    }
    image(call)
}
