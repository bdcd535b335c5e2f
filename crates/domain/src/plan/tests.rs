//! Which plan a machine stops on, and each reason to leave it where it is.

use crate::{
    money::{Currency, Money},
    resource::MachineFacts,
    tests::fixtures::seen_droplet,
};

use super::*;

/// An offer with these hourly and monthly prices.
fn offer(hourly: &str, monthly: &str) -> Offer {
    let money = |text| Money::parse(text, Currency::Usd).unwrap();
    Offer { orderable: true, deprecated: false, monthly: money(monthly), hourly: money(hourly) }
}

/// A plan that is sold in `fra1`.
fn plan(slug: &str, memory_gib: u64, disk_gib: u64, hourly: &str, monthly: &str) -> MachinePlan {
    MachinePlan {
        slug: slug.to_owned(),
        vcpus: 1,
        memory_mib: memory_gib * 1024,
        disk_gib,
        architecture: None,
        network_storage: false,
        gpu: false,
        offers: BTreeMap::from([("fra1".to_owned(), offer(hourly, monthly))]),
    }
}

fn droplet_plans() -> Vec<MachinePlan> {
    vec![
        plan("s-1vcpu-1gb", 1, 25, "0.00893", "6"),
        plan("s-1vcpu-1gb-intel", 1, 25, "0.00800", "5.50"),
        plan("s-1vcpu-1gb-amd", 1, 25, "0.01042", "7"),
        plan("s-1vcpu-2gb", 2, 50, "0.01786", "12"),
        plan("s-2vcpu-4gb", 4, 80, "0.03571", "24"),
        plan("s-2vcpu-4gb-amd", 4, 80, "0.04167", "28"),
        plan("g-2vcpu-8gb-intel", 8, 30, "0.11310", "76"),
        plan("g-2vcpu-8gb", 8, 25, "0.09375", "63"),
    ]
}

/// A test case: a machine, and the plans that are for sale.
struct Case {
    resource: Resource,
    size: MachineSize,
    autoscaled: bool,
    accepts_new_prices: bool,
    plans: Vec<MachinePlan>,
}

impl Case {
    /// A Droplet on a plan, with a disk of its own.
    fn droplet(plan: &str, disk_gib: u64) -> Self {
        Self {
            resource: seen_droplet(),
            size: MachineSize {
                plan: plan.to_owned(),
                vcpus: 2,
                memory_mib: 8192,
                disk_gib,
                architecture: None,
                network_storage: false,
            },
            autoscaled: false,
            accepts_new_prices: false,
            plans: droplet_plans(),
        }
    }

    /// A server on `ccx13`, created at an instant.
    fn server(created_at: Option<&str>) -> Self {
        let x86 = |mut plan: MachinePlan| {
            plan.architecture = Some("x86".to_owned());
            plan
        };
        let arm = MachinePlan {
            architecture: Some("arm".to_owned()),
            ..plan("cax11", 4, 80, "0.0071", "4.49")
        };
        let network = MachinePlan {
            network_storage: true,
            ..x86(plan("cx11-ceph", 2, 80, "0.0040", "2.49"))
        };
        let mut case = Self::droplet("ccx13", 80);
        case.resource.id = "server/1".parse().unwrap();
        case.size.architecture = Some("x86".to_owned());
        case.resource.facts.created_at = created_at.map(|text| text.parse().unwrap());
        case.plans = vec![
            x86(plan("ccx13", 8, 80, "0.0689", "42.99")),
            x86(plan("cpx22", 4, 80, "0.0312", "19.49")),
            x86(plan("cx23", 4, 40, "0.0088", "5.49")),
            arm,
            network,
        ];
        case
    }

    fn facts(mut self, change: impl FnOnce(&mut MachineFacts)) -> Self {
        change(&mut self.resource.facts);
        self
    }

    fn offer(mut self, slug: &str, change: impl FnOnce(&mut Offer)) -> Self {
        let plan = self.plans.iter_mut().find(|plan| plan.slug == slug);
        change(plan.unwrap().offers.get_mut("fra1").unwrap());
        self
    }

    fn plan(mut self, slug: &str, change: impl FnOnce(&mut MachinePlan)) -> Self {
        change(self.plans.iter_mut().find(|plan| plan.slug == slug).unwrap());
        self
    }

