//! Recording a provider's answer: only by the permit's writer, in whatever the record has become.

use domain::{
    history::HistoryEntry,
    reason::{Reason, Refusal},
    record::{Ask, Direction, Ending, Forced, Phase, Record},
    step::Step,
};
use environment::in_words;
use jiff::Timestamp;
use provider::{Accepted, ChangeError, ProviderError};

use crate::{backoff, event::Answer, transition::method::hibernate};

/// The effect of an answer, for the report.
#[derive(Debug)]
pub(crate) enum AnswerEffect {
    /// The transition continues; reported with the request.
    Answer(Answer),
    /// The transition has ended, or needs a person.
    Refused(Reason),
}

/// Returns the effect of an answer on the record that asked.
pub(crate) fn effect_of(asked: &Record, answer: &Result<Accepted, ChangeError>) -> AnswerEffect {
    match answer {
        Ok(_) => AnswerEffect::Answer(Answer::Accepted),
        // The same refusal of a start is reported once, however often it is repeated. What the
        // machine is not given back is reported when it runs.
        Err(ChangeError::Refused(refusal))
            if asks(asked, |step| matches!(step, Step::Attach(_)))
                || is_known(asked, &Reason::of(refusal)) =>
        {
            AnswerEffect::Answer(Answer::NotAccepted(refusal.to_string()))
        }
        Err(ChangeError::Refused(refusal)) => AnswerEffect::Refused(Reason::of(refusal)),
        Err(error) if error.is_not_permitted() && is_known(asked, &Reason::of(error)) => {
            AnswerEffect::Answer(Answer::NotAccepted(in_words(error)))
        }
        Err(error) if error.is_about_token() => {
            AnswerEffect::Answer(Answer::TokenRefused(in_words(error)))
        }
        Err(ChangeError::Busy(refusal)) => AnswerEffect::Answer(Answer::Busy(refusal.to_string())),
        Err(ChangeError::NotAccepted(error)) => {
            AnswerEffect::Answer(Answer::NotAccepted(in_words(error)))
        }
        Err(ChangeError::Unknown(error)) => AnswerEffect::Answer(Answer::Unknown(in_words(error))),
    }
}

/// Reports whether the provider refused this very request before, in the same words.
fn is_known(asked: &Record, reason: &Reason) -> bool {
    let problem = asked.request.as_ref().and_then(|r| r.problem.as_ref());
    problem.is_some_and(|problem| problem.eq_ignoring_request(reason))
}

/// Applies an answer to a record, and returns what that ends.
pub(crate) fn apply(
    record: &mut Record,
    answer: &Result<Accepted, ChangeError>,
    now: Timestamp,
) -> Option<HistoryEntry> {
    note_hibernation(record, answer);
    let forced = record.request.as_ref().map(|request| request.forced);
    match answer {
        // A machine runs without what its cloud no longer has.
        Err(error) if refuses_attachment(record, error) => {
            if let Some(request) = &mut record.request {
                request.ask = Ask::Failed { retry_at: now };
                if let Step::Attach(what) = &request.step
                    && let Some(kept) = record.hibernation.as_deref_mut()
                {
                    kept.refused.push(what.clone());
                }
            }
            record.last_error = Some(Reason::of(error));
            None
        }
        // A failed removal holds nothing up.
        Err(ChangeError::Refused(refusal)) if asks(record, Step::removes) => {
            if let Some(request) = &mut record.request {
                request.ask = Ask::Failed { retry_at: now };
            }
            record.last_error = Some(Reason::of(refusal));
            None
        }
        Err(ChangeError::Refused(refusal)) => {
            if record.under_way_towards(Direction::Start).is_some() {
                note_refused_start(record, refusal, now);
                None
            } else {
                note_refusal(record, Reason::of(refusal), now)
            }
        }
        answer if forced == Some(Forced::Intended) => {
            note_cut(record, answer);
            None
        }
        answer => {
            note_answer(record, answer, now);
            None
        }
    }
}

fn asks(record: &Record, of: impl Fn(&Step) -> bool) -> bool {
    record.request.as_ref().is_some_and(|request| of(&request.step))
}

/// Reports whether a cloud certainly does not give an attachment back to a machine: it refuses, or
/// does not know it any more.
fn refuses_attachment(record: &Record, error: &ChangeError) -> bool {
    let refused = matches!(
        error,
        ChangeError::Refused(_) | ChangeError::NotAccepted(ProviderError::NotFound(_))
    );
    refused && asks(record, |step| matches!(step, Step::Attach(_)))
}

/// Records what an answer says about what a hibernation request was to make. What was certainly not
/// accepted has deleted and made nothing; a 404 may be our own deletion.
fn note_hibernation(record: &mut Record, answer: &Result<Accepted, ChangeError>) {
    let Some(request) = &mut record.request else {
        return;
    };
    let number = answer.as_ref().ok().and_then(|accepted| accepted.made);
    let of = &record.reference.id;
    if matches!(request.step, Step::Create { .. }) {
        request.made = number.and_then(|number| hibernate::made(of, number));
    }
    let Some(kept) = record.hibernation.as_deref_mut() else {
        return;
    };
    let newest = kept.snapshots.first_mut();
    match (&request.step, answer) {
        (Step::Snapshot(_), Ok(_)) => {
            if let (Some(newest), Some(_)) = (newest, number) {
                newest.id = number;
            }
        }
        (
            Step::Snapshot(_) | Step::Delete,
            Err(ChangeError::NotAccepted(ProviderError::NotFound(_)) | ChangeError::Unknown(_)),
        ) => {}
        (Step::Snapshot(_), Err(_)) => {
            kept.snapshots.remove(0);
        }
        (Step::Delete, Err(_)) => kept.delete_asked = false,
        (_, _) => {}
    }
}

