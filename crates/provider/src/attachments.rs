//! What the lists of an account show of all its machines. They are values, read once for several
//! machines.

use std::{collections::BTreeSet, net::IpAddr};

use domain::{
    ResourceId,
    hibernation::{Attachment, MachineLimit, Manifest, SshKey},
};
use tokio::sync::OnceCell;

use crate::{Refusal, error::ChangeError};

/// Refuses to assign an address that another machine has by now, which may serve in place of this
/// one: a cloud may take it away from that.
pub(crate) fn leave_to_another(
    address: &str,
    holder: Option<ResourceId>,
    to: &ResourceId,
) -> Result<(), ChangeError> {
    match holder.filter(|holder| holder != to) {
        None => Ok(()),
        Some(other) => Err(ChangeError::Refused(Refusal {
            status: None,
            code: String::new(),
            message: format!("{other} has the address {address} by now"),
            request_id: None,
        })),
    }
}

/// What is attached to an account's machines and refers to them, as far as the machines do not show
/// it themselves.
#[derive(Debug, Clone, Default)]
pub struct Attachments {
    pub(crate) things: Vec<Thing>,
    pub(crate) projects: Vec<Project>,
    pub(crate) references: Vec<Reference>,
    /// The tags by which firewalls apply to machines.
    pub(crate) firewall_tags: BTreeSet<String>,
    /// The public addresses that outlive their machines, by their numbers.
    pub(crate) kept_addresses: BTreeSet<u64>,
}

/// Something that can be attached to a machine.
#[derive(Debug, Clone)]
pub(crate) struct Thing {
    pub(crate) what: Attachment,
    /// What people call it: `firewall web`; `None` for an address.
    pub(crate) words: Option<String>,
    /// The machines to which it is attached, by their numbers.
    pub(crate) machines: BTreeSet<u64>,
}

/// A project in which machines are.
#[derive(Debug, Clone)]
pub(crate) struct Project {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Its machines, by their numbers. They are in a list of its own, which is read only while the
    /// project of a machine is searched for.
    pub(crate) machines: OnceCell<BTreeSet<u64>>,
}

/// What else is read of an account before its machines are hibernated: what refers to them, the keys
/// to recreate them with, and what the account may create.
#[derive(Debug, Clone, Default)]
pub struct Preflight {
    pub(crate) references: Vec<Reference>,
    pub(crate) ssh_keys: Vec<SshKey>,
    pub(crate) room: Option<MachineLimit>,
    /// Why the account may not create machines, in its cloud's words.
    pub(crate) account_problem: Option<String>,
}

/// Something that refers to machines by their numbers or addresses.
#[derive(Debug, Clone)]
pub(crate) struct Reference {
    /// What refers to them: `a rule of firewall web`.
    pub(crate) by: String,
    pub(crate) machines: BTreeSet<u64>,
    /// Addresses and networks.
    pub(crate) addresses: Vec<String>,
}

impl Attachments {
    /// Returns what is attached to a machine.
    pub(crate) fn to(&self, machine: u64) -> impl Iterator<Item = &Thing> {
        self.things.iter().filter(move |thing| thing.machines.contains(&machine))
    }

    /// Adds to a manifest what is attached to its machine.
    pub(crate) fn add_to(&self, manifest: &mut Manifest, machine: u64) {
        self.to(machine).for_each(|thing| manifest.add(thing.what.clone()));
    }
}

impl Reference {
    pub(crate) fn names(&self, machine: u64, ips: &[IpAddr]) -> bool {
        let is_one = |address: &String| is_one_of(address, ips);
        self.machines.contains(&machine) || self.addresses.iter().any(is_one)
    }
}

/// Reports whether a text is one of these addresses, alone or as a network of only one. A wider
/// network names no machine.
fn is_one_of(text: &str, ips: &[IpAddr]) -> bool {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let Ok(address) = address.trim().parse::<IpAddr>() else {
        return false;
    };
    let whole = if address.is_ipv4() { "32" } else { "128" };
    length.is_none_or(|length| length == whole) && ips.contains(&address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_recognized_in_every_spelling_and_in_no_wider_network() {
        let ips = ["203.0.113.5", "10.110.0.3", "2001:db8::5"].map(|ip| ip.parse().unwrap());
        for text in [
            "203.0.113.5",
            "203.0.113.5/32",
            "10.110.0.3/32",
            "2001:db8::5",
            "2001:DB8:0:0:0:0:0:5",
            "2001:db8::5/128",
        ] {
            assert!(is_one_of(text, &ips), "{text}");
        }
        for text in ["203.0.113.6", "203.0.113.5/31", "10.0.0.0/8", "2001:db8::5/32", "", "web"] {
            assert!(!is_one_of(text, &ips), "{text}");
        }
    }
}
