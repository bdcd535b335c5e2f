//! `offhours doctor`: checks whether everything is in order, and says what to do if not.

use anstyle::{AnsiColor, Effects};

use super::Format;
use crate::{
    Exit,
    connection::Session,
    context::Context,
    doctor::{
        Check, Finding, Verdict, accounts, alerts, clock, functions, hibernation, records, rules,
        store::{self, StoreContents},
    },
    output::{self, Style},
    print,
};

/// The widths of the columns before the text of a finding.
const VERDICT_WIDTH: usize = 8;
const CHECK_WIDTH: usize = 14;

/// Check the store, clocks, accounts, functions and records.
///
/// Nothing is changed: what cannot be known without changing something is reported as such. Each
/// finding comes with what to do about it. Exit code 3 if a person is needed, 1 if a check could
/// not be made.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours doctor --data offhours.db
  offhours doctor --problems   only what is not as it should be
  offhours doctor -o json | jq '.[] | select(.verdict == \"problem\")'

Verdicts: ok, hint (perhaps unintended), warning (clears by itself, or may
become a problem), problem (a person is needed), unknown (the check could not
be made).")]
pub struct Args {
    /// Leave out findings that are as they should be.
    #[arg(long)]
    problems: bool,
}

/// Runs one check after the other and prints each finding as it is made.
pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let mut printer = FindingPrinter::of(args, context);
    match context.connection.open().await {
        Ok(session) => examine(&session, context, &mut printer).await?,
        Err(error) if Exit::of(&error) == Exit::BadUsage => return Err(error),
        Err(error) => {
            let causes: Vec<_> = error.chain().skip(1).map(ToString::to_string).collect();
            let finding = Finding::unknown(Check::Store, causes.join(": "), error.to_string());
            printer.report([finding])?;
        }
    }
    printer.finish()
}

async fn examine(
    session: &Session,
    context: &Context,
    printer: &mut FindingPrinter,
) -> anyhow::Result<()> {
    let now = session.now;
    printer.report(store::tables(&session.store).await)?;
    let contents = match StoreContents::read(&session.store).await {
        Ok(contents) => contents,
        Err(error) => return printer.report([store::unread(&error)]),
    };
    printer.report(store::unreadable(&contents))?;
    let zone = context.zone(&*contents.in_force.configuration);
    printer.report(store::configuration(&contents, now))?;
    printer.report([store_clock(session).await, clock::time_zones()])?;
    if let Some(lambda) = session.functions()?.lambda() {
        printer.report(functions::at_aws(lambda).await)?;
        if let Some(subscriptions) = session.subscriptions().await {
            printer.report(alerts::check(subscriptions))?;
        }
        printer.report(accounts::at_aws(lambda, &contents).await)?;
        printer.report(accounts::token_readers(&contents))?;
        printer.report(accounts::noted_rates(&contents, now))?;
    }
    if let (Some(file), Some(providers)) = (context.connection.file(), session.providers()?) {
        printer.report([functions::here(&contents.states, file, now)])?;
        for name in contents.in_force.configuration.accounts.keys() {
            printer.report(accounts::here(&providers, name, &contents, session.clock()).await)?;
        }
    }
    printer.report(hibernation::check(&session.functions()?, &contents).await)?;
    printer.report(accounts::inventories(&contents, now))?;
    printer.report(accounts::loads(&contents, &zone, now))?;
    printer.report(records::check(&contents, &zone, now))?;
    printer.report(rules::check(&contents, now))
}

async fn store_clock(session: &Session) -> Finding {
    if session.is_simulated() {
        return Finding::ok(Check::Clock, "the simulator's clock tells the time");
    }
    match session.store.clock().await {
        Ok(theirs) => clock::compare("the store", theirs, session.clock().now()),
        Err(error) => store::unread(&error),
    }
}

/// Prints findings: for people as each one is made, for programs all at the end.
struct FindingPrinter {
    format: Format,
    style: Style,
    /// Whether to leave out what is in order.
    problems: bool,
    findings: Vec<Finding>,
}

impl FindingPrinter {
    fn of(args: &Args, context: &Context) -> Self {
        Self {
            format: context.format,
            style: Style::of_stdout(),
            problems: args.problems,
            findings: Vec::new(),
        }
    }

    fn report(&mut self, findings: impl IntoIterator<Item = Finding>) -> anyhow::Result<()> {
        for finding in findings {
            let is_shown = !self.problems || finding.verdict != Verdict::Ok;
            if is_shown && self.format == Format::Table {
                output::print(&line(&finding, self.style))?;
            }
            if is_shown {
                self.findings.push(finding);
            }
        }
        Ok(())
    }

    fn finish(self) -> anyhow::Result<Exit> {
        match self.format {
            Format::Json => output::print_json(&self.findings)?,
            Format::Csv => output::print(&print::csv(&self.findings)?)?,
            Format::Table => output::remark(&format!("\n{}\n", summary(&self.findings))),
        }
        Ok(exit(&self.findings))
    }
}

