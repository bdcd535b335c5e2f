//! Tests the file's schema against what is read and written.

use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::Value;

use crate::{
    configuration_file::{ListedResources, Problem, parse, random, read, write, written::File},
    shape,
};

fn schema() -> Value {
    shape::schema_of::<File>().to_value()
}

fn validator() -> Validator {
    jsonschema::validator_for(&schema()).expect("a schema")
}

/// A TOML document as editors pass it to a schema: dates and times are strings.
fn document(text: &str) -> Value {
    fn json(value: toml::Value) -> Value {
        match value {
            toml::Value::Datetime(datetime) => Value::String(datetime.to_string()),
            toml::Value::Array(array) => array.into_iter().map(json).collect(),
            toml::Value::Table(table) => table.into_iter().map(|(k, v)| (k, json(v))).collect(),
            toml::Value::String(text) => Value::String(text),
            toml::Value::Integer(integer) => integer.into(),
            toml::Value::Float(float) => float.into(),
            toml::Value::Boolean(boolean) => boolean.into(),
        }
    }
    json(toml::Value::Table(toml::from_str(text).expect("TOML")))
}

#[track_caller]
fn check_accepted(text: &str) {
    if let Err(problems) = read(text, "x.toml", ListedResources::MayStandAlone) {
        panic!("{problems:#?}\n{text}");
    }
    if let Err(error) = validator().validate(&document(text)) {
        panic!("{}: {error}\n{text}", error.instance_path());
    }
}

#[track_caller]
fn check_refused(text: &str) {
    let read = read(text, "x.toml", ListedResources::MayStandAlone);
    assert!(read.is_err(), "read: {text}");
    assert!(!validator().is_valid(&document(text)), "fits: {text}");
}

