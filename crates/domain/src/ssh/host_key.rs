//! A host's public key as OpenSSH writes it, validated down to the encoding of the key itself.

use std::{fmt, str::FromStr};

use base64ct::{Base64, Encoding as _};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::as_text;

/// The maximum length of a line with a key, in bytes: the longest key takes 232 in base64.
const LONGEST_LINE: usize = 1024;

/// The host key algorithms that the client can check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostKeyAlgorithm {
    /// `ssh-ed25519`
    Ed25519,
    /// `ecdsa-sha2-nistp256`
    EcdsaP256,
    /// `ecdsa-sha2-nistp384`
    EcdsaP384,
    /// `ecdsa-sha2-nistp521`
    EcdsaP521,
}

impl HostKeyAlgorithm {
    pub const ALL: [Self; 4] = [Self::Ed25519, Self::EcdsaP256, Self::EcdsaP384, Self::EcdsaP521];

    /// The name as OpenSSH writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ed25519 => "ssh-ed25519",
            Self::EcdsaP256 => "ecdsa-sha2-nistp256",
            Self::EcdsaP384 => "ecdsa-sha2-nistp384",
            Self::EcdsaP521 => "ecdsa-sha2-nistp521",
        }
    }

    /// Returns the parts of a key after its algorithm: the curve's name, if it has one, and the
    /// length of the point, in bytes (RFC 8709, RFC 5656).
    fn parts(self) -> (Option<&'static str>, usize) {
        match self {
            Self::Ed25519 => (None, 32),
            Self::EcdsaP256 => (Some("nistp256"), 65),
            Self::EcdsaP384 => (Some("nistp384"), 97),
            Self::EcdsaP521 => (Some("nistp521"), 133),
        }
    }
}

impl fmt::Display for HostKeyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One public key of a host: `ALGORITHM BASE64 [COMMENT]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(JsonSchema),
    schemars(
        inline,
        extend("maxLength" = LONGEST_LINE, "pattern" = r"^(ssh-ed25519|ecdsa-sha2-nistp(256|384|521)) AAAA[A-Za-z0-9+/]+=*( [^\x00-\x1f\x7f-\x9f]*)?$")
    )
)]
pub struct HostKey {
    algorithm: HostKeyAlgorithm,
    /// The key in SSH's own form (RFC 4253, section 6.6).
    blob: Vec<u8>,
    comment: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostKeyError {
    #[error(
        "invalid host key: write one line as in /etc/ssh/ssh_host_ed25519_key.pub, ALGORITHM and BASE64"
    )]
    Malformed,
    /// A line of `known_hosts`.
    #[error("host key after another word: write the line without the host's name, from `{0}` on")]
    KnownHosts(HostKeyAlgorithm),
    /// A certificate, which is only as trustworthy as its authority.
    #[error("host certificates are not accepted: give the host's own key, such as ssh-ed25519")]
    Certificate,
    /// An algorithm that the client does not check.
    #[error(
        "host key algorithm `{0}` is not accepted: give the host's key of ssh-ed25519, \
         ecdsa-sha2-nistp256, ecdsa-sha2-nistp384 or ecdsa-sha2-nistp521"
    )]
    Algorithm(String),
    #[error("host key of {0} whose second word is not base64: copy the whole line")]
    Base64(HostKeyAlgorithm),
    /// The second word does not hold such a key.
    #[error("host key that says {0} and holds something else: copy the whole line")]
    Content(HostKeyAlgorithm),
}

impl HostKey {
    #[must_use]
    pub fn algorithm(&self) -> HostKeyAlgorithm {
        self.algorithm
    }

    /// Returns the key in SSH's own form, as a host presents it.
    #[must_use]
    pub fn blob(&self) -> &[u8] {
        &self.blob
    }
}

fn algorithm(word: &str) -> Option<HostKeyAlgorithm> {
    HostKeyAlgorithm::ALL.into_iter().find(|algorithm| algorithm.as_str() == word)
}

impl FromStr for HostKey {
    type Err = HostKeyError;

    fn from_str(text: &str) -> Result<Self, HostKeyError> {
        let text = text.trim();
        if text.len() > LONGEST_LINE || text.chars().any(char::is_control) {
            return Err(HostKeyError::Malformed);
        }
        let mut words = text.splitn(3, ' ');
        let (Some(first), Some(second)) = (words.next(), words.next()) else {
            return Err(HostKeyError::Malformed);
        };
        let Some(algorithm) = algorithm(first) else {
            return Err(match algorithm(second) {
                Some(algorithm) => HostKeyError::KnownHosts(algorithm),
                None if first.contains("-cert-v0") => HostKeyError::Certificate,
                None if first.starts_with(['#', '|', '@']) => HostKeyError::Malformed,
                None => HostKeyError::Algorithm(first.chars().take(64).collect()),
            });
        };
        let blob = Base64::decode_vec(second).map_err(|_| HostKeyError::Base64(algorithm))?;
        if !is_key(&blob, algorithm) {
            return Err(HostKeyError::Content(algorithm));
        }
        let comment = words.next().map(str::trim).filter(|text| !text.is_empty());
        Ok(Self { algorithm, blob, comment: comment.map(str::to_owned) })
    }
}

/// Reports whether bytes have the form of a key of an algorithm, with nothing after it.
fn is_key(blob: &[u8], algorithm: HostKeyAlgorithm) -> bool {
    let mut rest = blob;
    let (curve, length) = algorithm.parts();
    let names = [Some(algorithm.as_str()), curve];
    let is_named =
        names.into_iter().flatten().all(|name| field(&mut rest) == Some(name.as_bytes()));
    let point = field(&mut rest);
    is_named && point.is_some_and(|point| point.len() == length) && rest.is_empty()
}

/// Takes the next field: its length in four bytes, then that many bytes.
fn field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (field, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(field)
}

impl fmt::Display for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.algorithm, Base64::encode_string(&self.blob))?;
        match &self.comment {
            Some(comment) => write!(f, " {comment}"),
            None => Ok(()),
        }
    }
}

as_text!(HostKey, HostKeyError);

/// The public keys of a host: one, or two while the host changes from one to the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<HostKey>", into = "Vec<HostKey>")]
#[cfg_attr(
    feature = "schema",
    derive(JsonSchema),
    schemars(inline, extend("minItems" = 1, "maxItems" = 2))
)]
pub struct HostKeys(Vec<HostKey>);

/// Not a valid number of host keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} host keys: give one, or two while the host changes its key")]
pub struct HostKeysError(pub usize);

impl HostKeys {
    pub fn iter(&self) -> impl Iterator<Item = &HostKey> {
        self.0.iter()
    }
}

impl TryFrom<Vec<HostKey>> for HostKeys {
    type Error = HostKeysError;

    fn try_from(keys: Vec<HostKey>) -> Result<Self, HostKeysError> {
        match keys.len() {
            1 | 2 => Ok(Self(keys)),
            number => Err(HostKeysError(number)),
        }
    }
}

impl From<HostKeys> for Vec<HostKey> {
    fn from(keys: HostKeys) -> Self {
        keys.0
    }
}
