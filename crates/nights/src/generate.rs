//! Generates a night from a seed: a fleet, schedules, and bad luck where it does the most harm.

mod checks;
mod fleet;
mod lab;
mod pauses;
mod renames;
pub(crate) mod schedules;

use std::collections::{BTreeMap, BTreeSet};

use cloud_simulator::{Act, Offer};
use domain::{
    AccountName, ResourceKind, ResourceRef, ScheduleName,
    configuration::{OverrideTarget, Selector},
    hibernation::AttachmentName,
    record::Direction,
    schedule::{Desired, Schedule},
};
use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};

use crate::{
    night::{EventKind, Fault, Function, Night, NightEvent, RequestKind, Setup},
    plans,
};
pub(crate) use renames::BUREAU;

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// The length of each rough part of a night, and of the calm part after it.
const ROUGH: SignedDuration = SignedDuration::from_hours(60);
const CALM: SignedDuration = SignedDuration::from_hours(14);

/// One night in a hundred has a hundred machines, and takes as long as the others together: those
/// whose seeds end like this.
const LARGE: u64 = 99;

const LATER: u64 = 0x6c61_7465_7220_6f6e;

/// How long everything gets to settle after the last bad luck.
const SETTLES: SignedDuration = SignedDuration::from_mins(100);

/// Generates the night of a seed.
#[must_use]
pub fn night(seed: u64) -> Night {
    let mut chance = Rng::with_seed(seed);
    let begins = begins(&mut chance);
    let ends = begins + DAY * chance.i32(14..=17);
    let schedules = schedules::random(&mut chance, begins, ends);
    let is_large = seed % 100 == LARGE;
    let fleet = fleet::Fleet::random(&mut chance, schedules.keys(), is_large);
    let setup = fleet.setup(&mut chance, schedules);
    let mut generator = EventGenerator {
        chance,
        later: Rng::with_seed(seed ^ LATER),
        begins,
        ends,
        fleet,
        setup,
        happenings: Vec::new(),
    };
    generator.fill();
    generator.pauses(seed);
    generator.renames(seed);
    generator.happenings.sort_by_key(|event| event.at);
    let mut night = Night {
        seed,
        begins,
        ends,
        accounts: generator.fleet.accounts,
        machines: BTreeMap::new(),
        fleet: generator
            .fleet
            .members
            .into_iter()
            .map(|one| one.toml)
            .chain(generator.fleet.bystanders)
            .collect(),
        setup: generator.setup,
        happenings: generator.happenings,
    };
    lab::add(&mut night);
    checks::add(&mut night);
    night
}

/// Returns when a night begins. Half of the nights contain clock changes: Europe's and America's
/// are one week apart in autumn and two in spring.
fn begins(chance: &mut Rng) -> Timestamp {
    let day = match chance.u8(..8) {
        0..=1 => format!("2026-10-{}", chance.u8(14..=22)),
        2..=3 => format!("2027-03-{}", chance.u8(12..=15)),
        4 => "2026-12-22".to_owned(),
        _ => format!("2026-{:02}-{:02}", chance.u8(5..=9), chance.u8(1..=28)),
    };
    let minute = chance.u32(..24 * 60);
    let text = format!("{day}T{:02}:{:02}:00Z", minute / 60, minute % 60);
    text.parse().expect("a day of the calendar")
}

struct EventGenerator {
    chance: Rng,
    /// Draws what was added later, so that the rest of a seed's night stays what it was.
    later: Rng,
    begins: Timestamp,
    ends: Timestamp,
    fleet: fleet::Fleet,
    setup: Setup,
    happenings: Vec<NightEvent>,
}

fn can_be_hibernated(resource: &ResourceRef) -> bool {
    matches!(resource.kind(), ResourceKind::Droplet | ResourceKind::Server)
}

