//! One text of an event, in the form of each kind of target.

use domain::configuration::notify::TargetKind;
use jiff::Timestamp;
use serde::Serialize as _;
use serde_json::{Value, json};
use store::WaitingEvent;

/// An event as it is sent.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) id: String,
    pub(super) at: Timestamp,
    /// The type of event, in the word of the configuration.
    event: Value,
    pub(super) text: String,
    /// The published form, which has the text as well.
    detail: Value,
}

impl Message {
    pub(super) fn of(event: &WaitingEvent) -> Self {
        let detail: Value = serde_json::from_str(&event.detail).unwrap_or_default();
        Self {
            id: event.id.clone(),
            at: event.at,
            event: event.event_type.serialize(serde_json::value::Serializer).unwrap_or_default(),
            text: detail["text"].as_str().unwrap_or_default().to_owned(),
            detail,
        }
    }

    pub(super) fn test(id: String, at: Timestamp) -> Self {
        let text = "This is a test: events of Offhours arrive here.".to_owned();
        let detail = json!({ "at": at, "text": text });
        Self { id, at, event: "test".into(), text, detail }
    }
}

/// Writes the body of a request.
pub(super) fn body(kind: TargetKind, message: &Message) -> String {
    let Message { event, at, text, detail, .. } = message;
    let body = match kind {
        TargetKind::Webhook => json!({ "type": event, "timestamp": at, "data": detail }),
        // The text has neither `<` nor `>`.
        TargetKind::Slack => json!({ "text": text.replace('&', "&amp;") }),
        TargetKind::Discord => {
            json!({ "content": shortened(text, 2000), "allowed_mentions": { "parse": [] } })
        }
        TargetKind::Teams => json!({
            "type": "message",
            "attachments": [{
                "contentType": "application/vnd.microsoft.card.adaptive",
                "content": {
                    "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                    "type": "AdaptiveCard",
                    "version": "1.4",
                    // Not a TextBlock, which would read names as Markdown.
                    "body": [{
                        "type": "RichTextBlock",
                        "inlines": [{ "type": "TextRun", "text": text }],
                    }],
                },
            }],
        }),
        TargetKind::Mail => json!(text),
    };
    body.to_string()
}

/// Cuts a text to a number of characters.
pub(super) fn shortened(text: &str, longest: usize) -> String {
    domain::text::one_line(text, longest).into_owned()
}

#[cfg(test)]
mod tests {
    use domain::event_type::EventType;

    use super::*;

    fn message() -> Message {
        Message::of(&WaitingEvent {
            target: "ops".parse().unwrap(),
            id: "evt_1".to_owned(),
            at: "2026-11-23T18:01:00Z".parse().unwrap(),
            event_type: EventType::TransitionStuck,
            detail: json!({ "text": "R&D_web: stop is stuck", "account": "do-main" }).to_string(),
            tries: 0,
            retry_at: Timestamp::UNIX_EPOCH,
        })
    }

    #[test]
    fn each_kind_of_target_gets_the_same_text_in_its_own_form() {
        let body = |kind| -> Value { serde_json::from_str(&body(kind, &message())).unwrap() };
        let text = "R&D_web: stop is stuck";
        assert_eq!(
            body(TargetKind::Webhook),
            json!({
                "type": "transition-stuck",
                "timestamp": "2026-11-23T18:01:00Z",
                "data": { "text": text, "account": "do-main" },
            })
        );
        assert_eq!(body(TargetKind::Slack), json!({ "text": "R&amp;D_web: stop is stuck" }));
        let discord = body(TargetKind::Discord);
        assert_eq!(discord["content"], text);
        assert_eq!(discord["allowed_mentions"], json!({ "parse": [] }));
        let card = &body(TargetKind::Teams)["attachments"][0];
        assert_eq!(card["contentType"], "application/vnd.microsoft.card.adaptive");
        assert_eq!(card["content"]["body"][0]["inlines"][0]["text"], text);
    }

    #[test]
    fn a_long_text_fits_into_a_message_of_discord() {
        let long = Message { text: "é".repeat(4000), ..message() };
        let body: Value = serde_json::from_str(&body(TargetKind::Discord, &long)).unwrap();
        assert!(body["content"].as_str().unwrap().chars().count() <= 2000);
    }
}
