//! `offhours config show`: the configuration in force, as an equivalent file.

use domain::configuration::Configuration;
use store::{LogEntry, Store};

use super::Wanted;
use crate::{
    Exit,
    configuration_file::{self, written},
    context::Context,
};

/// Print the stored configuration as TOML.
///
/// Applying the output changes nothing. Defaults are left out; comments of the applied file are not
/// stored.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours config show > offhours.toml
  offhours config show 7 | diff - offhours.toml
  offhours config show -o json | jq .schedules")]
pub(crate) struct Args {
    /// An older generation to print, by its number [default: the one in force].
    #[arg(value_name = "NUMBER")]
    generation: Option<u64>,
}

pub(super) async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let store = context.connection.open().await?.store;
    let (configuration, heading) = generation(&store, args.generation).await?;
    let file = written::File::of(&configuration);
    context
        .format
        .print(&file, || format!("# {heading}\n{}", configuration_file::written(&file)))?;
    Ok(Exit::Done)
}

/// Returns a generation by its number, or the one in force, and a line that names it.
async fn generation(store: &Store, number: Option<u64>) -> anyhow::Result<(Configuration, String)> {
    let wanted = number.map_or(Wanted::InForce, Wanted::Number);
    let (entry, configuration, present) = super::generation(store, wanted).await?;
    let LogEntry { generation, author, applied_at, .. } = entry;
    let later = (generation != present).then(|| format!(" Generation {present} is in force."));
    let later = later.unwrap_or_default();
    let heading =
        format!("Generation {generation}, applied by {author} at {applied_at:.0}.{later}");
    Ok((configuration, heading))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use domain::configuration::Generation;
    use jiff::Timestamp;
    use proptest::{
        prop_assert,
        test_runner::{TestCaseError, TestRunner},
    };

    use super::*;
    use crate::{apply::difference, configuration_file::parse, fixtures::empty_store};

    const NOW: &str = "2026-11-21T09:30:00.123Z";

    fn configuration(schedule: &str) -> Configuration {
        let text = format!(
            "timezone = \"UTC\"\n[accounts.a]\nprovider = \"hetzner\"\ntoken = \"env:T\"\n\
             [schedules.{schedule}]\nperiods = [{{ begin = \"08:00\", end = \"19:00\" }}]\n"
        );
        parse(&text, "x.toml").expect("in order").configuration
    }

    #[tokio::test]
    async fn each_generation_is_exported_as_it_was_applied() {
        let store = empty_store().await;
        let now: Timestamp = NOW.parse().unwrap();
        let error = generation(&store, None).await.unwrap_err();
        assert!(error.to_string().contains("nothing is stored yet"), "{error}");
        assert_eq!(Exit::of(&error), Exit::Failed);

        let old = configuration("old");
        store.apply(&old, "ada", now).await.unwrap();
        let mut new = configuration("new");
        new.generation = Generation(1);
        store.apply(&new, "grace\n[accounts.x]", now).await.unwrap();

        let (present, heading) = generation(&store, None).await.unwrap();
        assert!(present.eq_ignoring_generation(&new));
        let line = "Generation 2, applied by grace [accounts.x] at 2026-11-21T09:30:00Z.";
        assert_eq!(heading, line);
        let (older, heading) = generation(&store, Some(1)).await.unwrap();
        assert!(older.eq_ignoring_generation(&old));
        let line = "Generation 1, applied by ada at 2026-11-21T09:30:00Z. \
                    Generation 2 is in force.";
        assert_eq!(heading, line);

        for unknown in [0, 3] {
            let error = generation(&store, Some(unknown)).await.unwrap_err();
            let message = format!("there is no generation {unknown}: `offhours config log`");
            assert!(error.to_string().starts_with(&message), "{error}");
            assert_eq!(Exit::of(&error), Exit::BadUsage);
        }
    }

    /// Fewer cases than in tests without a store: each is a whole round trip.
    const ROUNDS: u32 = 48;

    #[test]
    fn applying_what_is_exported_changes_nothing() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let store = runtime.block_on(empty_store());
        let now: Timestamp = NOW.parse().unwrap();
        let applied = Cell::new(Generation::default());
        let mut runner = TestRunner::new(proptest::test_runner::Config::with_cases(ROUNDS));
        let round = |wanted: Configuration| {
            let wanted = Configuration { generation: applied.get(), ..wanted };
            runtime.block_on(async {
                applied.set(store.apply(&wanted, "ada", now).await.unwrap());
                let (stored, heading) = generation(&store, None).await.unwrap();
                let text = format!("# {heading}\n{}", configuration_file::write(&stored));
                let read = parse(&text, "exported")
                    .map_err(|problems| TestCaseError::fail(format!("{problems:#?} in\n{text}")))?;
                let difference = difference::between(&stored, &read.configuration);
                prop_assert!(difference.is_empty(), "{difference:#?}");
                prop_assert!(stored.eq_ignoring_generation(&wanted), "{stored:#?}");
                Ok(())
            })
        };
        let result = runner.run(&configuration_file::random::configuration(), round);
        result.unwrap();
    }
}
