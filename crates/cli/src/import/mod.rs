//! Imports the configurations of other schedulers.

pub mod aws;

use std::{collections::BTreeMap, fmt};

use domain::{
    ScheduleName,
    configuration::{Configuration, Floor, Generation, Rule, Settings},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::configuration_file::{self, written::File};

/// A file of another scheduler, with its contents.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file, as it was named.
    pub name: String,
    /// The file's contents.
    pub text: String,
}

/// The result of importing another scheduler's configuration.
#[derive(Debug)]
pub struct Imported {
    /// The schedules, each with the comments to write before it.
    pub schedules: BTreeMap<ScheduleName, (Rule, Vec<String>)>,
    /// The differences from the original.
    pub remarks: Vec<Remark>,
}

/// A difference from the original.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Remark {
    /// The subject, as the other scheduler calls it: `schedule office`, `period night`.
    pub about: String,
    /// What is different.
    pub message: String,
    /// Whether a whole schedule is missing from the result, so that a person is needed.
    pub left_out: bool,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { about, message, .. } = self;
        let kind = if self.left_out { "left out" } else { "warning" };
        write!(f, "{kind}: {about}: {message}")
    }
}

impl Imported {
    /// The schedules as a document.
    pub(crate) fn document(&self) -> File {
        let rules = self.schedules.iter();
        File::of(&Configuration {
            generation: Generation::default(),
            settings: Settings::default(),
            accounts: BTreeMap::new(),
            schedules: rules.map(|(name, (rule, _))| (name.clone(), rule.clone())).collect(),
            floor: Floor::default(),
        })
    }

    /// The schedules as TOML.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let comments = self.schedules.iter();
        let comments = comments.map(|(name, (_, comments))| (name.as_str(), comments.as_slice()));
        configuration_file::commented(&self.document(), &comments.collect())
    }
}
