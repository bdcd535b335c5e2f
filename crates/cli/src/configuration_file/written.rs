//! The configuration file as data: its tables and keys, built from a [`Configuration`] to be
//! written.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    AccountName, ScheduleName,
    configuration::{Account, Configuration, Policy, Rule, Selector, Settings},
    schedule::Definition,
    schema::{self, Named, OneOrSeveral},
};
use schemars::JsonSchema;
use serde::Serialize;

/// An Offhours configuration: the accounts that it manages, when their resources run, and what is
/// never touched.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, title = "Offhours configuration")]
pub(crate) struct File {
    /// The time zone of every schedule that names none, by its IANA name, such as Europe/Berlin.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::TimeZone", extend("examples" = ["Europe/Berlin", "UTC"]))]
    timezone: Option<String>,
    /// Days on which nothing starts in any schedule: YYYY-MM-DD for one year, MM-DD for every year,
    /// with .. for ranges, or `file:NAME` for a list beside the configuration. A schedule's own
    /// holidays come in addition; an empty list there leaves these out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "OneOrSeveral<schema::Holidays>", extend("examples" = [["2026-12-24..2026-12-26", "01-01"]]))]
    holidays: Vec<String>,
    #[serde(flatten)]
    settings: Settings,
    /// The accounts, by a name of your choice: 1 to 63 of a-z, 0-9, - and _, with a letter or digit
    /// at both ends. The name begins every reference, as in NAME/droplet/3164444.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Named<Account>")]
    accounts: BTreeMap<AccountName, Account>,
    /// The schedules, by a name of your choice: 1 to 63 of a-z, 0-9, - and _, with a letter or
    /// digit at both ends. A resource with the tag offhours:NAME (Hetzner: the label offhours=NAME)
    /// follows it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Named<ScheduleTable>")]
    schedules: BTreeMap<ScheduleName, ScheduleTable>,
}

/// A schedule: when resources run (periods, or start and stop, or a state), which resources follow it, and how
/// it is followed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "schedule", deny_unknown_fields)]
struct ScheduleTable {
    /// The time zone at the top of the file applies to a schedule that names none.
    #[serde(flatten)]
    definition: Definition,
    /// Resources that follow the schedule besides the tagged ones: ACCOUNT/droplet/NUMBER,
    /// ACCOUNT/database/UUID, ACCOUNT/node-pool/CLUSTER/POOL, ACCOUNT/server/NUMBER or
    /// ACCOUNT/machine/NAME; or by name, in any account, where * matches any text and ? any
    /// character. The name of a cluster stands for all of its node pools.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(with = "OneOrSeveral<Selector>", extend("examples" = [["do-main/droplet/3164444", "ci-*"]]))]
    resources: BTreeSet<Selector>,
    #[serde(flatten)]
    policy: Policy,
}

impl File {
    /// The file to write for a configuration: defaults are left out, and the most common time zone
    /// is at the top.
    pub(crate) fn of(configuration: &Configuration) -> Self {
        let timezone = commonest_timezone(configuration);
        Self::sharing(timezone, shared_holidays(configuration), configuration)
    }

    /// The file in which each schedule says everything itself.
    pub(crate) fn without_defaults(configuration: &Configuration) -> Self {
        Self::sharing(None, Vec::new(), configuration)
    }

    /// The file with this time zone and these holidays at the top instead of in each schedule.
    fn sharing(
        timezone: Option<String>,
        holidays: Vec<String>,
        configuration: &Configuration,
    ) -> Self {
        let schedules = configuration.schedules.iter();
        let table = |rule: &Rule| {
            let mut definition = rule.schedule.definition().clone();
            definition.holidays.drain(..holidays.len());
            if timezone.as_ref() == Some(&definition.timezone) {
                definition.timezone.clear();
            }
            let (resources, policy) = (rule.resources.clone(), rule.policy.clone());
            ScheduleTable { definition, resources, policy }
        };
        Self {
            settings: configuration.settings.clone(),
            accounts: configuration.accounts.clone(),
            schedules: schedules.map(|(name, rule)| (name.clone(), table(rule))).collect(),
            timezone,
            holidays,
        }
    }
}

/// The holidays with which the lists of all schedules begin, if there are several.
fn shared_holidays(configuration: &Configuration) -> Vec<String> {
    let mut rules = configuration.schedules.values();
    let lists = |rule: &'_ Rule| rule.schedule.definition().holidays.clone();
    let Some(first) = rules.next().filter(|_| configuration.schedules.len() > 1) else {
        return Vec::new();
    };
    rules.map(lists).fold(lists(first), |shared, list| {
        let same = shared.into_iter().zip(list).take_while(|(one, other)| one == other);
        same.map(|(one, _)| one).collect()
    })
}

/// The zone that most schedules have. A tie goes to the first by name.
fn commonest_timezone(configuration: &Configuration) -> Option<String> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for rule in configuration.schedules.values() {
        *counts.entry(&rule.schedule.definition().timezone).or_default() += 1;
    }
    let most = counts.values().copied().max();
    let zone = counts.into_iter().find(|(_, count)| Some(*count) == most);
    zone.map(|(zone, _)| zone.to_owned())
}
