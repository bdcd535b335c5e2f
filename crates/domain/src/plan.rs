//! The plans that a cloud offers for machines, and which smaller one a machine can stop on.
//!
//! A machine that is moved to a smaller plan has to come back: it must keep its disk, and its
//! current plan must still be for sale in its region. A move that is not known to be reversible is
//! refused, each time with a reason and what to do about it.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeMap, BTreeSet},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    ResourceKind,
    configuration::{DatabaseMethod, Policy},
    money::{Currency, Money},
    prices::Rate,
    resource::{DatabaseSize, MachineSize, Resource, SavedState},
    stop_method::StopMethod,
    tags::target_tags,
};

/// What a plan costs in a region, and whether it can be ordered there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Offer {
    /// Whether a machine can be moved to the plan there now. A hint: capacity is not reserved.
    pub orderable: bool,
    /// Whether the provider has announced that it will stop selling the plan there.
    pub deprecated: bool,
    /// The price of a whole month, without taxes.
    pub monthly: Money,
    /// The price of an hour, without taxes.
    pub hourly: Money,
}

impl Offer {
    /// Returns its prices.
    #[must_use]
    pub fn rate(&self) -> Rate {
        Rate { hourly: self.hourly, monthly: self.monthly }
    }
}

/// A plan for machines: a Droplet's size, a server's type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachinePlan {
    /// Its name at the provider.
    pub slug: String,
    /// Virtual CPUs.
    pub vcpus: u32,
    /// Memory, in MiB.
    pub memory_mib: u64,
    /// The disk that comes with it, in GiB.
    pub disk_gib: u64,
    /// The processor's architecture, where the provider has several.
    pub architecture: Option<String>,
    /// Whether its disk is network storage rather than local to its host.
    pub network_storage: bool,
    /// Whether it has a graphics processor.
    pub gpu: bool,
    /// The offers by region or location; none where it is not offered.
    pub offers: BTreeMap<String, Offer>,
}

impl MachinePlan {
    /// Returns the plan's capacity, with the disk that comes with it.
    #[must_use]
    pub fn size(&self) -> MachineSize {
        MachineSize {
            plan: self.slug.clone(),
            vcpus: self.vcpus,
            memory_mib: self.memory_mib,
            disk_gib: self.disk_gib,
            architecture: self.architecture.clone(),
            network_storage: self.network_storage,
        }
    }
}

/// The plans that a provider offers for machines, by slug.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog(BTreeMap<String, MachinePlan>);

impl Catalog {
    /// Returns no plans.
    #[must_use]
    pub fn none() -> &'static Self {
        static NONE: Catalog = Catalog(BTreeMap::new());
        &NONE
    }

    /// Returns the plan with this slug.
    #[must_use]
    pub fn plan(&self, slug: &str) -> Option<&MachinePlan> {
        self.0.get(slug)
    }

    /// Returns what a plan costs in a region; `None` where it is not sold.
    #[must_use]
    pub fn offer(&self, slug: &str, region: &str) -> Option<&Offer> {
        self.plan(slug)?.offers.get(region)
    }

    /// All plans.
    pub fn plans(&self) -> impl Iterator<Item = &MachinePlan> {
        self.0.values()
    }

    /// Returns the same plans with prices labeled in another currency, for a list that does not
    /// name it.
    #[must_use]
    pub fn in_currency(mut self, currency: Currency) -> Self {
        let plans = self.0.values_mut();
        for offer in plans.flat_map(|plan| plan.offers.values_mut()) {
            offer.hourly = offer.hourly.with_currency(currency);
            offer.monthly = offer.monthly.with_currency(currency);
        }
        self
    }

    /// Reports whether no plan is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<MachinePlan> for Catalog {
    fn from_iter<I: IntoIterator<Item = MachinePlan>>(plans: I) -> Self {
        let by_slug = plans.into_iter().map(|plan| (plan.slug.clone(), plan));
        Self(by_slug.collect())
    }
}

/// A machine whose plan may become smaller.
#[derive(Debug, Clone, Copy)]
pub struct Machine<'a> {
    /// A Droplet or a server.
    pub resource: &'a Resource,
    /// Its plan and its own disk.
    pub size: &'a MachineSize,
    /// Whether it was created by a Droplet autoscale pool, which replaces it.
    pub autoscaled: bool,
    /// Whether its owner accepts that a move ends an old price (Hetzner).
    pub accepts_new_prices: bool,
}

impl Machine<'_> {
    /// Reports whether it may still be billed at an old price, which no API shows and its first
    /// move ends.
    #[must_use]
    pub fn may_have_kept_price(&self) -> bool {
        may_have_kept_price(self.resource.kind(), self.resource.facts.created_at)
    }
}

