//! The inventory: what each account has, compared with what is recorded, and mended.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    iter,
    sync::Arc,
};

use domain::{
    AccountName, ResourceId, ResourceKind, ResourceRef,
    configuration::{Account, Configuration},
    decision::{Verdict, due_at, judge},
    hibernation::{OF_LABEL, Scene, of_label},
    joining::{self, follows},
    left_behind::{LeftBehind, left_behind},
    membership::{Exclusion, Membership, Subject},
    pacing::{Allowance, ListRequests},
    reason::Reason,
    record::{Direction, INVENTORY_INTERVAL, Phase, Record, Request, SKEW},
    resource::{Look, Power, Resource},
};
use environment::{Invoke, Metric};
use futures_util::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use provider::{AT_ONCE, Client, Listed};
use store::{AccountState, AccountStates, InForce, ListCost, StoreError, Unreadable};

use crate::{
    Context, Error, account,
    budget::Budget,
    event::{Event, HeldResource, Outcome},
    failure::NoLook,
    observe::{
        in_flight::{Complaints, Follower, HandedOver},
        look::{self, Looked},
        restored_table,
    },
    report::{Report, health::Health, reread},
    transition::{
        method::{self, hibernate},
        step::Observation,
    },
};

/// Why a listing is not believed.
const TAGS_VANISHED: &str = "all tags vanished at once while the resources are still there: \
    ignored. If the token lost its right to read tags, give it back; to opt everything out, tag it \
    offhours:off";

/// How long an account's first inventory is expected to take.
const USUALLY_TAKES: SignedDuration = SignedDuration::from_secs(10);

/// Why an inventory goes on later.
const UNFINISHED: &str = "the inventory was not finished in time, and goes on at the next tick";

/// The accounts, and what was learnt of them.
pub(crate) struct Accounts {
    pub configuration: Arc<Configuration>,
    states: AccountStates,
    /// Those whose states a newer program wrote.
    newer: BTreeSet<String>,
}

impl Accounts {
    pub(crate) async fn read(context: Context<'_>, report: &mut Report) -> Result<Self, Error> {
        let present = context.store.present().await?;
        let configuration = context.store.configuration_of(&present.head).await?;
        let states = context.store.account_states().await?;
        let newer = names(&states.unreadable);
        Ok(Self {
            configuration,
            states: report.readable(states),
            newer,
        })
    }

    /// Why accounts could not be listed the last time, which was reported then.
    pub(crate) fn complaints(&self) -> Complaints {
        let complaints = Complaints::default();
        for (account, state) in &self.states {
            if let Some(error) = &state.error {
                complaints.note(account, error);
            }
        }
        complaints
    }

    /// How many requests the lists of an account took.
    pub(crate) fn list_requests(&self, account: &AccountName) -> ListRequests {
        let lists = self.states.get(account).and_then(AccountState::lists);
        lists.cloned().unwrap_or_default()
    }

    /// Whether less is left of an account's hour than recovers in a minute, apart from what is kept
    /// for others.
    pub(crate) fn is_short(&self, account: &AccountName, now: Timestamp) -> bool {
        let configured = self.configuration.accounts.get(account);
        let Some(cloud) = configured.and_then(Account::cloud) else {
            return false;
        };
        let state = self.states.get(account);
        let rate = state.and_then(|state| state.rate);
        let lists = state.and_then(AccountState::lists);
        let allowance = Allowance::of(cloud.provider.facts(), rate, lists, now);
        allowance.in_the_hour() < allowance.per_hour / 60
    }

    /// How many requests a minute others take of an account's allowance, when that was last
    /// measured.
    pub(crate) fn others(&self, account: &AccountName) -> Option<u64> {
        self.states.get(account)?.rate?.others
    }

    /// The accounts whose inventory is due, the one first that was tried longest ago: a slow one
    /// does not keep the others from their turn. Those whose token failed follow, for it may have
    /// been replaced.
    pub(crate) fn due(&self, now: Timestamp) -> Vec<AccountName> {
        let is_due = |account: &&AccountName| {
            let state = self.states.get(*account);
            let token_fails = state.is_some_and(|state| state.token_fails);
            let newer = self.newer.contains(account.as_str());
            !newer && (token_fails || self.interval_is_over(account, now))
        };
        let mut due: Vec<_> = self.configuration.accounts.keys().filter(is_due).collect();
        due.sort_by_key(|account| self.tried_at(account));
        due.into_iter().cloned().collect()
    }

    fn tried_at(&self, account: &AccountName) -> Option<Timestamp> {
        self.states.get(account)?.tried_at
    }

    fn interval_is_over(&self, account: &AccountName, now: Timestamp) -> bool {
        // A tick a little early is as good: timers are not exact to the second.
        self.tried_at(account)
            .is_none_or(|at| now.duration_since(at) + SKEW >= INVENTORY_INTERVAL)
    }

