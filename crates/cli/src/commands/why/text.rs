//! The chain of reasons as text for people: short lines, the answer first.

use std::fmt::Write as _;

use domain::{
    configuration::{Override, Selector},
    decision::{Observer, Why as Due},
    explanation::{
        DecisionExplanation, EdgeExplanation, Explanation, Level, Says, Standing, StandingCommand,
    },
    record::{Cause, ManualCommand},
    resource::Power,
    schedule::{
        Definition, Desired, FiringExplanation, Miss, Moved, PeriodDefinition, PeriodExplanation,
        PeriodSays, Schedule, Turn, desired_or_any,
    },
};
use jiff::{SignedDuration, Timestamp, civil::Date};

use super::Why;
use crate::{
    problems::Problem,
    resource::ResourceView,
    state::{PhaseName, stands_until},
    time::{length, local, short},
};

/// The width of the label column.
const LABEL: usize = 26;

/// The answer, and on demand everything that leads to it.
pub(super) fn render(why: &Why, schedule: Option<&Schedule>, full: bool) -> String {
    let text = Text { why, view: &why.view, explanation: &why.explanation };
    let name = &why.view.name;
    let mut lines = vec![format!("{name}  {}", why.view.resource)];
    if full {
        lines.extend([text.instant(), String::new()]);
    }
    lines.extend(text.answer());
    if !full {
        lines.push(format!("Every rule and what was decided: offhours why {name} --full"));
        lines.push(String::new());
        return lines.join("\n");
    }
    lines.extend(section("Who has a say, the strongest first", text.levels()));
    if let Some(schedule) = schedule {
        lines.extend(section(&text.schedule_title(), text.schedule(schedule.definition())));
    }
    lines.extend(section("What is known and decided", text.decided()));
    let hibernated = text.hibernated();
    if !hibernated.is_empty() {
        lines.extend(section("How it is hibernated", hibernated));
    }
    lines.extend(section("What comes next", text.next()));
    lines.push(String::new());
    lines.join("\n")
}

fn section(title: &str, lines: Vec<String>) -> Vec<String> {
    let mut section = vec![String::new(), title.to_owned()];
    section.extend(lines.into_iter().map(|line| format!("  {line}")));
    section
}

fn labelled(label: &str, words: &str) -> String {
    format!("{label:<LABEL$}{words}")
}

struct Text<'w> {
    why: &'w Why,
    view: &'w ResourceView,
    explanation: &'w Explanation,
}

