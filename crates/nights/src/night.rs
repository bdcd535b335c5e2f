//! A night as a value: the resources, and everything that happens. The same night plays the same
//! way each time, and parts of it can be left out.

use std::{collections::BTreeMap, fmt::Write as _};

use cloud_simulator::{Act, Offer};
use domain::{
    AccountName, MachineName, ResourceRef, ScheduleName,
    configuration::{
        Account, Check, Configuration, Floor, Generation, OverrideTarget, PauseScope, Rule,
        Settings,
    },
    hibernation::AttachmentName,
    record::Direction,
    schedule::Desired,
};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{machines::Machine, names};

/// A few weeks of a service, from its first configuration on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Night {
    /// The seed for what the night does not specify: latencies, and which of two tasks goes first.
    pub seed: u64,
    /// When it begins.
    pub begins: Timestamp,
    /// When it ends.
    pub ends: Timestamp,
    /// The accounts of the clouds, in the TOML of a fleet.
    pub accounts: String,
    /// The resources at the clouds, each in the TOML of a fleet.
    pub fleet: Vec<String>,
    /// The machines of the SSH account.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub machines: BTreeMap<MachineName, Machine>,
    /// The configuration that is applied first.
    pub setup: Setup,
    /// What happens, in chronological order.
    pub happenings: Vec<NightEvent>,
}

impl Night {
    /// Describes the resources and what is to happen, for people.
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
        for event in &self.happenings {
            writeln!(text, "{} {}", event.at, json(&event.what)).ok();
        }
        text
    }
}

/// A configuration, as stored in a night.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Setup {
    /// The settings of the whole service.
    #[serde(default)]
    pub settings: Settings,
    /// Accounts by name.
    pub accounts: BTreeMap<AccountName, Account>,
    /// Schedules by name.
    pub schedules: BTreeMap<ScheduleName, Rule>,
    /// The accounts that have had another name, and whether they have it now.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub renamed: BTreeMap<AccountName, bool>,
}

impl Setup {
    /// Returns the configuration to apply after this generation.
    #[must_use]
    pub fn after(&self, generation: Generation) -> Configuration {
        Configuration {
            generation,
            settings: self.settings.clone(),
            accounts: self.accounts.clone(),
            schedules: self.schedules.clone().into(),
            floor: Floor::default(),
        }
    }

    /// Returns the setup with the names that its accounts have now.
    pub(crate) fn under_its_names(&self) -> Self {
        let mut text = json(self);
        for name in self.accounts.keys().filter(|name| self.has_other_name(name)) {
            text = text.replace(name.as_str(), names::other(name).as_str());
        }
        let mut setup: Self = serde_json::from_str(&text).expect("a setup");
        for name in self.renamed.keys() {
            let (mut present, mut was) = (name.clone(), names::other(name));
            if self.has_other_name(name) {
                std::mem::swap(&mut present, &mut was);
            }
            if let Some(account) = setup.accounts.get_mut(&present) {
                account.set_was(was);
            }
        }
        setup
    }

    /// Returns a resource under the name that its account has now.
    pub(crate) fn present(&self, resource: ResourceRef) -> ResourceRef {
        if self.has_other_name(&resource.account) {
            ResourceRef { account: names::other(&resource.account), ..resource }
        } else {
            resource
        }
    }

    pub(crate) fn has_other_name(&self, account: &AccountName) -> bool {
        self.renamed.get(account) == Some(&true)
    }
}

/// Something that happens at an instant, or waits for an occasion from then on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NightEvent {
    /// When it happens, or starts to wait.
    pub at: Timestamp,
    /// What happens.
    pub what: EventKind,
}

/// The functions that timers invoke, and those that they invoke in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Function {
    Dispatch,
    PollStatus,
    Stop,
    Start,
}

impl Function {
    /// Every function.
    pub const ALL: [Self; 4] = [Self::Dispatch, Self::PollStatus, Self::Stop, Self::Start];

