//! Checks for records that need a person or do not make progress.

use std::collections::BTreeMap;

use domain::{AccountName, decision::judge, membership::Subject};
use jiff::{Timestamp, tz::TimeZone};
use report::{count, problems::problems, state::State};

use super::{Check, Finding, or_ok, store::StoreContents};

pub(crate) fn check(contents: &StoreContents, zone: &TimeZone, now: Timestamp) -> Vec<Finding> {
    let in_force = &contents.in_force;
    let rules = in_force.rules();
    let mut findings = Vec::new();
    let mut removed = BTreeMap::<&AccountName, usize>::new();
    for record in &contents.records {
        let account = &record.reference.account;
        if !rules.configuration.accounts.contains_key(account) {
            *removed.entry(account).or_default() += 1;
        }
        let verdict = judge(record, Subject::recorded(record), rules, now);
        let state = State::of(record).words;
        let found = problems(record, &verdict, in_force, zone, now).into_iter();
        findings.extend(found.map(|problem| {
            let found = format!("{state}: {}", problem.what);
            let finding = if problem.needs_person {
                Finding::problem(Check::Records, found, problem.remedy)
            } else {
                Finding::warning(Check::Records, found, problem.remedy)
            };
            finding.of(&format!("{} ({})", record.reference, record.name))
        }));
    }
    findings.extend(removed.into_iter().map(|(account, records)| {
        let records = count(records, "record");
        let found = format!("{records} of an account that is no longer configured");
        let remedy = "`offhours forget` deletes what is not needed any more";
        Finding::warning(Check::Records, found, remedy).of(account)
    }));
    let ok = format!("{}: none needs attention", count(contents.records.len(), "record"));
    or_ok(findings, Check::Records, ok)
}

#[cfg(test)]
mod tests {
    use domain::record::{Direction, Phase, Record};

    use super::*;
    use crate::{
        doctor::Level,
        scene::{OFFICE, in_force, machine, monday, store_contents, transition, web},
    };

    fn found<const N: usize>(records: [Record; N]) -> Vec<(Level, Option<String>, String)> {
        let contents = store_contents(in_force(OFFICE), records);
        let found = check(&contents, &TimeZone::UTC, monday("10:00:00"));
        found.into_iter().map(|one| (one.level, one.subject, one.found)).collect()
    }

    #[test]
    fn a_finding_says_in_which_state_the_resource_is() {
        let ok = "1 record: none needs attention".to_owned();
        assert_eq!(found([web()]), [(Level::Ok, None, ok)]);
        let mut stuck = web();
        stuck.phase = Phase::Stuck {
            transition: transition(Direction::Stop, monday("09:30:00")),
            since: monday("09:40:00"),
            reason: "not seen".to_owned(),
        };
        let subject = Some("do-main/droplet/1 (web)".to_owned());
        let expected = (Level::Problem, subject, "stop stuck: not seen".to_owned());
        assert_eq!(found([stuck]), [expected]);
    }

    #[test]
    fn records_of_a_removed_account_are_counted() {
        let other = |id: u32| machine(&format!("do-old/droplet/{id}"), "old", &[]);
        let words = "2 records of an account that is no longer configured".to_owned();
        let expected = (Level::Warning, Some("do-old".to_owned()), words);
        assert_eq!(found([other(1), other(2)]), [expected]);
    }
}
