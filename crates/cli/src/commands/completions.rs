//! `offhours completions`: what a shell needs to complete the command line.

use std::env;

use anyhow::Context as _;
use clap_complete::{Shell, env::Shells};

use crate::{Exit, output};

/// Print a script for the completions of a shell.
///
/// The names of schedules, accounts and resources come from the store that `OFFHOURS_DATA` or
/// --data names, otherwise from the stack at AWS. While the store does not answer, the names of
/// schedules and accounts come from offhours.toml in the current folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours completions bash > /etc/bash_completion.d/offhours
  offhours completions zsh  > \"${fpath[1]}/_offhours\"
  offhours completions fish > ~/.config/fish/completions/offhours.fish")]
pub struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let shell = args.shell.to_string();
    let shells = Shells::builtins();
    let shell = shells.completer(&shell).context("this shell is not known")?;
    // The script calls the program that printed it, wherever that is.
    let program = env::current_exe()?;
    let program = program.to_str().context("the program's path is not UTF-8")?;
    let mut script = Vec::new();
    shell.write_registration("COMPLETE", "offhours", "offhours", program, &mut script)?;
    output::print(&String::from_utf8(script)?)?;
    Ok(Exit::Done)
}
