//! Machines over SSH for tests: a real server whose machines are files, a proxy in front of it, and
//! a service that reaches them.

use std::{
    collections::BTreeSet,
    fs, io,
    net::SocketAddr,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use testing::sshd::{self, Setup, Sshd};
use tokio::{
    net::{TcpListener, TcpStream},
    process::Command,
};

use crate::support::{World, any_port, run_logged};

/// The machine of most tests.
pub(crate) const BUILD: &str = "lab/machine/build";

/// The output of every command. It may be secret, so it is shown nowhere.
const PRINTED: &str = "moonstone";

/// The file with the port that the proxy currently forwards to. Empty while the connection is cut.
const PROXY_PORT_FILE: &str = "way";

/// Closed from 18:00 to 18:40 and from 18:50 on, in UTC.
pub(crate) const OFFICE: &str = r#"
[schedules.office]
timezone = "UTC"
periods = [{ begin = "07:00", end = "18:00" }, { begin = "18:40", end = "18:50" }]
"#;

/// A server with machines, all running, and the account that reaches them.
pub(crate) struct Lab {
    pub(crate) sshd: Sshd,
    /// The port of the proxy, which may forward to another server later.
    port: u16,
    machines: Vec<&'static str>,
}

impl Lab {
    /// Returns `None` if this machine has no SSH server.
    pub(crate) async fn start(machines: &[&'static str]) -> Option<Self> {
        let setup = machines.iter().fold(Setup::default(), machine);
        let sshd = sshd::start(setup)?;
        for machine in machines {
            fs::write(sshd.path(machine), "on\n").unwrap();
        }
        write_key(&sshd, "key", &sshd.key());
        fs::write(sshd.path("ran"), "").unwrap();
        let proxy = start_proxy(sshd.path(PROXY_PORT_FILE)).await;
        let lab = Self { port: proxy.port(), sshd, machines: machines.to_vec() };
        lab.route_to(&lab.sshd);
        Some(lab)
    }

    /// The account `lab`, with these additional keys.
    pub(crate) fn account(&self, keys: &str) -> String {
        self.account_with(&[self.sshd.host_key()], keys)
    }

    /// The account `lab`, with these host keys.
    pub(crate) fn account_with(&self, host_keys: &[String], keys: &str) -> String {
        format!(
            "[accounts.lab]\n\
             provider = \"ssh\"\n\
             host = \"127.0.0.1\"\n\
             allow_private_hosts = true\n\
             port = {}\n\
             user = {:?}\n\
             key = {:?}\n\
             host_keys = {host_keys:?}\n\
             {keys}\n",
            self.port,
            self.sshd.user(),
            format!("file:{}", self.sshd.path("key").display()),
        )
    }

    /// A machine of the account, with these additional keys.
    #[expect(clippy::unused_self, reason = "reads as what the laboratory has")]
    pub(crate) fn machine(&self, name: &str, keys: &str) -> String {
        format!(
            "[accounts.lab.machines.{name}]\n\
             start = \"start {name}\"\n\
             stop = \"stop {name}\"\n\
             status = \"status {name}\"\n\
             {keys}\n"
        )
    }

    /// The account, the machine `build` in the schedule `office`, and that schedule.
    pub(crate) fn usual(&self, keys_of_machine: &str, policy: &str) -> String {
        let tags = "tags = [\"offhours:office\"]\n";
        let machine = self.machine("build", &format!("{tags}{keys_of_machine}"));
        [&self.account(""), &machine, OFFICE, policy].concat()
    }

    /// Makes a command run this script first. It continues as usual unless the script exits.
    pub(crate) fn on(&self, command: &str, script: &str) {
        fs::write(self.hook(command), format!("{script}\n")).unwrap();
    }

    /// Makes a command behave as usual again.
    pub(crate) fn as_usual(&self, command: &str) {
        fs::remove_file(self.hook(command)).unwrap();
    }

    fn hook(&self, command: &str) -> PathBuf {
        self.sshd.path(&format!("on {command}"))
    }

    /// A pipe in the server's folder, with which a script and a test wait for each other.
    pub(crate) fn pipe(&self, name: &str) -> Pipe {
        let path = self.sshd.path(name);
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        Pipe(path)
    }

    /// Whether a machine runs.
    pub(crate) fn runs(&self, machine: &str) -> bool {
        fs::read_to_string(self.sshd.path(machine)).unwrap() == "on\n"
    }

    /// The commands so far that change something, oldest first.
    pub(crate) fn changes(&self) -> Vec<String> {
        let ran = self.ran().into_iter();
        ran.filter(|line| !line.starts_with("status ")).collect()
    }

    /// All commands so far.
    pub(crate) fn ran(&self) -> Vec<String> {
        let ran = fs::read_to_string(self.sshd.path("ran")).unwrap();
        ran.lines().map(str::to_owned).collect()
    }

    /// Makes the proxy forward to this server.
    pub(crate) fn route_to(&self, sshd: &Sshd) {
        fs::write(self.sshd.path(PROXY_PORT_FILE), sshd.port().to_string()).unwrap();
    }

    /// Makes the proxy forward nowhere.
    pub(crate) fn cut_off(&self) {
        fs::write(self.sshd.path(PROXY_PORT_FILE), "").unwrap();
    }

    /// A script that makes the proxy forward to another server.
    pub(crate) fn moved_to(sshd: &Sshd) -> String {
        format!("printf {} > \"$DIR/{PROXY_PORT_FILE}\"", sshd.port())
    }

    /// Another server, with other host keys, for the same machines and the same user.
    pub(crate) fn another_server(&self) -> Sshd {
        let other = sshd::start(Setup::default()).unwrap();
        let [from, to] = [&self.sshd, &other].map(|sshd| sshd.path("authorized_keys"));
        fs::copy(from, to).unwrap();
        other
    }

    /// Makes the server accept only this one of the keys in its folder.
    pub(crate) fn accepts(&self, key: &str) {
        let public = fs::read_to_string(self.sshd.path(&format!("{key}.pub"))).unwrap();
        let gate = self.sshd.path("gate");
        let line = format!("restrict,command=\"exec {}\" {public}", gate.display());
        fs::write(self.sshd.path("authorized_keys"), line).unwrap();
    }

    /// Makes the server accept a second key, in the file `read-key`, through the gate of the examples,
    /// which allows it nothing but `status`.
    pub(crate) fn accept_read_key(&self) {
        write_key(&self.sshd, "read-key", &self.sshd.other_key());
        let example = include_str!("../examples/ssh/offhours-gate");
        let (words, rest) = example.split_once("case \"$asked\" in\n").unwrap();
        let (_, end) = rest.split_once("    *) refuse").unwrap();
        let gate = self.sshd.path("gate");
        let gate = gate.display();
        let all = format!("case \"$asked\" in\n    *' build') exec {gate} ;;\n    *) refuse{end}");
        let example = self.sshd.path("example-gate");
        fs::write(&example, words.to_owned() + &all).unwrap();
        fs::set_permissions(&example, fs::Permissions::from_mode(0o755)).unwrap();
        let path = self.sshd.path("authorized_keys");
        let public = fs::read_to_string(self.sshd.path("other.pub")).unwrap();
        let line = format!("restrict,command=\"exec {} status\" {public}", example.display());
        fs::write(&path, fs::read_to_string(&path).unwrap() + &line).unwrap();
    }

    /// The account's keys of these files, the second of which is only to read.
    pub(crate) fn two_keys(&self, key: &str, read_key: &str) -> String {
        let [key, read_key] = [key, read_key].map(|name| self.sshd.path(name));
        let account = self.usual("", "");
        let line = format!("key = {:?}\n", format!("file:{}", self.sshd.path("key").display()));
        assert!(account.contains(&line));
        let keys = format!(
            "key = \"file:{}\"\nread_key = \"file:{}\"\n",
            key.display(),
            read_key.display()
        );
        account.replace(&line, &keys)
    }

    /// Starts the service.
    pub(crate) async fn world(&self, configuration: &str, from: Timestamp) -> World {
        World::start(configuration, "", from).await
    }

    /// Fails if a text contains what must not be revealed: a private key, or the output of
    /// commands.
    #[track_caller]
    pub(crate) fn keeps_its_keys_from(&self, text: &str) {
        let keys = [self.sshd.key(), self.sshd.other_key()].join("\n");
        // The line that names the type of key is not a secret.
        let lines = keys.lines().filter(|line| !line.starts_with("-----"));
        for secret in lines.chain([PRINTED, "PRIVATE KEY"]) {
            assert!(!text.contains(secret), "{secret} is in {text}");
        }
    }

    /// Fails if a text contains any of that, or the host, its keys or the user. Only the
    /// configuration may contain these.
    #[track_caller]
    pub(crate) fn is_kept_from(&self, text: &str) {
        self.keeps_its_keys_from(text);
        let blob = |line: String| line.split(' ').nth(1).unwrap().to_owned();
        let host = [
            "127.0.0.1".to_owned(),
            format!(":{}", self.port),
            format!(":{}", self.sshd.port()),
            blob(self.sshd.host_key()),
            blob(self.sshd.other_host_key()),
        ];
        for secret in host {
            assert!(!text.contains(&secret), "{secret} is in {text}");
        }
        let is_part = |c: char| c.is_alphanumeric() || "-_".contains(c);
        let words: BTreeSet<_> = text.split(|c| !is_part(c)).collect();
        assert!(!words.contains(self.sshd.user()), "the user is in {text}");
    }

    /// Everything that the service has reported and stored.
    async fn reported(&self, world: &mut World) -> String {
        let mut reported = Vec::new();
        for outcome in world.outcomes() {
            reported.push(format!("{outcome:?} {}", outcome.event));
            reported.push(serde_json::to_string(outcome).unwrap());
        }
        for machine in &self.machines {
            let reference = format!("lab/machine/{machine}");
            reported.push(format!("{:?}", world.history(&reference).await));
        }
        let store = world.local.store();
        let records = store.records_of(&"lab".parse().unwrap()).await.unwrap();
        reported.push(format!("{:?}", records.read));
        reported.push(format!("{:?}", store.account_states().await.unwrap()));
        reported.join(" ")
    }
}

/// A named pipe. It is accessed through programs, because they can be killed while they wait.
pub(crate) struct Pipe(PathBuf);

impl Pipe {
    /// Waits until something is written.
    pub(crate) async fn read(&self) {
        self.run("cat \"$0\"").await;
    }

    /// Writes a line, and waits until it is read.
    pub(crate) async fn write(&self, line: &str) {
        self.run(&format!("echo {line} > \"$0\"")).await;
    }

    async fn run(&self, script: &str) {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(script).arg(&self.0).kill_on_drop(true);
        assert!(shell.output().await.unwrap().status.success());
    }
}

/// Writes a private key that only its owner can read.
fn write_key(sshd: &Sshd, name: &str, key: &str) {
    fs::write(sshd.path(name), format!("{key}\n")).unwrap();
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(sshd.path(name), private).unwrap();
}

/// Adds a machine that is a file with its state, and commands that record that they ran.
fn machine(setup: Setup, name: &&'static str) -> Setup {
    let command = |setup: Setup, word: &str, usual: &str| {
        let hook = format!("\"$DIR/on {word}\"");
        let script = format!(
            "echo '{word} {name}' >> \"$DIR/ran\"; echo {PRINTED}; echo {PRINTED} >&2; \
             if test -e {hook}; then . {hook}; fi; {usual}"
        );
        setup.command(&format!("{word} {name}"), &script)
    };
    let setup = command(setup, "start", &format!("echo on > \"$DIR/{name}\""));
    let setup = command(setup, "stop", &format!("echo off > \"$DIR/{name}\""));
    let setup = command(setup, "force", &format!("echo off > \"$DIR/{name}\""));
    let status = format!("test \"$(cat \"$DIR/{name}\")\" = on && exit 0; exit 3");
    command(setup, "status", &status)
}

/// Starts a proxy that passes each connection on to the port that a file names at that time.
async fn start_proxy(file: PathBuf) -> SocketAddr {
    let listener = TcpListener::bind(any_port()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (near, _) = listener.accept().await.unwrap();
            tokio::spawn(pass(near, read_port(&file)));
        }
    });
    address
}

fn read_port(file: &Path) -> Option<u16> {
    fs::read_to_string(file).ok()?.parse().ok()
}

async fn pass(mut near: TcpStream, port: Option<u16>) -> io::Result<()> {
    let Some(port) = port else {
        return Ok(());
    };
    let mut far = TcpStream::connect(("127.0.0.1", port)).await?;
    tokio::io::copy_bidirectional(&mut near, &mut far).await?;
    Ok(())
}

/// Runs a test on a laboratory with these machines. Fails if an invocation failed, or if a log line
/// or anything that was reported or stored contains what must not be revealed.
pub(crate) fn in_lab(machines: &[&'static str], test: impl AsyncFnOnce(&Lab) -> World) {
    let (lab, log) = run_logged(async {
        let lab = Lab::start(machines).await?;
        let mut world = test(&lab).await;
        let reported = lab.reported(&mut world).await;
        lab.is_kept_from(&reported);
        Some(lab)
    });
    if let Some(lab) = lab {
        lab.is_kept_from(&log);
    }
    let errors: Vec<_> = log.lines().filter(|l| l.contains("ERROR")).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}
