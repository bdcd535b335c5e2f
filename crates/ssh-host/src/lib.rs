//! A real SSH server on loopback, with its own keys, for tests and the demo. Its commands go
//! through a gate like one that an administrator would write.

use std::{
    fs,
    io::{self, Read as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use tempfile::TempDir;

/// Started by its full path, because it executes itself again for each connection.
const PROGRAM: &str = "/usr/sbin/sshd";

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A program is not installed: names it, and says how to install it.
    #[error("{0}")]
    Missing(&'static str),
    /// A file, a key or a process could not be created.
    #[error("the SSH server cannot be set up")]
    Io(#[from] io::Error),
    /// The server exited, with what it wrote to its log.
    #[error("the SSH server does not start: {0}")]
    Ended(String),
}

/// An SSH server that runs until it is dropped. Its folder holds the keys, the log and the
/// machines' states.
#[derive(Debug)]
pub struct Sshd {
    folder: TempDir,
    child: Child,
    port: u16,
    user: String,
}

/// How a server differs from the default one.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// What the gate accepts: the words of a command, and the script that runs for it. `$DIR` is
    /// the server's folder.
    pub gate: Vec<(String, String)>,
    /// Whether an ECDSA key is offered in addition to the ed25519 one.
    pub ecdsa: bool,
    /// Additional lines of the server's configuration.
    pub lines: Vec<String>,
}

impl Setup {
    /// Adds a command for which the gate runs a script.
    #[must_use]
    pub fn command(mut self, words: &str, script: &str) -> Self {
        self.gate.push((words.to_owned(), script.to_owned()));
        self
    }

    /// Adds a machine for each name.
    #[must_use]
    pub fn machines(self, names: &[&str]) -> Self {
        names.iter().fold(self, |setup, name| setup.machine(name))
    }

    /// Adds a machine that is a file with its state: `start NAME`, `stop NAME`, `force NAME` and
    /// `status NAME` do what they say. It is stopped at first.
    #[must_use]
    pub fn machine(self, name: &str) -> Self {
        let write = |state: &str| format!("echo {state} > \"$DIR/{name}\"");
        let status = format!("test \"$(cat \"$DIR/{name}\" 2>/dev/null)\" = on && exit 0; exit 3");
        self.command(&format!("start {name}"), &write("on"))
            .command(&format!("stop {name}"), &write("off"))
            .command(&format!("force {name}"), &write("off"))
            .command(&format!("status {name}"), &status)
    }

    /// Starts the server.
    pub fn start(self) -> Result<Sshd, StartError> {
        missing().map_or(Ok(()), |program| Err(StartError::Missing(program)))?;
        let folder = TempDir::new()?;
        let path = folder.path();
        for (file, kind) in [
            ("host", "ed25519"),
            ("host-ecdsa", "ecdsa"),
            ("user", "ed25519"),
            ("other", "ed25519"),
        ] {
            keygen(&path.join(file), kind)?;
        }
        let user = user()?;
        if user == "root" {
            fs::create_dir_all("/run/sshd")?;
        }
        self.write(path)?;
        // Another program may take the port before the server does.
        for _ in 0..5 {
            if let Some((child, port)) = self.listen(path)? {
                return Ok(Sshd { folder, child, port, user });
            }
        }
        let log = fs::read_to_string(path.join("log"));
        Err(StartError::Ended(log.unwrap_or_default()))
    }

    /// Writes the gate, and authorizes the key that may pass it.
    fn write(&self, path: &Path) -> io::Result<()> {
        let folder = path.display();
        let case = |(words, script): &(String, String)| format!("'{words}') {script} ;;\n");
        let cases: String = self.gate.iter().map(case).collect();
        let gate = format!(
            "#!/bin/sh\nDIR='{folder}'\necho \"$SSH_ORIGINAL_COMMAND\" >> \"$DIR/commands\"\ncase \"$SSH_ORIGINAL_COMMAND\" in\n{cases}\
             *) echo 'not on the list' >&2; exit 77 ;;\nesac\n"
        );
        fs::write(path.join("gate"), gate)?;
        fs::set_permissions(path.join("gate"), fs::Permissions::from_mode(0o755))?;
        let key = fs::read_to_string(path.join("user.pub"))?;
        let allowed = format!("restrict,command=\"exec {folder}/gate\" {key}");
        fs::write(path.join("authorized_keys"), allowed)
    }

    fn listen(&self, path: &Path) -> io::Result<Option<(Child, u16)>> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let folder = path.display();
        let mut lines = vec![
            "ListenAddress 127.0.0.1".to_owned(),
            format!("HostKey {folder}/host"),
            format!("AuthorizedKeysFile {folder}/authorized_keys"),
            "PidFile none".to_owned(),
            "StrictModes no".to_owned(),
            "UsePAM no".to_owned(),
            "PermitRootLogin prohibit-password".to_owned(),
            "PasswordAuthentication no".to_owned(),
            "KbdInteractiveAuthentication no".to_owned(),
            "PermitUserEnvironment no".to_owned(),
            // A shell reads its startup files from there, and the user's own are not for this host.
            format!("SetEnv HOME={folder}"),
            "LogLevel DEBUG1".to_owned(),
        ];
        if self.ecdsa {
            lines.push(format!("HostKey {folder}/host-ecdsa"));
        }
        lines.extend(self.lines.iter().cloned());
        fs::write(path.join("config"), lines.join("\n") + "\n")?;
        let mut child = Command::new(PROGRAM)
            .arg("-D")
            .arg("-f")
            .arg(path.join("config"))
            .arg("-E")
            .arg(path.join("log"))
            .args(["-p", &port.to_string()])
            .stdin(Stdio::null())
            .spawn()?;
        for _ in 0..500 {
            if child.try_wait()?.is_some() {
                return Ok(None);
            }
            if greets(port) {
                return Ok(Some((child, port)));
            }
            thread::sleep(Duration::from_millis(10));
        }
        end(&mut child);
        Ok(None)
    }
}

/// Reports whether an SSH server answers on a port.
fn greets(port: u16) -> bool {
    let mut greeting = [0; 4];
    TcpStream::connect(("127.0.0.1", port))
        .and_then(|mut stream| stream.read_exact(&mut greeting))
        .is_ok_and(|()| &greeting == b"SSH-")
}

/// The program that this machine lacks, with how to install it.
fn missing() -> Option<&'static str> {
    let finds = |program: &str| Command::new(program).arg("-?").output().is_ok();
    if !Path::new(PROGRAM).exists() {
        return Some("/usr/sbin/sshd is missing (Debian: apt-get install openssh-server)");
    }
    if !finds("ssh-keygen") {
        return Some("ssh-keygen is missing (Debian: apt-get install openssh-client)");
    }
    None
}

