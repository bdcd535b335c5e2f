//! `offhours completions`: what a shell needs to complete the command line.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::{Arguments, Exit, output};

/// Prints the completions for a shell.
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
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut Arguments::command(),
        "offhours",
        &mut script,
    );
    output::print(&String::from_utf8(script)?)?;
    Ok(Exit::Done)
}
