//! A Droplet's surroundings. The Droplet itself shows few of them: whatever else is attached to it
//! or names it is looked up in the lists of such resources (DOSPEC).

use std::{collections::BTreeSet, net::IpAddr};

use domain::{
    DropletId, ResourceId,
    hibernation::{Address, PrivateAddress, Room, SshKey, Surroundings},
    money::{Currency, Money},
};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};

use super::{
    Api,
    schema::{self, DropletWithAttachments, Numbered, Uuid, ips},
};
use crate::{
    error::ProviderError,
    http::{Request, null_is_empty},
    pages::{self, AT_ONCE, Reading},
};

/// The monthly price of one GB of a snapshot: 0.06 USD (DOSNAPSHOTS). No response contains it.
#[must_use]
#[expect(clippy::missing_panics_doc, reason = "the text is an amount")]
pub fn snapshot_price() -> Money {
    Money::parse("0.06", Currency::Usd).expect("an amount")
}

#[derive(Deserialize)]
struct ReservedIp {
    ip: String,
    droplet: Option<Numbered>,
}

#[derive(Deserialize)]
pub(super) struct Firewall {
    pub(super) id: Uuid,
    name: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) droplet_ids: Vec<u64>,
    #[serde(default, deserialize_with = "null_is_empty")]
    tags: BTreeSet<String>,
    #[serde(default, deserialize_with = "null_is_empty")]
    inbound_rules: Vec<Inbound>,
    #[serde(default, deserialize_with = "null_is_empty")]
    outbound_rules: Vec<Outbound>,
}

#[derive(Deserialize)]
struct Inbound {
    sources: RuleEndpoints,
}

#[derive(Deserialize)]
struct Outbound {
    destinations: RuleEndpoints,
}

/// The sources or destinations that a rule names.
#[derive(Deserialize)]
struct RuleEndpoints {
    #[serde(default, deserialize_with = "null_is_empty")]
    addresses: Vec<String>,
    #[serde(default, deserialize_with = "null_is_empty")]
    droplet_ids: Vec<u64>,
}

#[derive(Deserialize)]
pub(super) struct LoadBalancer {
    pub(super) id: Uuid,
    name: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    droplet_ids: Vec<u64>,
    tag: Option<String>,
    firewall: Option<BalancerFirewall>,
}

/// What a load balancer lets in and keeps out: `ip:ADDRESS` and `cidr:NETWORK`.
#[derive(Deserialize)]
struct BalancerFirewall {
    #[serde(default, deserialize_with = "null_is_empty")]
    allow: Vec<String>,
    #[serde(default, deserialize_with = "null_is_empty")]
    deny: Vec<String>,
}

pub(super) enum InProject {
    Of(schema::Project),
    /// There are several projects, and none of them lists the Droplet.
    Unknown,
    None,
}

impl LoadBalancer {
    /// Reports whether it names a Droplet by its number. With a tag, it lists the Droplets that
    /// have the tag.
    pub(super) fn names(&self, droplet: u64) -> bool {
        let by_tag = self.tag.as_ref().is_some_and(|tag| !tag.is_empty());
        !by_tag && self.droplet_ids.contains(&droplet)
    }

    /// Reports whether its own firewall names one of these addresses.
    fn filters(&self, ips: &[IpAddr]) -> bool {
        let rules = self.firewall.iter();
        let mut rules = rules.flat_map(|firewall| firewall.allow.iter().chain(&firewall.deny));
        rules.any(|rule| {
            let address = rule.split_once(':').map_or("", |(_, address)| address);
            is_one_of(address, ips)
        })
    }
}

/// Reports whether a text is one of these addresses, alone or as a network of only one. A wider
/// network names no machine.
fn is_one_of(text: &str, ips: &[IpAddr]) -> bool {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let Ok(address) = address.trim().parse::<IpAddr>() else {
        return false;
    };
    let whole = if address.is_ipv4() { "32" } else { "128" };
    length.is_none_or(|length| length == whole) && ips.contains(&address)
}

#[derive(Deserialize)]
struct Policy {
    description: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    entities: Vec<String>,
}

#[derive(Deserialize)]
struct Key {
    name: String,
    fingerprint: String,
}

#[derive(Deserialize)]
struct DatabaseName {
    id: Uuid,
    name: String,
}

#[derive(Deserialize)]
struct Databases {
    #[serde(default, deserialize_with = "null_is_empty")]
    databases: Vec<DatabaseName>,
}

#[derive(Deserialize)]
struct TrustedSources {
    #[serde(default, deserialize_with = "null_is_empty")]
    rules: Vec<TrustedSource>,
}

#[derive(Deserialize)]
struct TrustedSource {
    #[serde(rename = "type")]
    kind: String,
    value: String,
}

#[derive(Deserialize)]
struct AccountResponse {
    account: AccountStatus,
}

#[derive(Deserialize)]
struct AccountStatus {
    status: String,
    #[serde(default)]
    status_message: String,
    /// Absent without the scope `droplet:read`.
    droplet_limit: Option<u64>,
}

