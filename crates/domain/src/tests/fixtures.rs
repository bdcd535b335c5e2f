//! Records and rules that read as sentences, for tests.
//!
//! Everything happens in the week of Monday, 15 June 2026, under the schedule `office`: Monday to
//! Friday, 08:00 to 19:00, UTC.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    configuration::{
        Account, Configuration, Generation, Override, OverrideTarget, Overrides, Pause, PauseScope,
        Policy, Rule,
    },
    decision::{Decision, Rules, Verdict, due_at, judge},
    fixtures::configuration,
    membership::Subject,
    record::{
        Cause, Direction, EdgeKey, Handled, ManualCommand, Observed, Phase, Rank, Record,
        Transition,
    },
    reference::{ResourceRef, ScheduleName},
    resource::{Cluster, MachineFacts, MachineSize, Power, Resource, Size},
    schedule::{Desired, Schedule},
    stop_method::StopMethod,
};

/// Parses an instant of the week: `mon 08:00`, `tue 19:00:30`, ….
pub(crate) fn at(text: &str) -> Timestamp {
    let (day, time) = text.split_once(' ').unwrap();
    let days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let day = 15 + days.iter().position(|name| *name == day).unwrap();
    let seconds = if time.len() == 5 { ":00" } else { "" };
    format!("2026-06-{day}T{time}{seconds}Z").parse().unwrap()
}

pub(crate) fn schedule_name(name: &str) -> ScheduleName {
    name.parse().unwrap()
}

pub(crate) fn reference(text: &str) -> ResourceRef {
    text.parse().unwrap()
}

pub(crate) fn tags(tags: &[&str]) -> BTreeSet<String> {
    tags.iter().map(|&tag| tag.to_owned()).collect()
}

pub(crate) fn schedule(definition: Value) -> Schedule {
    Schedule::new(&serde_json::from_value(definition).unwrap()).unwrap()
}

/// A configuration and overrides.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) configuration: Configuration,
    pub(crate) overrides: Overrides,
}

/// The first generation, with the accounts `do-main` and `hz-eu` and the schedule `office`.
pub(crate) fn world() -> World {
    World { configuration: configuration(), overrides: Overrides::default() }
        .with_schedule("office", daily("08:00", "19:00"))
}

/// Monday to Friday, from one time to another.
pub(crate) fn daily(begin: &str, end: &str) -> Value {
    json!({
        "timezone": "UTC",
        "periods": [{"weekdays": ["mon-fri"], "begin": begin, "end": end}],
    })
}

impl World {
    pub(crate) fn with_schedule(mut self, name: &str, definition: Value) -> Self {
        let rule = Rule {
            schedule: schedule(definition),
            resources: BTreeSet::new(),
            policy: Policy::default(),
        };
        self.configuration.schedules.insert(schedule_name(name), rule);
        self
    }

    pub(crate) fn without_schedules(mut self) -> Self {
        self.configuration.schedules.clear();
        self
    }

    pub(crate) fn without_account(mut self, name: &str) -> Self {
        self.configuration.accounts.retain(|one, _| one.as_str() != name);
        self
    }

    pub(crate) fn in_generation(mut self, generation: u64) -> Self {
        self.configuration.generation = Generation(generation);
        self
    }

    pub(crate) fn listing(mut self, schedule: &str, resource: &str) -> Self {
        let rule = self.configuration.schedules.get_mut(&schedule_name(schedule));
        rule.unwrap().resources.insert(resource.parse().unwrap());
        self
    }

    pub(crate) fn following(mut self, schedule: &str, how: impl Fn(&mut Policy)) -> Self {
        let rule = self.configuration.schedules.get_mut(&schedule_name(schedule));
        how(&mut rule.unwrap().policy);
        self
    }

    pub(crate) fn protecting(mut self, pattern: &str) -> Self {
        self.configuration.settings.protect.push(pattern.parse().unwrap());
        self
    }

    /// Adds an override of a resource (`do-main/droplet/1`) or of a schedule (`office`).
    pub(crate) fn overriding(
        mut self,
        target: &str,
        desired: Desired,
        from: &str,
        until: &str,
    ) -> Self {
        let target = if target.contains('/') {
            OverrideTarget::Resource(reference(target))
        } else {
            OverrideTarget::Schedule(schedule_name(target))
        };
        let one = Override {
            target,
            desired,
            set_at: at(from),
            ends_at: at(until),
            by: "ada".to_owned(),
            why: None,
            before: None,
        };
        let overrides: Overrides = self.overrides.iter().cloned().chain([one]).collect();
        self.overrides = overrides.with_pauses(self.overrides.pauses().cloned());
        self
    }

