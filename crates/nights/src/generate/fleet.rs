//! Random fleets with every kind of cloud resource.

use std::collections::BTreeMap;

use cloud_simulator::Act;
use domain::{
    AccountName, GroupName, ResourceKind, ResourceRef, ScheduleName,
    configuration::{Account, CloudAccount, Followed, Group, Mode, Provider, Rule, Settings},
    hibernation::AttachmentName,
};
use fastrand::Rng;
use jiff::Timestamp;

use crate::{elsewhere::SECOND_ACCOUNTS, night::Setup, plans};

/// The resources of a night and the accounts they belong to.
#[derive(Debug, Clone)]
pub(super) struct Fleet {
    pub(super) accounts: String,
    pub(super) members: Vec<Member>,
    /// Resources that are not opted in.
    pub(super) bystanders: Vec<String>,
    /// Whether lists of its resources have several pages.
    pub(super) is_paged: bool,
    /// Whether every newcomer is held.
    holds: bool,
    schedules: Vec<ScheduleName>,
    created: u64,
}

/// One resource.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) reference: ResourceRef,
    pub(super) toml: String,
}

/// Database plans that every engine offers for one node and for two.
const PLANS: [&str; 4] = ["db-s-1vcpu-2gb", "db-s-2vcpu-4gb", "db-s-4vcpu-8gb", "db-s-6vcpu-16gb"];

/// A VPC that Droplets may be in.
const VPC: &str = "5a4981aa-9653-4bd1-bef5-d6bff52042e4";

/// Droplet sizes with the disks, in GiB, that Droplets have on them: a disk may be that of a
/// smaller size.
const SIZES: [(&str, u64); 8] = [
    ("g-2vcpu-8gb", 25),
    ("c-4", 50),
    ("c-4", 25),
    ("s-2vcpu-4gb", 25),
    ("s-4vcpu-8gb", 80),
    ("s-8vcpu-16gb", 320),
    ("s-1vcpu-2gb", 50),
    ("s-1vcpu-512mb-10gb", 10),
];

/// Server types with the disks, in GiB, that servers have on them.
const TYPES: [(&str, u64); 8] = [
    ("ccx13", 80),
    ("ccx13", 40),
    ("ccx23", 160),
    ("ccx33", 80),
    ("cpx32", 40),
    ("cpx22", 80),
    ("cpx12", 40),
    ("cx22", 40),
];

/// Droplet sizes with the disks, in GiB, that come with them: these Droplets can be hibernated.
const HIBERNATABLE_SIZES: [(&str, u64); 3] =
    [("s-1vcpu-2gb", 50), ("s-2vcpu-4gb", 80), ("g-2vcpu-8gb", 25)];

/// Server types that are sold, with the disks, in GiB, that come with them: these servers can be
/// hibernated.
const HIBERNATABLE_TYPES: [(&str, u64); 4] =
    [("ccx13", 80), ("cpx22", 80), ("cpx12", 40), ("ccx23", 160)];

