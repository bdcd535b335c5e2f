//! Inputs between a corpus and nonsense: its entries with a few changes.

use std::{collections::BTreeSet, fs, path::Path};

use proptest::{collection::vec, prelude::*};

/// Text that may trip up a parser anywhere.
const ODD: [&str; 43] = [
    "",
    " ",
    "\n",
    "\t",
    "\0",
    "\"",
    "'",
    "\\",
    "`",
    "/",
    "//",
    ":",
    ",",
    "..",
    "-",
    "#",
    "@",
    "*",
    "?",
    "=",
    "[",
    "]",
    "{",
    "}",
    "null",
    "true",
    "0",
    "-1",
    "00",
    "4294967296",
    "18446744073709551615",
    "1e999",
    "9999-12-30T22:00:00Z",
    "-009999-01-02T01:59:59Z",
    "24:00",
    "ä",
    "\u{202e}",
    "\u{feff}",
    "\u{1f980}",
    "nan",
    "\\n",
    "\\u001b[2J",
    "9223372036854775807",
];

/// The range of positions, larger than the longest entry, so that any position in it can be chosen.
const PLACES: u32 = 1 << 16;

/// The inputs that a target keeps, and the words in them.
pub(crate) struct Corpus {
    pub(crate) entries: Vec<Entry>,
    words: Vec<Vec<u8>>,
}

pub(crate) struct Entry {
    pub(crate) file: String,
    pub(crate) data: Vec<u8>,
}

/// An entry, and the changes made to it, in order. Numbers wrap around where there are fewer items.
#[derive(Debug, Clone)]
pub(crate) struct Mutation {
    entry: u32,
    changes: Vec<Change>,
}

#[derive(Debug, Clone)]
enum Change {
    /// Flips a bit.
    Flip { at: u32, bit: u32 },
    /// Removes some bytes.
    Cut { from: u32, length: u32 },
    /// Removes everything from a position on.
    Truncate { at: u32 },
    /// Repeats some bytes.
    Repeat { from: u32, length: u32 },
    /// Inserts something odd, or a word of the corpus.
    Insert { at: u32, word: u32 },
    /// Replaces a word with one.
    Replace { word: u32, with: u32 },
    /// Continues with the rest of another entry.
    Splice { at: u32, entry: u32, from: u32 },
    /// Repeats a word many times.
    Flood { word: u32, times: u32 },
    /// Removes a line.
    CutLine { line: u32 },
}

/// Any entry with a few changes.
pub(crate) fn any() -> impl Strategy<Value = Mutation> {
    let place = || 0..PLACES;
    let few = || 1..16_u32;
    let change = prop_oneof![
        1 => (place(), 0..8_u32).prop_map(|(at, bit)| Change::Flip { at, bit }),
        1 => (place(), few()).prop_map(|(from, length)| Change::Cut { from, length }),
        1 => place().prop_map(|at| Change::Truncate { at }),
        1 => (place(), few()).prop_map(|(from, length)| Change::Repeat { from, length }),
        2 => (place(), place()).prop_map(|(at, word)| Change::Insert { at, word }),
        6 => (place(), place()).prop_map(|(word, with)| Change::Replace { word, with }),
        1 => (place(), place(), place())
            .prop_map(|(at, entry, from)| Change::Splice { at, entry, from }),
        1 => (place(), 2..300_u32).prop_map(|(word, times)| Change::Flood { word, times }),
        1 => place().prop_map(|line| Change::CutLine { line }),
    ];
    (place(), vec(change, 1..5)).prop_map(|(entry, changes)| Mutation { entry, changes })
}

impl Corpus {
    /// Reads the files of a folder.
    pub(crate) fn read(folder: &Path) -> Self {
        let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let mut files: Vec<_> = files.collect();
        files.sort();
        let entries: Vec<_> = files
            .into_iter()
            .map(|path| Entry {
                file: path.file_name().unwrap().to_string_lossy().into_owned(),
                data: fs::read(&path).unwrap(),
            })
            .collect();
        assert!(!entries.is_empty(), "{}", folder.display());
        let words: BTreeSet<_> = entries
            .iter()
            .flat_map(|entry| words(&entry.data).map(|range| entry.data[range].to_owned()))
            .chain(ODD.map(|odd| odd.as_bytes().to_owned()))
            .collect();
        Self { entries, words: words.into_iter().collect() }
    }

    /// The input that a mutation yields.
    pub(crate) fn mutated(&self, mutation: &Mutation) -> Vec<u8> {
        let mut input = self.entry(mutation.entry).to_owned();
        for change in &mutation.changes {
            self.apply(change, &mut input);
        }
        input
    }

    fn entry(&self, number: u32) -> &[u8] {
        &self.entries[number as usize % self.entries.len()].data
    }

    fn word(&self, number: u32) -> Vec<u8> {
        self.words[number as usize % self.words.len()].clone()
    }

    fn apply(&self, change: &Change, input: &mut Vec<u8>) {
        match *change {
            Change::Flip { at, bit } => {
                let at = place(at, input.len());
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << bit;
                }
            }
            Change::Cut { from, length } => {
                input.drain(range(from, length, input.len()));
            }
            Change::Truncate { at } => input.truncate(place(at, input.len())),
            Change::Repeat { from, length } => {
                let range = range(from, length, input.len());
                let said = input[range.clone()].to_owned();
                input.splice(range.start..range.start, said);
            }
            Change::Insert { at, word } => {
                let at = place(at, input.len());
                input.splice(at..at, self.word(word));
            }
            Change::Replace { word, with } => {
                let words: Vec<_> = words(input).collect();
                if let Some(range) = words.get(place(word, words.len())) {
                    input.splice(range.clone(), self.word(with));
                }
            }
            Change::Flood { word, times } => {
                let words: Vec<_> = words(input).collect();
                if let Some(range) = words.get(place(word, words.len())) {
                    let flood = input[range.clone()].repeat(times as usize);
                    input.splice(range.clone(), flood);
                }
            }
            Change::Splice { at, entry, from } => {
                let other = self.entry(entry);
                input.truncate(place(at, input.len()));
                input.extend_from_slice(&other[place(from, other.len())..]);
            }
            Change::CutLine { line } => {
                let lines: Vec<_> = input.split_inclusive(|byte| *byte == b'\n').collect();
                let cut = place(line, lines.len());
                let kept = lines.iter().enumerate().filter(|(number, _)| *number != cut);
                *input = kept.flat_map(|(_, line)| line.iter().copied()).collect();
            }
        }
    }
}

/// A position within a length; 0 if the length is 0.
fn place(number: u32, length: usize) -> usize {
    number as usize % length.max(1)
}

fn range(from: u32, length: u32, of: usize) -> std::ops::Range<usize> {
    let from = place(from, of);
    from..of.min(from + length as usize)
}

/// The ranges of the words: letters and digits, with what joins them.
fn words(text: &[u8]) -> impl Iterator<Item = std::ops::Range<usize>> {
    let joins = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(byte);
    let mut at = 0;
    std::iter::from_fn(move || {
        let begin = at + text[at..].iter().position(joins)?;
        let length = text[begin..].iter().position(|byte| !joins(byte));
        at = length.map_or(text.len(), |length| begin + length);
        Some(begin..at)
    })
}
