//! A person's approval of resources that were held because too many joined at once.

use domain::{decision::due_at, record::Record};
use jiff::Timestamp;
use store::{Store, StoreError};

use crate::{Error, report::reread};

/// Releases the held records that `which` selects, and recomputes when they are due. Returns them
/// as written.
pub async fn approve(
    store: &Store,
    which: impl Fn(&Record) -> bool,
    now: Timestamp,
) -> Result<Vec<Record>, Error> {
    let mut approved = Vec::new();
    let before = store.in_force().await?;
    for account in before.configuration.accounts.keys() {
        // What a newer program wrote is left alone.
        let records = store.records_of(account).await?.read;
        // Read after the records, so that the generation that handled them is known here.
        let in_force = store.in_force().await?;
        for record in records.into_iter().filter(|r| r.held && which(r)) {
            let reference = record.reference.clone();
            let mut base = Some(record);
            // Others may write at the same time; approval does not depend on what they wrote.
            while let Some(mut record) = base.take().filter(|record| record.held) {
                record.held = false;
                record.lost_storage = None;
                record.joined_at = Some(now);
                record.due_at = due_at(&record, in_force.rules(), now);
                match store.save(record).await {
                    Ok(record) => approved.push(record),
                    Err(StoreError::Stale { .. }) => base = reread(store, &reference).await?,
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
    Ok(approved)
}
