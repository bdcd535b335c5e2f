//! The evening on the command line in README.md, told anew: what it shows is what happens.
//!
//! Between its two marks stand commands, each with what it prints. They are run here in a shell,
//! beside a simulator whose clock stands where the text says; with `OFFHOURS_UPDATE_README` set,
//! what they print is written there, and otherwise compared.

use std::{
    env, fs,
    path::Path,
    process::{Command, Stdio},
};

use tempfile::TempDir;

use crate::{
    programs::SimulatorProgram,
    support::{monday, program, root, run},
};

const BEGIN: &str = "<!-- The evening begins: `make readme` writes what the commands print. -->\n";
const END: &str = "<!-- The evening ends. -->\n";

#[test]
fn the_evening_in_the_readme_is_what_happens() {
    run(async {
        let readme = root().join("README.md");
        let text = fs::read_to_string(&readme).unwrap();
        let (before, rest) = text.split_once(BEGIN).unwrap();
        let (evening, after) = rest.split_once(END).unwrap();
        let fleet = fs::read_to_string(root().join("examples/evening.toml")).unwrap();
        let simulator = SimulatorProgram::start(&fleet, monday("16:40:00")).await;
        let directory = TempDir::new().unwrap();

        let told = retold(evening, |command| {
            shell(command, directory.path(), &simulator.url)
        });
        if env::var_os("OFFHOURS_UPDATE_README").is_some() {
            fs::write(&readme, [before, BEGIN, &told, END, after].concat()).unwrap();
        } else {
            assert_eq!(told, evening, "`make readme` writes it anew");
        }
    });
}

/// The text with what each command prints as it is printed now.
fn retold(evening: &str, mut run: impl FnMut(&str) -> String) -> String {
    let mut told = String::new();
    let mut lines = evening.lines().peekable();
    let mut in_block = false;
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            in_block = !in_block;
        }
        let Some(command) = line.strip_prefix("$ ").filter(|_| in_block) else {
            // What an earlier run printed is left out; words between the blocks stay.
            if !in_block || line.starts_with("```") {
                told += line;
                told.push('\n');
            }
            continue;
        };
        let mut command = command.to_owned();
        if command.contains("<<'END'") {
            for more in lines.by_ref() {
                command += "\n";
                command += more;
                if more == "END" {
                    break;
                }
            }
        }
        let printed = run(&command);
        told.extend(["$ ", &command, "\n", &printed]);
    }
    told
}

/// What a command prints, on a terminal that has no colours.
fn shell(command: &str, directory: &Path, simulator: &str) -> String {
    let programs = program("offhours", "offhours");
    let path = format!(
        "{}:{}",
        programs.parent().unwrap().display(),
        env::var("PATH").unwrap()
    );
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(directory)
        .env("PATH", path)
        .env("USER", "ada")
        .env("TZ", "Europe/Berlin")
        .env("OFFHOURS_DATA", "evening.db")
        .env("OFFHOURS_SIMULATE", simulator)
        .env("DO_TOKEN", "simulated-do-token")
        .env("HZ_TOKEN", "simulated-hz-token")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(!printed.contains("simulated-"), "{printed}");
    // Editors and diffs do not like what tables end their lines with.
    let mut lines: Vec<_> = printed.lines().map(str::trim_end).collect();
    // What happens at one instant happens in no order.
    for together in
        lines.chunk_by_mut(|one, next| instant(one).is_some_and(|at| next.starts_with(at)))
    {
        together.sort_unstable();
    }
    lines.into_iter().flat_map(|line| [line, "\n"]).collect()
}

/// `Mon 16:41:00Z`, with which a line of what happens begins.
fn instant(line: &str) -> Option<&str> {
    let at = line.split("  ").next()?;
    at.ends_with('Z').then_some(at)
}