impl Text<'_> {
    fn time(&self, at: Timestamp) -> String {
        short(at, &self.why.zone, self.explanation.at)
    }

    fn instant(&self) -> String {
        let at = self.explanation.at;
        let utc = at.strftime("%H:%M:%S UTC");
        format!("At {} ({utc})", local(at, &self.why.zone))
    }

    /// The lines of the summary.
    fn answer(&self) -> Vec<String> {
        let mut lines = vec![self.present()];
        for Problem { what, remedy, needs_person } in &self.view.problems {
            let label = if *needs_person { "It needs attention" } else { "Not as it should be" };
            lines.push(format!("{label}: {what}."));
            lines.push(format!("What to do: {remedy}."));
        }
        if let Some(EdgeExplanation { at: Some(at), to, .. }) = &self.explanation.next.edge {
            let ahead = length(at.duration_since(self.explanation.at));
            let to = desired_or_any(*to);
            let early = self.early().map_or_else(String::new, |words| format!("; {words}"));
            lines.push(format!("Next: {to} at {}, in {ahead}{early}.", self.time(*at)));
        }
        lines
    }

    fn present(&self) -> String {
        let desired = desired_or_any(self.explanation.desired);
        let state = &self.why.sentence;
        match (&self.explanation.decision, self.view.phase) {
            (_, PhaseName::InFlight) => match self.view.since {
                Some(since) if !self.why.is_watched => {
                    let taken = length(self.explanation.at.duration_since(since));
                    format!("{state}, for {taken} now.")
                }
                // The sentence says until when it is watched.
                Some(_) | None => format!("{state}."),
            },
            (_, PhaseName::Refused | PhaseName::Stuck | PhaseName::Gone) => format!("{state}."),
            (DecisionExplanation::Leave { reason, words }, PhaseName::Settled) => match *reason {
                "handled" if self.is_as_desired() => match &self.explanation.manual {
                    Some(command) => {
                        let until = self.stands_until(command);
                        format!("{state}, as {} asked, {until}.", command.by)
                    }
                    None => format!("{state}, as it should be."),
                },
                "handled" if self.was_observed() => {
                    format!("{state} and would be {desired}, but is only observed.")
                }
                "handled" => format!(
                    "{state} but should be {desired}: someone changed it, and it stays so until \
                     the next edge."
                ),
                "nothing-desired" => format!("{state}, and has no desired state now."),
                _ => format!("{state} and left alone: {words}."),
            },
            (DecisionExplanation::Act { direction, .. }, PhaseName::Settled) => {
                format!("{state}, and a {direction} is due.")
            }
            (DecisionExplanation::AskAgain { direction }, PhaseName::Settled) => {
                format!("{state}, and the {direction} will be asked for again.")
            }
        }
    }

    fn stands_until(&self, command: &StandingCommand) -> String {
        let explanation = self.explanation;
        let schedule = explanation.schedule.as_ref();
        stands_until(command, schedule, &self.why.zone, explanation.at)
    }

    fn is_as_desired(&self) -> bool {
        match self.explanation.desired {
            Some(Desired::Running) => self.view.power == Power::Running,
            Some(Desired::Stopped) => self.view.power == Power::Stopped,
            None => false,
        }
    }

    /// Reports whether the last edge handled was only observed, so that nothing was done about it.
    fn was_observed(&self) -> bool {
        let handled = self.explanation.handled.as_ref();
        let kept_stopped = self.explanation.observed_by.is_some()
            && self.explanation.desired == Some(Desired::Running);
        handled.is_some_and(|handled| match handled.desired {
            None => true,
            Some(Desired::Stopped) => kept_stopped,
            Some(Desired::Running) => false,
        })
    }

    /// Says that the next start begins early; `None` if it begins at the time its schedule names.
    fn early(&self) -> Option<String> {
        let edge = self.explanation.next.edge.as_ref()?;
        let lead = self.view.hibernation.as_ref()?.lead()?;
        let starts = edge.to == Some(Desired::Running) && edge.cause == Cause::Schedule;
        let begun = edge.at? - SignedDuration::from_mins(lead);
        let begun = begun.to_zoned(self.why.zone.clone());
        starts.then(|| format!("begun {lead} min early, at {}", begun.strftime("%H:%M")))
    }

    /// How it is hibernated: its snapshots, what is made from them, and how far that has got.
    fn hibernated(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut add = |label: &str, words: Option<String>| {
            lines.extend(words.map(|words| labelled(label, &words)));
        };
        if let Some([became, next]) = &self.why.steps {
            add("now", Some(became.clone()));
            add("then", Some(next.clone()));
        }
        let Some(kept) = &self.view.hibernation else {
            return lines;
        };
        let reference = self.view.resource.id.to_string();
        let machine = match kept.present() {
            None => Some("none: its snapshot stands for it".to_owned()),
            Some(present) if present != reference => {
                Some(format!("{present} at its cloud, since it was recreated"))
            }
            Some(_) => None,
        };
        add("machine", machine);
        if kept.present().is_none() {
            add("recreated from", Some(kept.waking(self.explanation.at)));
            add("recreated as", kept.as_it_was());
        }
        add("snapshots", Some(kept.kept()));
        let lead =
            kept.lead().map(|lead| format!("{lead} min early: recreating it takes that long"));
        add("starts begin", lead);
        lines
    }

    fn levels(&self) -> Vec<String> {
        let line = |level: &Level| {
            let (label, words) = self.level(&level.says);
            let (mark, suffix) = match level.standing {
                Standing::Decides => ("▶", ""),
                Standing::Overruled => ("✗", " (overruled)"),
                Standing::Silent => ("·", ""),
            };
            format!("{mark} {}{suffix}", labelled(label, &words))
        };
        self.explanation.levels.iter().map(line).collect()
    }

    fn level(&self, says: &Says) -> (&'static str, String) {
        let names = |names: &[String]| match names {
            [] => "names no schedule".to_owned(),
            [one] => one.clone(),
            several => format!("{}: more than one, a conflict", several.join(" and ")),
        };
        match says {
            Says::NoAccount { account } => ("account", format!("{account} is not configured")),
            Says::NoMachine { machine } => ("account", format!("has no machine `{machine}`")),
            Says::Deployment { pattern } => {
                ("deployment", format!("`{pattern}` covers it, for good"))
            }
            Says::Protect { pattern: None } => ("protect", "no pattern covers it".to_owned()),
            Says::Protect { pattern: Some(by) } => ("protect", format!("`{by}` covers it")),
            Says::OptOut { on_cluster } => (
                "opt-out",
                match on_cluster {
                    None => "no such tag".to_owned(),
                    Some(false) => "by its own tag".to_owned(),
                    Some(true) => "by its cluster's tag".to_owned(),
                },
            ),
            Says::Unsupported { reason } => ("not supported", reason.clone()),
            Says::TwoAccounts { other } => ("two accounts", format!("also reached as {other}")),
            Says::ResourceOverride { set } => ("override of it", self.set(set.as_ref())),
            Says::ScheduleOverride { set } => ("override of its schedule", self.set(set.as_ref())),
            Says::Manual { command } => ("manual stop or start", self.manual(command.as_ref())),
            Says::List { names: listed, .. } if listed.is_empty() => {
                ("list of a schedule", "none has it".to_owned())
            }
            Says::List { names: listed, by } => {
                let by = by.iter().filter(|by| matches!(by, Selector::Name(_)));
                let by: Vec<_> = by.map(|by| format!("`{by}`")).collect();
                let through = match by.as_slice() {
                    [] => String::new(),
                    some => format!(", named by {}", some.join(" and ")),
                };
                ("list of a schedule", names(listed) + &through)
            }
            Says::Tag { names: tagged } => ("its tag", names(tagged)),
            Says::ClusterTag { names: tagged } => ("its cluster's tag", names(tagged)),
        }
    }

    fn set(&self, one: Option<&Override>) -> String {
        let Some(one) = one else {
            return "none".to_owned();
        };
        let at = self.explanation.at;
        let why = one.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let Override { desired, by, .. } = one;
        if one.is_active(at) {
            format!("{desired} until {}, by {by}{why}", self.time(one.ends_at))
        } else if at < one.set_at {
            format!("{desired}, but only from {}, by {by}{why}", self.time(one.set_at))
        } else {
            format!("{desired}, ended {}, by {by}{why}", self.time(one.ends_at))
        }
    }

    fn manual(&self, command: Option<&ManualCommand>) -> String {
        let Some(command) = command else {
            return "none".to_owned();
        };
        let ManualCommand { desired, by, .. } = command;
        let stands = self.explanation.manual.as_ref();
        let until = stands.map(|command| format!(", {}", self.stands_until(command)));
        let until = until.unwrap_or_default();
        format!("{desired}, by {by} at {}{until}", self.time(command.instant))
    }

    fn schedule_title(&self) -> String {
        let name = self.explanation.schedule.as_ref();
        let name = name.map(ToString::to_string).unwrap_or_default();
        let zone = self.explanation.timezone.as_deref().unwrap_or_default();
        format!("What the schedule {name} says ({zone})")
    }

    fn schedule(&self, definition: &Definition) -> Vec<String> {
        let Some(evaluation) = &self.explanation.evaluation else {
            return Vec::new();
        };
        let mut lines = vec![labelled("desired", desired_or_any(evaluation.desired))];
        let periods = evaluation.periods.iter().zip(&definition.periods);
        lines.extend(periods.map(|(said, written)| period(said, written)));
        lines.extend(evaluation.firings.iter().map(|firing| self.firing(firing)));
        if evaluation.bridged {
            let words = "the minute between two windows is bridged";
            lines.push(labelled("gap", words));
        }
        if evaluation.holiday {
            let words = "this day is one: nothing begins, and what is to stop is stopped";
            lines.push(labelled("holiday", words));
        }
        if let Some(change) = evaluation.clock_change {
            let way = if change.from < change.to { "forward" } else { "back" };
            let day = change.day().strftime("%a");
            let (from, to) = (change.from.strftime("%H:%M"), change.to.strftime("%H:%M"));
            let words = format!("is set {way} on {day} from {from} to {to}");
            lines.push(labelled("clock", &words));
        }
        lines
    }

    fn firing(&self, firing: &FiringExplanation) -> String {
        let label = match firing.desired {
            Desired::Running => format!("start {}", firing.expression),
            Desired::Stopped => format!("stop {}", firing.expression),
        };
        let time = |turn: Option<Turn>| match turn {
            Some(turn) => format!("{}{}", self.time(turn.at), moved(&turn)),
            None => "never".to_owned(),
        };
        let mut words = format!("last {}, next {}", time(firing.last), time(firing.next));
        if let Some(passed_over) = firing.passed_over {
            let day = passed_over.strftime("%a %Y-%m-%d");
            write!(words, "; not on {day}, a holiday").ok();
        }
        labelled(&label, &words)
    }

    fn decided(&self) -> Vec<String> {
        let explanation = self.explanation;
        let edge = match &explanation.edge {
            None => "none yet".to_owned(),
            Some(edge) => self.edge(edge),
        };
        let handled = explanation.handled.as_ref().map_or_else(
            || "none yet".to_owned(),
            |handled| {
                let at = self.time(handled.key.instant);
                match handled.desired {
                    // Observe mode records no desired state, so that acting can begin later.
                    None => format!("{at} (observed only)"),
                    Some(desired) => format!("{at} ({desired})"),
                }
            },
        );
        let mut lines = vec![
            labelled("latest edge", &edge),
            labelled("last edge handled", &handled),
            labelled("decision", &decision(&explanation.decision)),
            labelled("state", &self.state()),
            labelled("a stop's method", self.view.method.name()),
        ];
        let mut add = |label: &str, words: Option<String>| {
            lines.extend(words.map(|words| labelled(label, &words)));
        };
        add("saved, to be put back", self.view.saved.as_ref().map(ToString::to_string));
        add("mode", explanation.observed_by.map(observer));
        let held = explanation.held.then(|| match self.why.lost_storage {
            Some(lost) => format!("came back with {lost}: add some, or `offhours approve`"),
            None => "too many joined at once: `offhours approve` releases it".to_owned(),
        });
        add("held", held);
        let words = "found running before its start: the next stop leaves it running";
        add("retained", explanation.retained.then(|| words.to_owned()));
        let words = "changes by others are undone at each inventory";
        add("enforce", explanation.enforced.then(|| words.to_owned()));
        add("last error", self.last_error());
        lines
    }

    fn state(&self) -> String {
        let since = self.view.since.map(|since| format!(", since {}", self.time(since)));
        format!("{}{}", self.view.state, since.unwrap_or_default())
    }

    fn last_error(&self) -> Option<String> {
        let error = self.view.last_error.as_ref()?;
        Some(match self.why.attempts {
            0 | 1 => error.clone(),
            many => format!("{error} ({many} times in a row)"),
        })
    }

    fn edge(&self, edge: &EdgeExplanation) -> String {
        let by = because(&edge.cause);
        match edge.at {
            Some(at) => format!("{} since {}, {by}", desired_or_any(edge.to), self.time(at)),
            None => format!("{}, and never anything else, {by}", desired_or_any(edge.to)),
        }
    }

    fn next(&self) -> Vec<String> {
        let next = &self.explanation.next;
        let mut lines = Vec::new();
        let mut add = |at: Option<Timestamp>, words: &str| {
            lines.extend(at.map(|at| labelled(&self.time(at), words)));
        };
        add(next.permit_until, "a request may be on its way until then; nothing else is sent");
        add(next.look_at, "the next look at what is under way");
        add(next.retry_at, "tried again after a failure");
        if let Some(edge) = &next.edge {
            add(edge.at, &format!("{}, {}", desired_or_any(edge.to), because(&edge.cause)));
        }
        if let DecisionExplanation::Act { direction, .. } = self.explanation.decision
            && next.retry_at.is_none()
            && self.explanation.observed_by.is_none()
        {
            lines.insert(
                0,
                labelled("within a minute", &format!("dispatch hands it to {direction}")),
            );
        }
        if lines.is_empty() {
            lines.push("nothing, until something changes".to_owned());
        }
        lines
    }
}

