//! What a record keeps of how its latest edge ended.

use domain::record::Last;

use super::*;
use crate::answer::apply;

/// What the record keeps of a stop or start at 19:00 that ended at an instant.
fn last(ending: Ending, finished_at: &str) -> Last {
    Last {
        key: EdgeKey { instant: at("19:00"), rank: Rank::Schedule },
        claimed_at: at("19:00"),
        asked_at: Some(at("19:00")),
        finished_at: at(finished_at),
        ending,
        method: Some(StopMethod::Graceful),
    }
}

fn stopping() -> Case {
    server().asked(STOP, "19:00", accepted("19:00:10"))
}

#[test]
fn a_transition_that_is_seen_leaves_its_edge_and_its_instants() {
    let record = stopping().off().at("19:00:40").records().record;
    assert_eq!(record.last, Some(last(Ending::Seen, "19:00:40")));
}

#[test]
fn a_transition_that_is_not_seen_says_how_it_ended() {
    let overtaken = stopping().logged(ActionEffect::Start, "19:01");
    let cases = [
        (overtaken.at("19:02"), Ending::Superseded),
        (stopping().untagged().at("19:10:15"), Ending::Released),
        (stopping().observing().at("19:10:10"), Ending::Stuck),
    ];
    for (case, ending) in cases {
        let kept = case.records().record.last.unwrap();
        assert_eq!((kept.ending, kept.finished_at), (ending, case.now));
        assert_eq!(kept.asked_at, Some(at("19:00")));
    }
    let mut record = server().asked(STOP, "19:00", Ask::Open).record;
    let refusal = Refusal {
        status: Some(422),
        code: "unprocessable_entity".to_owned(),
        message: "cannot shrink".to_owned(),
        request_id: None,
    };
    let refused = Err(failure(FailureKind::Refused(refusal.clone()), &refusal));
    apply(&mut record, &refused, at("19:00:10"));
    let expected = last(Ending::Refused, "19:00:10");
    assert_eq!(record.last, Some(expected));
}

#[test]
fn what_is_stuck_and_then_seen_was_seen() {
    let stuck = stopping().observing().at("19:10:10").records().record;
    let case = stopping().record(|record| *record = stuck).off();
    let record = case.at("19:15").records().record;
    assert_eq!(record.last, Some(last(Ending::Seen, "19:15")));
}

#[test]
fn an_edge_for_which_nothing_is_sent_is_kept_without_a_request() {
    let nothing_sent = |ending| Last {
        claimed_at: at("19:00:30"),
        asked_at: None,
        method: None,
        ..last(ending, "19:00:30")
    };
    // An earlier request, for another edge, does not count.
    let asked_before = || {
        let stuck = server().asked(STOP, "08:00", accepted("08:00:10")).record;
        server()
            .record(|record| record.request = stuck.request)
            .handled("08:00", RUNNING)
            .at("19:00:30")
    };
    let there = asked_before().off().settled(Power::Stopped);
    let record = there.writes(STOP).record;
    assert_eq!(record.last, Some(nothing_sent(Ending::AlreadyThere)));
    let record = asked_before().observing().withholds(STOP).write.record;
    assert_eq!(record.last, Some(nothing_sent(Ending::WouldHave)));
}

#[test]
fn a_turn_ends_the_edge_before_and_a_claim_after_rest_keeps_it() {
    let turned = stopping().overridden(RUNNING, "19:02", "22:00").at("19:03");
    let expected = Some(last(Ending::Reversed, "19:03"));
    assert_eq!(turned.clone().off().sends(START).record.last, expected);
    assert_eq!(turned.writes(START).record.last, expected);

    let seen = stopping().off().at("19:00:40").records().record;
    let morning = server().record(|record| *record = seen.clone()).off();
    let claimed = morning.at("tue 08:00:10").sends(START).record;
    assert_eq!(claimed.last, seen.last);
}