/// Reports whether a machine of a kind that was created then may still be billed at an old price.
#[must_use]
pub fn may_have_kept_price(kind: ResourceKind, created_at: Option<Timestamp>) -> bool {
    let new_prices = kind.cloud_facts().and_then(|cloud| cloud.new_prices_since);
    new_prices.is_some_and(|since| created_at.is_none_or(|created_at| created_at < since))
}

/// The plan on which a machine stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopPlan<'c> {
    /// The plan.
    pub plan: &'c MachinePlan,
    /// What it costs in the machine's region.
    pub offer: &'c Offer,
    /// What the current plan costs there, at list price.
    pub present: &'c Offer,
    /// Whether the machine may be billed at another price than the list's until it is moved, so
    /// that the savings of a move are unknown.
    pub has_kept_price: bool,
}

/// Why a machine cannot stop on a smaller plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MoveRefusal {
    /// The provider's list of plans is empty, or the machine is not in a cloud.
    #[error("no plans are known")]
    NoPlans,
    /// A Kubernetes worker.
    #[error("a Kubernetes worker has the plan of its node pool")]
    KubernetesWorker,
    /// Made by an autoscale pool.
    #[error("it is a member of a Droplet autoscale pool, which replaces members that change")]
    Autoscaled,
    /// It has a graphics processor.
    #[error("it has a GPU, and GPU plans cannot be left and ordered again at will")]
    Gpu,
    /// It has a further local disk.
    #[error("it has a scratch disk, which a move would erase")]
    ScratchDisk,
    /// An ISO image is attached.
    #[error("an ISO image is attached to it")]
    Iso,
    /// Rescue mode is on.
    #[error("its rescue system is enabled")]
    Rescue,
    /// Protected at the provider.
    #[error("it is protected at the provider")]
    Protected,
    /// It may have a price that a move would end.
    #[error(
        "it was created before 2026-06-15 and may have an old price, which a move ends for good"
    )]
    KeptPrice,
    /// The provider no longer lists the current plan.
    #[error("its plan {plan} is no longer listed, so that it could not come back")]
    PresentUnknown {
        /// The current plan.
        plan: String,
    },
    /// The current plan cannot be ordered in the region.
    #[error("its plan {plan} cannot be ordered in {region} now, so that it could not come back")]
    PresentNotOrderable {
        /// The current plan.
        plan: String,
        /// The machine's region.
        region: String,
    },
    /// The current plan is being withdrawn.
    #[error("its plan {plan} is deprecated in {region}, so that it may not come back")]
    PresentDeprecated {
        /// The current plan.
        plan: String,
        /// The machine's region.
        region: String,
    },
    /// No plan that fits costs less.
    #[error("its plan {plan} is already the cheapest that fits in {region}")]
    AlreadyCheapest {
        /// The current plan.
        plan: String,
        /// The machine's region.
        region: String,
    },
    /// Cheaper plans exist, but all have smaller disks.
    #[error("its disk of {disk_gib} GB is larger than that of every cheaper plan in {region}")]
    DiskTooLarge {
        /// The machine's own disk.
        disk_gib: u64,
        /// The machine's region.
        region: String,
    },
    /// Its tags name two plans.
    #[error("conflict: its tags name both {first} and {second} as the plan to stop on")]
    TwoTargets {
        /// One of the plans.
        first: String,
        /// Another of the plans.
        second: String,
    },
    /// The requested plan does not exist.
    #[error("unknown plan `{target}`{}", near.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    TargetUnknown {
        /// The requested plan.
        target: String,
        /// A plan with a similar name; `None` if there is none.
        near: Option<String>,
    },
    /// The requested plan is not sold in the region.
    #[error("the plan {target} is not offered in {region}")]
    TargetNotOffered {
        /// The requested plan.
        target: String,
        /// The machine's region.
        region: String,
    },
    /// The requested plan cannot be ordered in the region at present.
    #[error("the plan {target} cannot be ordered in {region} now")]
    TargetNotOrderable {
        /// The requested plan.
        target: String,
        /// The machine's region.
        region: String,
    },
    /// The requested plan is being withdrawn.
    #[error("the plan {target} is deprecated in {region}")]
    TargetDeprecated {
        /// The requested plan.
        target: String,
        /// The machine's region.
        region: String,
    },
    /// The requested plan is not cheaper.
    #[error("the plan {target} costs no less than {plan}")]
    TargetNotCheaper {
        /// The requested plan.
        target: String,
        /// The current plan.
        plan: String,
    },
    /// The requested plan has a smaller disk.
    #[error("the plan {target} has {target_gib} GB of disk, and the machine has {disk_gib} GB")]
    TargetDiskSmaller {
        /// The requested plan.
        target: String,
        /// Its disk.
        target_gib: u64,
        /// The machine's own disk.
        disk_gib: u64,
    },
    /// The requested plan has processors of another kind.
    #[error("the plan {target} has processors of another kind than {plan}")]
    TargetOtherProcessor {
        /// The requested plan.
        target: String,
        /// The current plan.
        plan: String,
    },
    /// The requested plan has another type of storage.
    #[error("the plan {target} has another type of storage than {plan}")]
    TargetOtherStorage {
        /// The requested plan.
        target: String,
        /// The current plan.
        plan: String,
    },
    /// The requested plan has a graphics processor.
    #[error("the plan {target} has a GPU")]
    TargetGpu {
        /// The requested plan.
        target: String,
    },
}