fn because(cause: &Cause) -> String {
    match cause {
        Cause::Schedule => "by the schedule".to_owned(),
        Cause::OverrideSet => "by an override".to_owned(),
        Cause::OverrideEnded => "by the end of an override".to_owned(),
        Cause::Manual { by } => format!("manually by {by}"),
    }
}

fn decision(decision: &DecisionExplanation) -> String {
    match decision {
        DecisionExplanation::Act { retained: true, .. } => {
            "left running: `retain_running` found it running before".to_owned()
        }
        DecisionExplanation::Act { direction, why, .. } => {
            let why = match why {
                Due::Edge => "the latest edge has not been handled",
                Due::Changed => "the configuration, or its schedule, changed and wants this now",
                Due::Drift => "it was changed, and the schedule enforces its desired state",
            };
            format!("{direction} it: {why}")
        }
        DecisionExplanation::AskAgain { direction } => {
            format!("ask again to {direction} it: there was no answer, or a failure")
        }
        DecisionExplanation::Leave { words, .. } => format!("leave it: {words}"),
    }
}

fn observer(observer: Observer) -> String {
    format!("{observer} only observes: nothing is sent")
}

/// One period: what it is, and whether it applies.
fn period(said: &PeriodExplanation, written: &PeriodDefinition) -> String {
    labelled(&window(written), &verdict(said))
}

