//! Each method by which a resource could be stopped, and what it would save.

use std::cmp::Ordering;

use domain::{
    ResourceKind, ScheduleName,
    configuration::Policy,
    hibernation::obstacles_of_its_own,
    money::{Currency, Money},
    plan::{Catalog, Machine, Offer, requested_plan, stop_plan},
    resource::{DatabaseSize, MachineSize, NodePoolSize, Resource, SavedState, Size},
    stop_method::StopMethod,
};

use super::{
    Division, TimesOff,
    bill::{self, Span},
    hibernated_month,
};
use crate::hours::Prices;

/// A resource as its provider lists it, and everything its month depends on.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The resource.
    pub resource: &'a Resource,
    /// The schedule that it follows.
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
    /// The operator's prices.
    pub prices: Option<&'a Prices>,
    /// What a GB of a snapshot costs in a month. `None` if that is unknown.
    pub snapshot_price: Option<Money>,
}

/// One method, and what it would save in a month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) method: StopMethod,
    /// What it would be stopped to. `None` if it keeps its plan and size.
    pub(super) to: Option<String>,
    /// Whether the resource can be stopped this way.
    pub(super) fits: bool,
    /// What it would save. `None` if the method does not fit, or if that is unknown.
    pub(super) saved: Option<Money>,
    /// What speaks against it, or what the figure rests on.
    pub(super) why: Option<String>,
    /// What to do about that.
    pub(super) remedy: Option<&'static str>,
}

impl Choice {
    fn fits(method: StopMethod, to: Option<String>, saved: Option<Money>) -> Self {
        Self { method, to, fits: true, saved, why: None, remedy: None }
    }

    fn refused(method: StopMethod, why: impl Into<String>) -> Self {
        Self { fits: false, ..Self::fits(method, None, None).because(why) }
    }

    fn because(self, why: impl Into<String>) -> Self {
        Self { why: Some(why.into()), ..self }
    }
}

/// What a resource costs in a month, and each method by which it could be stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Assessment {
    /// What it costs in a month. `None` if that is unknown.
    pub(super) monthly: Option<Money>,
    /// Why it is unknown.
    pub(super) why: Option<String>,
    pub(super) choices: Vec<Choice>,
}

/// The reason given when the days and hours of a resource are not known.
const NO_HOURS: &str = "it follows no schedule: --hours says what to assume";

/// The reason given when a stop is too short to save anything.
const NOTHING_BELOW_CAP: &str =
    "it is off too little: a month's hours above 672 are not billed anyway";

