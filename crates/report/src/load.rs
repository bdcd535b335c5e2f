//! Whether an account's rate limit carries what follows schedules in it: one night's stops, and the
//! starts of a morning.

use std::collections::BTreeMap;

use domain::{
    AccountName, ResourceKind, ScheduleName,
    account::AccountState,
    configuration::Mode,
    decision::{Rules, mode},
    membership::{Membership, Subject},
    pacing::{ListRequests, carried, requests_to_finish},
    record::{Direction, Phase, Record},
    schedule::{Desired, Schedule},
    stop_method::StopMethod,
};
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

/// Starts have to fit into this time: whatever takes longer is late by as much.
const MORNING: SignedDuration = SignedDuration::from_hours(1);

/// The number of edges in which a schedule's next night is looked for.
const SEARCHED: usize = 64;

/// An account whose rate limit does not carry what follows schedules in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Overload {
    /// The account's name.
    pub account: AccountName,
    /// When the night begins, or the hour in which all has to start.
    pub from: Timestamp,
    /// When it ends: at a start edge.
    pub until: Timestamp,
    /// Whether it is only the starts that are too many.
    pub starts_only: bool,
    /// The number of resources that stop or start in that time.
    pub resources: usize,
    /// How many of them are hibernated.
    pub hibernated: usize,
    /// About how many requests that takes.
    pub requests: u64,
    /// How many the limit leaves for it in that time.
    pub carried: u64,
    /// Requests allowed per hour.
    pub per_hour: u64,
}

/// A resource that follows a schedule, and the schedule's next night.
struct Member {
    resource: (ResourceKind, StopMethod),
    evening: Timestamp,
    morning: Timestamp,
}

/// Returns the accounts whose limits do not carry their next night, each with the time in which the
/// most is missing.
#[must_use]
pub fn overloads(
    records: &[Record],
    rules: Rules<'_>,
    states: &BTreeMap<AccountName, AccountState>,
    now: Timestamp,
) -> Vec<Overload> {
    let mut members = members(records, rules, now);
    let accounts = rules.configuration.accounts.iter();
    let overloads = accounts.filter_map(|(name, account)| {
        let facts = account.cloud()?.provider.facts();
        let state = states.get(name);
        let per_hour = state.and_then(|state| state.rate?.limit).unwrap_or(facts.requests_per_hour);
        let lists = state.and_then(AccountState::lists);
        let members = members.remove(name)?;
        let times = members.iter().flat_map(|member| {
            let night = (member.evening, member.morning, false);
            [night, (member.morning - MORNING, member.morning, true)]
        });
        let mut times: Vec<_> = times.collect();
        times.sort_unstable();
        times.dedup();
        let overloads = times.into_iter().filter_map(|(from, until, starts_only)| {
            let (requests, resources) = load(from, until, starts_only, &members, lists);
            let carried = carried(per_hour, lists, until.duration_since(from));
            let is_hibernated = |(_, method): &&_| *method == StopMethod::Hibernate;
            (requests > carried).then(|| Overload {
                account: name.clone(),
                from,
                until,
                starts_only,
                resources: resources.len(),
                hibernated: resources.iter().filter(is_hibernated).count(),
                requests,
                carried,
                per_hour,
            })
        });
        overloads.max_by_key(|one| one.requests.saturating_mul(100) / one.carried.max(1))
    });
    overloads.collect()
}

/// Returns how many requests the stops and starts within a time take, and the resources concerned.
fn load(
    from: Timestamp,
    until: Timestamp,
    starts_only: bool,
    members: &[Member],
    lists: Option<&ListRequests>,
) -> (u64, Vec<(ResourceKind, StopMethod)>) {
    let starts = members.iter().filter(|one| from < one.morning && one.morning <= until);
    let starts: Vec<_> = starts.map(|one| one.resource).collect();
    let mut requests = requests_to_finish(Direction::Start, &starts, lists);
    if starts_only {
        return (requests, starts);
    }
    let stops = members.iter().filter(|one| from <= one.evening && one.evening < until);
    let stops: Vec<_> = stops.map(|one| one.resource).collect();
    requests += requests_to_finish(Direction::Stop, &stops, lists);
    (requests, stops)
}

