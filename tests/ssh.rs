//! Machines over SSH on a real server: what is run on them and when, and what a missing, late or
//! wrong answer leads to.

use std::{collections::BTreeSet, fs};

use domain::{
    overdue::overdue,
    record::{Direction, Ending, Phase, Record},
    resource::Power,
    schedule::Desired,
};
use jiff::{SignedDuration, Timestamp};
use lifecycle::{
    Event, Occurrence,
    event::{Answer, Subject},
};
use serde_json::json;

use crate::{
    lab::{BUILD, Lab, OFFICE, in_lab},
    support::{World, monday},
};

/// Eleven minutes before the office closes, so that the first inventory is finished by then.
fn evening() -> Timestamp {
    monday("17:49:00")
}

fn is_settled(record: &Record, at: Power) -> bool {
    record.phase == Phase::Settled { at }
}

#[track_caller]
fn stopped(record: &Record) {
    assert!(is_settled(record, Power::Stopped), "{record:#?}");
}

#[track_caller]
fn running(record: &Record) {
    assert!(is_settled(record, Power::Running), "{record:#?}");
}

/// The events about the account as a whole.
fn of_account(world: &mut World) -> Vec<Event> {
    let about = |outcome: &&Occurrence| matches!(outcome.subject, Subject::Account { .. });
    let outcomes = world.outcomes().iter();
    outcomes.filter(about).map(|o| o.event.clone()).collect()
}

/// The answers to the requests to the machine, oldest first.
fn answers(world: &mut World) -> Vec<Answer> {
    let mut answers = Vec::new();
    for event in world.events(BUILD) {
        if let Event::Asked { answer, .. } | Event::Forced { answer, .. } = event {
            answers.push(answer);
        }
    }
    answers
}

fn is_unknown(answer: &Answer, words: &str) -> bool {
    matches!(answer, Answer::Unknown(said) if said.contains(words))
}

/// The time of the first such event.
fn first(world: &mut World, is_it: impl Fn(&Event) -> bool) -> Timestamp {
    let outcomes = world.outcomes().iter();
    outcomes.filter(|outcome| is_it(&outcome.event)).map(|outcome| outcome.at).min().unwrap()
}

fn is_stuck(event: &Event) -> bool {
    matches!(event, Event::Stuck { .. })
}

#[test]
fn a_machine_follows_its_schedule_by_its_tag_or_by_the_schedules_list() {
    in_lab(&["build", "render"], async |lab| {
        let tagged = lab.machine("build", "tags = [\"offhours:office\"]");
        let listed = lab.machine("render", "");
        let resources = "resources = [\"lab/machine/render\"]\n";
        let configuration = [&lab.account(""), &tagged, &listed, OFFICE, resources].concat();
        let mut world = lab.world(&configuration, evening()).await;
        world.run_until(monday("17:59:30")).await;
        assert_eq!(lab.changes(), [""; 0]);
        world.run_until(monday("18:38:30")).await;
        let sorted = |from: usize| -> BTreeSet<String> { lab.changes().drain(from..).collect() };
        assert_eq!(lab.changes().len(), 2);
        assert_eq!(sorted(0), ["stop build", "stop render"].map(str::to_owned).into());
        assert!(!lab.runs("build") && !lab.runs("render"));
        world.run_until(monday("18:48:30")).await;
        assert_eq!(lab.changes().len(), 4);
        assert_eq!(sorted(2), ["start build", "start render"].map(str::to_owned).into());
        assert!(lab.runs("build") && lab.runs("render"));
        for machine in [BUILD, "lab/machine/render"] {
            running(&world.record(machine).await);
            let history = world.history(machine).await;
            let ended: Vec<_> = history.iter().map(|e| (e.direction, e.ending)).collect();
            let seen = [Direction::Start, Direction::Stop].map(|d| (d, Ending::Seen));
            assert_eq!(ended, seen, "{machine}");
            let seen = |event: &Event| matches!(event, Event::Seen { forced: false, .. });
            let events = world.events(machine);
            assert_eq!(events.iter().filter(|e| seen(e)).count(), 2, "{events:#?}");
        }
        world
    });
}