impl RuleEndpoints {
    /// Reports whether a rule names a Droplet by its number, or by one of its addresses.
    fn name(&self, id: u64, ips: &[IpAddr]) -> bool {
        let is_one = |address: &String| is_one_of(address, ips);
        self.droplet_ids.contains(&id) || self.addresses.iter().any(is_one)
    }
}

impl DropletWithAttachments {
    /// Returns all of its own addresses, public and private.
    fn ips(&self) -> Vec<IpAddr> {
        let networks = self.networks.v4.iter().chain(&self.networks.v6);
        let ips = networks.map(|network| network.ip_address.parse());
        ips.filter_map(Result::ok).collect()
    }

    /// Returns its own public addresses in the families in which it has a reserved one.
    fn outgoing(&self, reserved: &[String], reserved_v6: &[String]) -> Vec<String> {
        let families = [(reserved, &self.networks.v4), (reserved_v6, &self.networks.v6)];
        let behind = families.into_iter().filter(|(reserved, _)| !reserved.is_empty());
        behind.flat_map(|(_, own)| ips(own, "public")).map(str::to_owned).collect()
    }

    /// Returns the public addresses: in each family the reserved ones, or else the Droplet's own,
    /// which it always loses.
    fn addresses(&self, reserved: &[String], reserved_v6: &[String]) -> Vec<Address> {
        let families = [(reserved, &self.networks.v4), (reserved_v6, &self.networks.v6)];
        let of_family = |(reserved, own): (&[String], &Vec<schema::Network>)| {
            let stays = !reserved.is_empty();
            let addresses: Vec<_> = if stays {
                reserved.to_vec()
            } else {
                ips(own, "public").map(str::to_owned).collect()
            };
            addresses.into_iter().map(move |ip| Address { ip, stays, blocked: false })
        };
        families.into_iter().flat_map(of_family).collect()
    }
}

impl Api {
    pub(super) async fn ssh_keys(&self) -> Result<Vec<SshKey>, ProviderError> {
        let keys: Vec<Key> = self.things("/v2/account/keys").await?;
        let keys = keys.into_iter().map(|key| SshKey { name: key.name, sent_as: key.fingerprint });
        Ok(keys.collect())
    }

    pub(super) async fn read_surroundings(
        &self,
        id: &ResourceId,
    ) -> Result<Surroundings, ProviderError> {
        let ResourceId::Droplet(DropletId(id)) = id else {
            return Err(ProviderError::foreign(id));
        };
        let request = Request::get(format!("/v2/droplets/{id}"));
        let whole: DropletWithAttachments = self.one(&request).await?;
        let droplet = &whole.droplet;
        request.about(id, &droplet.id)?;
        let reserved = self.reserved("/v2/reserved_ips", *id).await?;
        let reserved_v6 = self.reserved("/v2/reserved_ipv6", *id).await?;
        let addresses = whole.addresses(&reserved, &reserved_v6);
        let unreadable =
            [(droplet.tags.is_none(), "its tags"), (whole.vpc_uuid.is_none(), "its VPC")];
        let unreadable = unreadable.into_iter().filter(|(is_so, _)| *is_so);
        let mut around = Surroundings {
            private: ips(&whole.networks.v4, "private")
                .map(|ip| PrivateAddress { ip: ip.to_owned(), stays: false })
                .collect(),
            attached: whole.volume_ids.iter().map(|volume| format!("volume {volume}")).collect(),
            backups: whole.features.contains("backups"),
            custom_image: whole
                .image
                .as_ref()
                .is_some_and(|image| image.kind.as_deref() == Some("custom")),
            unreadable: unreadable.map(|(_, what)| what).collect(),
            outgoing: whole.outgoing(&reserved, &reserved_v6),
            addresses,
            ..Surroundings::default()
        };
        self.firewalls(&whole, &mut around).await?;
        let balancers: Vec<LoadBalancer> = self.things("/v2/load_balancers").await?;
        let own = balancers.iter().filter(|one| one.names(*id));
        around.attached.extend(own.map(|one| format!("load balancer {}", one.name)));
        let ips = whole.ips();
        let filtering = balancers.iter().filter(|one| one.filters(&ips));
        around
            .named_by
            .extend(filtering.map(|one| format!("the firewall of load balancer {}", one.name)));
        let databases = self.naming_databases(*id, &ips).await?;
        around.named_by.extend(databases);
        let policies: Vec<Policy> = self.things("/v2/monitoring/alerts").await?;
        let watching = policies.iter().filter(|policy| policy.entities.contains(&id.to_string()));
        around
            .named_by
            .extend(watching.map(|policy| format!("alert policy {}", policy.description)));
        around.ssh_keys = self.ssh_keys().await?;
        match self.project_of(*id).await? {
            InProject::Of(project) => around.attached.push(format!("project {}", project.name)),
            InProject::Unknown => around.unreadable.push("its project"),
            InProject::None => {}
        }
        let AccountResponse { account } = self.0.read_shared(&Request::get("/v2/account")).await?;
        if account.status != "active" {
            let words = format!("{} {}", account.status, account.status_message);
            around.account_problem = Some(words.trim().to_owned());
        }
        if let Some(most) = account.droplet_limit {
            let present = self.count("/v2/droplets").await?;
            around.room = Some(Room { most, present });
        }
        Ok(around)
    }

