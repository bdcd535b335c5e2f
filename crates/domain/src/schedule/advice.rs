//! What is valid in a schedule, but hardly meant: parts that never act, holidays that take more
//! than their own day, and words that other tools read differently.

use jiff::{SignedDuration, Timestamp, ToSpan, civil::Date};

use super::{
    Definition, Desired, Edge, Place, Problem, Schedule, Times, clock, definition::Problems, zone,
};

/// How far ahead a part of a schedule must act.
const YEARS: SignedDuration = SignedDuration::from_hours(5 * 366 * 24);

impl Schedule {
    /// Returns what is hardly meant, with what to write instead. Only the years after `now` count.
    #[must_use]
    pub fn advice(&self, now: Timestamp) -> Vec<Problem> {
        let mut advice = Problems::default();
        if let Some(message) = zone::advice(&self.definition.timezone) {
            advice.note(Place::Timezone, message);
        }
        for (index, period) in self.definition.periods.iter().enumerate() {
            if let Some(message) = period.timezone.as_deref().and_then(zone::advice) {
                advice.note(Place::Period(index), message);
            }
        }
        self.note_digits(&mut advice);
        match &self.rule {
            Times::Periods(_) => self.note_idle_periods(now, &mut advice),
            Times::Cron(_) => {
                if !self.note_idle_cron(now, &mut advice) {
                    self.note_long_holidays(now, &mut advice);
                }
            }
            Times::Always(_) => {}
        }
        advice.into_list()
    }

    /// Notes fields that number weekdays: 1 is Monday in cron and Sunday at AWS.
    fn note_digits(&self, advice: &mut Problems) {
        let Definition { start, stop, .. } = &self.definition;
        for (place, text) in [(Place::Start, start), (Place::Stop, stop)] {
            if let Some((written, named)) = text.as_deref().and_then(super::cron::digit_days) {
                advice.note(place, format!("`{written}` is {named} here, as in cron"));
            }
        }
    }

    /// Notes periods without which the schedule is the same, or would be if there were no holidays.
    /// Of two that are alike, the later one is noted.
    fn note_idle_periods(&self, now: Timestamp, advice: &mut Problems) {
        let mut kept = self.definition.clone();
        for index in (0..self.definition.periods.len()).rev() {
            let mut rest = kept.clone();
            rest.periods.remove(index);
            let any_day =
                |definition: &Definition| Definition { holidays: Vec::new(), ..definition.clone() };
            let is_idle = is_same(&kept, &rest, now)
                || !kept.holidays.is_empty() && is_same(&any_day(&kept), &any_day(&rest), now);
            if !is_idle {
                continue;
            }
            let period = &self.definition.periods[index];
            let instead = match (&period.begin, &period.end) {
                (None, Some(_)) => "; to run until then, write begin and end in one period",
                (_, _) => "",
            };
            advice.note(
                Place::Period(index),
                format!("changes nothing in the coming years{instead}"),
            );
            kept = rest;
        }
    }

    /// Notes expressions after which nothing changes, and reports whether there are any.
    fn note_idle_cron(&self, now: Timestamp, advice: &mut Problems) -> bool {
        let mut is_idle = false;
        let Definition { start, stop, .. } = &self.definition;
        for (place, text, desired) in
            [(Place::Start, start, Desired::Running), (Place::Stop, stop, Desired::Stopped)]
        {
            let mut coming = self.coming(now);
            if text.is_some() && !coming.any(|edge| edge.desired == Some(desired)) {
                advice.note(place, "changes nothing in the coming years");
                is_idle = true;
            }
        }
        is_idle
    }

    /// Notes holidays on which a start does not fire for which no other comes on the day after: what
    /// runs from Monday to Friday does not run all week if Monday is a holiday.
    fn note_long_holidays(&self, now: Timestamp, advice: &mut Problems) {
        for index in 0..self.definition.holidays.len() {
            let mut definition = self.definition.clone();
            definition.holidays.remove(index);
            let Ok(without) = Self::new(&definition) else {
                continue;
            };
            let is_start = |edge: &Edge| edge.desired == Some(Desired::Running);
            let mut missed = without.coming(now).filter(is_start).filter_map(|edge| {
                let day = self.timezone.to_datetime(edge.at).date();
                let is_missed = self.desired_at(edge.at) != Some(Desired::Running);
                let until = is_missed.then(|| self.next_start(edge.at))?;
                let ends = without.edges(edge.at).next().map(|edge| edge.at);
                let differ_until = ends.into_iter().chain(until).min()?;
                (differ_until > self.day_after_holidays(day)?).then_some((day, until))
            });
            if let Some((day, until)) = missed.next() {
                let day = day.strftime("%a %Y-%m-%d");
                let until = until.map_or_else(
                    || "for good".to_owned(),
                    |at| {
                        let local = self.timezone.to_datetime(at);
                        format!("until {}", local.strftime("%a %Y-%m-%d %H:%M"))
                    },
                );
                let message = format!(
                    "takes more than its own day: without the start on {day}, what is stopped stays \
                     so {until}; periods begin anew every day"
                );
                advice.note(Place::Holiday(index), message);
            }
        }
    }

    fn next_start(&self, after: Timestamp) -> Option<Timestamp> {
        let mut edges = self.coming(after);
        edges.find(|edge| edge.desired == Some(Desired::Running)).map(|edge| edge.at)
    }

