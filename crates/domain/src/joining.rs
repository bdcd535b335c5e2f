//! Joining a schedule: when a resource starts to follow one, and how many may start at once.
//!
//! Resources join through a configuration that names them, or through an inventory that finds their
//! tags. Both use this module, so that they decide alike, whichever comes first.

use jiff::Timestamp;

use crate::{
    decision::{Rules, Verdict, judge},
    edge::Rank,
    membership::Subject,
    record::{Phase, Record},
};

/// Reports whether a resource follows a schedule, according to this verdict.
#[must_use]
pub fn follows(verdict: &Verdict) -> bool {
    verdict.opted_in && verdict.membership.schedule().is_some()
}

impl Record {
    /// Records since when the resource has followed its schedule, or that it follows none.
    ///
    /// Returns whether it is new: it joins now, no edge of it was ever handled, and no state of it
    /// is saved.
    pub fn note_joining(&mut self, verdict: &Verdict, now: Timestamp) -> bool {
        let schedule = verdict.membership.schedule();
        if !follows(verdict) {
            self.joined_at = None;
            return false;
        }
        if self.joined_at.is_some() {
            // Moving to another schedule is not joining, but nothing that it wants is late yet.
            let moved = self.schedule.is_some() && self.schedule.as_ref() != schedule;
            self.joined_at = if moved { Some(now) } else { self.joined_at };
            return false;
        }
        self.joined_at = Some(now);
        // It already followed a schedule before that instant was recorded.
        if self.opted_in {
            return false;
        }
        let new = self.handled.is_none() && self.last.is_none() && self.saved.is_none();
        self.retry_at = None;
        // What Offhours holds stopped, or has in flight, stays its own to bring back or to finish.
        if self.in_flight().is_some() || self.is_held_stopped() {
            return new;
        }
        // A command that was carried out stands until the next edge, and must not act again.
        let latest = verdict.edge.as_ref().map(|edge| edge.key);
        let handled = self.handled.as_ref().map(|handled| handled.key);
        if handled.is_some_and(|key| key.rank == Rank::Manual && Some(key) == latest) {
            return new;
        }
        let before = self.handled.take();
        // A command that a later edge has superseded must not act again.
        self.manual_command = self
            .manual_command
            .take()
            .filter(|manual| before.is_none_or(|handled| handled.key.instant <= manual.instant));
        new
    }
}

/// Holds the new records of an account if more than `max_new` would then wait for approval: that
/// many at once are more often a wrong tag or a wrong line of configuration than intended.
pub fn hold_too_many<'r>(
    new: impl IntoIterator<Item = &'r mut Record>,
    held_before: usize,
    max_new: u32,
) {
    let new: Vec<_> = new.into_iter().collect();
    if new.len() + held_before > max_new as usize {
        for record in new {
            record.held = true;
        }
    }
}

