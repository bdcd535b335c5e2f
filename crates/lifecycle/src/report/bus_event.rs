//! What others are told over the bus: one struct per kind of event, made from what happened alone.
//!
//! `infra/events/` has a JSON schema for each; a consumer may rely on what is there.

use domain::{
    AccountName, ResourceKind, ResourceRef, ScheduleName,
    digest::{Digest, Slowest},
    record::{Cause, Direction, Ending},
    resource::SavedState,
    schedule::Wish,
};
use jiff::Timestamp;
use serde::Serialize;

use crate::event::{Answer, Event, HeldResource, Outcome, Subject};

/// An event for the bus.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Notice {
    /// A transition ended well, or has nothing left to do.
    TransitionFinished(About<Finished>),
    /// The power was cut, for the guest did not react.
    TransitionForced(About<Forced>),
    /// The provider refused for good.
    TransitionRefused(About<Failed>),
    /// Not seen by the deadline.
    TransitionStuck(About<Failed>),
    /// Held stopped, or owed a size, and under no schedule.
    ResourceOrphaned(About<Orphaned>),
    /// Under two schedules, or reached through two accounts.
    ResourceInConflict(About<InConflict>),
    /// Too many joined at once.
    ResourcesHeld(Held),
    /// All that follow a schedule are through with one of its edges, or should be.
    EdgeCompleted(EdgeCompleted),
}

/// What every event about one resource has, and what its kind adds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct About<T> {
    /// The stack that tells it.
    pub stack: String,
    /// When it happened.
    pub at: Timestamp,
    /// One line for people, complete by itself.
    pub text: String,
    /// The resource's account.
    pub account: AccountName,
    /// Its reference.
    pub resource: ResourceRef,
    /// Its kind.
    pub kind: ResourceKind,
    /// Its name at the provider.
    pub name: String,
    /// The schedule that it follows, or followed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleName>,
    /// What is particular to this kind of event.
    #[serde(flatten)]
    pub more: T,
}

/// What wanted a transition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wanted {
    /// A word for it.
    #[serde(rename = "cause", skip_serializing_if = "Option::is_none")]
    pub word: Option<&'static str>,
    /// For a command by hand: whose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Of a transition that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finished {
    /// How.
    pub ending: Ending,
    /// Stop or start; none where a resource is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// What had wanted it.
    #[serde(flatten)]
    pub wanted: Wanted,
    /// If seen: from the claim on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<i64>,
    /// If seen: whether the power had to be cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forced: Option<bool>,
    /// After a stop: what will be put back. After a start: what was. Gone: what never will be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved: Option<SavedState>,
}

/// Of a cut of power.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Forced {
    /// The request.
    pub request: String,
}

/// Of a transition that needs somebody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// Stop or start.
    pub direction: Direction,
    /// What had wanted it.
    #[serde(flatten)]
    pub wanted: Wanted,
    /// Why it failed.
    pub reason: String,
}

/// Of a resource that nothing covers any more. Its schedule is the one that it followed last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Orphaned {}

/// Of a resource that two rules claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InConflict {
    /// Which.
    pub reason: String,
}

/// Of resources that joined with too many others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Held {
    /// The stack that tells it.
    pub stack: String,
    /// When it happened.
    pub at: Timestamp,
    /// One line for people, complete by itself.
    pub text: String,
    /// Their account.
    pub account: AccountName,
    /// How many are held there now.
    pub count: usize,
    /// Which, the first of them where they are very many.
    pub resources: Vec<HeldOne>,
}

/// One of those that are held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldOne {
    /// Which.
    #[serde(flatten)]
    pub held: HeldResource,
    /// Its kind.
    pub kind: ResourceKind,
}

