//! What stopping could save of a month, before anything is stopped: pure, from what the providers
//! list and what their price lists say.
//!
//! Nothing here is remembered: prices come from the providers' answers, and those that no answer has
//! are called unknown.

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

pub use hibernation::{Hibernated, hibernated, snapshots_month};
pub use methods::{Candidate, nodes_while_stopped, saved_on_smaller_plan};
use methods::{Choice, Judged};
pub use month::{Division, Month, TimesOff};

/// What stopping could save, as programs read it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Report {
    /// The calendar month; null for one of 730.5 hours.
    pub month: Option<String>,
    /// How long it is.
    pub month_hours: f64,
    /// The hours in which things are taken to run that follow no schedule; null if none are assumed.
    pub hours: Option<String>,
    /// The resources, by account and name.
    pub resources: Vec<Row>,
    /// What they cost and what can be saved, by currency.
    pub totals: Vec<Total>,
    /// Of how many resources it is known what can be saved.
    pub known: usize,
    /// How many there are that may be stopped.
    pub of: usize,
    /// On what the figures rest, and what they leave out.
    pub notes: Vec<&'static str>,
}

/// One resource.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Row {
    /// `ACCOUNT/KIND/ID`.
    pub resource: ResourceRef,
    /// The account that reaches it.
    pub account: AccountName,
    /// What it is.
    pub kind: ResourceKind,
    /// Its name at the provider; not unique.
    pub name: String,
    /// Its plan, and for a database or a pool how many nodes.
    pub size: String,
    /// Region or location.
    pub region: String,
    /// The schedule that it follows; null where its hours are assumed, or not known.
    pub schedule: Option<ScheduleName>,
    /// For how long of the month it is off; null where that is not known.
    pub off_hours: Option<f64>,
    /// The currency of its amounts.
    pub currency: Option<&'static str>,
    /// What it costs in the month, running throughout; null where that is not known.
    pub monthly: Option<f64>,
    /// Why that is not known.
    pub monthly_unknown: Option<String>,
    /// Why Offhours never stops it; null where it may.
    pub never_stopped: Option<String>,
    /// Each method by which its kind can be stopped, the best one first.
    pub methods: Vec<Method>,
    /// The method that saves most; null if none is known to save anything.
    pub best: Option<StopMethod>,
    /// What the best method saves of the month: 0 if no method saves anything, null if that is not
    /// known.
    pub saved: Option<f64>,
}

/// One method by which a resource could be stopped.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Method {
    /// Which.
    pub method: StopMethod,
    /// What the resource would be stopped to: a plan, or a size; null where it keeps both.
    pub to: Option<String>,
    /// Whether the resource can be stopped so.
    pub fits: bool,
    /// What that saves of the month; null where it does not fit, or where that is not known.
    pub saved: Option<f64>,
    /// What speaks against it, or why nothing is saved or known.
    pub why: Option<String>,
    /// What to do about that.
    pub remedy: Option<&'static str>,
}

/// What all resources of one currency cost and could save.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Total {
    /// The currency.
    pub currency: &'static str,
    /// What those cost of which that is known.
    pub monthly: f64,
    /// What the best method of each saves, where that is known.
    pub saved: f64,
    /// The part of that which depends on `DigitalOcean` making plans of databases smaller.
    pub uncertain: f64,
    /// How many resources that is known of.
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

/// Works out the resources one by one.
#[derive(Debug)]
pub struct Collector {
    month: Month,
    rows: Vec<(Row, Sums)>,
}

/// What of a row is added up, exactly.
#[derive(Debug, Clone, Copy)]
struct Sums {
    currency: Option<Currency>,
    monthly: Option<Money>,
    saved: Option<Money>,
    /// Whether the provider may refuse the best method.
    is_uncertain: bool,
}

impl Collector {
    /// A collector for a month.
    #[must_use]
    pub fn new(month: Month) -> Self {
        Self {
            month,
            rows: Vec::new(),
        }
    }

    /// Works out one resource.
    pub fn add(&mut self, reference: &ResourceRef, candidate: Candidate<'_>) {
        let resource = candidate.resource;
        let mut judged = candidate.judged(self.month.seconds());
        if candidate.barred.is_some() {
            judged.choices.clear();
        }
        let may_stop = candidate.month().filter(|_| candidate.barred.is_none());
        let best = put_best_first(&mut judged.choices);
        let sums = Sums::of(&judged, best);
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
            monthly: judged.monthly.map(amount),
            monthly_unknown: judged.why,
            never_stopped: candidate.barred.map(str::to_owned),
            best: best.map(|(method, _)| method),
            saved: sums.saved.map(amount),
            methods: judged.choices.into_iter().map(Method::from).collect(),
        };
        self.rows.push((row, sums));
    }

    /// The report on all of them. `label` names a calendar month; `assumed` are the hours of what
    /// follows no schedule.
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
    fn of(judged: &Judged, best: Option<(StopMethod, Money)>) -> Self {
        let choices = &judged.choices;
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
        let any = judged.monthly.or(saved);
        let of_choices = || choices.iter().find_map(|choice| choice.saved);
        Self {
            currency: any.or_else(of_choices).map(Money::currency),
            monthly: judged.monthly,
            saved,
            is_uncertain: best.is_some_and(|(method, _)| method == StopMethod::SmallestPlan),
        }
    }
}

/// Puts the method that saves most before the others; none if none saves anything.
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
            has(&[
                ResourceKind::Droplet,
                ResourceKind::NodePool,
                ResourceKind::Database,
            ]),
            DIGITALOCEAN,
        ),
        (has(&[ResourceKind::Server]), HETZNER),
        (true, SWITCHING),
        (
            has(&[ResourceKind::Droplet, ResourceKind::Server]),
            HIBERNATING,
        ),
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

/// An amount to two digits, as programs read numbers.
#[must_use]
pub fn amount(money: Money) -> f64 {
    money.to_cents().parse().unwrap_or_default()
}

/// Seconds in hours, to two digits.
#[must_use]
pub fn hours(seconds: u64) -> f64 {
    let hundredths = (seconds.saturating_mul(100) + 1800) / 3600;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
        .parse()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
