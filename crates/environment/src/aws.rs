//! The way to AWS: one HTTP client with rustls and ring, addresses from `AWS_ENDPOINT_URL`.

use aws_config::BehaviorVersion;
pub use aws_config::SdkConfig;
use aws_smithy_http_client::tls::{self, rustls_provider::CryptoMode};

/// Configuration for the SDK's clients, from the environment as in all AWS tools.
pub async fn config() -> SdkConfig {
    config_of(None, None).await
}

/// [`config`], with another profile or region than the environment's.
pub async fn config_of(profile: Option<&str>, region: Option<&str>) -> SdkConfig {
    let mut loader = aws_config::defaults(BehaviorVersion::latest()).http_client(
        aws_smithy_http_client::Builder::new()
            .tls_provider(tls::Provider::Rustls(CryptoMode::Ring))
            .build_https(),
    );
    if let Some(profile) = profile {
        loader = loader.profile_name(profile);
    }
    if let Some(region) = region {
        loader = loader.region(aws_config::Region::new(region.to_owned()));
    }
    loader.load().await
}

/// Configuration for an engine on this machine that asks for no credentials.
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
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .build()
}
