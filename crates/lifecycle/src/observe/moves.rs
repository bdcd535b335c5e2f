//! What stops would lead to that leave a plan, or a standby, before the configuration that asks for
//! them is applied: a machine that could not come back is known by day, and not at its first stop.

use std::{
    cmp::Ordering,
    collections::{BTreeSet, HashMap},
};

use domain::{
    AccountName, ResourceId, ResourceKind, ResourceRef, ScheduleName,
    configuration::{Account, CloudAccount, Configuration, Policy},
    membership::{Membership, Subject},
    plan::{self, Catalog, Machine, Smaller},
    record::Record,
    resource::{DatabaseSize, MachineSize, Resource, SavedState, Size},
    stop_method::StopMethod,
};
use environment::in_words;
use provider::{Client, ProviderError};
use store::{Store, StoreError};

use crate::{
    Access, Context, Error,
    budget::Budget,
    failure::NoLook,
    observe::{
        look,
        stop_target::{SmallStop, accepts_new_prices, keeps_its_nodes},
    },
    report::{AccountMoves, MoveTarget, PlanMove},
};

/// Asks about each account of which some schedule leaves a plan or a standby.
pub async fn moves(
    context: Context<'_>,
    configuration: &Configuration,
) -> Result<Vec<AccountMoves>, Error> {
    let in_force = context.store.in_force().await?.configuration;
    let budget = Budget::begin(context.clock);
    let mut answers = Vec::new();
    for (name, account) in &configuration.accounts {
        let kinds = moved_kinds(account, configuration);
        if kinds.is_empty() {
            continue;
        }
        let answer = if may_be_asked(account, in_force.accounts.get(name)) {
            of_account((context, budget), name, &kinds, configuration).await
        } else {
            Err("an account with a new address of its own is not asked before it is applied".into())
        };
        let (moves, error) = match answer {
            Ok(moves) => (moves, None),
            Err(words) => (Vec::new(), Some(words)),
        };
        answers.push(AccountMoves {
            account: name.clone(),
            error,
            moves,
        });
    }
    Ok(answers)
}

/// The kinds of an account that some schedule has leave a plan or a standby.
fn moved_kinds(account: &Account, configuration: &Configuration) -> Vec<ResourceKind> {
    let is_moved = |kind: &ResourceKind| {
        let mut rules = configuration.schedules.values();
        rules.any(|rule| StopMethod::of(*kind, &rule.policy).leaves_something())
    };
    let kinds = account.kind().kinds().iter().copied();
    kinds.filter(is_moved).collect()
}

/// Whether an account may be asked with its token: one that is in force leads nowhere else, and any
/// other one only where it may be tried.
fn may_be_asked(account: &Account, in_force: Option<&Account>) -> bool {
    let login = |account: &CloudAccount| {
        let tokens = (account.token.clone(), account.read_token.clone());
        (account.provider, tokens, account.url.clone())
    };
    let wanted = account.cloud().map(login);
    let is_in_force = wanted.is_some() && wanted == in_force.and_then(Account::cloud).map(login);
    is_in_force || account.may_be_tried()
}

/// A resource that would follow a schedule which leaves its plan or its standbys.
struct Follower<'c> {
    reference: ResourceRef,
    resource: Resource,
    schedule: ScheduleName,
    policy: &'c Policy,
    method: StopMethod,
}

async fn of_account(
    (context, budget): (Context<'_>, Budget<'_>),
    account: &AccountName,
    kinds: &[ResourceKind],
    configuration: &Configuration,
) -> Result<Vec<PlanMove>, String> {
    let providers = context.providers;
    let client = providers.client_to(Access::Read, account, configuration);
    let client = client.await.map_err(|error| in_words(&error))?;
    let failed = |error: ProviderError| {
        if NoLook::from(&error).token_refused {
            // It may have been rotated: it is read anew the next time.
            providers.forget_to(Access::Read, account);
        }
        in_words(&error)
    };
    let listed = look::list(&client, budget, kinds).await.map_err(failed)?;
    let saved = saved_sizes(context.store, account, configuration).await;
    let saved = saved.map_err(|error| in_words(&error))?;
    let resources = listed.looks.into_iter().map(|look| look.resource);
    let followers: Vec<_> = resources
        .filter_map(|resource| follower(account, as_it_runs(resource, &saved), configuration))
        .collect();
    let offered = Offered::to(&client, &followers).await.map_err(failed)?;
    let found = followers.iter();
    Ok(found
        .filter_map(|follower| offered.judge(follower, configuration))
        .collect())
}

