//! What an answer leaves in the record.

use std::time::Duration;

use domain::step::Accepted;

use super::*;
use crate::{
    answer::{AnswerEffect, apply, effect_of},
    event::Answer,
    failure::Answered,
};

fn refusal() -> Refusal {
    Refusal {
        status: Some(422),
        code: "unprocessable_entity".to_owned(),
        message: "cannot shrink".to_owned(),
        request_id: None,
    }
}

fn refused() -> Answered {
    Err(failure(FailureKind::Refused(refusal()), &refusal()))
}

fn busy() -> Answered {
    Err(failure(FailureKind::Busy, &refusal()))
}

fn limited(seconds: Option<u64>) -> Answered {
    let retry_after = seconds.map(Duration::from_secs);
    Err(Box::new(Failure { retry_after, ..*failure(FailureKind::NotAccepted, &refusal()) }))
}

const TAKEN: Answered = Ok(Accepted { action: Some(ActionId(9)), made: None });

/// A request that has just left; its answer is recorded at 19:00:10.
fn asked(case: Case, direction: Direction) -> Record {
    case.asked(direction, "19:00", Ask::Open).record
}

fn noted(record: &Record, answer: &Answered) -> (Record, Option<domain::history::HistoryEntry>) {
    let mut record = record.clone();
    let ended = apply(&mut record, answer, at("19:00:10"));
    (record, ended)
}

fn ask(record: &Record) -> &Ask {
    &record.request.as_ref().unwrap().ask
}

#[test]
fn an_accepted_request_is_noted_with_its_instant_and_action() {
    let failing = droplet().record(|record| {
        record.attempts = 2;
        record.last_error = Some("busy".into());
    });
    let (record, ended) = noted(&asked(failing, STOP), &TAKEN);
    let expected = Ask::Accepted { at: at("19:00:10"), action: Some(ActionId(9)) };
    assert_eq!(*ask(&record), expected);
    assert!(record.in_flight().is_some(), "accepted is not done");
    assert_eq!((ended, record.attempts, record.last_error), (None, 0, None));
}

#[test]
fn an_accepted_shrink_uses_what_is_saved_and_nothing_else_does() {
    let used = |case: Case, direction| noted(&asked(case, direction), &TAKEN).0.may_have_shrunk;
    assert!(used(pool().saved(pool_of(3)), STOP));
    assert!(used(database().saved(pool_of(1)), STOP));
    assert!(!used(pool().saved(pool_of(3)), START));
    assert!(!used(droplet(), STOP));
}

#[test]
fn an_accepted_start_keeps_what_is_saved() {
    let starting = asked(pool().saved(pool_of(3)), START);
    let (record, _) = noted(&starting, &TAKEN);
    assert_eq!(record.saved, Some(pool_of(3)));
}

#[test]
fn a_refused_stop_keeps_nothing_saved_if_nothing_can_have_shrunk_it() {
    let record = asked(pool().saved(pool_of(3)), STOP);
    let (record, ended) = noted(&record, &refused());
    assert!(matches!(
        &record.phase,
        Phase::Refused { reason, transition }
            if reason.contains("cannot shrink") && transition.direction == STOP
    ));
    assert_eq!((&record.saved, &record.request), (&None, &None));
    assert!(record.last_error.unwrap().words().contains("cannot shrink"));
    let ended = ended.unwrap();
    assert_eq!(ended.ending, Ending::Refused);
    assert!(ended.reason.unwrap().contains("cannot shrink"));
    assert_eq!(ended.saved, Some(pool_of(3)));
}

#[test]
fn a_refused_stop_keeps_what_is_saved_if_an_earlier_shrink_used_it() {
    let record = asked(pool().saved(pool_of(3)).used(), STOP);
    let (record, _) = noted(&record, &refused());
    assert_eq!((record.saved, record.may_have_shrunk), (Some(pool_of(3)), true));
}

#[test]
fn a_refused_stop_keeps_what_is_saved_if_an_earlier_ask_was_never_answered() {
    let case = pool().saved(pool_of(3)).asked(STOP, "19:00", Ask::Open);
    let (record, _) = noted(&case.unknown().record, &refused());
    assert_eq!(record.saved, Some(pool_of(3)));
    assert!(record.request.is_some_and(|request| request.may_act()));
}

