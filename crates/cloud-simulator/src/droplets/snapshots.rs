//! Snapshots of Droplets.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::Droplet;
use crate::{
    answer::Refusal,
    images::Snapshot,
    ledger::{BilledItem, Life, Meter},
    world::{Account, Timeline},
};

/// Longer than any simulation.
const NEVER: SignedDuration = SignedDuration::from_hours(100 * 365 * 24);

/// Completes a snapshot's action: the snapshot appears a little later. Or the action fails without
/// a reason (DOSPEC has none).
pub(super) fn end(
    account: &mut Account,
    timeline: &mut Timeline,
    action: u64,
    name: Option<String>,
) {
    let droplet = account.actions.get(&action).map(|action| action.on.1);
    let Some(droplet) = droplet.and_then(|id| Droplet::of(&mut account.droplets, id)) else {
        return;
    };
    if droplet.snapshot_failures > 0 {
        droplet.snapshot_failures -= 1;
        account.fail_action(timeline, action);
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
        contents: droplet.contents.clone(),
        of: droplet.clone(),
    };
    if droplet.powered {
        // The guest keeps writing.
        droplet.write();
    }
    let of = droplet.id;
    let megabytes = megabytes(snapshot.size_gb);
    let life = Life::of(BilledItem::Image { megabytes }, now);
    account.ledger.open(meter(&snapshot), life.added_later());
    account.snapshots.insert(id, snapshot);
    timeline.after(account.index, lag, move |account, _| {
        Droplet::of(&mut account.droplets, of);
    });
}

/// Deletes a snapshot; nothing can protect it.
pub(crate) fn delete(account: &mut Account, id: u64, now: Timestamp) -> Result<(), Refusal> {
    let snapshot = account.snapshots.remove(&id);
    let snapshot = snapshot.ok_or_else(Refusal::not_found)?;
    account.ledger.end(&meter(&snapshot), now);
    account.droplets.values_mut().for_each(Droplet::invalidate_cache);
    Ok(())
}

/// The meter a snapshot is billed under: a part of the Droplet that it was made from.
fn meter(snapshot: &Snapshot) -> Meter {
    (super::meter(snapshot.of.id).0, snapshot.id)
}

/// The MB that a size in GB is billed as.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a snapshot has some gigabytes"
)]
pub(crate) fn megabytes(gigabytes: f64) -> u64 {
    (gigabytes * 1000.0).round() as u64
}
