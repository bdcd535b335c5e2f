//! Stops that lower the bill, including those that go wrong: machines are moved to a smaller plan
//! while they are off, and databases lose their standbys.

use cloud_simulator::{Act, Offer};
use domain::{
    record::{Direction, Ending, Phase},
    resource::{Power, SavedState},
    stop_method::StopMethod,
};
use jiff::{SignedDuration, Timestamp};
use lifecycle::Event;
use serde_json::{Value, json};

use crate::support::{ACCOUNTS, World, fault, longer_night, monday, reference, run, short_night};

const DROPLET: &str = "do-main/droplet/1";
const SERVER: &str = "hz-eu/server/11";
const DATABASE: &str = "do-main/database/9cc1";

const METHODS: &str = "graceful = true\n\
    methods = { droplet = \"resize\", server = \"rescale\", database = \"standbys\" }";

/// A Droplet of 25 GB on a plan with dedicated processors.
fn droplet(more: &str) -> String {
    format!(
        "[[droplets]]\nid = 1\nname = \"web\"\nsize = \"g-2vcpu-8gb\"\n\
         tags = [\"offhours:office\"]\n{more}\n"
    )
}

/// A server with 80 GB of disk and dedicated processors.
fn server(more: &str) -> String {
    format!(
        "[[servers]]\nid = 11\nname = \"ci\"\nserver_type = \"ccx13\"\nlocation = \"fsn1\"\n\
         labels = {{ offhours = \"office\" }}\n{more}\n"
    )
}

/// `PostgreSQL` with a standby.
fn database(more: &str) -> String {
    format!(
        "[[databases]]\nid = \"9cc1\"\nname = \"orders\"\nengine = \"pg\"\n\
         plan = \"db-s-2vcpu-4gb\"\nnodes = 2\ntags = [\"offhours:office\"]\n{more}\n"
    )
}

/// Just before the end edge at 18:00 UTC; the begin edge is at 18:40, and an hour later where there
/// is a database.
async fn evening(fleet: &[String], policy: &str) -> World {
    let fleet = [&[ACCOUNTS.to_owned()], fleet].concat().concat();
    let policy = format!("{METHODS}\n{policy}");
    let night = if fleet.contains("[[databases]]") {
        longer_night("", &policy)
    } else {
        short_night("", &policy)
    };
    let world = World::start(&night, &fleet, monday("17:48:00")).await;
    world.run_until(monday("17:59:30")).await;
    world
}

fn at(minute: &str) -> Timestamp {
    monday(&format!("{minute}:30"))
}

impl World {
    fn shown(&self, resource: &str) -> Value {
        self.simulator().resource(&reference(resource)).unwrap()
    }

    /// The plan of a resource at the provider, and whether it is on.
    fn stands(&self, resource: &str) -> (String, bool) {
        let shown = self.shown(resource);
        let text = |field: &str| shown[field].as_str().map(str::to_owned);
        let plan = text("size").or_else(|| text("server_type")).unwrap();
        let status = text("status").unwrap();
        (plan, matches!(status.as_str(), "active" | "running"))
    }

    #[track_caller]
    fn is(&self, resource: &str, plan: &str, on: bool) {
        assert_eq!(self.stands(resource), (plan.to_owned(), on), "{resource}");
    }

    /// The change requests for a resource: the type of the action, or the last segment of the path.
    fn asked(&self, resource: &str) -> Vec<String> {
        let of = reference(resource);
        let changes = self.changes().into_iter();
        let changes = changes.filter(|entry| entry.resource.as_ref() == Some(&of));
        let word = |path: &str, body: &str| match serde_json::from_str::<Value>(body) {
            Ok(body) if body["type"].is_string() => body["type"].as_str().unwrap().to_owned(),
            Ok(_) | Err(_) => path.rsplit('/').next().unwrap().to_owned(),
        };
        changes.map(|entry| word(&entry.request.path, &entry.request.body)).collect()
    }
}

