//! Who may be touched, judged from the clouds' own state and the configuration alone.

use std::collections::BTreeSet;

use domain::{ResourceRef, ScheduleName, configuration::Mode};
use serde_json::Value;

use crate::night::Setup;

/// The words that a resource's tags or labels carry for Offhours.
fn words(state: &Value) -> BTreeSet<String> {
    let of_tags = |tags: &Value| -> Vec<String> {
        let tags = tags.as_array().into_iter().flatten();
        let tags = tags.filter_map(Value::as_str);
        tags.filter_map(|tag| Some(tag.strip_prefix("offhours:")?.to_owned()))
            .collect()
    };
    let label = state["labels"]["offhours"].as_str().map(str::to_owned);
    // The labels of a pool's nodes opt nothing in.
    let label = label.filter(|_| state["cluster"].is_null());
    of_tags(&state["tags"]).into_iter().chain(label).collect()
}

/// The schedule that a resource follows.
pub(super) fn schedule_of(
    reference: &ResourceRef,
    state: &Value,
    setup: &Setup,
) -> Option<ScheduleName> {
    let mut listing = setup.schedules.iter();
    let listed = listing.find(|(_, rule)| rule.resources.contains(reference));
    if let Some((name, _)) = listed {
        return Some(name.clone());
    }
    let words = words(state);
    let mut known = setup.schedules.keys();
    known.find(|name| words.contains(name.as_str())).cloned()
}

/// Whether a resource must not be touched by whatever means.
pub(super) fn is_excluded(state: &Value, setup: &Setup) -> bool {
    let name = state["name"].as_str().unwrap_or_default();
    let protected = !setup.settings.protect.is_empty() && name.contains("prod");
    protected || words(state).contains("off")
}

/// Whether nothing may be sent for a resource by a schedule.
pub(super) fn barred(reference: &ResourceRef, state: &Value, setup: &Setup) -> bool {
    let schedule = schedule_of(reference, state, setup);
    let rule = schedule.and_then(|name| setup.schedules.get(&name));
    let acts = rule.is_some_and(|rule| rule.policy.mode == Mode::Act);
    is_excluded(state, setup) || setup.settings.mode != Mode::Act || !acts
}
