"""Both clouds, simulated, on an address of this machine."""

from __future__ import annotations

import contextlib
import json
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .processes import bare_environment, free_port, running


@dataclass(frozen=True)
class Simulator:
    """A running cloud simulator."""

    url: str

    def requests(self) -> list[dict[str, Any]]:
        """Every request that it took, oldest first."""
        return self._get("log")["entries"]

    def changes(self) -> list[dict[str, Any]]:
        """The requests that it accepted as changes, oldest first."""
        return [entry for entry in self.requests() if entry["changed"]]

    def resources(self) -> dict[str, Any]:
        """Every resource's state, by reference."""
        return self._get("resources")["resources"]

    def refuse_next_change(self, resource: str) -> None:
        """Answers the next change of a resource as the clouds answer what they will not do."""
        match = {"resource": resource, "method": "POST"}
        self._post("faults", {"match": match, "does": {"answer": {"status": 422}}})

    def refuse_next_token(self, account: str) -> None:
        """Refuses the token of an account's next request."""
        self._post("faults", {"match": {"account": account}, "does": "unauthorized"})

    def create(self, fleet: str) -> None:
        """Adds what a fleet's TOML describes, as a person would at the clouds."""
        self._post("people", {"create": fleet})

    def _post(self, path: str, body: Any) -> None:
        request = urllib.request.Request(
            f"{self.url}/_simulator/{path}",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=10).close()

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}/_simulator/{path}", timeout=10) as answer:
            return json.load(answer)


@contextlib.contextmanager
def simulated(program: Path, fleet: Path, directory: Path) -> Iterator[Simulator]:
    """The fleet, on any free port and by this machine's clock, until the block ends."""
    log = directory / "simulator.log"
    address = f"127.0.0.1:{free_port()}"
    command = [str(program), "--fleet", str(fleet), "--listen", address]
    with running(command, log, lambda: address in log.read_text(), bare_environment()):
        yield Simulator(f"http://{address}")
