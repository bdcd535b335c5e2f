//! The host of the SSH account: a real SSH server over a pipe in memory, that runs the account's
//! commands on machines that are values.

use std::{
    borrow::Cow,
    fmt, io,
    sync::Arc,
    task::{Poll, Waker},
    time::Duration,
};

use domain::{
    AccountName, MachineName, ResourceId, ResourceRef,
    configuration::Account,
    ssh::{Host, SshLogin},
};
use provider::Stream;
use russh::{
    Channel, ChannelId, Disconnect, Preferred, Sig, kex,
    server::{
        Auth, ChannelOpenHandle, Config, Handle, Handler, Msg, PublicKeyOffer, Session,
        VerifiedPublicKey,
    },
};
use tokio::{
    io::{AsyncReadExt as _, DuplexStream, duplex},
    time::{Instant, sleep_until},
};

use crate::{
    clockwork::{TaskId, Time},
    faults::{Faults, RequestInfo},
    machines::{Machines, Purpose},
    night::{Fault, Setup},
    observer::Observer,
    ssh_keys::Key,
};

/// The capacity of a pipe, larger than anything that either side sends at once.
const PIPE: usize = 64 * 1024;

/// The one key exchange that the host offers, which takes little time.
const KEX: &[kex::Name] = &[kex::CURVE25519, kex::EXTENSION_OPENSSH_STRICT_KEX_AS_SERVER];

/// The host. Clones are the same host.
#[derive(Clone)]
pub(crate) struct SshHost(Arc<Shared>);

struct Shared {
    time: Time,
    faults: Faults,
    observer: Observer,
    machines: Machines,
    account: AccountName,
    login: SshLogin,
    config: Arc<Config>,
    config_with_another_key: Arc<Config>,
}

impl fmt::Debug for SshHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SshHost").finish_non_exhaustive()
    }
}

/// The task that has opened a connection.
#[derive(Debug, Clone)]
struct Caller {
    task: TaskId,
    waker: Waker,
}

fn config(host_key: Key) -> Arc<Config> {
    Arc::new(Config {
        keys: vec![host_key.private()],
        preferred: Preferred { kex: Cow::Borrowed(KEX), ..Preferred::default() },
        ..Config::default()
    })
}

impl SshHost {
    /// Creates the host of a setup's SSH account. `None` if there is no such account.
    pub(crate) fn of(
        setup: &Setup,
        machines: Machines,
        time: Time,
        faults: Faults,
        observer: Observer,
    ) -> Option<Self> {
        let mut accounts = setup.accounts.iter();
        let (account, login) = accounts.find_map(|(name, account)| match account {
            Account::Ssh(ssh) => Some((name.clone(), ssh.login.clone())),
            Account::Cloud(_) => None,
        })?;
        let (config, config_with_another_key) = (config(Key::Host), config(Key::AnotherHost));
        Some(Self(Arc::new(Shared {
            time,
            faults,
            observer,
            machines,
            account,
            login,
            config,
            config_with_another_key,
        })))
    }

    /// Connects to the host itself, or to the port that shows whether a machine is on.
    pub(crate) async fn connect(&self, host: &Host, port: u16) -> io::Result<Stream> {
        let Shared { time, faults, observer, account, login, .. } = &*self.0;
        let _spawner = time.spawner();
        let latency = time.chance(|chance| chance.u64(15..250));
        time.sleep(Duration::from_millis(latency)).await;
        if (host, port) != (&login.host, login.port) {
            return self.probe(host, port).await;
        }
        let fault = faults.fault_for(RequestInfo::Connection { account }, time.now());
        if let Some(fault) = &fault {
            observer.note_fault(fault.name(), "at the host");
        }
        let (near, far) = duplex(PIPE);
        if matches!(fault, Some(Fault::ConnectionRefused | Fault::Throttled { .. })) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        if fault == Some(Fault::Unreachable) {
            std::future::pending::<()>().await;
        }
        if fault == Some(Fault::NoGreeting) {
            tokio::spawn(says_nothing(far));
            return Ok(Box::new(near));
        }
        let visit = Visit {
            host: self.clone(),
            caller: caller(time).await,
            fault,
            may_change: false,
            has_run: false,
        };
        tokio::spawn(visit.receive(far));
        Ok(Box::new(near))
    }

    async fn probe(&self, host: &Host, port: u16) -> io::Result<Stream> {
        let Shared { time, machines, login, .. } = &*self.0;
        let is_here = |probe: &domain::ssh::Endpoint| (&probe.host, probe.port) == (host, port);
        let mut probed = login.machines.iter();
        let probed = probed.find(|(_, machine)| machine.probe.as_ref().is_some_and(is_here));
        if !probed.is_some_and(|(name, _)| machines.answers(name, time.now())) {
            std::future::pending::<()>().await;
        }
        let (near, _far) = duplex(PIPE);
        Ok(Box::new(near))
    }

