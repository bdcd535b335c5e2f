//! The configuration of machines that are stopped and started by fixed commands on one host, over
//! SSH: the login, the host's keys, and each machine's commands.
//!
//! Every text is validated where it is read. A command is sent as it is written: there is nothing
//! to fill in, so nothing in a name, a tag or a response can become part of it.

mod address;
mod host_key;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use address::{Endpoint, EndpointError, Host, HostError, is_private};
pub use host_key::{HostKey, HostKeyAlgorithm, HostKeyError, HostKeys, HostKeysError};

pub use crate::measure::{CommandTimeout, ConnectTimeout, Deadline, MeasureError, OutputLimit};
#[cfg(feature = "schema")]
use crate::schema::Named;
use crate::{reference::MachineName, stored::is_default, text::as_text, token::TokenReference};

/// The maximum length of a command, in bytes.
pub const LONGEST_COMMAND: usize = 512;

/// The login at the host that runs the commands, and the machines that the commands are for.
///
/// The host must stay up when the machines stop: a machine cannot switch itself on again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SshLogin {
    /// The host that runs the commands: a name or an address, without a user or a port.
    #[cfg_attr(feature = "schema", schemars(extend("examples" = ["jump.example.net"])))]
    pub host: Host,
    /// The port of the host's SSH server. Default: 22.
    #[serde(default = "ssh_port", skip_serializing_if = "is_ssh_port")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1), extend("default" = SSH_PORT)))]
    pub port: u16,
    /// The user to log in as.
    #[cfg_attr(feature = "schema", schemars(extend("examples" = ["offhours"])))]
    pub user: User,
    /// Where the private key is stored: `ssm:/PATH/NAME` or, not on AWS, `env:VARIABLE`,
    /// `file:/PATH` or `credential:NAME`. An ed25519 key in OpenSSH's format, without a passphrase.
    #[cfg_attr(feature = "schema", schemars(extend("examples" = ["ssm:/offhours/lab-key"])))]
    pub key: TokenReference,
    /// Where a key is stored with which Offhours only runs `status`, in the same form as `key`. The
    /// host must allow it nothing else. Without it, `key` is used for everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "TokenReference", extend("examples" = ["ssm:/offhours/lab-read-key"])))]
    pub read_key: Option<TokenReference>,
    /// The host's public keys: one, or two while the host changes its key. A host that presents any
    /// other key is refused.
    #[cfg_attr(feature = "schema", schemars(extend("examples" = [["ssh-ed25519 AAAA…"]])))]
    pub host_keys: HostKeys,
    /// Maximum time for the connection. The login may take as long again, at most 10 s. Default:
    /// 10s.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "10s")))]
    pub connect_timeout: ConnectTimeout,
    /// Maximum time for a command; one that takes longer has an unknown outcome. Including
    /// connection and login, a start or a stop takes at most 60 s, and a status 20 s. Default: 60s.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "60s")))]
    pub command_timeout: CommandTimeout,
    /// Maximum amount of a command's output to keep; the rest is read and discarded. Default: 4KiB.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "4KiB")))]
    pub output_limit: OutputLimit,
    /// Whether the host and the probes may have loopback, link-local or metadata addresses.
    /// Default: false.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub allow_private_hosts: bool,
    /// The machines, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Named<SshMachine>"))]
    pub machines: BTreeMap<MachineName, SshMachine>,
}

pub const SSH_PORT: u16 = 22;

fn ssh_port() -> u16 {
    SSH_PORT
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_ssh_port(port: &u16) -> bool {
    *port == SSH_PORT
}

/// A machine, and the commands that stop and start it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(JsonSchema),
    schemars(rename = "machine", deny_unknown_fields)
)]
pub struct SshMachine {
    /// The command that starts the machine. It must return at once and be safe to repeat.
    #[cfg_attr(feature = "schema", schemars(extend("examples" = ["start build-01"])))]
    pub start: RemoteCommand,
    /// The command that stops the machine. It must return at once and be safe to repeat.
    #[cfg_attr(feature = "schema", schemars(extend("examples" = ["stop build-01"])))]
    pub stop: RemoteCommand,
    /// The command whose exit code says whether the machine runs: 0 means running, 3 stopped, and
    /// any other unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "RemoteCommand", extend("examples" = ["status build-01"])))]
    pub status: Option<RemoteCommand>,
    /// The command that cuts the machine's power if `stop` did not end it. Without it, the power is
    /// never cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "RemoteCommand", extend("examples" = ["force build-01"])))]
    pub force: Option<RemoteCommand>,
    /// A port that is open while the machine runs, as HOST:PORT. Offhours tries it from where it
    /// runs itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Endpoint", extend("examples" = ["10.0.0.9:22"])))]
    pub probe: Option<Endpoint>,
    /// What it means if the probe's port is closed or does not answer: "unknown" (the default) or
    /// "stopped". Use "stopped" only if nothing else can close the port. For commands that run on
    /// the machine itself, it also covers a host that does not answer.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "unknown")))]
    pub unreachable_means: Unreachable,
    /// Maximum time for a start until the machine is seen running. Default: 10m.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "10m")))]
    pub start_deadline: Deadline,
    /// Maximum time for a stop until the machine is seen stopped. Default: 10m.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "10m")))]
    pub stop_deadline: Deadline,
    /// Tags like those of a cloud's resources: `offhours:NAME` makes the machine follow a schedule.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[cfg_attr(feature = "schema", schemars(extend("examples" = [["env:dev"]])))]
    pub tags: BTreeSet<String>,
}

