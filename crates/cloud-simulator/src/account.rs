//! One login at a cloud and everything that it gives access to, and how that changes over time.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use domain::{
    AccountName, ClusterId, DatabaseId, DropletId, PoolId, ResourceId, ServerId,
    configuration::Provider,
};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    catalog,
    databases::Database,
    defaults,
    droplets::{Droplet, DropletStatus},
    guest::Guest,
    images::{Image, Snapshot},
    kubernetes::{Cluster, Pool},
    ledger::Ledger,
    market::Market,
    rate::{Rate, RateLimit},
    servers::{Server, ServerStatus},
    things::Things,
};

/// One login, and everything that it gives access to.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    /// The account's index in [`World::accounts`].
    pub(crate) index: usize,
    pub(crate) login: Login,
    pub(crate) market: Arc<Market>,
    pub(crate) rate: Rate,
    pub(crate) droplets: BTreeMap<u64, Droplet>,
    pub(crate) databases: BTreeMap<String, Database>,
    pub(crate) clusters: BTreeMap<String, Cluster>,
    pub(crate) servers: BTreeMap<u64, Server>,
    pub(crate) images: BTreeMap<u64, Image>,
    pub(crate) snapshots: BTreeMap<u64, Snapshot>,
    pub(crate) things: Things,
    /// The VPCs in which Droplets are or were, without the default one.
    pub(crate) vpcs: BTreeSet<String>,
    /// Oldest first.
    pub(crate) actions: BTreeMap<u64, Action>,
    /// The billing history of all these.
    pub(crate) ledger: Ledger,
}

/// How long a guest that fails to boot keeps trying.
const BROKEN: SignedDuration = SignedDuration::from_secs(40);

/// A login at one cloud, as a fleet describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Login {
    /// The account's name, as used in references.
    pub(crate) name: AccountName,
    pub(crate) provider: Provider,
    /// The token that requests must carry as `Authorization: Bearer`.
    pub(crate) token: Token,
    #[serde(default)]
    read_only: bool,
    pub(crate) read_token: Option<Token>,
    /// The scopes of its tokens at `DigitalOcean`; `None` means full access.
    pub(crate) scopes: Option<BTreeSet<String>>,
    /// Limits that replace the cloud's own.
    pub(crate) rate_limit: Option<RateLimit>,
    /// The maximum number of items on a page, if lower than the cloud's own.
    pub(crate) page_size: Option<usize>,
    /// How many servers or Droplets it may hold; `None` means no limit.
    pub(crate) server_limit: Option<usize>,
}

/// A token. Its `Debug` output redacts it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Token(pub(crate) String);

