use std::collections::BTreeMap;

use domain::{
    AccountName,
    configuration::{
        CloudAccount, Configuration, Floor, Generation, Group, Mode, Policy, Rule, Settings,
        notify::{NotifyTarget, TargetKind},
    },
    event_type::EventType,
    prices::{OwnPrices, Price},
    schedule::{Definition, Schedule},
};
use store::{ApplyError, Head, Store};
use testing::{Fate, Sent};
use tokio::task::JoinSet;

use crate::{
    fixtures::{
        at, by, hetzner, monday, office_hours, office_hours_name, reference, server,
        stopped_on_friday, with_office_hours, without_schedules,
    },
    world::World,
};

async fn in_force(store: &Store) -> Configuration {
    let in_force = store.in_force().await.unwrap();
    Configuration::clone(&in_force.configuration)
}

/// Returns `configuration` as the successor of what is in force.
async fn following(store: &Store, configuration: Configuration) -> Configuration {
    Configuration {
        generation: store.head_and_overrides().await.unwrap().head.generation,
        ..configuration
    }
}

/// Applies `configuration` after what is in force.
async fn apply(store: &Store, configuration: Configuration) -> Generation {
    let configuration = following(store, configuration).await;
    let applied = store.apply(&configuration, "ada", monday()).await;
    applied.unwrap()
}

#[track_caller]
fn assert_says(actual: &Configuration, expected: &Configuration) {
    assert!(
        actual.eq_ignoring_generation(expected),
        "{actual:#?}\n says something else than\n{expected:#?}"
    );
}

#[tokio::test]
async fn before_the_first_apply_an_empty_configuration_holds() {
    let store = World::new().await.store();
    let empty = in_force(&store).await;
    assert_eq!(empty.generation, Generation(0));
    let nothing = Configuration { accounts: BTreeMap::new(), ..without_schedules() };
    assert_says(&empty, &nothing);
    assert_eq!(store.head_and_overrides().await.unwrap().head, Head::default());
}

#[tokio::test]
async fn each_apply_replaces_the_whole_configuration_by_the_next_generation() {
    let world = World::new().await;
    let store = world.store();
    for (number, author) in (1..).zip(["ada", "bob", "ada"]) {
        assert_eq!(apply(&store, by(author)).await, Generation(number));
        let read = in_force(&world.store()).await;
        assert_eq!(read.generation, Generation(number));
        assert_says(&read, &by(author));
    }
}

#[tokio::test]
async fn the_head_says_who_applied_and_when() {
    let store = World::new().await.store();
    apply(&store, by("ada")).await;
    let head =
        Head { generation: Generation(1), author: "ada".to_owned(), applied_at: Some(monday()) };
    assert_eq!(store.head_and_overrides().await.unwrap().head, head);
}

#[tokio::test]
async fn the_log_shows_what_came_into_force_newest_first_and_nothing_else() {
    let world = World::new().await;
    let store = world.store();
    assert_eq!(store.log(20).await.unwrap(), []);
    apply(&store, by("ada")).await;
    let stale = following(&store, by("late")).await;
    apply(&store, by("bob")).await;
    store.apply(&stale, "late", monday()).await.unwrap_err();
    apply(&store, by("eve")).await;
    let log = store.log(20).await.unwrap();
    let shown: Vec<_> =
        log.iter().map(|entry| (entry.generation.0, entry.applied_at, entry.repeats)).collect();
    // The refused apply has taken no number.
    let expected = [3, 2, 1].map(|generation| (generation, monday(), None));
    assert_eq!(shown, expected);
    assert_eq!(store.log(1).await.unwrap(), log[..1]);
}

#[tokio::test]
async fn a_rollback_applies_an_earlier_configuration_again_as_a_new_generation() {
    let store = World::new().await.store();
    let first = apply(&store, by("ada")).await;
    let second = apply(&store, by("bob")).await;
    let third = store.roll_back(first, second, "eve", monday()).await;
    let third = third.unwrap();
    assert!(third > second);
    assert_says(&in_force(&store).await, &by("ada"));
    let log = store.log(20).await.unwrap();
    assert_eq!((log[0].generation, log[0].repeats), (third, Some(first)));
    assert_eq!(log[0].author, "eve");
    // A rollback based on an earlier generation is too late, as any apply would be.
    let late = store.roll_back(first, second, "late", monday()).await;
    assert!(matches!(late, Err(ApplyError::Overtaken)), "{late:?}");
}

