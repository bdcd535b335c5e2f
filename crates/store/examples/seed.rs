//! `seed ENDPOINT PREFIX RECORDS idle|due`: makes the tables behind a prefix and fills them for
//! `make bench`, with one schedule and so many Droplets that follow it. Either all are as desired
//! and due in a year, or all are due for a start now.

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
    store
        .save_account_state(&AccountState {
            listed_at: Some(now),
            ..AccountState::unknown(ACCOUNT.parse()?)
        })
        .await?;
    let records: Vec<_> = (1..=records.parse()?)
        .map(|id| droplet(id, fleet, now))
        .collect();
    write(&client, &tables.resources, &records).await
}

/// One schedule, by which everything runs but in the first minute of a year.
fn configuration() -> Result<Configuration, serde_json::Error> {
    serde_json::from_value(json!({
        "generation": 0,
        "settings": {},
        "accounts": { ACCOUNT: { "provider": "digitalocean", "token": "env:OFFHOURS_BENCH_TOKEN" } },
        "schedules": { "office": {
            "schedule": { "timezone": "UTC", "start": "1 0 1 1 *", "stop": "0 0 1 1 *" },
            "adopt": "at-once",
        } },
    }))
}

fn droplet(id: u64, fleet: Fleet, now: Timestamp) -> Record {
    let (power, due_at) = match fleet {
        Fleet::Idle => (Power::Running, now + SignedDuration::from_hours(365 * 24)),
        Fleet::Due => (Power::Stopped, now - SignedDuration::from_secs(1)),
    };
    let mut record = record(&format!("{ACCOUNT}/droplet/{id}"), power, "15 19:00");
    record.tags = ["offhours:office".to_owned()].into();
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
