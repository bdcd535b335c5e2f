//! What stopping could save in a month, before anything is stopped: pure, from the resources and
//! the prices that the providers list.
//!
//! Prices come from the providers' responses, and one that no response has is reported as unknown.
//! The exception is a reserved IPv4 address, whose price is a constant of `hibernation`.

pub(crate) mod bill;
mod hibernation;
mod methods;
mod month;

use std::collections::BTreeMap;

use domain::{
    AccountName, ResourceKind, ResourceRef, ScheduleName,
    money::{Currency, Money},
    resource::Size,
    stop_method::StopMethod,
};
use schemars::JsonSchema;
use serde::Serialize;

pub use hibernation::{HibernatedMonth, hibernated_month, snapshots_month};
use methods::{Assessment, Choice};
pub use methods::{Candidate, nodes_while_stopped, saved_on_smaller_plan};
pub use month::{Division, Month, TimesOff};

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
    /// What the resources cost and what can be saved, by currency.
    pub totals: Vec<Total>,
    /// Number of resources whose possible saving is known.
    pub known: usize,
    /// Number of resources that may be stopped.
    pub of: usize,
    /// What the figures rest on, and what they leave out.
    pub notes: Vec<&'static str>,
}

/// A resource, what it costs and what can be saved.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Row {
    /// The resource's reference, `ACCOUNT/KIND/ID`.
    pub resource: ResourceRef,
    /// The account that reaches the resource.
    pub account: AccountName,
    /// The kind of resource.
    pub kind: ResourceKind,
    /// The resource's name at the provider; not unique.
    pub name: String,
    /// The resource's plan and, for a database or a node pool, its number of nodes.
    pub size: String,
    /// The region or location.
    pub region: String,
    /// The schedule that the resource follows; null if its hours are assumed or unknown.
    pub schedule: Option<ScheduleName>,
    /// How many hours of the month it is off; null if that is unknown, or if it is never stopped.
    pub off_hours: Option<f64>,
    /// The currency of the amounts; null if no amount is known.
    pub currency: Option<&'static str>,
    /// What the resource costs in the month if it runs throughout; null if that is unknown.
    pub monthly: Option<f64>,
    /// Why `monthly` is unknown; null if it is known.
    pub monthly_unknown: Option<String>,
    /// Why Offhours never stops the resource; null if it may.
    pub never_stopped: Option<String>,
    /// The methods by which the resource's kind can be stopped, the best one first.
    pub methods: Vec<Method>,
    /// The method that saves the most; null if none is known to save anything.
    pub best: Option<StopMethod>,
    /// What the best method saves in the month: 0 if no method saves anything, null if that is
    /// unknown.
    pub saved: Option<f64>,
}

/// A method by which a resource could be stopped.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Method {
    /// The stop method.
    pub method: StopMethod,
    /// The plan or size that the resource would be stopped on; null if it keeps both.
    pub to: Option<String>,
    /// Whether the resource can be stopped this way.
    pub fits: bool,
    /// What the method saves in the month; null if it does not fit, or if that is unknown.
    pub saved: Option<f64>,
    /// What speaks against the method, why nothing is saved or known, or what the figure rests on;
    /// null if there is nothing to say.
    pub why: Option<String>,
    /// What to do about that; null if there is nothing.
    pub remedy: Option<&'static str>,
}

/// What all resources with one currency cost, and what can be saved.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Total {
    /// The currency.
    pub currency: &'static str,
    /// The sum of all known monthly costs.
    pub monthly: f64,
    /// The sum of all known savings, each by the resource's best method.
    pub saved: f64,
    /// The part of `saved` that depends on DigitalOcean accepting smaller plans for databases.
    pub uncertain: f64,
    /// Number of resources whose saving is known.
    pub known: usize,
}

const LISTS: &str = "Prices are those that the providers list now, without taxes. Discounts, and old \
                     prices that an account has kept, are in no API.";
const DIGITALOCEAN: &str = "DigitalOcean bills by the second, and of each Droplet, node and database at \
                            most 672 hours of a month: of one that is resized the dearest, as this \
                            reads its pages.";
