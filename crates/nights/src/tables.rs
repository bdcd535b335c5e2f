//! The transport to the tables: the SDK's own requests and responses, carried to an embedded engine
//! in memory, with injected faults.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use aws_sdk_dynamodb::{
    Client,
    config::{
        SharedAsyncSleep,
        retry::{RetryConfig, RetryPartition},
    },
};
use aws_smithy_async::{
    rt::sleep::{AsyncSleep, Sleep},
    time::TimeSource,
};
use aws_smithy_runtime_api::client::{
    http::{
        HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
    },
    orchestrator::{HttpRequest, HttpResponse},
    result::ConnectorError,
    runtime_components::RuntimeComponents,
};
use bytes::Bytes;
use domain::ResourceRef;
use local::engine;
use serde_json::{Value, json};
use store::{Store, Tables};

use crate::{
    clockwork::Time,
    faults::{Faults, RequestInfo},
    night::Fault,
    observer::Observer,
};

/// The prefix of the tables' names.
pub(crate) const PREFIX: &str = "offhours-";

/// The table of resources.
const RESOURCES: &str = "offhours-resources";

/// How long a client waits for a response from the store.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The engine and the transport to it. Clones share both.
#[derive(Clone)]
pub(crate) struct Engine {
    time: Time,
    faults: Faults,
    observer: Observer,
    tables: engine::Engine,
    /// The latest answer of the index, which may be given again.
    index: Arc<Mutex<Option<Bytes>>>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    pub(crate) fn new(time: Time, faults: Faults, observer: Observer) -> anyhow::Result<Self> {
        Ok(Self {
            time,
            faults,
            observer,
            tables: engine::Engine::in_memory()?,
            index: Arc::default(),
        })
    }

    /// Returns a store for one process.
    pub(crate) fn store(&self, process: &str) -> Store {
        // Each process has its own retry quota, as on AWS.
        let partition = RetryPartition::new(process.to_owned());
        let config = engine::client_config(self.clone())
            .retry_config(RetryConfig::standard())
            .retry_partition(partition)
            .sleep_impl(SharedAsyncSleep::new(Sleeper(self.time.clone())))
            .time_source(Now(self.time.clone()))
            .build();
        Store::new(Client::from_conf(config), Tables::prefixed(PREFIX))
    }

    /// Returns the items of the table of resources that this program can read.
    pub(crate) fn resources(&self) -> Vec<Value> {
        self.items().filter(|item| item["format"] != newer_format()).collect()
    }

    fn items(&self) -> impl Iterator<Item = Value> + use<> {
        let (mut items, mut request) = (Vec::new(), json!({ "TableName": RESOURCES }));
        loop {
            let (_, page) = self.tables.answer("Scan", &request.to_string());
            let mut page: Value = serde_json::from_slice(&page).unwrap_or_default();
            items.extend(page["Items"].as_array_mut().map(std::mem::take).unwrap_or_default());
            if page["LastEvaluatedKey"].is_null() {
                return items.into_iter();
            }
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"].take();
        }
    }

    /// Rewrites a record in another format, as another program would. Returns the format that it had;
    /// `None` if no record has the other format.
    pub(crate) fn rewrite(&self, resource: &ResourceRef, format: &Value) -> Option<Value> {
        let is_newer = |format: &Value| *format == newer_format();
        let mut items = self.items();
        let mut item = items.find(|item| {
            item["account"]["S"] == resource.account.as_str()
                && item["resource"]["S"] == resource.id.to_string()
                && is_newer(&item["format"]) != is_newer(format)
        })?;
        let revision: u64 = item["revision"]["N"].as_str()?.parse().ok()?;
        item["revision"] = json!({ "N": (revision + 1).to_string() });
        let before = std::mem::replace(&mut item["format"], format.clone());
        self.put_back(&[item]);
        Some(before)
    }

    /// Puts items back into the table of resources.
    pub(crate) fn put_back(&self, items: &[Value]) {
        for item in items {
            let put = json!({ "TableName": RESOURCES, "Item": item });
            let (status, _) = self.tables.answer("PutItem", &put.to_string());
            assert_eq!(status, 200, "an item that was stored can be stored again");
        }
    }

