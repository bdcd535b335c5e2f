//! Overrides that a person sets at a terminal, and their effect in the service.

use serde_json::{Value, json};

use crate::{
    programs::Terminal,
    support::{EACH_KIND, office_hours, run},
};

const WEB: &str = "do-main/droplet/1";
const CI: &str = "hz-eu/server/11";

/// Monday, three minutes past one in Berlin, after the first inventory: everything runs, as
/// `office` desires until 19:00.
async fn at_lunch() -> (Terminal, String) {
    let terminal = Terminal::new("12:00:00").await;
    let configuration = office_hours("", "", "");
    terminal.local(&configuration, "12:03:00").await;
    (terminal, configuration)
}

/// The JSON output of a command that must succeed.
async fn done(terminal: &Terminal, arguments: &[&str]) -> Value {
    let arguments = [&["override"], arguments, &["-o", "json"]].concat();
    let ended = terminal.run(&arguments).await;
    assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

/// The message of a command that must be refused as bad usage.
async fn refused(terminal: &Terminal, arguments: &[&str]) -> String {
    let arguments = [&["override"], arguments].concat();
    let ended = terminal.run(&arguments).await;
    assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.stderr);
    assert_eq!(ended.stdout, "", "{arguments:?}");
    ended.stderr
}

/// The resources that `status` shows as stopped.
async fn stopped(terminal: &Terminal) -> Vec<String> {
    let status = terminal.run(&["status", "-o", "json"]).await;
    let rows: Vec<Value> = serde_json::from_str(&status.stdout).unwrap();
    let stopped = rows.iter().filter(|row| row["state"] == "stopped");
    stopped.map(|row| row["resource"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_override_acts_until_its_end_and_then_the_schedule_takes_over() {
    run(async {
        let (terminal, configuration) = at_lunch().await;
        let stop = ["stopped", "web", "--for", "20m", "--reason", "a demonstration"];
        let rehearsal = done(&terminal, &[&stop[..], &["--dry-run"]].concat()).await;
        assert_eq!(done(&terminal, &["list"]).await, json!([]));

        let mut shown = done(&terminal, &stop).await;
        assert_eq!(shown["dry_run"], false);
        shown["dry_run"] = true.into();
        assert_eq!(shown, rehearsal);
        let one = &shown["overrides"][0];
        assert_eq!(one["set_at"], "2026-11-23T12:03:00Z");
        assert_eq!(one["ends_at"], "2026-11-23T12:23:00Z");
        assert_eq!((&one["follows"], &one["then"]), (&json!("office"), &json!("running")));
        let web = &shown["resources"][0];
        assert_eq!((&web["state"], &web["desired"]), (&json!("running"), &json!("stopped")));
        assert_eq!(done(&terminal, &["list"]).await, shown["overrides"]);

        terminal.local(&configuration, "12:10:00").await;
        assert_eq!(stopped(&terminal).await, [WEB]);
        terminal.local(&configuration, "12:22:00").await;
        assert_eq!(stopped(&terminal).await, [WEB]);
        terminal.local(&configuration, "12:30:00").await;
        assert!(stopped(&terminal).await.is_empty());
        assert_eq!(done(&terminal, &["list"]).await, json!([]));
    });
}

#[test]
fn what_is_set_cleared_and_replaced_at_one_instant_ends_as_the_last_one_wants() {
    run(async {
        let (terminal, configuration) = at_lunch().await;
        // The simulator's clock stands still, so all of this happens at one instant.
        let whole = ["stopped", "--schedule", "office", "--until", "next-edge"];
        let asks = refused(&terminal, &whole).await;
        let question = "error: cannot ask \"Stop 4 resources until Mon 2026-11-23 19:00 CET";
        assert!(asks.contains(question), "{asks}");
        assert!(asks.contains("web") && asks.ends_with("pass --yes to confirm\n"), "{asks}");
        let shown = done(&terminal, &[&whole[..], &["--yes"]].concat()).await;
        assert_eq!(shown["overrides"][0]["target"]["schedule"], "office");
        assert_eq!(shown["overrides"][0]["ends_at"], "2026-11-23T18:00:00Z");
        assert_eq!(shown["resources"].as_array().unwrap().len(), EACH_KIND.len());
        let cleared = done(&terminal, &["clear", "--schedule", "office"]).await;
        assert_eq!(cleared["overrides"][0]["active"], false);
        assert_eq!(done(&terminal, &["list"]).await, json!([]));
        let why = terminal.run(&["why", "web", "--full"]).await.stdout;
        assert!(
            why.contains("override of its schedule") && !why.contains("stopped until"),
            "{why}"
        );
        let next = "Next: stopped at Mon 19:00 CET";
        assert!(why.contains(next), "{why}");
        let shown = refused(&terminal, &["clear", "--all"]).await;
        assert!(shown.contains("there are no active overrides"), "{shown}");
        terminal.local(&configuration, "12:10:00").await;
        assert!(stopped(&terminal).await.is_empty());

        for desired in ["running", "stopped"] {
            let shown =
                done(&terminal, &[desired, "--schedule", "office", "--until", "tomorrow", "--yes"])
                    .await;
            assert_eq!(shown["overrides"][0]["desired"], desired);
            assert_eq!(shown["overrides"][0]["ends_at"], "2026-11-24T23:00:00Z");
        }
        // Machines are quick; the database and the pool are still in flight.
        terminal.local(&configuration, "12:16:00").await;
        let off = stopped(&terminal).await;
        assert!([WEB, CI].iter().all(|one| off.contains(&(*one).to_owned())), "{off:?}");
        done(&terminal, &["clear", "--all"]).await;
        terminal.local(&configuration, "12:24:00").await;
        let off = stopped(&terminal).await;
        assert!(![WEB, CI].iter().any(|one| off.contains(&(*one).to_owned())), "{off:?}");
    });
}

#[test]
fn what_cannot_be_followed_is_refused_and_writes_nothing() {
    run(async {
        let (terminal, _) = at_lunch().await;
        for (arguments, expected) in [
            (&["stopped", "wbe", "--for", "2h"][..], "did you mean `web`?"),
            (&["stopped", "web", "--until", "fridy"], "did you mean `friday`?"),
            (&["stopped", "web", "--for", "soon"], "such as 90m, 36h, 7d or 1d12h"),
            (&["stopped", "web"], "pass --for or --until"),
            (&["stopped", "web", "--until", "2026-11-22"], "Mon 2026-11-23 00:00 CET"),
            (&["stopped", "web", "--for", "31d"], "pass --yes"),
            (&["running", "--schedule", "offcie", "--for", "1h"], "did you mean `office`?"),
            (&["running", "office", "--for", "1h"], "it is a schedule: --schedule office"),
            (&["clear", "web"], "there are no active overrides"),
        ] {
            let shown = refused(&terminal, arguments).await;
            assert!(shown.contains(expected), "{shown}");
        }
        assert_eq!(done(&terminal, &["list"]).await, json!([]));
        let long = ["stopped", "web", "--for", "31d", "--yes"];
        let shown = done(&terminal, &long).await;
        assert_eq!(shown["overrides"][0]["ends_at"], "2026-12-24T12:03:00Z");
    });
}

#[test]
fn everything_runs_through_the_night_of_a_release_and_a_stop_may_end_by_itself() {
    run(async {
        let (terminal, configuration) = at_lunch().await;
        let release = ["running", "--all", "--until", "tomorrow 9am", "--reason", "release"];
        let shown = done(&terminal, &release).await;
        assert_eq!(shown["overrides"][0]["ends_at"], "2026-11-24T08:00:00Z");
        terminal.local(&configuration, "18:30:00").await;
        assert!(stopped(&terminal).await.is_empty());
        let shown = done(&terminal, &["extend", "--schedule", "office", "--by", "1h"]).await;
        assert_eq!(shown["overrides"][0]["ends_at"], "2026-11-24T09:00:00Z");

        let stop = terminal.run(&["stop", "w*", "ci", "--for", "30m", "-o", "json"]).await;
        assert_eq!(stop.code, Some(0), "{}", stop.stderr);
        let shown: Value = serde_json::from_str(&stop.stdout).unwrap();
        let ends = shown["overrides"].as_array().unwrap().iter().map(|one| &one["ends_at"]);
        assert!(ends.eq([&json!("2026-11-23T19:00:00Z"); 2]), "{shown}");
        terminal.local(&configuration, "18:40:00").await;
        assert_eq!(stopped(&terminal).await, [CI, WEB]);
        terminal.local(&configuration, "19:10:00").await;
        assert!(stopped(&terminal).await.is_empty());
        // Each override has an entry of its own.
        let activity = terminal.run(&["activity", "w*", "ci", "-o", "json"]).await;
        let entries: Vec<Value> = serde_json::from_str(&activity.stdout).unwrap();
        assert_eq!(entries.len(), 2, "{entries:#?}");
    });
}
