//! The billing history: since when each resource is billed, and at which size.

use std::collections::BTreeMap;

use domain::ResourceId;
use jiff::Timestamp;

/// Everything that was ever billed in an account. Only changes are recorded; the bill is computed
/// from them on demand.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    /// By resource and billed part, such as a node of a pool. An id may have several lives.
    lives: BTreeMap<Meter, Vec<Life>>,
}

/// A resource, and the id of the part of it that is billed: a pool's node, an image of it, or its
/// address; 0 for the resource itself.
pub(crate) type Meter = (ResourceId, u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BilledItem {
    /// A resource or a node, by its size.
    Size,
    /// A public IPv4 address.
    Address,
    /// A complete image, by the storage that it takes at the provider.
    Image {
        /// The storage in MB.
        megabytes: u64,
    },
}

/// What was billed under one id, from its creation to its end.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    pub(crate) billed: BilledItem,
    /// Each size that it has had, with the instant from which it applies.
    sizes: Vec<(Timestamp, String)>,
    pub(crate) location: Option<String>,
    /// Whether it existed when its resource was first seen, unlike a node that a pool adds later.
    existed_initially: bool,
    /// When billing ended; `None` while it is billed.
    ended: Option<Timestamp>,
    /// When its resource was deleted, whether or not it was billed until then.
    deleted: Option<Timestamp>,
}

/// A time range at one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsageInterval<'a> {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
    pub(crate) size: &'a str,
}

/// Which of two histories is billed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum History {
    /// What actually happened.
    Real,
    /// As if every resource had kept the size at which it was first seen, until it was deleted.
    LeftRunning,
}

impl Life {
    pub(crate) fn of_size(created: Timestamp, size: &str) -> Self {
        Self {
            billed: BilledItem::Size,
            sizes: vec![(created, size.to_owned())],
            location: None,
            existed_initially: true,
            ended: None,
            deleted: None,
        }
    }

    /// The life of something that is not billed by size.
    pub(crate) fn of(billed: BilledItem, created: Timestamp) -> Self {
        Self { billed, ..Self::of_size(created, "") }
    }

    pub(crate) fn in_location(self, location: &str) -> Self {
        Self { location: Some(location.to_owned()), ..self }
    }

    /// The same life, created after its resource was first seen.
    pub(crate) fn added_later(self) -> Self {
        Self { existed_initially: false, ..self }
    }

    /// The intervals that are billed until an instant, oldest first. Each one begins when its size
    /// took effect.
    pub(crate) fn usage_intervals(
        &self,
        history: History,
        until: Timestamp,
    ) -> Vec<UsageInterval<'_>> {
        let (sizes, end) = match history {
            History::Real => (&self.sizes[..], self.ended),
            History::LeftRunning if self.existed_initially => (&self.sizes[..1], self.deleted),
            History::LeftRunning => (&[][..], None),
        };
        let end = end.unwrap_or(until).min(until);
        let nexts = sizes.iter().skip(1).map(|(at, _)| *at).chain([end]);
        let mut intervals = Vec::with_capacity(sizes.len());
        for ((from, size), next) in sizes.iter().zip(nexts) {
            let (from, to) = (*from, next.min(end));
            if from < to {
                intervals.push(UsageInterval { from, to, size });
            }
        }
        intervals
    }

    pub(crate) fn end(&self, history: History) -> Option<Timestamp> {
        match history {
            History::Real => self.ended,
            History::LeftRunning => self.deleted,
        }
    }
}

impl Ledger {
    /// Starts to bill something from its creation.
    pub(crate) fn open(&mut self, meter: Meter, life: Life) {
        self.lives.entry(meter).or_default().push(life);
    }

    pub(crate) fn change(&mut self, meter: &Meter, at: Timestamp, size: &str) {
        if let Some(life) = self.lives.get_mut(meter).and_then(|lives| lives.last_mut()) {
            life.sizes.push((at, size.to_owned()));
        }
    }

    /// Stops billing it without recording its resource as deleted.
    pub(crate) fn end(&mut self, meter: &Meter, at: Timestamp) {
        if let Some(life) = self.lives.get_mut(meter).and_then(|lives| lives.last_mut()) {
            life.ended.get_or_insert(at);
        }
    }

    /// Records that a resource was deleted, in both histories. Its images and addresses are still
    /// there.
    pub(crate) fn delete(&mut self, resource: &ResourceId, at: Timestamp) {
        let of_resource = self.lives.iter_mut().filter(|((id, _), _)| id == resource);
        let lives = of_resource.flat_map(|(_, lives)| lives);
        for life in lives.filter(|life| life.billed == BilledItem::Size) {
            life.ended.get_or_insert(at);
            life.deleted.get_or_insert(at);
        }
    }

    /// Records that a part of a resource was deleted with it.
    pub(crate) fn delete_part(&mut self, meter: &Meter, at: Timestamp) {
        for life in self.lives.get_mut(meter).into_iter().flatten() {
            life.ended.get_or_insert(at);
            life.deleted.get_or_insert(at);
        }
    }

    pub(crate) fn lives(&self) -> impl Iterator<Item = (&ResourceId, &Life)> {
        let lives = self.lives.iter();
        lives.flat_map(|((id, _), lives)| lives.iter().map(move |life| (id, life)))
    }
}
