//! Poll-status: follows what is in flight until it is seen, and takes inventories. Sends no change.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use domain::{
    AccountName, ResourceKind, ResourceRef, ScheduleName,
    hibernation::{HibernationState, SnapshotState},
    look::Look,
    record::{Observed, Record},
    resource::Resource,
};
use environment::{Invoke, in_words};
use futures_util::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use provider::{AT_ONCE, Client};
use store::InForce;
use transition::{
    methods::{self, hibernate},
    view::Observation,
};

use crate::{
    Context, Error,
    account::{by_account, rate},
    budget::Budget,
    event::{Event, Occurrence},
    observe::{
        asked::Asked,
        digest,
        in_flight::{AccountFollower, LookCost, ReportedErrors},
        inventory::{self, Accounts},
        look, notice,
    },
    report::{Report, reread},
};

/// When an invocation looks again at what is in flight, counted from its start: the last look ends
/// before the next invocation begins.
const LOOKS: [SignedDuration; 4] = [
    SignedDuration::from_secs(5),
    SignedDuration::from_secs(10),
    SignedDuration::from_secs(20),
    SignedDuration::from_secs(40),
];

/// How many looks an invocation makes at most.
const LOOKS_IN_A_TICK: u64 = LOOKS.len() as u64 + 1;

/// How long after its latest request something is looked at again within an invocation. What takes
/// longer, as a snapshot or a drain does, is looked at once a minute.
const SOON: SignedDuration = SignedDuration::from_mins(5);

/// The most time that the first look of an invocation takes if inventories are due after it.
const BEFORE_INVENTORIES: SignedDuration = SignedDuration::from_secs(20);

/// While stops and starts wait for an account's rate limit, what is in flight in it is looked at
/// once every this many minutes.
const TURNS: i64 = 4;

/// How many accounts are looked at concurrently: a slow one does not hold up the others.
const ACCOUNTS_AT_ONCE: usize = 8;

/// Runs one tick: looks at what is in flight, takes the inventories that are due, then looks again
/// until nothing is in flight or nearly a minute has passed. With nothing due it ends at once.
pub async fn tick(context: Context<'_>, invoke: &impl Invoke) -> Result<Report, Error> {
    let budget = Budget::begin(context.clock);
    let mut report = Report::default();
    let accounts = Accounts::read(context, &mut report).await?;
    let due = accounts.due(budget.now());
    let mut watch = Watch::new(context, &accounts, accounts.reported_errors());
    let first = if due.is_empty() { budget } else { budget.for_at_most(BEFORE_INVENTORIES) };
    watch.look(first, invoke, &mut report).await?;
    let mut followed = report.in_flight;
    if !due.is_empty() {
        let taken = accounts.take(&due, &mut watch.asked, budget, context, invoke, &mut report);
        for (account, error) in taken.await? {
            watch.reported_errors.record(&account, &error);
        }
        if !watch.goes_on {
            // Something may have begun meanwhile.
            watch.look(budget, invoke, &mut report).await?;
            followed = followed.max(report.in_flight);
        }
    }
    for at in LOOKS {
        if !watch.goes_on {
            break;
        }
        // A look whose time has already passed is skipped.
        if let Ok(wait) = Duration::try_from(at - budget.elapsed()) {
            context.clock.sleep(wait).await;
            if context.clock.is_ending() {
                break;
            }
            watch.look(budget, invoke, &mut report).await?;
            followed = followed.max(report.in_flight);
        }
    }
    if !budget.is_over_for_writing() {
        let configuration = &accounts.configuration;
        notice::report_due(context, configuration, &mut report).await?;
        digest::report_due(context, configuration, &watch.waiting, &mut report).await?;
        watch.end().await;
    }
    if report.outcomes.is_empty() && report.digests.is_empty() && report.notices.is_empty() {
        match followed {
            0 => tracing::info!("Nothing is in flight"),
            n => tracing::info!(in_flight = n, "Nothing new of {n} in flight"),
        }
    }
    Ok(report)
}

/// Looks once at what is in flight, for a caller that waits for it.
pub async fn look_once(context: Context<'_>, invoke: &impl Invoke) -> Result<Report, Error> {
    let budget = Budget::begin(context.clock);
    let mut report = Report::default();
    let accounts = Accounts::read(context, &mut report).await?;
    let mut watch = Watch::new(context, &accounts, ReportedErrors::default());
    watch.look(budget, invoke, &mut report).await?;
    watch.end().await;
    Ok(report)
}

