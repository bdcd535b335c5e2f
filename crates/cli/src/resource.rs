//! One resource in a row, with the main columns or all of them.

use domain::{configuration::PauseScope, schedule::desired_or_any};
use report::{joined, resource::ResourceView};

use crate::{
    output::shortened,
    print::{Cell, Column, Row, Screen},
};

/// The one thing that is worth saying of it in a line.
fn said(view: &ResourceView, screen: &Screen) -> Option<String> {
    if let Some(live) = &view.live {
        return Some(live.clone());
    }
    let problem = view.needs_person().map(|problem| &problem.what);
    if let Some(problem) = problem.or(view.last_error.as_ref()) {
        return Some(shortened(problem));
    }
    let overridden = view.override_in_words(&screen.zone, screen.now);
    // A pause of everything is said above all rows.
    let paused = view.paused.as_ref().filter(|one| one.scope != PauseScope::Everything);
    let paused = paused.map(|one| {
        let until = screen.time(one.ends_at);
        format!("paused until {until} ({}, {})", one.by, one.why)
    });
    let unscheduled = view.schedule.is_none().then(|| view.because.clone());
    let said = paused.or(overridden);
    said.or_else(|| view.remark.clone()).or_else(|| view.busy.clone()).or(unscheduled)
}

fn marked(view: &ResourceView, _: &Screen) -> Cell {
    let cell = Cell::new(&view.state);
    match view.needs_person() {
        Some(_) => cell.alarming(),
        None => cell.coloured_by(view.desired),
    }
}

fn next(view: &ResourceView, screen: &Screen) -> Cell {
    let next = view.next.as_ref();
    Cell::any(next.map(|next| format!("{} {}", desired_or_any(next.to), screen.time(next.at))))
}

impl Row for ResourceView {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::Fixed("Name", |view, _| Cell::new(&view.name)),
        Column::Fixed("Schedule", |view, _| Cell::any(view.schedule.as_ref())),
        Column::Fixed("State", marked),
        Column::Time("Next", next),
        Column::Wide("Saved", |view, _| Cell::any(view.owed())),
        Column::Text("Remark", |view, screen| Cell::any(said(view, screen))),
    ];
}

/// All that identifies and describes a resource.
const WIDE: &[Column<ResourceView>] = &[
    Column::Fixed("Resource", |view, _| Cell::new(&view.resource)),
    Column::Fixed("Name", |view, _| Cell::new(&view.name)),
    Column::Wide("Size", |view, _| Cell::any(view.size.as_ref())),
    Column::Wide("Region", |view, _| Cell::new(&view.region)),
    Column::Fixed("Schedule", |view, _| Cell::any(view.schedule.as_ref())),
    Column::Wide("Because", |view, _| Cell::new(&view.because)),
    Column::Wide("Desired", |view, _| Cell::desired(view.desired)),
    Column::Fixed("State", marked),
    Column::Time("Next", next),
    Column::Wide("Saved", |view, _| Cell::any(view.owed())),
    Column::Wide("Tags", |view, _| Cell::new(joined(&view.tags, " "))),
    Column::Text("Remark", |view, screen| {
        let is_said = view.schedule.is_none() && view.needs_person().is_none();
        if is_said { Cell::default() } else { Cell::any(said(view, screen)) }
    }),
];

/// The same table with all columns.
pub(crate) fn wide(views: &[ResourceView], screen: &Screen) -> String {
    screen.table_of(WIDE, views)
}

#[cfg(test)]
mod tests {
    use domain::record::Record;
    use jiff::tz::TimeZone;

    use super::*;
    use crate::scene::{OFFICE, database, in_force, machine, monday, pool, web};

    /// A record for every way of being covered, and for every way of not being covered.
    fn records() -> Vec<Record> {
        let mut kafka = database("do-main/database/k", "stream", &["offhours:office"]);
        kafka.unsupported = Some("no smaller plan".to_owned());
        let mut held = machine("do-main/droplet/2", "held", &["offhours:office"]);
        held.held = true;
        let mut doubled = machine("hz-eu/server/7", "ci", &["offhours=office"]);
        doubled.duplicate_of = Some("hz-two/server/7".parse().unwrap());
        let mut busy = database("do-main/database/d", "orders", &["offhours:office"]);
        busy.observed.as_mut().unwrap().busy = Some("status is resizing".to_owned());
        vec![
            busy,
            kafka,
            web(),
            held,
            machine("do-main/droplet/3", "plain", &["team:web"]),
            machine("do-main/droplet/4", "opted-out", &["offhours:off"]),
            machine("do-main/droplet/5", "prod-web", &["offhours:office"]),
            machine("do-main/droplet/6", "typo", &["offhours:ofice"]),
            machine("do-main/droplet/8", "twice", &["offhours:night", "offhours:office"]),
            pool("do-main/node-pool/c/p", "general", &["offhours:office"]),
            doubled,
            machine("hz-eu/server/9", "listed", &[]),
        ]
    }

