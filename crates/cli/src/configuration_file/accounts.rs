//! `[accounts.NAME]`: each is one login at one provider.

use std::collections::BTreeMap;

use domain::{
    AccountName,
    configuration::{
        Account, AccountKind, CloudAccount, Location, Provider, Ssh, SshAccount, TokenReference,
    },
    machine::KeyReference,
};
use provider::Base;

use super::{
    TABLES,
    document::{Entry, Field, Place, Problems, Table},
    machines, mode,
};
use crate::resolve::nearest::advice;

/// The accounts of a file.
pub(super) struct Accounts {
    /// The valid ones.
    pub(super) read: BTreeMap<AccountName, Account>,
    /// Every account the file names, with its kind if known.
    declared: BTreeMap<String, Option<AccountKind>>,
    /// Former account names, each with its name in this file.
    former: BTreeMap<AccountName, String>,
}

impl Accounts {
    pub(super) fn is_declared(&self, name: &str) -> bool {
        self.declared.contains_key(name)
    }

    pub(super) fn kind(&self, name: &AccountName) -> Option<AccountKind> {
        self.declared.get(name.as_str()).copied().flatten()
    }

    /// The name in this file of the account that was formerly called this.
    pub(super) fn called_now(&self, former: &str) -> Option<&str> {
        let mut renamed = self.former.iter();
        let (_, name) = renamed.find(|(was, _)| was.as_str() == former)?;
        Some(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.declared.keys().map(String::as_str)
    }
}

pub(super) fn read(root: &Table, problems: &mut Problems) -> Accounts {
    let mut accounts =
        Accounts { read: BTreeMap::new(), declared: BTreeMap::new(), former: BTreeMap::new() };
    let mut tokens = Vec::new();
    let (mut places, mut former) = (BTreeMap::new(), Vec::new());
    let table = root
        .field("accounts")
        .and_then(|field| field.table("accounts as tables, [accounts.NAME]", problems));
    for entry in table.iter().flat_map(Table::entries) {
        let name = entry.name.parse::<AccountName>();
        let name = name.map_err(|error| problems.error(&entry.place, error)).ok();
        places.insert(entry.name, entry.place.clone());
        former.extend(former_name(&entry, problems));
        let (kind, account) = account(&entry, problems);
        accounts.declared.insert(entry.name.to_owned(), kind);
        let Some((account, places)) = account else {
            continue;
        };
        tokens.push(AccountKeys { account: entry.name.to_owned(), keys: places });
        if let Some(name) = name {
            accounts.read.insert(name, account);
        }
    }
    warn_of_shared_tokens(tokens, &accounts.declared, problems);
    accounts.take_former_names(former, &places, problems);
    accounts
}

/// An account's former name.
struct FormerName<'t> {
    was: AccountName,
    place: Place,
    /// The account's present name.
    name: &'t str,
}

fn former_name<'t>(entry: &Entry<'t>, problems: &mut Problems) -> Option<FormerName<'t>> {
    // Errors in the table itself are reported where the whole table is read.
    let field = entry.field.key("was")?;
    Some(FormerName {
        was: field.parsed("do-main", problems)?,
        place: field.place,
        name: entry.name,
    })
}

impl Accounts {
    /// Records former names, and refuses those that would make the owner of records ambiguous.
    fn take_former_names(
        &mut self,
        mut former: Vec<FormerName<'_>>,
        places: &BTreeMap<&str, Place>,
        problems: &mut Problems,
    ) {
        former.sort_by_key(|one| one.place.span.start);
        let mut taken = BTreeMap::<AccountName, FormerName<'_>>::new();
        for one in former {
            let FormerName { was, place, name } = &one;
            if was.as_str() == *name {
                problems.error(place, "is the account's own name; leave the key out");
            } else if let Some(configured) = places.get(was.as_str()) {
                let line = problems.line(&configured.span);
                let message = format!(
                    "`{was}` is an account of this file as well (line {line}), whose records stay \
                     its own; remove [accounts.{was}], or this key"
                );
                problems.error(place, message);
            } else if let Some(first) = taken.get(was) {
                let line = problems.line(&first.place.span);
                let message = format!(
                    "`{was}` is what account `{}` was, too (line {line}); its records go to one \
                     account alone, so remove one of the two keys",
                    first.name
                );
                problems.error(place, message);
            } else {
                taken.insert(was.clone(), one);
            }
        }
        for (was, one) in taken {
            if let Some(account) = one.name.parse().ok().and_then(|name| self.read.get_mut(&name)) {
                account.set_was(was.clone());
            }
            self.former.insert(was, one.name.to_owned());
        }
    }
}

