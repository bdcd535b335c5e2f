//! What this process has counted since it began, in the text format of Prometheus.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::{AccountName, metric::Metric, record::Direction};
use jiff::Timestamp;
use lifecycle::{
    Occurrence,
    event::{Event, Subject},
    report::health::Health,
};
use prometheus_client::{
    encoding::prometheus_text::encode,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

pub(crate) use prometheus_client::encoding::prometheus_text::CONTENT_TYPE;

/// The invocations of one function that have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InvocationTotals {
    pub count: u64,
    pub failed: u64,
    /// Their total duration, by the service's clock.
    pub lasted: Duration,
    /// When the latest one without an error ended.
    pub last_good: Option<Timestamp>,
    /// Whether the latest one ended with an error.
    pub fails: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<BTreeMap<AccountName, AccountCounts>>);

/// What was counted in one account.
#[derive(Debug, Default)]
struct AccountCounts {
    health: Health,
    /// When an inventory counted last.
    counted_at: Option<Timestamp>,
    /// How long its resources were stopped, all of them together.
    stopped_seconds: u64,
    asked: u64,
    seen: u64,
    refusals: u64,
    would_ask: BTreeMap<Direction, u64>,
}

impl Counts {
    /// Counts what has happened.
    pub(crate) fn happened(&self, outcome: &Occurrence) {
        let account = match &outcome.subject {
            Subject::Resource { resource, .. } => &resource.account,
            Subject::Account { account } => account,
        };
        let mut all = self.lock();
        let counts = all.entry(account.clone()).or_default();
        if let Event::WouldAsk { direction, .. } = &outcome.event {
            *counts.would_ask.entry(*direction).or_default() += 1;
        }
        let metrics = outcome.event.class().metrics;
        counts.asked += u64::from(metrics.contains(&Metric::Asked));
        counts.seen += u64::from(metrics.contains(&Metric::Seen));
        counts.refusals += u64::from(metrics.contains(&Metric::Refused));
        for gauge in metrics.iter().filter(|metric| Metric::GAUGES.contains(metric)) {
            counts.health.raise(*gauge);
        }
    }

    /// Takes over what an inventory has counted.
    pub(crate) fn counted(&self, account: &AccountName, health: &Health, now: Timestamp) {
        let mut all = self.lock();
        let counts = all.entry(account.clone()).or_default();
        let since = counts.counted_at.map(|at| now.duration_since(at).as_secs());
        let seconds = since.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or_default();
        counts.stopped_seconds += counts.health.gauge(Metric::Stopped) * seconds;
        counts.health = health.clone();
        counts.counted_at = Some(now);
    }

    /// Returns the text: of the accounts that are configured, and of the functions.
    pub(crate) fn text(
        &self,
        is_configured: impl Fn(&AccountName) -> bool,
        functions: &BTreeMap<&'static str, InvocationTotals>,
    ) -> Result<String, fmt::Error> {
        let all = self.lock();
        let accounts: Vec<_> = all.iter().filter(|(name, _)| is_configured(name)).collect();
        let mut text = Text(Registry::with_prefix("offhours"));
        for metric in Metric::GAUGES.into_iter().chain([Metric::Paused, Metric::Stopped]) {
            let values = accounts.iter().map(|(name, one)| {
                let value = i64::try_from(one.health.gauge(metric)).unwrap_or(i64::MAX);
                (vec![("account", name.to_string())], value)
            });
            text.gauge(&in_snake_case(metric.name()), metric.help(), values);
        }
        let per_account = |count: fn(&AccountCounts) -> u64| {
            let of = move |(name, one): &(&AccountName, &AccountCounts)| {
                (vec![("account", name.to_string())], count(one))
            };
            accounts.iter().map(of).collect::<Vec<_>>()
        };
        for (name, help, values) in [
            ("asked", Metric::Asked.help(), per_account(|one| one.asked)),
            ("seen", Metric::Seen.help(), per_account(|one| one.seen)),
            ("refusals", "Stops and starts that were refused", per_account(|one| one.refusals)),
            (
                "stopped_seconds",
                "How long resources that follow a schedule were stopped, all of them together",
                per_account(|one| one.stopped_seconds),
            ),
        ] {
            text.counter(name, help, values);
        }
        let would_ask = accounts.iter().flat_map(|(name, one)| {
            one.would_ask.iter().map(|(direction, count)| {
                let labels =
                    vec![("account", name.to_string()), ("direction", direction.to_string())];
                (labels, *count)
            })
        });
        text.counter("would_ask", "Requests that observe mode did not send", would_ask);
        let function = |name: &str| vec![("function", name.to_owned())];
        let ended = functions.iter().map(|(name, totals)| (function(name), totals.count));
        text.counter("invocations", "Invocations that have ended", ended);
        let failed = functions.iter().map(|(name, totals)| (function(name), totals.failed));
        text.counter("failed_invocations", "Invocations that ended with an error", failed);
        let last_good = functions
            .iter()
            .filter_map(|(name, totals)| Some((function(name), totals.last_good?.as_second())));
        let help = "When the latest invocation without an error ended";
        text.gauge("last_good_invocation_timestamp_seconds", help, last_good);
        let mut written = String::new();
        encode(&mut written, &text.0)?;
        Ok(written)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AccountName, AccountCounts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Labels = Vec<(&'static str, String)>;

struct Text(Registry);

impl Text {
    fn gauge(&mut self, name: &str, help: &str, values: impl IntoIterator<Item = (Labels, i64)>) {
        let family = Family::<Labels, Gauge>::default();
        for (labels, value) in values {
            family.get_or_create(&labels).set(value);
        }
        self.0.register(name, help, family);
    }

    fn counter(&mut self, name: &str, help: &str, values: impl IntoIterator<Item = (Labels, u64)>) {
        let family = Family::<Labels, Counter>::default();
        for (labels, value) in values {
            family.get_or_create(&labels).inc_by(value);
        }
        self.0.register(name, help, family);
    }
}

fn in_snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use lifecycle::event::Answer;

    use super::*;

    #[test]
    fn each_account_that_is_configured_is_counted_by_itself() {
        let (work, former): (AccountName, AccountName) =
            ("do-main".parse().unwrap(), "gone".parse().unwrap());
        let at: Timestamp = "2026-11-23T18:00:00Z".parse().unwrap();
        let counts = Counts::default();
        counts.counted(&former, &Health::from_iter([Metric::Stuck]), at);
        counts.counted(&work, &Health::from_iter([Metric::Stopped, Metric::Stopped]), at);
        let later = at + SignedDuration::from_mins(5);
        counts.counted(&work, &Health::from_iter([Metric::Held, Metric::Held]), later);
        for event in [
            Event::Forced { request: String::new(), answer: Answer::TokenRefused(String::new()) },
            Event::Stuck { direction: Direction::Stop, cause: None, reason: String::new() },
        ] {
            counts.happened(&Occurrence::of_account(&work, later, event));
        }
        let text = counts.text(|account| *account == work, &BTreeMap::new()).unwrap();
        for line in [
            r#"offhours_stopped_seconds_total{account="do-main"} 600"#,
            r#"offhours_stopped{account="do-main"} 0"#,
            r#"offhours_held{account="do-main"} 2"#,
            r#"offhours_stuck{account="do-main"} 1"#,
            "# HELP offhours_tokens_refused Accounts whose token was refused, or whose host shows a \
             key that is not pinned.",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
        assert!(!text.contains("gone"), "{text}");
    }
}