/// What became of one edge of one schedule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EdgeCompleted {
    /// The stack that tells it.
    pub stack: String,
    /// When it was counted.
    pub at: Timestamp,
    /// One line for people, complete by itself.
    pub text: String,
    /// Which schedule.
    pub schedule: ScheduleName,
    /// The edge's instant.
    pub edge: Timestamp,
    /// What it wishes.
    pub wish: Wish,
    /// How many resources it is about.
    pub resources: usize,
    /// Of how many a change was asked.
    pub asked: usize,
    /// How many were seen at the end.
    pub seen: usize,
    /// How many were there already.
    pub already: usize,
    /// How many are only observed.
    pub would: usize,
    /// How many the provider refused.
    pub refused: usize,
    /// How many were not seen by their deadline.
    pub stuck: usize,
    /// Of how many a person did the opposite, or opted them out.
    pub overtaken: usize,
    /// How many are not through yet.
    pub unfinished: usize,
    /// Who took longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest: Option<Slowest>,
    /// From this count on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hours_until_next: Option<f64>,
    /// The schedule's next edge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// The names of those that were not seen.
    pub waiting_for: Vec<String>,
}

impl EdgeCompleted {
    /// A digest, as others are told it.
    #[must_use]
    pub fn of(stack: &str, digest: &Digest) -> Self {
        let names = digest.not_seen.iter().map(|one| one.name.clone());
        Self {
            stack: stack.to_owned(),
            at: digest.at,
            text: in_one_line(&digest.to_string()),
            schedule: digest.schedule.clone(),
            edge: digest.edge,
            wish: digest.wish,
            resources: digest.followed,
            asked: digest.asked,
            seen: digest.seen,
            already: digest.already,
            would: digest.would,
            refused: digest.refused,
            stuck: digest.stuck,
            overtaken: digest.overtaken,
            unfinished: digest.unfinished,
            slowest: digest.slowest.clone(),
            hours_until_next: digest.hours_until_next_edge(),
            next: digest.next_edge_at,
            waiting_for: names.collect(),
        }
    }
}

impl Notice {
    /// What is told of an outcome; none for most, which are for the log.
    #[must_use]
    pub fn of(stack: &str, outcome: &Outcome) -> Option<Self> {
        match &outcome.subject {
            Subject::Resource {
                resource,
                name,
                follows,
            } => {
                let about = About {
                    stack: stack.to_owned(),
                    at: outcome.at,
                    text: text(resource, name, follows.as_ref(), &outcome.event),
                    account: resource.account.clone(),
                    resource: resource.clone(),
                    kind: resource.kind(),
                    name: name.clone(),
                    schedule: follows.clone(),
                    more: (),
                };
                of_resource(about, &outcome.event)
            }
            Subject::Account { account } => of_account(stack, outcome.at, account, &outcome.event),
        }
    }

    /// The kind of event, as rules on the bus name it.
    #[must_use]
    pub fn detail_type(&self) -> &'static str {
        match self {
            Self::TransitionFinished(_) => "Transition Finished",
            Self::TransitionForced(_) => "Transition Forced",
            Self::TransitionRefused(_) => "Transition Refused",
            Self::TransitionStuck(_) => "Transition Stuck",
            Self::ResourceOrphaned(_) => "Resource Orphaned",
            Self::ResourceInConflict(_) => "Resource In Conflict",
            Self::ResourcesHeld(_) => "Resources Held",
            Self::EdgeCompleted(_) => "Edge Completed",
        }
    }

    /// When it happened.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        match self {
            Self::TransitionFinished(about) => about.at,
            Self::TransitionForced(about) => about.at,
            Self::TransitionRefused(about) | Self::TransitionStuck(about) => about.at,
            Self::ResourceOrphaned(about) => about.at,
            Self::ResourceInConflict(about) => about.at,
            Self::ResourcesHeld(held) => held.at,
            Self::EdgeCompleted(edge) => edge.at,
        }
    }
}

impl About<()> {
    fn with<T>(self, more: T) -> About<T> {
        About {
            stack: self.stack,
            at: self.at,
            text: self.text,
            account: self.account,
            resource: self.resource,
            kind: self.kind,
            name: self.name,
            schedule: self.schedule,
            more,
        }
    }
}

