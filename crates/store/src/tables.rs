//! Making the tables, for engines that have none yet. At AWS the template makes them.

use aws_sdk_dynamodb::{
    operation::create_table::CreateTableError,
    types::{
        AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType,
        Projection, ProjectionType, ScalarAttributeType,
    },
};

use crate::{Store, StoreError, failed, item};

/// A table: its name, its partition and sort keys.
type Layout<'a> = (&'a String, &'a str, &'a str);

impl Store {
    /// Creates those of the four tables that do not exist.
    pub async fn create_tables(&self) -> Result<(), StoreError> {
        let tables = &self.tables;
        let layouts: [Layout; 4] = [
            (&tables.schedules, "generation_key", "name"),
            (&tables.accounts, "generation_key", "name"),
            (&tables.resources, "account", "resource"),
            (&tables.history, "reference", "transition"),
        ];
        for layout in layouts {
            self.create_table(layout).await?;
        }
        Ok(())
    }

    async fn create_table(&self, (name, partition, sort): Layout<'_>) -> Result<(), StoreError> {
        let what = "create a table";
        let build = |error: aws_sdk_dynamodb::error::BuildError| {
            StoreError::Dynamo(what, Box::new(error.into()))
        };
        let string = |name| {
            AttributeDefinition::builder()
                .attribute_name(name)
                .attribute_type(ScalarAttributeType::S)
                .build()
        };
        let key = |name, key_type| {
            KeySchemaElement::builder()
                .attribute_name(name)
                .key_type(key_type)
                .build()
        };
        let mut request = self
            .client
            .create_table()
            .table_name(name)
            .billing_mode(BillingMode::PayPerRequest)
            .attribute_definitions(string(partition).map_err(build)?)
            .attribute_definitions(string(sort).map_err(build)?)
            .key_schema(key(partition, KeyType::Hash).map_err(build)?)
            .key_schema(key(sort, KeyType::Range).map_err(build)?);
        if *name == self.tables.resources {
            let number = AttributeDefinition::builder()
                .attribute_name("due_ms")
                .attribute_type(ScalarAttributeType::N)
                .build();
            let index = GlobalSecondaryIndex::builder()
                .index_name(item::DUE_INDEX)
                .key_schema(key("due", KeyType::Hash).map_err(build)?)
                .key_schema(key("due_ms", KeyType::Range).map_err(build)?)
                .projection(
                    Projection::builder()
                        .projection_type(ProjectionType::All)
                        .build(),
                )
                .build();
            request = request
                .attribute_definitions(string("due").map_err(build)?)
                .attribute_definitions(number.map_err(build)?)
                .global_secondary_indexes(index.map_err(build)?);
        }
        match request.send().await {
            Ok(_) => Ok(()),
            Err(error) => match error.as_service_error() {
                Some(CreateTableError::ResourceInUseException(_)) => Ok(()),
                Some(_) | None => Err(failed(what)(error)),
            },
        }
    }
}
