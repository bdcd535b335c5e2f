//! The SSH client against a real server, and against one that breaks the protocol's rules.

#![expect(
    clippy::unwrap_used,
    reason = "the exception for tests does not reach an integration test's helpers"
)]
#![expect(
    clippy::needless_pass_by_value,
    reason = "builders of JSON take what they put in, so that tables read without `&`"
)]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a server does what is usual where its behavior says nothing else"
)]

mod hostile;
mod misbehaving;
mod real;
mod safety;
mod silent;

use std::{error::Error, sync::Arc, time::Duration};

use domain::{MachineName, ssh::SshLogin};
use provider::{
    ChangeError, ProviderError, TransportError,
    ssh::{Api, Failure, MachineCommand, State},
};
use serde_json::{Value, json};
use testing::everything;
use tokio::time::timeout;

/// The text that the commands print, which must not appear in an error.
const PRINTED: &str = "hunter2";

/// A user name that is uncommon enough to be found in an error if it is there.
const USER: &str = "uncommon-user";

/// An address of this machine on which no test and no server listens.
const CLOSED: &str = "127.77.0.1:9";

/// A login at 127.0.0.1, with the test's changes. Its timeouts are longer than a busy machine
/// takes; a test that waits for one gives it another value.
fn login(port: u16, user: &str, host_keys: &[String], changes: Value) -> SshLogin {
    let mut login = json!({
        "host": "127.0.0.1",
        "port": port,
        "user": user,
        "key": "env:KEY",
        "host_keys": host_keys,
        "connect_timeout": "10s",
        "command_timeout": "10s",
        "allow_private_hosts": true,
    });
    let Value::Object(changes) = changes else {
        panic!("changes are an object");
    };
    login.as_object_mut().unwrap().extend(changes);
    serde_json::from_value(login).unwrap()
}

fn api(login: SshLogin, key: &str) -> Api {
    Api::new(Arc::new(login), key.into()).unwrap()
}

/// A machine with these commands.
fn machine(start: &str, status: &str) -> Value {
    json!({ "start": start, "stop": "stop", "status": status })
}

fn name(text: &str) -> MachineName {
    text.parse().unwrap()
}

/// Maximum time for a request. Nothing waits this long unless a timeout is missing.
const LONGEST: Duration = Duration::from_secs(25);

/// Observes the state of the machine `m`.
async fn state(api: &Api) -> Result<State, ProviderError> {
    let machine = name("m");
    let observed = timeout(LONGEST, api.observe_one(&machine)).await;
    Ok(observed.expect("every step has its time-out")?.unwrap().state)
}

/// Starts the machine `m`.
async fn start(api: &Api) -> Result<String, ChangeError> {
    let machine = name("m");
    let accepted = timeout(LONGEST, api.run_command(&machine, MachineCommand::Start)).await;
    Ok(accepted.expect("every step has its time-out")?.output.shown())
}

/// An error's variant and failure, for tables.
fn kind(error: &ChangeError) -> String {
    let (outer, inner) = match error {
        ChangeError::Refused(refusal) => return format!("refused: {refusal}"),
        ChangeError::Busy(refusal) => return format!("busy: {refusal}"),
        ChangeError::NotAccepted(error) => ("not accepted", error),
        ChangeError::Unknown(error) => ("unknown", error),
    };
    match failure(inner) {
        Some(failure) => format!("{outer}: {failure:?}"),
        None => format!("{outer}: {inner}"),
    }
}

fn failure(error: &ProviderError) -> Option<Failure> {
    if let ProviderError::Transport { source: TransportError::Ssh(failure), .. } = error {
        return Some(*failure);
    }
    None
}

/// Asserts that an error names neither the host nor the user, and repeats nothing that was printed.
#[track_caller]
fn assert_discreet(error: &dyn Error) {
    let text = everything(error);
    for secret in ["127.", "localhost", USER, PRINTED, "PRIVATE", "AAAA"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}
