//! Transactions that a client sends again with the same token: they are answered once more, but not
//! carried out again.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use dynoxide::DynoxideError;
use serde_json::Value;

/// How many answers are kept. A client that gets none asks again within seconds.
const KEPT: usize = 1000;

/// The answers to the latest transactions. The engine keeps its own for ten minutes, and goes through
/// all of them at each transaction: with ten thousand, that takes longer than the transaction.
#[derive(Debug, Clone, Default)]
pub(super) struct Transactions(Arc<Mutex<Answers>>);

#[derive(Debug, Default)]
struct Answers {
    /// By token: the request without it, and the answer.
    known: HashMap<String, (String, Bytes)>,
    /// The tokens, oldest first.
    tokens: VecDeque<String>,
}

impl Transactions {
    /// Answers a transaction: as before, or else from the engine.
    pub(super) fn answer(
        &self,
        body: &str,
        engine: impl FnOnce(&str) -> Result<Bytes, DynoxideError>,
    ) -> Result<Bytes, DynoxideError> {
        let mut request: Value = serde_json::from_str(body).unwrap_or_default();
        let token = request.as_object_mut().and_then(|all| all.remove("ClientRequestToken"));
        let Some(Value::String(token)) = token else {
            return engine(body);
        };
        let request = request.to_string();
        // Locked throughout, so that two of one token are not both carried out.
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, answer)) = answers.known.get(&token) {
            if *known == request {
                return Ok(answer.clone());
            }
            let reason = "another transaction had this token".to_owned();
            return Err(DynoxideError::IdempotentParameterMismatchException(reason));
        }
        let answer = engine(&request)?;
        if answers.tokens.len() == KEPT
            && let Some(oldest) = answers.tokens.pop_front()
        {
            answers.known.remove(&oldest);
        }
        answers.known.insert(token.clone(), (request, answer.clone()));
        answers.tokens.push_back(token);
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a transaction, and returns what the engine is asked, if it is.
    fn sends(transactions: &Transactions, token: usize, table: &str) -> Option<String> {
        let body = format!(r#"{{"TableName":"{table}","ClientRequestToken":"{token}"}}"#);
        let mut asked = None;
        let engine = |body: &str| {
            asked = Some(body.to_owned());
            Ok(Bytes::from(table.to_owned()))
        };
        assert_eq!(transactions.answer(&body, engine).unwrap(), table);
        asked
    }

    #[test]
    fn one_that_is_sent_again_is_answered_and_not_carried_out() {
        let transactions = Transactions::default();
        let carried_out = Some(r#"{"TableName":"a"}"#.to_owned());
        assert_eq!(sends(&transactions, 0, "a"), carried_out);
        assert_eq!(sends(&transactions, 0, "a"), None);
        assert_eq!(sends(&transactions, 1, "a"), carried_out);
        let other = r#"{"TableName":"b","ClientRequestToken":"0"}"#;
        let refused = transactions.answer(other, |_| panic!("it was carried out"));
        assert!(matches!(refused, Err(DynoxideError::IdempotentParameterMismatchException(_))));
        for token in 2..=KEPT {
            sends(&transactions, token, "a");
        }
        assert_eq!(sends(&transactions, 1, "a"), None);
        assert_eq!(sends(&transactions, 0, "a"), carried_out, "the oldest was dropped");
    }

    #[test]
    fn what_fails_is_carried_out_when_it_is_sent_again() {
        let transactions = Transactions::default();
        let body = r#"{"ClientRequestToken":"1"}"#;
        let fails = |_: &str| Err(DynoxideError::InternalServerError("failed".to_owned()));
        assert!(transactions.answer(body, fails).is_err());
        assert!(transactions.answer(body, |_| Ok(Bytes::new())).is_ok());
    }
}
