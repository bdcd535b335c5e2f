//! The parsed configuration of one generation: accounts, schedules and guard rails.

mod schedules;
mod selector;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use jiff::{SignedDuration, Timestamp};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wildmatch::WildMatch;

#[cfg(feature = "schema")]
use crate::schema::{self, OneOrMore, OneOrSeveral};
use crate::{
    hibernation::Risk,
    machine::{Machine, SshLogin},
    prices::OwnPrices,
    record::Direction,
    reference::{AccountName, MachineName, ResourceId, ResourceKind, ResourceRef, ScheduleName},
    schedule::{self, Desired, Schedule},
    text,
};

pub use schedules::Schedules;
pub use selector::{NamePattern, Selector, SelectorError};

/// Default limit on the stops that dispatch hands out per account and tick.
pub const DEFAULT_MAX_STOPS: u32 = 100;

/// Default limit on the resources that may join schedules in one inventory before they are held for
/// approval.
pub const DEFAULT_MAX_NEW: u32 = 25;

/// The number of an applied configuration. Each `apply` increases it; zero means that nothing has
/// been applied.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Generation(pub u64);

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One complete generation of the configuration.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Configuration {
    /// The generation's number.
    pub generation: Generation,
    /// The settings of the whole service.
    pub settings: Settings,
    /// Accounts by name.
    pub accounts: BTreeMap<AccountName, Account>,
    /// Schedules by name.
    pub schedules: Schedules,
    /// The guard rails of the deployment that reads it; no part of what is stored.
    #[serde(skip)]
    pub floor: Floor,
}

/// The guard rails of a deployment, which hold whatever a configuration says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Floor {
    /// Resources that are never touched.
    pub protect: Vec<Pattern>,
    /// "observe" if nothing is sent at all.
    pub mode: Mode,
}

impl Configuration {
    /// Returns how long a stop or a start of a resource may take, if its account sets that.
    #[must_use]
    pub fn effect_timeout(
        &self,
        reference: &ResourceRef,
        direction: Direction,
    ) -> Option<SignedDuration> {
        let machine = self.machine(reference)?;
        let deadline = match direction {
            Direction::Stop => machine.stop_deadline,
            Direction::Start => machine.start_deadline,
        };
        SignedDuration::try_from(deadline.get()).ok()
    }

    /// Reports whether a stop of a resource may end in a power cut. A machine over SSH needs a
    /// command for that.
    #[must_use]
    pub fn has_power_cut(&self, reference: &ResourceRef) -> bool {
        match reference.kind() {
            ResourceKind::Droplet | ResourceKind::Server => true,
            ResourceKind::Machine => self.machine(reference).is_some_and(|m| m.force.is_some()),
            ResourceKind::Database | ResourceKind::NodePool => false,
        }
    }

    fn machine(&self, reference: &ResourceRef) -> Option<&Machine> {
        let ResourceId::Machine(name) = &reference.id else {
            return None;
        };
        self.accounts.get(&reference.account)?.machine(name)
    }

    /// Reports whether two configurations are equal apart from their generations.
    #[must_use]
    pub fn eq_ignoring_generation(&self, other: &Self) -> bool {
        let rule = |rule: &Rule| {
            (rule.schedule.definition().clone(), rule.resources.clone(), rule.policy.clone())
        };
        self.settings == other.settings
            && self.accounts == other.accounts
            && self.schedules.keys().eq(other.schedules.keys())
            && self.schedules.values().map(rule).eq(other.schedules.values().map(rule))
    }
}

impl PartialEq for Configuration {
    fn eq(&self, other: &Self) -> bool {
        self.generation == other.generation && self.eq_ignoring_generation(other)
    }
}

