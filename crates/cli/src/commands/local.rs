//! `offhours local`: the whole service in one process.

use std::{
    env,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use domain::{
    configuration::Configuration,
    invocation::{Command, CommandTarget, Invocation},
    record::Direction,
};
use environment::{
    aws,
    file::{self as text_file, LONGEST_TEXT},
    in_words, settings,
};
use futures_util::poll;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use local::{Fleet, Local, Options, clouds::Clouds, file::Lock};
use ssh_host::{Setup, Sshd};
use store::Store;
use tokio::sync::mpsc;

use super::serve::PATIENCE;
use crate::{
    Exit, configuration_file,
    context::Context,
    exit::UsageError,
    output::{self, Format},
    service::{self, follow, own_data, point_out_difference, put_into_force, show_rest},
    time::Length,
    view::{
        self, GOES_ON, View, bill,
        summary::{Invocations, Summary, finished_since},
    },
};

/// The demonstration's configuration, for a user who has none.
const EXAMPLE_CONFIGURATION: &str = include_str!("../../../../examples/offhours.toml");

/// What the simulated clouds hold in the demonstration.
const EXAMPLE_FLEET: &str = include_str!("../../../../examples/fleet.toml");

/// The demonstration's machine that is reached over SSH.
const EXAMPLE_MACHINE: &str = "build-01";

/// The commands a person gives in the demonstration, and when: the rehearsal without which no
/// schedule hibernates a machine. `offhours rehearse REF` does the same.
const EXAMPLE_REHEARSAL: [(&str, Direction); 2] =
    [("2026-11-23T11:00:00Z", Direction::Stop), ("2026-11-23T11:20:00Z", Direction::Start)];

const REHEARSED: ([&str; 2], &str) =
    (["do-main/droplet/391990217", "hz-eu/server/52934801"], "ada");

const AFTER_THE_EXAMPLE: &str = "
Your own fleet comes next: `offhours savings` shows what stopping would save in your accounts, and
the README has a first offhours.toml. `offhours local --help` says more about this program.
";

const EXAMPLE_ZONE: &str = "Europe/Berlin";

/// The Monday on which the demonstration begins, an hour before Berlin's office opens.
const EXAMPLE_MORNING: &str = "2026-11-23T06:00:00Z";

/// Run the service in simulated clouds, on a faster clock.
///
/// The handlers are those of the four Lambda functions, and their timers fire every minute of the
/// simulated time. `offhours serve` does the same in your own clouds.
///
/// The configuration is the one in force in the store. A file is applied only if --config names it;
/// an offhours.toml in this folder that differs is pointed out.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours local --simulate           a day of the example fleet, in a minute
  offhours local --simulate --config my.toml --fleet fleet.toml --speed 7200
  offhours local --simulate=http://127.0.0.1:8100 --data test.db

Tokens named env:NAME in the configuration are read from the environment, as
are guard rails: OFFHOURS_PROTECT (patterns) and OFFHOURS_MODE=observe.
Whatever ends this process, the next one with the same --data finishes what
was in flight.")]
pub struct Args {
    /// Configuration file to apply first. Without it, the configuration in force in the store
    /// applies, or the example with a plain --simulate.
    #[arg(long, short = 'f', value_name = "FILE")]
    config: Option<PathBuf>,
    /// Simulate the clouds, in this process or at the address of a running cloud-simulator.
    #[arg(
        long,
        value_name = "URL",
        env = "OFFHOURS_SIMULATE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    simulate: Option<String>,
    /// File with the contents of the simulated clouds, instead of the example fleet.
    #[arg(long, value_name = "FILE", requires = "simulate")]
    fleet: Option<PathBuf>,
    /// Keep the store's data in this file. Without it, the data ends with the process.
    #[arg(long, value_name = "FILE", env = "OFFHOURS_DATA")]
    data: Option<PathBuf>,
    /// Instant at which simulated time begins.
    #[arg(long, value_name = "INSTANT", requires = "simulate", value_parser = instant)]
    from: Option<Timestamp>,
    /// How long to run [default: 24h in a simulation, otherwise until Ctrl-C].
    #[arg(long = "for", value_name = "SPAN")]
    duration: Option<Length>,
    /// Simulated seconds per real second; 0 for as fast as possible.
    #[arg(long, value_name = "N", requires = "simulate", default_value_t = 1440.0)]
    speed: f64,
    /// Use the DynamoDB engine that listens at this address, instead of the embedded one, which
    /// listens nowhere. For tests: anyone who reaches that engine can change what is done.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "data", hide = true)]
    store: Option<SocketAddr>,
    /// Address on which the simulated clouds listen.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", hide = true)]
    clouds_address: SocketAddr,
    /// Show every event and request, not only edges and problems.
    #[arg(long, short)]
    verbose: bool,
    /// Apply the configuration, serve the simulated clouds, and invoke nothing: for `cargo lambda`.
    #[arg(
        long,
        requires_all = ["store", "simulate"],
        conflicts_with_all = ["duration", "from"],
        hide = true
    )]
    no_timers: bool,
}