impl EventGenerator {
    fn fill(&mut self) {
        let mut from = self.begins + HOUR / 2;
        while from < self.ends {
            let until = (from + ROUGH).min(self.ends - CALM);
            if until > from {
                self.rough(from, until);
            }
            let inspected = (until.max(from) + CALM).min(self.ends - SignedDuration::from_secs(1));
            self.add(inspected, EventKind::Inspect);
            from = inspected + SignedDuration::from_mins(1);
        }
    }

    fn add(&mut self, at: Timestamp, what: EventKind) {
        self.happenings.push(NightEvent { at, what });
    }

    fn apply(&mut self, at: Timestamp, setup: Setup) {
        self.add(at, EventKind::Apply { setup: Box::new(setup) });
    }

    /// Adds bad luck from an instant on. By `until` the last of it is over, effects included.
    fn rough(&mut self, from: Timestamp, until: Timestamp) {
        let inspected = until + CALM;
        let until = until - SETTLES;
        if until <= from {
            return;
        }
        self.rehearse(from, until);
        let mut hot = self.edges(from, until);
        for _ in 0..self.chance.u32(0..4) {
            let at = self.instant(from, until);
            let mut what = self.override_or_command();
            if let EventKind::Override { minutes, later, .. } = &mut what {
                if self.later.u8(..3) == 0 {
                    *later = self.later.i64(0..=minutes_between(at, until));
                    hot.push(at + SignedDuration::from_mins(*later));
                }
                if self.later.bool() {
                    // It stands at the next inspection.
                    *minutes = minutes_between(at, inspected) + 60;
                }
            }
            self.add(at, what);
            hot.push(at);
        }
        if self.chance.u8(..4) == 0 {
            let at = self.near(&hot, from, until);
            let setup = self.another_setup();
            self.apply(at, setup);
            hot.push(at);
        }
        for _ in 0..self.chance.u32(0..5) {
            let at = self.near(&hot, from, until);
            self.person(at, until);
        }
        if self.chance.u8(..4) == 0 {
            let at = self.near(&hot, from, until);
            self.withdraw(at, until);
        }
        if self.chance.u8(..6) == 0 {
            let at = self.near(&hot, from, until);
            self.rotate(at, until);
        }
        if self.chance.u8(..6) == 0 {
            let at = self.near(&hot, from, until);
            self.remove_account(at, until);
        }
        if self.chance.u8(..12) == 0 {
            let at = self.near(&hot, from, until);
            self.long_outage(at, until);
        }
        if self.chance.u8(..32) == 0 {
            let at = self.near(&hot, from, until);
            let minutes = self.chance.i64(5..700).min(minutes_between(at, until));
            let account = fleet::Fleet::account(&mut self.chance);
            self.add(at, EventKind::Mistake { account, minutes });
        }
        if self.chance.u8(..24) == 0 {
            let at = self.near(&hot, from, until);
            self.untag_account(at, until);
        }
        self.add_later(&hot, from, until);
        self.give_room(until);
        if self.setup.settings.max_new == 0 {
            let at = self.instant(from, until);
            self.add(at, EventKind::Approve);
        }
        for at in hot.clone() {
            for _ in 0..[0, 0, 1, 1, 2, 3, 5][self.chance.usize(..7)] {
                let at = at + SignedDuration::from_secs(self.chance.i64(-60..900));
                if at < until {
                    let what = self.random_failure();
                    self.add(at, what);
                }
            }
        }
    }

    fn edges(&mut self, from: Timestamp, until: Timestamp) -> Vec<Timestamp> {
        let mut edges = Vec::new();
        for rule in self.setup.schedules.values() {
            edges.extend(edges_of(&rule.schedule, from, until));
        }
        edges
    }

    fn instant(&mut self, from: Timestamp, until: Timestamp) -> Timestamp {
        let seconds = until.duration_since(from).as_secs().max(1);
        from + SignedDuration::from_secs(self.chance.i64(0..seconds))
    }

