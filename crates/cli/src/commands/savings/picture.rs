//! The report for people: a line for each resource, or for each of its methods.

use report::{
    count,
    money::{MethodSaving, Report, Row, Total, Totals},
};

use super::Args;
use crate::{
    output::Style,
    print::{self, Cell, Column, Screen},
    table::table,
};

const BASIS: &str = "List prices without taxes; what hibernating saves is a minimum. Details: \
                     docs/stopping.md. Every method of each resource: --all.";

pub(super) fn draw(report: &Report, args: &Args, screen: &Screen) -> String {
    let style = screen.style;
    let heading = style.wrap(&format!("{}\n", heading(report, args)));
    if report.resources.is_empty() {
        return format!("{heading}The accounts hold nothing that could be stopped.\n");
    }
    let table = if args.all { methods(report, style) } else { screen.table(&report.resources) };
    let totals = style.wrap(&format!("{}\n{BASIS}\n", totals(report)));
    format!("{heading}{table}{totals}")
}

/// Which month, and when resources are assumed to run.
fn heading(report: &Report, args: &Args) -> String {
    let month = match &report.month {
        Some(month) => format!("{month}, {:.1} h", report.month_hours),
        None => format!("A month of {:.1} h", report.month_hours),
    };
    let file = args.config.as_ref().map(|file| file.display());
    let hours = match (file, &report.hours) {
        (Some(file), None) => format!("each resource by its schedule in {file}"),
        (Some(file), Some(hours)) => {
            format!("each resource by its schedule in {file}, and without one running {hours} UTC")
        }
        (None, Some(hours)) => {
            let off = report.resources.iter().find_map(|row| row.off_hours);
            let off = off.map_or_else(String::new, |off| format!(" for {off:.1} h"));
            format!("everything running {hours} UTC, and off{off}")
        }
        (None, None) => "at no hours".to_owned(),
    };
    format!("{month}, {hours}:")
}

impl print::Row for Row {
    const COLUMNS: &'static [Column] = &[
        Column::Fixed("Name"),
        Column::Wide("Size"),
        Column::Wide("Schedule"),
        Column::Wide("Off"),
        Column::Number("Costs"),
        Column::Fixed("Best method"),
        Column::Number("Saves"),
        Column::Text("Why"),
    ];

    fn cells(&self, _: &Screen) -> Vec<Cell> {
        let best = self.methods.first().filter(|method| Some(method.method) == self.best);
        let first = self.methods.first();
        let why = self.why.as_deref().or_else(|| best.or(first)?.why.as_deref());
        vec![
            Cell::new(&self.name),
            Cell::new(&self.size),
            Cell::any(self.schedule.as_ref()),
            Cell::any(
                self.schedule.as_ref().and(self.off_hours).map(|hours| format!("{hours:.1} h")),
            ),
            Cell::new(self.monthly.map_or("?".to_owned(), |amount| amount.to_string())),
            Cell::any(best.map(spoken)),
            Cell::new(match self.saved {
                Some(saved) => saved.to_string(),
                None if self.methods.is_empty() => "-".to_owned(),
                None => "?".to_owned(),
            }),
            Cell::any(why),
        ]
    }
}

/// A line for each method of each resource.
fn methods(report: &Report, style: Style) -> String {
    const COLUMNS: [Column; 4] = [
        Column::Fixed("Name"),
        Column::Fixed("Method"),
        Column::Number("Saves"),
        Column::Text("Why"),
    ];
    let line = |row: &Row, method: &MethodSaving| {
        let saved = match (method.fits, method.saved) {
            (true, Some(saved)) => saved.to_string(),
            (true, None) => "?".to_owned(),
            (false, _) => "-".to_owned(),
        };
        let why = method.why.as_deref().unwrap_or_default();
        [row.name.as_str(), &spoken(method), &saved, why].map(Cell::new).to_vec()
    };
    let rows = report.resources.iter();
    let rows = rows.flat_map(|row| row.methods.iter().map(move |method| line(row, method)));
    table(style, &COLUMNS, &rows.collect::<Vec<_>>())
}

fn spoken(method: &MethodSaving) -> String {
    match &method.to {
        Some(to) => format!("{} to {to}", method.method),
        None => method.method.to_string(),
    }
}

fn totals(report: &Report) -> String {
    let Totals { totals, known, of } = &report.totals;
    let all = totals.iter().filter_map(|Total { full, saved, .. }| {
        let saved = (*saved)?;
        Some(full.map_or_else(|| saved.to_string(), |full| format!("{saved} of {full}")))
    });
    let all: Vec<_> = all.collect();
    let known = format!("known for {known} of {}", count(*of, "resource"));
    if all.is_empty() {
        return format!("What could be saved is {known}.");
    }
    let uncertain = totals.iter().map(|total| total.uncertain).filter(|amount| !amount.is_zero());
    let uncertain: Vec<_> = uncertain.map(|amount| amount.to_string()).collect();
    let uncertain = match uncertain.join(" and ") {
        none if none.is_empty() => none,
        some => format!(
            " {some} of it only where DigitalOcean makes a database's plan smaller, which it may \
             refuse."
        ),
    };
    format!("In total {} could be saved in the month, {known}.{uncertain}", all.join(" and "))
}
