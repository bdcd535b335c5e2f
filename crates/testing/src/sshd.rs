//! A real SSH server for tests. Where none is installed, they are skipped and say so.

use std::env;

use ssh_host::StartError;
pub use ssh_host::{Setup, Sshd};

/// Set to 1 to make a missing SSH server an error, as in CI.
const NEEDED: &str = "OFFHOURS_NEEDS_SSHD";

/// Starts a server. Returns `None` if a program is missing, with the reason on standard error.
#[must_use]
pub fn start(setup: Setup) -> Option<Sshd> {
    match setup.start() {
        Ok(sshd) => Some(sshd),
        Err(StartError::Missing(program)) if env::var(NEEDED).as_deref() != Ok("1") => {
            #[expect(clippy::print_stderr, reason = "a test that was skipped says why")]
            {
                eprintln!("skipped: {program} (set {NEEDED}=1 to fail instead)");
            }
            None
        }
        Err(error) => panic!("{error}"),
    }
}
