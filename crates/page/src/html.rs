//! The document: what is said first, and what comes in which order.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use report::{activity::details, time::ago};

use crate::{POLICY, attention, facts::Facts, money, schedules, text};

const STYLE: &str = include_str!("style.css");

/// How many entries of activity are shown.
const ENTRIES: usize = 30;

pub(crate) fn document(facts: &Facts<'_>) -> Markup {
    let age = facts.age();
    let body = html! {
        header {
            p class="brand" { "Offhours" @if let Some(owner) = facts.owner() { ", resources of " (owner) } }
            h1 { (facts.verdict()) }
            @for line in facts.pauses() { p class="paused" { (text::sentence(&line)) } }
            p class="number" { (facts.off()) ", " (facts.saved()) }
            p class=(if age.is_stale { "age stale" } else { "age" }) { (age.words) }
        }
        main {
            (schedules::section(facts))
            (attention::section(facts))
            (money::section(facts))
            @if !facts.is_public() { (activity(facts)) }
            (health(facts))
        }
    };
    whole(&facts.off(), &body)
}

/// A document of a few words.
pub(crate) fn short(heading: &str, words: &Markup) -> Markup {
    let body = html! {
        header { p class="brand" { "Offhours" } h1 { (heading) } }
        main { (words) }
    };
    whole(heading, &body)
}

fn whole(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="robots" content="noindex";
                meta name="color-scheme" content="light dark";
                title { "Offhours: " (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    }
}

/// What persons changed.
fn activity(facts: &Facts<'_>) -> Markup {
    let entries = facts.input.activity;
    html! {
        section aria-labelledby="activity" {
            h2 id="activity" { "Who changed what" }
            @if entries.is_empty() { p { "Nothing was changed" @if facts.owner().is_some() { " of these resources and their schedules" } "." } }
            ul class="activity" {
                @for entry in entries.iter().take(ENTRIES) {
                    li {
                        b { (text::sentence(&entry.by.to_string())) ":" } " " (entry.action.verb()) " "
                        (text::sentence(&details(entry, facts.input.zone)))
                        @if let Some(why) = &entry.why { " (" (text::sentence(why)) ")" }
                        " " span class="small" { (facts.time(entry.at)) }
                    }
                }
            }
        }
    }
}

/// How old everything is.
fn health(facts: &Facts<'_>) -> Markup {
    let (accounts, now) = (facts.accounts(), facts.input.now);
    let age = facts.age();
    html! {
        section aria-labelledby="health" {
            h2 id="health" { "How current this is" }
            p class=(if age.is_stale { "age stale" } else { "age" }) { (age.words) }
            @if facts.is_public() {
                p { (report::count(accounts.len(), "account")) ", " (facts.needing()[1]) " of which cannot be read." }
            } @else {
                table {
                    caption { "Accounts" }
                    tr { th scope="col" { "Account" } th scope="col" { "Provider" } th scope="col" { "Last listed" } }
                    @for one in &accounts {
                        tr {
                            th scope="row" { (one.name) }
                            td { (one.account.kind()) }
                            td class=(if one.failure.is_some() { "alarming" } else { "" }) {
                                (one.listed_at.map_or_else(|| "not yet".to_owned(), |at| ago(at, now)))
                            }
                        }
                    }
                }
            }
        }
    }
}