#[test]
fn a_stop_whose_status_stays_unknown_is_stuck_at_the_machines_own_deadline_and_never_stopped() {
    in_lab(&["build"], async |lab| {
        let mut world = lab.world(&lab.usual("stop_deadline = \"3m\"", ""), evening()).await;
        world.run_until(monday("17:59:30")).await;
        lab.on("stop", "echo 'exit 5' > \"$DIR/on status\"");
        world.run_until(monday("18:02:30")).await;
        assert!(!lab.runs("build"));
        assert!(world.record(BUILD).await.in_flight().is_some());
        world.run_until(monday("18:09:30")).await;
        let record = world.record(BUILD).await;
        assert!(
            matches!(&record.phase, Phase::Stuck { reason, .. }
                if reason == "not seen: status ended with exit code 5"),
            "{record:#?}"
        );
        let stuck_at = first(&mut world, is_stuck);
        let asked_at = first(&mut world, |e| matches!(e, Event::Asked { .. }));
        let took = stuck_at.duration_since(asked_at);
        let minutes = SignedDuration::from_mins;
        assert!(took >= minutes(3) && took < minutes(5), "{took:?}");
        assert!(!world.was_seen(BUILD));
        let stuck = world.events(BUILD).into_iter().filter(is_stuck);
        assert_eq!(stuck.count(), 1);

        lab.as_usual("status");
        world.run_until(monday("18:15:30")).await;
        stopped(&world.record(BUILD).await);
        assert!(world.was_seen(BUILD));
        assert_eq!(lab.changes(), ["stop build"]);
        world
    });
}

#[test]
fn a_machine_whose_host_dies_after_the_stop_is_not_stopped_until_the_host_says_so() {
    in_lab(&["build"], async |lab| {
        let configuration = lab.usual("stop_deadline = \"3m\"", "");
        let mut world = lab.world(&configuration, evening()).await;
        world.run_until(monday("18:00:04")).await;
        assert_eq!(lab.changes(), ["stop build"]);
        lab.cut_off();
        world.run_until(monday("18:20:30")).await;
        let record = world.record(BUILD).await;
        assert!(record.in_flight().is_some(), "{record:#?}");
        assert_eq!(record.observed.as_ref().unwrap().power, Power::Running);
        let in_force = world.local.store().in_force().await.unwrap();
        let overdue = overdue(&record, in_force.rules(), None, monday("18:08:30"));
        assert_eq!(overdue.unwrap().desired, Desired::Stopped);
        let why = |e: &Event| {
            matches!(e, Event::Postponed { reason, .. }
            if reason.to_string().contains("no SSH connection"))
        };
        assert!(of_account(&mut world).iter().any(why));
        lab.route_to(&lab.sshd);
        world.run_until(monday("18:26:30")).await;
        stopped(&world.record(BUILD).await);
        assert_eq!(lab.changes(), ["stop build"]);
        world
    });
}

#[test]
fn a_stop_that_fails_after_it_took_effect_is_found_by_the_status() {
    for failure in ["exit 1", "kill -KILL $PPID; exec sleep 5"] {
        in_lab(&["build"], async |lab| {
            let mut world = lab.world(&lab.usual("", ""), evening()).await;
            lab.on("stop", &format!("echo off > \"$DIR/build\"; {failure}"));
            world.run_until(monday("18:01:30")).await;
            let record = world.record(BUILD).await;
            assert!(record.in_flight().is_some(), "the request may still act");
            world.run_until(monday("18:05:30")).await;
            stopped(&world.record(BUILD).await);
            assert_eq!(lab.changes(), ["stop build"]);
            let words = if failure == "exit 1" { "exit code 1" } else { "connection lost" };
            let [answer] = &answers(&mut world)[..] else {
                panic!("{failure}: not one answer");
            };
            assert!(is_unknown(answer, words), "{failure}: {answer:?}");
            assert!(world.was_seen(BUILD));
            world
        });
    }
}

