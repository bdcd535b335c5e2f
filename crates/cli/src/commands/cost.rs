//! `offhours cost`: what the service itself costs at AWS.

use report::cost::{self, Cost, Item, Service};

use super::Format;
use crate::{
    Exit,
    output::{self, Style},
    table::{Cell, Column, Table},
};

/// The fleet sizes to show if none is given.
const FLEETS: [u64; 4] = [0, 100, 1000, 10_000];

/// Show what the service itself costs at AWS in a month.
///
/// The figures come from what was counted for fleets of these sizes (BENCHMARKS.md, `make scale`),
/// at AWS's prices for us-east-1, without free allotments. No account is asked, and nothing has to
/// be set up. What the service saves is a separate figure: see `offhours savings`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours cost                          for 0, 100, 1,000 and 10,000 resources
  offhours cost --resources 240          each item of the bill for 240 of them
  offhours cost --resources 240 --edges 4
  offhours cost --format json | jq '.[].usd'")]
pub struct Args {
    /// Number of resources that follow a schedule [default: 0, 100, 1,000 and 10,000, side by
    /// side].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    resources: Option<u64>,
    /// How often each resource is stopped or started in a day.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 2,
        value_parser = clap::value_parser!(u32).range(..=288)
    )]
    edges: u32,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Prints what the service costs.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let fleets = args.resources.map_or(FLEETS.to_vec(), |one| vec![one]);
    let costs: Vec<_> =
        fleets.into_iter().map(|resources| cost::of(resources, args.edges)).collect();
    if args.format == Format::Json {
        output::print_json(&costs)?;
        return Ok(Exit::Done);
    }
    let style = Style::of_stdout();
    let (shown, of) = match &costs[..] {
        [one] => (items(one, style), format!(" for {} resources", one.resources)),
        several => (services(several, style), String::new()),
    };
    output::print(&format!(
        "What Offhours itself costs at AWS{of}, in USD, in a month of 30 days with {} edges a day:\n\
         {shown}{}",
        args.edges,
        notes()
    ))?;
    Ok(Exit::Done)
}

/// A row for each fleet.
fn services(costs: &[Cost], style: Style) -> String {
    let columns = [
        Column::of("Resources").right(),
        Column::of("Lambda").right(),
        Column::of("DynamoDB").right(),
        Column::of("KMS").right(),
        Column::of("Logs").right(),
        Column::of("EventBridge").right(),
        Column::of("Watching it").right(),
        Column::of("In total").right(),
    ];
    let cells = |cost: &Cost| {
        let of = |service| {
            let items = cost.items.iter().filter(|item| item.service == service);
            usd(items.map(|item| item.usd).sum())
        };
        let services = Service::ALL.map(of);
        let texts = [cost.resources.to_string()].into_iter().chain(services);
        texts.chain([usd(cost.usd)]).map(Cell::new).collect::<Vec<_>>()
    };
    let rows: Vec<_> = costs.iter().map(cells).collect();
    Table::whole(style, columns, &rows)
}

/// A row for each item of one bill.
fn items(cost: &Cost, style: Style) -> String {
    let columns = [
        Column::of("Service"),
        Column::of("What"),
        Column::of("Quantity").right(),
        Column::of("Price").right(),
        Column::of("USD").right(),
    ];
    let cells = |item: &Item| {
        let (price, per) = item.price;
        let price = if per > 1.0 { format!("{price} for {per}") } else { price.to_string() };
        let texts = [
            name(item.service).to_owned(),
            item.what.to_owned(),
            quantity(item.quantity),
            price,
            usd(item.usd),
        ];
        texts.map(Cell::new).to_vec()
    };
    let mut rows: Vec<_> = cost.items.iter().map(cells).collect();
    let total = ["In total", "", "", "", &usd(cost.usd)];
    rows.push(total.map(Cell::new).to_vec());
    Table::whole(style, columns, &rows)
}

fn name(service: Service) -> &'static str {
    match service {
        Service::Lambda => "Lambda",
        Service::DynamoDb => "DynamoDB",
        Service::Kms => "KMS",
        Service::Logs => "CloudWatch logs",
        Service::EventBridge => "EventBridge",
        Service::Watching => "CloudWatch",
    }
}

fn usd(amount: f64) -> String {
    format!("{amount:.2}")
}

fn quantity(number: f64) -> String {
    if number.fract() == 0.0 || number >= 100.0 {
        format!("{number:.0}")
    } else {
        format!("{number:.3}")
    }
}

fn notes() -> String {
    let source = cost::source();
    let sizes: Vec<_> = source.sizes.iter().map(u64::to_string).collect();
    format!(
        "- Counted by `make scale` at {} on {}, of {} resources; between these in proportion.\n\
         - Prices of us-east-1 as of 2026-11-21, without free allotments and taxes: docs/costs.md has \
         them with their pages, and what is an estimate.\n\
         - Watching it: 15 alarms, 10 metrics, a dashboard. Commands of your own are not counted.\n",
        source.commit,
        source.date,
        sizes.join(", "),
    )
}
