//! Reaching a host: resolves its name, skips addresses that are not allowed, connects over TCP.

use std::{
    io::ErrorKind,
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use domain::ssh::{Endpoint, Host, SshLogin, is_private};
use tokio::{
    net::{TcpStream, lookup_host},
    time::timeout,
};

use crate::{
    command_failure::Failure,
    transport::{Carrier, Stream},
};

/// Maximum time for a probe, which runs after a status command that was inconclusive.
const PROBE: Duration = Duration::from_secs(5);

/// How to reach the hosts of a login.
#[derive(Clone, Copy)]
pub(super) struct Route<'r> {
    pub(super) login: &'r SshLogin,
    /// What carries connections. `None` if the network does.
    pub(super) carrier: Option<&'r dyn Carrier>,
}

/// A connection to a host.
pub(super) enum Connected {
    ByNetwork(TcpStream),
    ByCarrier(Stream),
}

pub(super) async fn connect(
    route: Route<'_>,
    host: &Host,
    port: u16,
    within: Duration,
) -> Result<Connected, Failure> {
    let is_resolved = AtomicBool::new(false);
    let connecting = connect_to_one(route, host, port, &is_resolved);
    match timeout(within, connecting).await {
        Ok(connected) => connected,
        // A slow name server says nothing about the host.
        Err(_) if is_resolved.load(Ordering::Relaxed) => Err(Failure::Unanswered),
        Err(_) => Err(Failure::Unresolved),
    }
}

/// Checks addresses only after the host's name is resolved: a name may resolve to any address.
async fn connect_to_one(
    Route { login, carrier }: Route<'_>,
    host: &Host,
    port: u16,
    is_resolved: &AtomicBool,
) -> Result<Connected, Failure> {
    if let Some(carrier) = carrier {
        is_resolved.store(true, Ordering::Relaxed);
        let connected = carrier.connect(host, port).await;
        return connected.map(Connected::ByCarrier).map_err(|error| of_kind(error.kind()));
    }
    let found = lookup_host((host.as_str(), port)).await;
    let found = found.map_err(|_| Failure::Unresolved)?;
    is_resolved.store(true, Ordering::Relaxed);
    let allowed = |to: &SocketAddr| login.allow_private_hosts || !is_private(to.ip());
    let mut failure = Failure::Forbidden;
    for address in found.filter(allowed) {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(Connected::ByNetwork(stream)),
            Err(error) => failure = of_kind(error.kind()),
        }
    }
    Err(failure)
}

/// "Network unreachable" does not mean that the host is silent: this side has no network.
fn of_kind(kind: ErrorKind) -> Failure {
    if let ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable | ErrorKind::TimedOut = kind {
        Failure::Unanswered
    } else {
        Failure::NotConnected
    }
}

/// Checks whether a port is open, as seen from here.
pub(super) async fn probe(route: Route<'_>, probe: &Endpoint) -> Result<(), Failure> {
    let within = route.login.connect_timeout.get().min(PROBE);
    connect(route, &probe.host, probe.port, within).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_network_here_is_not_the_hosts_silence() {
        for kind in [ErrorKind::ConnectionRefused, ErrorKind::HostUnreachable, ErrorKind::TimedOut]
        {
            assert!(matches!(of_kind(kind), Failure::Unanswered), "{kind}");
        }
        for kind in [
            ErrorKind::NetworkUnreachable,
            ErrorKind::NetworkDown,
            ErrorKind::AddrNotAvailable,
            ErrorKind::PermissionDenied,
        ] {
            assert!(matches!(of_kind(kind), Failure::NotConnected), "{kind}");
        }
    }
}
