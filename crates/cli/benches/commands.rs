//! The command on large inputs: `cargo bench -p offhours`.
//!
//! `preview` and `validate` of a file with 1,000 schedules are timed as whole processes. `status`
//! is run on stores of 1,000 and of 10,000 records, for its time and its peak memory.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use divan::Bencher;
use domain::{
    ResourceRef,
    record::Record,
    resource::{Power, Resource},
};
use local::engine::Engine;
use offhours::configuration_file;
use testing::history::machine;

/// How many schedules the file has.
const SCHEDULES: usize = 1_000;

/// How many lines of output lie between two samples of a process' memory.
const SAMPLE_EVERY: usize = 50;

fn main() {
    divan::main();
    let (directory, clock) = (directory(), environment::Clock::machine());
    for records in [1_000, 10_000] {
        let path = directory.join(format!("{records}.db"));
        fill(&path, records);
        for form in ["table", "json"] {
            let begun = clock.now();
            let (lines, kib) = status(&path, form);
            say(&format!(
                "status -o {form} of {records} records: {lines} lines in {:.2} s, peak memory \
                 {:.1} MiB",
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

/// A store with so many records.
fn fill(path: &Path, records: usize) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let store = Engine::on_file(path).expect("an engine").store(local::tables());
        store.create_tables().await.expect("tables");
        let text = "accounts.hz = { provider = \"hetzner\", token = \"env:T\" }";
        let parsed = configuration_file::parse(text, "bench").expect("in order");
        let now = environment::Clock::machine().now();
        let applied = store.apply(&parsed.configuration, "a benchmark", now);
        applied.await.expect("applied");
        for number in 0..records {
            store.save(record(number)).await.expect("saved");
        }
    });
}

fn record(number: usize) -> Record {
    let reference: ResourceRef = format!("hz/server/{number}").parse().expect("a reference");
    let resource = Resource {
        name: format!("server-{number}"),
        tags: BTreeSet::from(["offhours=office-hours".to_owned(), "team=web".to_owned()]),
        ..machine(&reference.id, Power::Running)
    };
    Record::first_seen(reference, &resource)
}

/// Runs `status`: the lines that it prints, and the most memory that it had, in KiB.
fn status(path: &Path, form: &str) -> (usize, u32) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_offhours"))
        .args(["status", "-o", form, "--data"])
        .arg(path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    let stdout = child.stdout.take().expect("it is piped");
    let (mut lines, mut peak) = (0, 0);
    for line in BufReader::new(stdout).lines() {
        line.expect("its output can be read");
        if lines % SAMPLE_EVERY == 0 {
            peak = peak.max(peak_memory(child.id()).unwrap_or(0));
        }
        lines += 1;
    }
    child.wait().expect("it ends");
    (lines, peak)
}

/// The high-water mark of a process' memory, in KiB; none where the system does not say.
fn peak_memory(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
