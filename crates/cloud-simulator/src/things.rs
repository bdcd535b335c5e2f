//! What an account holds besides its machines and their images, its databases and its clusters:
//! addresses, networks, volumes, firewalls, load balancers, projects, keys and the like.
//!
//! All kinds are alike, at both clouds. A thing has an id and some values, which its cloud shows in the
//! kind's template, and it is attached to machines. An attachment is stored on the thing, not on the
//! machine. `answers/things.json` has each kind's template, and the keys by which a fleet describes it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::Ipv4Addr,
    sync::LazyLock,
};

use domain::{AccountName, configuration::Provider};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    answer::timestamp,
    catalog,
    labels::{Labels, Selector},
    ledger::Meter,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Alert,
    Firewall,
    FloatingIp,
    LoadBalancer,
    Network,
    PlacementGroup,
    /// A server's public address. It outlives its server, unless `auto_delete` is set.
    PrimaryIp,
    Project,
    ReservedIp,
    ReservedIpv6,
    SshKey,
    Volume,
}

/// What is the same for all things of a kind at a cloud.
#[derive(Debug, Deserialize)]
struct Template {
    /// The keys that a fleet must give; without any, a fleet cannot describe the kind.
    #[serde(default)]
    needs: Vec<String>,
    /// The keys that a fleet may give, with their defaults.
    #[serde(default)]
    may: Map<String, Value>,
    /// The response about a thing, in which `"{key}"` stands for a value of the thing.
    shows: Value,
}

static TEMPLATES: LazyLock<BTreeMap<Provider, BTreeMap<Kind, Template>>> = LazyLock::new(|| {
    let templates = serde_json::from_str(include_str!("../answers/things.json"));
    templates.expect("every kind has a template")
});

/// A thing's id: a number, or a UUID or address at `DigitalOcean`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Id {
    Number(u64),
    Text(String),
}

/// A thing: the values by which a fleet describes it and its cloud shows it, then its state.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Thing {
    /// May be left out if its cloud has only one account.
    #[serde(skip_serializing)]
    pub(crate) account: Option<AccountName>,
    pub(crate) id: Id,
    pub(crate) name: String,
    #[serde(alias = "region")]
    pub(crate) location: String,
    pub(crate) ip: String,
    pub(crate) ip_range: String,
    pub(crate) public_key: String,
    /// The GB of a volume.
    pub(crate) size: u64,
    /// Whether new Droplets are placed in this project.
    pub(crate) is_default: bool,
    pub(crate) labels: Labels,
    /// Whether an address is deleted with its server.
    pub(crate) auto_delete: bool,
    /// The machines that it was attached to by id.
    #[serde(
        skip_serializing,
        deserialize_with = "attachments",
        alias = "droplet",
        alias = "droplets",
        alias = "members",
        alias = "server",
        alias = "servers",
        alias = "targets"
    )]
    pub(crate) attached: BTreeMap<u64, Attachment>,
    /// The label selector, or at `DigitalOcean` the tag, by which it is attached to others.
    #[serde(alias = "tag")]
    pub(crate) selector: Option<String>,
    /// The tags by which a `DigitalOcean` firewall applies to others.
    pub(crate) tags: BTreeSet<String>,
    /// The Droplets that a firewall's rules name as sources.
    pub(crate) lets_in: BTreeSet<u64>,
    /// The addresses that a firewall's rules name as sources.
    pub(crate) lets_in_addresses: Vec<String>,
    /// How long it takes to apply a firewall to a server.
    #[serde(skip_serializing)]
    pub(crate) applies: SignedDuration,

    /// The servers that a firewall is still being applied to.
    #[serde(skip)]
    pub(crate) pending: BTreeSet<u64>,
    /// The meter that a reserved address is billed under while it is not assigned.
    #[serde(skip)]
    pub(crate) meter: Option<Meter>,
    #[serde(skip)]
    pub(crate) created: Timestamp,
}

/// How a thing is attached to a machine.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Attachment {
    /// The server's address in a network. It stays taken for some seconds after its server is deleted.
    pub(crate) ip: String,
    pub(crate) alias_ips: Vec<String>,
    /// Whether a load balancer reaches the server at its private address.
    pub(crate) use_private_ip: bool,
}

/// Reads the machines that a thing is attached to: one id, a list of ids, or a list of attachments.
fn attachments<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<u64, Attachment>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Machines {
        One(Option<u64>),
        Several(BTreeSet<u64>),
        Attached(Vec<Member>),
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Member {
        server: u64,
        #[serde(flatten)]
        how: Attachment,
    }
    let plainly = |machine| (machine, Attachment::default());
    Ok(match Machines::deserialize(deserializer)? {
        Machines::One(machine) => machine.into_iter().map(plainly).collect(),
        Machines::Several(machines) => machines.into_iter().map(plainly).collect(),
        Machines::Attached(members) => {
            members.into_iter().map(|one| (one.server, one.how)).collect()
        }
    })
}

