//! An embedded DynamoDB engine, accessed over its protocol like the real one.

mod reads;

use std::{net::SocketAddr, path::Path};

use anyhow::Context as _;
use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::IntoResponse,
    routing::post,
};
use bytes::Bytes;
use dynoxide::{Database, DynoxideError};
use tokio::net::TcpListener;

use reads::Reads;

/// The prefix of the names of tables whose reads are cached.
const PREFIX: &str = "offhours-";

/// Serves the engine in the background and returns the address that it listens on. Without a file,
/// its data ends with the process.
pub async fn serve(data: Option<&Path>, address: SocketAddr) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}"))?;
    let address = listener.local_addr()?;
    match data {
        None => {
            let engine = Engine::in_memory().context("cannot start the embedded store")?;
            tokio::spawn(async move { axum::serve(listener, engine.router()).await });
        }
        Some(path) => {
            let name = path.to_str().context("the data file's name is not UTF-8")?;
            let database = Database::new(name)
                .with_context(|| format!("cannot open the data file {}", path.display()))?;
            // Another process may write the file meanwhile, so no reads are cached.
            tokio::spawn(dynoxide::server::serve_on(listener, database));
        }
    }
    Ok(address)
}

/// An in-memory engine with a cache: a read that is repeated before its table is written gets the
/// same answer. Clones share the same engine.
#[derive(Clone)]
pub struct Engine {
    database: Database,
    reads: Reads,
}

impl Engine {
    /// Creates an empty engine.
    pub fn in_memory() -> Result<Self, DynoxideError> {
        Ok(Self {
            database: Database::memory()?,
            reads: Reads::default(),
        })
    }

    /// Executes a request of DynamoDB's protocol, given the operation, such as `Query`, and its
    /// JSON body.
    pub fn carry_out(&self, operation: &str, body: &str) -> Result<Bytes, DynoxideError> {
        self.reads.answer(operation, body, || {
            ask(&self.database, operation, body).map(Bytes::from)
        })
    }

    fn router(self) -> Router {
        Router::new().route("/", post(answer)).with_state(self)
    }
}

async fn answer(
    State(engine): State<Engine>,
    headers: HeaderMap,
    body: String,
) -> impl IntoResponse {
    // Answered at once and on this thread: on a stepped clock, a request takes no time.
    let (status, body) = match engine.carry_out(operation(&headers), &body) {
        Ok(answer) => (StatusCode::OK, answer),
        Err(error) => {
            let status = StatusCode::from_u16(error.status_code());
            let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (status, error.to_json().into())
        }
    };
    let json = "application/x-amz-json-1.0";
    (status, [(header::CONTENT_TYPE, json)], body)
}

/// Returns the operation that a request's headers name.
#[must_use]
pub fn operation(headers: &HeaderMap) -> &str {
    let target = headers.get("x-amz-target");
    let target = target.and_then(|value| value.to_str().ok());
    let operation = target.and_then(|text| text.rsplit('.').next());
    operation.unwrap_or_default()
}

/// Calls the engine directly, as its own server does.
pub fn ask(database: &Database, operation: &str, body: &str) -> Result<String, DynoxideError> {
    macro_rules! call {
        ($method:ident) => {{
            let request = serde_json::from_str(body)
                .map_err(|error| DynoxideError::SerializationException(error.to_string()))?;
            serde_json::to_string(&database.$method(request)?)
                .map_err(|error| DynoxideError::InternalServerError(error.to_string()))
        }};
    }
    match operation {
        "BatchGetItem" => call!(batch_get_item),
        "BatchWriteItem" => call!(batch_write_item),
        "CreateTable" => call!(create_table),
        "DeleteItem" => call!(delete_item),
        "DeleteTable" => call!(delete_table),
        "DescribeTable" => call!(describe_table),
        "GetItem" => call!(get_item),
        "ListTables" => call!(list_tables),
        "PutItem" => call!(put_item),
        "Query" => call!(query),
        "Scan" => call!(scan),
        "TransactGetItems" => call!(transact_get_items),
        "TransactWriteItems" => call!(transact_write_items),
        "UpdateItem" => call!(update_item),
        "UpdateTable" => call!(update_table),
        other => Err(DynoxideError::ValidationException(format!(
            "the embedded store does not know the operation `{other}`"
        ))),
    }
}
