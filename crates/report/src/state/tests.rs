//! Tests of when an account needs a person, and of the wording.

use domain::reason::Reason;

use super::*;

fn at(time: &str) -> Timestamp {
    format!("2026-11-24T{time}:00Z").parse().unwrap()
}

fn state(listed_at: Option<&str>, error: Option<&str>) -> AccountState {
    AccountState {
        listed_at: listed_at.map(at),
        error: error.map(Into::into),
        ..AccountState::unknown("do-main".parse().unwrap())
    }
}

/// The brief and the whole text, at 08:00 under a configuration applied at 07:30.
fn failure(state: &AccountState) -> Option<(String, String)> {
    let failure = AccountFailure::of(Some(state), Some(at("07:30")), at("08:00"));
    failure.map(|failure| (failure.brief, failure.whole))
}

fn words(brief: &str, whole: &str) -> (String, String) {
    (brief.to_owned(), whole.to_owned())
}

#[test]
fn a_token_that_fails_needs_a_person_at_once() {
    let because = Some("Unable to authenticate you".to_owned());
    let mut failing = state(Some("07:55"), None);
    failing.error = Some(Reason::new("token refused".to_owned(), because));
    assert_eq!(failure(&failing), None, "another failure: it is tried again");
    failing.token_fails = true;
    let whole = "token refused: Unable to authenticate you";
    assert_eq!(failure(&failing), Some(words("token refused", whole)));
}

#[test]
fn an_account_that_is_not_listed_needs_one_once_nothing_is_stopped_any_more() {
    assert_eq!(failure(&state(Some("07:45"), None)), None);
    assert_eq!(
        failure(&state(Some("06:52"), None)),
        Some(words("not listed for 1h 8m", "not listed for 1h 8m"))
    );
    assert_eq!(
        failure(&state(Some("07:44"), Some("no answer"))),
        Some(words("not listed for 16m", "not listed for 16m: no answer"))
    );
}

#[test]
fn an_account_that_was_just_applied_has_time_to_be_listed() {
    let never = |since: Option<&str>| AccountFailure::of(None, since.map(at), at("08:00"));
    assert_eq!(never(Some("07:45")), None);
    assert_eq!(never(Some("07:44")).unwrap().brief, "not listed yet");
    assert_eq!(never(None), None);
}