impl Token {
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Login {
    pub(crate) fn accepts(&self, token: &str) -> bool {
        self.tokens().any(|own| own.0 == token)
    }

    fn tokens(&self) -> impl Iterator<Item = &Token> {
        [&self.token].into_iter().chain(&self.read_token)
    }

    pub(crate) fn may_only_read(&self, token: &str) -> bool {
        self.read_only || self.token.0 != token
    }

    pub(crate) fn has_scope(&self, scope: &str) -> bool {
        let scopes = self.scopes.as_ref();
        scopes.is_none_or(|scopes| scopes.contains(scope))
    }

    /// Reports whether it would be ambiguous which of two logins a request or a reference uses.
    pub(crate) fn clashes_with(&self, other: &Self) -> bool {
        let shares_token = other.tokens().any(|token| self.accepts(&token.0));
        self.name == other.name || self.provider == other.provider && shares_token
    }
}

/// An action on a Droplet, a server, or something else that an account holds.
#[derive(Debug, Clone)]
pub(crate) struct Action {
    pub(crate) id: u64,
    /// What it acts on: the provider's word for the kind, and the id.
    pub(crate) on: Subject,
    /// The provider's name for the action, such as `power_off` or `stop_server`.
    pub(crate) kind: Value,
    /// The region of its Droplet, which `DigitalOcean` still shows when the Droplet is gone.
    pub(crate) region: String,
    pub(crate) started: Timestamp,
    pub(crate) finished: Option<Timestamp>,
    /// Why it failed, if it did: Hetzner's code and message. `DigitalOcean` gives no reason.
    pub(crate) error: Option<(&'static str, &'static str)>,
}

/// The provider's word for a kind of thing (`server`, `image`), and the thing's id.
pub(crate) type Subject = (&'static str, u64);

/// A change to an account that is due at some instant.
pub(crate) type Effect = Box<dyn FnOnce(&mut Account, &mut Timeline) + Send>;

/// The current instant, and all pending effects.
pub(crate) struct Timeline {
    now: Timestamp,
    /// How much later the effects of the current request happen.
    pub(crate) slowness: SignedDuration,
    serial: u64,
    /// Effects with the account's index, by instant, then in the order in which they were
    /// scheduled.
    pending: BTreeMap<(Timestamp, u64), (usize, Effect)>,
}

impl Timeline {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self { now, slowness: SignedDuration::ZERO, serial: 0, pending: BTreeMap::new() }
    }

    /// Advances to the next effect that is due by `now`, and returns it with its account's index;
    /// without one, advances to `now`.
    pub(crate) fn next(&mut self, now: Timestamp) -> Option<(usize, Effect)> {
        let due = self.pending.first_entry().filter(|entry| entry.key().0 <= now);
        let (at, effect) = match due.map(|entry| entry.remove_entry()) {
            Some(((at, _), effect)) => (at, Some(effect)),
            None => (now, None),
        };
        self.now = self.now.max(at);
        effect
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// Schedules an effect on the account with this index, once `delay` has passed.
    pub(crate) fn after(
        &mut self,
        account: usize,
        delay: SignedDuration,
        effect: impl FnOnce(&mut Account, &mut Self) + Send + 'static,
    ) {
        self.serial += 1;
        let at = self.now + delay + self.slowness;
        let effect = (account, Box::new(effect) as Effect);
        self.pending.insert((at, self.serial), effect);
    }

    /// Returns an id for something new, larger than all previous ids.
    pub(crate) fn number(&mut self) -> u64 {
        self.serial += 1;
        500_000_000 + self.serial
    }

    /// Returns a UUID for something new. The same fleet and requests yield the same UUIDs.
    pub(crate) fn uuid(&mut self) -> String {
        uuid_of(self.number())
    }
}

pub(crate) fn uuid_of(number: u64) -> String {
    // Two applications of a mixing function (splitmix64), so that consecutive numbers look
    // unrelated.
    let mix = |seed: u64| {
        let mut bits = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    };
    let (high, low) = (mix(number), mix(!number));
    format!(
        "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        low >> 52,
        low & 0xffff_ffff_ffff,
    )
}

impl Account {
    /// Drops the cached JSON of all machines, after a change that several of them show.
    pub(crate) fn invalidate_caches(&mut self) {
        self.guests().for_each(Guest::invalidate_cache);
    }

    fn guests(&mut self) -> impl Iterator<Item = &mut Guest> {
        let servers = self.servers.values_mut().map(|server| &mut server.guest);
        servers.chain(self.droplets.values_mut().map(|droplet| &mut droplet.guest))
    }

    /// Drops the cached JSON of the machines that show an image: the one that it is of, and those
    /// that were made from it.
    pub(crate) fn show_again(&mut self, image: u64, of: u64) {
        let made_from_it = |guest: &&mut Guest| guest.made_from == Some(image);
        self.guests().filter(made_from_it).for_each(Guest::invalidate_cache);
        self.guest(of);
    }

    pub(crate) fn new(index: usize, login: Login, now: Timestamp, market: Arc<Market>) -> Self {
        Self {
            index,
            rate: Rate::new(login.provider, login.rate_limit, now),
            login,
            market,
            droplets: BTreeMap::new(),
            databases: BTreeMap::new(),
            clusters: BTreeMap::new(),
            servers: BTreeMap::new(),
            images: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            things: Things::default(),
            vpcs: BTreeSet::new(),
            actions: BTreeMap::new(),
            ledger: Ledger::default(),
        }
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = ResourceId> {
        let droplets = self.droplets.keys().map(|id| ResourceId::Droplet(DropletId(*id)));
        let databases =
            self.databases.keys().map(|id| ResourceId::Database(DatabaseId(id.clone())));
        let pools = self.clusters.iter().flat_map(|(id, cluster)| {
            let path = |pool: &Pool| (ClusterId(id.clone()), PoolId(pool.id.clone()));
            cluster.pools.iter().map(path)
        });
        let pools = pools.map(|(cluster, pool)| ResourceId::NodePool(cluster, pool));
        let servers = self.servers.keys().map(|id| ResourceId::Server(ServerId(*id)));
        droplets.chain(databases).chain(pools).chain(servers)
    }

    pub(crate) fn holds(&self, id: &ResourceId) -> bool {
        self.ids().any(|own| own == *id)
    }

    pub(crate) fn state(&self, id: &ResourceId) -> Option<Value> {
        Some(match id {
            ResourceId::Droplet(id) => {
                let droplet = self.droplets.get(&id.0)?;
                let mut attached = self.things.described(id.0);
                let vpc = droplet.vpc.as_deref().or(catalog::DROPLET["vpc_uuid"].as_str());
                attached.extend(vpc.map(|vpc| format!("VPC {vpc}")));
                catalog::merged([json!(droplet), json!({"attached": attached})])
            }
            ResourceId::Database(id) => json!(self.databases.get(&id.0)?),
            ResourceId::NodePool(cluster, pool) => {
                let cluster = self.clusters.get(&cluster.0)?;
                catalog::merged([json!(cluster.pool(&pool.0)?), json!({"cluster": cluster})])
            }
            ResourceId::Server(id) => {
                let attached = self.things.described(id.0);
                catalog::merged([json!(self.servers.get(&id.0)?), json!({"attached": attached})])
            }
            ResourceId::Machine(_) => return None,
        })
    }

    pub(crate) fn listed_snapshots(&self, now: Timestamp) -> impl Iterator<Item = &Snapshot> {
        self.snapshots.values().filter(move |snapshot| snapshot.listed <= now)
    }

    pub(crate) fn droplet(&mut self, id: u64) -> Option<&mut Droplet> {
        let droplet = self.droplets.get_mut(&id)?;
        droplet.guest.invalidate_cache();
        Some(droplet)
    }

    pub(crate) fn server(&mut self, id: u64) -> Option<&mut Server> {
        let server = self.servers.get_mut(&id)?;
        server.guest.invalidate_cache();
        Some(server)
    }

    /// The guest of a Droplet or a server, to change it.
    pub(crate) fn guest(&mut self, id: u64) -> Option<&mut Guest> {
        if self.droplets.contains_key(&id) {
            Some(&mut self.droplet(id)?.guest)
        } else {
            Some(&mut self.server(id)?.guest)
        }
    }

    /// Schedules a running guest to turn off, unless its power changes in between.
    pub(crate) fn turn_off_after(
        &mut self,
        timeline: &mut Timeline,
        id: u64,
        delay: SignedDuration,
    ) {
        let boot = self.guest(id).map(|guest| guest.boot);
        timeline.after(self.index, delay, move |account, _| {
            let guest = account.guest(id);
            if guest.is_some_and(|guest| guest.powered && Some(guest.boot) == boot) {
                if let Some(droplet) = account.droplets.get_mut(&id) {
                    droplet.set_status(DropletStatus::Off);
                }
                if let Some(server) = account.servers.get_mut(&id) {
                    server.set_status(ServerStatus::Off);
                }
            }
        });
    }

    /// If a machine that was just powered on is broken, schedules its guest to turn off again soon.
    /// How that shows is an assumption: it is only known that complete snapshots may fail to boot
    /// (gh2o/digitalocean-debian-to-arch #42).
    pub(crate) fn boot(&mut self, timeline: &mut Timeline, id: u64) {
        if self.guest(id).is_some_and(|guest| guest.broken && guest.powered) {
            self.turn_off_after(timeline, id, BROKEN);
        }
    }

    /// Runs an action that locks a machine, with an effect once it is finished; returns the
    /// action's id.
    pub(crate) fn run_action(
        &mut self,
        timeline: &mut Timeline,
        on: Subject,
        kind: Value,
        takes: SignedDuration,
        end: impl FnOnce(&mut Self, &mut Timeline, u64) + Send + 'static,
    ) -> u64 {
        let id = self.begin_action(timeline, on, kind);
        self.lock(on.1, Some(id));
        timeline.after(self.index, takes, move |account, timeline| {
            account.finish_action(timeline, id);
            account.lock(on.1, None);
            end(account, timeline, id);
        });
        id
    }

    pub(crate) fn lock(&mut self, machine: u64, action: Option<u64>) {
        if let Some(guest) = self.guest(machine) {
            guest.action = action;
        }
    }

    pub(crate) fn begin_action(
        &mut self,
        timeline: &mut Timeline,
        on: Subject,
        kind: Value,
    ) -> u64 {
        let id = timeline.number();
        let droplet = self.droplets.get(&on.1);
        let region = droplet.map(|droplet| droplet.region.clone());
        let action = Action {
            id,
            on,
            kind,
            region: region.unwrap_or_else(defaults::region),
            started: timeline.now,
            finished: None,
            error: None,
        };
        self.actions.insert(id, action);
        id
    }

    /// Adds an action that finishes immediately, and returns its id.
    pub(crate) fn act_at_once(&mut self, timeline: &mut Timeline, on: Subject, kind: &str) -> u64 {
        let id = self.begin_action(timeline, on, json!(kind));
        self.finish_action(timeline, id);
        id
    }

    pub(crate) fn finish_action(&mut self, timeline: &Timeline, id: u64) {
        if let Some(action) = self.actions.get_mut(&id) {
            action.finished = Some(timeline.now);
        }
    }

    pub(crate) fn fail_action(&mut self, id: u64) {
        if let Some(action) = self.actions.get_mut(&id) {
            action.error = Some(("action_failed", "Action failed"));
        }
    }

    /// The actions on one thing, newest first.
    pub(crate) fn actions_on(&self, subject: Subject) -> impl Iterator<Item = &Action> {
        let actions = self.actions.values().rev();
        actions.filter(move |action| action.on == subject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_of_numbers_in_a_row_differ_and_have_the_form_of_one() {
        let (one, two) = (uuid_of(1), uuid_of(2));
        assert_ne!(one, two);
        let lengths: Vec<_> = one.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
    }
}