    fn views() -> Vec<ResourceView> {
        let in_force = in_force(&format!("{OFFICE}resources = [\"hz-eu/server/9\"]\n"));
        let now = monday("10:00:00");
        let view = |record| ResourceView::of(record, &in_force, &TimeZone::UTC, now);
        records().iter().map(view).collect()
    }

    #[test]
    fn every_resource_says_what_it_follows_or_why_it_follows_nothing() {
        let views = views();
        let screen = Screen::plain(&TimeZone::UTC, monday("10:00:00"));
        insta::assert_snapshot!(screen.table(&views), @"
        Name       Schedule  State    Next                   Remark
        orders     office    running  stopped Mon 18:00 UTC  status is resizing
        stream               running                         no smaller plan
        web        office    running  stopped Mon 18:00 UTC
        held       office    running  stopped Mon 18:00 UTC  held: too many joined schedules at once
        plain                running                         no schedule names it
        opted-out            running                         opted out by a tag on the resource
        prod-web             running                         protected by `name:*prod*`
        typo                 running                         its tag names the schedule `ofice`, which does not exist
        twice                running                         conflict: night and office both name it by tag
        general    office    running  stopped Mon 18:00 UTC
        ci                   running                         conflict: also reached as hz-two/server/7
        listed     office    running  stopped Mon 18:00 UTC
        ");
        insta::assert_snapshot!(wide(&views, &screen), @"
        Resource               Name       Size                   Region  Schedule  Because                                                     Desired  State    Next                   Tags                            Remark
        do-main/database/d     orders     2 x db-s-2vcpu-4gb     fra1    office    by its tag                                                  running  running  stopped Mon 18:00 UTC  offhours:office                 status is resizing
        do-main/database/k     stream     2 x db-s-2vcpu-4gb     fra1              no smaller plan                                             any      running                         offhours:office
        do-main/droplet/1      web        s-1vcpu-1gb            fra1    office    by its tag                                                  running  running  stopped Mon 18:00 UTC  offhours:office
        do-main/droplet/2      held       s-1vcpu-1gb            fra1    office    by its tag                                                  running  running  stopped Mon 18:00 UTC  offhours:office                 held: too many joined schedules at once
        do-main/droplet/3      plain      s-1vcpu-1gb            fra1              no schedule names it                                        any      running                         team:web
        do-main/droplet/4      opted-out  s-1vcpu-1gb            fra1              opted out by a tag on the resource                          any      running                         offhours:off
        do-main/droplet/5      prod-web   s-1vcpu-1gb            fra1              protected by `name:*prod*`                                  any      running                         offhours:office
        do-main/droplet/6      typo       s-1vcpu-1gb            fra1              its tag names no schedule: `ofice`; did you mean `office`?  any      running                         offhours:ofice                  its tag names the schedule `ofice`, which does not exist
        do-main/droplet/8      twice      s-1vcpu-1gb            fra1              conflict: night and office both name it by tag              any      running                         offhours:night offhours:office  conflict: night and office both name it by tag
        do-main/node-pool/c/p  general    3 x s-2vcpu-4gb (1-6)  fra1    office    by the tag of its cluster                                   running  running  stopped Mon 18:00 UTC  offhours:office
        hz-eu/server/7         ci         s-1vcpu-1gb            fra1              conflict: also reached as hz-two/server/7                   any      running                         offhours=office                 conflict: also reached as hz-two/server/7
        hz-eu/server/9         listed     s-1vcpu-1gb            fra1    office    in the list of its schedule                                 running  running  stopped Mon 18:00 UTC
        ");
    }

    #[test]
    fn every_view_has_the_shape_that_its_schema_says() {
        let schema = crate::shape::schema_of::<ResourceView>();
        let schema = jsonschema::validator_for(schema.as_value()).unwrap();
        for view in views() {
            let view = serde_json::to_value(view).unwrap();
            assert!(schema.is_valid(&view), "{view:#}");
        }
    }
}
