//! The file as data: its tables and keys, from a [`Configuration`] to what is written of it.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    AccountName, ResourceRef, ScheduleName,
    configuration::{
        Account, Adopt, Configuration, DEFAULT_MAX_NEW, DEFAULT_MAX_STOPS, Datacenter, Manner,
        Mode, Pattern, Provider, Rule, Settings, TokenReference,
    },
    schedule::{Definition, PeriodDefinition},
};
use serde::{Serialize, Serializer};

/// A configuration of Offhours: which accounts it looks after, when their resources run, and what
/// it never touches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct File {
    /// The time zone of every schedule that names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timezone: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    mode: Mode,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    protect: Vec<Pattern>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_stops: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_new: Option<u32>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    accounts: BTreeMap<AccountName, AccountTable>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) schedules: BTreeMap<ScheduleName, ScheduleTable>,
}

/// One login at one provider.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct AccountTable {
    provider: Provider,
    token: TokenReference,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    datacenters: Vec<Datacenter>,
    #[serde(skip_serializing_if = "is_default")]
    mode: Mode,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

/// When resources run, which, and how that is followed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch that the user sets by this name"
)]
pub(crate) struct ScheduleTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    timezone: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    periods: Vec<PeriodTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    holidays: Vec<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    resources: BTreeSet<ResourceRef>,
    #[serde(skip_serializing_if = "is_default")]
    mode: Mode,
    #[serde(skip_serializing_if = "is_default")]
    graceful: bool,
    #[serde(skip_serializing_if = "Clone::clone")]
    force: bool,
    #[serde(skip_serializing_if = "is_default")]
    enforce: bool,
    #[serde(skip_serializing_if = "is_default")]
    retain_running: bool,
    #[serde(skip_serializing_if = "is_default")]
    adopt: Adopt,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_size: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_nodes: Option<u32>,
}

/// A window of time that begins on certain days.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct PeriodTable {
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "one_or_several"
    )]
    weekdays: Vec<String>,
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "one_or_several"
    )]
    monthdays: Vec<String>,
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "one_or_several"
    )]
    months: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    begin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<String>,
}

impl File {
    /// What is to be written of a configuration: defaults are left out, and the time zone that
    /// most schedules have stands at the top.
    pub(crate) fn of(configuration: &Configuration) -> Self {
        let Settings {
            mode,
            protect,
            max_stops,
            max_new,
        } = &configuration.settings;
        let timezone = commonest_timezone(configuration);
        let accounts = configuration.accounts.iter();
        let schedules = configuration.schedules.iter();
        let table = |rule| ScheduleTable::of(rule, timezone.as_deref());
        Self {
            mode: *mode,
            protect: protect.clone(),
            max_stops: Some(*max_stops).filter(|most| *most != DEFAULT_MAX_STOPS),
            max_new: Some(*max_new).filter(|most| *most != DEFAULT_MAX_NEW),
            accounts: accounts
                .map(|(name, account)| (name.clone(), AccountTable::of(account)))
                .collect(),
            schedules: schedules
                .map(|(name, rule)| (name.clone(), table(rule)))
                .collect(),
            timezone,
        }
    }
}

impl AccountTable {
    fn of(account: &Account) -> Self {
        let Account {
            provider,
            token,
            datacenters,
            mode,
            url,
        } = account.clone();
        Self {
            provider,
            token,
            datacenters,
            mode,
            url,
        }
    }
}

impl ScheduleTable {
    fn of(rule: &Rule, default_zone: Option<&str>) -> Self {
        let Definition {
            timezone,
            periods,
            holidays,
            start,
            stop,
        } = rule.schedule.definition().clone();
        let Manner {
            mode,
            graceful,
            force,
            enforce,
            retain_running,
            adopt,
            stop_size,
            stop_nodes,
        } = rule.manner.clone();
        Self {
            timezone: Some(timezone).filter(|zone| default_zone != Some(zone)),
            periods: periods.into_iter().map(PeriodTable::of).collect(),
            start,
            stop,
            holidays,
            resources: rule.resources.clone(),
            mode,
            graceful,
            force,
            enforce,
            retain_running,
            adopt,
            stop_size,
            stop_nodes,
        }
    }
}

impl PeriodTable {
    fn of(definition: PeriodDefinition) -> Self {
        let PeriodDefinition {
            weekdays,
            monthdays,
            months,
            begin,
            end,
        } = definition;
        Self {
            weekdays,
            monthdays,
            months,
            begin,
            end,
        }
    }
}

/// The zone that most schedules have; of several, the first by name.
fn commonest_timezone(configuration: &Configuration) -> Option<String> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for rule in configuration.schedules.values() {
        *counts
            .entry(&rule.schedule.definition().timezone)
            .or_default() += 1;
    }
    let most = counts.values().copied().max();
    let zone = counts.into_iter().find(|(_, count)| Some(*count) == most);
    zone.map(|(zone, _)| zone.to_owned())
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// One text as it is, several as a list.
fn one_or_several<S: Serializer>(texts: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    match texts {
        [one] => one.serialize(serializer),
        several => several.serialize(serializer),
    }
}
