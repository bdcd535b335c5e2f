//! Another project at each cloud, and a second account over each project.

use std::sync::Arc;

use axum::Router;
use cloud_simulator::Simulator;
use domain::{AccountName, ResourceId};

use crate::clockwork::Time;

/// Another project at each cloud, whose token may be stored by mistake.
pub(crate) struct Elsewhere {
    pub(crate) router: Router,
}

const TOKEN: &str = "secret-of-elsewhere";

/// What the other project holds: machines that follow a schedule of the same name, too.
const PROJECT: &str = r#"
[[accounts]]
name = "do-main"
provider = "digitalocean"
token = "secret-of-elsewhere-do"

[[accounts]]
name = "hz-eu"
provider = "hetzner"
token = "secret-of-elsewhere-hz"

[[droplets]]
id = 800001
name = "theirs"
tags = ["offhours:office"]

[[servers]]
id = 800001
name = "theirs"
labels = { offhours = "office" }
"#;

/// An account that reaches the same resources as another, with a token that may only read there.
pub(crate) struct SecondAccount {
    pub(crate) name: &'static str,
    /// The account whose resources it reaches.
    pub(crate) of: &'static str,
    /// Where its token is stored.
    pub(crate) variable: &'static str,
    pub(crate) token: &'static str,
}

pub(crate) const SECOND_ACCOUNTS: [SecondAccount; 2] = [
    SecondAccount {
        name: "do-second",
        of: "do-main",
        variable: "env:DO_SECOND",
        token: "secret-of-second-do",
    },
    SecondAccount {
        name: "hz-second",
        of: "hz-eu",
        variable: "env:HZ_SECOND",
        token: "secret-of-second-hz",
    },
];

impl Elsewhere {
    pub(crate) fn new(time: &Time) -> anyhow::Result<Self> {
        let now = time.clone();
        let simulator = Simulator::new(&PROJECT.parse()?, Arc::new(move || now.now()));
        let router = simulator.router();
        Ok(Self { router })
    }

    /// Reports whether a resource is one of this project.
    pub(crate) fn holds(id: &ResourceId) -> bool {
        id.provider_id() == "800001"
    }

    /// Reports whether an account is the second one over a project.
    pub(crate) fn is_second(account: &AccountName) -> bool {
        SECOND_ACCOUNTS.iter().any(|second| second.name == account.as_str())
    }

    pub(crate) fn is_token(token: &str) -> bool {
        token.starts_with(TOKEN)
    }

    pub(crate) fn token_of(account: &AccountName) -> &'static str {
        match account.as_str() {
            "hz-eu" => "secret-of-elsewhere-hz",
            _ => "secret-of-elsewhere-do",
        }
    }
}
