//! An operator's prices: no provider's API has them all, and contracts differ.

use std::collections::BTreeMap;

use domain::{
    configuration::Provider,
    money::{Currency, Money},
    resource::SavedState,
};
use serde::{Deserialize, Deserializer, de::Error as _};

/// What nodes, machines, snapshots, and databases cost, in one currency.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Prices {
    /// The currency of all prices, such as `USD`.
    #[serde(deserialize_with = "currency")]
    pub currency: String,
    /// The price of a pool's node for an hour, by plan.
    #[serde(default)]
    node_hour: BTreeMap<String, Price>,
    /// The price of a Droplet or a server for an hour, by plan.
    #[serde(default)]
    machine_hour: BTreeMap<String, Price>,
    /// The maximum price of a server for a month, by type.
    #[serde(default)]
    machine_month: BTreeMap<String, Price>,
    /// The price of a GB of a snapshot for a month, by provider.
    #[serde(default)]
    snapshot_gb_month: BTreeMap<Provider, Price>,
    /// The price of a database for a month, by plan and number of nodes.
    #[serde(default)]
    database_month: BTreeMap<String, Price>,
}

/// An amount of money.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
struct Price(f64);

impl TryFrom<f64> for Price {
    type Error = &'static str;

    fn try_from(amount: f64) -> Result<Self, Self::Error> {
        let is_price = amount.is_finite() && amount >= 0.0;
        is_price.then_some(Self(amount)).ok_or("a price is a number, not below 0")
    }
}

impl Prices {
    /// Parses the prices in a TOML document.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// Returns what one node of this plan costs for an hour, or which key is missing.
    pub fn node_hour(&self, plan: &str) -> Result<f64, String> {
        found(&self.node_hour, "node-hour", plan)
    }

    /// Returns what a machine of this plan costs for an hour, or which key is missing.
    pub(crate) fn machine_hour(&self, plan: &str) -> Result<Money, String> {
        exactly(found(&self.machine_hour, "machine-hour", plan)?)
    }

    /// Returns what a machine of this plan costs for a month at most, or which key is missing.
    pub(crate) fn machine_month(&self, plan: &str) -> Result<Money, String> {
        exactly(found(&self.machine_month, "machine-month", plan)?)
    }

    /// Returns what a database of this size costs for a month, or which key is missing: the plan
    /// alone for one node, `2 x PLAN` for two. Standby nodes have prices of their own.
    pub fn database_month(&self, size: &SavedState) -> Result<f64, String> {
        let key = match size {
            SavedState::Database { plan, nodes: 1, .. } => plan.clone(),
            SavedState::Database { .. } | SavedState::NodePool { .. } | SavedState::Machine(_) => {
                size.to_string()
            }
        };
        found(&self.database_month, "database-month", &key)
    }
}

impl Prices {
    /// Returns [`Self::database_month`] in a currency in which a provider has prices.
    pub(crate) fn database_month_exactly(&self, size: &SavedState) -> Result<Money, String> {
        let currency = self.currency.parse::<Currency>();
        let currency = currency.map_err(|error| error.to_string())?;
        let amount = self.database_month(size)?;
        Money::parse(&format!("{amount:.9}"), currency).map_err(|error| error.to_string())
    }
}

impl Prices {
    /// Returns [`Self::snapshot_gb_month`] for use with other prices of the same file, or which key
    /// is missing.
    pub(crate) fn snapshot(&self, provider: Provider) -> Result<Money, String> {
        let price = self.snapshot_gb_month.get(&provider);
        let price = price.ok_or_else(|| {
            let table = "[snapshot-gb-month]";
            format!("no price \"{}\" under {table}", provider.facts().word)
        })?;
        exactly(price.0)
    }
}

/// Converts a price of the file. All of them are in one currency, whatever it is called: only their
/// numbers count.
fn exactly(amount: f64) -> Result<Money, String> {
    Money::parse(&format!("{amount:.9}"), Currency::Usd).map_err(|error| error.to_string())
}

fn currency<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    if name.trim().is_empty() {
        return Err(D::Error::custom("name the currency of all prices, such as \"USD\""));
    }
    Ok(name)
}

fn found(prices: &BTreeMap<String, Price>, table: &str, key: &str) -> Result<f64, String> {
    let price = prices.get(key).map(|price| price.0);
    price.ok_or_else(|| format!("no price \"{key}\" under [{table}]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Prices::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn prices_are_found_by_plan_and_number_of_nodes() {
        let text = r#"
            currency = "USD"
            [node-hour]
            "s-2vcpu-4gb" = 0.03571
            [database-month]
            "db-s-1vcpu-1gb" = 15
            "2 x db-s-1vcpu-1gb" = 32.5
        "#;
        let prices = Prices::parse(text).unwrap();
        let size = |nodes| SavedState::Database {
            plan: "db-s-1vcpu-1gb".to_owned(),
            nodes,
            storage_mib: Some(10_240),
        };
        assert_eq!(prices.currency, "USD");
        assert_eq!(prices.node_hour("s-2vcpu-4gb"), Ok(0.03571));
        assert_eq!(prices.database_month(&size(1)), Ok(15.0));
        assert_eq!(prices.database_month(&size(2)), Ok(32.5));
        assert_eq!(
            prices.database_month(&size(3)).unwrap_err(),
            "no price \"3 x db-s-1vcpu-1gb\" under [database-month]"
        );
        assert_eq!(
            prices.node_hour("s-4vcpu-8gb").unwrap_err(),
            "no price \"s-4vcpu-8gb\" under [node-hour]"
        );
    }

    #[test]
    fn an_error_names_its_line_and_key() {
        for (text, expected) in [
            ("", &["missing field `currency`"][..]),
            ("currency = 1", &["line 1", "expected a string"]),
            ("currency = ' '", &["line 1", "such as \"USD\""]),
            ("curency = \"USD\"", &["line 1", "unknown field `curency`", "`currency`"]),
            ("currency = \"USD\"\nnode-hour = 1", &["line 2", "node-hour", "expected a map"]),
            (
                "currency = \"USD\"\nnode-hour.\"s-1\" = \"1\"",
                &["line 2", "\"s-1\"", "expected f64"],
            ),
            (
                "currency = \"USD\"\ndatabase-month.\"db\" = -0.5",
                &["line 2", "\"db\"", "a price is a number, not below 0"],
            ),
            (
                "currency = \"USD\"\nnode-hour.a = nan",
                &["line 2", "a price is a number, not below 0"],
            ),
            ("currency =", &["line 1"]),
        ] {
            let refusal = refusal(text);
            for words in expected {
                assert!(refusal.contains(words), "{words}: {refusal}");
            }
        }
    }
}
