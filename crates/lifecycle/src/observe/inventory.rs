//! The inventory: compares what each account has with what is recorded, and updates the records.

mod accounts;
mod covered;
mod hibernated;
pub(super) mod reconcile;

use std::{
    cell::Cell,
    collections::{BTreeSet, HashMap, HashSet},
    iter,
};

use domain::{
    AccountName, ResourceKind, ResourceRef,
    configuration::Configuration,
    decision::due_at,
    look::Look,
    pacing::Others,
    reason::Reason,
    record::{INVENTORY_INTERVAL, Phase, Record},
};
use environment::{Invoke, Metric, in_words};
use jiff::{SignedDuration, Timestamp};
use provider::{Client, Listed};
use store::{
    AccountPrices, AccountState, AccountStates, InForce, ListCost, StoreError, Unreadable,
};
use transition::methods::{Reads, Sighted};

use self::{
    covered::{Covered, present_id},
    hibernated::{Machines, none_if_not_permitted},
    reconcile::Inventory,
};
use crate::{
    Context, Error, account,
    budget::Budget,
    event::{Event, Occurrence},
    failure::{LoginFailure, ObservationError},
    observe::{asked::Asked, in_flight::ReportedErrors, look, set_back},
    report::{Report, health::Health},
};

pub(crate) use accounts::Accounts;

/// Why a listing's lack of tags is not believed.
const TAGS_VANISHED: &str = "all tags vanished at once while the resources are still there: \
    ignored for an hour. If the token lost its right to read tags, give it back";

/// How long such a lack is not believed. It is right where a person removed an account's last tag.
const TAGS_KEPT_FOR: SignedDuration = SignedDuration::from_hours(1);

/// Why a listing is not believed that shows no recorded resource, while each answers 404.
const ALL_VANISHED: &str = "every recorded resource vanished at once: ignored. If the token is \
    another project's, give the right one; if all were deleted, `offhours forget --anyway` them";

/// How long an account's first inventory is expected to take.
const USUALLY_TAKES: SignedDuration = SignedDuration::from_secs(10);

/// How long the prices of an account are kept before they are read again. They are stored so that
/// `saved` needs neither a token nor a provider.
const PRICES_LAST: SignedDuration = SignedDuration::from_hours(24);

/// How long after a failure the prices are read again.
const PRICES_RETRY: SignedDuration = SignedDuration::from_hours(1);

/// Why an inventory continues later.
const UNFINISHED: &str =
    "the inventory was not finished in time, and is taken again at the next tick";

/// Takes the inventory of these accounts now, however recent the last one, or of all if none is
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
    let wanted: BTreeSet<_> =
        if accounts.is_empty() { configured.keys().collect() } else { accounts.iter().collect() };
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
            report.answer(context, [Occurrence::of_account(account, now, event)]);
        } else {
            let trigger = InventoryTrigger::ByPerson;
            let take = take(context, budget, invoke, known, trigger, &mut covered, report);
            if let (_, Some(asked)) = take.await? {
                asked.end(context).await;
            }
        }
    }
    Ok(())
}

/// Returns the accounts whose states a newer program wrote. Without its state it is unknown whether
/// or when an account was ever listed, so this program does not list it.
fn names(unreadable: &[Unreadable]) -> BTreeSet<String> {
    unreadable.iter().map(|one| one.reference.clone()).collect()
}

/// What is known of an account before its inventory.
struct Known<'a> {
    account: &'a AccountName,
    /// Its previous name.
    was: Option<&'a AccountName>,
    /// Whether it was ever listed completely, under either name.
    listed_before: bool,
    state: Option<AccountState>,
    /// What it was asked in this tick; `None` if nothing.
    asked: Option<Asked>,
}

impl<'a> Known<'a> {
    fn of(
        account: &'a AccountName,
        configuration: &'a Configuration,
        states: &AccountStates,
    ) -> Self {
        let configured = configuration.accounts.get(account);
        Self {
            account,
            was: configured.and_then(|account| account.was()),
            listed_before: configuration.was_listed(account, states),
            state: states.get(account).cloned(),
            asked: None,
        }
    }

    /// Reports whether its inventory is likely to finish in the time left, judging by the last one.
    fn fits(&self, budget: Budget<'_>) -> bool {
        let cost = self.state.as_ref().and_then(|state| state.cost.as_ref());
        let took = cost.map_or(USUALLY_TAKES, |cost| cost.took);
        budget.left() >= took + took / 2
    }
}

/// What asked for an inventory. A person is shown how it went; for the timer only news is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InventoryTrigger {
    ByTimer,
    ByPerson,
}

