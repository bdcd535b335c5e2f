use clap::Parser as _;

use lifecycle::{Report, event::Event};

use super::*;
use crate::scene::{OFFICE, database, in_force, machine, monday, pool, web};

/// A command line of its own, for the filters.
#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn args(words: &[&str]) -> Args {
    Line::try_parse_from([&["list"], words].concat()).unwrap().args
}

/// A record for every way of being covered, and for every way of not being covered.
fn records() -> Vec<Record> {
    let mut kafka = database("do-main/database/k", "stream", &["offhours:office"]);
    kafka.unsupported = Some("no smaller plan".to_owned());
    let mut worker = machine("do-main/droplet/90", "pool-worker", &["k8s"]);
    worker.unsupported = Some("a worker".to_owned());
    let mut held = machine("do-main/droplet/2", "held", &["offhours:office"]);
    held.held = true;
    let mut doubled = machine("hz-eu/server/7", "ci", &["offhours=office"]);
    doubled.duplicate_of = Some("hz-two/server/7".parse().unwrap());
    let mut busy = database("do-main/database/d", "orders", &["offhours:office"]);
    busy.observed.as_mut().unwrap().busy = Some("status is resizing".to_owned());
    vec![
        busy,
        kafka,
        web(),
        held,
        machine("do-main/droplet/3", "plain", &["team:web"]),
        machine("do-main/droplet/4", "opted-out", &["offhours:off"]),
        machine("do-main/droplet/5", "prod-web", &["offhours:office"]),
        machine("do-main/droplet/6", "typo", &["offhours:ofice"]),
        machine("do-main/droplet/8", "twice", &["offhours:night", "offhours:office"]),
        worker,
        pool("do-main/node-pool/c/p", "general", &["offhours:office"]),
        doubled,
        machine("hz-eu/server/9", "listed", &[]),
    ]
}

fn configured() -> InForce {
    in_force(&format!("{OFFICE}resources = [\"hz-eu/server/9\"]\n"))
}

fn rows() -> Vec<Row> {
    let in_force = configured();
    let row = |record| Row::of(record, &in_force, &SnapshotPrices::default(), monday("10:00:00"));
    records().iter().map(row).collect()
}

fn names(words: &[&str]) -> Vec<String> {
    let args = args(words);
    let rows = rows().into_iter().filter(|row| row.is_wanted(&args));
    rows.map(|row| row.name).collect()
}

