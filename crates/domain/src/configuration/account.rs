//! Accounts: logins at a cloud, or at a host that runs commands.

use std::{fmt, str::FromStr};

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Mode;
#[cfg(feature = "schema")]
use crate::schema::{self, OneOrMore};
use crate::{
    provider::Provider,
    reference::{AccountName, MachineName, ResourceKind},
    ssh::{SshLogin, SshMachine},
    stored::is_default,
    text::as_text,
    token::TokenReference,
};

/// A login at a cloud, or at a host that runs commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Account {
    Cloud(CloudAccount),
    /// A login at a host that runs commands.
    Ssh(Box<SshAccount>),
}

impl Account {
    #[must_use]
    pub fn kind(&self) -> AccountKind {
        match self {
            Self::Cloud(account) => AccountKind::Cloud(account.provider),
            Self::Ssh(_) => AccountKind::Ssh,
        }
    }

    /// Returns the account's previous name, if it had one.
    #[must_use]
    pub fn was(&self) -> Option<&AccountName> {
        match self {
            Self::Cloud(account) => account.was.as_ref(),
            Self::Ssh(account) => account.was.as_ref(),
        }
    }

    /// Sets the account's previous name.
    pub fn set_was(&mut self, was: AccountName) {
        match self {
            Self::Cloud(account) => account.was = Some(was),
            Self::Ssh(account) => account.was = Some(was),
        }
    }

    /// Returns the account's mode: whether decisions about its resources lead to requests.
    #[must_use]
    pub fn mode(&self) -> Mode {
        match self {
            Self::Cloud(account) => account.mode,
            Self::Ssh(account) => account.mode,
        }
    }

    /// Reports whether the account's token or key may be used before the account is applied: it goes
    /// to the provider's own address, or wherever the account in force sends it already. Neither a
    /// file that no person has confirmed, nor the right to ask, chooses where a token is sent or what
    /// runs where.
    #[must_use]
    pub fn may_be_asked(&self, in_force: Option<&Self>) -> bool {
        let (Some(proposed), in_force) = (self.cloud(), in_force.and_then(Self::cloud)) else {
            return false;
        };
        proposed.url.is_none() || in_force.is_some_and(|in_force| proposed.has_login_of(in_force))
    }

    /// Returns the destination of the account's token or key, if that is not the provider's own
    /// address: a base URL, or an SSH host.
    #[must_use]
    pub fn own_destination(&self) -> Option<String> {
        match self {
            Self::Cloud(account) => account.url.clone(),
            Self::Ssh(account) => Some(account.login.host.to_string()),
        }
    }

    /// Returns the cloud account, unless this is an SSH account.
    #[must_use]
    pub fn cloud(&self) -> Option<&CloudAccount> {
        match self {
            Self::Cloud(account) => Some(account),
            Self::Ssh(_) => None,
        }
    }

    /// Returns the machine of this name. A cloud account has none.
    #[must_use]
    pub fn machine(&self, name: &MachineName) -> Option<&SshMachine> {
        match self {
            Self::Cloud(_) => None,
            Self::Ssh(account) => account.login.machines.get(name),
        }
    }
}

impl From<CloudAccount> for Account {
    fn from(account: CloudAccount) -> Self {
        Self::Cloud(account)
    }
}

/// The kind of an account: a cloud, or machines over SSH. Written as the account's `provider`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(into = "&'static str")]
pub enum AccountKind {
    Cloud(Provider),
    /// Machines over SSH.
    Ssh,
}

impl AccountKind {
    pub fn all() -> impl Iterator<Item = Self> {
        Provider::ALL.into_iter().map(Self::Cloud).chain([Self::Ssh])
    }

    /// Returns the word for the kind in a configuration.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Cloud(provider) => provider.facts().word,
            Self::Ssh => "ssh",
        }
    }

    #[must_use]
    pub fn kinds(self) -> &'static [ResourceKind] {
        match self {
            Self::Cloud(provider) => provider.kinds(),
            Self::Ssh => &[ResourceKind::Machine],
        }
    }

    /// Returns what to do if the account's token or key is wrong, or lacks a permission.
    #[must_use]
    pub fn login_remedy(self) -> &'static str {
        match self {
            Self::Cloud(provider) => provider.facts().token_remedy,
            Self::Ssh => {
                "check that the host's authorized_keys has the public half of the account's key, for \
                 the account's user"
            }
        }
    }
}

