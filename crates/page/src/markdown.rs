//! The same in brief, as Markdown.

use std::fmt::Write as _;

use domain::text::{LONGEST_LINE, one_line};

use crate::{facts::Facts, money};

pub(crate) fn document(facts: &Facts<'_>) -> String {
    let mut text = String::new();
    let age = facts.age();
    let stale = if age.is_stale { " **(out of date)**" } else { "" };
    if let Some(owner) = facts.owner() {
        writeln!(text, "Resources of {}:\n", plain(owner)).ok();
    }
    writeln!(text, "**{}** {}, {}\n", facts.verdict(), facts.off(), facts.saved()).ok();
    for line in facts.pauses() {
        writeln!(text, "{}\n", plain(&line)).ok();
    }
    writeln!(text, "{}{stale}\n", age.words).ok();
    writeln!(text, "| Schedule | Now | Off |\n|---|---|---|").ok();
    for (name, rule) in facts.schedules() {
        let following = facts.following(name);
        let off =
            |one: &&&crate::facts::Machine<'_>| one.view.power == domain::resource::Power::Stopped;
        let off = following.iter().filter(off).count();
        let sentence = plain(&facts.schedule_sentence(name, rule));
        writeln!(text, "| {name} | {sentence} | {off} of {} |", following.len()).ok();
    }
    let needing: Vec<_> =
        facts.machines.iter().filter_map(|one| Some((one, one.view.needs_person()?))).collect();
    if !needing.is_empty() {
        writeln!(text, "\n**Needs attention**\n").ok();
        for (machine, problem) in needing {
            let name = plain(&machine.view.name);
            if facts.is_public() {
                writeln!(text, "- {name}").ok();
            } else {
                let (what, remedy) = (plain(&problem.what), plain(&problem.remedy));
                writeln!(text, "- **{name}**: {what}. What to do: {remedy}.").ok();
            }
        }
    }
    let rows = &facts.input.past.by_schedule.rows;
    if !rows.is_empty() {
        writeln!(text, "\n| Schedule | Saved |\n|---|---|").ok();
        for row in rows {
            let group = plain(row.group.as_deref().unwrap_or("(none)"));
            writeln!(text, "| {group} | {} |", money::saved(row)).ok();
        }
    }
    text
}

/// A text in which nothing is markup but what stands between single backticks, such as a command.
fn plain(text: &str) -> String {
    let line = one_line(text, LONGEST_LINE);
    let parts: Vec<_> = line.split('`').collect();
    // Other backticks are part of a provider's or a person's text.
    if parts.len() % 2 == 0 || line.contains("``") {
        return escaped(&line);
    }
    let part = |(number, part): (usize, &&str)| {
        if number % 2 == 0 { escaped(part) } else { format!("`{}`", part.replace('|', "\\|")) }
    };
    parts.iter().enumerate().map(part).collect()
}

/// A text that is no markup, names no person and is no link, on GitHub either.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '&' => escaped += "&amp;",
            '@' => escaped += "@<!-- -->",
            '\\' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '`' => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped.replace("://", "\\://").replace("www.", "www\\.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_are_markup() {
        for (text, expected) in [
            ("do `offhours why a_b --x` *now*", "do `offhours why a_b --x` \\*now\\*"),
            ("a ` and `offhours why`", "a \\` and \\`offhours why\\`"),
            ("```<b>`x``", "\\`\\`\\`&lt;b&gt;\\`x\\`\\`"),
            ("`a|b` | c", "`a\\|b` \\| c"),
            ("thanks @ada", "thanks @<!-- -->ada"),
            ("see https://a.example, www.b.example", "see https\\://a.example, www\\.b.example"),
        ] {
            assert_eq!(plain(text), expected);
        }
    }
}
