//! What each guard lets through and what it holds back, one at a time: pure functions over a
//! record, a look and an instant. Everything happens on Monday, 15 June 2026, under the schedule
//! `office` (08:00 to 19:00, UTC), unless a test says otherwise.

#![expect(
    missing_docs,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    clippy::unwrap_used,
    reason = "the names of builders say what they build, and the exceptions for tests do not reach them"
)]
#![cfg_attr(
    not(test),
    expect(dead_code, unused_imports, reason = "the tests of other crates use only some of it")
)]

#[cfg(test)]
mod asking;
#[cfg(test)]
mod claiming;
#[cfg(test)]
mod following;
#[cfg(test)]
mod forcing;
#[cfg(test)]
mod hibernating;
#[cfg(test)]
mod judging;
#[cfg(test)]
mod lasting;
#[cfg(test)]
mod machines;
#[cfg(test)]
mod moving;
#[cfg(test)]
mod noting;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod saving;
#[cfg(test)]
mod turning;

use std::collections::BTreeSet;

use domain::{
    ResourceId, ResourceKind, ResourceRef, ScheduleName,
    configuration::{
        Account, Configuration, Generation, Mode, Override, OverrideTarget, Overrides, Policy,
        Rule, Schedules,
    },
    decision::Rules,
    hibernation::{Manifest, Sight},
    reason::{Reason, Refusal},
    record::UntilTag,
    record::{
        Ask, Cause, Direction, EdgeKey, Ending, Forced, Handled, LOOK_AGE, ManualCommand, Observed,
        Opposite, Permit, Phase, Rank, Record, Request, Transition, Writer,
    },
    resource::{
        ActionEffect, ActionId, ActionState, AutoscaleBounds, Busy, Cluster, DatabaseSize,
        LoggedAction, MachineFacts, MachineSize, NodePoolSize, Power, Resource, SavedState, Size,
    },
    schedule::{Desired, Schedule},
    step::Step,
    stop_method::StopMethod,
};
use jiff::{SignedDuration, Timestamp};

use crate::{
    event::Event,
    failure::{Failure, FailureKind},
    follow::{Follow, follow, missing, unlisted},
    plan::plan,
    view::{Observation, Plan, PlanContext, Send, View, Withheld, Write},
};

const STOP: Direction = Direction::Stop;
const START: Direction = Direction::Start;
const RUNNING: Desired = Desired::Running;
const STOPPED: Desired = Desired::Stopped;

const ON: Step = Step::On { small: false };
const SHUTDOWN: Step = Step::Off { gracefully: true };
const CUT: Step = Step::CUT;

/// Parses `19:00:30` on Monday, `tue 08:00`, or `sun 19:00` of the day before.
pub fn at(text: &str) -> Timestamp {
    let (day, time) = match text.split_once(' ') {
        Some(("sun", time)) => (14, time),
        Some(("tue", time)) => (16, time),
        Some((day, _)) => panic!("no day `{day}`"),
        None => (15, text),
    };
    let seconds = if time.len() == 5 { ":00" } else { "" };
    format!("2026-06-{day}T{time}{seconds}Z").parse().unwrap()
}

fn us() -> Writer {
    Writer("us".to_owned())
}

pub fn database_of(plan: &str, nodes: u32) -> SavedState {
    SavedState::Database { plan: plan.to_owned(), nodes, storage_mib: None }
}

pub fn pool_of(count: u32) -> SavedState {
    SavedState::NodePool { count, autoscale: None }
}

/// One resource, what is recorded of it, what a look shows, and when.
#[derive(Debug, Clone)]
pub struct Case {
    pub record: Record,
    pub resource: Resource,
    log: Vec<LoggedAction>,
    target: Option<SavedState>,
    refusal: Option<&'static str>,
    pub sight: Option<Sight>,
    pub log_from: Option<Timestamp>,
    pub ssh_key: Option<&'static str>,
    pub creates: Option<Manifest>,
    pub configuration: Configuration,
    pub overrides: Overrides,
    looked_at: Option<Timestamp>,
    pub now: Timestamp,
}

/// The plan that the database of these tests is stopped at.
const SMALLEST: &str = "db-s-1vcpu-1gb";