    /// Returns an instant, mostly near one at which much happens anyway.
    fn near(&mut self, hot: &[Timestamp], from: Timestamp, until: Timestamp) -> Timestamp {
        if hot.is_empty() || self.chance.u8(..4) == 0 {
            return self.instant(from, until);
        }
        let at = hot[self.chance.usize(..hot.len())];
        let at = at + SignedDuration::from_secs(self.chance.i64(-1200..1200));
        at.clamp(from, until)
    }

    fn override_or_command(&mut self) -> EventKind {
        let resource = self.resource();
        let schedule = self.schedule();
        let target = if self.chance.bool() {
            OverrideTarget::Resource(resource.clone())
        } else {
            OverrideTarget::Schedule(schedule)
        };
        let desired = if self.chance.bool() { Desired::Running } else { Desired::Stopped };
        match self.chance.u8(..6) {
            0..=2 => EventKind::Override {
                target,
                desired,
                minutes: [5, 20, 90, 480][self.chance.usize(..4)],
                later: 0,
            },
            3 => EventKind::Clear { target },
            _ => EventKind::Command {
                direction: Direction::towards(desired),
                resource,
                without: Vec::new(),
            },
        }
    }

    fn resource(&mut self) -> ResourceRef {
        let place = self.chance.usize(..self.fleet.members.len());
        self.fleet.members[place].reference.clone()
    }

    fn schedule(&mut self) -> ScheduleName {
        let place = self.chance.usize(..self.setup.schedules.len());
        let mut names = self.setup.schedules.keys();
        names.nth(place).cloned().expect("a night has schedules")
    }

    /// Returns a setup with the same accounts and other rules.
    fn another_setup(&mut self) -> Setup {
        let schedules = if self.chance.bool() {
            schedules::random(&mut self.chance, self.begins, self.ends)
        } else {
            self.setup.schedules.clone()
        };
        self.fleet.setup(&mut self.chance, schedules)
    }

    fn person(&mut self, at: Timestamp, until: Timestamp) {
        let place = self.chance.usize(..self.fleet.members.len());
        let member = self.fleet.members[place].clone();
        let resource = member.reference.clone();
        match self.chance.u8(..14) {
            12 => self.tidy_up(at, until, &resource),
            13 if can_be_hibernated(&resource) => self.reword_snapshots(at, until, &resource),
            0 => {
                let tags = self.fleet.tags(&mut self.chance, &member);
                self.add(at, EventKind::Person { resource, act: Act::Retag { tags } });
            }
            1 => {
                let name = format!("renamed-{}", self.chance.u8(..9));
                self.add(at, EventKind::Person { resource, act: Act::Rename { name } });
            }
            2 if self.chance.u8(..3) == 0 => {
                self.add(at, EventKind::Person { resource, act: Act::Delete });
            }
            3 if member.is_machine() => self.move_machine(at, &member),
            3 => {
                if let Some((busy, idle)) = member.statuses() {
                    let set = |status: &str| EventKind::Person {
                        resource: resource.clone(),
                        act: Act::SetStatus { status: status.to_owned() },
                    };
                    let back = at + SignedDuration::from_secs(self.chance.i64(60..1800));
                    self.add(at, set(busy));
                    self.add(back.min(until), set(idle));
                }
            }
            5 if can_be_hibernated(&resource) => {
                let back = at + SignedDuration::from_mins(self.chance.i64(1..600));
                for (at, off) in [(at, true), (back.min(until), false)] {
                    let resource = resource.clone();
                    self.add(at, EventKind::LabelSnapshots { resource, off });
                }
            }
            2 if can_be_hibernated(&resource) => {
                let only = match self.chance.u8(..4) {
                    0 => None,
                    place => Some(usize::from(place)),
                };
                self.add(at, EventKind::LoseSnapshots { resource, only });
            }
            4 => {
                let fleet = self.fleet.newcomer(&mut self.chance);
                self.add(at, EventKind::Create { fleet });
            }
            _ => {
                let act = member.act(&mut self.chance);
                self.add(at, EventKind::Person { resource, act });
            }
        }
    }

