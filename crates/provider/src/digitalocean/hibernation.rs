//! Droplets kept as snapshots, observed (DOSPEC).

use std::collections::BTreeSet;

use domain::{
    DropletId, ResourceId,
    hibernation::{
        BackupPolicy, Hibernation, Label, MachineLimit, Manifest, Mark, OF_LABEL, ObservedMachine,
        Origin, SeenSnapshot, Sight, SnapshotState, SshKey, is_own_label, of_label,
    },
    resource::{ActionId, MachineSize, Resource, Size},
};
use futures_util::future::try_join_all;
use serde::de::IgnoredAny;

use super::{
    Api, droplet, schema,
    schema::{DropletWithAttachments, ips},
    surroundings::{
        AccountResponse, DatabaseName, Firewall, Key, LoadBalancer, Policy, ReservedIp,
        TrustedSources,
    },
};
use crate::{
    attachments::{Attachments, Preflight, Project, Reference, Thing},
    cloud::{Hibernates, MissingScope},
    error::ProviderError,
    hibernation_lookup::{
        HibernationLookup, ListedSnapshot, ListedSnapshots, Lists, hundredths, replace_key,
    },
    http::Request,
    pages::{self, AT_ONCE, Reading},
};

/// What the names of our snapshots begin with.
const PREFIX: &str = "offhours.";

/// The entries of `features` that are switched on when a Droplet is created.
const FEATURES: [&str; 3] = ["ipv6", "monitoring", "droplet_agent"];

impl Hibernates for Api {
    /// Lists the snapshots of all Droplets. The list shows no status, and only what is complete.
    async fn snapshots(&self) -> Result<ListedSnapshots, ProviderError> {
        let path = "/v2/snapshots?resource_type=droplet";
        let listed: Vec<schema::Snapshot> = self.things(path).await?;
        Ok(ListedSnapshots(listed.iter().filter_map(snapshot).collect()))
    }

    async fn attachments(&self) -> Result<Attachments, ProviderError> {
        let mut found = Attachments::default();
        // One after the other, they would make what a deletion rests on too old.
        let (ipv4, ipv6, firewalls, balancers, projects) = tokio::try_join!(
            self.things::<ReservedIp>("/v2/reserved_ips"),
            self.things::<ReservedIp>("/v2/reserved_ipv6"),
            self.things::<Firewall>("/v2/firewalls"),
            self.things::<LoadBalancer>("/v2/load_balancers"),
            self.things::<schema::Project>("/v2/projects"),
        )?;
        found.things.extend(ipv4.into_iter().chain(ipv6).map(Thing::from));
        for firewall in firewalls {
            found.firewall_tags.extend(firewall.tags.iter().cloned());
            found.references.push(firewall.reference());
            found.things.push(firewall.into());
        }
        for balancer in balancers {
            found.references.push(balancer.reference());
            found.things.push(balancer.into());
        }
        found.projects = projects.into_iter().map(Project::from).collect();
        Ok(found)
    }

    async fn preflight(&self) -> Result<Preflight, ProviderError> {
        let mut references = self.trusted_sources().await?;
        let policies: Vec<Policy> = self.things("/v2/monitoring/alerts").await?;
        references.extend(policies.into_iter().map(Reference::from));
        let ssh_keys = self.ssh_keys().await?;
        let AccountResponse { account } = self.0.read(&Request::get("/v2/account")).await?;
        let room = match account.droplet_limit {
            Some(most) => Some(MachineLimit { most, present: self.count("/v2/droplets").await? }),
            None => None,
        };
        Ok(Preflight { references, ssh_keys, room, account_problem: account.problem() })
    }

    async fn machine(
        &self,
        id: &ResourceId,
        lists: Lists<'_>,
    ) -> Result<Option<ObservedMachine>, ProviderError> {
        let project = match lists.attachments {
            Some(attachments) => self.project_of(droplet_id(id)?, attachments).await?,
            None => None,
        };
        let Some(mut whole) = self.with_attachments(id).await? else {
            return Ok(None);
        };
        if let Some(attachments) = lists.attachments {
            whole.hide_reserved(attachments);
        }
        let has_backups = lists.attachments.is_some() && whole.features.contains("backups");
        let policy = if has_backups { self.backup_policy(whole.droplet.id).await? } else { None };
        Ok(Some(body(whole, lists, project, policy)))
    }

