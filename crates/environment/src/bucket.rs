//! A bucket at S3: writes objects, and links to one of them for a time.

use std::{error::Error, time::Duration};

use aws_config::{SdkConfig, retry::RetryConfig};
use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use aws_runtime::auth::SigningOptions;
use aws_sigv4::{
    http_request::{
        PercentEncodingMode, SignableBody, SignableRequest, SignatureLocation, SigningSettings,
        UriPathNormalizationMode, sign,
    },
    sign::v4::SigningParams,
};
use aws_types::region::Region;
use http::{Method, Request, header::CONTENT_TYPE};
use jiff::Timestamp;

use crate::service::{Service, Target};

/// The longest time for which a link can be signed (S3PRESIGN).
pub const LONGEST_LINK: Duration = Duration::from_hours(7 * 24);

/// A request to a bucket that failed.
#[derive(Debug, thiserror::Error)]
#[error("failed to sign or send a request for the bucket's object {key}")]
pub struct BucketError {
    key: String,
    #[source]
    source: Box<dyn Error + Send + Sync>,
}

/// An object to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    pub key: String,
    pub content_type: &'static str,
    pub contents: String,
}

/// A bucket, with the credentials for it.
#[derive(Debug, Clone)]
pub struct Bucket {
    address: String,
    region: Option<Region>,
    credentials: Option<SharedCredentialsProvider>,
    service: Service,
}

impl Bucket {
    /// Reaches the bucket at `host`, such as `NAME.s3.eu-central-1.amazonaws.com`; or the one of this
    /// name at the endpoint that the configuration has instead of AWS.
    #[must_use]
    pub fn connect(config: &SdkConfig, host: &str) -> Self {
        let address = match config.endpoint_url() {
            Some(endpoint) => {
                let name = host.split('.').next().unwrap_or(host);
                format!("{}/{name}", endpoint.trim_end_matches('/'))
            }
            None => format!("https://{host}"),
        };
        let mut signing = SigningOptions::default();
        signing.double_uri_encode = false;
        signing.normalize_uri_path = false;
        signing.content_sha256_header = true;
        let target = Target {
            endpoint: address.clone(),
            signing,
            // What was not written is written by the next invocation.
            retries: RetryConfig::disabled(),
            ..Target::new(config, "s3", "S3")
        };
        Self {
            address,
            service: Service::connect(config, target),
            region: config.region().cloned(),
            credentials: config.credentials_provider(),
        }
    }

    /// Writes an object, in place of one with its key.
    pub async fn put(&self, object: &Object) -> Result<(), BucketError> {
        let path = format!("/{}", object.key);
        let headers = [(CONTENT_TYPE.as_str(), object.content_type)];
        let body = object.contents.clone().into_bytes();
        let put = self.service.send(Method::PUT, &path, &headers, body).await;
        put.map(drop).map_err(|error| BucketError { key: object.key.clone(), source: error.into() })
    }

    /// Returns a link with which anyone can read an object for a while, at most [`LONGEST_LINK`].
    /// Credentials that end sooner end the link.
    pub async fn link(
        &self,
        key: &str,
        valid_for: Duration,
        now: Timestamp,
    ) -> Result<String, BucketError> {
        let link = self.signed(key, valid_for, now).await;
        link.map_err(|source| BucketError { key: key.to_owned(), source })
    }

    /// Signs a request for an object in its address.
    async fn signed(
        &self,
        key: &str,
        valid_for: Duration,
        now: Timestamp,
    ) -> Result<String, Box<dyn Error + Send + Sync>> {
        let credentials = self.credentials.as_ref().ok_or("no credentials are configured")?;
        let identity = credentials.provide_credentials().await?.into();
        let region = self.region.as_ref().ok_or("no region is configured")?;
        let mut settings = SigningSettings::default();
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        settings.expires_in = Some(valid_for);
        settings.signature_location = SignatureLocation::QueryParams;
        let parameters = SigningParams::builder()
            .identity(&identity)
            .region(region.as_ref())
            .name("s3")
            .time(now.into())
            .settings(settings)
            .build()?
            .into();
        let mut request = Request::get(format!("{}/{key}", self.address)).body(())?;
        let (method, uri) = (request.method().as_str(), request.uri().to_string());
        let body = SignableBody::UnsignedPayload;
        let signable = SignableRequest::new(method, uri, std::iter::empty(), body)?;
        let (instructions, _) = sign(signable, &parameters)?.into_parts();
        instructions.apply_to_request_http1x(&mut request);
        Ok(request.uri().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_aws() -> Bucket {
        // AWS's own example of a link: S3PRESIGN.
        let credentials = aws_credential_types::Credentials::new(
            "AKIAIOSFODNN7EXAMPLE",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            None,
            None,
            "documentation",
        );
        let mut config = crate::aws::local_config("http://127.0.0.1").into_builder();
        config.set_endpoint_url(None);
        let config = config
            .region(Region::new("us-east-1"))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .build();
        Bucket::connect(&config, "examplebucket.s3.amazonaws.com")
    }

    #[tokio::test]
    async fn a_link_is_signed_as_in_the_example_of_aws() {
        let day = Duration::from_hours(24);
        let now = "2013-05-24T00:00:00Z".parse().unwrap();
        let link = at_aws().link("test.txt", day, now).await.unwrap();
        assert!(link.starts_with("https://examplebucket.s3.amazonaws.com/test.txt?"), "{link}");
        for part in [
            "X-Amz-Expires=86400",
            "X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
        ] {
            assert!(link.contains(part), "{link}");
        }
        assert!(!link.contains("wJalr"), "{link}");
    }
}
