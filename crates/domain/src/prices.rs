//! What a provider charges, as read on a day, and what the configuration says instead.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{
    Family, ResourceKind,
    money::{Currency, Money},
    provider::{Billing, Provider},
    resource::SavedState,
};

/// The most hours that `DigitalOcean` bills of a month (DOPRICES), each at an equal share of the
/// monthly price.
pub const CAP_HOURS: u64 = 672;

/// What a plan costs, without taxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub hourly: Money,
    /// For a month at most, where the provider has such a price.
    pub monthly: Money,
}

impl Rate {
    /// What is not there, and costs nothing.
    #[must_use]
    pub fn zero(currency: Currency) -> Self {
        Self { hourly: Money::zero(currency), monthly: Money::zero(currency) }
    }
}

/// The prices of one provider, in one currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceList {
    pub currency: Currency,
    pub read_at: Timestamp,
    /// The prices of each plan for machines: where they differ by region, one for each.
    plans: BTreeMap<String, Vec<PlanPrice>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    snapshot_gb_month: Option<Price>,
}

/// What a plan costs in some regions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PlanPrice {
    hourly: Price,
    monthly: Price,
    /// Empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    regions: Vec<String>,
}

impl PriceList {
    /// Creates an empty list.
    #[must_use]
    pub fn new(currency: Currency, read_at: Timestamp, snapshot_gb_month: Option<Money>) -> Self {
        let snapshot_gb_month = snapshot_gb_month.map(Price::of);
        Self { currency, read_at, plans: BTreeMap::new(), snapshot_gb_month }
    }

    /// Adds a plan's prices in a region; in all regions if none is given.
    pub fn add(&mut self, plan: &str, region: Option<&str>, rate: Rate) {
        let prices = self.plans.entry(plan.to_owned()).or_default();
        let (hourly, monthly) = (Price::of(rate.hourly), Price::of(rate.monthly));
        let same = |one: &&mut PlanPrice| (one.hourly, one.monthly) == (hourly, monthly);
        match (prices.iter_mut().find(same), region) {
            (Some(known), Some(region)) if !known.regions.is_empty() => {
                known.regions.push(region.to_owned());
            }
            (Some(_), _) => {}
            (None, region) => {
                let regions = region.map(str::to_owned).into_iter().collect();
                prices.push(PlanPrice { hourly, monthly, regions });
            }
        }
    }

    /// Reports whether it can be stored as one item, which has at most 400 KB.
    #[must_use]
    pub fn fits_an_item(&self) -> bool {
        let price = |price: &PlanPrice| {
            let regions = price.regions.iter().map(|region| region.len() + 3);
            100 + regions.sum::<usize>()
        };
        let plans = self.plans.iter();
        let plans =
            plans.map(|(plan, prices)| plan.len() + prices.iter().map(price).sum::<usize>());
        plans.sum::<usize>() < 300_000
    }
}

/// Prices that replace those of the providers, or that no API has. Each is in the currency of the
/// account that it applies to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(JsonSchema),
    schemars(rename = "prices", deny_unknown_fields)
)]
#[serde(default, rename_all = "kebab-case")]
pub struct OwnPrices {
    /// A database cluster for a month, by its plan and, for several nodes, their number: "2 x
    /// db-s-1vcpu-2gb". DigitalOcean's API has no prices of databases.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(extend("examples" = [{"db-s-1vcpu-2gb": 30.0}])))]
    pub database_month: BTreeMap<String, Price>,
    /// A node of a pool for an hour, by its plan.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(extend("examples" = [{"s-2vcpu-4gb": 0.03571}])))]
    pub node_hour: BTreeMap<String, Price>,
    /// A Droplet or a server for an hour, by its plan.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(extend("examples" = [{"cpx22": 0.0312}])))]
    pub machine_hour: BTreeMap<String, Price>,
    /// A server for a month at most, by its type.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(extend("examples" = [{"cpx22": 19.49}])))]
    pub machine_month: BTreeMap<String, Price>,
    /// A GB of a snapshot for a month, by provider: digitalocean or hetzner.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(extend("examples" = [{"hetzner": 0.0143}])))]
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = {"enum": ["digitalocean", "hetzner"]})))]
    pub snapshot_gb_month: BTreeMap<Provider, Price>,
}

impl OwnPrices {
    /// Returns the prices of a plan for machines or nodes that are given here.
    fn of_plan(&self, kind: ResourceKind, plan: &str) -> (Option<Price>, Option<Price>) {
        let of = |prices: &BTreeMap<String, Price>| prices.get(plan).copied();
        match kind.family() {
            Family::NodePool => (of(&self.node_hour), None),
            Family::CloudMachine | Family::Database | Family::OwnMachine => {
                (of(&self.machine_hour), of(&self.machine_month))
            }
        }
    }

