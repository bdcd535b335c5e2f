//! What the tests show.

use std::{collections::BTreeMap, sync::Arc};

use domain::{
    AccountName,
    activity::{Action, Author},
    configuration::{Override, OverrideTarget, Overrides, Pause, PauseScope},
    record::{Direction, Phase},
    resource::{Power, SavedState},
    schedule::Desired,
};
use report::{
    history::Period,
    past::{PastCollector, Walk},
};
use testing::{
    history::{self, But as _},
    scene,
};

use super::*;

/// Monday, 23:30.
pub(super) const NIGHT: Timestamp = Timestamp::constant(1_795_476_600, 0);

const CONFIGURATION: &str = r#"
generation = 1
[settings]
[accounts]
do-main = { provider = "digitalocean", token = "env:DO" }
hz-eu = { provider = "hetzner", token = "env:HZ" }
[schedules.late]
schedule = { timezone = "UTC", periods = [{ weekdays = "mon-fri", begin = "09:00", end = "18:00" }] }
[schedules.office]
schedule = { timezone = "UTC", periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }] }
"#;

pub(super) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(super) struct Fleet {
    pub(super) in_force: InForce,
    pub(super) records: Vec<Record>,
    activity: Vec<Activity>,
    accounts: BTreeMap<AccountName, AccountState>,
    pub(super) owner: Option<&'static str>,
}

/// A server that was stopped by `office` this evening, as was asked.
fn off(number: usize) -> Record {
    let mut record =
        scene::machine(&format!("hz-eu/server/{number}"), "web-1", &["offhours=office"]);
    record.opted_in = true;
    record.schedule = Some(scene::office());
    record.phase = Phase::Settled { at: Power::Stopped };
    record.first_seen_at = Some(at("2026-11-20T09:00:00Z"));
    record.handled = Some(history::handled(at("2026-11-23T19:00:00Z"), Desired::Stopped, "office"));
    let observed = record.observed.as_mut().unwrap();
    (observed.power, observed.at) = (Power::Stopped, at("2026-11-23T19:02:00Z"));
    record
}

fn on(reference: &str, name: &str, schedule: &str) -> Record {
    let mut record = scene::machine(reference, name, &[&format!("offhours:{schedule}")]);
    record.opted_in = true;
    record.schedule = Some(schedule.parse().unwrap());
    record.first_seen_at = Some(at("2026-11-20T09:00:00Z"));
    record.handled = Some(history::handled(at("2026-11-23T09:00:00Z"), Desired::Running, schedule));
    record
}

impl Fleet {
    fn of(records: Vec<Record>) -> Self {
        let listed = |name: &str| {
            let name: AccountName = name.parse().unwrap();
            let state = AccountState {
                listed_at: Some(at("2026-11-23T23:26:00Z")),
                ..AccountState::unknown(name.clone())
            };
            (name, state)
        };
        Self {
            in_force: InForce {
                configuration: Arc::new(toml::from_str(CONFIGURATION).unwrap()),
                overrides: Overrides::default(),
                since: Some(at("2026-11-20T09:00:00Z")),
            },
            records,
            activity: Vec::new(),
            accounts: [listed("do-main"), listed("hz-eu")].into(),
            owner: None,
        }
    }

    pub(super) fn in_order() -> Self {
        Self::of(vec![off(1)])
    }

    /// A pool at zero of whose stop there is no history.
    pub(super) fn without_history() -> Self {
        Self::of(vec![Record {
            reference: "do-main/node-pool/c1/p1".parse().unwrap(),
            saved: Some(SavedState::NodePool { count: 2, autoscale: None }),
            ..off(1)
        }])
    }

