//! How overrides are shown to people and to programs.

use domain::{
    ResourceRef, ScheduleName,
    configuration::{Override, Target},
    record::SKEW,
    schedule::{Desired, desired_or_any},
};
use jiff::{Timestamp, tz::TimeZone};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    effects::{Concerned, Effect, Governor, StoredState},
    has_not_ended,
};
use crate::{
    configuration_file::count,
    print::{self, Screen},
    table::{Cell, Column},
    time::local,
};

/// The most resources that are named on one line.
const MANY: usize = 8;

/// The zones in which instants are shown: the schedule's, and the reader's own.
#[derive(Debug)]
pub(super) struct DisplayZones {
    there: TimeZone,
    here: TimeZone,
}

impl DisplayZones {
    pub(super) fn of(stored: StoredState<'_>, target: &Target, here: TimeZone) -> Self {
        Self { there: stored.zone(target, &here).clone(), here }
    }

    /// Formats an instant in both zones, or once if they show the same time.
    pub(super) fn both(&self, at: Timestamp) -> String {
        let (there, here) = (local(at, &self.there), local(at, &self.here));
        if there == here { there } else { format!("{there} ({here} here)") }
    }
}

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
    /// Who set it.
    by: String,
    /// The reason; null if none was given.
    why: Option<String>,
    /// What takes over when the override ends.
    then: Governor,
    /// The time zone in which its times are read, that of its schedule; null if its target follows
    /// none.
    timezone: Option<String>,
}

impl OverrideView {
    pub(super) fn of(stored: StoredState<'_>, one: &Override, now: Timestamp) -> Self {
        let (resource, schedule) = match &one.target {
            Target::Resource(reference) => (Some(reference.clone()), None),
            Target::Schedule(name) => (None, Some(name.clone())),
        };
        let follows = stored.schedule(&one.target).map(|(_, rule)| &rule.schedule);
        Self {
            resource,
            name: stored.record(&one.target).map(|record| record.name.clone()),
            schedule,
            desired: one.desired,
            set_at: one.set_at,
            begins_later: one.set_at > now,
            ends_at: one.ends_at,
            active: has_not_ended(one, now),
            by: one.by.clone(),
            why: one.why.clone(),
            then: stored.governor(&one.target, one.ends_at),
            timezone: follows.map(|schedule| schedule.definition().timezone.clone()),
        }
    }

    fn label(&self) -> String {
        match (&self.schedule, &self.resource, &self.name) {
            (Some(schedule), _, _) => format!("schedule {schedule}"),
            (None, Some(resource), Some(name)) => format!("{name} ({resource})"),
            (None, Some(resource), None) => resource.to_string(),
            (None, None, _) => String::new(),
        }
    }

    /// Who set it, and why.
    fn author(&self) -> String {
        match &self.why {
            Some(why) => format!("{}: {why}", self.by),
            None => self.by.clone(),
        }
    }
}

/// What was done to the override.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Done {
    /// The override holds from now on.
    Set,
    /// The override ends now.
    Cleared,
}

/// An override that was set or cleared, or would be with --dry-run.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::commands) struct ChangeReport {
    /// What was done: `set` or `cleared`.
    pub(super) done: Done,
    /// Whether this was a dry run, so that nothing was written.
    pub(super) dry_run: bool,
    /// The override after the change. One that is cleared ends at that instant.
    #[serde(rename = "override")]
    pub(super) row: OverrideView,
    /// What governs, or would govern, at the instant of the change without the override.
    pub(super) otherwise: Governor,
    /// How the end was understood, if the clock skips or repeats it; null otherwise.
    pub(super) remark: Option<String>,
    /// The active override of the same target that was there before; null if there was none.
    pub(super) replaced: Option<OverrideView>,
    /// The resources that the override concerns, and what happens to them.
    pub(super) resources: Vec<Concerned>,
}

