//! How a host is identified, and how to talk to it: its pinned keys, and the accepted algorithms.

use std::{borrow::Cow, sync::Arc};

use domain::ssh::HostKeys;
use russh::{
    Channel, Names, Preferred, cipher,
    client::{ChannelOpenHandle, Config, Handler, Msg, Session},
    compression, kex,
    keys::{Algorithm, PrivateKey, PublicKey, PublicKeyOrCertificate},
    mac,
};
use secrecy::{ExposeSecret as _, SecretString};

use super::connection::TO_CHANGE;
use crate::command_failure::Failure;

/// Key exchanges, best first. The last entry requests strict ordering (CVE-2023-48795). A host that
/// does not agree to it gets no cipher under which packets can be dropped unseen.
const KEX: &[kex::Name] = &[
    kex::MLKEM768X25519_SHA256,
    kex::CURVE25519,
    kex::CURVE25519_PRE_RFC_8731,
    kex::EXTENSION_OPENSSH_STRICT_KEX_AS_CLIENT,
];

const CIPHERS: &[cipher::Name] =
    &[cipher::AES_256_GCM, cipher::CHACHA20_POLY1305, cipher::AES_256_CTR];

const MACS: &[mac::Name] = &[mac::HMAC_SHA512_ETM, mac::HMAC_SHA256_ETM];

/// How much a host may send before any of it is read, in bytes.
const WINDOW: u32 = 256 * 1024;

/// How many packets may wait for the reader.
const PACKETS: usize = 16;

/// A key that cannot be used. Reveals nothing about the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidKey;

/// Parses a private key, whose memory is overwritten when it is dropped.
pub(super) fn private_key(key: &SecretString) -> Result<PrivateKey, InvalidKey> {
    let key = PrivateKey::from_openssh(key.expose_secret().trim()).map_err(|_| InvalidKey)?;
    if key.is_encrypted() || key.algorithm() != Algorithm::Ed25519 {
        return Err(InvalidKey);
    }
    Ok(key)
}

/// The keys that a host may present.
#[derive(Debug)]
pub(super) struct Pins {
    keys: Vec<PublicKey>,
    /// The client's configuration, which offers the algorithms of those host keys alone.
    pub(super) config: Arc<Config>,
}

impl Pins {
    pub(super) fn of(keys: &HostKeys) -> Result<Self, InvalidKey> {
        let read = |blob: &[u8]| PublicKey::from_bytes(blob).map_err(|_| InvalidKey);
        let keys: Vec<_> = keys.iter().map(|key| read(key.blob())).collect::<Result<_, _>>()?;
        let config = Arc::new(config(keys.iter().map(PublicKey::algorithm).collect()));
        Ok(Self { keys, config })
    }

    fn has(&self, key: &PublicKey) -> bool {
        self.keys.iter().any(|pin| pin.key_data() == key.key_data())
    }
}

fn config(host_keys: Vec<Algorithm>) -> Config {
    Config {
        preferred: Preferred {
            kex: Cow::Borrowed(KEX),
            key: Cow::Owned(host_keys),
            host_key_certificates: Cow::Borrowed(&[]),
            cipher: Cow::Borrowed(CIPHERS),
            mac: Cow::Borrowed(MACS),
            compression: Cow::Borrowed(&[compression::NONE]),
        },
        window_size: WINDOW,
        channel_buffer_size: PACKETS,
        inactivity_timeout: Some(TO_CHANGE),
        ..Config::default()
    }
}

/// Handles the host's requests: checks its key and refuses everything else.
pub(super) struct Visitor(pub(super) Arc<Pins>);

/// A library error may quote the host, so none of its text is kept.
impl From<russh::Error> for Failure {
    fn from(error: russh::Error) -> Self {
        if let russh::Error::NoCommonAlgo { kind: russh::AlgorithmKind::Key, .. } = error {
            // The host has no key of a pinned algorithm.
            Self::HostKey
        } else {
            Self::Handshake
        }
    }
}

/// The library would accept most channels that a server opens. Dropping each one here refuses it.
impl Handler for Visitor {
    type Error = Failure;

    async fn check_server_key(&mut self, shown: &PublicKeyOrCertificate) -> Result<bool, Failure> {
        match shown {
            PublicKeyOrCertificate::PublicKey { key, .. } if self.0.has(key) => Ok(true),
            PublicKeyOrCertificate::PublicKey { .. } | PublicKeyOrCertificate::Certificate(_) => {
                Err(Failure::HostKey)
            }
        }
    }

