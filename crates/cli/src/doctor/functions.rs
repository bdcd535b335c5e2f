//! Checks of the functions that do the work: at AWS, or in one process on a local store.

use std::{collections::BTreeMap, path::Path};

use domain::{
    AccountName,
    invocation::{Command, CommandTarget, Invocation, Question},
    record::{Direction, INVENTORY_INTERVAL},
};
use environment::{InvokeError, InvokeFailure, LambdaFunctions, in_words};
use jiff::Timestamp;
use lifecycle::Report;
use report::time::ago;
use store::AccountState;

use super::{Check, Finding};

/// On a local store nothing runs by itself. A recent inventory shows that a service was running, which
/// may have been one of single rounds. Without accounts there is none to take.
pub(crate) fn here(
    states: &BTreeMap<AccountName, AccountState>,
    file: &Path,
    is_served: bool,
    now: Timestamp,
) -> Finding {
    let last = states.values().filter_map(|state| state.tried_at).max();
    if let Some(at) = last.filter(|at| now.duration_since(*at) <= INVENTORY_INTERVAL * 2) {
        let runs = if is_served { "a service runs" } else { "no service runs at this moment" };
        let found = format!("{runs} on this store: the last inventory was taken {}", ago(at, now));
        return Finding::ok(Check::Functions, found);
    }
    let last = last.map(|at| format!("the last inventory was tried {}", ago(at, now)));
    let last = last.unwrap_or_else(|| "no inventory was ever taken".to_owned());
    let command = format!("`offhours serve --data {}`", file.display());
    let (runs, remedy) = if is_served {
        ("a service runs", format!("see what it reports; then stop it, and run {command} again"))
    } else {
        let why = "commands look and act once, and no edge is handled without it";
        ("no service runs", format!("{command} must run: {why}"))
    };
    let found = format!("{runs} on this store: {last}");
    if is_served && states.is_empty() {
        return Finding::ok(Check::Functions, found);
    }
    Finding::problem(Check::Functions, found, remedy)
}

/// At AWS: checks that each of the four functions exists, and that those that take questions answer
/// an empty one.
pub(crate) async fn at_aws(functions: &LambdaFunctions) -> Vec<Finding> {
    let nothing = Invocation::Command(Command {
        target: CommandTarget::Resources(Vec::new()),
        dry_run: true,
        by: None,
        given_at: None,
        rehearsal: false,
        without: Vec::new(),
    });
    let poll_status = functions.ask::<Report>(&Question::Resources(Vec::new())).await;
    let stop = functions.command::<Report>(Direction::Stop, &nothing).await;
    let start = functions.command::<Report>(Direction::Start, &nothing).await;
    vec![
        one("poll-status", poll_status.map(drop)),
        one("stop", stop.map(drop)),
        one("start", start.map(drop)),
        one("dispatch", functions.floor().await.map(drop)),
    ]
}

fn one(function: &str, result: Result<(), InvokeError>) -> Finding {
    let finding = match result {
        Ok(()) => Finding::ok(Check::Functions, "answers"),
        Err(error) => {
            let remedy = match error.failure() {
                InvokeFailure::Missing => {
                    "deploy the stack, or name the function as OFFHOURS_…_FUNCTION and the region with \
                     --region"
                }
                InvokeFailure::Failed => {
                    "see the function's log; deploy the stack again if it is of an older version"
                }
                InvokeFailure::NotAsked => {
                    "check that the credentials of the AWS tools may invoke and describe the functions"
                }
            };
            Finding::problem(Check::Functions, in_words(&error), remedy)
        }
    };
    finding.of(function)
}

#[cfg(test)]
mod tests {
    use domain::configuration::Provider;
    use environment::aws::local_config;
    use jiff::SignedDuration;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;
    use crate::{doctor::Level, scene::monday};

    fn tried(at: Option<Timestamp>) -> BTreeMap<AccountName, AccountState> {
        let name: AccountName = Provider::Hetzner.to_string().parse().unwrap();
        let mut state = AccountState::unknown(name.clone());
        state.tried_at = at;
        BTreeMap::from([(name, state)])
    }

    #[test]
    fn a_local_store_on_which_nothing_works_is_a_problem_with_the_command_to_run() {
        let now = monday("10:00:00");
        let minutes = SignedDuration::from_mins;
        for (at, level) in [
            (Some(now), Level::Ok),
            (Some(now - minutes(10)), Level::Ok),
            (Some(now - minutes(11)), Level::Problem),
            (None, Level::Problem),
        ] {
            let finding = here(&tried(at), Path::new("my.db"), at.is_some(), now);
            assert_eq!(finding.level, level, "{finding:?}");
            let remedy = finding.remedy.unwrap_or_default();
            let names_it = remedy.contains("offhours serve --data my.db");
            assert_eq!(names_it, level == Level::Problem, "{remedy}");
        }
        // A service without accounts lists nothing, and one that hangs lists nothing any more.
        let served = |states: &_| here(states, Path::new("my.db"), true, now);
        assert_eq!(served(&BTreeMap::new()).level, Level::Ok);
        let hangs = served(&tried(Some(now - minutes(11))));
        assert_eq!(hangs.level, Level::Problem);
        assert!(hangs.found.starts_with("a service runs on this store: "), "{hangs:?}");
        // It was killed a moment ago, or works off single rounds.
        let finding = here(&tried(Some(now)), Path::new("my.db"), false, now);
        assert!(finding.found.starts_with("no service runs"), "{finding:?}");
    }

    /// A fake Lambda service with three functions, of which one fails, one is missing, and the
    /// fourth is forbidden.
    async fn lambda() -> LambdaFunctions {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = vec![0; 16 * 1024];
                let length = stream.read(&mut head).await.unwrap();
                let head = String::from_utf8_lossy(&head[..length]);
                let path = head.split_whitespace().nth(1).unwrap_or_default();
                let (status, header, body) = match path {
                    path if path.contains("t-poll-status") => (200, "", r#"{"outcomes": []}"#),
                    path if path.contains("t-stop") => (
                        200,
                        "x-amz-function-error: Unhandled\r\n",
                        r#"{"errorMessage": "no table"}"#,
                    ),
                    path if path.contains("t-start") => (
                        404,
                        "x-amzn-errortype: ResourceNotFoundException\r\n",
                        r#"{"Message": "not found"}"#,
                    ),
                    _ => (
                        403,
                        "x-amzn-errortype: AccessDeniedException\r\n",
                        r#"{"Message": "not yours"}"#,
                    ),
                };
                let answer = format!(
                    "HTTP/1.1 {status} Some\r\n{header}content-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        LambdaFunctions::of_stack(&local_config(&format!("http://{address}")), "t-")
    }

    #[tokio::test]
    async fn each_function_answers_is_missing_fails_or_may_not_be_asked() {
        let found = at_aws(&lambda().await).await;
        let levels: Vec<_> = found
            .iter()
            .map(|finding| (finding.subject.as_deref().unwrap(), finding.level))
            .collect();
        assert_eq!(
            levels,
            [
                ("poll-status", Level::Ok),
                ("stop", Level::Problem),
                ("start", Level::Problem),
                ("dispatch", Level::Problem),
            ],
            "{found:#?}"
        );
        assert!(found[1].found.contains("no table"), "{found:#?}");
        let remedy = found[2].remedy.as_deref().unwrap();
        assert!(remedy.starts_with("deploy the stack"), "{found:#?}");
    }
}