    /// Takes inventories, as far as there is time for them. Returns why accounts could not be
    /// listed; those for which there is no time are still due.
    pub(crate) async fn take(
        &self,
        due: &[AccountName],
        budget: Budget<'_>,
        context: Context<'_>,
        invoke: &impl Invoke,
        report: &mut Report,
    ) -> Result<Vec<(AccountName, Reason)>, Error> {
        let mut errors = Vec::new();
        let mut covered = Covered::default();
        let now = budget.now();
        for (place, account) in due.iter().enumerate() {
            let known = Known::of(account, &self.configuration, &self.states);
            if !self.interval_is_over(account, now)
                && !token_is_accepted(context, account, &self.configuration).await
            {
                continue;
            }
            if place > 0 && !known.fits(budget) {
                tracing::info!(account = %account, "No time for the inventory of {account} in this tick");
                continue;
            }
            let asked = Asked::ByTimer;
            let take = take(context, budget, invoke, known, asked, &mut covered, report);
            if let Some(error) = take.await? {
                errors.push((account.clone(), error));
            }
        }
        Ok(errors)
    }
}

/// Tries a token that failed by small requests: what it held up goes on within a minute of a
/// working one, and until then no inventory is spent on it.
async fn token_is_accepted(
    context: Context<'_>,
    account: &AccountName,
    configuration: &Configuration,
) -> bool {
    let client = context.providers.client(account, configuration);
    let Ok(client) = client.await else {
        return false;
    };
    for kind in kinds(account, configuration) {
        if let Err(error) = client.try_reading(*kind).await {
            if NoLook::from(&error).token_refused {
                context.providers.forget(account);
            }
            return false;
        }
    }
    true
}

/// The accounts whose states a newer program wrote. Without its state it is unknown whether an
/// account was ever listed, or when: such an account is not listed by this program.
fn names(unreadable: &[Unreadable]) -> BTreeSet<String> {
    unreadable.iter().map(|one| one.reference.clone()).collect()
}

/// Takes the inventory of these accounts now, however young the last one is; of all if none is
/// named. A name that is not configured is declined, and keeps no other from being listed.
pub(crate) async fn take_now(
    context: Context<'_>,
    invoke: &impl Invoke,
    accounts: &[AccountName],
    report: &mut Report,
) -> Result<(), Error> {
    let budget = Budget::begin(context.clock);
    let in_force = context.store.in_force().await?;
    let configured = &in_force.configuration.accounts;
    let states = context.store.account_states().await?;
    let newer = names(&states.unreadable);
    let states = report.readable(states);
    let mut covered = Covered::default();
    let wanted: BTreeSet<_> = if accounts.is_empty() {
        configured.keys().collect()
    } else {
        accounts.iter().collect()
    };
    for account in wanted {
        let known = Known::of(account, &in_force.configuration, &states);
        let declined = if !configured.contains_key(account) {
            Some(Error::unknown("account", account, configured.keys()).to_string())
        } else if newer.contains(account.as_str()) {
            Some("a newer program wrote its state; update this one".to_owned())
        } else if budget.elapsed() > SignedDuration::ZERO && !known.fits(budget) {
            Some("the accounts before it took too long: ask for this one alone".to_owned())
        } else {
            None
        };
        if let Some(reason) = declined {
            let event = Event::Declined { reason };
            let now = context.clock.now();
            report.answer(context, [Outcome::of_account(account, now, event)]);
        } else {
            let asked = Asked::ByPerson;
            let take = take(context, budget, invoke, known, asked, &mut covered, report);
            take.await?;
        }
    }
    Ok(())
}

/// What is known of an account before its inventory.
struct Known<'a> {
    account: &'a AccountName,
    /// What it was called before.
    was: Option<&'a AccountName>,
    /// Whether it was ever listed whole, under whichever name.
    listed_before: bool,
    state: Option<AccountState>,
}

impl<'a> Known<'a> {
    fn of(
        account: &'a AccountName,
        configuration: &'a Configuration,
        states: &AccountStates,
    ) -> Self {
        let configured = configuration.accounts.get(account);
        let was = configured.and_then(|account| account.was());
        let listed = |name: &AccountName| {
            let state = states.get(name);
            state.is_some_and(|state| state.listed_at.is_some())
        };
        Self {
            account,
            was,
            listed_before: listed(account) || was.is_some_and(listed),
            state: states.get(account).cloned(),
        }
    }

    /// Whether its inventory is likely to be finished in the time that is left, going by the last
    /// one.
    fn fits(&self, budget: Budget<'_>) -> bool {
        let cost = self.state.as_ref().and_then(|state| state.cost.as_ref());
        let took = cost.map_or(USUALLY_TAKES, |cost| cost.took);
        budget.left() >= took + took / 2
    }
}

/// What asked for an inventory: a person is shown how it went, for the timer only news is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    ByTimer,
    ByPerson,
}

