//! Checks of the accounts: token, permissions, remaining rate limit, last inventory.

use std::iter;

use domain::{
    AccountName, ResourceKind,
    configuration::{Account, AccountKind, Provider, TokenReference},
    pacing::kept_back,
    record::{OBSERVATION_AGE, Phase, Record},
};
use environment::{Clock, in_words};
use jiff::{Timestamp, tz::TimeZone};
use lifecycle::Providers;
use provider::{Client, ProviderError, Reading};
use report::{count, joined, load::overloads, time::ago};
use store::AccountState;

use super::{Check, Finding, clock::compare, store::StoreContents};
use crate::remedies;

/// The rate limit is low when less than this fraction (one tenth) of it remains.
const LOW: u64 = 10;

/// On a local store: tries an account's token, and checks the remaining rate limit and the
/// provider's clock.
pub(crate) async fn here(
    providers: &Providers,
    name: &AccountName,
    contents: &StoreContents,
    clock: &Clock,
) -> Vec<Finding> {
    let configuration = &contents.in_force.configuration;
    let Some(account) = configuration.accounts.get(name) else {
        return Vec::new();
    };
    let findings = match (providers.client(name, configuration).await, account) {
        (Err(error), _) => {
            vec![Finding::problem(Check::Token, in_words(&error), remedies::of_client(&error))]
        }
        (Ok(client), Account::Ssh(_)) => over_ssh(&client, clock).await,
        (Ok(client), Account::Cloud(account)) => {
            let records = contents.records.iter().filter(|r| r.reference.account == *name);
            let records: Vec<_> = records.collect();
            let token = match refused(&client, account.provider).await {
                Ok(refused) => token(account.provider, &refused, &records),
                Err(error) => unread(&error, AccountKind::Cloud(account.provider)),
            };
            let rate = client.rate().map(|rate| rate_limit(rate.remaining, rate.limit));
            let provider = format!("{name}'s provider");
            let clock = client.date().map(|date| compare(&provider, date, clock.now()));
            iter::once(token).chain(rate).chain(clock).collect()
        }
    };
    findings.into_iter().map(|finding| finding.of(name)).collect()
}

/// The kinds of resources that a token may not read.
async fn refused(
    client: &Client,
    provider: Provider,
) -> Result<Vec<(ResourceKind, ProviderError)>, ProviderError> {
    let mut refused = Vec::new();
    for &kind in provider.kinds() {
        match client.try_reading(kind).await {
            Ok(()) => {}
            Err(error) if error.is_about_token() => refused.push((kind, error)),
            Err(error) => return Err(error),
        }
    }
    Ok(refused)
}

fn unread(error: &ProviderError, account: AccountKind) -> Finding {
    Finding::problem(Check::Token, in_words(error), remedies::of_provider(error, account))
}

/// Checks the machines behind a host: runs each status command once, and nothing else.
async fn over_ssh(client: &Client, clock: &Clock) -> Vec<Finding> {
    let reading = Reading { now: &|| clock.now(), until: None, read: &|_| () };
    let listed = match client.list(client.kinds(), reading).await {
        Ok(listed) => listed.looks,
        Err(error) => return vec![unread(&error, AccountKind::Ssh)],
    };
    let unknown = listed.iter().filter_map(|look| {
        let (id, why) = (&look.resource.id, look.resource.busy.as_ref()?);
        let found =
            format!("{id}: its state is unknown ({why}), so it is neither stopped nor started");
        let remedy = "run its status command on the host, as the account's user: it ends with 0 if \
                      the machine runs, and with 3 if it is stopped";
        Some(Finding::warning(Check::Token, found, remedy))
    });
    let unknown: Vec<_> = unknown.collect();
    let number = count(listed.len() - unknown.len(), "machine");
    let found = format!("the host and its key are accepted; the state of {number} is known");
    iter::once(Finding::ok(Check::Token, found)).chain(unknown).collect()
}

