"""Both clouds, simulated, on an address of this machine."""

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


class Refusal(Exception):
    """Why the simulator does not do what a person, or a test, asks of it."""


@dataclass(frozen=True)
class Simulator:
    """A running cloud simulator."""

    url: str

    def requests(self, after: int = 0) -> list[dict[str, Any]]:
        """Every request that it took after the one with this number, oldest first."""
        return self._get(f"log?after={after}")["entries"]

    def changes(self) -> list[dict[str, Any]]:
        """The requests that it accepted as changes, oldest first."""
        return [entry for entry in self.requests() if entry["changed"]]

    def resources(self) -> dict[str, Any]:
        """Every resource's state, by reference."""
        return self._get("resources")["resources"]

    def refuse_next_change(self, resource: str) -> None:
        """Answers the next change of a resource as the clouds answer what they will not do."""
        match = {"resource": resource, "method": "POST"}
        self.misbehave(match, {"answer": {"status": 422}})

    def refuse_next_token(self, account: str) -> None:
        """Refuses the token of an account's next request."""
        self.misbehave({"account": account}, "unauthorized")

    def misbehave(self, match: dict[str, Any], does: Any, times: int = 1) -> None:
        """Sets a fault for the next requests that match."""
        self._post("faults", {"match": match, "times": times, "does": does})

    def behave(self) -> None:
        """Removes all faults."""
        self._request("DELETE", "faults")

    def hold(self, hold: dict[str, Any]) -> int:
        """Sets a hold for the next requests that match; its number."""
        return self._post("holds", hold)["id"]

    def end_hold(self, number: int, *, discard: bool) -> None:
        """Releases the requests in a hold, or closes their connections."""
        self._request("DELETE", f"holds/{number}?discard={str(discard).lower()}")

    def person(self, resource: str, act: Any) -> None:
        """Does what a person would at the clouds; a `Refusal` where the cloud would refuse it."""
        self._post("people", {"resource": resource, "act": act})

    def create(self, fleet: str) -> None:
        """Adds what a fleet's TOML describes, as a person would at the clouds."""
        self._post("people", {"create": fleet})

    def move_clock(self, to: str) -> None:
        """Moves a clock that is held to an instant."""
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
    """The fleet, on any free port, until the block ends: by this machine's clock, or by one that is
    held at an instant."""
    log = directory / "simulator.log"
    address = f"127.0.0.1:{free_port()}"
    command = [str(program), "--fleet", str(fleet), "--listen", address]
    command += ["--at", at] if at else []
    with running(command, log, lambda: address in log.read_text(), bare_environment()):
        yield Simulator(f"http://{address}")
