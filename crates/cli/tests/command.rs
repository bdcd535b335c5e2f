//! The built command: its exit codes, and what it writes to which stream.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/offhours.toml");

const OFFICE_HOURS: &str = r#"
[schedules.office-hours]
timezone = "Europe/Berlin"
periods = [
  { weekdays = "mon-fri", begin = "08:00", end = "19:00" },
  { weekdays = "sat#1", begin = "10:00", end = "14:00" },
]
[schedules.night-shift]
timezone = "America/New_York"
periods = [{ begin = "22:00", end = "06:00" }]
"#;

/// Runs the command in an empty folder.
fn offhours(arguments: &[&str]) -> Output {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("empty");
    fs::create_dir_all(&folder).expect("the folder can be made");
    Command::new(env!("CARGO_BIN_EXE_offhours"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("the command can be run")
}

/// Writes a file with this text. Each test needs its own name.
fn file(name: &str, text: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).expect("the file can be written");
    path.to_str().expect("the path is text").to_owned()
}

/// The exit code, standard output and standard error.
fn parts(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("the output is text");
    let code = output.status.code().expect("it was not killed");
    (code, text(&output.stdout), text(&output.stderr))
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("the output is JSON")
}

#[test]
fn a_file_in_order_is_summed_up_on_standard_output_alone() {
    let (code, stdout, stderr) = parts(&offhours(&["validate", "--config", EXAMPLE]));
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.contains("is valid: 2 accounts, 4 schedules."), "{stdout}");
    assert!(stdout.contains("schedule berlin-office: "), "{stdout}");
    assert!(!stdout.contains('\u{1b}'), "{stdout}");

    let output = offhours(&["validate", "--config", EXAMPLE, "-o", "json"]);
    let (code, stdout, stderr) = parts(&output);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let report = json(&stdout);
    assert_eq!(report["valid"], true);
    assert_eq!((report["problems"].clone(), report["warnings"].clone()), (json("[]"), json("[]")));
}

#[test]
fn the_version_is_the_workspaces_and_names_the_time_zone_database() {
    let (code, stdout, _) = parts(&offhours(&["--version"]));
    assert_eq!(code, 0);
    let version = concat!("offhours ", env!("CARGO_PKG_VERSION"));
    assert!(stdout.starts_with(version), "{stdout}");
    let database = stdout.lines().nth(1).expect("a second line");
    assert!(database.starts_with("time zone database 20"), "{stdout}");
    assert_eq!(parts(&offhours(&["-V"])).1.lines().count(), 1);
}

#[test]
fn what_is_hardly_meant_goes_to_standard_error() {
    let text =
        "schedules.s = { timezone = \"UTC\", start = \"0 8 * * 1-5\", stop = \"0 19 * * *\" }";
    let config = file("digits.toml", text);
    let days = "schedules.s.start: `1-5` is mon-fri here, as in cron";
    for arguments in [&["validate", "--config", &config][..], &["preview", "--config", &config]] {
        let (code, _, stderr) = parts(&offhours(arguments));
        assert_eq!(code, 0, "{stderr}");
        assert!(stderr.contains(days), "{stderr}");
    }
}

#[test]
fn problems_go_to_standard_error_and_the_exit_code_is_2() {
    let config = file("bad.toml", "mod = \"act\"\n\n[schedules.s]\nperiods = [{}]\n");
    let (code, stdout, stderr) = parts(&offhours(&["validate", "--config", &config]));
    assert_eq!((code, stdout.as_str()), (2, ""));
    let expected = format!(
        "{config}:1: mod: unknown key; did you mean `mode`?\n\
         {config}:3: schedules.s: has no time zone; \
         write timezone = \"Europe/Berlin\" here or at the top of the file\n\
         error: {config} has 2 problems\n"
    );
    assert_eq!(stderr, expected);

    let output = offhours(&["validate", "--config", &config, "-o", "json"]);
    let (code, stdout, stderr) = parts(&output);
    assert_eq!((code, stderr), (2, expected));
    let report = json(&stdout);
    assert_eq!(report["valid"], false);
    assert_eq!(report["problems"][0]["file"], config.as_str());
    assert_eq!(report["problems"][0]["line"], 1);
    assert_eq!(report["problems"][1]["line"], 3);

    let (code, stdout, _) = parts(&offhours(&["preview", "--config", &config]));
    assert_eq!((code, stdout.as_str()), (2, ""));
}

