//! Lists that are printed page by page, however many pages there are.

use comfy_table::{Cell, ColumnConstraint, Width};
use serde::Serialize;

use crate::output::{self, Style};

/// The blank after each cell, and the line between two columns, which is one as well.
const PADDING: u16 = 1;
const LINE: u16 = 1;

/// The width of a table where there is no terminal to ask.
const FILE_WIDTH: u16 = 180;

/// Sentences are wrapped to this width before names are.
const READABLE: u16 = 16;

/// No column with more content is made narrower than this.
const NARROWEST: u16 = 6;

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) heading: &'static str,
    /// To which width its cells may be wrapped before names have to be.
    wraps_to: Option<u16>,
}

impl Column {
    /// Names, or single words.
    pub(crate) const fn of(heading: &'static str) -> Self {
        Self {
            heading,
            wraps_to: None,
        }
    }

    /// A few words, of which each line has room for so many letters.
    pub(crate) const fn words(heading: &'static str, letters: u16) -> Self {
        Self {
            heading,
            wraps_to: Some(letters),
        }
    }

    /// Sentences.
    pub(crate) const fn text(heading: &'static str) -> Self {
        Self::words(heading, READABLE)
    }

    fn heading_width(self) -> u16 {
        width(self.heading)
    }
}

/// A table whose first page decides how wide its columns are: it is nearly always all there is.
#[derive(Debug)]
pub(crate) struct PagedTable {
    style: Style,
    columns: Vec<Column>,
    widths: Option<Vec<u16>>,
}

impl PagedTable {
    pub(crate) fn new(style: Style, columns: Vec<Column>) -> Self {
        Self {
            style,
            columns,
            widths: None,
        }
    }

    /// The lines of the next page; the first has the headings.
    pub(crate) fn page(&mut self, rows: Vec<Vec<Cell>>) -> String {
        let mut table = self.style.list([""; 0]);
        let headings = self.columns.iter().map(|column| column.heading);
        table.set_header(headings).add_rows(rows);
        let is_first = self.widths.is_none();
        let widths = self.widths.get_or_insert_with(|| {
            let available = self.style.width.unwrap_or(FILE_WIDTH);
            fit(&self.columns, table.column_max_content_widths(), available)
        });
        let fixed = |width: &u16| ColumnConstraint::Absolute(Width::Fixed(width + PADDING));
        table.set_constraints(widths.iter().map(fixed).collect::<Vec<_>>());
        for column in table.column_iter_mut() {
            column.set_padding((0, PADDING));
        }
        // The headings are one line, and so is what parts them from the rows.
        let lines = table.lines().skip(if is_first { 0 } else { 2 });
        lines.flat_map(|line| [line, "\n".to_owned()]).collect()
    }
}

fn width(text: &str) -> u16 {
    u16::try_from(text.chars().count()).unwrap_or(u16::MAX)
}

/// The widths of columns in a line of so many: that of their content while there is room; then
/// texts give way, and then the widest.
fn fit(columns: &[Column], mut widths: Vec<u16>, available: u16) -> Vec<u16> {
    let texts_give_way = |column: &Column| match column.wraps_to {
        Some(least) => least.max(column.heading_width()),
        None => u16::MAX,
    };
    let all_give_way = |column: &Column| NARROWEST.max(column.heading_width());
    shrink(&mut widths, columns.iter().map(texts_give_way), available);
    shrink(&mut widths, columns.iter().map(all_give_way), available);
    widths
}

/// Makes the widest columns narrower until all fit, none narrower than its least width.
fn shrink(widths: &mut [u16], least: impl Iterator<Item = u16>, available: u16) {
    let least: Vec<_> = least.collect();
    let is_too_wide = |widths: &[u16]| {
        let column = |width: &u16| usize::from(*width) + usize::from(PADDING + LINE);
        widths.iter().map(column).sum::<usize>() > usize::from(available + LINE)
    };
    while is_too_wide(widths) {
        let wider = widths
            .iter_mut()
            .zip(&least)
            .filter(|(width, least)| **width > **least);
        match wider.max_by_key(|(width, _)| **width) {
            Some((widest, _)) => *widest -= 1,
            None => return,
        }
    }
}

/// A JSON array on standard output, written element by element, a line each.
#[derive(Debug, Default)]
pub(crate) struct JsonArray {
    begun: bool,
}

impl JsonArray {
    pub(crate) fn write(&mut self, elements: &[impl Serialize]) -> anyhow::Result<()> {
        let mut text = String::new();
        for element in elements {
            text.push_str(if self.begun { ",\n" } else { "[\n" });
            text.push_str(&serde_json::to_string(element)?);
            self.begun = true;
        }
        Ok(output::print(&text)?)
    }

    pub(crate) fn end(self) -> anyhow::Result<()> {
        Ok(output::print(if self.begun { "\n]\n" } else { "[]\n" })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_give_way_first_then_the_widest_and_no_heading_is_cut() {
        let columns = [
            Column::of("Name"),
            Column::text("A text"),
            Column::of("A long heading"),
        ];
        let fit = |content: [u16; 3], available| fit(&columns, content.to_vec(), available);
        // Three columns take five more: a blank each, and two lines.
        assert_eq!(fit([20, 30, 14], 69), [20, 30, 14]);
        assert_eq!(fit([20, 30, 14], 59), [20, 20, 14]);
        assert_eq!(fit([20, 30, 14], 53), [18, 16, 14]);
        assert_eq!(fit([20, 30, 14], 20), [6, 6, 14]);
    }

    #[test]
    fn later_pages_keep_the_columns_of_the_first() {
        let mut table = PagedTable::new(
            Style::PLAIN,
            vec![Column::of("Name"), Column::text("State")],
        );
        let page = |table: &mut PagedTable, cells: [&str; 2]| {
            let page = table.page(vec![cells.map(Cell::new).to_vec()]);
            page.lines()
                .map(|line| line.trim_end().to_owned())
                .collect::<Vec<_>>()
        };
        let first = page(&mut table, ["web-1", "running"]);
        assert_eq!(first, ["Name   State", "───────────────", "web-1  running"]);
        let second = page(&mut table, ["db", "stopped"]);
        assert_eq!(second, ["db     stopped"]);
    }
}
