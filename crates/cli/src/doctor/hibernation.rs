//! Checks, by asking the providers, what stands in the way of hibernating machines: a missing SSH
//! key, a token that may not read what would have to be restored, backups, and every other
//! obstacle.

use domain::{
    ResourceKind,
    configuration::{Account, AccountKind, CloudAccount, Configuration, Provider},
    invocation::Question,
    record::Record,
    stop_method::StopMethod,
};
use lifecycle::report::{AccountPreview, MissingScope, MoveTarget, StopPreview};

use super::{Check, Finding, or_ok, store::StoreContents};
use crate::{configuration_file::count, connection::Functions};

/// Asks only if a schedule hibernates something or a machine is hibernated. Changes nothing.
pub(crate) async fn check(functions: &Functions, contents: &StoreContents) -> Vec<Finding> {
    let configuration = &contents.in_force.configuration;
    if !hibernates(configuration) && !contents.records.iter().any(Record::is_hibernated) {
        return Vec::new();
    }
    let question = Question::Moves(Box::new(Configuration::clone(configuration)));
    match functions.ask(question).await {
        Ok(report) => found(report.moves, configuration)
            .into_iter()
            .chain(snapshots(&contents.records))
            .collect(),
        Err(error) => vec![Finding::unknown(
            Check::Hibernation,
            format!("what stands in the way of hibernating machines is unknown: {error:#}"),
            "see the findings about the functions, and check again",
        )],
    }
}

/// How many snapshots a customer of Hetzner's may have by default (HZLIMITS).
const HETZNER_SNAPSHOTS: usize = 30;

/// Counts the snapshots of servers against what a customer may have. A stop takes a new one before
/// the oldest is removed. Returns `None` if there are none.
fn snapshots(records: &[Record]) -> Option<Finding> {
    let servers = records.iter().filter(|record| record.kind() == ResourceKind::Server);
    let kept = servers.filter_map(|record| record.hibernation.as_deref());
    let kept: Vec<_> = kept.map(|kept| kept.snapshots.len()).filter(|&own| own > 0).collect();
    let ours: usize = kept.iter().sum();
    let found = format!(
        "Offhours keeps {} at Hetzner, where a customer may have {HETZNER_SNAPSHOTS} by default, in \
         all projects together",
        count(ours, "snapshot")
    );
    match ours {
        0 => None,
        ours if ours + kept.len() > HETZNER_SNAPSHOTS => {
            let remedy = "delete other snapshots, or ask Hetzner for a higher limit: a server whose \
                          snapshot is refused is only powered off";
            Some(Finding::warning(Check::Hibernation, found, remedy))
        }
        _ => Some(Finding::ok(Check::Hibernation, found)),
    }
}

fn hibernates(configuration: &Configuration) -> bool {
    let kinds = configuration.accounts.values().map(Account::kind);
    let mut kinds = kinds.flat_map(AccountKind::kinds);
    kinds.any(|kind| {
        let mut rules = configuration.schedules.values();
        rules.any(|rule| StopMethod::of(*kind, &rule.policy) == StopMethod::Hibernate)
    })
}

fn found(answers: Vec<AccountPreview>, configuration: &Configuration) -> Vec<Finding> {
    let (mut rights, mut findings) = (Vec::new(), Vec::new());
    let mut free = 0;
    for answer in answers {
        let account = configuration.accounts.get(&answer.account);
        let cloud = account.and_then(Account::cloud);
        match answer.missing_scopes.as_deref().zip(cloud) {
            Some(([], cloud)) => rights.push(changes(cloud).of(&answer.account)),
            Some((missing, cloud)) => {
                findings.push(lacking(missing, cloud).of(&answer.account));
                continue;
            }
            None => {}
        }
        findings.extend(answer.error.map(|error| {
            let found = format!("what it would hibernate could not be looked at: {error}");
            let remedy = "see the findings about its token; `offhours rehearse` names the scopes that it \
                          needs";
            Finding::unknown(Check::Hibernation, found, remedy).of(&answer.account)
        }));
        let moves = answer.moves.into_iter();
        for one in moves.filter(|one| one.method == StopMethod::Hibernate) {
            match obstacle(&one) {
                Some(finding) => findings.push(finding),
                None => free += 1,
            }
        }
    }
    let ok = format!("nothing stands in the way of hibernating {}", count(free, "machine"));
    rights.extend(or_ok(findings, Check::Hibernation, ok));
    rights
}

/// The finding for a token that can read everything: what it may change is still unknown.
fn changes(account: &CloudAccount) -> Finding {
    let found = match (account.provider, token(account)) {
        (Provider::DigitalOcean, token) => format!(
            "{token} reads all that hibernating needs; whether stop and start may also make and delete \
             snapshots and Droplets, and put back what these had (droplet:create, droplet:delete, \
             image:create and the others in docs/deploying.md), shows only when they do"
        ),
        (Provider::Hetzner, _) => "whether stop and start may make snapshots, and delete and make \
                                   servers, shows only when they do: a token may read, or do everything"
            .to_owned(),
    };
    Finding::ok(Check::Hibernation, found)
}