impl MoveRefusal {
    /// Returns what to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NoPlans => "check that the token may read the list of plans",
            Self::KubernetesWorker => "put its cluster or its node pool on the schedule",
            Self::Autoscaled => "lower the autoscale pool's own bounds instead",
            Self::Gpu | Self::ScratchDisk => {
                "keep its plan; only deleting it saves, and Offhours does not delete"
            }
            Self::Iso => "detach the image when it is not needed any more",
            Self::Rescue => "disable the rescue system when the work is done",
            Self::Protected => "remove the protection if the machine may change",
            Self::KeptPrice => {
                "compare its price on your invoice with the list, and accept the new prices for its \
                 account if the list is no dearer"
            }
            Self::PresentUnknown { .. } | Self::PresentDeprecated { .. } => {
                "move it to a plan that is sold there, on which it can then stay"
            }
            Self::PresentNotOrderable { .. } => {
                "wait until its plan can be ordered there again, or move it to another plan for good"
            }
            Self::AlreadyCheapest { .. } => "nothing to do: there is nothing to save by a move",
            Self::DiskTooLarge { .. } => {
                "a disk cannot shrink: make it anew on a plan with a smaller disk, and enlarge it \
                 without its disk"
            }
            Self::TwoTargets { .. } => "remove one of the two tags",
            Self::TargetUnknown { .. }
            | Self::TargetNotOffered { .. }
            | Self::TargetNotOrderable { .. }
            | Self::TargetDeprecated { .. }
            | Self::TargetNotCheaper { .. }
            | Self::TargetDiskSmaller { .. }
            | Self::TargetOtherProcessor { .. }
            | Self::TargetOtherStorage { .. }
            | Self::TargetGpu { .. } => {
                "name another plan to stop on, or none, for the cheapest that fits"
            }
        }
    }
}

/// Returns the plan that a machine's tag, or else its schedule, names; `None` for the cheapest that
/// fits.
///
/// # Errors
///
/// [`MoveRefusal::TwoTargets`] if its tags name two: Offhours does not guess which one was meant.
pub fn requested_plan(
    kind: ResourceKind,
    tags: &BTreeSet<String>,
    policy: &Policy,
) -> Result<Option<String>, MoveRefusal> {
    let Some(configured) = StopMethod::smaller_plan(kind, policy) else { return Ok(None) };
    let mut named = target_tags(tags).into_iter();
    match (named.next(), named.next()) {
        (Some(first), Some(second)) => Err(MoveRefusal::TwoTargets { first, second }),
        (Some(named), None) => Ok(Some(named)),
        (None, _) => Ok(configured.clone()),
    }
}

/// Returns the number of nodes that a stop leaves to a database: never more than it has.
#[must_use]
pub fn stop_nodes(seen: &DatabaseSize, method: DatabaseMethod, policy: &Policy) -> u32 {
    let wanted = match method {
        DatabaseMethod::SmallestPlan => policy.stop_nodes,
        DatabaseMethod::Standbys => Some(1),
    };
    wanted.map_or(seen.nodes, |nodes| nodes.min(seen.nodes))
}

/// Returns the size to which a stop takes a database; `None` if no plan is for sale for it. The
/// error says why the method does not fit the database.
pub fn stop_size(
    seen: &DatabaseSize,
    method: DatabaseMethod,
    policy: &Policy,
    smallest: Option<&str>,
) -> Result<Option<SavedState>, String> {
    let own = match method {
        DatabaseMethod::SmallestPlan => smallest,
        DatabaseMethod::Standbys => match seen.keeps_its_nodes().filter(|_| seen.nodes > 1) {
            Some(reason) => return Err(reason),
            None => Some(&*seen.plan),
        },
    };
    let plan = policy.stop_size.as_deref().or(own);
    Ok(plan.map(|plan| SavedState::Database {
        plan: plan.to_owned(),
        nodes: stop_nodes(seen, method, policy),
        storage_mib: None,
    }))
}

