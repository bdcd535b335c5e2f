//! A simulator on loopback with a held clock, and a small client for it.

use cloud_simulator::{BillQuery, Fleet, HeldClock, Simulator};
use domain::ResourceRef;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Monday, 08:00 in Berlin.
pub(crate) const START: &str = "2026-11-23T07:00:00Z";

/// Accounts of both clouds, and a read-only one of each.
const ACCOUNTS: &str = r#"
[[accounts]]
name = "do"
provider = "digitalocean"
token = "do-token"

[[accounts]]
name = "do-reader"
provider = "digitalocean"
token = "do-reader-token"
read_only = true

[[accounts]]
name = "hz"
provider = "hetzner"
token = "hz-token"

[[accounts]]
name = "hz-reader"
provider = "hetzner"
token = "hz-reader-token"
read_only = true
"#;

/// The clouds under test.
pub(crate) struct Clouds {
    pub(crate) simulator: Simulator,
    pub(crate) clock: HeldClock,
    address: String,
}

/// A response as it came over the wire.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub(crate) fn number(&self, name: &str) -> i64 {
        self.header(name).unwrap().parse().unwrap()
    }

    /// Returns the body, after checking the status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        if self.text.is_empty() { Value::Null } else { self.json() }
    }
}

impl Clouds {
    /// Serves a fleet, adding the `account` (`do` or `hz`) to each entry.
    pub(crate) async fn with(fleet: &str) -> Self {
        // A table of only one cloud gets that cloud's account.
        let of = |line: &str| match line.trim_matches(['[', ']']) {
            "droplets" | "databases" | "clusters" => Some("do"),
            "servers" => Some("hz"),
            table if table.starts_with("digitalocean.") => Some("do"),
            table if table.starts_with("hetzner.") => Some("hz"),
            _ => None,
        };
        let owned = fleet.lines().map(|line| {
            let line = line.trim_start();
            let account = of(line).filter(|_| line.starts_with("[["));
            let account = account.map(|name| format!("\naccount = \"{name}\""));
            format!("{line}{}\n", account.unwrap_or_default())
        });
        let owned: String = owned.collect::<Vec<_>>().concat();
        Self::serve(&format!("{ACCOUNTS}{owned}")).await
    }

    /// Serves a fleet that describes its own accounts.
    pub(crate) async fn serve(fleet: &str) -> Self {
        let fleet: Fleet = fleet.parse().unwrap();
        let clock = HeldClock::at(START.parse().unwrap());
        let simulator = Simulator::with_held_clock(&fleet, clock.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let serving = simulator.clone();
        tokio::spawn(async move { serving.serve(listener).await });
        Self { simulator, clock, address }
    }

    /// Advances the simulated time.
    pub(crate) fn pass(&self, seconds: i64) {
        self.clock.move_to(self.clock.now() + SignedDuration::from_secs(seconds)).unwrap();
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The whole state of a resource.
    #[track_caller]
    pub(crate) fn state(&self, reference: &str) -> Value {
        let reference: ResourceRef = reference.parse().unwrap();
        self.simulator.resource(&reference).unwrap()
    }

    /// The quantity of an item on the bill for resources whose references have this prefix. Panics
    /// unless the bill has exactly one such line.
    #[track_caller]
    pub(crate) fn charged(&self, resource: &str, item: &str) -> u64 {
        self.charged_of(resource, item, false)
    }

    /// The same, as if nothing had ever been stopped.
    #[track_caller]
    pub(crate) fn charged_if_left_running(&self, resource: &str, item: &str) -> u64 {
        self.charged_of(resource, item, true)
    }

    #[track_caller]
    fn charged_of(&self, resource: &str, item: &str, left_running: bool) -> u64 {
        let bill = self.simulator.bill(&BillQuery { left_running, ..BillQuery::default() });
        let mut lines = bill
            .lines
            .iter()
            .filter(|line| line.item == item && line.resource.to_string().starts_with(resource));
        let quantity = lines.next().unwrap().quantity;
        assert_eq!(lines.next(), None, "two lines");
        quantity
    }

    /// Sends a request with the usual token of the path's cloud.
    pub(crate) async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let token = if path.starts_with("/v1") { "hz-token" } else { "do-token" };
        self.send_as(token, method, path, body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.send("GET", path, None).await.expect(200)
    }

    pub(crate) async fn send_as(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Answer {
        self.try_send(token, method, path, body).await.expect("an answer")
    }

    /// Sends a request; `None` if the connection is closed without a response.
    pub(crate) async fn try_send(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Option<Answer> {
        let mut stream = self.begin(token, method, path, body).await;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        let text = String::from_utf8(bytes).unwrap();
        if text.is_empty() {
            return None;
        }
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let mut lines = head.lines();
        let status = lines.next()?.split(' ').nth(1)?.parse().unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_owned(), value.to_owned())
        };
        Some(Answer { status, headers: lines.map(header).collect(), text: body.to_owned() })
    }

    /// Sends a request and leaves the response unread: dropping the stream disconnects the client.
    pub(crate) async fn begin(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> TcpStream {
        let body = body.map(|body| body.to_string());
        let content = body.as_ref().map_or_else(String::new, |body| {
            format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len())
        });
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\n\
             connection: close\r\n{content}\r\n{}",
            self.address,
            body.unwrap_or_default()
        );
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }
}
