//! The connection to AWS: one HTTP client with rustls and ring, endpoints from `AWS_ENDPOINT_URL`.

use std::{env, time::Duration};

pub use aws_config::SdkConfig;
use aws_config::{
    BehaviorVersion,
    environment::{EnvironmentVariableCredentialsProvider, EnvironmentVariableRegionProvider},
    identity::IdentityCache,
    meta::region::ProvideRegion as _,
    retry::RetryConfig,
    timeout::TimeoutConfig,
};
use aws_credential_types::{Credentials, provider::SharedCredentialsProvider};
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_http_client::{
    Builder, Connector,
    proxy::ProxyConfig,
    tls::{self, TlsContext, TrustStore, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::{
    http::SharedHttpClient, runtime_components::RuntimeComponents,
};
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};

use crate::settings::{self, SettingError};

/// The root certificates of Amazon Trust Services, which sign those of AWS's endpoints
/// (AMAZONTRUST).
const AMAZON_ROOTS: &[u8] = include_bytes!("amazon-roots.pem");

/// The timeout that the SDK's own defaults set.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_millis(3100);

/// How long one attempt may take: AWS answers within a fraction of it.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an unused connection is kept. A function is frozen between two invocations, a minute
/// apart, and its connections may be gone by then without a word.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// Builds the configuration for a function's clients, from the variables that AWS Lambda sets and
/// those of the endpoints.
///
/// A function trusts Amazon's own root certificates, because reading all of the system's takes
/// longer than the rest of its start. It reads the system's where AWS's own may not suffice. It
/// does not look for profiles or instance credentials either, because a function has none; the code
/// that would look for them is not linked.
pub async fn config() -> SdkConfig {
    let trusted = if needs_system_roots(|name| env::var_os(name).is_some(), env::vars()) {
        TrustStore::default()
    } else {
        TrustStore::empty().with_pem_certificate(AMAZON_ROOTS)
    };
    let credentials = EnvironmentVariableCredentialsProvider::new();
    let mut config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(EnvironmentVariableRegionProvider::new().region().await)
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .identity_cache(IdentityCache::lazy().build())
        .retry_config(RetryConfig::standard())
        .timeout_config(timeouts())
        .sleep_impl(TokioSleep::new())
        .service_config(Variables)
        .http_client(https(trusted, ProxyConfig::disabled()));
    config.set_endpoint_url(settings::optional(ENDPOINT_URL));
    config.build()
}

const ENDPOINT_URL: &str = "AWS_ENDPOINT_URL";

/// Settings for a single service in the environment: above all `AWS_ENDPOINT_URL_LAMBDA`.
#[derive(Debug)]
struct Variables;

impl LoadServiceConfig for Variables {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        let service = key.service_id().replace([' ', '-'], "_").to_uppercase();
        env::var(format!("{}_{service}", key.env())).or_else(|_| env::var(key.env())).ok()
    }
}

pub(crate) fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(ATTEMPT_TIMEOUT)
        .operation_attempt_timeout(ATTEMPT_TIMEOUT)
        .build()
}

/// The regions for whose endpoints Amazon's own root certificates vouch: those of the partitions
/// `aws` and `aws-us-gov`. China, the European Sovereign Cloud and the isolated regions, as
/// `us-iso-east-1`, have others.
const AMAZONS_REGIONS: [&str; 9] = ["af-", "ap-", "ca-", "eu-", "il-", "me-", "mx-", "sa-", "us-"];

/// Reports whether the environment names its own certificates, or an address that AWS's root
/// certificates may not vouch for: a custom one, or one in another partition.
fn needs_system_roots(
    is_set: impl Fn(&str) -> bool,
    variables: impl IntoIterator<Item = (String, String)>,
) -> bool {
    let elsewhere = |(name, value): (String, String)| {
        let is_own_address = name.starts_with("AWS_ENDPOINT_URL") && value.starts_with("https:");
        let is_amazons =
            AMAZONS_REGIONS.iter().any(|one| value.starts_with(one)) && !value.contains("-iso");
        is_own_address || (name == "AWS_REGION" && !is_amazons)
    };
    is_set("SSL_CERT_FILE") || is_set("SSL_CERT_DIR") || variables.into_iter().any(elsewhere)
}

