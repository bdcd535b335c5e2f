//! What is requested to hibernate or wake a machine.

use serde::{Deserialize, Serialize};

use super::{Attachment, Manifest, Mark};
use crate::reference::ResourceId;

/// One of the requests that hibernate or wake a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hibernate {
    /// Keeps a public address from being deleted with the machine.
    KeepAddress {
        /// The cloud's id for the address.
        address: String,
    },
    /// Creates a snapshot of the machine.
    Snapshot(Label),
    /// Turns a snapshot's protection from deletion on or off.
    Protect {
        /// The snapshot.
        snapshot: u64,
        /// Whether to protect it.
        on: bool,
    },
    /// Deletes the machine.
    Delete,
    /// Creates a machine from a snapshot, powered off where its cloud supports that.
    Create {
        /// The label to give the machine.
        label: Label,
        /// The snapshot.
        snapshot: u64,
        /// The machine to create.
        manifest: Box<Manifest>,
    },
    /// Restores one attachment of a recreated machine.
    Attach(Attachment),
    /// Deletes a snapshot.
    DeleteSnapshot {
        /// The snapshot.
        snapshot: u64,
    },
}

/// The label by which a machine or snapshot that Offhours creates is found again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The resource that it is, or is a copy of, by its original id.
    pub of: ResourceId,
    /// The mark of the request.
    pub mark: Mark,
}
