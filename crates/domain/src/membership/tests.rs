use super::*;
use crate::tests::fixtures::{
    World, daily, droplet, reference, schedule_name, seen_droplet, tags, world,
};

fn two_schedules() -> World {
    world().with_schedule("night", daily("20:00", "06:00"))
}

#[track_caller]
fn check(world: &World, record: &Record, expected: &Membership) {
    let membership = Membership::of(Subject::recorded(record), &world.configuration);
    assert_eq!(membership, *expected);
}

fn member(schedule: &str, via: Via) -> Membership {
    Membership::Member { schedule: schedule_name(schedule), via }
}

fn conflict(first: &str, second: &str, via: Via) -> Membership {
    Membership::Excluded(Exclusion::TwoSchedules {
        first: first.to_owned(),
        second: second.to_owned(),
        via,
    })
}

#[test]
fn without_a_list_or_a_tag_nothing_names_a_resource() {
    check(&world(), &droplet(), &Membership::Unnamed);
    let other_tags = droplet().tagged(&["office", "offhours", "hours:office", "env=offhours"]);
    check(&world(), &other_tags, &Membership::Unnamed);
}

#[test]
fn tags_and_labels_name_a_schedule_in_any_case() {
    for tag in ["offhours:office", "offhours=office", "OffHours:OFFICE"] {
        check(&world(), &droplet().tagged(&[tag]), &member("office", Via::Tag));
    }
}

#[test]
fn a_tag_that_names_no_schedule_is_quoted_as_it_is() {
    for (tag, word) in [("offhours:ofice", "ofice"), ("offhours:", ""), ("offhours=all", "all")] {
        let unknown = Membership::Unknown { word: word.to_owned(), via: Via::Tag };
        check(&world(), &droplet().tagged(&[tag]), &unknown);
    }
}

#[test]
fn a_list_beats_the_own_tag_and_that_beats_the_clusters() {
    let world = two_schedules();
    let inherited = droplet().in_cluster("k8s", &["offhours:office"]);
    check(&world, &inherited, &member("office", Via::ClusterTag));
    let tagged = inherited.tagged(&["offhours:night"]);
    check(&world, &tagged, &member("night", Via::Tag));
    let world = world.listing("office", "do-main/droplet/1");
    check(&world, &tagged, &member("office", Via::Listed));
}

#[test]
fn a_list_names_resources_and_their_clusters_by_patterns_of_names() {
    let world = two_schedules().listing("office", "W?B").listing("night", "stag*");
    let tagged = droplet().tagged(&["offhours:night"]);
    check(&world, &tagged, &member("office", Via::Listed));
    let other = Record { name: "build".to_owned(), ..tagged.clone() };
    check(&world, &other, &member("night", Via::Tag));
    let in_cluster = Record { name: "build".to_owned(), ..droplet() }.in_cluster("staging", &[]);
    check(&world, &in_cluster, &member("night", Via::Listed));
    let named_twice = droplet().in_cluster("staging", &[]);
    check(&world, &named_twice, &conflict("night", "office", Via::Listed));
    // A reference and a name are on one level.
    let by_both = world.listing("night", "do-main/droplet/1");
    check(&by_both, &tagged, &conflict("night", "office", Via::Listed));
}

#[test]
fn a_stronger_level_decides_even_by_a_schedule_that_does_not_exist() {
    let record = droplet().in_cluster("k8s", &["offhours:office"]).tagged(&["offhours:ofice"]);
    let unknown = Membership::Unknown { word: "ofice".to_owned(), via: Via::Tag };
    check(&world(), &record, &unknown);
}

#[test]
fn two_schedules_on_one_level_are_a_conflict_on_each_level() {
    let world = two_schedules();
    let both = ["offhours:office", "offhours:night"];
    check(&world, &droplet().tagged(&both), &conflict("night", "office", Via::Tag));
    let inherited = droplet().in_cluster("k8s", &both);
    check(&world, &inherited, &conflict("night", "office", Via::ClusterTag));
    let id = "do-main/droplet/1";
    let listed = world.listing("office", id).listing("night", id);
    check(&listed, &droplet(), &conflict("night", "office", Via::Listed));
}

