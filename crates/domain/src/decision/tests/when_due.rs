//! When a record is next due.

use super::*;

const ID: &str = "do-main/droplet/1";

#[track_caller]
fn check(world: &World, record: &Record, now: &str, expected: Option<&str>) {
    assert_eq!(world.due_at(record, now), expected.map(at), "at {now}");
}

#[test]
fn it_is_the_first_edge_after_the_handled_one() {
    let record = office_droplet().having_handled("mon 08:00", RUNNING);
    check(&world(), &record, "mon 08:00", Some("mon 19:00"));
    check(&world(), &record, "mon 18:59", Some("mon 19:00"));
    let record = record.having_handled("fri 19:00", STOPPED);
    let monday: Timestamp = "2026-06-22T08:00:00Z".parse().unwrap();
    assert_eq!(world().due_at(&record, "fri 19:00"), Some(monday));
}

#[test]
fn it_is_now_where_an_edge_was_missed_and_never_after_now() {
    let record = office_droplet().having_handled("mon 08:00", RUNNING);
    check(&world(), &record, "mon 19:00:01", Some("mon 19:00:01"));
    check(&world(), &record, "tue 07:00", Some("tue 07:00"));
    check(&world(), &office_droplet(), "mon 10:00", Some("mon 10:00"));
}

#[test]
fn what_is_due_already_stays_due_since_the_same_instant() {
    let mut record = office_droplet().having_handled("mon 08:00", RUNNING);
    record.due_at = Some(at("mon 19:00"));
    check(&world(), &record, "mon 19:03", Some("mon 19:00"));
    record.due_at = Some(at("tue 08:00"));
    check(&world(), &record, "mon 19:03", Some("mon 19:03"));
}

#[test]
fn a_reader_behind_the_record_leaves_it_as_it_is() {
    let mut record = office_droplet().having_handled("mon 19:00", STOPPED);
    record.due_at = Some(at("tue 08:00"));
    check(&world(), &record, "mon 18:59:58", Some("tue 08:00"));
}

#[test]
fn edges_under_an_override_are_passed_over_and_its_end_is_not() {
    let world = world().overriding("office", RUNNING, "mon 18:00", "mon 22:00");
    let record = office_droplet().having_handled("mon 08:00", RUNNING);
    check(&world, &record, "mon 12:00", Some("mon 18:00"));
    let record = record.having_handled_ranked("mon 18:00", Rank::OverrideSet, RUNNING);
    check(&world, &record, "mon 18:00", Some("mon 22:00"));
}

#[test]
fn an_end_that_changes_nothing_is_passed_over() {
    let world = world().overriding(ID, STOPPED, "mon 18:00", "mon 22:00");
    let record = office_droplet().having_handled_ranked("mon 18:00", Rank::OverrideSet, STOPPED);
    check(&world, &record, "mon 18:00", Some("tue 08:00"));
}

#[test]
fn an_override_over_no_schedule_leaves_nothing_due_after_it() {
    let world = world().overriding(ID, STOPPED, "mon 09:00", "mon 12:00");
    let mut record = droplet().having_handled_ranked("mon 09:00", Rank::OverrideSet, STOPPED);
    record.handled.as_mut().unwrap().schedule = None;
    check(&world, &record, "mon 10:00", None);
    check(&world, &record, "mon 12:00", None);
}

#[test]
fn failures_of_one_edge_delay_no_other() {
    let mut record = office_droplet().having_handled("mon 19:00", STOPPED).settled(Power::Stopped);
    record.retry_at = Some(at("tue 08:05"));
    record.failing = Some(EdgeKey { instant: at("tue 08:00"), rank: Rank::Schedule });
    check(&world(), &record, "tue 08:01", Some("tue 08:05"));
    let world = world().overriding(ID, RUNNING, "tue 08:02", "tue 22:00");
    check(&world, &record, "tue 08:03", Some("tue 08:03"));
}

