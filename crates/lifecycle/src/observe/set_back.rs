//! A configuration in force that is older than it should be: the table `schedules` was restored from
//! a backup, or something other than an apply wrote the head.

use domain::record::Record;
use store::{InForce, Store, StoreError};

use crate::event::Event;

/// Returns the events of an account whose records were read before what is in force.
pub(crate) async fn events(
    store: &Store,
    records: &[Record],
    in_force: &InForce,
) -> Result<Vec<Event>, StoreError> {
    let generation = in_force.configuration.generation;
    let applied = store.applied_instead(generation).await?;
    let overruled = applied.map(|applied| Event::ConfigurationOverruled {
        in_force: generation,
        applied: applied.generation,
        by: applied.author,
    });
    Ok(ahead(records, in_force).into_iter().chain(overruled).collect())
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
