//! `offhours validate`: checks the configuration.

use std::{fmt::Write as _, path::PathBuf};

use domain::{
    configuration::{Account, Configuration},
    schedule::desired_or_any,
};
use jiff::Timestamp;
use report::count;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    Exit,
    configuration_file::{self, ListedResources, LoadError, Problem},
    context::Context,
    output::{self, Format},
    print::Screen,
};

/// Check a configuration and report all of its problems at once.
///
/// Nothing is applied, and no provider is asked. Each problem comes with its file, its line, and
/// what to write instead; the exit code is then 2.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours validate
  offhours validate staging.toml
  offhours validate -o json | jq .problems")]
pub struct Args {
    /// Configuration file to check [default: offhours.toml].
    #[arg(value_name = "FILE", conflicts_with = "config")]
    file: Option<PathBuf>,
    /// The same, as other commands name it.
    #[arg(long, short = 'f', value_name = "FILE", default_value = "offhours.toml")]
    config: PathBuf,
}

/// Checks the configuration; `now` decides which edges come next.
pub fn run(args: &Args, context: &Context, now: Timestamp) -> anyhow::Result<Exit> {
    let path = args.file.as_ref().unwrap_or(&args.config);
    let file = path.display().to_string();
    let loaded = configuration_file::load(path, ListedResources::NeedAccounts);
    let report = match &loaded {
        Ok(parsed) => Some((&[][..], parsed.warnings_at(now))),
        Err(LoadError::Invalid { problems, .. }) => Some((problems.as_slice(), Vec::new())),
        Err(LoadError::Unreadable { .. }) => None,
    };
    if let (Format::Json, Some((problems, warnings))) = (context.format, report) {
        let valid = problems.is_empty();
        output::print_json(&Report { file: &file, valid, problems, warnings })?;
    }
    let parsed = loaded?;
    for Problem { file, line, message } in parsed.warnings_at(now) {
        output::remark(&format!("{file}:{line}: warning: {message}\n"));
    }
    if context.format == Format::Table {
        let screen = context.screen(&parsed.configuration, now);
        output::print_lines(&summary(&file, &parsed.configuration, &screen))?;
    }
    Ok(Exit::Done)
}

/// The result of checking a file.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Report<'r> {
    /// The file, as it was named.
    file: &'r str,
    /// Whether the configuration is valid.
    valid: bool,
    /// What is wrong with it, by line; empty if it is valid.
    problems: &'r [Problem],
    /// Valid settings that look like mistakes, by line.
    warnings: Vec<Problem>,
}

fn summary(file: &str, configuration: &Configuration, screen: &Screen) -> String {
    let Configuration { accounts, schedules, .. } = configuration;
    let (number, of) = (count(accounts.len(), "account"), count(schedules.len(), "schedule"));
    let mut text = format!("{file} is valid: {number}, {of}.\n");
    for (name, account) in accounts {
        let machines = match account {
            Account::Cloud(_) => String::new(),
            Account::Ssh(account) => {
                format!(", {}", count(account.login.machines.len(), "machine"))
            }
        };
        let place = account.own_destination().map(|place| format!(" at {place}"));
        let place = place.unwrap_or_default();
        // Writing to a string cannot fail, here and below.
        writeln!(text, "  account {name}: {}{machines}{place}", account.kind()).ok();
    }
    for (name, rule) in schedules {
        let state = desired_or_any(rule.schedule.desired_at(screen.now));
        let next = rule.schedule.next_edge(screen.now);
        let next = next.map_or("and nothing changes that".to_owned(), |edge| {
            format!("{} from {}", desired_or_any(edge.desired), screen.date(edge.at))
        });
        writeln!(text, "  schedule {name}: {state} now, {next}").ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_says_what_is_there_and_what_comes_next() {
        let text = r#"
timezone = "Europe/Berlin"
accounts.hz-eu = { provider = "hetzner", token = "env:T", datacenters = ["fsn1", "hel1-dc2"] }
accounts.do-main = { provider = "digitalocean", token = "env:U" }
[schedules.office]
periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }]
resources = ["hz-eu/server/42", "ci-*"]
[schedules.always]
periods = [{}]
"#;
        let parsed = configuration_file::parse(text, "my.toml").unwrap();
        let now = "2026-06-15T07:00:00Z".parse().unwrap();
        let screen = Context::plain().screen(&parsed.configuration, now);
        insta::assert_snapshot!(summary("my.toml", &parsed.configuration, &screen), @"
        my.toml is valid: 2 accounts, 2 schedules.
          account do-main: digitalocean
          account hz-eu: hetzner
          schedule always: running now, and nothing changes that
          schedule office: running now, stopped from Mon 2026-06-15 19:00 CEST
        ");
    }
}