/// Lets the records of one account join that follow a schedule under these rules, judged by their
/// tags as of the last inventory.
pub fn join_all(records: &mut [Record], rules: Rules<'_>, now: Timestamp) {
    let held_before = records.iter().filter(|record| record.held).count();
    let mut new = Vec::new();
    for record in records {
        if matches!(record.phase, Phase::Gone { .. }) {
            continue;
        }
        let verdict = judge(record, Subject::recorded(record), rules, now);
        if follows(&verdict) && record.note_joining(&verdict, now) {
            new.push(record);
        }
    }
    let max_new = rules.configuration.settings.max_new;
    hold_too_many(new, held_before, max_new);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        configuration::Adopt,
        decision::{Decision, LeaveReason},
        record::Direction,
        resource::Power,
        schedule::Desired,
        tests::fixtures::{World, at, droplet, office_droplet, reference, world},
    };

    /// Three Droplets that the schedule lists, and a limit.
    fn listed(max_new: u32) -> (World, Vec<Record>) {
        let ids = ["do-main/droplet/1", "do-main/droplet/2", "do-main/droplet/3"];
        let mut world = world();
        world.configuration.settings.max_new = max_new;
        let records =
            ids.map(|id| Record { reference: reference(id), opted_in: false, ..droplet() });
        for id in ids {
            world = world.listing("office", id);
        }
        (world, records.to_vec())
    }

    fn held(records: &[Record]) -> Vec<bool> {
        records.iter().map(|record| record.held).collect()
    }

    #[test]
    fn more_than_the_limit_at_once_are_held() {
        let (world, mut records) = listed(3);
        join_all(&mut records, world.rules(), at("mon 18:30"));
        assert_eq!(held(&records), [false; 3]);
        let (world, mut records) = listed(2);
        join_all(&mut records, world.rules(), at("mon 18:30"));
        assert_eq!(held(&records), [true; 3]);
        assert_eq!(records[0].joined_at, Some(at("mon 18:30")));
    }

    #[test]
    fn those_that_are_held_already_count() {
        let (world, mut records) = listed(2);
        records[0].held = true;
        records[0].joined_at = Some(at("mon 18:29"));
        join_all(&mut records, world.rules(), at("mon 18:30"));
        assert_eq!(held(&records), [true; 3]);
    }

    #[test]
    fn what_was_ever_handled_is_not_new() {
        let (world, mut records) = listed(0);
        records[0] = records[0].clone().having_handled("mon 08:00", Desired::Running);
        records[1].saved =
            Some(crate::resource::SavedState::NodePool { count: 3, autoscale: None });
        join_all(&mut records, world.rules(), at("mon 18:30"));
        assert_eq!(held(&records), [false, false, true]);
        assert_eq!(records[0].handled, None, "it follows its schedule anew");
    }

    #[test]
    fn another_schedule_or_another_generation_is_not_a_joining() {
        let (world, mut records) = listed(0);
        for record in &mut records {
            *record = record.clone().having_handled("mon 08:00", Desired::Running);
            record.joined_at = Some(at("mon 07:00"));
            record.opted_in = true;
        }
        let before = records.clone();
        join_all(&mut records, world.in_generation(2).rules(), at("mon 18:30"));
        assert_eq!(records, before);
    }

    #[test]
    fn what_moves_to_another_schedule_is_not_late_for_what_that_wanted_before() {
        let world = world();
        let mut record = office_droplet().having_handled("mon 08:00", Desired::Running);
        (record.joined_at, record.opted_in) = (Some(at("mon 07:00")), true);
        for (schedule, joined_at) in [("office", "mon 07:00"), ("elsewhere", "tue 10:00")] {
            record.schedule = Some(schedule.parse().unwrap());
            let verdict =
                judge(&record, Subject::recorded(&record), world.rules(), at("tue 10:00"));
            assert!(!record.note_joining(&verdict, at("tue 10:00")));
            assert_eq!(record.joined_at, Some(at(joined_at)), "from {schedule}");
            assert!(record.handled.is_some());
        }
    }

    #[test]
    fn a_command_that_a_later_edge_has_superseded_is_over_when_its_resource_joins_anew() {
        let record = office_droplet().having_handled("mon 19:00", Desired::Stopped);
        let record = record.commanded("mon 18:00", Desired::Running).settled(Power::Running);
        assert!(record.manual_command.is_some());
        let back = back(&world(), record);
        assert_eq!((back.handled, back.manual_command), (None, None));
    }

    #[test]
    fn a_command_that_was_carried_out_does_not_act_again_when_its_resource_joins_anew() {
        let record = office_droplet().commanded("tue 08:30", Desired::Stopped);
        let record = record.having_handled_ranked("tue 08:30", Rank::Manual, Desired::Stopped);
        let handled = record.handled.clone();
        // A person has started it since.
        let back = back(&world(), record.settled(Power::Running));
        assert_eq!((back.joined_at, back.handled.clone()), (Some(at("tue 10:00")), handled));
        let decision = world().decide(&back, "tue 10:00");
        assert_eq!(decision, Decision::Leave(LeaveReason::Handled));
        // The next edges are followed.
        let decision = world().decide(&back, "tue 19:00");
        assert!(matches!(decision, Decision::Act(due) if due.direction == Direction::Stop));
    }

    #[test]
    fn what_leaves_joins_anew_when_it_comes_back() {
        let mut record = office_droplet().having_handled("mon 08:00", Desired::Running);
        record.joined_at = Some(at("mon 07:00"));
        let world = world();
        let mut judged = |world: &World, now| {
            let verdict = judge(&record, Subject::recorded(&record), world.rules(), at(now));
            record.note_joining(&verdict, at(now));
            record.opted_in = verdict.opted_in;
            record.clone()
        };
        let left = judged(&world.clone().without_schedules(), "mon 09:00");
        assert_eq!((left.joined_at, left.handled.is_some()), (None, true));
        let back = judged(&world, "mon 10:00");
        assert_eq!((back.joined_at, back.handled), (Some(at("mon 10:00")), None));
    }

    /// Returns the record after it left `office` on Monday evening, and joined it again on Tuesday.
    fn back(world: &World, mut record: Record) -> Record {
        let left = world.clone().without_schedules();
        for (world, now) in [(&left, "mon 20:00"), (world, "tue 10:00")] {
            let verdict = judge(&record, Subject::recorded(&record), world.rules(), at(now));
            record.note_joining(&verdict, at(now));
            record.opted_in = verdict.opted_in;
        }
        record
    }

    #[test]
    fn what_offhours_holds_stopped_or_has_in_flight_keeps_what_it_has_handled_when_it_joins_anew() {
        let world = world().following("office", |policy| policy.adopt = Adopt::NextEdge);
        let handled = office_droplet().having_handled("mon 19:00", Desired::Stopped);
        for record in [
            handled.clone().settled(Power::Stopped),
            handled.clone().in_flight_towards(Direction::Stop, "mon 19:00"),
        ] {
            let back = back(&world, record.clone());
            assert_eq!(back.joined_at, Some(at("tue 10:00")));
            assert_eq!(back.handled, record.handled);
            let decision = world.decide(&back, "tue 10:00");
            assert!(matches!(decision, Decision::Act(due) if due.direction == Direction::Start));
        }
        let starting = office_droplet().having_handled("mon 19:30", Desired::Running);
        let starting = starting
            .in_flight_towards(Direction::Start, "mon 19:30")
            .observed(Power::Running, "mon 19:31");
        assert_eq!(back(&world, starting.clone()).handled, starting.handled);
        let running = back(&world, handled.settled(Power::Running));
        assert_eq!(running.handled, None);
        let decision = world.decide(&running, "tue 10:00");
        assert_eq!(decision, Decision::Leave(LeaveReason::Adopting));
    }

    #[test]
    fn what_is_owed_a_size_is_not_held_back_from_its_start_though_its_schedule_waits() {
        let world = world().following("office", |policy| policy.adopt = Adopt::NextEdge);
        let owed = |joined_at| Record {
            saved: Some(crate::resource::SavedState::NodePool { count: 3, autoscale: None }),
            joined_at: Some(at(joined_at)),
            ..office_droplet()
        };
        let decision = world.decide(&owed("tue 10:00"), "tue 10:00");
        assert!(matches!(decision, Decision::Act(due) if due.direction == Direction::Start));
        let decision = world.decide(&owed("mon 20:00"), "mon 20:00");
        assert_eq!(decision, Decision::Leave(LeaveReason::Adopting));
    }

    #[test]
    fn what_follows_from_its_next_edge_on_is_left_until_then() {
        let (world, mut records) = listed(25);
        let world = world.following("office", |policy| policy.adopt = Adopt::NextEdge);
        let leaves = |record: &Record, now| {
            let decision = world.decide(record, now);
            assert_eq!(decision, Decision::Leave(LeaveReason::Adopting), "{now}");
        };
        leaves(&records[0], "mon 19:10");
        join_all(&mut records, world.rules(), at("mon 19:10"));
        leaves(&records[0], "mon 19:10");
        leaves(&records[0], "tue 07:59");
        let due_at = world.due_at(&records[0], "mon 19:10");
        assert_eq!(due_at, Some(at("tue 08:00")));
        let decision = world.decide(&records[0], "tue 08:03");
        assert!(matches!(decision, Decision::Act(due) if due.direction == Direction::Start));
    }

    #[test]
    fn a_command_given_before_it_joined_is_followed_although_its_schedule_waits() {
        let (world, mut records) = listed(25);
        let world = world.following("office", |policy| policy.adopt = Adopt::NextEdge);
        records[0] = records[0].clone().commanded("mon 19:05", Desired::Running);
        join_all(&mut records, world.rules(), at("mon 19:10"));
        let decision = world.decide(&records[0], "mon 19:10");
        assert!(matches!(decision, Decision::Act(due) if due.direction == Direction::Start));
    }

    #[test]
    fn what_offhours_has_stopped_is_not_held_back_from_its_start() {
        let stopped = Record {
            held: true,
            ..office_droplet().having_handled("mon 19:00", Desired::Stopped).settled(Power::Stopped)
        };
        let decision = world().decide(&stopped, "tue 08:00");
        assert!(matches!(decision, Decision::Act(due) if due.direction == Direction::Start));
        let due_at = world().due_at(&stopped, "mon 20:00");
        assert_eq!(due_at, Some(at("tue 08:00")));
        let started = stopped.having_handled("tue 08:00", Desired::Running);
        let decision = world().decide(&started, "tue 19:00");
        assert_eq!(decision, Decision::Leave(LeaveReason::Held));
    }
}