#[track_caller]
fn settled(record: &domain::record::Record, at: Power) {
    assert_eq!(record.phase, Phase::Settled { at }, "{record:#?}");
}

#[test]
fn each_method_stops_on_less_and_brings_everything_back() {
    run(async {
        let fleet = [droplet(""), server(""), database("")];
        let mut world = evening(&fleet, "").await;
        world.run_until(at("18:20")).await;
        world.is(DROPLET, "s-1vcpu-1gb", false);
        world.is(SERVER, "cpx22", false);
        assert_eq!(world.shown(DATABASE)["nodes"], 1);
        assert_eq!(world.shown(DATABASE)["plan"], "db-s-2vcpu-4gb");
        for (resource, method) in [
            (DROPLET, StopMethod::Resize),
            (SERVER, StopMethod::Rescale),
            (DATABASE, StopMethod::Standbys),
        ] {
            let record = world.record(resource).await;
            settled(&record, Power::Stopped);
            assert!(record.saved.is_some() && record.may_have_shrunk, "{record:#?}");
            let entry = world.history(resource).await.remove(0);
            assert_eq!((entry.ending, entry.method), (Ending::Seen, Some(method)));
        }
        world.run_until(at("20:05")).await;
        world.is(DROPLET, "g-2vcpu-8gb", true);
        world.is(SERVER, "ccx13", true);
        assert_eq!(world.shown(DATABASE)["nodes"], 2);
        for resource in [DROPLET, SERVER, DATABASE] {
            let record = world.record(resource).await;
            settled(&record, Power::Running);
            assert_eq!((record.saved, record.may_have_shrunk), (None, false));
            let entry = world.history(resource).await.remove(0);
            assert_eq!((entry.direction, entry.ending), (Direction::Start, Ending::Seen));
        }
        let asked = ["shutdown", "resize", "resize", "power_on"];
        assert_eq!(world.asked(DROPLET), asked);
        // Changing its type starts a server, which is then shut down again.
        let asked = ["shutdown", "change_type", "shutdown", "change_type"];
        assert_eq!(world.asked(SERVER), asked);
        let events = world.events(DROPLET);
        let by =
            |event: &Event| matches!(event, Event::Seen { method: Some(StopMethod::Resize), .. });
        assert_eq!(events.iter().filter(|event| by(event)).count(), 2);
    });
}

#[test]
fn a_server_may_run_on_its_small_type_and_counts_as_stopped() {
    run(async {
        let world = evening(&[server("")], "rescaled_runs = true").await;
        world.run_until(at("18:20")).await;
        world.is(SERVER, "cpx22", true);
        let record = world.record(SERVER).await;
        settled(&record, Power::Stopped);
        assert_eq!(record.observed.unwrap().power, Power::Stopped);
        world.run_until(at("19:00")).await;
        world.is(SERVER, "ccx13", true);
        let asked = ["shutdown", "change_type", "shutdown", "change_type"];
        assert_eq!(world.asked(SERVER), asked);
    });
}

/// Moves that must be refused: the resource, its keys in the fleet, the policy, and a part of the
/// reason.
const UNFIT: [(&str, &str, &str, &str); 8] = [
    (DROPLET, "", "resize_to = \"s-1vcpu-512mb-10gb\"", "has 10 GB of disk"),
    (DROPLET, "", "resize_to = \"s-8vcpu-16gb\"", "costs no less"),
    (DROPLET, "", "resize_to = \"s-1vcpu-1gbb\"", "did you mean `s-1vcpu-1gb`"),
    (DROPLET, "autoscale_pool = \"p1\"", "", "autoscale pool"),
    (SERVER, "", "rescale_to = \"cax11\"", "processors of another kind"),
    (SERVER, "", "rescale_to = \"cpx12\"", "GB of disk"),
    (SERVER, "created = \"2026-01-10T08:00:00Z\"", "", "accept the new prices"),
    (DATABASE, "engine = \"mongodb\"", "", "mongodb"),
];

