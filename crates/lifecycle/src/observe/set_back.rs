//! What is behind the records: a configuration that is older than it should be, because the table
//! `schedules` was restored from a backup or something other than an apply wrote the head; or the
//! time, because a clock was ahead.

use domain::{record::Record, text::in_utc};
use jiff::Timestamp;
use store::{InForce, Store, StoreError};

use crate::event::Event;

/// Returns the events of an account whose records were read before what is in force.
pub(crate) async fn events(
    store: &Store,
    records: &[Record],
    in_force: &InForce,
    now: Timestamp,
) -> Result<Vec<Event>, StoreError> {
    let generation = in_force.configuration.generation;
    let applied = store.applied_instead(generation).await?;
    let overruled = applied.map(|applied| Event::ConfigurationOverruled {
        in_force: generation,
        applied: applied.generation,
        by: applied.author,
    });
    let ahead = [ahead(records, in_force), handled_ahead(records, now)];
    Ok(ahead.into_iter().flatten().chain(overruled).collect())
}

/// Returns the event of records that were handled under a later generation than the one in force:
/// the configuration is behind them, so nothing is done about them.
fn ahead(records: &[Record], in_force: &InForce) -> Option<Event> {
    let generation = in_force.configuration.generation;
    let ahead = records.iter().filter(|r| r.is_ahead_of(generation));
    let handled = ahead.filter_map(|record| record.handled.as_ref());
    let generations: Vec<_> = handled.map(|handled| handled.generation).collect();
    let last = generations.iter().max()?;
    Some(Event::postponed(format!(
        "nothing is done about {} of its resources: generation {last} has handled them, and \
         generation {generation} is in force. The table `schedules` was restored from a backup: \
         `offhours apply` again",
        generations.len(),
    )))
}

/// Returns the event of records whose edges a clock that was ahead has handled.
fn handled_ahead(records: &[Record], now: Timestamp) -> Option<Event> {
    let until: Vec<_> = records.iter().filter_map(|record| record.handled_ahead(now)).collect();
    let last = in_utc(*until.iter().max()?);
    Some(Event::postponed(format!(
        "nothing is done about {} of its resources until {last} at the latest: a clock that was \
         ahead has handled their edges until then. `offhours start` or `offhours stop` puts each \
         right",
        until.len(),
    )))
}
