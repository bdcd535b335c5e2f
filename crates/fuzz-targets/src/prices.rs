//! An operator's prices.

use domain::resource::SavedState;
use report::hours::Prices;

use crate::check;

/// Accepted prices are numbers that can be added up.
pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let prices = match Prices::parse(&text) {
        Ok(prices) => prices,
        Err(error) => return check::has_message(&error),
    };
    assert!(!prices.currency.trim().is_empty());
    let plans = text.split(['"', '\n', '=', '.', ' ']);
    for plan in plans {
        let database = SavedState::Database { plan: plan.to_owned(), nodes: 1, storage_mib: None };
        for price in [prices.node_hour(plan), prices.database_month(&database)] {
            match price {
                Ok(price) => assert!(price.is_finite() && price >= 0.0, "{plan}: {price}"),
                Err(missing) => assert!(missing.contains(plan), "{missing}"),
            }
        }
    }
}
