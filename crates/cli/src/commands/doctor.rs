//! `offhours doctor`: checks whether everything is in order, and says what to do if not.

use anstyle::AnsiColor;
use report::{count, csv::csv};

use crate::{
    Exit,
    connection::{Session, is_served},
    context::Context,
    doctor::{
        Finding, Level, accounts, alerts, clock, functions, hibernation, notify, records, rules,
        store::{self, StoreContents},
    },
    output::{self, Format, Style},
    print,
};

/// The widths of the columns before the text of a finding.
const LEVEL_WIDTH: usize = 8;
const CHECK_WIDTH: usize = 14;

/// Check the store, clocks, accounts, functions and records.
///
/// Nothing is changed: what cannot be known without changing something is reported as such. Each
/// finding comes with what to do about it. Exit code 3 if a person is needed or a check could not be
/// made.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours doctor --data offhours.db
  offhours doctor --problems   only what is not as it should be
  offhours doctor -o json | jq '.[] | select(.level == \"problem\")'

Levels: ok, warning (perhaps unintended, clears by itself, or may become a
problem), problem (a person is needed, or the check could not be made).")]
pub struct Args {
    /// Leave out findings that are as they should be.
    #[arg(long)]
    problems: bool,
}

/// Runs one check after the other and prints each finding as it is made.
pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let least = if args.problems { Level::Warning } else { Level::Ok };
    let mut findings = Findings { format: context.format, least, shown: Vec::new() };
    match context.connection.open().await {
        Ok(session) => examine(&session, context, &mut findings).await?,
        Err(error) if Exit::of(&error) == Exit::BadUsage => return Err(error),
        Err(error) => findings.add([store::unopened(&error)])?,
    }
    let shown = findings.shown;
    match context.format {
        Format::Json => output::print_json(&shown)?,
        Format::Csv => output::print(&csv(&shown)?)?,
        Format::Table => output::remark(&format!("\n{}\n", summary(&shown))),
    }
    let is_problem = |finding: &Finding| finding.level == Level::Problem;
    Ok(if shown.iter().any(is_problem) { Exit::NeedsPerson } else { Exit::Done })
}

async fn examine(
    session: &Session,
    context: &Context,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    let now = session.now;
    let file = context.connection.data.as_deref();
    findings.add(store::tables(&session.store, file).await)?;
    let contents = match StoreContents::read(&session.store).await {
        Ok(contents) => contents,
        Err(error) => return findings.add([store::unread(&error)]),
    };
    findings.add(store::unreadable(&contents))?;
    let zone = context.zone(&*contents.in_force.configuration);
    findings.add(store::configuration(&contents, now))?;
    findings.add(store_clock(session).await)?;
    if let Some(lambda) = session.functions()?.lambda() {
        findings.add(functions::at_aws(lambda).await)?;
        if let Some(subscriptions) = session.subscriptions().await {
            findings.add(alerts::check(subscriptions))?;
        }
        findings.add(accounts::token_readers(&contents))?;
        findings.add(accounts::noted_rates(&contents, now))?;
    }
    if let (Some(file), Some(providers)) = (file, session.providers()?) {
        findings.add([functions::here(&contents.states, file, is_served(file), now)])?;
        for name in contents.in_force.configuration.accounts.keys() {
            findings.add(accounts::here(&providers, name, &contents, session.clock()).await)?;
        }
    }
    let configuration = &contents.in_force.configuration;
    match notify::check(&session.store, configuration, &zone).await {
        Ok(found) => findings.add(found)?,
        Err(error) => findings.add([store::unread(&error)])?,
    }
    findings.add(hibernation::check(&session.functions()?, &contents).await)?;
    findings.add(accounts::inventories(&contents, now))?;
    findings.add(accounts::loads(&contents, &zone, now))?;
    findings.add(records::check(&contents, &zone, now))?;
    findings.add(rules::check(&contents, &zone, now))
}

async fn store_clock(session: &Session) -> Option<Finding> {
    if session.is_simulated() {
        return None;
    }
    match session.store.clock().await {
        Ok(theirs) => Some(clock::compare("the store", theirs?, session.clock().now())),
        Err(error) => Some(store::unread(&error)),
    }
}

/// The findings that are shown: to people as each one is made, to programs all at the end.
struct Findings {
    format: Format,
    /// The least serious ones to show.
    least: Level,
    shown: Vec<Finding>,
}

impl Findings {
    fn add(&mut self, findings: impl IntoIterator<Item = Finding>) -> anyhow::Result<()> {
        for finding in findings.into_iter().filter(|finding| finding.level >= self.least) {
            if self.format == Format::Table {
                output::print(&line(&finding, Style::of_stdout()))?;
            }
            self.shown.push(finding);
        }
        Ok(())
    }
}

/// A finding on one line, and its remedy on the next.
fn line(Finding { check, level, subject, found, remedy }: &Finding, style: Style) -> String {
    let colour = match level {
        Level::Ok => AnsiColor::Green,
        Level::Warning => AnsiColor::Yellow,
        Level::Problem => AnsiColor::Red,
    };
    let level = style.coloured(colour, &format!("{:LEVEL_WIDTH$}", print::word(level)));
    let check = print::word(check);
    let subject = subject.as_ref().map(|subject| format!("{subject}: ")).unwrap_or_default();
    let text = format!("{level} {check:CHECK_WIDTH$} {subject}{found}\n");
    let indent = LEVEL_WIDTH + CHECK_WIDTH + 2;
    let remedy = remedy.as_ref().map(|remedy| format!("{:indent$}{remedy}\n", ""));
    style.wrap_under(&text, indent) + &style.wrap_under(&remedy.unwrap_or_default(), 0)
}

fn summary(findings: &[Finding]) -> String {
    let counted =
        [(Level::Problem, "problem"), (Level::Warning, "warning")].map(|(level, word)| {
            let number = findings.iter().filter(|finding| finding.level == level).count();
            (number > 0).then(|| count(number, word))
        });
    let counted: Vec<_> = counted.into_iter().flatten().collect();
    if counted.is_empty() { "No problems found.".to_owned() } else { counted.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Check;

    fn findings() -> Vec<Finding> {
        vec![
            Finding::ok(Check::Store, "the four tables and the index `due` are there"),
            Finding::warning(Check::Clock, "this machine is 7s ahead of the store", "use NTP"),
            Finding::problem(Check::RateLimit, "no answer", "try again").of("do-main"),
        ]
    }

    #[test]
    fn a_finding_is_a_line_and_its_remedy_another() {
        let lines = findings().iter().map(|f| line(f, Style::PLAIN)).collect::<String>();
        insta::assert_snapshot!(lines, @"
        ok       store          the four tables and the index `due` are there
        warning  clock          this machine is 7s ahead of the store
                                use NTP
        problem  rate-limit     do-main: no answer
                                try again
        ");
        assert_eq!(summary(&findings()), "1 problem, 1 warning");
        assert_eq!(summary(&findings()[..1]), "No problems found.");
        let coloured = Style { colours: true, ..Style::PLAIN };
        assert!(line(&findings()[2], coloured).contains('\u{1b}'));
    }

    #[test]
    fn every_finding_has_the_shape_that_its_schema_says() {
        let schema = crate::shape::schema_of::<Finding>();
        let schema = jsonschema::validator_for(schema.as_value()).unwrap();
        for finding in findings() {
            let finding = serde_json::to_value(finding).unwrap();
            assert!(schema.is_valid(&finding), "{finding:#}");
        }
    }
}
