//! The checks of groups: whether an address answers.
//!
//! The HTTP client is the AWS SDK's, which dispatch links anyway: it follows no redirects, and retries
//! nothing.

use std::{collections::BTreeSet, error::Error, time::Duration};

use aws_smithy_http_client::{
    Connector,
    proxy::ProxyConfig,
    tls::{self, TlsContext, TrustStore, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::{http::HttpConnector as _, orchestrator::HttpRequest};
use domain::configuration::Check;
use tokio::{net::TcpStream, task::JoinSet, time::timeout};

use crate::in_words;

/// How long an address may take to answer. What waits for no check is handed out only after that.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why a check does not pass. Every failure is logged, and the check is tried again in a minute.
type Failure = Box<dyn Error + Send + Sync>;

/// Tries each check once, all at the same time, and returns those that pass.
pub async fn passed(checks: BTreeSet<&Check>) -> BTreeSet<Check> {
    let mut tried = JoinSet::new();
    for check in checks.into_iter().cloned() {
        tried.spawn(async move {
            match within(PATIENCE, &check).await {
                Ok(()) => Some(check),
                Err(failure) => {
                    tracing::info!("The check {check} does not pass: {}", in_words(&*failure));
                    None
                }
            }
        });
    }
    tried.join_all().await.into_iter().flatten().collect()
}

async fn within(patience: Duration, check: &Check) -> Result<(), Failure> {
    timeout(patience, attempt(check)).await?
}

async fn attempt(check: &Check) -> Result<(), Failure> {
    let url = match check {
        Check::Tcp(endpoint) => {
            TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await?;
            return Ok(());
        }
        Check::Http(url) => url,
    };
    // Reading the system's certificates takes a while.
    let is_secure = url.starts_with("https:");
    let trusted = if is_secure { TrustStore::default() } else { TrustStore::empty() };
    let context = TlsContext::builder().with_trust_store(trusted).build();
    let context = context.expect("nothing but certificates was set");
    let connector = Connector::builder()
        .proxy_config(ProxyConfig::disabled())
        .tls_provider(tls::Provider::Rustls(CryptoMode::Ring))
        .tls_context(context)
        .build();
    let mut request = HttpRequest::get(url)?;
    request.headers_mut().insert("user-agent", "offhours");
    match connector.call(request).await?.status().as_u16() {
        200..400 => Ok(()),
        status => Err(format!("answered with status {status}").into()),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::{SocketAddr, TcpListener},
        thread,
    };

    use tokio::time::error::Elapsed;

    use super::*;

    /// Answers one request, and returns what it was.
    fn server(answer: &'static str) -> (SocketAddr, thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let served = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        (address, served)
    }

    async fn attempted(check: &str) -> Result<(), Failure> {
        within(PATIENCE, &check.parse().unwrap()).await
    }

    #[tokio::test]
    async fn an_address_passes_by_its_status_alone() {
        for (answer, passes) in [
            ("HTTP/1.1 204 No Content\r\n\r\n", true),
            // Neither the rest of the body nor the next address is asked for.
            ("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\nup", true),
            ("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\n\r\n", true),
            ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", false),
            ("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n", false),
            ("SSH-2.0-OpenSSH_10.0\r\n", false),
        ] {
            let (address, served) = server(answer);
            let tried = attempted(&format!("http://{address}/health?deep=1")).await;
            assert_eq!(tried.is_ok(), passes, "{answer}: {tried:?}");
            let request = served.join().unwrap();
            assert!(request.starts_with("GET /health?deep=1 HTTP/1.1\r\n"), "{request}");
            assert!(!request.to_lowercase().contains("authorization"), "{request}");
        }
    }

    #[tokio::test]
    async fn an_https_address_needs_tls() {
        let (address, served) = server("HTTP/1.1 200 OK\r\n\r\n");
        let tried = attempted(&format!("https://{address}/")).await;
        assert!(!tried.unwrap_err().is::<Elapsed>());
        assert!(!served.join().unwrap().contains("GET"));
    }

    #[tokio::test]
    async fn all_checks_are_tried_and_a_port_passes_once_it_is_open() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let open: Check = format!("tcp://{}", listener.local_addr().unwrap()).parse().unwrap();
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let closed: Check = format!("tcp://{}", socket.local_addr().unwrap()).parse().unwrap();
        assert_eq!(passed(BTreeSet::from([&closed, &open])).await, BTreeSet::from([open]));
    }

    #[tokio::test]
    async fn an_address_without_an_answer_is_given_up() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let check = format!("http://{}", silent.local_addr().unwrap()).parse().unwrap();
        let tried = within(Duration::from_millis(5), &check).await;
        assert!(tried.unwrap_err().is::<Elapsed>());
    }
}
