//! Hetzner Cloud's API: which path and method is which operation, and what it answers.

use std::{borrow::Cow, sync::Arc};

use axum::http::Method;
use domain::configuration::Provider;
use serde_json::{Value, json};

use crate::{
    answer::{Answer, Refusal, timestamp},
    catalog, labels,
    page::Page,
    request::Incoming,
    servers::{self, Command, Server},
    world::{Account, Action, Timeline},
};

/// An operation of the API, with the ids in its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Servers,
    Server(u64),
    ServerActions(u64),
    ServerAction(u64, u64),
    AllServerActions,
    Act(u64, Command),
    Actions,
    Action(u64),
    Locations,
    Location(u64),
    /// Taken away since 2026-10-01 (HZSPEC, HGO).
    Datacenters,
    ServerTypes,
    ServerType(u64),
}

impl Operation {
    /// The operation at a path: 404 if there is none, 405 if it takes another method.
    pub(crate) fn find(method: &Method, segments: &[&str]) -> Result<Self, Refusal> {
        let of = |method: &str| Self::of(method, segments);
        of(method.as_str()).ok_or_else(|| {
            let known = ["GET", "POST"].into_iter().any(|other| of(other).is_some());
            Refusal::of_status(Provider::Hetzner, if known { 405 } else { 404 })
        })
    }

    fn of(method: &str, segments: &[&str]) -> Option<Self> {
        let number = |text: &str| text.parse::<u64>().ok();
        Some(match (method, segments) {
            ("GET", ["servers"]) => Self::Servers,
            ("GET", ["servers", "actions"]) => Self::AllServerActions,
            ("GET", ["servers", "actions", id] | ["actions", id]) => Self::Action(number(id)?),
            ("GET", ["servers", id]) => Self::Server(number(id)?),
            ("GET", ["servers", id, "actions"]) => Self::ServerActions(number(id)?),
            ("GET", ["servers", id, "actions", action]) => {
                Self::ServerAction(number(id)?, number(action)?)
            }
            ("POST", ["servers", id, "actions", word]) => Self::Act(number(id)?, of_path(word)?),
            ("GET", ["actions"]) => Self::Actions,
            ("GET", ["locations"]) => Self::Locations,
            ("GET", ["locations", id]) => Self::Location(number(id)?),
            ("GET", ["datacenters"] | ["datacenters", _]) => Self::Datacenters,
            ("GET", ["server_types"]) => Self::ServerTypes,
            ("GET", ["server_types", id]) => Self::ServerType(number(id)?),
            _ => return None,
        })
    }
}

fn of_path(word: &str) -> Option<Command> {
    Some(match word {
        "shutdown" => Command::Shutdown,
        "poweroff" => Command::PowerOff,
        "poweron" => Command::PowerOn,
        "reboot" => Command::Reboot,
        _ => return None,
    })
}

/// Does what a request asks for.
pub(crate) fn perform(
    operation: Operation,
    account: &mut Account,
    timeline: &mut Timeline,
    incoming: &Incoming,
) -> Result<Answer, Refusal> {
    if let Operation::Act(id, command) = operation {
        // These operations declare no body (HZSPEC); sending one is refused.
        if incoming.content_type.is_some() || !incoming.body.is_empty() {
            return Err(Refusal::of_status(Provider::Hetzner, 415));
        }
        let action = servers::begin(account, timeline, id, command)?;
        let action = account.actions.get(&action).map(servers::action_json);
        return Ok(Answer::json(201, &json!({"action": action})));
    }
    let Some((key, items)) = list(operation, account, incoming)? else {
        return one(operation, account, incoming).map(|body| Answer::json(200, &body));
    };
    let page = Page::hetzner(items, incoming);
    let (meta, links) = (page.meta(), page.link_header(incoming));
    let items: Vec<_> = page.items.iter().map(Row::to_text).collect();
    let body = format!("{{\"{key}\":[{}],\"meta\":{meta}}}", items.join(","));
    Ok(Answer::text(200, body, "application/json").with("Link", &links))
}

/// An entry of a list. Of servers, of which there may be thousands, only those of the page that is
/// asked for are written out.
enum Row<'a> {
    Server(&'a Server),
    Plain(Value),
}

/// A field of an entry, as it is chosen and sorted by.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Fact<'a> {
    None,
    Text(Cow<'a, str>),
    Number(u64),
}

impl<'a> From<&'a Value> for Fact<'a> {
    fn from(value: &'a Value) -> Self {
        match (value.as_u64(), value.as_str()) {
            (Some(number), _) => Self::Number(number),
            (None, Some(text)) => Self::Text(text.into()),
            (None, None) => Self::None,
        }
    }
}

impl Row<'_> {
    fn fact(&self, field: &str) -> Fact<'_> {
        let server = match self {
            Self::Server(server) => server,
            Self::Plain(facts) => return (&facts[field]).into(),
        };
        match field {
            "id" => Fact::Number(server.id),
            "name" => Fact::Text((&server.name).into()),
            "status" => {
                let status = json!(server.status);
                Fact::Text(status.as_str().unwrap_or_default().to_owned().into())
            }
            "created" => Fact::Text(timestamp(server.created).into()),
            _ => Fact::None,
        }
    }

    fn is(&self, field: &str, wanted: &str) -> bool {
        self.fact(field) == Fact::Text(wanted.into())
    }

    fn to_text(&self) -> Arc<str> {
        match self {
            Self::Server(server) => server.to_text().into(),
            Self::Plain(facts) => facts.to_string().into(),
        }
    }

    fn has_status(&self, wanted: &[String]) -> bool {
        wanted.is_empty() || wanted.iter().any(|status| self.is("status", status))
    }
}

