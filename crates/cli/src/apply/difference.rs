//! The difference between two configurations, key by key.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use domain::{
    ScheduleName,
    configuration::{Account, Configuration, Rule},
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{configuration_file::written::File, shape, time::NextEdge};

/// How many coming edges of a changed schedule are shown.
const EDGES: usize = 2;

/// The most lines of [`Difference::lines`], and the most characters of each: they are stored.
const LINES: usize = 100;
const LINE_CHARACTERS: usize = 300;

/// Cuts a line that is too long to be stored.
fn cut(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARACTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// The difference between a new configuration and an old one.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// Changes that concern the whole service.
    pub settings: Vec<KeyChange>,
    /// Changes of accounts.
    pub accounts: Vec<EntryChange>,
    /// Changes of schedules.
    pub schedules: Vec<EntryChange>,
}

/// An account or a schedule that was added, changed or removed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EntryChange {
    /// Its name.
    pub name: String,
    /// How it changed.
    pub change: Change,
    /// The keys that differ. For a new entry, all of its keys that are not defaults; for a removed
    /// one, none.
    pub keys: Vec<KeyChange>,
    /// The schedule's next edges under the old configuration; omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edges_before: Vec<NextEdge>,
    /// The schedule's next edges under the new configuration; omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edges_after: Vec<NextEdge>,
    /// The schedule's time zone, for people.
    #[serde(skip)]
    pub timezone: Option<jiff::tz::TimeZone>,
}

/// How an account or a schedule changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It is new.
    Added,
    /// It has other values.
    Changed,
    /// It was removed.
    Removed,
}

/// A key whose value differs. A list is given as a whole, before and after.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct KeyChange {
    /// The key's path.
    pub key: String,
    /// The old value, or the default if the key was not set; null if there was neither.
    pub before: Option<Value>,
    /// The new value, or the default if the key is not set; null if there is neither.
    pub after: Option<Value>,
}

impl Difference {
    /// Compares two configurations as they stand at an instant.
    #[must_use]
    pub fn between(old: &Configuration, new: &Configuration, now: Timestamp) -> Self {
        let rules = |configuration: &Configuration| -> BTreeMap<String, Map<String, Value>> {
            let schedules = configuration.schedules.iter();
            schedules.map(|(name, rule)| (name.to_string(), flat(rule))).collect()
        };
        let accounts = |configuration: &Configuration| -> BTreeMap<String, Map<String, Value>> {
            let accounts = configuration.accounts.iter();
            accounts.map(|(name, account)| (name.to_string(), flat_account(account))).collect()
        };
        let schema = shape::of::<File>().to_value();
        let tables = &schema["$defs"];
        let mut schedule_defaults = defaults(&tables["schedule"]);
        schedule_defaults.extend(below("methods", defaults(&tables["methods"])));
        let mut schedules = entries(&rules(old), &rules(new), &schedule_defaults);
        for entry in &mut schedules {
            let rule = |configuration: &Configuration| {
                let name: ScheduleName = entry.name.parse().ok()?;
                configuration.schedules.get(&name).cloned()
            };
            let (before, after) = (rule(old), rule(new));
            entry.edges_before = next_edges(before.as_ref(), now);
            entry.edges_after = next_edges(after.as_ref(), now);
            entry.timezone = after.or(before).map(|rule| rule.schedule.timezone().clone());
        }
        let mut account_defaults = defaults(&tables["account"]);
        account_defaults.extend(defaults(&tables["ssh-account"]));
        Self {
            settings: keys(&object(&old.settings), &object(&new.settings), &defaults(&schema)),
            accounts: entries(&accounts(old), &accounts(new), &account_defaults),
            schedules,
        }
    }

    /// Returns what differs in a line for the settings and for each account and schedule.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let joined = |keys: &[KeyChange]| {
            let keys: Vec<_> = keys.iter().map(ToString::to_string).collect();
            keys.join("; ")
        };
        let settings = (!self.settings.is_empty()).then(|| joined(&self.settings));
        let entry = |kind: &str, entry: &EntryChange| match entry.change {
            Change::Added => format!("{kind} {} added", entry.name),
            Change::Removed => format!("{kind} {} removed", entry.name),
            Change::Changed => format!("{kind} {}: {}", entry.name, joined(&entry.keys)),
        };
        let accounts = self.accounts.iter().map(|one| entry("account", one));
        let schedules = self.schedules.iter().map(|one| entry("schedule", one));
        let all = settings.into_iter().chain(accounts).chain(schedules);
        let mut lines: Vec<_> = all.map(|line| cut(&line)).collect();
        if let Some(more) = lines.len().checked_sub(LINES).filter(|more| *more > 0) {
            lines.truncate(LINES);
            lines.push(format!("and {more} more"));
        }
        lines
    }

    /// Reports whether both say the same.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.settings.is_empty() && self.accounts.is_empty() && self.schedules.is_empty()
    }
}

