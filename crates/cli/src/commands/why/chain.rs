//! The chain of reasons for one resource: which rule names it, what each rule wants, what was
//! decided, and what comes next. Each reason is worded once, for people and for programs.
//!
//! This module decides nothing by itself: each part comes from the functions that the service uses.

use std::fmt::{self, Write as _};

use domain::{
    configuration::{Override, OverrideTarget, Selector},
    decision::{Decision, DesiredEdge, Why as Due, observer},
    membership::{Exclusion, Subject, Via, exclusions, names_by},
    record::{Ask, Cause, Direction, Rank},
    schedule::{Desired, desired_or_any},
};
use jiff::Timestamp;
use report::{answer::Answer, hibernated::step, pausing};
use schemars::JsonSchema;
use serde::Serialize;

use super::schedule;
use crate::print::Screen;

/// The width of the column of labels.
const LABEL: usize = 26;

/// A part of the chain.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Section {
    /// What it is about.
    title: String,
    /// The reasons, the first that decides included.
    facts: Vec<Fact>,
}

/// One reason.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Fact {
    /// For a rule: whether it counts at this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    standing: Option<Standing>,
    /// What it is about.
    label: String,
    /// What is to be said of it.
    text: String,
}

/// Whether a rule counts at this instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Standing {
    /// The first rule that applies.
    Decides,
    /// The rule applies, but a stronger or later one wins.
    Overruled,
    /// The rule says nothing at this instant.
    Silent,
}

impl Fact {
    pub(super) fn new(label: impl Into<String>, text: impl Into<String>) -> Self {
        Self { standing: None, label: label.into(), text: text.into() }
    }

    fn rule(label: &str, text: impl Into<String>, applies: bool) -> Self {
        let standing = if applies { Standing::Decides } else { Standing::Silent };
        Self { standing: Some(standing), ..Self::new(label, text) }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}", self.title)?;
        for Fact { standing, label, text } in &self.facts {
            let (mark, suffix) = match standing {
                None => ("", ""),
                Some(Standing::Decides) => ("▶ ", ""),
                Some(Standing::Overruled) => ("✗ ", " (overruled)"),
                Some(Standing::Silent) => ("· ", ""),
            };
            match label.as_str() {
                "" => writeln!(f, "  {text}")?,
                label => writeln!(f, "  {mark}{label:<LABEL$}{text}{suffix}")?,
            }
        }
        Ok(())
    }
}

pub(super) struct Chain<'a> {
    pub(super) answer: Answer<'a>,
    pub(super) screen: &'a Screen,
}

