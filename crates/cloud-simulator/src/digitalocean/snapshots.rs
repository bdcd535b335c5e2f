//! Snapshots of Droplets.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::{
    account::{Account, Timeline},
    answer::Refusal,
    droplets,
    images::{Snapshot, megabytes},
    ledger::{BilledItem, Life, Meter},
};

/// Longer than any simulation.
const NEVER: SignedDuration = SignedDuration::from_hours(100 * 365 * 24);

/// Completes a snapshot's action: the snapshot appears a little later. Or the action fails without
/// a reason (DOSPEC has none).
pub(super) fn end(
    account: &mut Account,
    timeline: &mut Timeline,
    (of, action): (u64, u64),
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
pub(crate) fn delete(account: &mut Account, id: u64, now: Timestamp) -> Result<(), Refusal> {
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
