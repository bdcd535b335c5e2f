//! The description of a fleet: accounts, what they hold, and how each resource behaves.
//!
//! A fleet is read from TOML. Every table refuses keys that it does not know, and every error
//! names its line.

use std::{collections::BTreeMap, fmt, str::FromStr};

use domain::{AccountName, configuration::Provider};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use toml::Spanned;

use crate::{catalog, world::World};

/// Everything that the simulated clouds hold, to begin with. Read it from TOML with `parse`.
#[derive(Debug, Clone)]
pub struct Fleet(pub(crate) Description);

impl Fleet {
    /// The token that requests of an account must carry.
    #[must_use]
    pub fn token_of(&self, account: &AccountName) -> Option<&str> {
        self.account(account).map(|one| one.token.0.as_str())
    }

    /// The account's other token, which may only read, if it has one.
    #[must_use]
    pub fn read_token_of(&self, account: &AccountName) -> Option<&str> {
        let read_token = self.account(account)?.read_token.as_ref();
        read_token.map(|token| token.0.as_str())
    }

    fn account(&self, name: &AccountName) -> Option<&Account> {
        self.0.accounts.iter().find(|one| one.name == *name)
    }
}

/// The tables of a fleet, before anything is known of their sense.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Description {
    /// The logins.
    pub(crate) accounts: Vec<Account>,
    /// `DigitalOcean` Droplets.
    pub(crate) droplets: Vec<Droplet>,
    /// `DigitalOcean` database clusters.
    pub(crate) databases: Vec<Database>,
    /// `DigitalOcean` Kubernetes clusters with their node pools.
    pub(crate) clusters: Vec<Cluster>,
    /// Hetzner Cloud servers.
    pub(crate) servers: Vec<Server>,
}

/// A login at one cloud.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Account {
    /// Its name, as in a reference.
    pub(crate) name: AccountName,
    /// Which cloud.
    pub(crate) provider: Provider,
    /// What requests must carry as `Authorization: Bearer`.
    pub(crate) token: Token,
    /// Whether the token may only read.
    #[serde(default)]
    pub(crate) read_only: bool,
    /// Another token, which may only read.
    #[serde(default)]
    pub(crate) read_token: Option<Token>,
    /// Other limits than the cloud's own.
    #[serde(default)]
    pub(crate) rate_limit: Option<RateLimit>,
}

impl Account {
    fn tokens(&self) -> impl Iterator<Item = &Token> {
        [&self.token].into_iter().chain(&self.read_token)
    }
}

/// A token. Its `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Token(String);

impl Token {
    /// Whether a request that carries `text` carries this token.
    #[must_use]
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.0 == text
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// How many requests an account may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RateLimit {
    /// Requests per hour; a Hetzner account regains them evenly.
    pub(crate) per_hour: u32,
    /// Requests per minute; at `DigitalOcean` only.
    #[serde(default)]
    pub(crate) per_minute: Option<u32>,
}

/// A Droplet.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Droplet {
    /// Whose it is; may be left out where only one account is of its cloud.
    #[serde(skip_serializing)]
    pub(crate) account: Option<AccountName>,
    /// Its number.
    pub(crate) id: u64,
    /// Its name.
    pub(crate) name: String,
    /// Its tags.
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    /// Its region's slug.
    #[serde(default = "default_region")]
    pub(crate) region: String,
    /// Its size's slug.
    #[serde(default = "default_droplet_size")]
    pub(crate) size: String,
    /// Its status to begin with.
    #[serde(default, skip_serializing)]
    pub(crate) status: DropletStatus,
    /// Whether its guest ignores the shutdown signal.
    #[serde(default)]
    pub(crate) ignores_shutdown: bool,
    /// How long a power action takes.
    #[serde(default = "seconds::<10>", skip_serializing)]
    pub(crate) power_action: SignedDuration,
    /// How long the guest needs from the shutdown request until it is off.
    #[serde(default = "seconds::<20>", skip_serializing)]
    pub(crate) shutdown: SignedDuration,
}

