//! The clients of the configured accounts, created once and kept while their account is unchanged.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use domain::{
    AccountName,
    configuration::{Account, CloudAccount, Configuration, Provider, TokenReference},
    ssh::{KeyReference, SshLogin},
};
use environment::{
    TokenError, Tokens, in_words,
    settings::{ACCOUNT_URLS, PLAIN_HTTP_HOST, SettingError, optional},
};
use provider::{Base, Client, EndpointError, Endpoints, Transport, ssh::SetupError};

/// Why there is no client for an account.
#[derive(Debug, thiserror::Error)]
pub enum ProvidersError {
    /// The configuration in force has no such account.
    #[error("no account `{0}` is configured")]
    NoAccount(AccountName),
    /// Its token could not be read.
    #[error("no token for the account `{account}`")]
    Token {
        /// The account.
        account: AccountName,
        /// Why it could not be read.
        #[source]
        source: TokenError,
    },
    /// Its address is not one that a token may be sent to.
    #[error("the account `{account}` has an address that is not allowed")]
    Endpoint {
        /// The account.
        account: AccountName,
        /// Why the address is not allowed.
        #[source]
        source: EndpointError,
    },
    /// Its key or one of its pins is unusable.
    #[error("no connection can be made for the account `{account}`")]
    Ssh {
        /// The account.
        account: AccountName,
        /// Why no connection can be made.
        #[source]
        source: SetupError,
    },
}

/// What a client is used for, which decides between an account's `token` and `read_token`, or `key`
/// and `read_key`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Observing only: with the account's `read_token` or `read_key`, if it has one.
    Read,
    /// Making changes, and the observations before a change: with the account's `token` or `key`.
    Change,
}

impl Access {
    /// Returns the account's token for this access.
    fn token_of(self, account: &CloudAccount) -> &TokenReference {
        match (self, &account.read_token) {
            (Self::Read, Some(read_token)) => read_token,
            (Self::Read, None) | (Self::Change, _) => &account.token,
        }
    }

    /// Returns the login's key for this access.
    fn key_of(self, login: &SshLogin) -> &KeyReference {
        match (self, &login.read_key) {
            (Self::Read, Some(read_key)) => read_key,
            (Self::Read, None) | (Self::Change, _) => &login.key,
        }
    }
}

/// Clients by account, for one kind of access.
#[derive(Debug)]
pub struct Providers {
    access: Access,
    tokens: Tokens,
    endpoints: Endpoints,
    transport: Transport,
    clients: Mutex<Clients>,
}

/// The clients created so far, each with the account as it was at the time.
type Clients = HashMap<(AccountName, Access), (Account, Client)>;

impl Providers {
    /// Creates an empty set; each client is created when it is first asked for.
    #[must_use]
    pub fn new(
        access: Access,
        tokens: Tokens,
        endpoints: Endpoints,
        transport: impl Into<Transport>,
    ) -> Self {
        Self { access, tokens, endpoints, transport: transport.into(), clients: Mutex::default() }
    }

    /// Returns the client of an account.
    pub async fn client(
        &self,
        name: &AccountName,
        configuration: &Configuration,
    ) -> Result<Client, ProvidersError> {
        self.client_to(self.access, name, configuration).await
    }

    /// Returns the client of an account for the given kind of access.
    pub(crate) async fn client_to(
        &self,
        access: Access,
        name: &AccountName,
        configuration: &Configuration,
    ) -> Result<Client, ProvidersError> {
        let account = configuration
            .accounts
            .get(name)
            .ok_or_else(|| ProvidersError::NoAccount(name.clone()))?;
        let key = (name.clone(), access);
        if let Some((of, client)) = self.lock().get(&key)
            && of == account
        {
            return Ok(client.clone());
        }
        let client = match account {
            Account::Cloud(account) => self.cloud(access, name, account).await?,
            Account::Ssh(account) => self.ssh(access, name, &account.login).await?,
        };
        self.lock().insert(key, (account.clone(), client.clone()));
        Ok(client)
    }

    async fn cloud(
        &self,
        access: Access,
        name: &AccountName,
        account: &CloudAccount,
    ) -> Result<Client, ProvidersError> {
        let base = self.endpoints.of(account);
        let base =
            base.map_err(|source| ProvidersError::Endpoint { account: name.clone(), source })?;
        let token = self.tokens.token(access.token_of(account)).await;
        let token = token.map_err(|source| no_token(name, source))?;
        let transport = self.transport.clone();
        Ok(match account.provider {
            Provider::DigitalOcean => Client::digitalocean(base, token, transport),
            Provider::Hetzner => {
                let locations = account.datacenters.iter().map(|one| one.name().to_owned());
                Client::hetzner(base, token, transport, locations.collect())
            }
        })
    }

    async fn ssh(
        &self,
        access: Access,
        name: &AccountName,
        login: &SshLogin,
    ) -> Result<Client, ProvidersError> {
        let key = self.tokens.key(access.key_of(login)).await;
        let key = key.map_err(|source| no_token(name, source))?;
        Client::ssh(login.clone(), key)
            .map_err(|source| ProvidersError::Ssh { account: name.clone(), source })
    }

    /// Forgets a client whose token was refused, and the token itself, which may have been rotated.
    pub fn forget(&self, name: &AccountName) {
        self.forget_to(self.access, name);
    }

    /// Does the same as [`Self::forget`], for the given kind of access.
    pub(crate) fn forget_to(&self, access: Access, name: &AccountName) {
        if let Some((account, _)) = self.lock().remove(&(name.clone(), access)) {
            match &account {
                Account::Cloud(account) => self.tokens.forget(access.token_of(account)),
                Account::Ssh(account) => self.tokens.forget_key(access.key_of(&account.login)),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_token(account: &AccountName, source: TokenError) -> ProvidersError {
    ProvidersError::Token { account: account.clone(), source }
}

impl Providers {
    /// Returns the addresses set in the environment, or else the public ones.
    pub fn endpoints_from_settings() -> Result<Endpoints, SettingError> {
        let plain_host = optional(PLAIN_HTTP_HOST);
        Endpoints::given(|provider| {
            let setting = provider.facts().endpoint_setting;
            let address = optional(setting).map(|text| match &plain_host {
                Some(host) => Base::trusting(&text, host),
                None => text.parse(),
            });
            address.transpose().map_err(|error| wrong(setting, &error))
        })
    }

    /// Returns the addresses that the deployment allows accounts to name: none unless set.
    pub fn account_urls_from_settings() -> Result<Vec<Base>, SettingError> {
        let listed = optional(ACCOUNT_URLS).unwrap_or_default();
        let listed = listed.split(',').map(str::trim).filter(|url| !url.is_empty());
        let parsed: Result<_, _> = listed.map(str::parse).collect();
        parsed.map_err(|error| wrong(ACCOUNT_URLS, &error))
    }
}

/// The error of an address in a setting. The address is not repeated: it may contain a password.
fn wrong(setting: &'static str, error: &EndpointError) -> SettingError {
    SettingError::new(setting, format!("is wrong: {}", in_words(error)))
}
