//! Each method by which a resource could be stopped, and what it would save.

use std::cmp::Ordering;

use domain::{
    ResourceKind, ScheduleName,
    configuration::Policy,
    hibernation::obstacles_of_its_own,
    money::{Currency, Money},
    plan::{Catalog, Machine, Offer, smaller, wanted},
    resource::{DatabaseSize, MachineSize, NodePoolSize, Resource, SavedState, Size},
    stop_method::StopMethod,
};

use super::{
    Division, TimesOff,
    bill::{self, Span},
    hibernated,
};
use crate::hours::Prices;

/// A resource as its provider lists it, and all on which its month depends.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The resource.
    pub resource: &'a Resource,
    /// The schedule that it follows.
    pub schedule: Option<&'a ScheduleName>,
    /// When it stands still; none where it follows no schedule and none is assumed.
    pub off: Option<&'a TimesOff>,
    /// Why Offhours never stops it.
    pub barred: Option<&'a str>,
    /// How its schedule has it stopped.
    pub policy: &'a Policy,
    /// Whether a Droplet autoscale pool made it.
    pub autoscaled: bool,
    /// Whether its account accepts that a move ends an old price.
    pub accepts_new_prices: bool,
    /// What its provider sells.
    pub catalog: &'a Catalog,
    /// The smallest plan for a database of its engine and number of nodes.
    pub smallest_database_plan: Option<&'a str>,
    /// The operator's prices.
    pub prices: Option<&'a Prices>,
    /// What a GB of a snapshot costs in a month.
    pub snapshot_price: Option<Money>,
}

/// One method, and what it would save of a month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) method: StopMethod,
    /// What it would be stopped to.
    pub(super) to: Option<String>,
    /// Whether the resource can be stopped so.
    pub(super) fits: bool,
    /// None where it does not fit, or where that is unknown.
    pub(super) saved: Option<Money>,
    /// What speaks against it, or on what the figure rests.
    pub(super) why: Option<String>,
    /// What to do about that.
    pub(super) remedy: Option<&'static str>,
}

impl Choice {
    fn fits(method: StopMethod, to: Option<String>, saved: Option<Money>) -> Self {
        Self {
            method,
            to,
            fits: true,
            saved,
            why: None,
            remedy: None,
        }
    }

    fn refused(method: StopMethod, why: impl Into<String>) -> Self {
        Self {
            fits: false,
            ..Self::fits(method, None, None).because(why)
        }
    }

    fn because(self, why: impl Into<String>) -> Self {
        Self {
            why: Some(why.into()),
            ..self
        }
    }
}

/// What a resource costs in a month, and each method by which it could be stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judged {
    /// None where that is unknown.
    pub(super) monthly: Option<Money>,
    /// Why it is unknown.
    pub(super) why: Option<String>,
    pub(super) choices: Vec<Choice>,
}

/// The days and hours of a resource are not known.
const NO_HOURS: &str = "it follows no schedule: --hours says what to assume";

/// Stopping for less than that saves nothing.
const NOTHING_BELOW_CAP: &str =
    "it is off too little: a month's hours above 672 are not billed anyway";

impl Candidate<'_> {
    pub(super) fn judged(&self, seconds: u64) -> Judged {
        match &self.resource.size {
            Size::Machine(size) => self.machine(size, seconds),
            Size::NodePool(pool) => self.node_pool(pool, seconds),
            Size::Database(size) => self.database(size),
        }
    }

    /// How much of the month it stands still.
    pub(super) fn month(&self) -> Option<Division> {
        let off = self.off?;
        Some(off.division(self.resource.facts.created_at))
    }

    fn offer(&self, plan: &str) -> Result<&Offer, String> {
        let region = &self.resource.region;
        let offer = self.catalog.offer(plan, region);
        offer.ok_or_else(|| format!("its provider lists no price of {plan} in {region}"))
    }

    fn machine(&self, size: &MachineSize, seconds: u64) -> Judged {
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
        // Whichever way it is switched off.
        let zero = Money::zero(currency);
        let off = Choice::fits(StopMethod::PowerOff, None, Some(zero));
        let other = self.other_plan(machine);
        let hibernated = self.hibernated(machine);
        Judged {
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
        let wanted = wanted(kind, &self.resource.tags, self.policy);
        let smaller = wanted.and_then(|wanted| smaller(machine, self.catalog, wanted.as_deref()));
        let smaller = match smaller {
            Ok(smaller) => smaller,
            Err(unfit) => {
                return Choice {
                    remedy: Some(unfit.remedy()),
                    ..Choice::refused(method, unfit.to_string())
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

    /// By what a list shows of it: what is around it takes several requests of each machine.
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
            let found = hibernated((kind, machine.size), offer, off, (price, false))?;
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

    /// A pool at zero costs nothing.
    fn node_pool(&self, pool: &NodePoolSize, seconds: u64) -> Judged {
        let method = StopMethod::ZeroNodes;
        let offer = match self.offer(&pool.plan) {
            Ok(offer) => offer,
            Err(why) => {
                return Judged {
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
        Judged {
            monthly,
            why: None,
            choices: vec![self.zero_nodes(pool, nodes)],
        }
    }

    fn zero_nodes(&self, pool: &NodePoolSize, nodes: impl Fn(u64) -> Option<Money>) -> Choice {
        let method = StopMethod::ZeroNodes;
        if pool.count == 0 {
            return Choice::refused(method, "it has no nodes now");
        }
        let Some(month) = self.month() else {
            return Choice::fits(method, None, None).because(NO_HOURS);
        };
        let saved = nodes(month.seconds)
            .zip(nodes(month.on()))
            .and_then(|(now, then)| now.minus(then));
        let choice = Choice::fits(method, None, saved);
        if saved.is_some_and(Money::is_zero) {
            choice.because(NOTHING_BELOW_CAP)
        } else if pool.autoscale.is_some() {
            choice.because("estimate: takes the autoscaled nodes as they are now")
        } else {
            choice
        }
    }

    fn database(&self, size: &DatabaseSize) -> Judged {
        let (monthly, why) = match self.database_month(&saved_size(size)) {
            Ok(monthly) => (Some(monthly), None),
            Err(why) => (None, Some(why)),
        };
        Judged {
            monthly,
            why,
            choices: vec![self.smallest_plan(size), self.standbys(size)],
        }
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

    /// Storage stays what it is, and so does what it costs.
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
    /// Adds what speaks against it where nothing else does.
    fn unless_known(self, why: &str) -> Self {
        match self.why {
            Some(_) => self,
            None => self.because(why),
        }
    }
}

/// What a month costs less of a machine that is on a cheaper plan while it is off; none of prices in
/// several currencies.
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

/// How many nodes a database is to have while it is on its smallest plan.
#[must_use]
pub fn nodes_while_stopped(size: &DatabaseSize, policy: &Policy) -> u32 {
    // Never more than there are: a stop only shrinks.
    let wanted = policy.stop_nodes.unwrap_or(size.nodes);
    wanted.min(size.nodes)
}

/// What a kind is billed in where no price says so.
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
