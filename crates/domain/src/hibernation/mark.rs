//! The marks by which everything that we create is found again.

use std::{
    collections::BTreeSet,
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    reference::{ResourceId, ResourceRef},
    writer::{Revision, Writer},
};

/// The label on everything we create: the mark of the request that created it.
pub const MARK_LABEL: &str = "offhours-mark";

/// The label on everything we create: the resource that it is, or is a copy of, by its first id.
pub const OF_LABEL: &str = "offhours-of";

/// A unique id of one thing that we request: written before its request leaves, and never reused.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Mark(pub String);

impl Mark {
    /// Returns the mark of the request that a write permits. Of all writers of one revision only
    /// one succeeds, so no two requests share a mark. The writer and the instant are included
    /// because the revisions of a forgotten record start over.
    #[must_use]
    pub fn of(
        reference: &ResourceRef,
        revision: Revision,
        writer: &Writer,
        now: Timestamp,
    ) -> Self {
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, reference, revision, writer, now).hash(&mut hasher);
            let mut rest = hasher.finish();
            std::iter::repeat_with(move || {
                let digit = u32::try_from(rest % 36).unwrap_or_default();
                rest /= 36;
                char::from_digit(digit, 36).unwrap_or_default()
            })
            .take(8)
        };
        Self(half(1).chain(half(2)).collect())
    }

    /// Returns the mark that tags, or labels as `key=value`, carry.
    #[must_use]
    pub fn in_tags(tags: &BTreeSet<String>) -> Option<Self> {
        let mut pairs = tags.iter().filter_map(|tag| tag.split_once(['=', ':']));
        let mark = pairs.find(|(key, _)| *key == MARK_LABEL);
        mark.map(|(_, mark)| Self(mark.to_owned()))
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Reports whether a tag, or a label as `key=value`, is one that we set on what we create.
#[must_use]
pub fn is_own_label(tag: &str) -> bool {
    let key = tag.split_once(['=', ':']).map_or(tag, |(key, _)| key);
    key == OF_LABEL || key == MARK_LABEL
}

/// Returns the value of [`OF_LABEL`] for a resource: `server.42`, because a label's value may not
/// contain `/`.
#[must_use]
pub fn of_label(id: &ResourceId) -> String {
    id.to_string().replace('/', ".")
}

/// Returns the resource that a value of [`OF_LABEL`] names.
#[must_use]
pub fn of_labeled(value: &str) -> Option<ResourceId> {
    value.replacen('.', "/", 1).parse().ok()
}
