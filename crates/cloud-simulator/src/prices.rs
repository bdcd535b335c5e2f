//! The price list behind the API's responses and the bill.

use std::{collections::BTreeMap, str::FromStr, sync::LazyLock};

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{amount::Amount, catalog};

/// What both clouds charge, without VAT. Read it from TOML with `parse`; `prices.toml`, the
/// default, shows the format and gives the source of each price.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// The day of the newest source.
    pub dated: Date,
    /// `DigitalOcean`'s prices.
    pub digitalocean: DigitalOceanPrices,
    pub hetzner: HetznerPrices,
}

/// What `DigitalOcean` charges.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DigitalOceanPrices {
    pub currency: String,
    pub snapshot_per_gb_month: Amount,
    /// A reserved IPv4 address while it is unassigned.
    pub reserved_ipv4: Price,
    /// Droplets and Kubernetes nodes, by slug.
    pub sizes: BTreeMap<String, Price>,
    /// Database clusters, by number of nodes and plan: `2 x db-s-1vcpu-2gb`.
    pub databases: BTreeMap<String, Price>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HetznerPrices {
    pub currency: String,
    /// The VAT that the API's gross prices include, in percent.
    pub vat_percent: Amount,
    /// Servers created before this day keep their [`LocatedPrice::kept`] price until their type
    /// changes.
    pub list_since: Date,
    /// Images, per GB and month.
    pub snapshot_per_gb_month: Amount,
    /// A primary IPv4 address, assigned or not.
    pub primary_ipv4: Price,
    /// A floating IPv4 address, per month.
    pub floating_ipv4_monthly: Amount,
    /// A floating IPv6 network, per month.
    pub floating_ipv6_monthly: Amount,
    pub volume_per_gb_month: Amount,
    pub backup_percent: Amount,
    /// Traffic beyond what is included, per TB.
    pub traffic_per_tb: Amount,
    pub server_types: BTreeMap<String, Vec<LocatedPrice>>,
}

/// The price of something that is billed by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// The maximum price of a month.
    pub monthly: Amount,
    pub hourly: Amount,
}

/// The price of a server type in some locations.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocatedPrice {
    pub locations: Vec<String>,
    /// The maximum price of a month.
    pub monthly: Amount,
    pub hourly: Amount,
    /// The price that older servers keep; `None` if it is the listed one.
    pub kept: Option<Price>,
}

/// An invalid price list.
#[derive(Debug, thiserror::Error)]
pub enum PricesError {
    /// The text is not TOML, or not a price list. The message shows the line.
    #[error("{0}")]
    Syntax(toml::de::Error),
    /// It lacks the price of something that the simulated clouds offer.
    #[error("no price for {0}")]
    Missing(String),
}

impl FromStr for Prices {
    type Err = PricesError;

    fn from_str(text: &str) -> Result<Self, PricesError> {
        let prices: Self = toml::from_str(text).map_err(PricesError::Syntax)?;
        match prices.missing() {
            Some(missing) => Err(PricesError::Missing(missing)),
            None => Ok(prices),
        }
    }
}

impl Default for Prices {
    /// The price list that comes with the simulator.
    fn default() -> Self {
        static OWN: LazyLock<Prices> = LazyLock::new(|| {
            let text = include_str!("../prices.toml");
            text.parse().expect("the simulator's own price list is complete")
        });
        OWN.clone()
    }
}

impl Price {
    pub(crate) const ZERO: Self = Self { monthly: Amount::ZERO, hourly: Amount::ZERO };

    fn shown(self, tax_percent: Amount) -> Value {
        json!({
            "price_hourly": net_and_gross(self.hourly, tax_percent),
            "price_monthly": net_and_gross(self.monthly, tax_percent),
        })
    }
}

/// An amount as Hetzner shows it.
fn net_and_gross(net: Amount, tax_percent: Amount) -> Value {
    json!({"net": net.in_full(), "gross": net.with_tax(tax_percent).in_full()})
}

impl Prices {
    /// The first thing that the catalog offers and the list has no price for.
    fn missing(&self) -> Option<String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut sizes = catalog::entries(&catalog::DROPLET_SIZES).map(|size| text(&size["slug"]));
        let size = sizes.find(|slug| !self.digitalocean.sizes.contains_key(slug));
        let database = || {
            let mut layouts = catalog::database_layouts();
            let lacks = |key: &String| !self.digitalocean.databases.contains_key(key);
            layouts.find_map(|(nodes, plan)| Some(database_key(nodes, plan)).filter(lacks))
        };
        let server_type = || {
            let types = catalog::entries(&catalog::SERVER_TYPES);
            let mut offered = types.flat_map(|server_type| {
                let locations = catalog::entries(&server_type["locations"]);
                locations.map(|place| (text(&server_type["name"]), text(&place["name"])))
            });
            let missing = offered.find(|(name, place)| self.hetzner.row(name, place).is_none());
            missing.map(|(name, place)| format!("{name} in {place}"))
        };
        size.or_else(database).or_else(server_type)
    }
}

/// The list's key for this many nodes of a plan.
pub(crate) fn database_key(nodes: u32, plan: &str) -> String {
    format!("{nodes} x {plan}")
}

