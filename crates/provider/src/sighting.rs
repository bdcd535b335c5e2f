//! What to look for of a machine that is hibernated, or is about to be.

use domain::{ResourceId, hibernation::Hibernation, resource::ActionId};

/// What to look for.
#[derive(Debug, Clone, Copy)]
pub struct Sighting<'a> {
    /// The resource by its first id, which all that we make of it is labelled with.
    pub of: &'a ResourceId,
    /// The machine by its present id, if there is one.
    pub present: Option<&'a ResourceId>,
    /// A machine that was begun to be made, as its answer named it.
    pub made: Option<&'a ResourceId>,
    /// The action by which that is made, as its answer named it.
    pub making: Option<ActionId>,
    /// What is known of its snapshots.
    pub kept: Option<&'a Hibernation>,
    /// Whether what is attached to the machine matters: only if it may be deleted, or was made again.
    /// Where it takes many requests, it is not read otherwise.
    pub attached: bool,
    /// The machine's name.
    pub name: &'a str,
}

/// A decimal number in hundredths, what is smaller cut off.
pub(crate) fn hundredths(number: &serde_json::Number) -> u64 {
    let text = number.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let digits = fraction.chars().chain("00".chars()).take(2);
    let digits: String = whole.chars().chain(digits).collect();
    digits.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_hundredths() {
        for (text, expected) in [("2.3", 230), ("40", 4_000), ("0.049", 4), ("12.345", 1_234)] {
            let number: serde_json::Number = serde_json::from_str(text).unwrap();
            assert_eq!(hundredths(&number), expected, "{text}");
        }
    }
}
