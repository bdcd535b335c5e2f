//! `offhours savings`: what stopping could save in a month, before anything is set up.

mod assumed;
mod fleet;
mod picture;

use std::{collections::BTreeMap, path::PathBuf};

use domain::{
    ResourceRef, ScheduleName,
    configuration::{Account, Configuration},
    look::Look,
    membership::{Exclusion, Membership, Subject},
    prices::Prices,
    record::Record,
    resource::Size,
};
use environment::in_words;
use jiff::Timestamp;
use provider::Base;
use report::money::{Candidate, Collector, Month, Report, TimesOff};

use crate::{
    Exit,
    configuration_file::{self, ListedResources},
    context::Context,
    listing::{Failure, mark_doubles},
    output::{self, Format},
    time::{Asked, Month as CalendarMonth},
};

pub(super) use assumed::{Hours, accounts_of, tokens_of_variables, variables};
use fleet::Holdings;
pub(super) use picture::draw;

/// Show what stopping could save in a month, by each method.
///
/// What speaks against a method is shown beside it. The providers are asked what the accounts hold
/// and for their price lists. Nothing is written, and tokens that may only read are enough.
///
/// No service has to be set up. Without --config, the tokens are those in `DIGITALOCEAN_TOKEN` and
/// `HCLOUD_TOKEN`, and everything is taken to run in the same hours. With it, each resource has the
/// hours of the schedule that it follows.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Examples:
  DIGITALOCEAN_TOKEN=... offhours savings
  offhours savings --hours \"mon-fri 07:00-20:00\"
  offhours savings --config offhours.toml --month 2026-12
  offhours savings -o json | jq .totals

A token of DigitalOcean needs the scopes droplet:read, database:read,
kubernetes:read, tag:read, sizes:read and regions:read. Its API has no prices
of databases: give them in the configuration, under [prices.database-month].

An account that cannot be read does not hide the others; the exit code is 1.")]
pub struct Args {
    /// Configuration file with the accounts and the schedules [default: the tokens in
    /// `DIGITALOCEAN_TOKEN` and `HCLOUD_TOKEN`, and --hours for everything].
    #[arg(long, short = 'f', value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address, as an account's `url` names it, to which that account's token may be sent; may be
    /// repeated. Otherwise tokens are sent to the providers' own addresses only.
    #[arg(long = "trust", value_name = "URL", requires = "config")]
    trusted: Vec<Base>,
    /// Hours in which resources that follow no schedule are taken to run, in UTC: weekdays and
    /// times [default without --config: "mon-fri 08:00-19:00"].
    #[arg(long, value_name = "HOURS")]
    hours: Option<Hours>,
    /// Calendar month, in UTC: 2026-12, december [default: a month of 730.5 hours].
    #[arg(long, value_name = "MONTH")]
    month: Option<CalendarMonth>,
    /// Show every method of each resource, and what speaks against it.
    #[arg(long)]
    all: bool,
}

impl Args {
    /// Everything runs in these hours.
    pub(super) fn of_hours(hours: Hours) -> Self {
        Self { hours: Some(hours), ..Self::default() }
    }
}

pub async fn run(args: &Args, context: &Context, now: Timestamp) -> anyhow::Result<Exit> {
    let configuration = configuration(args)?;
    let Survey { report, failures, now } = Survey::take(&configuration, args, context, now).await?;
    let screen = context.screen(&configuration, now);
    match context.format {
        Format::Json => output::print_json(&report)?,
        Format::Csv => screen.rows(&report.resources, "")?,
        // Nothing is known of what could not be read.
        Format::Table if report.resources.is_empty() && !failures.is_empty() => {}
        Format::Table => output::print(&draw(&report, args, &screen))?,
    }
    failures.iter().for_each(Failure::print);
    Ok(if failures.is_empty() { Exit::Done } else { Exit::Failed })
}

/// What the accounts hold, as far as they could be asked.
pub(super) struct Survey {
    /// What could be saved in a month.
    pub report: Report,
    pub failures: Vec<Failure>,
    pub now: Timestamp,
}

impl Survey {
    pub(super) async fn take(
        configuration: &Configuration,
        args: &Args,
        context: &Context,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let usual = args.config.is_none().then(Hours::default);
        let hours = args.hours.clone().or(usual);
        let simulator = context.connection.simulate.as_deref();
        let (providers, now) = fleet::open(simulator, &args.trusted, now).await?;
        let (month, label) = match args.month {
            None => (Month::Average(now), None),
            Some(month) => {
                let month = month.period(Asked::Begin, now)?;
                (Month::Calendar(month), Some(month.from.strftime("%Y-%m").to_string()))
            }
        };
        let answers = fleet::ask(&providers, configuration).await.into_iter();
        let mut failures = Vec::new();
        let holdings = answers.filter_map(|one| one.map_err(|one| failures.push(one)).ok());
        let holdings: Vec<_> = holdings.collect();
        let report = SavingsInputs::of(configuration, hours, month).report(&holdings, label);
        Ok(Self { report, failures, now })
    }
}

