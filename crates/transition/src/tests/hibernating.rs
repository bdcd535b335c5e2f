//! Machines that are kept as snapshots while they are stopped: each rule of the protocol, tested by
//! what would be lost without it.

use domain::{
    configuration::ServerMethod,
    hibernation::{
        Attachment, Hibernation, KeptSnapshot, Manifest, Mark, NetworkAddress, ObservedMachine,
        SeenSnapshot, Sight, SnapshotState,
    },
    stop_method::StopMethod,
};

use super::*;
use crate::{
    answer::apply,
    methods::{self, Reads, Sighted, hibernate},
};

/// The machine, and the one that is recreated from it.
const FIRST: &str = "server/1";
const SECOND: &str = "server/2";

const SNAPSHOT: u64 = 77;

fn size() -> MachineSize {
    MachineSize {
        plan: "cpx22".to_owned(),
        vcpus: 2,
        memory_mib: 4096,
        disk_gib: 80,
        architecture: Some("x86".to_owned()),
        ..MachineSize::default()
    }
}

fn manifest() -> Manifest {
    Manifest {
        name: "web".to_owned(),
        region: "fra1".to_owned(),
        tags: BTreeSet::from(["offhours=office".to_owned()]),
        size: size(),
        networks: vec![NetworkAddress {
            network: "3".to_owned(),
            ip: "10.0.0.9".to_owned(),
            alias_ips: Vec::new(),
        }],
        ..Manifest::default()
    }
}

fn mark(text: &str) -> Mark {
    Mark(text.to_owned())
}

fn machine(case: &Case, id: &str, power: Power) -> ObservedMachine {
    let resource = Resource { id: id.parse().unwrap(), power, ..case.resource.clone() };
    ObservedMachine {
        resource,
        mark: None,
        made_from: None,
        manifest: Some(manifest()),
        around: None,
        unkept: Vec::new(),
        settling: false,
    }
}

fn complete(mark: &Mark, from: &str, created_at: &str) -> SeenSnapshot {
    SeenSnapshot {
        id: SNAPSHOT,
        mark: Some(mark.clone()),
        from: Some(from.parse().unwrap()),
        state: SnapshotState::Available,
        created_at: Some(at(created_at)),
        centi_gb: 450,
        disk_gib: 80,
        architecture: Some("x86".to_owned()),
        regions: None,
        protected: Some(true),
        opted_out: false,
    }
}

/// A server that is to be hibernated, at its end edge.
fn hibernated() -> Case {
    let case = case("hz-eu/server/1", Size::Machine(size()));
    let mut case = case.following(|policy| policy.methods.server = ServerMethod::Hibernate);
    case.ssh_key = Some("team");
    case.seeing(FIRST, Power::Running)
}

/// Setting up the sight.
impl Case {
    fn sight(&mut self) -> &mut Sight {
        self.sight.get_or_insert_default()
    }

    /// The machine is there, and is seen with its log since midnight.
    fn seeing(mut self, id: &str, power: Power) -> Self {
        let machine = machine(&self, id, power);
        self.resource = machine.resource.clone();
        self.sight().machine = Some(machine);
        self.log_from = Some(at("00:00"));
        self
    }

    fn machine(mut self, change: impl FnOnce(&mut ObservedMachine)) -> Self {
        change(self.sight().machine.as_mut().unwrap());
        self
    }

    /// There is no machine with its id.
    fn away(mut self) -> Self {
        self.sight().machine = None;
        self.log_from = None;
        if let Some(sight) = &self.sight
            && let Some(shown) = crate::methods::hibernate::shown(&self.record, sight)
        {
            self.resource = shown;
        }
        self
    }

    /// A snapshot of the record is listed as complete.
    fn listing(self, created_at: &str) -> Self {
        let one = self.kept().snapshots[0].clone();
        let listed = complete(&one.mark, &one.from.to_string(), created_at);
        self.listed(listed)
    }

    fn listed(mut self, snapshot: SeenSnapshot) -> Self {
        self.sight().snapshots.push(snapshot);
        self
    }

    fn snapshot(mut self, change: impl FnOnce(&mut SeenSnapshot)) -> Self {
        change(self.sight().snapshots.last_mut().unwrap());
        self
    }

    /// Another machine is listed.
    fn beside(mut self, id: &str, mark: Option<Mark>, made_from: Option<u64>) -> Self {
        let other = ObservedMachine { mark, made_from, ..machine(&self, id, Power::Stopped) };
        self.sight().others.push(other);
        self.away_again()
    }

    /// Updates what stands for the machine, if that is away.
    fn away_again(self) -> Self {
        if self.sight.as_ref().is_some_and(|sight| sight.machine.is_none()) {
            self.away()
        } else {
            self
        }
    }

    fn kept(&self) -> &Hibernation {
        self.record.hibernation.as_ref().unwrap()
    }

    fn keeping(self, change: impl FnOnce(&mut Hibernation)) -> Self {
        self.record(|record| {
            let machine = record.reference.id.clone();
            let kept = record.hibernation.get_or_insert_with(|| Box::new(Hibernation::of(machine)));
            change(kept);
        })
    }
}

/// Running a case.
impl Case {
    /// Sends the next step, which the cloud accepts.
    #[track_caller]
    fn taken(mut self, direction: Direction) -> Self {
        let now = self.now;
        let send = self.sends(direction);
        self.record = send.record;
        self.record.permit = None;
        self.request(|request| {
            request.ask = Ask::Accepted { at: now, action: None };
            request.first_accepted_at = Some(now);
        })
    }

    #[track_caller]
    fn then(mut self) -> Self {
        self.record = self.records().record;
        self
    }

    #[track_caller]
    fn asks(&self, direction: Direction) -> Step {
        self.sends(direction).step()
    }

    fn ask(&self) -> &Ask {
        &self.record.request.as_ref().unwrap().ask
    }

    /// Switched off, and seen to be off.
    #[track_caller]
    fn powered_off(self) -> Self {
        let case = self.taken(STOP).seeing(FIRST, Power::Stopped).at("19:00:40");
        case.then()
    }

    /// Its snapshot requested at 19:00:50, complete at 19:05, and protected.
    #[track_caller]
    fn copied(self) -> Self {
        let case = self.powered_off().at("19:00:50").taken(STOP);
        case.at("19:05").listing("19:00:51").then()
    }

    /// Its deletion accepted at 19:05:10.
    #[track_caller]
    fn deleting(self) -> Self {
        self.copied().at("19:05:10").taken(STOP)
    }

    /// Seen asleep at 19:06, and settled.
    #[track_caller]
    fn asleep(self) -> Self {
        self.deleting().at("19:06").away().then()
    }

    /// At Tuesday's start, its machine requested.
    #[track_caller]
    fn waking(self) -> Self {
        self.asleep().at("tue 08:00").taken(START)
    }

    fn made_now(&self) -> Option<Mark> {
        self.kept().wakes.last().cloned()
    }
}

#[test]
fn a_stop_switches_off_copies_protects_deletes_and_ends_when_that_is_seen() {
    let case = hibernated();
    let send = case.sends(STOP);
    assert_eq!(send.step(), SHUTDOWN);
    let transition = send.record.in_flight().unwrap();
    assert_eq!(transition.method, StopMethod::Hibernate);
    // The same goes for one that was hibernated before.
    let again = case.clone().keeping(|_| ());
    assert_eq!(again.sends(STOP).step(), SHUTDOWN);
    let off = case.powered_off();
    let Step::Snapshot(label) = off.at("19:00:50").asks(STOP) else {
        panic!("a snapshot");
    };
    assert_eq!(label.of, FIRST.parse().unwrap());
    let copied = hibernated().copied();
    assert_eq!(copied.kept().snapshots[0].id, Some(SNAPSHOT));
    assert_eq!(copied.kept().snapshots[0].centi_gb, Some(450));
    let open = copied.clone().snapshot(|seen| seen.protected = Some(false));
    let protects = Step::Protect { snapshot: SNAPSHOT, on: true };
    assert_eq!(open.at("19:05:10").asks(STOP), protects);
    let deleting = copied.at("19:05:10");
    assert_eq!(deleting.asks(STOP), Step::Delete);
    let deleting = deleting.taken(STOP);
    let kept = deleting.kept();
    assert!(kept.delete_asked);
    assert_eq!(kept.wake_from, Some(kept.snapshots[0].mark.clone()));
    assert_eq!(kept.manifest.as_ref().unwrap().ssh_key, "team");
    let asleep = deleting.at("19:06").away().then();
    assert!(asleep.record.is_hibernated() && is_settled(&asleep.record, Power::Stopped));
}