/// Takes one account's inventory. Returns why it could not be listed, if so.
async fn take(
    context: Context<'_>,
    budget: Budget<'_>,
    invoke: &impl Invoke,
    known: Known<'_>,
    asked: Asked,
    covered: &mut Covered,
    report: &mut Report,
) -> Result<Option<Reason>, Error> {
    let (account, listed_before) = (known.account, known.listed_before);
    let requested_at = context.clock.now();
    let state = tried(context, account, known.state, requested_at).await?;
    let mut newer = Vec::new();
    if let Some(was) = known.was {
        // What is not carried over yet must not pass for new.
        newer = context.store.carry_over(was, account, requested_at).await?;
    }
    let found = context.store.records_of(account).await?;
    let unreadable = references(&found.unreadable);
    let records = report.readable(found);
    let in_force = context.store.in_force().await?;
    if let Some(event) = restored_table::event(&records, &in_force) {
        report.add(context, [Outcome::of_account(account, requested_at, event)]);
    }
    let mut taking = Taking {
        context,
        asked,
        requested_at,
        state,
    };
    let configuration = &in_force.configuration;
    covered.note(account, configuration, &unreadable, &records);
    newer.extend(unreadable);
    let health = match list(context, budget, account, configuration, &records).await {
        Ok((client, listed)) => {
            covered
                .read(context, account, configuration, report)
                .await?;
            let inventory = Inventory {
                context,
                budget,
                account,
                in_force: &in_force,
                client: &client,
                first: !listed_before,
                elsewhere: covered.elsewhere(account, configuration),
                newer,
                wrote: Cell::new(false),
            };
            let health = taking
                .listed(&inventory, records, listed, invoke, report)
                .await;
            if inventory.wrote.into_inner() {
                covered.forget(account);
            }
            health
        }
        Err(no_look) => {
            let mut health = taking.not_listed(no_look, report);
            health += count_recorded(context, &in_force, records, report).await;
            Some(health)
        }
    };
    context.store.save_account_state(&taking.state).await?;
    if let Some(health) = health {
        context.listener.counted(account, &health);
    }
    Ok(taking.state.error)
}

/// Notes that an inventory begins, before anything that may outlast this invocation: should it end
/// there, another account is next.
async fn tried(
    context: Context<'_>,
    account: &AccountName,
    known: Option<AccountState>,
    now: Timestamp,
) -> Result<AccountState, Error> {
    let mut state = known.unwrap_or_else(|| AccountState::unknown(account.clone()));
    state.tried_at = Some(now);
    context.store.save_account_state(&state).await?;
    Ok(state)
}

/// An inventory under way, and what is learnt of the account by it.
struct Taking<'a> {
    context: Context<'a>,
    asked: Asked,
    requested_at: Timestamp,
    state: AccountState,
}

impl Taking<'_> {
    /// Takes in what was listed; `None` if there was no time to write all of it.
    async fn listed(
        &mut self,
        inventory: &Inventory<'_>,
        records: Vec<Record>,
        listed: Listed,
        invoke: &impl Invoke,
        report: &mut Report,
    ) -> Option<Health> {
        let shown = format!("listed whole: {} resources", listed.looks.len());
        let measured = self.others(inventory.client, &listed);
        let rate = account::rate(inventory.client, self.requested_at, measured);
        self.state.rate = rate;
        let reconciled = inventory.reconcile(records, listed.looks, invoke, report);
        let reconciled = reconciled.await;
        self.state.cost = Some(ListCost {
            requests: listed.requests,
            took: self.took(),
        });
        self.state.token_fails = false;
        if reconciled.is_none() {
            // Due again with the next tick, after those that wait longer.
            self.state.tried_at = Some(self.requested_at - INVENTORY_INTERVAL);
            self.failed(NoLook::of(UNFINISHED), report);
            return None;
        }
        self.state.listed_at = Some(self.requested_at);
        self.state.error = None;
        if self.asked == Asked::ByPerson {
            let event = Event::Status { state: shown };
            let listed = Outcome::of_account(&self.state.account, self.requested_at, event);
            report.answer(self.context, [listed]);
        }
        reconciled
    }

    /// What others take of the account's allowance.
    fn others(&self, client: &Client, listed: &Listed) -> Option<u64> {
        let lists = listed.requests.values();
        let lists = lists.map(|&requests| u64::from(requests)).sum();
        let remaining = client.rate()?.remaining;
        self.state.others(remaining, self.requested_at, lists)
    }

    /// Keeps why it could not be listed, and counts that.
    fn not_listed(&mut self, no_look: NoLook, report: &mut Report) -> Health {
        self.state.token_fails = no_look.token_refused || no_look.no_token;
        self.state.cost = Some(ListCost {
            took: self.took(),
            ..self.state.cost.take().unwrap_or_default()
        });
        let refused = no_look.login_refused().then_some(Metric::TokensRefused);
        self.failed(no_look, report);
        iter::once(Metric::Failed).chain(refused).collect()
    }

    /// Keeps why an inventory failed, and reports it unless the timer has reported it before.
    fn failed(&mut self, no_look: NoLook, report: &mut Report) {
        let token_refused = no_look.login_refused();
        let reason = no_look.reason;
        let known = self.state.error.replace(reason.clone());
        let repeated = known.is_some_and(|known| known.says_the_same(&reason));
        if !repeated || self.asked == Asked::ByPerson {
            let event = Event::Postponed {
                reason,
                token_refused,
                repeated,
            };
            let failed = Outcome::of_account(&self.state.account, self.requested_at, event);
            report.add(self.context, [failed]);
        }
    }

    fn took(&self) -> SignedDuration {
        let now = self.context.clock.now();
        now.duration_since(self.requested_at)
    }
}

