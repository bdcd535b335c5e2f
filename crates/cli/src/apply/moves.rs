//! What stops that leave a plan will lead to, before anything is applied.

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
use report::savings::{Division, Month, saved_on_smaller_plan};
use schemars::JsonSchema;
use serde::Serialize;

use crate::connection::Session;

/// What stops lead to that leave a plan or a standby.
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
    /// The plan on which it stops; null where it is only switched off, or where the stop is refused.
    pub to: Option<String>,
    /// What that saves of a month of 730.5 hours, by the provider's list; null where that is not
    /// known.
    pub saved: Option<f64>,
    /// In which currency.
    pub currency: Option<&'static str>,
    /// Why it is only switched off, or why it is not known what is saved.
    pub why: Option<String>,
    /// Why it could not come back, for which the apply is refused.
    pub refused: Option<String>,
    /// What to do about that.
    pub remedy: Option<String>,
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

/// Asks what the stops of a configuration lead to, where one of its schedules leaves a plan or a
/// standby. No failure is passed on: an apply does not depend on it.
pub async fn foresee(session: &Session, configuration: &Configuration, now: Timestamp) -> Moves {
    if !leaves_a_plan(configuration) {
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

fn leaves_a_plan(configuration: &Configuration) -> bool {
    let kinds = configuration.accounts.values().map(Account::kind);
    let mut kinds = kinds.flat_map(AccountKind::kinds);
    kinds.any(|kind| {
        let mut rules = configuration.schedules.values();
        rules.any(|rule| StopMethod::of(*kind, &rule.policy).leaves_something())
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
            let month = off.map(|off| off.division(one.created_at));
            MovingStop::of(one, month)
        }));
    }
    moves
}

impl MovingStop {
    fn of(one: PlanMove, month: Option<Division>) -> Self {
        let kind = one.resource.kind();
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
                stop.amount =
                    month.and_then(|month| saved_on_smaller_plan(kind, &present, &offer, month));
                stop.saved = stop.amount.and_then(|one| one.to_cents().parse().ok());
                stop.currency = stop.amount.map(|one| one.currency().code());
            }
            MoveTarget::Same { reason } => stop.why = Some(reason),
            MoveTarget::Refused(refusal) => {
                stop.refused = Some(refusal.reason);
                stop.remedy = Some(refusal.remedy);
            }
        }
        stop
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