    /// Lets a person move a machine to another plan, and usually start it there.
    fn move_machine(&mut self, at: Timestamp, member: &fleet::Member) {
        let mut acts = vec![Act::PowerOff, member.another_plan(&mut self.chance)];
        if self.chance.u8(..4) > 0 {
            acts.push(Act::PowerOn);
        }
        let mut at = at;
        for act in acts {
            let resource = member.reference.clone();
            self.add(at, EventKind::Person { resource, act });
            at += SignedDuration::from_secs(self.chance.i64(45..450));
        }
    }

    /// Lets a person hibernate machines for the first time and start them again.
    fn rehearse(&mut self, from: Timestamp, until: Timestamp) {
        for member in self.fleet.members.clone() {
            let resource = member.reference;
            if !can_be_hibernated(&resource) || self.chance.u8(..4) == 0 {
                continue;
            }
            let at = if from == self.begins + HOUR / 2 {
                self.begins + SignedDuration::from_mins(self.chance.i64(6..20))
            } else {
                self.instant(from, until)
            };
            let back = at + SignedDuration::from_mins(self.chance.i64(20..80));
            self.add(at, EventKind::Rehearse { resource: resource.clone() });
            self.start_without(back, resource, Vec::new());
        }
    }

    /// Makes a plan unavailable for some time.
    fn withdraw(&mut self, at: Timestamp, until: Timestamp) {
        let kind = if self.chance.bool() { ResourceKind::Droplet } else { ResourceKind::Server };
        let sold: Vec<_> = plans::of(kind).iter().filter(|plan| plan.is_sold).collect();
        let plan = sold[self.chance.usize(..sold.len())].name.to_owned();
        let deprecated = kind == ResourceKind::Server && self.chance.u8(..3) == 0;
        let offer = if deprecated {
            Offer::Deprecated { announced: at, unavailable_after: at + DAY * 60 }
        } else {
            Offer::Unavailable
        };
        let back = at + SignedDuration::from_mins(self.chance.i64(10..900));
        let given_back = EventKind::Offer { plan: plan.clone(), offer: Offer::Available };
        self.add(at, EventKind::Offer { plan, offer });
        self.add(back.min(until), given_back);
    }

    /// Lets a person replace a token, and store the new one for the functions before or after that.
    fn rotate(&mut self, at: Timestamp, until: Timestamp) {
        let account = fleet::Fleet::account(&mut self.chance);
        let token = format!("secret-of-{account}-{}", at.as_second());
        let left = until.duration_since(at).as_secs().max(0);
        let after = self.chance.i64(0..1500).min(left);
        let stored_after = if self.chance.u8(..3) == 0 { -after } else { after };
        self.add(at, EventKind::Rotate { account, token, stored_after });
    }

    /// Removes an account from the configuration and adds it back later.
    fn remove_account(&mut self, at: Timestamp, until: Timestamp) {
        let account = fleet::Fleet::account(&mut self.chance);
        let minutes = [5, 45, 300, 1800][self.chance.usize(..4)];
        let back = at + SignedDuration::from_mins(self.chance.i64(1..=minutes));
        let whole = self.setup_at(at);
        let mut part = whole.clone();
        part.accounts.remove(&account);
        for rule in part.schedules.values_mut() {
            let is_other = |entry: &Selector| match entry {
                Selector::Reference(resource) => resource.account != account,
                Selector::Name(_) => true,
            };
            rule.resources.retain(is_other);
        }
        self.apply(at, part);
        self.apply(back.min(until), whole);
    }

    /// Returns the configuration that has been applied last by an instant.
    fn setup_at(&self, at: Timestamp) -> Setup {
        let mut latest = (self.begins, &self.setup);
        for one in self.happenings.iter().filter(|one| one.at <= at) {
            if let EventKind::Apply { setup } = &one.what
                && one.at >= latest.0
            {
                latest = (one.at, setup);
            }
        }
        latest.1.clone()
    }

