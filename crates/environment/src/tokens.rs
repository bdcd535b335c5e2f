//! Provider tokens: read once, kept secret, read again after one was refused.

use std::{
    collections::HashMap,
    env, fmt,
    path::Path,
    sync::{Mutex, PoisonError},
};

use domain::{configuration::TokenReference, ssh::KeyReference};
use secrecy::SecretString;

use crate::file;

/// A token that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The variable is not set, or empty.
    #[error("the environment variable {0} is not set; it should hold the account's token")]
    Variable(String),
    /// Tokens in SSM need AWS.
    #[error("ssm:{0} cannot be read without AWS; use env:VARIABLE for local use")]
    NoAws(String),
    /// On AWS, the process's own variables and files are not a configuration's to name.
    #[error("{0} is not read on AWS; use ssm:/PATH/NAME")]
    OnlySsm(String),
    /// SSM did not return the parameter.
    #[cfg(feature = "aws")]
    #[error("failed to read the SSM parameter {name}")]
    Ssm {
        /// The parameter's name.
        name: String,
        /// What SSM, or the connection to it, reported.
        #[source]
        source: Box<aws_sdk_ssm::Error>,
    },
    /// The parameter is empty.
    #[error("the SSM parameter {0} is empty")]
    Empty(String),
    /// Others can read the file with the key.
    #[error("the key's file {0} can be read by others (chmod 600)")]
    Shared(String),
    /// The file with the key cannot be read.
    #[error("failed to read the key's file {path}")]
    File {
        /// The file's path.
        path: String,
        /// Why it cannot be read.
        #[source]
        source: std::io::Error,
    },
}

/// Reads a token from where the caller keeps it.
type Reader = dyn Fn(&TokenReference) -> Option<SecretString> + Send + Sync;

/// The sources of tokens.
#[derive(Default)]
pub struct Tokens {
    #[cfg(feature = "aws")]
    ssm: Option<aws_sdk_ssm::Client>,
    /// Whether references to variables and files are refused.
    only_ssm: bool,
    /// Asked before all other sources.
    reader: Option<Box<Reader>>,
    /// The tokens that have been read.
    known: Mutex<HashMap<TokenReference, SecretString>>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

impl Tokens {
    /// Reads tokens from environment variables only.
    #[must_use]
    pub fn from_variables() -> Self {
        Self::default()
    }

    /// Uses tokens that are already known; others come from environment variables.
    #[must_use]
    pub fn fixed(tokens: impl IntoIterator<Item = (TokenReference, SecretString)>) -> Self {
        let tokens: HashMap<_, _> = tokens.into_iter().collect();
        Self::from_reader(move |reference| tokens.get(reference).cloned())
    }

    /// Uses tokens that are kept elsewhere: read when one is not known, and again after one was
    /// refused. Tokens that are not kept there come from environment variables.
    #[must_use]
    pub fn from_reader(
        reader: impl Fn(&TokenReference) -> Option<SecretString> + Send + Sync + 'static,
    ) -> Self {
        Self { reader: Some(Box::new(reader)), ..Self::default() }
    }

    /// Reads tokens from SSM, and from nowhere else: the variables of a function hold its own
    /// credentials.
    #[cfg(feature = "aws")]
    #[must_use]
    pub fn from_aws(config: &aws_config::SdkConfig) -> Self {
        Self { ssm: Some(aws_sdk_ssm::Client::new(config)), only_ssm: true, ..Self::default() }
    }

    /// Reads environment variables and files as well: for functions that do not run on AWS.
    #[cfg(feature = "aws")]
    #[must_use]
    pub fn and_local(self) -> Self {
        Self { only_ssm: false, ..self }
    }

    /// Returns the token that is kept under a reference.
    pub async fn token(&self, reference: &TokenReference) -> Result<SecretString, TokenError> {
        if let Some(token) = self.lock().get(reference) {
            return Ok(token.clone());
        }
        let kept = self.reader.as_ref().and_then(|read| read(reference));
        let token = match (kept, reference) {
            (Some(token), _) => token,
            (None, TokenReference::Env(_)) if self.only_ssm => {
                return Err(TokenError::OnlySsm(reference.to_string()));
            }
            (None, TokenReference::Env(name)) => variable(name)?,
            (None, TokenReference::Ssm(name)) => self.parameter(name).await?,
        };
        self.lock().insert(reference.clone(), token.clone());
        Ok(token)
    }

    /// Returns the private key that is kept under a reference. A file is read each time.
    pub async fn key(&self, reference: &KeyReference) -> Result<SecretString, TokenError> {
        match reference {
            KeyReference::Token(reference) => self.token(reference).await,
            KeyReference::File(_) if self.only_ssm => {
                Err(TokenError::OnlySsm(reference.to_string()))
            }
            KeyReference::File(path) => match file::read_key(Path::new(path)) {
                Ok(Some(key)) => Ok(SecretString::from(key)),
                Ok(None) => Err(TokenError::Shared(path.clone())),
                Err(source) => Err(TokenError::File { path: path.clone(), source }),
            },
        }
    }

    /// Forgets a token that its provider refused, so that a rotated one is read.
    pub fn forget(&self, reference: &TokenReference) {
        self.lock().remove(reference);
    }

    /// Forgets a key that its host refused.
    pub fn forget_key(&self, reference: &KeyReference) {
        if let KeyReference::Token(reference) = reference {
            self.forget(reference);
        }
    }

    #[cfg(feature = "aws")]
    async fn parameter(&self, name: &str) -> Result<SecretString, TokenError> {
        let Some(ssm) = &self.ssm else {
            return Err(TokenError::NoAws(name.to_owned()));
        };
        let answer =
            ssm.get_parameter().name(name).with_decryption(true).send().await.map_err(|error| {
                TokenError::Ssm { name: name.to_owned(), source: Box::new(error.into()) }
            })?;
        answer
            .parameter
            .and_then(|parameter| parameter.value)
            .filter(|value| !value.trim().is_empty())
            .map(|value| SecretString::from(value.trim()))
            .ok_or_else(|| TokenError::Empty(name.to_owned()))
    }

    #[cfg(not(feature = "aws"))]
    #[expect(clippy::unused_async, reason = "the same signature as with AWS")]
    async fn parameter(&self, name: &str) -> Result<SecretString, TokenError> {
        Err(TokenError::NoAws(name.to_owned()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<TokenReference, SecretString>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn variable(name: &str) -> Result<SecretString, TokenError> {
    env::var(name)
        .ok()
        .filter(|value| !value.trim().is_empty())
        .map(|value| SecretString::from(value.trim()))
        .ok_or_else(|| TokenError::Variable(name.to_owned()))
}