#[test]
fn warnings_go_to_standard_error_and_change_nothing() {
    let config = file("idle.toml", OFFICE_HOURS);
    let (code, stdout, stderr) = parts(&offhours(&["validate", "--config", &config]));
    assert_eq!(code, 0);
    assert!(stdout.contains("is valid"), "{stdout}");
    assert!(stderr.contains(&format!("{config}:1: warning: there are no accounts")), "{stderr}");
}

#[test]
fn a_file_that_is_not_there_is_bad_usage_with_its_cause() {
    for command in [&["validate"][..], &["preview", "--config", "offhours.toml"]] {
        let (code, stdout, stderr) = parts(&offhours(command));
        assert_eq!((code, stdout.as_str()), (2, ""));
        assert!(stderr.starts_with("error: cannot read offhours.toml (name"), "{stderr}");
        assert!(stderr.contains("--config): "), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[test]
fn bad_arguments_are_bad_usage_with_an_example() {
    let config = file("usage.toml", OFFICE_HOURS);
    let check = |arguments: &[&str], expected: &str| {
        let arguments = [&["preview", "--config", &config], arguments].concat();
        let (code, stdout, stderr) = parts(&offhours(&arguments));
        assert_eq!((code, stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(stderr.starts_with("error: ") && stderr.contains(expected), "{stderr}");
    };
    check(&["--for", "soon"], "such as 90m, 36h, 7d or 1d12h");
    check(&["--for=-7d"], "such as 90m, 36h, 7d or 1d12h");
    check(&["--at", "nooon"], "did you mean `noon`? write a time such as 2h, 21:00");
    check(&["--schedule", "ofice-hours"], "did you mean `office-hours`?");
    check(&["--schedule", "x"], "the schedules are night-shift, office-hours");
    check(&["--at", "9999-12-30T00:00:00Z"], "too far away");
    check(&["--output", "yaml"], "possible values: table, json, csv");
    assert_eq!(parts(&offhours(&[])).0, 2);
    assert_eq!(parts(&offhours(&["preveiw"])).0, 2);
}

#[test]
fn a_preview_in_json_has_the_documented_shape() {
    let config = file("office.toml", OFFICE_HOURS);
    let arguments = ["--schedule", "office-hours", "--for", "12h", "-o", "json"];
    for at in ["2026-06-15T07:00:00Z", "2026-06-15T09:00:00+02:00", "2026-06-15 09:00"] {
        let arguments = [
            &["preview", "--config", &config, "--tz", "Europe/Berlin", "--at", at],
            &arguments[..],
        ]
        .concat();
        let (code, stdout, stderr) = parts(&offhours(&arguments));
        assert_eq!((code, stderr.as_str()), (0, ""), "{at}");
        let row = |at: &str, to: &str, cause: Option<&str>| {
            let schedule = "office-hours";
            serde_json::json!({ "at": at, "to": to, "schedule": schedule, "cause": cause, "resources": [] })
        };
        let expected = serde_json::json!([
            row("2026-06-15T07:00:00Z", "running", None),
            row("2026-06-15T17:00:00Z", "stopped", Some("schedule")),
        ]);
        assert_eq!(json(&stdout), expected, "{at}");
    }
}

#[test]
fn a_preview_shows_every_schedule_by_name_a_week_ahead_from_now_on() {
    // Without clock changes, each night has two edges in any week.
    let nights = OFFICE_HOURS.replace("America/New_York", "Asia/Tokyo");
    let config = file("all.toml", &nights);
    let (code, stdout, _) = parts(&offhours(&["preview", "--config", &config, "-o", "json"]));
    assert_eq!(code, 0);
    let preview = json(&stdout);
    let rows = preview.as_array().unwrap();
    let of = |name: &str| rows.iter().filter(|row| row["schedule"] == name).count();
    assert_eq!(of("night-shift"), 1 + 14);
    assert!(of("office-hours") > 1, "{preview}");
}

#[test]
fn a_table_is_plain_where_there_is_no_terminal() {
    let config = file("table.toml", OFFICE_HOURS);
    let at = ["--at", "2020-06-15T07:00:00Z"];
    let arguments = [&["preview", "--config", &config, "--tz", "Europe/Berlin"], &at[..]].concat();
    let (code, stdout, stderr) = parts(&offhours(&arguments));
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.contains("2020-06-15 19:00 CEST  stopped  office-hours\n"), "{stdout}");
    assert!(stdout.contains("2020-06-16 04:00 CEST  running  night-shift\n"), "{stdout}");
    // All edges of the week, and the state now.
    let stops = stdout.lines().filter(|line| line.contains("  stopped  "));
    assert_eq!(stops.count(), 7 + 5, "{stdout}");
    assert!(!stdout.contains('\u{1b}'), "{stdout}");
}

#[test]
fn a_reader_that_goes_away_is_a_quiet_end() {
    let config = file("pipe.toml", OFFICE_HOURS);
    let mut child = Command::new(env!("CARGO_BIN_EXE_offhours"))
        .args(["preview", "--config", &config, "-o", "json", "--for", "3650d"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(parts(&output), (0, String::new(), String::new()));
}

/// A validator for the schema that the command prints.
fn served_schema(what: &str) -> jsonschema::Validator {
    let (code, schema, stderr) = parts(&offhours(&["config", "schema", what]));
    assert_eq!((code, stderr.as_str()), (0, ""));
    jsonschema::validator_for(&json(&schema)).expect("a schema")
}

/// Checks that a command's output matches the schema printed for it.
#[track_caller]
fn check_fits(what: &str, document: &serde_json::Value) {
    let schema = served_schema(what);
    if let Err(error) = schema.validate(document) {
        panic!("{what} at {}: {error}", error.instance_path());
    }
    // Every key is required: the schema describes this document and no other.
    for key in document.as_object().expect("an object").keys() {
        let mut without = document.clone();
        without.as_object_mut().expect("an object").remove(key);
        assert!(!schema.is_valid(&without), "{what} without {key}");
    }
}

#[test]
fn what_is_printed_as_json_fits_the_schema_that_is_served() {
    let config = file(
        "shapes.toml",
        &format!(
            "accounts.a = {{ provider = \"hetzner\", token = \"env:T\" }}\n{OFFICE_HOURS}\
             [schedules.always]\ntimezone = \"UTC\"\nperiods = [{{}}]\n"
        ),
    );
    let bad = file("shapes-bad.toml", "mod = \"act\"\n");
    for (what, config) in [("validate", &config), ("validate", &bad)] {
        let output = offhours(&[what, "--config", config, "-o", "json"]);
        check_fits(what, &json(&parts(&output).1));
    }
    let (_, by_name, _) = parts(&offhours(&["config", "schema", "configuration"]));
    let (code, by_default, _) = parts(&offhours(&["config", "schema"]));
    assert_eq!(code, 0);
    assert_eq!(json(&by_default), json(&by_name));
    let (code, _, stderr) = parts(&offhours(&["config", "schema", "preveiw"]));
    assert_eq!(code, 2);
    assert!(stderr.contains("'preview'"), "{stderr}");
}

#[test]
fn another_schedulers_schedules_are_imported_and_what_is_left_out_needs_a_person() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/src/import/fixtures");
    let schedules = format!("{fixtures}/schedules.json");
    let periods = format!("{fixtures}/periods.json");
    let (code, stdout, stderr) = parts(&offhours(&["import", "aws", &schedules, &periods]));
    assert_eq!(code, 3, "{stderr}");
    let heading = "# From AWS Instance Scheduler. Still missing: [accounts.NAME].\n";
    assert!(stdout.starts_with(heading), "{stdout}");
    assert!(stderr.contains("left out: schedule lost: "), "{stderr}");
    let config = file("imported.toml", &stdout);
    let (code, stdout, stderr) = parts(&offhours(&["validate", "--config", &config]));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("schedule londonofficehours: "), "{stdout}");

    let scan = format!("{fixtures}/scan.json");
    let output = offhours(&["import", "aws", &scan, "-o", "json"]);
    let (code, stdout, _) = parts(&output);
    assert_eq!(code, 0);
    let report = json(&stdout);
    check_fits("import", &report);
    assert!(served_schema("configuration").is_valid(&report["configuration"]));
    assert_eq!(report["remarks"][0]["about"], "schedule all");

    // Standard input is empty here.
    let (code, stdout, stderr) = parts(&offhours(&["import", "aws", "-", &periods]));
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.contains("there are no schedules in -, "), "{stderr}");
    let packed = file("packed.json.gz", "");
    fs::write(&packed, [0x1f, 0x8b, 8, 0]).expect("the file can be written");
    let (code, _, stderr) = parts(&offhours(&["import", "aws", &packed]));
    assert_eq!(code, 2);
    assert!(stderr.contains("unpack it with gunzip"), "{stderr}");
    let (code, _, stderr) = parts(&offhours(&["import", "aws", "missing.json"]));
    assert_eq!(code, 2);
    assert!(stderr.contains("cannot read missing.json"), "{stderr}");
}

#[test]
fn what_is_no_time_range_is_refused() {
    for arguments in [
        ["history", "--since", "yesterdya"],
        ["saved", "--month", "Octember"],
        ["history", "--limit", "0"],
    ] {
        assert_eq!(parts(&offhours(&arguments)).0, 2, "{arguments:?}");
    }
}

#[test]
fn usage_lines_say_the_same_whatever_the_environment_gives() {
    let with_environment = Command::new(env!("CARGO_BIN_EXE_offhours"))
        .arg("stop")
        .envs([("OFFHOURS_DATA", "a.db"), ("OFFHOURS_SIMULATE", "http://127.0.0.1:1")])
        .output()
        .expect("the command can be run");
    let (code, _, stderr) = parts(&with_environment);
    assert_eq!(code, 2);
    let expected = "\nUsage: offhours stop [OPTIONS] [RESOURCE]...\n";
    assert!(stderr.contains(expected), "{stderr}");
    assert_eq!(parts(&offhours(&["stop"])).2, stderr);
}

#[test]
fn every_command_has_examples_in_its_help() {
    for command in ["validate", "preview", "override", "config show", "import", "history", "saved"]
    {
        let words: Vec<_> = command.split(' ').chain(["--help"]).collect();
        let (code, stdout, stderr) = parts(&offhours(&words));
        assert_eq!((code, stderr.as_str()), (0, ""));
        assert!(stdout.contains(&format!("Examples:\n  offhours {command}")), "{stdout}");
    }
    let (code, stdout, _) = parts(&offhours(&["--help"]));
    assert_eq!(code, 0);
    assert!(stdout.contains("Exit codes: 0 done"), "{stdout}");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("man");
    let (code, stdout, stderr) = parts(&offhours(&["man", folder.to_str().expect("text")]));
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (0, "", ""));
    for (page, words) in [
        ("offhours", "Stop cloud resources when nobody uses them"),
        ("offhours-status", "Show"),
        ("offhours-config-rollback", "in force before"),
    ] {
        let page = fs::read_to_string(folder.join(format!("{page}.1"))).expect("a page");
        assert!(page.contains(".TH ") && page.contains(words), "{page}");
    }
}

#[test]
fn a_file_that_is_not_text_is_named_with_the_line_where_that_shows() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("binary.toml");
    fs::write(&path, b"# a comment\n\x7fELF\xff\xfe").expect("the file can be written");
    let path = path.to_str().expect("the path is text");
    let ended = offhours(&["validate", "--config", path]);
    assert_eq!(ended.status.code(), Some(2));
    let answer = String::from_utf8_lossy(&ended.stderr).into_owned();
    let expected =
        format!("error: cannot read {path} (name another file with --config): line 2 is ");
    assert!(answer.starts_with(&expected), "{answer}");
}

#[test]
fn a_limit_of_no_entries_is_bad_usage() {
    let ended = offhours(&["config", "log", "-n", "0"]);
    assert_eq!(ended.status.code(), Some(2));
    let answer = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(answer.contains("invalid value '0' for '--limit <N>'"), "{answer}");
}

/// Runs the command in a folder, subject to file permissions: root drops its capability to ignore
/// them.
fn without_privileges(folder: &Path, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_offhours");
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let mut command = if is_root {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-dac_override,-dac_read_search", program]);
        command
    } else {
        Command::new(program)
    };
    command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("the command can be run")
}

/// A folder with a store, `store.db`, in which a configuration is in force.
fn folder_with_store(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        set_mode(&folder, 0o755);
        fs::remove_dir_all(&folder).expect("the folder can be removed");
    }
    fs::create_dir_all(&folder).expect("the folder can be made");
    fs::write(folder.join("offhours.toml"), OFFICE_HOURS).expect("the file can be written");
    let applied = without_privileges(&folder, &["apply", "--yes", "--data", "store.db"]);
    assert_eq!(parts(&applied).0, 0, "{:?}", parts(&applied));
    folder
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the mode can be set");
}

