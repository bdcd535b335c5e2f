//! Requests to those services of AWS that are asked for one or two things each: Lambda, Systems
//! Manager, EventBridge and S3.
//!
//! The SDK's crates for them take longer to compile than all of our own. The SDK's own runtime signs,
//! sends and retries these requests, too.

use std::fmt;

use aws_config::{SdkConfig, retry::RetryConfig, timeout::TimeoutConfig};
use aws_runtime::{
    auth::{
        SigV4OperationSigningConfig, SigningOptions,
        sigv4::{SCHEME_ID, SigV4AuthScheme},
    },
    recursion_detection::RecursionDetectionInterceptor,
    retries::classifiers::AwsErrorCodeClassifier,
    service_clock_skew::{ServiceClockSkewClassifier, ServiceClockSkewInterceptor},
};
use aws_smithy_runtime::client::{
    orchestrator::operation::Operation,
    retries::classifiers::{HttpStatusCodeClassifier, TransientErrorClassifier},
};
use aws_smithy_runtime_api::{
    client::{
        auth::{AuthSchemeOptionResolverParams, static_resolver::StaticAuthSchemeOptionResolver},
        orchestrator::{HttpRequest, HttpResponse, OrchestratorError, SensitiveOutput},
        result::SdkError,
        runtime_components::RuntimeComponentsBuilder,
        runtime_plugin::StaticRuntimePlugin,
    },
    http::Headers,
};
use aws_smithy_types::{
    body::SdkBody,
    config_bag::Layer,
    error::metadata::{ErrorMetadata, ProvideErrorMetadata},
};
use aws_types::{SigningName, region::SigningRegion, service_config::ServiceConfigKey};
use domain::text::one_line;
use http::{
    Method, Request,
    header::{CONTENT_TYPE, USER_AGENT},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The most that is repeated of what AWS says of a refusal, in characters.
const LONGEST_MESSAGE: usize = 500;

/// A service, as its requests are sent.
#[derive(Debug)]
pub(crate) struct Target {
    /// The name under which it signs, which its address begins with.
    pub(crate) name: &'static str,
    pub(crate) endpoint: String,
    pub(crate) signing: SigningOptions,
    pub(crate) retries: RetryConfig,
    pub(crate) timeouts: TimeoutConfig,
}

impl Target {
    /// Returns a service, by its name and by its identifier, with which settings name it, such as
    /// `AWS_ENDPOINT_URL_LAMBDA`.
    pub(crate) fn new(config: &SdkConfig, name: &'static str, id: &str) -> Self {
        let key = ServiceConfigKey::builder().service_id(id);
        let key = key.env("AWS_ENDPOINT_URL").profile("endpoint_url").build();
        let key = key.expect("all parts are given");
        let endpoint = config.service_config().and_then(|settings| settings.load_config(key));
        let endpoint = endpoint.or_else(|| config.endpoint_url().map(str::to_owned));
        Self {
            name,
            endpoint: endpoint.unwrap_or_else(|| address(config, name)),
            signing: SigningOptions::default(),
            retries: config.retry_config().cloned().unwrap_or_else(RetryConfig::standard),
            timeouts: config.timeout_config().cloned().unwrap_or_else(crate::aws::timeouts),
        }
    }
}

/// The partitions that have domains of their own, by what their regions begin with: the domain, and
/// the one for IPv6 as well, as the SDK's crates list them.
const PARTITIONS: [(&str, &str, &str); 6] = [
    ("cn-", "amazonaws.com.cn", "api.amazonwebservices.com.cn"),
    ("eusc-", "amazonaws.eu", "api.amazonwebservices.eu"),
    ("us-iso-", "c2s.ic.gov", "api.aws.ic.gov"),
    ("us-isob-", "sc2s.sgov.gov", "api.aws.scloud"),
    ("eu-isoe-", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"),
    ("us-isof-", "csp.hci.ic.gov", "api.aws.hci.ic.gov"),
];

/// Returns the address of a service in the region that the configuration names.
fn address(config: &SdkConfig, name: &str) -> String {
    // Without a region, the request fails before it is sent: it cannot be signed.
    let region = config.region().map(ToString::to_string).unwrap_or_default();
    let partition = PARTITIONS.iter().find(|(prefix, ..)| region.starts_with(prefix));
    let &(_, domain, both) = partition.unwrap_or(&("", "amazonaws.com", "api.aws"));
    let domain = if config.use_dual_stack() == Some(true) { both } else { domain };
    // In GovCloud, only Lambda has a second address for it.
    let has_fips = name == "lambda" || !region.starts_with("us-gov-");
    let fips = if config.use_fips() == Some(true) && has_fips { "-fips" } else { "" };
    format!("https://{name}{fips}.{region}.{domain}")
}

/// A client of one service.
#[derive(Debug, Clone)]
pub(crate) struct Service(Operation<Request<Vec<u8>>, Answer, Refused>);

impl Service {
    pub(crate) fn connect(config: &SdkConfig, target: Target) -> Self {
        let mut settings = Layer::new("signing");
        settings.store_put(AuthSchemeOptionResolverParams::new(()));
        settings.store_put(SensitiveOutput);
        settings.store_put(SigV4OperationSigningConfig {
            region: config.region().cloned().map(SigningRegion::from),
            region_set: None,
            name: Some(SigningName::from_static(target.name)),
            signing_options: target.signing,
        });
        let mut components = RuntimeComponentsBuilder::new("signing")
            .with_auth_scheme(SigV4AuthScheme::new())
            .with_auth_scheme_option_resolver(Some(StaticAuthSchemeOptionResolver::new(vec![
                SCHEME_ID,
            ])))
            .with_identity_cache(config.identity_cache())
            .with_http_client(config.http_client())
            .with_sleep_impl(config.sleep_impl())
            .with_time_source(config.time_source())
            .with_retry_classifier(TransientErrorClassifier::<Refused>::new())
            .with_retry_classifier(AwsErrorCodeClassifier::<Refused>::new())
            .with_retry_classifier(HttpStatusCodeClassifier::default())
            .with_retry_classifier(ServiceClockSkewClassifier::<Refused>::new());
        if let Some(credentials) = config.credentials_provider() {
            components = components.with_identity_resolver(SCHEME_ID, credentials);
        }
        let signed = StaticRuntimePlugin::new()
            .with_config(settings.freeze())
            .with_runtime_components(components);
        let operation = Operation::builder()
            .service_name(target.name)
            .operation_name("request")
            .endpoint_url(&target.endpoint)
            .standard_retry(&target.retries)
            .timeout_config(target.timeouts)
            .with_connection_poisoning()
            .interceptor(ServiceClockSkewInterceptor::new())
            .interceptor(RecursionDetectionInterceptor::new())
            .serializer(|request: Request<Vec<u8>>| {
                Ok(HttpRequest::try_from(request.map(SdkBody::from))?)
            })
            .deserializer(Answer::read)
            .runtime_plugin(signed);
        Self(operation.build())
    }

    /// Calls an operation by its full name, as the services with one address for all of them want it.
    pub(crate) async fn call<Output: DeserializeOwned>(
        &self,
        operation: &str,
        input: &impl Serialize,
    ) -> Result<Output, ServiceError> {
        let headers =
            [("x-amz-target", operation), (CONTENT_TYPE.as_str(), "application/x-amz-json-1.1")];
        let input = serde_json::to_vec(input)?;
        self.send(Method::POST, "/", &headers, input).await?.json()
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<Answer, ServiceError> {
        let mut request = Request::builder().method(method).uri(path);
        request = request.header(USER_AGENT, concat!("offhours/", env!("CARGO_PKG_VERSION")));
        for &(name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(body).map_err(|error| ServiceError::Unanswered(error.into()))?;
        self.0.invoke(request).await.map_err(|error| match error {
            SdkError::ServiceError(refused) => ServiceError::Refused(refused.into_err()),
            error @ (SdkError::ConstructionFailure(_)
            | SdkError::TimeoutError(_)
            | SdkError::DispatchFailure(_)
            | SdkError::ResponseError(_)
            | _) => ServiceError::Unanswered(error.into()),
        })
    }
}

/// A request without success.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// AWS refused it, or failed.
    #[error(transparent)]
    Refused(Refused),
    /// It was not sent, or not answered in a form that can be read.
    #[error(transparent)]
    Unanswered(Box<dyn std::error::Error + Send + Sync>),
}

impl From<serde_json::Error> for ServiceError {
    fn from(error: serde_json::Error) -> Self {
        Self::Unanswered(error.into())
    }
}

/// What AWS answered with success. It may hold a secret.
pub(crate) struct Answer {
    pub(crate) headers: Headers,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    fn read(response: &HttpResponse) -> Result<Self, OrchestratorError<Refused>> {
        let body = response.body().bytes().unwrap_or_default();
        if response.status().is_success() {
            Ok(Self { headers: response.headers().clone(), body: body.to_vec() })
        } else {
            Err(OrchestratorError::operation(Refused::read(response, body)))
        }
    }

    pub(crate) fn json<Output: DeserializeOwned>(&self) -> Result<Output, ServiceError> {
        Ok(serde_json::from_slice(&self.body)?)
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").finish_non_exhaustive()
    }
}

/// What AWS answered instead of success.
#[derive(Debug)]
pub struct Refused {
    status: u16,
    said: ErrorMetadata,
}

/// An error, in the two forms of AWS's JSON.
#[derive(Debug, Default, Deserialize)]
struct ErrorBody {
    #[serde(rename = "__type")]
    code: Option<String>,
    #[serde(alias = "Message")]
    message: Option<String>,
}

impl Refused {
    fn read(response: &HttpResponse, body: &[u8]) -> Self {
        let body: ErrorBody = serde_json::from_slice(body).unwrap_or_default();
        let mut said = ErrorMetadata::builder();
        let code = response.headers().get("x-amzn-errortype").or(body.code.as_deref());
        // A namespace may stand before it, and an address after it.
        if let Some(code) = code.and_then(|code| code.rsplit('#').next()?.split(':').next()) {
            said = said.code(one_line(code, LONGEST_MESSAGE));
        }
        if let Some(message) = &body.message {
            said = said.message(one_line(message, LONGEST_MESSAGE));
        }
        Self { status: response.status().as_u16(), said: said.build() }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.said.message().or(self.said.code()) {
            Some(said) => f.write_str(said),
            None => write!(f, "AWS answered with status {}", self.status),
        }
    }
}

impl std::error::Error for Refused {}

impl ProvideErrorMetadata for Refused {
    fn meta(&self) -> &ErrorMetadata {
        &self.said
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::{Read as _, Write as _},
        net::TcpListener,
        sync::Arc,
        thread,
        time::Duration,
    };

    use aws_config::Region;

    use super::*;
    use crate::aws::local_config;

    #[track_caller]
    fn check_address(region: &str, fips: bool, both: bool, expected: &str) {
        let mut config = local_config("").into_builder();
        config.set_endpoint_url(None);
        let config = config.region(Region::new(region.to_owned())).use_fips(fips);
        let config = config.use_dual_stack(both).build();
        assert_eq!(Target::new(&config, "ssm", "SSM").endpoint, expected);
    }

    #[test]
    fn a_service_is_at_the_address_of_its_region() {
        check_address("eu-central-1", false, false, "https://ssm.eu-central-1.amazonaws.com");
        check_address("cn-north-1", false, false, "https://ssm.cn-north-1.amazonaws.com.cn");
        check_address("eusc-de-east-1", false, false, "https://ssm.eusc-de-east-1.amazonaws.eu");
        check_address("us-isob-east-1", false, false, "https://ssm.us-isob-east-1.sc2s.sgov.gov");
        check_address("us-east-1", true, false, "https://ssm-fips.us-east-1.amazonaws.com");
        check_address("us-east-1", true, true, "https://ssm-fips.us-east-1.api.aws");
        check_address("us-gov-west-1", true, false, "https://ssm.us-gov-west-1.amazonaws.com");
    }

    /// Gives one answer after another, by its head and body, and returns the requests for them.
    fn server<const N: usize>(
        answers: [(&'static str, &'static str); N],
    ) -> (Service, thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let served = thread::spawn(move || {
            let answered = answers.iter().map(|(head, body)| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 4096];
                let read = stream.read(&mut request).unwrap();
                let length = body.len();
                write!(stream, "HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n{body}")
                    .unwrap();
                String::from_utf8_lossy(&request[..read]).into_owned()
            });
            answered.collect()
        });
        let retries = RetryConfig::standard().with_initial_backoff(Duration::ZERO);
        let config = local_config(&format!("http://{address}")).into_builder();
        let config = config.region(Region::new("eu-central-1")).retry_config(retries).build();
        (Service::connect(&config, Target::new(&config, "ssm", "SSM")), served)
    }

    #[tokio::test]
    async fn a_request_is_signed_for_its_service_and_sent_again_after_a_failure() {
        let (service, served) = server([
            ("503 Service Unavailable\r\nconnection: close", ""),
            ("200 OK\r\nconnection: close", r#"{"secret":"hush"}"#),
        ]);
        let log = tempfile::NamedTempFile::new().unwrap();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(Arc::new(log.reopen().unwrap()))
            .finish();
        // An event that a thread without a subscriber comes to first may be off for all threads.
        tracing::subscriber::set_global_default(subscriber).unwrap();
        let headers = [("x-amz-target", "AmazonSSM.GetParameter")];
        let body = b"{}".to_vec();
        let answer = service.send(Method::POST, "/a%3Ab", &headers, body).await.unwrap();
        assert_eq!(answer.json::<serde_json::Value>().unwrap()["secret"], "hush");
        let logged = fs::read_to_string(log.path()).unwrap();
        assert!(logged.contains("Answer") && !logged.contains("hush"), "{logged}");
        let requests = served.join().unwrap();
        assert_eq!(requests.len(), 2);
        for request in requests {
            assert!(request.starts_with("POST /a%3Ab HTTP/1.1\r\n"), "{request}");
            for part in [
                "x-amz-target: AmazonSSM.GetParameter\r\n",
                "user-agent: offhours/",
                "/eu-central-1/ssm/aws4_request, SignedHeaders=host;x-amz-date;x-amz-target, ",
            ] {
                assert!(request.contains(part), "{request}");
            }
        }
    }

    #[tokio::test]
    async fn a_refusal_has_the_code_and_the_words_of_aws() {
        let at_aws = "404 Not Found\r\nx-amzn-errortype: ResourceNotFoundException:http://aws/";
        for (head, body, code, words) in [
            (
                "400 Bad Request",
                r#"{"__type":"com.amazonaws.ssm#ParameterNotFound"}"#,
                Some("ParameterNotFound"),
                "ParameterNotFound",
            ),
            (at_aws, r#"{"Message":"none\nsuch"}"#, Some("ResourceNotFoundException"), "none such"),
            ("403 Forbidden", "<Error/>", None, "AWS answered with status 403"),
        ] {
            let (service, served) = server([(head, body)]);
            let refused = service.call::<()>("AmazonSSM.GetParameter", &()).await.unwrap_err();
            served.join().unwrap();
            assert_eq!(refused.to_string(), words);
            match refused {
                ServiceError::Refused(refused) => assert_eq!(refused.code(), code, "{words}"),
                ServiceError::Unanswered(error) => panic!("{error}"),
            }
        }
    }
}
