//! A cache of reads: the engine would answer a repeated read the same way until its table is
//! written.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use serde_json::Value;

use super::PREFIX;

/// The answers since each table was last written. Clones share the same cache.
#[derive(Debug, Clone, Default)]
pub(super) struct Reads(Arc<Mutex<BTreeMap<String, HashMap<String, Bytes>>>>);

impl Reads {
    /// Returns the answer to a request: from the cache, or else from the engine.
    pub(super) fn answer<E>(
        &self,
        operation: &str,
        body: &str,
        engine: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        let tables = tables_in(body);
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let reads = matches!(operation, "Query" | "GetItem" | "BatchGetItem");
        let (true, [table]) = (reads, &tables[..]) else {
            for table in tables {
                answers.remove(table);
            }
            return engine();
        };
        let known = answers.entry((*table).to_owned()).or_default();
        // A client writes the names and values of an expression in any order.
        let request: Value = serde_json::from_str(body).unwrap_or_else(|_| body.into());
        let request = format!("{operation} {request}");
        match known.entry(request) {
            Entry::Occupied(known) => Ok(known.get().clone()),
            Entry::Vacant(unknown) => Ok(unknown.insert(engine()?).clone()),
        }
    }
}

/// Returns the tables that a request names, each once.
fn tables_in(body: &str) -> Vec<&str> {
    let names = body.split('"').filter(|text| text.starts_with(PREFIX));
    let mut tables: Vec<_> = names.collect();
    tables.sort_unstable();
    tables.dedup();
    tables
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Sends a request and reports whether it reached the engine.
    fn asks(reads: &Reads, operation: &str, body: &str) -> bool {
        let mut asked = false;
        let engine = || {
            asked = true;
            Ok::<_, Infallible>(Bytes::new())
        };
        reads.answer(operation, body, engine).unwrap();
        asked
    }

    #[test]
    fn a_read_reaches_the_engine_again_once_its_table_was_written() {
        let reads = Reads::default();
        let of = |table: &str| format!(r#"{{"TableName":"{PREFIX}{table}"}}"#);
        let both = format!("[{},{}]", of("history"), of("resources"));
        for table in ["history", "resources", "accounts"] {
            assert!(asks(&reads, "Query", &of(table)), "{table}");
            assert!(!asks(&reads, "Query", &of(table)), "{table}");
        }
        assert!(asks(&reads, "GetItem", &of("resources")), "another request");
        for _ in 0..2 {
            assert!(asks(&reads, "TransactWriteItems", &both));
        }
        assert!(!asks(&reads, "Query", &of("accounts")));
        assert!(asks(&reads, "Query", &of("history")));
        assert!(asks(&reads, "Query", &of("resources")));
        assert!(asks(&reads, "GetItem", &of("resources")));
    }

    #[test]
    fn a_read_whose_fields_are_in_another_order_is_the_same() {
        let reads = Reads::default();
        let body = format!(r#"{{"TableName":"{PREFIX}resources","Names":{{"a":"b","c":"d"}}}}"#);
        let other = format!(r#"{{"Names":{{"c":"d","a":"b"}},"TableName":"{PREFIX}resources"}}"#);
        assert!(asks(&reads, "Query", &body));
        assert!(!asks(&reads, "Query", &other));
    }

    #[test]
    fn what_fails_is_asked_again() {
        let reads = Reads::default();
        let body = format!(r#"{{"TableName":"{PREFIX}history"}}"#);
        let failed = reads.answer("Query", &body, || Err("failed"));
        assert_eq!(failed, Err("failed"));
        assert!(asks(&reads, "Query", &body));
    }
}
