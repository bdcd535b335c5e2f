//! How long to wait after failures in a row.

use jiff::SignedDuration;

/// The longest wait.
const LONGEST: SignedDuration = SignedDuration::from_mins(15);

/// One minute after the first failure, doubling up to a quarter of an hour; at least what the
/// provider asked for.
pub(crate) fn after(attempts: u32, asked_for: Option<std::time::Duration>) -> SignedDuration {
    let doubled = SignedDuration::from_mins(1 << attempts.saturating_sub(1).min(4));
    let asked_for = asked_for
        .and_then(|duration| SignedDuration::try_from(duration).ok())
        .unwrap_or_default();
    doubled.min(LONGEST).max(asked_for)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_quarter_of_an_hour() {
        let minutes: Vec<_> = (1..=6).map(|n| after(n, None).as_mins()).collect();
        assert_eq!(minutes, [1, 2, 4, 8, 15, 15]);
        let asked_for = Some(std::time::Duration::from_hours(1));
        assert_eq!(after(1, asked_for).as_mins(), 60);
    }
}
