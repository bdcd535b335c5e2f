//! The command on large inputs: `cargo bench -p offhours`.
//!
//! `preview` and `validate` of a file with 1,000 schedules are timed as whole processes. What looks
//! at a store is run on 1,000 and on 10,000 resources, each with a week of history, for its time and its
//! peak memory.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use aws_sdk_dynamodb::{
    Client,
    types::{PutRequest, WriteRequest},
};
use divan::Bencher;
use domain::{
    ResourceRef,
    history::HistoryEntry,
    record::{Direction, Record},
    resource::{Power, Resource},
};
use jiff::{SignedDuration, Timestamp};
use local::engine::Engine;
use offhours::configuration_file;
use store::item::Stored as _;
use testing::history::{entry, machine};

/// How many schedules the file has.
const SCHEDULES: usize = 1_000;

/// What looks at a store.
const LOOKS: [&[&str]; 6] = [
    &["status"],
    &["status", "-o", "json"],
    &["why", "server-7"],
    &["history", "server-7"],
    &["saved"],
    &["report"],
];

/// How many days of history each resource has, with a stop and a start on each of them.
const DAYS: i64 = 7;

/// `DynamoDB`'s limit on the items of one `BatchWriteItem`.
const BATCH_ITEMS: usize = 25;

/// How long it takes until a process' memory is looked at again.
const SAMPLE_EVERY: Duration = Duration::from_millis(1);

fn main() {
    divan::main();
    let (directory, clock) = (directory(), environment::Clock::machine());
    for resources in [1_000, 10_000] {
        let path = directory.join(format!("{resources}.db"));
        let now = clock.now();
        fill(&path, resources, now);
        for look in LOOKS {
            let begun = clock.now();
            let kib = peak_of(look, &path);
            say(&format!(
                "{} of {resources} resources: {:.2} s, peak memory {:.1} MiB",
                look.join(" "),
                clock.now().duration_since(begun).as_secs_f64(),
                f64::from(kib) / 1024.0
            ));
        }
    }
    fs::remove_dir_all(directory).ok();
}

#[expect(clippy::print_stdout, reason = "a benchmark's result goes there")]
fn say(line: &str) {
    println!("{line}");
}

/// Shows a year of 1,000 schedules.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn preview_of_1000_schedules_for_a_year(bencher: Bencher) {
    let file = thousand_schedules();
    bencher.bench_local(|| {
        offhours(&["preview", "--for", "52w", "-o", "json", "--config"], &file);
    });
}

/// Checks 1,000 schedules.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn validate_1000_schedules(bencher: Bencher) {
    let file = thousand_schedules();
    bencher.bench_local(|| offhours(&["validate", "-o", "json", "--config"], &file));
}

fn directory() -> PathBuf {
    let directory = std::env::temp_dir().join(format!("offhours-bench-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a folder for the benchmark");
    directory
}

/// A file of schedules in several zones, each with two periods and holidays.
fn thousand_schedules() -> PathBuf {
    let zones = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"];
    let mut text = String::new();
    for number in 0..SCHEDULES {
        let zone = zones[number % zones.len()];
        writeln!(
            text,
            "[schedules.s{number}]\ntimezone = \"{zone}\"\nholidays = [\"12-24..12-26\", \"01-01\"]\n\
             periods = [\n  {{ weekdays = \"mon-fri\", begin = \"08:{:02}\", end = \"19:00\" }},\n  \
             {{ weekdays = \"sat#1\", begin = \"10:00\", end = \"14:00\" }},\n]",
            number % 60
        )
        .expect("writing to a string cannot fail");
    }
    assert!(configuration_file::parse(&text, "bench").is_ok());
    let path = directory().join("thousand.toml");
    fs::write(&path, text).expect("the file can be written");
    path
}

fn offhours(arguments: &[&str], file: &Path) {
    let status = Command::new(env!("CARGO_BIN_EXE_offhours"))
        .args(arguments)
        .arg(file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.is_ok_and(|status| status.success()), "{arguments:?}");
}

/// A store with so many servers and their history.
fn fill(path: &Path, resources: usize, now: Timestamp) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let engine = Engine::on_file(path).expect("an engine");
        let tables = local::tables();
        let store = engine.store(tables.clone());
        store.create_tables().await.expect("tables");
        let parsed = configuration_file::parse(CONFIGURATION, "bench").expect("in order");
        store.apply(&parsed.configuration, "a benchmark", now).await.expect("applied");
        let client = engine.client();
        for number in 0..resources {
            let record = record(number);
            let history: Vec<_> = (0..DAYS).flat_map(|days| of_a_day(&record, now, days)).collect();
            store.save(record).await.expect("saved");
            write(&client, &tables.history, &history).await;
        }
    });
}

const CONFIGURATION: &str = r#"
timezone = "UTC"
accounts.hz = { provider = "hetzner", token = "env:T" }
[schedules.office-hours]
periods = [{ begin = "08:00", end = "19:00" }]
[prices.machine-hour]
cx22 = 0.006
"#;

fn record(number: usize) -> Record {
    let reference: ResourceRef = format!("hz/server/{number}").parse().expect("a reference");
    let resource = Resource {
        name: format!("server-{number}"),
        tags: BTreeSet::from(["offhours=office-hours".to_owned(), "team=web".to_owned()]),
        ..machine(&reference.id, Power::Running)
    };
    Record::first_seen(reference, &resource)
}

/// The stop and the start of a record so many days ago.
fn of_a_day(record: &Record, now: Timestamp, days: i64) -> [HistoryEntry; 2] {
    let day = now - SignedDuration::from_hours(24 * days);
    [(Direction::Stop, 14), (Direction::Start, 1)].map(|(direction, hours)| {
        let at = day - SignedDuration::from_hours(hours);
        HistoryEntry {
            reference: record.reference.clone(),
            name: record.name.clone(),
            schedule: Some("office-hours".parse().expect("a name")),
            claimed_at: at,
            asked_at: Some(at),
            accepted_at: Some(at),
            finished_at: at + SignedDuration::from_mins(1),
            ..entry(direction, "15 19:00", "15 19:01")
        }
    })
}

async fn write(client: &Client, table: &str, history: &[HistoryEntry]) {
    for batch in history.chunks(BATCH_ITEMS) {
        let puts = batch.iter().map(|entry| {
            let put = PutRequest::builder().set_item(Some(entry.to_item().expect("an item")));
            WriteRequest::builder().put_request(put.build().expect("a request")).build()
        });
        let request = client.batch_write_item().request_items(table, puts.collect());
        request.send().await.expect("written");
    }
}

/// Runs a command on a store: the most memory that it had, in KiB.
fn peak_of(arguments: &[&str], store: &Path) -> u32 {
    let mut child = Command::new(env!("CARGO_BIN_EXE_offhours"))
        .args(arguments)
        .arg("--data")
        .arg(store)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    let mut peak = 0;
    loop {
        peak = peak.max(peak_memory(child.id()).unwrap_or(0));
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            assert!(status.success(), "{arguments:?}");
            return peak;
        }
        thread::sleep(SAMPLE_EVERY);
    }
}

/// The high-water mark of a process' memory, in KiB; none where the system does not say.
fn peak_memory(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
