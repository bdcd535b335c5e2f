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
    print::{Cell, Column, Row, Screen},
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

    fn said(&self) -> Option<&String> {
        self.needs_person.as_ref().or(self.error.as_ref())
    }
}

impl Row for AccountRow {
    const COLUMNS: &'static [Column] = &[
        Column::Fixed("Account"),
        Column::Fixed("Provider"),
        Column::Fixed("Last listed"),
        Column::Text("Remark"),
    ];

    fn cells(&self, screen: &Screen) -> Vec<Cell> {
        let mark = |cell: Cell| match self.needs_person {
            Some(_) => cell.alarming(),
            None => cell,
        };
        let remark = match (self.said(), self.provider) {
            (Some(said), Some(_)) => shortened(said),
            (_, None) => "no longer configured".to_owned(),
            (None, Some(_)) => String::new(),
        };
        let listed = self.listed_at.map_or_else(|| "not yet".to_owned(), |at| screen.time(at));
        vec![
            mark(Cell::new(&self.account)),
            Cell::any(self.provider),
            Cell::new(listed),
            mark(Cell::new(remark)),
        ]
    }
}