    /// Returns its name in a trace.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dispatch => "dispatch",
            Self::PollStatus => "poll-status",
            Self::Stop => "stop",
            Self::Start => "start",
        }
    }

    /// Returns how long AWS lets an invocation run (`infra/template.yaml`).
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
pub enum EventKind {
    /// One request meets with a fault: the first matching one after `after` others.
    Fault { of: RequestKind, after: u32, fault: Fault },
    /// Every request of an account meets with a fault for this long.
    Outage { account: AccountName, minutes: i64, fault: Fault },
    /// A timer does not fire for this long.
    TicksLost { function: Function, minutes: i64 },
    /// A timer fires twice, the second time this much later.
    TickDoubled { function: Function, seconds: i64 },
    /// A timer fires late. Later ticks overtake it.
    TickLate { function: Function, seconds: i64 },
    /// The next invocation of stop or start is lost.
    InvocationLost,
    /// The next invocation of stop or start is delivered twice, the second time this much later.
    InvocationDoubled { seconds: i64 },
    /// The next invocation of stop or start arrives late.
    InvocationLate { seconds: i64 },
    /// A function's clock is off by this much from now on.
    Skew { function: Function, seconds: i64 },
    /// A person does something in the provider's console.
    Person { resource: ResourceRef, act: Act },
    /// A person replaces an account's token, and stores the new one for the functions this many
    /// seconds later, or earlier if it is negative.
    Rotate { account: AccountName, token: String, stored_after: i64 },
    /// What is stored for an account is, for this long, the token of another project.
    Mistake { account: AccountName, minutes: i64 },
    /// The network of a machine over SSH is down for this long.
    CutOff { machine: MachineName, minutes: i64 },
    /// The address of a check does not answer for this long.
    Down { check: Check, minutes: i64 },
    /// A cloud withdraws a machine plan, or offers it again.
    Offer { plan: String, offer: Offer },
    /// A person gives the tag `offhours-until` of a resource another value, or removes it.
    Until { resource: ResourceRef, value: Option<String> },
    /// A person creates what a fleet's TOML describes.
    Create { fleet: String },
    /// A person sets an override, which begins so many minutes later.
    Override {
        target: OverrideTarget,
        desired: Desired,
        minutes: i64,
        #[serde(default, skip_serializing_if = "is_now")]
        later: i64,
    },
    /// A person ends an override, or calls it off before it begins.
    Clear { target: OverrideTarget },
    /// A person pauses something, or changes the pause of it.
    Pause { scope: PauseScope, starts: bool, minutes: i64 },
    /// A person ends a pause.
    Resume { scope: PauseScope },
    /// A person stops or starts something with a command, or starts it without what it lacks.
    Command {
        direction: Direction,
        resource: ResourceRef,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        without: Vec<AttachmentName>,
    },
    /// A person hibernates a machine for the first time. They start it again themselves.
    Rehearse { resource: ResourceRef },
    /// A person deletes all snapshots of a machine, or only one of them.
    LoseSnapshots {
        resource: ResourceRef,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        only: Option<usize>,
    },
    /// A person labels the snapshots of a sleeping machine `offhours=off`, or removes that label.
    LabelSnapshots { resource: ResourceRef, off: bool },
    /// A cloud gives the snapshots of a machine another status word, or their own again.
    ShowSnapshots { resource: ResourceRef, word: Option<String> },
    /// A person deletes something else, by its path: a network, a volume, an address, a VPC, a key.
    DeleteOther { resource: ResourceRef, path: String },
    /// A person gives an address, by its path, to another machine.
    MoveAddress { resource: ResourceRef, path: String, to: ResourceRef },
    /// A person approves everything that is held.
    Approve,
    /// A person forgets the record of a resource that is gone or whose account is not configured,
    /// unless something is owed.
    Forget { resource: ResourceRef },
    /// A person applies another configuration.
    Apply { setup: Box<Setup> },
    /// A newer program writes the record of a resource, and writes it in a known format again after
    /// this long.
    Newer { resource: ResourceRef, minutes: i64 },
    /// The table of resources is backed up, as point-in-time recovery does at each second.
    BackUp,
    /// A person restores the table of resources as it was backed up last: what was recorded since
    /// then is older than what the clouds show.
    Restore,
    /// Everything has settled by now: nothing else has happened for a while.
    Inspect,
}

