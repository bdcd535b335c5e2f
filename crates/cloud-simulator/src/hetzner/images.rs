//! Images of servers: snapshots and backups.

use jiff::Timestamp;
use serde_json::json;

use super::{
    Result, action_json,
    body::{body, flag, invalid, labels, text},
    listed,
};
use crate::{
    account::{Account, Timeline},
    answer::{Answer, Refusal},
    images::{Image, ImageKind, ImageStatus, megabytes},
    labels::Labels,
    ledger::{BilledItem, Life, Meter},
    routes::Call,
    servers::{self, Extra, not_found},
};

/// An order for an image: the body of its request.
#[derive(Debug, Clone)]
pub(crate) struct ImageOrder {
    pub(crate) kind: ImageKind,
    pub(crate) description: String,
    pub(crate) labels: Labels,
}

pub(super) fn images(call: &mut Call<'_>) -> Result<Answer> {
    let images = call.account.images.values();
    listed(call, "images", images, |image| &image.labels, |image| image.to_json())
}

pub(super) fn image(call: &mut Call<'_>) -> Result<Answer> {
    let image = call.account.images.get(&call.id()).ok_or_else(not_found)?;
    Ok(Answer::json(200, &json!({"image": image.to_json()})))
}

pub(super) fn create_image(call: &mut Call<'_>) -> Result<Answer> {
    call.server()?;
    let body = body(call, "type description labels")?;
    let kind = match text(&body, "type").as_deref() {
        None | Some("snapshot") => ImageKind::Snapshot,
        Some("backup") => ImageKind::Backup,
        Some(_) => return Err(invalid("invalid image type")),
    };
    let order = ImageOrder {
        kind,
        description: text(&body, "description").unwrap_or_default(),
        labels: labels(&body)?.unwrap_or_default(),
    };
    let id = call.id();
    let (image, action) = begin(call.account, call.timeline, id, order)?;
    let image = &call.account.images[&image];
    let body = json!({
        "image": image.to_json(),
        "action": action_json(call, action)?,
    });
    Ok(Answer::json(201, &body))
}

/// Changes an image. A backup may become a snapshot, but never the other way around (HZSPEC).
pub(super) fn update_image(call: &mut Call<'_>) -> Result<Answer> {
    let body = body(call, "description type labels")?;
    let labels = labels(&body)?;
    let id = call.id();
    let image = call.account.images.get_mut(&id);
    let image = image.ok_or_else(not_found)?;
    match text(&body, "type").as_deref() {
        Some("snapshot") => image.kind = ImageKind::Snapshot,
        Some(_) => return Err(invalid("invalid image type")),
        None => {}
    }
    if let Some(description) = text(&body, "description") {
        image.description = description;
    }
    if let Some(labels) = labels {
        image.labels = labels;
    }
    let (of, shown) = (image.of.id, image.to_json());
    call.account.show_again(id, of);
    Ok(Answer::json(200, &json!({"image": shown})))
}

/// Deletes an image. The refusal while it is being created is an assumption.
pub(super) fn delete_image(call: &mut Call<'_>) -> Result<Answer> {
    let id = call.id();
    let image = call.account.images.get(&id).ok_or_else(not_found)?;
    Refusal::new(423, "protected", "image deletion is protected").when(image.protected)?;
    Refusal::new(409, "conflict", "image is still being created")
        .when(image.status == ImageStatus::Creating)?;
    forget(call.account, id, call.timeline.now());
    Ok(Answer::empty(204))
}

pub(super) fn protect_image(call: &mut Call<'_>) -> Result<Answer> {
    let body = body(call, "delete")?;
    let id = call.id();
    let image = call.account.images.get_mut(&id);
    let image = image.ok_or_else(not_found)?;
    invalid("only snapshots can be protected")
        .when(image.kind != ImageKind::Snapshot || image.status == ImageStatus::Unavailable)?;
    image.protected = flag(&body, "delete", image.protected);
    let of = image.of.id;
    call.account.show_again(id, of);
    call.act_at_once(("image", id), "change_protection")
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
) -> Result<(u64, u64)> {
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
        end(account, timeline, server, action, id);
    });
    Ok((id, action))
}

/// Ends the creation of an image: it is complete, or it has failed.
fn end(account: &mut Account, timeline: &Timeline, server: u64, action: u64, image: u64) {
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
