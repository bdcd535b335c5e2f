//! The strip of each schedule, which unfolds to its resources, and its week and month.

use domain::{
    ScheduleName,
    configuration::Rule,
    resource::Power,
    schedule::{Desired, desired_or_any},
};
use jiff::{SignedDuration, Span, Timestamp, ToSpan as _, civil::Date, tz::TimeZone};
use maud::{Markup, html};
use report::{
    count,
    history::Period,
    money::hours_in_words,
    pausing,
    strip::{Ran, Strip, around, days},
};

use crate::{
    Audience, buttons,
    facts::{Facts, Machine},
    picture::{hours, strips},
    text,
};

pub(crate) fn section(facts: &Facts<'_>) -> Markup {
    let unscheduled = facts.unscheduled();
    html! {
        section aria-labelledby="schedules" {
            h2 id="schedules" { "What runs, and until when" }
            (legend())
            @for (name, rule) in facts.schedules() { (schedule(facts, name, rule)) }
            @if !unscheduled.is_empty() {
                details class="schedule" {
                    summary {
                        h3 { "Without a schedule" }
                        p { (count(unscheduled.len(), "resource")) " that no schedule stops or starts." }
                    }
                    (machines(facts, &unscheduled))
                }
            }
        }
    }
}

fn legend() -> Markup {
    html! {
        p class="legend" {
            span class="r" {} "should run " span class="s" {} "should be off "
            span class="o" {} "override " span class="p" {} "paused " span class="h" {} "holiday "
            span class="d" {} "did run (below) " span class="u" {} "unclear " span class="n" {} "now"
        }
    }
}

fn schedule(facts: &Facts<'_>, name: &ScheduleName, rule: &Rule) -> Markup {
    let (now, period) = (facts.input.now, around(facts.input.now));
    let strip = facts.strip(name, rule, period);
    let following = facts.following(name);
    let sentence = facts.schedule_sentence(name, rule);
    let off = following.iter().filter(|one| one.view.power == Power::Stopped).count();
    let counted = match following.len() {
        0 => "Nothing follows it.".to_owned(),
        many => format!("{off} of {} off.", count(many, "resource")),
    };
    html! {
        article class="schedule" {
            details {
                summary {
                    h3 { (name) }
                    p { (text::sentence(&sentence)) " " (counted) }
                    @for (date, _) in &strip.holidays { p class="small" { "Holiday: " (date.strftime("%a %Y-%m-%d")) } }
                    (strips(std::slice::from_ref(&strip), now, &format!("{name}: {sentence} {counted}"), "strip"))
                    (hours(period, facts.input.zone))
                }
                @if facts.audience == Audience::Acting { (buttons::of_schedule(facts, name)) }
                (machines(facts, &following))
                (table(facts, &strip))
            }
            details class="more" {
                summary { "Week and month of " (name) }
                (calendar(facts, name, rule))
            }
        }
    }
}

/// The resources, each with its strip, and why it is in its state.
fn machines(facts: &Facts<'_>, machines: &[&Machine<'_>]) -> Markup {
    let (now, period) = (facts.input.now, around(facts.input.now));
    html! {
        @for machine in machines {
            @let sentence = facts.machine_sentence(machine);
            details class="machine" {
                summary {
                    b { (text::name(&machine.view.name)) } " "
                    span class=(if machine.view.needs_person().is_some() { "alarming" } else { "state" }) {
                        (text::sentence(&sentence))
                    }
                    @if let Some(course) = facts.input.past.courses.get(&machine.record.reference) {
                        (strips(
                            &[Strip::of_resource(machine.record, facts.input.in_force.rules(), Some(course), period, now)],
                            now, &sentence, "mini"
                        ))
                    }
                }
                @if !facts.is_public() { p class="small" { (text::sentence(&machine.view.resource.to_string())) } }
                @for line in facts.answer(machine) { p { (text::sentence(&line)) } }
                @if facts.audience == Audience::Acting { (buttons::of_machine(facts, machine)) }
            }
        }
    }
}

