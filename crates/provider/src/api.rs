//! The list of clouds, and of whatever else an account can log in to.

use domain::configuration::{CloudAccount, Provider};

use crate::{digitalocean, hetzner, http::Login, ssh};

/// One login: a line for each cloud.
#[derive(Debug, Clone)]
pub(crate) enum Api {
    DigitalOcean(digitalocean::Api),
    Hetzner(hetzner::Api),
    Ssh(ssh::Api),
}

/// Does the same with whichever cloud a login is at.
macro_rules! each {
    ($api:expr, $cloud:ident => $what:expr) => {
        match $api {
            $crate::api::Api::DigitalOcean($cloud) => $what,
            $crate::api::Api::Hetzner($cloud) => $what,
            $crate::api::Api::Ssh($cloud) => $what,
        }
    };
}

pub(crate) use each;

impl Api {
    pub(crate) fn at(account: &CloudAccount, login: Login) -> Self {
        match account.provider {
            Provider::DigitalOcean => Self::DigitalOcean(digitalocean::Api::new(login)),
            Provider::Hetzner => Self::Hetzner(hetzner::Api::new(login, account)),
        }
    }
}
