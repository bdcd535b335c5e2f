//! What we send and what the simulator answers fit the clouds' own `OpenAPI` descriptions.

use std::{
    env, fs,
    io::{self, Write as _},
    path::PathBuf,
    process::Command,
};

use jiff::SignedDuration;
use tempfile::TempDir;

use crate::{
    programs::python,
    support::{World, monday, root, run},
};

#[test]
fn a_day_of_traffic_fits_the_clouds_descriptions() {
    let Some(specs) = specs() else { return };
    run(async {
        let morning = monday("06:00:00");
        let configuration = include_str!("../examples/offhours.toml");
        let fleet = include_str!("../examples/fleet.toml");
        let world = World::start(configuration, fleet, morning).await;
        world
            .run_until(morning + SignedDuration::from_hours(24))
            .await;
        let mut lines = String::new();
        for entry in world.simulator().log() {
            if entry.answer.is_some() {
                lines += &serde_json::to_string(&entry).unwrap();
                lines.push('\n');
            }
        }
        let exchanges = lines.lines().count();
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("exchanges.jsonl");
        fs::write(&path, lines).unwrap();
        let printed = validate(&[specs.clone(), path]);
        let expected = format!("{exchanges} exchanges, 0 violations");
        assert_eq!(printed.trim_end(), expected);
        assert!(exchanges > 100, "a day is more than {exchanges} requests");
    });
}

#[test]
fn a_violation_of_the_clouds_descriptions_is_found() {
    let Some(specs) = specs() else { return };
    let printed = validate(&["--self-test".into(), specs]);
    assert!(
        printed.trim_end().ends_with(" passed, 0 failed"),
        "{printed}"
    );
}

/// The folder with both clouds' descriptions; they are too large to be kept with the code.
fn specs() -> Option<PathBuf> {
    let specs = env::var_os("OFFHOURS_SPECS").filter(|folder| !folder.is_empty());
    if specs.is_none() {
        // Past the test runner, which keeps what a passing test prints.
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
