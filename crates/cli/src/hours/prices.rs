//! An operator's prices: no provider's API tells them all, and contracts differ.

use std::{collections::BTreeMap, fs, path::Path};

use domain::resource::SavedState;
use toml::{Table, Value};

use crate::{exit::UsageError, resolve::nearest::advice};

/// The keys of the file.
const KEYS: [&str; 3] = ["currency", NODE_HOUR, DATABASE_MONTH];

/// The table of what a node of a pool costs.
const NODE_HOUR: &str = "node-hour";

/// The table of what a database costs.
const DATABASE_MONTH: &str = "database-month";

/// What things cost, in one currency.
#[derive(Debug, Clone, PartialEq)]
pub struct Prices {
    /// The currency of all prices, such as `USD`.
    pub currency: String,
    node_hour: BTreeMap<String, f64>,
    database_month: BTreeMap<String, f64>,
}

impl Prices {
    /// The prices in a file.
    pub fn load(path: &Path) -> Result<Self, UsageError> {
        let file = path.display().to_string();
        let text = fs::read_to_string(path)
            .map_err(|error| UsageError(format!("cannot read the prices in {file}: {error}")))?;
        Self::parse(&text, &file)
    }

    /// The prices in a text; `file` names it in errors.
    pub fn parse(text: &str, file: &str) -> Result<Self, UsageError> {
        let table: Table = text
            .parse()
            .map_err(|error: toml::de::Error| UsageError(format!("{file}: {error}")))?;
        if let Some(key) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let advice = advice(key, "keys", KEYS);
            return Err(UsageError(format!("{file}: {key}: unknown key; {advice}")));
        }
        let currency = match table.get("currency") {
            Some(Value::String(currency)) if !currency.trim().is_empty() => currency.clone(),
            Some(_) | None => {
                let message = "currency: write the currency of all prices: currency = \"USD\"";
                return Err(UsageError(format!("{file}: {message}")));
            }
        };
        Ok(Self {
            currency,
            node_hour: amounts(&table, NODE_HOUR, file)?,
            database_month: amounts(&table, DATABASE_MONTH, file)?,
        })
    }

    /// What one node of this plan costs for an hour, or which key is missing.
    pub fn node_hour(&self, plan: &str) -> Result<f64, String> {
        found(&self.node_hour, NODE_HOUR, plan)
    }

    /// What a database of this size costs for a month, or which key is missing: the plan alone for
    /// one node, `2 x PLAN` for two, for standby nodes have prices of their own.
    pub fn database_month(&self, size: &SavedState) -> Result<f64, String> {
        let key = match size {
            SavedState::Database { plan, nodes: 1, .. } => plan.clone(),
            SavedState::Database { .. }
            | SavedState::NodePool { .. }
            | SavedState::Machine { .. } => size.to_string(),
        };
        found(&self.database_month, DATABASE_MONTH, &key)
    }
}

fn found(prices: &BTreeMap<String, f64>, table: &str, key: &str) -> Result<f64, String> {
    let price = prices.get(key).copied();
    price.ok_or_else(|| format!("no price \"{key}\" under [{table}]"))
}

fn amounts(table: &Table, name: &str, file: &str) -> Result<BTreeMap<String, f64>, UsageError> {
    let prices = match table.get(name) {
        None => return Ok(BTreeMap::new()),
        Some(Value::Table(prices)) => prices,
        Some(_) => {
            let message = format!("{file}: {name}: write a table: [{name}], then \"PLAN\" = 0.5");
            return Err(UsageError(message));
        }
    };
    prices
        .iter()
        .map(|(plan, value)| {
            let amount = amount(value).ok_or_else(|| {
                let message = "a price is a number, not below 0";
                UsageError(format!("{file}: {name}.\"{plan}\": {message}"))
            })?;
            Ok((plan.clone(), amount))
        })
        .collect()
}

fn amount(value: &Value) -> Option<f64> {
    let amount = match value {
        Value::Float(amount) => *amount,
        #[expect(
            clippy::cast_precision_loss,
            reason = "a price of more than 2^53 is no price"
        )]
        Value::Integer(amount) => *amount as f64,
        Value::String(_)
        | Value::Boolean(_)
        | Value::Datetime(_)
        | Value::Array(_)
        | Value::Table(_) => return None,
    };
    (amount.is_finite() && amount >= 0.0).then_some(amount)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Prices::parse(text, "my.toml").unwrap_err().0
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
        let prices = Prices::parse(text, "my.toml").unwrap();
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
    fn what_is_wrong_is_told_with_file_and_key() {
        for (text, expected) in [
            ("", "my.toml: currency: write the currency"),
            ("currency = 1", "my.toml: currency: write the currency"),
            (
                "curency = \"USD\"",
                "my.toml: curency: unknown key; did you mean `currency`?",
            ),
            (
                "currency = \"USD\"\nnode-hour = 1",
                "my.toml: node-hour: write a table",
            ),
            (
                "currency = \"USD\"\nnode-hour.\"s-1\" = \"1\"",
                "my.toml: node-hour.\"s-1\": a price is a number, not below 0",
            ),
            (
                "currency = \"USD\"\ndatabase-month.\"db\" = -0.5",
                "my.toml: database-month.\"db\": a price is a number, not below 0",
            ),
            (
                "currency = \"USD\"\nnode-hour.a = nan",
                "my.toml: node-hour.\"a\"",
            ),
            ("currency =", "my.toml: TOML parse error at line 1"),
        ] {
            let refusal = refusal(text);
            assert!(refusal.starts_with(expected), "{refusal}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_told_by_its_name() {
        let error = Prices::load(Path::new("no/such/prices.toml")).unwrap_err();
        assert!(
            error
                .0
                .starts_with("cannot read the prices in no/such/prices.toml: ")
        );
    }
}
