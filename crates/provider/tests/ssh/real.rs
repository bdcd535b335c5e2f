//! The client against OpenSSH's server, through a gate like the one the documentation recommends.

use std::net::{SocketAddr, TcpListener};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use testing::sshd::{self, Setup, Sshd};

use super::*;

/// A login with the keys of a server, whose machine `m` has these commands.
fn at(sshd: &Sshd, machine: Value, changes: Value) -> Api {
    let mut login = json!({ "machines": { "m": machine } });
    let Value::Object(changes) = changes else {
        panic!("changes are an object");
    };
    login.as_object_mut().unwrap().extend(changes);
    let login = super::login(sshd.port(), sshd.user(), &[sshd.host_key()], login);
    api(login, &sshd.key())
}

/// A server whose gate has a command for every way to end.
fn endings() -> Setup {
    let exits = ["0", "1", "3", "4", "75", "77", "126", "127", "255"];
    let setup = exits.iter().fold(Setup::default(), |setup, code| {
        setup.command(&format!("exit {code}"), &format!("echo {PRINTED}; exit {code}"))
    });
    setup
        .command("signal", "kill -KILL $$")
        .command("hang", "echo $$ > \"$DIR/hanging\"; exec sleep 15")
        .command("cut", &format!("echo {PRINTED}; kill -KILL $PPID; exec sleep 15"))
}

/// A shorter timeout for a command that hangs than for one that is merely slow.
fn time_for(command: &str) -> Value {
    let time = if command == "hang" { "500ms" } else { "10s" };
    json!({ "command_timeout": time })
}

#[tokio::test]
async fn a_start_is_what_its_exit_code_says() {
    let Some(sshd) = sshd::start(endings()) else {
        return;
    };
    for (command, expected) in [
        ("exit 1", "unknown: answer to ssh start m not understood: exit code 1"),
        ("exit 3", "unknown: answer to ssh start m not understood: exit code 3"),
        ("exit 75", "busy: 75 exit-code: busy, try again later"),
        ("exit 77", "refused: 77 exit-code: not permitted"),
        ("exit 126", "refused: 126 exit-code: command cannot be run"),
        ("exit 127", "refused: 127 exit-code: command not found"),
        ("exit 255", "unknown: answer to ssh start m not understood: exit code 255"),
        ("signal", "unknown: Signal"),
        ("hang", "unknown: TimedOut"),
        ("cut", "unknown: Lost"),
        ("not on the list", "refused: 77 exit-code: not permitted"),
        ("exit 0; exit 0", "refused: 77 exit-code: not permitted"),
    ] {
        let api = at(&sshd, machine(command, "exit 0"), time_for(command));
        let error = start(&api).await.unwrap_err();
        assert_eq!(kind(&error), expected, "{command}");
        assert_discreet(&error);
    }
    let api = at(&sshd, machine("exit 0", "exit 0"), json!({}));
    assert_eq!(start(&api).await.unwrap(), PRINTED);
}

#[tokio::test]
async fn a_machine_is_stopped_only_where_its_status_says_3() {
    let Some(sshd) = sshd::start(endings()) else {
        return;
    };
    for (command, expected) in [
        ("exit 0", "Running"),
        ("exit 3", "Stopped"),
        ("exit 1", "Unknown(ExitCode(1))"),
        ("exit 4", "Unknown(ExitCode(4))"),
        ("exit 127", "Unknown(ExitCode(127))"),
        ("signal", "Unknown(Failed(Signal))"),
        ("hang", "Unknown(Failed(TimedOut))"),
        ("cut", "Unknown(Failed(Lost))"),
        ("not on the list", "Unknown(ExitCode(77))"),
    ] {
        // This holds even where silence means stopped, because the host answered.
        for means in ["unknown", "stopped"] {
            let mut machine = machine("exit 0", command);
            machine["unreachable_means"] = json!(means);
            let api = at(&sshd, machine, time_for(command));
            let state = state(&api).await.unwrap();
            assert_eq!(format!("{state:?}"), expected, "{command}");
        }
    }
}