fn instant(text: &str) -> Result<Timestamp, &'static str> {
    text.parse().map_err(|_| "write an instant, such as 2026-11-23T06:00:00Z")
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let ssh_host = is_example(args).then(ssh_host);
    let configuration = configuration(args, ssh_host.as_ref().and_then(|host| host.as_ref().ok()))?;
    let (clouds, from) = clouds(args, configuration.as_ref()).await?;
    let (sender, mut news) = mpsc::unbounded_channel();
    let _clock = if args.no_timers { None } else { clock_lock(args)? };
    let (data, _lock) = args.data.as_deref().map(own_data).transpose()?.unzip();
    let options = Options {
        clouds,
        data,
        from: from.filter(|_| !args.no_timers),
        speed: (args.speed > 0.0).then_some(args.speed),
        floor: settings::floor()?,
    };
    let simulated = options.from.is_some();
    let local = match args.store {
        Some(address) => {
            let engine = aws::local_config(&format!("http://{address}"));
            let store = Store::connect(&engine, local::tables());
            Local::start_on(store, options, sender).await?
        }
        None => Local::start(options, sender).await?,
    };
    let asked = args.config.is_some().then_some(context);
    put_into_force("offhours local", asked, local.store(), configuration, local.now()).await?;
    if args.config.is_none() && !is_example(args) {
        point_out_difference(local.store()).await?;
    }
    if args.no_timers {
        return serve(&local).await;
    }
    let day = simulated.then_some(SignedDuration::from_hours(24));
    let length = args.duration.map(Length::duration).or(day);
    let until = match length.map(|length| local.now().checked_add(length)) {
        Some(Err(_)) => bail_usage!("--for ends beyond the calendar"),
        Some(Ok(until)) => Some(until),
        None => None,
    };
    let zone = match (is_example(args), &context.tz) {
        (true, None) => TimeZone::get(EXAMPLE_ZONE)?,
        _ => context.zone(&*local.store().in_force().await?.configuration),
    };
    let mut view = View::of(context.format, zone.clone(), args.verbose, GOES_ON);
    let began = local.now();
    // Created once for the whole run, so that a Ctrl-C between two turns is not missed.
    let interrupt = tokio::signal::ctrl_c();
    tokio::pin!(interrupt);
    if poll!(interrupt.as_mut()).is_ready() {
        return Ok(Exit::Done);
    }
    if context.format == Format::Table {
        introduce(args, &local, until, &zone);
    }
    let mut interrupted = false;
    for (at, direction) in rehearsal(args, local.now(), until)? {
        let running = local.run(Some(at));
        interrupted = follow(running, &mut view, &mut news, interrupt.as_mut()).await?;
        if interrupted {
            break;
        }
        let command = local.service().command(direction, rehearse(direction)?);
        command.await?;
    }
    if !interrupted {
        interrupted = follow(local.run(until), &mut view, &mut news, interrupt).await?;
    }
    if interrupted {
        view.interrupted();
    }
    if interrupted && !simulated {
        local.end();
        local.finish_within(PATIENCE).await;
    }
    show_rest(&mut view, &mut news)?;
    view.finish();
    conclude(args, context.format, &local, began).await?;
    if let Some(Err(error)) = ssh_host {
        output::remark(&format!("The example had no machine over SSH: {error}.\n"));
    }
    Ok(Exit::Done)
}

