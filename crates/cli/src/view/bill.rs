//! What simulated clouds charge, compared with what they would have charged without any stop.

use std::{collections::BTreeMap, fmt::Write as _};

use domain::AccountName;
use local::{Amount, BillLine, BillQuery, Simulator};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// The charges of a simulation's clouds, by account, since its beginning.
pub(crate) fn charges(simulator: &Simulator) -> BTreeMap<AccountName, Charge> {
    let mut bill = BTreeMap::new();
    for left_running in [false, true] {
        let query = BillQuery { left_running, ..BillQuery::default() };
        for BillLine { resource, currency, amount, .. } in simulator.bill(&query).lines {
            let none = Charge { currency, charged: Amount::ZERO, left_running: Amount::ZERO };
            let charge = bill.entry(resource.account).or_insert(none);
            let to = if left_running { &mut charge.left_running } else { &mut charge.charged };
            *to += amount;
        }
    }
    bill
}

/// The width of the bar of what would have been charged.
const BAR: u32 = 30;

/// The bill for people: what was charged, and what would have been, as two bars for each account.
pub(crate) fn drawn(bill: &BTreeMap<AccountName, Charge>) -> String {
    let mut text = String::new();
    for (account, charge) in bill {
        let (charged, running) = (charge.charged.as_f64(), charge.left_running.as_f64());
        let saved = charge.left_running.less(charge.charged).as_f64();
        let percent = if running > 0.0 { 100.0 * saved / running } else { 0.0 };
        let filled = f64::from(BAR) * (1.0 - percent / 100.0);
        let bar = (0..BAR).map(|at| if f64::from(at) < filled { '#' } else { '.' });
        let bar: String = bar.collect();
        let currency = &charge.currency;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{account:<10} without  {}  {running:>7.2} {currency}\n\
             {:<10} with     {bar}  {charged:>7.2} {currency}: {saved:.2} {currency} saved, {percent:.0} %",
            "#".repeat(BAR as usize),
            ""
        );
    }
    text
}