#[tokio::test]
async fn everything_that_a_configuration_says_comes_back() {
    let world = World::new().await;
    let cron = Definition {
        timezone: "Europe/Berlin".to_owned(),
        holidays: vec!["2026-12-24..2026-12-26".to_owned()],
        start: Some("0 8 * * 1-5".to_owned()),
        stop: Some("0 19 * * *".to_owned()),
        ..Definition::default()
    };
    let by_cron = Rule {
        schedule: Schedule::new(&cron).unwrap(),
        resources: [reference("do-main/database/d1").into()].into(),
        policy: Policy {
            mode: Mode::Observe,
            graceful: true,
            force: false,
            stop_size: Some("db-s-1vcpu-1gb".to_owned()),
            stop_nodes: Some(1),
            ..Policy::default()
        },
    };
    let account = CloudAccount {
        datacenters: ["fsn1-dc14", "sin"].map(|one| one.parse().unwrap()).into(),
        mode: Mode::Observe,
        url: Some("http://127.0.0.1:8080".to_owned()),
        ..hetzner()
    }
    .into();
    let configuration = Configuration {
        generation: Generation(0),
        settings: Settings {
            mode: Mode::Observe,
            protect: vec!["tag:production".parse().unwrap()],
            max_stops: 7,
            max_new: u32::MAX,
            prices: OwnPrices {
                database_month: [("2 x db-s-1vcpu-2gb".to_owned(), Price::parse("60").unwrap())]
                    .into(),
                ..OwnPrices::default()
            },
            owner_tag: Some("team".to_owned()),
            heartbeat: Some("env:HEARTBEAT".parse().unwrap()),
            notify: [("ops".parse().unwrap(), target())].into(),
            groups: [("data".parse().unwrap(), group())].into(),
        },
        accounts: [("hz-eu".parse().unwrap(), account)].into(),
        schedules: [
            (office_hours_name(), office_hours()),
            // A schedule may have the same name as an item beside it.
            ("settings".parse().unwrap(), by_cron),
        ]
        .into(),
        floor: Floor::default(),
    };
    apply(&world.store(), configuration.clone()).await;
    assert_says(&in_force(&world.store()).await, &configuration);
}

#[tokio::test]
async fn a_configuration_of_many_pages_is_read_whole() {
    let world = World::new().await;
    let database = |number: u32| reference(&format!("do-main/database/{number:064}")).into();
    let rule = Rule { resources: (0..3_500).map(database).collect(), ..office_hours() };
    let configuration = Configuration {
        schedules: (0..5)
            .map(|number| (format!("s{number}").parse().unwrap(), rule.clone()))
            .collect(),
        ..without_schedules()
    };
    apply(&world.store(), configuration.clone()).await;
    let (reader, wire) = world.process();
    assert_says(&in_force(&reader).await, &configuration);
    assert!(wire.operations().len() > 3);
}

#[tokio::test]
async fn of_several_applies_at_once_one_wins_and_nothing_of_the_others_holds() {
    let world = World::new().await;
    apply(&world.store(), by("first")).await;
    for round in 0..3 {
        let base = world.store().head_and_overrides().await.unwrap().head.generation;
        let mut people = JoinSet::new();
        for number in 0..6 {
            let store = world.store();
            people.spawn(async move {
                let configuration =
                    Configuration { generation: base, ..by(&format!("r{round}-{number}")) };
                let applied = store.apply(&configuration, "ada", monday()).await;
                (configuration, applied)
            });
        }
        let mut winners = Vec::new();
        for (configuration, applied) in people.join_all().await {
            match applied {
                Ok(generation) => winners.push((generation, configuration)),
                Err(error) => assert!(matches!(error, ApplyError::Overtaken), "{error:?}"),
            }
        }
        let [(generation, winner)] = winners.try_into().unwrap();
        let read = in_force(&world.store()).await;
        assert_eq!(read.generation, generation);
        assert!(generation > base);
        assert_says(&read, &winner);
    }
}

