//! The responses of the clouds: lists, single resources, action logs, plans, changes and refusals.
//!
//! The first line of an input is the question, such as `status droplet/1`. After it come the
//! responses, each after a line `---`: its status, or how it was lost; its headers; an empty line;
//! its body.

mod script;

use std::sync::{Arc, LazyLock};

use domain::{
    ResourceId, ResourceKind, ResourceRef,
    configuration::Provider,
    record::Record,
    resource::{DatabaseSize, MachineSize, PlanCapacity, Resource, SavedState},
    step::Step,
};
use futures_util::FutureExt as _;
use jiff::Timestamp;
use provider::{
    Accepted, ChangeError, Client, DatabasePlans, Listed, ProviderError, Reading, Transport,
    http_client,
};
use serde_json::{Value, json};
use store::item::Stored as _;
use testing::{everything, seen};

use crate::check;
use script::{Answer, HOST, Script, TOKEN};

/// The maximum length of an error, in characters.
const LONGEST_ERROR: usize = 2000;

/// Asks `DigitalOcean`.
pub(crate) fn digitalocean(data: &[u8]) {
    ask(Provider::DigitalOcean, data);
}

/// Asks Hetzner Cloud.
pub(crate) fn hetzner(data: &[u8]) {
    ask(Provider::Hetzner, data);
}

/// No response but the provider's own makes a resource disappear or a change accepted, whatever is
/// understood can be stored, and no error repeats the token.
fn ask(provider: Provider, data: &[u8]) {
    let (question, script) = Script::read(data);
    let script = Arc::new(script);
    let client = client(provider, Arc::clone(&script));
    let conversation = Conversation { provider, client, script };
    let (word, of) = question.split_once(' ').unwrap_or((&question, ""));
    let id = of.parse::<ResourceId>();
    match (word, id) {
        ("list", _) => conversation.list(),
        ("try", _) => conversation.try_reading(),
        ("plans", _) => conversation.plans(),
        ("status", Ok(id)) => conversation.status(&id),
        ("actions", Ok(id)) => conversation.actions(&id),
        (_, Ok(id)) => conversation.send(word, id),
        (_, Err(_)) => {}
    }
    conversation.script.check();
}

/// Builds requests; none of them is sent.
pub(crate) static HTTP: LazyLock<reqwest::Client> =
    LazyLock::new(|| http_client().expect("its settings are fixed"));

fn client(provider: Provider, script: Arc<Script>) -> Client {
    let transport = Transport::with_carrier(HTTP.clone(), script);
    let base = format!("https://{HOST}").parse().expect("an address");
    let account = json!({"provider": provider, "token": "env:TOKEN"});
    let account = serde_json::from_value(account).expect("an account");
    Client::at(&account, base, TOKEN.into(), transport)
}

/// A client of one account, and the responses that it gets.
struct Conversation {
    provider: Provider,
    client: Client,
    script: Arc<Script>,
}

impl Conversation {
    fn list(&self) {
        let now = || Timestamp::UNIX_EPOCH;
        let reading = Reading { now: &now, until: None, read: &|_| () };
        let kinds = self.client.kinds();
        let listed = ready(self.client.list(kinds, reading));
        let Some(listed) = understood(listed) else {
            return;
        };
        let Listed { looks, requests, unread } = listed;
        if !unread.is_empty() {
            return;
        }
        let ids: Vec<_> = looks.iter().map(|look| &look.resource.id).collect();
        assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
        let counted: u32 = requests.values().sum();
        let answered = self.script.answered();
        assert_eq!(usize::try_from(counted), Ok(answered.len()));
        assert!(answered.iter().all(|answer| answer.is_success() || self.is_not_found(answer)));
        for look in &looks {
            assert!(kinds.contains(&look.resource.kind()));
            check_storable(&look.resource);
        }
    }

    fn try_reading(&self) {
        for kind in ResourceKind::ALL {
            let before = self.script.answered().len();
            let tried = ready(self.client.try_reading(kind));
            if understood(tried).is_some() {
                let asked = &self.script.answered()[before..];
                assert!(asked.iter().all(Answer::is_success));
            }
        }
    }

    fn plans(&self) {
        let Some(plans) = understood(ready(self.client.database_plans())) else {
            return;
        };
        for nodes in 1..=3 {
            check_smallest(&plans, nodes);
        }
    }

    /// Checks that a resource is gone only if the provider itself says that it does not know it.
    fn status(&self, id: &ResourceId) {
        let Some(found) = understood(ready(self.client.status(id))) else {
            return;
        };
        let given = self.script.given();
        let answer = given.last().expect("nothing is known without an answer");
        match found {
            Some(resource) => {
                assert!(answer.is_success(), "{answer:?}");
                assert_eq!(&resource.id, id, "another resource than the one asked for");
                check_storable(&resource);
            }
            None => assert!(self.is_not_found(answer) || lacks_pool(answer, id), "{answer:?}"),
        }
    }

