//! Bad days of a machine that runs `offhours serve`: its disk, its clock and its files of tokens fail.
//! Nothing is sent that is not stored, nothing is sent twice, and the next round goes on.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
    process::Stdio,
};

use domain::{record::Phase, resource::Power};
use jiff::{SignedDuration, tz::TimeZone};
use tempfile::TempDir;
use tokio::process::Command;

use crate::{
    programs::{next_change_of, signal},
    serving::{ONCE, WEB, World, ended},
    support::office_hours,
};

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Makes a command out of another one, which it gets as its arguments.
fn within(program: &str, arguments: &[&str], inner: &Command) -> Command {
    let inner = inner.as_std();
    let mut command = Command::new(program);
    command.args(arguments).arg(inner.get_program()).args(inner.get_args());
    if let Some(folder) = inner.get_current_dir() {
        command.current_dir(folder);
    }
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// Has a configuration put into force by a round that finds nothing to do.
async fn with_configuration_in_force() -> World {
    let world = World::new().await;
    let applied = world.command(&["apply", "--yes", "--config", "offhours.toml"]).await;
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);
    world
}

/// Checks that a round that may go on stops the machine by one request.
async fn stops_once(world: &World) {
    let round = world.run(&ONCE).await;
    assert_eq!(round.code, Some(0), "{}", round.stderr);
    assert_eq!(world.record().await.phase, Phase::Settled { at: Power::Stopped });
    assert_eq!(world.changes().await, 1);
}

