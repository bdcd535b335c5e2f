//! Output for people and programs: results on standard output, everything else on standard error.

use std::{
    borrow::Cow,
    env, fs,
    io::{self, IsTerminal as _, Write},
    path::Path,
};

use anstyle::AnsiColor;
use anyhow::Context as _;
use domain::text::{escape, marked};
use serde::Serialize;
use textwrap::{WordSeparator, WordSplitter};

use crate::configuration_file::LoadError;

/// The form of the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Text for people.
    #[default]
    Table,
    /// JSON for programs.
    Json,
    /// Comma-separated values for spreadsheets.
    Csv,
}

/// Writes a result to standard output. A closed pipe is not an error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    quietly(io::stdout().lock(), text)
}

/// Writes the contents of a file as they are: to this file, or to standard output.
pub(crate) fn write_file(file: Option<&Path>, contents: &str) -> anyhow::Result<()> {
    match file.filter(|file| *file != Path::new("-")) {
        Some(file) => {
            let cannot_write = || format!("cannot write {}", file.display());
            fs::write(file, contents).with_context(cannot_write)
        }
        None => Ok(unless_closed(io::stdout().lock(), contents)?),
    }
}

/// Writes lines for people to standard output, wrapping those too long for the terminal.
pub(crate) fn print_lines(text: &str) -> io::Result<()> {
    print(&Style::of_stdout().wrap(text))
}

/// Writes a result to standard output as JSON.
pub(crate) fn print_json(value: &(impl Serialize + ?Sized)) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(print(&text)?)
}

impl Format {
    /// Prints a value for programs, or its text for people.
    pub(crate) fn print(
        self,
        value: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        match self {
            Self::Table => Ok(print(&text())?),
            Self::Json | Self::Csv => print_json(value),
        }
    }
}

/// Writes a remark to standard error. A write failure is ignored.
pub(crate) fn remark(text: &str) {
    quietly(io::stderr().lock(), text).ok();
}

/// Writes remarks to standard error, each on a line of its own.
pub(crate) fn remarks(texts: &[String]) {
    for text in texts {
        remark(&format!("{text}\n"));
    }
}

/// Warns on standard error about something the command can continue without: `warning:`, then the
/// causes.
pub(crate) fn warn(error: &dyn std::error::Error) {
    remark(&format!("warning: {}\n", environment::in_words(error)));
}

/// Reports on standard error why a command failed: `error:`, then the chain of causes. The problems
/// of a configuration come first, one per line.
pub(crate) fn report(error: &anyhow::Error) {
    for cause in error.chain() {
        if let Some(LoadError::Invalid { problems, .. }) = cause.downcast_ref() {
            for problem in problems {
                remark(&format!("{problem}\n"));
            }
        }
    }
    let words = environment::in_words(error.as_ref());
    remark(&format!("error: {words}\n"));
    if let Some(advice) = local::file::advice(&words) {
        remark(&format!("  {advice}\n"));
    }
}

fn quietly(to: impl Write, text: &str) -> io::Result<()> {
    unless_closed(to, &printable(text))
}

fn unless_closed(mut to: impl Write, text: &str) -> io::Result<()> {
    match to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Returns the text with everything escaped that is not printable, except for newlines, tabs and
/// our own colors. What a provider or a person said was cleaned where it entered; what a file or a
/// system call says was not.
///
/// The escapes have the form `\u001b`, which is the same text in a JSON string.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let stays = |(c, is_printable)| is_printable || matches!(c, '\n' | '\t');
    if marked(text).all(stays) {
        return Cow::Borrowed(text);
    }
    let mut printed = String::with_capacity(text.len());
    let mut left_of_colour = 0;
    for ((at, _), marked) in text.char_indices().zip(marked(text)) {
        if left_of_colour == 0 {
            left_of_colour = colour(&text[at..]);
        }
        if left_of_colour > 0 || stays(marked) {
            printed.push(marked.0);
        } else {
            escape(marked.0, &mut printed);
        }
        left_of_colour = left_of_colour.saturating_sub(1);
    }
    Cow::Owned(printed)
}

/// The escape sequences that this program writes: colors, bold, and their ends.
const COLOURS: [&str; 11] = ["0", "1", "31", "32", "33", "34", "36", "39", "91", "92", "94"];

/// Returns the length of the escape sequence at the start of a text, if it is one of ours.
fn colour(text: &str) -> usize {
    let parameters = text.strip_prefix("\u{1b}[");
    let parameters = parameters.and_then(|rest| rest.split_once('m'));
    match parameters {
        Some((parameters, _)) if COLOURS.contains(&parameters) => {
            "\u{1b}[m".len() + parameters.len()
        }
        _ => 0,
    }
}

/// Shortens each UUID to its first part: a line is read by people, and programs get the whole ids.
pub(crate) fn shortened(text: &str) -> String {
    let is_separator = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
    text.split_inclusive(is_separator)
        .map(|word| {
            let id = word.trim_end_matches(is_separator);
            match uuid::Uuid::try_parse(id) {
                Ok(_) if id.len() == 36 => format!("{}…{}", &id[..8], &word[id.len()..]),
                Ok(_) | Err(_) => word.to_owned(),
            }
        })
        .collect()
}

/// The line width without a terminal.
const FILE_WIDTH: u16 = 120;

/// The style of tables and text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    /// Whether to use colors.
    pub colours: bool,
    /// The number of columns of the terminal. `None` without a terminal.
    pub width: Option<u16>,
}

impl Style {
    /// No colors and no wrapping: for files and other programs.
    pub(crate) const PLAIN: Self = Self { colours: false, width: None };

