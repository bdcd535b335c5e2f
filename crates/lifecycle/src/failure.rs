//! Why a resource could not be observed, or nothing was done about it.

use domain::{look::Look, reason::Reason, record::LOOK_AGE};
use environment::{causes_in_words, in_words};
use jiff::Timestamp;
use provider::{ChangeError, ProviderError, Unread, ssh::HOST_KEY_CHANGED};
use transition::failure::{Failure, FailureKind};

use crate::ProvidersError;

/// How many resources are named that a list could not show.
const UNREAD_NAMED: usize = 5;

#[derive(Debug, Clone)]
pub(crate) struct ObservationError {
    /// The reason, for a record or a report.
    pub reason: Reason,
    /// How long the provider asks to wait; `None` if it does not say.
    pub retry_after: Option<std::time::Duration>,
    /// What is wrong with the account's login; `None` if the failure is another one.
    pub login: Option<LoginFailure>,
}

/// What is wrong with an account's login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoginFailure {
    NoToken,
    InvalidToken,
    /// The token is valid and lacks a permission.
    NotPermitted,
    /// A host presents a key that is not pinned.
    HostKeyChanged,
}

/// Returns what a failed step means for its transition.
pub(crate) fn of_step(error: &ChangeError) -> Failure {
    let (kind, words) = match error {
        ChangeError::Refused(refusal) => {
            (FailureKind::Refused(refusal.clone()), refusal.to_string())
        }
        ChangeError::Busy(refusal) => (FailureKind::Busy, refusal.to_string()),
        ChangeError::NotAccepted(ProviderError::TokenRefused(_)) => {
            (FailureKind::TokenRefused, in_words(error))
        }
        ChangeError::NotAccepted(ProviderError::NotPermitted { .. }) => {
            (FailureKind::NotPermitted, in_words(error))
        }
        ChangeError::NotAccepted(cause @ ProviderError::NotFound(_)) => {
            (FailureKind::NotFound, in_words(cause))
        }
        ChangeError::NotAccepted(cause) => (FailureKind::NotAccepted, in_words(cause)),
        ChangeError::Unknown(cause) => (FailureKind::Unknown, in_words(cause)),
    };
    let retry_after = match error {
        ChangeError::NotAccepted(cause) => cause.retry_after(),
        ChangeError::Refused(_) | ChangeError::Busy(_) | ChangeError::Unknown(_) => None,
    };
    Failure { kind, reason: Reason::of(error), words, retry_after }
}

impl ObservationError {
    /// Builds one from a reason that does not come from a provider's answer.
    pub(crate) fn of(reason: impl Into<Reason>) -> Self {
        Self { reason: reason.into(), retry_after: None, login: None }
    }

    /// Reports whether the token is invalid or lacks a permission: it may have been rotated.
    pub(crate) fn token_refused(&self) -> bool {
        matches!(self.login, Some(LoginFailure::InvalidToken | LoginFailure::NotPermitted))
    }

    /// Reports whether a working token may be there at any minute: an invalid one is replaced soon,
    /// while one that lacks a permission may stay so.
    pub(crate) fn ends_soon(&self) -> bool {
        matches!(self.login, Some(LoginFailure::NoToken | LoginFailure::InvalidToken))
    }

    /// Reports whether the login was refused: nothing is observed or done until a person has acted.
    pub(crate) fn login_refused(&self) -> bool {
        self.token_refused() || self.login == Some(LoginFailure::HostKeyChanged)
    }

    /// Returns what a list could not show, and why; `None` if it shows everything.
    pub(crate) fn of_unread(unread: &[Unread]) -> Option<Self> {
        let reason = match unread {
            [] => return None,
            [one] => Reason::of(one),
            several => {
                let words = several.iter().take(UNREAD_NAMED);
                let words: Vec<_> = words.map(|one| Reason::of(one).words()).collect();
                let more = match several.len() - words.len() {
                    0 => String::new(),
                    more => format!("; and {more} more"),
                };
                format!("{}{more}", words.join("; ")).into()
            }
        };
        Some(Self::of(reason))
    }

    /// Returns why a look can no longer be relied on, if it is too old.
    pub(crate) fn too_old(look: &Look, now: Timestamp) -> Option<Self> {
        let age = now.duration_since(look.requested_at);
        (age > LOOK_AGE).then(|| {
            let seconds = LOOK_AGE.as_secs();
            Self::of(format!(
                "the provider answers too slowly: what it showed was older than {seconds} s before \
                 it could be used"
            ))
        })
    }
}

impl From<&ProviderError> for ObservationError {
    fn from(error: &ProviderError) -> Self {
        let login = match error {
            ProviderError::TokenRefused(_) => Some(LoginFailure::InvalidToken),
            ProviderError::NotPermitted { .. } => Some(LoginFailure::NotPermitted),
            ProviderError::Refused(refusal) if refusal.code == HOST_KEY_CHANGED => {
                Some(LoginFailure::HostKeyChanged)
            }
            ProviderError::Refused(_)
            | ProviderError::RateLimited { .. }
            | ProviderError::NotFound(_)
            | ProviderError::Busy(_)
            | ProviderError::Unavailable(_)
            | ProviderError::NotUnderstood { .. }
            | ProviderError::Transport { .. }
            | ProviderError::OutOfTime { .. }
            | ProviderError::Foreign { .. } => None,
        };
        Self { reason: Reason::of(error), retry_after: error.retry_after(), login }
    }
}

impl From<&ProvidersError> for ObservationError {
    fn from(error: &ProvidersError) -> Self {
        Self {
            login: matches!(error, ProvidersError::Token { .. }).then_some(LoginFailure::NoToken),
            ..Self::of(Reason::new(error.to_string(), causes_in_words(error)))
        }
    }
}

#[cfg(test)]
mod tests {
    use provider::Refusal;

    use super::*;

    #[test]
    fn a_host_key_that_is_not_pinned_counts_as_a_refused_login_and_keeps_the_key() {
        let refused = |code: &str| {
            let error = ProviderError::Refused(Refusal {
                status: None,
                code: code.to_owned(),
                message: String::new(),
                request_id: None,
            });
            let failure = ObservationError::from(&error);
            (failure.login_refused(), failure.token_refused())
        };
        assert_eq!(refused(HOST_KEY_CHANGED), (true, false));
        assert_eq!(refused("exit-code"), (false, false));
    }
}
