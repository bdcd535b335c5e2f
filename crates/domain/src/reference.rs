//! Names and references: `ACCOUNT/KIND/ID`, parsed once at the edge and trusted from there on.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Words that mean something else where a schedule's or account's name may appear.
const RESERVED: [&str; 3] = ["off", "none", "all"];

/// The regular expression that every name matches.
pub const NAME_PATTERN: &str = "^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$";

/// The regular expression that every reference matches.
#[cfg(feature = "schema")]
pub(crate) const REFERENCE_PATTERN: &str = "^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?/((droplet|server)/[0-9]+\
    |database/[A-Za-z0-9-]{1,64}|node-pool/[A-Za-z0-9-]{1,64}/[A-Za-z0-9-]{1,64}\
    |machine/[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?)$";

/// Not a valid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The text does not match the grammar of names.
    #[error(
        "invalid name `{0}`: expected 1 to 63 of a-z, 0-9, `-` and `_`, with a letter or digit at both ends"
    )]
    Malformed(String),
    /// The word is taken: `offhours:off` is the opt-out tag.
    #[error("`{0}` is reserved and cannot be a name")]
    Reserved(String),
}

fn parse_name(text: &str) -> Result<String, NameError> {
    let edge = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let inner = |c: u8| edge(c) || c == b'-' || c == b'_';
    let bytes = text.as_bytes();
    let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) else {
        return Err(NameError::Malformed(text.to_owned()));
    };
    if bytes.len() > 63 || !edge(first) || !edge(last) || !bytes.iter().all(|&c| inner(c)) {
        return Err(NameError::Malformed(text.to_owned()));
    }
    if RESERVED.contains(&text) {
        return Err(NameError::Reserved(text.to_owned()));
    }
    Ok(text.to_owned())
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        #[cfg_attr(
            feature = "schema",
            derive(schemars::JsonSchema),
            schemars(inline, extend("pattern" = NAME_PATTERN))
        )]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                parse_name(text).map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

name! {
    /// The name of an account: one login at one provider.
    AccountName
}
name! {
    /// The name of a schedule, as in the tag `offhours:NAME`.
    ScheduleName
}
name! {
    /// The name of a target to which events are sent.
    TargetName
}
name! {
    /// The name of a group of resources that start and stop in an order.
    GroupName
}
name! {
    /// The name of a machine that an SSH account stops and starts.
    MachineName
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A Droplet's number.
    DropletId(u64)
}
id! {
    /// A database cluster's UUID, as DigitalOcean writes it.
    DatabaseId(String)
}
id! {
    /// A Kubernetes cluster's UUID.
    ClusterId(String)
}
id! {
    /// A node pool's UUID, unique within its cluster.
    PoolId(String)
}
id! {
    /// A Hetzner Cloud server's number.
    ServerId(u64)
}

/// The kinds of resource that Offhours stops and starts.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
)]
#[strum(serialize_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ResourceKind {
    /// A DigitalOcean Droplet: powered off and on.
    Droplet,
    /// A DigitalOcean managed database: resized to its smallest plan and back.
    Database,
    /// A DigitalOcean Kubernetes node pool: scaled to zero and back.
    NodePool,
    /// A Hetzner Cloud server: shut down or powered off, then powered on.
    Server,
    /// A machine of your own: stopped and started by commands over SSH.
    Machine,
}

impl ResourceKind {
    /// All kinds, in display order.
    pub const ALL: [Self; 5] =
        [Self::Droplet, Self::Database, Self::NodePool, Self::Server, Self::Machine];

    /// Returns the word for this kind within a reference.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    #[must_use]
    pub fn family(self) -> Family {
        match self {
            Self::Droplet | Self::Server => Family::CloudMachine,
            Self::Database => Family::Database,
            Self::NodePool => Family::NodePool,
            Self::Machine => Family::OwnMachine,
        }
    }

