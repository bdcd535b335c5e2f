"""`make scale`: measures an edge of every resource in the same minute, for ever larger fleets."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rehearsal.processes import bare_environment, in_a_directory
from rehearsal.simulator import Simulator, simulated

from . import services
from .figures import Result
from .fleet import Fleet
from .kept import commit, keep, machine, progress

SIZES = (0, 100, 316, 1000, 3162, 10_000)
A_MINUTE = 250
"""Requests per minute that DigitalOcean allows, by its documentation and the simulator's limit."""
MONDAY = "2026-11-23T"
TUESDAY = "2026-11-24T"


@dataclass(frozen=True)
class Part:
    """A part of the course: when the service begins to run, and for how long."""

    name: str
    begins: str
    lasts: str
    ticks: int
    inventories: int


COURSE = (
    Part("set-up", f"{MONDAY}17:24:30Z", "6m", 6, 2),
    Part("quiet", f"{MONDAY}17:30:30Z", "4m", 4, 0),
    Part("inventory", f"{MONDAY}17:34:30Z", "21m", 21, 5),
    Part("stop", f"{MONDAY}17:59:30Z", "12m", 12, 3),
    Part("night", f"{TUESDAY}07:54:30Z", "5m", 5, 1),
    Part("start", f"{TUESDAY}07:59:30Z", "12m", 12, 3),
)
"""An inventory is due every fifth minute, including the minutes of the edges."""


class Wrong(Exception):
    """The service did not do what was to be measured."""


def main() -> int:
    return in_a_directory("scale", partial(_scale, _arguments()), Wrong)


def _scale(arguments: argparse.Namespace, directory: Path) -> int:
    result = {
        "machine": machine(),
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "command": arguments.command,
        "sizes": [_measure(arguments.programs, size, directory) for size in arguments.sizes],
    }
    keep(result, "scale")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make scale", description=__doc__)
    parser.add_argument("--programs", type=Path, required=True, help="folder of our programs")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="resources")
    parser.add_argument("--command", required=True, help="what was typed")
    return parser.parse_args()


@dataclass(frozen=True)
class World:
    """The service and what it reaches."""

    program: Path
    engine: str
    clouds: Simulator
    environment: dict[str, str]

    def run(self, lasts: str, *more: str) -> Result:
        """Runs one process of the service for this long. Returns what it took."""
        command = [
            str(self.program),
            "local",
            f"--simulate={self.clouds.url}",
            *("--store", self.engine.removeprefix("http://")),
            *("--for", lasts, "--speed", "0", "-o", "json"),
            *more,
        ]
        before = self.counted()
        began = time.monotonic()
        process = subprocess.Popen(
            command, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        lines = process.stdout.read().splitlines()
        process.stdout.close()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise Wrong(f"`offhours local` ended with {process.returncode}")
        *happened, summary = lines
        after = self.counted()
        return {
            "cpu_ms": round((used.ru_utime + used.ru_stime) * 1000, 1),
            "seconds": round(time.monotonic() - began, 2),
            "memory_mib": round(used.ru_maxrss / 1024, 1),
            "store_requests": after["requests"] - before["requests"],
            "units": _less(after["units"], before["units"]),
            "invocations": json.loads(summary).get("invocations", {}),
            "events": len(happened),
            # A function logs the same line for an event.
            "log_bytes": sum(len(line) for line in happened),
        }

    def counted(self) -> Result:
        """Returns the requests to the engine so far, and the capacity they consumed, by table and
        index."""
        with urllib.request.urlopen(self.engine, timeout=10) as answer:
            return json.load(answer)


def _less(
    after: dict[str, dict[str, float]], before: dict[str, dict[str, float]]
) -> dict[str, dict[str, float]]:
    """Returns what was consumed in between."""
    return {
        name: {
            what: round(number - before.get(name, {}).get(what, 0.0), 1)
            for what, number in units.items()
        }
        for name, units in after.items()
    }


@contextmanager
def _world(programs: Path, fleet: Fleet, directory: Path) -> Iterator[World]:
    (directory / "clouds.toml").write_text(fleet.clouds())
    (directory / "offhours.toml").write_text(fleet.configuration())
    simulator = programs / "cloud-simulator"
    environment = {**bare_environment(), **fleet.tokens()}
    with (
        services.engine(programs, directory, "--count") as engine,
        simulated(simulator, directory / "clouds.toml", directory, COURSE[0].begins) as clouds,
    ):
        yield World(programs / "offhours", engine, clouds, environment)


def _measure(programs: Path, size: int, directory: Path) -> Result:
    fleet = Fleet(size)
    found: Result = {
        "resources": size,
        "accounts": fleet.accounts,
        "schedules": fleet.schedules,
        "a_minute": A_MINUTE,
        "parts": {},
    }
    seen = 0
    with _world(programs, fleet, directory) as world:
        for part in COURSE:
            progress(f"{size:,} resources: {part.name} ...")
            world.clouds.move_clock(part.begins)
            more = ("--config", str(directory / "offhours.toml")) if part is COURSE[0] else ()
            ran = world.run(part.lasts, *more)
            requests = world.clouds.requests(seen)
            seen = max((entry["sequence"] for entry in requests), default=seen)
            found["parts"][part.name] = {
                "ticks": part.ticks,
                "inventories": part.inventories,
                **ran,
                **_asked(requests),
            }
        # What every process takes besides its ticks: starting up and summing up.
        processes = [world.run("1s") for _ in range(3)]
        found["process"] = sorted(processes, key=lambda ran: ran["cpu_ms"])[1]
    for name in ("stop", "start"):
        changes = found["parts"][name]["changes"]
        if changes != size:
            raise Wrong(f"{changes} of {size} were asked to {name}")
    return found


def _asked(requests: list[dict[str, Any]]) -> Result:
    """Counts the requests to the clouds: all of them, the changes, and the changes together with
    the observations before them, which are sent at the same instant of the held clock."""
    first: dict[tuple[str, str], int] = {}
    changes = [entry for entry in requests if entry["request"]["method"] != "GET"]
    for entry in changes:
        first.setdefault((entry["account"], entry["at"]), entry["sequence"])
    looks = [
        entry
        for entry in requests
        if entry["request"]["method"] == "GET"
        and entry["sequence"] < first.get((entry["account"], entry["at"]), 0)
    ]
    return {
        "requests": len(requests),
        "changes": len(changes),
        "sent": len(changes) + len(looks),
        "too_many": sum((entry["answer"] or {}).get("status") == 429 for entry in requests),
        "last_at": max((entry["at"] for entry in changes), default=None),
    }


if __name__ == "__main__":
    sys.exit(main())
