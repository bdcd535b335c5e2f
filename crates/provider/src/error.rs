//! Errors, distinguished by what the caller does next.

use std::time::Duration;

use domain::{ResourceId, reason::Refusal, step::Step};

use crate::transport::TransportError;

/// Why a provider could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The token's allowance is used up, or nearly so. Nothing was done.
    #[error("rate limit reached")]
    RateLimited {
        /// How long the provider asks to wait; `None` leaves it to the next tick.
        retry_after: Option<Duration>,
    },
    /// The token is invalid. A person must replace it.
    #[error("token refused")]
    TokenRefused(#[source] Refusal),
    /// The token is valid and may not do this. A person must give it more rights, or pay: an unpaid
    /// or blocked account is answered in the same way (DOUNPAID).
    #[error(
        "not permitted: the token lacks {}, or the account is unpaid or blocked",
        needs.unwrap_or("a permission")
    )]
    NotPermitted {
        /// The permission that the request needs, if known.
        needs: Option<&'static str>,
        #[source]
        refusal: Refusal,
    },
    /// The provider does not know the resource (404 in the provider's own words).
    #[error("not found")]
    NotFound(#[source] Refusal),
    /// The resource is locked or changing: try again later.
    #[error("busy")]
    Busy(#[source] Refusal),
    /// The provider refuses, however often it is asked.
    #[error("refused")]
    Refused(#[source] Refusal),
    /// The provider cannot answer now (5xx).
    #[error("provider unavailable")]
    Unavailable(#[source] Refusal),
    /// The response is not one of the provider's: a redirect, an HTML page, other JSON.
    #[error("answer to {request} not understood: {reason}")]
    NotUnderstood {
        /// Method and path.
        request: String,
        /// What is wrong with the response, without its content.
        reason: String,
    },
    /// No complete response arrived: no connection, a broken one, a timeout.
    #[error("no answer to {request}")]
    Transport {
        /// Method and path.
        request: String,
        /// What went wrong in transit.
        #[source]
        source: TransportError,
    },
    /// The caller's deadline passed before all pages of a list were read.
    #[error(
        "the list{} was not finished in time",
        of.map(|of| format!(" of {of} pages")).unwrap_or_default()
    )]
    OutOfTime {
        /// How many pages were read. Not part of the message, because it differs each time.
        read: u32,
        /// How many pages there were, if known.
        of: Option<u32>,
    },
    /// The resource belongs to another provider or does not support the request. Nothing was sent.
    #[error("{resource} does not support that at this provider")]
    Foreign { resource: ResourceId },
}

impl ProviderError {
    pub(crate) fn foreign(resource: &ResourceId) -> Self {
        Self::Foreign { resource: resource.clone() }
    }

    pub(crate) fn needing(mut self, permission: &'static str) -> Self {
        if let Self::NotPermitted { needs, .. } = &mut self {
            *needs = Some(permission);
        }
        self
    }

    /// Returns what was read; `None` if the provider does not know it.
    pub(crate) fn found<T>(read: Result<T, Self>) -> Result<Option<T>, Self> {
        match read {
            Ok(found) => Ok(Some(found)),
            Err(Self::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reports whether a person has to replace the token or give it more rights.
    #[must_use]
    pub fn is_about_token(&self) -> bool {
        matches!(self, Self::TokenRefused(_) | Self::NotPermitted { .. })
    }

    /// Reports whether any other list of the account would fail in the same way.
    pub(crate) fn is_of_account(&self) -> bool {
        matches!(self, Self::TokenRefused(_) | Self::RateLimited { .. } | Self::OutOfTime { .. })
    }

    /// Returns how long the provider asked to wait, if it did.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        if let Self::RateLimited { retry_after } = self { *retry_after } else { None }
    }

    /// Reports whether an established connection broke: a read may be retried at once.
    pub(crate) fn is_broken_connection(&self) -> bool {
        matches!(self, Self::Transport { source, .. }
            if !source.is_timeout() && !source.never_left())
    }
}

/// Why a change is not known to be accepted.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// Definite, and about this resource: no retry can cure it.
    #[error("refused")]
    Refused(#[source] Refusal),
    /// Not accepted, because the resource is locked, busy, or already in the target state: observe
    /// it again later.
    #[error("busy")]
    Busy(#[source] Refusal),
    /// Certainly not accepted, for a reason that does not lie with the resource: try again later.
    #[error("not accepted")]
    NotAccepted(#[source] ProviderError),
    /// No usable response. The change may have been accepted, and may still take effect.
    #[error("outcome unknown")]
    Unknown(#[source] ProviderError),
}

impl ChangeError {
    /// Reports whether a person has to replace the account's token or give it more rights.
    #[must_use]
    pub fn is_about_token(&self) -> bool {
        matches!(self, Self::NotAccepted(error) if error.is_about_token())
    }

    /// Takes a 404 for a refusal where a step creates a machine: it is about what the machine is to
    /// have. `DigitalOcean` answers so for a VPC (python-digitalocean #264).
    pub(crate) fn answering(self, step: &Step) -> Self {
        match self {
            Self::NotAccepted(ProviderError::NotFound(refusal))
                if matches!(step, Step::Create { .. }) =>
            {
                Self::Refused(refusal)
            }
            Self::Refused(_) | Self::Busy(_) | Self::NotAccepted(_) | Self::Unknown(_) => self,
        }
    }

    /// Reports whether the token is valid and may not make this change.
    #[must_use]
    pub fn is_not_permitted(&self) -> bool {
        matches!(self, Self::NotAccepted(ProviderError::NotPermitted { .. }))
    }
}

/// Classifies an error by whether the change can have been accepted.
impl From<ProviderError> for ChangeError {
    fn from(error: ProviderError) -> Self {
        match error {
            ProviderError::Refused(refusal) => Self::Refused(refusal),
            ProviderError::Busy(refusal) => Self::Busy(refusal),
            // A refused token is the account's failure; whether the resource is gone is for its
            // own Status operation to say.
            ProviderError::TokenRefused(_)
            | ProviderError::NotPermitted { .. }
            | ProviderError::NotFound(_)
            | ProviderError::RateLimited { .. }
            | ProviderError::OutOfTime { .. }
            | ProviderError::Foreign { .. } => Self::NotAccepted(error),
            ProviderError::Transport { ref source, .. } if source.never_left() => {
                Self::NotAccepted(error)
            }
            ProviderError::Transport { .. }
            | ProviderError::Unavailable(_)
            | ProviderError::NotUnderstood { .. } => Self::Unknown(error),
        }
    }
}
