"""What happens in a run, planned before it begins: the same seed gives the same plan."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from . import fleet
from .fleet import HIBERNATES, HIBERNATING, MEMBERS, SCHEDULES, Member
from .layout import BY_CRON, Edge, Layout, opposite
from .rules import RUNNING, STOPPED

MINUTE = 60.0
SEGMENT = 20
"""Minutes between two configurations."""
HALF_PERIOD = (3, 7)
"""Minutes between two edges of a schedule, at least and at most."""
PAUSE = (8, 32)
"""Seconds between two acts, at least and at most."""
REHEARSED_AT = 90.0
"""When the rehearsals begin, in seconds: once the machines have records."""
SLEEPS_AFTER, WAKES_AFTER = 17 * MINUTE, 15 * MINUTE
"""Seconds into a segment. Before the first stop, a machine must have run for ten minutes since its
rehearsal; a start begins ten minutes early.
"""
LONGEST_LATE = 55
"""The longest that a lost request may be in flight, in seconds: a permit allows for twice that."""
GROWN_PLAN, GROWN_MIB = "db-s-2vcpu-4gb", 184_320
"""A plan and the storage that a person gives a database on it: more than comes with the plan."""
NAMES = {member.reference: member.name for member in (*MEMBERS, *HIBERNATING)}
ON_MACHINES = {
    "power_on": "powers on",
    "power_off": "powers off",
    "shutdown": "shuts down",
    "reboot": "reboots",
}
"""What a person does with a Droplet or a server, in words."""


@dataclass(frozen=True)
class Fault:
    """A cloud misbehaves for a while."""

    match: dict[str, Any]
    does: Any
    times: int
    lasting: float


@dataclass(frozen=True)
class Hold:
    """Requests are held on their way, then released or lost."""

    hold: dict[str, Any]
    lasting: float
    discard: bool


@dataclass(frozen=True)
class Person:
    """A person does something in a cloud's console."""

    resource: str
    act: Any


@dataclass(frozen=True)
class Create:
    """A person creates something in a cloud's console."""

    toml: str


@dataclass(frozen=True)
class Command:
    """An operator runs `offhours`."""

    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Rehearse:
    """An operator rehearses a machine's hibernation, and waits for it."""

    resource: str


@dataclass(frozen=True)
class Apply:
    """An operator applies a configuration."""

    layout: Layout


@dataclass(frozen=True)
class Calm:
    """From here on there are no faults and no people."""


Deed = Fault | Hold | Person | Create | Command | Rehearse | Apply | Calm


@dataclass(frozen=True)
class Act:
    """Something that happens at an instant of the run."""

    at: float
    """Seconds from the beginning of the run."""
    who: str
    words: str
    deed: Deed