impl Candidate<'_> {
    pub(super) fn assess(&self, seconds: u64) -> Assessment {
        match &self.resource.size {
            Size::Machine(size) => self.machine(size, seconds),
            Size::NodePool(pool) => self.node_pool(pool, seconds),
            Size::Database(size) => self.database(size),
        }
    }

    /// Returns how much of the month it is off.
    pub(super) fn month(&self) -> Option<Division> {
        let off = self.off?;
        Some(off.division(self.resource.facts.created_at))
    }

    fn offer(&self, plan: &str) -> Result<&Offer, String> {
        let region = &self.resource.region;
        let offer = self.catalog.offer(plan, region);
        offer.ok_or_else(|| format!("its provider lists no price of {plan} in {region}"))
    }

    fn machine(&self, size: &MachineSize, seconds: u64) -> Assessment {
        let kind = self.resource.kind();
        let machine = Machine {
            resource: self.resource,
            size,
            autoscaled: self.autoscaled,
            accepts_new_prices: self.accepts_new_prices,
        };
        let (monthly, why) = match self.offer(&size.plan) {
            Ok(_) if machine.may_have_kept_price() => {
                let why = "it was created before 2026-06-15: its own price is not in the API";
                (None, Some(why.to_owned()))
            }
            Ok(offer) => (bill::of_machine(kind, &[Span { offer, seconds }]), None),
            Err(why) => (None, Some(why)),
        };
        let currency = match self.offer(&size.plan) {
            Ok(offer) => offer.hourly.currency(),
            Err(_) => usual_currency(kind),
        };
        // This holds whichever way it is switched off.
        let zero = Money::zero(currency);
        let off = Choice::fits(StopMethod::PowerOff, None, Some(zero));
        let other = self.other_plan(machine);
        let hibernated = self.hibernated(machine);
        Assessment {
            monthly,
            why,
            choices: vec![off.because("billed in full while off"), other, hibernated],
        }
    }

    fn other_plan(&self, machine: Machine<'_>) -> Choice {
        let kind = machine.resource.kind();
        let method = match kind {
            ResourceKind::Server => StopMethod::Rescale,
            ResourceKind::Droplet
            | ResourceKind::Database
            | ResourceKind::NodePool
            | ResourceKind::Machine => StopMethod::Resize,
        };
        let wanted = requested_plan(kind, &self.resource.tags, self.policy);
        let smaller = wanted.and_then(|wanted| stop_plan(machine, self.catalog, wanted.as_deref()));
        let smaller = match smaller {
            Ok(smaller) => smaller,
            Err(refusal) => {
                return Choice {
                    remedy: Some(refusal.remedy()),
                    ..Choice::refused(method, refusal.to_string())
                };
            }
        };
        let to = Some(smaller.plan.slug.clone());
        let Some(month) = self.month() else {
            return Choice::fits(method, to, None).because(NO_HOURS);
        };
        let saved = saved_on_smaller_plan(kind, smaller.present, smaller.offer, month);
        if smaller.has_kept_price {
            let at_list = saved.map_or_else(String::new, |saved| {
                format!("; of the list's price it would save {saved}")
            });
            let why = format!("its own price is not in the API{at_list}");
            return Choice::fits(method, to, None).because(why);
        }
        let choice = Choice::fits(method, to, saved);
        match saved.and_then(|saved| saved.compare(Money::zero(saved.currency()))) {
            Some(Ordering::Less) => choice.because("it would cost more: it is off too little"),
            Some(Ordering::Equal) => choice.because(NOTHING_BELOW_CAP),
            Some(Ordering::Greater) | None => choice,
        }
    }

    /// Judges by what a list shows of the machine. Attached resources would take several requests
    /// for each machine.
    fn hibernated(&self, machine: Machine<'_>) -> Choice {
        let method = StopMethod::Hibernate;
        let kind = self.resource.kind();
        let obstacles = obstacles_of_its_own(machine, self.catalog);
        if let Some(obstacle) = obstacles.first() {
            return Choice {
                remedy: Some(obstacle.remedy()),
                ..Choice::refused(method, obstacle.to_string())
            };
        }
        let Some(off) = self.off else {
            return Choice::fits(method, None, None).because(NO_HOURS);
        };
        if machine.may_have_kept_price() {
            let why = "its own price is not in the API, and would be lost";
            return Choice::fits(method, None, None).because(why);
        }
        let offer = self.offer(&machine.size.plan).ok();
        let saved = offer.zip(self.snapshot_price).and_then(|(offer, price)| {
            let found = hibernated_month((kind, machine.size), offer, off, (price, false))?;
            Some(found.saved)
        });
        let choice = Choice::fits(method, None, saved);
        match saved {
            None => choice.because("what its snapshots cost is not known"),
            Some(saved) if saved.is_negative() => {
                choice.because("it could cost more: its disk is large, or it is off too little")
            }
            Some(_) => choice.because("at least, after `offhours rehearse`"),
        }
    }

    /// Judges a node pool. A pool at zero costs nothing.
    fn node_pool(&self, pool: &NodePoolSize, seconds: u64) -> Assessment {
        let method = StopMethod::ZeroNodes;
        let offer = match self.offer(&pool.plan) {
            Ok(offer) => offer,
            Err(why) => {
                return Assessment {
                    monthly: None,
                    why: Some(why.clone()),
                    choices: vec![Choice::fits(method, None, None).because(why)],
                };
            }
        };
        let nodes = |seconds| {
            let one = bill::digitalocean(&[Span { offer, seconds }]);
            one.map(|one| one.times(pool.count))
        };
        let monthly = nodes(seconds);
        Assessment { monthly, why: None, choices: vec![self.zero_nodes(pool, nodes)] }
    }

    fn zero_nodes(&self, pool: &NodePoolSize, nodes: impl Fn(u64) -> Option<Money>) -> Choice {
        let method = StopMethod::ZeroNodes;
        if pool.count == 0 {
            return Choice::refused(method, "it has no nodes now");
        }
        let Some(month) = self.month() else {
            return Choice::fits(method, None, None).because(NO_HOURS);
        };
        let saved =
            nodes(month.seconds).zip(nodes(month.on())).and_then(|(now, then)| now.minus(then));
        let choice = Choice::fits(method, None, saved);
        if saved.is_some_and(Money::is_zero) {
            choice.because(NOTHING_BELOW_CAP)
        } else if pool.autoscale.is_some() {
            choice.because("estimate: takes the autoscaled nodes as they are now")
        } else {
            choice
        }
    }

    fn database(&self, size: &DatabaseSize) -> Assessment {
        let (monthly, why) = match self.database_month(&saved_size(size)) {
            Ok(monthly) => (Some(monthly), None),
            Err(why) => (None, Some(why)),
        };
        Assessment { monthly, why, choices: vec![self.smallest_plan(size), self.standbys(size)] }
    }

    fn database_month(&self, size: &SavedState) -> Result<Money, String> {
        match self.prices {
            Some(prices) => prices.database_month_exactly(size),
            None => Err("price not in the API: --prices FILE".to_owned()),
        }
    }

    fn smallest_plan(&self, size: &DatabaseSize) -> Choice {
        let method = StopMethod::SmallestPlan;
        let configured = self.policy.stop_size.as_deref();
        let Some(plan) = configured.or(self.smallest_database_plan) else {
            let region = &self.resource.region;
            return Choice::refused(method, format!("no smaller plan is offered in {region}"));
        };
        let small = DatabaseSize {
            plan: plan.to_owned(),
            nodes: nodes_while_stopped(size, self.policy),
            ..size.clone()
        };
        if saved_size(&small).compare(&saved_size(size)) != Some(Ordering::Less) {
            return Choice::refused(method, "it is no larger than that already");
        }
        self.smaller_database(method, size, &small)
            .unless_known("DigitalOcean may refuse to make a plan smaller")
    }

    fn standbys(&self, size: &DatabaseSize) -> Choice {
        let method = StopMethod::Standbys;
        if size.nodes < 2 {
            return Choice::refused(method, "it has no standby nodes");
        }
        if let Some(why) = size.keeps_its_nodes() {
            return Choice::refused(method, why);
        }
        let small = DatabaseSize {
            plan: self.policy.stop_size.clone().unwrap_or(size.plan.clone()),
            nodes: 1,
            ..size.clone()
        };
        self.smaller_database(method, size, &small)
    }

    /// Judges a smaller size of a database. Storage stays the same, and so does its cost.
    fn smaller_database(
        &self,
        method: StopMethod,
        size: &DatabaseSize,
        small: &DatabaseSize,
    ) -> Choice {
        let (size, small) = (saved_size(size), saved_size(small));
        let to = Some(small.to_string());
        let Some(month) = self.month() else {
            return Choice::fits(method, to, None).because(NO_HOURS);
        };
        let both = self.database_month(&size).and_then(|size| {
            let small = self.database_month(&small)?;
            Ok((size, small))
        });
        let (size, small) = match both {
            Ok(both) => both,
            Err(why) => return Choice::fits(method, to, None).because(why),
        };
        let saved = size.minus(small);
        let saved = saved.map(|saved| bill::share_on_smaller_plan(saved, month.on(), month.off));
        let choice = Choice::fits(method, to, saved);
        if saved.is_some_and(Money::is_negative) {
            return choice.because("by these prices it would cost more");
        }
        choice
    }
}