/// Reports what can be known about a token without changing anything; whether it may also change
/// resources shows only when it does. An account without resources of a kind does not need the
/// permission to read it.
fn token(
    provider: Provider,
    refused: &[(ResourceKind, ProviderError)],
    records: &[&Record],
) -> Finding {
    if let [(_, ProviderError::TokenRefused(refusal)), ..] = refused {
        let found = format!("the token is refused: {refusal}");
        return Finding::problem(Check::Token, found, provider.facts().token_remedy);
    }
    let found = refused
        .iter()
        .map(|(kind, error)| format!("the token may not read {kind}s: {}", in_words(error)));
    let found = joined(found, "; ");
    let is_missed = |record: &&Record| {
        let is_there = !matches!(record.phase, Phase::Gone { .. });
        is_there && refused.iter().any(|(kind, _)| *kind == record.kind())
    };
    let has_tags = |record: &&Record| {
        let cluster = record.cluster.as_ref();
        !record.tags.is_empty() || cluster.is_some_and(|cluster| !cluster.tags.is_empty())
    };
    if refused.len() == provider.kinds().len() || records.iter().any(is_missed) {
        Finding::problem(Check::Token, found, provider.facts().token_remedy)
    } else if !refused.is_empty() {
        let remedy = "give the token what it lacks, if the account has such resources to stop";
        Finding::warning(Check::Token, found, remedy)
    } else if let Some(scope) = provider.facts().tag_permission
        && !records.iter().any(has_tags)
    {
        let found = format!("no tag was seen so far: none is set, or the token lacks {scope}");
        let remedy = format!("give the token {scope} if resources have tags");
        Finding::warning(Check::Token, found, remedy)
    } else {
        let found =
            "the token reads what is stopped; whether it may change it shows only when it does";
        Finding::ok(Check::Token, found)
    }
}

/// Checks the remaining rate limit: when it is low, stops and starts are delayed. Offhours leaves a
/// twentieth of the limit to other tools.
fn rate_limit(remaining: u64, limit: u64) -> Finding {
    let found = format!(
        "{remaining} of {limit} requests an hour are left; Offhours may use {}",
        remaining.saturating_sub(kept_back(limit))
    );
    if remaining * LOW < limit {
        let remedy =
            "see which other tools use the token: stops and starts wait until requests are left";
        return Finding::warning(Check::RateLimit, found, remedy);
    }
    Finding::ok(Check::RateLimit, found)
}

/// Against AWS: checks which functions can read the tokens of each account, by where they are kept.
pub(crate) fn token_readers(contents: &StoreContents) -> Vec<Finding> {
    let accounts = contents.in_force.configuration.accounts.iter();
    accounts.filter_map(|(name, account)| Some(readers(account)?.of(name))).collect()
}

fn readers(account: &Account) -> Option<Finding> {
    let (acting, observing, [key, read_key]) = match account {
        Account::Cloud(cloud) => {
            let observing = cloud.read_token.as_ref().unwrap_or(&cloud.token);
            (&cloud.token, observing, ["token", "read_token"])
        }
        Account::Ssh(ssh) => {
            let observing = ssh.login.read_key.as_ref().unwrap_or(&ssh.login.key);
            (&ssh.login.key, observing, ["key", "read_key"])
        }
    };
    let TokenReference::Ssm(_) = acting else {
        return None;
    };
    let remedy = format!(
        "keep the one that may stop and start below ssm:/offhours/acting/ as {key}, and one that may \
         only read below ssm:/offhours/reading/ as {read_key}"
    );
    Some(if observing.is_for_acting() {
        let found = format!("poll-status cannot read {observing}, so nothing is observed");
        Finding::problem(Check::Token, found, remedy)
    } else if acting.is_for_reading() {
        Finding::problem(Check::Token, format!("stop and start cannot read {acting}"), remedy)
    } else if acting.is_for_acting() {
        Finding::ok(Check::Token, format!("only stop and start can read the {key} that acts"))
    } else {
        let found = format!("poll-status can read {acting}, which may stop and start");
        Finding::warning(Check::Token, found, remedy)
    })
}

/// Against AWS, where this machine holds no token: the rate limits that the last inventory
/// recorded.
pub(crate) fn noted_rates(contents: &StoreContents, now: Timestamp) -> Vec<Finding> {
    let accounts = contents.in_force.configuration.accounts.iter();
    let findings = accounts.filter_map(|(name, account)| {
        let rate = contents.states.get(name)?.rate?;
        let facts = account.cloud()?.provider.facts();
        let finding = rate_limit(rate.remaining, rate.limit.unwrap_or(facts.requests_per_hour));
        let found = format!("{} (as of {})", finding.found, ago(rate.at, now));
        Some(Finding { found, ..finding.of(name) })
    });
    findings.collect()
}

/// Checks whether each account's rate limit carries the next night of what follows schedules in it.
pub(crate) fn loads(contents: &StoreContents, zone: &TimeZone, now: Timestamp) -> Vec<Finding> {
    let StoreContents { records, in_force, states, .. } = contents;
    let overloads = overloads(records, in_force.rules(), states, now);
    let findings = overloads.iter().map(|one| {
        let (found, remedy) = remedies::of_overload(one, zone, now);
        Finding::warning(Check::RateLimit, found, remedy).of(&one.account)
    });
    findings.collect()
}

