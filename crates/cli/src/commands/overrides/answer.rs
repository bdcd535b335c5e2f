//! How overrides are shown to people and to programs.

use domain::{
    ResourceRef, ScheduleName,
    configuration::{Override, Target},
    decision::judge,
    membership::{Membership, Subject},
    record::Record,
    schedule::{Desired, desired_or_any},
};
use indexmap::IndexMap;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use store::InForce;

use super::change::{Change, after, has_not_ended};
use crate::{
    commands::{manual::in_a_line, targets::Selected},
    print::{self, Screen},
    resource::ResourceView,
    table::{Cell, Column},
};

/// One override.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::commands) struct OverrideView {
    /// The resource that is overridden; null if it is a schedule.
    resource: Option<ResourceRef>,
    /// The resource's name; null if it is unknown, or if a schedule is overridden.
    name: Option<String>,
    /// The schedule that is overridden; null if it is a resource.
    schedule: Option<ScheduleName>,
    /// The state in which the override keeps its target.
    desired: Desired,
    /// When the override was set, or the later instant at which it begins.
    set_at: Timestamp,
    #[serde(skip)]
    begins_later: bool,
    /// When the override ends, exclusive.
    ends_at: Timestamp,
    /// Whether the override has not ended yet.
    active: bool,
    /// Who set it, or extended it.
    by: String,
    /// The reason; null if none was given.
    why: Option<String>,
    /// The schedule that takes over when the override ends; null if there is none, and its target
    /// stays as it is.
    follows: Option<ScheduleName>,
    /// The desired state when the override ends; null if either state will do.
    then: Option<Desired>,
}

impl OverrideView {
    pub(super) fn of(
        one: &Override,
        in_force: &InForce,
        records: &[Record],
        now: Timestamp,
    ) -> Self {
        let schedules = &in_force.configuration.schedules;
        let (resource, schedule, record) = match &one.target {
            Target::Resource(reference) => {
                let record = records.iter().find(|record| record.reference == *reference);
                (Some(reference.clone()), None, record)
            }
            Target::Schedule(name) => (None, Some(name.clone()), None),
        };
        let (follows, then) = match (record, schedule.as_ref()) {
            (Some(record), _) => {
                let subject = Subject::recorded(record);
                let membership = Membership::of(subject, &in_force.configuration);
                let verdict = judge(record, subject, in_force.rules(), one.ends_at);
                let schedule = membership.schedule().cloned();
                let then = verdict.desired.filter(|_| schedule.is_some());
                (schedule, then)
            }
            (None, Some(name)) => {
                let rule = schedules.get(name);
                let then = rule.and_then(|rule| rule.schedule.desired_at(one.ends_at));
                (rule.map(|_| name.clone()), then)
            }
            (None, None) => (None, None),
        };
        Self {
            resource,
            name: record.map(|record| record.name.clone()),
            schedule,
            desired: one.desired,
            set_at: one.set_at,
            begins_later: one.set_at > now,
            ends_at: one.ends_at,
            active: has_not_ended(one, now),
            by: one.by.clone(),
            why: one.why.clone(),
            follows,
            then,
        }
    }

    fn label(&self) -> String {
        match (&self.schedule, &self.resource, &self.name) {
            (Some(schedule), _, _) => format!("schedule {schedule}"),
            (None, _, Some(name)) => name.clone(),
            (None, Some(resource), None) => resource.to_string(),
            (None, None, None) => String::new(),
        }
    }

    /// What takes over when it ends.
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
        let view = |change: &Change| OverrideView {
            begins_later: change.begins_later(now),
            active: !change.clears,
            ..OverrideView::of(&change.one, &after, &selected.records, now)
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
        for one in &self.overrides {
            let then = one.then();
            let line = if one.active {
                let from = one.begins_later.then(|| format!("from {} ", screen.date(one.set_at)));
                let from = from.unwrap_or_default();
                format!("{} {from}until {}, then {then}", one.desired, screen.date(one.ends_at))
            } else {
                format!("no longer overridden, now {then}")
            };
            lines.entry(line).or_default().push(one.label());
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
    const COLUMNS: &'static [Column] = &[
        Column::of("Target"),
        Column::of("Desired"),
        Column::wide("Since"),
        Column::of("Until"),
        Column::of("Then"),
        Column::text("By"),
    ];

    fn cells(&self, screen: &Screen) -> Vec<Cell> {
        let (since, until) = (screen.time(self.set_at), screen.time(self.ends_at));
        let by = match &self.why {
            Some(why) => format!("{}: {why}", self.by),
            None => self.by.clone(),
        };
        vec![
            Cell::new(self.label()),
            Cell::desired(self.desired),
            Cell::new(if self.begins_later { format!("from {since}") } else { since }),
            Cell::new(if self.active { until } else { format!("ended {until}") }),
            Cell::new(self.then()),
            Cell::new(by),
        ]
    }
}
