"""Runs the `offhours` command against a stack, as an operator does."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from .emulator import ROOT, Emulator


@dataclass(frozen=True)
class Offhours:
    """The command: its program and the stack that it talks to."""

    program: Path
    emulator: Emulator
    stack: str

    def run(
        self, *arguments: str, key: tuple[str, str] = ROOT, timeout: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs it to completion, whatever its exit code. After `timeout` seconds it is killed,
        and `TimeoutExpired` raised."""
        environment = self.emulator.environment(key) | {
            "OFFHOURS_TABLE_PREFIX": f"{self.stack}-",
            "NO_COLOR": "1",
        }
        return subprocess.run(
            [str(self.program), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