/// Where a token or a key is stored, and where the file says so.
pub(super) type LocatedKey = (KeyReference, Place);

/// The tokens or the keys of one account.
struct AccountKeys {
    account: String,
    keys: Vec<LocatedKey>,
}

/// Reads an account: its kind if known, and the account itself with the places of its tokens if
/// enough of it is valid.
fn account(
    entry: &Entry,
    problems: &mut Problems,
) -> (Option<AccountKind>, Option<(Account, Vec<LocatedKey>)>) {
    let Some(table) = entry.field.table("an account as a table, [accounts.NAME]", problems) else {
        return (None, None);
    };
    let kinds = AccountKind::ALL.map(|kind| (kind.word(), kind));
    let advice = "write provider = \"digitalocean\", \"hetzner\" or \"ssh\"";
    let kind = table
        .required("provider", (&entry.place, advice), problems)
        .and_then(|field| field.choice(&kinds, problems));
    let account =
        if kind == Some(AccountKind::Ssh) || kind.is_none() && table.field("host").is_some() {
            over_ssh(entry, &table, problems)
        } else {
            at_cloud(entry, &table, kind, problems)
        };
    (kind, account)
}

fn over_ssh(
    entry: &Entry,
    table: &Table,
    problems: &mut Problems,
) -> Option<(Account, Vec<LocatedKey>)> {
    table.refuse_unknown(&TABLES.ssh_account, problems);
    let mode = mode(table, problems);
    let (login, keys) = machines::login(&entry.place, table, problems)?;
    let account = SshAccount { provider: Ssh::Ssh, was: None, mode, login };
    Some((Account::Ssh(Box::new(account)), keys))
}

fn at_cloud(
    entry: &Entry,
    table: &Table,
    kind: Option<AccountKind>,
    problems: &mut Problems,
) -> Option<(Account, Vec<LocatedKey>)> {
    table.refuse_unknown(&TABLES.account, problems);
    let provider = match kind {
        Some(AccountKind::Cloud(provider)) => Some(provider),
        Some(AccountKind::Ssh) | None => None,
    };
    let advice = "write token = \"ssm:/offhours/acting/NAME\" or \"env:VARIABLE\"";
    let token = table
        .required("token", (&entry.place, advice), problems)
        .and_then(|field| located_token(field, "ssm:/offhours/acting/NAME", problems));
    let read_token = table
        .field("read_token")
        .and_then(|field| located_token(field, "ssm:/offhours/reading/NAME", problems));
    let datacenters = datacenters(table, provider, problems);
    let accept_new_prices = accept_new_prices(table, provider, problems);
    let ssh_key = ssh_key(table, problems);
    let url = table.field("url").and_then(|field| url(&field, provider, problems));
    let mode = mode(table, problems);
    let (token, place) = token?;
    let account = CloudAccount {
        provider: provider?,
        was: None,
        token: token.clone(),
        read_token: read_token.as_ref().map(|(token, _)| token.clone()),
        datacenters,
        accept_new_prices,
        ssh_key,
        mode,
        url,
    };
    let places = [(token, place)].into_iter().chain(read_token);
    let places = places.map(|(token, place)| (KeyReference::Token(token), place));
    Some((Account::Cloud(account), places.collect()))
}

fn located_token(
    field: Field,
    example: &str,
    problems: &mut Problems,
) -> Option<(TokenReference, Place)> {
    let token = field.parsed(example, problems)?;
    Some((token, field.place))
}