/// A resource that follows `office`, settled running since its begin edge.
fn case(reference: &str, size: Size) -> Case {
    let reference: ResourceRef = reference.parse().unwrap();
    let kind = reference.kind();
    let tag = match kind {
        ResourceKind::Server => "offhours=office",
        ResourceKind::Droplet
        | ResourceKind::Database
        | ResourceKind::NodePool
        | ResourceKind::Machine => "offhours:office",
    };
    let cluster = (kind == ResourceKind::NodePool)
        .then(|| Cluster { name: "k8s".to_owned(), tags: BTreeSet::new() });
    let resource = Resource {
        id: reference.id.clone(),
        name: "web".to_owned(),
        cluster,
        tags: BTreeSet::from([tag.to_owned()]),
        region: "fra1".to_owned(),
        power: Power::Running,
        busy: None,
        size,
        facts: MachineFacts::default(),
        unsupported: None,
    };
    let target = (kind == ResourceKind::Database).then(|| database_of(SMALLEST, 1));
    let mut record = Record::first_seen(reference, &resource);
    record.opted_in = true;
    let case = Case {
        record,
        resource,
        log: Vec::new(),
        target,
        refusal: None,
        sight: None,
        log_from: None,
        ssh_key: None,
        creates: None,
        configuration: configuration(),
        overrides: Overrides::default(),
        looked_at: None,
        now: at("19:00"),
    };
    case.handled("08:00", RUNNING)
}

fn machine_size(plan: String) -> Size {
    Size::Machine(MachineSize { plan, ..MachineSize::default() })
}

pub fn droplet() -> Case {
    let plan = "s-1vcpu-1gb".to_owned();
    case("do-main/droplet/1", machine_size(plan))
}

pub fn server() -> Case {
    let plan = "cx22".to_owned();
    case("hz-eu/server/1", machine_size(plan))
}

/// Two `PostgreSQL` nodes of 4 GiB.
pub fn database() -> Case {
    let size = Size::Database(DatabaseSize {
        engine: "pg".to_owned(),
        plan: "db-s-2vcpu-4gb".to_owned(),
        nodes: 2,
        storage_mib: Some(61_440),
    });
    case("do-main/database/9cc1", size)
}

/// Three nodes, all running.
pub fn pool() -> Case {
    let size = Size::NodePool(NodePoolSize {
        plan: "s-2vcpu-4gb".to_owned(),
        count: 3,
        autoscale: None,
        present: 3,
        ready: 3,
        labels: r#"{"team":"web"}"#.to_owned(),
        taints: r#"[{"key":"gpu"}]"#.to_owned(),
    });
    case("do-main/node-pool/c1/p1", size)
}

pub fn configuration() -> Configuration {
    let rule = Rule {
        schedule: open(&[("08:00", "19:00")]),
        resources: BTreeSet::new(),
        policy: Policy::default(),
    };
    let schedules = Schedules::from([(office(), rule)]);
    Configuration { schedules, ..domain::fixtures::configuration() }
}

/// A schedule of what runs between these times of every day.
pub fn open(times: &[(&str, &str)]) -> Schedule {
    let period = |(begin, end): &(&str, &str)| serde_json::json!({"begin": begin, "end": end});
    let periods: Vec<_> = times.iter().map(period).collect();
    let definition = serde_json::json!({"timezone": "UTC", "periods": periods});
    Schedule::new(&serde_json::from_value(definition).unwrap()).unwrap()
}

pub fn office() -> ScheduleName {
    "office".parse().unwrap()
}

/// Why a step was not accepted, in the words of a refusal.
fn failure(kind: FailureKind, refusal: &Refusal) -> Box<Failure> {
    Box::new(Failure {
        kind,
        reason: Reason::of(refusal),
        words: refusal.to_string(),
        retry_after: None,
    })
}

/// Setting up the record.
impl Case {
    pub fn record(mut self, change: impl FnOnce(&mut Record)) -> Self {
        change(&mut self.record);
        self
    }

    fn handled(self, instant: &str, desired: Desired) -> Self {
        let handled = Handled {
            generation: Generation(1),
            key: EdgeKey { instant: at(instant), rank: Rank::Schedule },
            desired: Some(desired),
            schedule: Some(office()),
        };
        self.record(|record| record.handled = Some(handled))
    }

    fn settled(self, at: Power) -> Self {
        self.record(|record| record.phase = Phase::Settled { at })
    }

