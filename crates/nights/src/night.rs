//! A night as a value: what there is, and everything that is to happen. The same night is played the
//! same way each time, and a part of it can be left out.

use std::{collections::BTreeMap, fmt::Write as _};

use cloud_simulator::{Act, Offer};
use domain::{
    AccountName, ResourceRef, ScheduleName,
    configuration::{Account, Configuration, Generation, Rule, Settings, Target},
    record::Direction,
    schedule::Desired,
};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// Some weeks of a service, from its first configuration on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Night {
    /// Decides what the night does not name: latencies, and which of two tasks goes first.
    pub seed: u64,
    /// When it begins.
    pub begins: Timestamp,
    /// When it ends.
    pub ends: Timestamp,
    /// The accounts of the clouds, in the TOML of a fleet.
    pub accounts: String,
    /// What the clouds hold, each in the TOML of a fleet.
    pub fleet: Vec<String>,
    /// What is applied first.
    pub setup: Setup,
    /// In the order of their instants.
    pub happenings: Vec<Happening>,
}

impl Night {
    /// What there is, and what is to happen, for people.
    #[must_use]
    pub fn in_words(&self) -> String {
        let mut text = format!(
            "Night {} from {} to {}\n{}\n{}\n",
            self.seed,
            self.begins,
            self.ends,
            self.accounts,
            self.fleet.join("\n"),
        );
        for (name, rule) in &self.setup.schedules {
            writeln!(text, "schedule {name}: {}", json(rule)).ok();
        }
        for happening in &self.happenings {
            writeln!(text, "{} {}", happening.at, json(&happening.what)).ok();
        }
        text
    }
}

/// A configuration, as a night keeps it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Setup {
    /// What holds for the whole service.
    #[serde(default)]
    pub settings: Settings,
    /// Accounts by name.
    pub accounts: BTreeMap<AccountName, Account>,
    /// Schedules by name.
    pub schedules: BTreeMap<ScheduleName, Rule>,
}

impl Setup {
    /// The configuration, as a generation after this one.
    #[must_use]
    pub fn after(&self, generation: Generation) -> Configuration {
        Configuration {
            generation,
            settings: self.settings.clone(),
            accounts: self.accounts.clone(),
            schedules: self.schedules.clone().into(),
        }
    }
}

/// Something that happens at an instant, or that waits for its occasion from then on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Happening {
    /// When.
    pub at: Timestamp,
    /// What.
    pub what: What,
}

/// The functions that timers invoke, and those that these invoke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names say all there is")]
pub enum Function {
    Dispatch,
    PollStatus,
    Stop,
    Start,
}

impl Function {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Dispatch, Self::PollStatus, Self::Stop, Self::Start];

    /// Its name in a trace.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dispatch => "dispatch",
            Self::PollStatus => "poll-status",
            Self::Stop => "stop",
            Self::Start => "start",
        }
    }

    /// After how many seconds AWS ends an invocation (`infra/template.yaml`).
    #[must_use]
    pub fn timeout(self) -> SignedDuration {
        SignedDuration::from_secs(match self {
            Self::Dispatch => 30,
            Self::PollStatus => 75,
            Self::Stop | Self::Start => 120,
        })
    }
}

