//! `offhours serve`: the whole service in one process, made to be left alone.

use std::{io, net::SocketAddr, path::PathBuf, time::Duration};

use domain::{
    configuration::{Configuration, Generation},
    invocation::Question,
};
use environment::settings;
use local::{Local, Options, clouds::Clouds, health};
use sd_notify::NotifyState;
use store::Store;
use tokio::sync::mpsc;

use crate::{
    Exit,
    context::Context,
    output,
    service::{self, follow, own_data, point_out_difference, put_into_force, show_rest},
    view::View,
};

/// How long the process waits, once it is stopped, until the answers to all requests are recorded.
pub(super) const PATIENCE: Duration = Duration::from_secs(9);

/// Run the service in this process, in your own clouds.
///
/// It needs no AWS account, and runs until it is stopped. The handlers are those of the four
/// Lambda functions, and their timers fire every minute. The store is a file that its owner alone
/// can read, and nothing listens unless --listen is given. Each event is a line; a quiet minute
/// prints nothing.
///
/// The configuration is the one in force in the store, so that a rollback outlives a restart;
/// `offhours apply` and all other commands work on the same file meanwhile. SIGTERM and Ctrl-C end
/// the process within ten seconds, with what was sent recorded; whatever ends it, the next one with
/// the same file finishes what was in flight.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours serve --data /var/lib/offhours/offhours.db
  offhours serve --data offhours.db --config offhours.toml -o json
  offhours serve --data offhours.db --once      from a timer of your own
  offhours serve --data offhours.db --listen 127.0.0.1:9464
  curl --fail http://127.0.0.1:9464/healthz

A token is in the environment (env:NAME), in a file that others cannot read
(file:/PATH) or among systemd's credentials (credential:NAME). Guard rails are
in OFFHOURS_PROTECT (patterns) and OFFHOURS_MODE=observe.
Under systemd with Type=notify it reports when it is ready and when it ends,
and feeds the watchdog while both of its timers work.")]
pub struct Args {
    /// Configuration file to apply first, if it says something else than what is in force, which
    /// stays so if the file is refused.
    #[arg(long, short = 'f', value_name = "FILE")]
    config: Option<PathBuf>,
    /// Do what is due now, follow it for up to a minute, and end.
    #[arg(long)]
    once: bool,
    /// Answer at this address: `GET /healthz` (200 while both timers work, otherwise 503),
    /// `GET /metrics` (for Prometheus), `GET /` (the page of `report`), `GET /calendar.ics` and
    /// `GET /calendar/NAME.ics`.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "once")]
    listen: Option<SocketAddr>,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let stop_signal = stop_signal()?;
    tokio::pin!(stop_signal);
    let mut wanted = args.config.as_deref().map(service::configuration).transpose();
    if !context.connection.is_there() {
        wanted = Ok(wanted?);
    }
    let Some(data) = &context.connection.data else {
        bail_usage!("serve needs --data FILE: where the store keeps its data");
    };
    let clouds = clouds(context).await?;
    let (data, _lock) = own_data(data)?;
    let (sender, mut news) = mpsc::unbounded_channel();
    let floor = settings::floor()?;
    let options = Options { clouds, data: Some(data), from: None, speed: None, floor };
    let local = Local::start(options, sender).await?;
    let is_refused = !apply(wanted, &local, context).await?;
    if args.config.is_none() {
        point_out_difference(local.store()).await?;
    }
    if let Some(address) = args.listen {
        let address = health::listen(address, local.service()).await?;
        output::remark(&format!("Listening on {address}\n"));
    }
    let zone = context.zone(&*local.store().in_force().await?.configuration);
    let mut view = View::log(context.format, zone);
    notify(&[NotifyState::Ready]);
    let running = async {
        if args.once {
            return local.once().await;
        }
        tokio::select! {
            ended = local.run(None) => ended,
            () = feed_watchdog(&local) => Ok(()),
        }
    };
    let interrupted = follow(running, &mut view, &mut news, stop_signal).await?;
    if interrupted {
        local.end();
    }
    notify(&[NotifyState::Stopping]);
    if interrupted && !local.finish_within(PATIENCE).await {
        output::remark(
            "Some answers are still open: the next run finds out what became of them.\n",
        );
    }
    show_rest(&mut view, &mut news)?;
    Ok(match args.once && !interrupted {
        true if is_refused => Exit::BadUsage,
        true if is_any_unlisted(local.store()).await? => Exit::Failed,
        true => view.exit(),
        false => Exit::Done,
    })
}

/// Reports whether an account could not be listed: what is due of it may not have been seen.
async fn is_any_unlisted(store: &Store) -> anyhow::Result<bool> {
    let states = store.account_states().await?.read;
    let accounts = &store.in_force().await?.configuration.accounts;
    Ok(states.values().any(|state| state.error.is_some() && accounts.contains_key(&state.account)))
}

/// Puts a configuration into force, and reports it to the targets of `[notify]`. Returns false if it
/// is refused while another one is in force, which stays so: no mistake in a file is to keep the
/// machines off in the morning after a restart at night.
async fn apply(
    wanted: anyhow::Result<Option<Configuration>>,
    local: &Local,
    context: &Context,
) -> anyhow::Result<bool> {
    let (store, now) = (local.store(), local.now());
    let applied = match wanted {
        Ok(wanted) => put_into_force("offhours serve", Some(context), store, wanted, now).await,
        Err(refused) => Err(refused),
    };
    match applied {
        Ok(Some(done)) => {
            local.service().ask(Question::Changed(Box::new(done))).await?;
            Ok(true)
        }
        Ok(None) => Ok(true),
        Err(refused) => {
            let Generation(in_force) = store.head().await?.generation;
            if in_force == 0 {
                return Err(refused);
            }
            output::report(&refused);
            output::remark(&format!(
                "Generation {in_force} stays in force: mend the file, then `offhours apply` it.\n"
            ));
            Ok(false)
        }
    }
}

/// The real clouds, or a simulator whose clock runs.
async fn clouds(context: &Context) -> anyhow::Result<Clouds> {
    let Some(url) = &context.connection.simulate else {
        return Ok(Clouds::Real);
    };
    let (clouds, held) = Clouds::elsewhere(url).await?;
    if held.is_some() {
        bail_usage!("the simulator's clock is held: `offhours local` moves it");
    }
    Ok(clouds)
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        output::remark(&format!("warning: systemd cannot be notified: {error}\n"));
    }
}

/// Feeds systemd's watchdog while both timers work; waits for ever if there is none.
async fn feed_watchdog(local: &Local) {
    let Some(limit) = sd_notify::watchdog_enabled() else {
        return std::future::pending().await;
    };
    loop {
        local.service().pass(limit / 2).await;
        if local.service().is_healthy() {
            notify(&[NotifyState::Watchdog]);
        }
    }
}

/// Completes on SIGTERM or SIGINT. Both are caught from the call
/// on: process 1 of a container has no handlers of its own.
#[cfg(unix)]
fn stop_signal() -> io::Result<impl Future<Output = io::Result<()>>> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        Ok(())
    })
}

/// Completes once Ctrl-C is pressed.
#[cfg(not(unix))]
fn stop_signal() -> io::Result<impl Future<Output = io::Result<()>>> {
    Ok(tokio::signal::ctrl_c())
}
