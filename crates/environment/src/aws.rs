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
use aws_sdk_ssm::config::{SharedCredentialsProvider, SharedHttpClient};
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_http_client::{
    Builder,
    tls::{self, TlsContext, TrustStore, rustls_provider::CryptoMode},
};
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};

use crate::settings;

/// The root certificates of Amazon Trust Services, which sign those of AWS's endpoints
/// (AMAZONTRUST).
const AMAZON_ROOTS: &[u8] = include_bytes!("amazon-roots.pem");

/// The timeout that the SDK's own defaults set.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(3100);

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
    let timeouts = TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT);
    let mut config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(EnvironmentVariableRegionProvider::new().region().await)
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .identity_cache(IdentityCache::lazy().build())
        .retry_config(RetryConfig::standard())
        .timeout_config(timeouts.build())
        .sleep_impl(TokioSleep::new())
        .service_config(Variables)
        .http_client(https(trusted));
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
        env::var(format!("{}_{service}", key.env()))
            .or_else(|_| env::var(key.env()))
            .ok()
    }
}

/// Reports whether the environment names its own certificates, or an address that AWS's root
/// certificates may not vouch for: a custom one, or one in China.
fn needs_system_roots(
    is_set: impl Fn(&str) -> bool,
    variables: impl IntoIterator<Item = (String, String)>,
) -> bool {
    let elsewhere = |(name, value): (String, String)| {
        let is_own_address = name.starts_with("AWS_ENDPOINT_URL") && value.starts_with("https:");
        is_own_address || (name == "AWS_REGION" && value.starts_with("cn-"))
    };
    is_set("SSL_CERT_FILE") || is_set("SSL_CERT_DIR") || variables.into_iter().any(elsewhere)
}

/// Loads the configuration for the command's clients, which trust what the system trusts. Uses
/// another profile or region than the environment's, if given.
pub async fn config_of(profile: Option<&str>, region: Option<&str>) -> SdkConfig {
    let mut loader =
        aws_config::defaults(BehaviorVersion::latest()).http_client(https(TrustStore::default()));
    if let Some(profile) = profile {
        loader = loader.profile_name(profile);
    }
    if let Some(region) = region {
        loader = loader.region(aws_config::Region::new(region.to_owned()));
    }
    loader.load().await
}

fn https(trusted: TrustStore) -> SharedHttpClient {
    let context = TlsContext::builder().with_trust_store(trusted).build();
    Builder::new()
        .tls_provider(tls::Provider::Rustls(CryptoMode::Ring))
        .tls_context(context.expect("nothing but certificates was set"))
        .build_https()
}

/// Builds the configuration for an engine on this machine that asks for no credentials.
#[must_use]
pub fn local_config(endpoint: &str) -> SdkConfig {
    // The engine checks no signature, but the SDK signs all the same.
    let credentials = aws_sdk_ssm::config::Credentials::new("local", "local", None, None, "local");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(aws_config::Region::new("local"))
        .endpoint_url(endpoint)
        .credentials_provider(aws_sdk_ssm::config::SharedCredentialsProvider::new(
            credentials,
        ))
        .http_client(Builder::new().build_http())
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], expected: bool) {
        let is_set = |name: &str| variables.iter().any(|(set, _)| *set == name);
        let owned = variables
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()));
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
    }

    #[test]
    fn every_root_certificate_can_be_read() {
        let client = https(TrustStore::empty().with_pem_certificate(AMAZON_ROOTS));
        let config = local_config("https://127.0.0.1")
            .into_builder()
            .http_client(client);
        // Creating a client reads them, and panics if one cannot be read.
        drop(aws_sdk_ssm::Client::new(&config.build()));
        let text = std::str::from_utf8(AMAZON_ROOTS).unwrap();
        assert_eq!(text.matches("-----BEGIN CERTIFICATE-----").count(), 5);
    }
}
