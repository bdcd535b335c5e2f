//! What `status` shows for a store of fixtures.

use clap::Parser;
use domain::{
    configuration::{Pause, PauseScope},
    history::HistoryEntry,
    record::{Cause, Ending, Phase, Record},
    resource::{MachineSize, Power, SavedState},
    schedule::Desired,
};
use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::{
    evening::{at, configuration, full_store, now, office, store},
    fixtures::empty_store,
    output::Style,
};

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn args(arguments: &[&str]) -> Args {
    Line::parse_from([&["status"], arguments].concat()).args
}

/// The rows that these arguments ask for.
async fn rows(store: &Store, arguments: &[&str]) -> anyhow::Result<Vec<ResourceView>> {
    let args = args(arguments);
    Ok(View::of(&args, &Context::plain(), store, None, now()).await?.rows)
}

async fn names(store: &Store, arguments: &[&str]) -> Vec<String> {
    let rows = rows(store, arguments).await.unwrap();
    rows.into_iter().map(|row| row.name).collect()
}

async fn refusal(store: &Store, arguments: &[&str]) -> String {
    let error = rows(store, arguments).await.unwrap_err();
    assert_eq!(Exit::of(&error), Exit::BadUsage, "{error}");
    error.to_string()
}

/// The tables that people read, without blanks at the ends of lines.
async fn tables(store: &Store, arguments: &[&str], width: Option<u16>) -> String {
    let args = args(arguments);
    let mut view = View::of(&args, &Context::plain(), store, None, now()).await.unwrap();
    view.screen.style = Style { colours: false, width };
    let mut text = view.table(&view.rows);
    let accounts = view.account_rows();
    if !accounts.is_empty() {
        text.push('\n');
        text.push_str(&view.screen.table(&accounts));
    }
    let all = format!("{text}{}\n", view.in_a_line());
    all.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn the_tables_show_every_state_and_the_accounts() {
    let store = full_store().await;
    insta::assert_snapshot!(tables(&store, &[], None).await);
}

#[tokio::test]
async fn a_day_shows_what_ran_until_now_and_what_is_desired_from_now_on() {
    let store = full_store().await;
    let day = tables(&store, &["--day"], Some(80)).await;
    insta::assert_snapshot!(day, @"
                                        12    15    18    21    0     3     6     9
    newcomer                        #################|..............................
    workers                         #################|..............................
    build                                            |......################........
    orders                          #################|..............................
    web-1                           #################|..............................
    lonely                          #################|OOOOOO------------------------
    shop-prod                       #################|------------------------------
                    # running   . stopped   - any
                    O override running   | now

    Account  Provider      Last listed    Remark
    do-main  digitalocean  Fri 18:51 CET
    hz-eu    hetzner       Fri 18:51 CET  token refused
    7 resources: 4 running, 1 stopped, 1 under way; 2 need attention; account hz-eu: token refused
    ");
    let (picture, _) = day.split_once("\n\n").unwrap();
    assert!(picture.lines().all(|line| line.chars().count() <= 80), "{picture}");
    for other in ["--wide", "--watch", "--live", "--accounts"] {
        assert!(Line::try_parse_from(["status", "--day", other]).is_err(), "{other}");
    }
}

#[tokio::test]
async fn what_waits_for_others_is_remarked() {
    let store = empty_store().await;
    let mut configuration = configuration();
    configuration.generation = domain::configuration::Generation(0);
    let groups = serde_json::json!({
        "data": {"resources": ["name:db"]},
        "shop": {"resources": ["name:web"], "after": ["data"], "wait": "10m"},
    });
    configuration.settings.groups = serde_json::from_value(groups).unwrap();
    store.apply(&configuration, "ada", at("2026-11-19T12:00:00Z")).await.unwrap();
    for (id, name) in [("do-main/droplet/1", "web"), ("do-main/droplet/2", "db")] {
        let phase = Phase::Settled { at: Power::Stopped };
        let due_at = Some(at("2026-11-20T17:50:00Z"));
        store.save(Record { phase, due_at, handled: None, ..office(id, name) }).await.unwrap();
    }
    let shown = rows(&store, &[]).await.unwrap();
    let remark = |name: &str| shown.iter().find(|row| row.name == name).unwrap().remark.clone();
    let expected = "waits for db (not started yet), until Fri 19:00 CET at most";
    assert_eq!(remark("web").as_deref(), Some(expected));
    assert_eq!(remark("db"), None);
}

/// `web-1`, settled running, after a change to its record.
async fn remark_on(change: impl FnOnce(&mut Record)) -> Option<String> {
    let store = full_store().await;
    let mut record = office("do-main/droplet/1", "web-1");
    record.phase = Phase::Settled { at: Power::Running };
    change(&mut record);
    record.revision = store.record(&record.reference).await.unwrap().unwrap().revision;
    store.save(record).await.unwrap();
    rows(&store, &["web-1"]).await.unwrap().remove(0).remark
}

#[tokio::test]
async fn what_runs_on_less_or_against_its_edge_is_remarked() {
    assert_eq!(remark_on(|_| ()).await, None);
    let own = MachineSize { plan: "g-2vcpu-8gb".to_owned(), ..MachineSize::default() };
    let small = remark_on(|record| record.saved = Some(SavedState::Machine(own)));
    let small = small.await.unwrap();
    assert_eq!(small, "on its small plan: its next start puts g-2vcpu-8gb back");
    let ended = |ending, now: Timestamp| {
        remark_on(move |record| {
            let entry = HistoryEntry::unasked(record, Cause::Schedule, ending, now);
            record.last = entry.last(record);
        })
    };
    let left = ended(Ending::LeftRunning, now()).await;
    assert_eq!(left.as_deref(), Some("left running"));
    let left = ended(Ending::TooLate, now()).await;
    assert_eq!(left.as_deref(), Some("left running, too late"));
    assert_eq!(ended(Ending::AlreadyThere, now()).await, None);
}

/// `web-1` after its token was revoked during the night: off, and due since 08:00.
async fn overdue_store() -> Store {
    let store = full_store().await;
    let mut record = office("do-main/droplet/1", "web-1");
    record.phase = Phase::Settled { at: Power::Stopped };
    record.attempts = 44;
    record.last_error = Some("token refused: no such token".into());
    if let Some(handled) = &mut record.handled {
        handled.desired = Some(Desired::Stopped);
        handled.key.instant = at("2026-11-19T18:00:00Z");
    }
    let stored = store.record(&record.reference).await.unwrap().unwrap();
    record.revision = stored.revision;
    store.save(record).await.unwrap();
    store
}

#[tokio::test]
async fn what_is_overdue_is_counted_named_and_explained() {
    let store = overdue_store().await;
    let text = tables(&store, &["--needs-person"], None).await;
    insta::assert_snapshot!(text);
    let rows = rows(&store, &["web-1"]).await.unwrap();
    fits(&rows);
    assert_eq!(rows[0].overdue_since, Some(at("2026-11-20T07:00:00Z")));
    let why = rows[0].needs_person().map(|problem| problem.what.as_str());
    assert_eq!(
        why,
        Some(
            "overdue: should have been running since Fri 08:00 CET; failed 44 times in a row, last \
             error: token refused: no such token"
        )
    );
}

#[tokio::test]
async fn a_token_that_fails_needs_a_person_though_no_resource_does() {
    let store = full_store().await;
    let exit = async |arguments: &[&str]| {
        let args = args(arguments);
        let view = View::of(&args, &Context::plain(), &store, None, now()).await.unwrap();
        (view.exit(), view.in_a_line())
    };
    let (code, answer) = exit(&["--account", "hz-eu"]).await;
    assert_eq!(code, Exit::NeedsPerson);
    assert_eq!(
        answer,
        "1 resource: 0 running, 1 stopped, 0 under way; account hz-eu: token refused"
    );
    let (code, answer) = exit(&["--account", "hz-eu", "--needs-person"]).await;
    assert_eq!(code, Exit::NeedsPerson);
    assert_eq!(answer, "No resource matches; account hz-eu: token refused.");
    assert_eq!(exit(&["build"]).await.0, Exit::Done);
    assert_eq!(exit(&["--account", "old"]).await.0, Exit::Done);
    assert_eq!(exit(&["--accounts"]).await.0, Exit::NeedsPerson);
    let args = args(&["--accounts", "--needs-person"]);
    let view = View::of(&args, &Context::plain(), &store, None, now()).await.unwrap();
    let named = view.account_rows().into_iter().map(|row| row.account);
    assert!(named.eq(["hz-eu".parse().unwrap()]));
}

#[tokio::test]
async fn what_needs_a_person_comes_first_and_is_red_where_there_are_colours() {
    let store = overdue_store().await;
    let arguments = args(&[]);
    let mut view = View::of(&arguments, &Context::plain(), &store, None, now()).await.unwrap();
    view.screen.style = Style { colours: true, width: None };
    let red = |text: String| {
        let red = text.lines().filter(|line| line.contains("\u{1b}[91m"));
        red.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(red(view.table(&view.rows)), ["newcomer", "web-1", "workers"]);
    let first: Vec<_> = view.rows[..3].iter().map(|row| row.name.as_str()).collect();
    assert_eq!(first, ["newcomer", "web-1", "workers"]);
    let accounts = red(view.screen.table(&view.account_rows()));
    assert_eq!(accounts.len(), 1);
    view.screen.style = Style::PLAIN;
    assert!(!view.table(&view.rows).contains('\u{1b}'));
}

#[tokio::test]
async fn a_narrow_terminal_has_a_line_for_each_row() {
    let store = full_store().await;
    for width in [80, 120] {
        let text = tables(&store, &[], Some(width)).await;
        let (rows, _) = text.split_once("\n\n").unwrap();
        assert_eq!(rows.lines().count(), 1 + 7, "{text}");
        let widest = rows.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= width.into(), "{text}");
    }
    insta::assert_snapshot!(tables(&store, &["orders", "workers"], Some(80)).await);
}

/// Checks that what is printed has the shape that is served.
#[track_caller]
fn fits<T: serde::Serialize + schemars::JsonSchema>(printed: &[T]) {
    let schema = crate::shape::schema_of::<Vec<T>>();
    let printed = serde_json::to_value(printed).unwrap();
    jsonschema::validate(schema.as_value(), &printed).unwrap();
}

#[tokio::test]
async fn programs_read_a_row_of_json_with_these_fields() {
    let store = full_store().await;
    let rows = rows(&store, &["lonely", "orders", "workers"]).await.unwrap();
    fits(&rows);
    insta::assert_snapshot!(serde_json::to_string_pretty(&rows).unwrap());
    let args = args(&["--accounts"]);
    let view = View::of(&args, &Context::plain(), &store, None, now()).await.unwrap();
    fits(&view.account_rows());
    insta::assert_snapshot!(serde_json::to_string_pretty(&view.account_rows()).unwrap());
}

#[tokio::test]
async fn filters_leave_what_is_asked_for() {
    let store = full_store().await;
    let check = async |arguments: &[&str], expected: &[&str]| {
        assert_eq!(names(&store, arguments).await, expected, "{arguments:?}");
    };
    check(&["--schedule", "nightly"], &["build"]).await;
    check(&["--account", "old"], &["left-behind"]).await;
    let office = ["newcomer", "workers", "orders", "web-1"];
    check(&["--account", "do-main", "--scheduled"], &office).await;
    check(&["--needs-person"], &["newcomer", "workers"]).await;
    check(&["build", "do-main/droplet/1"], &["build", "web-1"]).await;
    check(&["--schedule", "nightly", "--needs-person"], &[]).await;
    check(&["--unscheduled"], &["lonely", "shop-prod"]).await;
    check(&["--tag", "OFFHOURS:off*"], &[&office[..], &["shop-prod"]].concat()).await;
    check(
        &["--sort", "name", "--account", "do-main", "--scheduled"],
        &["newcomer", "orders", "web-1", "workers"],
    )
    .await;
}

#[tokio::test]
async fn names_that_are_unknown_are_answered_with_what_is_near() {
    let store = full_store().await;
    store.save(office("do-main/droplet/5", "web-1")).await.unwrap();
    for (arguments, expected) in [
        (["wbe-2"].as_slice(), "no resource `wbe-2`; `offhours status` lists those that are known"),
        (&["ordres"], "no resource `ordres`; did you mean `orders`?"),
        (
            &["web-1"],
            "`web-1` is the name of several: write do-main/droplet/1 or do-main/droplet/5",
        ),
        (
            &["do-main/droplet/99"],
            "no inventory has seen do-main/droplet/99; `offhours status --accounts` shows when the \
             last one was",
        ),
        (
            &["do-mian/droplet/1"],
            "no inventory has seen do-mian/droplet/1; there is no account `do-mian`; did you mean \
             `do-main`?",
        ),
        (&["--schedule", "ofice"], "there is no schedule `ofice`; did you mean `office`?"),
        (
            &["--tag", "offhours:ofice"],
            "nothing has the tag `offhours:ofice`; did you mean `offhours:office`?",
        ),
        (&["--account", "hz-uu"], "there is no account `hz-uu`; did you mean `hz-eu`?"),
    ] {
        assert_eq!(refusal(&store, arguments).await, expected);
    }
}

#[tokio::test]
async fn a_name_means_what_exists_and_the_dead_are_shown_for_days() {
    let store = full_store().await;
    let gone = |number: u32, hours| Record {
        phase: Phase::Gone { since: now() - SignedDuration::from_hours(hours) },
        ..office(&format!("do-main/droplet/{number}"), "preview")
    };
    for record in [gone(11, 80), gone(12, 30), gone(13, 6)] {
        store.save(record).await.unwrap();
    }
    let of_name = async |arguments: &[&str]| {
        let rows = rows(&store, arguments).await.unwrap();
        let rows = rows.into_iter().filter(|row| row.name == "preview");
        rows.map(|row| row.resource.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(
        refusal(&store, &["preview"]).await,
        "`preview` is gone: write do-main/droplet/12 or do-main/droplet/13; `offhours forget` \
         deletes what is recorded"
    );
    store.save(office("do-main/droplet/14", "preview")).await.unwrap();
    assert_eq!(of_name(&["preview"]).await, ["do-main/droplet/14"]);
    let shown = [12, 13, 14].map(|number| format!("do-main/droplet/{number}"));
    assert_eq!(of_name(&[]).await, shown);
    assert_eq!(of_name(&["--account", "do-main"]).await.len(), 4);
    let text = tables(&store, &[], None).await;
    assert!(text.contains("1 gone for days, which --account shows"), "{text}");
    store.save(Record { name: "past".to_owned(), ..gone(15, 72) }).await.unwrap();
    let refusal = refusal(&store, &["past"]).await;
    assert!(refusal.ends_with("account is not configured: write do-main/droplet/15"), "{refusal}");
}

#[tokio::test]
async fn an_empty_store_says_so() {
    let store = store().await;
    let text = tables(&store, &[], None).await;
    assert!(
        text.ends_with(
            "Nothing is known yet: --refresh takes the first inventory; account do-main: not \
             listed yet; account hz-eu: not listed yet."
        ),
        "{text}"
    );
    let text = tables(&store, &["--schedule", "nightly"], None).await;
    assert!(text.contains("No resource matches; account"), "{text}");
}

/// Stores enough data for several of DynamoDB's 1 MB pages.
async fn many(store: &Store, count: usize) {
    for number in 1..=count {
        let mut record = office(&format!("do-main/droplet/{number}"), &format!("web-{number}"));
        record.last_error = Some("x".repeat(900).into());
        store.save(record).await.unwrap();
    }
}

#[tokio::test]
async fn many_records_are_shown_in_one_table_and_all_of_them() {
    let store = store().await;
    many(&store, 3_000).await;
    let rows = rows(&store, &[]).await.unwrap();
    let mut expected: Vec<_> = (1..=3_000).map(|n| format!("do-main/droplet/{n}")).collect();
    expected.sort();
    let shown: Vec<_> = rows.iter().map(|row| row.resource.to_string()).collect();
    assert_eq!(shown, expected);

    let table = tables(&store, &["--wide"], None).await;
    let headings = table.lines().filter(|line| line.contains("Schedule")).count();
    assert_eq!(headings, 1);
    let lines = table.lines().filter(|line| line.contains("do-main/droplet/")).count();
    assert_eq!(lines, 3_000);
}

#[tokio::test]
async fn a_picture_has_as_many_lines_as_the_terminal() {
    let store = full_store().await;
    let args = args(&["--watch"]);
    let view = View::of(&args, &Context::plain(), &store, None, now()).await.unwrap();
    let every = Duration::from_secs(5);
    let mut top = 0;
    let frame = view.frame(12, &mut top, every);
    assert_eq!(view.rows.len(), 7);
    let lines: Vec<_> = frame.lines().map(str::trim_end).collect();
    insta::assert_snapshot!(lines.join("\n"));
    assert_eq!(lines.len(), 12);
    // What lies below is scrolled to, and no further than the last row.
    top = 99;
    let end = view.frame(12, &mut top, every);
    assert_eq!(end.lines().count(), 12);
    assert!(end.contains(&format!("… {top} above, 0 below")), "{end}");
    assert_ne!(frame, end);
    let frame = view.frame(40, &mut top, every);
    assert_eq!(top, 0);
    assert!(!frame.contains('…'), "{frame}");
    for record in ["web-1", "newcomer", "build"] {
        assert!(frame.contains(record), "{frame}");
    }
}

#[tokio::test]
async fn a_picture_with_a_long_pause_fits_the_terminal_too() {
    let store = full_store().await;
    let args = args(&["--watch"]);
    let mut view = View::of(&args, &Context::plain(), &store, None, now()).await.unwrap();
    view.screen.style = Style { colours: false, width: Some(80) };
    let pause = Pause {
        scope: PauseScope::Everything,
        starts: false,
        set_at: now(),
        ends_at: now() + SignedDuration::from_hours(1),
        by: "ada".to_owned(),
        why: "the move to another region takes the whole of this evening".to_owned(),
    };
    view.in_force.overrides = view.in_force.overrides.with_pauses([pause]);
    let frame = view.frame(16, &mut 0, Duration::from_secs(5));
    assert_eq!(frame.lines().count(), 16);
    assert!(frame.lines().all(|line| line.chars().count() <= 80), "{frame}");
    assert!(frame.contains("`offhours resume` ends"), "{frame}");
}

#[test]
fn watching_is_for_terminals_and_json_is_for_programs() {
    assert!(Line::try_parse_from(["status", "--watch=0"]).is_err());
    assert_eq!(args(&["--watch", "web-1"]).watch, Some(5));
    assert_eq!(args(&["--watch=60"]).watch, Some(60));
}