    async fn exchange(self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let (operation, body) = engine::operation_and_body(&request);
        let writes = !matches!(
            operation.as_str(),
            "Query" | "GetItem" | "BatchGetItem" | "Scan" | "DescribeTable" | "CreateTable"
        );
        let latency = self.time.chance(|chance| chance.u64(2..12));
        let latency = Duration::from_millis(latency);
        let fault = self.faults.fault_for(RequestInfo::Store { writes }, self.time.now());
        if let Some(fault) = &fault {
            self.observer.note_fault(fault.name(), &operation);
        }
        if fault == Some(Fault::DiesBefore) {
            self.time.die().await;
        }
        self.time.sleep(latency).await;
        let answered = match &fault {
            Some(fault) => self.with_fault(fault, &operation, &body),
            None => Some(self.carry_out(&operation, &body)),
        };
        if fault == Some(Fault::DiesAfter) {
            self.time.die().await;
        }
        if let Some(Fault::Slow { seconds }) = fault {
            self.time.sleep(Duration::from_secs(seconds).min(TIMEOUT)).await;
        }
        self.time.sleep(latency).await;
        if let Some((status, body)) = answered {
            return Ok(self.respond(status, body));
        }
        self.time.sleep(TIMEOUT).await;
        Err(ConnectorError::timeout("the answer was lost".into()))
    }

    /// Returns the response to a request that a fault hits, or `None` if no response arrives.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "what does not fit a request does nothing to it"
    )]
    fn with_fault(&self, fault: &Fault, operation: &str, body: &str) -> Option<(u16, Bytes)> {
        match fault {
            Fault::Throttled { .. } => Some(error("ProvisionedThroughputExceededException")),
            Fault::Failed { after_effect: false } => Some((500, internal())),
            Fault::Failed { after_effect: true } => {
                self.carry_out(operation, body);
                Some((500, internal()))
            }
            Fault::AnswerLost => {
                self.carry_out(operation, body);
                None
            }
            Fault::RequestLost | Fault::Late { .. } => None,
            Fault::Conflict => Some(match operation {
                "TransactWriteItems" => conflict(body),
                "PutItem" | "UpdateItem" | "DeleteItem" => error("TransactionConflictException"),
                _ => self.carry_out(operation, body),
            }),
            Fault::Unprocessed if operation == "BatchGetItem" => {
                let body: Value = serde_json::from_str(body).unwrap_or_default();
                let left = json!({"Responses": {}, "UnprocessedKeys": body["RequestItems"]});
                Some((200, left.to_string().into()))
            }
            Fault::IndexLags if operation == "Query" && body.contains("IndexName") => {
                let earlier = self.index.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let none = json!({"Items": [], "Count": 0, "ScannedCount": 0});
                Some((200, earlier.unwrap_or_else(|| none.to_string().into())))
            }
            _ => Some(self.carry_out(operation, body)),
        }
    }

    fn carry_out(&self, operation: &str, body: &str) -> (u16, Bytes) {
        let (status, answer) = self.tables.answer(operation, body);
        if status == 200 {
            if operation == "Query" && body.contains("IndexName") {
                let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
                *index = Some(answer.clone());
            }
            self.observer.wrote(operation, body, self.time.current());
        }
        (status, answer)
    }

    fn respond(&self, status: u16, body: Bytes) -> HttpResponse {
        let date = self.time.now().strftime("%a, %d %b %Y %H:%M:%S GMT");
        let mut response = engine::response(status, body);
        response.headers_mut().insert("date", date.to_string());
        response
    }
}

/// Returns a version of the format that this program does not know, as an item carries it.
pub(crate) fn newer_format() -> Value {
    json!({ "N": (store::item::FORMAT + 1).to_string() })
}

fn error(name: &str) -> (u16, Bytes) {
    let body = json!({
        "__type": format!("com.amazonaws.dynamodb.v20120810#{name}"),
        "message": "simulated",
    });
    (400, body.to_string().into())
}

fn internal() -> Bytes {
    error("InternalServerError").1
}

fn conflict(body: &str) -> (u16, Bytes) {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let items = body["TransactItems"].as_array().map_or(0, Vec::len);
    let reason = |place: usize| {
        let code = if place == 0 { "TransactionConflict" } else { "None" };
        json!({ "Code": code })
    };
    let body = json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "Message": "simulated",
        "CancellationReasons": (0..items).map(reason).collect::<Vec<_>>(),
    });
    (400, body.to_string().into())
}

impl HttpConnector for Engine {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::new(self.clone().exchange(request))
    }
}

impl HttpClient for Engine {
    fn http_connector(
        &self,
        _: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

#[derive(Debug)]
struct Sleeper(Time);

impl AsyncSleep for Sleeper {
    fn sleep(&self, duration: Duration) -> Sleep {
        Sleep::new(self.0.sleep(duration))
    }
}

#[derive(Debug)]
struct Now(Time);

impl TimeSource for Now {
    fn now(&self) -> SystemTime {
        self.0.now().into()
    }
}
