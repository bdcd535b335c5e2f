//! The description of a fleet: accounts, what they hold, and how each resource behaves.
//!
//! A fleet is read from TOML. Every table refuses unknown keys, and every error names its line.

use std::{borrow::Cow, collections::BTreeMap, str::FromStr};

use domain::{AccountName, configuration::Provider};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;

use crate::{
    account::{Account, Login},
    catalog,
    databases::Database,
    digitalocean::kubernetes,
    droplets::{self, Droplet},
    kubernetes::{Cluster, Pool},
    ledger::Life,
    servers::{self, Server},
    things::Kind,
    world::World,
};

/// The initial contents of the simulated clouds. Read them from TOML with `parse`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fleet {
    accounts: Vec<Spanned<Login>>,
    droplets: Vec<Spanned<Droplet>>,
    databases: Vec<Spanned<Database>>,
    clusters: Vec<Spanned<Cluster>>,
    servers: Vec<Spanned<Server>>,
    digitalocean: Things,
    hetzner: Things,
}

/// What the accounts of a cloud hold besides their resources, by kind: `volumes`.
type Things = BTreeMap<String, Vec<Spanned<Map<String, Value>>>>;

#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The text is not TOML, or does not describe a fleet. The message shows the line.
    #[error("{0}")]
    Syntax(toml::de::Error),
    /// It describes something impossible.
    #[error("line {line}: {table}: {message}")]
    Invalid {
        /// The line on which the entry begins, counted from 1.
        line: usize,
        /// The entry's table, such as `droplets`.
        table: String,
        message: String,
    },
}

impl FromStr for Fleet {
    type Err = FleetError;

    fn from_str(text: &str) -> Result<Self, FleetError> {
        let fleet: Self = toml::from_str(text).map_err(FleetError::Syntax)?;
        let empty = &mut World::new(Timestamp::UNIX_EPOCH);
        fleet.admit(empty).map_err(|problem| problem.in_text(text))?;
        Ok(fleet)
    }
}

/// Adds everything that a TOML text describes to a world; adds nothing on error.
pub(crate) fn create(text: &str, world: &mut World) -> Result<(), FleetError> {
    let fleet: Fleet = toml::from_str(text).map_err(FleetError::Syntax)?;
    fleet.admit(world).map_err(|problem| problem.in_text(text))
}

/// What is wrong with an entry of a fleet.
#[derive(Debug)]
pub(crate) struct Problem {
    table: String,
    /// The offset in the fleet's text at which the entry begins, in bytes.
    start: usize,
    message: String,
}

impl Problem {
    fn in_text(self, text: &str) -> FleetError {
        FleetError::Invalid {
            line: 1 + text[..self.start].matches('\n').count(),
            table: self.table,
            message: self.message,
        }
    }
}

impl Fleet {
    /// The token that an account's requests must carry.
    #[must_use]
    pub fn token_of(&self, account: &AccountName) -> Option<&str> {
        Some(self.login(account)?.token.text())
    }

    #[must_use]
    pub fn read_token_of(&self, account: &AccountName) -> Option<&str> {
        let read_token = self.login(account)?.read_token.as_ref()?;
        Some(read_token.text())
    }

    fn login(&self, name: &AccountName) -> Option<&Login> {
        let mut logins = self.accounts.iter().map(Spanned::get_ref);
        logins.find(|login| login.name == *name)
    }