    /// A transition in flight without a request: a watch-out.
    pub fn in_flight(self, direction: Direction, since: &str) -> Self {
        let transition = transition(self.record.kind(), direction, since);
        self.record(|record| record.phase = Phase::InFlight { transition })
            .handled(since, direction.desired())
    }

    /// A transition in flight, with a request that was permitted when it began.
    pub fn asked(self, direction: Direction, since: &str, ask: Ask) -> Self {
        let kind = self.record.kind();
        let step = match (kind, direction) {
            (ResourceKind::Database, Direction::Stop) => Step::Resize(database_of(SMALLEST, 1)),
            (ResourceKind::NodePool, Direction::Stop) => Step::Resize(pool_of(0)),
            (ResourceKind::Database | ResourceKind::NodePool, Direction::Start) => {
                Step::Resize(self.record.saved.clone().unwrap_or_else(|| pool_of(3)))
            }
            (_, Direction::Start) => ON,
            (ResourceKind::Server, Direction::Stop) => SHUTDOWN,
            (ResourceKind::Droplet | ResourceKind::Machine, Direction::Stop) => CUT,
        };
        let request = Request {
            direction,
            step,
            asked_at: at(since),
            looked_at: at(since),
            ask,
            earlier_unanswered: false,
            forced: Forced::No,
            effect_timeout: None,
            first_accepted_at: None,
            created_machine: None,
            problem: None,
        };
        self.in_flight(direction, since).record(|record| record.request = Some(request))
    }

    fn stuck(self, direction: Direction, since: &str) -> Self {
        let transition = transition(self.record.kind(), direction, since);
        let since = at(since) + SignedDuration::from_mins(10);
        self.record(|record| {
            record.phase = Phase::Stuck { transition, since, reason: "not seen".to_owned() };
        })
    }

    fn refused(self, direction: Direction, since: &str) -> Self {
        let transition = transition(self.record.kind(), direction, since);
        self.record(|record| {
            record.phase = Phase::Refused { transition, reason: "no".to_owned() };
        })
    }

    fn request(self, change: impl FnOnce(&mut Request)) -> Self {
        self.record(|record| change(record.request.as_mut().unwrap()))
    }

    /// An earlier ask of the transition was never answered.
    fn unknown(self) -> Self {
        self.request(|request| request.earlier_unanswered = true)
    }

    fn permitted_until(self, until: &str, writer: &str) -> Self {
        let permit = Permit { until: at(until), writer: Writer(writer.to_owned()) };
        self.record(|record| record.permit = Some(permit))
    }

    fn not_before(self, until: &str) -> Self {
        self.record(|record| {
            let may_become = record.opposite.take().and_then(|one| one.may_become);
            record.opposite = Some(Opposite { until: at(until), may_become });
        })
    }

    fn saved(self, saved: SavedState) -> Self {
        self.record(|record| record.saved = Some(saved))
    }

    fn used(self) -> Self {
        self.record(|record| record.may_have_shrunk = true)
    }

    fn observed(self, power: Power) -> Self {
        let observed =
            Observed { power, size: self.resource.size.to_save(), busy: None, at: self.now };
        self.record(|record| record.observed = Some(observed))
    }

    pub fn commanded(self, desired: Desired, instant: &str) -> Self {
        let manual = ManualCommand {
            instant: at(instant),
            desired,
            by: "ada".to_owned(),
            request_id: "request-1".to_owned(),
            earlier: Vec::new(),
            rehearsal: false,
        };
        self.record(|record| record.manual_command = Some(manual))
    }
}

fn transition(kind: ResourceKind, direction: Direction, claimed_at: &str) -> Transition {
    Transition {
        target: None,
        method: StopMethod::of(kind, &Policy::default()),
        forced: false,
        was_running: false,
        direction,
        claimed_at: at(claimed_at),
        cause: Cause::Schedule,
        schedule: Some(office()),
    }
}

fn accepted(instant: &str) -> Ask {
    Ask::Accepted { at: at(instant), action: Some(ActionId(7)) }
}

fn failed(retry_at: &str) -> Ask {
    Ask::Failed { retry_at: at(retry_at) }
}

/// Setting up the look and the rules.
impl Case {
    pub fn at(mut self, now: &str) -> Self {
        self.now = at(now);
        self
    }