impl Kind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Alert => "alert",
            Self::Firewall => "firewall",
            Self::FloatingIp => "floating_ip",
            Self::LoadBalancer => "load_balancer",
            Self::Network => "network",
            Self::PlacementGroup => "placement_group",
            Self::PrimaryIp => "primary_ip",
            Self::Project => "project",
            Self::ReservedIp => "reserved_ip",
            Self::ReservedIpv6 => "reserved_ipv6",
            Self::SshKey => "ssh_key",
            Self::Volume => "volume",
        }
    }

    /// The kind that a cloud lists under a path, such as `volumes`.
    pub(crate) fn listed_at(path: &str, cloud: Provider) -> Option<Self> {
        let mut kinds = TEMPLATES[&cloud].keys();
        kinds.find(|kind| path.strip_suffix('s') == Some(kind.word())).copied()
    }

    /// Reads what a fleet says about a thing of this kind.
    pub(crate) fn read(self, cloud: Provider, given: &Map<String, Value>) -> Result<Thing, String> {
        let Template { needs, may, .. } = &TEMPLATES[&cloud][&self];
        if let Some(key) = needs.iter().find(|key| !given.contains_key(*key)) {
            return Err(format!("missing field `{key}`"));
        }
        let is_known =
            |key: &String| key == "account" || needs.contains(key) || may.contains_key(key);
        if let Some(key) = given.keys().find(|key| !is_known(key)) {
            return Err(format!("unknown field `{key}`"));
        }
        let values = may.clone().into_iter().chain(given.clone());
        let values: Value = values.collect();
        let mut thing = Thing::deserialize(values).map_err(|error| error.to_string())?;
        if self == Self::ReservedIp {
            thing.id = Id::Text(thing.ip.clone());
        }
        let is_number = matches!(thing.id, Id::Number(_));
        if is_number == (cloud == Provider::Hetzner || self == Self::SshKey) {
            Ok(thing)
        } else {
            Err(format!("invalid id `{}`", thing.id))
        }
    }
}

impl Default for Id {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

impl Thing {
    /// What its cloud shows of it. `more` has the values that it does not know by itself.
    pub(crate) fn to_json(&self, kind: Kind, cloud: Provider, more: Value) -> Value {
        let machines: Vec<_> = self.attached.keys().collect();
        let own = json!({
            "created": timestamp(self.created),
            "machines": machines,
            "machine": self.machine(),
        });
        let values = catalog::merged([json!(self), own, more]);
        filled_in(&TEMPLATES[&cloud][&kind].shows, &values)
    }

    pub(crate) fn is_ipv6(&self) -> bool {
        self.ip.contains(':')
    }

    pub(crate) fn is_attached_to(&self, machine: u64) -> bool {
        self.attached.contains_key(&machine)
    }

    /// The machine that it is attached to, if it can be attached to only one.
    pub(crate) fn machine(&self) -> Option<u64> {
        self.attached.keys().next().copied()
    }

    /// Attaches it to a machine by id; returns whether it was not attached to it.
    pub(crate) fn attach(&mut self, machine: u64) -> bool {
        self.attached.insert(machine, Attachment::default()).is_none()
    }

    /// Reports whether its label selector selects a server with these labels.
    pub(crate) fn selects(&self, labels: &Labels) -> bool {
        let selector = self.selector.as_deref().and_then(Selector::parse);
        selector.is_some_and(|selector| selector.chooses(labels))
    }

    /// Reports whether a server with these labels was attached to it by id or by its label selector.
    pub(crate) fn applies_to(&self, server: u64, labels: &Labels) -> bool {
        self.is_attached_to(server) || self.selects(labels)
    }

    pub(crate) fn has_address(&self, ip: &String) -> bool {
        self.attached.values().any(|one| one.ip == *ip || one.alias_ips.contains(ip))
    }

    /// The first free address in the network. The first one in the range is the gateway's.
    pub(crate) fn free_address(&self) -> Option<String> {
        let first: Ipv4Addr = self.ip_range.split('/').next()?.parse().ok()?;
        (2..250)
            .map(|host| Ipv4Addr::from_bits(first.to_bits() + host).to_string())
            .find(|ip| !self.has_address(ip))
    }

    /// Its id as a number; 0 if it is a text.
    pub(crate) fn number(&self) -> u64 {
        if let Id::Number(number) = self.id { number } else { 0 }
    }

