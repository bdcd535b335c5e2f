"""Every path through a deployed stack that its roles must allow, walked in half a minute.

Timers are off here: each function is invoked with the event that its timer or its invoker would
send, so that many copies of the template can be walked concurrently.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleets import DATABASE, DEAF, DEAF_SERVER, DROPLET, ORDER, SERVER
from inbox import Inbox
from rehearsal.command import Offhours
from rehearsal.examples import standing
from rehearsal.simulator import Simulator
from rehearsal.stack import Stack, timer

QUICK_ONES = {DROPLET, DATABASE, SERVER}
PATIENCE = 20.0
"""Seconds to wait for the effects of an asynchronous invocation."""


class BrokenPath(AssertionError):
    """A path that does not lead where it should."""


@dataclass(frozen=True)
class Walker:
    """Walks the paths of one stack."""

    stack: Stack
    simulator: Simulator
    offhours: Offhours
    directory: Path

    def walk(self, *, forced: bool = False) -> None:
        """Walks all paths; with `forced`, also the one that takes more than a minute."""
        inbox = Inbox.on_bus(self.stack.emulator, self.stack.name)
        self.apply("stopped")
        self.inventory()
        self.transition("stop", inbox)
        self.apply("running")
        self.transition("start", inbox)
        self.dry_runs()
        self.by_hand("stop", "off")
        self.refusal("start", inbox)
        self.by_hand("start", "running")
        self.refusal("stop", inbox)
        self.questions()
        self.publish()
        self.carry_over()
        self.dead_letters()
        if forced:
            self.cut(inbox)

    def apply(self, desired: str) -> None:
        """Applies a configuration under which everything should be stopped, or running."""
        path = self.directory / f"{desired}.toml"
        path.write_text(standing(desired) + ORDER)
        done = self.offhours.run("apply", "--config", str(path), "--yes")
        require(done.returncode == 0, f"apply: {done.stderr}")

    def inventory(self) -> None:
        """poll-status reads tokens, lists the resources, and keeps a record of each."""
        outcomes = self.poll()
        joined = {one["resource"] for one in outcomes if one["event"] == "joined"}
        require(joined == QUICK_ONES, f"inventory: {outcomes}")
        states = [item for item in self.stack.items("accounts") if "tried_at" in item]
        require(len(states) == 2, f"accounts' states: {states}")

    def transition(self, direction: str, inbox: Inbox) -> None:
        """dispatch hands out, stop or start acts, poll-status sees it and publishes it."""
        before = len(self.simulator.changes())
        dispatched = self.stack.invoke("dispatch", timer("dispatch"))
        handed = dispatched["stops" if direction == "stop" else "starts"]
        require(set(handed) == QUICK_ONES, f"dispatch: {dispatched}")
        expect(
            lambda: len(self.simulator.changes()) == before + 3,
            f"the requests to {direction}",
        )
        self.poll_until_seen(QUICK_ONES)
        expect_published(inbox, "Transition Finished", QUICK_ONES, direction)

    def refusal(self, direction: str, inbox: Inbox) -> None:
        """A provider's refusal is published by stop and start themselves."""
        self.simulator.refuse_next_change(SERVER)
        report = self.stack.invoke(direction, {"resources": [SERVER]})
        events = [one["event"] for one in report["outcomes"]]
        require(events == ["refused"], f"{direction}: {report}")
        expect_published(inbox, "Transition Refused", {SERVER}, direction)

    def dry_runs(self) -> None:
        """stop and start accept each form of command."""
        for direction in ("stop", "start"):
            for target in (
                {"resources": [SERVER]},
                {"schedule": "nights"},
                {"account": "hz-eu"},
            ):
                report = self.stack.invoke(direction, target | {"dry_run": True})
                require(bool(report["outcomes"]), f"{direction} {target}: {report}")
                words = json.dumps(report)
                require("denied" not in words.lower(), f"{direction} {target}: {report}")

    def by_hand(self, direction: str, end: str) -> None:
        """A person's command is followed until it is seen; the account's rate limit is recorded."""
        before = self.rate_noted_at()
        report = self.stack.invoke(direction, {"resources": [SERVER]})
        require(report["outcomes"][0]["event"] == "asked", f"{direction}: {report}")
        require(self.rate_noted_at() > before, f"{direction} did not note the account's rate")
        self.poll_until_seen({SERVER})
        status = self.simulator.resources()[SERVER]["status"]
        require(status == end, f"{status} after {direction}")

    def rate_noted_at(self) -> int:
        """Returns when the server's account last had its remaining requests recorded, in
        milliseconds."""
        states = self.stack.items("accounts")
        noted = [one for one in states if "rate_ms" in one and one["account"]["S"] == "hz-eu"]
        return max((int(one["rate_ms"]["N"]) for one in noted), default=0)

    def questions(self) -> None:
        """poll-status answers each form of question."""
        report = self.stack.invoke("poll-status", {"resources": sorted(QUICK_ONES)})
        states = {one["resource"]: one["state"] for one in report["outcomes"]}
        require(states.keys() == QUICK_ONES, f"status: {report}")
        report = self.stack.invoke("poll-status", {"inventory": []})
        require(len(report["outcomes"]) >= 2, f"inventory: {report}")
        account = {"provider": "hetzner", "token": "ssm:/offhours/reading/hz-eu"}
        report = self.stack.invoke("poll-status", {"try": {"hz-new": account}})
        require(len(report["trials"][0]["found"]) == 1, f"trial: {report}")

    def publish(self) -> None:
        """publish writes pages, calendars and rows, and a link leads to the public page."""
        published = self.stack.invoke("publish", {})
        bucket = self.stack.outputs()["PagesBucket"]
        found = self.stack.emulator.client("s3").list_objects_v2(Bucket=bucket)["Contents"]
        keys = {one["Key"] for one in found}
        require(published["objects"] == len(keys), f"published: {published}, {keys}")
        written = {"index.html", "public/index.html", "calendar.ics", "public/calendar.ics"}
        require(written <= keys, f"objects: {keys}")
        shared = self.offhours.run("share", "--for", "1h")
        require(shared.returncode == 0, f"share: {shared.stderr}")
        with urllib.request.urlopen(shared.stdout.strip(), timeout=30) as answer:
            page = answer.read().decode()
        require(page.startswith("<!DOCTYPE html>"), f"the page that is shared: {page[:80]}")

    def carry_over(self) -> None:
        """poll-status takes over what an apply left under the former name of an account."""
        path = self.directory / "renamed.toml"
        account = "[accounts.hz-eu]\n"
        path.write_text(standing("running").replace(account, f'{account}was = "hz-old"\n'))
        done = self.offhours.run("apply", "--config", str(path), "--yes")
        require(done.returncode == 0, f"apply: {done.stderr}")
        dynamodb = self.stack.emulator.client("dynamodb")
        table = f"{self.stack.name}-resources"
        records = self.stack.items("resources")
        (record,) = [one for one in records if one["account"]["S"] == "hz-eu"]
        reference = record["reference"]["S"].replace("hz-eu", "hz-old")
        left = record | {"account": {"S": "hz-old"}, "reference": {"S": reference}}
        dynamodb.put_item(TableName=table, Item=left)
        self.stack.invoke("poll-status", {"inventory": ["hz-eu"]})
        accounts = {item["account"]["S"] for item in self.stack.items("resources")}
        require(accounts == {"do-main", "hz-eu"}, f"records of {accounts}")

    def dead_letters(self) -> None:
        """An asynchronous invocation of stop or start that fails is kept in the queue."""
        sqs = self.stack.emulator.client("sqs")
        url = sqs.get_queue_url(QueueName=f"{self.stack.name}-dead-letters")["QueueUrl"]
        failed = set()
        for short in ("stop", "start"):
            self.stack.emulator.client("lambda").invoke(
                FunctionName=self.stack.function(short),
                InvocationType="Event",
                Payload=b'{"no event": true}',
            )

        def all_failed() -> bool:
            answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
            for message in answer.get("Messages", []):
                arn = json.loads(message["Body"])["requestContext"]["functionArn"]
                failed.add(arn.split(":function:")[1].split(":")[0])
            return len(failed) == 2

        expect(all_failed, f"dead letters of stop and start, not only {failed}")

    def cut(self, inbox: Inbox) -> None:
        """A guest that ignores its shutdown is cut off by stop, which poll-status invokes."""
        self.simulator.create(DEAF)
        self.stack.invoke("poll-status", {"inventory": []})
        self.stack.invoke("stop", {"resources": [DEAF_SERVER]})
        until = time.monotonic() + 150
        while self.simulator.resources()[DEAF_SERVER]["status"] != "off":
            require(time.monotonic() < until, "the power was not cut")
            self.poll()
        expect_published(inbox, "Transition Forced", {DEAF_SERVER})

    def poll_until_seen(self, resources: set[str]) -> None:
        """Ticks until all are seen; the first observation is five seconds after a claim."""
        missing = set(resources)

        def all_seen() -> bool:
            outcomes = self.poll()
            missing.difference_update(o["resource"] for o in outcomes if o["event"] == "seen")
            return not missing

        expect(all_seen, f"the end of {sorted(missing)}")

    def poll(self) -> list[dict[str, Any]]:
        """Invokes poll-status for one tick. Returns its outcomes."""
        return self.stack.invoke("poll-status", timer("poll-status"))["outcomes"]


def expect_published(
    inbox: Inbox, detail_type: str, resources: set[str], direction: str | None = None
) -> None:
    """Waits until the bus has this event for each resource."""

    def missing() -> set[str]:
        published = [one["detail"] for one in inbox.all() if one["detail-type"] == detail_type]
        return resources - {
            one["resource"] for one in published if one.get("direction") == direction
        }

    expect(lambda: not missing(), f"{detail_type} ({direction}) of {sorted(resources)}")


def require(holds: bool, words: str) -> None:
    """Fails the walk unless the condition holds."""
    if not holds:
        raise BrokenPath(words)


def expect(holds: Callable[[], bool], words: str, patience: float = PATIENCE) -> None:
    """Waits until the condition holds. Fails the walk after `patience` seconds."""
    until = time.monotonic() + patience
    while not holds():
        require(time.monotonic() < until, f"waited in vain for {words}")
        time.sleep(0.5)
