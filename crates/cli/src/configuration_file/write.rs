//! Writes a [`Configuration`] as TOML that is pleasant to read and to keep in git.

use domain::configuration::Configuration;
use toml_edit::{Array, Item, Table, Value};

use super::written::File;

/// The longest list that stays on one line, in characters.
const LINE: usize = 80;

/// Writes a configuration as TOML that [`parse`](super::parse) reads back to an equal one.
///
/// Defaults are left out, and the most common time zone is written once, at the top. The comments
/// of the applied file are not stored, so none are written.
#[must_use]
pub fn write(configuration: &Configuration) -> String {
    written(&File::of(configuration))
}

pub(crate) fn written(file: &File) -> String {
    let mut document =
        toml_edit::ser::to_document(file).expect("names, texts and numbers are TOML");
    for (key, item) in document.iter_mut() {
        match item {
            Item::Value(Value::Array(array)) => lay_out(key.get(), array),
            Item::Value(Value::InlineTable(_)) => open(item),
            Item::Value(_) | Item::None | Item::Table(_) | Item::ArrayOfTables(_) => {}
        }
    }
    document.to_string()
}

/// Turns `accounts`, `schedules` or an account's `machines` into tables with headers of their own.
fn open(item: &mut Item) {
    let mut tables = table(item);
    tables.set_implicit(true);
    for (_, item) in tables.iter_mut() {
        let mut one = table(item);
        if let Some(machines) = one.get_mut("machines") {
            open(machines);
        }
        for (key, value) in one.iter_mut() {
            if let Some(array) = value.as_array_mut() {
                lay_out(key.get(), array);
            }
        }
        *item = Item::Table(one);
    }
    *item = Item::Table(tables);
}

/// The item as a table with a header; empty if it is not a table.
fn table(item: &mut Item) -> Table {
    std::mem::take(item).into_table().unwrap_or_default()
}

/// Puts the elements of a long list, and several periods, on one line each.
fn lay_out(key: &str, array: &mut Array) {
    let is_long = match key {
        "periods" => array.len() > 1,
        _ => array.to_string().chars().count() > LINE,
    };
    if is_long {
        for element in array.iter_mut() {
            element.decor_mut().set_prefix("\n  ");
        }
        array.set_trailing("\n");
        array.set_trailing_comma(true);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::configuration_file::{parse, random};

    fn written(text: &str) -> String {
        write(&parse(text, "x.toml").expect("in order").configuration)
    }

    #[test]
    fn defaults_are_left_out_and_the_commonest_zone_stands_at_the_top() {
        let text = r#"
max_new = 25
max_stops = 7
mode = "act"
protect = "name:*\"prod\"*"
accounts.hz-eu = { provider = "hetzner", token = "env:HZ", datacenters = "fsn1-dc14", accept_new_prices = true, mode = "observe" }
accounts.do-main = { token = "ssm:/offhours/do-main", provider = "digitalocean", mode = "act" }
[schedules.b]
timezone = "Europe/Berlin"
periods = [{ weekdays = ["mon-wed", "friL"], monthdays = 15, begin = 08:00 }]
holidays = 2026-12-24
force = false
graceful = false
[schedules.a]
timezone = "Europe/Berlin"
periods = [
  { months = "jan, mar", end = "24:00", begin = "08:00" }, {},
]
resources = "hz-eu/server/42"
enforce = true
[schedules.c]
timezone = "America/New_York"
start = "0 8 * * mon-fri"
stop = "0 19 * * *"
resources = ["do-main/database/9cc10173-e9ea-4176-9dbc-a4cee4c4ff30", "do-main/droplet/12", "do-main/droplet/3"]
adopt = "next-edge"
stop_size = "db-s-1vcpu-1gb"
stop_nodes = 1
start_small = true
rescaled_runs = false
rescale_to = "cpx12"
[schedules.c.methods]
database = "smallest-plan"
server = "rescale"
droplet = "resize"
"#;
        insta::assert_snapshot!(written(text), @r#"
        timezone = "Europe/Berlin"
        protect = ['name:*"prod"*']
        max_stops = 7

        [accounts.do-main]
        provider = "digitalocean"
        token = "ssm:/offhours/do-main"

        [accounts.hz-eu]
        provider = "hetzner"
        token = "env:HZ"
        datacenters = ["fsn1-dc14"]
        accept_new_prices = true
        mode = "observe"

        [schedules.a]
        periods = [
          { months = "jan, mar", begin = "08:00", end = "24:00" },
          {},
        ]
        resources = ["hz-eu/server/42"]
        enforce = true

        [schedules.b]
        periods = [{ weekdays = ["mon-wed", "friL"], monthdays = "15", begin = "08:00" }]
        holidays = ["2026-12-24"]
        force = false

        [schedules.c]
        timezone = "America/New_York"
        start = "0 8 * * mon-fri"
        stop = "0 19 * * *"
        resources = [
          "do-main/droplet/3",
          "do-main/droplet/12",
          "do-main/database/9cc10173-e9ea-4176-9dbc-a4cee4c4ff30",
        ]
        adopt = "next-edge"
        methods = { droplet = "resize", server = "rescale" }
        rescale_to = "cpx12"
        start_small = true
        stop_size = "db-s-1vcpu-1gb"
        stop_nodes = 1
        "#);
    }

    #[test]
    fn nothing_is_written_of_an_empty_configuration() {
        assert_eq!(written(""), "");
        assert_eq!(written("timezone = \"UTC\""), "");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn what_is_written_is_read_as_the_same(configuration in random::configuration()) {
            let text = write(&configuration);
            let parsed = match parse(&text, "x.toml") {
                Ok(parsed) => parsed,
                Err(problems) => panic!("{problems:#?}\n{text}"),
            };
            prop_assert!(parsed.configuration.eq_ignoring_generation(&configuration), "{}", text);
            prop_assert_eq!(write(&parsed.configuration), text);
        }
    }
}
