//! What to do about an unexpected answer from a provider, a missing token, or a limit that is too low.

use domain::configuration::AccountKind;
use environment::TokenError;
use jiff::{Timestamp, tz::TimeZone};
use lifecycle::ProvidersError;
use provider::{EndpointError, ProviderError, ssh::HOST_KEY_CHANGED};
use report::{count, load::Overload, time::short};

/// Says that an account's rate limit does not carry what follows schedules in it, and what to do.
pub(crate) fn of_overload(
    overload: &Overload,
    zone: &TimeZone,
    now: Timestamp,
) -> (String, &'static str) {
    let Overload { from, until, resources, hibernated, requests, carried, per_hour, .. } = overload;
    let (from, until) = (short(*from, zone, now), short(*until, zone, now));
    let when = if overload.starts_only {
        format!("start in the hour before {until}")
    } else {
        format!("stop from {from} on and start by {until}")
    };
    let asleep = (*hibernated > 0).then(|| format!(" ({hibernated} of them hibernated)"));
    let enough = *resources as u64 * carried / requests;
    let found = format!(
        "{}{} {when}: that takes about {requests} requests, and the limit of \
         {per_hour} an hour leaves {carried} for it, enough for about {enough}",
        count(*resources, "resource"),
        asleep.unwrap_or_default(),
    );
    let remedy = "spread them over schedules whose edges are at least an hour apart, stop some by \
                  another method, or ask the provider for a higher limit: until then, some are late";
    (found, remedy)
}

pub(crate) fn of_client(error: &ProvidersError) -> String {
    match error {
        ProvidersError::NoAccount(_) => "configure the account and run `offhours apply`".to_owned(),
        ProvidersError::Token { source, .. } => of_token(source),
        ProvidersError::Endpoint { source: EndpointError::NotAllowed, .. } => {
            "leave the account's `url` out, or add it to the parameter AccountUrls and deploy"
                .to_owned()
        }
        ProvidersError::Endpoint { .. } => {
            "give the account's `url` as https://HOST, or leave it out".to_owned()
        }
        ProvidersError::Ssh { .. } => {
            "give the account an ed25519 key in OpenSSH's form, without a \
                                       passphrase: ssh-keygen -t ed25519"
                .to_owned()
        }
    }
}

fn of_token(error: &TokenError) -> String {
    match error {
        TokenError::Variable(name) => format!("set {name} to the account's token and try again"),
        TokenError::NoAws(_) => "on a local store write env:VARIABLE, file:/PATH or \
                                 credential:NAME in place of ssm:"
            .to_owned(),
        TokenError::NoCredentials(_) => {
            "let systemd start the service, with LoadCredential= in its unit".to_owned()
        }
        TokenError::Ssm { name, .. } => format!(
            "check that the parameter {name} exists in this region, is a SecureString, and may be \
             read"
        ),
        TokenError::File { path, .. } => {
            format!("see that {path} is there, and may be read")
        }
        TokenError::OnlySsm(_) => {
            "store it as an SSM parameter of type SecureString, and write ssm:/PATH/NAME".to_owned()
        }
        TokenError::Shared(path) => format!("run `chmod 600 {path}` and try again"),
        TokenError::Empty(place) | TokenError::SeveralLines(place) => {
            format!("put the account's token, and nothing else, into {place}")
        }
    }
}

/// What to do if a provider could not be read.
pub(crate) fn of_provider(error: &ProviderError, account: AccountKind) -> &'static str {
    match error {
        ProviderError::TokenRefused(_) => account.login_remedy(),
        ProviderError::NotPermitted { .. } => {
            "give the token what it lacks, or pay or unblock the account at its provider"
        }
        ProviderError::RateLimited { .. } => {
            "wait: the allowance comes back within the hour; see which other tools use the token"
        }
        ProviderError::Unavailable(_) | ProviderError::Busy(_) => {
            "try again; see the provider's status page"
        }
        ProviderError::Transport { .. } => {
            "check that this machine reaches the provider, and try again"
        }
        ProviderError::OutOfTime { .. } => "the provider answers slowly: try again later",
        ProviderError::NotUnderstood { .. } => {
            "check that nothing between this machine and the provider answers in its place"
        }
        ProviderError::Refused(refusal) if refusal.code == HOST_KEY_CHANGED => {
            "compare the account's host_keys with /etc/ssh/ssh_host_ed25519_key.pub, read on the \
             host itself: write the new key only if you changed it; otherwise another host answers"
        }
        ProviderError::NotFound(_) | ProviderError::Refused(_) | ProviderError::Foreign { .. } => {
            "check that the account's `url` is that of its provider"
        }
    }
}
