//! Deleting a record that a person wants forgotten; what it is owed, and what only it describes, go
//! to history.

use domain::{
    activity::{Action, Author},
    history::HistoryEntry,
    record::{Cause, Ending, Record},
};
use jiff::Timestamp;

use crate::{Store, StoreError};

impl Store {
    /// Deletes a record that has not been written since it was read, and writes to history what it
    /// is owed and what it is recreated from, and there and to the activity log who gave it up: all
    /// or nothing.
    ///
    /// # Errors
    /// [`StoreError::Stale`] if another writer was first.
    pub async fn forget(
        &self,
        record: &Record,
        author: impl Into<Author>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let author = author.into();
        let resource = record.reference.clone();
        let activity = author.does(Action::Forgotten { resource }, now);
        let entries =
            vec![self.put_history(&given_up(record, &author, now))?, self.put_activity(&activity)?];
        let record_gone = Some(self.delete_record(record));
        let refused = self.write_all("delete a record", entries, record_gone);
        if refused.await?.is_none() {
            return Ok(());
        }
        match self.record(&record.reference).await? {
            // The response to an earlier try was lost, or another person was first.
            None => Ok(()),
            Some(current) => Err(StoreError::Stale { current: Some(Box::new(current)) }),
        }
    }
}

fn given_up(record: &Record, author: &Author, now: Timestamp) -> HistoryEntry {
    let cause = Cause::Manual { by: author.by.to_string() };
    HistoryEntry {
        schedule: None,
        hibernation: record.hibernation.clone(),
        ..HistoryEntry::unasked(record, cause, Ending::Forgotten, now)
    }
}
