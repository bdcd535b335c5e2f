//! Publishes: writes what there is to look at into a bucket, in full and in its public form. Reads
//! the tables, and changes none.

pub mod overview;

use domain::ScheduleName;
use environment::bucket::{Bucket, BucketError, Object};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use page::{Audience, Input, calendar};
use report::{
    csv::{self, csv},
    history::Period,
    money::hours_in_words,
    past::InPieces,
    time::shared_zone,
};
use serde::Serialize;
use store::{Reader, StoreError};

const PAGE: &str = "text/html; charset=utf-8";
const CALENDAR: &str = "text/calendar; charset=utf-8";
const ROWS: &str = "text/csv; charset=utf-8";

/// Why nothing can be shown, or was published. The next invocation writes everything again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("failed to read the tables")]
    Store(#[from] StoreError),
    #[error("failed to read the history")]
    History(#[from] InPieces),
    #[error("failed to render rows as CSV")]
    Csv(#[from] csv::Error),
    #[error("failed to write into the bucket")]
    Bucket(#[from] BucketError),
}

/// What an invocation did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Published {
    /// How many objects were written.
    pub objects: usize,
    /// How many items of the tables cannot be read, and are missing in what was written.
    pub unreadable: usize,
}

/// Handles one invocation: that of the timer, or of an event after which there is something new.
pub async fn handle(store: &Reader, bucket: &Bucket, now: Timestamp) -> Result<Published, Error> {
    let in_force = store.in_force().await?;
    let zone = shared_zone(&in_force.configuration).cloned().unwrap_or(TimeZone::UTC);
    let shown = overview::show(store, &in_force, None, month(now), &zone, now, |input| {
        let hours_off = hours_in_words(input.past.by_resource.off_hours);
        (objects(input), page::headline(input), hours_off)
    });
    let ((objects, [off, saved], hours_off), unreadable) = shown.await?;
    let objects = objects?;
    for object in &objects {
        bucket.put(object).await?;
    }
    // The first row of the dashboard shows these fields.
    tracing::info!(off, hours_off, saved, "Published {} objects", objects.len());
    Ok(Published { objects: objects.len(), unreadable })
}

/// The month that the money is about. In the first hour of a month it is the one before, so that
/// the last rows of each month are written after its end.
fn month(now: Timestamp) -> Period {
    let Period { from: until, .. } = Period::month_of(now);
    let Period { from, .. } = Period::month_of(now - SignedDuration::from_hours(1));
    if from < until { Period { from, until } } else { Period { from, until: now } }
}

/// Everything that is published. What is below `public/` names no person, reason, id or account.
fn objects(input: &Input<'_>) -> Result<Vec<Object>, csv::Error> {
    let mut objects = Vec::new();
    let mut add = |key, content_type, contents| {
        objects.push(Object { key, content_type, contents });
    };
    let saved = &input.past.by_resource;
    let month = saved.period.from.strftime("%Y-%m");
    add(format!("saved/{month}.csv"), ROWS, csv(&saved.rows)?);
    for (folder, audience) in [("", Audience::Operators), ("public/", Audience::Public)] {
        add(format!("{folder}index.html"), PAGE, page::render(input, audience));
        let calendar = |only: Option<&ScheduleName>| {
            calendar::render(input.in_force.rules(), input.records, only, audience, input.now)
        };
        add(format!("{folder}calendar.ics"), CALENDAR, calendar(None));
        for name in input.in_force.configuration.schedules.keys() {
            add(format!("{folder}calendar/{name}.ics"), CALENDAR, calendar(Some(name)));
        }
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_is_finished_in_the_first_hour_of_the_next() {
        let month_at = |now: &str| {
            let Period { from, until } = month(now.parse().unwrap());
            (from.to_string(), until.to_string())
        };
        let of = |from: &str, until: &str| (from.to_owned(), until.to_owned());
        let (october, november) = ("2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z");
        assert_eq!(month_at("2026-10-31T23:59:59Z"), of(october, "2026-10-31T23:59:59Z"));
        assert_eq!(month_at("2026-11-01T00:07:00Z"), of(october, november));
        assert_eq!(month_at("2026-11-01T01:07:00Z"), of(november, "2026-11-01T01:07:00Z"));
    }
}
