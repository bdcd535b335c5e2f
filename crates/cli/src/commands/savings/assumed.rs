//! What is assumed without a configuration: the accounts and the working hours.

use std::{collections::BTreeMap, env, fmt, str::FromStr};

use domain::configuration::{Account, CloudAccount, Configuration, Mode, Provider, TokenReference};
use domain::schedule::{Definition, PeriodDefinition, Schedule};

use crate::{configuration_file::in_zone, exit::UsageError};

/// Where the tokens are that variables have.
pub(in crate::commands) fn tokens_of_variables() -> BTreeMap<Provider, TokenReference> {
    let is_set = |name: &str| env::var(name).is_ok_and(|value| !value.trim().is_empty());
    let variables = Provider::ALL.map(|cloud| (cloud, cloud.facts().token_variable));
    let set = variables.into_iter().filter(|(_, name)| is_set(name));
    set.map(|(cloud, name)| (cloud, TokenReference::Env(name.to_owned()))).collect()
}

/// Returns a configuration with an account for each of these tokens, and no schedule.
pub(in crate::commands) fn accounts_of(
    tokens: BTreeMap<Provider, TokenReference>,
) -> Result<Configuration, UsageError> {
    let accounts: BTreeMap<_, _> = tokens
        .into_iter()
        .filter_map(|(provider, token)| {
            let account = CloudAccount {
                provider,
                was: None,
                token,
                read_token: None,
                datacenters: Vec::new(),
                mode: Mode::Observe,
                url: None,
                accept_new_prices: false,
                ssh_key: None,
            };
            Some((provider.facts().word.parse().ok()?, Account::from(account)))
        })
        .collect();
    if accounts.is_empty() {
        bail_usage!("no account to ask: set {} to a token that may read", variables());
    }
    Ok(Configuration { accounts, ..Configuration::default() })
}

/// The variables in which a token is looked for, in words.
pub(in crate::commands) fn variables() -> String {
    Provider::ALL.map(|cloud| cloud.facts().token_variable).join(" or ")
}

/// The hours in which resources are assumed to run.
#[derive(Debug, Clone)]
pub(crate) struct Hours {
    text: String,
    /// The same as a schedule, in UTC.
    pub(crate) schedule: Schedule,
}

#[derive(Debug, thiserror::Error)]
#[error("{0}: write weekdays and times, such as \"mon-fri 08:00-19:00\"")]
pub(crate) struct NotHours(String);

impl Default for Hours {
    fn default() -> Self {
        let usual = "mon-fri 08:00-19:00".parse();
        usual.expect("the usual hours are hours")
    }
}

impl FromStr for Hours {
    type Err = NotHours;

    /// Parses weekdays and times. Without weekdays, the times apply every day.
    fn from_str(text: &str) -> Result<Self, NotHours> {
        let text = text.trim();
        let (days, times) = match text.rsplit_once(' ') {
            Some((days, times)) => (Some(days), times),
            None => (None, text),
        };
        let (begin, end) =
            times.split_once('-').ok_or_else(|| NotHours(format!("invalid hours `{text}`")))?;
        let period = PeriodDefinition {
            weekdays: days.map(|days| days.trim().to_owned()).into_iter().collect(),
            begin: Some(begin.to_owned()),
            end: Some(end.to_owned()),
            ..PeriodDefinition::default()
        };
        let timing = Definition { periods: vec![period], ..Definition::default() };
        let schedule = in_zone("UTC", timing).map_err(NotHours)?;
        Ok(Self { text: text.to_owned(), schedule })
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use domain::schedule::Desired;

    use super::*;

    #[test]
    fn hours_are_weekdays_and_times() {
        for (text, at, expected) in [
            ("mon-fri 08:00-19:00", "2026-11-23T08:00:00Z", Desired::Running),
            ("mon-fri 08:00-19:00", "2026-11-23T19:00:00Z", Desired::Stopped),
            ("mon-fri 08:00-19:00", "2026-11-22T12:00:00Z", Desired::Stopped),
            ("sat, sun 08:00-19:00", "2026-11-22T12:00:00Z", Desired::Running),
            ("22:00-06:00", "2026-11-22T23:00:00Z", Desired::Running),
        ] {
            let hours: Hours = text.parse().unwrap();
            let desired = hours.schedule.desired_at(at.parse().unwrap());
            assert_eq!((hours.to_string(), desired), (text.to_owned(), Some(expected)));
        }
        for (text, words) in [
            ("", "invalid hours ``"),
            ("mon-fri", "HH:MM"),
            ("mon-fri 25:00-26:00", "25:00"),
            ("noon 08:00-19:00", "noon"),
        ] {
            let refusal = text.parse::<Hours>().unwrap_err().to_string();
            assert!(refusal.contains(words), "{text}: {refusal}");
            assert!(refusal.contains("such as \"mon-fri 08:00-19:00\""));
        }
    }
}
