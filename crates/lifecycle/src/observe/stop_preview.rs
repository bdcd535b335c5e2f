//! Where stops that change a plan, drop standbys or remove the machine would lead, before the
//! configuration that asks for them is applied: a machine that could not come back is found by day,
//! and not at its first stop.

use std::{
    cmp::Ordering,
    collections::{BTreeSet, HashMap},
};

use domain::{
    AccountName, ResourceId, ResourceKind, ResourceRef, ScheduleName,
    configuration::{Account, Configuration, Otherwise, Policy},
    hibernation::{self, Hibernation, HibernationTerms, OffPeriod, Surroundings},
    membership::{Membership, Subject},
    money::Money,
    plan::{self, Catalog, Machine, StopPlan},
    record::Record,
    resource::{DatabaseSize, MachineSize, Resource, SavedState, Size},
    stop_method::StopMethod,
};
use environment::in_words;
use jiff::{SignedDuration, Timestamp};
use provider::{Client, Lists, ProviderError};
use store::{Store, StoreError};

use crate::{
    Access, Context, Error,
    budget::Budget,
    failure::ObservationError,
    observe::{
        look,
        stop_target::{SmallStop, accepts_new_prices, keeps_its_nodes, terms},
        token_check::NOT_ASKED,
    },
    report::{AccountPreview, MissingScope, MoveTarget, Obstacle, StopPreview},
};

/// Checks the accounts for which a schedule changes plans, drops standbys or hibernates machines.
pub async fn preview_stops(
    context: Context<'_>,
    configuration: &Configuration,
) -> Result<Vec<AccountPreview>, Error> {
    let in_force = context.store.in_force().await?.configuration;
    let configuration = &Configuration { floor: in_force.floor.clone(), ..configuration.clone() };
    let budget = Budget::begin(context.clock);
    let mut answers = Vec::new();
    for (name, account) in &configuration.accounts {
        let kinds = moved_kinds(account, configuration);
        let hibernates = hibernates(context.store, (name, account), configuration).await?;
        if kinds.is_empty() && !hibernates {
            continue;
        }
        let kinds = (kinds.as_slice(), hibernates);
        let answer = if account.may_be_asked(in_force.accounts.get(name)) {
            of_account((context, budget), name, kinds, configuration).await
        } else {
            Err(NOT_ASKED.to_owned())
        };
        answers.push(answer.unwrap_or_else(|words| AccountPreview {
            account: name.clone(),
            error: Some(words),
            moves: Vec::new(),
            missing_scopes: None,
        }));
    }
    Ok(answers)
}

/// Returns the kinds of an account for which some schedule chooses a stop method.
fn moved_kinds(account: &Account, configuration: &Configuration) -> Vec<ResourceKind> {
    let is_moved = |kind: &ResourceKind| {
        let mut rules = configuration.schedules.values();
        rules.any(|rule| StopMethod::of(*kind, &rule.policy).is_chosen())
    };
    let kinds = account.kind().kinds().iter().copied();
    kinds.filter(is_moved).collect()
}

/// Reports whether some schedule hibernates machines of an account, or one is hibernated.
async fn hibernates(
    store: &Store,
    (name, account): (&AccountName, &Account),
    configuration: &Configuration,
) -> Result<bool, StoreError> {
    let is_hibernated = |kind: &ResourceKind| {
        let mut rules = configuration.schedules.values();
        rules.any(|rule| StopMethod::of(*kind, &rule.policy) == StopMethod::Hibernate)
    };
    if account.kind().kinds().iter().any(is_hibernated) {
        return Ok(true);
    }
    let records = store.records_of(name).await?.read;
    Ok(records.iter().any(Record::is_hibernated))
}

/// A resource whose schedule would change its plan, drop its standbys or hibernate it.
struct Follower<'c> {
    reference: ResourceRef,
    /// Whether one of its snapshots has been seen to boot.
    rehearsed: bool,
    /// The size of its latest snapshot, in hundredths of a GB.
    latest: Option<u64>,
    resource: Resource,
    schedule: ScheduleName,
    policy: &'c Policy,
    method: StopMethod,
}

