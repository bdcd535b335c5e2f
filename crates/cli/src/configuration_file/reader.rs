//! Reads values by serde, into the types that are stored as well. A value that cannot be read is
//! reported and left out, and the rest is read again without it, so that all problems are found.

use std::vec;

use serde::{
    Deserializer,
    de::{DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor},
    forward_to_deserialize_any,
};
use toml::de::DeValue;

use super::document::Field;
use crate::names::nearest::advice;

impl Field<'_> {
    /// Reads the value as far as it can be read.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Option<T> {
        while !self.is_unread() {
            match T::deserialize(self) {
                Ok(value) => return Some(value),
                Err(unread) => _ = unread.at(self),
            }
        }
        None
    }

    /// Reads the value of a key, if there is one.
    pub(super) fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.field(key)?.read()
    }

    /// Reads the elements of a list, each with its place.
    pub(super) fn list<T: DeserializeOwned>(&self, key: &str) -> Vec<(Self, T)> {
        let Some(list) = self.field(key) else {
            return Vec::new();
        };
        if list.value.is_table() {
            list.refuse_type(&list.expected());
            return Vec::new();
        }
        let elements = list.elements().into_iter();
        elements.filter_map(|field| Some((field.clone(), field.read()?))).collect()
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

/// Why a value cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unread {
    /// A part of it was given up, and counts as absent from now on.
    #[error("a part cannot be read")]
    Part,
    /// The value itself; the reason is empty if it was reported elsewhere.
    #[error("{0}")]
    Whole(String),
}

impl Unread {
    /// Gives a value up, for whatever it is part of.
    fn at(self, field: &Field) -> Self {
        if let Self::Whole(reason) = self {
            field.problems.give_up(&field.place, &reason);
        }
        Self::Part
    }
}

impl serde::de::Error for Unread {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::Whole(message.to_string())
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let advice = advice(variant, "choices", expected.iter().copied());
        Self::Whole(format!("`{variant}` is not known; {advice}"))
    }

    /// A table's missing keys are reported before it is read.
    fn missing_field(_: &'static str) -> Self {
        Self::Whole(String::new())
    }
}

/// What a value is for the reader.
impl<'t> Field<'t> {
    fn refused<T>(&self, expected: &str) -> Result<T, Unread> {
        Err(Unread::Whole(self.wrong_type(expected)))
    }

    /// The value as text. In a period, days may be numbers; days and times may be TOML's own.
    fn text(&self) -> Result<String, Unread> {
        let expected = self.expected();
        let refuse = |problem: &str| Err(Unread::Whole(format!("{problem}; write {expected}")));
        match (self.value, self.key) {
            (DeValue::String(text), _) => Ok(text.to_string()),
            (DeValue::Integer(number), "weekdays" | "monthdays" | "months")
                if number.radix() == 10 =>
            {
                Ok(number.as_str().to_owned())
            }
            (DeValue::Datetime(given), "from" | "until" | "holidays") => {
                match (given.date, given.time) {
                    (Some(date), None) => Ok(date.to_string()),
                    (_, _) => refuse("has a time"),
                }
            }
            (DeValue::Datetime(given), "begin" | "end") => match (given.date, given.time) {
                (None, Some(time))
                    if (time.second.unwrap_or(0), time.nanosecond.unwrap_or(0)) == (0, 0) =>
                {
                    Ok(format!("{:02}:{:02}", time.hour, time.minute))
                }
                (None, Some(_)) => refuse("has seconds"),
                (_, _) => refuse("has a date or an offset"),
            },
            (_, _) => self.refused(&expected),
        }
    }

