//! Tables that fit the terminal without breaking names or words: a cell that does not fit into its
//! row moves to a line beneath it.

use anstyle::{Ansi256Color, AnsiColor};
use comfy_table::{
    CellAlignment, Color, ColumnConstraint, ContentArrangement, LineStyle, TableStyle, Width,
    presets,
};
use domain::schedule::{Desired, desired_or_any};
use textwrap::{WordSeparator, WordSplitter};

use crate::output::Style;

/// The width of the blank after each cell, and of the separator between two columns.
const PADDING: u16 = 1;
const LINE: u16 = 1;

/// The indents of the lines beneath a row.
const BENEATH: &str = "    ";
const FURTHER: &str = "      ";

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    heading: &'static str,
    /// The rank by which columns move beneath their rows on a narrow terminal, lowest first. `None`
    /// for a column that stays.
    yields: Option<u8>,
    /// Whether only the cells that are too long move beneath.
    is_text: bool,
    /// Whether its cells need the heading to be understood.
    is_named: bool,
    /// Whether it is dropped if there is no room for it.
    is_dispensable: bool,
    alignment: CellAlignment,
}

impl Column {
    /// A column that always stays in the row.
    pub(crate) const fn of(heading: &'static str) -> Self {
        Self {
            heading,
            yields: None,
            is_text: false,
            is_named: true,
            is_dispensable: false,
            alignment: CellAlignment::Left,
        }
    }

    /// A column of text that is understood without its heading. Only the cells that do not fit into
    /// their row move beneath it.
    pub(crate) const fn text(heading: &'static str) -> Self {
        Self { is_text: true, is_named: false, ..Self::of(heading).yields(0) }
    }

    /// Beneath a row, its text is preceded by the heading.
    pub(crate) const fn named(self) -> Self {
        Self { is_named: true, ..self }
    }

    /// A column that is dropped on a narrow terminal, before any other yields, because it is only
    /// nice to have.
    pub(crate) const fn dispensable(heading: &'static str) -> Self {
        Self { is_dispensable: true, ..Self::of(heading).yields(0) }
    }

    /// Moves beneath its rows on a narrow terminal, lowest rank first.
    pub(crate) const fn yields(self, rank: u8) -> Self {
        Self { yields: Some(rank), ..self }
    }

    /// Aligns the column to the right, for numbers.
    pub(crate) const fn right(self) -> Self {
        Self { alignment: CellAlignment::Right, ..self }
    }
}

/// The content of one column in a row.
#[derive(Debug, Clone)]
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
        Self {
            // A trailing newline would add an empty line.
            text: text.to_string().trim_end().to_owned(),
            colour: None,
        }
    }

    /// A desired state, in its color.
    pub(crate) fn desired(desired: impl Into<Option<Desired>>) -> Self {
        let desired = desired.into();
        let cell = Self::new(desired_or_any(desired));
        match desired {
            Some(Desired::Running) => cell.coloured(AnsiColor::BrightGreen),
            Some(Desired::Stopped) => cell.coloured(AnsiColor::BrightBlue),
            None => cell,
        }
    }

    /// Marks a cell that needs a person.
    pub(crate) fn alarming(self) -> Self {
        self.coloured(AnsiColor::BrightRed)
    }

    fn coloured(self, colour: AnsiColor) -> Self {
        Self { colour: Some(colour), ..self }
    }

    fn width(&self) -> usize {
        let lines = self.text.lines();
        lines.map(textwrap::core::display_width).max().unwrap_or(0)
    }

    fn height(&self) -> usize {
        self.text.lines().count().max(1)
    }

    fn beside(&self, style: Style) -> comfy_table::Cell {
        let cell = comfy_table::Cell::new(&self.text);
        match self.colour.filter(|_| style.colours) {
            Some(colour) => cell.fg(Color::AnsiValue(Ansi256Color::from_ansi(colour).index())),
            None => cell,
        }
    }
}

/// A table and its style.
#[derive(Debug)]
pub(crate) struct Table {
    style: Style,
    columns: Vec<Column>,
}

impl Table {
    /// Renders a table with these rows.
    pub(crate) fn whole(
        style: Style,
        columns: impl Into<Vec<Column>>,
        rows: &[Vec<Cell>],
    ) -> String {
        let columns = columns.into();
        let widths = fit(&columns, rows, style.width());
        Self { style, columns }.lines(rows, &widths)
    }

    fn lines(&self, rows: &[Vec<Cell>], widths: &[Option<usize>]) -> String {
        let mut table = self.empty(widths);
        let rows: Vec<_> = rows.iter().map(|row| self.parted(row, widths)).collect();
        for (beside, _) in &rows {
            table.add_row(beside.iter().map(|cell| cell.beside(self.style)));
        }
        let mut lines = table.lines();
        // The headings take one line, and so does the separator below them.
        let mut all: Vec<_> = lines.by_ref().take(2).collect();
        for (beside, beneath) in &rows {
            let height = beside.iter().map(Cell::height).max().unwrap_or(1);
            all.extend(lines.by_ref().take(height));
            all.extend(self.beneath(beneath));
        }
        let lines = all.iter().flat_map(|line| [line.trim_end(), "\n"]);
        lines.collect()
    }

