//! Each method by which a resource could be stopped, and what it would save.

use std::cmp::Ordering;

use domain::{
    ResourceKind, ScheduleName,
    configuration::{DatabaseMethod, Policy},
    hibernation::obstacles_of_its_own,
    money::Money,
    plan::{Catalog, Machine, requested_plan, stop_plan, stop_size},
    prices::{Prices, Rate},
    resource::{DatabaseSize, MachineSize, NodePoolSize, Resource, SavedState, Size},
    stop_method::StopMethod,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    TimesOff,
    bill::{self, NOTHING_BELOW_CAP},
    hibernated_month, known_cents,
    past::{BILLED_IN_FULL, KEPT_PRICE},
};

/// A resource as its provider lists it, and everything its month depends on.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    pub resource: &'a Resource,
    pub schedule: Option<&'a ScheduleName>,
    /// When it is off. `None` if it follows no schedule and none is assumed.
    pub off: Option<&'a TimesOff>,
    /// Why Offhours never stops it. `None` if it may.
    pub barred: Option<&'a str>,
    /// The policy by which its schedule stops it.
    pub policy: &'a Policy,
    /// Whether a Droplet autoscale pool created it.
    pub autoscaled: bool,
    /// Whether its account accepts that a move ends an old price.
    pub accepts_new_prices: bool,
    /// What its provider sells.
    pub catalog: &'a Catalog,
    /// The smallest plan for a database of its engine and number of nodes.
    pub smallest_database_plan: Option<&'a str>,
    /// What everything costs.
    pub prices: Prices<'a>,
}

/// A method by which a resource could be stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MethodSaving {
    /// The stop method.
    pub method: StopMethod,
    /// The plan or size that the resource would be stopped on; null if it keeps both.
    pub to: Option<String>,
    /// Whether the resource can be stopped this way.
    pub fits: bool,
    /// What the method saves in the month; null if it does not fit, or if that is unknown.
    #[serde(serialize_with = "known_cents")]
    #[schemars(with = "Option<f64>")]
    pub saved: Option<Money>,
    /// What speaks against the method, why nothing is saved or known, or what the figure rests on;
    /// null if there is nothing to say.
    pub why: Option<String>,
    /// What to do about that; null if there is nothing.
    pub remedy: Option<&'static str>,
}

/// What a resource costs in a month, or why that is unknown; and the methods to stop it.
type Assessment = (Result<Money, String>, Vec<MethodSaving>);

