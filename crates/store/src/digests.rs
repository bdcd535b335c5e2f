//! Which edge of each schedule was reported last, so that each is reported once, however many ticks
//! count it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::ScheduleName;
use jiff::Timestamp;

use crate::{
    ReadItems, Reader, Store, StoreError,
    item::{EdgeReport, ReportedEdge, Stored as _},
    write::WriteRefusal,
};

/// What this process knows about the latest edge of each schedule. It saves requests; nothing
/// relies on it.
pub(crate) type Memory = Arc<Mutex<BTreeMap<ScheduleName, KnownEdge>>>;

/// What this process knows about an edge.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownEdge {
    edge: Timestamp,
    /// Nothing needs to be done about it before this instant.
    until: Timestamp,
}

impl Reader {
    /// Reads which edge of each schedule was reported last.
    pub async fn reported_edges(
        &self,
        report: EdgeReport,
    ) -> Result<ReadItems<BTreeMap<ScheduleName, ReportedEdge>>, StoreError> {
        self.by_name(report.partition(), |one: &ReportedEdge| one.schedule.clone()).await
    }
}

impl Store {
    /// Claims the report of an edge. Returns true to the only caller that may report it: a second
    /// claim is refused, and so is one for an earlier edge or turn.
    ///
    /// The claim comes before the report: two mails every evening are ignored by the third day, while
    /// a digest lost in a crash does no harm, because problems are reported by events of their own.
    ///
    /// If the response to an earlier try of this write was lost, `by` shows that the claim is ours.
    pub async fn claim_report(&self, claim: &ReportedEdge) -> Result<bool, StoreError> {
        let key = claim.key();
        let mut item = claim.to_item()?;
        item.retain(|name, _| !key.contains_key(name) && name != "format");
        let attributes = item.iter().map(|(name, value)| (name.as_str(), Some(value.clone())));
        let later = "(attribute_not_exists(#edge_ms) OR #edge_ms < :edge_ms \
                     OR (#edge_ms = :edge_ms AND #turn < :turn))";
        let what = "write which edge was reported";
        let claimed = match self.update(what, key, attributes, &[later]).await? {
            None => true,
            Some(WriteRefusal::Replaced(Some(standing))) => {
                ReportedEdge::of_item(standing).is_ok_and(|standing| standing == *claim)
            }
            Some(WriteRefusal::Replaced(None) | WriteRefusal::Conflict) => false,
        };
        if claim.report == EdgeReport::Digest {
            self.postpone_digest(&claim.schedule, claim.edge, Timestamp::MAX);
        }
        Ok(claimed)
    }

    /// Reports whether this process knows of nothing that keeps an edge from being counted now.
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
    pub fn postpone_digest(&self, schedule: &ScheduleName, edge: Timestamp, until: Timestamp) {
        let mut memory = self.memory();
        let is_newer = memory.get(schedule).is_none_or(|known| known.edge <= edge);
        if is_newer {
            memory.insert(schedule.clone(), KnownEdge { edge, until });
        }
    }

    fn memory(&self) -> MutexGuard<'_, BTreeMap<ScheduleName, KnownEdge>> {
        self.digests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
