//! `resources`: the references and names of what follows a schedule besides the tagged resources, and
//! why some services cannot be listed.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    ResourceRef, ScheduleName,
    configuration::{AccountKind, Selector},
};
use report::{joined, nearest::advice};

use super::{ListedResources, accounts::Accounts, document::Field};

/// The places of each entry, across all schedules.
pub(super) type Listings<'t> = BTreeMap<Selector, Vec<(ScheduleName, Field<'t>)>>;

pub(super) fn read<'t>(
    schedule: Option<&ScheduleName>,
    table: &Field<'t>,
    accounts: &Accounts,
    listed: ListedResources,
    listings: &mut Listings<'t>,
) -> BTreeSet<Selector> {
    let mut resources = BTreeSet::new();
    for (field, text) in table.list::<String>("resources") {
        let selector = match text.parse::<Selector>() {
            Ok(selector) => selector,
            Err(error) => {
                let reason = unsupported(&text).map(|reason| format!("`{text}`: {reason}"));
                field.error(reason.unwrap_or_else(|| error.to_string()));
                continue;
            }
        };
        if let Selector::Reference(reference) = &selector
            && let Some(message) = misfit(reference, accounts, listed)
        {
            field.error(format!("`{reference}`: {message}"));
        }
        if let Some(schedule) = schedule {
            listings.entry(selector.clone()).or_default().push((schedule.clone(), field));
        }
        resources.insert(selector);
    }
    resources
}

/// Refuses entries of two schedules, naming both lines. Which names a pattern matches is not known
/// here.
pub(super) fn check(listings: Listings) {
    for (selector, mut places) in listings {
        places.sort_by_key(|(_, field)| field.place.start);
        let [(schedule, first), others @ ..] = places.as_slice() else {
            continue;
        };
        let line = first.problems.line(&first.place);
        for (other, field) in others {
            if other == schedule {
                field.warning(format!("`{selector}` is already on line {line}"));
            } else {
                field.error(format!(
                    "`{selector}` is listed under schedule `{schedule}` too (line {line}); a \
                     resource follows one schedule, so remove it from one of them"
                ));
            }
        }
    }
}

/// Why the service that a reference names cannot be stopped. `None` if it names no known service.
fn unsupported(reference: &str) -> Option<String> {
    let kind = reference.split('/').nth(1)?;
    if let Some(service) = provider::unsupported_service(kind) {
        return Some(format!("not supported: {service}"));
    }
    match kind.to_lowercase().as_str() {
        "kubernetes" | "k8s" | "cluster" | "clusters" => Some(
            "a cluster is scheduled by its node pools; write ACCOUNT/node-pool/CLUSTER/POOL, or \
             tag the cluster with offhours:NAME for all of its pools (self-managed Kubernetes: a \
             machine of an account over SSH, see docs/ssh.md)"
                .to_owned(),
        ),
        _ => None,
    }
}

/// What is wrong if a resource's account is missing, or its provider does not have the kind.
fn misfit(reference: &ResourceRef, accounts: &Accounts, listed: ListedResources) -> Option<String> {
    let name = &reference.account;
    let Some(kind) = accounts.declared.get(name.as_str()) else {
        if listed == ListedResources::MayStandAlone && accounts.declared.is_empty() {
            return None;
        }
        return Some(if let Some(now) = accounts.former.get(name.as_str()) {
            format!("account `{name}` is called `{now}` here; write {now}/{}", reference.id)
        } else {
            let names = accounts.declared.keys().map(String::as_str);
            let advice = advice(name.as_str(), "accounts", names);
            format!("there is no account `{name}`; {advice}")
        });
    };
    let (account, kind) = ((*kind)?, reference.kind());
    let at = match account {
        _ if account.kinds().contains(&kind) => return None,
        AccountKind::Cloud(provider) => format!("at {provider}"),
        AccountKind::Ssh => "over SSH".to_owned(),
    };
    let kinds = joined(account.kinds(), ", ");
    Some(format!("`{name}` is an account {at}, where there is no {kind}; write {kinds}"))
}
