//! The programs as separate processes: the simulator, driven over its control API, `offhours
//! local`, and the commands.

use std::{
    collections::BTreeMap,
    env,
    fs::{self, File},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use jiff::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, Command},
};

use crate::support::{self, monday, one_of_each_kind, program};

/// The simulator, running until this is dropped.
pub(crate) struct SimulatorProgram {
    pub(crate) url: String,
    http: reqwest::Client,
    _child: Child,
    _directory: TempDir,
}

impl SimulatorProgram {
    /// Starts it on any port, with its clock held at `at`.
    pub(crate) async fn start(fleet: &str, at: Timestamp) -> Self {
        Self::start_with(fleet, &["--at", &at.to_string()]).await
    }

    /// Starts it on any port, with the machine's clock.
    pub(crate) async fn running(fleet: &str) -> Self {
        Self::start_with(fleet, &[]).await
    }

    async fn start_with(fleet: &str, arguments: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("fleet.toml");
        fs::write(&path, fleet).unwrap();
        let mut child = Command::new(program("cloud-simulator"))
            .arg("--fleet")
            .arg(path)
            .args(["--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines.next_line().await.unwrap();
        Self {
            url: url.expect("the simulator ended before it listened"),
            http: provider::http_client().unwrap(),
            _child: child,
            _directory: directory,
        }
    }

    async fn ask(&self, request: reqwest::RequestBuilder) -> Value {
        let answer = request.send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{status}: {text}");
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    /// Sends a request to a cloud, as a person with a token and their own program does.
    pub(crate) async fn asked(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Value {
        let request = self.http.request(method, format!("{}/{path}", self.url));
        let request = request.bearer_auth(token);
        self.ask(match body {
            Some(body) => request.json(&body),
            None => request,
        })
        .await
    }

    async fn get(&self, path: &str) -> Value {
        let url = format!("{}/_simulator/{path}", self.url);
        self.ask(self.http.get(url)).await
    }

    pub(crate) async fn now(&self) -> Timestamp {
        support::instant(self.get("clock").await["now"].as_str().unwrap())
    }

    /// The whole state of every resource, by reference.
    pub(crate) async fn resources(&self) -> BTreeMap<String, Value> {
        let mut answer = self.get("resources").await;
        serde_json::from_value(answer["resources"].take()).unwrap()
    }

    /// Every request so far, oldest first.
    pub(crate) async fn log(&self) -> Vec<Value> {
        let mut answer = self.get("log").await;
        serde_json::from_value(answer["entries"].take()).unwrap()
    }

    /// Makes the clouds misbehave.
    pub(crate) async fn fault(&self, fault: Value) {
        let url = format!("{}/_simulator/faults", self.url);
        self.ask(self.http.post(url).json(&fault)).await;
    }

    /// Makes a plan sold out, or available again.
    pub(crate) async fn offer(&self, offer: Value) {
        let url = format!("{}/_simulator/plans", self.url);
        self.ask(self.http.post(url).json(&offer)).await;
    }

    /// Makes the clouds behave again.
    pub(crate) async fn clear_faults(&self) {
        let url = format!("{}/_simulator/faults", self.url);
        self.ask(self.http.delete(url)).await;
    }

    /// Acts as a person in a provider's console.
    pub(crate) async fn person(&self, resource: &str, act: Value) {
        let url = format!("{}/_simulator/people", self.url);
        let body = json!({"resource": resource, "act": act});
        self.ask(self.http.post(url).json(&body)).await;
    }

    /// Moves the clock.
    pub(crate) async fn move_to(&self, now: Timestamp) {
        let url = format!("{}/_simulator/clock", self.url);
        self.ask(self.http.post(url).json(&json!({"now": now}))).await;
    }

    /// The clouds' charges by resource, for this query.
    pub(crate) async fn bill(&self, query: &str) -> BTreeMap<String, f64> {
        let url = format!("{}/_simulator/bill?{query}", self.url);
        let text = self.http.get(url).send().await.unwrap();
        let text = text.text().await.unwrap();
        let mut charged = BTreeMap::new();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            if let (Some(resource), Some(amount)) =
                (line["resource"].as_str(), line["amount"].as_str())
            {
                let amount: f64 = amount.parse().unwrap();
                *charged.entry(resource.to_owned()).or_default() += amount;
            }
        }
        charged
    }

    /// Sets a hold.
    pub(crate) async fn hold(&self, hold: Value) -> HoldNumber {
        let url = format!("{}/_simulator/holds", self.url);
        let answer = self.ask(self.http.post(url).json(&hold)).await;
        HoldNumber(answer["id"].as_u64().unwrap())
    }

    /// Waits until the hold has caught a request.
    pub(crate) async fn wait_until_caught(&self, hold: HoldNumber) {
        self.get(&format!("holds/{}?wait=true", hold.0)).await;
    }

    /// Releases what the hold has caught.
    pub(crate) async fn release(&self, hold: HoldNumber) {
        self.end(hold, "").await;
    }

    /// Closes the connections of what the hold has caught.
    pub(crate) async fn discard(&self, hold: HoldNumber) {
        self.end(hold, "?discard=true").await;
    }

    async fn end(&self, hold: HoldNumber, how: &str) {
        let url = format!("{}/_simulator/holds/{}{how}", self.url, hold.0);
        self.ask(self.http.delete(url)).await;
    }
}

/// The number of a hold in the simulator.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HoldNumber(u64);

/// A hold for the next change of one resource.
pub(crate) fn next_change_of(resource: &str, at: &str, late: bool) -> Value {
    let is_machine = resource.contains("/droplet/") || resource.contains("/server/");
    let method = if is_machine { "POST" } else { "PUT" };
    json!({"match": {"resource": resource, "method": method}, "at": at, "late": late})
}

/// Where `offhours local` keeps its records.
#[derive(Debug, Clone)]
pub(crate) enum StoreLocation {
    /// On an engine that is already listening.
    Engine(SocketAddr),
    /// On its own engine, in a file.
    File(PathBuf),
    /// On its own engine, in memory.
    Memory,
}

/// How `offhours local` is started: beside a simulator, at full speed.
pub(crate) struct LocalProgram {
    location: StoreLocation,
    directory: TempDir,
    starts: std::cell::Cell<u32>,
}

impl LocalProgram {
    /// Prepares it with this configuration; nothing runs yet.
    pub(crate) fn new(configuration: &str, location: StoreLocation) -> Self {
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join("offhours.toml"), configuration).unwrap();
        Self { location, directory, starts: std::cell::Cell::default() }
    }

    /// Starts it, to run until this time on the simulator's clock.
    pub(crate) async fn start(&self, simulator: &SimulatorProgram, until: Timestamp) -> Running {
        let length = until.duration_since(simulator.now().await).as_secs();
        self.starts.set(self.starts.get() + 1);
        let log = self.directory.path().join(format!("{}.log", self.starts.get()));
        let output = File::create(&log).unwrap();
        let mut command = Command::new("sh");
        command
            // Whatever it keeps from other users, the umask does not do it.
            .args(["-c", "umask 0; exec \"$0\" \"$@\""])
            .arg(program("offhours"))
            .args(["local", "--speed", "0", "-o", "json"])
            .args(["--config", "offhours.toml", "--yes"])
            .arg(format!("--simulate={}", simulator.url))
            .args(["--for", &format!("{length}s")])
            .current_dir(self.directory.path())
            .envs([("DO_TOKEN", "secret-do-token"), ("HZ_TOKEN", "secret-hz-token")])
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .kill_on_drop(true);
        match &self.location {
            StoreLocation::Engine(address) => command.args(["--store", &address.to_string()]),
            StoreLocation::File(path) => command.arg("--data").arg(path),
            StoreLocation::Memory => &mut command,
        };
        Running { child: command.spawn().unwrap(), log }
    }

    /// Runs it until this time, to its own end.
    pub(crate) async fn run(&self, simulator: &SimulatorProgram, until: Timestamp) -> String {
        let running = self.start(simulator, until).await;
        running.ends_well().await
    }
}

/// A running process of `offhours local`.
pub(crate) struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Waits for it to end by itself, successfully, and returns its output.
    pub(crate) async fn ends_well(mut self) -> String {
        let status = self.child.wait().await.unwrap();
        let printed = printed(&self.log);
        assert_eq!(status.code(), Some(0), "{printed}");
        assert!(!printed.contains("ERROR"), "{printed}");
        assert!(!printed.contains("secret-"), "a token was printed");
        printed
    }

    /// Waits for it to end by itself in failure, and returns its output.
    pub(crate) async fn refused(mut self) -> String {
        let status = self.child.wait().await.unwrap();
        let printed = printed(&self.log);
        assert_eq!(status.code(), Some(1), "{printed}");
        printed
    }

    /// Waits for something that must happen before the process ends.
    pub(crate) async fn until<T>(&mut self, what: impl Future<Output = T>) -> T {
        tokio::select! {
            happened = what => happened,
            status = self.child.wait() => {
                panic!("ended too early: {status:?}: {}", printed(&self.log))
            }
        }
    }

    /// The id of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// Sends SIGKILL.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Sends SIGINT, as Ctrl-C does.
    pub(crate) async fn interrupt(&self) {
        signal(self.id(), "INT").await;
    }
}

/// Sends a signal to a process.
pub(crate) async fn signal(process: u32, name: &str) {
    let mut kill = Command::new("sh");
    let sent = kill.args(["-c", &format!("kill -{name} {process}")]).status();
    assert!(sent.await.unwrap().success());
}

/// Runs the commands on a store, beside a simulator.
pub(crate) struct Terminal {
    pub(crate) simulator: SimulatorProgram,
    pub(crate) data: PathBuf,
    directory: TempDir,
}

/// How a command ended, and what it printed.
pub(crate) struct CommandOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Terminal {
    pub(crate) async fn new(at: &str) -> Self {
        Self::with_fleet(&one_of_each_kind(), at).await
    }

