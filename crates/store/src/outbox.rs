//! Events that wait to be accepted by the targets of `[notify]`, and which targets fail.

use std::collections::BTreeMap;

use domain::TargetName;

use crate::{
    ReadItems, Reader, Store, StoreError, failed,
    item::{self, FailingTarget, Item, Stored as _, WaitingEvent},
    write::Expected,
};

impl Reader {
    /// Reads the events that wait, by their keys: for each target, the oldest first.
    pub async fn waiting_events(
        &self,
    ) -> Result<ReadItems<BTreeMap<String, WaitingEvent>>, StoreError> {
        self.by_name(item::OUTBOX, WaitingEvent::name).await
    }

    /// Reads which targets fail.
    pub async fn failing_targets(
        &self,
    ) -> Result<ReadItems<BTreeMap<TargetName, FailingTarget>>, StoreError> {
        self.by_name(item::TARGET, |one: &FailingTarget| one.target.clone()).await
    }
}

impl Store {
    /// Adds an event that waits, or replaces it after a try.
    pub async fn save_waiting_event(&self, event: &WaitingEvent) -> Result<(), StoreError> {
        self.save_for_target(event.to_item()?).await
    }

    /// Records that a target fails.
    pub async fn save_failing_target(&self, target: &FailingTarget) -> Result<(), StoreError> {
        self.save_for_target(target.to_item()?).await
    }

    /// Deletes an event that a target has accepted, or will not get.
    pub async fn delete_waiting_event(&self, event: &WaitingEvent) -> Result<(), StoreError> {
        self.delete_for_target(event.key()).await
    }

    /// Records that a target works again, or is not configured any more.
    pub async fn delete_failing_target(&self, target: &TargetName) -> Result<(), StoreError> {
        self.delete_for_target(item::target_key(target)).await
    }

    /// Writes an item that one process alone writes.
    async fn save_for_target(&self, item: Item) -> Result<(), StoreError> {
        let put = Expected::anything().put(&self.tables.accounts, item);
        self.write("write what is to be sent", put).await?;
        Ok(())
    }

    async fn delete_for_target(&self, key: Item) -> Result<(), StoreError> {
        let request = self.client.delete_item().table_name(&self.tables.accounts);
        let deleted = request.set_key(Some(key)).send().await;
        deleted.map(drop).map_err(failed("delete what was sent"))
    }
}
