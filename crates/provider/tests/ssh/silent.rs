//! Hosts that do not answer, or do not answer as an SSH server: nothing here needs one.

use std::{
    collections::BTreeSet,
    net::{SocketAddr, TcpListener as Blocking, TcpStream as Socket},
    sync::atomic::{AtomicI64, Ordering},
};

use domain::ResourceKind;
use jiff::Timestamp;
use provider::{Client, Reading, http_client};
use serde_json::Map;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;
use crate::hostile::{host_key, private_key};

fn at(port: u16, machine: Value, changes: Value) -> Api {
    let mut login = json!({
        "machines": { "m": machine },
        "connect_timeout": "300ms",
    });
    let Value::Object(changes) = changes else {
        panic!("changes are an object");
    };
    login.as_object_mut().unwrap().extend(changes);
    api(super::login(port, USER, &[host_key()], login), &private_key())
}

/// A port whose listener accepts no more connections, and what keeps it that way.
fn full() -> (SocketAddr, Blocking, Vec<Socket>) {
    let listener = Blocking::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let connect = || Socket::connect_timeout(&address, Duration::from_millis(100)).ok();
    let waiting = std::iter::from_fn(connect).take(10_000).collect();
    (address, listener, waiting)
}

#[tokio::test]
async fn a_host_that_does_not_answer_is_stopped_only_where_the_account_says_so() {
    let (full, _listener, _waiting) = full();
    for silent in [CLOSED.parse().unwrap(), full] {
        let changes = || json!({ "host": silent.ip() });
        let at = |machine| at(silent.port(), machine, changes());
        let machine = |means: &str| {
            let mut machine = machine("start", "status");
            machine["unreachable_means"] = json!(means);
            machine
        };
        let api = at(machine("unknown"));
        let error = api.observe_all().await.unwrap_err();
        assert_eq!(failure(&error), Some(Failure::Unanswered));
        assert_discreet(&error);
        let error = start(&api).await.unwrap_err();
        assert_eq!(kind(&error), "not accepted: Unanswered");
        assert_discreet(&error);
        let api = at(machine("stopped"));
        assert_eq!(state(&api).await.unwrap(), State::Silent);
        assert_eq!(kind(&start(&api).await.unwrap_err()), "not accepted: Unanswered");
    }
}

#[tokio::test]
async fn a_port_that_is_open_is_a_machine_that_runs_whatever_the_host_does() {
    let listener = Blocking::bind("127.0.0.1:0").unwrap();
    let mut machine = machine("start", "status");
    machine["unreachable_means"] = json!("stopped");
    machine["probe"] = json!(listener.local_addr().unwrap().to_string());
    let closed: SocketAddr = CLOSED.parse().unwrap();
    let changes = json!({ "host": closed.ip(), "connect_timeout": "10s" });
    let api = at(closed.port(), machine, changes);
    assert_eq!(state(&api).await.unwrap(), State::Running);
}

/// Starts a machine on a host that sends these bytes and then waits. Returns the error, and whether
/// the client disconnected in time.
async fn speaking(bytes: &'static [u8], repeat: bool) -> (String, bool) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let host = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(bytes).await.unwrap();
        while repeat && stream.write_all(bytes).await.is_ok() {
            tokio::task::yield_now().await;
        }
        // Read until the client is gone.
        let mut heard = [0; 4096];
        while stream.read(&mut heard).await.is_ok_and(|read| read > 0) {}
    });
    // Silence after a connection does not mean a stopped machine.
    let mut machine = machine("start", "status");
    machine["unreachable_means"] = json!("stopped");
    let api = at(port, machine, json!({}));
    let error = start(&api).await.unwrap_err();
    assert_discreet(&error);
    let is_left = timeout(Duration::from_secs(5), host).await.is_ok();
    (kind(&error), is_left)
}

#[tokio::test]
async fn a_host_that_never_greets_is_left_in_time() {
    let handshake = ("not accepted: Handshake".to_owned(), true);
    assert_eq!(speaking(b"", false).await, handshake);
    assert_eq!(speaking(b"SSH-2.0-a", false).await, handshake);
    // A greeting, and then nothing: the client waits for the first packet.
    assert_eq!(speaking(b"SSH-2.0-a\r\n", false).await, handshake);
}

#[tokio::test]
async fn a_host_that_greets_without_end_is_left() {
    let handshake = ("not accepted: Handshake".to_owned(), true);
    assert_eq!(speaking(b"welcome\r\n", true).await, handshake);
    assert_eq!(speaking(b"welcome ", true).await, handshake);
    assert_eq!(speaking(b"HTTP/1.1 400 Bad Request\r\n\r\n", false).await, handshake);
}