/// Returns what acts in each account in the next night of its schedule.
fn members(
    records: &[Record],
    rules: Rules<'_>,
    now: Timestamp,
) -> BTreeMap<AccountName, Vec<Member>> {
    let configuration = rules.configuration;
    let schedules = configuration.schedules.iter();
    let nights: BTreeMap<&ScheduleName, _> = schedules
        .filter_map(|(name, rule)| Some((name, next_night(&rule.schedule, now)?)))
        .collect();
    let mut members = BTreeMap::<_, Vec<_>>::new();
    for record in records {
        if matches!(record.phase, Phase::Gone { .. }) {
            continue;
        }
        let membership = Membership::of(Subject::recorded(record), configuration);
        let policy = membership.policy(configuration);
        let night = membership.schedule().and_then(|schedule| nights.get(schedule));
        let Some(&(evening, morning)) = night else {
            continue;
        };
        if mode(record, &policy, configuration) == Mode::Act {
            let resource = (record.kind(), StopMethod::of(record.kind(), &policy));
            let account = members.entry(record.reference.account.clone()).or_default();
            account.push(Member { resource, evening, morning });
        }
    }
    members
}

/// Returns the next stop edge of a schedule, and the start edge after it.
fn next_night(schedule: &Schedule, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
    let mut edges = schedule.edges(now).take(SEARCHED);
    let evening = edges.find(|edge| edge.desired == Some(Desired::Stopped))?;
    let morning = edges.find(|edge| edge.desired == Some(Desired::Running))?;
    Some((evening.at, morning.at))
}

#[cfg(test)]
mod tests {
    use domain::{
        configuration::{Configuration, Overrides},
        pacing::RateLimit,
        resource::Power,
    };
    use serde_json::json;
    use testing::history::record;

    use super::*;

    fn configuration(method: &str, morning: &str) -> Configuration {
        let schedule = |begin: &str| {
            json!({
                "schedule": {
                    "timezone": "UTC",
                    "periods": [{ "begin": begin, "end": "19:00" }],
                },
                "methods": { "droplet": method },
            })
        };
        let account = |provider| json!({ "provider": provider, "token": "env:T" });
        serde_json::from_value(json!({
            "generation": 1,
            "settings": {},
            "accounts": { "do-main": account("digitalocean"), "hz-eu": account("hetzner") },
            "schedules": { "office": schedule("08:00"), "other": schedule(morning) },
        }))
        .unwrap()
    }

    /// Droplets that follow `office`, and as many that follow `other`.
    fn droplets(each: u64) -> Vec<Record> {
        let droplet = |id: u64| {
            let mut droplet = record(&format!("do-main/droplet/{id}"), Power::Running, "15 08:00");
            let schedule = if id.is_multiple_of(2) { "office" } else { "other" };
            droplet.tags = [format!("offhours:{schedule}")].into();
            droplet
        };
        (0..2 * each).map(droplet).collect()
    }

    fn found(configuration: &Configuration, each: u64, per_hour: u64) -> Vec<Overload> {
        let overrides = Overrides::default();
        let rules = Rules { configuration, overrides: &overrides };
        let now = "2026-11-23T12:00:00Z".parse().unwrap();
        let state = |name: &AccountName| {
            let rate = RateLimit { remaining: 0, at: now, limit: Some(per_hour), others: None };
            (name.clone(), AccountState { rate: Some(rate), ..AccountState::unknown(name.clone()) })
        };
        let states = configuration.accounts.keys().map(state).collect();
        overloads(&droplets(each), rules, &states, now)
    }

    #[test]
    fn starts_that_exceed_an_hour_are_found_and_spreading_them_helps() {
        let together = configuration("hibernate", "08:00");
        let [one] = &found(&together, 20, 5000)[..] else { panic!("one account") };
        assert_eq!((one.account.as_str(), one.resources, one.hibernated), ("do-main", 40, 40));
        assert_eq!(one.until, "2026-11-24T08:00:00Z".parse().unwrap());
        assert_eq!((one.starts_only, one.carried), (true, 4750));
        assert!(one.requests > one.carried, "{one:?}");
        assert_eq!(found(&configuration("hibernate", "09:00"), 20, 5000), []);
        assert_eq!(found(&together, 10, 5000), []);
        assert_eq!(found(&configuration("power-off", "08:00"), 20, 5000), []);
    }

    #[test]
    fn a_night_that_exceeds_its_hours_is_found_though_each_morning_fits() {
        let apart = serde_json::to_string(&configuration("hibernate", "09:30")).unwrap();
        let short = apart.replace("19:00", "23:00").replace("08:00", "00:30");
        let short = serde_json::from_str(&short).unwrap();
        let [one] = &found(&short, 12, 3000)[..] else { panic!("one account") };
        assert!(!one.starts_only, "{one:?}");
        assert_eq!(one.carried, 2850 * 3 / 2);
    }

    #[test]
    fn what_is_only_observed_or_follows_nothing_takes_no_requests() {
        let mut observed = configuration("hibernate", "08:00");
        observed.settings.mode = Mode::Observe;
        assert_eq!(found(&observed, 40, 5000), []);
        let mut without = configuration("hibernate", "08:00");
        without.schedules.clear();
        assert_eq!(found(&without, 40, 5000), []);
    }
}