#[test]
fn an_address_that_would_be_deleted_is_kept_before_anything_is_copied() {
    let case = hibernated().powered_off().at("19:00:50");
    let case = case.machine(|machine| machine.unkept = vec!["5".to_owned()]);
    let address = "5".to_owned();
    assert_eq!(case.asks(STOP), Step::KeepAddress(address));
}

#[test]
fn a_start_makes_attaches_switches_on_and_ends_when_all_is_back() {
    let asleep = hibernated().asleep().at("tue 08:00");
    let Step::Create { label, snapshot, manifest: made } = asleep.asks(START) else {
        panic!("a machine");
    };
    assert_eq!((snapshot, made.name.as_str()), (SNAPSHOT, "web"));
    let waking = asleep.taken(START);
    assert_eq!(waking.made_now(), Some(label.mark.clone()));
    let made = waking.at("tue 08:01").beside(SECOND, Some(label.mark), Some(SNAPSHOT));
    let adopted = made.then();
    assert_eq!(adopted.record.present(), Some(&SECOND.parse().unwrap()));
    assert!(matches!(adopted.ask(), Ask::Done { .. }));
    let mut there = adopted.seeing(SECOND, Power::Stopped);
    there.sight().others.clear();
    let bare = there.clone().machine(|machine| {
        let manifest = machine.manifest.as_mut().unwrap();
        manifest.networks.clear();
    });
    assert!(matches!(bare.asks(START), Step::Attach(_)));
    let on = there.at("tue 08:02").sends(START);
    assert_eq!((on.step(), &on.resource.id), (ON, &SECOND.parse().unwrap()));
    let on = just_made(Power::Stopped).at("tue 08:02").taken(START);
    let up = on.seeing(SECOND, Power::Running).at("tue 08:03").then();
    assert!(is_settled(&up.record, Power::Running));
    assert_eq!(up.kept().took, [SignedDuration::from_secs(180)]);
}

#[test]
fn a_firewall_that_is_not_applied_yet_is_waited_for_before_power_on() {
    let case = just_made(Power::Stopped).at("tue 08:02");
    case.machine(|machine| machine.settling = true).leaves(START);
}

#[test]
fn what_was_written_since_the_snapshot_is_not_deleted() {
    let copied = hibernated().copied().at("19:05:10");
    for effect in [
        ActionEffect::Start,
        ActionEffect::PowerOff,
        ActionEffect::Reboot,
        ActionEffect::Rebuild,
        ActionEffect::Resize,
    ] {
        // Something was done to the machine before the snapshot was seen complete.
        let used = copied.clone().logged(effect, "19:01:30");
        match used.plan(STOP) {
            Plan::Send(send) => {
                let step = send.step();
                assert!(matches!(step, Step::Snapshot(_)), "{effect:?}: {step}");
            }
            // A person's start ends the stop.
            Plan::Leave | Plan::Write(_) | Plan::Withhold(_) => {}
            Plan::Postpone(why) => panic!("{effect:?}: {why}"),
        }
    }
    // What was done before the snapshot was begun does not matter.
    let case = copied.logged(ActionEffect::PowerOff, "19:00:20");
    assert_eq!(case.asks(STOP), Step::Delete);
}

/// Its request arrives after a person has switched the machine on, so it is a copy of a machine at
/// work.
#[test]
fn a_snapshot_of_a_machine_that_was_switched_on_before_it_began_is_no_whole_copy() {
    let stopped_again = |mut case: Case| {
        case = case.record(|record| {
            record.phase = Phase::Settled { at: Power::Running };
            record.drop_request();
        });
        // The guest switches itself off, which no log shows.
        case.seeing(FIRST, Power::Stopped).at("tue 19:00")
    };
    let copying = || hibernated().powered_off().at("19:00:50").taken(STOP);
    let complete = |case: Case| stopped_again(case.at("19:05").listing("19:02").then());
    for (effect, begun, ended) in [
        (ActionEffect::Start, "19:01:10", "19:01:20"),
        (ActionEffect::Rebuild, "19:01:10", "19:01:20"),
        // It was not over when the machine was seen off, or began just then by another clock.
        (ActionEffect::Reboot, "18:59:00", "19:00:45"),
        (ActionEffect::Start, "19:00:45", "19:00:46"),
    ] {
        let mut used = copying().logged(effect, begun);
        used.log[0].ended_at = Some(at(ended));
        let used = complete(used);
        let asks = used.asks(STOP);
        assert!(matches!(asks, Step::Snapshot(_)), "{effect:?}");
        // The record of an older program has the instant of the request alone.
        let older = used.keeping(|kept| kept.snapshots[0].looked_at = None);
        assert!(matches!(older.asks(STOP), Step::Snapshot(_)));
    }
    let before = copying().logged(ActionEffect::Start, "18:58:00");
    let older = complete(before).keeping(|kept| kept.snapshots[0].looked_at = None);
    assert_eq!(older.asks(STOP), Step::Delete);
    let used = copying().logged(ActionEffect::Start, "18:58:11");
    let known = complete(used);
    assert_eq!(known.asks(STOP), Step::Delete);
    let older = known.keeping(|kept| kept.snapshots[0].looked_at = None);
    assert!(matches!(older.asks(STOP), Step::Snapshot(_)));
}

#[test]
fn the_log_is_read_back_to_the_look_on_which_the_first_snapshot_of_the_machine_rests() {
    let case = hibernated().copied().at("19:05:10");
    let log_from = |record: &Record| methods::rules(StopMethod::Hibernate).log_from(record);
    assert_eq!(log_from(&case.record), Some(at("19:00:40")));
    let earlier = |from: &'static str| {
        case.clone().keeping(|kept| {
            let earlier = KeptSnapshot::of(from.parse().unwrap(), mark("b"), at("18:00"));
            kept.snapshots.push(earlier);
        })
    };
    assert_eq!(log_from(&earlier(FIRST).record), Some(at("17:57:20")));
    assert_eq!(log_from(&earlier(SECOND).record), Some(at("19:00:40")));
}

#[test]
fn an_action_that_is_not_over_keeps_the_machine() {
    let mut case = hibernated().copied().at("19:05:10");
    case = case.logged(ActionEffect::Other, "19:05:05");
    case.log[0].state = ActionState::Running;
    // Nor is another snapshot begun, or an old one removed for it.
    assert!(!matches!(case.plan(STOP), Plan::Send(_)));
}

fn deletes(send: &Send) -> bool {
    send.step() == Step::Delete
}

#[test]
fn a_snapshot_that_holds_less_than_the_machine_does_not_let_it_be_deleted() {
    let copied = hibernated().copied().at("19:05:10");
    let wrong: [fn(&mut SeenSnapshot); 7] = [
        |seen| seen.state = SnapshotState::Failed,
        |seen| seen.state = SnapshotState::Unknown,
        |seen| seen.state = SnapshotState::Creating,
        |seen| seen.centi_gb = 0,
        |seen| seen.disk_gib = 160,
        |seen| seen.architecture = Some("arm".to_owned()),
        |seen| seen.from = Some(SECOND.parse().unwrap()),
    ];
    for (place, change) in wrong.into_iter().enumerate() {
        let case = copied.clone().snapshot(change);
        let plan = case.plan(STOP);
        assert!(!matches!(plan, Plan::Send(send) if deletes(&send)), "{place}");
    }
    let smaller = copied.clone().keeping(|kept| {
        kept.snapshots.push(KeptSnapshot {
            mark: mark("before"),
            centi_gb: Some(901),
            ..kept.snapshots[0].clone()
        });
    });
    assert!(!matches!(smaller.plan(STOP), Plan::Send(send) if deletes(&send)));
    assert_eq!(copied.asks(STOP), Step::Delete);
}

#[test]
fn yesterdays_snapshot_of_another_machine_is_none_of_todays() {
    let case = hibernated().copied().at("19:05:10");
    let case = case.keeping(|kept| kept.snapshots[0].from = SECOND.parse().unwrap());
    assert!(matches!(case.asks(STOP), Step::Snapshot(_)));
    // Its cloud says the same.
    let case = case.snapshot(|seen| seen.from = Some(SECOND.parse().unwrap()));
    assert!(matches!(case.asks(STOP), Step::Snapshot(_)));
}

