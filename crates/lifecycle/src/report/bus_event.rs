//! The events published to the bus. `infra/events/` has a JSON schema for each, which consumers may
//! rely on.

use std::collections::BTreeMap;

use domain::{
    AccountName, ResourceKind, ResourceRef, ScheduleName,
    activity::{Action, Activity},
    configuration::{Generation, OverrideTarget, PauseScope},
    digest::Digest,
    event_type::EventType,
    notice::StopNotice,
    record::{Cause, Direction, Ending},
    resource::SavedState,
    schedule::Desired,
    stop_method::StopMethod,
    text::{LONGEST_LINE, one_line},
};
use environment::BusEvent;
use jiff::Timestamp;
use serde::Serialize;

use crate::event::{Event, HeldResource, Occurrence, Subject};

/// The fields of every event about a resource or an account.
#[derive(Serialize)]
struct Detail<'a> {
    stack: &'a str,
    at: Timestamp,
    /// One self-contained line for people.
    text: String,
    account: &'a AccountName,
    #[serde(flatten)]
    about: Option<About<'a>>,
    #[serde(flatten)]
    facts: Facts<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    folded: bool,
}

/// The fields of an event that stands for alerts which are not mailed one by one.
#[derive(Serialize)]
struct FoldedDetail<'a> {
    stack: &'a str,
    at: Timestamp,
    text: String,
    kind: &'static str,
    count: usize,
    resources: &'a [ResourceRef],
}

/// The fields of an event about a schedule's edge.
#[derive(Serialize)]
struct EdgeDetail<'a, T> {
    stack: &'a str,
    text: String,
    #[serde(flatten)]
    edge: &'a T,
}

/// The fields of an event about what a person did.
#[derive(Serialize)]
struct ActivityDetail<'a> {
    stack: &'a str,
    at: Timestamp,
    text: String,
    by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(flatten)]
    changed: Changed<'a>,
}

/// What a person changed. A fact has the same name in every event that has it.
#[derive(Default, Serialize)]
struct Changed<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<&'a ResourceRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<&'a ScheduleName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    desired: Option<Desired>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<&'a AccountName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<&'a str>,
    /// For a pause: whether starts are sent all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    starts: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<Generation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeats: Option<Generation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<&'a [String]>,
}

impl<'a> Changed<'a> {
    /// Returns what a pause applies to; nothing for everything.
    fn of_scope(scope: &'a PauseScope) -> Self {
        let all = Self::default();
        match scope {
            PauseScope::Everything => all,
            PauseScope::Account(account) => Self { account: Some(account), ..all },
            PauseScope::Schedule(schedule) => Self { schedule: Some(schedule), ..all },
            PauseScope::Tag(pattern) => Self { tag: Some(pattern.glob()), ..all },
        }
    }

    /// Returns the type of an action's event, and its facts; `None` if it has none.
    fn of(action: &'a Action) -> Option<(EventType, Self)> {
        let of_target = |target: &'a OverrideTarget| match target {
            OverrideTarget::Resource(resource) => {
                Self { resource: Some(resource), ..Self::default() }
            }
            OverrideTarget::Schedule(schedule) => {
                Self { schedule: Some(schedule), ..Self::default() }
            }
        };
        Some(match action {
            Action::OverrideSet { target, desired, ends_at, .. } => {
                let changed =
                    Self { desired: Some(*desired), ends_at: Some(*ends_at), ..of_target(target) };
                (EventType::OverrideSet, changed)
            }
            Action::OverrideCleared { target } => (EventType::OverrideCleared, of_target(target)),
            Action::Paused { scope, starts, ends_at } => {
                let changed = Self {
                    starts: Some(*starts),
                    ends_at: Some(*ends_at),
                    ..Self::of_scope(scope)
                };
                (EventType::PauseSet, changed)
            }
            Action::Resumed { scope } => (EventType::PauseEnded, Self::of_scope(scope)),
            Action::Applied { generation, repeats, changes } => {
                let changed = Self {
                    generation: Some(*generation),
                    repeats: *repeats,
                    changes: Some(changes),
                    ..Self::default()
                };
                (EventType::ConfigurationApplied, changed)
            }
            // Its effect on each resource has an event of its own.
            Action::Command { .. } | Action::Approved { .. } | Action::Forgotten { .. } => {
                return None;
            }
        })
    }
}

