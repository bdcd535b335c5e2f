"""What EventBridge's real minutes do to the deployed template when nothing else invokes it."""

from __future__ import annotations

import json

import jsonschema
import pytest
from conftest import Deployed
from fleets import FOLLOWED, STUBBORN_DATABASE
from machines import MACHINE
from paths import expect
from places import EVENTS
from rehearsal import verdict

UNTOUCHED = {"do-main/droplet/3164555", "do-main/droplet/3164666"}
"""The Droplet that nothing names, and the one that is protected."""


def test_each_was_stopped_by_dispatch_and_stop_then_started_by_dispatch_and_start(
    cycled: Deployed,
) -> None:
    stack = cycled.stack
    found = verdict.changes(stack, cycled.simulator, cycled.began)
    for resource in FOLLOWED:
        of_it = [change for change in found if change.resource == resource]
        first, last = of_it[0], of_it[-1]
        assert (first.direction, first.function) == ("stop", "offhours-stop")
        assert (last.direction, last.function) == ("start", "offhours-start")
        assert first.rule == last.rule == "offhours-dispatch"
        assert first.seen is not None
        assert first.at < first.seen < last.at


def test_the_guest_that_did_not_listen_was_cut_off_by_stop(
    cycled: Deployed,
) -> None:
    found = verdict.changes(cycled.stack, cycled.simulator, cycled.began)
    cut = [change for change in found if change.request.endswith("/poweroff")]
    assert {(change.name, change.function) for change in cut} == {("legacy", "offhours-stop")}


def test_nothing_else_was_touched(cycled: Deployed) -> None:
    changed = {entry["resource"] for entry in cycled.simulator.changes()}
    assert changed == FOLLOWED
    for resource in UNTOUCHED:
        assert cycled.simulator.resources()[resource]["status"] == "active"


def test_sizes_are_as_they_were(cycled: Deployed) -> None:
    resources = cycled.simulator.resources()
    database = resources["do-main/database/9cc10173-e9ea-4176-9dbc-a4cee4c4ff30"]
    assert (database["plan"], database["nodes"]) == ("db-s-4vcpu-8gb", 1)
    pool = next(one for reference, one in resources.items() if "/node-pool/" in reference)
    assert pool["count"] == 3


def test_the_tables_have_all_of_it(cycled: Deployed) -> None:
    records = cycled.stack.items("resources")
    kept = {f"{one['account']['S']}/{one['resource']['S']}": one for one in records}
    assert kept.keys() - {MACHINE} == FOLLOWED | UNTOUCHED | {STUBBORN_DATABASE}
    assert all("saved" not in kept[reference] for reference in FOLLOWED)
    history = cycled.stack.items("history")
    assert all("expires_at" in one for one in history)
    # The other items of the table are the activity log.
    transitions = [one for one in history if one["reference"]["S"] != "activity"]
    ended = {(one["reference"]["S"], one["direction"]["S"]) for one in transitions}
    assert ended >= {(reference, way) for reference in FOLLOWED for way in ("stop", "start")}


def test_every_transition_was_published_as_its_schema_says(cycled: Deployed) -> None:
    def published(detail_type: str) -> set[tuple[str, str]]:
        events = [one for one in cycled.bus.all() if one["detail-type"] == detail_type]
        return {(one["detail"]["resource"], one["detail"].get("direction")) for one in events}

    ends = {(reference, way) for reference in FOLLOWED for way in ("stop", "start")}
    expect(lambda: published("Transition Finished") >= ends, f"the ends {ends}")
    # A power cut has no direction.
    assert published("Transition Forced") == {("hz-eu/server/43", None)}
    assert (STUBBORN_DATABASE, "stop") in published("Transition Refused")
    for event in cycled.bus.all():
        name = event["detail-type"].lower().replace(" ", "-")
        schema = json.loads((EVENTS / f"{name}.schema.json").read_text())
        jsonschema.validate(event["detail"], schema)
        assert event["source"] == "offhours"
        assert event["detail"]["stack"] == "offhours"


def test_one_digest_came_for_each_edge_by_bus_and_by_mail(cycled: Deployed) -> None:
    def digests() -> list[dict]:
        completed = [one for one in cycled.bus.all() if one["detail-type"] == "Edge Completed"]
        return [one["detail"] for one in completed]

    desired_states = {"stopped", "running"}
    expect(
        lambda: {one["desired"] for one in digests()} == desired_states,
        "the digests of both edges",
    )
    edges = [one["edge"] for one in digests()]
    assert len(edges) == len(set(edges)), edges
    machines = 0 if cycled.host is None else 1

    def whole() -> list[dict]:
        # The machine was listed right after the apply, perhaps an edge before all others.
        stopped = [one for one in digests() if one["desired"] == "stopped"]
        return [one for one in stopped if one["followed"] == 6 + machines]

    expect(lambda: whole() != [], "the digest of an edge that all followed")
    stopped = whole()[0]
    assert stopped["schedule"] == "minutes"
    assert (stopped["seen"], stopped["refused"]) == (5 + machines, 1)
    mails = [message["Message"] for message in cycled.mails.all()]
    for digest in digests():
        assert any(digest["text"] in mail for mail in mails), (digest["text"], mails)


def test_alerts_were_mailed_at_once_and_success_was_not(cycled: Deployed) -> None:
    mails = [message["Message"] for message in cycled.mails.all()]
    assert any("archive" in mail and "refused" in mail for mail in mails), mails
    assert not any(", seen after " in mail for mail in mails), mails


@pytest.mark.parametrize(
    ("function", "idle"),
    [("dispatch", "Nothing to hand out"), ("poll-status", "Nothing is in flight")],
)
def test_an_idle_tick_is_one_line(cycled: Deployed, function: str, idle: str) -> None:
    ticks: dict[str, list[str]] = {}
    for line in cycled.stack.lines(function, cycled.began):
        for span in line.fields.get("spans", []):
            ticks.setdefault(span["requestId"], []).append(line.message)
    quiet = [messages for messages in ticks.values() if idle in messages]
    assert quiet, ticks
    assert all(messages == [idle] for messages in quiet), quiet


def test_no_log_has_a_token(cycled: Deployed) -> None:
    for function in ("dispatch", "stop", "start", "poll-status"):
        for line in cycled.stack.lines(function):
            assert "simulated-" not in json.dumps(line.fields)
