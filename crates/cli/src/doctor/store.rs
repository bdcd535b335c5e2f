//! Checks of the store: its tables, whether its items are readable, and the configuration in force.

use std::{collections::BTreeMap, path::Path};

use domain::{AccountName, record::Record};
use environment::in_words;
use jiff::Timestamp;
use local::file;
use report::{count, time::ago};
use store::{
    AccountState, Head, InForce, LogEntry, Store, StoreError, TableCondition, TableProblem,
    Unreadable,
};

use super::{Check, Finding, or_ok};

/// Everything the checks need, read once.
#[derive(Debug)]
pub(crate) struct StoreContents {
    pub head: Head,
    /// The configuration that was applied last, if another one is in force.
    pub applied_instead: Option<LogEntry>,
    pub in_force: InForce,
    pub states: BTreeMap<AccountName, AccountState>,
    /// All records, including those of accounts that are no longer configured.
    pub records: Vec<Record>,
    pub unreadable: Vec<Unreadable>,
}

impl StoreContents {
    pub(crate) async fn read(store: &Store) -> Result<Self, StoreError> {
        let present = store.head_and_overrides().await?;
        let head = present.head.clone();
        let in_force = present.with_configuration(store.configuration_of(&head).await?);
        let (states, records) = (store.account_states().await?, store.all_records().await?);
        Ok(Self {
            applied_instead: store.applied_instead(head.generation).await?,
            head,
            in_force,
            states: states.read,
            records: records.read,
            unreadable: states.unreadable.into_iter().chain(records.unreadable).collect(),
        })
    }

    /// Whether an account has ever been listed; until then, what it contains is unknown.
    pub(crate) fn was_listed(&self, account: &AccountName) -> bool {
        let state = self.states.get(account);
        state.is_some_and(|state| state.listed_at.is_some())
    }
}

pub(crate) fn unread(error: &StoreError) -> Finding {
    let is_missing = matches!(error, StoreError::NoGeneration(_));
    let check = if is_missing { Check::Configuration } else { Check::Store };
    let words = in_words(error);
    let remedy = file::advice(&words).unwrap_or_else(|| remedy(error));
    Finding::problem(check, words, remedy)
}

/// Reports why there is no access to the store. The outermost context is the advice, unless the file
/// of a local store has a better one.
pub(crate) fn unopened(error: &anyhow::Error) -> Finding {
    let cause = error.chain().nth(1).unwrap_or(error.as_ref());
    let words = in_words(cause);
    let remedy = file::advice(&words).map_or_else(|| error.to_string(), ToOwned::to_owned);
    Finding::problem(Check::Store, words, remedy)
}

fn remedy(error: &StoreError) -> &'static str {
    match error {
        StoreError::Configuration { source, .. } => remedy(source),
        StoreError::Format(_) => "update this program: a newer one wrote there",
        StoreError::Malformed(_) => {
            "nothing is done about it until it is repaired: restore it from a backup. A resource that \
             owes no size may be deleted: the next inventory makes it anew"
        }
        StoreError::NoGeneration(_) => APPLY_AGAIN,
        StoreError::Throttled { .. } => "wait for DynamoDB, and check again",
        StoreError::Dynamo(..) | StoreError::Stale { .. } => {
            "check that the credentials of the AWS tools may read and describe the tables"
        }
    }
}

/// Checks the tables, and the index of due records; `file` is that of a local store.
pub(crate) async fn tables(store: &Store, file: Option<&Path>) -> Vec<Finding> {
    match store.conditions().await {
        Ok(conditions) => or_ok(
            conditions.iter().filter_map(|one| table(one, file)).collect(),
            Check::Store,
            "the four tables and the index `due` are there",
        ),
        Err(error) => vec![unread(&error)],
    }
}

fn table(condition: &TableCondition, file: Option<&Path>) -> Option<Finding> {
    let trouble = condition.problem.as_ref()?;
    let remedy = match (trouble, file) {
        (TableProblem::Missing | TableProblem::NoIndex(_), Some(file)) => format!(
            "the store is damaged: restore a copy of {}, or a backup into another file",
            file.display()
        ),
        (TableProblem::Missing | TableProblem::NoIndex(_), None) => {
            "deploy the stack again: its template makes the tables and the index".to_owned()
        }
        (TableProblem::NotActive(_) | TableProblem::IndexNotActive { .. }, _) => {
            "wait for DynamoDB, and check again".to_owned()
        }
    };
    let found = format!("the table {} {trouble}", condition.table);
    Some(Finding::problem(Check::Store, found, remedy).of(&condition.table))
}

