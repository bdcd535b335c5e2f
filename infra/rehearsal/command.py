"""The `offhours` command, as an operator runs it against a stack."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from .emulator import ROOT, Emulator


@dataclass(frozen=True)
class Offhours:
    """The command, by its program and the stack that it is to talk to."""

    program: Path
    emulator: Emulator
    stack: str

    def run(
        self, *arguments: str, key: tuple[str, str] = ROOT, timeout: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs it to its end, whatever that is; past `timeout` it is ended, with an error."""
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
