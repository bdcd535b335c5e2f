//! The schedules of a configuration, and which of them list a resource.

use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
    sync::OnceLock,
};

use serde::{Deserialize, Serialize};

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
    listing: OnceLock<BTreeMap<ResourceRef, Vec<ScheduleName>>>,
}

impl Schedules {
    /// Returns the schedules whose own lists name a resource, ordered by name.
    #[must_use]
    pub fn listing(&self, resource: &ResourceRef) -> &[ScheduleName] {
        let listing = self.listing.get_or_init(|| {
            let mut listing = BTreeMap::<_, Vec<_>>::new();
            for (name, rule) in &self.rules {
                for resource in &rule.resources {
                    let names = listing.entry(resource.clone()).or_default();
                    names.push(name.clone());
                }
            }
            listing
        });
        listing.get(resource).map_or(&[], Vec::as_slice)
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
    use crate::tests::fixtures::{reference, schedule_name, world};

    #[test]
    fn what_is_listed_after_the_first_question_is_known_to_the_next() {
        let web = reference("do-main/droplet/1");
        let mut schedules = world().configuration.schedules;
        assert!(schedules.listing(&web).is_empty());
        let office = schedules.get_mut(&schedule_name("office")).unwrap();
        office.resources.insert(web.clone());
        assert_eq!(schedules.listing(&web), [schedule_name("office")]);
        schedules.clear();
        assert!(schedules.listing(&web).is_empty());
    }
}
