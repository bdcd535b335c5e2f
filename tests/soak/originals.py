"""Which machine a recreated machine, or a snapshot, was made from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from .evidence import Entry, Sight

MACHINES, SNAPSHOTS = ("droplet", "server"), ("snapshot", "image")


def original_of(account: str, shown: dict[str, Any]) -> str | None:
    """Returns the reference that the labels, tags or name of a machine or a snapshot contain."""
    texts = [*(shown.get("tags") or []), shown.get("name") or ""]
    texts += [f"{key}={value}" for key, value in (shown.get("labels") or {}).items()]
    named = (re.match(r"offhours(?:-of[:=]|\.)(droplet|server)[-.](\d+)", one) for one in texts)
    return next((f"{account}/{one[1]}/{one[2]}" for one in named if one), None)


def shown_in(answer: Any, words: Iterable[str]) -> list[dict[str, Any]]:
    """Returns everything of these kinds in an answer, whether it has one or a list."""
    if not isinstance(answer, dict):
        return []
    return [
        shown
        for word in words
        for shown in ([answer[word]] if answer.get(word) else answer.get(f"{word}s") or [])
    ]


class Originals:
    """Learns from the log the ids of recreated machines and of snapshots."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}
        """The original by account and id."""

    def named(self, entry: Entry) -> Entry:
        """Returns a request with the original as its resource."""
        for shown in shown_in(entry.answer, (*MACHINES, *SNAPSHOTS)):
            if original := original_of(entry.account, shown):
                self._known[entry.account, str(shown["id"])] = original
        if numbered := re.match(r"/v\d/\w+/(\d+)", entry.path):
            original = self._known.get((entry.account, numbered[1]))
        else:
            is_order = entry.asks_for_a_change and isinstance(entry.body, dict)
            original = original_of(entry.account, entry.body) if is_order else None
        return replace(entry, resource=original) if original else entry


def sights(
    at: float, references: Iterable[str], resources: dict[str, Any], images: list[dict[str, Any]]
) -> list[Sight]:
    """Returns what exists of each of these machines in the clouds' own state."""
    machines = [original(reference, state) for reference, state in resources.items()]
    whole = (image for image in images if image.get("status") in (None, "available"))
    snapshots = [original_of(image["account"], image) for image in whole]
    return [Sight(at, one, machines.count(one), snapshots.count(one)) for one in references]


def original(reference: str, state: dict[str, Any]) -> str:
    """Returns the original of a resource; its own reference unless it was recreated."""
    is_machine = reference.split("/")[1] in MACHINES
    return (is_machine and original_of(reference.split("/")[0], state)) or reference
