//! Gives an account or a schedule another name for some time, in some nights.

use cloud_simulator::Act;
use domain::{ScheduleName, configuration::PauseScope};
use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};

use super::{EventGenerator, fleet, rough_times};
use crate::night::{EventKind, NightEvent, Setup};

const RENAMES: u64 = 0x0072_656e_616d_6573;

/// One night in this many has renames.
const ONE_IN: u8 = 3;

/// The other name of a schedule.
pub(crate) const BUREAU: &str = "bureau";

impl EventGenerator {
    /// Adds renames, from a stream of their own.
    pub(super) fn renames(&mut self, seed: u64) {
        self.chance = Rng::with_seed(seed ^ RENAMES);
        if self.chance.u8(..ONE_IN) > 0 {
            return;
        }
        let knows_an_account = self.happenings.iter().any(knows_an_account);
        for (from, until) in rough_times(self.begins, &self.happenings) {
            let edges = self.edges(from, until);
            let mut at = self.near(&edges, from, until);
            if let Some(edge) = self.chance.choice(&edges).filter(|_| self.chance.bool()) {
                // Much is under way then.
                let after = SignedDuration::from_secs(self.chance.i64(-30..420));
                at = (*edge + after).clamp(from, until);
            }
            let minutes = [5, 45, 300, 1800][self.chance.usize(..4)];
            let back = at + SignedDuration::from_mins(self.chance.i64(1..=minutes));
            let back = back.min(until);
            if knows_an_account || self.chance.bool() {
                self.rename_schedule(at, back);
            } else {
                let account = fleet::Fleet::account(&mut self.chance);
                self.rename(at, back, |setup, is_renamed| {
                    setup.renamed.insert(account.clone(), is_renamed);
                });
            }
        }
    }

    /// Renames a schedule; some resources follow it by a tag with its other name.
    fn rename_schedule(&mut self, at: Timestamp, back: Timestamp) {
        let name = self.schedule();
        let other: ScheduleName = BUREAU.parse().expect("a schedule's name");
        self.rename(at, back, |setup, is_renamed| {
            if is_renamed && let Some(rule) = setup.schedules.remove(&name) {
                setup.schedules.insert(other.clone(), rule);
            }
        });
        for member in self.fleet.members.clone() {
            if self.chance.bool() {
                continue;
            }
            let delay = SignedDuration::from_secs(self.chance.i64(-600..600));
            for (at, word) in [(at + delay, BUREAU), (back, name.as_str())] {
                let tags = member.tags_with(word);
                let resource = member.reference.clone();
                self.add(at.min(back), EventKind::Person { resource, act: Act::Retag { tags } });
            }
        }
    }

    /// Applies a change at an instant and takes it back at another one, in whatever is configured
    /// meanwhile.
    fn rename(&mut self, at: Timestamp, back: Timestamp, change: impl Fn(&mut Setup, bool)) {
        let (mut renamed, mut former) = (self.setup_at(at), self.setup_at(back));
        for event in &mut self.happenings {
            if let EventKind::Apply { setup } = &mut event.what
                && event.at >= at
            {
                change(setup, event.at < back);
            }
        }
        change(&mut renamed, true);
        change(&mut former, false);
        self.apply(at, renamed);
        self.apply(back, former);
    }
}

/// Reports whether an event names an account to Offhours in a way that a rename would change.
fn knows_an_account(event: &NightEvent) -> bool {
    matches!(
        event.what,
        EventKind::Restore
            | EventKind::Newer { .. }
            | EventKind::Pause { scope: PauseScope::Account(_), .. }
    )
}