/// Checks the last inventory of each account: without a recent one, nothing is stopped.
pub(crate) fn inventories(contents: &StoreContents, now: Timestamp) -> Vec<Finding> {
    let accounts = contents.in_force.configuration.accounts.keys();
    accounts.map(|name| inventory(contents.states.get(name), now).of(name)).collect()
}

fn inventory(state: Option<&AccountState>, now: Timestamp) -> Finding {
    let listed_at = state.and_then(|state| state.listed_at);
    let error = state.and_then(|state| state.error.as_ref());
    let is_old = listed_at.is_none_or(|at| now.duration_since(at) > OBSERVATION_AGE);
    let listed = listed_at.map(|at| format!("listed {}", ago(at, now)));
    let too_old = format!(
        "nothing is stopped on an observation older than {} minutes",
        OBSERVATION_AGE.as_mins()
    );
    let listed = listed.unwrap_or_else(|| "not listed yet".to_owned());
    let latest = error.map(|error| format!("the latest try: {error}"));
    let found = joined([listed].into_iter().chain(is_old.then_some(too_old)).chain(latest), "; ");
    let remedy = "`offhours status --refresh` takes an inventory now; see also the findings about \
                  the token and the functions";
    if is_old || state.is_some_and(|state| state.token_fails) {
        Finding::problem(Check::Inventory, found, remedy)
    } else if error.is_some() {
        Finding::warning(Check::Inventory, found, remedy)
    } else {
        Finding::ok(Check::Inventory, found)
    }
}

#[cfg(test)]
mod tests {
    use domain::pacing::RateLimit;
    use jiff::SignedDuration;
    use serde_json::json;

    use super::*;
    use crate::{
        doctor::Level,
        scene::{
            OFFICE, SimulatedClouds, configuration, in_force, monday, simulated_clouds,
            simulated_clouds_from, store_contents, web,
        },
    };

    const FLEET: &str = r#"
        [[droplets]]
        id = 1
        name = "web"
    "#;

    async fn clouds() -> SimulatedClouds {
        simulated_clouds(&configuration(OFFICE), FLEET, monday("10:00:00")).await
    }

    fn fault(path: &str, does: &serde_json::Value) -> cloud_simulator::Fault {
        let fault = json!({"match": {"path_prefix": path}, "times": 9, "does": does});
        serde_json::from_value(fault).unwrap()
    }

    async fn checked(clouds: &SimulatedClouds, account: &str) -> Vec<Finding> {
        let contents = store_contents(in_force(OFFICE), [web()]);
        let name = account.parse().unwrap();
        here(&clouds.providers, &name, &contents, &clouds.clock).await
    }

    fn levels(findings: &[Finding]) -> Vec<(Check, Level)> {
        findings.iter().map(|f| (f.check, f.level)).collect()
    }

    #[tokio::test]
    async fn a_good_token_is_reported_with_what_cannot_be_known_and_changes_nothing() {
        let clouds = clouds().await;
        for account in ["do-main", "hz-eu"] {
            let found = checked(&clouds, account).await;
            let expected = [Check::Token, Check::RateLimit, Check::Clock];
            assert_eq!(levels(&found), expected.map(|check| (check, Level::Ok)));
            assert!(found[0].found.contains("shows only when it does"), "{found:#?}");
        }
        let log = clouds.simulator.log();
        assert_eq!(log.len(), 4, "one small request per kind");
        assert!(log.iter().all(|entry| entry.request.method == "GET"));
    }

    #[tokio::test]
    async fn a_right_that_is_missing_for_no_known_resource_is_a_warning() {
        let clouds = clouds().await;
        let forbidden = json!({"answer": {"status": 403}});
        clouds.simulator.add_fault(fault("/v2/databases", &forbidden));
        let found = checked(&clouds, "do-main").await;
        assert_eq!(found[0].level, Level::Warning);
        assert!(found[0].found.contains("the scope database:read"), "{found:#?}");
        let remedy = found[0].remedy.as_ref().unwrap();
        assert!(remedy.contains("if the account has such resources"), "{remedy}");
    }

