//! The configuration file as data: its tables and keys, built from a [`Configuration`] to be
//! written.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    AccountName, ResourceRef, ScheduleName,
    configuration::{Account, Configuration, Policy, Rule, Settings},
    reference::NAME_PATTERN,
    schedule::Definition,
    schema::{self, Named, OneOrSeveral},
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// An Offhours configuration: the accounts that it manages, when their resources run, and what is
/// never touched.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(
    deny_unknown_fields,
    title = "Offhours configuration",
    extend(
        // Without a global time zone, each schedule needs its own.
        "if" = { "not": { "required": ["timezone"] } },
        "then" = { "properties": { "schedules": { "patternProperties": {
            NAME_PATTERN: { "required": ["timezone"] },
        } } } },
    )
)]
pub(crate) struct File {
    /// The time zone of every schedule that names none, by its IANA name, such as Europe/Berlin.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::TimeZone", extend("examples" = ["Europe/Berlin", "UTC"]))]
    timezone: Option<String>,
    #[serde(flatten)]
    settings: Settings,
    /// The accounts, by a name of your choice: 1 to 63 of a-z, 0-9, - and _, with a letter or digit
    /// at both ends. The name begins every reference, as in NAME/droplet/3164444.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Named<Account>")]
    accounts: BTreeMap<AccountName, Account>,
    /// The schedules, by a name of your choice: 1 to 63 of a-z, 0-9, - and _, with a letter or
    /// digit at both ends. A resource with the tag offhours:NAME (Hetzner: the label offhours=NAME)
    /// follows it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Named<ScheduleTable>")]
    schedules: BTreeMap<ScheduleName, ScheduleTable>,
}

/// A schedule: when resources run (periods, or start and stop), which resources follow it, and how
/// it is followed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(
    rename = "schedule",
    deny_unknown_fields,
    extend(
        "if" = { "required": ["periods"], "properties": { "periods": { "minItems": 1 } } },
        "then" = { "properties": { "start": false, "stop": false } },
        "else" = { "required": ["start", "stop"] },
        "allOf" = keys_that_need_methods(),
        "not" = {
            "required": ["enforce", "retain_running"],
            "properties": { "enforce": { "const": true }, "retain_running": { "const": true } },
        },
    )
)]
struct ScheduleTable {
    /// The time zone at the top of the file applies to a schedule that names none.
    #[serde(flatten)]
    definition: Definition,
    /// Resources that follow the schedule besides the tagged ones: ACCOUNT/droplet/NUMBER,
    /// ACCOUNT/database/UUID, ACCOUNT/node-pool/CLUSTER/POOL, ACCOUNT/server/NUMBER or
    /// ACCOUNT/machine/NAME.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(with = "OneOrSeveral<ResourceRef>")]
    resources: BTreeSet<ResourceRef>,
    #[serde(flatten)]
    policy: Policy,
}

/// Conditions for keys that have no effect unless a kind has a non-default method, and for the one
/// key that such a method contradicts.
fn keys_that_need_methods() -> Value {
    let stopped_by = |kind: &str, method: &str| {
        json!({
            "required": ["methods"],
            "properties": { "methods": {
                "required": [kind],
                "properties": { kind: { "const": method } },
            } },
        })
    };
    let there = |key: &str| json!({ "required": [key] });
    let on = |key: &str| json!({ "required": [key], "properties": { key: { "const": true } } });
    let resized = stopped_by("droplet", "resize");
    let rescaled = stopped_by("server", "rescale");
    let hibernated_droplet = stopped_by("droplet", "hibernate");
    let hibernated_server = stopped_by("server", "hibernate");
    let hibernated = json!({ "anyOf": [hibernated_droplet, hibernated_server] });
    json!([
        { "if": there("resize_to"), "then": resized },
        { "if": there("rescale_to"), "then": rescaled },
        { "if": on("rescaled_runs"), "then": rescaled },
        { "if": on("start_small"), "then": { "anyOf": [resized, rescaled] } },
        { "if": on("needs_private_ip"), "then": hibernated_droplet },
        { "if": there("accept"), "then": hibernated },
        {
            "if": { "required": ["otherwise"], "properties": { "otherwise": { "const": "power-off" } } },
            "then": hibernated,
        },
        { "if": there("stop_nodes"), "then": { "not": stopped_by("database", "standbys") } },
    ])
}

impl File {
    /// The file to write for a configuration: defaults are left out, and the most common time zone
    /// is at the top.
    pub(crate) fn of(configuration: &Configuration) -> Self {
        let timezone = commonest_timezone(configuration);
        let schedules = configuration.schedules.iter();
        let table = |rule| ScheduleTable::of(rule, timezone.as_deref());
        Self {
            settings: configuration.settings.clone(),
            accounts: configuration.accounts.clone(),
            schedules: schedules
                .map(|(name, rule)| (name.clone(), table(rule)))
                .collect(),
            timezone,
        }
    }
}

impl ScheduleTable {
    fn of(rule: &Rule, default_zone: Option<&str>) -> Self {
        let mut definition = rule.schedule.definition().clone();
        if default_zone == Some(definition.timezone.as_str()) {
            definition.timezone.clear();
        }
        Self {
            definition,
            resources: rule.resources.clone(),
            policy: rule.policy.clone(),
        }
    }
}

/// The zone that most schedules have. A tie goes to the first by name.
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