/// The tables of the schema, each with the path at which a test document puts one of its keys.
fn tables(schema: &Value) -> [(&Value, &'static str); 10] {
    let tables = &schema["$defs"];
    [
        (schema, ""),
        (&tables["account"], "accounts.a."),
        (&tables["ssh-account"], "accounts.l."),
        (&tables["machine"], "accounts.l.machines.m."),
        (&tables["schedule"], "schedules.s."),
        (&tables["period"], "schedules.s.periods[0]."),
        (&tables["methods"], "schedules.s.methods."),
        (&tables["prices"], "prices."),
        (&tables["target"], "notify.n."),
        (&tables["group"], "groups.g."),
    ]
}

#[test]
fn every_key_is_described_and_read() {
    let schema = schema();
    for (table, path) in tables(&schema) {
        assert_eq!(table["additionalProperties"], false);
        for (key, property) in table["properties"].as_object().expect("properties") {
            assert!(property["description"].is_string(), "{key}");
            // No key accepts a number with a fraction.
            let text = match path.strip_suffix("periods[0].") {
                Some(schedule) => format!("{schedule}periods = [{{ {key} = 0.5 }}]"),
                None => format!("{path}{key} = 0.5"),
            };
            let is_provider = key == "provider";
            let text = match path {
                "accounts.l." if !is_provider => format!("accounts.l.provider = \"ssh\"\n{text}"),
                "accounts.l.machines.m." => format!("accounts.l.provider = \"ssh\"\n{text}"),
                _ => text,
            };
            let problems = parse(&text, "x.toml").expect_err(&text);
            let place = format!("{path}{key}");
            let is_refused = |problem: &Problem| problem.message.starts_with(&place);
            assert!(problems.iter().any(is_refused), "{text}: {problems:#?}");
        }
    }
}

#[test]
fn a_default_of_the_schema_is_what_counts_without_the_key() {
    let schema = schema();
    let rest = "accounts.a.provider = \"hetzner\"\naccounts.a.token = \"env:T\"\n\
                accounts.l.provider = \"ssh\"\naccounts.l.host = \"jump\"\n\
                accounts.l.user = \"u\"\naccounts.l.key = \"env:K\"\n\
                accounts.l.host_keys = [\"ssh-ed25519 \
                AAAAC3NzaC1lZDI1NTE5AAAAID2MFepRAu6qdgmRqxbuktBQOdN2QdL0zSZ1xcsO/yTw\"]\n\
                accounts.l.machines.m.start = \"a\"\naccounts.l.machines.m.stop = \"b\"\n\
                accounts.l.machines.m.status = \"c\"\n\
                groups.g.resources = \"*\"\n\
                schedules.s.timezone = \"UTC\"\nschedules.s.periods = [{}]\n";
    let without = parse(rest, "x.toml").expect("in order").configuration;
    for (table, path) in tables(&schema) {
        for (key, property) in table["properties"].as_object().expect("properties") {
            let Some(default) = property.get("default") else {
                continue;
            };
            let text = format!("{path}{key} = {default}\n{rest}");
            let with = parse(&text, "x.toml").expect(&text).configuration;
            assert!(with.eq_ignoring_generation(&without), "{text}");
        }
    }
}

#[test]
fn what_is_in_order_fits() {
    check_accepted("");
    check_accepted(include_str!("../../../../examples/offhours.toml"));
    // Every form that is read but never written.
    check_accepted(
        r#"
timezone = "America/Argentina/Buenos_Aires"
heartbeat = "env:HEARTBEAT"
holidays = ["01-01", 2026-12-24]
protect = "name:*"
accounts.a = { provider = "hetzner", token = "env:T", datacenters = "sin", accept_new_prices = true }
accounts.b = { provider = "digitalocean", token = "ssm:/x", read_token = "env:R", ssh_key = "team", url = "http://[::1]:8080/v2" }
[schedules.s]
periods = [
  { weekdays = "mon-wed, friL", monthdays = 15, months = [1, "feb / 2", "11-2"], begin = 08:00 },
  { weekdays = ["sat#1"], monthdays = [" 1/10 ", "28 - L", "15 w"], end = 19:00:00 },
]
holidays = 2026-12-24
resources = ["a/server/42", "ci-*"]
methods = { droplet = "resize", server = "power-off", database = "standbys" }
resize_to = "s-1vcpu-1gb"
start_small = true
rescaled_runs = false
[schedules.t]
periods = []
start = "@daily"
stop = " 0 19  * * * "
holidays = [2026-12-24, "12-24 .. 01-02, 05-01"]
retain_running = false
enforce = true
methods.server = "rescale"
rescale_to = "cpx12"
rescaled_runs = true
stop_nodes = 1
start_small = false
[schedules.u]
periods = [{ begin = "08:00" }]
methods = { droplet = "hibernate" }
accept = ["new-ip", "custom-image"]
needs_private_ip = true
otherwise = "power-off"
[schedules.v]
stop = "0 20 * * 5-1"
[schedules.w]
start = "0 8 * * *"
[schedules.x]
state = "stopped"
methods.server = "hibernate"
accept = []
[notify.ops]
kind = "webhook"
url = "env:URL"
secret = "credential:secret"
events = "transition-stuck"
schedules = ["s", "t"]
[notify.mail]
kind = "mail"
url = "file:/run/secrets/smtp"
from = "offhours@example.com"
to = "ops@example.com"
[groups.data]
resources = "tag:data"
check = "tcp://db.example.net:5432"
[groups.shop]
resources = ["name:shop-*", "do/droplet/7"]
after = ["data", "do/droplet/8"]
wait = "15m"
[schedules.y]
periods = [{ end = "24:00" }, { from = 2026-12-01, until = "2027-02-28" }]
holidays = []
"#,
    );
}

/// An account over SSH, to which a key or a machine may be added.
const SSH: &str = "[accounts.a]\nprovider = \"ssh\"\nhost = \"jump.example.net\"\nuser = \"u\"\n\
    key = \"env:K\"\nhost_keys = [\"ssh-ed25519 \
    AAAAC3NzaC1lZDI1NTE5AAAAID2MFepRAu6qdgmRqxbuktBQOdN2QdL0zSZ1xcsO/yTw\"]\n";

const COMMANDS: &str = "start = \"x\", stop = \"y\", status = \"z\"";

/// Rules between keys stand in Rust alone: the schema describes keys and their values.
#[test]
fn what_is_out_of_order_is_refused_by_both() {
    let account = "[accounts.a]\nprovider = \"hetzner\"\ntoken = \"env:T\"\n";
    let schedule = "[schedules.s]\ntimezone = \"UTC\"\n";
    let period = "periods = [{ begin = \"08:00\" }]\n";
    check_accepted(&format!("{account}{schedule}{period}"));
    check_accepted(&format!("{SSH}machines.b = {{ {COMMANDS} }}"));
    for text in [
        "timezoen = \"UTC\"".to_owned(),
        "timezone = 1".to_owned(),
        "timezone = \"Mid Earth\"".to_owned(),
        "mode = \"watch\"".to_owned(),
        "max_stops = 0".to_owned(),
        "max_new = -1".to_owned(),
        "max_new = 4294967296".to_owned(),
        "max_new = 1.5".to_owned(),
        "protect = [\"prod\"]".to_owned(),
        "protect = \"tag: \"".to_owned(),
        "groups.g = { resources = \"*\", check = \"db:5432\" }".to_owned(),
        "groups.g = { resources = \"*\", check = \"tcp://db/\" }".to_owned(),
        "groups.g = { resources = \"*\", check = \"https://a:b@c\" }".to_owned(),
        "groups.g = { resources = \"*\", check = \"http://a/{id}\" }".to_owned(),
        "accounts = 1".to_owned(),
        "accounts.a = 1".to_owned(),
        "schedules = []".to_owned(),
        "[accounts.Main]\nprovider = \"hetzner\"\ntoken = \"env:T\"".to_owned(),
        "[accounts.all]\nprovider = \"hetzner\"\ntoken = \"env:T\"".to_owned(),
        "[accounts.a]\nprovider = \"hetzner\"".to_owned(),
        "[accounts.a]\ntoken = \"env:T\"".to_owned(),
        "[accounts.a]\nprovider = \"hetzner\"\ntoken = \"dop_v1_x\"".to_owned(),
        "[accounts.a]\nprovider = \"aws\"\ntoken = \"env:T\"".to_owned(),
        format!("{account}host = \"jump.example.net\""),
        format!("{SSH}token = \"env:T\""),
        format!("{SSH}port = 0"),
        format!("{SSH}port = 65536"),
        format!("{SSH}connect_timeout = 10"),
        format!("{SSH}command_timeout = \"a while\""),
        format!("{SSH}output_limit = \"4MB\""),
        format!("{SSH}machines = []"),
        format!("{SSH}machines.B.start = \"x\""),
        format!("{SSH}machines.b = {{ stop = \"y\", status = \"z\" }}"),
        format!("{SSH}machines.b = {{ start = \"x\", stop = \"\", status = \"z\" }}"),
        format!("{SSH}machines.b = {{ {COMMANDS}, restart = \"x\" }}"),
        format!("{SSH}machines.b = {{ {COMMANDS}, probe = \"10.0.0.9\" }}"),
        format!("{SSH}machines.b = {{ {COMMANDS}, unreachable_means = \"off\" }}"),
        format!("{SSH}machines.b = {{ {COMMANDS}, start_deadline = \"soon\" }}"),
        SSH.replace("host_keys = [", "host_keys = []\nunused = ["),
        SSH.replace("ssh-ed25519 AAAA", "ssh-rsa AAAA"),
        SSH.replace("env:K", "-----BEGIN OPENSSH PRIVATE KEY-----"),
        SSH.replace("jump.example.net", "root@jump.example.net"),
        format!("{account}accept_new_prices = \"yes\""),
        format!("{account}datacenters = []"),
        format!("{account}datacenters = [\"fsn1-dc15\"]"),
        format!("{account}url = \"http://api.example.com\""),
        format!("{account}tokens = \"env:T\""),
        format!("{account}read_token = \"dop_v1_x\""),
        format!("{account}read_token = [\"env:T\"]"),
        format!("[schedules.-s]\ntimezone = \"UTC\"\n{period}"),
        format!("{schedule}state = \"off\""),
        format!("{schedule}start = \"0 8 * *\"\nstop = \"0 9 * * *\""),
        format!("{schedule}{period}weekdays = \"mon\""),
        format!("{schedule}{period}graceful = \"yes\""),
        format!("{schedule}{period}adopt = \"now\""),
        format!("{schedule}{period}stop_size = \"Big One\""),
        format!("{schedule}{period}stop_nodes = 4"),
        format!("{schedule}{period}holidays = \"christmas\""),
        format!("{schedule}{period}holidays = [[\"01-01\"]]"),
        format!("{schedule}{period}resources = [42]"),
        format!("{schedule}{period}resources = [\"a/volume/1\"]"),
        format!("{schedule}{period}resources = [\"name:ci-*\"]"),
        format!("{schedule}{period}resources = [\"a/server/one\"]"),
        format!("{schedule}periods = {{ begin = \"08:00\" }}"),
        format!("{schedule}periods = [5]"),
        format!("{schedule}periods = [{{ start = \"08:00\" }}]"),
        format!("{schedule}periods = [{{ begin = 8 }}]"),
        format!("{schedule}periods = [{{ begin = \"8:00\" }}]"),
        format!("{schedule}periods = [{{ begin = \"24:00\" }}]"),
        format!("{schedule}periods = [{{ begin = 08:00:30 }}]"),
        format!("{schedule}periods = [{{ begin = 08:00:00.5 }}]"),
        format!("{schedule}periods = [{{ begin = \"08:00\", end = \"24:01\" }}]"),
        format!("{schedule}periods = [{{ weekdays = 1 }}]"),
        format!("{schedule}periods = [{{ from = \"12-24\" }}]"),
        "holidays = \"christmas\"".to_owned(),
        format!("{schedule}periods = [{{ weekdays = \"1-5\" }}]"),
        format!("{schedule}periods = [{{ weekdays = [] }}]"),
        format!("{schedule}periods = [{{ weekdays = \"mon,\" }}]"),
        format!("{schedule}periods = [{{ weekdays = \"mon#6\" }}]"),
        format!("{schedule}periods = [{{ monthdays = 32 }}]"),
        format!("{schedule}periods = [{{ monthdays = \"0-5\" }}]"),
        format!("{schedule}periods = [{{ months = 13 }}]"),
        format!("{schedule}periods = [{{ months = \"1/0\" }}]"),
    ] {
        check_refused(&text);
    }
}

#[test]
fn methods_that_do_not_exist_are_refused_by_both() {
    for keys in [
        "methods = \"resize\"",
        "methods.droplet = \"rescale\"",
        "methods.server = \"resize\"",
        "methods.database = \"power-off\"",
        "methods.node-pool = \"zero-nodes\"",
        "methods.machine = \"graceful\"",
        "methods.volume = \"resize\"",
        "methods.droplet = \"resize\"\nresize_to = \"Large\"",
        "methods.server = \"rescale\"\nrescale_to = \"\"",
        "methods.droplet = \"hibernate\"\naccept = \"risk\"",
    ] {
        let schedule = "[schedules.s]\ntimezone = \"UTC\"\nperiods = [{ begin = \"08:00\" }]\n";
        check_refused(&format!("{schedule}{keys}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_fits(configuration in random::configuration()) {
        thread_local! {
            static VALIDATOR: Validator = validator();
        }
        VALIDATOR.with(|validator| {
            let text = write(&configuration);
            let fits = validator.validate(&document(&text)).map_err(|error| error.to_string());
            prop_assert_eq!(fits, Ok(()), "{}", text);
            // The document that `export -o json` prints is the same.
            let printed = serde_json::to_value(File::of(&configuration)).unwrap();
            prop_assert_eq!(printed, document(&text));
            Ok(())
        })?;
    }
}
