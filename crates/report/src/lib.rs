//! The computations behind the command's output: what a configuration leads to, whether rate limits
//! carry that, how long resources were stopped, and what stopping saves. Pure, with no I/O and no
//! async, so that its tests take seconds.

pub mod consequences;
pub mod history;
pub mod load;
pub mod money;
