//! `engine PORT [--count]`: an empty DynamoDB engine in memory, on that port of the loopback
//! interface.
//!
//! `make stack EMULATOR=localstack` runs it in place of AWS's engine for a single machine, which
//! needs Java and a download. With `--count`, for `make scale`, it adds up the capacity that requests
//! consume, and `GET /` says so in JSON: how many requests there were, and the units of each table and
//! of each index.

use std::{
    collections::BTreeMap,
    error::Error,
    net::Ipv4Addr,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, StatusCode, header},
    response::IntoResponse,
    routing::{get, post},
};
use local::engine::{self, Engine};
use serde::Serialize;
use serde_json::Value;
use tokio::net::TcpListener;

/// A request allocates some hundred times.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let (port, counts) = match &arguments[..] {
        [port] => (port, false),
        [port, count] if count == "--count" => (port, true),
        _ => return Err("usage: engine PORT [--count]".into()),
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.parse()?)).await?;
    let router = if counts {
        let counting = Counting { engine: Engine::in_memory()?, counted: Arc::default() };
        let root = get(counted).post(answer_and_count);
        Router::new().route("/", root).with_state(counting)
    } else {
        let root = post(answer);
        Router::new().route("/", root).with_state(Engine::in_memory()?)
    };
    axum::serve(listener, router.layer(DefaultBodyLimit::disable())).await?;
    Ok(())
}

async fn answer(
    State(engine): State<Engine>,
    headers: HeaderMap,
    body: String,
) -> impl IntoResponse {
    response(engine.answer(operation(&headers), &body))
}

fn operation(headers: &HeaderMap) -> &str {
    let target = headers.get("x-amz-target");
    let target = target.and_then(|value| value.to_str().ok());
    engine::operation(target.unwrap_or_default())
}

fn response((status, body): (u16, Bytes)) -> impl IntoResponse {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = "application/x-amz-json-1.0";
    (status, [(header::CONTENT_TYPE, json)], body)
}

#[derive(Clone)]
struct Counting {
    engine: Engine,
    counted: Arc<Mutex<Counted>>,
}

#[derive(Debug, Clone, Default, Serialize)]
struct Counted {
    requests: u64,
    /// By table, or by table and index.
    units: BTreeMap<String, Units>,
}

/// Capacity units, as DynamoDB bills them on demand.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Units {
    read: f64,
    write: f64,
}

async fn counted(State(counting): State<Counting>) -> Json<Counted> {
    Json(lock(&counting.counted).clone())
}

async fn answer_and_count(
    State(counting): State<Counting>,
    headers: HeaderMap,
    body: String,
) -> impl IntoResponse {
    let operation = operation(&headers);
    let answered = counting.engine.answer(operation, &asking_for_units(&body));
    if answered.0 == 200 {
        counting.count(&answered.1, !reads(operation));
    }
    response(answered)
}

fn reads(operation: &str) -> bool {
    matches!(operation, "Query" | "GetItem" | "BatchGetItem" | "Scan")
}

fn asking_for_units(body: &str) -> String {
    let Ok(Value::Object(mut request)) = serde_json::from_str(body) else {
        return body.to_owned();
    };
    request.insert("ReturnConsumedCapacity".to_owned(), "INDEXES".into());
    Value::Object(request).to_string()
}

impl Counting {
    /// Adds what an answer says that its request has consumed.
    fn count(&self, answer: &[u8], is_write: bool) {
        let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
        // Of several tables, an array.
        let consumed = &answer["ConsumedCapacity"];
        let one = std::slice::from_ref(consumed);
        let consumed = consumed.as_array().map_or(one, Vec::as_slice);
        let mut counted = lock(&self.counted);
        counted.requests += 1;
        let mut add = |name: String, units: &Value| {
            let units = units["CapacityUnits"].as_f64().unwrap_or_default();
            let known = counted.units.entry(name).or_default();
            if is_write {
                known.write += units;
            } else {
                known.read += units;
            }
        };
        for of in consumed {
            let Some(table) = of["TableName"].as_str() else {
                continue;
            };
            add(table.to_owned(), &of["Table"]);
            for (index, units) in of["GlobalSecondaryIndexes"].as_object().into_iter().flatten() {
                add(format!("{table}/{index}"), units);
            }
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
