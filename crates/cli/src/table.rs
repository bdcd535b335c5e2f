//! Tables with one line for each row. A terminal that is too narrow drops the columns that are only
//! nice to have, cuts the text at its edge, then what is widest, and times and numbers last; files and
//! other programs get everything.

use anstyle::AnsiColor;
use domain::schedule::{Desired, desired_or_any};
use textwrap::core::display_width;

use crate::output::Style;

/// The blanks between two columns.
const GAP: usize = 2;

/// The least width of a column of text.
const LEAST_TEXT: usize = 16;

/// The width down to which others are cut before times and numbers.
const LEAST_NAME: usize = 8;

/// A column: its heading, and its cell of a row, which may depend on how it is shown.
#[derive(Debug)]
pub(crate) enum Column<R, S> {
    /// It always stays.
    Fixed(&'static str, CellOf<R, S>),
    /// It always stays, and is cut last: half a time is another time.
    Time(&'static str, CellOf<R, S>),
    /// The same, aligned to the right.
    Number(&'static str, CellOf<R, S>),
    /// It is dropped where there is no room, the last of them first.
    Wide(&'static str, CellOf<R, S>),
    /// Its cells are cut where there is no room. A table has one at most, and it comes last.
    Text(&'static str, CellOf<R, S>),
}

type CellOf<R, S> = fn(&R, &S) -> Cell;

impl<R, S> Column<R, S> {
    fn parts(&self) -> (&'static str, CellOf<R, S>) {
        let (Self::Fixed(heading, cell)
        | Self::Time(heading, cell)
        | Self::Number(heading, cell)
        | Self::Wide(heading, cell)
        | Self::Text(heading, cell)) = self;
        (heading, *cell)
    }

    fn heading(&self) -> &'static str {
        self.parts().0
    }
}

/// The content of one column in a row: one line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    text: String,
    colour: Option<AnsiColor>,
}

impl Cell {
    #[expect(
        clippy::needless_pass_by_value,
        reason = "most callers have a value that they made for this"
    )]
    pub(crate) fn new(text: impl ToString) -> Self {
        Self { text: text.to_string().trim_end().replace('\n', "; "), colour: None }
    }

    pub(crate) fn any(text: Option<impl ToString>) -> Self {
        text.map_or_else(|| Self::new(""), Self::new)
    }

    /// A desired state, in its color.
    pub(crate) fn desired(desired: impl Into<Option<Desired>>) -> Self {
        let desired = desired.into();
        Self::new(desired_or_any(desired)).coloured_by(desired)
    }

    pub(crate) fn coloured_by(self, desired: Option<Desired>) -> Self {
        match desired {
            Some(Desired::Running) => self.coloured(AnsiColor::BrightGreen),
            Some(Desired::Stopped) => self.coloured(AnsiColor::BrightBlue),
            None => self,
        }
    }

    pub(crate) fn alarming(self) -> Self {
        self.coloured(AnsiColor::BrightRed)
    }

    fn coloured(self, colour: AnsiColor) -> Self {
        Self { colour: Some(colour), ..self }
    }
}

pub(crate) fn table<R, S>(style: Style, columns: &[Column<R, S>], rows: &[R], shown: &S) -> String {
    let cells = |row: &R| columns.iter().map(|column| column.parts().1(row, shown)).collect();
    let rows: Vec<_> = rows.iter().map(cells).collect();
    let widths = fit(columns, &rows, style.width.map(usize::from));
    let headings = columns.iter().map(|column| Cell::new(column.heading()));
    let mut text = line(style, columns, &headings.collect::<Vec<_>>(), &widths);
    for row in &rows {
        text += &line(style, columns, row, &widths);
    }
    text
}

/// The width of each column; `None` for one that is dropped.
fn fit<R, S>(
    columns: &[Column<R, S>],
    rows: &[Vec<Cell>],
    room: Option<usize>,
) -> Vec<Option<usize>> {
    let content = |index: usize| {
        let cells = rows.iter().filter_map(move |row| row.get(index));
        cells.map(|cell| display_width(&cell.text)).max().unwrap_or(0)
    };
    let natural = columns.iter().enumerate().map(|(index, column)| match content(index) {
        0 if !rows.is_empty() => None,
        content => Some(content.max(display_width(column.heading()))),
    });
    let mut widths: Vec<_> = natural.collect();
    let Some(room) = room else {
        return widths;
    };
    let taken = |widths: &[Option<usize>]| {
        widths.iter().flatten().map(|width| width + GAP).sum::<usize>().saturating_sub(GAP)
    };
    let text = columns.iter().position(|column| matches!(column, Column::Text(..)));
    let text = text.and_then(|index| Some((index, widths[index]?)));
    if let Some((index, natural)) = text {
        widths[index] = Some(natural.min(LEAST_TEXT));
    }
    for index in (0..columns.len()).rev() {
        if matches!(columns[index], Column::Wide(..)) && taken(&widths) > room {
            widths[index] = None;
        }
    }
    if let Some((index, natural)) = text {
        let left = room.saturating_sub(taken(&widths)) + natural.min(LEAST_TEXT);
        widths[index] = Some(natural.min(left));
    }
    // However little is left: a row is one line.
    let mut excess = taken(&widths).saturating_sub(room);
    for least in [LEAST_NAME, 1] {
        let is_cut = |column: &Column<R, S>| {
            least == 1 || !matches!(column, Column::Time(..) | Column::Number(..))
        };
        let cut = |widths: &mut [Option<usize>]| {
            let cut = columns.iter().zip(widths).filter(|(column, _)| is_cut(column));
            let widest = cut.filter_map(|(_, width)| width.as_mut()).max()?;
            (*widest > least).then(|| *widest -= 1)
        };
        while excess > 0 && cut(&mut widths).is_some() {
            excess -= 1;
        }
    }
    widths
}

fn line<R, S>(
    style: Style,
    columns: &[Column<R, S>],
    cells: &[Cell],
    widths: &[Option<usize>],
) -> String {
    let mut line = String::new();
    let mut blanks = 0;
    for ((column, cell), width) in columns.iter().zip(cells).zip(widths) {
        let Some(width) = *width else { continue };
        let text = cut(&cell.text, width);
        let padding = width.saturating_sub(display_width(&text));
        let before = if matches!(column, Column::Number(..)) { padding } else { 0 };
        line.extend(std::iter::repeat_n(' ', blanks + before));
        line += &cell.colour.map_or_else(|| text.clone(), |colour| style.coloured(colour, &text));
        blanks = GAP + padding - before;
    }
    line.truncate(line.trim_end().len());
    line.push('\n');
    line
}

/// Shortens a text to a width, with a sign that something is missing.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for character in text.chars() {
        kept.push(character);
        if display_width(&kept) >= width {
            kept.pop();
            break;
        }
    }
    kept.truncate(kept.trim_end().len());
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column<[&str; 5], ()>; 5] = [
        Column::Fixed("Name", |row, ()| Cell::new(row[0])),
        Column::Fixed("Schedule", |row, ()| Cell::new(row[1])),
        Column::Number("Hours", |row, ()| Cell::new(row[2])),
        Column::Wide("Saved", |row, ()| Cell::new(row[3])),
        Column::Text("Remark", |row, ()| Cell::new(row[4])),
    ];

    fn drawn(width: Option<u16>) -> String {
        let rows = [
            ["analytics-database", "office-hours", "7.5", "db-s-2vcpu-4gb", ""],
            ["web-1", "", "12", "", "refused: the server is locked by another action"],
        ];
        table(Style { colours: false, width }, &COLUMNS, &rows, &())
    }

    #[test]
    fn each_row_is_one_line_and_only_a_terminal_drops_or_cuts_anything() {
        insta::assert_snapshot!(drawn(None), @"
        Name                Schedule      Hours  Saved           Remark
        analytics-database  office-hours    7.5  db-s-2vcpu-4gb
        web-1                                12                  refused: the server is locked by another action
        ");
        insta::assert_snapshot!(drawn(Some(80)), @"
        Name                Schedule      Hours  Saved           Remark
        analytics-database  office-hours    7.5  db-s-2vcpu-4gb
        web-1                                12                  refused: the server is…
        ");
        insta::assert_snapshot!(drawn(Some(60)), @"
        Name                Schedule      Hours  Remark
        analytics-database  office-hours    7.5
        web-1                                12  refused: the serve…
        ");
        for width in 20..120 {
            assert!(drawn(Some(width)).lines().all(|line| display_width(line) <= width.into()));
        }
    }

    #[test]
    fn names_and_texts_are_cut_before_a_time() {
        const COLUMNS: [Column<[&str; 3], ()>; 3] = [
            Column::Fixed("Name", |row, ()| Cell::new(row[0])),
            Column::Time("Next", |row, ()| Cell::new(row[1])),
            Column::Text("Remark", |row, ()| Cell::new(row[2])),
        ];
        let row = ["analytics-db", "stopped Fri 19:00 UTC", "refused: the server is locked"];
        let drawn = |width| {
            let style = Style { colours: false, width: Some(width) };
            let table = table(style, &COLUMNS, &[row], &());
            table.lines().last().map(ToOwned::to_owned).unwrap_or_default()
        };
        assert_eq!(drawn(44), "analytics…  stopped Fri 19:00 UTC  refused:…");
        assert_eq!(drawn(41), "analyti…  stopped Fri 19:00 UTC  refused…");
        for width in 8..60 {
            assert!(display_width(&drawn(width)) <= width.into());
        }
    }

    #[test]
    fn a_column_without_content_is_left_out() {
        let drawn = table(Style::PLAIN, &COLUMNS, &[["web-1\n", "", "", "", ""]], &());
        assert_eq!(drawn, "Name\nweb-1\n");
    }
}
