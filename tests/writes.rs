//! Writes of records that are lost, late, refused or overtaken: nothing is sent twice, everything
//! is published, and no record holds up another.

use cloud_simulator::{Act, Hold, Matching, Stage};
use domain::{
    record::{Ask, Direction, Permit, Phase, Record, Writer},
    resource::Power,
};
use jiff::{SignedDuration, Timestamp};
use lifecycle::{Event, Occurrence, event::Answer};
use serde_json::json;
use testing::{Fate, Sent};

use crate::{
    process::{Process, writes},
    support::{
        ACCOUNTS, NIGHTS, World, droplet, fault, monday, office_hours, reference, run, server,
    },
};

const SERVER: &str = "hz-eu/server/11";
const OTHER: &str = "hz-eu/server/12";
const DROPLET: &str = "do-main/droplet/1";

/// Two servers and a Droplet that are to stop at 18:00, half a minute before.
async fn before_the_edge() -> World {
    let fleet =
        [ACCOUNTS, &server(11, ""), &server(12, ""), &droplet(1, "web", &["offhours:office"])];
    let world = World::start(&office_hours("", "", ""), &fleet.concat(), monday("17:48:00")).await;
    world.run_until(monday("17:59:30")).await;
    world
}

/// The edge, before any timer of the service has fired.
fn edge() -> Timestamp {
    monday("18:00:00")
}

fn seconds(count: i64) -> SignedDuration {
    SignedDuration::from_secs(count)
}

/// An error that the client does not retry.
fn refused() -> Fate {
    Fate::error("ValidationException")
}

fn claims(resource: &str) -> impl Fn(&Sent) -> bool + Send + 'static {
    let writes = writes(resource);
    move |sent| writes(sent) && sent.is_claim()
}

fn notes(resource: &str) -> impl Fn(&Sent) -> bool + Send + 'static {
    let writes = writes(resource);
    move |sent| writes(sent) && !sent.is_claim()
}

/// A hold for the next request with this method for this resource.
fn next(resource: &str, method: &str, at: Stage) -> Hold {
    Hold {
        matching: Matching {
            resource: Some(reference(resource)),
            method: Some(method.to_owned()),
            ..Matching::default()
        },
        times: 1,
        at,
        late: false,
    }
}

fn is_accepted(record: &Record) -> bool {
    let request = record.request.as_ref();
    request.is_some_and(|request| matches!(request.ask, Ask::Accepted { .. }))
}

/// Replaces a record as another invocation would.
async fn overtake(world: &World, resource: &str, change: impl FnOnce(&mut Record)) -> Record {
    let mut record = world.record(resource).await;
    change(&mut record);
    world.local.store().save(record).await.unwrap()
}

fn was_asked(events: &[Event]) -> bool {
    events.iter().any(|e| matches!(e, Event::Asked { .. }))
}

fn was_postponed(events: &[Event]) -> bool {
    events.iter().any(|e| matches!(e, Event::Postponed { .. }))
}

#[test]
fn a_claim_whose_answer_is_lost_is_ours_and_its_request_leaves() {
    run(async {
        let world = before_the_edge().await;
        let process = Process::later(&world, edge());
        process.wire.plan(claims(SERVER), Fate::AnswerLost);
        process.hint(Direction::Stop, &[SERVER]).await;
        assert_eq!(process.wire.left(), 0);
        assert_eq!(world.changes().len(), 1);
        assert!(is_accepted(&world.record(SERVER).await));
    });
}

