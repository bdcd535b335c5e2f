//! Suggests what was probably meant.

/// The candidate most similar to a word. `None` if none is similar enough.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| {
            let length = candidate.chars().count();
            *distance < length && *distance <= (length / 3).max(1)
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// Suggests the candidate most similar to a word, or otherwise lists all of them.
pub fn advice<'c>(
    word: &str,
    what: &str,
    candidates: impl IntoIterator<Item = &'c str> + Clone,
) -> String {
    let all: Vec<_> = candidates.clone().into_iter().collect();
    match (nearest(word, candidates), all.as_slice()) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, []) => format!("there are no {what}"),
        (None, all) => format!("the {what} are {}", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let known = ["timezone", "protect", "mode", "a"];
        for (word, expected) in [
            ("timezoen", Some("timezone")),
            ("Timezone", Some("timezone")),
            ("time_zone", Some("timezone")),
            ("protcet", Some("protect")),
            ("modes", Some("mode")),
            ("colour", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
        assert_eq!(nearest("web-5", ["web-25", "WEB-5"]), Some("WEB-5"));
    }

    #[test]
    fn advice_names_the_nearest_or_all() {
        assert_eq!(advice("mdoe", "keys", ["mode", "url"]), "did you mean `mode`?");
        assert_eq!(advice("x-y-z", "keys", ["mode", "url"]), "the keys are mode, url");
        assert_eq!(advice("x", "accounts", []), "there are no accounts");
    }
}
