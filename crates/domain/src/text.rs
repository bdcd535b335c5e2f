//! Text from outside, such as names, tags, reasons and providers' messages, as one printable line
//! of limited length. It is cleaned where it enters, so that whatever shows it can rely on that.

use std::{borrow::Cow, fmt::Write as _, ops::RangeInclusive};

use jiff::Timestamp;
use serde::{Deserialize as _, Deserializer};

/// The most characters of a name. No provider accepts a longer one.
pub const LONGEST_NAME: usize = 255;

/// The most characters of a tag. Hetzner's longest label, `key=value`, has 381.
pub const LONGEST_TAG: usize = 384;

/// The most characters of an author's name: more than the ARN of a role session has.
pub const LONGEST_AUTHOR: usize = 256;

/// The most characters of a person's reason.
pub const LONGEST_REASON: usize = 300;

/// The most characters of a provider's message.
pub const LONGEST_MESSAGE: usize = 500;

/// The most characters of any line: one that consists of several texts.
pub const LONGEST_LINE: usize = 4096;

/// Characters besides control characters that have no shape of their own, or that change the order,
/// the lines or the shape of the text around them. Sorted.
const UNPRINTABLE: [RangeInclusive<char>; 17] = [
    '\u{ad}'..='\u{ad}',
    '\u{34f}'..='\u{34f}',
    '\u{61c}'..='\u{61c}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{2800}'..='\u{2800}',
    '\u{3164}'..='\u{3164}',
    '\u{fe00}'..='\u{fe0f}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fffb}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e0fff}',
];

/// Formats an instant for people whose time zone is not known.
#[must_use]
pub fn in_utc(at: Timestamp) -> String {
    at.strftime("%a %Y-%m-%d %H:%M UTC").to_string()
}

/// Makes one printable line of a text, with at most `longest` characters. White space that breaks
/// or shifts lines becomes a space, other characters that are not printable are written out as
/// [`escape`] does, and what is too long ends with `…`. `Borrowed` if nothing had to change.
#[must_use]
pub fn one_line(text: &str, longest: usize) -> Cow<'_, str> {
    let is_short = text.len() <= longest || text.chars().nth(longest).is_none();
    if is_short && marked(text).all(|(_, is_printable)| is_printable) {
        return Cow::Borrowed(text);
    }
    let mut line = String::new();
    let mut length = 0;
    for (c, is_printable) in marked(text) {
        if length > longest {
            break;
        }
        let before = line.len();
        if is_printable {
            line.push(c);
        } else if c.is_whitespace() {
            line.push(' ');
        } else {
            escape(c, &mut line);
        }
        length += line[before..].chars().count();
    }
    if length > longest {
        let end = line.char_indices().nth(longest.saturating_sub(1));
        line.truncate(end.map_or(0, |(end, _)| end));
        line.push('…');
    }
    Cow::Owned(line)
}

/// Returns each character, and whether it can be shown as it is. Joiners and variation selectors
/// can be only within an emoji.
pub fn marked(text: &str) -> impl Iterator<Item = (char, bool)> + '_ {
    let mut before = None;
    text.chars().map(move |c| {
        let is_printable = match c {
            '\u{200d}' | '\u{fe0e}' | '\u{fe0f}' => {
                before.is_some_and(|b: char| !b.is_ascii() && !b.is_alphanumeric() && b != c)
            }
            c => c.is_ascii_graphic() || c == ' ' || (!c.is_control() && has_shape(c)),
        };
        before = is_printable.then_some(c);
        (c, is_printable)
    })
}

fn has_shape(c: char) -> bool {
    let at = UNPRINTABLE.partition_point(|range| *range.end() < c);
    UNPRINTABLE.get(at).is_none_or(|range| c < *range.start())
}

/// Appends a character as `\u001b`, which is the same text in a JSON string.
pub fn escape(c: char, to: &mut String) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        // Writing to a string cannot fail.
        let _ = write!(to, "\\u{unit:04x}");
    }
}