    /// Adds what draws from a stream of its own.
    fn add_later(&mut self, hot: &[Timestamp], from: Timestamp, until: Timestamp) {
        std::mem::swap(&mut self.chance, &mut self.later);
        if self.chance.u8(..16) == 0 {
            let at = self.near(hot, from, until);
            self.add_second_account(at, until);
        }
        if self.chance.u8(..24) == 0 {
            let at = self.near(hot, from, until);
            self.restore(at, until);
        }
        if self.chance.u8(..16) == 0 {
            let at = self.near(hot, from, until);
            let minutes = [20, 300, 1800][self.chance.usize(..3)];
            let minutes = self.chance.i64(10..=minutes).min(minutes_between(at, until));
            let resource = self.resource();
            self.add(at, EventKind::Newer { resource, minutes });
        }
        for _ in 0..self.chance.u32(0..3) {
            let at = self.near(hot, from, until);
            self.tag_until(at, until);
        }
        for at in hot {
            if self.chance.u8(..6) == 0 {
                self.cross(*at, until);
            }
        }
        std::mem::swap(&mut self.chance, &mut self.later);
    }

    /// Lets a person act on something while a change of it is on its way, soon after an instant.
    fn cross(&mut self, at: Timestamp, until: Timestamp) {
        let place = self.chance.usize(..self.fleet.members.len());
        let member = self.fleet.members[place].clone();
        let act = match self.chance.u8(..3) {
            0 => Act::PowerOn,
            1 => Act::Reboot,
            _ => member.act(&mut self.chance),
        };
        let is_of_size = matches!(act, Act::Resize { .. } | Act::Scale { .. });
        let is_of_power = matches!(act, Act::PowerOn | Act::PowerOff | Act::Shutdown | Act::Reboot);
        let at = at + SignedDuration::from_secs(self.chance.i64(-30..120));
        let after = self.chance.u32(..3);
        if (is_of_size || is_of_power) && at < until {
            let fault = Fault::Crossed(act);
            self.add(at, EventKind::Fault { of: RequestKind::Change, after, fault });
        }
    }

    /// Lets a person tag a resource to run until a time, and give the tag another value later, or
    /// remove it.
    fn tag_until(&mut self, at: Timestamp, until: Timestamp) {
        let resource = self.resource();
        let mut at = at;
        for _ in 0..self.chance.u8(1..4) {
            let value = match self.chance.u8(..8) {
                0..=1 => None,
                2 => Some("tomorrow".to_owned()),
                3..=4 => Some(format!("{}h", self.chance.u8(1..20))),
                5 => Some(format!("{}m", self.chance.u8(5..90))),
                6 => {
                    let day = (at + SignedDuration::from_hours(12)).strftime("%Y-%m-%d");
                    Some(format!("{day}T{:02}:30", self.chance.u8(..24)))
                }
                _ => Some(format!("{:02}:{:02}", self.chance.u8(..24), self.chance.u8(..60))),
            };
            self.add(at, EventKind::Until { resource: resource.clone(), value });
            at = (at + SignedDuration::from_mins(self.chance.i64(1..400))).min(until);
        }
    }

    /// Restores the table of resources as it was up to some hours before.
    fn restore(&mut self, at: Timestamp, until: Timestamp) {
        let minutes = [90, 600, 1800][self.chance.usize(..3)];
        let back = at + SignedDuration::from_mins(self.chance.i64(10..=minutes));
        let back = back.min(until);
        self.add(at, EventKind::BackUp);
        // The timers are disabled until it is done.
        let before = back - SignedDuration::from_mins(4);
        for function in [Function::Dispatch, Function::PollStatus] {
            self.add(before, EventKind::TicksLost { function, minutes: 6 });
        }
        self.add(back, EventKind::Restore);
    }

