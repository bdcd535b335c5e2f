//! The report for people: a line for each resource, or for each of its methods.

use report::{
    count,
    money::{MethodSaving, Report, Row, Total, Totals},
};

use super::Args;
use crate::print::{self, Cell, Column, Screen};

const BASIS: &str = "List prices without taxes; what hibernating saves is a minimum. Details: \
                     docs/stopping.md. Every method of each resource: --all.";

pub(in crate::commands) fn draw(report: &Report, args: &Args, screen: &Screen) -> String {
    let style = screen.style;
    let heading = style.wrap(&format!("{}\n", heading(report, args)));
    if report.resources.is_empty() {
        return format!("{heading}The accounts hold nothing that could be stopped.\n");
    }
    let table = if args.all { methods(report, screen) } else { screen.table(&report.resources) };
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
            let off = off.map_or_else(String::new, |off| format!(", and off for {off:.1} h"));
            format!("everything running {hours} UTC{off}")
        }
        (None, None) => "at no hours".to_owned(),
    };
    format!("{month}, {hours}:")
}

impl print::Row for Row {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::Fixed("Name", |row, _| Cell::new(&row.name)),
        Column::Wide("Size", |row, _| Cell::new(&row.size)),
        Column::Wide("Schedule", |row, _| Cell::any(row.schedule.as_ref())),
        Column::Wide("Off", |row, _| {
            let off = row.schedule.as_ref().and(row.off_hours);
            Cell::any(off.map(|hours| format!("{hours:.1} h")))
        }),
        Column::Number("Costs", |row, _| {
            Cell::new(row.monthly.map_or("?".to_owned(), |amount| amount.to_string()))
        }),
        Column::Fixed("Best method", |row, _| Cell::any(best(row).map(spoken))),
        Column::Number("Saves", |row, _| match row.saved {
            Some(saved) => Cell::new(saved),
            None if row.methods.is_empty() => Cell::new("-"),
            None => Cell::new("?"),
        }),
        Column::Text("Why", |row, _| {
            let unknown = row.methods.iter().find(|one| one.fits && one.saved.is_none());
            let of_method = || best(row).or(unknown).or(row.methods.first())?.why.as_deref();
            Cell::any(row.why.as_deref().or_else(of_method))
        }),
    ];
}

fn best(row: &Row) -> Option<&MethodSaving> {
    row.methods.first().filter(|method| Some(method.method) == row.best)
}

/// A line for each method of each resource.
fn methods(report: &Report, screen: &Screen) -> String {
    let columns: [Column<(&Row, &MethodSaving)>; 4] = [
        Column::Fixed("Name", |(row, _), _| Cell::new(&row.name)),
        Column::Fixed("Method", |(_, method), _| Cell::new(spoken(method))),
        Column::Number("Saves", |(_, method), _| match (method.fits, method.saved) {
            (true, Some(saved)) => Cell::new(saved),
            (true, None) => Cell::new("?"),
            (false, _) => Cell::new("-"),
        }),
        Column::Text("Why", |(_, method), _| Cell::any(method.why.as_ref())),
    ];
    let rows = report.resources.iter();
    let rows = rows.flat_map(|row| row.methods.iter().map(move |method| (row, method)));
    screen.table_of(&columns, &rows.collect::<Vec<_>>())
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
