//! Reads the user's TOML file into a [`Configuration`]. All problems are reported at once, each
//! with its line and what to write instead.

mod accounts;
mod document;
mod groups;
mod holidays;
mod notify;
mod policy;
#[cfg(test)]
pub(crate) mod random;
mod reader;
mod resources;
mod schedules;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod tests;
mod write;
pub(crate) mod written;

use std::{fmt, io, path::Path};

use domain::configuration::{Configuration, Pattern, Settings};
use environment::file::{self, LONGEST_TEXT};
use jiff::Timestamp;
use report::count;
use toml::de::{DeTable, DeValue};

use accounts::Accounts;
use document::{Field, Place, Problems};
use schedules::Places;

pub(crate) use schedules::in_zone;
pub use write::write;
pub(crate) use write::written;

/// The result of reading a file.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The configuration, as generation 0.
    pub configuration: Configuration,
    /// Valid settings that look like mistakes, whatever the date.
    pub warnings: Vec<Problem>,
    places: Places,
}

impl Parsed {
    /// Returns all valid settings that look like mistakes. Only the years after `now` count.
    #[must_use]
    pub fn warnings_at(&self, now: Timestamp) -> Vec<Problem> {
        let mut warnings = self.advice(now);
        warnings.extend(self.warnings.iter().cloned());
        warnings.sort_by_key(|problem| problem.line);
        // Schedules may share a place, such as the default time zone.
        warnings.dedup();
        warnings
    }

    /// Returns what looks like a mistake in the times of schedules.
    pub(crate) fn advice(&self, now: Timestamp) -> Vec<Problem> {
        let schedules = self.configuration.schedules.iter();
        let advice = schedules.flat_map(|(name, rule)| {
            rule.schedule.advice(now).into_iter().filter_map(|found| {
                let place = self.places.get(&(name.clone(), found.place))?;
                let message = format!("{}: {}", place.message, found.message);
                Some(Problem { message, ..place.clone() })
            })
        });
        advice.collect()
    }
}

/// Something in a file that is wrong, or that looks like a mistake.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, schemars::JsonSchema)]
pub struct Problem {
    /// The file, as it was named.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The key's path, what is wrong, and what to write instead.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read {file} (name another file with --config)")]
    Unreadable {
        /// The file, as it was named.
        file: String,
        /// The I/O error.
        #[source]
        source: io::Error,
    },
    /// The file can be read but is not a valid configuration.
    #[error("{file} has {}", count(problems.len(), "problem"))]
    Invalid {
        /// The file, as it was named.
        file: String,
        /// All of its problems, by line.
        problems: Vec<Problem>,
    },
}

/// Whether listed resources need their account in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListedResources {
    /// They do.
    NeedAccounts,
    /// They do not if the file has no accounts at all, so that schedules can be checked alone.
    MayStandAlone,
}

pub fn load(path: &Path, listed: ListedResources) -> Result<Parsed, LoadError> {
    let file = path.display().to_string();
    match file::read(path, LONGEST_TEXT).and_then(text) {
        Ok(text) => {
            read(&text, &file, listed).map_err(|problems| LoadError::Invalid { file, problems })
        }
        Err(source) => Err(LoadError::Unreadable { file, source }),
    }
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let whole = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + whole.split(|byte| *byte == b'\n').skip(1).count();
        let message = format!("line {line} is not UTF-8 text: is this the right file?");
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

/// Parses a configuration; `file_name` appears in messages. Returns all errors at once.
pub fn parse(text: &str, file_name: &str) -> Result<Parsed, Vec<Problem>> {
    read(text, file_name, ListedResources::NeedAccounts)
}

fn read(text: &str, file_name: &str, listed: ListedResources) -> Result<Parsed, Vec<Problem>> {
    let problems = Problems::new(text, file_name);
    let document = match DeTable::parse(text) {
        Ok(document) => DeValue::Table(document.into_inner()),
        Err(error) => return Err(vec![not_toml(text, &error, &problems)]),
    };
    let root = Field::root(&document, &problems);
    let accounts = accounts::read(&root);
    let mut settings = settings(&root, &accounts);
    let (schedules, places) = schedules::read(&root, &accounts, listed);
    settings.notify = notify::read(&root);
    settings.groups = groups::read(&root);
    warn_if_idle(&root);
    let warnings = problems.into_result()?;
    let configuration = Configuration {
        settings,
        accounts: accounts.read,
        schedules: schedules.into(),
        ..Configuration::default()
    };
    Ok(Parsed { configuration, warnings, places })
}

/// Describes why a text is not TOML. The error's own `Display` would repeat the line, which may
/// contain a token.
fn not_toml(text: &str, error: &toml::de::Error, problems: &Problems) -> Problem {
    let span = error.span().unwrap_or(text.len()..text.len());
    let key = match (error.message(), text.get(span.clone())) {
        ("duplicate key", Some(key)) => format!(" `{key}`"),
        _ => String::new(),
    };
    let root = Place { path: String::new(), start: span.start };
    problems.problem(span.start, root.with(format!("not TOML: {}{key}", error.message())))
}

/// Warns about a file without accounts or without schedules: it is valid but does nothing.
fn warn_if_idle(root: &Field) {
    for (key, what) in [("accounts", "[accounts.NAME]"), ("schedules", "[schedules.NAME]")] {
        if root.field(key).is_none() {
            root.warning(format!("there are no {key} ({what}), so nothing will be done"));
        }
    }
}

/// Reads the service-wide settings; what is invalid has its default.
fn settings(root: &Field, accounts: &Accounts) -> Settings {
    for (field, pattern) in root.list::<Pattern>("protect") {
        let text = pattern.to_string();
        let Some((account, _)) = text.split_once('/').filter(|_| !text.contains(':')) else {
            continue;
        };
        if account.contains(['*', '?']) || accounts.declared.contains_key(account) {
            continue;
        }
        if let Some(now) = accounts.former.get(account) {
            let instead = text.replacen(account, now, 1);
            field.error(format!(
                "account `{account}` is called `{now}` here, so this protects nothing; write \
                 {instead}"
            ));
        } else {
            field.warning(format!("there is no account `{account}`, so this protects nothing"));
        }
    }
    root.read().unwrap_or_default()
}
