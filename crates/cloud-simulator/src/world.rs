//! The contents of the clouds, and their pending changes.

use std::{collections::BTreeMap, sync::Arc};

use domain::{AccountName, ResourceRef, configuration::Provider};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    account::{Account, Login, Timeline, Token},
    catalog, digitalocean, hetzner,
    images::{Image, Snapshot},
    market::Market,
    prices::Prices,
};

/// All accounts, and the changes in flight in them.
pub(crate) struct World {
    pub(crate) accounts: Vec<Account>,
    pub(crate) timeline: Timeline,
    market: Arc<Market>,
    pub(crate) began: Timestamp,
}

/// What is stored of a machine's disk, at either cloud.
enum Stored<'a> {
    Image(&'a mut Image),
    Snapshot(&'a mut Snapshot),
}

impl World {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self {
            accounts: Vec::new(),
            timeline: Timeline::new(now),
            market: Arc::new(Market::new(Prices::default())),
            began: now,
        }
    }

    pub(crate) fn prices(&self) -> &Prices {
        &self.market.prices
    }

    pub(crate) fn market(&self) -> Market {
        Market::clone(&self.market)
    }

    fn named(&mut self, name: &AccountName) -> Option<&mut Account> {
        self.accounts.iter_mut().find(|account| account.login.name == *name)
    }

    /// Deletes an image or a snapshot; returns whether it existed.
    pub(crate) fn delete_image(&mut self, name: &AccountName, id: u64) -> bool {
        let now = self.timeline.now();
        let Some(account) = self.named(name) else {
            return false;
        };
        hetzner::images::forget(account, id, now)
            || digitalocean::snapshots::delete(account, id, now).is_ok()
    }

    /// Sets the word that responses have for an image's status, or a snapshot's as an image; `None`
    /// for that of the status itself. Returns whether the image or snapshot exists.
    pub(crate) fn show_image_as(
        &mut self,
        name: &AccountName,
        id: u64,
        word: Option<&str>,
    ) -> bool {
        let word = word.map(str::to_owned);
        self.change_image(name, id, |image| match image {
            Stored::Image(image) => image.shown_as = word,
            Stored::Snapshot(snapshot) => snapshot.shown_as = word,
        })
    }

    /// Adds a label to an image, or the tag `key:value` to a snapshot, or removes it; returns
    /// whether the image or snapshot exists.
    pub(crate) fn label_image(
        &mut self,
        name: &AccountName,
        id: u64,
        (key, value): (&str, &str),
        is_given: bool,
    ) -> bool {
        let tag = format!("{key}:{value}");
        self.change_image(name, id, |image| match (image, is_given) {
            (Stored::Image(image), true) => {
                image.labels.insert(key.to_owned(), value.to_owned());
            }
            (Stored::Image(image), false) => {
                image.labels.remove(key);
            }
            (Stored::Snapshot(snapshot), true) => {
                snapshot.tags.insert(tag);
            }
            (Stored::Snapshot(snapshot), false) => {
                snapshot.tags.remove(&tag);
            }
        })
    }

    /// Changes an image or a snapshot, which machines may show; returns whether it exists.
    fn change_image(
        &mut self,
        name: &AccountName,
        id: u64,
        change: impl FnOnce(Stored<'_>),
    ) -> bool {
        let Some(account) = self.named(name) else {
            return false;
        };
        let image = account.images.get_mut(&id).map(Stored::Image);
        let Some(image) = image.or(account.snapshots.get_mut(&id).map(Stored::Snapshot)) else {
            return false;
        };
        change(image);
        account.invalidate_caches();
        true
    }

    /// Replaces an account's token; the previous one is no longer accepted.
    pub(crate) fn set_token(&mut self, name: &AccountName, token: &str) {
        if let Some(account) = self.named(name) {
            account.login.token = Token(token.to_owned());
        }
    }

    pub(crate) fn set_market(&mut self, market: Market) {
        self.market = Arc::new(market);
        for account in &mut self.accounts {
            account.market = Arc::clone(&self.market);
            account.invalidate_caches();
        }
    }

    pub(crate) fn new_account(&self, index: usize, login: Login) -> Account {
        Account::new(index, login, self.timeline.now(), Arc::clone(&self.market))
    }

    /// Applies everything that is due by `now`.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        while let Some((account, effect)) = self.timeline.next(now) {
            effect(&mut self.accounts[account], &mut self.timeline);
        }
    }

    /// The index of the account that a token gives access to.
    pub(crate) fn opened_by(&self, provider: Provider, token: &str) -> Option<usize> {
        self.accounts
            .iter()
            .position(|account| account.login.provider == provider && account.login.accepts(token))
    }

    /// An account, and the timeline on which its effects are scheduled.
    pub(crate) fn account(&mut self, index: usize) -> (&mut Account, &mut Timeline) {
        (&mut self.accounts[index], &mut self.timeline)
    }

    /// The whole state of every resource, by reference.
    pub(crate) fn resources(&self) -> BTreeMap<String, Value> {
        let of_account = |account: &'_ Account| -> Vec<_> {
            let name = &account.login.name;
            let states =
                account.ids().filter_map(|id| Some((format!("{name}/{id}"), account.state(&id)?)));
            states.collect()
        };
        self.accounts.iter().flat_map(of_account).collect()
    }

    pub(crate) fn resource(&self, reference: &ResourceRef) -> Option<Value> {
        let mut accounts = self.accounts.iter();
        let account = accounts.find(|account| account.login.name == reference.account)?;
        account.state(&reference.id)
    }

    /// The images and snapshots of all accounts, each with its account's name; oldest first within
    /// an account.
    pub(crate) fn images(&self) -> Vec<Value> {
        let of_account = |account: &Account| {
            let name = json!({"account": account.login.name});
            let images = account.images.values().map(|image| json!(image));
            let snapshots = account.snapshots.values();
            let all = images.chain(snapshots.map(|snapshot| json!(snapshot)));
            let all = all.map(|image| catalog::with(&image, name.clone()));
            all.collect::<Vec<_>>()
        };
        self.accounts.iter().flat_map(of_account).collect()
    }
}
