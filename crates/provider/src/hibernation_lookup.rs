//! What to look up about a machine that is hibernated or about to be.

use domain::{
    ResourceId,
    hibernation::{
        Hibernation, KeptSnapshot, Mark, Origin, SeenSnapshot, SshKey, of_label, of_labeled,
    },
    resource::ActionId,
};
use jiff::Timestamp;

use crate::attachments::{Attachments, Preflight};

/// The lists of an account on which an inspection rests, as far as they matter.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lists<'a> {
    /// If the machine may be deleted or was recreated: without them, what is attached to it is not
    /// known.
    pub attachments: Option<&'a Attachments>,
    /// If the machine may be deleted.
    pub preflight: Option<&'a Preflight>,
}

/// What to look up about a machine.
#[derive(Debug, Clone, Copy)]
pub struct HibernationLookup<'a> {
    /// The resource by its original id, with which everything we create for it is labeled.
    pub of: &'a ResourceId,
    pub present: Option<&'a ResourceId>,
    /// A machine whose creation has begun, as named in the response.
    pub made: Option<&'a ResourceId>,
    /// The action that creates it, as named in the response.
    pub making: Option<ActionId>,
    /// What is known about its snapshots.
    pub hibernation: Option<&'a Hibernation>,
    /// All snapshots of the account's machines.
    pub snapshots: &'a ListedSnapshots,
    pub lists: Lists<'a>,
    pub name: &'a str,
}

/// Replaces the key that a machine is created with, if the account no longer has it.
pub(crate) fn replace_key(key: &mut String, keys: &[SshKey], by: Option<&str>) {
    if keys.iter().any(|one| one.sent_as == *key) {
        return;
    }
    if let Some(present) = keys.iter().find(|one| Some(one.name.as_str()) == by) {
        key.clone_from(&present.sent_as);
    }
}

/// Snapshots as a list shows them, with whatever machine they are of.
#[derive(Debug, Clone, Default)]
pub struct ListedSnapshots(pub(crate) Vec<ListedSnapshot>);

#[derive(Debug, Clone)]
pub(crate) struct ListedSnapshot {
    /// The machine that its name or its labels say it is of, in the form of [`of_label`].
    pub(crate) of: Option<String>,
    /// What its name or its description says of that machine.
    pub(crate) origin: Option<Origin>,
    /// When it was made, for people.
    pub(crate) made_at: Timestamp,
    /// With the mark in its name or its labels.
    pub(crate) seen: SeenSnapshot,
}

/// A snapshot of ours, whose machine need not be recorded.
#[derive(Debug, Clone)]
pub struct OwnSnapshot {
    /// The resource that it is a copy of, by its original id.
    pub of: ResourceId,
    pub origin: Option<Origin>,
    /// When it was made, for people.
    pub made_at: Timestamp,
    pub seen: SeenSnapshot,
}

impl ListedSnapshots {
    /// Returns those whose name or labels say that they are ours.
    pub fn ours(&self) -> impl Iterator<Item = OwnSnapshot> {
        let own = self.0.iter().filter(|one| one.seen.mark.is_some());
        own.filter_map(|one| {
            let of = of_labeled(one.of.as_ref()?)?;
            Some(OwnSnapshot {
                of,
                origin: one.origin.clone(),
                made_at: one.made_at,
                seen: one.seen.clone(),
            })
        })
    }

    /// Returns those of one machine: known ones by their number, others by their name or labels.
    #[must_use]
    pub fn of_machine(
        &self,
        of: &ResourceId,
        hibernation: Option<&Hibernation>,
    ) -> Vec<SeenSnapshot> {
        let label = of_label(of);
        let known = hibernation.map_or(&[][..], |one| &one.snapshots);
        let own = self.0.iter().filter_map(|one| {
            let named = one.seen.mark.clone();
            let named = named.filter(|_| one.of.as_ref() == Some(&label));
            let mark = mark_of(one.seen.id, named, known)?;
            Some(SeenSnapshot { mark: Some(mark), ..one.seen.clone() })
        });
        own.collect()
    }

    pub(crate) fn has(&self, id: u64) -> bool {
        self.0.iter().any(|one| one.seen.id == id)
    }
}

/// Returns the mark of a snapshot. A known number decides, because a person may have changed the
/// name or the labels; otherwise those do, unless they name a snapshot with another number: a copy
/// of them is a person's.
fn mark_of(id: u64, named: Option<Mark>, snapshots: &[KeptSnapshot]) -> Option<Mark> {
    if let Some(known) = snapshots.iter().find(|known| known.id == Some(id)) {
        return Some(known.mark.clone());
    }
    let mark = named?;
    let mut others = snapshots.iter().filter(|known| known.mark == mark);
    let is_free = others.all(|known| known.id.is_none());
    is_free.then_some(mark)
}

/// Converts a decimal number to hundredths and truncates the rest.
pub(crate) fn hundredths(number: &serde_json::Number) -> u64 {
    let text = number.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let digits = fraction.chars().chain("00".chars()).take(2);
    let digits: String = whole.chars().chain(digits).collect();
    digits.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_hundredths() {
        for (text, expected) in [("2.3", 230), ("40", 4_000), ("0.049", 4), ("12.345", 1_234)] {
            let number: serde_json::Number = serde_json::from_str(text).unwrap();
            assert_eq!(hundredths(&number), expected, "{text}");
        }
    }
}
