//! Where stops that change a plan, drop standbys or remove the machine would lead, before the
//! configuration that asks for them is applied: a machine that could not come back is found by day,
//! and not at its first stop.

use std::{
    cmp::Ordering,
    collections::{BTreeSet, HashMap},
};

use domain::{
    AccountName, ResourceId, ResourceKind, ResourceRef, ScheduleName,
    configuration::{Account, Configuration, Overrides, Policy},
    decision::Rules,
    hibernation::{Hibernation, Surroundings},
    look::Look,
    membership::{Membership, Subject},
    money::Money,
    plan::{Catalog, StopPlan, may_have_kept_price},
    record::{Direction, Record},
    resource::{SavedState, Size},
    stop_method::StopMethod,
};
use environment::in_words;
use provider::{Client, Lists, ProviderError};
use store::{Store, StoreError};
use transition::{
    methods::{Basis, Destination, Grounds, NextStep, StopObstacle, judge},
    view::{Observation, PlanContext, View},
};

use crate::{
    Access, Context, Error,
    budget::Budget,
    failure::ObservationError,
    observe::{look, token_check::NOT_ASKED},
    report::{AccountPreview, MissingScope, MoveTarget, StopPreview},
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
        let hibernates = hibernates(context.store, name, account, configuration).await?;
        if kinds.is_empty() && !hibernates {
            continue;
        }
        let answer = if account.may_be_asked(in_force.accounts.get(name)) {
            of_account(context, budget, name, &kinds, hibernates, configuration).await
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
    name: &AccountName,
    account: &Account,
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
struct PreviewedStop<'c> {
    /// Its record as far as that counts before a stop: what is kept of a machine that was hibernated.
    record: Record,
    look: Look,
    schedule: ScheduleName,
    policy: &'c Policy,
    method: StopMethod,
}

async fn of_account(
    context: Context<'_>,
    budget: Budget<'_>,
    account: &AccountName,
    kinds: &[ResourceKind],
    hibernates: bool,
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
        let moves = previews_of(context, budget, &client, account, kinds, configuration, failed);
        (answer.moves, answer.error) = moves.await?;
    }
    Ok(answer)
}

async fn previews_of(
    context: Context<'_>,
    budget: Budget<'_>,
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
    let followers = listed.looks.into_iter().filter_map(|look| {
        let record = known.get(&look.resource.id);
        follower(account, as_it_runs(look, record), record, configuration)
    });
    let followers: Vec<_> = followers.collect();
    let offered = Offered { hibernated, ..Offered::to(client, &followers).await.map_err(&failed)? };
    let lists = if followers.iter().any(|one| one.basis() == Basis::Surroundings) {
        let attachments = client.attachments().await.map_err(&failed)?;
        Some((attachments, client.preflight().await.map_err(&failed)?))
    } else {
        None
    };
    let lists = lists.as_ref().map_or_else(Lists::default, |(attachments, preflight)| Lists {
        attachments: Some(attachments),
        preflight: Some(preflight),
    });
    let overrides = Overrides::default();
    let rules = Rules { configuration, overrides: &overrides };
    let context = PlanContext { rules, writer: context.writer, now: budget.now() };
    let mut found = Vec::new();
    for follower in &followers {
        let mut around = None;
        if follower.basis() == Basis::Surroundings {
            if budget.is_over() {
                return Err("there was no time to look at all that it would hibernate".to_owned());
            }
            let machine = client.machine(&follower.look.resource.id, lists).await;
            around = machine.map_err(&failed)?.and_then(|machine| machine.around);
            if around.is_none() {
                // It was deleted since it was listed.
                continue;
            }
        }
        found.extend(offered.judge(follower, around.as_ref(), context));
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
fn as_it_runs(mut look: Look, record: Option<&Record>) -> Look {
    let seen = match &look.resource.size {
        Size::Machine(seen) => SavedState::Machine(seen.clone()),
        Size::Database(_) | Size::NodePool(_) => return look,
    };
    if let Some(owed @ SavedState::Machine(own)) = record.and_then(|record| record.saved.as_ref())
        && !matches!(seen.compare(owed), Some(Ordering::Greater | Ordering::Equal))
    {
        look.resource.size = Size::Machine(own.clone());
    }
    look
}

/// Returns the resource as a follower of its schedule, if that chooses a stop method for it.
fn follower<'c>(
    account: &AccountName,
    look: Look,
    known: Option<&Record>,
    configuration: &'c Configuration,
) -> Option<PreviewedStop<'c>> {
    let id = known.map_or(&look.resource.id, |record| &record.reference.id);
    let reference = ResourceRef { account: account.clone(), id: id.clone() };
    let record = Record {
        hibernation: known.and_then(|record| record.hibernation.clone()),
        ..Record::first_seen(reference, &look.resource)
    };
    let membership = Membership::of(Subject::seen(&record, &look.resource), configuration);
    let schedule = membership.schedule()?.clone();
    let policy = &configuration.schedules.get(&schedule)?.policy;
    let method = StopMethod::of(record.kind(), policy);
    method.is_chosen().then_some(PreviewedStop { record, look, schedule, policy, method })
}

