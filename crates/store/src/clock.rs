//! The store's clock: the one clock that all writers can agree on.

use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::{
    config::{
        ConfigBag, Intercept, RuntimeComponents,
        interceptors::BeforeDeserializationInterceptorContextRef,
    },
    error::BoxError,
    types::AttributeValue,
};
use jiff::{Timestamp, fmt::rfc2822};

use crate::{Reader, StoreError, failed, item};

impl Reader {
    /// Returns the present instant by the store's clock, to the second: the `Date` of a response.
    /// `None` if the engine sends none.
    pub async fn clock(&self) -> Result<Option<Timestamp>, StoreError> {
        let date = Date::default();
        self.client
            .get_item()
            .table_name(&self.tables.schedules)
            .key("generation_key", AttributeValue::S(item::HEAD.to_owned()))
            .key("name", AttributeValue::S(item::HEAD.to_owned()))
            .customize()
            .interceptor(date.clone())
            .send()
            .await
            .map_err(failed("reach the store"))?;
        let heard = date.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(*heard)
    }
}

/// Reads the `Date` of the response.
#[derive(Debug, Clone, Default)]
struct Date(Arc<Mutex<Option<Timestamp>>>);

impl Intercept for Date {
    fn name(&self) -> &'static str {
        "Date"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let heard = context.response().headers().get("date");
        let heard = heard.and_then(|text| rfc2822::parse(text).ok());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            heard.map(|zoned| zoned.timestamp());
        Ok(())
    }
}