/// A Droplet's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DropletStatus {
    /// Being created.
    New,
    /// On.
    #[default]
    Active,
    /// Off.
    Off,
    /// Archived.
    Archive,
}

/// A database cluster.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Database {
    /// Whose it is; may be left out where only one account is of its cloud.
    #[serde(skip_serializing)]
    pub(crate) account: Option<AccountName>,
    /// Its UUID.
    pub(crate) id: String,
    /// Its name.
    pub(crate) name: String,
    /// The engine's slug: `pg`, `mysql`, `redis`, `valkey`, `mongodb`, `kafka`, `opensearch`.
    pub(crate) engine: String,
    /// The engine's version; the newest when left out.
    #[serde(default)]
    pub(crate) version: Option<String>,
    /// The plan's slug.
    pub(crate) plan: String,
    /// Primary and standby nodes together.
    #[serde(default = "one")]
    pub(crate) nodes: u32,
    /// Disk, in MiB; the plan's own when left out.
    #[serde(default)]
    pub(crate) storage_mib: Option<u64>,
    /// Its region's slug.
    #[serde(default = "default_region")]
    pub(crate) region: String,
    /// Its tags.
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    /// Its status to begin with.
    #[serde(default)]
    pub(crate) status: DatabaseStatus,
    /// Whether a plan with less memory or fewer vCPUs is refused.
    #[serde(default)]
    pub(crate) refuses_shrink: bool,
    /// How long a resize takes.
    #[serde(default = "seconds::<480>", skip_serializing)]
    pub(crate) resize: SignedDuration,
    /// How long after an accepted resize the status still reads `online`.
    #[serde(default, skip_serializing)]
    pub(crate) resizing_shows_after: SignedDuration,
    /// When the disk grows by itself.
    #[serde(default)]
    pub(crate) storage_autoscale: Option<StorageAutoscale>,
    /// Its read-only replicas.
    #[serde(default)]
    pub(crate) replicas: Vec<Replica>,
}

/// When a database's disk grows by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StorageAutoscale {
    /// Whether it does.
    pub(crate) enabled: bool,
    /// How full the disk must be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) threshold_percent: Option<u64>,
    /// By how much it grows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) increment_gib: Option<u64>,
}

/// A read-only node of a database.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Replica {
    /// Its UUID.
    pub(crate) id: String,
    /// Its name.
    pub(crate) name: String,
    /// Its plan's slug.
    pub(crate) size: String,
}

/// A database's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DatabaseStatus {
    /// Being created.
    Creating,
    /// In service.
    #[default]
    Online,
    /// Changing its size.
    Resizing,
    /// Moving to another region.
    Migrating,
    /// Being copied.
    Forking,
}

/// A Kubernetes cluster.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cluster {
    /// Whose it is; may be left out where only one account is of its cloud.
    #[serde(skip_serializing)]
    pub(crate) account: Option<AccountName>,
    /// Its UUID.
    pub(crate) id: String,
    /// Its name.
    pub(crate) name: String,
    /// Its region's slug.
    #[serde(default = "default_region")]
    pub(crate) region: String,
    /// Its version; the newest when left out.
    #[serde(default)]
    pub(crate) version: Option<String>,
    /// Its tags, without those that the service adds.
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    /// Whether its control plane has standbys.
    #[serde(default)]
    pub(crate) ha: bool,
    /// Its state to begin with.
    #[serde(default)]
    pub(crate) status: ClusterStatus,
    /// Its node pools.
    #[serde(skip_serializing)]
    pub(crate) pools: Vec<Pool>,
}

/// A cluster's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ClusterStatus {
    /// In service.
    #[default]
    Running,
    /// Being created.
    Provisioning,
    /// In service, with trouble.
    Degraded,
    /// Broken.
    Error,
    /// Gone.
    Deleted,
    /// Being upgraded.
    Upgrading,
    /// Going.
    Deleting,
}

