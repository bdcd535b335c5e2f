//! The `offhours` command.

use std::process::ExitCode;

use clap::Parser as _;
use offhours::Arguments;

fn main() -> ExitCode {
    offhours::run(&Arguments::parse()).into()
}
