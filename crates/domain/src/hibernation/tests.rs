//! The obstacles to hibernating a machine, and what can be accepted.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::*;
use crate::{
    money::Currency,
    plan::{MachinePlan, Offer},
    resource::{MachineFacts, Size},
    tests::fixtures::seen_droplet,
};

fn offer() -> Offer {
    let money = |text| Money::parse(text, Currency::Usd).unwrap();
    Offer { orderable: true, deprecated: false, monthly: money("24"), hourly: money("0.03571") }
}

fn catalog(offer: Offer) -> Catalog {
    [plan(offer)].into_iter().collect()
}

fn plan(offer: Offer) -> MachinePlan {
    MachinePlan {
        slug: "s-2vcpu-4gb".to_owned(),
        vcpus: 2,
        memory_mib: 4096,
        disk_gib: 80,
        architecture: None,
        network_storage: false,
        gpu: false,
        offers: BTreeMap::from([("fra1".to_owned(), offer)]),
    }
}

/// A Droplet whose surroundings are no obstacle.
struct Case {
    resource: Resource,
    disk_gib: u64,
    around: Surroundings,
    catalog: Catalog,
    terms: HibernationTerms,
}

impl Case {
    fn fit() -> Self {
        Self {
            resource: seen_droplet(),
            disk_gib: 80,
            around: Surroundings {
                ssh_keys: vec![SshKey { name: "team".to_owned(), sent_as: "3b:16".to_owned() }],
                ..Surroundings::default()
            },
            catalog: catalog(offer()),
            terms: HibernationTerms {
                ssh_key: Some("team".to_owned()),
                ..HibernationTerms::default()
            },
        }
    }

    fn with(change: impl FnOnce(&mut Self)) -> Self {
        let mut case = Self::fit();
        change(&mut case);
        case
    }

    fn obstacles(mut self) -> Vec<Obstacle> {
        let size = MachineSize {
            plan: "s-2vcpu-4gb".to_owned(),
            vcpus: 2,
            memory_mib: 4096,
            disk_gib: self.disk_gib,
            ..MachineSize::default()
        };
        self.resource.size = Size::Machine(size.clone());
        self.resource.region = "fra1".to_owned();
        let machine = Machine {
            resource: &self.resource,
            size: &size,
            autoscaled: false,
            accepts_new_prices: false,
        };
        preflight(machine, &self.around, &self.catalog, &self.terms)
    }

    fn accepting(mut self, risk: Risk) -> Self {
        self.terms.accepted.insert(risk);
        self
    }
}

fn address(stays: bool, blocked: bool) -> Address {
    Address { ip: "192.0.2.1".to_owned(), stays, blocked }
}

#[test]
fn nothing_stands_in_the_way_of_a_plain_machine() {
    assert_eq!(Case::fit().obstacles(), []);
    let kept = Case::with(|case| case.around.addresses.push(address(true, false)));
    assert_eq!(kept.obstacles(), []);
}

#[test]
fn an_address_is_lost_unless_it_stays_or_another_is_accepted() {
    let case = || Case::with(|case| case.around.addresses.push(address(false, false)));
    let ip = "192.0.2.1".to_owned();
    assert_eq!(case().obstacles(), [Obstacle::AddressLost { ip: ip.clone() }]);
    assert_eq!(case().accepting(Risk::NewIp).obstacles(), []);
    let blocked = Case::with(|case| case.around.addresses.push(address(true, true)));
    let blocked = blocked.accepting(Risk::NewIp).obstacles();
    assert_eq!(blocked, [Obstacle::AddressBlocked { ip }]);
}

#[test]
fn a_private_address_matters_only_to_a_machine_that_needs_it() {
    let case = |needs, stays| {
        Case::with(|case| {
            let ip = "10.110.0.3".to_owned();
            case.around.private.push(PrivateAddress { ip, stays });
            case.terms.needs_private_ip = needs;
        })
    };
    assert_eq!(case(false, false).obstacles(), []);
    assert_eq!(case(true, true).obstacles(), []);
    let ip = "10.110.0.3".to_owned();
    assert_eq!(case(true, false).obstacles(), [Obstacle::PrivateAddressLost { ip }]);
}

