//! What people and programs read: results on standard output, everything else on standard error.

use std::{
    env,
    io::{self, IsTerminal as _, Write},
};

use anstyle::AnsiColor;
use comfy_table::{
    Cell, Color, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, presets,
};
use domain::schedule::Wish;
use serde::Serialize;

use crate::configuration_file::LoadError;

/// Writes a result to standard output. A reader that has gone away is a quiet end.
pub fn print(text: &str) -> io::Result<()> {
    quietly(io::stdout().lock(), text)
}

/// Writes a result to standard output as JSON.
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(print(&text)?)
}

/// Writes a remark to standard error, where failing to be heard is no failure.
pub fn remark(text: &str) {
    quietly(io::stderr().lock(), text).ok();
}

/// Warns on standard error of what the command could go on without: `warning:`, then the causes.
pub fn warn(error: &dyn std::error::Error) {
    remark(&format!("warning: {}\n", environment::in_words(error)));
}

/// Tells on standard error why a command failed: `error:`, then the chain of causes. The problems
/// of a configuration come before it, a line each.
pub fn report(error: &anyhow::Error) {
    for cause in error.chain() {
        if let Some(LoadError::Invalid { problems, .. }) = cause.downcast_ref() {
            for problem in problems {
                remark(&format!("{problem}\n"));
            }
        }
    }
    let words = environment::in_words(error.as_ref());
    remark(&format!("error: {words}\n"));
}

fn quietly(mut to: impl Write, text: &str) -> io::Result<()> {
    match to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// The text with each UUID cut to its first part: a line is read by people, and the whole ids are
/// in what programs read.
#[must_use]
pub fn shortened(text: &str) -> String {
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

/// The width of lists where there is no terminal to ask.
const FILE_WIDTH: u16 = 150;

/// What a text says, for its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// Something new.
    Added,
    /// Something other than before.
    Changed,
    /// Something that is gone.
    Removed,
}

/// How tables are to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether states have colours.
    pub colours: bool,
    /// The columns of the terminal; none for as many as it takes.
    pub width: Option<u16>,
}

impl Style {
    /// Without colours, in full width: for files and other programs.
    pub const PLAIN: Self = Self {
        colours: false,
        width: None,
    };

    /// What suits standard output: colours and wrapping on a terminal alone, and no colours where
    /// the environment has `NO_COLOR`.
    #[must_use]
    pub fn of_stdout() -> Self {
        if !io::stdout().is_terminal() {
            return Self::PLAIN;
        }
        Self {
            colours: env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            width: Table::new().width(),
        }
    }

    /// An empty table with these headings.
    #[must_use]
    pub fn table<const N: usize>(self, headings: [&str; N]) -> Table {
        let mut table = Table::new();
        table
            .load_style(presets::UTF8_HORIZONTAL_ONLY)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .force_no_tty()
            .set_header(headings);
        if let Some(width) = self.width {
            table.set_width(width);
        }
        if self.colours {
            table.enforce_styling();
        }
        table
    }

    /// An empty table without lines between its rows, for long lists.
    #[must_use]
    pub fn list<const N: usize>(self, headings: [&str; N]) -> Table {
        let mut table = self.table(headings);
        let line = LineStyle::none().fill('─').junction('─');
        table.load_style(TableStyle::new().header_separator(line));
        if self.width.is_none() {
            table.set_width(FILE_WIDTH);
        }
        table
    }

    /// A text in the colour of what it says.
    #[must_use]
    pub fn paint(self, paint: Paint, text: &str) -> String {
        if !self.colours {
            return text.to_owned();
        }
        let colour = match paint {
            Paint::Added => AnsiColor::Green,
            Paint::Changed => AnsiColor::Yellow,
            Paint::Removed => AnsiColor::Red,
        };
        let style = colour.on_default();
        format!("{style}{text}{style:#}")
    }

    /// A cell of what needs a person.
    #[must_use]
    pub fn alarm(self, cell: Cell) -> Cell {
        if self.colours {
            cell.fg(Color::Red)
        } else {
            cell
        }
    }

    /// A wish, in its colour.
    #[must_use]
    pub fn wish(self, wish: Wish) -> Cell {
        let cell = Cell::new(wish);
        if !self.colours {
            return cell;
        }
        match wish {
            Wish::Running => cell.fg(Color::Green),
            Wish::Stopped => cell.fg(Color::Blue),
            Wish::Any => cell,
        }
    }
}

/// Has a column, counted from 0, never wrap its cells: an instant reads badly on two lines.
pub fn keep_whole(table: &mut Table, column: usize) {
    if let Some(column) = table.column_mut(column) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that has gone, or a disk that is full.
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
            let style = Style {
                colours,
                width: Some(40),
            };
            let mut table = style.table(["State"]);
            table.add_row([style.wish(Wish::Running)]);
            table.to_string()
        };
        assert!(rendered(true).contains('\u{1b}'));
        assert!(!rendered(false).contains('\u{1b}'));
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
