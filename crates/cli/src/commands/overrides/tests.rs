use clap::Parser as _;
use domain::{
    configuration::{Generation, OverrideTarget},
    record::UntilTag,
    record::{EdgeKey, Handled, Phase, Rank},
    resource::{Power, Resource},
};
use insta::assert_snapshot;
use jiff::SignedDuration;
use store::Store;

use super::*;
use crate::{
    fixtures::{handled, machine, reference, store_with},
    print::Screen,
};

const FILE: &str = r#"
timezone = "Europe/Berlin"
protect = ["name:*-prod"]
accounts.hz-eu = { provider = "hetzner", token = "env:HZ_TOKEN" }
[schedules.office]
periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }]
[schedules.wake-up]
periods = [{ weekdays = "mon-fri", begin = "07:00" }]
[schedules.web]
periods = [{ begin = "06:00", end = "23:00" }]
"#;

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

#[test]
fn the_time_to_add_may_follow_the_resources() {
    let parts = |line: &str| {
        let words = ["offhours", "extend"].into_iter().chain(line.split(' '));
        let OverrideCommand::Extend(args) = Line::try_parse_from(words).ok()?.args.command else {
            return None;
        };
        let (targets, by) = args.parts().ok()?;
        Some((targets.resources.join(" "), by.duration().as_hours()))
    };
    assert_eq!(parts("web-1 ci 2h"), Some(("web-1 ci".to_owned(), 2)));
    assert_eq!(parts("web-1 --by 1d"), Some(("web-1".to_owned(), 24)));
    assert_eq!(parts("--schedule office --by 3h"), Some((String::new(), 3)));
    for line in ["web-1", "2h", "web-1 ci", "--schedule office"] {
        assert_eq!(parts(line), None, "{line}");
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Saturday, 13:15 in Berlin: the desired state of `office` is stopped.
fn saturday() -> Timestamp {
    at("2026-11-21T12:15:00Z")
}

fn resource(number: u32) -> OverrideTarget {
    OverrideTarget::Resource(reference(&format!("hz-eu/server/{number}")))
}

fn schedule(name: &str) -> OverrideTarget {
    OverrideTarget::Schedule(name.parse().unwrap())
}

/// A server tagged with `word` unless that is empty, and stopped on Friday evening.
fn server(number: u32, name: &str, word: &str) -> Record {
    let reference = reference(&format!("hz-eu/server/{number}"));
    let label = (!word.is_empty()).then(|| format!("offhours={word}"));
    let seen = Resource {
        name: name.to_owned(),
        tags: label.into_iter().collect(),
        ..machine(&reference.id, Power::Stopped)
    };
    let stopped = handled(at("2026-11-20T18:00:00Z"), Desired::Stopped, "office");
    Record {
        // An opted-out server follows no schedule.
        handled: (!word.is_empty()).then(|| Handled { schedule: word.parse().ok(), ..stopped }),
        ..Record::first_seen(reference, &seen)
    }
}

/// Three servers under `office` and a protected one, one under `wake-up` and one that follows
/// nothing.
fn servers() -> Vec<Record> {
    let running = Phase::Settled { at: Power::Running };
    vec![
        server(1, "web-1", "office"),
        server(2, "web-2", "office"),
        Record { phase: running, ..server(3, "db", "office") },
        server(4, "api-prod", "office"),
        server(5, "alarm", "wake-up"),
        server(6, "stray", ""),
    ]
}

/// An override by ada, set an hour ago, or a day before its end if that is earlier.
fn by_ada(target: OverrideTarget, desired: Desired, ends_at: &str) -> Override {
    let an_hour_ago = saturday() - SignedDuration::from_hours(1);
    Override {
        target,
        desired,
        set_at: an_hour_ago.min(at(ends_at) - SignedDuration::from_hours(24)),
        ends_at: at(ends_at),
        by: "ada".to_owned(),
        why: None,
        before: None,
    }
}

async fn stored(records: Vec<Record>, overrides: impl IntoIterator<Item = Override>) -> Store {
    let store = store_with(FILE).await;
    for record in records {
        store.save(record).await.unwrap();
    }
    let author = Author::from("ada");
    for one in overrides {
        let set = author.does(domain::activity::Action::set(&one), one.set_at);
        store.replace_override(&one, None, &set).await.unwrap();
    }
    store
}

/// What a command line leads to, as bob, on Saturday.
struct Planned {
    selected: Selected,
    changes: Vec<Change>,
    question: Option<String>,
}

impl Planned {
    fn screen(&self) -> Screen {
        Context::plain().screen(&*self.selected.in_force.configuration, saturday())
    }

    fn answer(&self) -> Answer {
        Answer::of(&self.changes, &self.selected, &self.screen(), false)
    }

    fn text(&self) -> String {
        self.answer().text(&self.screen())
    }

    fn only(&self) -> &Override {
        assert_eq!(self.changes.len(), 1);
        &self.changes[0].one
    }
}

async fn planned(store: &Store, line: &str) -> anyhow::Result<Planned> {
    let words = std::iter::once("override").chain(line.split(' '));
    // A word of a quoted text has a `_` in place of its blank.
    let args = Line::parse_from(words.map(|word| word.replace('_', " "))).args;
    let author = Author { by: "bob".into(), why: Some("a demonstration".to_owned()) };
    let (context, now) = (Context::plain(), saturday());
    let (whole, selected, changes) = match args.command {
        OverrideCommand::Running(ref args) | OverrideCommand::Stopped(ref args) => {
            let runs = line.starts_with("running");
            let request = Request {
                args,
                desired: if runs { Desired::Running } else { Desired::Stopped },
                until: args.end().unwrap(),
                author,
            };
            let selected = args.targets.select(store, now).await?;
            let changes = request.changes(&selected, &context, now)?;
            (args.targets.are_whole(), selected, changes)
        }
        OverrideCommand::Clear(args) => {
            let (selected, active) = meant(Names::read(store, now).await?, &args.targets)?;
            let changes = cleared(&active, &selected, now);
            (false, selected, changes)
        }
        OverrideCommand::Extend(args) => {
            let (targets, by) = args.parts()?;
            let (selected, active) = meant(Names::read(store, now).await?, &targets)?;
            let changes = extended(&active, by, &author)?;
            (targets.are_whole(), selected, changes)
        }
        OverrideCommand::List(_) => unreachable!("a list plans nothing"),
    };
    let screen = context.screen(&*selected.in_force.configuration, now);
    let question = question(&changes, &selected, whole, &screen);
    Ok(Planned { selected, changes, question })
}

async fn refused(store: &Store, line: &str) -> String {
    match planned(store, line).await {
        Ok(_) => panic!("`{line}` is not refused"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn the_answer_has_each_end_with_what_takes_over_and_the_rows_of_status() {
    let store = stored(servers(), []).await;
    let text = async |line| planned(&store, line).await.unwrap().text();
    assert_snapshot!(text("running web-1 --until 22:00").await, @"
    web-1: running until Sat 2026-11-21 22:00 CET, then office: stopped

    Name   Schedule  State    Next                   Remark
    web-1  office    stopped  stopped Sat 22:00 CET  override until Sat 22:00 CET (bob, a demonstration)
    ");
    assert_snapshot!(text("running alarm web-? --until next-edge").await, @"
    alarm: running until Mon 2026-11-23 07:00 CET, then wake-up: running
    web-1, web-2: running until Mon 2026-11-23 08:00 CET, then office: running

    Name   Schedule  State    Next                   Remark
    alarm  wake-up   stopped  running Mon 07:00 CET  override until Mon 07:00 CET (bob, a demonstration)
    web-1  office    stopped  running Mon 08:00 CET  override until Mon 08:00 CET (bob, a demonstration)
    web-2  office    stopped  running Mon 08:00 CET  override until Mon 08:00 CET (bob, a demonstration)
    ");
    assert_snapshot!(text("running web-1 alarm stray --until today").await, @"
    web-1: running until Sun 2026-11-22 00:00 CET, then office: stopped
    alarm: running until Sun 2026-11-22 00:00 CET, then wake-up: any
    stray: running until Sun 2026-11-22 00:00 CET, then as it is

    Name   Schedule  State    Next                   Remark
    web-1  office    stopped  stopped Sun 00:00 CET  override until Sun 00:00 CET (bob, a demonstration)
    alarm  wake-up   stopped  running Mon 07:00 CET  override until Sun 00:00 CET (bob, a demonstration)
    stray            stopped                         override until Sun 00:00 CET (bob, a demonstration)
    ");
    assert_snapshot!(text("stopped --all --from sunday_22:00 --for 8h").await, @"
    schedule office: stopped from Sun 2026-11-22 22:00 CET until Mon 2026-11-23 06:00 CET, then office: stopped
    schedule wake-up: stopped from Sun 2026-11-22 22:00 CET until Mon 2026-11-23 06:00 CET, then wake-up: any
    schedule web: stopped from Sun 2026-11-22 22:00 CET until Mon 2026-11-23 06:00 CET, then web: running

    Name   Schedule  State    Next
    web-1  office    stopped  stopped Sun 22:00 CET
    web-2  office    stopped  stopped Sun 22:00 CET
    db     office    running  stopped Sun 22:00 CET
    alarm  wake-up   stopped  stopped Sun 22:00 CET
    ");
}

#[tokio::test]
async fn an_override_of_a_schedule_shows_all_that_follow_it_and_replaces_the_present_one() {
    let held = Record { held: true, handled: None, ..server(7, "new", "office") };
    let records: Vec<_> = servers().into_iter().chain([held]).collect();
    let overrides = [
        by_ada(resource(2), Desired::Stopped, "2026-11-22T08:00:00Z"),
        by_ada(schedule("office"), Desired::Stopped, "2026-11-21T15:00:00Z"),
    ];
    let store = stored(records, overrides.clone()).await;
    let planned = planned(&store, "running --schedule office --until friday").await.unwrap();
    assert_snapshot!(planned.text(), @"
    schedule office: running until Sat 2026-11-28 00:00 CET, then office: stopped

    Name   Schedule  State    Next                          Remark
    web-1  office    stopped  stopped 2026-11-28 00:00 CET  override of its schedule until 2026-11-28 00:00 CET (bob, a demonstration)
    web-2  office    stopped  running Sun 09:00 CET         override until Sun 09:00 CET (ada)
    db     office    running  stopped 2026-11-28 00:00 CET  override of its schedule until 2026-11-28 00:00 CET (bob, a demonstration)
    new    office    stopped  stopped 2026-11-28 00:00 CET  held: too many joined schedules at once
    ");
    assert!(planned.answer().needs_person());
    assert_eq!(planned.changes[0].replaces.as_ref(), Some(&overrides[1]));
}

#[tokio::test]
async fn what_stops_much_or_for_long_or_is_started_by_nothing_is_asked_about() {
    let store = stored(servers(), []).await;
    for (line, expected) in [
        ("stopped web-1 --for 2h", None),
        ("running --all --for 2h", None),
        (
            "stopped --schedule office --until sunday",
            Some("Stop 3 resources until Mon 2026-11-23 00:00 CET: web-1, web-2, db?"),
        ),
        (
            "stopped --account hz-eu --for 1h",
            Some("Stop 4 resources until Sat 2026-11-21 14:15 CET: web-1, web-2, db, alarm?"),
        ),
        (
            "stopped stray --for 1h",
            Some(
                "No schedule will start stray again. Stop 1 resource until \
                 Sat 2026-11-21 14:15 CET: stray?",
            ),
        ),
        (
            "running web-1 --for 31d",
            Some("Longer than 30 days: until Tue 2026-12-22 13:15 CET. Continue?"),
        ),
        (
            "stopped --schedule wake-up --from monday --for 31d",
            Some(
                "Longer than 30 days: until Thu 2026-12-24 00:00 CET. Stop 1 resource from Mon \
                 2026-11-23 00:00 CET until Thu 2026-12-24 00:00 CET: alarm?",
            ),
        ),
        ("stopped --schedule web --for 1h", None),
    ] {
        let planned = planned(&store, line).await.unwrap();
        assert_eq!(planned.question.as_deref(), expected, "{line}");
    }
}

#[tokio::test]
async fn clearing_ends_an_override_after_all_that_was_handled_under_it() {
    let one = Override {
        set_at: saturday(),
        ..by_ada(resource(1), Desired::Running, "2026-11-22T08:00:00Z")
    };
    for (handled, expected) in [
        (None, "2026-11-21T12:15:00.001Z"),
        (Some("2026-11-20T18:00:00Z"), "2026-11-21T12:15:00.001Z"),
        (Some("2026-11-21T12:15:02.5Z"), "2026-11-21T12:15:02.501Z"),
        // Its clock was wrong: following it would put this edge ahead of every other.
        (Some("2026-11-21T13:15:00Z"), "2026-11-21T12:15:00.001Z"),
    ] {
        let record = Record {
            handled: handled.map(|instant| Handled {
                generation: Generation(1),
                key: EdgeKey { instant: at(instant), rank: Rank::Manual },
                desired: Some(Desired::Running),
                schedule: None,
            }),
            ..server(1, "web-1", "office")
        };
        let store = stored(vec![record], [one.clone()]).await;
        let planned = planned(&store, "clear web-1").await.unwrap();
        assert_eq!(planned.only().ends_at, at(expected), "{handled:?}");
        assert_eq!(planned.changes[0].replaces.as_ref(), Some(&one));
    }
}

#[tokio::test]
async fn what_is_set_and_cleared_in_one_second_leaves_nothing_to_see() {
    let one = Override {
        set_at: saturday() + SignedDuration::from_millis(1),
        ..by_ada(resource(1), Desired::Running, "2026-11-22T08:00:00Z")
    };
    let store = stored(servers(), [one]).await;
    assert_snapshot!(planned(&store, "clear web-1").await.unwrap().text(), @"
    web-1: no longer overridden, now office: stopped

    Name   Schedule  State    Next
    web-1  office    stopped  running Mon 08:00 CET
    ");
}

#[tokio::test]
async fn an_override_begins_after_the_one_that_it_replaces() {
    let store = stored(servers(), []).await;
    let first = planned(&store, "running web-1 --until 22:00").await.unwrap();
    assert_eq!((first.only().set_at, &first.changes[0].replaces), (saturday(), &None));
    let first = first.only().clone();
    let store = stored(servers(), [first.clone()]).await;
    let next = planned(&store, "stopped web-1 --until 22:00").await.unwrap();
    assert_eq!(next.only().set_at, at("2026-11-21T12:15:00.001Z"));
    assert_eq!(next.changes[0].replaces, Some(first));
}

#[tokio::test]
async fn what_is_never_touched_cannot_be_overridden_and_a_pattern_leaves_it_out() {
    let gone = Phase::Gone { since: saturday() };
    let tags = ["offhours=web", "offhours=wake-up"].map(str::to_owned).into();
    let unsupported = Some("Kafka cannot be resized".to_owned());
    let records = vec![
        Record { phase: gone, ..server(1, "web-1", "office") },
        server(2, "web-2", "off"),
        Record { tags, ..server(3, "db", "") },
        server(4, "api-prod", "office"),
        Record { unsupported, ..server(5, "events", "") },
        server(6, "web-6", "office"),
    ];
    let store = stored(records, []).await;
    for (number, reason) in [
        (1, "it is gone at the provider"),
        (2, "opted out by a tag on the resource"),
        (3, "conflict: wake-up and web both name it by tag"),
        (4, "protected by `name:*-prod`"),
        (5, "Kafka cannot be resized"),
    ] {
        let name = format!("hz-eu/server/{number}");
        for line in
            [format!("running {name} --until 22:00"), format!("running web-6 {name} --for 1h")]
        {
            let expected = format!("{name}: {reason}; nothing was set");
            assert_eq!(refused(&store, &line).await, expected);
        }
    }
    let all = planned(&store, "running * --for 1h").await.unwrap();
    assert_eq!(all.only().target, resource(6));
    let none = refused(&store, "running *-prod --for 1h").await;
    assert!(none.contains("protected by `name:*-prod`"), "{none}");
}

#[tokio::test]
async fn an_override_may_begin_later_and_its_end_is_sought_from_there() {
    let in_force = by_ada(resource(2), Desired::Running, "2026-11-21T14:00:00Z");
    let store = stored(servers(), [in_force]).await;
    for (line, expected) in [
        ("--from monday --until tuesday_02:00", ["2026-11-22T23:00:00Z", "2026-11-24T01:00:00Z"]),
        ("--from sunday_22:00 --until 06:00", ["2026-11-22T21:00:00Z", "2026-11-23T05:00:00Z"]),
        ("--from sunday_22:00 --for 2h", ["2026-11-22T21:00:00Z", "2026-11-22T23:00:00Z"]),
        ("--from next-edge --until next-edge", ["2026-11-23T07:00:00Z", "2026-11-23T18:00:00Z"]),
    ] {
        let planned = planned(&store, &format!("running web-1 {line}")).await.unwrap();
        let one = planned.only();
        assert_eq!([one.set_at, one.ends_at], expected.map(at), "{line}");
    }
    for (line, expected) in [
        (
            "running web-1 --from friday_08:00 --until 2026-11-24",
            "hz-eu/server/1: `2026-11-24` is Wed 2026-11-25 00:00 CET, which is not after Fri \
             2026-11-27 08:00 CET",
        ),
        (
            "running web-1 --until 2037-01-01",
            "hz-eu/server/1: `2037-01-01` is more than ten years away",
        ),
        (
            "running web-1 --until 2026-11-20",
            "hz-eu/server/1: `2026-11-20` is Sat 2026-11-21 00:00 CET, which is not after Sat \
             2026-11-21 13:15 CET",
        ),
        (
            "running web-2 --from monday --for 1h",
            "hz-eu/server/2: it is overridden until Sat 2026-11-21 15:00 CET, and the new \
             override would end that now: `offhours override clear` it first, or set the new one \
             later",
        ),
        (
            "running stray --until next-edge",
            "hz-eu/server/6: `next-edge` needs a schedule: write a \
            time such as 2h, 21:00 or \"friday 18:00\"",
        ),
    ] {
        assert_eq!(refused(&store, line).await, expected);
    }
}

#[tokio::test]
async fn an_override_that_is_yet_to_begin_is_replaced_by_no_other() {
    let later = |target| Override {
        set_at: at("2026-11-22T07:00:00Z"),
        ..by_ada(target, Desired::Running, "2026-11-22T17:00:00Z")
    };
    let schedule = OverrideTarget::Schedule("office".parse().unwrap());
    let store = stored(servers(), [later(resource(1)), later(schedule)]).await;
    for line in ["running web-1 --for 1h", "stopped web-1 --from monday --for 1h"] {
        assert_eq!(
            refused(&store, line).await,
            "hz-eu/server/1: ada has it running from Sun 2026-11-22 08:00 CET until Sun 2026-11-22 \
             18:00 CET, and the new override would take the place of that: `offhours override \
             clear` it first"
        );
    }
    let found = refused(&store, "running --schedule office --for 2h").await;
    assert!(found.ends_with("it first, or override resources of it by name"), "{found}");
    assert!(planned(&store, "running web-2 --for 2h").await.is_ok());
}

#[tokio::test]
async fn an_override_that_begins_later_remembers_the_one_that_has_just_ended() {
    let ended = by_ada(resource(1), Desired::Running, "2026-11-21T12:14:00Z");
    let store = stored(servers(), [ended.clone()]).await;
    let later = planned(&store, "running web-1 --from monday --for 1h").await.unwrap();
    assert_eq!(later.only().before.as_deref(), Some(&ended));
    let now = planned(&store, "running web-1 --for 1h").await.unwrap();
    assert_eq!(now.only().before, None);
}

#[tokio::test]
async fn an_extension_adds_to_the_present_end_and_begins_nothing_anew() {
    let overrides = [
        by_ada(resource(1), Desired::Running, "2026-11-21T14:00:00Z"),
        by_ada(schedule("web"), Desired::Running, "2026-11-22T08:00:00Z"),
    ];
    let store = stored(servers(), overrides.clone()).await;
    let longer = planned(&store, "extend web-1 --by 2h").await.unwrap();
    let one = longer.only();
    assert_eq!((one.set_at, one.ends_at), (overrides[0].set_at, at("2026-11-21T16:00:00Z")));
    assert_eq!((one.by.as_str(), one.why.as_deref()), ("bob", Some("a demonstration")));
    assert_eq!(longer.changes[0].replaces.as_ref(), Some(&overrides[0]));
    let both = planned(&store, "extend --all --by 1d").await.unwrap();
    assert_snapshot!(both.text(), @"
    web-1: running until Sun 2026-11-22 15:00 CET, then office: stopped
    schedule web: running until Mon 2026-11-23 09:00 CET, then web: running

    Name   Schedule  State    Next                   Remark
    web-1  office    stopped  stopped Sun 15:00 CET  override until Sun 15:00 CET (bob, a demonstration)
    ");
    for (line, expected) in
        [("extend web-2 --by 2h", "no override of `web-2` is active; did you mean `web-1`?")]
    {
        let refused = refused(&store, line).await;
        assert!(refused.starts_with(expected), "{refused}");
    }
}

#[tokio::test]
async fn only_what_is_overridden_can_be_cleared_known_or_not() {
    let until = "2026-11-22T08:00:00Z";
    let targets = [resource(1), resource(99), schedule("web"), schedule("removed")];
    let overrides = targets.map(|target| by_ada(target, Desired::Running, until));
    let store = stored(servers(), overrides).await;
    for (line, expected) in [
        ("clear web-1", vec![resource(1)]),
        ("clear hz-eu/server/99 web-1", vec![resource(1), resource(99)]),
        ("clear hz-eu/*", vec![resource(1), resource(99)]),
        ("clear --schedule removed", vec![schedule("removed")]),
        ("clear --account hz-eu", vec![resource(1), resource(99)]),
        ("clear --all", vec![resource(1), resource(99), schedule("removed"), schedule("web")]),
    ] {
        let planned = planned(&store, line).await.unwrap();
        let cleared: Vec<_> = planned.changes.into_iter().map(|one| one.one.target).collect();
        assert_eq!(cleared, expected, "{line}");
    }
    for (line, expected) in [
        ("clear web-11", "no override of `web-11` is active; did you mean `web-1`?"),
        (
            "clear --schedule office",
            "no override of schedule office is active; the active overrides are web-1, \
             hz-eu/server/99, --schedule removed, --schedule web",
        ),
    ] {
        assert_eq!(refused(&store, line).await, expected);
    }
    let none = refused(&stored(servers(), []).await, "clear --all").await;
    assert_eq!(none, "no override of anything is active; there are no active overrides");
}

#[tokio::test]
async fn a_list_has_what_is_active() {
    let overrides = [
        by_ada(resource(1), Desired::Running, "2026-11-22T08:00:00Z"),
        by_ada(resource(6), Desired::Stopped, "2026-11-21T12:15:01Z"),
        by_ada(schedule("office"), Desired::Stopped, "2026-11-21T12:15:00Z"),
    ];
    let in_force = stored(servers(), overrides).await.in_force().await.unwrap();
    let list = rows(&in_force, &servers(), saturday());
    let screen = Context::plain().screen(&*in_force.configuration, saturday());
    assert_snapshot!(screen.table(&list), @"
    Target  Desired  Since          Until          Then             By
    stray   stopped  Fri 13:15 CET  Sat 13:15 CET  as it is         ada
    web-1   running  Sat 09:00 CET  Sun 09:00 CET  office: stopped  ada
    ");
    assert_snapshot!(serde_json::to_string_pretty(&list[1]).unwrap(), @r#"
    {
      "target": {
        "resource": "hz-eu/server/1"
      },
      "desired": "running",
      "set_at": "2026-11-21T08:00:00Z",
      "ends_at": "2026-11-22T08:00:00Z",
      "by": "ada",
      "name": "web-1",
      "active": true,
      "follows": "office",
      "then": "stopped"
    }
    "#);
}

#[tokio::test]
async fn a_list_has_what_tags_keep_running() {
    let in_force = stored(servers(), []).await.in_force().await.unwrap();
    let mut servers = servers();
    for server in &mut servers {
        let seen_at = at("2026-11-21T11:00:00Z");
        server.until_tags = vec![UntilTag { text: "2h".to_owned(), seen_at, gone_at: None }];
        server.opted_in = server.name == "web-1" || server.name == "stray";
    }
    let list = rows(&in_force, &servers, saturday());
    let screen = Context::plain().screen(&*in_force.configuration, saturday());
    assert_snapshot!(screen.table(&list), @"
    Target  Desired  Since          Until          Then             By
    web-1   running  Sat 12:00 CET  Sat 14:00 CET  office: stopped  label offhours-until: 2h
    ");
}

#[tokio::test]
async fn what_a_tag_keeps_running_is_changed_at_the_provider() {
    let mut servers = servers();
    for server in &mut servers {
        let seen_at = at("2026-11-21T11:00:00Z");
        server.until_tags = vec![UntilTag { text: "2h".to_owned(), seen_at, gone_at: None }];
        server.opted_in = server.name.starts_with("web");
    }
    let ada = by_ada(resource(2), Desired::Running, "2026-11-21T18:00:00Z");
    let store = stored(servers.clone(), [ada]).await;
    let kept = "web-1 is kept running by its label offhours-until (2h): change or remove that at the \
                provider";
    for line in ["clear web-1", "clear web-1 web-2", "extend web-1 2h", "clear w*-1"] {
        assert_eq!(refused(&store, line).await, kept, "{line}");
    }
    for line in ["clear --all", "clear web-*", "extend --account hz-eu --by 2h", "clear web-2"] {
        assert_eq!(planned(&store, line).await.unwrap().only().target, resource(2), "{line}");
    }
    let store = stored(servers, []).await;
    let both = refused(&store, "clear --all").await;
    assert!(
        both.starts_with("web-1 is kept running by its label offhours-until (2h), web-2 "),
        "{both}"
    );
    let unknown = refused(&store, "clear web-3").await;
    assert_eq!(unknown, "no override of `web-3` is active; did you mean `web-1`?");
}

#[tokio::test]
async fn every_answer_fits_the_schema_that_is_served() {
    let schema = jsonschema::validator_for(crate::shape::schema_of::<Answer>().as_value()).unwrap();
    let store =
        stored(servers(), [by_ada(resource(2), Desired::Stopped, "2026-11-22T08:00:00Z")]).await;
    for line in [
        "running stray --until 22:00",
        "stopped --all --until next-edge",
        "extend web-2 --by 1h",
        "clear web-2",
    ] {
        let shown = serde_json::to_value(planned(&store, line).await.unwrap().answer()).unwrap();
        schema.validate(&shown).unwrap();
        for key in shown.as_object().unwrap().keys() {
            let mut without = shown.clone();
            without.as_object_mut().unwrap().remove(key);
            assert!(!schema.is_valid(&without), "without {key}");
        }
    }
}
