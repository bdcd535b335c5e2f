//! `[groups.NAME]`: resources that start and stop in an order.

use std::collections::BTreeMap;

use domain::{
    GroupName,
    configuration::{Followed, Group},
    order::Graph,
};
use report::{joined, nearest::advice};

use super::document::Field;

pub(super) fn read(root: &Field) -> BTreeMap<GroupName, Group> {
    let named = root.named::<GroupName>("groups", "group");
    let all = named.iter().map(|(_, field)| field.key).collect::<Vec<_>>();
    let mut read = BTreeMap::new();
    for (name, field) in &named {
        for (listed, followed) in field.list::<Followed>("after") {
            if let Followed::Group(group) = &followed
                && !all.contains(&group.as_str())
            {
                let advice = advice(group.as_str(), "groups", all.iter().copied());
                listed.error(format!("there is no group `{group}`; {advice}"));
            }
        }
        if field.value.is_table()
            && let Some(group) = field.read::<Group>()
            && let Some(name) = name
        {
            read.insert(name.clone(), group);
        }
    }
    if let Some(path) = Graph::of(&read).cycle() {
        let lists = |(_, group): &(&GroupName, &Group)| group.after.contains(path[1]);
        let listing = read.iter().find(lists).map(|(name, _)| name.as_str());
        let message = format!(
            "is a cycle, {}: none could start first; take one of them out of another's `after`",
            joined(&path, " after ")
        );
        if let Some((_, field)) = named.iter().find(|(_, field)| Some(field.key) == listing) {
            field.refuse("after", &message);
        }
    }
    read
}