#[test]
fn a_stop_that_fails_without_an_effect_is_asked_again_once_the_lost_one_could_no_longer_arrive() {
    for failure in ["exit 1", "kill -KILL $PPID; exec sleep 5"] {
        in_lab(&["build"], async |lab| {
            let mut world = lab.world(&lab.usual("", ""), evening()).await;
            lab.on("stop", failure);
            world.run_until(monday("18:01:59")).await;
            assert_eq!(lab.changes(), ["stop build"]);
            world.run_until(monday("18:03:30")).await;
            assert_eq!(lab.changes(), ["stop build"; 2]);
            lab.as_usual("stop");
            world.run_until(monday("18:08:30")).await;
            assert_eq!(lab.changes(), ["stop build"; 3]);
            stopped(&world.record(BUILD).await);
            let answers = answers(&mut world);
            assert!(answers[..2].iter().all(|a| is_unknown(a, "")), "{answers:?}");
            assert_eq!(answers[2..], [Answer::Accepted]);
            world
        });
    }
}

#[test]
fn a_busy_machine_is_asked_again() {
    in_lab(&["build"], async |lab| {
        let mut world = lab.world(&lab.usual("", ""), evening()).await;
        lab.on("stop", "exit 75");
        world.run_until(monday("18:00:30")).await;
        assert!(lab.runs("build"));
        lab.as_usual("stop");
        world.run_until(monday("18:05:30")).await;
        stopped(&world.record(BUILD).await);
        assert_eq!(lab.changes(), ["stop build"; 2]);
        let answers = answers(&mut world);
        assert!(
            matches!(&answers[..], [Answer::Busy(words), Answer::Accepted] if words.contains("75")),
            "{answers:?}"
        );
        world
    });
}

#[test]
fn a_refused_stop_is_not_asked_again_before_the_next_edge() {
    in_lab(&["build"], async |lab| {
        let mut world = lab.world(&lab.usual("", ""), evening()).await;
        lab.on("stop", "exit 77");
        world.run_until(monday("18:38:30")).await;
        let record = world.record(BUILD).await;
        assert!(
            matches!(&record.phase, Phase::Refused { reason, .. } if reason.contains("77")),
            "{record:#?}"
        );
        let refused = |event: &Event| matches!(event, Event::Refused { .. });
        let events = world.events(BUILD);
        assert_eq!(events.iter().filter(|e| refused(e)).count(), 1, "{events:#?}");
        lab.as_usual("stop");
        world.run_until(monday("18:49:30")).await;
        assert_eq!(lab.changes(), ["stop build"], "it runs, and is to run");
        world.run_until(monday("18:55:30")).await;
        assert_eq!(lab.changes(), ["stop build"; 2]);
        stopped(&world.record(BUILD).await);
        world
    });
}

#[test]
fn a_refused_start_is_reported_once_and_asked_again_until_it_is_taken() {
    in_lab(&["build"], async |lab| {
        // Open again from 18:40 on, for longer than a refused start waits.
        let configuration = lab.usual("", "").replace("18:50", "22:00");
        let mut world = lab.world(&configuration, evening()).await;
        world.run_until(monday("18:38:30")).await;
        lab.on("start", "exit 77");
        world.run_until(monday("18:54:30")).await;
        assert_eq!(lab.changes(), ["stop build", "start build"]);
        world.run_until(monday("18:56:30")).await;
        assert_eq!(lab.changes().len(), 3, "a quarter of an hour later");
        lab.as_usual("start");
        world.run_until(monday("19:15:30")).await;
        assert_eq!(lab.changes().len(), 4);
        running(&world.record(BUILD).await);
        let refused = |event: &Event| matches!(event, Event::Refused { .. });
        let events = world.events(BUILD);
        assert_eq!(events.iter().filter(|e| refused(e)).count(), 1);
        world
    });
}