#[derive(Serialize)]
struct About<'a> {
    resource: &'a ResourceRef,
    kind: ResourceKind,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<&'a ScheduleName>,
}

/// The facts of an event. A fact has the same name in every event that has it.
#[derive(Default, Serialize)]
struct Facts<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    ending: Option<Ending>,
    #[serde(skip_serializing_if = "Option::is_none")]
    direction: Option<Direction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    /// For a command: who gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    /// Counted from the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forced: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<StopMethod>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<&'a SavedState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resources: Vec<Held<'a>>,
}

#[derive(Serialize)]
struct Held<'a> {
    #[serde(flatten)]
    held: &'a HeldResource,
    kind: ResourceKind,
}

impl<'a> Facts<'a> {
    fn of(event: &'a Event) -> Self {
        let facts = Self::default();
        match event {
            Event::Seen { direction, cause, seconds, forced, method, saved, .. } => Self {
                seconds: Some(*seconds),
                forced: Some(*forced),
                method: *method,
                saved: saved.as_ref(),
                ..Self::ended(Ending::Seen, *direction, cause.as_ref())
            },
            Event::Overtaken { direction, cause } => {
                Self::ended(Ending::Superseded, *direction, cause.as_ref())
            }
            Event::LetGo { direction, cause } => {
                Self::ended(Ending::Released, *direction, cause.as_ref())
            }
            Event::Gone { saved } => {
                Self { ending: Some(Ending::Gone), saved: saved.as_ref(), ..facts }
            }
            Event::Refused { direction, cause, reason } => {
                Self::failed(*direction, cause.as_ref(), reason.to_string())
            }
            Event::Stuck { direction, cause, reason } => {
                Self::failed(*direction, cause.as_ref(), reason.clone())
            }
            Event::OrderNotKept { direction, reason, .. } => {
                Self::failed(*direction, None, reason.clone())
            }
            Event::Orphaned { barrier } => Self { reason: barrier.clone(), ..facts },
            Event::Conflict { reason } => Self { reason: Some(reason.clone()), ..facts },
            Event::Forced { request, .. } => Self { request: Some(request), ..facts },
            Event::Held { count, resources } => Self::held(*count, resources),
            Event::Asked { .. }
            | Event::AlreadyThere { .. }
            | Event::WouldAsk { .. }
            | Event::Joined { .. }
            | Event::Approved
            | Event::ConfigurationOverruled { .. }
            | Event::UnknownSchedule { .. }
            | Event::InvalidUntil { .. }
            | Event::UnlikePlans { .. }
            | Event::Postponed { .. }
            | Event::Awaiting { .. }
            | Event::Watching { .. }
            | Event::Declined { .. }
            | Event::Status { .. } => facts,
        }
    }

    fn wanted(direction: Direction, cause: Option<&'a Cause>) -> Self {
        Self {
            direction: Some(direction),
            cause: cause.map(Cause::name),
            by: cause.and_then(Cause::by),
            ..Self::default()
        }
    }

    fn ended(ending: Ending, direction: Direction, cause: Option<&'a Cause>) -> Self {
        Self { ending: Some(ending), ..Self::wanted(direction, cause) }
    }

    fn failed(direction: Direction, cause: Option<&'a Cause>, reason: String) -> Self {
        Self { reason: Some(reason), ..Self::wanted(direction, cause) }
    }

    fn held(count: usize, resources: &'a [HeldResource]) -> Self {
        let held = |held: &'a HeldResource| Held { kind: held.resource.kind(), held };
        Self {
            count: Some(count),
            resources: resources.iter().map(held).collect(),
            ..Self::default()
        }
    }
}

/// The kinds of alerts of which one invocation may have hundreds, as after an outage.
const FOLDED: [EventType; 5] = [
    EventType::TransitionRefused,
    EventType::TransitionStuck,
    EventType::OrderNotKept,
    EventType::ResourceOrphaned,
    EventType::ResourceInConflict,
];

