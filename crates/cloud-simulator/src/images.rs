//! What is stored of machines' disks: images of servers, and snapshots of Droplets.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use crate::{answer::timestamp, catalog, droplets::Droplet, labels::Labels, servers::Server};

/// An image: a snapshot or a backup of a server.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Image {
    pub(crate) id: u64,
    pub(crate) kind: ImageKind,
    pub(crate) status: ImageStatus,
    /// The word that responses have for its status, if not that of the status itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shown_as: Option<String>,
    pub(crate) description: String,
    pub(crate) labels: Labels,
    pub(crate) protected: bool,
    pub(crate) created: Timestamp,
    /// The storage that it takes at the provider, in GB, once it is complete.
    pub(crate) size_gb: f64,
    /// The server that it was made from, as it was then. Servers created from the image behave like
    /// it.
    #[serde(serialize_with = "server_id")]
    pub(crate) of: Server,
    /// The contents of its disk, as in [`Server::contents`].
    pub(crate) contents: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ImageKind {
    Snapshot,
    /// Deleted with its server.
    Backup,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ImageStatus {
    Creating,
    Available,
    /// Its creation failed.
    Unavailable,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Snapshot {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) created: Timestamp,
    /// When lists and responses begin to show it: some time after its action reports that it is
    /// complete (`do-snapshot`, Gamocosm #113).
    pub(crate) listed: Timestamp,
    /// The word that responses have for its status as an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shown_as: Option<String>,
    pub(crate) size_gb: f64,
    pub(crate) tags: BTreeSet<String>,
    /// The Droplet that it was made from, as it was then. Droplets created from the snapshot behave
    /// like it.
    #[serde(serialize_with = "droplet_id")]
    pub(crate) of: Droplet,
    /// The contents of its disk, as in [`Droplet::contents`].
    pub(crate) contents: String,
}

fn server_id<S: Serializer>(server: &Server, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(server.id)
}

fn droplet_id<S: Serializer>(droplet: &Droplet, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(droplet.id)
}

impl Image {
    /// The image as the API shows it.
    pub(crate) fn to_json(&self) -> Value {
        let is_backup = self.kind == ImageKind::Backup;
        let is_complete = self.status == ImageStatus::Available;
        let fields = json!({
            "id": self.id,
            "type": self.kind,
            "status": self.shown_as.as_ref().map_or(json!(self.status), |word| json!(word)),
            "description": self.description,
            "image_size": is_complete.then_some(self.size_gb),
            "disk_size": self.of.disk,
            "created": timestamp(self.created),
            "created_from": {"id": self.of.id, "name": self.of.name},
            "bound_to": is_backup.then_some(self.of.id),
            "protection": {"delete": self.protected},
            "labels": self.labels,
            "architecture": self.architecture(),
        });
        catalog::with(&catalog::IMAGE, fields)
    }

    pub(crate) fn architecture(&self) -> &'static Value {
        let entry = catalog::entry(&catalog::SERVER_TYPES, "name", &self.of.server_type);
        entry.map_or(&Value::Null, |entry| &entry["architecture"])
    }
}

impl Snapshot {
    /// The snapshot as the list of a Droplet's snapshots shows it, with its id as a number.
    pub(crate) fn of_droplet_json(&self) -> Value {
        catalog::with(&self.common(), json!({"id": self.id, "type": "snapshot"}))
    }

    /// The snapshot as the list of all snapshots shows it, with its id as text.
    pub(crate) fn to_json(&self) -> Value {
        let fields = json!({
            "id": self.id.to_string(),
            "resource_id": self.of.id.to_string(),
            "resource_type": "droplet",
            "tags": self.tags,
        });
        catalog::with(&self.common(), fields)
    }

    fn common(&self) -> Value {
        json!({
            "name": self.name,
            "created_at": timestamp(self.created),
            "regions": [self.of.region],
            "min_disk_size": self.of.disk,
            "size_gigabytes": self.size_gb,
        })
    }

    pub(crate) fn image_json(&self) -> Value {
        let fields = json!({
            "id": self.id,
            "type": "snapshot",
            "distribution": "Debian",
            "slug": null,
            "public": false,
            "description": "",
            "tags": self.tags,
            "status": self.shown_as.as_deref().unwrap_or("available"),
            "error_message": "",
        });
        catalog::with(&self.common(), fields)
    }
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
