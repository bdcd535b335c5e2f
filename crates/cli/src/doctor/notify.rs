//! Checks whether the targets of `[notify]` accept what is sent to them.

use domain::configuration::Configuration;
use jiff::tz::TimeZone;
use report::{count, time::local};
use store::{FailingTarget, Store, StoreError};

use super::{Check, Finding, or_ok};

pub(crate) async fn check(
    store: &Store,
    configuration: &Configuration,
    zone: &TimeZone,
) -> Result<Vec<Finding>, StoreError> {
    let targets = &configuration.settings.notify;
    if targets.is_empty() {
        return Ok(Vec::new());
    }
    let waiting = store.waiting_events().await?.read;
    let failing = store.failing_targets().await?.read;
    let failing = failing.values().filter(|one| targets.contains_key(&one.target));
    let findings = failing.map(|FailingTarget { target, since, error, is_gone }| {
        let since = local(*since, zone);
        if *is_gone {
            let remedy = format!(
                "correct its address, and `offhours notify test {target}`: it gets events again once \
                 it accepts that; or remove [notify.{target}]"
            );
            let found = format!("gets no events since {since}: {error}");
            return Finding::problem(Check::Notify, found, remedy).of(target);
        }
        let left = waiting.values().filter(|event| event.target == *target).count();
        let left = count(left, "event");
        let found =
            format!("has accepted nothing since {since}: {error}; kept for a day at most: {left}");
        let remedy = format!("`offhours notify test {target}` tries it");
        Finding::problem(Check::Notify, found, remedy).of(target)
    });
    let ok = format!("{} of events accept what is sent", count(targets.len(), "target"));
    Ok(or_ok(findings.collect(), Check::Notify, ok))
}
