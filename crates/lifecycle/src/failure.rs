//! Why nothing is known of a resource, or nothing was done about it.

use domain::{record::LOOK_AGE, resource::Look};
use environment::in_words;
use jiff::Timestamp;
use provider::ProviderError;

use crate::ProvidersError;

/// Why there is no look.
#[derive(Debug, Clone)]
pub(crate) struct NoLook {
    /// In words, for a record or a report.
    pub words: String,
    /// How long the provider asks to wait.
    pub retry_after: Option<std::time::Duration>,
    /// Whether the token was refused: it may have been rotated.
    pub token_refused: bool,
    /// Whether there is no token to look with.
    pub no_token: bool,
}

impl NoLook {
    /// A reason that no answer of the provider gives.
    pub(crate) fn of(words: impl Into<String>) -> Self {
        Self {
            words: words.into(),
            retry_after: None,
            token_refused: false,
            no_token: false,
        }
    }

    /// The look came too late for what was to rest on it.
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

/// Whether two refusals say the same, but for the provider's ids of the requests.
pub(crate) fn is_same(left: &str, right: &str) -> bool {
    without_request_id(left) == without_request_id(right)
}

/// A refusal's words without the provider's id for the request, which differs each time.
fn without_request_id(words: &str) -> &str {
    words.split(" (request ").next().unwrap_or(words)
}

impl From<&ProviderError> for NoLook {
    fn from(error: &ProviderError) -> Self {
        Self {
            words: in_words(error),
            retry_after: error.retry_after(),
            token_refused: matches!(error, ProviderError::TokenRefused(_)),
            no_token: false,
        }
    }
}

impl From<&ProvidersError> for NoLook {
    fn from(error: &ProvidersError) -> Self {
        Self {
            no_token: matches!(error, ProvidersError::Token { .. }),
            ..Self::of(in_words(error))
        }
    }
}
