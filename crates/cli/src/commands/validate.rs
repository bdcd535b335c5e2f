//! `offhours validate`: checks the configuration.

use std::{fmt::Write as _, path::PathBuf};

use domain::{
    AccountName, ScheduleName,
    configuration::{Account, AccountKind, Configuration, Location, Selector},
    schedule::{Desired, desired_or_any},
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::Format;
use crate::{
    Exit,
    configuration_file::{self, ListedResources, LoadError, Parsed, Problem, count},
    context::Context,
    output,
    time::{NextEdge, local},
};

/// Check a configuration and report all of its problems at once.
///
/// Nothing is applied, and no provider is asked. Each problem comes with its file, its line, and
/// what to write instead; the exit code is then 2.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours validate
  offhours validate --config staging.toml
  offhours validate -o json | jq .problems")]
pub struct Args {
    /// Configuration file to check.
    #[arg(long, value_name = "FILE", default_value = "offhours.toml")]
    config: PathBuf,
}

/// Checks the configuration; `now` decides which edges come next.
pub fn run(args: &Args, context: &Context, now: Timestamp) -> anyhow::Result<Exit> {
    let file = args.config.display().to_string();
    let loaded = configuration_file::load(&args.config, ListedResources::NeedAccounts);
    if context.format == Format::Json {
        match &loaded {
            Ok(parsed) => output::print_json(&Report::valid(&file, parsed, now))?,
            Err(LoadError::Invalid { problems, .. }) => {
                output::print_json(&Report::invalid(&file, problems))?;
            }
            Err(LoadError::Unreadable { .. }) => {}
        }
    }
    let parsed = loaded?;
    for Problem { file, line, message } in parsed.warnings_at(now) {
        output::remark(&format!("{file}:{line}: warning: {message}\n"));
    }
    if context.format == Format::Table {
        output::print_lines(&summary(&file, &parsed.configuration, now))?;
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
    /// Its accounts, sorted by name; empty if it is invalid.
    accounts: Vec<AccountReport<'r>>,
    /// Its schedules, sorted by name; empty if it is invalid.
    schedules: Vec<ScheduleReport<'r>>,
}

/// An account of the file.
#[derive(Debug, Serialize, JsonSchema)]
struct AccountReport<'r> {
    /// The account's name.
    name: &'r AccountName,
    /// The cloud, or `ssh`.
    provider: AccountKind,
}

/// A schedule of the file.
#[derive(Debug, Serialize, JsonSchema)]
struct ScheduleReport<'r> {
    /// The schedule's name.
    name: &'r ScheduleName,
    /// The time zone in which the schedule is evaluated.
    timezone: &'r str,
    /// The desired state now; null if either state will do.
    state: Option<Desired>,
    /// When that changes next; null if never.
    next: Option<NextEdge>,
}

impl<'r> Report<'r> {
    fn invalid(file: &'r str, problems: &'r [Problem]) -> Self {
        Self {
            file,
            valid: false,
            problems,
            warnings: Vec::new(),
            accounts: Vec::new(),
            schedules: Vec::new(),
        }
    }

    fn valid(file: &'r str, parsed: &'r Parsed, now: Timestamp) -> Self {
        let configuration = &parsed.configuration;
        let accounts = configuration
            .accounts
            .iter()
            .map(|(name, account)| AccountReport { name, provider: account.kind() });
        let schedules = configuration.schedules.iter().map(|(name, rule)| ScheduleReport {
            name,
            timezone: &rule.schedule.definition().timezone,
            state: rule.schedule.desired_at(now),
            next: rule.schedule.next_edge(now).map(NextEdge::from),
        });
        Self {
            file,
            valid: true,
            problems: &[],
            warnings: parsed.warnings_at(now),
            accounts: accounts.collect(),
            schedules: schedules.collect(),
        }
    }
}

/// The summary for people.
fn summary(file: &str, configuration: &Configuration, now: Timestamp) -> String {
    let accounts = count(configuration.accounts.len(), "account");
    let schedules = count(configuration.schedules.len(), "schedule");
    let mut text = format!("{file} is valid: {accounts}, {schedules}.\n");
    for (name, account) in &configuration.accounts {
        let scope = match account {
            Account::Cloud(account) => {
                let datacenters = account.datacenters.iter().map(Location::as_str);
                let datacenters: Vec<_> = datacenters.collect();
                match datacenters.as_slice() {
                    [] => String::new(),
                    some => format!(", {} only", some.join(" and ")),
                }
            }
            Account::Ssh(account) => {
                let login = &account.login;
                let machines = count(login.machines.len(), "machine");
                format!(" to {}, {machines}", login.host)
            }
        };
        // Writing to a string cannot fail, here and below.
        writeln!(text, "  account {name}: {}{scope}", account.kind()).ok();
    }
    for (name, rule) in &configuration.schedules {
        let schedule = &rule.schedule;
        let next = match schedule.next_edge(now) {
            Some(edge) => format!(
                "{} from {}",
                desired_or_any(edge.desired),
                local(edge.at, schedule.timezone())
            ),
            None => "and nothing changes that".to_owned(),
        };
        let names = rule.resources.iter().filter(|entry| matches!(entry, Selector::Name(_)));
        let names = names.count();
        let listed = [(rule.resources.len() - names, "resource"), (names, "name")];
        let listed = listed.iter().filter(|(number, _)| *number > 0);
        let listed: Vec<_> = listed.map(|(number, what)| count(*number, what)).collect();
        let listed = match listed.as_slice() {
            [] => String::new(),
            some => format!("; {} besides the tagged ones", some.join(" and ")),
        };
        let state = desired_or_any(schedule.desired_at(now));
        writeln!(text, "  schedule {name}: {state} now, {next}{listed}").ok();
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
        insta::assert_snapshot!(summary("my.toml", &parsed.configuration, now), @"
        my.toml is valid: 2 accounts, 2 schedules.
          account do-main: digitalocean
          account hz-eu: hetzner, fsn1 and hel1-dc2 only
          schedule always: running now, and nothing changes that
          schedule office: running now, stopped from Mon 2026-06-15 19:00 CEST; 1 resource and 1 name besides the tagged ones
        ");
    }
}
