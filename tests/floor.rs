//! The guard rails of a deployment, which hold whatever a configuration says.

use std::collections::BTreeSet;

use domain::configuration::{Floor, Mode};
use lifecycle::Event;
use serde_json::{Value, json};

use crate::{
    programs::Terminal,
    runtime::Function,
    support::{
        ACCOUNTS, EACH_KIND, World, droplet, monday, office_hours, one_of_each_kind, parse,
        program, run,
    },
};

/// A service with these guard rails, and a configuration that has none.
async fn world(floor: Floor, fleet: &str) -> World {
    let configuration = parse(&office_hours("", "", ""));
    World::under(floor, configuration, fleet, monday("17:48:00")).await
}

fn protecting(pattern: &str) -> Floor {
    Floor { protect: vec![pattern.parse().unwrap()], mode: Mode::Act }
}

#[test]
fn what_the_deployment_protects_is_touched_by_no_schedule_and_no_command() {
    run(async {
        let tags = ["offhours:office"];
        let fleet = [ACCOUNTS, &droplet(1, "shop-prod", &tags), &droplet(2, "free", &tags)];
        let world = world(protecting("name:*prod*"), &fleet.concat()).await;
        world.run_until(monday("17:50:30")).await;
        let command = json!({ "resources": ["do-main/droplet/1"] });
        let report = world.stop(&command).await;
        let declined = |event: &Event| matches!(event, Event::Declined { .. });
        assert!(report.outcomes.iter().all(|one| declined(&one.event)));
        world.run_until(monday("18:12:30")).await;
        let touched = BTreeSet::from(["do-main/droplet/2".to_owned()]);
        assert_eq!(world.touched(), touched);
    });
}

#[test]
fn a_deployment_that_observes_sends_nothing_whatever_is_applied() {
    run(async {
        let floor = Floor { protect: Vec::new(), mode: Mode::Observe };
        let mut world = world(floor, &one_of_each_kind()).await;
        world.run_until(monday("18:12:30")).await;
        world.stop(&json!({ "resources": EACH_KIND })).await;
        assert_eq!(world.touched(), BTreeSet::new());
        for resource in EACH_KIND {
            let asks = |event: &Event| matches!(event, Event::WouldAsk { .. });
            assert!(world.events(resource).iter().any(asks), "{resource}");
        }
    });
}

#[test]
fn the_functions_keep_to_the_floor_of_their_settings() {
    run(async {
        let world = world(Floor::default(), &one_of_each_kind()).await;
        world.run_until(monday("17:50:30")).await;
        let store = format!("http://{}", testing::serve(world.engine.clone()).await);
        let settings =
            [("AWS_ENDPOINT_URL", store.as_str()), ("OFFHOURS_PROTECT", "name:web,name:ci")];
        let command = json!({ "resources": ["do-main/droplet/1", "hz-eu/server/11"] });
        for function in ["stop", "start"] {
            let function = Function::start(program(function), command.clone(), &settings).await;
            let report = function.answer().await.to_string();
            let words = "protected by `name:web`, which the deployment sets";
            assert!(report.contains(words), "{report}");
        }
        assert_eq!(world.touched(), BTreeSet::new());
    });
}

const STRICT: &str = "protect = [\"name:*prod*\"]\nmode = \"observe\"\n";

#[test]
fn a_pipeline_gives_up_no_guard_rail_unless_it_says_so() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        terminal.write(&office_hours(STRICT, "", ""));
        let applied = terminal.run(&["apply", "--yes"]).await;
        assert_eq!(applied.code, Some(0), "{}", applied.stderr);

        terminal.write(&office_hours("", "", ""));
        let refused = terminal.run(&["apply", "--yes"]).await;
        assert_eq!(refused.code, Some(1), "{}", refused.stdout);
        let words = &refused.stderr;
        assert!(words.contains("2 guard rails") && words.contains("--loosen"), "{words}");
        assert!(words.contains("`name:*prod*` is no longer protected"), "{words}");

        let shown = terminal.run(&["apply", "--dry-run", "-o", "json"]).await;
        let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
        assert_eq!(shown["loosened"].as_array().unwrap().len(), 2);

        let loosened = terminal.run(&["apply", "--yes", "--loosen"]).await;
        assert_eq!(loosened.code, Some(0), "{}", loosened.stderr);
        let back = terminal.run(&["config", "rollback", "--yes"]).await;
        assert_eq!(back.code, Some(0), "{}", back.stderr);
        let again = terminal.run(&["config", "rollback", "--yes"]).await;
        assert_eq!(again.code, Some(1), "{}", again.stdout);
    });
}

#[test]
fn apply_and_why_show_what_the_deployment_protects() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        let with_floor = async |arguments: &[&str]| {
            let floor = [("OFFHOURS_PROTECT", "name:web"), ("OFFHOURS_MODE", "observe")];
            terminal.run_with(&floor, arguments).await
        };
        terminal.write(&office_hours("", "", ""));
        let applied = with_floor(&["apply", "--yes"]).await;
        assert_eq!(applied.code, Some(0), "{}", applied.stderr);
        let says = "The deployment protects name:web and only observes, whatever is applied.";
        assert!(applied.stdout.contains(says), "{}", applied.stdout);

        let inventory = ["local", "--speed", "0", "--for", "10m"];
        let ran = with_floor(&inventory).await;
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let stopped = with_floor(&["stop", "do-main/droplet/1", "--yes"]).await;
        let words = format!("{}{}", stopped.stdout, stopped.stderr);
        assert!(words.contains("protected by `name:web`, which the deployment sets"), "{words}");
        let log = terminal.simulator.log().await;
        assert!(log.iter().all(|entry| entry["request"]["method"] == "GET"));
    });
}

#[test]
fn an_account_that_the_deployment_protects_is_renamed_only_once_it_protects_both_names() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        let office = office_hours("", "", "");
        let protecting = async |patterns: &str, arguments: &[&str]| {
            terminal.run_with(&[("OFFHOURS_PROTECT", patterns)], arguments).await
        };
        terminal.write(&office);
        let ran = protecting("do-main/droplet/1", &["apply", "--yes"]).await;
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        protecting("do-main/droplet/1", &["local", "--speed", "0", "--for", "10m"]).await;

        let renamed = "[accounts.do-live]\nwas = \"do-main\"";
        terminal.write(&office.replace("[accounts.do-main]", renamed));
        let refused = protecting("do-main/droplet/1", &["apply", "--yes"]).await;
        assert_eq!(refused.code, Some(1), "{}", refused.stdout);
        let says = "no longer be protected by the deployment, such as web (do-main/droplet/1)";
        assert!(refused.stderr.contains(says), "{}", refused.stderr);
        let both = "do-main/droplet/1,do-live/droplet/1";
        let applied = protecting(both, &["apply", "--yes"]).await;
        assert_eq!(applied.code, Some(0), "{}", applied.stderr);
    });
}
