//! What is shown of a machine that is or was hibernated: its snapshots, their cost, and what it is
//! recreated from.

use domain::{
    configuration::Provider,
    hibernation::{Hibernation, KeptSnapshot, Manifest},
    record::{Ask, Record},
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{count, money::amount, time::length};

/// What a machine is recreated from, with everything that a person needs to do it manually.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Hibernated {
    /// Whether the machine is hibernated, so that it does not exist now.
    asleep: bool,
    /// Whether a machine made from one of its snapshots was seen to run for ten minutes.
    rehearsed: bool,
    /// What its snapshots cost in a month; null if their price or size is unknown.
    month: Option<f64>,
    /// The currency of `month`; null if that is null.
    currency: Option<&'static str>,
    /// What is stored: the snapshots, and the machine as it was.
    #[serde(flatten)]
    kept: Hibernation,
}

impl Hibernated {
    /// Returns `None` for a machine that was never hibernated.
    pub fn of(record: &Record) -> Option<Self> {
        let kept = record.hibernation.as_deref()?.clone();
        // It is shown only if it is known without asking a provider.
        let price = record.kind().cloud().and_then(Provider::snapshot_price);
        let month = price.and_then(|price| kept.snapshots_month(price));
        Some(Self {
            asleep: record.is_hibernated(),
            rehearsed: kept.is_rehearsed(),
            month: month.map(amount),
            currency: month.map(|month| month.currency().code()),
            kept,
        })
    }

    /// Whether there is no machine now.
    #[must_use]
    pub fn is_asleep(&self) -> bool {
        self.asleep
    }

    /// The snapshot it is recreated from, its lead time and what is kept, in one line.
    #[must_use]
    pub fn in_words(&self, now: Timestamp) -> String {
        let lead = self.kept.lead.unwrap_or_default().as_mins();
        format!("recreated from {}, {lead} min early; {}", self.waking(now), self.kept())
    }

    /// The snapshot that the machine is recreated from.
    #[must_use]
    pub fn waking(&self, now: Timestamp) -> String {
        let mut snapshots = self.kept.seen_snapshots();
        let found = snapshots.find(|one| self.kept.wake_from.as_ref() == Some(&one.mark));
        found.map_or_else(|| "its snapshot".to_owned(), |one| snapshot(one, now))
    }

    /// How many snapshots are kept, how many are proven, and what all of them cost.
    pub fn kept(&self) -> String {
        let snapshots = || self.kept.seen_snapshots();
        let proven = snapshots().filter(|one| one.proven_at.is_some()).count();
        let cost = self.month.zip(self.currency);
        let cost = cost.map_or_else(String::new, |(month, currency)| {
            format!(", {month:.2} {currency} a month")
        });
        format!("{} kept, {proven} proven{cost}", count(snapshots().count(), "snapshot"))
    }

    /// The machine as it was and is to be again, in one line.
    pub fn as_it_was(&self) -> Option<String> {
        self.kept.manifest.as_ref().map(as_it_was)
    }

    /// How long before its time the next start begins, in minutes. `None` if it does not begin early.
    #[must_use]
    pub fn lead(&self) -> Option<i64> {
        // That of the latest start: of a machine that runs, the next stop sets another one.
        let last = self.kept.lead?;
        let next = self.kept.manifest.as_ref().filter(|_| !self.asleep);
        let lead = next.map_or(last, |manifest| self.kept.next_lead(&manifest.size));
        Some(lead.as_mins()).filter(|&lead| lead > 0)
    }

    /// The id that the cloud has for the machine now.
    pub fn present(&self) -> Option<String> {
        self.kept.present.as_ref().map(ToString::to_string)
    }
}

fn snapshot(one: &KeptSnapshot, now: Timestamp) -> String {
    let id = one.id.map_or("?".to_owned(), |id| id.to_string());
    let size = one.gb().map_or_else(String::new, |gb| format!(" of {gb:.1} GB"));
    let age = length(now.duration_since(one.asked_at));
    let proven = if one.proven_at.is_some() { ", proven" } else { "" };
    format!("snapshot {id}{size}, {age} old{proven}")
}

/// A machine in one line: its name, plan, location and addresses.
fn as_it_was(manifest: &Manifest) -> String {
    let addresses = manifest.addresses.iter().map(|one| one.ip.as_str());
    let private = manifest.networks.iter().map(|one| one.ip.as_str());
    // Hetzner identifies a floating address by a number.
    let reserved = manifest.floating_ips.iter().map(String::as_str);
    let reserved = reserved.filter(|ip| ip.contains(['.', ':']));
    let addresses: Vec<_> = addresses.chain(private).chain(reserved).collect();
    let with = if addresses.is_empty() { "" } else { ", with " };
    let Manifest { name, size, region, .. } = manifest;
    format!("{name}, {} in {region}{with}{}", size.plan, addresses.join(" and "))
}

/// What became of the latest request of a transition that hibernates or wakes a machine.
pub fn step(record: &Record, time: impl Fn(Timestamp) -> String) -> Option<String> {
    let transition = record.in_flight()?;
    let request = record.request.as_ref()?;
    if !record.is_hibernating() || request.direction != transition.direction {
        return None;
    }
    let (what, at) = (&request.step, time(request.asked_at));
    let became = match &request.ask {
        Ask::Open => "no answer yet; waiting until it can no longer have an effect",
        Ask::Accepted { .. } => "accepted; waiting until it is seen",
        Ask::Failed { .. } => "failed; it is sent again",
        Ask::Done { .. } => "done",
    };
    Some(format!("{what}: sent at {at}, {became}"))
}

#[cfg(test)]
mod tests;
