//! Makes a night from a seed: a fleet, schedules, and bad luck where it does most harm.

mod fleet;
mod schedules;

use std::collections::BTreeSet;

use cloud_simulator::{Act, Offer};
use domain::{
    AccountName, ResourceKind, ResourceRef, ScheduleName,
    configuration::Target,
    record::Direction,
    schedule::{Desired, Schedule},
};
use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};

use crate::{
    night::{Fault, Function, Happening, Night, Setup, Side, What},
    plans,
};

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// How long each rough part of a night is, and the calm one after it.
const ROUGH: SignedDuration = SignedDuration::from_hours(60);
const CALM: SignedDuration = SignedDuration::from_hours(14);

/// How long after the last bad luck everything is to have settled.
const SETTLES: SignedDuration = SignedDuration::from_mins(100);

/// The night of a seed.
#[must_use]
pub fn night(seed: u64) -> Night {
    let mut chance = Rng::with_seed(seed);
    let begins = begins(&mut chance);
    let ends = begins + DAY * chance.i32(14..=17);
    let schedules = schedules::some(&mut chance, begins, ends);
    let fleet = fleet::Fleet::some(&mut chance, schedules.keys());
    let setup = fleet.setup(&mut chance, schedules);
    let mut luck = BadLuck {
        chance,
        begins,
        ends,
        fleet,
        setup,
        happenings: Vec::new(),
    };
    luck.fill();
    luck.happenings.sort_by_key(|happening| happening.at);
    Night {
        seed,
        begins,
        ends,
        accounts: luck.fleet.accounts,
        fleet: luck
            .fleet
            .members
            .into_iter()
            .map(|one| one.toml)
            .chain(luck.fleet.bystanders)
            .collect(),
        setup: luck.setup,
        happenings: luck.happenings,
    }
}

/// Half of the nights have a change of clocks in them: Europe's and America's are a week apart.
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

struct BadLuck {
    chance: Rng,
    begins: Timestamp,
    ends: Timestamp,
    fleet: fleet::Fleet,
    setup: Setup,
    happenings: Vec<Happening>,
}

fn can_be_hibernated(resource: &ResourceRef) -> bool {
    matches!(
        resource.kind(),
        ResourceKind::Droplet | ResourceKind::Server
    )
}

impl BadLuck {
    fn fill(&mut self) {
        let mut from = self.begins + HOUR / 2;
        while from < self.ends {
            let until = (from + ROUGH).min(self.ends - CALM);
            if until > from {
                self.rough(from, until);
            }
            let inspected = (until.max(from) + CALM).min(self.ends - SignedDuration::from_secs(1));
            self.add(inspected, What::Inspect);
            from = inspected + SignedDuration::from_mins(1);
        }
    }

    fn add(&mut self, at: Timestamp, what: What) {
        self.happenings.push(Happening { at, what });
    }