/// Settings of the whole service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Settings {
    /// "act" (the default), or "observe" to decide, record and report what would be stopped and
    /// started, but send nothing.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "act")))]
    pub mode: Mode,
    /// Resources that are never touched, whether by a schedule, an override or a command:
    /// references, names or tags, in which * matches any text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "OneOrSeveral<Pattern>", extend("examples" = [["name:*prod*", "do-main/droplet/*", "tag:production"]])))]
    pub protect: Vec<Pattern>,
    /// Maximum number of stops per account and minute. Default: 100.
    #[serde(skip_serializing_if = "is_default_max_stops")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1), extend("maximum" = u32::MAX, "default" = DEFAULT_MAX_STOPS)))]
    pub max_stops: u32,
    /// Maximum number of resources of one account that may join schedules at once. If there are
    /// more, they are held, untouched, until `offhours approve`. Default: 25.
    #[serde(skip_serializing_if = "is_default_max_new")]
    #[cfg_attr(feature = "schema", schemars(extend("maximum" = u32::MAX, "default" = DEFAULT_MAX_NEW)))]
    pub max_new: u32,
    /// Prices that replace those that the providers list, and those of databases, which no API has.
    /// Each is a number in the currency of the account's bill, without taxes.
    #[serde(skip_serializing_if = "is_default")]
    pub prices: OwnPrices,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_default_max_stops(most: &u32) -> bool {
    *most == DEFAULT_MAX_STOPS
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_default_max_new(most: &u32) -> bool {
    *most == DEFAULT_MAX_NEW
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::Act,
            protect: Vec::new(),
            max_stops: DEFAULT_MAX_STOPS,
            max_new: DEFAULT_MAX_NEW,
            prices: OwnPrices::default(),
        }
    }
}

/// Whether decisions lead to requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Decide and send.
    #[default]
    Act,
    /// Decide, record and report what would have been sent, but send nothing.
    Observe,
}

/// A cloud whose resources Offhours stops and starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// DigitalOcean: Droplets, managed databases, Kubernetes node pools.
    DigitalOcean,
    /// Hetzner Cloud: servers.
    Hetzner,
}

/// A login at a cloud, or at a host that runs commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Account {
    /// A login at a cloud.
    Cloud(CloudAccount),
    /// A login at a host that runs commands.
    Ssh(Box<SshAccount>),
}

impl Account {
    /// Returns the account's kind.
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
    pub fn machine(&self, name: &MachineName) -> Option<&Machine> {
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
    /// A cloud.
    Cloud(Provider),
    /// Machines over SSH.
    Ssh,
}

impl AccountKind {
    /// All kinds.
    pub const ALL: [Self; 3] =
        [Self::Cloud(Provider::DigitalOcean), Self::Cloud(Provider::Hetzner), Self::Ssh];

    /// Returns the word for the kind in a configuration.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Cloud(provider) => provider.facts().word,
            Self::Ssh => "ssh",
        }
    }

    /// Returns the kinds of resource that such an account reaches.
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
        let words = Self::ALL.map(Self::word);
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
    /// type `SecureString`) or, for local use, `env:VARIABLE`.
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

    /// The datacenters that stand for their locations.
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

/// Not a location.
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

impl TryFrom<String> for Location {
    type Error = UnknownLocation;

    fn try_from(text: String) -> Result<Self, UnknownLocation> {
        text.parse()
    }
}

impl From<Location> for String {
    fn from(location: Location) -> Self {
        location.0
    }
}

/// Where a token is stored; never the token itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(inline, extend("pattern" = "^(ssm:[A-Za-z0-9/_.-]+|env:[A-Za-z0-9_]+)$"))
)]
pub enum TokenReference {
    /// `ssm:NAME`: an SSM parameter of type `SecureString`.
    Ssm(String),
    /// `env:NAME`: an environment variable, for local use.
    Env(String),
}

impl TokenReference {
    /// Reports whether only stop and start can read it: a parameter below `acting`.
    #[must_use]
    pub fn is_for_acting(&self) -> bool {
        self.is_below("acting")
    }

    /// Reports whether only poll-status can read it: a parameter below `reading`.
    #[must_use]
    pub fn is_for_reading(&self) -> bool {
        self.is_below("reading")
    }

