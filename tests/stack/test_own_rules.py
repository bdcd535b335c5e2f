"""Stop and start under a user's own cron rule."""

from __future__ import annotations

import json

from conftest import Deployed
from paths import expect

SERVER = "hz-eu/server/42"


def test_a_rule_of_ones_own_stops_what_it_names(cycled: Deployed) -> None:
    stack = cycled.stack
    events = stack.emulator.client("events")
    # The functions may be invoked only by rules whose names begin with the stack's and a dot.
    name = f"{stack.name}.lunch"
    events.put_rule(Name=name, ScheduleExpression="cron(* * * * ? *)")
    target = {
        "Id": "stop",
        "Arn": stack.outputs()["StopFunctionArn"],
        "Input": json.dumps({"resources": [SERVER], "by": "the lunch rule"}),
    }
    events.put_targets(Rule=name, Targets=[target])
    try:
        expect(lambda: _stopped_by_hand(cycled), "the stop by a rule", patience=240)
    finally:
        events.remove_targets(Rule=name, Ids=["stop"])
        events.delete_rule(Name=name)


def _stopped_by_hand(deployed: Deployed) -> bool:
    return any(
        line.fields.get("resource.id") == SERVER and "(the lunch rule)" in line.message
        for line in deployed.stack.lines("stop", deployed.began)
    )