#[test]
fn a_conflict_below_the_level_that_decides_does_not_count() {
    let world = two_schedules().listing("office", "do-main/droplet/1");
    let record = droplet().tagged(&["offhours:office", "offhours:night"]);
    check(&world, &record, &member("office", Via::Listed));
}

#[test]
fn one_schedule_named_twice_is_not_a_conflict() {
    let record = droplet().tagged(&["offhours:office", "OFFHOURS:Office"]);
    check(&world(), &record, &member("office", Via::Tag));
}

#[test]
fn opting_out_beats_every_way_of_joining() {
    let world = world().listing("office", "do-main/droplet/1");
    for (own, clusters, on_cluster) in [
        (&["offhours:off", "offhours:office"][..], &[][..], false),
        (&["offhours=OFF"], &["offhours:office"], false),
        (&["offhours:office"], &["offhours:off"], true),
    ] {
        let record = droplet().tagged(own).in_cluster("k8s", clusters);
        let opted_out = Membership::Excluded(Exclusion::OptedOut { on_cluster });
        check(&world, &record, &opted_out);
    }
}

#[test]
fn the_word_that_opts_out_is_no_schedule_beside_one() {
    let record =
        droplet().tagged(&["offhours:off", "offhours:office"]).in_cluster("k8s", &["offhours=off"]);
    let world = world();
    let subject = Subject::recorded(&record);
    let named = Membership::named(subject, &world.configuration);
    assert_eq!(named, member("office", Via::Tag));
    for (via, names) in [(Via::Tag, 1), (Via::ClusterTag, 0)] {
        assert_eq!(names_by(via, subject, &world.configuration).len(), names);
    }
}

#[test]
fn a_label_is_covered_however_its_pattern_is_written() {
    let record = droplet().tagged(&["offhours=office", "env=live"]);
    for pattern in ["tag:env=live", "tag:env:live", "tag:env*"] {
        let protected = Membership::Excluded(Exclusion::Protected(pattern.parse().unwrap()));
        check(&world().protecting(pattern), &record, &protected);
    }
}

#[test]
fn protection_covers_reference_name_and_tag_of_resource_and_cluster() {
    let record =
        droplet().tagged(&["offhours:office", "env:live"]).in_cluster("production", &["tier:gold"]);
    for pattern in [
        "do-main/droplet/*",
        "name:WEB",
        "name:prod*",
        "tag:env:live",
        "tag:env=live",
        "tag:ENV=l*",
        "tag:tier:*",
    ] {
        let protected = Membership::Excluded(Exclusion::Protected(pattern.parse().unwrap()));
        check(&world().protecting(pattern), &record, &protected);
    }
    let other = world().protecting("do-main/droplet/2");
    check(&other, &record, &member("office", Via::Tag));
}

#[test]
fn protection_is_named_before_an_opt_out() {
    let world = world().protecting("name:web");
    let record = droplet().tagged(&["offhours:off"]);
    let protected = Membership::Excluded(Exclusion::Protected("name:web".parse().unwrap()));
    check(&world, &record, &protected);
}

#[test]
fn what_is_unsupported_or_reached_twice_is_never_touched() {
    let mut record = droplet().tagged(&["offhours:office"]);
    let other = reference("do-other/droplet/1");
    record.duplicate_of = Some(other.clone());
    check(&world(), &record, &Membership::Excluded(Exclusion::TwoAccounts(other)));
    record.unsupported = Some("a Kubernetes worker".to_owned());
    let unsupported = Exclusion::Unsupported("a Kubernetes worker".to_owned());
    check(&world(), &record, &Membership::Excluded(unsupported));
}