    /// Returns what a plan costs, with the prices that are given here in place of those listed.
    #[must_use]
    pub fn replace(&self, kind: ResourceKind, plan: &str, listed: Rate) -> Rate {
        let currency = listed.hourly.currency();
        let (hourly, monthly) = self.of_plan(kind, plan);
        let or =
            |price: Option<Price>, listed| price.map_or(listed, |one| one.in_currency(currency));
        Rate { hourly: or(hourly, listed.hourly), monthly: or(monthly, listed.monthly) }
    }
}

/// An amount of money that is not negative, in a currency that is given elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price(Money);

impl Price {
    pub(crate) fn of(money: Money) -> Self {
        Self(money.with_currency(Currency::Usd))
    }

    /// Parses a decimal amount.
    pub fn parse(text: &str) -> Result<Self, NotAPrice> {
        let money = Money::parse(text, Currency::Usd).ok();
        money.filter(|money| !money.is_negative()).map(Self).ok_or(NotAPrice)
    }

    #[must_use]
    pub fn in_currency(self, currency: Currency) -> Money {
        self.0.with_currency(currency)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a price: write a decimal number that is not negative, such as 0.0312")]
pub struct NotAPrice;

/// As decimal text, so that no digit is lost.
impl Serialize for Price {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.exact())
    }
}

impl<'de> Deserialize<'de> for Price {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PriceVisitor)
    }
}

/// Reads text or a number.
struct PriceVisitor;

impl de::Visitor<'_> for PriceVisitor {
    type Value = Price;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a price")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Price, E> {
        Price::parse(text).map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Price, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Price, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Price, E> {
        self.visit_str(&number.to_string())
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Price {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "price".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": ["number", "string"], "minimum": 0, "pattern": r"^[0-9]+(\.[0-9]+)?$",
        })
    }
}

/// Everything that is known of what an account's resources cost.
#[derive(Debug, Clone, Copy)]
pub struct Prices<'a> {
    pub provider: Provider,
    pub list: Option<&'a PriceList>,
    /// What the configuration says instead.
    pub own: &'a OwnPrices,
}

