//! Adds an SSH account to some nights: a host, its machines, and bad luck with both.

use std::collections::BTreeMap;

use cloud_simulator::Act;
use domain::{
    AccountName, MachineName, ResourceId, ResourceRef,
    configuration::{Account, OverrideTarget},
    record::Direction,
    schedule::Desired,
};
use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{edges_of, is_inspection, rough_times};
use crate::{
    machines::Machine,
    night::{EventKind, Fault, Night, NightEvent, RequestKind, Setup},
    ssh_keys,
};

const LAB: u64 = 0x0061_206c_6162_0000;

/// One night in this many has an SSH account.
const ONE_IN: u8 = 6;

/// One SSH account in this many has dozens of machines.
const LARGE_ONE_IN: u8 = 8;

/// The name of the account.
const ACCOUNT: &str = "lab";

/// Adds an SSH account to a night, or leaves the night as it is. Such a night is shorter than
/// others: each command takes a connection of its own, and the time that its cryptography takes.
pub(super) fn add(night: &mut Night) {
    let mut chance = Rng::with_seed(night.seed ^ LAB);
    if chance.u8(..ONE_IN) > 0 {
        return;
    }
    let is_large = chance.u8(..LARGE_ONE_IN) == 0;
    shorten(night, if is_large { 1 } else { 2 });
    let count = if is_large { chance.u64(16..=40) } else { chance.u64(1..=6) };
    let schedules: Vec<_> = night.setup.schedules.keys().map(ToString::to_string).collect();
    let mut configured = serde_json::Map::new();
    for number in 1..=count {
        let stage = if chance.u8(..8) == 0 { "prod" } else { "build" };
        let name = format!("{stage}-{number:02}");
        night.machines.insert(parsed(&name), machine(&mut chance, is_large));
        let schedule = &schedules[chance.usize(..schedules.len())];
        configured.insert(name.clone(), definition(&mut chance, &name, schedule));
    }
    let account = account(&mut chance, &Value::Object(configured));
    configure(&mut night.setup, &account);
    for event in &mut night.happenings {
        if let EventKind::Apply { setup } = &mut event.what {
            configure(setup, &account);
        }
    }
    let mut luck = BadLuck { chance, night, events: Vec::new() };
    luck.fill();
    let events = luck.events;
    night.happenings.extend(events);
    night.happenings.sort_by_key(|event| event.at);
}

/// Ends a night at one of its inspections.
fn shorten(night: &mut Night, inspections: usize) {
    let mut inspected = night.happenings.iter().filter(|event| is_inspection(event));
    let last = inspected.nth(inspections - 1).map(|event| event.at);
    night.ends = last.map_or(night.ends, |at| at + SignedDuration::from_secs(1));
    let ends = night.ends;
    night.happenings.retain(|event| event.at <= ends);
}

fn configure(setup: &mut Setup, account: &Account) {
    setup.accounts.insert(account_name(), account.clone());
    // A large account is no newcomer to be held.
    if setup.settings.max_new > 0 {
        setup.settings.max_new = setup.settings.max_new.max(100);
    }
}

fn account_name() -> AccountName {
    ACCOUNT.parse().expect("an account's name")
}

fn parsed(name: &str) -> MachineName {
    name.parse().expect("a machine's name")
}

fn machine(chance: &mut Rng, is_large: bool) -> Machine {
    let slow = if is_large { 16 } else { 4 };
    Machine {
        is_on: chance.bool(),
        boot: chance.u64(5..300),
        shutdown: chance.u64(1..150),
        status: if chance.u8(..3) == 0 { chance.u64(..slow) } else { 0 },
        ignores_stop: chance.u8(..6) == 0,
    }
}

/// Returns a machine of the configuration. Its commands contain whatever a shell would replace.
fn definition(chance: &mut Rng, name: &str, schedule: &str) -> Value {
    let mut definition = json!({
        "start": format!("start '{name}' $HOME; true"),
        "stop": format!("stop '{name}' \"$(id)\""),
        "status": format!("status {name} %20 {{}}"),
    });
    if chance.u8(..3) > 0 {
        definition["force"] = json!(format!("force {name} && :"));
    }
    if chance.u8(..3) == 0 {
        definition["probe"] = json!(format!("{name}.example.net:22"));
        let silence_counts = chance.bool();
        definition["unreachable_means"] = json!(if silence_counts { "stopped" } else { "unknown" });
        if silence_counts && chance.bool() {
            definition.as_object_mut().expect("an object").remove("status");
        }
    }
    let tags = match chance.u8(..12) {
        0 => vec!["offhours:off".to_owned()],
        1 => vec!["team:a".to_owned()],
        _ => vec![format!("offhours:{schedule}")],
    };
    definition["tags"] = json!(tags);
    definition
}

