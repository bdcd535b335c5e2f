//! What a failed command means for the resource that it is about.

use super::{HOST_KEY_CHANGED, refusal};
use crate::{command_failure::Failure, error::ProviderError};

impl Failure {
    /// Returns the error for a request that failed this way.
    pub(super) fn for_request(self, request: String) -> ProviderError {
        match self {
            Self::HostKey => ProviderError::Refused(refusal(
                None,
                HOST_KEY_CHANGED,
                "the host shows a key that is not pinned",
            )),
            Self::KeyRefused => ProviderError::TokenRefused(refusal(
                None,
                "key-refused",
                "the host does not accept the account's key",
            )),
            Self::Unresolved
            | Self::Forbidden
            | Self::Unanswered
            | Self::NotConnected
            | Self::Handshake
            | Self::Dropped
            | Self::NoChannel
            | Self::NotRun
            | Self::TimedOut
            | Self::Lost
            | Self::NoExitCode
            | Self::Signal
            | Self::OutOfOrder => ProviderError::Transport { request, source: self.into() },
        }
    }
}
