//! What comes from outside: the clock, settings, tokens, logging and other functions.

#[cfg(feature = "aws")]
pub mod aws;
pub mod clock;
pub mod functions;
pub mod logging;
pub mod settings;
pub mod tokens;

pub use clock::{Clock, SteppedClock};
#[cfg(feature = "aws")]
pub use functions::LambdaFunctions;
pub use functions::{Function, Invoke, InvokeError};
pub use logging::in_words;
pub use tokens::{TokenError, Tokens};
