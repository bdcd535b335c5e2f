//! What the clouds hold, and what is still to happen.

use std::collections::BTreeMap;

use domain::{
    AccountName, ClusterId, DatabaseId, DropletId, PoolId, ResourceId, ServerId,
    configuration::Provider,
};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    databases::{self, Database},
    droplets::{self, Droplet},
    fleet::{Description, Problem, Token},
    kubernetes::{self, Cluster, NodeStep},
    rate::Rate,
    servers::{self, Server},
};

/// All accounts, and the changes that are under way in them.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) accounts: Vec<Account>,
    pub(crate) timeline: Timeline,
}

/// One login, and everything that it reaches.
#[derive(Debug)]
pub(crate) struct Account {
    /// Its place in [`World::accounts`].
    index: usize,
    pub(crate) name: AccountName,
    pub(crate) provider: Provider,
    pub(crate) token: Token,
    pub(crate) read_only: bool,
    pub(crate) read_token: Option<Token>,
    pub(crate) rate: Rate,
    pub(crate) droplets: BTreeMap<u64, Droplet>,
    pub(crate) databases: BTreeMap<String, Database>,
    pub(crate) clusters: BTreeMap<String, Cluster>,
    pub(crate) servers: BTreeMap<u64, Server>,
    /// Of Droplets or servers, oldest first.
    pub(crate) actions: BTreeMap<u64, Action>,
}

impl Account {
    fn opens(&self, token: &str) -> bool {
        let is_it = |read_token: &Token| read_token.matches(token);
        self.token.matches(token) || self.read_token.as_ref().is_some_and(is_it)
    }

    /// Whether a token of this account may only read.
    pub(crate) fn may_only_read(&self, token: &str) -> bool {
        self.read_only || !self.token.matches(token)
    }
}

/// An action on a Droplet or server.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Action {
    pub(crate) id: u64,
    /// The Droplet's or server's number.
    pub(crate) machine: u64,
    /// The cloud's word for it: `power_off`, `stop_server`.
    pub(crate) kind: &'static str,
    /// What a rename or a resize sets.
    pub(crate) value: Option<String>,
    pub(crate) started: Timestamp,
    pub(crate) finished: Option<Timestamp>,
}

/// The changes that are still to happen, in the order of their instants.
#[derive(Debug)]
pub(crate) struct Timeline {
    now: Timestamp,
    /// By how much everything that is begun now happens later than usual.
    pub(crate) slowness: SignedDuration,
    serial: u64,
    pending: BTreeMap<(Timestamp, u64), (usize, Effect)>,
}

/// A change that happens at an instant.
#[derive(Debug)]
pub(crate) enum Effect {
    DropletActionEnds(u64),
    /// The status shows what the Droplet is: a little after its action's end (`droplet_kit` #50).
    DropletShows(u64),
    DropletGuestOff {
        droplet: u64,
        boot: u64,
    },
    DatabaseShowsResizing(String),
    DatabaseResized(String),
    Node {
        cluster: String,
        pool: String,
        node: String,
        step: NodeStep,
    },
    ServerActionEnds(u64),
    ServerGuestOff {
        server: u64,
        boot: u64,
    },
}

