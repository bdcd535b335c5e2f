//! Stored items: records, history, overrides, the head, the log, accounts, schedules and digests.
//!
//! An input holds items in DynamoDB JSON, one after another.

use std::{fmt::Debug, sync::LazyLock};

use aws_sdk_dynamodb::{primitives::Blob, types::AttributeValue};
use domain::{
    configuration::{Configuration, Override, Overrides},
    decision::{Rules, due_at, judge},
    explanation::{next_edge, standing_command},
    history::HistoryEntry,
    membership::Subject,
    record::Record,
};
use jiff::Timestamp;
use serde_json::Value;
use store::{
    AccountState, Head, LogEntry, ReportedEdge, StoreError,
    item::{AccountPart, ConfigurationPart, FORMAT, Item, Stored},
};

use crate::check;

/// An item is stable once it has been read and written, one of a newer format is not read, and a
/// record can be judged at any instant.
pub(crate) fn run(data: &[u8]) {
    let values = serde_json::Deserializer::from_slice(data).into_iter::<Value>();
    let items = values.map_while(Result::ok).filter_map(|value| item(&value));
    let (mut records, mut overrides) = (Vec::new(), Vec::new());
    for item in items {
        read::<Head>(&item);
        read::<LogEntry>(&item);
        read::<AccountState>(&item);
        read::<ReportedEdge>(&item);
        read::<HistoryEntry>(&item);
        read::<AccountPart>(&item);
        read::<ConfigurationPart>(&item);
        overrides.extend(read::<Override>(&item));
        records.extend(read::<Record>(&item));
    }
    let overrides = overrides.into_iter().collect();
    for record in &records {
        check_judged(record, &overrides);
    }
}

/// Reads an item as one of a kind, and returns it after it was written and read again.
fn read<T: Stored + Debug>(item: &Item) -> Option<T> {
    let format = item.get("format").and_then(|format| format.as_n().ok());
    let is_known =
        format.is_some_and(|format| (1..=FORMAT).any(|known| format.parse() == Ok(known)));
    let read = match T::of_item(item.clone()) {
        Ok(read) => read,
        Err(error) => {
            assert_eq!(error.is_newer(), !is_known, "{error}");
            assert!(error.is_unreadable(), "{error}");
            check::has_message(&error);
            return None;
        }
    };
    assert!(is_known, "an item of an unknown format was read");
    let written = read.to_item().unwrap_or_else(|error| panic!("{read:?}: {error}"));
    let again = again::<T>(&written).unwrap_or_else(|error| panic!("{written:?}: {error}"));
    assert_eq!(again.to_item().ok().as_ref(), Some(&written), "{read:?}");
    let key = read.key();
    assert!(key.iter().all(|(name, value)| written.get(name) == Some(value)));
    Some(again)
}

fn again<T: Stored>(item: &Item) -> Result<T, StoreError> {
    T::of_item(item.clone())
}

/// An item from DynamoDB JSON, `{"name": {"S": "web"}, …}`; `None` if it is anything else.
fn item(json: &Value) -> Option<Item> {
    let fields = json.as_object()?.iter();
    fields.map(|(name, value)| Some((name.clone(), attribute(value)?))).collect()
}

fn attribute(typed: &Value) -> Option<AttributeValue> {
    let (kind, value) = typed.as_object()?.iter().next()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let texts = |value: &Value| value.as_array()?.iter().map(text).collect::<Option<Vec<_>>>();
    Some(match kind.as_str() {
        "S" => AttributeValue::S(text(value)?),
        "N" => AttributeValue::N(text(value)?),
        "B" => AttributeValue::B(Blob::new(text(value)?)),
        "BOOL" => AttributeValue::Bool(value.as_bool()?),
        "NULL" => AttributeValue::Null(true),
        "M" => AttributeValue::M(item(value)?),
        "L" => AttributeValue::L(value.as_array()?.iter().map(attribute).collect::<Option<_>>()?),
        "SS" => AttributeValue::Ss(texts(value)?),
        "NS" => AttributeValue::Ns(texts(value)?),
        _ => return None,
    })
}

/// The configuration under which records are judged.
static CONFIGURATION: LazyLock<Configuration> = LazyLock::new(|| {
    let text = r#"
        timezone = "Europe/Berlin"
        protect = ["name:*prod*"]
        accounts.do-main = { provider = "digitalocean", token = "env:DO" }
        accounts.hz-eu = { provider = "hetzner", token = "env:HZ" }
        schedules.office-hours.periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }]
    "#;
    let parsed = offhours::configuration_file::parse(text, "offhours.toml");
    parsed.expect("a configuration").configuration
});

fn check_judged(record: &Record, overrides: &Overrides) {
    let rules = Rules { configuration: &CONFIGURATION, overrides };
    let monday = "2026-06-15T19:00:00Z".parse().expect("an instant");
    for now in [Some(monday), record.due_at].into_iter().flatten() {
        let verdict = judge(record, Subject::recorded(record), rules, now);
        assert_eq!(judge(record, Subject::recorded(record), rules, now), verdict);
        let due: Option<Timestamp> = due_at(record, rules, now);
        assert_eq!(due_at(record, rules, now), due);
        let command = standing_command(record, &verdict, rules, now);
        let next = || next_edge(record, &verdict, command.as_ref(), rules, now);
        assert_eq!(next(), next());
    }
}