fn of_resource(about: About<()>, event: &Event) -> Option<Notice> {
    match event {
        Event::Seen {
            direction,
            cause,
            seconds,
            forced,
            saved,
            // The text says it.
            lost_storage: _,
        } => Some(Notice::TransitionFinished(about.with(Finished {
            seconds: Some(*seconds),
            forced: Some(*forced),
            saved: saved.clone(),
            ..Finished::by(Ending::Seen, Some(*direction), cause.as_ref())
        }))),
        Event::Overtaken { direction, cause } => {
            let finished = Finished::by(Ending::Overtaken, Some(*direction), cause.as_ref());
            Some(Notice::TransitionFinished(about.with(finished)))
        }
        Event::LetGo { direction, cause } => {
            let finished = Finished::by(Ending::LetGo, Some(*direction), cause.as_ref());
            Some(Notice::TransitionFinished(about.with(finished)))
        }
        Event::Gone { saved } => Some(Notice::TransitionFinished(about.with(Finished {
            saved: saved.clone(),
            ..Finished::by(Ending::Gone, None, None)
        }))),
        Event::Forced {
            request,
            answer: Answer::Accepted,
        } => {
            let request = request.clone();
            Some(Notice::TransitionForced(about.with(Forced { request })))
        }
        Event::Refused {
            direction,
            cause,
            reason,
        } => {
            let failed = Failed::by(*direction, cause.as_ref(), reason);
            Some(Notice::TransitionRefused(about.with(failed)))
        }
        Event::Stuck {
            direction,
            cause,
            reason,
        } => {
            let failed = Failed::by(*direction, cause.as_ref(), reason);
            Some(Notice::TransitionStuck(about.with(failed)))
        }
        Event::Orphaned => Some(Notice::ResourceOrphaned(about.with(Orphaned {}))),
        Event::Conflict { reason } => {
            let reason = reason.clone();
            Some(Notice::ResourceInConflict(
                about.with(InConflict { reason }),
            ))
        }
        Event::Asked { .. }
        | Event::Forced { .. }
        | Event::AlreadyThere { .. }
        | Event::WouldAsk { .. }
        | Event::Joined { .. }
        | Event::Held { .. }
        | Event::UnknownSchedule { .. }
        | Event::Replaced { .. }
        | Event::Postponed { .. }
        | Event::Awaiting { .. }
        | Event::Watching { .. }
        | Event::Declined { .. }
        | Event::Status { .. } => None,
    }
}

fn of_account(stack: &str, at: Timestamp, account: &AccountName, event: &Event) -> Option<Notice> {
    let Event::Held { count, resources } = event else {
        return None;
    };
    let one = |held: &HeldResource| HeldOne {
        kind: held.resource.kind(),
        held: held.clone(),
    };
    Some(Notice::ResourcesHeld(Held {
        stack: stack.to_owned(),
        at,
        text: in_one_line(&format!("{account}: {event}")),
        account: account.clone(),
        count: *count,
        resources: resources.iter().map(one).collect(),
    }))
}

impl Finished {
    fn by(ending: Ending, direction: Option<Direction>, cause: Option<&Cause>) -> Self {
        Self {
            ending,
            direction,
            wanted: Wanted::of(cause),
            seconds: None,
            forced: None,
            saved: None,
        }
    }
}

impl Failed {
    fn by(direction: Direction, cause: Option<&Cause>, reason: &str) -> Self {
        Self {
            direction,
            wanted: Wanted::of(cause),
            reason: reason.to_owned(),
        }
    }
}

impl Wanted {
    fn of(cause: Option<&Cause>) -> Self {
        Self {
            word: cause.map(Cause::name),
            by: cause.and_then(Cause::by).map(str::to_owned),
        }
    }
}

/// What happened to which resource, for somebody who has nothing else before their eyes.
fn text(
    resource: &ResourceRef,
    name: &str,
    schedule: Option<&ScheduleName>,
    event: &Event,
) -> String {
    let schedule = schedule.map(|schedule| format!(", schedule {schedule}"));
    let schedule = schedule.unwrap_or_default();
    in_one_line(&match name {
        "" => format!("{resource}{schedule}: {event}"),
        name => format!("{name} ({resource}{schedule}): {event}"),
    })
}

