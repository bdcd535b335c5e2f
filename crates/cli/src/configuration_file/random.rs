//! Random valid configurations, for tests of writing, reading and comparing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
};

use domain::{
    AccountName, ScheduleName,
    configuration::{
        Account, AccountKind, Configuration, DatabaseMethod, DropletMethod, Floor, Generation,
        Policy, Provider, Rule, Selector, ServerMethod, Settings,
    },
    schedule::{Definition, Schedule},
};
use proptest::{collection, option, prelude::*, sample::select, string::string_regex};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

const ZONES: [&str; 5] =
    ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "America/Argentina/Buenos_Aires"];

const WEEKDAYS: [&str; 8] =
    ["mon-fri", "Fri - mon", "sat, sun", "sat#1", "friL", "WEDNESDAY", "tue", "sun#5,thu"];

const MONTHDAYS: [&str; 9] = ["1-7", "25-5", "28-L", "1/10", "5-20/3", "l", "15W", "31", "1, 15"];

const MONTHS: [&str; 7] = ["nov-feb", "1", "jan/3", "feb-nov/2", "December", "6-9", "1,7"];

const CRONS: [&str; 6] = [
    "0 8 * * mon-fri",
    "*/20 1-2 * * *",
    "30 19 1,15 * *",
    "0 0 L * *",
    "@daily",
    "5 4 * jan-mar sun",
];

const HOLIDAYS: [&str; 6] = [
    "2026-12-24",
    "2026-12-24..2026-12-26",
    "01-01",
    "12-24 .. 01-02",
    "05-01, 10-03",
    "2028-02-29",
];

const HOST_KEYS: [&str; 2] = [
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID2MFepRAu6qdgmRqxbuktBQOdN2QdL0zSZ1xcsO/yTw lab 1",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID2MFepRAu6qdgmRqxbuktBQOdN2QdL0zSZ1xcsO/yTw",
];

type Values = BoxedStrategy<Value>;

fn text(regex: &str) -> Values {
    string_regex(regex).expect("a regex").prop_map(Value::from).boxed()
}

fn word(words: &'static [&'static str]) -> Values {
    select(words).prop_map(Value::from).boxed()
}

fn words(words: &'static [&'static str]) -> Values {
    let indices = collection::btree_set(0..words.len(), 0..3);
    indices.prop_map(|all| all.into_iter().map(|one| words[one]).collect()).boxed()
}

fn flag() -> Values {
    any::<bool>().prop_map(Value::from).boxed()
}

fn number(numbers: std::ops::RangeInclusive<u32>) -> Values {
    numbers.prop_map(Value::from).boxed()
}

