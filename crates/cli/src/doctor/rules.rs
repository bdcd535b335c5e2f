//! Checks what the configuration names against what the accounts contain.

use domain::{
    ResourceRef, ScheduleName,
    configuration::{Followed, Override, OverrideTarget, Pattern, Selector},
    membership::{Membership, Subject},
    record::{Phase, Record},
};
use jiff::{Timestamp, tz::TimeZone};
use report::{
    consequences::{Unmatched, unmatched_names},
    nearest::{advice, nearest},
    time::short,
};

use super::{Check, Finding, or_ok, store::StoreContents};

const SPELLING: &str = "check its spelling; keep it if it is meant for future resources";

pub(crate) fn check(contents: &StoreContents, zone: &TimeZone, now: Timestamp) -> Vec<Finding> {
    // Until every account has been listed, what they contain is unknown.
    let configured = &contents.in_force.configuration.accounts;
    let all_listed = configured.keys().all(|account| contents.was_listed(account));
    let mut findings = references(contents, all_listed);
    findings.extend(overrides(contents, now));
    findings.extend(pauses(contents, zone, now));
    if all_listed {
        findings.extend(unfollowed(contents));
        findings.extend(protect(contents));
        findings.extend(groups(contents));
    }
    findings
}

fn present(contents: &StoreContents) -> impl Iterator<Item = &Record> + Clone {
    let is_there = |record: &&Record| !matches!(record.phase, Phase::Gone { .. });
    contents.records.iter().filter(is_there)
}

/// References in `resources` that no inventory has seen, and names that nothing has. Nothing can be
/// said about an account that has never been listed, and about names only if all were.
fn references(contents: &StoreContents, all_listed: bool) -> Vec<Finding> {
    let configuration = &contents.in_force.configuration;
    let listed = configuration.schedules.iter().flat_map(|(schedule, rule)| {
        rule.resources.iter().map(move |selector| (schedule, selector))
    });
    let unseen = listed.filter_map(|(schedule, selector)| {
        let Selector::Reference(reference) = selector else { return None };
        let why =
            unseen(contents, reference).filter(|_| contents.was_listed(&reference.account))?;
        let found = format!("schedule {schedule} lists it, and {why}");
        let instead = instead(contents, reference);
        let remedy = format!("correct or remove it in the schedule's `resources`{instead}");
        Some(Finding::problem(Check::References, found, remedy).of(reference))
    });
    let unmatched = unmatched_names(&present(contents), configuration);
    let unmatched = unmatched.into_iter().filter(|_| all_listed);
    let unmatched = unmatched.map(|Unmatched { schedule, name }| {
        let found = format!("schedule {schedule} lists the name, and no known resource has it");
        let text = name.to_string();
        let mut of_id = present(contents).filter(|one| one.reference.id.provider_id() == text);
        let reference = of_id.next().map(|record| record.reference.to_string());
        let names = present(contents).map(|record| record.name.as_str());
        let like = reference.or_else(|| nearest(&text, names).map(str::to_owned));
        let like = like.map_or_else(String::new, |like| format!("; did you mean {like}?"));
        Finding::warning(Check::References, found, format!("{SPELLING}{like}")).of(&name)
    });
    let findings = unmatched.chain(unseen).collect();
    or_ok(findings, Check::References, "every listed resource of a listed account was seen")
}

/// Why there is no such resource. `None` if there is one.
fn unseen(contents: &StoreContents, reference: &ResourceRef) -> Option<&'static str> {
    let record = contents.records.iter().find(|r| r.reference == *reference);
    match record.map(|record| matches!(record.phase, Phase::Gone { .. })) {
        None => Some("no inventory has seen it"),
        Some(true) => Some("it is gone at the provider"),
        Some(false) => None,
    }
}

/// What was probably meant: a name instead of an id, or a similar reference.
fn instead(contents: &StoreContents, reference: &ResourceRef) -> String {
    let id = reference.id.provider_id();
    let like = || present(contents).filter(|record| record.kind() == reference.kind());
    let references: Vec<_> = like().map(|record| (record.reference.to_string(), record)).collect();
    let near = nearest(&reference.to_string(), references.iter().map(|(text, _)| text.as_str()));
    let near = references.iter().find(|(text, _)| near == Some(text));
    match like().find(|record| record.name == id).or(near.map(|(_, record)| *record)) {
        Some(record) => format!("; did you mean {} ({})?", record.reference, record.name),
        None => String::new(),
    }
}

