//! What a user may write in an SSH account, and the errors for what they may not.

use serde_json::{Value, json};

use super::*;

const ED25519: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID2MFepRAu6qdgmRqxbuktBQOdN2QdL0zSZ1xcsO/yTw lab";
const P256: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBDXC50M2X/Zl8Eb62HKW6u3gfKPyGyI5H9v9JsVHi0EOjJpBu8oYws9jeddN9ByFVw2yXPuNAspwULU9s7j21oA=";
const P384: &str = "ecdsa-sha2-nistp384 AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBKcVCPKR04lXbKcaLvzEEGXKmaz8dIaEOv56eRLK3vro24z9lBBGHWj2ZBFMWMMHuOBxqdl2zmtW7znuSDSxwx4ERSnlX0i/L60fjcIyM2n0N679sIKXek5E8kwJGSxN4Q== lab";
const P521: &str = "ecdsa-sha2-nistp521 AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1MjEAAACFBAHNDKpe12FAeLU0aqTXruXZByuWx3aBzDmji1NNOLxfPjcfCFZ72S3hudxuyfLAecBgD+EflC/y1Tbv+0xRYIYn1gDcbeoNRE2Z99DzhbdW4oJsAYeJhdKaai3cqxvlBWJOJjcu2DwXwhpAiIoY26Ml/rDmznF8SRGcyBNR+mr4BUsraA== lab";

fn login() -> Value {
    json!({
        "host": "jump.example.net",
        "user": "offhours",
        "key": "ssm:/offhours/lab-key",
        "host_keys": [ED25519],
        "machines": {
            "build-01": { "start": "start build-01", "stop": "stop build-01", "status": "status build-01" },
        },
    })
}

fn read(login: &Value) -> SshLogin {
    serde_json::from_value(login.clone()).unwrap()
}

#[test]
fn what_is_not_written_has_its_default() {
    let login = read(&login());
    assert_eq!(login.port, 22);
    assert_eq!(login.connect_timeout.to_string(), "10s");
    assert_eq!(login.command_timeout.to_string(), "1m");
    assert_eq!(login.output_limit.to_string(), "4KiB");
    assert!(!login.allow_private_hosts);
    let machine = &login.machines[&"build-01".parse().unwrap()];
    assert_eq!(machine.unreachable_means, Unreachable::Unknown);
    assert_eq!(machine.start_deadline.get().as_secs(), 600);
    assert_eq!(login.check(), Ok(()));
}

#[test]
fn a_login_is_written_as_it_was_read() {
    let login = login();
    assert_eq!(serde_json::to_value(read(&login)).unwrap(), login);
}

#[test]
fn host_keys_of_the_four_algorithms_print_as_they_were_read() {
    for line in [ED25519, P256, P384, P521] {
        let key: HostKey = line.parse().unwrap();
        assert_eq!(key.to_string(), line);
        assert!(line.starts_with(key.algorithm().as_str()));
    }
}

#[test]
fn a_line_that_pins_nothing_is_refused_with_what_to_write() {
    #[track_caller]
    fn check(line: &str, expected: &str) {
        let error = line.parse::<HostKey>().unwrap_err().to_string();
        assert!(error.contains(expected), "{line}: {error}");
    }
    check("", "ALGORITHM and BASE64");
    check("ssh-ed25519", "ALGORITHM and BASE64");
    check(&format!("{ED25519}\n{P256}"), "one line");
    check(&format!("jump.example.net {ED25519}"), "without the host's name");
    check(
        "ssh-rsa AAAAB3NzaC1yc2E=",
        "`ssh-rsa` is not accepted: give the host's key of ssh-ed25519",
    );
    check("ssh-dss AAAA", "`ssh-dss` is not accepted");
    check("sk-ssh-ed25519@openssh.com AAAA", "is not accepted");
    check("ssh-ed25519-cert-v01@openssh.com AAAA", "certificates are not accepted");
    check("@cert-authority * ssh-ed25519 AAAA", "ALGORITHM and BASE64");
    check("ssh-ed25519 AAAA!", "not base64");
    check("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5", "holds something else");
    check("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID2M", "holds something else");
    // Another algorithm inside, and a byte after the key.
    let (_, p256) = P256.split_once(' ').unwrap();
    check(&format!("ssh-ed25519 {p256}"), "holds something else");
    let longer = ED25519.replace("/yTw lab", "/yTwAA== lab");
    check(&longer, "holds something else");
}

#[test]
fn a_host_has_one_key_or_two() {
    for (keys, fits) in [
        (vec![], false),
        (vec![ED25519], true),
        (vec![ED25519, P256], true),
        (vec![ED25519, P256, P384], false),
    ] {
        let mut login = login();
        login["host_keys"] = json!(keys);
        let read = serde_json::from_value::<SshLogin>(login);
        assert_eq!(read.is_ok(), fits, "{} keys", keys.len());
    }
}

#[test]
fn a_command_is_one_line_of_512_bytes_at_most() {
    for text in ["start build-01", "sudo /usr/bin/systemctl --no-block poweroff", &"x".repeat(512)]
    {
        let command: RemoteCommand = text.parse().unwrap();
        assert_eq!(command.as_str(), text);
    }
    for (text, expected) in [
        ("", RemoteCommandError::Empty),
        ("  ", RemoteCommandError::Empty),
        ("stop\nrm -rf /", RemoteCommandError::Control),
        ("stop\0", RemoteCommandError::Control),
        ("stop\r", RemoteCommandError::Control),
        ("stop\u{9b}", RemoteCommandError::Control),
        (&"x".repeat(513), RemoteCommandError::TooLong(513)),
        (&"ä".repeat(257), RemoteCommandError::TooLong(514)),
    ] {
        assert_eq!(text.parse::<RemoteCommand>(), Err(expected), "{text:?}");
    }
}

