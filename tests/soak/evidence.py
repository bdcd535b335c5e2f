"""The evidence of a run: the simulator's log, every version of every item, and nothing else."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

PERMIT = 120.0
"""Seconds for which a permit is valid, from the write that grants it."""
OBSERVATION_AGE = 30.0
"""The greatest age in seconds of an observation that supports a permit."""

TABLES = ("schedules", "accounts", "resources", "history")


def instant(text: str) -> float:
    """Parses an instant into seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()


@dataclass(frozen=True)
class Entry:
    """One request to a cloud, as the simulator logged it."""

    sequence: int
    at: float
    resource: str | None
    """The resource that the path names."""
    account: str | None
    method: str
    path: str
    body: Any
    status: int | None
    """None if the connection was closed instead of an answer."""
    answer: Any
    """The answer's JSON; None if it has none, or was cut off."""
    changed: bool
    """Whether the cloud accepted a change."""
    faulty: bool
    """Whether a fault applied."""

    @classmethod
    def of(cls, logged: dict[str, Any]) -> Entry:
        """Parses an entry in the simulator's form."""
        request, answer = logged["request"], logged["answer"] or {}
        return cls(
            sequence=logged["sequence"],
            at=instant(logged["at"]),
            resource=logged["resource"],
            account=logged["account"],
            method=request["method"],
            path=request["path"],
            body=_json(request["body"]),
            status=answer.get("status"),
            answer=_json(answer.get("body", "")),
            changed=logged["changed"],
            faulty=logged["faulty"],
        )

    @property
    def asks_for_a_change(self) -> bool:
        """Whether it is a request that needs a permit."""
        return self.method not in ("GET", "HEAD")

    def __str__(self) -> str:
        return f"{self.method} {self.path} (entry {self.sequence})"


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


@dataclass(frozen=True)
class Version:
    """One version of an item, from its table's stream."""

    at: float
    """When it was written."""
    key: tuple[str, str]
    item: dict[str, Any] | None
    """None if it was deleted."""

    @property
    def reference(self) -> str:
        """For a record, the resource."""
        return "/".join(self.key)

    def get(self, *path: str) -> Any:
        """Returns a value within the item; None if there is none."""
        value: Any = self.item
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    @property
    def permitted_at(self) -> float | None:
        """When the permit that it carries was granted."""
        until = self.get("permit", "until")
        return None if until is None else instant(until) - PERMIT

    @property
    def direction(self) -> str | None:
        """The direction of the transition in flight: stop or start."""
        return self.get("phase", "transition", "direction")


@dataclass(frozen=True)
class Permit:
    """The version of a record under which a request was sent."""

    version: Version
    at: float
    writer: str


@dataclass(frozen=True)
class Look:
    """An observation: what one response of a cloud showed of one resource."""

    at: float
    name: str
    tags: frozenset[str]
    status: str
    size: Any = None
    """What a stop may take from it; None if nothing."""
    cluster: tuple[str, frozenset[str]] = ("", frozenset())
    """The name and tags of the cluster around it."""
    supported: bool = True


@dataclass(frozen=True)
class Sight:
    """What existed of a machine that is hibernated, in the clouds' own state."""

    at: float
    reference: str
    machines: int
    snapshots: int
    """Only complete ones count."""


@dataclass(frozen=True)
class Evidence:
    """All that is known up to an instant."""

    until: float
    """The log and the tables were read completely at this instant or later."""
    entries: list[Entry]
    """Oldest first."""
    versions: dict[str, list[Version]]
    """By table, oldest first."""
    looks: dict[str, list[Look]] = field(default_factory=dict)
    """By resource, oldest first."""
    resources: dict[str, Any] = field(default_factory=dict)
    """The clouds' own state at the end."""
    sights: list[Sight] = field(default_factory=list)
    """Of every machine that is hibernated, oldest first."""
    acts: list[tuple[float, str]] = field(default_factory=list)
    """When a person did something with which resource in a console."""
    secrets: tuple[str, ...] = ()
    """Texts that no item may contain."""

    def changes(self) -> Iterator[Entry]:
        """Returns the requests for changes up to the instant, including refused ones."""
        return (one for one in self.entries if one.asks_for_a_change and one.at <= self.until)

    def accepted(self) -> Iterator[Entry]:
        """Returns the changes that a cloud accepted, whether or not its response arrived."""
        return (one for one in self.changes() if one.changed)

    @cached_property
    def records(self) -> dict[str, list[Version]]:
        """The versions of each resource's record."""
        return _grouped(self._written("resources"))

    @cached_property
    def history(self) -> dict[str, list[dict[str, Any]]]:
        """The history items of each resource, in the order of their claims."""
        found: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for version in self._written("history"):
            # The other items of the table are the activity log.
            if version.item and version.item["reference"] != "activity":
                found[version.item["reference"]].append(version.item)
        for items in found.values():
            items.sort(key=lambda item: (instant(item["claimed_at"]), instant(item["finished_at"])))
        return dict(found)

    def _written(self, table: str) -> Iterable[Version]:
        return (one for one in self.versions.get(table, []) if one.at <= self.until)

    def record_at(self, reference: str, at: float) -> Version | None:
        """Returns the record of a resource as it was at an instant."""
        versions = self.records.get(reference, [])
        place = bisect_right(versions, at, key=lambda version: version.at)
        return versions[place - 1] if place else None

    def permit_of(self, entry: Entry) -> Permit | None:
        """Returns the latest permit before a request, if it was valid when the request arrived.

        Later writes by the permit's writer carry it as well; the request was decided on the first
        version that has it.
        """
        found = None
        for version in self.records.get(entry.resource or "", []):
            if version.at > entry.at:
                break
            at = version.permitted_at
            if at is None or not at <= entry.at <= at + PERMIT:
                continue
            writer = version.get("permit", "writer")
            if found is None or (found.at, found.writer) != (at, writer):
                found = Permit(version, at, writer)
        return found

    def looks_behind(self, reference: str, permit: Permit) -> list[Look]:
        """Returns what the clouds showed of a resource recently enough to support a permit."""
        looks = self.looks.get(reference, [])
        return [one for one in looks if permit.at - OBSERVATION_AGE <= one.at <= permit.at]

    def acted_on(self, reference: str, since: float, until: float) -> bool:
        """Reports whether a person did something with a resource between two instants."""
        return any(of == reference and since <= at <= until for at, of in self.acts)


def _grouped(versions: Iterable[Version]) -> dict[str, list[Version]]:
    found: dict[str, list[Version]] = defaultdict(list)
    for version in versions:
        found[version.reference].append(version)
    return dict(found)