impl Fleet {
    pub(super) fn random<'a>(
        chance: &mut Rng,
        schedules: impl Iterator<Item = &'a ScheduleName>,
        is_large: bool,
    ) -> Self {
        let limit = |chance: &mut Rng, least| {
            let limit = chance.u32(least..5000);
            if chance.u8(..3) == 0 {
                format!("rate_limit = {{ per_hour = {limit} }}\n")
            } else {
                String::new()
            }
        };
        let is_paged = chance.u8(..3) == 0;
        let pages = |size: u8| is_paged.then(|| format!("page_size = {size}\n"));
        // A large account has many things on a page, as the clouds do.
        let sizes = if is_large { [20, 50] } else { [2, 5] };
        let [few, more] = sizes.map(|size| pages(size).unwrap_or_default());
        let accounts = format!(
            "[[accounts]]\nname = \"do-main\"\nprovider = \"digitalocean\"\n\
             token = \"secret-of-do\"\nread_token = \"{}\"\n{more}{}\n\
             [[accounts]]\nname = \"hz-eu\"\nprovider = \"hetzner\"\n\
             token = \"secret-of-hz\"\nread_token = \"{}\"\n{few}{}\n\
             [[hetzner.ssh_keys]]\nid = 990001\nname = \"team\"\n\
             public_key = \"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI team\"\n\
             [[digitalocean.ssh_keys]]\nid = 990002\nname = \"team\"\n\
             public_key = \"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI team\"\n\
             [[digitalocean.projects]]\nid = \"30000000-0000-4000-a000-000000000000\"\n\
             name = \"first\"\nis_default = true\n",
            SECOND_ACCOUNTS[0].token,
            limit(chance, 1500),
            SECOND_ACCOUNTS[1].token,
            limit(chance, 600),
        );
        let mut bystanders = Vec::new();
        for number in 0..chance.u64(0..5) * u64::from(is_paged) {
            for table in ["droplets", "servers"] {
                let id = 900_000 + number;
                bystanders.push(format!("[[{table}]]\nid = {id}\nname = \"bystander-{number}\"\n"));
            }
        }
        let mut fleet = Self {
            accounts,
            members: Vec::new(),
            bystanders,
            is_paged,
            holds: chance.u8(..8) == 0,
            schedules: schedules.cloned().collect(),
            created: 0,
        };
        let members = if is_large { 100 } else { chance.usize(2..=6) };
        for _ in 0..members {
            let member = fleet.member(chance);
            fleet.members.push(member);
        }
        fleet
    }

    /// Returns a resource to create later, as TOML.
    pub(super) fn newcomer(&mut self, chance: &mut Rng) -> String {
        self.member(chance).toml
    }

    pub(super) fn account(chance: &mut Rng) -> AccountName {
        parsed(if chance.bool() { "do-main" } else { "hz-eu" })
    }

    /// Returns the configuration of a second account over the project of another: its token may only
    /// read there.
    pub(super) fn second_account(chance: &mut Rng, of: &AccountName) -> (AccountName, Account) {
        let second = SECOND_ACCOUNTS.iter().find(|second| second.of == of.as_str());
        let second = second.expect("each account may have a second one");
        let provider =
            if of.as_str() == "hz-eu" { Provider::Hetzner } else { Provider::DigitalOcean };
        let mode = if chance.u8(..3) == 0 { Mode::Act } else { Mode::Observe };
        (parsed(second.name), account(mode, provider, second.variable, false))
    }

    pub(super) fn setup(&self, chance: &mut Rng, schedules: BTreeMap<ScheduleName, Rule>) -> Setup {
        let accepts = chance.u8(..3) > 0;
        let mut mode = || match chance.u8(..24) {
            0 => Mode::Observe,
            _ => Mode::Act,
        };
        let modes = [mode(), mode(), mode()];
        let mut schedules = schedules;
        for member in &self.members {
            if chance.u8(..10) == 0 {
                let place = chance.usize(..schedules.len());
                let entry = member.reference.clone().into();
                // What two schedules list is refused, and never applied.
                for rule in schedules.values_mut() {
                    rule.resources.remove(&entry);
                }
                if let Some(rule) = schedules.values_mut().nth(place) {
                    rule.resources.insert(entry);
                }
            }
        }
        let protect = (chance.u8(..3) == 0).then(|| "name:*prod*".parse().expect("a pattern"));
        Setup {
            settings: Settings {
                mode: modes[0],
                protect: protect.into_iter().collect(),
                max_stops: if chance.u8(..4) == 0 { 2 } else { 100 },
                max_new: match self.members.len() {
                    21.. => 1000,
                    _ if self.holds => 0,
                    _ => 25,
                },
                groups: if chance.u8(..3) == 0 { self.groups(chance) } else { BTreeMap::new() },
                ..Settings::default()
            },
            accounts: BTreeMap::from([
                (parsed("do-main"), account(modes[1], Provider::DigitalOcean, "env:DO", false)),
                (parsed("hz-eu"), account(modes[2], Provider::Hetzner, "env:HZ", accepts)),
            ]),
            schedules,
            renamed: BTreeMap::new(),
        }
    }

    /// Returns groups of kinds, of which each may follow those before it and one of their members.
    fn groups(&self, chance: &mut Rng) -> BTreeMap<GroupName, Group> {
        let kinds = ["database", "node-pool", "droplet", "server"];
        let mut groups = BTreeMap::<GroupName, Group>::new();
        for kind in kinds {
            if chance.u8(..4) == 0 {
                continue;
            }
            let earlier = groups.keys().filter(|_| chance.bool());
            let mut after: Vec<_> = earlier.cloned().map(Followed::Group).collect();
            let members = self.members.iter().map(|member| &member.reference);
            let before =
                members.filter(|one| groups.contains_key(&group_name(&one.kind().to_string())));
            after.extend(before.take(1).filter(|_| chance.bool()).cloned().map(Followed::Resource));
            let group = Group {
                resources: vec![format!("*/{kind}/*").parse().expect("a pattern")],
                after,
                wait: format!("{}m", chance.u8(3..9)).parse().expect("a time"),
                check: None,
            };
            groups.insert(group_name(kind), group);
        }
        groups
    }

    /// Returns a word that opts in or out, mostly in. `None` if there is no word.
    fn word(&self, chance: &mut Rng) -> Option<String> {
        match chance.u8(..16) {
            0 => Some("off".to_owned()),
            1 => None,
            2 => Some("unknown".to_owned()),
            _ => {
                let place = chance.usize(..self.schedules.len());
                Some(self.schedules[place].to_string())
            }
        }
    }

    pub(super) fn tags(&self, chance: &mut Rng, member: &Member) -> Vec<String> {
        let separator = member.separator();
        let word = self.word(chance);
        let mut tags: Vec<_> =
            word.map(|word| format!("offhours{separator}{word}")).into_iter().collect();
        tags.push(format!("team{separator}a"));
        tags.extend(small_plan(chance, member.reference.kind(), separator));
        tags
    }

    fn member(&mut self, chance: &mut Rng) -> Member {
        self.created += 1;
        let number = self.created;
        let stage = if chance.u8(..8) == 0 { "prod" } else { "staging" };
        let name = format!("{stage}-{number}");
        let word = self.word(chance);
        let tags = word.as_ref().map(|word| format!("\"offhours:{word}\", ")).unwrap_or_default();
        let tags = format!("tags = [{tags}\"team:a\"]");
        match chance.u8(..8) {
            0..=1 => {
                let small = small_plan(chance, ResourceKind::Droplet, ':');
                let small = small.map(|tag| format!("tags = [\"{tag}\", "));
                let tags = small.map_or(tags.clone(), |small| tags.replace("tags = [", &small));
                droplet(chance, number, &name, &tags)
            }
            2..=3 => database(chance, number, &name, &tags),
            4..=5 => pool(chance, number, &name, &tags),
            _ => server(chance, number, &name, word.as_deref()),
        }
    }
}