#[test]
fn what_could_not_come_back_is_refused_with_its_reason_and_nothing_is_sent() {
    for (resource, keys, policy, words) in UNFIT {
        run(async {
            let fleet = match resource {
                DROPLET => droplet(keys),
                SERVER => server(keys),
                _ => {
                    database("").replace("engine = \"pg\"", keys).replace("nodes = 2", "nodes = 3")
                }
            };
            let mut world = evening(&[fleet], policy).await;
            world.run_until(at("18:20")).await;
            assert_eq!(world.asked(resource), [""; 0], "{policy}");
            let record = world.record(resource).await;
            let Phase::Refused { reason, .. } = &record.phase else {
                panic!("{policy}: {record:#?}");
            };
            assert!(reason.contains(words), "{reason}");
            assert_eq!(record.saved, None);
            let refused = |event: &&Event| matches!(event, Event::Refused { .. });
            assert_eq!(world.events(resource).iter().filter(refused).count(), 1);
        });
    }
}

#[test]
fn a_machine_for_which_nothing_is_cheaper_is_switched_off() {
    run(async {
        let fleet = droplet("").replace("g-2vcpu-8gb", "s-1vcpu-1gb");
        let world = evening(&[fleet], "").await;
        world.run_until(at("18:20")).await;
        world.is(DROPLET, "s-1vcpu-1gb", false);
        let record = world.record(DROPLET).await;
        settled(&record, Power::Stopped);
        assert_eq!((record.saved, record.may_have_shrunk), (None, false));
    });
}

#[test]
fn a_plan_withdrawn_between_the_shutdown_and_the_move_leaves_the_machine_whole() {
    run(async {
        let world = evening(&[server("shutdown = \"40s\"")], "").await;
        world.run_until(monday("18:00:20")).await;
        assert_eq!(world.asked(SERVER), ["shutdown"]);
        let offer = Offer::Unavailable;
        world.simulator().set_offer("ccx13", Some("fsn1"), &offer).unwrap();
        world.run_until(at("18:10")).await;
        world.is(SERVER, "ccx13", false);
        let record = world.record(SERVER).await;
        assert!(matches!(record.phase, Phase::Refused { .. }), "{record:#?}");
        assert_eq!(record.saved, None);
        world.run_until(at("18:45")).await;
        world.is(SERVER, "ccx13", true);
    });
}

#[test]
fn a_plan_withdrawn_overnight_is_asked_for_until_it_is_back() {
    run(async {
        let mut world = evening(&[server("")], "").await;
        world.run_until(at("18:20")).await;
        world.simulator().set_offer("ccx13", None, &Offer::Unavailable).unwrap();
        world.run_until(at("18:50")).await;
        let record = world.record(SERVER).await;
        assert!(record.in_flight().is_some(), "{record:#?}");
        assert!(matches!(record.saved, Some(SavedState::Machine(_))));
        let refused = |event: &&Event| matches!(event, Event::Refused { .. });
        assert_eq!(world.events(SERVER).iter().filter(refused).count(), 1);
        world.is(SERVER, "cpx22", false);
        world.simulator().set_offer("ccx13", None, &Offer::Available).unwrap();
        world.run_until(at("19:10")).await;
        world.is(SERVER, "ccx13", true);
    });
}

#[test]
fn without_room_in_the_morning_a_machine_starts_small_if_it_may_and_is_owed_its_plan() {
    for (policy, on) in [("", false), ("start_small = true", true)] {
        run(async {
            let world = evening(&[droplet("")], policy).await;
            world.run_until(at("18:20")).await;
            let take_room = Act::TakeRoom { refusals: 100, failures: 0 };
            world.person(DROPLET, take_room);
            world.run_until(at("19:00")).await;
            world.is(DROPLET, "s-1vcpu-1gb", on);
            let record = world.record(DROPLET).await;
            assert!(matches!(record.saved, Some(SavedState::Machine(_))), "{record:#?}");
            assert_eq!(record.in_flight().is_some(), !on, "{record:#?}");
        });
    }
}

