//! The order of groups: what a resource waits for before it starts, or before it stops.
//!
//! Nothing about a wait is stored. It is decided from the records each time, and it ends when what is
//! waited for has reached its state or is no longer on its way there, or at its deadline.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
};

use jiff::{SignedDuration, Timestamp};

use crate::{
    configuration::{Check, Followed, Group, Mode},
    decision::{Decision, Due, LeaveReason, Rules, judge},
    membership::Subject,
    record::{Direction, Phase, Rank, Record},
    reference::{GroupName, ResourceRef},
    schedule::Desired,
};

/// The most resources that a text names.
const NAMED: usize = 5;

type Groups = BTreeMap<GroupName, Group>;

/// What groups and resources follow, each with the longest wait for it.
type Links = BTreeMap<Followed, BTreeMap<Followed, SignedDuration>>;

/// Which groups and resources follow which.
#[derive(Debug)]
pub struct Graph<'a> {
    groups: &'a Groups,
    /// What each one follows itself.
    direct: Links,
    /// What each one follows through others as well. In a chain, each waits after the one before it.
    whole: Links,
}

impl<'a> Graph<'a> {
    #[must_use]
    pub fn of(groups: &'a Groups) -> Self {
        let mut direct = Links::new();
        for (name, group) in groups {
            let listed = group.after.iter().filter_map(|followed| match followed {
                Followed::Resource(reference) => Some((followed, reference)),
                Followed::Group(_) => None,
            });
            for followed in &group.after {
                link(&mut direct, &Followed::Group(name.clone()), followed, group.patience());
            }
            // A resource that others follow may follow others itself, as a member of a group.
            for (resource, reference) in listed {
                for group in groups.values().filter(|group| covers(group, reference)) {
                    for followed in group.after.iter().filter(|followed| *followed != resource) {
                        link(&mut direct, resource, followed, group.patience());
                    }
                }
            }
        }
        let mut whole = direct.clone();
        // No chain has more links, even if a stored configuration has a cycle.
        for _ in 0..direct.len() {
            let known = whole.clone();
            for (later, between) in &direct {
                for (next, wait) in between {
                    for (earlier, more) in known.get(next).into_iter().flatten() {
                        link(&mut whole, later, earlier, *wait + *more);
                    }
                }
            }
            if whole == known {
                break;
            }
        }
        Self { groups, direct, whole }
    }

    /// Returns a cycle, from a group or resource back to itself along the fewest others, if there is
    /// one.
    #[must_use]
    pub fn cycle(&self) -> Option<Vec<&Followed>> {
        let (start, _) = self.whole.iter().find(|(one, after)| after.contains_key(one))?;
        let mut paths = VecDeque::from([vec![start]]);
        let mut found = BTreeSet::new();
        while let Some(path) = paths.pop_front() {
            let followed = path.last().and_then(|last| self.direct.get(last));
            for next in followed.into_iter().flat_map(BTreeMap::keys) {
                let path = [path.as_slice(), &[next]].concat();
                if next == start {
                    return Some(path);
                }
                if found.insert(next) {
                    paths.push_back(path);
                }
            }
        }
        None
    }

    /// Returns how long a resource waits at most: what those before it may take one after the other,
    /// and then its own wait. Zero if none go before it.
    #[must_use]
    pub fn longest_wait(&self, record: &Record, direction: Direction) -> SignedDuration {
        let places = &self.places(record);
        let waits = self.whole.iter().flat_map(|(later, after)| {
            after.iter().filter_map(move |(earlier, wait)| {
                let waiting = match direction {
                    Direction::Start => later,
                    Direction::Stop => earlier,
                };
                places.contains(waiting).then_some(*wait)
            })
        });
        waits.max().unwrap_or_default()
    }

    /// Reports whether one of these may have to wait for others.
    #[must_use]
    pub fn concerns(&self, records: &[Record]) -> bool {
        let waits = |record, direction| !self.longest_wait(record, direction).is_zero();
        !self.whole.is_empty()
            && records.iter().any(|record| {
                [Direction::Start, Direction::Stop].into_iter().any(|way| waits(record, way))
            })
    }