#[tokio::test]
async fn on_a_full_disk_nothing_is_sent_and_once_there_is_room_the_stop_is_made() {
    let world = with_configuration_in_force().await;
    // No file may grow, so nothing that SQLite writes beside the store fits.
    let full = ["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""];
    let round = ended(within("sh", &full, &world.serve(&ONCE))).await;
    assert_ne!(round.code, Some(0));
    assert!(round.stderr.contains("check that its disk has room"), "{}", round.stderr);
    assert_eq!(world.changes().await, 0);
    stops_once(&world).await;
}

#[tokio::test]
async fn on_a_disk_that_can_only_be_read_nothing_is_sent() {
    let world = with_configuration_in_force().await;
    let folder = world.data().parent().unwrap().to_owned();
    set_mode(&world.data(), 0o400);
    set_mode(&folder, 0o500);
    // Root ignores permissions unless it drops the capability to do so.
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let serve = world.serve(&ONCE);
    let round = if is_root {
        let dropped = ["--bounding-set=-dac_override,-dac_read_search"];
        ended(within("setpriv", &dropped, &serve)).await
    } else {
        ended(serve).await
    };
    set_mode(&folder, 0o700);
    set_mode(&world.data(), 0o600);
    assert_ne!(round.code, Some(0));
    assert!(round.stderr.contains("offhours.db"), "{}", round.stderr);
    assert_eq!(world.changes().await, 0);
    stops_once(&world).await;
}

/// A library that moves the clock of the process that loads it.
struct WrongClock {
    folder: TempDir,
}

impl WrongClock {
    async fn built() -> Self {
        let folder = TempDir::new().unwrap();
        let source = folder.path().join("clock.c");
        fs::write(
            &source,
            "#define _GNU_SOURCE\n\
             #include <fcntl.h>\n\
             #include <stdlib.h>\n\
             #include <sys/syscall.h>\n\
             #include <time.h>\n\
             #include <unistd.h>\n\
             int clock_gettime(clockid_t which, struct timespec *to) {\n\
                 int failed = syscall(SYS_clock_gettime, which, to);\n\
                 if (failed || which != CLOCK_REALTIME) return failed;\n\
                 char wrong_by[32] = {0};\n\
                 int file = open(getenv(\"CLOCK_WRONG_BY\"), O_RDONLY | O_CLOEXEC);\n\
                 if (read(file, wrong_by, sizeof wrong_by - 1) > 0) to->tv_sec += atol(wrong_by);\n\
                 close(file);\n\
                 return 0;\n\
             }\n",
        )
        .unwrap();
        let library = folder.path().join("clock.so");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
        assert!(compiler.stderr(Stdio::inherit()).status().await.unwrap().success());
        Self { folder }
    }

    /// What has a process run under this clock.
    fn variables(&self) -> Vec<(&'static str, String)> {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        vec![("LD_PRELOAD", path("clock.so")), ("CLOCK_WRONG_BY", path("wrong-by"))]
    }

    /// Sets the clock, for running processes too: it is wrong by so many seconds.
    fn set(&self, wrong_by: i64) {
        let (new, path) = (self.folder.path().join("new"), self.folder.path().join("wrong-by"));
        fs::write(&new, wrong_by.to_string()).unwrap();
        fs::rename(new, path).unwrap();
    }

    /// Has a command run under a clock that is wrong by so many seconds.
    fn of(&self, mut command: Command, wrong_by: i64) -> Command {
        self.set(wrong_by);
        command.envs(self.variables());
        command
    }
}

#[tokio::test]
async fn a_clock_that_jumps_by_an_hour_either_way_amid_a_stop_sends_nothing_twice() {
    let clock = WrongClock::built().await;
    for jumps in [[3600, -3600], [-3600, 3600]] {
        let world = World::new().await;
        let hold = world.simulator.hold(next_change_of(WEB, "answer", false)).await;
        let serving = world.start(&ONCE);
        world.simulator.wait_until_caught(hold).await;
        signal(serving.id(), "TERM").await;
        world.simulator.release(hold).await;
        serving.ends_well().await;
        for jump in jumps {
            let round = ended(clock.of(world.serve(&ONCE), jump)).await;
            // An hour ahead, its effect is late, and a person hears of it.
            assert!(matches!(round.code, Some(0 | 3)), "{jump}: {}", round.stderr);
        }
        // Once it shows, the first inventory ends it.
        while world.simulator.resources().await[WEB]["status"] != "off" {}
        let round = ended(clock.of(world.serve(&ONCE), 7200)).await;
        assert_eq!(round.code, Some(0), "{}", round.stderr);
        assert_eq!(world.record().await.phase, Phase::Settled { at: Power::Stopped });
        assert_eq!(world.changes().await, 1, "{jumps:?}");
    }
}

#[tokio::test]
async fn a_machine_that_sleeps_for_a_night_amid_a_stop_starts_in_the_morning_what_should_run() {
    let (clock, mut world) = (WrongClock::built().await, World::new().await);
    clock.set(0);
    world.variables = clock.variables();
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    let now = environment::Clock::machine().now();
    let at = |hour: i64| (now + SignedDuration::from_hours(hour)).to_zoned(zone.clone());
    let morning = format!("{{ begin = \"{}\"", at(8).strftime("%H:%M"));
    let morning = format!("{morning}, end = \"{}\" }}", at(12).strftime("%H:%M"));
    let office = r#"{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }"#;
    world.configure(&office_hours("", "", "").replace(office, &morning));
    // Its machine is known, so that the first minute of the service stops it.
    for command in [&["apply", "--yes"][..], &["status", "--refresh"]] {
        let ended = world.command(command).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
    let hold = world.simulator.hold(next_change_of(WEB, "answer", false)).await;
    let mut serving = world.start(&[]);
    world.simulator.wait_until_caught(hold).await;
    clock.set(9 * 3600);
    world.simulator.release(hold).await;
    while world.record().await.phase != (Phase::Settled { at: Power::Running }) {
        serving.event("seen").await;
    }
    signal(serving.id(), "TERM").await;
    serving.ends_well().await;
    assert_eq!(world.changes().await, 2);
}

#[tokio::test]
async fn a_token_that_cannot_be_read_is_named_and_used_once_it_can() {
    let clock = WrongClock::built().await;
    for (content, mode, words) in [
        (None, 0o600, "No such file"),
        (Some("secret-do-token\n"), 0o644, "can be read by others"),
        (Some("secret-of-yesterday\n"), 0o600, "refused"),
    ] {
        let world = World::new().await;
        let token = world.data().with_file_name("do-token");
        let configuration = world.data().with_file_name("offhours.toml");
        let text = fs::read_to_string(&configuration).unwrap();
        let reference = format!("file:{}", token.display());
        fs::write(&configuration, text.replace("env:DO_TOKEN", &reference)).unwrap();
        if let Some(content) = content {
            fs::write(&token, content).unwrap();
            set_mode(&token, mode);
        }
        let round = world.run(&ONCE).await;
        let said = [round.stdout, round.stderr].concat();
        assert!(said.contains(words) && said.contains("do-main"), "{words}: {said}");
        assert!(!said.contains("secret-"), "{said}");
        assert_eq!(world.changes().await, 0);

        fs::write(&token, "secret-do-token\n").unwrap();
        set_mode(&token, 0o600);
        // The account is asked again after a while.
        let round = ended(clock.of(world.serve(&ONCE), 600)).await;
        assert_eq!(round.code, Some(0), "{}", round.stderr);
        assert_eq!(world.changes().await, 1, "{words}");
    }
}
