//! The `offhours` command: what a person checks, previews and does.

#[macro_use]
pub mod exit;
mod apply;
mod ask;
mod author;
mod candidates;
mod carry_out;
pub mod commands;
pub mod configuration_file;
mod connection;
pub mod context;
mod doctor;
#[cfg(test)]
mod evening;
#[cfg(test)]
mod fixtures;
mod help;
pub mod import;
mod listing;
mod names;
mod output;
mod overriding;
mod print;
mod progress;
mod remedies;
mod resource;
#[cfg(test)]
mod scene;
mod service;
mod shape;
mod strips;
mod table;
pub mod time;
mod time_range;
pub mod view;

use std::sync::LazyLock;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap_complete::CompleteEnv;
use environment::Clock;

pub use exit::Exit;
use exit::UsageError;
use output::Format;

use commands::{
    activity, apply as apply_command, approve, backup, calendar, completions, config,
    doctor as doctor_command, forget, history, import as import_command, init, man, manual, notify,
    overrides, pause, preview, rebuild, rehearse, report as report_command, restore, saved,
    savings, serve, share, status, ui, validate, why,
};
use context::Context;
use domain::schedule::time_zone_database;

/// The version, the commit if `make dist` has built it, and the version of the time zone database.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    let commit = option_env!("OFFHOURS_COMMIT").map(|commit| format!(" ({commit})"));
    let commit = commit.unwrap_or_default();
    format!("{version}{commit}\ntime zone database {}", time_zone_database())
});