    /// Adds everything to a world; adds nothing on error.
    pub(crate) fn admit(&self, world: &mut World) -> Result<(), Problem> {
        use Provider::{DigitalOcean, Hetzner};
        let now = world.timeline.now();
        // Only those that something is added to are copied.
        let mut accounts: Vec<_> = world.accounts.iter().map(Cow::Borrowed).collect();
        each("accounts", &self.accounts, |login| {
            check_login(&login, &accounts)?;
            accounts.push(Cow::Owned(world.new_account(accounts.len(), login)));
            Ok(())
        })?;
        each("droplets", &self.droplets, |droplet| {
            check_region(&droplet.region)?;
            check_size(&droplet.size)?;
            check_disk(&droplet)?;
            let owner = owner(&mut accounts, DigitalOcean, droplet.account.as_ref())?;
            let id = droplet.id;
            let life = Life::of_size(now, &droplet.size);
            owner.vpcs.extend(droplet.vpc.clone());
            insert("droplet", &mut owner.droplets, id, droplet.created_at(now))?;
            owner.ledger.open(droplets::meter(id), life);
            Ok(())
        })?;
        each("databases", &self.databases, |database| {
            check_database(&database)?;
            let owner = owner(&mut accounts, DigitalOcean, database.account.as_ref())?;
            let id = database.id.clone();
            let life = Life::of_size(now, &database.priced_as());
            let meter = database.meter();
            insert("database", &mut owner.databases, id, database.created_at(now))?;
            owner.ledger.open(meter, life);
            Ok(())
        })?;
        each("clusters", &self.clusters, |cluster| {
            check_region(&cluster.region)?;
            let mut pools = cluster.pools.iter();
            pools.try_for_each(|pool| check_pool(pool, &cluster))?;
            let owner = owner(&mut accounts, DigitalOcean, cluster.account.as_ref())?;
            let id = &cluster.id;
            ensure(!owner.clusters.contains_key(id), || doubled("cluster", id))?;
            kubernetes::create(owner, &mut world.timeline, cluster);
            Ok(())
        })?;
        each("servers", &self.servers, |server| {
            check_server(&server)?;
            let owner = owner(&mut accounts, Hetzner, server.account.as_ref())?;
            let id = server.id;
            let mut server = server.created_at(now);
            let life = Life::of_size(server.created, &server.server_type);
            let life = life.in_location(&server.location);
            let free = !owner.servers.contains_key(&id);
            ensure(free, || doubled("server", &id))?;
            owner.ledger.open(servers::meter(id), life);
            for family in server.addresses.clone() {
                let ip = owner.new_address(&mut world.timeline, &server, family);
                *server.address_mut(family) = Some(ip);
            }
            owner.servers.insert(id, server);
            Ok(())
        })?;
        admit_things(DigitalOcean, &self.digitalocean, &mut accounts, now)?;
        admit_things(Hetzner, &self.hetzner, &mut accounts, now)?;
        let changed = accounts.into_iter().filter_map(|account| match account {
            Cow::Owned(account) => Some(account),
            Cow::Borrowed(_) => None,
        });
        for mut account in changed.collect::<Vec<_>>() {
            account.invalidate_caches();
            account.things.place_in_projects(account.droplets.keys());
            if account.index < world.accounts.len() {
                let place = account.index;
                world.accounts[place] = account;
            } else {
                world.accounts.push(account);
            }
        }
        Ok(())
    }
}

/// Adds what the accounts of a cloud hold besides their resources.
fn admit_things(
    cloud: Provider,
    things: &Things,
    accounts: &mut [Cow<'_, Account>],
    now: Timestamp,
) -> Result<(), Problem> {
    for (table, entries) in things {
        let kind = Kind::listed_at(table, cloud);
        each(&format!("{cloud}.{table}"), entries, |entry| {
            let kind = kind.ok_or_else(|| format!("{cloud} has no `{table}`"))?;
            let mut thing = kind.read(cloud, &entry)?;
            let owner = owner(accounts, cloud, thing.account.as_ref())?;
            thing.created = now;
            let kind =
                if thing.is_ipv6() && kind == Kind::ReservedIp { Kind::ReservedIpv6 } else { kind };
            let id = thing.id.clone();
            ensure(owner.things.add(kind, thing), || doubled(table, &id))
        })?;
    }
    Ok(())
}

fn each<T: Clone>(
    table: &str,
    entries: &[Spanned<T>],
    mut add: impl FnMut(T) -> Result<(), String>,
) -> Result<(), Problem> {
    entries.iter().try_for_each(|entry| {
        add(entry.get_ref().clone()).map_err(|message| Problem {
            table: table.to_owned(),
            start: entry.span().start,
            message,
        })
    })
}

/// The account that holds a resource of a cloud. Its name may be left out if there is only one.
fn owner<'a>(
    accounts: &'a mut [Cow<'_, Account>],
    cloud: Provider,
    named: Option<&AccountName>,
) -> Result<&'a mut Account, String> {
    let mut candidates = accounts.iter_mut().filter(|account| {
        account.login.provider == cloud && named.is_none_or(|name| *name == account.login.name)
    });
    match (candidates.next(), candidates.next(), named) {
        (Some(account), None, _) => Ok(account.to_mut()),
        (Some(_), Some(_), _) => Err(format!("name the {cloud} account that holds it")),
        (None, _, Some(name)) => Err(format!("no {cloud} account `{name}`")),
        (None, _, None) => Err(format!("there is no {cloud} account")),
    }
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

