//! Checks on every change that is sent to a cloud.

use cloud_simulator::Entry;
use domain::{
    AccountName, ResourceId, ResourceKind, ResourceRef,
    configuration::OverrideTarget,
    record::{Ask, Cause, Direction, Handled, Rank},
    step::Step,
};
use jiff::SignedDuration;
use serde_json::Value;

use super::{AcceptedChange, ResourceSize, SLACK, State, rules};
use crate::{clockwork::TaskId, plans, trace::Actor};

/// An observation may be half a minute old when it supports a write, and the request leaves within
/// half a minute of that write.
pub(super) const OBSERVE_AND_SEND: SignedDuration = SignedDuration::from_secs(60);

/// How long a machine gets to go off after an accepted shutdown.
const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// How long a person's change of a size may race with one of ours, which arrives so late at most: no
/// provider offers compare-and-set.
const CROSSES: SignedDuration = SignedDuration::from_secs(180);

/// How long a database may take to have another size. Until then it does not show it.
const RESIZES: SignedDuration = SignedDuration::from_mins(15);

/// The number of times that one change of a resource may be asked for within an hour, for one edge. What
/// `enforce` puts back is seen by each inventory, every five minutes. A start that is refused is asked again
/// each quarter of an hour, and a creation each ten minutes after its first few.
const MOST_ASKED: usize = 15;

/// How long a command counts as the reason for what is sent.
pub(super) const COMMAND: SignedDuration = SignedDuration::from_hours(2);

/// Returns the resource that a change is for.
pub(super) fn resource_of(account: &AccountName, path: &str) -> Option<ResourceRef> {
    let (_, path) = path.split_once(' ')?;
    let mut parts = path.trim_start_matches('/').split('/').skip(1);
    let text = match (parts.next()?, parts.next()?) {
        ("droplets", id) => format!("{account}/droplet/{id}"),
        ("servers", id) => format!("{account}/server/{id}"),
        ("databases", id) => format!("{account}/database/{id}"),
        ("kubernetes", _) => {
            let (cluster, pool) = (parts.next()?, parts.nth(1)?);
            format!("{account}/node-pool/{cluster}/{pool}")
        }
        _ => return None,
    };
    text.parse().ok()
}

/// Reports whether a request cuts the power at once.
fn cuts(path: &str, body: &str) -> bool {
    path.ends_with("/actions/poweroff") || body.contains("\"power_off\"")
}

fn shuts_down(path: &str, body: &str) -> bool {
    path.ends_with("/actions/shutdown") || body.contains("\"shutdown\"")
}

/// Returns the plan that a change requests for a machine.
fn asked_plan(path: &str, body: &str) -> Option<String> {
    let body: Value = serde_json::from_str(body).ok()?;
    let plan =
        if path.ends_with("/actions/change_type") { &body["server_type"] } else { &body["size"] };
    let is_machine = path.contains("/servers/") || path.contains("/droplets/");
    plan.as_str().filter(|_| is_machine).map(str::to_owned)
}

impl State {
    pub(super) fn check_request(
        &mut self,
        account: &AccountName,
        path: &str,
        body: &str,
        by: TaskId,
    ) {
        let named = resource_of(account, path).map(|named| self.original(named));
        let Some(resource) = named.or_else(|| self.resource_of_request(path, by)) else {
            return self.violated(format!("a change of something unknown: {path}"));
        };
        if !matches!(self.actor(by), Actor::Function(_)) {
            return self.violated(format!("a change by something that is not a function: {path}"));
        }
        self.check_rate(&resource, path, body);
        self.check_permit(&resource, path, by);
        self.check_not_newer(&resource, path);
        self.check_shared(&resource, path);
        self.check_order(&resource, path);
        self.check_membership(&resource, path);
        self.check_kept(&resource, path);
        self.check_desired(&resource, path);
        self.check_paused(&resource, path);
        self.check_account(&resource, path);
        self.check_grace(&resource, path, body);
        self.check_move(&resource, path, body);
        self.check_overtaken(&resource, path, body);
        self.check_deletion(&resource, path);
        self.check_removal(&resource, path, body);
        self.check_addition(&resource, path, body);
        self.check_address(&resource, path);
        self.note_move(&resource, path, body);
    }

