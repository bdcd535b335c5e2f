//! The buttons of a live page. Each leads to a question, and changes nothing by itself.

use domain::{
    ScheduleName,
    configuration::OverrideTarget,
    text::{LONGEST_LINE, one_line},
};
use maud::{Markup, html};

use crate::{
    Input,
    facts::{Facts, Machine},
    text,
};

/// The end of a stop, unless another one is typed.
const UNTIL: &str = "next-edge";

pub(crate) fn of_schedule(facts: &Facts<'_>, schedule: &ScheduleName) -> Markup {
    let target = OverrideTarget::Schedule(schedule.clone());
    forms(facts, &target, &format!("--schedule={schedule}"), UNTIL)
}

pub(crate) fn of_machine(facts: &Facts<'_>, machine: &Machine<'_>) -> Markup {
    let view = &machine.view;
    let target = OverrideTarget::Resource(view.resource.clone());
    let until = if view.schedule.is_some() { UNTIL } else { "2h" };
    forms(facts, &target, &view.resource.to_string(), until)
}

/// The forms for a target, which is `typed` like this in a command.
fn forms(facts: &Facts<'_>, target: &OverrideTarget, typed: &str, until: &str) -> Markup {
    let Input { in_force, now, .. } = facts.input;
    let is_overridden = in_force.overrides.get(target).is_some_and(|one| now < one.ends_at);
    let button = |command: String, what: &str| {
        html! { button name="command" value=(command) { (what) } }
    };
    html! {
        form action="act" {
            (button(format!("override running {typed} --for 2h"), "Keep running for 2 h"))
            (button(format!("start {typed} --no-wait"), "Start"))
            @if is_overridden {
                (button(format!("override clear {typed}"), "End the override"))
            }
        }
        form action="act" {
            (button(format!("override stopped {typed}"), "Stop"))
            label { "until " input name="until" value=(until) required; }
        }
    }
}

/// The question whether to run a command. The form is sent to the address of the question.
pub(crate) fn question(command: &str) -> Markup {
    html! {
        p { code { (one_line(command, LONGEST_LINE)) } }
        form method="post" { button { "Run it" } }
        (back())
    }
}

pub(crate) fn failure(why: &str) -> Markup {
    html! {
        p class="alarming" { (text::sentence(why)) }
        (back())
    }
}

fn back() -> Markup {
    html! { p { a href="./" { "Back to the page" } } }
}