impl ChangeReport {
    pub(super) fn new(
        done: Done,
        stored: StoredState<'_>,
        one: &Override,
        remark: Option<String>,
        now: Timestamp,
    ) -> Self {
        let from = match done {
            Done::Set => one.set_at,
            Done::Cleared => one.ends_at,
        };
        let before = stored.overrides.of(&one.target);
        let before = before.filter(|before| has_not_ended(before, now));
        Self {
            done,
            dry_run: false,
            row: OverrideView {
                begins_later: one.set_at > now + SKEW,
                ..OverrideView::of(stored, one, from)
            },
            otherwise: stored.governor(&one.target, from),
            remark,
            replaced: before.map(|before| OverrideView::of(stored, before, now)),
            resources: stored.effects(one, from),
        }
    }

    /// Reports whether a person has to approve something before it takes effect.
    pub(super) fn needs_person(&self) -> bool {
        let held = |one: &Concerned| one.held && one.effect == Effect::LeftAlone;
        self.resources.iter().any(held)
    }

    /// Asks whether to stop these resources, or to keep them stopped, until the end of the override.
    /// `None` if it stops none.
    pub(super) fn question(&self, zones: &DisplayZones) -> Option<String> {
        let are_stopped = |one: &&Concerned| match one.effect {
            Effect::Stops | Effect::AlreadyThere | Effect::UnderWay | Effect::Unchanged => {
                self.row.desired == Desired::Stopped
            }
            Effect::Starts
            | Effect::WouldStart
            | Effect::WouldStop
            | Effect::OwnOverride
            | Effect::LeftAlone => false,
        };
        let stopped: Vec<_> = self.resources.iter().filter(are_stopped).collect();
        let end = zones.both(self.row.ends_at);
        let resources = count(stopped.len(), "resource");
        let begin = self.begin(zones);
        (!stopped.is_empty())
            .then(|| format!("Stop {resources} {begin}until {end}: {}?", listed(&stopped)))
    }

    /// When it begins, if that is later than now.
    fn begin(&self, zones: &DisplayZones) -> String {
        if self.row.begins_later {
            format!("from {} ", zones.both(self.row.set_at))
        } else {
            String::new()
        }
    }

    /// The report for people.
    pub(super) fn text(&self, zones: &DisplayZones) -> String {
        let OverrideView { desired, ends_at, .. } = self.row;
        let mut lines: Vec<(&str, String)> = Vec::new();
        let title = match self.done {
            Done::Set => {
                lines.push(("instead of", instead(&self.otherwise, zones)));
                format!("{desired} {}until {}", self.begin(zones), zones.both(ends_at))
            }
            Done::Cleared => "no longer overridden".to_owned(),
        };
        lines.extend(self.remark.iter().map(|remark| ("note", remark.clone())));
        let replaced = self.replaced.as_ref().map(|replaced| {
            let until = zones.both(replaced.ends_at);
            format!("{} until {until}, by {}", replaced.desired, replaced.author())
        });
        match self.done {
            Done::Set => {
                lines.extend(replaced.map(|replaced| ("replaces", replaced)));
                let label = if self.row.begins_later { "at first" } else { "now" };
                let labels = std::iter::once(label).chain(std::iter::repeat(""));
                lines.extend(labels.zip(self.effects()));
                lines.push(("then", takes_over(&self.row.then, desired, zones)));
                lines.push(("by", self.row.author()));
            }
            Done::Cleared => {
                lines.extend(replaced.map(|replaced| ("was", replaced)));
                lines.push(("now", takes_over(&self.otherwise, desired, zones)));
                lines.extend(self.effects().into_iter().map(|effect| ("", effect)));
            }
        }
        let dry_run = self.dry_run.then(|| "Dry run: nothing is written.".to_owned());
        let title = format!("{}: {title}", self.row.label());
        let lines = lines.into_iter().map(|(label, line)| format!("  {label:<10}  {line}"));
        let text: Vec<_> = dry_run.into_iter().chain([title]).chain(lines).collect();
        text.join("\n") + "\n"
    }

    /// What happens to the resources, one line per effect.
    fn effects(&self) -> Vec<String> {
        let all = self.resources.as_slice();
        match (&self.row.resource, all) {
            _ if self.row.begins_later => vec![count(all.len(), "resource") + " at present"],
            (Some(_), [one]) => vec![alone(one)],
            (_, []) => vec!["nothing follows it at present".to_owned()],
            (_, [_]) => groups("1 resource follows it", all),
            (_, _) => groups(&format!("{} resources follow it", all.len()), all),
        }
    }
}

