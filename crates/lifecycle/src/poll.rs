//! Poll-status: follow what is in flight until it is seen, and take the inventory. Sends no change.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use domain::{
    AccountName, ResourceRef, ScheduleName,
    configuration::Configuration,
    record::{Observed, Record},
    resource::{Look, Resource},
};
use environment::{Function, Invoke, in_words};
use provider::Client;
use store::{InForce, StoreError};

use crate::{
    Context, Error,
    act::save_rate,
    digest, inventory,
    left_alone::reread,
    looks::{self, Looked, NoLook},
    outcome::{Event, Outcome, Report},
    plan::{Seen, Setting, Write, log_since},
    settle::{self, Follow},
};

/// The waits between the looks of one invocation: looks at 0, 5, 10, 20 and 40 s, so that it ends
/// before the next one begins.
const WAITS: [Duration; 4] = [
    Duration::from_secs(5),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(20),
];

/// One tick: inventories that are due, then looks at what is in flight until nothing is, or
/// until nearly a minute has passed. With nothing due it ends at once.
pub async fn tick(context: Context<'_>, invoke: &impl Invoke) -> Result<Report, Error> {
    let mut report = Report::default();
    let (configuration, mut complaints) = inventory::take_due(context, invoke, &mut report).await?;
    let mut waiting = BTreeSet::new();
    let mut followed = 0;
    for wait in WAITS.iter().map(Some).chain([None]) {
        let follows = follow_due(
            context,
            invoke,
            &configuration,
            &mut report,
            &mut complaints,
        );
        waiting = follows.await?;
        followed = followed.max(report.in_flight);
        match wait {
            Some(wait) if report.in_flight > 0 => context.clock.sleep(*wait).await,
            Some(_) | None => break,
        }
    }
    digest::tell_due(context, &configuration, &waiting, &mut report).await?;
    if report.outcomes.is_empty() && report.digests.is_empty() {
        match followed {
            0 => tracing::info!("Nothing is in flight"),
            n => tracing::info!(in_flight = n, "Nothing new of {n} in flight"),
        }
    }
    Ok(report)
}

/// Why accounts could not be asked, as far as it was told: one reason is told once.
#[derive(Debug, Default)]
pub(crate) struct Complaints(BTreeMap<AccountName, String>);

impl Complaints {
    /// Notes a reason that was told before, or now.
    pub(crate) fn note(&mut self, account: &AccountName, reason: &str) {
        self.0.insert(account.clone(), reason.to_owned());
    }

    /// Whether a reason is another than the last one; notes it.
    fn is_new(&mut self, account: &AccountName, reason: &str) -> bool {
        let told = self.0.get(account);
        let new = !told.is_some_and(|told| looks::is_same(told, reason));
        self.note(account, reason);
        new
    }
}

/// One look at what is in flight, for somebody who waits for it.
pub async fn look_once(context: Context<'_>, invoke: &impl Invoke) -> Result<Report, Error> {
    let mut report = Report::default();
    let mut complaints = Complaints::default();
    let configuration = context.store.in_force().await?.configuration;
    follow_due(
        context,
        invoke,
        &configuration,
        &mut report,
        &mut complaints,
    )
    .await?;
    Ok(report)
}

/// Takes the inventory of these accounts now, of all if none is named, and says how it went.
pub async fn take_inventory(
    context: Context<'_>,
    invoke: &impl Invoke,
    accounts: &[AccountName],
) -> Result<Report, Error> {
    let mut report = Report::default();
    inventory::take_now(context, invoke, accounts, &mut report).await?;
    Ok(report)
}

/// Reads each resource by its Status operation and says what that shows.
pub async fn status(context: Context<'_>, references: &[ResourceRef]) -> Result<Report, Error> {
    let in_force = context.store.in_force().await?;
    let mut report = Report::default();
    for reference in references {
        let known = reread(context.store, reference).await?;
        let event = match context
            .providers
            .client(&reference.account, &in_force.configuration)
            .await
        {
            Err(error) => Event::Declined {
                reason: in_words(&error),
            },
            Ok(client) => match looks::by_status(&client, context.clock, &reference.id).await {
                Ok(Some(look)) => Event::Status {
                    state: in_a_line(&look.resource),
                },
                Ok(None) => Event::Status {
                    state: "not found (404)".to_owned(),
                },
                Err(no_look) => Event::postponed(no_look.words),
            },
        };
        let outcome = Outcome {
            at: context.clock.now(),
            subject: crate::outcome::Subject::Resource {
                resource: reference.clone(),
                name: known.map(|record| record.name).unwrap_or_default(),
                follows: None,
            },
            event,
        };
        report.answer(context, [outcome]);
    }
    Ok(report)
}

