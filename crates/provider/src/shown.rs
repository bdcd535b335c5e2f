//! A request's body in one line, for people: what is shown is what is sent.

use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};

/// Returns what a JSON text says, in its order: `resize size=s-1vcpu-1gb disk=false`. What an action
/// is called comes first, without its key; values are named by the innermost key around them. Texts
/// of several words are left out.
pub(crate) fn in_one_line(json: &str) -> String {
    let mut words = Vec::new();
    let body = Body { key: "", words: &mut words };
    // What cannot be read to its end is shown as far as it was read.
    let _ = body.deserialize(&mut serde_json::Deserializer::from_str(json));
    words.join(" ")
}

struct Body<'w> {
    key: &'w str,
    words: &'w mut Vec<String>,
}

impl Body<'_> {
    fn add(self, value: impl fmt::Display) {
        let value = value.to_string();
        if value.is_empty() || value.contains(char::is_whitespace) {
            return;
        }
        if self.key == "type" {
            self.words.insert(0, value);
        } else {
            self.words.push(format!("{}={value}", self.key));
        }
    }
}

impl<'de> DeserializeSeed<'de> for Body<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Body<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.add(value);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.add(value);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.add(value);
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.add(value);
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.add(value);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<(), A::Error> {
        while all.next_element_seed(Body { key: self.key, words: self.words })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<(), A::Error> {
        while let Some(key) = all.next_key::<String>()? {
            all.next_value_seed(Body { key: &key, words: self.words })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_shown_in_its_order_with_its_action_first() {
        for (json, shown) in [
            (r#"{"type":"power_off"}"#, "power_off"),
            (r#"{"size":"s-1","disk":false,"type":"resize"}"#, "resize size=s-1 disk=false"),
            (r#"{"apply_to":[{"type":"server","server":{"id":42}}]}"#, "server id=42"),
            (
                r##"{"tags":["a","b"],"user_data":"#cloud-config\na: b","vpc":null}"##,
                "tags=a tags=b",
            ),
            ("{}", ""),
        ] {
            assert_eq!(in_one_line(json), shown);
        }
    }
}