    /// Configures a second account over one project, and removes it later.
    fn add_second_account(&mut self, at: Timestamp, until: Timestamp) {
        let of = fleet::Fleet::account(&mut self.chance);
        let (name, account) = fleet::Fleet::second_account(&mut self.chance, &of);
        let minutes = [20, 300, 1800][self.chance.usize(..3)];
        let back = (at + SignedDuration::from_mins(self.chance.i64(10..=minutes))).min(until);
        let mut both = self.setup_at(at);
        both.accounts.insert(name.clone(), account);
        self.apply(at, both);
        let mut one = self.setup_at(back);
        one.accounts.remove(&name);
        self.apply(back, one);
    }

    /// Lets nothing tick for hours, or an account answer nothing.
    fn long_outage(&mut self, at: Timestamp, until: Timestamp) {
        let minutes = self.chance.i64(60..900).min(minutes_between(at, until));
        if self.chance.bool() {
            let account = fleet::Fleet::account(&mut self.chance);
            let fault = outage(&mut self.chance);
            let outage = EventKind::Outage { account, minutes, fault };
            self.add(at, outage);
            return;
        }
        for function in [Function::Dispatch, Function::PollStatus] {
            self.add(at, EventKind::TicksLost { function, minutes });
        }
    }

    /// Takes the words for Offhours from everything in an account, and gives them back later.
    fn untag_account(&mut self, at: Timestamp, until: Timestamp) {
        let account = fleet::Fleet::account(&mut self.chance);
        let back = at + SignedDuration::from_mins(self.chance.i64(1..900));
        for member in self.fleet.members.clone() {
            if member.reference.account != account {
                continue;
            }
            let tags = self.fleet.tags(&mut self.chance, &member);
            let mut bare = tags.clone();
            bare.retain(|tag| !tag.starts_with("offhours"));
            for (at, tags) in [(at, bare), (back.min(until), tags)] {
                let resource = member.reference.clone();
                let act = Act::Retag { tags };
                self.add(at, EventKind::Person { resource, act });
            }
        }
    }

    /// Lets a person delete what is attached to a machine, give its address to another one, or replace
    /// the account's SSH key, and forget records. Usually they go without what the machine has lost
    /// when they start it.
    fn tidy_up(&mut self, at: Timestamp, until: Timestamp, resource: &ResourceRef) {
        let resource = resource.clone();
        let Some((path, name)) = self.attached_to(&resource).filter(|_| self.chance.u8(..3) > 0)
        else {
            self.add(at, EventKind::Forget { resource });
            return;
        };
        if path.starts_with("ssh_keys/") {
            let back = at + SignedDuration::from_mins(self.chance.i64(1..900));
            self.add(back.min(until), EventKind::Create { fleet: fleet::another_key(back) });
        }
        let to = self.another_machine(&resource).filter(|_| path.contains("_ips/"));
        let what = match to.filter(|_| self.chance.bool()) {
            Some(to) => EventKind::MoveAddress { resource: resource.clone(), path, to },
            None => EventKind::DeleteOther { resource: resource.clone(), path },
        };
        self.add(at, what);
        if let Some(name) = name
            && self.chance.u8(..3) > 0
        {
            let back = at + SignedDuration::from_mins(self.chance.i64(1..900));
            self.start_without(back.min(until), resource, vec![name]);
        }
    }

    fn another_machine(&mut self, than: &ResourceRef) -> Option<ResourceRef> {
        let references = self.fleet.members.iter().map(|member| &member.reference);
        let others = references.filter(|other| other.kind() == than.kind() && *other != than);
        self.chance.choice(others.collect::<Vec<_>>()).cloned()
    }

