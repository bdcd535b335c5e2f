"""Both clouds, simulated on this machine."""

from __future__ import annotations

import contextlib
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .processes import bare_environment, free_port, running

PAGE = 10_000
"""The most requests that are read at once."""


class Refusal(Exception):
    """Why the simulator refused what a person or a test asked of it."""


@dataclass(frozen=True)
class Simulator:
    """A running cloud simulator."""

    url: str

    def requests(self, after: int = 0) -> list[dict[str, Any]]:
        """Returns every request received after the one with this number, oldest first."""
        found: list[dict[str, Any]] = []
        while page := self._get(f"log?after={after}&most={PAGE}")["entries"]:
            found += page
            after = page[-1]["sequence"]
        return found

    def changes(self) -> list[dict[str, Any]]:
        """Returns the requests that were accepted as changes, oldest first."""
        return [entry for entry in self.requests() if entry["changed"]]

    def resources(self) -> dict[str, Any]:
        """Returns every resource's state, keyed by reference."""
        return self._get("resources")["resources"]

    def images(self) -> list[dict[str, Any]]:
        """Returns every image and snapshot, each with its account."""
        return self._get("resources")["images"]

    def refuse_next_change(self, resource: str) -> None:
        """Refuses the next change of a resource with 422, as the clouds do."""
        match = {"resource": resource, "method": "POST"}
        self.misbehave(match, {"answer": {"status": 422}})

    def refuse_next_token(self, account: str) -> None:
        """Rejects the token in an account's next request."""
        self.misbehave({"account": account}, "unauthorized")

    def misbehave(self, match: dict[str, Any], does: Any, times: int = 1) -> None:
        """Sets a fault for the next requests that match."""
        self._post("faults", {"match": match, "times": times, "does": does})

    def behave(self) -> None:
        """Removes all faults."""
        self._request("DELETE", "faults")

    def hold(self, hold: dict[str, Any]) -> int:
        """Sets a hold for the next requests that match. Returns the hold's number."""
        return self._post("holds", hold)["id"]

    def end_hold(self, number: int, *, discard: bool) -> None:
        """Releases the held requests, or closes their connections."""
        self._request("DELETE", f"holds/{number}?discard={str(discard).lower()}")

    def person(self, resource: str, act: Any) -> None:
        """Acts as a person would in the cloud. Raises `Refusal` where the cloud would refuse."""
        self._post("people", {"resource": resource, "act": act})

    def create(self, fleet: str) -> None:
        """Adds the resources that a fleet's TOML describes, as a person would in the cloud."""
        self._post("people", {"create": fleet})

    def move_clock(self, to: str) -> None:
        """Moves a held clock to an instant."""
        self._post("clock", {"now": to})

    def _post(self, path: str, body: Any) -> Any:
        return self._request("POST", path, json.dumps(body).encode())

    def _get(self, path: str) -> Any:
        return self._request("GET", path)

    def _request(self, method: str, path: str, body: bytes | None = None) -> Any:
        request = urllib.request.Request(
            f"{self.url}/_simulator/{path}",
            data=body,
            headers={"Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            raise Refusal(json.load(error)["error"]) from None


@contextlib.contextmanager
def simulated(
    program: Path, fleet: Path, directory: Path, at: str | None = None
) -> Iterator[Simulator]:
    """Simulates the fleet on a free port until the block ends, by this machine's clock or, with
    `at`, by a clock held at that instant."""
    log = directory / "simulator.log"
    address = f"127.0.0.1:{free_port()}"
    command = [str(program), "--fleet", str(fleet), "--listen", address]
    command += ["--at", at] if at else []
    with running(command, log, lambda: address in log.read_text(), bare_environment()):
        yield Simulator(f"http://{address}")
