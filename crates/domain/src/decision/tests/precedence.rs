//! Which desired state wins, for each row of the order of precedence, and where it changes.

use super::*;
use crate::schedule::desired_or_any;

const ID: &str = "do-main/droplet/1";

/// Checks the desired state at an instant, and the edge that brought it.
#[track_caller]
fn check(world: &World, record: &Record, now: &str, desired: Desired, edge: &str, rank: Rank) {
    let verdict = world.judge(record, now);
    let found = verdict.edge.map(|edge| (edge.key.instant, edge.key.rank));
    assert_eq!((verdict.desired, found), (Some(desired), Some((at(edge), rank))), "{now}");
    assert!(verdict.opted_in);
}

/// Returns the coming edges after an instant, each as `INSTANT DESIRED`.
fn coming(world: &World, record: &Record, after: &str, count: usize) -> Vec<String> {
    written(coming_edges(record, world.rules(), at(after)).take(count))
}

fn written(edges: impl Iterator<Item = DesiredEdge>) -> Vec<String> {
    edges
        .map(|edge| {
            let utc = edge.key.instant.to_zoned(jiff::tz::TimeZone::UTC);
            let text = utc.strftime("%a %H:%M").to_string().to_lowercase();
            format!("{text} {}", desired_or_any(edge.desired))
        })
        .collect()
}

#[test]
fn the_coming_edges_of_a_schedule_are_those_of_what_follows_it() {
    let world = world()
        .overriding("office", Desired::Running, "mon 22:00", "mon 23:00")
        .overriding(ID, Desired::Stopped, "mon 10:00", "mon 12:00");
    let edges = coming_edges_of(&schedule_name("office"), world.rules(), at("mon 09:00"));
    let expected =
        ["mon 19:00 stopped", "mon 22:00 running", "mon 23:00 stopped", "tue 08:00 running"];
    assert_eq!(written(edges.take(4)), expected);
    let unknown = coming_edges_of(&schedule_name("ofice"), world.rules(), at("mon 09:00"));
    assert_eq!(written(unknown), [""; 0]);
}

#[test]
fn there_is_no_coming_stop_of_what_is_retained_but_by_the_end_of_an_override() {
    let retained = Record { retained: true, ..office_droplet() };
    let world = world().following("office", |policy| policy.retain_running = true);
    assert_eq!(coming(&world, &retained, "mon 09:00", 1), ["tue 08:00 running"]);
    let overridden = world.overriding(ID, Desired::Running, "mon 18:00", "mon 20:00");
    let expected = ["mon 18:00 running", "mon 20:00 stopped"];
    assert_eq!(coming(&overridden, &retained, "mon 09:00", 2), expected);
}

#[test]
fn an_override_of_the_resource_that_begins_later_is_due_then() {
    let target = "do-main/droplet/1";
    let world = world().overriding(target, Desired::Running, "mon 22:00", "mon 23:00");
    let unnamed = droplet().settled(Power::Stopped);
    assert_eq!(world.due_at(&unnamed, "mon 20:00"), Some(at("mon 22:00")));
    assert_eq!(world.due_at(&unnamed, "mon 23:30"), None);
    let named =
        office_droplet().settled(Power::Stopped).having_handled("mon 19:00", Desired::Stopped);
    assert_eq!(world.due_at(&named, "mon 20:00"), Some(at("mon 22:00")));
}

#[test]
fn protection_beats_overrides_and_commands() {
    let world = world().protecting("name:web").overriding(ID, STOPPED, "mon 09:00", "mon 12:00");
    for record in [
        office_droplet(),
        office_droplet().commanded("mon 10:00", STOPPED),
        droplet().commanded("mon 10:00", STOPPED),
    ] {
        let verdict = world.judge(&record, "mon 10:30");
        assert!(!verdict.opted_in);
        let protected = Exclusion::Protected("name:web".parse().unwrap());
        leaves(&verdict.decision, &LeaveReason::Excluded(protected));
        assert_eq!(world.due_at(&record, "mon 10:30"), None);
    }
}

