//! Checks that the transcripts in the documentation show what happens: the evening and the
//! savings in README.md, and the night in docs/at-three-in-the-morning.md.
//!
//! Each transcript stands between two marks and has commands with their output. The commands are
//! run here in a shell, beside a simulator whose clock is set to the time in the text. With
//! `OFFHOURS_UPDATE_README` set, their output is written to the document; otherwise it is compared.
//! What happens at the provider between two commands has a mark of its own.

use std::{
    env, fs,
    path::Path,
    process::{Command, Stdio},
    sync::Mutex,
};

use serde_json::json;
use tempfile::TempDir;

use crate::{
    programs::SimulatorProgram,
    support::{monday, program, root, run},
};

/// A document with a transcript between two marks.
struct Transcript {
    path: &'static str,
    /// The fleet that the clouds start with.
    fleet: &'static str,
    begin: &'static str,
    end: &'static str,
    /// The marks inside the transcript, and what happens at each.
    between: &'static [(&'static str, ProviderEvent)],
}

/// An event at the provider.
#[derive(Clone, Copy)]
enum ProviderEvent {
    TokenRevoked,
    TokenReplaced,
}

const EVENING: Transcript = Transcript {
    path: "docs/evening.md",
    fleet: "examples/evening.toml",
    begin: "<!-- The evening begins: `make readme` writes what the commands print. -->\n",
    end: "<!-- The evening ends. -->\n",
    between: &[],
};

const NIGHT: Transcript = Transcript {
    path: "docs/at-three-in-the-morning.md",
    fleet: "examples/evening.toml",
    begin: "<!-- The night begins: `make readme` writes what the commands print. -->\n",
    end: "<!-- The night ends. -->\n",
    between: &[
        ("<!-- The token of do-main is revoked. -->\n", ProviderEvent::TokenRevoked),
        ("<!-- The token of do-main is replaced. -->\n", ProviderEvent::TokenReplaced),
    ],
};

const SAVINGS: Transcript = Transcript {
    path: "README.md",
    fleet: "examples/savings.toml",
    begin: "<!-- The savings begin: `make readme` writes what the command prints. -->\n",
    end: "<!-- The savings end. -->\n",
    between: &[],
};

/// The status of the evening, in the README.
const GLANCE: Transcript = Transcript {
    path: "README.md",
    begin: "<!-- The glance begins: `make readme` writes what the commands print. -->\n",
    end: "<!-- The glance ends. -->\n",
    ..EVENING
};

/// Two transcripts of one document are written one after the other.
static WRITING: Mutex<()> = Mutex::new(());

#[test]
fn the_savings_in_the_readme_are_what_is_printed() {
    run(SAVINGS.happens());
}

#[test]
fn the_evening_in_the_docs_is_what_happens_and_the_readme_has_its_status() {
    run(EVENING.happens());
    let evening = fs::read_to_string(root().join(EVENING.path)).unwrap();
    let status = evening.rfind("$ offhours status\n").expect("the evening looks at the status");
    let (status, _) = evening[status..].split_once("\n$ ").expect("more follows");
    let document = root().join("README.md");
    let text = fs::read_to_string(&document).unwrap();
    let (before, shown, after) = GLANCE.parts(&text);
    let expected = format!("```console\n{status}\n```\n");
    if env::var_os("OFFHOURS_UPDATE_README").is_some() {
        let _one = WRITING.lock();
        fs::write(document, [before, GLANCE.begin, &expected, GLANCE.end, after].concat()).unwrap();
    } else {
        assert_eq!(shown, expected, "`make readme` writes it anew");
    }
}

#[test]
fn the_night_in_the_docs_is_what_happens() {
    run(NIGHT.happens());
}