/// What a look shows, in the words of the resource's record: a database at the size of its stop
/// counts as stopped.
#[must_use]
pub fn observed(record: &Record, look: &Look) -> Observed {
    let seen = Seen {
        resource: &look.resource,
        requested_at: look.requested_at,
        log: &[],
        target: None,
    };
    settle::observation(record, seen)
}

/// What a look shows, for people.
#[must_use]
pub fn in_a_line(resource: &Resource) -> String {
    use domain::resource::{Power, Size};
    let size = match &resource.size {
        Size::Machine { plan } => plan.clone(),
        Size::Database(database) => format!("{} x {}", database.nodes, database.plan),
        Size::NodePool(pool) => format!("{} of {} nodes", pool.ready, pool.count),
    };
    let power = match resource.power {
        Power::Running => "running",
        Power::Stopped => "stopped",
        Power::Between => "between",
    };
    match &resource.busy {
        Some(busy) => format!("{power}, {size}, busy: {busy}"),
        None => format!("{power}, {size}"),
    }
}

/// One look at all that the index says is in flight; notes how much still is, and returns the
/// schedules of what is due or in flight.
async fn follow_due(
    context: Context<'_>,
    invoke: &impl Invoke,
    configuration: &Configuration,
    report: &mut Report,
    complaints: &mut Complaints,
) -> Result<BTreeSet<ScheduleName>, Error> {
    report.in_flight = 0;
    let hints = report.readable(context.store.due(context.clock.now()).await?);
    let (hints, removed): (Vec<_>, Vec<_>) = hints.into_iter().partition(|record| {
        configuration
            .accounts
            .contains_key(&record.reference.account)
    });
    inventory::mend_all(context, &removed, report).await?;
    let (hints, due): (Vec<_>, Vec<_>) = hints
        .into_iter()
        .partition(|record| record.in_flight().is_some());
    let mut waiting: BTreeSet<_> = due.into_iter().filter_map(|r| r.schedule).collect();
    let references: Vec<_> = hints.into_iter().map(|record| record.reference).collect();
    if references.is_empty() {
        return Ok(waiting);
    }
    let records = report.readable(context.store.records(&references).await?);
    let in_force = context.store.in_force().await?;
    let mut by_account = BTreeMap::<AccountName, Vec<Record>>::new();
    for record in records {
        if record.in_flight().is_some() {
            by_account
                .entry(record.reference.account.clone())
                .or_default()
                .push(record);
        }
    }
    for (account, records) in by_account {
        let client = context
            .providers
            .client(&account, &in_force.configuration)
            .await;
        let client = match client {
            Ok(client) => client,
            Err(error) => {
                let reason = in_words(&error);
                if complaints.is_new(&account, &reason) {
                    let now = context.clock.now();
                    let event = Event::postponed(reason);
                    report.add(context, [Outcome::of_account(&account, now, event)]);
                }
                continue;
            }
        };
        let follower = Follower {
            context,
            client: &client,
            in_force: &in_force,
        };
        let follows = follower.follow(records, invoke, report, complaints);
        waiting.extend(follows.await);
        save_rate(&context, &account, &client).await;
    }
    Ok(waiting)
}

/// Follows transitions of one account.
pub(crate) struct Follower<'a> {
    pub context: Context<'a>,
    pub client: &'a Client,
    pub in_force: &'a InForce,
}