fn unfollowed(contents: &StoreContents) -> Vec<Finding> {
    let configuration = &contents.in_force.configuration;
    let follows = |name: &ScheduleName| {
        present(contents).any(|record| {
            let membership = Membership::of(Subject::recorded(record), configuration);
            membership.schedule() == Some(name)
        })
    };
    let idle = configuration.schedules.keys().filter(|name| !follows(name));
    let findings = idle.map(|name| {
        let remedy = format!("tag resources offhours:{name} (label offhours={name}), or list them");
        Finding::warning(Check::Schedules, "nothing follows it", remedy).of(name)
    });
    or_ok(findings.collect(), Check::Schedules, "every schedule is followed")
}

fn overrides(contents: &StoreContents, now: Timestamp) -> Vec<Finding> {
    let active: Vec<_> =
        contents.in_force.overrides.iter().filter(|one| one.is_active(now)).collect();
    let findings = active.iter().filter_map(|one| an_override(contents, one)).collect();
    or_ok(
        findings,
        Check::Overrides,
        format!("{} active, each of an existing target", active.len()),
    )
}

fn an_override(contents: &StoreContents, one: &Override) -> Option<Finding> {
    let configuration = &contents.in_force.configuration;
    let (why, instead) = match &one.target {
        OverrideTarget::Resource(reference) => {
            let account = &reference.account;
            let is_known =
                contents.was_listed(account) || !configuration.accounts.contains_key(account);
            let why = unseen(contents, reference).filter(|_| is_known)?;
            (why, instead(contents, reference))
        }
        OverrideTarget::Schedule(name) if configuration.schedules.contains_key(name) => {
            return None;
        }
        OverrideTarget::Schedule(name) => {
            let names = configuration.schedules.keys().map(ScheduleName::as_str);
            let advice = format!("; {}", advice(name.as_str(), "schedules", names));
            ("there is no such schedule", advice)
        }
    };
    let found = format!("{} by {}, and {why}", one.desired, one.by);
    let target = match &one.target {
        OverrideTarget::Resource(reference) => reference.to_string(),
        OverrideTarget::Schedule(name) => format!("--schedule {name}"),
    };
    let remedy = format!("`offhours override clear {target}` ends it{instead}");
    Some(Finding::warning(Check::Overrides, found, remedy).of(&one.target))
}

/// The pauses in force: one may have been forgotten.
fn pauses(contents: &StoreContents, zone: &TimeZone, now: Timestamp) -> Vec<Finding> {
    let active = contents.in_force.overrides.pauses().filter(|one| one.is_active(now));
    let findings = active.map(|one| {
        let remedy = format!("`offhours resume{}` ends it", one.scope.option());
        let until = short(one.ends_at, zone, now);
        let found = format!("paused until {until} by {} ({})", one.by, one.why);
        Finding::warning(Check::Pauses, found, remedy).of(&one.scope)
    });
    or_ok(findings.collect(), Check::Pauses, "nothing is paused")
}

/// Patterns of `protect` that cover nothing: a guard rail with a typo guards nothing.
fn protect(contents: &StoreContents) -> Vec<Finding> {
    let patterns = &contents.in_force.configuration.settings.protect;
    if patterns.is_empty() {
        return Vec::new();
    }
    let idle = patterns.iter().filter(|pattern| !covers_any(contents, pattern));
    let findings = idle.map(|pattern| {
        Finding::warning(Check::Protect, "covers no known resource", SPELLING).of(pattern)
    });
    or_ok(findings.collect(), Check::Protect, "every pattern covers something")
}

fn covers_any(contents: &StoreContents, pattern: &Pattern) -> bool {
    present(contents).any(|record| Subject::recorded(record).is_covered_by(pattern))
}

