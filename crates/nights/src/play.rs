//! Plays a night: timers fire, functions run, and people and faults interfere.

use std::{
    collections::BTreeMap,
    rc::Rc,
    sync::atomic::{AtomicU64, Ordering},
};

use anyhow::Context as _;
use cloud_simulator::{Act, Simulator};
use domain::{
    AccountName, MachineName, ResourceId, ResourceRef,
    activity::{Action, Author},
    configuration::{Account, Override, OverrideTarget, Pause, PauseScope},
    hibernation::AttachmentName,
    invocation::{Command, CommandTarget, Invocation},
    record::{Direction, INVENTORY_INTERVAL, Phase, SKEW, Writer},
};
use environment::SteppedClock;
use jiff::{SignedDuration, Timestamp};
use lifecycle::Occurrence;
use serde_json::Value;
use store::Store;

use crate::{
    addresses::Addresses,
    clockwork::{Executor, TaskEnd, TaskId, TaskOptions, Time},
    clouds::{self, Wire, act_at_cloud},
    elsewhere::{Elsewhere, SECOND_ACCOUNTS},
    faults::Faults,
    machines::Machines,
    night::{EventKind, Function, Night, NightEvent, Setup},
    observer::Observer,
    service::{Container, Containers, Invocations, TokenVault, Trigger, Work},
    ssh_host::SshHost,
    ssh_keys,
    tables::{self, Engine},
    trace::{Actor, Trace},
};

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// The number of nights this process has started to play.
static PLAYS: AtomicU64 = AtomicU64::new(0);

/// The result of a night.
#[derive(Debug, Default)]
pub struct Played {
    /// The first broken promise. `None` if every promise held.
    pub violation: Option<String>,
    /// How often each kind of fault, or of other counted event, occurred.
    pub faults: BTreeMap<&'static str, u64>,
    /// The number of ticks played. In the ones left out, nothing could have happened.
    pub ticks: u64,
    /// The number of requests that the store carried out.
    pub store_requests: u64,
    /// The number of requests sent to the clouds.
    pub cloud_requests: u64,
}

/// Plays a night to its end, or to the first broken promise.
pub fn play(night: &Night, trace: &Trace) -> anyhow::Result<Played> {
    // The SDK draws its retry delays from this thread's generator.
    fastrand::seed(night.seed);
    Ok(Simulation::new(night, trace)?.play())
}

/// Something to do at an instant.
#[derive(Debug, Clone)]
enum QueuedEvent {
    Tick(Function),
    Minute,
    Invoke(Direction, Invocation, String),
    NightEvent(usize),
    /// A person replaces an account's token at the cloud.
    ReplaceToken(AccountName, String),
    /// A person stores the new token for the functions.
    KeepToken(AccountName, String),
    /// A person stores the account's own token again.
    CorrectToken(AccountName),
    /// A person restores the table of resources.
    Restore,
    /// A newer program writes a record in the format that it had before.
    Known(ResourceRef, Value),
}

/// How the next invocation of stop or start is delivered.
#[derive(Debug, Clone, Copy)]
enum Delivery {
    Lost,
    Doubled(i64),
    Late(i64),
}

struct Simulation<'n> {
    night: &'n Night,
    time: Time,
    executor: Executor,
    containers: Rc<Containers>,
    invocations: Invocations,
    observer: Observer,
    faults: Faults,
    simulator: Simulator,
    machines: Machines,
    addresses: Addresses,
    tokens: TokenVault,
    /// The token of each account that a person stored last, by mistake or not.
    kept: BTreeMap<AccountName, String>,
    /// The token of each account that its cloud accepts.
    accepted: BTreeMap<AccountName, String>,
    /// The store, as a person's command uses it.
    desk: Store,
    tables: Engine,
    /// The items of the latest backup of the table of resources.
    backup: Vec<Value>,
    queue: BTreeMap<(Timestamp, u64), QueuedEvent>,
    serial: u64,
    working: BTreeMap<TaskId, Rc<Container>>,
    lost_until: BTreeMap<Function, Timestamp>,
    extra_ticks: Vec<(Function, SignedDuration, bool)>,
    deliveries: Vec<Delivery>,
    skew: BTreeMap<Function, SignedDuration>,
    ticks: u64,
}

