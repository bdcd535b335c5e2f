//! What a stop saves, by hourly prices.

use std::collections::BTreeMap;

use crate::{
    AccountName, Family,
    configuration::{Account, Configuration},
    hibernation::IDLE_ADDRESS,
    money::Money,
    plan::may_have_kept_price,
    prices::{PriceList, Prices},
    record::Record,
    resource::SavedState,
};

impl<'a> Prices<'a> {
    /// Returns those of an account. `None` if it is not configured, or is no cloud's.
    #[must_use]
    pub fn of_account(
        name: &AccountName,
        configuration: &'a Configuration,
        lists: &'a BTreeMap<AccountName, PriceList>,
    ) -> Option<Self> {
        let account = configuration.accounts.get(name).and_then(Account::cloud)?;
        let own = &configuration.settings.prices;
        Some(Self { provider: account.provider, list: lists.get(name), own })
    }

    /// Returns what a stopped resource saves for each hour, by hourly prices: nothing if it is billed
    /// in full while it is off. `None` if that is unknown.
    #[must_use]
    pub fn saved_per_hour(&self, record: &Record) -> Option<Money> {
        if let Some(hibernation) = record.hibernation.as_deref().filter(|_| record.is_hibernated())
        {
            let manifest = hibernation.manifest.as_ref()?;
            let own = self.per_hour(record, &SavedState::Machine(manifest.size.clone()))?;
            let snapshots = hibernation.snapshots_month(self.of_snapshot().ok()?)?;
            let address = if manifest.address_costs(record.kind()) { IDLE_ADDRESS.0 } else { "0" };
            let address = Money::parse(address, self.currency()).ok()?;
            // An average month has 730.5 hours.
            return own.minus(snapshots.share(2, 1461))?.minus(address);
        }
        let Some(own) = &record.saved else {
            let is_machine = record.kind().family() != Family::OwnMachine;
            return is_machine.then(|| Money::zero(self.currency()));
        };
        let seen = record.observed.as_ref()?.size.as_ref()?;
        self.per_hour(record, own)?.minus(self.per_hour(record, seen)?)
    }

    /// Returns what a resource costs for an hour at a size. `None` if that is unknown.
    fn per_hour(&self, record: &Record, size: &SavedState) -> Option<Money> {
        let kind = record.kind();
        let plan = |plan: &str| Some(self.of_plan(kind, plan, &record.region).ok()?.hourly);
        match size {
            SavedState::Database { .. } => Some(self.of_database(size).ok()?.hourly),
            SavedState::NodePool { count, .. } => {
                Some(plan(record.plan.as_deref()?)?.times(*count))
            }
            SavedState::Machine(size) => {
                let is_listed = !may_have_kept_price(kind, record.created_at);
                (is_listed || self.is_own(Some(&size.plan))).then(|| plan(&size.plan))?
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        money::Currency,
        prices::{OwnPrices, Price, Rate},
        provider::Provider,
    };

    /// Checks what a record saves for each hour, in EUR.
    #[track_caller]
    fn saves_per_hour(record: &Value, expected: Option<&str>) {
        let eur = |text| Money::parse(text, Currency::Eur).unwrap();
        let read_at = "2026-11-23T07:00:00Z".parse().unwrap();
        let mut list = PriceList::new(Currency::Eur, read_at, Some(eur("0.0143")));
        for (plan, hourly) in [("cpx22", "0.0312"), ("cx23", "0.0052")] {
            list.add(plan, Some("fsn1"), Rate { hourly: eur(hourly), monthly: eur("19.49") });
        }
        let mut own = OwnPrices::default();
        own.database_month.insert("db-big".to_owned(), Price::parse("67.2").unwrap());
        own.database_month.insert("db-small".to_owned(), Price::parse("6.72").unwrap());
        own.node_hour.insert("s-node".to_owned(), Price::parse("0.05").unwrap());
        let mut whole = json!({"name": "a", "opted_in": true, "phase": {"name": "settled", "at": "stopped"},
            "region": "fsn1", "created_at": "2026-11-01T00:00:00Z", "revision": 1});
        whole.as_object_mut().unwrap().extend(record.as_object().unwrap().clone());
        let record: Record = serde_json::from_value(whole).unwrap();
        let prices = Prices { provider: Provider::Hetzner, list: Some(&list), own: &own };
        let saved = prices.saved_per_hour(&record).map(Money::exact);
        assert_eq!(saved.as_deref(), expected, "{record:?}");
    }

    fn seen(size: &Value) -> Value {
        json!({"power": "stopped", "at": "2026-11-23T19:05:00Z", "size": size})
    }

    #[test]
    fn a_stop_saves_what_the_size_before_it_costs_less_what_is_left() {
        let machine = |plan: &str| json!({"kind": "machine", "plan": plan});
        let off = json!({"reference": "hz-eu/server/1", "plan": "cpx22"});
        saves_per_hour(&off, Some("0"));
        let moved = |extra: Value| {
            let mut record = json!({"reference": "hz-eu/server/1", "saved": machine("cpx22"),
                "observed": seen(&machine("cx23"))});
            record.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            record
        };
        saves_per_hour(&moved(json!({})), Some("0.026"));
        saves_per_hour(&moved(json!({"saved": machine("cpx99")})), None);
        // Its own price is in no API.
        saves_per_hour(&moved(json!({"created_at": "2026-01-01T00:00:00Z"})), None);
        let database = |plan: &str| json!({"kind": "database", "plan": plan, "nodes": 1});
        let database = |plan: &str| {
            json!({"reference": "do-main/database/d", "saved": database("db-big"),
                "observed": seen(&database(plan))})
        };
        saves_per_hour(&database("db-small"), Some("0.09"));
        saves_per_hour(&database("db-other"), None);
        let pool = |count: u32| json!({"kind": "node-pool", "count": count});
        let pool = json!({"reference": "do-main/node-pool/c/p", "plan": "s-node", "saved": pool(3),
            "observed": seen(&pool(0))});
        saves_per_hour(&pool, Some("0.15"));
        saves_per_hour(&json!({"reference": "lab/machine/m"}), None);
    }

    #[test]
    fn a_hibernated_machine_saves_its_price_less_its_snapshots_and_its_address() {
        let hibernated = |reference: &str, sizes: &[u64]| {
            let snapshot = |size: &u64| {
                json!({"mark": format!("h{size}"), "id": 1, "from": "server/1", "asked_at": "2026-11-23T19:00:00Z",
                    "centi_gb": size})
            };
            let manifest = json!({"name": "a", "region": "fsn1", "tags": [], "ssh_key": "k",
                "size": {"plan": "cpx22"}, "addresses": [{"id": "1", "ip": "192.0.2.1"}]});
            json!({"reference": reference, "hibernation":
                {"snapshots": sizes.iter().map(snapshot).collect::<Vec<_>>(), "manifest": manifest}})
        };
        // 73.05 GB of snapshots cost 0.00143 EUR an hour.
        saves_per_hour(&hibernated("hz-eu/server/1", &[5_000, 2_305]), Some("0.02977"));
        saves_per_hour(&hibernated("hz-eu/server/1", &[]), None);
        // An address of a Droplet costs more while there is none.
        saves_per_hour(&hibernated("do-main/droplet/1", &[5_000, 2_305]), Some("0.01977"));
    }
}
