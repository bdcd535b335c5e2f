//! `resources`: the references and names of what follows a schedule besides the tagged resources, and
//! why some services cannot be listed.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    AccountName, ResourceRef, ScheduleName,
    configuration::{AccountKind, Selector},
};

use super::{
    ListedResources,
    accounts::Accounts,
    document::{Field, Place, Problems, Table},
    elements_of,
};
use crate::resolve::nearest::advice;

/// The places of each entry, across all schedules.
#[derive(Default)]
pub(super) struct Listings(BTreeMap<Selector, Vec<(ScheduleName, Place)>>);

impl Listings {
    /// Reads one schedule's list.
    pub(super) fn read(
        &mut self,
        schedule: Option<&ScheduleName>,
        table: &Table,
        (accounts, listed): (&Accounts, ListedResources),
        problems: &mut Problems,
    ) -> BTreeSet<Selector> {
        let mut resources = BTreeSet::new();
        for field in elements_of(table, "resources") {
            let Some(selector) = selector(&field, problems) else {
                continue;
            };
            if let Selector::Reference(reference) = &selector {
                check_account(reference, &field, (accounts, listed), problems);
            }
            if let Some(schedule) = schedule {
                let places = self.0.entry(selector.clone()).or_default();
                places.push((schedule.clone(), field.place));
            }
            resources.insert(selector);
        }
        resources
    }

    /// Refuses entries of two schedules, naming both lines. Which names a pattern matches is not
    /// known here.
    pub(super) fn check(mut self, problems: &mut Problems) {
        for (selector, places) in &mut self.0 {
            places.sort_by_key(|(_, place)| place.span.start);
            let [(schedule, first), others @ ..] = places.as_slice() else {
                continue;
            };
            let line = problems.line(&first.span);
            for (other, place) in others {
                if other == schedule {
                    problems.warning(place, format!("`{selector}` is already on line {line}"));
                } else {
                    let message = format!(
                        "`{selector}` is listed under schedule `{schedule}` too (line {line}); \
                         a resource follows one schedule, so remove it from one of them"
                    );
                    problems.error(place, message);
                }
            }
        }
    }
}

fn selector(field: &Field, problems: &mut Problems) -> Option<Selector> {
    let text = field.text("do-main/droplet/3164444", problems)?;
    match text.parse() {
        Ok(selector) => Some(selector),
        Err(error) => {
            match unsupported(text) {
                Some(reason) => problems.error(&field.place, format!("`{text}`: {reason}")),
                None => problems.error(&field.place, error),
            }
            None
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

/// Refuses a resource whose account is missing, or whose kind its provider does not have.
fn check_account(
    reference: &ResourceRef,
    field: &Field,
    (accounts, listed): (&Accounts, ListedResources),
    problems: &mut Problems,
) {
    let name = &reference.account;
    if !accounts.is_declared(name.as_str()) {
        if listed == ListedResources::MayStandAlone && accounts.names().next().is_none() {
            return;
        }
        let message = if let Some(now) = accounts.called_now(name.as_str()) {
            format!(
                "`{reference}`: account `{name}` is called `{now}` here; write {now}/{}",
                reference.id
            )
        } else {
            let advice = advice(name.as_str(), "accounts", accounts.names());
            format!("`{reference}`: there is no account `{name}`; {advice}")
        };
        problems.error(&field.place, message);
        return;
    }
    let Some(kind) = accounts.kind(name) else {
        return;
    };
    if !kind.kinds().contains(&reference.kind()) {
        let message = wrong_provider(reference, name, kind);
        problems.error(&field.place, message);
    }
}

fn wrong_provider(reference: &ResourceRef, name: &AccountName, kind: AccountKind) -> String {
    let kinds: Vec<_> = kind.kinds().iter().map(|kind| kind.as_str()).collect();
    let at = match kind {
        AccountKind::Cloud(provider) => format!("at {provider}"),
        AccountKind::Ssh => "over SSH".to_owned(),
    };
    format!(
        "`{reference}`: `{name}` is an account {at}, where there is no {}; write {}",
        reference.kind(),
        kinds.join(", ")
    )
}