fn account(chance: &mut Rng, machines: &Value) -> Account {
    let mut account = json!({
        "provider": "ssh",
        "host": "jump.example.net",
        "user": "offhours",
        "key": "env:LAB",
        "host_keys": ssh_keys::host_keys(),
        "machines": machines,
    });
    if chance.bool() {
        account["read_key"] = json!("env:LAB_READ");
    }
    if chance.u8(..16) == 0 {
        account["mode"] = json!("observe");
    }
    serde_json::from_value(account).expect("an SSH account")
}

/// What goes wrong with the host and its machines, and what people do.
struct BadLuck<'n> {
    chance: Rng,
    night: &'n Night,
    events: Vec<NightEvent>,
}

impl BadLuck<'_> {
    fn fill(&mut self) {
        for (from, until) in rough_times(self.night.begins, &self.night.happenings) {
            self.rough(from, until);
        }
    }

    fn rough(&mut self, from: Timestamp, until: Timestamp) {
        let rules = self.night.setup.schedules.values();
        let mut hot: Vec<_> =
            rules.flat_map(|rule| edges_of(&rule.schedule, from, until)).collect();
        hot.push(from);
        for at in hot {
            for _ in 0..[0, 1, 1, 2, 3][self.chance.usize(..5)] {
                let at = at + SignedDuration::from_secs(self.chance.i64(-90..900));
                if at >= from && at < until {
                    self.happens(at, until);
                }
            }
        }
    }

    fn happens(&mut self, at: Timestamp, until: Timestamp) {
        let left = until.duration_since(at).as_mins().max(1);
        let resource = self.resource();
        let chance = &mut self.chance;
        let what = match chance.u8(..16) {
            0..=2 => EventKind::Outage {
                account: account_name(),
                minutes: chance.i64(1..40).min(left),
                fault: connection_fault(chance),
            },
            3..=4 => EventKind::Fault {
                of: RequestKind::Connection,
                after: chance.u32(..4),
                fault: connection_fault(chance),
            },
            5 => EventKind::Fault {
                of: RequestKind::Cloud,
                after: chance.u32(..4),
                fault: command_fault(chance),
            },
            6..=10 => EventKind::Fault {
                of: RequestKind::Change,
                after: chance.u32(..2),
                fault: command_fault(chance),
            },
            11..=12 => {
                let ResourceId::Machine(machine) = resource.id else { return };
                EventKind::CutOff { machine, minutes: chance.i64(1..60).min(left) }
            }
            13 => {
                let act = if chance.bool() { Act::PowerOn } else { Act::PowerOff };
                if chance.u8(..3) == 0 {
                    // It restarts.
                    let back = at + SignedDuration::from_secs(chance.i64(5..200));
                    let on = EventKind::Person { resource: resource.clone(), act: Act::PowerOn };
                    self.events.push(NightEvent { at: back.min(until), what: on });
                }
                EventKind::Person { resource, act }
            }
            14 => EventKind::Command {
                direction: if chance.bool() { Direction::Start } else { Direction::Stop },
                resource,
                without: Vec::new(),
            },
            _ => EventKind::Override {
                target: OverrideTarget::Resource(resource),
                desired: if chance.bool() { Desired::Running } else { Desired::Stopped },
                minutes: [5, 20, 90, 480][chance.usize(..4)],
                later: 0,
            },
        };
        self.events.push(NightEvent { at, what });
    }

    fn resource(&mut self) -> ResourceRef {
        let machines: &BTreeMap<_, _> = &self.night.machines;
        let place = self.chance.usize(..machines.len());
        let name = machines.keys().nth(place).expect("a lab has machines").clone();
        ResourceRef { account: account_name(), id: ResourceId::Machine(name) }
    }
}

fn connection_fault(chance: &mut Rng) -> Fault {
    match chance.u8(..6) {
        0 => Fault::ConnectionRefused,
        1..=2 => Fault::Unreachable,
        3 => Fault::NoGreeting,
        4 => Fault::HostKeyChanged,
        _ => Fault::TokenRefused,
    }
}

fn command_fault(chance: &mut Rng) -> Fault {
    match chance.u8(..14) {
        0 => Fault::DiesBefore,
        1 => Fault::DiesAfter,
        2..=3 => Fault::AnswerLost,
        4 => Fault::RequestLost,
        5 => Fault::Slow { seconds: [2, 19, 25, 59, 90][chance.usize(..5)] },
        6 => Fault::Throttled { retry_after: None },
        7..=8 => Fault::Failed { after_effect: chance.bool() },
        9 => Fault::Truncated,
        10 => Fault::Malformed { body: String::new() },
        11 => Fault::Busy,
        12 => Fault::Late { seconds: chance.i64(1..80) },
        _ => Fault::Sluggish { seconds: chance.i64(1..420) },
    }
}
