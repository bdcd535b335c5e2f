//! `[notify.NAME]`: where events are sent.

use std::collections::BTreeMap;

use domain::{
    TargetName,
    configuration::notify::{NotifyTarget, TargetKind},
    token::TokenReference,
};

use super::document::Field;

pub(super) fn read(root: &Field) -> BTreeMap<TargetName, NotifyTarget> {
    refuse_parameters(root, &["heartbeat"]);
    let schedules = root.field("schedules");
    let targets = root.named::<TargetName>("notify", "target").into_iter();
    let targets = targets.filter(|(_, field)| field.value.is_table());
    let targets = targets.filter_map(|(name, field)| {
        for (listed, schedule) in field.list::<String>("schedules") {
            if schedules.as_ref().is_none_or(|all| all.field(&schedule).is_none()) {
                listed.warning(format!("unknown schedule `{schedule}`"));
            }
        }
        if field.field("owner").is_some() && root.field("owner_tag").is_none() {
            field.refuse("owner", "needs owner_tag = \"KEY\" at the top of the file".to_owned());
        }
        refuse_parameters(&field, &["url", "secret"]);
        if let Some(kind) = field.get("kind") {
            check_keys(&field, kind);
        }
        name.zip(field.read::<NotifyTarget>())
    });
    targets.collect()
}

/// Reports parameters of AWS: only the service without AWS sends events, and it reads none.
fn refuse_parameters(field: &Field, keys: &[&str]) {
    for key in keys {
        if let Some(TokenReference::Ssm(_)) = field.get(key) {
            let why = "is not read on AWS; write env:VARIABLE, file:/PATH or credential:NAME";
            field.refuse(key, why.to_owned());
        }
    }
}

/// Reports the keys that a kind of target lacks or cannot have.
fn check_keys(field: &Field, kind: TargetKind) {
    for (key, owner) in
        [("secret", TargetKind::Webhook), ("from", TargetKind::Mail), ("to", TargetKind::Mail)]
    {
        let is_given = field.field(key).is_some();
        if is_given && kind != owner {
            field.refuse(key, format!("is for targets of the kind {owner}; remove the key"));
        } else if !is_given && kind == owner {
            field.error(format!("has no {key}; write {key} = {}", field.advice_to_write(key)));
        }
    }
}
