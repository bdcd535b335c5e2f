//! Servers that violate the protocol can make a result unknown, and nothing worse.

use std::borrow::Cow;

use russh::{Preferred, cipher, kex, keys::PrivateKey, mac};

use super::*;
use crate::hostile::{
    Behavior, Hostile, Opened, certificate, host_key, key, private_key, speaking,
};

#[tokio::test]
async fn a_command_has_one_connection_one_key_one_channel_and_nothing_else() {
    let mut server = Hostile::start(Behavior::Ends(0)).await;
    assert_eq!(start(&server.api()).await.unwrap(), PRINTED);
    assert_eq!(server.seen(1).await, ["begin", "key", "channel", "start", "end"]);
    assert_eq!(state(&server.api()).await.unwrap(), State::Running);
    assert_eq!(server.seen(1).await, ["begin", "key", "channel", "status", "end"]);
}

#[tokio::test]
async fn a_refused_key_is_not_followed_by_another_attempt() {
    for behavior in [Behavior::RefusesKey, Behavior::WantsMore] {
        let mut server = Hostile::start(behavior).await;
        let error = start(&server.api()).await.unwrap_err();
        assert!(error.is_about_token(), "{error:?}");
        assert_discreet(&error);
        assert_eq!(server.seen(1).await, ["begin", "key", "end"], "{behavior:?}");
    }
}

fn one_machine() -> Value {
    json!({ "m": machine("start", "status") })
}

#[tokio::test]
async fn an_exit_code_counts_once_and_only_after_the_command_was_accepted() {
    for (behavior, expected) in [
        (Behavior::EndsBeforeCommand, "unknown: OutOfOrder"),
        (Behavior::EndsBeforeAccepting, "unknown: OutOfOrder"),
        (Behavior::EndsAndRefuses, "unknown: OutOfOrder"),
        (Behavior::EndsTwice, "unknown: OutOfOrder"),
        (Behavior::EndsAndSignals, "unknown: OutOfOrder"),
        (Behavior::Closes, "unknown: NoExitCode"),
        (Behavior::Hangs, "unknown: TimedOut"),
        (Behavior::RefusesCommand, "not accepted: NotRun"),
        (Behavior::RefusesChannel, "not accepted: NoChannel"),
        (Behavior::HangsAtKey, "not accepted: Handshake"),
    ] {
        let mut server = Hostile::start(behavior).await;
        let api = server.api_with(match behavior {
            Behavior::Hangs => json!({ "machines": one_machine(), "command_timeout": "500ms" }),
            Behavior::HangsAtKey => {
                json!({ "machines": one_machine(), "connect_timeout": "500ms" })
            }
            _ => json!({ "machines": one_machine() }),
        });
        let error = start(&api).await.unwrap_err();
        assert_eq!(kind(&error), expected, "{behavior:?}");
        assert_discreet(&error);
        // A server that hangs at the key reads nothing, not even the end of the connection.
        if behavior != Behavior::HangsAtKey {
            server.seen(1).await;
        }
    }
}

#[tokio::test]
async fn a_forged_or_missing_exit_code_makes_no_machine_stopped() {
    for behavior in [
        Behavior::EndsBeforeCommand,
        Behavior::EndsBeforeAccepting,
        Behavior::EndsTwice,
        Behavior::Closes,
        Behavior::RefusesCommand,
        Behavior::RefusesChannel,
    ] {
        let server = Hostile::start(behavior).await;
        let mut machine = machine("start", "status");
        machine["unreachable_means"] = json!("stopped");
        let api = server.api_with(json!({ "machines": { "m": machine } }));
        let state = state(&api).await.unwrap();
        assert!(matches!(state, State::Unknown(_)), "{behavior:?}: {state:?}");
    }
}