/// A finding on one line, and its remedy on the next.
fn line(finding: &Finding, style: Style) -> String {
    let Finding { check, verdict, subject, found, remedy } = finding;
    let word = format!("{:VERDICT_WIDTH$}", verdict.as_str());
    let colour = colour(*verdict, style);
    // People and programs read the same word.
    let check = serde_json::to_value(check).unwrap_or_default();
    let check = check.as_str().unwrap_or_default();
    let subject = subject.as_ref();
    let subject = subject.map_or_else(String::new, |subject| format!("{subject}: "));
    let text = format!("{colour}{word}{colour:#} {check:CHECK_WIDTH$} {subject}{found}\n");
    let indent = VERDICT_WIDTH + CHECK_WIDTH + 2;
    let text = style.wrap_under(&text, indent);
    let remedy = remedy.as_ref();
    let remedy = remedy.map_or_else(String::new, |remedy| format!("{:indent$}{remedy}\n", ""));
    text + &style.wrap_under(&remedy, 0)
}

fn colour(verdict: Verdict, style: Style) -> anstyle::Style {
    if !style.colours {
        return anstyle::Style::new();
    }
    match verdict {
        Verdict::Ok => AnsiColor::Green.on_default(),
        Verdict::Hint => AnsiColor::Cyan.on_default(),
        Verdict::Warning => AnsiColor::Yellow.on_default(),
        Verdict::Problem | Verdict::Unknown => AnsiColor::Red.on_default().effects(Effects::BOLD),
    }
}

fn summary(findings: &[Finding]) -> String {
    let of = |verdict: Verdict| findings.iter().filter(|f| f.verdict == verdict).count();
    let shown: Vec<_> = [
        (of(Verdict::Problem), "problem"),
        (of(Verdict::Unknown), "unknown"),
        (of(Verdict::Warning), "warning"),
        (of(Verdict::Hint), "hint"),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, word)| match word {
        "unknown" => format!("{number} could not be checked"),
        word => crate::configuration_file::count(number, word),
    })
    .collect();
    if shown.is_empty() {
        return "No problems found.".to_owned();
    }
    shown.join(", ")
}

fn exit(findings: &[Finding]) -> Exit {
    match findings.iter().map(|finding| finding.verdict).max() {
        Some(Verdict::Unknown) => Exit::Failed,
        Some(Verdict::Problem) => Exit::NeedsPerson,
        Some(Verdict::Ok | Verdict::Hint | Verdict::Warning) | None => Exit::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> Vec<Finding> {
        vec![
            Finding::ok(Check::Store, "the four tables and the index `due` are there"),
            Finding::hint(Check::Schedules, "nothing follows it").of("office"),
            Finding::warning(Check::Clock, "this machine is 7s ahead of the store", "use NTP"),
            Finding::problem(Check::Token, "the token is refused", "give it another").of("do-main"),
            Finding::unknown(Check::Token, "no answer", "try again").of("hz-eu"),
        ]
    }

    #[test]
    fn a_finding_is_a_line_and_its_remedy_another() {
        let lines = findings().iter().map(|f| line(f, Style::PLAIN)).collect::<String>();
        insta::assert_snapshot!(lines, @"
        ok       store          the four tables and the index `due` are there
        hint     schedules      office: nothing follows it
        warning  clock          this machine is 7s ahead of the store
                                use NTP
        problem  token          do-main: the token is refused
                                give it another
        unknown  token          hz-eu: no answer
                                try again
        ");
        assert_eq!(summary(&findings()), "1 problem, 1 could not be checked, 1 warning, 1 hint");
        assert_eq!(summary(&findings()[..1]), "No problems found.");
    }

    #[test]
    fn programs_read_findings_of_one_shape() {
        insta::assert_snapshot!(serde_json::to_string_pretty(&findings()[2..4]).unwrap(), @r#"
        [
          {
            "check": "clock",
            "verdict": "warning",
            "subject": null,
            "found": "this machine is 7s ahead of the store",
            "remedy": "use NTP"
          },
          {
            "check": "token",
            "verdict": "problem",
            "subject": "do-main",
            "found": "the token is refused",
            "remedy": "give it another"
          }
        ]
        "#);
    }

    #[test]
    fn every_finding_has_the_shape_that_its_schema_says() {
        let schema = crate::shape::of::<Finding>();
        let schema = jsonschema::validator_for(schema.as_value()).unwrap();
        for finding in findings() {
            let finding = serde_json::to_value(finding).unwrap();
            assert!(schema.is_valid(&finding), "{finding:#}");
        }
    }

    #[test]
    fn a_problem_needs_a_person_and_a_check_that_was_not_made_is_a_failure() {
        let all = findings();
        assert_eq!(exit(&all), Exit::Failed);
        assert_eq!(exit(&all[..4]), Exit::NeedsPerson);
        assert_eq!(exit(&all[..3]), Exit::Done);
        assert_eq!(exit(&[]), Exit::Done);
    }

    #[test]
    fn colours_are_used_only_where_the_style_has_them() {
        let coloured = Style { colours: true, ..Style::PLAIN };
        assert!(line(&findings()[3], coloured).contains('\u{1b}'));
        assert!(!line(&findings()[3], Style::PLAIN).contains('\u{1b}'));
    }
}