    /// Splits a row into the cells that stay in it and those that move beneath it.
    fn parted<'r>(
        &self,
        row: &'r [Cell],
        widths: &[Option<usize>],
    ) -> (Vec<Cell>, Vec<(Column, &'r Cell)>) {
        let (mut beside, mut beneath) = (Vec::new(), Vec::new());
        for ((cell, column), width) in row.iter().zip(&self.columns).zip(widths) {
            let fits = width.is_some_and(|width| !column.is_text || cell.width() <= width);
            if !fits {
                beneath.push((*column, cell));
            }
            if width.is_some() {
                beside.push(if fits { cell.clone() } else { Cell::new("") });
            }
        }
        (beside, beneath)
    }

    fn empty(&self, widths: &[Option<usize>]) -> comfy_table::Table {
        let columns = self.columns.iter().zip(widths);
        let columns: Vec<_> =
            columns.filter_map(|(column, width)| Some((column, (*width)?))).collect();
        let mut table = comfy_table::Table::new();
        table
            .load_style(presets::UTF8_HORIZONTAL_ONLY)
            .load_style(
                TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')),
            )
            .set_content_arrangement(ContentArrangement::Disabled)
            .force_no_tty()
            .set_header(columns.iter().map(|(column, _)| column.heading));
        if self.style.colours {
            table.enforce_styling();
        }
        let least = |(_, width): &(&Column, usize)| {
            let width = u16::try_from(*width).unwrap_or(u16::MAX - PADDING);
            ColumnConstraint::LowerBoundary(Width::Fixed(width + PADDING))
        };
        table.set_constraints(columns.iter().map(least).collect::<Vec<_>>());
        for (drawn, (column, _)) in table.column_iter_mut().zip(columns) {
            drawn.set_padding((0, PADDING));
            drawn.set_cell_alignment(column.alignment);
        }
        table
    }

    /// The lines for the cells that have no place in their row.
    fn beneath(&self, cells: &[(Column, &Cell)]) -> Vec<String> {
        let cells = cells.iter();
        let cells = cells.filter(|(column, cell)| !column.is_dispensable && !cell.text.is_empty());
        let words = cells.clone().map(|(column, cell)| {
            let text = cell.text.replace('\n', "; ");
            if column.is_named {
                format!("{}: {text}", column.heading.to_lowercase())
            } else {
                text
            }
        });
        let words: Vec<_> = words.collect();
        if words.is_empty() {
            return Vec::new();
        }
        let lines = wrap(&words.join("; "), self.style.width(), BENEATH, FURTHER);
        let colour = cells.into_iter().find_map(|(_, cell)| cell.colour);
        let painted = |line: String| match colour.filter(|_| self.style.colours) {
            Some(colour) => {
                let style = Ansi256Color::from_ansi(colour).on_default();
                format!("{style}{line}{style:#}")
            }
            None => line,
        };
        lines.into_iter().map(painted).collect()
    }
}

/// Wraps a text to lines of `width` characters, breaking only between words. The first line of a
/// paragraph begins with `first`, the others with `further`.
pub(crate) fn wrap(text: &str, width: usize, first: &str, further: &str) -> Vec<String> {
    let options = textwrap::Options::new(width)
        .initial_indent(first)
        .subsequent_indent(further)
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation);
    let lines = textwrap::wrap(text, options).into_iter();
    lines.map(std::borrow::Cow::into_owned).collect()
}