    /// Returns the end of the first day after a holiday that is not a holiday itself.
    fn day_after_holidays(&self, holiday: Date) -> Option<Timestamp> {
        let mut days = holiday.series(1.day());
        let day = days.find(|day| !self.is_holiday(*day))?;
        let midnight = day.tomorrow().ok()?.at(0, 0, 0, 0);
        Some(clock::over_at(&self.timezone, clock::Reading::of(midnight)).timestamp())
    }

    fn coming(&self, now: Timestamp) -> impl Iterator<Item = Edge> {
        let until = now.checked_add(YEARS).unwrap_or(Timestamp::MAX);
        self.edges(now).take_while(move |edge| edge.at <= until)
    }
}

/// Reports whether two definitions have the same desired states in the coming years. One without
/// periods counts as stopped.
fn is_same(one: &Definition, other: &Definition, now: Timestamp) -> bool {
    let [one, other] = [one, other].map(|definition| Schedule::new(definition).ok());
    let desired = |schedule: &Option<Schedule>| match schedule {
        Some(schedule) => schedule.desired_at(now),
        None => Some(Desired::Stopped),
    };
    let coming = |schedule| Option::iter(schedule).flat_map(move |one: &Schedule| one.coming(now));
    desired(&one) == desired(&other) && coming(&one).eq(coming(&other))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(definition: Value, expected: &[(&str, &str)]) {
        let definition: Definition = serde_json::from_value(definition).unwrap();
        let schedule = Schedule::new(&definition).unwrap();
        let advice = schedule.advice("2026-11-25T12:00Z".parse().unwrap());
        let found: Vec<_> = advice.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, (place, words)) in found.iter().zip(expected) {
            assert!(found.starts_with(place) && found.contains(words), "{found}");
        }
    }

    #[track_caller]
    fn check_periods(periods: &Value, expected: &[(&str, &str)]) {
        check(
            json!({"timezone": "Europe/Berlin", "periods": periods, "holidays": ["12-25"]}),
            expected,
        );
    }

    #[test]
    fn a_period_without_which_the_schedule_is_the_same_is_noted() {
        check_periods(
            &json!([{"begin": "08:00"}, {"end": "19:00"}]),
            &[("periods[1]", "write begin and end in one period")],
        );
        let office = json!({"weekdays": "mon-fri", "begin": "08:00", "end": "19:00"});
        check_periods(
            &json!([office, office]),
            &[("periods[1]", "changes nothing in the coming years")],
        );
        check_periods(
            &json!([office, {"weekdays": "wed", "begin": "10:00", "end": "12:00"}]),
            &[("periods[1]", "changes nothing")],
        );
        check_periods(
            &json!([{"months": "dec", "monthdays": "25"}]),
            &[("periods[0]", "changes nothing")],
        );
        check_periods(
            &json!([office, {"until": "2026-11-22", "weekdays": "sun"}]),
            &[("periods[1]", "changes nothing")],
        );
    }

    #[test]
    fn a_period_that_acts_once_in_years_is_not_noted() {
        for periods in [
            json!([{}]),
            json!([{"end": "19:00"}]),
            json!([{"begin": "08:00"}, {"end": "24:00"}]),
            json!([
                {"weekdays": "mon-fri", "begin": "08:00", "end": "19:00"},
                {"months": "feb", "monthdays": "29", "begin": "08:00", "end": "20:00"},
            ]),
            json!([
                {"begin": "08:00", "end": "12:00"},
                {"begin": "12:00", "end": "19:00"},
            ]),
        ] {
            check_periods(&periods, &[]);
        }
    }

    #[test]
    fn a_holiday_that_takes_a_whole_week_is_noted() {
        let week = |holidays: Value| {
            json!({
                "timezone": "Europe/Berlin",
                "start": "0 7 * * mon",
                "stop": "0 20 * * fri",
                "holidays": holidays,
            })
        };
        check(
            week(json!(["2026-12-24..2026-12-26", "2027-01-04"])),
            &[(
                "holidays[1]",
                "the start on Mon 2027-01-04, what is stopped stays so until Mon 2027-01-11 07:00",
            )],
        );
        // 6 January is a Monday in 2031.
        check(week(json!(["01-06"])), &[("holidays[0]", "Mon 2031-01-06")]);
    }

    #[test]
    fn a_holiday_that_takes_its_own_day_is_not_noted() {
        for (start, stop) in [
            ("0 8 * * mon-fri", "0 19 * * *"),
            ("0 7 * * mon-fri", "0 20 * * fri"),
            ("0 22 * * *", "0 6 * * *"),
            ("0 22 * * sun", "0 6 * * mon"),
        ] {
            check(
                json!({
                    "timezone": "Europe/Berlin",
                    "start": start,
                    "stop": stop,
                    "holidays": ["01-01", "12-24..12-26", "2027-01-03", "2027-01-04"],
                }),
                &[],
            );
        }
    }

    #[test]
    fn cron_that_never_acts_and_numbered_weekdays_are_noted() {
        check(
            json!({"timezone": "UTC", "start": "0 8 25 12 *", "stop": "0 8 1 * 1-5",
                   "holidays": ["12-25"]}),
            &[
                ("stop", "`1-5` is mon-fri here, as in cron"),
                ("start", "changes nothing"),
                ("stop", "changes nothing"),
            ],
        );
    }
}