impl Chain<'_> {
    pub(super) fn sections(&self) -> Vec<Section> {
        let section = |title: &str, facts| Section { title: title.to_owned(), facts };
        let mut sections = vec![section("Who has a say, the strongest first", self.levels())];
        let configuration = self.answer.rules.configuration;
        let membership = &self.answer.verdict.membership;
        if let Some((name, rule)) = membership.schedule().zip(membership.rule(configuration)) {
            let zone = &rule.schedule.definition().timezone;
            let title = format!("What the schedule {name} says ({zone})");
            let time = |at| self.screen.time(at);
            let facts = schedule::facts(&rule.schedule, self.screen.now, &time);
            sections.push(Section { title, facts });
        }
        sections.push(section("What is known and decided", self.decided()));
        let hibernated = self.hibernated();
        if !hibernated.is_empty() {
            sections.push(section("How it is hibernated", hibernated));
        }
        sections.push(section("What comes next", self.next()));
        sections
    }

    /// Every rule that may apply, and which of them decides.
    fn levels(&self) -> Vec<Fact> {
        let Answer { record, verdict, rules, .. } = &self.answer;
        let set = |target| rules.overrides.get(&target).filter(|one| one.counts());
        let of_resource = set(OverrideTarget::Resource(record.reference.clone()));
        let rule = verdict.membership.rule(rules.configuration);
        let by_tag = rule.and_then(|rule| record.overrides_by_tag(rule).into_iter().next());
        let schedule = verdict.membership.schedule().cloned();
        let of_schedule = schedule.map(OverrideTarget::Schedule).and_then(set);
        let mut levels = self.exclusions();
        levels.extend(self.pause());
        levels.extend([
            self.overriding("override of it", of_resource),
            self.overriding("its tag offhours-until", by_tag.as_ref()),
            self.overriding("override of its schedule", of_schedule),
            self.command(),
        ]);
        levels.extend(Via::ALL.map(|via| self.named(via)));
        let applying = levels.iter_mut().filter(|one| one.standing == Some(Standing::Decides));
        for weaker in applying.skip(1) {
            weaker.standing = Some(Standing::Overruled);
        }
        levels
    }

    /// What forbids touching the resource. `protect` and the opt-out are included even if they do not
    /// apply, because readers look for them.
    fn exclusions(&self) -> Vec<Fact> {
        let label = |exclusion: &Exclusion| match exclusion {
            Exclusion::NoAccount(_) | Exclusion::NoMachine(_) => "account",
            Exclusion::ProtectedByDeployment(_) => "deployment",
            Exclusion::Protected(_) => "protect",
            Exclusion::OptedOut { .. } => "opt-out",
            Exclusion::Unsupported(_) => "not supported",
            Exclusion::TwoAccounts(_) | Exclusion::TwoSchedules { .. } => "conflict",
        };
        let subject = Subject::recorded(self.answer.record);
        let found = exclusions(subject, self.answer.rules.configuration);
        let mut facts: Vec<_> =
            found.map(|one| Fact::rule(label(&one), one.to_string(), true)).collect();
        for (label, words) in [("protect", "no pattern covers it"), ("opt-out", "no such tag")] {
            if facts.iter().all(|fact| fact.label != label) {
                facts.push(Fact::rule(label, words, false));
            }
        }
        let order = ["account", "deployment", "protect", "opt-out", "not supported", "conflict"];
        facts.sort_by_key(|fact| order.iter().position(|label| *label == fact.label));
        facts
    }

    /// The pause that applies; `None` if none does.
    fn pause(&self) -> Option<Fact> {
        let pause = self.answer.view.paused.as_ref()?;
        let desired = self.answer.verdict.desired;
        let direction = Direction::towards(desired.unwrap_or(Desired::Stopped));
        let words = pausing::in_words(pause, &self.screen.zone, self.screen.now);
        Some(Fact::rule("pause", words, pause.bars(direction)))
    }

    /// The override of a target that was set last, in force or not.
    fn overriding(&self, label: &str, one: Option<&Override>) -> Fact {
        let Some(one) = one else { return Fact::rule(label, "none", false) };
        let is_active = one.is_active(self.screen.now);
        let (from, until) = (self.screen.time(one.set_at), self.screen.time(one.ends_at));
        let when = if is_active {
            format!(" until {until}")
        } else if self.screen.now < one.set_at {
            format!(", but only from {from}")
        } else {
            format!(", ended {until}")
        };
        let why = one.why.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
        Fact::rule(label, format!("{}{when}, by {}{why}", one.desired, one.by), is_active)
    }

    fn command(&self) -> Fact {
        let label = "manual stop or start";
        let Some(command) = &self.answer.record.manual_command else {
            return Fact::rule(label, "none", false);
        };
        let at = self.screen.time(command.instant);
        let until = match self.answer.stands_until().as_str() {
            "" => String::new(),
            until => format!(", {until}"),
        };
        let text = format!("{}, by {} at {at}{until}", command.desired, command.by);
        let latest = self.answer.verdict.edge.as_ref().map(|edge| edge.key.rank);
        let stands = self.answer.verdict.opted_in && latest == Some(Rank::Manual);
        let mut fact = Fact::rule(label, text, stands);
        if !stands && command.instant <= self.screen.now {
            // An override or a later edge wins, and the command was given all the same.
            fact.standing = Some(Standing::Overruled);
        }
        fact
    }

    /// The schedules that a list or a tag names.
    fn named(&self, via: Via) -> Fact {
        let subject = Subject::recorded(self.answer.record);
        let (label, nothing) = match via {
            Via::Listed => ("list of a schedule", "none has it"),
            Via::Tag => ("its tag", "names no schedule"),
            Via::ClusterTag => ("its cluster's tag", "names no schedule"),
        };
        let names: Vec<_> =
            names_by(via, subject, self.answer.rules.configuration).into_iter().collect();
        let mut text = match names.as_slice() {
            [] => nothing.to_owned(),
            [one] => one.clone(),
            several => format!("{}: more than one, a conflict", several.join(" and ")),
        };
        if via == Via::Listed {
            let listing = subject.listing(self.answer.rules.configuration).map(|(_, by)| by);
            let by = listing.filter(|by| matches!(by, Selector::Name(_)));
            let by: Vec<_> = by.map(|by| format!("`{by}`")).collect();
            if !by.is_empty() {
                write!(text, ", named by {}", by.join(" and ")).ok();
            }
        }
        Fact::rule(label, text, !names.is_empty())
    }

    fn decided(&self) -> Vec<Fact> {
        let (record, policy) = (self.answer.record, self.answer.policy());
        let edge = self.answer.verdict.edge.as_ref();
        let edge = edge.map_or("none yet".to_owned(), |edge| self.edge(edge));
        let handled = record.handled.as_ref().map_or_else(
            || "none yet".to_owned(),
            |handled| {
                let at = self.screen.time(handled.key.instant);
                match handled.desired {
                    // Observe mode records no desired state, so that acting can begin later.
                    None => format!("{at} (observed only)"),
                    Some(desired) => format!("{at} ({desired})"),
                }
            },
        );
        let since =
            self.answer.view.since.map(|since| format!(", since {}", self.screen.time(since)));
        let state = format!("{}{}", self.answer.view.state, since.unwrap_or_default());
        let mut facts = vec![
            Fact::new("latest edge", edge),
            Fact::new("last edge handled", handled),
            Fact::new("decision", self.decision()),
            Fact::new("state", state),
            Fact::new("a stop's method", self.answer.view.method.to_string()),
        ];
        let mut add = |label: &str, text: Option<String>| {
            facts.extend(text.map(|text| Fact::new(label, text)));
        };
        add("saved, to be put back", record.saved.as_ref().map(ToString::to_string));
        let observer = observer(record, &policy, self.answer.rules.configuration);
        add("mode", observer.map(|observer| format!("{observer} only observes: nothing is sent")));
        let held = record.held.then(|| match record.lost_storage {
            Some(lost) => format!("came back with {lost}: add some, or `offhours approve`"),
            None => "too many joined at once: `offhours approve` releases it".to_owned(),
        });
        add("held", held);
        let retained = "found running before its start: the next stop leaves it running";
        let is_retained = policy.retain_running && record.retained;
        add("retained", is_retained.then(|| retained.to_owned()));
        let enforced = "changes by others are undone at each inventory";
        add("enforce", policy.enforce.then(|| enforced.to_owned()));
        let times = match record.attempts {
            0 | 1 => String::new(),
            many => format!(" ({many} times in a row)"),
        };
        add(
            "last error",
            self.answer.view.last_error.as_ref().map(|error| format!("{error}{times}")),
        );
        facts
    }

    fn edge(&self, edge: &DesiredEdge) -> String {
        let (to, by) = (desired_or_any(edge.desired), because(&edge.cause));
        if edge.key.instant > Timestamp::UNIX_EPOCH {
            format!("{to} since {}, {by}", self.screen.time(edge.key.instant))
        } else {
            format!("{to}, and never anything else, {by}")
        }
    }

    fn decision(&self) -> String {
        match &self.answer.verdict.decision {
            Decision::Act(due) => {
                let retains = self.answer.policy().retain_running && self.answer.record.retained;
                if retains && due.direction == Direction::Stop && due.cause == Cause::Schedule {
                    return "left running: `retain_running` found it running before".to_owned();
                }
                let why = match due.why {
                    Due::Edge => "the latest edge has not been handled",
                    Due::Changed => {
                        "the configuration, or its schedule, changed and wants this now"
                    }
                    Due::Drift => "it was changed, and the schedule enforces its desired state",
                };
                format!("{} it: {why}", due.direction)
            }
            Decision::AskAgain(direction) => {
                format!("ask again to {direction} it: there was no answer, or a failure")
            }
            Decision::Leave(reason) => format!("leave it: {reason}"),
        }
    }

    /// Its snapshots, what is made from them, and how far that has got.
    fn hibernated(&self) -> Vec<Fact> {
        let mut facts = Vec::new();
        let mut add = |label: &str, text: Option<String>| {
            facts.extend(text.map(|text| Fact::new(label, text)));
        };
        add("now", step(self.answer.record, |at| self.screen.time(at)));
        let Some(kept) = &self.answer.view.hibernation else {
            return facts;
        };
        match kept.present() {
            None => {
                add("machine", Some("none: it was deleted, and its snapshot is kept".to_owned()));
                add("recreated from", Some(kept.waking(self.screen.now)));
                add("recreated as", kept.as_it_was());
            }
            Some(present) if present != self.answer.record.reference.id.to_string() => {
                let text = format!("{present} at its cloud, since it was recreated");
                add("machine", Some(text));
            }
            Some(_) => {}
        }
        add("snapshots", Some(kept.kept()));
        let early = |lead| format!("{lead} min early: recreating it takes that long");
        add("starts begin", kept.lead().map(early));
        facts
    }

    fn next(&self) -> Vec<Fact> {
        let (record, now) = (self.answer.record, self.screen.now);
        let in_flight = record.in_flight().is_some();
        let asked_again_at = record.request.as_ref().and_then(|request| match request.ask {
            Ask::Failed { retry_at } => Some(retry_at),
            Ask::Open | Ask::Accepted { .. } | Ask::Done { .. } => None,
        });
        let retry_at = if in_flight { asked_again_at } else { record.retry_at };
        let coming = |at: Option<Timestamp>| at.filter(|at| *at > now);
        let retry_at = coming(retry_at);
        let mut facts = Vec::new();
        if let Decision::Act(due) = &self.answer.verdict.decision
            && retry_at.is_none()
            && observer(record, &self.answer.policy(), self.answer.rules.configuration).is_none()
        {
            let text = format!("dispatch hands it to {}", due.direction);
            facts.push(Fact::new("within a minute", text));
        }
        let mut add = |at: Option<Timestamp>, text: &str| {
            facts.extend(at.map(|at| Fact::new(self.screen.time(at), text)));
        };
        let permit = record.permit.as_ref().map(|permit| permit.until);
        add(coming(permit), "a request may be on its way until then; nothing else is sent");
        let look_at = record.due_at.filter(|_| in_flight);
        add(coming(look_at), "the next look at what is under way");
        add(retry_at, "tried again after a failure");
        if let Some(edge) = self.answer.next_edge() {
            let next = self.answer.view.next.map(|next| next.unsent).unwrap_or_default();
            let but = next.but(&self.screen.zone, now);
            add(edge.at, &format!("{}, {}{but}", desired_or_any(edge.to), because(&edge.cause)));
        }
        if facts.is_empty() {
            facts.push(Fact::new("", "nothing, until something changes"));
        }
        facts
    }
}

fn because(cause: &Cause) -> String {
    match cause {
        Cause::Schedule => "by the schedule".to_owned(),
        Cause::OverrideSet => "by an override".to_owned(),
        Cause::OverrideEnded => "by the end of an override".to_owned(),
        Cause::Manual { by } => format!("manually by {by}"),
    }
}