impl<'n> Simulation<'n> {
    fn new(night: &'n Night, trace: &Trace) -> anyhow::Result<Self> {
        let time = Time::at(night.begins, night.seed);
        let fleet = format!("{}\n{}", night.accounts, night.fleet.join("\n"));
        let fleet = fleet.parse().context("the night's fleet")?;
        let now = time.clone();
        let simulator = Simulator::new(&fleet, std::sync::Arc::new(move || now.now()));
        let machines = Machines::new(&night.machines);
        let addresses = Addresses::default();
        let observer = Observer::new(
            time.clone(),
            simulator.clone(),
            machines.clone(),
            addresses.clone(),
            trace.clone(),
        );
        let faults = Faults::default();
        let engine = Engine::new(time.clone(), faults.clone(), observer.clone())?;
        let tokens = TokenVault::default();
        let mut accounts = Vec::new();
        for (name, account) in &night.setup.accounts {
            let account = match account {
                Account::Cloud(account) => account,
                Account::Ssh(ssh) => {
                    for (at, key) in ssh_keys::of_account(&ssh.login) {
                        tokens.put(at, key);
                    }
                    continue;
                }
            };
            let token = fleet.token_of(name).context("an account without a token")?;
            tokens.put(account.token.clone(), token.to_owned());
            accounts.push((token.to_owned(), name.clone()));
        }
        let own = accounts.clone();
        for name in night.setup.accounts.keys() {
            accounts.push((Elsewhere::token_of(name).to_owned(), name.clone()));
        }
        for second in &SECOND_ACCOUNTS {
            tokens.put(second.variable.parse()?, second.token.to_owned());
            accounts.push((second.token.to_owned(), second.name.parse()?));
        }
        let kept: BTreeMap<_, _> =
            own.iter().map(|(token, name)| (name.clone(), token.clone())).collect();
        for event in &night.happenings {
            if let EventKind::Rotate { account, token, .. } = &event.what {
                accounts.push((token.clone(), account.clone()));
            }
        }
        let host = SshHost::of(
            &night.setup,
            machines.clone(),
            time.clone(),
            faults.clone(),
            observer.clone(),
        );
        let wire = Wire {
            time: time.clone(),
            faults: faults.clone(),
            simulator: simulator.clone(),
            router: simulator.router(),
            elsewhere: Elsewhere::new(&time)?,
            host,
            observer: observer.clone(),
            accounts,
        };
        // The SDK keeps retry quotas by name, for the whole process. No two plays may share one.
        let play = PLAYS.fetch_add(1, Ordering::Relaxed);
        let desk = engine.store(&format!("desk-{play}"));
        let tables = engine.clone();
        let containers =
            Containers::new(engine, clouds::shared(wire), tokens.clone(), format!("night-{play}"))?;
        Ok(Self {
            night,
            executor: Executor::new(time.clone())?,
            time,
            containers: Rc::new(containers),
            invocations: Invocations::default(),
            observer,
            faults,
            simulator,
            machines,
            addresses,
            tokens,
            accepted: kept.clone(),
            kept,
            desk,
            tables,
            backup: Vec::new(),
            queue: BTreeMap::new(),
            serial: 0,
            working: BTreeMap::new(),
            lost_until: BTreeMap::new(),
            extra_ticks: Vec::new(),
            deliveries: Vec::new(),
            skew: BTreeMap::new(),
            ticks: 0,
        })
    }

    fn play(mut self) -> Played {
        let desk = self.desk.clone();
        self.at_desk("set-up", async move {
            desk.create_tables().await.map_err(|error| error.to_string())
        });
        self.apply(&self.night.setup.clone());
        for (place, event) in self.night.happenings.iter().enumerate() {
            self.enqueue(event.at, QueuedEvent::NightEvent(place));
        }
        self.enqueue(self.night.begins + MINUTE, QueuedEvent::Minute);
        while let Some(entry) = self.queue.first_entry() {
            let at = entry.key().0;
            if at > self.night.ends {
                break;
            }
            self.run_until(at);
            if self.observer.lock().violation.is_some() {
                break;
            }
            if let Some((_, event)) = self.queue.pop_first() {
                self.process(event);
            }
        }
        self.observer.count_unlisted();
        let observer = self.observer.lock();
        let mut faults = self.faults.counts();
        faults.extend(observer.counts.clone());
        Played {
            violation: observer.violation.clone(),
            faults,
            ticks: self.ticks,
            store_requests: observer.store_requests,
            cloud_requests: observer.cloud_requests,
        }
    }

    fn enqueue(&mut self, at: Timestamp, event: QueuedEvent) {
        self.serial += 1;
        self.queue.insert((at, self.serial), event);
    }

    /// Runs the functions until an instant, and schedules what they invoke.
    fn run_until(&mut self, until: Timestamp) {
        let mut ended = Vec::new();
        loop {
            // What was invoked meanwhile comes first.
            let next = self.queue.first_key_value().map(|((at, _), _)| *at);
            let goes_on = self.executor.step(until.min(next.unwrap_or(until)), &mut ended);
            for (id, options, end) in ended.drain(..) {
                self.ended(id, &options, end);
            }
            for (direction, invocation) in self.invocations.take() {
                self.deliver(direction, invocation);
            }
            let due = self.queue.first_key_value().map(|((at, _), _)| *at);
            if !goes_on || due.is_some_and(|at| at <= self.time.now()) {
                return;
            }
        }
    }

    fn ended(&mut self, id: TaskId, options: &TaskOptions, end: TaskEnd) {
        self.observer.lock().tasks.remove(&id);
        let Some(container) = self.working.remove(&id) else {
            return;
        };
        if end == TaskEnd::Finished {
            container.release();
            return;
        }
        self.containers.end(&container);
        if end == TaskEnd::OutOfTime {
            self.faults.count("ended by its timeout");
            self.observer.note_fault("ended by its timeout", &options.name);
        }
    }

