//! One account in `offhours status`.

use std::collections::BTreeMap;

use domain::{
    AccountName,
    configuration::{Account, AccountKind},
};
use jiff::Timestamp;
use report::state::AccountFailure;
use schemars::JsonSchema;
use serde::Serialize;
use store::{AccountState, InForce};

use crate::{
    output::shortened,
    print::{Cell, Column, Row},
};

/// One account.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct AccountRow {
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
    brief: Option<String>,
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
            brief: failure.as_ref().map(|failure| failure.brief.clone()),
            needs_person: failure.map(|failure| failure.whole),
        }
    }

    pub(super) fn wrong(self) -> Option<String> {
        self.provider?;
        Some(format!("account {}: {}", self.account, self.said()?))
    }

    /// Why it needs a person, in a few words.
    pub(super) fn failing(&self) -> Option<String> {
        Some(format!("account {}: {}", self.account, self.brief.as_ref()?))
    }

    fn mark(&self, cell: Cell) -> Cell {
        if self.needs_person.is_some() { cell.alarming() } else { cell }
    }

    fn said(&self) -> Option<&String> {
        self.needs_person.as_ref().or(self.error.as_ref())
    }
}

impl Row for AccountRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::Fixed("Account", |row, _| row.mark(Cell::new(&row.account))),
        Column::Fixed("Provider", |row, _| Cell::any(row.provider)),
        Column::Time("Last listed", |row, screen| {
            Cell::new(row.listed_at.map_or_else(|| "not yet".to_owned(), |at| screen.time(at)))
        }),
        Column::Text("Remark", |row, _| {
            row.mark(match (row.said(), row.provider) {
                (Some(said), Some(_)) => Cell::new(shortened(said)),
                (_, None) => Cell::new("no longer configured"),
                (None, Some(_)) => Cell::default(),
            })
        }),
    ];
}
