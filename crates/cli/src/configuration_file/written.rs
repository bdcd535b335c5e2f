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
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::schema::{self, Named, OneOrMore, OneOrSeveral};
use crate::shape::{self, NAME};

/// A configuration of Offhours: which accounts it looks after, when their resources run, and what
/// it never touches.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(
    deny_unknown_fields,
    title = "Offhours configuration",
    extend(
        // Each schedule needs a time zone of its own where there is none for all.
        "if" = { "not": { "required": ["timezone"] } },
        "then" = { "properties": { "schedules": { "patternProperties": {
            NAME: { "required": ["timezone"] },
        } } } },
    )
)]
pub(crate) struct File {
    /// The time zone of every schedule that names none, by its IANA name, such as Europe/Berlin.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::TimeZone", extend("examples" = ["Europe/Berlin", "UTC"]))]
    timezone: Option<String>,
    /// "act" (the default), or "observe" to decide, record and report what would be stopped and
    /// started, and send nothing.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(with = "shape::Mode", extend("default" = "act"))]
    mode: Mode,
    /// What is never touched, by schedule, override or hand: references, names or tags, with * for
    /// any text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        with = "OneOrSeveral<schema::Pattern>",
        extend("examples" = [["do-main/droplet/*", "name:*prod*", "tag:production"]])
    )]
    protect: Vec<Pattern>,
    /// Most stops per account and minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 1), extend("maximum" = u32::MAX, "default" = DEFAULT_MAX_STOPS))]
    max_stops: Option<u32>,
    /// Most resources that may join schedules in one inventory; more are held, untouched, until
    /// `offhours approve`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", extend("maximum" = u32::MAX, "default" = DEFAULT_MAX_NEW))]
    max_new: Option<u32>,
    /// The accounts, by a name of yours: 1 to 63 of a-z, 0-9, - and _, with a letter or digit at
    /// both ends. The name begins every reference, as in NAME/droplet/3164444.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Named<AccountTable>")]
    accounts: BTreeMap<AccountName, AccountTable>,
    /// The schedules, by a name of yours: 1 to 63 of a-z, 0-9, - and _, with a letter or digit at
    /// both ends. What has the tag offhours:NAME (Hetzner: the label offhours=NAME) follows it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Named<ScheduleTable>")]
    schedules: BTreeMap<ScheduleName, ScheduleTable>,
}

/// One login at one provider.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(
    rename = "account",
    deny_unknown_fields,
    extend(
        "if" = { "required": ["provider"], "properties": { "provider": { "const": "digitalocean" } } },
        "then" = { "properties": { "datacenters": false } },
    )
)]
struct AccountTable {
    /// The cloud: "digitalocean" or "hetzner".
    #[schemars(with = "shape::Provider")]
    provider: Provider,
    /// The name that the account had before: records, saved sizes and overrides of its resources
    /// are carried over. May stay for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "shape::Name", extend("examples" = ["do-main"]))]
    was: Option<AccountName>,
    /// Where the token is kept, never the token itself: `ssm:/PATH/NAME` (an SSM parameter of type
    /// `SecureString`) or, for local use, `env:VARIABLE`.
    #[schemars(with = "schema::Token", extend("examples" = ["ssm:/offhours/do-main", "env:HCLOUD_TOKEN"]))]
    token: TokenReference,
    /// Where a token is kept that may only read. Offhours looks with it, and needs the other one
    /// only to stop and start. Without it, it looks with the other one, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::Token", extend("examples" = ["ssm:/offhours/do-main-read"]))]
    read_token: Option<TokenReference>,
    /// Hetzner: the datacenters to look after; without it, all locations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "OneOrMore<schema::Datacenter>")]
    datacenters: Vec<Datacenter>,
    /// "observe" sends nothing for this account.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(with = "shape::Mode", extend("default" = "act"))]
    mode: Mode,
    /// A base address other than the provider's own: `https://HOST`, or `http://` on loopback.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::Url")]
    url: Option<String>,
}

