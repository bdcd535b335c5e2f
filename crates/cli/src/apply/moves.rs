//! Forecasts, before anything is applied, the outcome of stops that leave a plan or the machine.

use std::{collections::BTreeMap, fmt};

use domain::{
    configuration::Configuration, invocation::Question, money::Money, plan::Offer,
    prices::OwnPrices, stop_method::StopMethod,
};
use jiff::Timestamp;
use lifecycle::report::{AccountPreview, MoveTarget, StopObstacle, StopPreview};
use report::money::{Month, TimesOff, hibernated_month, known_cents, saved_on_smaller_plan};
use schemars::JsonSchema;
use serde::Serialize;

use crate::connection::Session;

/// The outcome of stops that leave a plan, a standby, or the machine itself.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Moves {
    /// One stop for each resource.
    pub stops: Vec<MovingStop>,
    /// For which accounts the outcome is unknown, and why.
    pub unknown: Vec<String>,
}

/// The outcome of a stop of one resource by its schedule.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct MovingStop {
    /// The stop, and where it leads.
    #[serde(flatten)]
    pub stop: StopPreview,
    /// What the stop saves in a month of 730.5 hours, by the provider's price list; null if that is
    /// unknown. If it is hibernated, this is the least: with a full disk.
    #[serde(serialize_with = "known_cents")]
    #[schemars(with = "Option<f64>")]
    pub saved: Option<Money>,
    /// The currency of `saved`; null if that is null.
    pub currency: Option<&'static str>,
}

/// Asks what the stops of a configuration lead to, if one of its schedules gives up a plan, a
/// standby, or the machine itself. Best effort: a failure is returned as unknown and never fails an
/// apply.
pub(crate) async fn forecast(
    session: &Session,
    configuration: &Configuration,
    now: Timestamp,
) -> Moves {
    if !StopMethod::all_in(configuration).any(StopMethod::is_chosen) {
        return Moves::default();
    }
    match ask(session, configuration).await {
        Ok(answers) => summed(answers, configuration, Month::Average(now)),
        Err(error) => Moves { stops: Vec::new(), unknown: vec![format!("{error:#}")] },
    }
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
    for AccountPreview { account, error, moves: stops, .. } in answers {
        moves.unknown.extend(error.map(|error| format!("{account}: {error}")));
        moves.stops.extend(stops.into_iter().map(|stop| {
            let off = times_off.get(&stop.schedule);
            let saved = off.and_then(|off| saved(&stop, off, &configuration.settings.prices));
            MovingStop { stop, saved, currency: saved.map(|one| one.currency().code()) }
        }));
    }
    moves
}

/// What a stop saves in a month; `None` if that is nothing, or unknown.
fn saved(stop: &StopPreview, off: &TimesOff, prices: &OwnPrices) -> Option<Money> {
    let kind = stop.resource.kind();
    let rate = |plan: &str, offer: &Offer| prices.replace(kind, plan, offer.rate());
    match &stop.to {
        MoveTarget::Smaller { plan, offer, present, has_kept_price: false } => {
            let (own, small) = (rate(&stop.from, present), rate(plan, offer));
            saved_on_smaller_plan(kind, own, small, off, stop.created_at)
        }
        MoveTarget::Snapshot { size, offer, per_gb_month, address_costs, .. } => {
            let own = rate(&size.plan, offer.as_ref()?);
            hibernated_month((kind, size), own, off, ((*per_gb_month)?, *address_costs))
        }
        MoveTarget::Smaller { has_kept_price: true, .. }
        | MoveTarget::Same { .. }
        | MoveTarget::Refused(_) => None,
    }
}

impl MovingStop {
    /// Reports whether the stop takes a snapshot of the machine and deletes it.
    pub(crate) fn hibernates(&self) -> bool {
        matches!(self.stop.to, MoveTarget::Snapshot { .. })
    }

    /// Why it could not come back, if it could not.
    pub(crate) fn refused(&self) -> Option<&StopObstacle> {
        let MoveTarget::Refused(obstacle) = &self.stop.to else { return None };
        Some(obstacle)
    }

    fn saves(&self, at_least: &str) -> String {
        match self.saved {
            None => "what that saves is unknown".to_owned(),
            Some(saved) if saved.is_negative() => {
                let more = Money::zero(saved.currency()).minus(saved).unwrap_or(saved);
                format!("costs {more} a month more")
            }
            Some(saved) => format!("saves {at_least}{saved} a month"),
        }
    }
}

/// `web (do-main/droplet/1), schedule office: resize from g-2vcpu-8gb to s-2vcpu-2gb, saves 30.24
/// USD a month`
impl fmt::Display for MovingStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StopPreview { resource, name, schedule, method, from, to, .. } = &self.stop;
        write!(f, "{name} ({resource}), schedule {schedule}: ")?;
        match to {
            MoveTarget::Smaller { plan, has_kept_price, .. } => {
                let saves = self.saves("");
                let price = if *has_kept_price { ": its own price is not in the API" } else { "" };
                write!(f, "{method} from {from} to {plan}, {saves}{price}")
            }
            MoveTarget::Snapshot { rehearsed, .. } => {
                write!(f, "hibernate from {from}, {}", self.saves("at least "))?;
                match rehearsed {
                    true => Ok(()),
                    false => write!(f, "; not before `offhours rehearse {resource}`"),
                }
            }
            MoveTarget::Same { reason } => {
                write!(f, "only switched off, and stays on {from}: {reason}")
            }
            MoveTarget::Refused(StopObstacle { reason, remedy }) => {
                write!(f, "no {method}, because {reason}: {remedy}")
            }
        }
    }
}