def calm_minutes(minutes: int) -> int:
    """Returns the minutes of calm at the end: a quarter of the run, at least 6 and at most 15.

    A server that is shut down, rescaled and shut down again, at an edge just missed by the timers,
    needs six.
    """
    return min(15, max(6, minutes // 4))


class Planner:
    """Plans the acts of a run that begins at a whole minute."""

    def __init__(self, seed: int, minutes: int, begin: float) -> None:
        self._random = random.Random(seed)
        self._begin = begin
        self._calm = (minutes - calm_minutes(minutes)) * MINUTE
        self._guests = 0

    def plan(self) -> list[Act]:
        """Returns all acts, in order."""
        acts = [*self._layouts(), *self._rehearsals(), *self._acts()]
        acts += [*self._lost_tokens(), self._quiet()]
        return sorted(acts, key=lambda act: act.at)

    def _quiet(self) -> Act:
        return Act(self._calm - 1, "calm", "no faults and no people from here on", Calm())

    # --- Configurations ------------------------------------------------------------------------

    def _layouts(self) -> Iterator[Act]:
        starts = [0.0]
        while self._calm - starts[-1] >= 1.5 * SEGMENT * MINUTE:
            starts.append(starts[-1] + SEGMENT * MINUTE)
        for number, (start, end) in enumerate(zip(starts, [*starts[1:], self._calm], strict=True)):
            edges = {name: self._edges(start, end) for name in SCHEDULES}
            edges[HIBERNATES] = [self._hibernating_edge(number, start)]
            observed = frozenset(self._random.sample(["soft", "gentle"], 1) if number % 2 else [])
            stops = self._random.randint(20, 100)
            yield self._apply(start, Layout(edges, observed, stops))
        last = {name: [self._last_edge(name)] for name in (*SCHEDULES, HIBERNATES)}
        yield self._apply(self._calm, Layout(last))

    def _apply(self, at: float, layout: Layout) -> Act:
        edges = sum(len(edges) for edges in layout.edges.values())
        observed = "".join(f", {name} only observed" for name in sorted(layout.observed))
        return Act(
            at, "operator", f"applies a configuration: {edges} edges{observed}", Apply(layout)
        )

    def _edges(self, start: float, end: float) -> list[Edge]:
        """Returns an even number of edges: repeated every hour, the last one then sets the state
        that is desired before the first."""
        at, desired, edges = start + self._minutes(2, 4), STOPPED, []
        while at < end or len(edges) % 2:
            edges.append(Edge(self._begin + at, desired))
            at, desired = at + self._minutes(*HALF_PERIOD), opposite(desired)
        return edges

    def _hibernating_edge(self, number: int, start: float) -> Edge:
        """Returns the only edge of a segment: a machine is not deleted within an hour of its next
        start, so the next configuration brings that forward."""
        if number % 2:
            return Edge(self._begin + start + WAKES_AFTER, RUNNING)
        return Edge(self._begin + start + SLEEPS_AFTER, STOPPED)

    def _rehearsals(self) -> Iterator[Act]:
        for member in HIBERNATING:
            yield Act(
                REHEARSED_AT, "operator", f"rehearses {member.name}", Rehearse(member.reference)
            )

    def _last_edge(self, name: str) -> Edge:
        """Returns a schedule's edge in the calm: some end stopped, some running."""
        either = name in (*BY_CRON, HIBERNATES)
        desired = self._random.choice((RUNNING, STOPPED)) if either else RUNNING
        desired = STOPPED if name == "steady" else desired
        return Edge(self._begin + self._calm + self._minutes(1, 2), desired)

    def _minutes(self, least: int, most: int) -> float:
        return self._random.randint(least, most) * MINUTE

    # --- Faults and people ---------------------------------------------------------------------

    def _acts(self) -> Iterator[Act]:
        at = 50.0
        while at < self._calm - MINUTE:
            share = self._random.random()
            if share < 0.5:
                yield self._fault(at)
            elif share < 0.58:
                yield self._hold(at)
            elif share < 0.82:
                yield from self._person(at)
            else:
                yield from self._command(at)
            at += self._random.uniform(*PAUSE)

    def _fault(self, at: float) -> Act:
        words, does = self._random.choice(self._misbehaviors())
        match, where = self._matching()
        times = self._random.randint(1, 5)
        lasting = min(self._random.uniform(60, 200), self._calm - at)
        often = "once" if times == 1 else f"{times} times"
        return Act(at, "fault", f"{where}: {words}, {often}", Fault(match, does, times, lasting))

    def _misbehaviors(self) -> list[tuple[str, Any]]:
        late, slow = self._random.randint(15, LONGEST_LATE), self._random.randint(20, 150)
        delay, wait = self._random.randint(5, 25), self._random.randint(5, 90)
        asked = {"status": 429, "headers": {"retry-after": str(wait)}}
        return [
            ("429", {"answer": {"status": 429}}),
            (f"429 with retry-after {wait} s", {"answer": asked}),
            ("500", {"answer": {"status": 500}}),
            ("503 after the effect", {"answer": {"status": 503, "after_effect": True}}),
            ("409, busy", {"answer": {"status": 409}}),
            ("423, locked", {"answer": {"status": 423}}),
            ("422, refused", {"answer": {"status": 422}}),
            ("connection dropped before the effect", {"drop": {}}),
            ("connection dropped after the effect", {"drop": {"after_effect": True}}),
            ("answer cut off", "truncate"),
            (f"lost, and arrives {late} s later", {"late": {"by": f"{late}s"}}),
            (f"everything takes {slow} s longer", {"slow": {"by": f"{slow}s"}}),
            (f"answer {delay} s late", {"delay": {"by": f"{delay}s"}}),
        ]

    def _matching(self) -> tuple[dict[str, Any], str]:
        """Matches mostly changes: they are few, and they are what matters."""
        share = self._random.random()
        account = self._random.choice(list(fleet.TOKENS))
        if share < 0.25:
            return {"account": account}, f"{account}, any request"
        method = "POST" if account == "hz-eu" else self._random.choice(("POST", "PUT"))
        if share < 0.8:
            return {"account": account, "method": method}, f"{account}, {method}"
        member = self._random.choice(MEMBERS)
        return {"resource": member.reference}, f"{member.name}, any request"

    def _lost_tokens(self) -> Iterator[Act]:
        """Refuses each account's token for a few minutes, if the run is long enough."""
        for account in fleet.TOKENS:
            lasting = self._random.randint(60, 200)
            latest = self._calm - lasting - 3 * MINUTE
            if latest > 4 * MINUTE:
                at = self._random.uniform(3 * MINUTE, latest)
                fault = Fault({"account": account}, "unauthorized", 1_000_000, lasting)
                yield Act(at, "fault", f"{account}: token refused for {lasting} s", fault)

    def _hold(self, at: float) -> Act:
        match, where = self._matching()
        stage = self._random.choice(("arrival", "answer"))
        discard = self._random.random() < 0.4
        lasting = min(self._random.uniform(5, 40), self._calm - at)
        hold = {"match": match, "at": stage, "times": 2, "late": stage == "arrival"}
        end = "lost" if discard else "released"
        words = f"{where}: held at its {stage} for {lasting:.0f} s, then {end}"
        return Act(at, "hold", words, Hold(hold, lasting, discard))

    def _person(self, at: float) -> Iterator[Act]:
        share = self._random.random()
        member = self._random.choice(MEMBERS)
        if share < 0.08 and self._guests < 4:
            self._guests += 1
            guest = fleet.newcomer(self._guests, self._random.choice(SCHEDULES))
            yield Act(at, "person", f"creates {guest.name}", Create(guest.toml))
            gone = at + self._random.uniform(4, 15) * MINUTE
            if gone < self._calm - MINUTE:
                yield Act(
                    gone, "person", f"deletes {guest.name}", Person(guest.reference, "delete")
                )
        elif share < 0.2:
            yield from self._retag(at, member)
        elif share < 0.27:
            protected, back = (
                {"rename": {"name": name}} for name in (f"{member.name}-prod", member.name)
            )
            yield from self._temporarily(at, "renames as production's", member, protected, back)
        else:
            words, act, undone = self._by_kind(member)
            yield from self._temporarily(at, words, member, act, undone)

    def _temporarily(
        self, at: float, words: str, member: Member, act: Any, undone: Any
    ) -> Iterator[Act]:
        """Yields what a person does and, if `undone` is given, undoes later."""
        yield Act(at, "person", f"{words} {member.name}", Person(member.reference, act))
        if undone:
            back = min(at + self._random.uniform(30, 100), self._calm - 2)
            again = Person(member.reference, undone)
            yield Act(back, "person", f"ends that of {member.name}", again)

    def _retag(self, at: float, member: Member) -> Iterator[Act]:
        word = self._random.choice((*SCHEDULES, "off", "off"))
        separator = "=" if member.kind == "server" else ":"
        act = {"retag": {"tags": [f"offhours{separator}{word}"]}}
        yield Act(at, "person", f"tags {member.name} as {word}", Person(member.reference, act))

    def _by_kind(self, member: Member) -> tuple[str, Any, Any]:
        """Returns what a person does with one kind of resource, and what ends it."""
        if member.kind == "database":
            return self._random.choice(self._on_database(member))
        if member.kind == "node-pool":
            return self._random.choice(self._on_pool())
        act = self._random.choice(list(ON_MACHINES))
        return ON_MACHINES[act], act, None

    def _on_database(self, member: Member) -> list[tuple[str, Any, Any]]:
        plan = self._random.choice(("db-s-1vcpu-2gb", "db-s-4vcpu-8gb", "db-s-6vcpu-16gb"))
        nodes = 2 if member.name == "reports" else 1
        resize = {"resize": {"plan": plan, "nodes": nodes}}
        larger = {"resize": {"plan": GROWN_PLAN, "nodes": nodes, "storage_mib": GROWN_MIB}}
        migrating, online = ({"set_status": {"status": one}} for one in ("migrating", "online"))
        return [
            (f"resizes to {plan}", resize, None),
            (f"gives {GROWN_MIB // 1024} GiB on {GROWN_PLAN} to", larger, None),
            ("migrates", migrating, online),
        ]

    def _on_pool(self) -> list[tuple[str, Any, Any]]:
        count = self._random.randint(1, 4)
        scale, bounded = {"count": count}, {"count": count, "autoscale": [1, 5]}
        upgrade, running = ({"set_status": {"status": one}} for one in ("upgrading", "running"))
        return [
            (f"scales to {count}", {"scale": scale}, None),
            (f"scales to {count}, between 1 and 5,", {"scale": bounded}, None),
            ("upgrades", upgrade, running),
        ]

    def _command(self, at: float) -> Iterator[Act]:
        member = self._random.choice(MEMBERS)
        share = self._random.random()
        if share < 0.35:
            word = self._random.choice(("stop", "start"))
            yield self._offhours(at, word, member.reference, "--no-wait")
            return
        target = (member.reference,)
        if share > 0.75:
            target = ("--schedule", self._random.choice(SCHEDULES))
        desired = self._random.choice((RUNNING, STOPPED))
        lasting = self._random.randint(1, 5)
        if at + (lasting + 1) * MINUTE >= self._calm:
            return
        yield self._offhours(at, "override", desired, *target, "--for", f"{lasting}m", "--yes")
        if share > 0.6:
            cleared = at + self._random.uniform(0.2, 0.9) * lasting * MINUTE
            yield self._offhours(cleared, "override", "clear", *target)

    def _offhours(self, at: float, *arguments: str) -> Act:
        named = " ".join(NAMES.get(argument, argument) for argument in arguments)
        return Act(at, "operator", f"offhours {named}", Command(arguments))
