"""The kinds of resource: how the clouds show them, and what must be restored after a stop.

A stop method that takes something else adds a size of its own, with `covers`, and a class here.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from .evidence import Entry, Look
from .originals import SNAPSHOTS, original, original_of, shown_in

STOP, START = "stop", "start"


class Size(Protocol):
    """What must be restored after a stop."""

    def covers(self, other: Any) -> bool:
        """Reports whether it is at least as large as another in every respect."""

    def restores(self, saved: Any) -> bool:
        """Reports whether a start that is to restore `saved` may end with this."""

    def survives(self, target: Any) -> bool:
        """Reports whether a change to `target` loses nothing of it."""


@dataclass(frozen=True)
class DatabaseSize:
    """A database cluster's plan, nodes and storage."""

    plan: str
    nodes: int
    storage_mib: int | None = None

    def capacity(self) -> tuple[int, int, int]:
        """Returns the memory in GiB, the vCPUs and the nodes."""
        memory, vcpus = (
            int(found[1]) if (found := re.search(rf"-(\d+){unit}\b", self.plan)) else 0
            for unit in ("gb", "vcpu")
        )
        return memory, vcpus, self.nodes

    def covers(self, other: DatabaseSize) -> bool:
        """Storage counts only if both are known: a plan comes with its own."""
        whole = zip(self.capacity(), other.capacity(), strict=True)
        return all(mine >= its for mine, its in whole) and self._stores(other)

    def restores(self, saved: DatabaseSize) -> bool:
        """At least as large, or a person's choice: larger in one respect and smaller in another."""
        mine, its = self.capacity(), saved.capacity()
        larger = any(one > other for one, other in zip(mine, its, strict=True))
        smaller = any(one < other for one, other in zip(mine, its, strict=True))
        return larger or not smaller

    def survives(self, target: DatabaseSize) -> bool:
        """Storage is ignored: a request may omit it, and none makes it smaller on the same plan."""
        return target.covers(DatabaseSize(self.plan, self.nodes))

    def _stores(self, other: DatabaseSize) -> bool:
        return None in (self.storage_mib, other.storage_mib) or (
            self.storage_mib >= other.storage_mib
        )

    def __str__(self) -> str:
        storage = "" if self.storage_mib is None else f" with {self.storage_mib} MiB"
        return f"{self.nodes} x {self.plan}{storage}"


@dataclass(frozen=True)
class PoolSize:
    """A node pool's count and its autoscaler's bounds."""

    count: int
    bounds: tuple[int, int] | None = None

    def covers(self, other: PoolSize) -> bool:
        """An autoscaler that is off does not cover one that is on."""
        return self.count >= other.count and (self.bounds is not None or other.bounds is None)

    def restores(self, saved: PoolSize) -> bool:
        """At least as many nodes or, within an autoscaler's bounds, any number but zero: a person
        may have set these bounds meanwhile.
        """
        within = self.bounds is not None and self.bounds[0] <= self.count <= self.bounds[1]
        return self.count > 0 and (self.covers(saved) or within)

    def survives(self, target: PoolSize) -> bool:
        """A start may scale up and switch the autoscaler on."""
        return target.covers(self)

    def __str__(self) -> str:
        bounds = "" if self.bounds is None else f", autoscaled {self.bounds[0]}-{self.bounds[1]}"
        return f"{self.count} node{'' if self.count == 1 else 's'}{bounds}"


MACHINE_PLANS = {
    "s-1vcpu-1gb": (1, 1),
    "s-1vcpu-2gb": (1, 2),
    "c-4": (4, 8),
    "cpx12": (1, 2),
    "cx22": (2, 4),
    "cpx22": (2, 4),
    "cpx32": (4, 8),
}
"""The vCPUs and the memory in GiB of the machines' plans."""


@dataclass(frozen=True)
class MachineSize:
    """A Droplet's size, or a server's type."""

    plan: str

    def covers(self, other: MachineSize) -> bool:
        """At least as many vCPUs and as much memory."""
        whole = zip(MACHINE_PLANS[self.plan], MACHINE_PLANS[other.plan], strict=True)
        return all(mine >= its for mine, its in whole)

    def restores(self, saved: MachineSize) -> bool:
        """A person may have chosen a larger plan."""
        return self.covers(saved)

    def survives(self, target: MachineSize) -> bool:
        """Only its plan changes."""
        return target.covers(self)

    def __str__(self) -> str:
        return self.plan