fn parsed(name: &str) -> AccountName {
    name.parse().expect("an account's name")
}

fn group_name(kind: &str) -> GroupName {
    kind.parse().expect("a group's name")
}

fn account(mode: Mode, provider: Provider, variable: &str, accept_new_prices: bool) -> Account {
    Account::Cloud(CloudAccount {
        provider,
        was: None,
        token: variable.parse().expect("a token's place"),
        read_token: None,
        datacenters: Vec::new(),
        accept_new_prices,
        ssh_key: Some("team".to_owned()),
        mode,
        url: None,
    })
}

/// Rarely returns a tag that names the plan on which a machine stops.
fn small_plan(chance: &mut Rng, kind: ResourceKind, separator: char) -> Option<String> {
    let plans = plans::of(kind);
    if plans.is_empty() || chance.u8(..8) > 0 {
        return None;
    }
    let plan = plans[chance.usize(..plans.len())].name;
    Some(format!("offhours-to{separator}{plan}"))
}

fn reference(text: &str) -> ResourceRef {
    text.parse().expect("a reference")
}

fn droplet(chance: &mut Rng, number: u64, name: &str, tags: &str) -> Member {
    let deaf = chance.u8(..4) == 0;
    let (size, disk) = if chance.bool() {
        HIBERNATABLE_SIZES[chance.usize(..HIBERNATABLE_SIZES.len())]
    } else {
        SIZES[chance.usize(..SIZES.len())]
    };
    let reserved = if chance.bool() {
        let ip = reserved_ip(number);
        format!("[[digitalocean.reserved_ips]]\nip = \"{ip}\"\ndroplet = {number}\n")
    } else {
        String::new()
    };
    Member {
        reference: reference(&format!("do-main/droplet/{number}")),
        toml: format!(
            "[[droplets]]\nid = {number}\nname = \"{name}\"\n{tags}\nignores_shutdown = {deaf}\n\
             size = \"{size}\"\ndisk = {disk}\nresize = \"{}s\"\n\
             power_action = \"{}s\"\nshutdown = \"{}s\"\n\
             snapshot = \"{}s\"\nsnapshot_lag = \"{}s\"\nsnapshot_failures = {}\n\
             snapshots_unlisted = {}\ncreation = \"{}s\"\ncreation_failures = {}\ndeletion = \"{}s\"\n{}{}{reserved}{}",
            chance.u16(20..400),
            chance.u8(3..40),
            chance.u8(3..90),
            seconds_or_never(chance, 20..900),
            chance.u16(0..900),
            [0, 0, 0, 1, 3][chance.usize(..5)],
            [0, 0, 0, 0, 0, 1][chance.usize(..6)],
            seconds_or_never(chance, 5..200),
            [0, 0, 0, 1, 2][chance.usize(..5)],
            chance.u8(1..90),
            copies(chance),
            droplet_extras(chance),
            attached_to_droplet(chance, number),
        ),
    }
}

