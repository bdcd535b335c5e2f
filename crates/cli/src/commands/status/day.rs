//! The day of each resource as a picture: what ran until now, and what is desired from now on.

use std::collections::BTreeMap;

use page::Input;
use publish::overview;
use report::{
    history::Period,
    strip::{Strip, around},
};
use store::Store;

use super::View;
use crate::{
    names::history::report_unreadable,
    output::Format,
    strips::{Before, Picture},
};

/// Draws the 24 hours around now that the page shows, in a row for each resource of a view.
pub(super) async fn draw(view: &View<'_>, store: &Store) -> anyhow::Result<String> {
    if view.screen.format != Format::Table {
        bail_usage!("--day is a picture: leave -o out");
    }
    let (zone, now) = (&view.screen.zone, view.screen.now);
    let period = around(now);
    let begin = period.from.to_zoned(zone.clone()).time();
    let draw = |input: &Input<'_>| {
        let mut picture = Picture::new(&view.screen, Before::Ran, 32, begin);
        let records = input.records.iter().map(|record| (&record.reference, record));
        let records: BTreeMap<_, _> = records.collect();
        for row in &view.rows {
            let Some(record) = records.get(&row.resource) else { continue };
            let course = input.past.courses.get(&row.resource);
            let strip = Strip::of_resource(record, input.in_force.rules(), course, period, now);
            picture.row(&row.name, &strip, "");
        }
        picture.finish()
    };
    let since = Period { until: now, ..period };
    let shown = overview::show(store, &view.in_force, None, since, zone, now, draw);
    let (day, unreadable) = shown.await?;
    report_unreadable(unreadable);
    Ok(day)
}
