//! `[accounts.NAME]` over SSH: the host, its keys, and each machine's commands.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    str::FromStr,
};

use domain::{
    MachineName,
    machine::{
        Endpoint, Host, HostKey, HostKeys, KeyReference, LoginError, Machine, SSH_PORT, SshLogin,
        Unreachable,
    },
    text::{LONGEST_TAG, one_line},
};

use super::{
    TABLES,
    accounts::LocatedKey,
    document::{Entry, Place, Problems, Table},
    elements_of,
};

/// Reads a login, and the places of its keys in the file. Returns `None` if any part is invalid.
pub(super) fn login(
    place: &Place,
    table: &Table,
    problems: &mut Problems,
) -> Option<(SshLogin, Vec<LocatedKey>)> {
    let private_field = table.field("allow_private_hosts");
    let allow_private_hosts = private_field.and_then(|field| field.flag(problems)) == Some(true);
    let host = required::<Host>(table, place, "host", "jump.example.net", problems);
    let port = table.field("port");
    let port = port.and_then(|field| field.count(1..=u32::from(u16::MAX), problems));
    let user = required(table, place, "user", "offhours", problems);
    let key = required::<KeyReference>(table, place, "key", "ssm:/offhours/NAME-key", problems);
    let read_key = optional::<KeyReference>(table, "read_key", "ssm:/offhours/NAME-read", problems);
    let host_keys = host_keys(table, place, problems);
    let connect_timeout = optional(table, "connect_timeout", "10s", problems);
    let command_timeout = optional(table, "command_timeout", "60s", problems);
    let output_limit = optional(table, "output_limit", "4KiB", problems);
    let machines = machines(place, table, allow_private_hosts, problems);
    if let (Some(host), Some(field)) = (&host, table.field("host"))
        && host.is_private()
        && !allow_private_hosts
    {
        problems.error(&field.place, LoginError::PrivateHost);
    }
    let located = |key: &Option<KeyReference>, field| key.clone().zip(place_of(table, field));
    let located = [located(&key, "key"), located(&read_key, "read_key")];
    let login = SshLogin {
        host: host?,
        port: port.map_or(Some(SSH_PORT), |port| u16::try_from(port).ok())?,
        user: user?,
        key: key?,
        read_key,
        host_keys: host_keys?,
        connect_timeout: connect_timeout.unwrap_or_default(),
        command_timeout: command_timeout.unwrap_or_default(),
        output_limit: output_limit.unwrap_or_default(),
        allow_private_hosts,
        machines,
    };
    Some((login, located.into_iter().flatten().collect()))
}

fn place_of(table: &Table, key: &str) -> Option<Place> {
    table.field(key).map(|field| field.place)
}

fn required<T: FromStr<Err: Display>>(
    table: &Table,
    place: &Place,
    key: &str,
    example: &str,
    problems: &mut Problems,
) -> Option<T> {
    let advice = format!("write {key} = \"{example}\"");
    let field = table.required(key, (place, &advice), problems)?;
    field.parsed(example, problems)
}

fn optional<T: FromStr<Err: Display>>(
    table: &Table,
    key: &str,
    example: &str,
    problems: &mut Problems,
) -> Option<T> {
    table.field(key)?.parsed(example, problems)
}

fn host_keys(table: &Table, place: &Place, problems: &mut Problems) -> Option<HostKeys> {
    let advice = "write host_keys = [\"ssh-ed25519 AAAA…\"], the host's \
                  /etc/ssh/ssh_host_ed25519_key.pub";
    let field = table.required("host_keys", (place, advice), problems)?;
    let elements = field.elements();
    let count = elements.len();
    let keys: Vec<HostKey> = elements
        .iter()
        .filter_map(|element| element.parsed("ssh-ed25519 AAAA…", problems))
        .collect();
    if count > 0 && keys.len() < count {
        return None;
    }
    HostKeys::try_from(keys).map_err(|error| problems.error(&field.place, error)).ok()
}

fn machines(
    place: &Place,
    table: &Table,
    allow_private_hosts: bool,
    problems: &mut Problems,
) -> BTreeMap<MachineName, Machine> {
    let Some(field) = table.field("machines") else {
        let message = "has no machines ([accounts.NAME.machines.NAME]), so nothing will be done";
        problems.warning(place, message);
        return BTreeMap::new();
    };
    let expected = "machines as tables, [accounts.NAME.machines.NAME]";
    let tables = field.table(expected, problems);
    let mut machines = BTreeMap::new();
    for entry in tables.iter().flat_map(Table::entries) {
        let name = entry.name.parse::<MachineName>();
        let name = name.map_err(|error| problems.error(&entry.place, error)).ok();
        let machine = machine(&entry, allow_private_hosts, problems);
        machines.extend(name.zip(machine));
    }
    machines
}

fn machine(entry: &Entry, allow_private_hosts: bool, problems: &mut Problems) -> Option<Machine> {
    let expected = "a machine as a table, [accounts.NAME.machines.NAME]";
    let table = entry.field.table(expected, problems)?;
    table.refuse_unknown(&TABLES.machine, problems);
    let of = |command: &str| format!("{command} {}", entry.name);
    let start = required(&table, &entry.place, "start", &of("start"), problems);
    let stop = required(&table, &entry.place, "stop", &of("stop"), problems);
    let status = optional(&table, "status", &of("status"), problems);
    let force = optional(&table, "force", &of("force"), problems);
    let probe = probe(&table, allow_private_hosts, problems);
    if table.field("status").is_none() && table.field("probe").is_none() {
        problems.error(&entry.place, LoginError::Unseen);
    }
    let meanings = [("unknown", Unreachable::Unknown), ("stopped", Unreachable::Stopped)];
    let unreachable_means =
        table.field("unreachable_means").and_then(|field| field.choice(&meanings, problems));
    let start_deadline = optional(&table, "start_deadline", "10m", problems);
    let stop_deadline = optional(&table, "stop_deadline", "10m", problems);
    let tags = tags(&table, problems);
    Some(Machine {
        start: start?,
        stop: stop?,
        status,
        force,
        probe,
        unreachable_means: unreachable_means.unwrap_or_default(),
        start_deadline: start_deadline.unwrap_or_default(),
        stop_deadline: stop_deadline.unwrap_or_default(),
        tags,
    })
}

fn probe(table: &Table, allow_private_hosts: bool, problems: &mut Problems) -> Option<Endpoint> {
    let field = table.field("probe")?;
    let probe: Endpoint = field.parsed("10.0.0.9:22", problems)?;
    if probe.host.is_private() && !allow_private_hosts {
        problems.error(&field.place, LoginError::PrivateProbe);
    }
    Some(probe)
}

fn tags(table: &Table, problems: &mut Problems) -> BTreeSet<String> {
    let mut tags = BTreeSet::new();
    for element in elements_of(table, "tags") {
        let Some(tag) = element.text("env:dev", problems) else {
            continue;
        };
        if tag.trim().is_empty() {
            problems.error(&element.place, "is empty; write a tag, such as \"env:dev\"");
        } else if matches!(one_line(tag, LONGEST_TAG), Cow::Owned(_)) {
            let message = "has characters that cannot be shown, or is too long";
            problems.error(&element.place, message);
        } else if !tags.insert(tag.to_owned()) {
            problems.warning(&element.place, "is listed twice");
        }
    }
    tags
}