/// Deserializes a stored text as one printable line: an earlier version stored it as it came.
pub fn line<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    Ok(match one_line(&text, LONGEST_LINE) {
        Cow::Borrowed(_) => text,
        Cow::Owned(line) => line,
    })
}

/// Does the same as [`line()`] for a text that may be absent.
pub fn optional_line<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.map(|text| one_line(&text, LONGEST_LINE).into_owned()))
}

/// Implements the conversions that serde uses, for a type that parses from text and prints as text.
macro_rules! as_text {
    ($name:ident, $error:ident) => {
        impl TryFrom<String> for $name {
            type Error = $error;

            fn try_from(text: String) -> Result<Self, $error> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.to_string()
            }
        }
    };
}
pub(crate) use as_text;

#[cfg(test)]
mod tests {
    use proptest::{prelude::any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn a_text_from_outside_is_one_line_that_hides_nothing() {
        for (text, expected) in [
            ("web-1 über 本番 👩‍💻 ❤️", "web-1 über 本番 👩‍💻 ❤️"),
            ("Zoe\u{308}", "Zoe\u{308}"),
            ("line1\nprod-db  running", "line1 prod-db  running"),
            ("a\r\n\tb\u{85}\u{2028}c", "a   b  c"),
            ("\u{1b}[31mred\u{1b}[0m", "\\u001b[31mred\\u001b[0m"),
            ("\u{9b}31m\u{7f}\u{0}", "\\u009b31m\\u007f\\u0000"),
            ("txt\u{202e}exe\u{2069}", "txt\\u202eexe\\u2069"),
            ("prod\u{200b}-\u{feff}db", "prod\\u200b-\\ufeffdb"),
            ("o\u{200d}ffice\u{fe0f}", "o\\u200dffice\\ufe0f"),
            ("ab\u{e0061}", "ab\\udb40\\udc61"),
        ] {
            assert_eq!(one_line(text, LONGEST_NAME), expected, "{text:?}");
        }
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        assert_eq!(one_line("prod", 4), "prod");
        assert_eq!(one_line("produ", 4), "pro…");
        assert_eq!(one_line("äöüä", 4), "äöüä");
        assert_eq!(one_line("äöüäö", 4), "äöü…");
        assert_eq!(one_line("\u{1b}\u{1b}", 8), "\\u001b\\…");
        let long = "\u{200b}".repeat(500_000);
        assert_eq!(one_line(&long, LONGEST_NAME).chars().count(), LONGEST_NAME);
    }

    #[test]
    fn what_an_earlier_version_stored_is_cleaned_when_it_is_read() {
        let stored = r#"{"what": "no\ncapacity", "because": "\u001b[30m", "request_id": "1"}"#;
        let reason: crate::reason::Reason = serde_json::from_str(stored).unwrap();
        assert_eq!(reason.words(), "no capacity: \\u001b[30m");
        let stored = r#"{"target": {"schedule": "office"}, "desired": "running", "by": "ada\nbob",
            "set_at": "2026-11-23T18:00:00Z", "ends_at": "2026-11-23T19:00:00Z"}"#;
        let set: crate::configuration::Override = serde_json::from_str(stored).unwrap();
        assert_eq!((set.by.as_str(), set.why), ("ada bob", None));
    }

    #[test]
    fn the_ranges_are_sorted() {
        assert!(UNPRINTABLE.is_sorted_by(|one, next| one.end() < next.start()));
    }

    proptest! {
        #[test]
        fn any_text_becomes_one_printable_line_and_stays_as_it_is(text in any::<String>()) {
            let line = one_line(&text, LONGEST_REASON);
            prop_assert!(!line.contains(char::is_control));
            prop_assert!(line.chars().count() <= LONGEST_REASON);
            prop_assert_eq!(one_line(&line, LONGEST_REASON), line.clone());
        }
    }
}
