"""How changes at the providers are traced back, given how logs are delivered."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rehearsal import verdict
from rehearsal.stack import Line
from samcli.yamlhelper import yaml_parse

TEMPLATE = Path(__file__).resolve().parents[2] / "infra" / "template.yaml"
SERVER = "hz-eu/server/42"
REQUEST = {"method": "POST", "path": "/v1/servers/42/actions/shutdown"}


class Logs:
    """A stack whose functions logged these lines."""

    def __init__(self, *lines: Line) -> None:
        self._lines = lines

    def lines(self, short: str, _since: float) -> list[Line]:
        return [line for line in self._lines if line.function == short]

    def rule_of(self, short: str) -> tuple[str, str]:
        return f"offhours-{short}", "cron(* * * * ? *)"

    def function(self, short: str) -> str:
        return f"offhours-{short}"


class Clouds:
    """A simulator that accepted one change."""

    def __init__(self, at: float) -> None:
        self._at = at

    def changes(self) -> list[dict[str, Any]]:
        at = datetime.fromtimestamp(self._at, UTC).isoformat()
        return [{"at": at, "resource": SERVER, "request": REQUEST}]


def asked(at: float) -> Line:
    """Returns the line of the function that sent the request."""
    words = f"ci-1: stop asked (schedule): {REQUEST['method']} {REQUEST['path']}"
    fields = {"message": words, "resource.id": SERVER, "resource.name": "ci-1"}
    return Line(at, "stop", fields)


def test_a_change_is_traced_to_the_function_and_the_rule() -> None:
    now = time.time()
    (change,) = verdict.changes(Logs(asked(now)), Clouds(now), 0)
    assert (change.function, change.rule) == ("offhours-stop", "offhours-dispatch")


def test_a_line_that_is_stamped_when_its_invocation_ends_is_found() -> None:
    now = time.time()
    (change,) = verdict.changes(Logs(asked(now)), Clouds(now - 119), 0)
    assert change.name == "ci-1"


@pytest.mark.parametrize("age", [0, 3, 119])
def test_a_change_whose_invocation_may_still_run_is_left_out(age: float) -> None:
    # A log is delivered when the invocation ends; the simulator knows the request before that.
    assert verdict.changes(Logs(), Clouds(time.time() - age), 0) == []


def test_an_older_change_that_no_function_logged_is_an_error() -> None:
    at = time.time() - verdict.LOGGED_WITHIN - 1
    with pytest.raises(verdict.Untraced, match=REQUEST["path"]):
        verdict.changes(Logs(), Clouds(at), 0)


def test_the_longest_invocation_has_time_to_end_and_be_logged() -> None:
    resources = yaml_parse(TEMPLATE.read_text())["Resources"].values()
    timeouts = [one["Properties"].get("Timeout", 0) for one in resources]
    assert max(timeouts) < verdict.LOGGED_WITHIN
