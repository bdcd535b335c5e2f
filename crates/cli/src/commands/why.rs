//! `offhours why`: the whole chain of reasons for one resource at an instant.

mod chain;
mod schedule;

use anyhow::Context as _;
use chain::{Chain, Section};
use domain::{
    ScheduleName,
    configuration::{Override, OverrideTarget},
    record::Record,
    schedule::desired_or_any,
};
use report::{answer::Answer, resource::ResourceView, unsent::Unsent};
use schemars::JsonSchema;
use serde::Serialize;
use store::InForce;

use crate::{
    Exit, candidates,
    connection::all_records,
    context::Context,
    names::{Names, find},
    output::{self, Format},
    print::Screen,
};

/// Explain why a resource is in its state, and what happens next.
///
/// --full shows every rule that may have a say, what its schedule wants and why, and what was decided.
/// Of a schedule, it says what it wants, and what follows it. Exit code 3 if the resource needs
/// attention.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours why web-1
  offhours why do-main/droplet/3164444 --full
  offhours why office-hours
  offhours why web-1 -o json | jq .answer")]
pub struct Args {
    /// Resource: a reference, a unique name, or a pattern that matches one; or a schedule.
    #[arg(value_name = "NAME", add = candidates::resources())]
    name: String,
    /// Show the whole chain of reasons.
    #[arg(long)]
    full: bool,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let session = context.connection.open().await?;
    let (store, now) = (&session.store, session.now);
    let in_force = store.in_force().await?;
    context.screen(&*in_force.configuration, now).remark_on_pauses(&in_force.overrides);
    let is_name = |name: &&ScheduleName| name.as_str() == args.name;
    if let Some(name) = in_force.configuration.schedules.keys().find(is_name) {
        let records = all_records(store).await?;
        let names = Names { in_force: in_force.clone(), records, now };
        if !names.records.iter().any(|record| record.name == args.name) {
            let screen = context.screen(&*in_force.configuration, now);
            return of_schedule(name, &in_force, &names, &screen);
        }
    }
    let mut found = find(store, std::slice::from_ref(&args.name), now).await?;
    if found.len() > 1 {
        bail_usage!("`{}` names {} resources: name one", args.name, found.len());
    }
    let record = found.pop().context("nothing was found for what was named")?;
    let screen = context.screen(&*in_force.configuration, now);
    let others = store.in_order_with(std::slice::from_ref(&record), &in_force).await?;
    let why = Why::of(&record, &others, &in_force, &screen);
    context.format.print(&why, || screen.style.wrap(&why.text(args.full, &screen)))?;
    Ok(if why.view.needs_person().is_some() { Exit::NeedsPerson } else { Exit::Done })
}

fn of_schedule(
    name: &ScheduleName,
    in_force: &InForce,
    names: &Names,
    screen: &Screen,
) -> anyhow::Result<Exit> {
    if screen.format != Format::Table {
        bail_usage!("{name} is a schedule: -o json explains a resource");
    }
    let rule = &in_force.configuration.schedules[name];
    let schedule = &rule.schedule;
    let next = schedule.next_edge(screen.now);
    let next = next.map_or_else(
        || "and never anything else".to_owned(),
        |edge| {
            let unsent = Unsent::of_schedule(name, rule, in_force.rules(), edge.desired, edge.at);
            let but = unsent.but(&screen.zone, screen.now);
            format!("and {} from {} on{but}", desired_or_any(edge.desired), screen.time(edge.at))
        },
    );
    let wants = desired_or_any(schedule.desired_at(screen.now));
    let mut lines = vec![format!("The schedule {name} wants {wants} now, {next}.")];
    let target = OverrideTarget::Schedule(name.clone());
    let overridden = in_force.overrides.get(&target).filter(|one| one.counts());
    if let Some(one) = overridden.filter(|one| screen.now < one.ends_at) {
        let (is, from) = if one.is_active(screen.now) {
            ("is", String::new())
        } else {
            ("will be", format!(" from {}", screen.time(one.set_at)))
        };
        let until = screen.time(one.ends_at);
        let Override { desired, by, .. } = one;
        lines.push(format!("It {is} overridden: {desired}{from} until {until}, by {by}."));
    }
    let follows = names.following(Some(name)).into_iter();
    let names: Vec<_> = follows.map(|record| record.name.as_str()).collect();
    lines.push(match names.len() {
        0 => "Nothing follows it.".to_owned(),
        1 => format!("{} follows it.", names[0]),
        many => format!("{many} resources follow it: {}.", names.join(", ")),
    });
    lines.push(format!("`offhours preview --schedule {name}` shows what comes next.\n"));
    let text = lines.join("\n");
    output::print_lines(&text)?;
    Ok(Exit::Done)
}

/// Why one resource is in its state.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Why {
    #[serde(flatten)]
    view: ResourceView,
    /// How it is, what is wrong and what to do, and what comes next.
    answer: Vec<String>,
    /// The chain of reasons.
    sections: Vec<Section>,
}

impl Why {
    fn of(record: &Record, others: &[Record], in_force: &InForce, screen: &Screen) -> Self {
        let view = ResourceView::of(record, in_force, &screen.zone, screen.now);
        let answer = Answer::of(record, &view, in_force, &screen.zone, screen.now);
        let mut lines = answer.lines();
        // After how it is.
        lines.splice(1..1, answer.wait_line(others));
        let chain = Chain { answer, screen };
        Self { answer: lines, sections: chain.sections(), view }
    }

    /// The answer, and on demand everything that leads to it.
    fn text(&self, full: bool, screen: &Screen) -> String {
        let ResourceView { name, resource, .. } = &self.view;
        let (answer, now) = (self.answer.join("\n"), screen.date(screen.now));
        if !full {
            let more = format!("Every rule and what was decided: offhours why {name} --full");
            return format!("{name}  {resource}\n{answer}\n{more}\n");
        }
        let utc = screen.now.strftime("%H:%M:%S UTC");
        let sections: String = self.sections.iter().map(ToString::to_string).collect();
        format!("{name}  {resource}\nAt {now} ({utc})\n\n{answer}\n{sections}")
    }
}

#[cfg(test)]
mod tests;