#[test]
fn a_refused_start_stays_under_way_and_is_asked_for_again_every_quarter_of_an_hour() {
    let record = asked(pool().saved(pool_of(3)), START);
    let (record, ended) = noted(&record, &refused());
    assert!(record.in_flight().is_some());
    assert_eq!((*ask(&record)).clone(), failed("19:15"));
    assert_eq!((&record.saved, ended), (&Some(pool_of(3)), None));
    let problem = record.request.as_ref().unwrap().problem.as_ref();
    assert!(problem.unwrap().words().contains("cannot shrink"));
    let (record, _) = noted(&record, &refused());
    assert_eq!((*ask(&record)).clone(), failed("19:15"));
    let (record, _) = noted(&record, &TAKEN);
    assert_eq!((record.request.unwrap().problem, record.last_error), (None, None));
}

#[test]
fn one_refusal_of_a_start_is_reported_once() {
    let first = asked(pool().saved(pool_of(3)), START);
    assert!(matches!(effect_of(&first, &refused()), AnswerEffect::Refused(_)));
    let (known, _) = noted(&first, &refused());
    let repeated = Refusal { request_id: Some("another".to_owned()), ..refusal() };
    let repeated = Err(failure(FailureKind::Refused(repeated.clone()), &repeated));
    assert!(matches!(effect_of(&known, &repeated), AnswerEffect::Answer(Answer::NotAccepted(_))));
    let another = Refusal { message: "no capacity".to_owned(), ..refusal() };
    let another = Err(failure(FailureKind::Refused(another.clone()), &another));
    assert!(matches!(effect_of(&known, &another), AnswerEffect::Refused(_)));
}

#[test]
fn a_refused_token_is_the_accounts_failure_and_is_tried_again_within_a_minute() {
    for direction in [STOP, START] {
        let error = || failure(FailureKind::TokenRefused, &refusal());
        let mut record = asked(droplet(), direction);
        for _ in 0..5 {
            record = noted(&record, &Err(error())).0;
            assert_eq!(*ask(&record), failed("19:01"));
            assert_eq!(record.request.as_ref().unwrap().problem, None);
        }
        let meant = effect_of(&record, &Err(error()));
        assert!(matches!(meant, AnswerEffect::Answer(Answer::TokenRefused(_))));
    }
}

#[test]
fn what_is_not_permitted_is_sent_again_less_and_less_often_and_needs_a_person() {
    for direction in [STOP, START] {
        let error = || failure(FailureKind::NotPermitted, &refusal());
        let mut record = asked(droplet(), direction);
        let first = effect_of(&record, &Err(error()));
        assert!(matches!(first, AnswerEffect::Answer(Answer::TokenRefused(_))));
        for retry_at in ["19:01", "19:02", "19:04", "19:08", "19:15", "19:15"] {
            record = noted(&record, &Err(error())).0;
            assert_eq!(*ask(&record), failed(retry_at));
            assert!(record.request.as_ref().unwrap().problem.is_some());
        }
        let known = effect_of(&record, &Err(error()));
        assert!(matches!(known, AnswerEffect::Answer(Answer::NotAccepted(_))));
    }
}

#[test]
fn another_acceptance_proves_nothing_better_than_the_one_whose_action_failed() {
    let erring = droplet().asked(START, "19:00", Ask::Open).request(|request| {
        request.first_accepted_at = Some(at("18:40"));
        request.problem = Some("ended in an error 5 times".into());
    });
    let erring = erring.record(|record| {
        record.attempts = 5;
        record.last_error = Some("ended in an error 5 times".into());
    });
    let (record, _) = noted(&erring.record, &TAKEN);
    let request = record.request.unwrap();
    assert_eq!(request.first_accepted_at, Some(at("18:40")));
    assert!(request.problem.is_some() && record.last_error.is_some());
    assert_eq!(record.attempts, 5);
}

#[test]
fn busy_is_not_a_refusal_and_is_asked_again_after_a_while() {
    let mut record = asked(pool().saved(pool_of(3)), STOP);
    for retry_at in ["19:00:15", "19:00:20", "19:00:30", "19:00:50", "19:01"] {
        record = noted(&record, &busy()).0;
        assert_eq!(*ask(&record), failed(retry_at));
        assert!(record.in_flight().is_some());
        assert_eq!(record.saved, Some(pool_of(3)));
        assert!(record.last_error.as_ref().unwrap().words().contains("cannot shrink"));
    }
    let case = droplet().asked(STOP, "19:00", Ask::Open).unknown();
    let (record, _) = noted(&case.record, &busy());
    assert!(record.request.unwrap().earlier_unanswered);
}

