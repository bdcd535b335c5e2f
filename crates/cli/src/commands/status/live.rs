//! What the resources' own Status operations show, called from here or through poll-status.

use std::collections::HashMap;

use domain::{ResourceRef, invocation::Question};
use lifecycle::{Report, event::Subject};
use report::resource::ResourceView;

use crate::connection::Functions;

/// The number of resources per invocation: each costs it a request to the provider.
const BATCH: usize = 20;

/// Asks about the resource of each row and stores the answer in the row.
pub(super) async fn ask(functions: &Functions, rows: &mut [ResourceView]) -> anyhow::Result<()> {
    for batch in rows.chunks_mut(BATCH) {
        let references = batch.iter().map(|row| row.resource.clone()).collect();
        let report = functions.ask(Question::Resources(references)).await?;
        note(report, batch);
    }
    Ok(())
}

/// Stores each of a report's answers in the row of its resource.
fn note(report: Report, rows: &mut [ResourceView]) {
    let mut answers: HashMap<ResourceRef, String> = HashMap::new();
    for outcome in report.outcomes {
        if let Subject::Resource { resource, .. } = outcome.subject {
            answers.insert(resource, outcome.event.to_string());
        }
    }
    for row in rows {
        let answer = answers.remove(&row.resource);
        row.live = Some(answer.unwrap_or_else(|| "no answer".to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use lifecycle::{Event, Occurrence};

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
        note(report, &mut rows);
        let live = rows.map(|row| row.live);
        let expected = ["no answer", "running, s-1vcpu-1gb"];
        assert_eq!(live, expected.map(|text| Some(text.to_owned())));
    }
}