#[test]
fn hosts_of_the_callers_own_surroundings_need_to_be_allowed() {
    for (host, private) in [
        ("jump.example.net", false),
        ("10.0.0.9", false),
        ("192.168.1.2", false),
        ("fd00::9", false),
        ("localhost.example.net", false),
        ("127.0.0.1", true),
        ("127.9.8.7", true),
        ("0.0.0.0", true),
        ("169.254.169.254", true),
        ("169.254.1.1", true),
        ("::1", true),
        ("::", true),
        ("fe80::1", true),
        ("fd00:ec2::254", true),
        ("FD00:0EC2:0:0::254", true),
        ("::ffff:169.254.169.254", true),
        ("168.63.129.16", true),
        ("::ffff:168.63.129.16", true),
        ("100.100.100.200", true),
        ("100.100.100.201", false),
        ("64:ff9b::169.254.169.254", true),
        ("64:ff9b::7f00:1", true),
        ("64:ff9b::10.0.0.9", false),
        ("64:ff9b:1::169.254.169.254", false),
        ("localhost", true),
        ("LocalHost.", true),
        ("a.localhost", true),
    ] {
        let mut login = login();
        login["host"] = json!(host);
        let refused = private.then_some(LoginError::PrivateHost).map_or(Ok(()), Err);
        assert_eq!(read(&login).check(), refused, "{host}");
        login["allow_private_hosts"] = json!(true);
        assert_eq!(read(&login).check(), Ok(()), "{host}");
    }
}

#[test]
fn a_host_is_a_name_or_an_address_alone() {
    for text in
        ["", "a b", "ssh://a", "me@a", "a:22", "[::1]", "-oProxyCommand=x", "a/b", "ä", "::1%lo"]
    {
        let error = text.parse::<Host>().unwrap_err();
        assert!(error.to_string().contains("host"), "{text}: {error}");
    }
}

#[test]
fn a_server_cannot_listen_at_port_0() {
    let mut login = login();
    login["port"] = json!(0);
    assert_eq!(read(&login).check(), Err(LoginError::NoPort));
    login["port"] = json!(2222);
    assert_eq!(read(&login).check(), Ok(()));
}

#[test]
fn a_probe_is_a_host_with_a_port() {
    for text in ["10.0.0.9:22", "build-01:65535", "[2001:db8::9]:22"] {
        assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
    }
    for text in [
        "10.0.0.9",
        "10.0.0.9:",
        "10.0.0.9:0",
        "10.0.0.9:+1",
        "a:65536",
        "::1:22",
        "[::1:22",
        ":22",
    ] {
        assert!(text.parse::<Endpoint>().is_err(), "{text}");
    }
    let mut login = login();
    login["machines"]["build-01"]["probe"] = json!("169.254.169.254:80");
    assert_eq!(read(&login).check(), Err(LoginError::PrivateProbe));
}

#[test]
fn a_machine_that_could_never_be_seen_is_refused() {
    let mut login = login();
    let machine = &mut login["machines"]["build-01"];
    machine.as_object_mut().unwrap().remove("status");
    assert_eq!(read(&login).check(), Err(LoginError::Unseen));
    login["machines"]["build-01"]["probe"] = json!("10.0.0.9:22");
    for (silence, expected) in [("stopped", Ok(())), ("unknown", Err(LoginError::Unseen))] {
        login["machines"]["build-01"]["unreachable_means"] = json!(silence);
        assert_eq!(read(&login).check(), expected, "{silence}");
    }
}

#[test]
fn times_and_sizes_keep_within_their_bounds() {
    #[track_caller]
    fn check<T: FromStr<Err = MeasureError> + fmt::Display>(text: &str, expected: Option<&str>) {
        let read = text.parse::<T>();
        assert_eq!(read.ok().map(|read| read.to_string()).as_deref(), expected, "{text}");
    }
    check::<ConnectTimeout>("30s", Some("30s"));
    check::<ConnectTimeout>("31s", None);
    check::<ConnectTimeout>("99ms", None);
    check::<CommandTimeout>("60s", Some("1m"));
    check::<CommandTimeout>("61s", None);
    check::<Deadline>("90m", Some("90m"));
    check::<Deadline>("3h", None);
    check::<OutputLimit>("64KiB", Some("64KiB"));
    check::<OutputLimit>("65KiB", None);
    check::<OutputLimit>("0B", None);
    for text in ["", "10", "s", "1.5s", "-1s", "1 s", "1d", "99999999999999999999s"] {
        check::<Deadline>(text, None);
    }
    let error = "2m".parse::<CommandTimeout>().unwrap_err().to_string();
    assert_eq!(error, "`2m` is out of range: expected 100ms to 60s");
}

#[test]
fn a_user_cannot_be_read_as_an_option() {
    for text in ["offhours", "_svc", "svc.build", "host$"] {
        assert!(text.parse::<User>().is_ok(), "{text}");
    }
    for text in ["", "-l", "a b", "a@b", "a\n", &"a".repeat(65)] {
        assert!(text.parse::<User>().is_err(), "{text}");
    }
}