/// What is owed to the account's resources, also under the name that it had before.
async fn saved_sizes(
    store: &Store,
    account: &AccountName,
    configuration: &Configuration,
) -> Result<HashMap<ResourceId, SavedState>, StoreError> {
    let was = configuration.accounts.get(account).and_then(Account::was);
    let mut saved = HashMap::new();
    for name in was.into_iter().chain([account]) {
        let records = store.records_of(name).await?.read;
        let owed = |record: Record| Some((record.reference.id, record.saved?));
        saved.extend(records.into_iter().filter_map(owed));
    }
    Ok(saved)
}

/// A machine that is stopped on a small plan has to come back to the one that it is owed.
fn as_it_runs(mut resource: Resource, saved: &HashMap<ResourceId, SavedState>) -> Resource {
    let seen = match &resource.size {
        Size::Machine(seen) => SavedState::Machine(seen.clone()),
        Size::Database(_) | Size::NodePool(_) => return resource,
    };
    if let Some(owed @ SavedState::Machine(own)) = saved.get(&resource.id)
        && !matches!(
            seen.compare(owed),
            Some(Ordering::Greater | Ordering::Equal)
        )
    {
        resource.size = Size::Machine(own.clone());
    }
    resource
}

/// What follows a schedule by the configuration, where that has it leave a plan or a standby.
fn follower<'c>(
    account: &AccountName,
    resource: Resource,
    configuration: &'c Configuration,
) -> Option<Follower<'c>> {
    let reference = ResourceRef {
        account: account.clone(),
        id: resource.id.clone(),
    };
    let record = Record::first_seen(reference.clone(), &resource);
    let membership = Membership::of(Subject::seen(&record, &resource), configuration);
    let schedule = membership.schedule()?.clone();
    let policy = &configuration.schedules.get(&schedule)?.policy;
    let method = StopMethod::of(resource.kind(), policy);
    method.leaves_something().then_some(Follower {
        reference,
        resource,
        schedule,
        policy,
        method,
    })
}

/// What a provider sells, and which machines make and replace themselves.
#[derive(Debug, Default)]
struct Offered {
    catalog: Catalog,
    autoscaled: BTreeSet<ResourceId>,
}

impl Offered {
    /// Asks only where a machine follows.
    async fn to(client: &Client, followers: &[Follower<'_>]) -> Result<Self, ProviderError> {
        let mut resources = followers.iter().map(|follower| &follower.resource);
        if !resources.any(|resource| matches!(resource.size, Size::Machine(_))) {
            return Ok(Self::default());
        }
        let mut catalog = client.machine_plans().await?;
        if let Some(currency) = client.currency().await? {
            catalog = catalog.in_currency(currency);
        }
        let autoscaled = client.autoscaled().await?;
        Ok(Self {
            catalog,
            autoscaled,
        })
    }

    /// Where a stop of it would lead; none for a database that may drop its standbys.
    fn judge(&self, follower: &Follower<'_>, configuration: &Configuration) -> Option<PlanMove> {
        let (from, to) = match &follower.resource.size {
            Size::Machine(size) => {
                let to = self.machine(follower, size, configuration);
                (size.plan.clone(), to)
            }
            Size::Database(size) => (size.plan.clone(), database(size)?),
            Size::NodePool(_) => return None,
        };
        Some(PlanMove {
            resource: follower.reference.clone(),
            name: follower.resource.name.clone(),
            schedule: follower.schedule.clone(),
            method: follower.method,
            created_at: follower.resource.facts.created_at,
            from,
            to,
        })
    }

    fn machine(
        &self,
        follower: &Follower<'_>,
        size: &MachineSize,
        configuration: &Configuration,
    ) -> MoveTarget {
        let resource = &follower.resource;
        let wanted = match plan::wanted(resource.kind(), &resource.tags, follower.policy) {
            Ok(wanted) => wanted,
            Err(unfit) => return MoveTarget::Refused((&unfit).into()),
        };
        let machine = Machine {
            resource,
            size,
            autoscaled: self.autoscaled.contains(&resource.id),
            accepts_new_prices: accepts_new_prices(&follower.reference.account, configuration),
        };
        match SmallStop::of(machine, &self.catalog, wanted.as_deref()) {
            SmallStop::On(Smaller {
                plan,
                offer,
                present,
                has_kept_price,
            }) => MoveTarget::Smaller {
                plan: plan.slug.clone(),
                offer: offer.clone(),
                present: present.clone(),
                has_kept_price,
            },
            SmallStop::Off(unfit) => MoveTarget::Same {
                reason: unfit.to_string(),
            },
            SmallStop::Refused(unfit) => MoveTarget::Refused((&unfit).into()),
        }
    }
}

fn database(size: &DatabaseSize) -> Option<MoveTarget> {
    keeps_its_nodes(size).map(MoveTarget::Refused)
}

#[cfg(test)]
mod tests;
