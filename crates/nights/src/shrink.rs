//! Shortens a failing night: fewer events, fewer resources, fewer days.

use crate::{Night, Played, Trace, play};

/// The maximum number of nights played to shorten one.
const TRIES: usize = 150;

/// Returns the shortest night found that breaks the same promise.
pub fn shortest(mut night: Night) -> anyhow::Result<Night> {
    let Some(violation) = play(&night, &Trace::default())?.violation else {
        return Ok(night);
    };
    let mut search = Search { kind: kind(&violation), tries: TRIES };
    search.end_early(&mut night, &violation);
    loop {
        let before = (night.happenings.len(), night.fleet.len());
        search.leave_out(&mut night, |night| &mut night.happenings);
        search.leave_out(&mut night, |night| &mut night.fleet);
        if before == (night.happenings.len(), night.fleet.len()) || search.tries == 0 {
            return Ok(night);
        }
    }
}

/// Returns the kind of promise that a violation breaks: its words without instants, names, and
/// numbers.
fn kind(violation: &str) -> String {
    let words = violation.split_whitespace().skip(1);
    let plain = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == ',');
    words.filter(plain).take(6).collect::<Vec<_>>().join(" ")
}

struct Search {
    kind: String,
    tries: usize,
}

impl Search {
    fn fails_alike(&mut self, night: &Night) -> bool {
        if self.tries == 0 {
            return false;
        }
        self.tries -= 1;
        let played: Option<Played> = play(night, &Trace::default()).ok();
        let violation = played.and_then(|played| played.violation);
        violation.is_some_and(|violation| kind(&violation) == self.kind)
    }

    fn end_early(&mut self, night: &mut Night, violation: &str) {
        let at = violation.split(": ").next().and_then(|at| at.parse().ok());
        let Some(at) = at else { return };
        let mut shorter = night.clone();
        shorter.happenings.retain(|event| event.at <= at);
        shorter.ends = at;
        if self.fails_alike(&shorter) {
            *night = shorter;
        }
    }

    /// Removes ever smaller parts of a list, as long as the night still fails alike.
    fn leave_out<T: Clone>(&mut self, night: &mut Night, list: impl Fn(&mut Night) -> &mut Vec<T>) {
        let mut part = list(night).len().div_ceil(2);
        while part > 0 {
            let mut from = 0;
            while from < list(night).len() {
                let mut shorter = night.clone();
                let of = list(&mut shorter);
                let to = (from + part).min(of.len());
                of.drain(from..to);
                if self.fails_alike(&shorter) {
                    *night = shorter;
                } else {
                    from += part;
                }
            }
            part = if part == 1 { 0 } else { part.div_ceil(2) };
        }
    }
}