/// Returns an SSH key under the name of the one that machines are recreated with, as TOML.
pub(super) fn another_key(at: Timestamp) -> String {
    let id = at.as_second();
    format!(
        "[[hetzner.ssh_keys]]\nid = {id}\nname = \"team\"\n\
         public_key = \"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI team-{id}\"\n"
    )
}

/// Returns the features that a Droplet has enabled, and its VPC if it has one, as TOML.
fn droplet_extras(chance: &mut Rng) -> String {
    let extras = [("monitoring", 4), ("ipv6", 12), ("backups", 12)];
    let has = extras.into_iter().filter(|(_, one_in)| chance.u8(..*one_in) == 0);
    let has: Vec<_> = has.map(|(extra, _)| format!("\"{extra}\"")).collect();
    let vpc = match chance.u8(..4) {
        0 => format!("vpc = \"{VPC}\"\n"),
        _ => String::new(),
    };
    format!("has = [{}]\n{vpc}", has.join(", "))
}

/// Returns the reserved address that a Droplet may have.
fn reserved_ip(droplet: u64) -> String {
    format!("203.0.113.{droplet}")
}

/// Returns the id of what is attached to a Droplet: one of each kind.
fn attached_id(kind: u64, droplet: u64) -> String {
    format!("{kind}0000000-0000-4000-a000-{droplet:012}")
}

