//! Checks that docs/commands.md says what each command's help says.
//!
//! With `OFFHOURS_UPDATE_README` set, the page is written; otherwise it is compared.

use std::{collections::BTreeSet, env, fmt::Write as _, fs, process::Command};

use crate::support::{program, root};

const BEGIN: &str = "<!-- The help begins: `make readme` writes what `--help` prints. -->\n";

fn help(command: &[&str]) -> String {
    let mut program = Command::new(program("offhours"));
    let output = program.env_clear().args(command).arg("--help").output().unwrap();
    assert!(output.status.success(), "{command:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The commands in a list: a name, blanks, and what it does.
fn listed(list: &str) -> Vec<String> {
    let names = list.lines().filter_map(|line| {
        let (name, about) = line.strip_prefix("  ")?.split_once("  ")?;
        let is_name = name.chars().all(|letter| letter.is_ascii_lowercase());
        let is_about = about.trim_start().starts_with(|letter: char| letter.is_ascii_uppercase());
        (is_name && is_about && name != "help").then(|| name.to_owned())
    });
    names.collect()
}

/// The help of a command and of the commands below it, each under a heading.
fn page(command: &[&str], text: &mut String) {
    let help = help(command);
    let shown: Vec<_> = help.lines().map(str::trim_end).collect();
    let level = "#".repeat(command.len() + 1);
    let name = command.join(" ");
    writeln!(text, "{level} offhours {name}\n\n```text\n{}\n```\n", shown.join("\n").trim_end())
        .unwrap();
    let below = help.split_once("\nCommands:\n");
    let below = below.and_then(|(_, list)| list.split("\n\n").next()).unwrap_or_default();
    for name in &listed(below) {
        page(&[command, &[name.as_str()]].concat(), text);
    }
}

#[test]
fn the_page_of_the_commands_is_what_their_help_says() {
    let mut text = String::new();
    let all = listed(&help(&[]));
    assert!(all.len() > 20, "{all:?}");
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    for name in &all {
        page(&[name], &mut text);
    }
    let path = root().join("docs/commands.md");
    let present = fs::read_to_string(&path).unwrap();
    let (before, shown) = present.split_once(BEGIN).unwrap();
    let text = format!("\n{}\n", text.trim_end());
    if env::var_os("OFFHOURS_UPDATE_README").is_some() {
        fs::write(path, [before, BEGIN, &text].concat()).unwrap();
    } else {
        assert_eq!(shown, text, "`make readme` writes it anew");
    }
}

#[test]
fn a_command_without_its_subcommand_shows_its_help_whatever_variables_are_set() {
    for command in [&[][..], &["override"], &["config"], &["notify"]] {
        let run = |variables: &[(&str, &str)]| {
            let mut program = Command::new(program("offhours"));
            program.env_clear().envs(variables.iter().copied()).args(command);
            let output = program.output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{command:?}");
            String::from_utf8(output.stderr).unwrap()
        };
        let shown = run(&[]);
        assert!(shown.contains("Usage: offhours"), "{shown}");
        assert_eq!(run(&[("OFFHOURS_DATA", "offhours.db")]), shown);
        assert_eq!(run(&[("OFFHOURS_SIMULATE", "http://127.0.0.1:1")]), shown);
    }
}
