//! A local store belongs to one user: nothing listens for it, and no other user reads or writes its
//! files.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
};

use crate::{
    programs::{LocalProgram, Running, SimulatorProgram, StoreLocation, Terminal, next_change_of},
    support::{an_hour_off, monday, office_hours, one_of_each_kind, program},
};

/// Starts the service, which stays at work while the clouds hold one of its requests.
async fn at_work(location: StoreLocation) -> (SimulatorProgram, LocalProgram, Running) {
    let simulator = SimulatorProgram::start(&one_of_each_kind(), monday("17:57:00")).await;
    let hold = next_change_of("do-main/droplet/1", "arrival", false);
    let hold = simulator.hold(hold).await;
    let local = LocalProgram::new(&an_hour_off(""), location);
    let mut running = local.start(&simulator, monday("18:30:00")).await;
    running.until(simulator.wait_until_caught(hold)).await;
    (simulator, local, running)
}

/// The local addresses at which a process listens, as the kernel lists them.
pub(crate) fn listens_at(process: u32) -> Vec<String> {
    let open = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let open = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let open: BTreeSet<_> = open.map(|file| file.display().to_string()).collect();
    assert!(open.iter().any(|file| file.starts_with("socket:")));
    let mut listens = Vec::new();
    for table in ["tcp", "tcp6"] {
        let sockets = fs::read_to_string(format!("/proc/{process}/net/{table}"));
        for socket in sockets.unwrap_or_default().lines().skip(1) {
            let fields: Vec<_> = socket.split_whitespace().collect();
            let (address, state, inode) = (fields[1], fields[3], fields[9]);
            if state == "0A" && open.contains(&format!("socket:[{inode}]")) {
                listens.push(address.to_owned());
            }
        }
    }
    listens
}

#[tokio::test]
async fn the_service_listens_nowhere_whether_its_store_is_a_file_or_in_memory() {
    let folder = TempDir::new().unwrap();
    for location in [StoreLocation::Memory, StoreLocation::File(folder.path().join("offhours.db"))]
    {
        let (_simulator, _local, running) = at_work(location.clone()).await;
        assert_eq!(listens_at(running.id()), [""; 0], "{location:?}");
    }
}

#[tokio::test]
async fn clouds_simulated_in_the_process_are_all_that_listens_and_on_loopback_alone() {
    let mut running = Command::new(program("offhours"))
        .args(["local", "--simulate", "--speed", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(running.stderr.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.starts_with("Offhours runs from") {
            break;
        }
    }
    let listens = listens_at(running.id().unwrap());
    assert_eq!(listens.len(), 1, "{listens:?}");
    assert!(listens[0].starts_with("0100007F:"), "{listens:?}");
}

/// The files in a folder, with their modes.
fn modes(folder: &Path) -> BTreeMap<String, u32> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, entry.metadata().unwrap().mode() & 0o7777)
        })
        .collect()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs a line of shell on a file as another user.
async fn as_another_user(line: &str, file: &Path) -> Output {
    Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .args(["sh", "-c", line])
        .arg(file)
        .output()
        .await
        .unwrap()
}

#[tokio::test]
async fn no_other_user_can_read_or_write_a_file_of_a_running_service() {
    let folder = TempDir::new().unwrap();
    let location = StoreLocation::File(folder.path().join("offhours.db"));
    // It runs with a umask that takes nothing away.
    let (_simulator, _local, _running) = at_work(location).await;
    let expected = ["", "-shm", "-wal", ".lock"];
    let expected = expected.map(|suffix| (format!("offhours.db{suffix}"), 0o600));
    assert_eq!(modes(folder.path()), expected.clone().into());

    if fs::metadata(folder.path()).unwrap().uid() != 0 {
        #[expect(clippy::print_stderr, reason = "a test that was skipped says why")]
        {
            eprintln!("skipped: only root can try it as another user");
        }
        return;
    }
    let public = folder.path().join("public");
    fs::write(&public, "anyone's").unwrap();
    set_mode(folder.path(), 0o755);
    set_mode(&public, 0o666);
    let (read, write) = ("cat \"$0\"", ": >> \"$0\"");
    for line in [read, write] {
        assert!(as_another_user(line, &public).await.status.success());
        for (name, _) in &expected {
            let tried = as_another_user(line, &folder.path().join(name)).await;
            let errors = String::from_utf8(tried.stderr).unwrap();
            assert!(!tried.status.success() && tried.stdout.is_empty(), "{name}");
            assert!(errors.contains("Permission denied"), "{name}: {errors}");
        }
    }
}

/// A terminal whose store has a configuration in force.
async fn applied() -> Terminal {
    let terminal = Terminal::new("12:00:00").await;
    terminal.write(&office_hours("", "", ""));
    let applied = terminal.run(&["apply", "--yes"]).await;
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);
    terminal
}

#[tokio::test]
async fn a_store_that_others_can_change_is_refused_with_how_to_mend_it() {
    let terminal = applied().await;
    let store = terminal.data.clone();
    let folder = store.parent().unwrap().to_owned();
    let journal = PathBuf::from(format!("{}-wal", store.display()));
    let refused = async |file: &Path, mode: u32, advice: String| {
        let before = file.metadata().unwrap().mode();
        set_mode(file, mode);
        for arguments in [&["list"][..], &["apply", "--yes"], &["local", "--for", "1m"]] {
            let ended = terminal.run(arguments).await;
            assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.stdout);
            assert!(ended.stderr.contains(&advice), "{}", ended.stderr);
        }
        set_mode(file, before);
        assert_eq!(terminal.run(&["list"]).await.code, Some(0));
    };
    for mode in [0o660, 0o602, 0o666] {
        let advice = format!("run `chmod 600 {}`", store.display());
        refused(&store, mode, advice).await;
    }
    let advice = format!("run `chmod o-w {}`", folder.display());
    refused(&folder, 0o777, advice).await;
    fs::write(&journal, "").unwrap();
    let advice = format!("run `chmod 600 {}`", journal.display());
    refused(&journal, 0o622, advice).await;
}

#[tokio::test]
async fn a_store_that_others_could_read_is_closed_to_them_and_that_is_said_once() {
    let terminal = applied().await;
    let note = format!(
        "note: other users could read {}: from now on only its owner can (mode 600)\n",
        terminal.data.display()
    );
    for arguments in [&["list"][..], &["local", "--for", "1m"]] {
        set_mode(&terminal.data, 0o644);
        for said in [true, false] {
            let ended = terminal.run(arguments).await;
            assert_eq!(ended.code, Some(0), "{}", ended.stderr);
            assert_eq!(ended.stderr.contains(&note), said, "{}", ended.stderr);
            let mode = terminal.data.metadata().unwrap().mode();
            assert_eq!(mode & 0o7777, 0o600, "{arguments:?}");
        }
    }
}
