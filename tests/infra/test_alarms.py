"""The alarms, and the dashboard that shows what they watch."""

import json

import pytest
from template import ACCOUNT, NAME, REGION, ROOT, Stack

#: The service's own metrics: at most ten, each with the stack as its only dimension.
COUNTERS = {"Asked", "Seen"}
GAUGES = {
    "Failed",
    "Overdue",
    "Refused",
    "Stuck",
    "Held",
    "Orphaned",
    "Conflicts",
    "TokensRefused",
}
FUNCTIONS = {f"{NAME}-{verb}" for verb in ("dispatch", "poll-status", "stop", "start")}
TIMED = {f"{NAME}-dispatch", f"{NAME}-poll-status"}
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:{NAME}-alerts"


def alarms(stack: Stack, namespace: str, metric: str | None = None) -> list[dict]:
    return [
        one
        for one in stack.of_type("AWS::CloudWatch::Alarm").values()
        if one["Namespace"] == namespace and metric in (None, one["MetricName"])
    ]


def dimension(alarm: dict) -> tuple[str, str]:
    (one,) = alarm["Dimensions"]
    return one["Name"], one["Value"]


def is_raised_at_one(alarm: dict) -> bool:
    return (alarm["ComparisonOperator"], alarm["Threshold"]) == (
        "GreaterThanOrEqualToThreshold",
        1,
    )


def test_every_gauge_has_an_alarm_on_the_metric_that_the_functions_write(plain):
    own = alarms(plain, "Offhours")
    assert {one["MetricName"] for one in own} == GAUGES
    assert len(own) == len(GAUGES)
    assert len(COUNTERS | GAUGES) <= 10
    for alarm in own:
        assert dimension(alarm) == ("Stack", NAME)
        assert alarm["Statistic"] == "Maximum"
        assert is_raised_at_one(alarm)
        # As often as an inventory writes it.
        assert alarm["Period"] == 300
        assert alarm["TreatMissingData"] == "notBreaching"