impl Transcript {
    /// Splits a document into the text before its transcript, the transcript, and the text after
    /// it.
    fn parts<'t>(&self, text: &'t str) -> (&'t str, &'t str, &'t str) {
        let (before, rest) = text.split_once(self.begin).unwrap();
        let (shown, after) = rest.split_once(self.end).unwrap();
        (before, shown, after)
    }

    async fn happens(&self) {
        let document = root().join(self.path);
        let text = fs::read_to_string(&document).unwrap();
        let (_, shown, _) = self.parts(&text);
        let mut rest = shown;
        let fleet = fs::read_to_string(root().join(self.fleet)).unwrap();
        let simulator = SimulatorProgram::start(&fleet, monday("16:40:00")).await;
        let directory = TempDir::new().unwrap();
        let retell = |part: &str| {
            retold(part, |command| {
                let printed = shell(command, directory.path(), &simulator.url);
                with_one_request_id(&printed, &fleet)
            })
        };

        let mut answer = String::new();
        for (mark, happens) in self.between {
            let (part, later) = rest.split_once(mark).unwrap();
            answer.extend([&retell(part), *mark]);
            happens.to(&simulator).await;
            rest = later;
        }
        answer += &retell(rest);
        if env::var_os("OFFHOURS_UPDATE_README").is_some() {
            let _one = WRITING.lock();
            let text = fs::read_to_string(&document).unwrap();
            let (before, _, after) = self.parts(&text);
            let text = [before, self.begin, &answer, self.end, after].concat();
            fs::write(&document, text).unwrap();
        } else {
            assert_eq!(answer, shown, "`make readme` writes it anew");
        }
    }
}

impl ProviderEvent {
    async fn to(self, simulator: &SimulatorProgram) {
        match self {
            Self::TokenRevoked => {
                let revoked = json!({
                    "match": { "account": "do-main" },
                    "times": 1_000_000,
                    "does": "unauthorized",
                });
                simulator.fault(revoked).await;
            }
            Self::TokenReplaced => simulator.clear_faults().await,
        }
    }
}

/// Returns the text with the output of each command replaced by its current output.
fn retold(evening: &str, mut run: impl FnMut(&str) -> String) -> String {
    let mut answer = String::new();
    let mut lines = evening.lines().peekable();
    let mut in_block = false;
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            in_block = !in_block;
        }
        let Some(command) = line.strip_prefix("$ ").filter(|_| in_block) else {
            // The output of an earlier run is dropped; text between the blocks stays.
            if !in_block || line.starts_with("```") {
                answer += line;
                answer.push('\n');
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
        answer.extend(["$ ", &command, "\n", &printed]);
    }
    answer
}

/// Runs a command and returns its output, which has no colors because it is not a terminal's.
fn shell(command: &str, directory: &Path, simulator: &str) -> String {
    let programs = program("offhours");
    let path = format!("{}:{}", programs.parent().unwrap().display(), env::var("PATH").unwrap());
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
    // Lines of tables end with spaces, which editors and diffs dislike.
    let mut lines: Vec<_> = printed.lines().map(str::trim_end).collect();
    // Events of the same instant are printed in any order.
    for together in
        lines.chunk_by_mut(|one, next| instant(one).is_some_and(|at| next.starts_with(at)))
    {
        together.sort_unstable();
    }
    lines.into_iter().flat_map(|line| [line, "\n"]).collect()
}

/// The time at the start of an event's line, such as `Mon 16:41:00`.
fn instant(line: &str) -> Option<&str> {
    let at = line.split("  ").next()?;
    let is_time = at.len() == "Mon 16:41:00".len() && at.matches(':').count() == 2;
    is_time.then_some(at)
}

/// A placeholder for the provider's request ids, because requests of the same instant come in any
/// order.
const REQUEST: &str = "4d9f4f0e-9a2f-4c55-8d6e-0c6b5f3a7e21";

/// Replaces all request ids, whole or shortened, with the placeholder. The fleet's own ids stay.
fn with_one_request_id(text: &str, fleet: &str) -> String {
    let is_separator = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
    let is_id = |word: &str| {
        let hex = word.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        hex && word.matches('-').count() == 4 && word.len() == REQUEST.len()
    };
    let words = text.split_inclusive(is_separator).map(|word| {
        let id = word.trim_end_matches(is_separator);
        let rest = &word[id.len()..];
        let is_start = id.len() == 8 && rest == "…" && id.chars().all(|c| c.is_ascii_hexdigit());
        match (is_id(id), is_start) {
            _ if fleet.contains(id) => word.to_owned(),
            (true, _) => format!("{REQUEST}{rest}"),
            (false, true) => format!("{}{rest}", &REQUEST[..8]),
            (false, false) => word.to_owned(),
        }
    });
    words.collect()
}