/// What happens.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "fields are named for what they are")]
pub enum What {
    /// One request meets with a fault: the first that fits after so many others that fit.
    Fault { of: Side, after: u32, fault: Fault },
    /// Every request of an account meets with a fault for so long.
    Outage {
        account: AccountName,
        minutes: i64,
        fault: Fault,
    },
    /// A timer does not fire for so long.
    TicksLost { function: Function, minutes: i64 },
    /// A timer fires twice, the second time so much later.
    TickDoubled { function: Function, seconds: i64 },
    /// A timer fires late; ticks after it overtake it.
    TickLate { function: Function, seconds: i64 },
    /// The next invocation of stop or start is lost.
    InvocationLost,
    /// The next invocation of stop or start is delivered twice, the second time so much later.
    InvocationDoubled { seconds: i64 },
    /// The next invocation of stop or start arrives late.
    InvocationLate { seconds: i64 },
    /// A function's clock is off by so much from now on.
    Skew { function: Function, seconds: i64 },
    /// A person does something in the provider's console.
    Person { resource: ResourceRef, act: Act },
    /// A person replaces an account's token, and keeps the new one for the functions so much
    /// later; or before that, where it is negative.
    Rotate {
        account: AccountName,
        token: String,
        stored_after: i64,
    },
    /// A cloud withdraws a machine plan, or gives it back.
    Offer { plan: String, offer: Offer },
    /// A person creates what a fleet's TOML describes.
    Create { fleet: String },
    /// A person sets an override.
    Override {
        target: Target,
        desired: Desired,
        minutes: i64,
    },
    /// A person ends an override.
    Clear { target: Target },
    /// A person stops or starts something by hand.
    Command {
        direction: Direction,
        resource: ResourceRef,
    },
    /// A person has a machine hibernated for the first time; they start it again themselves.
    Rehearse { resource: ResourceRef },
    /// A person deletes all snapshots of a machine.
    LoseSnapshots { resource: ResourceRef },
    /// A person labels the snapshots of a machine that sleeps `offhours=off`, or takes that away.
    LabelSnapshots { resource: ResourceRef, off: bool },
    /// A person applies another configuration.
    Apply { setup: Setup },
    /// By now everything has settled: nothing else has happened for a while.
    Inspect,
}

/// On which side of the functions a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Any request to the store.
    Store,
    /// A write to the store.
    Write,
    /// Any request to a cloud.
    Cloud,
    /// A change at a cloud.
    Change,
    /// A page of a cloud's list after the first.
    LaterPage,
}

/// What goes wrong with one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The function dies before the request leaves.
    DiesBefore,
    /// The request takes effect, and the function dies.
    DiesAfter,
    /// The request takes effect, and its answer is lost.
    AnswerLost,
    /// The request is lost.
    RequestLost,
    /// The request takes so long, and is then answered, if there is still one who waits.
    Slow {
        /// How long, in seconds.
        seconds: u64,
    },
    /// The answer says to try again later: 429, or a throttled table.
    Throttled {
        /// After how many seconds; left out where the answer does not say.
        retry_after: Option<u64>,
    },
    /// The answer is an error of the server.
    Failed {
        /// Whether the request takes effect all the same.
        after_effect: bool,
    },
    /// A cloud's answer breaks off in the middle.
    Truncated,
    /// A cloud's answer is not what it should be.
    Malformed {
        /// Its body.
        body: String,
    },
    /// A cloud refuses because the resource is at work.
    Busy,
    /// A cloud refuses for good.
    Refused,
    /// The connection breaks, and the request arrives later, by itself.
    Late {
        /// How much later, in seconds.
        seconds: i64,
    },
    /// The request is accepted, and what it leads to happens so much later.
    Sluggish {
        /// How much later, in seconds.
        seconds: i64,
    },
    /// The token is refused.
    TokenRefused,
    /// Just before it a person creates or deletes what comes first in the list, so that everything
    /// moves by one.
    Shifted,
    /// Another transaction is under way.
    Conflict,
    /// A part of a batch is left unprocessed.
    Unprocessed,
    /// The index does not show the latest writes yet.
    IndexLags,
}

impl Fault {
    /// What it is called where faults are counted.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::DiesBefore => "dies before a request",
            Self::DiesAfter => "dies after a request",
            Self::AnswerLost => "answer lost",
            Self::RequestLost => "request lost",
            Self::Slow { .. } => "slow answer",
            Self::Throttled { retry_after: None } => "throttled",
            Self::Throttled { .. } => "throttled with retry-after",
            Self::Failed { .. } => "server error",
            Self::Truncated => "truncated answer",
            Self::Malformed { .. } => "malformed answer",
            Self::Busy => "busy",
            Self::Refused => "refused",
            Self::Late { .. } => "request late",
            Self::Sluggish { .. } => "late effect",
            Self::TokenRefused => "token refused",
            Self::Shifted => "page shifted",
            Self::Conflict => "transaction conflict",
            Self::Unprocessed => "unprocessed items",
            Self::IndexLags => "index lags",
        }
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
