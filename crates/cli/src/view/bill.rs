//! What simulated clouds charge, compared with what they would have charged without any stop.

use std::collections::BTreeMap;

use domain::AccountName;
use local::{Amount, BillLine, BillQuery, Simulator};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    output::Style,
    table::{Cell, Column},
};

/// What one account is charged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Charge {
    /// The currency of the amounts.
    pub currency: String,
    /// The amount that is charged, as a decimal number.
    #[schemars(with = "String")]
    pub charged: Amount,
    /// The amount that would be charged if nothing had been stopped, as a decimal number.
    #[schemars(with = "String")]
    pub left_running: Amount,
}

impl Charge {
    /// How much lower the bill is, in percent.
    fn saved_percent(&self) -> f64 {
        let left_running = self.left_running.as_f64();
        if left_running == 0.0 {
            return 0.0;
        }
        100.0 * self.left_running.less(self.charged).as_f64() / left_running
    }
}

/// The charges of a simulation's clouds, by account, since its beginning.
pub(crate) fn of(simulator: &Simulator) -> BTreeMap<AccountName, Charge> {
    let lines = |left_running| {
        let query = BillQuery { left_running, ..BillQuery::default() };
        simulator.bill(&query).lines
    };
    let mut bill = BTreeMap::new();
    let mut add = |line: BillLine, to: fn(&mut Charge) -> &mut Amount| {
        let charge = bill.entry(line.resource.account).or_insert(Charge {
            currency: line.currency,
            charged: Amount::ZERO,
            left_running: Amount::ZERO,
        });
        *to(charge) += line.amount;
    };
    for line in lines(false) {
        add(line, |charge| &mut charge.charged);
    }
    for line in lines(true) {
        add(line, |charge| &mut charge.left_running);
    }
    bill
}

/// The bill as a table for people.
pub(crate) fn table(bill: &BTreeMap<AccountName, Charge>, style: Style) -> String {
    let columns = [
        Column::of("Bill"),
        Column::number("Charged"),
        Column::number("Left running"),
        Column::number("Saved"),
    ];
    let row = |(account, charge): (&AccountName, &Charge)| {
        let money = |amount: Amount| format!("{:.2} {}", amount.as_f64(), charge.currency);
        let cells = [
            account.to_string(),
            money(charge.charged),
            money(charge.left_running),
            format!("{:.0} %", charge.saved_percent()),
        ];
        cells.map(Cell::new).to_vec()
    };
    let rows: Vec<_> = bill.iter().map(row).collect();
    crate::table::table(style, &columns, &rows)
}
