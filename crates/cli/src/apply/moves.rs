//! Forecasts, before anything is applied, the outcome of stops that leave a plan or the machine.

use std::collections::BTreeMap;

use domain::{
    AccountName, ResourceRef, ScheduleName,
    configuration::{Account, AccountKind, Configuration},
    invocation::Question,
    money::Money,
    prices::OwnPrices,
    stop_method::StopMethod,
};
use jiff::Timestamp;
use lifecycle::report::{AccountPreview, MoveTarget, StopPreview};
use report::money::{Month, TimesOff, hibernated_month, saved_on_smaller_plan};
use schemars::JsonSchema;
use serde::Serialize;

use crate::connection::Session;

/// The outcome of stops that leave a plan, a standby, or the machine itself.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Moves {
    /// One stop for each resource.
    pub stops: Vec<MovingStop>,
    /// The accounts for which the outcome is unknown.
    pub unknown: Vec<UnknownMoves>,
}

/// The outcome of a stop of one resource by its schedule.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MovingStop {
    /// The resource.
    pub resource: ResourceRef,
    /// Its name at the provider; not unique.
    pub name: String,
    /// The schedule that it follows.
    pub schedule: ScheduleName,
    /// How its schedule stops it.
    pub method: StopMethod,
    /// The plan to which it comes back.
    pub from: String,
    /// The plan on which it is stopped; null if it is only switched off, if it is hibernated, or if
    /// the stop is refused.
    pub to: Option<String>,
    /// What the stop saves in a month of 730.5 hours, by the provider's price list; null if that is
    /// unknown. If it is hibernated, this is the least: with a full disk.
    pub saved: Option<f64>,
    /// The currency of `saved`; null if that is null.
    pub currency: Option<&'static str>,
    /// Why it is only switched off, or why the saving is unknown; null otherwise.
    pub why: Option<String>,
    /// Why it could not come back; null if it could. An apply that newly asks for such a stop is
    /// refused.
    pub refused: Option<String>,
    /// What to do about the refusal; null if there is none.
    pub remedy: Option<String>,
    /// Whether a person has to hibernate and wake it once before its schedule may.
    pub needs_rehearsal: bool,
    /// What is restored when a hibernated machine is recreated.
    pub put_back: Vec<String>,
    /// What is lost when a hibernated machine is recreated.
    pub lost: Vec<String>,
    /// The exact saving.
    #[serde(skip)]
    amount: Option<Money>,
}

/// An account for which the outcome could not be worked out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnknownMoves {
    /// The account; null if this concerns all of them.
    pub account: Option<AccountName>,
    /// Why the outcome is unknown.
    pub error: String,
}

/// Asks what the stops of a configuration lead to, if one of its schedules gives up a plan, a
/// standby, or the machine itself. Best effort: a failure is returned as unknown and never fails an
/// apply.
pub async fn forecast(session: &Session, configuration: &Configuration, now: Timestamp) -> Moves {
    if !has_chosen_stop_method(configuration) {
        return Moves::default();
    }
    match ask(session, configuration).await {
        Ok(answers) => summed(answers, configuration, Month::Average(now)),
        Err(error) => Moves {
            stops: Vec::new(),
            unknown: vec![UnknownMoves { account: None, error: format!("{error:#}") }],
        },
    }
}

fn has_chosen_stop_method(configuration: &Configuration) -> bool {
    let kinds = configuration.accounts.values().map(Account::kind);
    let mut kinds = kinds.flat_map(AccountKind::kinds);
    kinds.any(|kind| {
        let mut rules = configuration.schedules.values();
        rules.any(|rule| StopMethod::of(*kind, &rule.policy).is_chosen())
    })
}

async fn ask(
    session: &Session,
    configuration: &Configuration,
) -> anyhow::Result<Vec<AccountPreview>> {
    let question = Question::Moves(Box::new(configuration.clone()));
    Ok(session.functions()?.ask(question).await?.moves)
}

fn summed(answers: Vec<AccountPreview>, configuration: &Configuration, month: Month) -> Moves {
    let rules = configuration.schedules.iter();
    let times_off: BTreeMap<_, _> =
        rules.map(|(name, rule)| (name, month.times_off(&rule.schedule))).collect();
    let mut moves = Moves::default();
    for answer in answers {
        moves.unknown.extend(
            answer.error.map(|error| UnknownMoves { account: Some(answer.account), error }),
        );
        let stops = answer.moves.into_iter();
        moves.stops.extend(stops.map(|one| {
            let off = times_off.get(&one.schedule);
            MovingStop::of(one, off, &configuration.settings.prices)
        }));
    }
    moves
}

