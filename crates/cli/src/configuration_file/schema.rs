//! What may be written in the file, as JSON schemas: for editors, which show and check it while
//! somebody writes. [`parse`](super::parse) is stricter: it knows time zones, days and references.

use std::{borrow::Cow, marker::PhantomData};

use domain::configuration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::shape::{NAME, shapes, text, words};

/// A table whose keys are names.
pub(super) struct Named<T>(PhantomData<T>);

/// One value, or a list of them.
pub(super) struct OneOrSeveral<T>(PhantomData<T>);

/// One value, or a list of them with an entry at least.
pub(super) struct OneOrMore<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for Named<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Named{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<T>();
        json_schema!({
            "type": "object",
            "propertyNames": { "not": { "enum": ["off", "none", "all"] } },
            "patternProperties": { NAME: table },
            "additionalProperties": false,
        })
    }
}

impl<T: JsonSchema> JsonSchema for OneOrSeveral<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("OneOrSeveral{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        one_or_list::<T>(0, generator)
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMore<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("OneOrMore{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        one_or_list::<T>(1, generator)
    }
}

fn one_or_list<T: JsonSchema>(least: u32, generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<T>();
    json_schema!({ "anyOf": [one, { "type": "array", "items": one, "minItems": least }] })
}

shapes! {
    /// An IANA time zone's name.
    TimeZone = text("^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$");
    /// What `protect` names.
    Pattern = text(r"^((name|tag):[\s\S]*\S[\s\S]*|[\s\S]*/[\s\S]*|\*)$");
    /// Where a token is kept.
    Token = text("^(ssm:[A-Za-z0-9/_.-]+|env:[A-Za-z0-9_]+)$");
    /// A Hetzner datacenter.
    Datacenter = words(&configuration::Datacenter::ALL);
    /// A base address.
    Url = text(r"^(https://|http://(localhost|127\.|\[))[^\s?#@]+$");
    /// `at-once` or `next-edge`.
    Adopt = words(&[configuration::Adopt::AtOnce, configuration::Adopt::NextEdge]);
    /// A database plan's slug.
    Plan = text("^[a-z0-9_-]+$");
    /// Five fields, or a nickname such as `@daily`.
    Cron = text(r"^\s*(@\w+|\S+(\s+\S+){4})\s*$");
    /// Days, and ranges of them, with or without a year. TOML's own dates are such texts in JSON.
    Holidays = list(&holidays());
    /// `HH:MM`. TOML's own times have seconds in JSON.
    Begin = text("^([01][0-9]|2[0-3]):[0-5][0-9](:00)?$");
    /// `HH:MM`, up to 24:00.
    End = text("^(([01][0-9]|2[0-3]):[0-5][0-9](:00)?|24:00)$");
    /// Names, ranges, occurrences; never numbers.
    Weekdays = list(r"[A-Za-z]{3,10}(\s*-\s*[A-Za-z]{3,9}|#0*[1-5])?");
    /// Numbers, ranges, steps, the last day, the nearest weekday.
    Monthdays = text_or_number(31, &monthday());
    /// Names or numbers, ranges, steps.
    Months = text_or_number(12, &month());
}

/// A number from 1 to 31, for a day or a step.
const DAY: &str = "0*(3[01]|[12][0-9]|[1-9])";

fn holidays() -> String {
    let day = "([0-9]{4}-)?[0-9]{2}-[0-9]{2}";
    format!(r"{day}(\s*\.\.\s*{day})?")
}

fn monthday() -> String {
    format!(r"[Ll]|{DAY}\s*[Ww]|{DAY}(\s*-\s*({DAY}|[Ll]))?(\s*/\s*{DAY})?")
}

fn month() -> String {
    let month = "([A-Za-z]{3,9}|0*(1[0-2]|[1-9]))";
    format!(r"{month}(\s*-\s*{month})?(\s*/\s*{DAY})?")
}

/// A text of entries that match `entry`, separated by commas.
fn list(entry: &str) -> Schema {
    text(&format!(r"^\s*({entry})\s*(,\s*({entry})\s*)*$"))
}

/// Such a text, or a whole number from 1.
fn text_or_number(most: u32, entry: &str) -> Schema {
    let text = list(entry);
    let number = json_schema!({ "type": "integer", "minimum": 1, "maximum": most });
    json_schema!({ "anyOf": [text, number] })
}