    async fn kex_done(
        &mut self,
        _: Option<&[u8]>,
        names: &Names,
        _: &mut Session,
    ) -> Result<(), Failure> {
        if names.strict_kex() || names.cipher == cipher::AES_256_GCM {
            Ok(())
        } else {
            Err(Failure::Handshake)
        }
    }

    async fn server_channel_open_forwarded_tcpip(
        &mut self,
        _: Channel<Msg>,
        _: &str,
        _: u32,
        _: &str,
        _: u32,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Failure> {
        refuse(reply)
    }

    async fn server_channel_open_forwarded_streamlocal(
        &mut self,
        _: Channel<Msg>,
        _: &str,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Failure> {
        refuse(reply)
    }

    async fn server_channel_open_agent_forward(
        &mut self,
        _: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Failure> {
        refuse(reply)
    }

    async fn server_channel_open_session(
        &mut self,
        _: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Failure> {
        refuse(reply)
    }

    async fn server_channel_open_direct_tcpip(
        &mut self,
        _: Channel<Msg>,
        _: &str,
        _: u32,
        _: &str,
        _: u32,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Failure> {
        refuse(reply)
    }

    async fn server_channel_open_direct_streamlocal(
        &mut self,
        _: Channel<Msg>,
        _: &str,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Failure> {
        refuse(reply)
    }

    async fn server_channel_open_x11(
        &mut self,
        _: Channel<Msg>,
        _: &str,
        _: u32,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Failure> {
        refuse(reply)
    }
}

/// Refuses a channel and ends the connection: nothing was forwarded, so a server that opens one
/// violates the protocol.
fn refuse(reply: ChannelOpenHandle) -> Result<(), Failure> {
    drop(reply);
    Err(Failure::Handshake)
}

#[cfg(test)]
mod tests {
    use russh::keys::ssh_key::{certificate, private::Ed25519Keypair};

    use super::*;

    #[tokio::test]
    async fn a_certificate_is_refused_even_if_it_is_for_the_pinned_key_and_by_it() {
        let key: PrivateKey = Ed25519Keypair::from_seed(&[1; 32]).into();
        let pin = key.public_key().to_openssh().unwrap().parse().unwrap();
        let pins = Pins::of(&vec![pin].try_into().unwrap()).unwrap();
        let mut visitor = Visitor(Arc::new(pins));
        let data = key.public_key().key_data().clone();
        let mut certificate =
            certificate::Builder::new(vec![7; 32], data, 0, u64::MAX - 1).unwrap();
        certificate.cert_type(certificate::CertType::Host).unwrap();
        certificate.all_principals_valid().unwrap();
        let certificate = certificate.sign(&key).unwrap();
        let shown = PublicKeyOrCertificate::Certificate(certificate);
        let refused = Err(Failure::HostKey);
        assert_eq!(visitor.check_server_key(&shown).await, refused);
        let shown = key.public_key().clone().into();
        assert_eq!(visitor.check_server_key(&shown).await, Ok(true));
    }

    #[test]
    fn what_is_offered_has_integrity_and_neither_cbc_nor_sha1() {
        let pinned = config(vec![Algorithm::Ed25519]).preferred;
        let names = |names: &[&str]| names.join(" ");
        let kex: Vec<_> = pinned.kex.iter().map(AsRef::as_ref).collect();
        let ciphers: Vec<_> = pinned.cipher.iter().map(AsRef::as_ref).collect();
        let macs: Vec<_> = pinned.mac.iter().map(AsRef::as_ref).collect();
        let keys: Vec<_> = pinned.key.iter().map(Algorithm::as_str).collect();
        let compressions: Vec<_> = pinned.compression.iter().map(AsRef::as_ref).collect();
        assert_eq!(
            names(&kex),
            "mlkem768x25519-sha256 curve25519-sha256 curve25519-sha256@libssh.org \
             kex-strict-c-v00@openssh.com"
        );
        assert_eq!(
            names(&ciphers),
            "aes256-gcm@openssh.com chacha20-poly1305@openssh.com aes256-ctr"
        );
        assert_eq!(names(&macs), "hmac-sha2-512-etm@openssh.com hmac-sha2-256-etm@openssh.com");
        assert_eq!(names(&keys), "ssh-ed25519");
        assert_eq!(names(&compressions), "none");
        assert!(pinned.host_key_certificates.is_empty());
    }
}
