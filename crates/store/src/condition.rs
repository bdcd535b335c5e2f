//! Whether the tables exist and are usable: for people who look for a failure's cause.

use aws_sdk_dynamodb::{
    operation::describe_table::DescribeTableError,
    types::{IndexStatus, TableDescription, TableStatus},
};

use crate::{Reader, StoreError, failed, item};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableCondition {
    /// Its name, including the prefix.
    pub table: String,
    /// What is wrong with it, if anything.
    pub problem: Option<TableProblem>,
}

/// What makes a table unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableProblem {
    #[error("is not there")]
    Missing,
    /// The table exists but is not usable, because it is being created or deleted, for example.
    #[error("is {0}")]
    NotActive(String),
    /// The index of due records is missing: nothing is ever found to be due.
    #[error("has no index `{0}`")]
    NoIndex(&'static str),
    /// The index of due records is being created or deleted.
    #[error("has an index `{index}` that is {status}")]
    IndexNotActive {
        index: &'static str,
        /// DynamoDB's word for its status, in lower case.
        status: String,
    },
}

impl Reader {
    /// Returns the condition of each of the four tables, and of the index of due records.
    pub async fn conditions(&self) -> Result<Vec<TableCondition>, StoreError> {
        let tables = &self.tables;
        let mut conditions = Vec::new();
        for table in [&tables.schedules, &tables.accounts, &tables.resources, &tables.history] {
            let described = self.describe(table).await?;
            let problem = match &described {
                None => Some(TableProblem::Missing),
                Some(description) => problem(description)
                    .or_else(|| (*table == tables.resources).then(|| of_index(description))?),
            };
            conditions.push(TableCondition { table: table.clone(), problem });
        }
        Ok(conditions)
    }

    async fn describe(&self, table: &str) -> Result<Option<TableDescription>, StoreError> {
        match self.client.describe_table().table_name(table).send().await {
            Ok(answer) => Ok(answer.table),
            Err(error) => match error.as_service_error() {
                Some(DescribeTableError::ResourceNotFoundException(_)) => Ok(None),
                Some(_) | None => Err(failed("describe a table")(error)),
            },
        }
    }
}

fn problem(table: &TableDescription) -> Option<TableProblem> {
    let status = table.table_status()?;
    // An update leaves a table as usable as before.
    let is_usable = matches!(status, TableStatus::Active | TableStatus::Updating);
    (!is_usable).then(|| TableProblem::NotActive(status.as_str().to_lowercase()))
}

fn of_index(table: &TableDescription) -> Option<TableProblem> {
    let index = item::DUE_INDEX;
    let found =
        table.global_secondary_indexes().iter().find(|found| found.index_name() == Some(index));
    let Some(found) = found else {
        return Some(TableProblem::NoIndex(index));
    };
    let status = found.index_status()?;
    let is_usable = matches!(status, IndexStatus::Active | IndexStatus::Updating);
    (!is_usable)
        .then(|| TableProblem::IndexNotActive { index, status: status.as_str().to_lowercase() })
}
