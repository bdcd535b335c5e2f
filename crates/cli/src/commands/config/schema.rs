//! `offhours config schema`: the schemas of the configuration and of what commands print as JSON.

use clap::builder::PossibleValuesParser;
use domain::{configuration::Pause, history::HistoryEntry};
use lifecycle::Occurrence;
use report::{Named, money, resource::ResourceView};
use schemars::Schema;

use super::log;
use crate::{
    Exit,
    apply::moves::MovingStop,
    commands::{
        activity::ActivityEntry, apply, forget, import, notify, overrides, preview::Coming,
        rebuild, status, validate, why,
    },
    configuration_file::written::File,
    doctor::Finding,
    output, shape,
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
  offhours config schema preview | jq .items")]
pub(crate) struct Args {
    /// What to describe: the configuration, or what a command prints with `-o json`. `local` and
    /// `outcome` (`stop` and `start`) describe each line.
    #[arg(
        value_name = "WHAT",
        default_value = "configuration",
        value_parser = PossibleValuesParser::new(DOCUMENTS.map(|(name, _)| name))
    )]
    what: String,
}

/// A document, by the command that prints it, and its schema.
type Document = (&'static str, fn() -> Schema);

const DOCUMENTS: [Document; 24] = [
    ("configuration", configuration),
    ("activity", shape::schema_of::<Vec<ActivityEntry>>),
    ("apply", shape::schema_of::<apply::Plan>),
    ("approve", shape::schema_of::<Vec<Named>>),
    ("doctor", shape::schema_of::<Vec<Finding>>),
    ("forget", shape::schema_of::<Vec<forget::ForgottenRecord>>),
    ("history", shape::schema_of::<Vec<HistoryEntry>>),
    ("import", shape::schema_of::<import::Report>),
    ("local", shape::schema_of::<Line>),
    ("log", shape::schema_of::<Vec<log::AppliedGeneration>>),
    ("notify-test", shape::schema_of::<Vec<notify::Tested>>),
    ("outcome", shape::schema_of::<Occurrence>),
    ("override", shape::schema_of::<overrides::Answer>),
    ("override-list", shape::schema_of::<Vec<overrides::OverrideView>>),
    ("pause", shape::schema_of::<Vec<Pause>>),
    ("preview", shape::schema_of::<Vec<Coming>>),
    ("rebuild", shape::schema_of::<Vec<rebuild::Remnant>>),
    ("rehearse", shape::schema_of::<MovingStop>),
    ("saved", shape::schema_of::<money::SavedReport>),
    ("savings", shape::schema_of::<money::Report>),
    ("status", shape::schema_of::<Vec<ResourceView>>),
    ("status-accounts", shape::schema_of::<Vec<status::AccountRow>>),
    ("validate", shape::schema_of::<validate::Report>),
    ("why", shape::schema_of::<why::Why>),
];

/// The schema of the configuration file.
#[must_use]
pub fn configuration() -> Schema {
    shape::schema_of::<File>()
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    for (_, schema) in DOCUMENTS.iter().filter(|(name, _)| *name == args.what) {
        output::print_json(&schema())?;
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Finds the keys without a description, at any depth. A condition on a key describes nothing, and
    /// the only key of a variant is described with the variant.
    fn undescribed(schema: &Value, found: &mut Vec<String>) {
        for (word, part) in schema.as_object().into_iter().flatten() {
            let properties = part.as_object();
            let of_variant = schema["description"].is_string()
                && properties.is_some_and(|properties| properties.len() == 1);
            for (key, property) in properties.into_iter().flatten() {
                let is_described = property["description"].is_string() || of_variant;
                let is_condition = property.get("const").is_some();
                if word == "properties" && !is_condition && !is_described {
                    found.push(key.clone());
                }
            }
            let parts = part.as_array().map_or(std::slice::from_ref(part), Vec::as_slice);
            for part in parts {
                undescribed(part, found);
            }
        }
    }

    #[test]
    fn every_schema_is_one_and_describes_each_of_its_keys() {
        let mut found = Vec::new();
        for (what, schema) in DOCUMENTS {
            let schema = schema();
            assert!(jsonschema::draft202012::meta::is_valid(schema.as_value()));
            let before = found.len();
            undescribed(schema.as_value(), &mut found);
            found[before..].iter_mut().for_each(|key| *key = format!("{what}: {key}"));
        }
        assert!(found.is_empty(), "{found:#?}");
    }
}