const HETZNER: &str = "Hetzner bills each hour that was begun, and a month at most at its monthly price: \
                       of a server that is rescaled those of the dearest type that it has in them, as \
                       this reads its pages. They are counted from its creation, so that parts of an \
                       hour at either end of a time off are billed as running.";
const SWITCHING: &str = "The minutes that switching takes are left out, and so are volumes, addresses, \
                         backups and traffic, which cost the same throughout.";
const HIBERNATING: &str = "What hibernate saves is the least: with a disk that is full, whose copy takes as \
                           long as it may, and with two snapshots of it. Nightly, up to four are there for \
                           three days, each of what the disk holds. What is around a machine may forbid it, \
                           and a Droplet's reserved address costs 0.01 USD an hour: `offhours rehearse REF` \
                           says so, and no machine is hibernated that a person has not seen come back.";
const DATABASES: &str = "DigitalOcean's API has no prices of databases: --prices FILE gives them.";
const SMALL_NOW: &str = "What is stopped on a smaller plan now is shown with that plan.";

/// A builder of reports that judges one resource after another.
#[derive(Debug)]
pub struct Collector {
    month: Month,
    rows: Vec<(Row, Sums)>,
}

/// The parts of a row that are added up, without rounding.
#[derive(Debug, Clone, Copy)]
struct Sums {
    currency: Option<Currency>,
    monthly: Option<Money>,
    saved: Option<Money>,
    /// Whether the provider may refuse the best method.
    is_uncertain: bool,
}

impl Collector {
    /// Creates a collector for a month.
    #[must_use]
    pub fn new(month: Month) -> Self {
        Self { month, rows: Vec::new() }
    }

    /// Judges one resource and adds it.
    pub fn add(&mut self, reference: &ResourceRef, candidate: Candidate<'_>) {
        let resource = candidate.resource;
        let mut assessment = candidate.assess(self.month.seconds());
        if candidate.barred.is_some() {
            assessment.choices.clear();
        }
        let may_stop = candidate.month().filter(|_| candidate.barred.is_none());
        let best = put_best_first(&mut assessment.choices);
        let sums = Sums::of(&assessment, best);
        let row = Row {
            resource: reference.clone(),
            account: reference.account.clone(),
            kind: resource.kind(),
            name: resource.name.clone(),
            size: size(&resource.size),
            region: resource.region.clone(),
            schedule: candidate.schedule.cloned(),
            off_hours: may_stop.map(|month| hours(month.off)),
            currency: sums.currency.map(Currency::code),
            monthly: assessment.monthly.map(amount),
            monthly_unknown: assessment.why,
            never_stopped: candidate.barred.map(str::to_owned),
            best: best.map(|(method, _)| method),
            saved: sums.saved.map(amount),
            methods: assessment.choices.into_iter().map(Method::from).collect(),
        };
        self.rows.push((row, sums));
    }

    /// Returns the report on all of them. `label` names a calendar month; `assumed` gives the hours
    /// of what follows no schedule.
    #[must_use]
    pub fn report(mut self, label: Option<String>, assumed: Option<String>) -> Report {
        self.rows.sort_by(|(one, _), (next, _)| {
            let key = |row: &Row| (row.account.clone(), row.name.clone(), row.resource.clone());
            key(one).cmp(&key(next))
        });
        let totals = self.totals();
        let may_be_stopped = || {
            let rows = self.rows.iter();
            rows.filter(|(row, _)| row.never_stopped.is_none())
        };
        let known = may_be_stopped().filter(|(_, sums)| sums.saved.is_some());
        let (known, of) = (known.count(), may_be_stopped().count());
        let rows: Vec<Row> = self.rows.into_iter().map(|(row, _)| row).collect();
        Report {
            month: label,
            month_hours: hours(self.month.seconds()),
            hours: assumed,
            notes: notes(&rows),
            resources: rows,
            totals,
            known,
            of,
        }
    }