/// Locks the clock of a simulator elsewhere: one process at a time may move it.
fn clock_lock(args: &Args) -> anyhow::Result<Option<Lock>> {
    let Some(url) = args.simulate.as_deref().filter(|url| !url.is_empty()) else {
        return Ok(None);
    };
    let address = url.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let path = env::temp_dir().join(format!("offhours-simulator-{address}.lock"));
    let has_it = format!(
        "another `offhours local` moves the clock of the simulator at {url}: stop it first, or \
         leave the work to it"
    );
    Lock::take(&path, &has_it)
}

fn is_example(args: &Args) -> bool {
    args.simulate.as_deref() == Some("") && args.config.is_none()
}

/// The demonstration's commands and their times; empty unless the run covers all of them.
fn rehearsal(
    args: &Args,
    from: Timestamp,
    until: Option<Timestamp>,
) -> anyhow::Result<Vec<(Timestamp, Direction)>> {
    if !is_example(args) || args.fleet.is_some() {
        return Ok(Vec::new());
    }
    let all = EXAMPLE_REHEARSAL.map(|(at, direction)| Ok((at.parse()?, direction)));
    let all: Vec<(Timestamp, _)> = all.into_iter().collect::<anyhow::Result<_>>()?;
    // All of it, or nothing.
    let is_shown = |(at, _): &(Timestamp, _)| *at >= from && until.is_none_or(|until| *at < until);
    Ok(if all.iter().all(is_shown) { all } else { Vec::new() })
}

/// The command that the demonstration gives in this direction.
fn rehearse(direction: Direction) -> anyhow::Result<Invocation> {
    let (machines, by) = REHEARSED;
    let machines = machines.iter().map(|machine| machine.parse());
    let machines: Result<Vec<_>, _> = machines.collect();
    Ok(Invocation::Command(Command {
        target: CommandTarget::Resources(machines?),
        dry_run: false,
        by: Some(by.to_owned()),
        given_at: None,
        rehearsal: direction == Direction::Stop,
        without: Vec::new(),
    }))
}

/// Starts a real SSH server on loopback for the demonstration, if this machine has the program.
fn ssh_host() -> Result<Sshd, String> {
    let host = Setup::default().machine(EXAMPLE_MACHINE).start();
    let host = host.and_then(|host| {
        host.switch_on(EXAMPLE_MACHINE)?;
        Ok(host)
    });
    host.map_err(|error| in_words(&error))
}

/// The account that reaches the demonstration's machine, as a user would write it.
fn ssh_account(host: &Sshd) -> String {
    let machine = EXAMPLE_MACHINE;
    format!(
        "[accounts.lab]\n\
         provider = \"ssh\"\n\
         host = \"127.0.0.1\"\n\
         allow_private_hosts = true\n\
         port = {}\n\
         user = {:?}\n\
         key = {:?}\n\
         host_keys = [{:?}]\n\
         [accounts.lab.machines.{machine}]\n\
         start = \"start {machine}\"\n\
         stop = \"stop {machine}\"\n\
         status = \"status {machine}\"\n\
         tags = [\"offhours:berlin-office\"]\n",
        host.port(),
        host.user(),
        format!("file:{}", host.path("user").display()),
        host.host_key(),
    )
}

