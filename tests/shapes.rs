//! JSON output: each command's document has the shape that `offhours config schema` prints for it.

use std::collections::BTreeMap;

use jsonschema::Validator;
use serde_json::Value;

use crate::{
    programs::Terminal,
    support::{office_hours, run},
};

/// The commands, and the schema of what each prints.
const COMMANDS: [(&str, &[&str]); 17] = [
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

async fn schema(terminal: &Terminal, what: &str) -> Validator {
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