/// Stop cloud resources when nobody uses them, and start them again in time.
#[derive(Debug, Parser)]
#[command(
    name = "offhours",
    version,
    long_version = LONG_VERSION.as_str(),
    after_help = "\
A configuration is one TOML file, offhours.toml unless --config names another:
  timezone = \"Europe/Berlin\"
  accounts.do-main = { provider = \"digitalocean\", token = \"env:DO_TOKEN\" }
  [schedules.office]
  periods = [{ weekdays = \"mon-fri\", begin = \"08:00\", end = \"19:00\" }]

Tag a resource offhours:office (Hetzner: label offhours=office), and it runs
only in these hours. Each command's --help has examples.
Exit codes: 0 done, 1 failed, 2 bad usage or configuration, 3 needs attention,
4 `apply --dry-run --exit-code` has changes"
)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    context: Context,
}

/// The commands, in the order of the help's groups.
#[derive(Debug, Subcommand)]
enum Command {
    #[command(visible_alias = "ls", alias = "get")]
    Status(status::Args),
    Why(why::Args),
    Preview(preview::Args),
    Ui(ui::Args),
    Report(report_command::Args),
    Calendar(calendar::Args),
    Share(share::Args),
    History(history::Args),
    Activity(activity::Args),
    /// Stop resources now and wait until they are stopped.
    Stop(manual::Args),
    /// Start resources now, and wait until they are running as before.
    Start(manual::StartArgs),
    Override(overrides::Args),
    Pause(pause::Args),
    Resume(pause::ResumeArgs),
    Approve(approve::Args),
    Rehearse(rehearse::Args),
    Forget(forget::Args),
    Init(init::Args),
    Validate(validate::Args),
    Apply(Box<apply_command::Args>),
    Config(config::Args),
    Import(import_command::Args),
    Savings(savings::Args),
    Saved(saved::Args),
    Serve(serve::Args),
    Local(Box<commands::local::Args>),
    Doctor(doctor_command::Args),
    Notify(notify::Args),
    Backup(backup::Args),
    Restore(restore::Args),
    Rebuild(rebuild::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[command(hide = true)]
    Environment(help::Environment),
}

impl Command {
    /// Whether it has one form of output, which is not JSON.
    fn has_one_form(&self) -> bool {
        matches!(
            self,
            Self::Init(_)
                | Self::Calendar(_)
                | Self::Report(_)
                | Self::Share(_)
                | Self::Ui(_)
                | Self::Backup(_)
                | Self::Restore(_)
                | Self::Completions(_)
                | Self::Man(_)
        )
    }

    /// Whether what it prints is rows of one kind, so that it can be CSV.
    fn prints_rows(&self) -> bool {
        matches!(
            self,
            Self::Status(_)
                | Self::Preview(_)
                | Self::History(_)
                | Self::Activity(_)
                | Self::Override(overrides::Args { command: overrides::OverrideCommand::List(_) })
                | Self::Approve(_)
                | Self::Config(config::Args { command: config::Command::Log(_) })
                | Self::Savings(_)
                | Self::Saved(_)
                | Self::Doctor(_)
                | Self::Notify(_)
                | Self::Rebuild(_)
        )
    }
}

impl Arguments {
    /// Parses the command line. Ends the process if it is invalid, or if a shell only requests
    /// completions.
    #[must_use]
    pub fn of_command_line() -> Self {
        CompleteEnv::with_factory(Self::command).complete();
        let words = help::expanded(std::env::args_os());
        let matches =
            help::complete(Self::command()).try_get_matches_from(&words).unwrap_or_else(|error| {
                let advice = help::instead(&error).map(|advice| format!("error: {advice}\n"));
                if let Some(text) = advice.or_else(|| help::instead_of_missing(&error, words)) {
                    output::remark(&text);
                    std::process::exit(2);
                }
                error.exit()
            });
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// Runs one command. An error is reported on standard error.
#[must_use]
pub fn run(arguments: &Arguments) -> Exit {
    let (clock, context) = (Clock::machine(), &arguments.context);
    context.remark_on_unknown_zone();
    let result = match &arguments.command {
        command if context.format != Format::Table && command.has_one_form() => {
            let message = "this command prints neither JSON nor CSV";
            Err(UsageError(message.to_owned()).into())
        }
        command if context.format == Format::Csv && !command.prints_rows() => {
            let message = "this command prints no rows: use -o json";
            Err(UsageError(message.to_owned()).into())
        }
        Command::Validate(args) => wait_for(async {
            validate::run(args, context, context.connection.present(&clock).await?)
        }),
        Command::Init(args) => wait_for(init::run(args, context, clock.now())),
        Command::Preview(args) => wait_for(preview::run(args, context, &clock)),
        Command::Calendar(args) => wait_for(calendar::run(args, context)),
        Command::Report(args) => wait_for(report_command::run(args, context)),
        Command::Share(args) => wait_for(share::run(args, context)),
        Command::Apply(args) => wait_for(apply_command::run(args, context)),
        Command::Activity(args) => wait_for(activity::run(args, context)),
        // These handle Ctrl-C themselves.
        Command::Serve(args) => run_to_end("warn", serve::run(args, context)),
        Command::Local(args) => run_to_end("warn", commands::local::run(args, context)),
        Command::Ui(args) => run_to_end("warn", ui::run(args, context)),
        Command::Backup(args) => wait_for(backup::run(args, context)),
        Command::Restore(args) => wait_for(restore::run(args, context)),
        Command::Rebuild(args) => wait_for(rebuild::run(args, context)),
        Command::Status(args) => wait_for(status::run(args, context)),
        Command::Why(args) => wait_for(why::run(args, context)),
        Command::Stop(args) => wait_for(manual::stop(args, context)),
        Command::Start(args) => wait_for(manual::start(args, context)),
        Command::Override(args) => wait_for(overrides::run(args, context)),
        Command::Pause(args) => wait_for(pause::pause(args, context)),
        Command::Resume(args) => wait_for(pause::resume(args, context)),
        Command::Approve(args) => wait_for(approve::run(args, context)),
        Command::Forget(args) => wait_for(forget::run(args, context)),
        Command::History(args) => wait_for(history::run(args, context)),
        Command::Saved(args) => wait_for(saved::run(args, context)),
        Command::Savings(args) => wait_for(savings::run(args, context, clock.now())),
        Command::Rehearse(args) => wait_for(rehearse::run(args, context)),
        Command::Config(args) => wait_for(config::run(args, context)),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
        Command::Environment(help::Environment {}) => help::environment(),
        Command::Import(args) => import_command::run(args, context),
        Command::Doctor(args) => wait_for(doctor_command::run(args, context)),
        Command::Notify(args) => wait_for(notify::run(args, context)),
    };
    result.unwrap_or_else(|error| {
        output::report(&error);
        Exit::of(&error)
    })
}

/// Runs an asynchronous command until it ends or Ctrl-C is pressed.
fn wait_for(command: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    // A command reports failures in its own output.
    run_to_end("error", async {
        progress::end_on_interrupt();
        command.await
    })
}

fn run_to_end(
    logged: &str,
    command: impl Future<Output = anyhow::Result<Exit>>,
) -> anyhow::Result<Exit> {
    environment::logging::plain(logged);
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(tokio::task::LocalSet::new().run_until(command))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    /// All commands that can be run, including nested ones.
    fn leaves(command: &clap::Command) -> Vec<&clap::Command> {
        let (nested, own): (Vec<_>, Vec<_>) =
            (command.get_subcommands()).partition(|one| one.has_subcommands());
        let nested = nested.into_iter().flat_map(leaves);
        own.into_iter().chain(nested).collect()
    }

    #[test]
    fn every_command_has_examples() {
        for command in leaves(&Arguments::command()) {
            let help = command.clone().render_long_help().to_string();
            let name = command.get_name();
            assert!(help.contains("Example"), "{name}: {help}");
        }
    }

    /// Splits an example into words, up to two spaces, where its comment begins, or up to a shell
    /// operator.
    fn words(example: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
        let mut rest = example.chars().peekable();
        while let Some(character) = rest.next() {
            match (quote, character) {
                (None, '"' | '\'') => quote = Some(character),
                (Some(open), _) if open == character => quote = None,
                (None, ' ') => {
                    words.push(std::mem::take(&mut word));
                    if matches!(rest.peek(), Some(' ' | '|' | '>' | '<')) {
                        break;
                    }
                }
                (None | Some(_), _) => word.push(character),
            }
        }
        words.extend((!word.is_empty()).then_some(word));
        words
    }

    #[test]
    fn every_example_is_a_command_that_is_accepted() {
        let mut tried = 0;
        for command in leaves(&Arguments::command()) {
            let help = command.clone().render_long_help().to_string();
            for example in help.lines().map(str::trim) {
                if !example.starts_with("offhours ") {
                    continue;
                }
                let words = words(example).into_iter().map(OsString::from);
                let parsed = Arguments::try_parse_from(help::expanded(words));
                assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
                tried += 1;
            }
        }
        assert!(tried > 50, "{tried} examples");
    }

    #[test]
    fn every_help_fits_a_narrow_terminal_and_a_page() {
        let command = help::complete(Arguments::command());
        for command in leaves(&command).into_iter().chain([&command]) {
            let help = command.clone().term_width(80).render_long_help().to_string();
            let name = command.get_name();
            let long = help.lines().find(|line| line.chars().count() > 80);
            assert_eq!(long, None, "{name}");
        }
    }

    #[test]
    fn the_overview_names_every_command_once() {
        let command = help::complete(Arguments::command());
        let help = command.clone().render_help().to_string();
        for title in ["Look", "Act", "Configure", "Money", "Run and repair"] {
            assert!(help.contains(&format!("\n\n{title}:\n")), "{title}: {help}");
        }
        for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            let line = format!("\n  {:<12}", one.get_name());
            assert_eq!(help.matches(&line).count(), 1, "{}: {help}", one.get_name());
        }
    }

    fn expanded(line: &str) -> String {
        let words = help::expanded(line.split(' ').map(OsString::from));
        let words: Vec<_> = words.into_iter().map(|word| word.into_string().unwrap()).collect();
        words.join(" ")
    }

    #[test]
    fn a_command_is_expanded_behind_options_too() {
        for one in Arguments::command().get_arguments().filter(|one| one.is_global_set()) {
            let (long, takes_value) = (one.get_long().unwrap(), one.get_action().takes_values());
            let short = one.get_short().map(|short| format!("-{short}"));
            for name in [Some(format!("--{long}")), short].into_iter().flatten() {
                let value = match (takes_value, one.is_require_equals_set()) {
                    (false, _) => "",
                    (true, true) => "=list",
                    (true, false) => " list",
                };
                let line = format!("offhours {name}{value}");
                assert_eq!(expanded(&line), line);
                assert_eq!(expanded(&format!("{line} list")), format!("{line} status --wide"));
            }
        }
        assert_eq!(
            expanded("offhours --data x.db -ojson report -o a.html"),
            "offhours --data x.db -ojson report a.html"
        );
    }

    #[test]
    fn a_command_that_writes_a_file_takes_it_after_o_too() {
        for file in ["-o a.ics", "-oa.ics", "-o=a.ics", "--output a.ics", "--output=a.ics"] {
            let line = format!("offhours calendar --schedule office {file} --public");
            assert_eq!(expanded(&line), "offhours calendar --schedule office a.ics --public");
        }
        for form in ["-o json", "-ojson", "--output=json"] {
            let line = format!("offhours report {form}");
            assert_eq!(expanded(&line), "offhours report --output json");
        }
        for line in ["offhours status -o a.ics", "offhours calendar -o", "offhours calendar a.ics"]
        {
            assert_eq!(expanded(line), line);
        }
    }

    #[test]
    fn csv_is_for_commands_that_print_rows() {
        for (line, prints_rows) in [
            ("offhours approve --all", true),
            ("offhours override list", true),
            ("offhours override clear web", false),
            ("offhours config log", true),
            ("offhours config show", false),
            ("offhours why web", false),
        ] {
            let arguments = Arguments::try_parse_from(line.split(' ')).unwrap();
            assert_eq!(arguments.command.prints_rows(), prints_rows, "{line}");
        }
    }

    #[test]
    fn a_habit_from_elsewhere_is_told_what_does_it_here() {
        for (typed, named) in [("plan", "offhours apply --dry-run"), ("logs", "offhours activity")]
        {
            let error =
                help::complete(Arguments::command()).try_get_matches_from(["offhours", typed]);
            let advice = help::instead(&error.unwrap_err()).unwrap();
            assert!(advice.contains(named), "{advice}");
        }
        let error =
            help::complete(Arguments::command()).try_get_matches_from(["offhours", "statsu"]);
        assert_eq!(help::instead(&error.unwrap_err()), None);
    }

    #[test]
    fn the_help_fits_a_screen() {
        let help = help::complete(Arguments::command()).render_help().to_string();
        assert!(help.lines().count() <= 60, "{help}");
    }
}
