//! Amounts of money, exact to a billionth: hourly prices have five or more decimal places, and are
//! multiplied by the hours of a month.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The number of nanos in one unit of a currency.
const ONE: i64 = 1_000_000_000;

/// The number of decimal places of a price that are kept.
const DIGITS: usize = 9;

const SECONDS_PER_HOUR: i128 = 3600;

/// The currency of a provider's prices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum Currency {
    /// Euro.
    Eur,
    /// US dollar.
    Usd,
}

impl Currency {
    /// Returns its ISO 4217 code.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Eur => "EUR",
            Self::Usd => "USD",
        }
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.code())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown currency `{0}`: expected EUR or USD")]
pub struct UnknownCurrency(pub String);

impl FromStr for Currency {
    type Err = UnknownCurrency;

    fn from_str(text: &str) -> Result<Self, UnknownCurrency> {
        [Self::Eur, Self::Usd]
            .into_iter()
            .find(|currency| currency.code() == text)
            .ok_or_else(|| UnknownCurrency(text.to_owned()))
    }
}

/// An amount of money in a currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Money {
    /// The currency, by its ISO 4217 code.
    currency: Currency,
    /// The amount in billionths of the currency's unit.
    nanos: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid amount of money `{0}`: expected a decimal number")]
pub struct NotAnAmount(pub String);

impl Money {
    #[must_use]
    pub fn zero(currency: Currency) -> Self {
        Self { currency, nanos: 0 }
    }

    /// Parses a decimal amount, such as `0.0088000000`. Digits after the ninth decimal place are
    /// cut off.
    pub fn parse(text: &str, currency: Currency) -> Result<Self, NotAnAmount> {
        let nanos = nanos(text).ok_or_else(|| NotAnAmount(text.to_owned()))?;
        Ok(Self { currency, nanos })
    }

    #[must_use]
    pub fn currency(self) -> Currency {
        self.currency
    }

    /// Returns the same number in another currency, for prices whose currency is given elsewhere.
    #[must_use]
    pub fn with_currency(self, currency: Currency) -> Self {
        Self { currency, ..self }
    }

    /// Reports whether it is less than zero.
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Returns the amount without its sign.
    #[must_use]
    pub fn magnitude(self) -> Self {
        Self { nanos: self.nanos.saturating_abs(), ..self }
    }

    #[must_use]
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Compares two amounts. Returns `None` if their currencies differ.
    #[must_use]
    pub fn compare(self, other: Self) -> Option<std::cmp::Ordering> {
        (self.currency == other.currency).then(|| self.nanos.cmp(&other.nanos))
    }

    /// Adds two amounts. Returns `None` if their currencies differ.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        (self.currency == other.currency)
            .then(|| Self { nanos: self.nanos.saturating_add(other.nanos), ..self })
    }

    /// Subtracts another amount. Returns `None` if their currencies differ.
    #[must_use]
    pub fn minus(self, other: Self) -> Option<Self> {
        (self.currency == other.currency)
            .then(|| Self { nanos: self.nanos.saturating_sub(other.nanos), ..self })
    }

    /// Returns the amount multiplied by a count.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        Self { nanos: self.nanos.saturating_mul(i64::from(count)), ..self }
    }

    /// Returns what an hourly price comes to over so many seconds, to the nearest billionth.
    #[must_use]
    pub fn for_seconds(self, seconds: u64) -> Self {
        self.share(seconds, SECONDS_PER_HOUR)
    }

    /// Returns `part` / `whole` of the amount, to the nearest billionth; zero if `whole` is not
    /// positive.
    #[must_use]
    pub fn share(self, part: u64, whole: i128) -> Self {
        if whole <= 0 {
            return Self::zero(self.currency);
        }
        let all = i128::from(self.nanos) * i128::from(part);
        let rounded = (all + all.signum() * whole / 2) / whole;
        Self { nanos: i64::try_from(rounded).unwrap_or(i64::MAX), ..self }
    }

    /// Returns the exact amount as decimal text, such as `0.0312`.
    #[must_use]
    pub fn exact(self) -> String {
        let sign = if self.nanos < 0 { "-" } else { "" };
        let (whole, part) =
            (self.nanos.unsigned_abs() / 1_000_000_000, self.nanos.unsigned_abs() % 1_000_000_000);
        let text = format!("{sign}{whole}.{part:09}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }

    /// Returns the amount to the nearest cent, with two decimal places: `-4.20`.
    #[must_use]
    pub fn to_cents(self) -> String {
        let per_cent = i128::from(ONE / 100);
        let nanos = i128::from(self.nanos);
        let cents = (nanos + nanos.signum() * per_cent / 2) / per_cent;
        let sign = if cents < 0 { "-" } else { "" };
        let cents = cents.unsigned_abs();
        format!("{sign}{}.{:02}", cents / 100, cents % 100)
    }
}

/// Written as `4.20 EUR`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} {}", self.to_cents(), self.currency))
    }
}

