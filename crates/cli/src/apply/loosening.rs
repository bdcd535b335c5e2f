//! Which guard rails of the configuration in force a new one gives up.

use std::fmt;

use domain::configuration::{Account, Configuration, Mode};

/// Says for each guard rail that is given up which one it is: a pattern of `protect`, or an observe
/// mode. An account or a schedule that only observes and is removed counts, because another one may
/// act in its place.
pub(crate) fn loosened(old: &Configuration, new: &Configuration) -> Vec<String> {
    let unprotected = old.settings.protect.iter();
    let unprotected = unprotected.filter(|pattern| !new.settings.protect.contains(pattern));
    let mut loosened: Vec<_> =
        unprotected.map(|pattern| format!("`{pattern}` is no longer protected")).collect();
    if new.settings.mode == Mode::Observe {
        return loosened;
    }
    if old.settings.mode == Mode::Observe {
        loosened.push("the service acts instead of observing".to_owned());
    }
    let accounts = old.accounts.iter();
    for (name, _) in accounts.filter(|(_, account)| account.mode() == Mode::Observe) {
        let mut renamed = new.accounts.values().filter(|one| one.was() == Some(name));
        let now = new.accounts.get(name).or_else(|| renamed.next());
        loosened.extend(change("account", name, now.map(Account::mode)));
    }
    let schedules = old.schedules.iter();
    for (name, _) in schedules.filter(|(_, rule)| rule.policy.mode == Mode::Observe) {
        let now = new.schedules.get(name).map(|rule| rule.policy.mode);
        loosened.extend(change("schedule", name, now));
    }
    loosened
}

/// Says what became of an account or a schedule that only observed; `None` if it still does.
fn change(what: &str, name: &impl fmt::Display, now: Option<Mode>) -> Option<String> {
    match now {
        Some(Mode::Observe) => None,
        Some(Mode::Act) => Some(format!("{what} {name} acts instead of observing")),
        None => Some(format!("{what} {name}, which only observes, is removed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration_file::parse;

    const STRICT: &str = r#"
protect = ["name:*prod*", "tag:production"]
[accounts.do-main]
provider = "digitalocean"
token = "env:T"
mode = "observe"
[accounts.hz-eu]
provider = "hetzner"
token = "env:U"
[schedules.office]
timezone = "UTC"
mode = "observe"
periods = [{ begin = "08:00", end = "19:00" }]
"#;

    #[track_caller]
    fn check(change: impl Fn(&str) -> String, expected: &[&str]) {
        let parsed = |text: &str| parse(text, "FILE").unwrap().configuration;
        let found = loosened(&parsed(STRICT), &parsed(&change(STRICT)));
        assert_eq!(found, expected);
    }

    #[test]
    fn what_only_adds_guard_rails_loosens_nothing() {
        check(str::to_owned, &[]);
        check(|text| text.replace("[\"name:", "[\"name:web\", \"name:"), &[]);
        check(
            |text| format!("mode = \"observe\"\n{}", text.replace("\nmode = \"observe\"", "")),
            &[],
        );
        check(|text| text.replace("accounts.do-main]", "accounts.do-new]\nwas = \"do-main\""), &[]);
    }

    #[test]
    fn each_guard_rail_that_is_given_up_is_named() {
        check(
            |text| text.replace(", \"tag:production\"", ""),
            &["`tag:production` is no longer protected"],
        );
        check(
            |text| text.replace("\nmode = \"observe\"", ""),
            &[
                "account do-main acts instead of observing",
                "schedule office acts instead of observing",
            ],
        );
        check(
            |text| text.replace("schedules.office]", "schedules.nights]"),
            &["schedule office, which only observes, is removed"],
        );
        check(
            |text| text.replace("accounts.do-main]", "accounts.do-new]"),
            &["account do-main, which only observes, is removed"],
        );
    }

    #[test]
    fn a_service_that_stops_observing_is_named() {
        let parsed = |text: &str| parse(text, "FILE").unwrap().configuration;
        let found = loosened(&parsed("mode = \"observe\""), &parsed(""));
        assert_eq!(found, ["the service acts instead of observing"]);
    }
}