#[test]
fn an_account_over_ssh_that_is_renamed_keeps_its_machines_and_starts_what_it_stopped() {
    in_lab(&["build"], async |lab| {
        let world = lab.world(&lab.usual("", ""), evening()).await;
        world.run_until(monday("18:20:30")).await;
        let renamed = lab.usual("", "").replace("accounts.lab", "accounts.attic");
        let renamed = renamed.replace("provider = \"ssh\"", "provider = \"ssh\"\nwas = \"lab\"");
        world.apply(&renamed).await;
        world.run_until(monday("18:45:30")).await;
        running(&world.record("attic/machine/build").await);
        assert_eq!(lab.changes(), ["stop build", "start build"]);
        world
    });
}

/// A guest that accepts the stop but keeps running.
const DEAF: &str = "exit 0";

#[test]
fn the_power_is_cut_a_minute_after_the_accepted_stop_and_once() {
    in_lab(&["build"], async |lab| {
        let configuration = lab.usual("force = \"force build\"", "");
        let mut world = lab.world(&configuration, evening()).await;
        lab.on("stop", DEAF);
        world.run_until(monday("18:01:00")).await;
        assert_eq!(lab.changes(), ["stop build"]);
        world.run_until(monday("18:10:30")).await;
        assert_eq!(lab.changes(), ["stop build", "force build"]);
        stopped(&world.record(BUILD).await);
        let asked_at = first(&mut world, |e| matches!(e, Event::Asked { .. }));
        let forced_at = first(&mut world, |e| matches!(e, Event::Forced { .. }));
        let after = forced_at.duration_since(asked_at);
        assert!(after >= SignedDuration::from_secs(60), "{after:?}");
        assert!(world.history(BUILD).await[0].forced);
        world
    });
}

#[test]
fn the_power_is_not_cut_where_the_schedule_forbids_it() {
    in_lab(&["build"], async |lab| {
        let configuration = lab.usual("force = \"force build\"", "force = false");
        let world = lab.world(&configuration, evening()).await;
        lab.on("stop", DEAF);
        world.run_until(monday("18:20:30")).await;
        let record = world.record(BUILD).await;
        assert!(
            matches!(&record.phase, Phase::Stuck { reason, .. } if reason.contains("force = false")),
            "{record:#?}"
        );
        assert_eq!(lab.changes(), ["stop build"]);
        world
    });
}

#[test]
fn a_machine_without_a_command_for_it_has_its_power_cut_under_no_schedule() {
    for policy in ["", "force = false"] {
        in_lab(&["build"], async |lab| {
            let world = lab.world(&lab.usual("", policy), evening()).await;
            lab.on("stop", DEAF);
            // It gets its full ten minutes, because there is nothing to decide after one.
            world.run_until(monday("18:09:30")).await;
            assert!(world.record(BUILD).await.in_flight().is_some());
            world.run_until(monday("18:20:30")).await;
            let record = world.record(BUILD).await;
            assert!(
                matches!(&record.phase, Phase::Stuck { reason, .. }
                    if reason == "accepted, and not seen within 10 minutes"),
                "{record:#?}"
            );
            assert_eq!(lab.changes(), ["stop build"]);
            world
        });
    }
}

/// The number of log lines of a server that show a login attempt.
fn logins(log: &str) -> usize {
    let is_login = |line: &&str| line.contains("userauth") || line.contains("Accepted");
    log.lines().filter(is_login).count()
}

