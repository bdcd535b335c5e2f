//! `offhours serve` on the machine's clock, beside a simulator whose clock runs: it acts at once, ends
//! when it is told to, and leaves nothing open.

use std::{fs, io, path::PathBuf, process::Stdio};

use domain::{
    record::{Ask, Phase, Record},
    resource::Power,
};
use environment::Clock;
use jiff::{ToSpan as _, tz::TimeZone};
use local::engine::Engine;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    net::UnixDatagram,
    process::{Child, ChildStderr, ChildStdout, Command},
};

use crate::{
    calendars,
    private_store::listens_at,
    programs::{CommandOutput, SimulatorProgram, next_change_of, signal},
    support::{ACCOUNTS, droplet, monday, office_hours, program, reference, root, tables},
};

pub(crate) const WEB: &str = "do-main/droplet/1";

/// One round, which ends by itself.
pub(crate) const ONCE: [&str; 1] = ["--once"];

/// A configuration in which nothing is to run today.
fn closed_today(top: &str) -> String {
    let in_three_days = Clock::machine().now().to_zoned(TimeZone::UTC).checked_add(3.days());
    let weekday = in_three_days.unwrap().strftime("%a").to_string().to_lowercase();
    let closed = format!(r#"{{ weekdays = "{weekday}", begin = "08:00", end = "19:00" }}"#);
    let office = r#"{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }"#;
    office_hours(top, "", "").replace(office, &closed)
}

/// A simulated cloud and a folder with a configuration, for the service.
pub(crate) struct World {
    pub(crate) simulator: SimulatorProgram,
    folder: TempDir,
    /// What its processes have in their environment.
    pub(crate) variables: Vec<(&'static str, String)>,
}

/// A running `offhours serve`.
pub(crate) struct Serving {
    child: Child,
    events: Lines<BufReader<ChildStdout>>,
    remarks: Lines<BufReader<ChildStderr>>,
}

/// What hears from the services of a world when they are ready, work, and end.
pub(crate) struct Systemd(UnixDatagram);

impl Systemd {
    pub(crate) fn beside(world: &mut World) -> Self {
        let address = world.folder.path().join("notify");
        let socket = UnixDatagram::bind(&address).unwrap();
        world.variables.push(("NOTIFY_SOCKET", address.to_str().unwrap().to_owned()));
        Self(socket)
    }

    /// Waits for the next word of them.
    pub(crate) async fn heard(&self) -> String {
        let mut text = [0; 64];
        let length = self.0.recv(&mut text).await.unwrap();
        str::from_utf8(&text[..length]).unwrap().trim_end().to_owned()
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with("").await
    }

    /// With these lines at the top of the configuration.
    pub(crate) async fn with(top: &str) -> Self {
        let fleet = [ACCOUNTS, &droplet(1, "web", &["offhours:office"])].concat();
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("offhours.toml"), closed_today(top)).unwrap();
        let simulator = SimulatorProgram::running(&fleet).await;
        Self { simulator, folder, variables: Vec::new() }
    }

    /// Gives its processes another configuration.
    pub(crate) fn configure(&self, configuration: &str) {
        fs::write(self.folder.path().join("offhours.toml"), configuration).unwrap();
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("offhours.db")
    }

    pub(crate) fn serve(&self, arguments: &[&str]) -> Command {
        let serve = ["serve", "-o", "json", "--config", "offhours.toml"];
        self.offhours(&[&serve, arguments].concat())
    }

    fn offhours(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program("offhours"));
        command
            .args(arguments)
            .arg(format!("--simulate={}", self.simulator.url))
            .current_dir(self.folder.path())
            .env("OFFHOURS_DATA", self.data())
            .envs([("DO_TOKEN", "secret-do-token"), ("HZ_TOKEN", "secret-hz-token")])
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .kill_on_drop(true);
        command
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Serving {
        let mut command = self.serve(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Serving {
            events: BufReader::new(child.stdout.take().unwrap()).lines(),
            remarks: BufReader::new(child.stderr.take().unwrap()).lines(),
            child,
        }
    }

    /// Runs it to its own end.
    pub(crate) async fn run(&self, arguments: &[&str]) -> CommandOutput {
        ended(self.serve(arguments)).await
    }

    /// Runs another command on the same store.
    pub(crate) async fn command(&self, arguments: &[&str]) -> CommandOutput {
        ended(self.offhours(arguments)).await
    }

    /// Returns how many changes of the machine have reached the cloud.
    pub(crate) async fn changes(&self) -> usize {
        let log = self.simulator.log().await;
        log.iter().filter(|entry| entry["changed"] == true && entry["resource"] == WEB).count()
    }

    pub(crate) async fn record(&self) -> Record {
        let store = Engine::on_file(&self.data()).unwrap().store(tables());
        store.record(&reference(WEB)).await.unwrap().unwrap()
    }
}

pub(crate) async fn ended(mut command: Command) -> CommandOutput {
    let output = command.output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    CommandOutput {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

impl Serving {
    pub(crate) fn id(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// Waits for an event of this name.
    pub(crate) async fn event(&mut self, name: &str) {
        loop {
            let line = self.events.next_line().await.unwrap().expect("it ended too early");
            let event: Value = serde_json::from_str(&line).unwrap();
            if event["event"] == name {
                return;
            }
        }
    }

    /// Waits for its own end, and returns what it remarked.
    pub(crate) async fn ends_well(mut self) -> String {
        let status = self.child.wait().await.unwrap();
        let mut remarked = String::new();
        while let Some(line) = self.remarks.next_line().await.unwrap() {
            remarked += &line;
        }
        assert_eq!(status.code(), Some(0), "{remarked}");
        assert!(!remarked.contains("secret-"), "a token was printed");
        remarked
    }
}

#[tokio::test]
async fn told_to_end_amid_a_request_it_records_the_answer_and_the_next_one_goes_on() {
    let world = World::new().await;
    let hold = world.simulator.hold(next_change_of(WEB, "answer", false)).await;
    let serving = world.start(&ONCE);
    world.simulator.wait_until_caught(hold).await;
    assert_eq!(listens_at(serving.id()), [""; 0]);
    assert_eq!(world.record().await.request.unwrap().ask, Ask::Open);

    signal(serving.id(), "TERM").await;
    world.simulator.release(hold).await;
    assert_eq!(serving.ends_well().await, "");
    let record = world.record().await;
    assert!(matches!(record.request.unwrap().ask, Ask::Accepted { .. }));
    assert!(matches!(record.phase, Phase::InFlight { .. }));

    // No round looks before the machine can be off, and none asks again.
    while world.record().await.in_flight().is_some() {
        let ended = world.run(&ONCE).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(!ended.stdout.contains("\"asked\""), "{}", ended.stdout);
    }
    assert_eq!(world.record().await.phase, Phase::Settled { at: Power::Stopped });
}

#[tokio::test]
async fn once_does_all_that_is_due_and_ends() {
    let world = World::new().await;
    let ended = world.run(&ONCE).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("\"event\":\"seen\""), "{}", ended.stdout);
    assert_eq!(world.record().await.phase, Phase::Settled { at: Power::Stopped });
    // A quiet round prints nothing.
    let ended = world.run(&ONCE).await;
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "", ""));
}

#[tokio::test]
async fn a_round_ends_with_1_if_something_was_not_done_and_with_2_if_a_setting_is_wrong() {
    let mut world = World::new().await;
    world.variables = vec![("DO_TOKEN", "another".to_owned())];
    let ended = world.run(&ONCE).await;
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stdout.contains("token refused"), "{}", ended.stdout);
    world.variables = vec![("OFFHOURS_MODE", "off".to_owned())];
    let ended = world.run(&ONCE).await;
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    let world = World::new().await;
    let unavailable = json!({
        "match": {"method": "GET"},
        "does": {"answer": {"status": 503, "body": "{}"}},
    });
    world.simulator.fault(unavailable).await;
    let ended = world.run(&ONCE).await;
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
}

#[tokio::test]
async fn a_probe_learns_whether_both_timers_work_and_a_monitor_what_was_counted() {
    let world = World::new().await;
    let mut serving = world.start(&["--listen", "127.0.0.1:0"]);
    let address = serving.remarks.next_line().await.unwrap().unwrap();
    let address = address.strip_prefix("Listening on ").unwrap().to_owned();
    serving.event("joined").await;
    let http = provider::http_client().unwrap();
    let health = format!("http://{address}/healthz");
    let status = async |host: &str| {
        let asked = http.get(&health).header("host", host).send().await.unwrap();
        asked.status().as_u16()
    };
    // The handlers of the first minute end soon.
    while status(&address).await != 200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(status("rebound.example").await, 403);
    for (request, refused) in [
        (http.get(format!("http://{address}/nothing")), 404),
        (http.get(format!("http://{address}/")).header("host", "rebound.example"), 403),
        (http.post(&health), 405),
        (
            http.get(format!("http://{address}/metrics")).header("origin", "https://page.example"),
            403,
        ),
    ] {
        assert_eq!(request.send().await.unwrap().status().as_u16(), refused);
    }
    let metrics = http.get(format!("http://{address}/metrics")).send().await.unwrap();
    assert_eq!(metrics.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let metrics = metrics.text().await.unwrap();
    for line in [
        r#"offhours_asked_total{account="do-main"} 0"#,
        r#"offhours_stuck{account="do-main"} 0"#,
        r#"offhours_failed_invocations_total{function="dispatch"} 0"#,
    ] {
        assert!(metrics.lines().any(|one| one == line), "{line}\n{metrics}");
    }
    check_metrics(&metrics).await;
    for path in ["calendar.ics", "calendar/office.ics"] {
        let calendar = http.get(format!("http://{address}/{path}")).send().await.unwrap();
        assert_eq!(calendar.headers()["content-type"], "text/calendar; charset=utf-8");
        let calendar = calendars::read(&calendar.text().await.unwrap()).await;
        assert_eq!(calendar["events"][0]["summary"], "office: running", "{calendar}");
    }
    for path in ["calendar/offce.ics", "calendar/office", "calendar/No%0AName.ics"] {
        let asked = http.get(format!("http://{address}/{path}")).send().await.unwrap();
        assert_eq!(asked.status().as_u16(), 404, "{path}");
    }

    let second = world.run(&[]).await;
    assert_eq!(second.code, Some(1), "{}", second.stderr);
    assert!(second.stderr.contains("another `offhours serve`"), "{}", second.stderr);
    signal(serving.id(), "INT").await;
    serving.ends_well().await;
}

#[tokio::test]
async fn what_a_start_changes_of_the_configuration_is_shown_and_kept() {
    let world = World::new().await;
    assert_eq!(world.run(&ONCE).await.code, Some(0));
    world.configure(&closed_today("max_stops = 7\n"));
    let changed = world.run(&ONCE).await;
    let says = "Applied as generation 2: settings changed.\n";
    assert!(changed.stderr.contains(says), "{}", changed.stderr);
    world.configure("schedules.office = 7\n");
    let refused = world.run(&ONCE).await;
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("error: offhours.toml has 1 problem\n"), "{}", refused.stderr);
    assert!(refused.stderr.contains("Generation 2 stays in force"), "{}", refused.stderr);
    let mut serving = world.start(&[]);
    while !serving.remarks.next_line().await.unwrap().unwrap().starts_with("Generation 2 stays") {}
    signal(serving.id(), "INT").await;
    serving.ends_well().await;
    let activity = world.command(&["activity"]).await;
    assert!(
        activity.stdout.contains("generation 2: settings: + max_stops = 7"),
        "{}",
        activity.stdout
    );
}

#[tokio::test]
async fn over_a_network_neither_the_page_nor_a_calendar_says_who_or_which() {
    let world = World::new().await;
    assert_eq!(world.run(&ONCE).await.code, Some(0));
    let set = ["override", "running", "--schedule", "office", "--for", "2h", "--yes"];
    let alone = world.command(&set).await;
    assert_eq!(alone.code, Some(0), "{}", alone.stderr);
    assert!(alone.stderr.contains("note: no service runs on "), "{}", alone.stderr);
    let http = provider::http_client().unwrap();
    for (listen, names_persons) in [("127.0.0.1:0", true), ("0.0.0.0:0", false)] {
        let mut serving = world.start(&["--listen", listen]);
        let address = serving.remarks.next_line().await.unwrap().unwrap();
        let (_, port) = address.rsplit_once(':').unwrap();
        let calendar = http.get(format!("http://127.0.0.1:{port}/calendar.ics")).send().await;
        let calendar = calendar.unwrap().text().await.unwrap();
        assert!(calendar.contains("office: running (override)"), "{calendar}");
        assert_eq!(calendar.contains("Set by "), names_persons, "{calendar}");
        let page = http.get(format!("http://127.0.0.1:{port}/")).send().await.unwrap();
        let policy = page.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        assert_eq!(page.headers()["x-robots-tag"], "noindex");
        let page = page.text().await.unwrap();
        assert!(page.contains("<title>Offhours: "), "{page}");
        assert_eq!(page.contains(WEB), names_persons, "{page}");
        let beside = world.command(&set).await;
        assert!(!beside.stderr.contains("no service runs"), "{}", beside.stderr);
        signal(serving.id(), "INT").await;
        serving.ends_well().await;
    }
}

/// Has Prometheus's own tool check a text, where it is installed.
async fn check_metrics(text: &str) {
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match promtool.spawn() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        child => child.unwrap(),
    };
    child.stdin.take().unwrap().write_all(text.as_bytes()).await.unwrap();
    let checked = child.wait_with_output().await.unwrap();
    let remarks = String::from_utf8(checked.stderr).unwrap();
    assert!(checked.status.success() && remarks.is_empty(), "{remarks}\n{text}");
}