    /// Returns the path of something that is attached to a machine at first, and its name; of a key,
    /// which none is awaited with, only the path.
    fn attached_to(&mut self, machine: &ResourceRef) -> Option<(String, Option<AttachmentName>)> {
        if machine.kind() == ResourceKind::Server && self.chance.u8(..6) == 0 {
            return Some(("ssh_keys/990001".to_owned(), None));
        }
        let mut members = self.fleet.members.iter();
        let member = members.find(|member| member.reference == *machine)?;
        let (path, name) = self.chance.choice(member.attached())?;
        Some((path, Some(name)))
    }

    fn start_without(
        &mut self,
        at: Timestamp,
        resource: ResourceRef,
        without: Vec<AttachmentName>,
    ) {
        self.add(at, EventKind::Command { direction: Direction::Start, resource, without });
    }

    /// Lets a cloud call the snapshots of a machine something else for some time.
    fn reword_snapshots(&mut self, at: Timestamp, until: Timestamp, resource: &ResourceRef) {
        let words = ["unavailable", "creating", "retired", "deleted", "pending"];
        let word = words[self.chance.usize(..words.len())].to_owned();
        let back = at + SignedDuration::from_mins(self.chance.i64(1..120));
        for (at, word) in [(at, Some(word)), (back.min(until), None)] {
            let resource = resource.clone();
            self.add(at, EventKind::ShowSnapshots { resource, word });
        }
    }

    /// Makes room on each host again and lets resizes succeed.
    fn give_room(&mut self, at: Timestamp) {
        let taken = |event: &NightEvent| {
            let EventKind::Person { resource, act } = &event.what else {
                return None;
            };
            matches!(act, Act::TakeRoom { .. }).then(|| resource.clone())
        };
        let taken: BTreeSet<_> = self.happenings.iter().filter_map(taken).collect();
        for resource in taken {
            let act = Act::TakeRoom { refusals: 0, failures: 0 };
            self.add(at, EventKind::Person { resource, act });
        }
    }

    /// Returns something that goes wrong with a timer, an invocation, a clock, or a request.
    fn random_failure(&mut self) -> EventKind {
        let chance = &mut self.chance;
        let timer = if chance.bool() { Function::Dispatch } else { Function::PollStatus };
        match chance.u8(..40) {
            0 => EventKind::TicksLost { function: timer, minutes: chance.i64(1..40) },
            1..=2 => EventKind::TickDoubled {
                function: timer,
                seconds: [0, 0, 1, 20, 90][chance.usize(..5)],
            },
            3 => EventKind::TickLate { function: timer, seconds: chance.i64(1..400) },
            4 => EventKind::InvocationLost,
            5..=6 => EventKind::InvocationDoubled { seconds: [0, 0, 1, 20, 59][chance.usize(..5)] },
            7 => EventKind::InvocationLate { seconds: chance.i64(1..60) },
            8 => EventKind::Skew {
                function: Function::ALL[chance.usize(..4)],
                seconds: chance.i64(-2..=2),
            },
            9..=10 => {
                let account: AccountName = fleet::Fleet::account(&mut self.chance);
                let fault = outage(&mut self.chance);
                EventKind::Outage { account, minutes: self.chance.i64(1..25), fault }
            }
            11..=24 => EventKind::Fault {
                of: if chance.u8(..3) == 0 { RequestKind::Store } else { RequestKind::Write },
                after: chance.u32(..8),
                fault: store_fault(chance),
            },
            25..=26 if self.fleet.is_paged => EventKind::Fault {
                of: RequestKind::LaterPage,
                after: chance.u32(..2),
                fault: if chance.u8(..3) == 0 { cloud_fault(chance) } else { Fault::Shifted },
            },
            25..=30 => EventKind::Fault {
                of: RequestKind::Cloud,
                after: chance.u32(..8),
                fault: cloud_fault(chance),
            },
            _ => EventKind::Fault {
                of: RequestKind::Change,
                after: chance.u32(..3),
                fault: change_fault(chance),
            },
        }
    }
}

