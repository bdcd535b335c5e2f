//! Hetzner Cloud: servers.

mod hibernation;
mod schema;
mod step;
mod surroundings;

use std::sync::Arc;

use domain::{
    ResourceId, ResourceKind, ServerId,
    configuration::{AccountKind, CloudAccount, Provider},
    hibernation::Attachment,
    money::{Currency, Money, NotAnAmount},
    plan::{Catalog, MachinePlan, Offer},
    prices::{PriceList, Rate},
    resource::{
        ActionEffect, ActionId, ActionState, Busy, LoggedAction, MachineFacts, MachineSize, Power,
        Resource, Size,
    },
    step::{Accepted, Step},
};
use jiff::Timestamp;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::{
    attachments::leave_to_another,
    cloud::Cloud,
    error::{ChangeError, ProviderError},
    http::{Http, Login, Request},
    pages::{self, Element, Listed, Page, Reading},
};

/// The maximum page size (HZSPEC).
const PER_PAGE: u32 = 50;

/// The path that lists server types.
const SERVER_TYPES: &str = "/v1/server_types";

/// One project, or some of its locations.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    http: Http,
    /// Empty means all.
    locations: Arc<[String]>,
}

impl Cloud for Api {
    fn kind(&self) -> AccountKind {
        AccountKind::Cloud(Provider::Hetzner)
    }

    fn http(&self) -> Option<&Http> {
        Some(&self.http)
    }

    fn http_mut(&mut self) -> Option<&mut Http> {
        Some(&mut self.http)
    }

    async fn list(
        &self,
        kinds: &[ResourceKind],
        reading: Reading<'_>,
    ) -> Result<Listed, ProviderError> {
        let mut listed = Listed::default();
        if kinds.contains(&ResourceKind::Server) {
            let path = "/v1/servers?sort=id:asc";
            let page = async |number| self.page::<Element<schema::Server>>(path, number).await;
            let servers = pages::all(reading, page).await.map(|mut servers| {
                servers.items.retain(|(_, server)| match server {
                    Element::Read(server) => self.covers(&server.location.name),
                    Element::Unread(_) => true,
                });
                servers.map(|one| {
                    let server = one.of_kind(ResourceKind::Server, path)?;
                    Ok(self.server(server))
                })
            });
            listed.add(ResourceKind::Server, servers)?;
        }
        listed.or_error()
    }

    async fn try_reading(&self, kind: ResourceKind) -> Result<(), ProviderError> {
        if kind == ResourceKind::Server {
            let request = Request::get("/v1/servers?per_page=1");
            self.http.read::<IgnoredAny>(&request).await?;
        }
        Ok(())
    }

    async fn status(&self, id: &ResourceId) -> Result<Option<Resource>, ProviderError> {
        let number = server_id(id)?;
        let request = Request::get(format!("/v1/servers/{number}"));
        let schema::ServerResponse { server } = self.http.read(&request).await?;
        request.about(&number.0, &server.id)?;
        Ok(Some(self.server(server)))
    }

    async fn send(&self, resource: &Resource, step: &Step) -> Result<Accepted, ChangeError> {
        if let Step::Attach(Attachment::FloatingIp(ip)) = step {
            let request = Request::get(format!("/v1/floating_ips/{ip}"));
            let found: Result<schema::FloatingIpResponse, _> = self.http.read(&request).await;
            let holder = found.map_err(ChangeError::NotAccepted)?.floating_ip.server;
            let holder = holder.map(|id| ResourceId::Server(ServerId(id)));
            leave_to_another(ip, holder, &resource.id)?;
        }
        let accepted = |request: &_, answer: &_| step::accepted(step, request, answer);
        let sent = self.http.send(step::request(resource, step), accepted).await;
        sent.map_err(|error| error.needing("the right to write").into())
    }

    fn shown(&self, resource: &Resource, step: &Step) -> Result<String, ProviderError> {
        Ok(step::request(resource, step)?.in_full())
    }

