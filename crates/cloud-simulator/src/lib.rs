//! A stateful fake of `DigitalOcean`'s and Hetzner Cloud's HTTP APIs, for tests, demo and
//! benchmarks.
//!
//! One listener serves both: `DigitalOcean` under `/v2`, Hetzner under `/v1`. The simulator knows
//! nothing about the programs that call it. It answers as the clouds do, as far as their behavior
//! is known; a comment marks what is an assumption.
//!
//! Time is a parameter ([`Now`]). Whatever takes time (a power action, a resize, a booting node)
//! is computed when something is read or changed, in the order in which it happens; nothing in
//! here waits. A delayed answer ([`Misbehavior::Delay`]) moves the clock, if it can be moved.
//!
//! # Fleet
//!
//! What the clouds hold to begin with is read from TOML, with tables `accounts`, `droplets`,
//! `databases`, `clusters` (with `pools`) and `servers`. What belongs to machines is in tables of
//! each cloud: `digitalocean.reserved_ips`, `hetzner.networks`.
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
//! | request | effect |
//! |---|---|
//! | `GET /_simulator/log?after=N` | `{"entries": […]}`: the requests after number N, as [`Entry`] |
//! | `GET /_simulator/exchanges?after=N` | the same as JSON lines, those with an answer only |
//! | `GET /_simulator/resources` | `{"now": …, "resources": {REFERENCE: state}, "images": [state]}`; `contents` says what a disk or an image holds |
//! | `GET /_simulator/clock` | `{"now": …, "held": true}` |
//! | `POST /_simulator/clock` | `{"now": INSTANT}` moves a held clock, never backwards (409) |
//! | `GET /_simulator/bill?since=INSTANT&until=INSTANT&left_running=true` | a [`Bill`]: JSON lines, each a [`BillLine`], then `{"total": …, "currency": …}` for each currency; all three parameters are optional, as in [`BillQuery`] |
//! | `POST /_simulator/faults` | sets a [`Fault`]: `{"match": {"path_suffix": "/actions"}, "times": 2, "does": {"answer": {"status": 503}}}` |
//! | `GET`, `DELETE /_simulator/faults` | lists, removes all faults |
//! | `POST /_simulator/holds` | sets a [`Hold`]: `{"match": {"method": "PUT"}, "at": "arrival"}`; answers `{"id": 1}` |
//! | `GET /_simulator/holds` | lists the holds |
//! | `GET /_simulator/holds/ID?wait=true` | answers once a request waits in the hold |
//! | `DELETE /_simulator/holds/ID` | releases the requests in the hold; with `?discard=true` closes their connections instead |
//! | `POST /_simulator/plans` | an [`Offer`]: `{"plan": "cpx22", "place": "fsn1", "offer": "unavailable"}`, `"available"` or `{"deprecated": {"announced": INSTANT, "unavailable_after": INSTANT}}`; without `place` everywhere |
//! | `POST /_simulator/people` | an [`Act`]: `{"resource": "do-main/droplet/1", "act": "power_off"}`, `"act": {"scale": {"count": 3}}`, `"act": {"take_room": {"refusals": 2}}`; or `{"create": TOML}`; or `{"delete_image": {"account": NAME, "id": 1}}` |
//!
//! An invalid request is answered with 4xx and `{"error": …}`.

mod amount;
mod answer;
mod bill;
mod catalog;
mod clock;
mod clouds;
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
mod ledger;
mod log;
mod market;
mod page;
mod people;
mod prices;
mod project;
mod rate;
mod request;
mod routes;
mod servers;
mod simulator;
mod team;
mod world;

pub use amount::{Amount, InvalidAmountError};
pub use answer::Answer;
pub use bill::{Bill, BillLine, BillQuery, Unit};
pub use clock::{BackwardsError, HeldClock, Now, Pass};
pub use faults::{Fault, Hold, HoldId, HoldView, Matching, Misbehavior, Stage, UnknownHoldError};
pub use fleet::{Fleet, FleetError};
pub use log::Entry;
pub use market::{Offer, OfferError};
pub use people::{Act, PersonError};
pub use prices::{DigitalOceanPrices, HetznerPrices, LocatedPrice, Price, Prices, PricesError};
pub use request::Request;
pub use simulator::Simulator;