    fn wanting(&self, wanted: Option<&str>) -> Result<(String, bool), MoveRefusal> {
        let catalog: Catalog = self.plans.iter().cloned().collect();
        let machine = Machine {
            resource: &self.resource,
            size: &self.size,
            autoscaled: self.autoscaled,
            accepts_new_prices: self.accepts_new_prices,
        };
        let found = stop_plan(machine, &catalog, wanted)?;
        assert_eq!(Some(found.offer), catalog.offer(&found.plan.slug, "fra1"));
        assert_eq!(Some(found.present), catalog.offer(&self.size.plan, &self.resource.region));
        Ok((found.plan.slug.clone(), found.has_kept_price))
    }

    #[track_caller]
    fn stops_on(&self, wanted: Option<&str>, expected: &str) {
        let found = self.wanting(wanted).map(|(plan, _)| plan);
        assert_eq!(found, Ok(expected.to_owned()));
    }

    /// Checks that it is refused with this message, and that there is a remedy.
    #[track_caller]
    fn refused(&self, wanted: Option<&str>, words: &str) {
        let refusal = self.wanting(wanted).unwrap_err();
        assert_eq!(refusal.to_string(), words);
        assert!(!refusal.remedy().is_empty());
    }
}

#[test]
fn the_cheapest_plan_that_holds_the_disk_is_chosen() {
    Case::droplet("g-2vcpu-8gb", 25).stops_on(None, "s-1vcpu-1gb");
    Case::droplet("s-2vcpu-4gb", 50).stops_on(None, "s-1vcpu-2gb");
    Case::droplet("s-2vcpu-4gb", 25).stops_on(None, "s-1vcpu-1gb");
    Case::server(Some("2026-07-01T00:00:00Z")).stops_on(None, "cpx22");
}

#[test]
fn of_equal_prices_the_plan_with_more_memory_is_chosen() {
    let equal = |offer: &mut Offer| *offer = self::offer("0.00893", "6");
    Case::droplet("g-2vcpu-8gb", 25).offer("s-1vcpu-2gb", equal).stops_on(None, "s-1vcpu-2gb");
}

#[test]
fn a_named_plan_is_taken_where_it_fits() {
    Case::droplet("g-2vcpu-8gb", 25).stops_on(Some("s-1vcpu-2gb"), "s-1vcpu-2gb");
    Case::droplet("g-2vcpu-8gb", 25)
        .refused(Some("s-1vcpu-2bg"), "unknown plan `s-1vcpu-2bg`; did you mean `s-1vcpu-2gb`?");
    Case::droplet("g-2vcpu-8gb", 25).refused(Some("tiny"), "unknown plan `tiny`");
}

#[test]
fn the_makers_of_processors_are_not_mixed() {
    Case::droplet("s-2vcpu-4gb-amd", 25).stops_on(None, "s-1vcpu-1gb-amd");
    Case::droplet("g-2vcpu-8gb-intel", 25).stops_on(None, "s-1vcpu-1gb-intel");
    Case::droplet("g-2vcpu-8gb-intel", 30).stops_on(None, "s-1vcpu-2gb");
    for (from, to) in [
        ("s-2vcpu-4gb-amd", "s-1vcpu-1gb"),
        ("s-2vcpu-4gb-amd", "s-1vcpu-1gb-intel"),
        ("g-2vcpu-8gb", "s-1vcpu-1gb-amd"),
        ("g-2vcpu-8gb", "s-1vcpu-1gb-intel"),
        ("g-2vcpu-8gb-intel", "s-1vcpu-1gb-amd"),
    ] {
        let words = format!("the plan {to} has processors of another kind than {from}");
        Case::droplet(from, 25).refused(Some(to), &words);
    }
}

#[test]
fn architecture_and_storage_stay_what_they_are() {
    let server = Case::server(Some("2026-07-01T00:00:00Z"));
    let words = "the plan cax11 has processors of another kind than ccx13";
    server.refused(Some("cax11"), words);
    let words = "the plan cx11-ceph has another type of storage than ccx13";
    server.refused(Some("cx11-ceph"), words);
}

