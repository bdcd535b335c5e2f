//! A stateful fake of the `DigitalOcean` and Hetzner Cloud HTTP APIs, for tests, demos and
//! benchmarks.
//!
//! One listener serves both: `DigitalOcean` under `/v2`, Hetzner under `/v1`. The simulator knows
//! nothing about the programs that call it. It answers as the clouds do, as far as their behavior
//! is known; comments mark assumptions.
//!
//! Time is a parameter ([`Now`]). The effects of operations that take time (a power action, a
//! resize, a booting node) are computed in chronological order whenever something is read or
//! changed, without waiting. A delayed response ([`Misbehavior::Delay`]) advances the clock if it
//! can be moved, and sleeps otherwise.
//!
//! # Fleet
//!
//! The initial contents of the clouds are read from TOML, with the tables `accounts`, `droplets`,
//! `databases`, `clusters` (with `pools`) and `servers`. What can be attached to machines is in
//! tables of each cloud, such as `digitalocean.reserved_ips` and `hetzner.networks`.
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
//! | `GET /_simulator/log?after=N` | `{"entries": […]}`: the requests after number N, as [`Entry`]; with `&most=M` the oldest M of them. The latest 64 MiB are kept |
//! | `GET /_simulator/exchanges?after=N` | the same as JSON lines, only those with a response |
//! | `GET /_simulator/resources` | `{"now": …, "resources": {REFERENCE: state}, "images": [state]}`; `contents` says what a disk or an image holds |
//! | `GET /_simulator/clock` | `{"now": …, "held": true}` |
//! | `POST /_simulator/clock` | `{"now": INSTANT}` moves a held clock, never backwards (409) |
//! | `GET /_simulator/bill?since=INSTANT&until=INSTANT&left_running=true` | a [`Bill`]: JSON lines, each a [`BillLine`], then `{"total": …, "currency": …}` for each currency; all three parameters are optional, as in [`BillQuery`] |
//! | `POST /_simulator/faults` | sets a [`Fault`]: `{"match": {"path_suffix": "/actions"}, "times": 2, "does": {"answer": {"status": 503}}}` |
//! | `GET`, `DELETE /_simulator/faults` | lists or removes all faults |
//! | `POST /_simulator/holds` | sets a [`Hold`]: `{"match": {"method": "PUT"}, "at": "arrival"}`; answers `{"id": 1}` |
//! | `GET /_simulator/holds` | lists the holds |
//! | `GET /_simulator/holds/ID?wait=true` | responds once a request is waiting in the hold |
//! | `DELETE /_simulator/holds/ID` | releases the requests in the hold; with `?discard=true` closes their connections instead |
//! | `POST /_simulator/plans` | an [`Offer`]: `{"plan": "cpx22", "place": "fsn1", "offer": "unavailable"}`, `"available"` or `{"deprecated": {"announced": INSTANT, "unavailable_after": INSTANT}}`; without `place` everywhere |
//! | `POST /_simulator/people` | an [`Act`]: `{"resource": "do-main/droplet/1", "act": "power_off"}`, `"act": {"scale": {"count": 3}}`, `"act": {"take_room": {"refusals": 2}}`; or `{"create": TOML}`; or `{"delete_image": {"account": NAME, "id": 1}}` |
//!
//! An invalid request is answered with 4xx and `{"error": …}`.

mod account;
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
mod guest;
mod hetzner;
mod images;
mod kubernetes;
mod labels;
mod ledger;
mod log;
mod market;
mod page;
mod people;
mod prices;
mod rate;
mod request;
mod routes;
mod serve;
mod servers;
mod simulator;
mod things;
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
