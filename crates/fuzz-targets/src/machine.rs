//! Machines over SSH: hosts, host keys, commands, limits, logins and private keys.

use domain::ssh::{
    CommandTimeout, ConnectTimeout, Deadline, Endpoint, Host, HostKey, OutputLimit, RemoteCommand,
    SshLogin, User,
};
use provider::{Client, ssh::SetupError};
use secrecy::SecretString;
use serde_json::json;
use testing::everything;

use crate::{
    check::{self, SECRET, read},
    provider::HTTP,
};

/// The lines around a private key in OpenSSH's format. The corpus has keys without them.
const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const END: &str = "-----END OPENSSH PRIVATE KEY-----";

/// Whatever a line parses as survives a round trip; the whole text is a login, a private key, or
/// neither.
pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for line in text.lines() {
        if let Some(key) = read::<HostKey>(line) {
            let name = key.algorithm().as_str().as_bytes();
            assert!(key.blob().get(4..).is_some_and(|rest| rest.starts_with(name)));
        }
        if let Some(endpoint) = read::<Endpoint>(line) {
            assert_ne!(endpoint.port, 0);
        }
        if let Some(command) = read::<RemoteCommand>(line) {
            assert!(!command.as_str().chars().any(char::is_control));
        }
        if let Some(user) = read::<User>(line) {
            assert!(!user.as_str().starts_with('-'));
        }
        if let Some(host) = read::<Host>(line) {
            assert!(!host.as_str().starts_with('-') && !host.as_str().contains(['@', '/', '%']));
        }
        read::<ConnectTimeout>(line);
        read::<CommandTimeout>(line);
        read::<Deadline>(line);
        read::<OutputLimit>(line);
    }
    if let Ok(login) = serde_json::from_str::<SshLogin>(&text) {
        check::json_round_trips(&login);
        if let Err(error) = login.check() {
            check::has_message(&error);
        }
        // A key that cannot be used is refused, whatever the login says.
        let refused = Client::ssh(login, SECRET.into(), HTTP.clone()).map(|_| ());
        let refused = refused.expect_err("it is no private key");
        assert!(!everything(&refused).contains(SECRET));
    }
    check_key(&text);
    check_key(&format!("{BEGIN}\n{text}{END}\n"));
}

/// Reads a text as a private key, the way a login does.
fn check_key(text: &str) {
    const HOST_KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID2MFepRAu6qdgmRqxbuktBQOdN2QdL0zSZ1xcsO/yTw";
    let login = json!({
        "host": "jump.example.net",
        "user": "offhours",
        "key": "env:KEY",
        "host_keys": [HOST_KEY],
    });
    let login: SshLogin = serde_json::from_value(login).expect("a login");
    match Client::ssh(login, SecretString::from(text), HTTP.clone()) {
        Ok(client) => assert!(!format!("{client:?}").contains("PRIVATE KEY")),
        Err(error) => assert_eq!(error, SetupError::Key),
    }
}
