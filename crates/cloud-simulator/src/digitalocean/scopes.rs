//! The permissions of a token: `DigitalOcean`'s custom scopes (DOSPEC). A request without one of
//! its scopes is forbidden, and whatever else the token may not read is left out of responses.

use domain::configuration::Provider;
use serde_json::Value;

use crate::{
    account::Login,
    answer::{Answer, Refusal},
    request::Request,
};

/// A method, a prefix of the path after the version, and the scopes that such a request needs. `*`
/// stands for any id; the first match wins.
const SCOPES: &[(&str, &str, &[&str])] = &[
    ("GET", "account/keys", &["ssh_key:read"]),
    ("GET", "account", &["account:read"]),
    ("GET", "actions", &["actions:read"]),
    ("GET", "droplets/*/firewalls", &["firewall:read"]),
    ("GET", "droplets", &["droplet:read"]),
    ("POST", "droplets/*/actions", &["droplet:update"]),
    ("POST", "droplets/actions", &["droplet:update"]),
    ("POST", "droplets", &["droplet:create"]),
    ("DELETE", "droplets", &["droplet:delete"]),
    ("GET", "snapshots/*", &["snapshot:read", "block_storage_snapshot:read"]),
    ("GET", "snapshots", &["snapshot:read"]),
    ("DELETE", "snapshots", &["image:delete", "snapshot:delete"]),
    ("GET", "images", &["image:read"]),
    ("PUT", "images", &["image:update"]),
    ("GET", "reserved_ips", &["reserved_ip:read"]),
    ("GET", "reserved_ipv6", &["reserved_ip:read"]),
    ("DELETE", "reserved_ips", &["reserved_ip:delete"]),
    ("POST", "reserved_ips", &["reserved_ip:update"]),
    ("POST", "reserved_ipv6", &["reserved_ip:update"]),
    ("GET", "volumes", &["block_storage:read"]),
    ("POST", "volumes", &["block_storage_action:create"]),
    ("DELETE", "volumes", &["block_storage:delete"]),
    ("GET", "firewalls", &["firewall:read"]),
    ("POST", "firewalls", &["firewall:update"]),
    ("DELETE", "firewalls", &["firewall:delete"]),
    ("GET", "load_balancers", &["load_balancer:read"]),
    ("POST", "load_balancers", &["load_balancer:update"]),
    ("DELETE", "load_balancers", &["load_balancer:delete"]),
    ("GET", "projects", &["project:read"]),
    ("POST", "projects", &["project:assign_resource"]),
    ("GET", "monitoring/alerts", &["monitoring:read"]),
    ("GET", "tags", &["tag:read"]),
    ("GET", "vpcs", &["vpc:read"]),
    ("DELETE", "vpcs", &["vpc:delete"]),
    ("GET", "sizes", &["sizes:read", "regions:read"]),
    ("GET", "regions", &["regions:read"]),
    ("GET", "databases", &["database:read"]),
    ("PUT", "databases", &["database:update"]),
    ("GET", "kubernetes", &["kubernetes:read"]),
    ("PUT", "kubernetes", &["kubernetes:update"]),
];

/// The fields that responses leave out if the token lacks the scope.
const LEFT_OUT: [(&str, &str); 2] = [("tags", "tag:read"), ("vpc_uuid", "vpc:read")];

/// Refuses a request that a login's tokens have no scopes for.
pub(crate) fn check(login: &Login, request: &Request) -> Result<(), Refusal> {
    let needed = needed(&request.method, &request.segments());
    let lacks_one = !needed.iter().all(|scope| login.has_scope(scope));
    Refusal::of_status(Provider::DigitalOcean, 403).when(lacks_one)
}

/// Returns a response without the fields that a login's tokens may not read.
pub(crate) fn without_the_unreadable(answer: Answer, login: &Login) -> Answer {
    let unreadable = LEFT_OUT.iter().filter(|(_, scope)| !login.has_scope(scope));
    let unreadable: Vec<_> = unreadable.map(|(key, _)| *key).collect();
    if unreadable.is_empty() {
        return answer;
    }
    match serde_json::from_str::<Value>(&answer.body) {
        Ok(mut body) => {
            leave_out(&mut body, &unreadable);
            Answer { body: body.to_string(), ..answer }
        }
        Err(_) => answer,
    }
}

fn leave_out(value: &mut Value, unreadable: &[&str]) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !unreadable.contains(&key.as_str()));
            for field in fields.values_mut() {
                leave_out(field, unreadable);
            }
        }
        Value::Array(items) => {
            for item in items {
                leave_out(item, unreadable);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn needed(method: &str, path: &[&str]) -> &'static [&'static str] {
    let fits = |pattern: &str| {
        let mut path = path.iter();
        pattern.split('/').all(|part| path.next().is_some_and(|own| part == "*" || part == *own))
    };
    let mut entries = SCOPES.iter();
    let entry = entries.find(|(of_method, pattern, _)| *of_method == method && fits(pattern));
    entry.map_or(&[], |(_, _, scopes)| scopes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digitalocean::ROUTES;

    #[test]
    fn every_operation_needs_a_scope() {
        for (method, path, _) in ROUTES {
            let path: Vec<_> = path.split('/').collect();
            assert_ne!(needed(method, &path), &[] as &[&str], "{method} {path:?}");
        }
    }

    #[test]
    fn what_is_below_a_path_may_need_another_scope() {
        let of = |method: &str, path: &str| {
            let path: Vec<_> = path.split('/').collect();
            needed(method, &path)
        };
        assert_eq!(of("GET", "droplets/42/firewalls"), ["firewall:read"]);
        assert_eq!(of("GET", "droplets/42/snapshots"), ["droplet:read"]);
        assert_eq!(of("POST", "droplets/42/actions"), ["droplet:update"]);
        assert_eq!(of("POST", "droplets"), ["droplet:create"]);
    }
}
