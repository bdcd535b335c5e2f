//! A cloud that follows a script: it answers in order, and a missing, extra or different request
//! fails the test.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use domain::{
    configuration::{CloudAccount, Provider},
    fixtures::account,
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{Base, Client, http_client, transport::LONGEST_BODY};

pub(super) const TOKEN: &str = "dop_v1_5ec2e7f00d5ec2e7f00d";

/// How the cloud answers one request.
pub(super) enum Answer {
    /// Status, further headers, body.
    Whole(u16, Vec<(&'static str, String)>, String),
    /// Sends blanks as long as they are read, up to twice the limit.
    Endless(u16),
    /// Announces more than it sends, then closes the connection.
    CutOff(String),
    /// Closes the connection without a response.
    Closed,
    /// Keeps the connection open and sends nothing.
    Silent,
}

pub(super) fn answer(status: u16, body: impl ToString) -> Answer {
    Answer::Whole(status, Vec::new(), body.to_string())
}

pub(super) fn ok(body: Value) -> Answer {
    answer(200, body)
}

impl Answer {
    pub(super) fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        if let Self::Whole(_, headers, _) = &mut self {
            headers.push((name, value.to_string()));
        }
        self
    }

    fn bytes(&self) -> String {
        match self {
            Self::Whole(status, headers, body) => {
                let headers: String =
                    headers.iter().flat_map(|(name, value)| [name, ": ", value, "\r\n"]).collect();
                let length = body.len();
                format!(
                    "HTTP/1.1 {status} As Scripted\r\n{headers}content-length: {length}\r\n\r\n{body}"
                )
            }
            Self::CutOff(body) => {
                let length = body.len() + 1;
                format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}")
            }
            Self::Endless(status) => {
                format!("HTTP/1.1 {status} As Scripted\r\ntransfer-encoding: chunked\r\n\r\n")
            }
            Self::Closed | Self::Silent => String::new(),
        }
    }
}

/// The running cloud. Every test ends with [`Script::finish`].
pub(super) struct Script {
    base: Base,
    expected: Vec<String>,
    seen: Seen,
    is_finished: bool,
}

impl Script {
    /// Listens for these requests. A request is written as method, path with query, and, if there
    /// is a body, its content type and the body.
    pub(super) async fn play<R: Into<String>>(
        conversation: impl IntoIterator<Item = (R, Answer)>,
    ) -> Self {
        let (expected, answers): (Vec<String>, VecDeque<Answer>) =
            conversation.into_iter().map(|(request, answer)| (request.into(), answer)).unzip();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let answers = Arc::new(Mutex::new(expected.iter().cloned().zip(answers).collect()));
        tokio::spawn(serve(listener, answers, Arc::clone(&seen)));
        Self {
            base: format!("http://127.0.0.1:{port}").parse().unwrap(),
            expected,
            seen,
            is_finished: false,
        }
    }

    pub(super) fn base(&self) -> Base {
        self.base.clone()
    }

    pub(super) fn digitalocean(&self) -> Client {
        let account = account(Provider::DigitalOcean);
        Client::at(&account, self.base(), TOKEN.into(), http_client().unwrap())
    }

    pub(super) fn hetzner(&self, locations: &[&str]) -> Client {
        let datacenters = locations.iter().map(|name| name.parse().unwrap()).collect();
        let account = CloudAccount { datacenters, ..account(Provider::Hetzner) };
        Client::at(&account, self.base(), TOKEN.into(), http_client().unwrap())
    }

    /// Checks the requests whatever their order, and returns them in it.
    #[track_caller]
    pub(super) fn finish_in_any_order(mut self) -> Vec<String> {
        self.is_finished = true;
        let seen = self.seen.lock().unwrap().clone();
        let sorted = |mut requests: Vec<String>| {
            requests.sort();
            requests
        };
        assert_eq!(sorted(seen.clone()), sorted(self.expected.clone()));
        seen
    }

    #[track_caller]
    pub(super) fn finish(mut self) {
        self.is_finished = true;
        assert_eq!(*self.seen.lock().unwrap(), self.expected);
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        assert!(
            self.is_finished || std::thread::panicking(),
            "a script was not checked to its end"
        );
    }
}

type Answers = Arc<Mutex<VecDeque<(String, Answer)>>>;
type Seen = Arc<Mutex<Vec<String>>>;

async fn serve(listener: TcpListener, answers: Answers, seen: Seen) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(converse(stream, Arc::clone(&answers), Arc::clone(&seen)));
    }
}

/// Serves one connection, for as many requests as come over it.
async fn converse(mut stream: TcpStream, answers: Answers, seen: Seen) {
    while let Some(request) = read_request(&mut stream).await {
        let next = {
            let mut answers = answers.lock().unwrap();
            // Requests that are sent at once come in any order.
            let own = answers.iter().position(|(expected, _)| *expected == request);
            answers.remove(own.unwrap_or_default())
        };
        seen.lock().unwrap().push(request);
        let answer = next.map_or_else(|| answer(500, "no such scene"), |(_, answer)| answer);
        stream.write_all(answer.bytes().as_bytes()).await.unwrap();
        match answer {
            Answer::Whole(..) => {}
            Answer::Endless(_) => return blanks(&mut stream).await,
            Answer::CutOff(_) | Answer::Closed => return,
            Answer::Silent => std::future::pending().await,
        }
    }
}

async fn blanks(stream: &mut TcpStream) {
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    for _ in 0..2 * LONGEST_BODY / 0x10000 {
        if stream.write_all(chunk.as_bytes()).await.is_err() {
            return;
        }
    }
    panic!("a body is read to its end");
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.unwrap() == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let header = |wanted: &str| {
        head.lines().skip(1).find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case(wanted).then(|| value.to_owned())
        })
    };
    let length: usize = header("content-length").map_or(0, |length| length.parse().unwrap());
    let body_begin = head_end + 4;
    while bytes.len() < body_begin + length {
        if stream.read_buf(&mut bytes).await.unwrap() == 0 {
            return None;
        }
    }
    let first_line = head.lines().next()?;
    let mut request = first_line.trim_end_matches(" HTTP/1.1").to_owned();
    if let Some(content_type) = header("content-type") {
        request = format!("{request} {content_type}");
    }
    if length > 0 {
        let body = String::from_utf8(bytes[body_begin..].to_vec()).unwrap();
        request = format!("{request} {body}");
    }
    if header("authorization") != Some(format!("Bearer {TOKEN}")) {
        request.push_str(" without its token");
    }
    if header("user-agent").as_deref() != Some("offhours") {
        request.push_str(" without our name");
    }
    Some(request)
}
