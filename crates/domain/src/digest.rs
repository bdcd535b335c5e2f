//! What became of one edge of a schedule, counted from the records that followed it.

use std::{collections::BTreeMap, fmt};

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};

use crate::{
    decision::{Decision, LeaveReason, Rules, judge, pause_of},
    membership::Subject,
    money::{Currency, Money},
    prices::{Price, PriceList, Prices},
    record::{Direction, EdgeKey, Ending, Last, Phase, Rank, Record},
    reference::{AccountName, ResourceRef, ScheduleName},
    schedule::{Desired, Edge, Schedule},
    stop_method::StopMethod,
};

/// The latest a digest is published after its edge: the longest transition, plus five minutes.
pub const DEADLINE: SignedDuration = SignedDuration::from_mins(35);

/// How old an edge may be and still get a digest. One that was not handled in time, because the
/// service is new or was down, gets none.
pub const WINDOW: SignedDuration = SignedDuration::from_mins(40);

/// How long before the next edge a digest is published at the latest, so that a tick fits in
/// between.
const BEFORE_NEXT: SignedDuration = SignedDuration::from_secs(90);

/// The resolution of a [`Timestamp`].
const INSTANT: SignedDuration = SignedDuration::from_nanos(1);

/// The outcome of one edge of one schedule.
///
/// Each resource that followed the edge counts in exactly one of `seen`, `already`, `left`, `would`,
/// `paused`, `refused`, `stuck`, `overtaken` and `unfinished`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Digest {
    /// The schedule's name.
    pub schedule: ScheduleName,
    /// When the schedule's desired state changed.
    pub edge: Timestamp,
    /// The desired state from then on.
    pub desired: Desired,
    /// When the resources were counted.
    pub at: Timestamp,
    /// Number of resources for which this was the latest edge.
    pub followed: usize,
    /// Number of resources for which a request was permitted.
    pub asked: usize,
    /// Number of resources that were seen in the desired state.
    pub seen: usize,
    /// Number of resources for which nothing had to be sent.
    pub already: usize,
    /// Number of resources that a stop left running: `retain_running` does, or their next start was
    /// too near.
    #[serde(default)]
    pub left: usize,
    /// Number of resources for which a request would have been sent if not for observe mode.
    pub would: usize,
    /// Number of resources to which a pause keeps a request from being sent.
    #[serde(default)]
    pub paused: usize,
    /// Number of resources whose stop or start was refused.
    pub refused: usize,
    /// Number of resources that were not seen in the desired state by their deadline.
    pub stuck: usize,
    /// Number of resources that a person changed or opted out in the meantime.
    pub overtaken: usize,
    /// Number of resources that are still due, in flight or postponed.
    pub unfinished: usize,
    /// Number of seen resources by the method that stopped them or, for a start, had stopped them;
    /// absent if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub methods: BTreeMap<StopMethod, usize>,
    /// The resource that took longest to be seen; absent if none was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest: Option<Slowest>,
    /// The resources that were refused, stuck, overtaken or unfinished, sorted by name; absent if
    /// there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_seen: Vec<Named>,
    /// When the schedule's desired state changes next; absent if no change is to come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_edge_at: Option<Timestamp>,
    /// The desired state from then on; absent if there is none, or if no change is to come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_desired: Option<Desired>,
    /// What the stopped resources save until then, by hourly prices, in each currency; absent if
    /// nothing is saved, or none of it is known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub saves: BTreeMap<Currency, Price>,
    /// Number of stopped resources whose saving is unknown, and that `saves` leaves out.
    #[serde(default)]
    pub unpriced: usize,
    /// The schedule's time zone.
    #[serde(default)]
    pub timezone: String,
}

/// A resource, and how long it took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Slowest {
    /// The resource's reference, `ACCOUNT/KIND/ID`.
    pub resource: ResourceRef,
    /// Its name at the provider.
    pub name: String,
    /// Time from the claim until it was seen, in seconds.
    pub seconds: i64,
}

/// A resource, with its name for people.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Named {
    /// Its name at the provider.
    pub name: String,
    /// The resource's reference, `ACCOUNT/KIND/ID`.
    pub resource: ResourceRef,
}

