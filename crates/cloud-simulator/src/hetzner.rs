//! The Hetzner Cloud API: its operations and their responses.

mod body;
pub(crate) mod create;
pub(crate) mod images;
pub(crate) mod servers;
mod shown;
mod things;

use domain::configuration::Provider;
use serde_json::{Value, json};

use self::{
    body::{body, missing, text},
    servers::{Command, TypeChange},
};
use crate::{
    account::{Action, Subject},
    answer::{Answer, Refusal, timestamp},
    catalog,
    labels::{Labels, Selector},
    page::Page,
    routes::{Call, Route},
    servers::{Server, not_found},
    things::Kind,
};

type Result<T> = std::result::Result<T, Refusal>;

pub(crate) const ROUTES: &[Route] = &[
    ("GET", "servers", list_servers),
    ("GET", "servers/#", server),
    ("GET", "servers/actions", |call| Ok(actions(call, call.account.actions.values()))),
    ("GET", "servers/actions/#", action),
    ("GET", "servers/#/actions", server_actions),
    ("GET", "servers/#/actions/#", server_action),
    ("POST", "servers/#/actions/shutdown", |call| act(call, Command::Shutdown)),
    ("POST", "servers/#/actions/poweroff", |call| act(call, Command::PowerOff)),
    ("POST", "servers/#/actions/poweron", |call| act(call, Command::PowerOn)),
    ("POST", "servers/#/actions/reboot", |call| act(call, Command::Reboot)),
    ("POST", "servers/#/actions/change_type", change_type),
    ("POST", "servers", create::create_server),
    ("PUT", "servers/#", servers::update_server),
    ("DELETE", "servers/#", create::delete_server),
    ("POST", "servers/#/actions/create_image", images::create_image),
    ("POST", "servers/#/actions/change_protection", servers::protect_server),
    ("POST", "servers/#/actions/enable_backup", servers::enable_backup),
    ("POST", "servers/#/actions/attach_to_network", things::attach_to_network),
    ("POST", "servers/#/actions/add_to_placement_group", things::add_to_placement_group),
    ("GET", "images", images::images),
    ("GET", "images/#", images::image),
    ("PUT", "images/#", images::update_image),
    ("DELETE", "images/#", images::delete_image),
    ("GET", "images/#/actions", image_actions),
    ("POST", "images/#/actions/change_protection", images::protect_image),
    ("PUT", "primary_ips/#", things::update_primary_ip),
    ("POST", "primary_ips/#/actions/assign", things::assign_primary_ip),
    ("POST", "primary_ips/#/actions/unassign", things::unassign_primary_ip),
    ("POST", "volumes/#/actions/attach", things::attach_volume),
    ("POST", "firewalls/#/actions/apply_to_resources", things::apply_firewall),
    ("POST", "load_balancers/#/actions/add_target", things::add_target),
    ("POST", "floating_ips/#/actions/assign", things::assign_floating_ip),
    ("GET", "actions", actions_by_id),
    ("GET", "actions/#", action),
    ("GET", "locations", |call| {
        let locations = catalog::entries(&catalog::LOCATIONS);
        Ok(list(call, "locations", locations))
    }),
    ("GET", "locations/#", |call| one(call, "location", catalog::entries(&catalog::LOCATIONS))),
    ("GET", "server_types", |call| {
        let types = call.account.market.listed_types(call.timeline.now());
        Ok(list(call, "server_types", types))
    }),
    ("GET", "server_types/#", |call| {
        one(call, "server_type", call.account.market.server_types.iter())
    }),
    ("GET", "pricing", |call| Ok(pricing(call))),
    ("GET", "datacenters", gone),
    ("GET", "datacenters/*", gone),
    // Things of all kinds, such as `networks`.
    ("GET", "*", things::list),
    ("GET", "*/#", things::one),
    ("DELETE", "*/#", things::delete),
];

