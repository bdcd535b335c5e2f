//! What the tags of a resource, or its labels, ask of Offhours.

use std::collections::BTreeSet;

/// The tag or label that names a schedule.
const TAG: &str = "offhours";

/// The tag or label that names the plan on which a machine is stopped.
const TARGET_TAG: &str = "offhours-to";

/// The tag or label that keeps a resource running for some time.
const UNTIL_TAG: &str = "offhours-until";

/// The word that opts a resource out, in place of a schedule's name.
pub(crate) const OPT_OUT: &str = "off";

/// Returns the names in tags `offhours:NAME` and labels `offhours=NAME`.
pub(crate) fn names_in(tags: &BTreeSet<String>) -> BTreeSet<String> {
    words(TAG, tags)
}

/// Returns the plans to stop on that tags `offhours-to:PLAN` and labels `offhours-to=PLAN` name.
/// These tags make nothing join a schedule.
pub(crate) fn target_tags(tags: &BTreeSet<String>) -> BTreeSet<String> {
    words(TARGET_TAG, tags)
}

/// Returns the values of tags `offhours-until:VALUE` and labels `offhours-until=VALUE`. These tags
/// make nothing join a schedule.
pub(crate) fn until_tags(tags: &BTreeSet<String>) -> BTreeSet<String> {
    words(UNTIL_TAG, tags)
}

/// Returns the words that tags `KEY:WORD` and labels `KEY=WORD` carry, in lower case.
fn words(key: &str, tags: &BTreeSet<String>) -> BTreeSet<String> {
    tags.iter()
        .filter_map(|tag| {
            let (its_key, word) = tag.split_once([':', '='])?;
            its_key.eq_ignore_ascii_case(key).then(|| word.trim().to_ascii_lowercase())
        })
        .collect()
}