    async fn actions(
        &self,
        id: &ResourceId,
        since: Timestamp,
    ) -> Result<Vec<LoggedAction>, ProviderError> {
        let number = server_id(id)?;
        let path = format!("/v1/servers/{number}/actions?sort=started:desc");
        pages::log(since, async |number| {
            let page = self.page::<schema::Action>(&path, number).await?;
            Ok(page.map(logged))
        })
        .await
    }

    /// All prices are in the account's own currency, which the list does not name.
    async fn machine_plans(&self) -> Result<Catalog, ProviderError> {
        let page = async |number| self.page::<schema::ListedType>(SERVER_TYPES, number).await;
        let types = pages::all(Reading::UNTIMED, page).await?;
        let plans = types.items.into_iter().map(|(_, listed)| plan(listed));
        let unexpected =
            |error: NotAnAmount| Request::get(SERVER_TYPES).not_understood(error.to_string());
        plans.collect::<Result<_, _>>().map_err(unexpected)
    }

    async fn prices(&self, now: Timestamp) -> Result<Option<PriceList>, ProviderError> {
        let request = Request::get("/v1/pricing");
        let schema::PricesResponse { pricing } = self.http.read(&request).await?;
        let read = || -> Result<PriceList, Box<dyn std::error::Error>> {
            let currency = pricing.currency.parse()?;
            let amount = |price: &schema::Price| Money::parse(&price.net, currency);
            let snapshot = amount(&pricing.image.price_per_gb_month)?;
            let mut list = PriceList::new(currency, now, Some(snapshot));
            for of_type in &pricing.server_types {
                for price in &of_type.prices {
                    let hourly = amount(&price.price_hourly)?;
                    let rate = Rate { hourly, monthly: amount(&price.price_monthly)? };
                    list.add(&of_type.name, Some(&price.location), rate);
                }
            }
            Ok(list)
        };
        read().map(Some).map_err(|error| request.not_understood(error.to_string()))
    }

    async fn currency(&self) -> Result<Option<Currency>, ProviderError> {
        let request = Request::get("/v1/pricing");
        let schema::PricingResponse { pricing } = self.http.read(&request).await?;
        let currency = pricing.currency.parse::<Currency>();
        currency.map(Some).map_err(|error| request.not_understood(error.to_string()))
    }

    /// Fetches the monthly price of one GB of an image.
    async fn snapshot_price(&self) -> Result<Option<Money>, ProviderError> {
        let request = Request::get("/v1/pricing");
        let schema::ImagePricingResponse { pricing } = self.http.read(&request).await?;
        let currency = pricing.currency.parse::<Currency>();
        let currency = currency.map_err(|error| request.not_understood(error.to_string()))?;
        let price = pricing.image.price_per_gb_month.net;
        let price = Money::parse(&price, currency).map(Some);
        price.map_err(|error| request.not_understood(error.to_string()))
    }
}

impl Api {
    pub(crate) fn new(login: Login, account: &CloudAccount) -> Self {
        let locations = account.datacenters.iter().map(|one| one.name().to_owned());
        Self { http: Http::new(login, schema::read_error), locations: locations.collect() }
    }

    async fn page<T: DeserializeOwned>(
        &self,
        path: &str,
        number: u32,
    ) -> Result<Page<T>, ProviderError> {
        let and = if path.contains('?') { '&' } else { '?' };
        let request = Request::get(format!("{path}{and}per_page={PER_PAGE}&page={number}"));
        let page: schema::Page<T> = self.http.read(&request).await?;
        let schema::Pagination { next_page, last_page } = page.meta.pagination;
        Page::new(&request, number, page.items, next_page, last_page)
    }

    fn covers(&self, location: &str) -> bool {
        self.locations.is_empty() || self.locations.iter().any(|named| named == location)
    }

