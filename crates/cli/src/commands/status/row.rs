//! The rows for one resource and for one account.

use std::collections::BTreeMap;

use domain::{
    AccountName, ResourceRef,
    configuration::{Account, AccountKind, Override, Target},
    decision::{Decision, LeaveReason, Rules, Verdict, judge, observer, override_of},
    explanation::{StandingCommand, next_edge, standing_command},
    membership::Subject,
    overdue::overdue,
    reason::Reason,
    record::{Ending, Phase, Record},
    resource::{Power, SavedState},
    schedule::{Desired, desired_or_any},
    stop_method::StopMethod,
};
use jiff::{Timestamp, tz::TimeZone};
use lifecycle::event::watching;
use schemars::JsonSchema;
use serde::Serialize;
use store::{AccountState, InForce};

use crate::{
    hibernated::{Hibernated, SnapshotPrices},
    output::shortened,
    state::{AccountFailure, PhaseName, State, is_overdue, needs_person, stands_until},
    table::{Cell, Column},
    time::{NextEdge, length, short},
};

/// One resource.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Row {
    /// The resource.
    pub resource: ResourceRef,
    /// Its name at the provider.
    pub name: String,
    /// The schedule that it follows; null if it follows none.
    pub schedule: Option<String>,
    /// The desired state now; null if either state will do.
    pub desired: Option<Desired>,
    /// Its phase.
    pub phase: PhaseName,
    /// Its state in a word or two: `running`, `stopping`, `stop stuck`. The reason is in
    /// `needs_person`.
    pub state: String,
    /// When the phase began, as far as the record shows; null if it does not.
    pub since: Option<Timestamp>,
    /// The next edge that has a desired state, or, while a manual command stands, another one; null
    /// if there is none.
    pub next: Option<NextEdge>,
    /// How a stop would stop it, by its schedule's methods, or by the defaults if it follows no
    /// schedule.
    pub method: StopMethod,
    /// The override that decides; null if none does.
    #[serde(rename = "override")]
    pub overridden: Option<Overriding>,
    /// The manual command that it follows; null if it follows none.
    pub manual: Option<StandingCommand>,
    /// The saved state that a start will restore; null if there is none.
    pub saved: Option<SavedState>,
    /// What the machine is recreated from; omitted unless it is or was hibernated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hibernation: Option<Hibernated>,
    /// Since when it should have been in the desired state, if that is longer than its kind usually
    /// takes; null otherwise.
    pub overdue_since: Option<Timestamp>,
    /// What only a person can resolve, and how; null if nothing needs a person.
    pub needs_person: Option<String>,
    /// The latest failure; null if there is none.
    pub last_error: Option<String>,
    /// What else is worth knowing; null if nothing is.
    pub remark: Option<String>,
    /// What its own Status operation shows; omitted if that was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<String>,
}

/// The override that decides over a resource.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Overriding {
    /// The target of the override: `resource` or `schedule`.
    pub of: &'static str,
    /// The desired state.
    pub desired: Desired,
    /// When the override ends, exclusive.
    pub until: Timestamp,
    /// Who set it.
    pub by: String,
    /// The reason; null if none was given.
    pub why: Option<String>,
}

impl From<&Override> for Overriding {
    fn from(one: &Override) -> Self {
        Self {
            of: match one.target {
                Target::Resource(_) => "resource",
                Target::Schedule(_) => "schedule",
            },
            desired: one.desired,
            until: one.ends_at,
            by: one.by.clone(),
            why: one.why.clone(),
        }
    }
}

impl Row {
    /// Builds the row of a record. Times in its words are in the zone of the screen.
    pub(super) fn of(
        record: &Record,
        in_force: &InForce,
        prices: &SnapshotPrices,
        zone: &TimeZone,
        now: Timestamp,
    ) -> Self {
        let hibernation = Hibernated::of(record, prices);
        let rules = in_force.rules();
        let verdict = judge(record, Subject::recorded(record), rules, now);
        let manual = standing_command(record, &verdict, rules, now);
        let next = next_edge(record, &verdict, manual.as_ref(), rules, now)
            .and_then(|edge| Some(NextEdge { at: edge.at?, to: edge.to }));
        let by_hand = manual.as_ref().map(|command| {
            let done = match command.desired {
                Desired::Running => "started",
                Desired::Stopped => "stopped",
            };
            let until = stands_until(command, verdict.membership.schedule(), zone, now);
            format!("{done} by {} {until}", command.by)
        });
        let remarks = remarks(record, hibernation.as_ref(), &verdict, rules, now);
        let policy = verdict.membership.policy(rules.configuration);
        let state = State::of(record);
        let overdue = overdue(record, rules, in_force.since, now);
        let is_late = || overdue.map(|overdue| is_overdue(record, overdue, zone, now));
        Self {
            resource: record.reference.clone(),
            name: record.name.clone(),
            schedule: verdict.membership.schedule().map(ToString::to_string),
            desired: verdict.desired,
            phase: state.phase,
            state: state.words,
            since: state.since,
            next,
            method: StopMethod::of(record.kind(), &policy),
            overridden: override_of(record, rules, now).map(Overriding::from),
            manual,
            saved: record.saved.clone(),
            overdue_since: overdue.map(|overdue| overdue.since),
            needs_person: needs_person(record, &verdict, rules, now).or_else(is_late),
            last_error: record.last_error.as_ref().map(Reason::to_string),
            remark: in_one(by_hand.into_iter().chain(remarks)),
            hibernation,
            live: None,
        }
    }

