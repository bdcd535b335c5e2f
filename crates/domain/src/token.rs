//! Where a token is stored.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::text::as_text;

/// Where a token is stored; never the token itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(inline, extend("pattern" = "^(ssm:[A-Za-z0-9/_.-]+|env:[A-Za-z0-9_]+)$"))
)]
pub enum TokenReference {
    /// `ssm:NAME`: an SSM parameter of type `SecureString`.
    Ssm(String),
    /// `env:NAME`: an environment variable, for local use.
    Env(String),
}

impl TokenReference {
    /// Reports whether only stop and start can read it: a parameter below `acting`.
    #[must_use]
    pub fn is_for_acting(&self) -> bool {
        self.is_below("acting")
    }

    /// Reports whether only poll-status can read it: a parameter below `reading`.
    #[must_use]
    pub fn is_for_reading(&self) -> bool {
        self.is_below("reading")
    }

    /// Reports whether it is a parameter in a folder of the token path, which has a name itself.
    fn is_below(&self, folder: &str) -> bool {
        match self {
            Self::Ssm(name) => {
                let folders = name.rsplit_once('/').map_or("", |(folders, _)| folders);
                folders.split('/').skip(2).any(|one| one == folder)
            }
            Self::Env(_) => false,
        }
    }
}

/// Not a valid token reference. The text is not repeated, because it may be a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write where the token is kept, ssm:/PATH/NAME or env:VARIABLE, never the token itself")]
pub struct TokenReferenceError;

impl FromStr for TokenReference {
    type Err = TokenReferenceError;

    fn from_str(text: &str) -> Result<Self, TokenReferenceError> {
        let plain = |name: &str, extra: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || extra.contains(c))
        };
        match text.split_once(':') {
            Some(("ssm", name)) if plain(name, "/_.-") => Ok(Self::Ssm(name.to_owned())),
            Some(("env", name)) if plain(name, "_") => Ok(Self::Env(name.to_owned())),
            Some(_) | None => Err(TokenReferenceError),
        }
    }
}

impl fmt::Display for TokenReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ssm(name) => write!(f, "ssm:{name}"),
            Self::Env(name) => write!(f, "env:{name}"),
        }
    }
}

as_text!(TokenReference, TokenReferenceError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_pasted_into_the_configuration_is_refused_without_being_repeated() {
        let pasted = "dop_v1_0123456789abcdef";
        let error = pasted.parse::<TokenReference>().unwrap_err();
        assert!(!error.to_string().contains(pasted));
        for text in ["ssm:", "env:A B", "file:/x", ""] {
            assert!(text.parse::<TokenReference>().is_err(), "{text}");
        }
        for text in ["ssm:/offhours/do-main", "env:HCLOUD_TOKEN"] {
            let reference: TokenReference = text.parse().unwrap();
            assert_eq!(reference.to_string(), text);
        }
    }

    #[test]
    fn a_token_is_for_acting_in_a_folder_of_the_token_path_alone() {
        let acting = |text: &str| text.parse::<TokenReference>().unwrap().is_for_acting();
        for text in ["ssm:/offhours/acting/do", "ssm:/team/offhours/acting/clouds/do"] {
            assert!(acting(text), "{text}");
        }
        for text in [
            "ssm:/offhours/do",
            "ssm:/offhours/acting",
            "ssm:/acting/do",
            "ssm:/offhours/reading/do",
            "env:acting",
        ] {
            assert!(!acting(text), "{text}");
        }
        let reading: TokenReference = "ssm:/offhours/reading/do".parse().unwrap();
        assert!(reading.is_for_reading());
    }
}