#[tokio::test]
async fn an_apply_that_compared_with_an_older_generation_is_overtaken() {
    let world = World::new().await;
    let store = world.store();
    apply(&store, by("first")).await;
    let stale = following(&store, by("late")).await;
    apply(&store, by("early")).await;
    let late = store.apply(&stale, "late", monday()).await;
    assert!(matches!(late, Err(ApplyError::Overtaken)), "{late:?}");
    assert_says(&in_force(&world.store()).await, &by("early"));
}

#[tokio::test]
async fn an_apply_whose_answer_is_lost_is_not_taken_for_another_persons() {
    // Loses the answer to each of its requests in turn.
    let mut lost = 0;
    loop {
        let world = World::new().await;
        let (store, wire) = world.process();
        wire.lose_answer_after(lost);
        let generation = store.apply(&by("ada"), "ada", monday()).await.unwrap();
        let read = in_force(&world.store()).await;
        assert_eq!(read.generation, generation);
        assert_says(&read, &by("ada"));
        if wire.left() == 1 {
            break;
        }
        lost += 1;
    }
    // Reads what is in force, the records of two accounts, and whether the number is free; then
    // writes settings, three schedules, two accounts, and the head.
    assert!(lost >= 11, "{lost}");
}

#[tokio::test]
async fn an_apply_that_finds_its_own_head_has_succeeded() {
    let moves_head = |sent: &Sent| sent.operation == "TransactWriteItems";
    let (store, wire) = World::new().await.process();
    apply(&store, by("ada")).await;
    let moved = wire.sent().into_iter().find(moves_head).unwrap();
    let head = &moved.body["TransactItems"][0]["Put"]["Item"];

    // The answer is lost, and DynamoDB no longer recognizes the transaction.
    let world = World::new().await;
    let (store, wire) = world.process();
    wire.plan(moves_head, Fate::AnswerLost);
    let Fate::Refused(mut refused) = Fate::cancelled(&["ConditionalCheckFailed", "None"]) else {
        unreachable!("a cancelled transaction is refused");
    };
    refused["CancellationReasons"][0]["Item"] = head.clone();
    wire.plan(moves_head, Fate::Refused(refused));
    let generation = store.apply(&by("ada"), "ada", monday()).await.unwrap();
    assert_eq!(wire.left(), 0);
    assert_eq!(in_force(&world.store()).await.generation, generation);
    assert_says(&in_force(&world.store()).await, &by("ada"));
}

#[tokio::test]
async fn an_apply_that_meets_another_at_the_head_is_overtaken() {
    let world = World::new().await;
    let (store, wire) = world.process();
    apply(&store, by("early")).await;
    let late = following(&store, by("late")).await;
    let moves_head = |sent: &Sent| sent.operation == "TransactWriteItems";
    wire.plan(moves_head, Fate::cancelled(&["TransactionConflict", "None"]));
    let late = store.apply(&late, "late", monday()).await;
    assert!(matches!(late, Err(ApplyError::Overtaken)), "{late:?}");
    assert_says(&in_force(&world.store()).await, &by("early"));
}

#[tokio::test]
async fn an_apply_of_which_a_part_meets_a_conflict_does_not_hold() {
    // The settings take the generation; a schedule and an account follow.
    for part in 1..3 {
        let world = World::new().await;
        let (store, wire) = world.process();
        apply(&store, by("early")).await;
        let late = following(&store, with_office_hours()).await;
        let mut puts = 0;
        let is_the_part = move |sent: &Sent| {
            puts += usize::from(sent.operation == "PutItem");
            sent.operation == "PutItem" && puts == part + 1
        };
        wire.plan(is_the_part, Fate::error("TransactionConflictException"));
        let late = store.apply(&late, "late", monday()).await;
        assert!(matches!(late, Err(ApplyError::Store(_))), "{part}: {late:?}");
        assert_eq!(wire.left(), 0);
        assert_says(&in_force(&world.store()).await, &by("early"));
    }
}

