//! Pictures as SVG: strips of time, and bars. Each carries its text; colours come from the page.

use std::fmt::Write as _;

use domain::{
    schedule::Desired,
    text::{LONGEST_LINE, one_line},
};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use maud::{Markup, html};
use report::{history::Period, strip::Strip};

/// The width of a picture, in its own units; a page stretches it.
const WIDTH: u64 = 1440;

/// The height of a row: overrides above, then what is desired, and below it what ran.
const ROW: u64 = 44;

/// The height of what ran.
const RAN: u64 = 16;

/// The paths of a picture, by their class.
#[derive(Default)]
struct Paths {
    /// The time of which something is known.
    known: String,
    holiday: String,
    overridden: String,
    running: String,
    stopped: String,
    paused: String,
    ran: String,
    unclear: String,
    now: String,
}

/// Draws strips below each other, a row for each. All of them have the same width.
pub(crate) fn strips(strips: &[Strip<'_>], now: Timestamp, text: &str, class: &str) -> Markup {
    let mut paths = Paths::default();
    for (number, strip) in (0..).zip(strips) {
        paths.add(strip, number * ROW, now);
    }
    let height = ROW * strips.len() as u64;
    let text = one_line(text, LONGEST_LINE);
    let all = [
        ("k", &paths.known),
        ("h", &paths.holiday),
        ("s", &paths.stopped),
        ("r", &paths.running),
        ("p", &paths.paused),
        ("o", &paths.overridden),
        ("u", &paths.unclear),
        ("d", &paths.ran),
        ("n", &paths.now),
    ];
    html! {
        svg class=(class) role="img" aria-label=(text) viewBox=(format!("0 0 {WIDTH} {height}"))
            preserveAspectRatio="none" {
            title { (text) }
            @for (class, path) in all {
                @if !path.is_empty() { path class=(class) d=(path) {} }
            }
        }
    }
}

impl Paths {
    fn add(&mut self, strip: &Strip<'_>, top: u64, now: Timestamp) {
        let x = |at: Timestamp| across(strip.period, at);
        for (_, day) in &strip.holidays {
            block(&mut self.holiday, (x(day.from), x(day.until)), (top, 27));
        }
        for (time, _) in &strip.overrides {
            block(&mut self.overridden, (x(time.from), x(time.until)), (top, 4));
        }
        for span in &strip.desired {
            let across = (x(span.period.from), x(span.period.until));
            match span.desired {
                Some(Desired::Running) => block(&mut self.running, across, (top + 6, 20)),
                Some(Desired::Stopped) => block(&mut self.stopped, across, (top + 22, 4)),
                None => {}
            }
        }
        for (time, _) in &strip.pauses {
            block(&mut self.paused, (x(time.from), x(time.until)), (top + 15, 3));
        }
        let bottom = top + 28 + RAN;
        for ran in &strip.ran {
            let across = (x(ran.period.from), x(ran.period.until));
            let share = |number: usize| RAN * number as u64 / ran.known().max(1) as u64;
            let (running, unclear) = (share(ran.running), share(ran.unclear));
            block(&mut self.known, across, (bottom - RAN, RAN));
            block(&mut self.ran, across, (bottom - running, running));
            block(&mut self.unclear, across, (bottom - running - unclear, unclear));
        }
        if strip.period.from <= now && now < strip.period.until {
            write!(self.now, "M{} {top}v{ROW}", x(now)).ok();
        }
    }
}

fn across(period: Period, at: Timestamp) -> u64 {
    let passed = at.duration_since(period.from).max(SignedDuration::ZERO).as_secs().unsigned_abs();
    (passed * WIDTH / period.seconds().max(1)).min(WIDTH)
}

fn block(path: &mut String, (from, until): (u64, u64), (top, height): (u64, u64)) {
    if from < until && height > 0 {
        let width = until - from;
        write!(path, "M{from} {top}h{width}v{height}h-{width}z").ok();
    }
}

/// The hours below a strip: each third one, and the day at midnight.
pub(crate) fn hours(period: Period, zone: &TimeZone) -> Markup {
    let mut labels = Vec::new();
    let mut at = period.from;
    while at < period.until {
        let local = at.to_zoned(zone.clone());
        if local.hour() % 3 == 0 && local.minute() == 0 {
            let format = if local.hour() == 0 { "%a" } else { "%H:%M" };
            labels.push((across(period, at), local.strftime(format).to_string()));
        }
        at += SignedDuration::from_mins(15);
    }
    html! {
        div class="hours" aria-hidden="true" {
            @for (x, label) in labels {
                @if x < WIDTH * 24 / 25 {
                    span style=(format!("left:{}.{}%", x * 100 / WIDTH, x * 1000 / WIDTH % 10)) { (label) }
                }
            }
        }
    }
}

/// A bar of a chart; `None` for an amount that is unknown.
pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) amount: Option<f64>,
}

/// Draws bars beside each other. What is unknown is a mark of its own, and no bar.
pub(crate) fn bars(bars: &[Bar], text: &str) -> Markup {
    const HEIGHT: f64 = 100.0;
    let most = bars.iter().filter_map(|bar| bar.amount).fold(0.01, f64::max);
    let width = bars.len() * 10;
    html! {
        svg class="bars" role="img" aria-label=(text) viewBox=(format!("0 0 {width} {HEIGHT}"))
            preserveAspectRatio="none" {
            title { (text) }
            @for (number, bar) in bars.iter().enumerate() {
                @match bar.amount {
                    Some(amount) => {
                        @let height = (amount.max(0.0) / most * (HEIGHT - 4.0)).max(0.6);
                        path class="r" d=(format!("M{} 100h8v-{height:.1}h-8z", number * 10 + 1)) {
                            title { (bar.label) }
                        }
                    }
                    None => {
                        path class="u" d=(format!("M{} 100h8v-12h-8z", number * 10 + 1)) {
                            title { (bar.label) }
                        }
                    }
                }
            }
        }
    }
}