impl Follower<'_> {
    /// Looks at each; counts those that go on, and returns their schedules.
    async fn follow(
        &self,
        records: Vec<Record>,
        invoke: &impl Invoke,
        report: &mut Report,
        complaints: &mut Complaints,
    ) -> BTreeSet<ScheduleName> {
        let ids: BTreeSet<_> = records.iter().map(|r| r.reference.id.clone()).collect();
        let looks = looks::to_follow(self.client, self.context.clock, &ids).await;
        let mut waiting = BTreeSet::new();
        let mut to_force = Vec::new();
        for record in records {
            let Some(looked) = looks.get(&record.reference.id) else {
                continue;
            };
            if let Err(no_look) = looked {
                complain(&record, no_look, complaints);
            }
            let (reference, schedule) = (record.reference.clone(), record.schedule.clone());
            let follow = self.decide(&record, looked).await;
            let settled = self.carry_out(record, follow, &mut to_force).await;
            if !settled.ended {
                report.in_flight += 1;
                waiting.extend(schedule);
            }
            report.outcomes.extend(settled.outcomes);
            tracing::debug!(resource.id = %reference, "Looked at {reference}");
        }
        self.ask_to_force(to_force, invoke).await;
        waiting
    }

    /// Judges one look.
    pub(crate) async fn decide(&self, record: &Record, looked: &Looked) -> Follow {
        let look = match looked {
            Ok(Some(look)) => look,
            Ok(None) => return settle::missing(record, self.setting()),
            Err(no_look) => {
                if no_look.token_refused {
                    self.context.providers.forget(&record.reference.account);
                }
                return Follow::Wait;
            }
        };
        let mut log = Vec::new();
        if settle::needs_log(record, &look.resource, self.context.clock.now())
            && let Some(since) = log_since(record)
        {
            match self.client.actions(&record.reference.id, since).await {
                Ok(actions) => log = actions,
                // Without the log nothing may be concluded from the status alone.
                Err(_) => return Follow::Wait,
            }
        }
        let seen = Seen {
            resource: &look.resource,
            requested_at: look.requested_at,
            log: &log,
            target: None,
        };
        settle::follow(record, seen, self.setting())
    }

    /// Writes what following led to.
    pub(crate) async fn carry_out(
        &self,
        record: Record,
        follow: Follow,
        to_force: &mut Vec<ResourceRef>,
    ) -> Followed {
        match follow {
            Follow::Wait => Followed::default(),
            Follow::Force => {
                to_force.push(record.reference);
                Followed::default()
            }
            Follow::Write(write) => self.write(*write).await,
        }
    }

    async fn write(&self, write: Write) -> Followed {
        let now = self.context.clock.now();
        let store = self.context.store;
        let left = write.record.clone();
        match store.commit(write.record, write.history.as_ref()).await {
            Ok(record) => {
                let events = write.events.into_iter();
                let outcomes = events.map(|event| Outcome::of(&record, now, event));
                Followed {
                    ended: record.in_flight().is_none(),
                    outcomes: self.context.told(outcomes.collect()),
                    record: Some(record),
                }
            }
            // Somebody else moved it: looked at again.
            Err(StoreError::Stale { .. }) => Followed::default(),
            Err(error) => Followed {
                outcomes: self.context.failed(&left, &error),
                ..Followed::default()
            },
        }
    }

    /// Stop looks again before it cuts; a lost invocation costs one tick.
    pub(crate) async fn ask_to_force(&self, to_force: Vec<ResourceRef>, invoke: &impl Invoke) {
        if to_force.is_empty() {
            return;
        }
        let event = serde_json::json!({ "cause": "due", "resources": to_force });
        if let Err(error) = invoke.invoke(Function::Stop, event).await {
            tracing::error!("{}", in_words(&error));
        }
    }

    fn setting(&self) -> Setting<'_> {
        Setting {
            rules: self.in_force.rules(),
            writer: self.context.writer,
            now: self.context.clock.now(),
        }
    }
}

/// What became of one record that was followed.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    /// Whether nothing is under way any more.
    pub ended: bool,
    /// What was told.
    pub outcomes: Vec<Outcome>,
    /// The record, if it was written.
    pub record: Option<Record>,
}

/// Says why a look failed, once per account and reason: the next one is seconds away.
fn complain(record: &Record, no_look: &NoLook, complaints: &mut Complaints) {
    let reference = &record.reference;
    let words = &no_look.words;
    if complaints.is_new(&reference.account, words) {
        tracing::warn!(resource.id = %reference, "Could not look at {reference}: {words}");
    }
}