#[test]
fn a_store_that_cannot_be_opened_says_what_it_is_and_what_to_do() {
    let folder = folder_with_store("unopened");
    let store = fs::read(folder.join("store.db")).expect("the store can be read");
    let damaged = {
        let mut pages = store.clone();
        // The header of every page but the first.
        pages.chunks_mut(4096).skip(1).for_each(|page| page[..100].fill(0xff));
        pages
    };
    fs::write(folder.join("damaged.db"), damaged).expect("written");
    fs::write(folder.join("text.db"), "hello\n").expect("written");
    fs::write(folder.join("empty.db"), "").expect("written");
    let foreign = rusqlite::Connection::open(folder.join("foreign.db")).expect("opened");
    foreign.execute_batch("CREATE TABLE shop (id INT)").expect("made");
    fs::write(folder.join("unreadable.db"), &store).expect("written");
    set_mode(&folder.join("unreadable.db"), 0o000);
    for (data, code, expected) in [
        (
            "nosuch.db",
            2,
            "error: there is no store at nosuch.db: `offhours apply --data nosuch.db` makes a new one, and \
             `offhours restore --data nosuch.db` one from a backup",
        ),
        (
            "empty.db",
            2,
            "error: there is no store at empty.db: `offhours apply --data empty.db` makes a new one, and \
             `offhours restore --data empty.db` one from a backup",
        ),
        ("nosuch/store.db", 2, "error: there is no folder nosuch"),
        (".", 2, "error: . is a folder: name the file of a store"),
        ("text.db", 2, "error: text.db is not a store, and was left as it is: name another file"),
        (
            "foreign.db",
            2,
            "error: foreign.db is a database of something else (it has a table `shop`), and was \
             left as it is: name another file",
        ),
        ("unreadable.db", 1, "error: cannot read the store at unreadable.db: Permission denied"),
        (
            "damaged.db",
            1,
            "error: the store at damaged.db is damaged: restore a copy of it, or move it away and \
             apply the configuration again; only the copy has the sizes that stopped resources are \
             owed: ",
        ),
    ] {
        let path = folder.join(data);
        let before = fs::read(&path).ok();
        let shown = parts(&without_privileges(&folder, &["status", "--data", data]));
        assert_eq!(shown.0, code, "{data}: {shown:?}");
        assert!(shown.2.starts_with(expected), "{data}: {}", shown.2);
        assert_eq!(fs::read(&path).ok(), before, "{data}");
        let refused_by_apply = !["nosuch.db", "empty.db"].contains(&data);
        if refused_by_apply {
            let applied = parts(&without_privileges(&folder, &["apply", "--yes", "--data", data]));
            assert_eq!((applied.0, &applied.2), (code, &shown.2), "{data}");
            assert_eq!(fs::read(&path).ok(), before, "{data}");
        }
    }
}

