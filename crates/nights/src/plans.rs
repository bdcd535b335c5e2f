//! The machine plans that a night deals in, as the clouds list them where its fleets are. What a
//! stop may move a machine to is worked out from these alone.

use domain::ResourceKind;

/// A Droplet's size, or a server's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    pub(crate) vcpus: u32,
    pub(crate) memory_mib: u64,
    pub(crate) disk_gib: u64,
    /// Whether a machine can be moved to it, as far as no night withdraws it.
    pub(crate) is_sold: bool,
}

const fn plan(name: &'static str, vcpus: u32, memory_mib: u64, disk_gib: u64) -> Plan {
    Plan {
        name,
        vcpus,
        memory_mib,
        disk_gib,
        is_sold: true,
    }
}

const fn not_sold(name: &'static str, vcpus: u32, memory_mib: u64, disk_gib: u64) -> Plan {
    Plan {
        is_sold: false,
        ..plan(name, vcpus, memory_mib, disk_gib)
    }
}

/// The cheapest first.
const SIZES: [Plan; 9] = [
    plan("s-1vcpu-512mb-10gb", 1, 512, 10),
    plan("s-1vcpu-1gb", 1, 1024, 25),
    plan("s-1vcpu-2gb", 1, 2048, 50),
    plan("s-2vcpu-2gb", 2, 2048, 60),
    plan("s-2vcpu-4gb", 2, 4096, 80),
    plan("s-4vcpu-8gb", 4, 8192, 160),
    plan("g-2vcpu-8gb", 2, 8192, 25),
    plan("c-4", 4, 8192, 50),
    plan("s-8vcpu-16gb", 8, 16384, 320),
];

/// The cheapest first.
const TYPES: [Plan; 9] = [
    not_sold("cx22", 2, 4096, 40),
    not_sold("cx33", 4, 8192, 80),
    plan("cpx12", 1, 2048, 40),
    plan("cpx22", 2, 4096, 80),
    plan("cpx32", 4, 8192, 160),
    plan("ccx13", 2, 8192, 80),
    plan("cpx42", 8, 16384, 320),
    plan("ccx23", 4, 16384, 160),
    plan("ccx33", 8, 32768, 240),
];

/// The plans for a kind of machine, the cheapest first; none for other kinds.
pub(crate) fn of(kind: ResourceKind) -> &'static [Plan] {
    match kind {
        ResourceKind::Droplet => &SIZES,
        ResourceKind::Server => &TYPES,
        ResourceKind::Database | ResourceKind::NodePool | ResourceKind::Machine => &[],
    }
}

/// The plan of this name.
pub(crate) fn named(name: &str) -> Option<Plan> {
    let plans = SIZES.iter().chain(&TYPES);
    plans.copied().find(|plan| plan.name == name)
}

/// Whether a machine can stop on a cheaper plan, and come back: the one that is asked for, or else
/// any.
pub(crate) fn can_shrink(
    kind: ResourceKind,
    present: &str,
    disk_gib: u64,
    wanted: Option<&str>,
) -> bool {
    let plans = of(kind);
    let Some(place) = plans.iter().position(|plan| plan.name == present) else {
        return false;
    };
    let fits = |plan: &Plan| plan.is_sold && plan.disk_gib >= disk_gib;
    plans[place].is_sold
        && plans[..place]
            .iter()
            .any(|plan| fits(plan) && wanted.is_none_or(|wanted| wanted == plan.name))
}

/// Whether one plan costs less than another.
pub(crate) fn is_cheaper(one: &str, other: &str) -> bool {
    [&SIZES, &TYPES].iter().any(|plans| {
        let place = |name: &str| plans.iter().position(|plan| plan.name == name);
        place(one)
            .zip(place(other))
            .is_some_and(|(one, other)| one < other)
    })
}