    fn deliver(&mut self, direction: Direction, invocation: Invocation) {
        let now = self.time.now();
        let delay = self.time.chance(|chance| chance.i64(20..400));
        let at = now + SignedDuration::from_millis(delay);
        self.serial += 1;
        let request = format!("request-{}", self.serial);
        match self.deliveries.pop() {
            None => self.enqueue(at, QueuedEvent::Invoke(direction, invocation, request)),
            Some(Delivery::Lost) => {
                self.faults.count("invocation lost");
                self.observer.note_fault("invocation lost", &direction.to_string());
            }
            Some(Delivery::Late(seconds)) => {
                self.faults.count("invocation late");
                let at = at + SignedDuration::from_secs(seconds);
                self.enqueue(at, QueuedEvent::Invoke(direction, invocation, request));
            }
            Some(Delivery::Doubled(seconds)) => {
                self.faults.count("invocation doubled");
                let again = at + SignedDuration::from_secs(seconds);
                self.enqueue(
                    at,
                    QueuedEvent::Invoke(direction, invocation.clone(), request.clone()),
                );
                self.enqueue(again, QueuedEvent::Invoke(direction, invocation, request));
            }
        }
    }

    fn process(&mut self, event: QueuedEvent) {
        match event {
            QueuedEvent::Minute => self.minute(),
            QueuedEvent::Tick(function) => self.invoke(function, Trigger::Timer, None),
            QueuedEvent::Invoke(Direction::Stop, invocation, request) => {
                self.invoke(Function::Stop, Trigger::Act(invocation), Some(request));
            }
            QueuedEvent::Invoke(Direction::Start, invocation, request) => {
                self.invoke(Function::Start, Trigger::Act(invocation), Some(request));
            }
            QueuedEvent::ReplaceToken(account, token) => {
                self.faults.count("token rotated");
                self.simulator.set_token(&account, &token);
                self.observer.changed();
                self.observer.note(Actor::Person, || format!("replaces the token of {account}"));
                self.accepted.insert(account, token);
            }
            QueuedEvent::KeepToken(account, token) => {
                self.store_token(&account, &token);
                self.kept.insert(account, token);
            }
            QueuedEvent::CorrectToken(account) => {
                let token = self.kept[&account].clone();
                self.store_token(&account, &token);
            }
            QueuedEvent::Known(resource, format) => {
                // A table that was restored since may know it already.
                if self.tables.rewrite(&resource, &format).is_some() {
                    self.observer.is_known_again(&resource);
                }
            }
            QueuedEvent::Restore => self.restore(),
            QueuedEvent::NightEvent(place) => self.carry_out(&self.night.happenings[place].clone()),
        }
    }

    fn store_token(&self, account: &AccountName, token: &str) {
        let accounts = &self.night.setup.accounts;
        if let Some(account) = accounts.get(account).and_then(Account::cloud) {
            self.tokens.put(account.token.clone(), token.to_owned());
        }
        self.observer.changed();
        self.observer.note(Actor::Person, || format!("stores a token of {account}"));
    }

    /// Fires both timers, unless they are disturbed or nothing can happen in this minute.
    fn minute(&mut self) {
        let now = self.time.now();
        let next = self.next_minute(now);
        if next > now {
            self.enqueue(next, QueuedEvent::Minute);
            return;
        }
        self.ticks += 1;
        for function in [Function::Dispatch, Function::PollStatus] {
            if self.lost_until.get(&function).is_some_and(|until| now < *until) {
                self.faults.count("tick lost");
                continue;
            }
            let mut at = now + SignedDuration::from_millis(self.time.chance(|c| c.i64(0..900)));
            let disturbed = self.extra_ticks.iter().position(|(of, ..)| *of == function);
            if let Some((_, by, doubled)) = disturbed.map(|place| self.extra_ticks.remove(place)) {
                if doubled {
                    self.faults.count("tick doubled");
                    self.enqueue(at + by, QueuedEvent::Tick(function));
                } else {
                    self.faults.count("tick late");
                    at += by;
                }
            }
            self.enqueue(at, QueuedEvent::Tick(function));
        }
        self.enqueue(now + MINUTE, QueuedEvent::Minute);
    }