    fn totals(&self) -> Vec<Total> {
        let mut by_currency = BTreeMap::<Currency, Vec<Sums>>::new();
        for (row, sums) in &self.rows {
            if let Some(currency) = sums.currency
                && row.never_stopped.is_none()
            {
                by_currency.entry(currency).or_default().push(*sums);
            }
        }
        let total = |(currency, of): (Currency, Vec<Sums>)| {
            let sum = |amounts: &dyn Fn(&Sums) -> Option<Money>| {
                let amounts = of.iter().filter_map(amounts);
                let zero = Money::zero(currency);
                amounts.fold(zero, |sum, one| sum.plus(one).unwrap_or(sum))
            };
            Total {
                currency: currency.code(),
                monthly: amount(sum(&|sums| sums.monthly)),
                saved: amount(sum(&|sums| sums.saved)),
                uncertain: amount(sum(&|sums| sums.saved.filter(|_| sums.is_uncertain))),
                known: of.iter().filter(|sums| sums.saved.is_some()).count(),
            }
        };
        by_currency.into_iter().map(total).collect()
    }
}

impl Sums {
    fn of(assessment: &Assessment, best: Option<(StopMethod, Money)>) -> Self {
        let choices = &assessment.choices;
        let is_unknown = |choice: &Choice| choice.fits && choice.saved.is_none();
        let saved = match best {
            Some((_, saved)) => Some(saved),
            None if choices.iter().any(is_unknown) => None,
            // Nothing that fits saves anything.
            None => choices
                .iter()
                .find_map(|choice| choice.saved)
                .map(|saved| Money::zero(saved.currency())),
        };
        let any = assessment.monthly.or(saved);
        let of_choices = || choices.iter().find_map(|choice| choice.saved);
        Self {
            currency: any.or_else(of_choices).map(Money::currency),
            monthly: assessment.monthly,
            saved,
            is_uncertain: best.is_some_and(|(method, _)| method == StopMethod::SmallestPlan),
        }
    }
}

/// Sorts the methods, the one that saves most first, and returns that one. `None` if none saves
/// anything.
fn put_best_first(choices: &mut [Choice]) -> Option<(StopMethod, Money)> {
    let positive = |saved: &Money| !saved.is_negative() && !saved.is_zero();
    let rank = |choice: &Choice| choice.saved.filter(positive);
    choices.sort_by(|one, next| {
        let more = match (rank(one), rank(next)) {
            (Some(one), Some(next)) => next.compare(one),
            (one, next) => Some(next.is_some().cmp(&one.is_some())),
        };
        more.unwrap_or(std::cmp::Ordering::Equal)
    });
    let best = choices.first()?;
    rank(best).map(|saved| (best.method, saved))
}

fn notes(rows: &[Row]) -> Vec<&'static str> {
    let has = |kinds: &[ResourceKind]| rows.iter().any(|row| kinds.contains(&row.kind));
    let lacks_price =
        |row: &Row| row.kind == ResourceKind::Database && row.monthly_unknown.is_some();
    let notes = [
        (true, LISTS),
        (
            has(&[ResourceKind::Droplet, ResourceKind::NodePool, ResourceKind::Database]),
            DIGITALOCEAN,
        ),
        (has(&[ResourceKind::Server]), HETZNER),
        (true, SWITCHING),
        (has(&[ResourceKind::Droplet, ResourceKind::Server]), HIBERNATING),
        (rows.iter().any(lacks_price), DATABASES),
        (true, SMALL_NOW),
    ];
    let apply = notes.into_iter().filter(|(applies, _)| *applies);
    apply.map(|(_, note)| note).collect()
}

fn size(size: &Size) -> String {
    match size {
        Size::Machine(machine) => machine.plan.clone(),
        Size::Database(database) => format!("{} x {}", database.nodes, database.plan),
        Size::NodePool(pool) => format!("{} x {}", pool.count, pool.plan),
    }
}

impl From<Choice> for Method {
    fn from(choice: Choice) -> Self {
        Self {
            method: choice.method,
            to: choice.to,
            fits: choice.fits,
            saved: choice.saved.map(amount),
            why: choice.why,
            remedy: choice.remedy,
        }
    }
}

/// Returns an amount as a number with two digits, for programs.
#[must_use]
pub fn amount(money: Money) -> f64 {
    money.to_cents().parse().unwrap_or_default()
}

/// Converts seconds to hours, to two digits.
#[must_use]
pub fn hours(seconds: u64) -> f64 {
    let hundredths = (seconds.saturating_mul(100) + 1800) / 3600;
    format!("{}.{:02}", hundredths / 100, hundredths % 100).parse().unwrap_or_default()
}

#[cfg(test)]
mod tests;
