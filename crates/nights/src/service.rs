//! The functions as AWS runs them: containers that are kept and used again, and that end.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    sync::{Arc, Mutex, PoisonError},
};

use aws_lambda_events::eventbridge::EventBridgeEvent;
use domain::{
    configuration::TokenReference,
    invocation::Invocation,
    record::{Direction, Writer},
};
use environment::{Clock, Invoke, InvokeError, SteppedClock, Tokens};
use lifecycle::{Access, Context, Outcome, Providers};
use provider::{Carry, Endpoints, Transport};
use secrecy::SecretString;
use store::Store;

use crate::{night::Function, tables::Engine};

/// What is invoked, by whom it may.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    Timer,
    Act(Invocation),
}

/// Invocations of stop and start that a function has asked for. Cloning gives the same ones.
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

/// Where the functions' tokens are kept, as a person has put them there. Cloning gives the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<HashMap<TokenReference, String>>>);

impl Kept {
    pub(crate) fn put(&self, at: TokenReference, token: String) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(at, token);
    }

    fn tokens(&self) -> Tokens {
        let kept = self.0.clone();
        Tokens::kept(move |at| {
            let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.get(at).map(|token| SecretString::from(token.as_str()))
        })
    }
}

/// All containers, and what new ones are made of.
pub(crate) struct Containers {
    engine: Engine,
    transport: Transport,
    tokens: Kept,
    kept: RefCell<Vec<(Function, Rc<Container>)>>,
    made: Cell<u64>,
    /// Distinguishes the processes of two nights.
    night: String,
}

impl Containers {
    pub(crate) fn new(
        engine: Engine,
        carrier: Arc<dyn Carry>,
        tokens: Kept,
        night: String,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            engine,
            transport: Transport::carried_by(provider::http_client()?, carrier),
            tokens,
            kept: RefCell::default(),
            made: Cell::new(0),
            night,
        })
    }

    /// A container that is free, or a new one.
    pub(crate) fn free(&self, function: Function) -> anyhow::Result<Rc<Container>> {
        let free =
            |(of, container): &&(Function, Rc<Container>)| *of == function && !container.busy.get();
        if let Some((_, container)) = self.kept.borrow().iter().find(free) {
            container.busy.set(true);
            return Ok(container.clone());
        }
        let container = Rc::new(self.container(function)?);
        self.kept.borrow_mut().push((function, container.clone()));
        Ok(container)
    }

    /// Ends a container with its process.
    pub(crate) fn end(&self, container: &Rc<Container>) {
        self.kept
            .borrow_mut()
            .retain(|(_, kept)| !Rc::ptr_eq(kept, container));
    }

    fn container(&self, function: Function) -> anyhow::Result<Container> {
        let number = self.made.get() + 1;
        self.made.set(number);
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
    /// Lets another invocation use it.
    pub(crate) fn release(&self) {
        self.busy.set(false);
    }

    /// Carries out one invocation; returns what went wrong with it as a whole.
    pub(crate) async fn handle(
        &self,
        function: Function,
        event: Event,
        clock: SteppedClock,
        writer: Writer,
        invocations: &Invocations,
        listener: &impl Fn(&Outcome),
    ) -> Option<String> {
        let clock = Clock::from(clock);
        if function == Function::Dispatch {
            let handled = dispatch::handle(&self.store, invocations, timer(), clock.now());
            return handled.await.err().map(|error| error.to_string());
        }
        let providers = self.providers.as_ref()?;
        let context = Context {
            store: &self.store,
            providers,
            clock: &clock,
            writer: &writer,
            listener,
        };
        let handled = match (function, event) {
            (Function::Stop, Event::Act(invocation)) => stop::handle(context, invocation).await,
            (Function::Start, Event::Act(invocation)) => start::handle(context, invocation).await,
            _ => {
                let event = poll_status::Event::Timer(Box::new(timer()));
                poll_status::handle(context, invocations, event).await
            }
        };
        handled.err().map(|error| error.to_string())
    }
}

/// The event of a timer's rule.
fn timer() -> EventBridgeEvent {
    let mut event = EventBridgeEvent::default();
    "Scheduled Event".clone_into(&mut event.detail_type);
    "aws.events".clone_into(&mut event.source);
    event
}
