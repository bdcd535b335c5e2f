//! `[accounts.NAME]`: each is one login at one provider.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use domain::{
    AccountName, MachineName,
    configuration::{Account, AccountKind, CloudAccount, Location, Provider, Ssh, SshAccount},
    provider::Facts,
    ssh::{Endpoint, Host, LoginError, SshLogin, SshMachine, Unreachable},
    text::{LONGEST_TAG, one_line},
};
use provider::Base;
use report::{joined, nearest::advice};

use super::{document::Field, reader::not_known};

#[derive(Default)]
pub(super) struct Accounts {
    /// The valid ones.
    pub(super) read: BTreeMap<AccountName, Account>,
    /// Every account the file names, with its kind if known.
    pub(super) declared: BTreeMap<String, Option<AccountKind>>,
    /// Former account names, each with its name in this file.
    pub(super) former: BTreeMap<String, String>,
}

pub(super) fn read(root: &Field) -> Accounts {
    let entries = root.named::<AccountName>("accounts", "account");
    let mut accounts = Accounts::default();
    for (name, field) in &entries {
        let (kind, account) = if field.value.is_table() { account(field) } else { (None, None) };
        accounts.declared.insert(field.key.to_owned(), kind);
        accounts.read.extend(name.clone().zip(account));
    }
    let entries: Vec<_> = entries.into_iter().map(|(_, field)| field).collect();
    warn_of_shared_keys(&entries, &accounts);
    take_former_names(&entries, &mut accounts);
    accounts
}

fn account(field: &Field) -> (Option<AccountKind>, Option<Account>) {
    let kind = field.field("provider").and_then(|provider| {
        let word = provider.value.as_str()?;
        let kind = AccountKind::all().find(|kind| kind.word() == word);
        if kind.is_none() {
            provider.give_up(&not_known(word, AccountKind::all().map(AccountKind::word).collect()));
        }
        kind
    });
    let account = match kind {
        Some(AccountKind::Cloud(provider)) => at_cloud(field, Some(provider)),
        None if field.field("host").is_none() => at_cloud(field, None),
        Some(AccountKind::Ssh) | None => over_ssh(&field.as_table("ssh-account")),
    };
    (kind, account)
}

fn at_cloud(field: &Field, provider: Option<Provider>) -> Option<Account> {
    let account = field.read::<CloudAccount>();
    if provider.is_some_and(|provider| !provider.facts().has_datacenters) {
        let clouds = named(|cloud| cloud.has_datacenters);
        field.refuse(
            "datacenters",
            format!("only {clouds} accounts have locations; remove the key"),
        );
    }
    if provider.is_some_and(|provider| provider.facts().new_prices_since.is_none()) {
        let clouds = named(|cloud| cloud.new_prices_since.is_some());
        let message = format!("only {clouds} bills old servers at old prices; remove the key");
        field.refuse("accept_new_prices", message);
    }
    if field.get::<String>("ssh_key").is_some_and(|key| key.is_empty()) {
        field.refuse("ssh_key", "is empty; write the name of a key in the account");
    }
    let datacenters = locations(field);
    let url = field.field("url").and_then(|url| base(&url, provider));
    Some(Account::Cloud(CloudAccount { datacenters, url, ..account? }))
}

/// Names the clouds of which something is true.
fn named(applies: impl Fn(&Facts) -> bool) -> String {
    let facts = Provider::ALL.map(Provider::facts).into_iter();
    joined(facts.filter(|facts| applies(facts)).map(|facts| facts.name), " and ")
}

fn locations(field: &Field) -> Vec<Location> {
    let mut locations = Vec::<Location>::new();
    for (field, location) in field.list::<Location>("datacenters") {
        let name = location.name();
        if !Location::KNOWN.contains(&name) {
            let advice = advice(name, "known locations", Location::KNOWN);
            let clouds = named(|cloud| cloud.has_datacenters);
            field.warning(format!("`{name}` is not a known location of {clouds}'s; {advice}"));
        }
        if locations.iter().any(|one| one.name() == name) {
            field.warning("is listed twice");
        } else {
            locations.push(location);
        }
    }
    locations
}

/// Reads a base address to which a token may be sent. It must be written as the parser reads it, so
/// that a misreading shows here and not at the provider. A rejected address is not repeated,
/// because it may contain a password.
fn base(field: &Field, provider: Option<Provider>) -> Option<String> {
    let text: String = field.read()?;
    let Ok(base) = text.parse::<Base>() else {
        field.error(
            "not a base address; write https://HOST, with :PORT and /PATH if need be, and no user, \
             query or fragment (http is for loopback alone, such as http://127.0.0.1:8080)",
        );
        return None;
    };
    let plain = base.as_str().trim_end_matches('/');
    if text.trim_end_matches('/') != plain {
        field.error(format!("is read as {plain}; write that"));
    } else if let Some(provider) = provider {
        let own = provider.facts().endpoint;
        field.warning(format!("the account's token is sent to {plain}, not to {own}"));
    }
    Some(plain.to_owned())
}

