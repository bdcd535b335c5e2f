use aws_sdk_dynamodb::types::AttributeValue;
use domain::{
    AccountName,
    pacing::{Others, RateLimit, Spent},
    record::Writer,
};
use jiff::SignedDuration;
use store::{AccountState, Store, StoreError, item::Stored as _};

use crate::{fixtures::monday, world::World};

pub(crate) fn account() -> AccountName {
    "hz-eu".parse().unwrap()
}

/// A rate with this many requests left, this many seconds after [`monday`].
pub(crate) fn rate(remaining: u64, seconds: i64) -> RateLimit {
    let at = monday() + SignedDuration::from_secs(seconds);
    RateLimit { remaining, at, limit: Some(3600), others: Some(Others { a_minute: 20, at }) }
}

fn listed(rate: Option<RateLimit>) -> AccountState {
    AccountState {
        account: account(),
        listed_at: Some(monday()),
        tried_at: Some(monday()),
        error: None,
        token_fails: false,
        tagless_since: None,
        cost: None,
        rate,
        prices_due_at: None,
        spent: Vec::new(),
        spent_revision: 0,
    }
}

async fn state(store: &Store) -> AccountState {
    let mut states = store.account_states().await.unwrap().read;
    assert_eq!(states.len(), 1);
    states.remove(&account()).unwrap()
}

#[tokio::test]
async fn a_rate_alone_makes_the_state_of_an_account() {
    let store = World::new().await.store();
    store.save_rate(&account(), rate(100, 0)).await.unwrap();
    let expected = AccountState { rate: Some(rate(100, 0)), ..AccountState::unknown(account()) };
    assert_eq!(state(&store).await, expected);
}

#[tokio::test]
async fn a_state_comes_back_as_it_was_saved() {
    let store = World::new().await.store();
    let failed = AccountState {
        error: Some("token refused".into()),
        token_fails: true,
        ..listed(Some(rate(u64::MAX, 0)))
    };
    store.save_account_state(&failed).await.unwrap();
    assert_eq!(state(&store).await, failed);
    store.save_account_state(&listed(None)).await.unwrap();
    let unknown = AccountState::unknown(account());
    assert_eq!(state(&store).await, listed(failed.rate));
    store.save_account_state(&unknown).await.unwrap();
    let rate_alone = AccountState { rate: failed.rate, ..unknown };
    assert_eq!(state(&store).await, rate_alone);
}

#[tokio::test]
async fn a_rate_does_not_replace_a_later_one() {
    let store = World::new().await.store();
    // Half a second later: as text, this instant would sort before the full second.
    let half = RateLimit { at: monday() + SignedDuration::from_millis(500), ..rate(60, 0) };
    store.save_rate(&account(), half).await.unwrap();
    store.save_rate(&account(), rate(100, 0)).await.unwrap();
    assert_eq!(state(&store).await.rate, Some(half));
    store.save_rate(&account(), rate(50, 1)).await.unwrap();
    assert_eq!(state(&store).await.rate, Some(rate(50, 1)));
}

#[tokio::test]
async fn a_listing_that_took_long_does_not_replace_a_later_rate() {
    let store = World::new().await.store();
    store.save_rate(&account(), rate(50, 20)).await.unwrap();
    let late = listed(Some(rate(100, 0)));
    store.save_account_state(&late).await.unwrap();
    assert_eq!(state(&store).await, listed(Some(rate(50, 20))));
}

#[tokio::test]
async fn a_rate_leaves_the_rest_of_the_state() {
    let store = World::new().await.store();
    let before = listed(Some(rate(100, 0)));
    store.save_account_state(&before).await.unwrap();
    store.save_rate(&account(), rate(99, 1)).await.unwrap();
    assert_eq!(state(&store).await, listed(Some(rate(99, 1))));
}

#[tokio::test]
async fn what_was_spent_leaves_the_rest_of_the_state_and_stays_with_it() {
    let store = World::new().await.store();
    let before = listed(Some(rate(100, 0)));
    store.save_account_state(&before).await.unwrap();
    let spent = vec![spent("stop-1", 12)];
    assert!(store.save_spent(&account(), &spent, 0, None).await.unwrap());
    store.save_account_state(&before).await.unwrap();
    let expected = AccountState { spent, spent_revision: 1, ..before };
    assert_eq!(state(&store).await, expected);
}

#[tokio::test]
async fn of_two_that_plan_at_once_the_second_has_to_read_what_the_first_has_planned() {
    let store = World::new().await.store();
    let (first, second) = ([spent("stop-1", 200)], [spent("stop-2", 200)]);
    assert!(store.save_spent(&account(), &first, 0, None).await.unwrap());
    assert!(!store.save_spent(&account(), &second, 0, None).await.unwrap());
    assert_eq!(state(&store).await.spent, first);
    assert!(store.save_spent(&account(), &second, 1, None).await.unwrap());
    assert_eq!(state(&store).await.spent_revision, 2);
}

#[tokio::test]
async fn a_rate_is_stored_with_what_was_spent_unless_a_later_one_is_known() {
    let store = World::new().await.store();
    let (first, second) = ([spent("stop-1", 20)], [spent("stop-2", 20)]);
    assert!(store.save_spent(&account(), &first, 0, Some(rate(100, 1))).await.unwrap());
    assert_eq!(state(&store).await.rate, Some(rate(100, 1)));
    assert!(!store.save_spent(&account(), &second, 1, Some(rate(90, 0))).await.unwrap());
    let known = state(&store).await;
    assert_eq!((known.rate, &known.spent[..]), (Some(rate(100, 1)), &first[..]));
}

fn spent(by: &str, requests: u64) -> Spent {
    let ended = monday() + SignedDuration::from_secs(9);
    Spent { by: Writer(by.to_owned()), observes: false, began: monday(), ended, requests }
}

#[tokio::test]
async fn a_state_in_a_newer_format_is_left_alone() {
    let world = World::new().await;
    let store = world.store();
    let accounts = World::tables().accounts;
    let mut newer = listed(None).to_item().unwrap();
    newer.insert("format".to_owned(), AttributeValue::N("99".to_owned()));
    world.put(&accounts, newer.clone()).await;
    for result in [
        store.save_rate(&account(), rate(1, 0)).await,
        store.save_account_state(&listed(None)).await,
    ] {
        assert!(matches!(result, Err(StoreError::Format(Some(99)))));
    }
    let other = "do-main".parse().unwrap();
    store.save_rate(&other, rate(1, 0)).await.unwrap();
    let found = store.account_states().await.unwrap();
    assert!(found.read.keys().eq([&other]));
    let [unreadable] = &found.unreadable[..] else {
        panic!("{:?}", found.unreadable);
    };
    assert_eq!(unreadable.reference, "hz-eu");
    assert!(matches!(unreadable.source, StoreError::Format(Some(99))));
    assert!(store.accounts().await.unwrap().contains(&account()));
    let stored = world.items(&accounts).await;
    assert!(stored.contains(&newer));
}
