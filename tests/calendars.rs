//! `offhours calendar` and the calendars that `serve` has, read by a parser that is not ours.

use serde_json::{Value, json};

use crate::{
    programs::{Terminal, read_by},
    support::{NIGHTS, office_hours, run},
};

/// Reads a calendar with Python's `icalendar`.
pub(crate) async fn read(calendar: &str) -> Value {
    read_by("read_calendar.py", calendar).await
}

async fn printed(terminal: &Terminal, arguments: &[&str]) -> Value {
    let ended = terminal.run(&[&["calendar"], arguments].concat()).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    read(&ended.stdout).await
}

fn event(begins: &str, ends: &str, summary: &str) -> Value {
    json!([begins, ends, summary])
}

fn events(calendar: &Value) -> Vec<Value> {
    let events = calendar["events"].as_array().unwrap().iter();
    events.map(|one| json!([one["begins"], one["ends"], one["summary"]])).collect()
}

#[test]
fn a_calendar_has_windows_overrides_and_holidays_as_another_program_reads_them() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        let holidays = r#"holidays = ["2026-12-24..2026-12-25"]"#;
        let configuration = office_hours("", "", holidays) + NIGHTS;
        terminal.local(&configuration, "12:03:00").await;
        let why = "demo, room 2; see \\\\share and a reason that is long enough for two lines, ü";
        for command in [
            &["override", "running", "--schedule", "office", "--for", "8h", "--reason", why][..],
            &["override", "stopped", "web", "--for", "2h"],
        ] {
            let set = terminal.run(command).await;
            assert_eq!(set.code, Some(0), "{}", set.stderr);
        }
        let office = printed(&terminal, &["--schedule", "office"]).await;
        assert_eq!(office["name"], "office");
        let found = events(&office);
        let running = "office: running";
        for expected in [
            event("2026-11-23T07:00:00+00:00", "2026-11-23T18:00:00+00:00", running),
            event("2027-01-15T07:00:00+00:00", "2027-01-15T18:00:00+00:00", running),
            event("2026-12-25", "2026-12-26", "office: holiday"),
            event(
                "2026-11-23T12:03:00+00:00",
                "2026-11-23T20:03:00+00:00",
                "office: running (override)",
            ),
            event(
                "2026-11-23T12:03:00+00:00",
                "2026-11-23T14:03:00+00:00",
                "web: stopped (override)",
            ),
        ] {
            assert!(found.contains(&expected), "{expected}: {found:#?}");
        }
        let all = office["events"].as_array().unwrap();
        let set = all.iter().find(|one| one["summary"] == "office: running (override)").unwrap();
        assert_eq!(set["description"], format!("Set by ada: {why}"));
        assert!(all.iter().all(|one| one["written"] == "2026-11-23T12:03:00+00:00"));

        let whole = printed(&terminal, &[]).await;
        assert_eq!(whole["name"], "Offhours");
        assert!(events(&whole).len() > found.len() + 50);
        let saved = terminal.run(&["calendar", "-o", "office.ics"]).await;
        assert_eq!((saved.code, saved.stdout.as_str()), (Some(0), ""), "{}", saved.stderr);
        assert_eq!(read(&terminal.read("office.ics")).await, whole);
        assert_eq!(printed(&terminal, &["-"]).await, whole);
        let public = printed(&terminal, &["--public"]).await;
        let public = public.to_string();
        assert!(public.contains("office: running (override)"), "{public}");
        assert!(!public.contains("ada") && !public.contains("web"), "{public}");

        let unknown = terminal.run(&["calendar", "--schedule", "offce"]).await;
        assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(2), ""));
    });
}
