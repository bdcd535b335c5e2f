//! How overrides are shown to people and to programs.

use domain::{
    ScheduleName,
    configuration::{Override, OverrideTarget},
    decision::judge,
    membership::Subject,
    record::Record,
    schedule::{Desired, desired_or_any},
};
use indexmap::IndexMap;
use report::resource::ResourceView;
use schemars::JsonSchema;
use serde::Serialize;
use store::InForce;

use super::change::{Change, after, begins_later};
use crate::{
    commands::{manual::in_a_line, targets::Selected},
    names::record_of,
    print::{self, Cell, Column, Screen},
};

/// One override, and what takes over when it ends.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::commands) struct OverrideView {
    /// The override.
    #[serde(flatten)]
    one: Override,
    /// The resource's name; null if it is unknown, or if a schedule is overridden.
    name: Option<String>,
    /// Whether the override has not ended yet.
    active: bool,
    /// The schedule that takes over when the override ends; null if there is none, and its target
    /// stays as it is.
    follows: Option<ScheduleName>,
    /// The desired state when the override ends; null if either state will do.
    then: Option<Desired>,
}

impl OverrideView {
    pub(super) fn of(one: &Override, in_force: &InForce, records: &[Record], active: bool) -> Self {
        let record = record_of(&one.target, records);
        let (follows, then) = match (&one.target, record) {
            (_, Some(record)) => {
                let subject = Subject::recorded(record);
                let verdict = judge(record, subject, in_force.rules(), one.ends_at);
                let schedule = verdict.membership.schedule().cloned();
                let then = verdict.desired.filter(|_| schedule.is_some());
                (schedule, then)
            }
            (OverrideTarget::Schedule(name), None) => {
                let rule = in_force.configuration.schedules.get(name);
                let then = rule.and_then(|rule| rule.schedule.desired_at(one.ends_at));
                (rule.map(|_| name.clone()), then)
            }
            (OverrideTarget::Resource(_), None) => (None, None),
        };
        let name = record.map(|record| record.name.clone());
        Self { one: one.clone(), name, active, follows, then }
    }

    fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.one.target.to_string())
    }

    fn then(&self) -> String {
        match &self.follows {
            None => "as it is".to_owned(),
            Some(schedule) => format!("{schedule}: {}", desired_or_any(self.then)),
        }
    }
}

/// Overrides that were set, extended or cleared, or would be with --dry-run.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::commands) struct Answer {
    /// Whether this was a dry run, so that nothing was written.
    dry_run: bool,
    /// The overrides after the change. One that is cleared ends at that instant.
    overrides: Vec<OverrideView>,
    /// The resources that this concerns, as `offhours status` shows them after the change.
    resources: Vec<ResourceView>,
}

impl Answer {
    pub(super) fn of(
        changes: &[Change],
        selected: &Selected,
        screen: &Screen,
        dry_run: bool,
    ) -> Self {
        let now = screen.now;
        let (after, at) = after(changes, &selected.in_force, now);
        let view = |change: &Change| {
            OverrideView::of(&change.one, &after, &selected.records, !change.clears)
        };
        let row = |record| ResourceView::of(record, &after, &screen.zone, at);
        Self {
            dry_run,
            overrides: changes.iter().map(view).collect(),
            resources: selected.records.iter().map(row).collect(),
        }
    }

    /// Reports whether a person has to see to one of the resources.
    pub(super) fn needs_person(&self) -> bool {
        self.resources.iter().any(|row| row.needs_person().is_some())
    }

    /// The answer for people: a line for each distinct end, and the rows of `offhours status`.
    pub(super) fn text(&self, screen: &Screen) -> String {
        let mut lines: IndexMap<String, Vec<String>> = IndexMap::new();
        for view in &self.overrides {
            let (then, Override { desired, set_at, ends_at, .. }) = (view.then(), &view.one);
            let line = if !view.active {
                format!("no longer overridden, now {then}")
            } else if begins_later(&view.one, screen.now) {
                let (from, until) = (screen.date(*set_at), screen.date(*ends_at));
                format!("{desired} from {from} until {until}, then {then}")
            } else {
                format!("{desired} until {}, then {then}", screen.date(*ends_at))
            };
            lines.entry(line).or_default().push(view.label());
        }
        let dry_run = self.dry_run.then(|| "Dry run: nothing is written.\n".to_owned());
        let line = |(line, labels): (&String, &Vec<String>)| {
            format!("{}: {line}\n", in_a_line(labels.iter().map(String::as_str)))
        };
        let mut text: String = dry_run.into_iter().chain(lines.iter().map(line)).collect();
        if !self.resources.is_empty() {
            text += "\n";
            text += &screen.table(&self.resources);
        }
        text
    }
}

impl print::Row for OverrideView {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::Fixed("Target", |row, _| Cell::new(row.label())),
        Column::Fixed("Desired", |row, _| Cell::desired(row.one.desired)),
        Column::Wide("Since", |row, screen| {
            let from = if begins_later(&row.one, screen.now) { "from " } else { "" };
            Cell::new(format!("{from}{}", screen.time(row.one.set_at)))
        }),
        Column::Time("Until", |row, screen| Cell::new(screen.time(row.one.ends_at))),
        Column::Fixed("Then", |row, _| Cell::new(row.then())),
        Column::Text("By", |row, _| {
            let Override { by, why, .. } = &row.one;
            Cell::new(why.as_ref().map_or(by.clone(), |why| format!("{by}: {why}")))
        }),
    ];
}
