//! What the tags of a resource, or its labels, ask of Offhours, and whose it is.

use std::collections::BTreeSet;

use crate::record::Record;

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

impl Record {
    /// Returns the value of its tag `KEY:VALUE` or label `KEY=VALUE`, or else of its cluster's.
    #[must_use]
    pub fn tag_value(&self, key: &str) -> Option<&str> {
        let cluster = self.cluster.iter().flat_map(|cluster| &cluster.tags);
        let mut tags = self.tags.iter().chain(cluster);
        tags.find_map(|tag| tag.strip_prefix(key)?.strip_prefix([':', '=']))
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::fixtures::droplet;

    #[test]
    fn a_value_is_that_of_its_own_tag_before_its_clusters() {
        let record = droplet().in_cluster("k8s", &["team:data"]);
        assert_eq!(record.tag_value("team"), Some("data"));
        for own in ["team:web", "team=web"] {
            let record = droplet().in_cluster("k8s", &["team:data"]).tagged(&["teams:x", own]);
            assert_eq!(record.tag_value("team"), Some("web"));
        }
        assert_eq!(droplet().tagged(&["team"]).tag_value("team"), None);
    }
}
