//! Images of servers: snapshots and backups.

use jiff::Timestamp;
use serde_json::json;

use crate::{
    account::{Account, Timeline},
    answer::Refusal,
    images::{Image, ImageKind, ImageStatus, megabytes},
    labels::Labels,
    ledger::{BilledItem, Life, Meter},
    servers::{self, Extra, not_found},
};

/// An order for an image: the body of its request.
#[derive(Debug, Clone)]
pub(crate) struct ImageOrder {
    pub(crate) kind: ImageKind,
    pub(crate) description: String,
    pub(crate) labels: Labels,
}

/// Begins to create an image of a server; returns its id and its action's.
///
/// A running server can be imaged as well, but the image may be torn. Locking the server meanwhile
/// is an assumption.
pub(crate) fn begin(
    account: &mut Account,
    timeline: &mut Timeline,
    server: u64,
    order: ImageOrder,
) -> Result<(u64, u64), Refusal> {
    let of = account.server(server).ok_or_else(not_found)?;
    of.check_unlocked()?;
    Refusal::new(422, "invalid_input", "backups are not enabled for this server")
        .when(order.kind == ImageKind::Backup && !of.has.contains(&Extra::Backups))?;
    let id = timeline.number();
    let image = Image {
        id,
        kind: order.kind,
        status: ImageStatus::Creating,
        shown_as: None,
        description: order.description,
        labels: order.labels,
        protected: false,
        created: timeline.now(),
        size_gb: of.snapshot_gb,
        of: of.clone(),
        contents: of.guest.contents.clone(),
    };
    if !of.is_off() {
        // The guest keeps writing.
        of.guest.write();
    }
    let takes = of.snapshot;
    account.images.insert(id, image);
    let (on, kind) = (("server", server), json!("create_image"));
    let action = account.run_action(timeline, on, kind, takes, move |account, timeline, action| {
        end(account, timeline, (server, action), id);
    });
    Ok((id, action))
}

/// Ends the creation of an image: it is complete, or it has failed.
fn end(account: &mut Account, timeline: &Timeline, (server, action): (u64, u64), image: u64) {
    let mut fails = false;
    if let Some(server) = account.servers.get_mut(&server) {
        fails = server.snapshot_failures > 0;
        server.snapshot_failures = server.snapshot_failures.saturating_sub(1);
    }
    if fails {
        account.fail_action(action);
    }
    let Some(image) = account.images.get_mut(&image) else {
        return;
    };
    if fails {
        image.status = ImageStatus::Unavailable;
        return;
    }
    image.status = ImageStatus::Available;
    let (meter, megabytes) = (meter(image), megabytes(image.size_gb));
    let life = Life::of(BilledItem::Image { megabytes }, timeline.now());
    account.ledger.open(meter, life.added_later());
}

/// Deletes an image. The refusal while it is being created is an assumption.
pub(crate) fn delete(account: &mut Account, id: u64, now: Timestamp) -> Result<(), Refusal> {
    let image = account.images.get(&id).ok_or_else(not_found)?;
    Refusal::new(423, "protected", "image deletion is protected").when(image.protected)?;
    Refusal::new(409, "conflict", "image is still being created")
        .when(image.status == ImageStatus::Creating)?;
    forget(account, id, now);
    Ok(())
}

/// Removes an image: servers no longer show it, and it is no longer billed. Returns whether it was
/// there.
pub(crate) fn forget(account: &mut Account, id: u64, now: Timestamp) -> bool {
    let Some(image) = account.images.remove(&id) else {
        return false;
    };
    account.ledger.end(&meter(&image), now);
    account.show_again(id, image.of.id);
    true
}

/// The meter an image is billed under: a part of the server that it was made from.
fn meter(image: &Image) -> Meter {
    (servers::meter(image.of.id).0, image.id)
}