/// How many alerts of one kind an invocation has mailed. AWS ends a mail subscription that gets more
/// than ten messages a second (SNSLIMIT).
const MAILED: usize = 5;

/// How many of the folded alerts' resources are named.
const NAMED: usize = 20;

/// What one invocation publishes: every event, but of each kind of alert only the first few are to
/// be mailed, and one that stands for the rest.
#[derive(Debug, Default)]
pub struct Events {
    mailed: BTreeMap<EventType, usize>,
    folded: BTreeMap<EventType, Vec<ResourceRef>>,
    latest: Timestamp,
}

impl Events {
    /// Returns the event to publish for an outcome; `None` for most, which are only logged.
    pub fn of_outcome(&mut self, stack: &str, outcome: &Occurrence) -> Option<BusEvent> {
        let folds = outcome.event.class().published_as;
        let folds = folds.filter(|kind| FOLDED.contains(kind));
        let is_folded = folds.is_some_and(|kind| {
            let mailed = self.mailed.entry(kind).or_default();
            *mailed += 1;
            *mailed > MAILED
        });
        if let Some(kind) = folds.filter(|_| is_folded) {
            self.latest = self.latest.max(outcome.at);
            let folded = self.folded.entry(kind).or_default();
            folded.extend(outcome.resource());
        }
        of_outcome(stack, outcome, is_folded)
    }

    /// Returns the events that stand for the folded alerts, to be published last.
    #[must_use]
    pub fn of_folded(&self, stack: &str) -> Vec<BusEvent> {
        let event = |(kind, resources): (&EventType, &Vec<ResourceRef>)| {
            let count = resources.len();
            let named = &resources[..count.min(NAMED)];
            let listed: Vec<_> = named.iter().map(ToString::to_string).collect();
            let dots = if named.len() < count { ", …" } else { "" };
            let text = format!("{kind}: and {count} more: {}{dots}", listed.join(", "));
            let detail = FoldedDetail {
                stack,
                at: self.latest,
                text: in_one_line(&text),
                kind: kind.detail_type(),
                count,
                resources: named,
            };
            written(self.latest, EventType::AlertsFolded, &detail)
        };
        self.folded.iter().filter_map(event).collect()
    }
}

fn of_outcome(stack: &str, outcome: &Occurrence, folded: bool) -> Option<BusEvent> {
    let event = &outcome.event;
    let event_type = event.class().published_as?;
    let (account, about, who) = match &outcome.subject {
        Subject::Resource { resource, name, follows } => {
            let about = About { resource, kind: resource.kind(), name, schedule: follows.as_ref() };
            let who = about.in_words();
            (&resource.account, Some(about), who)
        }
        Subject::Account { account } => (account, None, account.to_string()),
    };
    let detail = Detail {
        stack,
        at: outcome.at,
        text: in_one_line(&format!("{who}: {event}{}", what_to_do(outcome))),
        account,
        about,
        facts: Facts::of(event),
        folded,
    };
    written(outcome.at, event_type, &detail)
}

/// Names the command that says what to do about an event, unless its text does.
fn what_to_do(outcome: &Occurrence) -> String {
    let needs_person = matches!(
        outcome.event,
        Event::Refused { .. } | Event::Stuck { .. } | Event::Conflict { .. }
    );
    let resource = outcome.resource().filter(|_| needs_person);
    let command = |resource| format!("; `offhours why {resource}` says what to do");
    resource.map_or_else(String::new, command)
}

/// Returns the event to publish once every resource that follows an edge has finished it.
#[must_use]
pub fn of_digest(stack: &str, digest: &Digest) -> Option<BusEvent> {
    let detail = EdgeDetail { stack, text: in_one_line(&digest.to_string()), edge: digest };
    written(digest.at, EventType::EdgeCompleted, &detail)
}

