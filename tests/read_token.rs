//! An account's second, read-only token: poll-status uses that one.

use std::collections::BTreeMap;

use domain::{AccountName, configuration::Account, invocation::Question, record::Phase};
use lifecycle::{Event, event::Answer, report::Trial};

use crate::support::{EACH_KIND, World, monday, office_hours, one_of_each_kind, parse, run};

/// A fleet whose accounts have two tokens each.
fn fleet() -> String {
    one_of_each_kind()
        .replace(
            "token = \"secret-do-token\"",
            "token = \"secret-do-token\"\nread_token = \"secret-do-reads\"",
        )
        .replace(
            "token = \"secret-hz-token\"",
            "token = \"secret-hz-token\"\nread_token = \"secret-hz-reads\"",
        )
}

/// The results of trying these accounts.
async fn tried(world: &World, accounts: &BTreeMap<AccountName, Account>) -> Vec<Trial> {
    let question = Question::Try(accounts.clone());
    world.local.service().ask(question).await.unwrap().trials
}

/// The accounts of [`fleet`], each with both of its tokens.
fn both_tokens() -> String {
    let configuration = office_hours("", "", "");
    configuration
        .replace(
            "token = \"env:DO_TOKEN\"",
            "token = \"env:DO_TOKEN\"\nread_token = \"env:DO_READS\"",
        )
        .replace(
            "token = \"env:HZ_TOKEN\"",
            "token = \"env:HZ_TOKEN\"\nread_token = \"env:HZ_READS\"",
        )
}

/// A world in which these tokens are kept under these references.
async fn world_with(tokens: [(&str, &str); 4]) -> World {
    World::with_tokens(&both_tokens(), &fleet(), &tokens, monday("17:48:00")).await
}

#[test]
fn both_tokens_together_stop_what_is_to_be_stopped() {
    run(async {
        let mut world = World::start(&both_tokens(), &fleet(), monday("17:48:00")).await;
        world.run_until(monday("18:20:00")).await;
        for resource in EACH_KIND {
            assert!(world.was_seen(resource), "{resource}");
        }
    });
}

#[test]
fn poll_status_sees_an_edge_through_with_the_read_tokens_alone() {
    run(async {
        let mut world = World::start(&both_tokens(), &fleet(), monday("17:48:00")).await;
        world.run_until(monday("18:00:00")).await;
        assert_eq!(world.touched().len(), 4);
        let phase = world.record("hz-eu/server/11").await.phase;
        assert!(matches!(phase, Phase::InFlight { .. }), "{phase:?}");
        // The other tokens are looked up where there are none.
        let reading_alone = both_tokens()
            .replace("env:DO_TOKEN", "env:OFFHOURS_NOTHING_HERE_1")
            .replace("env:HZ_TOKEN", "env:OFFHOURS_NOTHING_HERE_2");
        world.apply(&reading_alone).await;
        world.run_until(monday("18:20:00")).await;
        for resource in EACH_KIND {
            assert!(world.was_seen(resource), "{resource}");
        }
        let listed = world.local.store().account_states().await.unwrap().read;
        assert!(listed.values().all(|state| state.error.is_none()));
        // A start needs the other tokens.
        let report =
            world.start_now(&serde_json::json!({ "resources": ["hz-eu/server/11"] })).await;
        let [later] = &report.outcomes[..] else {
            panic!("{report:?}");
        };
        assert!(
            matches!(&later.event, Event::Postponed { reason, .. } if reason.words().contains("no token")),
            "{later:?}"
        );
    });
}

#[test]
fn a_token_that_may_only_read_is_refused_for_changes() {
    run(async {
        let mut world = world_with([
            ("env:DO_TOKEN", "secret-do-reads"),
            ("env:DO_READS", "secret-do-token"),
            ("env:HZ_TOKEN", "secret-hz-reads"),
            ("env:HZ_READS", "secret-hz-token"),
        ])
        .await;
        world.run_until(monday("18:20:00")).await;
        for resource in EACH_KIND {
            let events = world.events(resource);
            let refused = |event: &Event| {
                matches!(event, Event::Asked { answer: Answer::TokenRefused(_), .. })
            };
            assert!(events.iter().any(refused), "{resource}: {events:?}");
        }
    });
}

#[test]
fn a_trial_tries_both_tokens_and_says_which_failed() {
    run(async {
        let world = world_with([
            ("env:DO_TOKEN", "secret-do-token"),
            ("env:DO_READS", "secret-nobodys"),
            ("env:HZ_TOKEN", "secret-nobodys"),
            ("env:HZ_READS", "secret-hz-reads"),
        ])
        .await;
        let accounts = parse(&both_tokens()).accounts;
        let trials = tried(&world, &accounts).await;
        let errors: Vec<_> = trials.iter().map(|trial| trial.error.clone()).collect();
        let [Some(digitalocean), Some(hetzner)] = &errors[..] else {
            panic!("{errors:?}");
        };
        assert!(digitalocean.starts_with("with its read_token: "), "{digitalocean}");
        assert!(!digitalocean.contains("with its token: "), "{digitalocean}");
        assert!(hetzner.starts_with("with its token: "), "{hetzner}");
        assert!(!hetzner.contains("with its read_token: "), "{hetzner}");

        let good = World::start(&both_tokens(), &fleet(), monday("17:48:00")).await;
        for trial in tried(&good, &accounts).await {
            assert_eq!(trial.error, None);
            assert!(!trial.found.is_empty(), "{trial:?}");
        }
    });
}

#[test]
fn a_trial_leaves_a_token_that_only_stop_and_start_can_read_to_them() {
    run(async {
        let apart = both_tokens()
            .replace("env:DO_TOKEN", "ssm:/offhours/acting/do")
            .replace("env:HZ_TOKEN", "ssm:/offhours/acting/hz");
        // Neither of the tokens that act is kept where poll-status looks.
        let tokens = [("env:DO_READS", "secret-do-reads"), ("env:HZ_READS", "secret-hz-reads")];
        let other = office_hours("", "", "");
        let world = World::with_tokens(&other, &fleet(), &tokens, monday("17:48:00")).await;
        for trial in tried(&world, &parse(&apart).accounts).await {
            assert_eq!(trial.error, None);
            assert!(!trial.found.is_empty(), "{trial:?}");
        }
    });
}
