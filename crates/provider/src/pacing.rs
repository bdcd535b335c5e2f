//! How much of the provider's rate limit a client may use: others share the token.

use jiff::{Timestamp, fmt::rfc2822::DateTimeParser};
use reqwest::header::{DATE, HeaderMap};

/// Requests are held back once no more than one part in this many of the limit is left.
const KEPT: u64 = 50;

/// One in this many of the requests that pacing would hold back is sent anyway: only a response can
/// show that the allowance has recovered.
const PROBE: u32 = 4;

/// The requests that are left, as the provider's latest headers reported them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests allowed in the window.
    pub limit: u64,
    /// Requests left in it, for all users of the token.
    pub remaining: u64,
    /// `DigitalOcean`: when the oldest counted request expires (DODESC). Hetzner: when the whole
    /// limit has recovered (HZSPEC).
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

/// Reads the provider's own `Date` header.
pub(crate) fn date(headers: &HeaderMap) -> Option<Timestamp> {
    let date = headers.get(DATE)?.as_bytes();
    DateTimeParser::new().parse_timestamp(date).ok()
}

/// Reserves the last of an account's requests for the others who share its token.
///
/// A request may be sent while more than a fiftieth of the limit is left after every request in
/// flight is counted. How much of the allowance to plan for is decided earlier, where work is
/// handed out; this is the safeguard where that plan was wrong.
#[derive(Debug, Default)]
pub(crate) struct Pacing {
    latest: Option<RateLimit>,
    under_way: u64,
    held_back: u32,
}

impl Pacing {
    pub(crate) fn latest(&self) -> Option<RateLimit> {
        self.latest
    }

    /// Reports whether one more request may be sent; if so, counts it as in flight.
    pub(crate) fn admit(&mut self) -> bool {
        if let Some(latest) = &self.latest
            && latest.remaining.saturating_sub(self.under_way) <= latest.limit / KEPT
        {
            self.held_back = self.held_back.wrapping_add(1);
            if !self.held_back.is_multiple_of(PROBE) {
                return false;
            }
        }
        self.under_way += 1;
        true
    }

    /// Records that a request has ended, with or without a response.
    pub(crate) fn ended(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// Learns from a response's headers; a response without them changes nothing.
    pub(crate) fn learn(&mut self, headers: &HeaderMap) {
        if let Some(latest) = RateLimit::of_headers(headers) {
            self.latest = Some(latest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(remaining: u64) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("ratelimit-limit", "5000".parse().unwrap());
        headers.insert("ratelimit-remaining", remaining.into());
        headers.insert("ratelimit-reset", "1763700000".parse().unwrap());
        headers
    }

    /// Sends until held back, each response reporting one request less; returns how many were sent.
    fn send_all(pacing: &mut Pacing, mut remaining: u64) -> u64 {
        let mut sent = 0;
        while pacing.admit() {
            sent += 1;
            remaining -= 1;
            pacing.ended();
            pacing.learn(&headers(remaining));
        }
        sent
    }

    #[test]
    fn the_headers_are_read_whole_or_not_at_all() {
        let limit = RateLimit::of_headers(&headers(10)).unwrap();
        assert_eq!((limit.limit, limit.remaining), (5000, 10));
        assert_eq!(limit.reset, Timestamp::from_second(1_763_700_000).unwrap());
        for missing in ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"] {
            let mut headers = headers(10);
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
    fn the_last_fiftieth_is_for_others() {
        let mut pacing = Pacing::default();
        pacing.learn(&headers(1000));
        assert_eq!(send_all(&mut pacing, 1000), 900);
    }

    #[test]
    fn what_is_under_way_counts_before_it_is_answered() {
        let mut pacing = Pacing::default();
        pacing.learn(&headers(108));
        let left = (0..PROBE - 1).map(|_| pacing.admit()).collect::<Vec<_>>();
        assert_eq!(left, [true; 3]);
        assert_eq!((0..100).take_while(|_| pacing.admit()).count(), 5);
        // One is lost without an answer.
        pacing.ended();
        assert!(pacing.admit());
    }

    #[test]
    fn requests_of_others_count_like_our_own() {
        let mut pacing = Pacing::default();
        pacing.learn(&headers(1000));
        assert!(pacing.admit());
        pacing.ended();
        pacing.learn(&headers(101));
        assert_eq!(send_all(&mut pacing, 101), 1);
    }

    #[test]
    fn what_has_recovered_may_be_used() {
        let mut pacing = Pacing::default();
        pacing.learn(&headers(0));
        assert!(!pacing.admit());
        pacing.learn(&headers(102));
        assert_eq!(send_all(&mut pacing, 102), 2);
    }

    #[test]
    fn an_exhausted_allowance_still_lets_a_probe_out() {
        let mut pacing = Pacing::default();
        pacing.learn(&headers(0));
        let left = (0..PROBE * 3).filter(|_| pacing.admit()).count();
        assert_eq!(left, 3);
    }
}
