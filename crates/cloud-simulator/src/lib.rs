//! A stateful fake of `DigitalOcean`'s and Hetzner Cloud's HTTP APIs, for tests, demo and
//! benchmarks.
//!
//! One listener serves both: `DigitalOcean` under `/v2`, Hetzner under `/v1`. The simulator knows
//! nothing of the programs that call it; it answers as the clouds do, as far as their behavior is
//! known. Where it is not, a comment says that something is an assumption.
//!
//! Time is a parameter ([`Now`]). Whatever takes time (a power action, a resize, a node that
//! boots) is computed when something is read or changed, in the order of the instants at which it
//! happens; nothing in here waits. An answer that takes its time ([`Misbehavior::Delay`]) moves the
//! clock, where that can be moved.
//!
//! # Fleet
//!
//! What the clouds hold is read from TOML, with tables `accounts`, `droplets`, `databases`,
//! `clusters` (with `pools`) and `servers`:
//!
//! ```toml
//! [[accounts]]
//! name = "hz-eu"
//! provider = "hetzner"
//! token = "simulated"
//!
//! [[servers]]
//! id = 42
//! name = "builder"
//! ignores_shutdown = true
//! poweroff = "4s"
//! ```
//!
//! # Control API
//!
//! | request | what it does |
//! |---|---|
//! | `GET /_simulator/log?after=N` | `{"entries": […]}`: the requests after number N, as [`Entry`] |
//! | `GET /_simulator/exchanges?after=N` | the same as JSON lines, those with an answer only |
//! | `GET /_simulator/resources` | `{"now": …, "resources": {REFERENCE: state}}` |
//! | `GET /_simulator/clock` | `{"now": …, "held": true}` |
//! | `POST /_simulator/clock` | `{"now": INSTANT}` moves a held clock, never backwards (409) |
//! | `POST /_simulator/faults` | sets a [`Fault`]: `{"match": {"path_suffix": "/actions"}, "times": 2, "does": {"answer": {"status": 503}}}` |
//! | `GET`, `DELETE /_simulator/faults` | lists, removes all faults |
//! | `POST /_simulator/holds` | sets a [`Hold`]: `{"match": {"method": "PUT"}, "at": "arrival"}`; answers `{"id": 1}` |
//! | `GET /_simulator/holds` | lists the holds |
//! | `GET /_simulator/holds/ID?wait=true` | answers when a request waits in the hold |
//! | `DELETE /_simulator/holds/ID` | lets go on what it has caught; with `?discard=true` closes the connections instead |
//! | `POST /_simulator/people` | an [`Act`]: `{"resource": "do-main/droplet/1", "act": "power_off"}`, `"act": {"scale": {"count": 3}}`; or `{"create": TOML}` |
//!
//! What cannot be done is answered with 4xx and `{"error": …}`.

mod answer;
mod catalog;
mod clock;
mod control;
mod databases;
mod defaults;
mod digitalocean;
mod droplets;
mod faults;
mod fleet;
mod hetzner;
mod kubernetes;
mod labels;
mod log;
mod page;
mod people;
mod rate;
mod request;
mod servers;
mod simulator;
mod world;

pub use clock::{BackwardsError, HeldClock, Now, Pass};
pub use faults::{Fault, Hold, HoldId, HoldView, Matching, Misbehavior, Stage, UnknownHoldError};
pub use fleet::{Fleet, FleetError};
pub use log::{Entry, LoggedAnswer, LoggedRequest};
pub use people::{Act, PersonError};
pub use simulator::Simulator;
