//! What comes from outside: the clock, settings, tokens, logging and other functions.

#[cfg(feature = "aws")]
pub mod aws;
pub mod clock;
pub mod functions;
pub mod logging;
pub mod settings;
pub mod tokens;

pub use clock::{Clock, SteppedClock};
pub use functions::{Function, Invoke, InvokeError};
#[cfg(feature = "aws")]
pub use functions::{InvokeTrouble, LambdaFunctions};
pub use logging::in_words;
pub use tokens::{TokenError, Tokens};