fn note_cut(record: &mut Record, answer: &Result<Accepted, ChangeError>) {
    if let Err(error) = answer {
        record.attempts += 1;
        note_not_permitted(record, error);
    }
    if let Some(request) = &mut record.request {
        request.forced = match answer {
            Ok(_) => Forced::Accepted,
            // It is looked at again: off by itself, or cut after a while.
            Err(_) if !request.unknown => Forced::No,
            // An earlier ask was never answered: it may have been a cut.
            Err(_) => Forced::Intended,
        };
    }
    record.last_error = answer.as_ref().err().map(|error| Reason::of(error));
}

fn note_answer(record: &mut Record, answer: &Result<Accepted, ChangeError>, now: Timestamp) {
    match answer {
        Ok(accepted) => note_accepted(record, accepted.action, now),
        Err(error @ (ChangeError::Busy(_) | ChangeError::NotAccepted(_))) => {
            record.attempts += 1;
            let retry_at = match error {
                ChangeError::NotAccepted(error) => {
                    // An invalid token is replaced at any minute. One that may not do this may
                    // stay so.
                    let ends_soon = matches!(error, ProviderError::TokenRefused(_));
                    let attempts = if ends_soon { 1 } else { record.attempts };
                    backoff::retry_at(now, attempts, error.retry_after())
                }
                ChangeError::Busy(_) | ChangeError::Refused(_) | ChangeError::Unknown(_) => {
                    backoff::when_free(now, record.attempts)
                }
            };
            note_not_permitted(record, error);
            if let Some(request) = &mut record.request {
                request.ask = Ask::Failed { retry_at };
            }
            record.last_error = Some(Reason::of(error));
        }
        Err(ChangeError::Refused(_) | ChangeError::Unknown(_)) => {}
    }
}

/// Records that a change is not permitted: it is sent again and needs a person meanwhile.
fn note_not_permitted(record: &mut Record, error: &ChangeError) {
    if let Some(request) = &mut record.request
        && error.is_not_permitted()
    {
        request.problem = Some(Reason::of(error));
    }
}

/// Records a refused start. A machine that stays off all day costs more than a request: the start
/// stays in flight and is sent again, and needs a person meanwhile.
fn note_refused_start(record: &mut Record, refusal: &Refusal, now: Timestamp) {
    let reason = Reason::of(refusal);
    let grows = asks(record, |step| step.moves() || matches!(step, Step::Create { .. }));
    let was_running = record.in_flight().is_some_and(|now| now.was_running);
    let retry_at = if grows && was_running {
        // It is switched on again at once.
        now
    } else if grows || refusal.code == "resource_unavailable" {
        // There may be room again at any minute.
        backoff::retry_at(now, record.attempts + 1, None)
    } else {
        backoff::on_the_minute(now, backoff::LONGEST)
    };
    if let Some(request) = &mut record.request {
        request.ask = Ask::Failed { retry_at };
        request.problem = Some(reason.clone());
    }
    record.attempts += 1;
    record.last_error = Some(reason);
}

/// Ends a stop. The saved state is dropped only if nothing can have shrunk the resource.
fn note_refusal(record: &mut Record, reason: Reason, now: Timestamp) -> Option<HistoryEntry> {
    let transition = record.in_flight()?.clone();
    let ended = HistoryEntry {
        reason: Some(reason.to_string()),
        ..HistoryEntry::of(record, &transition, Ending::Refused, now)
    };
    // An unanswered ask, or the accepted shutdown whose cut was refused.
    let may_act = record
        .request
        .as_ref()
        .is_some_and(|request| request.unknown || matches!(request.ask, Ask::Accepted { .. }));
    if !record.used && !may_act {
        record.clear_saved();
    }
    record.request = record.request.take().filter(|_| may_act);
    if let Some(request) = &mut record.request {
        request.forced = Forced::No;
    }
    record.last = ended.last(record);
    record.phase = Phase::Refused { transition, reason: reason.to_string() };
    record.last_error = Some(reason);
    Some(ended)
}

/// Records that the provider accepted the request: from here on a shrink may have happened. If an
/// earlier ask was accepted and its action ended in an error, this one proves nothing better.
pub(crate) fn note_accepted(
    record: &mut Record,
    action: Option<domain::resource::ActionId>,
    now: Timestamp,
) {
    if let Some(request) = &mut record.request {
        request.ask = Ask::Accepted { at: now, action };
        record.used |= request.is_shrink();
        if request.first_accepted_at.is_none() {
            request.first_accepted_at = Some(now);
            request.problem = None;
            record.attempts = 0;
            record.last_error = None;
        }
    }
}