    /// Reads the machine after its snapshots and attached resources, so that conclusions rest on
    /// its latest state.
    async fn inspect(&self, lookup: HibernationLookup<'_>) -> Result<Sight, ProviderError> {
        let path = format!("/v2/droplets?tag_name={}", of_tag(lookup.of));
        let (snapshots, create_failed, mut others) = tokio::try_join!(
            self.snapshots_of(lookup),
            self.has_failed(lookup.making),
            self.things::<DropletWithAttachments>(&path),
        )?;
        let machine = match lookup.present {
            Some(id) => self.machine(id, lookup.lists).await?,
            None => None,
        };
        if machine.is_none() && !lookup.name.is_empty() {
            let path = format!("/v2/droplets?name={}", lookup.name);
            let mut named: Vec<DropletWithAttachments> = self.things(&path).await?;
            // Names are not unique here: only one that a person made from our snapshot counts.
            named.retain(|one| is_copy(one, lookup.hibernation));
            others.extend(named);
        }
        if let Some(made) = lookup.made {
            others.extend(self.with_attachments(made).await?);
        }
        let others = others.into_iter().map(|whole| body(whole, Lists::default(), None, None));
        Ok(Sight { machine, snapshots, others: others.collect(), create_failed }.distinct())
    }

    async fn drop_missing(
        &self,
        made: &mut Manifest,
        ssh_key: Option<&str>,
    ) -> Result<(), ProviderError> {
        replace_key(&mut made.ssh_key, &self.ssh_keys().await?, ssh_key);
        self.0.retain_existing("/v2/volumes", &mut made.volumes).await?;
        let mut vpc = made.vpc.take().into_iter().collect();
        self.0.retain_existing("/v2/vpcs", &mut vpc).await?;
        made.vpc = vpc.pop_first();
        Ok(())
    }

    async fn missing_scopes(&self) -> Result<Vec<MissingScope>, ProviderError> {
        self.try_scopes().await
    }
}

impl Api {
    async fn ssh_keys(&self) -> Result<Vec<SshKey>, ProviderError> {
        let keys: Vec<Key> = self.things("/v2/account/keys").await?;
        Ok(keys.into_iter().map(SshKey::from).collect())
    }

    /// Returns how many entries a list has, with one request.
    async fn count(&self, path: &str) -> Result<u64, ProviderError> {
        let request = Request::get(format!("{path}?per_page=1"));
        let page: schema::Page<IgnoredAny> = self.0.read(&request).await?;
        let total = page.meta.map(|meta| meta.total);
        total.ok_or_else(|| request.not_understood("a list without its total"))
    }

    /// Returns whom each database lets in. One that is deleted meanwhile is skipped.
    async fn trusted_sources(&self) -> Result<Vec<Reference>, ProviderError> {
        let databases = self.all_databases::<DatabaseName>(Reading::UNTIMED).await?;
        let databases = databases.items.into_iter().map(|(_, database)| database);
        let sources = async |database: DatabaseName| {
            let path = format!("/v2/databases/{}/firewall", database.id.0);
            let read = ProviderError::found(self.0.read(&Request::get(path)).await)?;
            let reference = |TrustedSources { rules }| database.letting_in(rules);
            Ok(read.map(reference).into_iter().collect())
        };
        let read = pages::each(Reading::UNTIMED, AT_ONCE, databases, sources).await?;
        Ok(read.items.into_iter().map(|(_, reference)| reference).collect())
    }

    /// Returns the snapshots of a machine. Those that matter are read as images as well, because
    /// only images have a status.
    async fn snapshots_of(
        &self,
        lookup: HibernationLookup<'_>,
    ) -> Result<Vec<SeenSnapshot>, ProviderError> {
        let mut listed = lookup.snapshots.clone();
        let nothing = Hibernation::of(lookup.of.clone());
        let hibernation = lookup.hibernation.unwrap_or(&nothing);
        for number in hibernation.snapshots.iter().filter_map(|one| one.id) {
            if !listed.has(number) {
                let request = Request::get(format!("/v2/snapshots/{number}"));
                let read = self.one::<schema::Snapshot>(&request).await;
                if let Some(found) = ProviderError::found(read)? {
                    request.about(&number.to_string(), &found.id)?;
                    listed.0.extend(snapshot(&found));
                }
            }
        }
        let mut seen = listed.of_machine(lookup.of, lookup.hibernation);
        for one in &mut seen {
            let mark = one.mark.as_ref();
            let known = mark.and_then(|mark| hibernation.snapshot(mark));
            let matters = hibernation.wake_from.as_ref() == mark
                || known.is_some_and(|known| Some(&known.from) == lookup.present);
            if matters {
                let state = self.state(one.id).await?;
                if state != SnapshotState::Available {
                    one.state = state;
                }
            }
        }
        Ok(seen)
    }