fn datacenters(
    table: &Table,
    provider: Option<Provider>,
    problems: &mut Problems,
) -> Vec<Location> {
    let Some(field) = table.field("datacenters") else {
        return Vec::new();
    };
    if provider.is_some_and(|provider| !provider.facts().has_datacenters) {
        let message = "only Hetzner accounts have locations; remove the key";
        problems.error(&field.place, message);
        return Vec::new();
    }
    if field.elements().is_empty() {
        problems.error(&field.place, "is empty; leave the key out to scan all locations");
    }
    let mut locations = Vec::<Location>::new();
    for element in field.elements() {
        let Some(location) = element.parsed::<Location>("fsn1", problems) else {
            continue;
        };
        let name = location.name();
        if !Location::KNOWN.contains(&name) {
            let advice = advice(name, "known locations", Location::KNOWN);
            let message = format!("`{name}` is not a known location of Hetzner's; {advice}");
            problems.warning(&element.place, message);
        }
        if locations.iter().any(|one| one.name() == name) {
            problems.warning(&element.place, "is listed twice");
        } else {
            locations.push(location);
        }
    }
    locations
}

fn accept_new_prices(table: &Table, provider: Option<Provider>, problems: &mut Problems) -> bool {
    let Some(field) = table.field("accept_new_prices") else {
        return false;
    };
    let accepted = field.flag(problems);
    if provider.is_some_and(|provider| provider != Provider::Hetzner) {
        let message = "only Hetzner bills old servers at old prices; remove the key";
        problems.error(&field.place, message);
    }
    accepted.unwrap_or_default()
}

fn ssh_key(table: &Table, problems: &mut Problems) -> Option<String> {
    let field = table.field("ssh_key")?;
    let key = field.text("team", problems)?;
    if key.is_empty() {
        problems.error(&field.place, "is empty; write the name of a key in the account");
        return None;
    }
    Some(key.to_owned())
}

/// Reads a base address to which a token may be sent. It must be written as the parser reads it, so
/// that a misreading shows here and not at the provider. A rejected address is not repeated,
/// because it may contain a password.
fn url(field: &Field, provider: Option<Provider>, problems: &mut Problems) -> Option<String> {
    let text = field.text("https://api.example.com", problems)?;
    let Ok(base) = text.parse::<Base>() else {
        problems.error(
            &field.place,
            "not a base address; write https://HOST, with :PORT and /PATH if need be, and no user, \
             query or fragment (http is for loopback alone, such as http://127.0.0.1:8080)",
        );
        return None;
    };
    let plain = base.as_str().trim_end_matches('/');
    if text.trim_end_matches('/') != plain {
        problems.error(&field.place, format!("is read as {plain}; write that"));
        return None;
    }
    if let Some(provider) = provider {
        let own = provider.facts().endpoint;
        let message = format!("the account's token is sent to {plain}, not to {own}");
        problems.warning(&field.place, message);
    }
    Some(plain.to_owned())
}

/// Warns about repeated tokens. Two accounts with one token reach the same resources, which then
/// conflict. Within one account, a second token or key equal to the first is pointless.
fn warn_of_shared_tokens(
    tokens: Vec<AccountKeys>,
    kinds: &BTreeMap<String, Option<AccountKind>>,
    problems: &mut Problems,
) {
    let mut tokens: Vec<_> = tokens
        .into_iter()
        .flat_map(|of| of.keys.into_iter().map(move |key| (key, of.account.clone())))
        .collect();
    tokens.sort_by_key(|((_, place), _)| place.span.start);
    for (index, ((token, place), account)) in tokens.iter().enumerate() {
        let mut earlier = tokens[..index].iter();
        let Some(((_, first), name)) = earlier.find(|((other, _), _)| other == token) else {
            continue;
        };
        let line = problems.line(&first.span);
        let is_ssh = matches!(kinds.get(account), Some(Some(AccountKind::Ssh)));
        let message = if name == account {
            let what = if is_ssh { "key" } else { "token" };
            format!("is the account's own {what} (line {line}); leave this out, or name another")
        } else if is_ssh {
            format!(
                "is the key of account `{name}` too (line {line}); give each account a key of its \
                 own, so that one that leaks opens one host"
            )
        } else {
            format!(
                "is the token of account `{name}` too (line {line}); \
                 a resource that is reached through two accounts is not touched"
            )
        };
        problems.warning(place, message);
    }
}