    /// Reports whether a stop makes the resource smaller (and its size must be saved) rather than
    /// off.
    #[must_use]
    pub fn is_sized(self) -> bool {
        match self.family() {
            Family::Database | Family::NodePool => true,
            Family::CloudMachine | Family::OwnMachine => false,
        }
    }
}

/// What kinds of different clouds have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// A machine with a plan, which its cloud can cut off, move and copy.
    CloudMachine,
    Database,
    NodePool,
    /// A machine over SSH.
    OwnMachine,
}

/// A resource within its account: the kind, and the provider's id for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub enum ResourceId {
    /// `droplet/3164444`
    Droplet(DropletId),
    /// `database/9cc10173-…`
    Database(DatabaseId),
    /// `node-pool/CLUSTER/POOL`
    NodePool(ClusterId, PoolId),
    /// `server/42`
    Server(ServerId),
    /// `machine/build-01`
    Machine(MachineName),
}

impl ResourceId {
    /// The kind of resource that this id belongs to.
    #[must_use]
    pub fn kind(&self) -> ResourceKind {
        match self {
            Self::Droplet(_) => ResourceKind::Droplet,
            Self::Database(_) => ResourceKind::Database,
            Self::NodePool(..) => ResourceKind::NodePool,
            Self::Server(_) => ResourceKind::Server,
            Self::Machine(_) => ResourceKind::Machine,
        }
    }

    /// Returns another machine of the same cloud, by its number.
    #[must_use]
    pub fn with_number(&self, number: u64) -> Option<Self> {
        match self {
            Self::Droplet(_) => Some(Self::Droplet(DropletId(number))),
            Self::Server(_) => Some(Self::Server(ServerId(number))),
            Self::Database(_) | Self::NodePool(..) | Self::Machine(_) => None,
        }
    }

    /// Returns the provider's own id, without the kind: `3164444`, `CLUSTER/POOL`.
    #[must_use]
    pub fn provider_id(&self) -> String {
        match self {
            Self::Droplet(id) => id.to_string(),
            Self::Database(id) => id.to_string(),
            Self::NodePool(cluster, pool) => format!("{cluster}/{pool}"),
            Self::Server(id) => id.to_string(),
            Self::Machine(name) => name.to_string(),
        }
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.kind(), self.provider_id()))
    }
}

impl TryFrom<String> for ResourceId {
    type Error = ReferenceError;

    fn try_from(text: String) -> Result<Self, ReferenceError> {
        text.parse()
    }
}

impl From<ResourceId> for String {
    fn from(id: ResourceId) -> Self {
        id.to_string()
    }
}

impl FromStr for ResourceId {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let malformed = || ReferenceError::Malformed(text.to_owned());
        let opaque = |id: &str| {
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
            if id.is_empty() || id.len() > 64 || !id.chars().all(fits) {
                return Err(malformed());
            }
            Ok(id.to_owned())
        };
        let number = |id: &str| {
            if !id.bytes().all(|c| c.is_ascii_digit()) {
                return Err(malformed());
            }
            id.parse().map_err(|_| malformed())
        };
        let (kind, id) = text.split_once('/').ok_or_else(malformed)?;
        match kind {
            "droplet" => Ok(Self::Droplet(DropletId(number(id)?))),
            "database" => Ok(Self::Database(DatabaseId(opaque(id)?))),
            "node-pool" => {
                let (cluster, pool) = id.split_once('/').ok_or_else(malformed)?;
                Ok(Self::NodePool(ClusterId(opaque(cluster)?), PoolId(opaque(pool)?)))
            }
            "server" => Ok(Self::Server(ServerId(number(id)?))),
            "machine" => Ok(Self::Machine(id.parse().map_err(|_| malformed())?)),
            _ => Err(ReferenceError::UnknownKind {
                reference: text.to_owned(),
                kind: kind.to_owned(),
            }),
        }
    }
}