/// Returns the event to publish when a stop is announced, or called off.
#[must_use]
pub fn of_notice(stack: &str, notice: &StopNotice) -> Option<BusEvent> {
    let called_off = notice.is_called_off();
    let event_type = if called_off { EventType::StopCalledOff } else { EventType::StopAnnounced };
    let detail = EdgeDetail { stack, text: in_one_line(&notice.to_string()), edge: notice };
    written(notice.at, event_type, &detail)
}

/// Returns the event to publish for what a person did; `None` if its effects have their own.
#[must_use]
pub fn of_activity(stack: &str, activity: &Activity) -> Option<BusEvent> {
    let (event_type, changed) = Changed::of(&activity.action)?;
    let detail = ActivityDetail {
        stack,
        at: activity.at,
        text: in_one_line(&activity.to_string()),
        by: activity.by.to_string(),
        reason: activity.why.as_deref(),
        changed,
    };
    written(activity.at, event_type, &detail)
}

impl About<'_> {
    /// Identifies the resource to a reader who knows nothing else.
    fn in_words(&self) -> String {
        let schedule = self.schedule.map(|schedule| format!(", schedule {schedule}"));
        let which = format!("{}{}", self.resource, schedule.unwrap_or_default());
        match self.name {
            "" => which,
            name => format!("{name} ({which})"),
        }
    }
}

fn written(at: Timestamp, event_type: EventType, detail: &impl Serialize) -> Option<BusEvent> {
    match serde_json::to_string(detail) {
        Ok(detail) => Some(BusEvent { at, event_type, detail }),
        Err(error) => {
            tracing::error!("Could not write an event: {error}");
            None
        }
    }
}