    /// Records that a start switches a machine off to move it, or that a stop switches it off.
    fn note_move(&mut self, resource: &ResourceRef, path: &str, body: &str) {
        let now = self.time.now();
        if cuts(path, body) || shuts_down(path, body) {
            let record = self.records.get(resource);
            let transition = record.and_then(|record| record.in_flight());
            let starts = transition.is_some_and(|one| one.direction == Direction::Start);
            self.tracked(resource).moved_at = starts.then_some(now);
        }
    }

    /// Checks that a change is not asked for over and over.
    pub(super) fn check_rate(&mut self, resource: &ResourceRef, path: &str, body: &str) {
        let now = self.time.now();
        let handled = self.records.get(resource).and_then(|record| record.handled.as_ref());
        let edge = handled.map(|handled| (handled.generation, handled.key));
        let what = (resource.clone(), edge, format!("{path} {body}"));
        // A table that is restored knows nothing of what was asked for since its backup.
        let restored_at = self.resources.get(resource).and_then(|tracked| tracked.restored_at);
        let asked = self.asked.entry(what).or_default();
        asked.retain(|at| {
            let is_recent = now.duration_since(*at) < SignedDuration::from_hours(1);
            is_recent && restored_at.is_none_or(|restored| *at > restored)
        });
        asked.push_back(now);
        let times = asked.len();
        if times > MOST_ASKED {
            self.violated(format!("{path} is sent {times} times within an hour"));
        }
    }

    /// Checks that a stop does not switch off what a person has switched on since it began.
    fn check_overtaken(&mut self, resource: &ResourceRef, path: &str, body: &str) {
        let now = self.time.now();
        let tracked = self.resources.get(resource);
        let switched_on_at = tracked.and_then(|tracked| tracked.switched_on_at);
        let (Some(at), Some(record)) = (switched_on_at, self.records.get(resource)) else {
            return;
        };
        let stops = record.in_flight().is_some_and(|transition| {
            transition.direction == Direction::Stop && transition.claimed_at < at
        });
        let before = |handled: &Handled| handled.key.instant < at;
        let is_old = record.handled.as_ref().is_some_and(before);
        let look = record.request.as_ref().map(|request| request.looked_at);
        let crossed = look.is_none_or(|look| look < at + SLACK)
            && now.duration_since(at) < OBSERVE_AND_SEND + SLACK;
        if (cuts(path, body) || shuts_down(path, body)) && stops && is_old && !crossed {
            self.violated(format!("{path} undoes a person's start of {at}"));
        }
    }

    /// Checks that a machine is moved only to the plan that its record's open request names.
    fn check_move(&mut self, resource: &ResourceRef, path: &str, body: &str) {
        let Some(plan) = asked_plan(path, body) else {
            return;
        };
        let request = self.records.get(resource).and_then(|record| record.request.as_ref());
        let recorded = request.filter(|request| matches!(request.ask, Ask::Open));
        let target = recorded.and_then(|request| request.step.target());
        let target = target.and_then(ResourceSize::of_saved);
        let named = target.as_ref().and_then(ResourceSize::plan);
        if named != Some(plan.as_str()) {
            self.violated(format!("{path} moves to {plan}, and the record says {named:?}"));
        }
    }

    /// Checks that no request is sent without a permit that its sender has just written.
    pub(super) fn check_permit(&mut self, resource: &ResourceRef, path: &str, by: TaskId) {
        let now = self.time.now();
        let sender = self.tasks.get(&by).map(|(_, request)| request.clone());
        let permit = self.records.get(resource).and_then(|record| record.permit.clone());
        let valid = permit
            .is_some_and(|permit| Some(permit.writer.0) == sender && now < permit.until + SLACK);
        if !valid {
            self.violated(format!("{path} is sent without a permit of its sender"));
        }
    }

