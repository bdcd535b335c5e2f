//! Plays many nights in parallel and keeps those that fail.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use indicatif::{ProgressBar, ProgressStyle};

use crate::{Night, Played, Trace, generate, play, shrink};

/// The results of many nights.
#[derive(Debug, Default)]
struct Sum {
    played: u64,
    faults: BTreeMap<&'static str, u64>,
    ticks: u64,
    days: i64,
    store_requests: u64,
    cloud_requests: u64,
    failed: Vec<u64>,
}

impl Sum {
    fn add(&mut self, night: &Night, played: Played) {
        self.played += 1;
        self.days += night.ends.duration_since(night.begins).as_hours() / 24;
        self.ticks += played.ticks;
        self.store_requests += played.store_requests;
        self.cloud_requests += played.cloud_requests;
        for (fault, times) in played.faults {
            *self.faults.entry(fault).or_default() += times;
        }
        if played.violation.is_some() {
            self.failed.push(night.seed);
        }
    }
}

/// Plays `count` nights, with seeds from `from` on.
pub fn many(
    from: u64,
    count: u64,
    jobs: Option<usize>,
    shortened: usize,
    keep: &Path,
) -> anyhow::Result<ExitCode> {
    let jobs = jobs.or_else(|| thread::available_parallelism().ok().map(Into::into));
    let progress = ProgressBar::new(count).with_style(ProgressStyle::with_template(
        "{wide_bar} {pos}/{len} nights, {per_sec}, {eta} left {msg}",
    )?);
    let next = AtomicU64::new(from);
    let sum = Mutex::new(Sum::default());
    let lock = || sum.lock().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        for _ in 0..jobs.unwrap_or(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + count {
                        return;
                    }
                    let night = generate::night(seed);
                    let played = play(&night, &Trace::default()).unwrap_or_else(|error| Played {
                        violation: Some(format!("it cannot be played: {error:#}")),
                        ..Played::default()
                    });
                    if let Some(violation) = &played.violation {
                        // Reported at once, so that the night is not lost if the run is ended
                        // early.
                        let kept = match keep_night(&night, keep) {
                            Ok(file) => format!("All of it: make night SEED={}", file.display()),
                            Err(error) => format!("It could not be kept: {error:#}"),
                        };
                        let failed = format!("Seed {seed} fails: {violation}\n{kept}");
                        progress.suspend(|| print(&failed));
                    }
                    let mut sum = lock();
                    sum.add(&night, played);
                    progress.inc(1);
                    progress.set_message(format!("({} failed)", sum.failed.len()));
                }
            });
        }
    });
    let elapsed = progress.elapsed();
    progress.finish_and_clear();
    let mut sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    sum.failed.sort_unstable();
    report(&sum, elapsed.as_secs_f64());
    for seed in sum.failed.iter().take(shortened) {
        shorten(*seed, keep)?;
    }
    Ok(if sum.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn report(sum: &Sum, seconds: f64) {
    let rate = sum.played as f64 / seconds;
    print(&format!(
        "{} nights of {} days in {seconds:.0} s: {rate:.2} nights a second. {} ticks were played, \
         {} requests went to the store and {} to the clouds.",
        sum.played, sum.days, sum.ticks, sum.store_requests, sum.cloud_requests
    ));
    print("What happened besides, and how often:");
    for (fault, times) in &sum.faults {
        print(&format!("  {times:>8}  {fault}"));
    }
    print(&match sum.failed.len() {
        0 => "Nothing that is promised was broken.".to_owned(),
        failed => format!("{failed} nights broke a promise."),
    });
}

/// Saves a night to a file and returns its path.
fn keep_night(night: &Night, keep: &Path) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(keep)?;
    let file = keep.join(format!("{}.json", night.seed));
    fs::write(&file, serde_json::to_string_pretty(night)? + "\n")?;
    Ok(file)
}

/// Shortens a failing night, saves the result, and prints the end of its trace.
fn shorten(seed: u64, keep: &Path) -> anyhow::Result<()> {
    print(&format!("\nShortening the night of seed {seed} (a few minutes) ..."));
    let night = shrink::shortest(generate::night(seed))?;
    let file = keep_night(&night, keep)?;
    let trace = Trace::recording();
    play(&night, &trace)?;
    print(&format!("{}\n{}", night.in_words(), trace.tail(60)));
    print(&format!("All of it: make night SEED={}", file.display()));
    Ok(())
}

/// Prints a line to standard output.
pub fn print(text: &str) {
    // A closed pipe is the reader's decision.
    writeln!(std::io::stdout(), "{text}").ok();
}