#[test]
fn a_named_plan_that_does_not_fit_is_refused_with_its_reason() {
    let droplet = || Case::droplet("g-2vcpu-8gb", 40);
    droplet().refused(
        Some("s-1vcpu-1gb"),
        "the plan s-1vcpu-1gb has 25 GB of disk, and the machine has 40 GB",
    );
    droplet().refused(Some("g-2vcpu-8gb"), "the plan g-2vcpu-8gb costs no less than g-2vcpu-8gb");
    Case::droplet("s-1vcpu-2gb", 25)
        .refused(Some("s-2vcpu-4gb"), "the plan s-2vcpu-4gb costs no less than s-1vcpu-2gb");
    // More expensive by the month, whatever it costs by the hour.
    droplet()
        .offer("s-1vcpu-2gb", |offer| {
            *offer = self::offer("0.01", "63.01");
        })
        .refused(Some("s-1vcpu-2gb"), "the plan s-1vcpu-2gb costs no less than g-2vcpu-8gb");
    droplet()
        .plan("s-1vcpu-2gb", |plan| plan.offers.clear())
        .refused(Some("s-1vcpu-2gb"), "the plan s-1vcpu-2gb is not offered in fra1");
    droplet()
        .offer("s-1vcpu-2gb", |offer| offer.orderable = false)
        .refused(Some("s-1vcpu-2gb"), "the plan s-1vcpu-2gb cannot be ordered in fra1 now");
    droplet()
        .offer("s-1vcpu-2gb", |offer| offer.deprecated = true)
        .refused(Some("s-1vcpu-2gb"), "the plan s-1vcpu-2gb is deprecated in fra1");
    droplet()
        .plan("s-1vcpu-2gb", |plan| plan.gpu = true)
        .refused(Some("s-1vcpu-2gb"), "the plan s-1vcpu-2gb has a GPU");
}

#[test]
fn what_cannot_be_ordered_is_passed_over() {
    Case::droplet("g-2vcpu-8gb", 25)
        .offer("s-1vcpu-1gb", |offer| offer.orderable = false)
        .stops_on(None, "s-1vcpu-2gb");
    Case::droplet("g-2vcpu-8gb", 25)
        .offer("s-1vcpu-1gb", |offer| offer.deprecated = true)
        .stops_on(None, "s-1vcpu-2gb");
}

#[test]
fn a_machine_for_which_no_plan_is_cheaper_stays() {
    Case::droplet("s-1vcpu-1gb", 25)
        .refused(None, "its plan s-1vcpu-1gb is already the cheapest that fits in fra1");
    Case::droplet("s-2vcpu-4gb", 81)
        .refused(None, "its disk of 81 GB is larger than that of every cheaper plan in fra1");
}

#[test]
fn a_plan_that_could_not_be_ordered_again_is_not_left() {
    let droplet = || Case::droplet("g-2vcpu-8gb", 25);
    for wanted in [None, Some("s-1vcpu-1gb")] {
        droplet().offer("g-2vcpu-8gb", |offer| offer.orderable = false).refused(
            wanted,
            "its plan g-2vcpu-8gb cannot be ordered in fra1 now, so that it could not come back",
        );
        droplet().plan("g-2vcpu-8gb", |plan| plan.offers.clear()).refused(
            wanted,
            "its plan g-2vcpu-8gb cannot be ordered in fra1 now, so that it could not come back",
        );
        droplet().offer("g-2vcpu-8gb", |offer| offer.deprecated = true).refused(
            wanted,
            "its plan g-2vcpu-8gb is deprecated in fra1, so that it may not come back",
        );
        Case::droplet("g-2vcpu-8gb-old", 25).refused(
            wanted,
            "its plan g-2vcpu-8gb-old is no longer listed, so that it could not come back",
        );
    }
}

