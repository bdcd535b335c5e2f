//! What each part of a schedule says at an instant, in words.

use domain::schedule::{
    Desired, Evaluation, FiringExplanation, Miss, Moved, PeriodDefinition, PeriodExplanation,
    PeriodSays, Schedule, Turn, desired_or_any,
};
use jiff::{Timestamp, civil::Date};

use super::chain::Fact;

/// What a schedule says, and each of its parts.
pub(super) fn facts(
    schedule: &Schedule,
    at: Timestamp,
    time: &impl Fn(Timestamp) -> String,
) -> Vec<Fact> {
    let Evaluation { desired, periods, firings, bridged, holiday, clock_change, .. } =
        schedule.explain(at);
    let mut facts = vec![Fact::new("desired", desired_or_any(desired))];
    let written = &schedule.definition().periods;
    let periods = periods.iter().zip(written);
    facts.extend(periods.map(|(said, written)| Fact::new(window(written), verdict(said))));
    facts.extend(firings.iter().map(|one| firing(one, time)));
    if bridged {
        facts.push(Fact::new("gap", "the minute between two windows is bridged"));
    }
    if holiday {
        let words = "this day is one: nothing begins, and what is to stop is stopped";
        facts.push(Fact::new("holiday", words));
    }
    facts.extend(clock_change.map(|change| {
        let way = if change.from < change.to { "forward" } else { "back" };
        let day = change.day().strftime("%a");
        let (from, to) = (change.from.strftime("%H:%M"), change.to.strftime("%H:%M"));
        Fact::new("clock", format!("is set {way} on {day} from {from} to {to}"))
    }));
    facts
}

fn firing(firing: &FiringExplanation, time: &impl Fn(Timestamp) -> String) -> Fact {
    let what = match firing.desired {
        Desired::Running => "start",
        Desired::Stopped => "stop",
    };
    let turn =
        |turn: Option<Turn>| turn.map_or("never".to_owned(), |turn| time(turn.at) + moved(&turn));
    let passed_over = firing.passed_over.map(|day| day.strftime("%a %Y-%m-%d"));
    let passed_over = passed_over.map(|day| format!("; not on {day}, a holiday"));
    let (last, next) = (turn(firing.last), turn(firing.next));
    Fact::new(
        format!("{what} {}", firing.expression),
        format!("last {last}, next {next}{}", passed_over.unwrap_or_default()),
    )
}

/// A period as its author wrote it, in one line.
fn window(period: &PeriodDefinition) -> String {
    let days = [&period.weekdays, &period.monthdays, &period.months];
    let mut parts: Vec<_> =
        days.into_iter().filter(|field| !field.is_empty()).map(|field| field.join(",")).collect();
    parts.extend(match (&period.from, &period.until) {
        (None, None) => None,
        (from, until) => {
            let date = |date: &Option<String>| date.clone().unwrap_or_default();
            Some(format!("{}..{}", date(from), date(until)))
        }
    });
    match (&period.begin, &period.end) {
        (None, None) if parts.is_empty() => parts.push("always".to_owned()),
        (None, None) => {}
        (Some(begin), Some(end)) => parts.push(format!("{begin}-{end}")),
        (Some(begin), None) => parts.push(format!("from {begin}")),
        (None, Some(end)) => parts.push(format!("until {end}")),
    }
    parts.extend(period.timezone.clone());
    parts.join(" ")
}

/// Whether a period applies, and why not.
fn verdict(said: &PeriodExplanation) -> String {
    let of_the_day: Vec<_> = said.misses.iter().filter_map(|miss| day_miss(*miss)).collect();
    let why_not = match (of_the_day.as_slice(), said.misses.first()) {
        ([], None) => None,
        ([], Some(Miss::NotBegun)) => Some(format!("{} has not begun", span(said))),
        ([], Some(_)) => Some(format!("{} is over", span(said))),
        (fields, _) => Some(format!("{} {}", date(said.day), fields.join(", "))),
    };
    let says = match (&why_not, said.says) {
        (_, None) => "no say",
        (Some(_), Some(PeriodSays::Any)) => "no desired state",
        (Some(_), Some(PeriodSays::Running | PeriodSays::Stopped)) => "no",
        (None, Some(says)) => says.as_str(),
    };
    let words = format!("{says}: {}", why_not.unwrap_or_else(|| span(said)));
    [said.begins, said.ends].iter().flatten().fold(words, |words, turn| words + moved(turn))
}

/// The window of the judged day.
fn span(said: &PeriodExplanation) -> String {
    let begins = said.begins.map(|turn| turn.reading.strftime("%a %H:%M"));
    let ends = said.ends.map(|turn| {
        let is_told = begins.is_some() && turn.reading.date() == said.day;
        turn.reading.strftime(if is_told { "%H:%M" } else { "%a %H:%M" })
    });
    match (begins, ends) {
        (Some(begins), Some(ends)) => format!("{begins} to {ends}"),
        (Some(begins), None) => format!("{begins} to midnight"),
        (None, Some(ends)) => format!("{ends} to midnight"),
        (None, None) => date(said.day),
    }
}

/// Names the field of a period that a day does not match; `None` if the day does.
fn day_miss(miss: Miss) -> Option<&'static str> {
    Some(match miss {
        Miss::Weekday => "is none of its weekdays",
        Miss::Monthday => "is none of its days of the month",
        Miss::Month => "is in none of its months",
        Miss::Date => "is outside of its dates",
        Miss::Holiday => "is a holiday",
        Miss::NotBegun | Miss::Over => return None,
    })
}

fn date(day: Date) -> String {
    day.strftime("%a %Y-%m-%d").to_string()
}

/// What a change of the clock does to a time.
fn moved(turn: &Turn) -> &'static str {
    match turn.moved {
        None => "",
        Some(Moved::Skipped) => " (a time that the clock skips: at the jump)",
        Some(Moved::Repeated) => {
            " (a time that comes twice: begins at the first, ends at the last)"
        }
    }
}