impl MovingStop {
    fn of(one: StopPreview, off: Option<&TimesOff>, prices: &OwnPrices) -> Self {
        let (kind, created_at) = (one.resource.kind(), one.created_at);
        let mut stop = Self {
            resource: one.resource,
            name: one.name,
            schedule: one.schedule,
            method: one.method,
            from: one.from,
            to: None,
            saved: None,
            currency: None,
            why: None,
            refused: None,
            remedy: None,
            needs_rehearsal: false,
            put_back: Vec::new(),
            lost: Vec::new(),
            amount: None,
        };
        match one.to {
            MoveTarget::Smaller { plan, has_kept_price: true, .. } => {
                stop.to = Some(plan);
                stop.why = Some("its own price is not in the API".to_owned());
            }
            MoveTarget::Smaller { plan, offer, present, has_kept_price: false } => {
                let own = prices.replace(kind, &stop.from, present.rate());
                let small = prices.replace(kind, &plan, offer.rate());
                stop.to = Some(plan);
                stop.saves(
                    off.and_then(|off| saved_on_smaller_plan(kind, own, small, off, created_at)),
                );
            }
            MoveTarget::Snapshot {
                size,
                offer,
                per_gb_month,
                address_costs,
                rehearsed,
                put_back,
                lost,
            } => {
                (stop.put_back, stop.lost) = (put_back, lost);
                stop.needs_rehearsal = !rehearsed;
                let known = offer.as_ref().zip(per_gb_month).zip(off);
                let saved = known.and_then(|((offer, per_gb_month), off)| {
                    let own = prices.replace(kind, &size.plan, offer.rate());
                    hibernated_month((kind, &size), own, off, (per_gb_month, address_costs))
                });
                stop.saves(saved);
            }
            MoveTarget::Same { reason } => stop.why = Some(reason),
            MoveTarget::Refused(refusal) => {
                stop.refused = Some(refusal.reason);
                stop.remedy = Some(refusal.remedy);
            }
        }
        stop
    }

    fn saves(&mut self, amount: Option<Money>) {
        self.amount = amount;
        self.saved = amount.and_then(|one| one.to_cents().parse().ok());
        self.currency = amount.map(|one| one.currency().code());
    }

    /// Reports whether the stop takes a snapshot of the machine and deletes it.
    #[must_use]
    pub fn hibernates(&self) -> bool {
        self.method == StopMethod::Hibernate && self.refused.is_none() && self.why.is_none()
    }

    /// Says that it is hibernated, what that saves, and what has to be done first.
    fn hibernated(&self) -> String {
        let saves = match self.amount {
            None => "what that saves is unknown".to_owned(),
            Some(amount) if amount.is_negative() => {
                let more = Money::zero(amount.currency()).minus(amount);
                format!("could cost {} a month more", more.unwrap_or(amount))
            }
            Some(amount) => format!("saves at least {amount} a month"),
        };
        let first = if self.needs_rehearsal {
            let resource = &self.resource;
            format!("; not before `offhours rehearse {resource}`")
        } else {
            String::new()
        };
        format!("hibernate from {}, {saves}{first}", self.from)
    }

    /// Says for people what the stop leads to; `None` if it is refused.
    ///
    /// `web (do-main/droplet/1), schedule office: resize from g-2vcpu-8gb to s-2vcpu-2gb, saves
    /// 30.24 USD a month`
    #[must_use]
    pub fn description(&self) -> Option<String> {
        if self.refused.is_some() {
            return None;
        }
        if self.hibernates() {
            return Some(format!("{}: {}", self.subject(), self.hibernated()));
        }
        let (method, from) = (self.method, &self.from);
        let why = self.why.as_deref().unwrap_or("it has no price");
        let what = match (&self.to, self.amount) {
            (None, _) => format!("only switched off, and stays on {from}: {why}"),
            (Some(to), None) => {
                format!("{method} from {from} to {to}, and what that saves is unknown: {why}")
            }
            (Some(to), Some(saved)) if saved.is_negative() => {
                let more = Money::zero(saved.currency()).minus(saved).unwrap_or(saved);
                format!("{method} from {from} to {to}, costs {more} a month more: off too little")
            }
            (Some(to), Some(saved)) => {
                format!("{method} from {from} to {to}, saves {saved} a month")
            }
        };
        Some(format!("{}: {what}", self.subject()))
    }

    /// Says why it could not come back and what to do about that; `None` if it could.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let reason = self.refused.as_ref()?;
        let remedy = self.remedy.as_deref().unwrap_or_default();
        let (subject, method) = (self.subject(), self.method);
        Some(format!("{subject}: no {method}, because {reason}: {remedy}"))
    }

    fn subject(&self) -> String {
        format!("{} ({}), schedule {}", self.name, self.resource, self.schedule)
    }
}
