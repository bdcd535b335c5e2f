//! What a snapshot says of the machine that it is a copy of.

use std::{collections::BTreeSet, fmt};

use super::is_own_label;
use crate::resource::Resource;

/// The longest text. Neither cloud documents a limit for the name of a snapshot or the description
/// of an image; with what stands before it, this stays below 255 characters.
const LONGEST: usize = 200;

/// Precedes the tags.
const TAGS: &str = "tags";

/// Stands in place of tags that did not fit.
const LEFT_OUT: &str = "tags-left-out";

/// What a snapshot says of the machine that it is a copy of, so that the machine can be recreated
/// even if its record is lost: `web fra1 s-2vcpu-4gb tags env:dev offhours:office`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub name: String,
    /// Region or location.
    pub region: String,
    pub plan: String,
    /// Tags, or labels as `key=value`, without our own; `None` if they were left out.
    pub tags: Option<BTreeSet<String>>,
}

impl Origin {
    /// Returns as much as fits of what a machine is like: everything, all but its tags, or nothing.
    #[must_use]
    pub fn of(machine: &Resource) -> Option<Self> {
        let own = machine.tags.iter().filter(|tag| !is_own_label(tag));
        let whole = Self {
            name: machine.name.clone(),
            region: machine.region.clone(),
            plan: machine.size.plan().to_owned(),
            tags: Some(own.cloned().collect()),
        };
        let short = Self { tags: None, ..whole.clone() };
        let fits = |one: &Self| Self::parse(&one.to_string()).as_ref() == Some(one);
        [whole, short].into_iter().find(fits)
    }

    /// Parses the text of a snapshot, which a person may have changed.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ').map(str::to_owned);
        let is_printable = |char: char| char.is_ascii_graphic() || char == ' ';
        if text.len() > LONGEST || !text.chars().all(is_printable) {
            return None;
        }
        let mut next = || words.next().filter(|word| !word.is_empty());
        let (name, region, plan) = (next()?, next()?, next()?);
        let tags = match next()?.as_str() {
            TAGS => Some(words.collect()),
            LEFT_OUT => None,
            _ => return None,
        };
        Some(Self { name, region, plan, tags })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, region, plan, tags } = self;
        write!(f, "{name} {region} {plan} ")?;
        let Some(tags) = tags else { return f.write_str(LEFT_OUT) };
        f.write_str(TAGS)?;
        tags.iter().try_for_each(|tag| write!(f, " {tag}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::{
        collection::{btree_set, vec},
        prelude::any,
        prop_assert, prop_assert_eq, proptest,
    };

    use super::*;
    use crate::{
        resource::{MachineSize, Size},
        tests::fixtures::seen_droplet,
    };

    fn machine(name: &str, tags: &BTreeSet<String>) -> Resource {
        Resource { name: name.to_owned(), tags: tags.clone(), ..seen_droplet() }
    }

    fn tags(tags: &[&str]) -> BTreeSet<String> {
        tags.iter().map(|&tag| tag.to_owned()).collect()
    }

    #[test]
    fn a_machine_is_described_without_our_own_tags() {
        let own = ["offhours-of:droplet-1", "offhours-mark:abc"];
        let tags = tags(&[&["offhours:office", "env:dev"], &own[..]].concat());
        let origin = Origin::of(&machine("web", &tags)).unwrap();
        assert_eq!(origin.to_string(), "web fra1 s-1vcpu-1gb tags env:dev offhours:office");
        let bare = Origin::of(&machine("web", &BTreeSet::new())).unwrap();
        assert_eq!(bare.to_string(), "web fra1 s-1vcpu-1gb tags");
    }

    #[test]
    fn what_does_not_fit_is_left_out_tags_first() {
        for tag in ["x".repeat(LONGEST), "two words".to_owned() + "\n", "über".to_owned()] {
            let origin = Origin::of(&machine("web", &tags(&[&tag]))).unwrap();
            assert_eq!(origin.tags, None);
            assert_eq!(origin.to_string(), "web fra1 s-1vcpu-1gb tags-left-out");
        }
        for name in ["", "a b", "ü", &"x".repeat(LONGEST)] {
            assert_eq!(Origin::of(&machine(name, &BTreeSet::new())), None, "{name}");
        }
        let size = Size::Machine(MachineSize::default());
        assert_eq!(Origin::of(&Resource { size, ..seen_droplet() }), None);
    }

    #[test]
    fn a_text_that_a_person_changed_is_not_understood() {
        for text in [
            "",
            "web",
            "web fra1",
            "web fra1 s-1vcpu-1gb",
            "web  fra1 s-1vcpu-1gb",
            " web fra1 s-1vcpu-1gb",
            "web fra1 s-1vcpu-1gb env:dev",
            "web fra1 s-1vcpu-1gb\ttags",
            "web fra1 s-1vcpu-1gb tags \u{1b}[31m",
            &format!("web fra1 s-1vcpu-1gb tags {}", "x".repeat(LONGEST)),
        ] {
            assert_eq!(Origin::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_said_is_what_the_machine_is_like(
            name in "[a-z0-9.-]{1,60}",
            tags in btree_set("[a-zA-Z0-9:=/_-]{1,30}", 0..12),
        ) {
            let origin = Origin::of(&machine(&name, &tags)).unwrap();
            let text = origin.to_string();
            prop_assert!(text.len() <= LONGEST);
            prop_assert_eq!(Origin::parse(&text), Some(origin.clone()));
            prop_assert_eq!(origin.name, name);
            prop_assert!(origin.tags.is_none_or(|said| said == tags));
        }

        #[test]
        fn any_text_is_understood_as_it_is_or_not_at_all(
            text in any::<String>(),
            words in vec("[ -~]{0,8}|tags|tags-left-out", 0..9),
        ) {
            for text in [text, words.join(" ")] {
                if let Some(origin) = Origin::parse(&text) {
                    let again = origin.to_string();
                    prop_assert!(!again.contains(char::is_control));
                    prop_assert_eq!(Origin::parse(&again), Some(origin));
                }
            }
        }
    }
}