impl From<AccountKind> for &'static str {
    fn from(kind: AccountKind) -> Self {
        kind.word()
    }
}

impl fmt::Display for AccountKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for AccountKind {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "provider".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let words: Vec<_> = Self::all().map(Self::word).collect();
        schemars::json_schema!({ "type": "string", "enum": words })
    }
}

/// The schema picks one of the two forms by `provider`.
#[cfg(feature = "schema")]
impl JsonSchema for Account {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "any-account".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let cloud = generator.subschema_for::<CloudAccount>();
        let ssh = generator.subschema_for::<SshAccount>();
        schemars::json_schema!({
            "if": { "required": ["provider"], "properties": { "provider": { "const": AccountKind::Ssh.word() } } },
            "then": ssh,
            "else": cloud,
        })
    }
}

/// An account at a host that runs the commands which stop and start machines: one SSH login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(JsonSchema),
    schemars(rename = "ssh-account", deny_unknown_fields)
)]
pub struct SshAccount {
    /// The provider: always "ssh".
    #[cfg_attr(feature = "schema", schemars(extend("examples" = ["ssh"])))]
    pub provider: Ssh,
    /// The account's previous name. Records and overrides of its machines are carried over from it.
    /// May stay here permanently.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "AccountName", extend("examples" = ["lab"])))]
    pub was: Option<AccountName>,
    /// "act" (the default), or "observe" to run none of this account's commands except `status`.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "act")))]
    pub mode: Mode,
    /// The host, its keys and the machines.
    #[serde(flatten)]
    pub login: SshLogin,
}

/// The provider of an SSH account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Ssh {
    /// `ssh`.
    #[default]
    Ssh,
}

/// An account at a cloud provider: one login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(JsonSchema),
    schemars(rename = "account", deny_unknown_fields)
)]
pub struct CloudAccount {
    /// The cloud provider: "digitalocean" or "hetzner".
    #[cfg_attr(feature = "schema", schemars(extend("examples" = ["digitalocean", "hetzner"])))]
    pub provider: Provider,
    /// The account's previous name. Records, saved sizes and overrides of its resources are carried
    /// over from it. May stay here permanently.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "AccountName", extend("examples" = ["do-main"])))]
    pub was: Option<AccountName>,
    /// Where the API token is stored, never the token itself: `ssm:/PATH/NAME` (an SSM parameter of
    /// type `SecureString`) or, not on AWS, `env:VARIABLE`, `file:/PATH` or `credential:NAME`.
    #[cfg_attr(feature = "schema", schemars(extend("examples" = ["ssm:/offhours/acting/NAME", "env:VARIABLE"])))]
    pub token: TokenReference,
    /// Where a read-only API token is stored, in the same form as `token`. Offhours observes with
    /// it, and uses `token` only to stop and start. Without it, `token` is used for both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "TokenReference", extend("examples" = ["ssm:/offhours/reading/do-main"])))]
    pub read_token: Option<TokenReference>,
    /// Hetzner: the locations to cover, such as `fsn1`. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "OneOrMore<Location>"))]
    pub datacenters: Vec<Location>,
    /// Hetzner: whether servers from before 2026-06-15 may be rescaled. They are billed at older
    /// prices, and a change of type moves them to the new prices permanently. Default: false.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub accept_new_prices: bool,
    /// The SSH key with which hibernated machines are recreated, by its name in the account.
    /// Without it, no machine is hibernated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("examples" = ["team"])))]
    pub ssh_key: Option<String>,
    /// "act" (the default), or "observe" to send nothing for this account.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "act")))]
    pub mode: Mode,
    /// A base URL to use instead of the provider's own: `https://HOST`, or `http://` on loopback. The
    /// account's token is sent there. On AWS, the deployment's parameter `AccountUrls` must list it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Url", extend("examples" = ["https://api.example.com"])))]
    pub url: Option<String>,
}

impl CloudAccount {
    /// Reports whether the account covers a region or location. Without datacenters, it covers all.
    #[must_use]
    pub fn covers(&self, region: &str) -> bool {
        let mut locations = self.datacenters.iter().map(Location::name);
        self.datacenters.is_empty() || locations.any(|location| location == region)
    }

    /// Reports whether both send the same tokens to the same address.
    fn has_login_of(&self, other: &Self) -> bool {
        self.provider == other.provider
            && self.url == other.url
            && self.token == other.token
            && self.read_token == other.read_token
    }