/// Returns the configuration that the arguments name, or `None` if the stored one applies.
fn configuration(args: &Args, ssh_host: Option<&Sshd>) -> anyhow::Result<Option<Configuration>> {
    match &args.config {
        Some(path) => service::configuration(path).map(Some),
        None if is_example(args) => {
            let ssh_account = ssh_host.map(ssh_account).unwrap_or_default();
            let text = format!("{EXAMPLE_CONFIGURATION}\n{ssh_account}");
            let file = "examples/offhours.toml".to_owned();
            let parsed = configuration_file::parse(&text, &file)
                .map_err(|problems| configuration_file::LoadError::Invalid { file, problems })?;
            Ok(Some(parsed.configuration))
        }
        None => Ok(None),
    }
}

async fn clouds(
    args: &Args,
    configuration: Option<&Configuration>,
) -> anyhow::Result<(Clouds, Option<Timestamp>)> {
    match args.simulate.as_deref() {
        None => bail_usage!("local needs --simulate; `offhours serve` runs in your own clouds"),
        Some("") => {
            if args.data.is_some() || (args.store.is_some() && !args.no_timers) {
                bail_usage!(
                    "clouds simulated in this process start afresh each time and would not match \
                     the store: run cloud-simulator as its own program and pass --simulate=URL"
                );
            }
            let fleet = fleet(args.fleet.as_deref())?;
            let from = match args.from {
                Some(from) => from,
                None => EXAMPLE_MORNING.parse()?,
            };
            let clouds = Clouds::simulated(
                fleet,
                configuration.into_iter().flat_map(|one| &one.accounts),
                args.clouds_address,
            )?;
            Ok((clouds, Some(from)))
        }
        Some(url) => {
            if args.fleet.is_some() {
                bail_usage!("pass --fleet to the cloud-simulator at the address of --simulate");
            }
            Clouds::elsewhere(url).await
        }
    }
}

fn fleet(path: Option<&Path>) -> anyhow::Result<Fleet> {
    let Some(path) = path else {
        return Ok(EXAMPLE_FLEET.parse()?);
    };
    let text = text_file::read_text(path, LONGEST_TEXT)
        .with_context(|| format!("cannot read {}", path.display()))?;
    text.parse().map_err(|error| UsageError(format!("{}: {error}", path.display())).into())
}

async fn serve(local: &Local) -> anyhow::Result<Exit> {
    if let Some(url) = local.clouds_url() {
        output::print(&format!(
            "The clouds listen on {url} (OFFHOURS_DIGITALOCEAN_URL, OFFHOURS_HETZNER_URL)\n"
        ))?;
    }
    tokio::signal::ctrl_c().await?;
    Ok(Exit::Done)
}

fn introduce(args: &Args, local: &Local, until: Option<Timestamp>, zone: &TimeZone) {
    let from = report::time::local(local.now(), zone);
    let until = until.map_or_else(
        || "until Ctrl-C".to_owned(),
        |until| format!("until {}", report::time::local(until, zone)),
    );
    if is_example(args) {
        output::remark("A day in simulated clouds: no real cloud is asked.\n");
    }
    let shown =
        if args.verbose { "every event" } else { "each edge and each problem; -v shows all" };
    output::remark(&format!("Offhours runs from {from} {until}, and shows {shown}.\n"));
}

async fn conclude(
    args: &Args,
    format: Format,
    local: &Local,
    began: Timestamp,
) -> anyhow::Result<()> {
    let bill = local.simulator().map(bill::charges).unwrap_or_default();
    match format {
        Format::Json | Format::Csv => {
            let invoked = local.service().invocation_totals().into_iter();
            let invocations = invoked.map(|(function, invoked)| {
                let of = Invocations { count: invoked.count, seconds: invoked.lasted.as_secs() };
                (function.to_owned(), of)
            });
            let history = finished_since(local.store(), began).await?;
            let summary = Summary { history, bill, invocations: invocations.collect() };
            view::print_json_line(&summary)?;
        }
        Format::Table => {
            if !bill.is_empty() {
                output::print(&format!("\nThe bill:\n{}", bill::drawn(&bill)))?;
            }
            if is_example(args) {
                output::remark(AFTER_THE_EXAMPLE);
            }
        }
    }
    Ok(())
}
