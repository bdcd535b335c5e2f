//! The payloads that the functions are invoked with. Senders serialize these types and receivers
//! deserialize them, so that both always agree on the form.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    AccountName, ResourceRef, ScheduleName,
    activity::Activity,
    configuration::{Account, Configuration},
    hibernation::AttachmentName,
    text::{LONGEST_AUTHOR, one_line},
};

pub use crate::activity::CommandTarget;

/// Not a valid invocation of stop or start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvocationError {
    /// No target, or several.
    #[error(
        "an event names exactly one of \"resources\": [\"ACCOUNT/KIND/ID\", …], \
         \"schedule\": \"NAME\" and \"account\": \"NAME\""
    )]
    Target,
    /// The author's name is too long. It is kept in each record.
    #[error("\"by\" has at most {LONGEST_AUTHOR} characters")]
    By,
    /// A hint names something other than resources, or is a dry run.
    #[error("an event with \"cause\": \"due\" names \"resources\" and nothing else")]
    Hint,
}

/// The payload of stop and start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Form", into = "Form")]
pub enum Invocation {
    /// These resources may be due. This is a hint: what is really due is decided from the records.
    Due(Vec<ResourceRef>),
    /// A person, or a person's own timer, asks for it now.
    Command(Command),
}

/// A command to stop or start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub target: CommandTarget,
    /// Whether to report what would be done, and do nothing.
    pub dry_run: bool,
    pub by: Option<String>,
    pub given_at: Option<Timestamp>,
    /// Whether this stop begins a rehearsal: machines are hibernated although no snapshot of them
    /// has proved itself.
    pub rehearsal: bool,
    /// What a start goes without that hibernated machines had.
    pub without: Vec<AttachmentName>,
}

/// A request to poll-status, other than by its timer. The response is a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// What do these resources' own Status operations show?
    Resources(Vec<ResourceRef>),
    /// What can these accounts list with their tokens, before they are applied?
    Try(BTreeMap<AccountName, Account>),
    /// What would stops that change a plan, drop a standby or delete the machine lead to, if this
    /// configuration were applied?
    Moves(Box<Configuration>),
    /// Take an inventory of these accounts, or of all if none is named.
    Inventory(Vec<AccountName>),
    /// A person has just done this: make due what an override or a pause concerns, and publish it.
    Changed(Box<Activity>),
    /// Release those of these resources that are held.
    Approve(Vec<ResourceRef>),
    /// What do the clouds show that a store without its records would have to know?
    Remains,
}

/// The JSON form of an invocation.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<FormCause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Vec<ResourceRef>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<ScheduleName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<AccountName>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    rehearsal: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    without: Vec<AttachmentName>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FormCause {
    Due,
}

impl TryFrom<Form> for Invocation {
    type Error = InvocationError;

    fn try_from(form: Form) -> Result<Self, InvocationError> {
        let target = match (form.resources, form.schedule, form.account) {
            (Some(resources), None, None) => CommandTarget::Resources(resources),
            (None, Some(schedule), None) => CommandTarget::Schedule(schedule),
            (None, None, Some(account)) => CommandTarget::Account(account),
            _ => return Err(InvocationError::Target),
        };
        if (form.by.as_ref()).is_some_and(|by| by.chars().count() > LONGEST_AUTHOR) {
            return Err(InvocationError::By);
        }
        let by = form.by.map(|by| one_line(&by, LONGEST_AUTHOR).into_owned());
        match (form.cause, target) {
            (Some(FormCause::Due), CommandTarget::Resources(resources)) if !form.dry_run => {
                Ok(Self::Due(resources))
            }
            (Some(FormCause::Due), _) => Err(InvocationError::Hint),
            (None, target) => Ok(Self::Command(Command {
                target,
                dry_run: form.dry_run,
                by,
                given_at: form.time,
                rehearsal: form.rehearsal,
                without: form.without,
            })),
        }
    }
}

