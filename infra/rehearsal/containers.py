"""LocalStack and the simulator in containers, for machines that have Docker."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .emulator import Emulator
from .simulator import Simulator
from .stack import run

COMPOSE = Path(__file__).with_name("compose.yaml")


@dataclass(frozen=True)
class Places:
    """Where AWS and the clouds are played."""

    emulator: Emulator
    simulator: Simulator
    clouds: str
    """The simulator's address as the functions reach it."""


@contextlib.contextmanager
def localstack(programs: Path) -> Iterator[Places]:
    """LocalStack and the simulator, until the block ends."""
    compose = ["docker", "compose", "--file", str(COMPOSE)]
    environment = dict(os.environ) | {"OFFHOURS_PROGRAMS": str(programs.resolve())}
    run([*compose, "up", "--detach", "--wait"], environment)
    try:
        emulator = Emulator("http://127.0.0.1:4566")
        yield Places(emulator, Simulator("http://127.0.0.1:8100"), "http://simulator:8100")
    finally:
        run([*compose, "down", "--volumes"], environment)