fn keygen(file: &Path, kind: &str) -> io::Result<()> {
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-N", "", "-C", "loopback", "-t", kind, "-f"]).arg(file);
    if keygen.status()?.success() {
        return Ok(());
    }
    Err(io::Error::other("ssh-keygen made no key"))
}

/// The user that may log in: the one who runs this program.
fn user() -> io::Result<String> {
    let output = Command::new("id").arg("-un").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn end(child: &mut Child) {
    // It may have exited already.
    let _ended = child.kill();
    let _status = child.wait();
}

impl Sshd {
    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The user that may log in.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The server's ed25519 public key, as one line.
    #[must_use]
    pub fn host_key(&self) -> String {
        self.read("host.pub")
    }

    /// The server's ECDSA public key, as one line.
    #[must_use]
    pub fn ecdsa_host_key(&self) -> String {
        self.read("host-ecdsa.pub")
    }

    /// A public key that is not the server's, as one line.
    #[must_use]
    pub fn other_host_key(&self) -> String {
        self.read("other.pub")
    }

    /// The private key that may pass the gate.
    #[must_use]
    pub fn key(&self) -> String {
        self.read("user")
    }

    /// A private key that may not pass it.
    #[must_use]
    pub fn other_key(&self) -> String {
        self.read("other")
    }

    /// The server's log.
    #[must_use]
    pub fn log(&self) -> String {
        self.read("log")
    }

    /// Every command that it was asked to run, oldest first.
    #[must_use]
    pub fn commands(&self) -> Vec<String> {
        self.read("commands").lines().map(str::to_owned).collect()
    }

    /// Switches a machine on, as a person would with its power button.
    pub fn switch_on(&self, name: &str) -> io::Result<()> {
        fs::write(self.path(name), "on")
    }

    /// A file in the server's folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        let text = fs::read_to_string(self.path(name));
        text.unwrap_or_default().trim_end().to_owned()
    }

    /// Kills the process whose id a script wrote to a file. Returns false if there is none.
    #[must_use]
    pub fn end_process_in(&self, name: &str) -> bool {
        let Ok(number) = fs::read_to_string(self.path(name)) else {
            return false;
        };
        let number = number.trim();
        !number.is_empty()
            && Command::new("kill").args(["-9", number]).status().is_ok_and(|s| s.success())
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}
