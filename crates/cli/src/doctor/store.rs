//! Checks of the store: its tables, whether its items are readable, and the configuration in force.

use std::collections::BTreeMap;

use domain::{AccountName, record::Record};
use environment::in_words;
use jiff::Timestamp;
use store::{
    AccountState, Head, InForce, LogEntry, Store, StoreError, TableCondition, TableProblem,
    Unreadable,
};

use super::{Check, Finding, or_ok};
use crate::time::ago;

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
        let states = store.account_states().await?;
        let mut contents = Self {
            applied_instead: store.applied_instead(head.generation).await?,
            head,
            in_force,
            states: states.read,
            records: Vec::new(),
            unreadable: states.unreadable,
        };
        for account in store.accounts().await? {
            let found = store.records_of(&account).await?;
            contents.records.extend(found.read);
            contents.unreadable.extend(found.unreadable);
        }
        Ok(contents)
    }

    /// Whether an account has ever been listed; until then, what it contains is unknown.
    pub(crate) fn was_listed(&self, account: &AccountName) -> bool {
        let state = self.states.get(account);
        state.is_some_and(|state| state.listed_at.is_some())
    }
}

/// Reports why the store could not be read.
pub(crate) fn unread(error: &StoreError) -> Finding {
    let item = match error {
        StoreError::Configuration { source, .. } => source,
        StoreError::Format(_)
        | StoreError::Malformed(_)
        | StoreError::Dynamo(..)
        | StoreError::Throttled { .. }
        | StoreError::Stale { .. } => error,
        StoreError::NoGeneration(generation) => {
            let found = format!("generation {generation} is in force, but it is not stored");
            return Finding::problem(Check::Configuration, found, APPLY_AGAIN);
        }
    };
    let remedy = match item {
        StoreError::Format(_) => "update this program: a newer one wrote there",
        StoreError::Malformed(_) => {
            "something else wrote there, or a disk failed: restore the table from a backup"
        }
        StoreError::Throttled { .. } => "wait for DynamoDB, and check again",
        StoreError::Configuration { .. }
        | StoreError::Dynamo(..)
        | StoreError::NoGeneration(_)
        | StoreError::Stale { .. } => {
            "check that the credentials of the AWS tools may read and describe the tables"
        }
    };
    Finding::unknown(Check::Store, in_words(error), remedy)
}

/// Checks the tables, and the index of due records.
pub(crate) async fn tables(store: &Store) -> Vec<Finding> {
    match store.conditions().await {
        Ok(conditions) => or_ok(
            conditions.iter().filter_map(table).collect(),
            Check::Store,
            "the four tables and the index `due` are there",
        ),
        Err(error) => vec![unread(&error)],
    }
}

fn table(condition: &TableCondition) -> Option<Finding> {
    let trouble = condition.problem.as_ref()?;
    let remedy = match trouble {
        TableProblem::Missing | TableProblem::NoIndex(_) => {
            "deploy the stack again: its template makes the tables and the index"
        }
        TableProblem::NotActive(_) | TableProblem::IndexNotActive { .. } => {
            "wait for DynamoDB, and check again"
        }
    };
    let found = format!("the table {} {trouble}", condition.table);
    Some(Finding::problem(Check::Store, found, remedy).of(&condition.table))
}

/// Items that this program cannot read.
pub(crate) fn unreadable(contents: &StoreContents) -> Vec<Finding> {
    let finding = |one: &Unreadable| {
        let remedy = match one.source {
            StoreError::Format(_) => "update this program: a newer one wrote the item",
            StoreError::Malformed(_)
            | StoreError::Configuration { .. }
            | StoreError::Dynamo(..)
            | StoreError::NoGeneration(_)
            | StoreError::Throttled { .. }
            | StoreError::Stale { .. } => {
                "nothing is done for the resource until the item is repaired: restore it from a \
                 backup, or delete it if the resource owes no size, and the next inventory makes \
                 it anew"
            }
        };
        Finding::problem(Check::Store, in_words(one), remedy).of(&one.reference)
    };
    or_ok(
        contents.unreadable.iter().map(finding).collect(),
        Check::Store,
        format!("all {} records can be read", contents.records.len()),
    )
}