    /// The cells for people, in the order of the columns.
    pub(super) fn cells(&self, columns: Columns, zone: &TimeZone, now: Timestamp) -> Vec<Cell> {
        let time = |at| short(at, zone, now);
        let mark = |cell: Cell| match self.needs_person {
            Some(_) => cell.alarming(),
            None => cell,
        };
        let reference = if columns.whole_references {
            self.resource.to_string()
        } else {
            format!("{}/{}", self.resource.account, self.resource.kind())
        };
        let mut cells = vec![
            Cell::new(reference),
            mark(Cell::new(&self.name)),
            Cell::new(self.schedule.as_deref().unwrap_or_default()),
            Cell::desired(self.desired),
        ];
        if columns.overrides {
            let text = |one: &Overriding| {
                let until = time(one.until);
                match one.of {
                    "schedule" => format!("schedule {} until {until} ({})", one.desired, one.by),
                    _ => format!("{} until {until} ({})", one.desired, one.by),
                }
            };
            cells.push(Cell::new(self.overridden.as_ref().map(text).unwrap_or_default()));
        }
        cells.push(mark(Cell::new(&self.state)));
        cells.push(Cell::new(match (columns.live, self.since) {
            (true, _) => self.live.clone().unwrap_or_default(),
            (false, since) => {
                since.map(|since| length(now.duration_since(since))).unwrap_or_default()
            }
        }));
        let next = self.next.as_ref();
        let next = next.map(|next| format!("{} {}", desired_or_any(next.to), time(next.at)));
        let made = || self.hibernation.as_ref().filter(|one| one.is_asleep());
        let made = || made().and_then(Hibernated::as_it_was);
        let saved = self.saved.as_ref().map(ToString::to_string);
        let saved = saved.or_else(|| made().map(ToOwned::to_owned));
        let remarks = [&self.needs_person, &self.last_error, &self.remark];
        let remark = remarks.into_iter().flatten().next();
        let remark = remark.map(|remark| shortened(remark));
        cells.extend([next, saved].map(|text| Cell::new(text.unwrap_or_default())));
        cells.push(mark(Cell::new(remark.unwrap_or_default())));
        cells
    }
}

fn in_one(remarks: impl Iterator<Item = String>) -> Option<String> {
    let remarks: Vec<_> = remarks.collect();
    (!remarks.is_empty()).then(|| remarks.join("; "))
}

/// Why a machine runs on less than its own plan, or runs although its latest edge stops it.
fn runs_otherwise(record: &Record) -> Option<String> {
    if record.phase != (Phase::Settled { at: Power::Running }) {
        return None;
    }
    if let Some(saved @ SavedState::Machine(_)) = &record.saved {
        return Some(format!("on its small plan: its next start puts {saved} back"));
    }
    let (last, handled) = record.last.as_ref().zip(record.handled.as_ref())?;
    let is_left = matches!(last.ending, Ending::LeftRunning | Ending::TooLate);
    (is_left && last.key == handled.key).then(|| last.ending.to_string())
}

/// What else is worth knowing and needs no action.
fn remarks(
    record: &Record,
    hibernation: Option<&Hibernated>,
    verdict: &Verdict,
    rules: Rules<'_>,
    now: Timestamp,
) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Decision::Leave(reason @ (LeaveReason::Excluded(_) | LeaveReason::Gone)) =
        &verdict.decision
    {
        remarks.push(reason.to_string());
    }
    let rule = verdict.membership.rule(rules.configuration);
    if let Some(rule) = rule
        && observer(record, &rule.policy, rules.configuration).is_some()
    {
        remarks.push("observed only: nothing is sent".to_owned());
    }
    if let (Some(until), Some(transition)) = (record.watched_until(), record.in_flight()) {
        remarks.push(watching(transition.direction, until));
    }
    let asleep = hibernation.filter(|hibernated| hibernated.is_asleep());
    remarks.extend(asleep.map(|hibernated| hibernated.in_words(now)));
    remarks.extend(runs_otherwise(record));
    if let Some(at) = record.retry_at.filter(|&at| at > now) {
        remarks.push(format!("will retry at {}", at.strftime("%H:%M UTC")));
    }
    remarks
}

