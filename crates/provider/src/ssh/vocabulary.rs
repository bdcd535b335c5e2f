//! What a host reports about its machines, in the vocabulary that all accounts share.

use domain::{
    MachineName, ResourceId, ResourceKind,
    resource::{Busy, MachineFacts, MachineSize, Power, Resource, Size},
    step::Step,
};

use super::{AT_ONCE, Api, MachineCommand, Observed, State, refusal};
use crate::{
    Accepted,
    error::{ChangeError, ProviderError},
    pages::{self, Listed, Reading},
};

impl Api {
    /// Returns every machine, each from an observation of its own.
    pub(crate) async fn resources(
        &self,
        kinds: &[ResourceKind],
        reading: Reading<'_>,
    ) -> Result<Listed, ProviderError> {
        let mut listed = Listed::default();
        if kinds.contains(&ResourceKind::Machine) {
            let look = async |name| Ok(self.status(name).await?.into_iter().collect());
            let names = self.login.machines.keys();
            let looks = pages::each(reading, AT_ONCE, names, look).await;
            let looks = looks.map(|read| read.map(|seen| Ok(self.resource(seen))));
            listed.add(ResourceKind::Machine, looks)?;
        }
        listed.or_error()
    }

    /// Checks that the host accepts the key, by observing every machine.
    pub(crate) async fn try_reading(&self, kind: ResourceKind) -> Result<(), ProviderError> {
        if kind == ResourceKind::Machine {
            self.list().await?;
        }
        Ok(())
    }

    /// Observes one machine.
    pub(crate) async fn look(&self, id: &ResourceId) -> Result<Option<Resource>, ProviderError> {
        let seen = self.status(machine_name(id)?).await?;
        let missing = || refusal(None, "unknown-machine", "the account has no such machine");
        let seen = seen.ok_or_else(|| ProviderError::NotFound(missing()))?;
        Ok(Some(self.resource(seen)))
    }

    /// Sends one step as one command.
    pub(crate) async fn send_step(
        &self,
        resource: &Resource,
        step: &Step,
    ) -> Result<Accepted, ChangeError> {
        let (name, command) = command(resource, step)?;
        self.send(name, command).await?;
        Ok(Accepted::default())
    }

    fn resource(&self, seen: Observed) -> Resource {
        let machine = self.login.machines.get(&seen.name);
        let silent = seen.state == State::Silent;
        let (power, busy) = match seen.state {
            State::Running => (Power::Running, None),
            State::Stopped | State::Silent => (Power::Stopped, None),
            State::Unknown(why) => (Power::Between, Some(Busy::Other(why.to_string()))),
        };
        Resource {
            name: seen.name.to_string(),
            id: ResourceId::Machine(seen.name),
            cluster: None,
            tags: machine.map(|machine| machine.tags.clone()).unwrap_or_default(),
            region: String::new(),
            power,
            busy,
            size: Size::Machine(MachineSize::default()),
            facts: MachineFacts { silent, ..MachineFacts::default() },
            unsupported: None,
        }
    }
}

/// Returns the command that a step is sent as.
pub(crate) fn command<'r>(
    resource: &'r Resource,
    step: &Step,
) -> Result<(&'r MachineName, MachineCommand), ProviderError> {
    let command = match step {
        Step::On { .. } => MachineCommand::Start,
        Step::Off { gracefully: true } => MachineCommand::Stop,
        Step::Off { gracefully: false } => MachineCommand::Force,
        Step::Resize(_)
        | Step::KeepAddress(_)
        | Step::Snapshot(_)
        | Step::Protect { .. }
        | Step::Delete
        | Step::Create { .. }
        | Step::Attach(_)
        | Step::RemoveSnapshot(_) => return Err(ProviderError::foreign(&resource.id)),
    };
    Ok((machine_name(&resource.id)?, command))
}

fn machine_name(id: &ResourceId) -> Result<&MachineName, ProviderError> {
    match id {
        ResourceId::Machine(name) => Ok(name),
        ResourceId::Droplet(_)
        | ResourceId::Database(_)
        | ResourceId::NodePool(..)
        | ResourceId::Server(_) => Err(ProviderError::foreign(id)),
    }
}
