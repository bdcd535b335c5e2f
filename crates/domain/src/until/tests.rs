use jiff::tz::TimeZone;

use super::*;
use crate::{
    record::Rank,
    resource::Power,
    tests::fixtures::{World, at, droplet, office_droplet, seen_droplet, tags, world},
};

const STOPPED: Desired = Desired::Stopped;
const RUNNING: Desired = Desired::Running;

/// Returns the record as an inventory leaves it that sees these tags.
fn seen(record: Record, words: &[&str], now: &str) -> Record {
    let mut record = record.tagged(words);
    let resource =
        Resource { tags: tags(words), cluster: record.cluster.clone(), ..seen_droplet() };
    record.note_until_tags(&resource, at(now));
    record
}

/// Returns the record of a Droplet that follows `office`, on which a tag is first seen.
fn until(value: &str, now: &str) -> Record {
    let tag = format!("offhours-until:{value}");
    seen(office_droplet(), &["offhours:office", &tag], now)
}

/// Checks the desired state at an instant, and the edge that brought it.
#[track_caller]
fn check(world: &World, record: &Record, now: &str, desired: Desired, edge: &str) {
    let verdict = world.judge(record, now);
    let found = verdict.edge.map(|edge| edge.key.instant);
    assert_eq!((verdict.desired, found), (Some(desired), Some(at(edge))), "{now}");
}

#[test]
fn a_value_is_a_length_a_time_of_day_or_an_instant_in_the_schedules_zone() {
    let berlin = TimeZone::get("Europe/Berlin").unwrap();
    for (text, end) in [
        ("2h", Some("2026-06-15T20:30Z")),
        ("1h30m", Some("2026-06-15T20:00Z")),
        ("1d", Some("2026-06-16T18:30Z")),
        // In Berlin it is 20:30.
        ("21:00", Some("2026-06-15T19:00Z")),
        ("21.00", Some("2026-06-15T19:00Z")),
        ("24:00", Some("2026-06-15T22:00Z")),
        ("9:00", Some("2026-06-16T07:00Z")),
        // It came in while the tag was not yet seen.
        ("20:15", Some("2026-06-15T18:15Z")),
        ("19:15", Some("2026-06-16T17:15Z")),
        ("2026-06-17t21:00", Some("2026-06-17T19:00Z")),
        ("2026-06-17t21.00", Some("2026-06-17T19:00Z")),
        ("2026-06-01t21:00", Some("2026-06-01T19:00Z")),
        ("", None),
        ("2", None),
        ("0h", None),
        ("-2h", None),
        ("1mo", None),
        ("25:00", None),
        ("21:60", None),
        ("21:5", None),
        ("2026-06-17", None),
        ("2026-13-17t21:00", None),
        ("tomorrow", None),
    ] {
        let found = Until::parse(text).and_then(|until| until.end(at("mon 18:30"), &berlin));
        assert_eq!(found, end.map(|end| end.parse().unwrap()), "{text}");
    }
}

#[test]
fn a_tag_puts_off_the_stop_until_then() {
    let record = until("21:00", "mon 18:30").having_handled("mon 08:00", RUNNING);
    let world = world();
    check(&world, &record, "mon 18:30", RUNNING, "mon 18:30");
    check(&world, &record, "mon 20:59:59", RUNNING, "mon 18:30");
    check(&world, &record, "mon 21:00", STOPPED, "mon 21:00");
    let done = record.clone().having_done(&world.decide(&record, "mon 18:30"));
    assert_eq!(world.due_at(&done, "mon 18:30"), Some(at("mon 21:00")));
    // Tomorrow's 21:00 needs another tag.
    let over = seen(done, &["offhours:office", "offhours-until:21:00"], "mon 21:05");
    check(&world, &over, "tue 19:00", STOPPED, "tue 19:00");
}

#[test]
fn a_tag_starts_what_is_stopped() {
    let record = until("2h", "mon 20:00").having_handled("mon 19:00", STOPPED);
    check(&world(), &record, "mon 20:00", RUNNING, "mon 20:00");
    check(&world(), &record, "mon 22:00", STOPPED, "mon 22:00");
}

#[test]
fn a_tag_that_goes_ends_there_and_counts_anew_when_it_comes_back() {
    let world = world();
    let record =
        until("22:00", "mon 20:00").having_handled_ranked("mon 20:00", Rank::OverrideSet, RUNNING);
    let gone = seen(record, &["offhours:office"], "mon 20:30");
    check(&world, &gone, "mon 20:30", STOPPED, "mon 20:30");
    let back = seen(gone, &["offhours:office", "offhours-until:22:00"], "mon 21:00");
    check(&world, &back, "mon 21:00", RUNNING, "mon 21:00");
    // It is forgotten once a later edge was handled.
    let later = back.having_handled("tue 08:00", RUNNING);
    let later = seen(later, &["offhours:office", "offhours-until:22:00"], "tue 08:05");
    assert_eq!(later.until_tags.len(), 1);
    check(&world, &later, "tue 19:00", STOPPED, "tue 19:00");
}