#[test]
fn a_failed_request_is_observed_when_it_is_asked_again_or_a_newer_edge_comes() {
    let failed = |retry_at| {
        let ask = Ask::Failed { retry_at: at(retry_at) };
        let mut record = office_droplet().having_handled("mon 19:00", STOPPED);
        record = record.in_flight_towards(STOP, "mon 19:00");
        record.request = Some(request(ask));
        record
    };
    check(&world(), &failed("mon 19:15"), "mon 19:01", Some("mon 19:15"));
    check(&world(), &failed("tue 08:15"), "tue 07:59", Some("tue 08:00"));
    let world = world().overriding(ID, RUNNING, "mon 19:02", "mon 22:00");
    check(&world, &failed("mon 19:15"), "mon 19:03", Some("mon 19:00:05"));
}

#[test]
fn edges_without_a_desired_state_are_passed_over() {
    let only_begins = serde_json::json!({
        "timezone": "UTC",
        "periods": [{"begin": "08:00"}],
    });
    let world = world().with_schedule("office", only_begins);
    let record = office_droplet().having_handled("mon 08:00", RUNNING);
    check(&world, &record, "mon 09:00", Some("tue 08:00"));
    check(&world, &record, "tue 03:00", Some("tue 08:00"));
    // It joined while nothing was desired.
    check(&world, &office_droplet(), "tue 03:00", Some("tue 08:00"));
}

#[test]
fn a_missed_edge_whose_desired_state_has_lapsed_is_not_due_any_more() {
    let only_begins = serde_json::json!({
        "timezone": "UTC",
        "periods": [{"begin": "08:00"}],
    });
    let world = world().with_schedule("office", only_begins);
    let record = office_droplet().having_handled("mon 08:00", RUNNING);
    check(&world, &record, "wed 03:00", Some("wed 08:00"));
}

#[test]
fn a_command_is_due_at_once_and_its_successor_is_the_schedules_edge() {
    let record =
        office_droplet().having_handled("mon 08:00", RUNNING).commanded("mon 10:00", STOPPED);
    check(&world(), &record, "mon 10:00", Some("mon 10:00"));
    let done = record.having_handled_ranked("mon 10:00", Rank::Manual, STOPPED);
    check(&world(), &done, "mon 10:00", Some("mon 19:00"));
}

#[test]
fn a_back_off_moves_it_but_never_past_the_next_edge() {
    let mut record = office_droplet().having_handled("mon 08:00", RUNNING);
    record.retry_at = Some(at("mon 19:10"));
    check(&world(), &record, "mon 19:00", Some("mon 19:10"));
    check(&world(), &record, "mon 19:12", Some("mon 19:12"));
    let override_soon = world().overriding("office", RUNNING, "mon 19:05", "mon 21:00");
    check(&override_soon, &record, "mon 19:00", Some("mon 19:05"));
    record.retry_at = Some(at("tue 09:00"));
    check(&world(), &record, "mon 19:00", Some("tue 08:00"));
}

#[test]
fn what_is_in_flight_is_due_for_an_observation_whatever_it_follows() {
    let record = stopping(Ask::Open);
    check(&world(), &record, "mon 19:30", Some("mon 19:00:05"));
    let untagged = record.tagged(&[]);
    check(&world(), &untagged, "mon 19:30", Some("mon 19:00:05"));
    let watching = office_droplet().in_flight_towards(START, "tue 08:00");
    check(&world(), &watching, "tue 08:30", Some("tue 08:00:05"));
}

#[test]
fn what_was_refused_or_is_stuck_waits_for_the_next_edge() {
    let refused = Record {
        phase: Phase::Refused {
            transition: transition(STOP, "mon 19:00"),
            reason: "no".to_owned(),
        },
        ..office_droplet().having_handled("mon 19:00", STOPPED)
    };
    check(&world(), &refused, "mon 21:00", Some("tue 08:00"));
}

#[test]
fn what_nothing_names_is_never_due() {
    check(&world(), &droplet(), "mon 19:00", None);
    check(&world(), &office_droplet().tagged(&["offhours:off"]), "mon 19:00", None);
}

#[test]
fn nothing_is_due_of_an_account_that_is_not_configured() {
    let removed = world().without_account("do-main");
    let settled = office_droplet().having_handled("mon 08:00", RUNNING);
    let starting = office_droplet().in_flight_towards(Direction::Start, "mon 08:00");
    for record in [settled, starting] {
        assert!(world().due_at(&record, "mon 20:00").is_some());
        check(&removed, &record, "mon 20:00", None);
    }
}
