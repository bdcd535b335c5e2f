//! Checks on every write.

use domain::{
    ResourceKind, ResourceRef,
    configuration::{Override, Pause},
    history::HistoryEntry,
    record::{Ask, Direction, Forced, Handled, Phase, Record, Revision},
};
use jiff::SignedDuration;
use serde::de::DeserializeOwned;
use serde_json::Value;
use store::Head;

use super::{ResourceSize, SLACK, State, requests::OBSERVE_AND_SEND, settled::SETTLE_TIME};
use crate::{clockwork::TaskId, generate::BUREAU, night::Setup, trace::record_in_a_line};

/// How long after a person's change of a size a start may still end with it.
const OVERTAKES: SignedDuration = SignedDuration::from_mins(45);

pub(super) fn read<T: DeserializeOwned>(item: &Value) -> Option<T> {
    let item: serde_dynamo::Item = serde_json::from_value(item.clone()).ok()?;
    serde_dynamo::from_item(item).ok()
}

/// Returns the resource whose record an item or a key is.
fn key(item: &Value) -> Option<ResourceRef> {
    let (account, id) = (item["account"]["S"].as_str()?, item["resource"]["S"].as_str()?);
    format!("{account}/{id}").parse().ok()
}

impl State {
    pub(super) fn process_write(&mut self, operation: &str, body: &Value, by: TaskId) {
        match operation {
            // A person's override is written with an entry in the activity log. Without one, it is a
            // copy under another name of its account.
            "PutItem" if body["Item"]["generation_key"]["S"] == "override" => {}
            "PutItem" => self.process_put(body, by),
            "UpdateItem" => self.process_update(body),
            _ => {
                let items = body["TransactItems"].as_array().into_iter().flatten();
                let puts = items.clone().map(|item| &item["Put"]);
                let records = puts.filter(|put| put["TableName"] == "offhours-resources");
                let put: Vec<_> = records.map(|put| key(&put["Item"])).collect();
                for item in items {
                    self.process_put(&item["Put"], by);
                    // What is carried over to another name of its account is still there.
                    if !put.contains(&key(&item["Delete"]["Key"])) {
                        self.process_delete(&item["Delete"], by);
                    }
                }
            }
        }
    }

    fn process_put(&mut self, put: &Value, by: TaskId) {
        let item = &put["Item"];
        match put["TableName"].as_str() {
            Some("offhours-resources") => match read::<Record>(item) {
                Some(record) => self.process_record(&record, by),
                None => self.violated("a record was written that cannot be read"),
            },
            // What persons did is known here without it.
            Some("offhours-history") if item["reference"]["S"] == "activity" => {}
            Some("offhours-history") => match read::<HistoryEntry>(item) {
                Some(entry) => self.process_history(entry),
                None => self.violated("a history item was written that cannot be read"),
            },
            Some("offhours-schedules") => self.process_rules(item),
            _ => {}
        }
    }

    fn process_rules(&mut self, item: &Value) {
        let now = self.time.now();
        let partition = &item["generation_key"]["S"];
        if partition != "head" && partition != "override" {
            return;
        }
        self.last_change = now;
        if partition == "head" {
            let written = read::<Head>(item);
            self.generation = written.map_or(self.generation, |head| head.generation);
            if let Some(setup) = self.applying.take() {
                self.count_changes(&setup);
                self.before = std::mem::replace(&mut self.setup, setup);
                let known = &self.setup.accounts;
                let had = self.before.accounts.keys();
                let lost = had.filter(|name| !known.contains_key(*name));
                self.away.retain(|name, _| !known.contains_key(name));
                self.away.extend(lost.map(|name| (name.clone(), now)));
                self.applied_at = now;
                self.note_shared();
                self.observe_all();
            }
        } else if let Some(one) = read::<Override>(item) {
            self.overrides.insert(one.target.clone(), one);
            self.overridden_at = Some(now);
        } else if let Some(pause) = read::<Pause>(item) {
            self.process_pause(pause);
        }
    }

