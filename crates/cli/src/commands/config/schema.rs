//! `offhours config schema`: the schemas of the configuration and of what commands print as JSON.

use domain::{activity::Activity, history::HistoryEntry};
use lifecycle::Outcome;
use report::money;
use schemars::Schema;

use super::log;
use crate::{
    Exit,
    apply::moves::MovingStop,
    commands::{apply, approve, forget, import, overrides, preview::Coming, status, validate, why},
    configuration_file::written::File,
    doctor::Finding,
    output,
    resource::ResourceView,
    shape,
    view::Line,
};

/// Print the JSON schema of the configuration or of a command.
///
/// An editor with TOML support checks and explains a configuration as you write it, if the first
/// line of the file names the schema's file, as in: #:schema ./offhours.schema.json
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours config schema > offhours.schema.json
  offhours config schema preview | jq .properties")]
pub(super) struct Args {
    /// What to describe: the configuration, or the JSON output of the command of this name.
    #[arg(value_enum, value_name = "WHAT", default_value_t)]
    what: What,
}

/// A document that has a schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum What {
    /// The configuration file, offhours.toml.
    #[default]
    Configuration,
    /// `offhours activity -o json`
    Activity,
    /// `offhours apply -o json`
    Apply,
    /// `offhours approve -o json`
    Approve,
    /// `offhours doctor -o json`
    Doctor,
    /// `offhours forget -o json`
    Forget,
    /// `offhours history -o json`
    History,
    /// `offhours import aws -o json`
    Import,
    /// Each line of `offhours local -o json`
    Local,
    /// `offhours config log -o json`
    Log,
    /// `offhours override running`, `stopped`, `extend` and `clear` with `-o json`
    Override,
    /// `offhours override list -o json`
    OverrideList,
    /// `offhours preview -o json`
    Preview,
    /// `offhours rehearse -o json`
    Rehearse,
    /// `offhours saved -o json`
    Saved,
    /// `offhours savings -o json`
    Savings,
    /// Each line of `offhours stop` and `start` with `-o json`
    Outcome,
    /// `offhours status -o json`
    Status,
    /// `offhours status --accounts -o json`
    StatusAccounts,
    /// `offhours validate -o json`
    Validate,
    /// `offhours why -o json`
    Why,
}

/// Prints a schema.
pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    output::print_json(&schema(args.what))?;
    Ok(Exit::Done)
}

/// Returns the schema of a document; for a command, that of the type it passes to `print_json`.
#[must_use]
pub fn schema(what: What) -> Schema {
    match what {
        What::Configuration => shape::of::<File>(),
        What::Activity => shape::of::<Vec<Activity>>(),
        What::Apply => shape::of::<apply::Plan>(),
        What::Approve => shape::of::<Vec<approve::Approved>>(),
        What::Doctor => shape::of::<Vec<Finding>>(),
        What::Forget => shape::of::<Vec<forget::ForgottenRecord>>(),
        What::History => shape::of::<Vec<HistoryEntry>>(),
        What::Import => shape::of::<import::Report>(),
        What::Local => shape::of::<Line>(),
        What::Log => shape::of::<Vec<log::AppliedGeneration>>(),
        What::Outcome => shape::of::<Outcome>(),
        What::Override => shape::of::<overrides::Answer>(),
        What::OverrideList => shape::of::<Vec<overrides::OverrideView>>(),
        What::Preview => shape::of::<Vec<Coming>>(),
        What::Rehearse => shape::of::<MovingStop>(),
        What::Saved => shape::of::<money::SavedReport>(),
        What::Savings => shape::of::<money::Report>(),
        What::Status => shape::of::<Vec<ResourceView>>(),
        What::StatusAccounts => shape::of::<Vec<status::AccountRow>>(),
        What::Why => shape::of::<why::Why>(),
        What::Validate => shape::of::<validate::Report>(),
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;
    use serde_json::{Map, Value};

    use super::*;

    /// The keys of each kind of document, or of each element of an array.
    fn properties(schema: &Schema) -> Vec<&Map<String, Value>> {
        let whole = schema.as_value();
        let parts = match whole["anyOf"].as_array() {
            Some(kinds) => kinds.iter().collect(),
            None => vec![whole.get("items").unwrap_or(whole)],
        };
        let resolved = parts.into_iter().map(|part| match part["$ref"].as_str() {
            Some(reference) => schema.pointer(&reference[1..]).unwrap(),
            None => part,
        });
        resolved.map(|part| part["properties"].as_object().unwrap()).collect()
    }

    #[test]
    fn every_schema_is_one_and_describes_each_of_its_keys() {
        for what in What::value_variants() {
            let schema = schema(*what);
            assert!(jsonschema::draft202012::meta::is_valid(schema.as_value()));
            for (key, property) in properties(&schema).into_iter().flatten() {
                assert!(property["description"].is_string(), "{what:?}: {key}");
            }
        }
    }
}