#[test]
fn a_claim_that_only_looks_like_ours_is_not_ours() {
    run(async {
        let world = before_the_edge().await;
        let process = Process::later(&world, edge());
        let hint = json!({ "cause": "due", "resources": [SERVER] });
        let simulator = world.simulator();
        let look = simulator.add_hold(next(SERVER, "GET", Stage::Arrival));
        let change = simulator.add_hold(next(SERVER, "POST", Stage::Arrival));
        // The first invocation has read the record when the second claims it. The claims differ
        // only in their writers.
        let first = async {
            let report = process.act("the first", Direction::Stop, &hint).await;
            assert!(report.outcomes.is_empty(), "{report:?}");
            simulator.release(change).unwrap();
        };
        let second = async {
            simulator.wait_until_caught(look).await.unwrap();
            let second = process.act("the second", Direction::Stop, &hint);
            let overtaken = async {
                simulator.wait_until_caught(change).await.unwrap();
                simulator.release(look).unwrap();
            };
            tokio::join!(second, overtaken).0
        };
        let ((), report) = tokio::join!(first, second);
        assert_eq!(report.outcomes.len(), 1);
        assert_eq!(world.changes().len(), 1);
    });
}

#[test]
fn a_claim_that_takes_longer_than_the_send_window_sends_nothing() {
    run(async {
        for (took, sent) in [(30, 1), (31, 0)] {
            let world = before_the_edge().await;
            let process = Process::later(&world, edge());
            let clock = process.clock.clone();
            let late = Fate::After(Box::new(move || clock.advance_to(edge() + seconds(took))));
            process.wire.plan(claims(SERVER), late);
            process.hint(Direction::Stop, &[SERVER]).await;
            assert_eq!(world.changes().len(), sent, "{took} s");
            assert_eq!(is_accepted(&world.record(SERVER).await), sent > 0);
            // Once the permit has expired it is requested again, unless it was accepted.
            process.clock.advance_to(edge() + seconds(121));
            process.hint(Direction::Stop, &[SERVER]).await;
            assert_eq!(world.changes().len(), 1, "{took} s");
        }
    });
}

#[test]
fn an_answer_that_is_lost_leaves_the_permit_standing() {
    run(async {
        let world = before_the_edge().await;
        let process = Process::later(&world, edge());
        world.simulator().add_fault(fault(&json!({
            "match": { "resource": SERVER, "method": "POST" },
            "does": { "drop": { "after_effect": false } },
        })));
        let report = process.hint(Direction::Stop, &[SERVER]).await;
        assert!(
            matches!(
                &report.outcomes[..],
                [Occurrence { event: Event::Asked { answer: Answer::Unknown(_), .. }, .. }]
            ),
            "{report:?}"
        );
        assert!(world.record(SERVER).await.permit.is_some());
        // The request may still arrive.
        for second in [1, 60, 119] {
            process.clock.advance_to(edge() + seconds(second));
            process.hint(Direction::Stop, &[SERVER]).await;
            assert_eq!(world.changes().len(), 1, "{second} s");
        }
        process.clock.advance_to(edge() + seconds(121));
        process.hint(Direction::Stop, &[SERVER]).await;
        assert_eq!(world.changes().len(), 2);
        assert!(is_accepted(&world.record(SERVER).await));
    });
}

/// Stops the server, and changes its record before the cloud's response arrives.
async fn while_a_request_is_under_way(
    world: &World,
    process: &Process,
    change: impl FnOnce(&mut Record),
) -> Record {
    let simulator = world.simulator();
    let hold = simulator.add_hold(next(SERVER, "POST", Stage::Answer));
    let meanwhile = async {
        simulator.wait_until_caught(hold).await.unwrap();
        let record = overtake(world, SERVER, change).await;
        simulator.release(hold).unwrap();
        record
    };
    let stop = process.hint(Direction::Stop, &[SERVER]);
    tokio::join!(stop, meanwhile).1
}

#[test]
fn an_answer_is_noted_in_what_the_record_has_become_meanwhile() {
    run(async {
        let world = before_the_edge().await;
        let process = Process::later(&world, edge());
        let rename = |record: &mut Record| record.name = "renamed".to_owned();
        while_a_request_is_under_way(&world, &process, rename).await;
        let record = world.record(SERVER).await;
        assert_eq!(record.permit, None);
        assert!(is_accepted(&record), "{record:#?}");
        assert_eq!(record.name, "renamed");
    });
}

