//! `offhours preview`: what will be stopped and started, and when.

mod week;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use domain::{
    ScheduleName,
    configuration::OverrideTarget,
    decision::{Rules, coming_edges_of, judge},
    explanation::{coming, standing_command, with_put_off},
    membership::Subject,
    notice::announced_at,
    order::Order,
    record::{Direction, Phase, Record},
    schedule::Desired,
};
use environment::Clock;
use jiff::Timestamp;
use report::{Named, unsent::Unsent};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    Exit, candidates,
    configuration_file::{self, ListedResources},
    context::Context,
    exit::UsageError,
    names::{Names, check_schedule},
    output::{self, Format},
    print::{self, Cell, Column},
    time::{Asked, Length, When},
};

/// Show what will be stopped and started, and when.
///
/// Follows what is in force: schedules, overrides and commands, for each resource. With --config it
/// follows the schedules of a file, which may still lack its accounts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours preview --for 12h             what happens tonight
  offhours preview web-1 --for 4w
  offhours preview --week                this week as a picture
  offhours preview --config offhours.toml --schedule office-hours
  offhours preview --at \"2026-12-24 09:00\" -o json")]
pub struct Args {
    /// Only these resources: a reference, a unique name, or a pattern with `*` and `?`.
    #[arg(value_name = "RESOURCE", conflicts_with = "config", add = candidates::resources())]
    resources: Vec<String>,
    /// Only this schedule.
    #[arg(long, value_name = "NAME", add = candidates::schedules())]
    schedule: Option<ScheduleName>,
    /// Configuration file to follow, instead of what is in force.
    #[arg(long, short = 'f', value_name = "FILE")]
    config: Option<PathBuf>,
    /// Time to begin at, such as "friday 18:00", 2026-12-24 or an instant [default: now].
    #[arg(long, value_name = "WHEN")]
    at: Option<When>,
    /// How far to look ahead, such as 36h, 7d or 2w.
    #[arg(long = "for", value_name = "SPAN", default_value = "7d")]
    ahead: Length,
    /// Draw the week of each schedule, half hour by half hour, with its overrides and pauses.
    #[arg(long, conflicts_with_all = ["ahead", "resources"])]
    week: bool,
}

/// Prints what happens from `args.at` on, or from now on.
pub async fn run(args: &Args, context: &Context, clock: &Clock) -> anyhow::Result<Exit> {
    let subject = match &args.config {
        Some(_) => of_file(args, context, clock).await?,
        None => in_force(args, context).await?,
    };
    let configuration = &*subject.in_force.configuration;
    check_schedule(&args.schedule, configuration)?;
    let screen = context.screen(configuration, subject.now);
    screen.remark_on_pauses(&subject.in_force.overrides);
    let from = match &args.at {
        Some(at) => screen.instant(at, Asked::Begin)?,
        None => Timestamp::from_second(subject.now.as_second())?,
    };
    if args.week {
        if screen.format != Format::Table {
            bail_usage!("--week is a picture: leave -o out");
        }
        let chosen = configuration.schedules.iter();
        let chosen = chosen.filter(|(name, _)| is_chosen(args, Some(name)));
        for (number, (name, rule)) in chosen.enumerate() {
            let drawn = week::draw(name, rule, subject.in_force.rules(), from, &screen)?;
            let space = if number == 0 { "" } else { "\n" };
            output::print(&format!("{space}{drawn}"))?;
        }
        return Ok(Exit::Done);
    }
    let until = from
        .checked_add(args.ahead.duration())
        .map_err(|_| UsageError(format!("{from} is too far away to look ahead from")))?;
    let coming = subject.coming(args, from, until);
    screen.rows(&coming, "There are no schedules.")?;
    Ok(Exit::Done)
}

fn is_chosen(args: &Args, schedule: Option<&ScheduleName>) -> bool {
    args.schedule.is_none() || args.schedule.as_ref() == schedule
}

