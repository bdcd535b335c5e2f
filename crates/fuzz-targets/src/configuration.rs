//! The configuration file.

use std::sync::LazyLock;

use jsonschema::Validator;
use offhours::{
    commands::config::schema,
    configuration_file::{Problem, parse, write},
};
use serde_json::Value;
use store::item::{AccountPart, ConfigurationItem, Stored as _};

use crate::check::SECRET;

/// An accepted configuration survives being written and stored, and fits the schema that editors
/// check it against. The problems of any other are reported with their lines, without repeating
/// what stands in place of a token.
pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match parse(&text, "offhours.toml") {
        Ok(parsed) => {
            check_lines(&parsed.warnings, &text);
            let configuration = parsed.configuration;
            let written = write(&configuration);
            let again = parse(&written, "offhours.toml");
            let again = again.unwrap_or_else(|problems| panic!("{problems:#?}\n{written}"));
            assert!(again.configuration.eq_ignoring_generation(&configuration), "{written}");
            assert_eq!(write(&again.configuration), written);
            check_schema(&text);
            check_storable(&configuration);
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            check_lines(&problems, &text);
        }
    }
    check_secrets(&text);
}

fn check_lines(problems: &[Problem], text: &str) {
    let lines = 1 + text.bytes().filter(|byte| *byte == b'\n').count();
    for problem in problems {
        assert!((1..=lines).contains(&problem.line), "{problem}");
        assert!(!problem.message.trim().is_empty());
    }
}

static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let schema = schema::configuration().to_value();
    jsonschema::validator_for(&schema).expect("a schema")
});

fn check_schema(text: &str) {
    let document = toml::from_str(text).expect("it was accepted");
    if let Err(error) = SCHEMA.validate(&json(toml::Value::Table(document))) {
        panic!("{}: {error}\n{text}", error.instance_path());
    }
}

/// A TOML value as editors pass it to a schema: dates and times are strings.
fn json(value: toml::Value) -> Value {
    match value {
        toml::Value::Datetime(datetime) => Value::String(datetime.to_string()),
        toml::Value::Array(array) => array.into_iter().map(json).collect(),
        toml::Value::Table(table) => {
            table.into_iter().map(|(key, value)| (key, json(value))).collect()
        }
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(integer) => integer.into(),
        toml::Value::Float(float) => float.into(),
        toml::Value::Boolean(boolean) => boolean.into(),
    }
}

fn check_storable(configuration: &domain::configuration::Configuration) {
    for (name, account) in &configuration.accounts {
        let part = AccountPart {
            generation: configuration.generation,
            name: name.clone(),
            body: account.clone(),
        };
        let item = part.to_item().expect("an account can be stored");
        assert_eq!(AccountPart::of_item(item).expect("it was stored"), part);
    }
    let rules = configuration.schedules.iter().map(|(name, rule)| ConfigurationItem::Schedule {
        schedule: name.clone(),
        rule: Box::new(rule.clone()),
    });
    let settings = ConfigurationItem::Settings(Box::new(configuration.settings.clone()));
    for part in rules.chain([settings]) {
        let item = part.in_generation(configuration.generation).to_item();
        let item = item.expect("a schedule can be stored");
        let again = store::item::ConfigurationPart::of_item(item.clone()).expect("it was stored");
        assert_eq!(again.to_item().expect("it was stored"), item);
    }
}

/// Puts a secret in place of a token, key or URL, and parses the file again.
fn check_secrets(text: &str) {
    let Ok(document) = text.parse::<toml::Table>() else {
        return;
    };
    let accounts = document.get("accounts").and_then(toml::Value::as_table);
    for (name, account) in accounts.into_iter().flatten() {
        for key in ["token", "read_token", "key", "read_key", "url"] {
            let Some(written) = account.get(key).and_then(toml::Value::as_str) else {
                continue;
            };
            if written.is_empty() || text.matches(written).count() != 1 {
                continue;
            }
            let pasted = text.replace(written, SECRET);
            let said = pasted.parse::<toml::Table>().ok();
            let said = said.as_ref().and_then(|document| document["accounts"].get(name));
            if said.and_then(|account| account.get(key)?.as_str()) != Some(SECRET) {
                continue;
            }
            let problems = match parse(&pasted, "offhours.toml") {
                Ok(parsed) => parsed.warnings,
                Err(problems) => problems,
            };
            assert!(
                problems.iter().all(|problem| !problem.message.contains(SECRET)),
                "{problems:#?}"
            );
        }
    }
}
