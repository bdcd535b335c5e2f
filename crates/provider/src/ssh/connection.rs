//! One command over a connection of its own, with a timeout on every step.
//!
//! The steps are ordered by what an observer learns: the host's key is verified before the user
//! name is sent, and the command is sent only over an open channel. From then on it may have run.

use std::{
    net::{Shutdown, TcpStream as Socket},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use domain::ssh::{RemoteCommand, SshLogin};
use russh::{
    Channel, ChannelMsg, Disconnect,
    client::{AuthResult, Handle, Msg, connect_stream},
    keys::PrivateKeyWithHashAlg,
};
use secrecy::SecretString;
use tokio::{net::TcpStream, sync::SemaphorePermit, time::timeout};

use super::{
    address::{Connected, Route, connect},
    output::Output,
    pins::{InvalidKey, Pins, Visitor, private_key},
};
use crate::{command_failure::Failure, transport::Stream};

/// Timeout of a start or stop command, connection included. AWS ends the functions that send such
/// commands after 120 s, and they begin none after 50 s.
pub(super) const TO_CHANGE: Duration = Duration::from_mins(1);

/// Timeout of a status command, connection included: poll-status ends after 75 s and begins none
/// after 50 s, and an observation older than 30 s is not acted on.
pub(super) const TO_LOOK: Duration = Duration::from_secs(20);

/// Maximum time for the handshake and the login.
const LOGIN: Duration = Duration::from_secs(10);

/// How long to wait for output after the exit code, and then again for the connection to end.
const CLOSING: Duration = Duration::from_secs(1);

/// A command that ended with an exit code.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) code: u32,
    pub(super) output: Output,
}

