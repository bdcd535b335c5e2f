"""LocalStack and the simulator in containers, for machines that have Docker."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .emulator import Emulator
from .processes import free_port
from .simulator import Simulator
from .stack import Failed, run

COMPOSE = Path(__file__).with_name("compose.yaml")


@dataclass(frozen=True)
class Places:
    """The emulated AWS and the simulated clouds."""

    emulator: Emulator
    simulator: Simulator
    clouds: str
    """The simulator's address, as seen by the functions."""


@contextlib.contextmanager
def localstack(programs: Path) -> Iterator[Places]:
    """Runs LocalStack and the simulator until the block ends."""
    _require_compose()
    compose = ["docker", "compose", "--file", str(COMPOSE)]
    gateway, clouds = free_port(), free_port()
    environment = dict(os.environ) | {
        "OFFHOURS_PROGRAMS": str(programs.resolve()),
        "OFFHOURS_LOCALSTACK_PORT": str(gateway),
        "OFFHOURS_SIMULATOR_PORT": str(clouds),
    }
    try:
        run([*compose, "up", "--detach", "--wait"], environment)
        simulator = Simulator(f"http://127.0.0.1:{clouds}")
        yield Places(Emulator(f"http://127.0.0.1:{gateway}"), simulator, "http://simulator:8100")
    finally:
        _down(compose, environment)


def _require_compose() -> None:
    if sys.platform != "linux":
        raise Failed(
            "EMULATOR=localstack-docker needs Linux: it mounts this machine's cloud-simulator "
            "into a container"
        )
    try:
        found = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    except FileNotFoundError:
        found = None
    if found is None or found.returncode:
        raise Failed(
            "EMULATOR=localstack-docker needs Docker with Compose, and `docker compose version` "
            "fails: install both, or use EMULATOR=localstack, which needs neither"
        )


def _down(compose: list[str], environment: dict[str, str]) -> None:
    """Removes the containers. A failure must not mask how the block ended."""
    try:
        run([*compose, "down", "--volumes"], environment)
    except Failed as error:
        print(f"warning: containers may be left: {error}", file=sys.stderr)
