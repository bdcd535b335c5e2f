//! Why one resource is in its state, in a few lines: how it is, what is wrong and what to do, and
//! what comes next.

use domain::{
    configuration::Policy,
    decision::{Decision, InForce, LeaveReason, Rules, Verdict, judge, observer},
    explanation::{EdgeExplanation, next_edge},
    membership::Subject,
    notice::announced_at,
    order::Order,
    record::{Cause, Record},
    resource::Power,
    schedule::{Desired, desired_or_any},
};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use crate::{
    problems::Problem,
    resource::{ResourceView, wait_in_words},
    state::{PhaseName, sentence, stands_until},
    time::{length, short},
    unsent::Unsent,
};

/// All that the answer about one resource rests on.
#[derive(Debug)]
pub struct Answer<'a> {
    pub record: &'a Record,
    pub view: &'a ResourceView,
    pub verdict: Verdict,
    pub rules: Rules<'a>,
    pub zone: &'a TimeZone,
    pub now: Timestamp,
}

impl<'a> Answer<'a> {
    /// Judges a record anew, for its view at the same instant.
    #[must_use]
    pub fn of(
        record: &'a Record,
        view: &'a ResourceView,
        in_force: &'a InForce,
        zone: &'a TimeZone,
        now: Timestamp,
    ) -> Self {
        let rules = in_force.rules();
        let verdict = judge(record, Subject::recorded(record), rules, now);
        Self { record, view, verdict, rules, zone, now }
    }

    /// How it is, what is wrong, and what comes next.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.present()];
        for Problem { what, remedy, needs_person } in &self.view.problems {
            let label = if *needs_person { "It needs attention" } else { "Not as it should be" };
            lines.push(format!("{label}: {what}."));
            lines.push(format!("What to do: {remedy}."));
        }
        lines.extend(self.next_line());
        lines
    }

    /// What it waits for in the order of groups, and until when; `None` if it waits for nothing.
    #[must_use]
    pub fn wait_line(&self, others: &[Record]) -> Option<String> {
        let order = Order::of(others, self.rules);
        let wait = wait_in_words(self.record, &order, self.zone, self.now)?;
        Some(format!("It {wait}."))
    }

    /// The next edge, how far ahead it is, and when it is announced. `None` if there is none.
    #[must_use]
    pub fn next_line(&self) -> Option<String> {
        let EdgeExplanation { at, to, cause } = self.next_edge()?;
        let at = at?;
        let ahead = length(at.duration_since(self.now));
        let unsent = Unsent::of(self.record, self.rules, to, at);
        let sent_at = unsent.paused_until.unwrap_or(at);
        let unsent = unsent.but(self.zone, self.now);
        let early = self.early(at, to, &cause).filter(|_| unsent.is_empty()).unwrap_or_default();
        let notice = announced_at(self.record, self.rules, sent_at).filter(|at| *at > self.now);
        let notice = notice.map(|at| format!(", announced at {}", short(at, self.zone, self.now)));
        let notice = notice.unwrap_or_default();
        let (to, at) = (desired_or_any(to), short(at, self.zone, self.now));
        Some(format!("Next: {to} at {at}, in {ahead}{early}{unsent}{notice}."))
    }

    /// The next edge to show.
    #[must_use]
    pub fn next_edge(&self) -> Option<EdgeExplanation> {
        let manual = self.view.manual.as_ref();
        next_edge(self.record, &self.verdict, manual, self.rules, self.now)
    }

    #[must_use]
    pub fn policy(&self) -> Policy {
        self.verdict.membership.policy(self.rules.configuration)
    }

    fn present(&self) -> String {
        let state = sentence(self.record);
        match (&self.verdict.decision, self.view.phase) {
            (Decision::Leave(LeaveReason::Paused(pause)), PhaseName::InFlight) => {
                let until = short(pause.ends_at, self.zone, self.now);
                format!("{state}; what it still has to request is paused until {until}.")
            }
            (_, PhaseName::InFlight) => match self.view.since {
                Some(since) if self.record.watched_until().is_none() => {
                    let taken = length(self.now.duration_since(since));
                    format!("{state}, for {taken} now.")
                }
                // The sentence says until when it is watched.
                Some(_) | None => format!("{state}."),
            },
            (_, PhaseName::Refused | PhaseName::Stuck | PhaseName::Gone) => format!("{state}."),
            (Decision::Leave(reason), PhaseName::Settled) => self.left(&state, reason),
            (Decision::Act(due), PhaseName::Settled) => {
                format!("{state}, and a {} is due.", due.direction)
            }
            (Decision::AskAgain(direction), PhaseName::Settled) => {
                format!("{state}, and the {direction} will be asked for again.")
            }
        }
    }

    /// Says how a settled resource is that nothing is done about.
    fn left(&self, state: &str, reason: &LeaveReason) -> String {
        let desired = desired_or_any(self.verdict.desired);
        let is_as_desired = match self.verdict.desired {
            Some(Desired::Running) => self.view.power == Power::Running,
            Some(Desired::Stopped) => self.view.power == Power::Stopped,
            None => false,
        };
        if *reason == LeaveReason::NothingDesired {
            format!("{state}, and has no desired state now.")
        } else if let LeaveReason::Paused(pause) = reason {
            let until = short(pause.ends_at, self.zone, self.now);
            format!("{state} and should be {desired}, but is paused until {until}.")
        } else if *reason != LeaveReason::Handled {
            format!("{state} and left alone: {reason}.")
        } else if is_as_desired {
            match &self.view.manual {
                Some(command) => {
                    format!("{state}, as {} asked, {}.", command.by, self.stands_until())
                }
                None => format!("{state}, as it should be."),
            }
        } else if self.was_observed() {
            format!("{state} and would be {desired}, but is only observed.")
        } else {
            format!(
                "{state} but should be {desired}: someone changed it, and it stays so until the \
                 next edge."
            )
        }
    }

    /// Until when the manual command stands; empty if none does.
    #[must_use]
    pub fn stands_until(&self) -> String {
        let schedule = self.verdict.membership.schedule();
        let manual = self.view.manual.as_ref();
        let until = manual.map(|command| stands_until(command, schedule, self.zone, self.now));
        until.unwrap_or_default()
    }

    /// Reports whether the last edge handled was only observed, so that nothing was done about it.
    fn was_observed(&self) -> bool {
        let observer = observer(self.record, &self.policy(), self.rules.configuration);
        let kept_stopped = observer.is_some() && self.verdict.desired == Some(Desired::Running);
        self.record.handled.as_ref().is_some_and(|handled| match handled.desired {
            None => true,
            Some(Desired::Stopped) => kept_stopped,
            Some(Desired::Running) => false,
        })
    }

    /// Says that the next start begins early; `None` if it begins at the time its schedule names.
    fn early(&self, at: Timestamp, to: Option<Desired>, cause: &Cause) -> Option<String> {
        let lead = self.view.hibernation.as_ref()?.lead()?;
        let begun = (at - SignedDuration::from_mins(lead)).to_zoned(self.zone.clone());
        let starts = to == Some(Desired::Running) && *cause == Cause::Schedule;
        starts.then(|| format!("; begun {lead} min early, at {}", begun.strftime("%H:%M")))
    }
}
