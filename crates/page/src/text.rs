//! Text from outside, as markup.

use domain::text::{LONGEST_LINE, LONGEST_NAME, one_line};
use maud::{Markup, html};

/// A name, isolated from the direction of the text around it.
pub(crate) fn name(name: &str) -> Markup {
    html! { bdi { (one_line(name, LONGEST_NAME)) } }
}

/// A sentence. What stands between backticks is shown as code, which one click selects.
pub(crate) fn sentence(text: &str) -> Markup {
    let line = one_line(text, LONGEST_LINE);
    let parts: Vec<_> = line.split('`').collect();
    // An odd number of backticks is part of a provider's or a person's text.
    if parts.len() % 2 == 0 {
        return html! { bdi { (line) } };
    }
    html! {
        bdi {
            @for (number, part) in parts.iter().enumerate() {
                @if number % 2 == 0 { (part) } @else { code { (part) } }
            }
        }
    }
}
