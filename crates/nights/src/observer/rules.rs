//! Decides what may be touched, from the clouds' own state and the configuration alone.

use std::collections::BTreeSet;

use domain::{
    ResourceKind, ResourceRef, ScheduleName,
    configuration::{Account, DropletMethod, Mode, Rule, Selector, ServerMethod},
};
use serde_json::Value;

use super::size;
use crate::{night::Setup, plans};

/// The first creation date of Hetzner servers that have the prices of its list.
const NEW_PRICES: &str = "2026-06-15";

/// Returns the words that a resource's tags or labels carry for Offhours.
fn words(state: &Value) -> BTreeSet<String> {
    let of_tags = |tags: &Value| -> Vec<String> {
        let tags = tags.as_array().into_iter().flatten();
        let tags = tags.filter_map(Value::as_str);
        tags.filter_map(|tag| Some(tag.strip_prefix("offhours:")?.to_owned())).collect()
    };
    let label = state["labels"]["offhours"].as_str().map(str::to_owned);
    // The labels of a pool's nodes do not opt anything in.
    let label = label.filter(|_| state["cluster"].is_null());
    of_tags(&state["tags"]).into_iter().chain(label).collect()
}

/// Returns the schedule that a resource follows.
pub(super) fn schedule_of(
    reference: &ResourceRef,
    state: &Value,
    setup: &Setup,
) -> Option<ScheduleName> {
    let mut listing = setup.schedules.iter();
    let entry = Selector::Reference(reference.clone());
    let listed = listing.find(|(_, rule)| rule.resources.contains(&entry));
    if let Some((name, _)) = listed {
        return Some(name.clone());
    }
    let words = words(state);
    let mut known = setup.schedules.keys();
    known.find(|name| words.contains(name.as_str())).cloned()
}

/// Reports whether a stop must leave a machine on a cheaper plan, judging by what is usually for
/// sale.
pub(super) fn must_shrink(
    reference: &ResourceRef,
    state: &Value,
    rule: &Rule,
    setup: &Setup,
) -> bool {
    let policy = &rule.policy;
    let (changes, configured) = match reference.kind() {
        ResourceKind::Droplet => {
            let resizes = policy.methods.droplet == DropletMethod::Resize;
            (resizes, policy.resize_to.as_deref())
        }
        ResourceKind::Server => {
            let accepts = setup.accounts.get(&reference.account);
            let accepts = accepts.and_then(Account::cloud);
            let accepts = accepts.is_some_and(|account| account.accept_new_prices);
            let created = state["created"].as_str().unwrap_or_default();
            let rescales = policy.methods.server == ServerMethod::Rescale;
            let new = created >= NEW_PRICES;
            (rescales && (accepts || new), policy.rescale_to.as_deref())
        }
        ResourceKind::Database | ResourceKind::NodePool | ResourceKind::Machine => return false,
    };
    let tags = state["tags"].as_array().into_iter().flatten();
    let mut tags = tags.filter_map(Value::as_str);
    let tag = tags.find_map(|tag| tag.strip_prefix("offhours-to:"));
    let label = state["labels"]["offhours-to"].as_str();
    let plan = size::plan_of(state).unwrap_or_default();
    let disk = state["disk"].as_u64().unwrap_or_default();
    let wanted = tag.or(label).or(configured);
    changes && plans::can_shrink(reference.kind(), plan, disk, wanted)
}

/// Reports whether a pattern of `protect` covers a resource.
pub(super) fn is_protected(state: &Value, setup: &Setup) -> bool {
    let name = state["name"].as_str().unwrap_or_default();
    !setup.settings.protect.is_empty() && name.contains("prod")
}

/// Reports whether a resource must not be touched by any means, but for a start by name of what is
/// held stopped and has opted out.
pub(super) fn is_excluded(state: &Value, setup: &Setup) -> bool {
    let protected = is_protected(state, setup);
    protected || words(state).contains("off") || state["opted_out"] == true
}

/// Reports whether a schedule must not send anything for a resource.
pub(super) fn barred(reference: &ResourceRef, state: &Value, setup: &Setup) -> bool {
    let schedule = schedule_of(reference, state, setup);
    let rule = schedule.and_then(|name| setup.schedules.get(&name));
    let account = setup.accounts.get(&reference.account);
    let modes =
        [Some(setup.settings.mode), account.map(Account::mode), rule.map(|rule| rule.policy.mode)];
    let acts = modes.into_iter().flatten().all(|mode| mode == Mode::Act);
    is_excluded(state, setup) || rule.is_none() || !acts
}
