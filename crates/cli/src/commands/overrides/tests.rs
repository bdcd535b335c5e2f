use std::collections::BTreeSet;

use domain::{
    activity::Author,
    configuration::{Configuration, Generation, Overrides},
    record::{EdgeKey, Handled, Phase, Rank, Record},
    resource::{Power, Resource},
};
use insta::assert_snapshot;
use jiff::tz::TimeZone;

use super::*;
use crate::{
    configuration_file,
    fixtures::{handled, machine, reference},
};

const FILE: &str = r#"
timezone = "Europe/Berlin"
protect = ["name:*-prod"]
[accounts.hz-eu]
provider = "hetzner"
token = "env:HZ_TOKEN"
[schedules.office-hours]
periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }]
[schedules.wake-up]
periods = [{ weekdays = "mon-fri", begin = "07:00" }]
[schedules.web]
periods = [{ begin = "06:00", end = "23:00" }]
"#;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Saturday, 13:15 in Berlin: the desired state of `office-hours` is stopped.
fn saturday() -> Timestamp {
    at("2026-11-21T12:15:00Z")
}

fn new_york() -> TimeZone {
    TimeZone::get("America/New_York").unwrap()
}

fn resource(name: &str) -> Target {
    Target::Resource(reference(name))
}

fn schedule(name: &str) -> Target {
    Target::Schedule(name.parse().unwrap())
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
    let friday = at("2026-11-20T18:00:00Z");
    Record {
        handled: (!word.is_empty()).then(|| Handled {
            // An opted-out server follows no schedule.
            schedule: word.parse().ok(),
            ..handled(friday, Desired::Stopped, "office-hours")
        }),
        ..Record::first_seen(reference, &seen)
    }
}

fn running(record: Record) -> Record {
    Record { phase: Phase::Settled { at: Power::Running }, ..record }
}

/// The stored state that a test starts from.
struct Stored {
    configuration: Configuration,
    overrides: Overrides,
    records: Vec<Record>,
}

/// Three servers under `office-hours` and a protected one, one under `wake-up` and one that follows
/// nothing.
fn stored() -> Stored {
    let parsed = configuration_file::parse(FILE, "FILE").unwrap();
    Stored {
        configuration: Configuration { generation: Generation(1), ..parsed.configuration },
        overrides: Overrides::default(),
        records: vec![
            server(1, "web-1", "office-hours"),
            server(2, "web-2", "office-hours"),
            running(server(3, "db", "office-hours")),
            server(4, "api-prod", "office-hours"),
            server(5, "alarm", "wake-up"),
            server(6, "stray", ""),
        ],
    }
}

impl Stored {
    fn state(&self) -> StoredState<'_> {
        StoredState {
            configuration: &self.configuration,
            overrides: &self.overrides,
            records: &self.records,
        }
    }

    /// Adds an override by ada, set an hour ago, or a day before its end if that is earlier.
    fn overriding(mut self, target: Target, desired: Desired, ends_at: &str) -> Self {
        let an_hour_ago = saturday() - SignedDuration::from_hours(1);
        let one = Override {
            target,
            desired,
            set_at: an_hour_ago.min(at(ends_at) - SignedDuration::from_hours(24)),
            ends_at: at(ends_at),
            by: "ada".to_owned(),
            why: None,
        };
        self.overrides = self.overrides.iter().cloned().chain([one]).collect();
        self
    }

    fn with(mut self, record: Record) -> Self {
        self.records.retain(|known| known.reference != record.reference);
        self.records.push(record);
        self
    }

    /// Works out the change that sets an override now, as bob.
    fn set(&self, target: Target, desired: Desired, until: &str) -> Result<Change, UsageError> {
        self.set_from(None, target, desired, until)
    }

    /// Works out the change that sets an override that begins later.
    fn set_from(
        &self,
        from: Option<&str>,
        target: Target,
        desired: Desired,
        until: &str,
    ) -> Result<Change, UsageError> {
        let begin = from.map(|from| from.parse::<End>().unwrap().as_begin());
        let request = OverrideRequest {
            target,
            desired,
            begin,
            end: until.parse().unwrap(),
            author: Author { by: "bob".into(), why: Some("a demonstration".to_owned()) },
        };
        request.change(self.state(), saturday(), &new_york())
    }

    fn report(&self, target: Target, desired: Desired, until: &str) -> String {
        let change = self.set(target, desired, until).unwrap();
        let zones = DisplayZones::of(self.state(), &change.one.target, new_york());
        change.report.text(&zones)
    }

    fn report_of_clearing(&self, target: &Target) -> String {
        let change = cleared(self.state(), target, saturday()).unwrap();
        change.report.text(&DisplayZones::of(self.state(), target, new_york()))
    }
}

