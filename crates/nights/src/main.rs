//! Plays nights and prints the results.

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use nights::{Night, Trace, run};

/// A night allocates constantly and keeps little.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Play simulated weeks of the whole service under faults, each from one seed, and check at every
/// step what Offhours promises.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Play many nights, several at a time, and keep each one that fails as a file, the first ones
    /// shortened.
    Run {
        /// Number of nights to play.
        #[arg(short = 'n', long, default_value_t = 500)]
        count: u64,
        /// First seed; the others follow it.
        #[arg(long, default_value_t = 1)]
        from: u64,
        /// Number of nights to play at a time [default: the number of processors].
        #[arg(long)]
        jobs: Option<usize>,
        /// Number of failed nights to shorten.
        #[arg(long, default_value_t = 3)]
        shorten: usize,
        /// Folder in which failed nights are kept.
        #[arg(long, default_value = "target/failed-nights")]
        keep: PathBuf,
    },
    /// Play one night and print what happens, one line each, with one column for each actor.
    Replay {
        /// The night's seed, or the file of a kept night.
        night: String,
        /// Also print what is read from the clouds.
        #[arg(long)]
        reads: bool,
    },
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().command {
        Command::Run { count, from, jobs, shorten, keep } => {
            run::many(from, count, jobs, shorten, &keep)
        }
        Command::Replay { night, reads } => replay(&night, reads),
    }
}

fn replay(night: &str, reads: bool) -> anyhow::Result<ExitCode> {
    let night: Night = if let Ok(seed) = night.parse::<u64>() {
        nights::of_seed(seed)
    } else {
        let text = fs::read_to_string(night)
            .with_context(|| format!("`{night}` is neither a seed nor a night's file"))?;
        serde_json::from_str(&text).with_context(|| format!("{night} is not a night"))?
    };
    let trace = if reads { Trace::with_reads() } else { Trace::recording() };
    let played = nights::play(&night, &trace)?;
    run::print(&format!("{}\n{trace}", night.in_words()));
    Ok(match played.violation {
        None => {
            run::print("Nothing that is promised was broken.");
            ExitCode::SUCCESS
        }
        Some(violation) => {
            run::print(&format!("Broken: {violation}"));
            ExitCode::FAILURE
        }
    })
}