#[test]
fn only_contradictions_are_conflicts() {
    let two = Exclusion::TwoAccounts(reference("do-other/droplet/1"));
    assert!(two.is_conflict());
    let Membership::Excluded(two) = conflict("a", "b", Via::Tag) else { unreachable!() };
    assert!(two.is_conflict());
    assert!(!Exclusion::OptedOut { on_cluster: false }.is_conflict());
    assert!(!Exclusion::Protected("name:web".parse().unwrap()).is_conflict());
}

#[test]
fn an_observation_counts_instead_of_what_the_inventory_left() {
    let record = droplet().tagged(&["offhours:office"]);
    let mut resource = seen_droplet();
    let of = |resource: &Resource| {
        Membership::of(Subject::seen(&record, resource), &world().configuration)
    };
    assert_eq!(of(&resource), Membership::Unnamed);
    resource.tags = tags(&["offhours:off"]);
    let opted_out = Exclusion::OptedOut { on_cluster: false };
    assert_eq!(of(&resource), Membership::Excluded(opted_out));
    let listed = world().listing("office", &record.name);
    resource = Resource { name: "renamed".to_owned(), ..seen_droplet() };
    let membership = Membership::of(Subject::seen(&record, &resource), &listed.configuration);
    assert_eq!(membership, Membership::Unnamed);
}

#[test]
fn what_names_a_resource_is_known_even_where_something_forbids_touching_it() {
    let world = world().protecting("name:web");
    let record = droplet().tagged(&["offhours:office"]);
    let protected = Membership::Excluded(Exclusion::Protected("name:web".parse().unwrap()));
    check(&world, &record, &protected);
    let named = Membership::named(Subject::recorded(&record), &world.configuration);
    assert_eq!(named, member("office", Via::Tag));
}

#[test]
fn nothing_is_touched_of_an_account_that_is_not_configured() {
    let world = world().without_account("do-main").protecting("name:web");
    let record = droplet().tagged(&["offhours:office"]);
    let account = Exclusion::NoAccount("do-main".parse().unwrap());
    check(&world, &record, &Membership::Excluded(account));
}

#[test]
fn a_machine_is_touched_only_while_its_account_has_it() {
    let mut world = world();
    let account = serde_json::json!({
        "provider": "ssh",
        "host": "jump.example.net",
        "user": "offhours",
        "key": "env:LAB_KEY",
        "host_keys": [
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID2MFepRAu6qdgmRqxbuktBQOdN2QdL0zSZ1xcsO/yTw",
        ],
        "machines": { "build": { "start": "start", "stop": "stop", "status": "status" } },
    });
    let account = serde_json::from_value(account).unwrap();
    let accounts = &mut world.configuration.accounts;
    accounts.insert("lab".parse().unwrap(), account);
    let tagged = |name: &str| {
        let mut record = droplet().tagged(&["offhours:office"]);
        record.reference = reference(&format!("lab/machine/{name}"));
        record
    };
    check(&world, &tagged("build"), &member("office", Via::Tag));
    let removed = Exclusion::NoMachine("render".parse().unwrap());
    check(&world, &tagged("render"), &Membership::Excluded(removed));
}

#[test]
fn a_plan_to_stop_on_makes_nothing_join_and_opts_nothing_out() {
    for plan in ["offhours-to:office", "offhours-to=office", "offhours-to:off"] {
        check(&world(), &droplet().tagged(&[plan]), &Membership::Unnamed);
        let both = droplet().tagged(&[plan, "offhours:office"]);
        check(&world(), &both, &member("office", Via::Tag));
    }
}

#[test]
fn a_value_is_that_of_its_own_tag_before_its_clusters() {
    let record = droplet().in_cluster("k8s", &["team:data"]);
    assert_eq!(record.tag_value("team"), Some("data"));
    for own in ["team:web", "team=web"] {
        let record = droplet().in_cluster("k8s", &["team:data"]).tagged(&["teams:x", own]);
        assert_eq!(record.tag_value("team"), Some("web"));
    }
    assert_eq!(droplet().tagged(&["team"]).tag_value("team"), None);
}
