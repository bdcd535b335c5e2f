//! What each ending, and the current record, mean for the hours.

use domain::{
    history::HistoryEntry,
    record::{Direction, Ending, Observed, Phase},
    resource::Power,
    stop_method::StopMethod,
};

use super::*;
use crate::history::{LastKnownState, stopped_intervals};

fn known(record: Option<&Record>) -> LastKnownState<'_> {
    LastKnownState { record, unseen_since: None }
}

/// Checks the intervals at noon on Wednesday, with a record.
#[track_caller]
fn check_with(entries: &[HistoryEntry], record: Option<&Record>, expected: &[&str]) {
    let found = stopped_intervals(entries, known(record), &schedules(), at("17 12:00"));
    assert_eq!(shown(&found), expected);
}

/// Checks the intervals of a resource that runs at noon on Wednesday, as it has since Monday
/// morning or its last start.
#[track_caller]
fn check(entries: &[HistoryEntry], expected: &[&str]) {
    let record = web_record(Power::Running, "15 08:00");
    check_with(entries, Some(&record), expected);
}

#[test]
fn a_stop_counts_from_its_end_to_the_claim_of_the_next_start() {
    let stop = stop("15 19:00", "15 19:02");
    let start = start("16 08:00", "16 08:03");
    let expected = ["stopped 15 19:02 to 16 08:00"];
    check(&[stop.clone(), start.clone()], &expected);
    check(&[start, stop], &expected);
}

#[test]
fn a_stop_whose_end_was_not_seen_counts_for_nothing() {
    for ending in [
        Ending::Refused,
        Ending::Superseded,
        Ending::Released,
        Ending::Reversed,
        Ending::Resized,
        Ending::Gone,
    ] {
        check(&[stop("15 19:00", "15 19:02").ending(ending)], &[]);
    }
}

#[test]
fn any_start_that_was_asked_for_ends_what_counts() {
    for ending in [
        Ending::Seen,
        Ending::Refused,
        Ending::Superseded,
        Ending::Released,
        Ending::Reversed,
        Ending::Gone,
        Ending::Forgotten,
    ] {
        let entries = [stop("15 19:00", "15 19:02"), start("16 08:00", "16 09:00").ending(ending)];
        check_with(
            &entries,
            Some(&web_record(Power::Stopped, "15 19:02")),
            &["stopped 15 19:02 to 16 08:00"],
        );
    }
}

#[test]
fn a_start_that_found_a_person_ahead_of_it_leaves_the_time_before_unclear() {
    let stop = stop("15 19:00", "15 19:02");
    for found in [
        start("16 08:00", "16 08:00").unasked().ending(Ending::Resized),
        start("16 08:00", "16 08:10").unasked(),
    ] {
        check(&[stop.clone(), found], &["unclear 15 19:02 to 16 08:00"]);
    }
}

#[test]
fn a_second_stop_without_a_start_shows_that_a_person_started_it() {
    check_with(
        &[stop("15 19:00", "15 19:02"), stop("16 19:00", "16 19:03")],
        Some(&web_record(Power::Stopped, "16 19:03")),
        &["unclear 15 19:02 to 16 19:00", "stopped 16 19:03 to 17 12:00"],
    );
    // A refused one shows it as well.
    let refused = stop("16 19:00", "16 19:01").ending(Ending::Refused);
    check(&[stop("15 19:00", "15 19:02"), refused], &["unclear 15 19:02 to 16 19:00"]);
}

#[test]
fn a_second_stop_that_had_nothing_to_ask_for_goes_on_counting() {
    check_with(
        &[stop("15 19:00", "15 19:02"), stop("15 20:00", "15 20:10").unasked()],
        Some(&web_record(Power::Stopped, "15 19:02")),
        &["stopped 15 19:02 to 17 12:00"],
    );
}

#[test]
fn a_stop_turned_into_a_start_and_back_counts_from_where_it_was_seen() {
    check(
        &[
            stop("15 19:00", "15 19:02"),
            start("15 20:00", "15 20:01").ending(Ending::Reversed),
            stop("15 20:01", "15 20:20").unasked(),
            start("16 08:00", "16 08:03"),
        ],
        &["stopped 15 19:02 to 15 20:00", "stopped 15 20:20 to 16 08:00"],
    );
}