    /// Returns the first minute from `now` on in which anything may happen. Until then nothing is in
    /// flight or due, inventories included. An inventory that would find everything as the last one
    /// did is left out.
    fn next_minute(&self, now: Timestamp) -> Timestamp {
        let observer = self.observer.lock();
        let accounts = observer.configured().unwrap_or_default();
        if !self.executor.is_idle()
            || accounts.is_empty()
            || accounts.iter().any(|account| account.token_fails)
        {
            return now;
        }
        // In terms of a function's clock, which may be ahead.
        let listed_since = observer.last_change + SKEW;
        let unchanged = accounts.iter().all(|account| {
            !account.has_error && account.listed_at.is_some_and(|at| at > listed_since)
        });
        let left_out = unchanged && !self.faults.are_set(now);
        let inventories =
            accounts.iter().filter_map(|account| Some(account.tried_at? + INVENTORY_INTERVAL));
        let inventory = inventories.min().filter(|_| !left_out);
        let due = observer.records.values().filter_map(|record| record.due_at).min();
        // Nothing is stopped on an old list: an inventory comes shortly before what is due.
        let due = due.map(|at| {
            let before = at - INVENTORY_INTERVAL * 2;
            let is_listed = accounts.iter().all(|account| account.tried_at >= Some(before));
            if is_listed { at } else { before.max(now) }
        });
        let mut queue = self.queue.iter();
        let queued = queue.find(|(_, event)| !matches!(event, QueuedEvent::Tick(_)));
        let queued = queued.map(|((at, _), _)| *at);
        let until = due.into_iter().chain(queued).chain(inventory).min();
        let until = until.unwrap_or(self.night.ends);
        // The minute's own tick comes in time for what is due in its first seconds.
        let seconds = (until - SKEW).duration_since(now).as_secs();
        let minutes = (seconds + 59).div_euclid(60);
        now + MINUTE * i32::try_from(minutes.clamp(0, 24 * 60)).unwrap_or(0)
    }

    fn invoke(&mut self, function: Function, trigger: Trigger, request: Option<String>) {
        let Ok(container) = self.containers.free(function) else {
            return;
        };
        let now = self.time.now();
        let ahead = self.skew.get(&function).copied().unwrap_or_default();
        let clock = SteppedClock::at(now + ahead);
        self.serial += 1;
        let request = request.unwrap_or_else(|| format!("tick-{}", self.serial));
        let (invocations, observer) = (self.invocations.clone(), self.observer.clone());
        let working = container.clone();
        let addresses = self.addresses.clone();
        let options = TaskOptions {
            name: format!("{} {request}", function.name()),
            clock: Some((clock.clone(), ahead)),
            deadline: Some(now + function.timeout()),
        };
        let actor = Actor::Function(function);
        let writer = Writer::of(&request, self.serial);
        let sender = writer.0.clone();
        let id = self.executor.spawn(options, async move {
            let listener = |outcome: &Occurrence| observer.function_reported(actor, outcome);
            let work = Work { function, trigger, clock, writer };
            let handled = working.handle(work, &invocations, &addresses, &listener);
            match handled.await {
                Ok(left_alone) => observer.left_alone(&left_alone),
                Err(error) => observer.note(actor, || format!("fails: {error}")),
            }
        });
        self.observer.lock().tasks.insert(id, (actor, sender));
        self.working.insert(id, container);
    }

    /// Runs a person's command, as a process of its own.
    fn at_desk(&mut self, what: &str, work: impl Future<Output = Result<(), String>> + 'static) {
        let options = TaskOptions { name: what.to_owned(), clock: None, deadline: None };
        let (observer, what) = (self.observer.clone(), what.to_owned());
        let id = self.executor.spawn(options, async move {
            match work.await {
                Ok(()) => observer.note(Actor::Person, || what.clone()),
                Err(error) => observer.note(Actor::Person, || format!("{what} fails: {error}")),
            }
        });
        self.observer.lock().tasks.insert(id, (Actor::Person, String::new()));
        // A person does one thing at a time.
        let mut ended = Vec::new();
        let until = self.time.now() + MINUTE;
        while self.executor.name(id).is_some() && self.executor.step(until, &mut ended) {}
        for (id, options, end) in ended {
            self.ended(id, &options, end);
        }
    }

    fn apply(&mut self, setup: &Setup) {
        self.faults.count("a configuration is applied");
        let (desk, now) = (self.desk.clone(), self.time.now());
        let observer = self.observer.clone();
        observer.applying(setup);
        let setup = setup.under_its_names();
        self.at_desk("applies a configuration", async move {
            let present = desk.head_and_overrides().await.map_err(|error| error.to_string())?;
            let configuration = setup.after(present.head.generation);
            let applied = desk.apply(&configuration, "ada", now).await;
            observer.changed();
            applied.map(|_| ()).map_err(|error| error.to_string())
        });
    }