    /// Returns where a resource is in the order: in its groups, and by itself if others
    /// follow it.
    fn places(&self, record: &Record) -> Vec<Followed> {
        let subject = Subject::recorded(record);
        let is_member = |(_, group): &(&GroupName, &Group)| {
            group.resources.iter().any(|pattern| subject.is_covered_by(pattern))
        };
        let groups = self.groups.iter().filter(is_member);
        let groups = groups.map(|(name, _)| Followed::Group(name.clone()));
        let itself = Followed::Resource(record.reference.clone());
        let is_followed = self.direct.values().any(|after| after.contains_key(&itself));
        groups.chain(is_followed.then_some(itself)).collect()
    }

    /// Reports whether resources in some places go before those in others. Members of the same groups
    /// do not wait for each other.
    fn go_before(&self, first: &[Followed], second: &[Followed], direction: Direction) -> bool {
        let follow = |later: &[Followed], earlier: &[Followed]| {
            let after = later.iter().filter_map(|place| self.whole.get(place));
            after.into_iter().any(|after| earlier.iter().any(|place| after.contains_key(place)))
        };
        match direction {
            Direction::Start => follow(second, first) && !follow(first, second),
            Direction::Stop => follow(first, second) && !follow(second, first),
        }
    }
}

/// Adds that one follows another. Of two waits the longer one counts.
fn link(links: &mut Links, later: &Followed, earlier: &Followed, wait: SignedDuration) {
    let known = links.entry(later.clone()).or_default().entry(earlier.clone()).or_default();
    *known = wait.max(*known);
}

/// Reports whether a group's references cover a resource of which nothing else is known.
fn covers(group: &Group, reference: &ResourceRef) -> bool {
    let none = std::iter::empty;
    group.resources.iter().any(|pattern| pattern.covers(reference, none(), none()))
}

/// The records that an order concerns.
pub struct Order<'a> {
    rules: Rules<'a>,
    graph: Graph<'a>,
    placed: Vec<(&'a Record, Vec<Followed>)>,
    passed: BTreeSet<Check>,
}

impl<'a> Order<'a> {
    /// Puts records in their order.
    #[must_use]
    pub fn of(records: impl IntoIterator<Item = &'a Record>, rules: Rules<'a>) -> Self {
        let graph = Graph::of(&rules.configuration.settings.groups);
        let placed = records.into_iter().map(|record| (record, graph.places(record)));
        Self { rules, placed: placed.collect(), graph, passed: BTreeSet::new() }
    }