    /// Counts what a new configuration means for resources that sleep or are in flight.
    fn count_changes(&mut self, after: &Setup) {
        let has_bureau = |setup: &Setup| setup.schedules.keys().any(|name| name.as_str() == BUREAU);
        if has_bureau(after) != has_bureau(&self.setup) {
            self.count("a schedule is renamed");
        }
        let records: Vec<_> = self.records.values().cloned().collect();
        for record in &records {
            let account = &record.reference.account;
            let had = self.setup.accounts.contains_key(account);
            let is_lost = had && !after.accounts.contains_key(account);
            let asleep = record.hibernation.as_deref().is_some_and(|kept| kept.present.is_none());
            let direction = record.in_flight().map(|now| now.direction);
            if after.has_other_name(account) != self.setup.has_other_name(account) {
                self.count(match direction {
                    Some(Direction::Stop) => "an account is renamed in mid-stop",
                    Some(Direction::Start) => "an account is renamed in mid-start",
                    None if asleep => "an account is renamed while a machine sleeps",
                    None => "an account is renamed",
                });
            }
            if is_lost {
                self.count(match direction {
                    Some(Direction::Stop) => "an account is removed in mid-stop",
                    Some(Direction::Start) => "an account is removed in mid-start",
                    None if asleep => "an account is removed while a machine sleeps",
                    None => "an account is removed",
                });
            }
            let of = |setup: &Setup| {
                let rule = setup.schedules.get(record.schedule.as_ref()?)?;
                let methods = rule.policy.methods;
                Some(match record.reference.kind() {
                    ResourceKind::Droplet => format!("{:?}", methods.droplet),
                    ResourceKind::Server => format!("{:?}", methods.server),
                    ResourceKind::Database => format!("{:?}", methods.database),
                    ResourceKind::NodePool | ResourceKind::Machine => String::new(),
                })
            };
            let changes = of(&self.setup) != of(after);
            if changes && direction.is_some() {
                self.count("a stop method changes in mid-transition");
            }
            if changes && asleep {
                self.count("a stop method changes while a machine sleeps");
            }
        }
    }

    fn process_update(&mut self, update: &Value) {
        if update["TableName"] != "offhours-accounts" {
            return;
        }
        let values = &update["ExpressionAttributeValues"];
        let (Some(account), Some(tried_at)) =
            (values[":account"]["S"].as_str(), values[":tried_at"]["S"].as_str())
        else {
            return;
        };
        let listed_at = values[":listed_at"]["S"].as_str();
        let known = self.accounts.entry(account.to_owned()).or_default();
        known.listed_at = listed_at.and_then(|at| at.parse().ok());
        known.tried_at = tried_at.parse().ok();
        known.has_error = !values[":error"].is_null();
        known.token_fails = values[":token_fails"]["BOOL"] == true;
    }

    fn process_delete(&mut self, delete: &Value, by: TaskId) {
        if delete["TableName"] == "offhours-resources"
            && let Some(reference) = key(&delete["Key"])
        {
            self.check_newer_stays(&reference);
            self.check_removed(&reference, self.actor(by));
            self.records.remove(&reference);
        }
    }

    pub(super) fn process_record(&mut self, record: &Record, by: TaskId) {
        let reference = record.reference.clone();
        self.last_change = self.time.now();
        self.note(self.actor(by), || record_in_a_line(record));
        self.check_newer_stays(&reference);
        let before = self.records.insert(reference, record.clone());
        let replaced = before.as_ref().map_or(Revision(0), |before| before.revision);
        if record.revision.0 != replaced.0 + 1 {
            self.violated(format!(
                "{} was written as revision {} in place of {}",
                record.reference, record.revision.0, replaced.0
            ));
        }
        self.check_silence(before.as_ref(), record);
        self.check_there(before.as_ref(), record);
        if let Some(before) = before {
            self.count_sleep(&before, record);
            self.check_handled(&before, record);
            self.check_claim(&before, record);
            self.check_repetition(&before, record);
            self.check_until(&before, record);
            self.check_joins(&before, record);
            self.check_retained(&before, record);
        }
        self.record_without(record);
        let tracked = self.tracked(&record.reference);
        tracked.retained |= record.retained;
        tracked.retained &= record.in_flight().is_none();
        if let Phase::Settled { at } = record.phase {
            tracked.last_settled = Some(at);
        }
        self.check_not_gone(record);
        self.check_saved(record);
        self.note_shared();
        self.observe_disk_of(record);
    }