async fn of_account(
    (context, budget): (Context<'_>, Budget<'_>),
    account: &AccountName,
    (kinds, hibernates): (&[ResourceKind], bool),
    configuration: &Configuration,
) -> Result<AccountPreview, String> {
    let providers = context.providers;
    let client = providers.client_to(Access::Read, account, configuration);
    let client = client.await.map_err(|error| in_words(&error))?;
    let failed = |error: ProviderError| {
        if ObservationError::from(&error).token_refused() {
            // It may have been rotated: it is read again the next time.
            providers.forget_to(Access::Read, account);
        }
        in_words(&error)
    };
    let mut answer = AccountPreview {
        account: account.clone(),
        error: None,
        moves: Vec::new(),
        missing_scopes: None,
    };
    if hibernates {
        let missing = client.missing_scopes().await.map_err(&failed)?;
        let missing = missing
            .iter()
            .map(|one| MissingScope { scope: one.scope.to_owned(), reads: one.reads.to_owned() });
        let missing: Vec<_> = missing.collect();
        let lacks = || format!("its token lacks {}", MissingScope::all(&missing));
        answer.error = (!missing.is_empty()).then(lacks);
        answer.missing_scopes = Some(missing);
    }
    // What the token cannot read is not looked at.
    if answer.error.is_none() {
        let moves = previews_of((context, budget), &client, account, kinds, configuration, failed);
        (answer.moves, answer.error) = moves.await?;
    }
    Ok(answer)
}

async fn previews_of(
    (context, budget): (Context<'_>, Budget<'_>),
    client: &Client,
    account: &AccountName,
    kinds: &[ResourceKind],
    configuration: &Configuration,
    failed: impl Fn(ProviderError) -> String,
) -> Result<(Vec<StopPreview>, Option<String>), String> {
    let listed = look::list(client, budget, kinds).await.map_err(&failed)?;
    let unread = ObservationError::of_unread(&listed.unread).map(|one| one.reason.to_string());
    let known = recorded(context.store, account, configuration).await;
    let (known, hibernated) = known.map_err(|error| in_words(&error))?;
    let resources = listed.looks.into_iter().map(|look| look.resource);
    let followers: Vec<_> = resources
        .filter_map(|resource| {
            let record = known.get(&resource.id);
            follower(account, as_it_runs(resource, record), record, configuration)
        })
        .collect();
    let offered = Offered::to(client, &followers).await.map_err(&failed)?;
    let lists = if followers.iter().any(|one| one.method == StopMethod::Hibernate) {
        let attachments = client.attachments().await.map_err(&failed)?;
        Some((attachments, client.preflight().await.map_err(&failed)?))
    } else {
        None
    };
    let lists = lists.as_ref().map_or_else(Lists::default, |(attachments, preflight)| Lists {
        attachments: Some(attachments),
        preflight: Some(preflight),
    });
    let mut found = Vec::new();
    for follower in &followers {
        if follower.method != StopMethod::Hibernate {
            found.extend(offered.judge(follower, configuration));
            continue;
        }
        if budget.is_over() {
            return Err("there was no time to look at all that it would hibernate".to_owned());
        }
        let machine = client.machine(&follower.resource.id, lists);
        let around = machine.await.map_err(&failed)?.and_then(|machine| machine.around);
        // It was deleted since it was listed.
        let Some(around) = around else { continue };
        let terms = HibernationTerms {
            hibernated,
            off_period: follower.off_period(configuration, budget.now()),
            longest_run: follower.longest_run(configuration, budget.now()),
            ..terms(account, follower.policy, configuration)
        };
        found.extend(offered.snapshot(follower, &around, configuration, &terms));
    }
    Ok((found, unread))
}

