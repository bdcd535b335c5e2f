//! What a newer program wrote is left alone, and does not hold up anything else.

use aws_sdk_dynamodb::types::AttributeValue;
use cloud_simulator::Act;
use domain::{configuration::Generation, record::Phase};
use lifecycle::Event;
use local::engine::Engine;
use serde_json::json;
use store::item::{Item, account_state_key, generation_key, record_key};

use crate::{
    programs::Terminal,
    support::{
        World, monday, office_hours, one_of_each_kind, parse, reference, run, server, tables,
    },
};

const SERVER: &str = "hz-eu/server/11";
pub(crate) const RESOURCES: &str = "offhours-resources";
const ACCOUNT_STATES: &str = "offhours-accounts";

/// Rewrites an item as a newer program would, and returns it.
pub(crate) async fn rewrite(world: &World, table: &str, key: Item) -> Item {
    let mut item = stored(world, table, key).await;
    item.insert("format".to_owned(), AttributeValue::N("99".to_owned()));
    let put = world.engine.client().put_item().table_name(table);
    put.set_item(Some(item.clone())).send().await.unwrap();
    item
}

async fn stored(world: &World, table: &str, key: Item) -> Item {
    let get = world.engine.client().get_item().table_name(table);
    let answer = get.set_key(Some(key)).send().await.unwrap();
    answer.item.unwrap()
}

/// A world before its evening edge, whose resources have all been seen.
async fn before_the_edge() -> World {
    let configuration = office_hours("", "", "");
    let world = World::start(&configuration, &one_of_each_kind(), monday("17:48:00")).await;
    world.run_until(monday("17:55:00")).await;
    world
}

#[test]
fn a_record_is_neither_taken_for_new_nor_for_gone_and_the_others_are_stopped() {
    run(async {
        let mut world = before_the_edge().await;
        let server = reference(SERVER);
        let newer = rewrite(&world, RESOURCES, record_key(&server)).await;
        let without = |world: &World| {
            let mut touched = world.touched();
            assert!(!touched.remove(SERVER), "the server was touched");
            touched
        };
        world.run_until(monday("18:20:00")).await;
        // Several inventories with the server, and several without it.
        world.simulator().person(&server, Act::Delete).unwrap();
        world.run_until(monday("18:40:00")).await;
        assert_eq!(without(&world).len(), 3, "{:?}", world.touched());
        assert!(world.was_seen("do-main/droplet/1"));
        assert_eq!(stored(&world, RESOURCES, record_key(&server)).await, newer);

        let command = json!({ "resources": [SERVER] });
        let report = world.stop(&command).await;
        let [declined] = &report.outcomes[..] else {
            panic!("{report:?}");
        };
        assert!(
            matches!(&declined.event, Event::Declined { reason } if reason.contains("format 99")),
            "{declined:?}"
        );
        let [left] = &report.left_alone[..] else {
            panic!("{report:?}");
        };
        assert_eq!(left.reference, SERVER);
        assert_eq!(stored(&world, RESOURCES, record_key(&server)).await, newer);
    });
}

#[test]
fn a_record_is_no_newcomer_that_has_others_held() {
    run(async {
        let configuration = office_hours("max_new = 1", "", "");
        let world = World::start(&configuration, &one_of_each_kind(), monday("12:00:00")).await;
        world.run_until(monday("12:02:00")).await;
        rewrite(&world, RESOURCES, record_key(&reference(SERVER))).await;
        let one_more = server(12, "").replace("[[servers]]", "[[servers]]\naccount = \"hz-eu\"");
        world.simulator().create(&one_more).unwrap();
        world.run_until(monday("12:08:00")).await;
        let record = world.record("hz-eu/server/12").await;
        assert!(record.opted_in && !record.held, "{record:#?}");
    });
}

#[test]
fn an_account_whose_state_is_newer_is_not_listed_and_the_other_goes_on() {
    run(async {
        let mut world = before_the_edge().await;
        let account = "do-main".parse().unwrap();
        let newer = rewrite(&world, ACCOUNT_STATES, account_state_key(&account)).await;
        world.run_until(monday("18:20:00")).await;
        assert!(world.was_seen(SERVER));
        // The age of the observations in that account is unknown.
        assert_eq!(world.touched().len(), 1, "{:?}", world.touched());
        let record = world.record("do-main/droplet/1").await;
        assert!(matches!(record.phase, Phase::Settled { .. }));
        let state = stored(&world, ACCOUNT_STATES, account_state_key(&account)).await;
        assert_eq!(state, newer);
    });
}

#[test]
fn an_older_command_replaces_a_configuration_that_it_cannot_read() {
    const SCHEDULES: &str = "offhours-schedules";
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        let configuration = office_hours("", "", "");
        terminal.local(&configuration, "12:03:00").await;
        terminal.write(&configuration);
        let engine = Engine::on_file(&terminal.data).unwrap();
        let client = engine.client();
        let items = client.scan().table_name(SCHEDULES).send().await.unwrap();
        let first = AttributeValue::S(generation_key(Generation(1)));
        let of_the_first = |item: &Item| item["generation_key"] == first;
        for mut item in items.items.unwrap().into_iter().filter(of_the_first) {
            item.insert("format".to_owned(), AttributeValue::N("99".to_owned()));
            let put = client.put_item().table_name(SCHEDULES);
            put.set_item(Some(item)).send().await.unwrap();
        }

        let refused = terminal.run(&["list"]).await;
        assert_eq!(refused.code, Some(1), "{}", refused.stdout);
        assert!(refused.stderr.contains("newer than this program knows"));
        let applied = terminal.run(&["apply", "--yes"]).await;
        assert_eq!(applied.code, Some(0), "{}", applied.stderr);
        let warning = "warning: a newer offhours than this one wrote generation 1: it cannot be \
                       compared, and all of it is replaced\n";
        assert!(applied.stderr.contains(warning), "{}", applied.stderr);
        let store = engine.store(tables());
        let in_force = store.in_force().await.unwrap().configuration;
        assert_eq!(in_force.generation, Generation(2));
        assert!(in_force.eq_ignoring_generation(&parse(&configuration)));
        // Nothing joins anew because of that.
        let record = store.record(&reference(SERVER)).await.unwrap().unwrap();
        assert!(record.opted_in && !record.held);
        assert_eq!(record.handled.unwrap().generation, Generation(1));
    });
}
