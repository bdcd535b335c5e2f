//! The patterns of `protect`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use wildmatch::WildMatch;

use crate::{reference::ResourceRef, text::as_text};

/// A pattern of `protect`: a reference, `name:NAME` or `tag:TAG`, in which `*` matches any text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(inline, extend("pattern" = r"^((name|tag):[\s\S]*\S[\s\S]*|[^:]*/[^:]*|\*)$"))
)]
pub struct Pattern {
    subject: PatternSubject,
    glob: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PatternSubject {
    Reference,
    Name,
    Tag,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid pattern `{0}`: write a reference such as do-main/droplet/*, name:*prod* or tag:production"
)]
pub struct PatternError(pub String);

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let (subject, glob) = match text.split_once(':') {
            Some(("name", glob)) => (PatternSubject::Name, glob),
            Some(("tag", glob)) => (PatternSubject::Tag, glob),
            // A reference contains slashes; a lone star covers every reference.
            None if text.contains('/') || text == "*" => (PatternSubject::Reference, text),
            Some(_) | None => return Err(PatternError(text.to_owned())),
        };
        let glob = glob.trim();
        if glob.is_empty() {
            return Err(PatternError(text.to_owned()));
        }
        // A full reference is normalized, so that it covers its resource however the number is
        // written.
        let whole = (subject == PatternSubject::Reference)
            .then(|| glob.parse::<ResourceRef>().ok())
            .flatten();
        let glob = whole.map_or_else(|| glob.to_owned(), |reference| reference.to_string());
        Ok(Self { subject, glob })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match self.subject {
            PatternSubject::Reference => "",
            PatternSubject::Name => "name:",
            PatternSubject::Tag => "tag:",
        };
        write!(f, "{prefix}{}", self.glob)
    }
}

as_text!(Pattern, PatternError);

impl Pattern {
    /// Returns what it says after `name:` or `tag:`.
    #[must_use]
    pub fn glob(&self) -> &str {
        &self.glob
    }

    /// Reports whether the pattern covers a resource with this reference, any of these names or any
    /// of these tags. Matching ignores case, and whether a tag is written `env:prod` or `env=prod`: a
    /// guard rail errs on the side of guarding.
    #[must_use]
    pub fn covers<'a>(
        &self,
        reference: &ResourceRef,
        mut names: impl Iterator<Item = &'a str>,
        mut tags: impl Iterator<Item = &'a str>,
    ) -> bool {
        match self.subject {
            PatternSubject::Reference => matches(&self.glob, &reference.to_string()),
            PatternSubject::Name => names.any(|name| matches(&self.glob, name)),
            PatternSubject::Tag => {
                let glob = as_tag(&self.glob);
                tags.any(|tag| matches(&glob, &as_tag(tag)))
            }
        }
    }
}

/// Reports whether a text matches a glob in any case.
pub(super) fn matches(glob: &str, text: &str) -> bool {
    WildMatch::new_case_insensitive(glob).matches(text)
}

/// A label as a tag.
fn as_tag(text: &str) -> String {
    text.replace('=', ":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_cover_references_names_and_tags() {
        #[track_caller]
        fn check(pattern: &str, reference: &ResourceRef, expected: bool) {
            let pattern: Pattern = pattern.parse().unwrap();
            let covers = pattern.covers(
                reference,
                ["eu-Prod-web"].into_iter(),
                ["production", "env=live"].into_iter(),
            );
            assert_eq!(covers, expected);
        }
        let reference: ResourceRef = "do-main/droplet/7".parse().unwrap();
        check("do-main/droplet/*", &reference, true);
        check("do-main/*", &reference, true);
        check("do-main/droplet/007", &reference, true);
        check("do-main/droplet/70", &reference, false);
        check("*/droplet/7", &reference, true);
        check("name:*prod*", &reference, true);
        check("name:prod", &reference, false);
        check("tag:Production", &reference, true);
        check("tag:env=*", &reference, true);
        check("tag:prod", &reference, false);
    }

    #[test]
    fn patterns_that_would_protect_nothing_are_refused() {
        for text in ["", "prod", "name:", "tag: ", "label:x", "label:team/x", "tags:a/b"] {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
    }
}