/// Returns the records of the account's resources, including those under its previous name, each by
/// its present id at the cloud; and how many machines are hibernated.
async fn recorded(
    store: &Store,
    account: &AccountName,
    configuration: &Configuration,
) -> Result<(HashMap<ResourceId, Record>, u64), StoreError> {
    let was = configuration.accounts.get(account).and_then(Account::was);
    let (mut known, mut hibernated) = (HashMap::new(), 0);
    for name in was.into_iter().chain([account]) {
        let records = store.records_of(name).await?.read;
        hibernated += records.iter().filter(|record| record.is_hibernated()).count();
        let present = |record: Record| Some((record.present()?.clone(), record));
        known.extend(records.into_iter().filter_map(present));
    }
    Ok((known, u64::try_from(hibernated).unwrap_or(u64::MAX)))
}

/// Gives a machine that is stopped on a small plan the size that it has to come back to.
fn as_it_runs(mut resource: Resource, record: Option<&Record>) -> Resource {
    let seen = match &resource.size {
        Size::Machine(seen) => SavedState::Machine(seen.clone()),
        Size::Database(_) | Size::NodePool(_) => return resource,
    };
    if let Some(owed @ SavedState::Machine(own)) = record.and_then(|record| record.saved.as_ref())
        && !matches!(seen.compare(owed), Some(Ordering::Greater | Ordering::Equal))
    {
        resource.size = Size::Machine(own.clone());
    }
    resource
}

/// Returns the resource as a follower of its schedule, if that chooses a stop method for it.
fn follower<'c>(
    account: &AccountName,
    resource: Resource,
    known: Option<&Record>,
    configuration: &'c Configuration,
) -> Option<Follower<'c>> {
    let id = known.map_or(&resource.id, |record| &record.reference.id);
    let reference = ResourceRef { account: account.clone(), id: id.clone() };
    let kept = known.and_then(|record| record.hibernation.as_deref());
    let record = Record::first_seen(reference.clone(), &resource);
    let membership = Membership::of(Subject::seen(&record, &resource), configuration);
    let schedule = membership.schedule()?.clone();
    let policy = &configuration.schedules.get(&schedule)?.policy;
    let method = StopMethod::of(resource.kind(), policy);
    method.is_chosen().then_some(Follower {
        rehearsed: kept.is_some_and(Hibernation::is_rehearsed),
        latest: kept.and_then(Hibernation::latest_centi_gb),
        reference,
        resource,
        schedule,
        policy,
        method,
    })
}

impl Follower<'_> {
    /// Returns the longest stop of its schedule: one that is too short for a snapshot is refused
    /// individually.
    fn off_period(&self, configuration: &Configuration, now: Timestamp) -> Option<OffPeriod> {
        let rule = configuration.schedules.get(&self.schedule)?;
        let off = rule.schedule.longest_stop(now)?;
        let latest = self.latest;
        Some(OffPeriod { off, latest })
    }

    /// Returns the longest run of its schedule: one of which each is too short to prove a snapshot
    /// is refused.
    fn longest_run(&self, configuration: &Configuration, now: Timestamp) -> Option<SignedDuration> {
        let rule = configuration.schedules.get(&self.schedule)?;
        rule.schedule.longest_run(now)
    }

    fn leads(&self, from: String, to: MoveTarget) -> StopPreview {
        StopPreview {
            resource: self.reference.clone(),
            name: self.resource.name.clone(),
            schedule: self.schedule.clone(),
            method: self.method,
            created_at: self.resource.facts.created_at,
            from,
            to,
        }
    }
}

/// What a provider offers, and which machines an autoscale pool created.
#[derive(Debug, Default)]
struct Offered {
    catalog: Catalog,
    autoscaled: BTreeSet<ResourceId>,
    /// What a GB of a snapshot costs per month, if something is to be hibernated.
    per_gb_month: Option<Money>,
}

