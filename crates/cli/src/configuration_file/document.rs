//! A TOML document, read key by key so that all problems are found in one pass.

use std::{
    collections::HashSet,
    fmt::{Display, Write as _},
    ops::{Range, RangeInclusive},
    path::Path,
    str::FromStr,
};

use toml::de::{DeTable, DeValue};

use super::{Problem, TABLES};
use crate::resolve::nearest::advice;

/// A position in the file: the path of the key, and its byte range in the text.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) path: String,
    pub(super) span: Range<usize>,
}

/// The problems found so far.
pub(super) struct Problems<'f> {
    file: &'f str,
    /// The offset of each line's first byte.
    lines: Vec<usize>,
    errors: Vec<Problem>,
    /// The errors as a set, so that each is reported only once.
    said: HashSet<Problem>,
    warnings: Vec<Problem>,
}

impl<'f> Problems<'f> {
    pub(super) fn new(text: &str, file: &'f str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(newlines.map(|(offset, _)| offset + 1));
        Self {
            file,
            lines: lines.collect(),
            errors: Vec::new(),
            said: HashSet::new(),
            warnings: Vec::new(),
        }
    }

    /// The folder of the file.
    pub(super) fn folder(&self) -> &'f Path {
        Path::new(self.file).parent().unwrap_or(Path::new(""))
    }

    /// The line of a place, counted from 1.
    pub(super) fn line(&self, span: &Range<usize>) -> usize {
        self.lines.partition_point(|&start| start <= span.start)
    }

    pub(super) fn error(&mut self, place: &Place, message: impl Display) {
        let problem = self.problem(place, message);
        if self.said.insert(problem.clone()) {
            self.errors.push(problem);
        }
    }

    pub(super) fn warning(&mut self, place: &Place, message: impl Display) {
        let problem = self.problem(place, message);
        self.warnings.push(problem);
    }

    /// A place as a problem without words for what is wrong there.
    pub(super) fn at(&self, place: &Place) -> Problem {
        Problem {
            file: self.file.to_owned(),
            line: self.line(&place.span),
            message: place.path.clone(),
        }
    }

    pub(super) fn problem(&self, place: &Place, message: impl Display) -> Problem {
        let separator = if place.path.is_empty() { "" } else { ": " };
        Problem {
            file: self.file.to_owned(),
            line: self.line(&place.span),
            message: redacted(&format!("{}{separator}{message}", place.path)),
        }
    }

    pub(super) fn errors(&self) -> usize {
        self.errors.len()
    }

    /// The warnings if there are no errors, otherwise the errors; both in file order.
    pub(super) fn into_result(mut self) -> Result<Vec<Problem>, Vec<Problem>> {
        self.errors.sort_by_key(|problem| problem.line);
        self.warnings.sort_by_key(|problem| problem.line);
        if self.errors.is_empty() { Ok(self.warnings) } else { Err(self.errors) }
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

/// The keys that a table may have, and where such a table is written.
pub(super) struct Keys {
    pub(super) known: Vec<String>,
    pub(super) location: &'static str,
}

impl Keys {
    fn has(&self, name: &str) -> bool {
        self.known.iter().any(|key| key == name)
    }
}

/// A table and its place in the file.
#[derive(Clone)]
pub(super) struct Table<'t> {
    pub(super) place: Place,
    table: &'t DeTable<'t>,
}

/// A value and its place in the file.
#[derive(Clone)]
pub(super) struct Field<'t> {
    pub(super) place: Place,
    value: &'t DeValue<'t>,
}

/// One entry of a table whose keys are names.
pub(super) struct Entry<'t> {
    pub(super) name: &'t str,
    /// The place of the name itself, with the entry's path.
    pub(super) place: Place,
    pub(super) field: Field<'t>,
}

impl<'t> Table<'t> {
    pub(super) fn root(table: &'t DeTable<'t>) -> Self {
        let place = Place { path: String::new(), span: 0..0 };
        Self { place, table }
    }

    /// The value of a key.
    pub(super) fn field(&self, key: &str) -> Option<Field<'t>> {
        let value = self.table.get(key)?;
        Some(Field {
            place: Place { path: self.path_of(key), span: value.span() },
            value: value.get_ref(),
        })
    }

    /// The value of a required key. If it is missing, the error is reported at `place`.
    pub(super) fn required(
        &self,
        key: &str,
        (place, advice): (&Place, &str),
        problems: &mut Problems,
    ) -> Option<Field<'t>> {
        let field = self.field(key);
        if field.is_none() {
            problems.error(place, format!("has no {key}; {advice}"));
        }
        field
    }

    /// All entries, by name.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'t>> {
        self.table.iter().map(|(key, value)| {
            let path = self.path_of(key.get_ref());
            Entry {
                name: key.get_ref(),
                place: Place { path: path.clone(), span: key.span() },
                field: Field { place: Place { path, span: value.span() }, value: value.get_ref() },
            }
        })
    }

    /// Refuses keys that are not among `keys`. If a key belongs to another table, the error says
    /// which.
    pub(super) fn refuse_unknown(&self, keys: &Keys, problems: &mut Problems) {
        for entry in self.unknown(keys) {
            entry.refuse(keys, problems);
        }
    }

    /// The entries whose keys are not among `keys`.
    pub(super) fn unknown(&self, keys: &Keys) -> impl Iterator<Item = Entry<'t>> {
        self.entries().filter(|entry| !keys.has(entry.name))
    }

    fn path_of(&self, key: &str) -> String {
        let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let mut path = self.place.path.clone();
        if !path.is_empty() {
            path.push('.');
        }
        if !key.is_empty() && key.chars().all(bare) {
            path += key;
        } else {
            // Writing to a string cannot fail.
            write!(path, "{key:?}").ok();
        }
        path
    }
}

