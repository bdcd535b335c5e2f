//! Runs every target over its corpus, and over a fixed number of mutations of it that are the same
//! in every run.
//!
//! `OFFHOURS_MUTATIONS` sets their number for each target and `OFFHOURS_SEED` the seed, for a
//! longer search without libFuzzer.

#![expect(
    clippy::unwrap_used,
    reason = "`allow-unwrap-in-tests` misses the helpers of a test crate"
)]

mod mutation;

use std::{
    collections::BTreeSet,
    env, fs, panic,
    path::{Path, PathBuf},
};

use fuzz_targets::{TARGETS, run};
use mutation::Corpus;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

/// The default number of mutations.
const MUTATIONS: u32 = 250;

/// Defines one test per target, so that they run in parallel.
macro_rules! targets {
    ($($name:ident: $share:literal),+ $(,)?) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name), $share);
            }
        )+

        const TESTED: &[&str] = &[$(stringify!($name)),+];
    };
}

// The percentage of the mutations that is tried: less where a single input takes long.
targets! {
    configuration: 50,
    digitalocean: 100,
    event: 100,
    hetzner: 100,
    import: 100,
    machine: 100,
    pattern: 100,
    reference: 100,
    schedule: 75,
    stored: 100,
    time: 50,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn check(name: &str, share: u32) {
    let corpus = Corpus::read(&folder().join("corpus").join(name));
    for entry in &corpus.entries {
        let outcome = panic::catch_unwind(|| run(name, &entry.data));
        assert!(outcome.is_ok(), "corpus/{name}/{}", entry.file);
    }
    let asked = env::var("OFFHOURS_MUTATIONS").ok();
    let asked = asked.map(|number| number.parse().unwrap());
    let config = Config {
        cases: asked.unwrap_or(MUTATIONS) * share / 100,
        failure_persistence: None,
        ..Config::default()
    };
    let seed = env::var("OFFHOURS_SEED").unwrap_or_default();
    let mut bytes = [0; 32];
    for (byte, of) in bytes.iter_mut().zip(seed.bytes()) {
        *byte = of;
    }
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let outcome = runner.run(&mutation::any(), |mutation| {
        let input = corpus.mutated(&mutation);
        run(name, &input);
        Ok(())
    });
    if let Err(TestError::Fail(_, mutation)) = outcome {
        let input = corpus.mutated(&mutation);
        let shown = input.escape_ascii();
        panic!("{name} fails; once it is mended, keep this in corpus/{name}:\n{shown}");
    }
    outcome.unwrap();
}

#[test]
fn every_target_is_tested_has_a_corpus_and_a_program() {
    let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(names, TESTED);
    let names: BTreeSet<_> = names.into_iter().map(str::to_owned).collect();
    let files = |folder: &str, suffix: &str| -> BTreeSet<String> {
        let files = fs::read_dir(self::folder().join(folder)).unwrap();
        let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        files.map(|file| file.trim_end_matches(suffix).to_owned()).collect()
    };
    assert_eq!(files("corpus", ""), names);
    assert_eq!(files("fuzz/fuzz_targets", ".rs"), names);
    let manifest = fs::read_to_string(folder().join("fuzz/Cargo.toml")).unwrap();
    for name in &names {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
    }
}