    pub(crate) fn fingerprint(&self) -> String {
        format!("3b:16:bf:e4:8b:00:8b:b8:59:8c:a9:d3:f0:19:{:02x}:fa", self.number() % 256)
    }
}

/// A template with the values that its placeholders stand for.
fn filled_in(template: &Value, values: &Value) -> Value {
    match template {
        Value::String(text) => {
            let key = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
            key.map_or_else(|| template.clone(), |key| values[key].clone())
        }
        Value::Array(items) => items.iter().map(|item| filled_in(item, values)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            fields.map(|(key, field)| (key.clone(), filled_in(field, values))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Things(BTreeMap<Kind, BTreeMap<Id, Thing>>);

impl Things {
    pub(crate) fn of(&self, kind: Kind) -> impl Iterator<Item = &Thing> {
        self.0.get(&kind).into_iter().flat_map(BTreeMap::values)
    }

    pub(crate) fn of_mut(&mut self, kind: Kind) -> impl Iterator<Item = &mut Thing> {
        self.0.get_mut(&kind).into_iter().flat_map(BTreeMap::values_mut)
    }

    pub(crate) fn attached_to(&self, machine: u64, kind: Kind) -> impl Iterator<Item = &Thing> {
        self.of(kind).filter(move |thing| thing.is_attached_to(machine))
    }

    /// The firewalls that apply to a server with these labels, or are about to.
    pub(crate) fn firewalls_of(
        &self,
        server: u64,
        labels: &Labels,
    ) -> impl Iterator<Item = &Thing> {
        self.of(Kind::Firewall).filter(move |firewall| firewall.applies_to(server, labels))
    }

    pub(crate) fn get(&self, kind: Kind, id: impl Into<Id>) -> Option<&Thing> {
        self.0.get(&kind)?.get(&id.into())
    }

    pub(crate) fn get_mut(&mut self, kind: Kind, id: impl Into<Id>) -> Option<&mut Thing> {
        self.0.get_mut(&kind)?.get_mut(&id.into())
    }

    /// Adds a thing, unless its id is taken; returns whether it was added.
    pub(crate) fn add(&mut self, kind: Kind, thing: Thing) -> bool {
        let things = self.0.entry(kind).or_default();
        let is_free = !things.contains_key(&thing.id);
        if is_free {
            things.insert(thing.id.clone(), thing);
        }
        is_free
    }

    pub(crate) fn remove(&mut self, kind: Kind, id: impl Into<Id>) -> Option<Thing> {
        self.0.get_mut(&kind)?.remove(&id.into())
    }

    pub(crate) fn detach(&mut self, machine: u64, is_meant: impl Fn(Kind) -> bool) {
        let meant = self.0.iter_mut().filter(|(kind, _)| is_meant(**kind));
        for thing in meant.flat_map(|(_, things)| things.values_mut()) {
            thing.attached.remove(&machine);
            thing.pending.remove(&machine);
        }
    }

    /// A description of each thing that was attached to a machine by id, and that a machine which
    /// replaces it can have instead.
    pub(crate) fn described(&self, machine: u64) -> BTreeSet<String> {
        let all = self.0.iter().flat_map(|(kind, things)| things.values().map(|one| (*kind, one)));
        let attached = all.filter_map(|(kind, one)| Some((kind, one, one.attached.get(&machine)?)));
        let passed_on =
            attached.filter(|(kind, ..)| !matches!(kind, Kind::Alert | Kind::PrimaryIp));
        let description = |(kind, Thing { id, .. }, how): (Kind, &Thing, &Attachment)| {
            let word = kind.word().replace("_ipv6", "_ip").replace("_ip", " IP").replace('_', " ");
            if kind == Kind::Network {
                format!("{word} {id} {} {:?}", how.ip, how.alias_ips)
            } else if how.use_private_ip {
                format!("{word}, privately, {id}")
            } else {
                format!("{word} {id}")
            }
        };
        passed_on.map(description).collect()
    }

    /// Places the Droplets that no project names in the default one, if there is one.
    pub(crate) fn place_in_projects<'a>(&mut self, droplets: impl Iterator<Item = &'a u64>) {
        let projects = self.of(Kind::Project);
        let placed: BTreeSet<_> =
            projects.flat_map(|project| project.attached.keys().copied()).collect();
        if let Some(default) = self.of_mut(Kind::Project).find(|project| project.is_default) {
            for droplet in droplets.filter(|id| !placed.contains(id)) {
                default.attach(*droplet);
            }
        }
    }

    /// The project that new Droplets are placed in.
    pub(crate) fn default_project(&self) -> Option<&Thing> {
        self.of(Kind::Project).find(|project| project.is_default)
    }
}

/// An address from the range reserved for benchmarking (RFC 2544).
pub(crate) fn address_of(number: u64) -> String {
    let host = u32::try_from(number % (1 << 17)).unwrap_or_default();
    Ipv4Addr::from_bits(Ipv4Addr::new(198, 18, 0, 0).to_bits() + host).to_string()
}

/// A machine's public IPv4 address, or IPv6 network.
pub(crate) fn public_address(number: u64, is_ipv6: bool) -> String {
    if is_ipv6 { format!("2001:db8:{:x}::/64", number % 0x1_0000) } else { address_of(number) }
}
