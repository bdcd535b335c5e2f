//! The exact requests for each kind.

use super::*;

#[test]
fn a_droplet_is_cut_off_unless_its_schedule_is_graceful() {
    let case = droplet();
    let send = case.sends(STOP);
    assert_eq!(send.step(), CUT);
    let graceful = case.following(|policy| policy.graceful = true);
    let send = graceful.sends(STOP);
    assert_eq!(send.step(), SHUTDOWN);
}

#[test]
fn a_server_is_always_asked_to_shut_down() {
    let case = server();
    let send = case.sends(STOP);
    assert_eq!(send.step(), SHUTDOWN);
}

#[test]
fn a_machine_is_powered_on() {
    for case in [droplet(), server()] {
        let case = case.off().settled(Power::Stopped);
        let send = case.handled("sun 19:00", STOPPED).at("08:00").sends(START);
        assert_eq!(send.step(), ON);
    }
}

#[track_caller]
fn size_of(case: &Case, direction: Direction) -> SavedState {
    let step = case.sends(direction).step();
    step.target().cloned().unwrap_or_else(|| panic!("no size: {step}"))
}

#[test]
fn a_database_shrinks_to_its_target_and_nothing_is_said_of_its_storage() {
    assert_eq!(size_of(&database(), STOP), database_of("db-s-1vcpu-1gb", 1));
    let larger = database().stopping_at("db-s-1vcpu-2gb", 2);
    assert_eq!(size_of(&larger, STOP), database_of("db-s-1vcpu-2gb", 2));
}

fn restored(engine: &str, saved_mib: Option<u64>, seen_mib: Option<u64>) -> SavedState {
    let mut case = database().smallest().saved(SavedState::Database {
        plan: "db-s-2vcpu-4gb".to_owned(),
        nodes: 2,
        storage_mib: saved_mib,
    });
    if let Size::Database(size) = &mut case.resource.size {
        engine.clone_into(&mut size.engine);
        size.storage_mib = seen_mib;
    }
    let case = case.used().settled(Power::Stopped);
    size_of(&case.handled("sun 19:00", STOPPED).at("08:00"), START)
}

#[test]
fn storage_is_always_sent_with_a_plan_where_it_can_be_set_and_never_shrinks() {
    let plan = "db-s-2vcpu-4gb".to_owned();
    let of = |storage_mib| SavedState::Database { plan: plan.clone(), nodes: 2, storage_mib };
    let (bare, with_storage) = (of(None), of(Some(61_440)));
    assert_eq!(restored("pg", Some(61_440), Some(10_240)), with_storage);
    assert_eq!(restored("mysql", Some(61_440), Some(10_240)), with_storage);
    // If left out, it would become the plan's own.
    assert_eq!(restored("pg", Some(61_440), Some(61_440)), with_storage);
    assert_eq!(restored("pg", Some(61_440), None), with_storage);
    // A person has added some meanwhile.
    assert_eq!(restored("pg", Some(61_440), Some(81_920)), of(Some(81_920)));
    assert_eq!(restored("pg", None, Some(10_240)), bare);
    for engine in ["redis", "valkey", "mongodb"] {
        assert_eq!(restored(engine, Some(61_440), Some(10_240)), bare, "{engine}");
    }
}

#[test]
fn a_pool_is_scaled_to_zero_with_its_autoscaler_off_as_it_was_seen() {
    let mut case = pool();
    let bounds = AutoscaleBounds { min: 2, max: 6 };
    if let Size::NodePool(size) = &mut case.resource.size {
        size.autoscale = Some(bounds);
    }
    let send = case.sends(STOP);
    assert_eq!((send.step(), &send.resource), (Step::Resize(pool_of(0)), &case.resource));
}

fn morning(count: u32, autoscale: Option<AutoscaleBounds>) -> Case {
    let case = pool().saved(SavedState::NodePool { count, autoscale }).used();
    let case = case.settled(Power::Stopped).handled("sun 19:00", STOPPED);
    case.at("08:00")
}

#[test]
fn a_pool_gets_back_its_count_and_bounds() {
    let bounds = AutoscaleBounds { min: 2, max: 6 };
    let size = size_of(&morning(4, Some(bounds)).nodes(0, 0, 0), START);
    assert_eq!(size, SavedState::NodePool { count: 4, autoscale: Some(bounds) });
}

#[test]
fn a_start_never_shrinks_what_a_person_made_larger() {
    // Five nodes have been wanted for a minute, and two are running.
    let send = morning(3, None).nodes(5, 5, 2).sends(START);
    assert!(matches!(send.step(), Step::Resize(SavedState::NodePool { count: 5, .. })));
    let send = morning(3, None).nodes(2, 2, 2).sends(START);
    assert!(matches!(send.step(), Step::Resize(SavedState::NodePool { count: 3, .. })));
}

#[test]
fn the_bounds_that_come_back_leave_a_person_every_node_added_meanwhile() {
    let bounds = AutoscaleBounds { min: 1, max: 3 };
    let size = size_of(&morning(1, Some(bounds)).nodes(4, 4, 4), START);
    let wider = AutoscaleBounds { min: 1, max: 4 };
    assert_eq!(size, SavedState::NodePool { count: 4, autoscale: Some(wider) });
}

#[test]
fn what_a_person_gave_a_database_stays_while_the_plan_and_the_storage_are_restored() {
    let saved = SavedState::Database {
        plan: "db-s-4vcpu-8gb".to_owned(),
        nodes: 1,
        storage_mib: Some(143_360),
    };
    // A smaller plan, and a second node.
    let case = database().saved(saved.clone()).used();
    let case = case.settled(Power::Stopped).handled("sun 19:00", STOPPED);
    let send = case.at("08:00").sends(START);
    let plan = "db-s-4vcpu-8gb".to_owned();
    let restored = SavedState::Database { plan, nodes: 2, storage_mib: Some(143_360) };
    assert_eq!((send.step(), send.record.saved), (Step::Resize(restored), Some(saved)));
}
