//! The entries of a schedule's `resources`: references, and names in which `*` matches any text.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::pattern::matches;
#[cfg(feature = "schema")]
use crate::reference::REFERENCE_PATTERN;
use crate::reference::{ReferenceError, ResourceRef};

/// The regular expression that every name in `resources` matches. No provider allows other
/// characters in the name of a resource.
#[cfg(feature = "schema")]
const NAME_PATTERN: &str = "^[A-Za-z0-9._*?-]+$";

/// An entry of a schedule's `resources`: one resource, or all whose names match a pattern.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(inline, extend("pattern" = [REFERENCE_PATTERN, NAME_PATTERN].join("|")))
)]
pub enum Selector {
    /// The resource with this reference.
    Reference(ResourceRef),
    /// The resources with such a name, or in a cluster with such a name, in any account.
    Name(NamePattern),
}

/// A resource's name, in which `*` matches any text and `?` any character. Matching ignores case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamePattern(String);

impl NamePattern {
    /// Returns the pattern as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reports whether one of these names matches.
    pub fn covers<'n>(&self, mut names: impl Iterator<Item = &'n str>) -> bool {
        names.any(|name| matches(&self.0, name))
    }
}

/// Not a valid entry of `resources`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// A text with a slash that is not a reference.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// A text without a slash that cannot be a resource's name.
    #[error(
        "invalid name `{0}`: expected a resource's name, such as ci-7, a pattern of names, such as ci-*, or a reference, such as do-main/droplet/3164444"
    )]
    Name(String),
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        if text.contains('/') {
            return Ok(Self::Reference(text.parse()?));
        }
        let is_valid = |c: char| c.is_ascii_alphanumeric() || "._*?-".contains(c);
        if text.is_empty() || !text.chars().all(is_valid) {
            return Err(SelectorError::Name(text.to_owned()));
        }
        Ok(Self::Name(NamePattern(text.to_owned())))
    }
}

impl TryFrom<String> for Selector {
    type Error = SelectorError;

    fn try_from(text: String) -> Result<Self, SelectorError> {
        text.parse()
    }
}

impl From<Selector> for String {
    fn from(selector: Selector) -> Self {
        selector.to_string()
    }
}

impl From<ResourceRef> for Selector {
    fn from(reference: ResourceRef) -> Self {
        Self::Reference(reference)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reference(reference) => reference.fmt(f),
            Self::Name(pattern) => f.pad(pattern.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_without_a_slash_is_a_name_and_any_other_a_reference() {
        for text in ["web", "ci-*", "*", "web-?.example.com", "3164444", "do-main/droplet/7"] {
            let selector: Selector = text.parse().unwrap();
            assert_eq!(selector.to_string(), text);
            assert_eq!(matches!(selector, Selector::Name(_)), !text.contains('/'), "{text}");
        }
        for text in ["", "name:ci-*", "tag:ci", "ci *", "ä", "do-main/droplet/*", "do-main/"] {
            assert!(text.parse::<Selector>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_pattern_matches_the_whole_name_in_any_case() {
        #[track_caller]
        fn check(pattern: &str, name: &str, expected: bool) {
            let Ok(Selector::Name(pattern)) = pattern.parse() else { unreachable!() };
            assert_eq!(pattern.covers([name].into_iter()), expected);
        }
        check("ci-*", "ci-7", true);
        check("CI-*", "ci-7", true);
        check("ci-?", "ci-17", false);
        check("ci", "ci-7", false);
        check("ci-7", "ci-7", true);
        check("*", "", true);
    }
}