/// Counts records whose account could not be listed; what is due does not depend on the listing.
async fn count_recorded(
    context: Context<'_>,
    in_force: &InForce,
    records: Vec<Record>,
    report: &mut Report,
) -> Health {
    let mut health = Health::default();
    for record in records {
        let mended = mend(context, record.clone(), in_force).await;
        let record = mended.unwrap_or_else(|error| {
            report.outcomes.extend(context.failed(&record, &error));
            record
        });
        health.count(&record, in_force, context.clock.now());
    }
    health
}

/// Lists an account, unless what is listed is not believed.
async fn list(
    context: Context<'_>,
    budget: Budget<'_>,
    account: &AccountName,
    configuration: &Configuration,
    records: &[Record],
) -> Result<(Client, Listed), NoLook> {
    let client = context.providers.client(account, configuration).await;
    let client = client.map_err(|error| NoLook::from(&error))?;
    let listed = look::list(&client, budget, kinds(account, configuration)).await;
    let listed = listed.map_err(|error| {
        let no_look = NoLook::from(&error);
        if no_look.token_refused {
            context.providers.forget(account);
        }
        no_look
    })?;
    if tags_vanished(records, &listed.looks) {
        return Err(NoLook::of(TAGS_VANISHED));
    }
    Ok((client, listed))
}

pub(crate) fn kinds(
    account: &AccountName,
    configuration: &Configuration,
) -> &'static [ResourceKind] {
    let account = configuration.accounts.get(account);
    account.map_or(&[], |account| account.kind().kinds())
}

/// Whether resources that are still listed had tags, and now nothing listed has any.
fn tags_vanished(records: &[Record], looks: &[Look]) -> bool {
    let tagless = looks.iter().all(|Look { resource, .. }| {
        resource.tags.is_empty() && resource.cluster.as_ref().is_none_or(|c| c.tags.is_empty())
    });
    let had_tags = |record: &Record| {
        !record.tags.is_empty() || record.cluster.as_ref().is_some_and(|c| !c.tags.is_empty())
    };
    let listed: HashSet<_> = looks.iter().map(|look| &look.resource.id).collect();
    let still_listed = |record: &&Record| listed.contains(&record.reference.id);
    tagless && records.iter().filter(still_listed).any(had_tags)
}

/// What accounts cover, as one invocation has read it. Each inventory asks for that of all others
/// at its provider, which it would otherwise read again for each.
#[derive(Debug, Default)]
struct Covered(BTreeMap<AccountName, HashMap<ResourceId, ResourceRef>>);

impl Covered {
    /// Notes what an account covers, by what was read of it.
    fn note(
        &mut self,
        account: &AccountName,
        configuration: &Configuration,
        unreadable: &[ResourceRef],
        records: &[Record],
    ) {
        let Some(of) = configuration.accounts.get(account) else {
            return;
        };
        let covered = records.iter().filter(|record| covers(of, record));
        let covered = covered.map(|record| &record.reference);
        // A record that cannot be read says by its key what is reached.
        let all = unreadable.iter().chain(covered);
        let all = all.map(|reference| (reference.id.clone(), reference.clone()));
        let present = records.iter().filter(|record| covers(of, record));
        let present = present.map(|record| (present_id(record), record.reference.clone()));
        self.0.insert(account.clone(), all.chain(present).collect());
    }

    /// Forgets what an account covers: it was written since.
    fn forget(&mut self, account: &AccountName) {
        self.0.remove(account);
    }

    /// Reads what the others at an account's provider cover, where that is not known.
    async fn read(
        &mut self,
        context: Context<'_>,
        account: &AccountName,
        configuration: &Configuration,
        report: &mut Report,
    ) -> Result<(), Error> {
        for other in others(account, configuration) {
            if self.0.contains_key(other) {
                continue;
            }
            let found = context.store.records_of(other).await?;
            let unreadable = references(&found.unreadable);
            let records = report.readable(found);
            self.note(other, configuration, &unreadable, &records);
        }
        Ok(())
    }

    /// What the others at an account's provider cover.
    fn elsewhere(&self, account: &AccountName, configuration: &Configuration) -> Elsewhere<'_> {
        let others = others(account, configuration);
        Elsewhere(others.filter_map(|other| self.0.get(other)).collect())
    }
}