fn next_edges(rule: Option<&Rule>, now: Timestamp) -> Vec<NextEdge> {
    let edges = rule.into_iter().flat_map(|rule| rule.schedule.edges(now));
    edges.take(EDGES).map(NextEdge::from).collect()
}

/// The default values of a table's keys, by its schema.
fn defaults(table: &Value) -> Map<String, Value> {
    let properties = table["properties"].as_object().into_iter().flatten();
    properties
        .filter_map(|(key, property)| Some((key.clone(), property.get("default")?.clone())))
        .collect()
}

fn entries(
    old: &BTreeMap<String, Map<String, Value>>,
    new: &BTreeMap<String, Map<String, Value>>,
    defaults: &Map<String, Value>,
) -> Vec<EntryChange> {
    let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let change = |name: &String| {
        let (change, keys) = match (old.get(name), new.get(name)) {
            (Some(old), Some(new)) => (Change::Changed, keys(old, new, defaults)),
            (None, Some(new)) => (Change::Added, keys(&Map::new(), new, &Map::new())),
            (_, None) => (Change::Removed, Vec::new()),
        };
        EntryChange {
            name: name.clone(),
            change,
            keys,
            edges_before: Vec::new(),
            edges_after: Vec::new(),
            timezone: None,
        }
    };
    let changes = names.into_iter().map(change);
    changes.filter(|entry| entry.change != Change::Changed || !entry.keys.is_empty()).collect()
}

/// The keys that were changed, added or removed. A key that is not set has its default, if any.
fn keys(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    defaults: &Map<String, Value>,
) -> Vec<KeyChange> {
    let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let value = |map: &Map<String, Value>, name| map.get(name).or(defaults.get(name)).cloned();
    names
        .into_iter()
        .filter(|name| old.get(*name) != new.get(*name))
        .map(|name| KeyChange {
            key: name.clone(),
            before: value(old, name),
            after: value(new, name),
        })
        .collect()
}

/// An account's keys, those of its machines as `machines.NAME.KEY`.
fn flat_account(account: &Account) -> Map<String, Value> {
    let mut keys = object(account);
    let Some(Value::Object(machines)) = keys.remove("machines") else {
        return keys;
    };
    for (name, machine) in machines {
        keys.extend(below(&format!("machines.{name}"), object(&machine)));
    }
    keys
}

/// A rule's keys on one level, as its author writes them, its methods as `methods.KIND`.
fn flat(rule: &Rule) -> Map<String, Value> {
    let mut keys = object(rule);
    if let Some(Value::Object(schedule)) = keys.remove("schedule") {
        keys.extend(schedule);
    }
    if let Some(Value::Object(methods)) = keys.remove("methods") {
        keys.extend(below("methods", methods));
    }
    keys
}

/// The keys of a table within another, by their paths.
fn below(table: &str, keys: Map<String, Value>) -> impl Iterator<Item = (String, Value)> {
    keys.into_iter().map(move |(key, value)| (format!("{table}.{key}"), value))
}

fn object(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        // Never happens: accounts, rules and settings are structs with text for keys.
        Ok(_) | Err(_) => Map::new(),
    }
}

/// Writes the difference on one line: `mode: "act" → "observe"`; for lists, what was added
/// and removed.
impl fmt::Display for KeyChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.before, &self.after) {
            (None, None) => Ok(()),
            (None, Some(after)) => write!(f, "{}: {}", self.key, inline(after)),
            (Some(before), None) => write!(f, "{}: {} → not set", self.key, inline(before)),
            (Some(Value::Array(before)), Some(Value::Array(after))) => {
                let gone = before.iter().filter(|one| !after.contains(one));
                let come = after.iter().filter(|one| !before.contains(one));
                let gone = gone.map(|one| format!("without {}", inline(one)));
                let come = come.map(|one| format!("with {}", inline(one)));
                let all: Vec<_> = gone.chain(come).collect();
                if all.is_empty() {
                    write!(f, "{}: in another order", self.key)
                } else {
                    write!(f, "{}: {}", self.key, all.join(", "))
                }
            }
            (Some(before), Some(after)) => {
                write!(f, "{}: {} → {}", self.key, inline(before), inline(after))
            }
        }
    }
}

