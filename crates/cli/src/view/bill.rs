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
pub(crate) fn charges(simulator: &Simulator) -> BTreeMap<AccountName, Charge> {
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

/// The width of the bar of what would have been charged.
const BAR: u32 = 30;

/// The bill for people: what was charged, and what would have been, as two bars for each account.
pub(crate) fn drawn(bill: &BTreeMap<AccountName, Charge>) -> String {
    let mut text = String::new();
    for (account, charge) in bill {
        let (charged, running) = (charge.charged.as_f64(), charge.left_running.as_f64());
        let percent = charge.saved_percent();
        let filled = f64::from(BAR) * (1.0 - percent / 100.0);
        let bar = (0..BAR).map(|at| if f64::from(at) < filled { '#' } else { '.' });
        let bar: String = bar.collect();
        let saved = charge.left_running.less(charge.charged).as_f64();
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