/// Takes the inventory of these accounts now, or of all if none is named, and reports how it went.
pub async fn take_inventory(
    context: Context<'_>,
    invoke: &impl Invoke,
    accounts: &[AccountName],
) -> Result<Report, Error> {
    let mut report = Report::default();
    inventory::take_now(context, invoke, accounts, &mut report).await?;
    Ok(report)
}

/// Reads each resource by its Status operation and reports what that shows.
pub async fn status(context: Context<'_>, references: &[ResourceRef]) -> Result<Report, Error> {
    let budget = Budget::begin(context.clock);
    let in_force = context.store.in_force().await?;
    let mut report = Report::default();
    let mut answers = stream::iter(references)
        .map(|reference| status_of(context, budget, &in_force, reference))
        .buffered(AT_ONCE);
    while let Some(outcome) = answers.next().await {
        report.answer(context, [outcome?]);
    }
    Ok(report)
}

async fn status_of(
    context: Context<'_>,
    budget: Budget<'_>,
    in_force: &InForce,
    reference: &ResourceRef,
) -> Result<Occurrence, Error> {
    let known = reread(context.store, reference).await?;
    let look = async |client: &Client| match &known {
        Some(record) => look::of_record(client, budget, record).await,
        None => look::by_status(client, budget, &reference.id).await,
    };
    let client = context.providers.client(&reference.account, &in_force.configuration).await;
    let event = match client {
        Err(error) => Event::Declined { reason: in_words(&error) },
        Ok(client) => match look(&client).await {
            Ok(Some(look)) => Event::Status {
                state: match asleep(&look, known.as_ref()) {
                    Some(state) => asleep_in_a_line(&client, state).await,
                    None => in_a_line(&look.resource),
                },
            },
            Ok(None) => Event::Status { state: "not found (404)".to_owned() },
            Err(failure) => Event::postponed(failure.reason),
        },
    };
    Ok(Occurrence {
        at: context.clock.now(),
        subject: crate::event::Subject::Resource {
            resource: reference.clone(),
            name: known.map(|record| record.name).unwrap_or_default(),
            follows: None,
        },
        event,
    })
}

/// Returns what is in place of a hibernated machine; `None` if it is there, being made, or gone.
fn asleep<'a>(look: &'a Look, known: Option<&Record>) -> Option<HibernationState<'a>> {
    let sight = look.sight.as_ref()?;
    let kept = known?.hibernation.as_deref()?;
    match sight.hibernation_state(kept) {
        HibernationState::Present(_)
        | HibernationState::BeingCreated(_)
        | HibernationState::Created(_)
        | HibernationState::Gone => None,
        state @ (HibernationState::Hibernated(_)
        | HibernationState::SnapshotLost
        | HibernationState::Duplicated
        | HibernationState::NameTaken(_)
        | HibernationState::Outdated(_)) => Some(state),
    }
}

/// Describes, for people, the snapshot that a machine is recreated from, and what it costs by its
/// provider's price.
async fn asleep_in_a_line(client: &Client, state: HibernationState<'_>) -> String {
    let snapshot = match state {
        HibernationState::Hibernated(snapshot) => snapshot,
        HibernationState::Outdated(_) => return hibernate::problem(state),
        HibernationState::Present(_)
        | HibernationState::BeingCreated(_)
        | HibernationState::Created(_)
        | HibernationState::SnapshotLost
        | HibernationState::Duplicated
        | HibernationState::NameTaken(_)
        | HibernationState::Gone => {
            return format!("hibernated, and {}", hibernate::problem(state));
        }
    };
    let per_gb = client.snapshot_price().await.ok().flatten();
    let month = per_gb.map(|per_gb| per_gb.share(snapshot.centi_gb, 100));
    let month = month.map_or_else(String::new, |month| format!(", {month} a month"));
    let protected = match snapshot.protected {
        Some(true) => ", protected",
        Some(false) => ", not protected",
        None => "",
    };
    let state = match snapshot.state {
        SnapshotState::Available => "",
        SnapshotState::Creating | SnapshotState::Failed | SnapshotState::Unknown => {
            ", not available now"
        }
    };
    let [whole, part] = [snapshot.centi_gb / 100, snapshot.centi_gb % 100 / 10];
    format!(
        "hibernated: snapshot {} of {whole}.{part} GB is there{state}{protected}{month}",
        snapshot.id
    )
}

