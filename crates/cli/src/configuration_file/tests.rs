//! Tests of reading valid files, and of the problems reported for invalid ones.

use domain::{
    configuration::{Mode, Policy, Provider},
    prices::Price,
};

use super::*;

/// Accounts of both kinds, so that a test only states what it is about.
const ACCOUNTS: &str = r#"
[accounts.do-main]
provider = "digitalocean"
token = "env:DO"
[accounts.hz-eu]
provider = "hetzner"
token = "env:HZ"
"#;

/// The problems of a file, as printed.
#[track_caller]
fn problems(text: &str) -> String {
    let problems = parse(text, "x.toml").expect_err("the file is wrong");
    lines(&problems)
}

/// The warnings of a file, as printed.
#[track_caller]
fn warnings(text: &str) -> String {
    lines(&parse(text, "x.toml").expect("the file is in order").warnings)
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// The problems of one schedule's body, which begins on line 2.
#[track_caller]
fn schedule_problems(body: &str) -> String {
    problems(&format!("[schedules.s]\n{body}\n{ACCOUNTS}"))
}

#[track_caller]
fn parsed(text: &str) -> Configuration {
    match parse(text, "x.toml") {
        Ok(parsed) => parsed.configuration,
        Err(problems) => panic!("{}", lines(&problems)),
    }
}

#[test]
fn what_is_not_said_has_its_default() {
    let configuration =
        parsed(&format!("timezone = \"UTC\"\n{ACCOUNTS}\n[schedules.s]\nperiods = [{{}}]"));
    assert_eq!(configuration.settings, Settings::default());
    let rule = &configuration.schedules[&"s".parse().unwrap()];
    assert_eq!(rule.policy, Policy::default());
    let account = configuration.accounts[&"hz-eu".parse().unwrap()].cloud();
    let account = account.unwrap();
    assert_eq!((account.mode, account.url.as_ref()), (Mode::Act, None));
    assert!(account.datacenters.is_empty());
}

#[test]
fn the_examples_are_in_order() {
    for text in [
        include_str!("../../../../examples/offhours.toml"),
        include_str!("../../../../examples/ssh/lab.toml"),
        // The example from the design.
        r#"
timezone = "Europe/Berlin"            # default for schedules

[accounts.do-main]
provider = "digitalocean"
token = "ssm:/offhours/do-main"       # ssm:NAME (SecureString) or, for local use, env:NAME

[accounts.hz-eu]
provider = "hetzner"
token = "ssm:/offhours/hz-eu"
datacenters = ["fsn1-dc14", "nbg1-dc3"]

[schedules.office-hours]
periods = [
  { weekdays = "mon-fri", begin = "08:00", end = "19:00" },
  { weekdays = "sat#1", begin = "10:00", end = "14:00" },
]
holidays = ["2026-12-24..2026-12-26", "01-01"]
resources = ["do-main/database/9cc10173-e9ea-4176-9dbc-a4cee4c4ff30"]   # besides tagged ones
"#,
    ] {
        assert_eq!(warnings(text), "");
    }
}

#[test]
fn unknown_keys_are_sent_to_where_they_belong() {
    insta::assert_snapshot!(problems(r#"
timezoen = "Europe/Berlin"
graceful = true
colour = "red"
[accounts.a]
provider = "hetzner"
token = "env:A"
tokens = "env:A"
protect = ["name:*"]
[schedules.s]
timezone = "Europe/Berlin"
perods = []
weekdays = "mon"
[schedules.t]
timezone = "Europe/Berlin"
periods = [{ week-days = "mon", enforce = true, "od\nd" = 1 }]
droplet = "resize"
rescale_to = "cpx12"
methods = { resize_to = "s-1vcpu-1gb", droplets = "resize", volume = "resize" }
"#), @r#"
    x.toml:2: timezoen: unknown key; did you mean `timezone`?
    x.toml:3: graceful: unknown key; it belongs in a schedule, [schedules.NAME]
    x.toml:4: colour: unknown key; the keys here are accounts, groups, heartbeat, holidays, max_new, max_stops, mode, notify, owner_tag, prices, protect, schedules, timezone
    x.toml:8: accounts.a.tokens: unknown key; did you mean `token`?
    x.toml:9: accounts.a.protect: unknown key; it belongs at the top of the file, before the first [table]
    x.toml:12: schedules.s.perods: unknown key; did you mean `periods`?
    x.toml:13: schedules.s.weekdays: unknown key; it belongs in one of a schedule's periods
    x.toml:16: schedules.t.periods[0].week-days: unknown key; did you mean `weekdays`?
    x.toml:16: schedules.t.periods[0].enforce: unknown key; it belongs in a schedule, [schedules.NAME]
    x.toml:16: schedules.t.periods[0]."od\nd": unknown key; the keys here are begin, end, from, monthdays, months, timezone, until, weekdays
    x.toml:17: schedules.t.droplet: unknown key; it belongs in a schedule's methods, methods = { droplet = "resize" }
    x.toml:19: schedules.t.methods.resize_to: unknown key; it belongs in a schedule, [schedules.NAME]
    x.toml:19: schedules.t.methods.droplets: unknown key; did you mean `droplet`?
    x.toml:19: schedules.t.methods.volume: unknown key; the keys here are database, droplet, server
    "#);
}

#[test]
fn values_of_another_type_are_refused() {
    insta::assert_snapshot!(problems(r#"
timezone = 1
mode = "watch"
max_stops = 0
max_new = -1
protect = ["prod", 5]
[accounts.a]
provider = "hetzer"
token = true
datacenters = ["fsn1-dc15", 3]
mode = "obsrve"
accept_new_prices = "yes"
url = ["https://api.example.com"]
[schedules.s]
timezone = "Europe/Berlin"
holidays = [1, 2026-12-24T08:00:00, ["01-01"]]
start = 8
resources = [42, { id = 1 }]
graceful = "yes"
force = 0
enforce = 1.5
retain_running = []
adopt = "now"
stop_size = "Big One"
stop_nodes = 4
start_small = "yes"
rescaled_runs = 1
[schedules.t]
timezone = "Europe/Berlin"
methods = { droplet = "rescale", server = "shrink", database = 1 }
resize_to = "Large"
rescale_to = ""
[schedules.u]
methods = "resize"
resize_to = 1
rescale_to = []
"#), @r#"
    x.toml:2: timezone: is a number; write a string, such as "Europe/Berlin"
    x.toml:3: mode: `watch` is not known; the choices are act, observe
    x.toml:4: max_stops: 0 is out of bounds; write a whole number, 1 or more
    x.toml:5: max_new: -1 is out of bounds; write a whole number, 0 or more
    x.toml:6: protect[0]: invalid pattern `prod`: write a reference such as do-main/droplet/*, name:*prod* or tag:production
    x.toml:6: protect[1]: is a number; write a string, such as "name:*prod*"
    x.toml:8: accounts.a.provider: `hetzer` is not known; did you mean `hetzner`?
    x.toml:9: accounts.a.token: is true or false; write a string, such as "ssm:/offhours/acting/NAME"
    x.toml:10: accounts.a.datacenters[0]: unknown location `fsn1-dc15`: expected one such as fsn1, nbg1, hel1, ash, hil, sin
    x.toml:10: accounts.a.datacenters[1]: is a number; write a string, such as "fsn1"
    x.toml:11: accounts.a.mode: `obsrve` is not known; did you mean `observe`?
    x.toml:12: accounts.a.accept_new_prices: is a string; write true or false, without quotes
    x.toml:13: accounts.a.url: is a list; write a string, such as "https://api.example.com"
    x.toml:16: schedules.s.holidays[0]: is a number; write a day or days, such as "2026-12-24..2026-12-26", or "01-01" for every year
    x.toml:16: schedules.s.holidays[1]: has a time; write a day or days, such as "2026-12-24..2026-12-26", or "01-01" for every year
    x.toml:16: schedules.s.holidays[2]: is a list; write a day or days, such as "2026-12-24..2026-12-26", or "01-01" for every year
    x.toml:17: schedules.s.start: is a number; write a string, such as "0 8 * * mon-fri"
    x.toml:18: schedules.s.resources[0]: is a number; write a string, such as "do-main/droplet/3164444"
    x.toml:18: schedules.s.resources[1]: is a table; write a string, such as "do-main/droplet/3164444"
    x.toml:19: schedules.s.graceful: is a string; write true or false, without quotes
    x.toml:20: schedules.s.force: is a number; write true or false, without quotes
    x.toml:21: schedules.s.enforce: is a number; write true or false, without quotes
    x.toml:22: schedules.s.retain_running: is a list; write true or false, without quotes
    x.toml:23: schedules.s.adopt: `now` is not known; the choices are at-once, next-edge
    x.toml:24: schedules.s.stop_size: invalid plan `Big One`; write a database plan's slug, such as "db-s-1vcpu-1gb"
    x.toml:25: schedules.s.stop_nodes: 4 is out of bounds; write a whole number from 1 to 3
    x.toml:26: schedules.s.start_small: is a string; write true or false, without quotes
    x.toml:27: schedules.s.rescaled_runs: is a number; write true or false, without quotes
    x.toml:28: schedules.t: the schedule has no times; give it periods, or start and stop, or a state for all times
    x.toml:30: schedules.t.methods.droplet: `rescale` is not known; the choices are power-off, resize, hibernate
    x.toml:30: schedules.t.methods.server: `shrink` is not known; the choices are power-off, rescale, hibernate
    x.toml:30: schedules.t.methods.database: is a number; write a string, such as "smallest-plan"
    x.toml:31: schedules.t.resize_to: invalid size `Large`; write a Droplet size's slug, such as "s-1vcpu-1gb"
    x.toml:32: schedules.t.rescale_to: invalid type ``; write the name of a server type, such as "cpx12"
    x.toml:33: schedules.u: the schedule has no times; give it periods, or start and stop, or a state for all times
    x.toml:34: schedules.u.methods: is a string; write the methods as a table, methods = { droplet = "resize", server = "rescale", database = "standbys" }
    x.toml:35: schedules.u.resize_to: is a number; write a string, such as "s-1vcpu-1gb"
    x.toml:36: schedules.u.rescale_to: is a list; write a string, such as "cpx12"
    "#);
    insta::assert_snapshot!(problems("accounts = 1\nschedules = []"), @"
    x.toml:1: accounts: is a number; write accounts as tables, [accounts.NAME]
    x.toml:2: schedules: is a list; write schedules as tables, [schedules.NAME]
    ");
    insta::assert_snapshot!(problems("accounts.a = 1\nschedules.s = 2"), @"
    x.toml:1: accounts.a: is a number; write an account as a table, [accounts.NAME]
    x.toml:2: schedules.s: is a number; write a schedule as a table, [schedules.NAME]
    ");
}

#[test]
fn periods_are_judged_field_by_field_with_their_own_lines() {
    insta::assert_snapshot!(schedule_problems(r#"timezone = "Europe/Berlin"
periods = [
  { weekdays = "mon-fry", begin = 8, end = "24:00" },
  { weekdays = 1, begin = 08:00:30, end = 2026-01-01T08:00:00Z },
  { monthdays = [31, "40", 0x10], months = [], begin = "25:00" },
  { begin = "08:00", end = "08:00" },
  5,
]
holidays = [2026-12-24, "2026-02-30"]"#), @r#"
    x.toml:4: schedules.s.periods[0].weekdays: `mon-fry`: unknown weekday `fry`: expected mon, tue, wed, thu, fri, sat or sun, a range such as mon-fri, sat#1 for the first of the month or friL for the last
    x.toml:4: schedules.s.periods[0].begin: is a number; write a time of day, such as "08:00"
    x.toml:5: schedules.s.periods[1].weekdays: `1`: weekdays are written as names (mon, tue, …), because tools disagree on which day the number 0 or 1 is; days of the month go in monthdays
    x.toml:5: schedules.s.periods[1].begin: has seconds; write a time of day, such as "08:00"
    x.toml:5: schedules.s.periods[1].end: has a date or an offset; write a time of day, such as "19:00"
    x.toml:6: schedules.s.periods[2].monthdays: `40`: invalid day of the month `40`: expected 1 to 31, a range such as 25-31 or 28-L, steps such as 1/10, L for the last day or 15W for the weekday nearest to the 15th
    x.toml:6: schedules.s.periods[2].monthdays[2]: is a number; write a string, such as "1-7"
    x.toml:6: schedules.s.periods[2].months: is empty; write "nov-feb"
    x.toml:6: schedules.s.periods[2].begin: invalid time `25:00`: expected HH:MM, from 00:00 to 24:00
    x.toml:7: schedules.s.periods[3].end: the period ends when it begins; write another end, or 00:00 and 24:00 for the whole day
    x.toml:8: schedules.s.periods[4]: is a number; write a period as a table, { weekdays = "mon-fri", begin = "08:00" }
    x.toml:10: schedules.s.holidays[1]: `2026-02-30`: no such day: 2026-02-30; check month and day
    "#);
    insta::assert_snapshot!(schedule_problems(r#"timezone = "UTC"
[[schedules.s.periods]]
begin = "08:00"

[[schedules.s.periods]]
monthdays = 30
months = "feb"

[schedules.t.periods]
begin = "08:00""#), @r#"
    x.toml:6: schedules.s.periods[1]: no day matches all of weekdays, monthdays, months, from and until; widen one of them, or write two periods
    x.toml:10: schedules.t.periods: is a table; write a list of tables, periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }]
    x.toml:10: schedules.t: has no time zone; write timezone = "Europe/Berlin" here or at the top of the file
    "#);
}

#[test]
fn a_list_in_a_list_is_refused_at_its_place() {
    insta::assert_snapshot!(schedule_problems(r#"timezone = "UTC"
periods = [{ weekdays = [["mon"], "fry"], months = true }]
accept = [["new-ip"]]"#), @r#"
    x.toml:3: schedules.s.periods[0].weekdays: `fry`: unknown weekday `fry`: expected mon, tue, wed, thu, fri, sat or sun, a range such as mon-fri, sat#1 for the first of the month or friL for the last
    x.toml:3: schedules.s.periods[0].weekdays[0]: is a list; write a string, such as "mon-fri"
    x.toml:3: schedules.s.periods[0].months: is true or false; write a string, such as "nov-feb"
    x.toml:4: schedules.s.accept: has no effect, because no machine is hibernated; write methods = { droplet = "hibernate" } or { server = "hibernate" }, or remove the key
    x.toml:4: schedules.s.accept[0]: is a list; write a string, such as "lost-backups"
    "#);
}

#[test]
fn a_schedule_needs_a_zone_that_exists() {
    insta::assert_snapshot!(problems(r#"
[schedules.none]
periods = [{}]
[schedules.wrong]
timezone = "Europe/Brelin"
periods = [{ begin = "x" }]
"#), @r#"
    x.toml:2: schedules.none: `none` is reserved and cannot be a name
    x.toml:2: schedules.none: has no time zone; write timezone = "Europe/Berlin" here or at the top of the file
    x.toml:5: schedules.wrong.timezone: unknown time zone `Europe/Brelin`; did you mean Europe/Berlin?
    x.toml:6: schedules.wrong.periods[0].begin: invalid time `x`: expected HH:MM, from 00:00 to 24:00
    "#);
    // A wrong default is reported once, along with the other problems of its schedules.
    insta::assert_snapshot!(problems(r#"
timezone = "CEST"
[schedules.a]
periods = [{}]
[schedules.b]
periods = [{ begin = "x" }]
"#), @"
    x.toml:2: timezone: unknown time zone `CEST`; did you mean Europe/Berlin, Europe/Paris, Europe/Rome?
    x.toml:6: schedules.b.periods[0].begin: invalid time `x`: expected HH:MM, from 00:00 to 24:00
    ");
}

#[test]
fn a_schedule_says_when_in_one_way() {
    insta::assert_snapshot!(problems(r#"
timezone = "UTC"
[schedules.empty]
[schedules.no-periods]
periods = []
[schedules.both]
periods = [{}]
start = "0 8 * * *"
[schedules.bad-cron]
start = "8 o'clock"
stop = "30 2 30 2 *"
"#), @"
    x.toml:3: schedules.empty: the schedule has no times; give it periods, or start and stop, or a state for all times
    x.toml:4: schedules.no-periods: the schedule has no times; give it periods, or start and stop, or a state for all times
    x.toml:6: schedules.both: a schedule has either periods, or start and stop, or a state; keep one of them
    x.toml:10: schedules.bad-cron.start: `8 o'clock` has 2 fields; a cron expression here has five: minute, hour, day of month, month and day of week, as in 0 8 * * mon-fri
    x.toml:11: schedules.bad-cron.stop: `30 2 30 2 *` never fires because no such day exists; check day of month and month
    ");
}

#[test]
fn what_is_wrong_with_one_key_is_not_reported_of_another() {
    // Without the misspelled keys there are no periods and no `end`.
    insta::assert_snapshot!(problems(r#"
timezone = "UTC"
[schedules.a]
period = [{}]
[schedules.b]
periods = [{ begn = "08:00", end = "24:00" }]
[schedules.c]
periods = { begin = "08:00" }
"#), @r#"
    x.toml:4: schedules.a.period: unknown key; did you mean `periods`?
    x.toml:6: schedules.b.periods[0].begn: unknown key; did you mean `begin`?
    x.toml:8: schedules.c.periods: is a table; write a list of tables, periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }]
    "#);
}

#[test]
fn enforcing_and_retaining_exclude_each_other() {
    insta::assert_snapshot!(schedule_problems(r#"timezone = "UTC"
periods = [{}]
enforce = true
retain_running = true"#), @"x.toml:5: schedules.s.retain_running: cannot be combined with enforce, which stops what a person left running; remove one of them");
}

#[test]
fn a_key_that_a_method_leaves_without_effect_is_refused() {
    insta::assert_snapshot!(schedule_problems(r#"timezone = "UTC"
periods = [{}]
resize_to = "s-1vcpu-1gb"
rescale_to = "cpx12"
start_small = true
rescaled_runs = true
[schedules.t]
timezone = "UTC"
periods = [{}]
methods = { server = "rescale", database = "standbys" }
resize_to = "s-1vcpu-1gb"
start_small = true
stop_nodes = 1
[schedules.u]
timezone = "UTC"
periods = [{}]
start_small = false
rescaled_runs = false"#), @r#"
    x.toml:4: schedules.s.resize_to: has no effect, because Droplets are not resized; write methods = { droplet = "resize" }, or remove the key
    x.toml:5: schedules.s.rescale_to: has no effect, because servers are not rescaled; write methods = { server = "rescale" }, or remove the key
    x.toml:6: schedules.s.start_small: has no effect, because no machine's plan is changed; write methods = { droplet = "resize" } or { server = "rescale" }, or remove the key
    x.toml:7: schedules.s.rescaled_runs: has no effect, because servers are not rescaled; write methods = { server = "rescale" }, or remove the key
    x.toml:12: schedules.t.resize_to: has no effect, because Droplets are not resized; write methods = { droplet = "resize" }, or remove the key
    x.toml:14: schedules.t.stop_nodes: cannot be combined with methods.database = "standbys", which leaves the fewest nodes that the engine runs with; remove one of them
    "#);
    // It is unknown which method was meant, so nothing more is reported.
    insta::assert_snapshot!(schedule_problems(r#"timezone = "UTC"
periods = [{}]
resize_to = "s-1vcpu-1gb"
rescale_to = "cpx12"
start_small = true
rescaled_runs = true
stop_nodes = 1
methods = { droplet = "resise", server = "resize", database = "standby" }"#), @"
    x.toml:9: schedules.s.methods.droplet: `resise` is not known; did you mean `resize`?
    x.toml:9: schedules.s.methods.server: `resize` is not known; the choices are power-off, rescale, hibernate
    x.toml:9: schedules.s.methods.database: `standby` is not known; did you mean `standbys`?
    ");
}

#[test]
fn a_key_of_hibernation_needs_a_kind_that_is_hibernated() {
    insta::assert_snapshot!(schedule_problems(r#"timezone = "UTC"
periods = [{}]
accept = "new-ip"
needs_private_ip = true
otherwise = "power-off"
[schedules.t]
timezone = "UTC"
periods = [{}]
methods.server = "hibernate"
accept = ["lost-backups", "everything"]
needs_private_ip = true
[schedules.u]
timezone = "UTC"
periods = [{}]
methods = { droplet = "hibernate" }
accept = ["new-ip", "custom-image"]
needs_private_ip = true
otherwise = "power-off"
resize_to = "s-1vcpu-1gb""#), @r#"
    x.toml:4: schedules.s.accept: has no effect, because no machine is hibernated; write methods = { droplet = "hibernate" } or { server = "hibernate" }, or remove the key
    x.toml:5: schedules.s.needs_private_ip: has no effect, because Droplets are not hibernated; write methods = { droplet = "hibernate" }, or remove the key
    x.toml:6: schedules.s.otherwise: has no effect, because no machine is hibernated; write methods = { droplet = "hibernate" } or { server = "hibernate" }, or remove the key
    x.toml:11: schedules.t.accept[1]: `everything` is not known; the choices are new-ip, lost-backups, custom-image
    x.toml:12: schedules.t.needs_private_ip: has no effect, because Droplets are not hibernated; write methods = { droplet = "hibernate" }, or remove the key
    x.toml:20: schedules.u.resize_to: has no effect, because Droplets are not resized; write methods = { droplet = "resize" }, or remove the key
    "#);
}

#[test]
fn a_kind_without_a_choice_has_no_method() {
    insta::assert_snapshot!(schedule_problems(r#"timezone = "UTC"
periods = [{}]
methods.node-pool = "zero-nodes"
methods.machine = "graceful"
methods.droplet = "graceful""#), @"
    x.toml:4: schedules.s.methods.node-pool: there is no choice: a node pool is always scaled to zero nodes; remove the key
    x.toml:5: schedules.s.methods.machine: there is no choice: a machine over SSH is always stopped by its own commands; remove the key
    x.toml:6: schedules.s.methods.droplet: `graceful` is not known; the choices are power-off, resize, hibernate
    ");
}

#[test]
fn a_resource_follows_one_schedule() {
    let file = format!(
        r#"timezone = "UTC"
{ACCOUNTS}
[schedules.later]
periods = [{{}}]
resources = ["do-main/droplet/1", "do-main/droplet/2"]
[schedules.earlier]
periods = [{{}}]
resources = [
  "do-main/droplet/3",
  "do-main/droplet/1",
]"#
    );
    insta::assert_snapshot!(problems(&file), @"x.toml:17: schedules.earlier.resources[1]: `do-main/droplet/1` is listed under schedule `later` too (line 12); a resource follows one schedule, so remove it from one of them");
}

#[test]
fn a_name_of_resources_is_listed_under_one_schedule() {
    let file = format!(
        r#"timezone = "UTC"
{ACCOUNTS}
[schedules.later]
periods = [{{}}]
resources = ["ci-*", "web"]
[schedules.earlier]
periods = [{{}}]
resources = "ci-*"
"#
    );
    insta::assert_snapshot!(problems(&file), @"x.toml:15: schedules.earlier.resources: `ci-*` is listed under schedule `later` too (line 12); a resource follows one schedule, so remove it from one of them");
    let file = file.replace("= \"ci-*\"", "= \"ci-?\"");
    let schedules = parse(&file, "x.toml").unwrap().configuration.schedules;
    let later = schedules[&"later".parse().unwrap()].resources.iter();
    assert_eq!(later.map(ToString::to_string).collect::<Vec<_>>(), ["ci-*", "web"]);
}

#[test]
fn a_listed_resource_fits_an_account_of_the_file() {
    insta::assert_snapshot!(schedule_problems(r#"timezone = "UTC"
periods = [{}]
resources = [
  "do-mian/droplet/1",
  "aws/droplet/1",
  "do-main/server/1",
  "hz-eu/node-pool/a/b",
  "do-main/droplet/web-1",
  "do-main/volume/1",
  "name:ci-*",
]"#), @"
    x.toml:5: schedules.s.resources[0]: `do-mian/droplet/1`: there is no account `do-mian`; did you mean `do-main`?
    x.toml:6: schedules.s.resources[1]: `aws/droplet/1`: there is no account `aws`; the accounts are do-main, hz-eu
    x.toml:7: schedules.s.resources[2]: `do-main/server/1`: `do-main` is an account at digitalocean, where there is no server; write droplet, database, node-pool
    x.toml:8: schedules.s.resources[3]: `hz-eu/node-pool/a/b`: `hz-eu` is an account at hetzner, where there is no node-pool; write server
    x.toml:9: schedules.s.resources[4]: invalid reference `do-main/droplet/web-1`: expected ACCOUNT/droplet/NUMBER, ACCOUNT/database/UUID, ACCOUNT/node-pool/CLUSTER/POOL, ACCOUNT/server/NUMBER or ACCOUNT/machine/NAME
    x.toml:10: schedules.s.resources[5]: invalid reference `do-main/volume/1`: unknown kind `volume`: expected droplet, database, node-pool, server or machine
    x.toml:11: schedules.s.resources[6]: invalid name `name:ci-*`: expected a resource's name, such as ci-7, a pattern of names, such as ci-*, or a reference, such as do-main/droplet/3164444
    ");
    insta::assert_snapshot!(problems(r#"timezone = "UTC"
[schedules.s]
periods = [{}]
resources = "do-main/droplet/1"
"#), @"x.toml:4: schedules.s.resources: `do-main/droplet/1`: there is no account `do-main`; there are no accounts");
}

#[test]
fn services_that_cannot_be_stopped_are_refused_with_the_reason() {
    insta::assert_snapshot!(schedule_problems(r#"timezone = "UTC"
periods = [{}]
resources = [
  "do-main/app/4f6c71e2-1e90-4762-9fee-6cc4a0a9f2cf",
  "do-main/spaces",
  "do-main/functions/fn-1",
  "do-main/load-balancer/1",
  "hz-eu/load_balancer/1",
  "hz-eu/dedicated/1",
  "do-main/kubernetes/1",
]"#), @"
    x.toml:5: schedules.s.resources[0]: `do-main/app/4f6c71e2-1e90-4762-9fee-6cc4a0a9f2cf`: not supported: DigitalOcean App Platform (it has no pause: an app is billed until it is deleted)
    x.toml:6: schedules.s.resources[1]: `do-main/spaces`: not supported: DigitalOcean Spaces (billed for what they hold: there is nothing to stop)
    x.toml:7: schedules.s.resources[2]: `do-main/functions/fn-1`: not supported: DigitalOcean Functions (billed per use: an idle one costs nothing to begin with)
    x.toml:8: schedules.s.resources[3]: `do-main/load-balancer/1`: not supported: load balancers of both clouds (one can only be deleted, and a new one has another address)
    x.toml:9: schedules.s.resources[4]: `hz-eu/load_balancer/1`: not supported: load balancers of both clouds (one can only be deleted, and a new one has another address)
    x.toml:10: schedules.s.resources[5]: `hz-eu/dedicated/1`: not supported: Hetzner dedicated servers (not part of the Cloud API: an account over SSH stops and starts them, and the rent stays the same, see docs/ssh.md)
    x.toml:11: schedules.s.resources[6]: `do-main/kubernetes/1`: a cluster is scheduled by its node pools; write ACCOUNT/node-pool/CLUSTER/POOL, or tag the cluster with offhours:NAME for all of its pools (self-managed Kubernetes: a machine of an account over SSH, see docs/ssh.md)
    ");
}

#[test]
fn an_address_that_the_parser_reads_otherwise_is_refused() {
    for (url, read) in [
        ("https:///api.example.com", "https://api.example.com"),
        ("HTTPS:example.com", "https://example.com"),
        (r"http://localhost\\@example.com", "http://localhost/@example.com"),
        ("https://example.com:443/do/", "https://example.com/do"),
    ] {
        let account = "provider = \"hetzner\"\ntoken = \"env:T\"";
        let text = format!("[accounts.a]\n{account}\nurl = \"{url}\"\n");
        let message = format!("accounts.a.url: is read as {read}; write that");
        let problems = parse(&text, "x.toml").expect_err(url);
        assert_eq!(problems[0].message, message);
    }
}

#[test]
fn an_account_is_complete_and_of_one_kind() {
    insta::assert_snapshot!(problems(r#"
[accounts.empty]
[accounts.off]
provider = "digitalocean"
token = "env:A"
datacenters = ["fsn1-dc14"]
accept_new_prices = false
[accounts.Main]
provider = "hetzner"
token = "env:B"
datacenters = []
url = "http://api.example.com"
[schedules.all]
timezone = "UTC"
periods = [{}]
"#), @r#"
    x.toml:2: accounts.empty: has no provider; write provider = "digitalocean", "hetzner" or "ssh"
    x.toml:2: accounts.empty: has no token; write token = "ssm:/offhours/acting/NAME" or "env:VARIABLE"
    x.toml:3: accounts.off: `off` is reserved and cannot be a name
    x.toml:6: accounts.off.datacenters: only Hetzner accounts have locations; remove the key
    x.toml:7: accounts.off.accept_new_prices: only Hetzner bills old servers at old prices; remove the key
    x.toml:8: accounts.Main: invalid name `Main`: expected 1 to 63 of a-z, 0-9, `-` and `_`, with a letter or digit at both ends
    x.toml:11: accounts.Main.datacenters: is empty; write "fsn1"
    x.toml:12: accounts.Main.url: not a base address; write https://HOST, with :PORT and /PATH if need be, and no user, query or fragment (http is for loopback alone, such as http://127.0.0.1:8080)
    x.toml:13: schedules.all: `all` is reserved and cannot be a name
    "#);
}

#[test]
fn a_token_is_never_repeated_wherever_it_was_pasted() {
    let hetzner = "a1B2".repeat(16);
    for token in ["dop_v1_0123456789abcdef", &hetzner] {
        for text in [
            format!("[accounts.a]\nprovider = \"hetzner\"\ntoken = \"{token}\""),
            format!("[accounts.a]\nprovider = \"hetzner\"\ntoken = \"env:{token}:\""),
            format!("[accounts.a]\nprovider = \"{token}\"\ntoken = \"env:A\""),
            format!("[accounts.a]\nprovider = \"hetzner\"\ntoken = {token}"),
            format!("[accounts.a]\nprovider = \"hetzner\"\ntoken = \"{token}"),
            format!("[accounts.a]\nprovider = \"hetzner\"\ntoken = \"env:A\"\n{token} = 1"),
            format!("[accounts.a]\nurl = \"https://x:{token}@api.example.com\""),
            format!("[accounts.{token}]\n"),
            format!("[accounts.a]\ndatacenters = [\"{token}\"]"),
            format!("[schedules.s]\ntimezone = \"{token}\"\nperiods = [{{ begin = \"{token}\" }}]"),
            format!("[schedules.s]\nstart = \"{token}\"\nstop_size = \"{token}!\""),
            format!("[schedules.s]\nresources = [\"{token}\", \"{token}/droplet/1\"]"),
            format!("protect = [\"{token}\"]\n{token}"),
        ] {
            let problems = problems(&text);
            assert!(!problems.contains(token), "{problems}");
        }
    }
}

#[test]
fn what_is_not_toml_is_one_problem_with_its_line() {
    insta::assert_snapshot!(problems("mode = \"act\"\n[accounts.a\nx = 1"), @"x.toml:2: not TOML: unclosed table, expected `]`");
    insta::assert_snapshot!(problems("mode = \"act\"\r\nmode = \"act\"\r\n"), @"x.toml:2: not TOML: duplicate key `mode`");
    insta::assert_snapshot!(problems("\n\nprotect = [\n  \"name:*\",\n"), @"x.toml:4: not TOML: unclosed array, expected `]`");
}

#[test]
fn what_looks_like_a_mistake_is_a_warning() {
    let file = r#"protect = ["do-mian/droplet/*", "*/droplet/7"]
[accounts.a]
provider = "hetzner"
token = "env:TOKEN"
datacenters = ["fsn1-dc14", "fsn1", "fns1"]
[accounts.b]
provider = "hetzner"
token = "env:TOKEN"
[accounts.c]
provider = "hetzner"
token = "env:OWN"
read_token = "env:OWN"
[accounts.d]
provider = "hetzner"
token = "env:OTHER"
read_token = "env:OWN"
[schedules.s]
timezone = "UTC"
periods = [{}]
resources = ["a/server/1", "a/server/1"]
"#;
    insta::assert_snapshot!(warnings(file), @"
    x.toml:1: protect[0]: there is no account `do-mian`, so this protects nothing
    x.toml:5: accounts.a.datacenters[1]: is listed twice
    x.toml:5: accounts.a.datacenters[2]: `fns1` is not a known location of Hetzner's; did you mean `fsn1`?
    x.toml:8: accounts.b.token: is the token of account `a` too (line 4); a resource that is reached through two accounts is not touched
    x.toml:12: accounts.c.read_token: is the account's own token (line 11); leave this out, or name another
    x.toml:16: accounts.d.read_token: is the token of account `c` too (line 11); a resource that is reached through two accounts is not touched
    x.toml:20: schedules.s.resources[1]: `a/server/1` is already on line 20
    ");
    insta::assert_snapshot!(warnings("timezone = \"UTC\""), @"
    x.toml:1: there are no accounts ([accounts.NAME]), so nothing will be done
    x.toml:1: there are no schedules ([schedules.NAME]), so nothing will be done
    ");
}

#[test]
fn a_preview_needs_no_accounts_but_does_not_overlook_a_slip_in_one() {
    let alone = "[schedules.s]\ntimezone = \"UTC\"\nperiods = [{}]\nresources = \"x/droplet/1\"";
    assert!(read(alone, "x.toml", ListedResources::MayStandAlone).is_ok());
    assert!(read(alone, "x.toml", ListedResources::NeedAccounts).is_err());
    let beside = format!("{alone}\n{ACCOUNTS}");
    assert!(read(&beside, "x.toml", ListedResources::MayStandAlone).is_err());
}

#[test]
fn an_account_says_what_it_was_called_before() {
    let text = r#"
[accounts.hz-us]
provider = "hetzner"
was = "hz-eu"
token = "env:HZ"
"#;
    let configuration = parse(text, "x.toml").unwrap().configuration;
    let was = configuration.accounts[&"hz-us".parse().unwrap()].was().cloned();
    assert_eq!(was, Some("hz-eu".parse().unwrap()));
    assert!(write(&configuration).contains("was = \"hz-eu\""));
}

#[test]
fn former_names_that_make_the_owner_of_records_ambiguous_are_refused() {
    insta::assert_snapshot!(problems(r#"
protect = ["gone/droplet/*", "gone/droplet/7"]
[accounts.self]
provider = "hetzner"
token = "env:A"
was = "self"
[accounts.one]
provider = "hetzner"
token = "env:B"
was = "two"
[accounts.two]
provider = "hetzner"
token = "env:C"
was = "one"
[accounts.first]
provider = "digitalocean"
token = "env:D"
was = "gone"
[accounts.second]
provider = "digitalocean"
token = "env:E"
was = "gone"
[accounts.third]
provider = "digitalocean"
token = "env:F"
was = "Gone"
[schedules.s]
timezone = "UTC"
periods = [{}]
resources = ["gone/droplet/1"]
"#), @"
    x.toml:2: protect[0]: account `gone` is called `first` here, so this protects nothing; write first/droplet/*
    x.toml:2: protect[1]: account `gone` is called `first` here, so this protects nothing; write first/droplet/7
    x.toml:6: accounts.self.was: is the account's own name; leave the key out
    x.toml:10: accounts.one.was: `two` is an account of this file as well (line 11), whose records stay its own; remove [accounts.two], or this key
    x.toml:14: accounts.two.was: `one` is an account of this file as well (line 7), whose records stay its own; remove [accounts.one], or this key
    x.toml:22: accounts.second.was: `gone` is what account `first` was, too (line 18); its records go to one account alone, so remove one of the two keys
    x.toml:26: accounts.third.was: invalid name `Gone`: expected 1 to 63 of a-z, 0-9, `-` and `_`, with a letter or digit at both ends
    x.toml:30: schedules.s.resources[0]: `gone/droplet/1`: account `gone` is called `first` here; write first/droplet/1
    ");
}

const LAB: &str = r#"
[accounts.lab]
provider = "ssh"
host = "jump.example.net"
user = "offhours"
key = "ssm:/offhours/lab-key"
host_keys = [
  "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID2MFepRAu6qdgmRqxbuktBQOdN2QdL0zSZ1xcsO/yTw lab",
]

[accounts.lab.machines.build-01]
start = "start build-01"
stop = "stop build-01"
status = "status build-01"
tags = ["env:dev", "offhours:office"]

[accounts.lab.machines.build-02]
start = "start build-02"
stop = "stop build-02"
force = "force build-02"
probe = "10.0.0.9:22"
unreachable_means = "stopped"
start_deadline = "20m"
"#;

#[test]
fn an_account_over_ssh_is_read_and_written_as_its_author_writes_it() {
    let configuration = parse(LAB, "x.toml").unwrap().configuration;
    assert_eq!(write(&configuration), LAB.trim_start());
    let account = &configuration.accounts[&"lab".parse().unwrap()];
    assert_eq!(account.kind(), domain::configuration::AccountKind::Ssh);
    let machine = account.machine(&"build-02".parse().unwrap()).unwrap();
    assert_eq!(machine.start_deadline.get().as_secs(), 1200);
    assert_eq!(machine.stop_deadline.get().as_secs(), 600);
}

#[test]
fn everything_wrong_with_an_account_over_ssh_is_reported_at_once() {
    let text = r#"
[accounts.lab]
provider = "ssh"
host = "169.254.169.254"
port = 0
key = "-----BEGIN OPENSSH PRIVATE KEY-----"
token = "env:T"
host_keys = ["jump.example.net ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID2MFepRAu6qdgmRqxbuktBQOdN2QdL0zSZ1xcsO/yTw"]
command_timeout = "90s"
output_limit = "1MB"
[accounts.lab.machines.Build]
start = "start build-01\nreboot"
stop = ""
restart = "x"
[accounts.lab.machines.build-02]
stop = "stop build-02"
status = 3
probe = "localhost:22"
unreachable_means = "off"
stop_deadline = "1s"
tags = ["", 5, "a\u200B"]
"#;
    insta::assert_snapshot!(problems(text), @r#"
    x.toml:2: accounts.lab: has no user; write user = "offhours"
    x.toml:4: accounts.lab.host: `host` is a loopback, link-local or metadata address: name the host that runs the commands, or set allow_private_hosts = true
    x.toml:5: accounts.lab.port: 0 is out of bounds; write a whole number from 1 to 65535
    x.toml:6: accounts.lab.key: write where it is kept, ssm:/PATH/NAME, env:VARIABLE, file:/PATH or credential:NAME, never the secret itself
    x.toml:7: accounts.lab.token: unknown key; it belongs in an account at a cloud, [accounts.NAME]
    x.toml:8: accounts.lab.host_keys[0]: host key after another word: write the line without the host's name, from `ssh-ed25519` on
    x.toml:9: accounts.lab.command_timeout: `90s` is out of range: expected 100ms to 60s
    x.toml:10: accounts.lab.output_limit: invalid size `1MB`: write a whole number and B or KiB, such as 4KiB
    x.toml:11: accounts.lab.machines.Build: can never be seen stopped: add `status`, or a `probe` and unreachable_means = "stopped"
    x.toml:11: accounts.lab.machines.Build: invalid name `Build`: expected 1 to 63 of a-z, 0-9, `-` and `_`, with a letter or digit at both ends
    x.toml:12: accounts.lab.machines.Build.start: command with a newline or another control character: write one line of plain text
    x.toml:13: accounts.lab.machines.Build.stop: empty command: write the command that the host is to run
    x.toml:14: accounts.lab.machines.Build.restart: unknown key; the keys here are force, probe, start, start_deadline, status, stop, stop_deadline, tags, unreachable_means
    x.toml:15: accounts.lab.machines.build-02: has no start; write start = "start build-02"
    x.toml:17: accounts.lab.machines.build-02.status: is a number; write a string, such as "status build-02"
    x.toml:18: accounts.lab.machines.build-02.probe: the probe is at a loopback, link-local or metadata address: name the machine, or set allow_private_hosts = true
    x.toml:19: accounts.lab.machines.build-02.unreachable_means: `off` is not known; the choices are unknown, stopped
    x.toml:20: accounts.lab.machines.build-02.stop_deadline: `1s` is out of range: expected 30s to 2h
    x.toml:21: accounts.lab.machines.build-02.tags[0]: is empty; write a tag, such as "env:dev"
    x.toml:21: accounts.lab.machines.build-02.tags[1]: is a number; write a string, such as "env:dev"
    x.toml:21: accounts.lab.machines.build-02.tags[2]: has characters that cannot be shown, or is too long
    "#);
}

#[test]
fn a_resource_of_an_account_over_ssh_is_a_machine() {
    let text = format!(
        "{LAB}\n[schedules.s]\ntimezone = \"UTC\"\nperiods = [{{}}]\n\
         resources = [\"lab/machine/build-01\", \"lab/server/1\", \"lab/machine/build_03/x\"]\n"
    );
    insta::assert_snapshot!(problems(&text), @"
    x.toml:28: schedules.s.resources[1]: `lab/server/1`: `lab` is an account over SSH, where there is no server; write machine
    x.toml:28: schedules.s.resources[2]: invalid reference `lab/machine/build_03/x`: expected ACCOUNT/droplet/NUMBER, ACCOUNT/database/UUID, ACCOUNT/node-pool/CLUSTER/POOL, ACCOUNT/server/NUMBER or ACCOUNT/machine/NAME
    ");
}

#[test]
fn a_key_that_two_accounts_share_or_one_names_twice_is_warned_of() {
    let second = LAB.replace("accounts.lab", "accounts.lab-2");
    let own = "env:OWN\"\nread_key = \"env:OWN";
    let third = LAB.replace("accounts.lab", "accounts.lab-3");
    let third = third.replace("ssm:/offhours/lab-key", own);
    let text = format!(
        "{LAB}{second}{third}[accounts.empty]\nprovider = \"ssh\"\nhost = \"h\"\nuser = \"u\"\nkey = \"env:K\"\nhost_keys = [\"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID2MFepRAu6qdgmRqxbuktBQOdN2QdL0zSZ1xcsO/yTw\"]\n"
    );
    let warnings = parse(&text, "x.toml").unwrap().warnings;
    let warnings: Vec<_> = warnings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(warnings.join("\n"), @"
    x.toml:1: there are no schedules ([schedules.NAME]), so nothing will be done
    x.toml:29: accounts.lab-2.key: is the key of account `lab` too (line 6); give each account a key of its own, so that one that leaks opens one host
    x.toml:53: accounts.lab-3.read_key: is the account's own key (line 52); leave this out, or name another
    x.toml:71: accounts.empty: has no machines ([accounts.NAME.machines.NAME]), so nothing will be done
    ");
}

#[test]
fn what_is_hardly_meant_is_warned_of_with_its_line() {
    let text = format!(
        r#"timezone = "EST"
[schedules.evenings]
periods = [
  {{ begin = "08:00" }},
  {{ end = "19:00" }},
]
[schedules.nights]
periods = [{{ begin = "22:00", end = "06:00" }}]
[schedules.week]
timezone = "Europe/Berlin"
start = "0 7 * * 1"
stop = "0 20 * * fri"
holidays = ["2027-01-01", "2027-01-04"]
{ACCOUNTS}"#
    );
    let parsed = parse(&text, "x.toml").expect("the file is in order");
    assert_eq!(parsed.warnings, []);
    let warnings = parsed.warnings_at("2026-11-25T12:00Z".parse().unwrap());
    insta::assert_snapshot!(lines(&warnings), @r#"
    x.toml:1: timezone: `EST` has no summer time; America/New_York, for one, has it
    x.toml:5: schedules.evenings.periods[1]: changes nothing in the coming years; to run until then, write begin and end in one period
    x.toml:11: schedules.week.start: `1` is mon here, as in cron
    x.toml:13: schedules.week.holidays[1]: takes more than its own day: without the start on Mon 2027-01-04, what is stopped stays so until Mon 2027-01-11 07:00; periods begin anew every day
    "#);
}

#[test]
fn holidays_at_the_top_are_those_of_every_schedule_that_does_not_leave_them_out() {
    let text = r#"
timezone = "UTC"
holidays = [2026-12-24, "01-01"]
[schedules.a]
periods = [{}]
[schedules.b]
periods = [{}]
holidays = "05-01"
[schedules.c]
periods = [{}]
holidays = []
"#;
    let configuration = parsed(text);
    let holidays = |name: &str| {
        let name: domain::ScheduleName = name.parse().unwrap();
        let schedule = &configuration.schedules[&name].schedule;
        schedule.definition().holidays.join(" ")
    };
    assert_eq!(holidays("a"), "2026-12-24 01-01");
    assert_eq!(holidays("b"), "2026-12-24 01-01 05-01");
    assert_eq!(holidays("c"), "");
    let shared = text.replace("holidays = []\n", "");
    insta::assert_snapshot!(write(&parsed(&shared)), @r#"
    timezone = "UTC"
    holidays = ["2026-12-24", "01-01"]

    [schedules.a]
    periods = [{}]

    [schedules.b]
    periods = [{}]
    holidays = ["05-01"]

    [schedules.c]
    periods = [{}]
    "#);
    insta::assert_snapshot!(problems("timezone = \"UTC\"\nholidays = [\"2026-02-30\"]\nschedules.a.periods = [{}]"), @"x.toml:2: holidays[0]: `2026-02-30`: no such day: 2026-02-30; check month and day");
}

#[test]
fn holidays_in_a_file_beside_the_configuration_are_copied() {
    let folder = tempfile::TempDir::new().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("days.txt", "2026-12-24..2026-12-26  # Christmas\n01-01\n");
    write(
        "holidays.ics",
        "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20270326\r\n\
         DTEND;VALUE=DATE:20270327\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
    );
    write("wrong.txt", "01-01\n13-01\n");
    let file = folder.path().join("offhours.toml").display().to_string();
    let parse = |holidays: &str| {
        let text = format!(
            "schedules.s = {{ timezone = \"UTC\", periods = [{{}}], holidays = {holidays} }}"
        );
        super::parse(&text, &file)
    };
    let parsed = parse(r#"["05-01, file:days.txt", "file:holidays.ics"]"#).unwrap();
    let rule = parsed.configuration.schedules.values().next().unwrap();
    let holidays = &rule.schedule.definition().holidays;
    assert_eq!(holidays.as_slice(), ["05-01", "2026-12-24..2026-12-26", "01-01", "2027-03-26"]);
    for (holidays, expected) in [
        ("\"file:wrong.txt\"", "holidays: wrong.txt:2: `13-01`: no such day: 13-01"),
        ("\"file:none.txt\"", "holidays: cannot read none.txt: "),
        ("[\"file:../days.txt\"]", "holidays[0]: `file:../days.txt`: name a file beside this one"),
    ] {
        let problems = lines(&parse(holidays).unwrap_err());
        assert!(problems.contains(expected), "{problems}");
    }
}

#[test]
fn a_period_may_have_a_first_and_a_last_day() {
    let text = "timezone = \"UTC\"\n[schedules.s]\n\
                periods = [{ from = 2026-12-01, until = \"2027-02-28\", begin = \"08:00\" }]\n";
    insta::assert_snapshot!(write(&parsed(text)), @r#"
    timezone = "UTC"

    [schedules.s]
    periods = [{ from = "2026-12-01", until = "2027-02-28", begin = "08:00" }]
    "#);
    insta::assert_snapshot!(problems("schedules.s = { timezone = \"UTC\", periods = [{ from = 2026-12-01T08:00:00, until = \"12-24\" }] }"), @r#"
    x.toml:1: schedules.s.periods[0].from: has a time; write a day, such as "2026-12-01"
    x.toml:1: schedules.s.periods[0].until: invalid date `12-24`: expected YYYY-MM-DD, as in 2026-12-24
    "#);
}

#[test]
fn prices_are_read_with_the_digits_that_are_written() {
    let text = format!(
        "{ACCOUNTS}{}",
        r#"
[prices.machine-hour]
cpx22 = 0.0312
"s-1vcpu-1gb" = "0.00893"
[prices.database-month]
"2 x db-s-1vcpu-2gb" = 60
[prices]
snapshot-gb-month.hetzner = 0.0143
"#
    );
    let prices = parse(&text, "x.toml").expect("in order").configuration.settings.prices;
    let price = |text| Price::parse(text).unwrap();
    assert_eq!(prices.machine_hour["cpx22"], price("0.0312"));
    assert_eq!(prices.machine_hour["s-1vcpu-1gb"], price("0.00893"));
    assert_eq!(prices.database_month["2 x db-s-1vcpu-2gb"], price("60"));
    assert_eq!(prices.snapshot_gb_month[&Provider::Hetzner], price("0.0143"));
    insta::assert_snapshot!(problems(r#"
prices.node-hour = 1
prices.machine-hour = { cpx22 = -1, cpx32 = true, cpx42 = "free", cpx52 = 0x10 }
prices.snapshot-gb-month.aws = 0.05
prices.currency = "USD"
database-month."db-s-1vcpu-1gb" = 15
"#), @"
    x.toml:2: prices.node-hour: is a number; write the prices as a table, [prices.node-hour]
    x.toml:3: prices.machine-hour.cpx22: not a price: write a decimal number that is not negative, such as 0.0312
    x.toml:3: prices.machine-hour.cpx32: is true or false; write a price, such as 0.0312
    x.toml:3: prices.machine-hour.cpx42: not a price: write a decimal number that is not negative, such as 0.0312
    x.toml:3: prices.machine-hour.cpx52: is a number; write a price, such as 0.0312
    x.toml:4: prices.snapshot-gb-month: `aws` is not known; the choices are digitalocean, hetzner
    x.toml:5: prices.currency: unknown key; the keys here are database-month, machine-hour, machine-month, node-hour, snapshot-gb-month
    x.toml:6: database-month: unknown key; it belongs in the prices, [prices]
    ");
}

#[test]
fn each_kind_of_target_has_its_own_keys() {
    let problems = problems(
        r#"
heartbeat = "https://example.com/secret"
notify.OPS = { kind = "slack", url = "env:URL" }
notify.a = { kind = "webhook", url = "env:URL", from = "a@example.com" }
notify.b = { kind = "mail", url = "env:URL", to = [] }
notify.c = { kind = "pager", url = "env:URL" }
notify.d = { kind = "slack", url = "env:URL", events = "transition-stuk" }
notify.e = { kind = "slack", url = "ssm:/offhours/slack" }
"#,
    );
    insta::assert_snapshot!(problems, @r#"
    x.toml:2: heartbeat: write where it is kept, ssm:/PATH/NAME, env:VARIABLE, file:/PATH or credential:NAME, never the secret itself
    x.toml:3: notify.OPS: invalid name `OPS`: expected 1 to 63 of a-z, 0-9, `-` and `_`, with a letter or digit at both ends
    x.toml:4: notify.a: has no secret; write secret = "env:OPS_SECRET"
    x.toml:4: notify.a.from: is for targets of the kind mail; remove the key
    x.toml:5: notify.b: has no from; write from = "offhours@example.com"
    x.toml:5: notify.b.to: is empty; write "ops@example.com"
    x.toml:6: notify.c.kind: `pager` is not known; the choices are webhook, slack, teams, discord, mail
    x.toml:7: notify.d.events: `transition-stuk` is not known; did you mean `transition-stuck`?
    x.toml:8: notify.e.url: is not read on AWS; write env:VARIABLE, file:/PATH or credential:NAME
    "#);
}

#[test]
fn groups_name_what_exists_and_follow_each_other_in_no_cycle() {
    let problems = problems(
        r#"
groups.SHOP = { resources = "name:shop-*" }
groups.shop = { resources = "name:shop-*", after = ["shop-dat", "cache"], wait = "15" }
groups.shop-data = { resources = [], after = ["none"], wait = "1d" }
groups.a = { resources = "name:a", after = "b" }
groups.b = { resources = "name:b", after = ["shop-data", "a"] }
groups.c = { after = "a/droplet" }
groups.d = { resources = "name:d", check = "db:5432" }
groups.e = { resources = "name:e", check = "https://me:secret@e.example.net" }
"#,
    );
    for expected in [
        "x.toml:2: groups.SHOP: invalid name `SHOP`",
        "there is no group `shop-dat`; did you mean `shop-data`?",
        "groups.shop.wait: invalid time `15`",
        "groups.shop-data.resources: is empty; write \"name:orders-*\"\n",
        "groups.shop-data.wait: invalid time `1d`",
        "groups.a.after: is a cycle, a after b after a: none could start first",
        "groups.c: has no resources",
        "x.toml:8: groups.d.check: invalid check `db:5432`: write tcp://HOST:PORT, ",
        "x.toml:9: groups.e.check: a check is stored and shown, so it cannot contain a user or",
    ] {
        assert!(problems.contains(expected), "{expected}: {problems}");
    }
    assert!(!problems.contains("secret"), "{problems}");
}