impl Call<'_> {
    fn id(&self) -> u64 {
        self.ids.numbers[0]
    }

    /// The kind of thing that the path names.
    fn kind(&self) -> Result<Kind> {
        let listed_at = &self.ids.names[0];
        Kind::listed_at(listed_at, Provider::Hetzner).ok_or_else(not_found)
    }

    /// Invalidates the cached JSON of a server, after a change of what is attached to it.
    fn invalidate_cache(&mut self, server: u64) {
        self.account.server(server);
    }

    /// Performs an action that finishes immediately, and responds with it.
    fn act_at_once(&mut self, on: Subject, command: &str) -> Result<Answer> {
        let action = self.account.act_at_once(self.timeline, on, command);
        action_answer(self, action)
    }

    fn server(&self) -> Result<&Server> {
        let server = self.account.servers.get(&self.ids.numbers[0]);
        server.ok_or_else(not_found)
    }
}

/// The response to a change that has begun.
fn action_answer(call: &Call<'_>, action: u64) -> Result<Answer> {
    Ok(Answer::json(201, &json!({"action": action_json(call, action)?})))
}

fn action_json(call: &Call<'_>, id: u64) -> Result<Value> {
    Ok(shown::action(call.action(id)?))
}

/// A page of a list, filtered by the query's `name` and `status` and sorted by its `sort`. Only the
/// page's own entries are serialized, since there may be thousands.
fn page<T>(
    call: &Call<'_>,
    key: &str,
    mut items: Vec<T>,
    field: impl Fn(&T, &str) -> Value,
    write: impl Fn(&T) -> String,
) -> Answer {
    let request = &call.incoming.request;
    for name in ["name", "status"] {
        let wanted = request.parameters(name);
        if !wanted.is_empty() {
            items.retain(|item| {
                let own = field(item, name);
                own.is_null() || wanted.iter().any(|wanted| own == wanted.as_str())
            });
        }
    }
    // The first criterion takes precedence, so it is applied last; the sort is stable.
    for criterion in request.parameters("sort").iter().rev() {
        let (name, direction) = criterion.split_once(':').unwrap_or((criterion, "asc"));
        let rank = |item: &T| {
            let value = field(item, name);
            (value.as_u64(), value.as_str().map(str::to_owned))
        };
        if direction == "desc" {
            items.sort_by_cached_key(|item| std::cmp::Reverse(rank(item)));
        } else {
            items.sort_by_cached_key(rank);
        }
    }
    let page = Page::hetzner(items, request, call.account.login.page_size);
    let (meta, links) = (page.meta(), page.link_header(call.incoming));
    let items: Vec<_> = page.items.iter().map(write).collect();
    let body = format!("{{\"{key}\":[{}],\"meta\":{meta}}}", items.join(","));
    Answer::text(200, body).with("link", &links)
}

/// A page of a list, filtered by the query's `label_selector` and `type`.
fn listed<T>(
    call: &Call<'_>,
    key: &str,
    items: impl Iterator<Item = T>,
    labels: impl Fn(&T) -> &Labels,
    show: impl Fn(&T) -> Value,
) -> Result<Answer> {
    let selector = selector(call)?;
    let kinds = call.incoming.request.parameters("type");
    let is_of = |item: &T, kind: &String| show(item)["type"] == **kind;
    let chosen = items.filter(|item| {
        selector.chooses(labels(item))
            && (kinds.is_empty() || kinds.iter().any(|kind| is_of(item, kind)))
    });
    let field = |item: &T, name: &str| field(&show(item), name);
    Ok(page(call, key, chosen.collect(), field, |item| show(item).to_string()))
}

fn selector(call: &Call<'_>) -> Result<Selector> {
    let selector = call.incoming.request.parameter("label_selector").unwrap_or_default();
    let selector = Selector::parse(&selector);
    selector.ok_or_else(|| Refusal::new(422, "invalid_input", "invalid label selector"))
}

fn field(value: &Value, name: &str) -> Value {
    value[name].clone()
}

fn list_servers(call: &mut Call<'_>) -> Result<Answer> {
    let selector = selector(call)?;
    let servers = call.account.servers.values();
    let chosen = servers.filter(|server| selector.chooses(&server.labels));
    let field = |server: &&Server, name: &str| match name {
        "id" => json!(server.id),
        "name" => json!(server.name),
        "status" => json!(server.status),
        "created" => json!(timestamp(server.created)),
        _ => Value::Null,
    };
    let write = |server: &&Server| shown::server_text(call.account, server).to_owned();
    Ok(page(call, "servers", chosen.collect(), field, write))
}

fn server(call: &mut Call<'_>) -> Result<Answer> {
    Ok(Answer::json(200, &json!({"server": shown::server(call.account, call.server()?)})))
}