/// Makes a text fit for an email's subject and a chat's line. Rules put it between quotes verbatim,
/// so it must have neither quotes nor backslashes; what Slack reads as a link or a mention is
/// neutralized.
fn in_one_line(text: &str) -> String {
    let text = one_line(text, LONGEST_LINE);
    let text = text.replace('"', "'").replace('\\', "/");
    let text = text.replace('<', "(").replace('>', ")");
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::event::Answer;

    fn outcome(event: Event) -> Occurrence {
        Occurrence {
            at: "2026-11-23T18:01:00Z".parse().unwrap(),
            subject: Subject::Resource {
                resource: "do-main/droplet/1".parse().unwrap(),
                name: "web".to_owned(),
                follows: Some("office".parse().unwrap()),
            },
            event,
        }
    }

    #[test]
    fn of_many_alerts_the_first_are_mailed_and_one_event_stands_for_the_rest() {
        let mut events = Events::default();
        let mut is_folded = |event: &Event| {
            let event = events.of_outcome("offhours", &outcome(event.clone()));
            let detail: Value = serde_json::from_str(&event.unwrap().detail).unwrap();
            detail["folded"] == true
        };
        let orphaned = Event::Orphaned { barrier: None };
        let folded: Vec<_> = (0..30).map(|_| is_folded(&orphaned)).collect();
        assert_eq!(folded, [vec![false; MAILED], vec![true; 30 - MAILED]].concat());
        let conflict = Event::Conflict { reason: "two".to_owned() };
        assert!(!is_folded(&conflict), "each kind is counted separately");
        let gone = Event::Gone { saved: None };
        assert!((0..30).all(|_| !is_folded(&gone)), "this kind is never mailed");
        let [event] = &events.of_folded("offhours")[..] else {
            panic!("one event stands for the rest");
        };
        assert_eq!(event.event_type, EventType::AlertsFolded);
        let detail: Value = serde_json::from_str(&event.detail).unwrap();
        assert_eq!(detail["kind"], "Resource Orphaned");
        assert_eq!(detail["count"], 25);
        assert_eq!(detail["resources"].as_array().unwrap().len(), NAMED);
        let text = detail["text"].as_str().unwrap();
        assert!(text.starts_with("Resource Orphaned: and 25 more: do-main/droplet/1, "));
        assert!(text.ends_with(", …"), "{text}");
    }

    fn published(event: Event) -> Option<(EventType, Value)> {
        let event = of_outcome("offhours", &outcome(event), false)?;
        Some((event.event_type, serde_json::from_str(&event.detail).unwrap()))
    }

    #[test]
    fn a_stop_that_was_seen_is_finished_and_says_all_that_is_known() {
        let (event_type, detail) = published(Event::Seen {
            direction: Direction::Stop,
            cause: Some(Cause::Manual { by: "ada".to_owned() }),
            seconds: 42,
            forced: true,
            method: Some(StopMethod::Graceful),
            saved: None,
            lost_storage: None,
        })
        .unwrap();
        assert_eq!(event_type, EventType::TransitionFinished);
        assert_eq!(
            detail,
            json!({
                "stack": "offhours",
                "at": "2026-11-23T18:01:00Z",
                "text": "web (do-main/droplet/1, schedule office): stopped, seen after 42 s (forced)",
                "account": "do-main",
                "resource": "do-main/droplet/1",
                "kind": "droplet",
                "name": "web",
                "schedule": "office",
                "ending": "seen",
                "direction": "stop",
                "cause": "manual",
                "by": "ada",
                "seconds": 42,
                "forced": true,
                "method": "graceful",
            })
        );
    }

    #[test]
    fn every_way_to_end_has_its_word() {
        let saved = SavedState::NodePool { count: 3, autoscale: None };
        let cause = Some(Cause::Schedule);
        let direction = Direction::Stop;
        for (event, ending) in [
            (Event::Overtaken { direction, cause: cause.clone() }, "superseded"),
            (Event::LetGo { direction, cause }, "released"),
            (Event::Gone { saved: Some(saved) }, "gone"),
        ] {
            let (event_type, detail) = published(event).unwrap();
            let expected = (EventType::TransitionFinished, &json!(ending));
            assert_eq!((event_type, &detail["ending"]), expected);
            let owed = (ending == "gone").then_some(3);
            assert_eq!(detail["saved"]["count"].as_u64(), owed);
        }
    }

    #[test]
    fn a_cut_is_published_once_it_was_accepted() {
        let forced = |answer| Event::Forced { request: "power_off".to_owned(), answer };
        assert_eq!(published(forced(Answer::Accepted)).unwrap().0, EventType::TransitionForced);
        assert_eq!(published(forced(Answer::Busy("locked".to_owned()))), None);
        assert_eq!(published(forced(Answer::Unknown("timeout".to_owned()))), None);
    }

    #[test]
    fn what_only_would_be_or_is_tried_again_is_not_published() {
        let would = Event::WouldAsk {
            direction: Direction::Stop,
            request: "power_off".to_owned(),
            saved: None,
        };
        assert_eq!(published(would), None);
        assert_eq!(published(Event::postponed("busy")), None);
    }

    #[test]
    fn a_text_is_one_line_whatever_the_provider_says() {
        let refused = Event::Refused {
            direction: Direction::Start,
            cause: None,
            reason: "no\r\ncapa\u{200f}city".into(),
        };
        let (_, detail) = published(refused).unwrap();
        let text = detail["text"].as_str().unwrap();
        assert_eq!(
            text,
            "web (do-main/droplet/1, schedule office): start refused: no capa/u200fcity; `offhours why \
             do-main/droplet/1` says what to do"
        );
    }

    #[test]
    fn all_that_are_held_in_an_account_are_one_event() {
        let held = |number: u32| HeldResource {
            resource: format!("do-main/droplet/{number}").parse().unwrap(),
            name: format!("web-{number}"),
            schedule: None,
        };
        let event = Event::Held { count: 26, resources: (1..=26).map(held).collect() };
        let account = "do-main".parse().unwrap();
        let outcome = Occurrence::of_account(&account, Timestamp::UNIX_EPOCH, event);
        let event = of_outcome("offhours", &outcome, false).unwrap();
        let detail: Value = serde_json::from_str(&event.detail).unwrap();
        let named = detail["resources"].as_array().unwrap();
        assert_eq!((detail["count"].as_u64(), named.len()), (Some(26), 26));
        assert_eq!(
            detail["text"],
            "do-main: 26 resources are held until `offhours approve`: web-1, web-2, web-3, web-4, \
             web-5 and 21 more"
        );
    }
}