/// Returns the schedule's edge for which a digest may be due: its latest with a desired state, if
/// that is recent enough. What it began goes on where the schedule desires nothing after it.
#[must_use]
pub fn edge_within_window(schedule: &Schedule, now: Timestamp) -> Option<Edge> {
    let mut latest = schedule.latest_edge(now);
    if latest.desired.is_none() {
        latest = schedule.latest_edge(latest.since? - INSTANT);
    }
    let edge = Edge { at: latest.since?, desired: latest.desired };
    let young = now.duration_since(edge.at) <= WINDOW;
    (young && edge.desired.is_some()).then_some(edge)
}

/// Returns the instant at which an edge's digest is published, even if some records are unfinished:
/// well before the next edge with a desired state, but never before half of the time until then.
#[must_use]
pub fn deadline(schedule: &Schedule, edge: Edge) -> Timestamp {
    let latest = edge.at + DEADLINE;
    let mut edges = schedule.edges(edge.at).take_while(|next| next.at < latest + BEFORE_NEXT);
    let Some(next) = edges.find(|next| next.desired.is_some()) else {
        return latest;
    };
    let half = next.at.duration_since(edge.at) / 2;
    latest.min((next.at - BEFORE_NEXT).max(edge.at + half))
}

impl Digest {
    /// Counts what became of an edge of a schedule. Returns `None` if no record followed it.
    ///
    /// A record follows an edge that is its latest one with a desired state. It does not count if an
    /// override masks the edge, or if an override or a command came later. Nor does a record count that is held, opted
    /// out or gone, or that joined to follow from its next edge on.
    #[must_use]
    pub fn of<'r>(
        records: impl IntoIterator<Item = &'r Record>,
        rules: Rules<'_>,
        prices: &BTreeMap<AccountName, PriceList>,
        schedule: &ScheduleName,
        edge: Edge,
        now: Timestamp,
    ) -> Option<Self> {
        let rule = rules.configuration.schedules.get(schedule)?;
        let next_edge = rule.schedule.next_edge(now);
        let mut digest = Self::empty(schedule.clone(), edge.at, edge.desired?, now);
        digest.next_edge_at = next_edge.map(|edge| edge.at);
        digest.next_desired = next_edge.and_then(|edge| edge.desired);
        digest.timezone.clone_from(&rule.schedule.definition().timezone);
        let mut per_hour = BTreeMap::<Currency, Money>::new();
        for record in records {
            let Some(state) = State::of(record, rules, schedule, edge, now) else {
                continue;
            };
            digest.count(record, state);
            if digest.desired == Desired::Stopped && state.is_there() {
                let account = &record.reference.account;
                let prices = Prices::of_account(account, rules.configuration, prices);
                match prices.and_then(|prices| prices.saved_per_hour(record)) {
                    Some(saved) => {
                        let sum = per_hour.entry(saved.currency()).or_insert(saved.times(0));
                        *sum = sum.plus(saved).unwrap_or(*sum);
                    }
                    None => digest.unpriced += 1,
                }
            }
        }
        let until_then = digest.next_edge_at.map(|next| next.duration_since(now).as_secs());
        let seconds = until_then.unwrap_or_default().unsigned_abs();
        let saved = per_hour.values().filter(|one| !one.is_negative() && !one.is_zero());
        let saved = saved.map(|one| (one.currency(), Price::of(one.for_seconds(seconds))));
        digest.saves = saved.collect();
        digest.not_seen.sort();
        (digest.followed > 0).then_some(digest)
    }

    fn empty(schedule: ScheduleName, edge: Timestamp, desired: Desired, at: Timestamp) -> Self {
        Self {
            schedule,
            edge,
            desired,
            at,
            followed: 0,
            asked: 0,
            seen: 0,
            already: 0,
            left: 0,
            would: 0,
            paused: 0,
            refused: 0,
            stuck: 0,
            overtaken: 0,
            unfinished: 0,
            methods: BTreeMap::new(),
            slowest: None,
            not_seen: Vec::new(),
            next_edge_at: None,
            next_desired: None,
            saves: BTreeMap::new(),
            unpriced: 0,
            timezone: String::new(),
        }
    }

    /// Reports whether nothing is due, in flight or postponed any more.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.unfinished == 0
    }

    /// Returns what was counted, as `12 of 14 stopped (2 by resize), 1 refused`.
    #[must_use]
    pub fn counted(&self) -> String {
        let Self { followed, desired, .. } = self;
        let how = self.how();
        let how = if how.is_empty() { how.concat() } else { format!(" ({})", how.join(", ")) };
        let mut text = format!("{} of {followed} {desired}{how}", self.seen + self.already);
        let would = format!("would be {desired} but for observe mode");
        for (count, what) in [
            (self.left, "left running"),
            (self.would, would.as_str()),
            (self.paused, "paused"),
            (self.refused, "refused"),
            (self.stuck, "stuck"),
            (self.overtaken, "overtaken by a person"),
            (self.unfinished, "not finished"),
        ] {
            if count > 0 {
                text.extend([", ", &count.to_string(), " ", what]);
            }
        }
        text
    }

    /// Returns remarks on the resources that are where the edge wants them: how many were there
    /// already, and how many were stopped by each method that a schedule has to ask for.
    fn how(&self) -> Vec<String> {
        let already = (self.already > 0).then(|| format!("{} already", self.already));
        let stopped = self.desired == Desired::Stopped;
        let chosen = self.methods.iter();
        let chosen = chosen.filter(|(method, _)| stopped && method.is_chosen());
        let chosen = chosen.map(|(method, count)| format!("{count} by {method}"));
        already.into_iter().chain(chosen).collect()
    }

    fn count(&mut self, record: &Record, state: State<'_>) {
        self.followed += 1;
        self.asked += usize::from(state.was_asked());
        let (bucket, at_the_end) = match state {
            State::Unfinished { .. } => (&mut self.unfinished, false),
            State::Paused => (&mut self.paused, true),
            State::Refused { accepted: false } => (&mut self.refused, false),
            State::Refused { accepted: true } => (&mut self.stuck, false),
            State::Ended(last) => match last.ending {
                Ending::Seen => (&mut self.seen, true),
                Ending::AlreadyThere => (&mut self.already, true),
                Ending::LeftRunning | Ending::TooLate => (&mut self.left, true),
                Ending::WouldHave => (&mut self.would, true),
                Ending::Refused => (&mut self.refused, false),
                Ending::Stuck => (&mut self.stuck, false),
                Ending::Superseded
                | Ending::Released
                | Ending::Reversed
                | Ending::Resized
                | Ending::Gone
                | Ending::Forgotten => (&mut self.overtaken, false),
            },
        };
        *bucket += 1;
        if !at_the_end {
            self.not_seen
                .push(Named { name: record.name.clone(), resource: record.reference.clone() });
        }
        if let State::Ended(last) = state
            && last.ending == Ending::Seen
        {
            self.time(record, last);
            if let Some(method) = last.method {
                *self.methods.entry(method).or_default() += 1;
            }
        }
    }

    fn time(&mut self, record: &Record, last: &Last) {
        let seconds = last.finished_at.duration_since(last.claimed_at).as_secs();
        let slower =
            |slowest: &Slowest| (slowest.seconds, &record.reference) < (seconds, &slowest.resource);
        if self.slowest.as_ref().is_none_or(slower) {
            self.slowest = Some(Slowest {
                resource: record.reference.clone(),
                name: record.name.clone(),
                seconds,
            });
        }
    }
}

