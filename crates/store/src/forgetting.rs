//! Deleting a record that a person wants forgotten; what it is owed goes to history.

use domain::{
    history::HistoryEntry,
    record::{Cause, Ending, Record},
};
use jiff::Timestamp;

use crate::{Store, StoreError};

impl Store {
    /// Deletes a record that has not been written since it was read, and writes to history what it
    /// is owed and that `who` gave it up: both or neither.
    ///
    /// # Errors
    /// [`StoreError::Stale`] if another writer was first.
    pub async fn forget(
        &self,
        record: &Record,
        who: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let entry = self.put_history(&given_up(record, who, now))?;
        let record_gone = Some(self.delete_record(record));
        let refused = self.write_all("delete a record", vec![entry], record_gone);
        if refused.await?.is_none() {
            return Ok(());
        }
        match self.record(&record.reference).await? {
            // The response to an earlier try was lost, or another person was first.
            None => Ok(()),
            Some(current) => Err(StoreError::Stale {
                current: Some(Box::new(current)),
            }),
        }
    }
}

fn given_up(record: &Record, who: &str, now: Timestamp) -> HistoryEntry {
    let cause = Cause::Manual { by: who.to_owned() };
    HistoryEntry {
        schedule: None,
        ..HistoryEntry::unasked(record, cause, Ending::Forgotten, now)
    }
}