#[test]
fn an_opt_out_beats_overrides_and_commands() {
    let world = world().overriding(ID, STOPPED, "mon 09:00", "mon 12:00");
    let own = droplet().tagged(&["offhours:off"]);
    let clusters = office_droplet().in_cluster("k8s", &["offhours:off"]);
    for (record, on_cluster) in [(own, false), (clusters, true)] {
        let record = record.commanded("mon 10:00", STOPPED);
        let verdict = world.judge(&record, "mon 10:30");
        assert!(!verdict.opted_in);
        let opted_out = Exclusion::OptedOut { on_cluster };
        leaves(&verdict.decision, &LeaveReason::Excluded(opted_out));
    }
}

#[test]
fn an_override_of_the_resource_beats_that_of_its_schedule() {
    let world = world().overriding(ID, STOPPED, "mon 09:00", "mon 12:00").overriding(
        "office",
        RUNNING,
        "mon 10:00",
        "mon 13:00",
    );
    let record = office_droplet();
    check(&world, &record, "mon 09:30", STOPPED, "mon 09:00", Rank::OverrideSet);
    check(&world, &record, "mon 11:00", STOPPED, "mon 09:00", Rank::OverrideSet);
    check(&world, &record, "mon 12:30", RUNNING, "mon 12:00", Rank::OverrideEnded);
}

#[test]
fn an_override_of_the_schedule_beats_a_command_that_contradicts_it() {
    let world = world().overriding("office", STOPPED, "mon 09:00", "mon 12:00");
    for command in ["mon 08:30", "mon 10:00"] {
        let record = office_droplet().commanded(command, RUNNING);
        check(&world, &record, "mon 11:00", STOPPED, "mon 09:00", Rank::OverrideSet);
    }
    // The command does not come back when the override ends, either.
    let record = office_droplet().commanded("mon 10:00", RUNNING);
    check(&world, &record, "mon 12:30", RUNNING, "mon 12:00", Rank::OverrideEnded);
}

#[test]
fn a_command_that_agrees_with_an_override_is_an_edge_of_its_own() {
    let world = world().overriding(ID, STOPPED, "mon 09:00", "mon 12:00");
    let record = office_droplet().commanded("mon 10:00", STOPPED);
    check(&world, &record, "mon 10:00", STOPPED, "mon 10:00", Rank::Manual);
    check(&world, &record, "mon 12:00", RUNNING, "mon 12:00", Rank::OverrideEnded);
}

#[test]
fn a_command_beats_the_schedule_until_its_next_edge() {
    let record = office_droplet().commanded("mon 10:00", STOPPED);
    check(&world(), &record, "mon 09:59", RUNNING, "mon 08:00", Rank::Schedule);
    check(&world(), &record, "mon 10:00", STOPPED, "mon 10:00", Rank::Manual);
    check(&world(), &record, "mon 18:59", STOPPED, "mon 10:00", Rank::Manual);
    check(&world(), &record, "mon 19:00", STOPPED, "mon 19:00", Rank::Schedule);
    check(&world(), &record, "tue 08:00", RUNNING, "tue 08:00", Rank::Schedule);
}

#[test]
fn a_command_at_the_instant_of_an_edge_beats_it() {
    let record = office_droplet().commanded("mon 19:00", RUNNING);
    check(&world(), &record, "mon 19:00", RUNNING, "mon 19:00", Rank::Manual);
    let set = world().overriding("office", STOPPED, "mon 19:00", "mon 20:00");
    check(&set, &office_droplet(), "mon 19:00", STOPPED, "mon 19:00", Rank::OverrideSet);
}

#[test]
fn a_list_beats_the_tag_and_that_the_clusters() {
    let world = world()
        .with_schedule("early", daily("06:00", "07:00"))
        .with_schedule("late", daily("20:00", "21:00"));
    let record = droplet().in_cluster("k8s", &["offhours:late"]);
    check(&world, &record, "mon 20:30", RUNNING, "mon 20:00", Rank::Schedule);
    let record = record.tagged(&["offhours:early"]);
    check(&world, &record, "mon 20:30", STOPPED, "mon 07:00", Rank::Schedule);
    let listed = world.listing("office", ID);
    check(&listed, &record, "mon 20:30", STOPPED, "mon 19:00", Rank::Schedule);
}

