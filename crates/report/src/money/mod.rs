//! Money: what resources cost, what stopping them could save, and what it saved; exact, in the
//! currency of each account's bill. What is unknown has a reason, and is never counted as zero.

mod bill;
mod hibernation;
mod methods;
mod month;
mod past;
mod saved;
mod savings;

use std::collections::BTreeMap;

use domain::money::{Currency, Money};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

pub use hibernation::hibernated_month;
pub use methods::{Candidate, MethodSaving, saved_on_smaller_plan};
pub use month::{Month, TimesOff};
pub use saved::{Grouping, SavedCollector, SavedReport, SavedRow, hours_in_words};
pub use savings::{Collector, Report, Row};

/// What all resources with one currency cost, and what is saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Total {
    /// The currency.
    pub currency: &'static str,
    /// The sum of all known costs, without any stop; null if none is known.
    #[serde(serialize_with = "known_cents")]
    #[schemars(with = "Option<f64>")]
    pub full: Option<Money>,
    /// The sum of all known savings; null if none is known.
    #[serde(serialize_with = "known_cents")]
    #[schemars(with = "Option<f64>")]
    pub saved: Option<Money>,
    /// The part of `saved` that depends on DigitalOcean accepting smaller plans for databases.
    #[serde(serialize_with = "cents")]
    #[schemars(with = "f64")]
    pub uncertain: Money,
    /// Number of resources whose saving is known.
    pub known: usize,
}

/// The totals in each currency, and how many resources they leave out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Totals {
    /// The totals, by currency.
    pub totals: Vec<Total>,
    /// Number of resources whose saving is known.
    pub known: usize,
    /// Number of resources that may be stopped.
    pub of: usize,
}

/// Totals, as they are added up.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    by_currency: BTreeMap<Currency, Total>,
    of: usize,
}

impl Sums {
    /// Adds one resource, whose saving is known completely, and depends on nothing, or not.
    fn add(
        &mut self,
        (full, saved): (Option<Money>, Option<Money>),
        (is_known, is_uncertain): (bool, bool),
    ) {
        self.of += 1;
        let Some(currency) = full.or(saved).map(Money::currency) else {
            return;
        };
        let total = self.by_currency.entry(currency).or_insert(Total {
            currency: currency.code(),
            full: None,
            saved: None,
            uncertain: Money::zero(currency),
            known: 0,
        });
        total.full = added(total.full, full);
        total.saved = added(total.saved, saved);
        let uncertain = saved.filter(|_| is_uncertain);
        total.uncertain = added(Some(total.uncertain), uncertain).unwrap_or(total.uncertain);
        total.known += usize::from(is_known);
    }

    fn totals(self) -> Totals {
        let totals: Vec<_> = self.by_currency.into_values().collect();
        Totals { known: totals.iter().map(|total| total.known).sum(), totals, of: self.of }
    }
}

/// Adds what is known of two amounts. `None` if neither is known, or if they cannot be added.
fn added(sum: Option<Money>, amount: Option<Money>) -> Option<Money> {
    match (sum, amount) {
        (Some(sum), Some(amount)) => sum.plus(amount),
        (known, None) | (None, known) => known,
    }
}

/// Returns an amount as a number with two digits, for programs.
#[must_use]
pub fn amount(money: Money) -> f64 {
    money.to_cents().parse().unwrap_or_default()
}

/// Writes an amount as a number with two digits.
fn cents<S: Serializer>(money: &Money, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(amount(*money))
}

/// Writes an amount as a number with two digits; null if it is unknown.
///
/// # Errors
/// Those of the serializer.
pub fn known_cents<S: Serializer>(money: &Option<Money>, serializer: S) -> Result<S::Ok, S::Error> {
    money.map(amount).serialize(serializer)
}

/// Converts seconds to hours, to two digits.
#[must_use]
pub fn hours(seconds: u64) -> f64 {
    let hundredths = (seconds.saturating_mul(100) + 1800) / 3600;
    format!("{}.{:02}", hundredths / 100, hundredths % 100).parse().unwrap_or_default()
}

#[cfg(test)]
mod tests;
