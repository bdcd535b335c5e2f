//! Machines that are stopped and started by fixed commands on one host.
//!
//! Every command has a connection of its own: one channel, one command, closed afterwards. The host
//! is identified by its pinned keys alone, and its only answer is an exit code. A host that is
//! slow, cut off or hostile makes a machine's state unknown, never stopped, unless
//! `unreachable_means` says that silence means stopped. The attack surface is the SSH library, so
//! everything that a command does not need is turned off.

mod address;
mod connection;
mod failure;
mod output;
mod pins;
mod vocabulary;

use std::{fmt, sync::Arc, time::Duration};

use domain::{
    MachineName,
    reason::Refusal,
    ssh::{LoginError, RemoteCommand, SshLogin, SshMachine, Unreachable},
};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use secrecy::SecretString;
use tokio::sync::Semaphore;

use self::{
    address::Route,
    connection::{Ended, TO_CHANGE, TO_LOOK},
    pins::Pins,
};
use crate::{
    error::{ChangeError, ProviderError},
    transport::{Carrier, Transport},
};

pub use crate::command_failure::Failure;
pub use output::Output;
pub use pins::InvalidKey;

/// Maximum number of connections open at once while listing.
const AT_ONCE: usize = 16;

/// Maximum number of connections that log in at once. A host drops some of more than ten by default
/// (`sshd_config`, `MaxStartups`).
const LOGINS_AT_ONCE: usize = 4;

/// The refusal code for a host that presents a key that is not pinned.
pub const HOST_KEY_CHANGED: &str = "host-key-changed";

/// A client for one SSH account. Clones share everything.
#[derive(Clone)]
pub struct Api {
    login: Arc<SshLogin>,
    /// The private key in OpenSSH's format; parsed for each login and overwritten after it.
    key: Arc<SecretString>,
    pins: Arc<Pins>,
    logins: Arc<Semaphore>,
    /// What carries connections. `None` if the network does.
    carrier: Option<Arc<dyn Carrier>>,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

/// Why a login cannot be used to connect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    #[error("invalid login")]
    Login(#[from] LoginError),
    /// The private key cannot be used.
    #[error(
        "private key not usable: expected an ed25519 key in OpenSSH's form, without a passphrase"
    )]
    Key,
    /// A pinned key has the right length for its algorithm but is not a valid key.
    #[error("host key not valid: copy the whole line of the host's public key")]
    HostKey,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineCommand {
    /// Start it with its `start` command.
    Start,
    /// Stop it with its `stop` command.
    Stop,
    /// Cut its power with its `force` command.
    Force,
}

impl MachineCommand {
    /// The change as a line for display: `ssh start build-01`.
    #[must_use]
    pub fn describe(self, machine: &MachineName) -> String {
        format!("ssh {self} {machine}")
    }

    /// The machine's command for it; `None` if the machine has no such command.
    #[must_use]
    pub fn remote_command(self, machine: &SshMachine) -> Option<&RemoteCommand> {
        match self {
            Self::Start => Some(&machine.start),
            Self::Stop => Some(&machine.stop),
            Self::Force => machine.force.as_ref(),
        }
    }
}

impl fmt::Display for MachineCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Force => "force",
        })
    }
}

/// The host's confirmation that it ran a start or stop command: no proof of any effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandAccepted {
    pub output: Output,
}

/// A machine as observed by its status command or its probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    pub name: MachineName,
    pub state: State,
    /// What the status command printed.
    pub output: Output,
}

/// Whether a machine is running, as far as could be observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Running,
    Stopped,
    /// It does not answer, which its owner says means off.
    Silent,
    /// Either is possible.
    Unknown(UnknownCause),
}

/// Why a machine's state is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownCause {
    /// The status command's exit code means neither.
    ExitCode(u32),
    /// The status command did not end with an exit code.
    Failed(Failure),
    /// There is no status command: the probe is all there is.
    NotAsked,
    /// The probe could not be carried out.
    NotProbed(Failure),
    /// Its turn did not come in time.
    NoTime,
}

impl fmt::Display for UnknownCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ExitCode(code) => write!(f, "status ended with exit code {code}"),
            Self::Failed(failure) => write!(f, "status failed: {failure}"),
            Self::NotAsked => f.write_str("no status command"),
            Self::NotProbed(failure) => write!(f, "probe failed: {failure}"),
            Self::NoTime => f.write_str("there was no time to ask for its status"),
        }
    }
}

impl Api {
    /// Creates a client. The key is the one that one of the login's key references names.
    pub fn new(login: Arc<SshLogin>, key: SecretString) -> Result<Self, SetupError> {
        login.check()?;
        pins::private_key(&key).map_err(|InvalidKey| SetupError::Key)?;
        let pins = Pins::of(&login.host_keys).map_err(|InvalidKey| SetupError::HostKey)?;
        Ok(Self {
            login,
            key: Arc::new(key),
            pins: Arc::new(pins),
            logins: Arc::new(Semaphore::new(LOGINS_AT_ONCE)),
            carrier: None,
        })
    }

    /// Returns a client of the same account whose connections go over `transport`.
    pub(crate) fn over(self, transport: &Transport) -> Self {
        Self { carrier: transport.carrier().cloned(), ..self }
    }

