//! Calendars of schedules, as RFC 5545 has them: when resources run, overrides and holidays.
//!
//! Each event is written by itself, with its instants in UTC, so that no calendar program has to
//! agree with us on a rule of repetition or on the changes of a clock.

use std::ops::Range;

use domain::{
    ScheduleName,
    configuration::{Override, OverrideTarget},
    decision::{Rules, override_by_tag},
    membership::{Membership, Subject},
    record::Record,
    schedule::{Desired, LatestEdge, Schedule},
};
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use report::unsent::Unsent;

use crate::Audience;

/// How far ahead a calendar reaches.
const AHEAD: SignedDuration = SignedDuration::from_hours(8 * 7 * 24);

/// The longest line, in bytes.
const LINE: usize = 75;

/// Writes the calendar of one schedule, or of all. `records` has at least those resources that have
/// an override of their own, by a command or a tag. The public form leaves out such overrides, and who
/// set one and why.
#[must_use]
pub fn render(
    rules: Rules<'_>,
    records: &[Record],
    only: Option<&ScheduleName>,
    audience: Audience,
    now: Timestamp,
) -> String {
    let until = now + AHEAD;
    let chosen = |name: &ScheduleName| only.is_none_or(|only| only == name);
    let mut calendar = Calendar::new(only.map_or("Offhours", ScheduleName::as_str), now);
    for (name, rule) in rules.configuration.schedules.iter().filter(|(name, _)| chosen(name)) {
        let target = OverrideTarget::Schedule(name.clone());
        let observed = Unsent::of_schedule(name, rule, rules, Some(Desired::Stopped), now);
        let note = if observed.only_observed { " (only observed)" } else { "" };
        calendar.add_windows(name, &rule.schedule, rules.overrides.get(&target), until, note);
        calendar.add_holidays(name, &rule.schedule, until);
    }
    let is_near = |one: &&Override| one.counts() && one.ends_at > now && one.set_at < until;
    let by_tag: Vec<_> =
        records.iter().filter_map(|record| override_by_tag(record, rules, now)).collect();
    for one in rules.overrides.iter().chain(&by_tag).filter(is_near) {
        match &one.target {
            OverrideTarget::Schedule(name) if chosen(name) => {
                calendar.add_override(one, name.as_str(), name.as_str(), audience);
            }
            OverrideTarget::Resource(reference) if audience == Audience::Operators => {
                let record = records.iter().find(|record| record.reference == *reference);
                let membership = |of| Membership::of(Subject::recorded(of), rules.configuration);
                let membership = record.map(membership);
                let follows = membership.as_ref().and_then(Membership::schedule);
                if only.is_none() || follows.is_some_and(chosen) {
                    let reference = reference.to_string();
                    let name = record.map_or(&reference, |record| &record.name);
                    // Some calendar servers name a file by the UID.
                    calendar.add_override(one, &reference.replace('/', "."), name, audience);
                }
            }
            OverrideTarget::Schedule(_) | OverrideTarget::Resource(_) => {}
        }
    }
    calendar.add("END:VCALENDAR");
    calendar.text
}

/// When a schedule's resources run, until after an instant. No begin is known of what always runs.
fn windows(
    schedule: &Schedule,
    now: Timestamp,
    until: Timestamp,
) -> Vec<(Option<Timestamp>, Timestamp)> {
    let mut begun = match schedule.latest_edge(now) {
        LatestEdge { since, desired: Some(Desired::Running) } => Some(since),
        LatestEdge { desired: Some(Desired::Stopped) | None, .. } => None,
    };
    let mut windows = Vec::new();
    for edge in schedule.edges(now) {
        windows.extend(begun.map(|begins| (begins, edge.at)));
        if edge.at >= until {
            return windows;
        }
        begun = (edge.desired == Some(Desired::Running)).then_some(Some(edge.at));
    }
    windows.extend(begun.map(|begins| (begins, until)));
    windows
}

struct Calendar {
    text: String,
    now: Timestamp,
}

