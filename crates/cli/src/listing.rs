//! Lists the resources of the accounts: live from the providers, or as the last inventory saw them.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use domain::{
    AccountName, ResourceId, ResourceRef,
    configuration::Configuration,
    hibernation::{HibernationState, Mark},
    money::Money,
    record::{Phase, Record},
    resource::{Look, Resource},
};
use environment::{Clock, in_words};
use futures_util::future::join_all;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use lifecycle::{
    Outcome, Providers, Report,
    event::{Event, Subject},
    observe::poll,
};
use provider::{ProviderError, Reading};

use crate::{hibernated::SnapshotPrices, progress::bars, remedies};

/// The interval at which the spinners turn.
const TURN: Duration = Duration::from_millis(100);

/// The resources found, and the accounts that could not be listed.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Each resource as it was seen, sorted by reference.
    pub records: Vec<Record>,
    /// The accounts that could not be listed.
    pub failures: Vec<Failure>,
    /// The price of snapshots in accounts where something is hibernated.
    pub prices: SnapshotPrices,
}

/// An account that could not be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The account.
    pub account: AccountName,
    /// Why it could not be listed.
    pub error: String,
    /// What to do about it.
    pub remedy: String,
}

/// Lists the accounts at their providers concurrently, and writes nothing. `known` holds their
/// records; `read` is called with the number of further resources read of an account.
pub(crate) async fn at_providers(
    providers: &Providers,
    configuration: &Configuration,
    known: Vec<Record>,
    clock: &Clock,
    accounts: &[AccountName],
    read: &(dyn Fn(&AccountName, usize) + Sync),
) -> Listing {
    let known: HashMap<ResourceRef, Record> =
        known.into_iter().map(|record| (record.reference.clone(), record)).collect();
    let recorded = &known;
    let asked = accounts.iter().map(|account| async move {
        let reading =
            Reading { now: &|| clock.now(), until: None, read: &|more| read(account, more) };
        let listed = list((providers, configuration), account, recorded, reading).await;
        (account, listed)
    });
    let answers = join_all(asked).await;
    let mut known = known;
    let mut listing = Listing::default();
    let mut listed = Vec::new();
    for (account, answer) in answers {
        match answer {
            Ok(AccountListing { found, price, unread }) => {
                listed.push(account);
                listing.failures.extend(unread);
                if let Some(price) = price {
                    listing.prices.note(account, price);
                }
                for (reference, look) in found {
                    let known = known.remove(&reference);
                    listing.records.push(described(known, reference, &look));
                }
            }
            Err(failure) => listing.failures.push(failure),
        }
    }
    mark_doubles(&mut listing.records, &listed);
    listing.records.sort_by(|one, next| one.reference.cmp(&next.reference));
    listing
}

/// The resources of an account.
struct AccountListing {
    found: Vec<(ResourceRef, Look)>,
    /// The monthly price of a GB of snapshot, if something was hibernated.
    price: Option<Money>,
    /// What could not be read.
    unread: Vec<Failure>,
}

/// Lists an account, each resource under its reference: a machine that was hibernated has a new id
/// at its cloud, and one that is hibernated now is in no list.
async fn list(
    (providers, configuration): (&Providers, &Configuration),
    account: &AccountName,
    known: &HashMap<ResourceRef, Record>,
    reading: Reading<'_>,
) -> Result<AccountListing, Failure> {
    let failure = |error: &dyn std::error::Error, remedy| Failure {
        account: account.clone(),
        error: in_words(error),
        remedy,
    };
    let client = providers.client(account, configuration).await;
    let client = client.map_err(|error| failure(&error, remedies::of_client(&error)))?;
    let remedy = |error: &ProviderError| {
        let kind = configuration.accounts[account].kind();
        remedies::of_provider(error, kind).to_owned()
    };
    let failed = |error: ProviderError| failure(&error, remedy(&error));
    let listed = client.list(client.kinds(), reading).await.map_err(failed)?;
    let unread = listed.unread.iter();
    let unread = unread.map(|one| failure(one, remedy(&one.error))).collect();
    let unread_kinds: Vec<_> = listed.unread_kinds().map(|(kind, _)| kind).collect();
    let of_account = known
        .values()
        .filter(|one| one.reference.account == *account && !unread_kinds.contains(&one.kind()));
    let hibernated = of_account.filter(|one| one.hibernation.is_some());
    let mut hibernated: Vec<_> = hibernated.collect();
    // A failure only means that the price of snapshots is not shown.
    let price =
        if hibernated.is_empty() { None } else { client.snapshot_price().await.ok().flatten() };
    let mut found = Vec::new();
    for look in listed.looks {
        let resource = &look.resource;
        let own = hibernated.iter().position(|one| is_now(one, resource));
        let reference = match own {
            Some(place) => hibernated.swap_remove(place).reference.clone(),
            None => ResourceRef { account: account.clone(), id: resource.id.clone() },
        };
        found.push((reference, look));
    }
    // If it is not in the list, its snapshot stands for it.
    for record in hibernated.into_iter().filter(|one| one.needs_sight()) {
        let look = lifecycle::observe::sighted(&client, record, (reading.now)());
        let look = look.await.map_err(failed)?;
        found.extend(look.map(|look| (record.reference.clone(), look)));
    }
    Ok(AccountListing { found, price, unread })
}

