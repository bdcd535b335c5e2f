//! A function that does nothing: what `lambda_runtime` itself costs. `make bench` compares ours
//! with it.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let nothing = async |_: LambdaEvent<Value>| Ok::<_, Error>(Value::Null);
    lambda_runtime::run(service_fn(nothing)).await
}
