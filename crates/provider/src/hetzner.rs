//! Hetzner Cloud: servers.

use std::sync::Arc;

use domain::{
    ResourceId, ResourceKind, ServerId,
    resource::{ActionEffect, ActionId, ActionState, LoggedAction, Power, Resource, Size},
};
use jiff::Timestamp;
use secrecy::SecretString;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::{
    change::{Accepted, Change},
    endpoint::Base,
    error::ProviderError,
    http::{Http, Request, parse},
    pacing::RateLimit,
    pages::{self, Listed, Page, Reading},
};

/// The most that one page holds (HZSPEC).
const PER_PAGE: u32 = 50;

/// A client for one project, or for some locations of it.
#[derive(Debug, Clone)]
pub struct Client {
    http: Arc<Http>,
    /// None named means all.
    locations: Arc<[String]>,
}

impl Client {
    /// A datacenter's name stands for its location: the API tells no datacenters any more (HGO).
    pub(crate) fn new(
        base: Base,
        token: SecretString,
        http: reqwest::Client,
        locations: Vec<String>,
    ) -> Self {
        let locations = locations
            .into_iter()
            .map(|name| match name.split_once('-') {
                Some((location, _)) => location.to_owned(),
                None => name,
            });
        Self {
            http: Arc::new(Http::new(http, base, token, schema::read_error)),
            locations: locations.collect(),
        }
    }

    pub(crate) fn rate(&self) -> Option<RateLimit> {
        self.http.rate()
    }

    pub(crate) fn requests(&self) -> u64 {
        self.http.requests()
    }

    pub(crate) async fn list(
        &self,
        kinds: &[ResourceKind],
        reading: Reading<'_>,
    ) -> Result<Listed, ProviderError> {
        let mut listed = Listed::default();
        if kinds.contains(&ResourceKind::Server) {
            let page = |number| self.page("/v1/servers?sort=id:asc", number);
            let mut servers = pages::all(reading, page).await?;
            let requests = servers.requests;
            servers
                .items
                .retain(|(_, server): &(_, schema::Server)| self.covers(&server.location.name));
            let looks = servers.looks(|server| self.server(server));
            listed.add(ResourceKind::Server, looks, requests);
        }
        Ok(listed)
    }

    pub(crate) async fn try_reading(&self, kind: ResourceKind) -> Result<(), ProviderError> {
        if kind == ResourceKind::Server {
            let request = Request::get("/v1/servers?per_page=1");
            self.http.read::<IgnoredAny>(&request).await?;
        }
        Ok(())
    }

    pub(crate) fn date(&self) -> Option<Timestamp> {
        self.http.date()
    }

    pub(crate) async fn status(&self, id: &ResourceId) -> Result<Option<Resource>, ProviderError> {
        let number = server_id(id)?;
        let request = Request::get(format!("/v1/servers/{number}"));
        let schema::Found { server } = self.http.read(&request).await?;
        Ok(Some(self.server(server)))
    }

    pub(crate) async fn actions(
        &self,
        id: &ResourceId,
        since: Timestamp,
    ) -> Result<Vec<LoggedAction>, ProviderError> {
        let number = server_id(id)?;
        let path = format!("/v1/servers/{number}/actions?sort=started:desc");
        // The order that was asked for is checked before a page ends the reading.
        let is_enough = |page: &[schema::Action]| {
            let falls = page.is_sorted_by(|one, next| one.started >= next.started);
            let is_older = |action: &schema::Action| action.started.as_second() < since.as_second();
            falls && page.last().is_some_and(is_older)
        };
        let actions = self.pages(&path, is_enough).await?;
        Ok(actions.iter().map(logged).collect())
    }

    pub(crate) async fn send(&self, change: &Change) -> Result<Accepted, ProviderError> {
        let (id, word) = match change {
            Change::PowerOn(id) => (id, "poweron"),
            Change::Shutdown(id) => (id, "shutdown"),
            Change::PowerOff(id) => (id, "poweroff"),
            Change::ResizeDatabase { .. } | Change::ScaleNodePool { .. } => {
                return Err(ProviderError::Foreign {
                    resource: change.resource(),
                });
            }
        };
        let number = server_id(id)?;
        // With a body, or a type for one, the answer would be 415.
        let request = Request::post(format!("/v1/servers/{number}/actions/{word}"));
        let answer = self.http.send(&request).await?;
        let schema::Begun { action } = parse(&request, &answer)?;
        Ok(Accepted {
            action: Some(ActionId(action.id)),
        })
    }

    /// Reads pages until the last one, or until one that is enough.
    async fn pages<T: DeserializeOwned>(
        &self,
        path: &str,
        is_enough: impl Fn(&[T]) -> bool,
    ) -> Result<Vec<T>, ProviderError> {
        let mut items = Vec::new();
        let mut number = 1;
        loop {
            let page = self.page(path, number).await?;
            let is_last = is_enough(&page.items);
            items.extend(page.items);
            match page.next {
                Some(next) if !is_last => number = next,
                Some(_) | None => return Ok(items),
            }
        }
    }