    /// Pauses everything, or what follows a schedule.
    pub(crate) fn pausing(self, scope: PauseScope, starts: bool, from: &str, until: &str) -> Self {
        let pause = Pause {
            scope,
            starts,
            set_at: at(from),
            ends_at: at(until),
            by: "ada".to_owned(),
            why: "release".to_owned(),
        };
        let overrides = self.overrides.with_pauses([pause]);
        Self { overrides, ..self }
    }

    pub(crate) fn rules(&self) -> Rules<'_> {
        Rules { configuration: &self.configuration, overrides: &self.overrides }
    }

    pub(crate) fn judge(&self, record: &Record, now: &str) -> Verdict {
        judge(record, Subject::recorded(record), self.rules(), at(now))
    }

    pub(crate) fn decide(&self, record: &Record, now: &str) -> Decision {
        self.judge(record, now).decision
    }

    pub(crate) fn due_at(&self, record: &Record, now: &str) -> Option<Timestamp> {
        due_at(record, self.rules(), at(now))
    }
}

/// A Droplet as a provider shows it: `do-main/droplet/1`, running, without tags.
pub(crate) fn seen_droplet() -> Resource {
    Resource {
        id: "droplet/1".parse().unwrap(),
        name: "web".to_owned(),
        cluster: None,
        tags: BTreeSet::new(),
        region: "fra1".to_owned(),
        power: Power::Running,
        busy: None,
        size: Size::Machine(MachineSize {
            plan: "s-1vcpu-1gb".to_owned(),
            ..MachineSize::default()
        }),
        facts: MachineFacts::default(),
        unsupported: None,
    }
}

/// The record of a running Droplet that follows nothing.
pub(crate) fn droplet() -> Record {
    Record::first_seen(reference("do-main/droplet/1"), &seen_droplet())
}

/// The record of a running Droplet that follows `office`.
pub(crate) fn office_droplet() -> Record {
    droplet().tagged(&["offhours:office"])
}

impl Record {
    pub(crate) fn tagged(mut self, words: &[&str]) -> Self {
        self.tags = tags(words);
        self
    }

    pub(crate) fn in_cluster(mut self, name: &str, words: &[&str]) -> Self {
        self.cluster = Some(Cluster { name: name.to_owned(), tags: tags(words) });
        self
    }

    pub(crate) fn settled(mut self, at: Power) -> Self {
        self.phase = Phase::Settled { at };
        self
    }

    pub(crate) fn observed(mut self, power: Power, when: &str) -> Self {
        self.observed = Some(Observed { power, size: None, busy: None, at: at(when) });
        self
    }

    pub(crate) fn in_flight_towards(mut self, direction: Direction, since: &str) -> Self {
        self.phase = Phase::InFlight {
            transition: Transition {
                target: None,
                method: StopMethod::Graceful,
                forced: false,
                was_running: false,
                direction,
                claimed_at: at(since),
                cause: Cause::Schedule,
                schedule: None,
            },
        };
        self
    }

    /// Marks an edge of the first generation's `office` as handled.
    pub(crate) fn having_handled(self, instant: &str, desired: impl Into<Option<Desired>>) -> Self {
        self.having_handled_ranked(instant, Rank::Schedule, desired)
    }

    pub(crate) fn having_handled_ranked(
        mut self,
        instant: &str,
        rank: Rank,
        desired: impl Into<Option<Desired>>,
    ) -> Self {
        self.handled = Some(Handled {
            generation: Generation(1),
            key: EdgeKey { instant: at(instant), rank },
            desired: desired.into(),
            schedule: Some(schedule_name("office")),
        });
        self
    }

    /// Returns the record as a claim or an acknowledgment leaves it, once the target state has been
    /// seen.
    pub(crate) fn having_done(mut self, decision: &Decision) -> Self {
        let Decision::Act(due) = decision else {
            panic!("nothing is due: {decision:?}");
        };
        self.handled = Some(due.handled.clone());
        self.settled(due.direction.target_state())
    }

    pub(crate) fn commanded(mut self, instant: &str, desired: Desired) -> Self {
        self.manual_command = Some(ManualCommand {
            instant: at(instant),
            desired,
            by: "ada".to_owned(),
            request_id: "request-1".to_owned(),
            earlier: Vec::new(),
            rehearsal: false,
        });
        self
    }
}

/// Makes the account decide but send nothing.
pub(crate) fn only_observe(account: &mut Account) {
    let Account::Cloud(account) = account else {
        panic!("no account at a cloud");
    };
    account.mode = crate::configuration::Mode::Observe;
}