fn over_ssh(field: &Field) -> Option<Account> {
    let login = field.read::<SshLogin>();
    let may_be_private = field.get("allow_private_hosts") == Some(true);
    if !may_be_private && field.get("host").is_some_and(|host: Host| host.is_private()) {
        field.refuse("host", LoginError::PrivateHost);
    }
    if field.field("machines").is_none() {
        field.warning("has no machines ([accounts.NAME.machines.NAME]), so nothing will be done");
    }
    let machines = field.named::<MachineName>("machines", "machine").into_iter();
    let machines = machines.filter(|(_, field)| field.value.is_table());
    let machines = machines.filter_map(|(name, field)| {
        let machine = machine(&field, may_be_private);
        name.zip(machine)
    });
    let machines: BTreeMap<_, _> = machines.collect();
    Some(Account::Ssh(Box::new(SshAccount {
        provider: Ssh::Ssh,
        was: None,
        mode: field.get("mode").unwrap_or_default(),
        login: SshLogin { machines, ..login? },
    })))
}

fn machine(field: &Field, may_be_private: bool) -> Option<SshMachine> {
    let silence_counts = field.field("probe").is_some()
        && field.get("unreachable_means") == Some(Unreachable::Stopped);
    if field.field("status").is_none() && !silence_counts {
        field.error(LoginError::Unseen);
    }
    if !may_be_private && field.get("probe").is_some_and(|at: Endpoint| at.host.is_private()) {
        field.refuse("probe", LoginError::PrivateProbe);
    }
    let mut tags = BTreeSet::new();
    for (field, tag) in field.list::<String>("tags") {
        if tag.trim().is_empty() {
            field.error("is empty; write a tag, such as \"env:dev\"");
        } else if matches!(one_line(&tag, LONGEST_TAG), Cow::Owned(_)) {
            field.error("has characters that cannot be shown, or is too long");
        } else if !tags.insert(tag) {
            field.warning("is listed twice");
        }
    }
    field.read()
}

/// Records former names, and refuses those that would make the owner of records ambiguous.
fn take_former_names<'t>(entries: &[Field<'t>], accounts: &mut Accounts) {
    let mut former: Vec<_> = entries.iter().filter_map(|entry| entry.field("was")).collect();
    former.sort_by_key(|was| was.place.start);
    let mut taken = BTreeMap::<AccountName, Field<'t>>::new();
    for field in former {
        let Some(was) = field.read::<AccountName>() else {
            continue;
        };
        let line = |other: &Field| field.problems.line(&other.place);
        if was.as_str() == field.table {
            field.error("is the account's own name; leave the key out");
        } else if let Some(configured) = entries.iter().find(|entry| entry.key == was.as_str()) {
            field.error(format!(
                "`{was}` is an account of this file as well (line {}), whose records stay its own; \
                 remove [accounts.{was}], or this key",
                line(configured)
            ));
        } else if let Some(first) = taken.get(&was) {
            field.error(format!(
                "`{was}` is what account `{}` was, too (line {}); its records go to one account \
                 alone, so remove one of the two keys",
                first.table,
                line(first)
            ));
        } else {
            accounts.former.insert(was.to_string(), field.table.to_owned());
            if let Some(account) =
                field.table.parse().ok().and_then(|name: AccountName| accounts.read.get_mut(&name))
            {
                account.set_was(was.clone());
            }
            taken.insert(was, field);
        }
    }
}

/// Warns about repeated tokens. Two accounts with one token reach the same resources, which then
/// conflict. Within one account, a second token or key equal to the first is pointless.
fn warn_of_shared_keys(entries: &[Field], accounts: &Accounts) {
    let keys = entries.iter().flat_map(|entry| {
        ["token", "read_token", "key", "read_key"].into_iter().filter_map(|key| entry.field(key))
    });
    let mut keys: Vec<_> = keys.collect();
    keys.sort_by_key(|field| field.place.start);
    for (index, field) in keys.iter().enumerate() {
        let is_same = |other: &&Field| other.value.as_str() == field.value.as_str();
        let Some(first) = keys[..index].iter().find(is_same).filter(|_| field.value.is_str())
        else {
            continue;
        };
        let (name, line) = (first.table, field.problems.line(&first.place));
        let is_ssh = accounts.declared.get(field.table) == Some(&Some(AccountKind::Ssh));
        let (what, follows) = if is_ssh {
            ("key", "give each account a key of its own, so that one that leaks opens one host")
        } else {
            ("token", "a resource that is reached through two accounts is not touched")
        };
        field.warning(if name == field.table {
            format!("is the account's own {what} (line {line}); leave this out, or name another")
        } else {
            format!("is the {what} of account `{name}` too (line {line}); {follows}")
        });
    }
}