/// A node pool.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pool {
    /// Its UUID.
    pub(crate) id: String,
    /// Its name.
    pub(crate) name: String,
    /// The nodes' size.
    #[serde(default = "default_node_size")]
    pub(crate) size: String,
    /// How many nodes.
    pub(crate) count: u32,
    /// The autoscaler's bounds, when it is on.
    #[serde(default)]
    pub(crate) autoscale: Option<Bounds>,
    /// Its tags, without those that the service adds.
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    /// Its labels.
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    /// Its taints.
    #[serde(default)]
    pub(crate) taints: Vec<Taint>,
    /// Whether a count of zero is refused.
    #[serde(default)]
    pub(crate) refuses_zero: bool,
    /// How long a new node needs until it runs.
    #[serde(default = "seconds::<180>", skip_serializing)]
    pub(crate) scale_up: SignedDuration,
    /// How long a node takes to go; two thirds of it draining.
    #[serde(default = "seconds::<90>", skip_serializing)]
    pub(crate) scale_down: SignedDuration,
}

/// The bounds between which a pool scales itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bounds {
    /// Fewest nodes.
    pub(crate) min: u32,
    /// Most nodes.
    pub(crate) max: u32,
}

/// A taint on a pool's nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Taint {
    /// Its key.
    pub(crate) key: String,
    /// Its value.
    #[serde(default)]
    pub(crate) value: String,
    /// What it does to pods.
    pub(crate) effect: TaintEffect,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TaintEffect {
    /// They are not placed.
    NoSchedule,
    /// They are placed only if need be.
    PreferNoSchedule,
    /// They are thrown out.
    NoExecute,
}

/// A Hetzner Cloud server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::struct_field_names,
    reason = "`server_type` is the provider's word"
)]
#[serde(deny_unknown_fields)]
pub(crate) struct Server {
    /// Whose it is; may be left out where only one account is of its cloud.
    #[serde(skip_serializing)]
    pub(crate) account: Option<AccountName>,
    /// Its number.
    pub(crate) id: u64,
    /// Its name.
    pub(crate) name: String,
    /// Its labels.
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    /// Its location's name.
    #[serde(default = "default_location")]
    pub(crate) location: String,
    /// Its type's name.
    #[serde(default = "default_server_type")]
    pub(crate) server_type: String,
    /// Its status to begin with.
    #[serde(default)]
    pub(crate) status: ServerStatus,
    /// Whether its guest ignores the shutdown signal.
    #[serde(default)]
    pub(crate) ignores_shutdown: bool,
    /// How long the guest needs from the shutdown request until it is off.
    #[serde(default = "seconds::<15>", skip_serializing)]
    pub(crate) shutdown: SignedDuration,
    /// How long a cut of power takes.
    #[serde(default = "seconds::<4>", skip_serializing)]
    pub(crate) poweroff: SignedDuration,
    /// How long it takes to power on.
    #[serde(default = "seconds::<10>", skip_serializing)]
    pub(crate) poweron: SignedDuration,
}

/// A server's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ServerStatus {
    /// On.
    #[default]
    Running,
    /// Being created.
    Initializing,
    /// Going on.
    Starting,
    /// Going off.
    Stopping,
    /// Off.
    Off,
    /// Going for good.
    Deleting,
    /// Moving to another host.
    Migrating,
    /// Being made anew.
    Rebuilding,
    /// The cloud does not know.
    Unknown,
}

fn seconds<const SECONDS: i64>() -> SignedDuration {
    SignedDuration::from_secs(SECONDS)
}

fn one() -> u32 {
    1
}

fn default_region() -> String {
    "fra1".to_owned()
}

fn default_droplet_size() -> String {
    "s-1vcpu-2gb".to_owned()
}

fn default_node_size() -> String {
    "s-2vcpu-4gb".to_owned()
}

fn default_location() -> String {
    "fsn1".to_owned()
}

fn default_server_type() -> String {
    "cx22".to_owned()
}

/// A fleet that cannot be.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The text is not TOML, or does not describe a fleet. The message shows the line.
    #[error("{0}")]
    Syntax(toml::de::Error),
    /// What it describes cannot be.
    #[error("line {line}: {problem}")]
    Invalid {
        /// Where the entry begins, counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: Problem,
    },
}