#[test]
fn an_answer_is_noted_though_a_transaction_was_in_the_way() {
    run(async {
        let world = before_the_edge().await;
        let process = Process::later(&world, edge());
        let conflict = Fate::error("TransactionConflictException");
        process.wire.plan(notes(SERVER), conflict);
        process.hint(Direction::Stop, &[SERVER]).await;
        assert_eq!(process.wire.left(), 0);
        assert!(is_accepted(&world.record(SERVER).await));
    });
}

#[test]
fn an_answer_is_never_noted_under_the_permit_of_another() {
    run(async {
        let world = before_the_edge().await;
        let process = Process::later(&world, edge());
        let take = |record: &mut Record| {
            record.permit =
                Some(Permit { until: monday("18:10:00"), writer: Writer("another".to_owned()) });
        };
        let taken = while_a_request_is_under_way(&world, &process, take).await;
        assert_eq!(world.record(SERVER).await, taken);
    });
}

#[test]
fn a_record_that_cannot_be_claimed_keeps_no_other_of_any_account_waiting() {
    run(async {
        let world = before_the_edge().await;
        let process = Process::later(&world, edge());
        process.wire.plan(claims(DROPLET), refused());
        process.wire.plan(claims(SERVER), refused());
        let report = process.hint(Direction::Stop, &[DROPLET, SERVER, OTHER]).await;
        assert_eq!(world.touched().into_iter().collect::<Vec<_>>(), [OTHER]);
        assert_eq!(report.outcomes.len(), 3);
        for left in [DROPLET, SERVER] {
            assert!(was_postponed(&process.published(left)), "{left}");
            // Its record is unchanged, so it is tried again.
            process.hint(Direction::Stop, &[left]).await;
            assert!(is_accepted(&world.record(left).await), "{left}");
        }
    });
}

#[test]
fn a_claim_that_meets_a_transaction_is_left_to_the_next_tick() {
    run(async {
        let world = before_the_edge().await;
        let process = Process::later(&world, edge());
        let conflict = Fate::error("TransactionConflictException");
        process.wire.plan(claims(SERVER), conflict);
        process.hint(Direction::Stop, &[SERVER, OTHER]).await;
        assert_eq!(world.touched().into_iter().collect::<Vec<_>>(), [OTHER]);
        assert_eq!(process.published(SERVER), []);
        process.hint(Direction::Stop, &[SERVER]).await;
        assert!(is_accepted(&world.record(SERVER).await));
    });
}

#[test]
fn a_request_whose_answer_cannot_be_noted_is_published_all_the_same() {
    run(async {
        let world = before_the_edge().await;
        let process = Process::later(&world, edge());
        process.wire.plan(notes(SERVER), refused());
        process.hint(Direction::Stop, &[SERVER, OTHER]).await;
        let published = process.published(SERVER);
        assert!(was_asked(&published) && was_postponed(&published), "{published:?}");
        assert!(was_asked(&process.published(OTHER)));
        let record = world.record(SERVER).await;
        assert!(record.permit.is_some() && !is_accepted(&record), "{record:#?}");
    });
}

/// Both servers were asked to shut down at 18:00; by the clock of the process they are off now.
async fn on_their_way_down() -> (World, Process) {
    let world = before_the_edge().await;
    let process = Process::later(&world, edge());
    process.hint(Direction::Stop, &[SERVER, OTHER]).await;
    // By the clouds' clock, which is half a minute behind.
    world.run_until(monday("17:59:59")).await;
    process.clock.advance_to(edge() + seconds(30));
    (world, process)
}

