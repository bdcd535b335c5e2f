//! One resource as it is shown everywhere: what it is, what it follows, how it is, and what it needs.

use std::collections::BTreeSet;

use domain::{
    AccountName, ResourceRef, ScheduleName,
    configuration::{Configuration, Override, OverrideTarget},
    decision::{Decision, LeaveReason, Rules, Verdict, judge, observer, override_of},
    explanation::{StandingCommand, next_edge, standing_command},
    hibernation::{MARK_LABEL, OF_LABEL},
    membership::{Membership, Subject, Via},
    overdue::judged_overdue,
    reason::Reason,
    record::{Ending, Phase, Record},
    resource::{AutoscaleBounds, Power, SavedState},
    schedule::{Desired, desired_or_any},
    stop_method::StopMethod,
};
use environment::in_words;
use jiff::{Timestamp, tz::TimeZone};
use lifecycle::event::watching;
use schemars::JsonSchema;
use serde::Serialize;
use store::InForce;

use crate::{
    hibernated::Hibernated,
    nearest::advice,
    output::shortened,
    print::{Row, Screen},
    problems::{Problem, problems},
    state::{PhaseName, State, stands_until},
    table::{Cell, Column},
    time::{NextEdge, short},
};

/// One resource.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ResourceView {
    /// The resource.
    pub resource: ResourceRef,
    /// The account that reaches it.
    pub account: AccountName,
    /// Its name at the provider; not unique.
    pub name: String,
    /// Its plan, and how many nodes it has of it: `s-1vcpu-1gb`, `2 x s-4vcpu-8gb (1-3)`; null if
    /// there is none.
    pub size: Option<String>,
    /// Its region or location.
    pub region: String,
    /// Its tags, or its labels as `key=value`, and those of its cluster; without those that Offhours
    /// puts on what it creates.
    pub tags: BTreeSet<String>,
    /// The schedule that it follows; null if it follows none.
    pub schedule: Option<ScheduleName>,
    /// Why it follows its schedule, or why it follows none.
    pub because: String,
    /// The desired state now; null if either state will do.
    pub desired: Option<Desired>,
    /// Its phase.
    pub phase: PhaseName,
    /// Its state in a word or two: `running`, `stopping`, `stop stuck`. The reason is in
    /// `problems`.
    pub state: String,
    #[serde(skip)]
    pub(crate) power: Power,
    /// Why no change may be sent now, in the provider's words; null if one may be.
    pub busy: Option<String>,
    /// When the phase began, as far as the record shows; null if it does not.
    pub since: Option<Timestamp>,
    /// The next edge that has a desired state, or, while a manual command stands, another one; null
    /// if there is none.
    pub next: Option<NextEdge>,
    /// How a stop would stop it, by its schedule's methods, or by the defaults if it follows no
    /// schedule.
    pub method: StopMethod,
    /// The override that decides; null if none does.
    #[serde(rename = "override")]
    pub overridden: Option<Override>,
    /// The manual command that it follows; null if it follows none.
    pub manual: Option<StandingCommand>,
    /// The saved state that a start will restore; null if there is none.
    pub saved: Option<SavedState>,
    /// What the machine is recreated from; omitted unless it is or was hibernated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hibernation: Option<Hibernated>,
    /// Since when it should have been in the desired state, if that is longer than its kind usually
    /// takes; null otherwise.
    pub overdue_since: Option<Timestamp>,
    /// What is not as it should be, the gravest first.
    pub problems: Vec<Problem>,
    /// The latest failure; null if there is none.
    pub last_error: Option<String>,
    /// What else is worth knowing; null if nothing is.
    pub remark: Option<String>,
    /// What its own Status operation shows; omitted if that was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<String>,
}