    /// A terminal beside a simulator with this fleet.
    pub(crate) async fn with_fleet(fleet: &str, at: &str) -> Self {
        let directory = TempDir::new().unwrap();
        Self {
            simulator: SimulatorProgram::start(fleet, monday(at)).await,
            data: directory.path().join("offhours.db"),
            directory,
        }
    }

    /// Writes offhours.toml to the folder in which the commands run.
    pub(crate) fn write(&self, configuration: &str) {
        fs::write(self.directory.path().join("offhours.toml"), configuration).unwrap();
    }

    /// Reads a file of the folder in which the commands run.
    pub(crate) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.directory.path().join(file)).unwrap()
    }

    /// Runs the service until a time, and returns its output.
    pub(crate) async fn local(&self, configuration: &str, until: &str) -> String {
        self.local_until(configuration, monday(until)).await
    }

    /// Like [`Self::local`], on any day.
    pub(crate) async fn local_until(&self, configuration: &str, until: Timestamp) -> String {
        let local = LocalProgram::new(configuration, StoreLocation::File(self.data.clone()));
        local.run(&self.simulator, until).await
    }

    /// Runs a command on the store, beside the simulator.
    pub(crate) async fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.run_with(&[], arguments).await
    }

    /// Like [`Self::run`], with these variables.
    pub(crate) async fn run_with(
        &self,
        variables: &[(&str, &str)],
        arguments: &[&str],
    ) -> CommandOutput {
        let mut command = self.prepared(arguments);
        self.ended(command.envs(variables.iter().copied())).await
    }

    /// A command on the store, beside the simulator, that is yet to be run.
    pub(crate) fn prepared(&self, arguments: &[&str]) -> Command {
        let simulate = format!("--simulate={}", self.simulator.url);
        let mut command = self.command(arguments);
        command.arg("--data").arg(&self.data).arg(simulate);
        command
    }

    /// Runs a command that needs no store.
    pub(crate) async fn bare(&self, arguments: &[&str]) -> CommandOutput {
        self.ended(&mut self.command(arguments)).await
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program("offhours"));
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env("DO_TOKEN", "secret-do-token")
            .env("HZ_TOKEN", "secret-hz-token")
            .env("USER", "ada")
            .env_remove("TZ");
        command
    }

    async fn ended(&self, command: &mut Command) -> CommandOutput {
        let Output { status, stdout, stderr } = command.output().await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let ended =
            CommandOutput { code: status.code(), stdout: text(stdout), stderr: text(stderr) };
        assert!(!ended.stdout.contains("secret-"), "{}", ended.stdout);
        assert!(!ended.stderr.contains("secret-"), "{}", ended.stderr);
        ended
    }
}