impl Calendar {
    fn new(name: &str, now: Timestamp) -> Self {
        let mut calendar = Self { text: String::new(), now };
        calendar.add("BEGIN:VCALENDAR");
        calendar.add("VERSION:2.0");
        calendar.add("PRODID:-//Offhours//Offhours//EN");
        calendar.add("CALSCALE:GREGORIAN");
        // The first of each pair is of RFC 7986; many programs know only the second.
        calendar.add(&format!("NAME:{name}"));
        calendar.add(&format!("X-WR-CALNAME:{name}"));
        calendar.add("REFRESH-INTERVAL;VALUE=DURATION:PT1H");
        calendar.add("X-PUBLISHED-TTL:PT1H");
        calendar
    }

    /// Adds the windows of a schedule, except while an override keeps its resources stopped.
    fn add_windows(
        &mut self,
        name: &ScheduleName,
        schedule: &Schedule,
        overridden: Option<&Override>,
        until: Timestamp,
        note: &str,
    ) {
        let stops = |one: &&Override| one.desired == Desired::Stopped && one.counts();
        let stopped = overridden.filter(stops);
        for (begins, ends) in windows(schedule, self.now, until) {
            let whole = begins.unwrap_or(self.now)..ends;
            let pieces = match stopped {
                None => vec![whole.clone()],
                Some(stopped) => vec![
                    whole.start..ends.min(stopped.set_at),
                    whole.start.max(stopped.ends_at)..ends,
                ],
            };
            for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
                let is_known = begins.is_some() || piece.start > whole.start;
                let begin = if is_known { utc(piece.start) } else { "always".to_owned() };
                let uid = format!("{name}.running.{begin}");
                self.add_event(&uid, &between(&piece), &format!("{name}: running{note}"), None);
            }
        }
    }

    /// Adds the days on which no window begins.
    fn add_holidays(&mut self, name: &ScheduleName, schedule: &Schedule, until: Timestamp) {
        let date = |at: Timestamp| at.to_zoned(schedule.timezone().clone()).date();
        let days = date(self.now).series(1.day()).take_while(|day| *day <= date(until));
        for day in days.filter(|day| schedule.is_holiday(*day)) {
            let day = day.strftime("%Y%m%d").to_string();
            let whole = [format!("DTSTART;VALUE=DATE:{day}"), "DURATION:P1D".to_owned()];
            let uid = format!("{name}.holiday.{day}");
            self.add_event(&uid, &whole, &format!("{name}: holiday"), None);
        }
    }

    fn add_override(&mut self, one: &Override, target: &str, name: &str, audience: Audience) {
        let why = one.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        let who = format!("Set by {}{why}", one.by);
        let who = (audience == Audience::Operators).then_some(who.as_str());
        let uid = format!("{target}.override.{}", utc(one.set_at));
        let summary = format!("{name}: {} (override)", one.desired);
        self.add_event(&uid, &between(&(one.set_at..one.ends_at)), &summary, who);
    }

    /// Adds an event. Its UID is the same in every calendar that has it, whenever that is written.
    fn add_event(
        &mut self,
        uid: &str,
        extent: &[String],
        summary: &str,
        description: Option<&str>,
    ) {
        self.add("BEGIN:VEVENT");
        self.add(&format!("UID:{}@offhours", escaped(uid)));
        self.add(&format!("DTSTAMP:{}", utc(self.now)));
        for line in extent {
            self.add(line);
        }
        self.add(&format!("SUMMARY:{}", escaped(summary)));
        if let Some(description) = description {
            self.add(&format!("DESCRIPTION:{}", escaped(description)));
        }
        // It shows no one as busy.
        self.add("TRANSP:TRANSPARENT");
        self.add("END:VEVENT");
    }

    /// Adds a line. What is too long goes on in lines that begin with a space.
    fn add(&mut self, line: &str) {
        let mut length = 0;
        for character in line.chars() {
            if length + character.len_utf8() > LINE {
                self.text.push_str("\r\n ");
                length = 1;
            }
            self.text.push(character);
            length += character.len_utf8();
        }
        self.text.push_str("\r\n");
    }
}

fn between(times: &Range<Timestamp>) -> [String; 2] {
    [format!("DTSTART:{}", utc(times.start)), format!("DTEND:{}", utc(times.end))]
}

