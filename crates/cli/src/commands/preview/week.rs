//! A week of a schedule as a picture: seven rows of 24 hours, with a sign for each half hour.

use std::fmt::Write as _;

use domain::{
    ScheduleName,
    schedule::{Desired, Edge, Schedule},
};
use jiff::{SignedDuration, Timestamp, ToSpan as _, civil::Date, tz::AmbiguousOffset};

use crate::output::Style;

/// The width of the label before the hours.
const LABEL: usize = 16;

/// Every third hour, above its first half hour.
const HOURS: &str = "0     3     6     9     12    15    18    21";

const HALF_HOUR: SignedDuration = SignedDuration::from_mins(30);

/// The desired state during half an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HalfHour {
    /// The desired state does not change in it.
    All(Option<Desired>),
    /// The desired state changes in it.
    Changing,
    /// The clock skips it.
    Skipped,
}

impl HalfHour {
    const SIGNS: [(Self, char, &'static str); 5] = [
        (Self::All(Some(Desired::Running)), '#', "running"),
        (Self::All(Some(Desired::Stopped)), '.', "stopped"),
        (Self::All(None), '-', "any"),
        (Self::Changing, '+', "changes within the half hour"),
        (Self::Skipped, ' ', ""),
    ];

    fn sign(self) -> char {
        let found = Self::SIGNS.iter().find(|(half, ..)| *half == self);
        found.map_or(' ', |(_, sign, _)| *sign)
    }

    fn painted(self, style: Style, signs: &str) -> String {
        match self {
            Self::All(desired) => style.desired_text(desired, signs),
            Self::Changing | Self::Skipped => signs.to_owned(),
        }
    }
}

/// Draws the week of a schedule that contains an instant, from Monday on.
pub(super) fn draw(
    name: &ScheduleName,
    schedule: &Schedule,
    at: Timestamp,
    style: Style,
) -> Result<String, jiff::Error> {
    let zone = schedule.timezone();
    let today = at.to_zoned(zone.clone()).date();
    let monday = today.checked_sub(i64::from(today.weekday().to_monday_zero_offset()).days())?;
    let midnight = |date: Date| Ok::<_, jiff::Error>(date.to_zoned(zone.clone())?.timestamp());
    let (begin, end) = (midnight(monday)?, midnight(monday.checked_add(7.days())?)?);
    let week = Week {
        schedule,
        first: schedule.desired_at(begin),
        edges: schedule.edges(begin).take_while(|edge| edge.at < end).collect(),
    };
    let changes: Vec<_> = schedule.clock_changes(begin, end).collect();

    let mut text = format!("{name}, {}:\n", schedule.definition().timezone);
    let _ = writeln!(text, "{:LABEL$}{HOURS}", "");
    let mut shown = Vec::new();
    for date in monday.series(1.day()).take(7) {
        let halves: Vec<_> = (0..48).map(|number| week.half_hour(date, number)).collect();
        let day = date.strftime("%a %Y-%m-%d").to_string();
        let _ = write!(text, "{day:LABEL$}");
        for run in halves.chunk_by(|left, right| left == right) {
            let signs: String = run.iter().map(|half| half.sign()).collect();
            text += &run[0].painted(style, &signs);
        }
        if schedule.is_holiday(date) {
            text += "  holiday";
        }
        if changes.iter().any(|change| change.day() == date) {
            text += "  *";
        }
        text.push('\n');
        shown.extend(halves);
    }
    for change in changes {
        let _ = writeln!(
            text,
            "{:LABEL$}* the clock goes from {} to {}",
            "",
            change.from.strftime("%a %H:%M"),
            change.to.strftime(if change.from.date() == change.to.date() {
                "%H:%M"
            } else {
                "%a %H:%M"
            }),
        );
    }
    let used = HalfHour::SIGNS.iter().filter(|(half, ..)| shown.contains(half));
    let legend = used
        .filter(|(half, ..)| *half != HalfHour::Skipped)
        .map(|(half, sign, words)| format!("{} {words}", half.painted(style, &sign.to_string())));
    let legend = legend.collect::<Vec<_>>().join("   ");
    let _ = writeln!(text, "{:LABEL$}{legend}", "");
    Ok(text)
}

struct Week<'a> {
    schedule: &'a Schedule,
    /// The desired state at its start.
    first: Option<Desired>,
    edges: Vec<Edge>,
}