    fn carry_out(&mut self, event: &NightEvent) {
        let now = self.time.now();
        match event.what.clone() {
            EventKind::Fault { of, after, fault } => self.faults.set(now, of, after, fault),
            EventKind::Outage { account, minutes, fault } => {
                let until = now + MINUTE * to_i32(minutes);
                self.faults.set_outage(until, account, fault);
            }
            EventKind::TicksLost { function, minutes } => {
                let until = now + MINUTE * to_i32(minutes);
                let lost_until = self.lost_until.entry(function).or_insert(until);
                *lost_until = until.max(*lost_until);
            }
            EventKind::TickDoubled { function, seconds } => {
                self.extra_ticks.push((function, of_seconds(seconds), true));
            }
            EventKind::TickLate { function, seconds } => {
                self.extra_ticks.push((function, of_seconds(seconds), false));
            }
            EventKind::InvocationLost => self.deliveries.push(Delivery::Lost),
            EventKind::InvocationDoubled { seconds } => {
                self.deliveries.push(Delivery::Doubled(seconds));
            }
            EventKind::InvocationLate { seconds } => self.deliveries.push(Delivery::Late(seconds)),
            EventKind::Skew { function, seconds } => {
                self.faults.count("clock skew");
                self.skew.insert(function, of_seconds(seconds));
            }
            EventKind::Rotate { account, token, stored_after } => {
                let later = now + of_seconds(stored_after.abs());
                let replace = QueuedEvent::ReplaceToken(account.clone(), token.clone());
                let keep = QueuedEvent::KeepToken(account, token);
                let (first, second) =
                    if stored_after < 0 { (keep, replace) } else { (replace, keep) };
                self.process(first);
                self.enqueue(later, second);
            }
            EventKind::Mistake { account, minutes } => {
                self.faults.count("a token of another project is stored");
                self.store_token(&account, Elsewhere::token_of(&account));
                let until = now + MINUTE * to_i32(minutes);
                self.enqueue(until, QueuedEvent::CorrectToken(account));
            }
            EventKind::CutOff { machine, minutes } => {
                self.faults.count("a machine is cut off");
                self.machines.cut_off(&machine, now + MINUTE * to_i32(minutes));
                self.observer.cut_off(&machine);
            }
            EventKind::Down { check, minutes } => {
                self.faults.count("the address of a check is down");
                self.addresses.take_down(check, now, now + MINUTE * to_i32(minutes));
            }
            EventKind::Offer { plan, offer } => {
                self.faults.count("a plan is withdrawn or given back");
                let described = format!("{plan}: {offer:?}");
                self.observer.offers_change();
                let done = self.simulator.set_offer(&plan, None, &offer);
                self.observer.note(Actor::Cloud, || format!("offers {described}: {done:?}"));
            }
            EventKind::Newer { resource, minutes } => self.write_newer(resource, minutes),
            EventKind::BackUp => self.backup = self.tables.resources(),
            EventKind::Restore => self.restore(),
            EventKind::Inspect => self.observer.inspect(),
            what @ (EventKind::Person { .. }
            | EventKind::Until { .. }
            | EventKind::Create { .. }
            | EventKind::Override { .. }
            | EventKind::Clear { .. }
            | EventKind::Pause { .. }
            | EventKind::Resume { .. }
            | EventKind::Command { .. }
            | EventKind::Rehearse { .. }
            | EventKind::LoseSnapshots { .. }
            | EventKind::LabelSnapshots { .. }
            | EventKind::ShowSnapshots { .. }
            | EventKind::DeleteOther { .. }
            | EventKind::MoveAddress { .. }
            | EventKind::Forget { .. }
            | EventKind::Approve
            | EventKind::Apply { .. }) => self.by_person(what),
        }
    }

    /// Lets a newer program write a record that this one does not know how to read.
    fn write_newer(&mut self, resource: ResourceRef, minutes: i64) {
        let Some(known) = self.tables.rewrite(&resource, &tables::newer_format()) else {
            return;
        };
        self.faults.count("a newer program writes a record");
        self.observer.is_newer(&resource);
        let back = self.time.now() + MINUTE * to_i32(minutes);
        self.enqueue(back, QueuedEvent::Known(resource, known));
    }

    /// Restores the table of resources, once no function runs: the timers are disabled meanwhile.
    fn restore(&mut self) {
        let is_invoked = |one: &QueuedEvent| matches!(one, QueuedEvent::Invoke(..));
        if !self.executor.is_idle() || self.queue.values().any(is_invoked) {
            self.enqueue(self.time.now() + MINUTE, QueuedEvent::Restore);
            return;
        }
        self.faults.count("the table of resources is restored");
        self.tables.put_back(&self.backup);
        self.observer.restored(&self.backup);
    }