    /// Returns the machine that a command is for, and the command's purpose. `None` if no machine has
    /// it.
    fn meaning(&self, command: &str) -> Option<(MachineName, Purpose)> {
        self.0.login.machines.iter().find_map(|(name, machine)| {
            let commands = [
                (Some(&machine.start), Purpose::Start),
                (Some(&machine.stop), Purpose::Stop),
                (machine.force.as_ref(), Purpose::Force),
                (machine.status.as_ref(), Purpose::Status),
            ];
            let is_it = |(of, _): &(Option<&domain::ssh::RemoteCommand>, _)| {
                of.is_some_and(|of| of.as_str() == command)
            };
            commands.into_iter().find(is_it).map(|(_, purpose)| (name.clone(), purpose))
        })
    }

    fn resource(&self, name: &MachineName) -> ResourceRef {
        ResourceRef { account: self.0.account.clone(), id: ResourceId::Machine(name.clone()) }
    }

    /// Lets a command take effect after some time.
    async fn take_effect(self, after: Duration, name: MachineName, purpose: Purpose) {
        let Shared { time, machines, observer, .. } = &*self.0;
        pass(time, after).await;
        let Some(begun) = machines.begin(&name, purpose) else {
            return;
        };
        observer.command_took_effect(&self.resource(&name), purpose);
        pass(time, begun.takes).await;
        machines.finish(&name, &begun);
        observer.changed();
    }
}

/// Waits by the clock of spawned tasks.
async fn pass(time: &Time, duration: Duration) {
    sleep_until(Instant::now() + duration).await;
    time.catch_up();
}

/// Returns the task that is being polled.
async fn caller(time: &Time) -> Caller {
    let task = time.current();
    std::future::poll_fn(|context| Poll::Ready(Caller { task, waker: context.waker().clone() }))
        .await
}

/// Accepts a connection and says nothing until it is closed.
async fn says_nothing(mut far: DuplexStream) {
    let mut heard = [0; 1024];
    while far.read(&mut heard).await.is_ok_and(|read| read > 0) {}
}

/// One connection.
struct Visit {
    host: SshHost,
    caller: Caller,
    /// What is wrong with the connection as a whole.
    fault: Option<Fault>,
    /// Whether the key that was presented allows more than `status`.
    may_change: bool,
    has_run: bool,
}

/// What the host answers to a command.
enum Answer {
    ExitCode(u32),
    Killed,
    /// The command ends, and its exit code is unknown.
    NoExitCode,
    ConnectionLost,
    /// The function that sent the command has died.
    NoCaller,
}

impl Visit {
    async fn receive(self, far: DuplexStream) {
        let shared = self.host.0.clone();
        let config =
            if self.has_another_key() { &shared.config_with_another_key } else { &shared.config };
        // How a connection ends changes nothing.
        if let Ok(session) = russh::server::run_stream(config.clone(), far, self).await {
            session.await.ok();
        }
    }

    fn has_another_key(&self) -> bool {
        self.fault == Some(Fault::HostKeyChanged)
    }

    /// Records what a client sends to a host whose key is not pinned.
    fn heard(&self, what: &str) {
        if self.has_another_key() {
            self.host.0.time.catch_up();
            let what = format!("{what} is sent to a host whose key is not pinned");
            self.host.0.observer.lock().violated(what);
        }
    }

    /// Runs a command, and answers.
    async fn run(self, fault: Option<Fault>, text: String, channel: ChannelId, to: Handle) {
        let (answer, after) = self.carry_out(fault.as_ref(), &text);
        pass(&self.host.0.time, after).await;
        // A client that is no longer there needs no answer.
        let _sent = match answer {
            Answer::ExitCode(code) => to.exit_status_request(channel, code).await,
            Answer::Killed => {
                to.exit_signal_request(channel, Sig::KILL, false, String::new(), String::new())
                    .await
            }
            Answer::NoExitCode => Ok(()),
            Answer::ConnectionLost => {
                let lost = to.disconnect(Disconnect::ByApplication, String::new(), String::new());
                lost.await.ok();
                return;
            }
            Answer::NoCaller => return,
        };
        let _closed = to.close(channel).await;
    }