#[test]
fn a_store_that_may_only_be_read_is_shown_and_not_changed() {
    let folder = folder_with_store("read-only");
    let file = folder.join("store.db");
    let before = fs::read(&file).expect("the store can be read");
    set_mode(&file, 0o444);
    set_mode(&folder, 0o555);
    let run = |arguments: &[&str]| {
        let (code, stdout, stderr) = parts(&without_privileges(&folder, arguments));
        (code, stdout, stderr)
    };
    for command in ["config log", "status", "config show"] {
        let words: Vec<_> = command.split(' ').chain(["--data", "store.db"]).collect();
        let (code, stdout, stderr) = run(&words);
        assert_eq!(code, 0, "{command}: {stderr}");
        let note = "note: store.db is read-only: this shows a copy of its present state\n";
        assert!(stderr.starts_with(note), "{command}: {stderr}");
        assert!(command == "status" || stdout.contains("office-hours") || stdout.contains('1'));
    }
    for command in [
        ["apply", "--yes"].as_slice(),
        &["override", "running", "--schedule", "office-hours", "--for", "1h"],
        &["approve", "--all"],
    ] {
        let (code, _, stderr) = run(&[command, &["--data", "store.db"]].concat());
        assert_eq!(code, 1, "{command:?}: {stderr}");
        let expected = "error: cannot write to the store at store.db: check that you may write to \
                        the file and to its folder";
        assert!(stderr.starts_with(expected), "{command:?}: {stderr}");
    }
    assert_eq!(fs::read(&file).expect("the store can be read"), before);
    set_mode(&folder, 0o755);
}

