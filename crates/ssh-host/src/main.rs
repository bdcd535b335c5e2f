//! Runs an SSH server on loopback until standard input ends: `ssh-host MACHINE...`. It prints one line
//! of JSON: the port, the user, the host's key, and the folder, in which `user` is the private key and
//! `commands` has every command that was run.

use std::{
    env,
    io::{self, Write as _},
};

use ssh_host::Setup;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let names: Vec<String> = env::args().skip(1).collect();
    let setup = names.iter().fold(Setup::default(), |setup, name| setup.machine(name));
    let host = setup.start()?;
    for name in &names {
        host.switch_on(name)?;
    }
    let folder = host.path("");
    let line = format!(
        "{{\"port\": {}, \"user\": {:?}, \"host_key\": {:?}, \"folder\": {:?}}}",
        host.port(),
        host.user(),
        host.host_key(),
        folder.display().to_string(),
    );
    writeln!(io::stdout(), "{line}")?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