async fn of_file(args: &Args, context: &Context, clock: &Clock) -> anyhow::Result<Names> {
    let file = args.config.clone().unwrap_or_default();
    let parsed = configuration_file::load(&file, ListedResources::MayStandAlone)?;
    let now = context.connection.present(clock).await?;
    for warning in parsed.advice(now) {
        output::remark(&format!("warning: {warning}\n"));
    }
    Ok(Names::of_file(parsed.configuration, now))
}

async fn in_force(args: &Args, context: &Context) -> anyhow::Result<Names> {
    let session = context.connection.open().await?;
    let names = Names::of(&session.store, &args.resources, session.now).await?;
    if args.resources.is_empty() {
        return Ok(names);
    }
    let records = names.select(&args.resources)?.into_iter().cloned().collect();
    Ok(Names { records, ..names })
}

/// What resources of one row have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    at: Timestamp,
    /// 1 for the first ones of an instant.
    wave: usize,
    schedule: Option<ScheduleName>,
    direction: Option<Direction>,
    cause: Option<&'static str>,
    unsent: Unsent,
    announced_at: Option<Timestamp>,
}

impl Key {
    /// What changes at one instant, in one direction.
    fn change(&self) -> (Timestamp, Option<Direction>) {
        (self.at, self.direction.filter(|_| self.cause.is_some()))
    }
}

/// A state that is wanted from an instant on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Coming {
    /// The instant; that of the preview itself for a state that holds already.
    at: Timestamp,
    /// In the order of groups, 2 for the resources that wait for the first ones of this instant, 3
    /// for those that wait for these, and so on; omitted for the first ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    wave: Option<usize>,
    /// When the stop is announced, by the `notice` of the schedule; omitted if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    announced_at: Option<Timestamp>,
    /// The desired state from then on; null if either state will do.
    to: Option<Desired>,
    /// The schedule that the resources follow; null if they follow none.
    schedule: Option<ScheduleName>,
    /// What causes it: `schedule`, `override-set`, `override-ended` or `manual`; null if it holds
    /// already.
    cause: Option<&'static str>,
    #[serde(flatten)]
    unsent: Unsent,
    /// The resources; empty for a schedule that none follows, or of a file.
    resources: Vec<Named>,
}

impl Names {
    /// Everything that is wanted from one instant to another, in its order.
    fn coming(&self, args: &Args, from: Timestamp, until: Timestamp) -> Vec<Coming> {
        let mut rows: BTreeMap<Key, Vec<&Record>> = BTreeMap::new();
        let rules = self.in_force.rules();
        let mut followed = BTreeSet::new();
        for record in &self.records {
            let verdict = judge(record, Subject::recorded(record), rules, from);
            let schedule = verdict.membership.schedule().cloned();
            let is_there = !matches!(record.phase, Phase::Gone { .. });
            if !verdict.opted_in || !is_there || !is_chosen(args, schedule.as_ref()) {
                continue;
            }
            followed.extend(schedule.clone());
            let command = standing_command(record, &verdict, rules, from);
            let stands_until = command.as_ref().and_then(|command| command.until.as_ref()?.at);
            let edges = coming(record, rules, from)
                .skip_while(|edge| stands_until.is_some_and(|until| edge.key.instant < until))
                .take_while(|edge| edge.key.instant <= until)
                .map(|edge| (edge.key.instant, edge.desired, Some(edge.cause.name())));
            for (at, to, cause) in [(from, verdict.desired, None)].into_iter().chain(edges) {
                let unsent = Unsent::of(record, rules, to, at);
                let is_stop = to == Some(Desired::Stopped) && cause.is_some();
                let announced_at = is_stop.then(|| announced_at(record, rules, at)).flatten();
                let (schedule, direction) = (schedule.clone(), to.map(Direction::towards));
                let key = Key { at, wave: 1, schedule, direction, cause, unsent, announced_at };
                rows.entry(key).or_default().push(record);
            }
        }
        let mut rows = in_waves(rows, rules);
        let alone = rules.configuration.schedules.iter().filter(|(name, _)| {
            args.resources.is_empty() && !followed.contains(name) && is_chosen(args, Some(name))
        });
        for (name, rule) in alone {
            let target = OverrideTarget::Schedule(name.clone());
            let overridden = rules.overrides.get(&target).filter(|one| one.is_active(from));
            let now = overridden.map_or(rule.schedule.desired_at(from), |one| Some(one.desired));
            let unsent = |to, at| Unsent::of_schedule(name, rule, rules, to, at);
            let edges = coming_edges_of(name, rules, from);
            let edges = with_put_off(None, edges, |edge, at| unsent(edge.desired, at).paused_until)
                .take_while(|edge| edge.key.instant <= until)
                .map(|edge| (edge.key.instant, edge.desired, Some(edge.cause.name())));
            for (at, to, cause) in [(from, now, None)].into_iter().chain(edges) {
                let unsent = unsent(to, at);
                let is_stop = to == Some(Desired::Stopped) && cause.is_some();
                let notice = rule.policy.notice.filter(|_| is_stop && unsent == Unsent::default());
                let announced_at = notice.map(|notice| at - notice.get());
                let (schedule, direction) = (Some(name.clone()), to.map(Direction::towards));
                let key = Key { at, wave: 1, schedule, direction, cause, unsent, announced_at };
                rows.insert(key, Vec::new());
            }
        }
        let row = |(key, records): (Key, Vec<&Record>)| {
            let Key { at, wave, schedule, direction, cause, unsent, announced_at } = key;
            let resources = records.into_iter().map(Named::from).collect();
            let wave = (wave > 1).then_some(wave);
            let to = direction.map(Direction::desired);
            Coming { at, wave, announced_at, to, schedule, cause, unsent, resources }
        };
        rows.into_iter().map(row).collect()
    }
}

