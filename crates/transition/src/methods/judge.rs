//! Where a stop leads: judged once, for a claim and for what is shown before a configuration is
//! applied.

use std::fmt;

use domain::{
    configuration::Account,
    hibernation::{self, Surroundings},
    plan::{Catalog, Machine, MoveRefusal, StopPlan},
    record::Direction,
    resource::{MachineSize, SavedState},
};
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use super::{expected, rules};
use crate::view::View;

/// What a stop is judged by, besides the resource, its record and the configuration.
#[derive(Debug, Clone, Copy)]
pub struct Grounds<'a> {
    /// The plans that are for sale for machines.
    pub catalog: &'a Catalog,
    /// The smallest plan for sale for the database; `None` if there is none.
    pub smallest: Option<&'a str>,
    /// Whether the machine was created by a Droplet autoscale pool.
    pub autoscaled: bool,
    /// What is around the machine; `None` if it was not read.
    pub around: Option<&'a Surroundings>,
    /// How many machines of the account are hibernated.
    pub hibernated: u64,
    /// The time until the next start; `None` if it does not matter, or if there is none.
    pub off: Option<SignedDuration>,
    /// The longest time for which its schedule runs it; `None` if that does not matter, or if it has
    /// no end.
    pub longest_run: Option<SignedDuration>,
    /// Whether one of its snapshots must have been seen to boot.
    pub must_be_rehearsed: bool,
}

impl Default for Grounds<'_> {
    fn default() -> Self {
        Self {
            catalog: Catalog::none(),
            smallest: None,
            autoscaled: false,
            around: None,
            hibernated: 0,
            off: None,
            longest_run: None,
            must_be_rehearsed: false,
        }
    }
}

impl Grounds<'_> {
    pub(super) fn machine<'m>(&self, view: View<'m>, size: &'m MachineSize) -> Machine<'m> {
        let account = view.rules.configuration.accounts.get(&view.record.reference.account);
        let cloud = account.and_then(Account::cloud);
        Machine {
            resource: view.seen.resource,
            size,
            autoscaled: self.autoscaled,
            accepts_new_prices: cloud.is_some_and(|cloud| cloud.accept_new_prices),
        }
    }
}

/// Where a stop leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination<'a> {
    /// To being switched off, and no further, with the reasons if more was asked for.
    Off(Vec<StopObstacle>),
    /// To a plan that costs less, and to the size that the machine has on it.
    Smaller { plan: StopPlan<'a>, size: SavedState },
    /// To a size that needs no plan to be for sale, or to the smallest that is.
    Size(SavedState),
    /// To a snapshot, from which the machine is recreated with this SSH key.
    Snapshot { ssh_key: String },
    /// Nowhere: the resource could not come back.
    Refused(Vec<StopObstacle>),
}

/// Judges where a stop leads.
#[must_use]
pub fn judge<'a>(view: View<'_>, by: &Grounds<'a>) -> Destination<'a> {
    rules(expected(view.record, view.policy, Direction::Stop)).judge(view, by)
}

/// Why a stop that a schedule asks for is not made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StopObstacle {
    /// The reason.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

impl StopObstacle {
    /// Joins several into one; `None` if there is none.
    #[must_use]
    pub fn all(obstacles: Vec<Self>) -> Option<Self> {
        let all = obstacles.into_iter();
        all.reduce(|all, one| Self {
            reason: format!("{}; {}", all.reason, one.reason),
            remedy: format!("{}; {}", all.remedy, one.remedy),
        })
    }
}

impl From<&MoveRefusal> for StopObstacle {
    fn from(refusal: &MoveRefusal) -> Self {
        Self { reason: refusal.to_string(), remedy: refusal.remedy().to_owned() }
    }
}

impl From<&hibernation::Obstacle> for StopObstacle {
    fn from(obstacle: &hibernation::Obstacle) -> Self {
        Self { reason: obstacle.to_string(), remedy: obstacle.remedy().to_owned() }
    }
}

/// The form that a record keeps.
impl fmt::Display for StopObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.remedy)
    }
}
