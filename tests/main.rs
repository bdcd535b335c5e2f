//! The whole service as a black box: real handlers and clients, over HTTP to simulated clouds and
//! over DynamoDB's protocol to an embedded engine.
#![expect(
    clippy::unwrap_used,
    reason = "`allow-unwrap-in-tests` misses the helpers of a test crate"
)]

mod activity;
mod announcing;
mod applying;
mod backup;
mod bad_days;
mod bad_input;
mod bill;
mod budget;
mod calendars;
mod cargo_lambda;
mod clients;
mod cold_start;
mod commands;
mod day;
mod destinations;
mod digests;
mod evening;
mod extending;
mod floor;
mod guard_rails;
mod help_page;
mod hibernated;
mod hibernating;
mod hostile_provider;
mod inventory;
mod joining;
mod kill;
mod lab;
mod large;
mod leaving;
mod many_hibernated;
mod mending;
mod moving;
mod newer_format;
mod notifying;
mod order;
mod overdue;
mod overrides;
mod pacing;
mod pacing_edges;
mod pausing;
mod private_store;
mod process;
mod programs;
mod publishing;
mod read_token;
mod rebuild;
mod recovery;
mod rehearse;
mod runtime;
mod savings;
mod serving;
mod set_back;
mod shape;
mod shapes;
mod ssh;
mod ssh_commands;
mod standalone;
mod support;
mod telling;
mod traffic;
mod twice;
mod ui;
mod writes;
