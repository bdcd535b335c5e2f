//! The functions as AWS runs them: in containers that are kept, reused, and ended.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashMap},
    rc::Rc,
    sync::{Arc, Mutex, PoisonError},
};

use aws_lambda_events::eventbridge::EventBridgeEvent;
use domain::{
    ResourceRef,
    configuration::{Check, TokenReference},
    invocation::{Invocation, Question},
    record::{Direction, Writer},
};
use environment::{Clock, Invoke, InvokeError, SteppedClock, Tokens};
use lifecycle::{Access, Context, Occurrence, Providers, report::LeftAlone};
use provider::{Carrier, Endpoints, Transport};
use secrecy::SecretString;
use store::Store;

use crate::{addresses::Addresses, night::Function, tables::Engine};

/// What invokes a function.
#[derive(Debug, Clone)]
pub(crate) enum Trigger {
    Timer,
    Act(Invocation),
    /// A person approves resources that are held.
    Approve(Vec<ResourceRef>),
}

/// One invocation of a function.
pub(crate) struct Work {
    pub(crate) function: Function,
    pub(crate) trigger: Trigger,
    pub(crate) clock: SteppedClock,
    pub(crate) writer: Writer,
}

/// Invocations of stop and start that functions have requested. Clones share the same list.
#[derive(Debug, Clone, Default)]
pub(crate) struct Invocations(Arc<Mutex<Vec<(Direction, Invocation)>>>);

impl Invocations {
    pub(crate) fn take(&self) -> Vec<(Direction, Invocation)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Invoke for Invocations {
    async fn invoke(
        &self,
        direction: Direction,
        invocation: Invocation,
    ) -> Result<(), InvokeError> {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push((direction, invocation));
        Ok(())
    }
}

/// One process of a function, with what it keeps between invocations.
pub(crate) struct Container {
    store: Store,
    providers: Option<Providers>,
    busy: Cell<bool>,
}

/// The functions' tokens, as a person has stored them. Clones share the same tokens.
#[derive(Debug, Clone, Default)]
pub(crate) struct TokenVault(Arc<Mutex<HashMap<TokenReference, String>>>);

impl TokenVault {
    pub(crate) fn put(&self, at: TokenReference, token: String) {
        let mut vault = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        vault.insert(at, token);
    }

    fn tokens(&self) -> Tokens {
        let vault = self.0.clone();
        Tokens::from_reader(move |at| {
            let vault = vault.lock().unwrap_or_else(PoisonError::into_inner);
            vault.get(at).map(|token| SecretString::from(token.as_str()))
        })
    }
}

/// All containers, and what new ones are created from.
pub(crate) struct Containers {
    engine: Engine,
    transport: Transport,
    tokens: TokenVault,
    alive: RefCell<Vec<(Function, Rc<Container>)>>,
    created: Cell<u64>,
    /// Distinguishes the processes of two nights.
    night: String,
}

impl Containers {
    pub(crate) fn new(
        engine: Engine,
        carrier: Arc<dyn Carrier>,
        tokens: TokenVault,
        night: String,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            engine,
            transport: Transport::with_carrier(provider::http_client()?, carrier),
            tokens,
            alive: RefCell::default(),
            created: Cell::new(0),
            night,
        })
    }

    /// Returns a free container, or a new one.
    pub(crate) fn free(&self, function: Function) -> anyhow::Result<Rc<Container>> {
        let free =
            |(of, container): &&(Function, Rc<Container>)| *of == function && !container.busy.get();
        if let Some((_, container)) = self.alive.borrow().iter().find(free) {
            container.busy.set(true);
            return Ok(container.clone());
        }
        let container = Rc::new(self.container(function)?);
        self.alive.borrow_mut().push((function, container.clone()));
        Ok(container)
    }

    /// Ends a container and its process.
    pub(crate) fn end(&self, container: &Rc<Container>) {
        self.alive.borrow_mut().retain(|(_, one)| !Rc::ptr_eq(one, container));
    }

    fn container(&self, function: Function) -> anyhow::Result<Container> {
        let number = self.created.get() + 1;
        self.created.set(number);
        let access = match function {
            Function::Dispatch => None,
            Function::PollStatus => Some(Access::Read),
            Function::Stop | Function::Start => Some(Access::Change),
        };
        let providers = access.map(|access| self.providers(access)).transpose()?;
        Ok(Container {
            store: self.engine.store(&format!("{}-{number}", self.night)),
            providers,
            busy: Cell::new(true),
        })
    }

    fn providers(&self, access: Access) -> anyhow::Result<Providers> {
        let base = "http://127.0.0.1:1".parse()?;
        Ok(Providers::new(
            access,
            self.tokens.tokens(),
            Endpoints::all_at(&base),
            self.transport.clone(),
        ))
    }
}

impl Container {
    /// Makes the container available to another invocation.
    pub(crate) fn release(&self) {
        self.busy.set(false);
    }

    /// Handles one invocation. Returns what it left alone because it could not be read, or the error
    /// if the invocation failed as a whole.
    pub(crate) async fn handle(
        &self,
        Work { function, trigger, clock, writer }: Work,
        invocations: &Invocations,
        addresses: &Addresses,
        listener: &impl Fn(&Occurrence),
    ) -> Result<Vec<LeftAlone>, String> {
        let clock = Clock::from(clock);
        if function == Function::Dispatch {
            let passed = async |checks: BTreeSet<&Check>| addresses.passed(checks, clock.now());
            let now = clock.now();
            let handled = dispatch::handle(&self.store, invocations, passed, timer(), now);
            return handled.await.map(|_| Vec::new()).map_err(|error| error.to_string());
        }
        let Some(providers) = self.providers.as_ref() else {
            return Ok(Vec::new());
        };
        let context =
            Context { store: &self.store, providers, clock: &clock, writer: &writer, listener };
        let handled = match (function, trigger) {
            (Function::Stop, Trigger::Act(invocation)) => stop::handle(context, invocation).await,
            (Function::Start, Trigger::Act(invocation)) => start::handle(context, invocation).await,
            (_, Trigger::Approve(held)) => {
                let event = poll_status::Event::Question(Question::Approve(held));
                poll_status::handle(context, invocations, event).await
            }
            _ => {
                let event = poll_status::Event::Timer(Box::new(timer()));
                poll_status::handle(context, invocations, event).await
            }
        };
        handled.map(|report| report.left_alone).map_err(|error| error.to_string())
    }
}

/// Returns the event of a timer's rule.
fn timer() -> EventBridgeEvent {
    let mut event = EventBridgeEvent::default();
    "Scheduled Event".clone_into(&mut event.detail_type);
    "aws.events".clone_into(&mut event.source);
    event
}
