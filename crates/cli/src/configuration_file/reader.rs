//! Reads values by serde, into the types that are stored as well. A value that cannot be read is
//! reported and left out, and the rest is read again without it, so that all problems are found.

use report::nearest::advice;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_path_to_error::{Path, Segment};
use toml::de::DeValue;

use super::document::Field;

impl Field<'_> {
    /// Reads the value as far as it can be read.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Option<T> {
        loop {
            let error = match serde_path_to_error::deserialize(self.json()?) {
                Ok(value) => return Some(value),
                Err(error) => error,
            };
            let wrong = self.at(error.path());
            // A table's missing keys are reported with it.
            let reason = if wrong.lacks_keys() { String::new() } else { error.inner().to_string() };
            wrong.give_up(&reason);
        }
    }

    pub(super) fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.field(key)?.read()
    }

    pub(super) fn list<T: DeserializeOwned>(&self, key: &str) -> Vec<(Self, T)> {
        let list = self.field(key).filter(|list| list.json().is_some());
        let elements = list.iter().flat_map(Self::elements);
        elements.filter_map(|field| Some((field.clone(), field.read()?))).collect()
    }

    /// The part of the value to which a path leads.
    fn at(&self, path: &Path) -> Self {
        path.iter().fold(self.clone(), |field, segment| {
            let part = match segment {
                Segment::Map { key } => {
                    field.as_described().parts().into_iter().find(|part| part.key == key)
                }
                Segment::Seq { index } => field.elements().into_iter().nth(*index),
                Segment::Enum { .. } | Segment::Unknown => None,
            };
            part.unwrap_or(field)
        })
    }

    /// The value as JSON, without what was given up.
    fn json(&self) -> Option<Value> {
        if self.is_unread() {
            return None;
        }
        self.converted().map_err(|reason| self.give_up(&reason)).ok()
    }

    /// The value as JSON of the type that its schema says, or why it is of another type.
    fn converted(&self) -> Result<Value, String> {
        let schema = self.resolved();
        match schema["type"].as_str() {
            Some("boolean") => match self.value.as_bool() {
                Some(flag) => Ok(flag.into()),
                None => Err(self.wrong_type("true or false, without quotes")),
            },
            Some("integer") => self.number(),
            Some("object") => self.table(),
            Some("array") => self.elements_as_json(),
            _ if schema["anyOf"][1]["type"] == "array" => self.elements_as_json(),
            _ if schema["type"].is_array() => self.price(),
            _ => self.text(),
        }
    }

    fn table(&self) -> Result<Value, String> {
        let table = self.as_described();
        if table.schema["patternProperties"].is_object() {
            // Its keys are names, and its entries are read one by one: see [`Field::named`].
            return Ok(Value::Object(Map::new()));
        }
        if !self.value.is_table() {
            return Err(self.wrong_type(&self.expected()));
        }
        if table.schema["properties"].is_object() {
            table.check_keys();
        }
        let names = table.schema["propertyNames"]["enum"].as_array().into_iter().flatten();
        let names: Vec<_> = names.filter_map(Value::as_str).collect();
        let parts = table.parts();
        if let Some(other) =
            parts.iter().find(|part| !names.is_empty() && !names.contains(&part.key))
        {
            return Err(not_known(other.key, names));
        }
        let parts = parts.iter().filter_map(|part| Some((part.key.to_owned(), part.json()?)));
        Ok(Value::Object(parts.collect()))
    }

    fn elements_as_json(&self) -> Result<Value, String> {
        if self.value.is_table() {
            return Err(self.wrong_type(&self.expected()));
        }
        let elements = self.elements();
        if elements.is_empty() && self.resolved()["anyOf"][1]["minItems"] == 1 {
            // An absent key may stand for all, which an empty list hardly means.
            return Err(format!("is empty; write \"{}\"", self.example()));
        }
        Ok(elements.iter().filter_map(Self::json).collect())
    }

    /// The value as text. In a period, days may be numbers; days and times may be TOML's own.
    fn text(&self) -> Result<Value, String> {
        let expected = self.expected();
        let refuse = |problem: &str| Err(format!("{problem}; write {expected}"));
        let text = match (self.value, self.key) {
            (DeValue::String(text), _) => text.to_string(),
            (DeValue::Integer(number), "weekdays" | "monthdays" | "months")
                if number.radix() == 10 =>
            {
                number.as_str().to_owned()
            }
            (DeValue::Datetime(given), "from" | "until" | "holidays") => {
                match (given.date, given.time) {
                    (Some(date), None) => date.to_string(),
                    (_, _) => return refuse("has a time"),
                }
            }
            (DeValue::Datetime(given), "begin" | "end") => match (given.date, given.time) {
                (None, Some(time))
                    if (time.second.unwrap_or(0), time.nanosecond.unwrap_or(0)) == (0, 0) =>
                {
                    format!("{:02}:{:02}", time.hour, time.minute)
                }
                (None, Some(_)) => return refuse("has seconds"),
                (_, _) => return refuse("has a date or an offset"),
            },
            (_, _) => return Err(self.wrong_type(&expected)),
        };
        let choices = self.choices();
        if choices.is_empty() || choices.contains(&text.as_str()) {
            return Ok(text.into());
        }
        Err(not_known(&text, choices))
    }

    /// The value as a whole number within the bounds of its schema.
    fn number(&self) -> Result<Value, String> {
        let bound = |name: &str| self.schema[name].as_u64().unwrap_or_default();
        let (least, most) = (bound("minimum"), bound("maximum"));
        let expected = if most < u32::MAX.into() {
            format!("a whole number from {least} to {most}")
        } else {
            format!("a whole number, {least} or more")
        };
        let DeValue::Integer(given) = self.value else {
            return Err(self.wrong_type(&expected));
        };
        let number = u64::from_str_radix(given.as_str(), given.radix()).ok();
        let number = number.filter(|number| (least..=most).contains(number));
        let out_of_bounds = || format!("{given} is out of bounds; write {expected}");
        number.map(Value::from).ok_or_else(out_of_bounds)
    }

    /// The value as a price, with the digits that are written.
    fn price(&self) -> Result<Value, String> {
        match self.value {
            DeValue::Float(number) => Ok(number.as_str().into()),
            DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().into()),
            DeValue::String(text) => Ok(text.to_string().into()),
            DeValue::Integer(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => Err(self.wrong_type("a price, such as 0.0312")),
        }
    }

    /// What to write for a value of another type.
    fn expected(&self) -> String {
        let example = self.example();
        match self.key {
            "begin" | "end" => format!("a time of day, such as \"{example}\""),
            "from" | "until" => format!("a day, such as \"{example}\""),
            "holidays" => {
                format!("a day or days, such as \"{example}\", or \"01-01\" for every year")
            }
            "periods" if self.is_element => {
                "a period as a table, { weekdays = \"mon-fri\", begin = \"08:00\" }".to_owned()
            }
            "periods" => "a list of tables, periods = [{ weekdays = \"mon-fri\", begin = \
                          \"08:00\", end = \"19:00\" }]"
                .to_owned(),
            "methods" => "the methods as a table, methods = { droplet = \"resize\", server = \
                          \"rescale\", database = \"standbys\" }"
                .to_owned(),
            "prices" => "prices as tables, [prices.machine-hour]".to_owned(),
            _ if self.table == "prices" => {
                format!("the prices as a table, [{}]", self.place.path)
            }
            _ => format!("a string, such as \"{example}\""),
        }
    }
}

pub(super) fn not_known(word: &str, choices: Vec<&str>) -> String {
    format!("`{word}` is not known; {}", advice(word, "choices", choices))
}
