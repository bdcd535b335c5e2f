//! A bucket at S3: writes objects, and links to one of them for a time.
//!
//! For these two requests, `aws-sdk-s3` would be the largest of all crates. They are signed with the
//! SDK's own signer, and sent with its own client.

use std::{error::Error, time::Duration};

use aws_config::SdkConfig;
use aws_sdk_ssm::config::{
    ProvideCredentials as _, Region, SharedCredentialsProvider, SharedHttpClient,
};
use aws_sigv4::{
    http_request::{
        PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SignatureLocation,
        SigningSettings, UriPathNormalizationMode, sign,
    },
    sign::v4::SigningParams,
};
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_runtime::client::orchestrator::operation::Operation;
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, OrchestratorError};
use aws_smithy_types::body::SdkBody;
use http::{Request, header::CONTENT_TYPE};
use jiff::Timestamp;

use crate::aws;

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

/// What S3 answered instead of success.
#[derive(Debug, thiserror::Error)]
#[error("S3 answered with status {0}")]
struct Refused(u16);

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
    client: Option<SharedHttpClient>,
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
        Self {
            address,
            region: config.region().cloned(),
            credentials: config.credentials_provider(),
            client: config.http_client(),
        }
    }

    /// Writes an object, in place of one with its key.
    pub async fn put(&self, object: &Object, now: Timestamp) -> Result<(), BucketError> {
        let failed = |source| BucketError { key: object.key.clone(), source };
        let body = object.contents.as_bytes();
        let request = Request::put(self.uri(&object.key)).header(CONTENT_TYPE, object.content_type);
        let request = request.body(body.to_vec()).map_err(|error| failed(error.into()))?;
        let request = self.signed(request, SignableBody::Bytes(body), None, now).await;
        self.send(request.map_err(failed)?).await.map_err(failed)
    }

    /// Returns a link with which anyone can read an object for a while, at most [`LONGEST_LINK`].
    /// Credentials that end sooner end the link.
    pub async fn link(
        &self,
        key: &str,
        valid_for: Duration,
        now: Timestamp,
    ) -> Result<String, BucketError> {
        let failed = |source| BucketError { key: key.to_owned(), source };
        let request = Request::get(self.uri(key)).body(Vec::new());
        let request = request.map_err(|error| failed(error.into()))?;
        let body = SignableBody::UnsignedPayload;
        let request = self.signed(request, body, Some(valid_for), now).await.map_err(failed)?;
        Ok(request.uri().to_string())
    }

    fn uri(&self, key: &str) -> String {
        format!("{}/{key}", self.address)
    }

    /// Signs a request in its headers, or in its address if it is valid for a given time.
    async fn signed(
        &self,
        mut request: Request<Vec<u8>>,
        body: SignableBody<'_>,
        valid_for: Option<Duration>,
        now: Timestamp,
    ) -> Result<Request<Vec<u8>>, Box<dyn Error + Send + Sync>> {
        let credentials = self.credentials.as_ref().ok_or("no credentials are configured")?;
        let identity = credentials.provide_credentials().await?.into();
        let region = self.region.as_ref().ok_or("no region is configured")?;
        let mut settings = SigningSettings::default();
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        settings.expires_in = valid_for;
        if valid_for.is_some() {
            settings.signature_location = SignatureLocation::QueryParams;
        } else {
            settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        }
        let parameters = SigningParams::builder()
            .identity(&identity)
            .region(region.as_ref())
            .name("s3")
            .time(now.into())
            .settings(settings)
            .build()?
            .into();
        let uri = request.uri().to_string();
        let headers = request.headers().iter();
        let headers =
            headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let signable = SignableRequest::new(request.method().as_str(), uri, headers, body)?;
        let (instructions, _) = sign(signable, &parameters)?.into_parts();
        instructions.apply_to_request_http1x(&mut request);
        Ok(request)
    }

    async fn send(&self, request: Request<Vec<u8>>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let client = self.client.clone().ok_or("no HTTP client is configured")?;
        let uri: http::Uri = request.uri().clone();
        let endpoint = format!(
            "{}://{}",
            uri.scheme_str().unwrap_or("https"),
            uri.authority().map_or("", |authority| authority.as_str())
        );
        let operation = Operation::builder()
            .service_name("S3")
            .operation_name("PutObject")
            .http_client(client)
            .endpoint_url(&endpoint)
            .no_auth()
            // What was not written is written by the next invocation.
            .no_retry()
            .timeout_config(aws::timeouts())
            .sleep_impl(TokioSleep::new())
            .serializer(|request: Request<Vec<u8>>| {
                Ok(HttpRequest::try_from(request.map(SdkBody::from))?)
            })
            .deserializer(|answer| match answer.status() {
                status if status.is_success() => Ok(()),
                status => Err(OrchestratorError::operation(Refused(status.as_u16()))),
            })
            .build();
        Ok(operation.invoke(request).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_aws() -> Bucket {
        // AWS's own example of a link: S3PRESIGN.
        let credentials = aws_sdk_ssm::config::Credentials::new(
            "AKIAIOSFODNN7EXAMPLE",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            None,
            None,
            "documentation",
        );
        let config = SdkConfig::builder()
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