#[test]
fn a_conflict_keeps_everything_as_it_is() {
    let world = world().with_schedule("late", daily("20:00", "21:00")).overriding(
        ID,
        STOPPED,
        "mon 09:00",
        "mon 12:00",
    );
    let record =
        droplet().tagged(&["offhours:office", "offhours:late"]).commanded("mon 10:00", STOPPED);
    let verdict = world.judge(&record, "mon 10:30");
    assert!(matches!(
        verdict.decision,
        Decision::Leave(LeaveReason::Excluded(exclusion)) if exclusion.is_conflict()
    ));
}

#[test]
fn an_unknown_schedule_wants_nothing_but_a_person_may() {
    let record = droplet().tagged(&["offhours:ofice"]);
    let unknown = LeaveReason::UnknownSchedule("ofice".to_owned());
    leaves(&world().decide(&record, "mon 19:00"), &unknown);
    assert_eq!(world().due_at(&record, "mon 19:00"), None);
    let commanded = record.commanded("mon 10:00", STOPPED);
    check(&world(), &commanded, "mon 10:00", STOPPED, "mon 10:00", Rank::Manual);
}

#[test]
fn a_resource_that_nothing_names_obeys_only_a_person() {
    leaves(&world().decide(&droplet(), "mon 19:00"), &LeaveReason::Unnamed);
    let commanded = droplet().commanded("mon 10:00", STOPPED);
    let decision = world().decide(&commanded, "mon 10:00");
    acts(&decision, "mon 10:00", Rank::Manual, STOP, Why::Edge);
    let done = commanded.having_done(&decision);
    assert!(world().judge(&done, "mon 10:01").opted_in, "it is that person's");
    let overridden = world().overriding(ID, STOPPED, "mon 09:00", "mon 12:00");
    let decision = overridden.decide(&droplet(), "mon 10:00");
    acts(&decision, "mon 09:00", Rank::OverrideSet, STOP, Why::Edge);
    // Without a schedule underneath, the end of the override has no desired state.
    let done = droplet().having_done(&decision);
    leaves(&overridden.decide(&done, "mon 12:00"), &LeaveReason::Unnamed);
}

#[test]
fn a_superseded_command_does_not_act_when_the_edge_that_superseded_it_is_no_more() {
    let always = serde_json::json!({"timezone": "UTC", "state": "running"});
    let changed = world().with_schedule("office", always).in_generation(2);
    let started =
        office_droplet().commanded("mon 12:00", STOPPED).having_handled("wed 08:00", RUNNING);
    leaves(&changed.decide(&started, "wed 09:00"), &LeaveReason::Handled);
    let stopped =
        office_droplet().commanded("fri 15:00", STOPPED).having_handled("fri 19:00", STOPPED);
    let decision = changed.decide(&stopped, "sun 12:00");
    assert!(matches!(decision, Decision::Act(Due { direction: START, .. })), "{decision:?}");
}

#[test]
fn an_old_command_does_not_act_again_on_a_resource_that_loses_its_schedule() {
    let followed =
        office_droplet().commanded("mon 12:00", STOPPED).having_handled("tue 08:00", RUNNING);
    leaves(&world().decide(&followed, "tue 10:00"), &LeaveReason::Handled);
    let untagged = followed.clone().tagged(&[]);
    leaves(&world().decide(&untagged, "tue 10:00"), &LeaveReason::Unnamed);
    assert_eq!(world().due_at(&untagged, "tue 10:00"), None);
    let removed = world().without_schedules().in_generation(2);
    let unknown = LeaveReason::UnknownSchedule("office".to_owned());
    leaves(&removed.decide(&followed, "tue 10:00"), &unknown);
}

