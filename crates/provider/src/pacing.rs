//! How much of the provider's allowance a client may use: others share the token.

use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimeParser};
use reqwest::header::{DATE, HeaderMap};

/// The providers count requests over one hour (DODESC, HZSPEC).
const WINDOW: SignedDuration = SignedDuration::from_hours(1);

/// Of the requests that pacing holds back, every so many-th goes out all the same: only an answer
/// can show that the allowance has recovered.
const PROBE: u32 = 4;

/// What a provider's headers said last of the requests that are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests allowed in the window.
    pub limit: u64,
    /// Requests left in it, for all users of the token.
    pub remaining: u64,
    /// `DigitalOcean`: when the oldest counted request is forgotten (DODESC). Hetzner: when all
    /// is recovered (HZSPEC).
    pub reset: Timestamp,
}

impl RateLimit {
    fn of_headers(headers: &HeaderMap) -> Option<Self> {
        let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse().ok();
        let reset = number("ratelimit-reset")?;
        Some(Self {
            limit: number("ratelimit-limit")?,
            remaining: number("ratelimit-remaining")?,
            reset: Timestamp::from_second(i64::try_from(reset).ok()?).ok()?,
        })
    }
}

/// The provider's own `Date`.
pub(crate) fn date(headers: &HeaderMap) -> Option<Timestamp> {
    let date = headers.get(DATE)?.as_bytes();
    DateTimeParser::new().parse_timestamp(date).ok()
}

/// Keeps a client's own requests to at most as many as are left for all others.
///
/// A window begins with the first answer. Within it a request may leave while fewer have left
/// than the latest answer showed remaining: with no other user that is half of what the
/// window began with, and it is less as soon as others use the token. A new window begins when an
/// answer shows no less than the current one began with, or is dated an hour after it.
#[derive(Debug, Default)]
pub(crate) struct Pacing {
    latest: Option<RateLimit>,
    window: Option<Window>,
    held_back: u32,
}

#[derive(Debug)]
struct Window {
    remaining_at_begin: u64,
    /// The provider's own `Date`, where it sent one.
    began: Option<Timestamp>,
    sent: u64,
}

impl Pacing {
    pub(crate) fn latest(&self) -> Option<RateLimit> {
        self.latest
    }

    /// Whether one more request may leave; if so it is counted.
    pub(crate) fn admit(&mut self) -> bool {
        let (Some(latest), Some(window)) = (&self.latest, &mut self.window) else {
            return true;
        };
        if window.sent >= latest.remaining {
            self.held_back = self.held_back.wrapping_add(1);
            if !self.held_back.is_multiple_of(PROBE) {
                return false;
            }
        }
        window.sent += 1;
        true
    }

    /// Learns from an answer's headers; an answer without them changes nothing.
    pub(crate) fn learn(&mut self, headers: &HeaderMap) {
        let Some(latest) = RateLimit::of_headers(headers) else {
            return;
        };
        let date = date(headers);
        let is_new = self.window.as_ref().is_none_or(|window| {
            let is_over = window
                .began
                .zip(date)
                .is_some_and(|(began, date)| date.duration_since(began) >= WINDOW);
            is_over || latest.remaining >= window.remaining_at_begin
        });
        if is_new {
            self.window = Some(Window {
                remaining_at_begin: latest.remaining,
                began: date,
                sent: 0,
            });
        }
        self.latest = Some(latest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(remaining: u64, date: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("ratelimit-limit", "5000".parse().unwrap());
        headers.insert("ratelimit-remaining", remaining.into());
        headers.insert("ratelimit-reset", "1763700000".parse().unwrap());
        headers.insert(DATE, date.parse().unwrap());
        headers
    }

    const NINE: &str = "Sat, 21 Nov 2026 09:00:00 GMT";
    const TEN: &str = "Sat, 21 Nov 2026 10:00:00 GMT";

    /// Sends until held back, each request answered with one less; returns how many left.
    fn send_all(pacing: &mut Pacing, mut remaining: u64) -> u64 {
        let mut sent = 0;
        while pacing.admit() {
            sent += 1;
            remaining -= 1;
            pacing.learn(&headers(remaining, NINE));
        }
        sent
    }

    #[test]
    fn the_headers_are_read_whole_or_not_at_all() {
        let limit = RateLimit::of_headers(&headers(10, NINE)).unwrap();
        assert_eq!((limit.limit, limit.remaining), (5000, 10));
        assert_eq!(limit.reset, Timestamp::from_second(1_763_700_000).unwrap());
        for missing in ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"] {
            let mut headers = headers(10, NINE);
            headers.remove(missing);
            assert_eq!(RateLimit::of_headers(&headers), None, "{missing}");
        }
    }

    #[test]
    fn before_the_first_answer_every_request_may_leave() {
        let mut pacing = Pacing::default();
        assert!((0..100).all(|_| pacing.admit()));
        pacing.learn(&HeaderMap::new());
        assert!(pacing.admit());
        assert_eq!(pacing.latest(), None);
    }

    #[test]
    fn at_most_half_of_what_was_left_is_used() {
        let mut pacing = Pacing::default();
        pacing.learn(&headers(100, NINE));
        assert_eq!(send_all(&mut pacing, 100), 50);
    }

    #[test]
    fn requests_of_others_shrink_our_share() {
        let mut pacing = Pacing::default();
        pacing.learn(&headers(100, NINE));
        assert!(pacing.admit());
        pacing.learn(&headers(20, NINE));
        // One has left and 20 remain: ours and theirs meet at 10 each.
        assert_eq!(send_all(&mut pacing, 20), 10);
    }

    #[test]
    fn a_slow_recovery_is_shared_too_and_does_not_begin_a_window() {
        let mut pacing = Pacing::default();
        pacing.learn(&headers(100, NINE));
        assert_eq!(send_all(&mut pacing, 100), 50);
        pacing.learn(&headers(60, NINE));
        assert_eq!(send_all(&mut pacing, 60), 5);
    }

    #[test]
    fn a_full_recovery_begins_a_window() {
        let mut pacing = Pacing::default();
        pacing.learn(&headers(100, NINE));
        assert_eq!(send_all(&mut pacing, 100), 50);
        pacing.learn(&headers(100, NINE));
        assert_eq!(send_all(&mut pacing, 100), 50);
    }

    #[test]
    fn an_hour_by_the_providers_own_clock_begins_a_window() {
        let mut pacing = Pacing::default();
        pacing.learn(&headers(100, NINE));
        assert_eq!(send_all(&mut pacing, 100), 50);
        pacing.learn(&headers(50, TEN));
        assert_eq!(send_all(&mut pacing, 50), 25);
    }

    #[test]
    fn an_exhausted_allowance_still_lets_a_probe_out() {
        let mut pacing = Pacing::default();
        pacing.learn(&headers(0, NINE));
        let left = (0..PROBE * 3).filter(|_| pacing.admit()).count();
        assert_eq!(left, 3);
    }
}
