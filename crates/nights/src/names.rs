//! The other names that accounts have for some time.
//!
//! A night, the clouds and the observer know an account by its first name alone: the service's other
//! name is put in its place on the way out, and taken back on the way in.

use domain::AccountName;

const OTHER: &str = "alias-of-";

/// Returns the other name of an account.
pub(crate) fn other(name: &AccountName) -> AccountName {
    format!("{OTHER}{name}").parse().expect("an account's name")
}

/// Gives all accounts in a text their first names.
pub(crate) fn first(text: &str) -> String {
    text.replace(OTHER, "")
}