/// Groups without a member, and resources that are followed and not there: nothing waits for them.
fn groups(contents: &StoreContents) -> Vec<Finding> {
    let groups = &contents.in_force.configuration.settings.groups;
    if groups.is_empty() {
        return Vec::new();
    }
    let findings = groups.iter().flat_map(|(name, group)| {
        let is_empty = !group.resources.iter().any(|pattern| covers_any(contents, pattern));
        let empty = is_empty
            .then(|| Finding::warning(Check::Groups, "has no known member", SPELLING).of(name));
        let lost = group.after.iter().filter_map(move |one| {
            let Followed::Resource(reference) = one else { return None };
            let found = format!("follows {reference}, and {}", unseen(contents, reference)?);
            let remedy = format!("{SPELLING}{}", instead(contents, reference));
            Some(Finding::warning(Check::Groups, found, remedy).of(name))
        });
        empty.into_iter().chain(lost)
    });
    or_ok(findings.collect(), Check::Groups, "every group has a member")
}

#[cfg(test)]
mod tests {
    use domain::schedule::Desired;
    use jiff::SignedDuration;
    use store::AccountState;

    use super::*;
    use crate::{
        doctor::Level,
        scene::{OFFICE, in_force, machine, monday, store_contents, web, with_overrides},
    };

    fn now() -> Timestamp {
        monday("10:00:00")
    }

    fn listed(mut contents: StoreContents) -> StoreContents {
        for account in contents.in_force.configuration.accounts.keys() {
            let mut state = AccountState::unknown(account.clone());
            state.listed_at = Some(monday("09:58:00"));
            contents.states.insert(account.clone(), state);
        }
        contents
    }

    fn of(check: Check, found: &[Finding]) -> Vec<(Level, String)> {
        let of_it = found.iter().filter(|finding| finding.check == check);
        of_it
            .map(|f| (f.level, format!("{} {}", f.found, f.remedy.as_deref().unwrap_or(""))))
            .collect()
    }

    #[track_caller]
    fn check_reference(reference: &str, records: Vec<Record>, level: Level, words: &str) {
        let toml = format!("{OFFICE}resources = [\"{reference}\"]\n");
        let found = check(&listed(store_contents(in_force(&toml), records)), &TimeZone::UTC, now());
        let found = of(Check::References, &found);
        assert_eq!((found.len(), found[0].0), (1, level), "{found:?}");
        assert!(found[0].1.contains(words), "{found:?}");
    }

    #[test]
    fn a_listed_reference_that_no_inventory_has_seen_is_answered_with_what_was_meant() {
        let record = |reference| vec![machine(reference, "web", &[])];
        let there = record("do-main/droplet/3164444");
        check_reference("do-main/droplet/3164444", there.clone(), Level::Ok, "was seen");
        let near = "no inventory has seen it correct or remove it in the schedule's `resources`; \
                    did you mean do-main/droplet/3164444 (web)?";
        check_reference("do-main/droplet/3164445", there.clone(), Level::Problem, near);
        let moved = record("do-two/droplet/7");
        check_reference(
            "do-main/droplet/7",
            moved,
            Level::Problem,
            "did you mean do-two/droplet/7",
        );
        let mut gone = there.clone();
        gone[0].phase = Phase::Gone { since: now() };
        check_reference("do-main/droplet/3164444", gone, Level::Problem, "it is gone");
        check_reference(
            "do-main/database/web",
            there.clone(),
            Level::Problem,
            "no inventory has seen it",
        );
        check_reference("web", there.clone(), Level::Ok, "was seen");
        check_reference("w*", there.clone(), Level::Ok, "was seen");
        let unmatched = "schedule office lists the name, and no known resource has it check its \
                         spelling; keep it if it is meant for future resources";
        check_reference("ci-*", there.clone(), Level::Warning, unmatched);
        check_reference("wep", there.clone(), Level::Warning, "; did you mean web?");
        let id = "; did you mean do-main/droplet/3164444?";
        check_reference("3164444", there, Level::Warning, id);
        let named = vec![crate::scene::database("do-main/database/9cc1-0173", "orders", &[])];
        let meant = "did you mean do-main/database/9cc1-0173 (orders)?";
        check_reference("do-main/database/orders", named, Level::Problem, meant);
    }

    #[test]
    fn before_the_first_inventory_nothing_is_said_of_what_it_would_show() {
        let toml = format!("{OFFICE}resources = [\"do-main/droplet/9\"]\n");
        let set = override_of(OverrideTarget::Resource("do-main/droplet/9".parse().unwrap()), 1);
        let found = check(&store_contents(with_overrides(&toml, [set]), []), &TimeZone::UTC, now());
        let levels: Vec<_> = found.iter().map(|f| (f.check, f.level)).collect();
        let expected = [
            (Check::References, Level::Ok),
            (Check::Overrides, Level::Ok),
            (Check::Pauses, Level::Ok),
        ];
        assert_eq!(levels, expected, "{found:?}");
    }