/// A period as its author wrote it, in one line.
fn window(period: &PeriodDefinition) -> String {
    let days = [&period.weekdays, &period.monthdays, &period.months];
    let mut parts: Vec<_> =
        days.into_iter().filter(|field| !field.is_empty()).map(|field| field.join(",")).collect();
    parts.extend(match (&period.from, &period.until) {
        (None, None) => None,
        (from, until) => {
            let date = |date: &Option<String>| date.clone().unwrap_or_default();
            Some(format!("{}..{}", date(from), date(until)))
        }
    });
    match (&period.begin, &period.end) {
        (None, None) if parts.is_empty() => parts.push("always".to_owned()),
        (None, None) => {}
        (Some(begin), Some(end)) => parts.push(format!("{begin}-{end}")),
        (Some(begin), None) => parts.push(format!("from {begin}")),
        (None, Some(end)) => parts.push(format!("until {end}")),
    }
    parts.extend(period.timezone.clone());
    parts.join(" ")
}

fn verdict(said: &PeriodExplanation) -> String {
    let is_of_the_day = |miss: &&Miss| !matches!(miss, Miss::NotBegun | Miss::Over);
    let of_the_day: Vec<_> =
        said.misses.iter().filter(is_of_the_day).copied().map(day_miss).collect();
    let why_not = match (of_the_day.as_slice(), said.misses.first()) {
        ([], None) => None,
        ([], Some(miss)) => Some(time_miss(*miss, said)),
        (fields, _) => Some(format!("{} {}", date(said.day), fields.join(", "))),
    };
    let mut words = match (why_not, said.says) {
        (None, says) => {
            let says = says.map_or("", PeriodSays::as_str);
            format!("{says}: {}", span(said))
        }
        (Some(why_not), Some(PeriodSays::Any)) => format!("no desired state: {why_not}"),
        (Some(why_not), Some(PeriodSays::Running | PeriodSays::Stopped)) => {
            format!("no: {why_not}")
        }
        (Some(why_not), None) => format!("no say: {why_not}"),
    };
    for turn in [said.begins, said.ends].iter().flatten() {
        words.push_str(moved(turn));
    }
    words
}

