//! The words and texts of which JSON is made, as JSON schemas: `domain` knows of no schema, so a
//! field of one of its types says `#[schemars(with = "shape::Name")]`.

use domain::{configuration, record, resource, schedule};
use schemars::{
    JsonSchema, Schema, generate::SchemaSettings, json_schema, transform::RecursiveTransform,
};
use serde::Serialize;
use serde_json::{Value, json};

/// What a name of an account or a schedule matches.
pub(crate) const NAME: &str = "^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$";

/// The schema of what a type is written as, complete in itself (draft 2020-12).
pub(crate) fn of<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(RecursiveTransform(unfold));
    settings.into_generator().into_root_schema_for::<T>()
}

/// Makes one line of a description, which is folded as the code is.
fn unfold(schema: &mut Schema) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
}

/// Declares types that stand for a schema and hold nothing.
macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident = $schema:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) enum $name {}

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
    )*};
}
pub(crate) use shapes;

shapes! {
    /// The name of an account or a schedule.
    Name = text(NAME);
    /// `ACCOUNT/KIND/ID`
    Reference = text(
        "^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?/((droplet|server)/[0-9]+\
         |database/[A-Za-z0-9-]{1,64}|node-pool/[A-Za-z0-9-]{1,64}/[A-Za-z0-9-]{1,64})$",
    );
    /// `running`, `stopped` or `any`.
    Wish = words(&[schedule::Wish::Running, schedule::Wish::Stopped, schedule::Wish::Any]);
    /// `act` or `observe`.
    Mode = words(&[configuration::Mode::Act, configuration::Mode::Observe]);
    /// `stop` or `start`.
    Direction = words(&[record::Direction::Stop, record::Direction::Start]);
    /// The number of a configuration; 0 for none.
    Generation = json_schema!({ "type": "integer", "minimum": 0 });
    /// One line of what happens: to a resource, or to an account as a whole.
    Outcome = json_schema!({
        "title": "Outcome",
        "description": "One line each, as it happens; further keys say more of the event.",
        "type": "object",
        "properties": {
            "at": { "type": "string", "format": "date-time", "description": "When." },
            "resource": {
                "type": "string", "description": "Which resource, by its reference."
            },
            "name": { "type": "string", "description": "The resource's name." },
            "follows": {
                "type": "string",
                "description": "The schedule that the resource follows, or followed last."
            },
            "account": {
                "type": "string", "description": "Which account, where it is about all of it."
            },
            "event": {
                "description": "What happened.",
                "enum": [
                    "asked", "forced", "already-there", "would-ask", "seen", "refused", "stuck",
                    "overtaken", "let-go", "joined", "orphaned", "conflict", "held",
                    "unknown-schedule", "gone", "replaced", "postponed", "awaiting",
                    "watching", "declined", "status"
                ]
            },
            "direction": { "enum": ["stop", "start"], "description": "Which way, if any." },
            "cause": {
                "description": "What wanted the transition.",
                "anyOf": [
                    { "enum": ["schedule", "override-set", "override-ended"] },
                    {
                        "type": "object",
                        "properties": {
                            "by-hand": {
                                "type": "object",
                                "properties": { "by": { "type": "string" } },
                                "required": ["by"]
                            }
                        },
                        "required": ["by-hand"]
                    }
                ]
            },
            "request": { "type": "string", "description": "The request that left, or would." },
            "reason": { "type": "string", "description": "Why, and what to do instead." }
        },
        "required": ["at", "event"],
        "oneOf": [{ "required": ["resource", "name"] }, { "required": ["account"] }]
    });
    /// What became of an edge of a schedule: one line among the outcomes of `local`.
    EdgeCompleted = json_schema!({
        "title": "EdgeCompleted",
        "description": "How many of the resources that followed an edge of a schedule are where.",
        "type": "object",
        "properties": {
            "event": { "const": "edge-completed", "description": "What this line is." },
            "schedule": { "type": "string", "description": "Which schedule." },
            "edge": { "type": "string", "format": "date-time", "description": "Which edge." },
            "wish": { "enum": ["running", "stopped"], "description": "What it wanted." },
            "at": {
                "type": "string", "format": "date-time", "description": "When they were counted."
            },
            "followed": { "type": "integer", "description": "How many followed it." },
            "asked": {
                "type": "integer", "description": "Of how many a provider was asked something."
            },
            "seen": { "type": "integer", "description": "How many were seen at the end." },
            "already": {
                "type": "integer", "description": "For how many nothing had to be sent."
            },
            "would": {
                "type": "integer", "description": "How many are only observed."
            },
            "refused": { "type": "integer", "description": "How many the provider refused." },
            "stuck": {
                "type": "integer", "description": "How many were not seen by their deadline."
            },
            "overtaken": {
                "type": "integer", "description": "Of how many a person did the opposite."
            },
            "unfinished": {
                "type": "integer", "description": "How many are due, under way or postponed."
            },
            "slowest": {
                "type": "object", "description": "Which took longest, and how many seconds."
            },
            "not_seen": {
                "type": "array", "description": "Which are not where they should be, by name."
            },
            "next_edge_at": {
                "type": "string", "format": "date-time",
                "description": "When the schedule's wish changes next."
            }
        },
        "required": [
            "event", "schedule", "edge", "wish", "at", "followed", "asked", "seen", "already",
            "would", "refused", "stuck", "overtaken", "unfinished"
        ],
        "additionalProperties": false
    });
    /// The chain of reasons for one resource, which `domain` explains: its first level.
    Explanation = json_schema!({
        "type": "object",
        "properties": {
            "at": {
                "type": "string", "format": "date-time",
                "description": "The instant that is explained."
            },
            "levels": {
                "type": "array",
                "description": "Every rule that may have a say, strongest first.",
                "items": {
                    "type": "object",
                    "properties": {
                        "level": { "type": "string", "description": "Which rule." },
                        "standing": { "type": "string", "description": "Whether that counts." }
                    },
                    "required": ["level", "standing"]
                }
            },
            "schedule": {
                "type": ["string", "null"], "description": "The schedule that is followed."
            },
            "timezone": {
                "type": ["string", "null"],
                "description": "The zone in which that schedule judges days and times."
            },
            "evaluation": {
                "type": ["object", "null"], "description": "What the schedule says by itself."
            },
            "wish": {
                "enum": ["running", "stopped", "any"],
                "description": "What is wanted, all rules together."
            },
            "edge": {
                "type": ["object", "null"], "description": "The latest edge of that wish."
            },
            "handled": {
                "type": ["object", "null"],
                "description": "The edge that was acted on, or acknowledged, last."
            },
            "decision": { "type": "object", "description": "What is done about it, and why." },
            "observed_by": {
                "type": ["string", "null"],
                "description": "Who only observes, so that nothing is sent."
            },
            "held": { "type": "boolean", "description": "Whether it waits for approval." },
            "retained": {
                "type": "boolean",
                "description": "Whether the coming end edge leaves it running."
            },
            "enforced": {
                "type": "boolean",
                "description": "Whether the wish is put back whoever changes it."
            },
            "next": { "type": "object", "description": "What comes next." }
        },
        "required": [
            "at", "levels", "schedule", "timezone", "evaluation", "wish", "edge", "handled",
            "decision", "observed_by", "held", "retained", "enforced", "next"
        ]
    });
    /// What must be put back: a database's plan, nodes and storage, a pool's count and bounds.
    SavedState = json_schema!({
        "type": "object",
        "properties": {
            "kind": { "enum": ["database", "node-pool", "machine"] },
            "plan": { "type": "string" },
            "nodes": { "type": "integer", "minimum": 1 },
            "storage_mib": { "type": "integer" },
            "count": { "type": "integer", "minimum": 0 },
            "autoscale": {
                "type": "object",
                "properties": {
                    "min": { "type": "integer", "minimum": 0 },
                    "max": { "type": "integer", "minimum": 0 }
                },
                "required": ["min", "max"],
                "additionalProperties": false
            }
        },
        "required": ["kind"],
        "additionalProperties": false
    });
    /// A service, and why Offhours stops nothing of it.
    UnsupportedService = json_schema!({
        "type": "object",
        "properties": {
            "service": { "type": "string" },
            "reason": { "type": "string" }
        },
        "required": ["service", "reason"],
        "additionalProperties": false
    });
    /// Storage that a database had before a stop, and did not have again after the start.
    LostStorage = json_schema!({
        "type": "object",
        "properties": {
            "before_mib": { "type": "integer" },
            "after_mib": { "type": "integer" }
        },
        "required": ["before_mib", "after_mib"],
        "additionalProperties": false
    });
    /// A kind of resource: the word in the middle of a reference.
    Kind = words(&domain::ResourceKind::ALL);
    /// `running`, `stopped` or `between`.
    Power = words(&[resource::Power::Running, resource::Power::Stopped, resource::Power::Between]);
    /// The bounds between which a node pool scales itself.
    Bounds = json_schema!({
        "type": "object",
        "properties": { "min": { "type": "integer" }, "max": { "type": "integer" } },
        "required": ["min", "max"],
    });
    /// `digitalocean` or `hetzner`.
    Provider = words(&[configuration::Provider::DigitalOcean, configuration::Provider::Hetzner]);
}

/// A text that matches a regular expression.
pub(crate) fn text(pattern: &str) -> Schema {
    json_schema!({ "type": "string", "pattern": pattern })
}

/// One of these words, as they are written.
pub(crate) fn words(values: &[impl Serialize]) -> Schema {
    let words: Vec<Value> = values.iter().map(|value| json!(value)).collect();
    json_schema!({ "type": "string", "enum": words })
}
