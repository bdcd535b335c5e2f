//! What Droplets and servers have in common: a guest that boots and writes to its disk, and an action
//! that locks the machine.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU32, Ordering},
};

use serde::Serialize;

/// The state that a Droplet and a server have in common.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Guest {
    #[serde(skip)]
    id: u64,
    pub(crate) powered: bool,
    /// Whether it fails to boot: it soon turns off again whenever it is powered on.
    pub(crate) broken: bool,
    /// Counts power changes and reboots, so that an old shutdown signal cannot turn off a later
    /// boot.
    #[serde(skip)]
    pub(crate) boot: u64,
    /// Identifies the contents of its disk: the machine that last wrote to it, and the number of
    /// that write. Equal values mean equal contents.
    pub(crate) contents: String,
    /// The contents of its disk when the machine was created.
    first_contents: String,
    /// How often the contents of its disk have changed.
    #[serde(skip)]
    written: u64,
    /// The account's image that it was made from.
    pub(crate) made_from: Option<u64>,
    /// The original machine that it descends from through images; its own id if there is none.
    #[serde(skip)]
    pub(crate) origin: u64,
    /// The running action, which locks the machine.
    pub(crate) action: Option<u64>,
    /// The cached response about the machine: of the thousands in a list, few have changed since the
    /// last one.
    #[serde(skip)]
    cached_json: OnceLock<String>,
    /// How often the cached response has been read.
    #[serde(skip)]
    reads: Arc<AtomicU32>,
}

impl Guest {
    /// The guest of a machine whose disk has been written once.
    pub(crate) fn new(id: u64) -> Self {
        let mut guest = Self { id, origin: id, ..Self::default() };
        guest.write();
        guest
    }

    /// The guest of a new machine with another one's disk.
    pub(crate) fn with_disk(id: u64, contents: &str) -> Self {
        let contents = contents.to_owned();
        Self { id, origin: id, first_contents: contents.clone(), contents, ..Self::default() }
    }

    /// The guest of a new machine, made from an image of this one with these contents.
    pub(crate) fn copy(&self, id: u64, image: u64, contents: &str, broken: bool) -> Self {
        let copy = Self::with_disk(id, contents);
        Self { made_from: Some(image), origin: self.origin, broken, ..copy }
    }

    /// Simulates a write by the guest to its disk.
    pub(crate) fn write(&mut self) {
        self.written += 1;
        self.contents = format!("{}.{}", self.id, self.written);
    }

    /// Starts, restarts or stops the guest, which writes to its disk when it boots.
    pub(crate) fn set_power(&mut self, powered: bool) {
        self.powered = powered;
        self.boot += 1;
        if powered {
            self.write();
        }
    }

    /// The response about the machine, as text. In debug builds a cached one is compared with a new
    /// one, the less often the longer it lasts: a night reads most of them many times.
    pub(crate) fn cached_json(&self, write: impl Fn() -> String) -> &str {
        let text = self.cached_json.get_or_init(&write);
        if cfg!(debug_assertions) && self.reads.fetch_add(1, Ordering::Relaxed).is_power_of_two() {
            assert_eq!(*text, write(), "it changed, and is shown as it was");
        }
        text
    }

    /// Invalidates the cached response, after a change that it shows.
    pub(crate) fn invalidate_cache(&mut self) {
        if self.cached_json.take().is_some() {
            self.reads = Arc::default();
        }
    }
}
