//! What a read finds: items that can be read, and items that cannot.

use domain::{AccountName, ResourceRef, hibernation::Hibernation, record::Phase};
use jiff::Timestamp;
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    StoreError,
    item::{self, Item},
};

/// An item that this program cannot read, usually because a newer one wrote it. It is left alone.
#[derive(Debug, thiserror::Error)]
#[error("cannot read what is stored of {reference}")]
pub struct Unreadable {
    /// The resource whose record it is, or the account whose state it is, by the item's key.
    pub reference: String,
    /// Why it cannot be read.
    #[source]
    pub source: StoreError,
}

/// What one read found: the items that this program can read and, separately, those that it has to
/// leave alone.
#[derive(Debug, Default)]
pub struct ReadItems<T> {
    pub read: T,
    /// What could not be read, and why.
    pub unreadable: Vec<Unreadable>,
}

impl Unreadable {
    pub(crate) fn account(&self) -> Option<AccountName> {
        self.reference.parse().ok()
    }
}

/// What a record says of whether its account handles the resource, and under which id it is listed.
#[derive(Debug, Deserialize)]
pub struct Coverage {
    pub reference: ResourceRef,
    #[serde(default)]
    pub region: String,
    pub phase: Phase,
    pub unsupported: Option<String>,
    pub missing_since: Option<Timestamp>,
    pub hibernation: Option<Box<Hibernation>>,
}

impl Coverage {
    /// The attributes that are read of a record. Most of these names are words of DynamoDB's own.
    pub(crate) const ATTRIBUTES: &str =
        "resource format reference region phase unsupported missing_since hibernation";
}

impl<T: DeserializeOwned> ReadItems<Vec<T>> {
    pub(crate) fn add(&mut self, item: Item) {
        let part = |name: &str| {
            let text = item.get(name).and_then(|value| value.as_s().ok());
            text.cloned().unwrap_or_default()
        };
        let reference = format!("{}/{}", part("account"), part("resource"));
        match item::parse(item) {
            Ok(record) => self.read.push(record),
            Err(source) => self.unreadable.push(Unreadable { reference, source }),
        }
    }
}
