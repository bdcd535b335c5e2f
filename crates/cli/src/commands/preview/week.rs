//! A week of a schedule as a picture: a row for each day.

use domain::{ScheduleName, configuration::Rule, decision::Rules};
use jiff::{
    Timestamp, ToSpan as _,
    civil::{Date, Time},
};
use report::{
    history::Period,
    strip::{Strip, days},
};

use crate::{
    print::Screen,
    strips::{Before, Picture},
};

pub(super) fn draw(
    name: &ScheduleName,
    rule: &Rule,
    rules: Rules<'_>,
    at: Timestamp,
    screen: &Screen,
) -> Result<String, jiff::Error> {
    let schedule = &rule.schedule;
    let zone = schedule.timezone();
    let today = at.to_zoned(zone.clone()).date();
    let monday = today.checked_sub(i64::from(today.weekday().to_monday_zero_offset()).days())?;
    let midnight = |date: Date| Ok::<_, jiff::Error>(date.to_zoned(zone.clone())?.timestamp());
    let week = Period { from: midnight(monday)?, until: midnight(monday.checked_add(7.days())?)? };
    let changes: Vec<_> = schedule.clock_changes(week.from, week.until).collect();

    let screen = Screen { zone: zone.clone(), ..screen.clone() };
    let mut picture = Picture::new(&screen, Before::Desired, 16, Time::midnight());
    for (date, day) in days(week, zone) {
        let strip = Strip::of_schedule(name, schedule, rules, &[], day, screen.now);
        let holiday = if strip.holidays.is_empty() { "" } else { "  holiday" };
        let is_changed = changes.iter().any(|change| change.day() == date);
        let remark = format!("{holiday}{}", if is_changed { "  *" } else { "" });
        picture.row(&date.strftime("%a %Y-%m-%d").to_string(), &strip, &remark);
    }
    for change in changes {
        let is_same_day = change.from.date() == change.to.date();
        let to = change.to.strftime(if is_same_day { "%H:%M" } else { "%a %H:%M" });
        let from = change.from.strftime("%a %H:%M");
        picture.line(&format!("{:16}* the clock goes from {from} to {to}", ""));
    }
    Ok(format!("{name}, {}:\n{}", schedule.definition().timezone, picture.finish()))
}

#[cfg(test)]
mod tests {
    use domain::{
        configuration::{Override, OverrideTarget, Overrides, Pause, PauseScope},
        schedule::Desired,
    };
    use jiff::{SignedDuration, tz::TimeZone};

    use super::*;
    use crate::{configuration_file, output::Style};

    /// Draws it as it was seen a month earlier.
    #[track_caller]
    fn drawn(schedule: &str, at: &str) -> String {
        let at: Timestamp = at.parse().expect("an instant");
        let screen = Screen::plain(&TimeZone::UTC, at - SignedDuration::from_hours(750));
        drawn_on(&screen, &Overrides::default(), schedule, at)
    }

    #[track_caller]
    fn drawn_on(screen: &Screen, overrides: &Overrides, schedule: &str, at: Timestamp) -> String {
        let text = format!("[schedules.office]\n{schedule}");
        let parsed = configuration_file::parse(&text, "FILE").expect("the file is in order");
        let configuration = &parsed.configuration;
        let (name, rule) = configuration.schedules.iter().next().expect("a schedule");
        draw(name, rule, Rules { configuration, overrides }, at, screen).expect("a week")
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
                        # running   . stopped   + changes within
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
    fn a_day_that_begins_at_one_has_a_blank_hour() {
        let text = drawn("timezone = \"Asia/Beirut\"\nperiods = [{}]", "2026-03-29T12:00:00Z");
        assert!(text.contains(&format!("\nSun 2026-03-29    {}  *\n", "#".repeat(46))), "{text}");
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
    fn the_present_overrides_and_pauses_are_marked() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let target = OverrideTarget::Schedule("office".parse().unwrap());
        let set = Override {
            target,
            desired: Desired::Running,
            set_at: at("2026-10-22T17:00:00Z"),
            ends_at: at("2026-10-22T20:00:00Z"),
            by: "ada".to_owned(),
            why: None,
            before: None,
        };
        let pause = Pause {
            scope: PauseScope::Everything,
            starts: false,
            set_at: at("2026-10-23T04:00:00Z"),
            ends_at: at("2026-10-23T08:00:00Z"),
            by: "ada".to_owned(),
            why: "release".to_owned(),
        };
        let overrides = Overrides::from_iter([set]).with_pauses([pause]);
        let now = at("2026-10-22T12:40:00Z");
        let plain = Screen::plain(&TimeZone::UTC, now);
        insta::assert_snapshot!(drawn_on(&plain, &overrides, OFFICE, now), @"
        office, Europe/Berlin:
                        0     3     6     9     12    15    18    21
        Mon 2026-10-19  ................#######################.........
        Tue 2026-10-20  ................#######################.........
        Wed 2026-10-21  ................#######################.........
        Thu 2026-10-22  ................#############|########OOOOOO....
        Fri 2026-10-23  ............PPPPPPPP###################.........
        Sat 2026-10-24  ................................................
        Sun 2026-10-25  ..................+#####........................  *
                        * the clock goes from Sun 03:00 to 02:00
                        # running   . stopped   + changes within
                        O override running   P paused   | now
        ");
        let everything = drawn_on(&plain, &overrides, OFFICE, now);
        assert!(everything.lines().all(|line| line.chars().count() <= 80), "{everything}");
        assert!(!everything.contains('\u{1b}'));
        let style = Style { colours: true, ..Style::PLAIN };
        let painted = drawn_on(&Screen { style, ..plain }, &overrides, OFFICE, now);
        for run in ["\u{1b}[32m######", "\u{1b}[33mOOO", "\u{1b}[36mPPP", "\u{1b}[31m|"] {
            assert!(painted.contains(run), "{run}: {painted}");
        }
        assert_eq!(crate::output::printable(&painted), painted);
        for repeated in ["2026-10-25T00:15:00Z", "2026-10-25T01:15:00Z"] {
            let drawn =
                drawn_on(&Screen::plain(&TimeZone::UTC, at(repeated)), &overrides, OFFICE, now);
            assert!(drawn.contains("\nSun 2026-10-25  ....|..."), "{drawn}");
        }
    }
}
