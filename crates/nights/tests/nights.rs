//! Nights that are always played: a fixed set, fresh ones, and those that once broke a promise.

use std::{
    fs,
    hash::{BuildHasher as _, RandomState},
    num::NonZero,
    path::Path,
    sync::Mutex,
    thread,
};

use nights::{Night, Trace, night::EventKind, of_seed, play};

/// How many seeds are the same each time, and how many are fresh.
const FIXED: u64 = 6;
const FRESH: u64 = 2;

/// Nights in which the timers do not fire when they must, and what the observer says of it.
const NEGLECTED: [(&str, &str); 6] = [
    ("a-database-that-a-person-gave-storage-in-the-night", "should be Running"),
    ("a-database-that-was-stopped-as-soon-as-it-was-seen", "should be Running"),
    ("a-droplet-that-loses-its-tag-while-it-is-stopped", "nothing reports it"),
    ("a-server-that-a-person-copies-before-its-start", "should be Running"),
    ("a-server-whose-oldest-snapshot-is-deleted-while-it-sleeps", "should be Running"),
    ("an-override-that-is-not-carried-out", "should be Stopped"),
];

/// Plays a night and returns the promise that it broke, if any, with the command to replay it.
fn broken(night: &Night, replay: &str) -> Option<String> {
    let played = play(night, &Trace::default()).expect("a night can be played");
    assert!(played.ticks > 0, "nothing was played");
    let violation = played.violation?;
    Some(format!("{violation}\nSee it with: make night SEED={replay}"))
}

#[test]
fn no_night_breaks_a_promise() {
    // Far from the fixed ones, short enough to type, and none of the hundredth ones, which take long.
    let fresh = 1_000_000 + RandomState::new().hash_one(0) % 10_000_000 * 100;
    let seeds = (1..=FIXED).chain(fresh..fresh + FRESH);
    none_breaks_a_promise(seeds.map(|seed| (of_seed(seed), seed.to_string())).collect());
}

/// Plays nights, each with how to name it for a replay, on all processors.
fn none_breaks_a_promise(nights: Vec<(Night, String)>) {
    let left = Mutex::new(nights);
    let next = || left.lock().expect("nothing panics while it takes a night").pop();
    let play_all = || {
        while let Some((night, replay)) = next() {
            let broken = broken(&night, &replay);
            assert!(broken.is_none(), "{}", broken.unwrap_or_default());
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(play_all);
        }
    });
}

#[test]
fn no_night_that_once_broke_a_promise_breaks_it_again() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let read = |file: &Path| serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let nights: Vec<_> = files.map(|file| (read(&file), file.display().to_string())).collect();
    assert!(!nights.is_empty(), "no night in {}", folder.display());
    none_breaks_a_promise(nights);
}

#[test]
fn a_service_that_misses_what_it_has_to_do_breaks_a_promise() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/neglected");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), NEGLECTED.len());
    for (name, expected) in NEGLECTED {
        let file = folder.join(name).with_extension("json");
        let mut night: Night = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let violation = broken(&night, &file.display().to_string()).unwrap_or_default();
        assert!(violation.contains(expected), "{name}: {violation}");
        night.happenings.retain(|event| !matches!(event.what, EventKind::TicksLost { .. }));
        let broken = broken(&night, name);
        assert!(broken.is_none(), "{name} with a service: {}", broken.unwrap_or_default());
    }
}

#[test]
fn a_night_is_the_same_each_time() {
    let mut night = of_seed(1);
    night.ends = night.begins + jiff::SignedDuration::from_hours(72);
    let traces = [Trace::recording(), Trace::recording()];
    for trace in &traces {
        play(&night, trace).unwrap();
    }
    let [first, second] = traces.map(|trace| trace.to_string());
    assert!(first.lines().count() > 20, "{first}");
    assert_eq!(first, second);
}
