//! How many requests each account has left, counted as its cloud counts them.

use std::collections::VecDeque;

use domain::configuration::Provider;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::answer::{Answer, Refusal};

/// How many requests an account may make, as a fleet describes it.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RateLimit {
    /// The hourly limit. A Hetzner account regains its requests evenly.
    pub(crate) per_hour: u32,
    /// The limit per minute, at `DigitalOcean` only.
    pub(crate) per_minute: Option<u32>,
}

/// The request count of one account.
#[derive(Debug, Clone)]
pub(crate) enum Rate {
    /// `DigitalOcean`: every request counts for an hour (and for a minute) from its own instant on.
    Sliding(Sliding),
    /// Hetzner: requests are regained one by one.
    Bucket(Bucket),
}

#[derive(Debug, Clone)]
pub(crate) struct Sliding {
    per_hour: usize,
    per_minute: usize,
    /// The instants of the last hour's requests, oldest first.
    counted: VecDeque<Timestamp>,
}

#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    per_hour: u32,
    /// How much is used, as the milliseconds until it is regained.
    debt_ms: i64,
    since: Timestamp,
}

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const MINUTE: SignedDuration = SignedDuration::from_mins(1);

impl Rate {
    /// Creates an empty count. The default limits are 5000 per hour and 250 per minute at
    /// `DigitalOcean` (DODESC), and 3600 per hour at Hetzner (HZSPEC).
    pub(crate) fn new(provider: Provider, limit: Option<RateLimit>, now: Timestamp) -> Self {
        match provider {
            Provider::DigitalOcean => Self::Sliding(Sliding {
                per_hour: limit.map_or(5000, |limit| limit.per_hour as usize),
                per_minute: limit
                    .and_then(|limit| limit.per_minute)
                    .map_or(250, |limit| limit as usize),
                counted: VecDeque::new(),
            }),
            Provider::Hetzner => Self::Bucket(Bucket {
                per_hour: limit.map_or(3600, |limit| limit.per_hour),
                debt_ms: 0,
                since: now,
            }),
        }
    }

    /// Counts a request, or refuses it. Refused requests are not counted; whether the clouds count
    /// them is not documented.
    pub(crate) fn count(&mut self, now: Timestamp) -> Result<(), Refusal> {
        match self {
            Self::Sliding(sliding) => sliding.count(now),
            Self::Bucket(bucket) => bucket.count(now),
        }
    }

    /// Adds the headers that every response carries.
    pub(crate) fn headers(&self, answer: Answer, now: Timestamp) -> Answer {
        match self {
            Self::Sliding(sliding) => {
                let oldest = sliding.counted.front().copied().unwrap_or(now);
                // What is refused for the limit per minute says 0 as well (DODESC).
                let left = sliding.per_hour - sliding.counted.len();
                let remaining = if answer.status == 429 { 0 } else { left };
                answer
                    .with("ratelimit-limit", &sliding.per_hour)
                    .with("ratelimit-remaining", &remaining)
                    .with("ratelimit-reset", &(oldest + HOUR).as_second())
            }
            Self::Bucket(bucket) => {
                let full = now + SignedDuration::from_millis(bucket.debt_ms);
                answer
                    .with("ratelimit-limit", &bucket.per_hour)
                    .with("ratelimit-remaining", &bucket.remaining())
                    .with("ratelimit-reset", &full.as_second())
            }
        }
    }
}

impl Sliding {
    fn count(&mut self, now: Timestamp) -> Result<(), Refusal> {
        while self.counted.front().is_some_and(|oldest| *oldest + HOUR <= now) {
            self.counted.pop_front();
        }
        let exceeded = |retry_after| Refusal {
            retry_after,
            ..Refusal::of_status(Provider::DigitalOcean, 429)
        };
        if self.counted.len() >= self.per_hour {
            return Err(exceeded(None));
        }
        // The request that must be a minute old before the next one is allowed.
        let blocking = self.counted.len().checked_sub(self.per_minute);
        if let Some(oldest) = blocking.and_then(|index| self.counted.get(index))
            && *oldest + MINUTE > now
        {
            let wait = (*oldest + MINUTE).duration_since(now);
            return Err(exceeded(Some(wait.as_secs() + 1)));
        }
        self.counted.push_back(now);
        Ok(())
    }
}

impl Bucket {
    /// How long it takes to regain one request, in milliseconds.
    fn step_ms(&self) -> i64 {
        3_600_000 / i64::from(self.per_hour)
    }

    fn remaining(&self) -> i64 {
        let used = (self.debt_ms + self.step_ms() - 1) / self.step_ms();
        (i64::from(self.per_hour) - used).max(0)
    }

    fn count(&mut self, now: Timestamp) -> Result<(), Refusal> {
        let passed = now.duration_since(self.since).as_millis();
        let passed = i64::try_from(passed).unwrap_or(i64::MAX).max(0);
        self.debt_ms = self.debt_ms.saturating_sub(passed).max(0);
        self.since = now;
        if self.remaining() == 0 {
            let message = format!("limit of {} requests per hour reached", self.per_hour);
            return Err(Refusal::new(429, "rate_limit_exceeded", message));
        }
        self.debt_ms += self.step_ms();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instant(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn header(rate: &Rate, now: Timestamp, name: &str) -> i64 {
        let answer = rate.headers(Answer::empty(200), now);
        answer.headers[name].parse().unwrap()
    }

    #[test]
    fn digitalocean_counts_each_request_for_an_hour_and_for_a_minute() {
        let start = instant("2026-11-23T07:00:00Z");
        let limit = RateLimit { per_hour: 4, per_minute: Some(2) };
        let mut rate = Rate::new(Provider::DigitalOcean, Some(limit), start);
        rate.count(start).unwrap();
        rate.count(start + SignedDuration::from_secs(10)).unwrap();
        let exceeded = rate.count(start + SignedDuration::from_secs(20)).unwrap_err();
        assert_eq!(exceeded.retry_after, Some(41));
        rate.count(start + MINUTE).unwrap();
        rate.count(start + MINUTE * 2).unwrap();
        let exceeded = rate.count(start + MINUTE * 30).unwrap_err();
        assert_eq!(exceeded.retry_after, None);
        let later = start + MINUTE * 30;
        assert_eq!(header(&rate, later, "ratelimit-remaining"), 0);
        assert_eq!(header(&rate, later, "ratelimit-reset"), (start + HOUR).as_second());
        rate.count(start + HOUR).unwrap();
    }

    #[test]
    fn hetzner_regains_one_request_after_the_other() {
        let start = instant("2026-11-23T07:00:00Z");
        let limit = RateLimit { per_hour: 3600, per_minute: None };
        let mut rate = Rate::new(Provider::Hetzner, Some(limit), start);
        for _ in 0..3600 {
            rate.count(start).unwrap();
        }
        assert_eq!(header(&rate, start, "ratelimit-remaining"), 0);
        assert_eq!(header(&rate, start, "ratelimit-reset"), (start + HOUR).as_second());
        rate.count(start).unwrap_err();
        let later = start + SignedDuration::from_secs(5);
        for _ in 0..5 {
            rate.count(later).unwrap();
        }
        rate.count(later).unwrap_err();
    }
}
