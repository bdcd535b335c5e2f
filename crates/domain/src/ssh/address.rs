//! Hosts by name or address, and which of them are local to the caller.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::{fmt, str::FromStr};

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::as_text;

/// The IPv6 address at which AWS serves credentials; the IPv4 one is link-local.
const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254);

/// The addresses at which Azure and Alibaba Cloud serve a machine's metadata; those of other clouds
/// are link-local.
const OTHER_METADATA: [Ipv4Addr; 2] =
    [Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(100, 100, 100, 200)];

/// The start of the IPv6 addresses that stand for IPv4 ones behind a translator (RFC 6052).
const TRANSLATED: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];

/// The maximum length of a host name, in bytes (RFC 1035).
const LONGEST_HOST: usize = 253;

/// A host, by name or address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(JsonSchema),
    schemars(inline, extend("maxLength" = LONGEST_HOST, "pattern" = "^([A-Za-z0-9_.-]+|[0-9A-Fa-f:.]+)$"))
)]
pub struct Host(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// Nothing at all.
    #[error("empty host: write its name or address")]
    Empty,
    /// Anything but a name or an address.
    #[error("invalid host `{0}`: write a name or an address alone, without a user, port or scheme")]
    Malformed(String),
}

impl Host {
    /// The name or address as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reports whether this is a loopback, link-local or metadata address, or a name for one. What
    /// other names resolve to is known only when connecting: see [`is_private`].
    #[must_use]
    pub fn is_private(&self) -> bool {
        let name = self.0.trim_end_matches('.').to_ascii_lowercase();
        name == "localhost" || name.ends_with(".localhost") || name.parse().is_ok_and(is_private)
    }
}

/// Reports whether an address is a loopback, link-local or metadata one, or stands for this
/// machine.
#[must_use]
pub fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            address.is_loopback()
                || address.is_link_local()
                || address.is_unspecified()
                || OTHER_METADATA.contains(&address)
        }
        IpAddr::V6(address) => {
            address.is_loopback()
                || address.is_unicast_link_local()
                || address.is_unspecified()
                || address == METADATA
                || translated(address).is_some_and(|address| is_private(address.into()))
        }
    }
}

/// The IPv4 address that an IPv6 address stands for behind a translator.
fn translated(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let is_translated = address.segments().starts_with(&TRANSLATED);
    let [.., a, b, c, d] = address.octets();
    is_translated.then(|| Ipv4Addr::new(a, b, c, d))
}

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        let named = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let is_name = text.chars().all(named) && !text.starts_with(['-', '.']);
        let is_address = text.parse::<IpAddr>().is_ok();
        if text.len() <= LONGEST_HOST && (is_name || is_address) {
            Ok(Self(text.to_owned()))
        } else {
            Err(HostError::Malformed(text.to_owned()))
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

as_text!(Host, HostError);

/// A port of a host: `HOST:PORT`, with `[` and `]` around an IPv6 address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(JsonSchema),
    schemars(inline, extend("pattern" = r"^([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}$"))
)]
pub struct Endpoint {
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// No port, or one that is not between 1 and 65535.
    #[error("invalid endpoint `{0}`: write HOST:PORT, such as 10.0.0.9:22 or [2001:db8::9]:22")]
    Malformed(String),
    #[error("invalid endpoint")]
    Host(#[from] HostError),
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let malformed = || EndpointError::Malformed(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(malformed)?;
        let is_number = port.bytes().all(|c| c.is_ascii_digit());
        let port = port.parse().ok().filter(|port| is_number && *port != 0);
        let within = host.strip_prefix('[').map(|host| host.strip_suffix(']'));
        let host = match within {
            Some(address) => address.ok_or_else(malformed)?,
            None if host.contains(':') => return Err(malformed()),
            None => host,
        };
        Ok(Self { port: port.ok_or_else(malformed)?, host: host.parse()? })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.as_str().contains(':') {
            write!(f, "[{host}]:{port}")
        } else {
            write!(f, "{host}:{port}")
        }
    }
}

as_text!(Endpoint, EndpointError);