#[test]
fn a_rate_limit_is_waited_for_as_long_as_the_provider_says() {
    let record = asked(droplet(), STOP);
    let (limited_long, _) = noted(&record, &limited(Some(600)));
    assert_eq!(*ask(&limited_long), failed("19:10:10"));
    let (limited_short, _) = noted(&record, &limited(Some(5)));
    assert_eq!(*ask(&limited_short), failed("19:01"));
    let (unsaid, _) = noted(&record, &limited(None));
    assert_eq!(*ask(&unsaid), failed("19:01"));
}

#[test]
fn without_an_answer_nothing_is_concluded_and_the_next_request_waits_longer_each_time() {
    let unknown = Err(failure(FailureKind::Unknown, &refusal()));
    for record in [asked(pool().saved(pool_of(3)), STOP), cut()] {
        let record = Record {
            permit: Some(Permit { until: at("19:02"), writer: us() }),
            attempts: 3,
            ..record
        };
        let (noted, ended) = noted(&record, &unknown);
        assert_eq!(ended, None);
        assert!(noted.last_error.as_ref().unwrap().words().contains("cannot shrink"));
        assert_eq!((noted.attempts, noted.retry_at), (4, Some(at("19:08"))));
        let failing = record.handled.as_ref().map(|handled| handled.key);
        let expected = Record {
            attempts: 4,
            retry_at: noted.retry_at,
            failing,
            last_error: noted.last_error.clone(),
            ..record
        };
        assert_eq!(noted, expected);
    }
}

#[test]
fn what_was_not_answered_is_asked_again_once_its_permit_and_its_wait_are_over() {
    let open = droplet().asked(STOP, "19:00", Ask::Open).handled("19:00", STOPPED);
    let waiting = open.clone().record(|record| record.retry_at = Some(at("19:08")));
    open.at("19:02").sends(STOP);
    waiting.clone().at("19:07:59").leaves(STOP);
    let sent = waiting.clone().at("19:08").sends(STOP);
    assert_eq!(sent.record.retry_at, None);
    // What is seen or found in the log does not wait.
    let found = waiting.at("19:02").logged(ActionEffect::PowerOff, "19:00:03").records();
    assert_eq!(found.record.retry_at, None);
}

fn cut() -> Record {
    let case = server().asked(STOP, "18:59", accepted("18:59:05"));
    let case = case.handled("18:59", STOPPED);
    case.request(|request| request.forced = Forced::Intended).record
}

#[test]
fn an_accepted_cut_leaves_the_shutdowns_acceptance() {
    let (record, ended) = noted(&cut(), &TAKEN);
    let request = record.request.unwrap();
    assert_eq!((request.forced, request.ask), (Forced::Accepted, accepted("18:59:05")));
    assert_eq!(ended, None);
}

#[test]
fn a_cut_that_was_not_taken_is_intended_anew() {
    for answer in [busy(), limited(None)] {
        let (record, ended) = noted(&cut(), &answer);
        let request = record.request.unwrap();
        assert_eq!((request.forced, request.ask), (Forced::No, accepted("18:59:05")));
        assert_eq!(ended, None);
        assert!(record.last_error.is_some());
    }
}

#[test]
fn an_earlier_cut_may_still_come_though_a_later_one_was_not_taken() {
    let mut twice = cut();
    twice.request.as_mut().unwrap().earlier_unanswered = true;
    let (record, _) = noted(&twice, &busy());
    let request = record.request.as_ref().unwrap();
    assert_eq!(request.forced, Forced::Intended);
    assert_eq!(request.quiet_at(record.kind()), cut().request.unwrap().quiet_at(record.kind()));
}

#[test]
fn a_refused_cut_ends_the_stop_whose_shutdown_may_still_act() {
    let (record, ended) = noted(&cut(), &refused());
    assert!(matches!(record.phase, Phase::Refused { .. }));
    assert_eq!(ended.unwrap().ending, Ending::Refused);
    let request = record.request.unwrap();
    assert_eq!((request.forced, request.may_act()), (Forced::No, true));
}
