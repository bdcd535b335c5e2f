//! What the service itself costs on AWS in a month: what `make scale` counted for fleets of several
//! sizes, at AWS's prices.

mod measurements;

use schemars::JsonSchema;
use serde::Serialize;

use measurements::{MonthlyCounts, Usage};

/// The number of days in a month.
const DAYS: f64 = 30.0;

const TICKS: f64 = DAYS * 24.0 * 60.0;

/// One every five minutes.
const INVENTORIES: f64 = TICKS / 5.0;

/// The memory of each function, in MB (`infra/template.yaml`).
const MEMORY_MB: f64 = 128.0;

/// The memory that comes with a whole processor, in MB: less of it comes with a smaller share.
/// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html>
const MEMORY_OF_A_PROCESSOR_MB: f64 = 1769.0;

/// The assumed response times of DynamoDB and of a cloud, in seconds: on the machine that counted,
/// both are local. Eight of the clouds' requests are in flight at a time.
const STORE_ANSWER: f64 = 0.005;
const CLOUD_ANSWER: f64 = 0.2 / 8.0;

/// What AWS logs for each invocation besides the function's own lines, in bytes.
const PLATFORM_LOG: f64 = 450.0;

/// The sizes of a record and of a history item in the tables, in bytes, and how many days the
/// latter is kept.
const RECORD: f64 = 1_100.0;
const HISTORY_ITEM: f64 = 900.0;
const HISTORY_DAYS: f64 = 90.0;

/// How often the functions request the tables' key: at most once every five minutes for each of
/// five pairs of function and table.
const KEY_REQUESTS: f64 = 5.0 * INVENTORIES;

/// The itemized bill of one month.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Cost {
    /// Number of resources that follow a schedule.
    pub resources: u64,
    /// How many times a day each of them is stopped or started.
    pub edges: u32,
    /// The lines of the bill.
    pub items: Vec<Item>,
    /// The total, in US dollars.
    pub usd: f64,
}

/// One line of the bill.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Item {
    /// The part of the bill that the line belongs to.
    pub service: Service,
    /// What is billed.
    pub what: &'static str,
    /// The quantity that is billed.
    pub quantity: f64,
    /// The price, as a pair: an amount in US dollars, and the quantity that it buys.
    pub price: (f64, f64),
    /// The cost of the quantity, in US dollars.
    pub usd: f64,
}

/// A part of the AWS bill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// The functions.
    Lambda,
    /// The tables.
    DynamoDb,
    /// The tables' key.
    Kms,
    /// Log lines.
    Logs,
    /// Events on the bus.
    EventBridge,
    /// Alarms, metrics and the dashboard.
    Watching,
}

impl Service {
    /// Every service, in the order of a bill.
    pub const ALL: [Self; 6] =
        [Self::Lambda, Self::DynamoDb, Self::Kms, Self::Logs, Self::EventBridge, Self::Watching];
}

/// Where the counts come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Source {
    /// The date of the counts.
    pub date: String,
    /// The commit that was counted.
    pub commit: String,
    /// The sizes of the fleets that were counted.
    pub sizes: Vec<u64>,
}

/// Returns where the counts come from.
#[must_use]
pub fn source() -> Source {
    measurements::source()
}

/// Returns what this many resources cost in a month, each with this many edges a day.
#[must_use]
pub fn of(resources: u64, edges: u32) -> Cost {
    let month =
        MonthlyCounts { ticks: TICKS, inventories: INVENTORIES, edges: DAYS * f64::from(edges) };
    let usage = measurements::month(resources, month);
    let items = items(resources, edges, &usage);
    Cost { resources, edges, usd: items.iter().map(|item| item.usd).sum(), items }
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 resources")]
fn items(resources: u64, edges: u32, usage: &Usage) -> Vec<Item> {
    let resources = resources as f64;
    let seconds = usage.processor * MEMORY_OF_A_PROCESSOR_MB / MEMORY_MB
        + usage.waited
        + usage.store_requests * STORE_ANSWER
        + usage.cloud_requests * CLOUD_ANSWER;
    let stored = resources * (RECORD + HISTORY_ITEM * f64::from(edges) * HISTORY_DAYS) / 1e9;
    let log = (usage.log_bytes + usage.invocations * PLATFORM_LOG) / 1e9;
    // docs/costs.md lists the pages with the prices.
    let priced = |service, what, quantity: f64, usd: f64, per: f64| Item {
        service,
        what,
        quantity,
        price: (usd, per),
        usd: quantity * usd / per,
    };
    vec![
        priced(Service::Lambda, "invocations", usage.invocations, 0.20, 1e6),
        priced(Service::Lambda, "GB-s", seconds * MEMORY_MB / 1024.0, 0.000_016_666_7, 1.0),
        priced(Service::DynamoDb, "read units", usage.reads, 0.125, 1e6),
        priced(Service::DynamoDb, "write units", usage.writes, 0.625, 1e6),
        priced(Service::DynamoDb, "GB stored", stored, 0.25, 1.0),
        priced(Service::DynamoDb, "GB of recovery", stored, 0.20, 1.0),
        priced(Service::Kms, "requests", KEY_REQUESTS, 0.03, 1e4),
        priced(Service::Logs, "GB", log, 0.50, 1.0),
        priced(Service::EventBridge, "own events", usage.events, 1.00, 1e6),
        priced(Service::Watching, "alarms", 15.0, 0.10, 1.0),
        priced(Service::Watching, "metrics", 10.0, 0.30, 1.0),
        priced(Service::Watching, "dashboards", 1.0, 3.00, 1.0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(cost: &Cost, service: Service, what: &str) -> f64 {
        let of = |item: &&Item| item.service == service && item.what == what;
        cost.items.iter().find(of).unwrap().quantity
    }

    #[test]
    fn a_sum_is_that_of_its_items() {
        for resources in [0, 100, 777, 10_000] {
            let cost = of(resources, 2);
            let sum: f64 = cost.items.iter().map(|item| item.usd).sum();
            assert!((cost.usd - sum).abs() < 1e-9);
            for item in &cost.items {
                let (usd, per) = item.price;
                assert!((item.usd - item.quantity / per * usd).abs() < 1e-9, "{item:?}");
            }
        }
    }

    #[test]
    fn both_timers_fire_every_minute_whatever_the_fleet() {
        for (resources, edges) in [(0, 0), (0, 2), (1000, 0)] {
            let invocations = quantity(&of(resources, edges), Service::Lambda, "invocations");
            assert!((invocations - 86_400.0).abs() < 1.0, "{invocations}");
        }
    }

    #[test]
    fn more_resources_and_more_edges_cost_more() {
        let usd = |resources, edges| of(resources, edges).usd;
        assert!(usd(0, 2) < usd(100, 2));
        assert!(usd(100, 2) < usd(5000, 2));
        assert!(usd(5000, 2) < usd(20_000, 2));
        assert!(usd(1000, 1) < usd(1000, 2));
    }

    #[test]
    fn between_two_fleets_that_were_counted_a_third_is_in_proportion() {
        let writes = |resources| quantity(&of(resources, 2), Service::DynamoDb, "write units");
        let (low, middle, high) = (writes(1000), writes(2081), writes(3162));
        assert!((middle - f64::midpoint(low, high)).abs() < 1.0, "{low} {middle} {high}");
    }
}
