//! `offhours list`: the resources in the accounts, what each one follows, and which follow nothing.

use std::collections::{BTreeSet, HashMap};

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use domain::{
    AccountName, ResourceKind, ResourceRef, ScheduleName,
    configuration::Configuration,
    decision::judge,
    hibernation::{MARK_LABEL, OF_LABEL},
    invocation::Question,
    membership::{Exclusion, Membership, Subject, Via},
    record::{Phase, Record},
    resource::{AutoscaleBounds, Power, SavedState},
    stop_method::StopMethod,
};
use environment::in_words;
use jiff::Timestamp;
use provider::{UNSUPPORTED_SERVICES, UnsupportedService};
use schemars::JsonSchema;
use serde::Serialize;
use store::InForce;
use wildmatch::WildMatch;

use super::Format;
use crate::{
    Exit, candidates,
    connection::{Session, all_records, readable},
    context::Context,
    exit::UsageError,
    hibernated::{Hibernated, SnapshotPrices},
    listing::{Failure, Listing, Spinners, at_providers, not_listed},
    output::{self, Style},
    resolve::{
        fits,
        nearest::{advice, exists},
    },
    table::{Cell, Column, Table},
    time::ago,
};

/// List the resources at the providers, the schedule that each one follows, and why.
///
/// With a local store, the providers are asked now, and nothing is written. Against AWS, where this
/// machine holds no token, the list is what the last inventory saw; --refresh takes a new one
/// first.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours list --data offhours.db
  offhours list --uncovered                      what no schedule covers, and why
  offhours list --refresh --account do-main      after an inventory of this account
  offhours list \"berlin-*\" --kind server
  offhours list --tag team:web --schedule office-hours
  offhours list --unsupported                    what Offhours does not stop, and why
  offhours list -o json | jq '.[] | select(.uncovered) | .resource'

An account that cannot be listed does not hide the others; the exit code is then 1.")]
pub struct Args {
    /// Only resources with these names or references; * stands for any text.
    #[arg(value_name = "NAME", add = candidates::resources())]
    names: Vec<String>,
    /// Only resources in this account; may be repeated.
    #[arg(long = "account", value_name = "NAME", add = candidates::accounts())]
    accounts: Vec<AccountName>,
    /// Only resources of this kind; may be repeated.
    #[arg(long = "kind", value_parser = kind_parser(), value_name = "KIND")]
    kinds: Vec<ResourceKind>,
    /// Only resources that follow this schedule.
    #[arg(long, value_name = "NAME", conflicts_with = "uncovered", add = candidates::schedules())]
    schedule: Option<ScheduleName>,
    /// Only resources that no schedule covers.
    #[arg(long)]
    uncovered: bool,
    /// Only resources with this tag, on themselves or on their cluster; * stands for any text.
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Take an inventory of the accounts into the store first, and show that.
    #[arg(long)]
    refresh: bool,
    /// Show what Offhours does not stop, and why: services, and the resources found. Droplets that
    /// are Kubernetes workers are found only at the providers.
    #[arg(long, conflicts_with_all = ["schedule", "uncovered"])]
    unsupported: bool,
}

fn kind_parser() -> impl clap::builder::TypedValueParser<Value = ResourceKind> {
    PossibleValuesParser::new(ResourceKind::ALL.map(ResourceKind::as_str)).map(|word| {
        let kind = ResourceKind::ALL.into_iter().find(|k| k.as_str() == word);
        kind.expect("the possible values are the kinds' own words")
    })
}

/// Lists resources, and reports at the end which accounts could not be listed.
pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    if args.unsupported && context.format == Format::Table {
        // These hold wherever the service runs, and even without one.
        output::print(&format!("{}\n", services(Style::of_stdout())))?;
    }
    let session = context.connection.open().await?;
    let in_force = session.store.in_force().await?;
    let accounts = accounts(args, &in_force.configuration)?;
    if accounts.is_empty() {
        output::remark("No account is configured yet: `offhours apply` applies a configuration.\n");
    }
    let listing = listing(args, &session, &in_force, &accounts).await?;
    let rows: Vec<Row> = listing
        .records
        .iter()
        .map(|record| Row::of(record, &in_force, &listing.prices, session.now))
        .collect();
    if listing.failures.is_empty() {
        check_filters(args, &rows)?;
    }
    show(args, context.format, &rows)?;
    for failure in &listing.failures {
        let Failure { account, error, remedy } = failure;
        output::remark(&format!("error: account {account}: {error}\n  {remedy}\n"));
    }
    Ok(if listing.failures.is_empty() { Exit::Done } else { Exit::Failed })
}

