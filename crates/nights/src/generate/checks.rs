//! Gives some groups a check, whose address is down around some edges.

use std::collections::BTreeSet;

use domain::{GroupName, configuration::Check};
use fastrand::Rng;
use jiff::SignedDuration;

use super::{edges_of, minutes_between, rough_times};
use crate::night::{EventKind, Night, NightEvent, Setup};

const CHECKS: u64 = 0x0063_6865_636b_7321;

/// How often an address is down around an edge: one time in this many.
const ONE_IN: u8 = 3;

/// Adds checks to a night that has groups.
pub(super) fn add(night: &mut Night) {
    let mut chance = Rng::with_seed(night.seed ^ CHECKS);
    let names = night.setup.settings.groups.keys().filter(|_| chance.bool());
    let names: BTreeSet<_> = names.cloned().collect();
    if names.is_empty() {
        return;
    }
    configure(&mut night.setup, &names);
    for event in &mut night.happenings {
        if let EventKind::Apply { setup } = &mut event.what {
            configure(setup, &names);
        }
    }
    let mut down = Vec::new();
    for (from, until) in rough_times(night.begins, &night.happenings) {
        for rule in night.setup.schedules.values() {
            for edge in edges_of(&rule.schedule, from, until) {
                for name in &names {
                    let at = edge - SignedDuration::from_secs(chance.i64(0..900));
                    let minutes = chance.i64(5..40).min(minutes_between(at, until));
                    if at < from || minutes < 1 || chance.u8(..ONE_IN) > 0 {
                        continue;
                    }
                    let what = EventKind::Down { check: check_of(name), minutes };
                    down.push(NightEvent { at, what });
                }
            }
        }
    }
    night.happenings.extend(down);
    night.happenings.sort_by_key(|event| event.at);
}

fn configure(setup: &mut Setup, names: &BTreeSet<GroupName>) {
    for (name, group) in &mut setup.settings.groups {
        group.check = names.contains(name).then(|| check_of(name));
    }
}

fn check_of(name: &GroupName) -> Check {
    format!("tcp://{name}.example.net:5432").parse().expect("a check")
}