#[test]
fn what_is_still_stopped_counts_up_to_now() {
    let stop = [stop("16 19:00", "16 19:02")];
    let counted = ["stopped 16 19:02 to 17 12:00"];
    check_with(&stop, Some(&web_record(Power::Stopped, "16 19:01")), &counted);
    let already_there = Record { request: None, ..in_flight(Direction::Stop, "17 11:00") };
    check_with(&stop, Some(&already_there), &counted);
}

#[test]
fn since_it_was_last_seen_it_is_unclear() {
    let record = web_record(Power::Stopped, "16 19:01");
    let check = |unseen_since: &str, expected: &[&str]| {
        let known = LastKnownState { record: Some(&record), unseen_since: Some(at(unseen_since)) };
        let stop = [stop("16 19:00", "16 19:02")];
        let found = stopped_intervals(&stop, known, &schedules(), at("17 12:00"));
        assert_eq!(shown(&found), expected);
    };
    check("17 06:00", &["stopped 16 19:02 to 17 06:00", "unclear 17 06:00 to 17 12:00"]);
    check("16 18:00", &["unclear 16 19:02 to 17 12:00"]);
}

#[test]
fn a_database_that_was_as_small_before_is_not_held_by_us() {
    let desired_before = domain::record::Handled {
        generation: domain::configuration::Generation(1),
        key: domain::record::EdgeKey {
            instant: at("15 19:00"),
            rank: domain::record::Rank::Schedule,
        },
        desired: Some(domain::schedule::Desired::Stopped),
        schedule: None,
    };
    let smallest = Record {
        handled: Some(desired_before),
        ..record("do-main/database/d", Power::Stopped, "15 19:00")
    };
    check_with(&[], Some(&smallest), &[]);
    let shrunk = Record {
        saved: Some(SavedState::Database {
            plan: "db-s-4vcpu-8gb".to_owned(),
            nodes: 1,
            storage_mib: None,
        }),
        ..smallest
    };
    check_with(&[], Some(&shrunk), &["unclear 15 19:00 to 17 12:00"]);
}

#[test]
fn what_was_seen_running_again_counts_up_to_then() {
    let stop = [stop("16 19:00", "16 19:02")];
    check_with(
        &stop,
        Some(&web_record(Power::Running, "16 22:00")),
        &["stopped 16 19:02 to 16 22:00"],
    );
    let contradicted = Record {
        phase: Phase::Settled { at: Power::Stopped },
        ..web_record(Power::Running, "16 22:00")
    };
    check_with(&stop, Some(&contradicted), &["stopped 16 19:02 to 16 22:00"]);
}

#[test]
fn what_was_not_seen_to_start_again_is_unclear() {
    let stop = [stop("16 19:00", "16 19:02")];
    let unseen = Record { observed: None, ..web_record(Power::Running, "16 22:00") };
    let unclear = ["unclear 16 19:02 to 17 12:00"];
    check_with(&stop, Some(&unseen), &unclear);
    check_with(&stop, None, &unclear);
    check_with(
        &stop,
        Some(&in_flight(Direction::Stop, "17 11:00")),
        &["unclear 16 19:02 to 17 11:00"],
    );
}

#[test]
fn a_start_under_way_or_stuck_has_ended_it() {
    let stop = [stop("16 19:00", "16 19:02")];
    let starting = in_flight(Direction::Start, "17 08:00");
    let stuck = Record {
        phase: Phase::Stuck {
            transition: transition(Direction::Start, "17 08:00"),
            since: at("17 08:10"),
            reason: "not seen".to_owned(),
        },
        ..starting.clone()
    };
    for record in [starting, stuck] {
        check_with(&stop, Some(&record), &["stopped 16 19:02 to 17 08:00"]);
    }
}

