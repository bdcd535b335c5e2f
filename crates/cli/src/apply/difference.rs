//! The difference between two configurations, as the lines of their files.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use anstyle::AnsiColor;
use domain::{configuration::Configuration, text::one_line};
use report::{count, joined};
use schemars::JsonSchema;
use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use crate::{
    configuration_file::{written, written::File},
    output::Style,
    print::word,
};

/// What differs in one table of the file.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct TableChange {
    /// The table, such as `accounts.do-main` or `schedules.office`; empty for the settings of the
    /// whole service.
    pub table: String,
    /// Whether the table is new, gone, or another.
    pub change: Change,
    /// Its lines that differ, each with `-` or `+` before it. Defaults are left out.
    pub lines: Vec<String>,
}

/// How a table changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Change {
    Added,
    Changed,
    Removed,
}

pub(crate) fn between(old: &Configuration, new: &Configuration) -> Vec<TableChange> {
    let text = |configuration| written(&File::without_defaults(configuration));
    let (old, new) = (text(old), text(new));
    let (old, new) = (tables(&old), tables(&new));
    let names: BTreeSet<_> = old.keys().chain(new.keys()).copied().collect();
    let change = |table: &str| {
        let (before, after) = (old.get(table), new.get(table));
        let change = match (before, after) {
            _ if table.is_empty() => Change::Changed,
            (None, _) => Change::Added,
            (_, None) => Change::Removed,
            (Some(_), Some(_)) => Change::Changed,
        };
        let text = |lines: Option<&String>| lines.cloned().unwrap_or_default();
        let lines = differing(&text(before), &text(after));
        TableChange { table: table.to_owned(), change, lines }
    };
    let changes = names.into_iter().map(change);
    changes.filter(|one| one.change != Change::Changed || !one.lines.is_empty()).collect()
}

/// The lines of each table, by its name.
fn tables(text: &str) -> BTreeMap<&str, String> {
    let mut tables = BTreeMap::<_, String>::new();
    let mut table = "";
    for line in text.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(name) => {
                table = name;
                tables.entry(table).or_default();
            }
            None => tables.entry(table).or_default().extend([line, "\n"]),
        }
    }
    tables
}

fn differing(old: &str, new: &str) -> Vec<String> {
    let difference = TextDiff::from_lines(old, new);
    let mark = |tag| match tag {
        ChangeTag::Delete => Some('-'),
        ChangeTag::Insert => Some('+'),
        ChangeTag::Equal => None,
    };
    let lines = difference.iter_all_changes();
    lines
        .filter_map(|one| Some(format!("{} {}", mark(one.tag())?, one.value().trim_end())))
        .collect()
}

impl TableChange {
    /// What the table describes, such as `schedule` and `office`.
    fn kind_and_name(&self) -> (&'static str, String) {
        match self.table.split('.').collect::<Vec<_>>()[..] {
            ["accounts", account, "machines", machine] => {
                ("machine", format!("{account}/{machine}"))
            }
            ["accounts", name] => ("account", name.to_owned()),
            ["groups", name] => ("group", name.to_owned()),
            ["notify", name] => ("target", name.to_owned()),
            ["prices", name] => ("price list", name.to_owned()),
            ["schedules", name] => ("schedule", name.to_owned()),
            _ => ("settings", String::new()),
        }
    }

    /// The table and its lines, each with what becomes of it.
    pub(crate) fn drawn(&self, style: Style) -> String {
        let (mark, paint) = match self.change {
            Change::Added => ("+ ", Some(AnsiColor::Green)),
            Change::Changed => ("  ", None),
            Change::Removed => ("- ", Some(AnsiColor::Red)),
        };
        let line = |paint: Option<AnsiColor>, text: &str| {
            let text = paint.map_or_else(|| text.to_owned(), |paint| style.coloured(paint, text));
            text + "\n"
        };
        let head = match self.table.as_str() {
            "" => String::new(),
            table => line(paint, &format!("{mark}[{table}]")),
        };
        let lines = self.lines.iter().map(|text| {
            line(Some(if text.starts_with('+') { AnsiColor::Green } else { AnsiColor::Red }), text)
        });
        head + &lines.collect::<String>()
    }
}

/// In one line: `schedule office: - graceful = false, + graceful = true`.
impl fmt::Display for TableChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { change, lines, .. } = self;
        let (kind, name) = self.kind_and_name();
        let table = format!("{kind} {name}");
        let table = table.trim_end();
        match change {
            Change::Added | Change::Removed => write!(f, "{table} {}", word(change)),
            Change::Changed => {
                let brief = |line: &String| {
                    let (mark, value) = line.split_at(1);
                    format!("{mark} {}", value.trim().trim_end_matches(','))
                };
                write!(f, "{table}: {}", joined(lines.iter().map(brief), ", "))
            }
        }
    }
}

/// The most lines of [`stored`], and the most characters of each.
const LINES: usize = 100;
const LINE_CHARACTERS: usize = 300;

/// The changes as they are stored with an apply: a line for each table.
pub(crate) fn stored(changes: &[TableChange]) -> Vec<String> {
    let cut = |change: &TableChange| one_line(&change.to_string(), LINE_CHARACTERS).into_owned();
    let mut lines: Vec<_> = changes.iter().take(LINES).map(cut).collect();
    if let Some(more) = changes.len().checked_sub(LINES).filter(|more| *more > 0) {
        lines.push(format!("and {more} more"));
    }
    lines
}

