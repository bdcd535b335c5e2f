//! Our requests and the simulator's responses match the clouds' own `OpenAPI` descriptions.

use std::{
    env, fs,
    io::{self, Write as _},
    path::PathBuf,
    process::Command,
};

use cloud_simulator::Entry;
use serde_json::Value;
use tempfile::TempDir;

use crate::{programs::python, support::root};

/// Checks a day's requests and their responses against the descriptions.
pub(crate) fn fits_the_clouds_descriptions(log: &[Entry]) {
    let answered = log.iter().filter(|entry| entry.answer.is_some());
    let lines: Vec<_> =
        answered.map(|entry| serde_json::to_string(entry).unwrap() + "\n").collect();
    assert!(lines.len() > 100, "a day is more than {}", lines.len());
    fit(&lines);
}

/// The same for the requests in the log of a simulator program, which has answered all of them.
pub(crate) fn logged_ones_fit(log: &[Value]) {
    assert!(!log.is_empty());
    let lines: Vec<_> = log.iter().map(|entry| format!("{entry}\n")).collect();
    fit(&lines);
}

fn fit(lines: &[String]) {
    let Some(specs) = specs() else { return };
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("exchanges.jsonl");
    fs::write(&path, lines.concat()).unwrap();
    let printed = validate(&[specs, path]);
    let expected = format!("{} exchanges, 0 violations", lines.len());
    assert_eq!(printed.trim_end(), expected);
}

#[test]
fn a_violation_of_the_clouds_descriptions_is_found() {
    let Some(specs) = specs() else { return };
    let printed = validate(&["--self-test".into(), specs]);
    assert!(printed.trim_end().ends_with(" passed, 0 failed"), "{printed}");
}

/// The folder with both clouds' descriptions, which are too large to be kept with the code. `None`
/// if it is not configured.
fn specs() -> Option<PathBuf> {
    let specs = env::var_os("OFFHOURS_SPECS").filter(|folder| !folder.is_empty());
    if specs.is_none() {
        // Written directly, because the test runner captures what a passing test prints.
        let text = "\nSKIPPED the validation of traffic: OFFHOURS_SPECS names no folder with \
                    digitalocean.openapi.yaml and hetzner.v1.openapi.json\n";
        io::stderr().write_all(text.as_bytes()).unwrap();
    }
    specs.map(PathBuf::from)
}

fn validate(arguments: &[PathBuf]) -> String {
    let output = Command::new(python())
        .arg(root().join("tests/python/validate_traffic.py"))
        .args(arguments)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}\n{errors}");
    printed
}
