//! Creating the tables, for engines that have none yet. On AWS the template creates them.

use aws_sdk_dynamodb::{
    operation::create_table::CreateTableError,
    types::{
        AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType,
        Projection, ProjectionType, ScalarAttributeType,
    },
};

use crate::{Store, StoreError, failed, item};

impl Store {
    /// Creates those of the four tables that do not exist.
    pub async fn create_tables(&self) -> Result<(), StoreError> {
        let tables = &self.tables;
        self.create_table(&tables.schedules, "generation_key", "name").await?;
        self.create_table(&tables.accounts, "generation_key", "name").await?;
        self.create_table(&tables.resources, "account", "resource").await?;
        self.create_table(&tables.history, "reference", "transition").await
    }

    async fn create_table(
        &self,
        name: &str,
        partition: &str,
        sort: &str,
    ) -> Result<(), StoreError> {
        let attribute = |name: &str, of_type| {
            AttributeDefinition::builder()
                .attribute_name(name)
                .attribute_type(of_type)
                .build()
                .expect("an attribute has a name and a type")
        };
        let string = |name| attribute(name, ScalarAttributeType::S);
        let key = |name, key_type| {
            KeySchemaElement::builder()
                .attribute_name(name)
                .key_type(key_type)
                .build()
                .expect("a key has a name and a type")
        };
        let mut request = self
            .client
            .create_table()
            .table_name(name)
            .billing_mode(BillingMode::PayPerRequest)
            .attribute_definitions(string(partition))
            .attribute_definitions(string(sort))
            .key_schema(key(partition, KeyType::Hash))
            .key_schema(key(sort, KeyType::Range));
        if name == self.tables.resources {
            let all = Projection::builder().projection_type(ProjectionType::All);
            let index = GlobalSecondaryIndex::builder()
                .index_name(item::DUE_INDEX)
                .key_schema(key("due", KeyType::Hash))
                .key_schema(key("due_ms", KeyType::Range))
                .projection(all.build())
                .build()
                .expect("an index has a name, keys and a projection");
            request = request
                .attribute_definitions(string("due"))
                .attribute_definitions(attribute("due_ms", ScalarAttributeType::N))
                .global_secondary_indexes(index);
        }
        match request.send().await {
            Ok(_) => Ok(()),
            Err(error) => match error.as_service_error() {
                Some(CreateTableError::ResourceInUseException(_)) => Ok(()),
                Some(_) | None => Err(failed("create a table")(error)),
            },
        }
    }
}
