//! Provider tokens: read once, kept secret, read again after one was refused.

use std::{
    collections::HashMap,
    env, fmt,
    path::Path,
    sync::{Mutex, PoisonError},
};

use domain::configuration::TokenReference;
use secrecy::SecretString;

use crate::file;

/// A token that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The variable is not set, or empty.
    #[error("the environment variable {0} is not set; it should hold the token or secret")]
    Variable(String),
    /// Tokens in SSM need AWS.
    #[error("ssm:{0} cannot be read without AWS; use env:VARIABLE, file:/PATH or credential:NAME")]
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
        #[source]
        source: Box<crate::service::ServiceError>,
    },
    /// The parameter or the file is empty.
    #[error("{0} is empty")]
    Empty(String),
    /// It has several lines, and is not a key.
    #[error("{0} has more than one line: expected the token alone")]
    SeveralLines(String),
    /// systemd gave this process no credentials.
    #[error("{0} cannot be read: this process has no CREDENTIALS_DIRECTORY, which systemd sets")]
    NoCredentials(String),
    /// Others can read the file.
    #[error("the file {0} can be read by others (chmod 600)")]
    Shared(String),
    /// The file cannot be read.
    #[error("failed to read the file {path}")]
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
    ssm: Option<crate::service::Service>,
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
        use crate::service::{Service, Target};
        let ssm = Service::connect(config, Target::new(config, "ssm", "SSM"));
        Self { ssm: Some(ssm), only_ssm: true, ..Self::default() }
    }

    /// Reads environment variables and files as well: for functions that do not run on AWS.
    #[cfg(feature = "aws")]
    #[must_use]
    pub fn and_local(self) -> Self {
        Self { only_ssm: false, ..self }
    }

    /// Returns the token or private key that is kept under a reference. A file is read each time, so
    /// that a rotated secret is used at once.
    pub async fn token(&self, reference: &TokenReference) -> Result<SecretString, TokenError> {
        if let Some(token) = self.lock().get(reference) {
            return Ok(token.clone());
        }
        let kept = self.reader.as_ref().and_then(|read| read(reference));
        let token = match (kept, reference) {
            (Some(token), _) => token,
            (None, TokenReference::Ssm(name)) => self.parameter(name).await?,
            (None, _) if self.only_ssm => return Err(TokenError::OnlySsm(reference.to_string())),
            (None, TokenReference::Env(name)) => variable(name)?,
            (None, TokenReference::File(path)) => return secret_in(Path::new(path)),
            (None, TokenReference::Credential(name)) => {
                let none = || TokenError::NoCredentials(reference.to_string());
                let folder = env::var_os("CREDENTIALS_DIRECTORY").ok_or_else(none)?;
                return secret_in(&Path::new(&folder).join(name));
            }
        };
        self.lock().insert(reference.clone(), token.clone());
        Ok(token)
    }

    /// Forgets a token or key that was refused, so that a rotated one is read.
    pub fn forget(&self, reference: &TokenReference) {
        self.lock().remove(reference);
    }

    #[cfg(feature = "aws")]
    async fn parameter(&self, name: &str) -> Result<SecretString, TokenError> {
        let Some(ssm) = &self.ssm else {
            return Err(TokenError::NoAws(name.to_owned()));
        };
        let input = serde_json::json!({ "Name": name, "WithDecryption": true });
        let answer: serde_json::Value = ssm
            .call("AmazonSSM.GetParameter", &input)
            .await
            .map_err(|error| TokenError::Ssm { name: name.to_owned(), source: Box::new(error) })?;
        secret(answer["Parameter"]["Value"].as_str().unwrap_or_default(), || {
            format!("the SSM parameter {name}")
        })
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
    let value = env::var(name).ok().filter(|value| !value.trim().is_empty());
    let value = value.ok_or_else(|| TokenError::Variable(name.to_owned()))?;
    secret(&value, || format!("the environment variable {name}"))
}

/// Checks a token or a private key that was read.
fn secret(text: &str, place: impl FnOnce() -> String) -> Result<SecretString, TokenError> {
    let text = text.trim_start();
    // An OpenSSH key ends with a line break, and a token does not.
    if text.starts_with("-----BEGIN") {
        return Ok(SecretString::from(text));
    }
    match text.trim_end() {
        "" => Err(TokenError::Empty(place())),
        token if token.contains('\n') => Err(TokenError::SeveralLines(place())),
        token => Ok(SecretString::from(token)),
    }
}

/// Reads the secret in a file that only its owner can read.
fn secret_in(path: &Path) -> Result<SecretString, TokenError> {
    let name = path.display().to_string();
    match file::read_key(path) {
        Ok(Some(text)) => secret(&text, || format!("the file {name}")),
        Ok(None) => Err(TokenError::Shared(name)),
        Err(source) => Err(TokenError::File { path: name, source }),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use secrecy::ExposeSecret as _;

    use super::*;

    #[tokio::test]
    async fn a_file_is_read_as_it_is_now_and_only_if_nobody_else_can() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("do-token");
        let reference = TokenReference::File(path.display().to_string());
        let tokens = Tokens::from_variables();
        let read = async || match tokens.token(&reference).await {
            Ok(token) => token.expose_secret().to_owned(),
            Err(error) => crate::in_words(&error),
        };
        assert!(read().await.starts_with("failed to read the file "), "{}", read().await);
        fs::write(&path, "first\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read().await, "first");
        fs::write(&path, "second").unwrap();
        assert_eq!(read().await, "second");
        fs::write(&path, "\n-----BEGIN KEY-----\nx\n").unwrap();
        assert_eq!(read().await, "-----BEGIN KEY-----\nx\n");
        fs::write(&path, "\n").unwrap();
        assert!(read().await.ends_with(" is empty"), "{}", read().await);
        fs::write(&path, "first\nsecond\n").unwrap();
        assert!(read().await.contains(" has more than one line"), "{}", read().await);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(read().await.contains("can be read by others (chmod 600)"), "{}", read().await);
    }

    #[tokio::test]
    async fn nothing_of_this_machine_is_read_on_aws() {
        let tokens = Tokens { only_ssm: true, ..Tokens::default() };
        for text in ["env:PATH", "file:/etc/hostname", "credential:do"] {
            let refused = tokens.token(&text.parse().unwrap()).await.unwrap_err();
            assert!(matches!(refused, TokenError::OnlySsm(_)), "{refused}");
        }
    }
}