#[tokio::test]
async fn systemd_is_told_when_it_is_ready_works_and_ends() {
    let mut world = World::new().await;
    let systemd = Systemd::beside(&mut world);
    world.variables.push(("WATCHDOG_USEC", "20000".to_owned()));
    let serving = world.start(&[]);
    assert_eq!(systemd.heard().await, "READY=1");
    assert_eq!(systemd.heard().await, "WATCHDOG=1");
    signal(serving.id(), "TERM").await;
    while systemd.heard().await != "STOPPING=1" {}
    serving.ends_well().await;
}

#[tokio::test]
async fn the_unit_is_one_that_systemd_accepts_and_leaves_little_to_attack() {
    let unit = fs::read_to_string(root().join("packaging/offhours.service")).unwrap();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("offhours.service");
    let here = program("offhours").display().to_string();
    fs::write(&path, unit.replace("/usr/bin/offhours", &here)).unwrap();
    let checks = [&["verify"][..], &["security", "--offline=true", "--threshold=20"]];
    for check in checks {
        let mut analyze = Command::new("systemd-analyze");
        let output = match analyze.args(check).arg(&path).output().await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                #[expect(clippy::print_stderr, reason = "a test that was skipped says why")]
                {
                    eprintln!("skipped: systemd-analyze is missing");
                }
                return;
            }
            output => output.unwrap(),
        };
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{check:?}: {words}");
        assert!(check[0] != "verify" || words.is_empty(), "{words}");
    }
}

#[tokio::test]
async fn what_cannot_be_served_is_refused_with_what_to_do() {
    let mut world = World::new().await;
    let refused = async |world: &World, command: &mut Command, words: &str| {
        let output = command.output().await.unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
        assert!(!world.data().exists(), "{words}");
    };
    refused(&world, world.serve(&[]).env_remove("OFFHOURS_DATA"), "serve needs --data FILE").await;
    world.simulator = SimulatorProgram::start(ACCOUNTS, monday("12:00:00")).await;
    refused(&world, &mut world.serve(&[]), "the simulator's clock is held").await;
}