#[test]
fn a_log_that_was_not_read_back_to_the_snapshot_proves_nothing() {
    let copied = hibernated().copied().at("19:05:10");
    for from in [None, Some(at("19:00:46"))] {
        let mut case = copied.clone();
        case.log_from = from;
        assert!(matches!(case.asks(STOP), Step::Snapshot(_)), "{from:?}");
    }
}

#[test]
fn a_deletion_rests_on_a_look_of_ten_seconds() {
    let case = hibernated().copied().at("19:05:21").looked_at("19:05:10");
    case.postpones(STOP, "older than 10 s");
    let case = hibernated().copied().at("19:05:20").looked_at("19:05:10");
    assert_eq!(case.asks(STOP), Step::Delete);
}

#[test]
fn nothing_is_deleted_that_is_opted_out_or_wanted_or_runs_soon() {
    let copied = || hibernated().copied().at("19:05:10");
    copied().untagged().leaves(STOP);
    copied().overridden(RUNNING, "19:05", "22:00").leaves(STOP);
    copied().observing().leaves(STOP);
    let soon = copied().at("tue 07:05");
    soon.leaves(STOP);
    let write = soon.records();
    assert!(is_settled(&write.record, Power::Stopped));
    // Whatever counts stops by method counts this one by what was actually done.
    let last = write.record.last.as_ref();
    assert_eq!(last.unwrap().method, Some(StopMethod::Graceful));
    assert!(!write.record.is_hibernated());
    let entry = write.history.unwrap();
    assert_eq!(entry.method, Some(StopMethod::Graceful));
    let reason = entry.reason.unwrap();
    assert!(reason.contains("only powered off"), "{reason}");
}

/// Recreated on the small plan, it would never get its own plan back.
#[test]
fn a_machine_that_is_owed_its_plan_is_not_hibernated() {
    let owed = |case: Case| {
        let own = MachineSize { plan: "ccx23".to_owned(), ..size() };
        case.record(|record| record.saved = Some(SavedState::Machine(own)))
    };
    let send = owed(hibernated()).sends(STOP);
    let method = send.record.in_flight().unwrap().method;
    assert_ne!(method, StopMethod::Hibernate);
    let copied = owed(hibernated().copied().at("19:05:10"));
    copied.leaves(STOP);
    let write = copied.records();
    assert!(is_settled(&write.record, Power::Stopped));
    assert!(write.record.saved.is_some() && !write.record.is_hibernated());
}

#[test]
fn without_a_key_a_stop_only_powers_off() {
    let mut case = hibernated();
    case.ssh_key = None;
    let send = case.sends(STOP);
    let transition = send.record.in_flight().unwrap();
    assert_eq!(transition.method, StopMethod::Graceful);
    case.off().writes(STOP);
}

#[test]
fn an_obstacle_that_appears_leaves_the_machine_off_and_whole() {
    let mut case = hibernated().copied().at("19:05:10");
    case.refusal = Some("its protection is on");
    let write = case.writes(STOP);
    assert!(matches!(write.record.phase, Phase::Refused { .. }));
}

#[test]
fn a_deletion_is_resolved_before_anything_else_is_asked() {
    let deleting = hibernated().deleting();
    // The machine may still disappear: neither the stop nor a start sends anything.
    let still = deleting.clone().at("19:20:14");
    still.goes_on();
    still.leaves(STOP);
    still.clone().overridden(RUNNING, "19:10", "22:00").leaves(START);
    // It took effect.
    assert!(deleting.clone().at("19:06").away().then().record.is_hibernated());
    // It can have no effect any more: the whole check is repeated.
    let lost = deleting.at("19:20:15").then();
    assert!(matches!(lost.ask(), Ask::Failed { .. }));
    let used = lost.at("19:25").logged(ActionEffect::PowerOff, "19:10");
    assert!(!matches!(used.plan(STOP), Plan::Send(send) if deletes(&send)));
}

/// Deleted by a person later, it must not come back.
#[test]
fn a_deletion_that_had_no_effect_is_over() {
    let deleting = || hibernated().deleting();
    assert!(deleting().at("19:20:14").kept().delete_asked);
    for case in [deleting(), deleting().unanswered(), deleting().untagged()] {
        let void = case.at("19:23").then();
        assert!(!void.kept().delete_asked);
        let mut gone = void.at("19:40");
        gone.sight().machine = None;
        let sight = gone.sight.clone().unwrap();
        let shown = crate::methods::hibernate::shown(&gone.record, &sight).unwrap();
        assert!(shown.busy.is_some(), "the record may also be older than the cloud");
    }
    // Until then, and while its cloud deletes it, an absence may be our own doing.
    let may_be_ours = |case: Case| {
        let seen = case.with(|seen, _| {
            let mut record = case.record.clone();
            methods::learn(&mut record, seen);
            record
        });
        seen.hibernation.unwrap().delete_asked
    };
    assert!(may_be_ours(deleting().at("19:20:14")));
    let mut case = deleting().at("19:40");
    case.resource.busy = Some(Busy::Deleting);
    assert!(may_be_ours(case));
    assert!(may_be_ours(deleting().at("19:40").away()));
    let left = deleting().at("19:40").record(Record::drop_request);
    assert!(!may_be_ours(left));
}

#[test]
fn a_machine_that_is_being_deleted_is_waited_for() {
    let mut case = hibernated().deleting().at("19:20:14");
    case.resource.busy = Some(Busy::Deleting);
    let resource = case.resource.clone();
    case.machine(|machine| machine.resource = resource).goes_on();
}

#[test]
fn a_deletion_is_seen_though_another_machine_has_the_name_and_that_is_reported() {
    let taken = hibernated().deleting().at("19:06");
    let mut taken = taken.away();
    taken.sight().others.push(machine(&hibernated(), SECOND, Power::Running));
    let done = taken.away().then();
    assert!(matches!(done.ask(), Ask::Done { .. }));
    let stuck = done.at("19:06:10").then();
    assert!(matches!(stuck.record.phase, Phase::Stuck { .. }));
    // The other machine has been renamed since.
    let mut alone = stuck.at("19:30");
    alone.sight().others.clear();
    let settled = alone.away().then();
    assert!(settled.record.is_hibernated());
}

#[test]
fn an_absence_counts_only_where_the_snapshot_is_seen() {
    let mut blind = hibernated().deleting().at("19:06");
    blind.sight().snapshots.clear();
    blind.away().goes_on();
}

#[test]
fn what_we_have_not_deleted_is_gone() {
    let mut case = hibernated().powered_off().at("19:06");
    assert!(!case.kept().delete_asked);
    case.sight().machine = None;
    let sight = case.sight.clone().unwrap();
    assert_eq!(crate::methods::hibernate::shown(&case.record, &sight), None);
}

/// The record was restored from a backup: it knows neither what was made since nor the deletion.
#[test]
fn a_record_that_is_older_than_its_cloud_is_not_gone() {
    let problem = |case: &Case| {
        let sight = case.sight.as_ref().unwrap();
        crate::methods::hibernate::problem_of(case.kept(), Some(sight))
    };
    let older =
        |thing: &str| Some(format!("the record is older than the cloud: {thing} is not in it"));
    let mut restored = hibernated().keeping(|_| ()).at("23:00");
    restored.sight().machine = None;
    assert_eq!(problem(&restored), None, "it is gone");
    let copied = restored.clone().listed(complete(&mark("later"), FIRST, "19:05"));
    assert_eq!(problem(&copied), older("snapshot 77"));
    assert!(copied.away().resource.busy.is_some());
    let woken = restored.beside(SECOND, Some(mark("later")), Some(SNAPSHOT));
    assert_eq!(problem(&woken), older(SECOND));
    let mut deleted = hibernated().copied().at("19:06");
    assert!(deleted.kept().snapshots.len() == 1 && !deleted.kept().delete_asked);
    assert_eq!(problem(&deleted), None);
    deleted.sight().machine = None;
    let either = "the record is older than the cloud, or a person deleted the machine that \
                  snapshot 77 holds";
    assert_eq!(problem(&deleted).as_deref(), Some(either));
    assert!(deleted.away().resource.busy.is_some());
}

#[test]
fn a_record_from_before_the_first_hibernation_has_the_problem_of_an_older_one() {
    let copied = hibernated().listed(complete(&mark("later"), FIRST, "19:05")).at("23:00").away();
    let mut record = Record { hibernation: None, ..copied.record.clone() };
    copied.with(|seen, _| methods::take_stock(&mut record, seen));
    let problem = record.hibernation_problem().unwrap();
    assert_eq!(problem, "the record is older than the cloud: snapshot 77 is not in it");
}

