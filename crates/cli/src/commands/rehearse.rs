//! `offhours rehearse`: whether a machine could be hibernated, and what that would save.

use std::{collections::BTreeSet, path::PathBuf};

use domain::{
    ResourceKind, ResourceRef,
    configuration::{Account, Configuration},
    hibernation::{self, HibernationTerms, OffPeriod, Risk, Surroundings},
    money::Money,
    plan::{Catalog, Machine},
    resource::{MachineSize, Resource, Size},
};
use environment::in_words;
use jiff::Timestamp;
use provider::{Client, ProviderError};
use report::savings::{self, HibernatedMonth, Month, TimesOff, amount, hibernated_month};
use schemars::JsonSchema;
use serde::Serialize;

mod cycle;

use super::Format;
use super::savings::{
    assumed::{Hours, accounts_of_variables},
    fleet::{Clouds, Trusted},
};
use crate::{
    Exit,
    author::reason,
    configuration_file::{self, ListedResources},
    context::Context,
    exit::UsageError,
    output::{self, Style},
    remedies,
};

/// The remedy for a refused `DigitalOcean` token: the scopes it needs.
const SCOPES: &str = "give the account a valid token with the scopes account:read, actions:read, \
                      block_storage:read, database:read, droplet:read, firewall:read, \
                      load_balancer:read, monitoring:read, project:read, regions:read, \
                      reserved_ip:read, sizes:read, ssh_key:read, tag:read and vpc:read";

/// Show what hibernating a machine would save, or try it once.
///
/// A machine that is hibernated is shut down, kept as a snapshot and deleted, and recreated from
/// the snapshot at its next start.
///
/// Without --cycle, nothing is changed. The command reads one machine and what is around it. It
/// shows what stands in the way, with what to do about it; what would be restored and what would be
/// lost; how long it would take; and what it would save at worst, with a full disk.
///
/// With --cycle, it hibernates the machine and wakes it again. Until that was done, and the new
/// machine has run for ten minutes, no schedule hibernates it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  DIGITALOCEAN_TOKEN=... offhours rehearse digitalocean/droplet/316 --key team
  HCLOUD_TOKEN=... offhours rehearse hetzner/server/42 --key team
  offhours rehearse do-main/droplet/3164444 --config offhours.toml --key team
  offhours rehearse do-main/droplet/3164444 --key team --accept new-ip
  offhours rehearse do-main/droplet/3164444 --key team -o json | jq '.obstacles'
  offhours rehearse hz-eu/server/42 --cycle

A token that may only read is enough: docs/deploying.md has its scopes.

The exit code is 3 if something stands in the way.")]
pub struct Args {
    /// The machine: ACCOUNT/droplet/ID or ACCOUNT/server/ID.
    #[arg(value_name = "REF")]
    resource: ResourceRef,
    /// Configuration file with the account [default: the accounts `digitalocean` and `hetzner`,
    /// with the tokens in `DIGITALOCEAN_TOKEN` and `HCLOUD_TOKEN`].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    trusted: Trusted,
    /// Hours in which the machine is taken to run, in UTC: weekdays and times [default: "mon-fri
    /// 08:00-19:00"].
    #[arg(long, value_name = "HOURS")]
    hours: Option<Hours>,
    /// Name of the account's SSH key with which the machine would be recreated. Without one, both
    /// clouds give it a random root password that has expired.
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// Risk to accept; may be repeated.
    #[arg(long, value_enum, value_name = "RISK")]
    accept: Vec<Accept>,
    /// The machine needs its private address, which DigitalOcean cannot keep.
    #[arg(long)]
    needs_private_ip: bool,
    /// Hibernate the machine now and wake it again, through the stack that manages it, and follow
    /// both, so that a person watches the first time.
    #[arg(long, conflicts_with_all = ["config", "hours", "key", "accept", "needs_private_ip"])]
    cycle: bool,
    /// With --cycle: the reason that `offhours activity` shows.
    #[arg(long, value_name = "TEXT", requires = "cycle", value_parser = reason)]
    reason: Option<String>,
}