/// Takes one account's inventory. Returns why it could not be listed, or `None` if it could, and
/// what the account was asked in this tick, apart from lists.
async fn take(
    context: Context<'_>,
    budget: Budget<'_>,
    invoke: &impl Invoke,
    known: Known<'_>,
    trigger: InventoryTrigger,
    covered: &mut Covered,
    report: &mut Report,
) -> Result<(Option<Reason>, Option<Asked>), Error> {
    let (account, listed_before) = (known.account, known.listed_before);
    let requested_at = context.clock.now();
    let state = tried(context, account, known.state, requested_at).await?;
    let mut newer = Vec::new();
    if let Some(was) = known.was {
        // Records that are not carried over yet must not pass for new.
        newer = context.store.carry_over(was, account, requested_at).await?;
    }
    let found = context.store.records_of(account).await?;
    let unreadable = references(&found.unreadable);
    let records = report.readable(found);
    let in_force = context.store.in_force().await?;
    for event in set_back::events(context.store, &records, &in_force, requested_at).await? {
        report.add(context, [Occurrence::of_account(account, requested_at, event)]);
    }
    let mut taking =
        Taking { context, trigger, requested_at, state, doubts_tags: false, price_requests: 0 };
    let configuration = &in_force.configuration;
    let mut asked = known.asked;
    newer.extend(unreadable);
    let recorded = Recorded { records: &records, newer: &newer };
    let health = match list(context, budget, account, configuration, recorded).await {
        Ok((client, mut listed)) => {
            let unread = listed.unread_kinds().map(|(kind, _)| kind).collect();
            taking.read_prices(&client).await;
            if let Some(asked) = &mut asked {
                asked.leave_out(requests(&listed));
            }
            let begun = || Asked::begin(taking.state.clone(), configuration, client.clone());
            let asked_so_far = asked.unwrap_or_else(begun);
            taking.doubt_tags(&records, &mut listed.looks);
            covered.read(context, account, configuration, report).await?;
            let inventory = Inventory {
                context,
                budget,
                account,
                in_force: &in_force,
                client: &client,
                first: !listed_before,
                elsewhere: covered.elsewhere(account, configuration),
                newer,
                unread,
                reported_errors: ReportedErrors::default(),
                wrote: Cell::new(false),
                asked: Cell::new(Some(asked_so_far)),
            };
            let health = taking.listed(&inventory, records, listed, invoke, report).await;
            asked = inventory.asked.into_inner();
            if inventory.wrote.into_inner() {
                covered.forget(account);
            }
            health
        }
        Err(failure) => {
            let mut health = taking.not_listed(failure, report);
            health += count_recorded(context, &in_force, records, report).await;
            Some(health)
        }
    };
    context.store.save_account_state(&taking.state).await?;
    if let Some(health) = health {
        context.listener.counted(account, &health);
    }
    Ok((taking.state.error, asked))
}

/// Records that an inventory begins, before anything that may outlast this invocation: if it ends
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

/// An inventory in progress, and what it has learned of the account.
struct Taking<'a> {
    context: Context<'a>,
    trigger: InventoryTrigger,
    requested_at: Timestamp,
    state: AccountState,
    /// Whether the list lacks all tags, and is not believed in that.
    doubts_tags: bool,
    /// How many requests it took to read the prices.
    price_requests: u64,
}

