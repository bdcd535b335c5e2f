"""What happened to each resource, and which timer caused it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from .simulator import Simulator
from .stack import Line, Stack

LOGGED_WITHIN = 130.0
"""Seconds until the log has every request: the longest invocation plus delivery of its log.

A log is delivered when its invocation ends, so a more recent change may not be in any log yet.
"""


@dataclass(frozen=True)
class Change:
    """One request that changed something at a provider, and what caused it."""

    at: str
    resource: str
    name: str
    direction: str
    request: str
    rule: str
    function: str
    seen: str | None
    """When poll-status saw it completed, by the timestamp of its log line. None if not seen.

    An emulator stamps all lines of an invocation when it ends, so this may be that much late.
    """

    def in_a_line(self) -> str:
        """Formats the change as one line of the verdict."""
        end = f"seen {self.seen}" if self.seen else "not seen"
        chain = f"{self.rule} -> {self.function}"
        return f"{self.at}  {chain:38}  {self.name:8}  {end:14}  {self.request}"


def changes(stack: Stack, simulator: Simulator, since: float) -> list[Change]:
    """Returns the accepted changes, each traced from the simulator's log to the rule behind it.

    A change whose invocation may still be running is left out until the log has it.
    """
    ticks = {short: stack.rule_of(short)[0] for short in ("dispatch", "poll-status")}
    asked = [line for short in ("stop", "start") for line in stack.lines(short, since)]
    seen = stack.lines("poll-status", since)
    found = []
    for entry in simulator.changes():
        by = _who_asked(entry, asked)
        if by is None:
            if time.time() < _instant(entry["at"]) + LOGGED_WITHIN:
                continue
            raise Untraced(entry)
        forced = "power cut" in by.message
        found.append(
            Change(
                at=_clock(_instant(entry["at"])),
                resource=entry["resource"],
                name=str(by.fields.get("resource.name")),
                direction=by.function,
                request=_in_full(entry, by),
                # poll-status triggers a power cut; dispatch triggers every first request.
                rule=ticks["poll-status" if forced else "dispatch"],
                function=stack.function(by.function),
                seen=_when_seen(entry, by, seen),
            )
        )
    return found


class Untraced(Exception):
    """A change that no function's log accounts for."""

    def __init__(self, entry: dict[str, Any]) -> None:
        super().__init__(f"no function reports {_request(entry)} at {entry['at']}")


def completed_cycles(found: Iterable[Change]) -> set[str]:
    """Returns the resources that were stopped and started again, and seen in both states."""
    stopped: set[str] = set()
    completed: set[str] = set()
    for change in found:
        if change.seen is None:
            continue
        if change.direction == "stop":
            stopped.add(change.resource)
        elif change.resource in stopped:
            completed.add(change.resource)
    return completed


def _who_asked(entry: dict[str, Any], lines: list[Line]) -> Line | None:
    """Returns the line that reports this request: the first match that is not older."""
    at = _instant(entry["at"])
    about = [
        line
        for line in lines
        if line.fields.get("resource.id") == entry["resource"]
        and _request(entry) in line.message
        and line.at >= at - 1
    ]
    return min(about, key=lambda line: line.at, default=None)


def _when_seen(entry: dict[str, Any], by: Line, lines: list[Line]) -> str | None:
    words = ": stopped, seen" if by.function == "stop" else ": running, seen"
    about = [
        line.at
        for line in lines
        if line.fields.get("resource.id") == entry["resource"]
        and words in line.message
        and line.at >= _instant(entry["at"])
    ]
    return _clock(min(about)) if about else None


def _request(entry: dict[str, Any]) -> str:
    return f"{entry['request']['method']} {entry['request']['path']}"


def _in_full(entry: dict[str, Any], by: Line) -> str:
    """Returns the request with the contents of its body, as the function logged it."""
    request = by.message[by.message.index(_request(entry)) :]
    return request.split(", saved")[0].split(";")[0]


def _instant(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _clock(instant: float) -> str:
    return datetime.fromtimestamp(instant, UTC).strftime("%H:%M:%SZ")