/// Applies in a process that dies after this many requests have been answered. Returns the result,
/// and checks that the next process finds everything or nothing of it.
async fn dies_after(requests: usize) -> Result<Generation, ApplyError> {
    let world = World::new().await;
    apply(&world.store(), without_schedules()).await;
    world.store().save(stopped_on_friday(1)).await.unwrap();
    let (store, wire) = world.process();
    let configuration = following(&store, with_office_hours()).await;
    wire.sent();
    wire.die_after(requests);
    let applied = store.apply(&configuration, "ada", monday()).await;

    let read = in_force(&world.store()).await;
    match &applied {
        Ok(generation) | Err(ApplyError::NotYetDue { generation, .. }) => {
            assert_eq!(read.generation, *generation);
            assert_says(&read, &with_office_hours());
        }
        Err(ApplyError::Store(_)) => {
            assert_eq!(read.generation, Generation(1));
            assert_says(&read, &without_schedules());
        }
        Err(ApplyError::Overtaken) => panic!("no other apply ran"),
    }
    // What it left behind does not mix with the next apply.
    let generation = apply(&world.store(), by("bob")).await;
    assert!(generation > read.generation);
    assert_says(&in_force(&world.store()).await, &by("bob"));
    applied
}

#[tokio::test]
async fn an_apply_that_dies_leaves_the_old_configuration_or_the_new_one_whole() {
    let (mut not_applied, mut not_yet_due) = (0, 0);
    loop {
        match dies_after(not_applied + not_yet_due).await {
            Ok(_) => break,
            Err(ApplyError::Store(_)) => not_applied += 1,
            Err(ApplyError::NotYetDue { .. }) => not_yet_due += 1,
            Err(ApplyError::Overtaken) => unreachable!("no other apply ran"),
        }
    }
    // Reads what is in force (from two tables) and the overrides, the records of its account, and
    // whether the number is free; then writes settings, a schedule, an account and the head. After
    // that it is in force, and the one record is made due.
    assert_eq!(not_applied, 10);
    assert!(not_yet_due > 1, "{not_yet_due}");
}

/// A configuration with schedules of `author` and without accounts.
fn without_accounts(author: &str) -> Configuration {
    Configuration { accounts: BTreeMap::new(), ..by(author) }
}

#[tokio::test]
async fn a_number_that_is_given_again_after_a_restore_is_read_anew() {
    let world = World::new().await;
    let (store, schedules) = (world.store(), World::tables().schedules);
    apply(&store, without_accounts("ada")).await;
    let backup = world.items(&schedules).await;
    let lost = apply(&store, without_accounts("bob")).await;
    // This process remembers what bob applied.
    assert_says(&in_force(&store).await, &without_accounts("bob"));
    world.restore(&schedules, backup).await;
    let other = world.store();
    let eve = following(&other, without_accounts("eve")).await;
    let later = monday() + jiff::SignedDuration::from_mins(1);
    let again = other.apply(&eve, "eve", later).await.unwrap();
    assert_eq!(again, lost);
    assert_says(&in_force(&store).await, &without_accounts("eve"));
}

#[tokio::test]
async fn a_number_under_which_accounts_are_left_of_a_lost_generation_is_not_taken() {
    let world = World::new().await;
    let (store, schedules) = (world.store(), World::tables().schedules);
    apply(&store, by("ada")).await;
    let backup = world.items(&schedules).await;
    let lost = apply(&store, by("bob")).await;
    world.restore(&schedules, backup).await;
    let next = apply(&world.store(), by("eve")).await;
    assert!(next > lost, "{next}");
    assert_says(&in_force(&store).await, &by("eve"));
}

#[tokio::test]
async fn an_apply_takes_a_number_after_all_that_was_handled() {
    let store = World::new().await.store();
    apply(&store, with_office_hours()).await;
    let mut record = stopped_on_friday(1);
    let handled = record.handled.as_mut().unwrap();
    handled.generation = Generation(7);
    let desired_before = handled.desired;
    let record = store.save(record).await.unwrap();
    assert!(record.is_ahead_of(Generation(6)) && !record.is_ahead_of(Generation(7)));
    let generation = apply(&store, with_office_hours()).await;
    assert_eq!(generation, Generation(8));
    // It is Monday, an hour before the office opens: the record is due when it does.
    let record = store.record(&record.reference).await.unwrap().unwrap();
    assert_eq!(record.due_at, Some(at("2026-06-15T08:00:00Z")));
    assert_eq!(record.handled.unwrap().desired, desired_before);
}