class Kind(ABC):
    """One kind of resource."""

    word: str
    """The kind's word in references."""

    @abstractmethod
    def verb(self, entry: Entry) -> str:
        """Returns the change that a request asks for: two with the same verb do the same."""

    @abstractmethod
    def direction(self, entry: Entry, saved: dict[str, Any] | None) -> str | None:
        """Returns whether a request stops or starts, given what the record had saved then; None
        where that does not decide it.
        """

    @abstractmethod
    def leads_to(self, entry: Entry) -> Size | None:
        """Returns the size that a change leads to; None if it changes no size."""

    @abstractmethod
    def saved(self, saved: dict[str, Any] | None) -> Size | None:
        """Returns the size that a record keeps to be restored."""

    @abstractmethod
    def state(self, state: dict[str, Any]) -> Look:
        """Converts a cloud's own state of a resource at the end of a run to a `Look`."""

    @abstractmethod
    def is_running(self, look: Look) -> bool:
        """Reports whether it is where a start leads, apart from its size."""

    @abstractmethod
    def is_stopped(self, look: Look, saved: Size | None) -> bool:
        """Reports whether it is where a stop leads, given what was saved before it."""


class Machine(Kind):
    """A Droplet or a server, which a stop switches off and may move to a smaller plan."""

    def __init__(self, word: str, on: str, verbs: dict[str, str], moves: tuple[str, str]) -> None:
        self.word = word
        self._on = on
        self._verbs = verbs
        """The direction of each verb."""
        self._moves, self._plan = moves
        """The verb that moves it to another plan, and the request's field that names the plan."""

    def verb(self, entry: Entry) -> str:
        # A Droplet's action is in the body, a server's in the path.
        if "/actions" not in entry.path:
            return f"{entry.method} {entry.path.split('/')[2]}"
        return entry.body["type"] if self.word == "droplet" else entry.path.rsplit("/", 1)[1]

    def direction(self, entry: Entry, saved: dict[str, Any] | None) -> str | None:
        # On its way to another plan and back, it is switched off and on.
        verb = self.verb(entry)
        if saved or verb == self._moves or verb in REMOVALS:
            return None
        return self._verbs[verb]

    def leads_to(self, entry: Entry) -> MachineSize | None:
        is_move = self.verb(entry) == self._moves
        return MachineSize(entry.body[self._plan]) if is_move else None

    def saved(self, saved: dict[str, Any] | None) -> MachineSize | None:
        return MachineSize(saved["plan"]) if saved else None

    def state(self, state: dict[str, Any]) -> Look:
        return machine_look(0.0, state)

    def is_running(self, look: Look) -> bool:
        return look.status == self._on

    def is_stopped(self, look: Look, saved: Size | None) -> bool:
        return look.status == "off"


class Database(Kind):
    """A database, which a stop makes smaller."""

    word = "database"

    def verb(self, entry: Entry) -> str:
        return "resize"

    def direction(self, entry: Entry, saved: dict[str, Any] | None) -> None:
        return None

    def leads_to(self, entry: Entry) -> DatabaseSize:
        body = entry.body
        return DatabaseSize(body["size"], body["num_nodes"], body.get("storage_size_mib"))

    def saved(self, saved: dict[str, Any] | None) -> DatabaseSize | None:
        if saved is None:
            return None
        return DatabaseSize(saved["plan"], saved["nodes"], saved.get("storage_mib"))

    def state(self, state: dict[str, Any]) -> Look:
        shown = state | {"size": state["plan"], "num_nodes": state["nodes"]}
        return database_look(0.0, shown | {"storage_size_mib": state["storage_mib"]})

    def is_running(self, look: Look) -> bool:
        return True

    def is_stopped(self, look: Look, saved: Size | None) -> bool:
        return saved is not None and not saved.survives(look.size)


class NodePool(Kind):
    """A node pool, which a stop leaves without nodes."""

    word = "node-pool"

    def verb(self, entry: Entry) -> str:
        return f"scale to {entry.body['count']}"

    def direction(self, entry: Entry, saved: dict[str, Any] | None) -> str:
        return STOP if entry.body["count"] == 0 else START

    def leads_to(self, entry: Entry) -> PoolSize:
        return pool_size(entry.body)

    def saved(self, saved: dict[str, Any] | None) -> PoolSize | None:
        if saved is None:
            return None
        bounds = saved.get("autoscale")
        return PoolSize(saved["count"], (bounds["min"], bounds["max"]) if bounds else None)

    def state(self, state: dict[str, Any]) -> Look:
        bounds = state["autoscale"] or {"min": 0, "max": 0}
        shown = state | {
            "auto_scale": state["autoscale"] is not None,
            "min_nodes": bounds["min"],
            "max_nodes": bounds["max"],
        }
        return pool_look(0.0, shown, state["cluster"])

    def is_running(self, look: Look) -> bool:
        return look.size.count > 0

    def is_stopped(self, look: Look, saved: Size | None) -> bool:
        return look.size.count == 0


def machine_look(at: float, shown: dict[str, Any]) -> Look:
    """Reads a Droplet or a server as its cloud shows it."""
    labels = shown.get("labels") or {}
    tags = [*(shown.get("tags") or []), *(f"{key}={value}" for key, value in labels.items())]
    worker = any(tag.startswith("k8s") for tag in tags)
    # A Droplet's plan as its cloud shows it, or as the simulator itself does; likewise a server's.
    plan = shown.get("size_slug") or shown.get("size") or shown["server_type"]
    size = MachineSize(plan["name"] if isinstance(plan, dict) else plan)
    return Look(at, shown["name"], frozenset(tags), shown["status"], size, supported=not worker)


