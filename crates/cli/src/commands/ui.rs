//! `offhours ui`: the page of `offhours report`, live in a browser on this machine, with buttons.
//!
//! The server's tasks only check requests and pass them to one loop, which does what commands do,
//! one after the other.

use anyhow::Context as _;
use axum::{
    Router,
    extract::{Query, State},
    http::StatusCode,
    response::{Html, IntoResponse as _, Redirect, Response},
    routing::get,
};
use clap::Parser;
use environment::in_words;
use serde::Deserialize;
use tokio::sync::{mpsc, oneshot};

use super::{manual, overrides, report};
use crate::{
    Exit,
    context::Context,
    exit::UsageError,
    output::{self, Format},
};

/// Show the page of `report` live in a browser, with buttons.
///
/// It may do what you may do, until Ctrl-C ends it. A button shows the command that it stands for, and
/// runs it once you agree. The printed address opens once, and only on this machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours ui
  offhours ui --data offhours.db

What the buttons run is printed here, too.")]
pub struct Args {}

pub async fn run(Args {}: &Args, context: &Context) -> anyhow::Result<Exit> {
    // A store that cannot be opened is an error now, and not in the browser.
    context.connection.open().await?;
    let (jobs, waiting) = mpsc::channel(8);
    let address = local::door::listen(|path| router(path, jobs)).await?;
    output::print(&format!("{address}\n"))?;
    output::remark("Open it in a browser on this machine; it opens once. Ctrl-C ends it.\n");
    // The page has asked for confirmation.
    let context = Context { yes: true, format: Format::Table, ..context.clone() };
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        () = work(waiting, &context) => {}
    }
    Ok(Exit::Done)
}

/// What a request needs from the store, and where the result goes.
enum Job {
    Show(oneshot::Sender<anyhow::Result<String>>),
    Run(Vec<String>, oneshot::Sender<anyhow::Result<()>>),
}

async fn work(mut waiting: mpsc::Receiver<Job>, context: &Context) {
    while let Some(job) = waiting.recv().await {
        // A browser that has gone away misses the result.
        match job {
            Job::Show(result) => _ = result.send(report::live(context).await),
            Job::Run(words, result) => _ = result.send(run_command(&words, context).await),
        }
    }
}

/// The commands that buttons stand for.
#[derive(Parser)]
#[command(name = "offhours")]
enum Command {
    Override(overrides::Args),
    Start(manual::StartArgs),
}

fn parsed(words: &[String]) -> Result<Command, UsageError> {
    Command::try_parse_from(words).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        UsageError(first.trim_start_matches("error: ").to_owned())
    })
}

/// Runs a command as if it had been typed.
async fn run_command(words: &[String], context: &Context) -> anyhow::Result<()> {
    output::print(&format!("$ {}\n", typed(words)))?;
    let exit = match parsed(words)? {
        Command::Override(args) => overrides::run(&args, context).await?,
        Command::Start(args) => manual::start(&args, context).await?,
    };
    let is_done = matches!(exit, Exit::Done | Exit::NeedsPerson);
    anyhow::ensure!(is_done, "not everything was done: the terminal of `offhours ui` shows why");
    Ok(())
}

/// A pressed button.
#[derive(Deserialize)]
struct Pressed {
    /// The command that it stands for, without `offhours`.
    command: String,
    /// The end of a stop, as it is typed after `--until`.
    until: Option<String>,
}

impl Pressed {
    fn words(self) -> Vec<String> {
        let words = ["offhours"].into_iter().chain(self.command.split(' ')).map(str::to_owned);
        words.chain(self.until.map(|until| format!("--until={until}"))).collect()
    }
}

/// The words as they are typed in a shell.
fn typed(words: &[String]) -> String {
    let typed = |word: &String| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=/:.,+".contains(c);
        let is_plain = word.chars().all(is_plain);
        if is_plain { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) }
    };
    words.iter().map(typed).collect::<Vec<_>>().join(" ")
}

type Jobs = mpsc::Sender<Job>;

fn router(path: &str, jobs: Jobs) -> Router {
    let router = Router::new().route(path, get(show));
    router.route(&format!("{path}act"), get(ask).post(act)).with_state(jobs)
}

async fn show(State(jobs): State<Jobs>) -> Response {
    match done(&jobs, Job::Show).await {
        Ok(page) => Html(page).into_response(),
        Err(error) => failed(&error),
    }
}

/// Shows the command of a button, and changes nothing.
async fn ask(Query(pressed): Query<Pressed>) -> Response {
    let words = pressed.words();
    match parsed(&words) {
        Ok(_) => Html(page::question(&typed(&words))).into_response(),
        Err(error) => failed(&error.into()),
    }
}

async fn act(State(jobs): State<Jobs>, Query(pressed): Query<Pressed>) -> Response {
    match done(&jobs, |result| Job::Run(pressed.words(), result)).await {
        Ok(()) => Redirect::to("./").into_response(),
        Err(error) => failed(&error),
    }
}

/// Passes a job to the loop, and waits for the result.
async fn done<T>(
    jobs: &Jobs,
    job: impl FnOnce(oneshot::Sender<anyhow::Result<T>>) -> Job,
) -> anyhow::Result<T> {
    let (result, done) = oneshot::channel();
    let ended = "`offhours ui` is ending";
    jobs.send(job(result)).await.ok().context(ended)?;
    done.await.context(ended)?
}

fn failed(error: &anyhow::Error) -> Response {
    let page = page::failure(&in_words(error.as_ref()));
    (StatusCode::UNPROCESSABLE_ENTITY, Html(page)).into_response()
}