    /// Bad luck from an instant on; `until` is when the last of it ends, effects included.
    fn rough(&mut self, from: Timestamp, until: Timestamp) {
        let until = until - SETTLES;
        if until <= from {
            return;
        }
        self.rehearse(from, until);
        let mut hot = self.edges(from, until);
        for _ in 0..self.chance.u32(0..4) {
            let at = self.instant(from, until);
            let what = self.override_or_command();
            self.add(at, what);
            hot.push(at);
        }
        if self.chance.u8(..4) == 0 {
            let at = self.near(&hot, from, until);
            let setup = self.another_setup();
            self.add(at, What::Apply { setup });
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
        self.give_room(until);
        for at in hot.clone() {
            for _ in 0..[0, 0, 1, 1, 2, 3, 5][self.chance.usize(..7)] {
                let at = at + SignedDuration::from_secs(self.chance.i64(-60..900));
                if at < until {
                    let what = self.misfortune();
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

    /// Mostly near an instant at which much happens anyway.
    fn near(&mut self, hot: &[Timestamp], from: Timestamp, until: Timestamp) -> Timestamp {
        if hot.is_empty() || self.chance.u8(..4) == 0 {
            return self.instant(from, until);
        }
        let at = hot[self.chance.usize(..hot.len())];
        let at = at + SignedDuration::from_secs(self.chance.i64(-1200..1200));
        at.clamp(from, until)
    }

    fn override_or_command(&mut self) -> What {
        let resource = self.resource();
        let schedule = self.schedule();
        let target = if self.chance.bool() {
            Target::Resource(resource.clone())
        } else {
            Target::Schedule(schedule)
        };
        let desired = if self.chance.bool() {
            Desired::Running
        } else {
            Desired::Stopped
        };
        match self.chance.u8(..6) {
            0..=2 => What::Override {
                target,
                desired,
                minutes: [5, 20, 90, 480][self.chance.usize(..4)],
            },
            3 => What::Clear { target },
            _ => What::Command {
                direction: Direction::towards(desired),
                resource,
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

    /// The same accounts, and other rules.
    fn another_setup(&mut self) -> Setup {
        let schedules = if self.chance.bool() {
            schedules::some(&mut self.chance, self.begins, self.ends)
        } else {
            self.setup.schedules.clone()
        };
        self.fleet.setup(&mut self.chance, schedules)
    }

    fn person(&mut self, at: Timestamp, until: Timestamp) {
        let place = self.chance.usize(..self.fleet.members.len());
        let member = self.fleet.members[place].clone();
        let resource = member.reference.clone();
        match self.chance.u8(..12) {
            0 => {
                let tags = self.fleet.tags(&mut self.chance, &member);
                self.add(
                    at,
                    What::Person {
                        resource,
                        act: Act::Retag { tags },
                    },
                );
            }
            1 => {
                let name = format!("renamed-{}", self.chance.u8(..9));
                self.add(
                    at,
                    What::Person {
                        resource,
                        act: Act::Rename { name },
                    },
                );
            }
            2 if self.chance.u8(..3) == 0 => {
                self.add(
                    at,
                    What::Person {
                        resource,
                        act: Act::Delete,
                    },
                );
            }
            3 if member.is_machine() => self.move_machine(at, &member),
            3 => {
                if let Some((busy, idle)) = member.statuses() {
                    let set = |status: &str| What::Person {
                        resource: resource.clone(),
                        act: Act::SetStatus {
                            status: status.to_owned(),
                        },
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
                    self.add(at, What::LabelSnapshots { resource, off });
                }
            }
            2 if can_be_hibernated(&resource) && self.chance.u8(..4) == 0 => {
                self.add(at, What::LoseSnapshots { resource });
            }
            4 => {
                let fleet = self.fleet.newcomer(&mut self.chance);
                self.add(at, What::Create { fleet });
            }
            _ => {
                let act = member.act(&mut self.chance);
                self.add(at, What::Person { resource, act });
            }
        }
    }

    /// A person gives a machine another plan, and mostly lets it run on it.
    fn move_machine(&mut self, at: Timestamp, member: &fleet::Member) {
        let mut acts = vec![Act::PowerOff, member.another_plan(&mut self.chance)];
        if self.chance.u8(..4) > 0 {
            acts.push(Act::PowerOn);
        }
        let mut at = at;
        for act in acts {
            let resource = member.reference.clone();
            self.add(at, What::Person { resource, act });
            at += SignedDuration::from_secs(self.chance.i64(45..450));
        }
    }

    /// A person hibernates machines for the first time, and starts them again.
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
            let started = What::Command {
                direction: Direction::Start,
                resource: resource.clone(),
            };
            self.add(at, What::Rehearse { resource });
            self.add(back, started);
        }
    }

    /// A plan cannot be ordered for some hours.
    fn withdraw(&mut self, at: Timestamp, until: Timestamp) {
        let kind = if self.chance.bool() {
            ResourceKind::Droplet
        } else {
            ResourceKind::Server
        };
        let sold: Vec<_> = plans::of(kind).iter().filter(|plan| plan.is_sold).collect();
        let plan = sold[self.chance.usize(..sold.len())].name.to_owned();
        let deprecated = kind == ResourceKind::Server && self.chance.u8(..3) == 0;
        let offer = if deprecated {
            Offer::Deprecated {
                announced: at,
                unavailable_after: at + DAY * 60,
            }
        } else {
            Offer::Unavailable
        };
        let back = at + SignedDuration::from_mins(self.chance.i64(10..900));
        let given_back = What::Offer {
            plan: plan.clone(),
            offer: Offer::Available,
        };
        self.add(at, What::Offer { plan, offer });
        self.add(back.min(until), given_back);
    }

    /// A person replaces a token, and keeps the new one for the functions before or after that.
    fn rotate(&mut self, at: Timestamp, until: Timestamp) {
        let account = fleet::Fleet::account(&mut self.chance);
        let token = format!("secret-of-{account}-{}", at.as_second());
        let left = until.duration_since(at).as_secs().max(0);
        let after = self.chance.i64(0..1500).min(left);
        let stored_after = if self.chance.u8(..3) == 0 {
            -after
        } else {
            after
        };
        self.add(
            at,
            What::Rotate {
                account,
                token,
                stored_after,
            },
        );
    }

    /// An account is taken out of the configuration, and given back.
    fn remove_account(&mut self, at: Timestamp, until: Timestamp) {
        let account = fleet::Fleet::account(&mut self.chance);
        let minutes = [5, 45, 300, 1800][self.chance.usize(..4)];
        let back = at + SignedDuration::from_mins(self.chance.i64(1..=minutes));
        let mut applied = self.happenings.iter().filter(|one| one.at <= at);
        let mut latest = (self.begins, &self.setup);
        for one in &mut applied {
            if let What::Apply { setup } = &one.what
                && one.at >= latest.0
            {
                latest = (one.at, setup);
            }
        }
        let whole = latest.1.clone();
        let mut part = whole.clone();
        part.accounts.remove(&account);
        for rule in part.schedules.values_mut() {
            rule.resources
                .retain(|resource| resource.account != account);
        }
        self.add(at, What::Apply { setup: part });
        self.add(back.min(until), What::Apply { setup: whole });
    }

    /// By now there is room on each host again, and resizes end well.
    fn give_room(&mut self, at: Timestamp) {
        let taken = |happening: &Happening| {
            let What::Person { resource, act } = &happening.what else {
                return None;
            };
            matches!(act, Act::TakeRoom { .. }).then(|| resource.clone())
        };
        let taken: BTreeSet<_> = self.happenings.iter().filter_map(taken).collect();
        for resource in taken {
            let act = Act::TakeRoom {
                refusals: 0,
                failures: 0,
            };
            self.add(at, What::Person { resource, act });
        }
    }

    /// Something that goes wrong with a timer, an invocation, a clock or a request.
    fn misfortune(&mut self) -> What {
        let chance = &mut self.chance;
        let timer = if chance.bool() {
            Function::Dispatch
        } else {
            Function::PollStatus
        };
        match chance.u8(..40) {
            0 => What::TicksLost {
                function: timer,
                minutes: chance.i64(1..40),
            },
            1..=2 => What::TickDoubled {
                function: timer,
                seconds: [0, 0, 1, 20, 90][chance.usize(..5)],
            },
            3 => What::TickLate {
                function: timer,
                seconds: chance.i64(1..400),
            },
            4 => What::InvocationLost,
            5..=6 => What::InvocationDoubled {
                seconds: [0, 0, 1, 20, 59][chance.usize(..5)],
            },
            7 => What::InvocationLate {
                seconds: chance.i64(1..60),
            },
            8 => What::Skew {
                function: Function::ALL[chance.usize(..4)],
                seconds: chance.i64(-2..=2),
            },
            9..=10 => {
                let account: AccountName = fleet::Fleet::account(&mut self.chance);
                let fault = outage(&mut self.chance);
                What::Outage {
                    account,
                    minutes: self.chance.i64(1..25),
                    fault,
                }
            }
            11..=24 => What::Fault {
                of: if chance.u8(..3) == 0 {
                    Side::Store
                } else {
                    Side::Write
                },
                after: chance.u32(..8),
                fault: store_fault(chance),
            },
            25..=26 if self.fleet.is_paged => What::Fault {
                of: Side::LaterPage,
                after: chance.u32(..2),
                fault: if chance.u8(..3) == 0 {
                    cloud_fault(chance)
                } else {
                    Fault::Shifted
                },
            },
            25..=30 => What::Fault {
                of: Side::Cloud,
                after: chance.u32(..8),
                fault: cloud_fault(chance),
            },
            _ => What::Fault {
                of: Side::Change,
                after: chance.u32(..3),
                fault: change_fault(chance),
            },
        }
    }
}

/// The edges of a schedule between two instants.
pub(crate) fn edges_of(schedule: &Schedule, from: Timestamp, until: Timestamp) -> Vec<Timestamp> {
    schedule
        .edges(from)
        .map(|edge| edge.at)
        .take_while(|at| *at < until)
        .take(200)
        .collect()
}

fn outage(chance: &mut Rng) -> Fault {
    match chance.u8(..6) {
        0 => Fault::TokenRefused,
        1 => Fault::Throttled { retry_after: None },
        2 => Fault::Failed {
            after_effect: false,
        },
        3 => Fault::Slow { seconds: 25 },
        4 => Fault::RequestLost,
        _ => Fault::Slow {
            seconds: chance.u64(1..8),
        },
    }
}

fn store_fault(chance: &mut Rng) -> Fault {
    match chance.u8(..12) {
        0..=1 => Fault::DiesBefore,
        2..=3 => Fault::DiesAfter,
        4 => Fault::AnswerLost,
        5 => Fault::RequestLost,
        6 => Fault::Slow {
            seconds: chance.u64(1..5),
        },
        7 => Fault::Throttled { retry_after: None },
        8 => Fault::Failed {
            after_effect: chance.bool(),
        },
        9 => Fault::Conflict,
        10 => Fault::Unprocessed,
        _ => Fault::IndexLags,
    }
}

/// What may happen to any request to a cloud.
fn cloud_fault(chance: &mut Rng) -> Fault {
    match chance.u8(..11) {
        0 => Fault::DiesBefore,
        1 => Fault::DiesAfter,
        2 => Fault::AnswerLost,
        3 => Fault::RequestLost,
        4 => Fault::Slow {
            seconds: [2, 8, 19, 25][chance.usize(..4)],
        },
        5 => Fault::Throttled {
            retry_after: chance.bool().then(|| chance.u64(1..90)),
        },
        6 => Fault::Failed {
            after_effect: chance.bool(),
        },
        7..=8 => Fault::Truncated,
        9 => Fault::Malformed {
            body: [
                "",
                "<html>502</html>",
                "{}",
                "[]",
                "null",
                "{\"servers\": null}",
            ][chance.usize(..6)]
            .to_owned(),
        },
        _ => Fault::TokenRefused,
    }
}

/// What may happen to a change.
fn change_fault(chance: &mut Rng) -> Fault {
    match chance.u8(..7) {
        0 => Fault::Busy,
        1 if chance.u8(..3) == 0 => Fault::Refused,
        2 => Fault::Late {
            seconds: chance.i64(1..80),
        },
        3 => Fault::Sluggish {
            seconds: chance.i64(1..420),
        },
        4 => Fault::DiesAfter,
        5 => Fault::AnswerLost,
        _ => cloud_fault(chance),
    }
}
