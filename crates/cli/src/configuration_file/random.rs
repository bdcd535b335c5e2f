//! Random valid configurations, for tests of writing, reading and comparing.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    AccountName, MachineName, ScheduleName,
    configuration::{
        Account, AccountKind, Adopt, CloudAccount, Configuration, DatabaseMethod, DropletMethod,
        Floor, Generation, Location, Methods, Mode, Otherwise, Pattern, Policy, Provider, Rule,
        Selector, ServerMethod, Settings, Ssh, SshAccount, TokenReference,
    },
    hibernation::Risk,
    machine::Machine,
    prices::{OwnPrices, Price},
    schedule::{Definition, Desired, PeriodDefinition, Schedule},
};
use proptest::{collection, option, prelude::*, sample::select, string::string_regex};
use serde_json::json;

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

/// A configuration in which every key of the file occurs now and then.
pub(crate) fn configuration() -> impl Strategy<Value = Configuration> {
    let accounts = collection::btree_map(name::<AccountName>(), account(), 1..4);
    // A name that is configured cannot be a former one.
    let accounts = (accounts, option::of(name::<AccountName>())).prop_map(|(mut accounts, was)| {
        let was = was.filter(|was| !accounts.contains_key(was));
        if let (Some(mut first), Some(was)) = (accounts.first_entry(), was) {
            first.get_mut().set_was(was);
        }
        accounts
    });
    let schedules = collection::btree_map(name::<ScheduleName>(), (schedule(), policy()), 0..5);
    (settings(), accounts, schedules).prop_flat_map(|(settings, accounts, schedules)| {
        resources(&accounts, schedules.len()).prop_map(move |resources| {
            let rules = schedules.clone().into_iter().zip(resources).map(
                |((name, (schedule, policy)), resources)| {
                    let rule = Rule { schedule, resources, policy };
                    (name, rule)
                },
            );
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

fn name<N: std::str::FromStr<Err: std::fmt::Debug> + std::fmt::Debug>() -> impl Strategy<Value = N>
{
    string_regex("[a-z0-9]([a-z0-9_-]{0,8}[a-z0-9])?")
        .expect("a regex")
        .prop_filter_map("a reserved word", |text| text.parse().ok())
}

fn settings() -> impl Strategy<Value = Settings> {
    let protect = collection::vec(pattern(), 0..4);
    let max_stops = prop_oneof![Just(100), 1..=u32::MAX];
    let max_new = prop_oneof![Just(25), 0..=u32::MAX];
    (mode(), protect, max_stops, max_new, prices()).prop_map(
        |(mode, protect, max_stops, max_new, prices)| Settings {
            mode,
            protect,
            max_stops,
            max_new,
            prices,
        },
    )
}

fn prices() -> impl Strategy<Value = OwnPrices> {
    let price = || {
        string_regex(r"[0-9]{1,6}(\.[0-9]{1,9})?")
            .expect("a regex")
            .prop_map(|text| Price::parse(&text).expect("a price"))
    };
    let plan = || select(vec!["s-2vcpu-4gb", "2 x db-s-1vcpu-2gb", "odd \"plan\""]);
    let plans = || collection::btree_map(plan().prop_map(str::to_owned), price(), 0..3);
    let providers = collection::btree_map(select(Provider::ALL.to_vec()), price(), 0..3);
    (plans(), plans(), plans(), plans(), providers).prop_map(
        |(database_month, node_hour, machine_hour, machine_month, snapshot_gb_month)| OwnPrices {
            database_month,
            node_hour,
            machine_hour,
            machine_month,
            snapshot_gb_month,
        },
    )
}

fn mode() -> impl Strategy<Value = Mode> {
    select(vec![Mode::Act, Mode::Act, Mode::Observe])
}

/// Patterns with every character that may need care in TOML.
fn pattern() -> impl Strategy<Value = Pattern> {
    let odd = "[ -~äß„\u{1f980}\n\r\t\\\\'\"\u{7f}\u{0}]{0,12}";
    let glob = string_regex(odd).expect("a regex");
    (select(vec!["name:", "tag:", "*/"]), glob)
        .prop_filter_map("nothing is protected", |(subject, glob)| {
            format!("{subject}{glob}").parse().ok()
        })
}

fn account() -> impl Strategy<Value = Account> {
    prop_oneof![
        2 => cloud_account().prop_map(Account::Cloud),
        1 => ssh_account().prop_map(|account| Account::Ssh(Box::new(account))),
    ]
}

fn ssh_account() -> impl Strategy<Value = SshAccount> {
    let key = "(ssm:/offhours/[a-z._-]{1,12}|env:[A-Z0-9_]{1,12}|file:/[ a-z\"'/]{1,12})";
    let key = string_regex(key).expect("a regex");
    let machines = collection::btree_map(name::<MachineName>(), machine(), 0..3);
    let host = select(vec!["jump.example.net", "10.1.2.3", "fd12::3"]);
    let times = (select(vec!["1s", "10s", "30s"]), select(vec!["500ms", "60s"]));
    let limits = (select(vec!["1B", "4KiB", "64KiB"]), any::<bool>());
    let server = (host, 1..=u16::MAX, 1..=2_usize);
    let read_key = select(vec![None, Some("ssm:/offhours/lab-read"), Some("file:/k-read")]);
    (mode(), server, (key, read_key), times, limits, machines).prop_map(
        |(
            mode,
            (host, port, keys),
            (key, read_key),
            (connect, command),
            (output, private),
            machines,
        )| {
            let login = json!({
                "host": host,
                "port": port,
                "user": "offhours",
                "key": key,
                "read_key": read_key,
                "host_keys": HOST_KEYS[..keys],
                "connect_timeout": connect,
                "command_timeout": command,
                "output_limit": output,
                "allow_private_hosts": private,
                "machines": machines,
            });
            SshAccount {
                provider: Ssh::Ssh,
                was: None,
                mode,
                login: serde_json::from_value(login).expect("a login"),
            }
        },
    )
}

const HOST_KEYS: [&str; 2] = [
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID2MFepRAu6qdgmRqxbuktBQOdN2QdL0zSZ1xcsO/yTw lab 1",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID2MFepRAu6qdgmRqxbuktBQOdN2QdL0zSZ1xcsO/yTw",
];

fn machine() -> impl Strategy<Value = Machine> {
    let command = || string_regex("[!-~][ -~ä]{0,20}").expect("a regex");
    let status = (command(), option::of(select(vec!["10.0.0.9:22", "[fd12::9]:443"])));
    let deadlines = (select(vec!["10m", "90s"]), select(vec!["10m", "2h"]));
    let tags =
        collection::btree_set(string_regex("[a-z]{1,4}:[ -~ä]{0,8}").expect("a regex"), 0..3);
    let commands = (command(), command(), option::of(command()));
    (commands, status, any::<bool>(), deadlines, tags).prop_map(
        |((start, stop, force), (status, probe), off, (start_deadline, stop_deadline), tags)| {
            let machine = json!({
                "start": start,
                "stop": stop,
                "force": force,
                "status": status,
                "probe": probe,
                "unreachable_means": if off { "stopped" } else { "unknown" },
                "start_deadline": start_deadline,
                "stop_deadline": stop_deadline,
                "tags": tags,
            });
            serde_json::from_value(machine).expect("a machine")
        },
    )
}

fn cloud_account() -> impl Strategy<Value = CloudAccount> {
    let provider = select(vec![Provider::DigitalOcean, Provider::Hetzner]);
    let token =
        string_regex("(ssm:/offhours/[a-z._-]{1,12}|env:[A-Z0-9_]{1,12})").expect("a regex");
    let token = token.prop_map(|text| text.parse::<TokenReference>().expect("a token's place"));
    let read_token = string_regex("(ssm:/offhours/[a-z._-]{1,12}-read|env:[A-Z0-9_]{1,12}_READ)")
        .expect("a regex");
    let read_token = read_token.prop_map(|text| text.parse().expect("a token's place"));
    let datacenters =
        proptest::sample::subsequence(vec!["fsn1-dc14", "nbg1", "hel1-dc2", "ash", "sin"], 0..=5);
    let datacenters = datacenters.prop_map(|names| {
        let parsed = names.into_iter().map(str::parse::<Location>);
        parsed.collect::<Result<_, _>>().unwrap()
    });
    let url = option::of(select(vec![
        "https://api.example.com:8443/clouds/do",
        "http://127.0.0.1:8080",
        "http://[::1]:8080/v2",
    ]));
    let tokens = (token, option::of(read_token));
    let of_hetzner = (datacenters, any::<bool>());
    let ssh_key = option::of("[a-z]{1,8}");
    (provider, tokens, of_hetzner, ssh_key, mode(), url).prop_map(
        |(provider, (token, read_token), of_hetzner, ssh_key, mode, url)| {
            let (datacenters, accept_new_prices) = match provider {
                Provider::DigitalOcean => (Vec::new(), false),
                Provider::Hetzner => of_hetzner,
            };
            CloudAccount {
                provider,
                was: None,
                token,
                read_token,
                datacenters,
                accept_new_prices,
                ssh_key,
                mode,
                url: url.map(str::to_owned),
            }
        },
    )
}

fn policy() -> impl Strategy<Value = Policy> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let adopt = select(vec![Adopt::AtOnce, Adopt::NextEdge]);
    let stop_size = option::of(string_regex("db-[a-z0-9_-]{1,12}").expect("a regex"));
    let stop_nodes = option::of(1..=3_u32);
    let databases = (stop_size, stop_nodes);
    (mode(), flags, adopt, methods(), databases).prop_map(
        |(mode, (graceful, force, enforce, retain_running), adopt, methods, databases)| {
            let (stop_size, stop_nodes) = databases;
            let standbys = methods.methods.database == DatabaseMethod::Standbys;
            Policy {
                mode,
                graceful,
                force,
                enforce,
                // The two are mutually exclusive.
                retain_running: retain_running && !enforce,
                // So are these.
                stop_nodes: stop_nodes.filter(|_| !standbys),
                adopt,
                stop_size,
                ..methods
            }
        },
    )
}

/// The methods, and the keys that only have an effect with them.
fn methods() -> impl Strategy<Value = Policy> {
    let droplet =
        select(vec![DropletMethod::PowerOff, DropletMethod::Resize, DropletMethod::Hibernate]);
    let server =
        select(vec![ServerMethod::PowerOff, ServerMethod::Rescale, ServerMethod::Hibernate]);
    let database = select(vec![DatabaseMethod::SmallestPlan, DatabaseMethod::Standbys]);
    let plan = || option::of(string_regex("[a-z0-9_-]{1,12}").expect("a regex"));
    let flags = (any::<bool>(), any::<bool>());
    let risks = vec![Risk::NewIp, Risk::LostBackups, Risk::CustomImage];
    let accept = collection::btree_set(select(risks), 0..3);
    let of_hibernation = (accept, any::<bool>(), any::<bool>());
    let methods = (droplet, server, database);
    (methods, (plan(), plan()), flags, of_hibernation).prop_map(
        |(methods, (resize_to, rescale_to), (start_small, rescaled_runs), of_hibernation)| {
            let (droplet, server, database) = methods;
            let (accept, needs_private_ip, powers_off) = of_hibernation;
            let droplets = droplet == DropletMethod::Hibernate;
            let hibernates = droplets || server == ServerMethod::Hibernate;
            let resizes = droplet == DropletMethod::Resize;
            let rescales = server == ServerMethod::Rescale;
            Policy {
                methods: Methods { droplet, server, database },
                resize_to: resize_to.filter(|_| resizes),
                rescale_to: rescale_to.filter(|_| rescales),
                start_small: start_small && (resizes || rescales),
                rescaled_runs: rescaled_runs && rescales,
                accept: accept.into_iter().filter(|_| hibernates).collect(),
                needs_private_ip: needs_private_ip && droplets,
                otherwise: if powers_off && hibernates {
                    Otherwise::PowerOff
                } else {
                    Otherwise::Refuse
                },
                ..Policy::default()
            }
        },
    )
}

fn schedule() -> impl Strategy<Value = Schedule> {
    let periods = collection::vec(period(), 1..4)
        .prop_map(|periods| Definition { periods, ..Definition::default() });
    let one = || option::weighted(0.8, select(CRONS.to_vec()));
    let cron = (one(), one()).prop_map(|(start, stop)| Definition {
        start: start.map(str::to_owned),
        stop: stop.map(str::to_owned),
        ..Definition::default()
    });
    let state = select(vec![Desired::Running, Desired::Stopped])
        .prop_map(|state| Definition { state: Some(state), ..Definition::default() });
    let holidays = collection::vec(select(HOLIDAYS.to_vec()), 0..3);
    let timing = prop_oneof![6 => periods, 2 => cron, 1 => state];
    (select(ZONES.to_vec()), timing, holidays).prop_filter_map(
        "a schedule that is refused",
        |(timezone, timing, holidays)| {
            let definition =
                Definition { timezone: timezone.to_owned(), holidays: texts(holidays), ..timing };
            Schedule::new(&definition).ok()
        },
    )
}

fn period() -> impl Strategy<Value = PeriodDefinition> {
    let some = |texts: &'static [&'static str]| collection::vec(select(texts), 0..3);
    let time = || option::of((0..24_u32, 0..60_u32));
    let fields = (some(&WEEKDAYS), some(&MONTHDAYS), some(&MONTHS));
    let date = |days: &'static [&'static str]| option::weighted(0.2, select(days));
    let dates = (date(&["2026-01-01", "2026-02-28"]), date(&["2026-06-30", "2030-12-31"]));
    let zone = option::weighted(0.2, select(ZONES.to_vec()));
    (fields, dates, zone, time(), time()).prop_map(|(fields, (from, until), zone, begin, end)| {
        let (weekdays, monthdays, months) = fields;
        let clock = |(hour, minute)| format!("{hour:02}:{minute:02}");
        PeriodDefinition {
            weekdays: texts(weekdays),
            monthdays: texts(monthdays),
            months: texts(months),
            from: from.map(str::to_owned),
            until: until.map(str::to_owned),
            timezone: zone.map(str::to_owned),
            begin: begin.map(clock),
            end: end.map(clock),
        }
    })
}

fn texts(texts: Vec<&str>) -> Vec<String> {
    texts.into_iter().map(str::to_owned).collect()
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
            let text = match (of, kind) {
                (AccountKind::Ssh, _) => format!("{account}/machine/m{number}"),
                (AccountKind::Cloud(Provider::Hetzner), _) => format!("{account}/server/{number}"),
                (AccountKind::Cloud(Provider::DigitalOcean), 0) => {
                    format!("{account}/droplet/{number}")
                }
                (AccountKind::Cloud(Provider::DigitalOcean), 1) => {
                    format!("{account}/database/{number:x}-a")
                }
                (AccountKind::Cloud(Provider::DigitalOcean), _) => {
                    format!("{account}/node-pool/{number:x}/p-{number}")
                }
            };
            text.parse::<Selector>().expect("a reference")
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
