//! Only the table of schedules is restored from a backup, so that the generation in force is behind
//! the one that was handled. That is reported, and applying again fixes it.

use domain::{configuration::Generation, resource::Power};
use lifecycle::{Event, event::Subject};
use local::engine::Engine;
use serde_json::Value;

use crate::{
    process::DiscardInvocations,
    programs::Terminal,
    support::{
        ACCOUNTS, World, an_hour_off, dispatch, monday, office_hours, reference, run, server,
        tables,
    },
};

const SERVER: &str = "hz-eu/server/11";
const TABLE: &str = "offhours-schedules";

async fn observed(world: &World) -> Option<Power> {
    let observed = world.record(SERVER).await.observed;
    observed.map(|observed| observed.power)
}

#[test]
fn a_restored_table_of_schedules_is_reported_and_the_next_apply_goes_on() {
    run(async {
        let fleet = [ACCOUNTS, &server(11, "")].concat();
        let mut world = World::start(&an_hour_off(""), &fleet, monday("17:48:00")).await;
        let client = world.engine.client();
        let scan = client.scan().table_name(TABLE).send().await;
        let backup = scan.unwrap().items.unwrap();
        world.apply(&an_hour_off("max_stops = 7")).await;
        world.run_until(monday("18:05:30")).await;
        assert_eq!(observed(&world).await, Some(Power::Stopped));

        for item in backup {
            let put = client.put_item().table_name(TABLE);
            put.set_item(Some(item)).send().await.unwrap();
        }
        world.run_until(monday("19:10:30")).await;
        // The begin of the evening's window has passed, and nothing was done.
        assert_eq!(observed(&world).await, Some(Power::Stopped));
        let words = "generation 2 has handled them, and generation 1 is in force";
        let says = |event: &Event| matches!(event, Event::Postponed { reason, .. } if reason.words().contains(words));
        let outcomes = world.outcomes().iter();
        let said = outcomes.filter(|outcome| says(&outcome.event));
        let hetzner = Subject::Account {
            account: "hz-eu".parse().unwrap(),
        };
        let subjects: Vec<_> = said.map(|outcome| &outcome.subject).collect();
        assert!(!subjects.is_empty());
        assert!(
            subjects.iter().all(|subject| **subject == hetzner),
            "{subjects:?}"
        );
        let (store, now) = (world.local.store(), world.local.now());
        let withheld = dispatch(store, &DiscardInvocations, now).await.withheld;
        assert_eq!(withheld[&"hz-eu".parse().unwrap()].ahead, 1, "{withheld:?}");

        world.apply(&an_hour_off("")).await;
        let head = world.local.store().head_and_overrides().await.unwrap().head;
        assert_eq!(head.generation, Generation(3));
        world.run_until(monday("19:15:30")).await;
        assert_eq!(observed(&world).await, Some(Power::Running));
    });
}

#[test]
fn doctor_names_it_and_apply_goes_on_though_the_file_says_the_same() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        let configuration = office_hours("", "", "");
        terminal.local(&configuration, "12:03:00").await;
        terminal.write(&configuration);
        let store = Engine::on_file(&terminal.data).unwrap().store(tables());
        let mut record = store.record(&reference(SERVER)).await.unwrap().unwrap();
        record.handled.as_mut().unwrap().generation = Generation(7);
        store.save(record).await.unwrap();

        let found = async || -> Vec<Value> {
            let ended = terminal.run(&["doctor", "--format", "json"]).await;
            let findings: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
            let of = |finding: &Value| {
                finding["check"] == "configuration" && finding["verdict"] == "problem"
            };
            findings.into_iter().filter(of).collect()
        };
        let problems = found().await;
        assert_eq!(problems.len(), 1, "{problems:#?}");
        let remedy = problems[0]["remedy"].as_str().unwrap();
        assert!(remedy.starts_with("`offhours apply` again"), "{remedy}");

        let apply = async |arguments: &[&str]| {
            let arguments = [&["apply", "--format", "json"], arguments].concat();
            let ended = terminal.run(&arguments).await;
            let plan: Value = serde_json::from_str(&ended.stdout).unwrap();
            assert!(
                ended
                    .stderr
                    .contains("generation than 1 has handled 1 record")
            );
            (ended.code, plan)
        };
        let (code, plan) = apply(&["--dry-run"]).await;
        assert_eq!((code, &plan["ahead"]), (Some(3), &Value::from(1)));
        let (code, plan) = apply(&["--yes"]).await;
        assert_eq!((code, &plan["applied"]), (Some(0), &Value::from(8)));
        assert_eq!(found().await, [Value::Null; 0]);
    });
}