fn nanos(text: &str) -> Option<i64> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(part) {
        return None;
    }
    let part = &part[..part.len().min(DIGITS)];
    let whole: i64 = whole.parse().ok()?;
    let part: i64 = format!("{part:0<DIGITS$}").parse().ok()?;
    let nanos = whole.checked_mul(ONE)?.checked_add(part)?;
    Some(if is_negative { -nanos } else { nanos })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eur(text: &str) -> Money {
        Money::parse(text, Currency::Eur).unwrap()
    }

    #[test]
    fn amounts_are_read_as_the_providers_write_them() {
        for (text, expected) in [
            ("0.0088000000", Some(8_800_000)),
            ("4.3900000000000000", Some(4_390_000_000)),
            ("63", Some(63_000_000_000)),
            ("0.1234567891", Some(123_456_789)),
            ("-1.5", Some(-1_500_000_000)),
            ("", None),
            (".5", None),
            ("1.", None),
            ("1e3", None),
            ("1,5", None),
            ("+1", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(nanos(text), expected, "{text}");
        }
    }

    #[test]
    fn an_hourly_price_is_exact_over_a_month() {
        let month = 2_629_800;
        assert_eq!(eur("0.0312").for_seconds(month), eur("22.7916"));
        assert_eq!(eur("0.00893").for_seconds(1), eur("0.000002481"));
        assert_eq!(eur("10").share(1, 4), eur("2.5"));
        assert_eq!(eur("10").share(1, 0), Money::zero(Currency::Eur));
    }

    #[test]
    fn amounts_are_shown_to_the_nearest_cent() {
        for (text, expected) in [
            ("0.005", "0.01"),
            ("0.0049", "0.00"),
            ("-0.005", "-0.01"),
            ("-0.004", "0.00"),
            ("12.345", "12.35"),
            ("1.999", "2.00"),
        ] {
            assert_eq!(eur(text).to_cents(), expected, "{text}");
        }
        assert_eq!(eur("4.2").to_string(), "4.20 EUR");
        for exact in ["0.0312", "-1.5", "63", "0.000000001", "0"] {
            assert_eq!(eur(exact).exact(), exact);
        }
    }

    #[test]
    fn two_currencies_are_neither_added_nor_compared() {
        let usd = Money::parse("1", Currency::Usd).unwrap();
        assert_eq!(eur("1").plus(usd), None);
        assert_eq!(eur("1").minus(usd), None);
        assert_eq!(eur("1").compare(usd), None);
        assert_eq!(eur("1").plus(eur("2")), Some(eur("3")));
        assert_eq!(eur("1").minus(eur("2")), Some(eur("-1")));
        assert_eq!(eur("0.5").times(3), eur("1.5"));
        assert_eq!("CHF".parse::<Currency>().unwrap_err().0, "CHF");
        assert_eq!("EUR".parse(), Ok(Currency::Eur));
    }
}