/// Formats a value as inline TOML.
fn inline(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<_> =
                fields.iter().map(|(key, value)| format!("{key} = {}", inline(value))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        Value::Array(values) => match values.as_slice() {
            [one @ Value::String(_)] => inline(one),
            values => {
                let values: Vec<_> = values.iter().map(inline).collect();
                format!("[{}]", values.join(", "))
            }
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use domain::schedule::desired_or_any;

    use super::*;
    use crate::configuration_file::parse;

    const OLD: &str = r#"
timezone = "Europe/Berlin"
protect = ["name:*prod*", "tag:live"]
[accounts.do-main]
provider = "digitalocean"
token = "env:DO"
[accounts.old]
provider = "hetzner"
token = "env:HZ"
[schedules.office]
periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }]
[schedules.same]
periods = [{ begin = "08:00", end = "19:00" }]
"#;

    fn lines(old: &str, new: &str) -> String {
        let configuration = |text| parse(text, "FILE").unwrap().configuration;
        let now = "2026-11-23T12:00:00Z".parse().unwrap();
        let difference = Difference::between(&configuration(old), &configuration(new), now);
        let mut lines: Vec<_> = difference.settings.iter().map(ToString::to_string).collect();
        for entry in difference.accounts.iter().chain(&difference.schedules) {
            lines.push(format!("{:?} {}", entry.change, entry.name));
            lines.extend(entry.keys.iter().map(|key| format!("  {key}")));
            let edges = |edges: &[NextEdge]| {
                let edges: Vec<_> =
                    edges.iter().map(|e| format!("{} {}", e.at, desired_or_any(e.to))).collect();
                edges.join(", ")
            };
            lines.push(format!("  before: {}", edges(&entry.edges_before)));
            lines.push(format!("  after: {}", edges(&entry.edges_after)));
        }
        lines.join("\n")
    }

    #[test]
    fn an_apply_is_kept_as_a_line_for_each_account_and_schedule() {
        let configuration = |text: &str| parse(text, "FILE").unwrap().configuration;
        let new = OLD
            .replace("18:00", "17:00")
            .replace("protect = [\"name:*prod*\", \"tag:live\"]\n", "")
            .replace("[accounts.old]", "[accounts.hz-eu]")
            .replace("[schedules.same]", "graceful = true\n[schedules.other]");
        let now = "2026-11-23T12:00:00Z".parse().unwrap();
        let difference = Difference::between(&configuration(OLD), &configuration(&new), now);
        insta::assert_snapshot!(difference.lines().join("\n"), @r#"
        protect: ["name:*prod*", "tag:live"] → not set
        account hz-eu added
        account old removed
        schedule office: graceful: false → true
        schedule other added
        schedule same removed
        "#);
        assert_eq!(cut(&"ä".repeat(400)).chars().count(), 301);
    }

    #[test]
    fn a_configuration_does_not_differ_from_itself() {
        assert_eq!(lines(OLD, OLD), "");
    }

    #[test]
    fn each_method_differs_by_itself() {
        let resized = OLD.replace(
            "19:00\" }]\n[schedules.same]",
            "19:00\" }]\nmethods = { droplet = \"resize\" }\nresize_to = \"s-1vcpu-1gb\"\n\
             [schedules.same]",
        );
        let rescaled = OLD.replace(
            "19:00\" }]\n[schedules.same]",
            "19:00\" }]\nmethods = { server = \"rescale\", database = \"standbys\" }\n\
             start_small = true\n[schedules.same]",
        );
        insta::assert_snapshot!(lines(OLD, &resized), @r#"
        Changed office
          methods.droplet: "power-off" → "resize"
          resize_to: "s-1vcpu-1gb"
          before: 2026-11-23T18:00:00Z stopped, 2026-11-24T07:00:00Z running
          after: 2026-11-23T18:00:00Z stopped, 2026-11-24T07:00:00Z running
        "#);
        insta::assert_snapshot!(lines(&resized, &rescaled), @r#"
        Changed office
          methods.database: "smallest-plan" → "standbys"
          methods.droplet: "resize" → "power-off"
          methods.server: "power-off" → "rescale"
          resize_to: "s-1vcpu-1gb" → not set
          start_small: false → true
          before: 2026-11-23T18:00:00Z stopped, 2026-11-24T07:00:00Z running
          after: 2026-11-23T18:00:00Z stopped, 2026-11-24T07:00:00Z running
        "#);
    }

    #[test]
    fn everything_that_differs_is_named_and_nothing_else() {
        let new = OLD
            .replace(r#""tag:live""#, r#""tag:production""#)
            .replace(
                "19:00\" }]\n[schedules.same]",
                "18:00\" }]\ngraceful = true\n[schedules.same]",
            )
            .replace("[accounts.old]", "[accounts.hz-eu]")
            .replace("\"env:DO\"", "\"ssm:/offhours/do\"\nread_token = \"ssm:/offhours/do-read\"");
        insta::assert_snapshot!(lines(OLD, &new), @r#"
        protect: without "tag:live", with "tag:production"
        Changed do-main
          read_token: "ssm:/offhours/do-read"
          token: "env:DO" → "ssm:/offhours/do"
          before: 
          after: 
        Added hz-eu
          provider: "hetzner"
          token: "env:HZ"
          before: 
          after: 
        Removed old
          before: 
          after: 
        Changed office
          graceful: false → true
          periods: without { begin = "08:00", end = "19:00", weekdays = "mon-fri" }, with { begin = "08:00", end = "18:00", weekdays = "mon-fri" }
          before: 2026-11-23T18:00:00Z stopped, 2026-11-24T07:00:00Z running
          after: 2026-11-23T17:00:00Z stopped, 2026-11-24T07:00:00Z running
        "#);
    }
}