impl Taking<'_> {
    /// Puts back the tags that are recorded if the list lacks all of them, for some time. Stop and
    /// start judge by the tags that they see themselves.
    fn doubt_tags(&mut self, records: &[Record], looks: &mut [Look]) {
        let since = self.state.tagless_since.unwrap_or(self.requested_at);
        let vanished = tags_vanished(records, looks);
        self.state.tagless_since = vanished.then_some(since);
        self.doubts_tags = vanished && self.requested_at.duration_since(since) < TAGS_KEPT_FOR;
        if self.doubts_tags {
            keep_tags(records, looks);
        }
    }

    /// Reads and stores what the provider charges, once a day. Nothing depends on it but what people
    /// are shown of money: a failure leaves the older prices.
    async fn read_prices(&mut self, client: &Client) {
        if self.state.prices_due_at.is_some_and(|due_at| self.requested_at < due_at) {
            return;
        }
        let sent = client.requests();
        let account = self.state.account.clone();
        let read = match client.prices(self.requested_at).await {
            Ok(None) => return,
            Ok(Some(list)) if !list.fits_an_item() => Err("the list is too long".to_owned()),
            Ok(Some(list)) => {
                let prices = AccountPrices { account: account.clone(), list };
                let saved = self.context.store.save_prices(&prices).await;
                saved.map_err(|error| in_words(&error))
            }
            Err(error) => Err(in_words(&error)),
        };
        self.price_requests = client.requests() - sent;
        let wait = if read.is_ok() { PRICES_LAST } else { PRICES_RETRY };
        self.state.prices_due_at = Some(self.requested_at + wait);
        if let Err(reason) = read {
            tracing::warn!(account = %account, "Could not read the prices of {account}: {reason}");
        }
    }

    /// Processes what was listed; `None` if there was no time to write all of it.
    async fn listed(
        &mut self,
        inventory: &Inventory<'_>,
        records: Vec<Record>,
        listed: Listed,
        invoke: &impl Invoke,
        report: &mut Report,
    ) -> Option<Health> {
        let whole = if listed.unread.is_empty() { " whole" } else { "" };
        let shown = format!("listed{whole}: {} resources", listed.looks.len());
        let unread = ObservationError::of_unread(&listed.unread);
        let measured = self.others(inventory.client, &listed);
        let rate = account::rate(inventory.client, self.requested_at, measured);
        self.state.rate = rate;
        let is_database = |look: &&Look| look.resource.id.kind() == ResourceKind::Database;
        let databases = listed.looks.iter().filter(is_database).count();
        let databases = u32::try_from(databases).unwrap_or(u32::MAX);
        let reconciled = inventory.reconcile(records, listed.looks, invoke, report);
        let reconciled = reconciled.await;
        self.state.cost =
            Some(ListCost { requests: listed.requests, databases, took: self.took() });
        self.state.token_fails = false;
        if reconciled.is_none() {
            // Due again at the next tick, after those that have waited longer.
            self.state.tried_at = Some(self.requested_at - INVENTORY_INTERVAL);
            self.failed(ObservationError::of(UNFINISHED), report);
            return None;
        }
        self.state.listed_at = Some(self.requested_at);
        if self.doubts_tags {
            self.failed(ObservationError::of(TAGS_VANISHED), report);
        } else if let Some(unread) = unread {
            self.failed(unread, report);
        } else {
            self.state.error = None;
        }
        if self.trigger == InventoryTrigger::ByPerson {
            let event = Event::Status { state: shown };
            let listed = Occurrence::of_account(&self.state.account, self.requested_at, event);
            report.answer(self.context, [listed]);
        }
        reconciled
    }

    /// Measures what others take of the account's rate limit.
    fn others(&self, client: &Client, listed: &Listed) -> Option<Others> {
        let remaining = client.rate()?.remaining;
        let lists = requests(listed) + self.price_requests;
        self.state.others(remaining, self.requested_at, lists)
    }

    /// Keeps why the account could not be listed, and returns the failure as counted.
    fn not_listed(&mut self, failure: ObservationError, report: &mut Report) -> Health {
        let no_token = failure.login == Some(LoginFailure::NoToken);
        self.state.token_fails = failure.token_refused() || no_token;
        self.state.cost =
            Some(ListCost { took: self.took(), ..self.state.cost.take().unwrap_or_default() });
        let refused = failure.login_refused().then_some(Metric::TokensRefused);
        self.failed(failure, report);
        iter::once(Metric::Failed).chain(refused).collect()
    }

    /// Keeps why an inventory failed, and reports it unless the timer has reported it before.
    fn failed(&mut self, failure: ObservationError, report: &mut Report) {
        let token_refused = failure.login_refused();
        let reason = failure.reason;
        let known = self.state.error.replace(reason.clone());
        let repeated = known.is_some_and(|known| known.eq_ignoring_request(&reason));
        if !repeated || self.trigger == InventoryTrigger::ByPerson {
            let event = Event::Postponed { reason, token_refused, repeated };
            let failed = Occurrence::of_account(&self.state.account, self.requested_at, event);
            report.add(self.context, [failed]);
        }
    }

    fn took(&self) -> SignedDuration {
        let now = self.context.clock.now();
        now.duration_since(self.requested_at)
    }
}

/// Returns how many requests lists took.
fn requests(listed: &Listed) -> u64 {
    let lists = listed.requests.values();
    lists.map(|&requests| u64::from(requests)).sum()
}

/// Counts records whose account or kind could not be listed; what is due does not depend on the listing.
pub(super) async fn count_recorded(
    context: Context<'_>,
    in_force: &InForce,
    records: Vec<Record>,
    report: &mut Report,
) -> Health {
    let mut health = Health::default();
    for record in records {
        let mended = mend(context, record.clone(), in_force).await;
        let record = mended.unwrap_or_else(|error| {
            report.outcomes.extend(context.report_failure(&record, &error));
            record
        });
        health.count(&record, in_force, context.clock.now());
    }
    health
}

