//! Exact amounts of money.

use std::{
    fmt,
    iter::Sum,
    ops::{Add, AddAssign},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

/// An amount in some currency, in units of 10⁻¹⁰: the last digit that Hetzner's API writes. It is
/// read and written as decimal text, so that no digit passes through a float.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(try_from = "String", into = "String")]
pub struct Amount(u128);

/// How many decimals an amount has.
const DECIMALS: usize = 10;
const ONE: u128 = 10_u128.pow(10);

/// The text is not a valid amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid amount `{0}`: expected a decimal number, such as 0.0088, with at most 10 decimals"
)]
pub struct InvalidAmountError(String);

impl Amount {
    pub const ZERO: Self = Self(0);
    /// A hundredth of the currency's unit.
    pub(crate) const CENT: Self = Self(ONE / 100);

    /// The price of `quantity` if `per` cost this amount, rounded half up to the last decimal.
    ///
    /// # Panics
    ///
    /// Panics if `per` is 0.
    #[must_use]
    pub fn of(self, quantity: u64, per: u64) -> Self {
        let (quantity, per) = (u128::from(quantity), u128::from(per));
        Self((self.0 * quantity + per / 2) / per)
    }

    /// The amount minus `other`, or zero if `other` is greater.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The amount plus a tax of `percent`.
    pub(crate) fn with_tax(self, percent: Self) -> Self {
        Self(self.0 + (self.0 * percent.0 + 50 * ONE) / (100 * ONE))
    }

    /// The amount as Hetzner writes it, with all decimals.
    pub(crate) fn in_full(self) -> String {
        format!("{}.{:0DECIMALS$}", self.0 / ONE, self.0 % ONE)
    }

    /// The nearest float, for JSON numbers and for display.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        // Parsed from the decimal text: a quotient of floats might not be the nearest.
        self.in_full().parse().unwrap_or_default()
    }
}

impl fmt::Display for Amount {
    /// Writes two decimals, or as many more as needed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let full = self.in_full();
        let least = full.len() - DECIMALS + 2;
        f.write_str(&full[..full.trim_end_matches('0').len().max(least)])
    }
}

impl FromStr for Amount {
    type Err = InvalidAmountError;

    fn from_str(text: &str) -> Result<Self, InvalidAmountError> {
        let invalid = || InvalidAmountError(text.to_owned());
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let fits = !whole.is_empty() && whole.len() <= DECIMALS && decimals.len() <= DECIMALS;
        if !fits || !is_number(whole) || !is_number(decimals) || text.ends_with('.') {
            return Err(invalid());
        }
        let digits = format!("{whole}{decimals:0<DECIMALS$}");
        digits.parse().map(Self).map_err(|_| invalid())
    }
}

impl TryFrom<String> for Amount {
    type Error = InvalidAmountError;

    fn try_from(text: String) -> Result<Self, InvalidAmountError> {
        text.parse()
    }
}

impl From<Amount> for String {
    fn from(amount: Amount) -> Self {
        amount.to_string()
    }
}

impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(text: &str) -> Amount {
        text.parse().unwrap()
    }

    #[test]
    fn an_amount_is_written_as_it_was_read_with_two_decimals_at_least() {
        for (text, written) in [
            ("6", "6.00"),
            ("0.5", "0.50"),
            ("0.00893", "0.00893"),
            ("1440.00", "1440.00"),
            ("0.0000000001", "0.0000000001"),
        ] {
            assert_eq!(amount(text).to_string(), written);
        }
        assert_eq!(amount("3.79").in_full(), "3.7900000000");
    }

    #[test]
    fn what_is_not_a_plain_decimal_number_is_refused() {
        for text in ["", ".5", "1.", "-1", "1e3", "0.00000000001", "1,5", "12345678901"] {
            text.parse::<Amount>().unwrap_err();
        }
    }

    #[test]
    fn parts_are_rounded_half_up_at_the_last_decimal() {
        // 0.00893 / 3600 = 0.00000248055…
        assert_eq!(amount("0.00893").of(1, 3600), amount("0.0000024806"));
        assert_eq!(amount("0.0000000001").of(1, 2), amount("0.0000000001"));
        assert_eq!(amount("0.0000000001").of(1, 3), Amount::ZERO);
        assert_eq!(amount("3.79").with_tax(amount("19")), amount("4.5101"));
    }
}