    fn looked_at(mut self, instant: &str) -> Self {
        self.looked_at = Some(at(instant));
        self
    }

    fn seen(mut self, power: Power) -> Self {
        self.resource.power = power;
        self
    }

    pub fn off(self) -> Self {
        self.seen(Power::Stopped)
    }

    fn busy(mut self) -> Self {
        self.resource.busy = Some(Busy::Other("locked".to_owned()));
        self
    }

    pub fn untagged(mut self) -> Self {
        self.resource.tags.clear();
        self
    }

    /// Seen with another tag.
    fn tagged(mut self, tag: &str) -> Self {
        self.resource.tags.insert(tag.to_owned());
        self
    }

    /// Recorded with a value of the tag `offhours-until`.
    fn kept_until(self, text: &str, seen_at: &str) -> Self {
        let tag = UntilTag { text: text.to_owned(), seen_at: at(seen_at), gone_at: None };
        self.record(|record| record.until_tags.push(tag))
    }

    /// The database's plan and nodes as seen.
    pub fn sized(mut self, plan: &str, nodes: u32) -> Self {
        if let Size::Database(size) = &mut self.resource.size {
            plan.clone_into(&mut size.plan);
            size.nodes = nodes;
        }
        self
    }

    pub fn smallest(self) -> Self {
        self.sized(SMALLEST, 1)
    }

    fn stopping_at(mut self, plan: &str, nodes: u32) -> Self {
        self.target = Some(database_of(plan, nodes));
        self
    }

    /// The pool's count, and how many nodes are present and ready.
    pub fn nodes(mut self, count: u32, present: u32, ready: u32) -> Self {
        if let Size::NodePool(size) = &mut self.resource.size {
            (size.count, size.present, size.ready) = (count, present, ready);
        }
        let power = match (count, present, ready) {
            (0, 0, _) => Power::Stopped,
            _ if count == present && count == ready => Power::Running,
            _ => Power::Between,
        };
        self.seen(power)
    }

    fn logged(mut self, effect: ActionEffect, instant: &str) -> Self {
        let id = ActionId(100 + u64::try_from(self.log.len()).unwrap());
        self.log.push(LoggedAction {
            ended_at: None,
            id,
            effect,
            state: ActionState::Done,
            started_at: at(instant),
        });
        self
    }

    fn open(mut self, times: &[(&str, &str)]) -> Self {
        let rule = self.configuration.schedules.get_mut(&office());
        rule.unwrap().schedule = open(times);
        self
    }

    pub fn following(mut self, change: impl FnOnce(&mut Policy)) -> Self {
        change(&mut self.configuration.schedules.get_mut(&office()).unwrap().policy);
        self
    }

    /// Returns how its schedule treats it.
    pub fn policy(&self) -> &Policy {
        &self.configuration.schedules[&office()].policy
    }

    fn observing(self) -> Self {
        self.following(|policy| policy.mode = Mode::Observe)
    }

    fn in_generation(mut self, generation: u64) -> Self {
        self.configuration.generation = Generation(generation);
        self
    }

    fn overridden(mut self, desired: Desired, from: &str, until: &str) -> Self {
        let one = Override {
            target: OverrideTarget::Resource(self.record.reference.clone()),
            desired,
            set_at: at(from),
            ends_at: at(until),
            by: "ada".to_owned(),
            why: None,
            before: None,
        };
        self.overrides = [one].into_iter().collect();
        self
    }

    fn id(&self) -> ResourceId {
        self.record.reference.id.clone()
    }
}

impl Send {
    /// The request that is permitted.
    fn step(&self) -> Step {
        self.record.request.as_ref().unwrap().permitted().clone()
    }
}