#[test]
fn overriding_a_resource_shows_what_was_understood_and_what_takes_over() {
    let shown = stored().report(resource("hz-eu/server/1"), Desired::Running, "22:00");
    assert_snapshot!(shown, @r#"
    web-1 (hz-eu/server/1): running until Sat 2026-11-21 22:00 CET (Sat 2026-11-21 16:00 EST here)
      instead of  stopped, as office-hours wants it now
      now         stopped; will be started at the next tick
      then        office-hours takes over: stopped
      by          bob: a demonstration
    "#);
    let shown = stored().report(resource("hz-eu/server/1"), Desired::Running, "next-edge");
    assert_snapshot!(shown, @r#"
    web-1 (hz-eu/server/1): running until Mon 2026-11-23 08:00 CET (Mon 2026-11-23 02:00 EST here)
      instead of  stopped, as office-hours wants it now
      now         stopped; will be started at the next tick
      then        office-hours takes over: running too, so nothing happens
      by          bob: a demonstration
    "#);
    let shown = stored().report(resource("hz-eu/server/3"), Desired::Running, "mon 07:59");
    assert_snapshot!(shown, @r#"
    db (hz-eu/server/3): running until Mon 2026-11-23 07:59 CET (Mon 2026-11-23 01:59 EST here)
      instead of  stopped, as office-hours wants it now
      now         running; already as desired
      then        office-hours takes over: stopped
      by          bob: a demonstration
    "#);
    let shown = stored().report(resource("hz-eu/server/5"), Desired::Running, "today");
    assert_snapshot!(shown, @r#"
    alarm (hz-eu/server/5): running until Sun 2026-11-22 00:00 CET (Sat 2026-11-21 18:00 EST here)
      instead of  nothing: wake-up has no desired state now
      now         stopped; will be started at the next tick
      then        wake-up takes over and has no desired state then: nothing happens
      by          bob: a demonstration
    "#);
}

#[test]
fn what_follows_nothing_is_read_here_and_stays_as_it_is() {
    let shown = stored().report(resource("hz-eu/server/6"), Desired::Running, "22:00");
    assert_snapshot!(shown, @r#"
    stray (hz-eu/server/6): running until Sat 2026-11-21 22:00 EST
      instead of  nothing: it follows no schedule
      now         stopped; will be started at the next tick
      then        nothing takes over: it stays as it is
      by          bob: a demonstration
    "#);
}

#[test]
fn a_time_that_the_clock_repeats_is_pointed_out() {
    let shown = stored().report(schedule("web"), Desired::Running, "2027-10-31 02:30");
    assert_snapshot!(shown, @r#"
    schedule web: running until Sun 2027-10-31 02:30 CET (Sat 2027-10-30 21:30 EDT here)
      instead of  running, as web wants it now
      note        the clock shows 02:30 on Sun 2027-10-31 twice: understood as the last time, Sun 2027-10-31 02:30 CET
      now         nothing follows it at present
      then        web takes over: stopped
      by          bob: a demonstration
    "#);
}

#[test]
fn overriding_a_schedule_shows_all_that_follow_it() {
    let held = Record { held: true, handled: None, ..server(7, "new", "office-hours") };
    let stored = stored()
        .with(held)
        .overriding(resource("hz-eu/server/2"), Desired::Stopped, "2026-11-22T08:00:00Z")
        .overriding(schedule("office-hours"), Desired::Stopped, "2026-11-21T15:00:00Z");
    let shown = stored.report(schedule("office-hours"), Desired::Running, "friday");
    assert_snapshot!(shown, @r#"
    schedule office-hours: running until Sat 2026-11-28 00:00 CET (Fri 2026-11-27 18:00 EST here)
      instead of  stopped, as office-hours wants it now
      replaces    stopped until Sat 2026-11-21 16:00 CET (Sat 2026-11-21 10:00 EST here), by ada
      now         5 resources follow it
                  will be started at the next tick: web-1
                  under an override of its own: web-2 (stopped until Sun 2026-11-22 09:00 CET, by ada)
                  already as desired: db
                  left alone: api-prod (protected by `name:*-prod`), new (held until `offhours approve`)
      then        office-hours takes over: stopped
      by          bob: a demonstration
    "#);
    let change = stored.set(schedule("office-hours"), Desired::Running, "friday").unwrap();
    assert!(change.report.needs_person());
    let shown = stored.report(schedule("wake-up"), Desired::Stopped, "sunday");
    assert_snapshot!(shown, @r#"
    schedule wake-up: stopped until Mon 2026-11-23 00:00 CET (Sun 2026-11-22 18:00 EST here)
      instead of  nothing: wake-up has no desired state now
      now         1 resource follows it
                  already as desired: alarm
      then        wake-up takes over and has no desired state then: nothing happens
      by          bob: a demonstration
    "#);
}

#[test]
fn many_are_counted_and_few_are_named() {
    let many = (10..30).map(|number| server(number, &format!("s{number}"), "web"));
    let stored = many.fold(stored(), Stored::with);
    let shown = stored.report(schedule("web"), Desired::Stopped, "tomorrow");
    assert_snapshot!(shown, @r#"
    schedule web: stopped until Mon 2026-11-23 00:00 CET (Sun 2026-11-22 18:00 EST here)
      instead of  running, as web wants it now
      now         20 resources follow it
                  already as desired: s10, s11, s12, s13, s14, s15, s16, s17, and 12 more
      then        web takes over: stopped too, so nothing happens
      by          bob: a demonstration
    "#);
}

#[test]
fn in_observe_mode_nothing_is_sent_and_that_is_shown() {
    let mut stored = stored();
    stored.configuration.settings.mode = domain::configuration::Mode::Observe;
    let shown = stored.report(resource("hz-eu/server/1"), Desired::Running, "22:00");
    assert_snapshot!(shown, @r#"
    web-1 (hz-eu/server/1): running until Sat 2026-11-21 22:00 CET (Sat 2026-11-21 16:00 EST here)
      instead of  stopped, as office-hours wants it now
      now         stopped; would be started, but observe mode sends nothing
      then        office-hours takes over: stopped
      by          bob: a demonstration
    "#);
}

#[test]
fn the_override_of_its_schedule_takes_over_from_that_of_a_resource() {
    let stored =
        stored().overriding(schedule("office-hours"), Desired::Running, "2026-11-22T08:00:00Z");
    let shown = stored.report(resource("hz-eu/server/1"), Desired::Stopped, "22:00");
    assert_snapshot!(shown, @r#"
    web-1 (hz-eu/server/1): stopped until Sat 2026-11-21 22:00 CET (Sat 2026-11-21 16:00 EST here)
      instead of  running until Sun 2026-11-22 09:00 CET (Sun 2026-11-22 03:00 EST here), by the override of schedule office-hours
      now         stopped; already as desired
      then        the override of schedule office-hours takes over: running until Sun 2026-11-22 09:00 CET (Sun 2026-11-22 03:00 EST here)
      by          bob: a demonstration
    "#);
}

#[test]
fn clearing_an_override_shows_what_takes_over() {
    let started = running(server(1, "web-1", "office-hours"));
    let target = resource("hz-eu/server/1");
    let stored = stored()
        .with(Record {
            handled: Some(Handled {
                generation: Generation(1),
                key: EdgeKey {
                    instant: saturday() - SignedDuration::from_hours(1),
                    rank: Rank::OverrideSet,
                },
                desired: Some(Desired::Running),
                schedule: None,
            }),
            ..started
        })
        .overriding(target.clone(), Desired::Running, "2026-11-22T08:00:00Z");
    assert_snapshot!(stored.report_of_clearing(&target), @r#"
    web-1 (hz-eu/server/1): no longer overridden
      was         running until Sun 2026-11-22 09:00 CET (Sun 2026-11-22 03:00 EST here), by ada
      now         office-hours takes over: stopped
                  running; will be stopped at the next tick
    "#);
}

#[test]
fn clearing_ends_the_override_after_all_that_was_handled_under_it() {
    let target = resource("hz-eu/server/1");
    let just_set = |handled: Option<&str>| {
        let record = Record {
            handled: handled.map(|instant| Handled {
                generation: Generation(1),
                key: EdgeKey { instant: at(instant), rank: Rank::Manual },
                desired: Some(Desired::Running),
                schedule: None,
            }),
            ..server(1, "web-1", "office-hours")
        };
        let mut stored = stored().with(record);
        let one = Override {
            target: target.clone(),
            desired: Desired::Running,
            set_at: saturday(),
            ends_at: at("2026-11-22T08:00:00Z"),
            by: "ada".to_owned(),
            why: None,
        };
        stored.overrides = Overrides::from_iter([one]);
        stored
    };
    for (handled, expected) in [
        (None, "2026-11-21T12:15:00.001Z"),
        (Some("2026-11-20T18:00:00Z"), "2026-11-21T12:15:00.001Z"),
        (Some("2026-11-21T12:15:02.5Z"), "2026-11-21T12:15:02.501Z"),
        // Its clock was wrong: following it would put this edge ahead of every other.
        (Some("2026-11-21T13:15:00Z"), "2026-11-21T12:15:00.001Z"),
    ] {
        let stored = just_set(handled);
        let change = cleared(stored.state(), &target, saturday()).unwrap();
        assert_eq!(change.one.ends_at, at(expected), "{handled:?}");
        assert_eq!(change.replaces.as_ref(), stored.overrides.of(&target));
    }
}

#[test]
fn an_override_begins_after_what_was_handled_and_after_the_one_that_it_replaces() {
    let target = resource("hz-eu/server/1");
    let stored = stored();
    let change = stored.set(target.clone(), Desired::Running, "22:00").unwrap();
    assert_eq!((change.one.set_at, change.replaces), (saturday(), None));

    let Override { target, .. } = change.one.clone();
    let again = Stored { overrides: Overrides::from_iter([change.one.clone()]), ..stored };
    let next = again.set(target, Desired::Stopped, "22:00").unwrap();
    assert_eq!(next.one.set_at, at("2026-11-21T12:15:00.001Z"));
    assert_eq!(next.replaces, Some(change.one));
}

#[test]
fn what_is_never_touched_cannot_be_overridden() {
    let gone =
        Record { phase: Phase::Gone { since: saturday() }, ..server(1, "web-1", "office-hours") };
    let opted_out = server(2, "web-2", "off");
    let twice = Record {
        tags: BTreeSet::from(["offhours=web".to_owned(), "offhours=wake-up".to_owned()]),
        ..server(3, "db", "")
    };
    let unsupported = Record {
        unsupported: Some("Kafka cannot be resized".to_owned()),
        ..server(5, "events", "")
    };
    let stored = [gone, opted_out, twice, unsupported].into_iter().fold(stored(), Stored::with);
    for (number, reason) in [
        (1, "it is gone at the provider"),
        (2, "opted out by a tag on the resource"),
        (3, "conflict: wake-up and web both name it by tag"),
        (4, "protected by `name:*-prod`"),
        (5, "Kafka cannot be resized"),
    ] {
        let name = format!("hz-eu/server/{number}");
        let refused = stored.set(resource(&name), Desired::Running, "22:00");
        let expected = format!("{name}: {reason}; nothing was set");
        assert_eq!(refused.unwrap_err().to_string(), expected);
    }
}

#[test]
fn an_override_may_begin_later() {
    let stored = stored();
    let set = |from, until| {
        stored.set_from(Some(from), resource("hz-eu/server/1"), Desired::Running, until)
    };
    // A day begins at its midnight, and the end is sought from the begin on.
    for (from, until, expected) in [
        ("monday", "tuesday 02:00", ["2026-11-22T23:00:00Z", "2026-11-24T01:00:00Z"]),
        ("sunday 22:00", "06:00", ["2026-11-22T21:00:00Z", "2026-11-23T05:00:00Z"]),
        ("next-edge", "next-edge", ["2026-11-23T07:00:00Z", "2026-11-23T18:00:00Z"]),
    ] {
        let one = set(from, until).unwrap().one;
        assert_eq!([one.set_at, one.ends_at], expected.map(at), "{from}");
    }
    let change = set("sunday 22:00", "06:00").unwrap();
    let zones = DisplayZones::of(stored.state(), &change.one.target, new_york());
    let text = change.report.text(&zones);
    assert!(text.contains("running from Sun 2026-11-22 22:00 CET"), "{text}");
    assert!(text.contains("at first    1 resource at present"), "{text}");
    assert!(!text.contains("next tick"), "{text}");
    let refused = set("friday 08:00", "2026-11-24").unwrap_err().to_string();
    assert!(refused.contains("which is not after now"), "{refused}");
    let in_force = self::stored().overriding(
        resource("hz-eu/server/1"),
        Desired::Running,
        "2026-11-21T14:00:00Z",
    );
    let refused = in_force
        .set_from(Some("monday"), resource("hz-eu/server/1"), Desired::Running, "tuesday")
        .unwrap_err()
        .to_string();
    assert!(refused.contains("it is overridden until Sat 2026-11-21 15:00 CET"), "{refused}");
}

#[test]
fn an_invalid_end_is_refused_with_what_was_understood() {
    let stored = stored();
    let refused = |target, until| {
        let refused = stored.set(target, Desired::Running, until);
        refused.unwrap_err().to_string()
    };
    assert_eq!(
        refused(resource("hz-eu/server/1"), "2026-11-20"),
        "hz-eu/server/1: that was understood as Sat 2026-11-21 00:00 CET, which is not after now, \
         Sat 2026-11-21 13:15 CET"
    );
    assert_eq!(
        refused(resource("hz-eu/server/6"), "next-edge"),
        "hz-eu/server/6: `next-edge` is an edge of a schedule, and it follows none: write a time \
         or a span"
    );
}

#[test]
fn a_target_is_a_resource_or_a_schedule_and_never_a_guess() {
    let stored =
        stored().with(server(7, "web", "")).with(server(8, "twin", "")).with(server(9, "twin", ""));
    let found = |word: &str| {
        let found = target(word, &stored.configuration, &stored.records, saturday());
        found.map_err(|error| error.to_string())
    };
    for (word, expected) in [
        ("hz-eu/server/1", resource("hz-eu/server/1")),
        ("web-1", resource("hz-eu/server/1")),
        ("office-hours", schedule("office-hours")),
        ("schedule:office-hours", schedule("office-hours")),
        ("schedule:web", schedule("web")),
        ("hz-eu/server/7", resource("hz-eu/server/7")),
    ] {
        assert_eq!(found(word), Ok(expected), "{word}");
    }
    for (word, expected) in [
        ("web", "`web` is a schedule and a resource: write schedule:web or hz-eu/server/7"),
        ("twin", "`twin` is the name of several: write hz-eu/server/8 or hz-eu/server/9"),
        ("ofice-hours", "no resource or schedule `ofice-hours`; did you mean `office-hours`?"),
        ("stary", "no resource or schedule `stary`; did you mean `stray`?"),
        (
            "hz-eu/sever/1",
            "no resource or schedule `hz-eu/sever/1`; did you mean `hz-eu/server/1`?",
        ),
        (
            "nothing-like-it",
            "no resource or schedule `nothing-like-it`; `offhours status` lists those that are \
             known",
        ),
        ("hz-eu/server/99", "no inventory has seen hz-eu/server/99"),
        (
            "schedule:web-1",
            "there is no schedule `web-1`; the schedules are office-hours, wake-up, web",
        ),
        ("schedule:wake-upp", "there is no schedule `wake-upp`; did you mean `wake-up`?"),
    ] {
        assert_eq!(found(word), Err(expected.to_owned()), "{word}");
    }
}

#[test]
fn only_what_is_overridden_can_be_cleared_known_or_not() {
    let stored = stored()
        .with(server(7, "web", ""))
        .overriding(resource("hz-eu/server/1"), Desired::Running, "2026-11-22T08:00:00Z")
        .overriding(resource("hz-eu/server/99"), Desired::Running, "2026-11-22T08:00:00Z")
        .overriding(schedule("web"), Desired::Running, "2026-11-22T08:00:00Z")
        .overriding(schedule("removed"), Desired::Running, "2026-11-22T08:00:00Z");
    let active: Vec<_> = stored.overrides.iter().collect();
    let found = |word: &str| {
        let found = overridden_target(word, &active, &stored.records);
        found.map_err(|error| error.to_string())
    };
    for (word, expected) in [
        ("web-1", resource("hz-eu/server/1")),
        ("hz-eu/server/99", resource("hz-eu/server/99")),
        // The server of this name has no override.
        ("web", schedule("web")),
        ("schedule:removed", schedule("removed")),
    ] {
        assert_eq!(found(word), Ok(expected), "{word}");
    }
    assert_eq!(
        found("web-11"),
        Err("no override of `web-11` is active; did you mean `web-1`?".to_owned())
    );
    let none = overridden_target("web", &[], &stored.records);
    let none = none.unwrap_err().to_string();
    assert_eq!(none, "no override of `web` is active; there are no active overrides");
}

#[test]
fn a_list_has_what_is_active_and_on_demand_what_ended_lately() {
    let stored = stored()
        .overriding(resource("hz-eu/server/1"), Desired::Running, "2026-11-22T08:00:00Z")
        .overriding(resource("hz-eu/server/6"), Desired::Stopped, "2026-11-21T12:15:01Z")
        .overriding(schedule("office-hours"), Desired::Stopped, "2026-11-21T12:15:00Z")
        .overriding(schedule("web"), Desired::Stopped, "2026-08-23T12:15:01Z")
        .overriding(schedule("wake-up"), Desired::Stopped, "2026-08-23T12:15:00Z");
    let list = |all| rows(stored.state(), saturday(), all);
    let screen = crate::print::Screen::plain(&new_york(), saturday());
    assert_snapshot!(screen.table(&list(false)), @"
    Target                  Desired  Since          Until          Then                   By
    stray (hz-eu/server/6)  stopped  Fri 07:15 EST  Sat 07:15 EST  as it is               ada
    web-1 (hz-eu/server/1)  running  Sat 03:00 EST  Sun 03:00 EST  office-hours: stopped  ada
    ");
    assert_snapshot!(screen.table(&list(true)), @"
    Target                  Desired  Since                 Until                       Then                   By
    stray (hz-eu/server/6)  stopped  Fri 07:15 EST         Sat 07:15 EST               as it is               ada
    web-1 (hz-eu/server/1)  running  Sat 03:00 EST         Sun 03:00 EST               office-hours: stopped  ada
    schedule office-hours   stopped  Fri 07:15 EST         ended Sat 07:15 EST         office-hours: stopped  ada
    schedule web            stopped  2026-08-22 08:15 EDT  ended 2026-08-23 08:15 EDT  web: running           ada
    ");
    assert_snapshot!(serde_json::to_string_pretty(&list(false)).unwrap(), @r#"
    [
      {
        "resource": "hz-eu/server/6",
        "name": "stray",
        "schedule": null,
        "desired": "stopped",
        "set_at": "2026-11-20T12:15:01Z",
        "ends_at": "2026-11-21T12:15:01Z",
        "active": true,
        "by": "ada",
        "why": null,
        "then": {
          "by": "nothing"
        },
        "timezone": null
      },
      {
        "resource": "hz-eu/server/1",
        "name": "web-1",
        "schedule": null,
        "desired": "running",
        "set_at": "2026-11-21T08:00:00Z",
        "ends_at": "2026-11-22T08:00:00Z",
        "active": true,
        "by": "ada",
        "why": null,
        "then": {
          "by": "schedule",
          "schedule": "office-hours",
          "desired": "stopped"
        },
        "timezone": "Europe/Berlin"
      }
    ]
    "#);
}

#[test]
fn every_answer_fits_the_schema_that_is_served() {
    let schema = jsonschema::validator_for(crate::shape::of::<ChangeReport>().as_value()).unwrap();
    let by_schedule = stored()
        .overriding(schedule("office-hours"), Desired::Running, "2026-11-22T08:00:00Z")
        .overriding(resource("hz-eu/server/2"), Desired::Stopped, "2026-11-22T08:00:00Z");
    let changes = [
        stored().set(resource("hz-eu/server/6"), Desired::Running, "22:00"),
        by_schedule.set(resource("hz-eu/server/1"), Desired::Stopped, "22:00"),
        by_schedule.set(schedule("office-hours"), Desired::Stopped, "next-edge"),
        stored().set(schedule("web"), Desired::Running, "2027-10-31 02:30"),
        Ok(cleared(by_schedule.state(), &resource("hz-eu/server/2"), saturday()).unwrap()),
    ];
    for change in changes {
        let shown = serde_json::to_value(change.unwrap().report).unwrap();
        schema.validate(&shown).unwrap();
        for key in shown.as_object().unwrap().keys() {
            let mut without = shown.clone();
            without.as_object_mut().unwrap().remove(key);
            assert!(!schema.is_valid(&without), "without {key}");
        }
    }
}

#[test]
fn the_answer_for_programs_has_the_documented_shape() {
    let stored =
        stored().overriding(resource("hz-eu/server/1"), Desired::Stopped, "2026-11-22T08:00:00Z");
    let change = stored.set(resource("hz-eu/server/1"), Desired::Running, "22:00");
    let shown = serde_json::to_string_pretty(&change.unwrap().report).unwrap();
    assert_snapshot!(shown, @r#"
    {
      "done": "set",
      "dry_run": false,
      "override": {
        "resource": "hz-eu/server/1",
        "name": "web-1",
        "schedule": null,
        "desired": "running",
        "set_at": "2026-11-21T12:15:00Z",
        "ends_at": "2026-11-21T21:00:00Z",
        "active": true,
        "by": "bob",
        "why": "a demonstration",
        "then": {
          "by": "schedule",
          "schedule": "office-hours",
          "desired": "stopped"
        },
        "timezone": "Europe/Berlin"
      },
      "otherwise": {
        "by": "schedule",
        "schedule": "office-hours",
        "desired": "stopped"
      },
      "remark": null,
      "replaced": {
        "resource": "hz-eu/server/1",
        "name": "web-1",
        "schedule": null,
        "desired": "stopped",
        "set_at": "2026-11-21T08:00:00Z",
        "ends_at": "2026-11-22T08:00:00Z",
        "active": true,
        "by": "ada",
        "why": null,
        "then": {
          "by": "schedule",
          "schedule": "office-hours",
          "desired": "stopped"
        },
        "timezone": "Europe/Berlin"
      },
      "resources": [
        {
          "resource": "hz-eu/server/1",
          "name": "web-1",
          "state": "stopped",
          "effect": "starts",
          "why": null
        }
      ]
    }
    "#);
}
