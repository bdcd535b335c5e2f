//! The `offhours` command.

use std::process::ExitCode;

use offhours::Arguments;

fn main() -> ExitCode {
    offhours::run(&Arguments::of_command_line()).into()
}
