//! What `make scale` counted: `docs/benchmarks/scale.json`, which `BENCHMARKS.md` shows.

use std::{
    collections::BTreeMap,
    ops::{Add, Mul, Sub},
    sync::LazyLock,
};

use serde::Deserialize;

use super::Source;

static MEASUREMENTS: LazyLock<Measurements> = LazyLock::new(|| {
    let text = include_str!("../../../../docs/benchmarks/scale.json");
    serde_json::from_str(text).expect("`make scale` has written what was counted")
});

#[derive(Debug, Deserialize)]
struct Measurements {
    date: String,
    commit: String,
    /// Ordered from the smallest to the largest, at least two.
    sizes: Vec<FleetRun>,
}

/// The measured run of one fleet.
#[derive(Debug, Deserialize)]
struct FleetRun {
    resources: u64,
    parts: Parts,
    /// A process in which no timer fires.
    process: ProcessRun,
}

#[derive(Debug, Deserialize)]
struct Parts {
    quiet: ProcessRun,
    inventory: ProcessRun,
    stop: ProcessRun,
    start: ProcessRun,
}

/// One process of the service.
#[derive(Debug, Deserialize)]
struct ProcessRun {
    /// How often the timers fired in it.
    #[serde(default)]
    ticks: u32,
    /// How many of these ticks took inventories.
    #[serde(default)]
    inventories: u32,
    cpu_ms: f64,
    log_bytes: f64,
    events: f64,
    store_requests: f64,
    /// Requests to the clouds.
    #[serde(default)]
    requests: f64,
    /// Capacity units, by table or index.
    units: BTreeMap<String, Units>,
    invocations: BTreeMap<String, Invocations>,
}

#[derive(Debug, Deserialize)]
struct Units {
    read: f64,
    write: f64,
}

#[derive(Debug, Deserialize)]
struct Invocations {
    count: f64,
    seconds: f64,
}

/// How often things happen in a month.
#[derive(Debug, Clone, Copy)]
pub(super) struct MonthlyCounts {
    pub(super) ticks: f64,
    pub(super) inventories: f64,
    /// Edges of each resource, half of them stops.
    pub(super) edges: f64,
}

/// What a part of a run, or a month, takes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Usage {
    pub(super) invocations: f64,
    /// Time of a whole processor, in seconds.
    pub(super) processor: f64,
    /// How long functions waited of their own accord, in seconds.
    pub(super) waited: f64,
    pub(super) store_requests: f64,
    pub(super) cloud_requests: f64,
    pub(super) reads: f64,
    pub(super) writes: f64,
    pub(super) log_bytes: f64,
    pub(super) events: f64,
}

pub(super) fn source() -> Source {
    Source {
        date: MEASUREMENTS.date.clone(),
        commit: MEASUREMENTS.commit.clone(),
        sizes: MEASUREMENTS.sizes.iter().map(|size| size.resources).collect(),
    }
}

/// Returns what a month of this many resources takes: interpolated between the two nearest sizes,
/// and extrapolated from the last two beyond the largest.
#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 resources")]
pub(super) fn month(resources: u64, of: MonthlyCounts) -> Usage {
    let sizes = &MEASUREMENTS.sizes;
    let above = sizes.iter().position(|size| size.resources >= resources);
    let above = above.unwrap_or(sizes.len() - 1).max(1);
    let (low, high) = (&sizes[above - 1], &sizes[above]);
    let span = (high.resources - low.resources) as f64;
    let share = (resources as f64 - low.resources as f64) / span;
    low.month(of) * (1.0 - share) + high.month(of) * share
}

impl FleetRun {
    fn month(&self, of: MonthlyCounts) -> Usage {
        let process = self.process.usage();
        let Parts { quiet, inventory, stop, start } = &self.parts;
        let tick = (quiet.usage() - process) * (1.0 / f64::from(quiet.ticks));
        let besides_ticks = |ran: &ProcessRun| ran.usage() - process - tick * f64::from(ran.ticks);
        let inventory = besides_ticks(inventory) * (1.0 / f64::from(inventory.inventories));
        let edge = |ran: &ProcessRun| besides_ticks(ran) - inventory * f64::from(ran.inventories);
        let edges = (edge(stop) + edge(start)) * (of.edges / 2.0);
        tick * of.ticks + inventory * of.inventories + edges
    }
}

impl ProcessRun {
    fn usage(&self) -> Usage {
        let sum = |of: fn(&Units) -> f64| self.units.values().map(of).sum();
        let invoked = |of: fn(&Invocations) -> f64| self.invocations.values().map(of).sum();
        Usage {
            invocations: invoked(|of| of.count),
            processor: self.cpu_ms / 1000.0,
            waited: invoked(|of| of.seconds),
            store_requests: self.store_requests,
            cloud_requests: self.requests,
            reads: sum(|units| units.read),
            writes: sum(|units| units.write),
            log_bytes: self.log_bytes,
            events: self.events,
        }
    }
}

impl Usage {
    fn each(self, other: Self, with: fn(f64, f64) -> f64) -> Self {
        Self {
            invocations: with(self.invocations, other.invocations),
            processor: with(self.processor, other.processor),
            waited: with(self.waited, other.waited),
            store_requests: with(self.store_requests, other.store_requests),
            cloud_requests: with(self.cloud_requests, other.cloud_requests),
            reads: with(self.reads, other.reads),
            writes: with(self.writes, other.writes),
            log_bytes: with(self.log_bytes, other.log_bytes),
            events: with(self.events, other.events),
        }
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.each(other, |one, another| one + another)
    }
}

impl Sub for Usage {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        // On a busy machine, the difference of two nearly equal times may come out below zero.
        self.each(other, |one, another| (one - another).max(0.0))
    }
}

impl Mul<f64> for Usage {
    type Output = Self;

    fn mul(self, by: f64) -> Self {
        let by = Self {
            invocations: by,
            processor: by,
            waited: by,
            store_requests: by,
            cloud_requests: by,
            reads: by,
            writes: by,
            log_bytes: by,
            events: by,
        };
        self.each(by, |one, another| one * another)
    }
}
