//! A configuration in force that is older than it should be: only the table of schedules is restored
//! from a backup, so that the generation in force is behind the one that was handled; or something
//! other than an apply writes the head. That is reported, and applying again fixes it.

use aws_sdk_dynamodb::types::AttributeValue;
use domain::{configuration::Generation, resource::Power};
use lifecycle::{Event, Occurrence, event::Subject};
use local::engine::Engine;
use serde_json::Value;
use store::item;

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
        let hetzner = Subject::Account { account: "hz-eu".parse().unwrap() };
        let subjects: Vec<_> = said.map(|outcome| &outcome.subject).collect();
        assert!(!subjects.is_empty());
        assert!(subjects.iter().all(|subject| **subject == hetzner), "{subjects:?}");
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
            let ended = terminal.run(&["doctor", "-o", "json"]).await;
            let findings: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
            let of = |finding: &Value| {
                finding["check"] == "configuration" && finding["level"] == "problem"
            };
            findings.into_iter().filter(of).collect()
        };
        let problems = found().await;
        assert_eq!(problems.len(), 1, "{problems:#?}");
        let remedy = problems[0]["remedy"].as_str().unwrap();
        assert!(remedy.starts_with("`offhours apply` again"), "{remedy}");

        let apply = async |arguments: &[&str]| {
            let arguments = [&["apply", "-o", "json"], arguments].concat();
            let ended = terminal.run(&arguments).await;
            let plan: Value = serde_json::from_str(&ended.stdout).unwrap();
            assert!(ended.stderr.contains("generation than 1 has handled 1 record"));
            (ended.code, plan)
        };
        let (code, plan) = apply(&["--dry-run"]).await;
        assert_eq!((code, &plan["applied"]), (Some(0), &Value::Null));
        let (code, plan) = apply(&["--yes"]).await;
        assert_eq!((code, &plan["applied"]), (Some(0), &Value::from(8)));
        assert_eq!(found().await, [Value::Null; 0]);
    });
}

/// Writes the head, as an operator's role allowed before overrides had a partition of their own.
async fn put_into_force(engine: &Engine, generation: u64) {
    let client = engine.client();
    let (key, head) = ("generation_key", AttributeValue::S(item::HEAD.to_owned()));
    let get = client.get_item().table_name(TABLE).key(key, head.clone());
    let read = get.key("name", head).send().await.unwrap();
    let mut forged = read.item.unwrap();
    let generation = AttributeValue::N(generation.to_string());
    forged.insert("generation".to_owned(), generation);
    let put = client.put_item().table_name(TABLE);
    put.set_item(Some(forged)).send().await.unwrap();
}

#[test]
fn a_head_that_no_apply_wrote_is_reported_with_each_inventory() {
    run(async {
        let fleet = [ACCOUNTS, &server(11, "")].concat();
        let mut world = World::start(&an_hour_off(""), &fleet, monday("12:00:00")).await;
        world.apply(&an_hour_off("max_stops = 7")).await;
        world.run_until(monday("12:10:30")).await;
        let overruled = |outcomes: &[Occurrence]| -> Vec<_> {
            let events = outcomes.iter().map(|outcome| outcome.event.clone());
            events.filter(|event| matches!(event, Event::ConfigurationOverruled { .. })).collect()
        };
        assert_eq!(overruled(world.outcomes()), []);
        put_into_force(&world.engine, 1).await;
        world.run_until(monday("12:20:30")).await;
        let found = overruled(world.outcomes());
        let expected = Event::ConfigurationOverruled {
            in_force: Generation(1),
            applied: Generation(2),
            by: "a test".to_owned(),
        };
        assert!(found.len() >= 2, "{found:?}");
        assert!(found.iter().all(|one| *one == expected), "{found:?}");
    });
}

#[test]
fn every_command_tells_what_is_in_force_though_no_apply_brought_it_there() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        let apply = async |configuration: &str| {
            terminal.write(configuration);
            let ended = terminal.run(&["apply", "--yes"]).await;
            assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        };
        let observing = office_hours("mode = \"observe\"\nprotect = [\"name:*\"]", "", "");
        apply(&office_hours("", "", "")).await;
        apply(&observing).await;
        let engine = Engine::on_file(&terminal.data).unwrap();
        put_into_force(&engine, 1).await;

        let exported = terminal.run(&["config", "show"]).await.stdout;
        assert!(exported.starts_with("# Generation 1,"), "{exported}");
        assert!(!exported.contains("protect"), "{exported}");
        let log = terminal.run(&["config", "log", "-o", "json"]).await;
        let rows: Vec<Value> = serde_json::from_str(&log.stdout).unwrap();
        let in_force: Vec<_> = rows.iter().map(|row| &row["in_force"]).collect();
        assert_eq!(in_force, [false, true]);
        assert!(log.stderr.contains("generation 1 is in force"));
        let problems = async || -> Vec<String> {
            let ended = terminal.run(&["doctor", "-o", "json"]).await;
            let findings: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
            let of = |finding: &&Value| {
                finding["check"] == "configuration" && finding["level"] == "problem"
            };
            let problems = findings.iter().filter(of);
            problems.map(|finding| finding["found"].as_str().unwrap().to_owned()).collect()
        };
        let [found] = &problems().await[..] else {
            panic!("one problem");
        };
        let words = "generation 1 is in force, although generation 2 was applied last";
        assert!(found.starts_with(words), "{found}");

        // One that was never stored: nothing is done under it, and it is named.
        put_into_force(&engine, 9).await;
        let [found] = &problems().await[..] else {
            panic!("one problem");
        };
        assert_eq!(found, "generation 9 is not stored");
        assert_eq!(terminal.run(&["status"]).await.code, Some(1));

        // The file says what generation 2 did; applying it goes on all the same.
        put_into_force(&engine, 2).await;
        assert_eq!(problems().await, [""; 0]);
        put_into_force(&engine, 1).await;
        terminal.write(&office_hours("", "", ""));
        let ended = terminal.run(&["apply", "--yes", "-o", "json"]).await;
        let plan: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(plan["applied"], 3, "{}", ended.stderr);
        assert_eq!(problems().await, [""; 0]);
        put_into_force(&engine, 9).await;
        let ended = terminal.run(&["apply", "--yes", "-o", "json"]).await;
        let plan: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(plan["applied"], 10, "{}", ended.stderr);
        assert_eq!(problems().await, [""; 0]);
    });
}