impl ResourceView {
    /// Builds the view of a record. Times in its words are in the zone of the screen.
    pub(crate) fn of(record: &Record, in_force: &InForce, zone: &TimeZone, now: Timestamp) -> Self {
        let rules = in_force.rules();
        let hibernation = Hibernated::of(record);
        let verdict = judge(record, Subject::recorded(record), rules, now);
        let manual = standing_command(record, &verdict, rules, now);
        let next = next_edge(record, &verdict, manual.as_ref(), rules, now)
            .and_then(|edge| Some(NextEdge { at: edge.at?, to: edge.to }));
        let by_hand = manual.as_ref().map(|command| {
            let done = match command.desired {
                Desired::Running => "started",
                Desired::Stopped => "stopped",
            };
            let until = stands_until(command, verdict.membership.schedule(), zone, now);
            format!("{done} by {} {until}", command.by)
        });
        let remarks = remarks(record, hibernation.as_ref(), &verdict, rules, (zone, now));
        let policy = verdict.membership.policy(rules.configuration);
        let state = State::of(record);
        let overdue = judged_overdue(record, &verdict, rules.configuration, in_force.since, now);
        let observed = record.observed.as_ref();
        Self {
            resource: record.reference.clone(),
            account: record.reference.account.clone(),
            name: record.name.clone(),
            size: size(record),
            region: record.region.clone(),
            tags: tags(record),
            schedule: verdict.membership.schedule().cloned(),
            because: because(&verdict, rules.configuration),
            desired: verdict.desired,
            phase: state.phase,
            state: state.words,
            power: state.power,
            busy: observed.and_then(|observed| observed.busy.clone()),
            since: state.since,
            next,
            method: StopMethod::of(record.kind(), &policy),
            overridden: override_of(record, rules, now).cloned(),
            manual,
            saved: record.saved.clone(),
            overdue_since: overdue.map(|overdue| overdue.since),
            problems: problems(record, &verdict, in_force, (zone, now)),
            last_error: record.last_error.as_ref().map(Reason::to_string),
            remark: in_one(by_hand.into_iter().chain(remarks)),
            hibernation,
            live: None,
        }
    }

    /// What is left to a person; `None` if nothing is.
    pub(crate) fn needs_person(&self) -> Option<&Problem> {
        self.problems.first().filter(|problem| problem.needs_person)
    }

    /// What a start restores, in words.
    fn owed(&self) -> Option<String> {
        let asleep = || self.hibernation.as_ref().filter(|one| one.is_asleep());
        let saved = self.saved.as_ref().map(ToString::to_string);
        saved.or_else(|| asleep()?.as_it_was())
    }

    /// The one thing that is worth saying of it in a line.
    fn said(&self, screen: &Screen) -> Option<String> {
        if let Some(live) = &self.live {
            return Some(live.clone());
        }
        let problem = self.needs_person().map(|problem| &problem.what);
        if let Some(problem) = problem.or(self.last_error.as_ref()) {
            return Some(shortened(problem));
        }
        let overridden = self.overridden.as_ref().map(|one| {
            let until = screen.time(one.ends_at);
            let why = one.why.as_ref().map(|why| format!(", {why}")).unwrap_or_default();
            let of = match one.target {
                OverrideTarget::Resource(_) => "override",
                OverrideTarget::Schedule(_) => "override of its schedule",
            };
            format!("{of} until {until} ({}{why})", one.by)
        });
        let unscheduled = self.schedule.is_none().then(|| self.because.clone());
        overridden.or_else(|| self.remark.clone()).or_else(|| self.busy.clone()).or(unscheduled)
    }
}

/// The plan of a machine, of a database, or of a pool's nodes, and their number.
fn size(record: &Record) -> Option<String> {
    let plan = record.plan.as_deref()?;
    let observed = record.observed.as_ref().and_then(|observed| observed.size.as_ref());
    Some(match observed {
        Some(SavedState::Database { nodes, .. }) => format!("{nodes} x {plan}"),
        Some(SavedState::NodePool { count, autoscale: None }) => format!("{count} x {plan}"),
        Some(SavedState::NodePool { count, autoscale: Some(AutoscaleBounds { min, max }) }) => {
            format!("{count} x {plan} ({min}-{max})")
        }
        Some(SavedState::Machine(_)) | None => plan.to_owned(),
    })
}

fn tags(record: &Record) -> BTreeSet<String> {
    let is_mark = |tag: &&String| {
        let key = tag.split(['=', ':']).next();
        key == Some(MARK_LABEL) || key == Some(OF_LABEL)
    };
    let cluster = record.cluster.iter().flat_map(|cluster| &cluster.tags);
    record.tags.iter().chain(cluster).filter(|tag| !is_mark(tag)).cloned().collect()
}

/// Why a resource follows its schedule, or why it follows none.
fn because(verdict: &Verdict, configuration: &Configuration) -> String {
    match &verdict.membership {
        Membership::Member { via, .. } => match via {
            Via::Listed => "in the list of its schedule".to_owned(),
            Via::Tag => "by its tag".to_owned(),
            Via::ClusterTag => "by the tag of its cluster".to_owned(),
        },
        Membership::Unnamed if verdict.opted_in => {
            "no schedule names it; an override or a command covers it for now".to_owned()
        }
        Membership::Unnamed => "no schedule names it".to_owned(),
        Membership::Unknown { word, via } => {
            let known = configuration.schedules.keys().map(ScheduleName::as_str);
            let advice = advice(word, "schedules", known);
            format!("its {via} names no schedule: `{word}`; {advice}")
        }
        Membership::Excluded(exclusion) => in_words(exclusion),
    }
}

