//! `offhours man`: the manual pages.

use std::{fs, path::PathBuf};

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::{Arguments, Exit};

/// Write the manual pages into a folder, one for each command.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours man /usr/local/share/man/man1")]
pub struct Args {
    /// The folder. It is created if it does not exist.
    folder: PathBuf,
}

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let write = || {
        fs::create_dir_all(&args.folder)?;
        clap_mangen::generate_to(Arguments::command(), &args.folder)
    };
    write().with_context(|| format!("cannot write the pages into {}", args.folder.display()))?;
    Ok(Exit::Done)
}