    /// Returns the checks that must pass before some of these can start; they wait for nothing else.
    #[must_use]
    pub fn checks(&self, records: &[Record], now: Timestamp) -> BTreeSet<&'a Check> {
        if self.graph.groups.values().all(|group| group.check.is_none()) {
            return BTreeSet::new();
        }
        let waits = records.iter().filter_map(|record| self.wait_now(record, now));
        waits.flat_map(|wait| wait.checks.into_values()).collect()
    }

    /// Waits no longer for the checks that have passed.
    #[must_use]
    pub fn with_passed(self, passed: BTreeSet<Check>) -> Self {
        Self { passed, ..self }
    }

    /// Returns what a resource that is due waits for now, and until when; `None` if it waits for
    /// nothing.
    ///
    /// A command waits for nothing, nor does what was begun before.
    #[must_use]
    pub fn wait(&self, record: &Record, due: &Due, now: Timestamp) -> Option<Wait<'a>> {
        let was_tried = record.failing == Some(due.handled.key);
        let waits = !was_tried && due.handled.key.rank != Rank::Manual;
        let first = waits.then(|| self.first(record, due, now)).flatten();
        first.filter(|wait| now < wait.until)
    }

    /// Returns what a resource waits for now, if something is due for it.
    #[must_use]
    pub fn wait_now(&self, record: &Record, now: Timestamp) -> Option<Wait<'a>> {
        match judge(record, Subject::recorded(record), self.rules, now).decision {
            Decision::Act(due) => self.wait(record, &due, now),
            Decision::AskAgain(_) | Decision::Leave(_) => None,
        }
    }

    /// Returns what is on its way there and goes first, or else the checks that must pass.
    fn first(&self, record: &Record, due: &Due, now: Timestamp) -> Option<Wait<'a>> {
        let key = due.handled.key;
        if due.mode == Mode::Observe || record.under_way_towards(due.direction).is_some() {
            return None;
        }
        // A machine that begins early to be there in time waits for what is to run by then.
        let lead = record.hibernation.as_deref().and_then(|kept| kept.lead);
        let is_early = due.direction == Direction::Start && key.rank == Rank::Schedule;
        let lead = lead.filter(|_| is_early).unwrap_or_default();
        let at = now.max(key.instant + lead);
        let mut of = self.before(record, due.direction);
        of.retain_mut(|one| {
            one.course = course(one.record, due.direction, self.rules, at);
            one.course.is_some()
        });
        // An instant to come is that of a later try.
        let due_at = record.due_at.filter(|due_at| *due_at <= now);
        let since = due_at.map_or(key.instant, |due_at| due_at.max(key.instant));
        let until = since + lead + self.graph.longest_wait(record, due.direction);
        let checks = if of.is_empty() { self.checks_before(record, due) } else { BTreeMap::new() };
        let waits = !of.is_empty() || !checks.is_empty();
        waits.then_some(Wait { direction: due.direction, of, checks, until })
    }

    /// Returns what a resource overtakes that is stopped or started now: after its deadline what it
    /// has waited for, and on a command everything that is not yet where it should be first. Only
    /// dispatch tries checks, and before the deadline it hands out nothing that waits for one.
    #[must_use]
    pub fn overtaken(&self, record: &Record, due: &Due, now: Timestamp) -> Option<Wait<'a>> {
        if due.handled.key.rank != Rank::Manual {
            let first = self.first(record, due, now);
            return first.filter(|wait| !wait.of.is_empty() || wait.until <= now);
        }
        let mut of = self.before(record, due.direction);
        let target = due.direction.target_state();
        of.retain_mut(|one| {
            one.course = course(one.record, due.direction, self.rules, now);
            let there = matches!(&one.record.phase, Phase::Settled { at } if *at == target);
            !there && !matches!(one.record.phase, Phase::Gone { .. })
        });
        let is_acting = due.mode == Mode::Act && !of.is_empty();
        is_acting.then_some(Wait {
            direction: due.direction,
            of,
            checks: BTreeMap::new(),
            until: now,
        })
    }

    /// Returns the records that go before one.
    fn before(&self, record: &Record, direction: Direction) -> Vec<Waited<'a>> {
        let own = self.graph.places(record);
        let first = self.placed.iter().filter(|(other, places)| {
            other.reference != record.reference && self.graph.go_before(places, &own, direction)
        });
        first.map(|(record, _)| Waited { record, course: None }).collect()
    }

    /// Returns the checks of the groups that a resource follows and that have a running member.
    fn checks_before(&self, record: &Record, due: &Due) -> BTreeMap<&'a GroupName, &'a Check> {
        if due.direction == Direction::Stop || record.failing == Some(due.handled.key) {
            return BTreeMap::new();
        }
        let own = self.graph.places(record);
        let running = due.direction.target_state();
        let goes_first = |(name, check): &(&GroupName, &Check)| {
            let group = [Followed::Group((*name).clone())];
            let is_running = |(one, places): &(&Record, Vec<Followed>)| {
                places.contains(&group[0])
                    && matches!(one.phase, Phase::Settled { at } if at == running)
            };
            !self.passed.contains(check)
                && !own.contains(&group[0])
                && self.graph.go_before(&group, &own, due.direction)
                && self.placed.iter().any(is_running)
        };
        let groups = self.graph.groups.iter();
        let checks = groups.filter_map(|(name, group)| Some((name, group.check.as_ref()?)));
        checks.filter(goes_first).collect()
    }

    /// Returns the wave in which each resource goes, from 1 on: it waits for those of the waves
    /// before.
    #[must_use]
    pub fn waves(&self, direction: Direction) -> BTreeMap<&'a ResourceRef, usize> {
        let mut left: BTreeSet<_> = self.placed.iter().map(|(_, places)| places).collect();
        let mut wave_of = BTreeMap::new();
        for wave in 1..=left.len() {
            let waits = |one: &Vec<Followed>| {
                left.iter().any(|other| self.graph.go_before(other, one, direction))
            };
            let first: Vec<_> = left.iter().copied().filter(|one| !waits(one)).collect();
            for one in first {
                left.remove(one);
                wave_of.insert(one, wave);
            }
        }
        let wave = |places| wave_of.get(places).copied().unwrap_or(1);
        self.placed.iter().map(|(record, places)| (&record.reference, wave(places))).collect()
    }
}