/// Loads the configuration for the command's clients. They trust what the system trusts and the
/// certificates in the file `AWS_CA_BUNDLE`, and go through the proxies that the environment names.
/// Uses another profile or region than the environment's, if given.
///
/// # Errors
/// The setting that names a file which cannot be read.
pub async fn config_of(
    profile: Option<&str>,
    region: Option<&str>,
) -> Result<SdkConfig, SettingError> {
    let mut trusted = TrustStore::default();
    if let Some(path) = settings::optional(CA_BUNDLE) {
        let certificates = std::fs::read(&path);
        let certificates = certificates.map_err(|error| {
            SettingError::new(CA_BUNDLE, format!("names {path}, which cannot be read: {error}"))
        })?;
        trusted.add_pem_certificate(certificates);
    }
    let mut loader = aws_config::defaults(BehaviorVersion::latest())
        .timeout_config(timeouts())
        .http_client(https(trusted, ProxyConfig::from_env()));
    if let Some(profile) = profile {
        loader = loader.profile_name(profile);
    }
    if let Some(region) = region {
        loader = loader.region(aws_config::Region::new(region.to_owned()));
    }
    Ok(loader.load().await)
}

/// The AWS tools' setting for certificates to trust besides the system's.
const CA_BUNDLE: &str = "AWS_CA_BUNDLE";

fn https(trusted: TrustStore, proxies: ProxyConfig) -> SharedHttpClient {
    let context = TlsContext::builder().with_trust_store(trusted).build();
    let context = context.expect("nothing but certificates was set");
    Builder::new().build_with_connector_fn(move |settings, components| {
        let mut connector =
            Connector::builder().proxy_config(proxies.clone()).pool_idle_timeout(IDLE_TIMEOUT);
        connector.set_connector_settings(settings.cloned());
        connector.set_sleep_impl(components.and_then(RuntimeComponents::sleep_impl));
        connector
            .tls_provider(tls::Provider::Rustls(CryptoMode::Ring))
            .tls_context(context.clone())
            .build()
    })
}

/// Builds the configuration for an engine on this machine that asks for no credentials.
#[must_use]
pub fn local_config(endpoint: &str) -> SdkConfig {
    // The engine checks no signature, but the SDK signs all the same.
    let credentials = Credentials::new("local", "local", None, None, "local");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(aws_config::Region::new("local"))
        .endpoint_url(endpoint)
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .http_client(Builder::new().build_http())
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::{Service, Target};

    #[track_caller]
    fn check(variables: &[(&str, &str)], expected: bool) {
        let is_set = |name: &str| variables.iter().any(|(set, _)| *set == name);
        let owned = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(needs_system_roots(is_set, owned), expected, "{variables:?}");
    }

    #[test]
    fn at_aws_its_own_root_certificates_do() {
        check(&[], false);
        check(&[("AWS_REGION", "eu-central-1")], false);
        check(&[("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")], false);
    }

    #[test]
    fn the_systems_are_read_where_others_may_be_needed() {
        check(&[("SSL_CERT_FILE", "/etc/ssl/own.pem")], true);
        check(&[("SSL_CERT_DIR", "/etc/ssl/own")], true);
        check(&[("AWS_ENDPOINT_URL", "https://localstack:4566")], true);
        check(&[("AWS_ENDPOINT_URL_SSM", "https://vpce.example")], true);
        check(&[("AWS_REGION", "cn-north-1")], true);
        check(&[("AWS_REGION", "eusc-de-east-1")], true);
        check(&[("AWS_REGION", "us-iso-east-1")], true);
    }

    #[test]
    fn every_root_certificate_can_be_read() {
        let trusted = TrustStore::empty().with_pem_certificate(AMAZON_ROOTS);
        let client = https(trusted, ProxyConfig::disabled());
        let config = local_config("https://127.0.0.1").into_builder().http_client(client);
        let config = config.build();
        // Creating a client reads them, and panics if one cannot be read.
        drop(Service::connect(&config, Target::new(&config, "ssm", "SSM")));
        let text = std::str::from_utf8(AMAZON_ROOTS).unwrap();
        assert_eq!(text.matches("-----BEGIN CERTIFICATE-----").count(), 5);
    }
}