def database_look(at: float, shown: dict[str, Any]) -> Look:
    """Reads a database as its cloud shows it."""
    size = DatabaseSize(shown["size"], shown["num_nodes"], shown.get("storage_size_mib"))
    tags = frozenset(shown.get("tags") or [])
    supported = shown["engine"] not in ("kafka", "opensearch")
    return Look(at, shown["name"], tags, shown["status"], size, supported=supported)


def pool_look(at: float, shown: dict[str, Any], cluster: dict[str, Any]) -> Look:
    """Reads a node pool as its cloud shows it."""
    tags = frozenset(tag for tag in shown["tags"] or [] if not tag.startswith("k8s"))
    around = frozenset(cluster.get("tags") or [])
    status = "running" if pool_size(shown).count else "off"
    name = shown["name"]
    return Look(at, name, tags, status, pool_size(shown), (cluster["name"], around))


def pool_size(shown: dict[str, Any]) -> PoolSize:
    """Returns the size that a pool has, or that an update asks for."""
    scales = shown.get("auto_scale")
    bounds = (shown["min_nodes"], shown["max_nodes"]) if scales else None
    return PoolSize(shown["count"], bounds)


KINDS: dict[str, Kind] = {
    kind.word: kind
    for kind in (
        Machine(
            "droplet",
            "active",
            {"power_off": STOP, "shutdown": STOP, "power_on": START}
            | {"snapshot": STOP, "DELETE droplets": STOP, "POST droplets": START},
            ("resize", "size"),
        ),
        Machine(
            "server",
            "running",
            {"poweroff": STOP, "shutdown": STOP, "poweron": START}
            | {"create_image": STOP, "change_protection": STOP}
            | {"DELETE servers": STOP, "POST servers": START},
            ("change_type", "server_type"),
        ),
        Database(),
        NodePool(),
    )
}
CUTS = ("power_off", "poweroff")
"""The verbs that cut a machine's power at once."""
REMOVALS = ("DELETE snapshots", "DELETE images")
"""The verbs that remove an old snapshot."""
DELETIONS, CREATIONS = (
    {f"{method} {word}s" for word in ("droplet", "server")} for method in ("DELETE", "POST")
)
"""The verbs that delete a machine, and those that recreate it."""


def kind_of(reference: str) -> Kind:
    """Returns the kind of resource that a reference names."""
    return KINDS[reference.split("/")[1]]


class Viewer:
    """Reads from the log what the clouds showed of each resource."""

    def __init__(self) -> None:
        self._latest: dict[str, Look] = {}
        """The latest look at each machine: its snapshots take its place."""
        self._clusters: dict[str, dict[str, Any]] = {}
        """The latest name and tags of each cluster, which a list of pools does not contain."""

    def looks(self, entries: Iterable[Entry]) -> Iterator[tuple[str, Look]]:
        """Yields what these requests showed, by resource."""
        for entry in entries:
            if entry.method == "GET" and entry.status == 200 and isinstance(entry.answer, dict):
                yield from self._in_answer(entry)

    def _in_answer(self, entry: Entry) -> Iterator[tuple[str, Look]]:
        for key, word, look in (
            ("droplet", "droplet", machine_look),
            ("database", "database", database_look),
            ("server", "server", machine_look),
        ):
            for resource in shown_in(entry.answer, [key]):
                reference = original(f"{entry.account}/{word}/{resource['id']}", resource)
                self._latest[reference] = look(entry.at, resource)
                yield reference, self._latest[reference]
        for snapshot in shown_in(entry.answer, SNAPSHOTS):
            machine = original_of(entry.account, snapshot)
            if machine in self._latest:
                yield machine, replace(self._latest[machine], at=entry.at, status="hibernated")
        yield from self._pools(entry)

    def _pools(self, entry: Entry) -> Iterator[tuple[str, Look]]:
        one = entry.answer.get("kubernetes_cluster")
        clusters = [one] if one else entry.answer.get("kubernetes_clusters") or []
        for cluster in clusters:
            self._clusters[cluster["id"]] = cluster
            yield from self._of_cluster(entry, cluster["id"], cluster["node_pools"] or [])
        listed = re.fullmatch(r".*/clusters/([^/]+)/node_pools", entry.path)
        if listed and listed[1] in self._clusters:
            yield from self._of_cluster(entry, listed[1], entry.answer["node_pools"] or [])

    def _of_cluster(
        self, entry: Entry, cluster: str, pools: Iterable[dict[str, Any]]
    ) -> Iterator[tuple[str, Look]]:
        for pool in pools:
            reference = f"{entry.account}/node-pool/{cluster}/{pool['id']}"
            yield reference, pool_look(entry.at, pool, self._clusters[cluster])