/// The same as the picture, in words.
fn table(facts: &Facts<'_>, strip: &Strip<'_>) -> Markup {
    let row = |period: Period, what: &str| {
        html! {
            tr { th scope="row" { (facts.time(period.from)) " – " (facts.time(period.until)) } td { (text::sentence(what)) } }
        }
    };
    html! {
        details {
            summary { "As a table" }
            table {
                caption { "What should be, and what was" }
                @for span in &strip.desired { (row(span.period, desired_or_any(span.desired))) }
                @for (period, one) in &strip.overrides {
                    @let by = if facts.is_public() { String::new() } else { format!(" by {}", one.by) };
                    (row(*period, &format!("override to {}{by}", one.desired)))
                }
                @for (period, pause) in &strip.pauses {
                    (row(*period, &format!("paused: {}", pausing::sent(pause))))
                }
                @for (date, day) in &strip.holidays { (row(*day, &format!("holiday, {date}"))) }
                @for ran in &strip.ran { (row(ran.period, &in_words(*ran))) }
            }
        }
    }
}

fn in_words(ran: Ran) -> String {
    let unclear = match ran.unclear {
        0 => String::new(),
        unclear => format!(", {unclear} unclear"),
    };
    format!("{} ran, {} off{unclear}", ran.running, ran.stopped)
}

/// The days of this week, and of the month that the money is about.
fn calendar(facts: &Facts<'_>, name: &ScheduleName, rule: &Rule) -> Markup {
    let zone = facts.input.zone;
    let today = facts.input.now.to_zoned(zone.clone()).date();
    let past = facts.input.past.by_resource.period;
    // A month of money is one of UTC.
    let first = past.from.to_zoned(TimeZone::UTC).date().first_of_month();
    let first = if past.until >= facts.input.now { today.first_of_month() } else { first };
    let back = i64::from(today.weekday().to_monday_zero_offset()).days();
    let monday = today.checked_sub(back).unwrap_or(today);
    html! {
        (picture(facts, name, rule, "This week", monday, 7.days()))
        (picture(facts, name, rule, &first.strftime("%B %Y").to_string(), first, 1.month()))
    }
}

/// Days below each other.
fn picture(
    facts: &Facts<'_>,
    name: &ScheduleName,
    rule: &Rule,
    heading: &str,
    from: Date,
    span: Span,
) -> Markup {
    let zone = facts.input.zone;
    let midnight =
        |date: Date| date.to_zoned(zone.clone()).map_or(Timestamp::UNIX_EPOCH, |at| at.timestamp());
    let until = from.checked_add(span).unwrap_or(from);
    let period = Period { from: midnight(from), until: midnight(until) };
    let days: Vec<_> = days(period, zone)
        .into_iter()
        .map(|(date, day)| (date, facts.strip(name, rule, day)))
        .collect();
    let drawn: Vec<_> = days.iter().map(|(_, strip)| strip.clone()).collect();
    let text = format!("{heading} of {name}: a row for each day, from midnight to midnight");
    html! {
        h4 { (heading) }
        div class="days" {
            div class="dates" aria-hidden="true" {
                @for (date, _) in &days { span { (date.strftime("%a %d")) } }
            }
            (strips(&drawn, facts.input.now, &text, ""))
        }
        details {
            summary { (heading) " as a table" }
            table {
                caption { (text) }
                tr { th scope="col" { "Day" } th scope="col" { "Should run" } th scope="col" { "Was off, all together" } }
                @for (date, strip) in &days {
                    tr {
                        th scope="row" { (date.strftime("%a %Y-%m-%d")) @if is_holiday(strip) { " holiday" } }
                        td { (hours_in_words(desired_hours(strip))) }
                        td { (was_off(strip, facts.input.now)) }
                    }
                }
            }
        }
    }
}

/// Reports whether most of a day is a holiday, which is a day of the schedule's own zone.
fn is_holiday(strip: &Strip<'_>) -> bool {
    strip.holidays.iter().any(|(_, day)| day.length() * 2 > strip.period.length())
}

fn desired_hours(strip: &Strip<'_>) -> f64 {
    let running = strip.desired.iter().filter(|span| span.desired == Some(Desired::Running));
    running.map(|span| span.period.length()).sum::<SignedDuration>().as_secs_f64() / 3600.0
}

/// How long all were off together: `unknown` if nothing is known of the time, and nothing of what is
/// to come.
fn was_off(strip: &Strip<'_>, now: Timestamp) -> String {
    if strip.ran.is_empty() {
        let word = if strip.period.from < now { "unknown" } else { "" };
        return word.to_owned();
    }
    let off = |ran: &Ran| ran.period.length() * i32::try_from(ran.stopped).unwrap_or(i32::MAX);
    hours_in_words(strip.ran.iter().map(off).sum::<SignedDuration>().as_secs_f64() / 3600.0)
}
