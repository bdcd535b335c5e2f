//! The time range of a report about the past.

use domain::history::HISTORY_DAYS;
use jiff::{Timestamp, tz::TimeZone};
use report::{
    history::{Period, kept_since},
    time::local,
};

use crate::{
    output,
    print::Screen,
    time::{Asked, Month, When},
};

/// The time range of a list of what is past.
#[derive(Debug, clap::Args)]
pub(crate) struct TimeRange {
    /// Start of the time range: 36h, 7d, monday, 2026-10-01, "2026-10-01 09:00" or an instant, in
    /// the zone of the output (see --tz).
    #[arg(long, value_name = "WHEN", default_value = "7d")]
    since: When,
    /// End of the time range; a day is included [default: now].
    #[arg(long, value_name = "WHEN")]
    until: Option<When>,
    /// Show at most N entries, the newest ones.
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
}

impl TimeRange {
    pub(crate) fn period(&self, screen: &Screen) -> anyhow::Result<Period> {
        between(&self.since, self.until.as_ref(), screen)
    }

    /// The period in which entries are looked for: by a clock of whole seconds, the present second is
    /// not over yet.
    pub(crate) fn searched(&self, period: Period) -> Period {
        let until = self.until.as_ref().map_or(Timestamp::MAX, |_| period.until);
        Period { until, ..period }
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit.map_or(usize::MAX, |limit| limit as usize)
    }
}

/// Returns the time from `since` until `until`, or until now, limited to how long history is kept.
pub(crate) fn between(
    since: &When,
    until: Option<&When>,
    screen: &Screen,
) -> anyhow::Result<Period> {
    let from = screen.instant(since, Asked::PastBegin)?;
    let until = until.map_or(Ok(screen.now), |until| screen.instant(until, Asked::PastEnd))?;
    past(Period { from, until }, "--since", screen)
}

/// Returns the time of a calendar month, limited in the same way.
pub(crate) fn of_month(month: Month, screen: &Screen) -> anyhow::Result<Period> {
    past(month.period(Asked::PastBegin, screen.now)?, "--month", screen)
}

/// Limits a period to now and to how long history is kept. Cutting its beginning is reported.
fn past(asked: Period, by: &str, Screen { zone, now, .. }: &Screen) -> anyhow::Result<Period> {
    let now = *now;
    if asked.from >= now {
        let from = local(asked.from, zone);
        bail_usage!("{from} is in the future: pass an earlier {by}");
    }
    if asked.until <= asked.from {
        let (from, until) = (local(asked.from, zone), local(asked.until, zone));
        bail_usage!("the period ends, {until}, before it begins, {from}");
    }
    let kept = kept_since(now);
    let begin = local(kept, zone);
    let unknown =
        format!("history is kept for {HISTORY_DAYS} days: nothing is known before {begin}");
    if asked.until <= kept {
        bail_usage!("{unknown}");
    }
    // `--since 90d` itself is not cut off.
    if asked.from < kept {
        output::remark(&format!("{unknown}\n"));
    }
    Ok(Period { from: asked.from.max(kept), until: asked.until.min(now) })
}

pub(crate) fn shown(Period { from, until }: Period, zone: &TimeZone) -> String {
    format!("from {} until {}", local(from, zone), local(until, zone))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-21T12:00:00Z".parse().unwrap()
    }

    fn period(since: &str, until: Option<&str>) -> anyhow::Result<Period> {
        let until = until.map(|text| text.parse().unwrap());
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        between(&since.parse().unwrap(), until.as_ref(), &Screen::plain(&zone, now()))
    }

    #[track_caller]
    fn check(since: &str, until: Option<&str>, expected: &str) {
        let Period { from, until } = period(since, until).unwrap();
        assert_eq!(format!("{from} {until}"), expected);
    }

    #[test]
    fn a_range_lies_in_the_past_and_has_its_last_day() {
        check("7d", None, "2026-11-14T12:00:00Z 2026-11-21T12:00:00Z");
        check("36h", Some("1h"), "2026-11-20T00:00:00Z 2026-11-21T11:00:00Z");
        check("2026-10-25", Some("2026-10-25"), "2026-10-24T22:00:00Z 2026-10-25T23:00:00Z");
        check("monday", Some("today"), "2026-11-15T23:00:00Z 2026-11-21T12:00:00Z");
        check(
            "2026-11-01 09:00",
            Some("2026-11-01T10:00:00+01:00"),
            "2026-11-01T08:00:00Z 2026-11-01T09:00:00Z",
        );
    }

    #[test]
    fn a_month_is_whole_in_utc_and_the_present_one_ends_now() {
        let month = |text: &str| {
            let screen = Screen::plain(&TimeZone::UTC, now());
            let Period { from, until } = of_month(text.parse().unwrap(), &screen).unwrap();
            format!("{from} {until}")
        };
        assert_eq!(month("2026-10"), "2026-10-01T00:00:00Z 2026-11-01T00:00:00Z");
        assert_eq!(month("2026-11"), "2026-11-01T00:00:00Z 2026-11-21T12:00:00Z");
    }

    #[test]
    fn a_period_is_some_time_of_the_kept_past() {
        let refusal = |since, until| period(since, until).unwrap_err().to_string();
        assert_eq!(
            refusal("tomorrow", None),
            "Sun 2026-11-22 00:00 CET is in the future: pass an earlier --since"
        );
        assert!(refusal("1h", Some("2h")).contains("before it begins"));
        assert_eq!(
            refusal("2026-07-01", Some("2026-08-01")),
            "history is kept for 90 days: nothing is known before Sun 2026-08-23 14:00 CEST"
        );
        check("2026-07-01", Some("2026-12-24"), "2026-08-23T12:00:00Z 2026-11-21T12:00:00Z");
    }
}
