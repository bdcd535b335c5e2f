//! `seed ENDPOINT PREFIX RECORDS idle|due`: creates the tables with a prefix and fills them for
//! `make bench`, with one schedule and RECORDS machines that follow it. These are either Droplets
//! of one account, all in their desired state and due in a year, or servers of twenty accounts, all
//! due for a start now.

use std::error::Error;

use aws_sdk_dynamodb::{
    Client,
    types::{PutRequest, WriteRequest},
};
use domain::{configuration::Configuration, record::Record, resource::Power};
use environment::{Clock, aws::local_config};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use store::{AccountState, Store, Tables, item::Stored as _};
use testing::history::record;

const ACCOUNT: &str = "do-main";

/// The number of server accounts: each account allows all of its own servers in one tick.
const SERVER_ACCOUNTS: u64 = 20;

/// DynamoDB's limit on the items of one `BatchWriteItem`.
const BATCH_ITEMS: usize = 25;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fleet {
    Idle,
    Due,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [endpoint, prefix, records, fleet] = &arguments[..] else {
        return Err("usage: seed ENDPOINT PREFIX RECORDS idle|due".into());
    };
    let fleet = match fleet.as_str() {
        "idle" => Fleet::Idle,
        "due" => Fleet::Due,
        other => return Err(format!("`{other}` is neither `idle` nor `due`").into()),
    };
    let now = Clock::machine().now();
    let tables = Tables::prefixed(prefix);
    let client = Client::new(&local_config(endpoint));
    let store = Store::new(client.clone(), tables.clone());
    store.create_tables().await?;
    store.apply(&configuration()?, "make bench", now).await?;
    for account in accounts() {
        let listed =
            AccountState { listed_at: Some(now), ..AccountState::unknown(account.parse()?) };
        store.save_account_state(&listed).await?;
    }
    let records: Vec<_> = (1..=records.parse()?).map(|id| machine(id, fleet, now)).collect();
    write(&client, &tables.resources, &records).await
}

fn accounts() -> impl Iterator<Item = String> {
    let of_servers = (0..SERVER_ACCOUNTS).map(server_account);
    std::iter::once(ACCOUNT.to_owned()).chain(of_servers)
}

fn server_account(number: u64) -> String {
    format!("hz-{number}")
}

/// One schedule, under which everything runs except in the first minute of a day.
fn configuration() -> Result<Configuration, serde_json::Error> {
    let account = |name: String| {
        let provider = if name == ACCOUNT { "digitalocean" } else { "hetzner" };
        let account = json!({ "provider": provider, "token": "env:OFFHOURS_BENCH_TOKEN" });
        (name, account)
    };
    let accounts: serde_json::Map<_, _> = accounts().map(account).collect();
    serde_json::from_value(json!({
        "generation": 0,
        "settings": {},
        "accounts": accounts,
        "schedules": { "office": {
            "schedule": { "timezone": "UTC", "start": "1 0 * * *", "stop": "0 0 * * *" },
            "adopt": "at-once",
        } },
    }))
}

fn machine(id: u64, fleet: Fleet, now: Timestamp) -> Record {
    let (reference, tag, power, due_at) = match fleet {
        Fleet::Idle => (
            format!("{ACCOUNT}/droplet/{id}"),
            "offhours:office",
            Power::Running,
            now + SignedDuration::from_hours(365 * 24),
        ),
        Fleet::Due => (
            format!("{}/server/{id}", server_account(id % SERVER_ACCOUNTS)),
            "offhours=office",
            Power::Stopped,
            now - SignedDuration::from_secs(1),
        ),
    };
    let mut record = record(&reference, power, "15 19:00");
    record.tags = [tag.to_owned()].into();
    record.due_at = Some(due_at);
    record.revision.0 = 1;
    record
}

async fn write(client: &Client, table: &str, records: &[Record]) -> Result<(), Box<dyn Error>> {
    for batch in records.chunks(BATCH_ITEMS) {
        let mut puts = Vec::new();
        for record in batch {
            let put = PutRequest::builder().set_item(Some(record.to_item()?));
            puts.push(WriteRequest::builder().put_request(put.build()?).build());
        }
        let request = client.batch_write_item().request_items(table, puts);
        request.send().await?;
    }
    Ok(())
}