/// The kind of request that a fault is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestKind {
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
    /// A connection to the host of the SSH account.
    Connection,
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
    /// The request takes this long, and is then answered if the caller is still waiting.
    Slow {
        /// How long, in seconds.
        seconds: u64,
    },
    /// The answer says to try again later: 429, or a throttled table.
    Throttled {
        /// After how many seconds. `None` if the answer does not say.
        retry_after: Option<u64>,
    },
    /// The answer is a server error.
    Failed {
        /// Whether the request takes effect anyway.
        after_effect: bool,
    },
    /// A cloud's answer breaks off in the middle.
    Truncated,
    /// A cloud's answer is not what is expected.
    Malformed {
        /// Its body.
        body: String,
    },
    /// A cloud refuses because the resource is busy.
    Busy,
    /// A cloud refuses permanently.
    Refused,
    /// The connection breaks, and the request still arrives later.
    Late {
        /// How much later, in seconds.
        seconds: i64,
    },
    /// The request is accepted, and its effect comes later.
    Sluggish {
        /// How much later, in seconds.
        seconds: i64,
    },
    /// The token is refused, or the key.
    TokenRefused,
    /// A host refuses the connection.
    ConnectionRefused,
    /// A host cannot be reached.
    Unreachable,
    /// A host accepts the connection and says nothing.
    NoGreeting,
    /// A host presents another key than its own.
    HostKeyChanged,
    /// Just before the request, a person creates or deletes the first item of the list, so that
    /// everything moves by one.
    Shifted,
    /// While the request, a change of a resource that the act fits, is on its way, a person acts on that
    /// resource.
    Crossed(Act),
    /// Another transaction is in progress.
    Conflict,
    /// A batch is left unprocessed.
    Unprocessed,
    /// The index does not show the latest writes yet.
    IndexLags,
}

impl Fault {
    /// Reports whether it concerns a connection to a host rather than a command.
    #[must_use]
    pub fn is_of_connection(&self) -> bool {
        matches!(
            self,
            Self::ConnectionRefused | Self::Unreachable | Self::NoGreeting | Self::HostKeyChanged
        )
    }

    /// Returns its name where faults are counted.
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
            Self::ConnectionRefused => "connection refused",
            Self::Unreachable => "host unreachable",
            Self::NoGreeting => "host says nothing",
            Self::HostKeyChanged => "host key changed",
            Self::Shifted => "page shifted",
            Self::Crossed(_) => "a person's act crosses a change",
            Self::Conflict => "transaction conflict",
            Self::Unprocessed => "unprocessed items",
            Self::IndexLags => "index lags",
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_now(later: &i64) -> bool {
    *later == 0
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_its_other_name_in_all_that_is_configured() {
        let setup = serde_json::json!({
            "accounts": {"do-main": {"provider": "digitalocean", "token": "env:DO"}},
            "schedules": {"office": {
                "schedule": {"timezone": "UTC", "start": "0 8 * * *", "stop": "0 19 * * *"},
                "resources": ["do-main/droplet/1"],
            }},
            "renamed": {"do-main": true},
        });
        let mut setup: Setup = serde_json::from_value(setup).unwrap();
        let renamed = setup.under_its_names();
        let (name, account) = renamed.accounts.first_key_value().unwrap();
        assert_eq!(name.as_str(), "alias-of-do-main");
        assert_eq!(account.was().unwrap().as_str(), "do-main");
        let droplet = "do-main/droplet/1".parse().unwrap();
        let present = setup.present(droplet);
        let rule = renamed.schedules.first_key_value().unwrap().1;
        assert_eq!(rule.resources.first().unwrap().to_string(), present.to_string());
        setup.renamed.insert("do-main".parse().unwrap(), false);
        let back = setup.under_its_names();
        let (name, account) = back.accounts.first_key_value().unwrap();
        assert_eq!(name.as_str(), "do-main");
        assert_eq!(account.was().unwrap().as_str(), "alias-of-do-main");
    }
}
