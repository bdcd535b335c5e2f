//! The wire between one process's store and the engine: records what is sent, and injects faults.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use aws_sdk_dynamodb::{
    Client,
    config::{
        ConfigBag, Intercept, RuntimeComponents,
        interceptors::{
            BeforeDeserializationInterceptorContextMut, BeforeTransmitInterceptorContextMut,
        },
        retry::RetryConfig,
    },
    error::BoxError,
};
use aws_smithy_types::config_bag::{Storable, StoreReplace};
use local::engine::{Engine, client_config};
use serde_json::{Value, json};
use store::{Store, Tables};

/// One request as it was sent.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The operation, such as `PutItem`.
    pub operation: String,
    /// The request's body.
    pub body: Value,
}

impl Sent {
    /// The record that it writes, as it is to be stored; `None` for any other request.
    #[must_use]
    pub fn record(&self) -> Option<&Value> {
        let put = match self.operation.as_str() {
            "PutItem" => &self.body,
            "TransactWriteItems" => &self.body["TransactItems"][0]["Put"],
            _ => return None,
        };
        let table = put["TableName"].as_str()?;
        table.ends_with("resources").then_some(&put["Item"])
    }

    /// Reports whether it writes a record that permits a request.
    #[must_use]
    pub fn is_claim(&self) -> bool {
        self.record().is_some_and(|item| !item["permit"].is_null())
    }
}

/// What happens to a request.
pub enum Fate {
    /// It arrives; its answer is lost, and the client sends it again.
    AnswerLost,
    /// It does not arrive, and is answered with this error.
    Refused(Value),
    /// It does not arrive, but is answered with this all the same.
    Answered(Value),
    /// It arrives after this has run.
    After(Box<dyn FnOnce() + Send>),
}

impl Fate {
    /// Refuses the request with an error of DynamoDB.
    #[must_use]
    pub fn error(name: &str) -> Self {
        Self::Refused(json!({
            "__type": format!("com.amazonaws.dynamodb.v20120810#{name}"),
            "message": "by the test",
        }))
    }

    /// Cancels a transaction; the code of an item that is not the reason is `None`.
    #[must_use]
    pub fn cancelled(codes: &[&str]) -> Self {
        let reasons = codes.iter().map(|code| json!({ "Code": code }));
        Self::Refused(json!({
            "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
            "Message": "by the test",
            "CancellationReasons": reasons.collect::<Vec<_>>(),
        }))
    }
}

impl fmt::Debug for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AnswerLost => "AnswerLost",
            Self::Refused(_) => "Refused",
            Self::Answered(_) => "Answered",
            Self::After(_) => "After",
        })
    }
}

/// What one process sent, and the faults that are planned.
#[derive(Debug, Default)]
pub struct Wire(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    sent: Vec<Sent>,
    number: usize,
    dies_after: Option<usize>,
    planned: Vec<PlannedFault>,
}

struct PlannedFault {
    fits: Box<dyn FnMut(&Sent) -> bool + Send>,
    fate: Fate,
}

impl fmt::Debug for PlannedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fate.fmt(f)
    }
}

/// What happens to the answer to a request; travels with the request.
#[derive(Debug, Clone)]
enum Answer {
    Kept,
    Lost,
    Other { status: u16, body: Value },
}

impl Storable for Answer {
    type Storer = StoreReplace<Self>;
}

impl Wire {
    /// Creates one process's store on an engine, with the wire between them.
    #[must_use]
    pub fn to(engine: &Engine, tables: Tables) -> (Store, Arc<Self>) {
        let wire = Arc::new(Self::default());
        let config = client_config(engine.clone())
            .interceptor(Tap(wire.clone()))
            .retry_config(RetryConfig::standard().with_initial_backoff(Duration::from_millis(1)))
            .build();
        (Store::new(Client::from_conf(config), tables), wire)
    }

    /// The operations since the last call.
    pub fn operations(&self) -> Vec<String> {
        let sent = self.sent().into_iter();
        sent.map(|request| request.operation).collect()
    }

    /// The requests since the last call.
    pub fn sent(&self) -> Vec<Sent> {
        std::mem::take(&mut self.0.lock().unwrap().sent)
    }

    /// Lets the process die when this many more requests have been answered.
    pub fn die_after(&self, requests: usize) {
        let mut state = self.0.lock().unwrap();
        state.dies_after = Some(state.number + requests);
    }

    /// Loses the answer to the request that comes after this many more.
    pub fn lose_answer_after(&self, requests: usize) {
        let mut before = requests;
        let fits = move |_: &Sent| {
            let is_it = before == 0;
            before = before.saturating_sub(1);
            is_it
        };
        self.plan(fits, Fate::AnswerLost);
    }

    /// Plans what happens to the next request that fits. Of several plans, the earliest applies.
    pub fn plan(&self, fits: impl FnMut(&Sent) -> bool + Send + 'static, fate: Fate) {
        let fits = Box::new(fits);
        self.0.lock().unwrap().planned.push(PlannedFault { fits, fate });
    }

    /// How many plans have not been carried out yet.
    pub fn left(&self) -> usize {
        self.0.lock().unwrap().planned.len()
    }
}

#[derive(Debug)]
struct Tap(Arc<Wire>);

impl Intercept for Tap {
    fn name(&self) -> &'static str {
        "Tap"
    }

    fn modify_before_transmit(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        bag: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let mut state = self.0.0.lock().unwrap();
        if state.dies_after.is_some_and(|last| state.number >= last) {
            return Err("the process has died".into());
        }
        let request = context.request_mut();
        let target = request.headers().get("x-amz-target").unwrap();
        let (_, operation) = target.rsplit_once('.').unwrap();
        let sent = Sent {
            operation: operation.to_owned(),
            body: serde_json::from_slice(request.body().bytes().unwrap())?,
        };
        state.number += 1;
        let mut planned = state.planned.iter_mut();
        let planned = planned.position(|plan| (plan.fits)(&sent));
        let fate = planned.map(|at| state.planned.remove(at).fate);
        state.sent.push(sent);
        let answer = match fate {
            None => Answer::Kept,
            Some(Fate::AnswerLost) => Answer::Lost,
            Some(Fate::Refused(body)) => Answer::Other { status: 400, body },
            Some(Fate::Answered(body)) => Answer::Other { status: 200, body },
            Some(Fate::After(work)) => {
                work();
                Answer::Kept
            }
        };
        if let Answer::Other { .. } = &answer {
            // The engine gets a harmless request instead, which changes nothing.
            let headers = request.headers_mut();
            headers.insert("x-amz-target", "DynamoDB_20120810.ListTables");
        }
        bag.interceptor_state().store_put(answer);
        Ok(())
    }

    fn modify_before_deserialization(
        &self,
        context: &mut BeforeDeserializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        bag: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let response = context.response_mut();
        match bag.load::<Answer>() {
            None | Some(Answer::Kept) => {}
            Some(Answer::Lost) => *response.status_mut() = 500.try_into()?,
            Some(Answer::Other { status, body }) => {
                *response.status_mut() = (*status).try_into()?;
                *response.body_mut() = body.to_string().into();
            }
        }
        Ok(())
    }
}
