//! The contents of the clouds, and their pending changes.

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
    droplets::{Droplet, snapshots},
    images::{Image, Snapshot},
    kubernetes::Cluster,
    ledger::Ledger,
    market::Market,
    prices::Prices,
    rate::{Rate, RateLimit},
    servers::{Server, images},
    things::Things,
};

/// All accounts, and the changes in flight in them.
pub(crate) struct World {
    pub(crate) accounts: Vec<Account>,
    pub(crate) timeline: Timeline,
    market: Arc<Market>,
    /// When the simulation began.
    pub(crate) began: Timestamp,
}

/// One login, and everything that it gives access to.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    /// The account's index in [`World::accounts`].
    pub(crate) index: usize,
    pub(crate) login: Login,
    /// The plans that it can order.
    pub(crate) market: Arc<Market>,
    pub(crate) rate: Rate,
    pub(crate) droplets: BTreeMap<u64, Droplet>,
    pub(crate) databases: BTreeMap<String, Database>,
    pub(crate) clusters: BTreeMap<String, Cluster>,
    pub(crate) servers: BTreeMap<u64, Server>,
    /// Images of servers.
    pub(crate) images: BTreeMap<u64, Image>,
    /// Snapshots of Droplets.
    pub(crate) snapshots: BTreeMap<u64, Snapshot>,
    pub(crate) things: Things,
    /// Oldest first.
    pub(crate) actions: BTreeMap<u64, Action>,
    /// The billing history of all these.
    pub(crate) ledger: Ledger,
}

/// A login at one cloud, as a fleet describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Login {
    /// The account's name, as used in references.
    pub(crate) name: AccountName,
    pub(crate) provider: Provider,
    /// The token that requests must carry as `Authorization: Bearer`.
    pub(crate) token: Token,
    /// Whether the token is read-only.
    #[serde(default)]
    read_only: bool,
    /// A second token, which is read-only.
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
pub(crate) struct Token(String);

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
    fn accepts(&self, token: &str) -> bool {
        self.tokens().any(|own| own.0 == token)
    }

    fn tokens(&self) -> impl Iterator<Item = &Token> {
        [&self.token].into_iter().chain(&self.read_token)
    }

    /// Reports whether one of this account's tokens is read-only.
    pub(crate) fn may_only_read(&self, token: &str) -> bool {
        self.read_only || self.token.0 != token
    }

    /// Reports whether its tokens have a scope.
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
type Effect = Box<dyn FnOnce(&mut Account, &mut Timeline) + Send>;

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

/// Returns a plausible UUID for a number.
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

impl World {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self {
            accounts: Vec::new(),
            timeline: Timeline {
                now,
                slowness: SignedDuration::ZERO,
                serial: 0,
                pending: BTreeMap::new(),
            },
            market: Arc::new(Market::new(Prices::default())),
            began: now,
        }
    }

    /// The price list.
    pub(crate) fn prices(&self) -> &Prices {
        &self.market.prices
    }

    /// The plans that all accounts can order.
    pub(crate) fn market(&self) -> Market {
        Market::clone(&self.market)
    }

    /// Deletes an image or a snapshot; returns whether it existed.
    pub(crate) fn delete_image(&mut self, name: &AccountName, id: u64) -> bool {
        let now = self.timeline.now;
        let mut accounts = self.accounts.iter_mut();
        let Some(account) = accounts.find(|account| account.login.name == *name) else {
            return false;
        };
        let is_there = account.images.contains_key(&id);
        images::forget(account, id, now);
        is_there || snapshots::delete(account, id, now).is_ok()
    }

    /// Sets the word that responses have for an image's status, or a snapshot's as an image; `None`
    /// for that of the status itself. Returns whether the image or snapshot exists.
    pub(crate) fn show_image_as(
        &mut self,
        name: &AccountName,
        id: u64,
        word: Option<&str>,
    ) -> bool {
        let mut accounts = self.accounts.iter_mut();
        let Some(account) = accounts.find(|account| account.login.name == *name) else {
            return false;
        };
        let (image, snapshot) = (account.images.get_mut(&id), account.snapshots.get_mut(&id));
        let image = image.map(|image| &mut image.shown_as);
        let shown_as = image.or(snapshot.map(|snapshot| &mut snapshot.shown_as));
        let is_there = shown_as.map(|shown_as| *shown_as = word.map(str::to_owned));
        images::show_again(account, id);
        let droplets = account.droplets.values_mut();
        droplets.for_each(Droplet::invalidate_cache);
        is_there.is_some()
    }

    /// Adds a label to an image, or the tag `key:value` to a snapshot, or removes it; returns
    /// whether the image or snapshot exists.
    pub(crate) fn label_image(
        &mut self,
        name: &AccountName,
        id: u64,
        (key, value): (&str, &str),
        is_given: bool,
    ) -> bool {
        let mut accounts = self.accounts.iter_mut();
        let Some(account) = accounts.find(|account| account.login.name == *name) else {
            return false;
        };
        if let Some(image) = account.images.get_mut(&id) {
            if is_given {
                image.labels.insert(key.to_owned(), value.to_owned());
            } else {
                image.labels.remove(key);
            }
            account.servers.values_mut().for_each(Server::invalidate_cache);
            return true;
        }
        let Some(snapshot) = account.snapshots.get_mut(&id) else {
            return false;
        };
        let tag = format!("{key}:{value}");
        if is_given {
            snapshot.tags.insert(tag);
        } else {
            snapshot.tags.remove(&tag);
        }
        account.droplets.values_mut().for_each(Droplet::invalidate_cache);
        true
    }

    /// Replaces an account's token; the previous one is no longer accepted.
    pub(crate) fn set_token(&mut self, name: &AccountName, token: &str) {
        let mut accounts = self.accounts.iter_mut();
        if let Some(account) = accounts.find(|account| account.login.name == *name) {
            account.login.token = Token(token.to_owned());
        }
    }

    /// Replaces the plans that all accounts can order.
    pub(crate) fn set_market(&mut self, market: Market) {
        self.market = Arc::new(market);
        for account in &mut self.accounts {
            account.market = Arc::clone(&self.market);
            account.invalidate_caches();
        }
    }

    /// Creates an empty account.
    pub(crate) fn new_account(&self, index: usize, login: Login) -> Account {
        Account::new(index, login, self.timeline.now, Arc::clone(&self.market))
    }

    /// Applies everything that is due by `now`.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        let timeline = &mut self.timeline;
        while let Some(entry) = timeline.pending.first_entry()
            && entry.key().0 <= now
        {
            let ((at, _), (account, effect)) = entry.remove_entry();
            timeline.now = timeline.now.max(at);
            effect(&mut self.accounts[account], timeline);
        }
        timeline.now = timeline.now.max(now);
    }

    /// The index of the account that a token gives access to.
    pub(crate) fn opened_by(&self, provider: Provider, token: &str) -> Option<usize> {
        self.accounts
            .iter()
            .position(|account| account.login.provider == provider && account.login.accepts(token))
    }

    /// An account, and the timeline on which its effects are scheduled.
    pub(crate) fn account(&mut self, index: usize) -> (&mut Account, &mut Timeline) {
        (&mut self.accounts[index], &mut self.timeline)
    }

    /// The whole state of every resource, by reference.
    pub(crate) fn resources(&self) -> BTreeMap<String, Value> {
        let of_account = |account: &Account| {
            let name = account.login.name.clone();
            let states = account.states().into_iter();
            states.map(move |(id, state)| (format!("{name}/{id}"), state))
        };
        self.accounts.iter().flat_map(of_account).collect()
    }

    /// The images and snapshots of all accounts, each with its account's name; oldest first within
    /// an account.
    pub(crate) fn images(&self) -> Vec<Value> {
        let of_account = |account: &Account| {
            let name = json!({"account": account.login.name});
            let images = account.images.values().map(|image| json!(image));
            let snapshots = account.snapshots.values();
            let all = images.chain(snapshots.map(|snapshot| json!(snapshot)));
            let all = all.map(|image| catalog::with(&image, name.clone()));
            all.collect::<Vec<_>>()
        };
        self.accounts.iter().flat_map(of_account).collect()
    }
}

