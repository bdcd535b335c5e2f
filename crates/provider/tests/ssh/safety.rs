//! Properties of the SSH library, regardless of what the server does.

/// The workspace's locked dependencies.
const LOCK: &str = include_str!("../../../../Cargo.lock");

/// Reports whether a crate is among them.
fn is_locked(name: &str) -> bool {
    LOCK.lines().any(|line| line == format!("name = \"{name}\""))
}

#[test]
fn what_the_ssh_library_logs_goes_nowhere() {
    assert!(is_locked("russh"), "the library is locked");
    // russh logs through `log`: a server's words at `info` and `warn`, its keys at `debug`. These
    // crates would forward that to our own logs.
    for bridge in ["tracing-log", "env_logger", "simple_logger", "fern", "log4rs"] {
        assert!(!is_locked(bridge), "{bridge} prints what russh logs");
    }
}

#[test]
fn the_ssh_library_brings_no_second_cryptography_and_no_rsa() {
    for unwanted in ["aws-lc-rs", "aws-lc-sys", "rsa", "openssl-sys", "libssh2-sys"] {
        assert!(!is_locked(unwanted), "{unwanted} is locked");
    }
}