/// Returns the accounts to list. Unknown account and schedule names fail here.
fn accounts(args: &Args, configuration: &Configuration) -> anyhow::Result<Vec<AccountName>> {
    let known = || configuration.accounts.keys().map(AccountName::as_str);
    for account in &args.accounts {
        exists("account", account.as_str(), known())?;
    }
    if let Some(name) = &args.schedule {
        let known = configuration.schedules.keys().map(ScheduleName::as_str);
        exists("schedule", name.as_str(), known)?;
    }
    let wanted =
        |account: &&AccountName| args.accounts.is_empty() || args.accounts.contains(account);
    Ok(configuration.accounts.keys().filter(wanted).cloned().collect())
}

async fn listing(
    args: &Args,
    session: &Session,
    in_force: &InForce,
    accounts: &[AccountName],
) -> anyhow::Result<Listing> {
    let failures = if args.refresh { refresh(session, accounts).await? } else { Vec::new() };
    let mut records = all_records(&session.store).await?;
    records.retain(|record| accounts.contains(&record.reference.account));
    if let Some(providers) = session.providers()?.filter(|_| !args.refresh) {
        let spinners = Spinners::of(accounts);
        let read = |account: &AccountName, more| spinners.read(account, more);
        let configuration = &in_force.configuration;
        let clock = session.clock();
        let listing = at_providers(&providers, configuration, records, clock, accounts, &read);
        let listing = listing.await;
        spinners.finish();
        return Ok(listing);
    }
    report_ages(session, accounts).await?;
    records.retain(|record| !matches!(record.phase, Phase::Gone { .. }));
    Ok(Listing { records, failures, prices: SnapshotPrices::known(&in_force.configuration, None) })
}

/// Has an inventory of the accounts written to the store. Returns the accounts that failed.
async fn refresh(session: &Session, accounts: &[AccountName]) -> anyhow::Result<Vec<Failure>> {
    if accounts.is_empty() {
        return Ok(Vec::new());
    }
    let spinners = Spinners::waiting(accounts);
    let functions = session.functions()?;
    let report = functions.ask(Question::Inventory(accounts.to_vec())).await;
    spinners.finish();
    Ok(not_listed(&report?))
}

/// Reports on standard error how old the shown data is.
async fn report_ages(session: &Session, accounts: &[AccountName]) -> anyhow::Result<()> {
    let states = readable(session.store.account_states().await?);
    for account in accounts {
        let state = states.get(account);
        let seen = match state.and_then(|state| state.listed_at) {
            Some(at) => format!("as seen {}", ago(at, session.now)),
            None => "not listed yet".to_owned(),
        };
        let error = state.and_then(|state| state.error.as_ref());
        let error = error.map(|error| format!("; the latest try: {error}"));
        output::remark(&format!("{account}: {seen}{}\n", error.unwrap_or_default()));
    }
    Ok(())
}

/// Fails if a name or tag filter matches nothing, and suggests a near one.
fn check_filters(args: &Args, rows: &[Row]) -> Result<(), UsageError> {
    let has_name = |glob: &str| {
        let glob = WildMatch::new_case_insensitive(glob);
        rows.iter().any(|row| row.is_named(&glob))
    };
    if let Some(name) = args.names.iter().find(|name| !has_name(name)) {
        let names: BTreeSet<_> = rows.iter().map(|row| row.name.as_str()).collect();
        return Err(nothing("resource", name, &names));
    }
    if let Some(tag) = &args.tag {
        let glob = WildMatch::new_case_insensitive(tag);
        if !rows.iter().any(|row| row.is_tagged(&glob)) {
            let tags: BTreeSet<_> = rows.iter().flat_map(Row::all_tags).collect();
            return Err(nothing("tag", tag, &tags));
        }
    }
    Ok(())
}

fn nothing(what: &str, word: &str, known: &BTreeSet<&str>) -> UsageError {
    // A list of hundreds of names does not help: only a near one is named.
    let near = crate::resolve::nearest::nearest(word, known.iter().copied());
    let near = near.map_or_else(
        || "`offhours list` without it shows what there is".to_owned(),
        |near| format!("did you mean `{near}`?"),
    );
    UsageError(format!("there is no {what} `{word}`; {near}"))
}