/// Not a valid reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// The text does not have the form of a reference.
    #[error(
        "invalid reference `{0}`: expected ACCOUNT/droplet/NUMBER, ACCOUNT/database/UUID, \
         ACCOUNT/node-pool/CLUSTER/POOL, ACCOUNT/server/NUMBER or ACCOUNT/machine/NAME"
    )]
    Malformed(String),
    /// The word in the middle is not a kind that Offhours knows.
    #[error(
        "invalid reference `{reference}`: unknown kind `{kind}`: expected droplet, database, \
         node-pool, server or machine"
    )]
    UnknownKind {
        /// The whole text.
        reference: String,
        /// The word in place of the kind.
        kind: String,
    },
    /// The account part is not a valid name.
    #[error("invalid reference `{reference}`: expected an account's name first")]
    Account {
        /// The whole text.
        reference: String,
        /// What is wrong with the name.
        #[source]
        source: NameError,
    },
}

/// The reference of a resource: `ACCOUNT/KIND/ID`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(inline, extend("pattern" = REFERENCE_PATTERN))
)]
pub struct ResourceRef {
    /// The account that reaches the resource.
    pub account: AccountName,
    /// The resource within the account.
    pub id: ResourceId,
}

impl ResourceRef {
    /// The kind of resource that this reference names.
    #[must_use]
    pub fn kind(&self) -> ResourceKind {
        self.id.kind()
    }
}

impl fmt::Display for ResourceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.account, self.id))
    }
}

impl FromStr for ResourceRef {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let (account, id) =
            text.split_once('/').ok_or_else(|| ReferenceError::Malformed(text.to_owned()))?;
        let account = account
            .parse()
            .map_err(|source| ReferenceError::Account { reference: text.to_owned(), source })?;
        let id = id.parse().map_err(|error| match error {
            ReferenceError::UnknownKind { kind, .. } => {
                ReferenceError::UnknownKind { reference: text.to_owned(), kind }
            }
            ReferenceError::Malformed(_) | ReferenceError::Account { .. } => {
                ReferenceError::Malformed(text.to_owned())
            }
        })?;
        Ok(Self { account, id })
    }
}

impl TryFrom<String> for ResourceRef {
    type Error = ReferenceError;

    fn try_from(text: String) -> Result<Self, ReferenceError> {
        text.parse()
    }
}

impl From<ResourceRef> for String {
    fn from(reference: ResourceRef) -> Self {
        reference.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_reference_prints_as_it_was_read() {
        for text in [
            "do-main/droplet/3164444",
            "do-main/database/9cc10173-e9ea-4176-9dbc-a4cee4c4ff30",
            "do-main/node-pool/bd5f5959-5e1e-4205-a714-a914373942af/cdda885e-7663-40c8-bc74-3a036c66545d",
            "hz-eu/server/42",
            "lab/machine/build-01",
        ] {
            let reference: ResourceRef = text.parse().unwrap();
            assert_eq!(reference.to_string(), text);
        }
    }

    #[test]
    fn invalid_references_are_refused_with_the_text_in_the_message() {
        for text in [
            "",
            "do-main",
            "do-main/droplet",
            "do-main/droplet/",
            "do-main/droplet/-1",
            "do-main/droplet/+1",
            "do-main/droplet/1/2",
            "do-main/node-pool/cluster",
            "do-main/database/a b",
            "do-main/volume/1",
            "Do-Main/droplet/1",
            "off/droplet/1",
            "do-main/server/99999999999999999999",
            "lab/machine/Build",
            "lab/machine/a/b",
        ] {
            let error = text.parse::<ResourceRef>().unwrap_err();
            assert!(error.to_string().contains(text), "{error}");
        }
    }

    #[test]
    fn names_keep_to_their_grammar() {
        for name in ["a", "office-hours", "a_b", "0", &"a".repeat(63)] {
            assert!(name.parse::<ScheduleName>().is_ok(), "{name}");
        }
        for name in ["", "-a", "a-", "A", "a b", "ä", "off", "none", "all", &"a".repeat(64)] {
            assert!(name.parse::<ScheduleName>().is_err(), "{name}");
        }
    }
}