impl Offered {
    /// Fetches the offers, but only if a machine is among the followers.
    async fn to(client: &Client, followers: &[Follower<'_>]) -> Result<Self, ProviderError> {
        let mut resources = followers.iter().map(|follower| &follower.resource);
        if !resources.any(|resource| matches!(resource.size, Size::Machine(_))) {
            return Ok(Self::default());
        }
        let mut catalog = client.machine_plans().await?;
        if let Some(currency) = client.currency().await? {
            catalog = catalog.in_currency(currency);
        }
        let hibernates = |one: &Follower<'_>| one.method == StopMethod::Hibernate;
        let per_gb_month =
            if followers.iter().any(hibernates) { client.snapshot_price().await? } else { None };
        Ok(Self { catalog, autoscaled: client.autoscaled().await?, per_gb_month })
    }

    /// Judges by its surroundings whether a machine could be hibernated.
    fn snapshot(
        &self,
        follower: &Follower<'_>,
        around: &Surroundings,
        configuration: &Configuration,
        terms: &HibernationTerms,
    ) -> Option<StopPreview> {
        let Size::Machine(size) = &follower.resource.size else {
            return None;
        };
        let machine = self.as_machine(follower, size, configuration);
        let obstacles = hibernation::preflight(machine, around, &self.catalog, terms);
        let to = match (Obstacle::all(&obstacles), follower.policy.otherwise) {
            (Some(all), Otherwise::Refuse) => MoveTarget::Refused(all),
            (Some(all), Otherwise::PowerOff) => MoveTarget::Same { reason: all.reason },
            (None, _) => {
                let offer = self.catalog.offer(&size.plan, &follower.resource.region);
                MoveTarget::Snapshot {
                    size: size.clone(),
                    offer: offer.filter(|_| !machine.may_have_kept_price()).cloned(),
                    per_gb_month: self.per_gb_month,
                    address_costs: around.address_costs(follower.resource.kind()),
                    rehearsed: follower.rehearsed,
                    put_back: around.put_back(),
                    lost: around.lost(&follower.resource),
                }
            }
        };
        Some(follower.leads(size.plan.clone(), to))
    }

    fn as_machine<'m>(
        &self,
        follower: &'m Follower<'_>,
        size: &'m MachineSize,
        configuration: &Configuration,
    ) -> Machine<'m> {
        let resource = &follower.resource;
        Machine {
            resource,
            size,
            autoscaled: self.autoscaled.contains(&resource.id),
            accepts_new_prices: accepts_new_prices(&follower.reference.account, configuration),
        }
    }

    /// Returns where a stop would lead; `None` for a pool, or a database that may drop its
    /// standbys.
    fn judge(&self, follower: &Follower<'_>, configuration: &Configuration) -> Option<StopPreview> {
        let (from, to) = match &follower.resource.size {
            Size::Machine(size) => {
                let to = self.machine(follower, size, configuration);
                (size.plan.clone(), to)
            }
            Size::Database(size) => (size.plan.clone(), database(size)?),
            Size::NodePool(_) => return None,
        };
        Some(follower.leads(from, to))
    }

    fn machine(
        &self,
        follower: &Follower<'_>,
        size: &MachineSize,
        configuration: &Configuration,
    ) -> MoveTarget {
        let resource = &follower.resource;
        let wanted = match plan::requested_plan(resource.kind(), &resource.tags, follower.policy) {
            Ok(wanted) => wanted,
            Err(refusal) => return MoveTarget::Refused((&refusal).into()),
        };
        let machine = self.as_machine(follower, size, configuration);
        match SmallStop::of(machine, &self.catalog, wanted.as_deref()) {
            SmallStop::On(StopPlan { plan, offer, present, has_kept_price }) => {
                MoveTarget::Smaller {
                    plan: plan.slug.clone(),
                    offer: offer.clone(),
                    present: present.clone(),
                    has_kept_price,
                }
            }
            SmallStop::Off(refusal) => MoveTarget::Same { reason: refusal.to_string() },
            SmallStop::Refused(refusal) => MoveTarget::Refused((&refusal).into()),
        }
    }
}

fn database(size: &DatabaseSize) -> Option<MoveTarget> {
    keeps_its_nodes(size).map(MoveTarget::Refused)
}

#[cfg(test)]
mod tests;
