use domain::{
    hibernation::{Attachment, Label, Mark},
    record::{Direction, Request, Transition},
    step::Step,
};
use jiff::SignedDuration;

use super::*;
use crate::scene::{asleep, monday, request, transition};

fn shown() -> Hibernated {
    Hibernated::of(&asleep()).unwrap()
}

#[test]
fn what_its_snapshots_cost_is_said_only_where_a_price_is_known() {
    let now = monday("09:00:00");
    assert_eq!(
        shown().in_words(now),
        "recreated from snapshot 8 of 4.5 GB, 3h old, 25 min early; 2 snapshots kept, 1 proven"
    );
    // DigitalOcean's documentation gives a price; its API does not.
    let mut record = asleep();
    record.reference = "do-main/droplet/1".parse().unwrap();
    let of_droplet = Hibernated::of(&record).unwrap();
    assert_eq!(of_droplet.kept(), "2 snapshots kept, 1 proven, 0.54 USD a month");
    assert_eq!((of_droplet.month, of_droplet.currency), (Some(0.54), Some("USD")));
}

#[test]
fn a_machine_that_runs_has_the_lead_of_its_next_start() {
    assert_eq!(shown().lead(), Some(25));
    let mut record = asleep();
    let kept = record.hibernation.as_deref_mut().unwrap();
    kept.present = Some("server/9".parse().unwrap());
    kept.record_wake(SignedDuration::from_secs(49));
    // The shortest one.
    assert_eq!(Hibernated::of(&record).unwrap().lead(), Some(10));
}

#[test]
fn what_became_of_the_latest_request_is_said() {
    let said = |direction, step, ask| {
        let mut record = asleep();
        record.phase = domain::record::Phase::InFlight {
            transition: Transition {
                method: domain::stop_method::StopMethod::Hibernate,
                ..transition(direction, monday("18:00:00"))
            },
        };
        record.request = Some(Request { direction, step, ..request(monday("18:05:00"), ask) });
        super::step(&record, |at| at.strftime("%H:%M").to_string()).unwrap()
    };
    let at = monday("18:05:00");
    let label = Label { of: "server/1".parse().unwrap(), mark: Mark::default() };
    let accepted = Ask::Accepted { at, action: None };
    let lines = [
        said(Direction::Stop, Step::Off { gracefully: true }, accepted.clone()),
        said(Direction::Stop, Step::KeepAddress("7".to_owned()), Ask::Open),
        said(Direction::Stop, Step::Protect { snapshot: 8, on: true }, Ask::Done { at }),
        said(Direction::Stop, Step::Delete, accepted.clone()),
        said(
            Direction::Start,
            Step::Create { label, snapshot: 8, manifest: Box::default() },
            Ask::Failed { retry_at: at + SignedDuration::from_mins(10) },
        ),
        said(Direction::Start, Step::Attach(Attachment::Volume("9".to_owned())), accepted.clone()),
        said(Direction::Start, Step::On { small: false }, accepted),
    ];
    insta::assert_snapshot!(lines.join("\n"), @"
    switch it off: sent at 18:05, accepted; waiting until it is seen
    keep its public address: sent at 18:05, no answer yet; waiting until it can no longer have an effect
    protect its snapshot: sent at 18:05, done
    delete it: sent at 18:05, accepted; waiting until it is seen
    recreate it: sent at 18:05, failed; it is sent again
    reattach what it had: sent at 18:05, accepted; waiting until it is seen
    switch it on: sent at 18:05, accepted; waiting until it is seen
    ");
}