/// One resource.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Row {
    /// The resource, as `ACCOUNT/KIND/ID`.
    resource: ResourceRef,
    /// The account that reaches it.
    account: AccountName,
    /// The kind of resource.
    kind: ResourceKind,
    /// Its name at the provider; not unique.
    name: String,
    /// The name of a node pool's cluster; null for other kinds.
    cluster: Option<String>,
    /// The slug of the plan of a machine, of a database, or of a pool's nodes; null if there is
    /// none.
    plan: Option<String>,
    /// Number of nodes of a database or a node pool; null for machines.
    nodes: Option<u32>,
    /// The bounds of a node pool's autoscaler; null if it is off.
    autoscale: Option<AutoscaleBounds>,
    /// Its region or location.
    region: String,
    /// `running`, `stopped` or `between`; null if it was not observed. A database at the size of
    /// its stop is `stopped`.
    status: Option<Power>,
    /// Why no change may be sent now, in the provider's words; null if one may be.
    busy: Option<String>,
    /// Its tags, or its labels as `key=value`.
    tags: BTreeSet<String>,
    /// The tags of a pool's cluster.
    cluster_tags: BTreeSet<String>,
    /// The schedule that it follows; null if it follows none.
    schedule: Option<ScheduleName>,
    /// The rule by which it follows its schedule: `list`, `tag` or `cluster-tag`; null if it
    /// follows none.
    via: Option<&'static str>,
    /// How a stop would stop it, by its schedule's methods, or by the defaults if it follows no
    /// schedule.
    method: StopMethod,
    /// Whether it is held, because it joined with too many others at once or lost storage: it is
    /// untouched until `offhours approve`.
    held: bool,
    /// Why it follows no schedule; null if it follows one.
    uncovered: Option<Uncovered>,
    /// What the machine is recreated from; omitted unless it is or was hibernated.
    #[serde(skip_serializing_if = "Option::is_none")]
    hibernation: Option<Hibernated>,
}

/// Why a resource follows no schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
struct Uncovered {
    /// The reason, as a word for programs.
    why: Gap,
    /// The reason, for people.
    words: String,
}

/// Why a resource follows no schedule, as a word for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Gap {
    /// No schedule is named for it.
    Unnamed,
    /// Its tag opts it out.
    OptedOut,
    /// `protect` covers it.
    Protected,
    /// Offhours does not stop resources like it.
    Unsupported,
    /// Several schedules name it, or several accounts reach it.
    Conflict,
    /// The schedule that is named for it does not exist.
    UnknownSchedule,
    /// Its account is not configured.
    NoAccount,
    /// Its account no longer has such a machine.
    NoMachine,
}

impl Row {
    fn of(record: &Record, in_force: &InForce, prices: &SnapshotPrices, now: Timestamp) -> Self {
        let verdict = judge(record, Subject::recorded(record), in_force.rules(), now);
        let observed = record.observed.as_ref();
        let (nodes, autoscale) = match observed.and_then(|observed| observed.size.as_ref()) {
            Some(SavedState::Database { nodes, .. }) => (Some(*nodes), None),
            Some(SavedState::NodePool { count, autoscale }) => (Some(*count), *autoscale),
            Some(SavedState::Machine(_)) | None => (None, None),
        };
        let policy = verdict.membership.policy(&in_force.configuration);
        let (via, mut uncovered) = attached(&verdict.membership, &in_force.configuration);
        if let (Membership::Unnamed, true) = (&verdict.membership, verdict.opted_in) {
            uncovered = Some(Uncovered {
                why: Gap::Unnamed,
                words: "no schedule names it; an override or a command covers it for now"
                    .to_owned(),
            });
        }
        Self {
            resource: record.reference.clone(),
            account: record.reference.account.clone(),
            kind: record.kind(),
            name: record.name.clone(),
            cluster: record.cluster.as_ref().map(|cluster| cluster.name.clone()),
            plan: record.plan.clone(),
            nodes,
            autoscale,
            region: record.region.clone(),
            status: observed.map(|observed| observed.power),
            busy: observed.and_then(|observed| observed.busy.clone()),
            tags: record.tags.clone(),
            cluster_tags: record
                .cluster
                .as_ref()
                .map(|cluster| cluster.tags.clone())
                .unwrap_or_default(),
            schedule: verdict.membership.schedule().cloned(),
            via,
            method: StopMethod::of(record.kind(), &policy),
            held: record.held,
            uncovered,
            hibernation: Hibernated::of(record, prices),
        }
    }