    fn server(&self, server: schema::Server) -> Resource {
        let (power, busy) = match server.status.as_str() {
            "running" => (Power::Running, None),
            "off" => (Power::Stopped, None),
            "initializing" => (Power::Between, Some(Busy::Creating)),
            "deleting" => (Power::Between, Some(Busy::Deleting)),
            other => (Power::Between, Some(Busy::Other(format!("status is {other}")))),
        };
        let protection = server.protection.as_ref();
        let facts = MachineFacts {
            created_at: server.created,
            iso: server.iso.is_some(),
            rescue: server.rescue_enabled,
            protected: protection.is_some_and(|protection| protection.delete || protection.rebuild),
            ..MachineFacts::default()
        };
        let location = server.location.name;
        let is_elsewhere = !self.covers(&location);
        Resource {
            id: ResourceId::Server(ServerId(server.id)),
            name: server.name,
            cluster: None,
            tags: server.labels.into_iter().map(|(key, value)| format!("{key}={value}")).collect(),
            power,
            busy: busy.or_else(|| server.locked.then(|| Busy::Other("locked".to_owned()))),
            size: Size::Machine(size(server.plan, server.primary_disk_size)),
            facts,
            unsupported: is_elsewhere
                .then(|| format!("location {location} is not among the account's locations")),
            region: location,
        }
    }
}

fn size(plan: schema::ServerType, disk_gib: u64) -> MachineSize {
    MachineSize {
        plan: plan.name,
        vcpus: plan.cores,
        memory_mib: plan.memory * 1024,
        disk_gib,
        architecture: Some(plan.architecture),
        network_storage: plan.storage_type == "network",
    }
}

fn plan(listed: schema::ListedType) -> Result<MachinePlan, NotAnAmount> {
    let is_withdrawn = listed.deprecation.is_some();
    let locations = listed.locations.as_deref();
    let offers = listed.prices.into_iter().map(|price| {
        let at = |location: &&schema::TypeLocation| location.name == price.location;
        let (orderable, deprecated) = match locations {
            // A type may have a price in a location that does not support it: it is not sold there.
            Some(locations) => match locations.iter().find(at) {
                Some(location) => {
                    (location.available.unwrap_or(true), location.deprecation.is_some())
                }
                None => (false, is_withdrawn),
            },
            None => (true, is_withdrawn),
        };
        let offer = Offer {
            orderable,
            deprecated,
            // The caller sets the currency once it has fetched the account's.
            monthly: Money::parse(&price.price_monthly.net, Currency::Eur)?,
            hourly: Money::parse(&price.price_hourly.net, Currency::Eur)?,
        };
        Ok((price.location, offer))
    });
    let offers = offers.collect::<Result<_, _>>()?;
    let size = size(listed.plan, listed.disk);
    Ok(MachinePlan {
        slug: size.plan,
        vcpus: size.vcpus,
        memory_mib: size.memory_mib,
        disk_gib: size.disk_gib,
        architecture: size.architecture,
        network_storage: size.network_storage,
        gpu: false,
        offers,
    })
}

fn server_id(id: &ResourceId) -> Result<&ServerId, ProviderError> {
    let ResourceId::Server(number) = id else {
        return Err(ProviderError::foreign(id));
    };
    Ok(number)
}

/// An unknown status does not prove that the action has ended: it counts as in progress.
fn logged(action: &schema::Action) -> LoggedAction {
    LoggedAction {
        id: ActionId(action.id),
        effect: match action.command.as_str() {
            "start_server" => ActionEffect::Start,
            "shutdown_server" => ActionEffect::Shutdown,
            "stop_server" => ActionEffect::PowerOff,
            "reboot_server" | "reset_server" => ActionEffect::Reboot,
            "change_server_type" => ActionEffect::Resize,
            "rebuild_server" => ActionEffect::Rebuild,
            "create_image" => ActionEffect::Snapshot,
            _ => ActionEffect::Other,
        },
        state: match action.status {
            schema::ActionStatus::Running | schema::ActionStatus::Unknown => ActionState::Running,
            schema::ActionStatus::Success => ActionState::Done,
            schema::ActionStatus::Error => ActionState::Failed,
        },
        started_at: action.started,
        ended_at: action.finished,
    }
}
