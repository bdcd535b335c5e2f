//! The providers' base addresses, and which addresses a token may be sent to.

use std::{collections::BTreeMap, fmt, net::IpAddr, ops::Deref, str::FromStr};

use domain::configuration::{CloudAccount, Provider};
use reqwest::Url;

/// The base addresses to which tokens may be sent: each provider's, before the version of its API,
/// and those that accounts name themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    providers: BTreeMap<Provider, Base>,
    /// The addresses that accounts may name; `None` for any.
    allowed: Option<Vec<Base>>,
}

/// An address to which a token may be sent: https, or plain HTTP on loopback or to a trusted host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base(Url);

/// Why no token is sent to a base address. The address itself is not repeated: it may contain a
/// password.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    #[error("base address is not a URL")]
    NotAUrl(#[source] <Url as FromStr>::Err),
    /// The token could be read in transit.
    #[error("base address must use https; only a loopback address may do without")]
    Insecure,
    /// The address has a user, password, query or fragment, which a base address must not have.
    #[error("base address must be scheme, host, port and path alone")]
    NotABase,
    /// An account names an address of its own that is not allowed.
    #[error("the address is not among those to which tokens may be sent")]
    NotAllowed,
}

impl Endpoints {
    /// Uses the given base addresses, and the public ones where none is given.
    pub fn given<E>(given: impl Fn(Provider) -> Result<Option<Base>, E>) -> Result<Self, E> {
        let of = |provider| {
            let public = || public(provider);
            Ok((provider, given(provider)?.unwrap_or_else(public)))
        };
        let providers = Provider::ALL.into_iter().map(of);
        Ok(Self { providers: providers.collect::<Result<_, _>>()?, allowed: None })
    }

    /// Allows accounts to name no addresses but these. Without a list they may name any.
    #[must_use]
    pub fn allowing(self, addresses: Vec<Base>) -> Self {
        Self { allowed: Some(addresses), ..self }
    }

    /// Uses one address for all providers: a simulator's.
    #[must_use]
    pub fn all_at(base: &Base) -> Self {
        let all = Provider::ALL.into_iter();
        Self { providers: all.map(|provider| (provider, base.clone())).collect(), allowed: None }
    }

    /// Returns the address to which an account's token is sent.
    pub fn base_of(&self, account: &CloudAccount) -> Result<Base, EndpointError> {
        let Some(url) = &account.url else {
            return Ok(self.of_provider(account.provider));
        };
        let base: Base = url.parse()?;
        let is_same = |allowed: &Base| without_slash(allowed) == without_slash(&base);
        match &self.allowed {
            Some(allowed) if !allowed.iter().any(is_same) => Err(EndpointError::NotAllowed),
            Some(_) | None => Ok(base),
        }
    }

    fn of_provider(&self, provider: Provider) -> Base {
        let given = self.providers.get(&provider).cloned();
        given.unwrap_or_else(|| public(provider))
    }
}

fn without_slash(base: &Base) -> &str {
    base.as_str().trim_end_matches('/')
}

fn public(provider: Provider) -> Base {
    let public = provider.facts().endpoint.parse();
    public.expect("the public addresses are https")
}

impl Base {
    /// Parses an address. Plain HTTP to `host` is accepted too: a simulator's name in a network
    /// that is not shared.
    pub fn trusting(text: &str, host: &str) -> Result<Self, EndpointError> {
        Self::checked(text, |base| is_loopback(base) || base.host_str() == Some(host))
    }

    fn checked(text: &str, plain: impl FnOnce(&Url) -> bool) -> Result<Self, EndpointError> {
        let base = secure(text, plain)?;
        let is_plain = base.username().is_empty()
            && base.password().is_none()
            && base.query().is_none()
            && base.fragment().is_none();
        if !is_plain {
            return Err(EndpointError::NotABase);
        }
        Ok(Self(base))
    }
}

/// Parses a complete address, which may be a secret itself: https, or plain HTTP on loopback.
pub fn secret_address(text: &str) -> Result<Url, EndpointError> {
    secure(text, is_loopback)
}

fn secure(text: &str, plain: impl FnOnce(&Url) -> bool) -> Result<Url, EndpointError> {
    let url = Url::parse(text).map_err(EndpointError::NotAUrl)?;
    let is_secure = match url.scheme() {
        "https" => url.host().is_some(),
        "http" => plain(&url),
        _ => false,
    };
    if is_secure { Ok(url) } else { Err(EndpointError::Insecure) }
}

