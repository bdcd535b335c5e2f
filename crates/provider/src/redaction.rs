//! Keeps an account's token out of everything that is read from its provider: an error page or a
//! proxy may repeat the request.

use std::{collections::HashSet, iter::zip, ops::Range};

/// The shortest part of a token that is redacted, in bytes: some error messages hold a part only.
const SHORTEST_PART: usize = 12;

/// A part contains at least one whole block that begins at a multiple of this length.
const BLOCK: usize = SHORTEST_PART / 2;

/// Overwrites the token, and each part of it, with asterisks.
pub(crate) fn redact(text: &mut [u8], token: &[u8]) {
    let blocks: HashSet<&[u8]> = token.windows(BLOCK).collect();
    for at in (0..text.len()).step_by(BLOCK) {
        let Some(block) = text.get(at..at + BLOCK).filter(|b| blocks.contains(b)) else {
            continue;
        };
        let offsets = (0..token.len()).filter(|offset| token[*offset..].starts_with(block));
        let parts = offsets.map(|offset| common(text, at, token, offset));
        if let Some(part) = parts.max_by_key(Range::len)
            && part.len() >= SHORTEST_PART
        {
            text[part].fill(b'*');
        }
    }
}

/// The part of the text around `at` that is the same as the token around `offset`.
fn common(text: &[u8], at: usize, token: &[u8], offset: usize) -> Range<usize> {
    let before = zip(text[..at].iter().rev(), token[..offset].iter().rev());
    let after = zip(&text[at..], &token[offset..]);
    let before = before.take_while(|(one, other)| one == other).count();
    let after = after.take_while(|(one, other)| one == other).count();
    at - before..at + after
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "dop_v1_0123456789abcdeffedcba98765432100f1e2d3c4b5a69788796a5b4c3d2e1f0";

    fn redacted(text: &str) -> String {
        let mut text = text.as_bytes().to_vec();
        redact(&mut text, TOKEN.as_bytes());
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_token_is_found_wherever_it_begins_and_so_is_half_of_it() {
        for before in 0..20 {
            let before = "ü".repeat(before);
            for part in [TOKEN, &TOKEN[..35], &TOKEN[40..], &TOKEN[20..36]] {
                let text = format!("{before}Bearer {part}, {part}");
                let stars = "*".repeat(part.len());
                assert_eq!(redacted(&text), format!("{before}Bearer {stars}, {stars}"));
            }
        }
    }

    #[test]
    fn other_text_stays_as_it_is() {
        let short = &TOKEN[..11];
        let text = format!(r#"{{"id": "dop_v1_fedcba98", "short": "{short}", "0": 0}}"#);
        assert_eq!(redacted(&text), text);
        let mut text = b"token".to_vec();
        redact(&mut text, b"token");
        assert_eq!(text, b"token");
    }
}
