//! Where a token or a private key is stored.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::text::as_text;

/// Where a token or a private key is stored; never the secret itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(inline, extend("pattern" = r"^(ssm:[A-Za-z0-9/_.-]+|env:[A-Za-z0-9_]+|credential:[A-Za-z0-9_.-]+|file:/[^\x00-\x1f\x7f-\x9f]+)$"))
)]
pub enum TokenReference {
    /// `ssm:NAME`: an SSM parameter of type `SecureString`.
    Ssm(String),
    /// `env:NAME`: an environment variable. Like the next two, it is not read on AWS.
    Env(String),
    /// `file:/PATH`: a file by its absolute path, such as a mounted secret, that others cannot read.
    File(String),
    /// `credential:NAME`: a file in the folder that systemd names in `CREDENTIALS_DIRECTORY`.
    Credential(String),
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
            Self::Env(_) | Self::File(_) | Self::Credential(_) => false,
        }
    }
}

/// Not a valid token reference. The text is not repeated, because it may be a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "write where it is kept, ssm:/PATH/NAME, env:VARIABLE, file:/PATH or credential:NAME, never the \
     secret itself"
)]
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
            Some(("credential", name))
                if plain(name, "_.-") && !name.trim_matches('.').is_empty() =>
            {
                Ok(Self::Credential(name.to_owned()))
            }
            Some(("file", path)) if is_path(path) => Ok(Self::File(path.to_owned())),
            Some(_) | None => Err(TokenReferenceError),
        }
    }
}

fn is_path(text: &str) -> bool {
    text.len() > 1 && text.starts_with('/') && !text.chars().any(char::is_control)
}

impl fmt::Display for TokenReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ssm(name) => write!(f, "ssm:{name}"),
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{path}"),
            Self::Credential(name) => write!(f, "credential:{name}"),
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
        let key = "-----BEGIN OPENSSH PRIVATE KEY-----";
        let error = key.parse::<TokenReference>().unwrap_err();
        assert!(!error.to_string().contains("BEGIN"));
        for text in [
            "ssm:",
            "env:A B",
            "file:",
            "file:/a\nb",
            "file:x",
            "file:/",
            "credential:..",
            "credential:a/b",
            "",
        ] {
            assert!(text.parse::<TokenReference>().is_err(), "{text}");
        }
        for text in [
            "ssm:/offhours/do-main",
            "env:HCLOUD_TOKEN",
            "file:/run/secrets/do",
            "credential:do.v2",
        ] {
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
