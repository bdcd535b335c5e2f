//! What stands in the way of hibernating machines, asked of their providers: an SSH key that is missing,
//! a token that may not read what would have to be put back, backups, and all else.

use domain::{
    configuration::{Account, AccountKind, Configuration},
    invocation::Question,
    stop_method::StopMethod,
};
use lifecycle::report::{AccountMoves, MoveTarget, PlanMove};

use super::{Check, Finding, or_ok, store::Known};
use crate::{configuration_file::count, connection::Functions};

/// Asks only where a schedule hibernates anything. Nothing is changed.
pub(crate) async fn check(functions: &Functions, known: &Known) -> Vec<Finding> {
    let configuration = &known.in_force.configuration;
    if !hibernates(configuration) {
        return Vec::new();
    }
    let question = Question::Moves(Box::new(Configuration::clone(configuration)));
    match functions.ask(question).await {
        Ok(report) => found(report.moves),
        Err(error) => vec![Finding::unknown(
            Check::Hibernation,
            format!("what stands in the way of hibernating machines is unknown: {error:#}"),
            "see the findings about the functions, and check again",
        )],
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

fn found(answers: Vec<AccountMoves>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut free = 0;
    for answer in answers {
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
    let ok = format!(
        "nothing stands in the way of hibernating {}",
        count(free, "machine")
    );
    or_ok(findings, Check::Hibernation, ok)
}

fn obstacle(one: &PlanMove) -> Option<Finding> {
    let subject = format!("{} ({})", one.resource, one.name);
    let finding = match &one.to {
        MoveTarget::Refused(obstacle) => Finding::problem(
            Check::Hibernation,
            format!(
                "it is not hibernated, and left running: {}",
                obstacle.reason
            ),
            obstacle.remedy.clone(),
        ),
        MoveTarget::Same { reason } => Finding::hint(
            Check::Hibernation,
            format!("it is only powered off: {reason}"),
        ),
        MoveTarget::Smaller { .. } | MoveTarget::Snapshot { .. } => return None,
    };
    Some(finding.of(&subject))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        doctor::Verdict,
        scene::{OFFICE, configuration},
    };

    fn answer(to: MoveTarget) -> AccountMoves {
        AccountMoves {
            account: "hz-eu".parse().unwrap(),
            error: None,
            moves: vec![PlanMove {
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
    fn only_schedules_that_hibernate_are_asked_about() {
        assert!(!hibernates(&configuration(OFFICE)));
        let hibernating = format!("{OFFICE}methods.server = \"hibernate\"\n");
        assert!(hibernates(&configuration(&hibernating)));
    }

    #[test]
    fn what_stands_in_the_way_is_a_problem_unless_the_machine_is_powered_off_instead() {
        let verdict = |to| {
            let findings = found(vec![answer(to)]);
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
        };
        assert_eq!(
            verdict(fits),
            (
                Verdict::Ok,
                "nothing stands in the way of hibernating 1 machine".to_owned()
            )
        );
    }

    #[test]
    fn an_account_that_does_not_answer_is_not_taken_for_free_of_obstacles() {
        let failed = AccountMoves {
            account: "hz-eu".parse().unwrap(),
            error: Some("token refused: no".to_owned()),
            moves: Vec::new(),
        };
        let findings = found(vec![failed]);
        assert_eq!(findings[0].verdict, Verdict::Unknown);
        assert_eq!(findings[0].subject.as_deref(), Some("hz-eu"));
    }
}
