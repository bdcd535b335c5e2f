//! The help: commands in groups, the options of every command in one place, and what people type who
//! come from other programs.

use std::{ffi::OsString, fmt::Write as _};

use clap::{
    Command, CommandFactory as _, ValueEnum as _,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::{
    Arguments, Exit,
    output::{self, Format},
};

/// The groups of commands, each with the command that it begins with.
const GROUPS: [(&str, &str); 5] = [
    ("Look", "status"),
    ("Act", "stop"),
    ("Configure", "init"),
    ("Money", "savings"),
    ("Run and repair", "serve"),
];

/// What other programs call it, and what does it here.
const HABITS: [(&str, &str); 13] = [
    ("plan", "`offhours apply --dry-run` shows what would change"),
    ("diff", "`offhours apply --dry-run` shows what would change"),
    ("logs", "`offhours activity` shows who did what, `offhours history` each stop and start"),
    ("log", "`offhours config log` lists what was applied, `offhours activity` who did what"),
    ("export", "`offhours config show` prints the configuration in force"),
    ("schema", "`offhours config schema` prints it"),
    ("extend", "`offhours override extend NAME 2h` adds to the end of an override"),
    ("undo", "`offhours override clear` ends an override, `offhours config rollback` goes back"),
    ("hours", "`offhours saved` shows the hours off and what they saved"),
    ("cost", "`offhours savings` shows what stopping could save, `offhours saved` what it saved"),
    ("version", "`offhours --version` shows it"),
    ("whoami", "`offhours activity` shows under which name you act"),
    ("run", "`offhours serve` runs the whole service here"),
];

/// The options of every command, and the variables that stand for them.
///
/// -o FORM selects the form of the output: table, json or csv. --yes skips the confirmation. A local
/// store is named with --data or `OFFHOURS_DATA`; otherwise the store is at AWS, found as the AWS
/// tools find it: --profile or `AWS_PROFILE`, --region or `AWS_REGION`, `AWS_ENDPOINT_URL`.
/// --simulate=URL or `OFFHOURS_SIMULATE` has a simulator stand in for the clouds.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "offhours <COMMAND> [OPTIONS]",
    after_help = "\
Also read:
  OFFHOURS_PROTECT        patterns of what a local store never touches
  OFFHOURS_MODE=observe   a local store sends nothing
  OFFHOURS_TABLE_PREFIX   the tables' prefix, if the stack has another name
  NO_COLOR                no colors
  HTTPS_PROXY, NO_PROXY, AWS_CA_BUNDLE

Example:
  OFFHOURS_DATA=offhours.db offhours status -o json"
)]
pub(crate) struct Environment {}

pub(crate) fn environment() -> anyhow::Result<Exit> {
    let mut command = complete(Arguments::command());
    let environment = command.find_subcommand_mut("environment");
    let help = environment.map(|command| command.render_long_help().to_string());
    output::print(&help.unwrap_or_default())?;
    Ok(Exit::Done)
}

/// Completes a command line's help: the commands in groups, the usage lines, and the options of every
/// command shown in one place alone.
///
/// Each command gets the usage line of its help: clap's usage line in errors would list options as
/// required even if the environment provides them.
pub(crate) fn complete(mut command: Command) -> Command {
    fn fix(command: &mut Command) {
        for part in command.get_subcommands_mut() {
            fix(part);
            if part.get_name() != "environment" {
                let hidden = |one: clap::Arg| {
                    let is_hidden = one.is_hide_set() || one.is_global_set();
                    one.hide(is_hidden)
                };
                *part = std::mem::take(part).mut_args(hidden);
            }
        }
        let usage = command.render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ").to_owned();
        *command = std::mem::take(command).override_usage(usage);
    }
    command.build();
    fix(&mut command);
    let mut groups = String::new();
    for part in command.get_subcommands().filter(|part| !part.is_hide_set()) {
        let name = part.get_name();
        // Writing to a string cannot fail, here and below.
        if let Some((title, _)) = GROUPS.iter().find(|(_, first)| *first == name) {
            writeln!(groups, "\n{title}:").ok();
        }
        let about = part.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(groups, "  {name:<12} {}", about.trim_end_matches('.')).ok();
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}\n`offhours help environment` \
         has what all commands take: -o, --yes, --data, …{{after-help}}"
    );
    command.help_template(template)
}

/// The commands that write a file.
const WRITES_FILE: [&str; 2] = ["calendar", "report"];

/// The options that may come before a command, with their value in the next word.
const BEFORE_VALUES: [&str; 6] = ["--data", "--profile", "--region", "--tz", "--output", "-o"];

/// Writes `offhours list` out: it is short for `offhours status --wide`. Of a command that writes a
/// file, `-o FILE` names the file, unless that is a form of the output.
pub(crate) fn expanded(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<_> = words.collect();
    let is_any = |word: &OsString, of: &[&str]| of.iter().any(|one| word == one);
    let is_command = |at: &usize| {
        !words[*at].as_encoded_bytes().starts_with(b"-") && !is_any(&words[at - 1], &BEFORE_VALUES)
    };
    let Some(at) = (1..words.len()).find(is_command) else {
        return words;
    };
    if words[at] == "list" {
        words.splice(at..=at, ["status".into(), "--wide".into()]);
    } else if is_any(&words[at], &WRITES_FILE) {
        let command = words.split_off(at);
        words.extend(with_file(command));
    }
    words
}

fn with_file(words: Vec<OsString>) -> Vec<OsString> {
    let mut written = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let text = word.to_str().unwrap_or_default();
        let attached = text.strip_prefix("--output=").or_else(|| text.strip_prefix("-o"));
        let value = match attached.map(|value| value.trim_start_matches('=')) {
            None if text != "--output" => None,
            None | Some("") => words.next(),
            Some(value) => Some(value.into()),
        };
        let Some(value) = value else {
            written.push(word);
            continue;
        };
        if value.to_str().is_some_and(|form| Format::from_str(form, false).is_ok()) {
            written.push("--output".into());
        }
        written.push(value);
    }
    written
}

/// Names the command for a habit from another program.
pub(crate) fn instead(error: &clap::Error) -> Option<String> {
    let typed = error.get(ContextKind::InvalidSubcommand)?;
    let (ErrorKind::InvalidSubcommand, ContextValue::String(typed)) = (error.kind(), typed) else {
        return None;
    };
    let habit = HABITS.iter().find(|(habit, _)| habit == typed)?;
    Some(format!("there is no command `{typed}`: {}", habit.1))
}

/// The help of a command that was typed without its subcommand. Clap shows it only if no variable
/// stands for an option.
pub(crate) fn instead_of_missing(error: &clap::Error, words: Vec<OsString>) -> Option<String> {
    let words = (error.kind() == ErrorKind::MissingSubcommand)
        .then(|| words.into_iter().chain(["-h".into()]))?;
    let help = complete(Arguments::command()).try_get_matches_from(words).err()?;
    Some(help.render().to_string())
}