    fn is_named(&self, glob: &WildMatch) -> bool {
        fits(glob, &self.name, &self.resource)
    }

    fn is_tagged(&self, glob: &WildMatch) -> bool {
        self.all_tags().any(|tag| glob.matches(tag))
    }

    fn all_tags(&self) -> impl Iterator<Item = &str> {
        let tags = self.tags.iter().chain(&self.cluster_tags);
        tags.map(String::as_str)
    }

    fn is_unsupported(&self) -> bool {
        let uncovered = self.uncovered.as_ref();
        uncovered.is_some_and(|uncovered| uncovered.why == Gap::Unsupported)
    }

    /// Reports whether this is a Kubernetes worker: these come and go with their pool, which is
    /// listed.
    fn is_worker(&self) -> bool {
        let is_tagged = || self.tags.iter().any(|tag| tag.starts_with("k8s"));
        self.kind == ResourceKind::Droplet && self.is_unsupported() && is_tagged()
    }

    /// Reports whether the filters let this row through.
    fn is_wanted(&self, args: &Args) -> bool {
        let names: Vec<_> =
            args.names.iter().map(|name| WildMatch::new_case_insensitive(name)).collect();
        let tag = args.tag.as_deref().map(WildMatch::new_case_insensitive);
        let shown = if args.unsupported { self.is_unsupported() } else { !self.is_worker() };
        shown
            && (names.is_empty() || names.iter().any(|glob| self.is_named(glob)))
            && tag.is_none_or(|glob| self.is_tagged(&glob))
            && (args.kinds.is_empty() || args.kinds.contains(&self.kind))
            && (args.schedule.is_none() || args.schedule == self.schedule)
            && (!args.uncovered || self.uncovered.is_some())
    }

    fn size(&self) -> String {
        if self.kind == ResourceKind::Machine {
            return String::new();
        }
        let plan = self.plan.as_deref().unwrap_or("?");
        match (self.nodes, self.autoscale) {
            (None, _) => plan.to_owned(),
            (Some(nodes), None) => format!("{nodes} x {plan}"),
            (Some(nodes), Some(AutoscaleBounds { min, max })) => {
                format!("{nodes} x {plan} ({min}-{max})")
            }
        }
    }

    fn status(&self) -> String {
        let asleep = self.hibernation.as_ref().is_some_and(Hibernated::is_asleep);
        let power = match self.status {
            _ if asleep => "hibernated".to_owned(),
            Some(power) => power.in_a_word(self.kind),
            None => "?".to_owned(),
        };
        match &self.busy {
            Some(busy) => format!("{power}, {busy}"),
            None => power,
        }
    }

    fn why(&self) -> String {
        match (&self.uncovered, self.via) {
            (Some(uncovered), _) => uncovered.words.clone(),
            (None, Some(via)) if self.held => {
                format!("{}; held until `offhours approve`", spoken(via))
            }
            (None, via) => spoken(via.unwrap_or_default()).to_owned(),
        }
    }
}

fn spoken(via: &str) -> &str {
    match via {
        "list" => "in its list",
        "cluster-tag" => "cluster tag",
        other => other,
    }
}

/// Returns the rule by which a resource follows its schedule, or why it follows none.
fn attached(
    membership: &Membership,
    configuration: &Configuration,
) -> (Option<&'static str>, Option<Uncovered>) {
    let uncovered = |why, words: String| (None, Some(Uncovered { why, words }));
    match membership {
        Membership::Member { via, .. } => (
            Some(match via {
                Via::Listed => "list",
                Via::Tag => "tag",
                Via::ClusterTag => "cluster-tag",
            }),
            None,
        ),
        Membership::Unnamed => uncovered(Gap::Unnamed, "no schedule names it".to_owned()),
        Membership::Unknown { word, via } => {
            let known = configuration.schedules.keys().map(ScheduleName::as_str);
            let advice = advice(word, "schedules", known);
            uncovered(
                Gap::UnknownSchedule,
                format!("its {via} names no schedule: `{word}`; {advice}"),
            )
        }
        Membership::Excluded(exclusion) => {
            let why = match exclusion {
                Exclusion::NoAccount(_) => Gap::NoAccount,
                Exclusion::NoMachine(_) => Gap::NoMachine,
                Exclusion::ProtectedByDeployment(_) | Exclusion::Protected(_) => Gap::Protected,
                Exclusion::OptedOut { .. } => Gap::OptedOut,
                Exclusion::Unsupported(_) => Gap::Unsupported,
                Exclusion::TwoSchedules { .. } | Exclusion::TwoAccounts(_) => Gap::Conflict,
            };
            uncovered(why, in_words(exclusion))
        }
    }
}

