//! The file as it is written: values with their places, and what is wrong with them.
//!
//! What a table's keys are called, which it needs, and what is written for them comes from the
//! file's schema, so each is declared once: by the type that holds it.

use std::{
    borrow::Cow, cell::RefCell, collections::BTreeSet, fmt::Display, ops::Bound, path::Path,
    str::FromStr, sync::LazyLock,
};

use domain::configuration::{AccountKind, Provider};
use report::nearest::{advice, nearest};
use serde_json::Value;
use toml::{Spanned, de::DeValue};

use super::{Problem, written::File};
use crate::shape;

/// A position in the file: the path of the key, and where it begins in the text.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) path: String,
    pub(super) start: usize,
}

impl Place {
    pub(super) fn with(&self, message: impl Display) -> String {
        let separator = if self.path.is_empty() { "" } else { ": " };
        redacted(&format!("{}{separator}{message}", self.path))
    }
}

pub(super) struct Problems<'f> {
    file: &'f str,
    /// The offset of each line's first byte.
    lines: Vec<usize>,
    /// By position, so that each is reported only once.
    errors: RefCell<BTreeSet<(usize, String)>>,
    warnings: RefCell<BTreeSet<(usize, String)>>,
    /// The paths of values that cannot be read: each looks absent from then on, and what follows
    /// from that is not reported.
    unread: RefCell<BTreeSet<String>>,
}

impl<'f> Problems<'f> {
    pub(super) fn new(text: &str, file: &'f str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(newlines.map(|(offset, _)| offset + 1));
        Self {
            file,
            lines: lines.collect(),
            errors: RefCell::default(),
            warnings: RefCell::default(),
            unread: RefCell::default(),
        }
    }

    pub(super) fn folder(&self) -> &'f Path {
        Path::new(self.file).parent().unwrap_or(Path::new(""))
    }

    /// The line of a place, counted from 1.
    pub(super) fn line(&self, place: &Place) -> usize {
        self.lines.partition_point(|&start| start <= place.start)
    }

    pub(super) fn error(&self, place: &Place, message: impl Display) {
        self.errors.borrow_mut().insert((place.start, place.with(message)));
    }

    /// Gives up a value. The reason is reported unless it follows from a part that was given up, or
    /// is empty because it was reported elsewhere.
    pub(super) fn give_up(&self, place: &Place, reason: &str) {
        if !reason.is_empty() && !self.is_unsure(&place.path) {
            self.error(place, reason);
        }
        self.unread.borrow_mut().insert(place.path.clone());
    }

    /// Reports whether a value or a part of it was given up.
    pub(super) fn is_unsure(&self, path: &str) -> bool {
        let unread = self.unread.borrow();
        let from = unread.range::<str, _>((Bound::Included(path), Bound::Unbounded));
        let mut within = from.map_while(|other| other.strip_prefix(path));
        within.any(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    }

    pub(super) fn problem(&self, start: usize, message: String) -> Problem {
        let line = self.line(&Place { path: String::new(), start });
        Problem { file: self.file.to_owned(), line, message }
    }

    /// The warnings if there are no errors, otherwise the errors; both in file order.
    pub(super) fn into_result(self) -> Result<Vec<Problem>, Vec<Problem>> {
        let (errors, warnings) = (self.errors.take(), self.warnings.take());
        let list = |found: BTreeSet<(usize, String)>| {
            found.into_iter().map(|(start, message)| self.problem(start, message)).collect()
        };
        if errors.is_empty() { Ok(list(warnings)) } else { Err(list(errors)) }
    }
}