/// Runs `offhours` in a terminal, with the settings of a command of Python, and types the answers to
/// its questions.
pub(crate) async fn in_terminal(python: &mut Command, arguments: &[&str], answers: &str) -> Output {
    let script = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)";
    let mut child = python
        .args(["-c", script])
        .arg(program("offhours"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(answers.as_bytes()).await.unwrap();
    let ended = child.wait_with_output().await.unwrap();
    drop(input);
    ended
}

/// What a script of tests/python makes of an input, as JSON.
pub(crate) async fn read_by(script: &str, input: &str) -> Value {
    let mut reader = Command::new(python())
        .arg(support::root().join("tests/python").join(script))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    reader.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
    let read = reader.wait_with_output().await.unwrap();
    let errors = String::from_utf8_lossy(&read.stderr);
    assert!(read.status.success(), "{errors}\n{input}");
    serde_json::from_slice(&read.stdout).unwrap()
}

/// The Python interpreter with the packages of tests/python/requirements.txt.
pub(crate) fn python() -> PathBuf {
    let path = env::var_os("OFFHOURS_PYTHON")
        .map_or_else(|| support::root().join(".venv/bin/python"), PathBuf::from);
    assert!(path.is_file(), "there is no {}: run `make test`", path.display());
    path
}

fn printed(log: &Path) -> String {
    fs::read_to_string(log).unwrap()
}