    /// Returns a snapshot's state, by its status as an image.
    async fn state(&self, id: u64) -> Result<SnapshotState, ProviderError> {
        let request = Request::get(format!("/v2/images/{id}"));
        let image = ProviderError::found(self.one::<schema::Image>(&request).await)?;
        // Listed as a snapshot, it may not be shown as an image yet.
        Ok(image.map_or(SnapshotState::Creating, |image| match image.status.as_str() {
            "available" => SnapshotState::Available,
            "NEW" | "pending" => SnapshotState::Creating,
            "deleted" | "retired" => SnapshotState::Failed,
            _ => SnapshotState::Unknown,
        }))
    }

    /// Reports whether an action has ended in an error. An action that is not found proves nothing.
    async fn has_failed(&self, action: Option<ActionId>) -> Result<bool, ProviderError> {
        let Some(ActionId(id)) = action else {
            return Ok(false);
        };
        let request = Request::get(format!("/v2/actions/{id}"));
        let Some(action) = ProviderError::found(self.one::<schema::Action>(&request).await)? else {
            return Ok(false);
        };
        request.about(&id, &action.id)?;
        Ok(matches!(action.status, schema::ActionStatus::Errored))
    }

    /// Fetches one Droplet with what it shows as attached; `None` if the cloud does not know it.
    async fn with_attachments(
        &self,
        id: &ResourceId,
    ) -> Result<Option<DropletWithAttachments>, ProviderError> {
        let number = droplet_id(id)?;
        let request = Request::get(format!("/v2/droplets/{number}"));
        let read = self.one::<DropletWithAttachments>(&request).await;
        let whole = ProviderError::found(read)?;
        whole.iter().try_for_each(|whole| request.about(&number, &whole.droplet.id))?;
        Ok(whole)
    }

    /// Finds the project that a Droplet is in, which only the projects' own lists show: several are
    /// read at once, until one has it. If there is only one project, it is that one.
    async fn project_of<'a>(
        &self,
        droplet: u64,
        attachments: &'a Attachments,
    ) -> Result<Option<&'a Project>, ProviderError> {
        if let [only] = attachments.projects.as_slice() {
            return Ok(Some(only));
        }
        for several in attachments.projects.chunks(AT_ONCE) {
            let machines = try_join_all(several.iter().map(|one| self.machines_of(one))).await?;
            if let Some(at) = machines.iter().position(|of| of.contains(&droplet)) {
                return Ok(several.get(at));
            }
        }
        Ok(None)
    }

    async fn machines_of<'a>(
        &self,
        project: &'a Project,
    ) -> Result<&'a BTreeSet<u64>, ProviderError> {
        let machines = project.machines.get_or_try_init(async || {
            let path = format!("/v2/projects/{}/resources", project.id);
            let resources: Vec<schema::Resource> = self.things(&path).await?;
            Ok(resources.iter().filter_map(schema::Resource::droplet).collect())
        });
        machines.await
    }

    /// Returns when a Droplet's backups would be made; `None` if there are none.
    async fn backup_policy(&self, droplet: u64) -> Result<Option<BackupPolicy>, ProviderError> {
        let request = Request::get(format!("/v2/droplets/{droplet}/backups/policy"));
        let read = self.one::<schema::BackupPolicy>(&request).await;
        let policy = ProviderError::found(read)?.and_then(|read| read.backup_policy);
        Ok(policy.map(|policy| BackupPolicy {
            plan: policy.plan,
            weekday: policy.weekday,
            hour: policy.hour,
        }))
    }
}

/// Reports whether a Droplet was made from a snapshot of ours.
fn is_copy(one: &DropletWithAttachments, hibernation: Option<&Hibernation>) -> bool {
    let image = one.image.as_ref().and_then(|image| image.id);
    let snapshots = hibernation.into_iter().flat_map(|hibernation| &hibernation.snapshots);
    image.is_some() && snapshots.into_iter().any(|snapshot| snapshot.id == image)
}

