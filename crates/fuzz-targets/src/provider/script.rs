//! A cloud that gives the responses of an input, one after another, and then breaks all
//! connections.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, header::AUTHORIZATION};
use provider::{Carrier, CarrierError, CarrierResult};
use serde_json::Value;

/// The host of the cloud.
pub(super) const HOST: &str = "cloud.example.com";

/// The account's token.
pub(super) const TOKEN: &str = "dop_v1_5ec2e75ec2e75ec2e7";

/// The maximum number of responses in an input; further ones are ignored.
const MOST: usize = 32;

/// One response, or how it was lost.
#[derive(Debug, Clone)]
pub(super) struct Answer(Result<Response<Bytes>, CarrierError>);

impl Answer {
    fn read(text: &[u8]) -> Self {
        let mut rest = text;
        let status = line(&mut rest);
        match &*status {
            "refused" => return Self(Err(CarrierError::NeverLeft)),
            "broken" => return Self(Err(CarrierError::Broken)),
            "timed out" => return Self(Err(CarrierError::TimedOut)),
            _ => {}
        }
        let status = status.parse().ok().and_then(|status: u16| StatusCode::from_u16(status).ok());
        let mut response = Response::builder().status(status.unwrap_or(StatusCode::OK));
        loop {
            let header = line(&mut rest);
            let Some((name, value)) = header.split_once(':') else {
                break;
            };
            let header = (name.trim().parse::<HeaderName>(), HeaderValue::from_str(value.trim()));
            if let (Ok(name), Ok(value)) = header {
                response = response.header(name, value);
            }
        }
        let whole = response.body(Bytes::copy_from_slice(rest));
        Self(Ok(whole.expect("its parts are valid")))
    }

    pub(super) fn status(&self) -> Option<u16> {
        self.0.as_ref().ok().map(|response| response.status().as_u16())
    }

    pub(super) fn is_success(&self) -> bool {
        self.status().is_some_and(|status| (200..300).contains(&status))
    }

    /// Reports whether it is a refusal, and not a failure of the service behind.
    pub(super) fn is_refusal(&self) -> bool {
        self.status().is_some_and(|status| (400..500).contains(&status))
    }

    pub(super) fn never_left(&self) -> bool {
        matches!(self.0, Err(CarrierError::NeverLeft))
    }

    fn is_broken(&self) -> bool {
        matches!(self.0, Err(CarrierError::Broken))
    }

    /// Its body as JSON; null if it is not JSON. Invalid UTF-8 is tolerated: a field that is not
    /// read may be anything.
    pub(super) fn json(&self) -> Value {
        let body = self.0.as_ref().ok().map(Response::body);
        let text = body.map(|body| String::from_utf8_lossy(body));
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }
}

/// Takes the next line.
fn line(rest: &mut &[u8]) -> String {
    let end = rest.iter().position(|byte| *byte == b'\n');
    let (line, after) = match end {
        Some(end) => (&rest[..end], &rest[end + 1..]),
        None => (*rest, &rest[rest.len()..]),
    };
    *rest = after;
    String::from_utf8_lossy(line).into_owned()
}

/// The responses of an input, and the requests that were made.
#[derive(Debug, Default)]
pub(super) struct Script {
    left: Mutex<VecDeque<Answer>>,
    given: Mutex<Vec<Answer>>,
    asked: Mutex<Vec<Request<Bytes>>>,
}

impl Script {
    /// Reads an input: its question, and the responses to it.
    pub(super) fn read(data: &[u8]) -> (String, Self) {
        let mut rest = data;
        let question = line(&mut rest);
        let (mut answers, mut begin) = (VecDeque::new(), None);
        let mut at = 0;
        for line in rest.split_inclusive(|byte| *byte == b'\n') {
            if line.trim_ascii_end() == b"---" {
                answers.extend(begin.map(|begin| Answer::read(&rest[begin..at])));
                begin = Some(at + line.len());
            }
            at += line.len();
        }
        answers.extend(begin.map(|begin| Answer::read(&rest[begin..])));
        answers.truncate(MOST);
        let script = Self { left: Mutex::new(answers), ..Self::default() };
        (question, script)
    }

    /// The responses that were given, including lost ones.
    pub(super) fn given(&self) -> Vec<Answer> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// [`Self::given`] without the broken connections, after which reads are retried.
    pub(super) fn answered(&self) -> Vec<Answer> {
        let mut given = self.given();
        given.retain(|answer| !answer.is_broken());
        given
    }

    /// Checks that every request went to the cloud itself, with the token, to a path of its API,
    /// and that there were not many more requests than an input has responses.
    pub(super) fn check(&self) {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        for request in asked.iter() {
            assert_eq!(request.uri().host(), Some(HOST));
            assert_eq!(request.headers()[AUTHORIZATION], format!("Bearer {TOKEN}"));
            let path = request.uri().path();
            let fits = |c: char| c.is_ascii_alphanumeric() || "/-_".contains(c);
            assert!(path.starts_with("/v") && path.chars().all(fits), "{path}");
        }
        assert!(asked.len() <= MOST + 2 * provider::AT_ONCE, "{} requests", asked.len());
    }
}

impl Carrier for Script {
    fn carry(&self, request: Request<Bytes>) -> BoxFuture<'_, CarrierResult> {
        let answer = self.left.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let answer = answer.unwrap_or(Answer(Err(CarrierError::Broken)));
        self.given.lock().unwrap_or_else(PoisonError::into_inner).push(answer.clone());
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        async move { answer.0 }.boxed()
    }
}