    /// Carries out what a person does, at the provider or with the command.
    #[expect(clippy::wildcard_enum_match_arm, reason = "everything else is not a person's")]
    fn by_person(&mut self, what: EventKind) {
        let now = self.time.now();
        match what {
            EventKind::Person { resource, act } => {
                if let ResourceId::Machine(name) = &resource.id {
                    return self.switch_machine(name, &resource, &act);
                }
                self.faults.count("a person acts at the cloud");
                act_at_cloud(&self.observer, &self.simulator, &resource, &act);
            }
            EventKind::Until { resource, value } => self.tag_until(&resource, value.as_deref()),
            EventKind::Create { fleet } => {
                self.faults.count("a person creates a resource");
                let done = self.simulator.create(&fleet);
                self.observer.changed();
                self.observer.note(Actor::Person, || format!("creates {fleet:?}: {done:?}"));
            }
            EventKind::Override { target, desired, minutes, later } => {
                let set_at = now + MINUTE * to_i32(later);
                self.set_override(Override {
                    target: self.under_its_name(target),
                    desired,
                    set_at,
                    ends_at: set_at + MINUTE * to_i32(minutes),
                    by: "ada".to_owned(),
                    why: None,
                    before: None,
                });
            }
            EventKind::Clear { target } => self.clear_override(self.under_its_name(target)),
            EventKind::Pause { scope, starts, minutes } => self.pause(Pause {
                scope,
                starts,
                set_at: now,
                ends_at: now + MINUTE * to_i32(minutes),
                by: "ada".to_owned(),
                why: "release".to_owned(),
            }),
            EventKind::Resume { scope } => self.resume(scope),
            EventKind::Command { direction, resource, without } => {
                self.command(direction, resource, without, false);
            }
            EventKind::Rehearse { resource } => {
                self.command(Direction::Stop, resource, Vec::new(), true);
            }
            EventKind::Approve => self.approve(),
            EventKind::LoseSnapshots { resource, only } => self.lose_snapshots(&resource, only),
            EventKind::LabelSnapshots { resource, off } => self.label_snapshots(&resource, off),
            EventKind::ShowSnapshots { resource, word } => {
                self.show_snapshots(&resource, word.as_deref());
            }
            EventKind::DeleteOther { resource, path } => self.delete_other(&resource, &path),
            EventKind::MoveAddress { resource, path, to } => {
                self.move_address(&resource, &path, &to);
            }
            EventKind::Forget { resource } => self.forget(resource),
            EventKind::Apply { setup } => self.apply(&setup),
            _ => {}
        }
    }

    /// Switches a machine over SSH on or off, as a person would.
    fn switch_machine(&self, name: &MachineName, resource: &ResourceRef, act: &Act) {
        self.faults.count("a person switches a machine over SSH");
        self.machines.switch(name, *act == Act::PowerOn);
        self.observer.person_acted(resource, act);
        self.observer.changed();
        self.observer.note(Actor::Person, || format!("{act:?} {resource}"));
    }

    /// Tags a resource to run until a time, in the form of its cloud, or removes that tag.
    fn tag_until(&mut self, resource: &ResourceRef, value: Option<&str>) {
        let (present, _) = self.observer.present(resource);
        let Some(state) = self.simulator.resource(&present) else { return };
        self.faults.count(match value {
            Some(_) => "a person tags a resource to run until a time",
            None => "a person removes the tag with a time",
        });
        let is_server = matches!(resource.id, ResourceId::Server(_));
        let labels = state["labels"].as_object().filter(|_| is_server).into_iter().flatten();
        let labels =
            labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
        let tags = state["tags"].as_array().into_iter().flatten();
        let tags = tags.filter_map(Value::as_str).map(str::to_owned);
        let is_other = |tag: &String| !tag.starts_with("offhours-until");
        let mut tags: Vec<_> = labels.chain(tags).filter(is_other).collect();
        tags.extend(value.map(|value| {
            if is_server {
                format!("offhours-until={}", value.replace(':', "."))
            } else {
                format!("offhours-until:{value}")
            }
        }));
        let done = self.simulator.person(&present, Act::Retag { tags });
        self.observer.changed();
        self.observer.note(Actor::Person, || format!("tags {resource} until {value:?}: {done:?}"));
        self.observer.until_tagged(resource);
    }

    fn command(
        &mut self,
        direction: Direction,
        resource: ResourceRef,
        without: Vec<AttachmentName>,
        rehearsal: bool,
    ) {
        let now = self.time.now();
        self.serial += 1;
        let request = format!("command-{}", self.serial);
        self.faults.count("a person's command");
        if !without.is_empty() {
            self.faults.count("a start goes without what was deleted");
            self.observer.lock().goes_without(&resource, without.clone(), &request);
        }
        self.observer.commanded(&resource);
        let command = Invocation::Command(Command {
            target: CommandTarget::Resources(vec![self.observer.under_its_name(resource)]),
            dry_run: false,
            by: Some("ada".to_owned()),
            given_at: Some(now),
            rehearsal,
            without,
        });
        self.enqueue(now, QueuedEvent::Invoke(direction, command, request));
    }

    /// Deletes every snapshot of a machine, as a person would.
    fn lose_snapshots(&mut self, resource: &ResourceRef, only: Option<usize>) {
        let mut ours = self.observer.lock().snapshots_of(resource);
        match only {
            None => self.faults.count("a person deletes snapshots"),
            Some(_) if ours.len() < 2 => return,
            Some(place) => {
                self.faults.count("a person deletes one snapshot");
                ours = vec![ours.swap_remove(place % ours.len())];
            }
        }
        for id in ours.iter().filter_map(|image| image["id"].as_u64()) {
            let deleted = self.simulator.delete_image(&resource.account, id);
            if deleted {
                self.observer.snapshot_deleted(resource);
            }
            self.observer.note(Actor::Person, || format!("deletes snapshot {id}: {deleted}"));
        }
        self.observer.changed();
    }