/// A night older, it would wake the machine from the copy of the night before.
#[test]
fn a_hibernated_machine_is_not_woken_from_a_copy_that_was_replaced() {
    let asleep = hibernated().asleep().at("tue 08:00");
    let copy = |id, of| SeenSnapshot { id, ..complete(&mark("other"), of, "tue 19:05") };
    let replaced = asleep.clone().listed(copy(SNAPSHOT + 1, SECOND)).away();
    assert!(matches!(replaced.plan(START), Plan::Postpone(why) if why.contains("older")));
    // What came late of a request that was given up replaces nothing.
    for stray in [copy(SNAPSHOT + 1, FIRST), copy(SNAPSHOT - 1, SECOND)] {
        let stray = asleep.clone().listed(stray).away();
        assert!(matches!(stray.asks(START), Step::Create { .. }));
    }
}

/// No provider shows it while the machine is away, and what it costs depends on it.
#[test]
fn what_is_asleep_keeps_the_instant_of_its_creation() {
    let mut away = hibernated().asleep().away();
    away.record.created_at = Some(at("08:00"));
    assert_eq!(away.resource.facts.created_at, None);
    away.record.describe(&away.resource);
    assert_eq!(away.record.created_at, Some(at("08:00")));
}

fn refusal() -> Refusal {
    Refusal {
        status: Some(423),
        code: "protected".to_owned(),
        message: String::new(),
        request_id: None,
    }
}

#[test]
fn a_refused_deletion_is_forgotten_and_a_404_is_not() {
    let case = hibernated().copied().at("19:05:10");
    let sent = case.sends(STOP);
    let noted = |kind: FailureKind| {
        let mut record = sent.record.clone();
        apply(&mut record, &Err(failure(kind, &refusal())), case.now);
        record.hibernation.unwrap().delete_asked
    };
    assert!(!noted(FailureKind::Refused(refusal())));
    assert!(!noted(FailureKind::Busy));
    assert!(noted(FailureKind::NotFound));
}

#[test]
fn a_start_waits_for_the_snapshot_under_way_and_then_switches_on() {
    let copying = hibernated().powered_off().at("19:00:50").taken(STOP);
    let wanted = copying.at("19:02").overridden(RUNNING, "19:01", "22:00");
    wanted.leaves(START);
    let done = wanted.listing("19:00:51").at("19:05").then();
    let send = done.sends(START);
    assert_eq!((send.step(), &send.resource.id), (ON, &FIRST.parse().unwrap()));
    assert!(!send.record.hibernation.unwrap().delete_asked);
}

/// The snapshot is seen complete only after the person's start.
#[test]
fn a_person_who_switches_it_on_while_it_is_copied_has_overtaken_the_stop() {
    let copying = || hibernated().powered_off().at("19:00:50").taken(STOP);
    let started = copying().seeing(FIRST, Power::Running).logged(ActionEffect::Start, "19:04:30");
    let copied = started.listing("19:00:51").at("19:05").then();
    let copied = copied.at("19:05:10");
    assert_eq!(ending(&copied.writes(STOP)), Some(&Ending::Superseded));
    assert_eq!(ending(&copied.records()), Some(&Ending::Superseded));
}

/// Clouds date actions by whole seconds and their own clocks.
#[test]
fn a_person_who_switches_it_on_just_before_its_snapshot_is_refused_has_overtaken_the_stop() {
    let refused = || {
        let copying = hibernated().powered_off().at("19:00:50").taken(STOP);
        let on = copying.seeing(FIRST, Power::Running).at("19:03");
        on.request(|request| request.ask = failed("19:02"))
    };
    let started = refused().logged(ActionEffect::Start, "19:00:47");
    assert_eq!(ending(&started.writes(STOP)), Some(&Ending::Superseded));
    // Our own switch-off came after that start.
    let before = refused().logged(ActionEffect::Start, "19:00:46");
    let off = before.logged(ActionEffect::PowerOff, "19:00:47");
    assert_eq!(off.sends(STOP).step(), SHUTDOWN);
}

/// The person's start was seen before the override was set.
#[test]
fn an_override_to_stopped_prevails_over_a_start_before_it_though_a_snapshot_is_under_way() {
    let copying = hibernated().powered_off().at("19:00:50").taken(STOP);
    let started = copying.seeing(FIRST, Power::Running).logged(ActionEffect::Start, "19:02");
    let wanted = started.overridden(STOPPED, "19:03", "tue 12:00");
    let mut case = wanted.clone().at("19:03:10");
    case.record = case.writes(STOP).record;
    let copied = case.at("19:05").listing("19:00:51").then();
    let off = copied.clone().at("19:05:10").sends(STOP);
    assert_eq!((off.step(), &off.resource.id), (SHUTDOWN, &FIRST.parse().unwrap()));
    assert!(copied_before(&off).looked_at < Some(at("19:02")));
    // A later start counts.
    let mut again = copied.logged(ActionEffect::Start, "19:04");
    again.now = at("19:05:10");
    assert_eq!(ending(&again.writes(STOP)), Some(&Ending::Superseded));
}

fn copied_before(send: &Send) -> &KeptSnapshot {
    &send.record.hibernation.as_ref().unwrap().snapshots[0]
}

#[test]
fn a_snapshot_that_fails_is_made_anew_under_another_mark_and_three_need_a_person() {
    let mut case = hibernated().powered_off().at("19:00:50");
    let mut marks = BTreeSet::new();
    for minute in 1..=3 {
        case = case.taken(STOP);
        marks.insert(case.kept().snapshots[0].mark.clone());
        // It was never listed, and nothing can come of it any more.
        let quiet = case.record.request.as_ref().unwrap().quiet_at(ResourceKind::Server);
        assert!(quiet < at("tue 02:00"));
        case.now = at(&format!("19:{:02}", minute * 10));
        case.record.request.as_mut().unwrap().ask = Ask::Open;
        case = case.then();
        assert_eq!(case.kept().failed, minute);
        assert!(case.kept().snapshots.is_empty());
        let Ask::Failed { retry_at } = *case.ask() else {
            panic!("it has failed");
        };
        case.now = retry_at;
    }
    assert_eq!(marks.len(), 3);
    case.leaves(STOP);
    assert!(matches!(case.records().record.phase, Phase::Stuck { .. }));
}

#[test]
fn a_machine_is_asked_for_again_only_when_none_can_come_any_more() {
    let waking = hibernated().waking();
    let first = waking.made_now();
    waking.clone().at("tue 08:15:04").goes_on();
    waking.clone().at("tue 08:15:04").leaves(START);
    let lost = waking.at("tue 08:15:05").then();
    let Ask::Failed { retry_at } = *lost.ask() else {
        panic!("it had no effect");
    };
    let mut again = lost;
    again.now = retry_at;
    let again = again.taken(START);
    assert_ne!(again.made_now(), first);
    assert_eq!(again.kept().wakes.len(), 2);
    // The first machine appears after all: two would be one too many.
    let two = again.clone().beside(SECOND, first.clone(), Some(SNAPSHOT));
    let two = two.beside("server/3", again.made_now(), Some(SNAPSHOT));
    assert!(two.resource.busy.is_some());
    two.leaves(START);
}

#[test]
fn a_stop_adopts_the_new_machine_before_it_decides_anything() {
    let waking = hibernated().waking();
    let mark = waking.made_now();
    let stopped = waking.overridden(STOPPED, "tue 08:00:30", "tue 12:00");
    stopped.clone().at("tue 08:01").leaves(STOP);
    let made = stopped.at("tue 08:02").beside(SECOND, mark, Some(SNAPSHOT));
    let write = made.writes(STOP);
    assert_eq!(write.record.present(), Some(&SECOND.parse().unwrap()));
    assert!(write.record.in_flight().is_some());
}

#[test]
fn a_machine_of_others_is_never_taken_for_ours() {
    let asleep = || hibernated().asleep().at("tue 08:00");
    for (marked, from) in [(None, Some(SNAPSHOT)), (Some(mark("of-a-copy")), Some(SNAPSHOT))] {
        let case = asleep().beside(SECOND, marked, from);
        case.postpones(START, "did not make it");
    }
    // Our mark on a machine that was not made from our snapshot was set by a person.
    let waking = hibernated().waking();
    let mark = waking.made_now();
    let case = waking.at("tue 08:01").beside(SECOND, mark, Some(SNAPSHOT + 1));
    assert!(case.resource.busy.is_some());
    case.leaves(START);
}