/// A risk that can be accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Accept {
    /// A different public address after each start
    NewIp,
    /// The loss of its backups
    LostBackups,
    /// A custom image, of which a copy was seen to boot
    CustomImage,
}

impl Accept {
    fn risk(self) -> Risk {
        match self {
            Self::NewIp => Risk::NewIp,
            Self::LostBackups => Risk::LostBackups,
            Self::CustomImage => Risk::CustomImage,
        }
    }
}

/// The result of a rehearsal.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Rehearsal {
    /// The machine, as `ACCOUNT/KIND/ID`.
    resource: ResourceRef,
    /// Its name at the provider.
    name: String,
    /// Its plan.
    plan: String,
    /// Its region or location.
    region: String,
    /// Whether nothing stands in the way of hibernating it.
    fits: bool,
    /// What stands in the way, most serious first.
    obstacles: Vec<Obstacle>,
    /// What would be restored.
    put_back: Vec<String>,
    /// What would be lost.
    lost: Vec<String>,
    /// How long its snapshot takes at most, in minutes; null if its provider names no time.
    snapshot_minutes: Option<i64>,
    /// How long before its time a start begins, in minutes.
    lead_minutes: i64,
    /// What hibernating it would save in a month of 730.5 hours at least; null if the provider
    /// lists no price of its plan or of snapshots.
    month: Option<OfMonth>,
}

/// Something that stands in the way.
#[derive(Debug, Serialize, JsonSchema)]
struct Obstacle {
    /// What stands in the way.
    what: String,
    /// What to do about it.
    remedy: &'static str,
}

/// The figures for a month at worst, with a full disk.
#[derive(Debug, Serialize, JsonSchema)]
struct OfMonth {
    /// The hours in which the machine is taken to run, in UTC.
    hours: String,
    /// How many hours of the month the machine would not exist.
    gone_hours: f64,
    /// The currency of the amounts.
    currency: &'static str,
    /// What its snapshots cost at most.
    snapshots: f64,
    /// What its reserved address costs while it is assigned to no Droplet.
    address: f64,
    /// What is saved at least; negative if hibernating would cost more.
    saved: f64,
}

/// Reads the machine and what is around it, and shows what that means; or runs the cycle.
pub async fn run(args: &Args, context: &Context, now: Timestamp) -> anyhow::Result<Exit> {
    if args.cycle {
        can_be_hibernated(&args.resource)?;
        return cycle::run(args, context).await;
    }
    let configuration = match &args.config {
        Some(file) => configuration_file::load(file, ListedResources::NeedAccounts)?.configuration,
        None => accounts_of_variables()?,
    };
    let clouds = Clouds::open(context.connection.simulator(), &args.trusted, now).await?;
    let account = account(&configuration, &args.resource)?;
    let client = clouds.client(&args.resource.account, &configuration).await?;
    let is_droplet = args.resource.kind() == ResourceKind::Droplet;
    let details = MachineDetails::fetch(&client, &args.resource).await.map_err(|error| {
        let remedy = if is_droplet && error.is_about_token() {
            SCOPES
        } else {
            remedies::of_provider(&error, account.kind())
        };
        anyhow::anyhow!("{}: {}\n  {remedy}", args.resource, in_words(&error))
    })?;
    let Some(details) = details else {
        return Err(UsageError(format!(
            "{} is not there: check its account and id with `offhours status --wide`",
            args.resource
        ))
        .into());
    };
    let accepts_new_prices = account.cloud().is_some_and(|cloud| cloud.accept_new_prices);
    let rehearsal = details.rehearsal(args, clouds.now, accepts_new_prices)?;
    match context.format {
        Format::Json | Format::Csv => output::print_json(&rehearsal)?,
        Format::Table => output::print(&rehearsal.text(Style::of_stdout()))?,
    }
    Ok(if rehearsal.fits { Exit::Done } else { Exit::NeedsPerson })
}