/// Builds the body of a Droplet, as far as the lists were read that show it.
fn body(
    whole: DropletWithAttachments,
    lists: Lists<'_>,
    project: Option<&Project>,
    backup_policy: Option<BackupPolicy>,
) -> ObservedMachine {
    let made_from = whole.image.as_ref().and_then(|image| image.id);
    let read = lists.attachments.zip(lists.preflight);
    let around =
        read.map(|(attachments, preflight)| whole.surroundings(attachments, preflight, project));
    let number = whole.droplet.id;
    let resource = droplet(whole.droplet);
    let own = |tag: &&String| !is_own_label(tag);
    let size = match &resource.size {
        Size::Machine(size) => size.clone(),
        Size::Database(_) | Size::NodePool(_) => MachineSize::default(),
    };
    let backups = whole.features.contains("backups");
    let mut features = whole.features;
    features.retain(|feature| FEATURES.contains(&feature.as_str()));
    let manifest = lists.attachments.map(|attachments| {
        let mut manifest = Manifest {
            name: resource.name.clone(),
            region: resource.region.clone(),
            tags: resource.tags.iter().filter(own).cloned().collect(),
            size,
            volumes: whole.volume_ids,
            vpc: whole.vpc_uuid,
            project: project.map(|project| project.id.clone()),
            features,
            backups,
            backup_policy,
            // One that shows no address at all says nothing.
            private_only: ips(&whole.networks.v4, "private").next().is_some()
                && ips(&whole.networks.v4, "public").next().is_none(),
            ..Manifest::default()
        };
        attachments.add_to(&mut manifest, number);
        manifest
    });
    ObservedMachine {
        mark: Mark::in_tags(&resource.tags),
        made_from,
        resource,
        manifest,
        around,
        // A reserved address stays anyway; any other cannot be kept.
        unkept: Vec::new(),
        settling: false,
    }
}

/// Builds the body of a snapshot; `None` if it is not one of a Droplet.
fn snapshot(one: &schema::Snapshot) -> Option<ListedSnapshot> {
    let from = one.resource_id.parse().ok();
    let opts_out = |tag: &String| tag.eq_ignore_ascii_case("offhours:off");
    let (name, text) = one.name.split_once(' ').unwrap_or((&one.name, ""));
    let named = name.strip_prefix(PREFIX);
    let (of, mark) = named.and_then(|name| name.rsplit_once('.')).unzip();
    let seen = SeenSnapshot {
        id: one.id.parse().ok()?,
        mark: mark.map(|mark| Mark(mark.to_owned())),
        from: from.map(|id| ResourceId::Droplet(DropletId(id))),
        // A snapshot may be listed before it is in any region.
        state: if one.regions.is_empty() {
            SnapshotState::Creating
        } else {
            SnapshotState::Available
        },
        created_at: None,
        centi_gb: hundredths(&one.size_gigabytes),
        disk_gib: one.min_disk_size,
        architecture: None,
        regions: Some(one.regions.clone()),
        protected: None,
        opted_out: one.tags.iter().any(opts_out),
    };
    let of = of.map(str::to_owned);
    Some(ListedSnapshot { of, origin: origin(text), made_at: one.created_at, seen })
}

/// The name of a machine's snapshot. What it says of the machine is written in the characters of
/// the names that the API's description shows: no tag contains a dot (DOSPEC).
pub(super) fn snapshot_name(label: &Label, machine: &Resource) -> String {
    let name = format!("{PREFIX}{}.{}", of_label(&label.of), label.mark);
    match Origin::of(machine) {
        Some(origin) => format!("{name} {}", origin.to_string().replace(':', ".")),
        None => name,
    }
}

/// Parses what the name of a snapshot says of its machine.
fn origin(text: &str) -> Option<Origin> {
    let mut origin = Origin::parse(text)?;
    let tags = origin.tags.take();
    let with_colons =
        |tags: BTreeSet<String>| tags.iter().map(|tag| tag.replace('.', ":")).collect();
    Some(Origin { tags: tags.map(with_colons), ..origin })
}

/// The tag of every machine we create for a resource. A tag may contain neither `/` nor `.`
/// (DOSPEC).
pub(super) fn of_tag(of: &ResourceId) -> String {
    format!("{OF_LABEL}:{}", of_label(of).replace('.', "-"))
}

pub(super) fn droplet_id(id: &ResourceId) -> Result<u64, ProviderError> {
    let ResourceId::Droplet(DropletId(number)) = id else {
        return Err(ProviderError::foreign(id));
    };
    Ok(*number)
}
