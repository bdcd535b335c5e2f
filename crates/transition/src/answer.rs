//! Recording a provider's answer: only by the permit's writer, in whatever the record has become.

use domain::{
    history::HistoryEntry,
    reason::{Reason, Refusal},
    record::{Ask, Direction, Ending, Forced, Phase, Record},
    step::Step,
};
use jiff::Timestamp;

use crate::{
    backoff,
    event::Answer,
    failure::{Answered, Failure, FailureKind},
    methods,
};

/// The effect of an answer, for the report.
#[derive(Debug)]
pub enum AnswerEffect {
    /// The transition continues; reported with the request.
    Answer(Answer),
    /// The transition has ended, or needs a person.
    Refused(Reason),
}

/// Returns the effect of an answer on the record that asked.
#[must_use]
pub fn effect_of(asked: &Record, answer: &Answered) -> AnswerEffect {
    let Err(failure) = answer else {
        return AnswerEffect::Answer(Answer::Accepted);
    };
    let words = failure.words.clone();
    AnswerEffect::Answer(match &failure.kind {
        FailureKind::Refused(refusal) => {
            // The same refusal of a start is reported once, however often it is repeated.
            let reason = Reason::of(refusal);
            if asks(asked, |step| step.facts().reports_refusal) && !is_known(asked, &reason) {
                return AnswerEffect::Refused(reason);
            }
            Answer::NotAccepted(words)
        }
        FailureKind::NotPermitted if is_known(asked, &failure.reason) => Answer::NotAccepted(words),
        FailureKind::TokenRefused | FailureKind::NotPermitted => Answer::TokenRefused(words),
        FailureKind::Busy => Answer::Busy(words),
        FailureKind::NotFound | FailureKind::NotAccepted => Answer::NotAccepted(words),
        FailureKind::Unknown => Answer::Unknown(words),
    })
}

/// Reports whether the provider refused this very request before, in the same words.
fn is_known(asked: &Record, reason: &Reason) -> bool {
    let problem = asked.request.as_ref().and_then(|r| r.problem.as_ref());
    problem.is_some_and(|problem| problem.eq_ignoring_request(reason))
}

/// Applies an answer to a record, and returns what that ends. The permit is over with it, unless the
/// request may have been accepted.
pub fn apply(record: &mut Record, answer: &Answered, now: Timestamp) -> Option<HistoryEntry> {
    if let Err(failure) = answer
        && failure.kind == FailureKind::Unknown
    {
        note_unknown(record, failure, now);
        return None;
    }
    record.permit = None;
    let goes_on = methods::answered(record, answer);
    let forced = record.request.as_ref().map(|request| request.forced);
    match answer.as_ref().map_err(Box::as_ref) {
        Err(failure) if goes_on => {
            if let Some(request) = &mut record.request {
                request.ask = Ask::Failed { retry_at: now };
            }
            record.last_error = Some(failure.reason.clone());
            None
        }
        Err(Failure { kind: FailureKind::Refused(refusal), .. }) => {
            if record.under_way_towards(Direction::Start).is_some() {
                note_refused_start(record, refusal, now);
                None
            } else {
                note_refusal(record, Reason::of(refusal), now)
            }
        }
        _ if forced == Some(Forced::Intended) => {
            note_cut(record, answer);
            None
        }
        _ => {
            note_answer(record, answer, now);
            None
        }
    }
}

/// Records why there was no usable answer. The request stays as it is, since a look decides what
/// became of it; what has to be sent again waits a while.
fn note_unknown(record: &mut Record, failure: &Failure, now: Timestamp) {
    record.attempts += 1;
    record.retry_at = Some(backoff::retry_at(now, record.attempts, None));
    record.failing = record.handled.as_ref().map(|handled| handled.key);
    record.last_error = Some(failure.reason.clone());
}

fn asks(record: &Record, of: impl Fn(&Step) -> bool) -> bool {
    record.request.as_ref().is_some_and(|request| of(&request.step))
}

fn note_cut(record: &mut Record, answer: &Answered) {
    if let Err(failure) = answer {
        record.attempts += 1;
        note_not_permitted(record, failure);
    }
    if let Some(request) = &mut record.request {
        request.forced = match answer {
            Ok(_) => Forced::Accepted,
            // It is looked at again: off by itself, or cut after a while.
            Err(_) if !request.earlier_unanswered => Forced::No,
            // An earlier ask was never answered: it may have been a cut.
            Err(_) => Forced::Intended,
        };
    }
    record.last_error = answer.as_ref().err().map(|failure| failure.reason.clone());
}

fn note_answer(record: &mut Record, answer: &Answered, now: Timestamp) {
    let failure = match answer {
        Ok(accepted) => return note_accepted(record, accepted.action, now),
        Err(failure) => failure,
    };
    let attempts = record.attempts + 1;
    let retry_at = match failure.kind {
        FailureKind::Refused(_) | FailureKind::Unknown => return,
        FailureKind::Busy => backoff::when_free(now, attempts),
        // An invalid token is replaced at any minute. One that may not do this may stay so.
        FailureKind::TokenRefused => backoff::retry_at(now, 1, failure.retry_after),
        FailureKind::NotFound | FailureKind::NotPermitted | FailureKind::NotAccepted => {
            backoff::retry_at(now, attempts, failure.retry_after)
        }
    };
    record.attempts = attempts;
    note_not_permitted(record, failure);
    if let Some(request) = &mut record.request {
        request.ask = Ask::Failed { retry_at };
    }
    record.last_error = Some(failure.reason.clone());
}

/// Records that a change is not permitted: it is sent again and needs a person meanwhile.
fn note_not_permitted(record: &mut Record, failure: &Failure) {
    if let Some(request) = &mut record.request
        && failure.kind == FailureKind::NotPermitted
    {
        request.problem = Some(failure.reason.clone());
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
    let may_act = record.request.as_ref().is_some_and(|request| {
        request.earlier_unanswered || matches!(request.ask, Ask::Accepted { .. })
    });
    if !record.may_have_shrunk && !may_act {
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
pub fn note_accepted(
    record: &mut Record,
    action: Option<domain::resource::ActionId>,
    now: Timestamp,
) {
    if let Some(request) = &mut record.request {
        request.ask = Ask::Accepted { at: now, action };
        record.may_have_shrunk |= request.is_shrink();
        record.retry_at = None;
        if request.first_accepted_at.is_none() {
            request.first_accepted_at = Some(now);
            request.problem = None;
            record.attempts = 0;
            record.last_error = None;
        }
    }
}