#[test]
fn a_missing_snapshot_is_never_gone_and_nothing_is_sent() {
    let mut case = hibernated().asleep().at("tue 08:00");
    case.sight().snapshots.clear();
    let case = case.away();
    case.postpones(START, "snapshot that it is recreated from is missing");
}

#[test]
fn a_removal_needs_a_newer_one_that_is_proven_and_seen_and_enough_that_are_left() {
    let old = |text: &str, days: i64, proven: bool| {
        let asked_at = at("19:00") - SignedDuration::from_hours(24 * days);
        KeptSnapshot {
            centi_gb: Some(450),
            proven_at: proven.then(|| at("08:30")),
            ..KeptSnapshot::of(SECOND.parse().unwrap(), mark(text), asked_at)
        }
    };
    let seeing = |kept: [KeptSnapshot; 3], seen: &[&str]| {
        let mut case = hibernated().powered_off().at("19:00:50");
        case = case.keeping(|of| of.snapshots = kept.to_vec());
        for (text, id) in [("a", 1), ("b", 2), ("c", 3)] {
            if seen.contains(&text) {
                let mut listed = complete(&mark(text), SECOND, "19:00");
                (listed.id, listed.protected) = (id, Some(false));
                case = case.listed(listed);
            }
        }
        case
    };
    let is_removed = |case: Case| matches!(case.asks(STOP), Step::RemoveSnapshot(3));
    let removes = |kept: [KeptSnapshot; 3], seen: &[&str]| is_removed(seeing(kept, seen));
    let all = ["a", "b", "c"];
    let kept = || [old("a", 1, false), old("b", 2, true), old("c", 4, true)];
    assert!(removes(kept(), &all));
    assert!(!removes(kept(), &["b", "c"]), "two are kept");
    assert!(!removes(kept(), &["a", "c"]), "the proven one is not seen");
    let [a, mut b, c] = kept();
    b.proven_at = None;
    assert!(!removes([a, b, c], &all), "only the oldest is known to boot");
    let [a, b, mut c] = kept();
    c.asked_at = at("19:00") - SignedDuration::from_hours(71);
    assert!(!removes([a, b, c], &all), "it is not old");
    let wakes = seeing(kept(), &all).keeping(|of| of.wake_from = Some(mark("c")));
    assert!(!is_removed(wakes), "the machine is recreated from it");
    let mut making = seeing(kept(), &all);
    making.sight().snapshots[0].state = SnapshotState::Creating;
    assert!(!is_removed(making), "the newest is not complete");
}

/// What a person deletes is not counted for ever, and what one list leaves out is not forgotten.
#[test]
fn a_snapshot_that_is_gone_leaves_the_record_after_two_looks_that_miss_it() {
    let old = |text: &str| KeptSnapshot {
        id: Some(5),
        centi_gb: Some(450),
        ..KeptSnapshot::of(SECOND.parse().unwrap(), mark(text), at("00:00"))
    };
    let keeping = |change: fn(&mut KeptSnapshot)| {
        let mut one = old("a");
        change(&mut one);
        let copying = hibernated().powered_off().at("19:00:50").taken(STOP);
        copying.keeping(|kept| kept.snapshots.push(one))
    };
    let is_kept = |case: &Case| case.kept().snapshot(&mark("a")).is_some();
    let missed = keeping(|_| ()).at("19:02").then();
    let seen = |case: &Case| case.kept().seen_snapshots().count();
    assert!(is_kept(&missed) && seen(&missed) == 0);
    missed.clone().at("19:11:59").goes_on();
    assert!(!is_kept(&missed.clone().at("19:12").then()));
    // It is seen again in between.
    let listed = complete(&mark("a"), SECOND, "00:00");
    let again = missed.clone().at("19:05").listed(listed).then();
    assert_eq!(seen(&again), 1);
    // Without sight, an absence says nothing.
    let mut blind = missed.at("19:12");
    blind.sight().machine = None;
    blind.away().goes_on();
    // It may never have been listed, or the machine is to be recreated from it.
    for kept in [
        keeping(|one| one.centi_gb = None),
        keeping(|_| ()).keeping(|kept| kept.wake_from = Some(mark("a"))),
    ] {
        let missed = kept.at("19:02").then().at("19:20");
        missed.goes_on();
        assert!(is_kept(&missed));
    }
    // We removed it.
    let removed = keeping(|one| one.remove_asked_at = Some(at("18:00")));
    assert!(!is_kept(&removed.at("19:02").then()));
}

#[test]
fn only_snapshots_that_are_seen_count_as_many() {
    let kept = |seen: usize| {
        let mut case = hibernated().powered_off().at("19:00:50");
        for text in ["a", "b", "c", "d"] {
            let one = KeptSnapshot::of(SECOND.parse().unwrap(), mark(text), at("00:00"));
            case = case.keeping(|kept| kept.snapshots.push(one));
        }
        for text in &["a", "b", "c", "d"][..seen] {
            case = case.listed(complete(&mark(text), SECOND, "00:00"));
        }
        case
    };
    assert!(matches!(kept(3).asks(STOP), Step::Snapshot(_)));
    kept(4).leaves(STOP);
    assert!(matches!(kept(4).records().record.phase, Phase::Stuck { .. }));
    // The record was restored from before this one was taken; people's own do not count.
    let unrecorded = complete(&mark("e"), SECOND, "00:00");
    let of_people = SeenSnapshot { id: 9, mark: None, ..unrecorded.clone() };
    assert!(matches!(kept(3).listed(of_people).asks(STOP), Step::Snapshot(_)));
    kept(3).listed(unrecorded).leaves(STOP);
}

/// Two stops a day make four snapshots in two days.
#[test]
fn a_young_snapshot_is_removed_to_make_room_for_another_one_and_for_nothing_else() {
    let case = |proven: &str, states: [SnapshotState; 4]| {
        let mut case = hibernated().powered_off().at("19:00:50");
        for ((text, id), state) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)].into_iter().zip(states)
        {
            let one = KeptSnapshot {
                centi_gb: (state == SnapshotState::Available).then_some(450),
                proven_at: (text == proven).then(|| at("08:30")),
                ..KeptSnapshot::of(SECOND.parse().unwrap(), mark(text), at("00:00"))
            };
            let listed =
                SeenSnapshot { id, state, protected: None, ..complete(&one.mark, SECOND, "00:00") };
            let keeping = case.keeping(|kept| kept.snapshots.push(one));
            case = keeping.listed(listed);
        }
        case
    };
    let (whole, making) = (SnapshotState::Available, SnapshotState::Creating);
    let removes = |case: &Case| matches!(case.plan(STOP), Plan::Send(send) if send.step() == Step::RemoveSnapshot(4));
    assert!(removes(&case("b", [whole; 4])));
    assert!(removes(&case("c", [making, whole, whole, whole])));
    // Nothing newer is known to boot, or fewer than two newer ones are complete.
    assert!(!removes(&case("d", [whole; 4])));
    assert!(!removes(&case("c", [making, making, whole, whole])));
    assert!(!removes(&case("a", [making, whole, whole, whole])));
    // The machine is to be deleted now, and needs no other one.
    let copied = case("b", [whole; 4]).keeping(|kept| {
        kept.snapshots[0].from = FIRST.parse().unwrap();
        kept.snapshots[0].asked_at = at("19:00:30");
    });
    let copied = {
        let mut case = copied;
        case.sight().snapshots[0].from = Some(FIRST.parse().unwrap());
        case.sight().snapshots[0].created_at = Some(at("19:00:31"));
        case
    };
    assert_eq!(copied.asks(STOP), Step::Delete);
}

#[test]
fn what_its_cloud_calls_a_snapshot_that_was_complete_is_no_reason_to_remove_it() {
    for state in [SnapshotState::Failed, SnapshotState::Unknown] {
        let copied = || hibernated().copied().at("19:05:10");
        let shown = |case: Case| case.snapshot(|seen| seen.state = state);
        assert!(matches!(shown(copied()).asks(STOP), Step::Snapshot(_)));
        // What never was complete failed, unless the machine is to be recreated from it.
        let never = |case: Case| shown(case).keeping(|kept| kept.snapshots[0].centi_gb = None);
        let removes = |case: &Case| matches!(case.asks(STOP), Step::Protect { on: false, .. });
        assert_eq!(removes(&never(copied())), state == SnapshotState::Failed);
        let wakes = never(copied()).keeping(|kept| {
            kept.wake_from = Some(kept.snapshots[0].mark.clone());
        });
        assert!(!removes(&wakes));
        // A start tries.
        let asleep = shown(hibernated().asleep().at("tue 08:00"));
        assert!(matches!(asleep.asks(START), Step::Create { .. }));
    }
    let copying = hibernated().powered_off().at("19:00:50").taken(STOP);
    let copying = copying.at("19:05").listing("19:00:51");
    let copying = copying.snapshot(|seen| seen.state = SnapshotState::Unknown);
    copying.goes_on();
    copying.leaves(STOP);
}

