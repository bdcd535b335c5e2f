"""`make idle`: measures `offhours serve` over a fleet that nothing is to be done about."""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from pathlib import Path

from rehearsal.processes import bare_environment, in_a_directory, running
from rehearsal.simulator import simulated

from .fleet import Fleet

OFFICE = 'weekdays = "mon-fri", begin = "08:00", end = "18:00"'
ALWAYS = 'begin = "00:00", end = "24:00"'
TICKS = os.sysconf("SC_CLK_TCK")
ALLOCATOR = {"MIMALLOC_PURGE_DELAY": "0", "MIMALLOC_ALLOW_THP": "0"}
"""As in the unit and the image."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make idle", description=__doc__)
    parser.add_argument("--programs", type=Path, required=True, help="folder of our programs")
    parser.add_argument("--resources", type=int, default=1000)
    parser.add_argument("--minutes", type=int, default=20, help="how long to measure")
    return in_a_directory("idle", partial(_idle, parser.parse_args()))


def _idle(arguments: argparse.Namespace, directory: Path) -> int:
    fleet = Fleet(arguments.resources)
    clouds, configuration = directory / "clouds.toml", directory / "offhours.toml"
    clouds.write_text(fleet.clouds())
    configuration.write_text(fleet.configuration().replace(OFFICE, ALWAYS))
    with simulated(arguments.programs / "cloud-simulator", clouds, directory) as simulator:
        command = [
            str(arguments.programs / "offhours"),
            "serve",
            f"--simulate={simulator.url}",
            *("--data", str(directory / "offhours.db")),
            *("--config", str(configuration)),
        ]
        environment = {**bare_environment(), **fleet.tokens(), **ALLOCATOR}
        with running(command, directory / "serve.log", lambda: True, environment) as serving:
            # The first inventory of every account, which stores every resource.
            time.sleep(120)
            began, before = time.monotonic(), _seconds(serving.pid)
            time.sleep(arguments.minutes * 60)
            took, used = time.monotonic() - began, _seconds(serving.pid) - before
            changes = len(simulator.changes())
            resident, peak = (_mib(serving.pid, one) for one in ("VmRSS", "VmHWM"))
    print(
        f"{fleet.size} resources, {arguments.minutes} minutes, {changes} changes: "
        f"{100 * used / took:.2f} % of a core, {resident:.1f} MiB, at most {peak:.1f} MiB"
    )
    return 0


def _seconds(process: int) -> float:
    """Returns the processor time of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _mib(process: int, what: str) -> float:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(f"{what}:"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    raise SystemExit(main())