    /// Reports whether it is a parameter in a folder of the token path, which has a name itself.
    fn is_below(&self, folder: &str) -> bool {
        match self {
            Self::Ssm(name) => {
                let folders = name.rsplit_once('/').map_or("", |(folders, _)| folders);
                folders.split('/').skip(2).any(|one| one == folder)
            }
            Self::Env(_) => false,
        }
    }
}

/// Not a valid token reference. The text is not repeated, because it may be a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write where the token is kept, ssm:/PATH/NAME or env:VARIABLE, never the token itself")]
pub struct TokenReferenceError;

impl FromStr for TokenReference {
    type Err = TokenReferenceError;

    fn from_str(text: &str) -> Result<Self, TokenReferenceError> {
        let plain = |name: &str, extra: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || extra.contains(c))
        };
        match text.split_once(':') {
            Some(("ssm", name)) if plain(name, "/_.-") => Ok(Self::Ssm(name.to_owned())),
            Some(("env", name)) if plain(name, "_") => Ok(Self::Env(name.to_owned())),
            Some(_) | None => Err(TokenReferenceError),
        }
    }
}

impl TryFrom<String> for TokenReference {
    type Error = TokenReferenceError;

    fn try_from(text: String) -> Result<Self, TokenReferenceError> {
        text.parse()
    }
}

impl From<TokenReference> for String {
    fn from(reference: TokenReference) -> Self {
        reference.to_string()
    }
}

impl fmt::Display for TokenReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ssm(name) => write!(f, "ssm:{name}"),
            Self::Env(name) => write!(f, "env:{name}"),
        }
    }
}

/// A schedule and the policy for following it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Rule {
    /// When its resources run.
    #[serde(with = "stored_schedule")]
    pub schedule: Schedule,
    /// Resources that follow it in addition to the tagged ones.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub resources: BTreeSet<Selector>,
    /// How it is followed.
    #[serde(flatten)]
    pub policy: Policy,
}

/// How a schedule is followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch that the user sets by this name"
)]
pub struct Policy {
    /// "act" (the default), or "observe" to send nothing for this schedule.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "act")))]
    pub mode: Mode,
    /// Droplets: whether to ask the guest to shut down first, and cut the power 60 s later.
    /// Default: false, so that a Droplet's stop is a hard power cut.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub graceful: bool,
    /// Whether the power may be cut. If false, a machine that is still on after 60 s becomes stuck,
    /// and a person decides. Default: true.
    #[serde(skip_serializing_if = "Clone::clone")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub force: bool,
    /// Whether to restore the desired state at every inventory if anyone has changed it. Default:
    /// false. Cannot be combined with `retain_running`.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub enforce: bool,
    /// Whether to leave a resource running at the end of a window if it was found running at its
    /// begin. Default: false. Cannot be combined with `enforce`.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub retain_running: bool,
    /// When a resource that joins the schedule starts to follow it: "at-once" (the default), or
    /// from its "next-edge" on.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "at-once")))]
    pub adopt: Adopt,
    /// The method by which each kind of resource is stopped.
    #[serde(skip_serializing_if = "is_default")]
    pub methods: Methods,
    /// Droplets that are resized: the slug of the size to move to. Default: the cheapest that fits.
    /// The tag `offhours-to:SIZE` on a Droplet takes precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Plan", extend("examples" = ["s-1vcpu-1gb"])))]
    pub resize_to: Option<String>,
    /// Servers that are rescaled: the name of the type to change to. Default: the cheapest that
    /// fits. The label `offhours-to=TYPE` on a server takes precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Plan", extend("examples" = ["cpx12"])))]
    pub rescale_to: Option<String>,
    /// Whether a machine that cannot return to its own plan in time starts on the small one.
    /// Default: false, so that it stays off until its own plan is available.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub start_small: bool,
    /// Whether a server that was started by the change of its type is left running on the small
    /// type. Default: false, so that it is shut down again.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub rescaled_runs: bool,
    /// Machines that are hibernated: the risks to accept. Without it, anything that would be lost
    /// prevents the hibernation.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "OneOrSeveral<Risk>", extend("examples" = ["lost-backups"])))]
    pub accept: BTreeSet<Risk>,
    /// Droplets that are hibernated: whether to refuse one with a private address, because its
    /// cloud assigns a new one each time. Default: false.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub needs_private_ip: bool,
    /// Machines that should be hibernated but cannot be: "refuse" (the default) leaves them
    /// running, "power-off" only powers them off.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "refuse")))]
    pub otherwise: Otherwise,
    /// Databases: the slug of the plan to shrink to. Default: the smallest plan, or the database's
    /// own with the method "standbys".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Plan", extend("examples" = ["db-s-1vcpu-1gb"])))]
    pub stop_size: Option<String>,
    /// Databases: the number of nodes to shrink to. Default: the current number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "u32", range(min = 1, max = 3)))]
    pub stop_nodes: Option<u32>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            mode: Mode::Act,
            graceful: false,
            force: true,
            enforce: false,
            retain_running: false,
            adopt: Adopt::AtOnce,
            methods: Methods::default(),
            resize_to: None,
            rescale_to: None,
            start_small: false,
            rescaled_runs: false,
            accept: BTreeSet::new(),
            needs_private_ip: false,
            otherwise: Otherwise::Refuse,
            stop_size: None,
            stop_nodes: None,
        }
    }
}

