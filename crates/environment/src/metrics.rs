//! Metrics in CloudWatch's embedded metric format: one line on stdout, which CloudWatch turns into
//! metrics. One namespace, and one dimension: the stack.

use std::{
    collections::BTreeMap,
    io::{self, Write as _},
};

use domain::metric::Metric;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The namespace of all our metrics.
pub const NAMESPACE: &str = "Offhours";

/// The only dimension.
const DIMENSION: &str = "Stack";

/// The most values of one metric that the format accepts in one line.
const MOST_VALUES: usize = 100;

/// What one invocation counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metrics(BTreeMap<Metric, Vec<u64>>);

impl Metrics {
    /// Counts one more occurrence, or raises a gauge, so that an alarm does not wait for the next
    /// inventory.
    pub fn record(&mut self, metric: Metric) {
        if Metric::GAUGES.contains(&metric) {
            self.raise(metric);
        } else {
            self.add(metric, 1);
        }
    }

    /// Counts `more` occurrences; records nothing for zero.
    fn add(&mut self, metric: Metric, more: u64) {
        if more == 0 {
            return;
        }
        let values = self.0.entry(metric).or_default();
        match values.first_mut() {
            Some(sum) => *sum += more,
            None => values.push(more),
        }
    }

    /// Records how many there are now, zero included, as a separate value beside those of other
    /// accounts.
    pub fn measure(&mut self, metric: Metric, value: u64) {
        self.0.entry(metric).or_default().push(value);
    }

    /// Records that there is at least one now.
    fn raise(&mut self, metric: Metric) {
        let values = self.0.entry(metric).or_default();
        if !values.contains(&1) {
            values.push(1);
        }
    }

    /// Returns the line to print; `None` if nothing was counted.
    #[must_use]
    pub fn line(&self, stack: &str, at: Timestamp) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let metrics = self.0.keys();
        let metrics = metrics.map(|metric| json!({ "Name": metric.name(), "Unit": "Count" }));
        let mut line = Map::new();
        line.insert(
            "_aws".to_owned(),
            json!({
                "Timestamp": at.as_millisecond(),
                "CloudWatchMetrics": [{
                    "Namespace": NAMESPACE,
                    "Dimensions": [[DIMENSION]],
                    "Metrics": metrics.collect::<Vec<_>>(),
                }],
            }),
        );
        line.insert(DIMENSION.to_owned(), Value::from(stack));
        for (metric, values) in &self.0 {
            line.insert(metric.name().to_owned(), value(values));
        }
        Some(Value::Object(line).to_string())
    }

    /// Prints the line, if there is one.
    pub fn write(&self, stack: &str, at: Timestamp) {
        if let Some(line) = self.line(stack, at) {
            // Without a stdout there is nowhere to write.
            writeln!(io::stdout().lock(), "{line}").ok();
        }
    }
}

/// Returns one number, or several. If there are more than the format accepts, the largest are kept:
/// alarms watch those.
fn value(values: &[u64]) -> Value {
    match values {
        [one] => json!(one),
        several => {
            let mut several = several.to_vec();
            if several.len() > MOST_VALUES {
                several.sort_unstable_by(|left, right| right.cmp(left));
                several.truncate(MOST_VALUES);
            }
            json!(several)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(metrics: &Metrics) -> Value {
        let at = "2026-11-23T18:00:00.5Z".parse().unwrap();
        serde_json::from_str(&metrics.line("offhours", at).unwrap()).unwrap()
    }

    #[test]
    fn without_a_count_there_is_no_line() {
        let mut metrics = Metrics::default();
        metrics.add(Metric::Asked, 0);
        assert_eq!(metrics.line("offhours", Timestamp::UNIX_EPOCH), None);
    }

    #[test]
    fn counters_sum_and_gauges_stand_side_by_side() {
        let mut metrics = Metrics::default();
        metrics.add(Metric::Asked, 2);
        metrics.add(Metric::Asked, 1);
        metrics.measure(Metric::Stuck, 0);
        metrics.measure(Metric::Held, 0);
        metrics.measure(Metric::Held, 26);
        let line = printed(&metrics);
        assert_eq!(
            line,
            json!({
                "_aws": {
                    "Timestamp": 1_795_456_800_500_i64,
                    "CloudWatchMetrics": [{
                        "Namespace": "Offhours",
                        "Dimensions": [["Stack"]],
                        "Metrics": [
                            { "Name": "Asked", "Unit": "Count" },
                            { "Name": "Stuck", "Unit": "Count" },
                            { "Name": "Held", "Unit": "Count" },
                        ],
                    }],
                },
                "Stack": "offhours",
                "Asked": 3,
                "Stuck": 0,
                "Held": [0, 26],
            })
        );
    }

    #[test]
    fn of_very_many_values_the_largest_stay() {
        let mut metrics = Metrics::default();
        for value in 0..150 {
            metrics.measure(Metric::Held, value);
        }
        let line = printed(&metrics);
        let values = line["Held"].as_array().unwrap();
        assert_eq!((values.len(), &values[0]), (100, &json!(149)));
    }
}
