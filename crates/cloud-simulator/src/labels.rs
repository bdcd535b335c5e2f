//! Hetzner's label selectors (HZSPEC): `k==v`, `k!=v`, `k`, `!k`, `k in (a,b)`, joined by commas.

use std::collections::BTreeMap;

/// The labels of something, by key.
pub(crate) type Labels = BTreeMap<String, String>;

/// Reports whether a text is a valid label key: up to 63 characters, after an optional prefix
/// (HZSPEC). Hetzner reserves `hetzner.cloud/`.
pub(crate) fn is_key(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or_default();
    !text.starts_with("hetzner.cloud/") && !name.is_empty() && is_value(name)
}

/// Reports whether a text is a valid label value: up to 63 characters, with a letter or digit at
/// both ends.
pub(crate) fn is_value(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let ends = [text.chars().next(), text.chars().last()];
    let mut ends = ends.into_iter().flatten();
    text.len() <= 63 && text.chars().all(fits) && ends.all(|c| c.is_ascii_alphanumeric())
}

/// Conditions that must all hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selector(Vec<Condition>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    Has(String),
    Lacks(String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
}

impl Selector {
    /// Parses a selector; `None` if the text is malformed. An empty selector selects everything.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.trim().is_empty() {
            return Some(Self(Vec::new()));
        }
        conditions(text).into_iter().map(Condition::parse).collect::<Option<_>>().map(Self)
    }

    pub(crate) fn chooses(&self, labels: &Labels) -> bool {
        self.0.iter().all(|condition| match condition {
            Condition::Has(key) => labels.contains_key(key),
            Condition::Lacks(key) => !labels.contains_key(key),
            Condition::In(key, values) => labels.get(key).is_some_and(|own| values.contains(own)),
            Condition::NotIn(key, values) => {
                labels.get(key).is_none_or(|own| !values.contains(own))
            }
        })
    }
}

/// The parts between the commas outside parentheses.
fn conditions(text: &str) -> Vec<&str> {
    let mut depth = 0;
    text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .collect()
}

impl Condition {
    fn parse(text: &str) -> Option<Self> {
        let key = |text: &str| {
            let key = text.trim();
            let fits = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
            (!key.is_empty() && key.chars().all(fits)).then(|| key.to_owned())
        };
        let values = |text: &str| -> Option<Vec<String>> {
            let list = text.trim().strip_prefix('(')?.strip_suffix(')')?;
            let values = list.split(',').map(|value| value.trim().to_owned());
            Some(values.collect())
        };
        let one = |value: &str| vec![value.trim().to_owned()];
        if let Some((name, list)) = text.split_once(" notin ") {
            return Some(Self::NotIn(key(name)?, values(list)?));
        }
        if let Some((name, list)) = text.split_once(" in ") {
            return Some(Self::In(key(name)?, values(list)?));
        }
        if let Some((name, value)) = text.split_once("!=") {
            return Some(Self::NotIn(key(name)?, one(value)));
        }
        if let Some((name, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
            return Some(Self::In(key(name)?, one(value)));
        }
        match text.strip_prefix('!') {
            Some(name) => key(name).map(Self::Lacks),
            None => key(text).map(Self::Has),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(selector: &str, expected: bool) {
        let labels = [("env", "dev"), ("team", "web")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let selector = Selector::parse(selector).unwrap();
        assert_eq!(selector.chooses(&labels), expected, "{selector:?}");
    }

    #[test]
    fn every_form_of_condition_is_understood() {
        check("", true);
        check("env", true);
        check("!env", false);
        check("env=dev", true);
        check("env==prod", false);
        check("env!=prod", true);
        check("owner!=me", true);
        check("env in (dev, prod),team", true);
        check("env notin (dev,prod),team", false);
        check("env=dev,!team", false);
    }

    #[test]
    fn a_malformed_selector_is_refused() {
        for text in ["=dev", "env in dev", "a b", "env=dev,"] {
            assert_eq!(Selector::parse(text), None, "{text}");
        }
    }
}