#[tokio::test]
async fn what_another_process_applies_is_seen_by_the_next_read() {
    let world = World::new().await;
    let (reader, writer) = (world.store(), world.store());
    apply(&writer, by("ada")).await;
    assert_says(&in_force(&reader).await, &by("ada"));
    apply(&writer, by("bob")).await;
    assert_says(&in_force(&reader).await, &by("bob"));
    assert_says(&in_force(&writer).await, &by("bob"));
}

#[tokio::test]
async fn applying_a_schedule_makes_records_due_by_it_and_removing_it_undue() {
    let store = World::new().await.store();
    apply(&store, without_schedules()).await;
    // One has handled Friday's edge; the other has never handled any.
    let handled = store.save(stopped_on_friday(1)).await.unwrap();
    let joining = domain::record::Record { handled: None, ..stopped_on_friday(2) };
    let joining = store.save(joining).await.unwrap();

    apply(&store, with_office_hours()).await;
    let due_at = async |reference| store.record(reference).await.unwrap().unwrap().due_at;
    assert_eq!(due_at(&joining.reference).await, Some(monday()));
    let opening = at("2026-06-15T08:00:00Z");
    assert_eq!(due_at(&handled.reference).await, Some(opening));

    apply(&store, without_schedules()).await;
    assert_eq!(due_at(&joining.reference).await, None);
    assert_eq!(due_at(&handled.reference).await, None);
    let at_opening = store.due(opening).await.unwrap().read;
    assert_eq!(at_opening, []);
}

#[tokio::test]
async fn an_apply_that_makes_more_than_the_limit_join_holds_them() {
    for (max_new, held) in [(2, false), (1, true)] {
        let store = World::new().await.store();
        apply(&store, without_schedules()).await;
        for number in 1..=2 {
            let tagged = domain::record::Record {
                schedule: None,
                opted_in: false,
                handled: None,
                ..stopped_on_friday(number)
            };
            store.save(tagged).await.unwrap();
        }
        let limited = Configuration {
            settings: Settings { max_new, ..Settings::default() },
            ..with_office_hours()
        };
        apply(&store, limited).await;
        let account = "hz-eu".parse().unwrap();
        let records = store.records_of(&account).await.unwrap().read;
        assert_eq!(records.len(), 2);
        for record in records {
            assert_eq!(record.held, held, "{max_new}");
            assert_eq!(record.joined_at, Some(monday()), "{max_new}");
        }
    }
}

#[tokio::test]
async fn an_account_that_is_left_out_takes_its_records_from_the_index() {
    let store = World::new().await.store();
    apply(&store, with_office_hours()).await;
    let followed = domain::record::Record { due_at: Some(monday()), ..stopped_on_friday(1) };
    store.save(followed).await.unwrap();
    let elsewhere: AccountName = "hz-us".parse().unwrap();
    let moved =
        Configuration { accounts: [(elsewhere, hetzner().into())].into(), ..without_schedules() };
    apply(&store, moved).await;
    assert_eq!(store.due(monday()).await.unwrap().read, []);
}

#[tokio::test]
async fn an_apply_writes_no_record_that_it_does_not_concern() {
    let store = World::new().await.store();
    let saved = store.save(server(1)).await.unwrap();
    apply(&store, with_office_hours()).await;
    assert_eq!(store.record(&saved.reference).await.unwrap(), Some(saved));
}

fn group() -> Group {
    let text = r#"{"resources": ["tag:data"], "after": ["hz-eu/server/7"], "wait": "15m",
        "check": "tcp://db.example.net:5432"}"#;
    serde_json::from_str(text).unwrap()
}

fn target() -> NotifyTarget {
    NotifyTarget {
        kind: TargetKind::Mail,
        url: "file:/run/secrets/smtp".parse().unwrap(),
        secret: None,
        from: Some("offhours@example.com".to_owned()),
        to: ["ops@example.com".to_owned()].into(),
        events: [EventType::TransitionStuck].into(),
        schedules: [office_hours_name()].into(),
        owner: Some("web".to_owned()),
    }
}