#[test]
fn every_resource_says_what_it_follows_or_why_it_follows_nothing() {
    let rows: Vec<_> = rows().into_iter().filter(|row| row.is_wanted(&args(&[]))).collect();
    insta::assert_snapshot!(table(&rows, Style::PLAIN), @"
    Resource           Name       Size                   Region  Status                       Schedule  Why
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    do-main/database   orders     2 x db-s-2vcpu-4gb     fra1    running, status is resizing  office    tag
        tags: offhours:office
    do-main/database   stream     2 x db-s-2vcpu-4gb     fra1    running                      -         no smaller plan
        tags: offhours:office
    do-main/droplet    web        s-1vcpu-1gb            fra1    running                      office    tag
        tags: offhours:office
    do-main/droplet    held       s-1vcpu-1gb            fra1    running                      office
        why: tag; held until `offhours approve`; tags: offhours:office
    do-main/droplet    plain      s-1vcpu-1gb            fra1    running                      -
        why: no schedule names it; tags: team:web
    do-main/droplet    opted-out  s-1vcpu-1gb            fra1    running                      -
        why: opted out by a tag on the resource; tags: offhours:off
    do-main/droplet    prod-web   s-1vcpu-1gb            fra1    running                      -
        why: protected by `name:*prod*`; tags: offhours:office
    do-main/droplet    typo       s-1vcpu-1gb            fra1    running                      -
        why: its tag names no schedule: `ofice`; did you mean `office`?; tags: offhours:ofice
    do-main/droplet    twice      s-1vcpu-1gb            fra1    running                      -
        why: conflict: night and office both name it by tag; tags: offhours:night offhours:office
    do-main/node-pool  general    3 x s-2vcpu-4gb (1-6)  fra1    running                      office    cluster tag
    hz-eu/server       ci         s-1vcpu-1gb            fra1    running                      -
        why: conflict: also reached as hz-two/server/7; tags: offhours=office
    hz-eu/server       listed     s-1vcpu-1gb            fra1    running                      office    in its list
    ");
    assert_eq!(summary(&rows), "12 resources, 7 without a schedule\n");
}

#[test]
fn programs_read_rows_of_one_shape() {
    let rows = rows();
    let of = |name: &str| rows.iter().find(|row| row.name == name).unwrap();
    insta::assert_snapshot!(
        serde_json::to_string_pretty(&[of("general"), of("typo")]).unwrap(),
        @r#"
    [
      {
        "resource": "do-main/node-pool/c/p",
        "account": "do-main",
        "kind": "node-pool",
        "name": "general",
        "cluster": "staging",
        "plan": "s-2vcpu-4gb",
        "nodes": 3,
        "autoscale": {
          "min": 1,
          "max": 6
        },
        "region": "fra1",
        "status": "running",
        "busy": null,
        "tags": [],
        "cluster_tags": [
          "offhours:office"
        ],
        "schedule": "office",
        "via": "cluster-tag",
        "method": "zero-nodes",
        "held": false,
        "uncovered": null
      },
      {
        "resource": "do-main/droplet/6",
        "account": "do-main",
        "kind": "droplet",
        "name": "typo",
        "cluster": null,
        "plan": "s-1vcpu-1gb",
        "nodes": null,
        "autoscale": null,
        "region": "fra1",
        "status": "running",
        "busy": null,
        "tags": [
          "offhours:ofice"
        ],
        "cluster_tags": [],
        "schedule": null,
        "via": null,
        "method": "power-off",
        "held": false,
        "uncovered": {
          "why": "unknown-schedule",
          "words": "its tag names no schedule: `ofice`; did you mean `office`?"
        }
      }
    ]
    "#
    );
}

#[test]
fn every_row_has_the_shape_that_its_schema_says() {
    let schema = crate::shape::of::<Row>();
    let schema = jsonschema::validator_for(schema.as_value()).unwrap();
    for row in rows() {
        let row = serde_json::to_value(row).unwrap();
        assert!(schema.is_valid(&row), "{row:#}");
    }
}

#[test]
fn what_offhours_does_not_stop_is_shown_with_its_reason() {
    let unsupported: Vec<_> =
        rows().into_iter().filter(|row| row.is_wanted(&args(&["--unsupported"]))).collect();
    insta::assert_snapshot!(services(Style::PLAIN), @"
    Service                                                Why Offhours does not stop it
    ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    DigitalOcean App Platform                              it has no pause: an app is billed until it is deleted
    DigitalOcean Spaces                                    billed for what they hold: there is nothing to stop
    DigitalOcean Functions                                 billed per use: an idle one costs nothing to begin with
    DigitalOcean MicroVMs
        not supported yet: they pause when idle, and their API is a preview
    DigitalOcean Kafka, OpenSearch and Advanced databases  no plan to which they could shrink and come back unharmed
    load balancers of both clouds                          one can only be deleted, and a new one has another address
    Hetzner dedicated servers
        not part of the Cloud API: an account over SSH stops and starts them, and the rent stays the same, see docs/ssh.md
    self-managed Kubernetes
        no cloud knows its nodes: an account over SSH drains, stops and starts them, see docs/ssh.md
    Droplets that are Kubernetes workers                   a Kubernetes worker is scheduled as its node pool
    ");
    insta::assert_snapshot!(found(&unsupported, Style::PLAIN), @"
    Found               Name         Why
    ─────────────────────────────────────────────────
    do-main/database/k  stream       no smaller plan
    do-main/droplet/90  pool-worker  a worker
    ");
    let json = serde_json::to_value(Unsupported {
        services: UNSUPPORTED_SERVICES,
        resources: unsupported,
    });
    let json = json.unwrap();
    assert_eq!(json["services"][0]["service"], "DigitalOcean App Platform");
    assert_eq!(json["resources"][0]["uncovered"]["why"], "unsupported");
}

#[test]
fn filters_narrow_each_other() {
    assert_eq!(names(&["--uncovered"]).len(), 7);
    assert_eq!(names(&["--schedule", "office"]), ["orders", "web", "held", "general", "listed"]);
    assert_eq!(names(&["--kind", "server"]), ["ci", "listed"]);
    assert_eq!(
        names(&["--kind", "server", "--kind", "node-pool", "--schedule", "office"]),
        ["general", "listed"]
    );
    assert_eq!(names(&["--tag", "Team:*"]), ["plain"]);
    // A pool's tag is on its cluster.
    assert_eq!(names(&["--tag", "offhours:office", "--kind", "node-pool"]), ["general"]);
    assert_eq!(names(&["*web", "do-main/droplet/2"]), ["web", "held", "prod-web"]);
    assert_eq!(names(&["pool-worker"]), [""; 0]);
}

#[test]
fn a_name_or_a_tag_that_nothing_has_is_answered_with_the_nearest() {
    let rows = rows();
    let error = |words: &[&str]| check_filters(&args(words), &rows).unwrap_err().to_string();
    assert_eq!(error(&["genral"]), "there is no resource `genral`; did you mean `general`?");
    assert_eq!(
        error(&["web", "x*"]),
        "there is no resource `x*`; `offhours list` without it shows what there is"
    );
    assert_eq!(
        error(&["--tag", "team:wbe"]),
        "there is no tag `team:wbe`; did you mean `team:web`?"
    );
    assert!(check_filters(&args(&["*web", "--tag", "team:web"]), &rows).is_ok());
}

#[test]
fn a_kind_or_an_account_that_does_not_exist_is_bad_usage() {
    let refused = Line::try_parse_from(["list", "--kind", "sever"]);
    let words = refused.err().unwrap().to_string();
    assert!(words.contains("server"), "{words}");
    let in_force = configured();
    let error = |words: &[&str]| {
        let error = accounts(&args(words), &in_force.configuration).unwrap_err();
        assert_eq!(Exit::of(&error), Exit::BadUsage);
        error.to_string()
    };
    assert_eq!(
        error(&["--account", "do-man"]),
        "there is no account `do-man`; did you mean `do-main`?"
    );
    assert_eq!(
        error(&["--schedule", "ofice"]),
        "there is no schedule `ofice`; did you mean `office`?"
    );
    let all = accounts(&args(&[]), &in_force.configuration).unwrap();
    assert_eq!(all.len(), 2);
}

#[test]
fn an_inventory_that_was_asked_for_in_vain_is_a_failure_of_its_account_alone() {
    let at = monday("10:00:00");
    let account =
        |name: &str, event| lifecycle::Outcome::of_account(&name.parse().unwrap(), at, event);
    let reason = "token refused".to_owned();
    let report = Report {
        outcomes: vec![
            account("do-main", Event::Status { state: "listed whole".to_owned() }),
            account("hz-eu", Event::postponed(reason.clone())),
            // A resource's own failure is not the account's.
            lifecycle::Outcome::of(&web(), at, Event::postponed(reason)),
        ],
        ..Report::default()
    };
    let failures = not_listed(&report);
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].account.as_str(), "hz-eu");
    assert_eq!(failures[0].error, "token refused");
}
