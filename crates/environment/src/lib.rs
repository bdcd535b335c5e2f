//! The outside world: the clock, settings, tokens and other functions as inputs; log lines, metrics
//! and events as outputs.

#[cfg(feature = "aws")]
pub mod aws;
#[cfg(feature = "aws")]
pub mod bucket;
pub mod bus;
#[cfg(feature = "aws")]
pub mod check;
pub mod clock;
pub mod file;
pub mod functions;
#[cfg(feature = "identity")]
pub mod identity;
#[cfg(feature = "lambda")]
pub mod lambda;
pub mod logging;
pub mod metrics;
#[cfg(feature = "aws")]
pub mod service;
pub mod settings;
#[cfg(feature = "identity")]
pub mod subscriptions;
pub mod tokens;

#[cfg(feature = "aws")]
pub use bus::EventBus;
pub use bus::{BusEvent, Publish};
pub use clock::{Clock, SteppedClock};
pub use domain::metric::Metric;
pub use functions::{Invoke, InvokeError};
#[cfg(feature = "aws")]
pub use functions::{InvokeFailure, LambdaFunctions};
pub use logging::{causes_in_words, in_words, left_alone};
pub use metrics::Metrics;
pub use tokens::{TokenError, Tokens};