#[test]
fn a_host_with_another_key_learns_nothing_and_is_trusted_again_once_its_key_is_pinned() {
    in_lab(&["build"], async |lab| {
        let mut world = lab.world(&lab.usual("", ""), evening()).await;
        world.run_until(monday("17:56:30")).await;
        let other = lab.another_server();
        lab.route_to(&other);
        world.run_until(monday("18:10:30")).await;
        assert_eq!(lab.changes(), [""; 0]);
        assert_eq!(logins(&other.log()), 0, "{}", other.log());
        assert!(other.log().contains("Connection from"), "no connection came");
        running(&world.record(BUILD).await);
        let named = |e: &Event| {
            matches!(e, Event::Postponed { reason, .. }
            if reason.to_string().contains("host-key-changed"))
        };
        let events = of_account(&mut world);
        assert_eq!(events.iter().filter(|e| named(e)).count(), 1, "{events:#?}");
        let states = world.local.store().account_states().await.unwrap().read;
        let error = states.values().next().unwrap().error.clone().unwrap();
        assert!(error.to_string().contains("host-key-changed"), "{error}");

        // The old key and the new one, as while a host changes its key.
        let both = [lab.sshd.host_key(), other.host_key()];
        let pins = |text: String| text.replace(&lab.account(""), &lab.account_with(&both, ""));
        world.apply(&pins(lab.usual("", ""))).await;
        world.run_until(monday("18:30:30")).await;
        assert_eq!(lab.changes(), ["stop build"]);
        stopped(&world.record(BUILD).await);
        assert!(logins(&other.log()) > 0);
        world
    });
}

#[test]
fn a_stop_that_meets_another_host_key_is_refused_and_not_repeated_by_itself() {
    in_lab(&["build"], async |lab| {
        let world = lab.world(&lab.usual("", ""), evening()).await;
        world.run_until(monday("17:52:30")).await;
        let other = lab.another_server();
        // The observation still reaches the first host, the stop another one.
        lab.on("status", &Lab::moved_to(&other));
        world.stop(&json!({ "resources": [BUILD] })).await;
        let record = world.record(BUILD).await;
        assert!(
            matches!(&record.phase, Phase::Refused { reason, .. }
                if reason.contains("host-key-changed")),
            "{record:#?}"
        );
        assert_eq!(logins(&other.log()), 0, "{}", other.log());
        lab.as_usual("status");
        lab.route_to(&lab.sshd);
        world.run_until(monday("17:59:30")).await;
        assert_eq!(lab.changes(), [""; 0]);
        assert!(matches!(world.record(BUILD).await.phase, Phase::Refused { .. }));
        world.run_until(monday("18:05:30")).await;
        assert_eq!(lab.changes(), ["stop build"], "the next edge");
        world
    });
}

#[test]
fn a_key_that_the_host_refuses_is_read_again_and_works_once_it_is_replaced() {
    in_lab(&["build"], async |lab| {
        let mut world = lab.world(&lab.usual("", ""), evening()).await;
        world.run_until(monday("17:52:30")).await;
        lab.accepts("other");
        world.run_until(monday("18:06:30")).await;
        assert!(lab.runs("build"));
        running(&world.record(BUILD).await);
        let refused = |e: &Event| {
            matches!(e, Event::Postponed { reason, token_refused: true, .. }
                if reason.to_string().contains("key-refused"))
        };
        let events = of_account(&mut world);
        assert_eq!(events.iter().filter(|e| refused(e)).count(), 1, "{events:#?}");
        let fails = async |world: &World| {
            let states = world.local.store().account_states().await.unwrap().read;
            states.values().next().unwrap().token_fails
        };
        assert!(fails(&world).await);
        fs::write(lab.sshd.path("key"), lab.sshd.other_key() + "\n").unwrap();
        world.run_until(monday("18:09:30")).await;
        assert!(!fails(&world).await);
        stopped(&world.record(BUILD).await);
        assert_eq!(lab.changes(), ["stop build"]);
        world
    });
}

#[test]
fn poll_status_sees_a_stop_through_with_the_read_key_alone() {
    in_lab(&["build"], async |lab| {
        lab.accept_read_key();
        let mut world = lab.world(&lab.two_keys("key", "read-key"), evening()).await;
        world.run_until(monday("18:00:00")).await;
        assert_eq!(lab.changes(), ["stop build"]);
        // From now on the key that may act is nowhere to be found.
        world.apply(&lab.two_keys("missing", "read-key")).await;
        world.run_until(monday("18:10:00")).await;
        stopped(&world.record(BUILD).await);
        assert!(world.was_seen(BUILD));
        let states = world.local.store().account_states().await.unwrap().read;
        assert!(states.values().all(|state| state.error.is_none()));
        let report = world.start_now(&json!({ "resources": [BUILD] })).await;
        let [later] = &report.outcomes[..] else {
            panic!("{report:?}");
        };
        assert!(
            matches!(&later.event, Event::Postponed { reason, .. } if reason.words().contains("no token")),
            "{later:?}"
        );
        assert_eq!(lab.changes(), ["stop build"]);
        world
    });
}

