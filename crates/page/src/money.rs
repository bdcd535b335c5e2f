//! What was saved, by day, schedule and resource. An unknown amount is named, and never zero.

use std::collections::BTreeMap;

use domain::money::Money;
use maud::{Markup, html};
use report::{
    count,
    money::{SavedRow, amount, hours_in_words},
};

use crate::{
    facts::{Facts, month},
    picture::{Bar, bars},
    text,
};

/// An amount, or the word for none.
pub(crate) fn known(amount: Option<Money>) -> String {
    amount.map_or_else(|| "unknown".to_owned(), |amount| amount.to_string())
}

/// What a row saved, and how much of it is unknown.
pub(crate) fn saved(row: &SavedRow) -> String {
    match (row.saved, row.unknown) {
        (None, 0) => "nothing".to_owned(),
        (Some(saved), 0) => saved.to_string(),
        (Some(saved), unknown) if unknown < row.resources => {
            format!("{saved}, and {unknown} of {} unknown", row.resources)
        }
        (Some(_) | None, _) => "unknown".to_owned(),
    }
}

pub(crate) fn section(facts: &Facts<'_>) -> Markup {
    let past = facts.input.past;
    let when = month(past.by_resource.period, facts.input.now);
    html! {
        section aria-labelledby="money" {
            h2 id="money" { "Saved " (when) }
            p { (past.by_resource.in_words()) }
            (days(&past.by_day.rows))
            @if !past.by_schedule.rows.is_empty() {
                (table("By schedule", "Schedule", &past.by_schedule.rows, facts))
                details {
                    summary { "By resource" }
                    (table("By resource", "Resource", &past.by_resource.rows, facts))
                }
            }
        }
    }
}

/// A chart for each currency.
fn days(rows: &[SavedRow]) -> Markup {
    let mut currencies = BTreeMap::<&str, Vec<&SavedRow>>::new();
    for row in rows {
        currencies.entry(row.currency.unwrap_or("unknown currency")).or_default().push(row);
    }
    html! {
        @for (currency, rows) in currencies {
            @let bar = |row: &&SavedRow| {
                let day = row.group.as_deref().unwrap_or_default();
                Bar {
                    label: format!("{day}: {}", saved(row)),
                    amount: match (row.saved, row.unknown) {
                        (None, 0) => Some(0.0),
                        (saved, unknown) => saved.filter(|_| unknown < row.resources).map(amount),
                    },
                }
            };
            @let drawn: Vec<_> = rows.iter().map(bar).collect();
            @let sums: Vec<_> = drawn.iter().map(|bar| bar.label.clone()).collect();
            @let text = format!("{currency} saved each day. {}", sums.join("; "));
            details {
                summary {
                    span { (currency) " by day, from " (rows[0].group.as_deref().unwrap_or_default()) " on" }
                    (bars(&drawn, &text))
                }
                table {
                    caption { (currency) " by day" }
                    tr { th scope="col" { "Day" } th scope="col" { "Off" } th scope="col" { "Saved" } }
                    @for row in rows {
                        tr {
                            th scope="row" { (row.group.as_deref().unwrap_or_default()) }
                            td { (hours_in_words(row.off_hours)) }
                            td { (saved(row)) }
                        }
                    }
                }
            }
        }
    }
}

fn table(caption: &str, what: &str, rows: &[SavedRow], facts: &Facts<'_>) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="group" aria-label=(caption) {
            table {
                caption { (caption) }
                tr {
                    th scope="col" { (what) }
                    th scope="col" { "Off" }
                    th scope="col" { "Without stops" }
                    th scope="col" { "Saved" }
                    @if !facts.is_public() { th scope="col" { "Why" } }
                }
                @for row in rows {
                    tr {
                        th scope="row" { (text::name(row.group.as_deref().unwrap_or("(none)"))) }
                        td { (hours_in_words(row.off_hours)) }
                        td { (known(row.full)) }
                        td { (saved(row)) }
                        @if !facts.is_public() { td { (text::sentence(&row.why.join("; "))) } }
                    }
                }
            }
        }
        @if caption == "By schedule" {
            p class="small" { (count(rows.len(), "row")) ". Each time off counts for the schedule that was followed at its begin." }
        }
    }
}
