//! How a request is processed: fault, effect, log, response.

use std::collections::BTreeMap;

use domain::{
    ClusterId, DatabaseId, DropletId, PoolId, ResourceId, ResourceRef, ServerId,
    configuration::Provider,
};
use jiff::{SignedDuration, Timestamp};

use crate::{
    account::uuid_of,
    answer::{Answer, Refusal},
    digitalocean::{self, scopes},
    faults::{Identity, Interference, Misbehavior},
    hetzner,
    log::{Entry, Log},
    rate::Rate,
    request::{IncomingRequest, Request},
    routes::{self, Call},
    world::World,
};

/// Both clouds, with the log of their requests and the faults and holds that are set.
pub(crate) struct Clouds {
    pub(crate) world: World,
    pub(crate) log: Log,
    pub(crate) interference: Interference,
    /// Requests that have yet to arrive, although their connections are already closed.
    late: BTreeMap<(Timestamp, u64), IncomingRequest>,
    serial: u64,
}

/// The outcome of a request. Without a response, the connection is closed.
pub(crate) struct Outcome {
    pub(crate) sequence: Option<u64>,
    pub(crate) answer: Option<Answer>,
    /// When the response is sent; `None` means immediately.
    pub(crate) leaves_at: Option<Timestamp>,
}

impl Clouds {
    pub(crate) fn new(world: World) -> Self {
        Self {
            world,
            log: Log::default(),
            interference: Interference::default(),
            late: BTreeMap::new(),
            serial: 0,
        }
    }

    /// Applies everything that is due by `now`, including late requests.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        while let Some(entry) = self.late.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((at, _), incoming) = entry.remove_entry();
            self.world.advance(at);
            let identity = self.identify(&incoming);
            self.carry_out(&incoming, identity, None);
        }
        self.world.advance(now);
    }

    pub(crate) fn identify(&self, incoming: &IncomingRequest) -> Identity {
        let provider = incoming.request.provider();
        let token = incoming.token.as_ref();
        let place = token.and_then(|token| self.world.opened_by(provider, token));
        let account = place.map(|place| self.world.accounts[place].login.name.clone());
        let id = resource_of(&incoming.request);
        let resource = account.clone().zip(id);
        Identity {
            place,
            resource: resource.map(|(account, id)| ResourceRef { account, id }),
            account,
        }
    }

    /// Handles a request that has just arrived.
    pub(crate) fn take(&mut self, incoming: &IncomingRequest) -> Outcome {
        let identity = self.identify(incoming);
        let fault = self.interference.fault_for(&incoming.request, &identity);
        if let Some(Misbehavior::Late { by }) = fault {
            self.serial += 1;
            let at = self.world.timeline.now() + by;
            self.late.insert((at, self.serial), incoming.clone());
            return Outcome { sequence: None, answer: None, leaves_at: None };
        }
        self.carry_out(incoming, identity, fault)
    }

    fn carry_out(
        &mut self,
        incoming: &IncomingRequest,
        identity: Identity,
        fault: Option<Misbehavior>,
    ) -> Outcome {
        let sequence = self.log.next_sequence();
        let request_id = uuid_of(sequence);
        let provider = incoming.request.provider();
        let takes_effect = fault.as_ref().is_none_or(Misbehavior::takes_effect);
        let own = takes_effect.then(|| self.perform(incoming, identity.place, fault.as_ref()));
        let changed = matches!(own, Some(Ok(_))) && incoming.request.is_change();
        let own = own.map(|own| own.unwrap_or_else(|no| no.answer(provider, &request_id)));
        let leaves_at = fault.as_ref().and_then(Misbehavior::delay);
        let faulty = fault.is_some();
        let rated = |answer| self.with_rate(answer, provider, identity.place);
        let usual = |status| Refusal::of_status(provider, status).answer(provider, &request_id);
        let answer = match fault {
            None => own.map(rated),
            Some(fault) => fault.distort(own.map(rated), |status| rated(usual(status))),
        };
        let answer = answer.map(|answer| match provider {
            Provider::DigitalOcean => answer.with("x-request-id", &request_id),
            Provider::Hetzner => answer,
        });
        let now = self.world.timeline.now();
        self.log.add(Entry {
            sequence,
            at: now,
            account: identity.account,
            resource: identity.resource,
            changed,
            faulty,
            delivered: false,
            request: incoming.request.clone(),
            answer: answer.clone(),
        });
        Outcome { sequence: Some(sequence), answer, leaves_at: leaves_at.map(|by| now + by) }
    }

    /// Returns the cloud's own response. It checks the token, then the rate limit, the path and the
    /// permission, in the clouds' order as far as that is known.
    fn perform(
        &mut self,
        incoming: &IncomingRequest,
        place: Option<usize>,
        fault: Option<&Misbehavior>,
    ) -> Result<Answer, Refusal> {
        let request = &incoming.request;
        let provider = request.provider();
        let place = place.ok_or_else(|| Refusal::of_status(provider, 401))?;
        let (account, timeline) = self.world.account(place);
        account.rate.count(timeline.now())?;
        let routes = match provider {
            Provider::DigitalOcean => digitalocean::ROUTES,
            Provider::Hetzner => hetzner::ROUTES,
        };
        let (handler, ids) = routes::find(routes, &request.method, &request.segments())
            .map_err(|status| Refusal::of_status(provider, status))?;
        let token = incoming.token.as_deref().unwrap_or_default();
        if request.is_change() && account.login.may_only_read(token) {
            return Err(read_only(provider));
        }
        if provider == Provider::DigitalOcean {
            scopes::check(&account.login, request)?;
        }
        timeline.slowness = fault.map_or(SignedDuration::ZERO, Misbehavior::slowness);
        let answer = handler(&mut Call { incoming, account, timeline, ids });
        self.world.timeline.slowness = SignedDuration::ZERO;
        let login = &self.world.accounts[place].login;
        answer.map(|answer| scopes::without_the_unreadable(answer, login))
    }

    /// Adds the rate limit headers; for an unknown token, those of an unused account.
    fn with_rate(&self, answer: Answer, provider: Provider, place: Option<usize>) -> Answer {
        let now = self.world.timeline.now();
        match place {
            Some(place) => self.world.accounts[place].rate.headers(answer, now),
            None => Rate::new(provider, None, now).headers(answer, now),
        }
    }
}

fn read_only(provider: Provider) -> Refusal {
    match provider {
        Provider::DigitalOcean => Refusal::of_status(provider, 403),
        Provider::Hetzner => {
            let message = "token is only allowed to perform GET requests";
            Refusal::new(403, "token_readonly", message)
        }
    }
}

fn resource_of(request: &Request) -> Option<ResourceId> {
    let text = |part: &str| part.to_owned();
    let number = |part: &str| part.parse::<u64>().ok();
    let path = request.segments();
    Some(match (request.provider(), path.as_slice()) {
        (Provider::DigitalOcean, ["droplets", id, ..]) => {
            ResourceId::Droplet(DropletId(number(id)?))
        }
        (Provider::DigitalOcean, ["databases", id, ..]) if *id != "options" => {
            ResourceId::Database(DatabaseId(text(id)))
        }
        (Provider::DigitalOcean, ["kubernetes", "clusters", cluster, "node_pools", pool]) => {
            ResourceId::NodePool(ClusterId(text(cluster)), PoolId(text(pool)))
        }
        (Provider::Hetzner, ["servers", id, ..]) => ResourceId::Server(ServerId(number(id)?)),
        _ => return None,
    })
}
