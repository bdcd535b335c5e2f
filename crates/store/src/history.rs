//! Reading history by time, page by page, so that a long one needs no more memory than a short one.

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use domain::{ResourceRef, ScheduleName};
use jiff::Timestamp;

use crate::{
    HistoryEntry, Reader, StoreError, failed,
    item::{self, Item},
};

/// Which finished transitions are wanted: those that ended in [`since`, `until`).
///
/// [`since`]: Self::since
/// [`until`]: Self::until
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Ended then or later.
    pub since: Timestamp,
    /// Ended earlier.
    pub until: Timestamp,
    /// Only those under this schedule.
    pub schedule: Option<ScheduleName>,
}

/// Some of the finished transitions that are wanted; it may be empty though others follow.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HistoryPage {
    /// Those that can be read.
    pub entries: Vec<HistoryEntry>,
    /// How many cannot: of a newer format, or malformed.
    pub unreadable: usize,
}

/// Finished transitions, a page at a time.
#[derive(Debug)]
pub struct HistoryPages {
    client: Client,
    table: String,
    wanted: Finished,
    of: Option<ResourceRef>,
    next: Next,
}

/// Where the next page begins.
#[derive(Debug)]
enum Next {
    First,
    After(Item),
    End,
}

impl Reader {
    /// The finished transitions of all resources: those of one resource come together, oldest
    /// first. Reads the whole table, whatever is wanted of it.
    #[must_use]
    pub fn history_between(&self, wanted: Finished) -> HistoryPages {
        self.history_pages(wanted, None)
    }

    /// One resource's finished transitions, newest first.
    #[must_use]
    pub fn history_of(&self, reference: &ResourceRef, wanted: Finished) -> HistoryPages {
        self.history_pages(wanted, Some(reference.clone()))
    }

    fn history_pages(&self, wanted: Finished, of: Option<ResourceRef>) -> HistoryPages {
        HistoryPages {
            client: self.client.clone(),
            table: self.tables.history.clone(),
            wanted,
            of,
            next: Next::First,
        }
    }
}

impl HistoryPages {
    /// The next page; none after the last.
    pub async fn next(&mut self) -> Result<Option<HistoryPage>, StoreError> {
        let start = match std::mem::replace(&mut self.next, Next::End) {
            Next::First => None,
            Next::After(key) => Some(key),
            Next::End => return Ok(None),
        };
        let (items, last) = match &self.of {
            Some(reference) => self.query(reference, start).await?,
            None => self.scan(start).await?,
        };
        if let Some(key) = last {
            self.next = Next::After(key);
        }
        let mut page = HistoryPage::default();
        for item in items {
            match item::to_history(item) {
                Ok(entry) if self.wanted.includes(&entry) => page.entries.push(entry),
                Ok(_) => {}
                Err(_) => page.unreadable += 1,
            }
        }
        Ok(Some(page))
    }

    async fn scan(&self, start: Option<Item>) -> Result<(Vec<Item>, Option<Item>), StoreError> {
        let filter = self.wanted.filter();
        let answer = self
            .client
            .scan()
            .table_name(&self.table)
            .filter_expression(filter.expression)
            .set_expression_attribute_names(filter.names)
            .set_expression_attribute_values(Some(filter.values))
            .set_exclusive_start_key(start)
            .consistent_read(true)
            .send()
            .await
            .map_err(failed("read history"))?;
        let last = answer.last_evaluated_key;
        Ok((answer.items.unwrap_or_default(), last))
    }

    async fn query(
        &self,
        reference: &ResourceRef,
        start: Option<Item>,
    ) -> Result<(Vec<Item>, Option<Item>), StoreError> {
        let filter = self.wanted.filter();
        let answer = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("#reference = :reference")
            .filter_expression(filter.expression)
            .set_expression_attribute_names(filter.names)
            .set_expression_attribute_values(Some(filter.values))
            .expression_attribute_names("#reference", "reference")
            .expression_attribute_values(":reference", item::text(&reference.to_string()))
            .scan_index_forward(false)
            .set_exclusive_start_key(start)
            .consistent_read(true)
            .send()
            .await
            .map_err(failed("read history"))?;
        let last = answer.last_evaluated_key;
        Ok((answer.items.unwrap_or_default(), last))
    }
}

/// What the engine is to leave out, to the second.
struct Filter {
    expression: &'static str,
    names: Option<HashMap<String, String>>,
    values: Item,
}

impl Finished {
    fn includes(&self, entry: &HistoryEntry) -> bool {
        let schedule = self.schedule.is_none() || self.schedule == entry.schedule;
        schedule && (self.since..self.until).contains(&entry.finished_at)
    }

    /// By what an item expires at: a number, and as long after the end for all of them. The text
    /// of an instant has as many digits as it needs, so that texts do not compare as instants do.
    fn filter(&self) -> Filter {
        let mut values = Item::from([
            (":since".to_owned(), item::expires_at(self.since)),
            (":until".to_owned(), item::expires_at(self.until)),
        ]);
        let Some(schedule) = &self.schedule else {
            return Filter {
                expression: "expires_at BETWEEN :since AND :until",
                names: None,
                values,
            };
        };
        values.insert(":schedule".to_owned(), item::text(schedule.as_str()));
        Filter {
            expression: "expires_at BETWEEN :since AND :until AND #schedule = :schedule",
            names: Some(HashMap::from([(
                "#schedule".to_owned(),
                "schedule".to_owned(),
            )])),
            values,
        }
    }
}