/// Returns how far a resource is on its way to a state; `None` if it is there, or not on its way.
fn course(
    record: &Record,
    direction: Direction,
    rules: Rules<'_>,
    at: Timestamp,
) -> Option<Course> {
    let under_way = record.under_way_towards(direction);
    let under_way = under_way.map(|transition| Course::UnderWay { since: transition.claimed_at });
    let target = direction.target_state();
    match judge(record, Subject::recorded(record), rules, at).decision {
        Decision::AskAgain(towards) if towards == direction => under_way,
        Decision::Act(due) if due.direction == direction && due.mode == Mode::Act => {
            let there = matches!(record.phase, Phase::Settled { at } if at == target);
            let fails = record.failing == Some(due.handled.key);
            let waits = if fails { Course::Failing } else { Course::Due };
            (!there).then(|| under_way.unwrap_or(waits))
        }
        Decision::Leave(LeaveReason::Handled) => under_way,
        Decision::Act(_) | Decision::AskAgain(_) | Decision::Leave(_) => None,
    }
}

/// What a resource waits for.
#[derive(Debug, Clone)]
pub struct Wait<'a> {
    /// Whether it waits to stop or to start.
    pub direction: Direction,
    pub of: Vec<Waited<'a>>,
    /// What must pass before it starts; empty while it waits for resources.
    pub checks: BTreeMap<&'a GroupName, &'a Check>,
    /// When it goes on, whatever has become of them.
    pub until: Timestamp,
}

/// A resource that is waited for.
#[derive(Debug, Clone, Copy)]
pub struct Waited<'a> {
    pub record: &'a Record,
    course: Option<Course>,
}

/// How far a resource is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    UnderWay {
        since: Timestamp,
    },
    /// It could not be begun so far.
    Failing,
    Due,
}

impl Wait<'_> {
    /// Names what is waited for and how far it is: `orders (starting, 2m)`, or the checks.
    #[must_use]
    pub fn in_words(&self, now: Timestamp) -> String {
        let names = self.of.iter().take(NAMED).map(|one| {
            let state = one.state(self.direction, now);
            format!("{} ({state})", one.record.name)
        });
        let checks = self.checks.iter().take(NAMED);
        let checks = checks.map(|(group, check)| format!("the check of {group} ({check})"));
        let names = names.chain(checks).collect::<Vec<_>>().join(", ");
        match (self.of.len() + self.checks.len()).saturating_sub(NAMED) {
            0 => names,
            more => format!("{names} and {more} more"),
        }
    }
}

impl Waited<'_> {
    fn state(&self, direction: Direction, now: Timestamp) -> impl fmt::Display {
        let (doing, due, opposite) = match direction {
            Direction::Start => ("starting", "not started yet", Desired::Stopped),
            Direction::Stop => ("stopping", "not stopped yet", Desired::Running),
        };
        match self.course {
            Some(Course::UnderWay { since }) => {
                format!("{doing}, {}m", now.duration_since(since).as_mins())
            }
            Some(Course::Failing) => "failing".to_owned(),
            Some(Course::Due) => due.to_owned(),
            None => opposite.to_string(),
        }
    }
}

#[cfg(test)]
mod tests;