impl HetznerPrices {
    fn row(&self, server_type: &str, location: &str) -> Option<&LocatedPrice> {
        let rows = self.server_types.get(server_type)?;
        let mut rows = rows.iter();
        rows.find(|row| row.locations.iter().any(|name| name == location))
    }

    /// The price of a server that was created, or last changed its type, at `created`. A fleet may
    /// put a server where its type is not sold: it then pays the highest of the type's prices.
    pub(crate) fn of_server(
        &self,
        server_type: &str,
        location: &str,
        created: Timestamp,
    ) -> Option<Price> {
        let dearest = || {
            let rows = self.server_types.get(server_type)?.iter();
            rows.max_by_key(|row| row.hourly)
        };
        let row = self.row(server_type, location).or_else(dearest)?;
        let is_old = created.to_zoned(TimeZone::UTC).date() < self.list_since;
        let listed = Price { monthly: row.monthly, hourly: row.hourly };
        Some(row.kept.filter(|_| is_old).unwrap_or(listed))
    }

    /// `prices` of a server type, as the API shows them.
    pub(crate) fn shown(&self, server_type: &str) -> Value {
        let rows = self.server_types.get(server_type).into_iter().flatten();
        let in_location = |row: &LocatedPrice, location: &str| {
            let price = Price { monthly: row.monthly, hourly: row.hourly };
            let fields = json!({
                "location": location,
                "included_traffic": INCLUDED_TRAFFIC_BYTES,
                "price_per_tb_traffic": net_and_gross(self.traffic_per_tb, self.vat_percent),
            });
            catalog::with(&price.shown(self.vat_percent), fields)
        };
        rows.flat_map(|row| row.locations.iter().map(move |name| in_location(row, name))).collect()
    }

    /// The pricing of `GET /v1/pricing` for these server types. Nothing here uses load balancers.
    pub(crate) fn pricing<'a>(&self, server_types: impl Iterator<Item = &'a Value>) -> Value {
        let tax = self.vat_percent;
        let of_type = |server_type: &Value| {
            let field = |name: &str| server_type[name].clone();
            json!({"id": field("id"), "name": field("name"), "prices": field("prices")})
        };
        let each = |price: Value| -> Value {
            let places = catalog::entries(&catalog::LOCATIONS);
            let at = |place: &Value| catalog::with(&price, json!({"location": place["name"]}));
            places.map(at).collect()
        };
        let monthly = |net| json!({"price_monthly": net_and_gross(net, tax)});
        let (ipv4, ipv6) = (self.floating_ipv4_monthly, self.floating_ipv6_monthly);
        json!({
            "currency": self.currency,
            "vat_rate": self.vat_percent.in_full(),
            "primary_ips": [
                {"type": "ipv4", "prices": each(self.primary_ipv4.shown(tax))},
                {"type": "ipv6", "prices": each(Price::ZERO.shown(tax))},
            ],
            "floating_ips": [
                {"type": "ipv4", "prices": each(monthly(ipv4))},
                {"type": "ipv6", "prices": each(monthly(ipv6))},
            ],
            "floating_ip": monthly(ipv4),
            "image": {"price_per_gb_month": net_and_gross(self.snapshot_per_gb_month, tax)},
            "volume": {"price_per_gb_month": net_and_gross(self.volume_per_gb_month, tax)},
            "server_backup": {"percentage": self.backup_percent.in_full()},
            "server_types": server_types.map(of_type).collect::<Vec<_>>(),
            "load_balancer_types": [],
        })
    }
}

/// The traffic included with a server per month: 20 TiB, which is an assumption outside the EU.
const INCLUDED_TRAFFIC_BYTES: u64 = 20 << 40;

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = include_str!("../prices.toml");

    #[test]
    fn a_list_without_a_price_of_something_offered_is_refused() {
        for (line, missing) in [
            ("c-4 = {", "no price for c-4"),
            ("\"2 x gd-2vcpu-8gb\" = {", "no price for 2 x gd-2vcpu-8gb"),
        ] {
            let kept = OWN.lines().filter(|own| !own.starts_with(line));
            let kept: Vec<_> = kept.collect();
            let error = kept.join("\n").parse::<Prices>().unwrap_err();
            assert_eq!(error.to_string(), missing);
        }
        let without = OWN.replace("\"fsn1\", \"nbg1\", \"hel1\"", "\"fsn1\", \"nbg1\"");
        let error = without.parse::<Prices>().unwrap_err().to_string();
        assert!(error.ends_with(" in hel1"), "{error}");
    }

    #[test]
    fn an_amount_that_is_a_number_and_not_text_is_refused_with_its_line() {
        let text = OWN.replace("monthly = \"84.00\"", "monthly = 84.0");
        let error = text.parse::<Prices>().unwrap_err().to_string();
        assert!(error.contains("c-4"), "{error}");
    }

    #[test]
    fn only_an_old_server_keeps_its_price() {
        let prices = Prices::default().hetzner;
        let monthly = |created: &str| {
            let price = prices.of_server("cx23", "nbg1", created.parse().unwrap());
            price.unwrap().monthly.to_string()
        };
        assert_eq!(monthly("2026-06-14T23:59:59Z"), "3.99");
        assert_eq!(monthly("2026-06-15T00:00:00Z"), "5.49");
    }
}
