//! What the page says, worked out once for each of its forms.

use domain::{
    AccountName, ScheduleName,
    configuration::{Account, OverrideTarget, Pause, PauseScope, Rule},
    decision::coming_edges_of,
    record::{Cause, OBSERVATION_AGE, Phase, Record},
    resource::Power,
    schedule::{Desired, desired_or_any},
};
use jiff::Timestamp;
use report::{
    answer::Answer,
    count,
    history::Period,
    money::{SavedReport, Totals},
    pausing,
    resource::ResourceView,
    state::AccountFailure,
    strip::Strip,
    time::{ago, local, short},
    unsent::Unsent,
};

use crate::{Audience, Input};

/// What the page says.
pub(crate) struct Facts<'a> {
    pub(crate) input: Input<'a>,
    pub(crate) audience: Audience,
    pub(crate) machines: Vec<Machine<'a>>,
}

/// A resource of any kind.
pub(crate) struct Machine<'a> {
    pub(crate) record: &'a Record,
    pub(crate) view: ResourceView,
}

/// How an account is.
pub(crate) struct AccountHealth<'a> {
    pub(crate) name: &'a AccountName,
    pub(crate) account: &'a Account,
    pub(crate) listed_at: Option<Timestamp>,
    pub(crate) failure: Option<AccountFailure>,
}

/// How old what is shown is.
pub(crate) struct Age {
    /// `as of Fri 2026-11-27 19:15 CET, 4m ago`.
    pub(crate) words: String,
    /// Whether nothing is stopped any more on what is known.
    pub(crate) is_stale: bool,
}

impl<'a> Facts<'a> {
    pub(crate) fn of(input: Input<'a>, audience: Audience) -> Self {
        let view = |record| {
            let view = ResourceView::of(record, input.in_force, input.zone, input.now);
            Machine { record, view }
        };
        let mut machines: Vec<_> = input.records.iter().map(view).collect();
        machines.retain(|one| {
            one.view.needs_person().is_some() || !matches!(one.record.phase, Phase::Gone { .. })
        });
        machines.sort_by(|one, other| {
            (&one.view.name, &one.view.resource).cmp(&(&other.view.name, &other.view.resource))
        });
        Self { input, audience, machines }
    }

    pub(crate) fn is_public(&self) -> bool {
        self.audience == Audience::Public
    }

    pub(crate) fn time(&self, at: Timestamp) -> String {
        short(at, self.input.zone, self.input.now)
    }