    fn actions(&self, id: &ResourceId) {
        let since = "2026-11-23T16:00:00Z".parse().expect("an instant");
        if let Some(actions) = understood(ready(self.client.actions(id, since))) {
            assert!(actions.is_sorted_by(|one, next| one.started_at >= next.started_at));
            assert!(!actions.iter().any(|action| action.is_over_before(since)));
            assert!(self.script.answered().iter().all(Answer::is_success));
        }
    }

    /// Checks that a step is sent at most once. It counts as accepted only with a response that
    /// is understood, and as definitely not accepted only if it never left or the provider refused
    /// it.
    fn send(&self, word: &str, id: ResourceId) {
        let Some(step) = step(word, &id) else {
            return;
        };
        let sent = ready(self.client.send(&seen(id), &step));
        assert!(self.client.requests() <= 1);
        let given = self.script.given();
        let answer = given.last();
        match sent {
            Ok(Accepted { action, .. }) => {
                let answer = answer.expect("nothing is accepted without an answer");
                assert!(answer.is_success(), "{answer:?}");
                assert_eq!(action.map(|action| action.0), answer.json()["action"]["id"].as_u64());
            }
            Err(error) => {
                check_printable(&error);
                let is_definite = !matches!(error, ChangeError::Unknown(_));
                let is_worded =
                    answer.is_none_or(|answer| answer.never_left() || answer.is_refusal());
                assert!(!is_definite || is_worded, "{error}: {answer:?}");
            }
        }
    }

    /// Reports whether a response is the provider's own 404.
    fn is_not_found(&self, answer: &Answer) -> bool {
        let json = answer.json();
        let words = match self.provider {
            Provider::DigitalOcean => [&json["id"], &json["message"]],
            Provider::Hetzner => [&json["error"]["code"], &json["error"]["message"]],
        };
        answer.status() == Some(404) && words.iter().all(|word| word.is_string())
    }
}

/// Checks that the smallest offered plan has a known size.
fn check_smallest(plans: &DatabasePlans, nodes: u32) {
    let size = DatabaseSize {
        engine: "pg".to_owned(),
        plan: "db-s-4vcpu-8gb".to_owned(),
        nodes,
        storage_mib: None,
    };
    if let Some(Some(plan)) = understood(plans.smallest(&size, "fra1")) {
        assert!(PlanCapacity::of_plan(&plan).is_some(), "{plan}");
    }
}

/// Returns what was understood; an error must be fit to print.
fn understood<T>(result: Result<T, ProviderError>) -> Option<T> {
    result.map_err(|error| check_printable(&error)).ok()
}

fn check_printable(error: &(dyn std::error::Error + 'static)) {
    check::has_message(error);
    let said = everything(error);
    assert!(!said.contains(TOKEN), "{said}");
    let mut next = Some(error);
    while let Some(error) = next {
        let said = error.to_string();
        assert!(!said.contains(char::is_control), "{said:?}");
        assert!(said.chars().count() <= LONGEST_ERROR, "{} characters", said.chars().count());
        next = error.source();
    }
}

/// Returns the result, which must be ready immediately.
fn ready<T>(asking: impl Future<Output = T>) -> T {
    asking.now_or_never().expect("the script never waits")
}

fn step(word: &str, id: &ResourceId) -> Option<Step> {
    Some(match (word, id.kind()) {
        ("power-on", _) => Step::On { small: false },
        ("shutdown", _) => Step::Off { gracefully: true },
        ("power-off", _) => Step::CUT,
        ("resize", ResourceKind::Droplet | ResourceKind::Server) => {
            let plan = "s-1vcpu-1gb".to_owned();
            Step::Resize(SavedState::Machine(MachineSize { plan, ..MachineSize::default() }))
        }
        ("resize", ResourceKind::Database) => Step::Resize(SavedState::Database {
            plan: "db-s-1vcpu-1gb".to_owned(),
            nodes: 1,
            storage_mib: None,
        }),
        ("resize", ResourceKind::NodePool) => {
            Step::Resize(SavedState::NodePool { count: 0, autoscale: None })
        }
        _ => return None,
    })
}

/// Reports whether a response shows the cluster of a pool, but not the pool.
fn lacks_pool(answer: &Answer, id: &ResourceId) -> bool {
    let ResourceId::NodePool(cluster, pool) = id else {
        return false;
    };
    let json = answer.json();
    let pools = json["kubernetes_cluster"]["node_pools"].as_array();
    let is_it = |one: &Value| one["id"] == pool.0.as_str();
    let is_cluster = json["kubernetes_cluster"]["id"] == cluster.0.as_str();
    answer.is_success() && is_cluster && pools.is_some_and(|pools| !pools.iter().any(is_it))
}

/// Checks that the record of a resource seen for the first time can be stored and read again.
fn check_storable(resource: &Resource) {
    let reference =
        ResourceRef { account: "main".parse().expect("a name"), id: resource.id.clone() };
    let record = Record::first_seen(reference, resource);
    let item = record.to_item().expect("a record can be stored");
    assert_eq!(Record::of_item(item).expect("it was stored"), record);
}