fn doubled(kind: &str, id: &impl ToString) -> String {
    format!("`{kind}/{}` is there already", id.to_string())
}

/// Adds a resource, unless its id is taken.
fn insert<I: Ord + ToString, T>(
    kind: &str,
    resources: &mut BTreeMap<I, T>,
    id: I,
    resource: T,
) -> Result<(), String> {
    ensure(!resources.contains_key(&id), || doubled(kind, &id))?;
    resources.insert(id, resource);
    Ok(())
}

fn check_login(login: &Login, known: &[Cow<'_, Account>]) -> Result<(), String> {
    let name = &login.name;
    let clashes = |account: &Cow<'_, Account>| account.login.clashes_with(login);
    ensure(!known.iter().any(clashes), || {
        format!("`{name}`: another account has the same name or token")
    })?;
    ensure(login.read_token.as_ref() != Some(&login.token), || {
        format!("`{name}`: its two tokens are the same")
    })?;
    let has_requests = login.rate_limit.is_none_or(|limit| limit.per_hour > 0);
    ensure(has_requests, || "a rate limit is at least one request per hour".to_owned())
}

fn check_region(slug: &str) -> Result<(), String> {
    let is_known = catalog::region(slug).is_some();
    ensure(is_known, || format!("no region `{slug}`"))
}

fn check_size(slug: &str) -> Result<(), String> {
    let is_known = catalog::droplet_size(slug).is_some();
    ensure(is_known, || format!("no size `{slug}`"))
}

/// Checks that a Droplet's disk is not larger than its size's.
fn check_disk(droplet: &Droplet) -> Result<(), String> {
    let (disk, size) = (droplet.disk, &droplet.size);
    ensure(disk <= droplets::disk_of(size), || {
        format!("a disk of {disk} GB is larger than that of `{size}`")
    })
}

fn check_database(database: &Database) -> Result<(), String> {
    let (engine, nodes, plan) = (&database.engine, database.nodes, &database.plan);
    check_region(&database.region)?;
    let is_known = catalog::engine(engine).is_some();
    ensure(is_known, || format!("no engine `{engine}`"))?;
    ensure(catalog::offers(engine, nodes, plan), || {
        format!("{engine} has no plan `{plan}` with {nodes} nodes")
    })
}

fn check_pool(pool: &Pool, cluster: &Cluster) -> Result<(), String> {
    check_size(&pool.size)?;
    let same = cluster.pools.iter().filter(|other| other.id == pool.id);
    ensure(same.count() == 1, || {
        format!("`node-pool/{}/{}` is there already", cluster.id, pool.id)
    })?;
    let bounds = pool.autoscale.map(|bounds| bounds.min..=bounds.max);
    ensure(bounds.is_none_or(|bounds| bounds.contains(&pool.count)), || {
        format!("pool `{}`: its count is not within its bounds", pool.name)
    })
}

fn check_server(server: &Server) -> Result<(), String> {
    let (location, server_type) = (&server.location, &server.server_type);
    let known = catalog::entry(&catalog::LOCATIONS, "name", location);
    ensure(known.is_some(), || format!("no location `{location}`"))?;
    let known = catalog::entry(&catalog::SERVER_TYPES, "name", server_type);
    let disk = known.and_then(|known| known["disk"].as_u64());
    let disk = disk.ok_or_else(|| format!("no server type `{server_type}`"))?;
    let own = server.disk;
    ensure(own <= disk, || format!("a disk of {own} GB is larger than that of `{server_type}`"))
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    const ACCOUNT: &str = "
[[accounts]]
name = \"do\"
provider = \"digitalocean\"
token = \"secret\"
";

    fn error(text: &str) -> String {
        format!("{ACCOUNT}{text}").parse::<Fleet>().unwrap_err().to_string()
    }

    #[test]
    fn the_fleet_in_the_documentation_is_valid() {
        let lines = include_str!("lib.rs").lines();
        let example = lines.skip_while(|line| !line.ends_with("```toml")).skip(1);
        let example = example.take_while(|line| !line.ends_with("```"));
        let toml: Vec<_> = example.filter_map(|line| line.strip_prefix("//!")).collect();
        let fleet: Fleet = toml.join("\n").parse().unwrap();
        assert_eq!(fleet.servers.len(), 1);
    }

    #[test]
    fn durations_are_written_as_people_write_them() {
        let text =
            format!("{ACCOUNT}[[droplets]]\nid = 1\nname = \"a\"\npower_action = \"1m 30s\"");
        let fleet: Fleet = text.parse().unwrap();
        let droplet = fleet.droplets[0].get_ref();
        assert_eq!(droplet.power_action, SignedDuration::from_secs(90));
        assert_eq!(droplet.shutdown, SignedDuration::from_secs(20));
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line() {
        // `powered` is part of a Droplet's state, and not of its description.
        for key in ["colour", "powered"] {
            let error = error(&format!("[[droplets]]\nid = 1\nname = \"a\"\n{key} = true"));
            assert!(error.contains("line 9") && error.contains(key), "{error}");
        }
    }

    #[test]
    fn what_no_cloud_offers_is_refused_with_its_line() {
        for (entry, expected) in [
            ("[[droplets]]\nid = 1\nname = \"a\"\nsize = \"huge\"", "no size `huge`"),
            ("[[droplets]]\nid = 1\nname = \"a\"\nregion = \"mars1\"", "no region `mars1`"),
            (
                "[[droplets]]\nid = 1\nname = \"a\"\nsize = \"s-1vcpu-1gb\"\ndisk = 50",
                "a disk of 50 GB is larger",
            ),
            (
                "[[databases]]\nid = \"x\"\nname = \"a\"\nengine = \"pg\"\nnodes = 2\nplan = \"db-s-1vcpu-1gb\"",
                "pg has no plan `db-s-1vcpu-1gb` with 2 nodes",
            ),
            ("[[servers]]\nid = 1\nname = \"a\"\nlocation = \"fsn1-dc14\"", "no location"),
            (
                "[[servers]]\nid = 1\nname = \"a\"\nserver_type = \"cpx22\"\ndisk = 160",
                "a disk of 160 GB is larger",
            ),
            ("[[servers]]\nid = 1\nname = \"a\"", "there is no hetzner account"),
        ] {
            let error = error(&format!("\n{entry}"));
            assert!(error.starts_with("line 7: ") && error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_fleet_with_a_doubled_id_or_an_unknown_owner_is_refused_as_a_whole() {
        let droplet = "[[droplets]]\nid = 1\nname = \"a\"\n";
        for (text, expected) in [
            (
                format!("{ACCOUNT}{droplet}{droplet}"),
                "line 9: droplets: `droplet/1` is there already",
            ),
            (
                format!("{ACCOUNT}{droplet}account = \"hz\""),
                "line 6: droplets: no digitalocean account `hz`",
            ),
        ] {
            let mut world = World::new(Timestamp::UNIX_EPOCH);
            let error = create(&text, &mut world).unwrap_err();
            assert_eq!(error.to_string(), expected);
            assert!(world.accounts.is_empty());
        }
    }

    #[test]
    fn a_token_shows_in_no_debug_output() {
        let fleet: Fleet = ACCOUNT.parse().unwrap();
        assert!(!format!("{fleet:?}").contains("secret"));
    }
}