    /// Checks that nothing is sent for a resource that is not opted in.
    pub(super) fn check_membership(&mut self, resource: &ResourceRef, path: &str) {
        let now = self.time.now();
        let last = || {
            let last = &self.disks.get(resource)?.last;
            Some(self.sleeping_state(resource, last))
        };
        let Some(state) = self.state_of(resource).or_else(last) else {
            return;
        };
        let Some(tracked) = self.resources.get(resource) else {
            return;
        };
        let record = self.records.get(resource);
        // A command waits for its account and its cloud, and goes on until it ends. It may have taken
        // over a transition that a schedule began.
        let began = record.and_then(|record| {
            let transition = record.in_flight()?;
            let is_manual = matches!(transition.cause, Cause::Manual { .. });
            let key = record.handled.as_ref().map(|handled| handled.key);
            let taken_over = key.filter(|key| key.rank == Rank::Manual).map(|key| key.instant);
            is_manual.then_some(transition.claimed_at).max(taken_over)
        });
        let commanded = tracked.commanded_at.is_some_and(|at| {
            now.duration_since(at) < COMMAND || began.is_some_and(|began| began + SLACK >= at)
        });
        let named = self.overrides.get(&OverrideTarget::Resource(resource.clone()));
        let overridden =
            named.is_some_and(|one| one.set_at <= now + SLACK && one.ends_at + COMMAND > now);
        // A start by name restores what is held stopped, even if it has opted out.
        let starts = record.is_some_and(|one| one.under_way_towards(Direction::Start).is_some());
        let restores = commanded && starts && !rules::is_protected(&state, &self.setup);
        let may_be_named = restores || !rules::is_excluded(&state, &self.setup);
        let by_hand = (commanded || overridden) && may_be_named;
        // What was stopped before is started again, and what was begun before it joined goes on.
        let begins = record.filter(|record| record.held && !starts).is_some_and(|record| {
            let claimed_at = record.in_flight().map(|transition| transition.claimed_at);
            claimed_at >= record.joined_at
        });
        if begins && !by_hand {
            self.violated(format!("{path} is sent for what a person has not approved"));
            return;
        }
        // A rename takes a cloud some time: what its old name protected is no longer protected.
        let barred = rules::barred(resource, &state, &self.setup);
        if let Some(since) = tracked.barred_since
            && barred
            && !by_hand
            && now.duration_since(since) > OBSERVE_AND_SEND + SLACK
        {
            self.violated(format!("{path} is sent for what must not be touched since {since}"));
        }
    }

    /// Checks that nothing is sent for an account that is not configured.
    pub(super) fn check_account(&mut self, resource: &ResourceRef, path: &str) {
        let now = self.time.now();
        let since = self.away.get(&resource.account).copied();
        if let Some(since) = since.filter(|at| now.duration_since(*at) > OBSERVE_AND_SEND + SLACK) {
            self.violated(format!(
                "{path} is sent for an account that is not configured since {since}"
            ));
        }
    }

    /// Checks that the power is not cut before the guest has had time to shut down.
    fn check_grace(&mut self, resource: &ResourceRef, path: &str, body: &str) {
        let now = self.time.now();
        if !cuts(path, body) {
            return;
        }
        let request = self.records.get(resource).and_then(|record| record.request.as_ref());
        let graceful =
            request.is_some_and(|request| request.step == Step::Off { gracefully: true });
        let is_server = matches!(resource.id, ResourceId::Server(_));
        let shutdown = self.resources.get(resource).and_then(|tracked| tracked.shutdown_at);
        let had_its_time = shutdown.is_some_and(|at| now.duration_since(at) >= GRACE);
        if (graceful || is_server) && !had_its_time {
            self.violated(format!("{path} cuts the power; the last shutdown was at {shutdown:?}"));
        }
    }

    /// Processes what the clouds have accepted, late requests included.
    pub(super) fn process_log(&mut self) {
        for entry in self.simulator.log_after(self.seen_in_log) {
            self.seen_in_log = entry.sequence;
            self.note_refusal(&entry);
            let Some(resource) = entry.resource.clone().filter(|_| entry.changed) else {
                continue;
            };
            let resource = self.original(resource);
            let path = format!("{} {}", entry.request.method, entry.request.path);
            if shuts_down(&path, &entry.request.body) {
                self.tracked(&resource).shutdown_at = Some(entry.at);
            }
            match asked_plan(&path, &entry.request.body) {
                Some(plan) => self.check_move_down(&resource, &path, &plan),
                None => self.check_shrink(&resource, &path),
            }
            self.unexplained.push_back(AcceptedChange {
                at: entry.at,
                resource,
                described: format!("{path} {}", entry.request.body),
            });
        }
    }

    /// Records that a cloud refuses a change, and not only for now.
    fn note_refusal(&mut self, entry: &Entry) {
        let status = entry.answer.as_ref().map_or(0, |answer| answer.status);
        let is_refused = matches!(status, 400..500) && ![401, 403, 423, 429].contains(&status);
        let is_change = entry.request.method != "GET";
        if let Some(resource) = entry.resource.clone().filter(|_| is_refused && is_change) {
            let resource = self.original(resource);
            self.tracked(&resource).refused_at = Some(entry.at);
        }
    }