    /// Whose resources these are. Not shown to the public: an owner may be a person.
    pub(crate) fn owner(&self) -> Option<&'a str> {
        self.input.owner.filter(|_| !self.is_public())
    }

    /// The schedules; those of an owner are the ones that their resources follow.
    pub(crate) fn schedules(&self) -> impl Iterator<Item = (&'a ScheduleName, &'a Rule)> {
        let schedules = self.input.in_force.configuration.schedules.iter();
        let is_whole = self.input.owner.is_none();
        schedules.filter(move |(name, _)| is_whole || !self.following(name).is_empty())
    }

    pub(crate) fn following(&self, schedule: &ScheduleName) -> Vec<&Machine<'a>> {
        self.machines.iter().filter(|one| one.view.schedule.as_ref() == Some(schedule)).collect()
    }

    pub(crate) fn unscheduled(&self) -> Vec<&Machine<'a>> {
        self.machines.iter().filter(|one| one.view.schedule.is_none()).collect()
    }

    /// The configured accounts.
    pub(crate) fn accounts(&self) -> Vec<AccountHealth<'a>> {
        let Input { in_force, accounts, now, .. } = self.input;
        let health = |(name, account): (&'a AccountName, &'a Account)| {
            let state = accounts.get(name);
            AccountHealth {
                name,
                account,
                listed_at: state.and_then(|state| state.listed_at),
                failure: AccountFailure::of(state, in_force.since, now),
            }
        };
        in_force.configuration.accounts.iter().map(health).collect()
    }

    pub(crate) fn age(&self) -> Age {
        let listed: Option<Vec<_>> = self.accounts().iter().map(|one| one.listed_at).collect();
        let Some(oldest) = listed.and_then(|all| all.into_iter().min()) else {
            return Age { words: "not every account was seen yet".to_owned(), is_stale: true };
        };
        let now = self.input.now;
        let words = format!("as of {}, {}", local(oldest, self.input.zone), ago(oldest, now));
        Age { words, is_stale: now.duration_since(oldest) > OBSERVATION_AGE }
    }

    /// How many resources and accounts need a person.
    pub(crate) fn needing(&self) -> [usize; 2] {
        let resources = self.machines.iter().filter(|one| one.view.needs_person().is_some());
        let accounts = self.accounts();
        let accounts = accounts.iter().filter(|one| one.failure.is_some());
        [resources.count(), accounts.count()]
    }

    /// How everything is, in a sentence.
    pub(crate) fn verdict(&self) -> String {
        let needing = self.needing();
        let named = needing.iter().zip(["resource", "account"]);
        let named: Vec<_> = named
            .filter(|(number, _)| **number > 0)
            .map(|(number, what)| count(*number, what))
            .collect();
        if named.is_empty() {
            if self.age().is_stale {
                return "What is shown here is out of date.".to_owned();
            }
            return "All is as it should be.".to_owned();
        }
        let verb = if needing == [1, 0] || needing == [0, 1] { "needs" } else { "need" };
        format!("{} {verb} attention.", named.join(" and "))
    }

    /// A line for each pause in force.
    pub(crate) fn pauses(&self) -> Vec<String> {
        let Input { in_force, zone, now, .. } = self.input;
        if !self.is_public() {
            return pausing::lines(&in_force.overrides, zone, now);
        }
        let active = in_force.overrides.pauses().filter(|one| one.is_active(now));
        let line = |pause: &Pause| {
            let is_all = pause.scope == PauseScope::Everything;
            let scope = if is_all { "Everything" } else { "A part" };
            let (until, sent) = (self.time(pause.ends_at), pausing::sent(pause));
            format!("{scope} is paused until {until}: {sent}.")
        };
        active.map(line).collect()
    }

    /// `13 of 23 off`.
    pub(crate) fn off(&self) -> String {
        let present =
            self.machines.iter().filter(|one| !matches!(one.record.phase, Phase::Gone { .. }));
        let off = present.clone().filter(|one| one.view.power == Power::Stopped).count();
        format!("{off} of {} off", present.count())
    }

    /// `212.00 EUR saved this month`. What is unknown is never part of a number without its name.
    pub(crate) fn saved(&self) -> String {
        let report = &self.input.past.by_resource;
        let when = month(report.period, self.input.now);
        match amounts(report) {
            None => format!("what was saved {when} is unknown"),
            Some(amounts) => {
                let Totals { known, of, .. } = report.totals;
                let known =
                    if known < of { format!(", known for {known} of {of}") } else { String::new() };
                format!("{amounts} {when}{known}")
            }
        }
    }

    /// The strip of a schedule and of all that follows it.
    pub(crate) fn strip(&self, name: &ScheduleName, rule: &Rule, period: Period) -> Strip<'a> {
        let courses = &self.input.past.courses;
        let following = self.following(name);
        let courses = following.iter().filter_map(|one| courses.get(&one.record.reference));
        let courses: Vec<_> = courses.collect();
        let rules = self.input.in_force.rules();
        Strip::of_schedule(name, &rule.schedule, rules, &courses, period, self.input.now)
    }

    /// What a schedule desires now, until when, and by what or whom.
    pub(crate) fn schedule_sentence(&self, name: &ScheduleName, rule: &Rule) -> String {
        let Input { in_force, zone, now, .. } = self.input;
        let rules = in_force.rules();
        let but = |to, at| Unsent::of_schedule(name, rule, rules, to, at).but(zone, now);
        let target = OverrideTarget::Schedule(name.clone());
        let overrides = &in_force.overrides;
        let overridden = overrides.get(&target).filter(|one| one.is_active(now));
        let desired = rule.schedule.desired_at(now);
        let desired = overridden.map_or(desired, |one| Some(one.desired));
        let state = on_or_off(desired);
        // The end of an override may change nothing.
        let next = coming_edges_of(name, rules, now).find(|edge| edge.desired != desired);
        let (until, then, but) = match &next {
            Some(edge) => (
                format!(" until {}", self.time(edge.key.instant)),
                format!(", then {}", desired_or_any(edge.desired)),
                but(edge.desired, edge.key.instant),
            ),
            None => (String::new(), String::new(), but(desired, now)),
        };
        match overridden {
            Some(_) if self.is_public() => format!("{state}{until}, by an override{then}{but}."),
            Some(one) => {
                let why = one.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
                format!("{state}{until}{then}{but}. An override by {}{why}.", one.by)
            }
            None => {
                let is_scheduled = next.is_none_or(|edge| edge.cause == Cause::Schedule);
                let by = if is_scheduled { "the schedule" } else { "an override" };
                format!("{state}{until}{then}, by {by}{but}.")
            }
        }
    }

    /// What a resource is doing, until when, and by whom if a person asked for it.
    pub(crate) fn machine_sentence(&self, machine: &Machine<'_>) -> String {
        let view = &machine.view;
        let next = view.next.as_ref().map_or_else(String::new, |next| {
            let (to, at) = (desired_or_any(next.to), self.time(next.at));
            let is_other = match next.to {
                Some(Desired::Running) => view.power == Power::Stopped,
                Some(Desired::Stopped) => view.power == Power::Running,
                None => false,
            };
            let but = next.unsent.but(self.input.zone, self.input.now);
            let is_until = is_other && but.is_empty();
            if is_until { format!(" until {at}") } else { format!(", {to} from {at}{but}") }
        });
        let who = match (&view.overridden, &view.manual) {
            (Some(one), _) if self.is_public() => format!(", overridden to {}", one.desired),
            (_, Some(_)) if self.is_public() => ", by a command".to_owned(),
            (Some(one), _) => {
                let why = one.why.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
                format!(", overridden to {} by {}{why}", one.desired, one.by)
            }
            (None, Some(command)) => format!(", by {}", command.by),
            (None, None) => String::new(),
        };
        format!("{}{next}{who}", view.state)
    }

    /// Why a resource is in its state, in the lines of `offhours why`.
    pub(crate) fn answer(&self, machine: &Machine<'_>) -> Vec<String> {
        let Input { in_force, zone, now, .. } = self.input;
        let answer = Answer::of(machine.record, &machine.view, in_force, zone, now);
        if self.is_public() {
            let needs = machine.view.needs_person().map(|_| "It needs attention.".to_owned());
            return needs.into_iter().chain(answer.next_line()).collect();
        }
        let mut lines = answer.lines();
        let overridden = machine.view.override_in_words(zone, now);
        lines.extend(overridden.map(|one| format!("By an {one}.")));
        lines
    }
}

fn on_or_off(desired: Option<Desired>) -> &'static str {
    match desired {
        Some(Desired::Running) => "Running",
        Some(Desired::Stopped) => "Off",
        None => "Left as it is",
    }
}

/// `this month`, or `in October 2026`.
pub(crate) fn month(period: Period, now: Timestamp) -> String {
    if period.until >= now {
        return "this month".to_owned();
    }
    period.from.strftime("in %B %Y").to_string()
}

/// The sums in each currency, such as `212.00 EUR saved`. `None` if none is known.
fn amounts(report: &SavedReport) -> Option<String> {
    let known: Vec<_> = report.totals.totals.iter().filter_map(|total| total.saved).collect();
    let amounts = known.iter().filter(|saved| !saved.is_zero()).map(|saved| {
        let verb = if saved.is_negative() { "more spent" } else { "saved" };
        format!("{} {verb}", saved.magnitude())
    });
    let amounts: Vec<_> = amounts.collect();
    match (known.is_empty(), amounts.is_empty()) {
        (true, _) => None,
        (false, true) => Some("nothing saved".to_owned()),
        (false, false) => Some(amounts.join(" and ")),
    }
}