/// An entry of a fleet that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{table}: {message}")]
pub struct Problem {
    /// The table of the entry: `droplets`.
    pub table: &'static str,
    /// Which of the table's entries, counted from 0.
    pub index: usize,
    /// What is wrong.
    pub message: String,
}

impl FromStr for Fleet {
    type Err = FleetError;

    fn from_str(text: &str) -> Result<Self, FleetError> {
        let description = admit(text, &mut World::new(Timestamp::UNIX_EPOCH))?;
        Ok(Self(description))
    }
}

/// Adds what a TOML text describes to a world.
pub(crate) fn admit(text: &str, world: &mut World) -> Result<Description, FleetError> {
    let description: Description = toml::from_str(text).map_err(FleetError::Syntax)?;
    world
        .admit(&description)
        .map_err(|problem| FleetError::Invalid {
            line: line_of(text, &problem),
            problem,
        })?;
    Ok(description)
}

/// The line at which the entry of a problem begins.
fn line_of(text: &str, problem: &Problem) -> usize {
    type Tables = BTreeMap<String, Vec<Spanned<IgnoredAny>>>;
    let tables: Tables = toml::from_str(text).unwrap_or_default();
    let entry = tables
        .get(problem.table)
        .and_then(|table| table.get(problem.index));
    let start = entry.map_or(0, |entry| entry.span().start);
    1 + text[..start].matches('\n').count()
}

impl Description {
    /// The account, of those described here, that holds a resource of `provider`.
    pub(crate) fn owner<'a>(
        accounts: impl Iterator<Item = (&'a AccountName, Provider)>,
        provider: Provider,
        named: Option<&AccountName>,
    ) -> Result<usize, String> {
        let mut candidates = accounts
            .enumerate()
            .filter(|(_, (_, its))| *its == provider)
            .filter(|(_, (name, _))| named.is_none_or(|named| named == *name))
            .map(|(index, _)| index);
        match (candidates.next(), candidates.next(), named) {
            (Some(index), None, _) => Ok(index),
            (Some(_), Some(_), _) => Err(format!("say which {provider} account holds it")),
            (None, _, Some(name)) => Err(format!("no {provider} account `{name}`")),
            (None, _, None) => Err(format!("there is no {provider} account")),
        }
    }

    /// Checks each entry by itself: slugs, numbers, tokens. Owners and doubled ids are found when
    /// the fleet is admitted.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        each("accounts", &self.accounts, |account| {
            let shared = |other: &Account| {
                let shares = |token: &Token| other.tokens().any(|others| others == token);
                other.provider == account.provider && account.tokens().any(shares)
            };
            let same = |other: &&Account| other.name == account.name || shared(other);
            ensure(self.accounts.iter().filter(same).count() == 1, || {
                format!(
                    "`{}`: its name or token is another account's too",
                    account.name
                )
            })?;
            ensure(account.read_token.as_ref() != Some(&account.token), || {
                format!("`{}`: its two tokens are the same", account.name)
            })?;
            ensure(
                account.rate_limit.is_none_or(|limit| limit.per_hour > 0),
                || "a rate limit is at least one request per hour".to_owned(),
            )
        })?;
        each("droplets", &self.droplets, |droplet| {
            known_region(&droplet.region)?;
            known_size(&droplet.size)
        })?;
        each("databases", &self.databases, check_database)?;
        each("clusters", &self.clusters, |cluster| {
            known_region(&cluster.region)?;
            cluster.pools.iter().try_for_each(check_pool)
        })?;
        each("servers", &self.servers, |server| {
            let (location, server_type) = (&server.location, &server.server_type);
            ensure(
                catalog::entry(&catalog::LOCATIONS, "name", location).is_some(),
                || format!("no location `{location}`"),
            )?;
            ensure(
                catalog::entry(&catalog::SERVER_TYPES, "name", server_type).is_some(),
                || format!("no server type `{server_type}`"),
            )
        })
    }
}