def test_a_problem_rings_at_once_but_a_failure_that_is_tried_again_does_not(plain):
    for alarm in alarms(plain, "Offhours"):
        needed = (alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"])
        assert needed == ((3, 3) if alarm["MetricName"] == "Failed" else (1, 2))


def test_five_minutes_without_a_timed_function_ring(plain):
    missing = alarms(plain, "AWS/Lambda", "Invocations")
    assert {dimension(one) for one in missing} == {("FunctionName", name) for name in TIMED}
    for alarm in missing:
        assert (alarm["Statistic"], alarm["Period"]) == ("Sum", 60)
        assert (alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"]) == (5, 5)
        assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("LessThanThreshold", 1)
        # A function that does not run writes no metric either.
        assert alarm["TreatMissingData"] == "breaching"


@pytest.mark.parametrize(("timers", "enabled"), [("ENABLED", True), ("DISABLED", False)])
def test_paused_timers_do_not_ring(timers, enabled):
    for alarm in alarms(Stack(Timers=timers), "AWS/Lambda", "Invocations"):
        assert alarm["ActionsEnabled"] is enabled


def test_other_alarms_ring_whatever_the_timers_do():
    stack = Stack(Timers="DISABLED")
    for alarm in stack.of_type("AWS::CloudWatch::Alarm").values():
        if alarm["MetricName"] != "Invocations":
            assert "ActionsEnabled" not in alarm


def test_functions_that_keep_failing_ring(plain):
    errors = alarms(plain, "AWS/Lambda", "Errors")
    assert {dimension(one) for one in errors} == {("FunctionName", name) for name in FUNCTIONS}
    for alarm in errors:
        assert is_raised_at_one(alarm)
        assert (alarm["Statistic"], alarm["Period"]) == ("Sum", 60)
        # The next tick makes up for a single failure.
        assert (alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"]) == (3, 5)


def test_a_dead_letter_rings(plain):
    (alarm,) = alarms(plain, "AWS/SQS")
    assert alarm["MetricName"] == "ApproximateNumberOfMessagesVisible"
    assert dimension(alarm) == ("QueueName", f"{NAME}-dead-letters")
    assert alarm["Statistic"] == "Maximum"
    assert alarm["EvaluationPeriods"] == 1
    assert is_raised_at_one(alarm)


def test_every_alarm_reports_to_the_topic_and_says_which_command_to_run(plain):
    every = plain.of_type("AWS::CloudWatch::Alarm")
    assert len(every) == len(GAUGES) + len(TIMED) + len(FUNCTIONS) + 1
    for name, alarm in every.items():
        assert alarm["AlarmActions"] == [TOPIC], name
        # In a new stack the first evaluation of each is OK: fifteen mails about nothing.
        assert "OKActions" not in alarm, name
        # The topic's policy lets alarms with such names publish.
        assert alarm["AlarmName"].startswith(f"{NAME}-"), name
        assert "`offhours " in alarm["AlarmDescription"], name
        assert len(alarm["AlarmDescription"]) <= 1024, name


def dashboard(stack: Stack) -> list[dict]:
    (one,) = stack.of_type("AWS::CloudWatch::Dashboard").values()
    assert one["DashboardName"] == f"{NAME}-{REGION}"
    return json.loads(one["DashboardBody"])["widgets"]


def test_the_page_about_a_trial_on_aws_knows_how_many_widgets_there_are(plain):
    page = (ROOT / "docs" / "verify-on-aws.md").read_text()
    assert f"| CloudWatch has accepted the dashboard | {len(dashboard(plain))} widgets |" in page


def shown(stack: Stack) -> set[tuple[str, str]]:
    return {
        (metric[0], metric[1])
        for widget in dashboard(stack)
        for metric in widget["properties"].get("metrics", [])
    }


def test_the_dashboard_shows_every_metric_of_the_service(plain):
    own = {metric for namespace, metric in shown(plain) if namespace == "Offhours"}
    assert own == COUNTERS | GAUGES


def test_the_dashboard_shows_what_every_alarm_watches(plain):
    watched = {
        (one["Namespace"], one["MetricName"])
        for one in plain.of_type("AWS::CloudWatch::Alarm").values()
    }
    assert watched <= shown(plain)
    (widget,) = [one for one in dashboard(plain) if one["type"] == "alarm"]
    listed = widget["properties"]["alarms"]
    assert sorted(listed) == sorted(
        plain.attribute(name, "Arn") for name in plain.of_type("AWS::CloudWatch::Alarm")
    )


def test_the_dashboard_reads_the_log_of_every_function(plain):
    (widget,) = [one for one in dashboard(plain) if one["type"] == "log"]
    query = widget["properties"]["query"]
    for group in plain.of_type("AWS::Logs::LogGroup").values():
        assert f"SOURCE '{group['LogGroupName']}'" in query


def test_metrics_of_the_dashboard_are_those_of_this_stack(plain):
    tables = {one["TableName"] for one in plain.of_type("AWS::DynamoDB::Table").values()}
    names = {
        "Stack": {NAME},
        "FunctionName": FUNCTIONS,
        "TableName": tables,
        "QueueName": {f"{NAME}-dead-letters"},
        "GlobalSecondaryIndexName": {"due"},
    }
    for widget in dashboard(plain):
        for metric in widget["properties"].get("metrics", []):
            dimensions = metric[2:-1]
            for name, value in zip(dimensions[::2], dimensions[1::2], strict=True):
                assert value in names[name], metric


def test_widgets_fit_the_grid_and_do_not_overlap(plain):
    taken = set()
    for widget in dashboard(plain):
        assert widget["x"] + widget["width"] <= 24
        for x in range(widget["x"], widget["x"] + widget["width"]):
            for y in range(widget["y"], widget["y"] + widget["height"]):
                assert (x, y) not in taken, widget
                taken.add((x, y))