/// When resources run, which, and how that is followed: periods, or start and stop.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(
    rename = "schedule",
    deny_unknown_fields,
    extend(
        "if" = { "required": ["periods"], "properties": { "periods": { "minItems": 1 } } },
        "then" = { "properties": { "start": false, "stop": false } },
        "else" = { "required": ["start", "stop"] },
        "not" = {
            "required": ["enforce", "retain_running"],
            "properties": { "enforce": { "const": true }, "retain_running": { "const": true } },
        },
    )
)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch that the user sets by this name"
)]
struct ScheduleTable {
    /// The time zone in which its days and times are judged; without it, the one at the top of the
    /// file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::TimeZone", extend("examples" = ["Europe/Berlin", "UTC"]))]
    timezone: Option<String>,
    /// When to run: in any of these windows. Excludes start and stop.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    periods: Vec<PeriodTable>,
    /// When to start, as a cron expression of five fields in the schedule's zone: minute, hour, day
    /// of month, month, day of week. Goes with stop, instead of periods.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::Cron", extend("examples" = ["0 8 * * mon-fri"]))]
    start: Option<String>,
    /// When to stop, as a cron expression of five fields in the schedule's zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::Cron", extend("examples" = ["0 19 * * *"]))]
    stop: Option<String>,
    /// Days on which nothing starts, of one year or, without it, of every year; .. for ranges.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        with = "OneOrSeveral<schema::Holidays>",
        extend("examples" = [["2026-12-24..2026-12-26", "01-01"]])
    )]
    holidays: Vec<String>,
    /// Resources that follow the schedule besides the tagged ones: ACCOUNT/droplet/NUMBER,
    /// ACCOUNT/database/UUID, ACCOUNT/node-pool/CLUSTER/POOL or ACCOUNT/server/NUMBER.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(with = "OneOrSeveral<shape::Reference>")]
    resources: BTreeSet<ResourceRef>,
    /// "observe" sends nothing for this schedule.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(with = "shape::Mode", extend("default" = "act"))]
    mode: Mode,
    /// Droplets: ask the guest to shut down, and cut the power 60 s later. Without it a Droplet's
    /// stop is a hard cut.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    graceful: bool,
    /// false: never cut the power; after 60 s the machine is stuck, and a person decides.
    #[serde(skip_serializing_if = "Clone::clone")]
    #[schemars(extend("default" = true))]
    force: bool,
    /// Put the wish back at every inventory, whoever changed it. Excludes `retain_running`.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    enforce: bool,
    /// Leave running at the end what was found running at the begin. Excludes enforce.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    retain_running: bool,
    /// When a resource that joins begins to follow: "at-once", or from its "next-edge" on.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(with = "schema::Adopt", extend("default" = "at-once"))]
    adopt: Adopt,
    /// Databases: the plan to shrink to, by its slug, instead of the smallest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::Plan", extend("examples" = ["db-s-1vcpu-1gb"]))]
    stop_size: Option<String>,
    /// Databases: the number of nodes to shrink to, instead of the present one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 1, max = 3))]
    stop_nodes: Option<u32>,
}

/// A window of time that begins on the days that all given fields match; {} is every whole day.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "period", deny_unknown_fields)]
struct PeriodTable {
    /// mon to sun, ranges that wrap (fri-mon), mon#1 (the first Monday of the month), friL (the
    /// last Friday); several with commas, or as a list.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "one_or_several"
    )]
    #[schemars(with = "OneOrMore<schema::Weekdays>", extend("examples" = ["mon-fri"]))]
    weekdays: Vec<String>,
    /// 1 to 31, ranges that wrap (25-31, 28-L), steps (1/10), L (the last day), 15W (the weekday
    /// nearest to the 15th); several with commas, or as a list.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "one_or_several"
    )]
    #[schemars(with = "OneOrMore<schema::Monthdays>", extend("examples" = ["1-7", "L"]))]
    monthdays: Vec<String>,
    /// jan to dec or 1 to 12, ranges that wrap (nov-feb), steps (1/3); several with commas, or as a
    /// list.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "one_or_several"
    )]
    #[schemars(with = "OneOrMore<schema::Months>", extend("examples" = ["nov-feb"]))]
    months: Vec<String>,
    /// When it begins, HH:MM. Alone: running from then until midnight, no wish otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::Begin", extend("examples" = ["08:00"]))]
    begin: Option<String>,
    /// When it ends, HH:MM up to 24:00; not after begin: on the next day. Alone: stopped from then
    /// until midnight, no wish otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::End", extend("examples" = ["19:00"]))]
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
            was,
            token,
            read_token,
            datacenters,
            mode,
            url,
        } = account.clone();
        Self {
            provider,
            was,
            token,
            read_token,
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