#[test]
fn what_is_gone_counts_until_it_was_missed() {
    let gone = Record {
        phase: Phase::Gone { since: at("17 06:01") },
        missing_since: Some(at("17 06:00")),
        ..web_record(Power::Stopped, "16 19:02")
    };
    check_with(&[stop("16 19:00", "16 19:02")], Some(&gone), &["stopped 16 19:02 to 17 06:00"]);
}

#[test]
fn observe_mode_would_have_stopped_it_until_its_schedule_begins() {
    let would = |claimed: &str| stop(claimed, claimed).ending(Ending::WouldHave);
    check(
        &[would("15 19:00"), would("16 19:00")],
        &["would have 15 19:00 to 16 08:00", "would have 16 19:00 to 17 08:00"],
    );
    // A newer configuration triggers a new decision.
    check(
        &[would("15 19:00"), would("15 21:00")],
        &["would have 15 19:00 to 15 21:00", "would have 15 21:00 to 16 08:00"],
    );
    check(
        &[would("15 19:00"), start("15 20:00", "15 20:02")],
        &["would have 15 19:00 to 15 20:00"],
    );
}

#[test]
fn observe_mode_counts_only_what_a_known_schedule_desired() {
    let would = |schedule: Option<&str>, claimed: &str| HistoryEntry {
        schedule: schedule.map(|name| name.parse().unwrap()),
        ..stop(claimed, claimed).ending(Ending::WouldHave)
    };
    check(&[would(Some("removed"), "15 19:00")], &[]);
    check(&[would(None, "15 19:00")], &[]);
    // An override or a person desired the stop, at noon.
    check(&[would(Some("office"), "15 12:00")], &[]);
    check(&[would(Some("never"), "16 19:00")], &["would have 16 19:00 to 17 12:00"]);
}

#[test]
fn a_start_that_was_only_observed_leaves_it_stopped() {
    let would = start("16 08:00", "16 08:00").unasked().ending(Ending::WouldHave);
    check(
        &[stop("15 19:00", "15 19:02"), would, start("17 08:00", "17 08:02")],
        &["stopped 15 19:02 to 17 08:00"],
    );
}

#[test]
fn a_stop_that_was_only_observed_shows_that_it_ran() {
    let would = stop("16 19:00", "16 19:00").ending(Ending::WouldHave);
    check(
        &[stop("15 19:00", "15 19:02"), would.unasked()],
        &["unclear 15 19:02 to 16 19:00", "would have 16 19:00 to 17 08:00"],
    );
}

#[test]
fn what_has_been_stopped_for_longer_than_history_is_unclear() {
    let held = Record {
        observed: Some(Observed {
            power: Power::Stopped,
            size: None,
            busy: None,
            at: "2026-01-01T00:00:00Z".parse().unwrap(),
        }),
        handled: Some(domain::record::Handled {
            generation: domain::configuration::Generation(1),
            key: domain::record::EdgeKey {
                instant: "2026-01-01T00:00:00Z".parse().unwrap(),
                rank: domain::record::Rank::Schedule,
            },
            desired: Some(domain::schedule::Desired::Stopped),
            schedule: None,
        }),
        ..web_record(Power::Stopped, "15 00:00")
    };
    let found = stopped_intervals(&[], known(Some(&held)), &schedules(), at("17 12:00"));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, Kind::Unclear);
    let from: Timestamp = "2026-03-19T12:00:00Z".parse().unwrap();
    assert_eq!(found[0].period.from, from, "90 days before");
    check_with(&[], Some(&web_record(Power::Stopped, "15 00:00")), &[]);
}

#[test]
fn only_what_was_deleted_counts_as_hibernated() {
    let by = |method| {
        let entry = HistoryEntry {
            method: Some(method),
            reason: Some("it is to run again within the hour".to_owned()),
            ..stop("15 19:00", "15 19:01")
        };
        let entries = [entry, start("16 08:00", "16 08:01")];
        let now = at("16 12:00");
        let all = stopped_intervals(&entries, known(None), &schedules(), now);
        all.iter().map(|one| one.hibernated).collect::<Vec<_>>()
    };
    assert_eq!(by(StopMethod::Hibernate), [true]);
    assert_eq!(by(StopMethod::Graceful), [false]);
}