#[test]
fn what_is_lost_while_a_request_is_open_needs_a_person_once_it_can_have_no_effect_any_more() {
    let lost = |mut case: Case| {
        case.sight().snapshots.clear();
        case.away()
    };
    let deleting = lost(hibernated().deleting());
    deleting.clone().at("19:10").goes_on();
    let stuck = deleting.at("20:00").then().at("20:01").then();
    let phase = &stuck.record.phase;
    assert!(matches!(phase, Phase::Stuck { .. }), "{phase:?}");

    let waking = lost(hibernated().waking());
    let late = waking.at("tue 09:00").then().at("tue 09:20").then();
    let request = late.record.request.as_ref().unwrap();
    assert!(request.problem.is_some(), "{request:?}");
}

/// What only one of the clouds does, because their sights differ.
impl Case {
    /// A log entry about a snapshot.
    fn snapshot_logged(self, begun: &str, state: ActionState, ended: Option<&str>) -> Self {
        let mut case = self.logged(ActionEffect::Snapshot, begun);
        let action = case.log.last_mut().unwrap();
        action.state = state;
        action.ended_at = ended.map(at);
        case
    }

    /// The answer to the latest request never came.
    fn unanswered(self) -> Self {
        self.request(|request| {
            request.ask = Ask::Open;
            request.first_accepted_at = None;
        })
    }
}

#[test]
fn a_snapshot_that_is_not_listed_is_waited_for_as_long_as_the_log_says_that_it_comes() {
    let copying = || hibernated().powered_off().at("19:00:50").taken(STOP);
    let is_void =
        |case: &Case| matches!(case.records().record.request.unwrap().ask, Ask::Failed { .. });
    // It is still being made, for as long as that may take.
    let slow = copying().snapshot_logged("19:00:52", ActionState::Running, None);
    slow.clone().at("tue 00:50:54").goes_on();
    assert!(is_void(&slow.at("tue 00:50:55")));
    let done = || copying().snapshot_logged("19:00:52", ActionState::Done, Some("19:30"));
    done().at("20:14:59").goes_on();
    done().at("20:14:59").leaves(STOP);
    assert!(is_void(&done().at("20:15")));
    // It is not waited for once it is known to have failed.
    let failed = copying().snapshot_logged("19:00:52", ActionState::Failed, Some("19:05"));
    assert!(is_void(&failed.at("19:05:10")));
}

#[test]
fn a_snapshot_that_does_not_end_is_given_up_and_holds_up_no_start() {
    let copying = || hibernated().powered_off().at("19:00:50").taken(STOP);
    let shown = |state| {
        let making = copying().listing("19:00:51");
        making.snapshot(|seen| seen.state = state)
    };
    let logged = copying().snapshot_logged("19:00:52", ActionState::Running, None);
    for case in [shown(SnapshotState::Creating), shown(SnapshotState::Unknown), logged] {
        let mut case =
            case.machine(|machine| machine.resource.busy = Some(Busy::Other("locked".to_owned())));
        case.resource.busy = Some(Busy::Other("locked".to_owned()));
        case.clone().at("tue 00:50:54").goes_on();
        let late = case.at("tue 00:50:55");
        assert!(matches!(late.records().events[..], [Event::Stuck { .. }]));
        let mut given_up = late.then();
        assert!(given_up.kept().snapshots[0].given_up && given_up.kept().failed == 1);
        // A cloud that still makes it refuses, which is no reason not to ask.
        let sight = given_up.sight.clone().unwrap();
        let shown = crate::methods::hibernate::shown(&given_up.record, &sight);
        given_up.resource = shown.unwrap();
        let wanted = given_up.clone().overridden(RUNNING, "tue 00:51", "tue 06:00").at("tue 00:52");
        let on = wanted.sends(START);
        assert_eq!((on.step(), &on.resource.id), (ON, &FIRST.parse().unwrap()));
        assert_eq!(Reads::of(&on.record).sight, Sighted::Always);
        // Another one is asked for, but nothing is deleted while that goes on.
        let Ask::Failed { retry_at } = *given_up.ask() else {
            panic!("it came to nothing");
        };
        given_up.now = retry_at;
        assert!(matches!(given_up.asks(STOP), Step::Snapshot(_)));
    }
    // It counts if it is completed after all.
    let late = shown(SnapshotState::Creating).at("tue 00:50:55").then();
    let mut done = late.snapshot(|seen| seen.state = SnapshotState::Available);
    let Ask::Failed { retry_at } = *done.ask() else {
        panic!("it came to nothing");
    };
    done.now = retry_at;
    assert_eq!(done.asks(STOP), Step::Delete);
}

#[test]
fn what_never_ends_is_reported_once_and_waited_for() {
    let mut deleting = hibernated().deleting().at("19:20:15");
    deleting.resource.busy = Some(Busy::Deleting);
    let resource = deleting.resource.clone();
    let deleting = deleting.machine(|machine| machine.resource = resource);
    let waking = hibernated().waking();
    let mark = waking.made_now();
    let mut making = waking.at("tue 08:15:05").beside(SECOND, mark, Some(SNAPSHOT));
    making.sight().others[0].resource.busy = Some(Busy::Creating);
    for (case, direction) in [(deleting, STOP), (making.away_again(), START)] {
        let write = case.records();
        assert!(matches!(write.events[..], [Event::Stuck { .. }]));
        let reported = case.then();
        assert!(matches!(reported.ask(), Ask::Accepted { .. }));
        reported.leaves(direction);
        reported.goes_on();
    }
}

#[test]
fn deletions_that_are_lost_again_and_again_are_reported_once() {
    let mut case = hibernated().copied().at("19:05:10");
    let mut reported = Vec::new();
    for _ in 0..4 {
        case = case.taken(STOP).unanswered();
        case.now += SignedDuration::from_mins(18);
        reported.push(case.records().events.len());
        case = case.then();
        let Ask::Failed { retry_at } = *case.ask() else {
            panic!("it had no effect");
        };
        case.now = retry_at;
    }
    assert_eq!(reported, [0, 1, 0, 0]);
}

#[test]
fn a_creation_that_is_not_answered_is_not_reported_as_no_room() {
    let says = |case: Case| match &case.at("tue 08:18").records().events[..] {
        [Event::Stuck { reason, .. }] => reason.clone(),
        events => panic!("{events:?}"),
    };
    assert!(says(hibernated().waking()).contains("out of capacity"));
    assert!(!says(hibernated().waking().unanswered()).contains("out of capacity"));
}

#[test]
fn a_snapshot_that_is_being_made_is_waited_for() {
    let copying = hibernated().powered_off().at("19:00:50").taken(STOP);
    let making = copying.at("19:03").listing("19:00:51");
    let making = making.snapshot(|seen| seen.state = SnapshotState::Creating);
    making.goes_on();
    making.leaves(STOP);
}

/// The permit says only that the request has left by then.
#[test]
fn what_was_never_answered_may_have_its_effect_long_after_its_permit() {
    let deleting = hibernated().deleting().unanswered().at("19:07:15");
    deleting.goes_on();
    deleting.leaves(STOP);
    let waking = hibernated().waking().unanswered().at("tue 08:02:05");
    waking.goes_on();
    waking.leaves(START);
}

#[test]
fn a_snapshot_whose_answer_was_lost_is_asked_for_again_only_if_the_log_has_none() {
    let lost = || hibernated().powered_off().at("19:00:50").taken(STOP).unanswered();
    let at_the_end = |case: Case| case.at("19:02:55");
    at_the_end(lost().snapshot_logged("19:00:52", ActionState::Running, None)).goes_on();
    let done = lost().snapshot_logged("19:00:52", ActionState::Done, Some("19:01"));
    at_the_end(done).goes_on();
    // An older entry is another snapshot's, and a log that does not reach back says nothing.
    let older = lost().snapshot_logged("19:00:44", ActionState::Done, Some("19:00:48"));
    let again = at_the_end(older).then();
    assert!(matches!(again.ask(), Ask::Failed { .. }));
    let mut unread = at_the_end(lost());
    unread.log_from = Some(at("19:01"));
    unread.goes_on();
    unread.log_from = None;
    unread.goes_on();
}