#[cfg(test)]
mod tests {
    use jsonschema::Validator;
    use proptest::prelude::*;
    use serde_json::Value;

    use crate::{
        configuration_file::{
            ACCOUNT, Keys, Listed, PERIOD, SCHEDULE, TOP, random, read, write, written::File,
        },
        shape,
    };

    fn schema() -> Value {
        shape::of::<File>().to_value()
    }

    fn validator() -> Validator {
        jsonschema::validator_for(&schema()).expect("a schema")
    }

    /// A TOML document as editors hand it to a schema: dates and times are texts.
    fn document(text: &str) -> Value {
        fn json(value: toml::Value) -> Value {
            match value {
                toml::Value::Datetime(datetime) => Value::String(datetime.to_string()),
                toml::Value::Array(array) => array.into_iter().map(json).collect(),
                toml::Value::Table(table) => table.into_iter().map(|(k, v)| (k, json(v))).collect(),
                toml::Value::String(text) => Value::String(text),
                toml::Value::Integer(integer) => integer.into(),
                toml::Value::Float(float) => float.into(),
                toml::Value::Boolean(boolean) => boolean.into(),
            }
        }
        json(toml::Value::Table(toml::from_str(text).expect("TOML")))
    }

    #[track_caller]
    fn check_accepted(text: &str) {
        if let Err(problems) = read(text, "x.toml", Listed::MayStandAlone) {
            panic!("{problems:#?}\n{text}");
        }
        if let Err(error) = validator().validate(&document(text)) {
            panic!("{}: {error}\n{text}", error.instance_path());
        }
    }

    #[test]
    fn the_keys_of_the_schema_are_those_that_are_read() {
        #[track_caller]
        fn check(table: &Value, keys: &Keys) {
            let mut known = keys.known.to_vec();
            known.sort_unstable();
            let properties = table["properties"].as_object().expect("properties");
            assert!(properties.keys().eq(known), "{properties:#?}");
            assert_eq!(table["additionalProperties"], false);
            for (key, property) in properties {
                assert!(property["description"].is_string(), "{key}");
            }
        }
        let schema = schema();
        check(&schema, &TOP);
        for (name, keys) in [
            ("account", &ACCOUNT),
            ("schedule", &SCHEDULE),
            ("period", &PERIOD),
        ] {
            check(&schema["$defs"][name], keys);
        }
    }

    #[test]
    fn what_is_in_order_fits() {
        check_accepted("");
        check_accepted(include_str!("../../../../examples/offhours.toml"));
        // Every form that is read and never written.
        check_accepted(
            r#"
timezone = "America/Argentina/Buenos_Aires"
protect = "name:*"
accounts.a = { provider = "hetzner", token = "env:T", datacenters = "fsn1-dc14" }
accounts.b = { provider = "digitalocean", token = "ssm:/x", read_token = "env:R", url = "http://[::1]:80/v2" }
[schedules.s]
periods = [
  { weekdays = "mon-wed, friL", monthdays = 15, months = [1, "feb / 2", "11-2"], begin = 08:00 },
  { weekdays = ["sat#1"], monthdays = [" 1/10 ", "28 - L", "15 w"], end = 19:00:00 },
]
holidays = 2026-12-24
resources = "a/server/42"
[schedules.t]
periods = []
start = "@daily"
stop = " 0 19  * * * "
holidays = [2026-12-24, "12-24 .. 01-02, 05-01"]
retain_running = false
enforce = true
"#,
        );
    }

