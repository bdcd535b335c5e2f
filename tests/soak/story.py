"""Small logs and tables, made up for the tests of the checks: a story reads from top to bottom."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from .evidence import PERMIT, TABLES, Entry, Evidence, Sight, Version
from .kinds import Viewer
from .originals import Originals

BEGIN = 1_800_000_000.0
SERVER = "hz-eu/server/41"
DROPLET = "do-main/droplet/7"
DATABASE = "do-main/database/d-1"
POOL = "do-main/node-pool/c-1/p-1"


def at(seconds: float) -> str:
    """Formats an instant of the story as in an item."""
    return datetime.fromtimestamp(BEGIN + seconds, UTC).isoformat().replace("+00:00", "Z")


@dataclass
class Story:
    """What happened so far."""

    entries: list[Entry] = field(default_factory=list)
    versions: dict[str, list[Version]] = field(default_factory=lambda: {one: [] for one in TABLES})
    resources: dict[str, Any] = field(default_factory=dict)
    sights: list[Sight] = field(default_factory=list)
    acts: list[tuple[float, str]] = field(default_factory=list)
    records: dict[str, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))

    def configured(self, **schedules: dict[str, Any]) -> Story:
        """Generation 1 is in force: two accounts, protection of production, these schedules."""
        head = {"generation": 1}
        self.written("schedules", ("head", "head"), head, -100)
        partition = f"generation#{1:012}"
        settings = {"body": {"settings": {"protect": ["name:*prod*"]}}}
        self.written("schedules", (partition, "settings"), settings, -100)
        for name, policy in schedules.items():
            rule = {"schedule": {"start": "0 0 * * *"}} | policy
            body = {"schedule": {"schedule": name, "rule": rule}}
            self.written("schedules", (partition, f"schedule#{name}"), {"body": body}, -100)
        for account in ("do-main", "hz-eu"):
            body = {"token": f"ssm:/offhours/{account}"}
            self.written("accounts", (partition, account), {"body": body}, -100)
        return self

    def written(self, table: str, key: tuple[str, str], item: Any, seconds: float) -> Story:
        """An item was written."""
        self.versions[table].append(Version(BEGIN + seconds, key, item))
        return self

    def recorded(self, reference: str, seconds: float, **changed: Any) -> Story:
        """A record was written with these fields changed; None removes a field."""
        record = self.records[reference]
        record |= {"revision": record.get("revision", 0) + 1} | changed
        item = {name: value for name, value in record.items() if value is not None}
        account, resource = reference.split("/", 1)
        return self.written("resources", (account, resource), json.loads(json.dumps(item)), seconds)

    def claimed(
        self, reference: str, direction: str, seconds: float, writer: str = "w-1", **more: Any
    ) -> Story:
        """A writer permitted itself one request."""
        transition = {"direction": direction, "claimed_at": at(seconds), "schedule": "rota"}
        return self.permitted(
            reference,
            seconds,
            writer,
            phase={"name": "in-flight", "transition": transition},
            handled={"generation": 1},
            **more,
        )

    def permitted(self, reference: str, seconds: float, writer: str, **more: Any) -> Story:
        """A writer permitted itself one more request of the transition in flight."""
        permit = {"until": at(seconds + PERMIT), "writer": writer}
        return self.recorded(reference, seconds, permit=permit, **more)

    def shown(self, reference: str, seconds: float, **fields: Any) -> Story:
        """A cloud showed a resource."""
        account, kind, identity = reference.split("/", 2)
        common = {"name": "web-1", "tags": ["offhours:rota"]}
        if kind == "server":
            shown = {"id": int(identity), "name": "web-1", "status": "running"}
            shown |= {"server_type": {"name": "cx22"}, "labels": {"offhours": "rota"}} | fields
            return self._logged(reference, seconds, "GET", f"/v1/servers/{identity}", {kind: shown})
        if kind == "droplet":
            shown = common | {"id": int(identity), "status": "active"}
            shown |= {"size_slug": "s-1vcpu-2gb"} | fields
            return self._logged(
                reference, seconds, "GET", f"/v2/droplets/{identity}", {kind: shown}
            )
        if kind == "database":
            shown = common | {"id": identity, "status": "online", "engine": "pg"} | fields
            path = f"/v2/databases/{identity}"
            return self._logged(reference, seconds, "GET", path, {kind: shown})
        cluster, pool = identity.split("/")
        shown = common | {"id": pool, "auto_scale": False} | fields
        around = {"id": cluster, "name": "staging", "tags": [], "node_pools": [shown]}
        path = f"/v2/kubernetes/clusters/{cluster}"
        return self._logged(None, seconds, "GET", path, {"kubernetes_cluster": around}, account)

    def asked(
        self, reference: str, verb: str, seconds: float, body: Any = None, **more: Any
    ) -> Story:
        """A request for a change arrived, and was accepted unless said otherwise."""
        kind, identity = reference.split("/", 2)[1:]
        method, path = {
            "server": ("POST", f"/v1/servers/{identity}/actions/{verb}"),
            "droplet": ("POST", f"/v2/droplets/{identity}/actions"),
            "database": ("PUT", f"/v2/databases/{identity}/resize"),
            "node-pool": (
                "PUT",
                f"/v2/kubernetes/clusters/{identity.replace('/', '/node_pools/')}",
            ),
        }[kind]
        body = {"type": verb} if kind == "droplet" else body
        entry = {"status": 201, "changed": True, "faulty": False} | more
        return self._logged(reference, seconds, method, path, {}, body=body, **entry)

    def called(
        self, account: str, call: str, seconds: float, body: Any = None, answer: Any = None
    ) -> Story:
        """A request arrived that names no resource, or one by a later id, and was accepted."""
        method, path = call.split()
        changed = method != "GET"
        return self._logged(
            None, seconds, method, path, answer, account, body=body, changed=changed
        )

    def _logged(
        self,
        reference: str | None,
        seconds: float,
        method: str,
        path: str,
        answer: Any,
        account: str | None = None,
        **more: Any,
    ) -> Story:
        known = {"body": None, "status": 200, "changed": False, "faulty": False} | more
        entry = Entry(
            sequence=len(self.entries) + 1,
            at=BEGIN + seconds,
            resource=reference,
            account=account or (reference or "").split("/")[0],
            method=method,
            path=path,
            answer=answer,
            **known,
        )
        self.entries.append(entry)
        return self

    def ended(self, reference: str, direction: str, begin: float, end: float, **more: Any) -> Story:
        """A transition went to history."""
        item = {
            "reference": reference,
            "direction": direction,
            "claimed_at": at(begin),
            "finished_at": at(end),
            "ending": "seen",
            "forced": False,
        }
        return self.written("history", (reference, at(begin)), item | more, end)

    def evidence(self, until: float = 10_000.0) -> Evidence:
        """Returns all of it as evidence."""
        looks, originals = defaultdict(list), Originals()
        entries = [originals.named(entry) for entry in self.entries]
        for reference, look in Viewer().looks(entries):
            looks[reference].append(look)
        return Evidence(
            BEGIN + until,
            entries,
            self.versions,
            looks,
            self.resources,
            self.sights,
            self.acts,
            ("simulated-do-token",),
        )
