//! Another project at each cloud.

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