    /// Returns how many entries a list has, with one request.
    async fn count(&self, path: &str) -> Result<u64, ProviderError> {
        let request = Request::get(format!("{path}?per_page=1"));
        let page: schema::Page<IgnoredAny> = self.0.read_shared(&request).await?;
        let total = page.meta.map(|meta| meta.total);
        total.ok_or_else(|| request.not_understood("a list without its total"))
    }

    /// Finds the project that a Droplet is in, which only the projects' own lists show. If there is
    /// only one project, it is that one.
    pub(super) async fn project_of(&self, droplet: u64) -> Result<InProject, ProviderError> {
        let mut projects: Vec<schema::Project> = self.things("/v2/projects").await?;
        if projects.len() <= 1 {
            return Ok(projects.pop().map_or(InProject::None, InProject::Of));
        }
        let urn = format!("do:droplet:{droplet}");
        for project in projects {
            let path = format!("/v2/projects/{}/resources", project.id.0);
            let has: Vec<schema::Resource> = self.things(&path).await?;
            if has.iter().any(|one| one.urn == urn) {
                return Ok(InProject::Of(project));
            }
        }
        Ok(InProject::Unknown)
    }

    pub(super) async fn things<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Vec<T>, ProviderError> {
        let things = self.all::<T>(path, Reading::UNTIMED).await?;
        Ok(things.items.into_iter().map(|(_, thing)| thing).collect())
    }

    /// Returns the addresses of a list that are assigned to a Droplet.
    pub(super) async fn reserved(&self, path: &str, id: u64) -> Result<Vec<String>, ProviderError> {
        let ips: Vec<ReservedIp> = self.things(path).await?;
        let own = |ip: &ReservedIp| ip.droplet.as_ref().is_some_and(|own| own.id == id);
        let ips = ips.into_iter().filter(own);
        Ok(ips.map(|ip| ip.ip).collect())
    }

    async fn firewalls(
        &self,
        whole: &DropletWithAttachments,
        around: &mut Surroundings,
    ) -> Result<(), ProviderError> {
        let firewalls: Vec<Firewall> = self.things("/v2/firewalls").await?;
        let (droplet, ips) = (&whole.droplet, whole.ips());
        let none = BTreeSet::new();
        let tags = droplet.tags.as_ref().unwrap_or(&none);
        let (mut by_number, mut by_tag) = (false, false);
        for firewall in firewalls {
            if !firewall.tags.is_disjoint(tags) {
                by_tag = true;
            }
            if firewall.droplet_ids.contains(&droplet.id) {
                by_number = true;
                around.attached.push(format!("firewall {}", firewall.name));
            }
            let sources = firewall.inbound_rules.iter().map(|rule| &rule.sources);
            let destinations = firewall.outbound_rules.iter();
            let destinations = destinations.map(|rule| &rule.destinations);
            if sources.chain(destinations).any(|others| others.name(droplet.id, &ips)) {
                let name = &firewall.name;
                around.named_by.push(format!("a rule of firewall {name}"));
            }
        }
        around.open_at_first = by_number && !by_tag;
        Ok(())
    }

    /// Returns the databases that let a Droplet in by its number or by one of its addresses. A
    /// database that is deleted meanwhile is skipped.
    async fn naming_databases(
        &self,
        id: u64,
        ips: &[IpAddr],
    ) -> Result<Vec<String>, ProviderError> {
        let Databases { databases } = self.0.read_shared(&Request::get("/v2/databases")).await?;
        let naming = async |database: DatabaseName| {
            let path = format!("/v2/databases/{}/firewall", database.id.0);
            let sources = match self.0.read_shared(&Request::get(path)).await {
                Ok(TrustedSources { rules }) => rules,
                Err(ProviderError::NotFound(_)) => Vec::new(),
                Err(error) => return Err(error),
            };
            let names = |rule: &TrustedSource| match rule.kind.as_str() {
                "droplet" => rule.value == id.to_string(),
                "ip_addr" => is_one_of(&rule.value, ips),
                _ => false,
            };
            let names = sources.iter().any(names);
            Ok(names.then(|| format!("database {}", database.name)).into_iter().collect())
        };
        let named = pages::each(Reading::UNTIMED, AT_ONCE, databases, naming).await?;
        Ok(named.items.into_iter().map(|(_, name)| name).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_recognized_in_every_spelling_and_in_no_wider_network() {
        let ips = ["203.0.113.5", "10.110.0.3", "2001:db8::5"].map(|ip| ip.parse().unwrap());
        for text in [
            "203.0.113.5",
            "203.0.113.5/32",
            "10.110.0.3/32",
            "2001:db8::5",
            "2001:DB8:0:0:0:0:0:5",
            "2001:db8::5/128",
        ] {
            assert!(is_one_of(text, &ips), "{text}");
        }
        for text in ["203.0.113.6", "203.0.113.5/31", "10.0.0.0/8", "2001:db8::5/32", "", "web"] {
            assert!(!is_one_of(text, &ips), "{text}");
        }
    }
}