/// Returns the times in which anything may go wrong: the rest before each inspection is calm.
fn rough_times(begins: Timestamp, happenings: &[NightEvent]) -> Vec<(Timestamp, Timestamp)> {
    let mut from = begins + HOUR / 2;
    let mut times = Vec::new();
    for inspection in happenings.iter().filter(|event| is_inspection(event)) {
        let until = inspection.at - CALM - SETTLES;
        if until > from {
            times.push((from, until));
        }
        from = inspection.at + SignedDuration::from_mins(1);
    }
    times
}

fn is_inspection(event: &NightEvent) -> bool {
    matches!(event.what, EventKind::Inspect)
}

fn minutes_between(from: Timestamp, until: Timestamp) -> i64 {
    until.duration_since(from).as_mins().max(0)
}

/// Returns the edges of a schedule between two instants, at most 200.
pub(crate) fn edges_of(schedule: &Schedule, from: Timestamp, until: Timestamp) -> Vec<Timestamp> {
    schedule.edges(from).map(|edge| edge.at).take_while(|at| *at < until).take(200).collect()
}

fn outage(chance: &mut Rng) -> Fault {
    match chance.u8(..6) {
        0 => Fault::TokenRefused,
        1 => Fault::Throttled { retry_after: None },
        2 => Fault::Failed { after_effect: false },
        3 => Fault::Slow { seconds: 25 },
        4 => Fault::RequestLost,
        _ => Fault::Slow { seconds: chance.u64(1..8) },
    }
}

fn store_fault(chance: &mut Rng) -> Fault {
    match chance.u8(..12) {
        0..=1 => Fault::DiesBefore,
        2..=3 => Fault::DiesAfter,
        4 => Fault::AnswerLost,
        5 => Fault::RequestLost,
        6 => Fault::Slow { seconds: chance.u64(1..5) },
        7 => Fault::Throttled { retry_after: None },
        8 => Fault::Failed { after_effect: chance.bool() },
        9 => Fault::Conflict,
        10 => Fault::Unprocessed,
        _ => Fault::IndexLags,
    }
}

/// Returns a fault for any request to a cloud.
fn cloud_fault(chance: &mut Rng) -> Fault {
    match chance.u8(..11) {
        0 => Fault::DiesBefore,
        1 => Fault::DiesAfter,
        2 => Fault::AnswerLost,
        3 => Fault::RequestLost,
        4 => Fault::Slow { seconds: [2, 8, 19, 25][chance.usize(..4)] },
        5 => Fault::Throttled { retry_after: chance.bool().then(|| chance.u64(1..90)) },
        6 => Fault::Failed { after_effect: chance.bool() },
        7..=8 => Fault::Truncated,
        9 => Fault::Malformed {
            body: ["", "<html>502</html>", "{}", "[]", "null", "{\"servers\": null}"]
                [chance.usize(..6)]
            .to_owned(),
        },
        _ => Fault::TokenRefused,
    }
}

/// Returns a fault for a change at a cloud.
fn change_fault(chance: &mut Rng) -> Fault {
    match chance.u8(..7) {
        0 => Fault::Busy,
        1 if chance.u8(..3) == 0 => Fault::Refused,
        2 => Fault::Late { seconds: chance.i64(1..80) },
        3 => Fault::Sluggish { seconds: chance.i64(1..420) },
        4 => Fault::DiesAfter,
        5 => Fault::AnswerLost,
        _ => cloud_fault(chance),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_configuration_lists_a_resource_under_two_schedules() {
        for seed in 9_000_000..9_000_300 {
            let night = night(seed);
            let setups = night.happenings.iter().filter_map(|one| {
                let EventKind::Apply { setup } = &one.what else { return None };
                Some(&**setup)
            });
            for setup in setups.chain([&night.setup]) {
                let mut listed = BTreeSet::new();
                let all = setup.schedules.values().flat_map(|rule| &rule.resources);
                all.for_each(|entry| assert!(listed.insert(entry), "{seed}: {entry} twice"));
            }
        }
    }
}
