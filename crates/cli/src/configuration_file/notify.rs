//! `[notify.NAME]`: where events are sent.

use std::collections::BTreeMap;

use domain::{
    TargetName,
    configuration::notify::{Target, TargetKind},
};

use super::document::Field;

pub(super) fn read(root: &Field) -> BTreeMap<TargetName, Target> {
    let schedules = root.field("schedules");
    let targets = root.named::<TargetName>("notify", "target").into_iter();
    let targets = targets.filter(|(_, field)| field.value.is_table());
    let targets = targets.filter_map(|(name, field)| {
        for (listed, schedule) in field.list::<String>("schedules") {
            if schedules.as_ref().is_none_or(|all| all.field(&schedule).is_none()) {
                listed.warning(format!("there is no schedule `{schedule}`"));
            }
        }
        let target = field.read::<Target>()?;
        check_keys(&field, target.kind);
        name.map(|name| (name, target))
    });
    targets.collect()
}

/// Reports the keys that a kind of target lacks or cannot have.
fn check_keys(field: &Field, kind: TargetKind) {
    for (key, owner, what) in [
        ("secret", TargetKind::Webhook, "the secret that signs each request, \"env:OPS_SECRET\""),
        ("from", TargetKind::Mail, "the address of the sender, \"offhours@example.com\""),
        ("to", TargetKind::Mail, "the recipients, [\"ops@example.com\"]"),
    ] {
        let is_given = field.field(key).is_some();
        if is_given && kind != owner {
            field.refuse(key, format!("is for targets of the kind {owner}; remove the key"));
        } else if !is_given && kind == owner {
            field.error(format!("has no {key}; write {key} = {what}"));
        }
    }
}
