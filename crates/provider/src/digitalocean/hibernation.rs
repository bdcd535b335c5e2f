//! Droplets kept as snapshots, observed (DOSPEC).

use std::collections::BTreeSet;

use domain::{
    DropletId, ResourceId,
    hibernation::{
        BackupPolicy, Balanced, Hibernation, Manifest, Mark, OF_LABEL, ObservedMachine,
        SeenSnapshot, Sight, SnapshotState, is_own_label, of_label,
    },
    resource::{ActionId, MachineSize, Size},
};

use super::{
    Api, droplet, schema,
    schema::{DropletWithAttachments, ips},
    surroundings::{Firewall, InProject, LoadBalancer},
};
use crate::{
    error::ProviderError,
    hibernation_lookup::{
        HibernationLookup, ListedSnapshot, ListedSnapshots, hundredths, replace_key,
    },
    http::Request,
};

/// What the names of our snapshots begin with.
const PREFIX: &str = "offhours.";

/// The entries of `features` that are switched on when a Droplet is created.
const FEATURES: [&str; 3] = ["ipv6", "monitoring", "droplet_agent"];

impl Api {
    /// Reads the machine after its snapshots and attached resources, so that conclusions rest on
    /// its latest state.
    pub(super) async fn read_sight(
        &self,
        lookup: HibernationLookup<'_>,
    ) -> Result<Sight, ProviderError> {
        let snapshots = self.snapshots_of(lookup).await?;
        let create_failed = self.has_failed(lookup.making).await?;
        let path = format!("/v2/droplets?tag_name={}", of_tag(lookup.of));
        let mut others: Vec<DropletWithAttachments> = self.things(&path).await?;
        let attachments = match lookup.present.filter(|_| lookup.attached) {
            Some(id) => Some(self.attachments(droplet_id(id)?).await?),
            None => None,
        };
        let machine = match lookup.present {
            Some(id) => self.with_attachments(id).await?,
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
        let mut known: BTreeSet<u64> = machine.iter().map(|one| one.droplet.id).collect();
        others.retain(|one| known.insert(one.droplet.id));
        let others = others.into_iter().map(|whole| body(whole, None));
        Ok(Sight {
            machine: machine.map(|whole| body(whole, attachments)),
            snapshots,
            others: others.collect(),
            create_failed,
        })
    }

    /// Drops from a Droplet to be created what the account no longer has.
    pub(super) async fn keep_existing(
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

    /// Lists the snapshots of all Droplets. The list shows no status, and only what is complete.
    pub(super) async fn list_snapshots(&self) -> Result<ListedSnapshots, ProviderError> {
        let path = "/v2/snapshots?resource_type=droplet";
        let listed: Vec<schema::Snapshot> = self.things(path).await?;
        Ok(ListedSnapshots(listed.iter().filter_map(snapshot).collect()))
    }

    /// Returns the snapshots of a machine. Those that matter are read as images as well, because
    /// only images have a status.
    async fn snapshots_of(
        &self,
        lookup: HibernationLookup<'_>,
    ) -> Result<Vec<SeenSnapshot>, ProviderError> {
        let mut listed = self.list_snapshots().await?;
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

    /// Reads what is attached to a Droplet but not shown on it.
    async fn attachments(&self, droplet: u64) -> Result<Manifest, ProviderError> {
        let mut reserved = self.reserved("/v2/reserved_ips", droplet).await?;
        reserved.extend(self.reserved("/v2/reserved_ipv6", droplet).await?);
        let firewalls: Vec<Firewall> = self.things("/v2/firewalls").await?;
        let firewalls = firewalls.into_iter();
        let firewalls = firewalls.filter(|one| one.droplet_ids.contains(&droplet));
        let balancers: Vec<LoadBalancer> = self.things("/v2/load_balancers").await?;
        let balancers = balancers.into_iter().filter(|one| one.names(droplet));
        let project = match self.project_of(droplet).await? {
            InProject::Of(project) => Some(project.id.0),
            InProject::Unknown | InProject::None => None,
        };
        Ok(Manifest {
            floating_ips: reserved.into_iter().collect(),
            firewalls: firewalls.map(|one| one.id.0).collect(),
            load_balancers: balancers
                .map(|one| Balanced { id: one.id.0, privately: false })
                .collect(),
            project,
            backup_policy: self.backup_policy(droplet).await?,
            ..Manifest::default()
        })
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

/// Builds the body of a Droplet, with a manifest if its attached resources were read.
fn body(whole: DropletWithAttachments, attachments: Option<Manifest>) -> ObservedMachine {
    let made_from = whole.image.as_ref().and_then(|image| image.id);
    let resource = droplet(whole.droplet);
    let own = |tag: &&String| !is_own_label(tag);
    let size = match &resource.size {
        Size::Machine(size) => size.clone(),
        Size::Database(_) | Size::NodePool(_) => MachineSize::default(),
    };
    let backups = whole.features.contains("backups");
    let mut features = whole.features;
    features.retain(|feature| FEATURES.contains(&feature.as_str()));
    let manifest = attachments.map(|attachments| Manifest {
        name: resource.name.clone(),
        region: resource.region.clone(),
        tags: resource.tags.iter().filter(own).cloned().collect(),
        size,
        volumes: whole.volume_ids,
        vpc: whole.vpc_uuid,
        features,
        backups,
        backup_policy: attachments.backup_policy.filter(|_| backups),
        private_only: ips(&whole.networks.v4, "public").next().is_none(),
        ..attachments
    });
    ObservedMachine {
        mark: Mark::in_tags(&resource.tags),
        made_from,
        resource,
        manifest,
        // A reserved address stays anyway; any other cannot be kept.
        unkept: Vec::new(),
        settling: false,
    }
}

/// Builds the body of a snapshot; `None` if it is not one of a Droplet.
fn snapshot(one: &schema::Snapshot) -> Option<ListedSnapshot> {
    let from = one.resource_id.parse().ok();
    let opts_out = |tag: &String| tag.eq_ignore_ascii_case("offhours:off");
    let named = one.name.strip_prefix(PREFIX);
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
    Some(ListedSnapshot { of, seen })
}

/// The name of a machine's snapshot.
pub(super) fn snapshot_name(of: &ResourceId, mark: &Mark) -> String {
    format!("{PREFIX}{}.{mark}", of_label(of))
}

/// The tag of every machine we create for a resource. A tag may contain neither `/` nor `.`
/// (DOSPEC).
pub(super) fn of_tag(of: &ResourceId) -> String {
    format!("{OF_LABEL}:{}", of_label(of).replace('.', "-"))
}

pub(super) fn droplet_id(id: &ResourceId) -> Result<u64, ProviderError> {
    match id {
        ResourceId::Droplet(DropletId(number)) => Ok(*number),
        ResourceId::Server(_)
        | ResourceId::Database(_)
        | ResourceId::NodePool(..)
        | ResourceId::Machine(_) => Err(ProviderError::foreign(id)),
    }
}
