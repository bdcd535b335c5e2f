//! What is around a Droplet. Little of it is on the Droplet itself: what has it attached or names it
//! is looked for in the lists of what could (DOSPEC).

use std::collections::BTreeSet;

use domain::{
    DropletId, ResourceId,
    hibernation::{Address, PrivateAddress, Surroundings},
    money::{Currency, Money},
};
use serde::{Deserialize, de::DeserializeOwned};

use super::{Api, schema::Uuid};
use crate::{
    error::ProviderError,
    http::{Request, null_is_empty},
    pages::{self, AT_ONCE, Reading},
};

/// What a GB of a snapshot costs in a month: 0.06 USD (DOSNAPSHOTS). No answer has it.
pub(crate) fn snapshot_price() -> Money {
    Money::parse("0.06", Currency::Usd).expect("an amount")
}

#[derive(Deserialize)]
struct FoundDroplet {
    droplet: Droplet,
}

#[derive(Deserialize)]
struct Droplet {
    id: u64,
    /// Absent without the scope `tag:read`.
    tags: Option<BTreeSet<String>>,
    #[serde(default, deserialize_with = "null_is_empty")]
    features: Vec<String>,
    #[serde(default, deserialize_with = "null_is_empty")]
    volume_ids: Vec<String>,
    image: Option<Image>,
    networks: Networks,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Networks {
    #[serde(default, deserialize_with = "null_is_empty")]
    v4: Vec<Network>,
    #[serde(default, deserialize_with = "null_is_empty")]
    v6: Vec<Network>,
}

#[derive(Deserialize)]
struct Network {
    ip_address: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct ReservedIp {
    ip: String,
    droplet: Option<Numbered>,
}

#[derive(Deserialize)]
struct Numbered {
    id: u64,
}

#[derive(Deserialize)]
struct Firewall {
    name: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    droplet_ids: Vec<u64>,
    #[serde(default, deserialize_with = "null_is_empty")]
    tags: BTreeSet<String>,
    #[serde(default, deserialize_with = "null_is_empty")]
    inbound_rules: Vec<Inbound>,
    #[serde(default, deserialize_with = "null_is_empty")]
    outbound_rules: Vec<Outbound>,
}

#[derive(Deserialize)]
struct Inbound {
    sources: Others,
}

#[derive(Deserialize)]
struct Outbound {
    destinations: Others,
}

/// Whom a rule names.
#[derive(Deserialize)]
struct Others {
    #[serde(default, deserialize_with = "null_is_empty")]
    addresses: Vec<String>,
    #[serde(default, deserialize_with = "null_is_empty")]
    droplet_ids: Vec<u64>,
}

#[derive(Deserialize)]
struct LoadBalancer {
    name: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    droplet_ids: Vec<u64>,
    tag: Option<String>,
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
struct FoundAccount {
    account: AccountStatus,
}

#[derive(Deserialize)]
struct AccountStatus {
    status: String,
    #[serde(default)]
    status_message: String,
}

impl Others {
    /// Whether a rule names a Droplet by its number, or by one of its addresses alone.
    fn name(&self, id: u64, ips: &[&str]) -> bool {
        let is_one = |address: &String| {
            let alone = address.strip_suffix("/32").unwrap_or(address);
            ips.contains(&alone)
        };
        self.droplet_ids.contains(&id) || self.addresses.iter().any(is_one)
    }
}

impl Droplet {
    fn ips<'a>(networks: &'a [Network], kind: &'a str) -> impl Iterator<Item = &'a str> {
        let of_kind = networks.iter().filter(move |network| network.kind == kind);
        of_kind.map(|network| network.ip_address.as_str())
    }