/// What became of an edge for one record that followed it.
#[derive(Debug, Clone, Copy)]
enum State<'r> {
    /// Due, in flight or postponed.
    Unfinished {
        /// Whether a request was permitted.
        asked: bool,
    },
    /// Due, and kept from being sent.
    Paused,
    /// A start that needs a person: the provider refuses it, or accepts it and its action fails
    /// each time.
    Refused {
        accepted: bool,
    },
    Ended(&'r Last),
}

impl<'r> State<'r> {
    fn of(
        record: &'r Record,
        rules: Rules<'_>,
        schedule: &ScheduleName,
        edge: Edge,
        now: Timestamp,
    ) -> Option<Self> {
        let verdict = judge(record, Subject::recorded(record), rules, now);
        let gone = matches!(record.phase, Phase::Gone { .. });
        // A start counts earlier if recreating the machine takes long.
        let hibernation = record.hibernation.as_deref();
        let lead = match edge.desired {
            Some(Desired::Running) => hibernation.and_then(|hibernation| hibernation.lead),
            Some(Desired::Stopped) | None => None,
        };
        let keys = [edge.at, edge.at - lead.unwrap_or_default()]
            .map(|instant| EdgeKey { instant, rank: Rank::Schedule });
        let handled = record.handled.as_ref();
        let latest = verdict.edge?;
        let is_over = latest.desired.is_none() && latest.key.rank == Rank::Schedule;
        let key = match handled {
            Some(handled) if is_over && keys.contains(&handled.key) => handled.key,
            Some(_) | None if is_over => keys[0],
            Some(_) | None => Some(latest.key).filter(|key| keys.contains(key))?,
        };
        let follows = verdict.membership.schedule() == Some(schedule);
        if gone || record.held || !verdict.opted_in || !follows {
            return None;
        }
        if let Some(transition) = record.in_flight() {
            let request = record.request.as_ref();
            let asked = request.is_some_and(|r| r.direction == transition.direction);
            // A request that was made for an earlier edge does not belong to this one.
            let asked = asked && handled.is_some_and(|handled| handled.key == key);
            return Some(match request.filter(|request| request.problem.is_some()) {
                // It is still being retried, and needs a person to get any further.
                Some(request) if asked => {
                    Self::Refused { accepted: request.first_accepted_at.is_some() }
                }
                Some(_) | None => Self::Unfinished { asked },
            });
        }
        let is_missed = is_over && handled.is_some_and(|handled| handled.key < key);
        let is_barred = || pause_of(record, rules, Direction::towards(edge.desired?), now);
        if matches!(verdict.decision, Decision::Leave(LeaveReason::Paused(_)))
            || is_missed && is_barred().is_some()
        {
            return Some(Self::Paused);
        }
        if matches!(verdict.decision, Decision::Act(_)) || is_missed {
            return Some(Self::Unfinished { asked: false });
        }
        let handled = handled?;
        let last = record.last.as_ref()?;
        let of_this =
            handled.schedule.as_ref() == Some(schedule) && handled.key == key && last.key == key;
        of_this.then_some(Self::Ended(last))
    }

