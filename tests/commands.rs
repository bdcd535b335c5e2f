//! The commands of a person on a local store, as the built program answers them.

use std::{path::Path, process::Output};

use tempfile::TempDir;

use crate::{
    programs::{Keeps, LocalProgram, SimulatorProgram},
    support::{EACH_KIND, monday, office_hours, one_of_each_kind, program, run},
};

fn offhours(arguments: &[&str], data: &Path) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = std::process::Command::new(program("offhours", "offhours"))
        .args(arguments)
        .arg("--data")
        .arg(data)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn commands_read_the_store_that_local_left_and_answer_by_their_exit_codes() {
    run(async {
        let directory = TempDir::new().unwrap();
        let data = directory.path().join("offhours.db");
        let (code, _, told) = offhours(&["status"], &data);
        assert_eq!(code, Some(2));
        assert!(told.contains("there is no store at"), "{told}");

        let simulator = SimulatorProgram::start(&one_of_each_kind(), monday("12:00:00")).await;
        let local = LocalProgram::new(&office_hours("", "", ""), Keeps::File(data.clone()));
        local.run(&simulator, monday("12:03:00")).await;

        let (code, rows, _) = offhours(&["status", "--format", "json"], &data);
        assert_eq!(code, Some(0));
        let rows: Vec<serde_json::Value> = serde_json::from_str(&rows).unwrap();
        let known: Vec<_> = rows
            .iter()
            .map(|r| r["resource"].as_str().unwrap())
            .collect();
        assert_eq!(known, EACH_KIND);
        assert!(
            rows.iter().all(|row| row["schedule"] == "office"),
            "{rows:#?}"
        );

        let (code, told, _) = offhours(&["start", "web", "--dry-run"], &data);
        assert_eq!(code, Some(0));
        assert!(told.contains("would start"), "{told}");
        let (code, _, told) = offhours(&["start", "wbe"], &data);
        assert_eq!(code, Some(2));
        assert!(told.contains("did you mean `web`?"), "{told}");
        let (code, _, told) = offhours(&["approve", "web"], &data);
        assert_eq!(code, Some(2));
        assert!(told.contains("web is not held"), "{told}");
        let (code, told, _) = offhours(&["approve", "--all"], &data);
        assert_eq!((code, told.as_str()), (Some(0), "Nothing was held.\n"));
    });
}
