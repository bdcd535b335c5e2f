//! Records by the page: for people who look at very many, in as little memory as a page takes.

use std::collections::BTreeSet;

use domain::{AccountName, record::Record};

use crate::{
    Reader, StoreError, failed,
    item::{self, Item},
};

/// Most records on a page. DynamoDB would end one at 1 MB, some 2,500 records; the embedded engine
/// has all that it might answer in memory.
const PAGE: i32 = 1_000;

impl Reader {
    /// All accounts that may have records: the configured ones, and those that once were. Of a
    /// configuration that a newer program wrote, those whose state is known.
    pub async fn accounts(&self) -> Result<BTreeSet<AccountName>, StoreError> {
        let configured = match self.in_force().await {
            Err(error) if error.is_newer() => self.in_force_without_configuration().await?,
            read => read?,
        };
        let configured = configured.configuration;
        let known = self.account_states().await?;
        let newer = known.unreadable.iter().filter_map(Unreadable::account);
        Ok(configured
            .accounts
            .keys()
            .chain(known.read.keys())
            .cloned()
            .chain(newer)
            .collect())
    }

    /// An account's records, page by page, in the order of their references.
    #[must_use]
    pub fn record_pages(&self, account: &AccountName) -> RecordPages {
        RecordPages {
            reader: self.clone(),
            account: account.clone(),
            next: Next::First,
        }
    }
}

/// The pages of one account's records; each is read when it is asked for.
#[derive(Debug)]
pub struct RecordPages {
    reader: Reader,
    account: AccountName,
    next: Next,
}

#[derive(Debug)]
enum Next {
    First,
    After(Item),
    None,
}

/// An item that this program cannot read: a newer one wrote it. It is left alone.
#[derive(Debug, thiserror::Error)]
#[error("cannot read what is stored of {reference}")]
pub struct Unreadable {
    /// Which resource's record, or which account's state, by the item's key.
    pub reference: String,
    /// Why not.
    #[source]
    pub source: StoreError,
}

/// What one reading found: items that this program knows, and apart from them those that it has
/// to leave alone.
#[derive(Debug, Default)]
pub struct Found<T> {
    /// What could be read.
    pub read: T,
    /// What could not, and why.
    pub unreadable: Vec<Unreadable>,
}

impl Unreadable {
    /// The account, where this is an account's state.
    fn account(&self) -> Option<AccountName> {
        self.reference.parse().ok()
    }
}

impl Found<Vec<Record>> {
    pub(crate) fn add(&mut self, item: Item) {
        match readable(item) {
            Ok(record) => self.read.push(record),
            Err(unreadable) => self.unreadable.push(unreadable),
        }
    }
}

impl RecordPages {
    /// The next page; none after the last.
    pub async fn next(&mut self) -> Result<Option<Vec<Result<Record, Unreadable>>>, StoreError> {
        let after = match std::mem::replace(&mut self.next, Next::None) {
            Next::First => None,
            Next::After(key) => Some(key),
            Next::None => return Ok(None),
        };
        let page = self
            .reader
            .client
            .query()
            .table_name(&self.reader.tables.resources)
            .key_condition_expression("account = :account")
            .expression_attribute_values(":account", item::text(self.account.as_str()))
            .consistent_read(true)
            .limit(PAGE)
            .set_exclusive_start_key(after)
            .send()
            .await
            .map_err(failed("read an account's records"))?;
        if let Some(key) = page.last_evaluated_key {
            self.next = Next::After(key);
        }
        let items = page.items.unwrap_or_default();
        Ok(Some(items.into_iter().map(readable).collect()))
    }
}

fn readable(item: Item) -> Result<Record, Unreadable> {
    let part = |name: &str| {
        let text = item.get(name).and_then(|value| value.as_s().ok());
        text.cloned().unwrap_or_default()
    };
    let reference = format!("{}/{}", part("account"), part("resource"));
    item::to_record(item).map_err(|source| Unreadable { reference, source })
}
