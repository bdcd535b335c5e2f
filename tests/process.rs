//! A second process of the service beside the one under test: on the same store, over a wire that
//! loses responses, with a clock of its own.

use std::{cell::RefCell, sync::Arc};

use domain::{
    invocation::Invocation,
    record::{Direction, Writer},
};
use environment::{Clock, Invoke, InvokeError, SteppedClock, Tokens};
use jiff::Timestamp;
use lifecycle::{
    Access, Context, Event, Listener, Occurrence, Providers, Report, event::Subject, observe::poll,
};
use provider::{Endpoints, http_client};
use serde_json::{Value, json};
use store::Store;
use testing::{Sent, Wire};

use crate::support::{TOKENS, World, kept, reference, tables};

/// The second process. It does not reach any other function.
pub(crate) struct Process {
    pub(crate) store: Store,
    pub(crate) wire: Arc<Wire>,
    pub(crate) clock: SteppedClock,
    providers: Providers,
    heard: RefCell<Vec<Occurrence>>,
}

impl Process {
    /// A process whose clock shows the same time as the service's.
    pub(crate) fn beside(world: &World) -> Self {
        Self::with_tokens(world, Tokens::fixed(kept(&TOKENS)))
    }

    /// Like [`Self::beside`], with tokens from elsewhere.
    pub(crate) fn with_tokens(world: &World, tokens: Tokens) -> Self {
        let (store, wire) = Wire::to(&world.engine, tables());
        Self {
            store,
            wire,
            clock: SteppedClock::at(world.local.now()),
            // It may change resources, and observes with the same tokens.
            providers: providers(world, Access::Change, tokens),
            heard: RefCell::default(),
        }
    }

    /// Like [`Self::beside`], at a later time.
    pub(crate) fn later(world: &World, now: Timestamp) -> Self {
        let process = Self::beside(world);
        process.clock.advance_to(now);
        process
    }

    /// Invokes stop or start, as dispatch does.
    pub(crate) async fn hint(&self, direction: Direction, resources: &[&str]) -> Report {
        let event = json!({ "cause": "due", "resources": resources });
        self.act("a hint", direction, &event).await
    }

    /// Invokes stop or start with this invocation id.
    pub(crate) async fn act(&self, id: &str, direction: Direction, event: &Value) -> Report {
        let invocation = serde_json::from_value(event.clone()).unwrap();
        let handle = async |context: Context<'_>| {
            lifecycle::act::command::handle(context, direction, invocation).await.unwrap()
        };
        self.invoke(id, handle).await
    }

    /// Takes an inventory of all accounts.
    pub(crate) async fn take_inventory(&self) -> Report {
        let take = async |context: Context<'_>| {
            poll::take_inventory(context, &DiscardInvocations, &[]).await.unwrap()
        };
        self.invoke("an inventory", take).await
    }

    /// Observes once what is in flight.
    pub(crate) async fn look(&self) -> Report {
        let look = async |context: Context<'_>| {
            poll::look_once(context, &DiscardInvocations).await.unwrap()
        };
        self.invoke("a look", look).await
    }

    async fn invoke<T>(&self, id: &str, work: impl AsyncFnOnce(Context<'_>) -> T) -> T {
        let clock = Clock::from(self.clock.clone());
        let writer = Writer(id.to_owned());
        let tell = |outcome: &Occurrence| self.heard.borrow_mut().push(outcome.clone());
        work(Context {
            store: &self.store,
            providers: &self.providers,
            clock: &clock,
            writer: &writer,
            listener: &tell,
        })
        .await
    }

    /// The events published for a resource since the last call.
    pub(crate) fn published(&self, resource: &str) -> Vec<Event> {
        let resource = reference(resource);
        let about = |outcome: &Occurrence| match &outcome.subject {
            Subject::Resource { resource: of, .. } => *of == resource,
            Subject::Account { .. } => false,
        };
        let mut heard = self.heard.borrow_mut();
        let (found, others) = heard.drain(..).partition::<Vec<_>, _>(about);
        *heard = others;
        found.into_iter().map(|outcome| outcome.event).collect()
    }
}

/// poll-status in another process: on a store, with tokens and a clock of its own.
pub(crate) struct PollStatus<'a> {
    store: &'a Store,
    providers: Providers,
    pub(crate) clock: SteppedClock,
}

impl<'a> PollStatus<'a> {
    pub(crate) fn new(
        world: &World,
        store: &'a Store,
        tokens: &[(&str, &str)],
        clock: SteppedClock,
    ) -> Self {
        let tokens = Tokens::fixed(kept(tokens));
        Self { store, providers: providers(world, Access::Read, tokens), clock }
    }

    /// Runs one tick, as the invocation with this id.
    pub(crate) async fn tick(&self, id: &str) -> Report {
        self.handle(id, timer(), &|_: &Occurrence| ()).await
    }

    /// Handles an event, as the invocation with this id.
    pub(crate) async fn handle(&self, id: &str, event: Value, listener: &dyn Listener) -> Report {
        let clock = Clock::from(self.clock.clone());
        let context = Context {
            store: self.store,
            providers: &self.providers,
            clock: &clock,
            writer: &Writer(id.to_owned()),
            listener,
        };
        let event = serde_json::from_value(event).unwrap();
        let handled = poll_status::handle(context, &PanicOnInvoke, event).await;
        handled.unwrap()
    }
}

/// The event of poll-status' timer.
pub(crate) fn timer() -> Value {
    serde_json::from_str(include_str!("../crates/poll-status/events/timer.json")).unwrap()
}

/// Clients for the world's clouds, as another process has them.
fn providers(world: &World, access: Access, tokens: Tokens) -> Providers {
    let endpoints = Endpoints::all_at(world.local.clouds_url().unwrap());
    Providers::new(access, tokens, endpoints, http_client().unwrap())
}

/// Whether a request writes the record of this resource.
pub(crate) fn writes(resource: &str) -> impl Fn(&Sent) -> bool + Send + 'static {
    let (account, rest) = resource.split_once('/').unwrap();
    let (account, rest) = (account.to_owned(), rest.to_owned());
    move |sent| {
        sent.record()
            .is_some_and(|item| item["account"]["S"] == account && item["resource"]["S"] == rest)
    }
}

/// Functions whose invocations go nowhere.
pub(crate) struct DiscardInvocations;

impl Invoke for DiscardInvocations {
    async fn invoke(&self, _: Direction, _: Invocation) -> Result<(), InvokeError> {
        Ok(())
    }
}

/// Functions that must not be invoked.
pub(crate) struct PanicOnInvoke;

impl Invoke for PanicOnInvoke {
    async fn invoke(
        &self,
        direction: Direction,
        invocation: Invocation,
    ) -> Result<(), InvokeError> {
        panic!("{direction} was invoked with {invocation:?}");
    }
}
