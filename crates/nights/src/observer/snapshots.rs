//! Checks on which snapshots of machines are removed, and how many there are.

use domain::{AccountName, ResourceRef};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{State, disks::does_not_boot};

/// The number of newer snapshots that remain, at least, when one is removed.
const LEFT: usize = 2;

/// The number of snapshots at which no further one is made.
const MOST: usize = 4;

/// The minimum time that a snapshot stays after it was requested, less the time that it may have
/// taken.
const STAYS: SignedDuration = SignedDuration::from_hours(3 * 24 - 2);

/// The minimum time that a machine must have run to prove the snapshot it was created from. The
/// first and the last observation for that may each come a little later here than in the handlers.
const RAN: SignedDuration = SignedDuration::from_mins(9);

/// The prefix of names that people give to their snapshots.
const OF_PEOPLE: &str = "mine-";

/// Returns the image that a change removes or leaves without protection.
fn removed(path: &str, body: &str) -> Option<u64> {
    let image = path.strip_prefix("DELETE /v1/images/");
    let snapshot = path.strip_prefix("DELETE /v2/snapshots/");
    let changed = path.strip_prefix("POST /v1/images/");
    let bared = changed
        .and_then(|rest| rest.strip_suffix("/actions/change_protection"))
        .filter(|_| body.contains("\"delete\":false"));
    image.or(snapshot).or(bared)?.parse().ok()
}

fn adds(path: &str, body: &str) -> bool {
    let of_droplet = path.starts_with("POST /v2/droplets/") && body.contains("\"snapshot\"");
    of_droplet || path.ends_with("/actions/create_image")
}

fn is_complete(image: &Value, now: Timestamp) -> bool {
    let listed = image["listed"].as_str().and_then(|at| at.parse().ok());
    let shown = listed.is_none_or(|at: Timestamp| at <= now);
    shown && image.get("status").is_none_or(|is| is == "available")
}

fn created(image: &Value) -> Timestamp {
    let created = image["created"].as_str().and_then(|at| at.parse().ok());
    created.unwrap_or_default()
}

impl State {
    /// Returns the snapshots at a cloud that carry the name or the label of a resource.
    pub(crate) fn snapshots_of(&self, resource: &ResourceRef) -> Vec<Value> {
        let of = resource.id.to_string().replace('/', ".");
        let named = format!("offhours.{of}.");
        let mut images = self.simulator.images();
        images.retain(|image| {
            let name = image["name"].as_str();
            let is_named = name.is_some_and(|name| name.starts_with(&named));
            image["account"] == resource.account.as_str()
                && (image["labels"]["offhours-of"] == of.as_str() || is_named)
        });
        images
    }

    /// Checks that a snapshot is removed only if it is old or there is no room for another one, at
    /// least `LEFT` newer ones exist, one of those is proven, and it is not a person's.
    pub(super) fn check_removal(&mut self, resource: &ResourceRef, path: &str, body: &str) {
        let Some(id) = removed(path, body) else {
            return;
        };
        let now = self.time.now();
        let all = self.simulator.images();
        let Some(image) = all.into_iter().find(|image| image["id"] == id) else {
            return;
        };
        let own = self.snapshots_of(resource);
        if !own.contains(&image) {
            self.violated(format!("{path} removes what is not of {resource}: {image}"));
        }
        let kept = self.records.get(resource).and_then(|record| record.hibernation.as_ref());
        let kept = kept.and_then(|kept| kept.snapshots.iter().find(|one| one.id == Some(id)));
        // Nothing rests on one that was called failed before any look saw it complete.
        let shown_as = image["shown_as"].as_str();
        let is_called_failed = matches!(shown_as, Some("unavailable" | "deleted" | "retired"));
        let was_incomplete = kept.is_some_and(|one| one.centi_gb.is_none());
        if image["status"] == "unavailable" || is_called_failed && was_incomplete {
            return;
        }
        let newer: Vec<_> = own
            .iter()
            .filter(|one| is_complete(one, now) && created(one) > created(&image))
            .filter_map(|one| one["id"].as_u64())
            .collect();
        let is_proven = newer.iter().any(|id| self.proven.contains(id));
        let is_old = now.duration_since(created(&image)) >= STAYS;
        self.count("a snapshot is removed for newer ones");
        let is_full = own.len() >= MOST;
        if newer.len() < LEFT || !is_proven || !(is_old || is_full) {
            self.violated(format!(
                "{path} removes {image}; newer ones are {newer:?}, proven are {:?}",
                self.proven
            ));
        }
    }

    /// Checks that no snapshot is made once there are as many as allowed.
    pub(super) fn check_addition(&mut self, resource: &ResourceRef, path: &str, body: &str) {
        let now = self.time.now();
        if !adds(path, body) {
            return;
        }
        let mut own = self.snapshots_of(resource);
        own.retain(|image| is_complete(image, now));
        if own.len() >= MOST {
            self.violated(format!("{path} adds to {} snapshots", own.len()));
        }
    }

    /// Marks a snapshot as proven once a machine created from it has run for some time.
    pub(super) fn mark_proven(&mut self, state: &Value) {
        let from = state["made_from"].as_u64().or(state["image"].as_u64());
        let (Some(from), Some(id)) = (from, state["id"].as_u64()) else {
            return;
        };
        let runs = state["powered"] == true || state["status"] == "running";
        if !runs || does_not_boot(state) {
            return;
        }
        let now = self.time.now();
        let since = *self.ran_since.entry(id).or_insert(now);
        if now.duration_since(since) >= RAN {
            self.proven.insert(from);
        }
    }

    /// Checks that every snapshot that people made is still there.
    pub(super) fn check_peoples_snapshots(&mut self) {
        let all = self.simulator.images();
        let there = all.iter().filter_map(|image| {
            let names = [&image["name"], &image["description"]];
            let mut names = names.into_iter().filter_map(Value::as_str);
            let is_theirs = names.any(|name| name.starts_with(OF_PEOPLE));
            let account: AccountName = image["account"].as_str()?.parse().ok()?;
            let id = image["id"].as_u64().filter(|_| is_theirs)?;
            Some((account, id))
        });
        let there = there.collect();
        if let Some((account, id)) = self.of_people.difference(&there).next() {
            let lost = format!("a snapshot that a person made is gone: {account} {id}");
            self.violated(lost);
        }
        self.of_people = there;
    }
}