#[test]
fn where_the_log_alone_dates_a_snapshot_nothing_is_deleted_without_it() {
    let copied = || {
        let case = hibernated().copied().at("19:05:10");
        case.snapshot(|seen| seen.created_at = None)
    };
    assert!(matches!(copied().asks(STOP), Step::Snapshot(_)));
    let dated = || copied().snapshot_logged("19:00:52", ActionState::Done, Some("19:05"));
    assert_eq!(dated().asks(STOP), Step::Delete);
    // The machine was used after the snapshot was begun, or before.
    let used = dated().logged(ActionEffect::PowerOff, "19:01:30");
    assert!(!matches!(used.plan(STOP), Plan::Send(send) if deletes(&send)));
    let before = dated().logged(ActionEffect::PowerOff, "19:00:20");
    assert_eq!(before.asks(STOP), Step::Delete);
}

#[test]
fn a_snapshot_that_is_elsewhere_does_not_let_the_machine_be_deleted() {
    let copied = || hibernated().copied().at("19:05:10");
    let is_in = |regions: &[&str]| {
        let regions = regions.iter().map(ToString::to_string).collect();
        copied().snapshot(|seen| seen.regions = Some(regions))
    };
    assert_eq!(is_in(&["nyc3", "fra1"]).asks(STOP), Step::Delete);
    assert!(matches!(is_in(&["nyc3"]).asks(STOP), Step::Snapshot(_)));
}

#[test]
fn a_machine_is_not_deleted_on_a_look_that_did_not_read_what_it_has() {
    let case = hibernated().copied().at("19:05:10");
    case.machine(|machine| machine.manifest = None).leaves(STOP);
}

#[test]
fn a_machine_that_is_still_made_is_not_adopted_for_it_may_find_no_place() {
    let waking = hibernated().waking();
    let mark = waking.made_now();
    let mut making = waking.clone().at("tue 08:01").beside(SECOND, mark, Some(SNAPSHOT));
    making.sight().others[0].resource.busy = Some(Busy::Creating);
    let making = making.away_again();
    making.goes_on();
    making.leaves(START);
    making.clone().overridden(STOPPED, "tue 08:00:30", "tue 12:00").leaves(STOP);
    // The new machine is gone: that proves nothing yet, and never that the resource is gone.
    let mut vanished = making.at("tue 08:02");
    vanished.sight().others.clear();
    let vanished = vanished.away();
    vanished.goes_on();
    vanished.leaves(START);
    // Its cloud says that it has failed.
    let mut failed = vanished;
    failed.sight().create_failed = true;
    let again = failed.then();
    assert!(matches!(again.ask(), Ask::Failed { .. }));
    assert!(again.record.in_flight().is_some());
}

#[test]
fn a_start_that_finds_no_room_for_ten_minutes_is_reported_once() {
    let failing = |now: &str| {
        let mut case = hibernated().waking().at(now);
        case.sight().create_failed = true;
        case
    };
    assert_eq!(failing("tue 08:09:59").records().events, []);
    let reported = failing("tue 08:10");
    assert!(matches!(reported.records().events[..], [Event::Stuck { .. }]));
    let mut again = reported.then();
    let Ask::Failed { retry_at } = *again.ask() else {
        panic!("it had no effect");
    };
    again.now = retry_at;
    let again = again.taken(START).record(|record| {
        let request = record.request.as_mut().unwrap();
        request.problem = Some("no room".into());
    });
    assert_eq!(again.records().events, []);
}

/// Recreated on Tuesday, and seen.
fn just_made(power: Power) -> Case {
    let case = hibernated().waking();
    let mark = case.made_now();
    let mut case = case.at("tue 08:01").beside(SECOND, mark, Some(SNAPSHOT)).then();
    case.sight().others.clear();
    case.seeing(SECOND, power)
}

/// Recreated on Tuesday, running, and without what it had in its network.
fn half_attached() -> Case {
    just_made(Power::Running).machine(|machine| {
        machine.manifest.as_mut().unwrap().networks.clear();
    })
}

#[test]
fn a_machine_that_runs_before_all_is_back_has_not_started_yet() {
    let case = half_attached().at("tue 08:02");
    case.goes_on();
    assert!(matches!(case.asks(START), Step::Attach(_)));
    let whole = case.machine(|machine| machine.manifest = Some(manifest())).then();
    assert!(is_settled(&whole.record, Power::Running));
    assert!(!whole.kept().incomplete);
}

#[test]
fn a_machine_that_was_moved_before_it_was_complete_is_owed_its_own_plan_still() {
    let larger =
        MachineSize { plan: "ccx33".to_owned(), memory_mib: 2 * size().memory_mib, ..size() };
    for (own, is_owed) in [(larger, true), (size(), false)] {
        let own = SavedState::Machine(own);
        let moved = half_attached().at("tue 08:02").saved(own.clone()).used();
        let moved = moved.machine(|machine| machine.manifest = Some(manifest())).then();
        assert!(is_settled(&moved.record, Power::Running));
        let saved = moved.record.saved.clone();
        assert_eq!((saved, moved.record.may_have_shrunk), (is_owed.then_some(own), is_owed));
        assert!(!moved.kept().incomplete);
    }
}

#[test]
fn what_was_not_given_back_is_owed_at_the_next_start_too() {
    let bare = || Manifest { networks: Vec::new(), ..manifest() };
    // A machine that was switched off meanwhile is switched on only with all that it had.
    let off = half_attached().record(|record| {
        record.phase = Phase::Settled { at: Power::Stopped };
        record.drop_request();
    });
    assert_eq!(Reads::of(&off.record).sight, Sighted::Always);
    let off = off.seeing(SECOND, Power::Stopped);
    let off = off.machine(|machine| machine.manifest = Some(bare()));
    let wanted = off.at("tue 08:02").overridden(RUNNING, "tue 08:01", "tue 12:00");
    assert!(matches!(wanted.asks(START), Step::Attach(_)));
    // Deleted before it was complete again, it is owed what it had; otherwise a person took it
    // away.
    for (incomplete, networks) in [(true, manifest().networks), (false, Vec::new())] {
        let case = hibernated().copied().at("19:05:10").keeping(|kept| {
            kept.incomplete = incomplete;
            kept.manifest = Some(manifest());
        });
        let case = case.machine(|machine| machine.manifest = Some(bare()));
        let kept = case.sends(STOP).record.hibernation.unwrap();
        assert_eq!(kept.manifest.unwrap().networks, networks, "{incomplete}");
    }
}

/// Recreated on Tuesday and off, without its network and its volume.
fn bare() -> Case {
    let had = Manifest { volumes: BTreeSet::from(["8".to_owned()]), ..manifest() };
    let case = just_made(Power::Stopped).keeping(|kept| kept.manifest = Some(had));
    case.at("tue 08:02").machine(|machine| {
        machine.manifest.as_mut().unwrap().networks.clear();
    })
}

/// Another answer to the next request than that it is accepted.
#[track_caller]
fn answered(case: &Case, kind: FailureKind) -> Case {
    let sent = case.sends(START);
    let mut record = sent.record;
    record.permit = None;
    assert_eq!(apply(&mut record, &Err(failure(kind, &refusal())), case.now), None);
    Case { record, ..case.clone() }
}

#[test]
fn what_is_not_there_any_more_does_not_keep_a_machine_off_and_is_told_once() {
    let bare = bare();
    assert!(matches!(bare.asks(START), Step::Attach(Attachment::Network(_))));
    let gone = || FailureKind::NotFound;
    // Whatever may be over in a moment is asked for again.
    for passing in [FailureKind::Busy, FailureKind::NotAccepted] {
        assert_eq!(answered(&bare, passing).kept().refused, []);
    }
    // What is still in use after two minutes is another's by now.
    let mut taken = bare.clone();
    for later in ["tue 08:03", "tue 08:04", "tue 08:05", "tue 08:06", "tue 08:10"] {
        taken = answered(&taken, FailureKind::Busy).at(later);
        assert_eq!(taken.kept().refused, []);
    }
    let passed_over = answered(&taken, FailureKind::Busy);
    assert_eq!(passed_over.kept().refused.len(), 1);
    assert!(matches!(passed_over.asks(START), Step::Attach(Attachment::Volume(_))));
    assert_eq!(answered(&passed_over, FailureKind::Busy).kept().refused.len(), 1);
    let next = answered(&bare, gone());
    assert_eq!(*next.ask(), Ask::Failed { retry_at: next.now });
    assert!(matches!(next.asks(START), Step::Attach(Attachment::Volume(_))));
    let next = answered(&next, FailureKind::Refused(refusal()));
    let on = next.sends(START);
    assert_eq!((on.step(), &on.resource.id), (ON, &SECOND.parse().unwrap()));
    let up = next.taken(START).seeing(SECOND, Power::Running);
    let up = up.machine(|machine| machine.manifest.as_mut().unwrap().networks.clear());
    let settled = up.at("tue 08:03").records();
    assert!(is_settled(&settled.record, Power::Running));
    let problem = settled.record.hibernation_problem().unwrap();
    assert!(problem.contains("without network/3, volume/8,"), "{problem}");
    assert_eq!(settled.history.unwrap().reason.as_deref(), Some(problem));
    let reported = Event::Conflict { reason: problem.to_owned() };
    assert_eq!(settled.events[1..], [reported]);
    // An inventory that only lists the machine says the same.
    let kept = settled.record.hibernation.as_deref().unwrap();
    assert_eq!(hibernate::problem_of(kept, None).as_deref(), Some(problem));
    assert!(kept.incomplete);
}