/// What a night of `rescaled_runs` leaves running: no start takes that away, not even one that
/// `enforce` asks for, and the next stop finds it where it leads.
#[test]
fn a_server_that_runs_small_is_never_left_off_for_a_plan_that_is_not_to_be_had() {
    let night = ["shutdown", "change_type"];
    let refused = ["shutdown", "change_type", "poweron"];
    for (is_sold, morning) in [(false, &[][..]), (true, &refused[..])] {
        run(async {
            let policy = "rescaled_runs = true\nenforce = true";
            let world = evening(&[server("")], policy).await;
            world.run_until(at("18:20")).await;
            if is_sold {
                let (refusals, failures) = (100, 0);
                world.person(SERVER, Act::TakeRoom { refusals, failures });
            } else {
                let offers = world.simulator();
                offers.set_offer("ccx13", None, &Offer::Unavailable).unwrap();
            }
            for (until, stands) in [("21:50", Power::Running), ("22:20", Power::Stopped)] {
                world.run_until(at(until)).await;
                world.is(SERVER, "cpx22", true);
                let record = world.record(SERVER).await;
                settled(&record, stands);
                assert!(record.saved.is_some(), "{record:#?}");
                assert_eq!(world.asked(SERVER), [&night, morning].concat());
            }
        });
    }
}

#[test]
fn a_resize_that_ends_in_an_error_is_asked_for_again() {
    run(async {
        let world = evening(&[droplet("resize_failures = 1")], "").await;
        world.run_until(at("18:20")).await;
        world.is(DROPLET, "s-1vcpu-1gb", false);
        assert_eq!(world.asked(DROPLET), ["shutdown", "resize", "resize"]);
        world.run_until(at("18:50")).await;
        world.is(DROPLET, "g-2vcpu-8gb", true);
    });
}

#[test]
fn a_shutdown_that_ends_in_an_error_is_followed_by_the_cut_before_the_resize() {
    run(async {
        let stubborn = |error: &str| {
            droplet(&format!("ignores_shutdown = true\nshutdown_error = \"{error}\""))
        };
        // The last one blocks the cut beyond the shutdown's own deadline.
        for error in ["30s", "4m", "12m"] {
            let world = evening(&[stubborn(error)], "").await;
            world.run_until(at("18:30")).await;
            world.is(DROPLET, "s-1vcpu-1gb", false);
            let mut asked = world.asked(DROPLET);
            asked.dedup();
            assert_eq!(asked, ["shutdown", "power_off", "resize"], "{error}");
        }
        let world = evening(&[stubborn("30s")], "force = false").await;
        world.run_until(at("18:30")).await;
        world.is(DROPLET, "g-2vcpu-8gb", true);
        let mut asked = world.asked(DROPLET);
        asked.dedup();
        assert_eq!(asked, ["shutdown"]);
    });
}

#[test]
fn a_lost_answer_to_a_resize_that_took_effect_is_found_and_not_repeated() {
    for body in ["\"resize\"", "\"shutdown\"", "\"power_on\""] {
        run(async {
            let world = evening(&[droplet("")], "").await;
            world.simulator().add_fault(fault(&json!({
                "match": { "method": "POST", "body_contains": body },
                "does": { "drop": { "after_effect": true } },
            })));
            world.run_until(at("18:30")).await;
            world.is(DROPLET, "s-1vcpu-1gb", false);
            world.run_until(at("18:55")).await;
            world.is(DROPLET, "g-2vcpu-8gb", true);
            let asked = ["shutdown", "resize", "resize", "power_on"];
            assert_eq!(world.asked(DROPLET), asked, "{body}");
            let record = world.record(DROPLET).await;
            settled(&record, Power::Running);
            assert_eq!(record.saved, None);
        });
    }
}

