//! Pauses that a person sets at a terminal, and their effect in the service.

use serde_json::Value;

use crate::{
    programs::Terminal,
    support::{EACH_KIND, office_hours, run},
};

/// How many resources `status` shows in this state.
async fn count(terminal: &Terminal, state: &str) -> usize {
    let status = terminal.run(&["status", "-o", "json"]).await;
    let rows: Vec<Value> = serde_json::from_str(&status.stdout).unwrap();
    rows.iter().filter(|row| row["state"] == state).count()
}

async fn done(terminal: &Terminal, arguments: &[&str]) -> String {
    let ended = terminal.run(arguments).await;
    assert_eq!(ended.code, Some(0), "{arguments:?}: {}{}", ended.stdout, ended.stderr);
    ended.stdout
}

#[test]
fn a_pause_sends_nothing_and_then_the_latest_edge_counts() {
    run(async {
        let terminal = Terminal::new("17:50:00").await;
        let configuration = office_hours("", "", "");
        terminal.local(&configuration, "17:53:00").await;
        let all = EACH_KIND.len();
        let pause = ["pause", "--for", "2h", "--reason", "release night"];
        let shown = done(&terminal, &pause).await;
        assert!(shown.starts_with("Everything is paused until "), "{shown}");
        assert!(shown.contains("(release night): nothing is sent. `offhours resume` "), "{shown}");

        // The evening's edge is at six.
        terminal.local(&configuration, "19:00:00").await;
        assert_eq!(count(&terminal, "running").await, all);
        let status = terminal.run(&["status"]).await;
        assert_eq!(status.code, Some(0), "nothing is overdue: {}", status.stdout);
        assert!(status.stderr.starts_with("Everything is paused until "), "{}", status.stderr);
        let why = done(&terminal, &["why", "web", "--full"]).await;
        assert!(why.contains("It is running and should be stopped, but is paused until "), "{why}");
        assert!(why.contains("▶ pause "), "{why}");
        let declined = terminal.run(&["stop", "web"]).await;
        assert_ne!(declined.code, Some(0));
        let reason = "(release night): `offhours resume` ends that";
        assert!(declined.stdout.contains(reason), "{}", declined.stdout);

        terminal.local(&configuration, "19:52:00").await;
        assert_eq!(count(&terminal, "running").await, all);
        terminal.local(&configuration, "20:30:00").await;
        assert_eq!(count(&terminal, "running").await, 0);
    });
}

#[test]
fn what_is_resumed_follows_at_once_and_each_scope_by_itself() {
    run(async {
        let terminal = Terminal::new("17:50:00").await;
        let configuration = office_hours("", "", "");
        terminal.local(&configuration, "17:53:00").await;
        let all = EACH_KIND.len();
        done(&terminal, &["pause", "--account", "do-main", "--reason", "a"]).await;
        done(&terminal, &["pause", "--account", "hz-eu", "--reason", "b"]).await;
        let several = terminal.run(&["resume"]).await;
        assert_eq!(several.code, Some(2));
        let advice = "`offhours resume --account do-main` or `offhours resume --account hz-eu`";
        assert!(several.stderr.contains(advice), "{}", several.stderr);
        assert!(several.stderr.contains("several pauses are in force"), "{}", several.stderr);

        terminal.local(&configuration, "18:30:00").await;
        assert_eq!(count(&terminal, "running").await, all);
        done(&terminal, &["resume", "--account", "hz-eu"]).await;
        terminal.local(&configuration, "18:34:00").await;
        assert_eq!(count(&terminal, "running").await, all - 1);
        done(&terminal, &["resume"]).await;
        terminal.local(&configuration, "19:05:00").await;
        assert_eq!(count(&terminal, "running").await, 0);
        let activity = done(&terminal, &["activity", "-o", "json"]).await;
        let activity: Vec<Value> = serde_json::from_str(&activity).unwrap();
        let of = |action: &str| {
            activity.iter().filter(|one| one["action"].get(action).is_some()).count()
        };
        assert_eq!((of("paused"), of("resumed")), (2, 2));
    });
}