#[test]
fn a_read_key_can_stop_nothing() {
    in_lab(&["build"], async |lab| {
        lab.accept_read_key();
        let mut world = lab.world(&lab.two_keys("read-key", "key"), evening()).await;
        world.run_until(monday("18:10:00")).await;
        let refused = |event: &Event| {
            matches!(event, Event::Refused { reason, .. }
                if reason.to_string().contains("cannot be run"))
        };
        let events = world.events(BUILD);
        assert!(events.iter().any(refused), "{events:?}");
        assert!(lab.runs("build"));
        assert_eq!(lab.changes(), [""; 0]);
        world
    });
}

#[test]
fn in_observe_mode_nothing_but_the_status_is_run() {
    for (top, account, policy) in [
        ("mode = \"observe\"\n", "", ""),
        ("", "mode = \"observe\"", ""),
        ("", "", "mode = \"observe\""),
    ] {
        in_lab(&["build"], async |lab| {
            let tagged = lab.usual("force = \"force build\"", policy);
            let observed = tagged.replace(&lab.account(""), &lab.account(account));
            let mut world = lab.world(&(top.to_owned() + &observed), evening()).await;
            world.run_until(monday("18:10:30")).await;
            let ran: BTreeSet<_> = lab.ran().into_iter().collect();
            assert_eq!(ran, BTreeSet::from(["status build".to_owned()]));
            let announced = |event: &Event| matches!(event, Event::WouldAsk { request, .. } if request == "ssh stop build");
            assert_eq!(world.events(BUILD).iter().filter(|e| announced(e)).count(), 1);
            world
        });
    }
}

#[test]
fn what_is_opted_out_protected_or_named_by_nothing_is_only_looked_at() {
    in_lab(&["build", "left", "safe", "free"], async |lab| {
        let office = "tags = [\"offhours:office\"]";
        let configuration = [
            "protect = [\"lab/machine/safe\"]\n",
            &lab.account(""),
            &lab.machine("build", office),
            &lab.machine("left", "tags = [\"offhours:off\"]"),
            &lab.machine("safe", office),
            &lab.machine("free", "tags = [\"env:dev\"]"),
            OFFICE,
            "resources = [\"lab/machine/left\"]\n",
        ];
        let world = lab.world(&configuration.concat(), evening()).await;
        world.run_until(monday("18:10:30")).await;
        assert_eq!(lab.changes(), ["stop build"]);
        for machine in ["left", "safe", "free"] {
            assert!(lab.ran().contains(&format!("status {machine}")), "{machine}");
        }
        world
    });
}

#[test]
fn a_machine_that_is_removed_from_the_file_is_gone_and_gets_no_command() {
    in_lab(&["build", "render"], async |lab| {
        let office = "tags = [\"offhours:office\"]";
        let render = lab.machine("render", office);
        let both = [&lab.account(""), &lab.machine("build", office), &render, OFFICE].concat();
        let mut world = lab.world(&both, evening()).await;
        world.run_until(monday("17:56:30")).await;
        world.apply(&[&lab.account(""), &render, OFFICE].concat()).await;
        world.run_until(monday("18:10:30")).await;
        assert_eq!(lab.changes(), ["stop render"]);
        let record = world.record(BUILD).await;
        assert!(matches!(record.phase, Phase::Gone { .. }), "{record:#?}");
        let gone = |event: &Event| matches!(event, Event::Gone { .. });
        assert_eq!(world.events(BUILD).iter().filter(|e| gone(e)).count(), 1);
        world
    });
}