/// A provider's words may have line breaks, which a mail's subject and a chat's line have not.
/// Rules put the text between quotes as it is, so that it has neither quotes nor backslashes; and
/// what Slack reads as a link or a call for everybody is none in a name.
fn in_one_line(text: &str) -> String {
    let text = text.replace('"', "'").replace('\\', "/");
    let text = text.replace('<', "(").replace('>', ")");
    let parts = text.split(char::is_control).map(str::trim);
    let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn outcome(event: Event) -> Outcome {
        Outcome {
            at: "2026-11-23T18:01:00Z".parse().unwrap(),
            subject: Subject::Resource {
                resource: "do-main/droplet/1".parse().unwrap(),
                name: "web".to_owned(),
                follows: Some("office".parse().unwrap()),
            },
            event,
        }
    }

    fn told(event: Event) -> Option<(&'static str, Value)> {
        let notice = Notice::of("offhours", &outcome(event))?;
        Some((notice.detail_type(), serde_json::to_value(&notice).unwrap()))
    }

    #[test]
    fn a_stop_that_was_seen_is_finished_and_says_all_that_is_known() {
        let (detail_type, detail) = told(Event::Seen {
            direction: Direction::Stop,
            cause: Some(Cause::ByHand {
                by: "ada".to_owned(),
            }),
            seconds: 42,
            forced: true,
            saved: None,
            lost_storage: None,
        })
        .unwrap();
        assert_eq!(detail_type, "Transition Finished");
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
                "cause": "by-hand",
                "by": "ada",
                "seconds": 42,
                "forced": true,
            })
        );
    }

    #[test]
    fn every_way_to_end_has_its_word() {
        let saved = SavedState::NodePool {
            count: 3,
            autoscale: None,
        };
        let cause = Some(Cause::Schedule);
        let direction = Direction::Stop;
        for (event, ending) in [
            (
                Event::Overtaken {
                    direction,
                    cause: cause.clone(),
                },
                "overtaken",
            ),
            (Event::LetGo { direction, cause }, "let-go"),
            (Event::Gone { saved: Some(saved) }, "gone"),
        ] {
            let (detail_type, detail) = told(event).unwrap();
            assert_eq!(
                (detail_type, &detail["ending"]),
                ("Transition Finished", &json!(ending))
            );
            let owed = (ending == "gone").then_some(3);
            assert_eq!(detail["saved"]["count"].as_u64(), owed);
        }
    }

    #[test]
    fn a_cut_is_told_once_it_was_accepted() {
        let forced = |answer| Event::Forced {
            request: "power_off".to_owned(),
            answer,
        };
        assert_eq!(
            told(forced(Answer::Accepted)).unwrap().0,
            "Transition Forced"
        );
        assert_eq!(told(forced(Answer::Busy("locked".to_owned()))), None);
        assert_eq!(told(forced(Answer::Unknown("timeout".to_owned()))), None);
    }

    #[test]
    fn what_only_would_be_or_is_tried_again_is_told_to_nobody() {
        let would = Event::WouldAsk {
            direction: Direction::Stop,
            request: "power_off".to_owned(),
            saved: None,
        };
        assert_eq!(told(would), None);
        assert_eq!(told(Event::postponed("busy")), None);
    }

    #[test]
    fn a_text_is_one_line_whatever_the_provider_says() {
        let refused = Event::Refused {
            direction: Direction::Start,
            cause: None,
            reason: "no\r\ncapacity".to_owned(),
        };
        let (_, detail) = told(refused).unwrap();
        let text = detail["text"].as_str().unwrap();
        assert_eq!(
            text,
            "web (do-main/droplet/1, schedule office): start refused: no capacity"
        );
    }

    #[test]
    fn all_that_are_held_in_an_account_are_one_event() {
        let held = |number: u32| HeldResource {
            resource: format!("do-main/droplet/{number}").parse().unwrap(),
            name: format!("web-{number}"),
            schedule: None,
        };
        let event = Event::Held {
            count: 26,
            resources: (1..=26).map(held).collect(),
        };
        let account = "do-main".parse().unwrap();
        let outcome = Outcome::of_account(&account, Timestamp::UNIX_EPOCH, event);
        let Some(Notice::ResourcesHeld(told)) = Notice::of("offhours", &outcome) else {
            panic!("no such notice");
        };
        assert_eq!((told.count, told.resources.len()), (26, 26));
        assert_eq!(
            told.text,
            "do-main: 26 resources are held until `offhours approve`: web-1, web-2, web-3, web-4, \
             web-5 and 21 more"
        );
    }
}