/// Running a case.
impl Case {
    fn rules(&self) -> Rules<'_> {
        Rules { configuration: &self.configuration, overrides: &self.overrides }
    }

    pub fn with<T>(&self, todo: impl FnOnce(Observation<'_>, PlanContext<'_>) -> T) -> T {
        let seen = Observation {
            refusal: self.refusal,
            resource: &self.resource,
            requested_at: self.looked_at.unwrap_or(self.now),
            log: &self.log,
            log_from: self.log_from,
            target: self.target.as_ref(),
            sight: self.sight.as_ref(),
            ssh_key: self.ssh_key,
            creates: self.creates.as_ref(),
        };
        let context = PlanContext { rules: self.rules(), writer: &us(), now: self.now };
        todo(seen, context)
    }

    fn plan(&self, direction: Direction) -> Plan {
        self.with(|seen, context| plan(direction, &self.record, seen, context))
    }

    fn follow(&self) -> Follow {
        self.with(|seen, context| {
            let seen = Observation { target: None, ..seen };
            follow(&self.record, seen, context)
        })
    }

    fn missing(&self) -> Follow {
        self.with(|_, context| missing(&self.record, context))
    }

    fn unlisted(&self) -> Follow {
        self.with(|_, context| unlisted(&self.record, context))
    }

    #[track_caller]
    fn sends(&self, direction: Direction) -> Send {
        match self.plan(direction) {
            Plan::Send(send) => *send,
            other @ (Plan::Leave | Plan::Postpone(_) | Plan::Write(_) | Plan::Withhold(_)) => {
                panic!("sends nothing: {other:#?}")
            }
        }
    }

    #[track_caller]
    fn writes(&self, direction: Direction) -> Write {
        match self.plan(direction) {
            Plan::Write(write) => *write,
            other @ (Plan::Leave | Plan::Postpone(_) | Plan::Withhold(_) | Plan::Send(_)) => {
                panic!("no mere write: {other:#?}")
            }
        }
    }

    #[track_caller]
    fn withholds(&self, direction: Direction) -> Withheld {
        match self.plan(direction) {
            Plan::Withhold(withheld) => *withheld,
            other @ (Plan::Leave | Plan::Postpone(_) | Plan::Write(_) | Plan::Send(_)) => {
                panic!("nothing is withheld: {other:#?}")
            }
        }
    }

    #[track_caller]
    fn leaves(&self, direction: Direction) {
        let plan = self.plan(direction);
        assert!(matches!(plan, Plan::Leave), "not left: {plan:#?}");
    }

    #[track_caller]
    fn postpones(&self, direction: Direction, words: &str) {
        match self.plan(direction) {
            Plan::Postpone(reason) => assert!(reason.contains(words), "{reason}"),
            other @ (Plan::Leave | Plan::Write(_) | Plan::Withhold(_) | Plan::Send(_)) => {
                panic!("not postponed: {other:#?}")
            }
        }
    }

    #[track_caller]
    fn records(&self) -> Write {
        recorded(self.follow())
    }

    /// Checks that at most what was seen is written, and that the transition continues unchanged.
    #[track_caller]
    fn goes_on(&self) {
        match self.follow() {
            Follow::Wait => {}
            Follow::Write(write) => {
                assert_eq!(write.record.phase, self.record.phase);
                assert_eq!(write.record.request, self.record.request);
                assert_eq!(write.record.saved, self.record.saved);
                assert_eq!(write.events, []);
            }
            Follow::Force => panic!("forces"),
        }
    }

    #[track_caller]
    fn waits(&self) {
        let follow = self.follow();
        assert!(matches!(follow, Follow::Wait), "does not wait: {follow:#?}");
    }
}

#[track_caller]
fn recorded(follow: Follow) -> Write {
    match follow {
        Follow::Write(write) => *write,
        other @ (Follow::Wait | Follow::Force) => panic!("nothing is written: {other:#?}"),
    }
}

/// Checks that a request was claimed: open, and permitted to us for two minutes.
#[track_caller]
fn is_claimed(send: &Send, direction: Direction, now: Timestamp) {
    let transition = send.record.in_flight().unwrap();
    assert_eq!((transition.direction, transition.claimed_at), (direction, now));
    is_asked(send, direction, now);
}

#[track_caller]
fn is_asked(send: &Send, direction: Direction, now: Timestamp) {
    let request = send.record.request.as_ref().unwrap();
    assert_eq!((request.direction, request.asked_at), (direction, now));
    assert_eq!((&request.ask, request.forced), (&Ask::Open, Forced::No));
    let permit = send.record.permit.as_ref().unwrap();
    assert_eq!(permit.until, now + SignedDuration::from_mins(2));
    assert_eq!(permit.writer, us());
    assert_eq!(send.record.retry_at, None);
}

fn is_settled(record: &Record, at: Power) -> bool {
    record.phase == Phase::Settled { at }
}

fn ending(write: &Write) -> Option<&Ending> {
    write.history.as_ref().map(|entry| &entry.ending)
}
