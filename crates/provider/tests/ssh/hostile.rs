//! An SSH server that follows a given behavior and records what it is asked.

use std::sync::Arc;

use russh::{
    Channel, ChannelId, Preferred, Pty, Sig,
    keys::{
        Algorithm, Certificate, PrivateKey,
        ssh_key::{LineEnding, certificate, private::Ed25519Keypair},
    },
    server::{
        self, Auth, ChannelOpenHandle, Config, Handler, Msg, PublicKeyOffer, Session,
        VerifiedPublicKey,
    },
};
use tokio::{
    net::TcpListener,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

use super::*;

/// How the server violates the protocol, if it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behavior {
    /// Accepts everything and ends with an exit code.
    Ends(u32),
    /// Does not know the key.
    RefusesKey,
    /// Never answers the key.
    HangsAtKey,
    /// Accepts the key and asks for more.
    WantsMore,
    /// Opens no channel.
    RefusesChannel,
    /// Refuses the command.
    RefusesCommand,
    /// Sends an exit code as soon as the channel is open.
    EndsBeforeCommand,
    /// Sends an exit code without accepting the command.
    EndsBeforeAccepting,
    /// Sends an exit code, then refuses the command.
    EndsAndRefuses,
    /// Sends two exit codes.
    EndsTwice,
    /// Sends an exit code, then a signal.
    EndsAndSignals,
    /// Closes the channel without an exit code.
    Closes,
    /// Opens a channel of its own before it ends with 0.
    Opens(Opened),
    /// Accepts the command and sends its output, then nothing more.
    Hangs,
}

/// The kinds of channel that a server can open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opened {
    Session,
    Agent,
    X11,
    ForwardedTcp,
    ForwardedSocket,
    DirectTcp,
    DirectSocket,
}

pub(crate) struct Hostile {
    pub(crate) port: u16,
    seen: UnboundedReceiver<String>,
}

/// A key that is the same in each run.
pub(crate) fn key(seed: u8) -> PrivateKey {
    Ed25519Keypair::from_seed(&[seed; 32]).into()
}

/// The server's key, for `host_keys`.
pub(crate) fn host_key() -> String {
    key(1).public_key().to_openssh().unwrap()
}

/// The client's key.
pub(crate) fn private_key() -> String {
    key(2).to_openssh(LineEnding::LF).unwrap().to_string()
}

/// Keys of a kind, or in a form, that the client does not accept.
pub(crate) fn unusable_keys() -> [String; 2] {
    let mut random = russh::keys::key::safe_rng();
    let curve = russh::keys::EcdsaCurve::NistP256;
    let ecdsa = PrivateKey::random(&mut random, Algorithm::Ecdsa { curve }).unwrap();
    let locked = key(2).encrypt(&mut random, "passphrase").unwrap();
    [ecdsa, locked].map(|key| key.to_openssh(LineEnding::LF).unwrap().to_string())
}

/// A host certificate for one key, signed by another.
pub(crate) fn certificate(of: &PrivateKey, by: &PrivateKey) -> Certificate {
    let mut builder =
        certificate::Builder::new(vec![7; 32], of.public_key().key_data().clone(), 0, u64::MAX - 1)
            .unwrap();
    builder.cert_type(certificate::CertType::Host).unwrap();
    builder.key_id("host").unwrap();
    builder.all_principals_valid().unwrap();
    builder.sign(by).unwrap()
}

impl Hostile {
    /// Starts a server with the pinned key.
    pub(crate) async fn start(behavior: Behavior) -> Self {
        Self::with(behavior, |_| ()).await
    }

    /// Starts a server with a changed configuration.
    pub(crate) async fn with(behavior: Behavior, change: impl FnOnce(&mut Config)) -> Self {
        let mut config =
            Config { keys: vec![key(1)], auth_rejection_time: Duration::ZERO, ..Config::default() };
        change(&mut config);
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (events, seen) = unbounded_channel();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let visit = Visit { behavior, events: events.clone() };
                tokio::spawn(visit.serve(config.clone(), socket));
            }
        });
        Self { port, seen }
    }

    /// Creates a client of this server.
    pub(crate) fn api(&self) -> Api {
        self.api_with(json!({ "machines": { "m": machine("start", "status") } }))
    }

    pub(crate) fn api_with(&self, changes: Value) -> Api {
        api(login(self.port, USER, &[host_key()], changes), &private_key())
    }

    /// Returns what the server was asked over this many connections, until the last of them ended.
    pub(crate) async fn seen(&mut self, connections: usize) -> Vec<String> {
        let (mut seen, mut left) = (Vec::new(), connections);
        while left > 0 {
            let next = timeout(LONGEST, self.seen.recv()).await;
            let event = next.unwrap_or_else(|_| panic!("a connection stays open: {seen:?}"));
            let event = event.unwrap();
            left -= usize::from(event == "end");
            seen.push(event);
        }
        seen
    }
}

struct Visit {
    behavior: Behavior,
    events: UnboundedSender<String>,
}

impl Visit {
    async fn serve(self, config: Arc<Config>, socket: tokio::net::TcpStream) {
        let events = self.events.clone();
        let _ = events.send("begin".to_owned());
        if let Ok(session) = server::run_stream(config, socket, self).await {
            let _ended = session.await;
        }
        let _ = events.send("end".to_owned());
    }