/// The accounts and schedules of the named file, or the accounts whose tokens are in variables.
fn configuration(args: &Args) -> anyhow::Result<Configuration> {
    let Some(file) = &args.config else {
        return Ok(accounts_of(tokens_of_variables())?);
    };
    let configuration =
        configuration_file::load(file, ListedResources::NeedAccounts)?.configuration;
    let accounts = configuration.accounts.iter();
    let (clouds, others): (Vec<_>, Vec<_>) = accounts.partition(|(_, one)| one.cloud().is_some());
    for (name, _) in others {
        output::remark(&format!(
            "note: {name} is left out: Offhours knows no price of a machine over SSH\n"
        ));
    }
    if clouds.is_empty() {
        let file = file.display();
        bail_usage!("{file} has no account at a cloud");
    }
    Ok(configuration)
}

/// What decides how much of a month each resource is off, and what that saves.
struct SavingsInputs<'a> {
    configuration: &'a Configuration,
    hours: Option<Hours>,
    month: Month,
    /// The times off under the assumed hours.
    assumed: Option<TimesOff>,
    times_off: BTreeMap<&'a ScheduleName, TimesOff>,
}

impl<'a> SavingsInputs<'a> {
    fn of(configuration: &'a Configuration, hours: Option<Hours>, month: Month) -> Self {
        let schedules = configuration.schedules.iter();
        let off = schedules.map(|(name, rule)| (name, month.times_off(&rule.schedule)));
        Self {
            configuration,
            month,
            assumed: hours.as_ref().map(|hours| month.times_off(&hours.schedule)),
            hours,
            times_off: off.collect(),
        }
    }

    fn report(&self, holdings: &[Holdings], label: Option<String>) -> Report {
        let looks = holdings.iter().flat_map(|one| one.looks.iter().map(move |look| (one, look)));
        let record = |(holdings, Look { resource, .. }): (&Holdings, &Look)| {
            let (account, id) = (holdings.account.clone(), resource.id.clone());
            let mut record = Record::first_seen(ResourceRef { account, id }, resource);
            record.describe(resource);
            record
        };
        let mut records: Vec<_> = looks.clone().map(record).collect();
        mark_doubles(&mut records);
        let mut collector = Collector::new(self.month);
        for (record, (holdings, look)) in records.iter().zip(looks) {
            self.add(&mut collector, record, holdings, look);
        }
        collector.report(label, self.hours.as_ref().map(ToString::to_string))
    }

    fn add(&self, collector: &mut Collector, record: &Record, holdings: &Holdings, look: &Look) {
        let resource = &look.resource;
        // Its node pool is listed instead.
        if resource.facts.kubernetes_worker {
            return;
        }
        let membership = Membership::of(Subject::seen(record, resource), self.configuration);
        let policy = membership.policy(self.configuration);
        let schedule = membership.schedule();
        let off = schedule.map_or(self.assumed.as_ref(), |name| self.times_off.get(name));
        let account = self.configuration.accounts.get(&holdings.account).and_then(Account::cloud);
        let Some(account) = account else {
            return;
        };
        let plan = match &resource.size {
            Size::Database(size) => holdings.smallest(size, &policy, &resource.region),
            Size::Machine(_) | Size::NodePool(_) => None,
        };
        let barred = match &membership {
            // Without the user's own schedules, no tag can name two of them.
            Membership::Excluded(Exclusion::TwoSchedules { .. })
                if self.configuration.schedules.is_empty() =>
            {
                None
            }
            Membership::Excluded(exclusion) => Some(in_words(exclusion)),
            Membership::Member { .. } | Membership::Unknown { .. } | Membership::Unnamed => None,
        };
        collector.add(
            &record.reference,
            Candidate {
                resource,
                schedule,
                off,
                barred: barred.as_deref(),
                policy: &policy,
                autoscaled: holdings.autoscaled.contains(&resource.id),
                accepts_new_prices: account.accept_new_prices,
                catalog: &holdings.catalog,
                smallest_database_plan: plan.as_deref(),
                prices: Prices {
                    provider: account.provider,
                    list: holdings.prices.as_ref(),
                    own: &self.configuration.settings.prices,
                },
            },
        );
    }
}