/// A list's name in the answer, and its entries.
type Listed<'a> = (&'static str, Vec<Row<'a>>);

/// What the operations answer that have pages.
fn list<'a>(
    operation: Operation,
    account: &'a Account,
    incoming: &Incoming,
) -> Result<Option<Listed<'a>>, Refusal> {
    let named = |rows: Vec<Row<'a>>| {
        let name = incoming.parameter("name");
        let fits = |row: &Row| name.as_ref().is_none_or(|name| row.is("name", name));
        sorted(rows.into_iter().filter(fits).collect(), incoming)
    };
    let actions = |of: Option<u64>| {
        let status = incoming.parameters("status");
        let actions = account
            .actions
            .values()
            .filter(|action| of.is_none_or(|machine| action.machine == machine))
            .map(|action| Row::Plain(servers::action_json(action)))
            .filter(|row| row.has_status(&status))
            .collect();
        sorted(actions, incoming)
    };
    Ok(Some(match operation {
        Operation::Servers => ("servers", named(matching_servers(account, incoming)?)),
        Operation::AllServerActions => ("actions", actions(None)),
        Operation::ServerActions(id) => {
            account.servers.get(&id).ok_or_else(servers::not_found)?;
            ("actions", actions(Some(id)))
        }
        Operation::Locations => (
            "locations",
            named(
                catalog::entries(&catalog::LOCATIONS)
                    .map(|known| Row::Plain(known.clone()))
                    .collect(),
            ),
        ),
        Operation::ServerTypes => (
            "server_types",
            named(
                catalog::entries(&catalog::SERVER_TYPES)
                    .map(|known| Row::Plain(known.clone()))
                    .collect(),
            ),
        ),
        Operation::Server(_)
        | Operation::ServerAction(..)
        | Operation::Act(..)
        | Operation::Actions
        | Operation::Action(_)
        | Operation::Location(_)
        | Operation::Datacenters
        | Operation::ServerType(_) => return Ok(None),
    }))
}

/// What the operations answer that have no pages.
fn one(operation: Operation, account: &Account, incoming: &Incoming) -> Result<Value, Refusal> {
    let action = |id: u64| account.actions.get(&id).ok_or_else(servers::not_found);
    Ok(match operation {
        Operation::Server(id) => {
            let server = account.servers.get(&id).ok_or_else(servers::not_found)?;
            json!({"server": server.to_json()})
        }
        Operation::ServerAction(id, of) => {
            let action = action(of)?;
            if action.machine != id {
                return Err(servers::not_found());
            }
            json!({"action": servers::action_json(action)})
        }
        Operation::Action(id) => json!({"action": servers::action_json(action(id)?)}),
        Operation::Actions => json!({"actions": chosen_actions(account, incoming)?}),
        Operation::Location(id) => {
            let location = catalog::entries(&catalog::LOCATIONS).find(|known| known["id"] == id);
            json!({"location": location.ok_or_else(servers::not_found)?})
        }
        Operation::ServerType(id) => {
            let types = &catalog::SERVER_TYPES;
            let server_type = catalog::entries(types).find(|known| known["id"] == id);
            json!({"server_type": server_type.ok_or_else(servers::not_found)?})
        }
        Operation::Datacenters => {
            let mut gone = Refusal::of_status(Provider::Hetzner, 410);
            gone.details = json!({"announcement": "https://docs.hetzner.cloud/changelog"});
            return Err(gone);
        }
        Operation::Servers
        | Operation::ServerActions(_)
        | Operation::AllServerActions
        | Operation::Act(..)
        | Operation::Locations
        | Operation::ServerTypes => return Err(Refusal::of_status(Provider::Hetzner, 405)),
    })
}

fn matching_servers<'a>(
    account: &'a Account,
    incoming: &Incoming,
) -> Result<Vec<Row<'a>>, Refusal> {
    let status = incoming.parameters("status");
    let selector = incoming.parameter("label_selector").unwrap_or_default();
    let selector = labels::Selector::parse(&selector)
        .ok_or_else(|| Refusal::new(422, "invalid_input", "invalid label selector"))?;
    let servers = account.servers.values();
    let chosen = servers.filter(|server| selector.chooses(&server.labels));
    Ok(chosen
        .map(Row::Server)
        .filter(|row| row.has_status(&status))
        .collect())
}

/// `id` must be given: all actions of a project cannot be listed any more (HZSPEC).
fn chosen_actions(account: &Account, incoming: &Incoming) -> Result<Vec<Value>, Refusal> {
    let ids = incoming.parameters("id");
    let ids: Result<Vec<u64>, _> = ids.iter().map(|id| id.parse()).collect();
    let ids = ids.ok().filter(|ids| !ids.is_empty()).ok_or_else(|| {
        let mut refusal = Refusal::of_status(Provider::Hetzner, 422);
        refusal.details = json!({"fields": [{"name": "id", "messages": ["is required"]}]});
        refusal
    })?;
    let known = |id: &u64| {
        account
            .actions
            .get(id)
            .map(servers::action_json as fn(&Action) -> Value)
    };
    Ok(ids.iter().filter_map(known).collect())
}

/// Sorts by the query's `sort` (`id`, `started:desc`, …); by id unless told.
fn sorted<'a>(mut rows: Vec<Row<'a>>, incoming: &Incoming) -> Vec<Row<'a>> {
    // The first criterion weighs most, so it is applied last; the sort is stable.
    for criterion in incoming.parameters("sort").iter().rev() {
        let (field, direction) = criterion.split_once(':').unwrap_or((criterion, "asc"));
        rows.sort_by(|left, right| {
            let order = left.fact(field).cmp(&right.fact(field));
            if direction == "desc" {
                order.reverse()
            } else {
                order
            }
        });
    }
    rows
}