    #[test]
    fn a_schedule_that_nothing_follows_is_a_hint() {
        let found = check(&listed(store_contents(in_force(OFFICE), [])), &TimeZone::UTC, now());
        let found = of(Check::Schedules, &found);
        assert_eq!((found.len(), found[0].0), (1, Level::Warning));
        assert!(found[0].1.contains("offhours:office"), "{found:?}");
        let found =
            check(&listed(store_contents(in_force(OFFICE), [web()])), &TimeZone::UTC, now());
        assert_eq!(of(Check::Schedules, &found)[0].0, Level::Ok);
    }

    #[test]
    fn a_pattern_of_protect_that_covers_nothing_is_a_warning() {
        let prod = machine("do-main/droplet/2", "eu-prod-1", &[]);
        let found =
            check(&listed(store_contents(in_force(OFFICE), [web(), prod])), &TimeZone::UTC, now());
        assert_eq!(of(Check::Protect, &found)[0].0, Level::Ok);
        let found =
            check(&listed(store_contents(in_force(OFFICE), [web()])), &TimeZone::UTC, now());
        assert_eq!(of(Check::Protect, &found)[0].0, Level::Warning);
    }

    #[test]
    fn a_group_without_a_member_and_what_is_followed_and_not_there_are_warnings() {
        let toml = format!(
            "{OFFICE}\n[groups.data]\nresources = [\"name:orders\"]\n\n[groups.app]\n\
             resources = [\"name:web\"]\nafter = [\"data\", \"do-main/droplet/999\"]\n"
        );
        let found_with = |records: Vec<Record>| {
            let contents = listed(store_contents(in_force(&toml), records));
            of(Check::Groups, &check(&contents, &TimeZone::UTC, now()))
        };
        let (orders, other) = (
            machine("do-main/droplet/2", "orders", &[]),
            machine("do-main/droplet/999", "other", &[]),
        );
        let found = found_with(vec![web()]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].1.contains("droplet/999, and no inventory has seen it"), "{found:?}");
        assert!(found[1].1.starts_with("has no known member"), "{found:?}");
        assert_eq!(found_with(vec![web(), orders, other])[0].0, Level::Ok);
    }

    fn override_of(target: OverrideTarget, days: i64) -> Override {
        let ends_at = now() + SignedDuration::from_hours(24 * days);
        Override {
            target,
            desired: Desired::Running,
            set_at: ends_at - SignedDuration::from_hours(48),
            ends_at,
            by: "ada".to_owned(),
            why: None,
            before: None,
        }
    }

    #[track_caller]
    fn check_override(target: OverrideTarget, days: i64, level: Level, words: &str) {
        let in_force = with_overrides(OFFICE, [override_of(target, days)]);
        let found = check(&listed(store_contents(in_force, [web()])), &TimeZone::UTC, now());
        let found = of(Check::Overrides, &found);
        assert_eq!((found.len(), found[0].0), (1, level), "{found:?}");
        assert!(found[0].1.contains(words), "{found:?}");
    }

    #[test]
    fn active_overrides_of_what_does_not_exist_are_reported() {
        let resource = |text: &str| OverrideTarget::Resource(text.parse().unwrap());
        let schedule = |name: &str| OverrideTarget::Schedule(name.parse().unwrap());
        check_override(resource("do-main/droplet/1"), 1, Level::Ok, "1 active");
        check_override(schedule("office"), -2, Level::Ok, "0 active");
        check_override(
            resource("do-main/droplet/2"),
            1,
            Level::Warning,
            "running by ada, and no inventory",
        );
        check_override(schedule("ofice"), 1, Level::Warning, "did you mean `office`?");
        check_override(schedule("ofice"), -1, Level::Ok, "0 active");
        let clear = "`offhours override clear --schedule ofice` ends it";
        check_override(schedule("ofice"), 1, Level::Warning, clear);
        let clear = "`offhours override clear do-main/droplet/2` ends it";
        check_override(resource("do-main/droplet/2"), 1, Level::Warning, clear);
    }
}