/// Returns what a look shows, in the terms of the resource's record: a database at the size of its
/// stop counts as stopped.
#[must_use]
pub fn observed(record: &Record, look: &Look) -> Observed {
    methods::observed(Observation::of(look), record)
}

/// Describes what a look shows, for people.
#[must_use]
pub fn in_a_line(resource: &Resource) -> String {
    use domain::resource::Size;
    let size = match &resource.size {
        // A machine over SSH has no size.
        Size::Machine(machine) => Some(machine.plan.clone()).filter(|plan| !plan.is_empty()),
        Size::Database(database) => Some(format!("{} x {}", database.nodes, database.plan)),
        Size::NodePool(pool) => Some(format!("{} of {} nodes", pool.ready, pool.count)),
    };
    let kind = resource.id.kind();
    // For a machine over SSH, `busy` says why the state is unknown.
    let label = if kind == ResourceKind::Machine { "" } else { "busy: " };
    let busy = resource.busy.as_ref().map(|busy| format!("{label}{busy}"));
    let parts = [Some(resource.power.in_a_word(kind)), size, busy];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What is in flight, as one invocation sees it.
struct Watch<'a> {
    context: Context<'a>,
    reported_errors: ReportedErrors,
    accounts: &'a Accounts,
    /// The accounts that this invocation has asked.
    asked: BTreeMap<AccountName, Asked>,
    /// The schedules of what is due or in flight.
    waiting: BTreeSet<ScheduleName>,
    /// Whether nothing was looked at yet.
    is_first: bool,
    /// Whether something in flight may be looked at again.
    goes_on: bool,
}

/// Reports whether what is in flight may end, or go on to its next part, within this invocation.
fn ends_soon(record: &Record, now: Timestamp) -> bool {
    let claimed_at = record.in_flight().map(|transition| transition.claimed_at);
    let asked_at = record.request.as_ref().map(|request| request.asked_at);
    claimed_at.max(asked_at).is_some_and(|at| now.duration_since(at) < SOON)
}

impl<'a> Watch<'a> {
    fn new(context: Context<'a>, accounts: &'a Accounts, reported_errors: ReportedErrors) -> Self {
        Self {
            context,
            reported_errors,
            accounts,
            asked: BTreeMap::new(),
            waiting: BTreeSet::new(),
            is_first: true,
            goes_on: false,
        }
    }

    /// Stores what this invocation has sent, and what the providers say is left.
    async fn end(self) {
        for asked in self.asked.into_values() {
            asked.end(self.context).await;
        }
    }

    /// Looks once at everything that the index says is in flight, and counts how much still is.
    async fn look(
        &mut self,
        budget: Budget<'_>,
        invoke: &impl Invoke,
        report: &mut Report,
    ) -> Result<(), Error> {
        report.in_flight = 0;
        self.goes_on = false;
        let context = self.context;
        let hints = report.readable(context.store.due(context.clock.now()).await?);
        let configured = &self.accounts.configuration.accounts;
        let (hints, removed): (Vec<_>, Vec<_>) = hints
            .into_iter()
            .partition(|record| configured.contains_key(&record.reference.account));
        inventory::mend_all(context, &removed, report).await?;
        let (hints, due): (Vec<_>, Vec<_>) =
            hints.into_iter().partition(|record| record.in_flight().is_some());
        let mut backlog = BTreeMap::<AccountName, u64>::new();
        for record in &due {
            *backlog.entry(record.reference.account.clone()).or_default() += 1;
        }
        self.waiting = due.into_iter().filter_map(|r| r.schedule).collect();
        let references: Vec<_> = hints.into_iter().map(|record| record.reference).collect();
        if references.is_empty() {
            return Ok(());
        }
        let records = report.readable(context.store.records(&references).await?);
        let in_force = context.store.in_force().await?;
        let now = context.clock.now();
        let in_flight = records.into_iter().filter(|r| r.in_flight().is_some());
        let (soon, later): (Vec<_>, Vec<_>) = in_flight.partition(|r| ends_soon(r, now));
        let may_change = !soon.is_empty();
        let (looked_at, left) = if self.is_first {
            (soon.into_iter().chain(later).collect(), Vec::new())
        } else {
            (soon, later)
        };
        self.is_first = false;
        report.in_flight += left.len();
        self.waiting.extend(left.into_iter().filter_map(|r| r.schedule));
        let asking = self.asking(looked_at, budget, &backlog, &in_force, report).await;
        let follow = |Asking { account, client, in_flight, room }| {
            let (reported_errors, in_force) = (&self.reported_errors, &in_force);
            let requests = self.accounts.list_requests(&account);
            let others = self.accounts.others(&account);
            let is_busy = backlog.contains_key(&account);
            async move {
                let follower =
                    AccountFollower { context, budget, client: &client, in_force, reported_errors };
                let round = follower.follow(in_flight, &requests, is_busy, room, invoke).await;
                (round, rate(&client, context.clock.now(), others).map(|rate| (account, rate)))
            }
        };
        let rounds: Vec<_> =
            stream::iter(asking).map(follow).buffer_unordered(ACCOUNTS_AT_ONCE).collect().await;
        for asked in self.asked.values_mut() {
            asked.note(context.clock.now());
        }
        for (round, rate) in rounds {
            if let Some((account, rate)) = rate
                && let Some(asked) = self.asked.get_mut(&account)
            {
                asked.left = Some(rate);
            }
            report.outcomes.extend(round.outcomes);
            report.in_flight += round.in_flight;
            self.goes_on |= round.in_flight > 0 && may_change;
            self.waiting.extend(round.waiting);
        }
        Ok(())
    }