impl Prices<'_> {
    /// Returns the currency of the account's bill: where no list says so, the provider's usual one.
    #[must_use]
    pub fn currency(&self) -> Currency {
        self.list.map_or_else(|| self.provider.facts().currency, |list| list.currency)
    }

    /// Returns what a plan for machines or nodes costs in a region, or why that is unknown.
    pub fn of_plan(&self, kind: ResourceKind, plan: &str, region: &str) -> Result<Rate, String> {
        let currency = self.currency();
        let list = self.list.and_then(|list| list.plans.get(plan));
        let mut listed = list.into_iter().flatten();
        let listed = listed.find(|price| {
            price.regions.is_empty() || price.regions.iter().any(|listed| listed == region)
        });
        let (hourly, monthly) = self.own.of_plan(kind, plan);
        let hourly = hourly.or(listed.map(|price| price.hourly));
        let monthly = monthly.or(listed.map(|price| price.monthly));
        match (hourly, monthly, kind.billing()) {
            (Some(hourly), Some(monthly), _) => Ok((hourly, monthly)),
            // No price caps its month.
            (Some(hourly), None, Billing::Seconds) => Ok((hourly, hourly)),
            (_, _, _) if self.list.is_none() => {
                Err("the prices of its account have not been read yet".to_owned())
            }
            (_, _, _) => Err(format!("its provider lists no price of {plan} in {region}")),
        }
        .map(|(hourly, monthly)| Rate {
            hourly: hourly.in_currency(currency),
            monthly: monthly.in_currency(currency),
        })
    }

    /// Reports whether the configuration itself gives the price of a machine's plan.
    #[must_use]
    pub fn is_own(&self, plan: Option<&str>) -> bool {
        plan.is_some_and(|plan| self.own.machine_hour.contains_key(plan))
    }

    /// Returns what a database of a size costs, or why that is unknown. Standby nodes have prices of
    /// their own.
    pub fn of_database(&self, size: &SavedState) -> Result<Rate, String> {
        let key = match size {
            SavedState::Database { plan, nodes: 1, .. } => plan.clone(),
            SavedState::Database { .. } | SavedState::NodePool { .. } | SavedState::Machine(_) => {
                size.to_string()
            }
        };
        let own = &self.own.database_month;
        // One node may be written as it is shown everywhere, `1 x PLAN`.
        let price = own.get(&key).or_else(|| own.get(&size.to_string()));
        let monthly = price.map(|price| price.in_currency(self.currency()));
        let rate =
            monthly.map(|monthly| Rate { hourly: monthly.share(1, CAP_HOURS.into()), monthly });
        rate.ok_or_else(|| format!("price not in the API: [prices.database-month] \"{key}\""))
    }

    /// Returns what a GB of a snapshot costs for a month, or why that is unknown.
    pub fn of_snapshot(&self) -> Result<Money, String> {
        let own = self.own.snapshot_gb_month.get(&self.provider).copied();
        let price = own.or_else(|| self.list?.snapshot_gb_month);
        let price = price.map(|price| price.in_currency(self.currency()));
        price.ok_or_else(|| "what its snapshots cost is not known".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(hourly: &str, monthly: &str) -> Rate {
        let money = |text| Money::parse(text, Currency::Eur).unwrap();
        Rate { hourly: money(hourly), monthly: money(monthly) }
    }

    fn list() -> PriceList {
        let snapshot = Money::parse("0.0143", Currency::Eur).unwrap();
        let read_at = "2026-11-23T07:00:00Z".parse().unwrap();
        let mut list = PriceList::new(Currency::Eur, read_at, Some(snapshot));
        for (region, hourly) in [("fsn1", "0.0312"), ("nbg1", "0.0312"), ("ash", "0.1001")] {
            list.add("cpx22", Some(region), rate(hourly, "19.49"));
        }
        list
    }

    #[test]
    fn equal_prices_are_stored_once_and_exactly() {
        let stored = serde_json::to_string(&list()).unwrap();
        assert_eq!(
            stored,
            r#"{"currency":"EUR","read_at":"2026-11-23T07:00:00Z","plans":{"cpx22":[{"hourly":"0.0312","monthly":"19.49","regions":["fsn1","nbg1"]},{"hourly":"0.1001","monthly":"19.49","regions":["ash"]}]},"snapshot_gb_month":"0.0143"}"#
        );
        assert_eq!(serde_json::from_str::<PriceList>(&stored).unwrap(), list());
    }

    fn prices<'a>(list: &'a PriceList, own: &'a OwnPrices) -> Prices<'a> {
        Prices { provider: Provider::Hetzner, list: Some(list), own }
    }

    #[test]
    fn the_configurations_own_prices_come_first_and_what_is_unknown_is_named() {
        let (list, mut own) = (list(), OwnPrices::default());
        let kind = ResourceKind::Server;
        assert_eq!(prices(&list, &own).of_plan(kind, "cpx22", "nbg1"), Ok(rate("0.0312", "19.49")));
        assert_eq!(prices(&list, &own).of_plan(kind, "cpx22", "ash"), Ok(rate("0.1001", "19.49")));
        let unknown = prices(&list, &own).of_plan(kind, "cpx22", "hil").unwrap_err();
        assert_eq!(unknown, "its provider lists no price of cpx22 in hil");
        own.machine_hour.insert("cpx22".to_owned(), Price::parse("0.02").unwrap());
        own.snapshot_gb_month.insert(Provider::Hetzner, Price::parse("0.01").unwrap());
        assert_eq!(prices(&list, &own).of_plan(kind, "cpx22", "nbg1"), Ok(rate("0.02", "19.49")));
        assert_eq!(prices(&list, &own).of_snapshot().unwrap().to_string(), "0.01 EUR");
        let unread = Prices { list: None, ..prices(&list, &own) };
        assert_eq!(
            unread.of_plan(kind, "cpx22", "nbg1").unwrap_err(),
            "the prices of its account have not been read yet"
        );
        let size = |nodes| SavedState::Database { plan: "db".to_owned(), nodes, storage_mib: None };
        own.database_month.insert("2 x db".to_owned(), Price::parse("60").unwrap());
        let prices = Prices { provider: Provider::DigitalOcean, list: None, own: &own };
        assert_eq!(prices.of_database(&size(2)).unwrap().monthly.to_string(), "60.00 USD");
        let unknown = prices.of_database(&size(1)).unwrap_err();
        assert_eq!(unknown, "price not in the API: [prices.database-month] \"db\"");
        let mut one = own.clone();
        one.database_month.insert("1 x db".to_owned(), Price::parse("30").unwrap());
        let prices = Prices { own: &one, ..prices };
        assert_eq!(prices.of_database(&size(1)).unwrap().monthly.to_string(), "30.00 USD");
    }

    #[test]
    fn a_price_is_a_number_or_text_and_never_negative() {
        for (text, expected) in [
            ("0.03571", Some("0.03571")),
            ("\"0.03571\"", Some("0.03571")),
            ("30", Some("30")),
            ("30.0", Some("30")),
            ("-0.5", None),
            ("-3", None),
            ("\"free\"", None),
        ] {
            let price = serde_json::from_str::<Price>(text);
            let exact = price.ok().map(|price| price.0.exact());
            assert_eq!(exact.as_deref(), expected, "{text}");
        }
    }
}
