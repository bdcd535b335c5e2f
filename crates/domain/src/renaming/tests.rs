use super::*;
use crate::{
    hibernation::Hibernation,
    record::{Direction, Phase},
    resource::{AutoscaleBounds, Power},
    schedule::Desired,
    tests::fixtures::{World, at, droplet, office_droplet, reference, world},
};

fn name(text: &str) -> AccountName {
    text.parse().unwrap()
}

/// A configuration in which `do-main` has been renamed to `present`.
fn renamed(present: &str) -> Configuration {
    let mut configuration = world().configuration;
    let mut account = configuration.accounts.remove(&name("do-main")).unwrap();
    account.set_was(name("do-main"));
    configuration.accounts.insert(name(present), account);
    configuration
}

#[test]
fn a_name_that_is_configured_is_never_a_former_one() {
    let mut configuration = renamed("do-new");
    let old = name("do-main");
    assert_eq!(*configuration.present_name(&old), name("do-new"));
    assert_eq!(*configuration.present_name(&name("other")), name("other"));
    let account = configuration.accounts[&name("do-new")].clone();
    configuration.accounts.insert(old.clone(), account);
    assert_eq!(*configuration.present_name(&old), old);
}

#[test]
fn a_rollback_carries_back_what_a_rename_carried_over() {
    let mut earlier = world().configuration;
    earlier.take_back_renames(&renamed("do-new"));
    assert_eq!(earlier.accounts[&name("do-main")].was(), Some(&name("do-new")));
    let back = earlier.renamed(&reference("do-new/droplet/1"));
    assert_eq!(back, reference("do-main/droplet/1"));

    // A configuration that has both names keeps both.
    let mut both = world().configuration;
    let account = both.accounts[&name("do-main")].clone();
    both.accounts.insert(name("do-new"), account);
    both.take_back_renames(&renamed("do-new"));
    assert_eq!(both.accounts[&name("do-main")].was(), None);
}

#[test]
fn overrides_follow_their_resources_and_of_two_the_one_in_force_stands() {
    let World { overrides, .. } = world()
        .overriding("do-main/droplet/1", Desired::Running, "mon 07:00", "mon 09:00")
        .overriding("do-new/droplet/1", Desired::Stopped, "mon 08:00", "mon 10:00")
        .overriding("office", Desired::Running, "mon 07:00", "mon 09:00");
    let overrides = overrides.renamed(&renamed("do-new"), &world().configuration);
    let found = overrides.iter().map(|one| (one.target.to_string(), one.desired));
    assert!(found.eq([
        ("do-new/droplet/1".to_owned(), Desired::Running),
        ("schedule office".to_owned(), Desired::Running),
    ]));
}

#[test]
fn of_an_override_and_its_copy_the_one_under_the_name_until_now_stands() {
    let World { overrides, configuration: before } = world()
        .overriding("a-new/droplet/1", Desired::Running, "mon 07:00", "mon 09:00")
        .overriding("do-main/droplet/1", Desired::Running, "mon 07:00", "mon 08:00");
    let after = renamed("a-new");
    let ends_at = |before: &Configuration| {
        overrides.renamed(&after, before).iter().map(|one| one.ends_at).collect::<Vec<_>>()
    };
    assert_eq!(ends_at(&before), [at("mon 08:00")]);
    assert_eq!(ends_at(&after), [at("mon 09:00")]);
    // The account was removed for some time: under its former name, the rename has ended it.
    let without = Configuration { accounts: BTreeMap::new(), ..before };
    assert_eq!(ends_at(&without), [at("mon 09:00")]);
}

#[test]
fn an_override_that_a_rename_ended_before_it_began_stands_against_none() {
    let left_under = |left: &str, other: &str| {
        let left = format!("{left}/droplet/1");
        let World { overrides, .. } = world()
            .overriding(&left, Desired::Stopped, "mon 12:00", "mon 12:00")
            .overriding(&format!("{other}/droplet/1"), Desired::Running, "mon 07:00", "mon 18:00");
        overrides
    };
    let (before, after) = (world().configuration, renamed("do-new"));
    let without = Configuration { accounts: BTreeMap::new(), ..before.clone() };
    let stands = |overrides: Overrides, before: &Configuration| {
        let renamed = overrides.renamed(&after, before);
        renamed.iter().map(|one| one.desired).collect::<Vec<_>>()
    };
    assert_eq!(stands(left_under("do-new", "do-main"), &before), [Desired::Running]);
    assert_eq!(stands(left_under("do-main", "do-new"), &after), [Desired::Running]);
    assert_eq!(stands(left_under("do-main", "do-new"), &without), [Desired::Running]);
}

/// A count, and the autoscaler's bounds.
type Pool = (u32, Option<(u32, u32)>);