/// A page of actions. There may be thousands, so only what is needed of each is built.
fn actions<'a>(call: &Call<'_>, actions: impl Iterator<Item = &'a Action>) -> Answer {
    let field = |action: &&Action, name: &str| match name {
        "id" => json!(action.id),
        "command" => action.kind.clone(),
        _ => field(&shown::action(action), name),
    };
    page(call, "actions", actions.collect(), field, |action| shown::action(action).to_string())
}

#[expect(clippy::unnecessary_wraps, reason = "what the operations return")]
fn image_actions(call: &mut Call<'_>) -> Result<Answer> {
    Ok(actions(call, call.account.actions_on(("image", call.ids.numbers[0]))))
}

fn server_actions(call: &mut Call<'_>) -> Result<Answer> {
    let id = call.server()?.id;
    let all = call.account.actions.values();
    Ok(actions(call, all.filter(|action| action.on == ("server", id))))
}

fn action(call: &mut Call<'_>) -> Result<Answer> {
    Ok(Answer::json(200, &json!({"action": action_json(call, call.ids.numbers[0])?})))
}

fn server_action(call: &mut Call<'_>) -> Result<Answer> {
    let action = call.action(call.ids.numbers[1])?;
    not_found().when(action.on != ("server", call.id()))?;
    Ok(Answer::json(200, &json!({"action": shown::action(action)})))
}

/// `id` is required: listing all actions of a project was removed (HZSPEC).
fn actions_by_id(call: &mut Call<'_>) -> Result<Answer> {
    let ids = call.incoming.request.parameters("id");
    let ids: std::result::Result<Vec<u64>, _> = ids.iter().map(|id| id.parse()).collect();
    let ids = ids.ok().filter(|ids| !ids.is_empty()).ok_or_else(|| missing("id"))?;
    let known = ids.iter().filter_map(|id| call.account.actions.get(id));
    let actions: Vec<_> = known.map(shown::action).collect();
    Ok(Answer::json(200, &json!({"actions": actions})))
}

fn act(call: &mut Call<'_>, command: Command) -> Result<Answer> {
    // These operations declare no body (HZSPEC); sending one is refused.
    let request = &call.incoming.request;
    if request.content_type.is_some() || !request.body.is_empty() {
        return Err(Refusal::of_status(Provider::Hetzner, 415));
    }
    let action = servers::begin(call.account, call.timeline, call.id(), command)?;
    action_answer(call, action)
}

fn change_type(call: &mut Call<'_>) -> Result<Answer> {
    // An unknown server is reported before a malformed body.
    call.server()?;
    let body = body(call, "server_type upgrade_disk")?;
    let server_type = text(&body, "server_type").ok_or_else(|| missing("server_type"))?;
    let upgrade_disk = body.get("upgrade_disk").and_then(Value::as_bool);
    let upgrade_disk = upgrade_disk.ok_or_else(|| missing("upgrade_disk"))?;
    let change = TypeChange { server_type, upgrade_disk };
    let action = servers::change_type(call.account, call.timeline, call.id(), &change)?;
    action_answer(call, action)
}

fn list<'a>(call: &Call<'_>, key: &str, entries: impl Iterator<Item = &'a Value>) -> Answer {
    let field = |entry: &&Value, name: &str| field(entry, name);
    page(call, key, entries.collect(), field, ToString::to_string)
}

fn one<'a>(
    call: &Call<'_>,
    key: &str,
    mut entries: impl Iterator<Item = &'a Value>,
) -> Result<Answer> {
    let entry = entries.find(|entry| entry["id"] == call.ids.numbers[0]);
    let body = json!({key: entry.ok_or_else(not_found)?});
    Ok(Answer::json(200, &body))
}

fn pricing(call: &Call<'_>) -> Answer {
    let market = &call.account.market;
    let listed = market.listed_types(call.timeline.now());
    let pricing = market.prices.hetzner.pricing(listed);
    Answer::json(200, &json!({"pricing": pricing}))
}

/// Datacenters were removed on 2026-10-01 (HZSPEC, HGO).
fn gone(_: &mut Call<'_>) -> Result<Answer> {
    Err(Refusal {
        details: json!({"announcement": "https://docs.hetzner.cloud/changelog"}),
        ..Refusal::of_status(Provider::Hetzner, 410)
    })
}
