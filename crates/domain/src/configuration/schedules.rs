//! The schedules of a configuration, and which of them list a resource.

use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
    sync::OnceLock,
};

use serde::{Deserialize, Serialize};

use super::{NamePattern, Selector};
use crate::{
    configuration::Rule,
    reference::{ResourceRef, ScheduleName},
};

/// Schedules by name: a map that also finds the schedules that list a resource, without scanning
/// all of them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Schedules {
    rules: BTreeMap<ScheduleName, Rule>,
    /// Built on first use, and dropped on every change.
    #[serde(skip)]
    listing: OnceLock<Listing>,
}

#[derive(Debug, Clone, Default)]
struct Listing {
    references: BTreeMap<ResourceRef, Vec<ScheduleName>>,
    names: Vec<(NamePattern, ScheduleName)>,
}

impl Schedules {
    /// Returns the entries of the schedules' own lists that name a resource, by its reference or by
    /// one of its names, each with its schedule.
    pub fn listing<'s, 'n>(
        &'s self,
        resource: &ResourceRef,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> impl Iterator<Item = (&'s ScheduleName, Selector)> {
        let listing = self.listing.get_or_init(|| self.list());
        let by_reference = listing.references.get(resource).into_iter().flatten();
        let by_name = listing.names.iter().filter(move |(name, _)| name.covers(names.clone()));
        let reference = resource.clone();
        by_reference
            .map(move |schedule| (schedule, Selector::Reference(reference.clone())))
            .chain(by_name.map(|(name, schedule)| (schedule, Selector::Name(name.clone()))))
    }

    fn list(&self) -> Listing {
        let mut listing = Listing::default();
        for (schedule, rule) in &self.rules {
            for selector in &rule.resources {
                match selector {
                    Selector::Reference(resource) => {
                        let schedules = listing.references.entry(resource.clone()).or_default();
                        schedules.push(schedule.clone());
                    }
                    Selector::Name(name) => listing.names.push((name.clone(), schedule.clone())),
                }
            }
        }
        listing
    }
}

impl Deref for Schedules {
    type Target = BTreeMap<ScheduleName, Rule>;

    fn deref(&self) -> &Self::Target {
        &self.rules
    }
}

impl DerefMut for Schedules {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.listing.take();
        &mut self.rules
    }
}

impl From<BTreeMap<ScheduleName, Rule>> for Schedules {
    fn from(rules: BTreeMap<ScheduleName, Rule>) -> Self {
        Self { rules, listing: OnceLock::new() }
    }
}

impl<const N: usize> From<[(ScheduleName, Rule); N]> for Schedules {
    fn from(rules: [(ScheduleName, Rule); N]) -> Self {
        rules.into_iter().collect()
    }
}

impl FromIterator<(ScheduleName, Rule)> for Schedules {
    fn from_iter<I: IntoIterator<Item = (ScheduleName, Rule)>>(rules: I) -> Self {
        BTreeMap::from_iter(rules).into()
    }
}

impl<'s> IntoIterator for &'s Schedules {
    type Item = (&'s ScheduleName, &'s Rule);
    type IntoIter = std::collections::btree_map::Iter<'s, ScheduleName, Rule>;

    fn into_iter(self) -> Self::IntoIter {
        self.rules.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::Schedules;
    use crate::tests::fixtures::{reference, schedule_name, world};

    /// Returns the entries that name a Droplet.
    fn listing(schedules: &Schedules, name: &str) -> Vec<String> {
        let resource = reference("do-main/droplet/1");
        let listing = schedules.listing(&resource, [name].into_iter());
        listing.map(|(schedule, by)| format!("{schedule} by {by}")).collect()
    }

    #[test]
    fn what_is_listed_after_the_first_question_is_known_to_the_next() {
        let mut schedules = world().configuration.schedules;
        assert!(listing(&schedules, "web").is_empty());
        let office = schedules.get_mut(&schedule_name("office")).unwrap();
        office.resources.insert("do-main/droplet/1".parse().unwrap());
        office.resources.insert("w*".parse().unwrap());
        let both = ["office by do-main/droplet/1", "office by w*"];
        assert_eq!(listing(&schedules, "web"), both);
        assert_eq!(listing(&schedules, "ci"), both[..1]);
        schedules.clear();
        assert!(listing(&schedules, "web").is_empty());
    }
}