impl Row for ResourceView {
    const COLUMNS: &'static [Column] = &[
        Column::of("Name"),
        Column::of("Schedule"),
        Column::of("State"),
        Column::of("Next"),
        Column::wide("Saved"),
        Column::text("Remark"),
    ];

    fn cells(&self, screen: &Screen) -> Vec<Cell> {
        let mark = |cell: Cell| match self.needs_person() {
            Some(_) => cell.alarming(),
            None => cell.coloured_by(self.desired),
        };
        let next = self.next.as_ref();
        let next = next.map(|next| format!("{} {}", desired_or_any(next.to), screen.time(next.at)));
        vec![
            Cell::new(&self.name),
            Cell::any(self.schedule.as_ref()),
            mark(Cell::new(&self.state)),
            Cell::any(next),
            Cell::any(self.owed()),
            Cell::any(self.said(screen)),
        ]
    }
}

/// The same resource with all that identifies and describes it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Wide<'v>(pub(crate) &'v ResourceView);

impl Row for Wide<'_> {
    const COLUMNS: &'static [Column] = &[
        Column::of("Resource"),
        Column::of("Name"),
        Column::of("Size"),
        Column::of("Region"),
        Column::of("Schedule"),
        Column::of("Because"),
        Column::of("Desired"),
        Column::of("State"),
        Column::of("Next"),
        Column::of("Saved"),
        Column::of("Tags"),
        Column::text("Remark"),
    ];

    fn cells(&self, screen: &Screen) -> Vec<Cell> {
        let view = self.0;
        let [name, schedule, state, next, saved, remark]: [Cell; 6] =
            view.cells(screen).try_into().unwrap_or_default();
        let tags: Vec<_> = view.tags.iter().map(String::as_str).collect();
        vec![
            Cell::new(&view.resource),
            name,
            Cell::any(view.size.as_ref()),
            Cell::new(&view.region),
            schedule,
            Cell::new(&view.because),
            Cell::desired(view.desired),
            state,
            next,
            saved,
            Cell::new(tags.join(" ")),
            if view.schedule.is_none() && view.needs_person().is_none() {
                Cell::default()
            } else {
                remark
            },
        ]
    }
}

fn in_one(remarks: impl Iterator<Item = String>) -> Option<String> {
    let remarks: Vec<_> = remarks.collect();
    (!remarks.is_empty()).then(|| remarks.join("; "))
}

/// Why a machine runs on less than its own plan, or runs although its latest edge stops it.
fn runs_otherwise(record: &Record) -> Option<String> {
    if record.phase != (Phase::Settled { at: Power::Running }) {
        return None;
    }
    if let Some(saved @ SavedState::Machine(_)) = &record.saved {
        return Some(format!("on its small plan: its next start puts {saved} back"));
    }
    let (last, handled) = record.last.as_ref().zip(record.handled.as_ref())?;
    let is_left = matches!(last.ending, Ending::LeftRunning | Ending::TooLate);
    (is_left && last.key == handled.key).then(|| last.ending.to_string())
}

/// What else is worth knowing and needs no action.
fn remarks(
    record: &Record,
    hibernation: Option<&Hibernated>,
    verdict: &Verdict,
    rules: Rules<'_>,
    (zone, now): (&TimeZone, Timestamp),
) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Decision::Leave(reason @ (LeaveReason::Excluded(_) | LeaveReason::Gone)) =
        &verdict.decision
    {
        remarks.push(reason.to_string());
    }
    let rule = verdict.membership.rule(rules.configuration);
    if let Some(rule) = rule
        && observer(record, &rule.policy, rules.configuration).is_some()
    {
        remarks.push("observed only: nothing is sent".to_owned());
    }
    if let (Some(until), Some(transition)) = (record.watched_until(), record.in_flight()) {
        remarks.push(watching(transition.direction, until));
    }
    let asleep = hibernation.filter(|hibernated| hibernated.is_asleep());
    remarks.extend(asleep.map(|hibernated| hibernated.in_words(now)));
    remarks.extend(runs_otherwise(record));
    if let Some(at) = record.retry_at.filter(|&at| at > now) {
        remarks.push(format!("will retry at {}", short(at, zone, now)));
    }
    remarks
}

#[cfg(test)]
mod tests {
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
        let wide: Vec<_> = views.iter().map(Wide).collect();
        insta::assert_snapshot!(screen.table(&wide), @"
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
