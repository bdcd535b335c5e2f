"""Gathers the evidence during a run: the simulator's log, and the streams of the tables."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import astuple
from pathlib import Path
from typing import Any

from boto3.dynamodb.types import TypeDeserializer
from rehearsal.simulator import Simulator
from rehearsal.stack import Stack

from .evidence import TABLES, Entry, Evidence, Look, Sight, Version
from .fleet import HIBERNATING
from .kinds import Viewer
from .originals import Originals, original, sights

NUMBERED_BY = 20
"""How many leading digits of ministack's sequence numbers are the millisecond of the write."""


class Stream:
    """Reads every version of every item of one table, from now on."""

    def __init__(self, stack: Stack, table: str) -> None:
        self._streams = stack.emulator.client("dynamodbstreams")
        dynamodb = stack.emulator.client("dynamodb")
        name = f"{stack.name}-{table}"
        keys = dynamodb.describe_table(TableName=name)["Table"]["KeySchema"]
        self._keys = [key["AttributeName"] for key in keys]
        wanted = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
        dynamodb.update_table(TableName=name, StreamSpecification=wanted)
        arn = dynamodb.describe_table(TableName=name)["Table"]["LatestStreamArn"]
        described = self._streams.describe_stream(StreamArn=arn)["StreamDescription"]
        self._iterator = self._streams.get_shard_iterator(
            StreamArn=arn,
            ShardId=described["Shards"][0]["ShardId"],
            ShardIteratorType="TRIM_HORIZON",
        )["ShardIterator"]

    def new(self) -> list[Version]:
        """Returns what was written since the last call."""
        found: list[Version] = []
        while True:
            page = self._streams.get_records(ShardIterator=self._iterator)
            self._iterator = page["NextShardIterator"]
            found.extend(self._version(record["dynamodb"]) for record in page["Records"])
            if not page["Records"]:
                return found

    def _version(self, written: dict[str, Any]) -> Version:
        key = plain(written["Keys"])
        item = plain(written["NewImage"]) if "NewImage" in written else None
        at = int(written["SequenceNumber"][:NUMBERED_BY]) / 1000
        return Version(at, tuple(key[name] for name in self._keys), item)


def plain(item: dict[str, Any]) -> dict[str, Any]:
    """Converts an item of DynamoDB to plain JSON."""
    read = TypeDeserializer()
    values = {name: read.deserialize(value) for name, value in item.items()}
    return json.loads(json.dumps(values, default=_plain_value))


def _plain_value(value: Any) -> Any:
    """Converts DynamoDB's own numbers and sets."""
    return sorted(value) if isinstance(value, set) else int(value)


class Collector:
    """Collects all evidence so far."""

    def __init__(self, stack: Stack, simulator: Simulator, secrets: tuple[str, ...]) -> None:
        self._simulator = simulator
        self._secrets = secrets
        self._streams = {table: Stream(stack, table) for table in TABLES}
        self._viewer = Viewer()
        self._originals = Originals()
        self.entries: list[Entry] = []
        self.logged: list[dict[str, Any]] = []
        self.versions: dict[str, list[Version]] = {table: [] for table in TABLES}
        self.looks: defaultdict[str, list[Look]] = defaultdict(list)
        self.sights: list[Sight] = []
        self.acts: list[tuple[float, str]] = []
        self._latest: Evidence | None = None

    def act(self, resource: str) -> None:
        """Records that a person does something with a resource."""
        self.acts.append((time.time(), resource))

    def collect(self, *, last: bool = False) -> Evidence:
        """Reads what is new; with `last`, the clouds' own state as well."""
        until = time.time()
        after = self.entries[-1].sequence if self.entries else 0
        logged = self._simulator.requests(after)
        entries = [self._originals.named(Entry.of(one)) for one in logged]
        self.logged += logged
        self.entries += entries
        for reference, look in self._viewer.looks(entries):
            self.looks[reference].append(look)
        for table, stream in self._streams.items():
            self.versions[table] += stream.new()
        resources = self._simulator.resources()
        references = [member.reference for member in HIBERNATING]
        # In this order: a machine that is missing had its snapshot before.
        self.sights += sights(time.time(), references, resources, self._simulator.images())
        resources = {original(name, state): state for name, state in resources.items()}
        self._latest = Evidence(
            until,
            self.entries,
            self.versions,
            self.looks,
            resources if last else {},
            self.sights,
            self.acts,
            self._secrets,
        )
        return self._latest

    def keep(self, directory: Path) -> None:
        """Saves the evidence, one JSON document per line; `recheck` reads it again."""
        if self._latest is None:
            return
        directory.mkdir(parents=True, exist_ok=True)
        _write(directory / "requests.jsonl", self.logged)
        for table, versions in self.versions.items():
            lines = ({"at": one.at, "key": one.key, "item": one.item} for one in versions)
            _write(directory / f"{table}.jsonl", lines)
        more = {
            "until": self._latest.until,
            "resources": self._latest.resources,
            "sights": [astuple(sight) for sight in self.sights],
            "acts": self.acts,
            "secrets": self._secrets,
        }
        _write(directory / "more.jsonl", [more])


def _write(path: Path, documents: Iterable[Any]) -> None:
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))


def _read(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def kept(directory: Path) -> Evidence:
    """Reads the saved evidence of a run."""
    originals = Originals()
    logged = _read(directory / "requests.jsonl")
    entries = [originals.named(Entry.of(one)) for one in logged]
    looks: defaultdict[str, list[Look]] = defaultdict(list)
    for reference, look in Viewer().looks(entries):
        looks[reference].append(look)
    versions = {
        table: [
            Version(one["at"], tuple(one["key"]), one["item"])
            for one in _read(directory / f"{table}.jsonl")
        ]
        for table in TABLES
    }
    (more,) = _read(directory / "more.jsonl")
    acts = [(at, resource) for at, resource in more["acts"]]
    return Evidence(
        more["until"],
        entries,
        versions,
        looks,
        more["resources"],
        [Sight(*sight) for sight in more["sights"]],
        acts,
        tuple(more["secrets"]),
    )