/// Returns the resources attached to a Droplet by its number, none of them shared, as TOML. Where a
/// firewall applies by number, another applies by a tag, as it must before the Droplet may be
/// hibernated.
fn attached_to_droplet(chance: &mut Rng, number: u64) -> String {
    let id = |kind| attached_id(kind, number);
    let attachments = [
        format!(
            "[[digitalocean.volumes]]\nid = \"{}\"\nname = \"data-{number}\"\n\
             droplet = {number}\n",
            id(3)
        ),
        format!(
            "[[digitalocean.firewalls]]\nid = \"{}\"\nname = \"web-{number}\"\n\
             droplets = [{number}]\n\
             [[digitalocean.firewalls]]\nid = \"{}\"\nname = \"team-{number}\"\n\
             tags = [\"team:a\"]\n",
            id(4),
            id(5)
        ),
        format!(
            "[[digitalocean.load_balancers]]\nid = \"{}\"\nname = \"front-{number}\"\n\
             droplets = [{number}]\n",
            id(6)
        ),
        format!(
            "[[digitalocean.projects]]\nid = \"{}\"\nname = \"project-{number}\"\n\
             droplets = [{number}]\n",
            id(7)
        ),
        format!(
            "[[digitalocean.reserved_ips]]\nip = \"2001:db8:ffff::{number:x}\"\n\
             droplet = {number}\n"
        ),
    ];
    attachments.into_iter().filter(|_| chance.u8(..4) == 0).collect()
}

fn database(chance: &mut Rng, number: u64, name: &str, tags: &str) -> Member {
    let id = format!("00000000-0000-4000-a000-{number:012}");
    let engine = ["pg", "mysql"][chance.usize(..2)];
    let nodes = chance.u8(1..=2);
    let plan = PLANS[chance.usize(usize::from(nodes > 1)..PLANS.len())];
    let refuses = chance.u8(..12) == 0;
    let lag = if chance.u8(..3) == 0 {
        format!("resizing_shows_after = \"{}s\"\n", chance.u8(1..90))
    } else {
        String::new()
    };
    Member {
        reference: reference(&format!("do-main/database/{id}")),
        toml: format!(
            "[[databases]]\nid = \"{id}\"\nname = \"{name}\"\n{tags}\nengine = \"{engine}\"\n\
             plan = \"{plan}\"\nnodes = {nodes}\nrefuses_shrink = {refuses}\nresize = \"{}s\"\n{lag}",
            chance.u16(120..900),
        ),
    }
}

fn pool(chance: &mut Rng, number: u64, name: &str, tags: &str) -> Member {
    let cluster = format!("10000000-0000-4000-a000-{number:012}");
    let id = format!("20000000-0000-4000-a000-{number:012}");
    let count = chance.u8(1..=4);
    let scaled = chance.u8(..3) == 0;
    let bounds = if scaled {
        format!("autoscale = {{ min = 1, max = {} }}\n", count + 2)
    } else {
        String::new()
    };
    let refuses = chance.u8(..12) == 0;
    Member {
        reference: reference(&format!("do-main/node-pool/{cluster}/{id}")),
        toml: format!(
            "[[clusters]]\nid = \"{cluster}\"\nname = \"cluster-{number}\"\n[[clusters.pools]]\n\
             id = \"{id}\"\nname = \"{name}\"\n{tags}\ncount = {count}\n{bounds}\
             labels = {{ tier = \"a\" }}\nrefuses_zero = {refuses}\nscale_up = \"{}s\"\n\
             scale_down = \"{}s\"\n",
            chance.u8(30..240),
            chance.u8(30..120),
        ),
    }
}

