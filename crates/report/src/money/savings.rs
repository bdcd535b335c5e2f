//! The report on what stopping could save in a month, before anything is stopped.

use std::cmp::Ordering;

use domain::{ResourceRef, ScheduleName, money::Money, resource::Size, stop_method::StopMethod};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Month, Sums, Totals, hours, known_cents,
    methods::{Candidate, MethodSaving},
};

/// What stopping could save in a month.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Report {
    /// The calendar month; null for an average month of 730.5 hours.
    pub month: Option<String>,
    /// The length of the month, in hours.
    pub month_hours: f64,
    /// The hours in which resources without a schedule are assumed to run; null if none are
    /// assumed.
    pub hours: Option<String>,
    /// The resources, sorted by account and name.
    pub resources: Vec<Row>,
    /// The totals, each resource by its best method.
    #[serde(flatten)]
    pub totals: Totals,
}

/// A resource, what it costs and what can be saved.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Row {
    /// The resource's reference, `ACCOUNT/KIND/ID`.
    pub resource: ResourceRef,
    /// The resource's name at the provider; not unique.
    pub name: String,
    /// The resource's plan and, for a database or a node pool, its number of nodes.
    pub size: String,
    /// The schedule that the resource follows; null if its hours are assumed or unknown.
    pub schedule: Option<ScheduleName>,
    /// How many hours of the month it is off; null if that is unknown, or if it is never stopped.
    pub off_hours: Option<f64>,
    /// The currency of the amounts; null if no amount is known.
    pub currency: Option<&'static str>,
    /// What the resource costs in the month if it runs throughout; null if that is unknown.
    #[serde(serialize_with = "known_cents")]
    #[schemars(with = "Option<f64>")]
    pub monthly: Option<Money>,
    /// Why Offhours never stops the resource, or else why `monthly` is unknown; null if neither.
    pub why: Option<String>,
    /// The methods by which the resource's kind can be stopped, the best one first.
    pub methods: Vec<MethodSaving>,
    /// The method that saves the most; null if none is known to save anything.
    pub best: Option<StopMethod>,
    /// What the best method saves in the month: 0 if no method saves anything, null if that is
    /// unknown.
    #[serde(serialize_with = "known_cents")]
    #[schemars(with = "Option<f64>")]
    pub saved: Option<Money>,
}

/// A builder of reports that judges one resource after another.
#[derive(Debug)]
pub struct Collector {
    month: Month,
    rows: Vec<Row>,
    totals: Sums,
}

impl Collector {
    #[must_use]
    pub fn new(month: Month) -> Self {
        Self { month, rows: Vec::new(), totals: Sums::default() }
    }

    pub fn add(&mut self, reference: &ResourceRef, candidate: Candidate<'_>) {
        let resource = candidate.resource;
        let (monthly, mut methods) = candidate.assess(self.month.seconds());
        let off = candidate.off.filter(|_| candidate.barred.is_none());
        if candidate.barred.is_some() {
            methods.clear();
        }
        let best = put_best_first(&mut methods);
        let is_unknown = |method: &MethodSaving| method.fits && method.saved.is_none();
        let any = methods.iter().find_map(|method| method.saved);
        let saved = match best {
            Some((_, saved)) => Some(saved),
            None if methods.iter().any(is_unknown) => None,
            // Nothing that fits saves anything.
            None => any.map(|saved| Money::zero(saved.currency())),
        };
        if candidate.barred.is_none() {
            let is_uncertain = best.is_some_and(|(method, _)| method == StopMethod::SmallestPlan);
            let full = monthly.as_ref().ok().copied();
            self.totals.add((full, saved), (saved.is_some(), is_uncertain));
        }
        let amount = monthly.as_ref().ok().copied().or(saved).or(any);
        self.rows.push(Row {
            resource: reference.clone(),
            name: resource.name.clone(),
            size: size(&resource.size),
            schedule: candidate.schedule.cloned(),
            off_hours: off.map(|off| hours(off.off())),
            currency: amount.map(|amount| amount.currency().code()),
            monthly: monthly.as_ref().ok().copied(),
            why: candidate.barred.map(str::to_owned).or(monthly.err()),
            best: best.map(|(method, _)| method),
            saved,
            methods,
        });
    }

    /// Returns the report on all of them. `label` names a calendar month; `assumed` gives the hours
    /// of what follows no schedule.
    #[must_use]
    pub fn report(mut self, label: Option<String>, assumed: Option<String>) -> Report {
        self.rows.sort_by(|one, next| {
            let key = |row: &Row| (row.resource.account.clone(), row.name.clone());
            key(one).cmp(&key(next)).then_with(|| one.resource.cmp(&next.resource))
        });
        Report {
            month: label,
            month_hours: hours(self.month.seconds()),
            hours: assumed,
            resources: self.rows,
            totals: self.totals.totals(),
        }
    }
}

/// Sorts the methods, the one that saves most first, and returns that one. `None` if none saves
/// anything.
fn put_best_first(methods: &mut [MethodSaving]) -> Option<(StopMethod, Money)> {
    let positive = |saved: &Money| !saved.is_negative() && !saved.is_zero();
    let rank = |method: &MethodSaving| method.saved.filter(positive);
    methods.sort_by(|one, next| {
        let more = match (rank(one), rank(next)) {
            (Some(one), Some(next)) => next.compare(one),
            (one, next) => Some(next.is_some().cmp(&one.is_some())),
        };
        more.unwrap_or(Ordering::Equal)
    });
    let best = methods.first()?;
    rank(best).map(|saved| (best.method, saved))
}

fn size(size: &Size) -> String {
    match size {
        Size::Machine(machine) => machine.plan.clone(),
        Size::Database(database) => format!("{} x {}", database.nodes, database.plan),
        Size::NodePool(pool) => format!("{} x {}", pool.count, pool.plan),
    }
}
