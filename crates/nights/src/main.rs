//! Plays nights, and shows what came of them.

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use nights::{Night, Trace, run};

/// A night allocates all the time and keeps little.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Plays simulated weeks of the whole service under faults, each from one seed, and checks what
/// Offhours promises at every step.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Play many nights, several at a time; each that fails is kept as a file, the first ones
    /// shortened.
    Run {
        /// How many.
        #[arg(short = 'n', long, default_value_t = 500)]
        count: u64,
        /// The first seed; the others follow it.
        #[arg(long, default_value_t = 1)]
        from: u64,
        /// How many at a time; as many as there are processors when left out.
        #[arg(long)]
        jobs: Option<usize>,
        /// How many of those that fail are shortened.
        #[arg(long, default_value_t = 3)]
        shorten: usize,
        /// Where failed nights are kept.
        #[arg(long, default_value = "target/failed-nights")]
        keep: PathBuf,
    },
    /// Play one night and print what happens: one line each, one column for each actor.
    Replay {
        /// Its seed, or the file of a night that was kept.
        night: String,
        /// Print what is read from the clouds, too.
        #[arg(long)]
        reads: bool,
    },
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().command {
        Command::Run {
            count,
            from,
            jobs,
            shorten,
            keep,
        } => run::many(from, count, jobs, (shorten, &keep)),
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
    let trace = if reads {
        Trace::with_reads()
    } else {
        Trace::kept()
    };
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