#[tokio::test]
async fn machines_start_and_stop_and_are_listed_by_name() {
    let Some(sshd) = sshd::start(Setup::default().machines(&["a", "b", "c"])) else {
        return;
    };
    let of = |name: &str| {
        json!({
            "start": format!("start {name}"),
            "stop": format!("stop {name}"),
            "force": format!("force {name}"),
            "status": format!("status {name}"),
        })
    };
    // One of them is not on the gate's list, which does not affect the others.
    let machines = json!({ "c": of("c"), "a": of("a"), "b": of("b"), "d": of("d") });
    let login =
        login(sshd.port(), sshd.user(), &[sshd.host_key()], json!({ "machines": machines }));
    let api = api(login, &sshd.key());
    let states = async || -> Vec<String> {
        let listed = api.observe_all().await.unwrap();
        let state =
            |observed: &provider::ssh::Observed| format!("{} {:?}", observed.name, observed.state);
        listed.iter().map(state).collect()
    };
    let last = "d Unknown(ExitCode(77))";
    assert_eq!(states().await, ["a Stopped", "b Stopped", "c Stopped", last]);
    api.run_command(&name("b"), MachineCommand::Start).await.unwrap();
    api.run_command(&name("c"), MachineCommand::Start).await.unwrap();
    assert_eq!(states().await, ["a Stopped", "b Running", "c Running", last]);
    api.run_command(&name("b"), MachineCommand::Stop).await.unwrap();
    api.run_command(&name("c"), MachineCommand::Force).await.unwrap();
    assert_eq!(states().await, ["a Stopped", "b Stopped", "c Stopped", last]);
    assert_eq!(api.observe_one(&name("e")).await.unwrap(), None);
    let error = api.run_command(&name("e"), MachineCommand::Stop).await.unwrap_err();
    assert_eq!(kind(&error), "not accepted: not found");
}

#[tokio::test]
async fn a_host_with_another_key_is_refused_before_it_learns_who_asks() {
    let Some(sshd) = sshd::start(endings()) else {
        return;
    };
    let pins = json!({ "host_keys": [sshd.other_host_key()] });
    let api = at(&sshd, machine("exit 0", "exit 0"), pins);
    let error = start(&api).await.unwrap_err();
    let expected = "refused: host-key-changed: the host shows a key that is not pinned";
    assert_eq!(kind(&error), expected);
    assert_discreet(&error);
    let error = api.observe_all().await.unwrap_err();
    assert!(
        matches!(&error, ProviderError::Refused(refusal) if refusal.code == provider::ssh::HOST_KEY_CHANGED)
    );
    let log = sshd.log();
    assert!(log.contains("[preauth]"), "{log}");
    assert!(!log.contains("userauth-request"), "{log}");
}

#[tokio::test]
async fn a_host_may_show_the_second_of_two_pinned_keys() {
    let Some(sshd) = sshd::start(endings()) else {
        return;
    };
    let pins = json!({ "host_keys": [sshd.other_host_key(), sshd.host_key()] });
    let api = at(&sshd, machine("exit 0", "exit 0"), pins);
    assert_eq!(state(&api).await.unwrap(), State::Running);
}

#[tokio::test]
async fn a_host_is_asked_for_the_pinned_kind_of_key_alone() {
    let Some(sshd) = sshd::start(Setup { ecdsa: true, ..endings() }) else {
        return;
    };
    let pins = json!({ "host_keys": [sshd.ecdsa_host_key()] });
    let api = at(&sshd, machine("exit 0", "exit 0"), pins);
    assert_eq!(state(&api).await.unwrap(), State::Running);
    assert!(sshd.log().contains("host key algorithm: ecdsa-sha2-nistp256"), "{}", sshd.log());
}

#[tokio::test]
async fn a_key_that_the_host_does_not_know_is_refused_after_one_attempt() {
    let Some(sshd) = sshd::start(endings()) else {
        return;
    };
    let machines = json!({ "machines": { "m": machine("exit 0", "exit 0") } });
    let login = login(sshd.port(), sshd.user(), &[sshd.host_key()], machines);
    let api = api(login, &sshd.other_key());
    let error = start(&api).await.unwrap_err();
    assert!(error.is_about_token(), "{error:?}");
    assert_discreet(&error);
    let error = api.observe_all().await.unwrap_err();
    assert!(matches!(&error, ProviderError::TokenRefused(_)), "{error:?}");
    let attempts = sshd.log().matches("attempt ").count();
    assert_eq!(attempts, 2, "one for each connection: {}", sshd.log());
    assert!(!sshd.log().contains("method none"));
}