fn each<T>(
    table: &'static str,
    entries: &[T],
    check: impl Fn(&T) -> Result<(), String>,
) -> Result<(), Problem> {
    entries.iter().enumerate().try_for_each(|(index, entry)| {
        check(entry).map_err(|message| Problem {
            table,
            index,
            message,
        })
    })
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

fn known_region(slug: &str) -> Result<(), String> {
    ensure(catalog::region(slug).is_some(), || {
        format!("no region `{slug}`")
    })
}

fn known_size(slug: &str) -> Result<(), String> {
    ensure(catalog::droplet_size(slug).is_some(), || {
        format!("no size `{slug}`")
    })
}

fn check_database(database: &Database) -> Result<(), String> {
    known_region(&database.region)?;
    let Database {
        engine,
        nodes,
        plan,
        ..
    } = database;
    let offer = catalog::engine(engine).ok_or_else(|| format!("no engine `{engine}`"))?;
    ensure(catalog::offers(offer, *nodes, plan), || {
        format!("{engine} has no plan `{plan}` with {nodes} nodes")
    })
}

fn check_pool(pool: &Pool) -> Result<(), String> {
    known_size(&pool.size)?;
    let fits = |bounds: Bounds| (bounds.min..=bounds.max).contains(&pool.count);
    ensure(pool.autoscale.is_none_or(fits), || {
        format!("pool `{}`: its count is not within its bounds", pool.name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNT: &str = "
[[accounts]]
name = \"do\"
provider = \"digitalocean\"
token = \"secret\"
";

    fn error(text: &str) -> String {
        format!("{ACCOUNT}{text}")
            .parse::<Fleet>()
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn the_fleet_in_the_documentation_is_valid() {
        let lines = include_str!("lib.rs").lines();
        let example = lines.skip_while(|line| !line.ends_with("```toml")).skip(1);
        let example = example.take_while(|line| !line.ends_with("```"));
        let toml: Vec<_> = example
            .filter_map(|line| line.strip_prefix("//!"))
            .collect();
        let fleet: Fleet = toml.join("\n").parse().unwrap();
        assert_eq!(fleet.0.servers.len(), 1);
    }

    #[test]
    fn durations_are_written_as_people_write_them() {
        let text =
            format!("{ACCOUNT}[[droplets]]\nid = 1\nname = \"a\"\npower_action = \"1m 30s\"");
        let fleet: Fleet = text.parse().unwrap();
        assert_eq!(
            fleet.0.droplets[0].power_action,
            SignedDuration::from_secs(90)
        );
        assert_eq!(fleet.0.droplets[0].shutdown, SignedDuration::from_secs(20));
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line() {
        let error = error("[[droplets]]\nid = 1\nname = \"a\"\ncolour = \"red\"");
        assert!(
            error.contains("line 9") && error.contains("colour"),
            "{error}"
        );
    }

    #[test]
    fn what_no_cloud_offers_is_refused_with_its_line() {
        for (entry, expected) in [
            (
                "[[droplets]]\nid = 1\nname = \"a\"\nsize = \"huge\"",
                "no size `huge`",
            ),
            (
                "[[droplets]]\nid = 1\nname = \"a\"\nregion = \"mars1\"",
                "no region `mars1`",
            ),
            (
                "[[databases]]\nid = \"x\"\nname = \"a\"\nengine = \"pg\"\nnodes = 2\nplan = \"db-s-1vcpu-1gb\"",
                "pg has no plan `db-s-1vcpu-1gb` with 2 nodes",
            ),
            (
                "[[servers]]\nid = 1\nname = \"a\"\nlocation = \"fsn1-dc14\"",
                "no location",
            ),
            (
                "[[servers]]\nid = 1\nname = \"a\"",
                "there is no hetzner account",
            ),
        ] {
            let error = error(&format!("\n{entry}"));
            assert!(
                error.starts_with("line 7: ") && error.contains(expected),
                "{error}"
            );
        }
    }

    #[test]
    fn a_token_shows_in_no_debug_output() {
        let fleet: Fleet = ACCOUNT.parse().unwrap();
        assert!(!format!("{fleet:?}").contains("secret"));
    }
}