    /// Reports whether the resource was seen where the edge wants it.
    fn is_there(self) -> bool {
        matches!(self, Self::Ended(last) if matches!(last.ending, Ending::Seen | Ending::AlreadyThere))
    }

    fn was_asked(self) -> bool {
        match self {
            Self::Unfinished { asked } => asked,
            Self::Paused => false,
            Self::Refused { .. } => true,
            Self::Ended(last) => last.asked_at.is_some(),
        }
    }
}

/// Writes an instant by the clock of a zone, with its date if it is not near.
pub(crate) fn in_zone(at: Timestamp, timezone: &str, now: Timestamp) -> impl fmt::Display {
    let zone = TimeZone::get(timezone).unwrap_or(TimeZone::UTC);
    let is_near = at.duration_since(now) < SignedDuration::from_hours(6 * 24);
    let form = if is_near { "%a %H:%M" } else { "%a %Y-%m-%d %H:%M" };
    at.to_zoned(zone).strftime(form).to_string()
}

/// One line for people: `office: 12 of 14 stopped (2 by resize), 1 refused, 1 stuck; slowest orders
/// 480 s; opens Tue 08:00; saves 4.20 EUR until then, 1 unknown`, by the schedule's zone.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.schedule, self.counted())?;
        if let Some(Slowest { name, seconds, .. }) = &self.slowest {
            write!(f, "; slowest {name} {seconds} s")?;
        }
        if let Some(at) = self.next_edge_at {
            let change = match self.next_desired {
                Some(Desired::Running) => "opens",
                Some(Desired::Stopped) => "closes",
                None => "next edge",
            };
            write!(f, "; {change} {}", in_zone(at, &self.timezone, self.at))?;
        }
        let saves = self.saves.iter().map(|(&currency, price)| price.in_currency(currency));
        let saves: Vec<_> = saves.map(|money| money.to_string()).collect();
        if !saves.is_empty() {
            write!(f, "; saves {} until then", saves.join(" and "))?;
            if self.unpriced > 0 {
                write!(f, ", {} unknown", self.unpriced)?;
            }
        }
        if self.refused + self.stuck + self.unfinished > 0 {
            f.write_str("; `offhours status --needs-person` says what to do")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