impl Choice {
    /// Adds what speaks against it if nothing else does.
    fn unless_known(self, why: &str) -> Self {
        match self.why {
            Some(_) => self,
            None => self.because(why),
        }
    }
}

/// Returns what is saved in a month by a machine that is on a cheaper plan while it is off. `None`
/// if the prices are in several currencies.
#[must_use]
pub fn saved_on_smaller_plan(
    kind: ResourceKind,
    present: &Offer,
    smaller: &Offer,
    month: Division,
) -> Option<Money> {
    let (on, off) = match kind {
        ResourceKind::Server => (month.on_in_begun_hours(), month.off_in_whole_hours),
        ResourceKind::Droplet
        | ResourceKind::Database
        | ResourceKind::NodePool
        | ResourceKind::Machine => (month.on(), month.off),
    };
    let span = |offer, seconds| Span { offer, seconds };
    let now = bill::of_machine(kind, &[span(present, month.seconds)])?;
    let then = bill::of_machine(kind, &[span(present, on), span(smaller, off)])?;
    now.minus(then)
}

/// Returns how many nodes a database has while it is on its smallest plan.
#[must_use]
pub fn nodes_while_stopped(size: &DatabaseSize, policy: &Policy) -> u32 {
    // Never more than there are: a stop only shrinks.
    let wanted = policy.stop_nodes.unwrap_or(size.nodes);
    wanted.min(size.nodes)
}

/// Returns the currency in which a kind is billed if no price says so.
fn usual_currency(kind: ResourceKind) -> Currency {
    match kind {
        ResourceKind::Server => Currency::Eur,
        ResourceKind::Droplet
        | ResourceKind::Database
        | ResourceKind::NodePool
        | ResourceKind::Machine => Currency::Usd,
    }
}

fn saved_size(size: &DatabaseSize) -> SavedState {
    SavedState::Database {
        plan: size.plan.clone(),
        nodes: size.nodes,
        storage_mib: size.storage_mib,
    }
}