impl PreviewedStop<'_> {
    /// Returns what decides where its stop would lead.
    fn basis(&self) -> Basis {
        let Self { record, policy, .. } = self;
        NextStep { record, policy, direction: Direction::Stop, seen: None }.reads().basis
    }

    fn leads(&self, to: MoveTarget) -> StopPreview {
        let resource = &self.look.resource;
        StopPreview {
            resource: self.record.reference.clone(),
            name: resource.name.clone(),
            schedule: self.schedule.clone(),
            method: self.method,
            created_at: resource.facts.created_at,
            from: resource.size.plan().to_owned(),
            to,
        }
    }
}

/// What a provider offers, and what counts besides that.
#[derive(Debug, Default)]
struct Offered {
    catalog: Catalog,
    /// The machines that an autoscale pool created.
    autoscaled: BTreeSet<ResourceId>,
    /// What a GB of a snapshot costs per month, if something is to be hibernated.
    per_gb_month: Option<Money>,
    /// How many machines of the account are hibernated.
    hibernated: u64,
}

impl Offered {
    /// Fetches the offers, but only if a machine is among the followers.
    async fn to(client: &Client, followers: &[PreviewedStop<'_>]) -> Result<Self, ProviderError> {
        let mut resources = followers.iter().map(|follower| &follower.look.resource);
        if !resources.any(|resource| matches!(resource.size, Size::Machine(_))) {
            return Ok(Self::default());
        }
        let mut catalog = client.machine_plans().await?;
        if let Some(currency) = client.currency().await? {
            catalog = catalog.in_currency(currency);
        }
        let hibernates = followers.iter().any(|one| one.basis() == Basis::Surroundings);
        let per_gb_month = if hibernates { client.snapshot_price().await? } else { None };
        let autoscaled = client.autoscaled().await?;
        Ok(Self { catalog, autoscaled, per_gb_month, hibernated: 0 })
    }

    /// Judges where a stop would lead; `None` if that needs no mention. The longest stop and the
    /// longest run of its schedule count: one stop that is too short for a snapshot is refused by
    /// itself.
    fn judge(
        &self,
        follower: &PreviewedStop<'_>,
        around: Option<&Surroundings>,
        context: PlanContext<'_>,
    ) -> Option<StopPreview> {
        let PreviewedStop { record, look, policy, .. } = follower;
        let rule = context.rules.configuration.schedules.get(&follower.schedule)?;
        let by = Grounds {
            catalog: &self.catalog,
            autoscaled: self.autoscaled.contains(&look.resource.id),
            around,
            hibernated: self.hibernated,
            off: rule.schedule.longest_stop(context.now),
            longest_run: rule.schedule.longest_run(context.now),
            ..Grounds::default()
        };
        let view = View::new(record, Observation::of(look), policy, context);
        let to = match judge(view, &by) {
            Destination::Size(_) => return None,
            Destination::Off(reasons) => {
                MoveTarget::Same { reason: StopObstacle::all(reasons)?.reason }
            }
            Destination::Refused(reasons) => MoveTarget::Refused(StopObstacle::all(reasons)?),
            Destination::Smaller {
                plan: StopPlan { plan, offer, present, has_kept_price },
                ..
            } => MoveTarget::Smaller {
                plan: plan.slug.clone(),
                offer: offer.clone(),
                present: present.clone(),
                has_kept_price,
            },
            Destination::Snapshot { .. } => self.snapshot(follower, around?)?,
        };
        Some(follower.leads(to))
    }

    fn snapshot(&self, follower: &PreviewedStop<'_>, around: &Surroundings) -> Option<MoveTarget> {
        let resource = &follower.look.resource;
        let Size::Machine(size) = &resource.size else {
            return None;
        };
        let has_kept_price = may_have_kept_price(resource.kind(), resource.facts.created_at);
        let offer = self.catalog.offer(&size.plan, &resource.region);
        let kept = follower.record.hibernation.as_deref();
        Some(MoveTarget::Snapshot {
            size: size.clone(),
            offer: offer.filter(|_| !has_kept_price).cloned(),
            per_gb_month: self.per_gb_month,
            address_costs: around.address_costs(resource.kind()),
            rehearsed: kept.is_some_and(Hibernation::is_rehearsed),
            put_back: around.put_back(),
            lost: around.lost(resource),
        })
    }
}

#[cfg(test)]
mod tests;
