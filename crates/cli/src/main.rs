//! The `offhours` command.

use std::process::ExitCode;

use offhours::Arguments;

/// With the system allocator a simulation takes a quarter longer.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    offhours::run(&Arguments::of_command_line()).into()
}
