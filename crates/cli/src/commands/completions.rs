//! `offhours completions`: what a shell needs to complete the command line.

use std::env;

use anyhow::Context as _;
use clap_complete::{Shell, env::Shells};

use crate::{Exit, output};

/// Prints what a shell needs to complete commands, options and names.
///
/// The names of schedules, accounts and resources are those of the store that `OFFHOURS_DATA` or
/// --data names, otherwise of the stack at AWS, and while that does not answer those of the
/// folder's offhours.toml.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours completions bash > ~/.local/share/bash-completion/completions/offhours
  offhours completions zsh  > \"${fpath[1]}/_offhours\"
  offhours completions fish > ~/.config/fish/completions/offhours.fish")]
pub struct Args {
    /// For which shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints them.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let shell = args.shell.to_string();
    let shells = Shells::builtins();
    let shell = shells
        .completer(&shell)
        .context("this shell is not known")?;
    // The script asks the program that printed it, wherever that is.
    let program = env::current_exe()?;
    let program = program
        .to_str()
        .context("the program's path is not UTF-8")?;
    let mut script = Vec::new();
    shell.write_registration("COMPLETE", "offhours", "offhours", program, &mut script)?;
    output::print(&String::from_utf8(script)?)?;
    Ok(Exit::Done)
}