fn server(chance: &mut Rng, number: u64, name: &str, word: Option<&str>) -> Member {
    let deaf = chance.u8(..4) == 0;
    let label = word.map(|word| format!("offhours = \"{word}\", ")).unwrap_or_default();
    let small = match chance.u8(..8) {
        0 => "offhours-to = \"cpx22\", ",
        _ => "",
    };
    let (server_type, disk) = if chance.bool() {
        HIBERNATABLE_TYPES[chance.usize(..HIBERNATABLE_TYPES.len())]
    } else {
        TYPES[chance.usize(..TYPES.len())]
    };
    let created = ["2026-04-01", "2026-06-14", "2026-07-01", "2026-07-01"][chance.usize(..4)];
    let stays_off = chance.u8(..8) == 0;
    let addresses = ["[]", "[\"ipv4\"]", "[\"ipv4\", \"ipv6\"]"][chance.usize(..3)];
    Member {
        reference: reference(&format!("hz-eu/server/{number}")),
        toml: format!(
            "[[servers]]\nid = {number}\nname = \"{name}\"\nlabels = {{ {label}{small}team = \"a\" }}\n\
             server_type = \"{server_type}\"\ndisk = {disk}\ncreated = \"{created}T08:00:00Z\"\n\
             stays_off_after_change = {stays_off}\nchange_type = \"{}s\"\n\
             snapshot = \"{}s\"\ncreation = \"{}s\"\ndeletion = \"{}s\"\nrelease = \"{}s\"\n\
             snapshot_failures = {}\ncreation_failures = {}\naddresses = {addresses}\n\
             ignores_shutdown = {deaf}\nshutdown = \"{}s\"\npoweroff = \"{}s\"\npoweron = \"{}s\"\n\
             {}{}",
            chance.u16(20..400),
            seconds_or_never(chance, 20..900),
            seconds_or_never(chance, 5..200),
            chance.u8(1..90),
            chance.u8(1..90),
            [0, 0, 0, 1, 3][chance.usize(..5)],
            [0, 0, 0, 1, 2][chance.usize(..5)],
            chance.u8(3..90),
            chance.u8(1..20),
            chance.u8(3..40),
            copies(chance),
            attached(chance, number),
        ),
    }
}

/// Returns how many seconds something takes: rarely more than any night has.
fn seconds_or_never(chance: &mut Rng, usual: std::ops::Range<u32>) -> u32 {
    if chance.u8(..120) == 0 { 10_000_000 } else { chance.u32(usual) }
}

/// Returns, as TOML, whether machines created from a machine's snapshots fail to boot, from the
/// first one on. That is rare.
fn copies(chance: &mut Rng) -> String {
    let breaks = chance.u8(..16) == 0;
    format!("copies_break = {breaks}\n")
}

/// Returns the resources attached to a server, none of them shared, as TOML.
fn attached(chance: &mut Rng, number: u64) -> String {
    let id = 900_000 + number;
    let attachments = [
        format!(
            "[[hetzner.networks]]\nid = {id}\nname = \"net-{number}\"\n\
             members = [{{ server = {number}, ip = \"10.0.0.{}\" }}]\n",
            chance.u8(2..250)
        ),
        format!("[[hetzner.volumes]]\nid = {id}\nname = \"data-{number}\"\nserver = {number}\n"),
        format!(
            "[[hetzner.firewalls]]\nid = {id}\nname = \"web-{number}\"\n\
             servers = [{number}]\napplies = \"{}s\"\n",
            chance.u8(1..120)
        ),
        format!(
            "[[hetzner.placement_groups]]\nid = {id}\nname = \"apart-{number}\"\n\
             servers = [{number}]\n"
        ),
        format!(
            "[[hetzner.floating_ips]]\nid = {id}\nname = \"moves-{number}\"\n\
             ip = \"203.0.113.{}\"\nserver = {number}\n",
            number % 250
        ),
        format!(
            "[[hetzner.load_balancers]]\nid = {id}\nname = \"front-{number}\"\n\
             targets = [{{ server = {number}, use_private_ip = false }}]\n"
        ),
    ];
    attachments.into_iter().filter(|_| chance.u8(..4) == 0).collect()
}

impl Member {
    fn separator(&self) -> char {
        match self.reference.kind() {
            ResourceKind::Server => '=',
            ResourceKind::Droplet
            | ResourceKind::Database
            | ResourceKind::NodePool
            | ResourceKind::Machine => ':',
        }
    }

