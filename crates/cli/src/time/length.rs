//! Durations as people write them, such as `90m`, `7d` or `1d12h`: one grammar for all options.

use std::str::FromStr;

use jiff::{SignedDuration, Span, SpanRelativeTo};

/// Anything longer is taken for a typo.
const AT_MOST: SignedDuration = SignedDuration::from_hours(24 * 3653);

/// A duration: more than zero, and at most ten years. A day always has 24 hours and a week seven
/// days, whatever the clocks do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length(SignedDuration);

impl Length {
    #[must_use]
    pub fn duration(self) -> SignedDuration {
        self.0
    }
}

/// Not a valid duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "write a length of time such as 90m, 36h, 7d or 1d12h, of ten years at most; months and years \
     differ in length, so count days"
)]
pub struct NotALength;

impl FromStr for Length {
    type Err = NotALength;

    fn from_str(text: &str) -> Result<Self, NotALength> {
        let span: Span = text.trim().parse().map_err(|_| NotALength)?;
        // Months and years have no fixed length, so they are refused here.
        let length = span.to_duration(SpanRelativeTo::days_are_24_hours());
        let length = length.ok().filter(|length| length.is_positive() && *length <= AT_MOST);
        length.map(Self).ok_or(NotALength)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_24_hours_and_weeks_seven_days() {
        for (text, hours) in [
            ("90m", 1.5),
            ("36h", 36.0),
            ("7d", 168.0),
            ("2w", 336.0),
            ("1d12h", 36.0),
            ("P7D", 168.0),
            ("1 day 2 hours", 26.0),
            ("1h30m", 1.5),
        ] {
            let length: Length = text.parse().expect(text);
            let seconds = length.duration().as_secs_f64();
            assert!((seconds - hours * 3600.0).abs() < f64::EPSILON, "{text}");
        }
    }

    #[test]
    fn what_has_no_length_of_its_own_is_refused() {
        for text in [
            "",
            "0h",
            "-2h",
            "2h ago",
            "2",
            "7",
            "1mo",
            "1y",
            "soon",
            "22:00",
            "7 fortnights",
            "100000h",
            "99999999w",
        ] {
            assert_eq!(text.parse::<Length>(), Err(NotALength), "{text}");
        }
    }
}