    /// The style for standard output: colors and wrapping only on a terminal, and no colors if
    /// `NO_COLOR` is set or the terminal has none. One may not know its width.
    pub(crate) fn of_stdout() -> Self {
        if !io::stdout().is_terminal() {
            return Self::PLAIN;
        }
        Self {
            colours: env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                && env::var_os("TERM").is_none_or(|terminal| terminal != "dumb"),
            width: crossterm::terminal::size()
                .ok()
                .map(|(columns, _)| columns)
                .filter(|columns| *columns > 0),
        }
    }

    /// The number of characters that fit on a line.
    pub(crate) fn width(self) -> usize {
        usize::from(self.width.unwrap_or(FILE_WIDTH))
    }

    /// Wraps lines for people at the width of the terminal. Continuation lines are indented four
    /// columns more than the line itself. Without a terminal, lines are not wrapped.
    pub(crate) fn wrap(self, text: &str) -> String {
        self.wrap_under(text, 4)
    }

    /// Like [`Self::wrap`], with another indent than four.
    pub(crate) fn wrap_under(self, text: &str, hanging: usize) -> String {
        if self.width.is_none() {
            return text.to_owned();
        }
        // Only between words.
        let options = textwrap::Options::new(self.width())
            .break_words(false)
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation);
        let wrap = |line: &str| {
            let words = line.trim_start_matches(' ');
            let indent = &line[..line.len() - words.len()];
            let further = format!("{indent}{:hanging$}", "");
            let options = options.clone().initial_indent(indent).subsequent_indent(&further);
            textwrap::fill(words, options) + "\n"
        };
        text.lines().map(wrap).collect()
    }

    pub(crate) fn coloured(self, colour: AnsiColor, text: &str) -> String {
        if !self.colours || text.is_empty() {
            return text.to_owned();
        }
        let style = colour.on_default();
        format!("{style}{text}{style:#}")
    }
}

#[cfg(test)]
mod tests {
    use domain::schedule::Desired;
    use jiff::{Timestamp, tz::TimeZone};

    use super::*;
    use crate::print::{Cell, Column, Screen};

    /// A reader that has gone away, or a full disk.
    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_broken_pipe_is_a_quiet_end_and_a_full_disk_is_not() {
        assert!(quietly(Failing(io::ErrorKind::BrokenPipe), "text").is_ok());
        assert!(quietly(Failing(io::ErrorKind::StorageFull), "text").is_err());
    }

    #[test]
    fn colours_appear_only_where_they_are_wanted() {
        let rendered = |colours| {
            let style = Style { colours, width: Some(40) };
            let columns = [Column::Fixed("State", |desired: &Desired, _| Cell::desired(*desired))];
            let plain = Screen::plain(&TimeZone::UTC, Timestamp::UNIX_EPOCH);
            Screen { style, ..plain }.table_of(&columns, &[Desired::Running])
        };
        assert!(rendered(true).contains('\u{1b}'));
        assert!(!rendered(false).contains('\u{1b}'));
    }

    #[test]
    fn what_comes_from_elsewhere_moves_no_cursor_and_hides_nothing() {
        for (text, expected) in [
            ("web-1\n\tübermut 本番 👩‍💻", "web-1\n\tübermut 本番 👩‍💻"),
            ("\u{1b}]0;title\u{7}web", "\\u001b]0;title\\u0007web"),
            ("a\r\u{1b}[2Kb", "a\\u000d\\u001b[2Kb"),
            ("\u{1b}[8mhidden\u{1b}[0m", "\\u001b[8mhidden\u{1b}[0m"),
            ("\u{1b}[30mblack", "\\u001b[30mblack"),
            ("\u{1b}[38;5;16mblack", "\\u001b[38;5;16mblack"),
            ("a\u{200b}b\u{e0061}", "a\\u200bb\\udb40\\udc61"),
            ("txt\u{202e}exe", "txt\\u202eexe"),
            ("\u{9b}31m\u{7f}\u{2028}", "\\u009b31m\\u007f\\u2028"),
            ("\u{1b}", "\\u001b"),
        ] {
            assert_eq!(printable(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_written_out_is_the_same_text_in_json() {
        let name = "a\u{7f}\u{202e}\u{9b}\u{1b}[2K\u{e0061}";
        let json = serde_json::to_string(name).unwrap();
        let read: String = serde_json::from_str(&printable(&json)).unwrap();
        assert_eq!(read, name);
    }

    #[test]
    fn our_own_colours_are_printed_as_they_are() {
        let style = Style { colours: true, width: Some(40) };
        let columns = [
            Column::Fixed("Desired", |(): &(), _| Cell::desired(Desired::Running)),
            Column::Text("State", |(), _| Cell::new("stuck ".repeat(9)).alarming()),
        ];
        let plain = Screen::plain(&TimeZone::UTC, Timestamp::UNIX_EPOCH);
        let table = Screen { style, ..plain }.table_of(&columns, &[()]);
        let table = table + &style.coloured(AnsiColor::Green, "text");
        assert_eq!(printable(&table), table);
    }

    #[test]
    fn ids_are_shortened_and_nothing_else() {
        let text = "PUT /v2/databases/9cc10173-e9ea-4176-9dbc-a4cee4c4ff30/resize size=db-s-1vcpu-2gb \
                    (request 40d29eb5-7de1-4510-ac7a-52e3d5459060)";
        assert_eq!(
            shortened(text),
            "PUT /v2/databases/9cc10173…/resize size=db-s-1vcpu-2gb (request 40d29eb5…)"
        );
    }
}
