//! Looking back: since when, of what, and reading that from history.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use anyhow::Context as _;
use domain::{
    ResourceRef, ScheduleName, configuration::Configuration, left_behind::is_ghost, record::Record,
};
use jiff::{
    Span, Timestamp, ToSpan as _, Zoned,
    civil::{Date, DateTime},
    tz::TimeZone,
};
use store::{Finished, HISTORY_DAYS, HistoryEntry, HistoryPages, Store};

use crate::{
    commands::local,
    exit::UsageError,
    hours::{Period, kept_since},
    lookup::named,
    nearest::{advice, nearest},
    output,
};

/// An instant in the past, as a person names it.
#[derive(Debug, Clone, Copy)]
pub enum Moment {
    /// So long ago.
    Ago(Span),
    /// That one.
    Instant(Timestamp),
    /// In the zone of what the command shows.
    Local(DateTime),
}

/// A text that names no instant in the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "write how long ago, such as 36h or 7d, a day or local time such as 2026-10-01 or \
     \"2026-10-01 09:00\", or an instant such as 2026-10-01T07:00:00Z"
)]
pub struct NotAMoment;

impl FromStr for Moment {
    type Err = NotAMoment;

    fn from_str(text: &str) -> Result<Self, NotAMoment> {
        if let Ok(instant) = text.parse() {
            return Ok(Self::Instant(instant));
        }
        if let Ok(zoned) = text.parse::<Zoned>() {
            return Ok(Self::Instant(zoned.timestamp()));
        }
        if let Ok(local) = text.parse() {
            return Ok(Self::Local(local));
        }
        let span: Span = text.parse().map_err(|_| NotAMoment)?;
        if span.is_positive() {
            Ok(Self::Ago(span))
        } else {
            Err(NotAMoment)
        }
    }
}

impl Moment {
    fn instant(self, zone: &TimeZone, now: Timestamp) -> anyhow::Result<Timestamp> {
        let instant = match self {
            Self::Ago(span) => {
                let then = now.to_zoned(TimeZone::UTC).checked_sub(span);
                then.map(|then| then.timestamp())
            }
            Self::Instant(instant) => Ok(instant),
            Self::Local(local) => local.to_zoned(zone.clone()).map(|zoned| zoned.timestamp()),
        };
        instant.map_err(|_| UsageError("that is too long ago".to_owned()).into())
    }
}

/// A calendar month, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Month(Date);

/// A text that names no month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write a month such as 2026-10")]
pub struct NotAMonth;

impl FromStr for Month {
    type Err = NotAMonth;

    fn from_str(text: &str) -> Result<Self, NotAMonth> {
        let shape = text.len() == "2026-10".len();
        let first = format!("{text}-01").parse();
        first.ok().filter(|_| shape).map(Self).ok_or(NotAMonth)
    }
}

impl Month {
    fn period(self) -> anyhow::Result<Period> {
        let first = |date: Date| -> Result<Timestamp, jiff::Error> {
            Ok(date.to_zoned(TimeZone::UTC)?.timestamp())
        };
        Ok(Period {
            from: first(self.0)?,
            until: first(self.0.checked_add(1.month())?)?,
        })
    }
}

/// A period as a person names it.
#[derive(Debug, Clone, Copy)]
pub enum Asked {
    /// From a moment until another, or now.
    Between(Moment, Option<Moment>),
    /// A calendar month.
    Month(Month),
}

impl Asked {
    /// The period that is meant, up to now at most, and no longer than history is kept; what does
    /// not reach is told. Days and local times are those of `zone`.
    pub fn period(self, zone: &TimeZone, now: Timestamp) -> anyhow::Result<Period> {
        let asked = match self {
            Self::Month(month) => month.period()?,
            Self::Between(since, until) => Period {
                from: since.instant(zone, now)?,
                until: until.map_or(Ok(now), |until| until.instant(zone, now))?,
            },
        };
        let usage = |text| Err(UsageError(text).into());
        if asked.from >= now {
            let from = local(asked.from, zone);
            return usage(format!("{from} is yet to come: name an earlier --since"));
        }
        if asked.until <= asked.from {
            let (from, until) = (local(asked.from, zone), local(asked.until, zone));
            return usage(format!(
                "the period ends, {until}, before it begins, {from}"
            ));
        }
        let kept = kept_since(now);
        if asked.until <= kept {
            return usage(format!(
                "history is kept for {HISTORY_DAYS} days: nothing is known before {}",
                local(kept, zone)
            ));
        }
        // What was ago a moment ago is no longer: the store's clock has gone on meanwhile.
        if asked.from < kept {
            output::remark(&format!(
                "history is kept for {HISTORY_DAYS} days: nothing is known before {}\n",
                local(kept, zone)
            ));
        }
        Ok(Period {
            from: asked.from.max(kept),
            until: asked.until.min(now),
        })
    }
}

