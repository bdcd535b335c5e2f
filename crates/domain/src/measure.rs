//! Times and sizes as a user writes them: `10s`, `10m`, `4KiB`.

use std::{fmt, str::FromStr, time::Duration};

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::as_text;

/// Not a valid time or size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MeasureError {
    #[error("invalid time `{0}`: write a whole number and ms, s, m or h, such as 10s")]
    NotATime(String),
    #[error("invalid size `{0}`: write a whole number and B or KiB, such as 4KiB")]
    NotASize(String),
    /// Less or more than is allowed.
    #[error("`{text}` is out of range: expected {least} to {most}")]
    OutOfRange {
        /// What was written.
        text: String,
        least: &'static str,
        most: &'static str,
    },
}

/// Parses a whole number with its unit; `units` gives the size of each unit.
fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, each) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*each)
}

const TIMES: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];

/// Writes a value in the largest unit that gives a whole number.
fn write(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let largest = units.iter().rev().find(|(_, each)| value.is_multiple_of(*each));
    let (unit, each) = largest.expect("the first unit is 1");
    f.pad(&format!("{}{unit}", value / each))
}

macro_rules! time {
    ($(#[$doc:meta])* $name:ident: $least:literal ($least_ms:literal) to $most:literal ($most_ms:literal), else $default_ms:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        #[cfg_attr(
            feature = "schema",
            derive(JsonSchema),
            schemars(inline, extend("pattern" = "^[0-9]+(ms|s|m|h)$"))
        )]
        pub struct $name(u64);

        impl $name {
            #[must_use]
            pub fn get(self) -> Duration {
                Duration::from_millis(self.0)
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self($default_ms)
            }
        }

        impl FromStr for $name {
            type Err = MeasureError;

            fn from_str(text: &str) -> Result<Self, MeasureError> {
                let not_a_time = || MeasureError::NotATime(text.to_owned());
                let milliseconds = parse(text, &TIMES).ok_or_else(not_a_time)?;
                if ($least_ms..=$most_ms).contains(&milliseconds) {
                    return Ok(Self(milliseconds));
                }
                Err(MeasureError::OutOfRange {
                    text: text.to_owned(),
                    least: $least,
                    most: $most,
                })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write(f, self.0, &TIMES)
            }
        }

        as_text!($name, MeasureError);
    };
}

time! {
    /// How long it may take to establish a connection.
    ConnectTimeout: "100ms" (100) to "30s" (30_000), else 10_000
}
time! {
    /// How long a command may run.
    CommandTimeout: "100ms" (100) to "60s" (60_000), else 60_000
}
time! {
    /// How long a machine may take to start or to stop.
    Deadline: "30s" (30_000) to "2h" (7_200_000), else 600_000
}

time! {
    /// How long past a stop a tag may keep a resource running.
    MaxExtend: "0s" (0) to "168h" (604_800_000), else 43_200_000
}

time! {
    /// How long before a stop it is announced.
    NoticePeriod: "5m" (300_000) to "4h" (14_400_000), else 900_000
}

time! {
    /// How long a member of a group waits for what it follows.
    Wait: "1m" (60_000) to "6h" (21_600_000), else 1_800_000
}

/// Maximum amount of a command's output to keep, in bytes: standard output and error together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(JsonSchema),
    schemars(inline, extend("pattern" = "^[0-9]+(B|KiB)$"))
)]
pub struct OutputLimit(u16);

const SIZES: [(&str, u64); 2] = [("B", 1), ("KiB", 1024)];

impl OutputLimit {
    #[must_use]
    pub fn bytes(self) -> usize {
        // Stored minus one, so that 64 KiB fits and zero cannot be a limit.
        usize::from(self.0) + 1
    }
}

impl Default for OutputLimit {
    fn default() -> Self {
        Self(4 * 1024 - 1)
    }
}

impl FromStr for OutputLimit {
    type Err = MeasureError;

    fn from_str(text: &str) -> Result<Self, MeasureError> {
        let not_a_size = || MeasureError::NotASize(text.to_owned());
        let bytes = parse(text, &SIZES).ok_or_else(not_a_size)?;
        let less_one = bytes.checked_sub(1).map(u16::try_from);
        less_one.and_then(Result::ok).map(Self).ok_or_else(|| MeasureError::OutOfRange {
            text: text.to_owned(),
            least: "1B",
            most: "64KiB",
        })
    }
}

impl fmt::Display for OutputLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, u64::from(self.0) + 1, &SIZES)
    }
}

as_text!(OutputLimit, MeasureError);
