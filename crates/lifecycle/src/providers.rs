//! The clients of the configured accounts, created once and kept while their account is unchanged.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use domain::{
    AccountName,
    configuration::{Account, CloudAccount, Configuration, TokenReference},
};
use environment::{
    TokenError, Tokens, in_words,
    settings::{ACCOUNT_URLS, PLAIN_HTTP_HOST, SettingError, optional},
};
use provider::{Base, Client, EndpointError, Endpoints, Transport, ssh::SetupError};
use secrecy::{ExposeSecret as _, SecretString};

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
    /// Returns where the account's token or key for this access is kept.
    fn secret_of(self, account: &Account) -> &TokenReference {
        let (all, reading) = match account {
            Account::Cloud(account) => (&account.token, &account.read_token),
            Account::Ssh(account) => (&account.login.key, &account.login.read_key),
        };
        match (self, reading) {
            (Self::Read, Some(reading)) => reading,
            (Self::Read, None) | (Self::Change, _) => all,
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

/// The clients created so far.
type Clients = HashMap<(AccountName, Access), Known>;

/// A client, with the account and its token or key as they were when it was created.
#[derive(Debug)]
struct Known {
    account: Account,
    secret: SecretString,
    client: Client,
}

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
        let secret = self.tokens.token(access.secret_of(account)).await;
        let secret =
            secret.map_err(|source| ProvidersError::Token { account: name.clone(), source })?;
        let key = (name.clone(), access);
        if let Some(known) = self.lock().get(&key)
            && known.account == *account
            && known.secret.expose_secret() == secret.expose_secret()
        {
            return Ok(known.client.released());
        }
        let client = match account {
            Account::Cloud(cloud) => self
                .cloud(cloud, secret.clone())
                .map_err(|source| ProvidersError::Endpoint { account: name.clone(), source })?,
            Account::Ssh(ssh) => {
                let client = Client::ssh(ssh.login.clone(), secret.clone(), self.transport.clone());
                client.map_err(|source| ProvidersError::Ssh { account: name.clone(), source })?
            }
        };
        let known = Known { account: account.clone(), secret, client: client.clone() };
        self.lock().insert(key, known);
        Ok(client)
    }

    fn cloud(&self, account: &CloudAccount, token: SecretString) -> Result<Client, EndpointError> {
        let base = self.endpoints.base_of(account)?;
        let transport = self.transport.clone();
        Ok(Client::at(account, base, token, transport))
    }

    /// Forgets a client whose token was refused, and the token itself, which may have been rotated.
    pub fn forget(&self, name: &AccountName) {
        self.forget_to(self.access, name);
    }

    /// Does the same as [`Self::forget`], for the given kind of access.
    pub(crate) fn forget_to(&self, access: Access, name: &AccountName) {
        if let Some(known) = self.lock().remove(&(name.clone(), access)) {
            self.tokens.forget(access.secret_of(&known.account));
        }
    }

    /// Has the token of an account read again for the next client. One that is the same leads to
    /// the same client, which knows what is left of the account's rate limit.
    pub(crate) fn read_again(&self, name: &AccountName, configuration: &Configuration) {
        if let Some(account) = configuration.accounts.get(name) {
            self.tokens.forget(self.access.secret_of(account));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

#[cfg(all(test, unix))]
mod tests {
    use std::{
        fs,
        os::unix::fs::PermissionsExt as _,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use super::*;
    use transition::tests::configuration;

    #[tokio::test]
    async fn a_client_uses_the_token_that_is_in_its_file_now() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let name: AccountName = "do-main".parse().unwrap();
        let mut configuration = configuration();
        let Some(Account::Cloud(account)) = configuration.accounts.get_mut(&name) else {
            panic!("it is a cloud account");
        };
        account.token = TokenReference::File(path.display().to_string());
        let endpoints = Endpoints::all_at(&"http://localhost:1".parse().unwrap());
        let http = provider::http_client().unwrap();
        let providers = Providers::new(Access::Change, Tokens::from_variables(), endpoints, http);
        let known = async || {
            providers.client(&name, &configuration).await?;
            let clients = providers.lock();
            let known = &clients[&(name.clone(), Access::Change)];
            Ok::<_, ProvidersError>(known.secret.expose_secret().to_owned())
        };
        for token in ["first", "second"] {
            fs::write(&path, token).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            assert_eq!(known().await.unwrap(), token);
        }
        // Nothing is sent with a token that its owner has taken away.
        fs::remove_file(&path).unwrap();
        assert!(matches!(known().await, Err(ProvidersError::Token { .. })));
    }

    #[tokio::test]
    async fn a_token_that_is_read_again_and_is_the_same_keeps_its_client() {
        let reads = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&reads);
        let tokens = Tokens::from_reader(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Some(SecretString::from("token"))
        });
        let endpoints = Endpoints::all_at(&"http://localhost:1".parse().unwrap());
        let http = provider::http_client().unwrap();
        let providers = Providers::new(Access::Change, tokens, endpoints, http);
        let (name, configuration) = ("do-main".parse().unwrap(), configuration());
        // As if no client could be made of it.
        let reference = Access::Change.secret_of(&configuration.accounts[&name]);
        providers.tokens.token(reference).await.unwrap();
        for (again, reads_so_far) in [(true, 2), (false, 2), (true, 3)] {
            let known = providers.lock().len();
            if again {
                providers.read_again(&name, &configuration);
                assert_eq!(providers.lock().len(), known);
            }
            providers.client(&name, &configuration).await.unwrap();
            assert_eq!(reads.load(Ordering::Relaxed), reads_so_far);
        }
    }
}