/// Refuses a schedule that is neither configured nor known from `seen`.
pub fn check_schedule(
    schedule: Option<&ScheduleName>,
    configuration: &Configuration,
    seen: bool,
) -> anyhow::Result<()> {
    let Some(name) = schedule.filter(|name| !seen && !configuration.schedules.contains_key(*name))
    else {
        return Ok(());
    };
    let names = configuration.schedules.keys().map(ScheduleName::as_str);
    let advice = advice(name.as_str(), "schedules", names);
    let message = format!("there is no schedule `{name}`, and history has none; {advice}");
    Err(UsageError(message).into())
}

/// The resources that a person names; those that are gone are known from history alone.
#[derive(Debug, Default)]
pub struct Wanted {
    references: BTreeSet<ResourceRef>,
    /// What they were called before their accounts were renamed.
    former: BTreeSet<ResourceRef>,
    /// Names that no record has.
    names: BTreeSet<String>,
    /// Whatever was found under either.
    found: BTreeSet<String>,
    /// Other names in history, to tell the nearest.
    other_names: BTreeSet<String>,
    all: bool,
}

impl Wanted {
    /// What the targets name, by reference or by name; all resources where there are none.
    pub fn of(
        targets: &[String],
        records: &[Record],
        configuration: &Configuration,
    ) -> anyhow::Result<Self> {
        let mut wanted = Self {
            all: targets.is_empty(),
            ..Self::default()
        };
        for target in targets {
            if let Ok(reference) = target.parse::<ResourceRef>() {
                if records.iter().any(|record| record.reference == reference) {
                    wanted.found.insert(reference.to_string());
                }
                wanted.references.insert(reference);
            } else if records
                .iter()
                .any(|record| record.name == *target && !is_ghost(record, configuration))
            {
                let reference = &named(target, records, configuration)?.reference;
                wanted.found.insert(reference.to_string());
                wanted.references.insert(reference.clone());
            } else {
                wanted.names.insert(target.clone());
            }
        }
        let names = records.iter().map(|record| record.name.clone());
        wanted.other_names.extend(names);
        Ok(wanted)
    }

    /// With what was done while the accounts had their former names.
    #[must_use]
    pub fn with_former_names(mut self, configuration: &Configuration) -> Self {
        for (was, present) in configuration.renames() {
            let references = self.references.iter();
            let renamed = references.filter(|reference| reference.account == *present);
            self.former.extend(renamed.map(|reference| ResourceRef {
                account: was.clone(),
                id: reference.id.clone(),
            }));
        }
        self
    }

    /// Whether a resource is wanted that is known by its record.
    #[must_use]
    pub fn includes_record(&self, record: &Record) -> bool {
        self.all || self.references.contains(&record.reference)
    }

    /// Whether a finished transition is of a wanted resource.
    fn includes(&mut self, entry: &HistoryEntry) -> bool {
        if self.all {
            return true;
        }
        if self.references.contains(&entry.reference) {
            self.found.insert(entry.reference.to_string());
            return true;
        }
        if self.former.contains(&entry.reference) {
            return true;
        }
        if self.names.contains(&entry.name) {
            self.found.insert(entry.name.clone());
            return true;
        }
        if !self.names.is_empty() && !self.other_names.contains(&entry.name) {
            self.other_names.insert(entry.name.clone());
        }
        false
    }

    /// Refuses what neither a record nor the history that was read knows.
    pub fn check(&self) -> anyhow::Result<()> {
        let references = self.references.iter().map(ToString::to_string);
        let mut targets = references.chain(self.names.iter().cloned());
        let Some(unknown) = targets.find(|target| !self.found.contains(target)) else {
            return Ok(());
        };
        let names = self.other_names.iter().map(String::as_str);
        let advice = match nearest(&unknown, names) {
            Some(name) => format!("did you mean `{name}`?"),
            None => "`offhours status` lists those that are known".to_owned(),
        };
        let message = format!("no resource `{unknown}`, and history has none; {advice}");
        Err(UsageError(message).into())
    }

    /// Reads the finished transitions of what is wanted, and says how many could not be read.
    /// Those of one resource come together.
    pub async fn read(
        &mut self,
        store: &Store,
        finished: Finished,
        mut take: impl FnMut(HistoryEntry) -> anyhow::Result<()>,
    ) -> anyhow::Result<usize> {
        let sources: Vec<HistoryPages> = if self.all || !self.names.is_empty() {
            vec![store.history_between(finished)]
        } else {
            let of = |reference| store.history_of(reference, finished.clone());
            let former = self.former.difference(&self.references);
            self.references.iter().chain(former).map(of).collect()
        };
        let mut unreadable = 0;
        for mut pages in sources {
            while let Some(page) = pages.next().await.context("cannot read the store")? {
                unreadable += page.unreadable;
                for entry in page.entries {
                    if self.includes(&entry) {
                        take(entry)?;
                    }
                }
            }
        }
        Ok(unreadable)
    }
}