#[tokio::test]
async fn a_host_that_does_not_greet_is_never_stopped() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut machine = machine("start", "status");
    machine["unreachable_means"] = json!("stopped");
    let api = at(listener.local_addr().unwrap().port(), machine, json!({}));
    let error = state(&api).await.unwrap_err();
    assert_eq!(failure(&error), Some(Failure::Handshake));
}

#[tokio::test]
async fn a_name_for_a_loopback_address_is_not_connected_to() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // The resolver accepts a number as an address: nothing in the text says loopback.
    let changes = json!({ "host": "2130706433", "allow_private_hosts": false });
    let api = at(port, machine("start", "status"), changes.clone());
    let error = start(&api).await.unwrap_err();
    assert_eq!(kind(&error), "not accepted: Forbidden");
    let nothing = timeout(Duration::from_millis(50), listener.accept()).await;
    assert!(nothing.is_err(), "a connection was made");
    let mut probed = machine("start", "status");
    probed.as_object_mut().unwrap().remove("status");
    probed["probe"] = json!(format!("2130706433:{port}"));
    probed["unreachable_means"] = json!("stopped");
    let state = state(&at(port, probed, changes)).await.unwrap();
    assert_eq!(format!("{state:?}"), "Unknown(NotProbed(Forbidden))");
}

#[tokio::test]
async fn a_name_without_an_address_says_nothing_of_its_machines() {
    let mut machine = machine("start", "status");
    machine["unreachable_means"] = json!("stopped");
    let api = at(22, machine, json!({ "host": "no-such-host.invalid" }));
    let error = state(&api).await.unwrap_err();
    assert_eq!(failure(&error), Some(Failure::Unresolved));
    assert!(!everything(&error).contains("no-such-host"));
}

#[test]
fn a_login_that_contradicts_itself_makes_no_client() {
    let private = json!({ "allow_private_hosts": false });
    let login = Arc::new(super::login(22, USER, &[host_key()], private));
    let error = Api::new(login, private_key().into()).unwrap_err();
    assert!(matches!(error, provider::ssh::SetupError::Login(_)), "{error:?}");
    assert_discreet(&error);
    // It has the length of a point on the curve but is not one.
    let pin = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBTXC50M2X/Zl8Eb62HKW6u3gfKPyGyI5H9v9JsVHi0EOjJpBu8oYws9jeddN9ByFVw2yXPuNAspwULU9s7j21oA=";
    let login = Arc::new(super::login(22, USER, &[pin.to_owned()], json!({})));
    let error = Api::new(login, private_key().into()).unwrap_err();
    assert_eq!(error, provider::ssh::SetupError::HostKey);
}

#[test]
fn a_key_that_cannot_be_used_is_refused_without_being_repeated() {
    let login = Arc::new(super::login(22, USER, &[host_key()], json!({})));
    let cut: String = private_key().lines().take(3).collect();
    for key in ["", "secret-passphrase", &cut] {
        let error = Api::new(login.clone(), key.into()).unwrap_err();
        assert_eq!(error, provider::ssh::SetupError::Key);
        assert_discreet(&error);
    }
    for key in crate::hostile::unusable_keys() {
        let error = Api::new(login.clone(), key.into()).unwrap_err();
        assert_eq!(error, provider::ssh::SetupError::Key);
    }
    let api = Api::new(login, private_key().trim_end().into()).unwrap();
    assert_eq!(format!("{api:?}"), "Api { .. }");
}

#[tokio::test]
async fn machines_for_which_a_list_has_no_time_are_unknown_and_come_early_in_another() {
    let machine = json!({
        "start": "start",
        "stop": "stop",
        "probe": CLOSED,
        "unreachable_means": "stopped",
    });
    let machines: Map<_, _> = (0..40).map(|n| (format!("m{n:02}"), machine.clone())).collect();
    let login = login(9, USER, &[host_key()], json!({ "machines": machines }));
    let client = Client::ssh(login, private_key().into(), http_client().unwrap()).unwrap();
    let mut asked = BTreeSet::new();
    for minute in [0, 5, 10, 15, 20] {
        // A second passes at each look at the clock.
        let second = AtomicI64::new(minute * 60);
        let now = || Timestamp::from_second(second.fetch_add(1, Ordering::Relaxed)).unwrap();
        let until = Some(Timestamp::from_second(minute * 60 + 30).unwrap());
        let reading = Reading { now: &now, until, read: &|_| () };
        let listed = client.list(&[ResourceKind::Machine], reading).await.unwrap();
        assert_eq!(listed.looks.len(), 40);
        let (late, in_time): (Vec<_>, Vec<_>) =
            listed.looks.into_iter().partition(|look| look.resource.busy.is_some());
        let said = late[0].resource.busy.as_ref().unwrap().to_string();
        assert!(said.contains("no time to ask"), "{said}");
        asked.extend(in_time.into_iter().map(|look| look.resource.name));
    }
    assert_eq!(asked.len(), 40);
}
