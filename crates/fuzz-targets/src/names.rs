//! Names, references and other values of one word or one line, and the patterns that cover them.

use domain::{
    AccountName, MachineName, ResourceId, ResourceRef, ScheduleName,
    configuration::{Location, Pattern, TokenReference},
    resource::PlanCapacity,
};
use provider::Base;

use crate::check::{self, does_not_repeat_secret, read};

/// Whatever a line parses as survives a round trip, and what may be a secret is not repeated.
pub(crate) fn references(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for line in text.lines().chain([&*text]) {
        read::<AccountName>(line);
        read::<ScheduleName>(line);
        read::<MachineName>(line);
        read::<TokenReference>(line);
        read::<Base>(line);
        does_not_repeat_secret::<TokenReference>(line);
        does_not_repeat_secret::<Base>(line);
        // In keys and in the paths of requests, dots and slashes separate the parts of a reference.
        if let Some(reference) = read::<ResourceRef>(line) {
            check::json_round_trips(&reference);
            let id = reference.id.to_string();
            assert_eq!(id.parse::<ResourceId>().as_ref(), Ok(&reference.id));
            assert_eq!(id.split('/').next(), Some(reference.kind().as_str()));
            assert!(id.chars().all(|c| c.is_ascii_alphanumeric() || "/-_".contains(c)));
        }
        if let Ok(location) = line.parse::<Location>() {
            assert_eq!(location.as_str(), line);
        }
        if let Some(capacity) = PlanCapacity::of_plan(line) {
            let plan = format!("-{}vcpu-{}gb", capacity.vcpus, capacity.memory_gib);
            assert_eq!(PlanCapacity::of_plan(&plan), Some(capacity));
        }
    }
}

/// The first line is a pattern, the others are names. The pattern covers its own text, and exactly
/// those ASCII names that its wildcards match.
pub(crate) fn patterns(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (first, names) = text.split_once('\n').unwrap_or((&text, ""));
    let Some(pattern) = read::<Pattern>(first) else {
        return;
    };
    check::json_round_trips(&pattern);
    let written = pattern.to_string();
    let (subject, glob) = written.split_once(':').unwrap_or(("", &written));
    let reference: ResourceRef = "do-main/droplet/7".parse().expect("a reference");
    let covers = |name: &str| {
        let nothing = std::iter::empty;
        match subject {
            "name" => pattern.covers(&reference, [name].into_iter(), nothing()),
            "tag" => pattern.covers(&reference, nothing(), [name].into_iter()),
            _ => match name.parse() {
                Ok(reference) => pattern.covers(&reference, nothing(), nothing()),
                Err(_) => return None,
            },
        }
        .into()
    };
    // A number is written without its leading zeros.
    let is_as_written = |reference: ResourceRef| reference.to_string() == glob;
    if !subject.is_empty() || glob.parse().is_ok_and(is_as_written) {
        assert_eq!(covers(glob), Some(true), "{glob:?} does not cover itself");
    }
    for name in names.lines() {
        if let Some(covered) = covers(name)
            && glob.is_ascii()
            && name.is_ascii()
        {
            let name = match name.parse::<ResourceRef>() {
                Ok(reference) if subject.is_empty() => reference.to_string(),
                Ok(_) | Err(_) => name.to_owned(),
            };
            // A label is the same as a tag.
            let [glob, name] = [glob, &name].map(|text| match subject {
                "tag" => text.replace('=', ":"),
                _ => text.to_owned(),
            });
            assert_eq!(covered, is_covered(&glob, &name), "{glob:?} and {name:?}");
        }
    }
}

/// Reports whether a glob covers an ASCII text, ignoring case: `*` is any text, `?` is one
/// character.
fn is_covered(glob: &str, name: &str) -> bool {
    let name = name.to_ascii_lowercase().into_bytes();
    // The prefixes of the name that the part of the glob read so far covers.
    let mut covered = vec![false; name.len() + 1];
    covered[0] = true;
    for sign in glob.to_ascii_lowercase().bytes() {
        let before = covered;
        covered = vec![false; name.len() + 1];
        for end in 0..=name.len() {
            covered[end] = match sign {
                b'*' => before[end] || end > 0 && covered[end - 1],
                sign => end > 0 && before[end - 1] && (sign == b'?' || sign == name[end - 1]),
            };
        }
    }
    covered[name.len()]
}