#[tokio::test]
async fn a_flood_is_read_to_its_end_and_its_beginning_is_kept() {
    let flood = "head -c 100000000 /dev/zero | tr '\\0' x; echo end >&2; exit 0";
    let Some(sshd) = sshd::start(Setup::default().command("flood", flood)) else {
        return;
    };
    let limits = json!({ "command_timeout": "60s", "output_limit": "1KiB" });
    let api = at(&sshd, machine("flood", "flood"), limits);
    let accepted = api.run_command(&name("m"), MachineCommand::Start).await.unwrap();
    assert_eq!(accepted.output.shown(), "x".repeat(1024));
    assert_eq!(accepted.output.dropped(), 100_000_000 + 4 - 1024);
}

#[tokio::test]
async fn output_is_shown_in_one_line_without_control_characters() {
    let print = r"printf 'a\033[2Jb\r\nc\342\200\256d\0e\377'";
    let setup = Setup::default()
        .command("out", &format!("{print}; exit 0"))
        .command("err", &format!("{print} >&2; exit 0"));
    let Some(sshd) = sshd::start(setup) else {
        return;
    };
    for command in ["out", "err"] {
        let api = at(&sshd, machine(command, "status"), json!({}));
        assert_eq!(
            start(&api).await.unwrap(),
            "a\\u001b[2Jb  c\\u202ed\\u0000e\u{fffd}",
            "{command}"
        );
    }
}

#[tokio::test]
async fn a_process_left_behind_does_not_hold_the_answer_back() {
    let Some(sshd) = sshd::start(Setup::default().command("leave", "sleep 15 & exit 0")) else {
        return;
    };
    let api = at(&sshd, machine("leave", "leave"), json!({}));
    assert_eq!(start(&api).await.unwrap(), "");
}

#[tokio::test]
async fn a_server_that_ends_between_the_command_and_its_exit_code_leaves_it_unknown() {
    let hang = "echo $PPID > \"$DIR/session\"; exec sleep 15";
    let Some(sshd) = sshd::start(Setup::default().command("hang", hang)) else {
        return;
    };
    let api = at(&sshd, machine("hang", "hang"), json!({}));
    let mut running: FuturesUnordered<_> = [start(&api)].into_iter().collect();
    let mut is_ended = false;
    let ended = loop {
        let step = tokio::time::timeout(std::time::Duration::from_millis(10), running.next());
        match step.await {
            Ok(ended) => break ended.unwrap(),
            Err(_) => is_ended = is_ended || sshd.end_process_in("session"),
        }
    };
    assert!(is_ended, "the command ran");
    assert_eq!(kind(&ended.unwrap_err()), "unknown: Lost");
}

#[tokio::test]
async fn weak_algorithms_are_not_spoken() {
    for line in [
        "Ciphers aes128-cbc,aes256-cbc",
        "Ciphers aes256-ctr\nMACs hmac-sha1,hmac-sha1-etm@openssh.com",
        "KexAlgorithms diffie-hellman-group14-sha1,diffie-hellman-group1-sha1",
    ] {
        let mut setup = endings();
        setup.lines.push(line.to_owned());
        let Some(sshd) = sshd::start(setup) else {
            return;
        };
        let api = at(&sshd, machine("exit 0", "exit 0"), json!({}));
        let error = start(&api).await.unwrap_err();
        assert_eq!(kind(&error), "not accepted: Handshake", "{line}");
        assert!(!sshd.log().contains("userauth-request"), "{line}");
    }
}

#[tokio::test]
async fn a_probe_fills_in_where_the_status_is_unknown() {
    let Some(sshd) = sshd::start(endings()) else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let open = listener.local_addr().unwrap();
    let closed: SocketAddr = CLOSED.parse().unwrap();
    for (status, probe, means, expected) in [
        (None, open, "stopped", "Running"),
        (None, closed, "stopped", "Silent"),
        (Some("exit 0"), closed, "stopped", "Running"),
        (Some("exit 3"), open, "unknown", "Stopped"),
        (Some("exit 4"), open, "unknown", "Running"),
        (Some("exit 4"), closed, "unknown", "Unknown(ExitCode(4))"),
        (Some("exit 4"), closed, "stopped", "Silent"),
    ] {
        let mut machine = machine("exit 0", "exit 0");
        match status {
            Some(status) => machine["status"] = json!(status),
            None => drop(machine.as_object_mut().unwrap().remove("status")),
        }
        machine["probe"] = json!(probe.to_string());
        machine["unreachable_means"] = json!(means);
        let state = state(&at(&sshd, machine, json!({}))).await.unwrap();
        assert_eq!(format!("{state:?}"), expected, "{status:?} {probe} {means}");
    }
}
