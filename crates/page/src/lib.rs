//! What there is to look at: one HTML document, its pictures, and calendars. Pure, with no I/O.

mod attention;
mod buttons;
pub mod calendar;
mod facts;
mod html;
mod markdown;
mod money;
mod picture;
mod schedules;
mod text;

use std::collections::BTreeMap;

use domain::{
    AccountName, account::AccountState, activity::Activity, decision::InForce, record::Record,
};
use jiff::{Timestamp, tz::TimeZone};
use report::past::Past;

use facts::Facts;

/// The policy that the document needs, for a server to send with it: nothing is loaded, and no
/// script runs.
pub const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// For whom something is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Those who run Offhours: everything.
    Operators,
    /// One of them, who acts by buttons.
    Acting,
    /// Anybody: nothing that identifies a person or a resource, and no reasons.
    Public,
}

/// What is shown.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    pub in_force: &'a InForce,
    /// Whose resources the records are; `None` for those of all owners.
    pub owner: Option<&'a str>,
    pub records: &'a [Record],
    /// What history shows, and what was saved in the time range that is shown.
    pub past: &'a Past,
    /// What persons changed, newest first; for an owner, of these resources and their schedules.
    pub activity: &'a [Activity],
    pub accounts: &'a BTreeMap<AccountName, AccountState>,
    /// The zone of the times.
    pub zone: &'a TimeZone,
    pub now: Timestamp,
}

/// Renders one self-contained HTML document.
#[must_use]
pub fn render(input: &Input<'_>, audience: Audience) -> String {
    html::document(&Facts::of(*input, audience)).into_string()
}

/// Renders a summary for a mail or a pull request.
#[must_use]
pub fn markdown(input: &Input<'_>, audience: Audience) -> String {
    markdown::document(&Facts::of(*input, audience))
}

/// Says how many resources are off, and what was saved: the number at the head of the document.
#[must_use]
pub fn headline(input: &Input<'_>) -> [String; 2] {
    let facts = Facts::of(*input, Audience::Operators);
    [facts.off(), facts.saved()]
}

/// Renders the question of a button: whether to run its command.
#[must_use]
pub fn question(command: &str) -> String {
    html::short("Run this command?", &buttons::question(command)).into_string()
}

/// Renders why something that was asked for was not done.
#[must_use]
pub fn failure(why: &str) -> String {
    html::short("That failed.", &buttons::failure(why)).into_string()
}

#[cfg(test)]
mod tests;