#[test]
fn backups_and_an_own_image_are_given_up_only_on_request() {
    let backups = || Case::with(|case| case.around.backups = true);
    assert_eq!(backups().obstacles(), [Obstacle::Backups]);
    assert_eq!(backups().accepting(Risk::CustomImage).obstacles(), [Obstacle::Backups]);
    assert_eq!(backups().accepting(Risk::LostBackups).obstacles(), []);
    let image = || Case::with(|case| case.around.custom_image = true);
    assert_eq!(image().obstacles(), [Obstacle::CustomImage]);
    assert_eq!(image().accepting(Risk::CustomImage).obstacles(), []);
}

#[test]
fn a_disk_that_would_grow_is_left_alone() {
    let small = Case::with(|case| case.disk_gib = 79);
    let grows = Obstacle::DiskWouldGrow { disk_gib: 79, plan_gib: 80 };
    assert_eq!(small.obstacles(), [grows]);
}

#[test]
fn what_could_not_come_back_is_not_deleted() {
    let sold_out = Case::with(|case| {
        case.catalog = catalog(Offer { orderable: false, ..offer() });
    });
    let plan = "s-2vcpu-4gb".to_owned();
    let region = "fra1".to_owned();
    let expected = Obstacle::Plan(MoveRefusal::PresentNotOrderable { plan, region });
    assert_eq!(sold_out.obstacles(), [expected]);
    let unlisted = Case::with(|case| case.catalog = Catalog::default());
    assert_eq!(unlisted.obstacles(), [Obstacle::Plan(MoveRefusal::NoPlans)]);
}

#[test]
fn everything_that_stands_in_the_way_is_said_at_once() {
    let case = Case::with(|case| {
        case.resource.facts = MachineFacts {
            kubernetes_worker: true,
            gpu: true,
            scratch_disk: true,
            ..MachineFacts::default()
        };
        let plan = MachinePlan { gpu: true, ..plan(offer()) };
        case.catalog = [plan].into_iter().collect();
        case.around.named_by.push("database orders".to_owned());
        case.around.open_at_first = true;
        case.around.unreadable.push("its tags");
        case.around.account_problem = Some("locked".to_owned());
        case.terms.ssh_key = None;
    });
    let obstacles = case.obstacles();
    let expected = [
        Obstacle::Plan(MoveRefusal::KubernetesWorker),
        Obstacle::Plan(MoveRefusal::Gpu),
        Obstacle::Plan(MoveRefusal::ScratchDisk),
        Obstacle::Account("locked".to_owned()),
        Obstacle::Unreadable("its tags"),
        Obstacle::Named { by: "database orders".to_owned() },
        Obstacle::OpenAtFirst,
        Obstacle::NoKey,
    ];
    assert_eq!(obstacles, expected);
    for obstacle in obstacles {
        assert!(!obstacle.to_string().is_empty() && !obstacle.remedy().is_empty());
    }
}

#[test]
fn a_key_that_the_account_lacks_is_no_key() {
    let other = Case::with(|case| case.terms.ssh_key = Some("other".to_owned()));
    let key = "other".to_owned();
    assert_eq!(other.obstacles(), [Obstacle::UnknownKey { key }]);
}

#[test]
fn a_large_disk_takes_long_and_its_start_begins_at_most_an_hour_early() {
    let minutes = |disk_gib| {
        let size = MachineSize { disk_gib, ..MachineSize::default() };
        (first_snapshot(&size).as_mins(), first_lead(&size).as_mins())
    };
    assert_eq!(minutes(25), (50, 26));
    assert_eq!(minutes(80), (160, 40));
    assert_eq!(minutes(320), (640, 60));
}

/// Returns a Droplet that would be off for `minutes`, with a latest snapshot of `latest` hundredths
/// of a GB.
fn off_for(minutes: i64, latest: Option<u64>) -> Case {
    Case::with(|case| {
        let off = SignedDuration::from_mins(minutes);
        case.terms.off_period = Some(OffPeriod { off, latest });
    })
}