fn can_be_hibernated(resource: &ResourceRef) -> Result<(), UsageError> {
    match resource.kind() {
        ResourceKind::Droplet | ResourceKind::Server => Ok(()),
        ResourceKind::Database | ResourceKind::NodePool | ResourceKind::Machine => {
            Err(UsageError(format!("{resource}: only Droplets and servers can be hibernated")))
        }
    }
}

fn account<'a>(
    configuration: &'a Configuration,
    resource: &ResourceRef,
) -> Result<&'a Account, UsageError> {
    can_be_hibernated(resource)?;
    let account = configuration.accounts.get(&resource.account);
    account.ok_or_else(|| {
        let known: Vec<_> = configuration.accounts.keys().map(ToString::to_string).collect();
        UsageError(format!("no account `{}`: there is {}", resource.account, known.join(", ")))
    })
}

/// What was read about one machine.
struct MachineDetails {
    resource: Resource,
    around: Surroundings,
    catalog: Catalog,
    autoscaled: bool,
    snapshot_price: Option<Money>,
}

impl MachineDetails {
    /// Reads one machine and what is around it. Returns `None` if there is no such machine.
    async fn fetch(
        client: &Client,
        reference: &ResourceRef,
    ) -> Result<Option<Self>, ProviderError> {
        let Some(resource) = client.status(&reference.id).await? else {
            return Ok(None);
        };
        let mut catalog = client.machine_plans().await?;
        if let Some(currency) = client.currency().await? {
            catalog = catalog.in_currency(currency);
        }
        Ok(Some(Self {
            around: client.surroundings(&reference.id).await?,
            autoscaled: client.autoscaled().await?.contains(&reference.id),
            snapshot_price: client.snapshot_price().await?,
            catalog,
            resource,
        }))
    }

    fn rehearsal(
        &self,
        args: &Args,
        now: Timestamp,
        accepts_new_prices: bool,
    ) -> anyhow::Result<Rehearsal> {
        let Size::Machine(size) = &self.resource.size else {
            anyhow::bail!("{} is no machine", args.resource);
        };
        let hours = args.hours.clone().unwrap_or_default();
        let stretch = hours.schedule.longest_stop(now);
        let terms = HibernationTerms {
            accepted: args.accept.iter().map(|one| one.risk()).collect::<BTreeSet<_>>(),
            needs_private_ip: args.needs_private_ip,
            ssh_key: args.key.clone(),
            // Without a stack, none of the account's machines is known to be hibernated.
            hibernated: 0,
            off_period: stretch.map(|off| OffPeriod { off, latest: None }),
            longest_run: hours.schedule.longest_run(now),
        };
        let machine = Machine {
            resource: &self.resource,
            size,
            autoscaled: self.autoscaled,
            accepts_new_prices,
        };
        let obstacles = hibernation::preflight(machine, &self.around, &self.catalog, &terms);
        let snapshot = hibernation::has_snapshot_time(self.resource.kind())
            .then(|| hibernation::first_snapshot(size).as_mins());
        let off = Month::Average(now).times_off(&hours.schedule);
        Ok(Rehearsal {
            resource: args.resource.clone(),
            name: self.resource.name.clone(),
            plan: size.plan.clone(),
            region: self.resource.region.clone(),
            fits: obstacles.is_empty(),
            obstacles: obstacles
                .iter()
                .map(|obstacle| Obstacle { what: obstacle.to_string(), remedy: obstacle.remedy() })
                .collect(),
            put_back: self.put_back(),
            lost: self.lost(),
            snapshot_minutes: snapshot,
            lead_minutes: hibernation::first_lead(size).as_mins(),
            month: self.month(size, &off).map(|found| OfMonth::of(found, &hours)),
        })
    }