#[tokio::test]
async fn a_host_that_refuses_or_is_another_one_has_no_stopped_machine() {
    let stopped = || {
        let mut machine = machine("start", "status");
        machine["unreachable_means"] = json!("stopped");
        json!({ "machines": { "m": machine } })
    };
    let server = Hostile::start(Behavior::RefusesKey).await;
    let error = state(&server.api_with(stopped())).await.unwrap_err();
    assert!(matches!(error, ProviderError::TokenRefused(_)), "{error:?}");
    let server = Hostile::with(Behavior::Ends(3), |config| config.keys = vec![key(3)]).await;
    let error = state(&server.api_with(stopped())).await.unwrap_err();
    assert!(matches!(error, ProviderError::Refused(_)), "{error:?}");
}

#[tokio::test]
async fn a_channel_that_the_server_opens_is_refused_and_ends_the_connection() {
    for kind_opened in [
        Opened::Session,
        Opened::Agent,
        Opened::X11,
        Opened::ForwardedTcp,
        Opened::ForwardedSocket,
        Opened::DirectTcp,
        Opened::DirectSocket,
    ] {
        let mut server = Hostile::start(Behavior::Opens(kind_opened)).await;
        let error = start(&server.api()).await.unwrap_err();
        assert_eq!(kind(&error), "unknown: Lost", "{kind_opened:?}");
        let seen = server.seen(1).await;
        assert!(!seen.contains(&"confirmed".to_owned()), "{kind_opened:?}: {seen:?}");
    }
}

/// Starts a machine at a server with these keys and certificates. Returns the outcome and what the
/// server was asked.
async fn with_keys(
    keys: Vec<PrivateKey>,
    certificates: Vec<russh::keys::Certificate>,
) -> (String, Vec<String>) {
    let mut server = Hostile::with(Behavior::Ends(0), |config| {
        config.keys = keys;
        config.certificates = certificates;
    })
    .await;
    let answer = start(&server.api()).await;
    let answer = answer.unwrap_or_else(|error| kind(&error));
    (answer, server.seen(1).await)
}

const CHANGED: &str = "refused: host-key-changed: the host shows a key that is not pinned";

#[tokio::test]
async fn neither_another_key_nor_a_certificate_stands_for_the_pinned_key() {
    let stranger = || certificate(&key(3), &key(1));
    for (keys, certificates, expected) in [
        (vec![key(1)], vec![], PRINTED),
        (vec![key(3)], vec![], CHANGED),
        // The pinned key as a certificate authority does not stand for the host.
        (vec![key(3)], vec![stranger()], CHANGED),
        // The pinned key counts by itself, next to its certificate.
        (vec![key(1)], vec![certificate(&key(1), &key(3))], PRINTED),
    ] {
        let (answer, seen) = with_keys(keys, certificates).await;
        assert_eq!(answer, expected);
        let is_shown = seen.contains(&"key".to_owned());
        assert_eq!(is_shown, answer == PRINTED, "{seen:?}");
    }
}

#[tokio::test]
async fn a_host_without_a_key_of_the_pinned_kind_is_another_host() {
    let mut random = russh::keys::key::safe_rng();
    let curve = russh::keys::EcdsaCurve::NistP256;
    let ecdsa = PrivateKey::random(&mut random, russh::keys::Algorithm::Ecdsa { curve });
    let (answer, seen) = with_keys(vec![ecdsa.unwrap()], vec![]).await;
    assert_eq!(answer, CHANGED);
    assert_eq!(seen, ["begin", "end"]);
}