#[test]
fn a_person_who_switches_the_machine_on_meanwhile_keeps_it() {
    run(async {
        let world = evening(&[droplet("shutdown = \"40s\"")], "").await;
        world.run_until(monday("18:01:50")).await;
        world.run_until(at("18:10")).await;
        world.person(DROPLET, Act::PowerOn);
        world.run_until(at("18:30")).await;
        world.is(DROPLET, "s-1vcpu-1gb", true);
        let record = world.record(DROPLET).await;
        assert!(matches!(record.saved, Some(SavedState::Machine(_))));
        // The begin edge restores its own plan.
        world.run_until(at("18:50")).await;
        world.is(DROPLET, "g-2vcpu-8gb", true);
        let asked = ["shutdown", "resize", "shutdown", "resize", "power_on"];
        assert_eq!(world.asked(DROPLET), asked);
    });
}

#[test]
fn a_person_who_resizes_just_before_the_move_has_that_plan_back_in_the_morning() {
    run(async {
        let slow = "shutdown = \"12s\"\nresize = \"300s\"";
        let world = evening(&[droplet(slow)], "").await;
        // It is off, but only the person knows that yet.
        world.run_until(monday("18:00:20")).await;
        let plan = "s-2vcpu-2gb".to_owned();
        world.person(DROPLET, Act::ChangePlan { plan, disk: false });
        // Until the person's resize has ended, the Droplet has a pending event.
        world.run_until(at("18:04")).await;
        world.is(DROPLET, "g-2vcpu-8gb", false);
        world.run_until(at("18:20")).await;
        world.is(DROPLET, "s-1vcpu-1gb", false);
        world.run_until(at("18:55")).await;
        world.is(DROPLET, "s-2vcpu-2gb", true);
        settled(&world.record(DROPLET).await, Power::Running);
    });
}

#[test]
fn a_database_that_is_being_migrated_keeps_its_standby_until_that_is_over() {
    run(async {
        let world = evening(&[database("")], "").await;
        let status = |word: &str| Act::SetStatus { status: word.to_owned() };
        world.person(DATABASE, status("migrating"));
        world.run_until(at("18:10")).await;
        assert_eq!(world.asked(DATABASE), [""; 0]);
        let error = world.record(DATABASE).await.last_error.unwrap();
        assert!(error.to_string().contains("migrating"), "{error}");
        world.person(DATABASE, status("online"));
        world.run_until(at("18:35")).await;
        assert_eq!(world.shown(DATABASE)["nodes"], 1);
        world.run_until(at("19:59")).await;
        assert_eq!(world.shown(DATABASE)["nodes"], 2);
    });
}

#[test]
fn another_plan_that_a_person_chooses_overnight_stays() {
    run(async {
        let world = evening(&[droplet("")], "").await;
        world.run_until(at("18:15")).await;
        let plan = "s-4vcpu-8gb".to_owned();
        world.person(DROPLET, Act::ChangePlan { plan, disk: false });
        world.run_until(at("18:20")).await;
        world.person(DROPLET, Act::PowerOn);
        world.run_until(at("18:50")).await;
        world.is(DROPLET, "s-4vcpu-8gb", true);
        let record = world.record(DROPLET).await;
        settled(&record, Power::Running);
        assert_eq!(record.saved, None);
        let endings: Vec<_> = world.history(DROPLET).await;
        assert!(endings.iter().any(|entry| entry.ending == Ending::Resized));
    });
}

#[test]
fn what_a_schedule_says_anew_changes_no_stop_under_way_and_owes_the_plan() {
    run(async {
        let world = evening(&[droplet("")], "").await;
        world.run_until(at("18:20")).await;
        world.apply(&short_night("", "graceful = true")).await;
        world.run_until(at("18:50")).await;
        world.is(DROPLET, "g-2vcpu-8gb", true);
        let wait = SignedDuration::from_mins(5);
        world.run_until(at("18:50") + wait).await;
        assert_eq!(world.record(DROPLET).await.saved, None);
    });
}
