//! Machines over SSH: deadlines of their own, states that stay unknown, and a power cut that needs
//! a command.

use domain::ssh::SshMachine;

use super::*;

/// A machine whose stop may take three minutes, and whose start five.
fn machine() -> Case {
    let plan = String::new();
    let mut case = case("lab/machine/build", machine_size(plan));
    let account = serde_json::json!({
        "provider": "ssh",
        "host": "jump.example.net",
        "user": "offhours",
        "key": "env:LAB_KEY",
        "host_keys": [
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID2MFepRAu6qdgmRqxbuktBQOdN2QdL0zSZ1xcsO/yTw",
        ],
        "machines": { "build": {
            "start": "start build", "stop": "stop build", "status": "status build",
            "stop_deadline": "3m", "start_deadline": "5m",
        } },
    });
    let account = serde_json::from_value(account).unwrap();
    let accounts = &mut case.configuration.accounts;
    accounts.insert("lab".parse().unwrap(), account);
    case
}

impl Case {
    fn configured(mut self, change: impl FnOnce(&mut SshMachine)) -> Self {
        let account = self.configuration.accounts.values_mut().last().unwrap();
        let Account::Ssh(account) = account else {
            panic!("not over SSH");
        };
        let machine = account.login.machines.values_mut().next().unwrap();
        change(machine);
        self
    }

    fn with_force(self) -> Self {
        self.configured(|machine| machine.force = Some("force build".parse().unwrap()))
    }
}

/// The machine after a stop was requested at 19:00.
fn asked_to_stop(ask: Ask) -> Case {
    let late = Some(SignedDuration::from_mins(3));
    let asked = machine().asked(STOP, "19:00", ask);
    asked.request(|request| request.effect_timeout = late)
}

#[track_caller]
fn stuck_because(case: &Case, words: &str) {
    let write = case.records();
    assert!(
        matches!(&write.record.phase, Phase::Stuck { reason, since, .. }
            if reason == words && *since == case.now),
        "{:#?}",
        write.record.phase
    );
    assert!(matches!(&write.events[..], [Event::Stuck { .. }]));
}

#[test]
fn a_request_has_the_deadline_that_its_machine_has_in_that_direction() {
    let late = |send: Send| send.record.request.unwrap().effect_timeout;
    let minutes = SignedDuration::from_mins;
    assert_eq!(late(machine().sends(STOP)), Some(minutes(3)));
    let stopped = machine().off().settled(Power::Stopped);
    let stopped = stopped.handled("sun 19:00", STOPPED).at("08:00");
    assert_eq!(late(stopped.sends(START)), Some(minutes(5)));
    assert_eq!(late(droplet().sends(STOP)), None);
    assert_eq!(late(server().sends(STOP)), None);
}

#[test]
fn a_stop_waits_for_a_machine_that_went_silent_about_its_edge() {
    let silent = |mut case: Case| {
        case.resource.facts.silent = true;
        case.off()
    };
    let observed = |since: &str, power| {
        let case = machine().at(since).seen(power).observed(power);
        silent(case.settled(power)).at("19:00")
    };
    observed("18:58", Power::Stopped).postpones(STOP, "does not answer");
    observed("08:00", Power::Running).postpones(STOP, "does not answer");
    // It has been off since long before: there is nothing to stop.
    let off = observed("18:30", Power::Stopped).writes(STOP);
    assert!(is_settled(&off.record, Power::Stopped));
    // What says that it is off is off, and what answers again is stopped.
    let mut off = observed("18:58", Power::Stopped);
    off.resource.facts.silent = false;
    assert!(is_settled(&off.clone().writes(STOP).record, Power::Stopped));
    assert_eq!(off.seen(Power::Running).at("19:30").sends(STOP).step(), SHUTDOWN);
    // Silence ends a stop that was sent.
    let sent = silent(asked_to_stop(accepted("19:00:10"))).at("19:01");
    assert!(is_settled(&sent.records().record, Power::Stopped));
}

#[test]
fn a_machine_that_goes_on_running_is_stuck_at_its_own_deadline() {
    let case = asked_to_stop(accepted("19:00:10"));
    case.clone().at("19:03:09").goes_on();
    stuck_because(&case.at("19:03:10"), "accepted, and not seen within 3 minutes");
}

#[test]
fn a_machine_whose_state_stays_unknown_is_stuck_at_its_own_deadline_and_not_before() {
    let unknown = |ask| asked_to_stop(ask).busy().seen(Power::Between);
    let case = unknown(accepted("19:00:10"));
    case.clone().at("19:03:09").goes_on();
    stuck_because(&case.at("19:03:10"), "not seen: locked");
    // A request without an answer may have arrived until its permit ended.
    let case = unknown(Ask::Open);
    case.clone().at("19:04:59").goes_on();
    stuck_because(&case.at("19:05"), "not seen: locked");
    // The request was not accepted: it is sent again instead.
    unknown(failed("19:01")).at("19:55").goes_on();
}

#[test]
fn a_start_after_which_the_state_stays_unknown_is_sent_again_once_it_is_known() {
    let asked = machine().off().asked(START, "08:00", accepted("08:00:10"));
    let late = Some(SignedDuration::from_mins(5));
    let asked = asked.request(|request| request.effect_timeout = late);
    let unknown = asked.busy().seen(Power::Between);
    unknown.clone().at("08:05:09").goes_on();
    let write = unknown.clone().at("08:05:10").records();
    assert!(matches!(write.events[..], [Event::Stuck { .. }]), "{:?}", write.events);
    let mut off = unknown.record(|record| *record = write.record).off().at("08:20");
    off.resource.busy = None;
    off.sends(START);
}

#[test]
fn a_stop_whose_command_gives_no_clear_answer_is_not_repeated_all_night() {
    let open = asked_to_stop(Ask::Open).unknown();
    open.clone().at("19:04:59").goes_on();
    let at_deadline = open.at("19:05");
    stuck_because(&at_deadline, "no clear answer to its command within 3 minutes");
    // A cloud's answer was lost on the way, and a start is sent until it succeeds.
    let cloud = droplet().asked(STOP, "19:00", Ask::Open).unknown();
    cloud.at("21:00").goes_on();
    let start = machine().off().asked(START, "08:00", Ask::Open).unknown();
    start.at("10:00").goes_on();
}

#[test]
fn a_cloud_that_says_that_it_works_is_waited_for_however_long() {
    for case in [droplet(), server()] {
        let case = case.asked(STOP, "19:00", accepted("19:00:10"));
        case.busy().at("20:55").goes_on();
    }
}

#[test]
fn only_a_machine_with_a_command_for_it_has_its_power_cut() {
    let forces = |case: Case| {
        let send = case.sends(STOP);
        assert_eq!(send.step(), SHUTDOWN);
        let mut ignored = case.at("19:02");
        ignored.record = send.record;
        ignored.record.permit = None;
        let ignored = ignored.request(|request| request.ask = accepted("19:00:10"));
        matches!(ignored.follow(), Follow::Force)
    };
    assert!(!forces(machine()));
    assert!(forces(machine().with_force()));
    let has_cut = |case: &Case| case.configuration.has_power_cut(&case.record.reference);
    assert!(has_cut(&droplet()) && has_cut(&server()));
    assert!(!has_cut(&database()) && !has_cut(&pool()));
    assert!(!has_cut(&machine()) && has_cut(&machine().with_force()));
    let other = machine().with_force().record(|record| {
        record.reference = "lab/machine/other".parse().unwrap();
    });
    assert!(!has_cut(&other));
}