fn utc(at: Timestamp) -> String {
    at.strftime("%Y%m%dT%H%M%SZ").to_string()
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '\n' => escaped.push_str("\\n"),
            '\\' | ';' | ',' => escaped.extend(['\\', character]),
            _ if character.is_control() => {}
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use domain::{
        configuration::{Configuration, Mode, Overrides},
        fixtures::configuration,
        record::UntilTag,
        resource::Power,
    };
    use serde_json::json;
    use testing::history::record;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn office(holidays: &[&str]) -> Configuration {
        let periods = json!([{ "weekdays": ["mon-fri"], "begin": "08:00", "end": "19:00" }]);
        let office = json!({
            "timezone": "Europe/Berlin", "periods": periods, "holidays": holidays,
        });
        with(&[("office", office)])
    }

    fn with(schedules: &[(&str, serde_json::Value)]) -> Configuration {
        let rule = |(name, definition): &(&str, serde_json::Value)| {
            let mut rule = json!({ "schedule": definition });
            if *name == "other" {
                rule["resources"] = json!(["hz-eu/server/1"]);
            }
            (name.parse().unwrap(), serde_json::from_value(rule).unwrap())
        };
        Configuration { schedules: schedules.iter().map(rule).collect(), ..configuration() }
    }

    fn set(target: OverrideTarget, desired: Desired, from: &str, to: &str) -> Override {
        let why = Some("demo, for the board;\nsee C:\\plan".to_owned());
        Override {
            target,
            desired,
            set_at: at(from),
            ends_at: at(to),
            by: "ada".to_owned(),
            why,
            before: None,
        }
    }

    fn of_office(desired: Desired, from: &str, to: &str) -> Override {
        set(OverrideTarget::Schedule("office".parse().unwrap()), desired, from, to)
    }

    fn of_server(from: &str, to: &str) -> Override {
        let server = "hz-eu/server/1".parse().unwrap();
        set(OverrideTarget::Resource(server), Desired::Running, from, to)
    }

    fn shown(
        configuration: &Configuration,
        overrides: &[Override],
        only: Option<&str>,
        audience: Audience,
        now: &str,
    ) -> String {
        let overrides: Overrides = overrides.iter().cloned().collect();
        let rules = Rules { configuration, overrides: &overrides };
        let records = [record("hz-eu/server/1", Power::Running, "15 08:00")];
        let only = only.map(|name| name.parse().unwrap());
        render(rules, &records, only.as_ref(), audience, at(now))
    }

    fn all(configuration: &Configuration, overrides: &[Override], now: &str) -> String {
        shown(configuration, overrides, None, Audience::Operators, now)
    }

    /// The values of a property, unfolded, in their order.
    fn values(calendar: &str, property: &str) -> Vec<String> {
        let whole = calendar.replace("\r\n ", "");
        let lines = whole.split("\r\n").filter_map(|line| line.strip_prefix(property));
        lines.map(ToOwned::to_owned).collect()
    }

    #[track_caller]
    fn check_times(calendar: &str, expected: &[(&str, &str)]) {
        let times = values(calendar, "DTSTART:").into_iter().zip(values(calendar, "DTEND:"));
        let times: Vec<_> = times.collect();
        let found: Vec<_> = times.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect();
        assert_eq!(found[..expected.len()], *expected);
    }

    #[test]
    fn windows_keep_their_local_times_over_a_change_of_the_clock() {
        // The clock goes back on Sunday 25 October 2026, and forward on 28 March 2027.
        check_times(
            &all(&office(&[]), &[], "2026-10-23T18:00:00Z"),
            &[("20261026T070000Z", "20261026T180000Z"), ("20261027T070000Z", "20261027T180000Z")],
        );
        check_times(
            &all(&office(&[]), &[], "2027-03-26T12:00:00Z"),
            &[("20270326T070000Z", "20270326T180000Z"), ("20270329T060000Z", "20270329T170000Z")],
        );
        let night = json!({ "timezone": "Europe/Berlin", "periods": [{ "begin": "22:00", "end": "02:30" }] });
        check_times(
            &all(&with(&[("night", night)]), &[], "2026-10-24T12:00:00Z"),
            &[("20261024T200000Z", "20261025T013000Z")],
        );
    }

    #[test]
    fn it_reaches_eight_weeks_ahead() {
        let calendar = all(&office(&[]), &[], "2026-06-01T05:00:00Z");
        let begins = values(&calendar, "DTSTART:");
        assert_eq!((begins.len(), begins[39].as_str()), (40, "20260724T060000Z"));
        assert_eq!(values(&calendar, "SUMMARY:")[0], "office: running");
        let mut observed = office(&[]);
        observed.settings.mode = Mode::Observe;
        let calendar = all(&observed, &[], "2026-06-01T05:00:00Z");
        assert_eq!(values(&calendar, "SUMMARY:")[0], "office: running (only observed)");
    }

    #[test]
    fn an_event_has_the_same_uid_whenever_it_is_written() {
        let overrides = [
            of_office(Desired::Running, "2026-06-15T16:30:00.5Z", "2026-06-15T19:00:00Z"),
            of_server("2026-06-15T09:00:00Z", "2026-06-17T09:00:00Z"),
        ];
        let uids = |now| values(&all(&office(&["06-18"]), &overrides, now), "UID:");
        let (monday, tuesday) = (uids("2026-06-15T06:30:00Z"), uids("2026-06-16T12:00:00Z"));
        assert_eq!(monday[0], "office.running.20260615T060000Z@offhours");
        assert!(monday.contains(&"hz-eu.server.1.override.20260615T090000Z@offhours".to_owned()));
        let mut distinct = monday.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), monday.len());
        let gone = [&monday[0], "office.override.20260615T163000Z@offhours"];
        let kept = monday.iter().filter(|uid| !gone.contains(&uid.as_str()));
        assert!(kept.clone().count() > 40);
        kept.for_each(|uid| assert!(tuesday.contains(uid), "{uid}"));
    }

    #[test]
    fn what_always_runs_is_one_event_under_one_uid() {
        let always = with(&[("always", json!({ "timezone": "UTC", "state": "running" }))]);
        let first = all(&always, &[], "2026-06-15T06:30:00Z");
        check_times(&first, &[("20260615T063000Z", "20260810T063000Z")]);
        let later = all(&always, &[], "2026-06-16T06:30:00Z");
        assert_eq!(values(&first, "UID:"), ["always.running.always@offhours"]);
        assert_eq!(values(&first, "UID:"), values(&later, "UID:"));
    }

    #[test]
    fn overrides_are_events_with_who_and_why() {
        let one = of_office(Desired::Running, "2026-06-15T16:30:00Z", "2026-06-15T19:00:00Z");
        let calendar = all(&office(&[]), &[one], "2026-06-15T17:30:00Z");
        assert!(calendar.contains("\r\nSUMMARY:office: running (override)\r\n"), "{calendar}");
        let description = values(&calendar, "DESCRIPTION:");
        assert_eq!(description, [r"Set by ada: demo\, for the board\;\nsee C:\\plan"]);
        let over = of_office(Desired::Running, "2026-06-15T16:30:00Z", "2026-06-15T17:30:00Z");
        let calendar = all(&office(&[]), &[over], "2026-06-15T17:30:00Z");
        assert!(!calendar.contains("(override)"), "{calendar}");
    }

    #[test]
    fn what_a_tag_keeps_running_is_an_event_as_well() {
        let text = "21.00".to_owned();
        let label = UntilTag { text, seen_at: at("2026-06-15T15:30:00Z"), gone_at: None };
        let server = Record {
            tags: ["offhours=office".to_owned()].into(),
            until_tags: vec![label],
            ..record("hz-eu/server/2", Power::Running, "15 08:00")
        };
        let (configuration, overrides) = (office(&[]), Overrides::default());
        let rules = Rules { configuration: &configuration, overrides: &overrides };
        let records = [server];
        let shown = |audience, now| render(rules, &records, None, audience, at(now));
        let evening = shown(Audience::Operators, "2026-06-15T17:30:00Z");
        let times = "DTSTART:20260615T153000Z\r\nDTEND:20260615T190000Z\r\n";
        let event = format!("{times}SUMMARY:web: running (override)\r\n");
        assert!(evening.contains(&event), "{evening}");
        assert_eq!(values(&evening, "DESCRIPTION:"), ["Set by label offhours-until: 21.00"]);
        for other in [
            shown(Audience::Public, "2026-06-15T17:30:00Z"),
            shown(Audience::Operators, "2026-06-15T19:00:00Z"),
        ] {
            assert!(!other.contains("(override)"), "{other}");
        }
    }

    #[test]
    fn no_window_goes_on_while_an_override_keeps_it_stopped() {
        let noon = of_office(Desired::Stopped, "2026-06-15T10:00:00Z", "2026-06-16T10:00:00Z");
        let expected = [
            ("20260615T060000Z", "20260615T100000Z"),
            ("20260616T100000Z", "20260616T170000Z"),
            ("20260617T060000Z", "20260617T170000Z"),
        ];
        let calendar = |now| all(&office(&[]), std::slice::from_ref(&noon), now);
        check_times(&calendar("2026-06-15T08:00:00Z"), &expected);
        // Once it has ended, too.
        check_times(&calendar("2026-06-16T11:00:00Z"), &expected[1..]);
    }

    #[test]
    fn holidays_are_whole_days() {
        let calendar = all(&office(&["12-24..12-26"]), &[], "2026-12-20T12:00:00Z");
        let days = values(&calendar, "DTSTART;VALUE=DATE:");
        assert_eq!(days, ["20261224", "20261225", "20261226"]);
        assert!(!values(&calendar, "DTSTART:").contains(&"20261224T070000Z".to_owned()));
    }

    #[test]
    fn the_calendar_of_one_schedule_has_its_resources_and_no_other() {
        let daily = json!({ "timezone": "UTC", "periods": [{ "begin": "08:00", "end": "19:00" }] });
        let both = with(&[("office", daily.clone()), ("other", daily)]);
        let overrides = [
            of_office(Desired::Stopped, "2026-06-15T16:30:00Z", "2026-06-15T19:00:00Z"),
            of_server("2026-06-15T09:00:00Z", "2026-06-17T09:00:00Z"),
        ];
        let of = |name| {
            let now = "2026-06-15T17:00:00Z";
            let calendar = shown(&both, &overrides, Some(name), Audience::Operators, now);
            let mut found = values(&calendar, "SUMMARY:");
            found.sort();
            found.dedup();
            found
        };
        assert_eq!(of("office"), ["office: running", "office: stopped (override)"]);
        assert_eq!(of("other"), ["other: running", "web: running (override)"]);
    }

    #[test]
    fn the_public_form_names_no_person_no_resource_and_no_reason() {
        let overrides = [
            of_office(Desired::Stopped, "2026-06-15T16:30:00Z", "2026-06-15T19:00:00Z"),
            of_server("2026-06-15T09:00:00Z", "2026-06-17T09:00:00Z"),
        ];
        let now = "2026-06-15T17:00:00Z";
        let calendar = shown(&office(&[]), &overrides, None, Audience::Public, now);
        assert!(calendar.contains("office: stopped (override)"), "{calendar}");
        for secret in ["ada", "board", "server", "web"] {
            assert!(!calendar.contains(secret), "{secret}: {calendar}");
        }
    }

    #[test]
    fn lines_are_folded_between_characters_and_end_as_the_standard_says() {
        let mut one = of_office(Desired::Running, "2026-06-15T16:30:00Z", "2026-06-15T19:00:00Z");
        let why = "ü".repeat(100) + &"x".repeat(200);
        one.why = Some(format!("{why}\r\u{7}\nEND:VCALENDAR"));
        let calendar = all(&office(&[]), &[one], "2026-06-15T17:30:00Z");
        assert!(calendar.ends_with("\r\nEND:VCALENDAR\r\n"));
        assert_eq!(calendar.matches("\nEND:VCALENDAR").count(), 1);
        let lines: Vec<_> = calendar.split("\r\n").collect();
        assert!(lines.iter().all(|line| line.len() <= 75 && !line.contains(char::is_control)));
        assert!(lines.iter().any(|line| line.len() == 75));
        let whole = format!("Set by ada: {why}\\nEND:VCALENDAR");
        assert_eq!(values(&calendar, "DESCRIPTION:"), [whole]);
    }
}
