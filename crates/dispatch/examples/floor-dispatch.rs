//! The floor for dispatch in `make bench`: a function that makes the one request of a tick in which
//! nothing is due, with the same client, and does nothing else.

use aws_sdk_dynamodb::{Client, types::AttributeValue};
use environment::aws;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let resources = format!("{}resources", std::env::var("OFFHOURS_TABLE_PREFIX")?);
    let dynamodb = Client::new(&aws::config().await);
    let tick = async |_: LambdaEvent<Value>| {
        let due = dynamodb.query().table_name(&resources).index_name("due");
        let due = due
            .key_condition_expression("#due = :due AND due_ms <= :now")
            .expression_attribute_names("#due", "due")
            .expression_attribute_values(":due", AttributeValue::S("due".to_owned()))
            .expression_attribute_values(":now", AttributeValue::N("1".to_owned()));
        due.send().await?;
        Ok::<_, Error>(Value::Null)
    };
    lambda_runtime::run(service_fn(tick)).await
}