    /// The public addresses: a reserved one stands before the Droplet's own, which it always loses.
    fn addresses(&self, reserved: &[String], reserved_v6: &[String]) -> Vec<Address> {
        let families = [
            (reserved, &self.networks.v4),
            (reserved_v6, &self.networks.v6),
        ];
        let of_family = |(reserved, own): (&[String], &Vec<Network>)| {
            let stays = !reserved.is_empty();
            let ips: Vec<_> = if stays {
                reserved.to_vec()
            } else {
                Self::ips(own, "public").map(str::to_owned).collect()
            };
            ips.into_iter().map(move |ip| Address {
                ip,
                stays,
                blocked: false,
            })
        };
        families.into_iter().flat_map(of_family).collect()
    }
}

impl Api {
    pub(crate) async fn surroundings(
        &self,
        id: &ResourceId,
    ) -> Result<Surroundings, ProviderError> {
        let ResourceId::Droplet(DropletId(id)) = id else {
            return Err(ProviderError::foreign(id));
        };
        let request = Request::get(format!("/v2/droplets/{id}"));
        let FoundDroplet { droplet } = self.0.read(&request).await?;
        request.about(id, &droplet.id)?;
        let reserved = self.reserved("/v2/reserved_ips", *id).await?;
        let reserved_v6 = self.reserved("/v2/reserved_ipv6", *id).await?;
        let addresses = droplet.addresses(&reserved, &reserved_v6);
        let mut around = Surroundings {
            private: Droplet::ips(&droplet.networks.v4, "private")
                .map(|ip| PrivateAddress {
                    ip: ip.to_owned(),
                    stays: false,
                })
                .collect(),
            attached: droplet
                .volume_ids
                .iter()
                .map(|volume| format!("volume {volume}"))
                .collect(),
            backups: droplet.features.iter().any(|feature| feature == "backups"),
            custom_image: droplet
                .image
                .as_ref()
                .is_some_and(|image| image.kind.as_deref() == Some("custom")),
            unreadable: droplet
                .tags
                .is_none()
                .then_some("its tags")
                .into_iter()
                .collect(),
            addresses,
            ..Surroundings::default()
        };
        self.firewalls(&droplet, &mut around).await?;
        let balancers: Vec<LoadBalancer> = self.things("/v2/load_balancers").await?;
        let by_number = |one: &&LoadBalancer| one.tag.is_none() && one.droplet_ids.contains(id);
        let balancers = balancers.iter().filter(by_number);
        around
            .attached
            .extend(balancers.map(|one| format!("load balancer {}", one.name)));
        around.named_by.extend(self.naming_databases(*id).await?);
        let policies: Vec<Policy> = self.things("/v2/monitoring/alerts").await?;
        let watching = policies
            .iter()
            .filter(|policy| policy.entities.contains(&id.to_string()));
        around
            .named_by
            .extend(watching.map(|policy| format!("alert policy {}", policy.description)));
        let keys: Vec<Key> = self.things("/v2/account/keys").await?;
        around.ssh_keys = keys.into_iter().map(|key| key.name).collect();
        let FoundAccount { account } = self.0.read(&Request::get("/v2/account")).await?;
        if account.status != "active" {
            let words = format!("{} {}", account.status, account.status_message);
            around.account_problem = Some(words.trim().to_owned());
        }
        Ok(around)
    }

    async fn things<T: DeserializeOwned>(&self, path: &str) -> Result<Vec<T>, ProviderError> {
        let things = self.all::<T>(path, Reading::UNTIMED).await?;
        Ok(things.items.into_iter().map(|(_, thing)| thing).collect())
    }

    /// The addresses of a list that are assigned to a Droplet.
    async fn reserved(&self, path: &str, id: u64) -> Result<Vec<String>, ProviderError> {
        let ips: Vec<ReservedIp> = self.things(path).await?;
        let own = |ip: &ReservedIp| ip.droplet.as_ref().is_some_and(|own| own.id == id);
        let ips = ips.into_iter().filter(own);
        Ok(ips.map(|ip| ip.ip).collect())
    }

    async fn firewalls(
        &self,
        droplet: &Droplet,
        around: &mut Surroundings,
    ) -> Result<(), ProviderError> {
        let firewalls: Vec<Firewall> = self.things("/v2/firewalls").await?;
        let ips = droplet.networks.v4.iter().chain(&droplet.networks.v6);
        let ips: Vec<_> = ips.map(|network| network.ip_address.as_str()).collect();
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
            if sources
                .chain(destinations)
                .any(|others| others.name(droplet.id, &ips))
            {
                let name = &firewall.name;
                around.named_by.push(format!("a rule of firewall {name}"));
            }
        }
        around.open_at_first = by_number && !by_tag;
        Ok(())
    }

    /// The databases that let a Droplet in by its number. One that is deleted meanwhile names none.
    async fn naming_databases(&self, id: u64) -> Result<Vec<String>, ProviderError> {
        let Databases { databases } = self.0.read(&Request::get("/v2/databases")).await?;
        let naming = async |database: DatabaseName| {
            let path = format!("/v2/databases/{}/firewall", database.id.0);
            let sources = match self.0.read(&Request::get(path)).await {
                Ok(TrustedSources { rules }) => rules,
                Err(ProviderError::NotFound(_)) => Vec::new(),
                Err(error) => return Err(error),
            };
            let names =
                |rule: &TrustedSource| rule.kind == "droplet" && rule.value == id.to_string();
            let names = sources.iter().any(names);
            Ok(names
                .then(|| format!("database {}", database.name))
                .into_iter()
                .collect())
        };
        let named = pages::each(Reading::UNTIMED, AT_ONCE, databases, naming).await?;
        Ok(named.items.into_iter().map(|(_, name)| name).collect())
    }
}
