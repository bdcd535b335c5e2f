//! A provider that is hostile or broken: names that move the cursor, an answer that repeats the
//! token, a body without an end. The service and the commands are the built programs.

use axum::Router;
use serde_json::json;

use crate::{
    programs::{CommandOutput, Terminal},
    support::{ACCOUNTS, droplet, office_hours, serve},
};

/// Names as a fleet's file has them, with their tags.
const NAMES: [(&str, &str); 7] = [
    ("web", "offhours:office"),
    (r"line1\nprod-db  running  ok", "offhours:office"),
    (r"\u001B[30mblack\u001B[2K", "offhours:office"),
    (r"\u202Etxt\u2066", "offhours:office"),
    (r"prod\u200B-db", "offhours:office"),
    ("hidden", r"offhours:office\u200B"),
    ("flag", r"offhours:office\U000E0061"),
];

fn fleet() -> String {
    let droplets = (1..).zip(NAMES).map(|(id, (name, tag))| {
        format!("[[droplets]]\nid = {id}\nname = \"{name}\"\ntags = [\"{tag}\"]\n")
    });
    let long = droplet(20, &"x".repeat(500_000), &["offhours:office"]);
    [ACCOUNTS.to_owned(), droplets.collect(), long].concat()
}

/// Fails unless a command's output is lines that hide nothing.
#[track_caller]
fn is_plain(ended: &CommandOutput) {
    for text in [&ended.stdout, &ended.stderr] {
        for c in ['\u{1b}', '\r', '\u{202e}', '\u{2066}', '\u{200b}', '\u{e0061}'] {
            assert!(!text.contains(c), "{c:?} in {text}");
        }
        for line in text.lines() {
            assert!(!line.trim_start().starts_with("prod-db"), "{text}");
            assert!(line.chars().count() < 2000, "{text}");
        }
    }
}

#[tokio::test]
async fn names_and_tags_are_one_line_and_what_hides_in_them_is_never_touched() {
    let terminal = Terminal::with_fleet(&fleet(), "17:50:00").await;
    let configuration = office_hours("protect = [\"name:*prod*\"]", "", "");
    terminal.local(&configuration, "18:10:00").await;
    let log = terminal.simulator.log().await;
    let changed: Vec<_> = log.iter().filter(|entry| entry["changed"] == true).collect();
    let [entry] = &changed[..] else {
        panic!("{changed:#?}");
    };
    assert_eq!(entry["request"]["path"], "/v2/droplets/1/actions");

    terminal.write(&configuration);
    let reason = "ok\nprod-db stopped by bob\u{1b}[30m\u{200b}";
    for arguments in [
        &["status"][..],
        &["list"],
        &["list", "-o", "json"],
        &["history"],
        &["doctor"],
        &["why", "--full", "do-main/droplet/2"],
        &["why", "--full", "do-main/droplet/5"],
        &["override", "running", "do-main/droplet/1", "--for", "1h", "--reason", reason],
        &["override", "list"],
        &["config", "log"],
        &["config", "show"],
    ] {
        is_plain(&terminal.run(arguments).await);
    }
    let listed = terminal.run(&["list", "-o", "json"]).await.stdout;
    let shown = json!(r"line1 prod-db  running  ok").to_string();
    assert!(listed.contains(&shown), "{listed}");
    let guarded = terminal.run(&["why", "--full", "do-main/droplet/5"]).await;
    let said = guarded.stdout + &guarded.stderr;
    assert!(said.contains("name:*prod*"), "{said}{listed}");
}

#[tokio::test]
async fn an_answer_that_repeats_the_token_shows_it_nowhere() {
    let fleet = [ACCOUNTS, &droplet(1, "web", &["offhours:office"])].concat();
    let terminal = Terminal::with_fleet(&fleet, "17:50:00").await;
    let configuration = office_hours("", "", "");
    terminal.local(&configuration, "17:56:00").await;
    let echo = json!({"id": "echo", "message": "you sent Authorization: Bearer secret-do-token"});
    let answer = json!({"answer": {"status": 422, "body": echo.to_string()}});
    let fault = json!({"match": {"account": "do-main"}, "times": 1000, "does": answer});
    terminal.simulator.fault(fault).await;
    terminal.write(&configuration);
    // Each of them fails if it printed a token.
    terminal.local(&configuration, "18:10:00").await;
    let mut shown = String::new();
    for arguments in
        [&["doctor"][..], &["status"], &["why", "--full", "do-main/droplet/1"], &["history"]]
    {
        let ended = terminal.run(arguments).await;
        shown += &(ended.stdout + &ended.stderr);
    }
    assert!(shown.contains("Bearer ***************"), "{shown}");
}

#[tokio::test]
async fn a_body_that_is_too_long_ends_with_an_error_that_says_so() {
    let endless = || async { " ".repeat(17 << 20) };
    let address = serve(Router::new().fallback(endless)).await;
    let terminal = Terminal::with_fleet(ACCOUNTS, "12:00:00").await;
    terminal.write(&format!(
        "[accounts.do-main]\nprovider = \"digitalocean\"\ntoken = \"env:DO_TOKEN\"\n\
         url = \"http://{address}\"\n"
    ));
    let data = terminal.data.to_str().unwrap();
    let ended = terminal.bare(&["apply", "--yes", "--data", data]).await;
    let said = ended.stdout + &ended.stderr;
    assert!(said.contains("longer than 16 MiB"), "{said}");
}

#[tokio::test]
async fn a_configuration_without_an_end_is_an_error() {
    let terminal = Terminal::with_fleet(ACCOUNTS, "12:00:00").await;
    for named in [&["--config", "/dev/zero"][..], &["/dev/zero"]] {
        let ended = terminal.bare(&[&["validate"], named].concat()).await;
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains("longer than 4096 KiB"), "{}", ended.stderr);
    }
}