impl Entry<'_> {
    /// Refuses a key that is not among `keys`. If it belongs to another table, the error says
    /// which.
    pub(super) fn refuse(&self, keys: &Keys, problems: &mut Problems) {
        let name = self.name;
        let advice = match TABLES.all().into_iter().find(|other| other.has(name)) {
            Some(home) => format!("it belongs {}", home.location),
            None => advice(name, "keys here", keys.known.iter().map(String::as_str)),
        };
        problems.error(&self.place, format!("unknown key; {advice}"));
    }
}

impl<'t> Field<'t> {
    /// The raw value.
    pub(super) fn value(&self) -> &'t DeValue<'t> {
        self.value
    }

    /// Reports that the value has the wrong type; `expected` says what to write instead.
    pub(super) fn report_wrong_type(&self, expected: &str, problems: &mut Problems) {
        let found = match self.value {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        problems.error(&self.place, format!("is {found}; write {expected}"));
    }

    /// The value of a key, if this is a table.
    pub(super) fn key(&self, key: &str) -> Option<Self> {
        let table = Table { place: self.place.clone(), table: self.value.as_table()? };
        table.field(key)
    }

    /// The value as a table. Anything else is reported.
    pub(super) fn table(&self, expected: &str, problems: &mut Problems) -> Option<Table<'t>> {
        if let Some(table) = self.value.as_table() {
            return Some(Table { place: self.place.clone(), table });
        }
        self.report_wrong_type(expected, problems);
        None
    }

    /// The value as a string. Anything else is reported.
    pub(super) fn text(&self, example: &str, problems: &mut Problems) -> Option<&'t str> {
        let text = self.value.as_str();
        if text.is_none() {
            self.report_wrong_type(&format!("a string, such as \"{example}\""), problems);
        }
        text
    }

    /// The value as a string, parsed. The parse error must say what to write instead.
    pub(super) fn parsed<T>(&self, example: &str, problems: &mut Problems) -> Option<T>
    where
        T: FromStr<Err: Display>,
    {
        let parsed = self.text(example, problems)?.parse();
        parsed.map_err(|error| problems.error(&self.place, error)).ok()
    }

    /// The value as one of several words.
    pub(super) fn choice<T: Copy>(
        &self,
        choices: &[(&str, T)],
        problems: &mut Problems,
    ) -> Option<T> {
        let words = choices.iter().map(|(word, _)| *word);
        let text = self.text(choices.first()?.0, problems)?;
        let found = choices.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let advice = advice(text, "choices", words);
            problems.error(&self.place, format!("`{text}` is not known; {advice}"));
        }
        found.map(|(_, choice)| *choice)
    }

    /// The value as a boolean.
    pub(super) fn flag(&self, problems: &mut Problems) -> Option<bool> {
        let flag = self.value.as_bool();
        if flag.is_none() {
            self.report_wrong_type("true or false, without quotes", problems);
        }
        flag
    }

    /// The value as a whole number within bounds.
    pub(super) fn count(
        &self,
        bounds: RangeInclusive<u32>,
        problems: &mut Problems,
    ) -> Option<u32> {
        let expected = match (bounds.start(), bounds.end()) {
            (least, &u32::MAX) => format!("a whole number, {least} or more"),
            (least, most) => format!("a whole number from {least} to {most}"),
        };
        let Some(integer) = self.value.as_integer() else {
            self.report_wrong_type(&expected, problems);
            return None;
        };
        let number = u32::from_str_radix(integer.as_str(), integer.radix()).ok();
        let number = number.filter(|number| bounds.contains(number));
        if number.is_none() {
            let message = format!("{integer} is out of bounds; write {expected}");
            problems.error(&self.place, message);
        }
        number
    }

    /// The elements of a list. A single value is treated as a list of one.
    pub(super) fn elements(&self) -> Vec<Self> {
        let Some(array) = self.value.as_array() else {
            return vec![self.clone()];
        };
        let element = |(index, value): (usize, &'t toml::Spanned<DeValue<'t>>)| Self {
            place: Place { path: format!("{}[{index}]", self.place.path), span: value.span() },
            value: value.get_ref(),
        };
        array.iter().enumerate().map(element).collect()
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