    #[test]
    fn what_is_out_of_order_is_refused_by_both() {
        let account = "[accounts.a]\nprovider = \"hetzner\"\ntoken = \"env:T\"\n";
        let schedule = "[schedules.s]\ntimezone = \"UTC\"\n";
        let period = "periods = [{ begin = \"08:00\" }]\n";
        check_accepted(&format!("{account}{schedule}{period}"));
        for text in [
            "timezoen = \"UTC\"".to_owned(),
            "timezone = 1".to_owned(),
            "timezone = \"Mid Earth\"".to_owned(),
            "mode = \"watch\"".to_owned(),
            "max_stops = 0".to_owned(),
            "max_new = -1".to_owned(),
            "max_new = 4294967296".to_owned(),
            "max_new = 1.5".to_owned(),
            "protect = [\"prod\"]".to_owned(),
            "protect = \"tag: \"".to_owned(),
            "accounts = 1".to_owned(),
            "accounts.a = 1".to_owned(),
            "schedules = []".to_owned(),
            "[accounts.Main]\nprovider = \"hetzner\"\ntoken = \"env:T\"".to_owned(),
            "[accounts.all]\nprovider = \"hetzner\"\ntoken = \"env:T\"".to_owned(),
            "[accounts.a]\nprovider = \"hetzner\"".to_owned(),
            "[accounts.a]\ntoken = \"env:T\"".to_owned(),
            "[accounts.a]\nprovider = \"hetzner\"\ntoken = \"dop_v1_x\"".to_owned(),
            "[accounts.a]\nprovider = \"aws\"\ntoken = \"env:T\"".to_owned(),
            "[accounts.a]\nprovider = \"digitalocean\"\ntoken = \"env:T\"\n\
             datacenters = \"fsn1-dc14\""
                .to_owned(),
            format!("{account}datacenters = []"),
            format!("{account}datacenters = [\"fsn1\"]"),
            format!("{account}url = \"http://api.example.com\""),
            format!("{account}tokens = \"env:T\""),
            format!("{account}read_token = \"dop_v1_x\""),
            format!("{account}read_token = [\"env:T\"]"),
            format!("[schedules.s]\n{period}"),
            format!("[schedules.-s]\ntimezone = \"UTC\"\n{period}"),
            schedule.to_owned(),
            format!("{schedule}start = \"0 8 * * *\""),
            format!("{schedule}start = \"0 8 * *\"\nstop = \"0 9 * * *\""),
            format!("{schedule}{period}start = \"0 8 * * *\"\nstop = \"0 9 * * *\""),
            format!("{schedule}{period}enforce = true\nretain_running = true"),
            format!("{schedule}{period}weekdays = \"mon\""),
            format!("{schedule}{period}graceful = \"yes\""),
            format!("{schedule}{period}adopt = \"now\""),
            format!("{schedule}{period}stop_size = \"Big One\""),
            format!("{schedule}{period}stop_nodes = 4"),
            format!("{schedule}{period}holidays = \"christmas\""),
            format!("{schedule}{period}holidays = [[\"01-01\"]]"),
            format!("{schedule}{period}resources = [42]"),
            format!("{schedule}{period}resources = [\"a/volume/1\"]"),
            format!("{schedule}{period}resources = [\"a/server/one\"]"),
            format!("{schedule}periods = {{ begin = \"08:00\" }}"),
            format!("{schedule}periods = [5]"),
            format!("{schedule}periods = [{{ start = \"08:00\" }}]"),
            format!("{schedule}periods = [{{ begin = 8 }}]"),
            format!("{schedule}periods = [{{ begin = \"8:00\" }}]"),
            format!("{schedule}periods = [{{ begin = \"24:00\" }}]"),
            format!("{schedule}periods = [{{ begin = 08:00:30 }}]"),
            format!("{schedule}periods = [{{ begin = \"08:00\", end = \"24:01\" }}]"),
            format!("{schedule}periods = [{{ weekdays = 1 }}]"),
            format!("{schedule}periods = [{{ weekdays = \"1-5\" }}]"),
            format!("{schedule}periods = [{{ weekdays = [] }}]"),
            format!("{schedule}periods = [{{ weekdays = \"mon,\" }}]"),
            format!("{schedule}periods = [{{ weekdays = \"mon#6\" }}]"),
            format!("{schedule}periods = [{{ monthdays = 32 }}]"),
            format!("{schedule}periods = [{{ monthdays = \"0-5\" }}]"),
            format!("{schedule}periods = [{{ months = 13 }}]"),
            format!("{schedule}periods = [{{ months = \"1/0\" }}]"),
        ] {
            let read = read(&text, "x.toml", Listed::MayStandAlone);
            assert!(read.is_err(), "read: {text}");
            assert!(!validator().is_valid(&document(&text)), "fits: {text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn what_is_written_fits(configuration in random::configuration()) {
            thread_local! {
                static VALIDATOR: Validator = validator();
            }
            VALIDATOR.with(|validator| {
                let text = write(&configuration);
                let told = validator.validate(&document(&text)).map_err(|error| error.to_string());
                prop_assert_eq!(told, Ok(()), "{}", text);
                // The document that `export --format json` prints is the same one.
                let printed = serde_json::to_value(File::of(&configuration)).unwrap();
                prop_assert_eq!(printed, document(&text));
                Ok(())
            })?;
        }
    }
}