#[test]
fn a_transition_that_cannot_be_settled_keeps_no_other_from_it() {
    run(async {
        let (world, process) = on_their_way_down().await;
        let throttled = Fate::cancelled(&["ThrottlingError", "None"]);
        process.wire.plan(writes(SERVER), throttled);
        let report = process.look().await;
        assert_eq!(report.in_flight, 1);
        assert!(was_postponed(&process.published(SERVER)));
        let seen = |events: &[Event]| events.iter().any(|e| matches!(e, Event::Seen { .. }));
        assert!(seen(&process.published(OTHER)));
        // The next observation finds both.
        process.look().await;
        assert!(seen(&process.published(SERVER)));
        for resource in [SERVER, OTHER] {
            let phase = world.record(resource).await.phase;
            assert_eq!(phase, Phase::Settled { at: Power::Stopped }, "{resource}");
        }
    });
}

#[test]
fn what_a_plain_write_says_is_published_though_its_answer_is_lost() {
    run(async {
        let deaf = server(11, "ignores_shutdown = true");
        let fleet = [ACCOUNTS, &deaf, &server(12, "")];
        let configuration = office_hours("", "", "force = false");
        let world = World::start(&configuration, &fleet.concat(), monday("17:48:00")).await;
        world.run_until(monday("17:50:30")).await;
        world.person(OTHER, Act::PowerOff);
        world.run_until(monday("17:59:30")).await;
        let process = Process::later(&world, edge());

        process.wire.plan(writes(OTHER), Fate::AnswerLost);
        process.hint(Direction::Stop, &[SERVER, OTHER]).await;
        let there = |e: &Event| matches!(e, Event::AlreadyThere { .. });
        assert!(process.published(OTHER).iter().any(there));

        // The signal was sent, but had no effect.
        world.run_until(monday("17:59:59")).await;
        process.clock.advance_to(monday("18:30:00"));
        process.wire.plan(writes(SERVER), Fate::AnswerLost);
        process.look().await;
        let stuck = |e: &Event| matches!(e, Event::Stuck { .. });
        assert!(process.published(SERVER).iter().any(stuck));
        assert_eq!(process.wire.left(), 0);
    });
}

#[test]
fn what_an_inventory_finds_is_published_though_its_answers_are_lost() {
    run(async {
        let world = before_the_edge().await;
        world.run_until(monday("18:02:30")).await;
        let phase = world.record(SERVER).await.phase;
        assert_eq!(phase, Phase::Settled { at: Power::Stopped });
        let process = Process::beside(&world);
        let found = [("joined", "do-main/droplet/5"), ("conflict", DROPLET), ("orphaned", SERVER)];
        world.create_droplet(5);
        world.retag(DROPLET, &["offhours:office", "offhours:nights"]);
        world.retag(SERVER, &["team=ci"]);
        world.apply(&office_hours("", "", NIGHTS)).await;
        for (_, resource) in found {
            process.wire.plan(writes(resource), Fate::AnswerLost);
        }
        process.take_inventory().await;
        assert_eq!(process.wire.left(), 0);
        for (what, resource) in found {
            let events = process.published(resource);
            let words: Vec<_> = events
                .iter()
                .map(|event| serde_json::to_value(event).unwrap()["event"].clone())
                .collect();
            assert!(words.contains(&json!(what)), "{resource}: {words:?}");
        }
    });
}

#[test]
fn a_record_that_cannot_be_written_keeps_no_other_from_the_inventory() {
    run(async {
        let world = before_the_edge().await;
        let process = Process::later(&world, edge());
        for id in [5, 6] {
            world.create_droplet(id);
        }
        process.wire.plan(writes("do-main/droplet/5"), refused());
        let joined = |resource: &str| {
            let events = process.published(resource);
            events.iter().any(|e| matches!(e, Event::Joined { .. }))
        };
        process.take_inventory().await;
        assert!(joined("do-main/droplet/6"));
        let absent = reference("do-main/droplet/5");
        assert_eq!(world.local.store().record(&absent).await.unwrap(), None);
        process.take_inventory().await;
        assert!(joined("do-main/droplet/5"));
    });
}
