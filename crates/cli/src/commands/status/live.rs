//! What the resources' own Status operations show, called from here or through poll-status.

use std::collections::HashMap;

use domain::{ResourceRef, invocation::Question};
use lifecycle::{Event, Report, event::Subject};
use report::resource::ResourceView;

use crate::connection::Functions;

/// The number of resources per invocation: each costs it a request to the provider.
const BATCH: usize = 20;

/// Asks about the resource of each row and stores the answer in the row. Returns whether all could be
/// looked at.
pub(super) async fn ask(functions: &Functions, rows: &mut [ResourceView]) -> anyhow::Result<bool> {
    let mut all = true;
    for batch in rows.chunks_mut(BATCH) {
        let references = batch.iter().map(|row| row.resource.clone()).collect();
        let report = functions.ask(Question::Resources(references)).await?;
        all &= note(report, batch);
    }
    Ok(all)
}

/// Stores each of a report's answers in the row of its resource. Returns whether there is one for each.
fn note(report: Report, rows: &mut [ResourceView]) -> bool {
    let mut answers: HashMap<ResourceRef, Result<String, String>> = HashMap::new();
    for outcome in report.outcomes {
        if let Subject::Resource { resource, .. } = outcome.subject {
            let answer = if let Event::Postponed { reason, .. } = outcome.event {
                Err(reason.to_string())
            } else {
                Ok(outcome.event.to_string())
            };
            answers.insert(resource, answer);
        }
    }
    let mut all = true;
    for row in rows {
        let answer = answers.remove(&row.resource).unwrap_or_else(|| Err("no answer".to_owned()));
        all &= answer.is_ok();
        row.live = Some(answer.unwrap_or_else(|failure| failure));
    }
    all
}

#[cfg(test)]
mod tests {
    use lifecycle::Occurrence;

    use super::*;
    use crate::evening::{in_force, now, office};

    #[test]
    fn answers_are_noted_at_their_resources_and_a_missing_one_is_shown() {
        let in_force = in_force();
        let records = [1, 2].map(|number| office(&format!("do-main/droplet/{number}"), "web"));
        let mut rows = records
            .clone()
            .map(|record| ResourceView::of(&record, &in_force, &jiff::tz::TimeZone::UTC, now()));
        let state = "running, s-1vcpu-1gb".to_owned();
        let report = Report {
            outcomes: vec![Occurrence::of(&records[1], now(), Event::Status { state })],
            ..Report::default()
        };
        assert!(!note(report, &mut rows));
        let live = rows.map(|row| row.live);
        let expected = ["no answer", "running, s-1vcpu-1gb"];
        assert_eq!(live, expected.map(|text| Some(text.to_owned())));
    }
}