/// Whether this resource is the present machine of a record that was hibernated.
fn is_now(record: &Record, resource: &Resource) -> bool {
    let made = || {
        let kept = record.hibernation.as_deref()?;
        let mark = Mark::in_tags(&resource.tags)?;
        Some(kept.wakes.contains(&mark))
    };
    record.present() == Some(&resource.id) || made() == Some(true)
}

/// The accounts whose inventory was requested but failed.
pub(crate) fn not_listed(report: &Report) -> Vec<Failure> {
    let failure = |outcome: &Outcome| {
        let Subject::Account { account } = &outcome.subject else {
            return None;
        };
        let error = if let Event::Postponed { reason, .. } = &outcome.event {
            reason.to_string()
        } else if let Event::Declined { reason } = &outcome.event {
            reason.clone()
        } else {
            return None;
        };
        Some(Failure {
            account: account.clone(),
            error,
            remedy: "`offhours doctor` says more".to_owned(),
        })
    };
    report.outcomes.iter().filter_map(failure).collect()
}

/// The record of a resource as an inventory would write it.
fn described(known: Option<Record>, reference: ResourceRef, look: &Look) -> Record {
    let resource = &look.resource;
    // A resource that was gone and has reappeared counts as new.
    let known = known.filter(|record| !matches!(record.phase, Phase::Gone { .. }));
    let mut record = known.unwrap_or_else(|| Record::first_seen(reference, resource));
    record.describe(resource);
    record.observed = Some(poll::observed(&record, look));
    if let Some(kept) = record.hibernation.as_deref_mut() {
        let has_machine = look.sight.as_ref().is_none_or(|sight| {
            matches!(
                sight.hibernation_state(kept),
                HibernationState::Present(_) | HibernationState::Created(_)
            )
        });
        if has_machine {
            kept.adopt(resource.id.clone());
        }
    }
    record
}

/// Marks resources that several of the listed accounts reach. For accounts that were not listed,
/// the result of the last inventory is kept.
pub(crate) fn mark_doubles(records: &mut [Record], listed: &[&AccountName]) {
    let mut reached = BTreeMap::<ResourceId, Vec<ResourceRef>>::new();
    // A resource outside an account's datacenters belongs to another account.
    for record in records.iter().filter(|r| r.unsupported.is_none()) {
        let references = reached.entry(record.reference.id.clone()).or_default();
        references.push(record.reference.clone());
    }
    for record in records {
        let reached = reached.get(&record.reference.id).into_iter().flatten();
        let other = reached
            .filter(|_| record.unsupported.is_none())
            .find(|reference| reference.account != record.reference.account);
        let is_over = |double: &ResourceRef| listed.contains(&&double.account);
        record.duplicate_of = match (other, record.duplicate_of.take()) {
            (Some(other), _) => Some(other.clone()),
            (None, Some(before)) if !is_over(&before) => Some(before),
            (None, _) => None,
        };
    }
}

/// A spinner per account on standard error, if that is a terminal.
#[derive(Debug)]
pub(crate) struct Spinners {
    all: MultiProgress,
    by_account: BTreeMap<AccountName, ProgressBar>,
}

impl Spinners {
    /// Spinners that count the resources read.
    pub(crate) fn of(accounts: &[AccountName]) -> Self {
        Self::with(accounts, "{spinner:.cyan} {prefix}: {pos} resources")
    }

    /// Spinners shown while another invocation takes the inventory.
    pub(crate) fn waiting(accounts: &[AccountName]) -> Self {
        Self::with(accounts, "{spinner:.cyan} {prefix}: taking the inventory")
    }