/// What it means if a machine does not answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Unreachable {
    /// Nothing: it may still be running.
    #[default]
    Unknown,
    /// The machine is stopped.
    Stopped,
}

/// What is wrong with a login as a whole, although each part is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// Port 0, on which nothing can listen.
    #[error("`port` is 0: write the port of the host's SSH server, usually 22")]
    NoPort,
    /// The host's address refers to this machine, or has a meaning only in its own network.
    #[error(
        "`host` is a loopback, link-local or metadata address: name the host that runs the commands, \
         or set allow_private_hosts = true"
    )]
    PrivateHost,
    #[error(
        "the probe is at a loopback, link-local or metadata address: name the machine, or set \
         allow_private_hosts = true"
    )]
    PrivateProbe,
    /// A machine that could never be seen stopped, and so never be started again.
    #[error(
        "can never be seen stopped: add `status`, or a `probe` and unreachable_means = \"stopped\""
    )]
    Unseen,
}

impl SshLogin {
    /// Checks what its parts cannot check on their own.
    pub fn check(&self) -> Result<(), LoginError> {
        if self.port == 0 {
            return Err(LoginError::NoPort);
        }
        if !self.allow_private_hosts && self.host.is_private() {
            return Err(LoginError::PrivateHost);
        }
        for machine in self.machines.values() {
            let private = |probe: &Endpoint| probe.host.is_private();
            if !self.allow_private_hosts && machine.probe.as_ref().is_some_and(private) {
                return Err(LoginError::PrivateProbe);
            }
            let silence_counts =
                machine.probe.is_some() && machine.unreachable_means == Unreachable::Stopped;
            if machine.status.is_none() && !silence_counts {
                return Err(LoginError::Unseen);
            }
        }
        Ok(())
    }
}

/// A command, sent exactly as written: fixed text on one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(JsonSchema),
    schemars(inline, extend("maxLength" = LONGEST_COMMAND, "pattern" = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"))
)]
pub struct RemoteCommand(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RemoteCommandError {
    /// Nothing but whitespace.
    #[error("empty command: write the command that the host is to run")]
    Empty,
    #[error("command of {0} bytes: at most {LONGEST_COMMAND}; put what is longer into a script")]
    TooLong(usize),
    /// A newline would make it two commands; other control characters would hide what it does.
    #[error("command with a newline or another control character: write one line of plain text")]
    Control,
}

impl RemoteCommand {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RemoteCommand {
    type Err = RemoteCommandError;

    fn from_str(text: &str) -> Result<Self, RemoteCommandError> {
        if text.chars().any(char::is_control) {
            return Err(RemoteCommandError::Control);
        }
        if text.trim().is_empty() {
            return Err(RemoteCommandError::Empty);
        }
        if text.len() > LONGEST_COMMAND {
            return Err(RemoteCommandError::TooLong(text.len()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for RemoteCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

as_text!(RemoteCommand, RemoteCommandError);

/// The user to log in as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(JsonSchema),
    schemars(inline, extend("maxLength" = 64, "pattern" = r"^[A-Za-z0-9_][A-Za-z0-9_.$-]*$"))
)]
pub struct User(String);

/// Not a valid user name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid user `{0}`: expected 1 to 64 of A-Z, a-z, 0-9, `_`, `-`, `.` and `$`")]
pub struct UserError(pub String);

impl User {
    /// The user's name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for User {
    type Err = UserError;

    fn from_str(text: &str) -> Result<Self, UserError> {
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let fits = text.starts_with(letter)
            && text.len() <= 64
            && text.chars().all(|c| letter(c) || "-.$".contains(c));
        if fits { Ok(Self(text.to_owned())) } else { Err(UserError(text.to_owned())) }
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

as_text!(User, UserError);

#[cfg(test)]
mod tests;