pub(crate) fn unreadable(contents: &StoreContents) -> Vec<Finding> {
    let finding = |one: &Unreadable| {
        Finding::problem(Check::Store, in_words(one), remedy(&one.source)).of(&one.reference)
    };
    let ok = format!("all {} records can be read", contents.records.len());
    or_ok(contents.unreadable.iter().map(finding).collect(), Check::Store, ok)
}

const APPLY_AGAIN: &str = "`offhours apply` again: it takes a new number and brings it into force";

/// Reports which configuration is in force, since when, and who applied it; and what else counts as
/// later than it.
pub(crate) fn configuration(contents: &StoreContents, now: Timestamp) -> Vec<Finding> {
    let Head { generation, author, applied_at } = &contents.head;
    if generation.0 == 0 {
        return vec![Finding::problem(
            Check::Configuration,
            "no configuration is applied: nothing is done",
            "write an offhours.toml and run `offhours apply`",
        )];
    }
    let configuration = &contents.in_force.configuration;
    let when = applied_at.map_or_else(String::new, |at| format!(", {}", ago(at, now)));
    let applied = format!(
        "generation {generation}, applied by {author}{when}: {}, {}",
        count(configuration.accounts.len(), "account"),
        count(configuration.schedules.len(), "schedule"),
    );
    let ahead = contents.records.iter().filter(|record| record.is_ahead_of(*generation));
    let ahead: Vec<_> = ahead.filter_map(|record| record.handled.as_ref()).collect();
    let last = ahead.iter().map(|handled| handled.generation).max();
    let set_back = last.map(|last| {
        let records = count(ahead.len(), "record");
        format!(
            "generation {last} has handled {records}, and generation {generation} is in force: nothing \
             is done about them, because the table of the schedules was restored from an older backup"
        )
    });
    let overruled = contents.applied_instead.as_ref().map(|applied| {
        format!(
            "generation {generation} is in force, although generation {} was applied last, by {}: \
             something other than an apply wrote the head",
            applied.generation, applied.author
        )
    });
    let problems = set_back.into_iter().chain(overruled);
    let problems = problems.map(|found| Finding::problem(Check::Configuration, found, APPLY_AGAIN));
    [Finding::ok(Check::Configuration, applied)].into_iter().chain(problems).collect()
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::types::{AttributeValue, error::InternalServerError};
    use domain::{configuration::Generation, record::Handled, schedule::Desired};

    use super::*;
    use crate::{
        doctor::Level,
        fixtures::{empty_store, handled, new_engine},
        scene::{OFFICE, configuration as configured, monday, web},
    };

    fn levels(findings: &[Finding]) -> Vec<Level> {
        findings.iter().map(|finding| finding.level).collect()
    }

    #[tokio::test]
    async fn missing_tables_are_named_and_whole_ones_are_in_order() {
        let (engine, store) = new_engine();
        let found = tables(&store, None).await;
        assert_eq!(levels(&found), [Level::Problem; 4]);
        assert!(found[3].found.contains("t-history is not there"), "{found:?}");
        store.create_tables().await.unwrap();
        assert_eq!(levels(&tables(&store, None).await), [Level::Ok]);
        let delete = engine.client().delete_table().table_name("t-history");
        delete.send().await.unwrap();
        assert_eq!(levels(&tables(&store, None).await), [Level::Problem]);
    }

    #[test]
    fn a_table_without_its_index_is_a_problem() {
        let condition = TableCondition {
            table: "t-resources".to_owned(),
            problem: Some(TableProblem::NoIndex("due")),
        };
        let finding = table(&condition, None).unwrap();
        assert_eq!(finding.level, Level::Problem);
        assert!(finding.found.contains("has no index `due`"), "{finding:?}");
    }

    #[test]
    fn a_damaged_local_store_has_the_remedy_of_a_file() {
        let says = "database disk image is malformed";
        let damaged = file::advice(says).unwrap();
        let unopened = |error: anyhow::Error| unopened(&error.context("cannot open a.db"));
        let finding = unopened(anyhow::anyhow!("Internal error: {says}"));
        assert_eq!(finding.remedy.as_deref(), Some(damaged), "{finding:?}");
        let finding = unopened(anyhow::anyhow!("no such host"));
        let parts = (finding.found.as_str(), finding.remedy.as_deref());
        assert_eq!(parts, ("no such host", Some("cannot open a.db")));
        let error = InternalServerError::builder().message(format!("backend: {says}")).build();
        let error = aws_sdk_dynamodb::Error::InternalServerError(error);
        let finding = unread(&StoreError::Dynamo("failed to read", Box::new(error)));
        assert_eq!(finding.remedy.as_deref(), Some(damaged), "{finding:?}");
        let missing = TableProblem::Missing;
        let condition = TableCondition { table: "t-history".to_owned(), problem: Some(missing) };
        let finding = table(&condition, Some(Path::new("a.db"))).unwrap();
        assert!(
            finding.remedy.unwrap().starts_with("the store is damaged: restore a copy of a.db")
        );
    }

    #[tokio::test]
    async fn a_record_that_cannot_be_read_is_named_and_hides_no_other() {
        let (engine, store) = new_engine();
        store.create_tables().await.unwrap();
        let mut applied = configured(OFFICE);
        applied.generation = Generation(0);
        store.apply(&applied, "ada", monday("09:00:00")).await.unwrap();
        store.save(web()).await.unwrap();
        let contents = StoreContents::read(&store).await.unwrap();
        assert_eq!(levels(&unreadable(&contents)), [Level::Ok]);
        let text = |text: &str| AttributeValue::S(text.to_owned());
        for (resource, format) in [("droplet/9", "99"), ("droplet/8", "1")] {
            let put = engine.client().put_item().table_name("t-resources");
            put.item("account", text("do-main"))
                .item("resource", text(resource))
                .item("format", AttributeValue::N(format.to_owned()))
                .send()
                .await
                .unwrap();
        }
        let contents = StoreContents::read(&store).await.unwrap();
        assert_eq!(contents.records.len(), 1);
        let found = unreadable(&contents);
        assert_eq!(levels(&found), [Level::Problem; 2]);
        assert_eq!(found[1].subject.as_deref(), Some("do-main/droplet/9"));
        let remedy = found[1].remedy.as_deref().unwrap();
        assert!(remedy.starts_with("update this program"), "{remedy}");
    }

    #[tokio::test]
    async fn records_that_a_later_generation_has_handled_are_a_problem() {
        let store = empty_store().await;
        let mut applied = configured(OFFICE);
        applied.generation = Generation(0);
        let now = monday("09:00:00");
        store.apply(&applied, "ada", now).await.unwrap();
        let under = |generation| Handled {
            generation: Generation(generation),
            ..handled(now, Desired::Running, "office")
        };
        for (id, generation) in [(1, 1), (2, 2), (3, 7)] {
            let record = Record {
                reference: format!("do-main/droplet/{id}").parse().unwrap(),
                handled: Some(under(generation)),
                ..web()
            };
            store.save(record).await.unwrap();
        }
        let contents = StoreContents::read(&store).await.unwrap();
        let found = configuration(&contents, now);
        assert_eq!(levels(&found), [Level::Ok, Level::Problem]);
        let words = &found[1].found;
        assert!(
            words.starts_with("generation 7 has handled 2 records, and generation 1 is in force"),
            "{words}"
        );

        // The finding's advice fixes it.
        applied.generation = Generation(1);
        let generation = store.apply(&applied, "ada", now).await.unwrap();
        assert_eq!(generation, Generation(8));
        let contents = StoreContents::read(&store).await.unwrap();
        assert_eq!(levels(&configuration(&contents, now)), [Level::Ok]);
    }

    #[tokio::test]
    async fn what_is_in_force_is_reported_with_its_author() {
        let (_, store) = new_engine();
        let error = StoreContents::read(&store).await.unwrap_err();
        assert_eq!(unread(&error).level, Level::Problem);
        store.create_tables().await.unwrap();
        let now = monday("09:10:00");
        let contents = StoreContents::read(&store).await.unwrap();
        assert_eq!(levels(&configuration(&contents, now)), [Level::Problem]);
        let mut applied = configured(OFFICE);
        applied.generation = Generation(0);
        store.apply(&applied, "ada", monday("09:00:00")).await.unwrap();
        let contents = StoreContents::read(&store).await.unwrap();
        assert_eq!(
            configuration(&contents, now)[0].found,
            "generation 1, applied by ada, 10m ago: 2 accounts, 1 schedule"
        );
    }
}