#[tokio::test]
async fn a_server_cannot_talk_the_client_into_weak_algorithms() {
    let ctr: &[cipher::Name] = &[cipher::AES_256_CTR];
    let with = |cipher: &'static [cipher::Name], mac: &'static [mac::Name]| {
        speaking(|preferred| {
            preferred.cipher = Cow::Borrowed(cipher);
            preferred.mac = Cow::Borrowed(mac);
        })
    };
    let by = |kex: &'static [kex::Name]| speaking(|preferred| preferred.kex = Cow::Borrowed(kex));
    let weak: [(&str, Preferred); 9] = [
        ("no cipher", with(&[cipher::NONE], &[mac::HMAC_SHA512_ETM])),
        ("clear text", with(&[cipher::CLEAR], &[mac::HMAC_SHA512_ETM])),
        ("CBC", with(&[cipher::AES_256_CBC], &[mac::HMAC_SHA512_ETM])),
        ("no MAC", with(&[cipher::AES_256_CTR], &[mac::NONE])),
        ("SHA-1 MAC", with(&[cipher::AES_256_CTR], &[mac::HMAC_SHA1])),
        ("SHA-1 MAC after", with(&[cipher::AES_256_CTR], &[mac::HMAC_SHA1_ETM])),
        ("MAC before encryption", with(&[cipher::AES_256_CTR], &[mac::HMAC_SHA512])),
        ("no key exchange", by(&[kex::NONE])),
        ("SHA-1 key exchange", by(&[kex::DH_G14_SHA1])),
    ];
    for (weakness, preferred) in weak {
        let mut server =
            Hostile::with(Behavior::Ends(0), |config| config.preferred = preferred).await;
        let error = start(&server.api()).await.unwrap_err();
        assert_eq!(kind(&error), "not accepted: Handshake", "{weakness}");
        assert_eq!(server.seen(1).await, ["begin", "end"], "{weakness}");
    }
    // The algorithms that remain without all of these.
    let strong = speaking(|preferred| preferred.cipher = Cow::Borrowed(ctr));
    let server = Hostile::with(Behavior::Ends(0), |config| config.preferred = strong).await;
    assert_eq!(start(&server.api()).await.unwrap(), PRINTED);
}

#[tokio::test]
async fn without_strict_ordering_only_gcm_is_spoken() {
    let (chacha, gcm) = (&[cipher::CHACHA20_POLY1305], &[cipher::AES_256_GCM]);
    let ctr: &[cipher::Name] = &[cipher::AES_256_CTR];
    for (cipher, is_safe) in [(&chacha[..], false), (ctr, false), (&gcm[..], true)] {
        let lax = speaking(|preferred| {
            preferred.kex = Cow::Borrowed(&[kex::CURVE25519]);
            preferred.cipher = Cow::Borrowed(cipher);
        });
        let mut server = Hostile::with(Behavior::Ends(0), |config| config.preferred = lax).await;
        assert_eq!(start(&server.api()).await.is_ok(), is_safe, "{cipher:?}");
        let seen = server.seen(1).await;
        assert_eq!(seen.contains(&"key".to_owned()), is_safe, "{seen:?}");
    }
}

#[tokio::test]
async fn a_list_runs_at_most_sixteen_commands_at_once() {
    let machines: serde_json::Map<_, _> =
        (0..20).map(|number| (format!("m{number}"), machine("start", "status"))).collect();
    let mut server = Hostile::start(Behavior::Hangs).await;
    let api = server.api_with(json!({ "machines": machines, "command_timeout": "2s" }));
    let listed = api.observe_all().await.unwrap();
    assert_eq!(listed.len(), 20);
    let (mut open, mut most) = (0, 0);
    for event in server.seen(20).await {
        open += i32::from(event == "begin");
        open -= i32::from(event == "end");
        most = most.max(open);
    }
    assert_eq!(most, 16);
}

#[tokio::test]
async fn nothing_that_holds_output_shows_it_for_debugging() {
    let server = Hostile::start(Behavior::Ends(0)).await;
    let api = server.api();
    let accepted = api.run_command(&name("m"), MachineCommand::Start).await.unwrap();
    let observed = api.observe_one(&name("m")).await.unwrap();
    let shown = format!("{accepted:?} {observed:?} {api:?}");
    assert!(!shown.contains(PRINTED) && !shown.contains(USER), "{shown}");
    assert!(shown.contains("7 bytes kept"), "{shown}");
}

#[tokio::test]
async fn a_machine_without_the_command_is_not_asked() {
    let server = Hostile::start(Behavior::Ends(0)).await;
    let error = server.api().run_command(&name("m"), MachineCommand::Force).await.unwrap_err();
    assert_eq!(kind(&error), "refused: no-command: the machine has no such command");
    let api = api(login(server.port, USER, &[host_key()], json!({})), &private_key());
    assert_eq!(api.observe_all().await.unwrap(), []);
}