/// What other accounts at the same provider cover, each by id.
#[derive(Debug, Default)]
struct Elsewhere<'a>(Vec<&'a HashMap<ResourceId, ResourceRef>>);

impl Elsewhere<'_> {
    /// The same resource, as the last of the others that cover it.
    fn get(&self, id: &ResourceId) -> Option<&ResourceRef> {
        self.0.iter().rev().find_map(|other| other.get(id))
    }

    /// Whether one of the others covers the resource of this label.
    fn has(&self, of: &str) -> bool {
        let mut all = self.0.iter().flat_map(|other| other.values());
        all.any(|reference| of_label(&reference.id) == of)
    }
}

/// The other accounts at the same cloud.
fn others<'c>(
    account: &AccountName,
    configuration: &'c Configuration,
) -> impl Iterator<Item = &'c AccountName> {
    // Names of machines over SSH are the account's own: two that are alike say nothing.
    let cloud = |account: &Account| account.cloud().map(|cloud| cloud.provider);
    let provider = configuration.accounts.get(account).and_then(cloud);
    let others = configuration.accounts.iter();
    others
        .filter(move |(other, of)| *other != account && provider.is_some() && cloud(of) == provider)
        .map(|(other, _)| other)
}

/// Whether what an account has recorded is still there, and still its own to look after: its
/// datacenters may be others since.
fn covers(account: &Account, record: &Record) -> bool {
    let is_there = !matches!(record.phase, Phase::Gone { .. }) && record.missing_since.is_none();
    let is_within = account
        .cloud()
        .is_none_or(|cloud| cloud.covers(&record.region));
    is_there && is_within && record.unsupported.is_none()
}

/// By which id a list shows a record's resource.
fn present_id(record: &Record) -> ResourceId {
    record.present().unwrap_or(&record.reference.id).clone()
}

/// What machines are labelled with that were made again of these.
fn labels_of_made(records: &[Record]) -> HashSet<String> {
    let hibernated = records.iter().filter(|one| one.hibernation.is_some());
    hibernated.map(|one| of_label(&one.reference.id)).collect()
}

/// Of which resource a machine says that it was made again, as [`of_label`] has it: a tag of
/// `DigitalOcean` may hold no dot (DOSPEC).
fn made_of(resource: &Resource) -> Option<String> {
    let mut pairs = resource
        .tags
        .iter()
        .filter_map(|tag| tag.split_once(['=', ':']));
    pairs.find_map(|(key, of)| (key == OF_LABEL).then(|| of.replace('-', ".")))
}

/// What a look means for what is kept of a machine that was hibernated.
fn note_hibernation(record: &mut Record, look: &Look) {
    let runs = look.resource.power == Power::Running;
    let is_off = look.resource.power == Power::Stopped;
    let resolved = !record.request.as_ref().is_some_and(Request::is_unresolved);
    let settled = matches!(record.phase, Phase::Settled { .. });
    let Some(kept) = record.hibernation.as_deref_mut() else {
        return;
    };
    if let Some(sight) = &look.sight {
        hibernate::learn(kept, sight);
        if settled && let Scene::Made(body) = sight.scene(kept) {
            kept.adopt(body.resource.id.clone());
        }
    }
    if is_off {
        kept.note_off();
    }
    if runs && resolved {
        // It was used since: what we asked for before did not delete it.
        kept.delete_asked = false;
        if settled {
            kept.note_running(look.requested_at);
        }
    }
}

/// The resources of records that cannot be read, by their keys.
fn references(unreadable: &[Unreadable]) -> Vec<ResourceRef> {
    let parsed = unreadable.iter().map(|one| one.reference.parse());
    parsed.filter_map(Result::ok).collect()
}

/// Recomputes when records are due whose accounts are no longer configured, which no inventory
/// reaches: an `apply` that ended early left them in the index.
pub(crate) async fn mend_all(
    context: Context<'_>,
    hints: &[Record],
    report: &mut Report,
) -> Result<(), Error> {
    if hints.is_empty() {
        return Ok(());
    }
    let references: Vec<_> = hints.iter().map(|hint| hint.reference.clone()).collect();
    let records = report.readable(context.store.records(&references).await?);
    let in_force = context.store.in_force().await?;
    for record in records {
        mend(context, record, &in_force).await?;
    }
    Ok(())
}

/// Recomputes when a record is due, and writes it if that changed.
async fn mend(context: Context<'_>, record: Record, in_force: &InForce) -> Result<Record, Error> {
    let due_at = due_at(&record, in_force.rules(), context.clock.now());
    if due_at == record.due_at {
        return Ok(record);
    }
    let mended = Record { due_at, ..record };
    match context.store.save(mended.clone()).await {
        Ok(record) => Ok(record),
        Err(StoreError::Stale { .. }) => Ok(mended),
        Err(error) => Err(error.into()),
    }
}

