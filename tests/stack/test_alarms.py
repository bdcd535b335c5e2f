"""Each alarm on one of our metrics rings for what a function really logged."""

from __future__ import annotations

import time
from typing import Any

import pytest
from conftest import Deployed
from emulators import alarming
from paths import expect

pytestmark = alarming

GAUGES = (
    "Failed",
    "Overdue",
    "Refused",
    "Stuck",
    "Held",
    "Orphaned",
    "Conflicts",
    "TokensRefused",
)


def logged(deployed: Deployed, metric: str) -> dict[str, Any]:
    """Returns the namespace and dimensions of a metric, from a line that a function wrote."""
    for function in ("stop", "start", "poll-status"):
        for line in deployed.stack.lines(function):
            for group in line.fields.get("_aws", {}).get("CloudWatchMetrics", []):
                if metric in {one["Name"] for one in group["Metrics"]}:
                    (names,) = group["Dimensions"]
                    dimensions = [{"Name": name, "Value": line.fields[name]} for name in names]
                    return {"Namespace": group["Namespace"], "Dimensions": dimensions}
    raise AssertionError(f"no function wrote {metric}")


def alarms_on(deployed: Deployed, metric: str) -> list[dict[str, Any]]:
    """Returns the stack's alarms on one of our metrics."""
    cloudwatch = deployed.stack.emulator.client("cloudwatch")
    alarms = cloudwatch.describe_alarms(AlarmNamePrefix=deployed.stack.name)["MetricAlarms"]
    return [one for one in alarms if one["Namespace"] == "Offhours" and one["MetricName"] == metric]


@pytest.mark.parametrize("metric", GAUGES)
def test_the_alarm_rings_for_the_metric_as_it_was_logged(cycled: Deployed, metric: str) -> None:
    (alarm,) = alarms_on(cycled, metric)
    written = logged(cycled, metric)
    cloudwatch = cycled.stack.emulator.client("cloudwatch")
    now = time.time()
    cloudwatch.put_metric_data(
        Namespace=written["Namespace"],
        MetricData=[
            {
                "MetricName": metric,
                "Dimensions": written["Dimensions"],
                "Timestamp": now - ago * alarm["Period"],
                "Value": 1,
            }
            for ago in range(alarm["EvaluationPeriods"])
        ],
    )
    name = alarm["AlarmName"]

    def rings() -> bool:
        (state,) = cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"]
        mailed = [message["Message"] for message in cycled.mails.all()]
        return state["StateValue"] == "ALARM" and any(name in mail for mail in mailed)

    expect(rings, f"{name}, by mail", patience=150)