/// Chooses the plan on which a machine stops: the requested one, or else the cheapest that fits.
pub fn stop_plan<'c>(
    machine: Machine<'_>,
    catalog: &'c Catalog,
    wanted: Option<&str>,
) -> Result<StopPlan<'c>, MoveRefusal> {
    if let Some(refusal) = refusals(machine).next() {
        return Err(refusal);
    }
    if catalog.is_empty() || machine.size.plan.is_empty() {
        return Err(MoveRefusal::NoPlans);
    }
    let move_from = PlanMove { machine, present: present(machine, catalog)? };
    let (plan, offer) = match wanted {
        Some(target) => {
            let plan = named(target, catalog)?;
            (plan, move_from.check(plan)?)
        }
        None => move_from.cheapest(catalog)?,
    };
    Ok(StopPlan {
        plan,
        offer,
        present: move_from.present,
        has_kept_price: machine.may_have_kept_price(),
    })
}

/// Returns every reason why a machine cannot leave its plan, or cannot be put back on it.
#[must_use]
pub fn obstacles_to_a_plan(machine: Machine<'_>, catalog: &Catalog) -> Vec<MoveRefusal> {
    let no_way_back = if catalog.is_empty() || machine.size.plan.is_empty() {
        Some(MoveRefusal::NoPlans)
    } else {
        present(machine, catalog).err()
    };
    let mut obstacles: Vec<_> = refusals(machine).collect();
    // The plan may report a GPU that the machine itself has already reported.
    let new = no_way_back.filter(|one| !obstacles.contains(one));
    obstacles.extend(new);
    obstacles
}

/// Returns the reasons that rule out every other plan.
fn refusals(machine: Machine<'_>) -> impl Iterator<Item = MoveRefusal> {
    let facts = &machine.resource.facts;
    let kept = machine.may_have_kept_price() && !machine.accepts_new_prices;
    let refusals = [
        (facts.kubernetes_worker, MoveRefusal::KubernetesWorker),
        (machine.autoscaled, MoveRefusal::Autoscaled),
        (facts.gpu, MoveRefusal::Gpu),
        (facts.scratch_disk, MoveRefusal::ScratchDisk),
        (facts.protected, MoveRefusal::Protected),
        (facts.iso, MoveRefusal::Iso),
        (facts.rescue, MoveRefusal::Rescue),
        (kept, MoveRefusal::KeptPrice),
    ];
    let apply = refusals.into_iter().filter(|(applies, _)| *applies);
    apply.map(|(_, refusal)| refusal)
}

/// Returns the offer of the current plan. A plan that is no longer for sale could not be restored.
fn present<'c>(machine: Machine<'_>, catalog: &'c Catalog) -> Result<&'c Offer, MoveRefusal> {
    let plan = machine.size.plan.clone();
    let region = machine.resource.region.clone();
    let Some(listed) = catalog.plan(&plan) else {
        return Err(MoveRefusal::PresentUnknown { plan });
    };
    if listed.gpu {
        return Err(MoveRefusal::Gpu);
    }
    match listed.offers.get(&region) {
        Some(offer) if offer.deprecated => Err(MoveRefusal::PresentDeprecated { plan, region }),
        Some(offer) if offer.orderable => Ok(offer),
        Some(_) | None => Err(MoveRefusal::PresentNotOrderable { plan, region }),
    }
}

fn named<'c>(target: &str, catalog: &'c Catalog) -> Result<&'c MachinePlan, MoveRefusal> {
    catalog.plan(target).ok_or_else(|| {
        let near = |slug: &str| strsim::damerau_levenshtein(slug, target);
        let slugs = catalog.plans().map(|plan| plan.slug.as_str());
        let nearest = slugs.min_by_key(|slug| near(slug));
        MoveRefusal::TargetUnknown {
            target: target.to_owned(),
            near: nearest.filter(|slug| near(slug) <= 2).map(str::to_owned),
        }
    })
}

/// A machine's move from its current plan to another.
#[derive(Clone, Copy)]
struct PlanMove<'m, 'c> {
    machine: Machine<'m>,
    present: &'c Offer,
}

