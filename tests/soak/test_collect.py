"""The evidence is read from the log and the streams, and can be saved and read again."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from .collect import Collector, kept

KEYS = {
    "schedules": ("generation_key", "name"),
    "accounts": ("generation_key", "name"),
    "resources": ("account", "resource"),
    "history": ("reference", "transition"),
}
SERVER = {"id": 41, "name": "ci-1", "status": "off", "labels": {}, "server_type": "cx22"}
SHOWN = SERVER | {"server_type": {"name": "cx22"}}
LOGGED = {
    "sequence": 1,
    "at": "2026-11-23T01:00:00Z",
    "account": "hz-eu",
    "resource": "hz-eu/server/41",
    "changed": False,
    "faulty": False,
    "request": {"method": "GET", "path": "/v1/servers/41", "body": ""},
    "answer": {"status": 200, "body": json.dumps({"server": SHOWN})},
}


class Tables:
    """DynamoDB and its streams, with one record that was written and deleted."""

    def __init__(self) -> None:
        self.enabled: list[str] = []
        key = {"account": {"S": "hz-eu"}, "resource": {"S": "server/41"}}
        image = key | {"revision": {"N": "7"}, "tags": {"SS": ["a=b"]}, "held": {"BOOL": True}}
        self.written = [
            {
                "Keys": key,
                "SequenceNumber": f"{1_795_395_600_123:020}0000000001",
                "NewImage": image,
            },
            {"Keys": key, "SequenceNumber": f"{1_795_395_601_000:020}0000000002"},
        ]

    def describe_table(self, TableName: str) -> Any:
        names = KEYS[TableName.rsplit("-", 1)[1]]
        schema = [{"AttributeName": name} for name in names]
        return {"Table": {"KeySchema": schema, "LatestStreamArn": TableName}}

    def update_table(self, TableName: str, StreamSpecification: Any) -> None:
        assert StreamSpecification["StreamEnabled"]
        self.enabled.append(TableName)

    def describe_stream(self, StreamArn: str) -> Any:
        return {"StreamDescription": {"Shards": [{"ShardId": StreamArn}]}}

    def get_shard_iterator(self, ShardId: str, **_: str) -> Any:
        return {"ShardIterator": ShardId}

    def get_records(self, ShardIterator: str) -> Any:
        is_new = ShardIterator == "offhours-resources"
        records = [{"dynamodb": one} for one in self.written] if is_new else []
        return {"Records": records, "NextShardIterator": f"{ShardIterator}, read"}


class Clouds:
    """A simulator that answered one request."""

    def requests(self, after: int) -> list[Any]:
        return [LOGGED] if after == 0 else []

    def resources(self) -> Any:
        return {"hz-eu/server/41": SERVER}

    def images(self) -> Any:
        return []


def collected(tables: Tables) -> Collector:
    emulator = SimpleNamespace(client=lambda _: tables)
    stack = SimpleNamespace(emulator=emulator, name="offhours")
    return Collector(stack, Clouds(), ("secret",))


def test_every_version_of_every_item_is_read_once() -> None:
    tables = Tables()
    collector = collected(tables)
    assert tables.enabled == [f"offhours-{table}" for table in KEYS]
    collector.collect()
    first, deleted = collector.collect().versions["resources"]
    assert (first.at, first.reference) == (1_795_395_600.123, "hz-eu/server/41")
    assert (first.get("revision"), first.get("tags"), first.get("held")) == (7, ["a=b"], True)
    assert deleted.item is None
    assert collector.versions["history"] == []


def test_what_the_clouds_showed_is_read_from_the_log() -> None:
    evidence = collected(Tables()).collect()
    (look,) = evidence.looks["hz-eu/server/41"]
    assert (look.name, look.status) == ("ci-1", "off")
    assert evidence.resources == {}


def test_evidence_that_was_written_down_is_the_same_when_read_again(tmp_path: Path) -> None:
    collector = collected(Tables())
    collector.act("hz-eu/server/41")
    evidence = collector.collect(last=True)
    collector.keep(tmp_path)
    assert kept(tmp_path) == evidence


def test_nothing_is_written_down_before_anything_was_read(tmp_path: Path) -> None:
    collected(Tables()).keep(tmp_path / "kept")
    assert not (tmp_path / "kept").exists()
