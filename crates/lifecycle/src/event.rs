//! The events that stop and start take: a hint from dispatch, or somebody's command.

use domain::{AccountName, ResourceRef, ScheduleName};
use jiff::Timestamp;
use serde::Deserialize;

use crate::{
    Context, Error,
    act::act,
    by_hand::{self, Command, CommandTarget},
    outcome::Report,
};
use domain::record::Direction;

/// An event that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// No target, or several.
    #[error(
        "an event names exactly one of \"resources\": [\"ACCOUNT/KIND/ID\", …], \
         \"schedule\": \"NAME\" and \"account\": \"NAME\""
    )]
    Target,
    /// The author's name is too long: it is kept in each record.
    #[error("\"by\" has at most {BY_CHARACTERS} characters")]
    By,
    /// A hint names resources.
    #[error("an event with \"cause\": \"due\" names \"resources\" and nothing else")]
    Hint,
}

/// The most characters of a command's author: more than the ARN of a role's session has.
const BY_CHARACTERS: usize = 256;

/// An event of stop or start.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Wire")]
pub enum Event {
    /// These may be due; what really is, is decided anew.
    Due(Vec<ResourceRef>),
    /// Somebody wants it now.
    Command {
        /// What it is about.
        target: CommandTarget,
        /// Say what would be done, and do nothing.
        dry_run: bool,
        /// Who gives it.
        by: Option<String>,
        /// When it was given.
        given_at: Option<Timestamp>,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    cause: Option<CauseWord>,
    resources: Option<Vec<ResourceRef>>,
    schedule: Option<ScheduleName>,
    account: Option<AccountName>,
    #[serde(default)]
    dry_run: bool,
    by: Option<String>,
    time: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum CauseWord {
    Due,
}

impl TryFrom<Wire> for Event {
    type Error = EventError;

    fn try_from(wire: Wire) -> Result<Self, EventError> {
        let target = match (wire.resources, wire.schedule, wire.account) {
            (Some(resources), None, None) => CommandTarget::Resources(resources),
            (None, Some(schedule), None) => CommandTarget::Schedule(schedule),
            (None, None, Some(account)) => CommandTarget::Account(account),
            _ => return Err(EventError::Target),
        };
        let by = wire.by.as_ref();
        if by.is_some_and(|by| by.chars().count() > BY_CHARACTERS) {
            return Err(EventError::By);
        }
        match (wire.cause, target) {
            (Some(CauseWord::Due), CommandTarget::Resources(resources)) if !wire.dry_run => {
                Ok(Self::Due(resources))
            }
            (Some(CauseWord::Due), _) => Err(EventError::Hint),
            (None, target) => Ok(Self::Command {
                target,
                dry_run: wire.dry_run,
                by: wire.by,
                given_at: wire.time,
            }),
        }
    }
}

/// Carries out an event in one direction.
pub async fn handle(
    context: Context<'_>,
    direction: Direction,
    event: Event,
) -> Result<Report, Error> {
    match event {
        Event::Due(resources) => act(context, direction, &resources).await,
        Event::Command {
            target,
            dry_run,
            by,
            given_at,
        } => {
            let command = Command {
                target,
                dry_run,
                by: by.unwrap_or_else(|| "an invocation by hand".to_owned()),
                request_id: context.writer.0.clone(),
                given_at,
            };
            by_hand::command(context, direction, &command).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(json: &str, expected: &str) {
        let error = serde_json::from_str::<Event>(json).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }

    #[test]
    fn a_hint_and_each_form_of_command_are_told_apart() {
        let hint = r#"{"cause": "due", "resources": ["do-main/droplet/1"]}"#;
        assert!(matches!(serde_json::from_str(hint).unwrap(), Event::Due(list) if list.len() == 1));
        for json in [
            r#"{"resources": ["do-main/droplet/1"]}"#,
            r#"{"schedule": "office-hours", "dry_run": true}"#,
            r#"{"account": "hz-eu", "time": "2026-11-23T18:00:00Z"}"#,
        ] {
            let event = serde_json::from_str(json).unwrap();
            assert!(matches!(event, Event::Command { .. }), "{json}");
        }
    }

    #[test]
    fn the_author_of_a_command_has_a_name_of_limited_length() {
        let by = |length| {
            let by = "ä".repeat(length);
            format!(r#"{{"account": "hz-eu", "by": "{by}"}}"#)
        };
        serde_json::from_str::<Event>(&by(256)).unwrap();
        refused(&by(257), "at most 256 characters");
    }

    #[test]
    fn an_event_that_is_none_is_refused_with_what_to_write() {
        refused("{}", "exactly one of");
        refused(r#"{"schedule": "a", "account": "b"}"#, "exactly one of");
        refused(
            r#"{"cause": "due", "schedule": "a"}"#,
            "names \"resources\"",
        );
        refused(r#"{"cause": "late", "resources": []}"#, "unknown variant");
        refused(r#"{"resource": ["do-main/droplet/1"]}"#, "unknown field");
        refused(
            r#"{"resources": ["do-main/droplet"]}"#,
            "is not a reference",
        );
    }
}