impl FromStr for Base {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        Self::checked(text, is_loopback)
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Deref for Base {
    type Target = Url;

    fn deref(&self) -> &Url {
        &self.0
    }
}

/// Reports whether an address is one of this machine alone.
#[must_use]
pub fn is_loopback(base: &Url) -> bool {
    let host = base.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use domain::fixtures::account;

    use super::*;

    #[test]
    fn https_is_taken_anywhere_and_http_on_loopback_alone() {
        for text in [
            "https://api.example.com",
            "https://gateway.example.com/clouds/do",
            "http://127.0.0.1:8100",
            "http://127.9.8.7",
            "http://localhost:8100/",
            "http://[::1]:8100",
        ] {
            assert!(text.parse::<Base>().is_ok(), "{text}");
            assert!(secret_address(text).is_ok(), "{text}");
        }
        for text in [
            "http://api.example.com",
            "http://10.0.0.1",
            "http://localhost.example.com",
            "http://localhost@example.com",
            "http://127.0.0.1.example.com",
            "http://[2001:db8::1]",
            "ftp://127.0.0.1",
            "file:///tmp/socket",
        ] {
            let error = text.parse::<Base>().unwrap_err();
            assert!(matches!(error, EndpointError::Insecure), "{text}: {error}");
            let error = secret_address(text).unwrap_err();
            assert!(matches!(error, EndpointError::Insecure), "{text}: {error}");
        }
    }

    #[test]
    fn a_base_address_with_more_than_a_base_is_refused_without_being_repeated() {
        for text in [
            "https://someone:hunter2@api.example.com",
            "https://api.example.com/?hunter2",
            "https://api.example.com/#hunter2",
        ] {
            let error = text.parse::<Base>().unwrap_err();
            assert!(matches!(error, EndpointError::NotABase), "{text}");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{text}");
        }
        assert!(matches!("api.example.com".parse::<Base>(), Err(EndpointError::NotAUrl(_))));
    }

    #[test]
    fn a_trusted_host_is_that_one_alone() {
        assert!(Base::trusting("http://simulator:8100", "simulator").is_ok());
        assert!(Base::trusting("http://127.0.0.1:8100", "simulator").is_ok());
        for text in ["http://simulator.example.com", "http://other:8100", "ftp://simulator"] {
            let error = Base::trusting(text, "simulator").unwrap_err();
            assert!(matches!(error, EndpointError::Insecure), "{text}: {error}");
        }
        assert!("http://simulator:8100".parse::<Base>().is_err());
    }

    #[test]
    fn what_is_not_given_is_the_public_address() {
        let given = |text: &'static str| {
            move |provider| match provider {
                Provider::DigitalOcean => Ok(None),
                Provider::Hetzner => text.parse().map(Some),
            }
        };
        let endpoints = Endpoints::given(given("http://localhost:1")).unwrap();
        let public = endpoints.of_provider(Provider::DigitalOcean);
        assert_eq!(public.as_str(), "https://api.digitalocean.com/");
        assert_eq!(endpoints.of_provider(Provider::Hetzner).as_str(), "http://localhost:1/");
        assert!(Endpoints::given(given("http://example.com")).is_err());
    }

    #[test]
    fn an_account_names_an_address_only_if_it_is_allowed() {
        let account =
            |url: &str| CloudAccount { url: Some(url.to_owned()), ..account(Provider::Hetzner) };
        let public = Endpoints::given(|_| Ok::<_, EndpointError>(None)).unwrap();
        let any = public.base_of(&account("https://gateway.example/hz"));
        assert_eq!(any.unwrap().as_str(), "https://gateway.example/hz");
        let listed = public.allowing(vec!["https://gateway.example/hz/".parse().unwrap()]);
        for allowed in ["https://gateway.example/hz", "https://GATEWAY.example/hz/"] {
            listed.base_of(&account(allowed)).unwrap();
        }
        for other in [
            "https://collector.example",
            "https://gateway.example",
            "https://gateway.example/hz/more",
            "https://gateway.example.collector.example/hz",
            "https://gateway.example:8443/hz",
        ] {
            let error = listed.base_of(&account(other)).unwrap_err();
            assert!(matches!(error, EndpointError::NotAllowed), "{other}");
        }
    }
}