impl PlanMove<'_, '_> {
    /// Checks that the machine can stop on a plan, and returns what that costs.
    fn check(self, plan: &MachinePlan) -> Result<&Offer, MoveRefusal> {
        let size = self.machine.size;
        let target = || plan.slug.clone();
        let present = || size.plan.clone();
        let region = || self.machine.resource.region.clone();
        let Some(offer) = plan.offers.get(&self.machine.resource.region) else {
            let (target, region) = (target(), region());
            return Err(MoveRefusal::TargetNotOffered { target, region });
        };
        if plan.gpu {
            Err(MoveRefusal::TargetGpu { target: target() })
        } else if !has_same_processors(size, plan) {
            let (target, plan) = (target(), present());
            Err(MoveRefusal::TargetOtherProcessor { target, plan })
        } else if plan.network_storage != size.network_storage {
            let (target, plan) = (target(), present());
            Err(MoveRefusal::TargetOtherStorage { target, plan })
        } else if !costs_less(offer, self.present) {
            let (target, plan) = (target(), present());
            Err(MoveRefusal::TargetNotCheaper { target, plan })
        } else if offer.deprecated {
            let (target, region) = (target(), region());
            Err(MoveRefusal::TargetDeprecated { target, region })
        } else if !offer.orderable {
            let (target, region) = (target(), region());
            Err(MoveRefusal::TargetNotOrderable { target, region })
        } else if plan.disk_gib < size.disk_gib {
            Err(MoveRefusal::TargetDiskSmaller {
                target: target(),
                target_gib: plan.disk_gib,
                disk_gib: size.disk_gib,
            })
        } else {
            Ok(offer)
        }
    }

    /// Returns the cheapest plan that fits; of equally cheap ones, the one with the most memory.
    fn cheapest(self, catalog: &Catalog) -> Result<(&MachinePlan, &Offer), MoveRefusal> {
        let size = self.machine.size;
        let region = self.machine.resource.region.clone();
        let mut lacks_disk = false;
        let mut fitting = Vec::new();
        for plan in catalog.plans() {
            match self.check(plan) {
                Ok(offer) => fitting.push((plan, offer)),
                // The disk is checked last, so the plan fits in every other respect.
                Err(MoveRefusal::TargetDiskSmaller { .. }) => lacks_disk = true,
                Err(_) => {}
            }
        }
        let best = fitting.into_iter().min_by(|(one, offer), (next, other)| {
            let price = |a: Money, b: Money| a.compare(b).unwrap_or(Ordering::Equal);
            let rest = |plan: &MachinePlan| (Reverse(plan.memory_mib), plan.slug.clone());
            price(offer.hourly, other.hourly)
                .then_with(|| price(offer.monthly, other.monthly))
                .then_with(|| rest(one).cmp(&rest(next)))
        });
        best.ok_or_else(|| {
            if lacks_disk {
                MoveRefusal::DiskTooLarge { disk_gib: size.disk_gib, region }
            } else {
                MoveRefusal::AlreadyCheapest { plan: size.plan.clone(), region }
            }
        })
    }
}

/// Compares the hourly prices, since time off is billed by the hour, but never counts a plan as
/// cheaper if its monthly price is higher.
fn costs_less(offer: &Offer, than: &Offer) -> bool {
    let hourly = offer.hourly.compare(than.hourly);
    let monthly = offer.monthly.compare(than.monthly);
    hourly.is_some_and(Ordering::is_lt) && monthly.is_some_and(Ordering::is_le)
}

/// The maker of a plan's processors, as its slug names it (`DigitalOcean`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Maker {
    Amd,
    Intel,
    Unmarked,
}

impl Maker {
    fn of(slug: &str) -> Self {
        let has = |word: &str| slug.split('-').any(|part| part == word);
        if has("amd") {
            Self::Amd
        } else if has("intel") {
            Self::Intel
        } else {
            Self::Unmarked
        }
    }
}

/// Reports whether the processors stay of the same kind. No documentation says that a machine may
/// move from one maker's processors to the other's and back. Unmarked plans may have either, so of
/// the marked plans only those marked Intel may move to them.
fn has_same_processors(size: &MachineSize, plan: &MachinePlan) -> bool {
    let makers_agree = match (Maker::of(&size.plan), Maker::of(&plan.slug)) {
        (Maker::Intel, Maker::Intel | Maker::Unmarked)
        | (Maker::Amd, Maker::Amd)
        | (Maker::Unmarked, Maker::Unmarked) => true,
        (Maker::Intel, Maker::Amd)
        | (Maker::Amd, Maker::Intel | Maker::Unmarked)
        | (Maker::Unmarked, Maker::Amd | Maker::Intel) => false,
    };
    makers_agree && size.architecture == plan.architecture
}

#[cfg(test)]
mod tests;
