//! An engine, and processes that use it; each process's wire is listened to, and can be cut.

use std::{
    collections::BTreeSet,
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
use domain::record::Record;
use serde_json::Value;
use store::{
    Store, Tables,
    item::{self, Item},
};
use tokio::net::TcpListener;

/// An engine with the four tables, empty.
pub(crate) struct World {
    endpoint: String,
}

impl World {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let database = dynoxide::Database::memory().unwrap();
        tokio::spawn(dynoxide::server::serve_on(listener, database));
        let world = Self { endpoint };
        world.store().create_tables().await.unwrap();
        world
    }

    pub(crate) fn tables() -> Tables {
        Tables::prefixed("t-")
    }

    /// The store as one process has it, with the wire between them.
    pub(crate) fn process(&self) -> (Store, Arc<Wire>) {
        let wire = Arc::new(Wire::default());
        let config = environment::aws::local_config(&self.endpoint);
        let config = aws_sdk_dynamodb::config::Builder::from(&config)
            .interceptor(Tap(wire.clone()))
            .retry_config(RetryConfig::standard().with_initial_backoff(Duration::from_millis(1)))
            .build();
        let store = Store::new(Client::from_conf(config), Self::tables());
        (store, wire)
    }

    pub(crate) fn store(&self) -> Store {
        Store::connect(
            &environment::aws::local_config(&self.endpoint),
            Self::tables(),
        )
    }

    /// The engine itself, past the store.
    pub(crate) fn engine(&self) -> Client {
        Client::new(&environment::aws::local_config(&self.endpoint))
    }

    pub(crate) async fn put(&self, table: &str, item: Item) {
        let put = self.engine().put_item().table_name(table);
        put.set_item(Some(item)).send().await.unwrap();
    }

    /// All items of a table, as they are stored.
    pub(crate) async fn items(&self, table: &str) -> Vec<Item> {
        let scan = self.engine().scan().table_name(table);
        scan.send().await.unwrap().items.unwrap_or_default()
    }

    /// What is stored of a record.
    pub(crate) async fn stored(&self, record: &Record) -> Item {
        let get = self
            .engine()
            .get_item()
            .table_name(Self::tables().resources);
        let answer = get
            .set_key(Some(item::record_key(&record.reference)))
            .send()
            .await;
        answer.unwrap().item.unwrap()
    }
}

/// One request as it left.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) operation: String,
    pub(crate) body: Value,
}

/// What one process sent, and what is to go wrong.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sent: Vec<Sent>,
    dies_after: Option<usize>,
    answers_to_lose: BTreeSet<usize>,
}

impl Wire {
    /// The operations asked for since the last time this was asked.
    pub(crate) fn operations(&self) -> Vec<String> {
        let sent = self.sent().into_iter();
        sent.map(|request| request.operation).collect()
    }

    /// The requests since the last time this was asked.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        std::mem::take(&mut self.state.lock().unwrap().sent)
    }

    /// The process dies when so many more requests have been answered.
    pub(crate) fn die_after(&self, requests: usize) {
        let mut state = self.state.lock().unwrap();
        state.dies_after = Some(state.sent.len() + requests);
    }

    /// The answer to the request after so many more is lost on its way.
    pub(crate) fn lose_answer_after(&self, requests: usize) {
        let mut state = self.state.lock().unwrap();
        let lost = state.sent.len() + requests;
        state.answers_to_lose.insert(lost);
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
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let mut state = self.0.state.lock().unwrap();
        if state
            .dies_after
            .is_some_and(|last| state.sent.len() >= last)
        {
            return Err("the process has died".into());
        }
        let request = context.request();
        let target = request.headers().get("x-amz-target").unwrap();
        let (_, operation) = target.rsplit_once('.').unwrap();
        let sent = Sent {
            operation: operation.to_owned(),
            body: serde_json::from_slice(request.body().bytes().unwrap())?,
        };
        state.sent.push(sent);
        Ok(())
    }

    fn modify_before_deserialization(
        &self,
        context: &mut BeforeDeserializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let mut state = self.0.state.lock().unwrap();
        let answered = state.sent.len() - 1;
        if state.answers_to_lose.remove(&answered) {
            *context.response_mut().status_mut() = 500.try_into()?;
        }
        Ok(())
    }
}