/// The window of the judged day.
fn span(said: &PeriodExplanation) -> String {
    let begins = said.begins.map(|turn| turn.reading.strftime("%a %H:%M"));
    let ends = said.ends.map(|turn| {
        let is_told = begins.is_some() && turn.reading.date() == said.day;
        turn.reading.strftime(if is_told { "%H:%M" } else { "%a %H:%M" })
    });
    match (begins, ends) {
        (Some(begins), Some(ends)) => format!("{begins} to {ends}"),
        (Some(begins), None) => format!("{begins} to midnight"),
        (None, Some(ends)) => format!("{ends} to midnight"),
        (None, None) => date(said.day),
    }
}

/// Names the field of a period that a day does not match.
fn day_miss(miss: Miss) -> &'static str {
    match miss {
        Miss::Weekday => "is none of its weekdays",
        Miss::Monthday => "is none of its days of the month",
        Miss::Month => "is in none of its months",
        Miss::Date => "is outside of its dates",
        Miss::Holiday => "is a holiday",
        Miss::NotBegun => "has not begun",
        Miss::Over => "is over",
    }
}

/// Says where the judged time is relative to a window.
fn time_miss(miss: Miss, said: &PeriodExplanation) -> String {
    let time = |turn: Option<Turn>| turn.map(|turn| turn.reading.strftime("%a %H:%M").to_string());
    let (begins, ends) = (time(said.begins), time(said.ends));
    match (miss, begins, ends) {
        (Miss::NotBegun, Some(begins), _) => format!("begins {begins}"),
        (Miss::NotBegun, None, Some(ends)) => format!("not before {ends}"),
        (Miss::Over, _, Some(ends)) => format!("ended {ends}"),
        (miss, _, _) => format!("{} {}", date(said.day), day_miss(miss)),
    }
}

fn date(day: Date) -> String {
    day.strftime("%a %Y-%m-%d").to_string()
}

/// What a change of the clock does to a time.
fn moved(turn: &Turn) -> &'static str {
    match turn.moved {
        None => "",
        Some(Moved::Skipped) => " (a time that the clock skips: at the jump)",
        Some(Moved::Repeated) => {
            " (a time that comes twice: begins at the first, ends at the last)"
        }
    }
}