#[test]
fn one_service_at_a_time_works_on_a_file() {
    let folder = folder_with_store("locked");
    let begin = || {
        let mut child = Command::new(env!("CARGO_BIN_EXE_offhours"))
            .args(["serve", "--data", "store.db", "--listen", "127.0.0.1:0"])
            .current_dir(&folder)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command can be run");
        let mut line = String::new();
        let stderr = child.stderr.take().expect("it is piped");
        BufReader::new(stderr).read_line(&mut line).expect("it says something");
        (child, line)
    };
    let (mut first, line) = begin();
    assert!(line.starts_with("Listening on "), "{line}");
    let (code, _, stderr) = parts(&without_privileges(&folder, &["serve", "--data", "store.db"]));
    let expected = "error: another `offhours serve` or `local` works on store.db: stop it first, or \
                    leave the work to it\n";
    assert_eq!((code, stderr.as_str()), (1, expected));
    // However the first process ends, the next may start.
    first.kill().expect("it can be killed");
    first.wait().expect("it ends");
    let (mut next, line) = begin();
    assert!(line.starts_with("Listening on "), "{line}");
    // One that ends normally leaves no lock file behind.
    let id = next.id().to_string();
    let interrupted = Command::new("kill").args(["-INT", &id]).status();
    assert!(interrupted.expect("it can be interrupted").success());
    next.wait().expect("it ends");
    assert!(!folder.join("store.db.lock").exists());
}