impl From<Invocation> for Form {
    fn from(invocation: Invocation) -> Self {
        let mut form = Self {
            cause: None,
            resources: None,
            schedule: None,
            account: None,
            dry_run: false,
            by: None,
            time: None,
            rehearsal: false,
            without: Vec::new(),
        };
        match invocation {
            Invocation::Due(resources) => {
                form.cause = Some(FormCause::Due);
                form.resources = Some(resources);
            }
            Invocation::Command(command) => {
                match command.target {
                    CommandTarget::Resources(resources) => form.resources = Some(resources),
                    CommandTarget::Schedule(schedule) => form.schedule = Some(schedule),
                    CommandTarget::Account(account) => form.account = Some(account),
                }
                form.dry_run = command.dry_run;
                form.rehearsal = command.rehearsal;
                form.without = command.without;
                form.by = command.by;
                form.time = command.given_at;
            }
        }
        form
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `json`, and checks that it is written back unchanged.
    #[track_caller]
    fn read(json: &str) -> Invocation {
        let invocation: Invocation = serde_json::from_str(json).unwrap();
        let written: serde_json::Value = serde_json::to_value(&invocation).unwrap();
        let expected: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(written, expected);
        invocation
    }

    #[track_caller]
    fn refused(json: &str, expected: &str) {
        let error = serde_json::from_str::<Invocation>(json).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }

    #[test]
    fn a_hint_and_each_form_of_command_are_read_and_written_alike() {
        let hint = r#"{"cause": "due", "resources": ["do-main/droplet/1"]}"#;
        assert!(matches!(read(hint), Invocation::Due(list) if list.len() == 1));
        for json in [
            r#"{"resources": ["do-main/droplet/1"]}"#,
            r#"{"schedule": "office-hours", "dry_run": true}"#,
            r#"{"account": "hz-eu", "by": "ada", "time": "2026-11-23T18:00:00Z"}"#,
            r#"{"resources": ["hz-eu/server/42"], "without": ["network/7", "backups"]}"#,
        ] {
            assert!(matches!(read(json), Invocation::Command(_)), "{json}");
        }
    }

    const MOVES: &str = r#"{"moves": {"generation": 3, "settings": {"protect": ["tag:production"]},
        "accounts": {"hz-eu": {"provider": "hetzner", "token": "ssm:/offhours/hz"}},
        "schedules": {"office": {"schedule": {"timezone": "UTC", "periods": [{"end": "19:00"}]},
            "methods": {"server": "rescale"}, "rescale_to": "cpx12"}}}}"#;

    #[test]
    fn a_question_is_read_and_written_alike() {
        for json in [
            r#"{"resources": ["do-main/droplet/1"]}"#,
            r#"{"try": {"hz-eu": {"provider": "hetzner", "token": "ssm:/offhours/hz"}}}"#,
            r#"{"inventory": []}"#,
            r#"{"changed": {"at": "2026-11-23T18:00:00Z", "by": {"name": "ada"}, "action":
                {"override-cleared": {"target": {"schedule": "office-hours"}}}}}"#,
            r#"{"approve": ["do-main/droplet/1"]}"#,
            MOVES,
        ] {
            let question: Question = serde_json::from_str(json).unwrap();
            let written = serde_json::to_string(&question).unwrap();
            let again: Question = serde_json::from_str(&written).unwrap();
            assert_eq!(again, question, "{written}");
        }
    }

    #[test]
    fn the_author_of_a_command_has_a_name_of_limited_length() {
        let by = |length| {
            let by = "ä".repeat(length);
            format!(r#"{{"account": "hz-eu", "by": "{by}"}}"#)
        };
        serde_json::from_str::<Invocation>(&by(256)).unwrap();
        refused(&by(257), "at most 256 characters");
        let by = r#"{"account": "hz-eu", "by": "ada\nprod-db\u001b[30m"}"#;
        let Ok(Invocation::Command(command)) = serde_json::from_str(by) else {
            panic!("{by}");
        };
        assert_eq!(command.by.unwrap(), "ada prod-db\\u001b[30m");
    }

    #[test]
    fn an_invalid_invocation_is_refused_with_what_to_write() {
        refused("{}", "exactly one of");
        refused(r#"{"schedule": "a", "account": "b"}"#, "exactly one of");
        refused(r#"{"cause": "due", "schedule": "a"}"#, "names \"resources\"");
        refused(r#"{"cause": "late", "resources": []}"#, "unknown variant");
        refused(r#"{"resource": ["do-main/droplet/1"]}"#, "unknown field");
        refused(r#"{"resources": ["do-main/droplet"]}"#, "invalid reference");
        refused(r#"{"account": "a", "without": ["net/7"]}"#, "expected one of `placement-group`");
    }
}