/// What happens to the only resource in question.
fn alone(one: &Concerned) -> String {
    let effect = words(one.effect);
    match &one.why {
        Some(why) => format!("{}; {effect}: {why}", one.state),
        None => format!("{}; {effect}", one.state),
    }
}

/// What happens to many resources, under a title and with one line per effect.
fn groups(title: &str, all: &[Concerned]) -> Vec<String> {
    let mut groups: Vec<(Effect, Vec<&Concerned>)> = Vec::new();
    for one in all {
        match groups.iter_mut().find(|(effect, _)| *effect == one.effect) {
            Some((_, group)) => group.push(one),
            None => groups.push((one.effect, vec![one])),
        }
    }
    let lines =
        groups.into_iter().map(|(effect, group)| format!("{}: {}", words(effect), listed(&group)));
    std::iter::once(title.to_owned()).chain(lines).collect()
}

fn listed(group: &[&Concerned]) -> String {
    let mut names: Vec<String> = group.iter().take(MANY).map(|one| named(one)).collect();
    if group.len() > MANY {
        names.push(format!("and {} more", group.len() - MANY));
    }
    names.join(", ")
}

fn named(one: &Concerned) -> String {
    match &one.why {
        Some(why) => format!("{} ({why})", one.name),
        None => one.name.clone(),
    }
}

fn words(effect: Effect) -> &'static str {
    match effect {
        Effect::Starts => "will be started at the next tick",
        Effect::Stops => "will be stopped at the next tick",
        Effect::WouldStart => "would be started, but observe mode sends nothing",
        Effect::WouldStop => "would be stopped, but observe mode sends nothing",
        Effect::AlreadyThere => "already as desired",
        Effect::UnderWay => "already on its way there",
        Effect::Unchanged => "nothing to do",
        Effect::OwnOverride => "under an override of its own",
        Effect::LeftAlone => "left alone",
    }
}

/// What would hold without the override.
fn instead(governor: &Governor, zones: &DisplayZones) -> String {
    match governor {
        Governor::Nothing => "nothing: it follows no schedule".to_owned(),
        Governor::Schedule { schedule, desired } => match desired {
            None => format!("nothing: {schedule} has no desired state now"),
            Some(desired) => format!("{desired}, as {schedule} wants it now"),
        },
        Governor::Override { schedule, desired, until } => format!(
            "{desired} until {}, by the override of schedule {schedule}",
            zones.both(*until)
        ),
    }
}

/// What takes over from an override whose desired state was `before`.
fn takes_over(governor: &Governor, before: Desired, zones: &DisplayZones) -> String {
    match governor {
        Governor::Nothing => "nothing takes over: it stays as it is".to_owned(),
        Governor::Schedule { schedule, desired } if *desired == Some(before) => {
            format!("{schedule} takes over: {before} too, so nothing happens")
        }
        Governor::Schedule { schedule, desired } => match desired {
            None => {
                format!("{schedule} takes over and has no desired state then: nothing happens")
            }
            Some(desired) => format!("{schedule} takes over: {desired}"),
        },
        Governor::Override { schedule, desired, until } => format!(
            "the override of schedule {schedule} takes over: {desired} until {}",
            zones.both(*until)
        ),
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
        let until = screen.time(self.ends_at);
        let then = match &self.then {
            Governor::Nothing => "as it is".to_owned(),
            Governor::Schedule { schedule, desired } => {
                format!("{schedule}: {}", desired_or_any(*desired))
            }
            Governor::Override { schedule, desired, .. } => {
                format!("override of {schedule}: {desired}")
            }
        };
        let since = screen.time(self.set_at);
        vec![
            Cell::new(self.label()),
            Cell::desired(self.desired),
            Cell::new(if self.begins_later { format!("from {since}") } else { since }),
            Cell::new(if self.active { until } else { format!("ended {until}") }),
            Cell::new(then),
            Cell::new(self.author()),
        ]
    }
}