/// A table that has each of the first keys always, and each of the others now and then.
fn table<const N: usize, const M: usize>(
    always: [(&'static str, Values); N],
    sometimes: [(&'static str, Values); M],
) -> Values {
    let always = always.map(|(key, value)| (key, value.prop_map(Some).boxed()));
    let sometimes = sometimes.map(|(key, value)| (key, option::of(value).boxed()));
    let keys = always
        .into_iter()
        .chain(sometimes)
        .map(|(key, value)| value.prop_map(move |value| Some((key.to_owned(), value?))));
    let keys: Vec<_> = keys.collect();
    keys.prop_map(|keys| keys.into_iter().flatten().collect::<Map<_, _>>().into()).boxed()
}

/// A table with random names.
fn named(values: Values) -> Values {
    let name = string_regex("[a-z0-9]([a-z0-9_-]{0,8}[a-z0-9])?").expect("a regex");
    let name = name.prop_filter("reserved", |name| name.parse::<AccountName>().is_ok());
    let entries = collection::btree_map(name, values, 0..4);
    entries.prop_map(|entries| entries.into_iter().collect::<Map<_, _>>().into()).boxed()
}

fn read<T: DeserializeOwned + Debug>(values: Values) -> impl Strategy<Value = T> {
    values.prop_map(|value| serde_json::from_value(value).expect("a value of this type"))
}

/// A configuration in which every key of the file occurs now and then.
pub(crate) fn configuration() -> impl Strategy<Value = Configuration> {
    let accounts = read::<BTreeMap<AccountName, Account>>(named(account()));
    let accounts = accounts.prop_filter("nothing to list", |accounts| !accounts.is_empty());
    // A name that is configured cannot be a former one.
    let was = option::of(text("[a-z0-9]{9}"));
    let accounts = (accounts, was).prop_map(|(mut accounts, was)| {
        let was: Option<AccountName> = was.map(|was| serde_json::from_value(was).expect("a name"));
        let was = was.filter(|was| !accounts.contains_key(was));
        if let (Some(mut first), Some(was)) = (accounts.first_entry(), was) {
            first.get_mut().set_was(was);
        }
        accounts
    });
    let name = read::<ScheduleName>(text("[a-z0-9]([a-z0-9_-]{0,8}[a-z0-9])").boxed());
    let schedules = collection::btree_map(name, (schedule(), policy()), 0..5);
    (settings(), accounts, schedules).prop_flat_map(|(settings, accounts, schedules)| {
        resources(&accounts, schedules.len()).prop_map(move |resources| {
            let rules = schedules.clone().into_iter().zip(resources);
            let rules = rules.map(|((name, (schedule, policy)), resources)| {
                (name, Rule { schedule, resources, policy })
            });
            Configuration {
                generation: Generation::default(),
                settings: settings.clone(),
                accounts: accounts.clone(),
                schedules: rules.collect(),
                floor: Floor::default(),
            }
        })
    })
}

fn mode() -> Values {
    word(&["act", "act", "observe"])
}

fn settings() -> impl Strategy<Value = Settings> {
    let price = || text(r"[0-9]{1,6}(\.[0-9]{1,9})?");
    let plans = || {
        let plan = select(vec!["s-2vcpu-4gb", "2 x db-s-1vcpu-2gb", "odd \"plan\""]);
        let plans = collection::btree_map(plan.prop_map(str::to_owned), price(), 0..3);
        plans.prop_map(|plans| plans.into_iter().collect::<Map<_, _>>().into()).boxed()
    };
    let prices = table(
        [],
        [
            ("database-month", plans()),
            ("node-hour", plans()),
            ("machine-hour", plans()),
            ("machine-month", plans()),
            ("snapshot-gb-month", table([], [("hetzner", price()), ("digitalocean", price())])),
        ],
    );
    // Every character that may need care in TOML.
    let odd = text("(name:|tag:|\\*/)[ -~äß„\u{1f980}\n\r\t\\\\'\"\u{7f}\u{0}]{0,12}");
    let is_pattern = |text: &Value| {
        serde_json::from_value::<domain::configuration::Pattern>(text.clone()).is_ok()
    };
    let protect = collection::vec(odd.prop_filter("nothing is protected", is_pattern), 0..4);
    read(table(
        [],
        [
            ("mode", mode()),
            ("protect", protect.prop_map(Value::from).boxed()),
            ("max_stops", number(1..=u32::MAX)),
            ("max_new", number(0..=u32::MAX)),
            ("prices", prices),
            ("owner_tag", text("[a-z]{1,9}")),
            ("heartbeat", text("env:[A-Z]{1,9}")),
            ("notify", named(target())),
            ("groups", named(group())),
        ],
    ))
}

fn group() -> Values {
    table(
        [("resources", Just(Value::from(vec!["name:web-*", "tag:shop", "do-main/*"])).boxed())],
        [
            ("after", words(&["do-main/droplet/7", "hz-eu/server/8"])),
            ("wait", word(&["1m", "15m", "6h"])),
            ("check", word(&["tcp://[2001:db8::9]:5432", "https://a.example.net/health?deep=1"])),
        ],
    )
}

fn target() -> Values {
    let url = || text("(env:[A-Z]{1,9}|credential:[a-z]{1,9})");
    let events = || words(&["transition-stuck", "edge-completed"]);
    let to = Just(Value::from(vec!["ops@example.com", "Ä <a@example.org>"])).boxed();
    let webhook = table(
        [("kind", word(&["webhook"])), ("url", url()), ("secret", url())],
        [("events", events())],
    );
    let chat = table([("kind", word(&["slack", "teams", "discord"])), ("url", url())], []);
    let mail = table(
        [("kind", word(&["mail"])), ("url", url()), ("from", text("[a-z]{1,9}")), ("to", to)],
        [],
    );
    prop_oneof![webhook, chat, mail].boxed()
}

fn account() -> Values {
    let places = [
        "ssm:/offhours/[a-z._-]{1,12}",
        "env:[A-Z0-9_]{1,12}",
        "credential:[a-z][a-z.]{0,9}",
        "file:/[ a-z\"'/]{1,12}",
    ];
    let place = format!("({})", places.join("|"));
    let token = || text(&place);
    let url = || {
        word(&[
            "https://api.example.com:8443/clouds/do",
            "http://127.0.0.1:8080",
            "http://[::1]:8080/v2",
        ])
    };
    let host_keys = (1..=2_usize).prop_map(|keys| HOST_KEYS[..keys].iter().copied().collect());
    let digitalocean = table(
        [("provider", word(&["digitalocean"])), ("token", token())],
        [
            ("read_token", token()),
            ("ssh_key", text("[a-z]{1,8}")),
            ("mode", mode()),
            ("url", url()),
        ],
    );
    let hetzner = table(
        [("provider", word(&["hetzner"])), ("token", token())],
        [
            ("read_token", token()),
            ("datacenters", words(&["fsn1-dc14", "nbg1", "hel1-dc2", "ash", "sin"])),
            ("accept_new_prices", flag()),
            ("mode", mode()),
        ],
    );
    let ssh = table(
        [
            ("provider", word(&["ssh"])),
            ("host", word(&["jump.example.net", "10.1.2.3", "fd12::3"])),
            ("user", word(&["offhours"])),
            ("key", token()),
            ("host_keys", host_keys.boxed()),
            ("machines", named(machine())),
        ],
        [
            ("mode", mode()),
            ("port", number(1..=u16::MAX.into())),
            ("read_key", token()),
            ("connect_timeout", word(&["1s", "10s", "30s"])),
            ("command_timeout", word(&["500ms", "60s"])),
            ("output_limit", word(&["1B", "4KiB", "64KiB"])),
            ("allow_private_hosts", flag()),
        ],
    );
    prop_oneof![digitalocean, hetzner, ssh].boxed()
}

fn machine() -> Values {
    let command = || text("[!-~][ -~ä]{0,20}");
    let tags =
        collection::btree_set(string_regex("[a-z]{1,4}:[ -~ä]{0,8}").expect("a regex"), 0..3);
    let tags = tags.prop_map(|tags| tags.into_iter().collect());
    table(
        [("start", command()), ("stop", command()), ("status", command())],
        [
            ("force", command()),
            ("probe", word(&["10.0.0.9:22", "[fd12::9]:443"])),
            ("unreachable_means", word(&["stopped", "unknown"])),
            ("start_deadline", word(&["10m", "90s"])),
            ("stop_deadline", word(&["10m", "2h"])),
            ("tags", tags.boxed()),
        ],
    )
}

/// A policy in which no key is without effect, and none excludes another.
fn policy() -> impl Strategy<Value = Policy> {
    let plan = || text("[a-z0-9_-]{1,12}");
    let methods = table(
        [],
        [
            ("droplet", word(&["power-off", "resize", "hibernate"])),
            ("server", word(&["power-off", "rescale", "hibernate"])),
            ("database", word(&["smallest-plan", "standbys"])),
        ],
    );
    let policy = table(
        [("methods", methods)],
        [
            ("mode", mode()),
            ("graceful", flag()),
            ("force", flag()),
            ("enforce", flag()),
            ("retain_running", flag()),
            ("adopt", word(&["at-once", "next-edge"])),
            ("notice", word(&["5m", "90m", "4h"])),
            ("max_extend", word(&["0s", "90m", "12h", "168h"])),
            ("resize_to", plan()),
            ("rescale_to", plan()),
            ("start_small", flag()),
            ("rescaled_runs", flag()),
            ("accept", words(&["new-ip", "lost-backups", "custom-image"])),
            ("needs_private_ip", flag()),
            ("otherwise", word(&["refuse", "power-off"])),
            ("stop_size", text("db-[a-z0-9_-]{1,12}")),
            ("stop_nodes", number(1..=3)),
        ],
    );
    read::<Policy>(policy).prop_map(|policy| {
        let resizes = policy.methods.droplet == DropletMethod::Resize;
        let rescales = policy.methods.server == ServerMethod::Rescale;
        let droplets = policy.methods.droplet == DropletMethod::Hibernate;
        let hibernates = droplets || policy.methods.server == ServerMethod::Hibernate;
        let standbys = policy.methods.database == DatabaseMethod::Standbys;
        let none = Policy::default();
        Policy {
            retain_running: policy.retain_running && !policy.enforce,
            resize_to: policy.resize_to.filter(|_| resizes),
            rescale_to: policy.rescale_to.filter(|_| rescales),
            start_small: policy.start_small && (resizes || rescales),
            rescaled_runs: policy.rescaled_runs && rescales,
            accept: if hibernates { policy.accept } else { none.accept },
            needs_private_ip: policy.needs_private_ip && droplets,
            otherwise: if hibernates { policy.otherwise } else { none.otherwise },
            stop_nodes: policy.stop_nodes.filter(|_| !standbys),
            ..policy
        }
    })
}

fn schedule() -> impl Strategy<Value = Schedule> {
    let clock = || text("([01][0-9]|2[0-3]):[0-5][0-9]");
    let period = table(
        [],
        [
            ("weekdays", words(&WEEKDAYS)),
            ("monthdays", words(&MONTHDAYS)),
            ("months", words(&MONTHS)),
            ("from", word(&["2026-01-01", "2026-02-28"])),
            ("until", word(&["2026-06-30", "2030-12-31"])),
            ("timezone", word(&ZONES)),
            ("begin", clock()),
            ("end", clock()),
        ],
    );
    let periods = collection::vec(period, 1..4).prop_map(Value::from).boxed();
    let (zone, holidays) = (|| ("timezone", word(&ZONES)), || ("holidays", words(&HOLIDAYS)));
    let definition = prop_oneof![
        6 => table([zone(), ("periods", periods)], [holidays()]),
        2 => table([zone()], [("start", word(&CRONS)), ("stop", word(&CRONS)), holidays()]),
        1 => table([zone(), ("state", word(&["running", "stopped"]))], [holidays()]),
    ];
    read::<Definition>(definition.boxed())
        .prop_filter_map("a schedule that is refused", |definition| Schedule::new(&definition).ok())
}

/// As many disjoint sets of resources as there are schedules.
fn resources(
    accounts: &BTreeMap<AccountName, Account>,
    schedules: usize,
) -> impl Strategy<Value = Vec<BTreeSet<Selector>>> + use<> {
    let accounts: Vec<_> =
        accounts.iter().map(|(name, account)| (name.clone(), account.kind())).collect();
    let reference =
        (select(accounts), 0..3_u8, any::<u64>()).prop_map(|((account, of), kind, number)| {
            let id = match (of, kind) {
                (AccountKind::Ssh, _) => format!("machine/m{number}"),
                (AccountKind::Cloud(Provider::Hetzner), _) => format!("server/{number}"),
                (AccountKind::Cloud(Provider::DigitalOcean), 0) => format!("droplet/{number}"),
                (AccountKind::Cloud(Provider::DigitalOcean), 1) => format!("database/{number:x}-a"),
                (AccountKind::Cloud(Provider::DigitalOcean), _) => {
                    format!("node-pool/{number:x}/p-{number}")
                }
            };
            format!("{account}/{id}").parse::<Selector>().expect("a reference")
        });
    let name = "[A-Za-z0-9._*?-]{1,8}".prop_map(|text| text.parse().expect("a name"));
    let selector = prop_oneof![4 => reference, 1 => name];
    let owner = 0..schedules.max(1);
    collection::btree_map(selector, owner, 0..8).prop_map(move |owners| {
        let mut sets = vec![BTreeSet::new(); schedules];
        for (selector, owner) in owners {
            if let Some(set) = sets.get_mut(owner) {
                set.insert(selector);
            }
        }
        sets
    })
}