/// The stop method of each kind of resource that offers a choice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(rename = "methods"))]
#[serde(default, deny_unknown_fields)]
pub struct Methods {
    /// Droplets: "power-off" (the default), "resize" to move to a cheaper plan while off, or
    /// "hibernate".
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "power-off")))]
    pub droplet: DropletMethod,
    /// Servers: "power-off" (the default), "rescale" to change to a cheaper type while off, or
    /// "hibernate".
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "power-off")))]
    pub server: ServerMethod,
    /// Databases: "smallest-plan" (the default), or "standbys" to drop only the standby nodes.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "smallest-plan")))]
    pub database: DatabaseMethod,
}

/// How Droplets are stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DropletMethod {
    /// Powered off, and billed as before.
    #[default]
    PowerOff,
    /// Powered off, and moved to a cheaper plan until the start.
    Resize,
    /// Powered off, kept as a snapshot and deleted, then recreated for the start. A preview
    /// feature.
    Hibernate,
}

/// How Hetzner servers are stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ServerMethod {
    /// Powered off, and billed as before.
    #[default]
    PowerOff,
    /// Powered off, and changed to a cheaper type until the start.
    Rescale,
    /// Powered off, kept as a snapshot and deleted, then recreated for the start. A preview
    /// feature.
    Hibernate,
}

/// What to do with a machine that should be hibernated but cannot be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Otherwise {
    /// The stop is refused and reported; the machine is left running.
    #[default]
    Refuse,
    /// The machine is powered off, and billed as before.
    PowerOff,
}

/// How managed databases are stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DatabaseMethod {
    /// Resized to the smallest plan, or to `stop_size` and `stop_nodes`.
    #[default]
    SmallestPlan,
    /// Reduced to the fewest nodes that the engine runs with, on its own plan or, if set, on
    /// `stop_size`.
    Standbys,
}

/// When a resource that joins a schedule starts to follow it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Adopt {
    /// At once.
    #[default]
    AtOnce,
    /// From its next edge on.
    NextEdge,
}

/// A schedule is stored as its author wrote it, and parsed again by each reader.
mod stored_schedule {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use super::{Schedule, schedule};

    pub(super) fn serialize<S: Serializer>(
        schedule: &Schedule,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        schedule.definition().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Schedule, D::Error> {
        let definition = schedule::Definition::deserialize(deserializer)?;
        Schedule::new(&definition).map_err(|problems| {
            let texts: Vec<_> = problems.into_iter().map(|p| p.message).collect();
            D::Error::custom(texts.join("; "))
        })
    }
}

/// A pattern of `protect`: a reference, `name:NAME` or `tag:TAG`, in which `*` matches any text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternSubject {
    Reference,
    Name,
    Tag,
}

