//! Checks, by asking the providers, what stands in the way of hibernating machines: a missing SSH
//! key, a token that may not read what would have to be restored, backups, and every other
//! obstacle.

use domain::{
    configuration::{Account, CloudAccount, Configuration, Provider},
    invocation::Question,
    record::Record,
    stop_method::StopMethod,
};
use lifecycle::report::{AccountPreview, MissingScope, MoveTarget, StopPreview};
use report::count;

use super::{Check, Finding, or_ok, store::StoreContents};
use crate::connection::Functions;

/// Asks only if a schedule hibernates something or a machine is hibernated. Changes nothing.
pub(crate) async fn check(functions: &Functions, contents: &StoreContents) -> Vec<Finding> {
    let configuration = &contents.in_force.configuration;
    let hibernates = StopMethod::all_in(configuration).any(|one| one == StopMethod::Hibernate);
    if !hibernates && !contents.records.iter().any(Record::is_hibernated) {
        return Vec::new();
    }
    let question = Question::Moves(Box::new(Configuration::clone(configuration)));
    match functions.ask(question).await {
        Ok(report) => {
            let found = found(report.moves, configuration).into_iter();
            found.chain(snapshots(&contents.records)).collect()
        }
        Err(error) => vec![Finding::problem(
            Check::Hibernation,
            format!("what stands in the way of hibernating machines is unknown: {error:#}"),
            "see the findings about the functions, and check again",
        )],
    }
}

/// Warns of each cloud at which our snapshots may exceed what a customer may have. A stop takes a new
/// one before the oldest is removed.
fn snapshots(records: &[Record]) -> impl Iterator<Item = Finding> {
    Provider::ALL.into_iter().filter_map(|cloud| {
        let (name, most) = (cloud.facts().name, cloud.facts().most_snapshots?);
        let machines = records.iter().filter(|record| record.kind().cloud() == Some(cloud));
        let kept = machines.filter_map(|record| record.hibernation.as_deref());
        let kept = kept.map(|kept| kept.seen_snapshots().count());
        let kept: Vec<_> = kept.filter(|&own| own > 0).collect();
        let ours: usize = kept.iter().sum();
        (ours + kept.len() > most).then(|| {
            let found = format!(
                "Offhours keeps {} at {name}, where a customer may have {most} by default, in all \
                 projects together",
                count(ours, "snapshot")
            );
            let remedy = format!(
                "delete other snapshots, or ask {name} for a higher limit: a server whose snapshot is \
                 refused is only powered off"
            );
            Finding::warning(Check::Hibernation, found, remedy)
        })
    })
}

fn found(answers: Vec<AccountPreview>, configuration: &Configuration) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut free = 0;
    for answer in answers {
        let account = configuration.accounts.get(&answer.account).and_then(Account::cloud);
        let missing = answer.missing_scopes.as_deref().filter(|missing| !missing.is_empty());
        if let Some((missing, account)) = missing.zip(account) {
            findings.push(lacking(missing, account).of(&answer.account));
            continue;
        }
        findings.extend(answer.error.map(|error| {
            let found = format!("what it would hibernate could not be looked at: {error}");
            let remedy = "see the findings about its token; `offhours rehearse` names the scopes that \
                          it needs";
            Finding::problem(Check::Hibernation, found, remedy).of(&answer.account)
        }));
        let moves = answer.moves.into_iter();
        for one in moves.filter(|one| one.method == StopMethod::Hibernate) {
            match obstacle(&one) {
                Some(finding) => findings.push(finding),
                None => free += 1,
            }
        }
    }
    let ok = format!(
        "nothing stands in the way of hibernating {}; whether the tokens may do it shows only when they \
         do",
        count(free, "machine")
    );
    or_ok(findings, Check::Hibernation, ok)
}

fn lacking(missing: &[MissingScope], account: &CloudAccount) -> Finding {
    // The token that poll-status reads with.
    let token = if account.read_token.is_some() { "the read_token" } else { "the token" };
    let scopes = MissingScope::all(missing);
    Finding::problem(
        Check::Hibernation,
        format!("hibernating needs scopes that {token} lacks: {scopes}"),
        "give the account a token with these scopes as well (docs/tokens.md has all of them): until \
         then nothing of it is hibernated, for what it had could not be put back",
    )
}

