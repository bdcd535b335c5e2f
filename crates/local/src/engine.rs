//! An embedded DynamoDB engine. It carries the SDK's own requests inside the process, over the same
//! protocol as the real one, and listens on nothing.

mod reads;
mod transactions;

use std::{fmt, path::Path};

use anyhow::Context as _;
use aws_sdk_dynamodb::{
    Client,
    config::{
        self, BehaviorVersion, Region,
        endpoint::{Endpoint, EndpointFuture, Params, ResolveEndpoint},
    },
};
use aws_smithy_runtime_api::client::{
    auth::AuthSchemeId,
    http::{
        HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
    },
    orchestrator::{HttpRequest, HttpResponse},
    result::ConnectorError,
    runtime_components::RuntimeComponents,
};
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use dynoxide::{Database, DynoxideError};
use store::{Store, Tables};

use reads::Reads;
use transactions::Transactions;

/// The prefix of the names of the service's tables, whose reads are cached.
pub(crate) const PREFIX: &str = "offhours-";

/// An engine, in memory or on a file. Clones share the same engine.
#[derive(Clone)]
pub struct Engine {
    database: Database,
    /// A cache of an engine in memory: a read that is repeated before its table is written gets the
    /// same answer. A file may meanwhile be written by another process.
    reads: Option<Reads>,
    transactions: Transactions,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    /// Creates an empty engine, whose data ends with it.
    pub fn in_memory() -> anyhow::Result<Self> {
        Ok(Self {
            database: Database::memory().context("cannot start the embedded store")?,
            reads: Some(Reads::default()),
            transactions: Transactions::default(),
        })
    }

    /// Opens an engine that keeps its data in a file.
    pub fn on_file(path: &Path) -> anyhow::Result<Self> {
        let name = path.to_str().context("the data file's name is not UTF-8")?;
        let database = Database::new(name)
            .with_context(|| format!("cannot open the data file {}", path.display()))?;
        Ok(Self { database, reads: None, transactions: Transactions::default() })
    }

    #[must_use]
    pub fn store(&self, tables: Tables) -> Store {
        Store::new(self.client(), tables)
    }

    /// Returns a client of the engine itself, bypassing the store.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::from_conf(client_config(self.clone()).build())
    }

    /// Answers a request of DynamoDB's protocol with a status and a JSON body. The request is given
    /// as its operation, such as `Query`, and its JSON body.
    #[must_use]
    pub fn answer(&self, operation: &str, body: &str) -> (u16, Bytes) {
        let carry_out = |body: &str| execute(&self.database, operation, body).map(Bytes::from);
        let execute = || match operation {
            "TransactWriteItems" => self.transactions.answer(body, carry_out),
            _ => carry_out(body),
        };
        let answered = match &self.reads {
            Some(reads) => reads.answer(operation, body, execute),
            None => execute(),
        };
        match answered {
            Ok(answer) => (200, answer),
            Err(error) => (error.status_code(), error.to_json().into()),
        }
    }
}

impl HttpConnector for Engine {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let engine = self.clone();
        let (operation, body) = operation_and_body(&request);
        let answer = move || {
            let (status, body) = engine.answer(&operation, &body);
            response(status, body)
        };
        if self.reads.is_some() {
            return HttpConnectorFuture::new(async move {
                // On a stepped clock a request takes no time, but other tasks get their turn.
                tokio::task::yield_now().await;
                Ok(answer())
            });
        }
        // SQLite blocks while another process writes to the file.
        HttpConnectorFuture::new(async move {
            let answered = tokio::task::spawn_blocking(answer).await;
            answered.map_err(|error| ConnectorError::other(error.into(), None))
        })
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

/// Configures a client whose requests this HTTP client carries to an engine.
pub fn client_config(carrier: impl HttpClient + 'static) -> config::Builder {
    config::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("local"))
        // The engine requires no signature, and AWS's endpoint rules do not apply.
        .allow_no_auth()
        .auth_scheme_preference([AuthSchemeId::from("noAuth")])
        .endpoint_resolver(NominalEndpoint)
        .http_client(carrier)
}

/// Requests need an address, though none is contacted.
#[derive(Debug)]
struct NominalEndpoint;

impl ResolveEndpoint for NominalEndpoint {
    fn resolve_endpoint(&self, _: &Params) -> EndpointFuture<'_> {
        let endpoint = Endpoint::builder().url("http://tables.invalid");
        EndpointFuture::ready(Ok(endpoint.build()))
    }
}

#[must_use]
pub fn operation_and_body(request: &HttpRequest) -> (String, String) {
    let target = request.headers().get("x-amz-target").unwrap_or_default();
    let body = request.body().bytes().unwrap_or_default();
    let body = String::from_utf8_lossy(body).into_owned();
    (operation(target).to_owned(), body)
}

/// Returns the operation that the header `x-amz-target` names.
#[must_use]
pub fn operation(target: &str) -> &str {
    target.rsplit('.').next().unwrap_or_default()
}

/// Returns an answer as the response that a client reads.
#[must_use]
pub fn response(status: u16, body: Bytes) -> HttpResponse {
    let status = status.try_into().expect("the engine's statuses are HTTP's");
    let mut response = HttpResponse::new(status, SdkBody::from(body));
    let headers = response.headers_mut();
    headers.insert("content-type", "application/x-amz-json-1.0");
    response
}

/// Executes a request of DynamoDB's protocol.
fn execute(database: &Database, operation: &str, body: &str) -> Result<String, DynoxideError> {
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
        "DescribeTimeToLive" => call!(describe_time_to_live),
        "GetItem" => call!(get_item),
        "ListTables" => call!(list_tables),
        "ListTagsOfResource" => call!(list_tags_of_resource),
        "PutItem" => call!(put_item),
        "Query" => call!(query),
        "Scan" => call!(scan),
        "TagResource" => call!(tag_resource),
        "TransactGetItems" => call!(transact_get_items),
        "TransactWriteItems" => call!(transact_write_items),
        "UntagResource" => call!(untag_resource),
        "UpdateItem" => call!(update_item),
        "UpdateTable" => call!(update_table),
        "UpdateTimeToLive" => call!(update_time_to_live),
        other => Err(DynoxideError::ValidationException(format!(
            "the embedded store does not know the operation `{other}`"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use tempfile::TempDir;

    use super::*;

    /// The engine changes nothing about how a commit is synced, so that this is what it does.
    #[test]
    fn a_write_is_acknowledged_once_the_disk_has_it() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("store.db");
        let _engine = Engine::on_file(&path).unwrap();
        let file = Connection::open(&path).unwrap();
        let pragma = |name: &str| {
            file.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))
        };
        assert_eq!(pragma("journal_mode").unwrap(), "wal".to_owned().into());
        // FULL: the log is synced at each commit.
        assert_eq!(pragma("synchronous").unwrap(), 2.into());
    }

    #[tokio::test]
    async fn while_another_process_writes_to_the_file_other_tasks_go_on() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("store.db");
        let store = Engine::on_file(&path).unwrap().store(Tables::prefixed("t-"));
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        // The other process ends its transaction only once the write has been asked for.
        let (made, ended) = tokio::join!(store.create_tables(), async {
            tokio::task::yield_now().await;
            other.execute_batch("ROLLBACK")
        });
        made.unwrap();
        ended.unwrap();
    }
}
