//! The failures that leave a command without an exit code, and whether it may have run.

/// Why a command has no exit code. Reveals nothing about the host, the user or the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error("host name not resolved")]
    Unresolved,
    /// All addresses of the host's name are loopback, link-local or metadata ones.
    #[error("host at a loopback, link-local or metadata address, which the account does not allow")]
    Forbidden,
    /// Connection refused, no route to the host, or no answer in time.
    #[error("host does not answer")]
    Unanswered,
    /// No connection, for a reason on this side.
    #[error("connection cannot be made")]
    NotConnected,
    /// No usable SSH session in time: no greeting, no common algorithm, or a protocol violation.
    #[error("no SSH connection in time, or none that is safe")]
    Handshake,
    /// The host presents a key that is not pinned, or a certificate.
    #[error("host key is not pinned")]
    HostKey,
    /// The host does not accept the account's key, or asks for more than a key.
    #[error("key refused")]
    KeyRefused,
    #[error("connection lost before the command was sent")]
    Dropped,
    /// The host opens no channel for commands.
    #[error("channel refused")]
    NoChannel,
    #[error("command not run")]
    NotRun,
    /// The command did not end in time.
    #[error("timed out")]
    TimedOut,
    #[error("connection lost while the command ran")]
    Lost,
    #[error("ended without an exit code")]
    NoExitCode,
    #[error("ended by a signal")]
    Signal,
    /// The host sent an exit code before it accepted the command, or sent several.
    #[error("unexpected exit code")]
    OutOfOrder,
}

impl Failure {
    /// Reports whether the command may have run: it was sent, and the host did not refuse it.
    #[must_use]
    pub fn may_have_run(self) -> bool {
        match self {
            Self::Unresolved
            | Self::Forbidden
            | Self::Unanswered
            | Self::NotConnected
            | Self::Handshake
            | Self::HostKey
            | Self::KeyRefused
            | Self::Dropped
            | Self::NoChannel
            | Self::NotRun => false,
            Self::TimedOut | Self::Lost | Self::NoExitCode | Self::Signal | Self::OutOfOrder => {
                true
            }
        }
    }

    /// Reports whether any command to this host would fail like this: the failure is the account's.
    pub(crate) fn fails_every_command(self) -> bool {
        let is_the_commands = matches!(self, Self::NoChannel | Self::NotRun);
        !is_the_commands && !self.may_have_run()
    }
}