/// Returns the message with everything that may be a token removed, wherever it was pasted:
/// `DigitalOcean` tokens begin with `dop_v1_`, `doo_v1_` or `dor_v1_`; Hetzner tokens are 64
/// upper-case and lower-case letters and digits.
fn redacted(message: &str) -> String {
    let mut clean = String::with_capacity(message.len());
    let mut rest = message;
    while !rest.is_empty() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(word);
        let prefixed = ["dop_v1_", "doo_v1_", "dor_v1_"].iter().any(|prefix| word.contains(prefix));
        let has = |kind: fn(&u8) -> bool| word.as_bytes().iter().any(kind);
        let is_mixed =
            has(u8::is_ascii_lowercase) && (has(u8::is_ascii_uppercase) || has(u8::is_ascii_digit));
        clean += if prefixed || word.len() >= 64 && is_mixed { "(not repeated)" } else { word };
        let other = after.find(is_word).unwrap_or(after.len());
        clean += &after[..other];
        rest = &after[other..];
    }
    clean
}

static SCHEMA: LazyLock<Value> = LazyLock::new(|| shape::schema_of::<File>().to_value());

/// The tables, by their names in the schema, and where each is written. A key that belongs to
/// several is suggested for the first of them.
const TABLES: [(&str, &str); 10] = [
    ("schedule", "in a schedule, [schedules.NAME]"),
    ("", "at the top of the file, before the first [table]"),
    ("account", "in an account at a cloud, [accounts.NAME]"),
    ("ssh-account", "in an account over SSH, [accounts.NAME]"),
    ("machine", "in a machine, [accounts.NAME.machines.NAME]"),
    ("period", "in one of a schedule's periods"),
    ("methods", "in a schedule's methods, methods = { droplet = \"resize\" }"),
    ("prices", "in the prices, [prices]"),
    ("target", "in a target of events, [notify.NAME]"),
    ("group", "in a group, [groups.NAME]"),
];

/// The kinds whose method cannot be chosen, and why.
const WITHOUT_CHOICE: [(&str, &str); 2] = [
    ("node-pool", "a node pool is always scaled to zero nodes"),
    ("machine", "a machine over SSH is always stopped by its own commands"),
];

fn table(name: &str) -> &'static Value {
    if name.is_empty() { &SCHEMA } else { &SCHEMA["$defs"][name] }
}

