//! `[notify.NAME]`: where events are sent when the service runs without AWS.

use std::collections::BTreeSet;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use crate::schema::OneOrMore;
use crate::{ScheduleName, event_type::EventType, token::TokenReference};

/// A target to which events are sent until it accepts them, for a day at most.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(JsonSchema),
    schemars(rename = "target", deny_unknown_fields)
)]
pub struct NotifyTarget {
    /// What receives the events.
    pub kind: TargetKind,
    /// Where its address is: an https URL, which is often a secret; for mail, `smtps://` (or `smtp://`
    /// for STARTTLS) and then USER:PASSWORD@HOST. Never the address itself.
    #[cfg_attr(feature = "schema", schemars(extend("examples" = ["env:OPS_WEBHOOK"])))]
    pub url: TokenReference,
    /// For a webhook: where the secret is that signs each request (whsec_…).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "TokenReference", extend("examples" = ["env:OPS_SECRET"])))]
    pub secret: Option<TokenReference>,
    /// For mail: the address of the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("examples" = ["offhours@example.com"])))]
    pub from: Option<String>,
    /// For mail: the addresses of the recipients.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "OneOrMore<String>", extend("examples" = [["ops@example.com"]])))]
    pub to: BTreeSet<String>,
    /// The events that it receives. Default: those that need a person, applied configurations,
    /// notice of stops, and what became of each edge.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "OneOrMore<EventType>", extend("examples" = [["transition-stuck"]])))]
    pub events: BTreeSet<EventType>,
    /// The schedules whose events it receives, besides those that belong to no schedule. Default:
    /// all.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "OneOrMore<ScheduleName>", extend("examples" = [["office"]])))]
    pub schedules: BTreeSet<ScheduleName>,
    /// The owner whose events it receives, by `owner_tag`, besides those that are about no resource.
    /// Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("examples" = ["web"])))]
    pub owner: Option<String>,
}

/// What receives events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(rename = "target-kind"))]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum TargetKind {
    /// A webhook of your own, by the specification of Standard Webhooks.
    Webhook,
    /// An incoming webhook of Slack.
    Slack,
    /// A workflow of Microsoft Teams that posts what a webhook receives.
    Teams,
    /// A webhook of a channel in Discord.
    Discord,
    /// Mail over SMTP.
    Mail,
}

impl NotifyTarget {
    /// Reports whether it receives an event of a type, and of a schedule if it belongs to one.
    /// `owners` are those of its resources, if it is about any.
    #[must_use]
    pub fn receives(
        &self,
        event: EventType,
        schedule: Option<&ScheduleName>,
        owners: Option<&BTreeSet<String>>,
    ) -> bool {
        let is_wanted =
            self.events.contains(&event) || self.events.is_empty() && event.is_for_people();
        let is_of_others =
            |schedule| !self.schedules.is_empty() && !self.schedules.contains(schedule);
        let is_ours = |owners: &BTreeSet<String>| {
            let mine = |mine: &String| owners.iter().any(|one| one.eq_ignore_ascii_case(mine));
            self.owner.as_ref().is_none_or(mine)
        };
        is_wanted && !schedule.is_some_and(is_of_others) && owners.is_none_or(is_ours)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_receives_what_it_has_chosen() {
        let target = |more: &str| -> NotifyTarget {
            let text = format!(r#"{{"kind": "slack", "url": "env:URL"{more}}}"#);
            serde_json::from_str(&text).unwrap()
        };
        let (ours, theirs) = ("office".parse().unwrap(), "lab".parse().unwrap());
        let all = target("");
        assert!(all.receives(EventType::TransitionStuck, Some(&theirs), None));
        assert!(!all.receives(EventType::TransitionFinished, Some(&ours), None));
        let chosen = target(r#", "events": ["transition-finished"], "schedules": ["office"]"#);
        assert!(chosen.receives(EventType::TransitionFinished, Some(&ours), None));
        assert!(!chosen.receives(EventType::TransitionFinished, Some(&theirs), None));
        assert!(chosen.receives(EventType::TransitionFinished, None, None));
        assert!(!chosen.receives(EventType::TransitionStuck, Some(&ours), None));
        let web = target(r#", "owner": "web""#);
        for (owners, is_received) in [
            (None, true),
            (Some(&["Web"][..]), true),
            (Some(&["data", "web"]), true),
            (Some(&["data"]), false),
            (Some(&[]), false),
        ] {
            let owners = owners.map(|all| all.iter().map(ToString::to_string).collect());
            let received = web.receives(EventType::TransitionStuck, None, owners.as_ref());
            assert_eq!(received, is_received, "{owners:?}");
        }
        assert_eq!(EventType::ResourceInConflict.detail_type(), "Resource In Conflict");
    }
}