impl Account {
    /// Drops the cached JSON of all machines, after a change that several of them show.
    pub(crate) fn invalidate_caches(&mut self) {
        self.servers.values_mut().for_each(Server::invalidate_cache);
        self.droplets.values_mut().for_each(Droplet::invalidate_cache);
    }

    fn new(index: usize, login: Login, now: Timestamp, market: Arc<Market>) -> Self {
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
            actions: BTreeMap::new(),
            ledger: Ledger::default(),
        }
    }

    pub(crate) fn holds(&self, id: &ResourceId) -> bool {
        match id {
            ResourceId::Droplet(id) => self.droplets.contains_key(&id.0),
            ResourceId::Database(id) => self.databases.contains_key(&id.0),
            ResourceId::NodePool(cluster, pool) => {
                let cluster = self.clusters.get(&cluster.0);
                cluster.is_some_and(|cluster| cluster.pool(&pool.0).is_some())
            }
            ResourceId::Server(id) => self.servers.contains_key(&id.0),
            ResourceId::Machine(_) => false,
        }
    }

    fn states(&self) -> Vec<(ResourceId, Value)> {
        let mut states = Vec::new();
        for (id, droplet) in &self.droplets {
            let mut state = json!(droplet);
            let mut attached = self.things.described(*id);
            let vpc = droplet.vpc.as_deref().or(catalog::DROPLET["vpc_uuid"].as_str());
            attached.extend(vpc.map(|vpc| format!("VPC {vpc}")));
            state["attached"] = json!(attached);
            states.push((ResourceId::Droplet(DropletId(*id)), state));
        }
        for (id, database) in &self.databases {
            let id = DatabaseId(id.clone());
            states.push((ResourceId::Database(id), json!(database)));
        }
        for (id, cluster) in &self.clusters {
            for pool in &cluster.pools {
                let id = ResourceId::NodePool(ClusterId(id.clone()), PoolId(pool.id.clone()));
                let mut state = json!(pool);
                state["cluster"] = json!(cluster);
                states.push((id, state));
            }
        }
        for (id, server) in &self.servers {
            let mut state = json!(server);
            state["attached"] = json!(self.things.described(*id));
            states.push((ResourceId::Server(ServerId(*id)), state));
        }
        states
    }

    /// The snapshots that are listed by `now`.
    pub(crate) fn listed_snapshots(&self, now: Timestamp) -> impl Iterator<Item = &Snapshot> {
        self.snapshots.values().filter(move |snapshot| snapshot.listed <= now)
    }

    /// Adds an action and returns its id.
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

    /// Marks an action as finished and returns the id of what it acted on.
    pub(crate) fn finish_action(&mut self, timeline: &Timeline, id: u64) -> Option<u64> {
        let action = self.actions.get_mut(&id)?;
        action.finished = Some(timeline.now);
        Some(action.on.1)
    }

    /// Marks an action as failed and returns the id of what it acted on.
    pub(crate) fn fail_action(&mut self, timeline: &Timeline, id: u64) -> Option<u64> {
        let on = self.finish_action(timeline, id);
        if let Some(action) = self.actions.get_mut(&id) {
            action.error = Some(("action_failed", "Action failed"));
        }
        on
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