    /// Opts a sleeping machine out, or in again, as a person would.
    fn label_snapshots(&mut self, resource: &ResourceRef, off: bool) {
        self.faults.count("a person labels snapshots");
        let ours = self.observer.lock().snapshots_of(resource);
        for id in ours.iter().filter_map(|image| image["id"].as_u64()) {
            let account = &resource.account;
            let label = ("offhours", "off");
            let labelled = self.simulator.label_image(account, id, label, off);
            self.observer
                .note(Actor::Person, || format!("labels snapshot {id} off, {off}: {labelled}"));
        }
        if !ours.is_empty() {
            self.observer.snapshots_labelled(resource);
        }
        self.observer.changed();
    }

    fn show_snapshots(&mut self, resource: &ResourceRef, word: Option<&str>) {
        let ours = self.observer.lock().snapshots_of(resource);
        for id in ours.iter().filter_map(|image| image["id"].as_u64()) {
            let shown = self.simulator.show_image_as(&resource.account, id, word);
            self.observer.note(Actor::Cloud, || format!("calls snapshot {id} {word:?}: {shown}"));
            if word.is_some() {
                self.faults.count("a snapshot's status word changes");
            }
        }
        self.observer.changed();
    }

    /// Deletes something other than a machine or a snapshot, as a person would.
    fn delete_other(&mut self, resource: &ResourceRef, path: &str) {
        let status = self.ask_cloud(resource, http::Method::DELETE, path, String::new());
        if status.as_ref().is_ok_and(http::StatusCode::is_success) {
            self.faults.count(match path.split('/').next() {
                Some("vpcs") => "a person deletes a VPC",
                Some("reserved_ips" | "floating_ips") => "a person deletes an address",
                _ if matches!(resource.id, ResourceId::Droplet(_)) => {
                    "a person deletes what is attached to a Droplet"
                }
                _ => "a person deletes a network, a volume or a key",
            });
            self.observer.lock().attachment_deleted(resource);
            if let Some(vpc) = path.strip_prefix("vpcs/") {
                self.observer.lock().vpc_deleted(vpc);
            }
        }
        self.observer.changed();
        self.observer.note(Actor::Person, || format!("deletes {path}: {status:?}"));
    }