#[test]
fn an_override_masks_the_edges_under_it() {
    let world = world().overriding("office", RUNNING, "mon 18:00", "mon 22:00");
    let record = office_droplet();
    check(&world, &record, "mon 19:30", RUNNING, "mon 18:00", Rank::OverrideSet);
    check(&world, &record, "mon 21:59:59", RUNNING, "mon 18:00", Rank::OverrideSet);
    check(&world, &record, "mon 22:00", STOPPED, "mon 22:00", Rank::OverrideEnded);
    check(&world, &record, "tue 07:00", STOPPED, "mon 22:00", Rank::OverrideEnded);
    let edges = coming(&world, &record, "mon 12:00", 3);
    assert_eq!(edges, ["mon 18:00 running", "mon 22:00 stopped", "tue 08:00 running"]);
}

#[test]
fn the_end_of_an_override_is_an_edge_only_where_the_desired_state_changes() {
    let world = world().overriding("office", STOPPED, "mon 18:00", "mon 22:00");
    let record = office_droplet();
    check(&world, &record, "mon 23:00", STOPPED, "mon 18:00", Rank::OverrideSet);
    let edges = coming(&world, &record, "mon 12:00", 2);
    assert_eq!(edges, ["mon 18:00 stopped", "tue 08:00 running"]);
}

#[test]
fn an_edge_at_the_very_end_of_an_override_is_not_masked() {
    let world = world().overriding("office", STOPPED, "mon 18:00", "tue 08:00");
    let record = office_droplet();
    check(&world, &record, "tue 08:00", RUNNING, "tue 08:00", Rank::OverrideEnded);
    let same = world.overriding("office", RUNNING, "mon 18:00", "tue 08:00");
    check(&same, &record, "tue 08:00", RUNNING, "tue 08:00", Rank::Schedule);
}

#[test]
fn setting_an_override_is_always_an_edge() {
    let world = world().overriding("office", RUNNING, "mon 10:00", "mon 12:00");
    let record = office_droplet().having_handled("mon 08:00", RUNNING);
    let decision = world.decide(&record, "mon 10:00");
    acts(&decision, "mon 10:00", Rank::OverrideSet, START, Why::Edge);
    let done = record.having_done(&decision);
    leaves(&world.decide(&done, "mon 13:00"), &LeaveReason::Handled);
}

#[test]
fn clearing_an_override_ends_it_there() {
    let world = world().overriding("office", STOPPED, "mon 10:00", "mon 10:20");
    let record = office_droplet();
    check(&world, &record, "mon 10:20", RUNNING, "mon 10:20", Rank::OverrideEnded);
    // An override that was cleared at the instant at which it was set never existed.
    let never = world.overriding("office", STOPPED, "mon 10:00", "mon 10:00");
    check(&never, &record, "mon 10:20", RUNNING, "mon 08:00", Rank::Schedule);
}

#[test]
fn the_end_of_an_override_is_carried_out_though_one_that_begins_later_has_its_place() {
    for target in [ID, "office"] {
        let mut world = world().overriding(target, RUNNING, "mon 20:00", "mon 21:00");
        let record = office_droplet().having_handled("mon 19:00", STOPPED);
        let set = world.decide(&record, "mon 20:00");
        let followed = record.having_done(&set);
        let ended = world.overrides.iter().next().unwrap().clone();
        let later = |place_of: &Override, now: &str| Override {
            set_at: at("tue 20:00"),
            ends_at: at("tue 22:00"),
            before: place_of.to_remember(at(now)),
            ..ended.clone()
        };
        let first = later(&ended, "mon 21:01");
        let second = later(&first, "mon 21:02");
        world.overrides = [second.clone()].into_iter().collect();
        acts(
            &world.decide(&followed, "mon 21:03"),
            "mon 21:00",
            Rank::OverrideEnded,
            STOP,
            Why::Edge,
        );
        // Cleared before it began, it was never in force; once over, it is the one to remember.
        let cleared = Override { ends_at: at("mon 21:04"), ..second.clone() };
        assert_eq!(cleared.to_remember(at("tue 21:00")).as_deref(), Some(&ended));
        let begun = Override { before: None, ..second.clone() };
        assert_eq!(second.to_remember(at("tue 23:00")).as_deref(), Some(&begun));
    }
}

