//! Records handled under a later generation than the one in force: the table `schedules` was
//! restored from a backup. The configuration in force is behind these records, so nothing is done
//! about them.

use domain::record::Record;
use store::InForce;

use crate::event::Event;

/// Returns the event for an account with such records, which must be read before what is in force.
pub(crate) fn event(records: &[Record], in_force: &InForce) -> Option<Event> {
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