    /// Returns every machine, ordered by name. A machine whose status cannot be read is unknown. A
    /// host that presents another key or refuses ours is an error, and so is one that cannot be
    /// reached, unless a silent host means that the machine is stopped.
    pub async fn observe_all(&self) -> Result<Vec<Observed>, ProviderError> {
        let machines = self.login.machines.iter();
        let looks = machines.map(|(name, machine)| self.observe(name, machine));
        stream::iter(looks).buffered(AT_ONCE).try_collect().await
    }

    /// Returns one machine; `None` if the account has no such machine.
    pub async fn observe_one(&self, name: &MachineName) -> Result<Option<Observed>, ProviderError> {
        match self.login.machines.get(name) {
            Some(machine) => self.observe(name, machine).await.map(Some),
            None => Ok(None),
        }
    }

    /// Runs one command that stops or starts a machine, and never retries it.
    pub async fn run_command(
        &self,
        name: &MachineName,
        command: MachineCommand,
    ) -> Result<CommandAccepted, ChangeError> {
        let request = command.describe(name);
        let Some(machine) = self.login.machines.get(name) else {
            let refusal = refusal(None, "unknown-machine", "the account has no such machine");
            return Err(ChangeError::NotAccepted(ProviderError::NotFound(refusal)));
        };
        let Some(command) = command.remote_command(machine) else {
            let refusal = refusal(None, "no-command", "the machine has no such command");
            return Err(ChangeError::Refused(refusal));
        };
        match self.run(command, TO_CHANGE).await {
            Ok(ended) => answer(ended, request),
            Err(failure) => Err(failure.for_request(request).into()),
        }
    }

    async fn observe(
        &self,
        name: &MachineName,
        machine: &SshMachine,
    ) -> Result<Observed, ProviderError> {
        let (said, output) = match &machine.status {
            Some(status) => self.ask(name, machine, status).await?,
            None => (State::Unknown(UnknownCause::NotAsked), Output::default()),
        };
        let state = match said {
            State::Unknown(why) => self.probe(machine, why).await,
            State::Running | State::Stopped | State::Silent => said,
        };
        Ok(Observed { name: name.clone(), state, output })
    }

    async fn ask(
        &self,
        name: &MachineName,
        machine: &SshMachine,
        status: &RemoteCommand,
    ) -> Result<(State, Output), ProviderError> {
        let failed = match self.run(status, TO_LOOK).await {
            Ok(Ended { code, output }) => {
                let state = match code {
                    0 => State::Running,
                    3 => State::Stopped,
                    code => State::Unknown(UnknownCause::ExitCode(code)),
                };
                return Ok((state, output));
            }
            Err(failed) => failed,
        };
        let is_covered =
            failed == Failure::Unanswered && machine.unreachable_means == Unreachable::Stopped;
        if failed.fails_every_command() && !is_covered {
            return Err(failed.for_request(format!("ssh status {name}")));
        }
        Ok((State::Unknown(UnknownCause::Failed(failed)), Output::default()))
    }

    /// Falls back to the probe; `why` is the reason that the status command was inconclusive.
    async fn probe(&self, machine: &SshMachine, why: UnknownCause) -> State {
        let silent = |why| match machine.unreachable_means {
            Unreachable::Stopped => State::Silent,
            Unreachable::Unknown => State::Unknown(why),
        };
        let Some(probe) = &machine.probe else {
            // A host that does not answer counts like a port that does not.
            return match why {
                UnknownCause::Failed(Failure::Unanswered) => silent(why),
                UnknownCause::ExitCode(_)
                | UnknownCause::Failed(_)
                | UnknownCause::NotAsked
                | UnknownCause::NotProbed(_)
                | UnknownCause::NoTime => State::Unknown(why),
            };
        };
        match address::probe(self.route(), probe).await {
            Ok(()) => State::Running,
            Err(Failure::Unanswered) => silent(why),
            Err(failure) if why == UnknownCause::NotAsked => {
                State::Unknown(UnknownCause::NotProbed(failure))
            }
            Err(_) => State::Unknown(why),
        }
    }

    async fn run(&self, command: &RemoteCommand, within: Duration) -> Result<Ended, Failure> {
        let login_slot = self.logins.acquire().await.ok();
        connection::run(self.route(), &self.key, &self.pins, login_slot, command, within).await
    }

    fn route(&self) -> Route<'_> {
        Route { login: &self.login, carrier: self.carrier.as_deref() }
    }
}

/// What an exit code means for a change (sysexits.h, and the shell's 126 and 127).
fn answer(ended: Ended, request: String) -> Result<CommandAccepted, ChangeError> {
    let refused = |message| refusal(u16::try_from(ended.code).ok(), "exit-code", message);
    match ended.code {
        0 => Ok(CommandAccepted { output: ended.output }),
        75 => Err(ChangeError::Busy(refused("busy, try again later"))),
        77 => Err(ChangeError::Refused(refused("not permitted"))),
        126 => Err(ChangeError::Refused(refused("command cannot be run"))),
        127 => Err(ChangeError::Refused(refused("command not found"))),
        // The command ran, perhaps up to its last step.
        code => Err(ChangeError::Unknown(ProviderError::NotUnderstood {
            request,
            reason: format!("exit code {code}"),
        })),
    }
}

fn refusal(status: Option<u16>, code: &str, message: &str) -> Refusal {
    Refusal { status, code: code.to_owned(), message: message.to_owned(), request_id: None }
}
