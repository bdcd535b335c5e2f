//! `offhours init`: writes a first configuration from what the accounts hold.

use std::{
    fmt::Write as _,
    fs::File,
    io::{ErrorKind, Write as _},
    path::PathBuf,
};

use anyhow::Context as _;
use domain::{
    configuration::{Account, Configuration, Provider, TokenReference},
    text::one_line,
};
use jiff::{Timestamp, tz::TimeZone};
use report::{count, joined, money::Row};

use super::savings::{self, Hours, Survey};
use crate::{Exit, ask, context::Context, exit::UsageError, listing::Failure, output};

/// What a name contains that is protected until a person decides otherwise.
const PRODUCTION: &str = "prod";

/// Longest name in a comment, in characters.
const LONGEST_NAME: usize = 60;

/// Longest reason in a comment, in characters.
const LONGEST_REASON: usize = 200;

/// Write a first configuration from what your accounts hold.
///
/// The tokens are those in `DIGITALOCEAN_TOKEN` and `HCLOUD_TOKEN`; without any, you are asked where
/// they are kept. Ones that may only read are enough for this. What could be saved is shown as by
/// `offhours savings`. The file has these accounts, a schedule for working hours, and in it what
/// could save money while it is stopped. Names with `prod` in them are protected.
///
/// Every account is only observed: nothing is stopped until you remove `mode = "observe"`, and
/// `offhours status` shows meanwhile what would be. An existing file is left as it is.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  DIGITALOCEAN_TOKEN=... offhours init
  offhours init --hours \"mon-fri 07:00-20:00\" --tz Europe/Berlin
  offhours init --config staging.toml")]
pub struct Args {
    /// File to write.
    #[arg(long, short = 'f', value_name = "FILE", default_value = "offhours.toml")]
    config: PathBuf,
    /// Hours in which everything runs: weekdays and times.
    #[arg(long, value_name = "HOURS", default_value = "mon-fri 08:00-19:00")]
    hours: Hours,
}

pub async fn run(args: &Args, context: &Context, now: Timestamp) -> anyhow::Result<Exit> {
    let file = args.config.display();
    let zone = context.tz.clone().or_else(|| TimeZone::try_system().ok());
    let Some(zone) = zone.as_ref().and_then(TimeZone::iana_name) else {
        bail_usage!("this machine's time zone has no name: pass --tz, such as --tz Europe/Berlin");
    };
    let exists = || UsageError(format!("{file} exists already: name another file"));
    if args.config.exists() {
        return Err(exists().into());
    }
    let configuration = accounts(context)?;
    let of_hours = savings::Args::of_hours(args.hours.clone());
    let survey = Survey::take(&configuration, &of_hours, context, now).await?;
    let Survey { report, failures, now } = survey;
    failures.iter().for_each(Failure::print);
    if !failures.is_empty() {
        output::remark("Nothing was written.\n");
        return Ok(Exit::Failed);
    }
    let screen = context.screen(&configuration, now);
    output::print(&savings::draw(&report, &of_hours, &screen))?;
    let is_production = |row: &&Row| row.name.to_lowercase().contains(PRODUCTION);
    let (protected, rows): (Vec<_>, Vec<_>) = report.resources.iter().partition(is_production);
    let (saving, others): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.best.is_some());
    let text = written(&configuration, &args.hours, zone, &saving, &others);
    let mut written = match File::create_new(&args.config) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(exists().into()),
        created => created.with_context(|| format!("cannot write {file}"))?,
    };
    written.write_all(text.as_bytes()).with_context(|| format!("cannot write {file}"))?;
    let resources = match saving.len() {
        1 => "1 resource follows".to_owned(),
        many => format!("{} follow", count(many, "resource")),
    };
    let left_out = match others.len() {
        0 => String::new(),
        number => format!(", {number} left out, with why"),
    };
    output::print_lines(&format!(
        "\nWrote {file}: {resources} the schedule `office`, {} protected{left_out}. Nothing is \
         stopped while mode is \"observe\".\nNext, after a look at the file:\n  export OFFHOURS_DATA=offhours.db\n  \
         offhours apply --config {file}\n  offhours serve\n",
        protected.len()
    ))?;
    Ok(Exit::Done)
}

/// The accounts whose tokens are in variables or, without any, whose tokens a person can name.
fn accounts(context: &Context) -> anyhow::Result<Configuration> {
    let mut tokens = savings::tokens_of_variables();
    if tokens.is_empty() && ask::why_not(context).is_none() {
        output::remark(&format!(
            "No token is in {}. Where is one kept: file:/PATH, env:VARIABLE, or Enter for none?\n",
            savings::variables()
        ));
        for provider in Provider::ALL {
            tokens.extend(token(provider)?.map(|token| (provider, token)));
        }
    }
    Ok(savings::accounts_of(tokens)?)
}

/// Asks where a token is kept, until the answer is a place or empty.
fn token(provider: Provider) -> anyhow::Result<Option<TokenReference>> {
    loop {
        let place = ask::answer(&format!("{}: ", provider.facts().name))?;
        match place.parse() {
            _ if place.is_empty() => return Ok(None),
            Ok(token) => return Ok(Some(token)),
            Err(error) => output::remark(&format!("{error}\n")),
        }
    }
}

fn written(
    configuration: &Configuration,
    hours: &Hours,
    zone: &str,
    saving: &[&Row],
    others: &[&Row],
) -> String {
    let mut text = format!(
        "# Every account is only observed: nothing is stopped. Remove this line to act.\n\
         mode = \"observe\"\n\
         timezone = \"{zone}\"\n\
         # Never touched, whatever its tags say.\n\
         protect = [\"name:*{PRODUCTION}*\"]\n"
    );
    for (name, account) in &configuration.accounts {
        let Account::Cloud(account) = account else { continue };
        let (provider, token) = (account.provider, &account.token);
        _ = write!(text, "\n[accounts.{name}]\nprovider = \"{provider}\"\ntoken = \"{token}\"\n");
    }
    text += "\n# Also followed by what has the tag offhours:office (DigitalOcean) or the label\n\
             # offhours=office (Hetzner). The tag offhours:off, or offhours=off, excludes a resource.\n\
             [schedules.office]\n";
    for period in &hours.schedule.definition().periods {
        let days = (!period.weekdays.is_empty()).then(|| period.weekdays.join(","));
        let keys = [("weekdays", &days), ("begin", &period.begin), ("end", &period.end)];
        let keys = keys.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
        let keys = joined(keys.map(|(key, value)| format!("{key} = \"{value}\"")), ", ");
        _ = writeln!(text, "periods = [{{ {keys} }}]");
    }
    text += "# A machine that is only powered off is billed in full: docs/stop-methods.md has what\n\
             # lowers the bill, such as methods = { droplet = \"resize\", server = \"rescale\" }.\n\
             resources = [\n";
    for row in saving {
        let name = one_line(&row.name, LONGEST_NAME);
        let saved = row.best.zip(row.saved);
        let saved = saved.map(|(best, saved)| format!(": {saved} a month by {best}"));
        _ = writeln!(text, "  \"{}\", # {name}{}", row.resource, saved.unwrap_or_default());
    }
    if !others.is_empty() {
        text += "  # Left out: no method is known to lower what these cost.\n";
    }
    for row in others {
        let name = one_line(&row.name, LONGEST_NAME);
        let why = row.why.as_deref().unwrap_or("stopping it saves nothing");
        let why = one_line(why, LONGEST_REASON);
        _ = writeln!(text, "  # \"{}\", # {name}: {why}", row.resource);
    }
    text + "]\n"
}
