//! Why something failed: a message for people, and the request id that the provider's support asks
//! for.

use std::{error::Error, fmt};

use serde::{Deserialize, Serialize};

use crate::text;

/// A provider's refusal, in its own words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// The HTTP status, or the exit code of a command; `None` if the response has no number.
    pub status: Option<u16>,
    /// The provider's machine-readable code: `unprocessable_entity`, `locked`.
    pub code: String,
    /// The provider's message for people.
    pub message: String,
    pub request_id: Option<String>,
}

impl Refusal {
    fn words(&self) -> String {
        let Self { code, message, .. } = self;
        match self.status {
            Some(status) => format!("{status} {code}: {message}"),
            None => format!("{code}: {message}"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Reason::of(self).fmt(f)
    }
}

/// Why something failed, as stored and printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reason {
    /// What failed, in a few words.
    #[serde(deserialize_with = "text::line")]
    what: String,
    /// Why it failed; absent if `what` says everything.
    #[serde(
        default,
        deserialize_with = "text::optional_line",
        skip_serializing_if = "Option::is_none"
    )]
    because: Option<String>,
    /// The provider's id of the refused request, a new one for each request; absent if there is
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

impl Reason {
    /// Creates a reason from what failed, and why.
    #[must_use]
    pub fn new(what: String, because: Option<String>) -> Self {
        Self { what, because, request_id: None }
    }

    #[must_use]
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        let (mut words, mut request_id) = (Vec::new(), None);
        let mut next = Some(error);
        while let Some(error) = next {
            words.push(match error.downcast_ref::<Refusal>() {
                Some(refusal) => {
                    request_id.clone_from(&refusal.request_id);
                    refusal.words()
                }
                None => error.to_string(),
            });
            next = error.source();
        }
        let because = words.split_off(1);
        Self {
            what: words.concat(),
            because: (!because.is_empty()).then(|| because.join(": ")),
            request_id,
        }
    }

    /// What failed, in a few words.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns what failed and why, without the request id.
    #[must_use]
    pub fn words(&self) -> String {
        match &self.because {
            Some(because) => format!("{}: {because}", self.what),
            None => self.what.clone(),
        }
    }

    /// Reports whether two reasons are the same, even if they are about different requests.
    #[must_use]
    pub fn eq_ignoring_request(&self, other: &Self) -> bool {
        (&self.what, &self.because) == (&other.what, &other.because)
    }
}

impl From<String> for Reason {
    fn from(what: String) -> Self {
        Self::new(what, None)
    }
}

impl From<&str> for Reason {
    fn from(what: &str) -> Self {
        what.to_owned().into()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words())?;
        match &self.request_id {
            Some(id) => write!(f, " (request {id})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("busy")]
    struct Busy(#[source] Refusal);

    fn locked(request_id: &str) -> Busy {
        Busy(Refusal {
            status: Some(423),
            code: "locked".to_owned(),
            message: "Server is locked".to_owned(),
            request_id: Some(request_id.to_owned()),
        })
    }

    #[test]
    fn two_requests_may_be_refused_for_the_same_reason() {
        let (first, second) = (Reason::of(&locked("a")), Reason::of(&locked("b")));
        assert!(first.eq_ignoring_request(&second));
        assert_ne!(first, second);
        assert_eq!(first.what(), "busy");
        let whole = "busy: 423 locked: Server is locked (request a)";
        assert_eq!(first.to_string(), whole);
        assert!(!first.eq_ignoring_request(&"busy".into()));
    }
}