/// Lists an account, and rejects a listing that is not believed.
async fn list(
    context: Context<'_>,
    budget: Budget<'_>,
    account: &AccountName,
    configuration: &Configuration,
    recorded: Recorded<'_>,
) -> Result<(Client, Listed), ObservationError> {
    // A token that was replaced may work as before, for another project.
    context.providers.read_again(account, configuration);
    let client = context.providers.client(account, configuration).await;
    let client = client.map_err(|error| ObservationError::from(&error))?;
    let listed = look::list(&client, budget, kinds(account, configuration)).await;
    let listed = listed.map_err(|error| ObservationError::from(&error))?;
    let is_cloud = configuration.accounts[account].cloud().is_some();
    if is_cloud && Box::pin(all_vanished(&client, budget, recorded, &listed)).await? {
        return Err(ObservationError::of(ALL_VANISHED));
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

/// Reports whether resources that are still listed had tags, while nothing listed has any now.
fn tags_vanished(records: &[Record], looks: &[Look]) -> bool {
    let tagless = looks.iter().all(|Look { resource, .. }| {
        resource.tags.is_empty() && resource.cluster.as_ref().is_none_or(|c| c.tags.is_empty())
    });
    let had_tags = |record: &Record| {
        !record.tags.is_empty() || record.cluster.as_ref().is_some_and(|c| !c.tags.is_empty())
    };
    let listed: HashSet<_> = looks.iter().map(|look| &look.resource.id).collect();
    let still_listed = |record: &&Record| listed.contains(&present_id(record));
    tagless && records.iter().filter(still_listed).any(had_tags)
}

/// Gives the resources of a list the tags that are recorded.
fn keep_tags(records: &[Record], looks: &mut [Look]) {
    let known = records.iter().map(|record| (present_id(record), record));
    let known: HashMap<_, _> = known.collect();
    for Look { resource, .. } in looks {
        let Some(record) = known.get(&resource.id) else {
            continue;
        };
        resource.tags.clone_from(&record.tags);
        if let (Some(seen), Some(known)) = (&mut resource.cluster, &record.cluster) {
            seen.tags.clone_from(&known.tags);
        }
    }
}

/// What is recorded of an account, with the resources whose records a newer program wrote.
#[derive(Clone, Copy)]
struct Recorded<'a> {
    records: &'a [Record],
    newer: &'a [ResourceRef],
}

/// Reports whether an account seems to have lost all of its resources at once: the list shows none
/// that is recorded, each answers 404, and nothing of ours is there of any: no snapshot, nor a machine
/// recreated from one. Their records may be older than their first hibernation.
async fn all_vanished(
    client: &Client,
    budget: Budget<'_>,
    Recorded { records, newer }: Recorded<'_>,
    listed: &Listed,
) -> Result<bool, ObservationError> {
    let unread: BTreeSet<_> = listed.unread_kinds().map(|(kind, _)| kind).collect();
    let ids: HashSet<_> = listed.looks.iter().map(|look| &look.resource.id).collect();
    let expected = records.iter().filter(|record| {
        !matches!(record.phase, Phase::Gone { .. }) && !unread.contains(&record.kind())
    });
    let expected: Vec<_> = expected.collect();
    let newer = newer.iter().map(|one| &one.id).filter(|id| !unread.contains(&id.kind()));
    let newer: Vec<_> = newer.collect();
    let mut present = expected.iter().filter_map(|record| record.present()).chain(newer.clone());
    if present.any(|id| ids.contains(id)) {
        return Ok(false);
    }
    // Without its machine, a hibernated resource is in no list.
    let is_hidden = |record: &&Record| Reads::of(record).sight == Sighted::Always;
    let (hidden, expected): (Vec<_>, Vec<_>) = expected.into_iter().partition(is_hidden);
    // With nothing listed, there is nothing to act on that may be another project's.
    let rest = hidden.len() + newer.len();
    if expected.is_empty() && (rest == 0 || listed.looks.is_empty()) {
        return Ok(false);
    }
    for record in &expected {
        if look::of_record(client, budget, record).await?.is_some() {
            return Ok(false);
        }
    }
    let snapshots = look::snapshots(client, budget).await;
    let snapshots = if rest == 0 { none_if_not_permitted(snapshots) } else { snapshots }?;
    let hidden = hidden.into_iter().map(|one| (&one.reference.id, one.hibernation.as_deref()));
    let others = expected.iter().map(|one| &one.reference.id).chain(newer).map(|id| (id, None));
    let machines = Machines::of(&listed.looks);
    let is_traced = |(of, kept)| machines.is_traced(of, kept, &snapshots);
    Ok(!hidden.chain(others).any(is_traced))
}

/// Returns the resources whose records cannot be read, by their keys.
fn references(unreadable: &[Unreadable]) -> Vec<ResourceRef> {
    let parsed = unreadable.iter().map(|one| one.reference.parse());
    parsed.filter_map(Result::ok).collect()
}

/// Recomputes when records are due whose accounts are no longer configured. No inventory reaches
/// them, and an `apply` that ended early left them in the index.
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

/// Recomputes when a record is due, and saves it if that changed.
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

#[cfg(test)]
mod tests;