impl Timeline {
    fn new(now: Timestamp) -> Self {
        Self {
            now,
            slowness: SignedDuration::ZERO,
            serial: 0,
            pending: BTreeMap::new(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// Lets `effect` happen to `account` when `delay` has passed.
    pub(crate) fn after(&mut self, account: &Account, delay: SignedDuration, effect: Effect) {
        self.serial += 1;
        let at = self.now + delay + self.slowness;
        self.pending
            .insert((at, self.serial), (account.index, effect));
    }

    /// A number for something new, larger than every one before.
    pub(crate) fn number(&mut self) -> u64 {
        self.serial += 1;
        500_000_000 + self.serial
    }

    /// A UUID for something new. The same fleet and requests give the same ones.
    pub(crate) fn uuid(&mut self) -> String {
        uuid_of(self.number())
    }

    fn next_due(&mut self, now: Timestamp) -> Option<(Timestamp, usize, Effect)> {
        let entry = self
            .pending
            .first_entry()
            .filter(|entry| entry.key().0 <= now)?;
        let ((at, _), (account, effect)) = entry.remove_entry();
        Some((at, account, effect))
    }
}

/// A plausible UUID for a number.
pub(crate) fn uuid_of(number: u64) -> String {
    // Two rounds of a mixing function (splitmix64), for numbers in a row to look unlike.
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
            timeline: Timeline::new(now),
        }
    }

    /// Adds everything that a fleet describes, or nothing.
    pub(crate) fn admit(&mut self, fleet: &Description) -> Result<(), Problem> {
        fleet.check()?;
        let known = self
            .accounts
            .iter()
            .map(|account| (&account.name, account.provider));
        let new = fleet
            .accounts
            .iter()
            .map(|account| (&account.name, account.provider));
        let names: Vec<_> = known
            .chain(new)
            .map(|(name, cloud)| (name.clone(), cloud))
            .collect();
        let owner = |table, index, cloud, named| {
            let names = names.iter().map(|(name, cloud)| (name, *cloud));
            Description::owner(names, cloud, named).map_err(|message| Problem {
                table,
                index,
                message,
            })
        };
        let mut owners = Owners::default();
        let mut ids: Vec<ResourceIdOfOwner> = Vec::new();
        for (index, droplet) in fleet.droplets.iter().enumerate() {
            let its = owner(
                "droplets",
                index,
                Provider::DigitalOcean,
                droplet.account.as_ref(),
            )?;
            owners.droplets.push(its);
            ids.push((
                "droplets",
                index,
                its,
                ResourceId::Droplet(DropletId(droplet.id)),
            ));
        }
        for (index, database) in fleet.databases.iter().enumerate() {
            let its = owner(
                "databases",
                index,
                Provider::DigitalOcean,
                database.account.as_ref(),
            )?;
            owners.databases.push(its);
            let id = ResourceId::Database(DatabaseId(database.id.clone()));
            ids.push(("databases", index, its, id));
        }
        for (index, cluster) in fleet.clusters.iter().enumerate() {
            let its = owner(
                "clusters",
                index,
                Provider::DigitalOcean,
                cluster.account.as_ref(),
            )?;
            owners.clusters.push(its);
            for pool in &cluster.pools {
                let pool = PoolId(pool.id.clone());
                let id = ResourceId::NodePool(ClusterId(cluster.id.clone()), pool);
                ids.push(("clusters", index, its, id));
            }
        }
        for (index, server) in fleet.servers.iter().enumerate() {
            let its = owner("servers", index, Provider::Hetzner, server.account.as_ref())?;
            owners.servers.push(its);
            ids.push((
                "servers",
                index,
                its,
                ResourceId::Server(ServerId(server.id)),
            ));
        }
        self.refuse_doubles(fleet, &ids)?;
        self.insert(fleet, &owners);
        Ok(())
    }

    fn refuse_doubles(
        &self,
        fleet: &Description,
        ids: &[ResourceIdOfOwner],
    ) -> Result<(), Problem> {
        for (index, account) in fleet.accounts.iter().enumerate() {
            if self.accounts.iter().any(|known| known.name == account.name) {
                let message = format!("`{}` is there already", account.name);
                return Err(Problem {
                    table: "accounts",
                    index,
                    message,
                });
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        for (table, index, owner, id) in ids {
            let known = self
                .accounts
                .get(*owner)
                .is_some_and(|account| account.holds(id));
            if known || !seen.insert((owner, id)) {
                let message = format!("`{id}` is there already");
                return Err(Problem {
                    table,
                    index: *index,
                    message,
                });
            }
        }
        Ok(())
    }

    fn insert(&mut self, fleet: &Description, owners: &Owners) {
        let now = self.timeline.now;
        for account in &fleet.accounts {
            self.accounts.push(Account {
                index: self.accounts.len(),
                name: account.name.clone(),
                provider: account.provider,
                token: account.token.clone(),
                read_only: account.read_only,
                read_token: account.read_token.clone(),
                rate: Rate::new(account.provider, account.rate_limit, now),
                droplets: BTreeMap::new(),
                databases: BTreeMap::new(),
                clusters: BTreeMap::new(),
                servers: BTreeMap::new(),
                actions: BTreeMap::new(),
            });
        }
        for (droplet, owner) in fleet.droplets.iter().zip(&owners.droplets) {
            let account = &mut self.accounts[*owner];
            account
                .droplets
                .insert(droplet.id, Droplet::new(droplet.clone(), now));
        }
        for (database, owner) in fleet.databases.iter().zip(&owners.databases) {
            let account = &mut self.accounts[*owner];
            account
                .databases
                .insert(database.id.clone(), Database::new(database.clone(), now));
        }
        for (cluster, owner) in fleet.clusters.iter().zip(&owners.clusters) {
            kubernetes::create(
                &mut self.accounts[*owner],
                &mut self.timeline,
                cluster.clone(),
            );
        }
        for (server, owner) in fleet.servers.iter().zip(&owners.servers) {
            let account = &mut self.accounts[*owner];
            account
                .servers
                .insert(server.id, Server::new(server.clone(), now));
        }
    }

    /// Lets everything happen that was to happen until `now`.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        while let Some((at, account, effect)) = self.timeline.next_due(now) {
            self.timeline.now = self.timeline.now.max(at);
            self.accounts[account].undergo(&mut self.timeline, effect);
        }
        self.timeline.now = self.timeline.now.max(now);
    }

    /// The account that a token of this cloud opens.
    pub(crate) fn opened_by(&self, provider: Provider, token: &str) -> Option<usize> {
        let opens = |account: &Account| account.provider == provider && account.opens(token);
        self.accounts.iter().position(opens)
    }

    /// An account, and the timeline on which it schedules what takes time.
    pub(crate) fn account(&mut self, index: usize) -> (&mut Account, &mut Timeline) {
        (&mut self.accounts[index], &mut self.timeline)
    }

    /// The whole state of every resource, by reference.
    pub(crate) fn resources(&self) -> BTreeMap<String, Value> {
        let of_account = |account: &Account| {
            let name = account.name.clone();
            let views = account.views();
            views
                .into_iter()
                .map(move |(id, view)| (format!("{name}/{id}"), view))
        };
        self.accounts.iter().flat_map(of_account).collect()
    }
}

/// A resource's table, place, owner and id.
type ResourceIdOfOwner = (&'static str, usize, usize, ResourceId);

/// The place of each entry's account, in the order of a fleet's entries.
#[derive(Default)]
struct Owners {
    droplets: Vec<usize>,
    databases: Vec<usize>,
    clusters: Vec<usize>,
    servers: Vec<usize>,
}

impl Account {
    fn holds(&self, id: &ResourceId) -> bool {
        match id {
            ResourceId::Droplet(id) => self.droplets.contains_key(&id.0),
            ResourceId::Database(id) => self.databases.contains_key(&id.0),
            // A cluster is created as a whole.
            ResourceId::NodePool(cluster, _) => self.clusters.contains_key(&cluster.0),
            ResourceId::Server(id) => self.servers.contains_key(&id.0),
        }
    }

    fn undergo(&mut self, timeline: &mut Timeline, effect: Effect) {
        match effect {
            Effect::DropletActionEnds(action) => droplets::action_ends(self, timeline, action),
            Effect::DropletShows(droplet) => droplets::shows(self, droplet),
            Effect::DropletGuestOff { droplet, boot } => droplets::guest_off(self, droplet, boot),
            Effect::DatabaseShowsResizing(id) => databases::shows_resizing(self, &id),
            Effect::DatabaseResized(id) => databases::resized(self, &id),
            Effect::Node {
                cluster,
                pool,
                node,
                step,
            } => {
                kubernetes::node_steps(self, timeline.now, (&cluster, &pool, &node), step);
            }
            Effect::ServerActionEnds(action) => servers::action_ends(self, timeline, action),
            Effect::ServerGuestOff { server, boot } => servers::guest_off(self, server, boot),
        }
    }

    fn views(&self) -> Vec<(ResourceId, Value)> {
        let droplets = self
            .droplets
            .iter()
            .map(|(id, droplet)| (ResourceId::Droplet(DropletId(*id)), json!(droplet)));
        let databases = self.databases.iter().map(|(id, database)| {
            (
                ResourceId::Database(DatabaseId(id.clone())),
                json!(database),
            )
        });
        let pools = self.clusters.iter().flat_map(|(cluster_id, cluster)| {
            cluster.pools.iter().map(move |pool| {
                let pool_id = PoolId(pool.description.id.clone());
                let id = ResourceId::NodePool(ClusterId(cluster_id.clone()), pool_id);
                let mut view = json!(pool);
                view["cluster"] = json!(cluster);
                (id, view)
            })
        });
        let servers = self
            .servers
            .iter()
            .map(|(id, server)| (ResourceId::Server(ServerId(*id)), json!(server)));
        droplets
            .chain(databases)
            .chain(pools)
            .chain(servers)
            .collect()
    }

    /// Notes a new action and returns its number.
    pub(crate) fn begin_action(
        &mut self,
        timeline: &mut Timeline,
        machine: u64,
        kind: &'static str,
        value: Option<String>,
    ) -> u64 {
        let id = timeline.number();
        let started = timeline.now;
        let action = Action {
            id,
            machine,
            kind,
            value,
            started,
            finished: None,
        };
        self.actions.insert(id, action);
        id
    }

    /// The actions on one machine, newest first.
    pub(crate) fn actions_on(&self, machine: u64) -> impl Iterator<Item = &Action> {
        self.actions
            .values()
            .rev()
            .filter(move |action| action.machine == machine)
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

    #[test]
    fn a_fleet_with_a_doubled_id_or_a_strange_owner_is_refused_as_a_whole() {
        let account = "[[accounts]]\nname = \"do\"\nprovider = \"digitalocean\"\ntoken = \"t\"\n";
        let droplet = "[[droplets]]\nid = 1\nname = \"a\"\n";
        for (text, expected) in [
            (
                format!("{account}{droplet}{droplet}"),
                "`droplet/1` is there already",
            ),
            (
                format!("{account}{droplet}account = \"hz\""),
                "no digitalocean account `hz`",
            ),
            (
                format!("{account}[[servers]]\nid = 1\nname = \"a\""),
                "there is no hetzner account",
            ),
        ] {
            let fleet: Description = toml::from_str(&text).unwrap();
            let mut world = World::new(Timestamp::UNIX_EPOCH);
            let problem = world.admit(&fleet).unwrap_err();
            assert_eq!(problem.message, expected);
            assert!(world.resources().is_empty() && world.accounts.is_empty());
        }
    }
}
