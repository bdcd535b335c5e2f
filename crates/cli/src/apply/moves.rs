//! What stops that leave a plan, or the machine itself, will lead to, before anything is applied.

use std::collections::BTreeMap;

use domain::{
    AccountName, ResourceRef, ScheduleName,
    configuration::{Account, AccountKind, Configuration},
    invocation::Question,
    money::Money,
    stop_method::StopMethod,
};
use jiff::Timestamp;
use lifecycle::report::{AccountMoves, MoveTarget, PlanMove};
use report::savings::{Month, TimesOff, hibernated, saved_on_smaller_plan};
use schemars::JsonSchema;
use serde::Serialize;

use crate::connection::Session;

/// What stops lead to that leave a plan, a standby, or the machine itself.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Moves {
    /// By resource.
    pub stops: Vec<MovingStop>,
    /// Where that is unknown.
    pub unknown: Vec<UnknownMoves>,
}

/// What a stop by its schedule will make of one resource.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MovingStop {
    /// Which resource.
    pub resource: ResourceRef,
    /// Its name at the provider; not unique.
    pub name: String,
    /// The schedule that it follows.
    pub schedule: ScheduleName,
    /// How that has it stopped.
    pub method: StopMethod,
    /// The plan to which it comes back.
    pub from: String,
    /// The plan on which it stops; null where it is only switched off, where it is hibernated, or where
    /// the stop is refused.
    pub to: Option<String>,
    /// What that saves of a month of 730.5 hours, by the provider's list; null where that is not
    /// known. Where it is hibernated, the least: with a disk that is full.
    pub saved: Option<f64>,
    /// In which currency.
    pub currency: Option<&'static str>,
    /// Why it is only switched off, or why it is not known what is saved.
    pub why: Option<String>,
    /// Why it could not come back, for which the apply is refused.
    pub refused: Option<String>,
    /// What to do about that.
    pub remedy: Option<String>,
    /// Whether a person has to hibernate and wake it once, before its schedule does.
    pub needs_rehearsal: bool,
    /// What is saved, exactly.
    #[serde(skip)]
    amount: Option<Money>,
}

/// What could not be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnknownMoves {
    /// About which account; null for all.
    pub account: Option<AccountName>,
    /// Why not.
    pub error: String,
}

/// Asks what the stops of a configuration lead to, where one of its schedules leaves a plan, a standby,
/// or the machine itself. No failure is passed on: an apply does not depend on it.
pub async fn foresee(session: &Session, configuration: &Configuration, now: Timestamp) -> Moves {
    if !leaves_something(configuration) {
        return Moves::default();
    }
    match ask(session, configuration).await {
        Ok(answers) => summed(answers, configuration, Month::Average(now)),
        Err(error) => Moves {
            stops: Vec::new(),
            unknown: vec![UnknownMoves {
                account: None,
                error: format!("{error:#}"),
            }],
        },
    }
}

fn leaves_something(configuration: &Configuration) -> bool {
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
) -> anyhow::Result<Vec<AccountMoves>> {
    let question = Question::Moves(Box::new(configuration.clone()));
    Ok(session.functions()?.ask(question).await?.moves)
}

fn summed(answers: Vec<AccountMoves>, configuration: &Configuration, month: Month) -> Moves {
    let rules = configuration.schedules.iter();
    let times_off: BTreeMap<_, _> = rules
        .map(|(name, rule)| (name, month.times_off(&rule.schedule)))
        .collect();
    let mut moves = Moves::default();
    for answer in answers {
        moves.unknown.extend(answer.error.map(|error| UnknownMoves {
            account: Some(answer.account),
            error,
        }));
        let stops = answer.moves.into_iter();
        moves.stops.extend(stops.map(|one| {
            let off = times_off.get(&one.schedule);
            MovingStop::of(one, off)
        }));
    }
    moves
}

impl MovingStop {
    fn of(one: PlanMove, off: Option<&TimesOff>) -> Self {
        let kind = one.resource.kind();
        let month = off.map(|off| off.division(one.created_at));
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
            amount: None,
        };
        match one.to {
            MoveTarget::Smaller {
                plan,
                has_kept_price: true,
                ..
            } => {
                stop.to = Some(plan);
                stop.why = Some("its own price is not in the API".to_owned());
            }
            MoveTarget::Smaller {
                plan,
                offer,
                present,
                has_kept_price: false,
            } => {
                stop.to = Some(plan);
                let saved = |month| saved_on_smaller_plan(kind, &present, &offer, month);
                stop.saves(month.and_then(saved));
            }
            MoveTarget::Snapshot {
                size,
                offer,
                per_gb_month,
                address_costs,
                rehearsed,
            } => {
                stop.needs_rehearsal = !rehearsed;
                let known = offer.as_ref().zip(per_gb_month).zip(off);
                let saved = known.and_then(|((offer, per_gb_month), off)| {
                    hibernated((kind, &size), offer, off, (per_gb_month, address_costs))
                });
                stop.saves(saved.map(|month| month.saved));
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

    /// Whether the stop makes a snapshot of it and deletes it.
    #[must_use]
    pub fn hibernates(&self) -> bool {
        self.method == StopMethod::Hibernate && self.refused.is_none() && self.why.is_none()
    }

    /// That it is hibernated, what that saves, and what has to be done before.
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
            format!("; not before `offhours rehearse {resource} --cycle`")
        } else {
            String::new()
        };
        format!("hibernate from {}, {saves}{first}", self.from)
    }

    /// What it leads to, for people; none where it is refused.
    ///
    /// `web (do-main/droplet/1), schedule office: resize from g-2vcpu-8gb to s-2vcpu-2gb, saves
    /// 30.24 USD a month`
    #[must_use]
    pub fn foretold(&self) -> Option<String> {
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

    /// Why it could not come back, and what to do about that; none where it could.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let reason = self.refused.as_ref()?;
        let remedy = self.remedy.as_deref().unwrap_or_default();
        let (subject, method) = (self.subject(), self.method);
        Some(format!(
            "{subject}: no {method}, because {reason}: {remedy}"
        ))
    }

    fn subject(&self) -> String {
        format!(
            "{} ({}), schedule {}",
            self.name, self.resource, self.schedule
        )
    }
}
