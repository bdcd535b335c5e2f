//! The keys of the SSH account and of its host, which are the same in each night.

use domain::{
    configuration::TokenReference,
    ssh::{HostKeys, SshLogin},
};
use russh::keys::{
    PrivateKey, PublicKey,
    ssh_key::{LineEnding, private::Ed25519Keypair},
};

/// A key, by the seed that it is made from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Key {
    Host = 1,
    /// A key of the host that is not pinned.
    AnotherHost = 2,
    Change = 3,
    Read = 4,
}

impl Key {
    pub(crate) fn private(self) -> PrivateKey {
        PrivateKey::from(Ed25519Keypair::from_seed(&[self as u8; 32]))
    }

    pub(crate) fn public(self) -> PublicKey {
        self.private().public_key().clone()
    }
}

/// Returns the host's keys, for the configuration.
pub(crate) fn host_keys() -> HostKeys {
    let line = Key::Host.public().to_openssh().expect("a public key");
    let keys = serde_json::json!([line]);
    serde_json::from_value(keys).expect("a line of a public key")
}

/// Returns the private keys of an account, with where they are stored.
pub(crate) fn of_account(login: &SshLogin) -> Vec<(TokenReference, String)> {
    let text =
        |key: Key| key.private().to_openssh(LineEnding::LF).expect("a private key").to_string();
    let read_key = login.read_key.iter().map(|at| (at.clone(), text(Key::Read)));
    read_key.chain([(login.key.clone(), text(Key::Change))]).collect()
}