/// Reports which configuration is in force, since when, and who applied it.
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
    let count = crate::configuration_file::count;
    let when = applied_at.map_or_else(String::new, |at| format!(", {}", ago(at, now)));
    let mut findings = vec![Finding::ok(
        Check::Configuration,
        format!(
            "generation {generation}, applied by {author}{when}: {}, {}",
            count(configuration.accounts.len(), "account"),
            count(configuration.schedules.len(), "schedule"),
        ),
    )];
    findings.extend(set_back(contents));
    findings.extend(overruled(contents));
    findings
}

const APPLY_AGAIN: &str = "`offhours apply` again: it takes a new number and brings it into force";

/// A configuration in force that is not the one applied last: something else wrote the head.
fn overruled(contents: &StoreContents) -> Option<Finding> {
    let generation = contents.head.generation;
    let LogEntry { generation: applied, author, .. } = contents.applied_instead.as_ref()?;
    let found = format!(
        "generation {generation} is in force, although generation {applied} was applied last, by \
         {author}: something other than an apply wrote the head"
    );
    Some(Finding::problem(Check::Configuration, found, APPLY_AGAIN))
}

/// Records that a later generation has handled: to every function they are ahead of the
/// configuration in force.
fn set_back(contents: &StoreContents) -> Option<Finding> {
    let generation = contents.head.generation;
    let ahead = contents.records.iter().filter(|r| r.is_ahead_of(generation));
    let handled = ahead.filter_map(|record| record.handled.as_ref());
    let generations: Vec<_> = handled.map(|handled| handled.generation).collect();
    let last = generations.iter().max()?;
    Some(Finding::problem(
        Check::Configuration,
        format!(
            "generation {last} has handled {}, and generation {generation} is in force: nothing is \
             done about them, because the table of the schedules was restored from an older backup",
            crate::configuration_file::count(generations.len(), "record"),
        ),
        "`offhours apply` again: it takes a number after the highest that was handled",
    ))
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::types::AttributeValue;
    use domain::{configuration::Generation, record::Handled, schedule::Desired};

    use super::*;
    use crate::{
        doctor::Verdict,
        fixtures::{empty_store, handled, new_engine},
        scene::{OFFICE, configuration as configured, monday, web},
    };

    fn verdicts(findings: &[Finding]) -> Vec<Verdict> {
        findings.iter().map(|finding| finding.verdict).collect()
    }

    #[tokio::test]
    async fn missing_tables_are_named_and_whole_ones_are_in_order() {
        let (engine, store) = new_engine();
        let found = tables(&store).await;
        assert_eq!(verdicts(&found), [Verdict::Problem; 4]);
        assert!(found[3].found.contains("t-history is not there"), "{found:?}");
        store.create_tables().await.unwrap();
        assert_eq!(verdicts(&tables(&store).await), [Verdict::Ok]);
        let delete = engine.client().delete_table().table_name("t-history");
        delete.send().await.unwrap();
        assert_eq!(verdicts(&tables(&store).await), [Verdict::Problem]);
    }

    #[test]
    fn a_table_without_its_index_is_a_problem() {
        let condition = TableCondition {
            table: "t-resources".to_owned(),
            problem: Some(TableProblem::NoIndex("due")),
        };
        let finding = table(&condition).unwrap();
        assert_eq!(finding.verdict, Verdict::Problem);
        assert!(finding.found.contains("has no index `due`"), "{finding:?}");
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
        assert_eq!(verdicts(&unreadable(&contents)), [Verdict::Ok]);
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
        assert_eq!(verdicts(&found), [Verdict::Problem; 2]);
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
        assert_eq!(verdicts(&found), [Verdict::Ok, Verdict::Problem]);
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
        assert_eq!(verdicts(&configuration(&contents, now)), [Verdict::Ok]);
    }

    #[tokio::test]
    async fn what_is_in_force_is_reported_with_its_author() {
        let (_, store) = new_engine();
        let error = StoreContents::read(&store).await.unwrap_err();
        assert_eq!(unread(&error).verdict, Verdict::Unknown);
        store.create_tables().await.unwrap();
        let now = monday("09:10:00");
        let contents = StoreContents::read(&store).await.unwrap();
        assert_eq!(verdicts(&configuration(&contents, now)), [Verdict::Problem]);
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
