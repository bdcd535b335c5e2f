//! The machine plans used in nights, as the clouds list them in the locations of the fleets. Which
//! plans a stop may move a machine to is derived from these alone.

use domain::ResourceKind;

/// A Droplet size or a server type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    pub(crate) vcpus: u32,
    pub(crate) memory_mib: u64,
    pub(crate) disk_gib: u64,
    /// Whether a machine can be moved to it, unless the night withdraws it.
    pub(crate) is_sold: bool,
}

const fn plan(name: &'static str, vcpus: u32, memory_mib: u64, disk_gib: u64) -> Plan {
    Plan { name, vcpus, memory_mib, disk_gib, is_sold: true }
}

const fn not_sold(name: &'static str, vcpus: u32, memory_mib: u64, disk_gib: u64) -> Plan {
    Plan { is_sold: false, ..plan(name, vcpus, memory_mib, disk_gib) }
}

/// Droplet sizes, cheapest first.
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

/// Server types, cheapest first.
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

/// Returns the plans for a kind of machine, cheapest first. Empty for other kinds.
pub(crate) fn of(kind: ResourceKind) -> &'static [Plan] {
    match kind {
        ResourceKind::Droplet => &SIZES,
        ResourceKind::Server => &TYPES,
        ResourceKind::Database | ResourceKind::NodePool | ResourceKind::Machine => &[],
    }
}

/// Returns the plan with this name.
pub(crate) fn named(name: &str) -> Option<Plan> {
    let plans = SIZES.iter().chain(&TYPES);
    plans.copied().find(|plan| plan.name == name)
}

/// Reports whether a machine can stop on a cheaper plan and come back: on the plan that is wanted,
/// or on any if none is.
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

/// Reports whether one plan costs less than another.
pub(crate) fn is_cheaper(one: &str, other: &str) -> bool {
    [&SIZES, &TYPES].iter().any(|plans| {
        let place = |name: &str| plans.iter().position(|plan| plan.name == name);
        place(one).zip(place(other)).is_some_and(|(one, other)| one < other)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use cloud_simulator::{Fleet, Simulator};
    use jiff::Timestamp;
    use serde_json::Value;

    use super::*;
    use crate::clouds::{poll_to_completion, send};

    const ACCOUNTS: &str = "
        [[accounts]]
        name = \"do-main\"
        provider = \"digitalocean\"
        token = \"secret\"
        [[accounts]]
        name = \"hz-eu\"
        provider = \"hetzner\"
        token = \"secret\"
    ";

    fn listed(path: &str) -> Value {
        let fleet: Fleet = ACCOUNTS.parse().unwrap();
        let now: Timestamp = "2026-11-02T00:00:00Z".parse().unwrap();
        let simulator = Simulator::new(&fleet, Arc::new(move || now));
        let request = http::Request::get(format!("http://127.0.0.1:1{path}"));
        let request = request.header("authorization", "Bearer secret");
        let answer =
            poll_to_completion(send(simulator.router(), request.body(Bytes::new()).unwrap()))
                .unwrap();
        serde_json::from_slice(answer.body()).unwrap()
    }

    /// Checks plans against the list: name, size, ascending hourly prices, and whether each plan is
    /// sold where the fleets are.
    fn check(plans: &[Plan], listed: &[(String, u64, u64, u64, f64, bool)]) {
        let mut dearest = 0.0;
        for plan in plans {
            let found = listed.iter().find(|(name, ..)| name == plan.name);
            let (_, vcpus, memory_mib, disk_gib, price, is_sold) = found.unwrap();
            let size = (u64::from(plan.vcpus), plan.memory_mib, plan.disk_gib);
            assert_eq!(size, (*vcpus, *memory_mib, *disk_gib), "{plan:?}");
            assert_eq!(plan.is_sold, *is_sold, "{plan:?}");
            assert!(*price > dearest, "{plan:?} is not the next dearer one");
            dearest = *price;
        }
    }

    #[test]
    fn droplet_sizes_are_those_of_the_simulated_cloud() {
        let answer = listed("/v2/sizes?per_page=200");
        let sizes = answer["sizes"].as_array().unwrap().iter();
        let sizes = sizes.map(|size| {
            let number = |field: &str| size[field].as_u64().unwrap();
            let here = size["regions"].as_array().unwrap().iter();
            let is_sold = size["available"] == true && here.clone().any(|slug| slug == "fra1");
            (
                size["slug"].as_str().unwrap().to_owned(),
                number("vcpus"),
                number("memory"),
                number("disk"),
                size["price_hourly"].as_f64().unwrap(),
                is_sold,
            )
        });
        let sizes: Vec<_> = sizes.collect();
        assert_eq!(sizes.len(), SIZES.len(), "a night deals in all of them");
        check(&SIZES, &sizes);
    }

    #[test]
    fn server_types_are_those_of_the_simulated_cloud() {
        let answer = listed("/v1/server_types?per_page=50");
        let types = answer["server_types"].as_array().unwrap().iter();
        // A type that is no longer listed cannot be moved to.
        let withdrawn = ("cx22".to_owned(), 2, 4096, 40, 0.006, false);
        let types = types.filter_map(|server_type| {
            let number = |field: &str| server_type[field].as_f64().unwrap();
            let of = |list: &str, key: &str| {
                let list = server_type[list].as_array().unwrap().iter();
                list.clone().find(|one| one[key] == "fsn1").cloned()
            };
            let here = of("locations", "name")?;
            let price = of("prices", "location")?;
            let price = price["price_hourly"]["net"].as_str().unwrap();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "whole numbers"
            )]
            let whole = |number: f64| number as u64;
            Some((
                server_type["name"].as_str().unwrap().to_owned(),
                whole(number("cores")),
                whole(number("memory") * 1024.0),
                whole(number("disk")),
                price.parse().unwrap(),
                here["available"] == true && here["deprecation"].is_null(),
            ))
        });
        check(&TYPES, &types.chain([withdrawn]).collect::<Vec<_>>());
    }
}