impl Week<'_> {
    /// Judges a half hour by its number in the day. If the clock repeats it, the first one counts.
    fn half_hour(&self, date: Date, number: i32) -> HalfHour {
        let zone = self.schedule.timezone();
        let Ok(reading) = date.at(0, 0, 0, 0).checked_add(HALF_HOUR * number) else {
            return HalfHour::Skipped;
        };
        let shown = zone.to_ambiguous_timestamp(reading);
        if matches!(shown.offset(), AmbiguousOffset::Gap { .. }) {
            return HalfHour::Skipped;
        }
        let Ok(begin) = shown.earlier() else {
            return HalfHour::Skipped;
        };
        let passed = self.edges.partition_point(|edge| edge.at <= begin);
        let last = passed.checked_sub(1).map(|last| self.edges[last].desired);
        match self.edges.get(passed) {
            Some(next) if next.at.duration_since(begin) < HALF_HOUR => HalfHour::Changing,
            Some(_) | None => HalfHour::All(last.unwrap_or(self.first)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration_file;

    #[track_caller]
    fn drawn(schedule: &str, at: &str) -> String {
        let text = format!("[schedules.office]\n{schedule}");
        let parsed = configuration_file::parse(&text, "FILE").expect("the file is in order");
        let name = "office".parse().expect("a name");
        let schedule = &parsed.configuration.schedules[&name].schedule;
        draw(&name, schedule, at.parse().expect("an instant"), Style::PLAIN).expect("a week")
    }

    const OFFICE: &str = r#"
timezone = "Europe/Berlin"
holidays = ["12-25..12-26"]
periods = [
  { weekdays = "mon-fri", begin = "08:00", end = "19:30" },
  { weekdays = "sun", begin = "09:15", end = "12:00" },
]
"#;

    #[test]
    fn half_hours_and_holidays_are_seen() {
        insta::assert_snapshot!(drawn(OFFICE, "2026-12-24T12:00:00Z"), @"
        office, Europe/Berlin:
                        0     3     6     9     12    15    18    21
        Mon 2026-12-21  ................#######################.........
        Tue 2026-12-22  ................#######################.........
        Wed 2026-12-23  ................#######################.........
        Thu 2026-12-24  ................#######################.........
        Fri 2026-12-25  ................................................  holiday
        Sat 2026-12-26  ................................................  holiday
        Sun 2026-12-27  ..................+#####........................
                        # running   . stopped   + changes within the half hour
        ");
    }

    #[test]
    fn a_change_of_the_clock_is_marked() {
        let nights = r#"
timezone = "Europe/Berlin"
periods = [{ begin = "22:00", end = "02:30" }]
"#;
        insta::assert_snapshot!(drawn(nights, "2026-03-29T12:00:00Z"), @"
        office, Europe/Berlin:
                        0     3     6     9     12    15    18    21
        Mon 2026-03-23  #####.......................................####
        Tue 2026-03-24  #####.......................................####
        Wed 2026-03-25  #####.......................................####
        Thu 2026-03-26  #####.......................................####
        Fri 2026-03-27  #####.......................................####
        Sat 2026-03-28  #####.......................................####
        Sun 2026-03-29  ####  ......................................####  *
                        * the clock goes from Sun 02:00 to 03:00
                        # running   . stopped
        ");
        insta::assert_snapshot!(drawn(nights, "2026-10-19T00:00:00Z"), @"
        office, Europe/Berlin:
                        0     3     6     9     12    15    18    21
        Mon 2026-10-19  #####.......................................####
        Tue 2026-10-20  #####.......................................####
        Wed 2026-10-21  #####.......................................####
        Thu 2026-10-22  #####.......................................####
        Fri 2026-10-23  #####.......................................####
        Sat 2026-10-24  #####.......................................####
        Sun 2026-10-25  ######......................................####  *
                        * the clock goes from Sun 03:00 to 02:00
                        # running   . stopped
        ");
    }

    #[test]
    fn a_repeated_hour_before_midnight_belongs_to_the_day_that_it_ends() {
        // In Beirut, the clock shows 23:00 to 24:00 twice on the last Saturday of October.
        let always = "timezone = \"Asia/Beirut\"\nperiods = [{}]";
        let text = drawn(always, "2026-10-21T12:00:00Z");
        let marked: Vec<_> = text.lines().filter(|line| line.ends_with("  *")).collect();
        assert_eq!(marked.len(), 1, "{text}");
        assert!(marked[0].starts_with("Sat 2026-10-24"), "{text}");
        let words = "* the clock goes from Sun 00:00 to Sat 23:00";
        assert!(text.contains(words), "{text}");
    }

    #[test]
    fn the_week_is_that_of_the_schedules_own_zone() {
        // Monday in Auckland, Sunday in Berlin.
        let text = drawn("timezone = \"Pacific/Auckland\"\nperiods = [{}]", "2026-06-14T13:00:00Z");
        assert!(text.contains("Mon 2026-06-15"), "{text}");
        let text = drawn("timezone = \"Europe/Berlin\"\nperiods = [{}]", "2026-06-14T13:00:00Z");
        assert!(text.contains("Mon 2026-06-08"), "{text}");
    }

    #[test]
    fn it_fits_eighty_columns_and_is_painted_where_colours_are_wanted() {
        let plain = drawn(OFFICE, "2026-10-25T12:00:00Z");
        assert!(plain.lines().all(|line| line.chars().count() <= 80), "{plain}");
        assert!(!plain.contains('\u{1b}'));
        let parsed = configuration_file::parse(&format!("[schedules.office]\n{OFFICE}"), "FILE");
        let parsed = parsed.unwrap();
        let (name, rule) = parsed.configuration.schedules.iter().next().unwrap();
        let colours = Style { colours: true, ..Style::PLAIN };
        let at = "2026-10-25T12:00:00Z".parse().unwrap();
        let painted = draw(name, &rule.schedule, at, colours).unwrap();
        assert!(painted.contains("\u{1b}["), "{painted}");
    }
}