    fn put_back(&self) -> Vec<String> {
        let stays = self.around.addresses.iter().filter(|address| address.stays);
        let private = self.around.private.iter().filter(|private| private.stays);
        let own = ["its name", "its tags", "its plan and disk"].map(str::to_owned);
        own.into_iter()
            .chain(stays.map(|address| format!("address {}", address.ip)))
            .chain(private.map(|private| format!("private address {}", private.ip)))
            .chain(self.around.attached.iter().cloned())
            .collect()
    }

    fn lost(&self) -> Vec<String> {
        let lost = self.around.addresses.iter().filter(|address| !address.stays);
        let lost = lost.map(|address| format!("address {}", address.ip));
        let outgoing = self.around.outgoing.iter();
        let outgoing =
            outgoing.map(|ip| format!("address {ip}, from which its outgoing traffic comes"));
        let always = hibernation::always_lost(&self.resource).iter();
        let always = always.map(|&what| what.to_owned());
        lost.chain(outgoing).chain(always).collect()
    }

    fn month(&self, size: &MachineSize, off: &TimesOff) -> Option<HibernatedMonth> {
        let offer = self.catalog.offer(&size.plan, &self.resource.region)?;
        let kind = self.resource.kind();
        let address_costs = self.around.address_costs(kind);
        hibernated_month((kind, size), offer, off, (self.snapshot_price?, address_costs))
    }
}

impl OfMonth {
    fn of(found: HibernatedMonth, hours: &Hours) -> Self {
        Self {
            hours: hours.to_string(),
            gone_hours: savings::hours(found.gone),
            currency: found.saved.currency().code(),
            snapshots: amount(found.snapshots),
            address: amount(found.address),
            saved: amount(found.saved),
        }
    }
}

impl Rehearsal {
    fn text(&self, style: Style) -> String {
        let heading =
            format!("{}  {}  {} in {}\n", self.resource, self.name, self.plan, self.region);
        let mut lines = vec![style.wrap(&heading)];
        if self.fits {
            lines.push("Nothing stands in the way of hibernating it.\n".to_owned());
        } else {
            lines.push("It would not be hibernated:\n".to_owned());
        }
        for Obstacle { what, remedy } in &self.obstacles {
            lines.push(style.wrap(&format!("- {what}\n  {remedy}\n")));
        }
        lines.push(style.wrap(&format!("\nPut back: {}.\n", self.put_back.join(", "))));
        lines.push(style.wrap(&format!("Lost: {}.\n", self.lost.join(", "))));
        lines.push(style.wrap(&format!("\n{}\n", self.month_in_words())));
        let snapshot = match self.snapshot_minutes {
            Some(minutes) => format!("A stop would take up to {minutes} min for its snapshot"),
            None => "A stop would take a few minutes for its snapshot".to_owned(),
        };
        lines.push(style.wrap(&format!(
            "{snapshot}, and a start would begin {} min early.\n",
            self.lead_minutes
        )));
        lines.push(style.wrap(&format!(
            "This is a preview. With methods = {{ {} = \"hibernate\" }} in its schedule, `offhours \
             rehearse REF --cycle` does it once, and the schedule from then on.\n",
            self.resource.kind()
        )));
        lines.concat()
    }

    fn month_in_words(&self) -> String {
        let Some(month) = &self.month else {
            return "What that would save is not known: its provider lists no price of its plan."
                .to_owned();
        };
        let money = |amount: f64| format!("{amount:.2} {}", month.currency);
        let saved = if month.saved < 0.0 {
            format!("it could cost {} more", money(-month.saved))
        } else {
            format!("at least {} would be saved", money(month.saved))
        };
        let address = if month.address > 0.0 {
            format!(", and {} for its reserved address", money(month.address))
        } else {
            String::new()
        };
        format!(
            "Running {} UTC, it would not be there for {:.0} h of a month of 730.5 h: {saved}, after at \
             most {} for two snapshots{address}.",
            month.hours,
            month.gone_hours,
            money(month.snapshots),
        )
    }
}