    /// Reports whether poll-status has a token of its own and cannot read the one that acts.
    #[must_use]
    pub fn keeps_token_from_poll_status(&self) -> bool {
        self.read_token.is_some() && self.token.is_for_acting()
    }
}

/// A Hetzner location that an account covers, as it is written: `fsn1`, or one of five datacenters,
/// which stand for their locations because the API has had no datacenters since 2026-07-01 (HGO).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(inline, extend(
        "pattern" = "^([a-z]{2,8}[0-9]{0,2}|fsn1-dc14|nbg1-dc3|hel1-dc2|ash-dc1|hil-dc1)$",
        "examples" = ["fsn1"]
    ))
)]
pub struct Location(String);

impl Location {
    /// The locations that are known; the API may have others (HZLOCATIONS).
    pub const KNOWN: [&str; 6] = ["fsn1", "nbg1", "hel1", "ash", "hil", "sin"];

    pub const DATACENTERS: [&str; 5] = ["fsn1-dc14", "nbg1-dc3", "hel1-dc2", "ash-dc1", "hil-dc1"];

    /// Returns the location as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the location's name in the API.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.split_once('-').map_or(&self.0, |(name, _)| name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown location `{0}`: expected one such as {known}", known = Location::KNOWN.join(", "))]
pub struct UnknownLocation(pub String);

impl FromStr for Location {
    type Err = UnknownLocation;

    fn from_str(text: &str) -> Result<Self, UnknownLocation> {
        let letters = text.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_name = (2..=8).contains(&letters.len())
            && text.len() - letters.len() <= 2
            && letters.bytes().all(|byte| byte.is_ascii_lowercase());
        if is_name || Self::DATACENTERS.contains(&text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(UnknownLocation(text.to_owned()))
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

as_text!(Location, UnknownLocation);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_location_is_valid_and_five_datacenters_stand_for_theirs() {
        let name = |text: &str| text.parse().map(|one: Location| one.name().to_owned()).ok();
        for known in Location::KNOWN.into_iter().chain(["syd2"]) {
            assert_eq!(name(known).as_deref(), Some(known));
        }
        let datacenters = Location::DATACENTERS.map(|one| name(one).unwrap());
        assert_eq!(datacenters, ["fsn1", "nbg1", "hel1", "ash", "hil"]);
        for unknown in ["", "1", "FSN1", "fsn1-dc15", "sin-dc1", "fsn 1", "eu-central", "f"] {
            assert_eq!(name(unknown), None, "{unknown}");
        }
    }

    fn account(json: &str) -> Account {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_token_goes_to_a_new_address_only_once_it_is_in_force() {
        let at = |token: &str, url: &str| {
            account(&format!(r#"{{"provider": "hetzner", "token": "{token}", "url": "{url}"}}"#))
        };
        let usual = account(r#"{"provider": "hetzner", "token": "ssm:/offhours/hz"}"#);
        assert!(usual.may_be_asked(None));
        let elsewhere = at("ssm:/offhours/hz", "https://example.com");
        assert!(!elsewhere.may_be_asked(None));
        assert!(!elsewhere.may_be_asked(Some(&usual)));
        let other = at("ssm:/offhours/hz", "https://example.net");
        assert!(!elsewhere.may_be_asked(Some(&other)));
        assert!(elsewhere.may_be_asked(Some(&elsewhere)));
        // Another token does not go to an address that is in force for this one.
        let another = at("ssm:/offhours/acting/do-main", "https://example.com");
        assert!(!another.may_be_asked(Some(&elsewhere)));
        // Whether new prices are accepted does not affect where the token is sent.
        let mut accepting = elsewhere.clone();
        if let Account::Cloud(account) = &mut accepting {
            account.accept_new_prices = true;
        }
        assert!(accepting.may_be_asked(Some(&elsewhere)));
    }

    #[test]
    fn no_host_is_connected_to_before_it_is_applied() {
        let key =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID2MFepRAu6qdgmRqxbuktBQOdN2QdL0zSZ1xcsO/yTw";
        let lab = account(&format!(
            r#"{{"provider": "ssh", "host": "jump.example.net", "user": "offhours",
            "key": "ssm:/offhours/lab-key", "host_keys": ["{key}"]}}"#
        ));
        assert!(!lab.may_be_asked(None));
        // A changed account may run other commands there.
        assert!(!lab.may_be_asked(Some(&lab)));
        assert_eq!(lab.own_destination().as_deref(), Some("jump.example.net"));
    }
}