/// What a method saves, if the prices are in one currency, and what that rests on; or why it is
/// unknown.
type Figure = Result<(Option<Money>, Option<&'static str>), String>;

impl MethodSaving {
    fn fits(method: StopMethod, to: Option<String>, figure: Figure) -> Self {
        let (saved, why) = match figure {
            Ok((saved, why)) => (saved, why.map(str::to_owned)),
            Err(why) => (None, Some(why)),
        };
        Self { method, to, fits: true, saved, why, remedy: None }
    }

    fn refused(method: StopMethod, why: impl Into<String>) -> Self {
        Self { fits: false, ..Self::fits(method, None, Err(why.into())) }
    }
}

/// The reason given when the days and hours of a resource are not known.
const NO_HOURS: &str = "it follows no schedule: --hours says what to assume";

impl Candidate<'_> {
    pub(super) fn assess(&self, seconds: u64) -> Assessment {
        match &self.resource.size {
            Size::Machine(size) => self.machine(size, seconds),
            Size::NodePool(pool) => self.node_pool(pool, seconds),
            Size::Database(size) => self.database(size),
        }
    }

    fn rate(&self, plan: &str) -> Result<Rate, String> {
        self.prices.of_plan(self.resource.kind(), plan, &self.resource.region)
    }

    fn machine(&self, size: &MachineSize, seconds: u64) -> Assessment {
        let kind = self.resource.kind();
        let machine = Machine {
            resource: self.resource,
            size,
            autoscaled: self.autoscaled,
            accepts_new_prices: self.accepts_new_prices,
        };
        let monthly = self.rate(&size.plan).and_then(|rate| {
            let cost = bill::cost(kind, &[(rate, seconds)]);
            cost.filter(|_| !self.has_kept_price(machine)).ok_or_else(|| KEPT_PRICE.to_owned())
        });
        // This holds whichever way it is switched off.
        let zero = Money::zero(self.prices.currency());
        let off = Ok((Some(zero), Some(BILLED_IN_FULL)));
        let off = MethodSaving::fits(StopMethod::PowerOff, None, off);
        (monthly, vec![off, self.other_plan(machine), self.hibernated(machine)])
    }

    /// Reports whether the machine may have a price that is in no API, and not in the configuration.
    fn has_kept_price(&self, machine: Machine<'_>) -> bool {
        machine.may_have_kept_price() && !self.prices.is_own(Some(&machine.size.plan))
    }

    fn other_plan(&self, machine: Machine<'_>) -> MethodSaving {
        let kind = machine.resource.kind();
        let method = StopMethod::to_smaller_plan(kind).unwrap_or(StopMethod::Resize);
        let wanted = requested_plan(kind, &self.resource.tags, self.policy);
        let smaller = wanted.and_then(|wanted| stop_plan(machine, self.catalog, wanted.as_deref()));
        let smaller = match smaller {
            Ok(smaller) => smaller,
            Err(refusal) => {
                return MethodSaving {
                    remedy: Some(refusal.remedy()),
                    ..MethodSaving::refused(method, refusal.to_string())
                };
            }
        };
        let to = smaller.plan.slug.clone();
        let figure = self.on_smaller_plan(machine, &to);
        MethodSaving::fits(method, Some(to), figure)
    }

    fn on_smaller_plan(&self, machine: Machine<'_>, to: &str) -> Figure {
        let off = self.off.ok_or(NO_HOURS)?;
        let (own, small) = (self.rate(&machine.size.plan)?, self.rate(to)?);
        let created_at = self.resource.facts.created_at;
        let saved = saved_on_smaller_plan(self.resource.kind(), own, small, off, created_at);
        if self.has_kept_price(machine) {
            let at_list = saved.map_or_else(String::new, |saved| {
                format!("; of the list's price it would save {saved}")
            });
            return Err(format!("its own price is not in the API{at_list}"));
        }
        let why = match saved {
            Some(saved) if saved.is_negative() => Some("it would cost more: it is off too little"),
            Some(saved) if saved.is_zero() => Some(NOTHING_BELOW_CAP),
            Some(_) | None => None,
        };
        Ok((saved, why))
    }

    /// Judges by what a list shows of the machine. Attached resources would take several requests
    /// for each machine.
    fn hibernated(&self, machine: Machine<'_>) -> MethodSaving {
        let method = StopMethod::Hibernate;
        let obstacles = obstacles_of_its_own(machine, self.catalog);
        if let Some(obstacle) = obstacles.first() {
            return MethodSaving {
                remedy: Some(obstacle.remedy()),
                ..MethodSaving::refused(method, obstacle.to_string())
            };
        }
        MethodSaving::fits(method, None, self.while_deleted(machine))
    }

    fn while_deleted(&self, machine: Machine<'_>) -> Figure {
        let off = self.off.ok_or(NO_HOURS)?;
        if self.has_kept_price(machine) {
            return Err("its own price is not in the API, and would be lost".to_owned());
        }
        let (own, snapshot) = (self.rate(&machine.size.plan)?, self.prices.of_snapshot()?);
        let of = (self.resource.kind(), machine.size);
        let saved = hibernated_month(of, own, off, (snapshot, false));
        let why = if saved.is_some_and(Money::is_negative) {
            "it could cost more: its disk is large, or it is off too little"
        } else {
            "at least, after `offhours rehearse`"
        };
        Ok((saved, Some(why)))
    }

    /// Judges a node pool. A pool at zero costs nothing.
    fn node_pool(&self, pool: &NodePoolSize, seconds: u64) -> Assessment {
        let method = StopMethod::ZeroNodes;
        let rate = self.rate(&pool.plan);
        let monthly = rate.clone().and_then(|rate| {
            let node = bill::cost(ResourceKind::NodePool, &[(rate, seconds)]);
            Ok(node.ok_or(bill::SEVERAL)?.times(pool.count))
        });
        let found = if pool.count == 0 {
            MethodSaving::refused(method, "it has no nodes now")
        } else {
            let figure = rate.and_then(|rate| self.at_zero(pool, rate, seconds));
            MethodSaving::fits(method, None, figure)
        };
        (monthly, vec![found])
    }

    fn at_zero(&self, pool: &NodePoolSize, rate: Rate, seconds: u64) -> Figure {
        let off = self.off.ok_or(NO_HOURS)?;
        let zero = Rate::zero(rate.hourly.currency());
        let saved = bill::saved(ResourceKind::NodePool, rate, seconds, &[(zero, off.off())]);
        let why = if saved.is_some_and(Money::is_zero) {
            Some(NOTHING_BELOW_CAP)
        } else {
            pool.autoscale.map(|_| "estimate: takes the autoscaled nodes as they are now")
        };
        Ok((saved.map(|one| one.times(pool.count)), why))
    }

    fn database(&self, size: &DatabaseSize) -> Assessment {
        let monthly = self.prices.of_database(&saved_size(size)).map(|rate| rate.monthly);
        let methods = [DatabaseMethod::SmallestPlan, DatabaseMethod::Standbys];
        (monthly, methods.map(|method| self.smaller_database(method, size)).into())
    }

    fn smaller_database(&self, by: DatabaseMethod, size: &DatabaseSize) -> MethodSaving {
        let method = by.into();
        let small = match stop_size(size, by, self.policy, self.smallest_database_plan) {
            Ok(Some(small)) => small,
            Ok(None) => {
                let region = &self.resource.region;
                return MethodSaving::refused(method, format!("no plan is offered in {region}"));
            }
            Err(why) => return MethodSaving::refused(method, why),
        };
        if small.compare(&saved_size(size)) != Some(Ordering::Less) {
            return MethodSaving::refused(method, "it is no larger than that already");
        }
        let found = MethodSaving::fits(method, Some(small.to_string()), self.on_size(size, &small));
        if by == DatabaseMethod::Standbys {
            return found;
        }
        let cloud = self.resource.kind().cloud_facts().map_or("its cloud", |cloud| cloud.name);
        let why = found.why.unwrap_or(format!("{cloud} may refuse to make a plan smaller"));
        MethodSaving { why: Some(why), ..found }
    }

    /// What a database saves on a smaller size. Storage stays the same, and so does its cost.
    fn on_size(&self, size: &DatabaseSize, small: &SavedState) -> Figure {
        let off = self.off.ok_or(NO_HOURS)?;
        let rate = |size| self.prices.of_database(size);
        let (own, less) = (rate(&saved_size(size))?, rate(small)?);
        let kind = ResourceKind::Database;
        let saved = bill::saved(kind, own, off.seconds, &[(less, off.off())]);
        let costs_more = saved.is_some_and(Money::is_negative);
        Ok((saved, costs_more.then_some("by these prices it would cost more")))
    }
}

/// Returns what is saved in a month by a machine that is on a cheaper plan while it is off. `None`
/// if the prices are in several currencies.
#[must_use]
pub fn saved_on_smaller_plan(
    kind: ResourceKind,
    own: Rate,
    small: Rate,
    off: &TimesOff,
    created_at: Option<Timestamp>,
) -> Option<Money> {
    bill::saved(kind, own, off.seconds, &[(small, off.billed_off(kind, created_at))])
}

fn saved_size(size: &DatabaseSize) -> SavedState {
    SavedState::Database {
        plan: size.plan.clone(),
        nodes: size.nodes,
        storage_mib: size.storage_mib,
    }
}