    /// Returns the accounts that may be asked now.
    async fn asking(
        &mut self,
        in_flight: Vec<Record>,
        budget: Budget<'_>,
        backlog: &BTreeMap<AccountName, u64>,
        in_force: &InForce,
        report: &mut Report,
    ) -> Vec<Asking> {
        let context = self.context;
        let mut asking = Vec::new();
        for (account, records) in by_account(in_flight) {
            let client = context.providers.client(&account, &in_force.configuration);
            match client.await {
                Ok(client) => match self.room(&account, &client, &records, backlog, budget).await {
                    0 => {
                        report.in_flight += records.len();
                        let schedules = records.into_iter().filter_map(|record| record.schedule);
                        self.waiting.extend(schedules);
                    }
                    room => {
                        let client = client.sending_at_most(room);
                        asking.push(Asking { account, client, in_flight: records, room });
                    }
                },
                Err(error) => {
                    report.in_flight += records.len();
                    let reason = in_words(&error).into();
                    if self.reported_errors.is_new(&account, &reason) {
                        let now = context.clock.now();
                        let event = Event::postponed(reason);
                        report.add(context, [Occurrence::of_account(&account, now, event)]);
                    }
                }
            }
        }
        asking
    }

    /// Returns how many requests a look may send to an account: as many as its hourly limit regains
    /// in a minute, less what due stops and starts may need. The first look of each invocation is
    /// allowed as long as anything is left of the hour, but while stops and starts wait for that,
    /// only that of every fourth minute. A limit per minute is shared with stop and start.
    async fn room(
        &mut self,
        account: &AccountName,
        client: &Client,
        records: &[Record],
        backlog: &BTreeMap<AccountName, u64>,
        budget: Budget<'_>,
    ) -> u64 {
        let due = backlog.get(account).copied().unwrap_or_default();
        let now = self.context.clock.now();
        let is_its_turn = now.as_second() / 60 % TURNS == 0;
        if due > 0 && !is_its_turn && self.accounts.is_short(account, now) {
            return 0;
        }
        let requests = self.accounts.list_requests(account);
        let cost = LookCost::of(records, &requests, due > 0, now);
        let is_first = !self.asked.contains_key(account);
        let asked = self.asked.entry(account.clone());
        let asked = asked.or_insert_with(|| self.accounts.ask(account, client.clone()));
        let share = asked.to_follow(now).saturating_sub(due);
        let most = if is_first { share.max(cost.least()) } else { share };
        let wanted = cost.whole().saturating_mul(LOOKS_IN_A_TICK);
        asked.plan(self.context, budget, wanted, most).await
    }
}

/// An account that may be asked now.
struct Asking {
    account: AccountName,
    client: Client,
    in_flight: Vec<Record>,
    /// How many requests a look may send.
    room: u64,
}