/// How many tables changed, in words: `1 schedule added, 2 accounts changed`.
pub(crate) fn counted(changes: &[TableChange]) -> String {
    let mut counts = BTreeMap::<_, usize>::new();
    for one in changes {
        let (what, _) = one.kind_and_name();
        *counts.entry((what, word(&one.change))).or_default() += 1;
    }
    let words = counts.into_iter().map(|((what, how), number)| match what {
        "settings" => format!("{what} {how}"),
        what => format!("{} {how}", count(number, what)),
    });
    joined(words, ", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration_file::parse;

    const OLD: &str = r#"
timezone = "Europe/Berlin"
protect = ["name:*prod*", "tag:live"]
[accounts.do-main]
provider = "digitalocean"
token = "env:DO"
[accounts.old]
provider = "hetzner"
token = "env:HZ"
[schedules.office]
periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }]
[schedules.same]
periods = [{ begin = "08:00", end = "19:00" }]
"#;

    fn compared(old: &str, new: &str) -> Vec<TableChange> {
        let configuration = |text| parse(text, "FILE").unwrap().configuration;
        between(&configuration(old), &configuration(new))
    }

    #[test]
    fn a_configuration_does_not_differ_from_itself_in_another_form() {
        assert_eq!(compared(OLD, OLD), []);
        let rewritten = OLD
            .replace("timezone = \"Europe/Berlin\"\n", "")
            .replace("periods", "timezone = \"Europe/Berlin\"\nperiods");
        assert_eq!(compared(OLD, &rewritten), []);
    }

    #[test]
    fn each_table_shows_the_lines_that_differ() {
        let new = OLD
            .replace("[\"name:*prod*\", \"tag:live\"]", "[\"name:*prod*\"]")
            .replace("[accounts.old]", "[accounts.hz-eu]")
            .replace("[schedules.same]", "graceful = true\n[schedules.other]")
            .replace(
                "\"08:00\", end = \"19:00\" }]\ngraceful",
                "\"07:00\", end = \"19:00\" }]\ngraceful",
            )
            + "[groups.data]\nresources = \"name:db\"\n";
        let changes = compared(OLD, &new);
        let drawn: Vec<_> = changes.iter().map(|one| one.drawn(Style::PLAIN)).collect();
        insta::assert_snapshot!(drawn.concat(), @r#"
        - protect = ["name:*prod*", "tag:live"]
        + protect = ["name:*prod*"]
        + [accounts.hz-eu]
        + provider = "hetzner"
        + token = "env:HZ"
        - [accounts.old]
        - provider = "hetzner"
        - token = "env:HZ"
        + [groups.data]
        + resources = ["name:db"]
          [schedules.office]
        - periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }]
        + periods = [{ weekdays = "mon-fri", begin = "07:00", end = "19:00" }]
        + graceful = true
        + [schedules.other]
        + timezone = "Europe/Berlin"
        + periods = [{ begin = "08:00", end = "19:00" }]
        - [schedules.same]
        - timezone = "Europe/Berlin"
        - periods = [{ begin = "08:00", end = "19:00" }]
        "#);
        let lines: Vec<_> = changes.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        settings: - protect = ["name:*prod*", "tag:live"], + protect = ["name:*prod*"]
        account hz-eu added
        account old removed
        group data added
        schedule office: - periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }], + periods = [{ weekdays = "mon-fri", begin = "07:00", end = "19:00" }], + graceful = true
        schedule other added
        schedule same removed
        "#);
        assert_eq!(
            counted(&changes),
            "1 account added, 1 account removed, 1 group added, 1 schedule added, 1 schedule \
             changed, 1 schedule removed, settings changed"
        );
    }

    #[test]
    fn a_list_and_the_machines_of_an_account_differ_line_by_line() {
        let machine = |name: &str| {
            format!("[accounts.lab.machines.{name}]\nstart = \"a\"\nstop = \"o\"\nstatus = \"s\"\n")
        };
        let key = "AAAAC3NzaC1lZDI1NTE5AAAAID2MFepRAu6qdgmRqxbuktBQOdN2QdL0zSZ1xcsO/yTw";
        let old = format!(
            "[accounts.lab]\nprovider = \"ssh\"\nhost = \"jump.example.net\"\nuser = \"u\"\n\
             key = \"env:K\"\nhost_keys = [\"ssh-ed25519 {key}\"]\n{}",
            machine("build")
        );
        let new = old.clone() + &machine("test");
        assert_eq!(counted(&compared(&old, &new)), "1 machine added");
        let periods = |second: &str| {
            format!(
                "[schedules.s]\ntimezone = \"UTC\"\nperiods = [\n  {{ begin = \"08:00\", end = \
                 \"10:00\" }},\n  {{ begin = \"{second}\", end = \"19:00\" }},\n]\n"
            )
        };
        let change = &compared(&periods("11:00"), &periods("12:00"))[0];
        insta::assert_snapshot!(change, @r#"schedule s: - { begin = "11:00", end = "19:00" }, + { begin = "12:00", end = "19:00" }"#);
    }
}