/// Who bears which name: where a name says which resource is meant, a table does without the long
/// reference.
#[derive(Debug, Default)]
pub struct Bearers<'n>(BTreeMap<&'n str, BTreeSet<&'n ResourceRef>>);

impl<'n> FromIterator<(&'n str, &'n ResourceRef)> for Bearers<'n> {
    fn from_iter<I: IntoIterator<Item = (&'n str, &'n ResourceRef)>>(named: I) -> Self {
        let mut bearers = Self::default();
        for (name, reference) in named {
            bearers.0.entry(name).or_default().insert(reference);
        }
        bearers
    }
}

impl Bearers<'_> {
    /// Whether every name says which.
    #[must_use]
    pub fn are_unique(&self) -> bool {
        self.0.values().all(|bearers| bearers.len() == 1)
    }

    /// The account and the kind of the only one with a name; the whole reference of others.
    #[must_use]
    pub fn short(&self, name: &str, reference: &ResourceRef) -> String {
        if self.0.get(name).is_some_and(|bearers| bearers.len() > 1) {
            return reference.to_string();
        }
        format!("{}/{}", reference.account, reference.kind())
    }
}

/// Tells what of history could not be read.
pub fn tell_unreadable(unreadable: usize) {
    if unreadable > 0 {
        output::remark(&format!(
            "warning: {unreadable} items of history cannot be read and are left out; \
             is this program older than the one that wrote them?\n"
        ));
    }
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
        Asked::Between(since.parse().unwrap(), until).period(&zone, now())
    }

    #[track_caller]
    fn check(since: &str, until: Option<&str>, expected: &str) {
        let Period { from, until } = period(since, until).unwrap();
        assert_eq!(format!("{from} {until}"), expected);
    }

    #[test]
    fn moments_are_ago_local_or_instants() {
        check("7d", None, "2026-11-14T12:00:00Z 2026-11-21T12:00:00Z");
        check(
            "36h",
            Some("1h"),
            "2026-11-20T00:00:00Z 2026-11-21T11:00:00Z",
        );
        check(
            "2026-10-25",
            Some("2026-10-26"),
            "2026-10-24T22:00:00Z 2026-10-25T23:00:00Z",
        );
        check(
            "2026-11-01 09:00",
            Some("2026-11-01T10:00:00+01:00"),
            "2026-11-01T08:00:00Z 2026-11-01T09:00:00Z",
        );
    }

    #[test]
    fn what_names_no_moment_or_month_is_refused() {
        for text in ["", "7", "-7d", "0s", "yesterday", "2026-10", "2026-02-30"] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
        for text in ["", "2026", "2026-13", "2026-1", "2026-10-01", "10-2026"] {
            assert_eq!(text.parse::<Month>(), Err(NotAMonth), "{text}");
        }
    }

    #[test]
    fn a_month_is_whole_in_utc_and_the_present_one_ends_now() {
        let month = |text: &str| {
            let month = Asked::Month(text.parse().unwrap());
            let Period { from, until } = month.period(&TimeZone::UTC, now()).unwrap();
            format!("{from} {until}")
        };
        assert_eq!(
            month("2026-10"),
            "2026-10-01T00:00:00Z 2026-11-01T00:00:00Z"
        );
        assert_eq!(
            month("2026-11"),
            "2026-11-01T00:00:00Z 2026-11-21T12:00:00Z"
        );
    }

    #[test]
    fn a_reference_is_short_only_where_its_name_says_which() {
        let [one, two, three] = [1, 2, 3].map(|number| {
            let reference: ResourceRef = format!("hz-eu/server/{number}").parse().unwrap();
            reference
        });
        let named = [("web", &one), ("web", &one), ("web", &two), ("db", &three)];
        let bearers: Bearers<'_> = named.into_iter().collect();
        assert_eq!(bearers.short("web", &one), "hz-eu/server/1");
        assert_eq!(bearers.short("db", &three), "hz-eu/server");
        assert!(!bearers.are_unique());
    }

    #[test]
    fn a_period_is_some_time_of_the_kept_past() {
        let refusal = |since, until| period(since, until).unwrap_err().to_string();
        assert_eq!(
            refusal("2026-11-22", None),
            "Sun 2026-11-22 00:00 CET is yet to come: name an earlier --since"
        );
        assert!(refusal("1h", Some("2h")).contains("before it begins"));
        assert_eq!(
            refusal("2026-07-01", Some("2026-08-01")),
            "history is kept for 90 days: nothing is known before Sun 2026-08-23 14:00 CEST"
        );
        check(
            "2026-07-01",
            Some("2026-12-24"),
            "2026-08-23T12:00:00Z 2026-11-21T12:00:00Z",
        );
    }
}
