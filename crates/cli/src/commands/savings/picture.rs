//! The report for people: a line for each method, and a bar for each resource that could cost less.

use std::{collections::HashMap, fmt::Write as _};

use domain::ScheduleName;
use report::savings::{Method, Report, Row, Total};

use super::Args;
use crate::{
    configuration_file::count,
    output::Style,
    table::{Cell, Column, Table},
};

/// The width of the bar of a resource whose whole cost is saved.
const BAR: usize = 24;

/// The widest label before a bar.
const LABEL: usize = 30;

/// The most bars to draw: those of the largest savings.
const BARS: usize = 20;

pub(super) fn draw(report: &Report, args: &Args, style: Style) -> String {
    let heading = style.wrap(&format!("{}\n", heading(report, args)));
    if report.resources.is_empty() {
        return format!("{heading}The accounts hold nothing that could be stopped.\n");
    }
    let table = table(report, args.config.is_some(), style);
    let bars = bars(report, style);
    let mut text =
        format!("{heading}{table}\n{bars}{}", style.wrap(&format!("{}\n", totals(report))));
    for note in &report.notes {
        text += &style.wrap(&format!("- {note}\n"));
    }
    text
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

/// With a configuration, each resource has hours of its own.
fn table(report: &Report, has_hours: bool, style: Style) -> String {
    let of_resource = [
        Column::of("Resource").yields(2),
        Column::of("Name"),
        Column::of("Size").yields(3),
        Column::of("Costs").right(),
    ];
    let hours = [Column::of("Schedule").yields(4), Column::of("Off").right().yields(1)];
    let of_method = [Column::of("Method"), Column::of("Saves").right(), Column::text("Why")];
    let hours = hours.into_iter().filter(|_| has_hours);
    let columns = of_resource.into_iter().chain(hours).chain(of_method);
    let columns: Vec<_> = columns.collect();
    let mut named = HashMap::<&str, usize>::new();
    for row in &report.resources {
        *named.entry(row.name.as_str()).or_default() += 1;
    }
    let rows: Vec<_> = report
        .resources
        .iter()
        .flat_map(|row| lines(row, named[row.name.as_str()] == 1, has_hours))
        .collect();
    Table::whole(style, columns, &rows)
}

/// One line per method, the best one beside the resource.
fn lines(row: &Row, is_unique: bool, has_hours: bool) -> Vec<Vec<Cell>> {
    let resource =
        if is_unique { format!("{}/{}", row.account, row.kind) } else { row.resource.to_string() };
    let money = |amount: f64| format!("{amount:.2} {}", row.currency.unwrap_or_default());
    let mut first = vec![
        Cell::new(resource),
        Cell::new(&row.name),
        Cell::new(&row.size),
        Cell::new(row.monthly.map_or("?".to_owned(), money)),
    ];
    if has_hours {
        let off = row.off_hours.map(|hours| format!("{hours:.1} h"));
        let schedule = row.schedule.as_ref().map_or("-", ScheduleName::as_str);
        first.extend([Cell::new(schedule), Cell::new(off.unwrap_or_default())]);
    }
    let blank = vec![Cell::new(""); first.len()];
    if let Some(why) = &row.never_stopped {
        first.extend(["-", "", why.as_str()].map(Cell::new));
        return vec![first];
    }
    let mut lines = Vec::new();
    for method in &row.methods {
        let mut line = std::mem::replace(&mut first, blank.clone());
        line.extend([
            Cell::new(spoken(method)),
            Cell::new(match (method.fits, method.saved) {
                (true, Some(saved)) => money(saved),
                (true, None) => "?".to_owned(),
                (false, _) => "-".to_owned(),
            }),
            Cell::new(method.why.as_deref().unwrap_or_default()),
        ]);
        lines.push(line);
    }
    lines
}

fn spoken(method: &Method) -> String {
    match &method.to {
        Some(to) => format!("{} to {to}", method.method),
        None => method.method.to_string(),
    }
}

/// The share of its cost that each resource could save, the largest saving first.
fn bars(report: &Report, style: Style) -> String {
    let mut saving: Vec<(&Row, f64, f64)> = report
        .resources
        .iter()
        .filter_map(|row| Some((row, row.saved?, row.monthly?)))
        .filter(|(_, saved, monthly)| *saved > 0.0 && *monthly > 0.0)
        .collect();
    saving.sort_by(|(_, one, _), (_, next, _)| next.total_cmp(one));
    let rest = saving.len().saturating_sub(BARS);
    saving.truncate(BARS);
    let label = |row: &Row| -> String { row.name.chars().take(LABEL).collect() };
    let width = |text: &str| textwrap::core::display_width(text);
    let widest = saving.iter().map(|(row, ..)| width(&label(row))).max();
    let mut text = String::new();
    for (row, saved, monthly) in saving {
        let label = label(row);
        let gap = widest.unwrap_or_default() - width(&label);
        let currency = row.currency.unwrap_or_default();
        let share = (saved / monthly).clamp(0.0, 1.0);
        let bar = bar(share, style);
        let percent = share * 100.0;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{label}{:gap$}  {bar}  {percent:3.0} %  {saved:.2} of {monthly:.2} {currency}",
            ""
        );
    }
    if rest > 0 {
        let _ = writeln!(text, "and {} that could save less", count(rest, "resource"));
    }
    text
}

/// Draws in eighths of a block where colors are shown, in ASCII signs otherwise.
fn bar(share: f64, style: Style) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let most = u32::try_from(BAR * 8).map_or(0.0, f64::from);
    // Rounded through text, which avoids a truncating cast.
    let eighths = format!("{:.0}", share * most);
    let eighths: usize = eighths.parse().unwrap_or_default();
    let (whole, part) = (eighths / 8, eighths % 8);
    if !style.colours {
        let whole = whole + usize::from(part >= 4);
        return format!("{}{}", "#".repeat(whole), ".".repeat(BAR - whole));
    }
    let blocks = "█".repeat(whole) + EIGHTHS[part];
    let empty = BAR - whole - usize::from(part > 0);
    let blocks = style.paint(crate::output::Paint::Added, &blocks);
    format!("{blocks}{:empty$}", "")
}

fn totals(report: &Report) -> String {
    let one = |total: &Total| {
        let Total { currency, monthly, saved, .. } = total;
        format!("{saved:.2} of {monthly:.2} {currency}")
    };
    let all: Vec<_> = report.totals.iter().map(one).collect();
    let known = format!("known for {} of {}", report.known, count(report.of, "resource"));
    if all.is_empty() {
        return format!("What could be saved is {known}.");
    }
    let uncertain: Vec<_> = report
        .totals
        .iter()
        .filter(|total| total.uncertain > 0.0)
        .map(|total| format!("{:.2} {}", total.uncertain, total.currency))
        .collect();
    let uncertain = match uncertain.join(" and ") {
        none if none.is_empty() => none,
        some => format!(
            " {some} of it only where DigitalOcean makes a database's plan smaller, which it may \
             refuse."
        ),
    };
    format!("In total {} could be saved in the month, {known}.{uncertain}", all.join(" and "))
}