    /// Checks that a machine's own plan is stored before the cloud is asked for a cheaper one.
    fn check_move_down(&mut self, resource: &ResourceRef, path: &str, plan: &str) {
        let state = self.state_of(resource).unwrap_or(Value::Null);
        let Some(before) = ResourceSize::of(resource, &state) else {
            return;
        };
        let own = before.plan().unwrap_or_default().to_owned();
        if !plans::is_cheaper(plan, &own) {
            return;
        }
        let tracked = self.tracked(resource);
        let is_ours = tracked.small.contains(&own);
        tracked.small.insert(plan.to_owned());
        if tracked.owed.is_none() {
            tracked.owed = Some(before.clone());
        } else if !is_ours {
            // A person has moved it since: its own plan is now that one or the one before.
            tracked.chosen.insert(own);
        }
        let tracked = tracked.clone();
        let saved = self.records.get(resource).and_then(|record| record.saved.as_ref());
        let saved = saved.and_then(ResourceSize::of_saved);
        let will_do = saved
            .as_ref()
            .zip(tracked.owed.as_ref())
            .is_some_and(|(saved, owed)| tracked.will_do(saved, owed));
        if !will_do {
            self.violated(format!("{path} shrinks {before:?}, and saved is {saved:?}"));
        }
    }

    /// Checks that an original size is stored before the cloud is asked for a smaller one.
    fn check_shrink(&mut self, resource: &ResourceRef, path: &str) {
        let now = self.time.now();
        let state = self.state_of(resource).unwrap_or(Value::Null);
        let after = ResourceSize::of(resource, &state);
        let saved = self.records.get(resource).and_then(|record| record.saved.as_ref());
        let saved = saved.and_then(ResourceSize::of_saved);
        let tracked = self.tracked(resource);
        let before = std::mem::replace(&mut tracked.size, after.clone());
        let shows_late = resource.kind() == ResourceKind::Database;
        let so_long = if shows_late { CROSSES + RESIZES } else { CROSSES };
        let crossed = tracked.sized_at.is_some_and(|at| now.duration_since(at) < so_long);
        let (Some(before), Some(after)) = (before, after) else {
            return;
        };
        // Only a change of plan makes a machine smaller.
        if after.plan().is_some() || after.covers(&before) {
            return;
        }
        // What a person has just chosen may not have been seen. What was seen is owed all the same.
        let owed = if crossed { saved.clone() } else { Some(before.clone()) };
        let Some(owed) = owed else {
            return self.violated(format!("{path} shrinks {before:?}, and nothing is saved"));
        };
        if !saved.as_ref().is_some_and(|saved| saved.covers(&owed)) {
            self.violated(format!("{path} shrinks {before:?}, and saved is {saved:?}"));
        }
        let tracked = self.tracked(resource);
        tracked.owed = Some(match tracked.owed.take() {
            Some(known) => known.joined(owed),
            None => owed,
        });
    }
}

#[cfg(test)]
mod tests {
    use domain::{
        configuration::Generation,
        record::{EdgeKey, Handled, Rank},
        schedule::Desired,
    };

    use crate::observer::tests::{DROPLET, at, observed, record_of};

    #[test]
    fn a_change_may_be_repeated_a_few_times_an_hour_for_each_edge() {
        let observer = observed("mon 19:00");
        let mut state = observer.lock();
        let droplet = DROPLET.parse().unwrap();
        let path = "POST /v2/droplets/1/actions";
        for _ in 0..super::MOST_ASKED {
            state.check_rate(&droplet, path, "power_off");
        }
        state.check_rate(&droplet, path, "power_on");
        assert_eq!(state.violation, None);
        let mut record = record_of(DROPLET);
        record.handled = Some(Handled {
            generation: Generation(1),
            key: EdgeKey { instant: at("mon 19:00"), rank: Rank::Manual },
            desired: Some(Desired::Stopped),
            schedule: None,
        });
        state.records.insert(droplet.clone(), record);
        state.check_rate(&droplet, path, "power_off");
        assert_eq!(state.violation, None);
        state.records.clear();
        state.check_rate(&droplet, path, "power_off");
        assert!(state.violation.is_some());
    }
}