fn keys(schema: &'static Value) -> impl Iterator<Item = &'static str> + Clone {
    schema["properties"].as_object().into_iter().flatten().map(|(key, _)| key.as_str())
}

fn required(schema: &'static Value) -> impl Iterator<Item = &'static str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// A value, its place in the file and its schema.
#[derive(Clone)]
pub(super) struct Field<'t> {
    pub(super) place: Place,
    /// The key or, of an element, the key of its list.
    pub(super) key: &'t str,
    pub(super) is_element: bool,
    /// The key of the table that has it.
    pub(super) table: &'t str,
    pub(super) value: &'t DeValue<'t>,
    pub(super) schema: &'static Value,
    pub(super) problems: &'t Problems<'t>,
}

impl<'t> Field<'t> {
    pub(super) fn root(value: &'t DeValue<'t>, problems: &'t Problems<'t>) -> Self {
        let place = Place { path: String::new(), start: 0 };
        Self { place, key: "", is_element: false, table: "", value, schema: &SCHEMA, problems }
    }

    pub(super) fn error(&self, message: impl Display) {
        self.problems.error(&self.place, message);
    }

    pub(super) fn refuse(&self, key: &str, message: impl Display) {
        self.field(key).iter().for_each(|field| field.error(&message));
    }

    pub(super) fn warning(&self, message: impl Display) {
        let mut warnings = self.problems.warnings.borrow_mut();
        warnings.insert((self.place.start, self.place.with(message)));
    }

    pub(super) fn give_up(&self, reason: &str) {
        self.problems.give_up(&self.place, reason);
    }

    pub(super) fn is_unread(&self) -> bool {
        self.problems.unread.borrow().contains(&self.place.path)
    }

    /// Reports whether any of these keys or a part of it was given up.
    pub(super) fn is_unsure_of(&self, keys: &[&str]) -> bool {
        keys.iter().any(|key| self.problems.is_unsure(&self.path_of(key)))
    }

    /// The value of a key, if this is a table that has it.
    pub(super) fn field(&self, key: &str) -> Option<Self> {
        let (key, value) = self.value.as_table()?.get_key_value(key)?;
        Some(Self {
            place: Place { path: self.path_of(key.get_ref()), start: value.span().start },
            key: key.get_ref(),
            is_element: false,
            table: self.key,
            value: value.get_ref(),
            schema: &self.schema["properties"][key.get_ref().as_ref()],
            problems: self.problems,
        })
    }

    /// The values of all keys that a table should have; of one with any keys, its entries. A table
    /// whose keys are names has none here: see [`Self::named`].
    pub(super) fn parts(&self) -> Vec<Self> {
        let entries = &self.schema["additionalProperties"];
        if entries.is_object() {
            return self.entries(entries);
        }
        keys(self.schema).filter_map(|key| self.field(key)).collect()
    }

    /// Reports whether a required key is missing or was given up.
    pub(super) fn lacks_keys(&self) -> bool {
        required(self.resolved()).any(|key| self.field(key).is_none_or(|field| field.is_unread()))
    }

    /// The value as a table of this name in the schema.
    pub(super) fn as_table(&self, name: &str) -> Self {
        Self { schema: table(name), ..self.clone() }
    }

    /// The value as the table that its schema refers to.
    pub(super) fn as_described(&self) -> Self {
        Self { schema: self.resolved(), is_element: false, ..self.clone() }
    }

    /// The schema of the value itself: of an element, not of its list.
    pub(super) fn resolved(&self) -> &'static Value {
        let one = &self.schema["anyOf"][0];
        let schema = match (self.is_element, one.is_null()) {
            (false, _) => self.schema,
            (true, true) => &self.schema["items"],
            (true, false) => one,
        };
        let name = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/"));
        name.map_or(schema, table)
    }

    /// The words of which the value must be one; none if it may be any text.
    pub(super) fn choices(&self) -> Vec<&'static str> {
        let schema = self.resolved();
        let optional = Self { schema: &schema["anyOf"][0], is_element: false, ..self.clone() };
        let words = schema["oneOf"].as_array().or(optional.resolved()["oneOf"].as_array());
        words.into_iter().flatten().filter_map(|word| word["const"].as_str()).collect()
    }

    /// The elements of a list that were not given up. A single value is a list of one.
    pub(super) fn elements(&self) -> Vec<Self> {
        let Some(array) = self.value.as_array() else {
            return vec![Self { is_element: true, ..self.clone() }];
        };
        let element = |(index, value): (usize, &'t Spanned<DeValue<'t>>)| {
            let path = format!("{}[{index}]", self.place.path);
            let place = Place { path, start: value.span().start };
            Self { place, is_element: true, value: value.get_ref(), ..self.clone() }
        };
        array.iter().enumerate().map(element).filter(|element| !element.is_unread()).collect()
    }

    /// The entries of a table whose keys are names. A wrong name does not hide what is wrong with its
    /// entry.
    pub(super) fn named<N: FromStr<Err: Display>>(
        &self,
        key: &str,
        table: &str,
    ) -> Vec<(Option<N>, Self)> {
        let Some(field) = self.field(key) else {
            return Vec::new();
        };
        let header = format!("[{}.NAME]", field.place.path);
        if !field.value.is_table() {
            field.give_up(&field.wrong_type(&format!("{key} as tables, {header}")));
        }
        let named = field.entries(self::table(table)).into_iter().map(|entry| {
            if !entry.value.is_table() {
                let article = if table == "account" { "an" } else { "a" };
                entry
                    .give_up(&entry.wrong_type(&format!("{article} {table} as a table, {header}")));
            }
            (entry.key.parse().map_err(|error| entry.error(error)).ok(), entry)
        });
        named.collect()
    }

    /// The entries of a table with any keys, at the places of the keys.
    pub(super) fn entries(&self, schema: &'static Value) -> Vec<Self> {
        let entry = |(name, value): (&'t Spanned<Cow<'t, str>>, &'t Spanned<DeValue<'t>>)| {
            let key = name.get_ref();
            let place = Place { path: self.path_of(key), start: name.span().start };
            Self { place, key, table: self.key, value: value.get_ref(), schema, ..self.clone() }
        };
        self.value.as_table().into_iter().flatten().map(entry).collect()
    }

    pub(super) fn wrong_type(&self, expected: &str) -> String {
        let found = match self.value {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        format!("is {found}; write {expected}")
    }

    /// What may be written for the value. A command of a machine names it.
    pub(super) fn example(&self) -> String {
        let schema = self.schema;
        let of = |schema: &'static Value| {
            let example = &schema["examples"][0];
            example.as_str().or(example[0].as_str())
        };
        let example = of(schema).or(of(&schema["anyOf"][0])).or(schema["default"].as_str());
        example.unwrap_or_default().replace("build-01", self.table)
    }

    fn path_of(&self, key: &str) -> String {
        let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let is_bare = !key.is_empty() && key.chars().all(bare);
        let key = if is_bare { key.to_owned() } else { format!("{key:?}") };
        let path = &self.place.path;
        if path.is_empty() { key } else { format!("{path}.{key}") }
    }

    /// Reports the keys that a table cannot have, and those that it lacks.
    pub(super) fn check_keys(&self) {
        let table = self.value.as_table().into_iter().flatten();
        for (key, _) in
            table.filter(|(key, _)| keys(self.schema).all(|known| known != *key.get_ref()))
        {
            let key_place = |key: &str, start| Place { path: self.path_of(key), start };
            let place = key_place(key.get_ref(), key.span().start);
            self.problems.give_up(&place, &self.unknown_key(key.get_ref()));
            // The key that was meant cannot be read; it is not absent.
            if let Some(meant) = nearest(key.get_ref(), keys(self.schema))
                && self.field(meant).is_none()
            {
                self.problems.give_up(&key_place(meant, place.start), "");
            }
        }
        for key in required(self.schema).filter(|key| self.field(key).is_none()) {
            self.error(format!("has no {key}; write {key} = {}", self.advice_to_write(key)));
        }
    }

    fn unknown_key(&self, key: &str) -> String {
        let is_methods = std::ptr::eq(self.schema, table("methods"));
        if let Some((_, why)) = WITHOUT_CHOICE.iter().find(|(kind, _)| is_methods && *kind == key) {
            return format!("there is no choice: {why}; remove the key");
        }
        let home = TABLES.iter().find(|(name, _)| keys(table(name)).any(|known| known == key));
        match home {
            Some((_, location)) => format!("unknown key; it belongs {location}"),
            None => format!("unknown key; {}", advice(key, "keys here", keys(self.schema))),
        }
    }

    pub(super) fn advice_to_write(&self, key: &str) -> String {
        if key == "provider" {
            let clouds = Provider::ALL.map(|cloud| format!("\"{cloud}\"")).join(", ");
            return format!("{clouds} or \"{}\"", AccountKind::Ssh);
        }
        let examples = self.schema["properties"][key]["examples"].as_array().into_iter().flatten();
        let examples = examples.map(|example| example.to_string().replace("build-01", self.key));
        let examples = examples.collect::<Vec<_>>().join(" or ");
        match key {
            "host_keys" => format!("{examples}, the host's /etc/ssh/ssh_host_ed25519_key.pub"),
            _ => examples,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::redacted;

    #[test]
    fn what_looks_like_a_token_is_never_repeated() {
        let hetzner = "aB3".repeat(22);
        for token in ["dop_v1_0123456789abcdef", "dor_v1_x", &hetzner] {
            let message = redacted(&format!("url: `{token}` is no url, {token}"));
            assert_eq!(message, "url: `(not repeated)` is no url, (not repeated)");
        }
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        let name = "a".repeat(63);
        for message in [
            "",
            "`do-main/database/9cc10173-e9ea-4176-9dbc-a4cee4c4ff30` ist schön: „ja“",
            &format!("schedules.{name}: unknown key"),
            &format!("schedules.{name}{name}: no name"),
        ] {
            assert_eq!(redacted(message), message);
        }
    }
}