/// Runs one command, which may take no longer than `within`, connection included. The slot is free
/// again once it has logged in.
pub(super) async fn run(
    route: Route<'_>,
    key: &SecretString,
    pins: &Arc<Pins>,
    login_slot: Option<SemaphorePermit<'_>>,
    command: &RemoteCommand,
    within: Duration,
) -> Result<Ended, Failure> {
    // The failure to report if the timeout expires now.
    let late = Mutex::new(Failure::NotConnected);
    let from_now_on = |failure| *late.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    let running = async {
        let login = route.login;
        let connecting = connect(route, &login.host, login.port, login.connect_timeout.get());
        let (stream, _cut) = match connecting.await? {
            Connected::ByNetwork(stream) => Cut::when_dropped(stream)?,
            Connected::ByCarrier(stream) => (stream, None),
        };
        from_now_on(Failure::Handshake);
        let logging_in = login.connect_timeout.get().min(LOGIN);
        let sending = timeout(logging_in, send(stream, login, key, pins, command)).await;
        let (handle, mut channel) = sending.map_err(|_| Failure::Handshake)??;
        drop(login_slot);
        from_now_on(Failure::TimedOut);
        let mut output = Output::default();
        let limit = login.output_limit.bytes();
        let allowed = login.command_timeout.get();
        let ended = timeout(allowed, exit_code(&mut channel, &mut output, limit)).await;
        let code = ended.map_err(|_| Failure::TimedOut)??;
        // A process left behind may hold the output open for as long as it runs.
        if let Ok(rest) = timeout(CLOSING, rest(&mut channel, &mut output, limit)).await {
            rest?;
        }
        // The answer is complete: how the connection ends changes nothing.
        let _ended = timeout(CLOSING, goodbye(handle)).await;
        Ok(Ended { code, output })
    };
    let ended = timeout(within, running).await;
    ended.unwrap_or_else(|_| Err(*late.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Performs the handshake, offers the key once, opens the only channel, and sends the command. A
/// failure means that the command was not sent.
async fn send(
    stream: Stream,
    login: &SshLogin,
    key: &SecretString,
    pins: &Arc<Pins>,
    command: &RemoteCommand,
) -> Result<(Handle<Visitor>, Channel<Msg>), Failure> {
    let visitor = Visitor(pins.clone());
    let mut handle = connect_stream(pins.config.clone(), stream, visitor).await?;
    let key = private_key(key).map_err(|InvalidKey| Failure::KeyRefused)?;
    let key = PrivateKeyWithHashAlg::new(Arc::new(key), None);
    let shown = handle.authenticate_publickey(login.user.as_str(), key);
    match shown.await {
        Ok(AuthResult::Success) => {}
        // A refusal lists the methods that the host would accept; a lost connection lists none.
        Ok(AuthResult::Failure { remaining_methods, .. }) if !remaining_methods.is_empty() => {
            return Err(Failure::KeyRefused);
        }
        Ok(AuthResult::Failure { .. }) | Err(_) => return Err(Failure::Dropped),
    }
    let channel = match handle.channel_open_session().await {
        Ok(channel) => channel,
        Err(russh::Error::ChannelOpenFailure(_)) => return Err(Failure::NoChannel),
        Err(_) => return Err(Failure::Dropped),
    };
    let sent = channel.exec(true, command.as_str()).await;
    sent.map_err(|_| Failure::Dropped)?;
    Ok((handle, channel))
}

/// Reads the command's output until its exit code arrives. An exit code that arrives before the
/// host accepted the command is not the command's.
async fn exit_code(
    channel: &mut Channel<Msg>,
    output: &mut Output,
    limit: usize,
) -> Result<u32, Failure> {
    let mut is_accepted = false;
    loop {
        match channel.wait().await {
            None => return Err(Failure::Lost),
            Some(ChannelMsg::Close) => return Err(Failure::NoExitCode),
            Some(ChannelMsg::Success) => is_accepted = true,
            Some(ChannelMsg::Failure) if !is_accepted => return Err(Failure::NotRun),
            Some(ChannelMsg::ExitStatus { exit_status }) if is_accepted => return Ok(exit_status),
            Some(ChannelMsg::ExitStatus { .. } | ChannelMsg::Failure) => {
                return Err(Failure::OutOfOrder);
            }
            Some(ChannelMsg::ExitSignal { .. }) => return Err(Failure::Signal),
            Some(ChannelMsg::Data { data } | ChannelMsg::ExtendedData { data, .. }) => {
                output.add(&data, limit);
            }
            Some(_) => {}
        }
    }
}

/// Reads the output that follows the exit code. A second exit code is an error.
async fn rest(
    channel: &mut Channel<Msg>,
    output: &mut Output,
    limit: usize,
) -> Result<(), Failure> {
    loop {
        match channel.wait().await {
            None | Some(ChannelMsg::Close) => return Ok(()),
            Some(ChannelMsg::ExitStatus { .. } | ChannelMsg::ExitSignal { .. }) => {
                return Err(Failure::OutOfOrder);
            }
            Some(ChannelMsg::Data { data } | ChannelMsg::ExtendedData { data, .. }) => {
                output.add(&data, limit);
            }
            Some(_) => {}
        }
    }
}

/// Closes the connection in a way that leaves no error in the host's log.
async fn goodbye(handle: Handle<Visitor>) -> Result<(), Failure> {
    let sent = handle.disconnect(Disconnect::ByApplication, "", "").await;
    sent.map_err(|_| Failure::Lost)?;
    handle.await
}

/// Shuts a connection down on drop. Otherwise the library's own task would keep reading from a host
/// that never ends its greeting.
struct Cut(Socket);

impl Cut {
    fn when_dropped(stream: TcpStream) -> Result<(Stream, Option<Self>), Failure> {
        let split = || {
            stream.set_nodelay(true)?;
            let socket = stream.into_std()?;
            let cut = Self(socket.try_clone()?);
            let stream: Stream = Box::new(TcpStream::from_std(socket)?);
            Ok::<_, std::io::Error>((stream, Some(cut)))
        };
        split().map_err(|_| Failure::NotConnected)
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        // An error means that the connection has already ended.
        let _ended = self.0.shutdown(Shutdown::Both);
    }
}