struct Inventory<'a> {
    context: Context<'a>,
    budget: Budget<'a>,
    account: &'a AccountName,
    in_force: &'a InForce,
    client: &'a Client,
    /// Whether the account was never listed whole before.
    first: bool,
    elsewhere: Elsewhere<'a>,
    /// What a newer program recorded: neither new nor gone, and left alone.
    newer: Vec<ResourceRef>,
    /// Whether any record may have been written.
    wrote: Cell<bool>,
}

impl Inventory<'_> {
    /// Takes in what a list showed; `None` if there was no time to write all of it.
    async fn reconcile(
        &self,
        records: Vec<Record>,
        looks: Vec<Look>,
        invoke: &impl Invoke,
        report: &mut Report,
    ) -> Option<Health> {
        let made = labels_of_made(&records);
        let mut recorded: BTreeMap<ResourceId, Record> = records
            .into_iter()
            .map(|record| (present_id(&record), record))
            .collect();
        let mut compared = Vec::new();
        for look in looks {
            let resource = &look.resource;
            let old = recorded.remove(&resource.id);
            // Workers come and go with their pool, which is what is scheduled.
            let is_worker =
                resource.kind() == ResourceKind::Droplet && resource.unsupported.is_some();
            let is_newer = self.newer.iter().any(|newer| newer.id == resource.id);
            // A machine that we have made is its record's, though that was read before it was asked
            // for, or does not know it yet.
            let is_made = made_of(resource).is_some_and(|of| self.has_made(&made, &of));
            if old.is_none() && (is_worker || is_newer || is_made) {
                continue;
            }
            compared.push(self.compare(old, look));
        }
        self.hold_too_many(&mut compared);
        let mut tally = Tally::default();
        let unlisted = recorded.into_values().collect();
        let whole = self.write_all(compared, unlisted, invoke, &mut tally).await;
        report.outcomes.append(&mut tally.outcomes);
        if let Some(event) = tally.held() {
            let now = self.context.clock.now();
            report.add(
                self.context,
                [Outcome::of_account(self.account, now, event)],
            );
        }
        whole.then_some(tally.health)
    }

    /// Whether a machine with this label was made again of a resource of this account, or of another
    /// that reaches the same project.
    fn has_made(&self, made: &HashSet<String>, of: &str) -> bool {
        made.contains(of) || self.elsewhere.has(of)
    }

    /// Writes several at a time; false if there was no time for all.
    async fn write_all(
        &self,
        mut compared: Vec<Compared>,
        unlisted: Vec<Record>,
        invoke: &impl Invoke,
        tally: &mut Tally,
    ) -> bool {
        // What is held goes first: the next inventory may find too few to hold them.
        compared.sort_by_key(|one| !one.is_newly_held());
        let compared = compared.into_iter().map(Box::new).map(Found::Listed);
        let unlisted = unlisted.into_iter().map(Box::new).map(Found::Unlisted);
        let mut written = stream::iter(compared.chain(unlisted))
            .map(|found| self.write_one(found, invoke))
            .buffer_unordered(AT_ONCE);
        let mut whole = true;
        while let Some(one) = written.next().await {
            match one {
                Some(one) => tally.take_in(one),
                None => whole = false,
            }
        }
        whole
    }

    /// Writes what was found of one resource; none if there is no time left to begin with it. One
    /// record's failure keeps no other from being compared.
    async fn write_one(&self, found: Found, invoke: &impl Invoke) -> Option<Tally> {
        if self.budget.is_over_for_writing() {
            return None;
        }
        let mut tally = Tally::default();
        let (record, written) = match found {
            Found::Listed(one) => {
                let record = one.record.clone();
                (record, self.write(*one, invoke, &mut tally).await)
            }
            Found::Unlisted(record) => {
                let record = *record;
                let written = self.unlisted(record.clone(), invoke, &mut tally).await;
                (record, written)
            }
        };
        if let Err(error) = written {
            let now = self.context.clock.now();
            tally.health.count(&record, self.in_force, now);
            tally.add(self.context.failed(&record, &error));
        }
        Some(tally)
    }

    fn compare(&self, old: Option<Record>, look: Look) -> Compared {
        let resource = &look.resource;
        let mut record = old.clone().unwrap_or_else(|| {
            let reference = ResourceRef {
                account: self.account.clone(),
                id: resource.id.clone(),
            };
            Record {
                first_seen_at: Some(look.requested_at),
                ..Record::first_seen(reference, resource)
            }
        });
        self.take_in(&mut record, &look);
        let verdict = self.verdict(&record, resource);
        let schedule = verdict.membership.schedule().cloned();
        let new = record.note_joining(&verdict, self.context.clock.now());
        let joined = follows(&verdict) && (!record.opted_in || record.schedule != schedule);
        record.opted_in = verdict.opted_in;
        record.schedule = schedule;
        let lost_storage = record.lost_storage;
        if !verdict.opted_in || lost_storage.is_some_and(|lost| lost.is_back(&resource.size)) {
            record.held = false;
            record.lost_storage = None;
        }
        let (rules, now) = (self.in_force.rules(), self.context.clock.now());
        record.orphaned = left_behind(&record, rules, now) == Some(LeftBehind::Orphaned);
        Compared {
            new,
            joined,
            was: old,
            record,
            look,
            verdict,
        }
    }

    /// Writes into a record what a look shows.
    fn take_in(&self, record: &mut Record, look: &Look) {
        let resource = &look.resource;
        record.describe(resource);
        record.missing_since = None;
        let double = self.elsewhere.get(&resource.id);
        // What this account does not look after is the other one's alone.
        record.duplicate_of = double.filter(|_| resource.unsupported.is_none()).cloned();
        let observed = Observation::of(look).recorded(record);
        if matches!(record.phase, Phase::Gone { .. }) {
            record.phase = Phase::Settled { at: observed.power };
            record.handled = None;
            record.opted_in = false;
            record.joined_at = None;
        }
        let standing = method::standing(resource, record);
        if let (Phase::Settled { at }, Some(standing)) = (&mut record.phase, standing) {
            *at = standing;
        }
        record.observe(observed);
        note_hibernation(record, look);
    }

    fn verdict(&self, record: &Record, resource: &Resource) -> Verdict {
        judge(
            record,
            Subject::seen(record, resource),
            self.in_force.rules(),
            self.context.clock.now(),
        )
    }

    /// Nothing is held in an account's first inventory: all is new to it.
    fn hold_too_many(&self, compared: &mut [Compared]) {
        if self.first {
            return;
        }
        let held_before = compared.iter().filter(|one| one.record.held).count();
        let new = compared.iter_mut().filter(|one| one.new);
        let new = new.map(|one| &mut one.record);
        let max_new = self.in_force.configuration.settings.max_new;
        joining::hold_too_many(new, held_before, max_new);
    }

    async fn write(
        &self,
        one: Compared,
        invoke: &impl Invoke,
        tally: &mut Tally,
    ) -> Result<(), Error> {
        let now = self.context.clock.now();
        let mut record = one.record.clone();
        record.due_at = due_at(&record, self.in_force.rules(), now);
        if one.was.as_ref() == Some(&record) {
            tally.note_held(&record);
        } else {
            self.wrote.set(true);
            match self.context.store.save(record.clone()).await {
                Ok(saved) => {
                    record = saved;
                    let events = one.events().into_iter();
                    let outcomes = events.map(|event| Outcome::of(&record, now, event));
                    tally.add(self.context.reported(outcomes.collect()));
                    tally.newly_held |= one.is_newly_held();
                    tally.note_held(&record);
                    tally.add(self.double(&record).await?);
                }
                // Another writer was first: the next inventory compares again.
                Err(StoreError::Stale { .. }) => {
                    tally.health.count(&record, self.in_force, now);
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
        // What is stuck is looked at by every inventory, and no sooner.
        if matches!(record.phase, Phase::Stuck { .. }) {
            let looked = if look::is_old(&one.look, now) {
                // Of a long list, or of a slow one.
                look::of_record(self.client, self.budget, &record).await
            } else {
                Ok(Some(one.look))
            };
            self.follow(record, looked, invoke, tally).await;
            return Ok(());
        }
        tally.health.count(&record, self.in_force, now);
        Ok(())
    }

    /// Marks the other account's record of the same resource too, if it is not marked yet: its own
    /// inventory comes minutes later, and an edge may be in between.
    async fn double(&self, record: &Record) -> Result<Vec<Outcome>, Error> {
        let Some(other) = &record.duplicate_of else {
            return Ok(Vec::new());
        };
        let other = reread(self.context.store, other).await?;
        let Some(mut other) = other.filter(|other| other.duplicate_of.is_none()) else {
            return Ok(Vec::new());
        };
        let now = self.context.clock.now();
        other.duplicate_of = Some(record.reference.clone());
        other.due_at = due_at(&other, self.in_force.rules(), now);
        match self.context.store.save(other).await {
            Ok(other) => {
                let reason = Exclusion::TwoAccounts(record.reference.clone()).to_string();
                let conflict = Outcome::of(&other, now, Event::Conflict { reason });
                Ok(self.context.reported(vec![conflict]))
            }
            Err(StoreError::Stale { .. }) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Not in the list: its own Status operation says whether it is gone.
    async fn unlisted(
        &self,
        record: Record,
        invoke: &impl Invoke,
        tally: &mut Tally,
    ) -> Result<(), Error> {
        if matches!(record.phase, Phase::Gone { .. }) || record.in_flight().is_some() {
            let now = self.context.clock.now();
            tally.health.count(&record, self.in_force, now);
            return Ok(());
        }
        self.wrote.set(true);
        match look::of_record(self.client, self.budget, &record).await {
            Ok(None) => {
                self.follow(record, Ok(None), invoke, tally).await;
                Ok(())
            }
            Ok(Some(look)) => {
                let compared = self.compare(Some(record), look);
                self.write(compared, invoke, tally).await
            }
            Err(no_look) => {
                tracing::warn!(%record.reference, reason = %no_look.reason, "no status of what was not listed");
                let record = mend(self.context, record, self.in_force).await?;
                let now = self.context.clock.now();
                tally.health.count(&record, self.in_force, now);
                Ok(())
            }
        }
    }

    async fn follow(
        &self,
        record: Record,
        looked: Looked,
        invoke: &impl Invoke,
        tally: &mut Tally,
    ) {
        self.wrote.set(true);
        let follower = Follower {
            context: self.context,
            budget: self.budget,
            client: self.client,
            in_force: self.in_force,
            complaints: &Complaints::default(),
        };
        let next = follower.decide(&record, &looked).await;
        let mut handed_over = HandedOver::default();
        let was = record.clone();
        let done = follower.carry_out(record, next, &mut handed_over).await;
        follower.hand_over(handed_over, invoke).await;
        tally.add(done.outcomes);
        let now = self.context.clock.now();
        let record = done.record.unwrap_or(was);
        tally.health.count(&record, self.in_force, now);
    }
}

/// How many held resources are named; the event that names them has to stay within its bounds.
const HELD_NAMED: usize = 400;

/// What one inventory has come to so far.
#[derive(Debug, Default)]
struct Tally {
    outcomes: Vec<Outcome>,
    health: Health,
    held: Vec<HeldResource>,
    /// Whether this inventory is the first to hold some of them.
    newly_held: bool,
}

impl Tally {
    /// Adds what one record came to.
    fn take_in(&mut self, one: Self) {
        self.outcomes.extend(one.outcomes);
        self.health += one.health;
        self.held.extend(one.held);
        self.newly_held |= one.newly_held;
    }

    fn add(&mut self, outcomes: Vec<Outcome>) {
        self.outcomes.extend(outcomes);
    }

    fn note_held(&mut self, record: &Record) {
        if record.held {
            self.held.push(HeldResource::of(record));
        }
    }

    /// All that are held, if this inventory holds some more: one event, not one for each.
    fn held(&mut self) -> Option<Event> {
        if !self.newly_held {
            return None;
        }
        let mut resources = std::mem::take(&mut self.held);
        let count = resources.len();
        resources.truncate(HELD_NAMED);
        Some(Event::Held { count, resources })
    }
}

/// What an inventory has to write: a resource that the list showed, or a record of one that it
/// did not.
enum Found {
    Listed(Box<Compared>),
    Unlisted(Box<Record>),
}

/// A resource, what was recorded of it, and what is to be.
struct Compared {
    was: Option<Record>,
    record: Record,
    look: Look,
    verdict: Verdict,
    /// Whether it follows a schedule since this inventory, or another one.
    joined: bool,
    /// Whether it joins now, and no edge of it was ever handled.
    new: bool,
}

impl Compared {
    fn is_newly_held(&self) -> bool {
        // What an apply holds is reported by the inventory that finds it following.
        let was = self.was.as_ref();
        self.record.held && !was.is_some_and(|was| was.held && was.opted_in)
    }

    /// What changed and is worth saying, once.
    fn events(&self) -> Vec<Event> {
        let was = self.was.as_ref();
        let mut events = Vec::new();
        if let (true, Membership::Member { schedule, via }) =
            (self.joined, &self.verdict.membership)
        {
            events.push(Event::Joined {
                schedule: schedule.clone(),
                via: via.to_string(),
                held: self.record.held,
            });
        }
        let tags_changed = was.is_none_or(|was| {
            was.tags != self.record.tags
                || was.cluster != self.record.cluster
                || was.duplicate_of != self.record.duplicate_of
        });
        match &self.verdict.membership {
            Membership::Barred(exclusion) if tags_changed && exclusion.is_conflict() => {
                events.push(Event::Conflict {
                    reason: exclusion.to_string(),
                });
            }
            Membership::Unknown { word, .. } if tags_changed => {
                events.push(Event::UnknownSchedule { word: word.clone() });
            }
            Membership::Barred(_)
            | Membership::Unknown { .. }
            | Membership::Member { .. }
            | Membership::Unnamed => {}
        }
        let problem = |record: &Record| {
            let observed = record.observed.as_ref().filter(|_| record.is_asleep());
            observed.and_then(|observed| observed.busy.clone())
        };
        if let Some(reason) = problem(&self.record)
            && was.and_then(problem).as_ref() != Some(&reason)
        {
            events.push(Event::Stuck {
                direction: Direction::Start,
                cause: None,
                reason,
            });
        }
        if self.record.orphaned && !was.is_some_and(|was| was.orphaned) {
            events.push(Event::Orphaned);
        }
        events
    }
}

#[cfg(test)]
mod tests;