/// Puts what changes at one instant into the waves of its order.
fn in_waves<'a>(
    rows: BTreeMap<Key, Vec<&'a Record>>,
    rules: Rules<'a>,
) -> BTreeMap<Key, Vec<&'a Record>> {
    let mut changes: BTreeMap<_, Vec<&Record>> = BTreeMap::new();
    for (key, records) in &rows {
        changes.entry(key.change()).or_default().extend(records);
    }
    let waves = |((at, direction), records): ((_, Option<Direction>), Vec<&'a Record>)| {
        let waves = direction.map(|direction| Order::of(records, rules).waves(direction));
        ((at, direction), waves.unwrap_or_default())
    };
    let waves: BTreeMap<_, _> = changes.into_iter().map(waves).collect();
    let mut in_waves: BTreeMap<Key, Vec<&Record>> = BTreeMap::new();
    for (key, records) in rows {
        let waves = &waves[&key.change()];
        for record in records {
            let wave = waves.get(&record.reference).copied().unwrap_or(key.wave);
            in_waves.entry(Key { wave, ..key.clone() }).or_default().push(record);
        }
    }
    in_waves
}

impl print::Row for Coming {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::Time("When", |row, screen| {
            let is_now = row.cause.is_none() && row.at.as_second() == screen.now.as_second();
            Cell::new(match row.wave {
                Some(_) => "  then".to_owned(),
                None if is_now => "now".to_owned(),
                None => screen.time(row.at),
            })
        }),
        Column::Fixed("Desired", |row, _| Cell::desired(row.to)),
        Column::Fixed("Schedule", |row, _| Cell::any(row.schedule.as_ref())),
        Column::Time("Announced", |row, screen| {
            Cell::any(row.announced_at.map(|at| screen.time(at)))
        }),
        Column::Wide("By", |row, _| {
            let by = row.cause.filter(|cause| *cause != "schedule");
            Cell::any(by.map(|cause| cause.replace('-', " ")))
        }),
        Column::Time("Remark", |row, screen| {
            Cell::any(row.unsent.in_words(&screen.zone, screen.now))
        }),
        Column::Text("Resources", |row, _| {
            let names: Vec<_> = row.resources.iter().map(|one| one.name.as_str()).collect();
            Cell::new(match names.len() {
                0 | 1 => names.join(", "),
                several => format!("{several}: {}", names.join(", ")),
            })
        }),
    ];
}

#[cfg(test)]
mod tests;