#[test]
fn a_snapshot_may_take_a_third_of_the_time_off_and_no_more() {
    // 80 GB take 160 min.
    assert_eq!(off_for(480, None).obstacles(), []);
    let slow = Obstacle::SlowSnapshot { gb: 80, minutes: 160, off_minutes: 479, measured: false };
    assert!(slow.remedy().contains("offhours rehearse"));
    assert_eq!(off_for(479, None).obstacles(), [slow]);
}

#[test]
fn what_the_latest_snapshot_took_counts_instead_of_the_whole_disk() {
    assert_eq!(off_for(479, Some(1000)).obstacles(), []);
    // Part of a GB counts as a whole one: 11 GB take 22 min.
    assert_eq!(off_for(66, Some(1001)).obstacles(), []);
    let slow = Obstacle::SlowSnapshot { gb: 11, minutes: 22, off_minutes: 65, measured: true };
    assert!(!slow.remedy().contains("offhours rehearse"));
    assert_eq!(off_for(65, Some(1001)).obstacles(), [slow]);
}

#[test]
fn a_machine_has_to_run_for_long_enough_to_prove_its_snapshots() {
    let runs = |minutes| {
        let case = Case::with(|case| {
            case.terms.longest_run = Some(SignedDuration::from_mins(minutes));
        });
        case.obstacles()
    };
    assert_eq!(runs(15), []);
    let short = Obstacle::ShortRun { minutes: 14 };
    assert!(!short.remedy().is_empty());
    assert_eq!(runs(14), [short]);
}

#[test]
fn how_long_a_snapshot_takes_is_known_of_droplets_alone() {
    let mut server = off_for(1, None);
    server.resource.id = crate::ResourceId::Server(crate::ServerId(1));
    server.resource.facts.created_at = "2026-11-23T12:00:00Z".parse().ok();
    assert_eq!(server.obstacles(), []);
}

#[test]
fn each_machine_that_is_hibernated_needs_its_place_again() {
    let with = |present, hibernated| {
        let case = Case::with(|case| {
            case.around.room = Some(MachineLimit { most: 10, present });
            case.terms.hibernated = hibernated;
        });
        case.obstacles()
    };
    assert_eq!(with(7, 3), []);
    for (present, hibernated) in [(7, 4), (11, 0)] {
        let full = Obstacle::NoRoom { most: 10, needed: 11 };
        assert_eq!(with(present, hibernated), [full]);
    }
}

/// Returns a manifest with everything attached.
fn full() -> Manifest {
    let texts = |text: &str| BTreeSet::from([text.to_owned()]);
    Manifest {
        networks: vec![NetworkAddress {
            network: "3".to_owned(),
            ip: "10.0.0.9".to_owned(),
            alias_ips: Vec::new(),
        }],
        volumes: texts("volume"),
        firewalls: texts("firewall"),
        load_balancers: vec![Balanced { id: "balancer".to_owned(), privately: false }],
        floating_ips: texts("192.0.2.1"),
        backups: true,
        backup_policy: Some(BackupPolicy {
            plan: "daily".to_owned(),
            weekday: None,
            hour: Some(4),
        }),
        project: Some("project".to_owned()),
        placement_group: Some("group".to_owned()),
        ..Manifest::default()
    }
}

#[test]
fn what_is_missing_is_given_back_firewalls_first_and_each_once() {
    let had = full();
    let mut has = Manifest::default();
    let mut given = Vec::new();
    while let Some(what) = had.missing_in(&has).into_iter().next() {
        match &what {
            Attachment::PlacementGroup(one) => has.placement_group = Some(one.clone()),
            Attachment::Network(one) => has.networks.push(one.clone()),
            Attachment::Volume(one) => assert!(has.volumes.insert(one.clone())),
            Attachment::Firewall(one) => assert!(has.firewalls.insert(one.clone())),
            Attachment::LoadBalancer(one) => has.load_balancers.push(one.clone()),
            Attachment::FloatingIp(one) => assert!(has.floating_ips.insert(one.clone())),
            Attachment::Project(one) => has.project = Some(one.clone()),
            Attachment::Backups(policy) => {
                assert_eq!(*policy, had.backup_policy);
                has.backups = true;
            }
            Attachment::Address(one) => has.addresses.push(one.clone()),
            Attachment::Vpc(one) => has.vpc = Some(one.clone()),
        }
        given.push(what);
    }
    assert_eq!(given, had.missing_in(&Manifest::default()));
    assert_eq!(given.len(), 8);
    assert!(matches!(given[0], Attachment::Firewall(_)));
}

