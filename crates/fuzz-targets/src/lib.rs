//! Fuzz targets: every parser of outside input, with a property that holds for any bytes.
//!
//! A target reads its input as the product does and panics if the property does not hold.
//! `tests/corpus.rs` runs each target over its corpus and over mutations of it; `fuzz/` runs the
//! same functions under libFuzzer (`make fuzz`). The corpus of a target is the folder
//! `corpus/NAME`. Every input that once made it fail stays there, under a name that describes it.

mod check;
mod configuration;
mod event;
mod import;
mod machine;
mod names;
mod provider;
mod schedule;
mod stored;
mod time;

/// A parser with a property.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The name of the target, of its corpus, and of its program in `fuzz/`.
    pub name: &'static str,
    /// Panics if the property does not hold for these bytes.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: [Target; 11] = [
    target("configuration", configuration::run),
    target("digitalocean", provider::digitalocean),
    target("event", event::run),
    target("hetzner", provider::hetzner),
    target("import", import::run),
    target("machine", machine::run),
    target("pattern", names::patterns),
    target("reference", names::references),
    target("schedule", schedule::run),
    target("stored", stored::run),
    target("time", time::run),
];

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run }
}

/// Runs the target with this name.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.into_iter().find(|target| target.name == name);
    (target.expect("a target of this name").run)(data);
}