    /// Gives an address to another machine, as a person would.
    fn move_address(&mut self, resource: &ResourceRef, path: &str, to: &ResourceRef) {
        let (present, _) = self.observer.present(to);
        let id = present.id.provider_id();
        let (path, body) = if matches!(resource.id, ResourceId::Droplet(_)) {
            (format!("{path}/actions"), format!(r#"{{"type": "assign", "droplet_id": {id}}}"#))
        } else {
            (format!("{path}/actions/assign"), format!(r#"{{"server": {id}}}"#))
        };
        let status = self.ask_cloud(resource, http::Method::POST, &path, body);
        if status.as_ref().is_ok_and(http::StatusCode::is_success) {
            self.faults.count("a person gives an address to another machine");
            self.observer.lock().address_moved(resource, to);
        }
        self.observer.changed();
        self.observer.note(Actor::Person, || format!("{path} for {to}: {status:?}"));
    }

    /// Sends a request of a person to the cloud of a machine.
    fn ask_cloud(
        &self,
        machine: &ResourceRef,
        method: http::Method,
        path: &str,
        body: String,
    ) -> Result<http::StatusCode, String> {
        let token = &self.accepted[&machine.account];
        let version = if matches!(machine.id, ResourceId::Droplet(_)) { "v2" } else { "v1" };
        let request = http::Request::builder()
            .method(method)
            .uri(format!("http://127.0.0.1:1/{version}/{path}"))
            .header(http::header::AUTHORIZATION, format!("Bearer {token}"))
            .body(bytes::Bytes::from(body))
            .expect("a request");
        let answer = clouds::send(self.simulator.router(), request);
        let answer = clouds::poll_to_completion(answer).map_err(|error| format!("{error:?}"))?;
        Ok(answer.status())
    }

    /// Approves what is held, as the command does.
    fn approve(&mut self) {
        let held = self.observer.held();
        if held.is_empty() {
            return;
        }
        self.faults.count("a person approves what is held");
        self.observer.note(Actor::Person, || format!("approves {} held", held.len()));
        self.observer.changed();
        let held = held.into_iter().map(|one| self.observer.under_its_name(one)).collect();
        self.invoke(Function::PollStatus, Trigger::Approve(held), None);
    }

    /// Forgets a record as the command does, unless it says that something would be lost.
    fn forget(&mut self, resource: ResourceRef) {
        let (desk, now) = (self.desk.clone(), self.time.now());
        let (observer, faults) = (self.observer.clone(), self.faults.clone());
        let is_away = !observer.lock().is_configured(&resource.account);
        let resource = observer.under_its_name(resource);
        self.at_desk(&format!("forgets {resource}"), async move {
            let record = desk.record(&resource).await;
            let Some(record) = record.map_err(|error| error.to_string())? else {
                return Ok(());
            };
            let is_gone = matches!(record.phase, Phase::Gone { .. });
            let is_owed =
                record.saved.is_some() || record.hibernation.is_some() || record.is_held_stopped();
            if !is_gone && !is_away || is_owed || record.permit_is_open(now) {
                return Ok(());
            }
            let forgotten = desk.forget(&record, "ada", now).await;
            faults.count("a person forgets a record");
            observer.changed();
            forgotten.map_err(|error| error.to_string())
        });
    }

    fn under_its_name(&self, target: OverrideTarget) -> OverrideTarget {
        match target {
            OverrideTarget::Resource(one) => {
                OverrideTarget::Resource(self.observer.under_its_name(one))
            }
            schedule @ OverrideTarget::Schedule(_) => schedule,
        }
    }

    fn set_override(&mut self, one: Override) {
        let (desk, now) = (self.desk.clone(), self.time.now());
        let begins_later = one.set_at > now;
        self.faults.count(if begins_later {
            "an override is set that begins later"
        } else {
            "an override is set"
        });
        let observer = self.observer.clone();
        let Override { target, desired, set_at, ends_at, .. } = &one;
        let what = format!("sets an override: {target} {desired} from {set_at} until {ends_at}");
        self.at_desk(&what, async move {
            observer.changed();
            let present = desk.head_and_overrides().await;
            let overrides = present.map_err(|error| error.to_string())?.overrides;
            let standing = overrides.get(&one.target);
            let before = standing.filter(|_| begins_later);
            if before.is_some_and(|before| before.is_active(now)) {
                return Err("it is overridden now".to_owned());
            }
            let before = before.and_then(|before| before.to_remember(now));
            write_override(&desk, &Override { before, ..one }, standing, now).await
        });
    }

    fn clear_override(&mut self, target: OverrideTarget) {
        self.faults.count("an override is cleared");
        let (desk, now) = (self.desk.clone(), self.time.now());
        let observer = self.observer.clone();
        self.at_desk(&format!("ends the override of {target}"), async move {
            observer.changed();
            let present = desk.head_and_overrides().await.map_err(|error| error.to_string())?;
            let standing = present.overrides.get(&target).filter(|one| one.counts());
            let Some(standing) = standing.filter(|one| now < one.ends_at) else {
                return Ok(());
            };
            let ended = Override { ends_at: now, ..standing.clone() };
            write_override(&desk, &ended, Some(standing), now).await
        });
    }

    fn pause(&mut self, pause: Pause) {
        self.faults.count("a person pauses");
        let (desk, now) = (self.desk.clone(), self.time.now());
        let observer = self.observer.clone();
        self.at_desk(&format!("pauses {} until {}", pause.scope, pause.ends_at), async move {
            observer.changed();
            let present = desk.head_and_overrides().await.map_err(|error| error.to_string())?;
            let known = present.overrides.pauses().find(|one| one.scope == pause.scope);
            write_pause(&desk, &pause, known, Action::paused(&pause), now).await
        });
    }

    fn resume(&mut self, scope: PauseScope) {
        let (desk, now) = (self.desk.clone(), self.time.now());
        let (observer, faults) = (self.observer.clone(), self.faults.clone());
        self.at_desk(&format!("ends the pause of {scope}"), async move {
            observer.changed();
            let present = desk.head_and_overrides().await.map_err(|error| error.to_string())?;
            let mut active = present.overrides.pauses().filter(|one| one.is_active(now));
            let Some(standing) = active.find(|one| one.scope == scope) else {
                return Ok(());
            };
            faults.count("a person ends a pause");
            let ended = Pause { ends_at: now, ..standing.clone() };
            write_pause(&desk, &ended, Some(standing), Action::Resumed { scope }, now).await
        });
    }
}

/// Writes a pause and makes due what it concerns, as the command and poll-status do.
async fn write_pause(
    desk: &Store,
    pause: &Pause,
    replaces: Option<&Pause>,
    action: Action,
    now: Timestamp,
) -> Result<(), String> {
    let done = Author::from(&*pause.by).does(action, now);
    let written = desk.replace_pause(pause, replaces, &done).await;
    written.map_err(|error| error.to_string())?;
    let made_due = desk.make_scope_due(&pause.scope, now).await;
    made_due.map_err(|error| error.to_string())
}

/// Writes an override and makes due what it concerns, as the command and poll-status do.
async fn write_override(
    desk: &Store,
    one: &Override,
    replaces: Option<&Override>,
    now: Timestamp,
) -> Result<(), String> {
    let set = Author::from(&*one.by).does(Action::set(one), now);
    let written = desk.replace_override(one, replaces, &set).await;
    written.map_err(|error| error.to_string())?;
    let made_due = desk.make_target_due(&one.target, now).await;
    made_due.map_err(|error| error.to_string())
}

fn of_seconds(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

fn to_i32(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