    async fn page<T: DeserializeOwned>(
        &self,
        path: &str,
        number: u32,
    ) -> Result<Page<T>, ProviderError> {
        let request = Request::get(format!("{path}&per_page={PER_PAGE}&page={number}"));
        let page: schema::Page<T> = self.http.read(&request).await?;
        let schema::Pagination {
            next_page,
            last_page,
        } = page.meta.pagination;
        // A number that does not grow would never end.
        if next_page.is_some_and(|next| next <= number) {
            return Err(request.not_understood("a next page that does not follow"));
        }
        Ok(Page {
            items: page.items,
            next: next_page,
            last: last_page,
        })
    }

    fn covers(&self, location: &str) -> bool {
        self.locations.is_empty() || self.locations.iter().any(|named| named == location)
    }

    fn server(&self, server: schema::Server) -> Resource {
        let (power, busy) = match server.status.as_str() {
            "running" => (Power::Running, None),
            "off" => (Power::Stopped, None),
            other => (Power::Between, Some(format!("status is {other}"))),
        };
        let location = server.location.name;
        let is_elsewhere = !self.covers(&location);
        Resource {
            id: ResourceId::Server(ServerId(server.id)),
            name: server.name,
            cluster: None,
            tags: server
                .labels
                .into_iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect(),
            power,
            busy: busy.or_else(|| server.locked.then(|| "locked".to_owned())),
            size: Size::Machine {
                plan: server.plan.name,
            },
            unsupported: is_elsewhere
                .then(|| format!("location {location} is not among the account's datacenters")),
            region: location,
        }
    }
}

fn server_id(id: &ResourceId) -> Result<&ServerId, ProviderError> {
    match id {
        ResourceId::Server(number) => Ok(number),
        ResourceId::Droplet(_) | ResourceId::Database(_) | ResourceId::NodePool(..) => {
            Err(ProviderError::Foreign {
                resource: id.clone(),
            })
        }
    }
}

/// An unknown word proves no end: the action counts as under way.
fn logged(action: &schema::Action) -> LoggedAction {
    LoggedAction {
        id: ActionId(action.id),
        effect: match action.command.as_str() {
            "start_server" => ActionEffect::Start,
            "shutdown_server" => ActionEffect::Shutdown,
            "stop_server" => ActionEffect::PowerOff,
            "reboot_server" | "reset_server" => ActionEffect::Reboot,
            _ => ActionEffect::Other,
        },
        state: match action.status {
            schema::ActionStatus::Running | schema::ActionStatus::Unknown => ActionState::Running,
            schema::ActionStatus::Success => ActionState::Done,
            schema::ActionStatus::Error => ActionState::Failed,
        },
        started_at: action.started,
    }
}

/// What Hetzner Cloud writes (HZSPEC), as far as we read it.
mod schema {
    use std::collections::BTreeMap;

    use jiff::Timestamp;
    use serde::Deserialize;

    use crate::http::{ErrorWords, null_is_empty};

    pub(super) fn read_error(body: &[u8]) -> Option<ErrorWords> {
        #[derive(Deserialize)]
        struct Wrapped {
            error: Error,
        }
        #[derive(Deserialize)]
        struct Error {
            code: String,
            message: String,
        }
        let Wrapped { error } = serde_json::from_slice(body).ok()?;
        Some(ErrorWords {
            code: error.code,
            message: error.message,
            request_id: None,
        })
    }

    #[derive(Deserialize)]
    pub(super) struct Page<T> {
        #[serde(alias = "servers", alias = "actions")]
        pub(super) items: Vec<T>,
        pub(super) meta: Meta,
    }

    #[derive(Deserialize)]
    pub(super) struct Meta {
        pub(super) pagination: Pagination,
    }

    #[derive(Deserialize)]
    pub(super) struct Pagination {
        pub(super) next_page: Option<u32>,
        pub(super) last_page: Option<u32>,
    }

    #[derive(Deserialize)]
    pub(super) struct Found {
        pub(super) server: Server,
    }

    #[derive(Deserialize)]
    pub(super) struct Server {
        pub(super) id: u64,
        pub(super) name: String,
        pub(super) status: String,
        pub(super) locked: bool,
        #[serde(default, deserialize_with = "null_is_empty")]
        pub(super) labels: BTreeMap<String, String>,
        pub(super) location: Named,
        #[serde(rename = "server_type")]
        pub(super) plan: Named,
    }

    #[derive(Deserialize)]
    pub(super) struct Named {
        pub(super) name: String,
    }

    #[derive(Deserialize)]
    pub(super) struct Begun {
        pub(super) action: BegunAction,
    }

    #[derive(Deserialize)]
    pub(super) struct BegunAction {
        pub(super) id: u64,
    }

    #[derive(Deserialize)]
    pub(super) struct Action {
        pub(super) id: u64,
        pub(super) command: String,
        pub(super) status: ActionStatus,
        pub(super) started: Timestamp,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub(super) enum ActionStatus {
        Running,
        Success,
        Error,
        #[serde(other)]
        Unknown,
    }
}
