//! `[groups.NAME]`: resources that start after others, and stop before them.

use std::{fmt, str::FromStr};

use jiff::SignedDuration;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Check, Pattern};
use crate::{
    measure::Wait,
    reference::{GroupName, NameError, ReferenceError, ResourceRef},
    stored::is_default,
    text::as_text,
};
#[cfg(feature = "schema")]
use crate::{
    reference::REFERENCE_PATTERN,
    schema::{OneOrMore, OneOrSeveral},
};

/// Resources that start after others and stop before them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(rename = "group", deny_unknown_fields))]
pub struct Group {
    /// The members: references, names or tags, in which * matches any text.
    #[cfg_attr(feature = "schema", schemars(with = "OneOrMore<Pattern>", extend("examples" = [["name:orders-*", "tag:team:shop"]])))]
    pub resources: Vec<Pattern>,
    /// The groups and resources that start before the members, and stop after them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "OneOrSeveral<Followed>", extend("examples" = [["shop-data", "do-main/droplet/3164444"]])))]
    pub after: Vec<Followed>,
    /// How long a member waits for what it follows. Then it goes on, and an event says so. Default:
    /// 30m.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "30m", "examples" = ["15m"])))]
    pub wait: Wait,
    /// What must answer before what follows the members starts: `tcp://HOST:PORT`, which accepts
    /// connections, or `http://` and `https://` addresses, which answer with a status from 200 to 399.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Check", extend("examples" = ["tcp://db.example.net:5432"])))]
    pub check: Option<Check>,
}

impl Group {
    /// Returns how long a member waits.
    #[must_use]
    pub fn patience(&self) -> SignedDuration {
        SignedDuration::try_from(self.wait.get()).unwrap_or(SignedDuration::MAX)
    }
}

/// What members of a group start after: a group, or a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(JsonSchema),
    schemars(inline, extend("pattern" = [REFERENCE_PATTERN, crate::reference::NAME_PATTERN].join("|")))
)]
pub enum Followed {
    Group(GroupName),
    Resource(ResourceRef),
}

/// Not a valid entry of `after`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FollowedError {
    #[error(transparent)]
    Group(#[from] NameError),
    #[error(transparent)]
    Resource(#[from] ReferenceError),
}

impl FromStr for Followed {
    type Err = FollowedError;

    fn from_str(text: &str) -> Result<Self, FollowedError> {
        if text.contains('/') {
            Ok(Self::Resource(text.parse()?))
        } else {
            Ok(Self::Group(text.parse()?))
        }
    }
}

impl fmt::Display for Followed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group(group) => group.fmt(f),
            Self::Resource(resource) => resource.fmt(f),
        }
    }
}

as_text!(Followed, FollowedError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_group_follows_is_a_group_or_a_reference() {
        for text in ["shop-data", "do-main/droplet/7"] {
            let followed: Followed = text.parse().unwrap();
            assert_eq!(followed.to_string(), text);
            assert_eq!(matches!(followed, Followed::Resource(_)), text.contains('/'));
        }
        for text in ["", "none", "name:shop-*", "do-main/droplet/*"] {
            assert!(text.parse::<Followed>().is_err(), "{text}");
        }
    }
}
