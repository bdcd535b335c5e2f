//! Output for programs: each command's JSON has the shape that `offhours config schema` prints for it,
//! and its CSV says the same.

use std::{
    collections::BTreeMap,
    io::Write as _,
    process::{Command, Stdio},
};

use jsonschema::Validator;
use serde_json::Value;

use crate::{
    programs::{Terminal, python},
    support::{office_hours, run},
};

/// The commands, and the schema of what each prints.
const COMMANDS: [(&str, &[&str]); 18] = [
    ("activity", &["activity"]),
    ("apply", &["apply", "--dry-run"]),
    ("approve", &["approve", "--all"]),
    ("doctor", &["doctor"]),
    ("forget", &["forget", "--anyway", "--dry-run", "web", "orders"]),
    ("history", &["history"]),
    ("saved", &["saved", "--since", "1d"]),
    ("saved", &["saved", "--by", "tag:team"]),
    ("preview", &["preview"]),
    ("log", &["config", "log"]),
    ("override", &["override", "running", "web", "--for", "2h"]),
    ("override-list", &["override", "list"]),
    ("status", &["status", "--live"]),
    ("status-accounts", &["status", "--accounts"]),
    ("outcome", &["stop", "orders", "--dry-run"]),
    ("outcome", &["start", "web"]),
    ("why", &["why", "--full", "web"]),
    ("configuration", &["config", "show"]),
];

/// Those that print rows of one kind, and so CSV as well.
const ROWS: [&[&str]; 8] = [
    &["status"],
    &["preview"],
    &["history"],
    &["activity"],
    &["saved", "--since", "1d"],
    &["doctor"],
    &["config", "log"],
    &["override", "list"],
];

pub(crate) async fn schema(terminal: &Terminal, what: &str) -> Validator {
    let ended = terminal.bare(&["config", "schema", what]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let schema: Value = serde_json::from_str(&ended.stdout).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

#[test]
fn what_commands_print_for_programs_has_the_shape_that_is_served() {
    run(async {
        let terminal = Terminal::new("17:50:00").await;
        let configuration = office_hours("", "", "");
        terminal.local(&configuration, "18:30:00").await;
        terminal.write(&format!("{configuration}\nretain_running = true\n"));
        let mut checked = BTreeMap::new();
        for (what, command) in COMMANDS {
            let schema = schema(&terminal, what).await;
            let ended = terminal.run(&[command, &["-o", "json"]].concat()).await;
            assert!(matches!(ended.code, Some(0 | 3)), "{command:?}: {}", ended.stderr);
            for document in documents(&ended.stdout) {
                if let Err(error) = schema.validate(&document) {
                    panic!("{command:?} at {}: {error}", error.instance_path());
                }
                *checked.entry(what).or_insert(0) += elements(&document);
            }
        }
        // Nothing was held; every other command had something to check.
        let empty: Vec<_> = checked.iter().filter(|(_, n)| **n == 0).collect();
        assert_eq!(empty, [(&"approve", &0)]);
    });
}

#[test]
fn what_local_prints_for_programs_has_the_shape_that_is_served() {
    run(async {
        let terminal = Terminal::new("17:50:00").await;
        terminal.write(&office_hours("", "", ""));
        let ended = terminal
            .run(&[
                "local",
                "--config",
                "offhours.toml",
                "--for",
                "40m",
                "--speed",
                "0",
                "--output",
                "json",
            ])
            .await;
        let lines = documents(&ended.stdout);
        let schema = schema(&terminal, "local").await;
        for line in &lines {
            if let Err(error) = schema.validate(line) {
                panic!("{line}: {error}");
            }
        }
        let events = lines.iter().filter_map(|line| line["event"].as_str());
        assert!(events.clone().any(|event| event == "asked"), "{}", ended.stderr);
        assert!(events.clone().any(|event| event == "edge-completed"));
        let history = lines.last().unwrap()["history"].as_array();
        assert!(history.is_some_and(|history| !history.is_empty()));
    });
}

#[test]
fn what_is_written_as_csv_reads_back_with_pythons_csv_as_what_is_written_as_json() {
    run(async {
        let terminal = Terminal::new("17:50:00").await;
        terminal.local(&office_hours("", "", ""), "18:30:00").await;
        let reason = ["--for", "2h", "--reason", "a \"late\", long, night"];
        terminal.run(&[&["override", "running", "web"], &reason[..]].concat()).await;
        for command in ROWS {
            let [json, csv] = ["json", "csv"].map(|form| [command, &["-o", form]].concat());
            let (json, csv) = (terminal.run(&json).await, terminal.run(&csv).await);
            assert!(matches!(json.code, Some(0 | 3)), "{command:?}: {}", json.stderr);
            let json: Value = serde_json::from_str(&json.stdout).unwrap();
            check_csv(&csv.stdout, json.as_array().or(json["rows"].as_array()).unwrap());
        }
    });
}

/// Checks that CSV has the same rows as JSON, in the order of its keys.
pub(crate) fn check_csv(csv: &str, rows: &[Value]) {
    let read = read_by_python(csv);
    assert!(!rows.is_empty());
    assert_eq!(read.len(), rows.len(), "{csv}");
    for (read, row) in read.iter().zip(rows) {
        // doctor counts requests, and sends some: what it found differs from run to run.
        for (key, cell) in read.iter().filter(|(key, _)| *key != "found") {
            let expected = match &row[key] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                value
                @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                    value.to_string()
                }
            };
            assert_eq!(*cell, expected, "{key}");
        }
    }
}

/// The rows of a CSV file, each by the names in its first line.
fn read_by_python(csv: &str) -> Vec<BTreeMap<String, String>> {
    let script = "import csv, io, json, sys\n\
                  text = io.TextIOWrapper(sys.stdin.buffer, 'utf-8', newline='')\n\
                  print(json.dumps(list(csv.DictReader(text, strict=True))))";
    let mut child = Command::new(python())
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(csv.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{csv}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Parses one document, or one per line.
fn documents(text: &str) -> Vec<Value> {
    match serde_json::from_str(text) {
        Ok(document) => vec![document],
        Err(_) => text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
    }
}

fn elements(document: &Value) -> usize {
    document.as_array().map_or(1, Vec::len)
}
