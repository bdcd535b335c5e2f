use domain::{hibernation::Hibernation, resource::Resource};

use super::*;
use transition::tests::{at, droplet};

#[test]
fn an_account_that_was_listed_under_its_earlier_name_is_not_listed_for_the_first_time() {
    let case = droplet();
    let was = &case.record.reference.account;
    let account: &AccountName = &"do-new".parse().unwrap();
    let mut configuration = case.configuration.clone();
    let mut renamed = configuration.accounts[was].clone();
    renamed.set_was(was.clone());
    configuration.accounts.insert(account.clone(), renamed);
    let listed =
        AccountState { listed_at: Some(at("12:00")), ..AccountState::unknown(was.clone()) };
    let states = AccountStates::from([(was.clone(), listed)]);
    assert!(Known::of(account, &configuration, &states).listed_before);
    assert!(!Known::of(account, &configuration, &AccountStates::new()).listed_before);
}

#[test]
fn tags_that_vanish_all_at_once_are_not_believed() {
    let case = droplet();
    let bare = case.clone().untagged().resource;
    let mut other = bare.clone();
    other.id = "droplet/2".parse().unwrap();
    let tags_vanished = |records: &[Record], shown: &[&Resource]| {
        let looks = shown.iter().map(|&resource| Look {
            requested_at: case.now,
            resource: resource.clone(),
            sight: None,
        });
        tags_vanished(records, &looks.collect::<Vec<_>>())
    };
    let records = [case.record.clone()];
    assert!(tags_vanished(&records, &[&bare, &other]));
    assert!(!tags_vanished(&records, &[&case.resource, &other]));
    other.tags.insert("env:dev".to_owned());
    assert!(!tags_vanished(&records, &[&bare, &other]));
    // The tagged resource is gone, or nothing was ever tagged.
    other.tags.clear();
    assert!(!tags_vanished(&records, &[&other]));
    let never = case.clone().record(|record| record.tags.clear()).record;
    assert!(!tags_vanished(&[never], &[&bare]));
    // It was recreated since.
    let mut recreated = Hibernation::of(case.record.reference.id.clone());
    recreated.adopt(other.id.clone());
    let recreated = Record { hibernation: Some(Box::new(recreated)), ..case.record };
    assert!(tags_vanished(&[recreated], &[&other]));
}
