//! The floor for poll-status, stop and start in `make bench`: a function that makes their requests
//! about one Droplet, with the same clients, and does nothing else.

use std::{env, sync::OnceLock};

use aws_sdk_dynamodb::{Client, types::AttributeValue};
use environment::aws;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;

struct Floor {
    dynamodb: Client,
    cloud: reqwest::Client,
    prefix: String,
    droplet: String,
    token: String,
    /// Set once the configuration was read, which the functions keep.
    read: OnceLock<()>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let floor = Floor {
        dynamodb: Client::new(&aws::config().await),
        cloud: provider::http_client()?,
        prefix: env::var("OFFHOURS_TABLE_PREFIX")?,
        droplet: format!("{}/v2/droplets/1", env::var("OFFHOURS_DIGITALOCEAN_URL")?),
        token: env::var("OFFHOURS_BENCH_TOKEN")?,
        read: OnceLock::new(),
    };
    lambda_runtime::run(service_fn(async |_: LambdaEvent<Value>| floor.ask().await)).await
}

impl Floor {
    async fn ask(&self) -> Result<Value, Error> {
        tokio::try_join!(
            self.partition("schedules", "head"),
            self.partition("schedules", "override")
        )?;
        if self.read.set(()).is_ok() {
            self.partition("schedules", "generation#000000000001").await?;
            self.partition("accounts", "generation#000000000001").await?;
        }
        let record = self.dynamodb.get_item().table_name(format!("{}resources", self.prefix));
        let record = record
            .key("account", AttributeValue::S("do-main".to_owned()))
            .key("resource", AttributeValue::S("droplet/1".to_owned()))
            .consistent_read(true);
        record.send().await?;
        let droplet = self.cloud.get(&self.droplet).bearer_auth(&self.token).send().await?;
        droplet.error_for_status()?.bytes().await?;
        Ok(Value::Null)
    }

    async fn partition(&self, table: &str, key: &str) -> Result<(), Error> {
        let partition = self.dynamodb.query().table_name(format!("{}{table}", self.prefix));
        let partition = partition
            .key_condition_expression("#key = :key")
            .expression_attribute_names("#key", "generation_key")
            .expression_attribute_values(":key", AttributeValue::S(key.to_owned()))
            .consistent_read(true);
        partition.send().await?;
        Ok(())
    }
}
