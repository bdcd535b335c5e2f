//! Strips in a terminal: rows of 24 hours, with a sign for each half hour. They fit into 80 columns.

use anstyle::AnsiColor;
use domain::schedule::Desired;
use jiff::{
    SignedDuration,
    civil::{Date, DateTime, Time},
};
use report::{history::Period, strip::Strip};
use textwrap::core::display_width;

use crate::{print::Screen, table::cut};

/// The signs in two lines of a legend, each with its color.
const SIGNS: [&[(char, Option<AnsiColor>, &str)]; 2] = [
    &[
        ('#', Some(AnsiColor::Green), "running"),
        ('.', Some(AnsiColor::Blue), "stopped"),
        ('-', None, "any"),
        ('+', None, "changes within"),
        ('?', None, "unclear"),
    ],
    &[
        ('O', Some(AnsiColor::Yellow), "override running"),
        ('o', Some(AnsiColor::Yellow), "override stopped"),
        ('P', Some(AnsiColor::Cyan), "paused"),
        ('|', Some(AnsiColor::Red), "now"),
    ],
];

/// Nothing is known, or the clock skips the half hour.
const BLANK: char = ' ';

const HALF_HOUR: SignedDuration = SignedDuration::from_mins(30);

/// What is shown of the time before the present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    Desired,
    Ran,
}

/// Rows below the hours that they share, and what their signs mean.
pub(crate) struct Picture<'s> {
    screen: &'s Screen,
    before: Before,
    /// What the clock shows where each row begins.
    begin: Time,
    /// The width before the hours, at most 32. It leaves two blanks behind a label.
    indent: usize,
    text: String,
    shown: Vec<char>,
}

impl<'s> Picture<'s> {
    /// Begins with the hours of rows that begin at this time of a day, each third one above its
    /// first half hour.
    pub(crate) fn new(screen: &'s Screen, before: Before, indent: usize, begin: Time) -> Self {
        let mut hours = String::new();
        for (column, reading) in readings(Date::default(), begin).enumerate() {
            if reading.hour() % 3 == 0 && reading.minute() < 30 {
                hours = format!("{hours:column$}{}", reading.hour());
            }
        }
        let text = format!("{:indent$}{hours}\n", "");
        Self { screen, before, begin, indent, text, shown: Vec::new() }
    }

    pub(crate) fn row(&mut self, label: &str, strip: &Strip<'_>, remark: &str) {
        let date = strip.period.from.to_zoned(self.screen.zone.clone()).date();
        let readings = readings(date, self.begin);
        let signs: Vec<_> = readings.map(|reading| self.sign(strip, reading)).collect();
        let runs = signs.chunk_by(|left, right| left == right);
        let runs: String = runs.map(|run| self.painted(run[0], run.len())).collect();
        let label = cut(label, self.indent - 2);
        let blanks = " ".repeat(self.indent - display_width(&label));
        self.line(format!("{label}{blanks}{runs}{remark}").trim_end());
        self.shown.extend(signs);
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.text += text;
        self.text.push('\n');
    }

    /// Ends with what the signs mean that were used.
    pub(crate) fn finish(mut self) -> String {
        for line in SIGNS {
            let used = line.iter().filter(|(sign, ..)| self.shown.contains(sign));
            let words = used.map(|(sign, _, words)| format!("{} {words}", self.painted(*sign, 1)));
            let words = words.collect::<Vec<_>>().join("   ");
            if !words.is_empty() {
                self.line(&format!("{:16}{words}", ""));
            }
        }
        self.text
    }

    fn painted(&self, sign: char, times: usize) -> String {
        let text = sign.to_string().repeat(times);
        let known = SIGNS.concat().into_iter().find(|(one, ..)| *one == sign);
        let colour = known.and_then(|(_, colour, _)| colour);
        colour.map_or(text.clone(), |colour| self.screen.style.coloured(colour, &text))
    }

    /// The sign of the half hour that begins where the clock shows this. If it shows it twice, the
    /// first one counts.
    fn sign(&self, strip: &Strip<'_>, reading: DateTime) -> char {
        let zone = &self.screen.zone;
        let shown = zone.to_ambiguous_timestamp(reading).earlier().ok();
        let shown = shown.filter(|at| at.to_zoned(zone.clone()).datetime() == reading);
        let Some(from) = shown else { return BLANK };
        let half = Period { from, until: from + HALF_HOUR };
        let touches = |period: Period| period.within(half).is_some();
        let now = self.screen.now;
        let clock = now.to_zoned(zone.clone()).datetime();
        if reading <= clock && clock < reading.saturating_add(HALF_HOUR) {
            return '|';
        }
        if self.before == Before::Ran && half.from < now {
            let ran = strip.ran.iter().filter(|ran| touches(ran.period));
            let ran = ran.map(|ran| match (ran.running, ran.stopped, ran.unclear) {
                (_, 0, 0) => '#',
                (0, _, 0) => '.',
                (0, 0, _) => '?',
                (_, _, _) => '+',
            });
            return common(ran).unwrap_or(BLANK);
        }
        if strip.pauses.iter().any(|(period, _)| touches(*period)) {
            return 'P';
        }
        let overrides = strip.overrides.iter().filter(|(period, _)| touches(*period));
        let overridden = common(overrides.map(|(_, one)| match one.desired {
            Desired::Running => 'O',
            Desired::Stopped => 'o',
        }));
        let desired = strip.desired.iter().filter(|span| touches(span.period));
        let desired = desired.map(|span| match span.desired {
            Some(Desired::Running) => '#',
            Some(Desired::Stopped) => '.',
            None => '-',
        });
        overridden.or_else(|| common(desired)).unwrap_or(BLANK)
    }
}

/// What the clock shows at each half hour of a row.
fn readings(date: Date, begin: Time) -> impl Iterator<Item = DateTime> {
    (0..48).map(move |number| date.to_datetime(begin).saturating_add(HALF_HOUR * number))
}

/// The sign for all parts of a half hour, if there are any.
fn common(mut signs: impl Iterator<Item = char>) -> Option<char> {
    let first = signs.next()?;
    Some(if signs.all(|sign| sign == first) { first } else { '+' })
}