fn pool((count, bounds): Pool) -> SavedState {
    SavedState::NodePool { count, autoscale: bounds.map(|(min, max)| AutoscaleBounds { min, max }) }
}

#[test]
fn the_record_that_something_was_done_about_goes_on() {
    let there = reference("do-new/droplet/1");
    let untouched = Record { reference: there.clone(), held: true, ..droplet() };
    let stopped =
        office_droplet().having_handled("mon 19:00", Desired::Stopped).settled(Power::Stopped);
    let (record, dropped) = joined(&stopped, Some(&untouched), there.clone());
    assert_eq!((record.held, dropped), (false, None));
    assert_eq!((&record.handled, &record.phase), (&stopped.handled, &stopped.phase));
    assert_eq!(record.reference, there);

    let in_flight = Record {
        reference: there.clone(),
        ..stopped.clone().in_flight_towards(Direction::Start, "mon 07:00")
    };
    let (record, _) = joined(&stopped, Some(&in_flight), there.clone());
    assert_eq!(record.phase, in_flight.phase);

    let gone = Record { phase: Phase::Gone { since: at("mon 07:00") }, ..stopped.clone() };
    let (record, _) = joined(&gone, Some(&untouched), there.clone());
    assert_eq!(record.phase, untouched.phase);
    let (record, _) = joined(&stopped, Some(&gone), there);
    assert_eq!(record.phase, stopped.phase);
}

#[test]
fn of_two_records_the_one_acted_on_last_goes_on_and_above_all_the_only_description_of_a_machine() {
    let there = reference("do-new/droplet/1");
    let left_behind = Record {
        reference: there.clone(),
        ..office_droplet().having_handled("mon 08:00", Desired::Running).settled(Power::Running)
    };
    let mut stopped =
        office_droplet().having_handled("mon 19:00", Desired::Stopped).settled(Power::Stopped);
    stopped.saved = Some(pool((3, None)));
    stopped.small_plans = ["s-1vcpu-1gb".to_owned()].into();
    let (record, _) = joined(&stopped, Some(&left_behind), there.clone());
    assert_eq!(
        record,
        Record { reference: there.clone(), revision: record.revision, ..stopped.clone() }
    );
    let (record, _) = joined(&left_behind, Some(&stopped), there.clone());
    assert_eq!((&record.phase, &record.small_plans), (&stopped.phase, &stopped.small_plans));

    // The size and its small plans are kept by whichever goes on.
    let later = Record {
        reference: there.clone(),
        ..office_droplet().having_handled("tue 08:00", Desired::Running).settled(Power::Running)
    };
    let (record, _) = joined(&stopped, Some(&later), there.clone());
    assert_eq!((&record.handled, &record.saved), (&later.handled, &stopped.saved));
    assert_eq!(record.small_plans, stopped.small_plans);

    let mut hibernated = left_behind;
    let mut kept = Hibernation::of(hibernated.reference.id.clone());
    kept.incomplete = true;
    hibernated.hibernation = Some(Box::new(kept));
    let (record, _) = joined(&hibernated, Some(&later), there);
    assert_eq!(record.hibernation, hibernated.hibernation);
}

#[test]
fn of_two_sizes_the_larger_is_kept_and_the_other_one_handed_back() {
    // The sizes that the old and the new record are owed, the one that is kept, and the other one.
    for (old, new, kept, dropped) in [
        (Some((3, None)), None, Some((3, None)), None),
        (None, Some((2, None)), Some((2, None)), None),
        (Some((3, None)), Some((3, None)), Some((3, None)), None),
        (Some((3, None)), Some((1, None)), Some((3, None)), Some((1, None))),
        (Some((1, None)), Some((3, None)), Some((3, None)), Some((1, None))),
        (Some((3, Some((1, 5)))), Some((3, None)), Some((3, Some((1, 5)))), Some((3, None))),
        (
            Some((2, Some((1, 5)))),
            Some((4, None)),
            Some((4, Some((1, 5)))),
            Some((2, Some((1, 5)))),
        ),
        // Neither is larger.
        (
            Some((3, Some((1, 5)))),
            Some((3, Some((2, 8)))),
            Some((3, Some((2, 8)))),
            Some((3, Some((1, 5)))),
        ),
    ] {
        let record = |saved: Option<Pool>| Record {
            saved: saved.map(pool),
            ..droplet().having_handled("mon 19:00", Desired::Stopped)
        };
        let there = reference("do-new/droplet/1");
        let (record, handed_back) = joined(&record(old), Some(&record(new)), there);
        assert_eq!(
            (record.saved.clone(), handed_back),
            (kept.map(pool), dropped.map(pool)),
            "{old:?} {new:?}"
        );
        assert_eq!(record.may_have_shrunk, old.is_some());
    }
}
