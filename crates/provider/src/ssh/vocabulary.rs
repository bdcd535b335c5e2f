//! What a host reports about its machines, in the vocabulary that all accounts share.

use domain::{
    MachineName, ResourceId, ResourceKind,
    configuration::AccountKind,
    resource::{Busy, MachineFacts, MachineSize, Power, Resource, Size},
    ssh::SshMachine,
    step::{Accepted, Step},
};
use jiff::Timestamp;

use super::{AT_ONCE, Api, MachineCommand, Observed, Output, State, UnknownCause, refusal};
use crate::{
    cloud::{Cloud, Hibernates},
    error::{ChangeError, ProviderError},
    pages::{self, Listed, Reading},
};

/// How many machines further on a list begins after a minute: a prime, because the number of machines
/// must not divide it.
const STRIDE: usize = 9_973;

impl Cloud for Api {
    fn kind(&self) -> AccountKind {
        AccountKind::Ssh
    }

    /// Observes every machine by itself. Those whose turn does not come in time are unknown.
    async fn list(
        &self,
        kinds: &[ResourceKind],
        reading: Reading<'_>,
    ) -> Result<Listed, ProviderError> {
        let mut listed = Listed::default();
        if kinds.contains(&ResourceKind::Machine) {
            let look = async |(name, machine)| {
                if reading.begin().is_some() {
                    return Ok(vec![self.observe(name, machine).await?]);
                }
                let state = State::Unknown(UnknownCause::NoTime);
                Ok(vec![Observed { name: name.clone(), state, output: Output::default() }])
            };
            let to_the_end = Reading { until: None, ..reading };
            let machines = self.in_turn((reading.now)());
            let looks = pages::each(to_the_end, AT_ONCE, machines, look).await;
            let looks = looks.map(|read| read.map(|seen| Ok(self.resource(seen))));
            listed.add(ResourceKind::Machine, looks)?;
        }
        listed.or_error()
    }

    /// Observes every machine, which checks that the host accepts the key.
    async fn try_reading(&self, kind: ResourceKind) -> Result<(), ProviderError> {
        if kind == ResourceKind::Machine {
            self.observe_all().await?;
        }
        Ok(())
    }

    async fn status(&self, id: &ResourceId) -> Result<Option<Resource>, ProviderError> {
        let seen = self.observe_one(machine_name(id)?).await?;
        let missing = || refusal(None, "unknown-machine", "the account has no such machine");
        let seen = seen.ok_or_else(|| ProviderError::NotFound(missing()))?;
        Ok(Some(self.resource(seen)))
    }

    async fn send(&self, resource: &Resource, step: &Step) -> Result<Accepted, ChangeError> {
        let (name, command) = command(resource, step)?;
        self.run_command(name, command).await?;
        Ok(Accepted::default())
    }

    fn shown(&self, resource: &Resource, step: &Step) -> Result<String, ProviderError> {
        let (name, command) = command(resource, step)?;
        Ok(command.describe(name))
    }
}

impl Hibernates for Api {}

impl Api {
    /// Returns all machines, each minute beginning with another one, so that those for which one list
    /// has no time come early in the next.
    fn in_turn(&self, now: Timestamp) -> impl Iterator<Item = (&MachineName, &SshMachine)> {
        let machines = &self.login.machines;
        let minute = usize::try_from(now.as_second() / 60).unwrap_or_default();
        let first = minute.wrapping_mul(STRIDE) % machines.len().max(1);
        machines.iter().cycle().skip(first).take(machines.len())
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

fn command<'r>(
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
    let ResourceId::Machine(name) = id else {
        return Err(ProviderError::foreign(id));
    };
    Ok(name)
}