    /// Checks that the handled generation never goes back, nor the handled edge within one
    /// schedule.
    fn check_handled(&mut self, before: &Record, after: &Record) {
        let (Some(old), Some(new)) = (&before.handled, &after.handled) else {
            return;
        };
        let edge = |handled: &Handled| (handled.generation, handled.key);
        let schedules = old.schedule.is_some() && old.schedule == new.schedule;
        if new.generation < old.generation || schedules && edge(new) < edge(old) {
            self.violated(format!(
                "{} goes back from the edge {old:?} to {new:?}",
                after.reference
            ));
        }
    }

    /// Checks that a new transition consumes an edge: none is acted upon twice, so that a person's
    /// changes between edges stand.
    fn check_claim(&mut self, before: &Record, after: &Record) {
        let Some(transition) = after.in_flight() else {
            return;
        };
        // A stuck transition goes on once its part is seen after all.
        let anew = before.transition().is_none_or(|old| old.claimed_at != transition.claimed_at);
        if !anew || before.handled != after.handled {
            return;
        }
        let is_enforced_by = |setup: &Setup| {
            // A look may show a schedule that no list has shown yet.
            transition.schedule.as_ref().or(after.schedule.as_ref()).is_some_and(|name| {
                let rule = setup.schedules.get(name);
                rule.is_none_or(|rule| rule.policy.enforce)
            })
        };
        // What began before a new configuration continues under the previous one.
        let is_new = self.time.now().duration_since(self.applied_at) <= OBSERVE_AND_SEND + SLACK;
        let enforced = is_enforced_by(&self.setup) || is_new && is_enforced_by(&self.before);
        if !enforced {
            self.violated(format!(
                "{} begins a transition without an edge: {:?}",
                after.reference, after.handled
            ));
        }
    }

    /// Checks that `retain_running` keeps only what a person has started since an edge that was
    /// handled before, and what it has kept until now.
    fn check_retained(&mut self, before: &Record, after: &Record) {
        let is_new = after.retained && !before.retained;
        let Some(handled) = before.handled.as_ref().filter(|_| is_new) else {
            return;
        };
        let tracked = self.tracked(&after.reference);
        let touched = [
            tracked.person_at,
            tracked.until_at,
            tracked.commanded_at,
            tracked.restored_at,
            tracked.misread_at,
            tracked.cut_off_at,
        ];
        let since = handled.key.instant - SETTLE_TIME;
        if !tracked.retained && touched.into_iter().flatten().all(|at| at < since) {
            self.violated(format!("{} is left running, and no person started it", after.reference));
        }
    }

    /// Checks that an accepted request is never repeated.
    fn check_repetition(&mut self, before: &Record, after: &Record) {
        let (Some(old), Some(new)) = (&before.request, &after.request) else {
            return;
        };
        let same = before.in_flight().is_some()
            && before.in_flight() == after.in_flight()
            && before.handled == after.handled
            && old.direction == new.direction;
        let accepted = matches!(old.ask, Ask::Accepted { .. });
        let again = matches!(new.ask, Ask::Open) && new.forced == Forced::No;
        if same && accepted && again {
            self.violated(format!("{} asks again for what was accepted", after.reference));
        }
    }

    /// Checks that what must be restored stays saved until it has been seen restored.
    fn check_saved(&mut self, record: &Record) {
        let now = self.time.now();
        let reference = &record.reference;
        let tracked = self.tracked(reference).clone();
        let Some(owed) = tracked.owed.as_ref() else {
            return;
        };
        if matches!(record.phase, Phase::Gone { .. }) {
            self.tracked(reference).clear_owed();
            return;
        }
        let state = self.state_of(reference).unwrap_or(Value::Null);
        let is_back =
            ResourceSize::of(reference, &state).is_none_or(|now| tracked.will_do(&now, owed));
        let saved = record.saved.as_ref().and_then(ResourceSize::of_saved);
        let is_saved = saved.as_ref().is_some_and(|saved| tracked.will_do(saved, owed));
        // A start that a person's size overtakes leaves that.
        let sized_at = tracked.sized_at;
        let is_theirs = sized_at.is_some_and(|at| now.duration_since(at) < OVERTAKES);
        if record.saved.is_none() && is_theirs {
            self.tracked(reference).clear_owed();
            return;
        }
        if !is_saved && !is_back {
            self.violated(format!("{reference} is owed {owed:?}, and saved is {saved:?}"));
        }
        if record.saved.is_none() && is_back {
            self.tracked(reference).clear_owed();
        }
    }
}
