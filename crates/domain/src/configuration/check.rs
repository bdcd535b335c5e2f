//! `check` of a group: what must answer before what follows the group starts.

use std::{fmt, str::FromStr};

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ssh::{Endpoint, Host},
    text::{LONGEST_NAME, as_text, one_line},
};

/// Characters that a URL without a fragment cannot contain.
const NOT_IN_URLS: &str = "#\"<>\\^`{|}";

/// An address that answers once the members of a group do their work.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(JsonSchema),
    schemars(inline, extend(
        "maxLength" = LONGEST_NAME,
        "pattern" = r#"^(tcp://[^\s/?#@]+:[0-9]{1,5}|https?://[^\s/?#@]+([/?][^\s#@"<>\\^`{|}]*)?)$"#
    ))
)]
pub enum Check {
    /// Passes if the port accepts a connection.
    Tcp(Endpoint),
    /// Passes if a GET of this URL is answered with a status from 200 to 399.
    Http(String),
}

/// Not a valid check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    #[error(
        "invalid check `{0}`: write tcp://HOST:PORT, http://HOST/PATH or https://HOST/PATH, such as \
         tcp://db.example.net:5432"
    )]
    Malformed(String),
    /// It may contain a password, so it is not repeated.
    #[error(
        "a check is stored and shown, so it cannot contain a user or password: name an address that \
         answers without them"
    )]
    Credentials,
}

impl FromStr for Check {
    type Err = CheckError;

    fn from_str(text: &str) -> Result<Self, CheckError> {
        if text.contains('@') {
            return Err(CheckError::Credentials);
        }
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        let (authority, _) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let is_host = !authority.contains(':') && authority.parse::<Host>().is_ok();
        let is_url = rest.chars().all(|c| c.is_ascii_graphic() && !NOT_IN_URLS.contains(c))
            && text.len() <= LONGEST_NAME
            && (is_host || authority.parse::<Endpoint>().is_ok());
        let check = match scheme {
            "tcp" => rest.parse().ok().map(Self::Tcp),
            "http" | "https" if is_url => Some(Self::Http(text.to_owned())),
            _ => None,
        };
        check.ok_or_else(|| CheckError::Malformed(one_line(text, LONGEST_NAME).into_owned()))
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(endpoint) => write!(f, "tcp://{endpoint}"),
            Self::Http(url) => f.write_str(url),
        }
    }
}

as_text!(Check, CheckError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_a_port_or_an_address_without_credentials() {
        for text in [
            "tcp://db.internal:5432",
            "tcp://[2001:db8::9]:5432",
            "http://10.0.0.9:8080/health?deep=1",
            "http://[2001:db8::9]:8080",
            "https://shop.example.net",
        ] {
            assert_eq!(text.parse::<Check>().map(|check| check.to_string()).as_deref(), Ok(text));
        }
        for text in [
            "",
            "db.internal:5432",
            "tcp://db.internal",
            "tcp://db.internal:0",
            "tcp://db.internal:5432/",
            "udp://db.internal:53",
            "HTTP://db.internal",
            "http://",
            "http:///health",
            "http://2001:db8::9/",
            "http://db.internal:http/",
            "http://db.internal/a b",
            "http://db.internal/#top",
            "http://db.internal/{id}",
            "http://db.internal/\u{e9}",
            &format!("http://db.internal/{}", "a".repeat(LONGEST_NAME)),
        ] {
            let refused = text.parse::<Check>();
            assert!(matches!(refused, Err(CheckError::Malformed(_))), "{text}: {refused:?}");
        }
        for text in ["https://me:secret@db.internal", "tcp://me:se/cret@db:5432", "secret@db:1"] {
            assert_eq!(text.parse::<Check>(), Err(CheckError::Credentials));
        }
    }
}
