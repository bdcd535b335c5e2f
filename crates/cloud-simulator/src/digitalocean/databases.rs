//! Resizes of database clusters.

use crate::{
    account::{Account, Timeline},
    answer::Refusal,
    databases::{DatabaseStatus, Resize},
};

pub(crate) fn resize(
    account: &mut Account,
    timeline: &mut Timeline,
    id: &str,
    mut resize: Resize,
) -> Result<(), Refusal> {
    let owner = account.index;
    let database = account.databases.get_mut(id);
    let database = database.ok_or_else(Refusal::not_found)?;
    resize.storage_size_mib = Some(database.disk_after(&resize)?);
    database.resizing_to = Some(resize);
    let (takes, shows_after) = (database.resize, database.resizing_shows_after);
    if shows_after.is_zero() && timeline.slowness.is_zero() {
        database.status = DatabaseStatus::Resizing;
    } else {
        let id = id.to_owned();
        timeline.after(owner, shows_after, move |account, _| {
            if let Some(database) = account.databases.get_mut(&id)
                && database.resizing_to.is_some()
            {
                database.status = DatabaseStatus::Resizing;
            }
        });
    }
    let id = id.to_owned();
    timeline.after(owner, takes, move |account, timeline| {
        if let Some(database) = account.databases.get_mut(&id) {
            database.end_resize();
            let (meter, size) = (database.meter(), database.priced_as());
            account.ledger.change(&meter, timeline.now(), &size);
        }
    });
    Ok(())
}