    /// Two servers are off; a Droplet's stop was refused; and a schedule runs for longer.
    pub(super) fn night() -> Self {
        let refused = Record {
            phase: Phase::Refused {
                transition: scene::transition(Direction::Stop, at("2026-11-23T19:00:00Z")),
                reason: "The stop was refused by its provider".to_owned(),
            },
            handled: Some(history::handled(at("2026-11-23T19:00:00Z"), Desired::Stopped, "office")),
            ..on("do-main/droplet/3164444", "api", "office")
        };
        let release = Override {
            target: OverrideTarget::Schedule("late".parse().unwrap()),
            desired: Desired::Running,
            set_at: at("2026-11-23T17:30:00Z"),
            ends_at: at("2026-11-24T02:00:00Z"),
            by: "ada".to_owned(),
            why: Some("release night".to_owned()),
            before: None,
        };
        let author = Author { by: "ada".into(), why: release.why.clone() };
        let mut fleet =
            Self::of(vec![off(1), off(2), refused, on("do-main/droplet/5", "shop", "late")]);
        fleet.activity.push(author.does(Action::set(&release), release.set_at));
        fleet.in_force.overrides = [release].into_iter().collect();
        fleet
    }

    /// The same while an account is paused.
    pub(super) fn paused(mut self) -> Self {
        let pause = Pause {
            scope: PauseScope::Account("do-main".parse().unwrap()),
            starts: false,
            set_at: at("2026-11-23T17:00:00Z"),
            ends_at: at("2026-11-24T06:00:00Z"),
            by: "grace".to_owned(),
            why: "moving".to_owned(),
        };
        self.in_force.overrides = self.in_force.overrides.with_pauses([pause]);
        self
    }

    /// A server that has a text in all places where others write.
    pub(super) fn named(text: &str) -> Self {
        let mut fleet = Self::night();
        for record in &mut fleet.records {
            text.clone_into(&mut record.name);
        }
        let of_schedule = |one: &Override| Override {
            by: text.to_owned(),
            why: Some(text.to_owned()),
            ..one.clone()
        };
        fleet.in_force.overrides = fleet.in_force.overrides.iter().map(of_schedule).collect();
        for entry in &mut fleet.activity {
            entry.why = Some(text.to_owned());
        }
        fleet
    }

    pub(super) fn large(resources: usize) -> Self {
        let named = |number: usize| {
            let record = if number.is_multiple_of(2) {
                off(number)
            } else {
                on(&format!("do-main/droplet/{number}"), "shop", "late")
            };
            Record { name: format!("staging-worker-{number}"), ..record }
        };
        let night = Self::night();
        Self { in_force: night.in_force, ..Self::of((1..=resources).map(named).collect()) }
    }

    pub(super) fn shown<T>(&self, now: Timestamp, show: impl FnOnce(&Input<'_>) -> T) -> T {
        self.shown_in(&TimeZone::UTC, Period::month_of(now), now, show)
    }

    pub(super) fn shown_in<T>(
        &self,
        zone: &TimeZone,
        period: Period,
        now: Timestamp,
        show: impl FnOnce(&Input<'_>) -> T,
    ) -> T {
        let prices = BTreeMap::new();
        let configuration = &self.in_force.configuration;
        let mut past =
            PastCollector::new(period, configuration, &prices, &self.accounts, zone, now);
        let mut walk = Walk::new(&self.records, configuration, |reference, entries, record| {
            past.count(reference, entries, record);
        });
        for record in self
            .records
            .iter()
            .filter(|one| matches!(one.phase, Phase::Settled { at: Power::Stopped }))
        {
            let mut stop = history::stop("15 19:00", "15 19:02").of(&record.reference.to_string());
            stop.claimed_at = at("2026-11-23T19:00:00Z");
            stop.asked_at = Some(stop.claimed_at);
            stop.accepted_at = Some(stop.claimed_at);
            stop.finished_at = at("2026-11-23T19:02:00Z");
            walk.pass(stop).unwrap();
        }
        walk.finish(|_| true).unwrap();
        let past = past.finish(0);
        show(&Input {
            in_force: &self.in_force,
            owner: self.owner,
            records: &self.records,
            past: &past,
            activity: &self.activity,
            accounts: &self.accounts,
            zone,
            now,
        })
    }
}
