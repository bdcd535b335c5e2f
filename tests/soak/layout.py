"""Configurations whose edges lie in the coming minutes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from .fleet import HIBERNATES, PROVIDERS
from .rules import RUNNING, STOPPED

BY_CRON = ("rota", "soft", "frugal")
"""The schedules that are written with cron expressions; the others have periods."""
POLICIES = {
    "gentle": "force = false",
    "soft": "graceful = true",
    "steady": "enforce = true",
    "frugal": 'methods = { droplet = "resize", server = "rescale" }\n'
    'resize_to = "s-1vcpu-1gb"\n'
    'rescale_to = "cpx12"',
    HIBERNATES: 'methods = { droplet = "hibernate", server = "hibernate" }\n'
    'graceful = true\naccept = ["new-ip"]\notherwise = "power-off"',
}
HALF_AN_HOUR = 30 * 60.0


@dataclass(frozen=True)
class Edge:
    """A change of a schedule's desired state."""

    at: float
    """A whole minute, in seconds since 1970."""
    desired: str


@dataclass(frozen=True)
class Layout:
    """One configuration: the edges of each schedule, the first no earlier than it takes effect."""

    edges: Mapping[str, Sequence[Edge]]
    observed: frozenset[str] = frozenset()
    """The schedules that are only observed."""
    max_stops: int = 100
    accounts: Sequence[str] = field(default_factory=lambda: list(PROVIDERS))

    def toml(self) -> str:
        """Returns the configuration, as an operator would write it."""
        accounts = "".join(
            f'[accounts.{name}]\nprovider = "{PROVIDERS[name]}"\n'
            f'token = "ssm:/offhours/{name}"\nssh_key = "team"\n\n'
            for name in self.accounts
        )
        schedules = "\n".join(self._schedule(name, edges) for name, edges in self.edges.items())
        protect = 'protect = ["name:*prod*"]'
        return f'timezone = "UTC"\n{protect}\nmax_stops = {self.max_stops}\n\n{accounts}{schedules}'

    def _schedule(self, name: str, edges: Sequence[Edge]) -> str:
        times = _cron(edges) if name in BY_CRON else _periods(edges)
        policy = POLICIES.get(name, "")
        mode = 'mode = "observe"' if name in self.observed else ""
        lines = [f"[schedules.{name}]", *times, policy, mode]
        return "\n".join(line for line in lines if line) + "\n"


def opposite(desired: str) -> str:
    """Returns the other desired state."""
    return STOPPED if desired == RUNNING else RUNNING


def _cron(edges: Sequence[Edge]) -> list[str]:
    """Writes several edges as their minutes in every hour, a single one as its exact instant."""
    if len(edges) == 1:
        (last,) = edges
        before = Edge(last.at - HALF_AN_HOUR, opposite(last.desired))
        return [f'{_word(one)} = "{_field(one.at)}"' for one in (before, last)]
    minutes: dict[str, list[str]] = {"start": [], "stop": []}
    for edge in edges:
        minutes[_word(edge)].append(str(_utc(edge.at).minute))
    return [f'{word} = "{",".join(found)} * * * *"' for word, found in minutes.items()]


def _word(edge: Edge) -> str:
    return "start" if edge.desired == RUNNING else "stop"


def _field(at: float) -> str:
    then = _utc(at)
    return f"{then.minute} {then.hour} {then.day} {then.month} *"


def _periods(edges: Sequence[Edge]) -> list[str]:
    """Writes the times between each start and the stop after it."""
    begin = edges[0].at - HALF_AN_HOUR if edges[0].desired == STOPPED else None
    windows = []
    for edge in edges:
        if edge.desired == RUNNING:
            begin = edge.at
        elif begin is not None:
            windows.append((begin, edge.at))
            begin = None
    if begin is not None:
        windows.append((begin, begin + 24 * HALF_AN_HOUR))
    clock = [tuple(_utc(at).strftime("%H:%M") for at in window) for window in windows]
    written = ", ".join(f'{{ begin = "{begin}", end = "{end}" }}' for begin, end in clock)
    return [f"periods = [{written}]"]


def _utc(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