    #[tokio::test]
    async fn a_refused_token_and_a_missing_right_are_problems() {
        let clouds = clouds().await;
        let forbidden = json!({"answer": {"status": 403}});
        clouds.simulator.add_fault(fault("/v2/droplets", &forbidden));
        clouds.simulator.add_fault(fault("/v1/", &json!("unauthorized")));
        let found = checked(&clouds, "do-main").await;
        assert_eq!(found[0].level, Level::Problem);
        assert!(found[0].found.starts_with("the token may not read droplets:"), "{found:#?}");
        let found = checked(&clouds, "hz-eu").await;
        assert_eq!(found[0].level, Level::Problem);
        assert!(found[0].found.starts_with("the token is refused:"), "{found:#?}");
    }

    #[tokio::test]
    async fn a_provider_that_does_not_answer_leaves_the_token_unknown() {
        let clouds = clouds().await;
        let down = json!({"answer": {"status": 503}});
        clouds.simulator.add_fault(fault("/v1/", &down));
        let found = checked(&clouds, "hz-eu").await;
        assert_eq!(found[0].level, Level::Problem);
    }

    #[tokio::test]
    async fn a_token_that_is_not_there_is_a_problem_that_names_where_it_belongs() {
        let clouds = clouds().await;
        let toml = OFFICE.replace("env:HZ", "env:OFFHOURS_TEST_NO_SUCH_TOKEN");
        let contents = store_contents(in_force(&toml), []);
        let name = "hz-eu".parse().unwrap();
        let found = here(&clouds.providers, &name, &contents, &clouds.clock).await;
        assert_eq!(levels(&found), [(Check::Token, Level::Problem)]);
        let remedy = found[0].remedy.as_deref().unwrap();
        assert!(remedy.starts_with("set OFFHOURS_TEST_NO_SUCH_TOKEN"), "{remedy}");
    }

    #[tokio::test]
    async fn a_rate_limit_that_others_have_nearly_used_up_is_a_warning() {
        let fleet = r#"
            accounts = [
                { name = "do-main", provider = "digitalocean", token = "d" },
                { name = "hz-eu", provider = "hetzner", token = "h", rate_limit = { per_hour = 20 } },
            ]
        "#;
        let clouds = simulated_clouds_from(&configuration(OFFICE), fleet, monday("10:00:00")).await;
        assert_eq!(checked(&clouds, "hz-eu").await[1].level, Level::Ok);
        let servers = clouds.url.join("v1/servers").unwrap();
        let others = provider::http_client().unwrap();
        for _ in 0..17 {
            let request = others.get(servers.clone()).bearer_auth("h");
            assert!(request.send().await.unwrap().status().is_success());
        }
        let found = checked(&clouds, "hz-eu").await;
        assert_eq!(found[0].level, Level::Ok);
        assert_eq!(found[1].level, Level::Warning);
        assert!(found[1].found.starts_with("1 of 20 requests"), "{found:#?}");
    }

    #[test]
    fn less_than_a_tenth_is_little() {
        assert_eq!(rate_limit(499, 5000).level, Level::Warning);
        let left = rate_limit(500, 5000);
        assert_eq!(left.level, Level::Ok);
        assert!(left.found.ends_with("Offhours may use 250"), "{left:?}");
    }

    #[tokio::test]
    async fn a_provider_whose_clock_differs_is_a_warning() {
        let clouds = clouds().await;
        let contents = store_contents(in_force(OFFICE), [web()]);
        let late = Clock::from(environment::SteppedClock::at(monday("10:00:30")));
        let found = here(&clouds.providers, &"hz-eu".parse().unwrap(), &contents, &late).await;
        assert_eq!(found[2].level, Level::Warning);
        assert_eq!(found[2].found, "this machine is 30s ahead of hz-eu's provider");
    }

    #[test]
    fn without_any_tag_seen_the_right_to_read_them_is_not_known() {
        let [with, without] =
            [&[&web()][..], &[]].map(|records| token(Provider::DigitalOcean, &[], records));
        assert_eq!(with.level, Level::Ok);
        assert_eq!(without.level, Level::Warning);
        assert!(without.found.contains("lacks tag:read"));
    }