#[test]
fn what_a_person_goes_without_is_owed_no_more_and_all_else_still_is() {
    let mut kept = Hibernation::of(seen_droplet().id);
    kept.manifest = Some(full());
    kept.refused = full().missing_in(&Manifest::default());
    let mut owed = kept.owed();
    for waived in kept.owed() {
        assert_eq!(waived.to_string().parse(), Ok(waived.clone()));
        kept.waive(&waived);
        owed.retain(|name| *name != waived);
        assert_eq!(kept.owed(), owed);
        let refused: Vec<_> = kept.refused.iter().map(Attachment::name).collect();
        assert_eq!(refused, owed);
    }
    assert_eq!(owed, []);
}

#[test]
fn what_an_older_one_has_besides_is_owed_and_nothing_twice() {
    let had = full();
    assert_eq!(Manifest::default().with_all_of(&had), had);
    assert_eq!(had.clone().with_all_of(&Manifest::default()), had);
    assert_eq!(had.clone().with_all_of(&had), had);
}

#[test]
fn a_machine_proves_its_snapshot_by_running_on_and_not_by_going_off_after_each_start() {
    let id = seen_droplet().id;
    let mark = Mark("a1".to_owned());
    let at = |minutes: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes);
    let mut kept = Hibernation::of(id.clone());
    kept.snapshots.push(KeptSnapshot {
        id: Some(7),
        centi_gb: Some(450),
        ..KeptSnapshot::of(id, mark.clone(), at(-600))
    });
    kept.wake_from = Some(mark.clone());
    kept.wakes.push(mark);
    let proven = |kept: &Hibernation| kept.snapshots[0].proven_at;
    for minutes in [0, 60, 120] {
        assert!(kept.record_running(at(minutes)));
        assert!(!kept.record_running(at(minutes + 5)));
        kept.record_off();
    }
    assert_eq!(proven(&kept), None);
    assert!(kept.record_running(at(180)));
    assert!(kept.record_running(at(190)));
    assert_eq!(proven(&kept), Some(at(190)));
}

#[test]
fn a_snapshot_that_is_missing_is_forgotten_only_if_it_was_whole_and_is_not_needed() {
    let id = seen_droplet().id;
    let at = |minutes: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes);
    let mark = |name: &str| Mark(name.to_owned());
    let whole = |name| KeptSnapshot {
        id: Some(7),
        centi_gb: Some(450),
        ..KeptSnapshot::of(id.clone(), mark(name), at(-600))
    };
    let mut kept = Hibernation::of(id.clone());
    let never_listed = KeptSnapshot::of(id.clone(), mark("never-listed"), at(-600));
    kept.snapshots = vec![whole("needed"), whole("older"), never_listed];
    kept.wake_from = Some(mark("needed"));
    let machine = ObservedMachine {
        resource: seen_droplet(),
        mark: None,
        made_from: None,
        manifest: None,
        around: None,
        unkept: Vec::new(),
        settling: false,
    };
    let alone = Sight { machine: Some(machine), ..Sight::default() };
    let mut left_after = |minutes| {
        kept.record_snapshots(&alone, at(minutes));
        let left = kept.snapshots.iter().map(|one| one.mark.0.clone());
        left.collect::<Vec<_>>()
    };
    assert_eq!(left_after(0), ["needed", "older", "never-listed"]);
    assert_eq!(left_after(9), ["needed", "older", "never-listed"]);
    assert_eq!(left_after(10), ["needed", "never-listed"]);
}