    fn with(accounts: &[AccountName], template: &str) -> Self {
        let all = bars("Nothing was changed.");
        let spinner = |account: &AccountName| {
            let bar = all.add(ProgressBar::new_spinner());
            let style = ProgressStyle::with_template(template);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar.set_prefix(account.to_string());
            bar.enable_steady_tick(TURN);
            (account.clone(), bar)
        };
        let by_account = accounts.iter().map(spinner).collect();
        Self { all, by_account }
    }

    /// Counts further resources of an account.
    pub(crate) fn read(&self, account: &AccountName, more: usize) {
        if let Some(bar) = self.by_account.get(account) {
            bar.inc(more as u64);
        }
    }

    /// Restores the terminal.
    pub(crate) fn finish(self) {
        for bar in self.by_account.values() {
            bar.finish_and_clear();
        }
        self.all.clear().ok();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use domain::resource::Power;

    use super::*;
    use crate::scene::{OFFICE, configuration, machine, monday, simulated_clouds};

    const FLEET: &str = r#"
        [[droplets]]
        id = 1
        name = "web"
        tags = ["offhours:office"]

        [[servers]]
        id = 11
        name = "ci"
        status = "off"
    "#;

    fn unauthorized(path: &str) -> cloud_simulator::Fault {
        let fault = serde_json::json!({
            "match": {"path_prefix": path}, "times": 9, "does": "unauthorized",
        });
        serde_json::from_value(fault).unwrap()
    }

    fn names(names: &[&str]) -> Vec<AccountName> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[tokio::test]
    async fn the_providers_are_asked_and_the_progress_of_each_account_is_reported() {
        let configuration = configuration(OFFICE);
        let clouds = simulated_clouds(&configuration, FLEET, monday("10:00:00")).await;
        let both = names(&["do-main", "hz-eu"]);
        let heard = Mutex::new(BTreeMap::<String, usize>::new());
        let read = |account: &AccountName, more| {
            *heard.lock().unwrap().entry(account.to_string()).or_default() += more;
        };
        let known = vec![machine("do-main/droplet/1", "old name", &[])];
        let listing =
            at_providers(&clouds.providers, &configuration, known, &clouds.clock, &both, &read)
                .await;
        assert_eq!(listing.failures, []);
        let [web, ci] = &listing.records[..] else {
            panic!("{:?}", listing.records);
        };
        assert_eq!((web.name.as_str(), web.tags.len()), ("web", 1));
        let observed = ci.observed.as_ref().unwrap();
        assert_eq!((observed.power, observed.at), (Power::Stopped, monday("10:00:00")));
        let heard = heard.into_inner().unwrap();
        assert_eq!((heard["do-main"], heard["hz-eu"]), (1, 1));
        let changes = clouds.simulator.log();
        assert!(changes.iter().all(|entry| entry.request.method == "GET"));
    }

    #[tokio::test]
    async fn one_account_that_fails_does_not_hide_the_others() {
        let configuration = configuration(OFFICE);
        let clouds = simulated_clouds(&configuration, FLEET, monday("10:00:00")).await;
        clouds.simulator.add_fault(unauthorized("/v2/"));
        let both = names(&["do-main", "hz-eu"]);
        let listing = at_providers(
            &clouds.providers,
            &configuration,
            Vec::new(),
            &clouds.clock,
            &both,
            &|_, _| (),
        )
        .await;
        assert_eq!(listing.records.len(), 1);
        let [failure] = &listing.failures[..] else {
            panic!("{:?}", listing.failures);
        };
        assert_eq!(failure.account.as_str(), "do-main");
        assert!(failure.error.contains("token refused"), "{failure:?}");
        assert!(failure.remedy.contains("droplet:read"), "{failure:?}");
        assert!(!format!("{failure:?}").contains("secret-"));
    }

    #[test]
    fn what_two_accounts_reach_is_doubled_and_what_was_not_listed_stays_as_it_was() {
        let one = |reference| machine(reference, "ci", &[]);
        let mut records =
            [one("a/server/1"), one("b/server/1"), one("b/server/2"), one("b/server/3")];
        records[2].duplicate_of = Some("a/server/2".parse().unwrap());
        records[3].duplicate_of = Some("z/server/3".parse().unwrap());
        let listed = names(&["a", "b"]);
        mark_doubles(&mut records, &listed.iter().collect::<Vec<_>>());
        let doubles = records.map(|record| record.duplicate_of.map(|other| other.to_string()));
        let expected = [Some("b/server/1"), Some("a/server/1"), None, Some("z/server/3")];
        assert_eq!(doubles, expected.map(|other| other.map(str::to_owned)));
    }
}