fn lacking(missing: &[MissingScope], account: &CloudAccount) -> Finding {
    Finding::problem(
        Check::Hibernation,
        format!(
            "hibernating needs scopes that {} lacks: {}",
            token(account),
            MissingScope::all(missing)
        ),
        "give the account a token with these scopes as well (docs/deploying.md has all of them): until \
         then nothing of it is hibernated, for what it had could not be put back",
    )
}

/// The token that poll-status reads with.
fn token(account: &CloudAccount) -> &'static str {
    if account.read_token.is_some() { "the read_token" } else { "the token" }
}

fn obstacle(one: &StopPreview) -> Option<Finding> {
    let subject = format!("{} ({})", one.resource, one.name);
    let finding = match &one.to {
        MoveTarget::Refused(obstacle) => Finding::problem(
            Check::Hibernation,
            format!("it is not hibernated, and left running: {}", obstacle.reason),
            obstacle.remedy.clone(),
        ),
        MoveTarget::Same { reason } => {
            Finding::hint(Check::Hibernation, format!("it is only powered off: {reason}"))
        }
        MoveTarget::Smaller { .. } | MoveTarget::Snapshot { .. } => return None,
    };
    Some(finding.of(&subject))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        doctor::Verdict,
        scene::{OFFICE, asleep, configuration},
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
        let verdict = |servers| {
            let records = vec![asleep(); servers];
            snapshots(&records).map(|finding| (finding.verdict, finding.found))
        };
        assert_eq!(verdict(0), None);
        // Each has two, and takes a third one before the first is removed.
        let (few, words) = verdict(10).unwrap();
        assert_eq!(few, Verdict::Ok);
        assert!(words.starts_with("Offhours keeps 20 snapshots at Hetzner"), "{words}");
        assert_eq!(verdict(11).unwrap().0, Verdict::Warning);
    }

    #[test]
    fn only_schedules_that_hibernate_are_asked_about() {
        assert!(!hibernates(&configuration(OFFICE)));
        let hibernating = format!("{OFFICE}methods.server = \"hibernate\"\n");
        assert!(hibernates(&configuration(&hibernating)));
    }

    #[test]
    fn what_stands_in_the_way_is_a_problem_unless_the_machine_is_powered_off_instead() {
        let verdict = |to| {
            let findings = found(vec![answer(to)], &configuration(OFFICE));
            assert_eq!(findings.len(), 1);
            (findings[0].verdict, findings[0].found.clone())
        };
        let reason = "no SSH key is named".to_owned();
        let refused = MoveTarget::Refused(lifecycle::report::Obstacle {
            reason: reason.clone(),
            remedy: "name one".to_owned(),
        });
        let (refused, words) = verdict(refused);
        assert_eq!(refused, Verdict::Problem);
        assert!(words.ends_with(&reason), "{words}");
        assert_eq!(verdict(MoveTarget::Same { reason }).0, Verdict::Hint);
        let fits = MoveTarget::Snapshot {
            size: domain::resource::MachineSize::default(),
            offer: None,
            per_gb_month: None,
            address_costs: false,
            rehearsed: true,
            put_back: Vec::new(),
            lost: Vec::new(),
        };
        assert_eq!(
            verdict(fits),
            (Verdict::Ok, "nothing stands in the way of hibernating 1 machine".to_owned())
        );
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
        assert_eq!(findings[0].verdict, Verdict::Unknown);
        assert_eq!(findings[0].subject.as_deref(), Some("hz-eu"));
    }

    #[test]
    fn what_a_token_may_change_is_unknown_and_what_it_may_not_read_is_a_problem() {
        let with = |account: &str, missing: &[(&str, &str)]| {
            let missing = missing.iter().map(|(scope, reads)| MissingScope {
                scope: (*scope).to_owned(),
                reads: (*reads).to_owned(),
            });
            let answer = AccountPreview {
                account: account.parse().unwrap(),
                error: None,
                moves: Vec::new(),
                missing_scopes: Some(missing.collect()),
            };
            let mut findings = found(vec![answer], &configuration(OFFICE));
            let first = findings.remove(0);
            assert_eq!(first.subject.as_deref(), Some(account));
            (first.verdict, first.found)
        };
        for account in ["do-main", "hz-eu"] {
            let (verdict, words) = with(account, &[]);
            assert_eq!(verdict, Verdict::Ok);
            assert!(words.contains("shows only when they do"), "{words}");
        }
        let missing = [("firewall:read", "firewalls"), ("vpc:read", "VPCs")];
        let (verdict, words) = with("do-main", &missing);
        assert_eq!(verdict, Verdict::Problem);
        let expected = "the token lacks: firewall:read (firewalls), vpc:read (VPCs)";
        assert!(words.ends_with(expected), "{words}");
    }
}
