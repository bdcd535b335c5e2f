use domain::record::{Direction, Request, Transition};
use jiff::SignedDuration;

use super::*;
use crate::scene::{asleep, monday, request, transition};

fn shown() -> Hibernated {
    Hibernated::of(&asleep()).unwrap()
}

#[test]
fn it_is_made_again_by_hand_with_all_that_it_had() {
    insta::assert_snapshot!(shown().by_hand.join("\n"), @"
    hcloud image describe 8
    hcloud server create --name build --type cpx22 --location fsn1 --image 8 --ssh-key team --primary-ipv4 5 --without-ipv6 --volume 8 --placement-group 3 --label offhours=office --label 'owner=the team' --start-after-create=false
    hcloud server attach-to-network build --network 7 --ip 10.0.0.9 --alias-ips 10.0.0.10
    hcloud floating-ip assign 6 build
    hcloud server enable-backup build
    hcloud server poweron build
    ");
}

#[test]
fn a_droplet_is_made_again_with_its_clouds_own_program() {
    let mut record = asleep();
    record.reference = "do-main/droplet/1".parse().unwrap();
    let kept = record.hibernation.as_mut().unwrap();
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    kept.manifest = Some(Manifest {
        name: "web".to_owned(),
        region: "fra1".to_owned(),
        tags: texts(&["env:staging", "offhours:office"]),
        ssh_key: "3b:16:bf".to_owned(),
        volumes: texts(&["v1"]),
        firewalls: texts(&["f1"]),
        floating_ips: texts(&["203.0.113.20", "2001:db8::20"]),
        vpc: Some("n1".to_owned()),
        project: Some("p1".to_owned()),
        features: texts(&["ipv6", "monitoring"]),
        backups: true,
        backup_policy: Some(domain::hibernation::BackupPolicy {
            plan: "weekly".to_owned(),
            weekday: Some("SUN".to_owned()),
            hour: Some(4),
        }),
        ..kept.manifest.take().unwrap_or_default()
    });
    let of_droplet = Hibernated::of(&record).unwrap();
    insta::assert_snapshot!(of_droplet.by_hand.join("\n"), @r#"
    doctl compute snapshot get 8
    DROPLET=$(doctl compute droplet create web --size cpx22 --region fra1 --image 8 --ssh-keys 3b:16:bf --tag-names 'env:staging,offhours:office' --volumes v1 --vpc-uuid n1 --enable-ipv6 --enable-monitoring --enable-backups --backup-policy-plan weekly --backup-policy-weekday SUN --backup-policy-hour 4 --wait --format ID --no-header)
    doctl compute firewall add-droplets f1 --droplet-ids "$DROPLET"
    doctl compute reserved-ipv6-action assign 2001:db8::20 "$DROPLET"
    doctl compute reserved-ip-action assign 203.0.113.20 "$DROPLET"
    doctl projects resources assign p1 --resource "do:droplet:$DROPLET"
    "#);
}

#[test]
fn a_machine_that_is_there_is_not_made_again() {
    let mut record = asleep();
    let kept = record.hibernation.as_mut().unwrap();
    kept.present = Some(record.reference.id.clone());
    let there = Hibernated::of(&record).unwrap();
    assert_eq!(there.by_hand, Vec::<String>::new());
    record.hibernation = None;
    assert!(Hibernated::of(&record).is_none());
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
fn what_is_under_way_is_said_with_what_follows() {
    let said = |direction, part, ask| {
        let mut record = asleep();
        record.phase = domain::record::Phase::InFlight {
            transition: Transition {
                method: Some(domain::stop_method::StopMethod::Hibernate),
                ..transition(direction, monday("18:00:00"))
            },
        };
        record.request = Some(Request { direction, part, ..request(monday("18:05:00"), ask) });
        steps(&record, |at| at.strftime("%H:%M").to_string()).unwrap().join(" | ")
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
    switch it off: sent at 18:05, accepted; waiting until it is seen | take a snapshot, then delete the machine
    keep its public address: sent at 18:05, no answer yet; waiting until it can no longer have an effect | take a snapshot, then delete the machine
    protect its snapshot: sent at 18:05, done | delete the machine
    delete it: sent at 18:05, accepted; waiting until it is seen | nothing more
    recreate it: sent at 18:05, failed; it is sent again | reattach what it had, then switch it on
    reattach what it had: sent at 18:05, accepted; waiting until it is seen | reattach the rest, then switch it on
    switch it on: sent at 18:05, accepted; waiting until it is seen | nothing more
    ");
}