/// What Offhours does not stop.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Unsupported {
    /// The services that Offhours does not stop, and why.
    services: [UnsupportedService; UNSUPPORTED_SERVICES.len()],
    /// The resources found that Offhours does not stop.
    resources: Vec<Row>,
}

fn show(args: &Args, format: Format, rows: &[Row]) -> anyhow::Result<()> {
    let wanted: Vec<Row> = rows.iter().filter(|row| row.is_wanted(args)).cloned().collect();
    match (format, args.unsupported) {
        (Format::Json, false) => output::print_json(&wanted),
        (Format::Json, true) => {
            output::print_json(&Unsupported { services: UNSUPPORTED_SERVICES, resources: wanted })
        }
        (Format::Table, false) => {
            let style = Style::of_stdout();
            output::print(&table(&wanted, style))?;
            if !wanted.is_empty() {
                output::remark(&summary(&wanted));
            }
            Ok(())
        }
        (Format::Table, true) => Ok(output::print(&found(&wanted, Style::of_stdout()))?),
    }
}

fn table(rows: &[Row], style: Style) -> String {
    if rows.is_empty() {
        return "No resource matches.\n".to_owned();
    }
    let columns = [
        Column::of("Resource"),
        Column::of("Name"),
        Column::of("Size").yields(3),
        Column::of("Region").yields(2),
        Column::of("Status"),
        Column::of("Schedule"),
        Column::text("Why").named(),
        Column::of("Tags").yields(1),
    ];
    let mut named = HashMap::<&str, usize>::new();
    for row in rows {
        *named.entry(row.name.as_str()).or_default() += 1;
    }
    let cells = |row: &Row| {
        // Commands take a unique name; where it is not unique they need the whole reference.
        let resource = if named[row.name.as_str()] == 1 {
            format!("{}/{}", row.account, row.kind)
        } else {
            row.resource.to_string()
        };
        // Tags that Offhours puts on what it creates are not shown.
        let is_mark = |tag: &&str| {
            let key = tag.split(['=', ':']).next();
            key == Some(MARK_LABEL) || key == Some(OF_LABEL)
        };
        let tags = row.tags.iter().map(String::as_str);
        let tags: Vec<_> = tags.filter(|tag| !is_mark(tag)).collect();
        let schedule = row.schedule.as_ref().map_or("-", ScheduleName::as_str);
        vec![
            Cell::new(resource),
            Cell::new(&row.name),
            Cell::new(row.size()),
            Cell::new(&row.region),
            Cell::new(row.status()),
            Cell::new(schedule),
            Cell::new(row.why()),
            Cell::new(tags.join(" ")),
        ]
    };
    let rows: Vec<_> = rows.iter().map(cells).collect();
    Table::whole(style, columns, &rows)
}

fn summary(rows: &[Row]) -> String {
    let uncovered = rows.iter().filter(|row| row.uncovered.is_some()).count();
    let count = crate::configuration_file::count(rows.len(), "resource");
    format!("{count}, {uncovered} without a schedule\n")
}

fn services(style: Style) -> String {
    let columns = [Column::of("Service"), Column::text("Why Offhours does not stop it")];
    let services = UNSUPPORTED_SERVICES.iter();
    let rows = services.map(|one| vec![Cell::new(one.service), Cell::new(one.reason)]);
    Table::whole(style, columns, &rows.collect::<Vec<_>>())
}

fn found(rows: &[Row], style: Style) -> String {
    if rows.is_empty() {
        return "None of these was found in the accounts.\n".to_owned();
    }
    let columns = [Column::of("Found"), Column::of("Name"), Column::text("Why")];
    let rows = rows.iter().map(|row| {
        let cells = [row.resource.to_string(), row.name.clone(), row.why()];
        cells.map(Cell::new).to_vec()
    });
    Table::whole(style, columns, &rows.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
