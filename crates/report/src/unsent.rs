//! Why nothing is sent at an edge: observe mode, an approval that is missing, or a pause.

use domain::{
    ScheduleName,
    configuration::{Mode, Pause, Rule},
    decision::{LeaveReason, Rules, is_held_from, observer, pause_of},
    explanation::end_of_pauses,
    membership::{Membership, Subject},
    record::{Direction, Record},
    schedule::Desired,
};
use jiff::{Timestamp, tz::TimeZone};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{pausing, time::short};

/// Why nothing is sent at an edge; empty if something may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Unsent {
    /// Whether nothing is ever sent, because of observe mode; omitted if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub only_observed: bool,
    /// Whether it is held until a person approves it; omitted if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// When the pause ends that keeps anything from being sent then; omitted if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Timestamp>,
}

impl Unsent {
    /// Why nothing is sent to a resource at the edge to this state.
    #[must_use]
    pub fn of(record: &Record, rules: Rules<'_>, to: Option<Desired>, at: Timestamp) -> Self {
        let membership = Membership::of(Subject::recorded(record), rules.configuration);
        let policy = membership.policy(rules.configuration);
        let is_observed = observer(record, &policy, rules.configuration).is_some();
        let held = is_held_from(record, to);
        Self {
            held,
            ..Self::when(is_observed, to, at, |direction, at| {
                pause_of(record, rules, direction, at)
            })
        }
    }

    /// Why nothing is sent to any resource of a schedule at the edge to this state.
    #[must_use]
    pub fn of_schedule(
        name: &ScheduleName,
        rule: &Rule,
        rules: Rules<'_>,
        to: Option<Desired>,
        at: Timestamp,
    ) -> Self {
        let configuration = rules.configuration;
        let modes = [configuration.floor.mode, configuration.settings.mode, rule.policy.mode];
        Self::when(modes.contains(&Mode::Observe), to, at, |direction, at| {
            let pauses = pausing::of_schedule(rules.overrides, name);
            let active = pauses.filter(|pause| pause.bars(direction) && pause.is_active(at));
            active.max_by_key(|pause| pause.ends_at)
        })
    }

    fn when<'a>(
        only_observed: bool,
        to: Option<Desired>,
        at: Timestamp,
        pause: impl Fn(Direction, Timestamp) -> Option<&'a Pause>,
    ) -> Self {
        let Some(to) = to else {
            return Self::default();
        };
        let paused_until = end_of_pauses(at, |at| pause(Direction::towards(to), at));
        Self { only_observed, held: false, paused_until }
    }

    /// Why nothing is sent, such as `paused until Fri 09:00 UTC`. `None` if something may be.
    #[must_use]
    pub fn in_words(&self, zone: &TimeZone, now: Timestamp) -> Option<String> {
        if self.only_observed {
            return Some("only observed".to_owned());
        }
        if self.held {
            return Some(LeaveReason::Held.to_string());
        }
        Some(format!("paused until {}", short(self.paused_until?, zone, now)))
    }

    /// The same as the end of a sentence; empty if something may be sent.
    #[must_use]
    pub fn but(&self, zone: &TimeZone, now: Timestamp) -> String {
        self.in_words(zone, now).map_or_else(String::new, |words| format!(", but {words}"))
    }
}

#[cfg(test)]
mod tests {
    use domain::configuration::PauseScope;
    use testing::history::handled;

    use super::*;
    use crate::scene::{OFFICE, in_force, monday, office, web};

    fn pause(scope: PauseScope, from: &str, until: &str, starts: bool) -> Pause {
        let (set_at, ends_at) = (monday(from), monday(until));
        Pause { scope, starts, set_at, ends_at, by: "ada".to_owned(), why: "moving".to_owned() }
    }

    /// Why the stop at 18:00 and a start at that time are not sent: for a resource of `office`, and
    /// for the schedule.
    fn unsent(pauses: &[Pause], mode: Mode) -> [[String; 2]; 2] {
        let mut configuration: domain::configuration::Configuration =
            toml::from_str(OFFICE).unwrap();
        configuration.schedules.get_mut(&office()).unwrap().policy.mode = mode;
        let overrides = in_force(OFFICE).overrides.with_pauses(pauses.iter().cloned());
        let rules = Rules { configuration: &configuration, overrides: &overrides };
        let rule = &configuration.schedules[&office()];
        let (now, edge) = (monday("10:00:00"), monday("18:00:00"));
        [Desired::Stopped, Desired::Running].map(|to| {
            let of = Unsent::of(&web(), rules, Some(to), edge);
            let of_schedule = Unsent::of_schedule(&office(), rule, rules, Some(to), edge);
            [of, of_schedule].map(|unsent| unsent.but(&TimeZone::UTC, now))
        })
    }

    #[test]
    fn an_edge_within_pauses_waits_for_the_end_of_the_last_one() {
        let everything = || PauseScope::Everything;
        let none = [["", ""], ["", ""]];
        let until = |time: &str| format!(", but paused until Mon {time} UTC");
        let before = pause(everything(), "09:00:00", "18:00:00", false);
        assert_eq!(unsent(&[before], Mode::Act), none);
        let account = PauseScope::Account("do-main".parse().unwrap());
        let of_account = pause(account, "17:00:00", "19:00:00", false);
        let (seven, eight) = (until("19:00"), until("20:00"));
        let expected = [[seven.as_str(), ""], [seven.as_str(), ""]];
        assert_eq!(unsent(std::slice::from_ref(&of_account), Mode::Act), expected);
        let of_schedule = pause(PauseScope::Schedule(office()), "18:00:00", "20:00:00", true);
        let both = [of_account, of_schedule];
        let expected = [[eight.as_str(), eight.as_str()], [seven.as_str(), ""]];
        assert_eq!(unsent(&both, Mode::Act), expected);
        let observed = ", but only observed";
        assert_eq!(unsent(&both, Mode::Observe), [[observed; 2]; 2]);
    }

    #[test]
    fn what_is_held_is_sent_nothing_but_what_brings_it_back() {
        let in_force = in_force(OFFICE);
        let but = |record: &Record, to| {
            let unsent = Unsent::of(record, in_force.rules(), Some(to), monday("18:00:00"));
            unsent.but(&TimeZone::UTC, monday("10:00:00"))
        };
        let words = ", but held until `offhours approve`";
        let held = Record { held: true, ..web() };
        assert_eq!(but(&held, Desired::Stopped), words);
        assert_eq!(but(&held, Desired::Running), words);
        let handled = handled(monday("09:00:00"), Desired::Stopped, "office");
        let stopped = Record { handled: Some(handled), ..held };
        assert_eq!(but(&stopped, Desired::Stopped), words);
        assert_eq!(but(&stopped, Desired::Running), "");
    }
}