#[test]
fn a_machine_whose_owner_or_state_forbids_it_stays() {
    let droplet = || Case::droplet("g-2vcpu-8gb", 25);
    for (case, words) in [
        (
            droplet().facts(|facts| facts.kubernetes_worker = true),
            "a Kubernetes worker has the plan of its node pool",
        ),
        (
            Case { autoscaled: true, ..droplet() },
            "it is a member of a Droplet autoscale pool, which replaces members that change",
        ),
        (
            droplet().facts(|facts| facts.gpu = true),
            "it has a GPU, and GPU plans cannot be left and ordered again at will",
        ),
        (
            droplet().plan("g-2vcpu-8gb", |plan| plan.gpu = true),
            "it has a GPU, and GPU plans cannot be left and ordered again at will",
        ),
        (
            droplet().facts(|facts| facts.scratch_disk = true),
            "it has a scratch disk, which a move would erase",
        ),
        (droplet().facts(|facts| facts.protected = true), "it is protected at the provider"),
        (droplet().facts(|facts| facts.iso = true), "an ISO image is attached to it"),
        (droplet().facts(|facts| facts.rescue = true), "its rescue system is enabled"),
    ] {
        case.refused(None, words);
        case.refused(Some("s-1vcpu-1gb"), words);
    }
}

#[test]
fn without_plans_nothing_can_be_said() {
    let mut droplet = Case::droplet("g-2vcpu-8gb", 25);
    droplet.plans.clear();
    droplet.refused(None, "no plans are known");
    Case::droplet("", 0).refused(None, "no plans are known");
}

#[test]
fn an_old_price_is_given_up_only_where_that_is_accepted() {
    let words =
        "it was created before 2026-06-15 and may have an old price, which a move ends for good";
    for created_at in [None, Some("2026-06-14T23:59:59Z")] {
        let mut server = Case::server(created_at);
        server.refused(None, words);
        server.refused(Some("cpx22"), words);
        server.accepts_new_prices = true;
        assert_eq!(server.wanting(None), Ok(("cpx22".to_owned(), true)));
    }
    let since = Case::server(Some("2026-06-15T00:00:00Z"));
    assert_eq!(since.wanting(None), Ok(("cpx22".to_owned(), false)));
    // Droplets have no old prices.
    let droplet = Case::droplet("g-2vcpu-8gb", 25);
    assert_eq!(droplet.wanting(None), Ok(("s-1vcpu-1gb".to_owned(), false)));
}

#[test]
fn a_plan_has_the_size_of_a_machine_made_on_it() {
    let [plan, ..] = &droplet_plans()[..] else {
        unreachable!("there are plans");
    };
    let size = plan.size();
    assert_eq!((size.plan.as_str(), size.disk_gib), ("s-1vcpu-1gb", 25));
    assert_eq!((size.vcpus, size.memory_mib), (1, 1024));
}

#[test]
fn a_tag_names_the_plan_before_the_schedule_does() {
    let policy = Policy { resize_to: Some("s-1vcpu-2gb".to_owned()), ..Policy::default() };
    let tags = |tags: &[&str]| tags.iter().map(|&tag| tag.to_owned()).collect();
    let named: BTreeSet<String> = tags(&["Offhours-To:S-1vcpu-1gb", "offhours:office"]);
    let labelled: BTreeSet<String> = tags(&["offhours-to=cx23", "offhours-to:CX23"]);
    let other: BTreeSet<String> = tags(&[
        "offhours:s-1vcpu-1gb",
        "offhours:to=s-1vcpu-1gb",
        "offhours-to",
        "offhours-tool:s-1vcpu-1gb",
        "x-offhours-to:s-1vcpu-1gb",
    ]);
    for (kind, tags, expected) in [
        (ResourceKind::Droplet, &named, Some("s-1vcpu-1gb")),
        (ResourceKind::Server, &labelled, Some("cx23")),
        (ResourceKind::Droplet, &other, Some("s-1vcpu-2gb")),
        (ResourceKind::Server, &other, None),
        (ResourceKind::Database, &named, None),
    ] {
        let expected = Ok(expected.map(str::to_owned));
        assert_eq!(requested_plan(kind, tags, &policy), expected, "{kind} {tags:?}");
    }
}

#[test]
fn two_plans_in_tags_are_a_conflict_that_names_both() {
    let tags = ["offhours-to:cpx12", "offhours-to=cx23"].map(str::to_owned);
    let conflict = requested_plan(ResourceKind::Server, &tags.into(), &Policy::default());
    let conflict = conflict.unwrap_err();
    let (first, second) = ("cpx12".to_owned(), "cx23".to_owned());
    assert_eq!(conflict, MoveRefusal::TwoTargets { first, second });
    assert_eq!(conflict.remedy(), "remove one of the two tags");
}