    #[test]
    fn an_old_failed_or_missing_inventory_says_what_follows_from_it() {
        let now = monday("10:00:00");
        let check = |minutes: Option<i64>, error: Option<&str>| {
            let mut state = AccountState::unknown("do-main".parse().unwrap());
            state.listed_at = minutes.map(|minutes| now - SignedDuration::from_mins(minutes));
            state.error = error.map(Into::into);
            inventory(Some(&state), now)
        };
        assert_eq!(check(Some(15), None).level, Level::Ok);
        let old = check(Some(16), None);
        assert_eq!(old.level, Level::Problem);
        assert!(old.found.contains("nothing is stopped"), "{old:?}");
        let failed = check(Some(3), Some("no answer"));
        assert_eq!(failed.level, Level::Warning);
        assert!(failed.found.contains("no answer"), "{failed:?}");
        let refused = AccountState {
            listed_at: Some(now - SignedDuration::from_mins(3)),
            error: Some("token refused".into()),
            token_fails: true,
            ..AccountState::unknown("do-main".parse().unwrap())
        };
        assert_eq!(inventory(Some(&refused), now).level, Level::Problem);
        assert!(check(Some(20), Some("no answer")).found.ends_with("no answer"));
        assert_eq!(check(None, Some("no answer")).level, Level::Problem);
        assert_eq!(inventory(None, now).level, Level::Problem);
    }

    #[test]
    fn at_aws_the_rate_is_what_the_inventory_noted() {
        let mut contents = store_contents(in_force(OFFICE), []);
        let name: AccountName = "hz-eu".parse().unwrap();
        let mut state = AccountState::unknown(name.clone());
        let at = monday("09:58:00");
        state.rate = Some(RateLimit { remaining: 100, at, limit: None, others: None });
        contents.states.insert(name, state);
        let found = noted_rates(&contents, monday("10:00:00"));
        assert_eq!(levels(&found), [(Check::RateLimit, Level::Warning)]);
        assert!(found[0].found.starts_with("100 of 3600"), "{found:?}");
        assert!(found[0].found.ends_with("(as of 2m ago)"), "{found:?}");
    }

    #[test]
    fn at_aws_it_is_said_where_poll_status_can_read_a_token_that_acts() {
        let check = |tokens: &str| {
            let account = format!("accounts.do = {{ provider = \"digitalocean\", {tokens} }}");
            let toml =
                OFFICE.replacen("accounts.do-main", &format!("{account}\naccounts.do-main"), 1);
            token_readers(&store_contents(in_force(&toml), []))
        };
        for (tokens, level, found) in [
            (
                r#"token = "ssm:/o/do""#,
                Level::Warning,
                "poll-status can read ssm:/o/do, which may stop and start",
            ),
            (
                r#"token = "ssm:/o/do", read_token = "ssm:/o/reading/do""#,
                Level::Warning,
                "poll-status can read ssm:/o/do, which may stop and start",
            ),
            (
                r#"token = "ssm:/o/acting/do", read_token = "ssm:/o/reading/do""#,
                Level::Ok,
                "only stop and start can read the token that acts",
            ),
            (
                r#"token = "ssm:/o/acting/do""#,
                Level::Problem,
                "poll-status cannot read ssm:/o/acting/do, so nothing is observed",
            ),
            (
                r#"token = "ssm:/o/reading/do""#,
                Level::Problem,
                "stop and start cannot read ssm:/o/reading/do",
            ),
        ] {
            let [finding] = &check(tokens)[..] else {
                panic!("{tokens}");
            };
            assert_eq!(finding.level, level, "{tokens}");
            assert_eq!(finding.found, found);
            assert_eq!(finding.subject.as_deref(), Some("do"));
            let remedy = finding.remedy.as_deref().unwrap_or_default();
            let names_both = remedy.contains("acting/ as token,") && remedy.ends_with("read_token");
            assert_eq!(names_both, level != Level::Ok, "{remedy}");
        }
        assert_eq!(check(r#"token = "env:T""#), [], "kept elsewhere");
    }

    #[test]
    fn at_aws_it_is_said_where_poll_status_can_read_a_key_that_acts() {
        let host_key =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID2MFepRAu6qdgmRqxbuktBQOdN2QdL0zSZ1xcsO/yTw";
        let level = |keys: &str| {
            let account = format!(
                "accounts.lab = {{ provider = \"ssh\", host = \"jump.example.net\", user = \"o\", \
                 host_keys = [\"{host_key}\"], {keys} }}"
            );
            let toml =
                OFFICE.replacen("accounts.do-main", &format!("{account}\naccounts.do-main"), 1);
            let findings = token_readers(&store_contents(in_force(&toml), []));
            findings.first().map(|finding| finding.level)
        };
        let kept = r#"key = "ssm:/o/acting/lab", read_key = "ssm:/o/reading/lab""#;
        assert_eq!(level(kept), Some(Level::Ok));
        assert_eq!(level(r#"key = "ssm:/o/lab""#), Some(Level::Warning));
        assert_eq!(level(r#"key = "file:/o/lab""#), None);
    }
}
