//! Where a stop leads.

use domain::configuration::{DatabaseMethod, DropletMethod};

use super::*;
use crate::methods::{Basis, Destination, Grounds, NextStep, judge};

/// Judges the case's stop under its policy, where nothing is for sale.
fn judged(case: &Case) -> Destination<'static> {
    let policy = case.policy();
    case.with(|seen, context| {
        let view = View::new(&case.record, seen, policy, context);
        judge(view, &Grounds::default())
    })
}

#[test]
fn a_stop_leads_to_as_many_nodes_as_its_schedule_says_and_never_to_more() {
    for (says, nodes) in [(None, 2), (Some(1), 1), (Some(2), 2), (Some(3), 2)] {
        let case = database().following(|policy| {
            policy.stop_size = Some("db-s-1vcpu-1gb".to_owned());
            policy.stop_nodes = says;
        });
        let expected = Destination::Size(database_of("db-s-1vcpu-1gb", nodes));
        assert_eq!(judged(&case), expected, "{says:?}");
    }
}

#[test]
fn dropping_standbys_keeps_the_plan_unless_another_is_asked_for() {
    let case = database().following(|policy| policy.methods.database = DatabaseMethod::Standbys);
    assert_eq!(judged(&case), Destination::Size(database_of("db-s-2vcpu-4gb", 1)));
    let named = case.following(|policy| policy.stop_size = Some("db-s-1vcpu-2gb".to_owned()));
    assert_eq!(judged(&named), Destination::Size(database_of("db-s-1vcpu-2gb", 1)));
}

#[test]
fn on_its_small_plan_a_machine_stops_there_whatever_is_for_sale() {
    let size = |plan: &str| MachineSize { plan: plan.to_owned(), ..MachineSize::default() };
    let mut case = droplet().following(|policy| policy.methods.droplet = DropletMethod::Resize);
    case.resource.size = Size::Machine(size("s-1vcpu-1gb"));
    case.record.saved = Some(SavedState::Machine(size("g-2vcpu-8gb")));
    case.record.small_plans.insert("s-1vcpu-1gb".to_owned());
    let basis = |case: &Case| {
        case.with(|seen, context| {
            let view = View::new(&case.record, seen, case.policy(), context);
            NextStep::of(view, STOP).reads().basis
        })
    };
    let here = SavedState::Machine(size("s-1vcpu-1gb"));
    assert_eq!((basis(&case), judged(&case)), (Basis::Itself, Destination::Size(here)));
    // On a plan that a person chose meanwhile it is moved, by what is for sale.
    case.resource.size = Size::Machine(size("s-2vcpu-2gb"));
    assert_eq!(basis(&case), Basis::Plans);
    assert!(matches!(judged(&case), Destination::Refused(_)));
}

#[test]
fn an_engine_that_keeps_its_nodes_is_refused_by_name() {
    let mut case =
        database().following(|policy| policy.methods.database = DatabaseMethod::Standbys);
    if let Size::Database(size) = &mut case.resource.size {
        size.engine = "mongodb".to_owned();
    }
    let Destination::Refused(obstacles) = judged(&case) else {
        panic!("it is refused");
    };
    assert!(obstacles[0].reason.contains("mongodb"), "{obstacles:?}");
    // With one node there is nothing to drop.
    let alone = case.sized("db-s-2vcpu-4gb", 1);
    assert!(matches!(judged(&alone), Destination::Size(_)));
}
