//! Which edge of each schedule was told of last: so that each is told of once, however many ticks
//! count it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use aws_sdk_dynamodb::{
    operation::update_item::UpdateItemError, types::ReturnValuesOnConditionCheckFailure,
};
use domain::ScheduleName;
use jiff::Timestamp;

use crate::{
    Found, Reader, Store, StoreError, Unreadable, failed,
    item::{self, Digested},
    write::KNOWN_FORMAT,
};

/// What this process knows of the latest edge of each schedule: it saves requests, and nothing
/// rests on it.
pub(crate) type Memory = Arc<Mutex<BTreeMap<ScheduleName, Known>>>;

/// What is known of an edge.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    edge: Timestamp,
    /// Nothing is to be done about it before this.
    until: Timestamp,
}

impl Reader {
    /// Which edge of each schedule was told of last.
    pub async fn digested(&self) -> Result<Found<BTreeMap<ScheduleName, Digested>>, StoreError> {
        let mut found = Found::<BTreeMap<_, _>>::default();
        for item in self.partition(&self.tables.accounts, item::DIGEST).await? {
            let reference = item::name(&item);
            match item::to_digested(item) {
                Ok(one) => {
                    found.read.insert(one.schedule.clone(), one);
                }
                Err(source) => found.unreadable.push(Unreadable { reference, source }),
            }
        }
        Ok(found)
    }
}

impl Store {
    /// Claims the telling of an edge: true for the one who may tell of it. Whoever comes second is
    /// refused, and so is whoever comes with an earlier edge.
    ///
    /// When an earlier answer to this very write was lost, the claim is ours by its `by`.
    pub async fn claim_digest(&self, claim: &Digested) -> Result<bool, StoreError> {
        let mut update = self
            .client
            .update_item()
            .table_name(&self.tables.accounts)
            .set_key(Some(item::digest_key(&claim.schedule)))
            .condition_expression(format!(
                "{KNOWN_FORMAT} AND (attribute_not_exists(#edge_ms) OR #edge_ms < :edge_ms)"
            ))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let keys = item::digest_key(&claim.schedule);
        let mut fields: Vec<_> = item::of_digested(claim)?.into_iter().collect();
        fields.retain(|(field, _)| !keys.contains_key(field));
        let mut set = Vec::new();
        for (field, value) in fields {
            set.push(format!("#{field} = :{field}"));
            update = update
                .expression_attribute_values(format!(":{field}"), value)
                .expression_attribute_names(format!("#{field}"), field);
        }
        let update = update.update_expression(format!("SET {}", set.join(", ")));
        let claimed = match update.send().await {
            Ok(_) => true,
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(refused)) => {
                    let stored = refused.item.clone().map(item::to_digested);
                    matches!(stored, Some(Ok(stored)) if stored == *claim)
                }
                Some(_) | None => return Err(failed("write which edge was told of")(error)),
            },
        };
        self.leave_digest(&claim.schedule, claim.edge, Timestamp::MAX);
        Ok(claimed)
    }

    /// Whether this process knows of nothing that keeps an edge from being counted now.
    #[must_use]
    pub fn digest_may_be_due(
        &self,
        schedule: &ScheduleName,
        edge: Timestamp,
        now: Timestamp,
    ) -> bool {
        let memory = self.memory();
        let known = memory.get(schedule).filter(|known| known.edge >= edge);
        known.is_none_or(|known| known.edge == edge && known.until <= now)
    }

    /// Remembers, in this process, that an edge need not be counted before an instant.
    pub fn leave_digest(&self, schedule: &ScheduleName, edge: Timestamp, until: Timestamp) {
        let mut memory = self.memory();
        let is_newer = memory.get(schedule).is_none_or(|known| known.edge <= edge);
        if is_newer {
            memory.insert(schedule.clone(), Known { edge, until });
        }
    }

    fn memory(&self) -> MutexGuard<'_, BTreeMap<ScheduleName, Known>> {
        self.digests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
