//! What needs a person, with the command that helps.

use maud::{Markup, html};

use crate::{facts::Facts, text};

pub(crate) fn section(facts: &Facts<'_>) -> Markup {
    let needing: Vec<_> =
        facts.machines.iter().filter(|one| one.view.needs_person().is_some()).collect();
    let accounts = facts.accounts();
    let failing: Vec<_> =
        accounts.iter().filter_map(|one| Some((one.name, one.failure.as_ref()?))).collect();
    if needing.is_empty() && failing.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby="attention" {
            h2 id="attention" { "Needs attention" }
            ul class="attention" {
                @for machine in needing {
                    li {
                        b { (text::name(&machine.view.name)) }
                        @if facts.is_public() { " needs attention" } @else {
                            @for problem in machine.view.problems.iter().filter(|one| one.needs_person) {
                                p { (text::sentence(&problem.what)) "." }
                                p class="remedy" { "What to do: " (text::sentence(&problem.remedy)) "." }
                            }
                        }
                    }
                }
                @if facts.is_public() {
                    @if !failing.is_empty() {
                        li { (report::count(failing.len(), "account")) " cannot be read" }
                    }
                } @else {
                    @for (name, failure) in failing {
                        li {
                            b { "Account " (name) }
                            p { (text::sentence(&failure.whole)) "." }
                            p class="remedy" { "What to do: " code { "offhours doctor" } " says more." }
                        }
                    }
                }
            }
        }
    }
}
