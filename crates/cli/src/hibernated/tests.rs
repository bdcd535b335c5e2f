use domain::record::{Direction, Request, Transition};
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
fn what_became_of_the_latest_request_is_said() {
    let said = |direction, part, ask| {
        let mut record = asleep();
        record.phase = domain::record::Phase::InFlight {
            transition: Transition {
                method: domain::stop_method::StopMethod::Hibernate,
                ..transition(direction, monday("18:00:00"))
            },
        };
        record.request = Some(Request { direction, part, ..request(monday("18:05:00"), ask) });
        step(&record, |at| at.strftime("%H:%M").to_string()).unwrap()
    };
    let at = monday("18:05:00");
    let accepted = Ask::Accepted { at, action: None };
    let lines = [
        said(Direction::Stop, Part::Off, accepted.clone()),
        said(Direction::Stop, Part::Keep, Ask::Open),
        said(Direction::Stop, Part::Protect, Ask::Done { at }),
        said(Direction::Stop, Part::Delete, accepted.clone()),
        said(
            Direction::Start,
            Part::Create,
            Ask::Failed { retry_at: at + SignedDuration::from_mins(10) },
        ),
        said(Direction::Start, Part::Attach, accepted.clone()),
        said(Direction::Start, Part::On, accepted),
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