/// Not a valid pattern.
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

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.to_string()
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

impl Pattern {
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
fn matches(glob: &str, text: &str) -> bool {
    WildMatch::new_case_insensitive(glob).matches(text)
}

/// A label as a tag.
fn as_tag(text: &str) -> String {
    text.replace('=', ":")
}

/// A desired state that a person has set for a limited time. It takes precedence over schedules
/// until it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Override {
    /// The resource or schedule that it applies to.
    pub target: Target,
    /// The desired state.
    pub desired: Desired,
    /// When it was set; it applies from then on.
    pub set_at: Timestamp,
    /// When it ends, exclusive.
    pub ends_at: Timestamp,
    /// Who set it.
    #[serde(deserialize_with = "text::line")]
    pub by: String,
    /// Why it was set; absent if no reason was given.
    #[serde(
        default,
        deserialize_with = "text::optional_line",
        skip_serializing_if = "Option::is_none"
    )]
    pub why: Option<String>,
}

impl Override {
    /// Reports whether the override wins at this instant.
    #[must_use]
    pub fn is_active(&self, at: Timestamp) -> bool {
        self.set_at <= at && at < self.ends_at && self.counts()
    }

    /// Reports whether it was meant to hold for any time. One that was cleared in the first second
    /// of its life is as good as never set: by a clock of whole seconds, it still holds. Its end is
    /// an edge all the same, because a function may have followed it meanwhile.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.ends_at.duration_since(self.set_at) >= SignedDuration::from_secs(1)
    }
}

/// What an override applies to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// One resource.
    Resource(ResourceRef),
    /// Every resource that follows a schedule.
    Schedule(ScheduleName),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource(reference) => reference.fmt(f),
            Self::Schedule(name) => write!(f, "schedule {name}"),
        }
    }
}

/// All stored overrides, including those that have ended, because an end is an edge. At most one
/// per target.
#[derive(Debug, Clone, Default)]
pub struct Overrides(BTreeMap<Target, Override>);

impl Overrides {
    /// Returns the override of this target, active or not.
    #[must_use]
    pub fn of(&self, target: &Target) -> Option<&Override> {
        self.0.get(target)
    }

    /// Iterates over all overrides.
    pub fn iter(&self) -> impl Iterator<Item = &Override> {
        self.0.values()
    }
}

impl FromIterator<Override> for Overrides {
    fn from_iter<I: IntoIterator<Item = Override>>(overrides: I) -> Self {
        Self(overrides.into_iter().map(|one| (one.target.clone(), one)).collect())
    }
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

    #[test]
    fn a_token_pasted_into_the_configuration_is_refused_without_being_repeated() {
        let pasted = "dop_v1_0123456789abcdef";
        let error = pasted.parse::<TokenReference>().unwrap_err();
        assert!(!error.to_string().contains(pasted));
        for text in ["ssm:", "env:A B", "file:/x", ""] {
            assert!(text.parse::<TokenReference>().is_err(), "{text}");
        }
        for text in ["ssm:/offhours/do-main", "env:HCLOUD_TOKEN"] {
            let reference: TokenReference = text.parse().unwrap();
            assert_eq!(reference.to_string(), text);
        }
    }

    #[test]
    fn a_token_is_for_acting_in_a_folder_of_the_token_path_alone() {
        let acting = |text: &str| text.parse::<TokenReference>().unwrap().is_for_acting();
        for text in ["ssm:/offhours/acting/do", "ssm:/team/offhours/acting/clouds/do"] {
            assert!(acting(text), "{text}");
        }
        for text in [
            "ssm:/offhours/do",
            "ssm:/offhours/acting",
            "ssm:/acting/do",
            "ssm:/offhours/reading/do",
            "env:acting",
        ] {
            assert!(!acting(text), "{text}");
        }
        let reading: TokenReference = "ssm:/offhours/reading/do".parse().unwrap();
        assert!(reading.is_for_reading());
    }

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