#[test]
fn another_value_counts_from_when_it_was_seen_and_of_several_the_last_to_end() {
    let world = world();
    let first = until("21:00", "mon 18:30");
    let both = ["offhours:office", "offhours-until:21:00", "offhours-until:2h"];
    let both = seen(first, &both, "mon 20:00");
    check(&world, &both, "mon 21:30", RUNNING, "mon 20:00");
    check(&world, &both, "mon 22:00", STOPPED, "mon 22:00");
    let first_again = seen(both, &["offhours:office", "offhours-until:21:00"], "mon 20:30");
    check(&world, &first_again, "mon 20:59", RUNNING, "mon 18:30");
    check(&world, &first_again, "mon 21:00", STOPPED, "mon 21:00");
}

#[test]
fn a_tag_keeps_it_running_no_longer_past_its_stop_than_the_schedule_allows() {
    let world = world().following("office", |policy| {
        policy.max_extend = "1h".parse().unwrap();
    });
    for value in ["2h", "21:00", "2026-06-30T00:00"] {
        let record = until(value, "mon 18:30");
        check(&world, &record, "mon 19:59", RUNNING, "mon 18:30");
        check(&world, &record, "mon 20:00", STOPPED, "mon 20:00");
        check(&world, &until(value, "mon 20:00"), "mon 21:00", STOPPED, "mon 21:00");
    }
    let never = world.following("office", |policy| policy.max_extend = "0s".parse().unwrap());
    check(&never, &until("2h", "mon 20:00"), "mon 20:30", STOPPED, "mon 19:00");
}

#[test]
fn a_pools_own_tag_comes_before_its_clusters() {
    let pool = |own: &[&str]| {
        let pool = droplet().in_cluster("k8s", &["offhours:office", "offhours-until:22:00"]);
        seen(pool, own, "mon 18:30")
    };
    check(&world(), &pool(&[]), "mon 22:00", STOPPED, "mon 22:00");
    check(&world(), &pool(&["offhours-until:20:00"]), "mon 20:00", STOPPED, "mon 20:00");
}

#[test]
fn a_tag_alone_makes_nothing_join() {
    let record = seen(droplet(), &["offhours-until:2h"], "mon 20:00").settled(Power::Stopped);
    let verdict = world().judge(&record, "mon 20:00");
    assert_eq!((verdict.opted_in, verdict.desired), (false, None));
    assert_eq!(world().due_at(&record, "mon 20:00"), None);
}

#[test]
fn its_edges_come_after_the_handled_one() {
    // The clock of the writer that handled it was ahead.
    let handled = office_droplet().having_handled("mon 19:00:02", STOPPED);
    let record = seen(handled, &["offhours:office", "offhours-until:2h"], "mon 19:00");
    let decision = world().decide(&record, "mon 19:01");
    assert!(matches!(decision, crate::decision::Decision::Act(_)), "{decision:?}");
}

#[test]
fn what_is_not_a_time_is_said_in_the_form_of_its_cloud() {
    let in_words = |record: &Record| {
        let invalid = invalid(record).unwrap();
        format!("{invalid}: {}", invalid.instead())
    };
    let record = until("9pm", "mon 18:30");
    assert_eq!(record.until_tags, []);
    assert_eq!(
        in_words(&record),
        "the value `9pm` of its tag offhours-until is not a time: write offhours-until:21:00, :2h or \
         :2026-11-25T21:00"
    );
    let server = Record { reference: "hz-eu/server/1".parse().unwrap(), ..record };
    assert_eq!(
        in_words(&server),
        "the value `9pm` of its label offhours-until is not a time: write offhours-until=21.00, =2h or \
         =2026-11-25T21.00"
    );
    assert_eq!(invalid(&until("2h", "mon 18:30")), None);
}

#[test]
fn tags_that_come_and_go_do_not_pile_up() {
    let mut record = office_droplet().having_handled("mon 08:00", RUNNING);
    for minutes in 1..60 {
        let tag = format!("offhours-until:{minutes}m");
        record = seen(record, &["offhours:office", &tag], &format!("mon 12:{minutes:02}"));
    }
    assert_eq!(record.until_tags.len(), 1 + GONE_KEPT);
}