/// The width of each column. `None` for a yielding column for which there is no room.
fn fit(columns: &[Column], rows: &[Vec<Cell>], available: usize) -> Vec<Option<usize>> {
    let content = |index: usize| rows.iter().filter_map(move |row| row.get(index));
    let width = |(index, column): (usize, &Column)| {
        let content = content(index).map(Cell::width).max().unwrap_or(0);
        Some(content.max(textwrap::core::display_width(column.heading)))
    };
    let mut widths: Vec<_> = columns.iter().enumerate().map(width).collect();
    // Dropping an empty column loses nothing.
    let is_empty = |index: usize| content(index).all(|cell| cell.text.is_empty());
    let mut yielding: Vec<_> = (0..columns.len())
        .filter_map(|index| Some((!is_empty(index), columns[index].yields?, index)))
        .collect();
    yielding.sort_unstable();
    let room = |widths: &[Option<usize>]| {
        let taken = widths.iter().flatten();
        let taken: usize = taken.map(|width| width + usize::from(PADDING + LINE)).sum();
        (available + usize::from(LINE)).checked_sub(taken)
    };
    let mut yielded = Vec::new();
    for (_, _, index) in yielding {
        if room(&widths).is_some() {
            break;
        }
        yielded.push((index, widths[index].take()));
    }
    // A wide column that yielded last may have left room for narrow ones.
    for (index, width) in yielded.into_iter().rev() {
        let room = room(&widths).unwrap_or(0);
        let needed = width.map(|width| width + usize::from(PADDING + LINE));
        if !is_empty(index) && needed.is_some_and(|needed| needed <= room) {
            widths[index] = width;
        }
    }
    // A text column takes the remaining room, for those of its cells that fit.
    for (index, column) in columns.iter().enumerate() {
        if !column.is_text || widths[index].is_some() {
            continue;
        }
        let heading = textwrap::core::display_width(column.heading);
        let left = room(&widths).unwrap_or(0);
        let left = left.saturating_sub(usize::from(PADDING + LINE));
        let fitting = content(index).map(Cell::width);
        let widest = fitting.filter(|width| (1..=left).contains(width)).max();
        let width = widest.map(|widest| widest.max(heading));
        widths[index] = width.filter(|width| *width <= left);
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> [Column; 5] {
        [
            Column::of("Name"),
            Column::of("Schedule").yields(2),
            Column::of("Hours").right(),
            Column::of("Saved").yields(1),
            Column::text("Remark"),
        ]
    }

    fn rows() -> Vec<Vec<Cell>> {
        let rows = [
            ["analytics-database", "office-hours", "7.5", "db-s-2vcpu-4gb", ""],
            ["web-1", "nights", "12", "", "refused: the server is locked by another action"],
        ];
        rows.map(|row| row.map(Cell::new).to_vec()).to_vec()
    }

    fn drawn(width: u16) -> String {
        let style = Style { colours: false, width: Some(width) };
        Table::whole(style, columns(), &rows())
    }

    #[test]
    fn what_has_no_room_in_its_row_goes_beneath_it_whole() {
        insta::assert_snapshot!(drawn(120), @"
        Name                Schedule      Hours  Saved           Remark
        ─────────────────────────────────────────────────────────────────────────────────────────────────────────
        analytics-database  office-hours    7.5  db-s-2vcpu-4gb
        web-1               nights           12                  refused: the server is locked by another action
        ");
        insta::assert_snapshot!(drawn(60), @"
        Name                Schedule      Hours  Saved
        ────────────────────────────────────────────────────────
        analytics-database  office-hours    7.5  db-s-2vcpu-4gb
        web-1               nights           12
            refused: the server is locked by another action
        ");
        insta::assert_snapshot!(drawn(45), @"
        Name                Schedule      Hours
        ────────────────────────────────────────
        analytics-database  office-hours    7.5
            saved: db-s-2vcpu-4gb
        web-1               nights           12
            refused: the server is locked by another
              action
        ");
        insta::assert_snapshot!(drawn(30), @"
        Name                Hours
        ──────────────────────────
        analytics-database    7.5
            schedule: office-hours;
              saved: db-s-2vcpu-4gb
        web-1                  12
            schedule: nights; refused:
              the server is locked by
              another action
        ");
    }

    #[test]
    fn no_name_is_broken_however_narrow_the_terminal_is() {
        for width in 1..120 {
            let drawn = drawn(width);
            for row in rows() {
                for word in row.iter().flat_map(|cell| cell.text.split(' ')) {
                    assert!(drawn.contains(word), "{word} at {width}:\n{drawn}");
                }
            }
        }
    }

    #[test]
    fn a_column_without_content_goes_first_and_leaves_nothing() {
        let columns =
            [Column::of("Name"), Column::of("Empty").yields(9), Column::of("State").yields(1)];
        let row = ["web-1", "", "running"].map(Cell::new).to_vec();
        let style = Style { colours: false, width: Some(15) };
        insta::assert_snapshot!(Table::whole(style, columns, &[row]), @"
        Name   State
        ───────────────
        web-1  running
        ");
    }

    #[test]
    fn a_cell_of_several_lines_keeps_them_beside_the_row() {
        let columns = [Column::of("Schedule"), Column::of("Next"), Column::text("Why")];
        let text = "w ".repeat(40);
        let rows = [["office", "Mon 08:00\nMon 19:00\n", text.trim()], ["nights", "Tue", ""]];
        let rows = rows.map(|row| row.map(Cell::new).to_vec());
        let style = Style { colours: false, width: Some(40) };
        insta::assert_snapshot!(Table::whole(style, columns, &rows), @"
        Schedule  Next
        ────────────────────
        office    Mon 08:00
                  Mon 19:00
            w w w w w w w w w w w w w w w w w w
              w w w w w w w w w w w w w w w w w
              w w w w w
        nights    Tue
        ");
    }
}