    /// The value as a whole number within the bounds of its schema.
    fn number(&self) -> Result<u64, Unread> {
        let bound = |name: &str| self.schema[name].as_u64().unwrap_or_default();
        let (least, most) = (bound("minimum"), bound("maximum"));
        let expected = if most < u32::MAX.into() {
            format!("a whole number from {least} to {most}")
        } else {
            format!("a whole number, {least} or more")
        };
        let DeValue::Integer(given) = self.value else {
            return self.refused(&expected);
        };
        let number = u64::from_str_radix(given.as_str(), given.radix()).ok();
        let out_of_bounds = || Unread::Whole(format!("{given} is out of bounds; write {expected}"));
        number.filter(|number| (least..=most).contains(number)).ok_or_else(out_of_bounds)
    }

    /// The parts of it that have not been given up.
    fn parts(fields: impl IntoIterator<Item = Self>) -> Parts<'t> {
        let fields: Vec<_> = fields.into_iter().filter(|field| !field.is_unread()).collect();
        Parts { fields: fields.into_iter(), next: None }
    }
}

impl<'de> Deserializer<'de> for &Field<'_> {
    type Error = Unread;

    /// What may be one text or several, or a price, which keeps the digits that are written.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        if self.schema["type"][0] == "number" {
            return match self.value {
                DeValue::Float(number) => visitor.visit_str(number.as_str()),
                DeValue::Integer(number) => visitor.visit_str(number.as_str()),
                DeValue::String(text) => visitor.visit_str(text),
                DeValue::Boolean(_)
                | DeValue::Datetime(_)
                | DeValue::Array(_)
                | DeValue::Table(_) => self.refused("a price, such as 0.0312"),
            };
        }
        if self.value.is_array() && !self.is_element {
            self.deserialize_seq(visitor)
        } else {
            self.deserialize_string(visitor)
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        visitor.visit_string(self.text()?)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        match self.value.as_bool() {
            Some(flag) => visitor.visit_bool(flag),
            None => self.refused("true or false, without quotes"),
        }
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        visitor.visit_u64(self.number()?)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        self.deserialize_u32(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Unread> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unread> {
        visitor.visit_enum(self.text()?.into_deserializer())
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        if self.value.is_table() {
            return self.refused(&self.expected());
        }
        let elements = self.elements();
        if elements.is_empty() && self.schema["anyOf"][1]["minItems"] == 1 {
            // An absent key matches all, which an empty list hardly means.
            let example = self.example();
            let message = format!("is empty; write \"{example}\", or leave the key out for all");
            return Err(Unread::Whole(message));
        }
        visitor.visit_seq(Field::parts(elements))
    }

    /// A table whose keys are names is read entry by entry: see [`Field::named`].
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        if !self.schema["additionalProperties"].is_object() {
            return visitor.visit_map(Field::parts([]));
        }
        match self.entries() {
            Some(entries) => visitor.visit_map(Field::parts(entries)),
            None => self.refused(&self.expected()),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unread> {
        if !self.value.is_table() {
            return self.refused(&self.expected());
        }
        let table = self.resolved();
        table.check_keys();
        visitor.visit_map(Field::parts(table.fields()))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u64 u128 f32 f64 char str bytes byte_buf unit unit_struct tuple
        tuple_struct identifier
    }
}

/// The parts of a list or of a table that have not been given up.
struct Parts<'t> {
    fields: vec::IntoIter<Field<'t>>,
    /// The field whose key was read last.
    next: Option<Field<'t>>,
}

fn part<'de, S: DeserializeSeed<'de>>(field: &Field, seed: S) -> Result<S::Value, Unread> {
    seed.deserialize(field).map_err(|unread| unread.at(field))
}

impl<'de> SeqAccess<'de> for Parts<'_> {
    type Error = Unread;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Unread> {
        self.fields.next().map(|field| part(&field, seed)).transpose()
    }
}

impl<'de> MapAccess<'de> for Parts<'_> {
    type Error = Unread;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Unread> {
        self.next = self.fields.next();
        let key = self.next.as_ref().map(|field| field.key);
        key.map(|key| seed.deserialize(key.into_deserializer())).transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Unread> {
        let field = self.next.take().expect("a key is read before its value");
        part(&field, seed)
    }
}
