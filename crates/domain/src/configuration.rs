//! The parsed configuration of one generation: accounts, schedules and guard rails.

mod account;
mod check;
mod group;
pub mod notify;
mod overrides;
mod pattern;
mod pauses;
mod policy;
mod schedules;
mod selector;

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use crate::schema::{self, OneOrSeveral};
use crate::{
    edge::Direction,
    prices::OwnPrices,
    reference::{AccountName, Family, GroupName, ResourceId, ResourceRef, TargetName},
    schedule::{self, Schedule},
    ssh::SshMachine,
    stored::is_default,
};

pub use crate::{
    edge::Generation,
    measure::{MaxExtend, NoticePeriod},
    provider::Provider,
    token::{TokenReference, TokenReferenceError},
};
pub use account::{Account, AccountKind, CloudAccount, Location, Ssh, SshAccount, UnknownLocation};
pub use check::{Check, CheckError};
pub use group::{Followed, FollowedError, Group};
pub use overrides::{Override, OverrideTarget, Overrides};
pub use pattern::{Pattern, PatternError};
pub use pauses::{Pause, PauseScope};
pub use policy::{
    Adopt, DatabaseMethod, DropletMethod, Methods, Otherwise, Policy, Risk, ServerMethod,
};
pub use schedules::Schedules;
pub use selector::{NamePattern, Selector, SelectorError};

/// Default limit on the stops that dispatch hands out per account and tick.
pub const DEFAULT_MAX_STOPS: u32 = 100;

/// Default limit on the resources that may join schedules in one inventory before they are held for
/// approval.
pub const DEFAULT_MAX_NEW: u32 = 25;

/// One complete generation of the configuration.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Configuration {
    pub generation: Generation,
    /// The settings of the whole service.
    pub settings: Settings,
    pub accounts: BTreeMap<AccountName, Account>,
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
        match reference.kind().family() {
            Family::CloudMachine => true,
            Family::OwnMachine => self.machine(reference).is_some_and(|m| m.force.is_some()),
            Family::Database | Family::NodePool => false,
        }
    }

    fn machine(&self, reference: &ResourceRef) -> Option<&SshMachine> {
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
    /// The key of the tags (KEY:OWNER) or labels (KEY=OWNER) that say whose a resource is: `status`
    /// and `saved` know owners, and so do the targets of events.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("examples" = ["team"])))]
    pub owner_tag: Option<String>,
    /// Prices that replace those that the providers list, and those of databases, which no API has.
    /// Each is a number in the currency of the account's bill, without taxes.
    #[serde(skip_serializing_if = "is_default")]
    pub prices: OwnPrices,
    /// Where the address is that is called after each minute in which the service worked well, and
    /// with /fail after one in which it did not: that of a monitor such as healthchecks.io. Not on
    /// AWS.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "TokenReference", extend("examples" = ["env:HEARTBEAT_URL"])))]
    pub heartbeat: Option<TokenReference>,
    /// The targets to which events are sent, by a name of your choice. Not on AWS, where events are
    /// on a bus.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Named<notify::NotifyTarget>"))]
    pub notify: BTreeMap<TargetName, notify::NotifyTarget>,
    /// The groups of resources that start and stop in an order, by a name of your choice.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Named<Group>"))]
    pub groups: BTreeMap<GroupName, Group>,
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
            owner_tag: None,
            prices: OwnPrices::default(),
            heartbeat: None,
            notify: BTreeMap::new(),
            groups: BTreeMap::new(),
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

/// A schedule and the policy for following it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Rule {
    /// When its resources run.
    #[serde(with = "stored_schedule")]
    pub schedule: Schedule,
    /// Resources that follow it in addition to the tagged ones.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub resources: BTreeSet<Selector>,
    #[serde(flatten)]
    pub policy: Policy,
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
        Schedule::stored(&definition).map_err(|problems| {
            let texts: Vec<_> = problems.into_iter().map(|p| p.message).collect();
            D::Error::custom(texts.join("; "))
        })
    }
}