    /// Returns the paths and the names of what is attached to a machine at first and can be deleted.
    pub(super) fn attached(&self) -> Vec<(String, AttachmentName)> {
        let number = self.reference.id.provider_id().parse::<u64>().unwrap_or_default();
        let of_server = || (900_000 + number).to_string();
        let of_droplet = |kind| attached_id(kind, number);
        let all = match self.reference.kind() {
            ResourceKind::Server => vec![
                ("networks", "network", of_server()),
                ("volumes", "volume", of_server()),
                ("firewalls", "firewall", of_server()),
                ("floating_ips", "floating-ip", of_server()),
            ],
            ResourceKind::Droplet => vec![
                ("firewalls", "firewall", of_droplet(4)),
                ("load_balancers", "load-balancer", of_droplet(6)),
                ("volumes", "volume", of_droplet(3)),
                ("reserved_ips", "floating-ip", reserved_ip(number)),
                ("vpcs", "vpc", VPC.to_owned()),
            ],
            ResourceKind::Database | ResourceKind::NodePool | ResourceKind::Machine => Vec::new(),
        };
        let is_there = |listed_at: &str, id: &str| {
            let by_number = format!("hetzner.{listed_at}]]\nid = {id}\n");
            self.toml.contains(&by_number) || self.toml.contains(&format!("\"{id}\""))
        };
        let there = all.into_iter().filter(|(listed_at, _, id)| is_there(listed_at, id));
        let named = there.map(|(listed_at, kind, id)| {
            let name = format!("{kind}/{id}").parse().expect("an attachment's name");
            (format!("{listed_at}/{id}"), name)
        });
        named.collect()
    }

    /// Returns tags of which one names a schedule.
    pub(super) fn tags_with(&self, word: &str) -> Vec<String> {
        let separator = self.separator();
        vec![format!("offhours{separator}{word}"), format!("team{separator}a")]
    }

    /// Returns the provider's status for a busy resource and for an idle one. `None` for machines.
    pub(super) fn statuses(&self) -> Option<(&'static str, &'static str)> {
        match self.reference.kind() {
            ResourceKind::Database => Some(("migrating", "online")),
            ResourceKind::NodePool => Some(("upgrading", "running")),
            ResourceKind::Droplet | ResourceKind::Server | ResourceKind::Machine => None,
        }
    }

    /// Returns what a person does with it in the console.
    pub(super) fn act(&self, chance: &mut Rng) -> Act {
        match self.reference.kind() {
            ResourceKind::Database => {
                let nodes = chance.u32(1..=2);
                let least = usize::from(nodes > 1);
                let place = chance.usize(least..PLANS.len());
                // The storage that comes with the plan. A person may choose twice as much.
                let storage_gib = [30, 60, 140, 290][place];
                Act::Resize {
                    plan: PLANS[place].to_owned(),
                    nodes,
                    storage_mib: (chance.u8(..4) == 0).then_some(storage_gib * 2 * 1024),
                }
            }
            ResourceKind::NodePool => Act::Scale {
                count: chance.u32(..5),
                autoscale: (chance.u8(..3) == 0).then(|| (1, chance.u32(1..=6))),
            },
            ResourceKind::Droplet | ResourceKind::Server | ResourceKind::Machine => {
                match chance.u8(..12) {
                    // The guest powers itself off, which its cloud does not log.
                    10..=11 => Act::SetStatus { status: "off".to_owned() },
                    8 => Act::BreakCopies { breaks: chance.u8(..4) > 0 },
                    9 => Act::Snapshot { name: format!("mine-{}", chance.u8(..9)) },
                    0..=1 => Act::PowerOn,
                    2 => Act::PowerOff,
                    3 => Act::Shutdown,
                    4 => Act::Reboot,
                    5..=6 => self.another_plan(chance),
                    _ => Act::TakeRoom { refusals: chance.u32(..4), failures: chance.u32(..3) },
                }
            }
        }
    }

    /// Returns a change of plan for a machine that is off, rarely with the disk that comes with the
    /// plan.
    pub(super) fn another_plan(&self, chance: &mut Rng) -> Act {
        let plans = plans::of(self.reference.kind());
        Act::ChangePlan {
            plan: plans[chance.usize(..plans.len())].name.to_owned(),
            disk: chance.u8(..10) == 0,
        }
    }

    /// Reports whether it is a machine whose plan can be changed.
    pub(super) fn is_machine(&self) -> bool {
        !plans::of(self.reference.kind()).is_empty()
    }
}