#[test]
fn an_override_that_was_cleared_within_a_second_is_seen_by_nobody_and_undone_where_it_was_followed()
{
    let second = |millis: i64| at("mon 10:00") + SignedDuration::from_millis(millis);
    for target in [ID, "office"] {
        let mut world = world().overriding(target, STOPPED, "mon 10:00", "mon 10:20");
        let cleared = |one: &Override| Override { ends_at: second(999), ..one.clone() };
        world.overrides = world.overrides.iter().map(cleared).collect();
        let record = office_droplet().having_handled("mon 08:00", RUNNING);
        check(&world, &record, "mon 10:00", RUNNING, "mon 08:00", Rank::Schedule);
        assert_eq!(override_of(&record, world.rules(), at("mon 10:00")), None);
        assert_eq!(coming(&world, &record, "mon 10:00", 1), ["mon 19:00 stopped"]);
        // A function was faster than the person who cleared it.
        let mut followed = record.clone();
        followed.handled.as_mut().unwrap().key =
            EdgeKey { instant: at("mon 10:00"), rank: Rank::OverrideSet };
        followed.handled.as_mut().unwrap().desired = Some(STOPPED);
        let verdict = judge(&followed, Subject::recorded(&followed), world.rules(), second(999));
        let Decision::Act(due) = verdict.decision else {
            panic!("nothing is undone: {:?}", verdict.decision);
        };
        assert_eq!((due.handled.key.instant, due.direction), (second(999), START));
    }
}

#[test]
fn a_schedules_override_that_ends_under_that_of_the_resource_changes_nothing() {
    let world = world().overriding("office", STOPPED, "mon 09:00", "mon 11:00").overriding(
        ID,
        STOPPED,
        "mon 10:00",
        "mon 12:00",
    );
    let record = office_droplet();
    let edges = coming(&world, &record, "mon 08:00", 3);
    assert_eq!(edges, ["mon 09:00 stopped", "mon 10:00 stopped", "mon 12:00 running"]);
}

#[test]
fn overrides_that_end_together_make_an_edge_only_where_the_winners_desired_state_changes() {
    let world = world().overriding("office", STOPPED, "mon 09:00", "mon 12:00").overriding(
        ID,
        RUNNING,
        "mon 10:00",
        "mon 12:00",
    );
    let record = office_droplet();
    check(&world, &record, "mon 12:30", RUNNING, "mon 10:00", Rank::OverrideSet);
    let edges = coming(&world, &record, "mon 10:00", 1);
    assert_eq!(edges, ["mon 19:00 stopped"]);
}

#[test]
fn the_override_that_decides_is_the_resources_own_then_that_of_its_schedule_then_none() {
    let world = world().overriding("office", STOPPED, "mon 09:00", "mon 13:00").overriding(
        ID,
        RUNNING,
        "mon 10:00",
        "mon 12:00",
    );
    let deciding = |world: &World, record: &Record, now: &str| {
        override_of(record, world.rules(), at(now)).map(|one| (one.target.to_string(), one.desired))
    };
    let office = Some(("schedule office".to_owned(), STOPPED));
    let own = Some((ID.to_owned(), RUNNING));
    for (now, expected) in [
        ("mon 08:59", None),
        ("mon 09:00", office.clone()),
        ("mon 10:00", own.clone()),
        ("mon 12:00", office),
        ("mon 13:00", None),
    ] {
        assert_eq!(deciding(&world, &office_droplet(), now), expected, "{now}");
    }
    assert_eq!(deciding(&world, &droplet(), "mon 11:00"), own);
    assert_eq!(deciding(&world, &droplet(), "mon 12:30"), None);
    let protected = world.protecting("name:web");
    assert_eq!(deciding(&protected, &office_droplet(), "mon 11:00"), None);
}
