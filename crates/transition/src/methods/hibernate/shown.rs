//! What people and other rules are shown of a machine that is, or was, hibernated.

use domain::{
    hibernation::{
        Attachment, Hibernation, HibernationState, Manifest, OF_LABEL, ObservedMachine, Sight,
        Unrecorded,
    },
    record::{Ask, Direction, Record},
    resource::{Busy, Power, Resource, Size},
    step::Step,
};

/// Returns what a machine that we created lacks because its cloud did not give it back.
#[must_use]
pub fn withheld(kept: &Hibernation, machine: &ObservedMachine) -> Vec<Attachment> {
    let (Some(had), Some(has)) = (&kept.manifest, &machine.manifest) else {
        return kept.refused.clone();
    };
    let missing = had.missing_in(has).into_iter();
    missing.filter(|one| kept.refused.contains(one)).collect()
}

/// Returns what a machine is to be created from anew, if its creation was refused.
#[must_use]
pub fn refused_creation(record: &Record) -> Option<&Manifest> {
    let request = record.request_towards(Direction::Start)?;
    let creates = matches!(request.step, Step::Create { .. });
    let failed = creates && matches!(request.ask, Ask::Failed { .. });
    let kept = record.hibernation.as_deref()?;
    let manifest = kept.manifest.as_ref();
    manifest.filter(|_| failed && request.problem.is_some())
}

/// A record that was restored from a backup.
const OLDER: &str = "the record is older than the cloud";

/// Says why a person is needed, if one is. A machine that was listed is seen without a sight.
#[must_use]
pub fn problem_of(kept: &Hibernation, sight: Option<&Sight>) -> Option<String> {
    let Some(sight) = sight else {
        return incomplete(&kept.refused);
    };
    let state = sight.hibernation_state(kept);
    match state {
        HibernationState::SnapshotLost
        | HibernationState::Duplicated
        | HibernationState::NameTaken(_)
        | HibernationState::Outdated(_) => Some(problem(state)),
        HibernationState::Present(machine) => incomplete(&withheld(kept, machine)),
        HibernationState::Hibernated(_)
        | HibernationState::BeingCreated(_)
        | HibernationState::Created(_)
        | HibernationState::Gone => None,
    }
}

fn incomplete(withheld: &[Attachment]) -> Option<String> {
    let named: Vec<_> = withheld.iter().map(Attachment::to_string).collect();
    (!named.is_empty()).then(|| {
        format!(
            "it was recreated without {}, which its cloud did not give back: each start tries \
             again",
            named.join(", ")
        )
    })
}

/// Says why a person is needed.
#[must_use]
pub fn problem(state: HibernationState<'_>) -> String {
    match state {
        HibernationState::Duplicated => {
            "two machines were made of it: delete the one that is not needed".to_owned()
        }
        HibernationState::NameTaken(other) => format!(
            "{} has its name, or its tag or label `{OF_LABEL}`, and Offhours did not make it: rename \
             it, or remove the tag or label",
            other.resource.id
        ),
        HibernationState::Outdated(Unrecorded::Snapshot(snapshot)) => {
            format!("{OLDER}: snapshot {} is not in it", snapshot.id)
        }
        HibernationState::Outdated(Unrecorded::Machine(machine)) => {
            format!("{OLDER}: {} is not in it", machine.resource.id)
        }
        HibernationState::Outdated(Unrecorded::Deletion(snapshot)) => {
            format!("{OLDER}, or a person deleted the machine that snapshot {} holds", snapshot.id)
        }
        HibernationState::Present(_)
        | HibernationState::Hibernated(_)
        | HibernationState::BeingCreated(_)
        | HibernationState::Created(_)
        | HibernationState::SnapshotLost
        | HibernationState::Gone => {
            "the snapshot that it is recreated from is missing, or the token is another project's"
                .to_owned()
        }
    }
}

/// Returns what a look shows of a resource: the machine, or what stands for it while there is none.
///
/// `None` if it is gone and was not deleted by us.
#[must_use]
pub fn shown(record: &Record, sight: &Sight) -> Option<Resource> {
    let never = Hibernation::of(record.reference.id.clone());
    let kept = record.hibernation.as_deref().unwrap_or(&never);
    let state = sight.hibernation_state(kept);
    let busy = match state {
        HibernationState::Present(machine)
        | HibernationState::BeingCreated(machine)
        | HibernationState::Created(machine) => {
            let mut resource = machine.resource.clone();
            // A snapshot that was given up is not waited for: a cloud that is busy refuses.
            if kept.has_given_up() && resource.power != Power::Between {
                resource.busy = None;
            }
            return Some(resource);
        }
        HibernationState::Gone => return None,
        HibernationState::Hibernated(_) => None,
        HibernationState::SnapshotLost
        | HibernationState::Duplicated
        | HibernationState::NameTaken(_)
        | HibernationState::Outdated(_) => Some(Busy::Other(problem(state))),
    };
    let manifest = kept.manifest.clone();
    // A record that is older than its cloud may have none.
    let manifest = manifest.unwrap_or_else(|| Manifest {
        name: record.name.clone(),
        region: record.region.clone(),
        tags: record.tags.clone(),
        ..Manifest::default()
    });
    let mut tags = manifest.tags;
    if matches!(state, HibernationState::Hibernated(snapshot) if snapshot.opted_out) {
        tags.insert("offhours=off".to_owned());
    }
    Some(Resource {
        id: record.reference.id.clone(),
        name: manifest.name,
        cluster: None,
        tags,
        region: manifest.region,
        power: Power::Stopped,
        busy,
        size: Size::Machine(manifest.size),
        facts: domain::resource::MachineFacts::default(),
        unsupported: None,
    })
}
