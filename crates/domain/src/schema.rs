//! JSON schemas for values that are written as text with its own grammar, or as one value or a
//! list.

use std::{borrow::Cow, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::reference::NAME_PATTERN;

/// A table whose keys are names.
pub struct Named<T>(PhantomData<T>);

/// One value, or a list of them.
pub struct OneOrSeveral<T>(PhantomData<T>);

/// One value, or a nonempty list of them.
pub struct OneOrMore<T>(PhantomData<T>);

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
            "patternProperties": { NAME_PATTERN: table },
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

/// Declares uninhabited types that stand for a schema.
macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident = $schema:expr;)*) => {$(
        $(#[$doc])*
        pub enum $name {}

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
    )*};
}
shapes! {
    /// An IANA time zone's name.
    TimeZone = text("^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$");
    /// A base address.
    Url = text(r"^(https://|http://(localhost|127\.|\[))[^\s?#@]+$");
    /// The slug of a database's plan or of a Droplet's size, or the name of a server's type.
    Plan = text("^[a-z0-9_-]+$");
    /// Five fields, or a nickname such as `@daily`.
    Cron = text(r"^\s*(@\w+|\S+(\s+\S+){4})\s*$");
    /// Days, and ranges of them, with or without a year. TOML's own dates become such strings in
    /// JSON.
    Holidays = list(&holidays());
    /// `YYYY-MM-DD`.
    Date = text("^[0-9]{4}-[0-9]{2}-[0-9]{2}$");
    /// `HH:MM`. TOML's own times include seconds in JSON.
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
    format!(r"{day}(\s*\.\.\s*{day})?|file:[^/\\,]*[^/\\,\s]")
}

fn monthday() -> String {
    format!(r"[Ll]|{DAY}\s*[Ww]|{DAY}(\s*-\s*({DAY}|[Ll]))?(\s*/\s*{DAY})?")
}

fn month() -> String {
    let month = "([A-Za-z]{3,9}|0*(1[0-2]|[1-9]))";
    format!(r"{month}(\s*-\s*{month})?(\s*/\s*{DAY})?")
}

/// A string of comma-separated entries that match `entry`.
fn list(entry: &str) -> Schema {
    text(&format!(r"^\s*({entry})\s*(,\s*({entry})\s*)*$"))
}

/// Such a string, or an integer from 1 to `most`.
fn text_or_number(most: u32, entry: &str) -> Schema {
    let text = list(entry);
    let number = json_schema!({ "type": "integer", "minimum": 1, "maximum": most });
    json_schema!({ "anyOf": [text, number] })
}

/// A string that matches a regular expression.
fn text(pattern: &str) -> Schema {
    json_schema!({ "type": "string", "pattern": pattern })
}
