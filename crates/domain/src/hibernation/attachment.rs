//! What is given back to a recreated machine, one by one.

use std::{fmt, str::FromStr};

use serde::{
    Deserialize, Serialize,
    de::{IntoDeserializer as _, value},
};

use super::{BackupPolicy, Balanced, KeptAddress, NetworkAddress};

/// One thing to give back to a recreated machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Attachment {
    /// Its place in a placement group.
    PlacementGroup(String),
    /// Its addresses in a private network.
    Network(NetworkAddress),
    /// A volume.
    Volume(String),
    /// A firewall.
    Firewall(String),
    /// A load balancer's target.
    LoadBalancer(Balanced),
    /// An address that moves between machines.
    FloatingIp(String),
    /// Its place in a project.
    Project(String),
    /// Backups.
    Backups(Option<BackupPolicy>),
    /// A public address, which is given only at creation.
    Address(KeptAddress),
    /// Its place in a VPC, which is given only at creation.
    Vpc(String),
}

impl Attachment {
    /// Reports whether a machine that was created without it can never have it.
    #[must_use]
    pub fn is_given_at_creation(&self) -> bool {
        matches!(self, Self::Address(_) | Self::Vpc(_))
    }

    /// Returns its kind and id, by which a person names it.
    #[must_use]
    pub fn name(&self) -> AttachmentName {
        let (kind, id) = match self {
            Self::PlacementGroup(id) => (AttachmentKind::PlacementGroup, id.as_str()),
            Self::Network(one) => (AttachmentKind::Network, one.network.as_str()),
            Self::Volume(id) => (AttachmentKind::Volume, id.as_str()),
            Self::Firewall(id) => (AttachmentKind::Firewall, id.as_str()),
            Self::LoadBalancer(one) => (AttachmentKind::LoadBalancer, one.id.as_str()),
            Self::FloatingIp(ip) => (AttachmentKind::FloatingIp, ip.as_str()),
            Self::Project(id) => (AttachmentKind::Project, id.as_str()),
            Self::Backups(_) => (AttachmentKind::Backups, ""),
            Self::Address(one) => (AttachmentKind::Address, one.ip.as_str()),
            Self::Vpc(id) => (AttachmentKind::Vpc, id.as_str()),
        };
        AttachmentName { kind, id: id.to_owned() }
    }
}

impl fmt::Display for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}

/// What an attachment is, without what it takes to give it back: `network/7`, `backups`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AttachmentName {
    pub kind: AttachmentKind,
    /// Its id at the cloud, or its address; empty for backups.
    pub id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttachmentKind {
    PlacementGroup,
    Network,
    Volume,
    Firewall,
    LoadBalancer,
    FloatingIp,
    Project,
    Backups,
    Address,
    Vpc,
}

impl fmt::Display for AttachmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.serialize(&mut *f)?;
        if self.id.is_empty() { Ok(()) } else { write!(f, "/{}", self.id) }
    }
}

impl FromStr for AttachmentName {
    type Err = value::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, id) = text.split_once('/').unwrap_or((text, ""));
        let kind = AttachmentKind::deserialize(kind.into_deserializer())?;
        Ok(Self { kind, id: id.to_owned() })
    }
}

impl TryFrom<String> for AttachmentName {
    type Error = value::Error;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<AttachmentName> for String {
    fn from(name: AttachmentName) -> Self {
        name.to_string()
    }
}