fn obstacle(one: &StopPreview) -> Option<Finding> {
    let finding = match &one.to {
        MoveTarget::Refused(obstacle) => Finding::problem(
            Check::Hibernation,
            format!("it is not hibernated, and left running: {}", obstacle.reason),
            obstacle.remedy.clone(),
        ),
        MoveTarget::Same { reason } => Finding::warning(
            Check::Hibernation,
            format!("it is only powered off: {reason}"),
            "accept this, or remove what is in the way",
        ),
        MoveTarget::Smaller { .. } | MoveTarget::Snapshot { .. } => return None,
    };
    Some(finding.of(&format!("{} ({})", one.resource, one.name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        doctor::Level,
        scene::{OFFICE, asleep, configuration, monday},
    };

    fn answer(to: MoveTarget) -> AccountPreview {
        AccountPreview {
            account: "hz-eu".parse().unwrap(),
            missing_scopes: None,
            error: None,
            moves: vec![StopPreview {
                resource: "hz-eu/server/42".parse().unwrap(),
                name: "build".to_owned(),
                schedule: "office".parse().unwrap(),
                method: StopMethod::Hibernate,
                created_at: None,
                from: "cpx22".to_owned(),
                to,
            }],
        }
    }

    #[test]
    fn our_snapshots_are_counted_against_what_a_customer_of_hetzners_may_have() {
        // Each has two, and takes a third one before the first is removed.
        assert_eq!(snapshots(&vec![asleep(); 10]).next(), None);
        let many = snapshots(&vec![asleep(); 11]).next().unwrap();
        assert_eq!(many.level, Level::Warning);
        assert!(many.found.starts_with("Offhours keeps 22 snapshots at Hetzner"), "{many:?}");
        // One that a person has deleted takes no room.
        let mut fewer = asleep();
        fewer.hibernation.as_mut().unwrap().snapshots[1].absent_at = Some(monday("10:00:00"));
        assert_eq!(snapshots(&vec![fewer; 11]).next(), None);
    }

    #[test]
    fn only_schedules_that_hibernate_are_asked_about() {
        let hibernates = |text: &str| {
            StopMethod::all_in(&configuration(text)).any(|one| one == StopMethod::Hibernate)
        };
        assert!(!hibernates(OFFICE));
        assert!(hibernates(&format!("{OFFICE}methods.server = \"hibernate\"\n")));
    }

    #[test]
    fn what_stands_in_the_way_is_a_problem_unless_the_machine_is_powered_off_instead() {
        let level = |to| {
            let findings = found(vec![answer(to)], &configuration(OFFICE));
            assert_eq!(findings.len(), 1);
            (findings[0].level, findings[0].found.clone())
        };
        let reason = "no SSH key is named".to_owned();
        let refused = MoveTarget::Refused(lifecycle::report::StopObstacle {
            reason: reason.clone(),
            remedy: "name one".to_owned(),
        });
        let (refused, words) = level(refused);
        assert_eq!(refused, Level::Problem);
        assert!(words.ends_with(&reason), "{words}");
        assert_eq!(level(MoveTarget::Same { reason }).0, Level::Warning);
        let fits = MoveTarget::Snapshot {
            size: domain::resource::MachineSize::default(),
            offer: None,
            per_gb_month: None,
            address_costs: false,
            rehearsed: true,
            put_back: Vec::new(),
            lost: Vec::new(),
        };
        let (fits, words) = level(fits);
        assert_eq!(fits, Level::Ok);
        assert!(words.starts_with("nothing stands in the way of hibernating 1 machine"), "{words}");
    }

    #[test]
    fn an_account_that_does_not_answer_is_not_taken_for_free_of_obstacles() {
        let failed = AccountPreview {
            account: "hz-eu".parse().unwrap(),
            missing_scopes: None,
            error: Some("token refused: no".to_owned()),
            moves: Vec::new(),
        };
        let findings = found(vec![failed], &configuration(OFFICE));
        assert_eq!(findings[0].level, Level::Problem);
        assert_eq!(findings[0].subject.as_deref(), Some("hz-eu"));
    }

    #[test]
    fn what_a_token_may_not_read_is_a_problem() {
        let with = |missing: &[(&str, &str)]| {
            let missing = missing.iter().map(|(scope, reads)| MissingScope {
                scope: (*scope).to_owned(),
                reads: (*reads).to_owned(),
            });
            let answer = AccountPreview {
                account: "do-main".parse().unwrap(),
                error: None,
                moves: Vec::new(),
                missing_scopes: Some(missing.collect()),
            };
            found(vec![answer], &configuration(OFFICE)).remove(0)
        };
        assert_eq!(with(&[]).level, Level::Ok);
        let lacking = with(&[("firewall:read", "firewalls"), ("vpc:read", "VPCs")]);
        assert_eq!((lacking.level, lacking.subject.as_deref()), (Level::Problem, Some("do-main")));
        let expected = "the token lacks: firewall:read (firewalls), vpc:read (VPCs)";
        assert!(lacking.found.ends_with(expected), "{lacking:?}");
    }
}
