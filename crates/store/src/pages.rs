//! Reading history page by page, so that very many entries need no more memory than a few.

use std::collections::HashMap;

use aws_sdk_dynamodb::{
    error::SdkError,
    operation::{
        query::{QueryError, QueryOutput},
        scan::{ScanError, ScanOutput},
    },
};
use aws_smithy_async::future::pagination_stream::PaginationStream;
use domain::{ResourceRef, ScheduleName, activity::Activity, history::HistoryEntry};
use jiff::Timestamp;

use crate::{
    Reader, StoreError, failed,
    item::{self, Item, Stored as _},
};

/// Which finished transitions to read: those that ended in [`since`, `until`).
///
/// [`since`]: Self::since
/// [`until`]: Self::until
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Start of the range, inclusive.
    pub since: Timestamp,
    /// End of the range, exclusive.
    pub until: Timestamp,
    /// Only those under this schedule; `None` for all.
    pub schedule: Option<ScheduleName>,
}

/// Some of the requested transitions; may be empty even though others follow.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HistoryPage {
    pub entries: Vec<HistoryEntry>,
    /// How many entries cannot be read: of a newer format, or malformed.
    pub unreadable: usize,
}

/// Finished transitions, a page at a time.
#[derive(Debug)]
pub struct HistoryPages {
    pages: Pages,
    wanted: HistoryQuery,
}

/// What a query or a scan finds, a page at a time; each page is read on demand.
#[derive(Debug)]
enum Pages {
    Query(PaginationStream<Result<QueryOutput, SdkError<QueryError>>>),
    Scan(PaginationStream<Result<ScanOutput, SdkError<ScanError>>>),
}

impl Reader {
    /// Pages through the finished transitions of all resources, grouped by resource, oldest first.
    /// Reads the whole table, however little of it is wanted, so at half the price: what ended less
    /// than a second or so ago may be missing.
    #[must_use]
    pub fn history_between(&self, wanted: HistoryQuery) -> HistoryPages {
        let (expression, names, values) = wanted.filter();
        let scan = self
            .client
            .scan()
            .table_name(&self.tables.history)
            .filter_expression(expression)
            .set_expression_attribute_names(names)
            .set_expression_attribute_values(Some(values));
        HistoryPages { pages: Pages::Scan(scan.into_paginator().send()), wanted }
    }

    /// Pages through one resource's finished transitions, newest first.
    #[must_use]
    pub fn history_of(&self, reference: &ResourceRef, wanted: HistoryQuery) -> HistoryPages {
        let (expression, names, values) = wanted.filter();
        let mut query = self
            .query(&self.tables.history, "reference", &reference.to_string())
            .filter_expression(expression)
            .scan_index_forward(false);
        for (placeholder, name) in names.into_iter().flatten() {
            query = query.expression_attribute_names(placeholder, name);
        }
        for (placeholder, value) in values {
            query = query.expression_attribute_values(placeholder, value);
        }
        HistoryPages { pages: Pages::Query(query.into_paginator().send()), wanted }
    }
}

impl Reader {
    /// Pages through the activity log of [`since`, `until`), newest first. Reads no history.
    #[must_use]
    pub fn activity_between(&self, since: Timestamp, until: Timestamp) -> ActivityPages {
        let query = self
            .query(&self.tables.history, "reference", item::ACTIVITY)
            .key_condition_expression("#key = :key AND transition BETWEEN :since AND :until")
            .expression_attribute_values(":since", item::text(&item::activity_key(since)))
            .expression_attribute_values(":until", item::text(&item::activity_key(until)))
            .scan_index_forward(false);
        ActivityPages { pages: Pages::Query(query.into_paginator().send()) }
    }
}

/// The activity log, a page at a time.
#[derive(Debug)]
pub struct ActivityPages {
    pages: Pages,
}

/// Some entries of the activity log; may be empty even though others follow.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ActivityPage {
    pub entries: Vec<Activity>,
    /// How many entries cannot be read: of a newer format, or malformed.
    pub unreadable: usize,
}

impl ActivityPages {
    /// Reads the next page; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<ActivityPage>, StoreError> {
        let Some(items) = self.pages.next("read the activity log").await? else {
            return Ok(None);
        };
        let mut page = ActivityPage::default();
        for item in items {
            match item::activity_of(item) {
                Ok(entry) => page.entries.push(entry),
                Err(_) => page.unreadable += 1,
            }
        }
        Ok(Some(page))
    }
}

impl HistoryPages {
    /// Reads the next page; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<HistoryPage>, StoreError> {
        let Some(items) = self.pages.next("read history").await? else {
            return Ok(None);
        };
        let mut page = HistoryPage::default();
        for item in items.into_iter().filter(|item| !item::is_activity(item)) {
            match HistoryEntry::of_item(item) {
                Ok(entry) if self.wanted.includes(&entry) => page.entries.push(entry),
                Ok(_) => {}
                Err(_) => page.unreadable += 1,
            }
        }
        Ok(Some(page))
    }
}

impl Pages {
    async fn next(&mut self, what: &'static str) -> Result<Option<Vec<Item>>, StoreError> {
        let items = match self {
            Self::Query(pages) => {
                let page = pages.try_next().await.map_err(failed(what))?;
                page.map(|page| page.items)
            }
            Self::Scan(pages) => {
                let page = pages.try_next().await.map_err(failed(what))?;
                page.map(|page| page.items)
            }
        };
        Ok(items.map(Option::unwrap_or_default))
    }
}

/// An expression, with the names and values in it.
type Filter = (&'static str, Option<HashMap<String, String>>, Item);

impl HistoryQuery {
    fn includes(&self, entry: &HistoryEntry) -> bool {
        let schedule = self.schedule.is_none() || self.schedule == entry.schedule;
        schedule && (self.since..self.until).contains(&entry.finished_at)
    }

    /// The filter that the engine applies, to the second: by an item's expiry, a number that is
    /// equally long after the end for all items. The text of an instant has as many digits as it
    /// needs, so texts do not compare as instants do.
    fn filter(&self) -> Filter {
        let mut values = Item::from([
            (":since".to_owned(), item::expires_at(self.since)),
            (":until".to_owned(), item::expires_at(self.until)),
        ]);
        let Some(schedule) = &self.schedule else {
            let expression = "expires_at BETWEEN :since AND :until";
            return (expression, None, values);
        };
        values.insert(":schedule".to_owned(), item::text(schedule.as_str()));
        let names = HashMap::from([("#schedule".to_owned(), "schedule".to_owned())]);
        let expression = "expires_at BETWEEN :since AND :until AND #schedule = :schedule";
        (expression, Some(names), values)
    }
}
