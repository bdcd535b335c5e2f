//! A person's approval of resources that were held because too many joined at once.

use domain::{ResourceRef, decision::due_at};
use store::StoreError;

use crate::{
    Context, Error, Report,
    event::{Event, Occurrence},
    report::reread,
};

/// Releases those of these resources that are held, and recomputes when they are due.
pub async fn approve(context: Context<'_>, resources: &[ResourceRef]) -> Result<Report, Error> {
    let (store, now) = (context.store, context.clock.now());
    let mut report = Report::default();
    let records = store.records(resources).await?;
    let records = report.readable(records);
    // Read after the records, so that the generation that handled them is known here.
    let in_force = store.in_force().await?;
    for record in records {
        let reference = record.reference.clone();
        let mut base = Some(record);
        // Others may write at the same time; approval does not depend on what they wrote.
        while let Some(mut record) = base.take().filter(|record| record.held) {
            record.approve(now);
            record.due_at = due_at(&record, in_force.rules(), now);
            match store.save(record).await {
                Ok(record) => report.add(context, [Occurrence::of(&record, now, Event::Approved)]),
                Err(StoreError::Stale { .. }) => base = reread(store, &reference).await?,
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(report)
}