/// Which columns a table has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns {
    /// Whether references are shown in full.
    pub(super) whole_references: bool,
    /// Whether any override is active.
    pub(super) overrides: bool,
    /// Whether Status operations were called.
    pub(super) live: bool,
}

impl Columns {
    /// The columns, in the order of [`Row::cells`].
    pub(super) fn all(self) -> Vec<Column> {
        let mut columns = vec![
            Column::of("Resource"),
            Column::of("Name"),
            Column::of("Schedule").yields(4),
            Column::of("Desired").yields(5),
        ];
        let overrides = Column::of("Override").yields(1);
        columns.extend(self.overrides.then_some(overrides));
        columns.push(Column::of("State"));
        columns.push(if self.live {
            Column::of("Live").yields(6)
        } else {
            Column::dispensable("For")
        });
        columns.extend([
            Column::of("Next").yields(6),
            Column::of("Saved").yields(2),
            Column::text("Remark"),
        ]);
        columns
    }
}

/// One account.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AccountRow {
    /// The account's name.
    pub account: AccountName,
    /// The cloud, or `ssh`; null if the account is no longer configured.
    pub provider: Option<AccountKind>,
    /// When its resources were last listed completely; null if they never were.
    pub listed_at: Option<Timestamp>,
    /// When listing it was last tried; null if it never was.
    pub tried_at: Option<Timestamp>,
    /// Why the last listing failed; null if it did not.
    pub error: Option<String>,
    /// What only a person can resolve: a token that fails, or no listing for 15 minutes. Null if
    /// nothing needs a person.
    pub needs_person: Option<String>,
    #[serde(skip)]
    failure: Option<AccountFailure>,
}

impl AccountRow {
    pub(super) fn of(
        account: &AccountName,
        in_force: &InForce,
        states: &BTreeMap<AccountName, AccountState>,
        now: Timestamp,
    ) -> Self {
        let configured = in_force.configuration.accounts.get(account);
        let state = states.get(account);
        let failure = configured.and_then(|_| AccountFailure::of(state, in_force.since, now));
        Self {
            account: account.clone(),
            provider: configured.map(Account::kind),
            listed_at: state.and_then(|state| state.listed_at),
            tried_at: state.and_then(|state| state.tried_at),
            error: state.and_then(|state| Some(state.error.as_ref()?.to_string())),
            needs_person: failure.as_ref().map(|failure| failure.whole.clone()),
            failure,
        }
    }

    pub(super) fn cells(&self, zone: &TimeZone, now: Timestamp) -> Vec<Cell> {
        let time = |at| short(at, zone, now);
        let mark = |cell: Cell| match self.needs_person {
            Some(_) => cell.alarming(),
            None => cell,
        };
        let remark = match (self.said(), self.provider) {
            (Some(said), Some(_)) => shortened(said),
            (_, None) => "no longer configured".to_owned(),
            (None, Some(_)) => String::new(),
        };
        let provider = self.provider.map(|provider| provider.to_string());
        let listed = self.listed_at.map_or_else(|| "not yet".to_owned(), time);
        vec![
            mark(Cell::new(&self.account)),
            Cell::new(provider.unwrap_or_default()),
            Cell::new(listed),
            mark(Cell::new(remark)),
        ]
    }

    /// What is wrong with the account, in a line.
    pub(super) fn wrong(self) -> Option<String> {
        let account = &self.account;
        self.provider?;
        let said = self.said();
        said.map(|said| format!("account {account}: {said}"))
    }

    /// Why it needs a person, in a few words.
    pub(super) fn failing(&self) -> Option<String> {
        let failure = self.failure.as_ref()?;
        Some(format!("account {}: {}", self.account, failure.brief))
    }

    fn said(&self) -> Option<&String> {
        self.needs_person.as_ref().or(self.error.as_ref())
    }

    /// The columns, in the order of [`AccountRow::cells`].
    pub(super) const COLUMNS: [Column; 4] = [
        Column::of("Account"),
        Column::of("Provider"),
        Column::of("Last listed"),
        Column::text("Remark"),
    ];
}
