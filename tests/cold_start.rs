//! Functions whose settings are missing or wrong: each ends its start with one line that says so.

use std::process::Command;

use serde_json::Value;

use crate::support::program;

/// All settings of a function, as the template sets them.
fn settings(function: &str) -> Vec<(&'static str, &'static str)> {
    let mut settings = vec![
        ("OFFHOURS_TABLE_PREFIX", "offhours-"),
        ("RUST_LOG", "info"),
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ACCESS_KEY_ID", "local"),
        ("AWS_SECRET_ACCESS_KEY", "secret-key"),
    ];
    if ["dispatch", "poll-status"].contains(&function) {
        settings.push(("OFFHOURS_STOP_FUNCTION", "offhours-stop"));
        settings.push(("OFFHOURS_START_FUNCTION", "offhours-start"));
    }
    if function != "dispatch" {
        settings.extend([
            ("OFFHOURS_EVENT_BUS", "offhours"),
            ("OFFHOURS_DIGITALOCEAN_URL", ""),
            ("OFFHOURS_HETZNER_URL", ""),
        ]);
    }
    settings
}

/// Starts a function with one setting changed, and returns the only line it prints.
#[track_caller]
fn ends_with(function: &str, changed: &str, to: Option<&str>) -> String {
    let mut settings = settings(function);
    settings.retain(|(name, _)| *name != changed);
    let output = Command::new(program(function))
        .env_clear()
        .envs(settings)
        .envs(to.map(|value| (changed, value)))
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let complaints = String::from_utf8(output.stderr).unwrap();
    let context = format!("{function} with {changed}: {printed}{complaints}");
    assert_eq!(output.status.code(), Some(1), "{context}");
    assert_eq!(complaints, "", "{context}");
    let lines: Vec<_> = printed.lines().collect();
    let [line] = lines[..] else {
        panic!("{context}");
    };
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["level"], "ERROR", "{context}");
    let message = line["message"].as_str().unwrap();
    assert!(message.contains(changed), "{context}");
    message.to_owned()
}

#[test]
fn a_missing_setting_ends_the_start_with_one_line_that_names_it() {
    for (function, missing) in [
        ("dispatch", "OFFHOURS_STOP_FUNCTION"),
        ("dispatch", "OFFHOURS_START_FUNCTION"),
        ("poll-status", "OFFHOURS_STOP_FUNCTION"),
        ("poll-status", "OFFHOURS_START_FUNCTION"),
        ("poll-status", "OFFHOURS_EVENT_BUS"),
        ("stop", "OFFHOURS_EVENT_BUS"),
        ("start", "OFFHOURS_EVENT_BUS"),
    ] {
        let absent = ends_with(function, missing, None);
        assert!(absent.contains("is not set"), "{absent}");
        assert_eq!(absent, ends_with(function, missing, Some("")));
    }
}

#[test]
fn a_wrong_setting_ends_the_start_with_one_line_that_names_it() {
    for (function, wrong, to) in [
        ("dispatch", "OFFHOURS_START_FUNCTION", "start it"),
        ("dispatch", "RUST_LOG", "offhours=loud"),
        ("poll-status", "OFFHOURS_STOP_FUNCTION", "stop\nit"),
        ("poll-status", "OFFHOURS_TABLE_PREFIX", "off hours-"),
        ("stop", "OFFHOURS_EVENT_BUS", "my bus"),
        ("stop", "OFFHOURS_HETZNER_URL", "http://example.com"),
        ("start", "OFFHOURS_TABLE_PREFIX", "off/hours-"),
        ("start", "OFFHOURS_DIGITALOCEAN_URL", "https://me:secret@example.com"),
    ] {
        let line = ends_with(function, wrong, Some(to));
        assert!(!line.contains("secret"), "{line}");
    }
}
