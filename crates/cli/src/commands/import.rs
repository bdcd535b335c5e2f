//! `offhours import`: translates another scheduler's configuration into ours.

use std::{
    io,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use environment::file;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    Exit,
    configuration_file::written::File,
    context::Context,
    exit::UsageError,
    import::{Remark, Source, import},
    output::{self},
};

/// The longest input, in bytes: a scan of a table with thousands of schedules has less.
const LONGEST_INPUT: u64 = 64 * 1024 * 1024;

/// Convert another scheduler's configuration.
///
/// Reads the configuration table of AWS Instance Scheduler as `aws dynamodb scan` prints it, or what
/// its `scheduler-cli` prints for describe-schedules and describe-periods. The file is written to
/// standard output, and what has no counterpart is reported on standard error. Schedules that may
/// mean something else here are left out, and the exit code is then 3.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours import aws schedules.json periods.json --timezone Europe/Berlin
  aws dynamodb scan --table-name TABLE | offhours import aws - > offhours.toml")]
pub struct Args {
    /// The scheduler.
    #[arg(value_enum)]
    from: Scheduler,
    /// Files with schedules and periods; - is standard input.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Time zone of schedules that name none: the stack's `DefaultTimezone`.
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Scheduler {
    /// AWS Instance Scheduler.
    Aws,
}

/// The result of an import.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Report {
    /// The configuration, as `offhours config schema` describes it.
    configuration: File,
    /// The differences from the original.
    remarks: Vec<Remark>,
}

pub fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let Scheduler::Aws = args.from;
    let sources: Vec<_> = args.files.iter().map(|path| read(path)).collect::<Result<_, _>>()?;
    let imported = import(&sources, args.timezone.as_deref())?;
    for remark in &imported.remarks {
        output::remark(&format!("{remark}\n"));
    }
    let is_whole = !imported.remarks.iter().any(|remark| remark.left_out);
    let heading = "# From AWS Instance Scheduler. Still missing: [accounts.NAME].";
    let text = format!("{heading}\n{}", imported.to_toml());
    let report = Report { configuration: imported.document(), remarks: imported.remarks };
    context.format.print(&report, || text)?;
    Ok(if is_whole { Exit::Done } else { Exit::NeedsPerson })
}

fn read(path: &Path) -> anyhow::Result<Source> {
    let name = path.display().to_string();
    let bytes = if name == "-" {
        file::read_to_end(io::stdin().lock(), LONGEST_INPUT)
            .context("cannot read standard input")?
    } else {
        file::read(path, LONGEST_INPUT)
            .map_err(|error| UsageError(format!("cannot read {name}: {error}")))?
    };
    let text = String::from_utf8(bytes).map_err(|_| {
        UsageError(format!(
            "{name} is not UTF-8 text: unpack it with gunzip if it is compressed; in PowerShell, \
             write it with `| Out-File -Encoding utf8` instead of `>`"
        ))
    });
    Ok(Source { name, text: text? })
}