    /// Lets a command take effect. Returns the answer and how long it takes.
    fn carry_out(&self, fault: Option<&Fault>, text: &str) -> (Answer, Duration) {
        let Shared { observer, machines, .. } = &*self.host.0;
        let Some((name, purpose)) = self.host.meaning(text) else {
            let what = format!("`{text}` is run, which is no configured command");
            observer.lock().violated(what);
            return (Answer::ExitCode(127), Duration::ZERO);
        };
        let resource = self.host.resource(&name);
        let is_status = purpose == Purpose::Status;
        observer.command_arrives(&resource, purpose, self.caller.task, self.may_change);
        let own = if is_status { machines.status_takes(&name) } else { Duration::ZERO };
        let is_on = machines.is_on(&name) == Some(true);
        let usual = if is_status && !is_on { 3 } else { 0 };
        let effect = |after: Duration| {
            tokio::spawn(self.host.clone().take_effect(after, name.clone(), purpose));
        };
        let seconds = |seconds: i64| Duration::from_secs(seconds.unsigned_abs());
        let (answer, after) = match fault {
            None => {
                effect(Duration::ZERO);
                (Answer::ExitCode(usual), own)
            }
            Some(Fault::DiesBefore) => {
                self.die();
                (Answer::NoCaller, own)
            }
            Some(Fault::DiesAfter) => {
                effect(Duration::ZERO);
                self.die();
                (Answer::NoCaller, own)
            }
            Some(Fault::AnswerLost) => {
                effect(Duration::ZERO);
                (Answer::ConnectionLost, own)
            }
            Some(Fault::RequestLost) => (Answer::ConnectionLost, own),
            Some(Fault::Slow { seconds }) => {
                effect(Duration::ZERO);
                (Answer::ExitCode(usual), own + Duration::from_secs(*seconds))
            }
            Some(Fault::Failed { after_effect }) => {
                if *after_effect {
                    effect(Duration::ZERO);
                }
                (Answer::ExitCode(1), own)
            }
            Some(Fault::Truncated) => {
                effect(Duration::ZERO);
                (Answer::Killed, own)
            }
            Some(Fault::Malformed { .. }) => (Answer::ExitCode(5), own),
            Some(Fault::Busy) => (Answer::ExitCode(75), own),
            Some(Fault::Refused) => (Answer::ExitCode(77), own),
            Some(Fault::Late { seconds: after }) => {
                effect(seconds(*after));
                (Answer::ConnectionLost, own)
            }
            Some(Fault::Sluggish { seconds: after }) => {
                effect(seconds(*after));
                (Answer::ExitCode(usual), own)
            }
            Some(_) => (Answer::NoExitCode, own),
        };
        observer.command_answered(&resource, purpose, &answer_in_words(&answer));
        (answer, after)
    }

    /// Ends the function that has sent the command, as a crash would.
    fn die(&self) {
        self.host.0.time.doom(self.caller.task);
        self.caller.waker.wake_by_ref();
    }
}

fn answer_in_words(answer: &Answer) -> String {
    match answer {
        Answer::ExitCode(code) => format!("exit code {code}"),
        Answer::Killed => "killed".to_owned(),
        Answer::NoExitCode => "no exit code".to_owned(),
        Answer::ConnectionLost => "connection lost".to_owned(),
        Answer::NoCaller => "the function has died".to_owned(),
    }
}

impl Handler for Visit {
    type Error = russh::Error;

    async fn auth_none(&mut self, _: &str) -> Result<Auth, russh::Error> {
        self.heard("a user's name");
        Ok(Auth::reject())
    }

    async fn auth_publickey_offered(
        &mut self,
        _: &str,
        _: PublicKeyOffer<'_>,
    ) -> Result<Auth, russh::Error> {
        self.heard("a user's name");
        Ok(Auth::Accept)
    }

    async fn auth_publickey(
        &mut self,
        user: &str,
        key: VerifiedPublicKey<'_>,
    ) -> Result<Auth, russh::Error> {
        self.heard("a user's name");
        let is = |known: Key| key.public_key.key_data() == known.public().key_data();
        self.may_change = is(Key::Change);
        let is_known = self.may_change || is(Key::Read);
        let refuses_keys = self.fault == Some(Fault::TokenRefused);
        let is_accepted = is_known && !refuses_keys && user == self.host.0.login.user.as_str();
        Ok(if is_accepted { Auth::Accept } else { Auth::reject() })
    }

    async fn channel_open_session(
        &mut self,
        _: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        reply.accept().await;
        Ok(())
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        data: &[u8],
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        let Shared { time, faults, observer, account, .. } = &*self.host.0;
        time.catch_up();
        self.heard("a command");
        if std::mem::replace(&mut self.has_run, true) {
            observer.lock().violated("a second command is run over one connection");
        }
        let text = String::from_utf8_lossy(data).into_owned();
        let meaning = self.host.meaning(&text);
        let changes = meaning.is_none_or(|(_, purpose)| purpose != Purpose::Status);
        let command = RequestInfo::Cloud { account, changes, later_page: false, kind: None };
        let fault = faults.fault_for(command, time.now());
        if let Some(fault) = &fault {
            observer.note_fault(fault.name(), &format!("of `{text}`"));
        }
        if matches!(fault, Some(Fault::Throttled { .. })) {
            return session.channel_failure(channel);
        }
        session.channel_success(channel)?;
        let visit =
            Self { host: self.host.clone(), caller: self.caller.clone(), fault: None, ..*self };
        tokio::spawn(visit.run(fault, text, channel, session.handle()));
        Ok(())
    }
}