    fn note(&self, event: impl Into<String>) {
        let _ = self.events.send(event.into());
    }
}

impl Handler for Visit {
    type Error = russh::Error;

    async fn auth_none(&mut self, _: &str) -> Result<Auth, russh::Error> {
        self.note("none");
        Ok(Auth::reject())
    }

    async fn auth_password(&mut self, _: &str, _: &str) -> Result<Auth, russh::Error> {
        self.note("password");
        Ok(Auth::reject())
    }

    async fn auth_keyboard_interactive<'a>(
        &'a mut self,
        _: &str,
        _: &str,
        _: Option<server::Response<'a>>,
    ) -> Result<Auth, russh::Error> {
        self.note("keyboard");
        Ok(Auth::reject())
    }

    async fn auth_publickey_offered(
        &mut self,
        _: &str,
        offer: PublicKeyOffer<'_>,
    ) -> Result<Auth, russh::Error> {
        assert_eq!(offer.public_key.key_data(), key(2).public_key().key_data());
        self.note("key");
        match self.behavior {
            Behavior::RefusesKey => Ok(Auth::reject()),
            Behavior::HangsAtKey => std::future::pending().await,
            _ => Ok(Auth::Accept),
        }
    }

    async fn auth_publickey(
        &mut self,
        _: &str,
        _: VerifiedPublicKey<'_>,
    ) -> Result<Auth, russh::Error> {
        if self.behavior == Behavior::WantsMore {
            return Ok(Auth::Reject { proceed_with_methods: None, partial_success: true });
        }
        Ok(Auth::Accept)
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        self.note("channel");
        if self.behavior == Behavior::RefusesChannel {
            return Ok(());
        }
        reply.accept().await;
        if self.behavior == Behavior::EndsBeforeCommand {
            let handle = session.handle();
            tokio::spawn(async move { handle.exit_status_request(channel.id(), 0).await });
        }
        Ok(())
    }

    async fn exec_request(
        &mut self,
        id: ChannelId,
        command: &[u8],
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        self.note(String::from_utf8_lossy(command));
        match self.behavior {
            Behavior::RefusesCommand => return session.channel_failure(id),
            Behavior::EndsBeforeAccepting => return session.exit_status_request(id, 0),
            Behavior::EndsAndRefuses => {
                session.exit_status_request(id, 0)?;
                return session.channel_failure(id);
            }
            _ => session.channel_success(id)?,
        }
        session.data(id, PRINTED.as_bytes().to_vec())?;
        match self.behavior {
            Behavior::Hangs => return Ok(()),
            Behavior::EndsTwice => {
                session.exit_status_request(id, 0)?;
                session.exit_status_request(id, 3)?;
            }
            Behavior::EndsAndSignals => {
                session.exit_status_request(id, 0)?;
                session.exit_signal_request(id, Sig::KILL, false, "", "")?;
            }
            Behavior::Ends(code) => session.exit_status_request(id, code)?,
            Behavior::Opens(kind) => {
                open(kind, session)?;
                session.exit_status_request(id, 0)?;
            }
            _ => {}
        }
        session.close(id)
    }

    /// The client opened the channel that this server asked for.
    async fn channel_open_confirmation(
        &mut self,
        _: ChannelId,
        _: u32,
        _: u32,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        self.note("confirmed");
        Ok(())
    }

    async fn pty_request(
        &mut self,
        _: ChannelId,
        _: &str,
        _: u32,
        _: u32,
        _: u32,
        _: u32,
        _: &[(Pty, u32)],
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        self.note("pty");
        Ok(())
    }

    async fn env_request(
        &mut self,
        _: ChannelId,
        _: &str,
        _: &str,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        self.note("environment");
        Ok(())
    }

    async fn agent_request(&mut self, _: ChannelId, _: &mut Session) -> Result<bool, russh::Error> {
        self.note("agent");
        Ok(false)
    }

    async fn shell_request(&mut self, _: ChannelId, _: &mut Session) -> Result<(), russh::Error> {
        self.note("shell");
        Ok(())
    }

    async fn subsystem_request(
        &mut self,
        _: ChannelId,
        _: &str,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        self.note("subsystem");
        Ok(())
    }

    async fn tcpip_forward(
        &mut self,
        _: &str,
        _: &mut u32,
        _: &mut Session,
    ) -> Result<bool, russh::Error> {
        self.note("forward");
        Ok(false)
    }
}

fn open(kind: Opened, session: &mut Session) -> Result<ChannelId, russh::Error> {
    match kind {
        Opened::Session => session.channel_open_session(),
        Opened::Agent => session.channel_open_agent(),
        Opened::X11 => session.channel_open_x11("127.0.0.1", 1),
        Opened::ForwardedTcp => {
            session.channel_open_forwarded_tcpip("127.0.0.1", 1, "127.0.0.1", 1)
        }
        Opened::ForwardedSocket => session.channel_open_forwarded_streamlocal("/socket"),
        Opened::DirectTcp => session.channel_open_direct_tcpip("127.0.0.1", 1, "127.0.0.1", 1),
        Opened::DirectSocket => session.channel_open_direct_streamlocal("/socket"),
    }
}

/// The server's default algorithms, changed.
pub(crate) fn speaking(change: impl FnOnce(&mut Preferred)) -> Preferred {
    let mut preferred = Preferred::default();
    change(&mut preferred);
    preferred
}