#[test]
fn another_start_and_another_night_try_again_what_was_not_given_back() {
    let refused = |kept: &mut Hibernation| {
        kept.refused = vec![Attachment::Network(manifest().networks.remove(0))];
        kept.incomplete = true;
    };
    let lacking = half_attached().keeping(refused).at("tue 08:02").then();
    assert!(is_settled(&lacking.record, Power::Running));
    let wanted = lacking.overridden(RUNNING, "tue 08:01", "tue 12:00");
    let wanted = wanted.at("tue 08:05");
    assert!(matches!(wanted.asks(START), Step::Attach(_)));
    assert_eq!(wanted.sends(START).record.hibernation.unwrap().refused, []);
    let case = hibernated().copied().at("19:05:10").keeping(refused);
    let deleting = case.keeping(|kept| kept.manifest = Some(manifest()));
    let kept = deleting.sends(STOP).record.hibernation.unwrap();
    assert_eq!(kept.refused, []);
    assert_eq!(kept.manifest.unwrap().networks, manifest().networks);
}

#[test]
fn what_a_person_gave_back_meanwhile_is_not_lacking() {
    let refused = |kept: &mut Hibernation| {
        kept.refused = vec![Attachment::Network(manifest().networks.remove(0))];
    };
    let whole = just_made(Power::Running).keeping(refused);
    let settled = whole.at("tue 08:02").records();
    assert_eq!(settled.events.len(), 1);
    assert_eq!(settled.record.hibernation_problem(), None);
    let kept = settled.record.hibernation.unwrap();
    assert!(!kept.incomplete && kept.refused.is_empty());
}

#[test]
fn what_is_attached_and_never_seen_is_given_up_after_some_requests() {
    let after = |attempts, case: Case| {
        let mut case = case.record(|record| record.attempts = attempts);
        case.now = at("tue 08:20");
        case.then()
    };
    let accepted = half_attached().at("tue 08:02").taken(START);
    assert_eq!(after(1, accepted.clone()).kept().refused, []);
    assert_eq!(after(2, accepted.clone()).kept().refused.len(), 1);
    // A cloud that fails at one thing again and again must not keep a machine off.
    let unanswered = accepted.unanswered();
    assert_eq!(after(4, unanswered.clone()).kept().refused, []);
    assert_eq!(after(5, unanswered).kept().refused.len(), 1);
}

#[test]
fn a_creation_that_was_refused_is_asked_for_without_what_is_gone() {
    let present = Manifest { ssh_key: "new".to_owned(), ..manifest() };
    let asleep = hibernated().asleep().at("tue 08:00");
    let has_none = |case: &Case| hibernate::refused_creation(&case.record).is_none();
    assert!(has_none(&asleep));
    assert!(has_none(&asleep.clone().taken(START)));
    let busy = answered(&asleep, FailureKind::Busy);
    assert!(has_none(&busy));
    let mut again = answered(&asleep, FailureKind::Refused(refusal()));
    assert_eq!(hibernate::refused_creation(&again.record), again.kept().manifest.as_ref());
    again.creates = Some(present.clone());
    let Step::Create { manifest: made, .. } = again.at("tue 08:10").asks(START) else {
        panic!("a machine");
    };
    assert_eq!(*made, present);
}

#[test]
fn a_machine_that_goes_off_after_each_start_proves_nothing() {
    let case = hibernated().waking();
    let mark = case.made_now();
    let case = case.at("tue 08:01").beside(SECOND, mark, Some(SNAPSHOT));
    let mut case = case.then();
    case.sight().others.clear();
    let up = case.seeing(SECOND, Power::Running).at("tue 08:03").then();
    assert!(is_settled(&up.record, Power::Running));
    let first = up.kept().running_since;
    assert!(first.is_some());
    let off = up.record(|record| record.phase = Phase::Settled { at: Power::Stopped });
    let off = off.seeing(SECOND, Power::Stopped).at("tue 09:00");
    let wanted = off.overridden(RUNNING, "tue 08:59", "tue 12:00");
    let on = wanted.taken(START).seeing(SECOND, Power::Running);
    let again = on.at("tue 09:01").then();
    assert!(is_settled(&again.record, Power::Running));
    assert_eq!(again.kept().snapshots[0].proven_at, None);
    assert!(again.kept().running_since > first);
}

#[test]
fn what_is_seen_to_be_off_counts_anew_before_it_proves_its_snapshot() {
    let mut case = droplet();
    let mut kept = Hibernation::of(case.resource.id.clone());
    kept.running_since = Some(at("08:00"));
    case.record.hibernation = Some(Box::new(kept));
    for (power, since) in [
        (Power::Running, Some(at("08:00"))),
        (Power::Between, Some(at("08:00"))),
        (Power::Stopped, None),
    ] {
        case.resource.power = power;
        let mut record = case.record.clone();
        case.with(|seen, _| methods::take_stock(&mut record, seen));
        assert_eq!(record.hibernation.unwrap().running_since, since, "{power:?}");
    }
}

/// Returns the case after a request of its that the cloud refused for being busy.
fn refused_as_busy(case: Case, send: Send) -> Case {
    let mut record = send.record;
    record.permit = None;
    apply(&mut record, &Err(failure(FailureKind::Busy, &refusal())), at("19:05:12"));
    case.record(|old| *old = record)
}

#[test]
fn a_newer_stop_deletes_nothing_that_could_not_come_back() {
    let case = hibernated().copied().at("19:05:10");
    let send = case.sends(STOP);
    assert_eq!(send.step(), Step::Delete);
    let mut busy = refused_as_busy(case, send).at("19:07");
    busy.refusal = Some("its plan cannot be ordered");
    busy.ssh_key = None;
    let newer = busy.clone().overridden(STOPPED, "19:06", "22:00");
    for case in [busy, newer] {
        let record = case.writes(STOP).record;
        assert!(matches!(record.phase, Phase::Refused { .. }), "{:?}", record.phase);
        assert!(record.is_held_stopped());
    }
}

#[test]
fn what_was_not_given_back_is_still_tried_after_a_deletion_without_effect() {
    let lacking = |kept: &mut Hibernation| {
        kept.refused = vec![Attachment::Network(manifest().networks.remove(0))];
        kept.incomplete = true;
        kept.wakes = vec![mark("made")];
        kept.manifest = Some(manifest());
    };
    let case = hibernated().copied().at("19:05:10").keeping(lacking);
    let case = case.machine(|machine| machine.manifest.as_mut().unwrap().networks.clear());
    let send = case.sends(STOP);
    assert_eq!(send.step(), Step::Delete);
    let started = refused_as_busy(case, send).overridden(RUNNING, "19:06", "22:00").at("19:07");
    let step = started.asks(START);
    assert!(matches!(step, Step::Attach(Attachment::Network(_))), "{step:?}");
}

#[test]
fn a_machine_that_was_just_started_is_not_switched_off_by_a_stop_that_is_refused() {
    let mut case = hibernated().asked(START, "18:59", accepted("18:59:10"));
    case.sends(STOP);
    case.refusal = Some("its protection is on");
    case.ssh_key = None;
    assert!(matches!(case.plan(STOP), Plan::Postpone(_)));
    let record = case.records().record;
    assert!(is_settled(&record, Power::Running));
    let refused = case.record(|old| *old = record).writes(STOP).record;
    assert!(matches!(refused.phase, Phase::Refused { .. }), "{:?}", refused.phase);
}