#[test]
fn a_disk_without_room_is_named() {
    let folder = folder_with_store("no-room");
    // No file may grow beyond 8 KB, so the files that SQLite keeps beside the store do not fit.
    let script = format!(
        "trap '' XFSZ; ulimit -f 16; exec {} override running --schedule office-hours --for 1h \
         --data store.db",
        env!("CARGO_BIN_EXE_offhours")
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(&folder)
        .output()
        .expect("the command can be run");
    let (code, _, stderr) = parts(&output);
    assert_eq!(code, 1, "{stderr}");
    let expected = "error: cannot write to the store at store.db: check that its disk has room and \
                    works: ";
    assert!(stderr.starts_with(expected), "{stderr}");
}

/// The completions that a shell is offered for the last of these words.
fn offered(folder: &Path, words: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_offhours"))
        .arg("--")
        .args(words)
        .current_dir(folder)
        .envs([("COMPLETE", "fish")])
        .output()
        .expect("the command can be run");
    let (code, stdout, stderr) = parts(&output);
    assert_eq!((code, stderr.as_str()), (0, ""), "{words:?}");
    let word = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
    stdout.lines().map(word).collect()
}

#[test]
fn a_shell_is_offered_the_names_of_the_store() {
    let folder = folder_with_store("completed");
    let status = ["offhours", "status", "--data", "store.db"];
    let schedules = offered(&folder, &[&status[..], &["--schedule", ""]].concat());
    assert_eq!(schedules, ["night-shift", "office-hours"]);
    let begun = offered(&folder, &[&status[..], &["--schedule", "off"]].concat());
    assert_eq!(begun, ["office-hours"]);
    let commands = offered(&folder, &["offhours", "hist"]);
    assert_eq!(commands, ["history"]);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, script, _) = parts(&offhours(&["completions", shell]));
        assert_eq!(code, 0, "{shell}");
        assert!(script.contains("COMPLETE"), "{shell}: {script}");
    }
}
